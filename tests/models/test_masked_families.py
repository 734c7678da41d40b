"""The hub's families of masked LMs on tiny random models.

Mask tokens, and pronouns as word pieces, byte pairs and SentencePiece write them.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch
from masked_families import FAMILIES, SENTENCE, hub_folder

from lib.attribution.explain import explain_many
from lib.language.lexicon import MASK, PRONOUNS
from lib.metrics.masked_pronoun import gender_probabilities, top_words
from lib.models.masked_gender import GenderAtMask, gender_ids, slot_ids
from lib.models.masked_lm import pretrained_masked_lm


@pytest.mark.parametrize("name", FAMILIES)
def test_pronouns_are_found_as_the_family_writes_them(tmp_path: Path, name: str) -> None:
    model, wanted = pretrained_masked_lm(hub_folder(tmp_path, name)), FAMILIES[name][2]
    vocabulary = model.tokenizer.get_vocab()
    ids = gender_ids(model.tokenizer)
    assert sorted(ids["F"] + ids["M"]) == sorted(vocabulary[piece] for piece in wanted)
    assert all(
        PRONOUNS[piece.lstrip("Ġ▁").lower()] == gender
        for piece in wanted
        for gender in "FM"
        if vocabulary[piece] in ids[gender]
    )
    forms = {
        g: {model.tokenizer.convert_ids_to_tokens(i).lstrip("Ġ▁").lower() for i in found}
        for g, found in slot_ids(model.tokenizer, "possessive").items()
    }
    assert forms == {"F": {"her"}, "M": {"his"}}
    assert (
        model.encode([["nurse", "his", "coat"]])[0].ids[2] in ids["M"]
    )  # the form that a word in the middle of a sentence has


@pytest.mark.parametrize("name", FAMILIES)
def test_mask_is_filled_and_explained(tmp_path: Path, name: str) -> None:
    model = pretrained_masked_lm(hub_folder(tmp_path, name))
    one = GenderAtMask(model).encode([SENTENCE])
    assert one[0].ids.count(model.tokenizer.mask_token_id) == 1
    log_prob, ids = model.log_prob(one), gender_ids(model.tokenizer)
    whole = (
        model.module(torch.tensor([one[0].ids]))
        .logits[0, one[0].ids.index(model.tokenizer.mask_token_id)]
        .softmax(-1)
    )
    found = gender_probabilities(log_prob, ids)
    assert found["p_F"].item() == pytest.approx(max(whole[i].item() for i in ids["F"]), rel=1e-4)
    assert found["p_M"].item() == pytest.approx(max(whole[i].item() for i in ids["M"]), rel=1e-4)
    assert not top_words(log_prob[0], model.tokenizer, 5)["word"].str.contains("[Ġ▁]").any()
    rows = pd.DataFrame(
        {"row_id": ["a"], "sentence_idx": [0], "target": [1], "sentence": [SENTENCE]}
    )
    explained = explain_many(
        GenderAtMask(model),
        rows,
        [("Integrated Gradients", {"explained": "logit", "n_steps": 64})],
        study="t",
        dataset="t",
        scheme="t",
        seed=0,
    )
    scores = list(explained["scores"][0])
    assert (
        len(scores) == len(SENTENCE)
        and scores[SENTENCE.index(MASK)] == pytest.approx(0, abs=1e-6)
        and any(scores)
    )
