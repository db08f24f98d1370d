"""A video is a file of this machine, whatever its name or its first lines say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from commands import run_here
from penstock.codecs.video import UnreadableVideo, open_video
from video_making import write_video


def test_a_name_that_looks_like_an_address_is_not_asked(
    tmp_path: Path, listener: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("http:") / listener.host
    folder.mkdir(parents=True)
    (folder / "x.mp4").write_text("a decoy")
    assert run_here("check", "videos", str(folder / "x.mp4")).exit_code == 1
    write_video(tmp_path / folder / "y.mp4", 5)
    assert len(ps.Videos(str(folder / "y.mp4"))) == 5
    assert listener.requests == []


def test_a_time_of_day_in_a_name_is_no_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_video(tmp_path / "2024-01-01T12:30:00.mp4", 7)
    assert len(ps.Videos("2024-01-01T12:30:00.mp4")) == 7
    assert run_here("check", "videos", "2024-01-01T12:30:00.mp4").exit_code == 0


def playlists(address: str) -> dict[str, str]:
    """Texts that FFmpeg would follow to other files and to servers."""
    segment = f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{address}/x.ts\n#EXT-X-ENDLIST\n"
    manifest = (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static">'
        f'<BaseURL>{address}/</BaseURL><Period duration="PT5S"><AdaptationSet mimeType="video/mp4">'
        '<Representation id="1" bandwidth="1">'
        "<BaseURL>x.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>"
    )
    return {
        "hls": segment,
        "hls of a neighbour": segment.replace(f"{address}/x.ts", "neighbour.mp4"),
        "concat": "ffconcat version 1.0\nfile 'neighbour.mp4'\n",
        "dash": manifest,
        "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
    }


def test_playlists_are_refused_and_named(tmp_path: Path, listener: Any) -> None:
    write_video(tmp_path / "neighbour.mp4", 5)
    for name, text in playlists(listener.address).items():
        for ending in (".mp4", ".m3u8", ".mpd", ".ffconcat"):
            path = tmp_path / f"{name}{ending}"
            path.write_text(text)
            with pytest.raises(UnreadableVideo, match="playlist"):
                open_video(path, parallel=False)
    assert listener.requests == []


def test_tags_that_are_not_utf8_do_not_hide_the_frames(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.avi", 6)
    data = path.read_bytes()
    at = data.index(b"ISFT")  # the program that wrote it, whose name an old program may have written in Latin-1
    path.write_bytes(data[: at + 8] + b"Caf\xe9" + data[at + 12 :])
    assert len(ps.Videos(path)) == 6
    assert ps.Videos(path).problems() == []


def test_a_video_whose_name_is_not_utf8_opens(tmp_path: Path) -> None:
    plain = write_video(tmp_path / "a.mp4", 6)
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.mp4"))
    plain.rename(path)
    assert len(ps.Videos(path)) == 6
