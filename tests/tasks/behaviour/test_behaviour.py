"""Behaviour: settings, data that fit or not, weights of losses, and labels that are not known."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.samples import Concat, Subset  # noqa: E402
from penstock.tasks.behaviour.losses import behaviour_losses, single_labels  # noqa: E402
from penstock.tasks.kinds import task_from  # noqa: E402
from tasks.behaviour.frames_source import Frames, random_frames  # noqa: E402

NAMES = ("background", "walk", "rear")


def frames(labels: Any, **options: Any) -> Frames:
    return Frames(random_frames(len(labels), **options), labels, behaviours=NAMES)


def fitted(labels: Any, **settings: Any) -> ps.Behaviour:
    return ps.Behaviour(size="tiny", **settings).fitted_to(frames(labels))


def test_settings_survive_json_and_pickle() -> None:
    task = fitted([[1, 0, 0], [0, 1, 0]], score_thresholds=(0.5, 0.4, 0.3), min_bout_frames=(1, 2, 3))
    assert task_from("behaviour", json.loads(json.dumps(task.settings()))) == task
    assert pickle.loads(pickle.dumps(task)) == task
    stage = task.stage("frames", "somewhere.ckpt")
    assert task_from(stage.kind, json.loads(json.dumps(stage.settings()))) == stage


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size": "huge"}, "size"),
        ({"image_size": (250, 200)}, "nearest legal size is 256x192"),
        ({"behaviours": ("walk", "walk")}, "more than once"),
        ({"behaviours": ("background",)}, "nothing but background"),
        ({"frames": 2}, "frames=2"),
        ({"flip": 2.0}, "flip"),
        ({"behaviours": NAMES, "score_thresholds": (0.5,)}, "1 numbers for 3 behaviours"),
        ({"min_bout_frames": "many"}, "min_bout_frames"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ps.OptionError, match=words):
        ps.Behaviour(**settings)


def test_frames_of_an_illegal_size_are_refused_with_the_nearest_legal_one() -> None:
    source = Frames(random_frames(2, width=100, height=70), [[1, 0, 0]] * 2, behaviours=NAMES)
    with pytest.raises(ps.DataError, match=r"legal size is 96x64\. Pack with"):
        ps.Behaviour().fitted_to(source)
    assert ps.Behaviour(image_size=(96, 64)).fitted_to(source).image_size == (96, 64)


@pytest.mark.parametrize("size", [(352, 224), [352, 224], "352x224", " 352X224"])
def test_the_size_that_networks_see_is_written_as_that_of_a_pack(size: Any) -> None:
    assert ps.Behaviour(image_size=size).image_size == (352, 224)


@pytest.mark.parametrize(
    ("written", "own"), [("deg_f", "fast"), ("DEG_m", "medium"), ("Deg_S", "slow"), ("Tiny", "tiny")]
)
def test_sizes_have_the_names_of_deepethogram_too(written: str, own: str) -> None:
    assert ps.Behaviour(size=written).size == own
    with pytest.raises(ps.OptionError, match=r"deg_f \(fast\), deg_m \(medium\), deg_s \(slow\)"):
        ps.Behaviour(size="deg_x")


def test_clips_are_mirrored_as_the_project_of_the_data_says() -> None:
    source = frames([[1, 0, 0], [0, 1, 0]])
    assert ps.Behaviour(size="tiny").fitted_to(source).flip == 0.5
    source.made_from = lambda: {"deepethogram": "mice", "flip": 0.0}  # type: ignore[attr-defined]
    assert ps.Behaviour(size="tiny").fitted_to(Subset(source, [1, 0])).flip == 0.0
    assert ps.Behaviour(size="tiny", normalize="imagenet").fitted_to(Concat([frames([[1, 0, 0]]), source])).flip == 0.0
    assert ps.Behaviour(size="tiny", flip=0.3).fitted_to(source).flip == 0.3


def test_two_behaviours_at_once_are_named_where_only_one_may_be() -> None:
    source = frames([[1, 0, 0], [0, 1, 1]])
    ps.Behaviour(behaviours=NAMES).check(source, "training")
    with pytest.raises(ps.DataError, match=r"a#1.*walk and rear at once"):
        ps.Behaviour(behaviours=NAMES, exclusive=True).check(source, "training")


def test_data_without_any_label_are_refused() -> None:
    with pytest.raises(ps.DataError, match="no frame has a label"):
        ps.Behaviour(behaviours=NAMES).check(frames([[-1, -1, -1]] * 2), "training")


def test_rare_behaviours_count_more_and_the_bias_says_how_often_they_are() -> None:
    task = fitted([[1, 0, 0]] * 12 + [[0, 1, 0]] * 4 + [[-1, -1, -1]] * 5)
    assert task.counts == ((12, 4), (4, 12), (0, 16))
    assert task.class_weights[1] == pytest.approx(3**0.25)
    assert task.first_bias[0] == pytest.approx(math.log(3))
    assert task.stage("frames").network().frames.bias[0].item() == pytest.approx(math.log(3))


def test_a_behaviour_that_never_occurs_is_named_and_does_not_hinder() -> None:
    task = fitted([[1, 0, 0], [0, 1, 0]])
    assert task.remarks() == ["rear never occurs in the training data, so it cannot be learned."]
    assert np.isfinite(task.class_weights).all()


def test_a_behaviour_that_validation_lacks_is_named_with_what_follows() -> None:
    task = fitted([[1, 0, 0], [0, 1, 0]])
    learned, *others = task.remarks(frames([[1, 0, 0], [-1, -1, -1]]))
    assert learned.startswith("rear never occurs in the training data")
    lacks = "walk occurs in the training data, but not in the validation data"
    assert others == [f"{lacks}: it has no score, and its threshold stays 0.5."]
    chosen = replace(task, score_thresholds=(0.5, 0.4, 0.5))
    assert chosen.remarks(frames([[1, 0, 0]]))[1].endswith("validation data: it has no score.")
    assert task.remarks(frames([[1, 0, 0], [0, 1, 0]])) == [learned]


def test_labels_that_are_not_known_count_for_nothing_element_by_element() -> None:
    task = fitted([[1, 0, 0], [0, 1, 0]])
    logits = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    behaviour_losses(task, logits, torch.tensor([[1, -1, 0], [-1, -1, -1]])).mean().backward()
    assert ((logits.grad != 0) == torch.tensor([[True, False, True], [False, False, False]])).all()


def test_one_behaviour_a_frame_is_background_where_there_is_no_other() -> None:
    labels = torch.tensor([[0, 1, 0], [0, 0, 0], [0, -1, 0], [-1, -1, 1]])
    assert single_labels(labels, 0).tolist() == [1, 0, -1, 2]
    assert single_labels(labels, None).tolist() == [1, -1, -1, 2]


def test_probabilities_are_of_each_behaviour_or_of_one_of_them() -> None:
    logits = np.array([[0.0, 2.0, -2.0]], np.float32)
    several = ps.Behaviour(behaviours=NAMES).probabilities(logits)
    single = ps.Behaviour(behaviours=NAMES, exclusive=True).probabilities(logits)
    assert np.allclose(several, torch.tensor(logits).sigmoid().numpy())
    assert np.allclose(single, torch.tensor(logits).softmax(dim=1).numpy())


def test_clips_without_a_label_in_the_middle_are_left_out() -> None:
    labels = [[1, 0, 0]] * 3 + [[-1, -1, -1]] * 4 + [[0, -1, 1]] * 2
    task = fitted(labels, frames=3)
    batch = next(iter(task.stage("frames").evaluation_flow(frames(labels), workers=0).batch(20)))
    assert batch["label"].tolist() == [*[[1, 0, 0]] * 3, *[[0, -1, 1]] * 2]
    assert batch["image"].shape == (5, 3, 32, 64, 3)


def test_background_may_be_left_out() -> None:
    source = frames([[1, 0, 0], [0, 1, 0], [0, -1, 1]])
    task = ps.Behaviour(behaviours=("rear", "walk"), size="tiny")
    task.check(source, "training")
    assert task.fitted_to(source).labels_of(source).tolist() == [[0, 0], [0, 1], [1, -1]]
