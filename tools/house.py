"""Measure the shape of the code: python -m tools.house [SOURCE_FOLDER …] [--walks] [--json].

Prints one column for each folder of Python sources, so that a checkout can stand beside another one or beside a peer:

    python -m tools.house src/penstock ../grain/grain
    python -m tools.house --walks            # also counts the files that one JPEG crosses, in the installed Penstock
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.verbs import begins_with_verb

SOURCE = Path(__file__).resolve().parents[1] / "src" / "penstock"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    name: str
    lines: int
    tree: ast.Module


def read_modules(folder: Path) -> list[Module]:
    modules = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(name, len(text.splitlines()), ast.parse(text)))
    return modules


def find_functions(modules: list[Module]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for module in modules:
        yield from (node for node in ast.walk(module.tree) if isinstance(node, FUNCTIONS))


def find_imports(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def count_importers(modules: list[Module]) -> Counter[str]:
    names = {module.name for module in modules}
    importers: Counter[str] = Counter()
    for module in modules:
        importers.update({name for name in find_imports(module) if name in names and name != module.name})
    return importers


def count_probes(modules: list[Module]) -> int:
    calls = (node for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    return sum(isinstance(call.func, ast.Name) and call.func.id in ("getattr", "hasattr") for call in calls)


def find_repeated_classes(modules: list[Module]) -> dict[str, int]:
    names = Counter(node.name for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))
    return {name: count for name, count in names.most_common() if count > 1}


def share_of_verbs(modules: list[Module]) -> float:
    names = [node.name for module in modules for node in module.tree.body if isinstance(node, FUNCTIONS)]
    return sum(map(begins_with_verb, names)) / max(len(names), 1)


def describe(values: list[int]) -> str:
    """Median / ninetieth percentile / largest."""
    ordered = sorted(values) or [0]
    return f"{statistics.median(ordered):.0f} / {ordered[int(0.9 * (len(ordered) - 1))]} / {ordered[-1]}"


def measure(folder: Path) -> dict[str, str]:
    modules = read_modules(folder)
    lines = {module.name: module.lines for module in modules}
    functions = list(find_functions(modules))
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    alone = [name for name, count in count_importers(modules).items() if count == 1]
    repeated = find_repeated_classes(modules)
    return {
        "Python files / lines": f"{len(modules)} / {sum(lines.values()):,}",
        "lines a file: median / p90 / max": describe(list(lines.values())),
        "files of at most 60 lines": str(sum(count <= 60 for count in lines.values())),
        "lines a function: median / p90 / max": describe(lengths),
        "functions over 50 lines": str(sum(length > 50 for length in lengths)),
        "modules with exactly one importer (lines)": f"{len(alone)} ({sum(lines[name] for name in alone):,})",
        "getattr and hasattr": str(count_probes(modules)),
        "module-level functions that begin with a verb": f"{share_of_verbs(modules):.0%}",
        "class names that stand for several classes": f"{len(repeated)} {dict(list(repeated.items())[:5])}",
    }


def print_table(columns: dict[str, dict[str, str]]) -> None:
    print("| | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for row in next(iter(columns.values())):
        print(f"| {row} | " + " | ".join(column.get(row, "–") for column in columns.values()) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[SOURCE])
    parser.add_argument("--walks", action="store_true", help="trace one sample through the installed Penstock")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    columns = {folder.resolve().name: measure(folder.resolve()) for folder in options.folders}
    if options.walks:
        from tools.walks import measure_walks

        columns.setdefault(SOURCE.name, {}).update(measure_walks())
    print(json.dumps(columns, indent=2)) if options.json else print_table(columns)


if __name__ == "__main__":
    main()
