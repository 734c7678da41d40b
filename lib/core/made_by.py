"""What made a number, kept beside it: the code that it runs through, and the packages' versions.

The *question* (data, model, method, settings, seed, each by content) is the key of a unit or stage.
*Made by* is a record: other code, or another version, may answer the same question otherwise. What
a run keeps for itself is made anew then. What is published is reused on the question alone, and
`Stage.close` says so in a line; with TOUCHSTONE_STRICT=1 it is made anew, too.
"""

import ast
import hashlib
import os
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from . import paths
from .notebooks import code_cells

MAKERS = ("torch", "transformers", "numpy", "spacy")  # another version may give other numbers
_PACKAGES = (
    "torch",
    "transformers",
    "captum",
    "lime",
    "spacy",
    "numpy",
    "pandas",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "matplotlib",
    "seaborn",
)
_NAMES = ("lib", "touchstone")  # of this package, in a checkout and installed
_DRAWING = "plots"  # the room whose code makes no unit
# What keeps or finds a unit; what a notebook does below the last of these is no part of one.
_KEEPERS = {
    "Units",
    "ModelTables",
    "Trainings",
    "Answers",
    "load_reading",
    "load_vectors",
}
_BEFORE = "made before versions were kept"
_reused: dict[tuple[str, ...], dict[str, str]] = {}  # by stage: unit, what made it

Parts = tuple[str, ...]  # a module's name in the package: ("core", "units")


def is_strict() -> bool:
    """Whether published units are refused (TOUCHSTONE_STRICT=1)."""
    return os.environ.get("TOUCHSTONE_STRICT", "0") not in ("", "0")


def package_versions(packages: Iterable[str] = _PACKAGES) -> dict[str, str]:
    """The versions of Python and of the packages that took part, as far as they are installed."""
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue  # what is not installed took no part in the run
    return versions


def made_by(study: str, stage: str) -> dict[str, Any]:
    """What makes a stage's units here and now: a hash of the code, and versions.

    The code is the stage's notebook down to its last unit, without its parameters, which are a part
    of the question, and all modules of this package that it imports, these import, and so on.
    Comments and docstrings are no code. Where there is no such notebook, all modules count.
    """
    notebook = paths.ROOT / "notebooks" / study / f"{stage}.py"
    if notebook.is_file():
        tree = _down_to_last_unit(_code_of_cells(notebook))
        code = {"": _digest(tree)} | _reached(_imports(tree), paths.PACKAGE, _DRAWING)
    else:
        files = (path.relative_to(paths.PACKAGE) for path in paths.PACKAGE.rglob("*.py"))
        code = _reached((path.with_suffix("").parts for path in files), paths.PACKAGE)
    versions = package_versions(MAKERS)
    return {"code": _hash(code), "versions": {name: versions.get(name, "") for name in MAKERS}}


def imported_code(notebook: Path, package: Path) -> str:
    """A hash of what a notebook imports of a package, and what that imports, and so on.

    Comments and docstrings do not count, nor does the notebook.
    """
    return _hash(_reached(_imports(_code_of_cells(notebook)), package))


def note_reuse(stage: Parts, unit: str, record: Mapping[str, Any]) -> None:
    """Remember that a published unit is reused; its record says what made it.

    Args:
        stage: study, scale and stage.
        unit: its name.
        record: what stands above its table.
    """
    by = _BEFORE
    if made := record.get("made_by"):
        versions = (f"{name} {number}" for name, number in made["versions"].items() if number)
        by = ", ".join(
            (f"made by touchstone {record['touchstone']}", f"code {made['code'][:8]}", *versions)
        )
    _reused.setdefault(stage, {})[unit] = by


def reused(stage: Parts) -> dict[str, int]:
    """How many published units a stage has reused since it was opened, by what made them."""
    return dict(Counter(_reused.get(stage, {}).values()).most_common())


def forget_reuse(stage: Parts) -> None:
    """Begin to count anew."""
    _reused.pop(stage, None)


def _hash(code: Mapping[str, str]) -> str:
    lines = (f"{name} {digest}\n" for name, digest in sorted(code.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def _code_of_cells(notebook: Path) -> ast.Module:
    """The code of a notebook without its parameters; one with a syntax error has none to import."""
    return _parse("\n".join(code_cells(notebook)[0]))


def _parse(code: str | bytes) -> ast.Module:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError):  # whoever runs it is told where; here its bytes are enough
        return ast.Module([ast.Expr(ast.Constant(code))], [])


def _down_to_last_unit(tree: ast.Module) -> ast.Module:
    """A notebook's statements down to the last that may make a unit: all, if none does."""
    keepers, last = set(_KEEPERS), len(tree.body)
    for at, statement in enumerate(tree.body, 1):
        named = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if not named & keepers:
            continue
        last = at
        if isinstance(statement, ast.FunctionDef):
            keepers.add(statement.name)
        elif isinstance(statement, ast.Assign) and _is_store(statement.value):
            keepers |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return ast.Module(tree.body[:last], [])


def _is_store(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "Units"


def _reached(imports: Iterable[Parts], package: Path, without: str = "") -> dict[str, str]:
    """A digest of each module that imports lead to, by its name; a room may be left out."""
    found: dict[str, str] = {}
    to_do = list(imports)
    while to_do:
        parts, file = _module(package, to_do.pop())
        name = ".".join(parts)
        if file is None or name in found or without in parts[:1]:
            continue
        found[name], more = _read(file.read_bytes(), parts)
        to_do += more
    return found


def _module(package: Path, parts: Parts) -> tuple[Parts, Path | None]:
    """The module that holds a name, and its file; a package's own is called `__init__`.

    A package that is only on the way to a module does not count: its names lead elsewhere.
    """
    for n in range(len(parts), 0, -1):
        inside = (*parts[:n], "__init__")
        for module in (parts[:n], inside):
            if (file := package.joinpath(*module).with_suffix(".py")).is_file():
                return module, file
    return parts, None


@cache
def _read(content: bytes, parts: Parts) -> tuple[str, tuple[Parts, ...]]:
    tree = _parse(content)
    imports = tuple(_imports(tree, parts))
    return _digest(tree), imports


def _imports(tree: ast.AST, parts: Parts = ()) -> Iterator[Parts]:
    """What a module imports of this package, as names in it, wherever the import stands.

    Args:
        tree: the module.
        parts: its own name, for what it imports relative to itself.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = ("lib", *parts[: -node.level]) if node.level else ()
            origin += tuple((node.module or "").split(".")) if node.module else ()
            names = [(*origin, alias.name) for alias in node.names]
        else:
            continue
        yield from (name[1:] for name in names if name[0] in _NAMES)


def _digest(tree: ast.Module) -> str:
    """A hash of a module's syntax, its docstrings taken out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body[:1]:
                case [ast.Expr(ast.Constant(str()))]:
                    del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()
