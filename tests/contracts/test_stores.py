"""What every Store obeys: whatever it says beyond `read` and `decode` is what these two give.

Run for each source of the contract of sources, and for a part of each in another order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contracts.test_sources import FACTORIES, assert_same, sample_of

import penstock as ps
from penstock.samples import Origin, Store, as_store


def whole(source: ps.Source) -> Store:
    return as_store(source)


def part(source: ps.Source) -> Store:
    return ps.Subset(source, [1, 0, 1])


@pytest.fixture(
    params=[(name, view) for name in FACTORIES for view in (whole, part)], ids=lambda one: f"{one[0]}-{one[1].__name__}"
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    name, view = request.param
    return view(FACTORIES[name](tmp_path))


def every(store: Store) -> np.ndarray[Any, np.dtype[np.int64]]:
    """All samples, the second one first."""
    return np.array([1, *range(len(store))], np.int64)


def image_at(store: Store, index: int) -> Any:
    assert store.schema.image is not None
    return store.decode(store.read(index))[store.schema.image.name]


def test_a_store_is_made_once_and_then_passed_on(store: Store) -> None:
    assert isinstance(store, Store)
    assert as_store(store) is store


def test_annotations_are_the_sample_without_its_pixels(store: Store) -> None:
    pixels = {field.name for field in store.schema.fields if field.kind in ("image", "mask")}
    for index in range(len(store)):
        sample = sample_of(store, index)
        assert_same(store.annotations(index), {name: sample[name] for name in sample.keys() - pixels})


def test_many_at_once_are_those_one_by_one(store: Store) -> None:
    annotations = store.annotations_many(every(store))
    for index, values in zip(every(store).tolist(), annotations or (), strict=annotations is not None):
        assert_same(values, store.annotations(index))
    together = store.read_many(every(store).tolist(), lambda size: memoryview(bytearray(size)))
    for index, read in zip(every(store).tolist(), together, strict=True):
        if read is not None:
            assert read.raw.index == store.read(index).index
            assert bytes(read.raw.data) == bytes(store.read(index).data)


@pytest.mark.parametrize("name", ["key", "group", "split"])
def test_columns_say_what_annotations_say(store: Store, name: str) -> None:
    try:
        column = store.column(name)
    except KeyError:
        return
    assert column.tolist() == [store.annotations(index).get(name) or "" for index in range(len(store))]


def test_gathered_fields_are_those_of_the_samples(store: Store) -> None:
    for field in store.schema.fields:
        gathered = None if field.kind in ("image", "mask") else store.gather(field.name, every(store))
        for index, value in zip(every(store).tolist(), gathered if gathered is not None else (), strict=False):
            np.testing.assert_array_equal(value, store.annotations(index)[field.name], err_msg=field.name)


def test_groups_and_frames_are_told_apart_as_their_columns_do(store: Store) -> None:
    numbers = store.group_numbers()
    if numbers is not None:
        groups = [store.annotations(index)["group"] for index in range(len(store))]
        same = [[one == other for other in groups] for one in groups]
        assert [[bool(one == other) for other in numbers] for one in numbers] == same
    frames = store.frame_numbers()
    if frames is not None and "frame" in store.schema:
        assert frames.tolist() == [int(store.annotations(index)["frame"]) for index in range(len(store))]


def test_counts_of_labels_are_those_of_the_boxes(store: Store) -> None:
    counts = store.label_counts()
    if counts is None:
        return
    for index in range(len(store)):
        labels = store.annotations(index)["box_label"]
        assert counts[index].tolist() == np.bincount(labels, minlength=max(1, len(store.classes))).tolist()


def test_known_sizes_are_those_of_the_images(store: Store) -> None:
    if store.schema.image is None:
        return
    base, indices, frames = store.images_at(every(store))
    assert frames == 1
    sizes = base.image_sizes(indices)
    for index, size in zip(every(store).tolist(), sizes if sizes is not None else (), strict=False):
        assert image_at(store, index).shape[1::-1] == tuple(size)
    uniform = base.uniform_image_size()
    if uniform is not None:
        assert {image_at(store, index).shape[1::-1] for index in range(len(store))} == {uniform}


def test_places_hold_what_reading_gives(store: Store) -> None:
    base, indices, _ = store.images_at(every(store))
    if base.image_storage == "encoded":
        found = base.encoded_places(indices)
        for index, place in zip(every(store).tolist(), found[1] if found is not None else (), strict=False):
            assert found is not None
            number, first, length = place.tolist()
            assert bytes(found[0][number][first : first + length]) == bytes(store.read(index).data)
    if base.image_storage == "raw":
        buffers, places = base.pixel_places(indices)
        for index, (number, first, width, height) in zip(every(store).tolist(), places.tolist(), strict=True):
            pixels = np.frombuffer(buffers[number], np.uint8)[first : first + width * height * 3]
            np.testing.assert_array_equal(pixels.reshape(height, width, 3), image_at(store, index))


def test_fields_below_views_are_the_same(store: Store) -> None:
    base, indices = store.fields_at(every(store))
    for index, inner in zip(every(store).tolist(), indices.tolist(), strict=True):
        assert store.annotations(index).items() >= {}.items()
        for field in store.schema.fields:
            if field.kind not in ("image", "mask"):
                np.testing.assert_array_equal(base.annotations(inner)[field.name], store.annotations(index)[field.name])


def test_shards_are_numbered_and_advice_changes_nothing(store: Store) -> None:
    base, indices, _ = store.images_at(every(store))
    shards = base.shard_numbers(indices)
    assert shards is None or len(shards) == len(indices)
    before = sample_of(store, 1)
    assert base.will_need(indices) >= 0
    assert 0 <= base.resident_share(indices) <= 1
    base.give_back(indices)
    assert dict(base.damaged(indices)) == {}
    assert_same(sample_of(store, 1), before)


def test_origins_name_existing_files(store: Store) -> None:
    for index in range(len(store)):
        origin = store.origin(index)
        assert isinstance(origin, Origin)
        if store.tells_origins:
            assert Path(origin.file).stat().st_size == origin.size


def test_a_fingerprint_stays_as_long_as_the_data_do(store: Store) -> None:
    assert store.fingerprint() == store.fingerprint()
    assert store.fingerprint() is None or isinstance(store.fingerprint(), str)


def test_a_sample_is_named_by_its_key_where_that_is_known(store: Store) -> None:
    key = store.annotations(1).get("key")
    named = f"sample 1 ({key})" if store.knows_annotations and key else "sample 1"
    assert store.describe(1) == named or store.describe(1).startswith(f"{named} in ")
