"""Finding and feeding boxes beside DeepForest, and the memory that large rasters take.

python -m benchmarks.feed --setup deepforest             install DeepForest, in an environment of its own
python -m benchmarks.detection --tile TILE.png           a photo from above, such as DeepForest's own YELL tile
python -m benchmarks.detection --tile TILE.png --whole   all of it, not only a part of 2 × 2 windows
python -m benchmarks.detection predict feed memory train only these lines

Both sides have the same network (RetinaNet on ResNet-50) with the same random weights, whose answers are shifted so
that some hundred boxes of each window are to be dealt with, and see windows of 400 px enlarged to 800 px.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

import penstock as ps
from benchmarks.big_raster import write_striped
from benchmarks.feeding.environments import DEFAULT_HOME, Environments
from benchmarks.memory import peak_of
from benchmarks.pictures import picture
from benchmarks.rounds import alternate
from benchmarks.tables import OURS, Bar, Row, Table, Value, compare, within
from penstock.prediction.boxes.finding_boxes import AUTO_READERS
from penstock.prediction.boxes.scenes import open_scene, window_plan, windows_ahead

DEEPFOREST, PEER = "DeepForest", Path(__file__).with_name("detection_peer.py")
LINES = ("predict", "feed", "memory", "train")
WINDOW_PX, OVERLAP = 400, 0.05
FOUR_WINDOWS_PX = 780
CANDIDATES = 500  # of a window, before suppression
SAME_ARITHMETIC, SHORT_ARITHMETIC, OWN_SCALE = 1.15, 2.0, 6.0
OF_WINDOW_FEED, OF_SINGLE_FEED = 10.0, 1.5
MOST_MB = 1500
OF_TRAINING_FEED = 3.0
TILES, TILE_BOXES, BATCH, WORKERS = 96, 30, 4, 2
Ask = Callable[..., float]


@contextmanager
def deepforest(python: Path) -> Iterator[Ask]:
    """A process that does what it is asked to; asking gives the seconds that it says it took."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with (
        tempfile.TemporaryDirectory() as home,
        subprocess.Popen([str(python), str(PEER)], text=True, cwd=home, **pipes) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def ask(what: str, **settings: Any) -> float:
            asked.write(json.dumps({"do": what, **settings}) + "\n")
            asked.flush()
            line = answers.readline()
            if not line:
                raise RuntimeError("DeepForest's process ended; run benchmarks/detection_peer.py to see why")
            return float(json.loads(line)["seconds"])

        yield ask
        asked.close()


def same_task(**changes: Any) -> ps.Detection:
    """The task that DeepForest's network is made for."""
    settings: dict[str, Any] = {"levels": 5, "anchor_scale": 4.0, "score_threshold": 0.1, "nms_threshold": 0.05}
    return ps.Detection(["Tree"], backbone="resnet50", norm="frozen", input_scale=2.0, **{**settings, **changes})


def same_model(image: np.ndarray) -> ps.Model:
    """Random weights, their class scores shifted so that some are answers."""
    torch.manual_seed(0)
    task = same_task()
    network: Any = task.network().eval()
    window = torch.from_numpy(image[None, :WINDOW_PX, :WINDOW_PX].copy())
    with torch.inference_mode():
        logits = network(task.inputs(window)).logits.flatten()
        at_threshold = np.log(task.score_threshold / (1 - task.score_threshold))
        network.head.classification_head.cls_logits.bias += at_threshold - logits.topk(CANDIDATES).values[-1]
    return ps.Model(task, network, device="cpu")


