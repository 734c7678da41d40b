"""Prefixes from slots: the synthetic number and gender sets of Ding & Koehn (2021), as agreement lines (lib.studies.lm_saliency.lines)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from lib.core.errors import TouchstoneError

NUMBERS = ("singular", "plural")


def plural(noun: str) -> str:
    """The regular plural of a noun, which is also the third person singular of a verb.

    >>> [plural(word) for word in ("author", "story", "key", "coach")]
    ['authors', 'stories', 'keys', 'coaches']
    """
    if re.search(r"(s|x|z|ch|sh)$", noun):
        return noun + "es"
    return noun[:-1] + "ies" if re.search(r"[^aeiou]y$", noun) else noun + "s"


def syneval_rows(material: Mapping[str, Any]) -> pd.DataFrame:
    """All 6280 lines of the synthetic number set, in the published order (Ding & Koehn, appendix A.2).

    `material`: words and sections as in material/syneval.yaml. Columns: prefix, tag (1 plural), cues, attractors,
    pattern (the section with the cue's number) and cluster (section and cue noun: what the bootstrap draws).
    """
    rows = [
        row
        for section in material["sections"]
        for tag in (1, 0)
        for row in _section_rows(section, material["words"], tag)
    ]
    return pd.DataFrame(rows)


def _section_rows(
    section: Mapping[str, str], words: Mapping[str, list[str]], tag: int
) -> Iterator[dict[str, Any]]:
    parts = re.findall(r"\{\w\}|\S+", section["pattern"])
    slots = [part[1] for part in parts if part[0] == "{"]
    for chosen in itertools.product(*(words[slot] for slot in slots)):
        prefix, spans, value = [], {}, dict(zip(slots, chosen, strict=True))
        for part in parts:
            slot = part[1] if part[0] == "{" else ""
            prefix += _inflect(slot, value[slot], section, tag).split() if slot else [part]
            spans |= {slot: (len(prefix) - 1, len(prefix) - 1)} if slot else {}
        nouns = [slot for slot in slots if slot in "SEIB"]
        name = f"{section['name']}_{NUMBERS[tag]}"
        yield {
            "prefix": prefix,
            "tag": tag,
            "cues": [spans[section["cue"]]],
            "attractors": [spans[slot] for slot in nouns if slot != section["cue"]],
            "pattern": name,
            "cluster": f"{name} {value[section['cue']]}",
        }


def _inflect(slot: str, word: str, section: Mapping[str, str], tag: int) -> str:
    if slot in "PQW":
        return word
    owner = section.get("verb_of", "") if slot == "V" else slot
    is_plural = tag if owner == section["cue"] else 1 - tag
    return (
        word + "s" if bool(is_plural) != (slot == "V") else word
    )  # a plural noun has the s, a singular verb has it


def winobias_rows(material: Mapping[str, Any], n_lines: int, seed: int) -> pd.DataFrame:
    """A gender set after Winobias: a woman and a man in a frame, `n_lines` lines, the woman first in half of them.

    Columns as in `syneval_rows`; tag is 1 (female) throughout, as in the paper, where either pronoun could follow.
    """
    rng, rows = np.random.default_rng(seed), []
    frames, used = material["frames"], set()
    room = 2 * len(frames) * len(material["female"]) * len(material["male"])
    if n_lines > room:
        raise TouchstoneError(
            f"{n_lines} different lines asked for, and the frames and nouns allow {room}; ask for fewer"
        )
    while len(rows) < n_lines:
        f, m = rng.integers(len(material["female"])), rng.integers(len(material["male"]))
        frame, first = rng.integers(len(frames)), int(len(rows) < n_lines / 2)
        if (f, m, frame, first) in used:
            continue
        used.add((f, m, frame, first))
        rows.append(
            winobias_row(frames[frame], material["female"][f], material["male"][m], bool(first))
        )
    return pd.DataFrame(rows)


def winobias_row(frame: str, woman: str, man: str, woman_first: bool) -> dict[str, Any]:
    """One line of the gender set; the frame holds {1} and {2}, and a noun may have one word only."""
    parts = frame.split()
    where = {
        slot: next((i for i, part in enumerate(parts) if slot in part), None)
        for slot in ("{1}", "{2}")
    }
    if None in where.values():
        raise TouchstoneError(
            f"the frame {frame!r} lacks {{1}} or {{2}}; write both, each as a word of its own"
        )
    female, male = ("{1}", "{2}") if woman_first else ("{2}", "{1}")
    parts[where[female]], parts[where[male]] = woman, man
    order = "female_first" if woman_first else "male_first"
    return {
        "prefix": parts,
        "tag": 1,
        "cues": [(where[female],) * 2],
        "attractors": [(where[male],) * 2],
        "pattern": f"{frame} {order}",
        "cluster": f"{frame} {order}",
    }
