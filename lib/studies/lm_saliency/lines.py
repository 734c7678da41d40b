"""Agreement lines: a prefix, the class expected next, and the words that speak for and against it.

A set of lines is a table with the columns

- `prefix`: the words before the predicted one, a list;
- `tag`: the class of the predicted word, 0 singular or male, 1 plural or female;
- `cues`: spans of the words of that class, which should speak for it;
- `attractors`: spans of the words of the other class, which should not;
- `pattern`: the template of the line, or the kind of its source;
- `cluster`: what a bootstrap draws as a whole.

A span is a pair (start, end) of word positions, counted from 0, both included.

On disk a set is a folder in the three-file format of tarsius (Ding & Koehn 2021), one line of each
file a line of the set: `all.prefx.txt`, the words separated by a space; `all.tag.txt`, 0 or 1;
`all.subjs.txt`, cue spans and attractor spans as `[(1, 1)] ||| [(4, 5), (7, 7)]`.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError, check_choice
from ...core.files import read_table, save_parquet, write_atomic
from ...language.corpora import read_lines
from ...language.spans import Span, span_tokens
from ...language.visible import is_visible
from .naming import WHOLE

COLUMNS = ["prefix", "tag", "cues", "attractors", "pattern", "cluster"]
SIDES = ("cues", "attractors")
FILES = ("all.prefx.txt", "all.tag.txt", "all.subjs.txt")
# Files come from others: what is no list of pairs of numbers is refused before it is read.
SPANS = re.compile(r"\[(\(\d+, ?\d+\)(, ?\(\d+, ?\d+\))*)?\]")


def read_agreement(folder: Path | str) -> pd.DataFrame:
    """The agreement lines of a folder in the three-file format.

    Returns:
        All columns of a set. The files name no templates: pattern and cluster are the line's
        sentence frame (`frame_groups`), so a line whose frame is its own is a cluster by itself.

    Raises:
        TouchstoneError: with file and line, for an empty prefix or a word without width, files of
            different length, a tag that is not 0 or 1, spans that are not lists of pairs (they are
            matched, never evaluated), and spans that leave the prefix.
    """
    folder = Path(folder)
    # The source's own README calls the file of tags otherwise than its files are called.
    tags_name = "all.tags.txt" if (folder / "all.tags.txt").is_file() else FILES[1]
    names = (FILES[0], tags_name, FILES[2])
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise TouchstoneError(
            f"there is no file {folder / missing[0]}; a set needs {', '.join(FILES)}"
        )
    prefixes, tags, spans = (read_lines(folder / name) for name in names)
    if not len(prefixes) == len(tags) == len(spans):
        raise TouchstoneError(
            f"{folder}: {names[0]} has {len(prefixes)} lines, {names[1]} {len(tags)} and "
            f"{names[2]} {len(spans)}; they must be aligned line by line"
        )
    rows = []
    for i, (text, tag, line) in enumerate(zip(prefixes, tags, spans, strict=True), start=1):
        where = f"{folder / names[2]}, line {i}"
        cues, attractors = _parse_spans(line, where)
        words = text.split()
        if not all(map(is_visible, words)) or not words:
            raise TouchstoneError(
                f"{folder / names[0]}, line {i}: the prefix is empty, or a word of it has no "
                "width; correct or remove the line in all three files"
            )
        if tag.strip() not in ("0", "1"):
            raise TouchstoneError(
                f"{folder / tags_name}, line {i}: the tag is {tag.strip()!r}; write 0 or 1"
            )
        check_line(words, cues, attractors, where)
        rows.append((words, int(tag), cues, attractors))
    lines = pd.DataFrame(rows, columns=COLUMNS[:4])
    frames = frame_groups(lines)
    return lines.assign(pattern=frames, cluster=frames)


def write_agreement(rows: pd.DataFrame, folder: Path | str) -> None:
    """Write lines in the three-file format; reading them back gives the same prefix, tag, cues and
    attractors.
    """
    texts = (rows["prefix"].map(" ".join), rows["tag"].map(str), _span_lines(rows))
    for name, lines in zip(FILES, texts, strict=True):
        write_atomic(Path(folder) / name, "".join(f"{line}\n" for line in lines))


def save_sets(sets: Mapping[str, pd.DataFrame], path: Path | str) -> None:
    """Keep several sets in one Parquet file; `load_sets` gives them back."""
    none = pd.DataFrame(columns=["set", "prefix", "tag", "spans", "pattern", "cluster"])
    tables = [
        rows.assign(set=name, prefix=rows["prefix"].map(" ".join), spans=_span_lines(rows))
        for name, rows in sets.items()
    ]
    save_parquet(pd.concat(tables)[list(none)] if tables else none, path)


def load_sets(path: Path | str) -> dict[str, pd.DataFrame]:
    """The sets of a file that `save_sets` wrote, by name, in its order."""
    table = read_table(path)
    spans = [_parse_spans(text, f"{path}, row {i}") for i, text in enumerate(table["spans"])]
    table["prefix"] = table["prefix"].str.split(" ")
    table["cues"], table["attractors"] = ([pair[side] for pair in spans] for side in (0, 1))
    by_set = table.groupby("set", sort=False)
    return {str(name): rows[COLUMNS].reset_index(drop=True) for name, rows in by_set}


def check_line(
    prefix: Sequence[str], cues: Sequence[Span], attractors: Sequence[Span], where: str
) -> None:
    """Refuse an empty prefix, a side without spans, and a span that is reversed or too long.

    Raises:
        TouchstoneError: beginning with `where`, the place of the line.
    """
    if not prefix:
        raise TouchstoneError(
            f"{where}: the prefix is empty; remove the line, for nothing in it can be explained"
        )
    for side, spans in (("cue", cues), ("attractor", attractors)):
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
    """The lines with at most their last `longest` words.

    A line that loses all its cues or all its attractors is left out; the index stays.

    >>> line = ("a b c d".split(), 1, [(0, 1)], [(3, 3)], "p", "c")
    >>> last_words(pd.DataFrame([line], columns=COLUMNS), 3)[["prefix", "cues"]].values.tolist()
    [[['b', 'c', 'd'], [(0, 0)]]]
    """
    if longest < 1:
        raise TouchstoneError(f"longest_line is {longest}; keep at least one word")
    # A span that is cut through keeps what is left of it; one that ends before the cut is gone.
    n_cut = rows["prefix"].map(len).sub(longest).clip(lower=0)
    cut = rows.assign(prefix=[prefix[-longest:] for prefix in rows["prefix"]])
    for side in SIDES:
        cut[side] = [
            [(max(start - n, 0), end - n) for start, end in spans if end >= n]
            for spans, n in zip(rows[side], n_cut, strict=True)
        ]
    return cut[cut["cues"].map(bool) & cut["attractors"].map(bool)]


def shortened(
    sets: Mapping[str, pd.DataFrame], longest: int
) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """Sets of at most the last `longest` words of a line, and beside them what that takes away.

    Returns:
        The sets (`last_words`); and those of which a line is longer, uncut and named "<name>
        whole". There, first the lines stand that are left in the set, in its order, so that a line
        has one number in both; then those that lose all their cues or all their attractors.
    """
    cut = {name: last_words(rows, longest) for name, rows in sets.items()}
    whole = {
        name + WHOLE: pd.concat([rows.loc[cut[name].index], rows.drop(cut[name].index)])
        for name, rows in sets.items()
        if rows["prefix"].map(len).max() > longest
    }
    return _numbered(cut), _numbered(whole)


def _numbered(sets: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The sets with their lines counted from 0."""
    return {name: rows.reset_index(drop=True) for name, rows in sets.items()}


