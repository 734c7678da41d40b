"""What `touchstone score --study implicit_bias` knows: the word that each masked pronoun is of."""

from pathlib import Path

import pandas as pd

from ...core.errors import TouchstoneError
from ...core.files import load_parquet
from ...doors.score import HandIn, score_words


def read_items(folder: Path) -> pd.DataFrame:
    """The masked sentences of stage 01: row_id, sentence_idx, target (1: the male form), sentence,
    ground_truth (1 for the antecedent).
    """
    path = folder / "sentences.parquet"
    if not path.is_file():
        raise TouchstoneError(
            f"{folder} holds no sentences.parquet; run `touchstone run implicit_bias --stage 01`"
        )
    sentences = load_parquet(path)
    return pd.DataFrame(
        {
            "row_id": sentences["sentence_id"].astype(str),
            "sentence_idx": range(len(sentences)),
            "target": 1,
            "sentence": sentences["masked"],
            "ground_truth": [
                [int(i == at) for i in range(len(words))]
                for words, at in zip(sentences["masked"], sentences["antecedent_at"], strict=True)
            ],
        }
    )


def _score(path: Path, items: pd.DataFrame) -> pd.DataFrame:
    return score_words(path, items)


def _ask(items: pd.DataFrame) -> pd.DataFrame:
    question = (
        "A pronoun is masked in this sentence. Which words would make you take it for a masculine "
        "one?"
    )
    return items.assign(question=question)


HAND_IN = HandIn(
    read_items,
    _score,
    ("MA", "MA_chance_normalised", "roc_auc", "share"),
    "The measures say how much falls on the word that the pronoun refers to, which a person would "
    "name; what the word does to a model only that model tells (stage 03).",
    _ask,
)
