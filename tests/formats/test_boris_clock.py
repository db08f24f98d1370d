"""Times of BORIS count from the begin of an observation: offsets and videos played before are taken off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from video_making import write_video

NEW = (
    "Observation id,Observation date,Description,Observation duration,Observation type,Source,Time offset (s),"
    "Media duration (s),FPS,Subject,Behavior,Behavioral category,Behavior type,Time,Media file name,Image index,Comment"
)


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("videos")
    for name in ("a", "b"):
        write_video(folder / f"{name}.mp4", 50)  # 2 s each
    return folder


def labelled(videos: Path, table: Path) -> dict[str, list[int]]:
    """The frames of each video that show the behaviour; the others of a labelled video do not."""
    source = ps.Videos([videos / "a.mp4", videos / "b.mp4"], labels=table, size="32x32")
    assert [problem for problem in ps.check(source).problems if not problem.warning] == []
    column = source.classes.index("groom")
    labels = np.array([source[index]["labels"] for index in range(len(source))])[:, column]
    return {"a": np.flatnonzero(labels[:50] == 1).tolist(), "b": np.flatnonzero(labels[50:] == 1).tolist()}


def new_row(status: str, time: float, video: str, *, source: str = "player #1:a.mp4;b.mp4", offset: float = 0) -> str:
    lengths = ";".join(["2.000"] * len(source.split("|")[0].split(";")))
    return f"o1,2024-01-01,,4,Media file(s),{source},{offset},{lengths},25,,groom,,{status},{time},{video},,"


def test_events_of_the_second_video_of_an_observation_count_from_its_begin(videos: Path, tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    rows = [new_row("START", 0.4, "a.mp4"), new_row("STOP", 0.8, "a.mp4")]
    rows += [new_row("START", 2.4, "b.mp4"), new_row("STOP", 2.8, "b.mp4")]
    table.write_text("\n".join([NEW, *rows]))
    assert labelled(videos, table) == {"a": [*range(10, 20)], "b": [*range(10, 20)]}


def test_a_second_player_is_another_view_of_the_same_time(videos: Path, tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    source = "player #1:b.mp4|player #2:a.mp4"
    rows = [new_row(word, time, "b.mp4", source=source) for word, time in (("START", 0.4), ("STOP", 0.8))]
    table.write_text("\n".join([NEW, *rows]))
    assert labelled(videos, table) == {"a": [], "b": [*range(10, 20)]}


def test_the_time_offset_of_an_observation_is_taken_off(videos: Path, tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    rows = [
        new_row(word, time, "a.mp4", source="player #1:a.mp4", offset=1)
        for word, time in (("START", 1.4), ("STOP", 1.8))
    ]
    table.write_text("\n".join([NEW, *rows]))
    assert labelled(videos, table)["a"] == [*range(10, 20)]
    old = tmp_path / "old.tsv"
    lines = ["Observation id\to1", "Player #1\ta.mp4", "Time offset (s)\t1.0", ""]
    lines += ["Time\tMedia file path\tTotal length\tFPS\tSubject\tBehavior\tBehavioral category\tComment\tStatus"]
    lines += [f"{time}\ta.mp4\t2\t25\t\tgroom\t\t\t{word}" for word, time in (("START", 1.4), ("STOP", 1.8))]
    old.write_text("\n".join(lines))
    assert labelled(videos, old)["a"] == [*range(10, 20)]


def test_an_event_before_its_video_begins_is_a_problem(videos: Path, tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    rows = [
        new_row(word, time, "a.mp4", source="player #1:a.mp4", offset=1)
        for word, time in (("START", 0.4), ("STOP", 1.8))
    ]
    table.write_text("\n".join([NEW, *rows]))
    with pytest.raises(ps.DataError, match=r"groom starts at 0\.4 s, before its video begins at 1 s of the clock"):
        ps.pack(ps.Videos([videos / "a.mp4"], labels=table), tmp_path / "a.pack", progress=False)


def test_several_videos_without_their_lengths_are_refused_once(videos: Path, tmp_path: Path) -> None:
    table = tmp_path / "aggregated.tsv"
    head = "Observation id\tMedia file\tTotal length\tFPS\tSubject\tBehavior\tBehavior type\tStart (s)\tStop (s)"
    rows = [("a.mp4", 0.4, 0.8), ("b.mp4", 1.2, 1.6), ("b.mp4", 1.8, 1.9)]
    lines = [f"o1\t{video}\t4\t25\t\tgroom\tSTATE\t{start}\t{stop}" for video, start, stop in rows]
    table.write_text("\n".join([head, *lines]))
    source = ps.Videos([videos / "a.mp4", videos / "b.mp4"], labels=table)
    found = [problem for problem in ps.check(source).problems if "one after another" in problem.what]
    assert [problem.row for problem in found] == [2, 3]
    assert "plays 2 videos one after another (a.mp4, b.mp4)" in found[0].what
    each = [f"o{number}\t{line[3:]}" for number, line in enumerate(lines)]
    table.write_text("\n".join([head, *each]))
    assert labelled(videos, table) == {"a": [*range(10, 20)], "b": [*range(30, 40), 45, 46, 47]}
