"""Small DeepEthogram projects for tests, with the files that it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from penstock.codecs.images import encode_image
from video_making import numbered_frame, write_video

BEHAVIOURS = ("background", "groom", "rear")
FRAMES = 8


def write_project(folder: Path, videos: Sequence[str] = ("m1_a", "m1_b", "m2_a"), **settings: Any) -> Path:
    """A project whose videos have labels; `settings` go into its section `project`."""
    own = {"class_names": list(BEHAVIOURS), "data_path": "DATA", "path": "/home/else/where", "name": "mice"}
    config = {"augs": {"resize": [32, 32]}, "project": {**own, **settings}, "split": {"file": None, "reload": True}}
    write_yaml(folder / "project_config.yaml", config)
    for number, name in enumerate(videos):
        add_video(folder, name, shift=number)
    return folder


def write_yaml(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def add_video(folder: Path, name: str, *, shift: int = 0, labels: bool = True, count: int = FRAMES) -> Path:
    """A video in its folder, with its record and, unless told otherwise, its labels."""
    own = folder / "DATA" / name
    own.mkdir(parents=True)
    write_video(own / f"{name}.avi", count, codec="mpeg4")
    record = {"key": name, "rgb": {"all": [f"{name}.avi"], "default": f"{name}.avi"}}
    write_yaml(own / "record.yaml", record)
    write_yaml(own / "stats.yaml", {"normalization": {"N": count}})
    if labels:
        write_labels(own / f"{name}_labels.csv", label_values(shift, count))
    return own


def label_values(shift: int = 0, count: int = FRAMES) -> np.ndarray:
    """Groom, rear, neither and not labelled, one after another, beginning with `shift`."""
    turns = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0], [-1, -1, -1]], np.int8)
    return turns[(np.arange(count) + shift) % len(turns)]


def write_labels(path: Path, values: np.ndarray, behaviours: Sequence[str] = BEHAVIOURS) -> Path:
    rows = [f"{number},{','.join(str(int(value)) for value in row)}" for number, row in enumerate(values)]
    path.write_text("\n".join(["," + ",".join(behaviours), *rows]) + "\n")
    return path


def write_frames(folder: Path, count: int = FRAMES, *, codec: str = "png") -> Path:
    """A folder of frames as DeepEthogram's conversion writes it."""
    folder.mkdir(parents=True)
    ending = {"png": "png", "jpeg": "jpg"}[codec]
    for number in range(count):
        (folder / f"{number:09d}.{ending}").write_bytes(encode_image(numbered_frame(number), codec))
    return folder


def write_hdf5_frames(path: Path, count: int = FRAMES) -> Path:
    """Encoded frames with red and blue exchanged, as DeepEthogram's conversion writes them."""
    import h5py

    with h5py.File(path, "w") as file:
        frames = file.create_dataset("frame", (count,), dtype=h5py.vlen_dtype(np.uint8))
        for number in range(count):
            exchanged = np.ascontiguousarray(numbered_frame(number)[:, :, ::-1])
            frames[number] = np.frombuffer(encode_image(exchanged, "png"), np.uint8)
    return path


def write_split(folder: Path, splits: Mapping[str, Any]) -> Path:
    return write_yaml(folder / "DATA" / "split.yaml", {"metadata": {"split": [0.8, 0.2, 0.0]}, **splits})


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder with its size and time: equal before and after where nothing was written."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.as_posix(): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}
