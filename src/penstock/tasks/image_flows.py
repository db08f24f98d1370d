"""Images on their way to a network: the flows of training and evaluation; `device_pixels` has what comes behind.

training     own transform ─► RandomResizedCrop ─► flip ─► uint8 batches ─► colours ─► normalised
evaluation   Resize ─► CenterCrop ────────────────► uint8 batches ───────────────────► normalised
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.augment import CenterCrop, HorizontalFlip, RandomResizedCrop, Resize, VerticalFlip
from penstock.flow.flow import Flow
from penstock.samples import Store
from penstock.tasks.transforms import transformed


@dataclass(frozen=True)
class Crops:
    """Which part of an image the network sees."""

    size: int
    scale: tuple[float, float]
    flip: float
    vertical_flip: float
    middle: float  # the share of the shorter side that evaluation sees
    augment: bool


def training_flow(source: Store, crops: Crops, *, seed: int, transform: Any, **options: Any) -> Flow:
    """Shuffled, with the user's own transform first; without augmentation it fits to the size as it is."""
    flow = Flow(source, seed, **options).shuffle()
    if transform is not None:
        flow = transformed(flow, transform)
    if not crops.augment:
        return flow.map(Resize(crops.size)) if transform is not None else _middle(flow, crops)
    flow = flow.map(RandomResizedCrop(crops.size, scale=crops.scale))
    if crops.flip:
        flow = flow.map(HorizontalFlip(crops.flip))
    return flow.map(VerticalFlip(crops.vertical_flip)) if crops.vertical_flip else flow


def evaluation_flow(source: Store, crops: Crops, **options: Any) -> Flow:
    """In order, with nothing random."""
    return _middle(Flow(source, **options), crops)


def _middle(flow: Flow, crops: Crops) -> Flow:
    resized = flow.map(Resize(round(crops.size / crops.middle), side="shortest"))
    return resized.map(CenterCrop(crops.size))
