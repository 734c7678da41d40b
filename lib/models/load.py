"""Keeping trained models: only the tensors that were trained, and what is needed to build the rest again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lib.core.errors import TouchstoneError
from lib.core.files import atomic_path, save_json, sha256_of
from lib.core.stage import MANIFEST, Stage
from lib.models.hf import HFClassifier
from lib.models.ola import OneLayerAttention
from lib.models.schemes import apply_scheme, scheme_named
from lib.models.text_model import RunsFromEmbeddings, TextModel
from lib.models.weights import check_weights, load_classifier, load_tokenizer
from lib.models.zero_shot import zero_shot_model

ROWS = "rows_in_use"  # the token ids that the rows of a stored word table belong to


def build_model(
    recipe: Mapping[str, Any], used_ids: Sequence[int] = ()
) -> tuple[RunsFromEmbeddings, dict[str, nn.Parameter]]:
    """The untrained model of a recipe, and the parameters that its scheme trains, by name.

    Recipe: encoder, revision, classes, scheme, seed (of what starts anew), and for OLA its variant. OLA takes from the
    encoder only the tokenizer, and of its vocabulary the `used_ids`.
    """
    scheme = scheme_named(recipe["scheme"])
    encoder, revision, classes = recipe["encoder"], recipe["revision"], recipe["classes"]
    if scheme.name == "ZS":
        model = zero_shot_model(encoder, revision, classes)
        model.module.requires_grad_(False)
        return model, {}
    if scheme.name.startswith("OLA"):
        tokenizer = load_tokenizer(encoder, revision)
        ola = OneLayerAttention(tokenizer, used_ids, classes, recipe["seed"], recipe["variant"])
        return ola, apply_scheme(ola, scheme, recipe["seed"])
    classifier = load_classifier(encoder, revision, classes)
    return classifier, apply_scheme(classifier, scheme, recipe["seed"])


def save_trained(
    folder: Path,
    name: str,
    recipe: Mapping[str, Any],
    model: RunsFromEmbeddings,
    trained: Mapping[str, nn.Parameter],
    rows: Sequence[int] = (),
) -> None:
    """Write `<name>.safetensors` (the trained tensors alone) and `<name>.json` (the recipe and the file's SHA-256).

    Of a word table only the `rows` that took part in the training are stored; for OLA these are its vocabulary.
    """
    table = model.module.get_input_embeddings().weight if isinstance(model, HFClassifier) else None
    tensors: dict[str, Tensor] = {key: p.detach().cpu().contiguous() for key, p in trained.items()}
    if rows:
        tensors[ROWS] = torch.tensor(rows)
        tensors |= {
            key: p.detach().cpu()[tensors[ROWS]] for key, p in trained.items() if p is table
        }
    about = dict(recipe)
    if tensors:
        path = folder / f"{name}.safetensors"
        with atomic_path(path) as part:
            save_file(tensors, part)
        about["sha256"] = sha256_of(path)
    save_json(about, folder / f"{name}.json")


def read_trained(recipe_path: Path, weights_path: Path | None) -> RunsFromEmbeddings:
    """Build the model of a recipe and put the trained tensors in; both files are what `save_trained` wrote."""
    recipe = json.loads(recipe_path.read_text())
    if weights_path is None:
        return build_model(recipe)[0]
    check_weights(weights_path, recipe["sha256"])
    tensors = load_file(weights_path)
    rows = tensors.pop(ROWS, torch.tensor([], dtype=torch.long))
    model, trained = build_model(recipe, rows.tolist())
    if tensors.keys() != trained.keys():
        raise TouchstoneError(
            f"{weights_path} holds other tensors than scheme {recipe['scheme']} trains; "
            "train it again"
        )
    with torch.no_grad():
        for name, parameter in trained.items():
            if tensors[name].shape == parameter.shape:
                parameter.copy_(tensors[name])
            else:
                parameter[rows] = tensors[name]
    model.module.eval()
    return model


def load_trained(stage: Stage, dataset: str, scheme: str, seed: int) -> TextModel:
    """A model as stage 02 left it: the base model with the trained tensors put in.

    Raises TouchstoneError where the stage, the model or its weight file is missing, or the file is not the one whose
    SHA-256 was recorded.
    """
    name = f"models/{dataset}/{scheme_named(scheme).name}/seed{seed}"
    earlier = stage.folder.parent / "02_training"
    if (earlier / MANIFEST).is_file() and not (earlier / f"{name}.json").is_file():
        raise TouchstoneError(
            f"{earlier / name} has no weights here: its numbers came from outputs/reference. To train it again: "
            f"python -m lib.core.runner {stage.study} --scale {stage.scale} --stage 02_training "
            "-p need_weights true"
        )
    recipe = stage.input("02_training", f"{name}.json")
    trained = "sha256" in json.loads(recipe.read_text())
    return read_trained(
        recipe, stage.input("02_training", f"{name}.safetensors") if trained else None
    )
