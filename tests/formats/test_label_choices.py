"""What a user chooses of label tables: subjects, columns, units, empty cells; and what is not used is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from commands import run_here
from video_making import write_video

BORIS_HEADER = "Time,Media file path,Total length,FPS,Subject,Behavior,Behavioral category,Modifiers,Comment,Status"


@pytest.fixture
def mouse(tmp_path: Path) -> Path:
    return write_video(tmp_path / "mouse.mp4", 10, rate=25)


def write(folder: Path, header: str, *rows: str, name: str = "events.csv") -> Path:
    path = folder / name
    path.write_text("".join(f"{row}\n" for row in (header, *rows)))
    return path


def boris(folder: Path, *events: tuple[str, str, float, float], modifiers: str = "") -> Path:
    """START and STOP of (subject, behaviour, from, to); the modifiers go round over the events."""
    rows = []
    for number, (subject, behaviour, start, stop) in enumerate(events):
        modifier = modifiers.split()[number] if modifiers else ""
        for time, status in ((start, "START"), (stop, "STOP")):
            rows.append((time, f"{time},mouse.mp4,0.4,25,{subject},{behaviour},,{modifier},,{status}"))
    return write(folder, BORIS_HEADER, *(row for _, row in sorted(rows)))


def frames_of(source: Any, behaviour: str) -> list[int]:
    column = source.column("labels")[:, source.classes.index(behaviour)]
    return [frame for frame, value in enumerate(column.tolist()) if value == 1]


def errors_of(source: Any) -> list[str]:
    return [str(problem) for problem in source.problems() if not problem.warning]


def warnings_of(source: Any) -> list[str]:
    return [str(problem) for problem in source.problems() if problem.warning]


# Subjects

TWO = (("mouseA", "groom", 0.04, 0.12), ("mouseB", "groom", 0.08, 0.2))


def test_one_behaviour_of_two_subjects_is_not_put_together_in_silence(mouse: Path) -> None:
    (error,) = errors_of(ps.Videos(mouse, labels=boris(mouse.parent, *TWO)))
    assert "2 subjects: mouseA, mouseB" in error and "subject='mouseA'" in error and "subject='each'" in error


@pytest.mark.parametrize(
    ("subject", "found"),
    [
        ("mouseA", {"groom": [1, 2]}),
        ("mouseB", {"groom": [2, 3, 4]}),
        ("any", {"groom": [1, 2, 3, 4]}),
        ("each", {"mouseA:groom": [1, 2], "mouseB:groom": [2, 3, 4]}),
    ],
)
def test_a_subject_is_chosen_or_each_is_a_class(mouse: Path, subject: str, found: dict[str, list[int]]) -> None:
    videos = ps.Videos(mouse, labels=boris(mouse.parent, *TWO), subject=subject)
    assert videos.problems() == []
    assert {name: frames_of(videos, name) for name in videos.classes[1:]} == found


def test_subjects_with_behaviours_of_their_own_are_warned_about(mouse: Path) -> None:
    table = boris(mouse.parent, ("mouseA", "attack", 0.04, 0.12), ("mouseB", "flee", 0.08, 0.2))
    videos = ps.Videos(mouse, labels=table)
    (warning,) = warnings_of(videos)
    assert "mouseA, mouseB" in warning and errors_of(videos) == []


def test_one_subject_is_no_problem(mouse: Path) -> None:
    assert ps.Videos(mouse, labels=boris(mouse.parent, TWO[0])).problems() == []


@pytest.mark.parametrize("subject", ["mouseC", "each"])
def test_a_subject_that_no_row_has_is_an_error(mouse: Path, subject: str) -> None:
    table = boris(mouse.parent, *TWO) if subject != "each" else boris(mouse.parent, ("", "groom", 0.04, 0.12))
    (error,) = errors_of(ps.Videos(mouse, labels=table, subject=subject))
    assert (
        ("There are mouseA, mouseB. Did you mean" in error) if subject == "mouseC" else "no table has subjects" in error
    )


def test_subjects_of_plain_events_are_told_apart_too(mouse: Path) -> None:
    rows = ("mouse,1,3,groom,a", "mouse,2,5,groom,b")
    table = write(mouse.parent, "video,start_frame,stop_frame,behaviour,animal", *rows)
    assert "2 subjects: a, b" in errors_of(ps.Videos(mouse, labels=table))[0]
    assert frames_of(ps.Videos(mouse, labels=table, subject="b"), "groom") == [2, 3, 4]


def test_subjects_of_videos_that_are_not_here_are_no_problem(mouse: Path) -> None:
    rows = ("mouse,1,3,groom,a", "other,2,5,groom,a", "other,2,5,groom,b")
    table = write(mouse.parent, "video,start_frame,stop_frame,behaviour,subject", *rows)
    assert errors_of(ps.Videos(mouse, labels=table)) == []


# Columns


def test_modifiers_that_tell_rows_apart_are_named_as_not_used(mouse: Path) -> None:
    table = boris(mouse.parent, ("a", "groom", 0.04, 0.12), ("a", "groom", 0.2, 0.28), modifiers="head tail")
    (warning,) = warnings_of(ps.Videos(mouse, labels=table))
    assert "not used: the column Modifiers (head, tail)" in warning


def test_two_observations_of_one_video_are_named_and_one_of_each_video_is_not(tmp_path: Path) -> None:
    videos = [write_video(tmp_path / f"{name}.mp4", 10, rate=25) for name in "ab"]
    header = "Observation id,Media file,Behavior,Start (s),Stop (s),Comment start"
    rows = ["first,a.mp4,groom,0.04,0.12,well", "second,b.mp4,groom,0.04,0.12,done"]
    assert ps.Videos(videos, labels=write(tmp_path, header, *rows)).problems() == []
    table = write(tmp_path, header, *rows, "third,a.mp4,groom,0.2,0.28,")
    (warning,) = warnings_of(ps.Videos(videos, labels=table))
    assert "Observation id (first, second, third)" in warning and "Comment" not in warning


def test_classes_select_columns_of_a_table_and_the_others_are_named(mouse: Path) -> None:
    rows = [f"{number},{number * 1.5},{number * 2.5},0.99,{int(number > 6)},0" for number in range(10)]
    table = write(mouse.parent, "frame,Nose_x,Nose_y,Nose_p,attack,sniff", *rows, name="mouse.csv")
    (error,) = errors_of(ps.Videos(mouse, labels=table))
    assert "3 of 5 columns hold other values" in error and "Nose_x, Nose_y, Nose_p" in error and "classes=" in error
    videos = ps.Videos(mouse, labels=table, classes="attack")
    assert videos.classes == ("background", "attack")
    (warning,) = warnings_of(videos)
    assert "4 columns are none of the classes and are left out: Nose_x, Nose_y, Nose_p, sniff" in warning
    assert frames_of(videos, "attack") == [7, 8, 9] and frames_of(videos, "background") == list(range(7))


# Empty cells, repeats


def test_a_run_of_empty_cells_is_one_problem_or_not_labelled(mouse: Path) -> None:
    rows = ["1,0", *[",0"] * 4, "0,1", *[",1"] * 2, "0,0", "1,0"]
    table = write(mouse.parent, "groom,rear", *rows, name="mouse.csv")
    first, second = errors_of(ps.Videos(mouse, labels=table))
    assert "line 3: groom is '', to line 6 (4 rows)" in first and "line 8" in second
    videos = ps.Videos(mouse, labels=table, empty_labels="unlabelled")
    assert videos.problems() == []
    assert videos.column("labels")[:, 1].tolist() == [1, -1, -1, -1, -1, 0, -1, -1, 0, 1]


def test_lines_that_repeat_are_counted_and_not_repeated(mouse: Path) -> None:
    rows = [f"mouse,{number},{number},groom" for number in range(40)]
    table = write(mouse.parent, "video,start_frame,stop_frame,behaviour", *rows)
    lines = str(ps.check(ps.Videos(mouse, labels=table))).splitlines()
    assert sum("covers no frame" in line for line in lines) == 5
    assert any("and 35 more lines like this" in line for line in lines)
    assert sum("covers no frame" in line for line in errors_of(ps.Videos(mouse, labels=table))) == 40


# Units, and the words of the command line


def test_a_table_whose_unit_is_not_known_is_one_problem_in_the_words_of_the_surface(tmp_path: Path) -> None:
    videos = [write_video(tmp_path / f"m{number}.mp4", 3) for number in range(3)]
    table = write(tmp_path, "video,start,stop,behaviour", "m0,0,1,groom", "m1,1,2,groom")
    assert [str(problem) for problem in ps.Videos(videos, labels=table).problems()] == [
        f"{table}: start and stop are whole numbers, which may be frames or seconds. "
        "Say which: units='frames' or units='seconds'."
    ]
    asked = run_here("check", "videos", *map(str, videos), "--labels", str(table))
    assert "--units frames or --units seconds" in asked.out and "units=" not in asked.out
    assert "has no labels" not in asked.out
    asked = run_here("check", "videos", *map(str, videos), "--labels", str(table), "--units", "frames")
    assert asked.exit_code == 0 and asked.out.count("has no labels") == 1


# Whole videos, and patterns


def test_a_table_of_videos_and_labels_is_about_whole_videos(tmp_path: Path) -> None:
    videos = [write_video(tmp_path / f"{name}.mp4", 3) for name in "abc"]
    table = write(tmp_path, "video,label", "a.mp4,jump", "b.mp4,run", "a.mp4,run", "c.mp4,background")
    source = ps.Videos(videos, labels=table)
    assert source.problems() == [] and source.classes == ("background", "jump", "run")
    assert source.column("labels").tolist() == [[0, 1, 1]] * 3 + [[0, 0, 1]] * 3 + [[1, 0, 0]] * 3
    table = write(tmp_path, "video,label", "a.mp4,jump", "a.mp4,jump", "b.mp4,run", "c.mp4,run")
    (error,) = errors_of(ps.Videos(videos, labels=table))
    assert "line 3: a.mp4 has jump for a second time" in error


def test_patterns_of_label_files_may_have_wildcards(tmp_path: Path) -> None:
    videos = [write_video(tmp_path / f"{name}.mp4", 3) for name in ("m1", "m10")]
    (tmp_path / "labels").mkdir()
    write(tmp_path / "labels", "groom", "1", "0", "0", name="m1_final.csv")
    write(tmp_path / "labels", "groom", "0", "0", "1", name="m10_final.csv")
    source = ps.Videos(videos, labels=str(tmp_path / "labels" / "{stem}*"))
    assert source.problems() == []
    assert source.column("labels")[:, 1].tolist() == [1, 0, 0, 0, 0, 1]
    write(tmp_path / "labels", "groom", "0", "0", "1", name="m10_other.csv")
    (error,) = errors_of(ps.Videos(videos, labels=str(tmp_path / "labels" / "{stem}*")))
    assert "m10 has labels from two tables" in error


def test_lines_without_a_stop_come_in_order(mouse: Path) -> None:
    rows = [f"0.{30 - number},mouse.mp4,0.4,25,,b{number},,,,START" for number in range(5)]
    problems = ps.Videos(mouse, labels=write(mouse.parent, BORIS_HEADER, *rows)).problems()
    assert [problem.row for problem in problems] == [2, 3, 4, 5, 6]


# Files of other programs


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("mouse.boris", '{"time_format": "hh:mm:ss", "project_format_version": "7.0"}', "a BORIS project"),
        ("project.csv", '{"behaviors_conf": {}, "observations": {}}', "a BORIS project"),
        ("mouse.annot", "Bento annotation file\nMovie file(s):\n", "a BENTO annotation file"),
        ("mouse.txt", "Bento annotation file\nMovie file(s):\n", "a BENTO annotation file"),
        ("mouse.xlsx", "PK\x03\x04rest", "a spreadsheet"),
        ("mouse.csv", "PK\x03\x04rest", "a spreadsheet"),
        ("mouse.dat", "FirstLineOfData=4\n", "a file of JWatcher"),
        ("mouse.otx", "<x/>", "a file of The Observer"),
        ("mouse.eaf", "<x/>", "an ELAN annotation document"),
        ("mouse.json", '{"file": "a", "labels": {}}', "JSON"),
        ("mouse.tsv", "<html></html>", "a web page"),
    ],
)
def test_a_file_of_another_program_is_named_in_one_line(mouse: Path, name: str, content: str, words: str) -> None:
    (mouse.parent / name).write_text(content)
    problems = ps.Videos(mouse, labels=mouse.parent / name).problems()
    assert len(problems) == 1 and words in problems[0].what and not problems[0].warning
    assert "pass that file" in problems[0].remedy


def test_a_file_of_another_program_is_found_in_a_folder(tmp_path: Path) -> None:
    video = write_video(tmp_path / "mouse.mp4", 3)
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "mouse.annot").write_text("Bento annotation file\n")
    (error,) = errors_of(ps.Videos(video, labels=tmp_path / "labels"))
    assert "BENTO" in error


def test_events_without_a_header_are_one_problem(mouse: Path) -> None:
    rows = [f"first\tmouse.mp4\tgroom\tSTATE\t{number}.5\t{number}.7" for number in range(3)]
    (error,) = errors_of(ps.Videos(mouse, labels=write(mouse.parent, *rows, name="events.tsv")))
    assert "is not a table of labels: 6 of 6 columns" in error


def test_a_table_of_measurements_is_one_problem(mouse: Path) -> None:
    rows = [f"{number * 0.01},{number},{number * 3},7" for number in range(300)]
    table = write(mouse.parent, "gaze_time\tx\ty\tpupil".replace("\t", ","), *rows, name="eye.csv")
    (error,) = errors_of(ps.Videos(mouse, labels=table))
    assert "is not a table of labels: 4 of 4 columns" in error


def test_a_pattern_does_not_take_the_video_beside_its_labels_for_labels(tmp_path: Path) -> None:
    video = write_video(tmp_path / "m1.mp4", 4)
    (tmp_path / "m1_labels.csv").write_text("groom\n1\n0\n1\n0\n")
    source = ps.Videos([video], labels=str(tmp_path / "{stem}*"))
    assert [problem for problem in source.problems() if not problem.warning] == []
    assert "groom" in source.classes
