"""Faithfulness by hand on an additive model; limits against all orders; a floor that loses."""

from __future__ import annotations

import warnings
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from lib.attribution import METHODS, explain
from lib.attribution.batch import TokenBatch
from lib.attribution.seam import Row
from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.metrics.deletion import DeletedWords, aopc, aopc_limits, steps_of
from lib.metrics.faithfulness import (
    RANDOM,
    comprehensiveness,
    faithfulness,
    infidelity,
    normalised_aopc,
    random_deletions,
    scaled_infidelity,
    sufficiency,
)
from lib.metrics.sensitivity import _distance, _noisy, sensitivity
from lib.models.text_model import Encoded

WORTH = {"pad": 0.0, "mask": 1.0, "a": 4.0, "b": 2.0, "c": 1.0, "d": -1.0}


class Adding:
    """Logit of class 0: the words' worth summed; of class 1: minus that; `bend`: they interact."""

    classes, max_length = ("plus", "minus"), 20
    table = torch.tensor([[x] for x in WORTH.values()])

    def __init__(self, bend: float = 0.0) -> None:
        self.module, self.bend = nn.Linear(1, 2, bias=False), bend
        self.module.weight.data = torch.tensor([[1.0], [-1.0]])
        self.tokenizer = SimpleNamespace(pad_token_id=0, mask_token_id=1)

    def encode(self, sentences):
        return [
            Encoded([list(WORTH).index(w) for w in words], list(range(len(words))))
            for words in sentences
        ]

    def embed(self, ids):
        return self.table[ids]

    def logits(self, embeddings, mask):
        total = (embeddings * mask[..., None]).sum(1)
        places = torch.arange(1, embeddings.shape[1] + 1)[:, None]
        return self.module(total + self.bend * ((embeddings * places).sum(1) - embeddings.prod(1)))

    def reference_ids(self, ids):
        return torch.zeros_like(ids)

    def predict(self, sentences, batch_size):
        raise NotImplementedError("nobody asks")


def table(words: str, **methods: list[float]) -> pd.DataFrame:
    lines = [
        {
            "study": "geco",
            "dataset": "D_A",
            "scheme": "C",
            "seed": 0,
            "method": name,
            "row_id": "1-F",
            "sentence_idx": 1,
            "target": 0,
            "words": words.split(),
            "scores": scores,
            "explained": "logit",
            "settings": "{}",
            "delta": np.nan,
        }
        for name, scores in methods.items()
    ]
    return pd.DataFrame(lines)


def test_measures_by_hand_on_a_model_that_adds_up():
    explained = table("c a d b", right=[1.0, 4.0, -1.0, 2.0], wrong=[-1.0, -4.0, 1.0, -2.0])
    found = faithfulness(Adding(), explained, explained="logit", shares=[0.25, 0.5]).set_index(
        "method"
    )
    right, wrong = (
        found.loc["right"],
        found.loc["wrong"],
    )  # the sentence has 6; without a 2, b 0, c -1, d 0
    assert right["comprehensiveness"] == pytest.approx((4 + 6) / 2) and right[
        "sufficiency"
    ] == pytest.approx((2 + 0) / 2)
    assert (
        right["AOPC"] == pytest.approx((4 + 6 + 7 + 6) / 4) == right["AOPC_high"]
        and right["NAOPC"] == 1
    )
    assert (
        wrong["AOPC"] == pytest.approx((-1 + 0 + 2 + 6) / 4) == wrong["AOPC_low"]
        and wrong["NAOPC"] == 0
    )
    assert right["infidelity"] == pytest.approx(0, abs=1e-10) and right[
        "infidelity_scaled"
    ] == pytest.approx(0, abs=1e-9)
    assert (
        wrong["infidelity_scaled"] == 1 and wrong["infidelity"] > 0 and right["limits"] == "exact"
    )
    assert wrong["AOPC"] < found.loc[RANDOM, "AOPC"] < right["AOPC"]


def test_the_deletion_operator_decides():
    words = [["a", "b"]]
    kept = [np.array([True, False])]
    scores = {
        how: DeletedWords(Adding(), words, [0], how, "logit").scores([0], kept)[0]
        for how in ("pad", "mask", "remove")
    }
    assert scores == {"pad": 4.0, "mask": 5.0, "remove": 4.0}
    bent = {
        how: DeletedWords(Adding(bend=1.0), [["a", "b", "c"]], [0], how, "logit").scores(
            [0], [np.array([True, False, True])]
        )[0]
        for how in ("pad", "remove")
    }
    assert bent == {"pad": 5 + 7 - 0, "remove": 5 + 6 - 4}  # c stands third or second
    with pytest.raises(TouchstoneError, match="no deletion 'masks'; did you mean 'mask'"):
        DeletedWords(Adding(), words, [0], "masks")
    bare = Adding()
    bare.tokenizer.mask_token_id = None
    with pytest.raises(TouchstoneError, match="no mask token"):
        DeletedWords(bare, words, [0], "mask")


