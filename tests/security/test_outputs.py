"""What Penstock writes and prints: reports, commands to copy, modes of files; and weights with false sizes."""

from __future__ import annotations

import html
import json
import os
import shlex
import stat
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.diagnosis.spelling import Spelling
from penstock.reporting.page import _head
from picture_making import write_picture

HOSTILE_PATHS = ["$(touch x)", "`touch x`", "a'b\"c", "two\nlines", "a; touch x", "a && touch x", "~/x", "*", "a\\b"]


def test_a_report_forbids_everything_but_its_own_script() -> None:
    head = str(_head("</title><script>alert(1)</script>"))
    assert "<script>" not in head
    policy = html.unescape(head).partition("Content-Security-Policy")[2].partition(">")[0]
    for rule in ("default-src 'none'", "script-src 'sha256-", "base-uri 'none'", "form-action 'none'"):
        assert rule in policy


@pytest.mark.parametrize("name", HOSTILE_PATHS)
def test_commands_of_the_doctor_keep_a_hostile_path_as_one_word(tmp_path: Path, name: str) -> None:
    path = f"data/{name}"
    files = Spelling(data=path, kind="images", options={"label_from_name": name})
    recipe = Spelling(recipe=path, changes=(f"data.path={name}",), data=path)
    for command, word in [
        (files.pack(224), path),
        (files.pack(None), name),
        (files.move(), path),
        (recipe.setting("workers", 2), path),
        (recipe.batch(8), f"data.path={name}"),
        (recipe.pack(None), path),
        (recipe.model(has_gpu=True), path),
    ]:
        assert word in shlex.split(command)
        _, *arguments = shlex.split(command)
        shell = ["sh", "-c", f'penstock() {{ printf \'%s\\0\' "$@"; }}; cp() {{ penstock "$@"; }}; {command}']
        said = subprocess.run(shell, cwd=tmp_path, capture_output=True, check=True).stdout.decode().split("\0")
        assert [one for one in arguments if one not in ("&&", "penstock")] == said[:-1]
    assert list(tmp_path.iterdir()) == []


def safetensors(header: Any, data: bytes = bytes(16), length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(shape: list[int], start: int, end: int) -> dict[str, Any]:
    return {"weight": {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}}


@pytest.mark.parametrize(
    "content",
    [
        safetensors(tensor([4], 0, 16), length=2**63),
        safetensors(tensor([4], 0, 16), length=10**6),
        safetensors(tensor([4], 0, 2**40)),
        safetensors(tensor([2**40], 0, 2**42)),
        safetensors(tensor([2**32, 2**32], 0, 16)),
        safetensors(tensor([400], 0, 16)),
        safetensors(tensor([4], 16, 0)),
        safetensors(b"no JSON at all"),
        b"",
    ],
    ids=["header", "long header", "end", "shape and end", "overflow", "shape", "backwards", "no JSON", "empty"],
)
def test_safetensors_with_false_sizes_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ps.DataError, match=r"model\.safetensors.*cannot be read"):
        ps.load(path)


@pytest.fixture
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("mask", [0o077, 0o022, 0o002], indirect=True, ids=oct)
def test_files_of_packs_and_exports_have_the_modes_that_the_user_set(tmp_path: Path, mask: int) -> None:
    for number in range(4):
        write_picture(tmp_path / "in" / ("cat", "dog")[number % 2] / f"{number}.png", seed=number)
    pack = ps.pack(ps.Images(tmp_path / "in"), tmp_path / "out" / "pets.pack", progress=False)
    ps.export(pack, tmp_path / "out" / "table", to="directory", progress=False)
    written = list((tmp_path / "out").rglob("*"))
    assert len(written) > 4
    for path in written:
        usual = 0o777 if path.is_dir() else 0o666
        assert stat.S_IMODE(path.stat().st_mode) == usual & ~mask, path
