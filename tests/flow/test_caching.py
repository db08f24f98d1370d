from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import EveryKind, Pictures, Reels, pixels
from penstock.flow.budget import Budget
from penstock.flow.caching import memory_cache as caching
from penstock.flow.caching.memory_cache import MemoryCache
from penstock.flow.making.leaves import Leaf


class Counted:
    """Counts how often each sample is decoded; knows itself by a text that tests choose."""

    schema = ps.Schema((ps.Field("image", "image"), ps.Field("label", "class")), ("a", "b"))

    def __init__(self, count: int = 20, version: str = "1") -> None:
        self.count, self.version = count, version
        self.decoded: list[int] = []

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, None)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        self.decoded.append(raw.index)
        image = pixels(raw.index) if self.version == "1" else pixels(raw.index + 1000)
        return {"image": image, "label": raw.index % 2}

    def fingerprint(self) -> str:
        return self.version


class Boxed(Counted):
    """The same with boxes."""

    schema = ps.Schema(
        (ps.Field("image", "image"), ps.Field("boxes", "boxes"), ps.Field("box_label", "labels", "int64"))
    )

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        start = np.arange(raw.index % 3, dtype=np.float32)[:, None]
        boxes = np.hstack([start, start + 1, start + 9, start + 12])
        return {**super().decode(raw), "boxes": boxes, "box_label": np.arange(len(boxes))}


class Kinds(EveryKind):
    """A field of every kind, and its own word on what it is."""

    def fingerprint(self) -> str:
        return "every kind"


def brighter(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "image": np.minimum(sample["image"].astype(np.int16) + 20, 255).astype(np.uint8)}


def halved(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "image": sample["image"].astype(np.float32) / 2, "height": len(sample["image"])}


def same(first: Any, second: Any) -> bool:
    """Whether two batches are equal bit for bit, in names, types and values."""
    assert set(first) == set(second)
    for name, value in first.items():
        other = second[name]
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype, name
            np.testing.assert_array_equal(value, other, name)
        else:
            assert len(value) == len(other), name
            for one, two in zip(value, other, strict=True):
                np.testing.assert_array_equal(one, two, name)
    return True


def assert_same_epochs(plain: ps.Flow, cached: ps.Flow, epochs: int = 2) -> None:
    for epoch in range(epochs):
        batches = list(plain.epoch(epoch)), list(cached.epoch(epoch))
        assert len(batches[0]) == len(batches[1]) > 0
        assert all(same(one, two) for one, two in zip(*batches, strict=True))


@pytest.mark.parametrize("place", ["memory", "folder"])
@pytest.mark.parametrize("shapes", ["padded", "ragged"])
def test_every_kind_of_field_comes_out_of_a_cache_as_it_went_in(tmp_path: Path, place: str, shapes: Any) -> None:
    start = ps.Flow(Kinds(20), seed=3).shuffle()
    cached = start.cache(place if place == "memory" else tmp_path)
    assert_same_epochs(start.batch(4, shapes=shapes), cached.batch(4, shapes=shapes))


@pytest.mark.parametrize("place", ["memory", "folder"])
@pytest.mark.parametrize("function", [brighter, halved])
def test_steps_before_a_cache_are_kept_and_random_ones_behind_it_stay_random(
    tmp_path: Path, place: str, function: Any
) -> None:
    start = ps.Flow(Counted(), seed=5).shuffle().map(function)
    cached = start.cache(place if place == "memory" else tmp_path)
    if function is brighter:
        start, cached = (flow.map(ps.augment.RandomCrop(16)) for flow in (start, cached))
    first = list(cached.batch(4).epoch(0))
    assert_same_epochs(start.batch(4), cached.batch(4))
    assert not all(np.array_equal(a["index"], b["index"]) for a, b in zip(first, cached.batch(4).epoch(1), strict=True))


@pytest.mark.parametrize("place", ["memory", "folder"])
@pytest.mark.parametrize("codec", ["jpeg", "raw"])
def test_a_cache_of_a_pack_keeps_what_the_kernel_made(tmp_path: Path, place: str, codec: str) -> None:
    pack = ps.pack(Counted(12), tmp_path / "some.pack", codec=codec)
    start = ps.Flow(pack, seed=1).shuffle().map(ps.augment.Resize(8))
    cached = start.cache(place if place == "memory" else tmp_path / "cache")
    flip = ps.augment.HorizontalFlip()
    assert_same_epochs(start.map(flip).batch(5), cached.map(flip).batch(5))
    assert_same_epochs(
        start.map(ps.augment.Normalize()).batch(5),
        start.map(ps.augment.Normalize()).cache(place if place == "memory" else tmp_path / "cache").batch(5),
    )


