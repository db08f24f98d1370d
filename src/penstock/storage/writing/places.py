"""The folders that a pack or an export passes through. A killed writer leaves them between steps; the next tidies up.

    trees.pack.partial/          the workshop: plan.json, journal.jsonl, stamps
      pack/                      the pack to be: shards, index, pack.json
    .trees.pack.replaced/        the old pack, between the rename of it and that of the new one
    trees.pack/                  the pack

Nothing is ever removed that was not made by a writer: a workshop has a plan, a pack or an export has a manifest.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import PackError
from penstock.storage.whole_files import sync_folder, sync_tree

PLAN_NAME = "plan.json"
REPLACES_NAME = "replaces"


@dataclass(frozen=True)
class Made:
    """What a writer makes: what it is called, the file by which it is known, and whether it has folders inside."""

    noun: str
    manifest_name: str
    has_folders: bool = False

    @property
    def a_noun(self) -> str:
        return f"an {self.noun}" if self.noun[0] in "aeiou" else f"a {self.noun}"


class Places:
    """Where a pack or an export is written, and how it gets its name."""

    def __init__(self, path: str | Path, made: Made) -> None:
        target = Path(path)
        self.made = made
        # A link stays, and what it points to is written.
        self.target = _followed(target) if target.is_symlink() else target
        self.workshop = self.target.with_name(self.target.name + ".partial")
        self.content = self.workshop / made.noun
        self.replaced = self.target.with_name(f".{self.target.name}.replaced")

    def tidy(self) -> None:
        """Finish or undo what a killed writer left between two renames."""
        if self._is_made_or_empty(self.replaced):
            if self.target.exists() or not self._has_manifest(self.replaced):
                self._remove_made(self.replaced)
            else:
                self.replaced.rename(self.target)
        if self.target.exists() and self._is_workshop() and not self.content.exists():
            self._remove_workshop()

    def check(self, resume: bool, overwrite: bool) -> None:
        """Refuse what would lose something: an existing pack, a foreign folder, unfinished work."""
        if self.target.exists() and not self._has_manifest(self.target):
            raise PackError(
                f"{self.target} exists and is not {self.made.a_noun}; it is left alone. Choose another path."
            )
        goes_on = resume and (self.workshop / REPLACES_NAME).exists()
        if self.target.exists() and not (overwrite or goes_on):
            raise PackError(f"{self.target} exists already. Pass overwrite=True to replace it, or choose another path.")
        self._refuse_foreign(self.workshop, self._is_workshop())
        self._refuse_foreign(self.replaced, False)
        if self.workshop.exists() and not (resume or overwrite):
            raise PackError(
                f"{self.workshop} is an unfinished {self.made.noun}. "
                "Pass resume=True to resume it, or overwrite=True to start again."
            )

    @staticmethod
    def _refuse_foreign(folder: Path, ours: bool) -> None:
        if (folder.exists() or folder.is_symlink()) and not ours:
            raise PackError(f"{folder} is in the way and not ours; it is left alone. Rename it, or choose another.")

    def _is_workshop(self) -> bool:
        if self.workshop.is_symlink():  # somebody else's idea of what would be written or removed
            return False
        return self.workshop.is_dir() and ((self.workshop / PLAN_NAME).exists() or not any(self.workshop.iterdir()))

    def begin(self, plan: str) -> None:
        """A workshop with nothing but a plan in it."""
        if self.workshop.exists():
            self._remove_workshop()
        self.workshop.mkdir()
        (self.workshop / PLAN_NAME).write_text(plan, encoding="utf-8")
        if self.target.exists():
            (self.workshop / REPLACES_NAME).touch()
        self.content.mkdir()

    def give_the_name(self, *, sync: bool = True) -> None:
        """What is finished takes its name; an old one goes only then. With `sync` all of it is on the disk before."""
        if sync:
            sync_tree(self.content)
        if self.target.exists():
            self.target.rename(self.replaced)
        self.content.rename(self.target)
        if sync:
            sync_folder(self.target.parent)
        if self.replaced.exists():
            self._remove_made(self.replaced)
        self._remove_workshop()

    def abandon(self) -> None:
        """A workshop without anything finished would only be in the way."""
        if self._is_workshop():
            self._remove_workshop()

    def _remove_workshop(self) -> None:
        """The plan goes last, so that a half removed workshop can still be told from a user's folder."""
        if self.content.exists():
            shutil.rmtree(self.content)
        for path in self.workshop.iterdir():
            if path.name != PLAN_NAME:
                path.unlink()
        (self.workshop / PLAN_NAME).unlink(missing_ok=True)
        self.workshop.rmdir()

    def _has_manifest(self, folder: Path) -> bool:
        return (folder / self.made.manifest_name).exists()

    def _is_made_or_empty(self, folder: Path) -> bool:
        return folder.is_dir() and not folder.is_symlink() and (self._has_manifest(folder) or not any(folder.iterdir()))

    def _remove_made(self, folder: Path) -> None:
        """The manifest goes last, so that what is half removed can still be told from a user's folder."""
        for path in folder.iterdir():
            if self.made.has_folders and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != self.made.manifest_name:
                path.unlink()
        (folder / self.made.manifest_name).unlink(missing_ok=True)
        folder.rmdir()


def _followed(link: Path) -> Path:
    try:
        return link.resolve(strict=False)
    except (OSError, RuntimeError) as error:  # RuntimeError until Python 3.13
        raise PackError(f"{link} is a link that leads back to itself. Remove it, or choose another path.") from error
