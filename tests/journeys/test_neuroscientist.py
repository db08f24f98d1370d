"""The neuroscientist: videos and tables of behaviours, packed so that no label slips and no animal leaks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from commands import run_installed
from penstock.codecs.images import decode_image
from video_making import number_shown, write_video

FRAMES = 60
VIDEOS = ("m1_day1", "m1_day2", "m2_day1", "m3_day1")


def behaviours(frame: int) -> tuple[int, int, int]:
    """Background, walk, groom: what each frame of every video shows."""
    walk, groom = int(frame % 20 < 8), int(frame % 15 < 3)
    return int(not walk and not groom), walk, groom


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Four videos of three mice, and DeepEthogram's table for each."""
    (tmp_path / "videos").mkdir()
    (tmp_path / "labels").mkdir()
    for name in VIDEOS:
        write_video(tmp_path / "videos" / f"{name}.mp4", FRAMES)
        rows = [",background,walk,groom"]
        rows += [f"{frame},{','.join(map(str, behaviours(frame)))}" for frame in range(FRAMES)]
        (tmp_path / "labels" / f"{name}.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


PACK = ("pack", "videos", "videos/*.mp4", "--labels", "labels/{stem}.csv", "--size", "96x64")


def test_from_videos_to_a_verified_pack_and_a_picture(lab: Path) -> None:
    looked = run_installed("check", "videos", "videos/*.mp4", "--labels", "labels/{stem}.csv", folder=lab)
    assert (looked.exit_code, looked.err) == (0, "")
    assert looked.out == "240 samples, 3 classes, 4 videos: no problems\n"

    packed = run_installed(*PACK, "--group-from", "{animal}_*", "-o", "mice.pack", folder=lab)
    assert packed.exit_code == 0
    assert "about 240 frames at 96x64" in packed.err  # what each codec would cost is told before it starts
    assert " → jpeg " in packed.err and "loss: none" in packed.err and "h264" in packed.err
    assert packed.out.startswith("mice.pack: 240 samples, ") and "groups     3" in packed.out

    facts = run_installed("info", "mice.pack", "--json", folder=lab).json
    expected = np.sum([behaviours(frame) for frame in range(FRAMES)], axis=0) * len(VIDEOS)
    assert facts["classes"] == dict(zip(("background", "walk", "groom"), expected.tolist(), strict=True))
    assert facts["unlabelled"] == 0 and facts["codec"] == "jpeg"

    assert run_installed("verify", "mice.pack", folder=lab).exit_code == 0
    drawn = run_installed("show", "mice.pack", 67, "-o", "frame.png", folder=lab)
    assert drawn.out == "frame.png: m1_day2#7  walk\n"
    assert min(decode_image((lab / "frame.png").read_bytes()).shape[:2]) >= 320


@pytest.mark.parametrize("codec", ["jpeg", "h264"])
def test_no_frame_loses_its_label(codec: str, lab: Path) -> None:
    assert run_installed(*PACK, "--codec", codec, "--quiet", "-o", "mice.pack", folder=lab).exit_code == 0
    pack = ps.open(lab / "mice.pack")
    for index in range(0, len(pack), 7):
        sample = pack[index]
        frame = index % FRAMES
        assert sample["key"] == f"{VIDEOS[index // FRAMES]}#{frame}"
        assert number_shown(sample["image"]) == frame and sample["frame"] == frame
        assert tuple(sample["labels"].tolist()) == behaviours(frame)


def test_whole_animals_stay_in_one_split(lab: Path) -> None:
    command = (*PACK, "--group-from", "{animal}_*", "--split", "train=0.5,val=0.5", "--quiet", "-o", "mice.pack")
    assert run_installed(*command, folder=lab).exit_code == 0
    pack = ps.open(lab / "mice.pack")
    animals = [str(key).split("_")[0] for key in pack.column("key")]
    splits = pack.column("split").tolist()
    assert all(
        len({split for name, split in zip(animals, splits, strict=True) if name == each}) == 1 for each in animals
    )
    assert set(splits) == {"train", "val"}


def test_a_table_with_too_few_rows_is_told_by_how_many_and_where(lab: Path) -> None:
    table = lab / "labels" / "m2_day1.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-5]))
    looked = run_installed("check", "videos", "videos/*.mp4", "--labels", "labels/{stem}.csv", folder=lab)
    assert looked.exit_code == 1
    assert "m2_day1" in looked.out and "55 label rows" in looked.out and "60 frames" in looked.out
    refused = run_installed(*PACK, "--quiet", "-o", "mice.pack", folder=lab)
    assert refused.exit_code == 3 and "m2_day1" in refused.err and "Traceback" not in refused.err
    assert not (lab / "mice.pack").exists()


def test_a_video_without_labels_is_a_warning_before_packing(lab: Path) -> None:
    (lab / "labels" / "m3_day1.csv").unlink()
    packed = run_installed(*PACK, "-o", "mice.pack", folder=lab)
    assert packed.exit_code == 0
    assert "warning: " in packed.err and "m3_day1.mp4: has no labels" in packed.err
    assert "unlabelled 60 samples without a label (25.0%)" in packed.out


def test_a_video_that_is_no_video_is_named_beside_the_others(lab: Path) -> None:
    (lab / "videos" / "m0_broken.mp4").write_bytes(b"")
    (lab / "videos" / "m9_broken.mp4").write_bytes(b"this is no video")
    refused = run_installed("pack", "videos", "videos/*.mp4", "-o", "mice.pack", folder=lab)
    assert refused.exit_code == 3
    assert "m0_broken.mp4" in refused.err and "m9_broken.mp4" in refused.err and "Traceback" not in refused.err


@pytest.mark.slow
def test_one_real_video_is_split_in_time(shared_data: Path, tmp_path: Path) -> None:
    flies = shared_data / "video" / "flies_courtship_120s"
    command = ("pack", "videos", f"{flies}.mp4", "--labels", f"{flies}_labels.csv", "--size", "64x64", "--quiet")
    packed = run_installed(*command, "-o", "flies.pack", folder=tmp_path)
    assert packed.exit_code == 0 and packed.out.startswith("flies.pack: 3,000 samples, ")
    splits = ps.open(tmp_path / "flies.pack").splits
    assert splits["val"] > 400 and 0 < splits["gap"] < 100