FUSED = "pixels in the cache are copied"
BEHIND = (ps.augment.RandomResizedCrop(16), ps.augment.HorizontalFlip())


@pytest.mark.parametrize("place", ["memory", "folder"])
@pytest.mark.parametrize("codec", ["jpeg", "png", "raw"])
@pytest.mark.parametrize("before", [(), (ps.augment.Resize(20),)])
@pytest.mark.parametrize("normalized", [False, True])
def test_steps_behind_a_cache_go_into_the_batch_in_one_call(
    tmp_path: Path, place: str, codec: str, before: tuple[Any, ...], normalized: bool
) -> None:
    start = ps.Flow(ps.pack(Counted(12), tmp_path / "some.pack", codec=codec), seed=1).shuffle()
    for step in before:
        start = start.map(step)
    cached = start.cache(place if place == "memory" else tmp_path / "cache")
    for step in (*BEHIND, *((ps.augment.Normalize(),) if normalized else ())):
        start, cached = start.map(step), cached.map(step)
    assert_same_epochs(start.batch(5), cached.batch(5), epochs=3)
    assert FUSED in cached.batch(5).explain()


@pytest.mark.parametrize("before", [(), (ps.augment.Resize(24),)])
def test_boxes_behind_a_memory_cache_go_with_their_images(tmp_path: Path, before: tuple[Any, ...]) -> None:
    pack = ps.pack(Boxed(10), tmp_path / "boxed.pack")
    start = ps.Flow(pack, seed=1).shuffle()
    for step in before:
        start = start.map(step)
    cached = start.cache()
    for step in (ps.augment.RandomCrop(16), ps.augment.HorizontalFlip()):
        start, cached = start.map(step), cached.map(step)
    for plain, other in zip(start.batch(3, shapes="padded"), cached.batch(3, shapes="padded"), strict=True):
        assert same(plain, {name: other[name] for name in plain})
    # Boxes that a step has moved before the cache are known only when the sample is made.
    assert (FUSED in cached.batch(3, shapes="padded").explain()) == (not before)


def test_a_cache_of_a_part_of_a_pack_gives_that_part(tmp_path: Path) -> None:
    pack = ps.pack(Counted(20), tmp_path / "some.pack", codec="jpeg")
    part = ps.samples.Subset(pack, [3, 1, 17, 8, 4, 12])
    start, cached = ps.Flow(part, seed=2).shuffle(), ps.Flow(part, seed=2).shuffle().cache().cache()
    for step in BEHIND:
        start, cached = start.map(step), cached.map(step)
    assert_same_epochs(start.batch(4), cached.batch(4))
    assert FUSED in cached.batch(4).explain()


def test_fields_that_a_function_made_come_out_of_two_caches() -> None:
    start = ps.Flow(Pictures(10), seed=2).map(brighter)
    crop = ps.augment.RandomCrop(8)
    assert_same_epochs(start.map(crop).batch(4), start.cache().cache().map(crop).batch(4))


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_bad_samples_are_substituted_behind_a_memory_cache(executor: Any) -> None:
    start = ps.Flow(Pictures(10, broken=(0, 7)), seed=2, workers=1, executor=executor, on_bad_sample="substitute")
    plain, cached = start.shuffle(), start.shuffle().cache()
    for step in BEHIND:
        plain, cached = plain.map(step), cached.map(step)
    plain, cached = plain.batch(5), cached.batch(5)
    assert_same_epochs(plain, cached)
    assert [bad[:2] for bad in plain.bad_samples] == [bad[:2] for bad in cached.bad_samples] != []


def test_a_bad_sample_behind_a_memory_cache_is_named() -> None:
    flow = ps.Flow(Pictures(10, broken=(7,))).cache().map(ps.augment.Resize(8)).batch(5)
    with pytest.raises(ps.HopError, match=r"sample 7 \(pictures/7.png\)"):
        list(flow)


class Frames(Reels):
    """Frames of videos that know which video they belong to."""

    def column(self, name: str) -> Any:
        if name != "group":
            raise KeyError(name)
        return np.array([part.key for part in self.parts for _ in range(part.frames)])

    def annotations(self, index: int) -> dict[str, Any]:
        part, frame = self._locate(index)
        return part.annotations(frame)

    def fingerprint(self) -> str:
        return "frames"


