"""Draw the figures of a published run again, in this process, from the tables that are committed.

Stage 05 draws tables only: its cells run as they are. A figure of an earlier stage is drawn by the
cell that saves it, and by what that cell needs: imports, functions and parameters of its notebook,
and the tables that the notebook saved. What else a cell needs is in `redraw_given.py`. Nothing is
trained, explained or parsed.
"""

from __future__ import annotations

import lib.same_numbers  # first: the same instructions on every processor

import ast
import builtins
import symtable
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
from redraw_given import GIVEN

from lib.core import stage as stages
from lib.core.errors import TouchstoneError
from lib.core.notebooks import code_cells
from lib.core.parameters import notebook_parameters, read_params
from lib.core.paths import ROOT, reference_dir

Read = Callable[[str], pd.DataFrame]
Save = Callable[[str, str, str, Any], None]  # study, stage, name, figure


@dataclass
class Committed(stages.Stage):
    """A stage that reads committed files, saves its figures where it is told, and nothing else."""

    save: Save = field(kw_only=True)
    drawn: list[str] = field(default_factory=list)

    def input(self, earlier_stage: str, name: str) -> Path:
        """The committed copy of what an earlier stage left."""
        path = reference_dir(self.study, self.scale) / earlier_stage / name
        if not path.is_file():
            raise TouchstoneError(f"{path} is not committed; this figure needs a run")
        return path

    def note(self, earlier_stage: str, name: str) -> None:
        """Nothing is recorded."""

    def table(self, name: str, frame: pd.DataFrame, digits: int = 3) -> pd.DataFrame:
        """The table, rounded as for display; it is not saved."""
        return frame.round(digits)

    def figure(self, name: str, figure: Any, formats: Any = ()) -> None:
        """Hand the figure on."""
        self.save(self.study, self.stage, name, figure)
        self.drawn.append(name)

    def close(self, parameters: Any) -> pd.DataFrame:
        """Nothing is recorded, so no file is listed."""
        return pd.DataFrame(columns=["file", "rows", "columns"])


def draw_stage_05(study: str, scale: str, save: Save) -> list[str]:
    """Run stage 05 of a study; returns the names of its figures."""
    source = _source(study, "05_figures")
    stage = _stage(study, scale, "05_figures", save)
    values = _parameters(source, study, scale)
    cells, tagged = code_cells(source)
    with _quiet(), mock.patch.object(stages, "open_stage", return_value=stage):
        place: dict[str, Any] = {"__name__": "__main__"}
        for cell in [cells[0], *tagged, *cells[1:]]:
            exec(compile(cell, str(source), "exec"), place)
            if cell in tagged:
                place |= values
    return stage.drawn


def draw_earlier(study: str, scale: str, stage_name: str, name: str, save: Save) -> None:
    """Draw one figure of an earlier stage from the tables that the stage saved.

    Raises:
        TouchstoneError: the cell needs what no committed table holds.
    """
    source = _source(study, stage_name)
    stage = _stage(study, scale, stage_name, save)
    given = _given(source, stage, name) | {"stage": stage}
    given |= {"plt": __import__("matplotlib.pyplot").pyplot}
    place = dict(given)
    statements = needed(source, name, set(given))
    with _quiet():
        place |= _parameters(source, study, scale)
        try:
            exec(compile(ast.Module(statements, []), str(source), "exec"), place)
        except Exception as error:  # a cell may fail in any way without its values
            raise TouchstoneError(
                f"{study}/{stage_name}: {name!r} is not drawn from tables ({error}); say in "
                "tools/redraw_given.py which table holds it"
            ) from error