def test_curves_by_hand():
    falling, rising = np.array([1.0, 0.4, 0.3, 0.2, 0.1]), np.array([1.0, 1.0, 0.9, 0.8, 0.1])
    assert comprehensiveness(falling, [0.01, 0.5]) == pytest.approx((0.6 + 0.7) / 2)
    assert sufficiency(rising, [0.01, 0.5]) == pytest.approx((0.2 + 0.1) / 2)
    assert aopc(falling) == pytest.approx(0.75) and normalised_aopc(0.75, 0.5, 1.0) == 0.5
    assert np.isnan(normalised_aopc(0.5, 0.5, 0.5))
    gone, changes = np.array([[1, 0], [0, 1], [1, 1]]), np.array([2.0, 2.0, 4.0])
    assert infidelity([2.0, 1.0], gone, changes) == pytest.approx((0 + 1 + 1) / 3)
    assert scaled_infidelity([2.0, 1.0], gone, changes) == pytest.approx(1 - 18**2 / 14 / 24)
    assert scaled_infidelity([7.0, 7.0], gone, changes) == pytest.approx(0)
    assert scaled_infidelity([0.0, 0.0], gone, changes) == 1 and np.isnan(
        scaled_infidelity([1, 1], gone, 0 * changes)
    )


@pytest.mark.parametrize("n_exact", [64, 1])
def test_limits_are_those_of_all_orders(n_exact):
    deleted = DeletedWords(
        Adding(bend=0.3), [["a", "b", "d", "c", "b"], ["a"]], [0, 1], "remove", "probability"
    )
    (low, high, how), one = aopc_limits(deleted, n_exact, n_beam=40)
    tried = [
        aopc(deleted.scores([0] * 6, list(steps_of(order)))) for order in permutations(range(5))
    ]
    assert (low, high) == pytest.approx((min(tried), max(tried))) and how == (
        "exact" if n_exact > 1 else "beam"
    )
    assert one[0] == pytest.approx(one[1])
    narrow = aopc_limits(deleted, 1, n_beam=1)[0]
    assert low - 1e-12 <= narrow[0] <= narrow[1] <= high + 1e-12
    assert aopc_limits(deleted, 32, n_beam=1)[0][:2] == pytest.approx((low, high))


def test_up_to_eight_words_limits_are_exact_and_beyond_five_ways_are_kept():
    """A game with random worths of the subsets, in place of a model."""
    rng = np.random.default_rng(0)
    worth: dict[tuple, float] = {}

    def scores(rows, kept):
        return np.array([worth.setdefault(tuple(mask), rng.normal()) for mask in kept])

    game = SimpleNamespace(lengths=[8, 9], scores=scores)
    found = aopc_limits(game)
    assert [how for *_, how in found] == ["exact", "beam"]
    assert found == aopc_limits(game, n_exact=256, n_beam=5)
    assert found[1] != aopc_limits(game, n_beam=6)[1] and found[0] == aopc_limits(game, n_beam=6)[0]


def test_of_no_rows_there_are_no_limits():
    nothing = DeletedWords(Adding(), [], [])
    assert aopc_limits(nothing) == [] and nothing.scores([], []).shape == (0,)


def test_random_deletions_are_seeded_never_empty_and_complete_when_few():
    many = random_deletions(12, 300, 3)
    assert (
        many.any(axis=1).all()
        and (many == random_deletions(12, 300, 3)).all()
        and 0.45 < many.mean() < 0.55
    )
    assert (
        len(random_deletions(3, 50, 0)) == 7 == len(np.unique(random_deletions(3, 50, 0), axis=0))
    )


def test_equal_scores_do_not_profit_from_their_place():
    found = faithfulness(
        Adding(),
        pd.concat(
            [
                table("a c c c c c c", zero=[0.0] * 7).assign(row_id=f"{i}-F", sentence_idx=i)
                for i in range(60)
            ]
        ),
        n_beam=0,
    )
    same = found.groupby("method")["comprehensiveness"].mean()
    assert abs(same["zero"] - same[RANDOM]) < 0.01 and found["NAOPC"].isna().all()
    with pytest.raises(TouchstoneError, match="one model on one data set"):
        faithfulness(
            Adding(), pd.concat([table("a", x=[1.0]), table("a", x=[1.0]).assign(dataset="D_S")])
        )