def computes_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 by itself, and not by way of float32."""
    checks = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(check is not None and check() for check in checks)


def finding(ask: Ask, tile: Path, part: np.ndarray, scratch: Path, rounds: int) -> Iterator[Row]:
    """`predict` beside `predict_tile`: in the same arithmetic, as the device likes it, and at our own scale."""
    model = same_model(part)
    torch.save(model.network.state_dict(), scratch / "weights.pt")
    ask("load", weights=str(scratch / "weights.pt"))
    has_short = computes_bfloat16()
    small = model.changed(input_scale=1.0)
    lines = [("the same scale, float32", model, "32", SAME_ARITHMETIC)]
    lines += [("the same scale, bfloat16", model, "bf16", SHORT_ARITHMETIC)] if has_short else []
    lines += [("our own scale, fastest precision", small, "bf16" if has_short else "32", OWN_SCALE)]
    note = "" if has_short else " (this processor has no bfloat16)"
    for what, own, precision, least in lines:
        yield _ratio(
            f"finding boxes at {what}{note}", least, rounds, _predicting(own, tile, precision), _asking(ask, tile)
        )


def _predicting(model: ps.Model, tile: Path, precision: str) -> Callable[[], object]:
    return lambda: ps.predict(model, tile, tile_px=WINDOW_PX, overlap=OVERLAP, precision=precision)


def _asking(ask: Ask, tile: Path) -> Callable[[], object]:
    return lambda: ask("predict", image=str(tile))


def _ratio(
    what: str,
    least: float,
    rounds: int,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    limits: Sequence[Value] = (),
) -> Row:
    theirs(), ours()  # libraries get ready
    our_seconds, their_seconds = alternate(ours, theirs, rounds)
    values = [Value(OURS, our_seconds, "penstock"), Value(DEEPFOREST, their_seconds), *limits]
    return compare(what, "s", values, [Bar(OURS, DEEPFOREST, least)], smaller_is_better=True)


def feeding(ask: Ask, scratch: Path, rounds: int) -> Iterator[Row]:
    """Windows of a raster, read and ready for the network, without one: blocks as clouds want them, and plain ones."""
    cloud = write_tiled(scratch / "cloud.tif", 512, compress="deflate", predictor=2)
    plain = write_tiled(scratch / "plain.tif", 256)
    for raster, block_px, layout in ((cloud, 512, "deflated"), (plain, 256, "plain")):
        ours, bare = partial(_all_windows, raster), partial(_all_blocks, raster, block_px)
        bare()
        limit = Value("GDAL alone", alternate(ours, bare, rounds)[1], "limit", "each block once, no windows")
        for strategy, least in (("window", OF_WINDOW_FEED), ("single", OF_SINGLE_FEED)):
            what = f"windows of a raster beside its {strategy!r} dataset, {layout} blocks of {block_px} px"
            asked = partial(ask, "feed", strategy=strategy, image=str(raster))
            yield _ratio(what, least, rounds, ours, asked, [limit])


def _all_blocks(raster: Path, block_px: int) -> None:
    """Every block read once by GDAL, by as many threads as ours has, into memory that is used again."""
    import rasterio
    from rasterio.windows import Window

    def read(tops: Sequence[int]) -> None:
        with rasterio.open(raster) as file:
            memory = np.empty((file.count, block_px, file.width), np.uint8)
            for top in tops:
                height = min(block_px, file.height - top)
                file.read(window=Window(0, top, file.width, height), out=memory[:, :height])

    with rasterio.open(raster) as file:
        tops = np.array_split(np.arange(0, file.height, block_px), AUTO_READERS)
    with ThreadPoolExecutor(AUTO_READERS) as pool:
        list(pool.map(read, [some.tolist() for some in tops]))


def _all_windows(raster: Path) -> int:
    scene = open_scene(raster, None)
    plan = window_plan(scene.width, scene.height, tile_px=WINDOW_PX, overlap=OVERLAP, stride=64)
    with closing(windows_ahead(scene, plan, np.arange(len(plan.grid)), AUTO_READERS)) as shown:
        return sum(1 for _ in shown)


def write_tiled(path: Path, block_px: int, **options: Any) -> Path:
    """Three bands of 6,000 × 6,000 px in square blocks."""
    import rasterio

    ground = np.tile(picture(2, 1000, 1000), (6, 6, 1)).transpose(2, 0, 1)
    layout: dict[str, Any] = {"tiled": True, "blockxsize": block_px, "blockysize": block_px, "interleave": "pixel"}
    place = rasterio.Affine(0.1, 0, 500_000, 0, -0.1, 4_500_000)
    kind = {"driver": "GTiff", "width": 6000, "height": 6000, "count": 3, "dtype": "uint8"}
    with rasterio.open(path, "w", crs="EPSG:32611", transform=place, **kind, **layout, **options) as file:
        file.write(ground)
    return path


# The tiny network's scores are shifted so that it finds about as many boxes as a forest has trees: some hundred of each
# window of 160 m.
MEMORY_CODE = """
import numpy as np
import rasterio
import torch
import penstock as ps
torch.manual_seed(0)
task = ps.Detection(["Tree"], backbone="tiny", levels=3, anchor_scale=4.0, gsd=None, score_threshold=0.06)
network = task.network().eval()
with rasterio.open({raster!r}) as file:
    window = file.read(window=((0, 1600), (0, 1600))).transpose(1, 2, 0)
with torch.inference_mode():
    logits = network(task.inputs(torch.from_numpy(np.ascontiguousarray(window)[None]))).logits.flatten()
    at_threshold = np.log(task.score_threshold / (1 - task.score_threshold))
    network.head.classification_head.cls_logits.bias += at_threshold - logits.topk({candidates}).values[-1]
