"""The benchmark of effects runs, and its arms find the same. Nothing here is timed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT, material
from lib.studies.cebab.pairs import edit_pairs
from lib.studies.cebab.questions import ask
from lib.studies.cebab.worlds import World, generate_reviews, read_wordings


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "tools" / "benchmarks")
    import effects

    return effects


@pytest.fixture(scope="module")
def reviews() -> pd.DataFrame:
    return generate_reviews(
        World(0.5),
        read_wordings(material("cebab") / "wordings.yaml"),
        {"train": 40, "dev": 4, "test": 8},
        4,
        1,
    )


@pytest.mark.slow
def test_every_line_runs_and_the_arms_agree(bench: object, reviews: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)
    test = reviews[reviews["split"] == "test"]
    train = bench.drawn_texts(reviews[reviews["split"] == "train"], rng)
    questions = ask(edit_pairs(test), bench.drawn_texts(test, rng))
    lines = [
        *bench.pair_lines(reviews),
        *bench.explainer_lines(train, questions),
        bench.shap_line(train, rng),
    ]
    assert len(lines) == 2 + len(bench.WEIGHT_FREE) + 1 + 1 and all(
        line["ours_s"] > 0 for line in lines
    )
    assert [line["items"] for line in lines if line["line"] == "edit pairs, test"] == [
        len(edit_pairs(test))
    ]


def test_arms_that_disagree_are_refused(bench: object) -> None:
    with pytest.raises(TouchstoneError, match="found different things"):
        bench.compare("sums", lambda: 1, lambda: 2, lambda a, b: a == b, 1, 1)


def test_one_layer_alone_is_one_layer_among_sixteen(bench: object) -> None:
    rng = np.random.default_rng(0)
    places, answers = rng.normal(size=(200, 4)), rng.dirichlet(np.ones(3), 200)
    weight, bias = bench.fit_subsets(places, answers)
    for number, (w, b) in enumerate(bench.sixteen_fits(places, answers)):
        assert np.allclose(
            w, weight[number][list(bench.subsets()[number])], atol=1e-3
        ) and np.allclose(b, bias[number], atol=1e-3)
