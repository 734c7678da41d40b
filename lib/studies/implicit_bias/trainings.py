"""The trainings of stage 02 as units: each model once, with all that the stage asks of it.

A unit is a table of what, at, value: "train_loss" and "perplexity" by epoch, and for the sentences
of the gate and of the choice, by number, 1 where the right gender comes first. The weights lie
beside it in `models/<name>`. Whoever asks for a training finds it finished, or makes it.
"""

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ...core.contents import by_content
from ...core.errors import TouchstoneError
from ...core.files import load_parquet, sha256_of
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...language.lexicon import PRONOUNS
from ...models.masked_lm import MaskedLM, new_masked_lm, pretrained_masked_lm, read_masked_lm
from ...models.weights import load_tokenizer, weights_fit
from ...training.masked_lm import MaskedSettings, masked_perplexity, unigram_perplexity
from ...training.pretrain import RECIPES, pretrain, recipe_of
from .arms import ARMS, arm_text, rehearsed, with_parts
from .gate import pronoun_rank, read_questions, right_answers
from .kept_models import Training, fit_or_read

PILOT = 99  # the number of the trainings by which the mixture is chosen


@dataclass(frozen=True)
class _Plan:
    """A training that may have to be made: what it starts from and learns, and its unit's key."""

    name: str
    place: tuple[str, int, int]  # model, base, seed: see `Training`
    recipe: Mapping[str, Any]
    start: Callable[[], MaskedLM]
    text: Sequence[Sequence[str]]
    settings: MaskedSettings
    key: str


