"""Which frames of a damaged video count."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.codecs.decoding import DecodingPass, Lost
from penstock.codecs.video import UnreadableVideo, frame_checksum
from video_making import damage_packets, write_video


def given(path: Path) -> tuple[list[int], bool]:
    """What a pass gives before its end, and whether that is an error."""
    checksums: list[int] = []
    try:
        for frame in DecodingPass(path):
            if isinstance(frame, Lost):
                return checksums, True
            checksums.append(frame_checksum(frame))
    except UnreadableVideo:
        return checksums, True
    return checksums, False


@pytest.mark.parametrize("options", [{"bf": "0"}, {"bf": "2"}, {"bf": "3", "b-pyramid": "normal"}])
def test_frames_before_damage_are_whole_wherever_it_is(tmp_path: Path, options: dict[str, str]) -> None:
    path = write_video(tmp_path / "a.mp4", options={"g": "12", **options})
    good, content = given(path)[0], path.read_bytes()
    for number in range(14, 40):
        path.write_bytes(content)
        damage_packets(path, [number])
        found, fails = given(path)
        assert found == good[: len(found)], f"packet {number}"
        assert number - 4 < len(found) <= number + 1 and (fails or number >= 36)
