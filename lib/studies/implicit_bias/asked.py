"""What is asked in stage 03, and of whom: sentences with a masked pronoun, and the models."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ...core.contents import by_content
from ...core.files import load_parquet
from ...core.paths import data_root
from ...core.seeds import pick_device
from ...core.stage import Stage
from ...models.masked_lm import MaskedLM, pretrained_masked_lm, read_masked_lm
from .arms import ARMS
from .sentences import (
    gendered_pronouns,
    masked_words,
    read_sentences,
    slot_of_word,
    split_words,
)

ASKED = ["sentence_id", "masked", "slot", "gender", "antecedent", "part"]  # columns


@dataclass(frozen=True)
class Model:
    """A model that is asked.

    Attributes:
        name: "base0", "augmented/base0_seed1", "hub/bert-base-cased"; its units lie below it.
        model: "base", the arm, or the name on the hub.
        base: the number of the base model (or -1), and `seed` that of the training (or -1).
        identity: of its weights: their SHA-256, the commit of the hub.
        load: reads it.
    """

    name: str
    model: str
    base: int
    seed: int
    identity: str
    load: Callable[[], MaskedLM]


def filled_sentences(stage: Stage) -> pd.DataFrame:
    """The sentences that passed the filter, with the part that stage 02 gave their nouns."""
    sentences = load_parquet(stage.input("01_data_generation", "sentences.parquet"))
    split = load_parquet(stage.input("02_training", "split.parquet"))
    return sentences.merge(split, on=["sentence_id", "antecedent"])


def models_of(stage: Stage, values: Mapping[str, Any]) -> list[Model]:
    """The models of a run in order: base models, arms, those of the hub.

    Args:
        stage: stage 03; stage 02 is complete.
        values: the parameters of its notebook.
    """
    kept = load_parquet(stage.input("02_training", "trainings.parquet")).set_index("name")
    device = pick_device(values["device"])
    bases, seeds = range(values["n_bases"]), range(values["n_seeds"])
    named = [(f"base{b}", "base", b, -1) for b in bases]
    named += [
        (f"{arm.replace(' ', '_')}/base{b}_seed{n}", arm, b, n)
        for arm in ARMS
        for b in bases
        for n in seeds
    ]

    def reader(name: str) -> Callable[[], MaskedLM]:
        def read() -> MaskedLM:
            files = (stage.input("02_training", f"models/{name}.{kind}") for kind in kinds)
            return _on(read_masked_lm(*files), device)

        kinds = ("json", "safetensors")
        for kind in kinds:  # an answer that was kept depends on them, though none is read now
            stage.note("02_training", f"models/{name}.{kind}")
        return read

    def hub(name: str, revision: str) -> Callable[[], MaskedLM]:
        return lambda: _on(pretrained_masked_lm(name, revision), device)

    of_run = [Model(*place, kept.at[place[0], "sha256"], reader(place[0])) for place in named]
    return of_run + [
        Model(
            "hub/" + re.sub(r"[^\w.-]+", "-", name).strip("-"),
            name,
            -1,
            -1,
            json.dumps({"revision": revision, **by_content(name)}),
            hub(name, revision),
        )
        for name, revision in values["hub_models"].items()
    ]


def explained_base(gates: pd.DataFrame) -> int:
    """The first base model that passed the gate; 0 where none did.

    >>> explained_base(pd.DataFrame({"model": "base", "base": [0, 1], "passes": [False, True]}))
    1
    """
    passing = gates.loc[(gates["model"] == "base") & gates["passes"], "base"]
    return int(passing.min()) if len(passing) else 0


def winogender(stage: Stage, trained_on: set[str]) -> pd.DataFrame:
    """Winogender's male sentences whose pronoun is the occupation's (answer 0), masked.

    Args:
        stage: records the file.
        trained_on: nouns that an arm was trained on; sentences with one of them are left out.

    Returns:
        sentence_id, masked, slot, gender, antecedent (the occupation), part.
    """
    path = stage.external(Path(data_root() or "") / "swag" / "winogender_all_sentences.tsv")
    table, names = read_sentences(path, "sentence"), pd.read_csv(path, sep="\t")
    rows = names[names["sentid"].str.contains(r"\.0\.male\.")]
    found = []
    for name, text in rows[["sentid", "sentence"]].itertuples(index=False):
        words = split_words(text)
        if trained_on & {word.lower() for word in words}:
            continue
        at = gendered_pronouns(words)[0]
        after = words[at + 1] if at + 1 < len(words) else "."
        slot = slot_of_word(words[at], after.isalpha())
        noun = name.split(".")[0]
        found.append((name, masked_words(words, at), slot, "M", noun, "winogender"))
    assert len(table) >= len(found)
    return pd.DataFrame(found, columns=ASKED)


def _on(model: MaskedLM, device: Any) -> MaskedLM:
    model.module.to(device)
    return model
