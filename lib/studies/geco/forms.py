"""The female and the male form of a base sentence side by side: their words, their predictions,
their explanations.

The forms are told apart by their class: 0 is female, 1 male.
"""

from typing import Any

import numpy as np
import pandas as pd

from ...metrics.mass_accuracy import padded, ratio
from ...stats import clustered_wilcoxon, estimates_of, holm
from .summaries import GROUP, in_groups

_FEMALE, _MALE = 0, 1
_MODEL = ["dataset", "scheme", "seed"]


def without_verbs(rows: pd.DataFrame) -> list[list[int]]:
    """The ground-truth masks without the positions that read the same in the male and the female
    form.

    GECO's mask marks every position that differs between any two forms, so the verb of "She
    sings / He sings / They sing" is ground truth in all three, though it tells F and M apart in
    none. A row that cannot be aligned, since its F or M form is missing or of another length,
    gets an empty mask, and with it undefined measures.

    Args:
        rows: sentence_idx, target, sentence, ground_truth of one data set.
    """
    forms = {
        (idx, target): [word.strip().lower() for word in sentence]
        for idx, target, sentence in zip(rows["sentence_idx"], rows["target"], rows["sentence"])
    }
    masks = []
    for idx, mask in zip(rows["sentence_idx"], rows["ground_truth"]):
        female, male = (forms.get((idx, target), []) for target in (_FEMALE, _MALE))
        is_aligned = len(female) == len(male) == len(mask)
        aligned = zip(mask, female, male) if is_aligned else zip(mask, mask, mask)
        masks.append([int(m and f != g) for m, f, g in aligned])
    return masks


def pair_forms(predictions: pd.DataFrame) -> pd.DataFrame:
    """The predictions on the two forms of each base sentence, per model and seed (GECOBench v1,
    section 3.2).

    Args:
        predictions: dataset, scheme, seed, sentence_idx, target, predicted, p_F, p_M.

    Returns:
        dataset, scheme, seed, sentence_idx, row_id (the base sentence), percent (100 (P(F | F
        row) - P(M | M row)), the prediction difference), absolute_difference (its size as a
        share), male_minus_female (right on the male form minus right on the female form).
    """
    keys = [*_MODEL, "sentence_idx"]
    female, male = (predictions[predictions["target"] == form] for form in (_FEMALE, _MALE))
    pairs = female.merge(male, on=keys, suffixes=("_female", "_male"))
    percent = 100 * (pairs["p_F_female"] - pairs["p_M_male"])
    right_female, right_male = (
        (pairs[f"predicted_{form}"] == pairs[f"target_{form}"]).astype(float)
        for form in ("female", "male")
    )
    return pairs[keys].assign(
        row_id=pairs["sentence_idx"].astype(str),
        percent=percent,
        absolute_difference=percent.abs() / 100,
        male_minus_female=right_male - right_female,
    )


def form_differences(explanations: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Attribution of a word in the female minus in the male form, averaged per sentence
    (GECOBench v1, Figure 7).

    Attributions are absolute and sum to 1 within a form, so the mean over all words is 0 by
    construction: what the ground-truth words lose, the others gain. Sentences that lack a form,
    or whose forms differ in length, cannot be aligned and are left out.

    Args:
        explanations: in the explanation format.
        rows: dataset, row_id, ground_truth.

    Returns:
        dataset, scheme, seed, method, sentence_idx, truth_words, other_words, all_words (means
        over these words), absolute (the mean size over ground-truth words), row_id (the base
        sentence).
    """
    keys = [*_MODEL, "method", "sentence_idx"]
    truth = rows[["dataset", "row_id", "ground_truth"]]
    female, male = (explanations[explanations["target"] == form] for form in (_FEMALE, _MALE))
    pairs = female.merge(truth, on=["dataset", "row_id"])
    pairs = pairs.merge(male[[*keys, "scores"]], on=keys, suffixes=("", "_male"))
    # word by word can be compared only where both have as many words
    pairs = pairs[pairs["scores"].map(len) == pairs["scores_male"].map(len)].reset_index(drop=True)
    width = max(map(len, pairs["scores"]), default=1)
    mask = padded(pairs["ground_truth"], width)  # (sentences, words)
    gap = _shares(padded(pairs["scores"], width)) - _shares(padded(pairs["scores_male"], width))
    # unknown: padding, and forms without any attribution
    known, gap = ~np.isnan(gap), np.nan_to_num(gap)
    chosen = {
        "truth_words": (gap, mask == 1),
        "other_words": (gap, mask == 0),
        "all_words": (gap, known),
        "absolute": (np.abs(gap), mask == 1),
    }
    means = {
        name: ratio(np.sum(values * words * known, axis=1), np.sum(words & known, axis=1))
        for name, (values, words) in chosen.items()
    }
    return pairs[keys].assign(**means, row_id=pairs["sentence_idx"].astype(str))


def summarise_forms(differences: pd.DataFrame, groups: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Attribution differences between the forms, with intervals, and a test on the ground-truth
    words.

    Args:
        differences: from `form_differences`.
        groups: the dataset, scheme and method of every group; one without rows has n = 0 and no
            values.
        how: n_bootstrap, alpha and seed of `lib.stats.estimate`.

    Returns:
        Four lines per group, of the words "all", "truth", "other" and of "absolute", the size
        over ground-truth words: dataset, scheme, method, words, difference, low, high, n,
        n_sentences, n_seeds, p and p_holm (of the ground-truth words, over base sentences).
    """
    names = {"all_words": "all", "truth_words": "truth", "other_words": "other"}
    table = estimates_of(differences, GROUP, [*names, "absolute"], **how)
    table = table.drop(columns=["standard_error", "df"]).rename(columns={"estimate": "difference"})
    table = table.assign(words=table.pop("measure").replace(names))
    tests = pd.DataFrame(
        [
            (*key, clustered_wilcoxon(part, "truth_words").p)
            for key, part in differences.groupby(GROUP)
        ],
        columns=[*GROUP, "p"],
    )
    tests["p_holm"] = holm(tests["p"])
    words = pd.Series([*names.values(), "absolute"], name="words")
    cells = groups[GROUP].merge(words, how="cross")
    return in_groups(cells, table).merge(tests, on=GROUP, how="left")


def _shares(scores: np.ndarray) -> np.ndarray:
    size = np.abs(scores)
    return ratio(size, np.nansum(size, axis=-1, keepdims=True))
