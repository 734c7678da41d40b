"""Notebooks as files: the `.py` is the source, the `.ipynb` beside it its executed copy.

Sources are in the percent format of jupytext. A source also holds exercises, in cells with the tags
of `EDITIONS`. Who runs, compares or shows a notebook gets the reader's edition, without them.
A study has its five stages, and appendices: `appendix_<topic>.py`, a second story of its own.
"""

import hashlib
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .codes import METHODS
from .errors import TouchstoneError
from .files import read_text
from .paths import ROOT

if TYPE_CHECKING:  # nbformat takes up to two seconds to import, and no kernel needs it
    from nbformat import NotebookNode
    from pandas import DataFrame, Series

APPENDIX = "appendix_"  # begins the name of a notebook that is no stage
_READS = re.compile(r"\.(?:input|note)\(\s*\"(\w+)\"")
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
EXERCISE_TAGS = frozenset({"exercise", "hole", "solution", "check"})
EDITIONS: dict[str, frozenset[str]] = {  # the exercise cells that an edition has
    "reader": frozenset(),
    "student": EXERCISE_TAGS - {"solution"},
    "teacher": EXERCISE_TAGS - {"hole"},
    "source": EXERCISE_TAGS,
}


def find_studies(root: Path = ROOT) -> list[str]:
    """The studies, by name: the folders of `notebooks/` that hold stages."""
    return sorted({path.parent.name for path in root.glob("notebooks/*/[0-9][0-9]_*.py")})


def find_notebooks(study: str, root: Path = ROOT) -> list[Path]:
    """A study's sources in the order in which they run: its stages, `NN_noun.py`, and each
    `appendix_<topic>.py` right after the last stage that it reads.
    """
    folder = root / "notebooks" / study
    order = {path: (path.stem, "") for path in folder.glob("[0-9][0-9]_*.py")}
    for path in folder.glob(f"{APPENDIX}*.py"):
        stages = [name for name in stages_read(path) if not name.startswith(APPENDIX)]
        order[path] = (max(stages, default="~"), path.stem)  # the last of all if it reads none
    return sorted(order, key=order.__getitem__)


def find_sources(root: Path = ROOT) -> list[Path]:
    """The sources of all notebooks: the start page, then study by study."""
    studies = (path for study in find_studies(root) for path in find_notebooks(study, root))
    return [root / "notebooks" / "00_start_here.py", *studies]


def stages_read(py_path: Path) -> list[str]:
    """The notebooks that a source names in `stage.input` and `stage.note`."""
    return list(dict.fromkeys(_READS.findall("\n".join(code_cells(py_path)[0]))))


def code_cells(py_path: Path | str) -> tuple[list[str], list[str]]:
    """The code cells of a `.py` as text: those not tagged `parameters`, and those that are.

    They are what `read_notebook` finds, without what that imports; so exercises are left out.
    """
    _, *parts = _CELL.split(read_text(py_path))
    plain: list[str] = []
    tagged: list[str] = []
    for head, cell in zip(parts[::2], parts[1::2], strict=True):
        if "[markdown]" not in head and not EXERCISE_TAGS & set(re.findall(r'"(\w+)"', head)):
            (tagged if '"parameters"' in head else plain).append(cell.strip())
    return plain, tagged


def read_notebook(py_path: Path | str, edition: str = "reader") -> "NotebookNode":
    """The notebook that a `.py` describes, with the same cell ids at every reading.

    Args:
        py_path: the source.
        edition: one of `EDITIONS`; the reader's has no exercises.
    """
    import jupytext

    notebook = jupytext.read(py_path, fmt="py:percent")
    left_out = EXERCISE_TAGS - EDITIONS[edition]
    notebook.cells = [c for c in notebook.cells if not left_out & set(c.metadata.get("tags", []))]
    _set_cell_ids(notebook)
    return notebook


def strip_volatile(notebook: "NotebookNode") -> None:
    """Remove, in place, what differs between two equal runs: times, notes of other programs.

    Sources, tags, outputs and execution counts stay.
    """
    from nbformat import NotebookNode

    for key in set(notebook.metadata) - {"kernelspec", "language_info"}:
        del notebook.metadata[key]
    notebook.metadata.get("language_info", {}).pop("version", None)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags")
        cell["metadata"] = NotebookNode(tags=tags) if tags else NotebookNode()
    _set_cell_ids(notebook)


