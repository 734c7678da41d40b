"""Units of a grid: planned, resumed, the same numbers either way."""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import rankdata, spearmanr
from small_models import as_rows, build

from lib.attribution import METHODS, explain
from lib.attribution.table import validated
from lib.core.errors import TouchstoneError
from lib.core.paths import outputs_root
from lib.core.units import Units
from lib.metrics import mass_accuracy
from lib.metrics.mass_accuracy import METRICS
from lib.studies.geco.grid import (
    Unit,
    explain_unit,
    packed,
    predicted_seconds,
    run_units,
)
from lib.studies.geco.units import choose_rows, plan_units, settings_by_method

MODELS = pd.DataFrame(
    [
        ("D_A", "C", 0),
        ("D_A", "C", 1),
        ("D_A", "OLA-CEA", 0),
        ("D_A", "OLA-CEA", 1),
        ("D_S", "C", 0),
    ],
    columns=["dataset", "scheme", "seed"],
)


class Fakes:
    """Two models, one of them asked for at a time, and a count of how often."""

    def __init__(self) -> None:
        self.model, self.rows, self.asked, self.version = (
            build("BERT"),
            as_rows(["he sings .", "she"]),
            0,
            "1",
        )

    def rows_of(self, unit: Unit) -> pd.DataFrame:
        return self.rows

    def model_of(self, unit: Unit) -> object:
        self.asked += 1
        return self.model

    def mark_of(self, unit: Unit) -> str:
        return self.version


@pytest.fixture
def store(small_outputs: Path) -> Units:
    return Units("geco", "small", "03_attribution")


UNIT = Unit(
    "D_A",
    "C",
    0,
    "Saliency",
    {"explained": "logit", "normalise_special": False, "aggregation": "l1"},
    2,
)


def test_the_plan_has_floors_once_and_costly_methods_on_one_seed() -> None:
    methods = ["Saliency", "LIME", "Uniform random"]
    plan = plan_units(
        MODELS, methods, {"LIME": {"n_samples": 7}}, n_base=4, n_base_ola=0, one_seed=["LIME"]
    )
    found = {(u.dataset, u.scheme, u.seed, u.method): u for u in plan}
    assert len(found) == len(plan) == 2 + 5 + 4
    assert ("D_A", "C", 1, "LIME") not in found and ("D_A", "OLA-CEA", 1, "LIME") in found
    assert found["D_A", "-", -1, "Uniform random"].n_base == 0  # as many rows as any model explains
    assert (found["D_A", "C", 0, "LIME"].n_base, found["D_A", "OLA-CEA", 0, "LIME"].n_base) == (
        4,
        0,
    )
    assert found["D_A", "C", 0, "LIME"].settings == {"explained": "probability", "n_samples": 7}
    assert len({u.name for u in plan}) == len(plan)


def test_settings_are_put_together_and_misspelt_methods_refused() -> None:
    found = settings_by_method(
        {"LIME": "logit"}, {"Saliency": "l2"}, True, {"LIME": {"n_samples": 3}}
    )
    assert found["LIME"] == {"explained": "logit", "n_samples": 3}
    assert found["Saliency"] == {"normalise_special": True, "aggregation": "l2"}
    plan_units(MODELS, list(METHODS), found, 1, 1)
    with pytest.raises(TouchstoneError, match="no method 'Salency'; did you mean 'Saliency'"):
        settings_by_method({"Salency": "logit"}, {}, False)


def test_the_plan_refuses_unknown_names_before_anything_runs() -> None:
    with pytest.raises(TouchstoneError, match="no method"):
        plan_units(MODELS, ["LIMES"], {}, 1, 1)
    with pytest.raises(TouchstoneError, match="no setting"):
        plan_units(MODELS, ["LIME"], {"LIME": {"samples": 7}}, 1, 1)


def test_a_unit_is_made_once_and_reads_back_the_same(store: Units) -> None:
    sources = Fakes()
    first = explain_unit(UNIT, sources, store)
    again = explain_unit(UNIT, sources, store)
    assert sources.asked == 1
    pd.testing.assert_frame_equal(first, again)
    pd.testing.assert_frame_equal(validated(first, "unit"), first)
    direct = explain(sources.model, sources.rows, "Saliency", seed=0)
    for kept, made in zip(first.scores, direct.scores, strict=True):
        np.testing.assert_array_equal(np.float32(kept), np.float32(made))


