"""What must hold for any sentence: drawn at random, on every architecture, for every method that sees a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import CLASSES, LinearText, build
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.attribution import METHODS, explain, explain_many
from lib.attribution.budget import TokenBudget
from lib.attribution.explain import token_batch
from lib.attribution.seam import Row, TokenBatch
from lib.attribution.words import word_scores
from lib.models.face import RunsFromEmbeddings

FEW = {"Integrated Gradients": {"n_steps": 4}, "LIME": {"n_samples": 12}, "Kernel SHAP": {"n_samples": 12},
       "SmoothGrad": {"n_samples": 2}, "Shapley sampling": {"n_samples": 2}, "Gradient SHAP": {"n_samples": 2}}
SEEING = {name: FEW.get(name, {}) for name, method in METHODS.items() if method.family != "floor"}
TOKEN = {name: chosen for name, chosen in SEEING.items() if METHODS[name].level == "token"}
COMPLETE = ("DeepLift", "DeepLift rescale", "Integrated Gradients", "Gradient SHAP", "Kernel SHAP", "Shapley sampling", "Exact Shapley",
            "Partition SHAP")
WORDS = ("she", "he", "they", "the", "sing", "sings", "singer", "a", "old", "song", ".")
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)
quick = settings(max_examples=6, deadline=None, derandomize=True)
KINDS = ("BERT", "Llama", "OLA")
MODELS = {kind: build(kind) for kind in KINDS}


def table(sentences: list[list[str]]) -> pd.DataFrame:
    return pd.DataFrame({"row_id": [f"{i}-{CLASSES[i % 3]}" for i in range(len(sentences))],
                         "sentence_idx": range(len(sentences)), "target": [i % 3 for i in range(len(sentences))],
                         "sentence": sentences})


def batch_of(model: RunsFromEmbeddings, words: list[str], explained: str = "logit") -> TokenBatch:
    return token_batch(model, [Row("1", 1, 0, words, seed=7)], model.encode([words]), explained)


def close(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    """Equal to float32's rounding, whatever the size of the numbers."""
    size = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-4 * size + 1e-5, err_msg=what)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(sentences=st.lists(SENTENCE, min_size=2, max_size=5), data=st.data())
def test_neighbours_and_order_change_nothing(kind: str, sentences: list[list[str]], data: st.DataObject) -> None:
    rows = table(sentences)
    shuffled = rows.iloc[data.draw(st.permutations(range(len(rows))))]
    together = explain_many(MODELS[kind], rows, list(SEEING.items()), seed=1).set_index(["method", "row_id"]).scores
    other = explain_many(MODELS[kind], shuffled, list(SEEING.items()), seed=1).set_index(["method", "row_id"]).scores
    alone = explain_many(MODELS[kind], rows.iloc[:1], list(SEEING.items()), seed=1).set_index(["method", "row_id"]).scores
    for key, scores in together.items():
        close(other[key], scores, str(key))
    for key, scores in alone.items():
        close(together[key], scores, str(key))


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(words=SENTENCE, tokens=st.integers(1, 60))
def test_the_size_of_a_batch_changes_nothing(kind: str, words: list[str], tokens: int) -> None:
    batch = batch_of(MODELS[kind], words)
    for name, chosen in TOKEN.items():
        small = METHODS[name].function(replace(batch, budget=TokenBudget(tokens)), **chosen)
        close(small.scores.numpy(), METHODS[name].function(batch, **chosen).scores.numpy(), name)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(words=SENTENCE, n=st.integers(1, 4))
def test_padding_changes_nothing_and_gets_nothing(kind: str, words: list[str], n: int) -> None:
    model = MODELS[kind]
    batch = batch_of(model, words)
    pads = model.embed(torch.full((1, n), model.tokenizer.pad_token_id)).detach()
    mask, is_word = (torch.nn.functional.pad(tensor, (0, n)) for tensor in (batch.mask, batch.is_word))
    longer = replace(batch, embeddings=torch.cat([batch.embeddings, pads], 1), mask=mask, is_word=is_word,
                     reference=torch.cat([batch.reference, pads], 1))
    for name, chosen in TOKEN.items():
        if name == "SmoothGrad":  # its noise is drawn per token, so a longer row draws other noise
            continue
        found = METHODS[name].function(longer, **chosen).scores.numpy()
        close(found[:, :-n], METHODS[name].function(batch, **chosen).scores.numpy(), name)
        assert np.abs(found[:, -n:]).max() <= 1e-5, name


