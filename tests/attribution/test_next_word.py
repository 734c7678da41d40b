"""A next word of any decoder: the model's own log-probability, and methods that explain it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from causal_families import DECODERS, SHARED_KEYS, WIDE, decoder
from own_tokenizers import own_tokenizer
from small_models import tiny_tokenizer
from tiny_language_models import VOCABULARY, tiny_lm

from lib.attribution import METHODS
from lib.attribution.next_word import explain_next_word, next_word_batch
from lib.core.errors import TouchstoneError
from lib.models.hf import eager_attention
from lib.models.hf_lm import HFLanguageModel, Subwords
from lib.models.language_model import END

WORDS = "she sings the old".split()


def with_our_face(family: str) -> tuple[HFLanguageModel, Subwords]:
    module, tokenizer = decoder(family)
    return HFLanguageModel(module), Subwords(tokenizer, len(tokenizer))


@pytest.mark.parametrize("family", DECODERS)
def test_the_log_probability_is_the_models_own(family: str) -> None:
    """Also where the model scales or caps its scores, and of a word of two pieces."""
    lm, words = with_our_face(family)
    ids = [words.ids[END], *words.encode([*WORDS, "singer"])]
    with torch.no_grad():
        theirs = lm.hf(input_ids=torch.tensor([ids])).logits.log_softmax(-1)[0]
        batch = next_word_batch(lm, words, WORDS, "singer")
        ours = batch.score(batch.embeddings, batch.mask)[0]
    first = len(words.encode(WORDS)) + 1
    assert len(ids) - first > 1
    expected = sum(theirs[i - 1, ids[i]] for i in range(first, len(ids)))
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)
    hidden = lm.run(lm.embed(torch.tensor([ids])))[0]
    torch.testing.assert_close(lm.log_prob(hidden), theirs, rtol=1e-5, atol=1e-5)


def test_integrated_gradients_keep_their_promise_on_a_model_with_rms_norm() -> None:
    pair = with_our_face("Llama")
    found = explain_next_word(*pair, WORDS, "song", "singer")
    batch = next_word_batch(*pair, WORDS, "song", "singer")
    change = batch.change().item()
    assert abs(found["score"].sum() - change) <= 0.01 * abs(change) + 1e-5
    assert found.attrs["delta"] == pytest.approx(found["score"].sum() - change, abs=1e-5)
    assert found.attrs["steps"] > 9
    few = explain_next_word(*pair, WORDS, "song", "singer", settings={"n_steps": 3})
    assert few.attrs["delta"] == pytest.approx(few["score"].sum() - change, abs=1e-5)
    assert abs(few.attrs["delta"]) > 0.01 * abs(change)
    with pytest.warns(UserWarning, match="more than the tolerance of 0.001; give a larger"):
        explain_next_word(
            *pair, WORDS, "song", settings={"tolerance": 0.001, "max_steps": 9, "min_steps": 3}
        )
    assert explain_next_word(*pair, WORDS, "song", method="Saliency").attrs == {"delta": None}


def test_smooth_grad_has_a_sign_with_times_input() -> None:
    pair, signed = with_our_face("GPT-2"), {"times_input": True, "n_samples": 4}

    def found(word: str, foil: str | None = None, **settings: object) -> np.ndarray:
        chosen = signed | settings
        return explain_next_word(*pair, WORDS, word, foil, "SmoothGrad", chosen)["score"].to_numpy()

    np.testing.assert_allclose(
        found("song", "singer"), found("song") - found("singer"), rtol=1e-3, atol=1e-5
    )
    np.testing.assert_allclose(found("song", "singer"), -found("singer", "song"), atol=1e-5)
    assert (found("song", "singer") < 0).any() and (found("song", "singer") > 0).any()
    plain = explain_next_word(*pair, WORDS, "song", method="InputXGradient")["score"]
    np.testing.assert_allclose(found("song", noise=0.0), plain, rtol=1e-4, atol=1e-6)
    assert (found("song", times_input=False) > 0).all()


@pytest.mark.parametrize("family", ["GPT-2", "Llama", "Qwen2", "Cohere", "Gemma2", "OPT", "Falcon"])
def test_rules_see_the_attention_of_a_decoder(family: str) -> None:
    lm, words = with_our_face(family)
    module = lm.hf
    kind = module.config._attn_implementation
    if family == "Falcon":  # its attention cannot be switched later
        with pytest.raises(
            TouchstoneError, match="load the model with attn_implementation='eager'"
        ):
            explain_next_word(lm, words, WORDS, "song", method="AttnLRP")
        kind = module.config._attn_implementation = "eager"
    for method in ("AttnLRP", "DeepLift rescale"):
        found = explain_next_word(lm, words, WORDS, "song", method=method)
        with eager_attention(module):
            again = explain_next_word(lm, words, WORDS, "song", method=method)
        np.testing.assert_allclose(found["score"], again["score"], rtol=1e-5, atol=1e-6)
        assert module.config._attn_implementation == kind
    assert abs(found.attrs["delta"]) < 1e-3 * (1 + abs(found["score"]).sum())


def test_objects_in_hand_and_a_string_are_taken() -> None:
    module, tokenizer = decoder("GPT-2")
    pair = with_our_face("GPT-2")
    expected = explain_next_word(*pair, WORDS, "song", method="Saliency")
    for lm, words in ((module, tokenizer), (pair[0], tokenizer)):
        found = explain_next_word(lm, words, " ".join(WORDS), "song", method="Saliency")
        assert found["word"].tolist() == WORDS
        assert found["score"].tolist() == expected["score"].tolist()
    ours = explain_next_word(tiny_lm("LSTM"), VOCABULARY, "the dogs", "bark", method="Saliency")
    assert ours["word"].tolist() == ["the", "dogs"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settings": {"explained": "margin"}}, "no setting 'explained': its log-probability"),
        ({"settings": {"normalise_special": True}}, "no setting 'normalise_special'"),
        ({"settings": {"precision": "bfloat16"}}, "no setting 'precision'"),
        ({"prefix": 5}, "the prefix is 5; give a text, or a list of words"),
        ({"prefix": ["she", 3]}, "the prefix is .'she', 3.; give a text"),
        ({"word": 5}, "5 is no word; give the next word"),
        ({"foil": 5}, "5 is no word"),
        ({"word": ""}, "'' is no word"),
    ],
)
def test_what_a_next_word_does_not_have_is_refused(given: dict[str, Any], said: str) -> None:
    lm, words = with_our_face("GPT-2")
    with pytest.raises(TouchstoneError, match=said):
        explain_next_word(lm, words, **{"prefix": WORDS, "word": "song"} | given)


def test_what_is_so_anyway_may_be_said() -> None:
    said = {"explained": "log_probability", "normalise_special": False, "precision": "float32"}
    pair = with_our_face("GPT-2")
    found = explain_next_word(*pair, WORDS, "song", method="Saliency", settings=said)
    expected = explain_next_word(*pair, WORDS, "song", method="Saliency")
    assert found["score"].tolist() == expected["score"].tolist()
    usual = METHODS["Saliency"].settings()
    explain_next_word(*pair, WORDS, "song", method="Saliency", settings=usual)


def test_a_short_checkpoint_is_explained() -> None:
    module, tokenizer = decoder("Llama")
    exact = explain_next_word(module, tokenizer, WORDS, "song", method="Occlusion")["score"]
    short = explain_next_word(module.bfloat16(), tokenizer, WORDS, "song", method="Occlusion")
    np.testing.assert_allclose(short["score"], exact, atol=0.1)


def _refused(module: object, tokenizer: object, match: str, word: str = "song") -> None:
    with pytest.raises(TouchstoneError, match=match):
        explain_next_word(module, tokenizer, WORDS, word)


def test_what_predicts_no_next_word_is_refused_with_what_serves_it() -> None:
    tokenizer = own_tokenizer("GPT-2")
    n = {"vocab_size": len(tokenizer), "pad_token_id": None}
    torch.manual_seed(0)
    masked = tf.BertForMaskedLM(tf.BertConfig(**n, **WIDE, initializer_range=0.5))
    _refused(masked, tokenizer, "BertForMaskedLM sees the words to come.*PromptedMaskedLM")
    xlnet = tf.XLNetConfig(**n, d_model=16, n_layer=1, n_head=2, d_inner=16, initializer_range=0.5)
    _refused(tf.XLNetLMHeadModel(xlnet), tokenizer, "XLNetLMHeadModel sees the words to come")
    classifier = tf.LlamaForSequenceClassification(tf.LlamaConfig(**n, **SHARED_KEYS))
    _refused(classifier, tokenizer, "predicts no words.*wrap and explain_texts of lib.doors")
    t5 = tf.T5Config(**n, d_model=16, num_layers=1, num_heads=2, d_kv=8, d_ff=16)
    _refused(tf.T5ForConditionalGeneration(t5), tokenizer, "has an encoder")


def test_a_tokenizer_that_does_not_fit_is_refused() -> None:
    module, tokenizer = decoder("Llama")
    _refused(module, own_tokenizer("GPT-2"), "pieces and the model knows .*; hand in the tokenizer")
    _refused(module, SimpleNamespace(is_fast=False), "load the fast tokenizer")
    _refused("gpt2", tokenizer, "str and LlamaTokenizer are no language model and its words")
    words = tiny_tokenizer(framed=False)
    _refused(module, words, "does not know the word 'xyz'", word="xyz")
