"""Results that are quoted in prose, each with the cell of a committed table that it comes from.

    python tools/quoted.py           write the values of today into the pages (make numbers)
    python tools/quoted.py --check   name every number that differs or has no cell (a test does)

A number is followed by an HTML comment, which no reader sees:

    the first pronoun has .98<!-- geco/cpu/04_metrics/figure[method=First pronoun, ...].MA -->
    13<!-- count geco/cpu/04_metrics/claims[verdict=fails] --> claims fail
    Approx is best: fails<!-- cebab/cpu/04_metrics/claims[id=approx_best_L2].verdict -->

The cell is `path[column=value, ...].column` below outputs/reference (what a paper prints:
`geco/material/paper_numbers[id=...].value`); `count`, `min` or `max` in front of it reads several
rows, `abs` drops the sign. The number stays written as it was: `.98`
with two digits, `98 %` as a percentage, `2,041` with a comma. A whole table stands between
`<!-- table ... -->` and `<!-- end -->`; see `table_of`.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import pandas as pd
import yaml

from lib.core.errors import TouchstoneError
from lib.core.files import write_atomic
from lib.core.notebooks import find_sources, read_notebook
from lib.core.paths import ROOT

REFERENCE = ROOT / "outputs" / "reference"
VERDICTS = "holds|partly|fails|undecided|not run"
_NUMBER = r"[-−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
QUOTE = re.compile(
    rf"(?P<text>{_NUMBER}|\b(?:{VERDICTS}))(?P<unit> ?%)?(?P<marks>[*_\])]*)"
    r"<!-- (?P<cell>[^>]+?) -->"
)
TABLE = re.compile(r"<!-- table\n(?P<recipe>.*?)-->\n(?P<rows>.*?)<!-- end -->", re.S)
CELL = re.compile(r"(?:(count|min|max|abs) )?([\w/-]+)(?:\[([^\]]*)\])?(?:\.([\w ]+))?")

# Numbers that are no results, by kind. What is left after these must name its cell.
EXEMPT = {
    "code, links, comments": r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->|https?://\S+|<[^>]+>",
    "headings": r"^#+ .*$",
    "years and dates": r"\b(19|20)\d\d(-\d\d-\d\d)?\b",
    "versions": r"\bPython \d\.\d+ or \d\.\d+|\bv?\d+\.\d+\.\d+\b|\bv1(\.1)?\b|arXiv \S+",
    "names with digits": r"[A-Za-z][\w.]*-[\w.-]*\d[\w.-]*|\b[A-Z][A-Za-z]*\d\b",
    "licences": r"\bCC BY(-SA)? \d\.\d|BSD-\d|Apache \d\.\d",
    "places in a paper or here": (
        r"\b([Ss]ections?|[Tt]ables?|[Ff]igures?|[Ss]tages?|[Ee]quations?|RQ|seeds?|column) ?"
        r"\d+(\.\d+)*[a-z]?((,| and| or| to) \d+[a-z]?)*"
    ),
    "what is asked for": r"\b(at least|at most|more than|aim|top) ?[\d.]+( %)?",
    "the level of an interval": r"\b95 %",
    "what a run is set to": (
        r"[\d,.]+(-| )?(samples?|draws?|points?|steps?|epochs?|layers?|trainings?|seeds?|models?|"
        r"methods?|explainers?|notebooks?|classes|way|forms?|studies|papers?|lines|words|tokens?|"
        r"minutes?|seconds?|hours?|s\b|h\b|cores?|threads?|MB|kB|GB|GPUs?|million|parameters|"
        r"rows|test rows|base sentences)\b"
    ),
    "items of a list": r"^\s*\d+\. ",
    "ends and middle of a scale": r"\b[01]\b(?!\.\d)|(?<![\d.])0?\.5(?!\d)",
    "what somebody else said": r'"[^"]*"',
    "stages in a table": r"(?<=\| )0[1-5](?= \|)",
}


@functools.cache
def _table(path: str) -> pd.DataFrame:
    study, _, name = path.partition("/material/")  # what a paper prints
    file = (
        ROOT / "notebooks" / study / "material" / f"{name}.csv"
        if name
        else REFERENCE / f"{path}.csv"
    )
    if not file.is_file():
        raise TouchstoneError(f"there is no table {file.relative_to(ROOT)}")
    return pd.read_csv(file)


def rows_of(path: str, where: str) -> pd.DataFrame:
    """The rows of a committed table for which every `column=value` of `where` is true."""
    table = _table(path)
    for condition in filter(None, re.split(r", ?(?=[\w ]+=)", where)):
        column, _, wanted = condition.partition("=")
        if column not in table:
            raise TouchstoneError(f"{path} has no column {column!r}; it has {', '.join(table)}")
        values = table[column]
        same = values.astype(str) == wanted
        if pd.api.types.is_numeric_dtype(values) and values.dtype != bool:
            same = values == float(wanted)
        table = table[same]
    return table


def value_of(cell: str) -> float | str:
    """What a cell's address stands for.

    Raises:
        TouchstoneError: the address cannot be read, or names no row, or several.
    """
    match = CELL.fullmatch(cell)
    if not match:
        raise TouchstoneError(f"cannot read {cell!r}; write path[column=value, ...].column")
    how, path, where, column = match.groups()
    rows = rows_of(path, where or "")
    if how == "count":
        return float(len(rows))
    if not column or column not in rows:
        raise TouchstoneError(f"{cell}: no column {column!r}; there are {', '.join(rows)}")
    values = rows[column].dropna()
    if how in ("min", "max"):
        return float(getattr(values, how)())
    if len(values) != 1:
        raise TouchstoneError(f"{cell} names {len(values)} rows, not one")
    value = values.iloc[0]
    if isinstance(value, str) and not re.fullmatch(_NUMBER, value):
        return value
    return abs(float(value)) if how == "abs" else float(value)


def written_like(value: float | str, text: str, unit: str = "") -> str:
    """A value in the form of the number that stands in its place.

    >>> written_like(0.98231, ".9"), written_like(0.98231, "97.0", " %")
    ('1.0', '98.2')
    >>> written_like(2041.0, "1,000"), written_like(-0.123, "-.12")
    ('2,041', '-.12')
    """
    if isinstance(value, str):
        return value
    digits = len(text.partition(".")[2])
    value = value * 100 if unit else value
    new = f"{abs(value):,.{digits}f}" if "," in text else f"{abs(value):.{digits}f}"
    if text.lstrip("-−").startswith("."):
        new = new.removeprefix("0")
    minus = "−" if "−" in text else "-"
    return f"{minus}{new}" if value < 0 and new.strip("0.") else new


def table_of(recipe: str) -> str:
    """The rows of a Markdown table by its recipe, a YAML mapping.

    `from` (a table), `where` (conditions), `rows` and `columns` (column names, `columns` is
    optional; several for `rows` make keys such as `LIME, CEf`), `values` (column or list of
    columns), `digits` (one number, or one for each of `values`), `order` (of rows: key to shown
    name, others are left out), `names` (shown names of columns), `join` (between several values of
    a cell), `interval: true` (low and high in brackets), `notes` (key to what the last column
    says). Tables side by side: `from` maps the head of a column to its own `from`, `where` and
    `values`.
    """
    plan = yaml.safe_load(recipe)
    if isinstance(plan["from"], dict):
        plan = {**plan, **_side_by_side(plan["from"])}
        rows = plan["table"]
    else:
        rows = rows_of(plan["from"], plan.get("where", ""))
    keys = plan["rows"] if isinstance(plan["rows"], list) else [plan["rows"]]
    rows = rows.assign(key=rows[keys].astype(str).agg(", ".join, axis=1))
    values = plan["values"] if isinstance(plan["values"], list) else [plan["values"]]
    digits, names = plan.get("digits", 2), plan.get("names", {})

    def shown(row: pd.Series, value: str) -> str:
        if isinstance(row[value], str) or pd.isna(row[value]):
            return "" if not isinstance(row[value], str) else row[value]
        places = digits[value] if isinstance(digits, dict) else digits
        number = _short(row[value], places)
        if plan.get("interval"):
            number += f" [{_short(row['low'], places)},&nbsp;{_short(row['high'], places)}]"
        return number

    order = plan.get("order") or {key: key for key in rows["key"].unique()}
    if "columns" not in plan:
        heads = values
        cells = {
            (row["key"], value): shown(row, value) for _, row in rows.iterrows() for value in values
        }
    else:
        heads = [str(h) for h in (names or dict.fromkeys(rows[plan["columns"]].unique()))]
        parts: dict[tuple[str, str], list[str]] = {}
        for _, row in rows.iterrows():
            key = row["key"], str(row[plan["columns"]])
            parts.setdefault(key, []).extend(shown(row, value) for value in values)
        cells = {key: plan.get("join", " / ").join(texts) for key, texts in parts.items()}
    if "notes" in plan:
        heads = [*heads, ""]
        cells |= {(key, ""): note for key, note in plan["notes"].items()}
    lines = [["", *(str(names.get(head, head)) for head in heads)], ["---"] * (len(heads) + 1)]
    lines += [[name, *(cells.get((key, h), "") for h in heads)] for key, name in order.items()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _side_by_side(parts: dict[str, dict[str, str]]) -> dict:
    """Parts of a recipe as one long table, and what `table_of` shows of it."""
    tables = []
    for head, part in parts.items():
        rows = rows_of(part["from"], part.get("where", ""))
        tables.append(rows.assign(head=head, shown=rows[part["values"]]))
    return {"table": pd.concat(tables), "columns": "head", "values": "shown"}


def _short(number: float, digits: int) -> str:
    """Without the zero before the point, as statistics are printed."""
    text = f"{number:.{digits}f}"
    return re.sub(r"^(-?)0\.", r"\1.", text if text.strip("-0.") else text.lstrip("-"))


def renewed(text: str) -> str:
    """A page with the values of today in the place of the old ones."""
    text = QUOTE.sub(
        lambda m: (
            written_like(value_of(m["cell"]), m["text"], m["unit"] or "")
            + (m["unit"] or "")
            + f"{m['marks']}<!-- {m['cell']} -->"
        ),
        text,
    )
    return TABLE.sub(
        lambda m: f"<!-- table\n{m['recipe']}-->\n{table_of(m['recipe'])}<!-- end -->", text
    )


def untold(text: str) -> list[str]:
    """Numbers of a page that are results by their looks and name no cell, with their surroundings.

    >>> untold("It has .98 on Figure 2b.")
    ['It has .98 on Figure']
    """
    text = QUOTE.sub(" ", TABLE.sub(" ", text))
    for kind in EXEMPT.values():
        text = re.sub(kind, " _ ", text, flags=re.M | re.S if "```" in kind else re.M)
    return [
        " ".join(text[max(0, m.start() - 30) : m.end() + 10].split())
        for m in re.finditer(rf"(?<![\w.]){_NUMBER}(?![\w])", text)
    ]


def pages() -> dict[Path, str]:
    """What is held to this: READMEs, the results, of notebooks stage 05 and *What we found*."""
    texts = {
        path: path.read_text()
        for path in (
            *(ROOT / name for name in ("README.md", "docs/results.md")),
            *ROOT.glob("notebooks/*/README.md"),
        )
    }
    for path in find_sources():
        cells = [c.source for c in read_notebook(path).cells if c.cell_type == "markdown"]
        prose = "\n\n".join(cells)
        found = re.search(r"^## What we found\n.*?(?=^## |\Z)", prose, flags=re.M | re.S)
        texts[path] = prose if path.stem == "05_figures" else found[0] if found else ""
    return texts


def main(check: bool) -> int:
    """Write or check; the exit status is the number of pages with faults, at most 1."""
    faults = []
    for path, text in pages().items():
        name = path.relative_to(ROOT)
        faults += [f"{name}: no cell for: {number}" for number in untold(text)]
        whole = path.read_text()
        try:
            new = renewed(whole)
        except TouchstoneError as error:
            faults.append(f"{name}: {error}")
            continue
        if new != whole and not check:
            write_atomic(path, new)
            print(f"{name}: renewed")
        elif new != whole:
            pairs = zip(QUOTE.finditer(whole), QUOTE.finditer(new))
            moved = [f"{a['text']} is {b['text']}" for a, b in pairs if a[0] != b[0]]
            faults.append(f"{name}: {'; '.join(moved) or 'a table'}; say `make numbers`")
    print("\n".join(faults))
    return min(1, len(faults))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
