"""Random changes on the device: boxes follow their pixels."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from penstock.tasks.detection.device_boxes import Changes, Placed, boxes_shown, changed  # noqa: E402

ALL = Changes(96, (0.7, 1.5), 0.5, 0.5, 0.5, 0.5, (0.0, 0.0, 0.0))
BOX = (30.0, 44.0, 62.0, 56.0)


def batch_of(count: int, first: int = 0, size: int = 100) -> dict[str, Any]:
    image = torch.zeros(size, size, 3, dtype=torch.uint8)
    image[44:56, 30:62] = 255
    return {
        "image": [image] * count,
        "index": torch.arange(first, first + count),
        "boxes": [torch.tensor([BOX])] * count,
        "box_label": [torch.tensor([3])] * count,
    }


def test_boxes_follow_their_pixels() -> None:
    batch = changed(batch_of(64), ALL, seed=1, epoch=2)
    seen = 0
    for image, boxes in zip(batch["image"], batch["boxes"], strict=True):
        bright = (image[:, :, 0] > 0.5).nonzero()
        if len(boxes):
            down, across = (bright[:, axis] for axis in (0, 1))
            found = torch.stack([across.min(), down.min(), across.max() + 1, down.max() + 1]).float()
            torch.testing.assert_close(boxes[0], found, atol=1.01, rtol=0)
            seen += 1
    assert seen > 48
    shapes = {bool(boxes[0, 2] - boxes[0, 0] > boxes[0, 3] - boxes[0, 1]) for boxes in batch["boxes"] if len(boxes)}
    assert shapes == {True, False}  # some are turned


def test_a_sample_is_changed_the_same_whatever_it_came_with() -> None:
    together = changed(batch_of(6), ALL, seed=4, epoch=1)
    alone = changed(batch_of(1, first=5), ALL, seed=4, epoch=1)
    assert torch.equal(together["image"][5], alone["image"][0])
    assert torch.equal(together["boxes"][5], alone["boxes"][0])
    later = changed(batch_of(6), ALL, seed=4, epoch=2)
    assert not torch.equal(later["image"], together["image"])


def test_boxes_that_are_mostly_cut_off_are_dropped_with_their_labels() -> None:
    place = Placed((50.0, 0.0), 1.0, (100, 100), (False, False), False)
    boxes = torch.tensor([[30.0, 10, 69, 30], [30, 10, 71, 30], [0, 0, 40, 40], [60, 10, 61, 90]])
    shown, kept = boxes_shown(boxes, place, 0.5)
    assert kept.tolist() == [False, True, False, False]
    assert shown.tolist() == [[0, 10, 21, 30]]


def test_images_of_different_sizes_become_one_size() -> None:
    batch = batch_of(2)
    batch["image"] = [batch["image"][0], torch.zeros(60, 140, 3, dtype=torch.uint8)]
    assert changed(batch, ALL, seed=0, epoch=0)["image"].shape == (2, 96, 96, 3)
    whole = Changes(None, (1.0, 1.0), 0, 0, 0, 0.5, (0.0, 0.0, 0.0))
    assert changed(batch, whole, seed=0, epoch=0)["image"].shape == (2, 100, 140, 3)


def test_without_changes_pixels_and_boxes_stay() -> None:
    still = Changes(None, (1.0, 1.0), 0, 0, 0, 0.5, (9.0, 9.0, 9.0))
    batch = batch_of(2)
    same = changed(batch, still, seed=0, epoch=0)
    torch.testing.assert_close(same["image"][0], batch["image"][0].float() / 255, atol=1e-5, rtol=0)
    torch.testing.assert_close(same["boxes"][0], batch["boxes"][0])
