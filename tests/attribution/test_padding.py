"""Rows of similar length in one pass: each row's explanation is that of the row alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import CAUSAL, SENTENCES, as_rows, build
from tiny_models import FAMILIES, TEXTS, tiny

from lib.attribution import explain, explain_many
from lib.models.ola import OneLayerAttention
from lib.models.shortcuts import ignores_padding
from lib.models.text_model import RunsFromEmbeddings, TextModel, length_buckets, padded_buckets

KINDS = ("BERT", "RoBERTa", "GPT-2", *CAUSAL, "OLA", "masked LM", "causal LM", "similarity")
SINGLE = ["Saliency", "InputXGradient", "Guided Backprop", "Gradient norm", "DeepLift"]


def asked(texts: list[str]) -> object:
    """Texts whose lengths differ by little, so that they go together, and by much."""
    longer = [f"{text} he" for text in texts]
    return as_rows([*texts, *longer, *(f"{text} sings" for text in longer)])


def assert_as_alone(model: TextModel, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[tuple[int, int]] = []
    plain = type(model).logits

    def noting(self: TextModel, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        widths.extend({(int(mask.sum(1).min()), mask.shape[1])})
        return plain(self, embeddings, mask)

    monkeypatch.setattr(type(model), "logits", noting)
    rows = asked(texts)
    found = explain_many(model, rows, SINGLE)
    assert any(shortest < width for shortest, width in widths[1:]), "nothing was padded"
    alone = [explain_many(model, rows.iloc[[i]], SINGLE) for i in range(len(rows))]
    for line in found.itertuples():
        other = next(t for t in alone if t.row_id[0] == line.row_id).set_index("method")
        expected = other.loc[line.method]
        scale = max(1.0, np.abs(expected.scores).max())
        np.testing.assert_allclose(line.scores, expected.scores, atol=2e-5 * scale)
        if line.method == "DeepLift":
            assert line.delta == pytest.approx(expected.delta, abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_padding_moves_no_score(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(kind)
    assert ignores_padding(model)
    assert_as_alone(model, SENTENCES[:4], monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_nor_in_any_architecture(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute positions, XLNet's relative ones, and tokens that are read at the end."""
    model = tiny(family)
    assert ignores_padding(model)
    assert_as_alone(model, [TEXTS[0], TEXTS[4]], monkeypatch)


class Mean(RunsFromEmbeddings):
    """A model that takes padding for words: the mean over everything."""

    def __init__(self) -> None:
        base = build("BERT")
        self.module, self.tokenizer, self.classes = base.module, base.tokenizer, base.classes
        self.max_length = base.max_length

    def logits(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.module.classifier(torch.tanh(embeddings.mean(1)))


def test_a_model_that_takes_padding_for_words_gets_none() -> None:
    model, rows = Mean(), asked(SENTENCES[:3])
    assert not ignores_padding(model)
    found = explain(model, rows, "InputXGradient")
    for i in range(len(rows)):
        alone = explain(model, rows.iloc[[i]], "InputXGradient")["scores"][0]
        np.testing.assert_allclose(found["scores"][i], alone, atol=1e-6)
    tokenizer = build("BERT").tokenizer
    args = tokenizer, range(len(tokenizer)), model.classes
    assert not ignores_padding(OneLayerAttention(*args, seed=0, variant="as_released"))
    assert ignores_padding(OneLayerAttention(*args, seed=0))


def test_a_model_is_asked_once_about_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_of, plain = list[int](), Mean.logits

    def noting(self: Mean, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        asked_of.append(len(mask))
        return plain(self, embeddings, mask)

    monkeypatch.setattr(Mean, "logits", noting)
    model = Mean()
    assert not ignores_padding(model) and len(asked_of) == 3
    assert not ignores_padding(model) and len(asked_of) == 3
    same_module = build("BERT")
    same_module.module = model.module
    assert ignores_padding(same_module), "another way through the same network is another model"


@given(st.lists(st.integers(1, 60), max_size=40), st.integers(1, 300))
def test_the_batches_hold_every_row_once_and_cost_no_more_than_those_of_one_length(
    lengths: list[int], n_tokens: int
) -> None:
    found = padded_buckets(lengths, n_tokens, padding=0.1, per_pass=26)
    assert sorted(i for bucket in found for i in bucket) == list(range(len(lengths)))
    for bucket in found:
        real = [lengths[i] for i in bucket]
        assert real == sorted(real)
        padded = len(real) * real[-1]
        assert len(bucket) == 1 or padded <= min(n_tokens, 1.1 * sum(real) + 1e-9)

    def cost(buckets: list[list[int]]) -> int:
        return sum(26 + len(b) * max(lengths[i] for i in b) for b in buckets)

    exact = [
        bucket[at : at + max(1, n_tokens // lengths[bucket[0]])]
        for bucket in length_buckets(lengths)
        for at in range(0, len(bucket), max(1, n_tokens // lengths[bucket[0]]))
    ]
    assert cost(found) <= cost(exact)


def test_thirty_two_sentences_of_mixed_length_take_few_passes() -> None:
    lengths = np.random.default_rng(0).normal(21, 6, 32).round().clip(8, 39).astype(int).tolist()
    found = padded_buckets(lengths, 2048, padding=0.1, per_pass=26)
    assert len(found) <= 8 < len(set(lengths))
