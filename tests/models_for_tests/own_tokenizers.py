"""A small tokenizer of each architecture's kind, with the settings of its class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import transformers as tf
from tokenizers import pre_tokenizers

WORDS = ("she", "he", "they", "the", "sing", "sings", "singer", "a", "old", "song", ".")
WHOLE = [word for word in WORDS if word != "singer"]  # that one falls into two pieces: sing and er
SPECIAL = {
    "RoBERTa": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    "GPT-2": ["<|endoftext|>"],
    "Qwen": ["<|endoftext|>"],
    "Llama": ["<unk>", "<s>", "</s>"],
    "Gemma": ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"],
}
CLASS = {
    "RoBERTa": tf.RobertaTokenizer,
    "GPT-2": tf.GPT2Tokenizer,
    "Qwen": tf.Qwen2Tokenizer,
    "Llama": tf.LlamaTokenizer,
    "Gemma": tf.GemmaTokenizer,
}
PLACES = 24


def byte_pairs(
    blank: str, special: Sequence[str], letters: Sequence[str]
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges in which each word is one piece, with a blank's mark and without."""
    pieces, merges = [*special, blank, *letters], []
    for word in [blank + word for word in WHOLE] + WHOLE + ["er"]:
        for i in range(1, len(word)):
            merges.append((word[:i], word[i]))
            pieces.append(word[: i + 1])
    return {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}, list(dict.fromkeys(merges))


@cache
def own_tokenizer(kind: str) -> Any:
    """BERT's WordPiece, or byte pairs as RoBERTa, GPT-2, Qwen (bytes), Llama and Gemma (a bar for a
    blank) have them.
    """
    if kind in ("BERT", "OLA"):
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WHOLE, "##er"]
        return tf.BertTokenizer(
            vocab={piece: i for i, piece in enumerate(pieces)}, model_max_length=PLACES
        )
    bytes_too = kind in ("RoBERTa", "GPT-2", "Qwen")
    letters = (
        sorted(pre_tokenizers.ByteLevel.alphabet()) if bytes_too else sorted(set("".join(WORDS)))
    )
    vocab, merges = byte_pairs("Ġ" if bytes_too else "▁", SPECIAL[kind], letters)
    tokenizer = CLASS[kind](vocab=vocab, merges=merges, model_max_length=PLACES)
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer
