"""Opening and shuffling 10⁹ samples: `python -m benchmarks.feeding.billion` prints seconds and megabytes."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import numpy as np

import penstock as ps
from benchmarks.feeding.watching import proportional_mb

SAMPLES, BATCH = 10**9, 64


class Numbers:
    """A made-up source: sample i is the number i."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.schema = ps.Schema((ps.Field("value", "number", "int64"),))

    def __len__(self) -> int:
        return self._count

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, index)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {"value": np.int64(raw.data)}


def first_batch(count: int) -> Any:
    batches = ps.Flow(Numbers(count), seed=7).shuffle().batch(BATCH).epoch(0)
    batch = next(iter(batches))
    batches.close()  # type: ignore[attr-defined]
    return batch["value"]


def main() -> None:
    first_batch(10**4)  # what is imported and started for any flow is not what 10⁹ samples cost
    before, start = proportional_mb(os.getpid()), time.perf_counter()
    values = first_batch(SAMPLES)
    seconds, grown = time.perf_counter() - start, proportional_mb(os.getpid()) - before
    assert len(np.unique(values)) == BATCH and values.max() > SAMPLES // 2
    print(json.dumps({"seconds": seconds, "megabytes": grown}))


if __name__ == "__main__":
    main()
