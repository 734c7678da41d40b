"""A masked LM as a classifier of gender: its score, its mask, and explanations that add up."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
import transformers as tf
from tiny_models import tiny_module

from lib.attribution.explain import explain
from lib.core.errors import TouchstoneError
from lib.language.lexicon import MASK
from lib.models.masked_gender import GenderAtMask, gender_ids, slot_ids
from lib.models.masked_lm import MaskedLM

WORDS = ["[PAD]", "he", "his", "him", "she", "her", "##he", "table", "himself", "hers"]
IDS = {"F": [20, 21], "M": [22, 23, 24]}


class Vocabulary:
    """A tokenizer with nothing but a vocabulary."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def get_vocab(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}


def tiny() -> GenderAtMask:
    return GenderAtMask(MaskedLM(*tiny_module("bert", tf.AutoModelForMaskedLM)), IDS)


def test_score_is_the_difference_of_the_largest_log_probabilities() -> None:
    model = tiny()
    sentences = [
        ["She", "loves", MASK, "piano", "."],
        [MASK, "sings", "to", "their", "friends", "about", "a", "person", "."],
    ]
    log_prob = model.lm.log_prob(model.encode(sentences))
    wanted = log_prob[:, IDS["M"]].amax(1) - log_prob[:, IDS["F"]].amax(1)
    ids = [torch.tensor([one.ids]) for one in model.encode(sentences)]
    found = torch.cat([model.logits(model.embed(i), torch.ones_like(i)) for i in ids])
    torch.testing.assert_close(found, torch.stack([-wanted, wanted], 1), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("method", ["Integrated Gradients", "Occlusion"])
def test_explanations_leave_the_mask_alone_and_add_up(method: str) -> None:
    model = tiny()
    rows = pd.DataFrame(
        {
            "row_id": ["a"],
            "sentence_idx": [0],
            "target": [1],
            "sentence": [["She", "loves", MASK, "piano", "."]],
        }
    )
    settings = {"explained": "logit"} | (
        {"n_steps": 400} if method == "Integrated Gradients" else {}
    )
    found = explain(model, rows, method, settings)
    scores = found["scores"][0]
    assert len(scores) == 5
    if method == "Integrated Gradients":
        assert abs(scores[2]) < 1e-6
        ids = torch.tensor([one.ids for one in model.encode(rows["sentence"])])
        mask, empty = torch.ones_like(ids), model.reference_ids(ids)
        gap = (
            model.logits(model.embed(ids), mask)[0, 1]
            - model.logits(model.embed(empty), mask)[0, 1]
        )
        assert sum(scores) == pytest.approx(gap.item(), abs=0.1 * abs(gap.item()) + 0.02)


def test_forms_of_a_slot_and_of_a_byte_level_vocabulary() -> None:
    found = slot_ids(Vocabulary(WORDS), "possessive")
    assert {g: [WORDS[i] for i in ids] for g, ids in found.items()} == {"F": ["her"], "M": ["his"]}
    byte_level = ["Ġhe", "he", "Ġshe", "she", "ĠHe"]
    assert gender_ids(Vocabulary(byte_level)) == {"F": [2], "M": [0, 4]}
    with pytest.raises(TouchstoneError, match="no pronouns of gender F"):
        gender_ids(Vocabulary(["he", "table"]))
    with pytest.raises(TouchstoneError, match="write pronouns or identities"):
        gender_ids(Vocabulary(WORDS), "names")
