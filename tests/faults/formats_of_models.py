"""Parameters, kept results, models, and what is handed to functions: the inputs of a run."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from malformed import Format, text_file
from tiny_language_models import VOCABULARY, tiny_lm
from tiny_models import CLASSES, saved, tiny_module
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification

from lib.attribution import explain
from lib.core.notebooks import find_notebooks
from lib.core.parameters import (
    check_params,
    check_together,
    read_params,
    read_ranges,
    study_parameters,
)
from lib.core.paths import ROOT
from lib.core.units import Units
from lib.doors import explain_texts, wrap
from lib.models.language_model import load_lm, save_lm
from lib.models.load import build_model, read_trained, save_trained
from lib.models.masked_lm import new_masked_lm, read_masked_lm, save_masked_lm
from lib.models.probe import Probe, load_probe, save_probe
from lib.models.weights import load_classifier
from lib.training.classifier import Settings, validation_split
from lib.training.language_model import LMSettings
from lib.training.masked_lm import MaskedSettings
from lib.training.probe import ProbeSettings

_DIGITS = 6


# ------------------------------------------------------------------------------------- parameters
@cache
def _declared(study: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return study_parameters(find_notebooks(study)), read_ranges(study, ROOT)


def _read_parameters(study: str) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        declared, ranges = _declared(study)
        values = check_params(read_params(path), declared, path, ranges)
        check_together(declared | values, ranges, str(path))
        return values

    return read


_PARAMETERS = {
    "geco": "seed: 3\nschemes: [ZS, C]\nbinary_schemes: []\nepochs: {C: 2, CEf: 1}\n"
    "lr: {C: 0.01}\nmethods: [LIME]\n",
    "cebab": "seed: 3\nn_classes: 5\nmodels: [BiLSTM]\n",
    "implicit_bias": "seed: 3\nn_bases: 2\nmissing: discard\n",
    "lm_saliency": "seed: 3\narchitectures: [LSTM]\nnoise: 0.1\n",
}


# --------------------------------------------------------------------------------- kept results
_UNITS = Units("toy", "small", "02_training", reuse=False)
_KEY = "0123456789abcdef"


def _write_unit(folder: Path, content: Mapping[str, Any]) -> None:
    with _outputs(folder):
        _UNITS.save("a", _KEY, pd.DataFrame(content))


def _read_unit(folder: Path) -> Any:
    with _outputs(folder):
        found = Units("toy", "small", "02_training").load("a", _KEY)
    return None if found is None else found.to_dict("list")


@contextlib.contextmanager
def _outputs(folder: Path) -> Iterator[None]:
    """TOUCHSTONE_OUTPUTS set to a folder for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOUCHSTONE_OUTPUTS", str(folder))
        yield


# ---------------------------------------------------------------------------------------- models
@cache
def _saved(kind: Any = AutoModelForSequenceClassification) -> Path:
    """A tiny BERT with its tokenizer, as transformers keeps them."""
    return Path(saved(Path(tempfile.mkdtemp(prefix="touchstone-")), "bert", kind))


def _write_encoder(folder: Path, content: Any) -> None:
    shutil.copytree(_saved(), folder / "encoder")


def _rounded(array: Any) -> Any:
    return np.asarray(array).round(_DIGITS).tolist()


def _read_encoder(folder: Path) -> Any:
    torch.manual_seed(0)
    model = load_classifier(str(folder / "encoder"), "", CLASSES)
    ids = torch.tensor([model.encode([["she", "sings"]])[0].ids])
    return _rounded(model.embed(ids).detach()[0, :, :2])


def _recipe() -> dict[str, Any]:
    return {
        "encoder": str(_saved()),
        "revision": "",
        "classes": ["F", "M"],
        "scheme": "C",
        "seed": 3,
        "variant": "corrected",
    }


def _write_trained(folder: Path, content: Any) -> None:
    model, trained = build_model(_recipe())
    save_trained(folder, "m", _recipe(), model, trained)


def _read_trained(folder: Path) -> Any:
    model = read_trained(folder / "m.json", folder / "m.safetensors")
    return _rounded(model.predict([["she", "sings"]], 4))


