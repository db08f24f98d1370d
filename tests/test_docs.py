"""The pages say what is there: every command, every name, every verb, every file they name."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import penstock as ps

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
PAGES = sorted([*REPOSITORY.glob("*.md"), *DOCS.glob("**/*.md")])
CODE = re.compile(r"`((?:\w+/)*\w+\.py)`")


def build() -> Any:
    """The program that writes the pages of reference."""
    spec = importlib.util.spec_from_file_location("build", DOCS / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["commands.md", "python.md"])
def test_the_reference_is_what_the_code_says(name: str) -> None:
    if name == "python.md":
        pytest.importorskip("lightning", reason="names of learning need the extra train")
    assert (DOCS / name).read_text(encoding="utf-8") == build().PAGES[name](), "run `make docs`"


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    assert [
        name for name in ps.__all__ if name not in ("AUTO", "__version__", "augment") and f"### ps.{name}\n" not in text
    ] == []


def test_members_for_the_own_parts_of_penstock_are_not_in_the_reference() -> None:
    section = (DOCS / "python.md").read_text(encoding="utf-8").split("### ps.Flow\n")[1].split("\n### ")[0]
    assert "| `.explain()`" in section
    assert [name for name in ("plan", "options", "running", "rewrite") if f"| `.{name}" in section] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link


@pytest.mark.parametrize("verb", ["check", "pack", "export", "doctor", "train", "evaluate", "predict", "report"])
def test_every_verb_is_a_function_a_command_and_a_page(verb: str) -> None:
    assert callable(getattr(ps, verb))
    assert (DOCS / f"{verb}.md").exists()
    assert f"## penstock {verb}" in (DOCS / "commands.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", [REPOSITORY / "ARCHITECTURE.md", *DOCS.glob("inside/*.md")], ids=lambda page: page.stem
)
def test_files_of_the_code_that_a_page_names_exist(page: Path) -> None:
    source = REPOSITORY / "src" / "penstock"
    for name in CODE.findall(page.read_text(encoding="utf-8")):
        assert (source / name).exists() or (REPOSITORY / name).exists() or list(source.rglob(name)), name


def _in_navigation(entries: Any) -> set[str]:
    if isinstance(entries, str):
        return {entries}
    inside = entries.values() if isinstance(entries, dict) else entries
    return set().union(*(_in_navigation(entry) for entry in inside))


def test_every_page_is_in_the_navigation() -> None:
    settings = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    assert _in_navigation(settings["nav"]) == {page.relative_to(DOCS).as_posix() for page in DOCS.glob("**/*.md")}


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed; pip install 'penstock[dev]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    assert (tmp_path / "site" / "index.html").exists()
