"""Filters on hand-made trees and coreference files, and the published counts on EWT."""

from __future__ import annotations

import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import data_root
from lib.studies.lm_saliency.extraction import (
    Mention,
    cluster_genders,
    gender_lines,
    number_lines,
    number_of_verb,
    read_conll2012,
    read_trees,
    token_owners,
)
from lib.studies.lm_saliency.lines import agreement_statistics, check_line


def tree(*words: str) -> str:
    """CoNLL-U from `form/tag/head/relation`."""
    rows = []
    for i, word in enumerate(words, start=1):
        form, tag, head, relation = word.split("/")
        rows.append("\t".join([str(i), form, form, "X", tag, "_", head, relation, "_", "_"]))
    return "# sent_id = 1\n" + "\n".join(rows) + "\n\n"


def lines_of(tmp_path, *words: str):
    path = tmp_path / "trees.conllu"
    path.write_text(tree(*words))
    return number_lines(read_trees(path))


KEYS = (
    "The/DT/2/det",
    "keys/NNS/6/nsubj",
    "to/IN/5/case",
    "the/DT/5/det",
    "cabinet/NN/2/nmod",
    "are/VBP/0/root",
)


def test_a_line_by_hand(tmp_path) -> None:
    rows, counts = lines_of(tmp_path, *KEYS)
    assert list(counts.values()) == [1, 1, 1, 1]
    row = rows.iloc[0]
    assert (row["prefix"], row["tag"]) == (["The", "keys", "to", "the", "cabinet"], 1)
    assert (row["cues"], row["attractors"]) == ([(1, 1)], [(4, 4)])


@pytest.mark.parametrize(
    ("words", "passed", "why"),
    [
        (
            ("The/DT/2/det", "keys/NNS/3/nsubj", "opened/VBD/0/root"),
            0,
            "a past tense shows no number",
        ),
        (
            (
                "The/DT/2/det",
                "keys/NNS/5/nsubj",
                "to/IN/4/case",
                "cabinets/NNS/2/nmod",
                "are/VBP/0/root",
            ),
            1,
            "no attractor",
        ),
        (
            ("They/PRP/4/nsubj", "of/IN/3/case", "Rome/NNP/1/nmod", "sing/VBP/0/root"),
            1,
            "the subject is no noun",
        ),
        (
            ("cabinet/NN/3/obl", "keys/NNS/3/nsubj", "are/VBP/0/root"),
            2,
            "the verb follows its subject directly",
        ),
        (
            (
                "cabinet/NN/13/obl",
                *("x/RB/13/advmod",) * 10,
                "keys/NNS/14/nsubj",
                "now/RB/14/advmod",
                "are/VBP/0/root",
            ),
            3,
            "the attractor is eleven words before the subject",
        ),
        (
            (
                "cabinet/NN/13/obl",
                *("x/RB/13/advmod",) * 9,
                "keys/NNS/13/nsubj",
                "now/RB/13/advmod",
                "are/VBP/0/root",
            ),
            4,
            "the attractor is ten words before the subject",
        ),
    ],
)
def test_each_filter(tmp_path, words, passed, why) -> None:
    assert sum(lines_of(tmp_path, *words)[1].values()) == passed, why


def test_the_subject_of_a_copula_hangs_from_the_predicate(tmp_path) -> None:
    words = (
        "keys/NNS/6/nsubj",
        "to/IN/3/case",
        "Rome/NNP/1/nmod",
        "were/VBD/6/cop",
        "very/RB/6/advmod",
        "old/JJ/0/root",
    )
    rows, counts = lines_of(tmp_path, *words)
    assert counts["attractor within ten words"] == 1 and rows["tag"][0] == 1


def test_numbers_of_verbs() -> None:
    assert [
        number_of_verb(*v)
        for v in (("is", "VBZ"), ("go", "VBP"), ("Was", "VBD"), ("were", "VBD"), ("went", "VBD"))
    ] == [0, 1, 0, 1, None]


def coreference(tmp_path, text: str):
    """A document from `word:clusters` pairs."""
    rows = [
        f"{i}\t{token.partition(':')[0]}\t{token.partition(':')[2] or '_'}"
        for i, token in enumerate(text.split())
    ]
    path = tmp_path / "doc.conll"
    path.write_text("# begin document x\n" + "\n".join(rows) + "\n# end document\n")
    return read_conll2012(path)[0]


def test_mentions_open_close_and_nest(tmp_path) -> None:
    words, mentions = coreference(tmp_path, "The:(1 boss of:x the:(2 firm:2)1) met him:(3)")
    assert words[:3] == ["The", "boss", "of"]
    assert set(mentions) == {Mention(0, 4, "1"), Mention(3, 4, "2"), Mention(6, 6, "3")}