@pytest.mark.parametrize("place", ["memory", "folder"])
def test_clips_come_out_of_a_cache_as_they_went_in(tmp_path: Path, place: str) -> None:
    start = ps.Flow(Frames(9, 7), seed=1).clips(3, label="all").shuffle().map(ps.augment.CenterCrop(16))
    cached = start.cache(place if place == "memory" else tmp_path)
    flip = ps.augment.HorizontalFlip()
    assert_same_epochs(start.map(flip).batch(5), cached.map(flip).batch(5))


@pytest.mark.parametrize("place", ["memory", "folder"])
def test_caches_can_stand_behind_one_another_and_in_mixed_flows(tmp_path: Path, place: str) -> None:
    def mixed(cache: Any) -> ps.Flow:
        first = cache(ps.Flow(Counted(8)).shuffle().map(brighter)).map(brighter)
        second = cache(cache(ps.Flow(Counted(6, "2")).map(brighter)))
        return cache(ps.mix([first, second], [2, 1], seed=4).map(brighter)).map(ps.augment.RandomCrop(8)).batch(3)

    where = place if place == "memory" else tmp_path
    assert_same_epochs(mixed(lambda flow: flow), mixed(lambda flow: flow.cache(where)))


def test_a_memory_cache_makes_every_sample_once() -> None:
    source = Counted()
    flow = ps.Flow(source, workers=0).map(brighter).cache().batch(4)
    for _ in range(3):
        list(flow)
    assert sorted(source.decoded) == list(range(20))


def test_what_a_memory_cache_gives_cannot_be_changed() -> None:
    flow = ps.Flow(Counted(), workers=0).cache().map(lambda sample: sample["image"].fill(0) or sample).batch(4)
    for _ in range(2):
        with pytest.raises(ps.HopError, match="read-only"):
            next(iter(flow.epoch(0)))


def test_a_memory_cache_leaves_the_arrays_of_a_source_writable() -> None:
    class Held(Counted):
        def __init__(self) -> None:
            super().__init__(4)
            self.images = [pixels(number) for number in range(4)]

        def decode(self, raw: ps.Raw) -> dict[str, Any]:
            return {"image": self.images[raw.index], "label": 0}

    source = Held()
    list(ps.Flow(source, workers=0).cache().batch(4))
    assert all(image.flags.writeable for image in source.images)


def test_things_that_could_be_changed_in_place_are_given_out_anew() -> None:
    class Listed(Counted):
        def decode(self, raw: ps.Raw) -> dict[str, Any]:
            return {"words": {"names": ["a"]}, "label": raw.index}

    def spoil(sample: dict[str, Any]) -> dict[str, Any]:
        sample["words"]["names"].append("b")
        return sample

    flow = ps.Flow(Listed(4), workers=0).cache().map(spoil).batch(4)
    for _ in range(2):
        assert next(iter(flow.epoch(0)))["words"] == [{"names": ["a", "b"]}] * 4


def made_cache(source: Any, budget: Budget, monkeypatch: pytest.MonkeyPatch) -> MemoryCache:
    monkeypatch.setattr(caching, "process_budget", lambda: budget)
    return MemoryCache(Leaf(source, (), None), None, 4)


def test_a_memory_cache_stays_within_its_share_and_makes_anew_what_does_not_fit(monkeypatch: Any) -> None:
    budget, source = Budget(64 * 1024), Counted(100)
    cache = made_cache(source, budget, monkeypatch)
    for _ in range(2):
        for index in range(100):
            np.testing.assert_array_equal(cache.decode(cache.read(index))["image"], pixels(index))
            assert budget.taken == cache.kept_bytes <= 32 * 1024
    assert 100 < len(source.decoded) < 200
    assert cache.kept_bytes > 24 * 1024
    del cache
    assert budget.taken == 0


def test_a_memory_cache_gives_way_to_others_who_took_the_budget(monkeypatch: Any) -> None:
    budget = Budget(64 * 1024)
    assert budget.take(60 * 1024)
    cache = made_cache(Counted(), budget, monkeypatch)
    for index in range(20):
        cache.decode(cache.read(index))
    assert 0 < cache.kept_bytes <= 4 * 1024


def test_a_flow_that_is_gone_gives_the_bytes_of_its_cache_back() -> None:
    from penstock.flow.budget import process_budget

    before = process_budget().taken
    flow = ps.Flow(Counted(), workers=2).cache().batch(4)
    list(flow)
    assert process_budget().taken > before
    flow.close()
    del flow
    assert process_budget().taken == before


