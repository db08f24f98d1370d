"""Small synthetic datasets of each kind, seeded: what a stranger can try Penstock on within a minute."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import encode_image
from penstock.codecs.opencv import opencv
from penstock.errors import require

SHAPES = ("circle", "square", "triangle")
BEHAVIOURS = ("background", "moving", "turning")


def ground(rng: np.random.Generator, width: int, height: int) -> NDArray[np.uint8]:
    """A soft, earthy texture."""
    cv2 = opencv()
    coarse = rng.normal(0, 1, (12, 12, 3)).astype(np.float32)
    soft = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC) * 14
    fine = rng.normal(0, 5, (height, width, 1)).astype(np.float32)
    earth: NDArray[np.float32] = np.array([112, 124, 92], np.float32) + soft + fine
    return np.clip(earth, 0, 255).astype(np.uint8)


def write_shapes(folder: Path, count: int = 300) -> Path:
    """Class folders of pictures with one shape each."""
    for number in range(count):
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


def write_flights(folder: Path, count: int = 3, side: int = 900) -> tuple[Path, Path]:
    """GeoTIFFs with round crowns, and the table of their boxes."""
    rasterio = require("rasterio", "geo", "The demonstration of rasters")
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(count):
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
    boxes = []
    for _ in range(60):
        radius = int(rng.integers(12, 34))
        x, y = (int(value) for value in rng.integers(radius, side - radius, 2))
        shade = int(rng.integers(-20, 20))
        cv2.circle(picture, (x + 4, y + 5), radius, (52, 60, 44), -1, cv2.LINE_AA)
        cv2.circle(picture, (x, y), radius, (46 + shade, 104 + shade, 48 + shade), -1, cv2.LINE_AA)
        cv2.circle(picture, (x - radius // 3, y - radius // 3), radius // 2, (78, 140, 74), -1, cv2.LINE_AA)
        boxes.append((x - radius, y - radius, x + radius, y + radius))
    return picture, boxes


def write_mice(folder: Path, count: int = 3, frames: int = 150) -> tuple[Path, Path]:
    """Videos of a round animal that rests, moves and turns, and a label table for each."""
    videos, labels = folder / "videos", folder / "labels"
    videos.mkdir(parents=True, exist_ok=True)
    labels.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        pictures, behaviours = _mouse(np.random.default_rng(200 + number), frames)
        _write_video(videos / f"mouse_{number}.mp4", pictures)
        with (labels / f"mouse_{number}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["", *BEHAVIOURS])
            writer.writerows([[frame, *row] for frame, row in enumerate(behaviours.tolist())])
    return videos, labels


def _mouse(rng: np.random.Generator, frames: int) -> tuple[list[NDArray[np.uint8]], NDArray[np.int8]]:
    cv2 = opencv()
    floor = ground(rng, 320, 240) // 2 + 70
    behaviours = np.zeros((frames, len(BEHAVIOURS)), np.int8)
    x, y, heading, pictures = 160.0, 120.0, 0.0, []
    for frame in range(frames):
        moving, turning = (frame // 30) % 3 == 1, (frame // 20) % 4 == 2
        heading += 0.25 if turning else 0.0
        x += 3 * np.cos(heading) if moving else 0.0
        y += 3 * np.sin(heading) if moving else 0.0
        x, y = float(np.clip(x, 30, 290)), float(np.clip(y, 30, 210))
        picture = floor.copy()
        nose = (int(x + 18 * np.cos(heading)), int(y + 18 * np.sin(heading)))
        cv2.circle(picture, (int(x), int(y)), 16, (60, 52, 48), -1, cv2.LINE_AA)
        cv2.circle(picture, nose, 7, (84, 72, 66), -1, cv2.LINE_AA)
        pictures.append(picture)
        behaviours[frame] = (not (moving or turning), moving, turning)
    return pictures, behaviours


def _write_video(path: Path, pictures: list[NDArray[np.uint8]]) -> None:
    av = require("av", "video", "The demonstration of videos")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for picture in pictures:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
