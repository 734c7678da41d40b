"""Saliency of a two-class probe on a language model, for both of its classes at once (Ding & Koehn 2021, section 2).

With two classes and d = z_1 - z_0, log p_1 = -softplus(-d) and log p_0 = -softplus(d), so the gradients of the two
log-probabilities are (1 - p_1) and -p_1 times the gradient of d. One backward pass therefore serves both classes, at
every noisy or interpolated point with the p_1 of that point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lib.attribution.seam import Score, TokenBatch
from lib.errors import TouchstoneError, did_you_mean
from lib.lm_text import Vocabulary
from lib.models.lm import LanguageModel
from lib.models.lm_probe import Probe, last_state
from lib.progress import progress
from lib.seeds import seed_for

METHODS = ("V", "SG", "IG")
VARIANTS = {"IG": ("standard", "released"), "SG": ("range", "norm")}
COMPOSITIONS = ("gradient_input", "vector_norm")
WORDS_AT_ONCE = 16_384  # words in one pass, noisy copies and path points counted


@dataclass(frozen=True)
class SaliencySettings:
    """How saliency is computed.

    `n_samples` and `noise`: SmoothGrad; `noise_kind` "range" is the released code's (standard deviation = noise times
    the range of the looked-up embeddings), "norm" the paper's text (variance = noise times the norm of the embedding
    matrix). `n_steps`: points k / n of the path, k = 1 ... n, from zero embeddings. `path` "standard" is x times the mean
    gradient, "released" weighs each gradient by its alpha. `composition` "gradient_input" sums gradient times input
    over the embedding; "vector_norm" is the mean size of the gradient, divided by its sum over the sentence.
    """

    method: str
    n_samples: int = 30
    noise: float = 0.15
    noise_kind: str = "range"
    n_steps: int = 100
    path: str = "standard"
    composition: str = "gradient_input"
    seed: int = 0

    def __post_init__(self) -> None:
        for value, known in ((self.method, METHODS), (self.noise_kind, VARIANTS["SG"]), (self.path, VARIANTS["IG"]),
                             (self.composition, COMPOSITIONS)):
            if value not in known:
                raise TouchstoneError(f"{value!r} is none of {', '.join(known)}{did_you_mean(value, known)}")
        if self.n_samples < 1 or self.n_steps < 1:
            raise TouchstoneError("n_samples and n_steps must be at least 1")


@dataclass(frozen=True)
class Saliency:
    """One line's saliency: a score per word for class 0 and for class 1, and the clean probability of class 1."""

    scores: Float[np.ndarray, "class token"]
    probability: float


