"""Detection: settings, data, losses and answers."""

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
from scene_making import CROWNS, Scenes  # noqa: E402
from shape_making import Shapes  # noqa: E402

TASK = ps.Detection(CROWNS, backbone="tiny", anchor_scale=2.83, levels=3)


def batch_of(task: Any, source: Any) -> dict[str, Any]:
    flow = task.evaluation_flow(source, workers=0).batch(len(source), shapes="ragged")
    return next(iter(flow.to_torch()))


@pytest.fixture(scope="module")
def network() -> Any:
    torch.manual_seed(5)
    return TASK.network().eval()


def test_settings_survive_json_and_pickle() -> None:
    settings = json.loads(json.dumps(TASK.settings()))
    assert task_from("detection", settings) == TASK
    assert pickle.loads(pickle.dumps(TASK)) == TASK


@pytest.mark.parametrize(
    "wrong",
    [
        {"backbone": "vgg16"},
        {"classes": ["Fir", "Fir"]},
        {"score_threshold": 1.5},
        {"zoom": (2, 1)},
        {"zoom": 3},
        {"levels": 4},
        {"norm": "layer"},
        {"gsd": -1},
        {"anchor_scale": None},
        {"detections_per_image": 0},
        {"input_scale": 0},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ps.OptionError):
        ps.Detection(**{"classes": CROWNS, "backbone": "tiny", **wrong})


def test_classes_anchors_and_maps_come_from_the_training_data() -> None:
    fitted = ps.Detection(backbone="tiny").fitted_to(Scenes(12))
    assert fitted.classes == CROWNS
    assert fitted.anchor_scale < 4
    assert fitted.levels == 3
    assert "px instead of 32 px" in fitted.remarks()[0]


def test_usual_anchors_stay_for_usual_boxes_and_large_boxes_get_all_maps() -> None:
    source = Scenes(8)
    for number, (_, boxes, _) in enumerate(source.scenes):
        boxes *= 2 if number < 7 else 30  # 32 to 60 px, and some of 480 px and more
    fitted = ps.Detection(backbone="tiny").fitted_to(source)
    assert (fitted.anchor_scale, fitted.levels, fitted.remarks()) == (4.0, 5, [])


def test_data_without_boxes_are_refused() -> None:
    with pytest.raises(ps.DataError, match="no field with boxes"):
        TASK.check(Shapes(3), "training")
    with pytest.raises(ps.DataError, match="no sample has a box"):
        TASK.check(ps.Subset(Scenes(9), [8]), "training")
    TASK.check(Shapes(3), "prediction")


def test_boxes_of_a_class_that_the_model_does_not_have_are_named() -> None:
    with pytest.raises(ps.DataError, match=r"boxes are of class 'Fir'.*it has Birch"):
        ps.Detection(["Birch"], backbone="tiny").check(Scenes(6), "evaluation")


def test_class_numbers_are_those_of_the_task() -> None:
    turned = ps.Detection(CROWNS[::-1], backbone="tiny")
    plain, other = (batch_of(task, Scenes(4))["box_label"] for task in (TASK, turned))
    for one, two in zip(plain, other, strict=True):
        assert torch.equal(one, 1 - two)


def test_images_without_boxes_have_a_loss_that_teaches(network: Any) -> None:
    batch = batch_of(TASK, ps.Subset(Scenes(9), [8]))
    trained = copy.deepcopy(network)
    losses = TASK.loss(trained, batch)
    losses["loss"].backward()
    assert torch.isfinite(losses["loss"])
    assert losses["box_loss"] == 0
    assert trained.head.classification_head.cls_logits.weight.grad.abs().sum() > 0


def test_one_pass_gives_the_losses_of_training_and_the_answers(network: Any) -> None:
    batch = batch_of(TASK, Scenes(4))
    calls: list[int] = []
    hook = network.register_forward_hook(lambda *_: calls.append(1))
    with torch.inference_mode():
        judged = TASK.judge(network, batch)
        hook.remove()
        losses = TASK.loss(network, batch)
    assert len(calls) == 1
    for name, value in losses.items():
        assert judged.losses[name] == pytest.approx(float(value), rel=1e-5)
    assert judged.answers["loss"].shape == (4,)


def test_images_count_by_what_there_is_to_find_in_them(network: Any) -> None:
    with torch.inference_mode():
        dense, empty, both = (
            TASK.judge(network, batch_of(TASK, ps.Subset(Scenes(9), rows))) for rows in ([0], [8], [0, 8])
        )
    assert both.answers["loss"].tolist() == pytest.approx([float(dense.losses["loss"]), float(empty.losses["loss"])])
    assert both.losses["box_loss"] > 0.9 * dense.losses["box_loss"]  # half of it, were all images alike


def test_answers_do_not_depend_on_what_an_image_came_with(network: Any) -> None:
    eager = ps.Detection(CROWNS, backbone="tiny", anchor_scale=2.83, levels=3, score_threshold=0.0101)
    source = Scenes(4, sizes=(128, 100))
    with torch.inference_mode():
        together = eager.answer(network, batch_of(eager, source))
        alone = [eager.answer(network, batch_of(eager, ps.Subset(source, [row]))) for row in range(4)]
    assert sum(map(len, together["boxes"])) > 0
    for row in range(4):
        for name, tolerance in (("boxes", 0.01), ("scores", 1e-4)):
            torch.testing.assert_close(together[name][row], alone[row][name][0], atol=tolerance, rtol=0)


def test_the_network_sees_the_image_at_its_scale() -> None:
    doubled = ps.Detection(CROWNS, backbone="tiny", input_scale=2.0)
    batch = batch_of(doubled, Scenes(2, size=100))
    assert TASK.inputs(batch["image"]).shape[-2:] == (128, 128)
    assert doubled.inputs(batch["image"]).shape[-2:] == (224, 224)
    truth = doubled._truths(batch)[0].boxes
    torch.testing.assert_close(truth, batch["boxes"][0] * 2)


def test_only_as_many_boxes_as_asked_for_are_answered(network: Any) -> None:
    few = ps.Detection(
        CROWNS, backbone="tiny", anchor_scale=2.83, levels=3, score_threshold=0.0101, detections_per_image=2
    )
    with torch.inference_mode():
        answers = few.answer(network, batch_of(few, Scenes(3)))
    assert {len(scores) for scores in answers["scores"]} == {2}


def test_frozen_normalisation_is_chosen_for_weights_and_can_be_asked_for() -> None:
    from torch import nn

    def layers(task: ps.Detection) -> set[bool]:
        return {
            isinstance(layer, nn.BatchNorm2d)
            for layer in task.network().modules()
            if "BatchNorm" in type(layer).__name__
        }

    assert layers(TASK) == {True}
    assert layers(ps.Detection(CROWNS, backbone="tiny", norm="frozen")) == {False}
    assert ps.Detection(CROWNS, backbone="tiny", weights="some.pth").has_frozen_norm


def test_stages_end_with_the_heads(network: Any) -> None:
    names = [name for name, _ in TASK.stages(network)]
    assert names[0] == "body.0"
    assert names[-2:] == ["fpn", "head"]


def test_scores_are_the_same_however_a_set_was_cut_into_batches(network: Any) -> None:
    eager = ps.Detection(CROWNS, backbone="tiny", anchor_scale=2.83, levels=3, score_threshold=0.0101)
    found = []
    for size in (3, 7):
        scores = eager.scores()
        with torch.inference_mode():
            for batch in eager.evaluation_flow(Scenes(7), workers=0).batch(size, shapes="ragged").to_torch():
                scores.update(eager.judge(network, batch).answers, batch)
        found.append(scores.compute())
    assert found[0] == pytest.approx(found[1], nan_ok=True)
    assert {"box_precision", "box_recall", "box_f1", "Birch_recall", "ap50", "empty_frame_accuracy"} <= set(found[0])


def test_ground_resolution_is_read_from_the_transform() -> None:
    pytest.importorskip("rasterio")
    from penstock.results.georeferences import metres_per_pixel

    assert metres_per_pixel((0.1, 0, 5e5, 0, -0.1, 4e6), "EPSG:32617") == pytest.approx(0.1)
    assert metres_per_pixel((0.6, 0.8, 0, 0.8, -0.6, 0), "EPSG:2264") == pytest.approx(0.3048, rel=1e-4)  # in feet
    degree = 1 / 111_320
    assert metres_per_pixel((degree, 0, 10, 0, -degree, 60), "EPSG:4326") == pytest.approx(np.sqrt(0.5), rel=1e-3)
    assert metres_per_pixel((1, 0, 0, 0, 1, 0), "") is None


def test_the_worst_samples_bring_their_size_and_boxes(network: Any) -> None:
    eager = ps.Detection(CROWNS, backbone="tiny", anchor_scale=2.83, levels=3, score_threshold=0.0101)
    batch = batch_of(eager, Scenes(3, sizes=(128, 100)))
    scores = eager.scores()
    with torch.inference_mode():
        scores.update(eager.judge(network, batch).answers, batch)
    scores.compute()
    rows = {row["index"]: row for row in scores.worst()}  # type: ignore[attr-defined]
    assert [(rows[number]["width"], rows[number]["height"]) for number in range(3)] == [
        (128, 128),
        (100, 100),
        (128, 128),
    ]
    for number in range(3):
        np.testing.assert_allclose(rows[number]["boxes"]["true"], batch["boxes"][number], atol=0.06)
        assert rows[number]["answer"].startswith(f"{0} of") or rows[number]["boxes"]["found"]
