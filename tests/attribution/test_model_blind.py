"""The explanations that see no model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small_models import as_rows

from lib.attribution import explain, fit_pattern
from lib.core.errors import TouchstoneError
from lib.metrics import score_explanations
from lib.models.text_model import TextModel
from lib.studies.geco.corpus import read_geco


def scores(rows: pd.DataFrame, method: str, model: object = None) -> list[list[float]]:
    return explain(model, rows, method).scores.tolist()


def test_pronouns_by_hand() -> None:
    rows = as_rows(["Then She saw her . ", "nobody sang"])
    assert scores(rows, "First pronoun") == [[0, 1, 0, 0, 0], [1, 1]]
    assert scores(rows, "Pronoun list") == [[0, 1, 0, 1, 0], [1, 1]]


@pytest.mark.slow
def test_noise_is_uniform_per_sub_word(bert: TextModel) -> None:
    rows = pd.concat([as_rows(["he sings ."], [0]).assign(row_id=f"{i}-F") for i in range(600)])
    found = np.array(scores(rows, "Uniform random", bert))
    np.testing.assert_allclose(found.mean(0), [0.5, 1.0, 0.5], atol=0.05)  # sings is two pieces
    assert found.min() >= 0 and found[:, 0].max() < 1
    assert np.array(scores(rows, "Uniform random")).mean() == pytest.approx(0.5, abs=0.05)


def test_pattern_is_the_covariance_of_tf_idf_with_the_class() -> None:
    """Two sentences without a common word.

    Tf-idf is 1 / sqrt(2) a word, so the covariance is +-(1 / sqrt(2)) / 2.
    """
    train = as_rows(["she sings", "he runs"], [0, 1])
    height = 2**-0.5 / 2
    found = scores(
        as_rows(["she runs", "she runs", "She flies"], [0, 1, 0]),
        "Pattern Variant",
        fit_pattern(train),
    )
    np.testing.assert_allclose(found, [[height, -height], [-height, height], [height, 0]])


def test_pattern_agrees_with_numpys_covariance(rows: pd.DataFrame) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectoriser = TfidfVectorizer(analyzer=list)
    features = vectoriser.fit_transform(rows.sentence).toarray()
    pattern = fit_pattern(rows)
    for word, column in vectoriser.vocabulary_.items():
        for target in range(3):
            expected = np.cov(features[:, column], rows.target == target)[0, 1]
            assert pattern.covariance[word][target] == pytest.approx(expected)


def test_the_class_in_the_middle_is_not_blind_to_its_own_words() -> None:
    """With the numbers 0, 1, 2 as target, class 1 has covariance 0 with the word that marks it."""
    train = as_rows(["she sings", "he sings", "they sing"] * 4)
    pattern = fit_pattern(train)
    assert pattern.covariance["he"][1] > 0.1


def test_words_are_taken_as_they_are() -> None:
    assert set(fit_pattern(as_rows(["A I , doesn't", "e.g. ."])).covariance) == {
        "a",
        "i",
        ",",
        "doesn't",
        "e.g.",
        ".",
    }


def test_pattern_wants_its_fit(bert: TextModel) -> None:
    with pytest.raises(TouchstoneError, match="fit_pattern"):
        explain(bert, as_rows(["she"]), "Pattern Variant")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "first", "pattern"),
    [("non_binary_gender_all", 0.98, 0.964), ("non_binary_gender_subj", 0.91, 0.776)],
)
def test_floors_on_the_published_data(geco_data, folder: str, first: float, pattern: float) -> None:
    """The figures of an earlier measurement, which dropped punctuation and pieces: within .01."""
    train, test = (read_geco(geco_data / folder / f"{split}.jsonl") for split in ("train", "test"))
    for method, model, expected in (
        ("First pronoun", None, first),
        ("Pattern Variant", fit_pattern(train), pattern),
    ):
        found = score_explanations(explain(model, test, method), test)
        assert found["MA"].mean() == pytest.approx(expected, abs=0.01)
