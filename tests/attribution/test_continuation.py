"""Continuations: each token as the next word would be explained, however they are batched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from causal_families import DECODERS, decoder
from tiny_language_models import tiny_lm

from lib.attribution.continuation import explain_continuation
from lib.attribution.next_word import explain_next_word
from lib.core.errors import TouchstoneError
from lib.models.hf_lm import HFLanguageModel
from lib.plots import plot_continuation

PROMPT = "she sings the old"
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}> {{ m.content }} </{{ m.role }}>\n{% endfor %}<model> "
)


@pytest.mark.parametrize("family", DECODERS)
def test_each_token_is_explained_as_a_next_word_is(family: str) -> None:
    """The rows of a batch have different lengths; alone, there is no padding."""
    pair, method = decoder(family), {"method": "InputXGradient"}
    found = explain_continuation(*pair, PROMPT, "song . sings", **method)
    assert found["token"].drop_duplicates().tolist() == ["song", ".", "sings"]
    before = PROMPT.split()
    for place, token in enumerate(["song", ".", "sings"]):
        expected = explain_next_word(*pair, before, token, **method)
        part = found[found["place"] == place]
        assert part["word"].tolist() == before
        np.testing.assert_allclose(part["score"], expected["score"], rtol=2e-3, atol=1e-5)
        assert part["segment"].tolist() == ["prompt"] * 4 + ["continuation"] * place
        before = [*before, token]


@pytest.mark.parametrize("architecture", ["LSTM", "QRNN", "Transformer"])
def test_our_own_language_models_are_explained_too(architecture: str) -> None:
    from tiny_language_models import VOCABULARY

    lm, words = tiny_lm(architecture), list(VOCABULARY.ids)[3:7]
    found = explain_continuation(
        lm, VOCABULARY, " ".join(words[:2]), " ".join(words[2:]), method="InputXGradient"
    )
    expected = explain_next_word(lm, VOCABULARY, words[:3], words[3], method="InputXGradient")
    last = found[found["place"] == 1]["score"]
    np.testing.assert_allclose(last, expected["score"], rtol=1e-3, atol=1e-6)
    with pytest.raises(TouchstoneError, match="has no chat template; hand in the prompt as a text"):
        explain_continuation(lm, VOCABULARY, [{"role": "user", "content": "a"}], words[0])


def test_integrated_gradients_add_up_for_every_token() -> None:
    found = explain_continuation(*decoder("Llama"), PROMPT, "song .")
    assert set(found.attrs["delta"]) == {0, 1}
    for place, gap in found.attrs["delta"].items():
        total = found.loc[found["place"] == place, "score"].sum()
        assert abs(gap) <= 0.011 * abs(total) + 1e-4


def test_a_foil_is_held_against_the_token_at_its_place() -> None:
    pair, method = decoder("GPT-2"), {"method": "InputXGradient"}
    found = explain_continuation(*pair, PROMPT, "song .", foil="song sings", **method)
    assert found["place"].unique().tolist() == [1]  # the first tokens are equal
    expected = explain_next_word(*pair, f"{PROMPT} song", ".", "sings", **method)
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-3, atol=1e-6)
    with pytest.raises(TouchstoneError, match="has 1 tokens and the foil 2; give a foil of as"):
        explain_continuation(*pair, PROMPT, "song", foil="song .")
    with pytest.raises(TouchstoneError, match="the foil is the continuation; give another one"):
        explain_continuation(*pair, PROMPT, "song", foil="song")


def chatting(monkeypatch: Any, n_positions: int = 80) -> tuple[Any, Any]:
    lm, tokenizer = decoder("GPT-2", n_positions)
    monkeypatch.setattr(tokenizer, "chat_template", TEMPLATE, raising=False)
    return lm, tokenizer


def test_a_conversation_has_its_segments(monkeypatch: Any) -> None:
    messages = [
        {"role": "system", "content": "sing the song"},
        {"role": "user", "content": "she sings"},
    ]
    found = explain_continuation(
        *chatting(monkeypatch), messages, "he sings", method="InputXGradient"
    )
    first = found[found["place"] == 0]
    of_words = dict(zip(first["word"], first["segment"]))
    assert of_words == {
        "<system>": "template",
        "sing": "system",
        "the": "system",
        "song": "system",
        "</system>": "template",
        "<user>": "template",
        "she": "user",
        "sings": "user",
        "</user>": "template",
        "<model>": "template",
    }
    assert first["score"].ne(0).all()
    figure, shown = plot_continuation(found, n_words=2)
    assert {"template", "system", "user", "continuation"} == set(shown["heading"])
    assert "…" in set(shown.loc[shown["heading"] == "system", "word"])
    assert figure.axes


def test_a_blank_at_the_end_of_a_prompt_changes_nothing() -> None:
    pair, method = decoder("GPT-2"), {"method": "InputXGradient"}
    found = explain_continuation(*pair, PROMPT + " ", "song", **method)
    assert found.equals(explain_continuation(*pair, PROMPT, "song", **method))


def test_bad_conversations_and_texts_are_refused(monkeypatch: Any) -> None:
    pair = decoder("GPT-2", 80)
    monkeypatch.setattr(pair[1], "chat_template", None, raising=False)
    user = [{"role": "user", "content": "she sings"}]
    with pytest.raises(TouchstoneError, match="has no chat template; set tokenizer.chat_template"):
        explain_continuation(*pair, user, "he")
    pair = chatting(monkeypatch)
    with pytest.raises(TouchstoneError, match="message 1 is .*; write its role and content"):
        explain_continuation(*pair, [*user, {"role": "user"}], "he")
    monkeypatch.setattr(pair[1], "chat_template", "{{ messages[0].content.upper() }} ")
    with pytest.raises(TouchstoneError, match="writes message 0 in another way; shorten or change"):
        explain_continuation(*pair, user, "he")
    with pytest.raises(TouchstoneError, match="the prompt is empty"):
        explain_continuation(*pair, " ", "he")
    with pytest.raises(TouchstoneError, match="the continuation is ''; write what follows"):
        explain_continuation(*pair, PROMPT, "")
    with pytest.raises(TouchstoneError, match="asks for whole sentences"):
        explain_continuation(*pair, PROMPT, "he", method="LIME")


@pytest.mark.slow
def test_a_prompt_of_two_thousand_tokens_goes_through_alone(monkeypatch: Any) -> None:
    """Neither many rows at once, nor the head's answer to every token of the prompt."""
    lm, tokenizer = decoder("Llama", 2100)
    seen, heads = [], []
    run, log_prob = HFLanguageModel.run, HFLanguageModel.log_prob

    def watched(self: Any, embeddings: torch.Tensor) -> torch.Tensor:
        seen.append(embeddings.shape[:2])
        return run(self, embeddings)

    def counted(self: Any, hidden: torch.Tensor) -> torch.Tensor:
        heads.append(hidden.shape[:-1].numel())
        return log_prob(self, hidden)

    wrapped = HFLanguageModel(lm)
    monkeypatch.setattr(HFLanguageModel, "run", watched)
    monkeypatch.setattr(HFLanguageModel, "log_prob", counted)
    prompt = " ".join(["she sings the old song ."] * 334)
    settings = {"n_steps": 3}
    found = explain_continuation(wrapped, tokenizer, prompt, "she sings .", settings=settings)
    assert len(found) == 3 * 2004 + 3 and max(length for _, length in seen) > 2000
    assert max(rows * length for rows, length in seen) < 2 * 2100
    assert max(heads) <= 2
