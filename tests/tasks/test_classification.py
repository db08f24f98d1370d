"""Classification: settings, data, batches, network."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.tasks.kinds import task_from  # noqa: E402
from shape_making import SHAPES, Shapes  # noqa: E402

TASK = ps.Classification(SHAPES, backbone="tiny", size=32)


class Boxed:
    """Beside image and class there are fields that a classifier has no use for, and several labels."""

    schema = ps.Schema(
        (
            ps.Field("photo", "image"),
            ps.Field("kind", "class"),
            ps.Field("boxes", "boxes"),
            ps.Field("caption", "text"),
            ps.Field("tags", "labels", "int8", (3,)),
        ),
        ("square", "circle", "cross"),
    )

    def __init__(self, count: int = 9) -> None:
        self.shapes = Shapes(count)

    def __len__(self) -> int:
        return len(self.shapes)

    def read(self, index: int) -> ps.Raw:
        return self.shapes.read(index)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        own = (raw.index + 1) % 3  # circle, cross, square have the numbers 1, 2, 0 here
        tags = np.array([own == 0, own == 1, own == 2], np.int8)
        tags[2] = -1 if raw.index == 4 else tags[2]
        boxes = np.zeros((raw.index % 3, 4), np.float32)
        return {"photo": raw.data, "kind": own, "boxes": boxes, "caption": f"a {raw.index}", "tags": tags}


def batches_of(flow: Any, size: int = 6) -> list[dict[str, Any]]:
    return list(flow.batch(size).to_torch())


# Settings


def test_settings_as_json_give_an_equal_task() -> None:
    task = ps.Classification(
        ["a", "b"],
        backbone="tiny",
        size=64,
        class_weights=[1, 2.5],
        focal=2.0,
        normalize=((1, 2, 3), (4, 5, 6)),
        tta=True,
    )
    assert task_from(task.kind, json.loads(json.dumps(task.settings()))) == task


def test_a_task_can_be_pickled_copied_and_hashed() -> None:
    assert pickle.loads(pickle.dumps(TASK)) == copy.deepcopy(TASK) == TASK
    assert hash(TASK) == hash(copy.deepcopy(TASK))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backbone": "resnet19"}, "Did you mean 'resnet1"),
        ({"size": 8}, "size=8 must be a whole number from 16"),
        ({"classes": "cat"}, "must be a list of names"),
        ({"classes": ("a", "b", "a")}, "has a more than once"),
        ({"class_weights": "balance"}, "must be none, balanced"),
        ({"class_weights": (1.0,)}, "has 1 numbers for 3 classes"),
        ({"label_smoothing": 2}, "label_smoothing=2 must be a number from 0 to 1"),
        ({"flip": True}, "flip=True must be a number"),
        ({"normalize": "imagenett"}, "Did you mean 'imagenet'"),
        ({"crop_scale": (0.5, 2.0)}, "scale"),
    ],
)
def test_a_wrong_setting_is_said_when_the_task_is_made(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ps.OptionError, match=words):
        ps.Classification(**{"classes": SHAPES, "backbone": "tiny", **options})


# Data that fit or not


def test_data_that_fit_are_taken() -> None:
    for purpose in ("training", "evaluation", "prediction"):
        TASK.check(Shapes(9), purpose)


def test_a_class_that_the_model_does_not_have_is_an_error_with_its_samples() -> None:
    task = ps.Classification(("circle", "squares"), backbone="tiny", size=32)
    with pytest.raises(ps.DataError) as caught:
        task.check(Shapes(9), "evaluation")
    assert "3 samples are of class 'cross', which the model does not have" in str(caught.value)
    assert "Did you mean 'squares'" in str(caught.value)
    task.check(Shapes(9), "prediction")


def test_a_class_without_samples_is_no_trouble() -> None:
    two = ps.Subset(Shapes(9), [0, 1, 3, 4])
    ps.Classification(("cross", "circle"), backbone="tiny", size=32).check(two, "training")


def test_one_class_only_cannot_be_learned() -> None:
    with pytest.raises(ps.DataError, match="all labelled samples are of one class, 'circle'"):
        TASK.check(ps.Subset(Shapes(9), [0, 3, 6]), "training")
    TASK.check(ps.Subset(Shapes(9), [0, 3, 6]), "evaluation")


def test_an_empty_split_is_an_error() -> None:
    for purpose in ("training", "evaluation", "prediction"):
        with pytest.raises(ps.DataError, match=f"no samples for {purpose}"):
            TASK.check(ps.Subset(Shapes(9), []), purpose)


def test_data_without_labels_name_the_fields_that_are_there() -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32, multi_label=True)
    with pytest.raises(ps.DataError, match=r"no field with a vector of labels.*label \(class\)"):
        task.check(Shapes(9), "training")


# What is taken from the training data


def test_classes_and_weights_are_taken_from_the_training_data() -> None:
    source = ps.Subset(Shapes(9), [0, 3, 6, 1, 4, 2])  # three circles, two crosses, one square
    task = ps.Classification(backbone="tiny", size=32, class_weights="balanced").fitted_to(source)
    assert task.classes == SHAPES
    assert task.class_weights == pytest.approx((2 / 3, 1.0, 2.0))


def test_balanced_weights_before_they_are_known_are_an_error() -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32, class_weights="balanced")
    with pytest.raises(ps.OptionError, match="fitted_to"):
        task.loss(task.network(), batches_of(task.evaluation_flow(Shapes(6), workers=0))[0])


# Batches


def test_batches_of_training_are_levels_and_belong_to_their_labels() -> None:
    for batch in batches_of(TASK.training_flow(Shapes(12), seed=3, workers=0)):
        assert batch["image"].shape == (6, 32, 32, 3)
        assert batch["image"].dtype == torch.uint8
        assert (batch["label"] == batch["index"] % 3).all()


def test_evaluation_has_nothing_random() -> None:
    first, second = (batches_of(TASK.evaluation_flow(Shapes(6), workers=0))[0] for _ in range(2))
    assert first["index"].tolist() == list(range(6))
    assert torch.equal(first["image"], second["image"])


@pytest.mark.parametrize("executor", ["thread", "subprocess"])
def test_training_batches_are_the_same_bits_however_they_are_made(executor: str) -> None:
    plain = batches_of(TASK.training_flow(Shapes(12), seed=3, workers=0))
    other = batches_of(TASK.training_flow(Shapes(12), seed=3, workers=2, executor=executor))
    assert all(torch.equal(one["image"], two["image"]) for one, two in zip(plain, other, strict=True))


def test_labels_follow_the_classes_of_the_task_and_other_fields_stay_away() -> None:
    batch = batches_of(TASK.evaluation_flow(Boxed(), workers=0), 9)[0]
    assert batch["label"].tolist() == [0, 1, 2] * 3
    assert {"image", "label", "index"} == batch.keys()


def test_labels_of_a_pack_follow_the_classes_of_the_task(tmp_path: Any) -> None:
    pack = ps.pack(Shapes(9), tmp_path / "shapes.pack", split="train", progress=False)
    task = ps.Classification(("square", "circle", "cross"), backbone="tiny", size=32)
    own, other = (batches_of(one.evaluation_flow(pack.split("train"), workers=0), 9)[0] for one in (TASK, task))
    assert other["label"].tolist() == [(label + 1) % 3 for label in own["label"].tolist()]
    assert torch.equal(own["image"], other["image"])


def test_several_labels_follow_the_classes_of_the_task() -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32, multi_label=True)
    task.check(Boxed(), "training")
    batch = batches_of(task.evaluation_flow(Boxed(), workers=0), 9)[0]
    assert batch["label"][:3].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert batch["label"][4].tolist() == [0, -1, 0]
    assert torch.isfinite(task.loss(task.network(), batch)["loss"])


def test_labels_of_unknown_classes_are_left_out_of_prediction() -> None:
    task = ps.Classification(("circle", "star"), backbone="tiny", size=32)
    assert "label" not in batches_of(task.evaluation_flow(Shapes(6), workers=0))[0]


# On the device


def test_colours_follow_from_the_sample_and_not_from_the_batch() -> None:
    batch = batches_of(TASK.training_flow(Shapes(12), seed=3, workers=0), 12)[0]
    whole = TASK.augment(batch, seed=3, epoch=2)["image"]
    rows = torch.tensor([7, 2, 9])
    part = TASK.augment({name: value[rows] for name, value in batch.items()}, seed=3, epoch=2)["image"]
    assert torch.equal(whole[rows], part)
    assert not torch.equal(whole, TASK.augment(batch, seed=3, epoch=3)["image"])
    assert not torch.equal(whole, TASK.augment(batch, seed=4, epoch=2)["image"])


def test_colours_stay_in_their_range_and_touch_no_generator() -> None:
    batch = batches_of(TASK.training_flow(Shapes(6), seed=3, workers=0))[0]
    before = torch.get_rng_state()
    task = ps.Classification(SHAPES, backbone="tiny", size=32, colour=0.9, hue=0.5)
    changed = task.augment(batch, seed=1, epoch=0)["image"]
    assert changed.shape == batch["image"].shape
    assert 0 <= changed.min() <= changed.max() <= 1
    assert torch.equal(before, torch.get_rng_state())


def test_without_augmentation_training_sees_what_evaluation_sees() -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32, augmentation=False)
    training = batches_of(task.training_flow(Shapes(6), seed=3, workers=0))[0]
    evaluation = batches_of(task.evaluation_flow(Shapes(6), workers=0))[0]
    assert torch.equal(training["image"], evaluation["image"][training["index"]])
    assert task.augment(training, seed=1, epoch=0) is training


def test_levels_and_floats_are_normalised_alike() -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32, normalize=((10, 20, 30), (2, 4, 5)))
    levels = torch.full((1, 2, 2, 3), 40, dtype=torch.uint8)
    expected = torch.tensor([15.0, 5.0, 2.0]).view(1, 3, 1, 1).expand(1, 3, 2, 2)
    torch.testing.assert_close(task.inputs({"image": levels}), expected)
    torch.testing.assert_close(task.inputs({"image": levels / 255}), expected)


# Answers


def test_mirror_images_are_answered_alike_with_test_time_flips() -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32, tta=True)
    network = task.network().eval()
    batch = batches_of(task.evaluation_flow(Shapes(6), workers=0))[0]
    mirrored = {**batch, "image": batch["image"].flip(2)}
    with torch.inference_mode():
        one, other = task.answer(network, batch), task.answer(network, mirrored)
        plain = [TASK.answer(network, each)["probabilities"] for each in (batch, mirrored)]
    torch.testing.assert_close(one["probabilities"], other["probabilities"])
    torch.testing.assert_close(one["probabilities"], (plain[0] + plain[1]) / 2)


def test_a_row_names_label_score_and_every_class() -> None:
    task = ps.Classification(("cat", "label"), backbone="tiny", size=32)
    rows = task.rows({"probabilities": torch.tensor([[0.25, 0.75]])}, {})
    assert rows == [{"label": "label", "score": 0.75, "cat": 0.25, "label (class)": 0.75}]


def test_a_row_of_several_labels_joins_those_that_reach_the_threshold() -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32, multi_label=True, threshold=0.25)
    rows = task.rows({"probabilities": torch.tensor([[0.25, 0.125, 0.75], [0.0, 0.0, 0.0]])}, {})
    assert [row["label"] for row in rows] == ["circle;square", ""]
