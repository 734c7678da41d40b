"""Keeping trained models: the tensors that were trained, and the recipe of all others."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..core.errors import TouchstoneError
from ..core.files import save_json
from .hf import HFClassifier
from .ola import OneLayerAttention
from .schemes import apply_scheme, scheme_named
from .text_model import RunsFromEmbeddings
from .weights import (
    check_weights,
    load_classifier,
    load_tokenizer,
    put_in,
    read_recipe,
    read_tensors,
    save_tensors,
)
from .zero_shot import zero_shot_model

_RECIPE = ("encoder", "revision", "classes", "scheme", "seed")
_ROWS = "rows_in_use"  # the token ids that the rows of a stored word table belong to


def build_model(
    recipe: Mapping[str, Any], used_ids: Sequence[int] = ()
) -> tuple[RunsFromEmbeddings, dict[str, nn.Parameter]]:
    """The untrained model of a recipe, and the parameters that its scheme trains, by name.

    Args:
        recipe: encoder, revision, classes, scheme, seed (of what starts anew); for OLA its variant.
        used_ids: the token ids that OLA knows, which takes only the tokenizer from the encoder.
    """
    scheme = scheme_named(recipe["scheme"])
    encoder, revision, classes = recipe["encoder"], recipe["revision"], recipe["classes"]
    if not scheme.trained():
        model = zero_shot_model(encoder, revision, classes)
        model.module.requires_grad_(False)
        return model, {}
    if scheme.is_one_layer:
        ola = OneLayerAttention(
            load_tokenizer(encoder, revision), used_ids, classes, recipe["seed"], recipe["variant"]
        )
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
    """Write the trained tensors (`<name>.safetensors`) and the recipe with their SHA-256 (.json).

    Of a word table only the `rows` that took part in the training are stored; for OLA these are its
    vocabulary.
    """
    table: Any = None
    if isinstance(model, HFClassifier):
        table = model.module.get_input_embeddings().weight
    tensors: dict[str, Tensor] = dict(trained)
    if rows:
        tensors[_ROWS] = torch.tensor(rows)
        tensors |= {key: p[tensors[_ROWS]] for key, p in trained.items() if p is table}
    about = dict(recipe)
    if tensors:
        about["sha256"] = save_tensors(folder / f"{name}.safetensors", tensors)
    save_json(about, folder / f"{name}.json")


def read_trained(recipe_path: Path, weights_path: Path | None) -> RunsFromEmbeddings:
    """Build the model of a recipe and put the trained tensors in.

    Both files are what `save_trained` wrote.

    Raises:
        TouchstoneError: one of them is missing or damaged, or the recipe's model cannot be built.
    """
    recipe = read_recipe(recipe_path, *_RECIPE)
    if weights_path is None:
        return _built(recipe, recipe_path)[0]
    check_weights(weights_path, read_recipe(recipe_path, "sha256")["sha256"])
    tensors, _ = read_tensors(weights_path)
    rows = tensors.pop(_ROWS, torch.tensor([], dtype=torch.long))
    model, trained = _built(recipe, recipe_path, rows.tolist())
    for key, parameter in trained.items():
        if key in tensors and tensors[key].shape != parameter.shape:  # of a table, some rows
            tensors[key] = parameter.detach().index_copy(0, rows, tensors[key])
    put_in(weights_path, trained, tensors, f"scheme {recipe['scheme']}")
    model.module.eval()
    return model


def _built(
    recipe: Mapping[str, Any], path: Path, used_ids: Sequence[int] = ()
) -> tuple[RunsFromEmbeddings, dict[str, nn.Parameter]]:
    """The model of a recipe; an error names the file that the recipe is from."""
    try:
        return build_model(recipe, used_ids)
    except TouchstoneError as error:
        raise TouchstoneError(f"{path}: {error}") from None
