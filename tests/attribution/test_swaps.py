"""Swap Shapley: who is swapped together, values by hand and by orders of arrival, and agreement
with a method."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from small_models import CLASSES, LinearText, build

from lib.attribution import explain
from lib.attribution.perturbed_texts import sequence_logits, text_logits
from lib.attribution.swaps import find_swaps, mixture_shares, players_between, swap_shapley
from lib.attribution.table import validated
from lib.core.errors import TouchstoneError
from lib.metrics import score_explanations
from lib.metrics.agreement import agreement_with_swaps, player_agreement, rank_correlation
from lib.models.hf import HFClassifier
from lib.models.shortcuts import ignores_padding
from lib.studies.geco.corpus import read_geco

FORMS = {
    0: "she sings a song the singer .",
    1: "he sings a song the old .",
    2: "they sing a song the a .",
}


def in_forms(*sentences: dict[int, str]) -> pd.DataFrame:
    lines = [
        (f"{i}-{CLASSES[t]}", i, t, text.split())
        for i, forms in enumerate(sentences)
        for t, text in forms.items()
    ]
    rows = pd.DataFrame(lines, columns=["row_id", "sentence_idx", "target", "sentence"])
    return rows.assign(ground_truth=[[1] + [0] * (len(words) - 1) for words in rows["sentence"]])


@pytest.mark.parametrize(
    ("female", "male", "neutral", "to_neutral", "to_male"),
    [
        ("She sings", "He sings", "They sing", ((0, 1),), ((0,),)),
        ("Does she sing", "Does he sing", "Do they sing", ((0, 1),), ((1,),)),
        (
            "She loves her cat and his dog",
            "He loves his cat and his dog",
            "They love their cat and their dog",
            ((0, 1), (2,)),
            ((0,), (2,)),
        ),
        (
            "He meets her and sings",
            "He meets him and sings",
            "He meets them and sing",
            ((2,), (4,)),
            ((2,),),
        ),
        (
            "The queen and she sings",
            "The king and he sings",
            "The monarch and they sing",
            ((1,), (3, 4)),
            ((1,), (3,)),
        ),
        (
            "The queen sings to her",
            "The king sings to him",
            "The monarch sing to them",
            ((1, 2), (4,)),
            ((1,), (4,)),
        ),
    ],
)
def test_a_verb_goes_with_the_subject_that_changes_it(female, male, neutral, to_neutral, to_male):
    forms = {0: female.split(), 1: male.split(), 2: neutral.split()}
    if (
        "his dog" in female
    ):  # the last possessive is the same in F and M, as a verb would be: it joins "they"
        to_neutral = ((0, 1, 5), (2,))
    assert players_between(forms, 1, 2) == to_neutral == players_between(forms, 2, 1)
    assert players_between(forms, 0, 1) == to_male


def test_values_of_an_additive_model_are_its_differences(linear: LinearText):
    rows = in_forms({0: "she sings she", 1: "nothing sings sings"})
    found = swap_shapley(linear, rows, "logit")
    logit = {w: (linear.table[i] @ linear.weights.T).numpy() for w, i in linear.ids.items()}
    expected = [logit["she"][0] - logit["nothing"][0], 0, logit["she"][0] - logit["sings"][0]]
    own = found.explanations.query("method == 'Swap Shapley to M'").iloc[0]
    assert own["scores"] == pytest.approx(expected) and own["samples"] == 4
    assert found.mixtures["is_mixed"].sum() == 4 and len(found.mixtures) == 8


@pytest.mark.parametrize("kind", ["BERT", "GPT-2", "OLA"])
def test_values_are_the_mean_over_orders_of_arrival_and_complete(kind: str):
    model, rows = (
        build(kind),
        in_forms(FORMS, {t: text.replace("song", "old") for t, text in FORMS.items()}),
    )
    found = swap_shapley(model, rows)
    p = dict(zip(rows["row_id"], model.predict(rows["sentence"], 8)))
    for line in found.explanations.itertuples():
        others = {"M": [1], "F": [0], "NB": [2]}.get(
            line.method.removeprefix("Swap Shapley to "), [c for c in range(3) if c != line.target]
        )
        change = p[line.row_id][line.target] - np.mean(
            [p[f"{line.sentence_idx}-{CLASSES[c]}"][line.target] for c in others]
        )
        assert sum(line.scores) == pytest.approx(change, abs=1e-6) and abs(line.delta) < 1e-6
    swaps, _ = find_swaps(rows)
    swap, worth = swaps[1], {}
    assert swap.row_id == "0-F" and swap.other == 2 and swap.players == ((0, 1), (5,))
    for kept in [(a, b) for a in (0, 1) for b in (0, 1)]:
        worth[kept] = model.predict([list(swap.mixture(kept))], 1)[0][0]
    orders, gains = list(permutations(range(2))), np.zeros(2)
    for order in orders:
        here = [0, 0]
        for player in order:
            before = worth[tuple(here)]
            here[player] = 1
            gains[player] += (worth[tuple(here)] - before) / len(orders)
    values = found.swaps.query("row_id == '0-F' and other == 2")["values"].iloc[0]
    assert values == pytest.approx(gains.tolist(), abs=1e-6)


def test_mixtures_agree_and_are_the_data_s_own_words(bert: HFClassifier):
    found = swap_shapley(bert, in_forms(FORMS))
    first = found.mixtures.query("row_id == '0-F' and other == 2").set_index("kept")
    assert [" ".join(w) for w in first.loc[["00", "11"], "words"]] == [FORMS[2], FORMS[0]]
    assert " ".join(first.loc["10", "words"]) == "she sings a song the a ." and first[
        "is_mixed"
    ].tolist() == [0, 1, 1, 0]


def test_the_result_is_an_explanation_like_any_other(bert: HFClassifier):
    rows = in_forms(FORMS)
    found = swap_shapley(bert, rows, dataset="D_A", scheme="CE", seed=1, only=["0-M"])
    table = validated(found.explanations, "here")
    assert (
        set(table["method"]) == {"Swap Shapley to F", "Swap Shapley to NB", "Swap Shapley"}
        and len(table) == 3
    )
    scored = score_explanations(table, rows.assign(dataset="D_A"))
    assert scored["MA"].between(0, 1).all()


def test_lines_stand_in_the_order_of_the_rows_and_of_the_forms(bert: HFClassifier):
    rows = in_forms({0: "she sings", 1: "he sings", 2: "they sings"})[::-1]
    found = swap_shapley(bert, rows)
    table = found.explanations
    assert table.index.tolist() == list(range(9)) and table["seed"].eq(-1).all()
    assert table["method"].tolist() == (
        [f"Swap Shapley to {form}" for form in ("F", "F", "M", "M", "NB", "NB")]
        + ["Swap Shapley"] * 3
    )
    assert table["row_id"].tolist()[-3:] == ["0-NB", "0-M", "0-F"]
    assert list(found.mixtures) == (
        "row_id sentence_idx target other kept is_mixed score words".split()
    )
    assert found.mixtures.index.tolist() == list(range(12))


def test_rows_without_a_partner_are_named(bert: HFClassifier):
    rows = in_forms(
        {0: "she sings", 1: "he sings", 2: "they sing ."},
        {0: "she", 1: "he"},
        {2: "they", 0: "she"},
    )
    found = swap_shapley(bert, rows)
    assert set(found.left_out["why"]) == {
        "the forms differ in length",
        "there is no M form",
        "there is no NB form",
    }
    with pytest.raises(TouchstoneError, match="no row has another form"):
        swap_shapley(bert, rows[rows["target"] == 2])
    wide = in_forms({0: "she " * 11, 1: "he " * 11})
    with pytest.raises(TouchstoneError, match="row 0-F has 11 words to swap with its M form"):
        find_swaps(wide)


def test_each_text_goes_through_the_model_once(bert: HFClassifier, monkeypatch: pytest.MonkeyPatch):
    assert ignores_padding(bert)  # tried with texts of its own, once a network
    seen, plain = [], HFClassifier.logits
    monkeypatch.setattr(
        HFClassifier, "logits", lambda self, e, m: seen.append(len(e)) or plain(self, e, m)
    )
    texts = [["she", "sings"], ["he"], ["she", "sings"], ["they"]]
    found = text_logits(bert, texts)
    assert sum(seen) == 3 and (found[0] == found[2]).all()
    assert found.softmax(-1).numpy() == pytest.approx(bert.predict(texts, 4), abs=1e-6)
    assert sequence_logits(bert, [(), (0,)]).unique(dim=0).shape[0] == 1


def test_few_texts_of_neighbouring_lengths_share_a_pass(
    bert: HFClassifier, monkeypatch: pytest.MonkeyPatch
):
    sequences = [tuple(1 + i % 9 for i in range(n)) for n in (3, 4, 5, 6, 24)]
    alone = torch.cat([sequence_logits(bert, [ids]) for ids in sequences])
    assert ignores_padding(bert)
    sizes, plain = [], HFClassifier.logits
    monkeypatch.setattr(
        HFClassifier, "logits", lambda self, e, m: sizes.append(len(e)) or plain(self, e, m)
    )
    assert sequence_logits(bert, sequences).numpy() == pytest.approx(alone.numpy(), abs=1e-6)
    assert sizes == [4, 1], "the long one stands alone"
    sizes.clear()
    monkeypatch.setattr("lib.attribution.perturbed_texts.ignores_padding", lambda model: False)
    sequence_logits(bert, sequences)
    assert sizes == [1] * 5, "who reads padding gets none"


def test_agreement_by_hand():
    found = player_agreement(
        [1.0, 0.0, -5.0, 2.0, 2.0], [[0, 1], [2], [3]], [0.6, 0.1, 0.3]
    )  # sums 1, -5, 2
    assert found == pytest.approx(
        {"rank_size": -1.0, "rank_signed": 0.5, "mass": 0.8, "sign": 0.9, "top": 0.0}
    )
    assert np.isnan(rank_correlation([1.0], [1.0])) and np.isnan(rank_correlation([1, 1], [1, 2]))
    assert np.isnan(player_agreement([0.0], [[0]], [0.0])["sign"])


def test_agreement_of_a_table(bert: HFClassifier):
    rows = in_forms(FORMS)
    label = {"dataset": "D_A", "scheme": "CE", "seed": 1}
    truth = swap_shapley(bert, rows, **label)
    methods = pd.concat(
        [
            explain(bert, rows, "Occlusion", **label),
            truth.explanations.query("method == 'Swap Shapley to NB'"),
            explain(None, rows, "Uniform random", dataset="D_A"),
        ]
    )
    found = agreement_with_swaps(methods, truth, CLASSES)
    perfect = found.query("method == 'Swap Shapley to NB' and other == 'NB'")
    assert (perfect[["rank_size", "rank_signed", "mass", "sign", "top"]] == 1).all().all() and len(
        perfect
    ) == 2
    assert len(found.query("method == 'Occlusion'")) == 6 and set(found["other"]) == set(CLASSES)
    with pytest.raises(TouchstoneError, match="explanations are of D_A/CE/seed2"):
        agreement_with_swaps(methods.assign(seed=2), truth, CLASSES)
    short = methods.assign(scores=[s[:-1] for s in methods["scores"]])
    with pytest.raises(TouchstoneError, match="has 6 scores by Occlusion and 7 words"):
        agreement_with_swaps(short, truth, CLASSES)
    two = swap_shapley(bert, rows[:2], **label)
    one_short = methods[:2].assign(scores=[methods["scores"].iloc[0], [1.0]])
    with pytest.raises(TouchstoneError, match="row 0-M has 1 scores by Occlusion"):
        agreement_with_swaps(one_short, two, CLASSES)


def test_the_published_sentences_have_at_most_ten_players(geco_data):
    rows = read_geco(geco_data / "non_binary_gender_all" / "test.jsonl")
    rows.attrs.clear()
    swaps, left_out = find_swaps(rows)
    players = [len(swap.players) for swap in swaps]
    assert len(swaps) + len(left_out) == 2 * len(rows) and max(players) == 7
    assert (
        np.mean(players) == pytest.approx(2.99, abs=0.005)
        and np.mean(2.0 ** np.array(players)) < 34
    )


def test_mixtures_are_counted_by_forms_and_by_where_their_score_lies() -> None:
    lines = [
        ("1-F", 0, 1, False, 0.9),
        ("1-F", 0, 1, False, 0.1),
        ("1-F", 0, 1, True, 0.5),
        ("1-F", 0, 1, True, 0.95),
        ("1-F", 0, 2, False, 0.2),
        ("1-F", 0, 2, False, 0.4),
        ("1-F", 0, 2, True, 0.05),
    ]
    table = mixture_shares(
        pd.DataFrame(lines, columns=["row_id", "target", "other", "is_mixed", "score"])
    ).set_index("forms")
    assert table.loc["F and M"].tolist() == [2, 0.5, 0.5] and table.loc["with NB"].tolist() == [
        1,
        1.0,
        0.0,
    ]


def test_the_bounds_of_undecided_and_of_outside() -> None:
    """.1 and .9 themselves are undecided; up to .01 beyond a pure form is not outside of it."""
    scores = [0.1, 0.9, 0.099, 0.901, 0.5, 0.195, 0.405, 0.18, 0.42]
    lines = [("1-F", 0, 1, False, 0.2), ("1-F", 0, 1, False, 0.4)]
    lines += [("1-F", 0, 1, True, score) for score in scores]
    columns = ["row_id", "target", "other", "is_mixed", "score"]
    found = mixture_shares(pd.DataFrame(lines, columns=columns)).iloc[0]
    assert found["mixtures"] == 9 and found["undecided"] == pytest.approx(7 / 9)
    assert found["outside"] == pytest.approx(7 / 9)
    wider = mixture_shares(pd.DataFrame(lines, columns=columns), margin=0.05).iloc[0]
    assert wider["outside"] == pytest.approx(5 / 9)
    pure = [("1-F", 0, 1, False, 0.5), ("1-F", 0, 1, False, 0.75)]
    touched = pd.DataFrame([*pure, ("1-F", 0, 1, True, 0.25), ("1-F", 0, 1, True, 1.0)])
    assert mixture_shares(touched.set_axis(columns, axis=1), margin=0.25)["outside"].item() == 0


def test_ten_players_are_taken() -> None:
    (swap, _), left_out = find_swaps(in_forms({0: "she " * 10, 1: "he " * 10}), only=None)
    assert len(swap.players) == 10 and left_out.empty


def test_agreement_of_ties_and_of_values_without_a_sign() -> None:
    one = player_agreement([0.0, 3.0], [[0]], [0.5])
    assert one["mass"] == 0 and one["sign"] == 0 and np.isnan([one["top"], one["rank_size"]]).all()
    tiny = player_agreement([1.0, -1.0], [[0], [1]], [0.5, 1e-6])
    assert tiny["sign"] == 1 and tiny["top"] == 1 and tiny["mass"] == 1
    seen = player_agreement([1.0, -1.0], [[0], [1]], [0.5, 0.5])
    assert seen["sign"] == 0.5
    negative = player_agreement([1.0, -3.0], [[0], [1]], [0.1, -0.5])
    assert (negative["top"], negative["rank_signed"], negative["rank_size"]) == (1, 1, 1)
    assert rank_correlation([1.0, 2.0], [5.0, 6.0]) == 1 and np.isnan(rank_correlation([], []))
