"""The hub's families of masked LMs on tiny random models.

Mask tokens, and pronouns as word pieces, byte pairs and SentencePiece write them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as tf
from tiny_models import config_of
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from lib.language.lexicon import MASK, PRONOUNS

WORDS = [*PRONOUNS, "the", "nurse", "puts", "coat", "on", "chair", "."]
CAPITAL = [word.title() for word in WORDS if word.isalpha()]
LONGEST = 400  # tokens; words that are no pieces fall into letters
LETTERS = sorted(set("".join(WORDS + CAPITAL)))
SENTENCE = ["The", "nurse", "puts", MASK, "coat", "on", "the", "chair", "."]


def takes_the_blank(mask: str) -> tf.AddedToken:
    """RoBERTa's and ALBERT's mask swallows the blank before it: a word with its blank."""
    return tf.AddedToken(mask, lstrip=True, normalized=False)


def word_pieces(lower: bool) -> Any:
    """BERT's vocabulary, uncased or cased; `##he` is in it as well, and is no pronoun."""
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *WORDS,
        *([] if lower else CAPITAL),
        "##he",
        "##his",
        "Xhe",
    ]
    return tf.BertTokenizer(
        vocab={piece: i for i, piece in enumerate(pieces)},
        do_lower_case=lower,
        model_max_length=LONGEST,
    )


def byte_level() -> Any:
    """RoBERTa's: a word after a blank is another entry ("Ġhe") than one without ("he")."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces, merges = [*special, "Ġ", *LETTERS], []
    for word in ["Ġ" + word for word in WORDS + CAPITAL] + WORDS:
        for i in range(1, len(word)):
            merges.append((word[:i], word[i]))
            pieces.append(word[: i + 1])
    inner = Tokenizer(
        models.BPE(
            {piece: i for i, piece in enumerate(dict.fromkeys(pieces))},
            list(dict.fromkeys(merges)),
            unk_token="<unk>",
        )
    )
    inner.pre_tokenizer, inner.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=True),
        decoders.ByteLevel(),
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
        mask_token=takes_the_blank("<mask>"),
        model_max_length=LONGEST,
    )


def sentence_pieces() -> Any:
    """ALBERT's: lower case, and a word's first piece begins with a bar."""
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    pieces = (
        [(piece, 0.0) for piece in special]
        + [("▁" + word, -3.0) for word in WORDS]
        + [(piece, -9.0) for piece in ["he", "his", "▁", *sorted(set("".join(WORDS)))]]
    )
    inner = Tokenizer(models.Unigram(pieces, unk_id=1))
    inner.normalizer, inner.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Metaspace()
    inner.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="[CLS]",
        eos_token="[SEP]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token=takes_the_blank("[MASK]"),
        model_max_length=LONGEST,
    )


FAMILIES = {
    "bert-base-uncased": ("bert", lambda: word_pieces(True), [*PRONOUNS]),
    "bert-base-cased": (
        "bert",
        lambda: word_pieces(False),
        [*PRONOUNS, *(word.title() for word in PRONOUNS)],
    ),
    "distilbert-base-uncased": ("distilbert", lambda: word_pieces(True), [*PRONOUNS]),
    "roberta-base": (
        "roberta",
        byte_level,
        ["Ġ" + word for word in (*PRONOUNS, *(word.title() for word in PRONOUNS))],
    ),
    "albert-base-v2": ("albert", sentence_pieces, ["▁" + word for word in PRONOUNS]),
}


def hub_folder(folder: Path, name: str) -> str:
    """A tiny random masked LM of a family with its tokenizer, as it would come from the hub."""
    family, tokenizer = FAMILIES[name][0], FAMILIES[name][1]()
    torch.manual_seed(0)
    config = config_of(family, len(tokenizer))
    config.max_position_embeddings = LONGEST + 2
    tf.AutoModelForMaskedLM.from_config(config).save_pretrained(folder / name)
    tokenizer.save_pretrained(folder / name)
    return str(folder / name)
