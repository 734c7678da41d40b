"""Zero-shot answers: read at the right place, by what a model has, and never from a neighbour."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers as tf
from causal_families import DECODERS, decoder
from tiny_models import SENTENCES, saved, tiny_module

from lib.core.errors import TouchstoneError
from lib.models.text_model import TextModel, pad
from lib.models.zero_shot import (
    DESCRIPTIONS,
    LABEL_WORDS,
    LabelSimilarity,
    PromptedCausalLM,
    PromptedMaskedLM,
    zero_shot_model,
)

KINDS = {
    "bert": (PromptedMaskedLM, tf.AutoModelForMaskedLM),
    "roberta": (PromptedMaskedLM, tf.AutoModelForMaskedLM),
    "gpt2": (PromptedCausalLM, tf.AutoModelForCausalLM),
    "llama": (PromptedCausalLM, tf.AutoModelForCausalLM),
    "electra": (LabelSimilarity, tf.AutoModel),
    "xlnet": (LabelSimilarity, tf.AutoModel),
}


def zero_shot(family):
    kind, auto = KINDS[family]
    return kind(*tiny_module(family, auto))


@pytest.mark.parametrize("family", KINDS)
def test_a_row_does_not_depend_on_its_neighbours(family):
    model = zero_shot(family)
    assert isinstance(model, TextModel) and model.classes == ("F", "M", "NB")
    encoded = model.encode(SENTENCES)
    ids, mask = pad(encoded, model.tokenizer.pad_token_id)
    with torch.no_grad():
        together = model.logits(model.embed(ids), mask).softmax(-1).numpy()
        shuffled = model.logits(model.embed(ids.flip(0)), mask.flip(0)).softmax(-1).numpy()[::-1]
    alone = np.concatenate([model.predict([words], 1) for words in SENTENCES])
    assert together == pytest.approx(alone, abs=1e-5) and shuffled == pytest.approx(alone, abs=1e-5)
    assert np.ptp(alone, axis=0).max() > 1e-3  # and it does depend on the row


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_the_masked_word_is_read_at_the_mask(family):
    model = zero_shot(family)
    for one in model.encode(SENTENCES):
        ids = torch.tensor([one.ids])
        at = one.ids.index(model.tokenizer.mask_token_id)
        with torch.no_grad():
            plain = model.module(input_ids=ids).logits[0, at, model.label_ids]
            ours = model.logits(model.embed(ids), torch.ones_like(ids))[0]
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_next_word_is_read_after_the_cue(family):
    model = zero_shot(family)
    ids, mask = pad(model.encode(SENTENCES), model.tokenizer.pad_token_id)
    with torch.no_grad():
        ours = model.logits(model.embed(ids), mask)
        for row, one in enumerate(model.encode(SENTENCES)):
            plain = model.module(input_ids=torch.tensor([one.ids])).logits[0, -1, model.label_ids]
            torch.testing.assert_close(ours[row], plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", DECODERS)
def test_any_prompted_decoder_answers_as_its_own_forward_pass_does(family):
    module, tokenizer = decoder(family, n_positions=48)
    model = PromptedCausalLM(module, tokenizer, {"F": "she", "M": "he"})
    sentences = [["he", "sings", "the", "song"], ["she"]]
    encoded = model.encode(sentences)
    with torch.no_grad():
        plain = [
            module(input_ids=torch.tensor([one.ids])).logits[0, -1, model.label_ids]
            for one in encoded
        ]
    expected = torch.stack(plain).softmax(-1).numpy()
    np.testing.assert_allclose(model.predict(sentences, 2), expected, rtol=1e-4, atol=1e-6)
    assert np.ptp(expected[:, 0]) > 1e-3  # and it does depend on the row


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_cue_has_no_words_and_stays_in_the_reference(family):
    model = zero_shot(family)
    encoded = model.encode(SENTENCES)
    ids, mask = pad(encoded, model.tokenizer.pad_token_id)
    reference = model.reference_ids(ids)
    for row, (words, one) in enumerate(zip(SENTENCES, encoded, strict=True)):
        assert {w for w in one.word_ids if w is not None} == set(range(len(words)))
        assert one.word_ids.count(None) >= len(model.cue)
        for i, word in enumerate(one.word_ids):
            assert reference[row, i] == (
                one.ids[i] if word is None else model.tokenizer.pad_token_id
            )


def test_the_cue_names_the_classes_and_the_mask_once():
    model = zero_shot("bert")
    text = model.tokenizer.convert_ids_to_tokens(model.cue)
    assert (
        text.count("[MASK]") == 1
        and text[0] == "female"
        and "neutral" in text[: text.index("[MASK]")]
    )
    assert model.tokenizer.convert_ids_to_tokens(model.label_ids) == list(LABEL_WORDS.values())


def test_similarity_is_the_cosine_of_mean_vectors():
    model = zero_shot("electra")
    (one,), labels = (
        model.encode(SENTENCES[:1]),
        model.encode([t.split() for t in DESCRIPTIONS.values()]),
    )
    with torch.no_grad():
        mean = [
            model.module(input_ids=torch.tensor([e.ids])).last_hidden_state[0].mean(0)
            for e in (one, *labels)
        ]
        ours = model.logits(
            model.embed(torch.tensor([one.ids])), torch.ones(1, len(one.ids), dtype=torch.long)
        )[0]
    by_hand = [20 * torch.cosine_similarity(mean[0], label, dim=0).item() for label in mean[1:]]
    assert ours.tolist() == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.parametrize("family", KINDS)
def test_the_kind_follows_from_what_the_model_has(family, tmp_path):
    kind, auto = KINDS[family]
    model = zero_shot_model(saved(tmp_path, family, auto), "", ("F", "M"))
    assert type(model) is kind and model.predict(SENTENCES, 4).shape == (len(SENTENCES), 2)


def test_a_permutation_language_model_is_not_taken_for_a_causal_one(tmp_path):
    folder = saved(tmp_path, "xlnet", tf.AutoModelForCausalLM)
    assert type(zero_shot_model(folder, "", ("F", "M", "NB"))) is LabelSimilarity


def test_class_words_that_begin_alike_are_refused():
    with pytest.raises(
        TouchstoneError, match="does not tell female, female apart by their first pieces"
    ):
        PromptedMaskedLM(
            *tiny_module("bert", tf.AutoModelForMaskedLM), {"F": "female", "M": "female"}
        )


def test_a_cue_that_makes_a_sentence_too_long_is_refused():
    with pytest.raises(TouchstoneError, match="the model reads at most 60"):
        zero_shot("gpt2").encode([["a"] * 55])
