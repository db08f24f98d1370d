"""A synthetic world for behaviour: an animal seen from above that rests, walks, turns and rears, with exact labels.

    folder/videos/animal_0.mp4      H.264, 30 frames per second
    folder/labels/animal_0.csv      ,background,walk,turn,rear   one row for each frame, exactly one 1 in each

The label of a frame is what the animal did on its way from the frame before. Nothing but the seed, the number of the
video, the frames and the size decides what is seen, and frames are made one by one, so a video may be hours long.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.cli.demo_data import ground
from penstock.codecs.opencv import opencv
from penstock.errors import require

Pixels = NDArray[np.uint8]

ANIMAL_BEHAVIOURS = ("background", "walk", "turn", "rear")
DIRECTION_BEHAVIOURS = ("background", "rightward", "leftward")
_REST, _WALK, _TURN, _REAR = range(4)

# Lengths of the bouts in frames, and the steps of one frame. Lengths are in widths of the picture's shorter side.
_SHORTEST_BOUT, _LONGEST_BOUT = 12, 40
_STRIDE, _TURN_RADIANS, _BODY, _MARGIN = 0.022, 0.16, 0.15, 0.2
_LIFT_FRAMES = 4
_SUBPIXEL_BITS = 6
_NOISES = 8


class Pose(NamedTuple):
    """The animal in one frame: pixels, radians, how far it stands upright (0 to 1), and what it is doing."""

    x: float
    y: float
    heading: float
    lift: float
    behaviour: int


def write_animal_videos(
    folder: Path, count: int, frames: int, size: tuple[int, int] = (128, 96), seed: int = 0
) -> list[Path]:
    """Videos of the animal with a label table for each; gives the paths of the videos."""
    paths = []
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        poses = animal_poses(rng, frames, size)
        pictures = _animal_pictures(rng, poses, size)
        labels = np.array([pose.behaviour for pose in poses])
        paths.append(_write(folder, f"animal_{number}", pictures, labels, ANIMAL_BEHAVIOURS))
    return paths


def write_direction_videos(
    folder: Path, count: int, frames: int, size: tuple[int, int] = (128, 96), seed: int = 0
) -> list[Path]:
    """Videos of a round ball that rolls right or left, or rests: a single frame does not tell which."""
    paths = []
    for number in range(count):
        rng = np.random.default_rng((seed, number, 1))
        places, labels = _ball_places(rng, frames, size[0])
        pictures = _ball_pictures(rng, places, size)
        paths.append(_write(folder, f"ball_{number}", pictures, labels, DIRECTION_BEHAVIOURS))
    return paths


def animal_poses(rng: np.random.Generator, frames: int, size: tuple[int, int]) -> list[Pose]:
    """A life of so many frames: bouts of the four behaviours in turn, never twice the same in a row."""
    start = Pose(size[0] / 2, size[1] / 2, float(rng.uniform(0, 2 * np.pi)), 0.0, _REST)
    poses = [start] * int(rng.integers(_SHORTEST_BOUT, _LONGEST_BOUT + 1))
    while len(poses) < frames:
        poses += _bout(rng, poses[-1], size)
    return poses[:frames]


def _bout(rng: np.random.Generator, last: Pose, size: tuple[int, int]) -> list[Pose]:
    choices = [number for number in range(4) if number != last.behaviour]
    if _room_frames(last, size) < _SHORTEST_BOUT and _WALK in choices:
        choices.remove(_WALK)
    behaviour = int(rng.choice(choices))
    length = int(rng.integers(_SHORTEST_BOUT, _LONGEST_BOUT + 1))
    still = last._replace(behaviour=behaviour, lift=0.0)
    if behaviour == _WALK:
        return _walk(still, min(length, _room_frames(last, size)), min(size))
    if behaviour == _TURN:
        return _turn(still, length, size, side=1 if rng.random() < 0.5 else -1)
    return [still._replace(lift=_lift(frame, length)) if behaviour == _REAR else still for frame in range(length)]


def _walk(pose: Pose, length: int, unit_px: int) -> list[Pose]:
    step_x = _STRIDE * unit_px * np.cos(pose.heading)
    step_y = _STRIDE * unit_px * np.sin(pose.heading)
    return [pose._replace(x=pose.x + n * step_x, y=pose.y + n * step_y) for n in range(1, length + 1)]


def _turn(pose: Pose, length: int, size: tuple[int, int], side: int) -> list[Pose]:
    """A turn on the spot, which goes on until the animal has room ahead to walk, at most once around."""
    poses: list[Pose] = []
    longest = length + int(2 * np.pi / _TURN_RADIANS)
    while len(poses) < length or (len(poses) < longest and _room_frames(pose, size) < _SHORTEST_BOUT):
        pose = pose._replace(heading=pose.heading + side * _TURN_RADIANS)
        poses.append(pose)
    return poses


def _lift(frame: int, length: int) -> float:
    """Up within a few frames, and down again before the bout ends."""
    return min(1.0, (frame + 1) / _LIFT_FRAMES, (length - frame) / _LIFT_FRAMES)


def _room_frames(pose: Pose, size: tuple[int, int]) -> int:
    """How many steps ahead the animal can walk before it comes too near to a wall."""
    unit_px = min(size)
    room = float("inf")
    for place, side_px, direction in ((pose.x, size[0], np.cos(pose.heading)), (pose.y, size[1], np.sin(pose.heading))):
        ahead_px = side_px - _MARGIN * unit_px - place if direction > 0 else place - _MARGIN * unit_px
        if abs(direction) > 1e-6:
            room = min(room, ahead_px / (abs(direction) * _STRIDE * unit_px))
    return max(0, int(room))


def _animal_pictures(rng: np.random.Generator, poses: list[Pose], size: tuple[int, int]) -> Iterator[Pixels]:
    floor, noises = _stage(rng, size)
    fur = np.array([74, 62, 54]) + int(rng.integers(-18, 19))
    steps = 0
    for frame, pose in enumerate(poses):
        steps += pose.behaviour == _WALK
        picture = floor.copy()
        _draw_animal(picture, pose, fur, steps)
        yield picture + noises[frame % _NOISES]


def _stage(rng: np.random.Generator, size: tuple[int, int]) -> tuple[Pixels, Pixels]:
    """The lit floor of a video, and the noise of its camera; nothing is so bright that both together overflow."""
    floor = ground(rng, *size) // 2 + np.uint8(rng.integers(80, 110))
    noises = np.clip(rng.normal(4, 1.5, (_NOISES, size[1], size[0], 1)).round(), 0, 8).astype(np.uint8)
    return floor, noises


def _draw_animal(picture: Pixels, pose: Pose, fur: NDArray[np.int64], steps: int) -> None:
    """Tail, body, ears and head; who stands upright is shorter and lighter, with the head over the body."""
    unit = _BODY * min(picture.shape[:2])
    length, width = unit * (1 - 0.45 * pose.lift), unit * (0.58 + 0.12 * pose.lift)
    head = unit * (1.1 - 0.85 * pose.lift)
    sway = 0.35 * np.sin(steps * 0.9)
    for back in np.linspace(0.9, 1.8, 5):
        _draw_oval(picture, pose, (-back * length, sway * (back - 0.8) * unit), (unit * 0.1, unit * 0.1), fur + 30)
    _draw_oval(picture, pose, (0.0, 0.0), (length, width), fur)
    for side in (-1, 1):
        ear = (head - unit * 0.2, side * unit * 0.32)
        _draw_oval(picture, pose, ear, (unit * 0.18, unit * 0.18), fur + 45)
    grown = 1 + 0.35 * pose.lift
    _draw_oval(picture, pose, (head, 0.0), (unit * 0.42 * grown, unit * 0.32 * grown), fur + 16 + int(30 * pose.lift))


def _draw_oval(
    picture: Pixels,
    pose: Pose,
    place: tuple[float, float],
    radii: tuple[float, float],
    colour: NDArray[np.int64],
) -> None:
    """An oval ahead of and beside the animal's middle, placed to a fraction of a pixel."""
    angles = np.linspace(0, 2 * np.pi, 28, endpoint=False)
    ahead, beside = place[0] + radii[0] * np.cos(angles), place[1] + radii[1] * np.sin(angles)
    cosine, sine = np.cos(pose.heading), np.sin(pose.heading)
    corners = np.stack([pose.x + ahead * cosine - beside * sine, pose.y + ahead * sine + beside * cosine], axis=1)
    cv2 = opencv()
    fixed = (corners * (1 << _SUBPIXEL_BITS)).round().astype(np.int32)
    cv2.fillConvexPoly(picture, fixed, [int(value) for value in colour], cv2.LINE_AA, _SUBPIXEL_BITS)