def test_an_empty_word_keeps_its_place(tmp_path) -> None:
    assert coreference(tmp_path, "a :(1) b")[0] == ["a", "_", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("a:1)", "line 2: .* closes cluster 1"), ("a:(1", "line 3: cluster 1 has a mention")],
)
def test_open_ends_are_named_by_line(tmp_path, text, message) -> None:
    with pytest.raises(TouchstoneError, match=message):
        coreference(tmp_path, text)


def test_an_inner_mention_owns_its_words_and_crossing_ones_nobody() -> None:
    outer, inner = Mention(0, 4, "a"), Mention(2, 3, "b")
    assert token_owners([outer, inner], 5) == [outer, outer, inner, inner, outer]
    left, right = Mention(0, 2, "a"), Mention(2, 4, "b")
    assert token_owners([left, right], 5) == [left, left, None, right, right]


def test_gender_comes_from_pronouns_then_titles_then_names(tmp_path) -> None:
    text = (
        "Ann:(1) met Mr.:(2 Lee:2) and Kim:(3) . He:(2) saw her:(1) and Ann:(4 Mary:4) ; "
        "Mr.:(5 Ray:5) is she:(5)"
    )
    words, mentions = coreference(tmp_path, text)
    assert cluster_genders(words, mentions, {"ann": 1, "ray": 0}) == {
        "1": 1,
        "2": 0,
        "4": 1,
        "5": 1,
    }
    words, mentions = coreference(tmp_path, "he:(1) and she:(1) met")
    assert cluster_genders(words, mentions, {}) == {}


def test_a_gender_line_by_hand(tmp_path) -> None:
    words, mentions = coreference(
        tmp_path, "Ann:(1) met Mr.:(2 Lee:2) . She:(1) saw Mr.:(2 Lee:2) before her:(1) trip"
    )
    lines = pd.DataFrame(gender_lines(words, mentions, {"ann": 1}, "doc"))
    assert list(lines["tag"]) == [1, 1]
    assert lines["prefix"][1] == "Ann met Mr. Lee . She saw Mr. Lee before".split()
    assert lines["cues"][1] == [(0, 0), (5, 5)] and lines["attractors"][1] == [(2, 3), (7, 8)]


def test_a_nearest_mention_of_the_same_gender_is_no_test(tmp_path) -> None:
    words, mentions = coreference(tmp_path, "Mr.:(2 Lee:2) met Ann:(1) because she:(1) left")
    assert not gender_lines(words, mentions, {"ann": 1}, "doc")


def test_cues_of_the_own_cluster_alone(tmp_path) -> None:
    text = "Eve:(3) met Ann:(1) and Mr.:(2 Lee:2) before she:(1) left Eve:(3)"
    words, mentions = coreference(tmp_path, text)
    by = {
        rule: gender_lines(words, mentions, {"ann": 1, "eve": 1}, "doc", rule)[0]["cues"]
        for rule in ("gender", "cluster")
    }
    assert by == {"gender": [(0, 0), (2, 2)], "cluster": [(2, 2)]}
    with pytest.raises(TouchstoneError, match="cue_rule"):
        gender_lines(words, mentions, {}, "doc", "own")


def test_a_long_prefix_begins_after_a_sentence(tmp_path) -> None:
    text = "Old " * 200 + "end . Ann:(1) met Mr.:(2 Lee:2) " + "so " * 400 + "her:(1)"
    words, mentions = coreference(tmp_path, text)
    line = gender_lines(words, mentions, {"ann": 1}, "doc")[0]
    assert len(line["prefix"]) <= 512 and line["prefix"][0] == "Ann" and line["cues"] == [(0, 0)]


@pytest.fixture
def treebanks():
    root = data_root()
    if root is None or not (root / "treebanks").is_dir():
        pytest.skip("needs the treebanks: set TOUCHSTONE_DATA to a folder that holds treebanks/")
    return root


@pytest.mark.slow
def test_ewt_gives_431_lines(treebanks) -> None:
    sentences = [
        s
        for part in ("train", "dev", "test")
        for s in read_trees(treebanks / f"treebanks/en_ewt-ud-{part}.conllu")
    ]
    rows, counts = number_lines(sentences)
    assert list(counts.values()) == [14_583, 1_275, 468, 431]
    found = agreement_statistics(rows)
    assert (found["tag_0"], found["tag_1"], round(found["nearest"], 3)) == (204, 227, 0.462)


def test_ontogum_gives_lines_without_shared_words(treebanks) -> None:
    lines = [
        line
        for path in sorted((treebanks / "treebanks/ontogum").glob("*.conll"))
        for words, mentions in read_conll2012(path)
        for line in gender_lines(words, mentions, {}, path.stem)
    ]
    assert len(lines) > 100
    for line in lines:
        check_line(line["prefix"], line["cues"], line["attractors"], line["cluster"])
        tokens = [set(range(s, e + 1)) for s, e in line["cues"] + line["attractors"]]
        assert len(set().union(*tokens)) == sum(map(len, tokens)) and len(line["prefix"]) <= 512
