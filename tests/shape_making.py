"""Shapes on textured ground: pictures that a small network must learn to tell apart, made in a moment."""

from __future__ import annotations

from typing import Any

import numpy as np

import penstock as ps

SHAPES = ("circle", "cross", "square")


def shape_picture(number: int, size: int = 40) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Picture `number` shows shape `number % 3`, at a random place, of a random size and colour."""
    rng = np.random.default_rng(number)
    ground = rng.integers(90, 166, (size // 4, size // 4, 3)).repeat(4, axis=0).repeat(4, axis=1)
    picture = ground + rng.integers(-15, 16, (size, size, 3))
    radius = int(rng.integers(size // 5, size // 3))
    x, y = rng.integers(radius + 1, size - radius - 1, 2)
    across, down = np.meshgrid(np.arange(size) - x, np.arange(size) - y)
    bright = rng.random() < 0.5
    colour = rng.integers(215, 256, 3) if bright else rng.integers(0, 40, 3)
    picture[_inside(SHAPES[number % 3], across, down, radius)] = colour
    return np.clip(picture, 0, 255).astype(np.uint8)


def _inside(shape: str, across: Any, down: Any, radius: int) -> Any:
    if shape == "circle":
        ring = across**2 + down**2
        return (ring <= radius**2) & (ring >= (radius * 0.5) ** 2)
    in_square = np.maximum(abs(across), abs(down)) <= radius
    if shape == "square":
        return in_square
    return in_square & (np.minimum(abs(across), abs(down)) <= radius * 0.3)


class Shapes:
    """A source of such pictures in memory."""

    schema = ps.Schema((ps.Field("image", "image"), ps.Field("label", "class")), SHAPES)

    def __init__(self, count: int, first: int = 0, size: int = 40) -> None:
        self.count, self.first = count, first
        self._pictures = [shape_picture(first + number, size) for number in range(count)]

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, self._pictures[index])

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {"image": raw.data, **self.annotations(raw.index)}

    def annotations(self, index: int) -> dict[str, Any]:
        return {"label": (self.first + index) % 3, "key": f"shapes/{self.first + index}.png"}

    def column(self, name: str) -> np.ndarray[Any, Any]:
        if name not in ("label", "key"):
            raise KeyError(name)
        return np.array([self.annotations(index)[name] for index in range(self.count)])
