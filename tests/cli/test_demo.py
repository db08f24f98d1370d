"""The demonstration: what a stranger runs first."""

from __future__ import annotations

from pathlib import Path

import penstock as ps
from commands import run_here
from penstock.codecs.images import decode_image


def test_the_demonstration_packs_verifies_and_draws_each_kind_and_can_be_run_again(tmp_path: Path) -> None:
    for _ in range(2):
        outcome = run_here("demo", "--folder", tmp_path / "demo")
        assert (outcome.exit_code, outcome.err) == (0, "")
        assert outcome.out.count("every checksum matches") == 3
    for name, samples in (("shapes", 90), ("crowns", 27), ("mice", 450)):
        assert len(ps.open(tmp_path / "demo" / f"{name}.pack")) == samples
        assert min(decode_image((tmp_path / "demo" / f"{name}.png").read_bytes()).shape[:2]) >= 320
