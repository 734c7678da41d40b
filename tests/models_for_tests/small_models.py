"""Tiny models for the tests of explanations.

A linear one whose answers are known, and random transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from own_tokenizers import own_tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    GemmaConfig,
    GemmaForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForSequenceClassification,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from lib.models.hf import HFClassifier
from lib.models.ola import OneLayerAttention
from lib.models.text_model import Encoded, RunsFromEmbeddings
from lib.models.zero_shot import LabelSimilarity, PromptedCausalLM, PromptedMaskedLM

CLASSES = ("F", "M", "NB")
LABEL_WORDS = {"F": "she", "M": "he", "NB": "they"}
PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "she",
    "he",
    "they",
    "the",
    "sing",
    "##s",
    "##er",
    "a",
    "old",
    "song",
    ".",
    "[MASK]",
]
SENTENCES = [
    "she sings a song .",
    "he sings the old song .",
    "they sing a song .",
    "the singer sings .",
    "he",
    "they sing",
]


CAUSAL = {
    "Llama": (LlamaConfig, LlamaForSequenceClassification),
    "Qwen": (Qwen2Config, Qwen2ForSequenceClassification),
    "Gemma": (GemmaConfig, GemmaForSequenceClassification),
}
FAMILIES = ("BERT", "RoBERTa", "GPT-2", *CAUSAL, "OLA")


class LinearText:
    """One number per word and class, added up: logit_c = sum over words of w_c . e(word).

    PAD counts as a word.
    """

    classes = ("left", "right")
    max_length = 12
    ids = {"PAD": 0, "she": 1, "sings": 2, "nothing": 3}
    table = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0], [1.0, 1.0]])
    weights = torch.tensor([[1.0, -1.0], [0.5, 2.0]])

    def __init__(self) -> None:
        self.module = nn.Linear(2, 2, bias=False)
        self.module.weight.data = self.weights.clone()
        self.tokenizer = SimpleNamespace(pad_token_id=0)

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        return [
            Encoded([self.ids[w] for w in words], list(range(len(words)))) for words in sentences
        ]

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table[ids]

    def logits(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.module((embeddings * mask[..., None]).sum(1))

    def reference_ids(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(ids)

    def predict(self, sentences: Sequence[Sequence[str]], batch_size: int) -> np.ndarray:
        raise NotImplementedError("no explanation asks for predictions")


def tiny_tokenizer(framed: bool = True) -> PreTrainedTokenizerFast:
    """WordPiece with real sub-words: "sings" is sing ##s; with CLS and SEP, or bare as GPT-2's."""
    inner = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate(PIECES)}, unk_token="[UNK]")
    )
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    if framed:
        frame = [("[CLS]", 2), ("[SEP]", 3)]
        inner.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=frame)
        return PreTrainedTokenizerFast(
            tokenizer_object=inner,
            unk_token="[UNK]",
            pad_token="[PAD]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            mask_token="[MASK]",
            model_max_length=24,
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="[UNK]",
        pad_token="[PAD]",
        eos_token="[PAD]",
        model_max_length=24,
    )


def build(kind: str, own: bool = False) -> RunsFromEmbeddings:
    """A random model with weights large enough for words to interact.

    With `own`, its tokenizer is of its own kind.
    """
    tokenizer = (
        own_tokenizer(kind)
        if own
        else tiny_tokenizer(framed=kind not in ("GPT-2", "causal LM", *CAUSAL))
    )
    torch.manual_seed(0)
    shape = {
        "vocab_size": len(tokenizer),
        "num_labels": 3,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.3,
    }
    wide = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    if kind == "BERT":
        config = BertConfig(**shape, **wide, max_position_embeddings=24)
        return HFClassifier(BertForSequenceClassification(config), tokenizer, CLASSES)
    if kind == "RoBERTa":
        config = RobertaConfig(
            **shape, **wide, max_position_embeddings=25 + tokenizer.pad_token_id, type_vocab_size=1
        )
        return HFClassifier(RobertaForSequenceClassification(config), tokenizer, CLASSES)
    if kind == "GPT-2":
        config = GPT2Config(
            **shape, n_embd=16, n_layer=2, n_head=2, n_positions=24, bos_token_id=0, eos_token_id=0
        )
        return HFClassifier(GPT2ForSequenceClassification(config), tokenizer, CLASSES)
    if kind in CAUSAL:  # rotary positions, RMSNorm, gated feed-forward, two heads on one key
        config_of, module_of = CAUSAL[kind]
        more = {"head_dim": 8} if kind == "Gemma" else {}
        config = config_of(
            **shape, **wide, **more, num_key_value_heads=1, max_position_embeddings=24
        )
        module = module_of(config)
        torch.nn.init.normal_(
            module.get_input_embeddings().weight, std=0.3
        )  # padding too: see test_attribution_adaptive
        return HFClassifier(module, tokenizer, CLASSES)
    if kind == "masked LM":
        config = BertConfig(**shape, **wide, max_position_embeddings=24)
        return PromptedMaskedLM(BertForMaskedLM(config), tokenizer, LABEL_WORDS)
    if kind == "causal LM":
        config = GPT2Config(
            **shape, n_embd=16, n_layer=2, n_head=2, n_positions=24, bos_token_id=0, eos_token_id=0
        )
        return PromptedCausalLM(GPT2LMHeadModel(config), tokenizer, LABEL_WORDS)
    if kind == "similarity":
        config = BertConfig(**shape, **wide, max_position_embeddings=24)
        return LabelSimilarity(BertModel(config), tokenizer, LABEL_WORDS)
    return OneLayerAttention(tokenizer, range(len(tokenizer)), CLASSES, seed=0)


def as_rows(sentences: Sequence[str], targets: Sequence[int] | None = None) -> pd.DataFrame:
    """Rows to explain, numbered as GECO's are."""
    targets = targets or [i % 3 for i in range(len(sentences))]
    return pd.DataFrame(
        {
            "row_id": [f"{i}-{CLASSES[t]}" for i, t in enumerate(targets)],
            "sentence_idx": range(len(sentences)),
            "target": targets,
            "sentence": [s.split() for s in sentences],
        }
    )
