"""Packing and reading packs, against `cp`, bare loops over the same C libraries, and a numpy memmap.

python -m benchmarks.packing                     everything
python -m benchmarks.packing kept resized        only these
python -m benchmarks.packing --json out.json
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import penstock as ps
from benchmarks import big_raster, videos
from benchmarks.memory import peak_of
from benchmarks.pictures import write_jpegs
from benchmarks.rounds import Result, alternate, seconds
from benchmarks.tables import OURS, Bar, Row, Table, Value, compare, within
from penstock.codecs.headers import read_header
from penstock.codecs.images import DEFAULT_QUALITY

IMAGES = 4000
ROUNDS = 5


def jpegs(home: Path) -> Path:
    folder = home / "jpegs"
    write_jpegs(folder, IMAGES)
    return folder


def bench_kept(home: Path, rounds: int) -> list[Row]:
    """Bytes kept: at most twice the time of copying the same files.

    A disk that throttles new files slows `cp` down five to ten times and says little about packing, so the bar is
    judged in memory where there is a file system for that; the disk is shown beside it.
    """
    results = [_kept(jpegs(home), home, "disk", rounds)]
    memory = Path("/dev/shm")
    if memory.is_dir() and shutil.disk_usage(memory).free > 3 << 30:
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            shutil.copytree(jpegs(home), Path(folder) / "jpegs")
            results.append(_kept(Path(folder) / "jpegs", Path(folder), "memory", rounds))
    return results


def _kept(folder: Path, home: Path, where: str, rounds: int) -> Row:
    copy, target = home / "copy", home / "kept.pack"

    def before() -> None:
        for path in (copy, target):
            shutil.rmtree(path, ignore_errors=True)
        os.sync()
        for path in folder.rglob("*.jpg"):
            path.read_bytes()

    ours, theirs = alternate(
        lambda: ps.pack(ps.Images(folder), target),
        lambda: subprocess.run(["cp", "-r", str(folder), str(copy)], check=True),
        rounds,
        before,
    )
    shutil.rmtree(copy, ignore_errors=True)
    return _beside(f"pack {IMAGES:,} JPEGs, bytes kept, {where}", "s", ours, "cp -r", theirs, 0.5)


def _beside(title: str, unit: str, ours: float, limit: str, theirs: float, least: float) -> Row:
    """Ours beside a loop without any pipeline around it; times where the unit is one, else rates."""
    values = [Value(OURS, ours, "penstock"), Value(limit, theirs, "limit")]
    return compare(title, unit, values, [Bar(OURS, limit, least)], smaller_is_better=unit in ("s", "ns"))


def bench_resized(home: Path, rounds: int) -> list[Row]:
    """Resized to 256: the same decode, resize and encode calls in a bare loop over two threads."""
    folder, target = jpegs(home), home / "resized.pack"
    paths = sorted(folder.rglob("*.jpg"))

    def bare() -> None:
        halves = [paths[number::2] for number in range(2)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(_bare_resize, halves))

    def ours() -> None:
        shutil.rmtree(target, ignore_errors=True)
        ps.pack(ps.Images(folder), target, longest_side=256, workers=2)

    packed, loop = alternate(ours, bare, rounds)
    return [_beside("pack, longest side 256", "images/s", IMAGES / packed, "bare loop", IMAGES / loop, 0.85)]


def _bare_resize(paths: list[Path]) -> int:
    """What cannot be left out: read, decode, resize, encode."""
    import cv2
    import simplejpeg

    written = 0
    for path in paths:
        data = path.read_bytes()
        header = read_header(data)
        factor = 256 / max(header.width, header.height)
        width, height = round(header.width * factor), round(header.height * factor)
        pixels = simplejpeg.decode_jpeg(data, "RGB")
        small = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
        written += len(simplejpeg.encode_jpeg(small, quality=DEFAULT_QUALITY, colorsubsampling="420"))
    return written


class Numbers:
    """A million samples of one number each: only the index matters."""

    schema = ps.Schema((ps.Field("value", "number", "int32"),))

    def __len__(self) -> int:
        return 1_000_000

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, index)

    def decode(self, raw: ps.Raw) -> dict[str, object]:
        return {"value": raw.data}


OPEN_CODE = """
import time
import pyarrow, numpy, penstock as ps, penstock.packing.reader
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))
before = resident(); start = time.perf_counter()
pack = ps.open({path!r})
print((time.perf_counter() - start) * 1000, (resident() - before) / 1024, len(pack))
"""


def bench_open(home: Path, rounds: int) -> list[Row]:
    """Opening a million rows: time and memory in a fresh process."""
    import sys

    path = home / "million.pack"
    if not path.exists():
        ps.pack(Numbers(), path)
    code = OPEN_CODE.format(path=str(path))
    found = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split() for _ in range(5)
    ]
    milliseconds = sorted(float(line[0]) for line in found)[2]
    megabytes = sorted(float(line[1]) for line in found)[2]
    return [
        within("open a pack of 1,000,000 rows", milliseconds, "ms", 100),
        within("open a pack of 1,000,000 rows: resident memory more", megabytes, "MB", 20),
    ]


def bench_read(home: Path, rounds: int) -> list[Row]:
    """read(i) in random order against slicing a numpy memmap at the same offsets."""
    path = home / "read.pack"
    if not path.exists():
        ps.pack(ps.Images(jpegs(home)), path)
    pack = ps.open(path)
    order = np.random.default_rng(0).permutation(len(pack)).tolist() * 50
    maps = [np.memmap(path / shard.file, np.uint8, "r") for shard in pack.manifest.shards]
    shard, offset = pack.columns["shard"].tolist(), pack.columns["offset"].tolist()
    end = (pack.columns["offset"] + pack.columns["length"]).tolist()

    def ours() -> None:
        read = pack.read
        for index in order:
            read(index)

    def memmap() -> None:
        for index in order:
            maps[shard[index]][offset[index] : end[index]]

    packed, bare = (taken / len(order) * 1e9 for taken in alternate(ours, memmap, rounds))
    return [_beside("read(i) in random order, warm", "ns", packed, "slice of a memmap", bare, 0.5)]


MEMORY_CODE = "import penstock as ps; ps.pack(ps.Images({folder!r}), {target!r}, overwrite=True)"


def bench_memory(home: Path, rounds: int) -> list[Result]:
    """Peak memory over 1 GB and 5 GB of the same files, linked many times."""
    peaks = []
    for copies in (3, 14):
        folder, target = home / f"linked-{copies}", home / "memory.pack"
        _link(jpegs(home), folder, copies)
        peaks.append(peak_of(MEMORY_CODE.format(folder=str(folder), target=str(target))))
        shutil.rmtree(target, ignore_errors=True)
    small, large = peaks
    figure = f"{small.anonymous_mb:.0f} MB and {large.anonymous_mb:.0f} MB (resident {large.resident_mb:.0f} MB)"
    # File names and labels of the five times larger source are in memory too: 100 bytes a file.
    flat = large.anonymous_mb <= small.anonymous_mb + 40
    return [Result("peak memory of packing 1 GB and 5 GB", figure, "flat", flat)]


def _link(source: Path, target: Path, copies: int) -> None:
    if target.exists():
        return
    for number in range(copies):
        for path in source.rglob("*.jpg"):
            link = target / path.parent.name / f"{number}_{path.name}"
            link.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, link)


RASTER_CODE = "import penstock as ps; ps.pack(ps.Rasters({path!r}), {target!r}, overwrite=True, codec='jpeg')"


def bench_raster(home: Path, rounds: int) -> list[Row]:
    """Peak memory of tiling a 20,000 × 20,000 px striped TIFF."""
    path, target = home / "striped.tif", home / "raster.pack"
    big_raster.write_striped(path, 20_000)
    peak = peak_of(RASTER_CODE.format(path=str(path), target=str(target)))
    shutil.rmtree(target, ignore_errors=True)
    return [within("peak memory of a 20,000² px striped TIFF, resident", peak.resident_mb, "MB", 500)]


def bench_video(home: Path, rounds: int) -> list[Row]:
    """30 minutes of 640×480 video to 256×256 JPEG against the bare calls on all cores."""
    folder, target = home / "videos", home / "video.pack"
    frames = videos.write(folder, minutes=30)

    def ours() -> None:
        shutil.rmtree(target, ignore_errors=True)
        ps.pack(ps.Videos(folder, size="256x256"), target)

    packed, loop = alternate(ours, lambda: videos.bare_loop(folder, (256, 256)), min(rounds, 3))
    title = f"pack 30 min of video, {frames:,} frames"
    return [_beside(title, "frames/s", frames / packed, "bare loop", frames / loop, 0.8)]


def bench_check(home: Path, rounds: int) -> list[Row]:
    """check of 200,000 boxes over 10,000 images."""
    table = home / "boxes.csv"
    folder = home / "linked-3"
    _link(jpegs(home), folder, 3)
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.jpg"))[:10_000]]
    rng = np.random.default_rng(0)
    rows = [f"{names[number % 10_000]},{x},{y},{x + 20},{y + 20},Tree" for number, (x, y) in _corners(rng, 200_000)]
    table.write_text("\n".join(["image_path,xmin,ymin,xmax,ymax,label", *rows]) + "\n")
    took = seconds(lambda: ps.check(ps.Boxes(table, images=folder)))
    return [within("check 200,000 boxes over 10,000 images", took, "s", 10)]


def _corners(rng: np.random.Generator, count: int) -> list[tuple[int, tuple[int, int]]]:
    return [(number, (int(x), int(y))) for number, (x, y) in enumerate(rng.integers(0, 300, (count, 2)))]


BENCHES: dict[str, Callable[[Path, int], Sequence[Row | Result]]] = {
    "kept": bench_kept,
    "resized": bench_resized,
    "open": bench_open,
    "read": bench_read,
    "memory": bench_memory,
    "raster": bench_raster,
    "video": bench_video,
    "check": bench_check,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], help="which to run; all by default")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "penstock-benchmarks")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    table = Table("packing", arguments.json)
    for name in arguments.names or BENCHES:
        for row in BENCHES[name](arguments.folder, arguments.rounds):
            table.add(row)


if __name__ == "__main__":
    main()
