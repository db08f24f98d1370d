"""Packs made to do harm: nothing that points outside is followed, and `verify` says what is wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from commands import run_here
from made_sources import Pictures
from security.hostile_packs import change_column, change_index, change_manifest, read_batches, repair, write_batches


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ps.pack(Pictures(60), tmp_path_factory.mktemp("made") / "p.pack", progress=False).path


@pytest.fixture
def pack(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "p.pack"))


OUTSIDE = {
    "shard": 77,
    "row": 10**6,
    "offset": 2**62,
    "length": 2**46,
    "position": 11,
    "height": -1,
    "width": -(2**31),
    "split": 77,
    "label": 10**9,
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_row_of_the_index_that_points_outside_is_a_pack_error_everywhere(name: str, pack: Path) -> None:
    change_index(pack, name, 5, OUTSIDE[name])
    opened = ps.Pack(pack)
    everything = np.arange(len(opened))
    uses: list[Callable[[], Any]] = [
        lambda: opened.read(5),
        lambda: opened[5],
        lambda: opened.annotations(5),
        lambda: opened.annotations_many(everything),
        lambda: opened.encoded_places(everything),
        lambda: opened.will_need(everything),
        lambda: opened.give_back(everything),
        lambda: opened.resident_share(everything),
        lambda: opened.gather("label", everything),
        lambda: opened.image_sizes(everything),
        lambda: opened.shard_numbers(everything),
        lambda: opened.origin(5),
        lambda: list(ps.Flow(opened, workers=0).map(ps.augment.Resize(8)).batch(8)),
        opened.verify,
    ]
    for use in uses:
        with pytest.raises(ps.PackError, match="sample 5 has"):
            use()


@pytest.mark.parametrize("name", OUTSIDE)
def test_verify_names_the_row_that_points_outside(name: str, pack: Path) -> None:
    change_index(pack, name, 5, OUTSIDE[name])
    outcome = run_here("verify", pack)
    assert outcome.exit_code != 0
    assert "index.arrow row 5" in outcome.err + outcome.out


@pytest.mark.parametrize("command", ["info", "verify", "doctor"])
@pytest.mark.parametrize("name", ["length", "label", "split"])
def test_no_command_ends_with_a_traceback(command: str, name: str, pack: Path) -> None:
    change_index(pack, name, 5, OUTSIDE[name])
    outcome = run_here(command, pack)
    assert outcome.exit_code in (0, 1, 3, 4)
    assert "Traceback" not in outcome.err + outcome.out


def test_an_index_that_says_something_else_than_its_shard_is_found(pack: Path) -> None:
    for name in ("label", "group", "checksum", "split", "offset"):
        value = int(ps.Pack(pack).columns[name][9])
        change_index(pack, name, 9, int(ps.Pack(pack).columns[name][8]) ^ (1 if name == "group" else 0))
        if int(ps.Pack(pack).columns[name][9]) == value:
            continue
        with pytest.raises(ps.PackError, match=f"sample 9 has {name}"):
            ps.Pack(pack).verify()
        change_index(pack, name, 9, value)
    ps.Pack(pack).verify()


def test_verify_looks_at_the_checksum_of_every_row(pack: Path) -> None:
    shard = pack / "shard-00000.arrow"
    change_column(shard, "key", lambda keys: pa.array([f"other-{number}" for number in range(len(keys))]))
    repair(pack)
    with pytest.raises(ps.PackError, match="row 0: checksum of 'other-0' does not match"):
        ps.Pack(pack).verify()


def test_verify_finds_labels_that_are_no_class_even_where_all_checksums_were_made_again(tmp_path: Path) -> None:
    pack = ps.pack(Pictures(12), tmp_path / "p.pack", progress=False).path
    change_manifest(pack, lambda values: values.update(classes=values["classes"][:1]))
    with pytest.raises(ps.PackError, match="has a label that is none of the 1"):
        ps.Pack(pack).verify()


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../shard-00000.arrow", "a/b.arrow", "..", "", "C:evil", "a\\b", "a\0b", 7, None]
)
@pytest.mark.parametrize("place", ["shards", "index"])
def test_names_of_files_that_leave_the_folder_are_refused_at_opening(place: str, name: Any, pack: Path) -> None:
    def rename(values: dict[str, Any]) -> None:
        entry = values["index"] if place == "index" else values["shards"][0]
        entry["file"] = name

    change_manifest(pack, rename)
    with pytest.raises(ps.PackError, match="is not the name of a file in this folder"):
        ps.Pack(pack)


MANIFESTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "rows below zero": lambda values: values["shards"][0].update(rows=-1),
    "bytes beyond all disks": lambda values: values["shards"][0].update(bytes=2**63),
    "bytes as text": lambda values: values["shards"][0].update(bytes="many"),
    "more samples": lambda values: values.update(samples=10**9),
    "samples as text": lambda values: values.update(samples="60"),
    "no splits": lambda values: values.update(splits=None),
    "classes as numbers": lambda values: values.update(classes=[1, 2, 3]),
    "a field of no kind": lambda values: values["schema"][0].update(kind="pickle", dtype=7),
    "a list as schema": lambda values: values.update(schema=[[]]),
    "a class of no name": lambda values: values["shards"].append({"file": 1}),
}


@pytest.mark.parametrize("which", MANIFESTS)
def test_a_manifest_that_nobody_wrote_is_a_pack_error(which: str, pack: Path) -> None:
    change_manifest(pack, MANIFESTS[which])
    with pytest.raises(ps.PackError):
        _use_all(pack)


def test_deep_json_is_a_pack_error(pack: Path) -> None:
    (pack / "pack.json").write_text("[" * 200_000 + "]" * 200_000)
    with pytest.raises(ps.PackError, match=r"pack\.json is damaged"):
        ps.Pack(pack)


def test_columns_of_another_type_are_a_pack_error(pack: Path) -> None:
    change_column(pack / "index.arrow", "offset", lambda column: pa.array([""] * len(column)))
    repair(pack)
    with pytest.raises(ps.PackError, match="its column offset is string and should be uint64"):
        ps.Pack(pack)


SHARDS: dict[str, Callable[[Path], None]] = {
    "no column key": lambda shard: write_batches(shard, [batch.drop_columns(["key"]) for batch in read_batches(shard)]),
    "keys as numbers": lambda shard: change_column(shard, "key", lambda keys: pa.array(range(len(keys)))),
    "keys that are no UTF-8": lambda shard: change_column(shard, "key", _broken_text),
    "half of the rows": lambda shard: write_batches(shard, [batch.slice(0, 30) for batch in read_batches(shard)]),
    "offsets outside": lambda shard: change_column(shard, "key", _wild_offsets),
}


def _broken_text(keys: pa.Array) -> pa.Array:
    offsets = pa.py_buffer(np.arange(len(keys) + 1, dtype=np.int32))
    return pa.StringArray.from_buffers(len(keys), offsets, pa.py_buffer(b"\xff" * len(keys)))


def _wild_offsets(keys: pa.Array) -> pa.Array:
    offsets = np.arange(len(keys) + 1, dtype=np.int32)
    offsets[5] = 2**30
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(offsets), pa.py_buffer(b"x" * len(keys)))


def _use_all(pack: Path) -> None:
    opened = ps.Pack(pack)
    opened.column("key")
    opened.annotations_many(np.arange(len(opened)))
    for index in range(len(opened)):
        opened[index]
    opened.verify()


@pytest.mark.parametrize("which", SHARDS)
def test_a_shard_that_nobody_wrote_is_a_pack_error(which: str, pack: Path) -> None:
    SHARDS[which](pack / "shard-00000.arrow")
    repair(pack)
    opened = ps.Pack(pack)
    for use in (
        lambda: opened.column("key"),
        lambda: [opened[index] for index in range(60)] and opened.verify(),
        lambda: opened.annotations_many(np.arange(60)) and opened.verify(),
        lambda: opened.table(["key"]) and opened.verify(),
        opened.verify,
    ):
        with pytest.raises((ps.PackError, ps.HopError)):  # an image that lies elsewhere by now is no image
            use()


DAMAGED = """
import sys
import numpy as np
import penstock as ps
from pathlib import Path
path, seed = Path(sys.argv[1]), int(sys.argv[2])
whole = path.read_bytes()
rng = np.random.default_rng(seed)
from security.hostile_packs import repair
from security.test_hostile_packs import _use_all
for trial in range(60):
    data = bytearray(whole)
    for place in rng.integers(0, len(data), rng.integers(1, 6)):
        data[place] = rng.integers(0, 256)
    path.write_bytes(data)
    repair(path.parent)
    try:
        _use_all(path.parent)
    except (ps.PackError, ps.HopError, ps.DataError):
        pass
"""


@pytest.mark.parametrize("file", ["index.arrow", "shard-00000.arrow"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_bytes_in_a_file_never_end_in_anything_but_our_errors(file: str, seed: int, pack: Path) -> None:
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {tests!r})\n{DAMAGED}", pack / file, str(seed)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_every_damage_is_there_for_programs(pack: Path) -> None:
    for row in (3, 5, 8):
        change_index(pack, "label", row, 10**9)
    damages = json.loads(run_here("verify", pack, "--json").out)["damages"]
    assert {damage["row"] for damage in damages if damage["file"] == "index.arrow"} == {3, 5, 8}
