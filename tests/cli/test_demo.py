"""The demonstrations: what a stranger runs first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")

import penstock as ps  # noqa: E402
from commands import run_here  # noqa: E402
from penstock.cli.demos.script import Script  # noqa: E402
from penstock.codecs.images import decode_image  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads of a tiny network would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def demonstrated(kind: str, folder: Path) -> str:
    outcome = run_here("demo", kind, "--folder", folder)
    assert outcome.exit_code == 0, outcome.err
    return outcome.out


def typed(printed: str) -> list[str]:
    """The verbs that were typed, in order."""
    return [line.split()[2] for line in printed.splitlines() if line.startswith("$ penstock ")]


@pytest.mark.slow
def test_photos_are_learned_and_the_demonstration_can_be_run_again(tmp_path: Path) -> None:
    for _ in range(2):
        printed = demonstrated("images", tmp_path / "demo")
        verbs = ["check", "pack", "verify", "show", "doctor", "train", "evaluate", "predict", "report"]
        assert typed(printed) == verbs
        assert "every checksum matches" in printed and "Training is bound by" in printed
    home = tmp_path / "demo" / "images"
    assert (home / "photos.html").stat().st_size > 10_000
    assert ps.Run(home / "runs" / "photos").scores()["accuracy"] >= 0.9
    assert min(decode_image((home / "photo.png").read_bytes()).shape[:2]) >= 320


@pytest.mark.slow
def test_crowns_are_found_in_a_flight_that_nobody_labelled(tmp_path: Path) -> None:
    pytest.importorskip("geopandas")
    assert "doctor" in typed(demonstrated("trees", tmp_path / "demo"))
    home = tmp_path / "demo" / "trees"
    outcome = run_here("evaluate", home / "crowns.csv", "--truth", home / "new_flight" / "crowns.csv", "--json")
    assert json.loads(outcome.out)["box_f1"] >= 0.75
    assert (home / "trees.html").stat().st_size > 10_000
    assert decode_image((home / "crowns.png").read_bytes()).shape[1] == 900
    assert len(ps.predict(home / "runs" / "trees", home / "new_flight" / "flight_4.tif")) > 20


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_what_an_animal_does_is_told_of_a_video_that_nobody_labelled(tmp_path: Path) -> None:
    pytest.importorskip("av")
    assert "doctor" in typed(demonstrated("behaviour", tmp_path / "demo"))
    home = tmp_path / "demo" / "behaviour"
    assert ps.Run(home / "runs" / "animals").scores()["f1"] >= 0.75
    assert (home / "predictions" / "animal_0_bouts.csv").stat().st_size > 100
    assert (home / "animals.html").stat().st_size > 10_000


def test_files_of_the_user_are_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    outcome = run_here("demo", "--folder", tmp_path)
    assert outcome.exit_code == 2 and "--folder" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_command_that_fails_ends_the_demonstration(tmp_path: Path) -> None:
    with pytest.raises(ps.PackError, match="nowhere"):
        Script(tmp_path).type("verify", tmp_path / "nowhere.pack")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ps.PenstockError):
        Script(tmp_path).type("check", "images", tmp_path / "empty")
