"""One small change of a module's source at a time: an operator, a comparison, a number, a sign, a
flag, a condition is turned, min and max are swapped.

Left alone: messages (`raise`, `print`), annotations, `strict=` of zip, which only says once more
that two lists are of one length, and `frozen=` of dataclasses.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import NamedTuple

_SWAPS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.RShift: (">>", "<<"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
_PAIRS = ["min max", "amin amax", "nanmin nanmax", "argmin argmax", "minimum maximum", "any all"]
_NAMES = {a: b for pair in _PAIRS for a, b in (pair.split(), pair.split()[::-1])}
_TEXTS = {"greater": "less", "mean": "median", "min": "max"}
_TEXTS |= {b: a for a, b in _TEXTS.items()}


class Mutant(NamedTuple):
    """One change of a module: its place in the source (bytes), and how a reader finds it."""

    start: int
    stop: int
    text: str
    line: int
    where: str
    before: str
    after: str
    nth: int  # of equal changes of equal lines in one function

    @property
    def key(self) -> tuple[str, ...]:
        return self.where, self.before, self.after, str(self.nth)

    def of(self, source: bytes) -> bytes:
        """The module with the change."""
        return source[: self.start] + self.text.encode() + source[self.stop :]


def mutants(source: str) -> list[Mutant]:
    """Every change of a module's source that still compiles.

    >>> [m.after for m in mutants("def f(x):\\n    return x < 2\\n")]
    ['return x <= 2', 'return x < 3']
    """
    text = _Source(source.encode())
    found, seen = [], Counter[tuple[str, str, str]]()
    for (start, stop, new), where in sorted(_edits(ast.parse(source), text)):
        row = bisect_right(text.starts, start)
        left, right = text.starts[row - 1], text.data.find(b"\n", stop)
        before = text.data[left:right].decode().strip()
        after = (text.data[left:start] + new.encode() + text.data[stop:right]).decode().strip()
        mutant = Mutant(start, stop, new, row, where, before, after, seen[where, before, after])
        with suppress(SyntaxError):
            compile(mutant.of(text.data), "mutant", "exec")
            seen[where, before, after] += 1
            found.append(mutant)
    return found


_Edit = tuple[int, int, str]  # from byte to byte, and what to write there


class _Source:
    """A module's bytes, and where its nodes lie in them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.starts = [0, *accumulate(map(len, data.splitlines(keepends=True)))]

    def start(self, node: ast.expr) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def stop(self, node: ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def in_place_of(self, node: ast.expr, new: str) -> _Edit:
        return self.start(node), self.stop(node), new

    def between(self, left: ast.expr, right: ast.expr, operator: type) -> Iterator[_Edit]:
        """The operator between two nodes, turned; not one in a comment between them."""
        old, new = _SWAPS.get(operator, ("", ""))
        start = self.stop(left)
        gap = re.sub(rb"#[^\n]*", lambda c: b" " * len(c[0]), self.data[start : self.start(right)])
        if old and (place := gap.find(old.encode())) >= 0:
            yield start + place, start + place + len(old), new


def _edits(node: ast.AST, source: _Source, where: str = "") -> Iterator[tuple[_Edit, str]]:
    """Where to change what into what, and in which function or class."""
    if isinstance(node, ast.Raise | ast.arg) or _is_left_alone(node):
        return
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        where = f"{where}.{node.name}".lstrip(".")
    for kind in (_of_operators, _of_values, _of_conditions):
        for edit in kind(node, source):
            yield edit, where
    for field, part in ast.iter_fields(node):
        if field not in ("annotation", "returns", "format_spec"):
            for child in part if isinstance(part, list) else [part]:
                if isinstance(child, ast.AST):
                    yield from _edits(child, source, where)


def _of_operators(node: ast.AST, source: _Source) -> Iterator[_Edit]:
    match node:
        case ast.BinOp(left, op, right) | ast.AugAssign(left, op, right):
            yield from source.between(left, right, type(op))
        case ast.BoolOp(op, values):
            for left, right in pairwise(values):
                yield from source.between(left, right, type(op))
        case ast.Compare(first, ops, others):
            for (left, right), op in zip(pairwise([first, *others]), ops, strict=True):
                yield from source.between(left, right, type(op))
        case ast.UnaryOp(_, operand):
            yield source.start(node), source.start(operand), ""


def _of_values(node: ast.AST, source: _Source) -> Iterator[_Edit]:
    match node:
        case ast.Constant(bool(value)):
            yield source.in_place_of(node, str(not value))
        case ast.Constant(int(value)):
            yield source.in_place_of(node, str(value + 1))
        case ast.Constant(float(value)):  # a guard such as 1e-300 grows to 1, a share doubles
            yield source.in_place_of(node, repr(value * 2 if abs(value) > 1e-6 else value + 1))
        case ast.Constant(str(value)) if value in _TEXTS:
            yield source.in_place_of(node, f'"{_TEXTS[value]}"')
        case ast.Name(name) if name in _NAMES:
            yield source.in_place_of(node, _NAMES[name])
        case ast.Attribute(_, name) if name in _NAMES:
            yield source.stop(node) - len(name), source.stop(node), _NAMES[name]


def _of_conditions(node: ast.AST, source: _Source) -> Iterator[_Edit]:
    """Conditions that are no comparison, turned; `_of_operators` turns the others."""
    tests = [node.test] if isinstance(node, ast.If | ast.IfExp | ast.While) else []
    for test in [*tests, *getattr(node, "ifs", [])]:
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            old = source.data[source.start(test) : source.stop(test)].decode()
            yield source.in_place_of(test, f"(not ({old}))")


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.keyword("strict" | "frozen"):
            return True
        case ast.Expr(ast.Constant()):  # a docstring
            return True
        case ast.Call(ast.Name("print")):
            return True
        case ast.Assign([ast.Name("__all__")]):
            return True
    return False
