"""The promises of a flow, over every combination: once, same bits, and going on exactly where it stopped."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import islice
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.flow import reference
from tests.flow.promised import CHAINS, KINDS, Case, Packs, flow_of

# PENSTOCK_EXAMPLES=20 looks at twenty times as many combinations, others each time.
MORE = int(os.environ.get("PENSTOCK_EXAMPLES", "0"))


def sweep(examples: int, *, shrinks: bool = True) -> Any:
    """Settings of a sweep; where every try starts processes, a failure is told as it was found."""
    return settings(
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if shrinks else [])],
        max_examples=examples * max(MORE, 1),
        derandomize=not MORE,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


@pytest.fixture(scope="session")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Packs:
    return Packs(tmp_path_factory.mktemp("promises"))


COUNTS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 15)),
        st.tuples(st.just("skip"), st.integers(0, 4)),
        st.tuples(st.just("repeat"), st.integers(1, 2)),
    ),
    max_size=2,
).map(tuple)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(KINDS))
    is_image = kind in ("jpeg pack", "raw pack", "png", "split")
    has_groups = kind not in ("padded", "ragged")
    world_size = draw(st.integers(1, 4))
    return Case(
        kind=kind,
        chain=draw(st.sampled_from(CHAINS)),
        shuffle=draw(st.sampled_from(["whole", "window", "none"])),
        chosen=draw(
            st.sampled_from(["all", "all", "where", "filter", "interleave"] if has_groups else ["all", "filter"])
        )
        if not is_image
        else draw(st.sampled_from(["all", "all", "where", "filter", "interleave", "sample"])),
        counted=draw(st.one_of(st.just(()), COUNTS)),
        counted_batches=draw(st.one_of(st.just(()), COUNTS)),
        bad=draw(
            st.sampled_from(["none", "none", "function", "source"] if kind == "png" else ["none", "none", "function"])
        ),
        mixed=draw(st.sampled_from(["no", "no", "first", "all"])) if is_image else "no",
        cache=draw(st.sampled_from(["no", "no", "memory", "folder"])),
        batch_size=draw(st.integers(world_size, 9)),
        drop_last=draw(st.booleans()),
        on_batches=draw(st.integers(0, 4)) == 4,
        seed=draw(st.integers(-3, 2**63)),
        epoch=draw(st.integers(0, 3)),
        world_size=world_size,
        workers=draw(st.sampled_from(["auto", 0, 1, 2, 3, 4])),
        memory=draw(st.sampled_from(["auto", "300 KB"])),
        prefetch=draw(st.sampled_from(["auto", 1, 2, 5])),
    )


@st.composite
def ways(draw: st.DrawFn) -> dict[str, Any]:
    """Another way to run the same plan."""
    return {
        "workers": draw(st.sampled_from(["auto", 0, 1, 2, 4])),
        "memory": draw(st.sampled_from(["auto", "300 KB"])),
        "prefetch": draw(st.sampled_from(["auto", 1, 3])),
        "world_size": draw(st.integers(1, 4)),
    }


def check(case: Case, other: Case, packs: Packs) -> None:
    """All three promises, for a case and another way to run it."""
    ran = ran_epoch(case, packs)
    check_once(case, packs, ran)
    check_same_bits(case, packs, ran)
    check_resumed(other, packs, ran.states)


class Ran:
    """What all ranks got in one epoch, and the state before each batch and at the end."""

    def __init__(self, batches: list[list[Any]], states: list[dict[str, Any]], bad: list[Any]) -> None:
        self.batches, self.states, self.bad = batches, states, bad


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
    return Ran(batches, states[0], bad)


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
        source = flow_of(case.run_as(world_size=1), packs)._running.planned.source
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


def check_resumed(case: Case, packs: Packs, states: list[dict[str, Any]]) -> None:
    """Every state goes on with exactly the batches after it, and ends where its epoch ends."""
    for rank in range(case.world_size):
        flow = flow_of(case, packs, rank)
        expected = list(reference.batches(flow, case.epoch, rank, case.world_size))
        for number, state in enumerate(states[:-1]):
            flow.restore(through_json(state))
            assert_same(list(flow.epoch()), expected[number:], f"rank {rank} from {number}")
        flow.restore(through_json(states[-1]))
        following = reference.batches(flow, states[-1]["epoch"], rank, case.world_size)
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


def another(case: Case, way: dict[str, Any]) -> Case:
    """The same plan run in another way, by at most as many ranks as a batch has samples."""
    other = case.run_as(**way | {"world_size": min(way["world_size"], case.batch_size)})
    return other.run_as(world_size=case.world_size) if case.counted_batches else other


@given(case=cases(), way=ways())
@sweep(120)
def test_every_plan_keeps_its_promises_in_threads(case: Case, way: dict[str, Any], packs: Packs) -> None:
    check(case, another(case, way), packs)


@given(case=cases(), way=ways())
@sweep(6, shrinks=False)
@pytest.mark.parametrize("executor", ["subprocess", "process"])
def test_every_plan_keeps_its_promises_in_processes(
    executor: str, case: Case, way: dict[str, Any], packs: Packs
) -> None:
    """What threads begin processes go on with, and the other way round; few ranks, because each starts its own."""
    small = {"world_size": min(case.world_size, 2), "workers": case.workers or 1}
    in_processes = case.run_as(executor=executor, **small)
    ran = ran_epoch(in_processes, packs)
    check_once(in_processes, packs, ran)
    check_same_bits(in_processes, packs, ran)
    check_resumed(another(in_processes, way), packs, ran.states)
    in_threads = case.run_as(executor="thread", **small)
    check_resumed(in_processes.run_as(workers=1), packs, ran_epoch(in_threads, packs).states)
