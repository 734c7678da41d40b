"""Report how each notebook reads: words, sentences, codes, tables, pictures (make form).

    python tools/edition.py [--root CHECKOUT] [--csv FILE]

A report and no gate: it always exits 0. The reader's edition is counted, without exercises. Codes
and their names come from docs/glossary.md: a code is a term whose text begins with its name in
italics, or a term with a code in brackets. Used before it is explained is a code whose first
paragraph, list item or table row has neither its name nor a link to the glossary.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

import nbformat

from lib.core.notebooks import find_sources, read_notebook
from lib.core.paths import ROOT

LONGEST_SENTENCE = 25  # words
MOST_NUMBERS = 2  # in a sentence
WIDEST_LINE = 88  # characters of a line of code
_NOT_PROSE = re.compile(r"(?s:```.*?```|\$\$.*?\$\$|<!--.*?-->)|^#.*$|^\|.*$", re.M)
_NO_END = re.compile(r"\b(et al|e\.g|i\.e|vs|cf|Fig|[Ee]q|No)\.")
_END = re.compile(r"(?<=[.!?])([*_\"')\]]*)\s+(?=`|[*_\"'(\[$]*[A-Z0-9])")
_REFERENCE = re.compile(
    r"\b(stages?|sections?|figures?|tables?|equations?|seeds?|et al\.,?|20\d\d|19\d\d)"
    r"(\s+\(?\d[\w.]*\)?)?",
    re.I,
)
_NUMBER = re.compile(r"(?<![\w.\-/])[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?![\w/])")


class Line(NamedTuple):
    """What the report says of a notebook; a share is between 0 and 1."""

    notebook: str
    words: int
    sections: int
    subsections: int
    cells: int
    sentences: int
    words_a_sentence: float  # the median
    share_long: float
    share_numbers: float
    codes_early: str
    tables: int
    most_rows: int
    most_columns: int
    schematics: int
    pictures: int
    code_lines: int
    wide_lines: int


def main(arguments: list[str] | None = None) -> None:
    """Print the report, and write it where `--csv` says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout that is counted")
    parser.add_argument("--csv", type=Path, help="where the report is also written")
    options = parser.parse_args(arguments)
    codes = read_codes((ROOT / "docs" / "glossary.md").read_text())
    lines = [count(path, options.root, codes) for path in find_sources(options.root)]
    if options.csv:
        options.csv.write_text(as_csv(lines))
    sys.stdout.write(as_table(lines))


def count(path: Path, root: Path, codes: dict[str, str]) -> Line:
    """The report on one notebook; tables and pictures are those of its executed copy."""
    cells = read_notebook(path).cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    code = [x for cell in cells if cell.cell_type == "code" for x in cell.source.splitlines()]
    said = sentences(prose)
    lengths = [n_words(sentence) for sentence in said] or [0]
    shapes, pictures = shown(path.with_suffix(".ipynb"))
    return Line(
        notebook=path.relative_to(root / "notebooks").with_suffix("").as_posix(),
        words=n_words(prose),
        sections=len(re.findall(r"^## ", prose, flags=re.M)),
        subsections=len(re.findall(r"^###+ ", prose, flags=re.M)),
        cells=len(cells),
        sentences=len(said),
        words_a_sentence=median(lengths),
        share_long=round(sum(n > LONGEST_SENTENCE for n in lengths) / len(lengths), 3),
        share_numbers=round(
            sum(n_numbers(sentence) > MOST_NUMBERS for sentence in said) / max(len(said), 1), 3
        ),
        codes_early=" ".join(codes_before_names(prose, codes)),
        tables=len(shapes),
        most_rows=max((rows for rows, _ in shapes), default=0),
        most_columns=max((columns for _, columns in shapes), default=0),
        schematics=len(re.findall(r"\]\([^)]*docs/schematics/", prose)),
        pictures=pictures + len(re.findall(r"!\[[^]]*\]\((?![^)]*docs/schematics/)", prose)),
        code_lines=len(code),
        wide_lines=sum(len(line) > WIDEST_LINE for line in code),
    )


def n_words(text: str) -> int:
    """Words of Markdown, without tags, pictures and the targets of links.

    >>> n_words("*Two* [words](page.md)<br>![none](a.png)")
    2
    """
    text = re.sub(r"<[^>]+>|!\[.*?\]\(.*?\)|\]\([^)]*\)", "", text)
    return len(re.findall(r"\b\w[\w'-]*\b", text))


