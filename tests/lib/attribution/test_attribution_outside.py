"""Somebody's own classifier: wrapped, explained, and every bad input answered by one clear sentence."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import SENTENCES, as_rows, build, tiny_tokenizer
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, BertModel

from lib.attribution import explain, explain_texts, word_list, wrap
from lib.attribution.table import validated
from lib.errors import TouchstoneError
from lib.models.hf import HFClassifier


@pytest.fixture
def module() -> BertForSequenceClassification:
    return build("BERT").module


def test_five_lines_give_what_the_engine_gives(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer(), ["F", "M", "NB"])
    found = explain_texts(model, SENTENCES[:2], "Integrated Gradients", classes=["F", 1], settings={"n_steps": 5})
    direct = explain(model, as_rows(SENTENCES[:2], [0, 1]), "Integrated Gradients", {"n_steps": 5})
    assert found["scores"].tolist() == direct["scores"].tolist()
    validated(found, "own")


def test_the_predicted_class_is_asked_about_unless_another_is_named(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer())
    found = explain_texts(model, [["he", "sings"], "she"], "Occlusion")
    assert found["target"].tolist() == model.predict([["he", "sings"], ["she"]], 2).argmax(1).tolist()
    assert explain_texts(model, ["he sings"], "Occlusion", "LABEL_2")["target"].tolist() == [2]


def test_word_scores_are_plain_data(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer(), ["F", "M", "NB"])
    found = explain_texts(model, ["he sings"], "Saliency", "M")
    plain = json.loads(json.dumps(word_list(found, model.classes)))
    assert plain == [{"text": "he sings", "class": "M", "method": "Saliency", "explained": "logit",
                      "words": [[word, score] for word, score in zip(["he", "sings"], found["scores"][0], strict=True)]}]


def test_a_class_that_does_not_exist(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer(), ["female", "male", "neutral"])
    with pytest.raises(TouchstoneError, match="no class 'femal'; did you mean 'female'.*0 female, 1 male, 2 neutral"):
        explain_texts(model, ["he"], "LIME", "femal")
    with pytest.raises(TouchstoneError, match="no class 3"):
        explain_texts(model, ["he"], "LIME", 3)
    with pytest.raises(TouchstoneError, match="2 classes are given for 1 texts"):
        explain_texts(model, ["he"], "LIME", [0, 1])


def test_an_over_long_and_an_empty_text(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer())
    with pytest.raises(TouchstoneError, match=r"sentence 0 \(he he he he he \.\.\.\) has 32 tokens and the model reads at most 24"):
        explain_texts(model, ["he " * 30], "Saliency", 0)
    with pytest.raises(TouchstoneError, match="text 1 has no words"):
        explain_texts(model, ["he", "  "], "Saliency", 0)


class WithoutGradient(BertForSequenceClassification):
    @torch.no_grad()
    def forward(self, *args: object, **kwargs: object) -> object:
        return super().forward(*args, **kwargs)


def test_a_model_without_gradients_has_perturbation_methods_left(module: nn.Module) -> None:
    frozen = WithoutGradient(module.config).eval()
    frozen.load_state_dict(module.state_dict())
    model = wrap(frozen, tiny_tokenizer())
    with pytest.raises(TouchstoneError, match="no gradient in its word embeddings.*take Occlusion, LIME or Kernel SHAP"):
        explain_texts(model, ["he sings"], "Saliency", 0)
    same = explain_texts(wrap(module, tiny_tokenizer()), ["he sings"], "Occlusion", 0)
    np.testing.assert_allclose(explain_texts(model, ["he sings"], "Occlusion", 0)["scores"][0], same["scores"][0], atol=1e-6)


def test_a_tokenizer_without_offsets(module: nn.Module) -> None:
    slow = SimpleNamespace(is_fast=False)
    with pytest.raises(TouchstoneError, match="does not tell which word a token comes from; load the fast tokenizer"):
        wrap(module, slow)


def test_a_tokenizer_that_takes_no_lists_of_words(module: nn.Module) -> None:
    class Byte:
        is_fast = True

        def __call__(self, texts: object, is_split_into_words: bool) -> None:
            raise AssertionError("needs add_prefix_space")

    with pytest.raises(TouchstoneError, match="load it with add_prefix_space=True"):
        wrap(module, Byte())


def test_something_that_is_no_classifier(module: nn.Module) -> None:
    with pytest.raises(TouchstoneError, match="is no model of transformers"):
        wrap(nn.Linear(2, 2), tiny_tokenizer())
    bare = BertModel(BertConfig(vocab_size=len(tiny_tokenizer()), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                intermediate_size=16, max_position_embeddings=24))
    with pytest.raises(TouchstoneError, match="gives no row of class scores"):
        wrap(bare, tiny_tokenizer())
    with pytest.raises(TouchstoneError, match="has 3 outputs and 2 classes are named"):
        wrap(module, tiny_tokenizer(), ["F", "M"])
    assert isinstance(wrap(module, tiny_tokenizer()), HFClassifier)
