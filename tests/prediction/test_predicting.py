"""Prediction: what it takes, what it gives, and that nothing but the image decides an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import penstock as ps
from made_sources import Pictures
from shape_making import SHAPES, Shapes


def test_a_folder_gives_a_row_for_each_image_in_natural_order(run: ps.Run, photos: Path) -> None:
    table = ps.predict(run, photos)
    assert list(table.columns) == ["image_path", "label", "score", *SHAPES]
    assert [Path(path).name for path in table["image_path"]][:6] == [f"photo_{number}.png" for number in range(15, 21)]
    assert table["image_path"].iloc[-1] == str(photos / "photo_14.png")
    assert set(table["label"]) <= set(SHAPES)
    assert table[list(SHAPES)].sum(axis=1).to_numpy() == pytest.approx(1)
    assert (table["score"] == table[list(SHAPES)].max(axis=1)).all()


def test_files_folders_patterns_and_lists_are_answered_alike(run: ps.Run, photos: Path) -> None:
    whole = ps.predict(run, photos).set_index("image_path")
    one = str(photos / "photo_3.png")
    for data in (one, Path(one), [one], str(photos / "photo_3*"), [photos / "more", one]):
        table = ps.predict(run, data).set_index("image_path")
        pd.testing.assert_frame_equal(table, whole.loc[table.index], check_exact=True)
        assert one in table.index


def test_a_pack_and_its_source_are_answered_alike(run: ps.Run, tmp_path: Path) -> None:
    pack = ps.pack(Shapes(20), tmp_path / "shapes.pack", split="val", progress=False)
    expected = ps.predict(run, Shapes(20))
    for data in (pack, pack.path, pack.split("val")):
        pd.testing.assert_frame_equal(ps.predict(run, data), expected, check_exact=True)


@pytest.mark.parametrize("options", [{"batch_size": 1}, {"batch_size": 7}, {"batch_size": 64}, {"workers": 2}])
def test_answers_depend_on_neither_batch_size_nor_workers(run: ps.Run, photos: Path, options: dict[str, Any]) -> None:
    expected = ps.predict(run, photos, workers=0)
    pd.testing.assert_frame_equal(ps.predict(run, photos, **options), expected, check_exact=True)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_that_is_written_is_the_one_that_is_given(
    run: ps.Run, photos: Path, tmp_path: Path, ending: str
) -> None:
    path = ps.predict(run, photos, output=tmp_path / f"labels.{ending}", batch_size=8)
    assert path == tmp_path / f"labels.{ending}"
    read = {
        "csv": pd.read_csv,
        "parquet": pd.read_parquet,
        "jsonl": lambda path: pd.DataFrame(map(json.loads, Path(path).read_text("utf-8").splitlines())),
    }[ending]
    pd.testing.assert_frame_equal(read(path), ps.predict(run, photos), check_exact=True, check_dtype=False)
    assert [file.name for file in tmp_path.iterdir()] == [f"labels.{ending}"]


def test_a_prediction_that_fails_leaves_no_table(run: ps.Run, tmp_path: Path) -> None:
    with pytest.raises(ps.HopError, match="pictures/30"):
        ps.predict(run, Pictures(50, broken=(30,)), output=tmp_path / "labels.csv", batch_size=8, workers=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["labels", "labels.xlsx", "missing/labels.csv"])
def test_a_wrong_output_is_said_before_anything_is_read(run: ps.Run, photos: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ps.OptionError, match="must end in|there is no folder"):
        ps.predict(run, photos / "nothing", output=tmp_path / name)


def test_files_that_cannot_be_read_raise_or_are_listed(run: ps.Run) -> None:
    source = Pictures(20, broken=(0, 5, 19))
    with pytest.raises(ps.HopError, match="pictures/0.*pass on_bad_sample='skip' to leave it out"):
        ps.predict(run, source, workers=0)
    table = ps.predict(run, source, on_bad_sample="skip")
    assert len(table) == 20
    bad = table[table["problem"] != ""]
    assert bad.index.tolist() == [0, 5, 19]
    assert (bad["label"] == "").all()
    assert bad["score"].isna().all()
    good = ps.predict(run, Pictures(20))
    pd.testing.assert_frame_equal(
        table.drop(columns="problem").drop(index=[0, 5, 19]), good.drop(index=[0, 5, 19]), check_exact=True
    )


def test_labels_of_the_data_need_not_be_known_to_the_model(run: ps.Run) -> None:
    assert len(ps.predict(run, Pictures(6))) == 6  # of the classes a, b and c


@pytest.mark.parametrize(
    ("data", "words"),
    [("nothing/here", "no such file"), ([], "no image"), (3, "not int")],
)
def test_what_is_no_data_is_said(run: ps.Run, data: Any, words: str) -> None:
    with pytest.raises(ps.PenstockError, match=words):
        ps.predict(run, data)


def test_wrong_options_name_the_legal_ones(run: ps.Run, photos: Path) -> None:
    with pytest.raises(ps.OptionError, match="batch_size=0"):
        ps.predict(run, photos, batch_size=0)
    with pytest.raises(ps.OptionError, match="raise, skip"):
        ps.predict(run, photos, on_bad_sample="ignore")  # type: ignore[arg-type]
