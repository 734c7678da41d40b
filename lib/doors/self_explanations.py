"""A language model's own account of which words mattered, scored like any other explanation.

`write_prompts` writes a question for each item as JSON lines; whoever has a model lets it answer,
by whatever means; `read_answers` reads the answers strictly, and counts what is no answer. Nothing
here calls a model.

>>> rows = pd.DataFrame({"row_id": ["1-F"], "sentence_idx": [1], "target": [0],
...                      "sentence": [["she", "sings"]], "question": ["Who sings?"]})
>>> prompts(rows)[0]["id"]  # the row, and a fingerprint of its text
'1-F#abae2f9e'
>>> answer_scores('{"she": 2, "loudly": 1}', ["she", "sings"])
Answer(kind='answered', scores=[2.0, 0.0], invented=['loudly'])
"""

import json
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ..attribution.table import are_finite
from ..core.errors import TouchstoneError, did_you_mean
from ..core.files import parse_json, read_text, strict_json, write_atomic
from .readers import from_words

FORM = (
    'Answer with JSON alone: a list of words of the text, as ["word", "word"], or an object that '
    'gives each a number, as {"word": 2.5, "word": -1}. Write the words exactly as they stand, and '
    "nothing before or behind the JSON."
)
ANSWERED, REFUSED, UNREADABLE = "answered", "refused", "unreadable"


class Answer(NamedTuple):
    """What an answer says of the words of its text.

    Attributes:
        kind: "answered"; "refused", no JSON; "unreadable", other JSON, or JSON among other text.
        scores: a number a word, equal ones where the kind is another than "answered" or no word is
            named, so that who says nothing is where chance is.
        invented: what was named and is no word of the text.
    """

    kind: str
    scores: list[float]
    invented: list[str]


def prompts(rows: pd.DataFrame) -> list[dict[str, str]]:
    """The question of each row.

    Args:
        rows: row_id, sentence (words), question, perhaps dataset.

    Returns:
        id, prompt.
    """
    if missing := [name for name in ("row_id", "sentence", "question") if name not in rows]:
        raise TouchstoneError(
            f"the rows have no column {missing[0]!r}; hand in items with questions"
        )
    return [
        {"id": name, "prompt": f"{question}\n\n{' '.join(words)}\n\n{FORM}"}
        for name, question, words in zip(
            _ids(rows), rows["question"], rows["sentence"], strict=True
        )
    ]


def write_prompts(rows: pd.DataFrame, path: Path | str) -> int:
    """Write the questions as JSON lines; returns how many. A line: id, prompt."""
    lines = [json.dumps(line, ensure_ascii=False) for line in prompts(rows)]
    write_atomic(path, "".join(f"{line}\n" for line in lines))
    return len(lines)


def answer_scores(answer: str, words: Sequence[str]) -> Answer:
    """An answer read strictly; a word that stands twice is meant twice.

    >>> answer_scores("I cannot tell.", ["she", "sings"]).kind
    'refused'
    >>> answer_scores('["she"] I think', ["she", "sings"])
    Answer(kind='unreadable', scores=[1.0, 1.0], invented=[])
    """
    even = [1.0] * len(words)
    if not any(sign in answer for sign in "[{"):
        return Answer(REFUSED, even, [])
    try:
        said = strict_json(answer)
    except ValueError:
        return Answer(UNREADABLE, even, [])
    if isinstance(said, list) and all(isinstance(word, str) for word in said):
        said = dict.fromkeys(said, 1)
    if not isinstance(said, dict) or not are_finite(list(said.values()) or [0]):
        return Answer(UNREADABLE, even, [])
    invented = [word for word in said if word not in words]
    scores = [float(said.get(word, 0)) for word in words]
    return Answer(ANSWERED, scores if any(scores) else even, invented)


def read_answers(
    path: Path | str, rows: pd.DataFrame, method: str = ""
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Answers from JSON lines, in the one format, and what was counted.

    Args:
        path: a line for each answered question: id, answer (the model's text, as it came).
        rows: the rows that were asked about; those without an answer are left out.
        method: the model's name; by default the file's.

    Returns:
        Explanations of the answered rows, and the numbers of rows answered, refused, unreadable,
        of rows without any word of the text (empty), and of invented words.

    Raises:
        TouchstoneError: naming file and line, for another form, an unknown id, one of another
            text, or one twice.
    """
    path, known = Path(path), dict(zip(_ids(rows), range(len(rows)), strict=True))
    found: dict[int, Answer] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        name, answer = _fields(parse_json(line, where, "write one JSON object a line"), where)
        if name not in known:
            rows_asked = {known_name.rpartition("#")[0] for known_name in known}
            row, _, mark = name.rpartition("#")
            if row in rows_asked and re.fullmatch("[0-9a-f]{8}", mark):
                raise TouchstoneError(
                    f"{where}: {name!r} was asked about another text than that of the items here; "
                    "score with the items that were asked about, or ask again"
                )
            raise TouchstoneError(f"{where}: nobody asked {name!r}{did_you_mean(name, known)}")
        if known[name] in found:
            raise TouchstoneError(f"{where}: {name} is answered twice; keep one of the two")
        found[known[name]] = answer_scores(answer, rows["sentence"].iloc[known[name]])
    if not found:
        raise TouchstoneError(f"{path} holds no answer; write a line for each question")
    places = sorted(found)
    answers = [found[place] for place in places]
    kinds = Counter(answer.kind for answer in answers)
    counts = {kind: kinds[kind] for kind in (ANSWERED, REFUSED, UNREADABLE)}
    counts["empty"] = sum(a.kind == ANSWERED and len(set(a.scores)) == 1 for a in answers)
    counts["invented"] = sum(len(answer.invented) for answer in answers)
    asked, scores = rows.iloc[places], [answer.scores for answer in answers]
    return from_words(asked, scores, method or path.stem, settings=counts), counts


def _ids(rows: pd.DataFrame) -> list[str]:
    """The name of each row: its row_id, behind its data set where there are several; then a
    fingerprint of its text, so that no answer is scored against another text.
    """
    ids = rows["row_id"].astype(str)
    names = rows["dataset"] + "/" + ids if "dataset" in rows else ids
    texts = rows["sentence"].map(" ".join)
    return [f"{name}#{zlib.crc32(t.encode()):08x}" for name, t in zip(names, texts, strict=True)]


def _fields(record: Any, where: str) -> tuple[str, str]:
    said = record if isinstance(record, dict) else {}
    name, answer = said.get("id"), said.get("answer")
    if not isinstance(name, str) or not isinstance(answer, str):
        raise TouchstoneError(f'{where} is not {{"id": text, "answer": text}}; write these two')
    return name, answer