def random_baseline(rows: pd.DataFrame) -> np.ndarray:
    """Per line, the chance that random saliency passes the expected test: a cue scores highest.

    With independent scores it is the number of cue tokens that are no attractor tokens over the
    number of tokens of either kind (a token on both sides makes a tie, and the test asks for more
    than a tie).
    """
    # Sets, since mentions of a natural text may nest, and a token counts once.
    cues, attractors = ([set(span_tokens(spans)) for spans in rows[side]] for side in SIDES)
    return np.array([len(c - a) / len(c | a) for c, a in zip(cues, attractors, strict=True)])


def nearest_baseline(rows: pd.DataFrame, last: str = "ending") -> np.ndarray:
    """Per line, whether the last span is a cue.

    That is what a saliency passes that only grows towards the predicted word.

    Args:
        rows: agreement lines.
        last: "ending", of each side the span that ends last, or "listed", the one that its list
            names last, as the paper's Nearest. They differ where spans are listed out of order.
    """
    check_choice("last", last, ("ending", "listed"))
    cue_end, attractor_end = (
        np.array(
            [max(end for _, end in spans[-1 if last == "listed" else 0 :]) for spans in rows[side]]
        )
        for side in SIDES
    )
    return cue_end > attractor_end


def agreement_statistics(rows: pd.DataFrame) -> dict[str, float]:
    """What a set is like: lines, tags, lengths, spans, distinct prefixes, and the two baselines."""
    length = rows["prefix"].map(len)
    return {
        "lines": len(rows),
        "tag_0": int((rows["tag"] == 0).sum()),
        "tag_1": int((rows["tag"] == 1).sum()),
        "words_mean": length.mean(),
        "words_min": length.min(),
        "words_max": length.max(),
        "cue_spans": rows["cues"].map(len).mean(),
        "attractor_spans": rows["attractors"].map(len).mean(),
        "word_types": len({word for prefix in rows["prefix"] for word in prefix}),
        "repeated": int(rows["prefix"].map(tuple).duplicated().sum()),
        "random": random_baseline(rows).mean(),
        "nearest": nearest_baseline(rows).mean(),
    }


def frame_groups(rows: pd.DataFrame) -> list[str]:
    """The sentence frame of each line: cue and attractor words become slots.

    The order of the slots is part of the frame. These are the interpretation-preserving templates
    of the published gender set (283, of them 254 with two lines).
    """
    frames = []
    for line in rows.itertuples():
        slots = dict.fromkeys(span_tokens(line.attractors), "[attractor]")
        slots |= dict.fromkeys(span_tokens(line.cues), "[cue]")
        frames.append(" ".join(slots.get(i, word) for i, word in enumerate(line.prefix)))
    return frames


def _parse_spans(text: str, where: str) -> tuple[list[Span], list[Span]]:
    """Cue spans and attractor spans of a line.

    >>> _parse_spans("[(1, 1)] ||| [(4, 5), (7, 7)]", "line 1")
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


def _span_lines(rows: pd.DataFrame) -> list[str]:
    cues, attractors = (
        [", ".join(f"({start}, {end})" for start, end in spans) for spans in rows[side]]
        for side in SIDES
    )
    return [f"[{c}] ||| [{a}]" for c, a in zip(cues, attractors, strict=True)]