class Trainings:
    """The trainings of one run of stage 02, each made when it is first asked for.

    Args:
        stage: stage 02, open or not; its folder keeps units and weights.
        values: the parameters of its notebook.

    Raises:
        TouchstoneError: stage 01 is not complete, or `pretrained` names fewer than `n_bases`.
    """

    def __init__(
        self,
        stage: Stage,
        values: Mapping[str, Any],
    ) -> None:
        self._stage, self._values = stage, values
        self.after: Callable[[Training, MaskedLM], None] | None = None  # a training was made
        if 0 < len(values["pretrained"]) < values["n_bases"]:
            raise TouchstoneError(
                f"pretrained names {len(values['pretrained'])} models and n_bases is "
                f"{values['n_bases']}; name one for each base model, or none"
            )
        text = load_parquet(stage.input("01_data_generation", "text.parquet"))
        self.train, self.valid = (
            list(text.loc[text["part"] == part, "words"]) for part in ("train", "valid")
        )
        self.valid_source = text.loc[text["part"] == "valid", "source"].tolist()
        self.is_frame = (text.loc[text["part"] == "train", "source"] == "frames").tolist()
        sentences = load_parquet(stage.input("01_data_generation", "sentences.parquet"))
        self.sentences = with_parts(sentences, values["held_out"], values["seed"])
        self.questions = {name: read_questions(name) for name in ("gate", "gate_choice")}
        self._reuse = values["reuse_units"]
        self._store = Units(stage.study, stage.scale, stage.stage, self._reuse)
        self._device = pick_device(values["device"])

    def base(self, b: int) -> Training:
        """Base model `b`: the encoder with a new head, or a pretrained model, trained on stage
        01's text.
        """
        return self._made(self._base(f"base{b}", b, self.train))

    def without_frames(self) -> Training:
        """The first base model without the sentences from frames, for comparison."""
        text = [words for words, drawn in zip(self.train, self.is_frame) if not drawn]
        return self._made(self._base("without_frames", 0, text))

    def arm(self, arm: str, b: int, number: int, mixture: int) -> Training:
        """Training `number` of an arm from base model `b`, at a mixture, by its place in the list.

        Masks, order and what is rehearsed differ between trainings; the arms share them.
        """
        rate, rehearsal = self._values["mixtures"][mixture]
        place = f"pilot{mixture}" if number == PILOT else f"seed{number}"
        drawn, base = 100 * b + number, self._base(f"base{b}", b, self.train)
        recipe = {**base.recipe, "seed": drawn, "from": base.key}
        text = self.arm_text(arm, drawn, rehearsal)
        settings = self._settings(self._values["arm_epochs"], rate)
        name = f"{arm.replace(' ', '_')}/base{b}_{place}"

        def start() -> MaskedLM:
            return read_masked_lm(*self._weights(self._made(base, need_weights=True).name))

        return self._made(self._plan(name, (arm, b, number), recipe, start, text, settings))

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

    def is_explained(self, training: Training) -> bool:
        """Whether a training is the first base model that passed the gate, as far as is known."""
        if training.model != "base" or not training.passes(self._values["gate"]):
            return False
        plans = [self._base(f"base{b}", b, self.train) for b in range(training.base)]
        before = [self._store.load(plan.name, plan.key) for plan in plans]
        return not any(
            about is None
            or Training(plan.name, *plan.place, plan.key, about).passes(self._values["gate"])
            for plan, about in zip(plans, before)
        )

    def _base(self, name: str, b: int, text: Sequence[Sequence[str]]) -> _Plan:
        number, encoder = self._values["seed"] + b, self._values["encoder"]
        revision = self._values["encoder_revision"]

        def start() -> MaskedLM:
            return new_masked_lm(encoder, number, revision)

        recipe = {"encoder": encoder, "revision": revision, "seed": number}
        if self._values["pretrained"]:
            source = self._values["pretrained"][b]
            recipe |= {"encoder": f"pretrained/{source}", "revision": ""}

            def start() -> MaskedLM:
                pretrain(source)  # made where it is not there
                return pretrained_masked_lm(f"pretrained/{source}")

        settings = replace(
            self._settings(self._values["epochs"], self._values["lr"]),
            checks=self._values["checks"],
            masked=self._values["base_masked"],
            tuned=self._values["base_tuned"],
        )
        return self._plan(name, ("base", b, -1), recipe, start, text, settings)

    def _plan(
        self,
        name: str,
        place: tuple[str, int, int],
        recipe: Mapping[str, Any],
        start: Callable[[], MaskedLM],
        text: Sequence[Sequence[str]],
        settings: MaskedSettings,
    ) -> _Plan:
        ours = recipe_of(recipe["encoder"])
        made_from = asdict(RECIPES[ours]) if ours else by_content(recipe["encoder"])
        key = self._store.key(
            **recipe,
            made_from=made_from,
            settings=asdict(settings),
            texts=[_digest(part) for part in (text, self.valid)],
            questions=[_digest(part["sentence"].str.split()) for part in self.questions.values()],
        )
        return _Plan(name, place, recipe, start, text, settings, key)

    def _settings(self, epochs: int, rate: float) -> MaskedSettings:
        tokenizer = load_tokenizer(self._values["encoder"], self._values["encoder_revision"])
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

    def _made(self, plan: _Plan, need_weights: bool = False) -> Training:
        """A training found finished, or made now.

        A published unit comes without weights: they are made again where somebody starts from them,
        and the published numbers stay.
        """
        recipe, weights = self._weights(plan.name)
        with self._store.claim(plan.name):
            about = self._store.load(plan.name, plan.key)
            at_hand = recipe.is_file() or need_weights or not self._reuse
            if about is None or (at_hand and not _is_of(about, recipe, weights)):
                model, curve = fit_or_read(
                    recipe.with_suffix(""),
                    plan.recipe,
                    lambda: _on(plan.start(), self._device),
                    plan.text,
                    self.valid,
                    plan.settings,
                )
                if about is None or not self._reuse:
                    about = self._about(curve, _on(model, self._device))
                    about = about.assign(sha256=sha256_of(weights))
                    about = self._store.save(plan.name, plan.key, about, exact=True)
                training = Training(plan.name, *plan.place, plan.key, about)
                if self.after:
                    self.after(training, model)
        return Training(plan.name, *plan.place, plan.key, about)

    def _about(self, curve: pd.DataFrame, model: MaskedLM) -> pd.DataFrame:
        """What is kept of a training."""
        rows = [
            (what, float(epoch), float(value))
            for what in ("train_loss", "perplexity")
            for epoch, value in zip(curve["epoch"], curve[what])
        ]
        for source in dict.fromkeys(self.valid_source):
            part = [words for words, of in zip(self.valid, self.valid_source) if of == source]
            rows.append((f"on {source}", -1.0, masked_perplexity(model, model.encode(part))))
        read = model.encode(self.train), model.encode(self.valid)
        rows.append(("unigram", -1.0, unigram_perplexity(model, *read)))
        rows.append(("rank", -1.0, float(pronoun_rank(model))))
        for name, part in self.questions.items():
            rows += [(name, float(i), float(r)) for i, r in enumerate(right_answers(model, part))]
        return pd.DataFrame(rows, columns=["what", "at", "value"])

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


def _digest(text: Iterable[Iterable[str]]) -> str:
    """A hash of sentences, given as words."""
    joined = "\n".join(" ".join(words) for words in text)
    return hashlib.sha256(joined.encode()).hexdigest()
