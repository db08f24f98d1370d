"""Files of a task are read in one call where the kernel is built; nobody can tell by the pack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from jpeg_making import jpeg, soft_picture
from made_sources import folder_bytes
from penstock.codecs import kernel
from penstock.errors import PenstockError
from penstock.storage.writing.statistics import SAMPLE_COUNT

IMAGES = SAMPLE_COUNT + 20


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More images than the statistics look at, large enough to be measured at half their size."""
    folder = tmp_path_factory.mktemp("photographs")
    for number in range(IMAGES):
        path = folder / f"class {number % 3}" / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(jpeg(soft_picture(256 + number % 5, 256, number, noise=2.0), quality=40))
    return folder


def test_the_pack_is_the_same_without_the_kernel_and_in_processes(
    photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = ps.pack(ps.Images(photographs), tmp_path / "ahead.pack")
    assert pack.manifest.statistics["images"] == SAMPLE_COUNT
    ps.pack(ps.Images(photographs), tmp_path / "processes.pack", executor="process", workers=2)
    assert folder_bytes(tmp_path / "processes.pack") == folder_bytes(tmp_path / "ahead.pack")
    monkeypatch.setattr(kernel, "native_extension", lambda: None)
    plain = ps.pack(ps.Images(photographs), tmp_path / "plain.pack")
    ahead, found = folder_bytes(tmp_path / "ahead.pack"), folder_bytes(tmp_path / "plain.pack")
    # The statistics are in pack.json: a decoder of another version may round another way, but not by more than that.
    del ahead["pack.json"], found["pack.json"]
    assert found == ahead
    assert np.allclose(pack.manifest.statistics["mean"], plain.manifest.statistics["mean"], atol=0.05)
    assert np.allclose(pack.manifest.statistics["std"], plain.manifest.statistics["std"], atol=0.05)


def test_a_missing_and_a_broken_file_are_named_and_left_out(photographs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photographs" / "one class"
    folder.mkdir(parents=True)
    for path in sorted(photographs.rglob("*.jpg"))[:30]:
        (folder / path.name).write_bytes(path.read_bytes())
    source = ps.Images(tmp_path / "photographs")
    files = sorted(folder.iterdir())
    files[3].unlink()
    files[7].write_bytes(b"no image at all")
    pack = ps.pack(source, tmp_path / "some.pack", on_bad_sample="skip")
    assert len(pack) == 28
    reasons = {entry["sample"].split("/")[-1].rstrip(")"): entry["reason"] for entry in pack.manifest.skipped}
    assert "No such file" in reasons[files[3].name]
    assert "no JPEG" in reasons[files[7].name]
    with pytest.raises(PenstockError, match="one class"):
        ps.pack(source, tmp_path / "none.pack")
