"""The trainings of stage 02 as units: each model once, with all that the stage asks of it.

A unit is a table of what, at, value: "train_loss" and "perplexity" by epoch, and for the sentences
of the gate and of the choice, by number, 1 where the right gender comes first. The weights lie
beside it in `models/<name>`. Whoever asks for a training finds it finished, or makes it.
"""

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ...core.contents import by_content
from ...core.files import load_parquet, read_yaml, sha256_of
from ...core.paths import material
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...language.lexicon import PRONOUNS
from ...metrics.masked_pronoun import right_gender_first
from ...models.masked_gender import gender_ids
from ...models.masked_lm import MaskedLM, new_masked_lm, read_masked_lm
from ...models.weights import load_tokenizer, weights_fit
from ...training.masked_lm import MaskedSettings
from .arms import ARMS, arm_text, rehearsed, with_parts
from .kept_models import fit_or_read

PILOT = 99  # the number of the trainings by which the mixture is chosen


def read_questions(name: str) -> pd.DataFrame:
    """Unambiguous sentences of the material, `gate` or `gate_choice`: noun, gender, sentence."""
    path = material("implicit_bias") / f"{name}.yaml"
    return pd.DataFrame(read_yaml(path, list), columns=["noun", "gender", "sentence"])


def right_answers(model: MaskedLM, questions: pd.DataFrame) -> list[bool]:
    """For each unambiguous sentence ("_" is its pronoun) whether the right gender comes first."""
    mask = model.tokenizer.mask_token
    words = [
        [mask if word == "_" else word for word in text.split()] for text in questions["sentence"]
    ]
    log_prob = model.log_prob(model.encode(words))
    return right_gender_first(log_prob, gender_ids(model.tokenizer), questions["gender"])


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

    @property
    def sha256(self) -> str:
        """Of the weights."""
        return str(self.about["sha256"].iloc[0])

    def _of(self, what: str) -> pd.DataFrame:
        return self.about[self.about["what"] == what]


