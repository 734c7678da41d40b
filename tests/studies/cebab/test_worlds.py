from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.studies.cebab.pairs import edit_pairs
from lib.studies.cebab.reviews import ASPECTS, VALUES, check_texts
from lib.studies.cebab.worlds import (
    World,
    average_effects,
    generate_reviews,
    read_wordings,
    wordings_by_split,
)

WORDINGS = material("cebab") / "wordings.yaml"
SIZES = {"train": 60, "dev": 10, "test": 20}


@pytest.fixture(scope="module")
def texts() -> pd.DataFrame:
    return generate_reviews(World(0.8), read_wordings(WORDINGS), SIZES, n_edits=4, seed=3)


def test_the_shares_of_values_do_not_depend_on_confounding() -> None:
    shares = [
        World(c).joint().groupby(a)["probability"].sum()
        for c in (0.0, 0.6, 0.9)
        for a in ("service",)
    ]
    assert np.allclose(shares[0], shares[1]) and np.allclose(shares[0], shares[2])
    assert shares[0]["unknown"] == pytest.approx(0.35)
    assert shares[0]["Positive"] == pytest.approx(0.65 * norm.cdf(0.0))


def test_conditional_means_are_right_without_confounding_and_wrong_with_it() -> None:
    free, confounded = average_effects(World(0.0)), average_effects(World(0.8))
    assert np.allclose(free["true"], free["conexp"])
    opposite = confounded.query("old == 'Negative' and new == 'Positive'")
    assert (opposite["conexp"] > opposite["true"] + 0.5).all()


def test_the_joint_agrees_with_a_simulation() -> None:
    world, rng = World(0.7), np.random.default_rng(0)
    q, own = rng.normal(size=200_000), rng.normal(size=(200_000, 2))
    said = rng.random((200_000, 2)) < [world.mention["food"], world.mention["noise"]]
    positive = 0.7 * q[:, None] + np.sqrt(1 - 0.49) * own > [
        -world.lean["food"],
        -world.lean["noise"],
    ]
    both = (said & positive).all(1).mean()
    joint = world.joint()
    assert joint.loc[
        (joint["food"] == "Positive") & (joint["noise"] == "Positive"), "probability"
    ].sum() == pytest.approx(both, abs=0.004)


def test_rating_probabilities_by_hand() -> None:
    nothing = pd.DataFrame({a: ["unknown"] for a in ASPECTS})
    p = World(0.0, base=3.0, noise=0.5).rating_probabilities(nothing)[0]
    assert p.sum() == pytest.approx(1) and p[2] == pytest.approx(norm.cdf(1) - norm.cdf(-1))
    assert p[1] == pytest.approx(p[3])


def test_the_true_effect_is_the_difference_of_two_worlds_and_zero_for_no_change() -> None:
    world = World(0.5)
    values = pd.DataFrame(list(product(VALUES, repeat=4)), columns=list(ASPECTS))
    assert np.allclose(world.true_effect(values, "food", "Positive").sum(1), 0)
    assert np.all(world.true_effect(values[values["food"] == "Positive"], "food", "Positive") == 0)


def test_the_reviews_are_a_valid_corpus(texts: pd.DataFrame) -> None:
    check_texts(texts, "generated")
    assert texts["split"].value_counts().to_dict() == {
        k: n * 6 for k, n in SIZES.items()
    }  # original, 4 edits, one of them twice
    assert (
        texts["in_exclusive"].sum() == SIZES["train"]
        and texts["in_observational"].sum() == SIZES["train"]
    )
    assert texts.loc[texts["in_exclusive"], "group"].is_unique


def test_an_edit_changes_one_aspect_and_nothing_else(texts: pd.DataFrame) -> None:
    pairs = edit_pairs(texts)
    known = texts.set_index("text_id")
    for aspect in ASPECTS:
        others = [a for a in ASPECTS if a != aspect]
        part = pairs[pairs["aspect"] == aspect]
        assert (
            known.loc[part["base_id"], others].to_numpy()
            == known.loc[part["counterfactual_id"], others].to_numpy()
        ).all()


def test_the_same_person_rates_the_edits_so_ratings_follow_the_effect(texts: pd.DataFrame) -> None:
    rating = texts.set_index("text_id")["rating"]
    better = edit_pairs(texts).query("old == 'Negative' and new == 'Positive'")
    assert (
        rating[better["counterfactual_id"]].to_numpy() >= rating[better["base_id"]].to_numpy()
    ).all()


def test_the_same_seed_gives_the_same_texts_and_no_wording_crosses_the_splits(
    texts: pd.DataFrame,
) -> None:
    wordings = read_wordings(WORDINGS)
    assert texts.equals(generate_reviews(World(0.8), wordings, SIZES, n_edits=4, seed=3))
    parts = wordings_by_split(wordings)
    assert not set(parts["train"]) & (set(parts["test"]) | set(parts["dev"]))
    test = " ".join(texts.loc[texts["split"] == "test", "text"]).lower()
    assert "was delicious" not in test and "was overcooked and dry" not in test


def test_bad_input(tmp_path) -> None:
    with pytest.raises(TouchstoneError, match="confounding is 1.5; write a number"):
        World(1.5)
    few = tmp_path / "few.yaml"
    few.write_text("food: {Positive: [a, a]}\n")
    with pytest.raises(TouchstoneError, match="food, Negative has 0 different wordings"):
        read_wordings(few)
    shared = tmp_path / "shared.yaml"
    text = WORDINGS.read_text().replace("- was a small masterpiece", "- was cosy")
    shared.write_text(text)
    with pytest.raises(TouchstoneError, match="'was cosy' is a wording of train and of test"):
        read_wordings(shared)
