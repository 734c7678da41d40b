"""A grammar that writes a small corpus with known number and gender agreement, and test lines that
the corpus does not hold.

A tagged sentence is a list of (word, Penn tag). Which construction, word and number come next is
drawn; the order of the draws is part of the corpus.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...language.corpora import Tagged
from .lines import COLUMNS, Span
from .templates import with_s

KINDS = {  # N: a noun phrase, P: a preposition, V: a verb, anything else: the word itself
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
_SHARES = {  # of the corpus; the rest is about gender
    "plain": 0.13,
    "prep": 0.20,
    "subj_rel": 0.12,
    "obj_rel": 0.12,
    "obj_rel_no_comp": 0.10,
    "sent_comp": 0.03,
}
WordLists = Mapping[
    str, Sequence[str]
]  # by kind; the earlier a word stands the more frequent it is
_BE = {"is": (("is", "VBZ"), ("are", "VBP")), "was": (("was", "VBD"), ("were", "VBD"))}


def with_ed(verb: str) -> str:
    """The regular past of a verb.

    >>> [with_ed(verb) for verb in ("admire", "carry", "enjoy", "push")]
    ['admired', 'carried', 'enjoyed', 'pushed']
    """
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if re.search(r"[^aeiou]y$", verb) else verb + "ed"


def grammar_words(
    grammar: Mapping[str, Any], syneval: Mapping[str, Any], winobias: Mapping[str, Any], seed: int
) -> WordLists:
    """The words of the grammar by kind, the more frequent the earlier they stand.

    The words that the synthetic sets use come before those of the grammar's own lists, so that
    they are frequent. The order within each of the two parts is drawn by `seed`. The three tables
    are those of `material/grammar.yaml`, `syneval.yaml` and `winobias.yaml`.
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
    ordered = {}
    for name, value in lists.items():
        known = rng.permutation(first.get(name, [])).tolist()
        if len(value) > 15:  # short lists keep their order
            value = rng.permutation(value).tolist()
        ordered[name] = tuple(dict.fromkeys([*known, *value]))
    return ordered


def is_held_out(noun: str, verb: str) -> bool:
    """Whether a noun is never the subject of a verb in training: one pair in ten, by a checksum."""
    return zlib.crc32(f"{noun} {verb}".encode()) % 10 == 0


@dataclass(frozen=True)
class AgreementSentence:
    """A sentence of the grammar.

    `tokens`: its tagged words; `place`: the position of the word that agrees; `tag`: its class (1
    plural or female); `partner`: the noun, or the two people, that it depends on.
    """

    tokens: Tagged
    place: int
    tag: int
    partner: str


def number_sentence(
    lists: WordLists, kind: str, rng: np.random.Generator, held_out: bool
) -> AgreementSentence:
    """A sentence of a construction whose main verb agrees with one of its nouns.

    Args:
        lists: the words.
        kind: the construction, a key of KINDS.
        rng: draws numbers and words.
        held_out: whether this noun and verb are a pair that is kept from training.
    """
    slots = KINDS[kind].split()
    nouns = [i for i, slot in enumerate(slots) if slot == "N"]
    subject = nouns[-1] if kind == "sent_comp" else nouns[0]
    numbers = {i: int(rng.random() < 0.5) for i in nouns}
    chosen = {i: _draw(lists, "people" if rng.random() < 0.7 else "things", rng) for i in nouns}
    tokens: Tagged = []
    for i, slot in enumerate(slots):
        noun = max((j for j in nouns if j <= i), default=0)
        tokens += _slot(lists, slot, numbers[noun], chosen[noun], rng)
    tokens += [(_draw(lists, "adverbs", rng), "RB")] if rng.random() < 0.25 else []
    verb = _draw(lists, "verbs", rng)
    # The noun is fixed by now, so the verb is drawn until the pair is of the wanted kind.
    while is_held_out(chosen[subject], verb) != held_out:
        verb = _draw(lists, "verbs", rng)
    return AgreementSentence(
        tokens + _predicate(lists, verb, numbers[subject], rng),
        place=len(tokens),
        tag=numbers[subject],
        partner=chosen[subject],
    )