def test_sensitivity_by_hand():
    rows = pd.DataFrame(
        {"row_id": ["1-F"], "sentence_idx": [1], "target": [0], "sentence": [["a", "c"]]}
    )
    still = sensitivity(
        Adding(), rows, "Saliency", radius=0.5
    )  # the gradient of a linear model does not move
    assert still["sensitivity_max"].tolist() == [0.0] and still["method"].tolist() == ["Saliency"]
    found = sensitivity(Adding(), rows, "InputXGradient", radius=0.1, n_samples=400).iloc[0]
    reach = 0.1 * np.std(
        [4, 1], ddof=1
    )  # the largest change of both words at once, over the explanation's length
    assert 0.9 * reach * np.sqrt(2 / 17) < found["sensitivity_max"] <= reach * np.sqrt(2 / 17)
    assert 0 < found["sensitivity_mean"] < found["sensitivity_max"]
    with pytest.raises(TouchstoneError, match="LIME reads words"):
        sensitivity(Adding(), rows, "LIME")


def test_noise_is_uniform_moves_words_alone_and_depends_on_row_and_draw():
    """.1 of the spread of the words' embeddings (1, 3: sqrt 2), times a draw in [-1, 1]."""
    embeddings = torch.tensor([[[9.0], [1.0], [3.0]], [[9.0], [2.0], [2.0]]])
    is_word = torch.tensor([[False, True, True]] * 2)
    batch = TokenBatch(None, embeddings, is_word.long(), embeddings, is_word, (0, 0))
    rows = [Row(f"{i}-F", i, 0, ["a", "b"], 0) for i in range(2)]
    generator = torch.Generator().manual_seed(seed_for("noise", "0-F", 4))
    wanted = 0.1 * 2**0.5 * (2 * torch.rand(3, 1, generator=generator) - 1)
    moved = _noisy(batch, rows, 0.1, 4).embeddings - embeddings
    torch.testing.assert_close(moved[0, 1:], wanted[1:])
    assert moved[0, 0] == 0 and (moved[1] == 0).all()  # no word, and words without a spread
    many = torch.cat([_noisy(batch, rows, 1.0, draw).embeddings[0, 1] for draw in range(300)]) - 1
    assert many.abs().max() <= 2**0.5 and many.min() < -1.2 and many.max() > 1.2
    assert abs(many.mean()) < 0.15


def test_the_spread_of_noise_is_that_of_all_components_of_the_words():
    embeddings = torch.randn(1, 4, 5, generator=torch.Generator().manual_seed(0))
    is_word = torch.tensor([[False, True, True, True]])
    batch = TokenBatch(None, embeddings, is_word.long(), embeddings, is_word, (0,))
    row = [Row("0-F", 0, 0, ["a", "b", "c"], 0)]
    generator = torch.Generator().manual_seed(seed_for("noise", "0-F", 1))
    draw = 2 * torch.rand(4, 5, generator=generator) - 1
    moved = _noisy(batch, row, 0.5, 1).embeddings - embeddings
    torch.testing.assert_close(moved[0, 1:], 0.5 * embeddings[0, 1:].std() * draw[1:])


def test_a_move_is_a_share_of_the_explanation_s_length():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _distance(np.array([0.3, 0.4]), np.array([0.3, 0.0])) == pytest.approx(0.8)
        assert _distance(np.zeros(2), np.ones(2)) == 0  # of nothing there is no share


def test_the_defaults_of_sensitivity_are_said():
    rows = pd.DataFrame(
        {"row_id": ["1-F"], "sentence_idx": [1], "target": [0], "sentence": [["a", "c", "b"]]}
    )
    found = sensitivity(Adding(bend=0.5), rows, "SmoothGrad")
    said = {"radius": 0.1, "n_samples": 10, "seed": 0}
    pd.testing.assert_frame_equal(
        found, sensitivity(Adding(bend=0.5), rows, "SmoothGrad", **said), check_exact=True
    )
    assert list(found) == (
        ["method", "row_id", "sentence_idx", "sensitivity_max", "sensitivity_mean"]
    )


