"""Masked language models that are trained once and read again.

And what is asked before a number is shown: did the training pass its gate?
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Training:
    """A training, finished.

    Attributes:
        name: "base0", "augmented/base0_seed1"; the weights are `models/<name>`.
        model: "base" or the arm.
        base: the number of the base model, and `seed` that of the training from it (or -1).
        key: of its unit.
        about: its unit.
    """

    name: str
    model: str
    base: int
    seed: int
    key: str
    about: pd.DataFrame

    @property
    def curve(self) -> pd.DataFrame:
        """The learning curve: epoch, train_loss, perplexity on held-out text."""
        loss, perplexity = self._of("train_loss"), self._of("perplexity")
        epochs = loss["at"].astype(int) if (loss["at"] % 1 == 0).all() else loss["at"]
        return pd.DataFrame(
            {
                "epoch": epochs.to_numpy(),
                "train_loss": loss["value"].to_numpy(),
                "perplexity": perplexity["value"].to_numpy(),
            }
        )

    @property
    def perplexity(self) -> float:
        """On held-out text, at the end."""
        return float(self._of("perplexity")["value"].iloc[-1])

    def right(self, questions: str = "gate") -> list[bool]:
        """For each sentence of `gate` or `gate_choice` whether the right gender comes first."""
        return (self._of(questions)["value"] == 1).tolist()

    def share_right(self, questions: str = "gate") -> float:
        """The share of right answers."""
        right = self.right(questions)
        return sum(right) / len(right)

    def passes(self, least: float) -> bool:
        """Whether it passes the gate: enough right answers, and more than word frequencies."""
        return self.share_right() >= least and self.perplexity < self.number("unigram")

    def number(self, what: str) -> float:
        """A single number: "unigram" (the perplexity of word frequencies), "rank" (of the likeliest
        pronoun in the example), "on captions" (the perplexity on a source's held-out text).
        """
        return float(self._of(what)["value"].iloc[0])

    def on_sources(self) -> dict[str, float]:
        """The perplexity on held-out text by its source."""
        rows = self.about[self.about["what"].str.startswith("on ")]
        return {what.removeprefix("on "): float(v) for what, v in zip(rows["what"], rows["value"])}

    def gain(self) -> float:
        """By what share the perplexity fell over the last half of the curve's checks.

        NaN where there is one check.
        """
        values = self._of("perplexity")["value"].to_numpy()
        middle = (len(values) - 1) // 2
        return float(1 - values[-1] / values[middle]) if len(values) > 1 else math.nan

    @property
    def sha256(self) -> str:
        """Of the weights."""
        return str(self.about["sha256"].iloc[0])

    def _of(self, what: str) -> pd.DataFrame:
        return self.about[self.about["what"] == what]


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
