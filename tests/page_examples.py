"""The examples of a page, found in it and run: what it shows works.

| on the page                                   | is                                                               |
|-----------------------------------------------|------------------------------------------------------------------|
| a fence called `python`                       | Python                                                           |
| a fence without a name                        | commands, where a line begins with `penstock`                    |
| code in the last column of a table            | Python where it has a parenthesis, a command where it begins so  |
| … that begins with a dot                      | a step of the flow that the page calls `flow`                    |
| … that is a dotted name, such as `ps.Images`  | a name that must be there                                        |
| everything else                               | words                                                            |

All Python of a page shares one set of names, from the top to the bottom, and the page runs in a folder of its own. A
flow or loader that an example gives makes its first batch, a source its first sample.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import penstock as ps
from commands import run_here

# Libraries that only some environments have: an example that needs one is run where it is installed.
NEEDS = {".to_tf(": "tensorflow", ".to_jax(": "jax", ".to_torch(": "torch", ".to_keras(": "keras"}


class Example(NamedTuple):
    """Something on a page that can be run, and the line where it stands."""

    line: int
    kind: str
    code: str

    @property
    def missing(self) -> str | None:
        """The library that it needs and that is not installed."""
        needed = [library for sign, library in NEEDS.items() if sign in self.code]
        return next((library for library in needed if importlib.util.find_spec(library) is None), None)


def examples_of(text: str) -> Iterator[Example]:
    """Everything on a page that can be run, in its order."""
    fence: str | None = None
    held: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            if fence == "python":
                yield Example(number - len(held), "python", "\n".join(held))
            fence, held = (line[3:].strip() if fence is None else None), []
        elif fence == "" and line.startswith("penstock "):
            yield Example(number, "command", line.split("  #")[0])
        elif fence is not None:
            held.append(line)
        elif line.startswith("|"):
            yield from _of_row(number, line)


def _of_row(number: int, line: str) -> Iterator[Example]:
    last = re.split(r"(?<!\\)\|", line.strip().strip("|"))[-1]
    for code in re.findall(r"`([^`]+)`", last):
        if code.startswith("penstock "):
            yield Example(number, "command", code)
        elif "(" in code:
            yield Example(number, "python", f"flow{code}" if code.startswith(".") else code)
        elif re.fullmatch(r"(ps|flow|pack|batch)(\.\w+)+", code):
            yield Example(number, "python", code)


def run_page(page: Path, smaller: Mapping[str, str] = MappingProxyType({})) -> list[Example]:
    """Run every example of a page in the present folder; gives those that were left out.

    `smaller` says what stands on the page and what is run in its place, so that a training takes seconds.
    """
    names: dict[str, Any] = {"ps": ps, "np": np}
    left_out = []
    for example in examples_of(_replaced(page.read_text(encoding="utf-8"), smaller)):
        if example.missing is not None:
            left_out.append(example)
        elif example.kind == "command":
            _run_command(page, example)
        else:
            _run_python(page, example, names)
    return left_out


def _replaced(text: str, smaller: Mapping[str, str]) -> str:
    for shown, run in smaller.items():
        assert shown in text, f"the page does not show {shown!r} any more"
        text = text.replace(shown, run)
    return text


def _run_command(page: Path, example: Example) -> None:
    words, _, target = example.code.partition(" > ")
    outcome = run_here(*shlex.split(words)[1:])
    assert not outcome.exit_code, f"{page.name}:{example.line} {example.code}\n{outcome.out}{outcome.err}"
    if target:
        Path(target.strip()).write_text(outcome.out, encoding="utf-8")


def _run_python(page: Path, example: Example, names: dict[str, Any]) -> None:
    try:
        if "\n" in example.code:
            exec(compile(example.code, f"{page.name}:{example.line}", "exec"), names)
        else:
            _use(eval(compile(example.code, f"{page.name}:{example.line}", "eval"), names))
    except Exception as error:
        error.add_note(f"{page.name}:{example.line}: {example.code}")
        raise


def _use(value: Any) -> None:
    """Try what an example gave: a plan that was only written may still be one that cannot be run."""
    if isinstance(value, ps.Flow):
        with closing(_batched(value)) as flow:
            _first(flow)
    elif isinstance(value, Iterator) or type(value).__module__.startswith("penstock.flow.adapters"):
        _first(value)
    elif isinstance(value, ps.Source) and not isinstance(value, type):
        value.decode(value.read(0))


def _batched(flow: ps.Flow) -> ps.Flow:
    try:
        return flow.batch(2, shapes="ragged")
    except ps.OptionError:  # it has batches already
        return flow


def _first(batches: Any) -> None:
    with contextlib.ExitStack() as stack:
        iterator = iter(batches)
        if hasattr(iterator, "close"):
            stack.enter_context(closing(iterator))
        next(iterator)