def test_the_methods_beat_random_scores_where_the_model_adds_up():
    rows = pd.DataFrame(
        {
            "row_id": ["1-F", "2-M"],
            "sentence_idx": [1, 2],
            "target": [0, 1],
            "sentence": [["a", "c", "d", "b"], ["d", "c", "a"]],
        }
    )
    label = {"dataset": "D_A", "scheme": "C", "seed": 0}
    for name in ("InputXGradient", "Occlusion", "Exact Shapley"):
        chosen = {"explained": "logit"} if "explained" in METHODS[name].defaults else {}
        found = faithfulness(
            Adding(), explain(Adding(), rows, name, chosen, **label), "pad", "logit"
        )
        means = found.groupby("method")[["NAOPC", "infidelity_scaled"]].mean()
        assert means.loc[name].tolist() == pytest.approx([1, 0], abs=1e-6)
        assert means.loc[RANDOM, "NAOPC"] < 0.9 and means.loc[RANDOM, "infidelity_scaled"] > 0.1


def test_a_draw_that_would_delete_nothing_deletes_any_word_alike():
    """Of 3 words one line in 8 would delete none: each word alone has 1/8 + 1/24 = 1/6."""
    lines = np.vstack([random_deletions(3, 6, seed) for seed in range(500)])
    assert lines.shape == (3000, 3) and lines.any(axis=1).all()
    alone = [(lines == one).all(axis=1).mean() for one in np.eye(3, dtype=bool)]
    assert alone == pytest.approx([1 / 6] * 3, abs=0.03)
    assert lines.all(axis=1).mean() == pytest.approx(1 / 8, abs=0.02)
    assert len(random_deletions(3, 7, 0)) == 7 == len(np.unique(random_deletions(3, 7, 0), axis=0))


def test_shares_are_rounded_up_and_are_those_of_the_paper():
    """Of 10 words 1, 5, 10, 20 and 50 per cent are 1, 1, 1, 2 and 5."""
    curve = np.arange(10.0, -1.0, -1.0) ** 2
    falls = [100 - (10 - k) ** 2 for k in (1, 1, 1, 2, 5)]
    assert comprehensiveness(curve) == pytest.approx(np.mean(falls))
    left = [100 - k**2 for k in (1, 1, 1, 2, 5)]
    assert sufficiency(curve) == pytest.approx(np.mean(left))
    assert comprehensiveness(np.array([1.0, 0.0]), [0.5]) == 1
    hundred = np.arange(100.0, -1.0, -1.0) ** 2
    falls = [100**2 - (100 - k) ** 2 for k in (1, 5, 10, 20, 50)]
    assert comprehensiveness(hundred) == pytest.approx(np.mean(falls))


def test_only_a_scale_of_zero_or_more_is_granted():
    gone = np.eye(2)
    assert scaled_infidelity([1.0, 1.0], gone, np.array([-1.0, -1.0])) == 1
    for size in (1.0, 0.01):  # of changes of a probability, too
        half = scaled_infidelity([0.5, 0.0], gone, np.array([size, size]))
        assert half == pytest.approx(0.5)
    assert normalised_aopc(0.3, 0.2, 0.6) == pytest.approx(0.25)


def test_lines_stand_in_the_order_of_the_explanations_and_random_ones_last():
    explained = pd.concat(
        [
            table("a b", right=[2.0, 1.0], other=[1.0, 2.0]).assign(row_id=name, sentence_idx=i)
            for i, name in ((2, "2-F"), (1, "1-F"))
        ]
    )
    found = faithfulness(Adding(), explained)
    assert found["method"].tolist() == ["right", "other"] * 2 + [RANDOM] * 2
    assert found["row_id"].tolist() == ["2-F", "2-F", "1-F", "1-F", "2-F", "1-F"]
    drawn = found[found["method"] == RANDOM]
    assert drawn["scheme"].eq("-").all() and drawn["seed"].eq(-1).all()


def test_the_defaults_are_said():
    """Nine words: subsets are drawn for infidelity, and the beam decides the limits."""
    explained = table("b b c a d d a c a", right=[1.0, 4.0, -1.0, 2.0, 0.5, 0.1, 0.0, 3.0, 2.0])
    said = {"shares": (0.01, 0.05, 0.1, 0.2, 0.5), "n_samples": 50, "n_random": 5, "n_exact": 256}
    silent = faithfulness(Adding(1.0), explained)
    pd.testing.assert_frame_equal(
        silent,
        faithfulness(Adding(1.0), explained, "remove", "probability", **said, n_beam=5, seed=0),
        check_exact=True,
    )
    assert not silent.equals(faithfulness(Adding(1.0), explained, n_beam=6))
