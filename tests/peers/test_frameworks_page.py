"""What the page about frameworks shows of TensorFlow and JAX works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from page_examples import examples_of
from test_frameworks_page import PAGE, pets

EXAMPLES = [example for example in examples_of(PAGE.read_text(encoding="utf-8")) if example.kind == "python"]


@pytest.mark.parametrize(("sign", "library"), [(".to_tf(", "tensorflow"), (".to_jax(", "jax")])
@pytest.mark.filterwarnings("ignore")  # of frameworks, each with its own habits
def test_the_examples_work(sign: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed; make test-peers has it")
    pets(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for example in (EXAMPLES[0], *(one for one in EXAMPLES if sign in one.code)):
        exec(compile(example.code, f"frameworks.md:{example.line}", "exec"), names)
    assert "batches" in names or "images" in names
