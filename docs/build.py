"""Writes the pages of reference from the code itself, so that they cannot lag behind. Run by `make docs`.

commands.md    the help of every command
python.md      signature and docstring of every public name
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

import penstock as ps
from penstock.cli import penstock
from penstock.samples import View
from penstock.samples.mapped_store import MappedStore

WIDTH = 110
FOLDER = Path(__file__).parent

COMPLETION = """\
Shells complete commands, options and paths. Put one of these lines where your shell starts:

```
eval "$(_PENSTOCK_COMPLETE=bash_source penstock)"       # ~/.bashrc
eval "$(_PENSTOCK_COMPLETE=zsh_source penstock)"        # ~/.zshrc
_PENSTOCK_COMPLETE=fish_source penstock | source        # ~/.config/fish/completions/penstock.fish
```

Results go to stdout, progress and warnings to stderr; `--json` gives one JSON document. `NO_COLOR=1` leaves out
colours. `--debug` shows the traceback of an error.

| exit code | |
|---|---|
| 0 | fine |
| 1 | a look found problems |
| 2 | a wrong option or recipe, or a library that is missing |
| 3 | a problem of your files |
| 4 | a pack that is missing, damaged, or of another version |
| 5 | a training that cannot go on |
| 70 | a bug of ours |
| 130 | Ctrl-C |
"""


def commands_page() -> str:
    """The help of every command, one after another."""
    sections = ["# All commands", "", "Written by `make docs` from the commands' own help.", "", COMPLETION]
    for context in commands(_context(penstock, "penstock", None)):
        sections += [f"## {context.command_path}", "", "```text", context.get_help(), "```", ""]
    return "\n".join(sections)


def commands(context: click.Context) -> Iterator[click.Context]:
    """Every command that does something, in the context of its groups, from which it has its settings."""
    group = context.command
    if not isinstance(group, click.Group):
        yield context
        return
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if command is not None:
            yield from commands(_context(command, word, context))


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    settings = command.context_settings | {"terminal_width": WIDTH, "max_content_width": WIDTH}
    return click.Context(command, info_name=name, parent=parent, **settings)


def python_page() -> str:
    """Every public name: verbs and other functions first, then classes, errors and the steps of augment."""
    public = {name: getattr(ps, name) for name in ps.__all__ if name not in ("AUTO", "__version__", "augment")}
    classes = {name: value for name, value in public.items() if inspect.isclass(value)}
    errors = {name: value for name, value in classes.items() if issubclass(value, Exception)}
    groups = {
        "Functions": {name: value for name, value in public.items() if name not in classes},
        "Classes": {name: value for name, value in classes.items() if name not in errors},
        "Errors": errors,
        "augment": {f"augment.{name}": getattr(ps.augment, name) for name in ps.augment.__all__},
    }
    sections = ["# All names of Python", "", "Written by `make docs` from the docstrings. `import penstock as ps`.", ""]
    for title, names in groups.items():
        sections += [f"## {title}", ""]
        for name, value in names.items():
            sections += _described(name, value)
    return "\n".join(sections).rstrip() + "\n"


def _described(name: str, value: Any) -> list[str]:
    """A name, how it is called, what its docstring says, and its public methods."""
    lines = [f"### ps.{name}", ""]
    if callable(value) and not _is_error(value) and not inspect.isabstract(value):
        lines += ["```python", *_call(f"ps.{name}", value), "```", ""]
    lines += _docstring(value)
    methods = {} if _is_error(value) or not inspect.isclass(value) else dict(_methods(value))
    if methods:
        rows = [f"| `.{name}` | {_first_line(method)} |" for name, method in methods.items()]
        lines += ["| | |", "|---|---|", *rows, ""]
    return lines


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def _call(name: str, value: Any) -> list[str]:
    """A call with all parameters, on one line where it fits, else one a line."""
    parameters = [each for each in inspect.signature(value).parameters.values() if each.name != "self"]
    shown = [_parameter(each) for each in parameters]
    kinds = [each.kind for each in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"{name}({', '.join(shown)})"
    return [line] if len(line) <= WIDTH else [f"{name}(", *(f"    {each}," for each in shown), ")"]


def _parameter(parameter: inspect.Parameter) -> str:
    """Name, type and default; types are texts, as they stand in the code."""
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{star}{parameter.name}: {parameter.annotation}{default}"


def _docstring(value: Any) -> list[str]:
    """The first paragraph as words; tables and lists below it as they were drawn."""
    first, _, rest = (inspect.getdoc(value) or "").partition("\n\n")
    drawn = ["```text", rest, "```", ""] if rest else []
    return [" ".join(first.split()), "", *drawn]


def _methods(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that the package itself defines and describes; what every Store has, only there.

    Docstrings that begin with "Inward:" are of members for Penstock's own parts, and are left out.
    """
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        home = next(each for each in kind.__mro__ if name in vars(each))
        is_ours = home.__module__.startswith("penstock") and (home is kind or home not in (ps.Store, MappedStore, View))
        described = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        is_told = inspect.isfunction(described) and described.__doc__ and not described.__doc__.startswith("Inward:")
        if not name.startswith("_") and is_ours and is_told:
            yield name if isinstance(value, property) else f"{name}({_names(described)})", described


def _names(function: Callable[..., Any]) -> str:
    """Parameters by name alone; those that may be left out with their default."""
    shown = []
    for each in inspect.signature(function).parameters.values():
        if each.name in ("self", "cls"):
            continue
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        shown.append(f"{star}{each.name}" + (f"={each.default!r}" if each.default is not each.empty else ""))
    return ", ".join(shown)


def _first_line(function: Any) -> str:
    return " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split()).replace("|", "\\|")


PAGES: dict[str, Callable[[], str]] = {"commands.md": commands_page, "python.md": python_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
