"""Saliency of a two-class probe on a language model, for both classes (Ding & Koehn 2021, sec. 2).

With two classes and d = z_1 - z_0, log p_1 = -softplus(-d) and log p_0 = -softplus(d), so the
gradients of the two log-probabilities are (1 - p_1) and -p_1 times the gradient of d. One backward
pass therefore serves both classes, at every noisy or interpolated point with the p_1 of that point.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from ...attribution.budget import TokenBudget
from ...attribution.explain import explain
from ...attribution.seam import word_scores
from ...core.errors import TouchstoneError, did_you_mean
from ...core.progress import progress
from ...core.seeds import seed_for
from ...models.probe import CausalLM, Probe
from ...models.text_model import Encoded, device_of

METHODS = ("V", "SG", "IG")
VARIANTS = {"IG": ("standard", "released"), "SG": ("range", "norm")}
COMPOSITIONS = ("gradient_input", "vector_norm")
BASELINES = {
    "Contrastive": ("InputXGradient", {"explained": "margin"}),
    "Erasure": ("Occlusion", {"explained": "log_probability"}),
    "LIME": ("LIME", {"explained": "log_probability"}),
}  # for comparison: methods of lib.attribution, and what they explain


@dataclass(frozen=True)
class SaliencySettings:
    """How saliency is computed.

    `n_samples` and `noise`: SmoothGrad; `noise_kind` "range" is the released code's (standard
    deviation = noise times the range of the looked-up embeddings), "norm" the paper's text
    (variance = noise times the norm of the embedding matrix). `n_steps`: points k / n of the path,
    k = 1 ... n, from zero embeddings. `path` "standard" is x times the mean gradient, "released"
    weighs each gradient by its alpha. `composition` "gradient_input" sums gradient times input over
    the embedding; "vector_norm" is the mean size of the gradient, divided by its sum over the
    sentence.
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
        for value, known in (
            (self.method, METHODS),
            (self.noise_kind, VARIANTS["SG"]),
            (self.path, VARIANTS["IG"]),
            (self.composition, COMPOSITIONS),
        ):
            if value not in known:
                raise TouchstoneError(
                    f"{value!r} is none of {', '.join(known)}{did_you_mean(value, known)}"
                )
        if self.n_samples < 1 or self.n_steps < 1:
            raise TouchstoneError("n_samples and n_steps must be at least 1")


@dataclass(frozen=True)
class Saliency:
    """One line's saliency: a score per word and class, and the clean probability of class 1."""

    scores: Float[np.ndarray, "class token"]
    probability: float


def probe_saliency(
    probe: Probe, prefixes: Sequence[Sequence[str]], settings: SaliencySettings
) -> list[Saliency]:
    """The saliency of every word of each prefix for both classes; equal lengths go together.

    The draws of a line depend on its words and the seed, not on the lines beside it. Raises
    TouchstoneError for an empty prefix: there is no word in it to be salient.
    """
    return probe_saliencies(probe, prefixes, [settings])[0]


def probe_saliencies(
    probe: Probe, prefixes: Sequence[Sequence[str]], settings: Sequence[SaliencySettings]
) -> list[list[Saliency]]:
    """The same for several settings, a list each.

    Settings that differ in what is made of the gradients alone (`path`, `composition`) share them.
    """
    if empty := [i for i, words in enumerate(prefixes) if not len(words)]:
        raise TouchstoneError(
            f"prefix {empty[0]} is empty; leave it out, for it has no word to explain"
        )
    encoded = probe.encode(prefixes)
    saliencies: list[list[Saliency | None]] = [[None] * len(prefixes) for _ in settings]
    same_points: dict[SaliencySettings, list[int]] = {}
    for i, setting in enumerate(settings):
        points = replace(setting, path="standard", composition="gradient_input")
        same_points.setdefault(points, []).append(i)
    budget = TokenBudget.for_device(device_of(probe.module))
    for points, users in same_points.items():
        per_row = {"V": 1, "SG": points.n_samples, "IG": points.n_steps}[points.method]

        def explain(rows: list[int], users: list[int] = users) -> list[list[Saliency]]:
            return _saliencies_of(
                probe,
                [prefixes[i] for i in rows],
                [encoded[i] for i in rows],
                [settings[i] for i in users],
            )

        parts = budget.run([per_row * len(tokens.ids) for tokens in encoded], explain)
        for rows, answers in progress(parts, points.method):
            for user, answer in zip(users, answers, strict=True):
                for row, saliency in zip(rows, answer, strict=True):
                    saliencies[user][row] = saliency
    return cast(list[list[Saliency]], saliencies)


