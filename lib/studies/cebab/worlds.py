"""A world in which the truth is known: reviews with counterfactual edits, written by a structural causal model.

quality -> four aspects -> rating, and aspects -> text. The restaurant's quality q is the confounder: with `confounding` above
0 it makes the aspects of one restaurant alike. A reviewer's leniency and mood are the noise of the rating; no text tells them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from jaxtyping import Float
from scipy.stats import norm

from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.studies.cebab.reviews import ASPECTS, SPLITS, VALUES

CUTS = np.array([1.5, 2.5, 3.5, 4.5])  # between two ratings
FORMS = 30  # the fewest wordings of an aspect and value
PARTS = {
    "train": slice(0, 20),
    "dev": slice(20, 24),
    "test": slice(24, None),
}  # of the wordings of an aspect and value
Wordings = dict[str, Any]


@dataclass(frozen=True)
class World:
    """The structural equations.

    positive_a = (confounding * q + sqrt(1 - confounding^2) * e_a > -lean_a), mentioned_a by chance, so the share of each value
    does not depend on `confounding`; latent = base + sum of effect_a(value_a) + noise * e; rating = latent, rounded, in 1..5.
    `effect`: of Negative and of Positive, in stars, against unknown.
    """

    confounding: float
    base: float = 3.1
    noise: float = 0.4
    effect: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: {
            "food": (-1.1, 0.9),
            "service": (-0.9, 0.6),
            "ambiance": (-0.6, 0.5),
            "noise": (-0.5, 0.3),
        }
    )
    mention: Mapping[str, float] = field(
        default_factory=lambda: {"food": 0.85, "service": 0.65, "ambiance": 0.5, "noise": 0.4}
    )
    lean: Mapping[str, float] = field(
        default_factory=lambda: {"food": 0.1, "service": 0.0, "ambiance": 0.1, "noise": -0.2}
    )

    def __post_init__(self) -> None:
        if not 0 <= self.confounding < 1:
            raise TouchstoneError(
                f"confounding is {self.confounding}; write a number from 0 to below 1"
            )

    def effects_of(self, aspect: str) -> dict[str, float]:
        """What each value of an aspect adds to the latent rating, in stars."""
        return dict(zip(VALUES, (self.effect[aspect][0], 0.0, self.effect[aspect][1]), strict=True))

    def rating_probabilities(self, values: pd.DataFrame) -> Float[np.ndarray, "batch class"]:
        """P(rating | do(aspects)): what a reader who knows the world predicts from a text. `values`: the aspects' columns."""
        latent = self.base + np.sum(
            [values[a].map(self.effects_of(a)).to_numpy(float) for a in ASPECTS], axis=0
        )
        below = norm.cdf((CUTS - latent[:, None]) / self.noise)
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def joint(self, n_points: int = 60) -> pd.DataFrame:
        """All 81 combinations of values with their probability, integrated over quality (Gauss-Hermite)."""
        points, weights = np.polynomial.hermite_e.hermegauss(n_points)
        values = pd.DataFrame(list(product(VALUES, repeat=len(ASPECTS))), columns=list(ASPECTS))
        given = np.ones((len(values), n_points))
        for aspect in ASPECTS:
            positive = norm.cdf(
                (self.lean[aspect] + self.confounding * points) / np.sqrt(1 - self.confounding**2)
            )
            said = self.mention[aspect]
            by_value = dict(
                zip(
                    VALUES,
                    (said * (1 - positive), np.full(n_points, 1 - said), said * positive),
                    strict=True,
                )
            )
            given *= np.stack([by_value[value] for value in values[aspect]])
        return values.assign(probability=given @ weights / weights.sum())

    def true_effect(
        self, values: pd.DataFrame, aspect: str, new: str
    ) -> Float[np.ndarray, "batch class"]:
        """The world's effect on P(rating) of setting an aspect to `new`, all else equal, for each row of aspect values."""
        return self.rating_probabilities(
            values.assign(**{aspect: new})
        ) - self.rating_probabilities(values)


def average_effects(world: World) -> pd.DataFrame:
    """Per aspect and direction, in stars: the true average effect, and what conditional means converge to (CONEXP).

    Both exact, from the joint distribution; they agree where nothing confounds. Columns: aspect, old, new, true, conexp.
    """
    joint = world.joint()
    stars = world.rating_probabilities(joint) @ np.arange(1, 6)
    rows = []
    for aspect, old, new in product(ASPECTS, VALUES, VALUES):
        if old != new:
            do = {
                v: joint["probability"]
                @ (world.rating_probabilities(joint.assign(**{aspect: v})) @ np.arange(1, 6))
                for v in (old, new)
            }
            see = {
                v: np.average(
                    stars[joint[aspect] == v], weights=joint.loc[joint[aspect] == v, "probability"]
                )
                for v in (old, new)
            }
            rows.append((aspect, old, new, do[new] - do[old], see[new] - see[old]))
    return pd.DataFrame(rows, columns=["aspect", "old", "new", "true", "conexp"])


