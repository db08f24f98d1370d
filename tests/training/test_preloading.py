"""A training set that stays on the device."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.training.feeds import Feed, Rank
from training.small_trainings import InterruptAt, same_weights, trained, weights_of
from training.tiny_task import Shades, Tiny, recorded


def test_every_batch_is_made_of_the_right_samples() -> None:
    source = Shades(21)
    loader = Feed(Tiny(), source, None, 8, preload=True).training_loader(Rank())
    seen = []
    for batch in loader:
        for row, index in enumerate(batch["index"].tolist()):
            assert (batch["image"][row].numpy() == source.decode(ps.Raw(index, None))["image"]).all()
            seen.append(index)
    assert sorted(seen) == list(range(21)) and seen != sorted(seen)


def test_ranks_share_every_batch() -> None:
    loaders = [Feed(Tiny(), Shades(21), None, 8, preload=True).training_loader(Rank(number, 2)) for number in (0, 1)]
    seen = [index for loader in loaders for batch in loader for index in batch["index"].tolist()]
    assert sorted(seen) == list(range(21))


def test_samples_are_read_once_for_all_epochs(tmp_path: Path) -> None:
    source = Counted(24)
    trained(tmp_path / "run", data=(source, None), preload="device", epochs=4, workers=0)
    assert source.read_count < 2 * 24  # one is looked at for its shape


class Counted(Shades):
    """Counts how often a sample is read."""

    read_count = 0

    def read(self, index: int) -> ps.Raw:
        self.read_count += 1
        return super().read(index)


def test_it_goes_on_after_an_interruption(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", Tiny(record=str(tmp_path / "whole.txt")), preload="device")
    task = Tiny(record=str(tmp_path / "halves.txt"))
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "halves", task, preload="device", callbacks=[InterruptAt(1, 2)])
    run = trained(tmp_path / "halves", task, preload="device")
    assert recorded(tmp_path / "halves.txt") == recorded(tmp_path / "whole.txt")
    assert same_weights(weights_of(run), weights_of(whole))


def test_what_does_not_fit_is_said_with_both_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.training.feeds.free_bytes", lambda: 1000)
    with pytest.raises(ps.OptionError, match=r"needs 4.\de-06 GB, and half of what cpu has free is 5e-07 GB"):
        Feed(Tiny(), Shades(21), None, 8, preload=True).training_loader(Rank())