def baseline_saliency(
    probe: Probe, prefixes: Sequence[Sequence[str]], name: str, n_samples: int = 100, seed: int = 0
) -> list[Saliency]:
    """The same form of answer from shared methods: contrastive, erasure, LIME (`BASELINES`).

    "Contrastive": gradient x input of the margin to the other class (Yin & Neubig 2022). "Erasure":
    the log-probability minus the one with the word's embedding set to zero (Li et al. 2016b).
    "LIME": a local ridge regression on which words are left. Raises TouchstoneError for another
    name.
    """
    if name not in BASELINES:
        raise TouchstoneError(f"there is no baseline {name!r}{did_you_mean(name, BASELINES)}")
    method, chosen = BASELINES[name]
    rows = pd.DataFrame(
        {
            "row_id": [" ".join(words) for words in prefixes],
            "sentence_idx": range(len(prefixes)),
            "sentence": [list(words) for words in prefixes],
        }
    )
    given = chosen | ({"n_samples": n_samples} if name == "LIME" else {})
    sides = [
        explain(probe, rows.assign(target=c), method, given, study="lm_saliency", seed=seed)[
            "scores"
        ]
        for c in (0, 1)
    ]
    answers = zip(sides[0], sides[1], probe.predict(prefixes)[:, 1], strict=True)
    return [Saliency(np.array([zero, one]), float(p)) for zero, one, p in answers]


def _saliencies_of(
    probe: Probe,
    prefixes: Sequence[Sequence[str]],
    encoded: Sequence[Encoded],
    settings: Sequence[SaliencySettings],
) -> list[list[Saliency]]:
    ids = torch.tensor([one.ids for one in encoded], device=device_of(probe.module))
    with torch.no_grad():
        clean = probe.embed(ids)
        p_clean = probe.logits(clean, torch.ones_like(ids)).softmax(-1)[:, 1].tolist()
    points = _points(probe, clean, prefixes, settings[0])
    gradient, p = margin_gradient(probe, points.flatten(0, 1))
    gradient, p = gradient.view(points.shape), p.view(points.shape[:2])
    answers = []
    for one in settings:
        weights = _weights(len(points), one).to(p)[:, None]
        vectors = torch.stack(
            [
                torch.einsum("sb,sbth->bth", -p * weights, gradient),
                torch.einsum("sb,sbth->bth", (1 - p) * weights, gradient),
            ],
            dim=1,
        )
        scores = _compose(vectors, clean, one.composition).cpu().numpy()
        answers.append(
            [
                Saliency(
                    np.array([word_scores(side, line.word_ids, len(words)) for side in of_line]),
                    probability,
                )
                for of_line, line, words, probability in zip(
                    scores, encoded, prefixes, p_clean, strict=True
                )
            ]
        )
    return answers


def margin_gradient(
    probe: Probe, embeddings: Float[Tensor, "batch token hidden"]
) -> tuple[Float[Tensor, "batch token hidden"], Float[Tensor, "batch"]]:
    """The gradient of z_1 - z_0 in the embeddings, and p_1, row by row."""
    inputs = embeddings.detach().requires_grad_()
    mask = torch.ones(embeddings.shape[:2], dtype=torch.long, device=embeddings.device)
    with torch.enable_grad():
        logits = probe.logits(inputs, mask)
        margin = logits[:, 1] - logits[:, 0]
        (gradient,) = torch.autograd.grad(margin.sum(), inputs)
    return gradient, margin.detach().sigmoid()


def _points(
    probe: Probe,
    clean: Float[Tensor, "batch token hidden"],
    prefixes: Sequence[Sequence[str]],
    settings: SaliencySettings,
) -> Float[Tensor, "step batch token hidden"]:
    """The embeddings at which gradients are taken."""
    if settings.method == "V":
        return clean[None]
    if settings.method == "SG":
        return clean[None] + torch.stack(
            [
                _noise(probe, row, words, settings)
                for row, words in zip(clean, prefixes, strict=True)
            ],
            1,
        )
    alpha = torch.arange(1, settings.n_steps + 1, device=clean.device) / settings.n_steps
    points = alpha[:, None, None, None] * clean[None]
    points[:, :, 0] = clean[
        :, 0
    ]  # the word that begins a sequence is no word of the prefix: it stays
    return points


def _weights(n_points: int, settings: SaliencySettings) -> Float[Tensor, "step"]:
    """What each point counts: the same, or on the path of the released code its alpha."""
    released = settings.method == "IG" and settings.path == "released"
    return (
        torch.arange(1, n_points + 1) / n_points if released else torch.ones(n_points)
    ) / n_points


def _noise(
    probe: Probe,
    row: Float[Tensor, "token hidden"],
    words: Sequence[str],
    settings: SaliencySettings,
) -> Float[Tensor, "step token hidden"]:
    generator = torch.Generator().manual_seed(seed_for("SG", " ".join(words), settings.seed))
    if settings.noise_kind == "range":
        spread = settings.noise * float(row[1:].max() - row[1:].min())
    else:
        spread = (settings.noise * _matrix_norm(probe.lm)) ** 0.5
    noise = torch.randn(settings.n_samples, *row.shape, generator=generator).to(row) * spread
    noise[:, 0] = 0
    return noise


def _matrix_norm(lm: CausalLM) -> float:
    """The L2 (Frobenius) norm of the whole embedding matrix."""
    ids = torch.arange(lm.n_words, device=next(lm.parameters()).device)
    with torch.no_grad():
        return float(lm.embed(ids[None]).norm())


def _compose(
    vectors: Float[Tensor, "batch class token hidden"],
    clean: Float[Tensor, "batch token hidden"],
    composition: str,
) -> Float[Tensor, "batch class token"]:
    if composition == "gradient_input":
        return (vectors * clean[:, None]).sum(-1)
    sizes = vectors.abs().mean(-1)
    return sizes / sizes[:, :, 1:].sum(-1, keepdim=True)
