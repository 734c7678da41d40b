"""Tiny random decoders of many families, with hand-written tokenizers."""

from __future__ import annotations

from typing import Any

import torch
import transformers as tf
from own_tokenizers import own_tokenizer

SIZE = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16}
WIDE = SIZE | {"intermediate_size": 32, "max_position_embeddings": 24}
SHARED_KEYS = WIDE | {"num_key_value_heads": 1}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 24}
# The configuration, its settings and the tokenizer's kind. The last three of the first block do
# more to their scores than one linear map.
DECODERS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "Cohere": (tf.CohereConfig, SHARED_KEYS, "GPT-2"),
    "Granite": (tf.GraniteConfig, SHARED_KEYS | {"logits_scaling": 4.0}, "GPT-2"),
    "Gemma2": (
        tf.Gemma2Config,
        SHARED_KEYS | {"head_dim": 8, "final_logit_softcapping": 2.0},
        "Gemma",
    ),
    "GPT-2": (tf.GPT2Config, GPT, "GPT-2"),
    "GPT-J": (tf.GPTJConfig, GPT | {"rotary_dim": 4}, "GPT-2"),
    "GPT-NeoX": (tf.GPTNeoXConfig, WIDE, "GPT-2"),
    "Llama": (tf.LlamaConfig, SHARED_KEYS, "Llama"),
    "Qwen2": (tf.Qwen2Config, SHARED_KEYS, "Qwen"),
    "Qwen3": (tf.Qwen3Config, SHARED_KEYS | {"head_dim": 8}, "Qwen"),
    "Mistral": (tf.MistralConfig, SHARED_KEYS, "Llama"),
    "Phi": (tf.PhiConfig, WIDE, "GPT-2"),
    "Falcon": (tf.FalconConfig, SIZE | {"alibi": False}, "GPT-2"),
    "Bloom": (tf.BloomConfig, {"hidden_size": 16, "n_layer": 2, "n_head": 2}, "GPT-2"),
    "OPT": (
        tf.OPTConfig,
        SIZE | {"ffn_dim": 32, "max_position_embeddings": 24, "word_embed_proj_dim": 8},
        "GPT-2",
    ),
    "BART's decoder": (
        tf.BartConfig,
        {
            "d_model": 16,
            "decoder_layers": 1,
            "decoder_attention_heads": 2,
            "decoder_ffn_dim": 32,
            "max_position_embeddings": 24,
        },
        "GPT-2",
    ),
    "BERT's decoder": (tf.BertConfig, WIDE | {"is_decoder": True}, "GPT-2"),
}


def decoder(family: str, n_positions: int = 24) -> tuple[Any, Any]:
    """A model, and its tokenizer; the weights are large enough for every part to matter."""
    config_of, settings, kind = DECODERS[family]
    of_length = {"max_position_embeddings", "n_positions"} & set(settings)
    settings = settings | dict.fromkeys(of_length, n_positions)
    tokenizer = own_tokenizer(kind)
    tokenizer.model_max_length = n_positions
    ends = {"pad_token_id": None, "bos_token_id": 0, "eos_token_id": 0}
    torch.manual_seed(0)
    config = config_of(vocab_size=len(tokenizer), **settings, **ends)
    module = tf.AutoModelForCausalLM.from_config(config).eval()
    for parameter in module.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return module, tokenizer
