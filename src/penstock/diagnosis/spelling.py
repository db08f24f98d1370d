"""How a remedy is done: a command where the doctor looked at a recipe or files, Python where it looked at a flow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WILD = "*?[{"


@dataclass(frozen=True)
class Spelling:
    """What was looked at, as the user named it.

    recipe          the file, and `changes` the keys that were given beside it
    data            the path of the data, and `options` those that it is opened with
    kind            the subcommand of `penstock pack` for it
    caches_source   whether it keeps what the source gives: the cache of a recipe comes before all steps
    is_run          whether the recipe is that of a Run, which tells how it was made and stays as it is
    """

    recipe: str = ""
    changes: tuple[str, ...] = ()
    data: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "data"
    caches_source: bool = False
    is_run: bool = False

    def setting(self, name: str, value: Any) -> str:
        """Another way to run."""
        if self.recipe:
            return self._train(f"feed.{name}={value}")
        return f"ps.Flow({self._source()}, {name}={value!r})" if name != "prefetch" else f".prefetch({value!r})"

    def cache(self, behind: str) -> str:
        if self.recipe:
            return self.setting("cache", "memory")
        if self.data and behind == "shuffle":
            return f"ps.Flow({self._source()}).shuffle().cache()"
        return f".cache() behind .{behind}" if behind else ".cache() before the first .map"

    def batch(self, size: int) -> str:
        return self._train(f"train.batch_size={size}") if self.recipe else f".batch({size})"

    def pack(self, side: int | None) -> str:
        """Pack the data, and train on the pack."""
        if not self.data:
            option = "" if side is None else f", shortest_side={side}"
            return f'ps.pack(source, "{_pack_name("data", side)}"{option})'
        name = _as_path(_pack_name(_stem(self.data), side))
        command = shlex.join(["penstock", "pack", self.kind, _as_path(self.data), *_flags(self.options), "-o", name])
        if side is not None:
            command += f" --size {side}x{side}" if self.kind == "videos" else f" --shortest-side {side}"
        if not self.recipe:
            return command
        # A pack is opened without the options of the files that it was made of.
        keys = [f"data.path={name}", *(["data.options={}"] if self.options else [])]
        return f"{command} && {self._train(*keys)}"

    def move(self) -> str:
        """Put the data elsewhere."""
        return f"cp -r {shlex.quote(_as_path(self.data or 'DATA'))} /a/local/solid-state/disk/"

    def model(self, has_gpu: bool) -> str:
        if not self.recipe:
            return "a faster device, a smaller network, or lower precision in your step"
        if has_gpu:
            return self._train("train.precision=bf16")
        return f"{self._train('train.accelerator=gpu')}    # on a machine with a GPU: this one has none"

    def _train(self, *keys: str) -> str:
        """Train by this recipe with some keys, which go before those that were given."""
        names = [key.partition("=")[0] for key in keys]
        given = [one for one in self.changes if one.partition("=")[0] not in names]
        return shlex.join(["penstock", "train", _as_path(self.recipe), *given, *keys])

    def _source(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"ps.open({self.data!r}{options})" if self.data else "source"


def _flags(options: Mapping[str, Any]) -> Iterator[str]:
    """Options of a source as those of the command line."""
    for name, value in options.items():
        if value is None or value is False:
            continue
        yield f"--{name.replace('_', '-')}"
        if value is not True:
            yield ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _as_path(path: str) -> str:
    """A path that no command takes for an option: -x as ./-x."""
    return f"./{path}" if path.startswith("-") else path


def _stem(data: str) -> str:
    """A name for what is made of these data: theirs, or where they are many that of their folder."""
    path = Path(data)
    while path.name and any(sign in path.name for sign in WILD):
        path = path.parent
    return path.stem or "data"


def _pack_name(stem: str, side: int | None) -> str:
    return f"{stem}.pack" if side is None else f"{stem}-{side}.pack"
