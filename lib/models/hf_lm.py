"""Causal language models of Hugging Face (gpt2, pythia, ...) with the face of our own.

`embed`, `run`, `log_prob`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from ..core.contents import by_content
from ..core.errors import TouchstoneError
from ..core.files import save_json
from .hf import run_head
from .language_model import END, PAD, UNKNOWN
from .text_model import device_of, widened
from .weights import load_pretrained, load_tokenizer, read_recipe


@dataclass(frozen=True)
class HFConfig:
    """What is asked of a configuration.

    The size of the last hidden state, and how many layers there are.
    """

    embedding: int
    n_layers: int


class HFLanguageModel(nn.Module):
    """A causal model of `transformers`. Positions, layers and output head are the model's own.

    The head is whatever the model's forward pass does to the last states (scales, caps). Whether
    the parts give the whole is tried on three pieces.

    Raises:
        TouchstoneError: for a model that predicts no words, or sees the ones to come, or is
            another one from its embeddings than from its token ids.
    """

    def __init__(self, module: PreTrainedModel) -> None:
        super().__init__()
        kind = type(module).__name__
        if module.get_output_embeddings() is None:
            raise TouchstoneError(
                f"{kind} predicts no words; choose a causal language model (gpt2, ...), and for a "
                "classifier wrap and explain_texts of lib.doors"
            )
        if module.config.is_encoder_decoder:
            raise TouchstoneError(
                f"{kind} has an encoder, which reads a text of its own; choose a causal language "
                "model (gpt2, ...)"
            )
        self.hf, self.n_words = module.eval(), module.get_input_embeddings().num_embeddings
        self.config = HFConfig(
            module.get_output_embeddings().in_features, module.config.num_hidden_layers
        )
        n_positions = getattr(module.config, "max_position_embeddings", None) or 0
        self.n_positions = n_positions if n_positions > 0 else None  # XLNet says -1
        self._check(kind)

    @torch.no_grad()
    def _check(self, kind: str) -> None:
        """Hold what the parts say of three pieces against the model's own log-probabilities."""
        # Padding would be no piece to a model that finds it by its id.
        some = [i for i in range(4) if i != getattr(self.hf.config, "pad_token_id", None)][:3]
        ids = torch.tensor([some], device=device_of(self.hf)) % self.n_words
        whole = widened(self.hf(input_ids=ids).logits).log_softmax(-1)[0]
        shorter = widened(self.hf(input_ids=ids[:, :2]).logits).log_softmax(-1)[0]
        parts = self.log_prob(self.run(self.embed(ids))[0])
        eps = [torch.finfo(p.dtype).eps for p in self.hf.parameters() if p.is_floating_point()]
        # Of the largest one; in bfloat16, a few of its own last digits.
        allowed = max(1e-4, 4 * max(eps)) * whole.abs().max()
        if (shorter - whole[:2]).abs().max() > allowed:
            raise TouchstoneError(
                f"{kind} sees the words to come, so it predicts no next one; choose a causal "
                "language model (gpt2, ...), and for a masked one PromptedMaskedLM of "
                "lib.models.zero_shot, which explain_texts takes"
            )
        if (gap := (parts - whole).abs().max()) > allowed:
            raise TouchstoneError(
                f"{kind} gives other log-probabilities from its word embeddings than from its "
                f"token ids (by {gap:.2g}), so explanations would be of another function; let its "
                "forward pass use inputs_embeds"
            )

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The word embeddings alone: no positions."""
        return widened(self.hf.get_input_embeddings()(ids))

    def run(
        self, embeddings: Float[Tensor, "batch token hidden"]
    ) -> Float[Tensor, "batch token hidden"]:
        """The last hidden states.

        Raises:
            TouchstoneError: for more pieces than the model has positions.
        """
        if self.n_positions is not None and embeddings.shape[1] > self.n_positions:
            raise TouchstoneError(
                f"{embeddings.shape[1]} pieces at once, and {type(self.hf).__name__} reads at most "
                f"{self.n_positions}; make longest_piece (or the line) shorter"
            )
        narrowed = embeddings.to(self.hf.dtype)
        output = self.hf.base_model(inputs_embeds=narrowed, use_cache=False)
        return widened(output.last_hidden_state)

    def log_prob(self, hidden: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch vocab"]:
        """Log-probabilities of the next piece, as the model's own forward pass ends."""
        narrowed = hidden.to(self.hf.dtype)
        one_by_one = narrowed.reshape(-1, 1, narrowed.shape[-1])
        logits = widened(run_head(self.hf, {"last_hidden_state": one_by_one}))
        return F.log_softmax(logits, dim=-1).view(*hidden.shape[:-1], -1)

    def loss(
        self, hidden: Float[Tensor, "batch hidden"], targets: Int[Tensor, "batch"]
    ) -> Float[Tensor, ""]:
        """Mean negative log-probability of the next pieces."""
        return F.nll_loss(self.log_prob(hidden), targets)


