"""The definitions: gradient methods, Kernel SHAP and LIME through captum and lime, one by one.

They say what a method is, and the notebooks show them on one row.
What `explain` runs is the engine (the table in `registry` says which module), which gives the same
numbers sooner and is asserted against this route by the tests. Only Guided Backprop on a network
with ReLU modules, and DeepLift on one with pooling or Softmax modules, are computed here for the
engine as well: captum's hooks are then the only implementation.

The word embeddings go in, and the model adds positions and LayerNorm itself, once. Every gradient
method has one vector per token; `aggregation` names how it becomes a score (`seam.aggregate`).
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from captum.attr import (
    Attribution,
    DeepLift,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    KernelShap,
    Saliency,
)
from captum.attr._core.deep_lift import SUPPORTED_NON_LINEAR
from jaxtyping import Float, Int
from lime.lime_text import LimeTextExplainer
from torch import Tensor, nn

from ..models.text_model import Encoded, TextModel, device_of, pad
from .batch import TokenBatch
from .seam import Row, Score, TokenScores, aggregate, class_score

_ROWS_AT_ONCE = 96  # sequences in one pass


def saliency(batch: TokenBatch, aggregation: str = "l1") -> TokenScores:
    """Saliency (Simonyan et al. 2013): the size of the score's gradient in each word embedding."""
    return TokenScores(aggregate(_by_captum(Saliency, batch, abs=True), aggregation))


