"""A world whose truth is known: reviews and counterfactual edits from a structural causal model.

quality -> four aspects -> rating, and aspects -> text. The restaurant's quality q is the
confounder: with `confounding` above 0 it makes the aspects of one restaurant alike. A reviewer's
leniency and mood are the noise of the rating; no text tells them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import norm

from ...core.errors import TouchstoneError
from ...core.files import read_yaml
from ...core.seeds import seed_for
from .reviews import ASPECTS, SPLITS, VALUES

_CUTS = np.array([1.5, 2.5, 3.5, 4.5])  # between two ratings
_N_FORMS = 30  # the fewest wordings of an aspect and value
_PARTS = {"train": slice(0, 20), "dev": slice(20, 24), "test": slice(24, None)}  # of these wordings
Wordings = dict[str, Any]


@dataclass(frozen=True)
class World:
    """The structural equations.

    positive_a = (confounding * q + sqrt(1 - confounding^2) * e_a > -lean_a), mentioned_a by chance,
    so the share of each value does not depend on `confounding`; latent = base + sum of
    effect_a(value_a) + noise * e; rating = latent, rounded, in 1..5.

    Args:
        confounding: gamma, from 0 to below 1.
        base: the latent rating of a text that mentions nothing, in stars.
        noise: the spread of a reviewer's mood, in stars.
        effect: of Negative and of Positive, in stars, against unknown.
        mention: how likely an aspect is mentioned.
        lean: how much an aspect leans to Positive, in standard deviations.
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
        negative, positive = self.effect[aspect]
        return {"Negative": negative, "unknown": 0.0, "Positive": positive}

    def rating_probabilities(self, values: pd.DataFrame) -> Float[np.ndarray, "batch class"]:
        """P(rating | do(aspects)): what a reader who knows the world predicts from a text.

        Args:
            values: a column for each of ASPECTS.
        """
        added = [values[a].map(self.effects_of(a)).to_numpy(float) for a in ASPECTS]
        latent = self.base + np.sum(added, axis=0)
        below = norm.cdf((_CUTS - latent[:, None]) / self.noise)
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def joint(self, n_points: int = 60) -> pd.DataFrame:
        """All 81 combinations of values with their `probability`, integrated over quality.

        Args:
            n_points: of the Gauss-Hermite quadrature.
        """
        # The kind of Hermite polynomials whose weight is that of a normal distribution.
        points, weights = np.polynomial.hermite_e.hermegauss(n_points)
        values = pd.DataFrame(list(product(VALUES, repeat=len(ASPECTS))), columns=list(ASPECTS))
        given = np.ones((len(values), n_points))  # P(values | quality)
        for aspect in ASPECTS:
            positive = norm.cdf(
                (self.lean[aspect] + self.confounding * points) / np.sqrt(1 - self.confounding**2)
            )
            said = self.mention[aspect]
            by_value = {
                "Negative": said * (1 - positive),
                "unknown": np.full(n_points, 1 - said),
                "Positive": said * positive,
            }
            given *= np.stack([by_value[value] for value in values[aspect]])
        return values.assign(probability=given @ weights / weights.sum())

    def true_effect(
        self, values: pd.DataFrame, aspect: str, new: str
    ) -> Float[np.ndarray, "batch class"]:
        """What setting an aspect to `new` does to P(rating), all else equal, row by row."""
        changed = values.assign(**{aspect: new})
        return self.rating_probabilities(changed) - self.rating_probabilities(values)


def average_effects(world: World) -> pd.DataFrame:
    """Per aspect and direction: the true average effect, and what conditional means converge to.

    Both exact, from the joint distribution; they agree where nothing confounds.

    Returns:
        aspect, old, new; true and conexp, in stars.
    """
    joint, stars_of = world.joint(), np.arange(1, 6)
    stars = world.rating_probabilities(joint) @ stars_of
    means = {}  # E[stars | do(value)] and E[stars | value]
    for aspect, value in product(ASPECTS, VALUES):
        here = joint[aspect] == value
        forced = world.rating_probabilities(joint.assign(**{aspect: value})) @ stars_of
        seen = np.average(stars[here], weights=joint.loc[here, "probability"])
        means[aspect, value] = np.array([joint["probability"] @ forced, seen])
    rows = [
        (aspect, old, new, *(means[aspect, new] - means[aspect, old]))
        for aspect, (old, new) in product(ASPECTS, permutations(VALUES, 2))
    ]
    return pd.DataFrame(rows, columns=["aspect", "old", "new", "true", "conexp"])


def read_wordings(path: Path | str) -> Wordings:
    """Read and check the clauses: subjects of each aspect, predicates of each value, fillers.

    Raises:
        TouchstoneError: a value has fewer than 30 wordings or one of them twice, or a split shares
            one with train.
    """
    wordings: Wordings = read_yaml(path)
    for aspect, value in product(ASPECTS, (*VALUES, "subjects")):
        parts = wordings.get(aspect, {})
        forms = parts.get(value, []) if isinstance(parts, dict) else parts
        if not isinstance(forms, list) or not all(isinstance(form, str) for form in forms):
            raise TouchstoneError(f"{path}: {aspect}, {value} is no list of texts; write `- ...`")
        n_different, needed = len(set(forms)), 1 if value == "subjects" else _N_FORMS
        if n_different < needed or n_different < len(forms):
            raise TouchstoneError(
                f"{path}: {aspect}, {value} has {n_different} different wordings of {len(forms)}; "
                f"write at least {needed}, none of them twice"
            )
    parts = wordings_by_split(wordings)
    for split in SPLITS[1:]:
        if shared := set(parts["train"]) & set(parts[split]):
            raise TouchstoneError(
                f"{path}: {min(shared)!r} is a wording of train and of {split}; put another one in "
                "its place"
            )
    return wordings