def _ball_places(rng: np.random.Generator, frames: int, width: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Where the ball is and how it came there: it rolls, rests, changes its direction, and turns back at the walls."""
    margin, stride = 0.15 * width, 0.02 * width
    places, labels = np.empty(frames), np.empty(frames, np.int64)
    x, label, left = float(rng.uniform(margin, width - margin)), 0, 0
    for frame in range(frames):
        if left == 0:
            label = int(rng.choice([0, 1, 2], p=[0.2, 0.4, 0.4]))
            left = int(rng.integers(_SHORTEST_BOUT, _LONGEST_BOUT + 1))
        step = stride * (0, 1, -1)[label]
        if not margin <= x + step <= width - margin:
            label, step = 3 - label, -step
        x, left = x + step, left - 1
        places[frame], labels[frame] = x, label
    return places, labels


def _ball_pictures(rng: np.random.Generator, places: NDArray[np.float64], size: tuple[int, int]) -> Iterator[Pixels]:
    floor, noises = _stage(rng, size)
    colour = np.array([70, 60, 60]) + int(rng.integers(-20, 21))
    radius, y = 0.12 * min(size), float(rng.uniform(0.35, 0.65)) * size[1]
    for frame, x in enumerate(places):
        picture = floor.copy()
        _draw_oval(picture, Pose(x, y, 0.0, 0.0, 0), (0.0, 0.0), (radius, radius), colour)
        yield picture + noises[frame % _NOISES]


def _write(
    folder: Path, stem: str, pictures: Iterator[Pixels], labels: NDArray[np.int64], behaviours: tuple[str, ...]
) -> Path:
    videos, tables = folder / "videos", folder / "labels"
    videos.mkdir(parents=True, exist_ok=True)
    tables.mkdir(parents=True, exist_ok=True)
    _write_video(videos / f"{stem}.mp4", pictures)
    rows = np.eye(len(behaviours), dtype=int)[labels].tolist()
    with (tables / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["", *behaviours])
        writer.writerows([frame, *row] for frame, row in enumerate(rows))
    return videos / f"{stem}.mp4"


def _write_video(path: Path, pictures: Iterator[Pixels]) -> None:
    """One picture after the other into H.264, good enough that a frame does not show where things came from."""
    av = require("av", "video", "The demonstration of videos")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"crf": "14", "preset": "veryfast"})
        stream.pix_fmt = "yuv420p"
        stream.codec_context.thread_count = 1  # the bytes of x264 depend on the number of its threads
        for number, picture in enumerate(pictures):
            if number == 0:
                stream.height, stream.width = picture.shape[:2]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
