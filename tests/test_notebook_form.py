"""The notebooks keep the anatomy that design promises; `make form` has the figures behind it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

from lib.core.notebooks import APPENDIX, find_sources, read_notebook
from lib.core.paths import ROOT

NOTEBOOKS = find_sources()
HEADINGS = ["You will see", "Settings", "What could be wrong", "Try it", "Hand-over"]
pytestmark = pytest.mark.parametrize(
    "path", NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT / "notebooks"))
)


def cells(path: Path) -> list:
    return read_notebook(path).cells


def code(path: Path) -> list[str]:
    return [cell.source for cell in cells(path) if cell.cell_type == "code"]


def n_logical_lines(source: str) -> int:
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments = sum(t.type == tokenize.COMMENT and t.line.lstrip().startswith("#") for t in tokens)
    return comments + sum(token.type == tokenize.NEWLINE for token in tokens)


def prose(path: Path) -> str:
    return "\n".join(cell.source for cell in cells(path) if cell.cell_type == "markdown")


@pytest.mark.slow
def test_one_title_and_the_fixed_headings(path: Path) -> None:
    titles = re.findall(r"^# .+", prose(path), flags=re.M)
    assert len(titles) == 1
    wanted = [] if path.parent.name == "notebooks" else HEADINGS
    if path.stem.startswith(APPENDIX):
        wanted = [heading for heading in HEADINGS if heading != "Try it"]
    if path.stem == "05_figures":  # it computes nothing, so it has no anatomy of an experiment
        wanted = ["You will see", "Settings", "Hand-over"]
    missing = [
        heading for heading in wanted if not re.search(rf"^## .*{heading}", prose(path), flags=re.M)
    ]
    assert not missing


def test_the_head_says_what_one_learns_needs_and_how_long_it_takes(path: Path) -> None:
    head = re.search(r"^## You will see\n.*?(?=^## )", prose(path), flags=re.M | re.S)
    assert head
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(head[0].split()))  # as it is read
    said = re.search(
        r"\*\*You can then\*\* \w.*\*\*You need\*\* .*\*\*Time:\*\* (\d+) minutes to read, .* "
        r"to run, (?:\d+ minutes for the|no) exercises\.",
        words,
    )
    assert said, "say what one can do then, what one needs, and the minutes"
    assert ("no exercises." in said[0]) == path.stem.startswith(APPENDIX)
    minutes = len(prose(path).split()) / 200 + 0.4 * len(code(path))
    assert abs(int(said[1]) - minutes) <= 0.4 * minutes + 3, f"about {minutes:.0f} to read"


def test_code_stands_between_prose(path: Path) -> None:
    kinds = [cell.cell_type for cell in cells(path)]
    touching = [i for i, pair in enumerate(zip(kinds, kinds[1:])) if pair == ("code", "code")]
    assert not touching, f"code cells touch at {touching}"


def test_cells_are_short(path: Path) -> None:
    """In logical lines, which no formatter moves; `make form` shows the formatted ones."""
    is_code = [cell for cell in cells(path) if cell.cell_type == "code"]
    lengths = [n_logical_lines(cell.source) for cell in is_code]
    # The cell of parameters is a list, one a line.
    most = [36 if "parameters" in cell.metadata.get("tags", []) else 30 for cell in is_code]
    assert not [c.source for c, n, limit in zip(is_code, lengths, most, strict=True) if n > limit]
    assert sorted(lengths)[len(lengths) // 2] <= 7


def test_imports_stand_in_one_cell(path: Path) -> None:
    importing = [
        s
        for s in code(path)
        if any(isinstance(n, ast.Import | ast.ImportFrom) for n in ast.walk(ast.parse(s)))
    ]
    assert len(importing) == 1


def test_parameters_are_literals_with_a_word_of_explanation(path: Path) -> None:
    tagged = [cell.source for cell in cells(path) if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    for node in ast.parse(tagged[0]).body:
        assert isinstance(node, ast.Assign)
        ast.literal_eval(node.value)
    lines = tagged[0].splitlines()
    for before, line in zip(["", *lines], lines):
        is_said = "#" in line or before.startswith("#")
        assert is_said or not re.match(r"\w+ = ", line) or line.rstrip().endswith(("{", "[")), line


def set_at_top(node: ast.AST) -> set[str]:
    """The names that code sets for all that follows: not those of functions and comprehensions."""
    own = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    found = {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()
    inside = [child for child in ast.iter_child_nodes(node) if not isinstance(child, own)]
    return found.union(*map(set_at_top, inside))


def test_no_cell_overwrites_a_parameter(path: Path) -> None:
    """A run with parameters is refused at its end where one did, and papermill would hide it."""
    kinds = {True: [], False: []}
    for cell in cells(path):
        if cell.cell_type == "code":
            is_parameters = "parameters" in cell.metadata.get("tags", [])
            kinds[is_parameters].append(re.sub(r"^%.*", "", cell.source, flags=re.M))
    given, others = (set_at_top(ast.parse("\n".join(kinds[kind]))) for kind in (True, False))
    assert not given & others


def test_traps_of_the_toolchain(path: Path) -> None:
    for source in code(path):
        assert not re.search(r";\s*$", source, flags=re.M), "nbval shows what a trailing ; hides"
        assert ".style" not in source.replace("plt.style", ""), "a Styler has random ids"
        assert "except:" not in source
        assert not re.search(r"(?<![\w.])/(home|root|tmp|work|Users)/", source)


def test_a_cell_that_nbval_does_not_compare_names_its_table(path: Path) -> None:
    for cell in cells(path):
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            assert re.search(r"stage\.table\(\s*\"\w+\"", cell.source), cell.source
