"""Stage 02's language models: trained, or read where they were finished before.

The notebook and the jobs of `jobs.py` call the same functions, so it does not matter who trains.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ...core.files import read_table, sha256_of
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
from ...training.language_model import (
    Distillation,
    LMSettings,
    fit_lm,
    minutes_ahead,
    perplexity,
    pieces,
)
from ...training.pretrain import RECIPES, pretrain, recipe_of
from .lines import load_sets
from .naming import GRAMMAR
from .plans import Plan, needs_second_pass

FORCED = ("Syneval", "Winobias")  # sets whose words every vocabulary has
_GRAMMAR = "corpus/grammar.txt"
# Words in a step of a model that also reads the grammar: in long ones a pass taught nothing.
GRAMMAR_BATCH = 640
_SWEEP = "sweep"  # its name in `with_grammar`
_STUDENTS = "students+grammar"  # in `trainings`: so many of the second family's last have a student
_CHECKS = "balanced"  # in `trainings`: so many more of each plain model are a check (`Plan`)
_GAIN = 0.02  # what the last check of a pass must still gain for a second one, a share


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
        self._loaded: dict[tuple[str, str, int], tuple[CausalLM, WordTable]] = {}

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
    def grammar(self) -> list[Encoded]:
        """The grammar's sentences for `with_grammar`, as ids."""
        lines = read_plain(self.stage.input("01_data_generation", _GRAMMAR))
        return pieces(lines, self.vocabulary, self.values["longest_piece"])

    @cached_property
    def plans(self) -> dict[tuple[str, str, int], Plan]:
        """The models in their order: each with its student, those that also read the grammar's
        sentences, the sweep, those of the check, published ones.
        """
        values, trainings = self.values, self.values["trainings"]
        rounds = range(max(trainings.values()))
        plans = [
            plan
            for training in rounds
            for name in values["architectures"]
            if training < trainings[name]
            for plan in self._pair(name, training)
        ]
        families = {name: x for name, x in values["with_grammar"].items() if name != _SWEEP}
        n_mixed = {name: trainings.get(name + GRAMMAR, trainings[name]) for name in families}
        plans += [
            self._with_grammar(plan, share)
            for training in rounds
            for name, share in families.items()
            if training < n_mixed[name]
            for plan in self._pair(name, training)
            if not plan.layers or training >= n_mixed[name] - trainings.get(_STUDENTS, 0)
        ]
        plans += [self._swept(row) for row in self.configurations.itertuples()]
        plans += [
            replace(plan, is_check=True)
            for more in range(trainings.get(_CHECKS, 0))
            for name in values["architectures"]
            for plan in self._pair(name, trainings[name] + more)
        ]
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
        """What the parameters say about one architecture, or its family that reads the grammar."""
        values, architecture = self.values, architecture.removesuffix(GRAMMAR)
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

    def untrained(self, plan: Plan) -> LanguageModel:
        """A model of ours before any training, in evaluation mode; a student's has weights of its
        own, not its teacher's.
        """
        assert plan.config is not None
        model = build_lm(plan.config, len(self.vocabulary), self.values["seed"] + plan.training)
        return model.to(self.device).eval()

    def teacher_of(self, plan: Plan) -> Plan | None:
        """The full model that a student learns from; None for other models."""
        return self.plans[plan.architecture, "full", plan.training] if plan.layers else None

    def trained(self, plan: Plan) -> tuple[CausalLM, WordTable]:
        """A model and its words, from disk where it was finished before.

        A student's teacher is trained first, where it is not there; so is a model of `touchstone
        pretrain`. Another published model is fetched.
        """
        if plan.key not in self._loaded:
            if plan.config:
                self._trained(plan)
            else:
                if ours := recipe_of(plan.source[0]):
                    pretrain(ours)  # made where it is not there
                model, words = load_hf_lm(*plan.source)
                self._loaded[plan.key] = model.to(self.device), words
                save_hf_lm(*plan.source, self.stage.path(f"models/{plan.name}.json"))
        return self._loaded[plan.key]

    def curve(self, plan: Plan) -> pd.DataFrame:
        """The learning curve of a model: epoch, train_loss, perplexity; trained if it must be."""
        curve = self.store.load(plan.name, self.key_of(plan))
        return self._trained(plan) if curve is None else curve

    def about(self, plan: Plan) -> pd.DataFrame:
        """What is known of a model without its weights, in one row.

        Returns:
            architecture, size, training, layers, parameters, perplexity (a word, of `valid`; pieces
            of a word count together), sha256 (of its weights; of a published model of its note).
        """
        for ending in ("safetensors", "json"):  # where they are, they are this stage's files
            self.stage.path(f"models/{plan.name}.{ending}")
        unit = f"about-{plan.name}"
        key = self.store.key(model=self.key_of(plan))
        return self.store.finished(unit, key, lambda: self._describe(plan))

    def with_checksums(self, probes: pd.DataFrame) -> pd.DataFrame:
        """Rows of probes with the column lm: the SHA-256 of the model below each."""
        names = ["architecture", "size", "training"]
        sha256 = {
            key: self.about(self.plans[key])["sha256"].item()
            for key in probes[names].drop_duplicates().itertuples(index=False, name=None)
        }
        keys = probes[names].itertuples(index=False, name=None)
        return probes.assign(lm=[sha256[key] for key in keys])

    def key_of(self, plan: Plan) -> str:
        """The key of a model's unit: all that it depends on."""
        if not plan.config:
            ours = recipe_of(plan.source[0])
            made = {"made_from": asdict(RECIPES[ours])} if ours else {}
            return self.store.key(source=plan.source, corpus=self._corpus, **made)
        teacher = self.teacher_of(plan)
        values = self.values
        again = {"again": [values["lm_bar"], _GAIN]} if values["lm_bar"] else {}
        grammar = {"grammar": self.sha256(_GRAMMAR)} if plan.reads_grammar else {}
        return self.store.key(
            words=seed_for(*self.vocabulary.words),
            corpus=self._corpus,
            longest=values["longest_piece"],
            config=str(plan.config),
            plan=str(plan.settings),
            share=plan.share,
            seed=values["seed"] + plan.training,
            teacher=teacher
            and [
                *(values[name] for name in ("lm_epochs", "lm_share", "soft_every")),
                str(teacher.config),
                plan.layers,
            ],
            **again,
            **grammar,
        )

    def file_of(self, plan: Plan) -> Path:
        """The file that a model is known by: its weights, or the note of a published one."""
        ending = "safetensors" if plan.config else "json"
        return self.stage.folder / f"models/{plan.name}.{ending}"

    @cached_property
    def _corpus(self) -> list[str]:
        """The checksums of the corpus, which every key holds: it is read once."""
        return self.sha256(*(f"corpus/{part}.txt" for part in self.text))

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
        plan = Plan("Transformer", label, config, settings, values["sweep_share"])
        share = values["with_grammar"].get(_SWEEP)
        return self._with_grammar(plan, share) if share else plan

    def _pair(self, name: str, training: int) -> list[Plan]:
        """A full model and its student."""
        values = self.values
        config, layers = self.configuration(name), tuple(values["student_layers"][name])
        common = values["batch_words"], values["longest_piece"]
        rate, checks = values["lm_lr"][name], values["lm_checks"]
        full = LMSettings(values["lm_epochs"], rate, *common, checks=checks)
        student = LMSettings(values["student_epochs"], rate / 2, *common, checks=checks)
        smaller = LMConfig(**asdict(config) | {"n_layers": len(layers)})
        return [
            Plan(name, "full", config, full, values["lm_share"], training=training),
            Plan(name, "student", smaller, student, values["student_share"], layers, training),
        ]

    def _with_grammar(self, plain: Plan, share: float) -> Plan:
        """The same model on a share of the text, with all the grammar's sentences among it."""
        assert plain.settings is not None
        settings = replace(plain.settings, batch_words=GRAMMAR_BATCH)
        architecture = plain.architecture + GRAMMAR
        return replace(plain, architecture=architecture, settings=settings, share=share)

    def _trained(self, plan: Plan) -> pd.DataFrame:
        """The curve of a model of ours, which is loaded afterwards."""
        path = self.stage.path(f"models/{plan.name}.safetensors")
        key = self.key_of(plan)
        with self.store.claim(plan.name):
            curve = self.store.load(plan.name, key, [path])
            if curve is None:
                model, curve = self._train(plan)
                save_lm(model, self.vocabulary, path)
                curve = self.store.save(plan.name, key, curve, [path])
        self.stage.path(f"models/{plan.name}.json")
        self._loaded[plan.key] = load_lm(path)[0].to(self.device), self.vocabulary
        return curve

    def _train(self, plan: Plan) -> tuple[LanguageModel, pd.DataFrame]:
        """A model and its curve, made now; where units are kept it says how long it will take."""
        assert plan.config is not None and plan.settings is not None
        values, distil, seed = self.values, None, self.values["seed"] + plan.training
        if teacher := self.teacher_of(plan):
            full, _ = self.trained(teacher)
            assert isinstance(full, LanguageModel)
            model = student_of(full, plan.layers)
            distil = Distillation(full, every=values["soft_every"])
        else:
            model = build_lm(plan.config, len(self.vocabulary), seed)
        model = model.to(self.device)
        train = self.data["train"][: round(plan.share * len(self.data["train"]))]
        train = [*train, *self.grammar] if plan.reads_grammar else train
        if values["reuse_units"]:
            ahead = minutes_ahead(model, train, self.vocabulary, plan.settings, distil)
            print(f"{plan.name}: about {ahead:.1f} minutes", flush=True)
        given = model, train, self.data["valid"], self.vocabulary, plan.settings
        curve = fit_lm(*given, seed_for(plan.name, values["seed"]), distil)
        if plan.size == "full" and needs_second_pass(curve, values["lm_bar"], _GAIN):
            again = fit_lm(*given, seed_for(plan.name, "again", values["seed"]))
            again["epoch"] += curve["epoch"].iloc[-1]
            curve = pd.concat([curve, again], ignore_index=True)
        return model, curve

    def _describe(self, plan: Plan) -> pd.DataFrame:
        model, words = self.trained(plan)
        if plan.config:
            curve = self.curve(plan)["perplexity"]
            found = curve.min() if self.values["lm_checks"] > 1 else curve.iloc[-1]
        else:
            read = pieces(self.text["valid"], words, self.values["longest_piece"])
            n_pieces = sum(len(one.ids) - 1 for one in read)
            n_words = sum(len(line) + 1 for line in self.text["valid"])
            found = perplexity(model, read, words) ** (n_pieces / n_words)
        return pd.DataFrame(
            [
                {
                    "architecture": plan.architecture,
                    "size": plan.size,
                    "training": plan.training,
                    "layers": model.config.n_layers,
                    "parameters": sum(p.numel() for p in model.parameters()),
                    "perplexity": found,
                    "sha256": sha256_of(self.file_of(plan)),
                }
            ]
        )
