"""Sequence classifiers from their word embeddings.

The same numbers as the plain model, whatever the padding.
"""

from __future__ import annotations

import pytest
import torch
from tiny_models import FAMILIES, LAST_TOKEN, SENTENCES, tiny
from transformers import ModernBertConfig, ModernBertForSequenceClassification

from lib.core.errors import TouchstoneError
from lib.models.hf import HFClassifier
from lib.models.schemes import PARTS
from lib.models.text_model import pad


@pytest.mark.parametrize("family", FAMILIES)
def test_from_word_embeddings_equals_the_plain_forward(family):
    model = tiny(family)
    for one in model.encode(SENTENCES):
        ids, mask = pad([one], model.tokenizer.pad_token_id)
        with torch.no_grad():
            plain = model.module(input_ids=ids, attention_mask=mask).logits
            ours = model.logits(model.embed(ids), mask)
        assert ours.shape == (1, 3) and plain.std() > 1e-3
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_changes_nothing(family):
    model = tiny(family)
    encoded = model.encode(SENTENCES)
    ids, mask = pad(encoded, model.tokenizer.pad_token_id, length=50)
    assert len({len(one.ids) for one in encoded}) > 2
    with torch.no_grad():
        padded = model.logits(model.embed(ids), mask)
        alone = torch.cat(
            [
                model.logits(
                    model.embed(torch.tensor([one.ids])),
                    torch.ones(1, len(one.ids), dtype=torch.long),
                )
                for one in encoded
            ]
        )
    torch.testing.assert_close(padded, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", LAST_TOKEN)
def test_the_last_real_token_is_read(family):
    model = tiny(family)
    assert not model.reads_first
    ids, mask = pad(model.encode(SENTENCES), model.tokenizer.pad_token_id)
    with torch.no_grad():
        hidden = model.module.base_model(
            inputs_embeds=model.embed(ids), attention_mask=mask
        ).last_hidden_state
        reading = model.reading(model.embed(ids), mask)["last_hidden_state"]
    for row, n in enumerate(mask.sum(1).tolist()):
        assert torch.equal(reading[row, 0], hidden[row, n - 1])
        assert not torch.allclose(reading[row, 0], hidden[row, 0])


def test_gpt2_scores_the_last_token_by_hand():
    model = tiny("gpt2")
    (one,) = model.encode(SENTENCES[:1])
    ids = torch.tensor([one.ids])
    with torch.no_grad():
        by_hand = (
            model.module.transformer(ids).last_hidden_state[0, -1] @ model.module.score.weight.T
        )
        ours = model.logits(model.embed(ids), torch.ones_like(ids))[0]
    torch.testing.assert_close(ours, by_hand, rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_head_alone_gives_the_same_scores(family):
    model = tiny(family)
    encoded = model.encode(SENTENCES)
    reading = model.read_all(encoded, batch_size=2)
    ids, mask = pad(encoded, model.tokenizer.pad_token_id)
    with torch.no_grad():
        torch.testing.assert_close(
            model.head(reading), model.logits(model.embed(ids), mask), rtol=0, atol=1e-5
        )
    assert "forward" not in vars(model.module.base_model)  # the encoder answers for itself again


@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_is_in_exactly_one_part(family):
    model = tiny(family)
    parts = model.parts()
    names = [name for part in PARTS for name in parts[part]]
    assert sorted(names) == sorted(name for name, _ in model.module.named_parameters()) and all(
        parts.values()
    )


def test_parts_of_the_four_named_families():
    found = {family: tiny(family).parts() for family in ("bert", "roberta", "xlnet", "gpt2")}
    assert set(found["bert"]["head"]) == {"classifier.weight", "classifier.bias"}
    assert "bert.pooler.dense.weight" in found["bert"]["encoder"]
    assert set(found["bert"]["embeddings"]) == {
        f"bert.embeddings.{name}"
        for name in (
            "word_embeddings.weight",
            "position_embeddings.weight",
            "token_type_embeddings.weight",
            "LayerNorm.weight",
            "LayerNorm.bias",
        )
    }
    assert {name.split(".")[0] for name in found["roberta"]["head"]} == {"classifier"}
    assert set(found["xlnet"]["embeddings"]) == {"transformer.word_embedding.weight"}
    assert {name.split(".")[0] for name in found["xlnet"]["head"]} == {
        "sequence_summary",
        "logits_proj",
    }
    assert set(found["gpt2"]["embeddings"]) == {"transformer.wte.weight", "transformer.wpe.weight"}
    assert set(found["gpt2"]["head"]) == {"score.weight"}


def test_gradients_reach_the_word_embeddings():
    model = tiny("gpt2")
    embeddings = (
        model.embed(torch.tensor([model.encode(SENTENCES)[0].ids])).detach().requires_grad_()
    )
    model.logits(embeddings, torch.ones(embeddings.shape[:2], dtype=torch.long))[0, 0].backward()
    assert embeddings.grad.abs().sum(-1).min() > 0


def test_a_head_that_reads_every_token_is_not_fed_one():
    tokenizer = tiny("bert").tokenizer
    torch.manual_seed(0)
    module = ModernBertForSequenceClassification(
        ModernBertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            pad_token_id=0,
            num_labels=3,
            classifier_pooling="mean",
            initializer_range=0.4,
            cls_token_id=2,
            sep_token_id=3,
            bos_token_id=2,
            eos_token_id=3,
        )
    )
    model = HFClassifier(module, tokenizer, ("F", "M", "NB"))
    with pytest.raises(TouchstoneError, match="reads more than one token"):
        model.read_all(model.encode(SENTENCES), 4)
