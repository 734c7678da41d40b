"""CoNLL-U, the table format of Universal Dependencies, read (`tools/write_conllu.py` writes it).

A file is a list of sentences with an empty line after each. Above its words a sentence may have
comments (`# key = value`); a word is a row of ten columns split by tabs: ID, FORM, LEMMA, UPOS,
XPOS, FEATS, HEAD, DEPREL, DEPS, MISC (https://universaldependencies.org/format.html).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..core.errors import TouchstoneError
from ..core.files import read_utf8
from .visible import is_visible

_BESIDE = re.compile(r"[0-9]+[-.][0-9]+")  # the number of a range of words, of an empty node


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
        TouchstoneError: with file and line, for a row without ten columns, a word that is not the
            next in number or cannot be seen, heads that make no tree, an id (`sent_id`) twice, and
            bytes that are not UTF-8; for a file without a sentence.
    """
    trees: list[Tree] = []
    known: dict[str, int] = {}  # the first line of a sentence by its id
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
            if not _BESIDE.fullmatch(columns[0]):
                fields[number] = columns
        elif fields:
            trees.append(Tree(_rows(fields, path), comments))
            name, first = comments.get("sent_id", ""), trees[-1].rows[0].line
            if name and known.setdefault(name, first) != first:
                raise TouchstoneError(
                    f"{path}, line {first}: the id {name!r} stands there twice (first in line "
                    f"{known[name]}); give this sentence another one"
                )
            fields, comments = {}, {}
    if not trees:
        raise TouchstoneError(f"{path} holds no sentence; write its words, ten columns each")
    return trees


def _rows(fields: Mapping[int, list[str]], path: Path | str) -> list[Row]:
    index = {str(i): i - 1 for i in range(len(fields) + 1)}  # head 0 is that of the root
    rows = []
    for i, (number, columns) in enumerate(fields.items(), start=1):
        problems = {
            f"the word has number {columns[0]!r}, and {i} is next; count from 1, leave none out": (
                columns[0] != str(i)
            ),
            f"the form {columns[1]!r} is empty or has no width; write the word": (
                not is_visible(columns[1])
            ),
            f"the head {columns[6]!r} is no word of the sentence; correct the tree": (
                columns[6] not in index
            ),
        }
        if problem := next((said for said, is_there in problems.items() if is_there), None):
            raise TouchstoneError(f"{path}, line {number}: {problem}")
        rows.append(Row._make([*columns[:6], index[columns[6]], *columns[7:], number]))
    _check_tree(rows, path)
    return rows


def _check_tree(rows: Sequence[Row], path: Path | str) -> None:
    """Refuse heads that go round in a circle, and a second root."""
    roots = [row for row in rows if row.head < 0]
    if len(roots) > 1:
        raise TouchstoneError(
            f"{path}, line {roots[1].line}: a second root (the first is in line {roots[0].line}); "
            "give all words but one a head"
        )
    hangs = {-1}  # what is known to hang from the root
    for start in range(len(rows)):
        above = []
        while start not in hangs:
            if start in above:
                raise TouchstoneError(
                    f"{path}, line {rows[start].line}: the head of {rows[start].form!r} goes round "
                    "in a circle; correct the tree"
                )
            above.append(start)
            start = rows[start].head
        hangs.update(above)