def wordings_by_split(wordings: Wordings) -> dict[str, list[str]]:
    """All predicates that a split may use."""
    return {
        split: [form for a in ASPECTS for v in VALUES for form in wordings[a][v][part]]
        for split, part in _PARTS.items()
    }


def generate_reviews(
    world: World, wordings: Wordings, n_originals: Mapping[str, int], n_edits: int, seed: int
) -> pd.DataFrame:
    """Originals and edits in the columns of `lib.studies.cebab.reviews.read_cebab`.

    The same seed gives the same people in every world.

    Args:
        world: the structural equations.
        wordings: the clauses (`read_wordings`).
        n_originals: for each of SPLITS.
        n_edits: different (aspect, goal) for each original; the last one is written twice, by
            different editors.
        seed: who the reviewers are and what they write.
    """
    texts = pd.DataFrame(
        row
        for split in SPLITS
        for number in range(n_originals[split])
        for row in _group(world, wordings, split, f"{split}{number:04d}", n_edits, seed)
    )
    pick = np.random.default_rng(seed_for("exclusive", seed))
    in_train = texts["split"] == "train"
    by_group = texts[in_train].groupby("group", sort=False)["text_id"]
    chosen = by_group.agg(lambda ids: ids.iloc[pick.integers(len(ids))])
    return texts.assign(
        in_exclusive=texts["text_id"].isin(chosen) & in_train,
        in_observational=texts["is_original"] & in_train,
    )


def _group(
    world: World, wordings: Wordings, split: str, group: str, n_edits: int, seed: int
) -> list[dict[str, Any]]:
    """One review and its edits; the reviewer's mood is the same in all of them."""
    rng = np.random.default_rng(seed_for("group", group, seed))
    quality, mood = rng.normal(), rng.normal()
    values = {}
    for aspect in ASPECTS:
        chance, is_said = rng.normal(), rng.random() < world.mention[aspect]
        # Its variance is one for every confounding, so the shares of the values stay.
        liking = world.confounding * quality + np.sqrt(1 - world.confounding**2) * chance
        judgement = "Positive" if liking > -world.lean[aspect] else "Negative"
        values[aspect] = judgement if is_said else "unknown"
    clauses = {aspect: _clause(wordings, aspect, values[aspect], split, rng) for aspect in ASPECTS}
    frame = _frame(wordings, rng)
    goals = [(a, value) for a, value in product(ASPECTS, VALUES) if value != values[a]]
    order = [goals[i] for i in rng.permutation(len(goals))[:n_edits]]
    rows = []
    # The last question goes to two editors: how these differ nobody can foresee.
    for k, (aspect, goal) in enumerate([(None, None), *order, order[-1]]):
        edited, said = dict(values), dict(clauses)
        if aspect is not None:
            # A stream for each editor: what one writes moves no word of another.
            writer = np.random.default_rng(seed_for("editor", group, k, seed))
            edited[aspect], said[aspect] = goal, _clause(wordings, aspect, goal, split, writer)
        added = sum(world.effects_of(a)[edited[a]] for a in ASPECTS)
        latent = world.base + world.noise * mood + added
        rows.append(
            {
                "group": group,
                "split": split,
                "text": _text(frame, said),
                "rating": int(np.searchsorted(_CUTS, latent) + 1),
                **edited,
                "text_id": f"{group}_{k:06d}",
                "is_original": k == 0,
                "edit_goal": goal,
                "edit_type": aspect,
                "editor": f"e{k}" if k else None,
            }
        )
    return rows


def _clause(
    wordings: Wordings, aspect: str, value: str, split: str, rng: np.random.Generator
) -> str:
    """A subject with a predicate of this split; nothing, in three of four cases, where unknown."""
    if value == "unknown" and rng.random() < 0.75:
        return ""
    predicates = wordings[aspect][value][_PARTS[split]]
    return f"{rng.choice(wordings[aspect]['subjects'])} {rng.choice(predicates)}"


def _frame(wordings: Wordings, rng: np.random.Generator) -> dict[str, Any]:
    """What the edits of a review share: the order of its clauses, fillers, joints and the end."""
    fillers = list(rng.permutation(wordings["fillers"]))
    return {
        "order": list(rng.permutation(list(ASPECTS))),
        "fillers": fillers[1 : 1 + rng.integers(0, 3)],
        "rest": fillers[0],
        "joined": rng.random(3) < 0.4,
        "end": rng.choice([".", ".", "!", ""]),
    }


def _text(frame: Mapping[str, Any], clauses: Mapping[str, str]) -> str:
    """The clauses in a review's frame."""
    said = [clauses[aspect] for aspect in frame["order"] if clauses[aspect]]
    sentences: list[str] = list(frame["fillers"][:1])
    for i, clause in enumerate(said):
        if i and frame["joined"][i - 1]:
            sentences[-1] += f" and {clause}"
        else:
            sentences.append(clause)
    sentences += frame["fillers"][1:] if sentences else [frame["rest"]]
    return ". ".join(s[0].upper() + s[1:] for s in sentences) + frame["end"]
