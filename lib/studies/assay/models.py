"""Small models that can be asked where no other study has left any: each answers one of two
classes, and what is explained of it is its log-odds.

| kind | what it is | what learns |
|---|---|---|
| classifier | the lowest layers of an encoder with a new head | all but the word table |
| pronoun | the same, with a masked-LM head: female or male at the mask | all but the word table |
| one layer | one attention layer without positions (OLA) | everything, from scratch |
| recurrent | a bidirectional LSTM over the encoder's word table | all but the word table |

Language models with a probe are kept by `lib.models.probe`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import nn

from ...attribution.perturbed_texts import text_logits
from ...attribution.seam import class_score
from ...core.errors import TouchstoneError, check_choice
from ...core.files import save_json
from ...core.seeds import seed_for
from ...models.bilstm import BiLSTM
from ...models.hf import redraw
from ...models.masked_gender import GenderAtMask
from ...models.masked_lm import new_masked_lm
from ...models.ola import OneLayerAttention
from ...models.shortcuts import ids_in_use
from ...models.text_model import RunsFromEmbeddings, TextModel, encode_words, lengths_of
from ...models.weights import (
    check_weights,
    load_classifier,
    load_tokenizer,
    put_in,
    read_recipe,
    read_tensors,
    save_tensors,
)
from ...training.classifier import Settings, fit, token_forward, validation_split

KINDS = ("classifier", "pronoun", "one layer", "recurrent")
_RECIPE = ("kind", "encoder", "revision", "n_layers", "classes", "seed", "ids")
_VALIDATION = 0.1  # of the groups of rows; they choose the epoch


def build(recipe: Mapping[str, Any]) -> tuple[RunsFromEmbeddings, dict[str, nn.Parameter]]:
    """An untrained model, and the parameters that learn.

    Args:
        recipe: kind (of `KINDS`), encoder, revision (the commit of a hub id), n_layers (the lowest
            that are kept), classes, seed (of what starts anew), ids (the token ids that one layer
            knows; else empty).
    """
    check_choice("the kind of model", recipe["kind"], KINDS)
    encoder, revision = recipe["encoder"], recipe["revision"]
    seed, classes = recipe["seed"], recipe["classes"]
    model: RunsFromEmbeddings
    if recipe["kind"] == "one layer":
        model = OneLayerAttention(
            load_tokenizer(encoder, revision), recipe["ids"], classes, seed, "corrected"
        )
        return model, dict(model.module.named_parameters())
    if recipe["kind"] == "recurrent":
        model = BiLSTM(load_classifier(encoder, revision, classes), classes, seed)
        learning = model.module.named_parameters()
        return model, {name: p for name, p in learning if p.requires_grad}
    if recipe["kind"] == "pronoun":
        model = GenderAtMask(new_masked_lm(encoder, seed, revision))
    else:
        model = load_classifier(encoder, revision, classes)
        redraw(model.module, model.parts()["head"], seed)
    layers = model.module.base_model.encoder.layer
    if not 1 <= recipe["n_layers"] <= len(layers):
        raise TouchstoneError(
            f"n_layers is {recipe['n_layers']}; {encoder} has {len(layers)}, so write 1 to "
            f"{len(layers)}"
        )
    del layers[recipe["n_layers"] :]
    model.module.config.num_hidden_layers = recipe["n_layers"]
    table = model.module.get_input_embeddings().weight
    table.requires_grad_(False)  # its gradient would be as large as the vocabulary
    named = model.module.named_parameters()
    return model, {name: p for name, p in named if p is not table}


def ids_to_learn(recipe: Mapping[str, Any], sentences: Sequence[Sequence[str]]) -> list[int]:
    """The token ids that a model of one layer knows: those of its texts; none for other models."""
    if recipe["kind"] != "one layer":
        return []
    tokenizer = load_tokenizer(recipe["encoder"], recipe["revision"])
    texts = [list(words) for words in sentences]
    return ids_in_use(encode_words(tokenizer, texts, tokenizer.model_max_length))


def train(
    recipe: Mapping[str, Any],
    rows: pd.DataFrame,
    settings: Settings,
    device: torch.device | str = "cpu",
) -> tuple[RunsFromEmbeddings, dict[str, nn.Parameter], float]:
    """A trained model of a recipe.

    Args:
        rows: sentence_idx (the group; a tenth of the groups chooses the epoch), sentence (a list
            of words), target (0 or 1).
        device: where it learns, and stays.

    Returns:
        The model, the parameters that learnt, and the accuracy on those groups.
    """
    model, trained = build(recipe)
    model.module.to(device)
    encoded = model.encode(rows["sentence"])
    split = validation_split(
        rows["sentence_idx"], _VALIDATION, seed_for("validation", recipe["seed"])
    )
    curve = fit(
        token_forward(model, encoded),
        trained,
        torch.tensor(rows["target"].to_numpy(), device=device),
        torch.tensor(lengths_of(encoded)),
        split,
        settings,
        seed_for("fit", recipe["seed"]),
    )
    model.module.eval()
    best = curve["validation_loss"].idxmin()
    return model, trained, float(curve["validation_accuracy"][best])


def save_model(
    folder: Path, name: str, recipe: Mapping[str, Any], trained: Mapping[str, nn.Parameter]
) -> None:
    """Write the trained tensors (.safetensors) and the recipe with their SHA-256 (.json)."""
    sha256 = save_tensors(folder / f"{name}.safetensors", trained)
    save_json({**recipe, "sha256": sha256}, folder / f"{name}.json")


def read_model(
    recipe_path: Path, weights_path: Path, device: torch.device | str = "cpu"
) -> RunsFromEmbeddings:
    """The model that `save_model` kept, on a device.

    Raises:
        TouchstoneError: one of the two files is missing or damaged, or they do not fit.
    """
    recipe = read_recipe(recipe_path, *_RECIPE, "sha256")
    check_weights(weights_path, recipe["sha256"])
    model, trained = build(recipe)
    put_in(weights_path, trained, read_tensors(weights_path)[0], f"a model of {recipe['kind']!r}")
    model.module.to(device).eval()
    return model


def log_odds(
    model: TextModel, sentences: Sequence[Sequence[str]], targets: Sequence[int]
) -> Float[np.ndarray, "batch"]:
    """f, the log-odds of a class against the other one (the next best one, where there are more):
    the number that is explained.

    Args:
        targets: the class of each sentence.
    """
    logits = text_logits(model, [tuple(words) for words in sentences]).double().cpu()
    margin = class_score(model, list(map(int, targets)), "margin", logits.device)
    return margin.of_logits(logits).numpy()
