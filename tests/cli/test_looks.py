"""`check`, `info`, `show`, `verify`: words for people, JSON with stable keys for programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from commands import run_here
from made_sources import EveryKind, Reels
from penstock.codecs.images import decode_image
from picture_making import write_picture

FACTS = {
    "path", "samples", "fields", "classes", "splits", "split_how", "groups", "sizes", "codec", "shards", "bytes",
    "statistics", "negatives", "unlabelled", "skipped", "made_from", "options", "notes",
}  # fmt: skip
PROBLEM = {"file", "row", "what", "remedy", "warning", "unreadable"}


@pytest.fixture
def crowns(tmp_path: Path) -> Path:
    """A table of boxes with two mistakes, beside its image."""
    write_picture(tmp_path / "a.png", width=60, height=50)
    table = tmp_path / "crowns.csv"
    rows = ["a.png,5,5,20,20,Tree", "a.png,30,5,20,20,Tree", "a.png,5,5,20,200,Bush"]
    table.write_text("\n".join(["image_path,xmin,ymin,xmax,ymax,label", *rows, ""]))
    return table


def test_check_names_every_problem_by_line_with_exit_code_1(crowns: Path) -> None:
    outcome = run_here("check", "boxes", crowns)
    assert (outcome.exit_code, outcome.err) == (1, "")
    assert f"problem: {crowns} line 3:" in outcome.out and f"problem: {crowns} line 4:" in outcome.out
    assert outcome.out.splitlines()[-1].endswith("2 problems, 0 warnings")


def test_check_of_good_files_is_exit_code_0(crowns: Path) -> None:
    crowns.write_text("".join(crowns.read_text().splitlines(keepends=True)[:2]))
    outcome = run_here("check", "boxes", crowns, "--decode")
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert outcome.out.endswith("no problems\n")


def test_check_json_has_stable_keys(crowns: Path) -> None:
    found = run_here("check", "boxes", crowns, "--json")
    assert found.exit_code == 1
    assert set(found.json) == {"ok", "counts", "problems"}
    assert found.json["ok"] is False and found.json["counts"]["samples"] == 1
    assert [(set(problem), problem["row"]) for problem in found.json["problems"]] == [(PROBLEM, 3), (PROBLEM, 4)]


@pytest.mark.parametrize("kind", ["images", "boxes", "rasters", "videos"])
def test_check_json_of_files_that_are_not_there_has_the_same_keys(kind: str, tmp_path: Path) -> None:
    found = run_here("check", kind, tmp_path / "nowhere ü.csv", "--json")
    assert found.exit_code == 1
    assert set(found.json) == {"ok", "counts", "problems"}
    assert [set(problem) for problem in found.json["problems"]] == [PROBLEM]


def test_check_lists_more_problems_than_an_error_would(tmp_path: Path) -> None:
    for number in range(9):
        write_picture(tmp_path / "photos" / f"{number}.jpg").write_bytes(b"no image")
    outcome = run_here("check", "images", tmp_path / "photos")
    assert outcome.out.count("problem: ") == 9


def test_info_json_has_stable_keys_for_every_kind_of_pack(tmp_path: Path) -> None:
    ps.pack(EveryKind(6), tmp_path / "every.pack")
    ps.pack(Reels(8, 8), tmp_path / "reels.pack")
    for name in ("every", "reels"):
        facts = run_here("info", tmp_path / f"{name}.pack", "--json").json
        assert set(facts) == FACTS
    assert facts["samples"] == 16 and facts["classes"] == {"rest": 8, "move": 8} and facts["groups"] == 2
    assert facts["sizes"] == {"width": [32, 32], "height": [24, 24], "same": True}


def test_verify_json_has_stable_keys(tmp_path: Path) -> None:
    pack = tmp_path / "reels.pack"
    ps.pack(Reels(8), pack)
    good = run_here("verify", pack, "--json")
    assert (good.exit_code, good.json) == (0, {"ok": True, "samples": 8, "damages": []})
    (pack / "shard-00000.arrow").unlink()
    bad = run_here("verify", pack, "--json")
    assert bad.exit_code == 4
    missing = {"file": "shard-00000.arrow", "row": None, "what": "the file is missing"}
    assert bad.json == {"ok": False, "samples": 8, "damages": [missing]}


@pytest.fixture
def every(tmp_path: Path) -> ps.Pack:
    """A pack with a field of every kind."""
    return ps.pack(EveryKind(12), tmp_path / "every.pack")


@pytest.mark.parametrize("look", [["info"], ["info", "--json"], ["show", "3"]], ids=" ".join)
def test_looks_blame_a_damaged_shard_and_not_themselves(look: list[str], every: ps.Pack) -> None:
    shard = every.path / "shard-00000.arrow"
    shard.write_bytes(shard.read_bytes().replace(b"boxes", b"boxen"))
    outcome = run_here(look[0], every.path, *look[1:])
    assert (outcome.exit_code, outcome.out) == (4, "")
    assert "shard-00000.arrow" in outcome.err and "Traceback" not in outcome.err


def test_show_blames_a_damaged_index(every: ps.Pack) -> None:
    index, lengths = every.path / "index.arrow", np.asarray(every.columns["length"]).tobytes()
    index.write_bytes(index.read_bytes().replace(lengths, bytes(len(lengths))))
    outcome = run_here("show", every.path, 3)
    assert outcome.exit_code == 4 and "index.arrow is damaged" in outcome.err


def test_show_draws_no_sample_that_is_damaged(every: ps.Pack, tmp_path: Path) -> None:
    shard, place = every.path / "shard-00000.arrow", int(every.columns["offset"][4]) - 20
    data = bytearray(shard.read_bytes())
    data[place] ^= 1
    shard.write_bytes(data)
    outcome = run_here("show", every.path, 3, "-o", tmp_path / "a.png")
    assert outcome.exit_code == 4 and "row 3" in outcome.err
    assert not (tmp_path / "a.png").exists()
    assert run_here("show", every.path, 4, "-o", tmp_path / "a.png").exit_code == 0


@pytest.mark.parametrize("ending", [".png", ".jpg", ".JPEG", ".webp"])
def test_show_writes_a_picture_of_the_codec_that_its_ending_says(ending: str, tmp_path: Path) -> None:
    ps.pack(Reels(8), tmp_path / "reels.pack")
    picture = tmp_path / f"bild ü{ending}"
    outcome = run_here("show", tmp_path / "reels.pack", 3, "-o", picture)
    assert (outcome.exit_code, outcome.out) == (0, f"{picture}: reel#3  rest\n")
    pixels = decode_image(picture.read_bytes())
    assert min(pixels.shape[:2]) >= 320 and pixels.dtype == np.uint8


def test_show_of_a_pack_without_images_says_so(tmp_path: Path) -> None:
    class Numbers:
        schema = ps.Schema((ps.Field("value", "number", "float32"),))

        def __len__(self) -> int:
            return 3

        def read(self, index: int) -> ps.Raw:
            return ps.Raw(index, None)

        def decode(self, raw: ps.Raw) -> dict[str, np.float32]:
            return {"value": np.float32(raw.index)}

    ps.pack(Numbers(), tmp_path / "numbers.pack")
    outcome = run_here("show", tmp_path / "numbers.pack", 0, "-o", tmp_path / "a.png")
    assert outcome.exit_code == 2 and "no image to draw" in outcome.err
    assert run_here("info", tmp_path / "numbers.pack").exit_code == 0


def test_warnings_are_told_before_packing_and_quiet_silences_them(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_picture(tmp_path / f"{name}.png")
    table = tmp_path / "crowns.csv"
    rows = ["a.png,5,5,20,20,Tree", "b.png,0,0,0,0,", "c.png,0,0,0,0,"]
    table.write_text("\n".join(["image_path,xmin,ymin,xmax,ymax,label", *rows, ""]))
    loud = run_here("pack", "boxes", table, "-o", tmp_path / "loud.pack")
    assert loud.exit_code == 0 and "warning: " in loud.err
    assert "2 samples without boxes (66.7%)" in loud.out
    quiet = run_here("pack", "boxes", table, "-o", tmp_path / "quiet.pack", "--quiet")
    assert (quiet.exit_code, quiet.err) == (0, "")


def test_the_demonstration_spares_folders_that_are_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "mine.txt").write_text("dear")
    outcome = run_here("demo", "--folder", tmp_path)
    assert outcome.exit_code == 2 and "--folder" in outcome.err
    assert [path.name for path in tmp_path.rglob("*")] == ["raw", "mine.txt"]
