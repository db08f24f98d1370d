"""Numbers with their noun."""

from __future__ import annotations

import pytest

from penstock.wording import counted


@pytest.mark.parametrize(
    ("count", "thing", "words"),
    [
        (1, "sample", "1 sample"),
        (0, "sample", "0 samples"),
        (3680, "sample", "3,680 samples"),
        (1, "class", "1 class"),
        (2, "class", "2 classes"),
        (2, "box", "2 boxes"),
        (2, "batch", "2 batches"),
        (1, "image without boxes", "1 image without boxes"),
        (2, "image without boxes", "2 images without boxes"),
        (2, "label row", "2 label rows"),
        (None, "batch", "batches without end"),
    ],
)
def test_a_noun_follows_its_number(count: int | None, thing: str, words: str) -> None:
    assert counted(count, thing) == words
