"""Agreement lines: a prefix, the class expected next, and the words that should and should not speak for it.

The three-file format is that of tarsius (Ding & Koehn 2021): `all.prefx.txt`, the prefixes, words separated by a space;
`all.tag.txt`, 0 or 1; `all.subjs.txt`, `CUES ||| ATTRACTORS`, each a list of (start, end) spans, 0-based, both included.
Number: 0 singular, 1 plural. Gender: 0 male, 1 female.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib.core.errors import TouchstoneError
from lib.core.files import save_parquet, write_atomic
from lib.language.spans import Span, span_tokens

COLUMNS = ["prefix", "tag", "cues", "attractors", "pattern", "cluster"]
FILES = ("all.prefx.txt", "all.tag.txt", "all.subjs.txt")
TAG_NAMES = (FILES[1], "all.tags.txt")  # the source's own README calls the file by the second name
SPANS = re.compile(r"\[(\(\d+, ?\d+\)(, ?\(\d+, ?\d+\))*)?\]")


def read_agreement(folder: Path | str) -> pd.DataFrame:
    """The agreement lines of a folder with tarsius' three files; columns prefix, tag, cues, attractors.

    Raises TouchstoneError, naming file and line, for an empty prefix, files of different length, a tag that is not 0 or
    1, spans that are not lists of pairs (they are matched, never evaluated), and spans that leave the prefix.
    """
    folder = Path(folder)
    tags_name = next((name for name in TAG_NAMES if (folder / name).is_file()), FILES[1])
    names = (FILES[0], tags_name, FILES[2])
    prefixes, tags, spans = (_lines(folder / name) for name in names)
    if not len(prefixes) == len(tags) == len(spans):
        raise TouchstoneError(
            f"{folder}: {names[0]} has {len(prefixes)} lines, {names[1]} {len(tags)} and {names[2]} "
            f"{len(spans)}; they must be aligned line by line"
        )
    rows = []
    for i, (prefix, tag, line) in enumerate(zip(prefixes, tags, spans, strict=True), start=1):
        where = f"{folder / names[2]}, line {i}"
        cues, attractors = parse_spans(line, where)
        if tag.strip() not in ("0", "1"):
            raise TouchstoneError(
                f"{folder / tags_name}, line {i}: the tag is {tag.strip()!r}; write 0 or 1"
            )
        rows.append((prefix.split(), int(tag), cues, attractors))
        check_line(rows[-1][0], cues, attractors, where)
    return pd.DataFrame(rows, columns=COLUMNS[:4])


def write_agreement(rows: pd.DataFrame, folder: Path | str) -> None:
    """Write lines in the three-file format; reading them back gives the same prefixes, tags and spans."""
    folder = Path(folder)
    texts = (
        [" ".join(prefix) for prefix in rows["prefix"]],
        [str(tag) for tag in rows["tag"]],
        [
            f"{_listed(c)} ||| {_listed(a)}"
            for c, a in zip(rows["cues"], rows["attractors"], strict=True)
        ],
    )
    for name, lines in zip(FILES, texts, strict=True):
        write_atomic(folder / name, "".join(f"{line}\n" for line in lines))


def save_sets(sets: Mapping[str, pd.DataFrame], path: Path | str) -> None:
    """Keep several sets in one Parquet file; `load_sets` gives them back."""
    parts = [
        pd.DataFrame(
            {
                "set": name,
                "prefix": rows["prefix"].map(" ".join),
                "tag": rows["tag"],
                "spans": [
                    f"{_listed(c)} ||| {_listed(a)}"
                    for c, a in zip(rows["cues"], rows["attractors"], strict=True)
                ],
                "pattern": rows["pattern"],
                "cluster": rows["cluster"],
            }
        )
        for name, rows in sets.items()
    ]
    save_parquet(pd.concat(parts, ignore_index=True), path)


def load_sets(path: Path | str) -> dict[str, pd.DataFrame]:
    """The sets of a file that `save_sets` wrote, by name, in its order."""
    table = pd.read_parquet(path)
    sets = {}
    for name, part in table.groupby("set", sort=False):
        spans = [
            parse_spans(text, f"{path}, set {name}, line {i}")
            for i, text in enumerate(part["spans"], start=1)
        ]
        sets[str(name)] = pd.DataFrame(
            {
                "prefix": part["prefix"].str.split(" ").to_list(),
                "tag": part["tag"].to_list(),
                "cues": [c for c, _ in spans],
                "attractors": [a for _, a in spans],
                "pattern": part["pattern"].to_list(),
                "cluster": part["cluster"].to_list(),
            }
        )
    return sets


def parse_spans(text: str, where: str) -> tuple[list[Span], list[Span]]:
    """Cue spans and attractor spans of a line `[(1, 1)] ||| [(4, 5)]`.

    >>> parse_spans("[(1, 1)] ||| [(4, 5), (7, 7)]", "line 1")
    ([(1, 1)], [(4, 5), (7, 7)])
    """
    parts = text.strip().split(" ||| ")
    if len(parts) != 2 or not all(SPANS.fullmatch(part) for part in parts):
        raise TouchstoneError(
            f"{where}: {text.strip()[:60]!r} is not two lists of spans; write [(1, 1)] ||| [(4, 5)]"
        )
    cues, attractors = (
        [(int(a), int(b)) for a, b in re.findall(r"\((\d+), ?(\d+)\)", part)] for part in parts
    )
    return cues, attractors


def check_line(
    prefix: Sequence[str], cues: Iterable[Span], attractors: Iterable[Span], where: str
) -> None:
    """Refuse an empty prefix, a side without spans, and a span that is reversed or leaves the prefix."""
    if not prefix:
        raise TouchstoneError(
            f"{where}: the prefix is empty; remove the line, for nothing in it can be explained"
        )
    for side, spans in (("cue", list(cues)), ("attractor", list(attractors))):
        if not spans:
            raise TouchstoneError(
                f"{where}: there is no {side} span; a line needs one on each side to be a test"
            )
        for start, end in spans:
            if not 0 <= start <= end < len(prefix):
                raise TouchstoneError(
                    f"{where}: {side} span ({start}, {end}) does not lie in the prefix of "
                    f"{len(prefix)} words; count from 0, with both ends included"
                )


def last_words(rows: pd.DataFrame, longest: int) -> pd.DataFrame:
    """The lines with at most their last `longest` words; a line that loses all its cues or all its attractors is left out.

    >>> rows = pd.DataFrame([("a b c d".split(), 1, [(0, 1)], [(3, 3)], "p", "c")], columns=COLUMNS)
    >>> last_words(rows, 3)[["prefix", "cues", "attractors"]].values.tolist()
    [[['b', 'c', 'd'], [(0, 0)], [(2, 2)]]]
    """
    if longest < 1:
        raise TouchstoneError(f"longest_line is {longest}; keep at least one word")
    gone = rows["prefix"].map(len).sub(longest).clip(lower=0)
    cut = rows.assign(
        prefix=[prefix[-longest:] for prefix in rows["prefix"]],
        **{
            side: [
                [(max(a - n, 0), b - n) for a, b in spans if b >= n]
                for spans, n in zip(rows[side], gone, strict=True)
            ]
            for side in ("cues", "attractors")
        },
    )
    return cut[cut["cues"].map(bool) & cut["attractors"].map(bool)].reset_index(drop=True)


def random_baseline(rows: pd.DataFrame) -> np.ndarray:
    """Per line, the chance that random saliency passes the expected test: the largest score is a cue's.

    With independent scores it is the number of cue tokens that are no attractor tokens over the number of tokens of
    either kind (a token on both sides makes a tie, and the test asks for more than a tie).
    """
    pairs = [
        (set(span_tokens(c)), set(span_tokens(a)))
        for c, a in zip(rows["cues"], rows["attractors"], strict=True)
    ]
    return np.array([len(cues - attractors) / len(cues | attractors) for cues, attractors in pairs])


def nearest_baseline(rows: pd.DataFrame) -> np.ndarray:
    """Per line, whether the span that ends last is a cue: what a saliency that grows towards the verb would pass."""
    pairs = zip(rows["cues"], rows["attractors"], strict=True)
    return np.array(
        [
            max(end for _, end in cues) > max(end for _, end in attractors)
            for cues, attractors in pairs
        ]
    )


def agreement_statistics(rows: pd.DataFrame) -> dict[str, float]:
    """What a set is like: lines, tags, lengths, spans, distinct prefixes, and the two baselines."""
    length, cues, attractors = (
        rows["prefix"].map(len),
        rows["cues"].map(len),
        rows["attractors"].map(len),
    )
    return {
        "lines": len(rows),
        "tag_0": int((rows["tag"] == 0).sum()),
        "tag_1": int((rows["tag"] == 1).sum()),
        "words_mean": length.mean(),
        "words_min": length.min(),
        "words_max": length.max(),
        "cue_spans": cues.mean(),
        "attractor_spans": attractors.mean(),
        "word_types": len({w for prefix in rows["prefix"] for w in prefix}),
        "repeated": int(rows["prefix"].map(tuple).duplicated().sum()),
        "random": random_baseline(rows).mean(),
        "nearest": nearest_baseline(rows).mean(),
    }


def frame_groups(rows: pd.DataFrame) -> list[str]:
    """The sentence frame of each line: cue and attractor words become slots, and their order is part of the frame.

    These are the interpretation-preserving templates of the published gender set (283, of them 254 with two lines).
    """
    frames = []
    for prefix, cues, attractors in zip(
        rows["prefix"], rows["cues"], rows["attractors"], strict=True
    ):
        slots = dict.fromkeys(span_tokens(attractors), "[attractor]") | dict.fromkeys(
            span_tokens(cues), "[cue]"
        )
        frames.append(" ".join(slots.get(i, word) for i, word in enumerate(prefix)))
    return frames


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise TouchstoneError(f"there is no file {path}; a set needs {', '.join(FILES)}")
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _listed(spans: Iterable[Span]) -> str:
    return "[" + ", ".join(f"({start}, {end})" for start, end in spans) + "]"
