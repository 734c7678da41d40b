"""The synthetic sets against the published files, and the rules of the grammar."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
import yaml

from lib.core.errors import TouchstoneError
from lib.core.paths import data_root, material
from lib.studies.lm_saliency.grammar import (
    HELD_OUT_KINDS,
    KINDS,
    corpus_sentences,
    gender_sentence,
    held_out_rows,
    is_held_out,
    number_sentence,
    past,
    read_lexicon,
)
from lib.studies.lm_saliency.lines import (
    frame_groups,
    nearest_baseline,
    random_baseline,
    read_agreement,
)
from lib.studies.lm_saliency.templates import plural, syneval_rows, winobias_row, winobias_rows

HERE = material("lm_saliency")


@cache
def words(name: str):
    return yaml.safe_load((HERE / f"{name}.yaml").read_text())


@cache
def lexicon():
    return read_lexicon(words("grammar"), words("syneval"), words("winobias"), seed=0)


@pytest.fixture
def published():
    root = data_root()
    if root is None or not (root / "tarsius").is_dir():
        pytest.skip(
            "needs the published prefixes: set TOUCHSTONE_DATA to a folder that holds tarsius/"
        )
    return root / "tarsius"


def test_syneval_is_the_published_file_line_by_line(published) -> None:
    theirs, ours = read_agreement(published / "Syneval"), syneval_rows(words("syneval"))
    assert len(ours) == 6280
    for column in ("prefix", "tag", "cues", "attractors"):
        assert list(ours[column]) == list(theirs[column]), column


def test_the_published_gender_set_has_the_groups_of_the_paper(published) -> None:
    sizes = Counter(frame_groups(read_agreement(published / "Winobias")))
    assert len(sizes) == 283 and sum(size > 1 for size in sizes.values()) == 254


def test_syneval_has_24_sections_and_the_printed_baselines() -> None:
    rows = syneval_rows(words("syneval"))
    assert rows["pattern"].nunique() == 24 and list(rows["tag"].value_counts()) == [3140, 3140]
    assert random_baseline(rows).mean() == 0.5 and round(nearest_baseline(rows).mean(), 3) == 0.140
    assert rows["prefix"].map(tuple).is_unique


def test_a_two_word_noun_is_inflected_at_its_end_and_spanned_by_its_second_word() -> None:
    rows = syneval_rows(words("syneval"))
    row = next(
        row
        for row in rows.itertuples()
        if "drivers" in row.prefix and row.pattern.startswith("obj_rel_across")
    )
    assert " ".join(row.prefix) == "the author that the taxi drivers like" and row.attractors == [
        (5, 5)
    ]


def test_the_gender_set_has_one_of_each_and_is_balanced_in_order() -> None:
    rows = winobias_rows(words("winobias"), 200, seed=3)
    assert rows["prefix"].map(tuple).is_unique and set(rows["tag"]) == {1}
    assert nearest_baseline(rows).mean() == 0.5
    for row in rows.itertuples():
        assert row.prefix[row.cues[0][0]] in words("winobias")["female"]
        assert row.prefix[row.attractors[0][0]] in words("winobias")["male"]
    assert rows.equals(winobias_rows(words("winobias"), 200, seed=3))


def test_a_frame_without_a_slot_and_too_many_lines_are_refused() -> None:
    with pytest.raises(TouchstoneError, match="lacks"):
        winobias_row("The {1} slept because", "aunt", "uncle", True)
    few = {"frames": ["The {1} met the {2} and"], "female": ["aunt"], "male": ["uncle"]}
    with pytest.raises(TouchstoneError, match="allow 2"):
        winobias_rows(few, 3, seed=0)


def test_regular_forms() -> None:
    assert [plural(w) for w in ("box", "day", "city", "radio", "bush")] == [
        "boxes",
        "days",
        "cities",
        "radios",
        "bushes",
    ]
    assert [past(w) for w in ("love", "obey", "deny", "film")] == [
        "loved",
        "obeyed",
        "denied",
        "filmed",
    ]


def test_the_words_of_the_grammar_are_regular() -> None:
    vowels = "aeiou"
    doubled = [
        v
        for v in lexicon().words["verbs"]
        if len(v) == 3 and v[-1] not in vowels + "xywh" and v[-2] in vowels and v[-3] not in vowels
    ]
    assert not doubled, "these would double their last letter"
    odd = [
        n
        for n in (*lexicon().words["people"], *lexicon().words["things"])
        if n.endswith(("man", "fe", "lf", "ief"))
    ]
    assert not odd, "these have irregular plurals"


@pytest.mark.parametrize("kind", KINDS)
def test_the_main_verb_agrees_with_its_noun(kind) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        sentence = number_sentence(lexicon(), kind, rng, held_out=False)
        word, tag = sentence.tokens[sentence.place]
        number = {"VBZ": 0, "VBP": 1}.get(tag, {"was": 0, "were": 1}.get(word, sentence.tag))
        assert number == sentence.tag
        nouns = [w for w, t in sentence.tokens[: sentence.place] if t in ("NN", "NNS")]
        assert any(
            w in (sentence.partner.split()[-1], plural(sentence.partner.split()[-1])) for w in nouns
        )


def test_the_corpus_is_large_enough_and_holds_nothing_that_is_held_out() -> None:
    corpus = corpus_sentences(lexicon(), 12_000, seed=0)
    assert len({word for sentence in corpus for word, _ in sentence}) >= 2000
    lines = [" ".join(word for word, _ in sentence) for sentence in corpus]
    test = pd_prefixes()
    assert not [p for p in test if any(line.startswith(p + " ") for line in lines)]
    nested = [
        s for s in corpus if sum(t in ("IN", "WDT") for _, t in s) or _two_nouns_before_verb(s)
    ]
    assert len(nested) >= len(corpus) / 2


def pd_prefixes() -> list[str]:
    rows = held_out_rows(lexicon(), "number", 60, seed=0)
    assert set(HELD_OUT_KINDS) <= set(rows["pattern"])
    return [
        " ".join(p) for p, kind in zip(rows["prefix"], rows["pattern"]) if kind in HELD_OUT_KINDS
    ]


def _two_nouns_before_verb(sentence) -> bool:
    first = next((i for i, (_, t) in enumerate(sentence) if t.startswith("VB")), len(sentence))
    return sum(t in ("NN", "NNS") for _, t in sentence[:first]) > 1


def test_held_out_lines_are_tests() -> None:
    for task in ("number", "gender"):
        rows = held_out_rows(lexicon(), task, 80, seed=0)
        assert (random_baseline(rows) > 0).all() and (random_baseline(rows) < 1).all()
        assert 0.3 < rows["tag"].mean() < 0.7


def test_pronouns_follow_their_person() -> None:
    rng = np.random.default_rng(0)
    women = set(lexicon().words["female"]) | set(lexicon().words["female_names"])
    for _ in range(100):
        sentence = gender_sentence(lexicon(), rng)
        assert (sentence.tokens[sentence.place][0] == "she") == bool(
            women & {w for w, _ in sentence.tokens}
        )


def test_one_pair_in_ten_is_held_out() -> None:
    pairs = [
        is_held_out(n, v)
        for n in lexicon().words["people"][:60]
        for v in lexicon().words["verbs"][:60]
    ]
    assert 0.08 < np.mean(pairs) < 0.12