def input_x_gradient(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """Input x Gradient (Shrikumar et al. 2017): x * dS/dx, embedding times gradient."""
    return TokenScores(aggregate(_by_captum(InputXGradient, batch), aggregation))


def guided_backprop(batch: TokenBatch, aggregation: str = "l2") -> TokenScores:
    """Guided Backprop (Springenberg et al. 2015): the gradient without negative signals at ReLUs.

    A network without ReLU modules (BERT, RoBERTa, GPT-2 and OLA have none) has nothing to cut: this
    is its plain gradient.
    """
    attributions = _by_captum(GuidedBackprop, batch, network=batch.score.network())
    return TokenScores(aggregate(attributions, aggregation))


def deep_lift(batch: TokenBatch, aggregation: str = "sum") -> TokenScores:
    """DeepLift (Shrikumar et al. 2017), rescale rule: multipliers times (x - baseline), summed.

    captum applies the rule to activation modules it knows (Tanh, ReLU, ...); GELU, attention and
    LayerNorm get the ordinary gradient. In BERT and OLA only the pooler's tanh is left, so the gap
    is large: it is reported, not hidden.
    """
    attributions, delta = _by_captum(
        DeepLift,
        batch,
        network=batch.score.network(),
        baselines=batch.baselines,
        return_convergence_delta=True,
    )
    return TokenScores(aggregate(attributions, aggregation), delta)


def seen_by_deep_lift(network: nn.Module) -> list[str]:
    """The modules, by name, to which captum's DeepLift applies its rule.

    >>> seen_by_deep_lift(nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.GELU()))
    ['1']
    """
    return [
        name for name, module in network.named_modules() if type(module) in SUPPORTED_NON_LINEAR
    ]


def integrated_gradients(
    batch: TokenBatch, aggregation: str = "sum", n_steps: int = 50, rule: str = "riemann_middle"
) -> TokenScores:
    """Integrated Gradients (Sundararajan et al. 2017, eq. 1): gradients on the path from x' to x.

    (x - x') times the mean of dS/dx over `n_steps` points of the path, placed by captum's `rule`,
    and the completeness gap: sum of all scores - (S(x) - S(x')), which goes to 0 as the points
    become many.
    """
    attributions, delta = _by_captum(
        IntegratedGradients,
        batch,
        baselines=batch.baselines,
        n_steps=n_steps,
        method=rule,
        # captum wants room for a point of each row at least.
        internal_batch_size=max(_ROWS_AT_ONCE, len(batch.embeddings)),
        return_convergence_delta=True,
    )
    return TokenScores(aggregate(attributions, aggregation), delta)


def gradient_shap(batch: TokenBatch, aggregation: str = "sum", n_samples: int = 5) -> TokenScores:
    """Gradient SHAP (Lundberg & Lee 2017): the same from a few random points of the path.

    One row at a time, each with its own seed: the draws of a row do not depend on the rows beside
    it.
    """
    attributions = []
    for i, seed in enumerate(batch.seeds):
        row = batch.row(i)
        with drawing_from(seed):
            attributions.append(
                _by_captum(GradientShap, row, baselines=row.baselines, n_samples=n_samples)
            )
    return TokenScores(aggregate(torch.cat(attributions), aggregation))


def kernel_shap(batch: TokenBatch, n_samples: int = 25) -> TokenScores:
    """Kernel SHAP (Lundberg & Lee 2017, theorem 2): Shapley values, by regression on coalitions.

    The players are the tokens of words; who is absent is replaced by padding, special and prompt
    tokens always stay. Two of the samples are "all present" and "all absent", so at least three
    samples are needed. One row at a time with its own seed; the samples of a row go through the
    model together.
    """
    with torch.no_grad():
        rows = [
            _shapley_values(batch.row(i), seed, n_samples) for i, seed in enumerate(batch.seeds)
        ]
    return TokenScores(torch.stack(rows))


def _shapley_values(row: TokenBatch, seed: int, n_samples: int) -> Float[Tensor, "token"]:
    is_word = row.is_word[0]
    scores = torch.zeros_like(row.embeddings[0, :, 0])
    if not (n_players := int(is_word.sum())):
        return scores
    if n_players == 1:  # captum's sampling needs two; one alone makes the whole difference
        scores[is_word] = row.score(row.embeddings, row.mask) - row.score(row.baselines, row.mask)
        return scores
    # Tokens that are no players are the same with and without: any player's number will do.
    players = torch.where(is_word, is_word.cumsum(0) - 1, 0)[None, :, None]  # (1, tokens, 1)
    with drawing_from(seed):
        attributions = KernelShap(ScoreNetwork(row.score)).attribute(
            row.embeddings,
            row.baselines,
            additional_forward_args=mask_and_rows(row),
            feature_mask=players,
            n_samples=n_samples,
            perturbations_per_eval=min(n_samples, _ROWS_AT_ONCE),
            # One number a player, not one a component of its embedding.
            return_input_shape=False,
        )
    scores[is_word] = attributions.flatten().to(scores)
    return scores


def lime(
    model: TextModel, rows: Sequence[Row], explained: str = "probability", n_samples: int = 100
) -> list[Float[np.ndarray, "token"]]:
    """LIME (Ribeiro et al. 2016, eq. 1): a weighted ridge regression on which words are left.

    The authors' package, given each sentence as the list of its positions ("0 1 2 ..."): two
    occurrences of a word are two features, and no word is ever found by comparing strings. Removed
    words are really gone: the text gets shorter. Other settings are the package's own (cosine
    distance, kernel width 25, ridge penalty 1).
    """
    return [_lime_weights(model, row, explained, n_samples) for row in rows]


def _lime_weights(
    model: TextModel, row: Row, explained: str, n_samples: int
) -> Float[np.ndarray, "token"]:
    @torch.no_grad()
    def scores_of(texts: Sequence[str]) -> Float[np.ndarray, "step 1"]:
        words = [[row.words[int(position)] for position in text.split()] for text in texts]
        # A model without special tokens (GPT-2) reads nothing as one end-of-text.
        empty = Encoded([model.tokenizer.pad_token_id], [None])
        encoded = [tokens if tokens.ids else empty for tokens in model.encode(words)]
        scores = np.zeros((len(texts), 1))
        for length in {len(tokens.ids) for tokens in encoded}:
            here = [i for i, tokens in enumerate(encoded) if len(tokens.ids) == length]
            score = class_score(model, [row.target] * len(here), explained)
            ids, mask = pad([encoded[i] for i in here], model.tokenizer.pad_token_id)
            device = device_of(model.module)
            scores[here, 0] = score(model.embed(ids.to(device)), mask.to(device)).cpu()
        return scores

    explainer = LimeTextExplainer(
        split_expression=str.split, feature_selection="none", random_state=row.seed
    )
    # Positions stand for words, so that two equal words stay two features.
    positions = " ".join(str(position) for position in range(len(row.words)))
    explanation = explainer.explain_instance(
        positions, scores_of, labels=(0,), num_samples=n_samples
    )
    return np.array([weight for _, weight in sorted(explanation.local_exp[0])])


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Within, the global generators of NumPy and PyTorch (captum's) start at `seed`."""
    numpy_state = np.random.get_state()
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            np.random.seed(seed)
            yield
    finally:
        np.random.set_state(numpy_state)


class ScoreNetwork(nn.Module):
    """A score as captum wants it: a module of (embeddings, mask, row numbers)."""

    def __init__(self, score: Score, network: nn.Module | None = None) -> None:
        super().__init__()
        self.score = score
        self.network = network  # registered, so that captum finds its activations

    def forward(
        self,
        embeddings: Float[Tensor, "batch token hidden"],
        mask: Int[Tensor, "batch token"],
        rows: Int[Tensor, "batch"],
    ) -> Float[Tensor, "batch"]:
        """The score of each sequence; `rows` tells which row's class (or word) it is about."""
        return self.score.for_rows(rows)(embeddings, mask)


def mask_and_rows(batch: TokenBatch) -> tuple[Int[Tensor, "batch token"], Int[Tensor, "batch"]]:
    """What captum hands on to a `ScoreNetwork` beside the embeddings."""
    return batch.mask, torch.arange(len(batch.mask), device=batch.mask.device)


def _by_captum(
    kind: Callable[..., Attribution],
    batch: TokenBatch,
    network: nn.Module | None = None,
    **settings: Any,
) -> Any:
    """What a kind of captum's finds for the embeddings; `network` where it sets hooks."""
    # With requires_grad set, captum has no reason to warn that it set it.
    inputs = batch.embeddings.detach().clone().requires_grad_()
    with warnings.catch_warnings():
        # That hooks are set is what we asked for.
        warnings.filterwarnings("ignore", message="Setting .* hooks", category=UserWarning)
        return kind(ScoreNetwork(batch.score, network)).attribute(
            inputs, additional_forward_args=mask_and_rows(batch), **settings
        )
