"""Projects of DeepEthogram: known by the file of their settings, which stands for the project."""

from __future__ import annotations

from pathlib import Path

from penstock.formats.format import Format, Found, Look

SETTINGS = "project_config.yaml"


def is_project(folder: Path) -> bool:
    return (folder / SETTINGS).is_file()


def recognise(look: Look) -> Found | None:
    return Found("DeepEthogram") if not look.is_folder and look.path.name == SETTINGS else None


DEEPETHOGRAM = Format(
    "deepethogram",
    "penstock.formats.deepethogram.deepethogram:DeepEthogram",
    marks=is_project,
    recognise=recognise,
)
