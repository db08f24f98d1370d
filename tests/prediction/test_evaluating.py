"""Evaluation: scores of the whole set, and a row for each sample."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import penstock as ps
from shape_making import SHAPES, Shapes


def test_scores_are_those_of_the_table(run: ps.Run) -> None:
    found = ps.evaluate(run, Shapes(30))
    table = found.table
    assert list(table.columns) == ["image_path", "label", "score", "truth", "loss", *SHAPES]
    assert found.scores["accuracy"] == pytest.approx((table["label"] == table["truth"]).mean())
    assert table["truth"].tolist() == list(SHAPES) * 10
    confusion = pd.crosstab(table["truth"], table["label"]).reindex(SHAPES, columns=list(SHAPES), fill_value=0)
    assert found.details["confusion"] == confusion.to_numpy().tolist()


def test_scores_are_those_that_training_logged(run: ps.Run) -> None:
    logged = run.scores("last")
    found = ps.evaluate(ps.load(run, which="last"), Shapes(24, first=1000)).scores
    assert found["accuracy"] == pytest.approx(logged["accuracy"])
    assert found["auroc"] == pytest.approx(logged["auroc"], abs=0.02)


@pytest.mark.parametrize("batch_size", [1, 9, 64])
def test_scores_do_not_depend_on_the_batch_size(run: ps.Run, batch_size: int) -> None:
    expected, found = ps.evaluate(run, Shapes(30)), ps.evaluate(run, Shapes(30), batch_size=batch_size)
    assert found.scores == expected.scores
    pd.testing.assert_frame_equal(found.table, expected.table, check_exact=True)


def test_a_split_of_a_pack_is_evaluated(run: ps.Run, tmp_path: Path) -> None:
    pack = ps.pack(Shapes(30), tmp_path / "shapes.pack", split="train=0.5,val=0.5", progress=False)
    whole, part = ps.evaluate(run, pack.path), ps.evaluate(run, str(pack.path), split="val")
    assert len(whole.table) == 30
    assert len(part.table) == len(pack.split("val"))
    pd.testing.assert_frame_equal(part.table, ps.evaluate(run, pack.split("val")).table)
    with pytest.raises(ps.OptionError, match="no split 'test'"):
        ps.evaluate(run, pack, split="test")


def test_classes_in_another_order_are_the_same_classes(run: ps.Run, tmp_path: Path) -> None:
    class Turned(Shapes):
        schema = ps.Schema(Shapes.schema.fields, ("square", "circle", "cross"))

        def annotations(self, index: int) -> dict[str, object]:
            sample = super().annotations(index)
            return {**sample, "label": (int(sample["label"]) + 1) % 3}

    assert ps.evaluate(run, Turned(30)).scores == ps.evaluate(run, Shapes(30)).scores


def test_what_cannot_be_evaluated_is_said(run: ps.Run) -> None:
    class Others(Shapes):
        schema = ps.Schema(Shapes.schema.fields, ("circle", "cross", "star"))

    with pytest.raises(ps.DataError, match="10 samples are of class 'star'"):
        ps.evaluate(run, Others(30))
    with pytest.raises(ps.DataError, match="no samples for evaluation"):
        ps.evaluate(run, ps.Subset(Shapes(30), []))


def test_an_evaluation_is_written(run: ps.Run, tmp_path: Path) -> None:
    found = ps.evaluate(run, Shapes(9))
    content = json.loads(found.save(tmp_path / "scores.json").read_text("utf-8"))
    assert content["scores"] == found.scores
    assert content["details"]["classes"] == list(SHAPES)
    pd.testing.assert_frame_equal(pd.read_csv(found.save(tmp_path / "rows.csv")), found.table, check_dtype=False)
    assert f"accuracy           {found.scores['accuracy']:.4f}" in str(found)