def test_eight_threads_fill_a_memory_cache_and_count_every_byte_once(monkeypatch: Any) -> None:
    budget = Budget(2**30)
    cache = made_cache(Counted(50), budget, monkeypatch)
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for index in range(50):
            assert np.array_equal(cache.decode(cache.read(index))["image"], pixels(index))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.kept_bytes == budget.taken == 50 * (32 * 24 * 3 + caching.ENTRY_BYTES)


def test_a_memory_cache_arrives_empty_in_another_process(monkeypatch: Any) -> None:
    budget = Budget(2**20)
    cache = made_cache(Pictures(5), budget, monkeypatch)
    cache.decode(cache.read(0))
    copy = pickle.loads(pickle.dumps(cache))
    assert copy.kept_bytes == 0 < cache.kept_bytes
    assert copy._allowance.limit == cache._allowance.limit // 4
    assert pickle.loads(pickle.dumps(copy))._allowance.limit == copy._allowance.limit
    np.testing.assert_array_equal(copy.decode(copy.read(0))["image"], pixels(0))


# On disk


def packs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.pack"))


def test_a_cache_on_disk_is_made_once_and_used_by_later_runs(tmp_path: Path) -> None:
    list(ps.Flow(Counted()).map(brighter).cache(tmp_path).batch(4))
    assert len(packs(tmp_path)) == 1
    later = Counted()
    flow = ps.Flow(later, workers=0).map(brighter).cache(tmp_path).batch(4)
    assert len(flow) == 5
    batches = list(flow)
    assert len(later.decoded) <= 1  # one is made to see what batches look like
    assert_same_epochs(ps.Flow(Counted()).map(brighter).batch(4), flow)
    assert len(batches) == 5 and len(packs(tmp_path)) == 1


def test_nothing_is_written_before_an_epoch_starts(tmp_path: Path) -> None:
    flow = ps.Flow(Counted()).cache(tmp_path / "cache").batch(4)
    assert len(flow) == 5 and flow[3]["index"] == 3 and flow.state()
    assert not (tmp_path / "cache").exists()


def test_another_source_or_other_steps_make_another_cache(tmp_path: Path) -> None:
    def flow(source: Any, *functions: Any) -> ps.Flow:
        made = ps.Flow(source)
        for function in functions:
            made = made.map(function)
        return made.cache(tmp_path).batch(4)

    def shifted(by: int) -> Any:
        return lambda sample: {**sample, "label": sample["label"] + by}

    plans = [
        (Counted(), brighter),
        (Counted(version="2"), brighter),
        (Counted(), brighter, brighter),
        (Counted(), shifted(1)),
        (Counted(), shifted(2)),
        (Counted(), ps.augment.Resize(9)),
        (Counted(), ps.augment.Resize(10)),
    ]
    for number, (source, *functions) in enumerate(plans, start=1):
        made = list(flow(source, *functions))
        assert len(packs(tmp_path)) == number
        plain = ps.Flow(type(source)(version=source.version))
        for function in functions:
            plain = plain.map(function)
        assert all(same(one, two) for one, two in zip(plain.batch(4), made, strict=True))


def test_only_samples_that_the_plan_can_reach_are_cached(tmp_path: Path) -> None:
    source = Counted()
    list(ps.Flow(source, workers=0).skip(4).take(6).shuffle().cache(tmp_path).batch(3))
    assert set(source.decoded) == set(range(4, 10))
    assert len(ps.open(packs(tmp_path)[0])) == 6


def test_a_bad_sample_stops_a_cache_on_disk_and_is_named(tmp_path: Path) -> None:
    flow = ps.Flow(Pictures(10, broken=(7,))).map(brighter).cache(tmp_path).batch(5)
    with pytest.raises(ps.HopError, match=r"sample 7 \(pictures/7.png\)"):
        list(flow)
    assert not packs(tmp_path)


@pytest.mark.parametrize("place", ["memory", "folder"])
def test_substitutes_are_the_same_with_a_cache(tmp_path: Path, place: str) -> None:
    start = ps.Flow(Pictures(10, broken=(0, 7)), seed=2, on_bad_sample="substitute").shuffle().map(brighter)
    plain, cached = start.batch(5), start.cache(place if place == "memory" else tmp_path).batch(5)
    assert_same_epochs(plain, cached)
    assert [bad[:2] for bad in plain.bad_samples] == [bad[:2] for bad in cached.bad_samples] != []


def test_a_source_that_cannot_be_told_from_another_has_no_cache_on_disk(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match=r"EveryKind.*fingerprint\(\)"):
        list(ps.Flow(EveryKind(4)).cache(tmp_path).batch(1, shapes="ragged"))