@dataclass(frozen=True)
class Subwords:
    """A tokenizer with the face of our word vocabularies.

    Words in, ids of pieces out, and which piece is whose.

    Words are joined by blanks and read as running text. The piece that begins a sequence is the
    begin token, or the end token where a model has no other (GPT-2).
    """

    tokenizer: Any
    n_words: int

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "is_fast", False):
            raise TouchstoneError(
                f"{type(self.tokenizer).__name__} does not tell which word a piece comes from; "
                "load the fast tokenizer (AutoTokenizer.from_pretrained(name, use_fast=True))"
            )
        if len(self.tokenizer) > self.n_words:
            raise TouchstoneError(
                f"the tokenizer has {len(self.tokenizer)} pieces and the model knows "
                f"{self.n_words}; hand in the tokenizer that the model was trained with"
            )

    def __len__(self) -> int:
        return self.n_words

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """The ids of what begins a sequence, of padding and, where there is one, of unknown."""
        names = ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id")
        begin, end, padding, unknown = (getattr(self.tokenizer, name) for name in names)
        begin = end if begin is None else begin
        if begin is None:
            raise TouchstoneError(
                "the tokenizer has neither a begin nor an end token; set its eos_token"
            )
        known = {END: begin, PAD: begin if padding is None else padding}
        # GPT-2's "unknown" is its end token: its pieces are bytes, and none is unknown.
        return known if unknown in (None, begin, end) else known | {UNKNOWN: unknown}

    def encode(self, words: Sequence[str]) -> list[int]:
        """Ids of the pieces of all words."""
        return list(self._read(words)["input_ids"])

    def owners(self, words: Sequence[str]) -> list[int]:
        """For each piece the index of its word."""
        ends = torch.tensor([len(word) for word in words]).cumsum(0) + torch.arange(len(words))
        # Start and end in the text, by piece.
        offsets = torch.tensor(self._read(words)["offset_mapping"], dtype=torch.long)
        return torch.searchsorted(ends, offsets.view(-1, 2)[:, 1].contiguous()).tolist()

    def _read(self, words: Sequence[str]) -> Any:
        if blank := [word for word in words if not word or word != word.strip()]:
            raise TouchstoneError(f"{blank[0]!r} is no word; split the prefix at its blanks")
        return self.tokenizer(
            " ".join(words), add_special_tokens=False, return_offsets_mapping=True
        )


def load_hf_lm(name: str, revision: str = "") -> tuple[HFLanguageModel, Subwords]:
    """A causal model and its tokenizer by hub id (with a commit's 40 digits) or from a folder.

    Raises TouchstoneError where the folder, the revision or a fast tokenizer is missing.
    """
    model = HFLanguageModel(load_pretrained(AutoModelForCausalLM, name, revision))
    return model, Subwords(load_tokenizer(name, revision), model.n_words)


def save_hf_lm(name: str, revision: str, path: Path) -> None:
    """Note beside the models of a run which published one took part; `load_lm` reads the note."""
    about = {"hugging_face": name, "revision": revision} | by_content(name)
    save_json(about, path.with_suffix(".json"))


def noted_hf_lm(path: Path) -> tuple[HFLanguageModel, Subwords] | None:
    """The published model that a note stands for; None where the file is no such note."""
    about = read_recipe(path.with_suffix(".json"))
    return load_hf_lm(about["hugging_face"], about["revision"]) if "hugging_face" in about else None
