"""Scenes seen from above: round crowns on textured ground, with their boxes; made in a moment."""

from __future__ import annotations

from typing import Any

import numpy as np

import penstock as ps

CROWNS = ("Birch", "Fir")


def scene(number: int, size: int = 128, most: int = 8) -> tuple[Any, Any, Any]:
    """A picture, its boxes and their classes: crowns of two colours that hardly overlap; each ninth has none."""
    rng = np.random.default_rng(number)
    ground = rng.integers(90, 150, (size // 8 + 1, size // 8 + 1, 3)).repeat(8, axis=0).repeat(8, axis=1)
    picture = ground[:size, :size] + rng.integers(-12, 13, (size, size, 3))
    boxes: list[tuple[float, ...]] = []
    labels: list[int] = []
    down, across = np.mgrid[:size, :size] + 0.5
    for _ in range(0 if number % 9 == 8 else int(rng.integers(2, most + 1))):
        radius = rng.uniform(8, 15)
        x, y = rng.uniform(radius, size - radius, 2)
        box = (x - radius, y - radius, x + radius, y + radius)
        if any(_overlap(box, other) for other in boxes):
            continue
        label = int(rng.integers(2))
        inside = (across - x) ** 2 + (down - y) ** 2 <= radius**2
        picture[inside] = ((30, 200, 60), (200, 60, 40))[label] + rng.integers(-25, 26, 3)
        boxes.append(box)
        labels.append(label)
    pixels = np.clip(picture, 0, 255).astype(np.uint8)
    return pixels, np.array(boxes, np.float32).reshape(-1, 4), np.array(labels, np.int64)


def _overlap(one: Any, other: Any) -> bool:
    return bool(one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])


class Scenes:
    """A source of such scenes in memory; with `sizes`, of several sizes in turn."""

    def __init__(self, count: int, first: int = 0, size: int = 128, sizes: tuple[int, ...] = ()) -> None:
        self.schema = ps.Schema(
            (ps.Field("image", "image"), ps.Field("boxes", "boxes"), ps.Field("box_label", "labels", "int64")), CROWNS
        )
        chosen = sizes or (size,)
        self.first = first
        self.scenes = [scene(first + number, chosen[number % len(chosen)]) for number in range(count)]

    def __len__(self) -> int:
        return len(self.scenes)

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, self.scenes[index][0])

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {"image": raw.data, **self.annotations(raw.index)}

    def annotations(self, index: int) -> dict[str, Any]:
        _, boxes, labels = self.scenes[index]
        return {"boxes": boxes.copy(), "box_label": labels.copy(), "key": f"scenes/{self.first + index}.png"}
