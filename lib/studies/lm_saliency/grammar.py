"""A grammar that writes a small corpus with known number and gender agreement, and test lines that it does not hold.

A tagged sentence is a list of (word, Penn tag).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lib.studies.lm_saliency.templates import plural

Tagged = list[tuple[str, str]]
KINDS = {
    "plain": "N",
    "prep": "N P N",
    "subj_rel": "N that V N",
    "obj_rel": "N that N V",
    "obj_rel_no_comp": "N N V",
    "sent_comp": "N said N",
    "two_preps": "N P N P N",
    "prep_rel": "N P N that V N",
}
HELD_OUT_KINDS = ("two_preps", "prep_rel")
SHARES = {
    "plain": 0.13,
    "prep": 0.20,
    "subj_rel": 0.12,
    "obj_rel": 0.12,
    "obj_rel_no_comp": 0.10,
    "sent_comp": 0.03,
}


def past(verb: str) -> str:
    """The regular past of a verb.

    >>> [past(verb) for verb in ("admire", "carry", "enjoy", "push")]
    ['admired', 'carried', 'enjoyed', 'pushed']
    """
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if re.search(r"[^aeiou]y$", verb) else verb + "ed"


@dataclass(frozen=True)
class Lexicon:
    """The words of the corpus grammar; a word is the more frequent the earlier it stands in its list."""

    words: Mapping[str, tuple[str, ...]]

    def draw(self, kind: str, rng: np.random.Generator) -> str:
        """A word of a kind: the r-th of n with a weight of about 1 / (r + n / 20), a law like Zipf's."""
        words = self.words[kind]
        return words[int((len(words) / 20) * (21 ** rng.random() - 1))]


def read_lexicon(
    grammar: Mapping[str, Any], syneval: Mapping[str, Any], winobias: Mapping[str, Any], seed: int
) -> Lexicon:
    """The grammar's lists and, before them, the words that the synthetic sets use, so that those are frequent.

    The order within each of the two parts is drawn by `seed`.
    """
    rng, words = np.random.default_rng(seed), syneval["words"]
    first = {
        "people": words["S"] + words["E"] + words["B"],
        "things": words["I"],
        "verbs": words["V"],
        "female": winobias["female"],
        "male": winobias["male"],
    }
    lists = {
        name: value.split() if isinstance(value, str) else list(value)
        for name, value in grammar.items()
    }
    lists |= {
        "female": lists["female_nouns"],
        "male": lists["male_nouns"],
        "frames": list(winobias["frames"]),
    }
    found = {}
    for name, value in lists.items():
        known = rng.permutation(first.get(name, [])).tolist()
        rest = (
            rng.permutation(value).tolist() if len(value) > 15 else value
        )  # short lists keep their order
        found[name] = tuple(dict.fromkeys([*known, *rest]))
    return Lexicon(found)


def is_held_out(noun: str, verb: str) -> bool:
    """Whether a noun never stands as the subject of a verb in training: one pair in ten, fixed by a checksum."""
    return zlib.crc32(f"{noun} {verb}".encode()) % 10 == 0


@dataclass(frozen=True)
class Sentence:
    """A sentence of the grammar: tagged words, where the word that agrees stands, its class, and what it agrees with."""

    tokens: Tagged
    place: int
    tag: int
    partner: str


def number_sentence(
    lexicon: Lexicon, kind: str, rng: np.random.Generator, held_out: bool
) -> Sentence:
    """A sentence of a construction (a key of KINDS) whose main verb agrees with one of its nouns.

    `held_out` says whether this noun and verb are a pair that is kept from training.
    """
    slots = KINDS[kind].split()
    nouns = [i for i, slot in enumerate(slots) if slot == "N"]
    head = nouns[-1] if kind == "sent_comp" else nouns[0]  # the noun that the main verb agrees with
    numbers = {i: int(rng.random() < 0.5) for i in nouns}
    chosen = {i: lexicon.draw("people" if rng.random() < 0.7 else "things", rng) for i in nouns}
    tokens: Tagged = []
    for i, slot in enumerate(slots):
        owner = max((j for j in nouns if j <= i), default=0)
        tokens += _slot(lexicon, slot, numbers[owner], chosen[owner], rng)
    tokens += [(lexicon.draw("adverbs", rng), "RB")] if rng.random() < 0.25 else []
    verb = _pair_verb(lexicon, chosen[head], rng, held_out)
    return Sentence(
        tokens + _predicate(lexicon, verb, numbers[head], rng),
        len(tokens),
        numbers[head],
        chosen[head],
    )


