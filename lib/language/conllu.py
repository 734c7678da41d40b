"""CoNLL-U, the table format of Universal Dependencies, read (`tools/write_conllu.py` writes it).

A file is a list of sentences with an empty line after each. Above its words a sentence may have
comments (`# key = value`); a word is a row of ten columns split by tabs: ID, FORM, LEMMA, UPOS,
XPOS, FEATS, HEAD, DEPREL, DEPS, MISC (https://universaldependencies.org/format.html).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..core.errors import TouchstoneError
from ..core.files import read_utf8


class Row(NamedTuple):
    """A word: the ten columns as text, but for `head`, and its line in the file.

    `head` is the index of the head in the sentence, counted from 0, and -1 for the root.
    """

    id: str
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    head: int
    deprel: str
    deps: str
    misc: str
    line: int


@dataclass(frozen=True)
class Tree:
    """The words of a sentence, and the comments above them by key ("" where there is no `=`)."""

    rows: list[Row]
    comments: dict[str, str]


def read_conllu(path: Path | str) -> list[Tree]:
    """The sentences of a CoNLL-U file, without ranges of words ("3-4") and empty nodes ("3.1").

    Raises:
        TouchstoneError: with file and line, for a row without ten columns, for a head that is no
            word of the sentence, and for bytes that are not UTF-8.
    """
    trees: list[Tree] = []
    fields: dict[int, list[str]] = {}  # the columns of the words by their line
    comments: dict[str, str] = {}
    lines = read_utf8(Path(path)).replace("\r\n", "\n").split("\n")
    # One more empty line ends the last sentence of a file that lacks it.
    for number, line in enumerate([*lines, ""], start=1):
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            comments[key.strip()] = value.strip()
        elif line:
            columns = line.split("\t")
            if len(columns) != 10:
                raise TouchstoneError(
                    f"{path}, line {number}: {len(columns)} columns; CoNLL-U has ten, split by "
                    "tabs; correct the line, or make the file again"
                )
            if columns[0].isdigit():
                fields[number] = columns
        elif fields:
            trees.append(Tree(_rows(fields, path), comments))
            fields, comments = {}, {}
    return trees


def _rows(fields: Mapping[int, list[str]], path: Path | str) -> list[Row]:
    index = {columns[0]: i for i, columns in enumerate(fields.values())} | {"0": -1}
    rows = []
    for number, columns in fields.items():
        if columns[6] not in index:
            raise TouchstoneError(
                f"{path}, line {number}: the head {columns[6]!r} is no word of the sentence; "
                "correct the tree"
            )
        rows.append(Row._make([*columns[:6], index[columns[6]], *columns[7:], number]))
    return rows
