"""Probes: a frozen language model whose output layer is replaced by two classes (Ding & Koehn 2021, section 3.1)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lib.core.errors import TouchstoneError
from lib.core.files import atomic_path
from lib.models.hf_lm import noted_hf_lm
from lib.models.language_model import load_lm
from lib.models.text_model import Encoded, pad
from lib.models.word_vocabulary import END, PAD

CLASSES = {"number": ("singular", "plural"), "gender": ("male", "female")}
AT_ONCE = 256  # sequences in one pass
ERASED = -1  # the id of a word that was taken out: its embedding is zero


class CausalLM(Protocol):
    """What every language model here looks like: ours (lib.models.language_model) and those of Hugging Face (lib.models.hf_lm)."""

    config: Any
    n_words: int

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The word embeddings alone."""

    def run(
        self, embeddings: Float[Tensor, "batch token hidden"]
    ) -> Float[Tensor, "batch token hidden"]:
        """The last hidden states."""

    def log_prob(self, hidden: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch vocab"]:
        """Log-probabilities of what comes next."""


class WordTable(Protocol):
    """What every vocabulary looks like: whole words (lib.models.word_vocabulary.Vocabulary) or pieces (lib.models.hf_lm.Subwords)."""

    @property
    def ids(self) -> Mapping[str, int]:
        """Ids by entry; at least of what begins a sequence and of padding."""

    def __len__(self) -> int: ...

    def encode(self, words: Sequence[str]) -> list[int]:
        """Ids of words."""

    def owners(self, words: Sequence[str]) -> list[int]:
        """For each id the index of its word."""


@dataclass(frozen=True)
class Padding:
    """All of a tokenizer that the shared explanation methods ask a probe for."""

    pad_token_id: int


@dataclass(eq=False)
class Probe:
    """A language model that answers with a class of the next word; it is a TextModel, so every explainer reads it.

    A sequence is the end-of-sentence word, which begins it, and then the words of the prefix.
    """

    lm: Any
    vocabulary: WordTable
    layer: nn.Linear
    classes: tuple[str, ...]
    max_length: int = 1024
    tokenizer: Padding = field(init=False)
    module: nn.Module = field(init=False)

    def __post_init__(self) -> None:
        if self.lm.n_words != len(self.vocabulary):
            raise TouchstoneError(
                f"the model knows {self.lm.n_words} words and the vocabulary has "
                f"{len(self.vocabulary)}; hand in the vocabulary that the model was trained with"
            )
        if self.layer.in_features != self.lm.config.embedding or self.layer.out_features != len(
            self.classes
        ):
            raise TouchstoneError(
                f"a layer from {self.layer.in_features} to {self.layer.out_features} does not fit a "
                f"model of size {self.lm.config.embedding} and {len(self.classes)} classes"
            )
        self.tokenizer = Padding(self.vocabulary.ids[PAD])
        self.module = nn.ModuleDict({"lm": self.lm, "layer": self.layer})
        self.module.requires_grad_(False)
        self.module.eval()

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        """Ids of prefixes, and for each the index of its word (None: the word that begins the sequence)."""
        begin = self.vocabulary.ids[END]
        return [
            Encoded([begin, *self.vocabulary.encode(words)], [None, *self.vocabulary.owners(words)])
            for words in sentences
        ]

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The word embeddings; zeros for a word that was taken out."""
        if not (ids == ERASED).any():
            return self.lm.embed(ids)
        return self.lm.embed(ids.clamp(min=0)) * (ids != ERASED)[..., None]

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The scores of the classes after the last word of each sequence."""
        return self.layer(last_state(self.lm.run(embeddings), mask))

    def reference_ids(self, ids: Int[Tensor, "batch token"]) -> Int[Tensor, "batch token"]:
        """The same sequences with every word taken out."""
        kept = torch.arange(ids.shape[1], device=ids.device) == 0
        return torch.where(kept, ids, torch.full_like(ids, ERASED))

    @torch.no_grad()
    def predict(self, sentences: Sequence[Sequence[str]], batch_size: int = AT_ONCE) -> np.ndarray:
        """Class probabilities, one row a prefix, each from one clean pass."""
        found = features(self.lm, self.vocabulary, sentences, batch_size)
        return self.layer(found).softmax(-1).cpu().numpy()


def last_state(
    states: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
) -> Float[Tensor, "batch hidden"]:
    """The state at the last real position; padding stands on the right, and no causal model sees it from there."""
    return states[torch.arange(len(states), device=states.device), mask.sum(1) - 1]


@torch.no_grad()
def features(
    lm: Any, vocabulary: WordTable, prefixes: Sequence[Sequence[str]], batch_size: int = AT_ONCE
) -> Float[Tensor, "batch hidden"]:
    """The model's last state after each prefix, rows of similar length computed together."""
    begin, padding = vocabulary.ids[END], vocabulary.ids[PAD]
    encoded = [Encoded([begin, *vocabulary.encode(words)], []) for words in prefixes]
    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i].ids))
    device = next(lm.parameters()).device
    found = torch.empty(len(encoded), lm.config.embedding, device=device)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        ids, mask = (t.to(device) for t in pad([encoded[i] for i in rows], padding))
        found[rows] = last_state(lm.run(lm.embed(ids)), mask)
    return found