def add_outputs(notebook: "NotebookNode", executed: Path) -> None:
    """Give each code cell, in place, the outputs that an equal cell has in an executed copy."""
    import nbformat

    before = nbformat.read(executed, as_version=4)
    strip_volatile(before)  # it also names cells by their text
    ran = {cell.id: cell for cell in before.cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        if cell.id in ran:
            cell.update(outputs=ran[cell.id].outputs)
            cell.update(execution_count=ran[cell.id].execution_count)
    notebook.metadata.update(before.metadata)


def fold_bars(notebook: "NotebookNode") -> None:
    """Remove, in place, the progress bars in the cells' stderr, and keep every other line of it."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr" and "\r" in output.text:
                lines = (line.rpartition("\r")[2].rstrip() for line in output.text.split("\n"))
                output["text"] = "\n".join(line for line in lines if line)
        if "outputs" in cell:
            cell["outputs"] = [o for o in cell.outputs if o.get("text") != ""]


def show_source(fn: Callable[..., Any] | type) -> None:
    """Display a function's source as a Markdown code block, its module above it.

    Raises:
        TouchstoneError: it has over 40 lines, which nobody reads.
    """
    from IPython.display import Markdown, display  # here, so that a plan costs nobody the import

    source = textwrap.dedent(inspect.getsource(fn)).rstrip()
    if (n_lines := source.count("\n") + 1) > 40:
        raise TouchstoneError(
            f"{fn.__qualname__} has {n_lines} lines; show a part of at most 40 that stands alone"
        )
    display(Markdown(f"```python\n# {fn.__module__}\n{source}\n```"))


def listed(files: Sequence[tuple[str, str, str]], at_most: int = 12) -> "DataFrame":
    """A table of files (file, rows, columns) of at most so many lines.

    If there are more, each folder is one line, and then the last line says how many are left out.

    >>> names = "a.csv", "m/1.json", "m/2.json", "z.csv"
    >>> some = [(name, "", "") for name in names]
    >>> listed(some, at_most=3)["file"].tolist()
    ['a.csv', 'm/ (2 files)', 'z.csv']
    >>> listed(some, at_most=2)["file"].tolist()
    ['a.csv', '3 more files, in manifest.json']
    """
    import pandas as pd

    counted = [(*line, 1) for line in files]
    if len(counted) > at_most:
        folders = Counter(name.partition("/")[0] for name, *_ in files if "/" in name)
        short = [(f"{name}/ ({n} files)", "", "", n) for name, n in folders.items()]
        counted = sorted([line for line in counted if "/" not in line[0]] + short)
    if len(counted) > at_most:
        left_out = sum(n for *_, n in counted[at_most - 1 :])
        counted[at_most - 1 :] = [(f"{left_out} more files, in manifest.json", "", "", left_out)]
    return pd.DataFrame([line[:3] for line in counted], columns=["file", "rows", "columns"])


def show_table(table: "DataFrame", columns: Mapping[str, str], rows: int = 12) -> None:
    """Display a table as a reader wants it: chosen columns under plain names, no index, few rows,
    yes and no for what is true or not, methods by their names in words, even decimals.

    Args:
        table: any; the whole of it is saved elsewhere.
        columns: which columns, and the name of each.
        rows: the most rows; a line below says how many are left out.
    """
    from IPython.display import HTML, display  # here, so that a plan costs nobody the import

    shown = table[list(columns)].rename(columns=dict(columns)).rename_axis(columns=None).head(rows)
    shown = evened(_yes_or_no(shown.replace(METHODS)))
    page = shown.to_html(index=False, border=0, na_rep="-")
    if (left_out := len(table) - len(shown)) > 0:
        rows_are = "row is" if left_out == 1 else "rows are"
        page += f"\n<p>{left_out} more {rows_are} in the saved table.</p>"
    display(HTML(page))


def in_words(table: "DataFrame", names: Mapping[str, str], rows: int = 12) -> "DataFrame":
    """Some columns of a table under names in words; the first one names the rows.

    Whole numbers have no decimals, and the other numbers of a column all have as many.

    Args:
        table: any table.
        names: what is shown, in order: the name in words by column.
        rows: at most so many are shown; the rest is in the CSV.

    >>> import pandas as pd
    >>> in_words(pd.DataFrame({"n": [2], "word": ["she"]}), {"word": "word", "n": "times"})
    word times
    she      2
    """
    shown = table[list(names)].head(rows).rename(columns=dict(names))
    first, *_ = names.values()
    shown = shown.set_index(first).rename_axis(index=None, columns=first)
    shown = evened(_yes_or_no(shown))
    return shown.astype(object).where(shown.notna(), "")


def _yes_or_no(table: "DataFrame") -> "DataFrame":
    """The table with words for what is true or not."""
    truths = table.select_dtypes(bool)
    return table.assign(**{name: truths[name].map({True: "yes", False: "no"}) for name in truths})


def evened(table: "DataFrame") -> "DataFrame":
    """The table with each column's numbers as text of even decimals; no p value is called 0."""
    floats = {name: _alike(column) for name, column in table.select_dtypes("float").items()}
    for name in [name for name in floats if re.match(r"p(_|\b)", str(name))]:
        tiny = (table[name] > 0) & (table[name] < 0.0005)
        floats[name] = floats[name].mask(tiny, "< 0.001")
    return table.assign(**floats)


def _alike(numbers: "Series") -> "Series":
    """Numbers as text with as many decimals each, four digits in all; missing ones stay. Where all
    are small, each has two digits.

    >>> import pandas as pd
    >>> parts = [0.5, 0.945, -0.0001], [2.0, 50.0], [387.998], [1500.2], [0.00012, 0.0]
    >>> [_alike(pd.Series(part)).tolist() for part in parts]
    [['0.500', '0.945', '0.000'], ['2', '50'], ['388.0'], ['1,500'], ['0.00012', '0']]
    """
    known = numbers.dropna()
    largest = known.abs().max() if len(known) else 0
    if 0 < largest < 0.005:
        return numbers.map("{:.2g}".format).where(numbers.notna())
    most = next((n for n, limit in ((3, 10), (2, 100), (1, 1000)) if largest < limit), 0)
    digits = next(
        n for n in range(most + 1) if n == most or (known.round(3) == known.round(n)).all()
    )
    rounded = numbers.round(digits) + 0.0  # no signed zero
    return rounded.map(f"{{:,.{digits}f}}".format).where(numbers.notna())


def _set_cell_ids(notebook: "NotebookNode") -> None:
    """Give every cell an id made of its source, so that an unchanged cell keeps its id in git."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        text = f"{cell.cell_type}\n{cell.source}"
        seen[text] += 1
        cell["id"] = hashlib.sha256(f"{seen[text]}\n{text}".encode()).hexdigest()[:8]
    notebook["nbformat"] = 4
    notebook["nbformat_minor"] = max(5, notebook.nbformat_minor)  # ids exist since 4.5
