"""A tiny random GPT-2 in the place of our own language models.

Pieces, probes, saliency, a chosen next word.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as tf
from tiny_models import SENTENCES, saved

from lib.attribution.next_word import explain_next_word, next_word_batch
from lib.core.errors import TouchstoneError
from lib.models.hf_lm import load_hf_lm, save_hf_lm
from lib.models.language_model import END, build_vocabulary
from lib.models.probe import Probe, load_probe, save_probe
from lib.studies.lm_saliency.probe_saliency import (
    SaliencySettings,
    baseline_saliency,
    probe_saliency,
)
from lib.training.language_model import perplexity, pieces
from lib.training.probe import ProbeSettings, fit_probe

WORDS = "She loves her second-eldest piano".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tmp_path_factory.mktemp("gpt2"), "gpt2", tf.AutoModelForCausalLM)


def test_every_piece_has_its_word(folder) -> None:
    _, words = load_hf_lm(folder)
    ids, owners = words.encode(WORDS), words.owners(WORDS)
    assert len(ids) == len(owners) > len(WORDS) and sorted(set(owners)) == list(range(len(WORDS)))
    for i, word in enumerate(WORDS):
        mine = [piece for piece, owner in zip(ids, owners) if owner == i]
        assert words.tokenizer.decode(mine).strip() == word
    with pytest.raises(TouchstoneError, match="split the prefix at its blanks"):
        words.encode(["two words "])


def test_the_log_probabilities_are_the_models_own(folder) -> None:
    model, words = load_hf_lm(folder)
    ids = torch.tensor([[words.ids[END], *words.encode(WORDS)]])
    with torch.no_grad():
        theirs = model.hf(input_ids=ids).logits.log_softmax(-1)
        torch.testing.assert_close(model.log_prob(model.run(model.embed(ids))), theirs)
        found = model.hf(
            input_ids=torch.tensor([pieces([WORDS], words, 60)[0].ids])
        ).logits.log_softmax(-1)[0, :-1]
    targets = pieces([WORDS], words, 60)[0].ids[1:]
    expected = torch.exp(-found[range(len(targets)), targets].mean()).item()
    assert perplexity(model, pieces([WORDS], words, 60), words) == pytest.approx(expected, rel=1e-3)


def test_a_word_of_several_pieces_has_the_probability_of_all_of_them(folder) -> None:
    model, words = load_hf_lm(folder)
    batch, whole = (
        next_word_batch(model, words, WORDS[:3], "second-eldest"),
        [words.ids[END], *words.encode(WORDS[:4])],
    )
    n = len(words.encode(WORDS[:3])) + 1
    with torch.no_grad():
        log_prob = model.hf(input_ids=torch.tensor([whole])).logits.log_softmax(-1)[0]
        expected = sum(log_prob[i - 1, whole[i]] for i in range(n, len(whole)))
        torch.testing.assert_close(batch.score(batch.embeddings, batch.mask)[0], expected)
    assert len(whole) - n > 1


def test_a_chosen_word_against_a_foil_is_the_difference_of_both(folder) -> None:
    model, words = load_hf_lm(folder)
    alone = [
        explain_next_word(model, words, WORDS, word, settings={"n_steps": 300})["score"]
        for word in ("is", "are")
    ]
    both = explain_next_word(model, words, WORDS, "is", "are", settings={"n_steps": 300})
    assert list(both["word"]) == WORDS
    np.testing.assert_allclose(both["score"], alone[0] - alone[1], rtol=1e-3, atol=1e-4)
    batch = next_word_batch(model, words, WORDS, "is", "are")
    with torch.no_grad():
        change = batch.score(batch.embeddings, batch.mask) - batch.score(
            batch.baselines, batch.mask
        )
    assert both["score"].sum() == pytest.approx(change.item(), abs=0.02)
    with pytest.raises(TouchstoneError, match="LIME asks for whole sentences"):
        explain_next_word(model, words, WORDS, "is", method="LIME")


def test_a_probe_on_a_published_model_is_kept_and_explained(folder, tmp_path) -> None:
    model, words = load_hf_lm(folder)
    table = pd.DataFrame(
        [
            (split, " ".join(s[:n]), n % 2)
            for split in ("train", "valid")
            for s in SENTENCES[:2]
            for n in (2, 3)
        ],
        columns=["split", "prefix", "tag"],
    )
    probe, _ = fit_probe(model, words, ("singular", "plural"), table, ProbeSettings(2), seed=0)
    save_hf_lm(folder, "", tmp_path / "gpt2-full.json")
    save_probe(probe, tmp_path / "probe.safetensors")
    again = load_probe(
        tmp_path / "gpt2-full.safetensors", tmp_path / "probe.safetensors", probe.classes
    )
    np.testing.assert_allclose(again.predict([WORDS]), probe.predict([WORDS]), rtol=1e-5)
    one = probe_saliency(again, [WORDS], SaliencySettings("V"))[0]
    assert one.scores.shape == (2, len(WORDS))
    np.testing.assert_allclose(
        one.scores[0],
        -one.probability / (1 - one.probability) * one.scores[1],
        rtol=1e-3,
        atol=1e-6,
    )
    assert baseline_saliency(again, [WORDS], "Erasure")[0].scores.shape == (2, len(WORDS))


def test_more_pieces_than_positions_are_refused(folder) -> None:
    model, _ = load_hf_lm(folder)
    with pytest.raises(
        TouchstoneError, match="61 pieces at once, and GPT2LMHeadModel reads at most 60"
    ):
        model.run(model.embed(torch.zeros(1, 61, dtype=torch.long)))


def test_a_vocabulary_of_another_model_is_refused(folder) -> None:
    model, _ = load_hf_lm(folder)
    with pytest.raises(TouchstoneError, match="hand in the vocabulary"):
        Probe(model, build_vocabulary(SENTENCES), torch.nn.Linear(16, 2), ("a", "b"))
