"""The rules of the grammar, and that its test lines are not in its corpus."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import yaml

from lib.core.paths import material
from lib.studies.lm_saliency.grammar import (
    HELD_OUT_KINDS,
    KINDS,
    corpus_sentences,
    gender_sentence,
    grammar_words,
    held_out_rows,
    is_held_out,
    number_sentence,
    with_ed,
)
from lib.studies.lm_saliency.lines import random_baseline
from lib.studies.lm_saliency.templates import with_s


@cache
def lists():
    tables = (
        yaml.safe_load((material("lm_saliency") / f"{name}.yaml").read_text())
        for name in ("grammar", "syneval", "winobias")
    )
    return grammar_words(*tables, seed=0)


def test_regular_forms() -> None:
    assert [with_s(w) for w in ("box", "day", "city", "radio", "bush")] == [
        "boxes",
        "days",
        "cities",
        "radios",
        "bushes",
    ]
    assert [with_ed(w) for w in ("love", "obey", "deny", "film")] == [
        "loved",
        "obeyed",
        "denied",
        "filmed",
    ]


def test_the_words_of_the_grammar_are_regular() -> None:
    vowels = "aeiou"
    doubled = [
        v
        for v in lists()["verbs"]
        if len(v) == 3 and v[-1] not in vowels + "xywh" and v[-2] in vowels and v[-3] not in vowels
    ]
    assert not doubled, "these would double their last letter"
    odd = [
        n
        for n in (*lists()["people"], *lists()["things"])
        if n.endswith(("man", "fe", "lf", "ief"))
    ]
    assert not odd, "these have irregular plurals"


@pytest.mark.parametrize("kind", KINDS)
def test_the_main_verb_agrees_with_its_noun(kind) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        sentence = number_sentence(lists(), kind, rng, held_out=False)
        word, tag = sentence.tokens[sentence.place]
        number = {"VBZ": 0, "VBP": 1}.get(tag, {"was": 0, "were": 1}.get(word, sentence.tag))
        assert number == sentence.tag
        nouns = [w for w, t in sentence.tokens[: sentence.place] if t in ("NN", "NNS")]
        assert any(
            w in (sentence.partner.split()[-1], with_s(sentence.partner.split()[-1])) for w in nouns
        )


def test_the_corpus_is_large_enough_and_holds_nothing_that_is_held_out() -> None:
    corpus = corpus_sentences(lists(), 12_000, seed=0)
    assert len({word for sentence in corpus for word, _ in sentence}) >= 2000
    lines = [" ".join(word for word, _ in sentence) for sentence in corpus]
    test = pd_prefixes()
    assert not [p for p in test if any(line.startswith(p + " ") for line in lines)]
    nested = [
        s for s in corpus if sum(t in ("IN", "WDT") for _, t in s) or _two_nouns_before_verb(s)
    ]
    assert len(nested) >= len(corpus) / 2


def pd_prefixes() -> list[str]:
    rows = held_out_rows(lists(), "number", 60, seed=0)
    assert set(HELD_OUT_KINDS) <= set(rows["pattern"])
    return [
        " ".join(p) for p, kind in zip(rows["prefix"], rows["pattern"]) if kind in HELD_OUT_KINDS
    ]


def _two_nouns_before_verb(sentence) -> bool:
    first = next((i for i, (_, t) in enumerate(sentence) if t.startswith("VB")), len(sentence))
    return sum(t in ("NN", "NNS") for _, t in sentence[:first]) > 1


def test_held_out_lines_are_tests() -> None:
    for task in ("number", "gender"):
        rows = held_out_rows(lists(), task, 80, seed=0)
        assert (random_baseline(rows) > 0).all() and (random_baseline(rows) < 1).all()
        assert 0.3 < rows["tag"].mean() < 0.7


def test_pronouns_follow_their_person() -> None:
    rng = np.random.default_rng(0)
    women = set(lists()["female"]) | set(lists()["female_names"])
    for _ in range(100):
        sentence = gender_sentence(lists(), rng)
        assert (sentence.tokens[sentence.place][0] == "she") == bool(
            women & {w for w, _ in sentence.tokens}
        )


def test_one_pair_in_ten_is_held_out() -> None:
    pairs = [is_held_out(n, v) for n in lists()["people"][:60] for v in lists()["verbs"][:60]]
    assert 0.08 < np.mean(pairs) < 0.12
