"""The model's own truth: exact Shapley values of words against another form of the sentence.

The female, male and neutral forms of a sentence ("She loves her cat", "They love their cat") differ
in a few words. Swapping some of these words gives sentences like those that the model was trained
on: no padding, no holes. The Shapley values of the swaps (Shapley 1953) are what the model itself
makes of each word, and every other method can be held against them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from torch import Tensor

from ..core.errors import TouchstoneError
from ..language.lexicon import NOMINATIVE, PRONOUN_FORMS
from ..models.text_model import TextModel
from .perturbed_texts import text_logits
from .regression import all_masks, shapley_values
from .seam import class_score
from .table import in_format

_MOST_PLAYERS = 10  # 1024 sentences a row and direction
_FEMALE, _MALE, _NEUTRAL = range(3)  # the class numbers, in the order of PRONOUN_FORMS
_CLASSES = tuple(PRONOUN_FORMS)
_OTHER_CASES = frozenset().union(*PRONOUN_FORMS.values()) - frozenset(NOMINATIVE)


_SWAPS = "dataset row_id sentence_idx target other n_words n_players players values".split()


class Swap(NamedTuple):
    """A row, and the form of the same base sentence against which its words are valued.

    `players`: the positions of the words that are swapped together, a tuple for each player.
    """

    row_id: str
    sentence_idx: int
    target: int
    other: int
    words: tuple[str, ...]
    other_words: tuple[str, ...]
    players: tuple[tuple[int, ...], ...]

    def mixture(self, kept: Sequence[bool]) -> tuple[str, ...]:
        """The sentence with some players' words, and the other form's words for the others."""
        taken = {
            i for player, stays in zip(self.players, kept, strict=True) if not stays for i in player
        }
        return tuple(
            self.other_words[i] if i in taken else word for i, word in enumerate(self.words)
        )


class SwapShapley(NamedTuple):
    """Values in the explanation format, the mixtures behind them, the swaps, what was left out.

    `mixtures`: row_id, other, kept (a 0/1 text, one digit a player), words, score, is_mixed (words
    of both forms: for M and F these are the mixed-gender sentences). `swaps`: dataset, row_id,
    sentence_idx, other, n_players, players, values. `left_out`: row_id, other, why.
    """

    explanations: pd.DataFrame
    mixtures: pd.DataFrame
    swaps: pd.DataFrame
    left_out: pd.DataFrame


def players_between(
    forms: Mapping[int, Sequence[str]], own: int, other: int
) -> tuple[tuple[int, ...], ...]:
    """Who is swapped together when one form of a sentence turns into another: a tuple a player.

    Every position whose word differs is altered. One that reads the same in F and M is a verb: only
    "they" changes it. It joins the nearest "they" before it (position by its non-binary word), or
    the first after it; where the sentence has none, the nearest altered word before it that is no
    pronoun of another case (her, him, their); where there is none either it is a player by itself.
    All else is a player by itself. `forms`: words by class, of equal length.

    >>> players_between({0: ["She", "has", "her", "cat"], 1: ["He", "has", "his", "cat"],
    ...                  2: ["They", "have", "their", "cat"]}, own=1, other=2)
    ((0, 1), (2,))
    """
    read = {target: [word.strip().lower() for word in words] for target, words in forms.items()}
    altered = [i for i, (a, b) in enumerate(zip(read[own], read[other], strict=True)) if a != b]
    # Alike in the female and the male form: only "they" takes another verb form.
    verbs = [i for i in altered if read[_FEMALE][i] == read[_MALE][i]]
    heads = [i for i in altered if i not in verbs]
    they = [i for i in heads if read[_NEUTRAL][i] == "they"] if verbs else []
    subjects = they or [
        i for i in heads if verbs and not {words[i] for words in read.values()} & _OTHER_CASES
    ]
    groups = {i: [i] for i in heads}
    for verb in verbs:
        before = [i for i in subjects if i < verb]
        after = [i for i in they if i > verb]
        head = before[-1] if before else after[0] if after else verb
        groups.setdefault(head, []).append(verb)
    return tuple(tuple(sorted(set(group))) for _, group in sorted(groups.items()))


def find_swaps(
    rows: pd.DataFrame, only: Collection[str] | None = None
) -> tuple[list[Swap], pd.DataFrame]:
    """Every row with every other form of its sentence, and a table (row_id, other, why) of misfits.

    `rows`: row_id, sentence_idx, target, sentence, one data set with all its forms. `only`: the
    rows to value. Raises TouchstoneError for a row with more than ten players.
    """
    swaps, left_out = [], []
    classes = sorted(rows["target"].unique())
    forms = {
        idx: dict(zip(part["target"], part["sentence"]))
        for idx, part in rows.groupby("sentence_idx")
    }
    for row in (rows if only is None else rows[rows["row_id"].isin(list(only))]).itertuples():
        of_base = forms[row.sentence_idx]
        for other in (c for c in classes if c != row.target):
            if why := _misfit(of_base, row.target, other):
                left_out.append((row.row_id, other, why))
                continue
            players = players_between(of_base, row.target, other)
            if len(players) > _MOST_PLAYERS:
                raise TouchstoneError(
                    f"row {row.row_id} has {len(players)} words to swap with its "
                    f"{_CLASSES[other]} form, which takes 2^{len(players)} sentences; at most "
                    f"{_MOST_PLAYERS} players are taken: leave the row out, or shorten it"
                )
            swaps.append(
                Swap(
                    row.row_id,
                    int(row.sentence_idx),
                    int(row.target),
                    int(other),
                    tuple(row.sentence),
                    tuple(of_base[other]),
                    players,
                )
            )
    return swaps, pd.DataFrame(left_out, columns=["row_id", "other", "why"])


def _misfit(forms: Mapping[int, Sequence[str]], own: int, other: int) -> str:
    """Why two forms cannot be swapped word by word; empty where they can."""
    needed = {_FEMALE, _MALE} | {own, other}
    if missing := [_CLASSES[target] for target in sorted(needed) if target not in forms]:
        return f"there is no {' and no '.join(missing)} form"
    return (
        "" if len({len(forms[target]) for target in needed}) == 1 else "the forms differ in length"
    )


def swap_shapley(
    model: TextModel,
    rows: pd.DataFrame,
    explained: str = "probability",
    *,
    only: Collection[str] | None = None,
    study: str = "-",
    dataset: str = "-",
    scheme: str = "-",
    seed: int = -1,
) -> SwapShapley:
    """Exact Shapley values (Shapley 1953, eq. 12) of a row's altered words in its class's score.

    The worth of a set of players is the score of the sentence in which their words stay and the
    others' come from the other form, so the values sum to score(row) minus score(other form):
    `delta` is what is missing, zero up to rounding. A player's value is spread evenly over its
    words; words that no form alters have 0. Per row one line for each other form (method "Swap
    Shapley to M") and one for their mean ("Swap Shapley"), which is complete for the mean of the
    other forms. All mixtures of all rows are scored together, each text once.
    """
    swaps, left_out = find_swaps(rows, only)
    if not swaps:
        raise TouchstoneError(
            "no row has another form of its sentence to swap words with; hand in all forms of each "
            "base sentence, of equal length"
        )
    masks = [all_masks(len(swap.players)) for swap in swaps]
    n_texts = [len(mask) for mask in masks]
    texts = [
        swap.mixture(kept)
        for swap, mask in zip(swaps, masks, strict=True)
        for kept in mask.tolist()
    ]
    targets = np.repeat([swap.target for swap in swaps], n_texts).tolist()
    # Mixtures of different directions are often one text; `text_logits` runs each once.
    logits = text_logits(model, texts)
    worths = class_score(model, targets, explained, logits.device).of_logits(logits).double()
    worth = worths.split(n_texts)
    values = [shapley_values(w, mask).numpy() for w, mask in zip(worth, masks, strict=True)]
    table = _table(swaps, values, worth).assign(dataset=dataset)
    labels = {"study": study, "dataset": dataset, "scheme": scheme, "seed": seed}
    return SwapShapley(
        _in_format(table, {"explained": explained}, labels),
        _mixtures(table, masks, texts, worths),
        table[_SWAPS],
        left_out,
    )


def _table(
    swaps: Sequence[Swap], values: Sequence[np.ndarray], worth: Sequence[Float[Tensor, "step"]]
) -> pd.DataFrame:
    """A line per swap: its players and their values, and what an explanation has of it."""
    scores = [_spread(swap, of_swap) for swap, of_swap in zip(swaps, values, strict=True)]
    return pd.DataFrame(swaps).assign(
        sentence=[list(swap.words) for swap in swaps],
        scores=scores,
        samples=[len(w) for w in worth],
        # The full coalition is the row itself, the empty one the other form.
        delta=[float(s.sum()) - float(w[-1] - w[0]) for s, w in zip(scores, worth, strict=True)],
        method=[f"Swap Shapley to {_CLASSES[swap.other]}" for swap in swaps],
        n_words=[len(swap.words) for swap in swaps],
        n_players=[len(swap.players) for swap in swaps],
        players=[[list(player) for player in swap.players] for swap in swaps],
        values=[of_swap.tolist() for of_swap in values],
    )


def _in_format(
    table: pd.DataFrame, settings: Mapping[str, Any], labels: Mapping[str, Any]
) -> pd.DataFrame:
    """A line per row and direction, and a line per row for their mean."""
    how = {
        **dict.fromkeys(("sentence_idx", "target", "sentence"), "first"),
        "samples": "sum",
        "delta": "mean",
        "scores": lambda parts: np.mean(parts.tolist(), axis=0),
    }
    mean = table.groupby("row_id", sort=False, as_index=False).agg(how)
    by_method = pd.concat([table, mean.assign(method="Swap Shapley")]).groupby("method", sort=False)
    parts = [
        in_format(
            part,
            part["scores"],
            part["delta"],
            str(name),
            settings,
            {"samples": part["samples"]},
            **labels,
        )
        for name, part in by_method
    ]
    return pd.concat(parts, ignore_index=True)


def _spread(swap: Swap, values: Float[np.ndarray, "token"]) -> Float[np.ndarray, "token"]:
    """One score a word: each player's value, evenly over its words; 0 where no word is swapped."""
    scores = np.zeros(len(swap.words))
    for player, value in zip(swap.players, values, strict=True):
        scores[list(player)] = value / len(player)
    return scores


def _mixtures(
    table: pd.DataFrame,
    masks: Sequence[Bool[Tensor, "step token"]],
    texts: Sequence[tuple[str, ...]],
    worths: Float[Tensor, "step"],
) -> pd.DataFrame:
    kept = ["".join(str(int(x)) for x in row) for mask in masks for row in mask.tolist()]
    place = table[["row_id", "sentence_idx", "target", "other"]]
    return (
        place.loc[place.index.repeat(table["samples"])]
        .assign(
            kept=kept,
            is_mixed=[len(set(digits)) == 2 for digits in kept],
            score=worths.tolist(),
            words=[list(text) for text in texts],
        )
        .reset_index(drop=True)
    )


def mixture_shares(mixtures: pd.DataFrame, margin: float = 0.01) -> pd.DataFrame:
    """What becomes of sentences that mix two forms: with NB on one side, and of F and M alone.

    outside: the share whose score lies outside of that of both pure forms by more than `margin`;
    undecided: between .1 and .9. Columns: forms, mixtures, outside, undecided.
    """
    place = ["row_id", "other"]
    pure = mixtures[~mixtures["is_mixed"]].groupby(place)["score"].agg(["min", "max"])
    mixed = mixtures[mixtures["is_mixed"]].join(pure, on=place)
    outside = (mixed["score"] < mixed["min"] - margin) | (mixed["score"] > mixed["max"] + margin)
    # The neutral class has the largest number, so the larger of the two tells.
    forms = np.where(mixed[["target", "other"]].max(axis=1) < _NEUTRAL, "F and M", "with NB")
    mixed = mixed.assign(forms=forms, outside=outside, undecided=mixed["score"].between(0.1, 0.9))
    return mixed.groupby("forms", as_index=False).agg(
        mixtures=("score", "size"), outside=("outside", "mean"), undecided=("undecided", "mean")
    )