def gender_sentence(
    lists: WordLists, rng: np.random.Generator, both: bool = False
) -> AgreementSentence:
    """A sentence with one person of known gender, or with `both` a woman and a man, then a pronoun.

    Where both are there the pronoun means the first of them four times in five.
    """
    gender = int(rng.random() < 0.5)
    people = [
        _person(lists, gender, rng),
        _person(lists, 1 - gender, rng)
        if both
        else [("the", "DT"), *_noun(_draw(lists, "people", rng), 0)],
    ]
    means_second = both and rng.random() < 0.2
    if not both and rng.random() < 0.5:
        people.reverse()
    clause = _frame if not both and rng.random() < 0.25 else _meeting
    tokens = clause(lists, people, rng)
    thing = _thing(lists, rng)
    tag = 1 - gender if means_second else gender
    verb = (with_ed(_draw(lists, "verbs", rng)), "VBD")
    end = [("she" if tag else "he", "PRP"), verb, *thing, (".", ".")]
    return AgreementSentence(
        [*tokens, *end], len(tokens), tag, f"{people[0][-1][0]} {people[1][-1][0]}"
    )


def corpus_sentences(lists: WordLists, n_sentences: int, seed: int) -> list[Tagged]:
    """The corpus for training: constructions by _SHARES, and nothing that is held out."""
    rng, sentences = np.random.default_rng(seed), []
    kinds, shares = [*_SHARES, "gender"], [*_SHARES.values(), 1 - sum(_SHARES.values())]
    for kind in rng.choice(kinds, size=n_sentences, p=shares):
        if kind == "gender":
            sentence = gender_sentence(lists, rng, both=rng.random() < 0.5)
            while is_held_out(*sentence.partner.split()):
                sentence = gender_sentence(lists, rng, both=True)
        else:
            sentence = number_sentence(lists, str(kind), rng, held_out=False)
        sentences.append(sentence.tokens)
    return sentences


