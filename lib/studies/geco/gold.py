"""What is behind the annotator's errors on GECO: faults of the gold, of the text, or its own."""

import pandas as pd


def bound_table(scores: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """What is behind the errors that were read, and the best score that this gold allows.

    Args:
        scores: rows of `annotator_scores.csv` for one pipeline and D_A.
        errors: the wrong sentences by comparison (input, quantity, words) with a `verdict`: one
            that begins with "gold" is a fault of the gold, "text" a sentence that does not tell,
            the rest are ours; and the verdict of a `second` reading.

    Returns:
        Per comparison the score and the counts of errors; `highest`: the score of an annotator
        that makes only the errors laid at the gold's door, and those of the text; `agreed`: errors
        that both readings call a fault of the gold; `mended`: our score were only these corrected.
    """
    rows = []
    for (side, quantity), part in errors.groupby(["input", "quantity"], sort=False):
        score = scores[(scores["input"] == side) & (scores["quantity"] == quantity)].iloc[0]
        by_words = quantity.startswith("mask")
        words = part["words"] if by_words else part["words"].clip(upper=1)
        counts = words.groupby(part["verdict"].str.split().str[0]).sum()
        value = score["F1"] if by_words else score["sentences_right"]
        ours = int(counts.get("annotator", 0))
        highest = 1 - (1 - value) * (counts.sum() - ours) / counts.sum()
        twice = part["verdict"].str.startswith("gold") & part["second"].str.startswith("gold")
        agreed = int(part.loc[twice, "words"].sum() if by_words else twice.sum())
        mended = 1 - (1 - value) * (counts.sum() - agreed) / counts.sum()
        rows.append(
            {
                "input": side,
                "quantity": quantity,
                "score": value,
                "errors": int(counts.sum()),
                "gold_at_fault": int(counts.get("gold", 0)),
                "text_does_not_tell": int(counts.get("text", 0)),
                "ours": ours,
                "highest": highest,
                "agreed": agreed,
                "mended": mended,
            }
        )
    return pd.DataFrame(rows)