def sentences(prose: str) -> list[str]:
    """Sentences of paragraphs and lists, without headings, tables, displayed formulas and code.

    >>> sentences("# No\\n\\nOne, by Li et al. of 2019. *Two?* Three:\\n\\n- four")
    ['One, by Li et al. of 2019.', '*Two?*', 'Three:', 'four']
    """
    found = []
    for block in blocks(_NOT_PROSE.sub("", prose)):
        marked = _NO_END.sub(lambda match: match[0][:-1] + "\0", block)
        found += _END.sub(r"\1\n", marked).replace("\0", ".").split("\n")
    return [sentence for sentence in found if n_words(sentence)]


def blocks(prose: str) -> list[str]:
    """Paragraphs, list items and table rows, each on one line; no pictures, no link targets."""
    text = re.sub(r"!\[.*?\]\(.*?\)", "", prose, flags=re.S)
    text = re.sub(r"^(\s*)(?:[-*>]|\d+\.) ", r"\n\1", text, flags=re.M)
    text = re.sub(r"^\|", "\n|", text, flags=re.M)
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n", text) if block.strip()]


def n_numbers(sentence: str) -> int:
    """Numbers in digits that a reader has to hold; none of code, formulas, years, references.

    >>> n_numbers("Of 1,200 texts 94 % are right (stage 2; Li et al. 2019), `n=3` and $x=1$.")
    2
    """
    text = re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|\*\*Time:.*", " ", sentence)
    return len(_NUMBER.findall(_REFERENCE.sub(" ", text)))


def read_codes(glossary: str) -> dict[str, str]:
    """Codes of the glossary with their names.

    >>> read_codes("ZS\\n  *Zero-shot*: as it comes.\\n\\nrecall\\n  No code.\\n")
    {'ZS': 'Zero-shot'}
    >>> read_codes("mass accuracy (MA)\\n  A share.\\n")
    {'MA': 'mass accuracy'}
    """
    codes = {}
    for term, meaning in re.findall(r"^(\w.*)\n  (\S.*)", glossary, flags=re.M):
        if named := re.match(r"\*([^*]+)\*", meaning):
            codes[term] = named[1]
        elif bracket := re.match(r"(.+) \((\S+)\)$", term):
            codes[bracket[2]] = bracket[1]
    return codes


def codes_before_names(prose: str, codes: dict[str, str]) -> list[str]:
    """The codes whose first use stands without their name, and without a link to the glossary.

    >>> codes_before_names("C learns. C is *head only*. RMA: see [words](glossary.md).",
    ...     {"C": "Head only", "RMA": "relative"})
    []
    >>> codes_before_names("C learns.\\n\\nC is *head only*.", {"C": "Head only"})
    ['C']
    """
    plain = re.sub(r"```.*?```|\$\$.*?\$\$|\$[^$\n]*\$|<!--.*?-->", " ", prose, flags=re.S)
    early = []
    for code, name in codes.items():
        use = re.compile(rf"(?<![\w\-./]){re.escape(code)}(?![\w\-/]|\.\w)")
        first = next((b for b in blocks(plain) if use.search(re.sub(r"\]\([^)]*\)", "]", b))), None)
        if first and name.lower() not in first.lower() and "glossary" not in first:
            early.append(code)
    return early


def shown(executed: Path) -> tuple[list[tuple[int, int]], int]:
    """Rows and columns of each table of an executed notebook, and the number of its pictures."""
    if not executed.is_file():
        return [], 0
    outputs = [
        output.get("data", {})
        for cell in nbformat.read(executed, 4).cells
        for output in cell.get("outputs", [])
    ]
    tables = [data["text/html"] for data in outputs if "<table" in data.get("text/html", "")]
    shapes = []
    for table in tables:
        head, _, body = table.partition("<tbody")
        shapes.append((body.count("<tr"), len(re.findall(r"<th[ >]", head))))
    return shapes, sum("image/png" in data or "image/svg+xml" in data for data in outputs)


def as_csv(lines: list[Line]) -> str:
    """The report as CSV, a line for each notebook."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Line._fields)
    writer.writerows(lines)
    return text.getvalue()


def as_table(lines: list[Line]) -> str:
    """The report in columns, with the sums that have a meaning."""
    head = [field.replace("_", " ") for field in Line._fields]
    cells = [[str(value) for value in line] for line in lines]
    summed = {"words", "sections", "tables", "schematics", "pictures", "code_lines", "wide_lines"}
    total = [
        str(sum(getattr(line, field) for line in lines)) if field in summed else ""
        for field in Line._fields
    ]
    rows = [head, *cells, ["all", *total[1:]]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return "".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() + "\n"
        for row in rows
    )


if __name__ == "__main__":
    main()
