"""Count the files and functions of Penstock that one sample crosses, by tracing real calls."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
import simplejpeg

import penstock as ps

OURS = str(Path(ps.__file__).parent)
INLINED = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>")


class Tracer:
    """Notes every call of a Python function of ours, in all threads."""

    def __init__(self) -> None:
        self.calls: list[CodeType] = []

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS) and code.co_name not in INLINED:
            self.calls.append(code)

    def run(self, work: Callable[[], object]) -> str:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        files = {code.co_filename for code in self.calls}
        return f"{len(files)} ({len(set(self.calls))} functions, {len(self.calls):,} calls)"


def write_photos(folder: Path, count: int = 12) -> Path:
    generator = np.random.default_rng(7)
    for number in range(count):
        place = folder / ("cat", "dog")[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(0, 255, (96, 128, 3), dtype=np.uint8)
        (place / f"{number}.jpg").write_bytes(simplejpeg.encode_jpeg(pixels, quality=90))
    return folder


def make_flow(pack: ps.Pack) -> ps.Flow:
    flow = ps.Flow(pack, seed=7, workers=0).shuffle()
    return flow.map(ps.augment.RandomResizedCrop(64)).map(ps.augment.HorizontalFlip()).batch(4).repeat()


def measure_walks() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = ps.Images(write_photos(folder / "photos"))
        ps.pack(images, folder / "warm.pack", progress=False)  # imports are not the walk
        packed = Tracer().run(lambda: ps.pack(images, folder / "photos.pack", progress=False))
        pack = ps.open(folder / "photos.pack")
        iter(make_flow(pack).to_torch()).__next__()
        first = Tracer().run(lambda: next(iter(make_flow(pack).to_torch())))
        batches = iter(make_flow(pack))
        for _ in range(8):
            next(batches)
        steady = Tracer().run(lambda: next(batches))
    return {
        "files that 12 JPEGs cross: pack": packed,
        "files of a first batch to torch": first,
        "files of a steady batch": steady,
    }
