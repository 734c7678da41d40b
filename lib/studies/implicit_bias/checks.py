"""What is asked before a number is shown: did the training pass its gate, are the word lists
usable?
"""

from collections.abc import Collection, Mapping, Sequence

import pandas as pd

from ...core.errors import TouchstoneError

_TRAINING = ["model", "base", "seed"]


def passes_gate(models: pd.DataFrame, least: float) -> pd.Series:
    """Which models know pronouns, and predict words better than their frequencies do.

    Args:
        models: right_first (share of sentences with the right gender on top), perplexity,
            unigram (the perplexity of the words' frequencies).
        least: of right_first.
    """
    return (models["right_first"] >= least) & (models["perplexity"] < models["unigram"])


def may_be_shown(rows: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """The rows of the trainings that passed the gate.

    Args:
        rows: with the columns model, base (which training of the base model it is or starts
            from), seed.
        models: model, base, seed, passes.

    Raises:
        TouchstoneError: for a training that is not among `models`.
    """
    passes = models.set_index(_TRAINING)["passes"].astype(bool).to_dict()
    trainings = list(rows[_TRAINING].itertuples(index=False, name=None))
    if unknown := sorted(set(trainings) - set(passes)):
        model, base, seed = unknown[0]
        raise TouchstoneError(
            f"{model}, base {base}, seed {seed}, was never put through the gate, so its scores are "
            "not shown; run 02_training again"
        )
    return rows[[passes[training] for training in trainings]]


def check_lists(
    lists: Mapping[str, Collection[str]], equal: Sequence[tuple[str, str]] = (("X", "Y"),)
) -> None:
    """Refuse word lists that are empty, or unequal in size where equal ones are needed.

    Args:
        lists: by name.
        equal: pairs of names.

    Raises:
        TouchstoneError: naming the list.
    """
    if empty := [name for name, words in lists.items() if not len(words)]:
        raise TouchstoneError(f"the word list {empty[0]} is empty; write at least one word")
    for first, second in equal:
        if len(lists[first]) != len(lists[second]):
            sizes = f"{len(lists[first])} and {len(lists[second])}"
            raise TouchstoneError(
                f"the word lists {first} and {second} have {sizes} words; the test needs lists of "
                "one size"
            )
