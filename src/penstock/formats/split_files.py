"""Which split the names of files tell: train-00000.tar, instances_val2017.json, gap-00003.tfrecord."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

# `gap` is what packing calls samples between two splits that are too close to both.
_SPLIT = re.compile(r"(?:^|[-_.])(train|training|val|valid|validation|test|gap)(?=[-_.0-9])")
_SHARD = re.compile(r"([a-z][a-z0-9_]*)-[0-9]+(?:-of-[0-9]+)?\.")
_SPLIT_NAMES = {"training": "train", "valid": "val", "validation": "val"}


def splits_of(paths: Iterable[str]) -> list[str | None]:
    """The split that the name of each file tells, such as train-00000.tar; None for all where one does not.

    Beside files that are called so, gap-00000.tar tells its split too: all are a word and the number of a shard.
    """
    names = [os.path.basename(path).lower() for path in paths]  # noqa: PTH119 - thousands of files
    found = [_SPLIT.search(name) for name in names]
    splits = [None if one is None else _SPLIT_NAMES.get(one[1], one[1]) for one in found]
    if None not in splits:
        return splits
    shards = [_SHARD.match(name) for name in names]
    if any(splits) and None not in shards:
        return [split or shard[1] for split, shard in zip(splits, shards, strict=True) if shard is not None]
    return [None] * len(splits)
