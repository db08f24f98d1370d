"""The shape of the code: imports go downhill, the core stays light, files stay small."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock as ps

SOURCE = Path(ps.__file__).parent
REPOSITORY = SOURCE.parents[1]

# From the bottom up; a package imports only what stands on a lower level.
LEVELS = (
    ("errors", "wording"),
    ("samples", "problems", "seeds", "geometry", "results", "runs", "codecs", "storage"),
    ("augment",),
    ("formats", "packing"),
    ("opening",),
    ("flow",),
    ("diagnosis",),
    ("tasks",),
    ("training",),
    ("prediction",),
    ("reporting",),
    ("recipes",),
    ("cli", "web"),
)
HEIGHT = {name: height for height, names in enumerate(LEVELS) for name in names}
SIBLINGS_ALLOWED = {"samples", "problems", "seeds", "geometry", "results", "runs", "codecs", "storage"}
HEAVY = ("torch", "pandas", "rasterio", "av", "pyarrow", "cv2", "simplejpeg", "numpy", "click", "rich", "h5py")
VERBS = ("check", "pack", "export", "doctor", "train", "evaluate", "predict", "report", "serve")
VAGUE = ("utils", "helpers", "common", "base", "core", "misc")
MOST_LINES = 600

FILES = sorted(SOURCE.rglob("*.py"))


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def packages_used(path: Path) -> set[str]:
    pieces = [name.split(".") for name in imports_of(path) if name.startswith("penstock.")]
    return {piece[1] for piece in pieces if piece[1] in HEIGHT}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_go_downhill(path: Path) -> None:
    own = package_of(path)
    if own in ("__init__", "__main__"):
        return
    assert own in HEIGHT, f"{own} has no level; DESIGN §4 says where it belongs"
    for used in packages_used(path) - {own}:
        beside = HEIGHT[used] == HEIGHT[own] and not {used, own} <= SIBLINGS_ALLOWED
        assert HEIGHT[used] <= HEIGHT[own] and not beside, f"{own} imports {used}, which is not below it"


def test_the_core_knows_no_torch() -> None:
    for path in FILES:
        if HEIGHT.get(package_of(path), 0) <= HEIGHT["diagnosis"]:
            assert not any(name.split(".")[0] == "torch" for name in imports_of(path)), path


def test_importing_penstock_loads_nothing_heavy() -> None:
    code = f"import sys, penstock; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_packing_images_needs_no_optional_library() -> None:
    code = (
        "import sys, penstock as ps; ps.Images, ps.Boxes, ps.pack, ps.open, ps.check; "
        "print([n for n in ('torch', 'pandas', 'rasterio', 'av', 'h5py', 'pyarrow.dataset') if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_no_folder_is_named_like_a_verb_and_no_name_is_vague() -> None:
    folders = {path.parent.name for path in FILES}
    assert not folders & {*VERBS, *VAGUE}
    assert not {path.stem for path in FILES} & set(VAGUE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_file_holds_one_concept(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{lines} lines hide a second concept: name it and split"


PROBED = {"source", "store", "base", "below", "inner_source"}


def probes(path: Path) -> Iterator[int]:
    """Lines that look for a member of a source by its name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            asked = node.args[0]
            name = asked.id if isinstance(asked, ast.Name) else asked.attr if isinstance(asked, ast.Attribute) else ""
            if name in PROBED:
                yield node.lineno


def test_nobody_behind_the_doors_probes_a_source() -> None:
    found = {path.relative_to(SOURCE).as_posix(): list(probes(path)) for path in FILES}
    assert {name: lines for name, lines in found.items() if lines} == {
        "samples/store.py": found["samples/store.py"]  # where a user's source becomes a Store
    }


# Names with an underscore that other libraries document, or that a class has from one of theirs.
FOREIGN_NAMES = {
    "_replace", "_asdict", "_fields",  # of named tuples
    "_exit", "_getframe", "_current_frames",  # of os and sys
    "_metadata", "_constructor_from_mgr",  # of pandas, for classes made of its tables
    "_version",  # of tensors
}  # fmt: skip


FLOW_NAMES = {"_plan", "_options", "_running"}  # of Flow, which has a member for each: plan, options, running


def names_defined(tree: ast.Module) -> set[str]:
    """Functions, classes, variables, and what objects set on themselves."""
    nodes = list(ast.walk(tree))
    found = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    found |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return found | {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_own(node.value)}


def is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def test_no_package_reaches_into_the_private_parts_of_another() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    known: dict[str, set[str]] = {}
    for path, tree in trees.items():
        known.setdefault(package_of(path), set(FOREIGN_NAMES)).update(names_defined(tree))
    found = []
    for path, tree in trees.items():
        allowed = known[package_of(path)] - (FLOW_NAMES if path != SOURCE / "flow" / "flow.py" else set())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and not is_own(node.value):
                is_private = node.attr.startswith("_") and not node.attr.startswith("__")
                if is_private and node.attr not in allowed:
                    found.append(f"{path.relative_to(SOURCE).as_posix()}:{node.lineno}: {ast.unparse(node)}")
    assert not found, "give the class a member that says what it is asked for"


def test_every_public_name_exists_and_is_documented() -> None:
    for name in ps.__all__:
        value = getattr(ps, name)
        assert name in ("AUTO", "__version__") or value.__doc__, f"{name} has no docstring"


def test_the_errors_are_drawn_as_they_are() -> None:
    from penstock import errors

    drawing = errors.__doc__ or ""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in [kind for kind in kinds if issubclass(kind, errors.PenstockError)]:
        assert kind.__name__ in drawing
        assert kind is errors.PenstockError or f" {kind.exit_code} " in drawing


def test_every_package_has_a_line_in_the_architecture_page() -> None:
    page = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for package in {package_of(path) for path in FILES} - {"__init__", "__main__"}:
        assert f"`{package}" in page, f"ARCHITECTURE.md does not mention {package}"
