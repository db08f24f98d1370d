"""How a remedy is done: a command where the doctor looked at a recipe or files, Python where it looked at a flow."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Spelling:
    """What was looked at, as the user named it."""

    recipe: str = ""
    data: str = ""
    kind: str = "data"  # the subcommand of `penstock pack` for it
    caches_source: bool = False  # whether it keeps what the source gives: the cache of a recipe comes before all steps

    def setting(self, name: str, value: Any) -> str:
        """Another way to run."""
        if self.recipe:
            return f"penstock train {shlex.quote(self.recipe)} feed.{name}={value}"
        return f"ps.Flow(source, {name}={value!r})" if name != "prefetch" else f".prefetch({value!r})"

    def cache(self, behind: str) -> str:
        if self.recipe:
            return self.setting("cache", "memory")
        return f".cache() behind .{behind}" if behind else ".cache() before the first .map"

    def batch(self, size: int) -> str:
        if self.recipe:
            return f"penstock train {shlex.quote(self.recipe)} train.batch_size={size}"
        return f".batch({size})"

    def pack(self, side: int | None) -> str:
        """Pack the data, and train on the pack."""
        if not self.data:
            option = "" if side is None else f", shortest_side={side}"
            return f'ps.pack(source, "{_pack_name("data", side)}"{option})'
        name = _pack_name(Path(self.data).stem or "data", side)
        option = "" if side is None else f" --shortest-side {side}"
        if side is not None and self.kind == "videos":
            option = f" --size {side}x{side}"
        command = f"penstock pack {self.kind} {shlex.quote(self.data)} -o {shlex.quote(name)}{option}"
        return f"{command} && penstock train {shlex.quote(self.recipe)} data.path={name}" if self.recipe else command

    def move(self) -> str:
        """Put the data elsewhere."""
        return f"cp -r {shlex.quote(self.data or 'DATA')} /a/local/solid-state/disk/"

    def model(self, has_gpu: bool) -> str:
        if self.recipe:
            key = "train.precision=bf16" if has_gpu else "train.accelerator=gpu"
            return f"penstock train {shlex.quote(self.recipe)} {key}"
        return "a faster device, a smaller network, or lower precision in your step"


def _pack_name(stem: str, side: int | None) -> str:
    return f"{stem}.pack" if side is None else f"{stem}-{side}.pack"
