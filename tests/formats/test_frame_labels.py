"""Labels of frames: rows, events and BORIS, and whether they fit the frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.formats.videos.frame_labels import Event, EventLabels, with_background
from video_making import damage_packets, write_video

# 10 frames at 25 per second: frame n is shown at n × 0.04 s.
COUNT, RATE = 10, 25


@pytest.fixture
def mouse(tmp_path: Path) -> Path:
    return write_video(tmp_path / "mouse.mp4", COUNT, rate=RATE)


def labels_of(source: Any, part: int = 0) -> list[list[int]]:
    """The labels as streaming gives them, after checking that random access gives the same."""
    vectors = [source.parts[part].decode(raw)["labels"] for raw in source.parts[part].stream()]
    assert all(vector.dtype == np.int8 for vector in vectors)
    if len(source.parts) == 1:
        np.testing.assert_array_equal(source.column("labels"), vectors)
        np.testing.assert_array_equal([source.annotations(index)["labels"] for index in range(len(source))], vectors)
    return [[int(value) for value in vector] for vector in vectors]


def frames_of(source: Any, behaviour: str, part: int = 0) -> list[int]:
    number = source.classes.index(behaviour)
    return [frame for frame, vector in enumerate(labels_of(source, part)) if vector[number] == 1]


def errors_of(source: Any) -> list[str]:
    return [str(problem) for problem in source.problems() if not problem.warning]


def write_rows(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


# Rows


GROOM = [0, 0, 1, 1, 0, 0, 0, -1, -1, 0]
REAR = [0, 1, 1, 0, 0, 0, 0, -1, 0, 0]
BACKGROUND = [1, 0, 0, 0, 1, 1, 1, -1, -1, 1]
EXPECTED = [list(row) for row in zip(BACKGROUND, GROOM, REAR, strict=True)]


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (",background,groom,rear", [range(COUNT), BACKGROUND, GROOM, REAR]),
        ("background,groom,rear", [BACKGROUND, GROOM, REAR]),
        ("none,groom,rear", [BACKGROUND, GROOM, REAR]),
        (",groom,rear", [range(COUNT), GROOM, REAR]),
        ("groom,rear", [GROOM, REAR]),
        ("frame,groom,rear", [range(1, COUNT + 1), GROOM, REAR]),
    ],
    ids=["deepethogram", "without index", "none", "without background", "plain", "frames from 1"],
)
def test_tables_of_one_row_per_frame(mouse: Path, header: str, columns: list[Any]) -> None:
    rows = [",".join(str(value) for value in row) for row in zip(*columns, strict=True)]
    table = write_rows(mouse.with_suffix(".csv"), header, rows)
    videos = ps.Videos(mouse, labels=table)
    assert videos.classes == ("background", "groom", "rear")
    assert videos.problems() == [] and videos.damage() == []
    assert labels_of(videos) == EXPECTED
    assert videos.parts[0].label_counts == {0: 5, 1: 2, 2: 2}
    field = videos.schema["labels"]
    assert (field.kind, field.dtype, field.shape) == ("labels", "int8", (3,))


def test_without_labels_there_is_no_such_field(mouse: Path) -> None:
    videos = ps.Videos(mouse)
    assert "labels" not in videos.schema and "labels" not in videos[0] and videos.parts[0].label_counts == {}


def test_background_is_known_only_where_every_behaviour_is() -> None:
    values = np.array([[0, 0], [1, 0], [1, -1], [0, -1], [-1, -1]], np.int8)
    assert with_background(values).tolist() == [1, 0, 0, -1, -1]


@pytest.mark.parametrize("row_count", [7, 13])
def test_rows_and_frames_that_differ_say_by_how_much_and_where(mouse: Path, row_count: int) -> None:
    table = write_rows(mouse.with_suffix(".csv"), "groom", ["0"] * row_count)
    videos = ps.Videos(mouse, labels=table)
    (found,) = videos.problems()
    too_few = row_count < COUNT
    assert f"{row_count} label rows for the 10 frames of mouse: 3 too {'few' if too_few else 'many'}" in found.what
    assert f"frame {7 if too_few else 10}" in found.what
    assert found.row == (8 if too_few else 12)
    assert videos.damage() == []
    seen = []
    with pytest.raises(ps.DataError, match="3 too"):
        seen += [raw.index for raw in videos.parts[0].stream()]


def test_labels_of_a_broken_video_fit_when_they_end_where_it_does(tmp_path: Path) -> None:
    video = write_video(tmp_path / "a.mp4", 20, options={"bf": "0"})
    damage_packets(video, [18, 19])
    fits = write_rows(tmp_path / "fits.csv", "groom", ["0"] * 18)
    assert len(labels_of(ps.Videos(video, labels={"a": fits}))) == 18
    longer = write_rows(tmp_path / "longer.csv", "groom", ["0"] * 20)
    videos = ps.Videos(video, labels={"a": longer})
    # As many rows as packets: only decoding shows that two frames are missing.
    assert videos.problems() == []
    words = "decodes 18 of 20 frames; the label rows from frame 18 on have no picture"
    assert any(words in problem.what for problem in videos.damage())
    with pytest.raises(ps.DataError, match=words):
        list(videos.parts[0].stream())


def test_wrong_values_are_problems_by_line(mouse: Path) -> None:
    rows = ["0,0", "2,0", "x,0", ",1", "0,0.5", *["0,0"] * 5]
    videos = ps.Videos(mouse, labels=write_rows(mouse.with_suffix(".csv"), "groom,rear", rows))
    found = {(problem.row, problem.what) for problem in videos.problems()}
    assert found == {(3, "groom is '2'"), (4, "groom is 'x'"), (5, "groom is ''"), (6, "rear is '0.5'")}


def test_an_index_that_skips_a_frame_is_a_problem(mouse: Path) -> None:
    rows = [f"{number if number < 4 else number + 1},0" for number in range(COUNT)]
    videos = ps.Videos(mouse, labels=write_rows(mouse.with_suffix(".csv"), "frame,groom", rows))
    (found,) = videos.problems()
    assert found.row == 6 and "'5', expected 4" in found.what


def test_background_beside_another_behaviour_is_a_problem(mouse: Path) -> None:
    rows = ["1,0"] * 4 + ["1,1"] * 2 + ["1,0"] * 4
    (error,) = errors_of(ps.Videos(mouse, labels=write_rows(mouse.with_suffix(".csv"), "background,groom", rows)))
    assert "line 6" in error and "2 rows" in error


@pytest.mark.parametrize("text", ["", "0,1\n0,1\n"], ids=["empty", "no header"])
def test_a_label_file_without_names_is_a_problem(mouse: Path, text: str) -> None:
    table = mouse.with_suffix(".csv")
    table.write_text(text)
    (error,) = errors_of(ps.Videos(mouse, labels=table))
    assert "mouse.csv" in error


def two_videos(tmp_path: Path) -> Path:
    (tmp_path / "labels").mkdir()
    for name in ("a", "b"):
        write_video(tmp_path / f"{name}.mp4", 3)
    return tmp_path


def test_columns_in_another_order_are_matched_by_name(tmp_path: Path) -> None:
    folder = two_videos(tmp_path)
    write_rows(folder / "labels" / "a.csv", "groom,rear", ["1,0", "0,0", "0,1"])
    write_rows(folder / "labels" / "b_labels.csv", "rear,groom", ["1,0", "0,0", "0,1"])
    videos = ps.Videos(folder / "*.mp4", labels=folder / "labels")
    assert videos.problems() == []
    assert labels_of(videos, 0) == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert labels_of(videos, 1) == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_a_missing_column_is_a_problem_and_classes_fix_the_order(tmp_path: Path) -> None:
    folder = two_videos(tmp_path)
    write_rows(folder / "labels" / "a.csv", "groom,rear", ["1,0", "0,0", "0,1"])
    write_rows(folder / "labels" / "b.csv", "rear", ["1", "0", "0"])
    videos = ps.Videos(folder / "*.mp4", labels=str(folder / "labels" / "{stem}.csv"), classes="rear,groom")
    assert videos.classes == ("background", "rear", "groom")
    (error,) = errors_of(videos)
    assert "b.csv" in error and "no column for the behaviour 'groom'" in error
    missing, unknown = errors_of(ps.Videos(folder / "b.mp4", labels=folder / "labels" / "b.csv", classes=["reer"]))
    assert "no column for the behaviour 'reer'" in missing and "a column for the behaviour 'rear'" in unknown


def test_a_video_without_a_label_file_is_unlabelled_with_a_warning(tmp_path: Path) -> None:
    folder = two_videos(tmp_path)
    write_rows(folder / "labels" / "a.csv", "groom", ["1", "0", "0"])
    videos = ps.Videos(folder / "*.mp4", labels=str(folder / "labels" / "{stem}.csv"))
    (found,) = videos.problems()
    assert found.warning and found.file.endswith("b.mp4")
    assert labels_of(videos, 1) == [[-1, -1]] * 3
    assert videos.parts[1].label_counts == {}


def test_a_table_that_names_no_video_belongs_to_none_of_two(tmp_path: Path) -> None:
    folder = two_videos(tmp_path)
    table = write_rows(folder / "all.csv", "groom", ["1", "0", "0"])
    words = [problem.what for problem in ps.Videos(folder / "*.mp4", labels=table).problems()]
    assert any("does not say which video" in word for word in words) and len(words) == 4


def test_labels_that_are_found_for_no_video_are_a_problem(tmp_path: Path) -> None:
    folder = two_videos(tmp_path)
    (error,) = errors_of(ps.Videos(folder / "*.mp4", labels=str(folder / "lables" / "{stem}.csv")))
    assert "lables/{stem}.csv: there are no labels for any of the 2 videos" in error


def test_a_dictionary_names_videos_by_path_name_or_stem(tmp_path: Path) -> None:
    folder = two_videos(tmp_path)
    frame = pd.DataFrame({"groom": [1, 0, 0]})
    table = write_rows(folder / "x.csv", "groom", ["0", "0", "1"])
    videos = ps.Videos(folder / "*.mp4", labels={"a": frame, folder / "b.mp4": table})
    assert videos.problems() == []
    assert frames_of(videos, "groom", 0) == [0] and frames_of(videos, "groom", 1) == [2]
    (error,) = errors_of(ps.Videos(folder / "*.mp4", labels={"a": frame, "b": table, "c": table}))
    assert "none of the videos" in error


# Events


def events(tmp_path: Path, header: str, *rows: str) -> Path:
    return write_rows(tmp_path / "events.csv", header, list(rows))


def test_events_in_frames_end_before_their_stop(mouse: Path) -> None:
    table = events(mouse.parent, "video,start,stop,behaviour", "mouse,0,2,groom", "mouse,2,3,rear", "mouse,8,10,groom")
    videos = ps.Videos(mouse, labels=table, units="frames")
    assert videos.problems() == [] and videos.classes == ("background", "groom", "rear")
    assert frames_of(videos, "groom") == [0, 1, 8, 9]
    assert frames_of(videos, "rear") == [2]
    assert frames_of(videos, "background") == [3, 4, 5, 6, 7]
    assert videos.parts[0].label_counts == {0: 5, 1: 4, 2: 1}


@pytest.mark.parametrize("header", ["video,start_frame,stop_frame,behaviour", "Video,Start frame,End frame,Behavior"])
def test_columns_that_name_frames_need_no_units(mouse: Path, header: str) -> None:
    videos = ps.Videos(mouse, labels=events(mouse.parent, header, "mouse.mp4,1,4,groom"))
    assert frames_of(videos, "groom") == [1, 2, 3]


@pytest.mark.parametrize("header", ["video,start_s,stop_s,behaviour", "video,Start (s),Stop (s),behavior"])
def test_columns_that_name_seconds_need_no_units(mouse: Path, header: str) -> None:
    videos = ps.Videos(mouse, labels=events(mouse.parent, header, "mouse.mp4,0.04,0.16,groom"))
    assert frames_of(videos, "groom") == [1, 2, 3]


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        ("0.08", "0.16", [2, 3]),
        ("0.0804", "0.1604", [2, 3]),
        ("0.081", "0.161", [3, 4]),
        ("0.079", "0.159", [2, 3]),
        ("0.09", "0.11", [2]),
        ("0.1", "0.1", [2]),
        ("0.3", "9.5", [8, 9]),
        ("0", "0.001", [0]),
    ],
    ids=["on frames", "rounded up", "later", "earlier", "between two", "a point", "past the end", "at the start"],
)
def test_events_in_seconds_cover_the_frames_shown_in_them(
    mouse: Path, start: str, stop: str, expected: list[int]
) -> None:
    table = events(mouse.parent, "video,start,stop,behaviour", f"mouse,{start},{stop},groom")
    videos = ps.Videos(mouse, labels=table, units="seconds")
    assert videos.problems() == []
    assert frames_of(videos, "groom") == expected


def test_seconds_follow_the_times_of_a_variable_rate(tmp_path: Path) -> None:
    video = write_video(tmp_path / "a.mp4", 6, milliseconds=[0, 10, 500, 510, 900, 2000])
    table = events(tmp_path, "video,start,stop,behaviour", "a,0.4,0.9,groom", "a,1.5,1.6,rear")
    videos = ps.Videos(video, labels=table)
    assert frames_of(videos, "groom") == [2, 3]
    assert frames_of(videos, "rear") == [4]


def test_whole_numbers_without_a_unit_are_refused(mouse: Path) -> None:
    (error,) = errors_of(ps.Videos(mouse, labels=events(mouse.parent, "video,start,stop,behaviour", "mouse,1,2,groom")))
    assert "units='frames' or units='seconds'" in error
    with pytest.raises(ps.OptionError, match="units"):
        ps.Videos(mouse, units="second")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("mouse,5,3,groom", "stop 3 is before start 5"),
        ("mouse,-1,3,groom", "start is below 0"),
        ("mouse,5,5,groom", "covers no frame, because stop is exclusive"),
        ("mouse,5,x,groom", "stop is 'x'"),
        ("mouse,,7,groom", "start is ''"),
        ("mouse,5,6.5,groom", "not in whole frames"),
        ("mouse,1,4,groom", "begins before the one of line 2 ends"),
        ("mouse,5,6,", "the behaviour is empty"),
        ("mouse,5,6,grom", "Did you mean 'groom'?"),
    ],
)
def test_wrong_events_are_problems_by_line(mouse: Path, row: str, words: str) -> None:
    table = events(mouse.parent, "video,start,stop,behaviour", "mouse,0,2,groom", row)
    (error,) = errors_of(ps.Videos(mouse, labels=table, units="frames", classes=["groom"]))
    assert "events.csv line 3" in error and words in error


def test_events_after_the_end_are_found_by_decoding(mouse: Path) -> None:
    table = events(mouse.parent, "video,start,stop,behaviour", "mouse,0,1,groom", "mouse,10,12,rear")
    videos = ps.Videos(mouse, labels=table, units="frames")
    (found,) = videos.damage()
    assert found.row == 3 and "starts at 10 in mouse, which has 10 frames" in found.what
    with pytest.raises(ps.DataError, match="starts at 10"):
        list(videos.parts[0].stream(7))
    table = events(mouse.parent, "video,start,stop,behaviour", "mouse,0.41,0.5,groom")
    with pytest.raises(ps.DataError, match=r"ends at 0\.400 s"):
        list(ps.Videos(mouse, labels=table).parts[0].stream())


def test_one_table_labels_many_videos_and_warns_about_strangers(tmp_path: Path) -> None:
    folder = two_videos(tmp_path)
    rows = ["a.mp4,0,1,groom", "C:\\data\\b.mp4,1,2,groom", "c.mp4,1,2,groom"]
    frame = pd.DataFrame([row.split(",") for row in rows], columns=["video", "start_frame", "stop_frame", "behaviour"])
    for labels in (frame, events(folder, "video,start_frame,stop_frame,behaviour", *rows)):
        videos = ps.Videos(folder / "*.mp4", labels=labels)
        assert frames_of(videos, "groom", 0) == [0] and frames_of(videos, "groom", 1) == [1]
        (found,) = videos.problems()
        assert found.warning and "'c.mp4'" in found.what


def test_the_events_of_another_video_in_a_videos_own_table_are_a_problem(mouse: Path) -> None:
    table = events(mouse.parent, "video,start_frame,stop_frame,behaviour", "rat,0,1,groom")
    (error,) = errors_of(ps.Videos(mouse, labels={"mouse": table}))
    assert "'rat' is none of the videos" in error


def test_seconds_without_a_clock_are_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(3):
        cv2.imwrite(str(folder / f"{number}.png"), np.zeros((8, 8, 3), np.uint8))
    table = events(tmp_path, "video,start_s,stop_s,behaviour", "frames,0.5,1,groom")
    videos = ps.Videos(folder, labels=table)
    assert any("has no clock" in problem.what for problem in videos.damage())
    table = events(tmp_path, "video,start_frame,stop_frame,behaviour", "frames,1,2,groom")
    assert frames_of(ps.Videos(folder, labels=table), "groom") == [1]


@given(
    intervals=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), max_size=8),
    gaps=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    seconds=st.booleans(),
)
def test_one_frame_at_a_time_gives_the_same_as_all_at_once(
    intervals: list[tuple[int, int]], gaps: list[int], seconds: bool
) -> None:
    times = (np.cumsum(gaps) - gaps[0]) / 100
    scale = 1 / 100 if seconds else 1.0
    least = 0 if seconds else 1
    found = tuple(
        Event("v", start * scale, (start + max(length, least)) * scale, "ab"[start % 2], 1)
        for start, length in intervals
        if start * scale < (times[-1] if seconds else len(times))
    )
    labels = EventLabels("t", found, ("background", "a", "b"), seconds)
    ends = [*times[1:], float("inf")]
    one_by_one = [labels.at(number, times[number], ends[number]) for number in range(len(times))]
    np.testing.assert_array_equal(one_by_one, labels.over(times))
    for event in found:
        assert labels.over(times)[:, labels.classes.index(event.behaviour)].any()


# BORIS

BORIS_HEADER = "Time,Media file path,Total length,FPS,Subject,Behavior,Behavioral category,Comment,Status"
BORIS_ROWS = [
    "0.040,/home/lab/mouse.mp4,0.4,25,No focal subject,groom,,,START",
    "0.080,/home/lab/mouse.mp4,0.4,25,No focal subject,rear,,,POINT",
    "0.120,/home/lab/mouse.mp4,0.4,25,No focal subject,groom,,,STOP",
    "0.200,/home/lab/mouse.mp4,0.4,25,No focal subject,groom,,,START",
    "0.320,/home/lab/mouse.mp4,0.4,25,No focal subject,groom,,,STOP",
]
PREAMBLE = "Observation id\tobs 1\n\nMedia file(s)\nPlayer #1\t/home/lab/mouse.mp4\nObservation date\t2024-05-01\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "\n".join([BORIS_HEADER, *BORIS_ROWS]),
        PREAMBLE + "\n".join([BORIS_HEADER, *BORIS_ROWS]).replace(",", "\t"),
        "\n".join([BORIS_HEADER, *BORIS_ROWS]).replace("Status", "Behavior type").replace("path", "name"),
        "\ufeff" + "\n".join([BORIS_HEADER, *BORIS_ROWS]).replace(",", ";").replace(".", ",").replace(",mp4", ".mp4"),
    ],
    ids=["tabular", "preamble and tabs", "newer names", "semicolons and decimal commas"],
)
def test_boris_events_become_frames(mouse: Path, text: str) -> None:
    table = mouse.with_name("boris.csv")
    table.write_text(text + "\n", encoding="utf-8")
    videos = ps.Videos(mouse, labels=table)
    assert videos.problems() == [] and videos.classes == ("background", "groom", "rear")
    assert frames_of(videos, "groom") == [1, 2, 5, 6, 7]
    assert frames_of(videos, "rear") == [2]


def test_aggregated_boris_events_are_events(mouse: Path) -> None:
    header = "Observation id,Media file,Subject,Behavior,Behavior type,Start (s),Stop (s),Duration (s)"
    table = events(
        mouse.parent, header, "o,/x/mouse.mp4,a,groom,STATE,0.04,0.12,0.08", "o,/x/mouse.mp4,a,rear,POINT,0.2,0.2,NA"
    )
    videos = ps.Videos(mouse, labels=table)
    assert frames_of(videos, "groom") == [1, 2] and frames_of(videos, "rear") == [5]


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (lambda rows: rows[:-1], 5, "groom has a START at 0.2 s and no STOP"),
        (lambda rows: rows[1:], 3, "groom has a STOP at 0.12 s and no START"),
        (lambda rows: [*rows, rows[1].replace("POINT", "HALT")], 7, "'HALT', expected START, STOP or POINT"),
        (lambda rows: [*rows, rows[1].replace("0.080", "soon")], 7, "not a number of seconds"),
        (lambda rows: [*rows, rows[1].replace("rear", "")], 7, "the behaviour is empty"),
    ],
    ids=["no stop", "no start", "status", "time", "behaviour"],
)
def test_wrong_boris_lines_are_problems_by_line(mouse: Path, change: Any, line: int, words: str) -> None:
    (error,) = errors_of(ps.Videos(mouse, labels=events(mouse.parent, BORIS_HEADER, *change(BORIS_ROWS))))
    assert f"line {line}" in error and words in error


def test_the_flies_of_the_real_data_have_3000_rows_and_frames(shared_data: Path) -> None:
    folder = shared_data / "video"
    videos = ps.Videos(folder / "flies_courtship_120s.mp4", labels=str(folder / "{stem}_labels.csv"))
    assert videos.problems() == [] and videos.parts[0].expected == 3000
    assert videos.classes == ("background", "close", "wing_extension", "walking")
    assert videos.parts[0].label_counts == {0: 259, 1: 932, 2: 572, 3: 2238}
