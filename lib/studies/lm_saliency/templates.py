"""The synthetic number and gender sets of Ding & Koehn (2021), written from patterns with slots.

Both are tables of agreement lines (`lib.studies.lm_saliency.lines`).
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError


def with_s(word: str) -> str:
    """The regular plural of a noun, which is also the third person singular of a verb.

    >>> [with_s(word) for word in ("author", "story", "key", "coach")]
    ['authors', 'stories', 'keys', 'coaches']
    """
    if re.search(r"(s|x|z|ch|sh)$", word):
        return word + "es"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def syneval_rows(material: Mapping[str, Any]) -> pd.DataFrame:
    """All 6280 lines of the synthetic number set, in the published order (appendix A.2).

    Args:
        material: `words` by slot and `sections`, as in `material/syneval.yaml`.

    Returns:
        Agreement lines; `pattern` is the section with the cue's number, `cluster` section and cue
        noun.
    """
    return pd.DataFrame(
        line
        for section in material["sections"]
        for tag in (1, 0)
        for line in _section_lines(section, material["words"], tag)
    )


def _section_lines(
    section: Mapping[str, str], words: Mapping[str, list[str]], tag: int
) -> Iterator[dict[str, Any]]:
    parts = re.findall(r"\{\w\}|\S+", section["pattern"])
    slots = [part[1] for part in parts if part[0] == "{"]
    name = f"{section['name']}_{'plural' if tag else 'singular'}"
    for fillers in itertools.product(*(words[slot] for slot in slots)):
        filler = dict(zip(slots, fillers, strict=True))
        prefix, spans = [], {}
        for part in parts:
            if part[0] == "{":
                prefix += _inflect(part[1], filler[part[1]], section, tag).split()
                # of two words ("taxi drivers") the second is the one that is inflected
                spans[part[1]] = (len(prefix) - 1, len(prefix) - 1)
            else:
                prefix.append(part)
        yield {
            "prefix": prefix,
            "tag": tag,
            "cues": [spans[section["cue"]]],
            "attractors": [spans[s] for s in slots if s in "SEIB" and s != section["cue"]],
            "pattern": name,
            "cluster": f"{name} {filler[section['cue']]}",
        }


def _inflect(slot: str, word: str, section: Mapping[str, str], tag: int) -> str:
    """A word in the number of its slot: a plural noun has an s, and so has a singular verb (V)."""
    if slot in "PQW":
        return word
    noun = section.get("verb_of", "") if slot == "V" else slot
    is_plural = bool(tag if noun == section["cue"] else 1 - tag)
    return word + "s" if is_plural != (slot == "V") else word


def winobias_rows(material: Mapping[str, Any], n_lines: int, seed: int) -> pd.DataFrame:
    """A gender set after Winobias: a woman and a man in a frame, the woman first in half of them.

    Args:
        material: `frames` with slots {1} and {2}, `female` and `male` nouns.
        n_lines: how many different lines.
        seed: of the draws.

    Returns:
        Agreement lines; `tag` is 1 (female) throughout, as in the paper, where either pronoun
        could follow.

    Raises:
        TouchstoneError: frames and nouns do not give that many lines.
    """
    rng, used = np.random.default_rng(seed), set()
    rows: list[dict[str, Any]] = []
    frames, women, men = (material[name] for name in ("frames", "female", "male"))
    n_possible = 2 * len(frames) * len(women) * len(men)
    if n_lines > n_possible:
        raise TouchstoneError(
            f"{n_lines} different lines asked for, and the frames and nouns allow {n_possible}; "
            "ask for fewer"
        )
    while len(rows) < n_lines:
        woman, man, frame = (rng.integers(len(choices)) for choices in (women, men, frames))
        woman_first = len(rows) < n_lines / 2
        if (woman, man, frame, woman_first) not in used:
            used.add((woman, man, frame, woman_first))
            rows.append(winobias_row(frames[frame], women[woman], men[man], woman_first))
    return pd.DataFrame(rows)


def winobias_row(frame: str, woman: str, man: str, woman_first: bool) -> dict[str, Any]:
    """One line of the gender set.

    Args:
        frame: words with the slots {1} and {2}, each in a word of its own.
        woman: a noun of one word, the cue.
        man: a noun of one word, the attractor.
        woman_first: whether the woman takes slot {1}.

    >>> winobias_row("The {1} met the {2} because", "aunt", "monk", False)["prefix"]
    ['The', 'monk', 'met', 'the', 'aunt', 'because']
    """
    words = frame.split()
    places = [i for slot in ("{1}", "{2}") for i, word in enumerate(words) if slot in word]
    if len(places) != 2:
        raise TouchstoneError(
            f"the frame {frame!r} lacks {{1}} or {{2}}, or has one twice; write each once, as a "
            "word of its own"
        )
    cue, attractor = places if woman_first else places[::-1]
    words[cue], words[attractor] = woman, man
    template = f"{frame} {'female_first' if woman_first else 'male_first'}"
    return {
        "prefix": words,
        "tag": 1,
        "cues": [(cue, cue)],
        "attractors": [(attractor, attractor)],
        "pattern": template,
        "cluster": template,
    }
