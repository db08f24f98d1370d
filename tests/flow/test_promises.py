"""The promises of a flow, over every combination: once, same bits, and going on exactly where it stopped."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.flow.promise_checks import check, check_once, check_resumed, check_same_bits, ran_epoch
from tests.flow.promised import CHAINS, KINDS, Case, Packs

# PENSTOCK_EXAMPLES=20 looks at twenty times as many combinations, others each time.
MORE = int(os.environ.get("PENSTOCK_EXAMPLES", "0"))
pytestmark = pytest.mark.timeout(900 * max(MORE, 1))


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
    has_groups = kind not in ("padded", "ragged", "sequence")
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
        cache=draw(st.sampled_from(["no", "no", "memory"] if kind == "sequence" else ["no", "memory", "folder"])),
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


def another(case: Case, way: dict[str, Any]) -> Case:
    """The same plan run in another way, by at most as many ranks as a batch has samples."""
    return case.run_as(**way | {"world_size": min(way["world_size"], case.batch_size)})


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
    check_resumed(another(in_processes, way), packs, ran)
    in_threads = case.run_as(executor="thread", **small)
    check_resumed(in_processes.run_as(workers=1), packs, ran_epoch(in_threads, packs))
