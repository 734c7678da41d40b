"""How fast edit pairs are built and concept effects estimated, beside plain ways of doing the same.

    python tools/benchmarks/effects.py            a minute or two; needs the published CEBaB (python -m lib.studies.cebab.reviews)

One process, one thread, processor time of the process; the arms take turns, and the ratio is that
of the fastest rounds. The plain arms are written for the comparison: the pairs by a loop over the
groups of a pandas table, ConceptSHAP's 16 layers by 16 fits of the same loss. Both arms must find
the same. The models' answers are drawn at random, since no time here depends on them. The table is
written to outputs/benchmarks/effects.csv.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from arms import Arm, take_turns
from scipy.special import softmax

from lib.core.errors import TouchstoneError
from lib.core.files import save_csv
from lib.core.paths import outputs_root
from lib.core.seeds import set_up
from lib.studies.cebab.directions import fit_subsets, subsets
from lib.studies.cebab.pairs import edit_pairs, pairs_by_loop
from lib.studies.cebab.questions import Questions, Texts, ask
from lib.studies.cebab.registry import EXPLAINERS, explainer_named
from lib.studies.cebab.reviews import ASPECTS, VALUES, fetch_cebab, read_cebab, train_set

N_CLASSES = 5
WEIGHT_FREE = [name for name, entry in EXPLAINERS.items() if not entry.needs]
# how far the answers of a layer may be apart: the same convex loss, joined to others or alone
SAME = 0.005


def compare(
    line: str,
    plain: Callable[[], Any] | None,
    ours: Callable[[], Any],
    same: Callable[[Any, Any], bool],
    n: int,
    rounds: int,
) -> dict[str, Any]:
    """A row of the table: arms take turns and must agree; without a plain arm, our time alone."""
    arms = {"plain": Arm(plain), "ours": Arm(ours)} if plain else {"ours": Arm(ours)}
    take_turns(arms, rounds)
    mine, theirs = arms["ours"], arms.get("plain")
    if theirs and not same(theirs.found, mine.found):
        raise TouchstoneError(
            f"{line}: the two arms found different things; neither time means anything"
        )
    slow = theirs.best if theirs else float("nan")
    return {
        "line": line,
        "items": n,
        "rounds": rounds,
        "plain_s": slow,
        "ours_s": mine.best,
        "ratio": slow / mine.best,
        "ratio_low": slow / max(mine.seconds),
        "load": os.getloadavg()[0],
    }


def pair_lines(texts: pd.DataFrame) -> list[dict[str, Any]]:
    """Building the edit pairs of the test split and of the inclusive train set."""
    parts = {
        "test": texts[texts["split"] == "test"],
        "train (inclusive)": train_set(texts, "inclusive"),
    }
    return [
        compare(
            f"edit pairs, {name}",
            lambda part=part: pairs_by_loop(part),
            lambda part=part: edit_pairs(part),
            same_pairs,
            len(edit_pairs(part)),
            3 if name == "test" else 2,
        )
        for name, part in parts.items()
    ]


def same_pairs(one: pd.DataFrame, two: pd.DataFrame) -> bool:
    """The same pairs, in whatever order."""
    keys = list(one)
    return (
        one.astype(str)
        .sort_values(keys, ignore_index=True)
        .equals(two.astype(str).sort_values(keys, ignore_index=True))
    )


def drawn_texts(texts: pd.DataFrame, generator: np.random.Generator) -> Texts:
    """Texts with their labels, and answers of a model that was never there."""
    gold = texts[list(ASPECTS)].to_numpy(object)
    predicted = np.where(np.isin(gold.astype(str), VALUES), gold, "unknown")
    return Texts(
        texts["text_id"].to_numpy(object),
        gold,
        predicted,
        generator.dirichlet(np.ones(N_CLASSES), len(texts)),
        is_original=texts["is_original"].to_numpy(bool),
    )


def explainer_lines(train: Texts, questions: Questions) -> list[dict[str, Any]]:
    """Every explainer without weights, fitted and asked about all test pairs; all together."""

    def asked(names: list[str]) -> Callable[[], list[np.ndarray]]:
        return lambda: [
            explainer_named(name).make().fit(train, None, 0).effects(questions) for name in names
        ]

    whole = {name: [name] for name in WEIGHT_FREE} | {
        f"all {len(WEIGHT_FREE)} explainers without weights": WEIGHT_FREE
    }
    return [
        compare(line, None, asked(names), lambda a, b: True, len(questions), 2)
        for line, names in whole.items()
    ]


def one_layer(
    places: np.ndarray, answers: np.ndarray, decay: float = 1e-4
) -> tuple[np.ndarray, np.ndarray]:
    """A linear layer and softmax that give the answers from the places: the loss and the optimiser
    of `fit_subsets`, for one set.
    """
    x, y = torch.tensor(places), torch.tensor(answers)
    weight = torch.zeros(x.shape[1], y.shape[1], dtype=torch.float64, requires_grad=True)
    bias = y.mean(0).clamp(min=1e-6).log().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [weight, bias], max_iter=200, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
    )

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = -(y * (x @ weight + bias).log_softmax(1)).sum(1).mean() + decay * (weight**2).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    return weight.detach().numpy(), bias.detach().numpy()


def sixteen_fits(places: np.ndarray, answers: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The layers of ConceptSHAP one by one: for each set of concepts a fit to its own columns."""
    return [one_layer(places[:, list(chosen)], answers) for chosen in subsets()]


def shap_line(train: Texts, generator: np.random.Generator) -> dict[str, Any]:
    """ConceptSHAP's 16 layers, fitted to the places of train texts along four concept vectors."""
    places = generator.normal(size=(len(train), len(ASPECTS)))

    def same(one: list[tuple[np.ndarray, np.ndarray]], two: tuple[np.ndarray, np.ndarray]) -> bool:
        answers = [
            softmax(places[:, list(chosen)] @ w + b, axis=1)
            for chosen, (w, b) in zip(subsets(), one, strict=True)
        ]
        return all(
            np.allclose(p, softmax(places @ two[0][i] + two[1][i], axis=1), atol=SAME)
            for i, p in enumerate(answers)
        )

    return compare(
        "ConceptSHAP, 16 subsets",
        lambda: sixteen_fits(places, train.probabilities),
        lambda: fit_subsets(places, train.probabilities),
        same,
        len(train),
        2,
    )


def main() -> pd.DataFrame:
    """Measure all lines, print them, write the table and return it."""
    set_up(0, n_threads=1)
    texts, generator = read_cebab(fetch_cebab()), np.random.default_rng(0)
    test = texts[texts["split"] == "test"]
    train = drawn_texts(train_set(texts, "exclusive"), generator)
    questions = ask(edit_pairs(test), drawn_texts(test, generator))
    table = pd.DataFrame(
        [*pair_lines(texts), *explainer_lines(train, questions), shap_line(train, generator)]
    )
    save_csv(table, outputs_root() / "benchmarks" / "effects.csv")
    print(table.round(4).to_string(index=False))
    return table


if __name__ == "__main__":
    main()
