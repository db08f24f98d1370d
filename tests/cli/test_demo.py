"""The demonstration: what a stranger runs first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import penstock as ps
from commands import run_here
from penstock.codecs.images import decode_image


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Threads of a tiny network would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_the_demonstration_packs_verifies_draws_and_learns_and_can_be_run_again(tmp_path: Path) -> None:
    for _ in range(2):
        outcome = run_here("demo", "--folder", tmp_path / "demo")
        assert outcome.exit_code == 0, outcome.err
        assert outcome.out.count("every checksum matches") == 3
        assert (tmp_path / "demo" / "runs" / "shapes" / "report.html").stat().st_size > 10_000
        assert ps.Run(tmp_path / "demo" / "runs" / "shapes").scores()["accuracy"] >= 0.9
    for name, samples in (("shapes", 300), ("crowns", 27), ("mice", 450)):
        assert len(ps.open(tmp_path / "demo" / f"{name}.pack")) == samples
        assert min(decode_image((tmp_path / "demo" / f"{name}.png").read_bytes()).shape[:2]) >= 320