def needed(source: Path, name: str, given: set[str]) -> list[ast.stmt]:
    """The statements that draw a figure: of the cell that saves it, and what these need of others.

    Args:
        source: the notebook's source.
        name: the figure's.
        given: names that are there without the notebook.
    """
    cells, _ = code_cells(source)
    place = next(i for i, cell in enumerate(cells) if f'.figure("{name}"' in cell)
    here = ast.parse(cells[place]).body
    earlier = [node for cell in cells[:place] for node in ast.parse(cell).body]
    last = max(i for i, node in enumerate(here) if f"figure('{name}'" in ast.unparse(node))
    kept, wanted = [here[last]], _names(here[last])[0] - given
    for node in here[:last]:  # axes are bound together with their figure
        binds = _names(node)[1]
        wanted |= binds - given if binds & wanted else set()
    for node in reversed(here[:last]):
        reads, binds = _names(node)
        acts = isinstance(node, ast.Expr | ast.For) or binds == {"_"}
        if binds & wanted or acts and reads & wanted and not _calls_stage(node):
            kept.append(node)
            wanted |= reads - given
    for node in reversed(earlier):
        reads, binds = _names(node)
        if binds & wanted and _is_light(node):
            kept.append(node)
            wanted |= reads - given
    return kept[::-1]


def _given(source: Path, stage: Committed, name: str) -> dict[str, Any]:
    """The tables that a notebook saved, by the names of its variables; `GIVEN` goes first."""
    folder = reference_dir(stage.study, stage.scale) / stage.stage

    def read(table: str) -> pd.DataFrame:
        return pd.read_csv(folder / f"{table}.csv")

    found: dict[str, Any] = {}
    tree = ast.parse("\n".join(code_cells(source)[0]))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {name for node in imports for name in _names(node)[1]}
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        call = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        if not isinstance(call, ast.Call) or not _calls_stage(call, "table"):
            continue
        file, frame = call.args[0], call.args[1]
        if not isinstance(file, ast.Constant) or not (folder / f"{file.value}.csv").is_file():
            continue
        is_whole = isinstance(frame, ast.Name)
        while isinstance(frame, ast.Attribute | ast.Subscript | ast.Call):
            frame = frame.func if isinstance(frame, ast.Call) else frame.value
        for variable in (frame, target):
            if isinstance(variable, ast.Name) and (is_whole or variable.id not in found):
                found[variable.id] = read(file.value)
    found = {variable: table for variable, table in found.items() if variable not in imported}
    given = GIVEN.get(f"{stage.study}/{stage.stage}/{name}")
    return found | (given(read) if given else {})


def _calls_stage(node: ast.AST, method: str = "") -> bool:
    call = node.value if isinstance(node, ast.Expr | ast.Assign) else node
    function = call.func if isinstance(call, ast.Call) else None
    is_stage = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    return is_stage and function.value.id == "stage" and method in ("", function.attr)


def _is_light(node: ast.stmt) -> bool:
    """Whether a statement of another cell may run: an import, a function, a value written down."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
        return True
    return isinstance(node, ast.Assign) and not any(
        isinstance(part, ast.Call) for part in ast.walk(node)
    )


def _names(node: ast.stmt) -> tuple[set[str], set[str]]:
    """What a statement reads and what it binds, at the level of the module."""
    table = symtable.symtable(ast.unparse(node), "a cell", "exec")
    binds = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    reads = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        reads |= {s.get_name() for s in scope.get_symbols() if s.is_global()}
        inner += scope.get_children()
    return reads - set(dir(builtins)), binds


def _parameters(source: Path, study: str, scale: str) -> dict[str, Any]:
    declared = notebook_parameters(source)
    given = read_params(ROOT / "params" / study / f"{scale}.yaml")
    return declared | {name: given[name] for name in declared if name in given}


def _source(study: str, stage: str) -> Path:
    return ROOT / "notebooks" / study / f"{stage}.py"


def _stage(study: str, scale: str, stage: str, save: Save) -> Committed:
    return Committed(study, scale, stage, Path(), save=save)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without windows, prints and displayed tables; settings of pandas are as before at the end."""
    import contextlib
    import io

    import matplotlib.pyplot as plt

    with (
        contextlib.redirect_stdout(io.StringIO()),
        pd.option_context("display.max_colwidth", None),
        mock.patch("IPython.display.display"),
    ):
        yield
    plt.close("all")
