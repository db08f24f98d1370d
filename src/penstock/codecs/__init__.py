"""Decoders and encoders: bytes in, arrays out, and back. Each library stands behind one module here.

headers   what kind of image some bytes are, how large, how turned, and whether they were cut short
images    encoded image ↔ H×W×3 uint8 RGB
resizing  the one filter with which Penstock changes sizes
video     opening videos, frames ↔ RGB, closed GOPs of H.264
kernel    a range of encoded images → cropped, resized, flipped, normalised samples of a batch
decoding  every frame of a video in order, exactly once, and what is damaged
"""
