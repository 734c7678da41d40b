"""Captions that were judged blind: how two readings agree, and what the filter is worth by them.

The captions were drawn from two strata, those that pass the filter and those that reach its third
step and fail there; the readers saw neither. Ids and labels alone are kept, never a caption.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import beta
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportion_confint

from ...core.errors import TouchstoneError
from ...core.files import read_table

LABELS = (
    "no pronoun",
    "gendered noun",
    "several pronouns",
    "no antecedent",
    "name",
    "indefinite",
    "passes",
)
_DRAWS = 20_000  # of the two strata's shares, for the interval of the recall


def read_readings(folder: Path) -> pd.DataFrame:
    """The draw and the readings that there are.

    Args:
        folder: with `captions_draw.csv` (id; passes, yes or no; of, the size of the stratum),
            `captions_first.csv` and, once it has been made, `captions_second.csv` (id, label).

    Returns:
        id, passes (true or false), of, first and, where there is one, second.

    Raises:
        TouchstoneError: a reading does not label each caption of the draw once, by `LABELS`.
    """
    table = read_table(folder / "captions_draw.csv")
    table = table.assign(passes=table["passes"] == "yes")
    for reading in ("first", "second"):
        path = folder / f"captions_{reading}.csv"
        if not path.is_file():
            continue
        found = read_table(path)
        if sorted(found["id"]) != sorted(table["id"]):
            odd = min(set(found["id"]) ^ set(table["id"]), default=found["id"].mode()[0])
            raise TouchstoneError(
                f"{path}: {odd} has no line of its own, or is not in captions_draw.csv; write one "
                "line for each id of it"
            )
        if unknown := sorted(set(found["label"]) - set(LABELS)):
            raise TouchstoneError(
                f"{path}: there is no label {unknown[0]!r}; write one of {', '.join(LABELS)}"
            )
        table[reading] = table["id"].map(found.set_index("id")["label"])
    return table


def agreement(readings: pd.DataFrame) -> pd.DataFrame:
    """How often two readings give a caption the same label; empty where there is one reading.

    Returns:
        captions, same_label, kappa, same_verdict (passes, or not), kappa_verdict.
    """
    if "second" not in readings:
        names = ["captions", "same_label", "kappa", "same_verdict", "kappa_verdict"]
        return pd.DataFrame(columns=names)
    first, second = readings["first"], readings["second"]
    passes = first == "passes", second == "passes"
    line = {
        "captions": len(readings),
        "same_label": (first == second).mean(),
        "kappa": cohen_kappa_score(first, second),
        "same_verdict": (passes[0] == passes[1]).mean(),
        "kappa_verdict": cohen_kappa_score(*passes),
    }
    return pd.DataFrame([line])


def judge_filter(readings: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Precision and recall of the filter by each reading, with 95 % intervals.

    The recall is among captions that reach the third step: the share of those that a reader lets
    pass, weighted by the sizes of the strata. The interval of the precision is Wilson's; that of
    the recall comes from draws of both strata's shares, each with Jeffreys' prior.

    Returns:
        reading (first, second; both: where both let it pass), drawn, right (of those that passed
        the filter), missed (of those that did not), precision and recall, each with low and high.
    """
    names = [name for name in ("first", "second") if name in readings]
    verdicts = {name: readings[name] == "passes" for name in names}
    if len(names) == 2:
        verdicts["both"] = verdicts["first"] & verdicts["second"]
    kept = readings["passes"]
    sizes = [readings.loc[part, "of"].iloc[0] for part in (kept, ~kept)]
    rng, lines = np.random.default_rng(seed), []
    for name, verdict in verdicts.items():
        right, missed = int(verdict[kept].sum()), int(verdict[~kept].sum())
        n, n_other = int(kept.sum()), int((~kept).sum())
        low, high = proportion_confint(right, n, method="wilson")
        shares = [
            beta.rvs(k + 0.5, of - k + 0.5, size=_DRAWS, random_state=rng)
            for k, of in ((right, n), (missed, n_other))
        ]
        drawn = _recall(*shares, *sizes)
        lines.append(
            {
                "reading": name,
                "drawn": n + n_other,
                "right": right,
                "missed": missed,
                "precision": right / n,
                "precision_low": low,
                "precision_high": high,
                "recall": float(_recall(right / n, missed / n_other, *sizes)),
                "recall_low": float(np.quantile(drawn, 0.025)),
                "recall_high": float(np.quantile(drawn, 0.975)),
            }
        )
    return pd.DataFrame(lines)


def _recall(right: float, missed: float, n_kept: int, n_other: int) -> float:
    """The share of the captions to be found that is found.

    >>> round(_recall(0.9, 0.01, 800, 7600), 3)
    0.905
    """
    found = right * n_kept
    return found / (found + missed * n_other)