def read_wordings(path: Path | str) -> Wordings:
    """Read and check the clauses: per aspect subjects and at least 30 distinct predicates per value, and fillers."""
    wordings: Wordings = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    for aspect in ASPECTS:
        for value in VALUES:
            forms = wordings.get(aspect, {}).get(value, [])
            if len(set(forms)) < FORMS or len(set(forms)) < len(forms):
                raise TouchstoneError(
                    f"{path}: {aspect}, {value} has {len(set(forms))} different wordings of {len(forms)}; "
                    f"write at least {FORMS}, none of them twice"
                )
    parts = wordings_by_split(wordings)
    for split in SPLITS[1:]:
        if shared := set(parts["train"]) & set(parts[split]):
            raise TouchstoneError(
                f"{path}: {min(shared)!r} is a wording of train and of {split}; put another one in its place"
            )
    return wordings


def generate_reviews(
    world: World, wordings: Wordings, n_originals: Mapping[str, int], n_edits: int, seed: int
) -> pd.DataFrame:
    """Originals and edits in the columns of `lib.studies.cebab.reviews.read_cebab`; the same seed gives the same people in every world.

    Each original gets `n_edits` edits with different (aspect, goal), the last one written twice by different editors.
    """
    rows: list[dict[str, Any]] = []
    for split in SPLITS:
        for number in range(n_originals[split]):
            rows += _group(world, wordings, split, f"{split}{number:04d}", n_edits, seed)
    texts = pd.DataFrame(rows)
    pick = np.random.default_rng(seed_for("exclusive", seed))
    chosen = (
        texts[texts["split"] == "train"]
        .groupby("group", sort=False)["text_id"]
        .agg(lambda ids: ids.iloc[pick.integers(len(ids))])
    )
    in_train = texts["split"] == "train"
    return texts.assign(
        in_exclusive=texts["text_id"].isin(chosen) & in_train,
        in_observational=texts["is_original"] & in_train,
    )


def _group(
    world: World, wordings: Wordings, split: str, group: str, n_edits: int, seed: int
) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed_for("group", group, seed))
    quality, mood = rng.normal(), rng.normal()
    values = {}
    for aspect in ASPECTS:
        own, said = rng.normal(), rng.random() < world.mention[aspect]
        positive = (
            world.confounding * quality + np.sqrt(1 - world.confounding**2) * own
            > -world.lean[aspect]
        )
        values[aspect] = ("Positive" if positive else "Negative") if said else "unknown"
    clauses = {aspect: _clause(wordings, aspect, values[aspect], split, rng) for aspect in ASPECTS}
    frame = _frame(wordings, rng)
    row = {"group": group, "split": split}
    rows = [
        row
        | _text(world, frame, clauses, values, mood)
        | {
            "text_id": f"{group}_000000",
            "is_original": True,
            "edit_goal": None,
            "edit_type": None,
            "editor": None,
        }
    ]
    goals = [(aspect, value) for aspect in ASPECTS for value in VALUES if value != values[aspect]]
    order = [goals[i] for i in rng.permutation(len(goals))[:n_edits]]
    for k, (aspect, goal) in enumerate([*order, order[-1]], start=1):
        writer = np.random.default_rng(seed_for("editor", group, k, seed))
        edited, changed = (
            values | {aspect: goal},
            clauses | {aspect: _clause(wordings, aspect, goal, split, writer)},
        )
        rows.append(
            row
            | _text(world, frame, changed, edited, mood)
            | {
                "text_id": f"{group}_{k:06d}",
                "is_original": False,
                "edit_goal": goal,
                "edit_type": aspect,
                "editor": f"e{k}",
            }
        )
    return rows


def _clause(
    wordings: Wordings, aspect: str, value: str, split: str, rng: np.random.Generator
) -> str:
    """A subject with a predicate of this split; nothing, in three of four cases, where the value is unknown."""
    if value == "unknown" and rng.random() < 0.75:
        return ""
    forms = wordings[aspect][value]
    part = forms[PARTS[split]]
    return f"{rng.choice(wordings[aspect]['subjects'])} {rng.choice(part)}"


def _frame(wordings: Wordings, rng: np.random.Generator) -> dict[str, Any]:
    """What the edits of a review share: the order of its clauses, its fillers, how clauses are joined, how it ends."""
    fillers = list(rng.permutation(wordings["fillers"]))
    return {
        "order": list(rng.permutation(list(ASPECTS))),
        "fillers": fillers[1 : 1 + rng.integers(0, 3)],
        "rest": fillers[0],
        "joined": rng.random(3) < 0.4,
        "end": rng.choice([".", ".", "!", ""]),
    }


def _text(
    world: World,
    frame: Mapping[str, Any],
    clauses: Mapping[str, str],
    values: Mapping[str, str],
    mood: float,
) -> dict[str, Any]:
    """One text with its labels; the reviewer's mood is the same in all texts of a group."""
    said = [clauses[aspect] for aspect in frame["order"] if clauses[aspect]]
    sentences: list[str] = list(frame["fillers"][:1])
    for i, clause in enumerate(said):
        if i and frame["joined"][i - 1]:
            sentences[-1] += f" and {clause}"
        else:
            sentences.append(clause)
    sentences += frame["fillers"][1:] if sentences else [frame["rest"]]
    text = ". ".join(s[0].upper() + s[1:] for s in sentences) + frame["end"]
    latent = world.base + world.noise * mood + sum(world.effects_of(a)[values[a]] for a in ASPECTS)
    return {"text": text, "rating": int(np.searchsorted(CUTS, latent) + 1), **values}


def wordings_by_split(wordings: Wordings) -> dict[str, list[str]]:
    """All predicates that a split may use."""
    return {
        split: [form for a in ASPECTS for v in VALUES for form in wordings[a][v][part]]
        for split, part in PARTS.items()
    }
