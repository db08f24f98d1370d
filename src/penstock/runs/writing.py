"""Writing a Run: whole files take the place of the old at once, logs only ever grow.

One process writes a Run. What a killed process leaves is a Run that can be read: at most the last line of a log is cut
short, and whoever goes on with the Run removes it first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import xxhash

from penstock.runs import layout
from penstock.runs.layout import json_lines, plain, yaml_text
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_file, read_text
from penstock.storage.whole_files import write_whole


class RunWriter:
    """Writes a Run into a folder, which is made if it is not there. Nothing in it is removed."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.checkpoints = self.folder / layout.CHECKPOINTS
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        for name in (layout.METRICS, layout.FEED):
            _end_with_a_whole_line(self.folder / name)

    @property
    def _metrics(self) -> Path:
        return self.folder / layout.METRICS

    @property
    def feed(self) -> Path:
        """The file for `Flow.log_metrics`."""
        return self.folder / layout.FEED

    def write_settings(
        self, settings: Mapping[str, Mapping[str, Any]], chosen: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """The complete recipe by section, and what auto became, by section too."""
        sections = {**settings, **({layout.CHOSEN: chosen} if chosen else {})}
        write_whole(self.folder / layout.SETTINGS, yaml_text(sections, width=120))

    def write_environment(self, facts: Mapping[str, Any]) -> None:
        """Add facts about machine, libraries and times to those that are there."""
        self._write_json(layout.ENVIRONMENT, {**self._environment(), **facts})

    def write_outcome(self, outcome: str, ended: str, seconds: float) -> None:
        """How a session ended; a Run that was resumed took the time of all its sessions."""
        before = self._environment().get("seconds", 0.0)
        self.write_environment({"ended": ended, "outcome": outcome, "seconds": round(before + seconds, 1)})

    def _environment(self) -> dict[str, Any]:
        path = self.folder / layout.ENVIRONMENT
        found: dict[str, Any] = load_json(read_text(path)) if path.exists() else {}
        return found

    def write_details(self, details: Mapping[str, Any]) -> None:
        """What a report draws of the validation."""
        self._write_json(layout.DETAILS, details)

    def write_bad_samples(self, samples: Sequence[Mapping[str, Any]]) -> None:
        """Samples that could not be read: `key` or `index`, and `reason`."""
        self._write_json(layout.SAMPLES, samples)

    def write_worst(self, rows: Sequence[Mapping[str, Any]], thumbnails: Sequence[bytes | None] = ()) -> None:
        """The samples that were answered most wrongly, the worst first, and a JPEG of each where there is one."""
        pictures = [*thumbnails, *[None] * (len(rows) - len(thumbnails))]
        named = [
            {**row, **({"thumbnail": self._add_thumbnail(picture)} if picture is not None else {})}
            for row, picture in zip(rows, pictures, strict=True)
        ]
        self._write_json(layout.WORST, named)
        self._remove_thumbnails_but({row["thumbnail"] for row in named if "thumbnail" in row})

    def _add_thumbnail(self, picture: bytes) -> str:
        """Named after its content: rows that are still there keep their own until the new rows are written."""
        name = f"{layout.THUMBNAILS}/{xxhash.xxh3_64_hexdigest(picture)}.jpg"
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            write_whole(path, picture)
        return name

    def _remove_thumbnails_but(self, kept: set[str]) -> None:
        for path in (self.folder / layout.THUMBNAILS).glob("*.jpg"):
            if f"{layout.THUMBNAILS}/{path.name}" not in kept:
                path.unlink()

    def log_metrics(self, values: Mapping[str, Any], *, epoch: int, step: int) -> None:
        """One line of metrics, on the disk before this returns to the caller's work."""
        self._append(layout.METRICS, json.dumps(plain({"epoch": epoch, "step": step, **values})))

    def forget_metrics_after(self, step: int) -> None:
        """Drop lines of later steps, when training goes on from a checkpoint that is older than they are."""
        lines = json_lines(self._metrics)
        kept = [line for line in lines if line.get("step", 0) <= step]
        if len(kept) < len(lines):
            write_whole(self._metrics, "".join(json.dumps(line) + "\n" for line in kept))

    def has_metrics(self, step: int, names: Iterable[str]) -> bool:
        """Whether a line of this step has one of these names."""
        return any(line.get("step") == step and line.keys() & set(names) for line in json_lines(self._metrics))

    def say(self, text: str) -> None:
        """A line of the log."""
        self._append(layout.LOG, text)

    def _append(self, name: str, line: str) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _write_json(self, name: str, value: Any) -> None:
        write_whole(self.folder / name, json.dumps(plain(value), ensure_ascii=False, indent=1) + "\n")


def _end_with_a_whole_line(path: Path) -> None:
    """Cut off a line that a killed process began: it would swallow the next one."""
    if not path.exists():
        return
    content = read_file(path)
    if content and not content.endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(content.rfind(b"\n") + 1)
