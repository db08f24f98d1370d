"""What is damaged is said, by file and row; a full disk is an error that tells what to do."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from made_sources import Deadly, Numbers, Pictures, folder_bytes
from penstock.packing.verifying import DamagedPack


@pytest.fixture
def pack(tmp_path: Path) -> ps.Pack:
    return ps.pack(Pictures(300), tmp_path / "one.pack", shard_mb=1, size="64x64", codec="png")


def flip(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def test_a_whole_pack_is_verified(pack: ps.Pack) -> None:
    pack.verify()
    assert len(pack.manifest.shards) > 2


@pytest.mark.parametrize("sample", [0, 57, 299])
def test_one_flipped_bit_of_an_image_is_found_with_its_shard_and_row(pack: ps.Pack, sample: int) -> None:
    shard = pack.manifest.shards[int(pack.columns["shard"][sample])].file
    flip(pack.path / shard, int(pack.columns["offset"][sample]) + 100)
    with pytest.raises(DamagedPack) as caught:
        ps.open(pack.path).verify()
    assert [(damage.file, damage.row) for damage in caught.value.damages] == [(shard, int(pack.columns["row"][sample]))]
    assert f"pictures/{sample}.png" in str(caught.value)
    with pytest.raises(ps.PackError, match=f"sample {sample}\\) is damaged"):
        ps.open(pack.path, verify=True)[sample]


def test_a_flipped_bit_of_a_label_is_found_too(pack: ps.Pack) -> None:
    shard = pack.path / pack.manifest.shards[0].file
    content = shard.read_bytes()
    flip(shard, content.index(b"pictures/11.png") + 9)
    with pytest.raises(DamagedPack, match="shard-00000.arrow row 11"):
        ps.open(pack.path).verify()


def test_every_flipped_bit_anywhere_is_found(pack: ps.Pack) -> None:
    rng = np.random.default_rng(0)
    for name in [entry.file for entry in (*pack.manifest.shards, pack.manifest.index)]:
        size = (pack.path / name).stat().st_size
        # Anywhere, and more densely in the structure of the file at both of its ends.
        places = [*rng.integers(0, size, 25), *rng.integers(0, 3000, 25), *(size - 1 - rng.integers(0, 3000, 60))]
        for position in places:
            flip(pack.path / name, int(position))
            with pytest.raises(DamagedPack, match=name):
                pack.verify()
            flip(pack.path / name, int(position))
    pack.verify()


def test_every_flipped_bit_of_the_manifest_is_found_when_the_pack_is_opened(pack: ps.Pack) -> None:
    path = pack.path / "pack.json"
    for position in np.random.default_rng(1).integers(0, path.stat().st_size, 60):
        flip(path, int(position))
        with pytest.raises(ps.PackError):
            ps.open(pack.path)
        flip(path, int(position))
    assert len(ps.open(pack.path)) == 300


def test_every_flipped_bit_of_the_index_is_an_error_or_found_by_verify(pack: ps.Pack) -> None:
    path = pack.path / "index.arrow"
    size = path.stat().st_size
    for position in [*range(0, 900, 7), *range(size - 900, size, 7)]:
        flip(path, position)
        with pytest.raises(ps.PackError):
            ps.open(pack.path).verify()
        flip(path, position)


def test_a_shard_cut_short_is_an_error_and_no_crash(pack: ps.Pack) -> None:
    shard = pack.manifest.shards[1]
    with (pack.path / shard.file).open("r+b") as file:
        file.truncate(shard.bytes // 2)
    damaged = ps.open(pack.path)
    assert damaged[0]["key"] == "pictures/0.png"
    first = int(np.flatnonzero(damaged.columns["shard"] == 1)[0])
    with pytest.raises(ps.PackError, match=r"shard-00001.arrow has .* bytes and should have"):
        damaged.read(first)
    with pytest.raises(DamagedPack, match=r"this row and those after it, up to \d+, are cut off"):
        damaged.verify()


def test_a_missing_shard_is_named(pack: ps.Pack) -> None:
    (pack.path / "shard-00001.arrow").unlink()
    with pytest.raises(DamagedPack, match="shard-00001.arrow: the file is missing"):
        ps.open(pack.path).verify()


def test_a_pack_of_a_newer_format_says_so(pack: ps.Pack) -> None:
    path = pack.path / "pack.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "format_version": 99}))
    with pytest.raises(ps.PackError, match=r"pack format 99.*reads up to 1.*pip install --upgrade penstock"):
        ps.open(pack.path)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "penstock pack", "format_version": 1}'])
def test_a_damaged_manifest_is_a_clear_error(pack: ps.Pack, content: str) -> None:
    (pack.path / "pack.json").write_text(content)
    with pytest.raises(ps.PackError, match=r"pack\.json"):
        ps.open(pack.path)


def test_a_damaged_index_is_a_clear_error(pack: ps.Pack) -> None:
    (pack.path / "index.arrow").write_bytes(b"ARROW1 and nothing else")
    with pytest.raises(ps.PackError, match=r"index\.arrow cannot be read"):
        ps.open(pack.path)


def test_what_is_no_pack_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ps.PackError, match="does not exist"):
        ps.open(tmp_path / "nothing.pack")
    with pytest.raises(ps.DataError, match="the folder is empty"):
        ps.open(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ps.PackError, match=r"it has no pack\.json"):
        ps.open(tmp_path)
    with pytest.raises(ps.PackError, match="is a file"):
        ps.open(tmp_path / "file")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB, where mounting one is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if os.name != "posix" or shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_an_error_and_work_goes_on_once_there_is_space(small_disk: Path, tmp_path: Path) -> None:
    options = {"shard_mb": 1, "size": "96x96", "codec": "png"}
    (small_disk / "ballast").write_bytes(bytes(1_200_000))
    with pytest.raises(ps.PackError, match=r"the disk is full.*resume=True"):
        ps.pack(Pictures(120), small_disk / "one.pack", **options)
    assert not (small_disk / "one.pack").exists()
    (small_disk / "ballast").unlink()
    ps.pack(Pictures(120), small_disk / "one.pack", resume=True, **options).verify()
    ps.pack(Pictures(120), tmp_path / "reference.pack", **options)
    assert folder_bytes(small_disk / "one.pack") == folder_bytes(tmp_path / "reference.pack")


def test_a_disk_that_fills_up_while_the_index_is_written_is_an_error_and_no_crash(small_disk: Path) -> None:
    with pytest.raises(ps.PackError, match=r"the disk is full.*resume=True"):
        ps.pack(Numbers(24_000), small_disk / "one.pack")
    assert not (small_disk / "one.pack").exists()
    assert (small_disk / "one.pack.partial" / "pack" / "shard-00000.arrow").exists()


def test_errors_survive_the_way_between_processes() -> None:
    for error in (
        ps.HopError("decode", "sample 3", "broken", "Mend it."),
        ps.DataError([ps.Problem("a.csv", 3, "no label", "Write one")]),
        DamagedPack("a.pack", ()),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error) and again.exit_code == error.exit_code


def test_a_worker_process_that_dies_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ps.PackError, match=r"a worker process died.*resume=True"):
        ps.pack(Deadly(40), tmp_path / "one.pack", executor="process", workers=2)
