"""The three promises, checked for one case: once, same bits, and going on exactly where it stopped."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import Any

from tests.flow import reference
from tests.flow.promised import Case, Packs, flow_of


def check(case: Case, other: Case, packs: Packs) -> None:
    """All three promises, for a case and another way to run it."""
    ran = ran_epoch(case, packs)
    check_once(case, packs, ran)
    check_same_bits(case, packs, ran)
    check_resumed(other, packs, ran)


class Ran:
    """What all ranks got in one epoch, and the state before each batch and at the end."""

    def __init__(
        self, batches: list[list[Any]], states: list[dict[str, Any]], bad: list[Any], places: list[Any]
    ) -> None:
        self.batches, self.states, self.bad, self.places = batches, states, bad, places


def ran_epoch(case: Case, packs: Packs) -> Ran:
    batches, states, bad = [], [], []
    for rank in range(case.world_size):
        flow = flow_of(case, packs, rank)
        running = flow.epoch(case.epoch)
        own, seen = [flow.state()], []
        for batch in running:
            seen.append(batch)  # kept: the next ones must not be written over it
            own.append(flow.state())
        assert len(flow) == len(seen)
        flow.close()
        bad += flow.bad_samples
        batches.append(seen)
        states.append(own)
    assert [_without_bad(own) for own in states] == [_without_bad(states[0])] * case.world_size
    return Ran(batches, states[0], bad, reference.places(flow_of(case, packs), case.epoch, case.world_size))


def _without_bad(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**state, "bad": None} for state in states]


def check_once(case: Case, packs: Packs, ran: Ran) -> None:
    """Every sample exactly once over all ranks, but for what a short last batch leaves out."""
    found = Counter(index for rank in ran.batches for batch in rank for index in batch["index"].tolist())
    found.subtract(bad.substitute for bad in ran.bad)
    found.update(bad.index for bad in ran.bad)
    assert len({len(rank) for rank in ran.batches}) == 1  # all take the same number of steps
    is_plain = case.chosen in ("all", "interleave") and not case.counted and not case.counted_batches
    if is_plain and case.mixed == "no":
        source = flow_of(case.run_as(world_size=1), packs).running.planned.source
        dealt = _dealt(len(source), case)
        assert sum(found.values()) == dealt
        assert set(found.values()) <= {0, 1} and set(+found) <= set(range(len(source)))


def _dealt(length: int, case: Case) -> int:
    short = length % case.batch_size
    return length - short if case.drop_last or short < case.world_size else length


def check_same_bits(case: Case, packs: Packs, ran: Ran) -> None:
    for rank, found in enumerate(ran.batches):
        expected = list(reference.batches(flow_of(case, packs), case.epoch, rank, case.world_size))
        assert_same(found, expected, f"rank {rank}")


def check_resumed(case: Case, packs: Packs, ran: Ran) -> None:
    """Every state goes on with exactly the batches after it, and ends where its epoch ends."""
    for rank in range(case.world_size):
        flow = flow_of(case, packs, rank)
        expected = list(reference.batches(flow, case.epoch, rank, case.world_size))
        places = reference.places(flow, case.epoch, case.world_size)
        for place, state in zip(ran.places, ran.states[:-1], strict=True):
            flow.restore(through_json(state))
            left = [batch for batch, other in zip(expected, places, strict=True) if other >= place]
            assert_same(list(flow.epoch()), left, f"rank {rank} from {place}")
        flow.restore(through_json(ran.states[-1]))
        following = reference.batches(flow, ran.states[-1]["epoch"], rank, case.world_size)
        assert_same(list(islice(flow.epoch(), 2)), list(islice(following, 2)), f"rank {rank}, next epoch")
        flow.close()


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(state)
    assert len(text) < 1024
    read: dict[str, Any] = json.loads(text)
    return read


def assert_same(found: list[Any], expected: list[Any], where: str) -> None:
    assert len(found) == len(expected), where
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        different = reference.differences(one, other)
        assert not different, f"{where}, batch {number}: {'; '.join(different)}"