def _slot(lexicon: Lexicon, slot: str, number: int, noun: str, rng: np.random.Generator) -> Tagged:
    if slot == "N":
        adjective = [(lexicon.draw("adjectives", rng), "JJ")] if rng.random() < 0.15 else []
        telling = (
            ("plural_determiners" if number else "singular_determiners")
            if rng.random() < 0.5
            else "determiners"
        )
        return [(lexicon.draw(telling, rng), "DT"), *adjective, *_noun(noun, number)]
    if slot == "P":
        return [(word, "IN") for word in lexicon.draw("prepositions", rng).split()]
    if slot == "V":
        return [_verb(lexicon.draw("verbs", rng), number)]
    return [(lexicon.draw("speech", rng), "VBD") if slot == "said" else (slot, "WDT")]


def _noun(noun: str, number: int) -> Tagged:
    *before, last = noun.split()
    return [*((word, "NN") for word in before), (plural(last), "NNS") if number else (last, "NN")]


def _verb(verb: str, number: int) -> tuple[str, str]:
    return (verb, "VBP") if number else (plural(verb), "VBZ")


def _pair_verb(lexicon: Lexicon, noun: str, rng: np.random.Generator, held_out: bool) -> str:
    while is_held_out(noun, verb := lexicon.draw("verbs", rng)) != held_out:
        pass
    return verb


def _predicate(lexicon: Lexicon, verb: str, number: int, rng: np.random.Generator) -> Tagged:
    form = rng.choice(["verb", "is", "was", "past"], p=[0.25, 0.35, 0.25, 0.15])
    if form in ("is", "was"):
        word = {"is": (("is", "VBZ"), ("are", "VBP")), "was": (("was", "VBD"), ("were", "VBD"))}[
            form
        ][number]
        return [word, (lexicon.draw("adjectives", rng), "JJ"), (".", ".")]
    said = _verb(verb, number) if form == "verb" else (past(verb), "VBD")
    thing = _slot(lexicon, "N", int(rng.random() < 0.5), lexicon.draw("things", rng), rng)
    return [said, *thing, (".", ".")]


def gender_sentence(lexicon: Lexicon, rng: np.random.Generator, both: bool = False) -> Sentence:
    """A sentence with one person of known gender, or with `both` a woman and a man, and then a pronoun.

    Where both are there the pronoun means the first of them four times in five.
    """
    gender = int(rng.random() < 0.5)
    people = [
        _person(lexicon, gender, rng),
        _person(lexicon, 1 - gender, rng) if both else _neutral(lexicon, rng),
    ]
    means = int(both and rng.random() < 0.2)
    if not both and rng.random() < 0.5:
        people.reverse()
    tokens = (
        _frame(lexicon, people, rng)
        if not both and rng.random() < 0.25
        else _meeting(lexicon, people, rng)
    )
    thing = _slot(lexicon, "N", int(rng.random() < 0.5), lexicon.draw("things", rng), rng)
    tag = 1 - gender if means else gender
    end = [
        ("she" if tag else "he", "PRP"),
        (past(lexicon.draw("verbs", rng)), "VBD"),
        *thing,
        (".", "."),
    ]
    return Sentence([*tokens, *end], len(tokens), tag, f"{people[0][-1][0]} {people[1][-1][0]}")


def _meeting(lexicon: Lexicon, people: Sequence[Tagged], rng: np.random.Generator) -> Tagged:
    conjunction = [(word, "IN") for word in lexicon.draw("connectives", rng).split()]
    return [*people[0], (past(lexicon.draw("verbs", rng)), "VBD"), *people[1], *conjunction]


