"""An export is whole or absent; interrupted work goes on where it stopped and ends in the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from exporting_trips import ALL_FORMATS, trees
from made_sources import Pictures, Reels, folder_bytes

TESTS = Path(__file__).resolve().parents[2]
CHILD = """
import sys
import penstock as ps
from made_sources import Announced
options = {"shard_samples": 30} if sys.argv[3] in ("tfrecord", "webdataset", "hdf5") else {}
ps.export(Announced(1600), sys.argv[1], to=sys.argv[3], resume=sys.argv[2] == "resume", workers=2, **options)
"""


def start(path: Path, how: str, to: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", CHILD, str(path), how, to]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def kill_after(process: subprocess.Popen[bytes], samples: int, sign: int) -> bool:
    """Send a signal once so many samples were read; false when the work was done before."""
    assert process.stdout is not None
    seen = process.stdout.read(samples)
    process.send_signal(sign)
    process.communicate()
    return len(seen) == samples and process.returncode != 0


@pytest.mark.slow
@pytest.mark.parametrize("to", ["tfrecord", "webdataset", "hdf5", "directory", "numpy"])
def test_killed_at_random_points_and_resumed_gives_the_same_bytes(tmp_path: Path, to: str) -> None:
    options = {"shard_samples": 30} if to in ("tfrecord", "webdataset", "hdf5") else {}
    ps.export(Pictures(1600), tmp_path / "reference", to=to, **options)
    path = tmp_path / "home" / "out"
    rng = random.Random(to)
    how, killed = "begin", 0
    while killed < 2 and not path.exists():
        was_killed = kill_after(start(path, how, to), rng.randint(300, 1550), signal.SIGKILL)
        assert not (was_killed and path.exists())
        killed += was_killed
        how = "resume"
    assert killed
    if not path.exists():
        child = start(path, "resume", to)
        _, errors = child.communicate()
        assert child.returncode == 0, errors.decode()
    made, reference = folder_bytes(path), folder_bytes(tmp_path / "reference")
    # They tell the class that they were made from.
    made["export.yaml"] = made["export.yaml"].replace(b"Announced", b"Pictures")
    assert made == reference
    assert [item.name for item in path.parent.iterdir()] == ["out"]


def test_ctrl_c_leaves_nothing_under_the_name_and_can_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert kill_after(start(path, "begin", "tfrecord"), 1200, signal.SIGINT)
    assert not path.exists() and (tmp_path / "out.partial").exists()
    child = start(path, "resume", "tfrecord")
    assert child.communicate() and child.returncode == 0
    assert ps.open(path)[1599]["label"] == 1599 % 3


class Failing(Pictures):
    """Counts what is read, and fails at one sample until it is mended."""

    def __init__(self, count: int, folder: Path) -> None:
        super().__init__(count)
        self.folder = folder
        self.reads: list[int] = []

    def read(self, index: int) -> ps.Raw:
        self.reads.append(index)
        if index == self.count - 1 and not (self.folder / "mended").exists():
            raise OSError("the disk went away")
        return super().read(index)


def interrupted(tmp_path: Path, to: str = "tfrecord", **options: Any) -> dict[str, Any]:
    """An export that stopped at its last sample; its options."""
    options = {"to": to, **({"shard_samples": 10} if to == "tfrecord" else {}), **options}
    with pytest.raises(ps.HopError, match="the disk went away"):
        ps.export(Failing(100, tmp_path), tmp_path / "out", **options)
    return options


def test_finished_shards_are_not_made_again(tmp_path: Path) -> None:
    options = interrupted(tmp_path)
    (tmp_path / "mended").touch()
    source = Failing(100, tmp_path)
    ps.export(source, tmp_path / "out", resume=True, **options)
    assert min(source.reads) >= 60


def test_unfinished_work_is_told_and_not_lost(tmp_path: Path) -> None:
    options = interrupted(tmp_path)
    with pytest.raises(ps.PackError, match=r"is an unfinished export.*resume=True"):
        ps.export(Pictures(100), tmp_path / "out", **options)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"quality": 50}, "options 'quality' was 95 and is 50"), ({"to": "webdataset"}, "options 'to' was 'tfrecord'")],
)
def test_other_options_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    options = interrupted(tmp_path)
    with pytest.raises(ps.PackError, match=message):
        ps.export(Pictures(100), tmp_path / "out", resume=True, **{**options, **changed})


def test_a_changed_source_is_refused(tmp_path: Path) -> None:
    class Relabelled(Pictures):
        def annotations(self, index: int) -> dict[str, Any]:
            return {**super().annotations(index), "label": 2 if index == 3 else index % 3}

    options = interrupted(tmp_path)
    with pytest.raises(ps.PackError, match=r"sample 3 \(pictures/3.png\) changed"):
        ps.export(Relabelled(100), tmp_path / "out", resume=True, **options)
    made = ps.export(Relabelled(100), tmp_path / "out", overwrite=True, **options)
    assert ps.open(made.path)[3]["label"] == 2


def test_a_pack_that_was_replaced_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.formats.tfrecord.tfrecord_writer import TFRecord

    def fail(*_: Any) -> None:
        raise OSError("the disk went away")

    options: dict[str, Any] = {"to": "tfrecord", "shard_samples": 5}
    pack = ps.pack(Pictures(20), tmp_path / "one.pack")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="the disk went away"):
        patch.setattr(TFRecord, "finish", fail)
        ps.export(pack, tmp_path / "out", **options)
    ps.pack(Pictures(20, codec="jpeg"), tmp_path / "one.pack", overwrite=True)
    with pytest.raises(ps.PackError, match="content of the source was"):
        ps.export(ps.open(tmp_path / "one.pack"), tmp_path / "out", resume=True, **options)


def test_a_damaged_piece_is_made_again(tmp_path: Path) -> None:
    options = interrupted(tmp_path)
    shard = tmp_path / "out.partial" / "export" / "samples-00001.tfrecord"
    with shard.open("r+b") as file:
        file.truncate(100)
    (tmp_path / "mended").touch()
    made = ps.export(Failing(100, tmp_path), tmp_path / "out", resume=True, **options)
    assert len(ps.open(made.path)) == 100


class Namesakes(Failing):
    """Every sample has the same key."""

    def annotations(self, index: int) -> dict[str, Any]:
        return {**super().annotations(index), "key": "same.png"}


@pytest.mark.parametrize("to", ["numpy", "directory", "webdataset"])
def test_what_was_begun_after_the_last_finished_piece_is_made_anew(tmp_path: Path, to: str) -> None:
    options: dict[str, Any] = {"to": to, **({"shard_samples": 500} if to == "webdataset" else {})}
    with pytest.raises(ps.HopError, match="the disk went away"):
        ps.export(Namesakes(1300, tmp_path), tmp_path / "out", **options)
    (tmp_path / "mended").touch()
    source = Namesakes(1300, tmp_path)
    ps.export(source, tmp_path / "out", resume=True, **options)
    assert min(source.reads) >= 1000
    ps.export(Namesakes(1300, tmp_path), tmp_path / "whole", **options)
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "whole")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_failure_of_the_disk_under_hdf5_is_remembered() -> None:
    from penstock.formats.hdf5.steady_file import SteadyFile

    file = SteadyFile(Path("/dev/full"))
    assert file.write(memoryview(b"frames")) == 6
    with pytest.raises(OSError, match="No space left"):
        file.raise_failure()
    file.close()


def test_videos_go_on_in_the_middle(tmp_path: Path) -> None:
    class Torn(Reels):
        """The third part breaks off."""

        @property
        def breaks(self) -> bool:
            return not (tmp_path / "mended").exists()

        def __init__(self) -> None:
            super().__init__(30, 20, 40)
            stream = self.parts[2].stream

            def torn(start: int = 0) -> Iterator[ps.Raw]:
                for raw in stream(start):
                    if self.breaks and raw.index == 25:
                        raise OSError("the disk went away")
                    yield raw

            self.parts[2].stream = torn  # type: ignore[method-assign]

    for to in ("directory", "hdf5", "numpy"):
        (tmp_path / "mended").unlink(missing_ok=True)
        with pytest.raises(OSError, match="the disk went away"):
            ps.export(Torn(), tmp_path / to, to=to)
        (tmp_path / "mended").touch()
        ps.export(Torn(), tmp_path / to, to=to, resume=True)
        ps.export(Torn(), tmp_path / f"{to}-whole", to=to)
        assert folder_bytes(tmp_path / to) == folder_bytes(tmp_path / f"{to}-whole")


@pytest.mark.parametrize("to", ALL_FORMATS)
def test_an_export_is_replaced_only_when_asked_and_only_as_it_was_written(tmp_path: Path, to: str) -> None:
    source = trees(tmp_path)
    options = {"to": to, "size": "40x30"}
    made = ps.export(source, tmp_path / "out", **options)
    with pytest.raises(ps.PackError, match=r"exists already.*overwrite=True"):
        ps.export(source, made.path, **options)
    ps.export(source, made.path, overwrite=True, **options)
    (made.path / "notes.txt").write_text("mine")
    with pytest.raises(ps.PackError, match="Somebody changed it"):
        ps.export(source, made.path, overwrite=True, **options)
    assert (made.path / "notes.txt").read_text() == "mine"


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(ps.PackError, match="exists and is not an export"):
        ps.export(Pictures(3), tmp_path / "out", to="directory", overwrite=True)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


def test_an_export_onto_its_own_source_is_refused(tmp_path: Path) -> None:
    made = ps.export(Pictures(9), tmp_path / "out", to="directory")
    before = folder_bytes(made.path)
    with pytest.raises(ps.PackError, match="which the export is made from"):
        ps.export(ps.Images(made.path / "labels.csv"), made.path, to="directory", codec="jpeg", overwrite=True)
    records = ps.export(Pictures(9), tmp_path / "records", to="tfrecord")
    with pytest.raises(ps.PackError, match="which the export is made from"):
        ps.export(ps.open(records.path), tmp_path / "." / "records", to="tfrecord", overwrite=True)
    assert folder_bytes(made.path) == before and {item.name for item in tmp_path.iterdir()} == {"out", "records"}


def test_bad_samples_raise_or_are_left_out_and_listed(tmp_path: Path) -> None:
    source = Pictures(20, broken=(3, 19))
    with pytest.raises(ps.HopError, match=r"sample 3 \(pictures/3.png\).*on_bad_sample='skip'"):
        ps.export(source, tmp_path / "out", to="webdataset")
    assert not list(tmp_path.iterdir())
    made = ps.export(source, tmp_path / "out", to="directory", on_bad_sample="skip")
    assert made.samples == 18
    assert [one["sample"] for one in made.skipped] == ["sample 3 (pictures/3.png)", "sample 19 (pictures/19.png)"]


def test_nothing_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ps.PackError, match="there is nothing to export"):
        ps.export(Pictures(2, broken=(0, 1)), tmp_path / "out", to="directory", on_bad_sample="skip")
    assert not list(tmp_path.iterdir())


def test_a_box_without_a_class_is_named(tmp_path: Path) -> None:
    class Unlabelled:
        schema = ps.Schema(
            (ps.Field("image", "image"), ps.Field("boxes", "boxes"), ps.Field("box_label", "labels", "int64")), ("a",)
        )

        def __len__(self) -> int:
            return 2

        def read(self, index: int) -> ps.Raw:
            return ps.Raw(index, None)

        def decode(self, raw: ps.Raw) -> dict[str, Any]:
            from made_sources import pixels

            return {"image": pixels(1), "boxes": [[1, 2, 3, 4]], "box_label": [0 - raw.index]}

    with pytest.raises(ps.HopError, match="sample 1: encode failed: box 0 has no class"):
        ps.export(Unlabelled(), tmp_path / "out", to="yolo")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB, where mounting one is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.name != "posix" or shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("to", ["tfrecord", "webdataset", "hdf5", "directory", "numpy"])
def test_a_full_disk_is_an_error_and_work_goes_on_once_there_is_space(
    small_disk: Path, tmp_path: Path, to: str
) -> None:
    options: dict[str, Any] = {"to": to, "size": "64x64", "codec": "auto" if to == "numpy" else "png"}
    if to in ("tfrecord", "webdataset", "hdf5"):
        options["shard_samples"] = 4
    (small_disk / "ballast").write_bytes(bytes(1_700_000))
    with pytest.raises(ps.PackError, match=r"the disk is full"):
        ps.export(Pictures(40), small_disk / "out", **options)
    assert not (small_disk / "out").exists()
    (small_disk / "ballast").unlink()
    ps.export(Pictures(40), small_disk / "out", resume=True, **options)
    ps.export(Pictures(40), tmp_path / "reference", **options)
    assert folder_bytes(small_disk / "out") == folder_bytes(tmp_path / "reference")
