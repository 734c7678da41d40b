"""Heads of models from elsewhere that are more than one linear layer: two layers, or a function.

`lib.studies.cebab.reading.read_vectors` says how they come in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from scipy.special import softmax
from torch import Tensor

from ...core.arrays import real_numbers
from ...core.errors import TouchstoneError, check_choice
from .questions import (
    TOLERANCE,
    AnyHead,
    Effects,
    LayeredHead,
    Vectors,
    fit_again,
)

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,  # BERT's pooler, RoBERTa
    "relu": torch.relu,  # DistilBERT
    "gelu": F.gelu,  # ELECTRA
}
_STEP = 1e-3  # of the embeddings' mean length: float32 answers still have four digits of a slope


@dataclass(frozen=True)
class TwoLayerHead(LayeredHead):
    """softmax(activation(x @ dense_weight.T + dense_bias) @ weight.T + bias).

    So end the models of the paper: x is the vector of the first token, the dense layer is that of
    BERT's pooler or of RoBERTa's head, and the linear layer gives a score for each class.

    >>> head = TwoLayerHead(np.eye(2), np.zeros(2), "relu", np.eye(2), np.zeros(2))
    >>> head.probabilities(np.array([[-5.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """

    dense_weight: Float[np.ndarray, "width hidden"]
    dense_bias: Float[np.ndarray, "width"]
    activation: str
    weight: Float[np.ndarray, "class width"]
    bias: Float[np.ndarray, "class"]

    def __post_init__(self) -> None:
        check_choice("the activation", self.activation, ACTIVATIONS)

    def probabilities(self, embeddings: Vectors) -> Effects:
        """The model's answers for embeddings, (batch, class)."""
        return softmax(self._scores(_tensor(embeddings), *self._layers()).numpy(), axis=1)

    def score_slopes(self, embeddings: Vectors, directions: Vectors) -> Effects:
        """By automatic differentiation, exact."""
        layers = self._layers()
        _, slopes = torch.autograd.functional.jvp(
            lambda x: self._scores(x, *layers), _tensor(embeddings), _tensor(directions)
        )
        return slopes.numpy()

    def refit(self, embeddings: Vectors, answers: Effects) -> "TwoLayerHead":
        """Both layers, as `refit_head` does with one; here the loss may have several minima, and
        the one below the head as it is is found.
        """
        parts = (self.dense_weight, self.dense_bias, self.weight, self.bias)
        dense_weight, dense_bias, weight, bias = fit_again(parts, self._scores, embeddings, answers)
        return TwoLayerHead(dense_weight, dense_bias, self.activation, weight, bias)

    def _scores(
        self, x: Tensor, dense_weight: Tensor, dense_bias: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        return ACTIVATIONS[self.activation](x @ dense_weight.T + dense_bias) @ weight.T + bias

    def _layers(self) -> list[Tensor]:
        parts = (self.dense_weight, self.dense_bias, self.weight, self.bias)
        return [_tensor(part) for part in parts]


@dataclass(frozen=True)
class FunctionHead(AnyHead):
    """A function from vectors to probabilities: (batch, hidden) to (batch, class).

    Its layers are hidden, so nothing is fitted again, and slopes are central differences.

    Args:
        name: for errors, "module:function".
        function: what is called, with an array of float64; a tensor may come back.
    """

    name: str
    function: Callable[[Vectors], Any]

    def probabilities(self, embeddings: Vectors) -> Effects:
        """The model's answers for embeddings, (batch, class).

        Raises:
            TouchstoneError: what comes back are no probabilities, a row a vector.
        """
        return checked_answers(self.function(embeddings.copy()), len(embeddings), self.name)

    def slopes(self, embeddings: Vectors, directions: Vectors) -> Effects:
        """Of the probabilities, over a step of a thousandth of the embeddings' mean length."""
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        step = _STEP * np.linalg.norm(embeddings, axis=1).mean()
        aside = step * directions / np.maximum(lengths, 1e-12)
        there, back = (self.probabilities(embeddings + way * aside) for way in (1, -1))
        return lengths * (there - back) / (2 * step)


def checked_answers(answers: Any, n_rows: int, source: str) -> Effects:
    """What a function from elsewhere returns as a model's answers, if that is what it is.

    Args:
        answers: an array, a tensor or lists: a row for each input, a probability for each class.
        n_rows: how many inputs there were.
        source: the function, for the error.

    >>> checked_answers([[0.25, 0.75]], 1, "mine:head").tolist()
    [[0.25, 0.75]]
    """
    try:
        array = answers.detach().cpu().numpy() if torch.is_tensor(answers) else np.array(answers)
    except (TypeError, ValueError) as error:  # rows of unequal length, a bfloat16 tensor
        raise TouchstoneError(
            f"{source} returned no array ({error}); return n x K probabilities"
        ) from None
    array = real_numbers(array, f"what {source} returned")
    if array.ndim != 2 or len(array) != n_rows or array.shape[1] < 2:
        raise TouchstoneError(
            f"{source} returned the shape {array.shape} for {n_rows} inputs; return n x K "
            "probabilities, a row for each input"
        )
    wrong = ~(np.abs(array.sum(1) - 1) <= TOLERANCE) | (array < 0).any(1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TouchstoneError(
            f"{source} returned {array[row].round(4).tolist()} for input {row}; probabilities are "
            "at least 0 and sum to one (logits need a softmax)"
        )
    return array


def _tensor(array: np.ndarray) -> Tensor:
    return torch.tensor(array, dtype=torch.float64)