@quick
@given(left=st.lists(st.sampled_from(["she", "sings", "nothing"]), min_size=1, max_size=6))
def test_complete_methods_sum_to_the_change(left: list[str]) -> None:
    """On a linear model every one of them is exact, with however few points or draws; each word adds its own."""
    model = LinearText()
    rows = pd.DataFrame({"row_id": ["1"], "sentence_idx": [1], "target": [0], "sentence": [left]})
    adds = {"she": 1 - 1, "sings": -3 - 1, "nothing": 0 - 1}
    for name in COMPLETE:
        chosen = {"n_samples": 12} if name in ("Kernel SHAP", "Shapley sampling") else {}
        scores = explain(model, rows, name, {"explained": "logit", **chosen}).scores[0]
        assert sum(scores) == pytest.approx(sum(adds[word] for word in left), abs=1e-3), name
        if name != "Kernel SHAP":
            assert scores == pytest.approx([adds[word] for word in left], abs=1e-4), name


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(words=SENTENCE)
def test_coalition_methods_are_complete_on_any_model(kind: str, words: list[str]) -> None:
    for name in ("Shapley sampling", "Exact Shapley", "Partition SHAP"):
        found = METHODS[name].function(batch_of(MODELS[kind], words, "probability"))
        assert abs(found.delta.item()) < 1e-5, name


@quick
@given(word=st.sampled_from(WORDS), others=st.lists(st.sampled_from(WORDS), max_size=3))
def test_two_words_that_do_the_same_get_the_same(word: str, others: list[str]) -> None:
    """OLA does not know positions, so the same word twice is two equal players: symmetry."""
    words = [word, *others, word]
    rows = table([words])
    for name in ("Saliency", "Gradient norm", "InputXGradient", "Integrated Gradients", "DeepLift", "Occlusion", "Exact Shapley"):
        scores = explain(MODELS["OLA"], rows, name, FEW.get(name)).scores[0]
        close(np.array(scores[:1]), np.array(scores[-1:]), name)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(words=SENTENCE, at=st.integers(0, 5))
def test_a_word_without_a_token_gets_zero_and_changes_nothing(kind: str, words: list[str], at: int) -> None:
    """A lone space is a word of the row, but the model cannot see it."""
    blank = [*words[:at], " ", *words[at:]]
    at = blank.index(" ")
    chosen = [(name, settings) for name, settings in TOKEN.items()]
    with_blank = explain_many(MODELS[kind], table([blank]), chosen).set_index("method").scores
    plain = explain_many(MODELS[kind], table([words]), chosen).set_index("method").scores
    for name, scores in with_blank.items():
        assert scores[at] == 0, name
        close(np.delete(scores, at), np.array(plain[name]), name)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(words=SENTENCE)
def test_a_word_is_the_sum_of_its_pieces(kind: str, words: list[str]) -> None:
    model = MODELS[kind]
    encoded = model.encode([words])[0]
    row = table([words])
    for name in ("InputXGradient", "Occlusion", "Exact Shapley"):
        tokens = METHODS[name].function(batch_of(model, words, METHODS[name].defaults["explained"])).scores[0].numpy()
        expected = word_scores(tokens, encoded.word_ids, len(words))
        close(np.array(explain(model, row, name).scores[0]), expected, name)
        by_hand = [sum(t for t, w in zip(tokens, encoded.word_ids, strict=True) if w == i) for i in range(len(words))]
        close(expected, np.array(by_hand), name)


@quick
@given(words=SENTENCE, order=st.permutations(range(3)))
def test_relabelling_the_classes_relabels_the_explanations(words: list[str], order: list[int]) -> None:
    model, other = MODELS["BERT"], build("BERT")
    with torch.no_grad():
        other.module.classifier.weight.copy_(model.module.classifier.weight[order])
        other.module.classifier.bias.copy_(model.module.classifier.bias[order])
    before = explain_many(model, table([words]).assign(target=order[0]), list(SEEING.items())).scores
    after = explain_many(other, table([words]), list(SEEING.items())).scores
    for name, one, two in zip(SEEING, before, after, strict=True):
        close(np.array(two), np.array(one), name)
