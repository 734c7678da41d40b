"""The model sees what its own tokenizer makes of the meant text, whatever the tokenizer's kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from own_tokenizers import own_tokenizer
from small_models import FAMILIES, SENTENCES, build

from lib.core.errors import TouchstoneError
from lib.doors import explain_texts, wrap
from lib.models.text_model import encode_words
from lib.models.zero_shot import pieces_in_text

HF = [kind for kind in FAMILIES if kind != "OLA"]
TEXTS = [*SENTENCES, "the singer sings a song . .", "a"]
GLUES = (
    "RoBERTa",
    "GPT-2",
    "Qwen",
    "Gemma",
)  # given one by one, their words have no blank before them


@pytest.mark.parametrize("kind", HF)
def test_the_tokens_are_those_of_the_plain_text(kind: str) -> None:
    tokenizer = own_tokenizer(kind)
    for text, one in zip(
        TEXTS, encode_words(tokenizer, [text.split() for text in TEXTS], 99), strict=True
    ):
        assert one.ids == tokenizer(text)["input_ids"]
        for i, word in enumerate(text.split()):
            of_word = [token for token, of in zip(one.ids, one.word_ids, strict=True) if of == i]
            assert tokenizer.decode(of_word).replace(" ##", "").strip() == word
    split = tokenizer([TEXTS[0].split()], is_split_into_words=True)["input_ids"][0]
    assert (split != tokenizer(TEXTS[0])["input_ids"]) == (kind in GLUES)  # so the test can fail


@pytest.mark.parametrize("kind", HF)
def test_a_blank_word_changes_nothing_and_has_no_token(kind: str) -> None:
    tokenizer = own_tokenizer(kind)
    plain, blank = (
        one.ids
        for one in encode_words(
            tokenizer, [["he", "sings"], [" ", "he", "", " ", "sings", " "]], 99
        )
    )
    assert plain == blank
    found = encode_words(tokenizer, [[" ", "he", " ", "sings"]], 99)[0].word_ids
    assert {i for i in found if i is not None} == {1, 3}
    assert (
        encode_words(tokenizer, [[]], 99)[0].ids
        == encode_words(tokenizer, [[" "]], 99)[0].ids
        == tokenizer("")["input_ids"]
    )


@pytest.mark.parametrize("kind", HF)
def test_the_wrapped_model_says_what_the_model_says(kind: str) -> None:
    model = build(kind, own=True)
    wrapped = wrap(model.module, own_tokenizer(kind))
    found = wrapped.predict([text.split() for text in TEXTS], 4)
    with torch.no_grad():
        own = [
            model.module(**own_tokenizer(kind)(text, return_tensors="pt"))
            .logits.softmax(-1)[0]
            .numpy()
            for text in TEXTS
        ]
    np.testing.assert_allclose(found, np.stack(own), atol=1e-5)
    explained = explain_texts(wrapped, TEXTS[:1], "Integrated Gradients", 0)
    assert len(explained["scores"][0]) == len(TEXTS[0].split())


def test_a_token_that_covers_two_words_is_refused() -> None:
    tokenizer = own_tokenizer("Gemma")
    inner = (
        tokenizer.backend_tokenizer.to_str()
        .replace('"merges":[', '"merges":[["▁a","▁song"],')
        .replace('"vocab":{', '"vocab":{"▁a▁song":57,')
    )
    joining = type(tokenizer._tokenizer).from_str(inner)
    words = ["he", "sings", "a", "song"]
    assert joining.encode(" ".join(words)).tokens[-1] == "▁a▁song"

    def call(texts: list[str], verbose: bool) -> object:
        return type("Found", (), {"encodings": [joining.encode(text) for text in texts]})

    with pytest.raises(
        TouchstoneError, match="one token of 'a' and 'song'.*hand them in as one word"
    ):
        encode_words(call, [words], 99)
    assert encode_words(call, [["he", "sings", "a song"]], 99)[0].word_ids == [0, 1, 2]


@pytest.mark.parametrize("kind", HF)
def test_pieces_within_a_text_follow_a_blank(kind: str) -> None:
    tokenizer = own_tokenizer(kind)
    found = pieces_in_text(tokenizer, "she sings")
    assert (
        found
        == encode_words(tokenizer, [["he", "she", "sings"]], 99)[0].ids[
            (2 if kind in ("BERT", "RoBERTa") else 1) :
        ][:2]
    )
