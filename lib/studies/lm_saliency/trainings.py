"""Stage 02's language models: trained, or read where they were finished before.

The notebook and the jobs of `jobs.py` call the same functions, so it does not matter who trains.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from ...core.files import read_table
from ...core.paths import material
from ...core.seeds import pick_device, seed_for
from ...core.stage import Stage
from ...core.units import Units
from ...language.corpora import read_plain
from ...models.hf_lm import load_hf_lm, save_hf_lm
from ...models.language_model import (
    LanguageModel,
    LMConfig,
    Vocabulary,
    build_lm,
    build_vocabulary,
    load_lm,
    save_lm,
    student_of,
)
from ...models.probe import CausalLM, WordTable
from ...models.text_model import Encoded
from ...training.language_model import Distillation, LMSettings, fit_lm, minutes_ahead, pieces
from .lines import load_sets

FORCED = ("Syneval", "Winobias")  # sets whose words every vocabulary has


@dataclass(frozen=True)
class Plan:
    """How one language model is made.

    Attributes:
        architecture: its family, or the name of a published model.
        size: "full", "student", or the label of a configuration of the sweep.
        config: what it is built from; None for a published model.
        settings: how it is trained.
        share: of the corpus that it reads.
        layers: those of its teacher that a student starts from.
        source: of a published model, its hub id or folder, and the commit.
    """

    architecture: str
    size: str
    config: LMConfig | None = None
    settings: LMSettings | None = None
    share: float = 1.0
    layers: tuple[int, ...] = ()
    source: tuple[str, str] = ("", "")

    @property
    def key(self) -> tuple[str, str]:
        """Architecture and size."""
        return self.architecture, self.size

    @property
    def name(self) -> str:
        """The name of its unit, and of its files."""
        return f"{self.architecture}-{self.size}"

    @property
    def is_swept(self) -> bool:
        """Whether it belongs to the sweep."""
        return self.size not in ("full", "student")


class Trainings:
    """The models that a notebook's parameters ask for.

    Args:
        stage: stage 02.
        values: its parameters by name; what else is in there is not read.
    """

    def __init__(self, stage: Stage, values: Mapping[str, Any]) -> None:
        self.stage, self.values = stage, values
        self.device = pick_device(values["device"])
        self.store = Units(stage.study, stage.scale, stage.stage, values["reuse_units"])
        self._loaded: dict[tuple[str, str], tuple[CausalLM, WordTable]] = {}

    @cached_property
    def text(self) -> dict[str, list[list[str]]]:
        """The sentences of the corpus, by part: train, valid."""
        folder = "01_data_generation"
        return {
            part: read_plain(self.stage.input(folder, f"corpus/{part}.txt"))
            for part in ("train", "valid")
        }

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of all models that are trained here."""
        sets = load_sets(self.stage.input("01_data_generation", "sets.parquet"))
        forced = {word for name in FORCED for prefix in sets[name]["prefix"] for word in prefix}
        return build_vocabulary(self.text["train"], self.values["vocabulary_size"], forced)

    @cached_property
    def data(self) -> dict[str, list[Encoded]]:
        """The corpus as ids, in pieces, by part."""
        longest = self.values["longest_piece"]
        return {part: pieces(lines, self.vocabulary, longest) for part, lines in self.text.items()}

    @cached_property
    def plans(self) -> dict[tuple[str, str], Plan]:
        """The models in their order: each with its student, the sweep, published ones."""
        values = self.values
        plans = []
        for name in values["architectures"]:
            config = self.configuration(name)
            lr, layers = values["lm_lr"][name], tuple(values["student_layers"][name])
            full, student = (
                LMSettings(epochs, rate, values["batch_words"], values["longest_piece"])
                for epochs, rate in ((values["lm_epochs"], lr), (values["student_epochs"], lr / 2))
            )
            plans.append(Plan(name, "full", config, full, values["lm_share"]))
            config = LMConfig(**asdict(config) | {"n_layers": len(layers)})
            plans.append(Plan(name, "student", config, student, values["student_share"], layers))
        plans += [self._swept(row) for row in self.configurations.itertuples()]
        for source, revision in values["hf_models"].items():
            name = source.rstrip("/").rpartition("/")[2]
            plans.append(Plan(name, "full", source=(source, revision)))
        return {plan.key: plan for plan in plans}

    @cached_property
    def configurations(self) -> pd.DataFrame:
        """The sweep at this scale: layers, width, embedding, heads; none without a share of it."""
        table = read_table(material(self.stage.study) / "sweep.csv")
        is_here = (table["scale"] == self.stage.scale) & (self.values["sweep_share"] > 0)
        return table[is_here]

    def configuration(self, architecture: str) -> LMConfig:
        """What the parameters say about one architecture."""
        values = self.values
        return LMConfig(
            architecture,
            values["n_layers"][architecture],
            values["embedding"][architecture],
            values["width"][architecture],
            values["n_heads"],
            values["dropout"],
            values["weight_drop"] if architecture == "LSTM" else 0.0,
            values["cutoffs"],
        )

    def untrained(self, architecture: str) -> LanguageModel:
        """A model with its first weights, in evaluation mode."""
        model = build_lm(
            self.configuration(architecture), len(self.vocabulary), self.values["seed"]
        )
        return model.to(self.device).eval()

    def trained(self, plan: Plan) -> tuple[LanguageModel, pd.DataFrame]:
        """A model and its learning curve, from disk where it was finished before.

        A student's teacher is trained first, where it is not there.
        """
        path = self.stage.path(f"models/{plan.name}.safetensors")
        teacher = self.plans[plan.architecture, "full"] if plan.layers else None
        key = self.store.key(
            words=seed_for(*self.vocabulary.words),
            corpus=self.sha256(*(f"corpus/{part}.txt" for part in self.text)),
            longest=self.values["longest_piece"],
            config=str(plan.config),
            plan=str(plan.settings),
            share=plan.share,
            seed=self.values["seed"],
            teacher=teacher
            and [
                *(self.values[name] for name in ("lm_epochs", "lm_share", "soft_every")),
                str(teacher.config),
            ],
        )
        with self.store.claim(plan.name):
            curve = self.store.load(plan.name, key, [path])
            if curve is None:
                model, curve = self._train(plan, teacher)
                save_lm(model, self.vocabulary, path)
                curve = self.store.save(plan.name, key, curve, [path])
        self.stage.path(f"models/{plan.name}.json")
        model = load_lm(path)[0].to(self.device)
        self._loaded[plan.key] = model, self.vocabulary
        return model, curve

    def model(self, plan: Plan) -> tuple[CausalLM, WordTable]:
        """A model and its words, trained where it is not there."""
        if plan.key not in self._loaded:
            if plan.config:
                self.trained(plan)
            else:
                self._loaded[plan.key] = load_hf_lm(*plan.source)
                save_hf_lm(*plan.source, self.stage.path(f"models/{plan.name}.json"))
        return self._loaded[plan.key]

    def sha256(self, *names: str) -> list[str]:
        """The checksums of files of stage 01, which are recorded as read."""
        for name in names:
            self.stage.input("01_data_generation", name)
        return [self.stage.inputs[f"01_data_generation/{name}"] for name in names]

    def _swept(self, row: Any) -> Plan:
        """A configuration of the sweep; its label is the paper's, 8l_1024w_512e_2h."""
        values = self.values
        config = LMConfig(
            "Transformer",
            row.layers,
            row.embedding,
            row.width,
            row.heads,
            values["dropout"],
            cutoffs=values["cutoffs"],
        )
        rate = values["lm_lr"]["Transformer"]
        settings = LMSettings(1, rate, values["batch_words"], values["longest_piece"])
        label = f"{row.layers}l_{row.width}w_{row.embedding}e_{row.heads}h"
        return Plan("Transformer", label, config, settings, values["sweep_share"])

    def _train(self, plan: Plan, teacher: Plan | None) -> tuple[LanguageModel, pd.DataFrame]:
        """A model and its curve, made now; where units are kept it says how long it will take."""
        assert plan.config is not None and plan.settings is not None
        values, distil = self.values, None
        if teacher:
            full = self.model(teacher)[0]
            model = student_of(full, plan.layers)
            distil = Distillation(full, every=values["soft_every"])
        else:
            model = build_lm(plan.config, len(self.vocabulary), values["seed"])
        model = model.to(self.device)
        train = self.data["train"][: round(plan.share * len(self.data["train"]))]
        if values["reuse_units"]:
            ahead = minutes_ahead(model, train, self.vocabulary, plan.settings, distil)
            print(f"{plan.name}: about {ahead:.1f} minutes", flush=True)
        seed = seed_for(plan.name, values["seed"])
        valid = self.data["valid"]
        curve = fit_lm(model, train, valid, self.vocabulary, plan.settings, seed, distil)
        return model, curve
