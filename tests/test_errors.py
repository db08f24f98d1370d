"""Errors: what a user reads, what survives a process boundary, and which exit code follows."""

from __future__ import annotations

import pickle

import pytest

import penstock as ps
from penstock.errors import (
    DataError,
    HopError,
    MissingExtra,
    OptionError,
    PackError,
    PenstockError,
    Problem,
    nearest,
    one_of,
    require,
)


def test_a_problem_says_where_what_and_what_next() -> None:
    problem = Problem("crowns.csv", 214, "xmax 4210 is outside flight_07.tif (4096 wide)", "Fix the row")
    assert str(problem) == "crowns.csv line 214: xmax 4210 is outside flight_07.tif (4096 wide). Fix the row."


def test_a_problem_of_a_whole_file_names_no_line() -> None:
    assert str(Problem("a.jpg", None, "the file is empty", "Replace it.")) == "a.jpg: the file is empty. Replace it."


def test_a_problem_without_a_remedy_ends_with_one_full_stop() -> None:
    assert str(Problem("a.jpg", None, "the file is empty", "")) == "a.jpg: the file is empty."


def test_a_question_keeps_its_mark() -> None:
    assert str(Problem("a.csv", None, "no column 'lable'", "Did you mean 'label'?")).endswith("'label'?")


@pytest.mark.parametrize("file", ["boxes.json", "crowns.gpkg", "table.parquet", "DataFrame"])
def test_files_without_lines_have_records(file: str) -> None:
    assert f"{file} record 3:" in str(Problem(file, 3, "wrong", ""))


def test_a_data_error_shows_five_problems_and_keeps_all() -> None:
    problems = [Problem("a.csv", row, "bad", "Fix it") for row in range(2, 1010)]
    error = DataError(problems)
    lines = str(error).splitlines()
    assert lines[:2] == ["a.csv line 2: bad. Fix it.", "a.csv line 3: bad. Fix it."]
    assert lines[5:] == ["… and 1,003 more; penstock check --json lists all."]
    assert error.problems == tuple(problems)


def test_a_data_error_of_five_problems_hides_none() -> None:
    assert "more" not in str(DataError([Problem("a.csv", row, "bad", "Fix it") for row in range(5)]))


def test_a_hop_error_names_hop_sample_and_remedy() -> None:
    error = HopError("decode", "sample 3 (a.jpg)", "the file is empty.", "Remove it.")
    assert str(error) == "sample 3 (a.jpg): decode failed: the file is empty. Remove it."


@pytest.mark.parametrize(
    "error",
    [
        DataError([Problem("a.csv", 2, "bad", "Fix it", unreadable=True)]),
        HopError("read", "sample 3", "gone", "Bring it back."),
        OptionError("size '3' is not WIDTHxHEIGHT."),
        PackError("x.pack does not exist."),
        MissingExtra("needs av."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_through_pickle_unchanged(error: PenstockError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


def test_exit_codes_are_those_of_the_contract() -> None:
    codes = {kind: kind.exit_code for kind in (OptionError, DataError, PackError, HopError, MissingExtra)}
    assert codes == {OptionError: 2, DataError: 3, PackError: 4, HopError: 3, MissingExtra: 2}


def test_python_users_can_catch_the_usual_types() -> None:
    assert issubclass(OptionError, ValueError)
    assert issubclass(MissingExtra, ImportError)


def test_require_gives_the_module() -> None:
    assert require("json.decoder", "geo", "Reading").JSONDecoder


def test_a_missing_library_is_named_with_its_pip_line() -> None:
    with pytest.raises(MissingExtra) as caught:
        require("no_such_library.errors", "geo", "Reading rasters")
    assert str(caught.value) == "Reading rasters needs no_such_library. Run: pip install 'penstock[geo]'"


def test_a_library_that_is_there_but_broken_is_not_called_missing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("library")
    (folder / "broken_library.py").write_text("import something_that_it_needs\n")
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(ModuleNotFoundError, match="something_that_it_needs") as caught:
        require("broken_library", "geo", "Reading")
    assert not isinstance(caught.value, MissingExtra)


@pytest.mark.parametrize(
    ("word", "legal", "meant"),
    [
        ("OSBS_29.png", ["OSBS_290.png", "OSBS_029.png", "OSBS_129.png"], "OSBS_029.png"),
        ("A.jpg", ["b.png", "a.png"], "a.png"),
        ("Patch Size", ["batch_size", "patch_size"], "patch_size"),
        ("tree", ["Bush", "Tree"], "Tree"),
    ],
)
def test_the_nearest_name_is_really_the_nearest(word: str, legal: list[str], meant: str) -> None:
    assert nearest(word, legal) == f" Did you mean {meant!r}?"


def test_nearest_names_the_word_that_was_meant_or_nothing() -> None:
    assert nearest("lonest_side", ["longest_side", "size"]) == " Did you mean 'longest_side'?"
    assert nearest("xyz", ["longest_side", "size"]) == ""


def test_one_of_returns_a_legal_value_and_lists_the_legal_ones_otherwise() -> None:
    assert one_of("fit", "pad", ("stretch", "pad")) == "pad"
    with pytest.raises(OptionError, match="fit='padd' is not one of stretch, pad. Did you mean 'pad'?"):
        one_of("fit", "padd", ("stretch", "pad"))


def test_the_old_name_of_option_errors_still_catches_them() -> None:
    assert ps.RecipeError is ps.OptionError
    with pytest.raises(ps.RecipeError):
        ps.Field("key", "text")
