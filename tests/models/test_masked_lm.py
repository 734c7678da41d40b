"""Masked language models: the head on chosen positions, what is trained, keeping and reading, and
what is refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers as tf
from tiny_models import saved, tiny_module
from tiny_models import tiny_masked_lm as tiny

from lib.core.errors import TouchstoneError
from lib.models.masked_lm import (
    MaskedLM,
    new_masked_lm,
    pretrained_masked_lm,
    read_masked_lm,
    save_masked_lm,
)
from lib.models.text_model import Encoded


def encoder_folder(tmp_path: Path) -> str:
    """A saved encoder without a head, as MiniLM is."""
    return saved(tmp_path, "bert", tf.AutoModel)


def masked(model: MaskedLM, text: str) -> list[Encoded]:
    return model.encode(
        [[model.tokenizer.mask_token if word == "_" else word for word in text.split()]]
    )


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
def test_log_probabilities_are_those_of_the_whole_module_at_the_mask(family: str) -> None:
    model = tiny(family)
    short, long = (
        masked(model, "She loves _ piano ."),
        masked(model, "They sing to _ friends about a person ."),
    )
    found = model.log_prob([*long, *short], batch_size=2)
    for one, row in zip([*long, *short], found, strict=True):
        whole = model.module(torch.tensor([one.ids])).logits[
            0, one.ids.index(model.tokenizer.mask_token_id)
        ]
        torch.testing.assert_close(row, whole.log_softmax(-1), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.exp().sum(1), torch.ones(2))


def test_sentence_needs_exactly_one_mask() -> None:
    model = tiny("bert")
    for text, n in (("They sing .", 0), ("_ sing _", 2)):
        with pytest.raises(TouchstoneError, match=f"sentence 0 has {n} mask tokens"):
            model.log_prob(masked(model, text))


def test_new_head_is_tied_to_the_word_table_and_drawn_from_its_seed(tmp_path: Path) -> None:
    folder = encoder_folder(tmp_path)
    first, again, other = (new_masked_lm(folder, seed) for seed in (1, 1, 2))
    assert first.module.get_output_embeddings().weight is first.module.get_input_embeddings().weight
    heads = [model.trained_parameters("head") for model in (first, again, other)]
    assert set(heads[0]) and all(".embeddings." not in name for name in heads[0])
    drawn = next(name for name, p in heads[0].items() if p.ndim == 2)
    assert torch.equal(heads[0][drawn], heads[1][drawn]) and not torch.equal(
        heads[0][drawn], heads[2][drawn]
    )
    tables = [model.module.get_input_embeddings().weight for model in (first, other)]
    assert torch.equal(*tables)


def test_what_is_trained_grows_from_head_to_encoder_to_all() -> None:
    model = tiny("bert")
    head, encoder, everything = (
        model.trained_parameters(tuned) for tuned in ("head", "encoder", "all")
    )
    assert head.keys() < encoder.keys() < everything.keys()
    table = model.module.get_input_embeddings().weight
    assert all(p is not table for p in encoder.values()) and any(
        p is table for p in everything.values()
    )
    with pytest.raises(TouchstoneError, match="tuned is 'body'"):
        model.trained_parameters("body")


def test_kept_model_comes_back_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    model = new_masked_lm(encoder_folder(tmp_path), 3)
    with torch.no_grad():
        for p in model.trained_parameters("encoder").values():
            p.add_(0.01)
    path = tmp_path / "kept" / "seed3"
    save_masked_lm(
        model, path, {"encoder": str(tmp_path / "bert"), "revision": "", "seed": 3}, "encoder"
    )
    weights = path.with_suffix(".safetensors")
    back = read_masked_lm(path.with_suffix(".json"), weights)
    one = masked(model, "She loves _ piano .")
    assert torch.equal(model.log_prob(one), back.log_prob(one))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(TouchstoneError, match="SHA-256"):
        read_masked_lm(path.with_suffix(".json"), weights)


def test_checkpoint_without_a_head_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="no masked-LM head .*BertModel"):
        pretrained_masked_lm(encoder_folder(tmp_path))


def test_checkpoint_with_a_head_is_read_with_it(tmp_path: Path) -> None:
    model, back = (
        tiny("bert"),
        pretrained_masked_lm(saved(tmp_path, "bert", tf.AutoModelForMaskedLM)),
    )
    one = masked(model, "She loves _ piano .")
    torch.testing.assert_close(model.log_prob(one), back.log_prob(one))


def test_model_without_a_mask_token_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="has no mask token"):
        MaskedLM(*tiny_module("gpt2", tf.AutoModelForCausalLM))


def test_mean_vectors_by_hand() -> None:
    model = tiny("bert")
    one = model.encode([["They", "sing", "."]])[0]
    ids = torch.tensor([one.ids])
    inside = [i for i, word in enumerate(one.word_ids) if word is not None]
    found = model.mean_vectors(
        [["They", "sing", "."], ["She", "loves", "her", "piano"]], contextual=False
    )
    torch.testing.assert_close(found[0], model.embed(ids)[0, inside].mean(0).detach())
    states = model.module.base_model(ids).last_hidden_state[0, inside].mean(0).detach()
    torch.testing.assert_close(
        model.mean_vectors([["They", "sing", "."]], contextual=True)[0],
        states,
        atol=1e-5,
        rtol=1e-4,
    )
