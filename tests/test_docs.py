"""The pages say what is there: every command, every verb, every file they name."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import penstock as ps

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")])


def test_the_page_of_commands_is_the_help_of_the_commands() -> None:
    spec = importlib.util.spec_from_file_location("build", REPOSITORY / "docs" / "build.py")
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    assert build.PAGE.read_text(encoding="utf-8") == build.page(), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link


@pytest.mark.parametrize("verb", ["check", "pack", "export", "train", "evaluate", "predict", "report"])
def test_every_verb_is_a_function_a_command_and_a_page(verb: str) -> None:
    assert callable(getattr(ps, verb))
    assert (REPOSITORY / "docs" / f"{verb}.md").exists()
    assert f"## penstock {verb}" in (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")


def test_files_that_the_architecture_page_names_exist() -> None:
    text = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    source = REPOSITORY / "src" / "penstock"
    for name in re.findall(r"`((?:\w+/)*\w+\.py)`", text):
        assert (source / name).exists() or (REPOSITORY / name).exists() or list(source.rglob(name)), name
