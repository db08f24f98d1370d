"""Several geometric steps as one view, wherever that gives exactly what they give one after another.

A chain is one view as long as it has this form; `fusible` says how far it goes, by the steps alone:

| next step | is still one view                                                                               |
|-----------|-------------------------------------------------------------------------------------------------|
| resize    | if it is the only one, nothing was flipped before it, and nothing before it may have padded      |
| crop that | always                                                                                          |
| never pads|                                                                                                 |
| crop that | if nothing was cropped between the resize and it (else it could show again what was cut off),    |
| may pad   | and what padded before it has the same `fill`                                                   |
| flip      | always                                                                                          |

A crop may pad when it has `padding`, or when what it gets may be smaller than its size: nothing is known of the
image unless `smallest` says it; Resize(shortest) gives at least that side; most other steps give one size.
So `Resize(256, side="shortest")`, `CenterCrop(224)`, `HorizontalFlip()` are one view, and so are
`Resize(224, side="longest")`, `CenterCrop(224)`; `CenterCrop(256)`, `RandomResizedCrop(224)` are one if no image
is smaller than 256 px.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.augment.steps import Geometric, Uniforms
from penstock.augment.views import HORIZONTAL, VERTICAL, Numbers, Views, whole_views
from penstock.errors import OptionError

ANY_SIZE = (1, 1)


def fusible(steps: Sequence[Geometric], *, smallest: tuple[int, int] = ANY_SIZE) -> int:
    """How many steps at the beginning of a chain are one view; `smallest` is a width and a height no image is below."""
    chain = _Chain(least_size=smallest)
    for count, step in enumerate(steps):
        if not chain.takes(step):
            return count
        chain = chain.after(step)
    return len(steps)


def views_of(steps: Sequence[Geometric], sizes: Numbers, uniforms: Sequence[Uniforms]) -> Views:
    """The one view that a fusible chain is, for each of n images; uniforms are n×uniform_count for each step."""
    views = whole_views(sizes)
    for number, (step, drawn) in enumerate(zip(steps, uniforms, strict=True)):
        following = step.views(views.sizes, drawn)
        if step.shape == "flip":
            views = views.turned(following.flips)
        else:
            views = following if number == 0 else composed(views, following)
    return views


def composed(first: Views, second: Views) -> Views:
    """The one view that shows what `second` shows of what `first` shows; OptionError where there is none."""
    if not second.is_scaled:
        return _cropped(first, second)
    if first.is_scaled or first.is_padded or first.flips.any():
        raise OptionError("what was resized, padded or flipped and is then resized is not one view of the image.")
    offset = first.crops[:, :2] + first.parts[:, :2]
    return replace(second, crops=_moved(second.crops, offset))


@dataclass(frozen=True)
class _Chain:
    """What is known of the picture between two steps, without any image."""

    least_size: tuple[int, int]
    is_resized: bool = False
    is_flipped: bool = False
    is_cut: bool = False  # cropped after it was resized
    fill: int | None = None  # of what may have been padded

    def takes(self, step: Geometric) -> bool:
        if step.shape == "resize":
            return not self.is_resized and not self.is_flipped and self.fill is None
        if step.shape == "crop" and self._may_pad(step):
            return not self.is_cut and self.fill in (None, _fill(step))
        return True

    def after(self, step: Geometric) -> _Chain:
        if step.shape == "flip":
            return replace(self, is_flipped=True)
        least: tuple[int, int] = getattr(step, "least_size", step.output_size or ANY_SIZE)
        if step.shape == "resize":
            return replace(self, least_size=least, is_resized=True)
        fill = _fill(step) if self._may_pad(step) else self.fill
        return replace(self, least_size=least, is_cut=self.is_resized, fill=fill)

    def _may_pad(self, step: Geometric) -> bool:
        width, height = step.output_size or self.least_size
        is_larger = width > self.least_size[0] or height > self.least_size[1]
        return bool(getattr(step, "padding", 0)) or is_larger


def _fill(step: Geometric) -> int:
    return int(getattr(step, "fill", 0))


def _cropped(first: Views, second: Views) -> Views:
    """`second` has the scale of what `first` shows: it chooses another part of what was resized."""
    if _is_all(first, second):
        return first.turned(second.flips)
    windows = _unflipped(_moved(second.parts, second.crops[:, :2]), first)
    resized = np.concatenate([np.zeros_like(first.resized), first.resized], axis=1)
    visible = _overlap(_overlap(_unflipped(second.crops, first), first.parts), resized)
    views = replace(first, parts=windows, flips=first.flips ^ second.flips, fill=_common_fill(first, second))
    if not first.is_scaled:
        return _trimmed(views, _overlap(windows, visible))
    if not np.array_equal(_overlap(windows, visible), _overlap(windows, resized)):
        raise OptionError("what was resized, then cropped and is then padded is not one view of the image.")
    return views


def _is_all(first: Views, second: Views) -> bool:
    """Whether the second views show everything, so that they do no more than flip."""
    return np.array_equal(second.sizes, first.sizes) and np.array_equal(second.crops, second.parts)


def _unflipped(windows: Numbers, first: Views) -> Numbers:
    """Windows in what the first views show as windows in what they resized."""
    turned = np.stack([first.flips & HORIZONTAL, first.flips & VERTICAL], axis=1) != 0
    mirrored = first.sizes - windows[:, :2] - windows[:, 2:]
    corners = first.parts[:, :2] + np.where(turned, mirrored, windows[:, :2])
    return np.concatenate([corners, windows[:, 2:]], axis=1)


def _trimmed(views: Views, seen: Numbers) -> Views:
    """Views at the scale of the image, with crops that are no more than what is seen: nothing cut off shows again.

    Where nothing is seen the crop is one pixel beside the part.
    """
    is_empty = (seen[:, 2:] == 0).any(axis=1, keepdims=True)
    seen = np.where(is_empty, np.array([0, 0, 1, 1], np.int64), seen)
    corners = np.where(is_empty, 1, views.parts[:, :2] - seen[:, :2])
    parts = np.concatenate([corners, views.sizes], axis=1)
    return replace(views, crops=_moved(seen, views.crops[:, :2]), resized=seen[:, 2:], parts=parts)


def _common_fill(first: Views, second: Views) -> int:
    if not second.is_padded:
        return first.fill
    if first.is_padded and first.fill != second.fill:
        raise OptionError(f"what is padded with {first.fill} and then with {second.fill} is not one view of the image.")
    return second.fill


def _moved(windows: Numbers, offsets: Numbers) -> Numbers:
    return np.concatenate([windows[:, :2] + offsets, windows[:, 2:]], axis=1)


def _overlap(left: Numbers, right: Numbers) -> Numbers:
    """What each window shares with the other one of its row; zeros where that is nothing."""
    first = np.maximum(left[:, :2], right[:, :2])
    sizes = np.minimum(left[:, :2] + left[:, 2:], right[:, :2] + right[:, 2:]) - first
    is_shared = (sizes > 0).all(axis=1, keepdims=True)
    return np.where(is_shared, np.concatenate([first, sizes], axis=1), 0)
