"""Tiny random models of many families, each with a small tokenizer of its own kind."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers as tf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from lib.models.hf import HFClassifier
from lib.models.masked_lm import MaskedLM

CLASSES = ("F", "M", "NB")
TEXTS = [
    "She loves her old piano .",
    "He is a second-eldest son , and his horse loves him .",
    "They sing .",
    "The singer sings to their friends about a neutral male or female person .",
    "This sentence : is a woman ,",
]
SENTENCES = [text.split() for text in TEXTS]
ENCODERS = ("bert", "roberta", "distilbert", "electra")
LAST_TOKEN = ("xlnet", "gpt2", "llama")
FAMILIES = ENCODERS + LAST_TOKEN


def _pieces(words: set[str]) -> set[str]:
    """Short words and single letters.

    The trainers of WordPiece and Unigram break ties anew in each process, these pieces stay.
    """
    return {letter for word in words for letter in word} | {word for word in words if len(word) < 8}


@cache
def word_piece() -> Any:
    """BERT's kind: class token first, separator last, pieces marked with ##."""
    words = {
        piece
        for text in TEXTS
        for piece, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text.lower())
    }
    found = _pieces(words)
    pieces = sorted(found | {f"##{piece}" for piece in found if len(piece) == 1})
    return tf.BertTokenizer(
        vocab={
            piece: i
            for i, piece in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces])
        },
        model_max_length=60,
    )


@cache
def byte_pairs(
    framed: bool, texts: tuple[str, ...] = tuple(TEXTS * 20), n_vocab: int = 420, places: int = 60
) -> Any:
    """RoBERTa's kind (framed by <s> and </s>) and GPT-2's (bare, and without a padding token).

    `places`: the most tokens of a text.
    """
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    inner.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if framed else ["<|endoftext|>"]
    inner.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=n_vocab,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if not framed:
        return tf.PreTrainedTokenizerFast(
            tokenizer_object=inner,
            bos_token="<|endoftext|>",
            eos_token="<|endoftext|>",
            unk_token="<|endoftext|>",
            model_max_length=places,
        )
    inner.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=True
    )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        cls_token="<s>",
        sep_token="</s>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
        model_max_length=places,
    )


@cache
def unigram() -> Any:
    """XLNet's kind: separator and class token last, padding on the left."""
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"]
    found = sorted(_pieces({f"▁{word}" for text in TEXTS for word in text.split()}))
    scored = [(piece, 0.0) for piece in special] + [
        (piece, -2.0 if len(piece) > 1 else -5.0) for piece in found
    ]
    inner = Tokenizer(models.Unigram(scored, unk_id=0))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.post_processor = processors.TemplateProcessing(
        "$A <sep> <cls>", special_tokens=[("<sep>", 4), ("<cls>", 3)]
    )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        sep_token="<sep>",
        pad_token="<pad>",
        cls_token="<cls>",
        mask_token="<mask>",
        padding_side="left",
        model_max_length=60,
    )


def tokenizer_of(family: str) -> Any:
    """The tokenizer that a family's models are used with."""
    if family == "roberta":
        return byte_pairs(framed=True)
    if family in ("gpt2", "llama"):
        return byte_pairs(framed=False)
    return unigram() if family == "xlnet" else word_piece()


def config_of(family: str, n_vocab: int) -> Any:
    """A configuration of two small layers, its weights so large that neighbours matter."""
    wide = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "vocab_size": n_vocab,
        "initializer_range": 0.4,
        "num_labels": 3,
    }
    return {
        "bert": lambda: tf.BertConfig(max_position_embeddings=60, **wide),
        "roberta": lambda: tf.RobertaConfig(max_position_embeddings=62, pad_token_id=1, **wide),
        "albert": lambda: tf.AlbertConfig(embedding_size=8, max_position_embeddings=60, **wide),
        "electra": lambda: tf.ElectraConfig(embedding_size=8, max_position_embeddings=60, **wide),
        "distilbert": lambda: tf.DistilBertConfig(
            dim=16,
            n_layers=2,
            n_heads=2,
            hidden_dim=32,
            vocab_size=n_vocab,
            num_labels=3,
            max_position_embeddings=60,
            initializer_range=0.4,
        ),
        "xlnet": lambda: tf.XLNetConfig(
            d_model=16,
            n_layer=2,
            n_head=2,
            d_inner=32,
            vocab_size=n_vocab,
            num_labels=3,
            initializer_range=0.4,
        ),
        "gpt2": lambda: tf.GPT2Config(
            n_embd=16,
            n_layer=2,
            n_head=2,
            n_positions=60,
            vocab_size=n_vocab,
            num_labels=3,
            initializer_range=0.4,
        ),
        "llama": lambda: tf.LlamaConfig(max_position_embeddings=60, num_key_value_heads=2, **wide),
    }[family]()


def tiny_module(family: str, auto: Any = tf.AutoModelForSequenceClassification) -> tuple[Any, Any]:
    """A random module of a family with its tokenizer."""
    tokenizer = tokenizer_of(family)
    torch.manual_seed(0)
    return auto.from_config(config_of(family, len(tokenizer))), tokenizer


def tiny(family: str) -> HFClassifier:
    """A tiny classifier of a family."""
    return HFClassifier(*tiny_module(family), CLASSES)


def saved(folder: Path, family: str, auto: Any = tf.AutoModelForSequenceClassification) -> str:
    """Save a tiny model of a family, as one would find it on a hub, and return its folder."""
    module, tokenizer = tiny_module(family, auto)
    module.save_pretrained(folder / family)
    tokenizer.save_pretrained(folder / family)
    return str(folder / family)


def toy_rows() -> pd.DataFrame:
    """Thirty sentences in three forms; the pronoun is the class."""
    nouns = [
        f"{a} {b}"
        for a in ("old piano", "friend", "horse", "singer", "son")
        for b in ("sings .", "is a person .")
    ] * 3
    rows = [
        {
            "row_id": f"{i}-{CLASSES[k]}",
            "sentence_idx": i,
            "target": k,
            "sentence": f"{word} and the {noun}".split(),
            "ground_truth": [1] + [0] * (len(noun.split()) + 2),
        }
        for i, noun in enumerate(nouns)
        for k, word in enumerate(("She", "He", "They"))
    ]
    return pd.DataFrame(rows)


def tiny_masked_lm(family: str) -> MaskedLM:
    return MaskedLM(*tiny_module(family, tf.AutoModelForMaskedLM))