class Trainings:
    """The trainings of one run of stage 02, each made when it is first asked for.

    Args:
        stage: stage 02, open or not; its folder keeps units and weights.
        values: the parameters of its notebook.

    Raises:
        TouchstoneError: stage 01 is not complete.
    """

    def __init__(self, stage: Stage, values: Mapping[str, Any]) -> None:
        self._stage, self._values = stage, values
        text = load_parquet(stage.input("01_data_generation", "text.parquet"))
        self.train, self.valid = (
            list(text.loc[text["part"] == part, "words"]) for part in ("train", "valid")
        )
        self.is_frame = (text.loc[text["part"] == "train", "source"] == "frames").tolist()
        sentences = load_parquet(stage.input("01_data_generation", "sentences.parquet"))
        self.sentences = with_parts(sentences, values["held_out"], values["seed"])
        self.questions = {name: read_questions(name) for name in ("gate", "gate_choice")}
        self._store = Units(stage.study, stage.scale, stage.stage)
        self._recipe = {"encoder": values["encoder"], "revision": values["encoder_revision"]}
        self._device = pick_device(values["device"])

    def base(self, b: int) -> Training:
        """Base model number `b`: the encoder with a new head, trained on the text of stage 01."""
        return self._base(f"base{b}", b, self.train)

    def without_frames(self) -> Training:
        """The first base model without the sentences from frames, for comparison."""
        text = [words for words, drawn in zip(self.train, self.is_frame) if not drawn]
        return self._base("without_frames", 0, text)

    def arm(self, arm: str, b: int, number: int, mixture: int) -> Training:
        """Training `number` of an arm from base model `b`, at a mixture, by its place in the list.

        Masks, order and what is rehearsed differ between trainings; the arms share them.
        """
        rate, rehearsal = self._values["mixtures"][mixture]
        place = f"pilot{mixture}" if number == PILOT else f"seed{number}"
        drawn, base = 100 * b + number, self.base(b)
        files = self._weights(base.name)

        def start() -> MaskedLM:
            return read_masked_lm(*files)

        text = self.arm_text(arm, drawn, rehearsal)
        settings = self._settings(self._values["arm_epochs"], rate)
        name = f"{arm.replace(' ', '_')}/base{b}_{place}"
        return self._made(name, (arm, b, number), drawn, start, text, settings, {"from": base.key})

    def arm_text(self, arm: str, drawn: int, rehearsal: float) -> list[Sequence[str]]:
        """The sentences of an arm with those that are rehearsed; `drawn` is what draws them."""
        seed = self._values["seed"]
        return rehearsed(
            arm_text(self.sentences, arm, drawn, seed),
            list(zip(self.train, self.is_frame)),
            rehearsal,
            self._values["rehearsed_frames"],
            random.Random(seed_for("rehearsal", drawn, seed)),
        )

    def is_safe(self, mixture: int) -> bool:
        """Whether the placebo and the swap keep what the first base model knows, at a mixture."""
        pilots = [self.arm(arm, 0, PILOT, mixture) for arm in ("placebo", "augmented")]
        most = self.base(0).perplexity
        return all(
            pilot.share_right("gate_choice") >= self._values["gate"] and pilot.perplexity <= most
            for pilot in pilots
        )

    def chosen_mixture(self) -> int:
        """The place of the first mixture that is safe, of the last if none before it is."""
        last = len(self._values["mixtures"]) - 1
        return next((i for i in range(last) if self.is_safe(i)), last)

    def arms(self) -> list[tuple[str, int, int]]:
        """The trainings of all arms in order: arm, base model, number."""
        n_bases, n_seeds = self._values["n_bases"], self._values["n_seeds"]
        return [(arm, b, n) for b in range(n_bases) for n in range(n_seeds) for arm in ARMS]

    def _base(self, name: str, b: int, text: Sequence[Sequence[str]]) -> Training:
        number = self._values["seed"] + b

        def start() -> MaskedLM:
            return new_masked_lm(self._recipe["encoder"], number, self._recipe["revision"])

        settings = self._settings(self._values["epochs"], self._values["lr"])
        return self._made(name, ("base", b, -1), number, start, text, settings, {})

    def _settings(self, epochs: int, rate: float) -> MaskedSettings:
        tokenizer = load_tokenizer(*self._recipe.values())
        watched = {tokenizer.convert_tokens_to_ids(word) for word in PRONOUNS}
        return MaskedSettings(
            epochs,
            rate,
            self._values["batch_tokens"],
            self._values["masked"],
            "encoder",
            tuple(sorted(watched - {tokenizer.unk_token_id})),
            self._values["watched_share"],
        )

    def _made(
        self,
        name: str,
        place: tuple[str, int, int],
        seed: int,
        start: Callable[[], MaskedLM],
        text: Sequence[Sequence[str]],
        settings: MaskedSettings,
        more: Mapping[str, str],
    ) -> Training:
        """A training found finished, weights and all, or made now."""
        key = self._store.key(
            **self._recipe,
            **more,
            **by_content(self._recipe["encoder"]),
            seed=seed,
            settings=asdict(settings),
            texts=[_digest(part) for part in (text, self.valid)],
            questions=[_digest(part["sentence"].str.split()) for part in self.questions.values()],
        )
        recipe, weights = self._weights(name)
        with self._store.claim(name):
            about = self._store.load(name, key)
            if about is None or not _is_of(about, recipe, weights):
                of_base = {"from": sha256_of(self._weights(f"base{place[1]}")[1])} if more else {}
                mine = self._recipe | {"seed": seed} | of_base
                model, curve = fit_or_read(
                    recipe.with_suffix(""),
                    mine,
                    lambda: _on(start(), self._device),
                    text,
                    self.valid,
                    settings,
                )
                about = _about(curve, _on(model, self._device), self.questions)
                about = about.assign(sha256=sha256_of(weights))
                about = self._store.save(name, key, about, exact=True)
        return Training(name, *place, key, about)

    def _weights(self, name: str) -> tuple[Path, Path]:
        """The two files of a model, recipe and weights."""
        recipe, weights = (
            self._stage.path(f"models/{name}.{kind}") for kind in ("json", "safetensors")
        )
        return recipe, weights


def _is_of(about: pd.DataFrame, recipe: Path, weights: Path) -> bool:
    """Whether the weights are there, whole, and those that a unit is about."""
    return weights_fit(recipe) and sha256_of(weights) == about["sha256"].iloc[0]


def _on(model: MaskedLM, device: Any) -> MaskedLM:
    model.module.to(device)
    return model


def _about(
    curve: pd.DataFrame, model: MaskedLM, questions: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """What is kept of a training."""
    rows = [
        (what, float(epoch), float(value))
        for what in ("train_loss", "perplexity")
        for epoch, value in zip(curve["epoch"], curve[what])
    ]
    for name, part in questions.items():
        rows += [(name, float(i), float(r)) for i, r in enumerate(right_answers(model, part))]
    return pd.DataFrame(rows, columns=["what", "at", "value"])


def _digest(text: Iterable[Iterable[str]]) -> str:
    """A hash of sentences, given as words."""
    joined = "\n".join(" ".join(words) for words in text)
    return hashlib.sha256(joined.encode()).hexdigest()