del logits, window
ps.predict(ps.Model(task, network, device="cpu"), {raster!r}, output={output!r}, tile_px=1600)
"""
MEMORY_CANDIDATES = 3000


def memory(scratch: Path, sides: tuple[int, ...]) -> Iterator[Row]:
    """Peak memory of a prediction with a tiny network."""
    for side in sides:
        raster = scratch / f"striped-{side}.tif"
        write_striped(raster, side)
        found = scratch / f"boxes-{side}.csv"
        peak = peak_of(MEMORY_CODE.format(raster=str(raster), output=str(found), candidates=MEMORY_CANDIDATES))
        raster.unlink()
        with found.open() as lines:
            boxes = sum(1 for _ in lines) - 1
        what = f"peak memory, a striped raster of {side:,} × {side:,} px with {boxes:,} boxes"
        yield within(what, peak.resident_mb, "MB", MOST_MB)


def training_feed(ask: Ask, scratch: Path, rounds: int) -> list[Row]:
    """An epoch of tiles with boxes from a pack, beside DeepForest's dataset of the same tiles as PNG files."""
    folder = scratch / "tiles"
    table = write_tiles(folder)
    pack = ps.pack(ps.Boxes(table, images=folder), scratch / "tiles.pack", progress=False)
    flow = ps.Flow(pack, seed=1, workers=WORKERS).shuffle().map(ps.augment.HorizontalFlip())
    batches = flow.batch(BATCH, shapes="ragged").to_torch()
    settings = {"table": str(table), "folder": str(folder), "batch_size": BATCH, "workers": WORKERS}
    ours = lambda: sum(len(batch["index"]) for batch in batches)  # noqa: E731
    theirs = lambda: ask("train_feed", **settings)  # noqa: E731
    what = f"feeding boxes from a pack of {TILES} tiles beside its dataset, {WORKERS} workers"
    return [_ratio(what, OF_TRAINING_FEED, rounds, ours, theirs)]


def write_tiles(folder: Path) -> Path:
    """PNG tiles of 400 px, as split_raster writes them, and the table of their boxes."""
    folder.mkdir(exist_ok=True)
    rows = ["image_path,xmin,ymin,xmax,ymax,label"]
    for number in range(TILES):
        rng = np.random.default_rng(number)
        cv2.imwrite(str(folder / f"tile_{number}.png"), picture(number, WINDOW_PX, WINDOW_PX))
        for x, y in rng.integers(0, WINDOW_PX - 60, (TILE_BOXES, 2)).tolist():
            rows.append(f"tile_{number}.png,{x},{y},{x + 30},{y + 40},Tree")
    table = folder / "boxes.csv"
    table.write_text("\n".join(rows) + "\n")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", nargs="*", default=LINES, help=f"any of {', '.join(LINES)}")
    parser.add_argument("--tile", type=Path, default=None, help="a photo from above; without, a made picture")
    parser.add_argument("--whole", action="store_true", help="predict on all of the tile")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", type=int, nargs="*", default=[20_000, 40_000], help="rasters to watch memory with")
    parser.add_argument("--scratch", type=Path, default=None, help="where rasters of up to 5 GB are written")
    parser.add_argument("--peers-home", type=Path, default=DEFAULT_HOME, help="where the environments are")
    parser.add_argument("--json", type=Path, default=None, help="also write the table here")
    options = parser.parse_args()
    table = Table("detection", options.json)
    with tempfile.TemporaryDirectory(dir=options.scratch) as home:
        for row in _measured(options, Path(home)):
            table.add(row)


def _measured(options: argparse.Namespace, scratch: Path) -> Iterator[Row]:
    if "memory" in options.lines:
        yield from memory(scratch, tuple(options.sides))
    missing = Environments(options.peers_home).missing("deepforest")
    if missing:
        yield compare("predict, feed and train", "s", [Value(DEEPFOREST, 0.0, absent=missing)])
        return
    with deepforest(Environments(options.peers_home).python("deepforest")) as ask:
        if "predict" in options.lines:
            tile, part = _part_of(options.tile, scratch, options.whole)
            yield from finding(ask, tile, part, scratch, options.rounds)
        if "feed" in options.lines:
            yield from feeding(ask, scratch, options.rounds)
        if "train" in options.lines:
            yield from training_feed(ask, scratch, options.rounds)


def _part_of(tile: Path | None, scratch: Path, whole: bool) -> tuple[Path, np.ndarray]:
    """The photo that both look at, as a file and as pixels."""
    pixels = picture(3, 2299, 2472) if tile is None else cv2.cvtColor(cv2.imread(str(tile)), cv2.COLOR_BGR2RGB)
    part = pixels if whole else pixels[:FOUR_WINDOWS_PX, :FOUR_WINDOWS_PX]
    path = scratch / "tile.png"
    cv2.imwrite(str(path), cv2.cvtColor(part, cv2.COLOR_RGB2BGR))
    return path, np.ascontiguousarray(part)


if __name__ == "__main__":
    main()
