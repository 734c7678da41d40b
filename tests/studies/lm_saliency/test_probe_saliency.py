"""Saliency of probes: against autograd, against captum, and by the identities that must hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from lib.attribution.batch import TokenBatch
from lib.attribution.captum_route import input_x_gradient, integrated_gradients
from lib.attribution.next_word import next_word_batch
from lib.attribution.seam import class_score
from lib.core.errors import TouchstoneError
from lib.models.language_model import ARCHITECTURES, LMConfig, build_lm, build_vocabulary
from lib.models.probe import Probe
from lib.studies.lm_saliency.probe_saliency import (
    SaliencySettings,
    baseline_saliency,
    margin_gradient,
    probe_saliencies,
    probe_saliency,
)

PREFIXES = [
    line.split()
    for line in (
        "the dogs near the car",
        "a cat that the dogs chase",
        "the car",
        "a cat near the dogs",
    )
]
VOCABULARY = build_vocabulary(PREFIXES)


def probe_of(architecture: str) -> Probe:
    lm = build_lm(LMConfig(architecture, 2, 8, 12), len(VOCABULARY), seed=3).eval()
    torch.manual_seed(1)
    layer = nn.Linear(8, 2)
    with torch.no_grad():
        layer.weight.mul_(8)  # confident answers: the two classes then differ in more than a sign
    return Probe(lm, VOCABULARY, layer, ("singular", "plural"))


def batch_of(probe: Probe, words, target: int) -> TokenBatch:
    ids = torch.tensor([probe.encode([words])[0].ids])
    clean = probe.embed(ids)
    reference = torch.zeros_like(clean)
    reference[:, 0] = clean[:, 0]
    return TokenBatch(
        class_score(probe, [target], "log_probability"),
        clean,
        torch.ones_like(ids),
        reference,
        torch.ones_like(ids, dtype=torch.bool),
        (0,),
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_v_is_gradient_times_input_of_the_log_probability(architecture) -> None:
    probe = probe_of(architecture)
    found = probe_saliency(probe, PREFIXES, SaliencySettings("V"))
    for words, one in zip(PREFIXES, found):
        for target in (0, 1):
            expected = input_x_gradient(batch_of(probe, words, target)).scores[0, 1:].numpy()
            np.testing.assert_allclose(one.scores[target], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ig_is_captums_with_the_same_points(architecture) -> None:
    probe = probe_of(architecture)
    found = probe_saliency(probe, PREFIXES, SaliencySettings("IG", n_steps=7))
    for words, one in zip(PREFIXES, found):
        for target in (0, 1):
            expected = integrated_gradients(
                batch_of(probe, words, target), n_steps=7, rule="riemann_right"
            ).scores
            np.testing.assert_allclose(
                one.scores[target], expected[0, 1:].numpy(), rtol=1e-3, atol=1e-5
            )


def test_standard_ig_is_complete_and_the_released_variant_is_not() -> None:
    probe = probe_of("Transformer")
    gaps = {}
    for path in ("standard", "released"):
        one = probe_saliency(probe, PREFIXES[:1], SaliencySettings("IG", n_steps=400, path=path))[0]
        batch = batch_of(probe, PREFIXES[0], 1)
        with torch.no_grad():
            difference = float(
                batch.score(batch.embeddings, batch.mask) - batch.score(batch.baselines, batch.mask)
            )
        gaps[path] = abs(one.scores[1].sum() - difference)
    assert gaps["standard"] < 0.02 < 0.05 < gaps["released"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_under_v_the_other_class_says_the_same_with_the_other_sign(architecture) -> None:
    for one in probe_saliency(probe_of(architecture), PREFIXES, SaliencySettings("V")):
        factor = one.probability / (1 - one.probability)
        np.testing.assert_allclose(one.scores[0], -factor * one.scores[1], rtol=1e-4, atol=1e-6)
        assert np.corrcoef(one.scores)[0, 1] == pytest.approx(-1)


def test_sg_without_noise_is_v_and_its_draws_are_the_lines_own() -> None:
    probe = probe_of("LSTM")
    plain = probe_saliency(probe, PREFIXES, SaliencySettings("V"))
    silent = probe_saliency(probe, PREFIXES, SaliencySettings("SG", n_samples=4, noise=0.0))
    for a, b in zip(plain, silent):
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-4, atol=1e-6)
    noisy = probe_saliency(probe, PREFIXES, SaliencySettings("SG", n_samples=4))
    alone = probe_saliency(probe, PREFIXES[1:2], SaliencySettings("SG", n_samples=4))[0]
    np.testing.assert_allclose(noisy[1].scores, alone.scores, rtol=1e-4, atol=1e-6)
    assert np.abs(noisy[1].scores - plain[1].scores).max() > 1e-4


def test_sg_by_hand_from_its_own_noise() -> None:
    from lib.studies.lm_saliency.probe_saliency import _noise, _spreads

    probe, settings = probe_of("QRNN"), SaliencySettings("SG", n_samples=3)
    ids = torch.tensor([probe.encode(PREFIXES[:1])[0].ids])
    clean = probe.embed(ids)[0]
    noise = _noise(clean.shape, PREFIXES[0], _spreads(probe, clean[None], settings)[0], settings)
    assert noise[:, 0].abs().max() == 0
    total = torch.zeros(len(PREFIXES[0]))
    for sample in noise:
        x = (clean + sample).detach().requires_grad_()
        torch.log_softmax(probe.logits(x[None], torch.ones(1, len(x), dtype=torch.long)), -1)[
            0, 1
        ].backward()
        total += (x.grad * clean).sum(-1)[
            1:
        ].detach() / 3  # the gradient at the noisy point, the clean embedding
    np.testing.assert_allclose(
        probe_saliency(probe, PREFIXES[:1], settings)[0].scores[1],
        total.numpy(),
        rtol=1e-4,
        atol=1e-6,
    )


def test_the_two_noise_definitions() -> None:
    from lib.studies.lm_saliency.probe_saliency import _noise, _spreads

    def noise(settings: SaliencySettings) -> torch.Tensor:
        return _noise(row.shape, PREFIXES[0], _spreads(probe, row[None], settings)[0], settings)

    probe = probe_of("LSTM")
    row = probe.embed(torch.tensor([probe.encode(PREFIXES[:1])[0].ids]))[0]
    by = {
        kind: noise(SaliencySettings("SG", n_samples=4000, noise_kind=kind))[:, 1:].std().item()
        for kind in ("range", "norm")
    }
    table = probe.lm.embedding.tables[0].weight
    assert by["range"] == pytest.approx(0.15 * (row[1:].max() - row[1:].min()).item(), rel=0.02)
    assert by["norm"] == pytest.approx((0.15 * table.norm().item()) ** 0.5, rel=0.02)


def test_vector_norm_is_the_share_of_the_mean_absolute_gradient() -> None:
    probe = probe_of("Transformer")
    one = probe_saliency(probe, PREFIXES[:1], SaliencySettings("V", composition="vector_norm"))[0]
    clean = probe.embed(torch.tensor([probe.encode(PREFIXES[:1])[0].ids]))
    gradient, _ = margin_gradient(probe, clean)
    sizes = gradient[0, 1:].abs().mean(-1).numpy()
    np.testing.assert_allclose(one.scores, [sizes / sizes.sum()] * 2, rtol=1e-4)


def test_probabilities_are_those_of_the_clean_pass() -> None:
    probe = probe_of("QRNN")
    for settings in (SaliencySettings("SG", n_samples=2), SaliencySettings("IG", n_steps=3)):
        found = [one.probability for one in probe_saliency(probe, PREFIXES, settings)]
        np.testing.assert_allclose(found, probe.predict(PREFIXES)[:, 1], rtol=1e-4)


def test_a_chosen_next_word_is_explained_and_completely() -> None:
    lm = build_lm(LMConfig("LSTM", 2, 8, 12), len(VOCABULARY), seed=3).eval()
    batch = next_word_batch(lm, VOCABULARY, "the dogs near the".split(), "Car")
    found = integrated_gradients(batch, n_steps=200)
    with torch.no_grad():
        difference = batch.score(batch.embeddings, batch.mask) - batch.score(
            batch.baselines, batch.mask
        )
    assert found.scores[0].sum().item() == pytest.approx(difference.item(), abs=1e-3)
    with pytest.raises(TouchstoneError, match="does not know the word 'zebra'"):
        next_word_batch(lm, VOCABULARY, ["the"], "zebra")
    with pytest.raises(TouchstoneError, match="prefix is empty"):
        next_word_batch(lm, VOCABULARY, [], "car")


def test_what_is_unknown_or_empty_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="method is 'GI'; write one of V, SG, IG"):
        SaliencySettings("GI")
    with pytest.raises(TouchstoneError, match="prefix 1 is empty"):
        probe_saliency(probe_of("LSTM"), [["the"], []], SaliencySettings("V"))


def test_settings_that_share_gradients_give_what_each_gives_alone() -> None:
    probe = probe_of("QRNN")
    chosen = [
        SaliencySettings("V"),
        SaliencySettings("IG", n_steps=5),
        SaliencySettings("V", composition="vector_norm"),
        SaliencySettings("IG", n_steps=5, path="released"),
        SaliencySettings("SG", n_samples=3),
    ]
    for settings, together in zip(chosen, probe_saliencies(probe, PREFIXES, chosen)):
        for one, alone in zip(together, probe_saliency(probe, PREFIXES, settings)):
            np.testing.assert_allclose(one.scores, alone.scores, rtol=1e-5, atol=1e-7)


def test_contrastive_scores_are_v_without_its_factor() -> None:
    probe = probe_of("Transformer")
    for one, v in zip(
        baseline_saliency(probe, PREFIXES, "Contrastive"),
        probe_saliency(probe, PREFIXES, SaliencySettings("V")),
    ):
        np.testing.assert_allclose(
            v.scores[1], (1 - v.probability) * one.scores[1], rtol=1e-3, atol=1e-6
        )
        np.testing.assert_allclose(one.scores[0], -one.scores[1], rtol=1e-4, atol=1e-6)


def test_erasure_is_the_log_probability_with_a_word_less() -> None:
    probe, words = probe_of("LSTM"), PREFIXES[0]
    found = baseline_saliency(probe, [words], "Erasure")[0]
    ids = torch.tensor([probe.encode([words])[0].ids])
    clean = probe.embed(ids)
    for place in range(len(words)):
        without = clean.clone()
        without[0, place + 1] = 0
        scores = [
            torch.log_softmax(probe.logits(x, torch.ones_like(ids)), -1)[0]
            for x in (clean, without)
        ]
        np.testing.assert_allclose(
            found.scores[:, place], (scores[0] - scores[1]).numpy(), rtol=1e-3, atol=1e-6
        )


def test_lime_names_the_word_that_decides() -> None:
    probe, words = probe_of("LSTM"), PREFIXES[0]
    erased = baseline_saliency(probe, [words], "Erasure")[0].scores[1]
    lime = baseline_saliency(probe, [words], "LIME", n_samples=200)[0].scores[1]
    assert lime.shape == erased.shape and np.isfinite(lime).all() and np.abs(lime).max() > 0
    with pytest.raises(TouchstoneError, match="the baseline is 'Lime'; write one of Contrastive"):
        baseline_saliency(probe, [words], "Lime")
