"""Masked language models that run from their word embeddings.

Any of transformers, or an encoder with a new head.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForMaskedLM, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from ..core.errors import TouchstoneError
from ..core.files import save_json
from .hf import layer_stack, longest_input, redraw, run_head
from .text_model import Encoded, device_of, encode_words, in_buckets, pad
from .weights import (
    check_weights,
    load_pretrained,
    load_tokenizer,
    put_in,
    read_recipe,
    read_tensors,
    save_tensors,
)


@dataclass
class MaskedLM:
    """A masked language model: embeddings -> hidden states -> scores of the vocabulary.

    The head is applied to chosen hidden states only, since most positions are never asked about.
    """

    module: PreTrainedModel
    tokenizer: Any

    def __post_init__(self) -> None:
        if self.tokenizer.mask_token_id is None:
            raise TouchstoneError(
                f"the tokenizer of {type(self.module).__name__} has no mask token, so nothing can "
                "be masked; choose a masked language model (BERT, RoBERTa, ALBERT, ...)"
            )
        self.module.eval()
        self.max_length = longest_input(self.module, self.tokenizer)
        self.pad_id = int(self.tokenizer.pad_token_id)

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        """Token ids and word ids of sentences that are given as lists of words."""
        return encode_words(self.tokenizer, sentences, self.max_length)

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The word embeddings alone: no positions, no LayerNorm."""
        return self.module.get_input_embeddings()(ids)

    def hidden(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch token hidden"]:
        """The encoder's last hidden states, computed from the word embeddings."""
        return self.module.base_model(
            inputs_embeds=embeddings, attention_mask=mask
        ).last_hidden_state

    def scores(self, hidden: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch vocab"]:
        """The head's scores (logits) of all entries of the vocabulary, for single positions."""
        return run_head(self.module, {"last_hidden_state": hidden.unsqueeze(1)})

    @torch.no_grad()
    def log_prob(
        self, encoded: Sequence[Encoded], batch_size: int = 64
    ) -> Float[Tensor, "batch vocab"]:
        """Log-probabilities of all entries at the one mask token of each sentence, on the CPU.

        Raises TouchstoneError, naming the sentence, where it has no mask token or several.
        """
        mask_id = self.tokenizer.mask_token_id
        for i, sentence in enumerate(encoded):
            if (n_masks := sentence.ids.count(mask_id)) != 1:
                raise TouchstoneError(
                    f"sentence {i} has {n_masks} mask tokens ({self.tokenizer.mask_token}) and "
                    "needs one; mask one word of each sentence"
                )

        def run(batch: Sequence[Encoded]) -> Float[Tensor, "batch vocab"]:
            ids, mask = pad(batch, self.pad_id, device=device_of(self.module))  # (batch, token)
            hidden = self.hidden(self.embed(ids), mask)  # (batch, token, hidden)
            return self.scores(hidden[ids == mask_id]).log_softmax(-1).cpu()

        return in_buckets(run, encoded, batch_size, exact=False)

    @torch.no_grad()
    def mean_vectors(
        self, sentences: Sequence[Sequence[str]], contextual: bool, batch_size: int = 64
    ) -> Float[Tensor, "batch hidden"]:
        """One vector a text, the mean over its pieces.

        Of the word table's rows, or of the encoder's last hidden states.
        """

        def run(batch: Sequence[Encoded]) -> Float[Tensor, "batch hidden"]:
            ids, mask = pad(batch, self.pad_id, device=device_of(self.module))  # (batch, token)
            states = self.hidden(self.embed(ids), mask) if contextual else self.embed(ids)
            inside = torch.tensor([[w is not None for w in row.word_ids] for row in batch])
            weights = inside.to(states) / inside.to(states).sum(1, keepdim=True)  # (batch, token)
            return torch.einsum("bt,bth->bh", weights, states).cpu()

        return in_buckets(run, self.encode(sentences), batch_size)

    def trained_parameters(self, tuned: str) -> dict[str, nn.Parameter]:
        """The parameters that are trained, by name: the head, or more than the head.

        "upper" adds the upper half of the layers (the larger one of an odd number), "encoder" all
        layers, "all" what stands beside the words, too, and the word table, which is the head's
        decoder: its gradient is as large as the vocabulary.
        """
        table = self.module.get_input_embeddings().weight
        base = {id(p) for p in self.module.base_model.parameters()}
        named = dict(self.module.named_parameters())
        head = {name: p for name, p in named.items() if id(p) not in base and p is not table}
        encoder = {
            name: p for name, p in named.items() if p is not table and ".embeddings." not in name
        }
        choices = {"head": head, "upper": encoder, "encoder": encoder, "all": named}
        if tuned not in choices:
            raise TouchstoneError(f"tuned is {tuned!r}; write one of {', '.join(choices)}")
        if tuned != "upper":
            return choices[tuned]
        stack = layer_stack(self.module)
        lower = {id(p) for layer in stack[: len(stack) // 2] for p in layer.parameters()}
        return {name: p for name, p in encoder.items() if id(p) not in lower}


def pretrained_masked_lm(name: str, revision: str = "") -> MaskedLM:
    """A masked LM with the head that it was trained with.

    Raises TouchstoneError for a checkpoint without one (its head would be random numbers).
    """
    kinds = set(load_pretrained(AutoConfig, name, revision).architectures or ())
    if not kinds & set(MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()):
        raise TouchstoneError(
            f"{name} has no masked-LM head "
            f"({', '.join(sorted(kinds)) or 'no architecture named'}); "
            "train one (new_masked_lm, fit_masked_lm) or choose a masked language model"
        )
    module = load_pretrained(AutoModelForMaskedLM, name, revision)
    return MaskedLM(module, load_tokenizer(name, revision))


def new_masked_lm(name: str, seed: int, revision: str = "") -> MaskedLM:
    """An encoder with a new masked-LM head drawn from a seed.

    Its decoder is the encoder's word table.

    For BERT's kind: dense, activation, LayerNorm, then the transposed word table and a bias for
    each entry.
    """
    module = load_pretrained(AutoModelForMaskedLM, name, revision)
    model = MaskedLM(module, load_tokenizer(name, revision))
    redraw(module, model.trained_parameters("head"), seed)
    return model


def save_masked_lm(model: MaskedLM, path: Path, recipe: dict[str, Any], tuned: str) -> None:
    """Write the trained tensors (.safetensors) and the recipe with their SHA-256 (.json).

    The recipe needs `encoder`, `revision` and `seed`: what `new_masked_lm` was given.
    """
    sha256 = save_tensors(path.with_suffix(".safetensors"), model.trained_parameters(tuned))
    save_json(recipe | {"tuned": tuned, "sha256": sha256}, path.with_suffix(".json"))


def read_masked_lm(recipe_path: Path, weights_path: Path) -> MaskedLM:
    """The model that `save_masked_lm` kept.

    Built anew from its recipe, with the trained tensors put in.
    """
    recipe = read_recipe(recipe_path, "encoder", "seed", "revision", "tuned", "sha256")
    check_weights(weights_path, recipe["sha256"])
    model = new_masked_lm(recipe["encoder"], recipe["seed"], recipe["revision"])
    trained = model.trained_parameters(recipe["tuned"])
    put_in(weights_path, trained, read_tensors(weights_path)[0], f"tuned {recipe['tuned']!r}")
    return model
