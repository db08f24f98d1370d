"""What the kernel does at once has the bits of one step after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.flow import reference
from tests.flow.plain_order import part_of
from tests.flow.plain_samples import made
from tests.flow.promised import Photos
from tests.flow.small_flows import assert_as_reference

import penstock as ps
from made_sources import EveryKind, Reels
from penstock.augment import CenterCrop, HorizontalFlip, Normalize, RandomCrop, RandomResizedCrop, Resize
from penstock.flow.measuring.metrics import HOPS


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> ps.Pack:
    folder = tmp_path_factory.mktemp("photos")
    return ps.pack(Photos(30), folder / "photos.pack", split="train=0.8,val=0.2", progress=False)


PLANS: dict[str, list[Any]] = {
    "crops": [RandomResizedCrop(24), HorizontalFlip()],
    "padding": [RandomCrop(16, padding=4), HorizontalFlip(), Normalize()],
    "larger": [Resize((40, 50)), CenterCrop(37)],
    "two crops": [CenterCrop(18), RandomCrop(12), HorizontalFlip()],
    "shrunk twice": [Resize((9, 9)), Resize((5, 6))],
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("stored", ["jpeg", "png", "raw", "webp"])
def test_what_is_fused_has_the_bits_of_one_step_after_the_other(stored: str, plan: str, tmp_path: Path) -> None:
    how = {"jpeg": {}, "raw": {"codec": "raw", "size": "30x27"}}.get(stored, {"codec": stored})
    pack = ps.pack(Photos(10), tmp_path / "a.pack", progress=False, **how)
    flow = ps.Flow(pack, seed=5, fast_decode=False).shuffle()
    for step in PLANS[plan]:
        flow = flow.map(step)
    flow = flow.batch(4)
    assert flow.running.program.leaves[0].fusion is not None
    for epoch in (0, 1):
        assert_as_reference(flow, epoch)
    assert_as_plain(flow)


def assert_as_plain(flow: ps.Flow) -> None:
    """Batches hold what `flow[i]` gives, which is made without any fusion."""
    position = 0
    for batch in list(flow.epoch(0)):
        flow.epoch(0)
        for row in range(len(batch["index"])):
            sample = flow[position]
            position += 1
            assert all(np.array_equal(np.asarray(sample[name]), batch[name][row]) for name in batch)


@pytest.mark.parametrize("codec", ["jpeg", "raw", "png"])
@pytest.mark.parametrize("label", ["first", "middle", "last", "all"])
def test_fused_clips_have_the_bits_of_frames_one_by_one(codec: str, label: Any, tmp_path: Path) -> None:
    pack = ps.pack(Reels(7, 4, 6), tmp_path / "a.pack", codec=codec, progress=False)
    for edge, step in (("repeat", 1), ("drop", 2)):
        flow = ps.Flow(pack, seed=5, fast_decode=False).clips(3, 2, label=label, edge=edge, step=step)
        flow = flow.shuffle().map(RandomResizedCrop(12)).map(HorizontalFlip()).batch(3)
        assert flow.running.program.leaves[0].fusion is not None
        assert_as_reference(flow)


class Boxed(Photos):
    """Photos with boxes and a label for each."""

    schema = ps.Schema(
        (ps.Field("image", "image"), ps.Field("boxes", "boxes"), ps.Field("box_label", "labels", "int64")),
        ("tree", "bush"),
    )

    def annotations(self, index: int) -> dict[str, Any]:
        rng = np.random.default_rng(index)
        corners = np.sort(rng.uniform(0, 19, (index % 4, 2, 2)), axis=1).reshape(-1, 4)
        return {
            "boxes": corners.astype(np.float32),
            "box_label": rng.integers(0, 2, index % 4),
            "key": f"{index}",
            "group": "all",
        }


@pytest.mark.parametrize("packed", [False, True])
def test_boxes_follow_fused_images(packed: bool, tmp_path: Path) -> None:
    source: Any = ps.pack(Boxed(12), tmp_path / "a.pack", progress=False) if packed else Boxed(12)
    flow = (
        ps.Flow(source, seed=5, fast_decode=False).map(RandomCrop(14)).map(HorizontalFlip()).batch(5, shapes="ragged")
    )
    assert flow.running.program.leaves[0].fusion is not None
    number = 0
    for batch in list(flow.epoch(0)):
        for row in range(len(batch["index"])):
            sample = made(part_of(flow.plan), reference.order_of(flow, 0)[number])
            number += 1
            for name in ("image", "boxes", "box_label"):
                assert reference.same(np.asarray(batch[name][row]), np.asarray(sample[name])), name


def test_masks_and_boxes_follow_images_of_a_pack_with_every_kind(tmp_path: Path) -> None:
    pack = ps.pack(EveryKind(12), tmp_path / "a.pack", progress=False)
    flow = ps.Flow(pack, seed=5).shuffle().map(RandomCrop(20)).map(HorizontalFlip()).batch(5, shapes="padded")
    assert_as_reference(flow)


def test_half_of_a_chain_is_fused_and_the_rest_goes_on(photos: ps.Pack) -> None:
    flow = ps.Flow(photos, seed=5, fast_decode=False).shuffle().map(RandomResizedCrop(16)).map(_brighter)
    flow = flow.map(HorizontalFlip()).map(Normalize()).batch(4)
    fusion = flow.running.program.leaves[0].fusion
    assert fusion is not None and fusion.links == 1
    assert_as_reference(flow)
    assert_as_plain(flow)


def _brighter(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "image": sample["image"] // 2 + 100}


def test_fast_decoding_stays_close_to_the_exact_one(photos: ps.Pack) -> None:
    exact, fast = (
        np.concatenate([batch["image"] for batch in ps.Flow(photos, fast_decode=fast).map(Resize((8, 8))).batch(8)])
        for fast in (False, True)
    )
    assert 0 < np.abs(exact.astype(int) - fast.astype(int)).max() < 60


@pytest.mark.parametrize("codec", [None, "raw"])
def test_every_hop_counts_every_sample_of_a_fused_flow(codec: str | None, tmp_path: Path) -> None:
    how = {} if codec is None else {"codec": codec, "size": "30x27"}
    pack = ps.pack(Photos(10), tmp_path / "a.pack", progress=False, **how)
    flow = ps.Flow(pack, workers=0).map(RandomResizedCrop(24)).batch(4)
    assert sum(len(batch["index"]) for batch in flow) == 10
    assert {hop: cost["items"] for hop, cost in flow.metrics()["hops"].items()} == dict.fromkeys(HOPS, 10)