def _person(lexicon: Lexicon, gender: int, rng: np.random.Generator) -> Tagged:
    name = ("male", "female")[gender]
    if rng.random() < 0.3:
        return [(lexicon.draw(f"{name}_names", rng), "NNP")]
    return [("the", "DT"), (lexicon.draw(name, rng), "NN")]


def _neutral(lexicon: Lexicon, rng: np.random.Generator) -> Tagged:
    return [("the", "DT"), *_noun(lexicon.draw("people", rng), 0)]


def _frame(lexicon: Lexicon, people: Sequence[Tagged], rng: np.random.Generator) -> Tagged:
    parts = (
        lexicon.draw("frames", rng)
        .lower()
        .replace("the {1}", "{1}")
        .replace("the {2}", "{2}")
        .split()
    )
    filled: Tagged = []
    for part in parts:
        filled += people[0] if part == "{1}" else people[1] if part == "{2}" else [(part, "XX")]
    return filled


def corpus_sentences(lexicon: Lexicon, n_sentences: int, seed: int) -> list[Tagged]:
    """The corpus for training: constructions by SHARES, the rest about gender; nothing that is held out is in it."""
    rng, found = np.random.default_rng(seed), []
    kinds = [*SHARES, "gender"]
    shares = [*SHARES.values(), 1 - sum(SHARES.values())]
    for kind in rng.choice(kinds, size=n_sentences, p=shares):
        sentence = (
            gender_sentence(lexicon, rng, both=rng.random() < 0.5) if kind == "gender" else None
        )
        while sentence is not None and is_held_out(*sentence.partner.split()):
            sentence = gender_sentence(lexicon, rng, both=True)
        found.append((sentence or number_sentence(lexicon, str(kind), rng, held_out=False)).tokens)
    return found


def held_out_rows(lexicon: Lexicon, task: str, n_lines: int, seed: int) -> pd.DataFrame:
    """Agreement lines that the corpus does not hold: new pairs of words, and for number new constructions as well.

    `task`: "number" or "gender". Cues are all nouns of the predicted word's class in the prefix, attractors all of the
    other class; sentences without both are passed over.
    """
    rng, rows, seen = np.random.default_rng([seed, 1]), [], set()
    kinds = [kind for kind in KINDS if kind not in ("plain", "sent_comp")]
    while len(rows) < n_lines:
        kind = "gender" if task == "gender" else kinds[len(rows) % len(kinds)]
        sentence = (
            gender_sentence(lexicon, rng, both=True)
            if task == "gender"
            else number_sentence(lexicon, kind, rng, held_out=kind not in HELD_OUT_KINDS)
        )
        prefix = tuple(word for word, _ in sentence.tokens[: sentence.place])
        sides = _sides_of(lexicon, task, sentence)
        new_pair = task == "number" or is_held_out(*sentence.partner.split())
        if all(sides) and new_pair and prefix not in seen:
            seen.add(prefix)
            rows.append(
                {
                    "prefix": list(prefix),
                    "tag": sentence.tag,
                    "cues": sides[0],
                    "attractors": sides[1],
                    "pattern": kind,
                    "cluster": f"{kind} {sentence.partner}",
                }
            )
    return pd.DataFrame(rows)


def _sides_of(
    lexicon: Lexicon, task: str, sentence: Sentence
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    before = sentence.tokens[: sentence.place]
    if task == "number":
        classes = [{"NN": 0, "NNS": 1}.get(tag) for _, tag in before]
    else:
        genders = {
            word: g
            for g, name in enumerate(("male", "female"))
            for word in lexicon.words[name] + lexicon.words[f"{name}_names"]
        }
        classes = [genders.get(word) for word, _ in before]
    return (
        [(i, i) for i, c in enumerate(classes) if c == sentence.tag],
        [(i, i) for i, c in enumerate(classes) if c == 1 - sentence.tag],
    )