def test_another_model_other_rows_or_settings_make_it_anew(store: Units) -> None:
    sources = Fakes()
    explain_unit(UNIT, sources, store)
    sources.version = "2"
    explain_unit(UNIT, sources, store)
    sources.rows = as_rows(["he sings .", "they"])
    explain_unit(UNIT, sources, store)
    explain_unit(
        Unit("D_A", "C", 0, "Saliency", {**UNIT.settings, "aggregation": "l2"}, 2), sources, store
    )
    assert sources.asked == 4


def test_published_units_hold_no_words(
    small_outputs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("lib.core.units.reference_dir", lambda study, scale: tmp_path / "reference")
    store = Units("geco", "cpu", "03_attribution", reuse=True)
    found = explain_unit(UNIT, Fakes(), store)
    (path,) = (tmp_path / "reference").rglob("*.parquet")
    assert pd.read_parquet(path).columns.tolist() == ["row_id", "delta", "scores"]
    (next((tmp_path / "outputs").rglob("*.parquet"))).unlink()  # as in a fresh clone
    sources = Fakes()
    pd.testing.assert_frame_equal(explain_unit(UNIT, sources, store), found)
    assert sources.asked == 0


def awkward_scores(seed: int) -> list[np.ndarray]:
    """Rows with a few words that have nearly all, ties, zeros, minus signs, sizes that nearly tie,
    and sizes at both ends of what a float holds.
    """
    rng = np.random.default_rng(seed)
    rows = [rng.standard_cauchy(18) * 10.0 ** rng.integers(-6, 6) for _ in range(40)]
    rows += [rng.standard_cauchy(18) ** 5 * (rng.random(18) < 0.7) for _ in range(20)]
    rows += [rng.choice([0.1, -0.1, 0.3, 0.0], 18) for _ in range(20)]
    return [*rows, rng.random(18).astype(np.float32)]


NEAR = {  # what four bytes would make equal, zero or infinite
    "equal": [0.1, np.nextafter(0.1, 1), 0.2],
    "equal sizes": [-0.1, np.nextafter(0.1, 1), 0.2],
    "zero": [1e-50, 1.0, 2.0],
    "equal zeros": [1e-50, -1e-50, 0.0],
    "infinite": [1e300, 1.0, 2.0],
}


def kept_and_read(scores: list[np.ndarray], store: Units) -> list[np.ndarray]:
    made = pd.DataFrame({"row_id": "1-F", "delta": 0.123456, "scores": scores})
    back = store.save("one", "key", packed(made), exact=True)
    assert (np.float32(back["delta"]) == np.float32(0.123456)).all()
    return [np.array(of_row) for of_row in back["scores"]]


@pytest.mark.parametrize("near", [None, *NEAR])
def test_every_measure_of_rank_of_kept_scores_is_that_of_the_full_ones(
    store: Units, near: str | None
) -> None:
    full = awkward_scores(0) + ([np.array(NEAR[near])] if near else [])
    kept, rng = kept_and_read(full, store), np.random.default_rng(1)
    for a, b in zip(full, kept, strict=True):
        for fold in (np.asarray, np.abs):  # signed, and by size
            # the place of every score among the others, ties sharing theirs: to the last bit
            np.testing.assert_array_equal(rankdata(fold(a)), rankdata(fold(b)))
            order = [np.argsort(fold(x), kind="stable") for x in (a, b)]  # of deletion
            np.testing.assert_array_equal(*order)
        other, truth = rng.normal(size=len(a)), rng.permutation(np.arange(len(a)) < 2)
        assert spearmanr(a, other)[0] == spearmanr(b, other)[0]
        for name in ("roc_auc", "average_precision", "top_k_precision", "recall"):
            assert METRICS[name](a, truth) == METRICS[name](b, truth), name
        np.testing.assert_array_equal(np.sign(a), np.sign(b))


@pytest.mark.parametrize("near", [None, *NEAR])
def test_four_bytes_are_taken_where_they_keep_the_order(near: str | None) -> None:
    scores = awkward_scores(0)[:1] + ([np.array(NEAR[near])] if near else [])
    kept = packed(pd.DataFrame({"row_id": "1-F", "delta": None, "scores": scores}))
    assert {row.dtype for row in kept["scores"]} == {np.dtype("float64" if near else "float32")}


def test_kept_scores_move_mass_accuracy_by_less_than_a_millionth(store: Units) -> None:
    scores = awkward_scores(2)
    truth = [np.random.default_rng(0).permutation([1] * 4 + [0] * 14) for _ in scores]
    for a, b, t in zip(scores, kept_and_read(scores, store), truth, strict=True):
        assert mass_accuracy(a, t) == pytest.approx(mass_accuracy(b, t), abs=1e-6)


def test_units_of_before_in_steps_are_read_and_counted(
    store: Units, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = Fakes()
    explain_unit(UNIT, sources, store)
    (path,) = (outputs_root() / "geco").rglob("*.parquet")
    key = re.search(rb"# key=(.*)\n", path.read_bytes())[1].decode()
    steps = [[999, 0, -500], [7]]
    assert sources.rows["sentence"].map(len).tolist() == [3, 1]
    stepped = sources.rows[["row_id"]].assign(delta=None, scale=[0.001001, 2.0], scores=steps)
    store.save(UNIT.name, key, stepped)
    found = run_units([UNIT], sources, store)
    assert sources.asked == 1 and found["scores"].tolist() == [
        [999 * 0.001001, 0.0, -500 * 0.001001],
        [14.0],
    ]
    assert capsys.readouterr().out == (
        "1 of 1 units were published with scores in 999 steps, which moves measures of rank; "
        "delete them to have them made anew\n"
    )


def test_later_seeds_of_ola_explain_with_some_methods_only() -> None:
    six = pd.DataFrame(
        [("D_A", "OLA-CEA", k) for k in range(6)], columns=["dataset", "scheme", "seed"]
    )
    plan = plan_units(six, ["Saliency", "LIME"], {}, 1, 1, every_seed_ola=["Saliency"])
    assert {(u.seed, u.method) for u in plan} == {(k, "Saliency") for k in range(6)} | {
        (k, "LIME") for k in range(5)
    }
    assert len(plan_units(six, ["Saliency", "LIME"], {}, 1, 1)) == 12
    with pytest.raises(TouchstoneError, match="no method 'Salency'"):
        plan_units(MODELS, ["Saliency"], {}, 1, 1, every_seed_ola=["Salency"])


def test_some_schemes_may_explain_more_base_sentences_and_floors_explain_all_of_them() -> None:
    models = pd.DataFrame(
        [("D_A", "C", 0), ("D_A", "CEf", 0), ("D_A", "OLA-CEA", 0)],
        columns=["dataset", "scheme", "seed"],
    )
    names = ["Saliency", "First pronoun"]
    for more, wanted in (
        ({"CEf": 9}, {"-": 9, "C": 4, "CEf": 9, "OLA-CEA": 6}),
        ({"CEf": 0}, {"-": 0, "C": 4, "CEf": 0, "OLA-CEA": 6}),
        (None, {"-": 6, "C": 4, "CEf": 4, "OLA-CEA": 6}),
    ):
        plan = plan_units(models, names, {}, 4, 6, n_base_of=more)
        assert {unit.scheme: unit.n_base for unit in plan} == wanted


def test_some_schemes_are_explained_with_one_pass_and_your_own_methods_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_of_one_pass.py").write_text("def by_length(model, rows): return []\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = "mine_of_one_pass:by_length"
    methods = ["Saliency", "DeepLift", "LIME", "Integrated Gradients", "First pronoun", own]
    models = pd.DataFrame(
        [("D_A", "C", 0), ("D_A", "CEfAf", 0)], columns=["dataset", "scheme", "seed"]
    )
    plan = plan_units(models, methods, {}, 1, 1, one_pass=["C"])
    by_scheme = {s: [u.method for u in plan if u.scheme == s] for s in ("-", "C", "CEfAf")}
    assert by_scheme["-"] == ["First pronoun"]
    assert by_scheme["C"] == ["Saliency", "DeepLift", own]
    assert by_scheme["CEfAf"] == ["Saliency", "DeepLift", "LIME", "Integrated Gradients", own]


def test_predicted_seconds_count_what_is_unfinished(store: Units) -> None:
    sources = Fakes()
    plan = plan_units(MODELS, ["Saliency", "Uniform random"], {}, 2, 2)
    run_units(plan[:2], sources, store)  # the two floors
    table = predicted_seconds(plan, sources, store)
    assert table.units.sum() == 5 and table.rows.sum() == 10 and (table.seconds > 0).all()
    run_units(plan, sources, store)
    assert predicted_seconds(plan, sources, store).empty


def test_chosen_rows_keep_base_sentences_whole_and_are_nested() -> None:
    rows = pd.DataFrame({"sentence_idx": np.repeat(np.arange(20), 3), "target": [0, 1, 2] * 20})
    few, more = choose_rows(rows, 4, seed=0), choose_rows(rows, 9, seed=0)
    assert len(few) == 12 and set(few.sentence_idx) < set(more.sentence_idx)
    assert len(choose_rows(rows, 0, seed=0)) == 60
    assert set(choose_rows(rows, 4, seed=1).sentence_idx) != set(few.sentence_idx)
    with pytest.raises(
        TouchstoneError, match="asks for 21 base sentences and the test split has 20"
    ):
        choose_rows(rows, 21, seed=0)


def test_steps_and_errors_are_kept_with_a_unit(store: Units) -> None:
    settings = METHODS["Integrated Gradients"].settings({"tolerance": 0.01, "placing": "panels"})
    unit, sources = Unit("D_A", "C", 0, "Integrated Gradients", settings, 2), Fakes()
    first = explain_unit(unit, sources, store)
    again = explain_unit(unit, sources, store)
    assert sources.asked == 1 and (again.steps >= 5).all() and again.error.between(0, 1).all()
    pd.testing.assert_frame_equal(first, again)
    pd.testing.assert_frame_equal(validated(first, "unit"), first)


def test_methods_of_one_pass_share_it_and_are_kept_apart(store: Units) -> None:
    names = ["Saliency", "LIME", "InputXGradient", "Guided Backprop", "DeepLift"]
    plan = plan_units(MODELS.iloc[:2], names, {"LIME": {"n_samples": 5}}, n_base=2, n_base_ola=2)
    sources, passes = Fakes(), []
    inner = sources.model.logits
    sources.model.logits = lambda embeddings, mask: (
        passes.append(torch.is_grad_enabled()),
        inner(embeddings, mask),
    )[1]
    found = run_units(plan, sources, store)
    assert (
        sources.asked == 4 and sum(passes) == 2 * 2
    )  # a shared graph per seed and length of row; LIME's need none
    assert found["method"].tolist() == [
        name for _ in range(2) for name in names for _ in range(2)
    ]  # in the plan's order
    for unit in plan:
        one = explain(build("BERT"), sources.rows, unit.method, unit.settings, seed=unit.seed)
        ours = found[(found["method"] == unit.method) & (found["seed"] == unit.seed)]
        for a, b in zip(ours["scores"], one["scores"], strict=True):
            assert np.asarray(a) == pytest.approx(np.asarray(b), abs=1e-5 * np.abs(b).max())
    run_units(plan[::-1], sources, store)
    assert sources.asked == 4  # all of them were kept, each under its own name


def test_a_changed_explainer_of_ones_own_is_asked_again(
    store: Units, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    unit = replace(UNIT, method="mine_grid:by_length", settings={})
    scores = []
    for score in ("len(word)", "-100.0 * len(word)"):
        answer = f"[[{score} for word in row.words] for row in rows]"
        source = f"def by_length(model, rows): return {answer}\n"
        (tmp_path / "mine_grid.py").write_text(source)
        sys.modules.pop("mine_grid", None)
        importlib.invalidate_caches()
        scores.append(explain_unit(unit, Fakes(), store).scores[0])
    assert scores[0][0] > 0 > scores[1][0]
