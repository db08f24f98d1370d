"""What one verb refuses, every verb refuses: no verb completes with other counts than it reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from commands import run_here
from damage_making import UNREADABLE, WRONG, Opened, box_table, image_table
from penstock.errors import DataError, HopError, PackError, PenstockError
from picture_making import write_picture

# What is refused is refused as the user's files, not as an option, a bug or a lack of memory.
REFUSALS = (DataError, HopError, PackError)


def pack(opened: Opened, folder: Path) -> None:
    ps.pack(opened(), folder / "out.pack")


def export_to(to: str) -> Callable[[Opened, Path], None]:
    return lambda opened, folder: ps.export(opened(), folder / "out", to=to) and None


def flow(opened: Opened, folder: Path) -> None:
    for _ in ps.Flow(opened(), workers=0).batch(2, shapes="ragged"):
        pass


def shuffled_flow(opened: Opened, folder: Path) -> None:
    next(iter(ps.mix([ps.Flow(opened(), workers=0).shuffle()]).batch(1, shapes="ragged").repeat()))


def samples(opened: Opened, folder: Path) -> None:
    source = opened()
    for index in range(len(source)):
        source[index]


def module(opened: Opened, folder: Path) -> None:
    task = _task(opened())
    ps.module_for(task.stage("frames") if isinstance(task, ps.Behaviour) else task, opened())


def train(opened: Opened, folder: Path) -> None:
    ps.train(_task(opened()), opened(), folder=folder / "run", epochs=1, fast_dev_run=True, logger=False)


def _task(source: ps.Source) -> Any:
    kinds = {field.kind for field in source.schema.fields}
    if "boxes" in kinds:
        return ps.Detection(source.schema.classes, backbone="tiny", size=64)
    if "class" in kinds:
        return ps.Classification(source.schema.classes, backbone="tiny", size=32)
    return ps.Behaviour(source.schema.classes, size="tiny", normalize="imagenet")


VERBS: dict[str, Callable[[Opened, Path], None]] = {
    "pack": pack,
    "export": export_to("tfrecord"),
    "Flow": flow,
    "shuffled Flow": shuffled_flow,
    "source[i]": samples,
    "train": train,
    "module_for": module,
}


def is_refused(verb: Callable[[Opened, Path], None], opened: Opened, folder: Path) -> bool:
    try:
        verb(opened, folder)
    except REFUSALS:
        return True
    return False


@pytest.mark.parametrize("damage", WRONG)
def test_a_wrong_annotation_is_refused_by_every_verb(damage: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    opened = WRONG[damage](tmp_path / "data")
    assert is_refused(_need_ok, opened, tmp_path), "the case is not one that check knows"
    done = [name for name, verb in VERBS.items() if not is_refused(verb, opened, tmp_path / name)]
    assert not done, f"check refuses these data, and {', '.join(done)} did not"


def _need_ok(opened: Opened, folder: Path) -> None:
    found = ps.check(opened())
    if not found.ok:
        raise DataError(found.errors)


@pytest.mark.parametrize("damage", UNREADABLE)
def test_an_unreadable_sample_is_refused_by_every_verb(damage: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    opened = UNREADABLE[damage](tmp_path / "data")
    assert is_refused(_need_ok, opened, tmp_path)
    verbs = {name: verb for name, verb in VERBS.items() if name != "shuffled Flow"}  # whose first sample may be good
    done = [name for name, verb in verbs.items() if not is_refused(verb, opened, tmp_path / name)]
    assert done in (
        [],
        ["module_for"],
    )  # which reads no sample: those that only decoding finds come with the first epoch


@pytest.mark.parametrize("damage", UNREADABLE)
def test_a_sample_that_is_skipped_is_counted(damage: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    opened = UNREADABLE[damage](tmp_path / "data")
    packed = ps.pack(opened(), tmp_path / "out.pack", on_bad_sample="skip")
    assert len(packed) + 1 == len(opened())
    exported = ps.export(opened(), tmp_path / "out", to="tfrecord", on_bad_sample="skip")
    assert exported.samples == len(packed) and len(exported.skipped) == 1
    one = ps.Flow(opened(), workers=0, on_bad_sample="substitute").batch(2, shapes="ragged")
    delivered = [index for batch in one for index in batch["index"].tolist()]
    assert len(delivered) == len(opened()) and [bad.index for bad in one.bad_samples] == _bad_indices(opened())


def _bad_indices(source: ps.Source) -> list[int]:
    def fails(index: int) -> bool:
        try:
            source.decode(source.read(index))
        except (OSError, ValueError, PenstockError):
            return True
        return False

    return [index for index in range(len(source)) if fails(index)]


# Data that fit one small model each, so that only the damage can be the reason to refuse.
FITTING = {
    "CSV, a coordinate is not a number": "detection",
    "VOC, cut short": "detection",
    "image table, no label": "classification",
    "subset of a bad table": "detection",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ps.Run]:
    """A tiny Run of each kind, on data without damage."""
    folder = tmp_path_factory.mktemp("runs")
    for name, row in (("boxes", "3.png,5,5,9,9,A,val"), ("images", "3.png,dog")):
        (folder / name).mkdir()
        opened = {"boxes": box_table, "images": image_table}[name](row)(folder / name)
        ps.train(_task(opened()), opened(), folder=folder / f"{name}-run", epochs=1, logger=False, val=None)
    return {"detection": ps.Run(folder / "boxes-run"), "classification": ps.Run(folder / "images-run")}


@pytest.mark.parametrize("damage", FITTING)
def test_trained_models_refuse_a_wrong_annotation(damage: str, runs: dict[str, ps.Run], tmp_path: Path) -> None:
    opened, model = WRONG[damage](tmp_path), runs[FITTING[damage]]
    for verb in (ps.evaluate, ps.predict):
        with pytest.raises(REFUSALS):
            verb(model.folder, opened())
    with pytest.raises(REFUSALS):
        ps.doctor(opened(), seconds=1.0)


def test_show_and_info_tell_of_a_wrong_annotation(tmp_path: Path) -> None:
    WRONG["CSV, a coordinate is not a number"](tmp_path)
    shown = run_here("show", tmp_path / "boxes.csv", 3, "-o", tmp_path / "out.png")
    assert shown.exit_code == 3 and "boxes.csv line 5" in shown.err and not (tmp_path / "out.png").exists()
    assert "1, which every verb refuses" in run_here("info", tmp_path / "boxes.csv").out


def test_a_training_counts_what_it_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In training and in validation, in the log and in the Run, also when the data stay on the device."""
    for number in range(8):
        write_picture(tmp_path / ("cat", "dog")[number % 2] / f"{number}.png", 20, 16, seed=number)
    (tmp_path / "cat" / "2.png").write_bytes(b"")
    bad = ps.Images(tmp_path)
    for preload in (None, "device"):
        run = ps.train(
            ps.Classification(("cat", "dog"), backbone="tiny", size=32),
            (bad, bad),
            folder=tmp_path / f"run-{preload}",
            epochs=1,
            logger=False,
            on_bad_sample="substitute",
            preload=preload,
        )
        assert [row["key"] for row in run.bad_samples()] == ["sample 1 (cat/2.png)"] * 2
        assert "2 samples could not be read; others took their places" in capsys.readouterr().err
