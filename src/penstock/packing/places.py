"""The folders that a pack passes through. A writer may be killed between any two steps; the next one tidies up.

    trees.pack.partial/          the workshop: plan.json, journal.jsonl, stamps
      pack/                      the pack to be: shards, index, pack.json
    .trees.pack.replaced/        the old pack, between the rename of it and that of the new one
    trees.pack/                  the pack

Nothing is ever removed that was not made by a writer: a workshop has a plan, a pack has a manifest.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from penstock.errors import PackError
from penstock.packing.layout import MANIFEST_NAME

PLAN_NAME = "plan.json"
REPLACES_NAME = "replaces"


class Places:
    """Where a pack is written, and how it gets its name."""

    def __init__(self, path: str | Path) -> None:
        target = Path(path)
        # A link stays, and what it points to is written.
        self.target = target.resolve() if target.is_symlink() else target
        self.workshop = self.target.with_name(self.target.name + ".partial")
        self.pack = self.workshop / "pack"
        self.replaced = self.target.with_name(f".{self.target.name}.replaced")

    def tidy(self) -> None:
        """Finish or undo what a killed writer left between two renames."""
        if _is_pack_or_empty(self.replaced):
            if self.target.exists() or not (self.replaced / MANIFEST_NAME).exists():
                _remove_pack(self.replaced)
            else:
                self.replaced.rename(self.target)
        if self.target.exists() and self._is_workshop() and not self.pack.exists():
            self._remove_workshop()

    def check(self, resume: bool, overwrite: bool) -> None:
        """Refuse what would lose something: an existing pack, a foreign folder, unfinished work."""
        if self.target.exists() and not (self.target / MANIFEST_NAME).exists():
            raise PackError(f"{self.target} exists and is not a pack; it is left alone. Choose another name with -o.")
        goes_on = resume and (self.workshop / REPLACES_NAME).exists()
        if self.target.exists() and not (overwrite or goes_on):
            raise PackError(
                f"{self.target} exists already. Pass --overwrite to replace it, or choose another name with -o."
            )
        self._refuse_foreign(self.workshop, self._is_workshop())
        self._refuse_foreign(self.replaced, False)
        if self.workshop.exists() and not (resume or overwrite):
            raise PackError(
                f"{self.workshop} is an unfinished pack. Pass --resume to go on with it, or --overwrite to start anew."
            )

    @staticmethod
    def _refuse_foreign(folder: Path, ours: bool) -> None:
        if folder.exists() and not ours:
            raise PackError(f"{folder} is in the way and not ours; it is left alone. Rename it, or choose another -o.")

    def _is_workshop(self) -> bool:
        return self.workshop.is_dir() and ((self.workshop / PLAN_NAME).exists() or not any(self.workshop.iterdir()))

    def begin(self, plan: str) -> None:
        """A workshop with nothing but a plan in it."""
        if self.workshop.exists():
            self._remove_workshop()
        self.workshop.mkdir()
        (self.workshop / PLAN_NAME).write_text(plan, encoding="utf-8")
        if self.target.exists():
            (self.workshop / REPLACES_NAME).touch()
        self.pack.mkdir()

    def give_the_name(self) -> None:
        """The finished pack takes its name; an old one goes only then."""
        if self.target.exists():
            self.target.rename(self.replaced)
        self.pack.rename(self.target)
        if self.replaced.exists():
            _remove_pack(self.replaced)
        self._remove_workshop()

    def abandon(self) -> None:
        """A workshop without anything finished would only be in the way."""
        if self._is_workshop():
            self._remove_workshop()

    def _remove_workshop(self) -> None:
        """The plan goes last, so that a half removed workshop can still be told from a user's folder."""
        if self.pack.exists():
            shutil.rmtree(self.pack)
        for path in self.workshop.iterdir():
            if path.name != PLAN_NAME:
                path.unlink()
        (self.workshop / PLAN_NAME).unlink(missing_ok=True)
        self.workshop.rmdir()


def _is_pack_or_empty(folder: Path) -> bool:
    return folder.is_dir() and ((folder / MANIFEST_NAME).exists() or not any(folder.iterdir()))


def _remove_pack(folder: Path) -> None:
    """The manifest goes last, so that a half removed pack can still be told from a user's folder."""
    for path in folder.iterdir():
        if path.name != MANIFEST_NAME:
            path.unlink()
    (folder / MANIFEST_NAME).unlink(missing_ok=True)
    folder.rmdir()
