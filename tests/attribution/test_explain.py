"""Whole explanations: batches, seeds, sub-words, the format, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import CLASSES, LinearText, as_rows, build

from lib.attribution import (
    METHODS,
    SCHEMA,
    Method,
    explain,
    fit_pattern,
    load_explanations,
    save_explanations,
)
from lib.attribution.explain import token_batch
from lib.attribution.seam import Row, class_score, word_scores
from lib.attribution.table import validated
from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.models.text_model import RunsFromEmbeddings, TextModel
from lib.studies.geco import corpus as corpora

FEW = {
    "Integrated Gradients": {"n_steps": 5},
    "LIME": {"n_samples": 20},
    "Kernel SHAP": {"n_samples": 12},
    "SmoothGrad": {"n_samples": 3},
    "Shapley sampling": {"n_samples": 3},
}
COMPLETE = {
    "Integrated Gradients",
    "DeepLift",
    "DeepLift rescale",
    "Shapley sampling",
    "Exact Shapley",
    "Partition SHAP",
}
ALWAYS = {
    "Shapley sampling": {"error"},
    "Exact Shapley": {"samples"},
    "AttnLRP": {"unassigned"},
}  # columns beside those of the format


def what_it_sees(method: str, model: TextModel, rows: pd.DataFrame) -> object:
    return fit_pattern(rows) if method == "Pattern Variant" else model


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_batched_result_equals_the_single_one_in_any_order(
    model: TextModel, rows: pd.DataFrame, method: str
) -> None:
    sees, settings = what_it_sees(method, model, rows), FEW.get(method)
    together = explain(sees, rows, method, settings, seed=0).set_index("row_id")
    shuffled = explain(sees, rows.iloc[::-1], method, settings, seed=0).set_index("row_id")
    for i, row_id in enumerate(rows.row_id):
        alone = explain(sees, rows.iloc[[i]], method, settings, seed=0).scores[0]
        np.testing.assert_allclose(together.scores[row_id], alone, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(shuffled.scores[row_id], alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", ["Gradient SHAP", "Kernel SHAP", "LIME", "Uniform random"])
def test_draws_depend_on_method_row_and_seed_alone(bert: TextModel, method: str) -> None:
    rows = as_rows(["he sings a song .", "he sings a song ."], [0, 0]).assign(row_id=["1-F", "2-F"])
    first, again, other = (
        explain(bert, rows, method, FEW.get(method), seed=s).scores for s in (0, 0, 1)
    )
    assert first[0] == again[0] and first[1] == again[1]
    assert first[0] != first[1] and first[0] != other[0]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_results_keep_to_the_format(model: TextModel, rows: pd.DataFrame, method: str) -> None:
    found = explain(
        what_it_sees(method, model, rows),
        rows,
        method,
        FEW.get(method),
        dataset="D_A",
        scheme="C",
        seed=0,
    )
    pd.testing.assert_frame_equal(validated(found, "here"), found)
    assert list(found)[: len(SCHEMA)] == list(SCHEMA) and set(found) - set(SCHEMA) == ALWAYS.get(
        method, set()
    )
    assert found.words.tolist() == rows.sentence.tolist()
    assert json.loads(found.settings[0]) == METHODS[method].settings(FEW.get(method))
    assert found.delta.notna().all() == (method in COMPLETE)


def test_sub_words_keep_their_mass(bert: TextModel) -> None:
    words = "the singer sings .".split()
    batch = token_batch(bert, [Row("1-F", 1, 0, words, 0)], bert.encode([words]), "logit")
    tokens = METHODS["InputXGradient"].function(batch).scores[0].numpy()
    found = explain(bert, as_rows([" ".join(words)], [0]), "InputXGradient").scores[0]
    assert len(tokens) == 8 and len(found) == 4
    assert sum(found) == pytest.approx(tokens[1:-1].sum(), abs=1e-6)
    assert found[1] == pytest.approx(tokens[2:4].sum(), abs=1e-6)  # sing ##er


@given(st.lists(st.tuples(st.floats(-9, 9), st.none() | st.integers(0, 4)), max_size=12))
def test_word_sums_conserve_mass(tokens: list[tuple[float, int | None]]) -> None:
    scores, word_ids = np.array([s for s, _ in tokens]), [w for _, w in tokens]
    inside = sum(s for s, w in tokens if w is not None)
    assert word_scores(scores, word_ids, 5).sum() == pytest.approx(inside, abs=1e-9)
    released = word_scores(scores, word_ids, 5, normalise_special=True)
    assert (released >= 0).all() and released.sum() <= 1 + 1e-9


def test_normalise_special_follows_the_released_order() -> None:
    """Sizes over all four tokens sum to 10; the word keeps (2 + 3) / 10, not |2 - 3| / anything."""
    found = word_scores(
        np.array([4.0, 2.0, -3.0, 1.0]), [None, 0, 0, None], 1, normalise_special=True
    )
    assert found.tolist() == [0.5]
    assert word_scores(np.zeros(2), [0, 1], 2, normalise_special=True).tolist() == [0, 0]


def test_a_word_that_the_model_cannot_see_gets_zero(model: TextModel) -> None:
    rows = as_rows(["he sings ."], [0]).assign(sentence=[["he", " ", "sings", "."]])
    for name, method in METHODS.items():
        if method.level == "token":
            assert explain(model, rows, name, FEW.get(name)).scores[0][1] == 0, name


def test_relabelling_the_classes_relabels_the_explanations(bert: TextModel) -> None:
    before = explain(bert, as_rows(["he sings ."], [2]), "Integrated Gradients").scores[0]
    head = bert.module.classifier
    with torch.no_grad():
        head.weight.copy_(head.weight[[2, 0, 1]])
        head.bias.copy_(head.bias[[2, 0, 1]])
    after = explain(bert, as_rows(["he sings ."], [0]), "Integrated Gradients").scores[0]
    np.testing.assert_allclose(before, after, atol=1e-6)


def test_dropout_is_off_while_explaining(bert: TextModel) -> None:
    row = as_rows(["he sings ."], [0])
    before = explain(bert, row, "Saliency").scores[0]
    bert.module.train()
    assert explain(bert, row, "Saliency").scores[0] == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [name for name, method in METHODS.items() if method.family != "floor"]
)
def test_zero_shot_models_are_explained_and_their_cue_gets_nothing(
    zero_shot: RunsFromEmbeddings, method: str
) -> None:
    rows = as_rows(["he sings .", "the old singer"], [1, 2])
    found = explain(zero_shot, rows, method, FEW.get(method), seed=0)
    for scores, words in zip(found.scores, rows.sentence, strict=True):
        assert len(scores) == len(words) and np.abs(scores).sum() > 0
    if (
        method == "Integrated Gradients"
    ):  # complete over the words alone: the cue stands in the reference as well
        encoded = zero_shot.encode(rows.sentence)
        for i, one in enumerate(encoded):
            row = Row("1", 1, int(rows.target[i]), rows.sentence[i], 0)
            batch = token_batch(zero_shot, [row], [one], "probability")
            with torch.no_grad():
                change = batch.score(batch.embeddings, batch.mask) - batch.score(
                    batch.baselines, batch.mask
                )
            exact = explain(zero_shot, rows, method, {"n_steps": 300}, seed=0).scores[i]
            assert sum(exact) == pytest.approx(change.item(), abs=2e-3)


@pytest.mark.parametrize("kind", ["BERT", "RoBERTa"])
@pytest.mark.parametrize(
    "method", [name for name, method in METHODS.items() if method.level == "token"]
)
def test_leaving_out_what_the_classifier_does_not_read_changes_nothing(
    kind: str, method: str
) -> None:
    model, words = build(kind), "he sings the old song .".split()
    row = Row("0-F", 0, 0, words, seed_for(method, "0-F", 0))
    settings = METHODS[method].settings(FEW.get(method))
    batch = token_batch(model, [row], model.encode([words]), settings.pop("explained"))
    settings.pop("normalise_special")
    whole = METHODS[method].function(batch, **settings).scores[0].numpy()
    expected = word_scores(whole, model.encode([words])[0].word_ids, len(words))
    found = explain(model, as_rows([" ".join(words)], [0]), method, FEW.get(method), seed=0).scores[
        0
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_parameters_learn_again_after_an_explanation(bert: TextModel) -> None:
    fixed = bert.module.classifier.bias.requires_grad_(False)
    explain(bert, as_rows(["he sings ."], [0]), "Saliency")
    assert not fixed.requires_grad and bert.module.classifier.weight.requires_grad


def own(scores: object) -> Method:
    return Method("mine", lambda model, rows, **settings: scores, "own", "word")


def test_nan_names_row_and_method(bert: TextModel) -> None:
    with pytest.raises(TouchstoneError, match="mine gave a score that is not finite for row 1-M"):
        explain(bert, as_rows(["he sings", "she sings"]), own([[1, 2], [1, float("nan")]]))


def test_a_wrong_number_of_scores_names_row_and_method(bert: TextModel) -> None:
    with pytest.raises(TouchstoneError, match="mine gave 3 scores for the 2 words of row 0-F"):
        explain(bert, as_rows(["he sings"]), own([[1, 2, 3]]))
    with pytest.raises(TouchstoneError, match="mine explained 1 of 2 rows"):
        explain(bert, as_rows(["he sings", "she sings"]), own([[1, 2]]))


def test_a_model_that_answers_nan_is_named(bert: TextModel) -> None:
    with torch.no_grad():
        bert.module.classifier.bias.fill_(float("nan"))
    with pytest.raises(
        TouchstoneError, match="Integrated Gradients gave a score that is not finite for row 0-F"
    ):
        explain(bert, as_rows(["he sings"]), "Integrated Gradients")


@pytest.mark.parametrize("method", ["Saliency", "LIME"])
def test_a_sentence_over_the_models_length_names_the_row(bert: TextModel, method: str) -> None:
    with pytest.raises(
        TouchstoneError, match=f"row 1-M cannot be explained by {method}: .*30 tokens.*at most 24"
    ):
        explain(bert, as_rows(["he", "he " * 28]), method)


def test_a_class_that_does_not_exist_names_the_row(bert: TextModel, linear: LinearText) -> None:
    with pytest.raises(
        TouchstoneError,
        match="row 0-NB asks Saliency about class 2; the model knows 0 left, 1 right",
    ):
        explain(linear, as_rows(["she"], [2]), "Saliency")
    with pytest.raises(
        TouchstoneError, match="there is no class 3; the model knows 0 F, 1 M, 2 NB"
    ):
        class_score(bert, [0, 3])


def test_unknown_names_are_refused_with_the_nearest(bert: TextModel) -> None:
    rows = as_rows(["he sings"])
    with pytest.raises(TouchstoneError, match="no method 'lime'; did you mean 'LIME'"):
        explain(bert, rows, "lime")
    with pytest.raises(TouchstoneError, match="no setting 'steps'; did you mean 'n_steps'"):
        explain(bert, rows, "Integrated Gradients", {"steps": 3})
    with pytest.raises(TouchstoneError, match="explained is 'logits'; did you mean 'logit'"):
        explain(bert, rows, "Saliency", {"explained": "logits"})


def test_classes_are_those_of_the_study() -> None:
    assert CLASSES == corpora.CLASSES


def test_options_are_recorded_only_where_they_are_chosen(bert: TextModel, tmp_path: object) -> None:
    rows = as_rows(["he sings .", "she"])
    plain, chosen = (
        explain(bert, rows, "Integrated Gradients"),
        explain(bert, rows, "Integrated Gradients", {"tolerance": 0.01}),
    )
    assert (
        json.loads(plain.settings[0]) == METHODS["Integrated Gradients"].defaults
        and "steps" not in plain
    )
    assert json.loads(chosen.settings[0]) == METHODS["Integrated Gradients"].defaults | {
        "tolerance": 0.01
    }
    assert (
        explain(bert, rows, "Integrated Gradients", {"tolerance": None}).settings[0]
        == plain.settings[0]
    )
    save_explanations(tmp_path / "found.parquet", chosen)
    pd.testing.assert_frame_equal(load_explanations(tmp_path / "found.parquet"), chosen)


def test_shorter_numbers_change_little_and_are_recorded(bert: TextModel) -> None:
    rows = as_rows(["he sings the old song .", "they sing"])
    for method in ("Integrated Gradients", "LIME", "Kernel SHAP", "Saliency"):
        exact, low = (
            explain(bert, rows, method),
            explain(bert, rows, method, {"precision": "bfloat16"}),
        )
        assert json.loads(low.settings[0])[
            "precision"
        ] == "bfloat16" and "precision" not in json.loads(exact.settings[0])
        for one, other in zip(exact.scores, low.scores, strict=True):
            assert 0 < np.abs(np.subtract(one, other)).max() < 0.1 * np.abs(one).max() + 0.01, (
                method
            )
    assert next(bert.module.parameters()).dtype == torch.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 2.0}, "tolerance = 2.0.*between 0 and 1"),
        ({"tolerance": 0.1, "min_steps": 0}, "1 <= min_steps"),
    ],
)
def test_a_tolerance_that_means_nothing_is_refused(
    bert: TextModel, options: dict[str, float], message: str
) -> None:
    with pytest.raises(TouchstoneError, match=message):
        explain(bert, as_rows(["he sings"]), "Integrated Gradients", options)
    with pytest.raises(TouchstoneError, match="did you mean 'panels'"):
        explain(
            bert,
            as_rows(["he sings"]),
            "Integrated Gradients",
            {"tolerance": 0.1, "placing": "panel"},
        )
    with pytest.raises(TouchstoneError, match="largest error of a share"):
        explain(bert, as_rows(["he sings"]), "LIME", {"tolerance": 3.0})
