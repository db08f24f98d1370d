"""Images in memory: arrays of NumPy and images of Pillow, as prediction takes them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import decode_image, encode_image, upright
from penstock.errors import DataError, Problem
from penstock.samples import Field, Origin, Raw, Sample, Schema, Store
from penstock.wording import counted

Pixels = NDArray[np.uint8]
EXPECTED = "expected an array H×W×3 of uint8, RGB"
ORIENTATION = 0x0112  # the tag of EXIF
# Modes of Pillow that Pillow itself converts: for those that PNG has, to the pixels that we decode from the file.
# 16 bits are scaled by our own rule, because Pillow cuts them off at 255; 32 bits, floats and the like have no rule.
CONVERTED_MODES = ("RGB", "RGBA", "RGBX", "L", "LA", "P", "PA", "1", "CMYK", "YCbCr")
DEEP_MODES = ("I;16", "I;16L", "I;16B")


class ImageArrays(Store):
    """Pixels in the order in which they were given; the key of each is its number."""

    def __init__(self, images: Sequence[Pixels]) -> None:
        self.images = list(images)
        self._schema = Schema((Field("image", "image"),))

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"ImageArrays({counted(len(self), 'image')})"

    def read(self, index: int) -> Raw:
        return Raw(index, b"")

    def decode(self, raw: Raw) -> Sample:
        # A copy: steps may write into what they are given, and these pixels are the caller's.
        return {"image": np.array(self.images[raw.index], order="C"), **self.annotations(raw.index)}

    def annotations(self, index: int) -> Sample:
        """The number as a name; each image is a group of its own."""
        return {"key": image_name(index), "group": image_name(index)}

    def column(self, name: str) -> NDArray[Any]:
        if name not in ("key", "group"):
            raise KeyError(name)
        return np.array([image_name(index) for index in range(len(self))], dtype=object)

    def origin(self, index: int) -> Origin:
        return Origin(image_name(index), 0, 0)


def image_name(index: int) -> str:
    """How tables and errors call an image that has no file."""
    return f"image {index}"


def are_in_memory(data: Any) -> bool:
    """Whether data is an array, an image of Pillow or a tensor, or a list with one of them."""
    return any(map(_is_one, data)) if isinstance(data, (list, tuple)) else _is_one(data)


def image_arrays(data: Any) -> ImageArrays:
    """The images of an array, an image of Pillow, or a list of these; an error lists all that are something else."""
    given = list(data) if isinstance(data, (list, tuple)) else [data]
    problems = [Problem(image_name(index), None, *wrong) for index, one in enumerate(given) if (wrong := _wrong(one))]
    if problems:
        raise DataError(problems)
    return ImageArrays([_pixels(one) for one in given])


def _is_one(one: Any) -> bool:
    return isinstance(one, np.ndarray) or _is_pillow(one) or _is_tensor(one)


def _is_pillow(one: Any) -> bool:
    module = sys.modules.get("PIL.Image")  # who has not imported it has no image of it
    return module is not None and isinstance(one, module.Image)


def _is_tensor(one: Any) -> bool:
    module = sys.modules.get("torch")
    return module is not None and isinstance(one, module.Tensor)


def _wrong(one: Any) -> tuple[str, str] | None:
    """What is wrong with an image, and what to do about it."""
    if _is_tensor(one):
        found = f"found a torch tensor {_shape(one.shape)} of {str(one.dtype).removeprefix('torch.')}"
        order = ".permute(1, 2, 0)" if one.ndim == 3 and one.shape[0] == 3 and one.shape[2] != 3 else ""
        scale = ", with values from 0 to 255" if one.dtype.is_floating_point else ""
        return f"{EXPECTED}, {found}", f"Pass tensor{order}.to(torch.uint8).cpu().numpy(){scale}"
    if _is_pillow(one):
        known = one.mode in CONVERTED_MODES + DEEP_MODES
        what = f"an image of Pillow of mode {one.mode!r} has no rule for RGB"
        return None if known else (what, 'Scale its values to 0…255 and pass image.convert("RGB")')
    if not isinstance(one, np.ndarray):
        return f"{EXPECTED}, or an image of Pillow, found {type(one).__name__}", "Pass images or paths, not both"
    if one.ndim == 3 and one.shape[2] == 3 and one.dtype == np.uint8 and one.size:
        return None
    return f"{EXPECTED}, found {_shape(one.shape)} of {one.dtype}", _remedy(one)


def _remedy(array: NDArray[Any]) -> str:
    if array.ndim == 4:
        return "Pass a list of images: list(array)"
    if array.ndim == 2:
        return "Repeat grey values for three channels: np.stack([array] * 3, axis=2)"
    if array.ndim == 3 and array.shape[2] == 4:
        return "Leave out the alpha channel: array[:, :, :3]"
    if array.ndim == 3 and array.shape[0] == 3 and array.shape[2] != 3:
        return "Put the channels last: array.transpose(1, 2, 0)"
    return "Scale values to 0…255 and convert them: array.astype(np.uint8)" if array.size else "Leave out empty images"


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "a single value"


def _pixels(one: Any) -> Pixels:
    if isinstance(one, np.ndarray):
        return one
    # Through our decoder: the one rule for 16 bits is there.
    deep = one.mode in DEEP_MODES
    pixels = decode_image(encode_image(np.array(one, np.uint16), "png")) if deep else np.array(one.convert("RGB"))
    return upright(pixels, one.getexif().get(ORIENTATION, 1))