def test_a_function_that_cannot_be_told_from_another_has_no_cache_on_disk(tmp_path: Path) -> None:
    lock = threading.Lock()

    def locked(sample: dict[str, Any]) -> dict[str, Any]:
        with lock:
            return sample

    with pytest.raises(ps.OptionError, match="lock"):
        list(ps.Flow(Counted(4)).map(locked).cache(tmp_path).batch(1))


def test_what_a_pack_cannot_store_is_said(tmp_path: Path) -> None:
    def listing(sample: dict[str, Any]) -> dict[str, Any]:
        return {**sample, "note": {"a": 1}}

    with pytest.raises(ps.OptionError, match=r"'note' is dict.*memory"):
        list(ps.Flow(Counted(4)).map(listing).cache(tmp_path).batch(1))


def test_samples_that_differ_in_type_are_said(tmp_path: Path) -> None:
    def uneven(sample: dict[str, Any]) -> dict[str, Any]:
        return {**sample, "label": 1.5 if sample["label"] else 1}

    with pytest.raises(ps.OptionError, match=r"sample 1: 'label' is float64"):
        list(ps.Flow(Counted(4)).map(uneven).cache(tmp_path).batch(1))


def test_a_cache_after_a_random_step_is_refused() -> None:
    with pytest.raises(ps.OptionError, match="every epoch would see the same"):
        list(ps.Flow(Counted()).map(ps.augment.RandomCrop(8)).cache().batch(2))


KILLED = r"""
import os, sys
import numpy as np
import penstock as ps
from pathlib import Path

class Large:
    schema = ps.Schema((ps.Field("values", "array", "float64", (None,)),))
    def __len__(self): return 40
    def fingerprint(self): return "large"
    def read(self, index): return ps.Raw(index, None)
    def decode(self, raw):
        os.write(1, f"{raw.index}\n".encode())
        if raw.index == int(sys.argv[2]):
            os.kill(os.getpid(), 9)
        return {"values": np.random.default_rng(raw.index).random(2**20)}

total = sum(batch["values"].sum() for batch in ps.Flow(Large(), workers=0).cache(sys.argv[1]).batch(4))
print("sum", float(total))
"""


def run_killed(folder: Path, at: int) -> subprocess.CompletedProcess[str]:
    code = [sys.executable, "-c", KILLED, str(folder), str(at)]
    return subprocess.run(code, capture_output=True, text=True, timeout=600)


def test_a_cache_whose_making_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    killed = run_killed(tmp_path, 30)
    assert killed.returncode == -signal.SIGKILL
    assert not packs(tmp_path) and list(tmp_path.glob("*.partial"))
    second = run_killed(tmp_path, -1)
    assert second.returncode == 0, second.stderr
    made = [int(line) for line in second.stdout.split("sum")[0].split()]
    assert len(made) < 40 and set(range(30, 40)) <= set(made)
    assert len(packs(tmp_path)) == 1 and not list(tmp_path.glob("*.partial"))
    expected = sum(np.random.default_rng(index).random(2**20).sum() for index in range(40))
    assert float(second.stdout.split("sum")[1]) == pytest.approx(expected)


SHARED = r"""
import os, sys
import numpy as np
import penstock as ps

class Slow:
    schema = ps.Schema((ps.Field("values", "array", "float64", (None,)),))
    def __len__(self): return 60
    def fingerprint(self): return "slow"
    def read(self, index): return ps.Raw(index, None)
    def decode(self, raw):
        os.write(1, b"." * 1)
        return {"values": np.random.default_rng(raw.index).random(2**16)}

flow = ps.Flow(Slow(), workers=0).cache(sys.argv[1]).batch(4)
flow.running.program
sys.stdin.readline()  # all begin at once
print("sum", repr(float(sum(batch["values"].sum() for batch in flow))))
"""


def test_several_ranks_that_want_the_same_cache_make_it_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SHARED, str(tmp_path)]
    ranks = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for rank in ranks:
        assert rank.stdin is not None
        rank.stdin.write("\n")
        rank.stdin.flush()
    outputs = [rank.communicate(timeout=600)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0]
    assert len({output.split("sum")[1] for output in outputs}) == 1
    # Each makes one to see what batches look like; the one that makes the cache makes its first once more.
    assert sum(output.count(".") - output.split("sum")[1].count(".") for output in outputs) <= 60 + 3 + 3
    assert len(packs(tmp_path)) == 1 and not list(tmp_path.glob("*.partial"))
