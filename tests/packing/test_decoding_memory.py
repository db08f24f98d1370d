"""What decoders hold while packing and exporting keeps to `memory`: measured as the peak of a program of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from penstock.codecs.decoding_room import decoding_bytes
from penstock.codecs.headers import Header, read_header
from penstock.errors import OptionError
from penstock.packing.options import PackOptions

MEMORY_MB, MORE_MB = 200, 100
SIDE = 6000
PROGRAM = """
import json, sys
import penstock as ps
folder, out, verb, options = sys.argv[1:]
if __name__ == "__main__":
    options = {"workers": 2, "memory": "200 MB"} | json.loads(options)
    if verb == "flow":
        flow = ps.Flow(ps.Images(folder), executor="thread", **options).map(ps.augment.Resize(64)).batch(2)
        made = sum(len(batch["image"]) for batch in flow)
    else:
        made = len(ps.open(getattr(ps, verb)(ps.Images(folder), out, **options).path))
    # Not ru_maxrss, which is at least that of the process that started this one.
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(json.dumps([made, peak / 1024]))
"""


def run(folder: Path, out: Path, verb: str, **options: object) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-c", PROGRAM, folder, out, verb, json.dumps(options)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight large images, of which two threads would decode two at once, as PNG and as progressive JPEG."""
    folder = tmp_path_factory.mktemp("pictures")
    row = np.random.default_rng(0).integers(0, 255, (1, SIDE, 3), dtype=np.uint8)
    whole = np.repeat(row, SIDE, axis=0)
    for kind, option in (("png", cv2.IMWRITE_PNG_COMPRESSION), ("jpg", cv2.IMWRITE_JPEG_PROGRESSIVE)):
        data = cv2.imencode(f".{kind}", whole, [option, 1])[1].tobytes()
        (folder / kind).mkdir()
        for number in range(8):
            (folder / kind / f"{number}.{kind}").write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("kind", "verb", "options"),
    [
        ("png", "pack", {}),
        ("png", "pack", {"longest_side": 500}),
        ("jpg", "pack", {"codec": "png", "longest_side": 500}),
        ("png", "export", {"to": "directory", "codec": "jpeg", "longest_side": 500}),
        ("jpg", "flow", {"workers": 4}),
    ],
)
def test_the_peak_keeps_to_the_memory_that_the_user_allows(
    pictures: Path, tmp_path: Path, kind: str, verb: str, options: dict[str, object]
) -> None:
    done = run(pictures / kind, tmp_path / "out", verb, **options)
    assert done.returncode == 0, done.stderr
    made, peak = json.loads(done.stdout)
    assert made == 8
    assert peak <= MEMORY_MB + MORE_MB, f"{peak} MB"


@pytest.mark.parametrize("verb", ["pack", "export"])
def test_an_image_that_can_never_fit_is_refused_with_its_size_and_a_remedy(
    pictures: Path, tmp_path: Path, verb: str
) -> None:
    options = {"to": "directory"} if verb == "export" else {}
    done = run(pictures / "png", tmp_path / "out", verb, memory="20 MB", longest_side=500, **options)
    assert "decoding 6,000×6,000 px (PNG) takes about 103 MB, and the memory budget is 20 MB." in done.stderr
    assert "Allow more memory (memory=…)" in done.stderr


def test_memory_must_be_a_size() -> None:
    with pytest.raises(OptionError, match="memory='much' must be"):
        PackOptions(memory="much")


def test_progressive_jpegs_are_told_by_their_header_and_count_their_coefficients() -> None:
    pixels = np.zeros((40, 60, 3), np.uint8)
    for is_progressive in (False, True):
        data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_PROGRESSIVE, int(is_progressive)])[1].tobytes()
        assert read_header(data) == Header("jpeg", 60, 40, is_progressive=is_progressive)
    assert decoding_bytes(Header("jpeg", 800, 800)) == 3 * 800**2
    assert decoding_bytes(Header("jpeg", 800, 800), at_least=(100, 90)) == 3 * 100**2
    assert decoding_bytes(Header("jpeg", 800, 800, is_progressive=True), at_least=(100, 90)) == 3 * 100**2 + 6 * 800**2
