"""Small synthetic datasets of each kind, seeded: what a stranger can try Penstock on within a minute."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import encode_image
from penstock.codecs.opencv import opencv
from penstock.errors import require

CROWN_TRIES = 140
SHAPES = ("circle", "square", "triangle")


def ground(rng: np.random.Generator, width: int, height: int) -> NDArray[np.uint8]:
    """A soft, earthy texture."""
    cv2 = opencv()
    coarse = rng.normal(0, 1, (12, 12, 3)).astype(np.float32)
    soft = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC) * 14
    fine = rng.normal(0, 5, (height, width, 1)).astype(np.float32)
    earth: NDArray[np.float32] = np.array([112, 124, 92], np.float32) + soft + fine
    return np.clip(earth, 0, 255).astype(np.uint8)


def write_shapes(folder: Path, count: int = 300, first: int = 0) -> Path:
    """Class folders of pictures with one shape each; others with another `first` number."""
    for number in range(first, first + count):
        rng = np.random.default_rng(number)
        name = SHAPES[number % len(SHAPES)]
        target = folder / name / f"{name}_{number:03d}.jpg"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(encode_image(_shape(rng, name), "jpeg"))
    return folder


def _shape(rng: np.random.Generator, name: str) -> NDArray[np.uint8]:
    cv2 = opencv()
    picture = ground(rng, 160, 120)
    x, y, radius = int(rng.integers(45, 115)), int(rng.integers(40, 80)), int(rng.integers(16, 32))
    colour = tuple(int(value) for value in rng.integers(140, 255, 3))
    if name == "circle":
        cv2.circle(picture, (x, y), radius, colour, -1, cv2.LINE_AA)
    elif name == "square":
        cv2.rectangle(picture, (x - radius, y - radius), (x + radius, y + radius), colour, -1)
    else:
        corners = np.array([[x, y - radius], [x - radius, y + radius], [x + radius, y + radius]])
        cv2.fillPoly(picture, [corners], colour, cv2.LINE_AA)
    return picture


def write_flights(folder: Path, count: int = 3, side: int = 900, first: int = 0) -> tuple[Path, Path]:
    """GeoTIFFs with round crowns, and the table of their boxes; others with another `first` number."""
    rasterio = require("rasterio", "geo", "The demonstration of rasters")
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(first, first + count):
        picture, boxes = _crowns(np.random.default_rng(100 + number), side)
        name = f"flight_{number}.tif"
        place = rasterio.Affine(0.1, 0, 500_000 + 90 * number, 0, -0.1, 4_500_000)
        layout = {"driver": "GTiff", "width": side, "height": side, "count": 3, "dtype": "uint8"}
        with rasterio.open(folder / name, "w", crs="EPSG:32611", transform=place, **layout) as raster:
            raster.write(picture.transpose(2, 0, 1))
        rows += [(name, *box, "Tree") for box in boxes]
    table = folder / "crowns.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("image_path", "xmin", "ymin", "xmax", "ymax", "label"), *rows])
    return folder, table


def _crowns(rng: np.random.Generator, side: int) -> tuple[NDArray[np.uint8], list[tuple[int, int, int, int]]]:
    cv2 = opencv()
    picture = ground(rng, side, side)
    boxes: list[tuple[int, int, int, int]] = []
    for _ in range(CROWN_TRIES):
        radius = int(rng.integers(15, 34))
        x, y = (int(value) for value in rng.integers(radius, side - radius, 2))
        if any(
            np.hypot(x - (left + right) / 2, y - (top + bottom) / 2) < 0.8 * (radius + (right - left) / 2)
            for left, top, right, bottom in boxes
        ):
            continue  # crowns touch, but one does not hide another
        shade = int(rng.integers(-20, 20))
        cv2.circle(picture, (x + 4, y + 5), radius, (52, 60, 44), -1, cv2.LINE_AA)
        cv2.circle(picture, (x, y), radius, (46 + shade, 104 + shade, 48 + shade), -1, cv2.LINE_AA)
        cv2.circle(picture, (x - radius // 3, y - radius // 3), radius // 2, (78, 140, 74), -1, cv2.LINE_AA)
        boxes.append((x - radius, y - radius, x + radius, y + radius))
    return picture, boxes
