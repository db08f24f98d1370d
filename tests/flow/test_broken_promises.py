"""The checks of the promises see what is wrong: each way to break the code must turn them red."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.flow.promise_checks import check
from tests.flow.promised import Case, Packs

from penstock import seeds
from penstock.flow import engine, running, slots
from penstock.flow.making import chains, clips, program
from penstock.flow.order import batches as dealing
from penstock.flow.order import orders as order

CASES = (
    Case(kind="png", chain="own", batch_size=4, world_size=2, epoch=1, workers=2, bad="source"),
    Case(kind="jpeg pack", chain="normalised", shuffle="window", batch_size=6, epoch=2, workers=2),
    Case(kind="raw pack", chosen="sample", mixed="all", batch_size=5, epoch=1, workers=1, counted=(("repeat", 2),)),
    Case(kind="clips", chain="flipped", batch_size=3, workers=2, prefetch=3),
    Case(kind="padded", chain="noised", batch_size=5, workers=3, counted_batches=(("repeat", 2),)),
)


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Packs:
    return Packs(tmp_path_factory.mktemp("broken"))


def check_all(packs: Packs) -> None:
    for case in CASES:
        check(case, case.run_as(workers=1, prefetch="auto"), packs)


def test_the_cases_are_in_order_when_nothing_is_broken(packs: Packs) -> None:
    check_all(packs)


def wrong_key(self: chains.Link, draws: Any) -> Any:
    count = self.step.step.uniform_count
    return seeds.sample_uniforms(self.seed, self.number, draws.epoch, draws.index, count)


def no_epoch(self: chains.Link, draws: Any) -> Any:
    count = self.step.step.uniform_count
    return seeds.sample_uniforms(self.seed, self.number, draws.epoch * 0, draws.key, count)


def one_generator_for_all(self: chains.Link, draws: Any) -> int:
    return 7


def same_order_in_every_epoch(seed: int, step: int, epoch: int, number: int = 0, counter: int = 0) -> int:
    return int(seeds.sample_bits(seed, step, np.array([0]), np.array([number]), counter)[0])


def overlapping_shares(self: dealing.Deal, number: int) -> tuple[int, int]:
    start, stop = SPAN(self, number)
    return (start - 1, stop - 1) if self.rank else (start, stop)


def state_one_too_early(self: running.Running) -> dict[str, Any]:
    state = STATE(self)
    return {**state, "batch": max(state["batch"] - 1, 0)}


def slot_that_comes_back_at_once(self: slots.SlotRing) -> Any:
    taken = TAKE(self)
    if taken is not None:
        self._returned.put(taken[0])
    return taken


def blocks_of_any_epoch(self: program.Program, epoch: int, number: int) -> Any:
    return BLOCK(self, 0, number)


def parts_the_wrong_way_round(self: engine.Engine, pending: Any) -> Any:
    rows = sorted(pending.parts)
    pending.parts = dict(zip(rows, [pending.parts[row] for row in reversed(rows)], strict=True))
    return DELIVER(self, pending)


def clips_one_frame_late(self: clips.Clips, indices: Any) -> Any:
    return np.minimum(FRAMES(self, indices) + 1, len(self.source) - 1)


def first_substitute_is_skipped(self: program.Program, epoch: int, positions: Any) -> Any:
    return LOOK_UP(self, epoch, positions if len(positions) > 1 else (positions + 1) % self.order.length)


def rows_of_the_neighbour(self: program.Program, epoch: int, start: int, stop: int, arrays: Any) -> Any:
    return FILL(self, epoch, start, stop, {name: array[::-1] for name, array in arrays.items()})


def passes_that_are_all_alike(self: order.Repeated, epochs: Any, positions: Any) -> Any:
    return self.inner.draws(epochs, positions % self.inner.length)


SPAN, STATE, TAKE = dealing.Deal.span, running.Running.state, slots.SlotRing.take
BLOCK, LOOK_UP, FILL = program.Program._block, program.Program.look_up, program.Program.fill
DELIVER, FRAMES = engine.Engine._deliver, clips.Clips.frame_indices

BROKEN: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a random step draws by the wrong key": (chains.Link, "uniforms", wrong_key),
    "a random step forgets the epoch": (chains.Link, "uniforms", no_epoch),
    "functions share one random state": (chains.Link, "bits", one_generator_for_all),
    "the shuffle forgets the epoch": (order, "epoch_key", same_order_in_every_epoch),
    "ranks get a sample of their neighbour": (dealing.Deal, "span", overlapping_shares),
    "a state is one batch too early": (running.Running, "state", state_one_too_early),
    "a slot is used again while it is held": (slots.SlotRing, "take", slot_that_comes_back_at_once),
    "draws are kept without their epoch": (program.Program, "_block", blocks_of_any_epoch),
    "parts of a batch are joined in another order": (engine.Engine, "_deliver", parts_the_wrong_way_round),
    "clips are one frame late": (clips.Clips, "frame_indices", clips_one_frame_late),
    "another substitute is taken": (program.Program, "look_up", first_substitute_is_skipped),
    "rows of a task are written the wrong way round": (program.Program, "fill", rows_of_the_neighbour),
    "repeated passes are all alike": (order.Repeated, "draws", passes_that_are_all_alike),
}


@pytest.mark.parametrize("how", BROKEN)
def test_the_checks_see_that(how: str, packs: Packs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BROKEN[how])
    with pytest.raises(AssertionError):
        check_all(packs)
