"""Find small changes of source code that tests should notice: operators, numbers, conditions, statements, arguments."""

from __future__ import annotations

import ast
import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
SIBLINGS = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
# What stands in them is read by people and type checkers, or decided when Python starts.
UNMUTATED = (ast.Raise, ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)


@dataclass(frozen=True, order=True)
class Mutant:
    """One change: the bytes from `start` to `stop` of a file become `after`."""

    path: str  # below the checkout
    line: int
    start: int
    stop: int
    kind: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {' '.join(self.before.split())} -> {self.after} @{self.start}"

    def apply(self, text: bytes) -> bytes:
        return text[: self.start] + self.after.encode() + text[self.stop :]


class Finder(ast.NodeVisitor):
    """Collects the mutants of one file."""

    def __init__(self, path: str, text: bytes) -> None:
        self.path, self.text = path, text
        self.mutants: list[Mutant] = []
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def find(self) -> list[Mutant]:
        self.visit(ast.parse(self.text))
        return self.mutants

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Raise):
            self._drop(node)
        if isinstance(node, UNMUTATED):
            return
        method = getattr(self, f"visit_{type(node).__name__}", None)
        if method is not None:
            method(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            self._between("comparison", left, right, COMPARISONS[type(operator)])

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in ARITHMETIC and not _is_text(node.left) and not _is_text(node.right):
            self._between("arithmetic", node.left, node.right, ARITHMETIC[type(node.op)])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("boolean", left, right, "or" if isinstance(node.op, ast.And) else "and")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.Not, ast.USub)):
            self._replace("boolean" if isinstance(node.op, ast.Not) else "number", node, self._code(node.operand))

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self._replace("condition", node.test, f"not ({self._code(node.test)})")

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._replace("condition", node.test, f"not ({self._code(node.test)})")

    def visit_While(self, node: ast.While) -> None:
        self._replace("condition", node.test, "False")

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace("boolean", node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace("number", node, str(node.value + 1))
            if node.value > 0:
                self._replace("number", node, str(node.value - 1))
        elif isinstance(node.value, float):
            self._replace("number", node, f"({node.value!r} + 1)")

    def visit_Call(self, node: ast.Call) -> None:
        if len(node.args) > 1 and not any(isinstance(argument, ast.Starred) for argument in node.args[:2]):
            first, second = (self._code(argument) for argument in node.args[:2])
            start, stop = self._place(node.args[0])[0], self._place(node.args[1])[1]
            between = self.text[self._place(node.args[0])[1] : self._place(node.args[1])[0]].decode()
            if first != second:
                self._add("arguments", node.lineno, start, stop, second + between + first)
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in SIBLINGS:
            stop = self._place(node.func)[1]
            self._add("function", node.lineno, stop - len(name), stop, SIBLINGS[name])

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, (ast.Call, ast.Yield, ast.YieldFrom)):
            self._drop(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._drop(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
            self._drop(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._replace("result", node.value, "None")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace("statement", node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace("statement", node, "break")

    def _drop(self, node: ast.stmt) -> None:
        self._replace("statement", node, "pass")

    def _between(self, kind: str, left: ast.expr, right: ast.expr, after: str) -> None:
        """Replace the operator, which stands between two operands and maybe their brackets."""
        start, stop = self._place(left)[1], self._place(right)[0]
        gap = self.text[start:stop]
        code = gap.replace(b")", b" ").replace(b"(", b" ")
        operator = code.strip()
        if b"#" in code or not operator:
            return
        start += code.index(operator)
        self._add(kind, left.lineno, start, start + len(operator), after)

    def _replace(self, kind: str, node: ast.expr | ast.stmt, after: str) -> None:
        self._add(kind, node.lineno, *self._place(node), after)

    def _add(self, kind: str, line: int, start: int, stop: int, after: str) -> None:
        self.mutants.append(Mutant(self.path, line, start, stop, kind, self.text[start:stop].decode(), after))

    def _place(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _code(self, node: ast.expr) -> str:
        start, stop = self._place(node)
        return self.text[start:stop].decode()


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def find_mutants(checkout: Path, files: Sequence[Path]) -> list[Mutant]:
    """All mutants of some files, in a fixed order; a few of them are not legal Python."""
    found = []
    for file in sorted(files):
        found += Finder(file.relative_to(checkout).as_posix(), file.read_bytes()).find()
    return sorted(found)


def choose_mutants(checkout: Path, mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """A random choice of legal mutants with as many of each kind as there are; fewer are the beginning of more."""
    by_kind: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_kind[mutant.kind].append(mutant)
    rng = random.Random(seed)
    for kind in sorted(by_kind):
        rng.shuffle(by_kind[kind])
    legal = (mutant for mutant in _take_turns(by_kind) if _is_legal(mutant, checkout))
    return list(itertools.islice(legal, count))


def _is_legal(mutant: Mutant, checkout: Path) -> bool:
    try:
        ast.parse(mutant.apply((checkout / mutant.path).read_bytes()))
    except SyntaxError:
        return False
    return True


def _take_turns(by_kind: dict[str, list[Mutant]]) -> Iterator[Mutant]:
    for turn in range(max(map(len, by_kind.values()), default=0)):
        yield from (mutants[turn] for _, mutants in sorted(by_kind.items()) if turn < len(mutants))
