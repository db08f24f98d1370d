"""Videos with frames that do not decode, packed and exported without them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import penstock as ps
from commands import run_here
from packing.test_resume import folder_bytes, kill_in_the_last_shard
from penstock.storage.writing.skipped import skipped_count
from video_making import damage_packets, number_shown, write_video

LOST = 20
REASON = f"frame {LOST} does not decode: its packet is damaged, or one that it is made from"
SKIPPED = {"sample": f"b#{LOST}", "reason": REASON, "count": 1}


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """Three videos of 40 frames, the second damaged at frame 20; groom is in every third frame."""
    (tmp_path / "labels").mkdir()
    for name in "abc":
        write_video(tmp_path / f"{name}.mp4", 40, options={"g": "12", "bf": "0"})
        rows = "".join(f"{int(number % 3 == 0)}\n" for number in range(40))
        (tmp_path / "labels" / f"{name}.csv").write_text(f"groom\n{rows}")
    damage_packets(tmp_path / "b.mp4", [LOST])
    return tmp_path


def opened(folder: Path) -> ps.Videos:
    return ps.Videos(folder / "*.mp4", labels=str(folder / "labels" / "{stem}.csv"), size="96x64")


@pytest.mark.parametrize("codec", ["jpeg", "h264"])
def test_the_damaged_frame_alone_is_left_out_and_the_others_keep_their_numbers(videos: Path, codec: str) -> None:
    pack = ps.pack(opened(videos), videos / "one.pack", on_bad_sample="skip", codec=codec)
    assert [pack[index]["key"] for index in (39, 40, 59, 60, 79)] == ["a#39", "b#0", "b#19", "b#21", "c#0"]
    assert len(pack) == 119
    for sample in pack:
        assert sample["labels"][1] == (sample["frame"] % 3 == 0)
        if sample["group"] != "b" or not LOST < sample["frame"] < 24:  # up to the next key frame remains may be seen
            assert number_shown(sample["image"]) == sample["frame"]
    assert pack.manifest.skipped == (SKIPPED,)
    assert json.loads((videos / "one.pack" / "pack.json").read_text())["skipped_count"] == 1


def test_info_pack_and_export_say_how_many_samples_are_missing(videos: Path) -> None:
    data = (videos / "*.mp4", "--labels", f"{videos}/labels/{{stem}}.csv", "--on-bad-sample", "skip")
    packed = run_here("pack", "videos", *data, "-o", videos / "one.pack")
    assert packed.exit_code == 0, packed.err
    for words in (packed.out, run_here("info", videos / "one.pack").out):
        assert re.search(r"skipped +1 sample", words) and "b#20: frame 20 does not decode" in words
    made = ps.export(opened(videos), videos / "out", to="directory", on_bad_sample="skip")
    assert made.samples == 119 and made.skipped == (SKIPPED,)
    done = run_here("export", videos / "*.mp4", "--to", "directory", "-o", videos / "two", *data[-2:])
    assert re.search(r"skipped +1 sample", done.out), done.err


def test_a_pack_that_was_killed_goes_on_and_counts_the_same(videos: Path) -> None:
    options = {"on_bad_sample": "skip", "size": "320x320", "codec": "png", "shard_mb": 1}
    source = ps.Videos(videos / "*.mp4", labels=str(videos / "labels" / "{stem}.csv"), size="320x320")
    whole = ps.pack(source, videos / "whole.pack", **options)
    assert len(whole.manifest.shards) > 3 and whole.manifest.skipped == (SKIPPED,)
    assert kill_in_the_last_shard(source, videos / "one.pack", options)
    ps.pack(source, videos / "one.pack", resume=True, **options)
    assert folder_bytes(videos / "one.pack") == folder_bytes(videos / "whole.pack")


def test_an_event_at_the_damage_is_not_put_on_a_frame_beside_it(videos: Path) -> None:
    events = videos / "events.csv"
    events.write_text("video,start_s,stop_s,behaviour\nb,0.8,0.801,groom\nb,0.84,0.85,rear\n")
    source = ps.Videos(videos / "b.mp4", labels=events, size="96x64")
    pack = ps.pack(source, videos / "one.pack", on_bad_sample="skip")
    expected = {number: [1, 0, 0] for number in range(40) if number != LOST} | {LOST + 1: [0, 0, 1]}
    assert {sample["frame"]: sample["labels"].tolist() for sample in pack} == expected


def test_nothing_but_a_file_that_does_not_open_is_one_entry_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"no video")
    write_video(tmp_path / "b.mp4", 3)
    pack = ps.pack(ps.Videos(tmp_path), tmp_path / "one.pack", on_bad_sample="skip")
    assert len(pack) == 3 and [(one["sample"], one["count"]) for one in pack.manifest.skipped] == [("a", 1)]


def test_entries_of_older_packs_stand_for_one_sample_each() -> None:
    rest = {"sample": "b#12 to #39", "reason": "torn", "count": 28}
    assert skipped_count([{"sample": "a", "reason": "torn"}, rest, {"sample": "b", "reason": "torn"}]) == 30
