"""Faster R-CNN: learns, judges the same every time, is saved, and gives its weights on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from scene_making import CROWNS, Scenes  # noqa: E402

TASK = ps.Detection(CROWNS, architecture="faster_rcnn", backbone="tiny", anchor_scale=2.83, levels=3, norm="batch")
STEPS = 80


def batches_of(source: Any, size: int, task: Any = TASK) -> list[Any]:
    return list(task.evaluation_flow(source, workers=0).batch(size, shapes="ragged").to_torch())


@pytest.fixture(scope="module")
def learned() -> Any:
    """A network that knows eight small scenes by heart."""
    torch.manual_seed(0)
    network = TASK.network().train()
    batches = batches_of(Scenes(8, size=96), 4)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    # Sums of several threads end in other last digits each time: a rate that falls lets all of them end well.
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for step in range(STEPS):
        loss = TASK.loss(network, batches[step % 2])["loss"]
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        rate.step()
    return network.eval()


def test_it_learns_to_find_crowns(learned: Any) -> None:
    scores = TASK.scores()
    with torch.inference_mode():
        for batch in batches_of(Scenes(8, size=96), 4):
            scores.update(TASK.judge(learned, batch).answers, batch)
    assert scores.compute()["box_f1"] >= 0.9


@pytest.mark.slow
def test_it_is_trained_to_the_end_and_finds_crowns_that_it_has_not_seen(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    task = ps.Detection(architecture="faster_rcnn", backbone="tiny", augmentation=False)
    data = (Scenes(36, size=96), Scenes(9, first=5000, size=96))
    options: dict[str, Any] = {"batch_size": 4, "learning_rate": 3e-3, "workers": 0, "progress": False, "logger": False}
    run = ps.train(task, data, epochs=10, folder=tmp_path / "run", **options)
    assert ps.evaluate(run, Scenes(18, first=9000, size=96)).scores["box_f1"] >= 0.8
    assert len([line for line in run.metrics() if "box_f1" in line]) == 10


def test_it_judges_a_sample_the_same_whatever_it_came_with(learned: Any) -> None:
    source = Scenes(9, size=96)
    torch.manual_seed(1)
    with torch.inference_mode():
        together = TASK.judge(learned, batches_of(source, 9)[0]).answers
        torch.manual_seed(2)
        alone = [TASK.judge(learned, batch).answers for batch in batches_of(source, 1)]
    for row, one in enumerate(alone):
        torch.testing.assert_close(one["loss"][0], together["loss"][row], rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(one["boxes"][0], together["boxes"][row], atol=0.01, rtol=0)
        torch.testing.assert_close(one["scores"][0], together["scores"][row], atol=1e-4, rtol=0)


def test_images_without_boxes_teach_that_there_is_nothing(learned: Any) -> None:
    batch = batches_of(ps.Subset(Scenes(9, size=96), [8]), 1)[0]
    with torch.inference_mode():
        losses = TASK.loss(learned, batch)
    assert losses["box_loss"] == 0
    assert torch.isfinite(losses["loss"])


def test_a_saved_model_is_of_the_same_architecture_and_finds_boxes(learned: Any, tmp_path: Path) -> None:
    model = ps.Model(TASK, learned, device="cpu")
    again = ps.load(model.save(tmp_path / "crowns.safetensors"), device="cpu")
    assert again.task == TASK
    source = Scenes(2, size=96)
    found: Any = ps.predict(again, source)
    assert len(found) > 0
    assert found.equals(ps.predict(model, source))


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_windows_of_an_image_find_what_a_look_at_samples_finds(learned: Any, tmp_path: Path, precision: str) -> None:
    from penstock.codecs.images import encode_image

    source = Scenes(1, size=96)
    (tmp_path / "scene.png").write_bytes(encode_image(source.scenes[0][0], "png"))
    model = ps.Model(TASK, learned, device="cpu")
    one, other = ps.predict(model, tmp_path / "scene.png", precision=precision), ps.predict(model, source)
    corners = ["xmin", "ymin", "xmax", "ymax"]
    torch.testing.assert_close(
        torch.tensor(one[corners].to_numpy()),
        torch.tensor(other[corners].to_numpy()),
        atol=0.1 if precision == "32" else 1.0,
        rtol=0,
    )


def test_other_classes_keep_what_still_applies(learned: Any, tmp_path: Path) -> None:
    path = ps.Model(TASK, learned, device="cpu").save(tmp_path / "crowns.safetensors")
    more = dataclasses.replace(TASK, classes=("Oak", "Fir"), weights=str(path), norm="batch")
    network = more.network()
    more.load_backbone(network, more.pretrained())  # type: ignore[arg-type]
    ours, theirs = network.state_dict(), learned.state_dict()
    scores, boxes = (f"roi_heads.box_predictor.{name}.weight" for name in ("cls_score", "bbox_pred"))
    fir = CROWNS.index("Fir") + 1
    torch.testing.assert_close(ours[scores][[0, 2]], theirs[scores][[0, fir]])
    torch.testing.assert_close(ours[boxes][8:12], theirs[boxes][4 * fir : 4 * fir + 4])
    assert not torch.equal(ours[scores][1], theirs[scores][1])
    torch.testing.assert_close(ours["rpn.conv.0.0.weight"], theirs["rpn.conv.0.0.weight"])


def test_the_other_architecture_takes_the_pyramid(learned: Any, tmp_path: Path) -> None:
    path = ps.Model(TASK, learned, device="cpu").save(tmp_path / "crowns.safetensors")
    retina = dataclasses.replace(TASK, architecture="retinanet", weights=str(path), norm="batch")
    network = retina.network()
    retina.load_backbone(network, retina.pretrained())  # type: ignore[arg-type]
    name = "backbone.fpn.inner_blocks.0.0.weight"
    torch.testing.assert_close(network.state_dict()[name], learned.state_dict()[name])


def test_its_heads_come_last_of_the_stages() -> None:
    assert [name for name, _ in TASK.stages(TASK.network())][-2:] == ["rpn", "roi_heads"]
    with pytest.raises(ps.OptionError, match="architecture"):
        dataclasses.replace(TASK, architecture="yolo")  # type: ignore[arg-type]
