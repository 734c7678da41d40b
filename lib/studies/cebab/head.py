"""A model's last layer: how it answers, how it is fitted, and whether it is the one it seems."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from ...core.errors import TouchstoneError
from .questions import TOLERANCE, Effects, Texts, Vectors

_NEVER = -30.0  # the bias of a class without a label: a probability of nothing


@dataclass(frozen=True)
class Head:
    """A model's last layer: probabilities = softmax(embedding @ weight.T + bias).

    >>> Head(np.eye(2), np.zeros(2)).probabilities(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """

    weight: Float[np.ndarray, "class hidden"]
    bias: Float[np.ndarray, "class"]

    def probabilities(self, embeddings: Vectors) -> Effects:
        """The model's answers for embeddings, (batch, class)."""
        return softmax(embeddings @ self.weight.T + self.bias, axis=1)


def fit_head(
    vectors: Vectors, labels: Int[np.ndarray, "batch"], n_classes: int, penalty: float = 0.1
) -> Head:
    """A linear classifier on frozen vectors: logistic regression.

    Args:
        vectors: of length one, one row a text.
        labels: the class of each text, counted from 0.
        n_classes: how many classes there are; one that no label has gets a probability of nothing.
        penalty: the inverse of scikit-learn's C.
    """
    fitted = LogisticRegression(C=1 / penalty, max_iter=2000).fit(vectors, labels)
    weight, bias = np.zeros((n_classes, vectors.shape[1])), np.full(n_classes, _NEVER)
    weight[fitted.classes_], bias[fitted.classes_] = fitted.coef_, fitted.intercept_
    if len(fitted.classes_) == 2:  # scikit-learn keeps one row for two classes, the second's
        weight[fitted.classes_[0]], bias[fitted.classes_[0]] = 0.0, 0.0
    return Head(weight, bias)


def refit_head(head: Head, vectors: Vectors, answers: Effects, strength: float = 1e-3) -> Head:
    """The last layer trained on from where it is, to give the model's answers from other vectors.

    Cross-entropy with the soft answers plus `strength` times the squared weights, which is convex,
    by L-BFGS.
    """
    weight, bias = (
        torch.tensor(part, dtype=torch.float64, requires_grad=True)
        for part in (head.weight, head.bias)
    )
    x, y = torch.tensor(vectors, dtype=torch.float64), torch.tensor(answers, dtype=torch.float64)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        log_p = (x @ weight.T + bias).log_softmax(1)  # (batch, class)
        loss = -(y * log_p).sum(1).mean() + strength * (weight**2).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    return Head(weight.detach().numpy(), bias.detach().numpy())


def need_embeddings(texts: Texts, head: Head | None, name: str) -> tuple[Vectors, Head]:
    """The embeddings and the head that an explainer needs.

    Raises:
        TouchstoneError: one of them is missing; the message says which.
    """
    if texts.embeddings is None or head is None:
        missing = "embeddings" if texts.embeddings is None else "a linear head"
        raise TouchstoneError(
            f"{name} needs {missing}; hand in the vectors that the model's last layer reads, and "
            "that layer"
        )
    return texts.embeddings.astype(float), head


def check_head(texts: Texts, head: Head) -> None:
    """Refuse a head that does not make the predictions: explainers would explain another model."""
    vectors, head = need_embeddings(texts, head, "a check of the last layer")
    off = np.abs(head.probabilities(vectors) - texts.probabilities).max(1)
    if off.max() > 10 * TOLERANCE:
        raise TouchstoneError(
            f"text {texts.ids[int(off.argmax())]!r}: softmax(weight @ vector + bias) is off its "
            f"prediction by {off.max():.3f}; hand in the vectors that the last layer reads, that "
            "layer, and probabilities"
        )