def held_out_rows(lists: WordLists, task: str, n_lines: int, seed: int) -> pd.DataFrame:
    """Agreement lines that the corpus does not hold.

    They have new pairs of words and, for number, new constructions as well. Cues are all nouns of
    the predicted word's class in the prefix, attractors all of the other class; sentences without
    both are passed over.

    Args:
        lists: the words of the corpus.
        task: "number" or "gender".
        n_lines: how many different lines.
        seed: of the draws.
    """
    # Not the stream of the corpus, which has the same seed.
    rng, seen = np.random.default_rng([seed, 1]), set()
    rows: list[tuple[Any, ...]] = []
    kinds = [kind for kind in KINDS if kind not in ("plain", "sent_comp")]
    while len(rows) < n_lines:
        if task == "gender":
            kind, sentence = "gender", gender_sentence(lists, rng, both=True)
        else:
            kind = kinds[len(rows) % len(kinds)]
            sentence = number_sentence(lists, kind, rng, held_out=kind not in HELD_OUT_KINDS)
        prefix = tuple(word for word, _ in sentence.tokens[: sentence.place])
        cues, attractors = _sides(lists, task, sentence)
        is_new_pair = task == "number" or is_held_out(*sentence.partner.split())
        if cues and attractors and is_new_pair and prefix not in seen:
            seen.add(prefix)
            rows.append(
                (list(prefix), sentence.tag, cues, attractors, kind, f"{kind} {sentence.partner}")
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def _draw(lists: WordLists, kind: str, rng: np.random.Generator) -> str:
    """The r-th of n words has a weight of about 1 / (r + n / 20), a law like Zipf's."""
    words = lists[kind]
    return words[int((len(words) / 20) * (21 ** rng.random() - 1))]


def _slot(lists: WordLists, slot: str, number: int, noun: str, rng: np.random.Generator) -> Tagged:
    """The words of a slot of KINDS; `noun` and `number` are those of its noun phrase."""
    if slot == "N":
        adjective = [(_draw(lists, "adjectives", rng), "JJ")] if rng.random() < 0.15 else []
        telling = ("singular_determiners", "plural_determiners")[number]
        determiners = telling if rng.random() < 0.5 else "determiners"
        return [(_draw(lists, determiners, rng), "DT"), *adjective, *_noun(noun, number)]
    if slot == "P":
        return [(word, "IN") for word in _draw(lists, "prepositions", rng).split()]
    if slot == "V":
        return [_verb(_draw(lists, "verbs", rng), number)]
    return [(_draw(lists, "speech", rng), "VBD") if slot == "said" else (slot, "WDT")]


def _thing(lists: WordLists, rng: np.random.Generator) -> Tagged:
    number = int(rng.random() < 0.5)
    return _slot(lists, "N", number, _draw(lists, "things", rng), rng)


def _noun(noun: str, number: int) -> Tagged:
    *before, last = noun.split()
    return [*((word, "NN") for word in before), (with_s(last), "NNS") if number else (last, "NN")]


def _verb(verb: str, number: int) -> tuple[str, str]:
    return (verb, "VBP") if number else (with_s(verb), "VBZ")


def _predicate(lists: WordLists, verb: str, number: int, rng: np.random.Generator) -> Tagged:
    form = rng.choice(["verb", "is", "was", "past"], p=[0.25, 0.35, 0.25, 0.15])
    if form in _BE:
        return [_BE[form][number], (_draw(lists, "adjectives", rng), "JJ"), (".", ".")]
    finite = _verb(verb, number) if form == "verb" else (with_ed(verb), "VBD")
    return [finite, *_thing(lists, rng), (".", ".")]


def _person(lists: WordLists, gender: int, rng: np.random.Generator) -> Tagged:
    kind = ("male", "female")[gender]
    if rng.random() < 0.3:
        return [(_draw(lists, f"{kind}_names", rng), "NNP")]
    return [("the", "DT"), (_draw(lists, kind, rng), "NN")]


def _meeting(lists: WordLists, people: Sequence[Tagged], rng: np.random.Generator) -> Tagged:
    """`the king met the guest because`."""
    conjunction = [(word, "IN") for word in _draw(lists, "connectives", rng).split()]
    verb = (with_ed(_draw(lists, "verbs", rng)), "VBD")
    return [*people[0], verb, *people[1], *conjunction]


def _frame(lists: WordLists, people: Sequence[Tagged], rng: np.random.Generator) -> Tagged:
    """A frame of the gender set with the two people in its slots."""
    slots = {"{1}": people[0], "{2}": people[1]}
    frame = _draw(lists, "frames", rng).lower()
    words = frame.replace("the {1}", "{1}").replace("the {2}", "{2}").split()
    return [token for word in words for token in slots.get(word, [(word, "XX")])]


def _sides(
    lists: WordLists, task: str, sentence: AgreementSentence
) -> tuple[list[Span], list[Span]]:
    """Cues and attractors: the nouns before the place whose class is, or is not, the sentence's."""
    before = sentence.tokens[: sentence.place]
    if task == "number":
        classes = [{"NN": 0, "NNS": 1}.get(tag) for _, tag in before]
    else:
        genders = {
            word: gender
            for gender, kind in enumerate(("male", "female"))
            for word in (*lists[kind], *lists[f"{kind}_names"])
        }
        classes = [genders.get(word) for word, _ in before]
    cues, attractors = (
        [(i, i) for i, c in enumerate(classes) if c == tag]
        for tag in (sentence.tag, 1 - sentence.tag)
    )
    return cues, attractors