def probe_saliency(probe: Probe, prefixes: Sequence[Sequence[str]], settings: SaliencySettings) -> list[Saliency]:
    """The saliency of every word of each prefix for both classes; lines of the same length are computed together.

    The draws of a line depend on its words and the seed, not on the lines beside it. Raises TouchstoneError for an
    empty prefix: there is no word in it to be salient.
    """
    if empty := [i for i, words in enumerate(prefixes) if not len(words)]:
        raise TouchstoneError(f"prefix {empty[0]} is empty; leave it out, for it has no word to explain")
    per_row = {"V": 1, "SG": settings.n_samples, "IG": settings.n_steps}[settings.method]
    by_length: dict[int, list[int]] = {}
    for i, words in enumerate(prefixes):
        by_length.setdefault(len(words), []).append(i)
    found: dict[int, Saliency] = {}
    chunks = []
    for length, rows in by_length.items():
        size = max(1, WORDS_AT_ONCE // (per_row * (length + 1)))
        chunks += [rows[i:i + size] for i in range(0, len(rows), size)]
    for rows in progress(chunks, settings.method):
        found.update(zip(rows, _saliency_of(probe, [prefixes[i] for i in rows], settings), strict=True))
    return [found[i] for i in range(len(prefixes))]


def _saliency_of(probe: Probe, prefixes: Sequence[Sequence[str]], settings: SaliencySettings) -> list[Saliency]:
    device = next(probe.module.parameters()).device
    ids = torch.tensor([one.ids for one in probe.encode(prefixes)], device=device)
    with torch.no_grad():
        clean = probe.embed(ids)
        p_clean = probe.logits(clean, torch.ones_like(ids)).softmax(-1)[:, 1]
    points, weights = _points(probe, clean, prefixes, settings)
    gradient, p = margin_gradient(probe, points.flatten(0, 1))
    gradient = gradient.view(points.shape)
    p = p.view(points.shape[:2])
    vectors = torch.stack([torch.einsum("sb,sbth->bth", -p * weights, gradient),
                           torch.einsum("sb,sbth->bth", (1 - p) * weights, gradient)], dim=1)
    scores = _compose(vectors, clean, settings.composition)[:, :, 1:].cpu().numpy()  # without the word that begins
    return [Saliency(scores[i], float(p_clean[i])) for i in range(len(prefixes))]


def margin_gradient(probe: Probe, embeddings: Float[Tensor, "batch token hidden"]
                    ) -> tuple[Float[Tensor, "batch token hidden"], Float[Tensor, "batch"]]:
    """The gradient of z_1 - z_0 in the embeddings, and p_1, row by row."""
    inputs = embeddings.detach().requires_grad_()
    mask = torch.ones(embeddings.shape[:2], dtype=torch.long, device=embeddings.device)
    with torch.enable_grad():
        logits = probe.logits(inputs, mask)
        margin = logits[:, 1] - logits[:, 0]
        (gradient,) = torch.autograd.grad(margin.sum(), inputs)
    return gradient, margin.detach().sigmoid()


def _points(probe: Probe, clean: Tensor, prefixes: Sequence[Sequence[str]],
            settings: SaliencySettings) -> tuple[Tensor, Tensor]:
    """The embeddings at which gradients are taken (step x row x token x hidden), and the weight of each."""
    if settings.method == "V":
        return clean[None], torch.ones(1, len(clean), device=clean.device)
    if settings.method == "SG":
        noise = torch.stack([_noise(probe, row, words, settings) for row, words in zip(clean, prefixes, strict=True)], 1)
        return clean[None] + noise, torch.full(noise.shape[:2], 1 / settings.n_samples, device=clean.device)
    alpha = torch.arange(1, settings.n_steps + 1, device=clean.device) / settings.n_steps
    points = alpha[:, None, None, None] * clean[None]
    points[:, :, 0] = clean[:, 0]  # the word that begins a sequence is no word of the prefix: it stays
    weight = (alpha if settings.path == "released" else torch.ones_like(alpha)) / settings.n_steps
    return points, weight[:, None].expand(-1, len(clean))


def _noise(probe: Probe, row: Float[Tensor, "token hidden"], words: Sequence[str],
           settings: SaliencySettings) -> Float[Tensor, "step token hidden"]:
    generator = torch.Generator().manual_seed(seed_for("SG", " ".join(words), settings.seed))
    if settings.noise_kind == "range":
        spread = settings.noise * float(row[1:].max() - row[1:].min())
    else:
        spread = (settings.noise * _matrix_norm(probe.lm)) ** 0.5
    noise = torch.randn(settings.n_samples, *row.shape, generator=generator).to(row) * spread
    noise[:, 0] = 0
    return noise


def _matrix_norm(lm: LanguageModel) -> float:
    """The L2 (Frobenius) norm of the whole embedding matrix."""
    ids = torch.arange(lm.n_words, device=next(lm.parameters()).device)
    with torch.no_grad():
        return float(lm.embed(ids[None]).norm())


def _compose(vectors: Float[Tensor, "batch class token hidden"], clean: Float[Tensor, "batch token hidden"],
             composition: str) -> Float[Tensor, "batch class token"]:
    if composition == "gradient_input":
        return (vectors * clean[:, None]).sum(-1)
    sizes = vectors.abs().mean(-1)
    return sizes / sizes[:, :, 1:].sum(-1, keepdim=True)


@dataclass(frozen=True)
class NextWordScore:
    """The log-probability that a language model gives to a chosen next word of each row; made by `next_word_batch`."""

    lm: LanguageModel
    targets: Int[Tensor, "batch"]

    def __call__(self, embeddings: Float[Tensor, "batch token hidden"],
                 mask: Int[Tensor, "batch token"]) -> Float[Tensor, "batch"]:
        """One log-probability a row."""
        found = self.lm.log_prob(last_state(self.lm.run(embeddings), mask))
        return found.gather(1, self.targets[:, None])[:, 0]

    def for_rows(self, rows: Int[Tensor, "batch"]) -> NextWordScore:
        """The score of chosen rows, each with its own word."""
        return NextWordScore(self.lm, self.targets[rows])


def next_word_batch(lm: LanguageModel, vocabulary: Vocabulary, prefix: Sequence[str], word: str,
                    seed: int = 0) -> TokenBatch:
    """A prefix and a chosen next word, ready for every method of lib.attribution (`integrated_gradients(batch)`, ...).

    Raises TouchstoneError for an empty prefix and for a word that the model does not know.
    """
    if not len(prefix):
        raise TouchstoneError("the prefix is empty; give at least one word to explain")
    if word.lower() not in vocabulary.ids:
        raise TouchstoneError(f"the model does not know the word {word!r}; choose a word of its vocabulary")
    probe = Probe(lm, vocabulary, torch.nn.Linear(lm.config.embedding, 2), ("-", "-"))
    ids = torch.tensor([one.ids for one in probe.encode([prefix])])
    with torch.no_grad():
        embeddings = probe.embed(ids)
    reference = torch.zeros_like(embeddings)
    reference[:, 0] = embeddings[:, 0]
    is_word = torch.ones_like(ids, dtype=torch.bool)
    is_word[:, 0] = False
    score = NextWordScore(lm, torch.tensor([vocabulary.ids[word.lower()]]))
    return TokenBatch(cast(Score, score), embeddings, torch.ones_like(ids), reference, is_word, (seed,))
