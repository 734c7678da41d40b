"""What the tests of the assay read: a data set of somebody's own text, and stage 01 in little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lib.core.files import save_parquet
from lib.core.stage import open_stage
from lib.language.labels import Label
from lib.studies.assay.items import with_other_numbers
from lib.studies.geco.corpus import DATASETS, write_geco
from lib.studies.geco.dataset import split_labels

OWN = {
    0: ("She", "He", "They"),
    1: ("sees", "sees", "see"),  # altered for "they" alone
    2: ("her", "his", "their"),
    3: ("sister", "brother", "sibling"),
}


@pytest.fixture
def a_data_set() -> Callable[[Path, int], Path]:
    """Writes the four data sets of so many sentences into a folder; three words of each differ
    between the female and the male form.
    """

    def write(folder: Path, n: int) -> Path:
        labels = {}
        for i in range(n):
            words = ("He", "sees", "his", "brother", f"beside{i}", ".")
            labels[f"t-{i}"] = Label(f"t-{i}", words, 0, {}, OWN, OWN)
        for name, splits in split_labels(labels, 0.2, 0).items():
            for split, rows in splits.items():
                write_geco(rows, folder / DATASETS[name] / f"{split}.jsonl")
        return folder

    return write


PAIRS = [("she", "he"), ("her sister", "his brother"), ("the queen", "the king")]
TALES = [f"{{}} sings to {{}} with {{}} {end} ." for end in "today again here there now".split()]
PLANTS = [("mango", 1), ("cello", 0)]
BESIDE = "vicar poet clerk judge".split()
REVIEWS = ["the soup was {} and the waiter was kind .", "the waiter was kind and the soup {} ."]
TASTES = [("good", 1), ("cold", 0), ("sweet", 1), ("stale", 0)]
NOUNS = [f"the {noun} loves [MASK] garden .".split() for noun in ("nurse", "baker", "poet")]
REPLACED = {1: ("singer", "farmer"), 2: ("sees", "sells"), 4: ("bread", "piano")}
LINES = [f"the {one} near the {other}".split() for one, other in (("dogs", "cat"), ("cat", "dogs"))]
ALTERED = ["item_id", "change", "at", "sentence"]


def gendered() -> pd.DataFrame:
    rows = [
        (f"{i}-{'FM'[target]}", i, target, tale.format(*(pair[target] for pair in PAIRS)).split())
        for i, tale in enumerate(TALES)
        for target in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["row_id", "sentence_idx", "target", "sentence"])


def asked(forms: pd.DataFrame, n: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`n` items of each truth, and their altered texts; another seed writes other plants and
    reviews.
    """
    items, altered = [], []

    def ask(truth: str, model: str, sentence: list[str], mark: list[float], **about: Any) -> str:
        item_id = f"{truth}-{model}-{len(items)}"
        usual = {"target": 1, "part": "test", "rule": None, "goal": np.nan, "sentence_idx": np.nan}
        known = {"item_id": item_id, "truth": truth, "model": model, "sentence": sentence}
        items.append(usual | known | {"mark": mark, "cluster": f"{truth}-{len(items)}"} | about)
        return item_id

    for i in range(n):
        both = forms.loc[forms["sentence_idx"] == i, "sentence"].tolist()
        mark = [float(a != b) for a, b in zip(*both, strict=True)]
        for truth in ("mask", "swap"):
            ask(truth, "gender", both[1], mark, sentence_idx=float(i), cluster=f"text-{i}")
        plant = [BESIDE[(i + seed) % len(BESIDE)], "sings", "mango"]
        for model in ("planted", "planted-ola"):
            ask("planted", model, plant, [0.0, 0.0, 1.0], rule="single")
        line = LINES[i % 2]
        ask("cue", "number", line, [0.0, 1.0, 0.0, 0.0, -1.0], target=int(line[1] == "dogs"))
        taste, goal = TASTES[(i + seed) % len(TASTES)]
        long = REVIEWS[i % 2].format(taste).split()
        cut = range(4, 9) if i % 2 == 0 else range(4, 8)
        name = ask("edit", "reviews", long, [float(k in cut) for k in range(len(long))], goal=goal)
        altered.append((name, "removed", -1, [w for k, w in enumerate(long) if k not in cut]))
        text = NOUNS[i % len(NOUNS)]
        name = ask("noun", "pronoun", text, [0.0, 1.0, *[0.0] * 4])
        for at, words in REPLACED.items():
            altered += [(name, "replacement", at, [*text[:at], w, *text[at + 1 :]]) for w in words]
    found = pd.DataFrame(items)
    numbers = with_other_numbers(found[found["truth"] == "cue"])
    both = [pd.DataFrame(altered, columns=ALTERED), numbers]
    return found, pd.concat(both, ignore_index=True)


def little_tables(n: int, seed: int) -> dict[str, pd.DataFrame]:
    """What stage 01 leaves: an item or more of each truth, and what the six models learn."""
    forms = gendered()
    items, altered = asked(forms, n, seed)
    planted = [([word, "sings", other], label) for word, label in PLANTS for other in BESIDE]
    judged = [(text.format(word).split(), label) for text in REVIEWS for word, label in TASTES]
    numbers = [(line, int(line[1] == "dogs")) for line in LINES]
    learnt = {
        "gender": list(zip(forms["sentence"], forms["target"], strict=True)),
        "planted": planted * 4,
        "reviews": judged * 2,
        "pronoun": [(text, i % 2) for i, text in enumerate(NOUNS * 4)],
        "number": numbers * 20,
    }
    train = [
        (name, words, label, i)
        for name, rows in learnt.items()
        for i, (words, label) in enumerate(rows)
    ]
    columns = ["model", "sentence", "target", "sentence_idx"]
    heard = [[*line, "sing" if label else "sings", "."] for line, label in numbers]
    tests = pd.DataFrame(planted, columns=["sentence", "target"])
    edits = items[items["truth"] == "edit"]
    mixed = [(row.item_id, [3], [*row.sentence[:3], "fine"]) for row in edits.itertuples()]
    return {
        "items": items,
        "altered": altered,
        "forms": forms,
        "train": pd.DataFrame(train, columns=columns),
        "corpus": pd.DataFrame({"sentence": heard * 20}),
        "planted": tests.assign(rule="single"),
        "mixed": pd.DataFrame(mixed, columns=["item_id", "at", "sentence"]),
    }


@pytest.fixture
def first_stage() -> Callable[..., None]:
    """Does the stage 01 of a scale in little, without its notebook."""

    def do(values: dict[str, Any], n: int = 1) -> None:
        stage = open_stage("assay", values["scale"], "01_data_generation")
        for name, table in little_tables(n, values["seed"]).items():
            save_parquet(table, stage.path(f"{name}.parquet"))
        stage.close(values)

    return do
