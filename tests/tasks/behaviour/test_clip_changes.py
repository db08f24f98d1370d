"""Random changes of clips: one choice for all frames, the same whatever else is in the batch."""

from __future__ import annotations

from dataclasses import replace

import torch

from penstock.tasks.behaviour.clip_changes import ClipChanges, changed_clips
from penstock.tasks.task import Batch

NOTHING = ClipChanges(0, 0, 0, 0, 0, 0, 0, 0)
ALL = ClipChanges(0.5, 0.5, 10, 0.25, 0.1, 0.1, 0.1, 0.5)


def still_clips(count: int) -> Batch:
    """Clips whose frames are all the same picture."""
    picture = torch.randint(
        0, 256, (count, 1, 16, 24, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    return {"image": picture.expand(-1, 4, -1, -1, -1), "index": torch.arange(count)}


def test_all_frames_of_a_clip_are_changed_alike() -> None:
    images = changed_clips(still_clips(6), ALL, seed=1, epoch=2)["image"]
    assert torch.allclose(images, images[:, :1].expand_as(images), atol=1e-6)
    assert not torch.allclose(images, still_clips(6)["image"].float() / 255, atol=1e-2)


def test_a_clip_is_changed_the_same_in_another_batch_and_otherwise_in_another_epoch() -> None:
    batch = still_clips(6)
    some = {name: value[2:4] for name, value in batch.items()}
    whole = changed_clips(batch, ALL, seed=1, epoch=2)["image"][2:4]
    assert torch.allclose(whole, changed_clips(some, ALL, seed=1, epoch=2)["image"], atol=1e-6)
    assert not torch.allclose(whole, changed_clips(some, ALL, seed=1, epoch=3)["image"], atol=1e-2)


def test_no_change_is_no_change() -> None:
    batch = still_clips(2)
    assert torch.allclose(changed_clips(batch, NOTHING, seed=0, epoch=0)["image"], batch["image"].float() / 255)


def test_mirroring_is_the_same_with_and_without_a_turn() -> None:
    batch = still_clips(3)
    mirrored = changed_clips(batch, replace(NOTHING, flip=1.0, vertical_flip=1.0), seed=0, epoch=0)["image"]
    turned = changed_clips(batch, replace(NOTHING, flip=1.0, vertical_flip=1.0, rotation=1e-4), seed=0, epoch=0)[
        "image"
    ]
    assert torch.allclose(mirrored, batch["image"].float().flip(2, 3) / 255)
    assert torch.allclose(mirrored, turned, atol=1e-2)
