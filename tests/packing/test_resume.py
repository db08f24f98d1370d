"""Interrupted work goes on where it stopped and ends in the same bytes, however it was interrupted."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock as ps
from made_sources import Pictures, Reels, folder_bytes

TESTS = Path(__file__).resolve().parents[1]
CHILD = """
import sys
import penstock as ps
from made_sources import Announced
ps.pack(Announced(400), sys.argv[1], shard_mb=1, size="96x96", codec="png",
        resume=sys.argv[2] == "resume", executor=sys.argv[3], workers=2)
"""


def start(path: Path, how: str, executor: str = "thread") -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", CHILD, str(path), how, executor]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def kill_after(process: subprocess.Popen[bytes], samples: int, sign: int) -> bool:
    """Send a signal once so many samples were read; false when the work was done before."""
    assert process.stdout is not None
    seen = process.stdout.read(samples)
    process.send_signal(sign)
    process.communicate()
    return len(seen) == samples and process.returncode != 0


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("reference") / "one.pack"
    process = start(path, "begin")
    assert process.communicate() and process.returncode == 0
    return folder_bytes(path)


@pytest.mark.parametrize("seed", range(6))
def test_killed_at_random_points_and_resumed_gives_the_same_bytes(
    tmp_path: Path, reference: dict[str, bytes], seed: int
) -> None:
    rng = random.Random(seed)
    path = tmp_path / "one.pack"
    how, killed = "begin", 0
    while killed < 3 and not path.exists():
        killed += kill_after(start(path, how), rng.randint(1, 250), signal.SIGKILL)
        how = "resume"
    assert killed
    child = start(path, "resume")
    _, errors = child.communicate()
    assert child.returncode == 0, errors.decode()
    assert folder_bytes(path) == reference
    assert [item.name for item in tmp_path.iterdir()] == ["one.pack"]


def test_ctrl_c_leaves_nothing_under_the_name_and_can_be_resumed(tmp_path: Path, reference: dict[str, bytes]) -> None:
    path = tmp_path / "one.pack"
    assert kill_after(start(path, "begin"), 300, signal.SIGINT)
    assert not path.exists() and (tmp_path / "one.pack.partial").exists()
    child = start(path, "resume")
    assert child.communicate() and child.returncode == 0
    assert folder_bytes(path) == reference


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    process = start(tmp_path / "one.pack", "begin", "process")
    assert process.stdout is not None
    process.stdout.read(60)
    workers = [os.pidfd_open(pid) for pid in children_of(process.pid)]
    assert workers
    process.kill()
    process.communicate()
    for worker in workers:
        assert select.select([worker], [], [], 60)[0], "a worker outlived its parent"
        os.close(worker)


def children_of(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def test_finished_shards_are_not_made_again(tmp_path: Path) -> None:
    class Counting(Pictures):
        reads: list[int] = []  # noqa: RUF012 - shared on purpose

        def read(self, index: int) -> ps.Raw:
            self.reads.append(index)
            if index == 350 and not (tmp_path / "mended").exists():
                raise OSError("the disk went away")
            return super().read(index)

    options = {"shard_mb": 1, "size": "96x96", "codec": "png"}
    with pytest.raises(ps.HopError, match="the disk went away"):
        ps.pack(Counting(400), tmp_path / "one.pack", **options)
    (tmp_path / "mended").touch()
    Counting.reads.clear()
    ps.pack(Counting(400), tmp_path / "one.pack", resume=True, **options)
    finished = 400 - len(set(Counting.reads))
    assert finished > 100 and min(Counting.reads) == finished


def test_a_source_that_changed_meanwhile_is_noticed(tmp_path: Path) -> None:
    class Relabelled(Pictures):
        def annotations(self, index: int) -> dict[str, object]:
            return {**super().annotations(index), **({"label": 2} if index == 9 else {})}

    interrupted(tmp_path)
    with pytest.raises(ps.PackError, match=r"sample 9 \(pictures/9.png\) changed"):
        ps.pack(Relabelled(400), tmp_path / "one.pack", shard_mb=1, size="96x96", codec="png", resume=True)


def test_other_options_cannot_be_resumed(tmp_path: Path) -> None:
    interrupted(tmp_path)
    with pytest.raises(ps.PackError, match="options 'codec' was 'png' and is 'jpeg'.*overwrite=True"):
        ps.pack(Pictures(400), tmp_path / "one.pack", shard_mb=1, size="96x96", codec="jpeg", resume=True)


def test_unfinished_work_is_neither_taken_for_a_pack_nor_thrown_away(tmp_path: Path) -> None:
    interrupted(tmp_path)
    with pytest.raises(ps.PackError, match="Pass resume=True to resume it"):
        ps.pack(Pictures(400), tmp_path / "one.pack")
    with pytest.raises(ps.PackError, match="is not finished"):
        ps.open(tmp_path / "one.pack")


def interrupted(folder: Path) -> None:
    with pytest.raises(ps.HopError):
        ps.pack(Pictures(400, broken=(399,)), folder / "one.pack", shard_mb=1, size="96x96", codec="png")


@pytest.mark.parametrize("codec", ["png", "h264"])
def test_a_part_is_resumed_in_its_middle(tmp_path: Path, codec: str) -> None:
    size = (96, 96)

    class Torn(Reels):
        """Fails at one frame."""

        def __init__(self, *lengths: int) -> None:
            super().__init__(*lengths, size=size)
            part = self.parts[1]
            decode = part.decode

            def failing(raw: ps.Raw) -> dict[str, object]:
                if raw.index == 140:
                    raise ValueError("torn")
                return decode(raw)

            part.decode = failing  # type: ignore[method-assign]

    options = {"codec": codec, "shard_mb": 1, **({"quality": 100} if codec == "h264" else {})}
    ps.pack(Reels(50, 200, size=size), tmp_path / "whole.pack", **options)
    with pytest.raises(ps.HopError, match="reelx sample 140"):
        ps.pack(Torn(50, 200), tmp_path / "one.pack", **options)
    ps.pack(Reels(50, 200, size=size), tmp_path / "one.pack", resume=True, **options)
    assert folder_bytes(tmp_path / "one.pack") == folder_bytes(tmp_path / "whole.pack")


def test_a_part_that_cannot_be_read_to_its_end_is_left_out_from_there_when_asked(tmp_path: Path) -> None:
    class Torn(Reels):
        """The second of three reels breaks off."""

        def __init__(self) -> None:
            super().__init__(20, 50, 20)
            stream = self.parts[1].stream

            def breaking(start: int = 0) -> Iterator[ps.Raw]:
                yield from (raw for raw in stream(start) if raw.index < 30)
                raise ps.DataError([ps.Problem("reelx", None, "it breaks off", "Mend it", unreadable=True)])

            self.parts[1].stream = breaking  # type: ignore[method-assign]

    for codec in ("png", "h264"):
        path = tmp_path / f"{codec}.pack"
        with pytest.raises(ps.DataError, match="it breaks off"):
            ps.pack(Torn(), path, codec=codec)
        pack = ps.pack(Torn(), path, codec=codec, on_bad_sample="skip", overwrite=True)
        assert len(pack) == 70 and pack[69]["key"] == "reelxx#19"
        assert pack.manifest.skipped == ({"sample": "reelx#30 to #49", "reason": "it breaks off", "count": 20},)


@pytest.mark.parametrize("damage", ["removed", "cut", "zeroed"])
@pytest.mark.parametrize("source", [Pictures(400), Reels(300, 150, size=(64, 64))], ids=["samples", "parts"])
def test_a_finished_shard_that_was_damaged_is_made_again(tmp_path: Path, damage: str, source: ps.Source) -> None:
    options = {"shard_mb": 1, "codec": "png"} | ({"size": "96x96"} if isinstance(source, Pictures) else {})
    ps.pack(source, tmp_path / "whole.pack", **options)
    path = tmp_path / "one.pack"
    assert kill_in_the_last_shard(source, path, options)
    shard = tmp_path / "one.pack.partial" / "pack" / "shard-00001.arrow"
    if damage == "removed":
        shard.unlink()
    elif damage == "cut":
        shard.write_bytes(shard.read_bytes()[:-100])
    else:
        content = shard.read_bytes()
        shard.write_bytes(content[:5000] + bytes(3000) + content[8000:])
    ps.pack(source, path, resume=True, **options)
    assert folder_bytes(path) == folder_bytes(tmp_path / "whole.pack")


def kill_in_the_last_shard(source: ps.Source, path: Path, options: dict[str, object]) -> bool:
    """Stop packing when at least three shards are finished."""
    from penstock.packing import writer

    class Stop(Exception):  # noqa: N818 - not an error of anybody
        pass

    add = writer.Journal.add

    def stopping(self: writer.Journal, *arguments: object) -> None:
        add(self, *arguments)  # type: ignore[arg-type]
        if len(self.finished) == 3:
            raise Stop

    writer.Journal.add = stopping  # type: ignore[method-assign]
    try:
        ps.pack(source, path, **options)
    except Stop:
        return True
    finally:
        writer.Journal.add = add  # type: ignore[method-assign]
    return False


def test_a_line_that_was_cut_off_costs_no_later_shard(tmp_path: Path) -> None:
    options = {"shard_mb": 1, "size": "96x96", "codec": "png"}
    path = tmp_path / "one.pack"
    assert kill_in_the_last_shard(Pictures(400), path, options)
    journal = tmp_path / "one.pack.partial" / "journal.jsonl"
    journal.write_text(journal.read_text() + '{"entry": {"file": "sha')
    with pytest.raises(ps.HopError):
        ps.pack(Pictures(400, broken=(399,)), path, resume=True, **options)
    lines = journal.read_text().splitlines()
    assert len(lines) >= 6 and all(line.endswith("}") for line in lines)


def test_a_pack_that_was_replaced_meanwhile_is_noticed_as_a_source(tmp_path: Path) -> None:
    options = {"shard_mb": 1, "size": "96x96", "codec": "png"}
    source = ps.pack(Pictures(400), tmp_path / "source.pack")
    assert kill_in_the_last_shard(source, tmp_path / "one.pack", options)
    again = ps.pack(Pictures(400, "jpeg"), tmp_path / "source.pack", overwrite=True)
    with pytest.raises(ps.PackError, match="changed since it was packed"):
        ps.pack(again, tmp_path / "one.pack", resume=True, **options)
