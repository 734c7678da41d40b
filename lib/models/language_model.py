"""Language models over words that run from their word embeddings, and their vocabularies.

LSTM, QRNN and Transformer, one face for all.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..core.errors import TouchstoneError, did_you_mean
from ..core.files import save_json
from .language_model_layers import (
    AdaptiveInput,
    QRNNLayer,
    RecurrentStack,
    TransformerStack,
    WeightDropLSTM,
)
from .weights import read_recipe, read_tensors, save_tensors

ARCHITECTURES = ("LSTM", "QRNN", "Transformer")
UNKNOWN, END, PAD = "<unk>", "<eos>", "<pad>"
_SPECIAL = (PAD, END, UNKNOWN)


@dataclass(frozen=True)
class Vocabulary:
    """The words of a language model in the order of their ids.

    Padding, end of sentence, unknown, then by frequency.
    """

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: i for i, word in enumerate(self.words)}

    def encode(self, words: Iterable[str]) -> list[int]:
        """Ids of words in small letters; a word that is not there becomes the unknown word."""
        return [self.ids.get(word.lower(), self.ids[UNKNOWN]) for word in words]

    def owners(self, words: Sequence[str]) -> list[int]:
        """For each id the index of its word; here every word has one id."""
        return list(range(len(words)))

    def share_unknown(self, sentences: Iterable[Sequence[str]]) -> float:
        """The share of tokens that the vocabulary does not know."""
        ids = [i for words in sentences for i in self.encode(words)]
        return ids.count(self.ids[UNKNOWN]) / len(ids)


def build_vocabulary(
    sentences: Iterable[Sequence[str]], size: int = 0, forced: Iterable[str] = ()
) -> Vocabulary:
    """The most frequent words of a corpus, in small letters.

    Words of the same frequency are ordered by the alphabet.

    >>> build_vocabulary([["the", "dog"], ["The", "cat"]], size=1, forced=["Cats"]).words
    ('<pad>', '<eos>', '<unk>', 'the', 'cats')

    Args:
        size: how many words; 0 takes all.
        forced: words that a test set cannot do without; they are taken whatever their frequency.
    """
    counts = Counter(word.lower() for words in sentences for word in words)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    chosen = dict.fromkeys([*ordered[: size or None], *(word.lower() for word in forced)])
    for word in _SPECIAL:
        chosen.pop(word, None)
    return Vocabulary((*_SPECIAL, *sorted(chosen, key=lambda word: (-counts[word], word))))


@dataclass(frozen=True)
class LMConfig:
    """What a language model is built from.

    `embedding`: size of word embeddings (and of the last hidden state); `width`: size of the
    recurrent layers, or of the Transformer's feed-forward layers; `cutoffs`: bands of the adaptive
    input and softmax, none for the plain ones.
    """

    architecture: str
    n_layers: int
    embedding: int
    width: int
    n_heads: int = 4
    dropout: float = 0.0
    weight_drop: float = 0.0
    cutoffs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.architecture not in ARCHITECTURES:
            raise TouchstoneError(
                f"there is no architecture {self.architecture!r}"
                f"{did_you_mean(self.architecture, ARCHITECTURES)}"
            )
        if self.architecture == "Transformer" and self.embedding % self.n_heads:
            raise TouchstoneError(
                f"an embedding of {self.embedding} does not split into {self.n_heads} heads; make "
                "it a multiple"
            )


class FullSoftmax(nn.Module):
    """The plain output layer: one linear map to all words, whose weights are the word table."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self.table, self.bias = table, nn.Parameter(torch.zeros(table.num_embeddings))

    def log_prob(self, hidden: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch vocab"]:
        """The log-probabilities of all words."""
        return F.log_softmax(F.linear(hidden, self.table.weight, self.bias), dim=-1)


class LanguageModel(nn.Module):
    """Predicts the next word from the ones before it.

    `embed`, then `run`, then `log_prob`, so that embeddings can be changed on the way.
    """

    def __init__(self, config: LMConfig, n_words: int) -> None:
        super().__init__()
        self.config, self.n_words = config, n_words
        cutoffs = [edge for edge in config.cutoffs if edge < n_words]
        self.embedding = AdaptiveInput(n_words, config.embedding, cutoffs)
        self.stack = _stack(config)
        self.output = (
            nn.AdaptiveLogSoftmaxWithLoss(config.embedding, n_words, cutoffs, div_value=4.0)
            if cutoffs
            else FullSoftmax(self.embedding.tables[0])
        )

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The word embeddings alone: no positions."""
        return self.embedding(ids)

    def run(
        self, embeddings: Float[Tensor, "batch token hidden"]
    ) -> Float[Tensor, "batch token hidden"]:
        """The last hidden states; that of a position knows the words up to it and none after it."""
        return self.stack(embeddings)

    def log_prob(self, hidden: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch vocab"]:
        """Log-probabilities of the next word."""
        return self.output.log_prob(hidden)

    def loss(
        self, hidden: Float[Tensor, "batch hidden"], targets: Int[Tensor, "batch"]
    ) -> Float[Tensor, ""]:
        """Mean negative log-probability of the next words.

        Adaptive softmax looks only at the bands that it needs.
        """
        if isinstance(self.output, nn.AdaptiveLogSoftmaxWithLoss):
            return self.output(hidden, targets).loss
        return F.nll_loss(self.log_prob(hidden), targets)


def _stack(config: LMConfig) -> nn.Module:
    if config.architecture == "Transformer":
        return TransformerStack(
            config.embedding, config.width, config.n_heads, config.n_layers, config.dropout
        )
    sizes = [config.embedding, *[config.width] * (config.n_layers - 1), config.embedding]
    pairs = list(zip(sizes, sizes[1:]))
    if config.architecture == "LSTM":
        return RecurrentStack(
            [WeightDropLSTM(a, b, config.weight_drop) for a, b in pairs], config.dropout
        )
    return RecurrentStack(
        [QRNNLayer(a, b, window=2 if i == 0 else 1) for i, (a, b) in enumerate(pairs)],
        config.dropout,
    )


def build_lm(config: LMConfig, n_words: int, seed: int) -> LanguageModel:
    """An untrained model; the same seed gives the same weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LanguageModel(config, n_words)


def student_of(teacher: LanguageModel, layers: Sequence[int]) -> LanguageModel:
    """A shallower model that starts from layers of a teacher (as DistilBERT does).

    Embedding and output layer are the teacher's, too.

    Raises TouchstoneError where the chosen layers do not fit together (a recurrent first or last
    layer has a width of its own).
    """
    config = teacher.config
    if not layers or not all(0 <= i < config.n_layers for i in layers):
        raise TouchstoneError(
            f"student layers {list(layers)} of a teacher with {config.n_layers}; choose from 0 to "
            f"{config.n_layers - 1}"
        )
    student = LanguageModel(LMConfig(**asdict(config) | {"n_layers": len(layers)}), teacher.n_words)
    student.embedding.load_state_dict(teacher.embedding.state_dict())
    student.output.load_state_dict(teacher.output.state_dict())
    for new, old in enumerate(layers):
        try:
            student.stack.layers[new].load_state_dict(teacher.stack.layers[old].state_dict())
        except RuntimeError:
            raise TouchstoneError(
                f"layer {old} of the teacher does not fit as layer {new} of the student; a "
                "recurrent student keeps the first and the last layer"
            ) from None
    if config.architecture == "Transformer":
        student.stack.norm.load_state_dict(teacher.stack.norm.state_dict())
    return student


def save_lm(model: LanguageModel, vocabulary: Vocabulary, path: Path) -> None:
    """Write the weights (.safetensors), and beside them configuration and words (.json)."""
    save_tensors(path, model.state_dict())
    save_json(
        {"config": asdict(model.config), "words": list(vocabulary.words)}, path.with_suffix(".json")
    )


def load_lm(path: Path) -> tuple[LanguageModel, Vocabulary]:
    """A model that `save_lm` wrote, in evaluation mode, and its vocabulary.

    Raises TouchstoneError where a file is missing or damaged, or one does not fit the other.
    """
    notes = path.with_suffix(".json")
    about = read_recipe(notes, "config", "words")
    try:
        vocabulary = Vocabulary(tuple(about["words"]))
        model = LanguageModel(LMConfig(**about["config"]), len(vocabulary))
    except (TypeError, ValueError) as error:
        raise TouchstoneError(f"{notes} describes no model ({error}); train it again") from None
    try:
        model.load_state_dict(read_tensors(path)[0])
    except RuntimeError:
        raise TouchstoneError(
            f"the weights in {path} do not fit the configuration and the {len(vocabulary)} words "
            f"of {notes.name}; train it again"
        ) from None
    return model.eval(), vocabulary
