"""Transforms as users write them, in a module that worker processes import quickly."""

from __future__ import annotations

from typing import Any

import numpy as np


def inverted(image: Any) -> Any:
    return 255 - image


def speckled(image: Any, rng: np.random.Generator) -> Any:
    return np.clip(image + rng.integers(-30, 31, image.shape), 0, 255).astype(np.uint8)


def relabelled(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "label": 0, "image": sample["image"][:16, :16]}
