"""Stage 01's own quantities: by hand, by a second route, and on the published data."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from tokenizers import Tokenizer

from lib.core.paths import ROOT
from lib.language.lexicon import PRONOUN_FORMS
from lib.models.weights import load_encoder_path
from lib.studies.geco import corpus
from lib.studies.geco.corpus import (
    CLASSES,
    DATASETS,
    SPLITS,
    altered_terms,
    mask_statistics,
    read_geco,
)

A1 = frozenset().union(*PRONOUN_FORMS.values())


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    """The functions that the notebook defines, by name, taken from its source."""
    tree = ast.parse((ROOT / "notebooks/geco/01_data_generation.py").read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    space: dict[str, Any] = {
        "np": np,
        "pd": pd,
        "TfidfVectorizer": TfidfVectorizer,
        "corpus": corpus,
        "seed": 0,
    }
    exec("import random", space)
    exec(compile(tree, "01_data_generation.py", "exec"), space)
    return space


def test_co_occurrences_count_pairs_of_distinct_words(notebook: dict[str, Any]) -> None:
    count = notebook["co_occurrences"]
    assert count([["She", "sees", "her", "dog", "."]], A1) == 2 * 2
    assert count([["she", "sees", "she", ",", "dog"]], A1) == 1 * 2
    assert count([["The", "dog", "barks", "."]], A1) == 0
    assert count([["she", "runs"], ["he", "runs"]], A1) == 2


def test_altered_terms_stand_where_female_and_male_differ() -> None:
    rows = pd.DataFrame(
        {
            "sentence_idx": 0,
            "target": [0, 1, 2],
            "sentence": [["She", "is", "queen"], ["He", "is", "king"], ["They", "are", "monarch"]],
        }
    )
    assert altered_terms(rows) == {"she", "he", "they", "queen", "king", "monarch"}


def test_correlation_agrees_with_numpy(notebook: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    words = np.array(["she", "he", "they", "dog", "runs"])
    rows = pd.DataFrame(
        {"sentence": [list(rng.choice(words, 4)) for _ in range(60)], "target": np.arange(60) % 3}
    )
    ours = notebook["tfidf_correlation"](rows)
    vectorizer = TfidfVectorizer(analyzer=lambda sentence: sentence)
    weights = vectorizer.fit_transform(rows["sentence"]).toarray()
    for j, word in enumerate(vectorizer.get_feature_names_out()):
        for k, gender in enumerate(CLASSES):
            expected = np.corrcoef(weights[:, j], rows["target"] == k)[0, 1]
            assert ours.loc[word, gender] == pytest.approx(expected, abs=1e-9)


def test_a_split_keeps_the_forms_of_a_sentence_together(notebook: dict[str, Any]) -> None:
    rows = pd.DataFrame({"sentence_idx": np.repeat(np.arange(50), 3)})
    split = notebook["split_by_base"](rows, 0.2, 1234)
    train, test = (set(split[name]["sentence_idx"]) for name in SPLITS)
    assert len(test) == 10 and not train & test and len(split["train"]) + len(split["test"]) == 150
    again = notebook["split_by_base"](rows, 0.2, 1234)
    assert again["test"].index.equals(split["test"].index)
    assert not notebook["split_by_base"](rows, 0.2, 1)["test"].index.equals(split["test"].index)


@pytest.fixture(scope="module")
def published() -> dict[str, dict[str, pd.DataFrame]]:
    from lib.core.paths import data_root

    root = data_root()
    if root is None or not (root / "geco").is_dir():
        pytest.skip(
            "needs the published GECO: set TOUCHSTONE_DATA to a folder that holds geco/ (`make "
            "data` fills it)"
        )
    return {
        name: {
            split: read_geco(root / "geco" / folder / f"{split}.jsonl", "keep") for split in SPLITS
        }
        for name, folder in DATASETS.items()
    }


def bias(notebook: dict[str, Any], splits: dict[str, pd.DataFrame], extended: bool) -> list[float]:
    table = _whole(splits)
    terms = A1 | altered_terms(table) if extended else A1
    counts = np.array(
        [notebook["co_occurrences"](part["sentence"], terms) for _, part in table.groupby("target")]
    )
    return [round(float(share), 3) for share in counts / counts.sum()]


def _whole(splits: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat([splits[split] for split in SPLITS]).sort_values(["sentence_idx", "target"])


@pytest.mark.parametrize(
    ("name", "a1", "a2"),
    [
        ("D_A", [0.315, 0.355, 0.329], [0.322, 0.349, 0.330]),
        ("D_S", [0.327, 0.327, 0.347], [0.328, 0.328, 0.344]),
        ("D_A_binary", [0.470, 0.530], [0.480, 0.520]),
        ("D_S_binary", [0.500, 0.500], [0.501, 0.499]),
    ],
)
def test_bias_of_the_published_sets(
    notebook: dict[str, Any], published: dict, name: str, a1: list, a2: list
) -> None:
    assert bias(notebook, published[name], extended=False) == pytest.approx(a1, abs=6e-4)
    assert bias(notebook, published[name], extended=True) == pytest.approx(a2, abs=1.1e-3)


def test_masked_shares_of_word_pieces_of_the_published_sets(published: dict) -> None:
    """The expected mass accuracy of uniform noise: .2282, .1415, .1615, .0859."""
    tokenizer = Tokenizer.from_file(
        str(Path(load_encoder_path("all-MiniLM-L6-v2")) / "tokenizer.json")
    )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    expected = {"D_A": 0.2282, "D_S": 0.1415, "D_A_binary": 0.1615, "D_S_binary": 0.0859}
    for name, share in expected.items():
        rows = published[name]["test"]
        words = {word for sentence in rows["sentence"] for word in sentence}
        pieces = {word: len(tokenizer.encode(word, add_special_tokens=False).ids) for word in words}
        statistics = mask_statistics(rows, pieces.__getitem__)
        assert statistics["share_of_pieces"] == pytest.approx(share, abs=1.5e-4), (
            name
        )  # two rows have no fitting mask
        assert statistics["share_of_words"] > 0 and statistics["rows"] == len(rows)
    assert mask_statistics(published["D_S_binary"]["train"], len)["rows_without_mask"] == 22


def test_mask_statistics_by_hand() -> None:
    rows = pd.DataFrame(
        {
            "sentence": [["ab", "c"], ["d", "ef", "ghi", "j"]],
            "ground_truth": [[1, 0], [0, 0, 1, 1]],
            "sentence_idx": [0, 1],
        }
    )
    found = mask_statistics(rows, len)
    assert found["share_of_words"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert found["share_of_pieces"] == pytest.approx((2 / 3 + 4 / 7) / 2)
    assert (found["words_min"], found["words_mean"], found["words_max"], found["masked_mean"]) == (
        2,
        3,
        4,
        1.5,
    )
