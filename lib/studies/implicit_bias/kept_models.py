"""Masked language models that are trained once and read again.

And what is asked before a number is shown: did the training pass its gate?
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from ...core.contents import by_content
from ...core.errors import TouchstoneError
from ...core.made_by import made_by
from ...models.masked_lm import MaskedLM, read_masked_lm, save_masked_lm
from ...models.weights import read_recipe, weights_fit
from ...training.masked_lm import MaskedSettings, fit_masked_lm

_TRAINING = ["model", "base", "seed"]


def fit_or_read(
    path: Path,
    recipe: Mapping[str, Any],
    start: Callable[[], MaskedLM],
    train: Sequence[Sequence[str]],
    valid: Sequence[Sequence[str]],
    settings: MaskedSettings,
) -> tuple[MaskedLM, pd.DataFrame]:
    """A model trained on sentences (lists of words) from `start()`, with its curve.

    One that was kept at `path` is read, unless it is damaged.

    `recipe` (encoder, revision, seed, and what else the numbers depend on) is completed with the
    settings, the SHA-256 of the texts, and what makes it, code and versions; a model that was kept
    with another recipe is trained again.
    """
    texts = ["\n".join(" ".join(words) for words in part) for part in (train, valid)]
    recipe = dict(recipe) | {
        # JSON gives lists back, and what was kept is compared with this.
        "settings": asdict(settings) | {"watched": list(settings.watched)},
        "texts": [hashlib.sha256(text.encode()).hexdigest() for text in texts],
        **by_content(recipe["encoder"]),
        "made_by": made_by("implicit_bias", "02_training"),
    }
    kept, weights = path.with_suffix(".json"), path.with_suffix(".safetensors")
    if weights_fit(kept):
        about = read_recipe(kept)
        if {name: about.get(name) for name in recipe} == recipe:
            return read_masked_lm(kept, weights), pd.DataFrame(about["curve"])
    model = start()
    curve = fit_masked_lm(model, model.encode(train), model.encode(valid), settings, recipe["seed"])
    save_masked_lm(
        model, path, recipe | {"curve": curve.astype(object).to_dict("list")}, settings.tuned
    )
    return model, curve


def passes_gate(models: pd.DataFrame, least: float) -> pd.Series:
    """Which models know pronouns, and predict words better than their frequencies do.

    Args:
        models: right_first (share of sentences with the right gender on top), perplexity,
            unigram (the perplexity of the words' frequencies).
        least: of right_first.
    """
    return (models["right_first"] >= least) & (models["perplexity"] < models["unigram"])


def may_be_shown(rows: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """The rows of the trainings that passed the gate.

    Args:
        rows: with the columns model, base (which training of the base model it is or starts
            from), seed.
        models: model, base, seed, passes.

    Raises:
        TouchstoneError: for a training that is not among `models`.
    """
    passes = models.set_index(_TRAINING)["passes"].astype(bool).to_dict()
    trainings = list(rows[_TRAINING].itertuples(index=False, name=None))
    if unknown := sorted(set(trainings) - set(passes)):
        model, base, seed = unknown[0]
        raise TouchstoneError(
            f"{model}, base {base}, seed {seed}, was never put through the gate, so its scores are "
            "not shown; run 02_training again"
        )
    return rows[[passes[training] for training in trainings]]