def _write_lm(folder: Path, content: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    save_lm(tiny_lm("LSTM", 1), VOCABULARY, folder / "lm.safetensors")


def _read_lm(folder: Path) -> Any:
    model, vocabulary = load_lm(folder / "lm.safetensors")
    ids = torch.tensor([vocabulary.encode(["the", "dog"])])
    return _rounded(model.run(model.embed(ids)).detach()[0, :, :3])


def _write_probe(folder: Path, content: Any) -> None:
    _write_lm(folder, content)
    torch.manual_seed(0)
    probe = Probe(tiny_lm("LSTM", 1), VOCABULARY, torch.nn.Linear(16, 2), ("one", "many"))
    save_probe(probe, folder / "probe.safetensors")


def _read_probe(folder: Path) -> Any:
    probe = load_probe(folder / "lm.safetensors", folder / "probe.safetensors", ("one", "many"))
    return _rounded(probe.predict([["the", "dog"]]))


def _write_masked(folder: Path, content: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    recipe = {"encoder": str(_saved(AutoModelForMaskedLM)), "revision": "", "seed": 3}
    save_masked_lm(new_masked_lm(recipe["encoder"], 3), folder / "m.safetensors", recipe, "head")


def _read_masked(folder: Path) -> Any:
    model = read_masked_lm(folder / "m.json", folder / "m.safetensors")
    return sorted(model.trained_parameters("head"))


# -------------------------------------------------------------------------------------- functions
@cache
def _model() -> Any:
    return wrap(*tiny_module("bert"), CLASSES)


def _nothing(folder: Path, content: Any) -> None:
    """Keep a function's arguments where its `read` finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    _ARGUMENTS[folder] = content


_ARGUMENTS: dict[Path, Any] = {}


def _call(function: Callable[..., Any], good: Mapping[str, Any]) -> Format:
    """The format of a function's arguments."""
    return Format(
        lambda: dict(good), _nothing, lambda folder: function(**_ARGUMENTS.pop(folder)), ""
    )


def _explained(**given: Any) -> Any:
    frame = explain_texts(_model(), **given)
    return {
        "words": frame["words"].tolist(),
        "target": frame["target"].tolist(),
        "scores": [_rounded(scores) for scores in frame["scores"]],
    }


def _explained_row(**given: Any) -> Any:
    method, settings = given.pop("method"), given.pop("settings")
    frame = explain(_model(), pd.DataFrame([given]), method, settings)
    return [_rounded(scores) for scores in frame["scores"]]


_OWN = """\
def scores(model, rows, power=1):
    return [[float(len(word)) ** power for word in row.words] for row in rows]
"""


_number = count()


def _read_own(path: Path) -> Any:
    # Under a name of its own, for Python keeps a module that it has imported once.
    name = f"own_{next(_number)}"
    path.rename(path.with_name(f"{name}.py"))
    sys.path.insert(0, str(path.parent))
    try:
        found = explain_texts(_model(), ["she sings"], f"{name}:scores", classes="F")
    finally:
        sys.path.remove(str(path.parent))
    return found["scores"].tolist()


def _settings(kind: Callable[..., Any], **good: Any) -> Format:
    return _call(lambda **given: vars(kind(**given)), good)


def _split(**given: Any) -> Any:
    split = validation_split(**given)
    return [split.train.tolist(), split.validation.tolist()]


FORMATS = {
    **{
        f"parameters, {study}": text_file("x.yaml", text, _read_parameters(study))
        for study, text in _PARAMETERS.items()
    },
    "units": Format(
        lambda: {"row_id": ["5-F", "NA"], "p": [0.25, 1e-9], "scores": [[1.0, 2.5], [0.5]]},
        _write_unit,
        _read_unit,
        "toy/small/02_training/units/a.csv",
        prints=True,
    ),
    "encoder folders": Format(
        dict, _write_encoder, _read_encoder, "encoder/config.json", names="encoder"
    ),
    "trained classifiers": Format(dict, _write_trained, _read_trained, "m.json"),
    "trained masked LMs": Format(dict, _write_masked, _read_masked, "m.json"),
    "trained LMs": Format(dict, _write_lm, _read_lm, "lm.json"),
    "trained probes": Format(dict, _write_probe, _read_probe, "probe.safetensors"),
    "explain_texts": _call(
        _explained,
        {"texts": ["she sings", "he sings"], "method": "Occlusion", "classes": "F", "seed": 0}
        | {"settings": None},
    ),
    "explain": _call(
        _explained_row,
        {"row_id": "1-F", "sentence_idx": 1, "target": 0, "sentence": ["she", "sings"]}
        | {"method": "Saliency", "settings": None},
    ),
    "own methods": replace(text_file("own.py", _OWN, _read_own), names="own_"),
    "settings, classifier": _settings(Settings, epochs=2, lr=0.01, batch_size=4),
    "settings, language model": _settings(LMSettings, epochs=2, lr=0.01),
    "settings, masked LM": _settings(MaskedSettings, epochs=2, lr=0.01),
    "settings, probe": _settings(ProbeSettings),
    "validation rows": _call(
        _split, {"sentence_idx": [1, 1, 2, 2, 3, 3], "share": 0.34, "seed": 0}
    ),
}
