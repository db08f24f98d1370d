"""The folder of a Run that somebody else wrote, through `penstock report`."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
# Long enough for a busy machine: only work that grows with the square of the names meets it.
WITHOUT_END = 120


@pytest.fixture
def run(shapes_run: ps.Run, tmp_path: Path) -> Path:
    """A Run that a test may change."""
    folder = tmp_path / "run"
    shutil.copytree(shapes_run.folder, folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    return folder


def report(run: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", "report", str(run)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=WITHOUT_END)


@pytest.mark.parametrize(
    "line",
    [
        '{"epoch": 1e400, "step": 1, "val/loss": 0.5}',
        '{"epoch": NaN, "step": Infinity, "val/loss": NaN}',
        '{"epoch": 1, "step": -1e400, "val/loss": -1e400}',
        '{"epoch": "<b>", "step": [1], "val/loss": {"a": 1}}',
        '{"epoch": 123456789012345678901234567890, "step": null, "val/loss": "x"}',
    ],
)
def test_numbers_that_no_training_logs_make_a_page(line: str, run: Path) -> None:
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    done = report(run)
    assert done.returncode == 0, done.stderr
    assert (run / "report.html").is_file()


@pytest.mark.parametrize("prefix", ["k", "train_"])
def test_a_hundred_thousand_names_in_a_line_make_a_page(prefix: str, run: Path) -> None:
    names = {f"{prefix}{number}": 0.5 for number in range(100_000)}
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"epoch": 1, "step": 1, **names}) + "\n")
    assert report(run).returncode == 0


def test_words_and_links_of_a_stranger_bring_neither_script_nor_other_files_into_the_page(run: Path) -> None:
    secret = run.parent / "secret.jpg"
    secret.write_bytes(b"\xff\xd8\xffa secret of the machine")
    rows = json.loads((run / "worst.json").read_text())
    linked = run / rows[0]["thumbnail"]
    linked.unlink()
    linked.symlink_to(secret)
    rows[1]["thumbnail"] = "../secret.jpg"
    rows = [{key: value if key == "thumbnail" else HOSTILE for key, value in row.items()} for row in rows]
    (run / "worst.json").write_text(json.dumps(rows))
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"epoch": 1, "step": 1, f"val/{HOSTILE}": 0.5}) + "\n")
    assert report(run).returncode == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page and "<img src=x" not in page
    assert "alert(1)" in page
    assert base64.b64encode(secret.read_bytes()).decode()[:24] not in page
