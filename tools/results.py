"""The pages on which results are read: stage 05 at scale cpu, from committed tables (make results).

    python tools/results.py [STUDY ...]

For each study outputs/reference/<study>/cpu/05_figures.ipynb is executed anew, as a reader of a
clone could do it: from the tables of earlier stages that stand beside it, without weights or data.
Its figures and tables are renewed too, and figures of earlier stages are drawn anew where a
committed table holds what they show. Stage 04 and appendices need more than is committed; their
pages, 04_metrics.md and appendix_<topic>.md, show the committed tables and figures in the
notebook's order, with the words of tables.yaml. All begin with what note.md beside them says of the
run, where there is one.
"""

from __future__ import annotations

import lib.same_numbers  # first: the same instructions on every processor

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import redraw
import yaml
from execute import run_cells
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from quoted import value_of
from reference import renew

from lib.core.errors import TouchstoneError
from lib.core.files import write_atomic
from lib.core.notebooks import (
    APPENDIX,
    evened,
    find_notebooks,
    find_studies,
    read_notebook,
    strip_volatile,
)
from lib.core.parameters import notebook_parameters, read_params
from lib.core.paths import ROOT, reference_dir
from lib.core.pictures import save_png
from lib.plots import COLOURS, FORM_NAMES, SCHEME_NAMES, STYLE, method_label
from lib.plots.panels import DATASET_NAMES
from lib.studies.assay.figures import SHORT_NAMES
from lib.studies.lm_saliency.naming import GROUPINGS, METHODS, NORMS, SIDES, UNEQUAL

SCALE = "cpu"
FIGURES = "05_figures"
MOST_ROWS, MOST_FOLDED = 12, 120
TABLES = ROOT / "tools" / "tables.yaml"
_METHODS = {"InputXGradient": method_label("InputXGradient"), **METHODS, **NORMS}
_MASKS = {f"mask{end}": f"{SHORT_NAMES['mask']}{end}" for end in ("", ", encoder", ", LSTM")}
_PAIRS = {**_METHODS, **_MASKS}
# Codes, by the column.
VALUES: dict[str, Mapping[str, str]] = {
    "dataset": DATASET_NAMES,
    "scheme": SCHEME_NAMES,
    "model": SCHEME_NAMES,
    "method": _METHODS,
    "left": _PAIRS,
    "right": _PAIRS,
    "truth": _MASKS,
    "grouping": GROUPINGS,
    "unequal": UNEQUAL,
    "side": SIDES,
    "class": FORM_NAMES,
    "target": FORM_NAMES,
    "predicted": FORM_NAMES,
}
_POINTER = re.compile(r"Its \w+ and verdicts\s+are\s+on\s+\[the results page\]\([^)]*\)\.")
_COURSE = re.compile(r"\*\*You can then\*\* .*?\n\n", re.S)  # for who works through the notebook
_LINK = re.compile(r"(\]\()(?!https?://|#|mailto:)([^)#\s]+)")


def at_scale(source: Path, parameters: dict[str, object], page: Path) -> nbformat.NotebookNode:
    """A notebook with other parameters, and with links that lead on from where the page stands.

    The values are written into the `parameters` cell itself, so a reader sees one such cell.
    """
    notebook = read_notebook(source)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            here = _POINTER.sub("You are reading its page.", _COURSE.sub("", cell.source))
            cell["source"] = moved_links(here, source, page)
        tags = cell.metadata.get("tags", [])
        if "parameters" in tags:
            for name, value in parameters.items():
                cell["source"] = re.sub(
                    rf"^{name} = [^#\n]*?(?=  #|$)",
                    f"{name} = {json.dumps(value)}",
                    cell.source,
                    flags=re.M,
                )
        # What is drawn from committed tables is the same everywhere: nothing is left out of nbval.
        cell.metadata["tags"] = [tag for tag in tags if tag != "nbval-ignore-output"]
    return notebook


