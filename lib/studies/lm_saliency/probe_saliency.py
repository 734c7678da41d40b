"""Saliency of a two-class probe on a language model, for both classes (Ding & Koehn 2021, sec. 2).

With two classes and d = z_1 - z_0, log p_1 = -softplus(-d) and log p_0 = -softplus(d), so the
gradients of the two log-probabilities are (1 - p_1) and -p_1 times the gradient of d. One backward
pass therefore serves both classes, at every noisy or interpolated point with the p_1 of that point.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from ...attribution.budget import TokenBudget
from ...attribution.explain import explain
from ...attribution.seam import word_scores
from ...core.errors import TouchstoneError, check_choice
from ...core.progress import progress
from ...core.seeds import seed_for
from ...models.probe import Probe
from ...models.text_model import Encoded, device_of, lengths_of

_CHOICES = {
    "method": ("V", "SG", "IG"),
    "noise_kind": ("range", "norm"),
    "path": ("standard", "released"),
    "composition": ("gradient_input", "vector_norm"),
}
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
        for name, known in _CHOICES.items():
            check_choice(name, getattr(self, name), known)
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
    same_points: dict[SaliencySettings, dict[int, SaliencySettings]] = {}
    for i, setting in enumerate(settings):
        points = replace(setting, path="standard", composition="gradient_input")
        same_points.setdefault(points, {})[i] = setting
    budget = TokenBudget.for_module(probe.module)
    found: dict[tuple[int, int], Saliency] = {}  # by setting and prefix
    for points, users in same_points.items():
        per_row = {"V": 1, "SG": points.n_samples, "IG": points.n_steps}[points.method]
        lengths = [per_row * length for length in lengths_of(encoded)]
        work = partial(_saliencies_of, probe, prefixes, encoded, users)
        for _, answers in progress(budget.run(lengths, work), points.method):
            found |= answers
    return [[found[i, row] for row in range(len(prefixes))] for i in range(len(settings))]


def baseline_saliency(
    probe: Probe, prefixes: Sequence[Sequence[str]], name: str, n_samples: int = 100, seed: int = 0
) -> list[Saliency]:
    """The same form of answer from shared methods: contrastive, erasure, LIME (`BASELINES`).

    "Contrastive": gradient x input of the margin to the other class (Yin & Neubig 2022). "Erasure":
    the log-probability minus the one with the word's embedding set to zero (Li et al. 2016b).
    "LIME": a local ridge regression on which words are left. Raises TouchstoneError for another
    name.
    """
    check_choice("the baseline", name, BASELINES)
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
        explain(probe, rows.assign(target=c), method, given, study="lm_saliency", seed=seed)
        for c in (0, 1)
    ]
    scores = zip(*(side["scores"] for side in sides), strict=True)
    answers = zip(scores, probe.predict(prefixes)[:, 1], strict=True)
    return [Saliency(np.array(classes), float(p)) for classes, p in answers]


def _saliencies_of(
    probe: Probe,
    prefixes: Sequence[Sequence[str]],
    encoded: Sequence[Encoded],
    settings: Mapping[int, SaliencySettings],
    rows: Sequence[int],
) -> dict[tuple[int, int], Saliency]:
    """The saliency of some prefixes of one length, for settings that share their points."""
    ids = torch.tensor([encoded[row].ids for row in rows], device=device_of(probe.module))
    with torch.no_grad():
        clean = probe.embed(ids)
        p_clean = probe.logits(clean, torch.ones_like(ids)).softmax(-1)[:, 1].tolist()
    points = _points(probe, clean, [prefixes[row] for row in rows], next(iter(settings.values())))
    gradient, p = margin_gradient(probe, points.flatten(0, 1))
    gradient, p = gradient.view(points.shape), p.view(points.shape[:2])
    found = {}
    for number, one in settings.items():
        weights = _weights(len(points), one).to(p)[:, None]
        sides = [torch.einsum("sb,sbth->bth", factor * weights, gradient) for factor in (-p, 1 - p)]
        scores = _compose(torch.stack(sides, dim=1), clean, one.composition).cpu().numpy()
        for row, of_line, probability in zip(rows, scores, p_clean, strict=True):
            line, n_words = encoded[row], len(prefixes[row])
            words = np.array([word_scores(side, line.word_ids, n_words) for side in of_line])
            found[number, row] = Saliency(words, probability)
    return found


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
        spreads = _spreads(probe, clean, settings)
        noise = [
            _noise(clean.shape[1:], words, spread, settings)
            for words, spread in zip(prefixes, spreads, strict=True)
        ]
        return clean + torch.stack(noise, dim=1).to(clean)
    alpha = torch.arange(1, settings.n_steps + 1, device=clean.device) / settings.n_steps
    points = alpha[:, None, None, None] * clean[None]
    # The word that begins a sequence is no word of the prefix: it stays.
    points[:, :, 0] = clean[:, 0]
    return points


def _weights(n_points: int, settings: SaliencySettings) -> Float[Tensor, "step"]:
    """What each point counts: the same, or on the path of the released code its alpha."""
    if settings.method == "IG" and settings.path == "released":
        return torch.arange(1, n_points + 1) / n_points / n_points
    return torch.ones(n_points) / n_points


def _spreads(
    probe: Probe, clean: Float[Tensor, "batch token hidden"], settings: SaliencySettings
) -> list[float]:
    """How wide the noise of each line is; read from the device in one go."""
    if settings.noise_kind == "range":
        ranges = clean[:, 1:].amax((1, 2)) - clean[:, 1:].amin((1, 2))
        return [settings.noise * size for size in ranges.tolist()]
    table = probe.lm.embed(torch.arange(probe.lm.n_words, device=clean.device)[None])
    return [(settings.noise * float(table.detach().norm())) ** 0.5] * len(clean)


def _noise(
    shape: Sequence[int], words: Sequence[str], spread: float, settings: SaliencySettings
) -> Float[Tensor, "step token hidden"]:
    generator = torch.Generator().manual_seed(seed_for("SG", " ".join(words), settings.seed))
    noise = torch.randn(settings.n_samples, *shape, generator=generator) * spread
    noise[:, 0] = 0
    return noise


def _compose(
    vectors: Float[Tensor, "batch class token hidden"],
    clean: Float[Tensor, "batch token hidden"],
    composition: str,
) -> Float[Tensor, "batch class token"]:
    if composition == "gradient_input":
        return (vectors * clean[:, None]).sum(-1)
    sizes = vectors.abs().mean(-1)
    return sizes / sizes[:, :, 1:].sum(-1, keepdim=True)
