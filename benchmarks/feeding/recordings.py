"""Videos as a camera records them: a still floor, a moving animal, and the noise of the sensor in every frame."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np

from benchmarks.pictures import picture

FILES, FRAMES, RATE = 20, 900, 30
WIDTH, HEIGHT = 640, 480
KEY_EVERY = 250
FLOOR_BLUR, NOISE, NOISES = 2.0, 7.0, 16


def write(folder: Path) -> int:
    """Twenty H.264 files of 30 seconds, about 5 KB a frame; returns the number of frames of all."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda number: _write_one(folder / f"mouse_{number:02d}.mp4", number), range(FILES)))
    return FILES * FRAMES


def _write_one(path: Path, seed: int) -> None:
    import av

    if path.exists():
        return
    rng = np.random.default_rng(seed)
    floor = cv2.GaussianBlur(picture(seed, WIDTH, HEIGHT), (0, 0), FLOOR_BLUR).astype(np.int16)
    noises = rng.normal(0, NOISE, (NOISES, HEIGHT, WIDTH, 1)).astype(np.int16)
    unfinished = path.with_suffix(".unfinished")
    options = {
        "g": str(KEY_EVERY),
        "keyint_min": str(KEY_EVERY),
        "sc_threshold": "0",
        "preset": "veryfast",
        "crf": "23",
    }
    with av.open(str(unfinished), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=RATE, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        x, y = WIDTH / 2, HEIGHT / 2
        for number in range(FRAMES):
            x, y = np.clip([x + rng.normal(0, 5), y + rng.normal(0, 5)], 40, [WIDTH - 40, HEIGHT - 40])
            frame = np.clip(floor + noises[number % NOISES], 0, 255).astype(np.uint8)
            cv2.ellipse(frame, (int(x), int(y)), (34, 18), 0, 0, 360, (60, 52, 48), -1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    unfinished.rename(path)
