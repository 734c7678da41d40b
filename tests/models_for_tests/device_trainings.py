"""The paths of lib that take a device and train, measure or read models (see `device_paths`)."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from device_paths import DevicePath, Run
from tiny_language_models import SENTENCES, VOCABULARY, tiny_lm
from tiny_models import CLASSES, TEXTS, saved, tiny, tiny_masked_lm, toy_rows

from lib.language.lexicon import MASK
from lib.models.masked_gender import GenderAtMask
from lib.models.probe import Probe
from lib.studies.assay.models import ids_to_learn, log_odds, read_model, save_model, train
from lib.studies.assay.number_model import LanguagePlan, fit_language_model, fit_number_probe
from lib.studies.cebab.encoders import CausalProxy, ProxySettings, unlearn
from lib.studies.cebab.questions import Texts
from lib.studies.cebab.reviewers import Reviewer, sentence_vectors
from lib.studies.cebab.reviews import ASPECTS, VALUES
from lib.studies.lm_saliency.probe_saliency import (
    SaliencySettings,
    baseline_saliency,
    probe_saliencies,
)
from lib.training.classifier import Settings
from lib.training.language_model import (
    Distillation,
    LMSettings,
    fit_lm,
    minutes_ahead,
    perplexity,
    pieces,
)
from lib.training.masked_lm import MaskedSettings, fit_masked_lm, masked_perplexity
from lib.training.probe import ProbeSettings, fit_probe
from lib.training.transfer import Trainer

_OF_ROWS = ("at the mask", "saliency, QRNN", "saliency, LSTM", "saliency baselines")
PREFIXES = [line.split() for line in ("the old man", "the old men", "she sees the cat")]


def _halves(n_base: int = 10) -> tuple[pd.DataFrame, pd.DataFrame]:
    table = toy_rows()
    train, test = table["sentence_idx"] < n_base, table["sentence_idx"] >= 28
    return table[train].reset_index(drop=True), table[test].reset_index(drop=True)


def _transfer(scheme: str, epochs: int = 2, **about: Any) -> Run:
    def run(device: torch.device, n: int) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(saved(Path(folder), "bert"), "", device, **about)
            settings = None if scheme == "ZS" else Settings(epochs, 0.02, 8)
            found = trainer.train(scheme, 3, *_halves(), CLASSES, settings)
        return found.curve, found.predictions

    return run


def _side_by_side(device: torch.device, n: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(saved(Path(folder), "bert"), "", device)
        found = list(trainer.train_seeds("C", [3, 4], *_halves(), CLASSES, Settings(2, 0.02, 8)))
    return [(one.curve, one.predictions, list(one.trained.values())) for one in found]


def _language_model(architecture: str, distil: bool = False, **about: Any) -> Run:
    def run(device: torch.device, n: int) -> Any:
        model, encoded = tiny_lm(architecture, **about).to(device), pieces(SENTENCES, VOCABULARY, 8)
        teacher = Distillation(tiny_lm(architecture, 3, **about).to(device), 2) if distil else None
        settings = LMSettings(epochs=2, lr=0.01, batch_words=32)
        ahead = minutes_ahead(model, encoded, VOCABULARY, settings, teacher)
        curve = fit_lm(model, encoded, encoded[:4], VOCABULARY, settings, 0, teacher)
        assert ahead > 0
        return curve, perplexity(model, encoded, VOCABULARY)

    return run


def _masked(device: torch.device, n: int) -> Any:
    model = tiny_masked_lm("bert")
    model.module.to(device)
    encoded = model.encode([text.split() for text in TEXTS])
    curve = fit_masked_lm(model, encoded, encoded, MaskedSettings(2, 1e-2, 64, tuned="all"), 0)
    return curve, masked_perplexity(model, encoded)


def _at_the_mask(device: torch.device, n: int) -> Any:
    lm = tiny_masked_lm("bert")
    lm.module.to(device)
    words = ["She", "loves", MASK, "piano", "."]
    gender = GenderAtMask(lm, {"F": [20, 21], "M": [22, 23, 24]})
    texts = [text.split() for text in TEXTS]
    return (
        lm.log_prob(gender.encode([words] * n)),
        gender.predict([words] * n, 8),
        lm.mean_vectors(texts, contextual=True),
        sentence_vectors(lm, TEXTS),
    )


def _probe(device: torch.device, architecture: str) -> Probe:
    lm = tiny_lm(architecture, cutoffs=(8,)).to(device)
    torch.manual_seed(1)
    layer = torch.nn.Linear(16, 2)
    return Probe(lm, VOCABULARY, layer.to(device), ("singular", "plural"))


def _fit_probe(architecture: str) -> Run:
    def run(device: torch.device, n: int) -> Any:
        table = pd.DataFrame(
            {
                "prefix": [" ".join(words) for words in PREFIXES] * 6,
                "tag": [0, 1, 0] * 6,
                "split": ["train"] * 12 + ["valid"] * 6,
            }
        )
        lm = tiny_lm(architecture).to(device)
        names = ("singular", "plural")
        return fit_probe(lm, VOCABULARY, names, table, ProbeSettings(epochs=2), 0)[1]

    return run


def _saliency(architecture: str) -> Run:
    def run(device: torch.device, n: int) -> Any:
        probe = _probe(device, architecture)
        asked = [
            SaliencySettings(method=method, n_samples=3, n_steps=3) for method in ("V", "SG", "IG")
        ]
        found = probe_saliencies(probe, PREFIXES[:1] * n, asked)
        return [(one.scores, one.probability) for of_method in found for one in of_method]

    return run


def _baselines(device: torch.device, n: int) -> Any:
    probe = _probe(device, "QRNN")
    names = ("Contrastive", "Erasure", "LIME")
    found = [baseline_saliency(probe, PREFIXES[:1] * n, name, n_samples=12) for name in names]
    return [(one.scores, one.probability) for of_method in found for one in of_method]


def _reviewer(kind: str, n_frozen: int = 0) -> Run:
    def run(device: torch.device, n: int) -> Any:
        table = pd.DataFrame({"text": TEXTS, "label": [0, 1, 2, 1, 0]})
        with tempfile.TemporaryDirectory() as folder:
            encoder, settings = saved(Path(folder), "bert"), Settings(2, 0.01, 2)
            one = Reviewer("toy", kind, 0, encoder, "", 3, settings, n_frozen)
            weights = Path(folder) / "kept"
            weights.mkdir()
            found = one.read(table, table[:2], table[:4], device, weights=weights)
        return found.probabilities, found.vectors

    return run


def _unlearn(device: torch.device, n: int) -> Any:
    model, rng = tiny_masked_lm("bert"), np.random.default_rng(0)
    model.module.to(device)
    values = rng.choice(np.array(VALUES, dtype=object), (12, len(ASPECTS)))
    texts = [TEXTS[i % len(TEXTS)] for i in range(12)]
    return unlearn(model, texts, values, "food", MaskedSettings(1, 1e-2, 128), 0.5, 0)


def _proxy(device: torch.device, n: int) -> Any:
    model, rng = tiny("bert"), np.random.default_rng(0)
    model.module.to(device)
    gold = rng.choice(np.array(VALUES, dtype=object), (12, len(ASPECTS)))
    words = np.array([TEXTS[i % len(TEXTS)] for i in range(12)], dtype=object)
    answers = model.predict([text.split() for text in words], 8)
    ids = np.array([f"t{i}" for i in range(12)], dtype=object)
    texts = Texts(ids, gold, gold, answers, np.zeros((12, 2)), words)
    proxy = CausalProxy(model=model, settings=ProxySettings(Settings(1, 1e-3, 8), n_layers=1))
    proxy.fit(texts, None, 0)
    assert proxy.student is not None
    return proxy.student.predict([text.split() for text in words], 8)


def _assay_model(device: torch.device, n: int) -> Any:
    texts = [["we", word, "here"] for word in ("sat", "ran") for _ in range(10)]
    rows = pd.DataFrame({"sentence": texts, "target": [0] * 10 + [1] * 10})
    recipe = {
        "kind": "one layer",
        "encoder": "all-MiniLM-L6-v2",
        "revision": "",
        "n_layers": 1,
        "seed": 0,
    }
    recipe |= {"classes": ["0", "1"]}
    recipe["ids"] = ids_to_learn(recipe, texts)
    learnt_from = rows.assign(sentence_idx=range(20))
    model, trained, _ = train(recipe, learnt_from, Settings(2, 0.01, 8), device)
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), "one", recipe, trained)
        again = read_model(Path(folder) / "one.json", Path(folder) / "one.safetensors", device)
    return [log_odds(one, texts, rows["target"]) for one in (model, again)]


def _assay_number(device: torch.device, n: int) -> Any:
    plan = LanguagePlan(epochs=1, lr=0.01, width=16, batch_words=32)
    lm, words = fit_language_model(SENTENCES, PREFIXES, plan, 0, device)
    table = pd.DataFrame({"sentence": PREFIXES * 4, "target": [0, 1, 0] * 4})
    probe, _ = fit_number_probe(lm, words, table.assign(sentence_idx=range(12)), 2, 0)
    return probe.predict(PREFIXES)


_TRAININGS = [
    DevicePath(
        "transfer, C",
        _transfer("C"),
        (
            "training.transfer:Trainer.train",
            "training.classifier:fit",
            "training.classifier:evaluate",
            "models.hf:HFClassifier.read_all",
        ),
    ),
    DevicePath(
        "transfer, CEfAf",
        _transfer("CEfAf"),
        (
            "models.shortcuts:rows_in_use",
            "training.classifier:token_forward",
            "core.seeds:to_device",
        ),
    ),
    DevicePath("transfer, OLA", _transfer("OLA-CEA")),
    DevicePath("transfer, OLA as released", _transfer("OLA-CEA", ola="as_released")),
    DevicePath("transfer, ZS", _transfer("ZS"), ("models.zero_shot:LabelSimilarity.__init__",)),
    DevicePath(
        "side by side",
        _side_by_side,
        (
            "training.transfer:Trainer.train_seeds",
            "training.side_by_side:fit_seeds",
            "training.side_by_side:aligned",
        ),
    ),
    *(
        DevicePath(f"language model, {name}", _language_model(name), covers)
        for name, covers in (
            ("LSTM", ("training.language_model:fit_lm",)),
            ("QRNN", ("training.language_model:minutes_ahead",)),
            ("Transformer", ("training.language_model:perplexity",)),
        )
    ),
    DevicePath("adaptive language model", _language_model("LSTM", cutoffs=(8,))),
    DevicePath("distillation", _language_model("Transformer", distil=True)),
    DevicePath(
        "masked language model",
        _masked,
        ("training.masked_lm:masked_perplexity",),
    ),
    DevicePath(
        "at the mask",
        _at_the_mask,
        (
            "models.masked_gender:GenderAtMask.logits",
            "models.masked_lm:MaskedLM.log_prob",
            "models.masked_lm:MaskedLM.mean_vectors",
            "studies.cebab.reviewers:sentence_vectors",
        ),
    ),
    DevicePath("probe, LSTM", _fit_probe("LSTM"), ("training.probe:fit_probe",)),
    DevicePath("probe, Transformer", _fit_probe("Transformer"), ("models.probe:features",)),
    DevicePath(
        "saliency, QRNN",
        _saliency("QRNN"),
        ("studies.lm_saliency.probe_saliency:margin_gradient",),
    ),
    DevicePath(
        "saliency, LSTM",
        _saliency("LSTM"),
        ("models.language_model_layers:kept_for_gradients",),
    ),
    DevicePath("saliency baselines", _baselines, ("models.probe:Probe.reference_ids",)),
    DevicePath(
        "reviewer",
        _reviewer("encoder"),
        ("studies.cebab.reviewers:Reviewer.read", "studies.cebab.reviewers:train_reviewer"),
    ),
    DevicePath(
        "reviewer, frozen layers",
        _reviewer("encoder", 1),
        ("studies.cebab.upper_layers:from_states",),
    ),
    DevicePath("reviewer, BiLSTM", _reviewer("BiLSTM")),
    DevicePath(
        "assay, one layer",
        _assay_model,
        ("studies.assay.models:train", "studies.assay.models:read_model"),
    ),
    DevicePath(
        "assay, number",
        _assay_number,
        ("studies.assay.number_model:fit_language_model",),
    ),
    DevicePath("CausaLM", _unlearn, ("studies.cebab.encoders:concept_losses",)),
    DevicePath("Causal Proxy Model", _proxy, ("studies.cebab.encoders:CausalProxy.learn",)),
]

# Rows are read in batches of 64, so further rows of these cost nothing at all.
TRAININGS = [replace(path, per_row=0 if path.name in _OF_ROWS else None) for path in _TRAININGS]
# Functions that speak of a device and are run on no pretend one.
_ASKS = "asks pick_device for a real device, and hands it to what is run above"
NOT_RUN = {
    "core.seeds:pick_device": "it knows the names of real devices alone (tests/core/test_seeds.py)",
    "models.probe:load_layer": "reads a file and moves what it holds",
    "metrics.planting:planted_mass": "its tiny models are trained on the CPU, wherever it runs",
    "studies.assay.asking:Asking.loaded": _ASKS,
    "studies.assay.models:log_odds": "computes on the host, from the scores that are there",
    "studies.assay.trainings:Trainings.device": _ASKS,
    "studies.cebab.trainings:Trainings.frozen": _ASKS,
    "studies.cebab.trainings:Trainings.reading": _ASKS,
    "studies.cebab.trainings:Trainings.without": _ASKS,
    "studies.cebab.unlearning:masked_lm_of": "moves a model; its training is run above (CausaLM)",
    "studies.geco.example:make_example": "trains on the CPU, wherever it runs",
    "studies.geco.plan:Sample.__init__": "asks pick_device for a real device",
    "studies.geco.plan:Sample.model": "builds a model and moves it, as Trainer.train does",
    "studies.geco.plan:saved_bytes": "measures storages, and a pretend tensor has none",
    "studies.geco.units:StageSources.model_of": "moves a model, all else is the explaining above",
    "studies.geco.units:StageSources.model_to_show": "a training as Trainer.train's, and two moves",
    "studies.implicit_bias.asked:models_of": _ASKS,
    "studies.implicit_bias.trainings:Trainings.__init__": _ASKS,
    "studies.lm_saliency.examples:probe_to_show": "moves a probe, as Explanations.probe does",
    "studies.lm_saliency.explanations:Explanations.__init__": _ASKS,
    "studies.lm_saliency.explanations:Explanations.probe": "moves a probe; explaining is run above",
    "studies.lm_saliency.trainings:Trainings.__init__": _ASKS,
    "studies.lm_saliency.trainings:Trainings.trained": "moves a published model",
    "studies.lm_saliency.trainings:Trainings.untrained": "moves a model that was never trained",
}
