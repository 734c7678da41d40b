"""The common face: encoding, padding, bucketing, and the answer of a row alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, SENTENCES, tiny

from lib.core.errors import TouchstoneError
from lib.models.text_model import Encoded, TextModel, in_buckets, length_buckets, pad, special_ids


@pytest.mark.parametrize("family", FAMILIES)
def test_every_word_has_its_tokens_in_order(family):
    model = tiny(family)
    assert isinstance(model, TextModel)
    for words, one in zip(SENTENCES, model.encode(SENTENCES), strict=True):
        named = [w for w in one.word_ids if w is not None]
        assert named == sorted(named) and set(named) == set(range(len(words)))
        of_word = {
            i: [t for t, w in zip(one.ids, one.word_ids, strict=True) if w == i] for i in named
        }
        alone = [
            model.tokenizer([w], is_split_into_words=True, add_special_tokens=False)["input_ids"]
            for w in words
        ]
        assert [of_word[i] for i in range(len(words))] == alone


def test_a_lone_space_has_no_token_and_keeps_the_numbers_of_the_others():
    (one,) = tiny("bert").encode([["She", " ", "sings"]])
    assert {w for w in one.word_ids if w is not None} == {0, 2}


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_sentence_longer_than_the_model_is_refused(family):
    model = tiny(family)
    with pytest.raises(
        TouchstoneError,
        match=r"sentence 1 \(a a a a a ...\) has \d+ tokens and the model reads at most 60; "
        "shorten",
    ):
        model.encode([["a"], ["a"] * 61])
    assert len(model.encode([["a"] * 58])[0].ids) <= 60


def test_no_sentences_give_no_encodings():
    assert tiny("bert").encode([]) == []


def test_buckets_hold_every_index_once_and_only_equal_lengths():
    lengths = torch.randint(1, 6, (50,), generator=torch.Generator().manual_seed(0)).tolist()
    buckets = length_buckets(lengths, 4)
    assert sorted(i for bucket in buckets for i in bucket) == list(range(50))
    assert all(len({lengths[i] for i in bucket}) == 1 and len(bucket) <= 4 for bucket in buckets)


def test_rows_come_back_in_their_order():
    encoded = [Encoded([n] * n, [None] * n) for n in (3, 1, 2, 3, 1)]
    assert in_buckets(
        lambda batch: torch.tensor([[len(one.ids)] for one in batch]), encoded, 2
    ).flatten().tolist() == [3, 1, 2, 3, 1]


def test_padding_can_be_wider_than_the_longest_row():
    ids, mask = pad([Encoded([4, 5], [0, 1])], pad_id=9, length=4)
    assert ids.tolist() == [[4, 5, 9, 9]] and mask.tolist() == [[1, 1, 0, 0]]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reference_keeps_special_tokens_and_nothing_else(family):
    model = tiny(family)
    (one,) = model.encode(SENTENCES[:1])
    reference = model.reference_ids(torch.tensor([one.ids]))[0].tolist()
    for token, kept, word in zip(one.ids, reference, one.word_ids, strict=True):
        assert kept == (token if word is None else model.tokenizer.pad_token_id)


def test_the_unknown_word_is_a_word_not_a_frame():
    tokenizer = tiny("bert").tokenizer
    assert tokenizer.unk_token_id not in special_ids(
        tokenizer
    ) and tokenizer.cls_token_id in special_ids(tokenizer)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prediction_does_not_depend_on_its_neighbours(family):
    model = tiny(family)
    together = model.predict(SENTENCES, batch_size=8)
    alone = [model.predict([words], batch_size=1)[0] for words in SENTENCES]
    assert together == pytest.approx(np.stack(alone), abs=1e-6)
    assert together.sum(1) == pytest.approx([1.0] * len(SENTENCES), abs=1e-5)