@dataclass(frozen=True)
class ProbeSettings:
    """How a probe learns: Adam, the rate halved where the validation loss no longer falls (section 5.1)."""

    epochs: int = 10
    lr: float = 0.001
    batch_size: int = 10


def fit_probe(
    lm: Any,
    vocabulary: WordTable,
    task: str,
    table: pd.DataFrame,
    settings: ProbeSettings,
    seed: int,
) -> tuple[Probe, pd.DataFrame]:
    """A probe trained on examples (split, prefix, tag), at its best epoch, and its learning curve.

    The language model never moves, so its states are computed once. Curve: epoch, train_loss, validation_loss,
    validation_accuracy. Raises TouchstoneError for an unknown task and for a split without examples.
    """
    if task not in CLASSES:
        raise TouchstoneError(f"there is no task {task!r}; choose number or gender")
    data = {}
    for split in ("train", "valid"):
        part = table[table["split"] == split]
        if part.empty:
            raise TouchstoneError(
                f"the {task} probe has no examples in the split {split}; give it some"
            )
        states = features(lm.eval(), vocabulary, [text.split() for text in part["prefix"]])
        data[split] = (states, torch.tensor(part["tag"].to_numpy(), device=states.device))
    generator = torch.Generator().manual_seed(seed)
    layer = nn.Linear(lm.config.embedding, 2).to(data["train"][0].device)
    with torch.no_grad():
        layer.weight.copy_(
            torch.randn(layer.weight.shape, generator=generator) * lm.config.embedding**-0.5
        )
        layer.bias.zero_()
    curve = _descend(layer, data, settings, generator)
    return Probe(lm, vocabulary, layer, CLASSES[task]), curve


def _descend(
    layer: nn.Linear,
    data: dict[str, tuple[Tensor, Tensor]],
    settings: ProbeSettings,
    generator: torch.Generator,
) -> pd.DataFrame:
    optimiser = torch.optim.Adam(layer.parameters(), lr=settings.lr)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=0)
    (states, tags), (valid_states, valid_tags) = data["train"], data["valid"]
    curve, best, kept = [], float("inf"), copy.deepcopy(layer.state_dict())
    for epoch in range(1, settings.epochs + 1):
        losses = []
        for rows in torch.randperm(len(tags), generator=generator).split(settings.batch_size):
            loss = F.cross_entropy(layer(states[rows]), tags[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item() * len(rows))
        with torch.no_grad():
            scores = layer(valid_states)
            valid_loss = F.cross_entropy(scores, valid_tags).item()
            accuracy = (scores.argmax(1) == valid_tags).double().mean().item()
        schedule.step(valid_loss)
        curve.append((epoch, sum(losses) / len(tags), valid_loss, accuracy))
        if valid_loss < best:
            best, kept = valid_loss, copy.deepcopy(layer.state_dict())
    layer.load_state_dict(kept)
    return pd.DataFrame(
        curve, columns=["epoch", "train_loss", "validation_loss", "validation_accuracy"]
    )


def fingerprint(lm: Any) -> str:
    """What tells models of the same size apart: the kind, its settings, and the sum of its parameters."""
    return f"{type(lm).__name__} {lm.config} {sum(p.double().sum().item() for p in lm.parameters()):.3f}"


def save_probe(probe: Probe, path: Path) -> None:
    """Write the probe's layer, with what it belongs to; the language model has a file of its own."""
    with atomic_path(path) as part:
        save_file(
            {
                name: value.detach().cpu().contiguous()
                for name, value in probe.layer.state_dict().items()
            },
            part,
            {"classes": " ".join(probe.classes), "lm": fingerprint(probe.lm)},
        )


def load_probe(lm_path: Path, layer_path: Path, task: str) -> Probe:
    """A probe from the files of its language model and of its layer.

    Raises TouchstoneError where the layer belongs to another model or task (in the file since it is written there), or has
    another size.
    """
    lm, vocabulary = noted_hf_lm(lm_path) or load_lm(lm_path)
    with safe_open(layer_path, "pt") as file:
        about = file.metadata() or {}
    for name, mine in (("classes", " ".join(CLASSES[task])), ("lm", fingerprint(lm))):
        if about.get(name, mine) != mine:
            raise TouchstoneError(
                f"{layer_path} is a probe of another {'task' if name == 'classes' else 'model'} ({about[name]}), not of "
                f"{lm_path.name} for {task}; fit a probe for this one"
            )
    tensors = load_file(layer_path)
    n_out, n_in = tensors["weight"].shape
    layer = nn.Linear(n_in, n_out)
    layer.load_state_dict(tensors)
    return Probe(lm, vocabulary, layer, CLASSES[task])
