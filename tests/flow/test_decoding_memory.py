"""What decoders hold counts in the budget: measured as the peak of a program of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

import penstock as ps
from jpeg_making import jpeg

BUDGET_MB = 200
MOST_MB = 1.3 * BUDGET_MB + 100
SIDES = (200, 3000, 6000, 800, 6000, 4500, 200, 6000, 6000)
PROGRAM = """
import json, resource, sys
import penstock as ps
folder, executor, place = sys.argv[1:]
if __name__ == "__main__":
    source = ps.Pack(folder) if folder.endswith(".pack") else ps.Images(folder)
    flow = ps.Flow(source, executor=executor, workers=2, memory="200 MB")
    flow = flow.cache() if place == "cache" else flow
    flow = flow.map(ps.augment.Resize(64)).batch(2)
    shapes = [list(batch["image"].shape) for _ in range(2) for batch in flow]
    flow.close()
    # ru_maxrss of the program itself is at least that of whoever started it; VmHWM starts with it.
    own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(json.dumps([shapes, [own / 1024, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024]]))
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for number, side in enumerate(SIDES):
        row = np.random.default_rng(number).integers(0, 255, (1, side, 3), dtype=np.uint8)
        cv2.imwrite(str(folder / f"{number}.png"), np.repeat(row, side, axis=0), [cv2.IMWRITE_PNG_COMPRESSION, 1])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("executor", "place"), [("thread", "none"), ("process", "none"), ("subprocess", "none"), ("thread", "cache")]
)
def test_the_peak_of_each_process_keeps_to_the_budget(pictures: Path, executor: str, place: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, pictures, executor, place], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    shapes, peaks = json.loads(done.stdout)
    assert sum(shape[0] for shape in shapes) == 2 * len(SIDES)
    assert max(peaks) <= MOST_MB, f"{executor}, {place}: {peaks} MB"


@pytest.fixture(scope="module")
def progressive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Progressive JPEGs of 6000², whose decoder holds 216 MB of coefficients each."""
    folder = tmp_path_factory.mktemp("progressive")
    row = np.random.default_rng(0).integers(0, 255, (1, 750, 3), dtype=np.uint8)
    pixels = np.repeat(np.repeat(row, 6000, axis=0), 8, axis=1)
    data = jpeg(pixels, subsampling="444", quality=80, progressive=True)
    (folder / "files").mkdir()
    for number in range(4):
        (folder / "files" / f"{number}.jpg").write_bytes(data)
    ps.pack(ps.Images(folder / "files"), folder / "jpegs.pack")
    return folder


@pytest.mark.parametrize("kind", ["files", "jpegs.pack"])
def test_coefficients_of_progressive_jpegs_count_in_the_budget(progressive: Path, kind: str) -> None:
    command = [sys.executable, "-c", PROGRAM, progressive / kind, "thread", "none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    shapes, (own, _) = json.loads(done.stdout)
    assert sum(shape[0] for shape in shapes) == 8
    assert own <= MOST_MB, f"{kind}: {own} MB"


def test_a_progressive_jpeg_in_a_pack_that_can_never_fit_is_refused(progressive: Path) -> None:
    flow = ps.Flow(ps.Pack(progressive / "jpegs.pack"), memory="20 MB", workers=0).map(ps.augment.Resize(64)).batch(2)
    with pytest.raises(ps.HopError, match=r"decoding 6,000×6,000 px \(JPEG\) takes about .* memory budget is 20 MB"):
        next(iter(flow))


def webp_of_one_colour(width: int, height: int) -> bytes:
    """A lossless WebP whose five codes have one symbol each, so that its pixels take no bits."""
    bits = [(width - 1) >> place & 1 for place in range(14)] + [(height - 1) >> place & 1 for place in range(14)]
    bits += [0] * 4 + [0, 0, 0] + [1, 0, 0, 0] * 5
    body = b"\x2f" + bytes(sum(bit << place for place, bit in enumerate(bits[at : at + 8])) for at in range(0, 51, 8))
    body = body.ljust(32, b"\0")
    chunk = b"VP8L" + len(body).to_bytes(4, "little") + body
    return b"RIFF" + (4 + len(chunk)).to_bytes(4, "little") + b"WEBP" + chunk


def test_an_image_that_can_never_fit_is_refused_with_its_size_and_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "0.webp").write_bytes(webp_of_one_colour(30, 20))
    assert ps.Flow(ps.Images(tmp_path / "small"))[0]["image"].shape == (20, 30, 3)
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "0.webp").write_bytes(webp_of_one_colour(16383, 16383))
    for executor in ("thread", "process"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, tmp_path / "large", executor, "none"],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert "decoding 16,383×16,383 px (WEBP) takes about" in done.stderr
        assert "memory budget is 200 MB. Give the flow more memory (memory=…)" in done.stderr
