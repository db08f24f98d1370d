"""Models from Runs and files: the same numbers again, and clear words for files that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import penstock as ps
from penstock.tasks.checkpoints import read_checkpoint
from shape_making import SHAPES, Shapes


def test_a_run_its_folder_and_its_checkpoint_give_the_same_model(run: ps.Run) -> None:
    tables = [ps.predict(one, Shapes(12)) for one in (run, run.folder, str(run.folder), run.checkpoint("best"))]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(tables[0], table, check_exact=True)


def test_a_saved_model_answers_the_same_to_the_last_bit(run: ps.Run, tmp_path: Path) -> None:
    model = ps.load(run)
    before = ps.predict(model, Shapes(12))
    restored = ps.load(model.save(tmp_path / "model.safetensors"))
    assert restored.task == model.task
    pd.testing.assert_frame_equal(before, ps.predict(restored, Shapes(12)), check_exact=True)


def test_saved_weights_begin_another_training(run: ps.Run, tmp_path: Path) -> None:
    model = ps.load(run)
    path = model.save(tmp_path / "weights.pth")
    task = ps.Classification(SHAPES, backbone="tiny", size=32, weights=str(path))
    network = task.network()
    task.load_backbone(network, task.pretrained() or {})
    own = model.network.state_dict()
    assert all(torch.equal(value, own[name]) for name, value in network.state_dict().items())


def test_a_checkpoint_begins_another_training(run: ps.Run) -> None:
    task = ps.Classification(("a", "b"), backbone="tiny", size=32, weights=str(run.checkpoint()))
    network = task.network()
    task.load_backbone(network, task.pretrained() or {})
    assert torch.equal(network.features[0][0].weight, ps.load(run).network.features[0][0].weight)


def test_loading_touches_no_generator(run: ps.Run) -> None:
    before = torch.get_rng_state()
    ps.load(run)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("rows", [1, 3, 8, 11])
def test_the_answer_of_a_row_does_not_depend_on_the_others(run: ps.Run, rows: int) -> None:
    model = ps.load(run)
    batch = next(iter(model.task.evaluation_flow(Shapes(24), workers=0).batch(24).to_torch()))
    whole = model.answer(batch)["probabilities"]
    last = {name: value[-rows:] for name, value in batch.items()}
    assert torch.equal(model.answer(last)["probabilities"], whole[-rows:])


class Watched(torch.nn.Module):
    """Remembers how many rows it was shown at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.seen.append(len(images))
        return images.mean(dim=(2, 3))


@pytest.mark.parametrize("rows", [1, 8, 11])
def test_a_network_always_sees_the_same_number_of_rows(rows: int) -> None:
    """Libraries sum in another order for other shapes, so that the last bits of an answer would differ."""
    network = Watched()
    model = ps.Model(ps.Classification(SHAPES, backbone="tiny", size=32), network, device="cpu")
    found = model.answer({"image": torch.zeros(rows, 32, 32, 3), "index": torch.arange(rows)})
    assert len(found["probabilities"]) == rows
    assert set(network.seen) == {model.group_rows}


# Files that are refused


def changed(run: ps.Run, path: Path, **meta: Any) -> Path:
    content = torch.load(run.checkpoint(), weights_only=True)
    content["penstock"].update(meta)
    torch.save(content, path)
    return path


def test_a_checkpoint_that_was_cut_short_is_refused(run: ps.Run, tmp_path: Path) -> None:
    content = run.checkpoint().read_bytes()
    for share in (0.1, 0.9, 0.999):
        path = tmp_path / "cut.ckpt"
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(ps.DataError, match="cut.ckpt.*cut short"):
            ps.load(path)


def test_a_newer_version_is_refused(run: ps.Run, tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="of version 99, and this Penstock reads up to 1.*Update"):
        ps.load(changed(run, tmp_path / "new.ckpt", version=99))


def test_another_task_is_refused(run: ps.Run, tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="'classification', and 'detection' is needed"):
        read_checkpoint(run.checkpoint(), kind="detection")
    path = changed(run, tmp_path / "other.ckpt", task={"kind": "poetry", "settings": {}})
    with pytest.raises(ps.DataError, match="'poetry', which this Penstock does not know"):
        ps.load(path)


def test_settings_that_are_not_understood_are_refused(run: ps.Run, tmp_path: Path) -> None:
    task = {"kind": "classification", "settings": {"classes": ["a"], "wheels": 4}}
    with pytest.raises(ps.DataError, match="not understood.*wheels"):
        ps.load(changed(run, tmp_path / "odd.ckpt", task=task))


def test_weights_of_another_network_are_refused(run: ps.Run, tmp_path: Path) -> None:
    settings = {**ps.load(run).task.settings(), "classes": ["a", "b"]}
    path = changed(run, tmp_path / "odd.ckpt", task={"kind": "classification", "settings": settings})
    with pytest.raises(ps.DataError, match="2 weights do not fit the network: classifier.bias, classifier.weight"):
        ps.load(path)


def test_weights_alone_are_not_a_model(run: ps.Run, tmp_path: Path) -> None:
    torch.save(ps.load(run).network.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(ps.DataError, match="not what they are for"):
        ps.load(tmp_path / "weights.pt")


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    torch.save({"penstock": {"version": 1, "task": ps.Classification(SHAPES, backbone="tiny")}}, tmp_path / "bad.ckpt")
    with pytest.raises(ps.DataError, match="Python objects.*which Penstock does not load"):
        ps.load(tmp_path / "bad.ckpt")


def test_a_place_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="this is no model: the folder has no settings.yaml of a Run"):
        ps.load(tmp_path)
    with pytest.raises(ps.OptionError, match="not int"):
        ps.load(3)  # type: ignore[arg-type]
