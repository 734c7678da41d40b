"""The arithmetic of a prediction: what is counted, samples to intervals, sums that widen them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from lib.core.notebooks import find_notebooks
from lib.core.parameters import notebook_parameters, read_params
from lib.core.paths import ROOT
from lib.core.planned import UNITS
from lib.studies.geco import plan
from lib.studies.geco.plan import (
    Sample,
    costs_of_a_row,
    encoder_of_shape,
    memory,
    models_of,
    predict,
    predicted_cost,
    rows_by_method,
    saved_bytes,
    shortened,
)


def values(scale: str) -> dict:
    found = {}
    for notebook in find_notebooks("geco"):
        found |= notebook_parameters(notebook)
    return found | read_params(ROOT / "params" / "geco" / f"{scale}.yaml")


def rows_of(table: pd.DataFrame) -> pd.Series:
    """A line a method, in place of one for all that share a pass."""
    lines = table.explode("methods").rename(columns={"methods": "method"})
    assert table["methods"].map(len).max() > 1
    return lines.groupby(["kind", "method"])["rows"].sum()


def test_three_samples_make_students_interval() -> None:
    seconds, half = predicted_cost([10.0, 12.0, 14.0])
    assert seconds == 12.0 and half == pytest.approx(4.302653 * 2.0 / math.sqrt(3), rel=1e-6)
    assert predicted_cost([3.0]).tolist() == [3.0, 3.0]


def test_the_papers_grid_is_counted() -> None:
    models = models_of(values("paper"))
    three = models[~models["dataset"].str.endswith("binary")]
    assert three.groupby("scheme").size().to_dict() == {
        "ZS": 2,
        "C": 10,
        "CE": 10,
        "CEf": 10,
        "CEfAf": 10,
        "OLA-CEA": 10,
    }
    assert len(models) == 52 + 2 * 2 * 5  # and two binary sets with two schemes of five seeds
    small = models_of(values("small"))
    assert set(small.loc[small["dataset"] == "D_A", "scheme"]) == {"ZS", "C", "CEfAf", "OLA-CEA"}
    assert set(small.loc[small["dataset"] == "D_S", "scheme"]) == set(values("small")["schemes"])
    rows = rows_of(rows_by_method(values("paper"), n_test=966, n_forms=3))
    assert rows["encoder", "LIME"] == 42 * 966 and rows["OLA", "Saliency"] == 10 * 966
    assert not {"Uniform random", "Pronoun list"} & set(rows.index.get_level_values("method"))


def test_methods_are_counted_on_their_seeds_and_on_the_rows_of_their_scheme() -> None:
    rows = rows_of(rows_by_method(values("cpu"), n_test=966, n_forms=3))
    # two sets; ZS once, three schemes with three seeds on 45 base sentences, CEf on 90
    assert rows["encoder", "Saliency"] == 2 * ((1 + 3 * 3) * 3 * 45 + 3 * 3 * 90)
    assert rows["encoder", "LIME"] == rows["encoder", "Saliency"]
    costly = values("cpu") | {"one_seed_methods": ["LIME"]}
    of_one = rows_of(rows_by_method(costly, n_test=966, n_forms=3))
    assert of_one["encoder", "LIME"] == 2 * ((1 + 3) * 3 * 45 + 3 * 90)
    cpu = values("cpu")  # of OLA's twenty seeds five are explained with all methods
    assert "LIME" not in cpu["every_seed_methods"] and cpu["n_seeds_ola"] == 20
    assert rows["OLA", "LIME"] == 2 * 5 * 3 * cpu["n_base_ola"]
    every = cpu["every_seed_methods"][0]
    assert rows["OLA", every] == 2 * 20 * 3 * cpu["n_base_ola"]


def test_a_sample_is_shorter_and_says_by_how_much() -> None:
    assert shortened({"n_samples": 5000}) == ({"n_samples": 25}, 200.0)
    assert shortened({"n_samples": 5}) == ({"n_samples": 5}, 1.0) and shortened({}) == ({}, 1.0)


def test_a_training_is_taken_apart() -> None:
    def seconds(n: int, epochs: int) -> float:
        return 1.5 + 0.02 * (n + n) + 0.01 * n * epochs

    timed = np.array([[seconds(12, 1), seconds(60, 1), seconds(60, 3)]])
    parts = costs_of_a_row(timed, 12, 60)
    assert np.array(parts).ravel().tolist() == pytest.approx([1.5, 0.02, 0.01])
    # a clock that ran backwards makes nothing cheaper than nothing
    assert all((part >= 0).all() for part in costs_of_a_row(np.array([[2.0, 1.0, 0.5]]), 12, 60))


class Chain:
    """A model of which one can say by hand what it keeps: tanh keeps its output, 3 numbers of 4
    bytes per token.
    """

    def __init__(self) -> None:
        self.module = nn.Linear(3, 3, bias=False)

    def encode(self, sentences: list) -> list:
        return [type("E", (), {"ids": [0] * len(words)}) for words in sentences]

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.ones(*ids.shape, 3)

    def logits(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return embeddings.tanh().tanh().sum()


def test_what_a_pass_keeps_is_counted_and_weights_are_not() -> None:
    assert saved_bytes(Chain(), ["a"] * 5) == 2 * 3 * 4
    assert memory(100, 100, 2.0, 50, base=7.0) == 7 + 400 + 1200 + 100


class Fake:
    """A sample whose every measurement is known."""

    def __init__(self) -> None:
        self.data = {"test": pd.DataFrame({"sentence_idx": [1, 1, 1, 2, 2, 2]})}

    def training(self, scheme: str) -> np.ndarray:
        return np.array([10.0, 1.0])

    def explaining(self, kind: str, methods: tuple[str, ...]) -> np.ndarray:
        return np.array([0.5, 0.1])


def test_the_table_adds_up() -> None:
    small = values("small") | {
        "methods": ["Saliency", "Uniform random"],
        "datasets": ["D_A"],
        "binary_schemes": ["C"],
    }
    table = predict(small, Fake())
    by = table.set_index("what")["seconds"]
    assert (
        by["C"] == 20.0 and by["ZS"] == 10.0 and by["OLA-CEA"] == 30.0
    )  # C once with three classes, once with two
    assert by["Saliency, encoder"] == 5 * 18 * 0.5 and by["Saliency, OLA"] == 3 * 18 * 0.5
    assert table["seconds"].iloc[-1] == pytest.approx(table["seconds"].iloc[:-1].sum())
    high, low = table["high"].to_numpy(), table["low"].to_numpy()
    assert high[-1] == pytest.approx(high[:-1].sum()) and low[-1] == pytest.approx(low[:-1].sum())
    assert high[0] == pytest.approx(UNITS * 11) and low[0] == pytest.approx(9 / UNITS)  # ZS, once


def test_an_encoder_at_hand_is_taken_as_it_is(tmp_path) -> None:
    assert encoder_of_shape("all-MiniLM-L6-v2", tmp_path) == "all-MiniLM-L6-v2"


def test_rows_are_timed_as_whole_base_sentences(monkeypatch) -> None:
    """All forms of a sentence together, for they share texts; short settings are run in full."""
    asked = []

    def explain(model, rows, methods):
        asked.append((sorted(rows["sentence_idx"]), methods[0][1]["n_samples"]))

    sample = Sample.__new__(Sample)
    sample.values, sample.rounds, sample._models = {"lime_samples": 50}, 2, {"encoder": Chain()}
    sample._clock = iter(range(100)).__next__  # a second each
    index = [1, 1, 1, 2, 2, 2]
    sample.data = {"test": pd.DataFrame({"sentence_idx": index, "sentence": [["a"] * 2] * 6})}
    monkeypatch.setattr(plan, "explain_many", explain)
    monkeypatch.setattr(plan, "numbers_of", lambda values: {"LIME": {"n_samples": 50}})
    seconds, half = sample.explaining("encoder", ["LIME"])
    assert asked == [([2, 2, 2], 25)] * 2 + [([2, 2, 2], 50)] * 2
    assert seconds == pytest.approx(1 / 3) and half == 0.0  # six tokens a second, two a row
