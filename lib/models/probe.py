"""Probes: frozen language models whose output layer is replaced by one of two classes.

Ding & Koehn 2021, section 3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..core.errors import TouchstoneError
from .hf_lm import HFLanguageModel, Subwords, noted_hf_lm
from .language_model import END, PAD, LanguageModel, Vocabulary, load_lm
from .text_model import Encoded, device_of, in_buckets, pad
from .weights import read_tensors, save_tensors

CausalLM = LanguageModel | HFLanguageModel  # embeddings -> states -> log-probabilities
WordTable = Vocabulary | Subwords  # words -> ids, and the index of the word that each id is of
_AT_ONCE = 256  # sequences in one pass
_ERASED = -1  # the id of a word that was taken out: its embedding is zero


@dataclass(eq=False)
class Probe:
    """A language model that answers with a class of the next word.

    It is a TextModel, so every explainer reads it.

    A sequence is the end-of-sentence word, which begins it, and then the words of the prefix.
    """

    lm: CausalLM
    vocabulary: WordTable
    layer: nn.Linear
    classes: tuple[str, ...]
    max_length: int = 1024
    tokenizer: SimpleNamespace = field(init=False)
    module: nn.Module = field(init=False)

    def __post_init__(self) -> None:
        if self.lm.n_words != len(self.vocabulary):
            raise TouchstoneError(
                f"the model knows {self.lm.n_words} words and the vocabulary has "
                f"{len(self.vocabulary)}; hand in the vocabulary that the model was trained with"
            )
        shape, fitting = self.layer.weight.shape, (len(self.classes), self.lm.config.embedding)
        if shape != fitting:
            raise TouchstoneError(
                f"a layer from {self.layer.in_features} to {self.layer.out_features} does not fit "
                f"a model of size {self.lm.config.embedding} and {len(self.classes)} classes"
            )
        # All of a tokenizer that the shared explanation methods ask for.
        self.tokenizer = SimpleNamespace(pad_token_id=self.vocabulary.ids[PAD])
        self.module = nn.ModuleDict({"lm": self.lm, "layer": self.layer})
        # Only the gradient in the embeddings is ever asked for.
        self.module.requires_grad_(False)
        self.module.eval()

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        """Ids of prefixes, and for each the index of its word (None: what begins the sequence)."""
        begin = self.vocabulary.ids[END]
        return [
            Encoded([begin, *self.vocabulary.encode(words)], [None, *self.vocabulary.owners(words)])
            for words in sentences
        ]

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The word embeddings; zeros for a word that was taken out."""
        if not (ids == _ERASED).any():
            return self.lm.embed(ids)
        # -1 is no row of the table; any row will do, for it is multiplied by zero.
        return self.lm.embed(ids.clamp(min=0)) * (ids != _ERASED)[..., None]

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The scores of the classes after the last word of each sequence."""
        return self.layer(_last_state(self.lm.run(embeddings), mask))

    def reference_ids(self, ids: Int[Tensor, "batch token"]) -> Int[Tensor, "batch token"]:
        """The same sequences with every word taken out."""
        is_word = torch.arange(ids.shape[1], device=ids.device) > 0
        return ids.masked_fill(is_word, _ERASED)

    @torch.no_grad()
    def predict(self, sentences: Sequence[Sequence[str]], batch_size: int = _AT_ONCE) -> np.ndarray:
        """Class probabilities, one row a prefix, each from one clean pass."""
        last_states = features(self.lm, self.vocabulary, sentences, batch_size)
        return self.layer(last_states).softmax(-1).cpu().numpy()


def _last_state(
    states: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
) -> Float[Tensor, "batch hidden"]:
    """The state at the last real position.

    Padding stands on the right, and no causal model sees it from there.
    """
    return states[torch.arange(len(states), device=states.device), mask.sum(1) - 1]


@torch.no_grad()
def features(
    lm: CausalLM,
    vocabulary: WordTable,
    prefixes: Sequence[Sequence[str]],
    batch_size: int = _AT_ONCE,
) -> Float[Tensor, "batch hidden"]:
    """The model's last state after each prefix, rows of similar length computed together."""
    begin, device = vocabulary.ids[END], device_of(lm)

    def run(batch: Sequence[Encoded]) -> Float[Tensor, "batch hidden"]:
        ids, mask = pad(batch, vocabulary.ids[PAD], device=device)  # (batch, token)
        return _last_state(lm.run(lm.embed(ids)), mask)  # (batch, hidden)

    encoded = [Encoded([begin, *vocabulary.encode(words)], []) for words in prefixes]
    return in_buckets(run, encoded, batch_size, exact=False)


def _fingerprint(lm: CausalLM) -> str:
    """What tells models of the same size apart.

    The kind, its settings, and the sum of its parameters.
    """
    total = sum(p.double().sum().item() for p in lm.parameters())
    return f"{type(lm).__name__} {lm.config} {total:.3f}"


def save_probe(probe: Probe, path: Path) -> None:
    """Write the probe's layer, with what it belongs to.

    The language model has a file of its own.
    """
    about = {"classes": " ".join(probe.classes), "lm": _fingerprint(probe.lm)}
    save_tensors(path, probe.layer.state_dict(), about)


def load_probe(lm_path: Path, layer_path: Path, classes: tuple[str, ...]) -> Probe:
    """A probe from the files of its language model and of its layer.

    Raises:
        TouchstoneError: where the layer belongs to another model or to other classes (which a
            file says only since it is written there), or has another size.
    """
    lm, vocabulary = noted_hf_lm(lm_path) or load_lm(lm_path)
    return Probe(lm, vocabulary, load_layer(layer_path, lm, classes, lm_path.name), classes)


def load_layer(path: Path, lm: CausalLM, classes: tuple[str, ...], lm_name: str) -> nn.Linear:
    """The layer of a probe, which must belong to this language model and these classes.

    `lm_name` is what an error calls the model.

    Raises:
        TouchstoneError: as `load_probe`.
    """
    tensors, about = read_tensors(path, "fit a probe again")
    for name, expected in (("classes", " ".join(classes)), ("lm", _fingerprint(lm))):
        if about.get(name, expected) != expected:
            raise TouchstoneError(
                f"{path} is a probe of another {'task' if name == 'classes' else 'model'} "
                f"({about[name]}), not of {lm_name} for {' or '.join(classes)}; fit a probe "
                "for this one"
            )
    if set(tensors) != {"weight", "bias"} or tensors["weight"].ndim != 2:
        raise TouchstoneError(f"{path} holds no layer of a probe; fit a probe again")
    n_out, n_in = tensors["weight"].shape
    layer = nn.Linear(n_in, n_out)
    layer.load_state_dict(tensors)
    return layer.to(device_of(lm))
