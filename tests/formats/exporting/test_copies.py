"""What a copy of a pack knows of its source: what must be handed on, and how its frames are stored."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from exporting_trips import pets
from made_sources import Reels


def test_a_copy_of_a_pack_does_not_claim_the_origin_of_the_pack(tmp_path: Path) -> None:
    source = pets(tmp_path)
    assert len(source.manifest.made_from) > 1
    assert ps.pack(source, tmp_path / "again.pack").manifest.made_from == {"source": "Pack"}
    some = ps.Subset(source, [0, 3])
    assert ps.pack(some, tmp_path / "some.pack", split="all").manifest.made_from == {"source": "Subset"}
    assert ps.export(some, tmp_path / "out", to="directory").made_from == {"source": "Subset"}


@pytest.mark.parametrize(("codec", "ending"), [("h264", ".jpg"), ("raw", ".png")])
def test_frames_leave_a_pack_as_jpeg_only_where_they_have_lost_more(tmp_path: Path, codec: str, ending: str) -> None:
    packed = ps.pack(Reels(20, 7), tmp_path / "reels.pack", codec=codec)
    ps.export(packed, tmp_path / "out", to="directory")
    kinds = {path.suffix for path in (tmp_path / "out").rglob("*") if path.suffix in (".jpg", ".png")}
    assert kinds == {ending}