def moved_links(text: str, source: Path, page: Path) -> str:
    """Relative links of a text that moves from `source` to `page`."""

    def moved(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        return match[1] + Path(os.path.relpath(target, page.parent)).as_posix()

    return _LINK.sub(moved, text)


def published() -> list[str]:
    """The studies whose run at this scale is committed whole; of others units may be."""
    return [name for name in find_studies() if (reference_dir(name, SCALE) / "04_metrics").is_dir()]


def page_of(study: str) -> Path:
    """Where the page of stage 05 stands."""
    return reference_dir(study, SCALE) / f"{FIGURES}.ipynb"


def note_of(study: str) -> str:
    """What a reader must know of the published run; empty where nothing is to be said."""
    file = reference_dir(study, SCALE) / "note.md"
    return f"\n\n{file.read_text().strip()}" if file.is_file() else ""


def notebook_of(study: str) -> nbformat.NotebookNode:
    """The page before it is executed."""
    source = ROOT / "notebooks" / study / f"{FIGURES}.py"
    given = read_params(ROOT / "params" / study / f"{SCALE}.yaml") | {"scale": SCALE}
    ours = {name: given[name] for name in notebook_parameters(source) if name in given}
    notebook = at_scale(source, ours, page_of(study))
    notebook.cells[0]["source"] += note_of(study)
    return notebook


def prepare(root: Path, study: str) -> None:
    """An output root with what is committed of the earlier stages of a study."""
    for stage in earlier_stages(study):
        committed = reference_dir(study, SCALE) / stage
        shutil.copytree(committed, root / study / SCALE / stage, dirs_exist_ok=True)


def earlier_stages(study: str) -> list[str]:
    """The stages and appendices whose tables are committed, but the page's own."""
    names = [path.stem for path in find_notebooks(study) if path.stem != FIGURES]
    return [name for name in names if (reference_dir(study, SCALE) / name).is_dir()]


def table_pages(study: str) -> dict[Path, str]:
    """The pages of tables: of stage 04, and of each appendix that was run at this scale."""
    names = [n for n in earlier_stages(study) if n == "04_metrics" or n.startswith(APPENDIX)]
    return {reference_dir(study, SCALE) / f"{name}.md": tables_page(study, name) for name in names}


def renew_figures(study: str, root: Path) -> None:
    """Execute stage 05, then put its page, figures and tables in the place of the old ones."""
    prepare(root, study)
    notebook = notebook_of(study)
    os.environ["TOUCHSTONE_OUTPUTS"] = str(root)
    run_cells(notebook, f"{study}, the results at scale {SCALE}")
    strip_volatile(notebook)
    renew(root / study / SCALE / FIGURES, reference_dir(study, SCALE) / FIGURES)
    write_atomic(page_of(study), nbformat.writes(notebook) + "\n")


def draw_or_keep(study: str, stage: str, path: Path) -> bool:
    """Draw a figure of an earlier stage over `path` where committed tables hold what it shows.

    Returns:
        Whether it was drawn; if not, the picture stays as it is.
    """
    try:
        redraw.draw_earlier(study, SCALE, stage, path.stem, lambda *told: save_png(told[-1], path))
    except TouchstoneError:
        return False
    return True


def tables_page(study: str, stage: str) -> str:
    """A stage's page: under the notebook's headings the tables and figures that it saved."""
    source = ROOT / "notebooks" / study / f"{stage}.py"
    folder = reference_dir(study, SCALE) / stage
    page = folder.parent / f"{stage}.md"
    link = Path(os.path.relpath(source.with_suffix(".ipynb"), page.parent)).as_posix()
    words = yaml.safe_load(TABLES.read_text())
    parts, heading, shown = [], "", set()
    for cell in read_notebook(source).cells:
        if cell.cell_type == "markdown":
            headings = re.findall(r"^#+ (.*)$", cell.source, flags=re.M)
            heading = headings[-1] if headings else heading
            if not parts:
                parts = [f"# {headings[0].removesuffix('?')}: the tables at scale {SCALE}"]
            continue
        for kind, name in re.findall(r"stage\.(table|figure)\(\s*\"(\w+)\"", cell.source):
            file = folder / f"{name}.{'csv' if kind == 'table' else 'png'}"
            if not file.is_file() or file in shown or name == "claims":
                continue
            shown.add(file)
            if heading:
                parts.append(f"## {heading}")
                heading = ""
            picture = f"![{name}]({folder.name}/{file.name})"
            parts.append(picture if kind == "figure" else preview(file, study, words))
    what = f"[stage {stage[:2]}]({link}) of this study saved in our published run"
    if stage.startswith(APPENDIX):
        what = f"[this appendix]({link}) saved at scale {SCALE}"
    about = (
        f"What {what}. A table of more than {MOST_ROWS} rows is folded; a click opens it, up to "
        f"{MOST_FOLDED} rows. The whole is behind each link. Definitions and code are in the "
        "notebook, the claims in [claims.csv](04_metrics/claims.csv). Figures and verdicts are on "
        "[the results page](05_figures.ipynb). This page is made by `make results`."
    )
    note = note_of(study)
    is_about = any(f"`{file.stem}`" in note for file in shown)
    parts.insert(1, about + (note if is_about else ""))
    return "\n\n".join(parts) + "\n"


def preview(file: Path, study: str, words: Mapping[str, Any]) -> str:
    """A table as Markdown: what it says, a link to the file, and its rows under names in words.

    A table of up to MOST_ROWS rows is open; a longer one is folded, and past MOST_FOLDED cut.

    Args:
        file: the committed table.
        study: whose it is.
        words: what tables.yaml says of all tables.

    Raises:
        TouchstoneError: the table, or a column of it, has no words.
    """
    table = pd.read_csv(file)
    stage = file.parent.name
    where = f"{study}/{stage}/{file.stem}"
    said = words[study].get(stage, {}).get(file.stem)
    if said is None:
        raise TouchstoneError(f"tools/tables.yaml says nothing of {where}")
    names = words["columns"] | said.get("columns", {})
    if nameless := [column for column in table if column not in names]:
        raise TouchstoneError(f"{where} has a column {nameless[0]!r}; name it in tools/tables.yaml")
    shown = table[said.get("shown", list(table))].replace(VALUES)
    about = f"{said['about']} ([`{file.stem}.csv`]({stage}/{file.name})"
    if shown.shape[1] < table.shape[1]:
        left_out = "; ".join(names[column] for column in table if column not in shown)
        about += f", also with {left_out}"
    if table.empty:
        return f"{about}). It has no rows in this run."
    head = shown.head(MOST_FOLDED)
    lines = [[names[column] for column in head], ["---"] * head.shape[1]]
    lines += [list(map(_cell, row)) for row in evened(head).itertuples(index=False)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    if len(table) <= MOST_ROWS:
        return f"{about})\n\n{text}"
    rows = f"{len(table)} rows" if len(head) == len(table) else f"{len(head)} of {len(table)} rows"
    return f"{about})\n\n<details><summary>{rows}</summary>\n\n{text}\n\n</details>"


def _cell(value: object) -> str:
    """A value as a cell of Markdown: nothing for a missing one, yes and no for what is true or not.

    >>> [_cell(value) for value in (float("nan"), True, "a|b", 3)]
    ['', 'yes', 'a\\\\|b', '3']
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float) and pd.isna(value):
        return ""
    return str(value).replace("|", "\\|").replace("\n", " ")


# The README's three findings: a cell of a committed table for each mark, from the top down.
_ERROR = "cebab/cpu/04_metrics/errors[explainer={},model=encoder,metric=L2].{}"
_SHARE = "geco/cpu/04_metrics/figure[dataset=D_A,scheme={},method={}].{}"
_CHANGE = "implicit_bias/cpu/04_metrics/power[quantity=distance,part={},left=augmented,right={}].{}"
THUMBNAILS = {
    "geco": (
        "weight on the changed words",
        {
            "first pronoun*": _SHARE.format("-", "First pronoun", "{}"),
            "Integrated Gradients": _SHARE.format("CEf", "Integrated Gradients", "{}"),
            "LIME": _SHARE.format("CEf", "LIME", "{}"),
            "random*": _SHARE.format("-", "Uniform random", "{}"),
        },
        ("MA", "low", "high"),
        "* never looks at the model",
    ),
    "cebab": (
        "error (L2): less is better",
        {
            "Approx": _ERROR.format("Approx", "{}"),
            "nothing changes*": _ERROR.format("Zero", "{}"),
            "Approx, averaged": _ERROR.format("Approx (mean)", "{}"),
            "Causal Proxy Model": _ERROR.format("Causal Proxy Model", "{}"),
        },
        ("error", "low", "high"),
        "* never looks at the model",
    ),
    "implicit_bias": (
        "swapped pronouns: closer to even (< 0)",
        {
            "than unswapped texts": _CHANGE.format("held out", "placebo", "{}"),
            "the same, other test set": _CHANGE.format("winogender", "placebo", "{}"),
            "than even, unswapped texts": _CHANGE.format("held out", "even placebo", "{}"),
        },
        ("difference", "low", "high"),
        "lines: 95 % intervals",
    ),
}


def thumbnail(study: str) -> Figure:
    """One finding in a few marks, readable at 240 pixels."""
    title, cells, columns, note = THUMBNAILS[study]
    values = {
        name: [float(value_of(cell.format(column))) for column in columns]
        for name, cell in cells.items()
    }
    with plt.rc_context(STYLE | {"axes.grid.axis": "x", "font.size": 13}):
        figure, ax = plt.subplots(figsize=(5.2, 2.9), layout="constrained")
        for y, (name, (value, low, high)) in enumerate(values.items()):
            colour = "0.45" if name.endswith("*") else COLOURS[0]
            ax.plot([low, high], [y, y], color=colour, linewidth=3)
            ax.plot(value, y, "s" if name.endswith("*") else "o", color=colour, markersize=11)
        ax.set(yticks=range(len(values)), yticklabels=values, ylim=(len(values) - 0.5, -0.5))
        ax.tick_params(labelsize=13)
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        ax.axvline(0, color="0.3", linewidth=1)
        ax.set_title(title, fontsize=14, loc="right")
        ax.set_xlabel(note, fontsize=11, color="0.35")
    return figure


def main(studies: list[str]) -> None:
    for study in studies or published():
        if study in THUMBNAILS:
            thumbnail(study).savefig(
                reference_dir(study, SCALE) / "thumbnail.png", dpi=110, metadata={"Software": None}
            )
        with tempfile.TemporaryDirectory() as folder:
            renew_figures(study, Path(folder))
        for stage in earlier_stages(study):
            for path in sorted((reference_dir(study, SCALE) / stage).glob("*.png")):
                draw_or_keep(study, stage, path)
        for page, text in table_pages(study).items():
            write_atomic(page, text)
        print(f"{study}: {page_of(study).relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
