"""Asking a network about windows: in groups of one shape, with the precision of the model."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np
import torch

from penstock.prediction.boxes.scenes import Shown
from penstock.prediction.devices import Placed, dealt, lanes
from penstock.prediction.models import Model
from penstock.tasks.detection.answers import Found
from penstock.tasks.inference.folding import made_to_answer
from penstock.tasks.precisions import FULL, autocast


def in_groups(shown: Iterable[Shown], size: int) -> Iterator[list[Shown]]:
    """As many windows as the network sees at a time; the last group may be smaller."""
    items = iter(shown)
    while group := list(islice(items, size)):
        yield group


class Asker:
    """A model made ready for windows: copies of its network that only answer, one on each device."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._copies = tuple(
            Placed(made_to_answer(network, device, short=model.precision != FULL), device)
            for network, device in model.copies
        )

    def ask(self, shown: Iterable[Shown], side_px: int) -> Generator[tuple[int, Found]]:
        """The number of each window, and every box with score enough, unsuppressed, in pixels that it was shown."""
        copies, threads = self._lanes(side_px)
        groups = in_groups(shown, self.model.group_rows)
        with closing(dealt(copies, self._answers, groups, threads)) as answers:
            for group in answers:
                yield from group

    def _lanes(self, side_px: int) -> tuple[tuple[Placed, ...], int | None]:
        if len(self._copies) > 1:
            return self._copies, None
        task: Any = self.model.task
        return lanes(self._copies[0], self.model.group_rows * round(side_px * task.input_scale) ** 2)

    def _answers(self, one: Placed, group: list[Shown]) -> list[tuple[int, Found]]:
        task: Any = self.model.task
        # Filled up to one shape: libraries sum in another order for other shapes.
        filled = [group[min(place, len(group) - 1)].pixels for place in range(self.model.group_rows)]
        images = torch.from_numpy(np.stack(filled)).to(one.device)
        with torch.inference_mode(), autocast(self.model.precision, one.device):
            seen = one.network(task.inputs(images))
        with torch.inference_mode():
            proposed = task.proposed(one.network, seen, scale=task.input_scale)
        return [
            (window.number, Found(*(value.cpu() for value in found)))
            for window, found in zip(group, proposed, strict=False)
        ]
