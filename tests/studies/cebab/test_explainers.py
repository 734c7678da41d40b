from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression, SGDClassifier
from tiny_models import tiny

from lib.core.errors import TouchstoneError
from lib.metrics.concept_effects import cosine, l2
from lib.studies.cebab.directions import (
    TCAV,
    ConceptSHAP,
    Erasure,
    concept_vector,
    fit_inlp,
    fit_leace,
    fit_subsets,
    shapley_values,
    subsets,
)
from lib.studies.cebab.encoders import ProxySettings
from lib.studies.cebab.explainer import Explainer, NoConcept, RandomEffects, ZeroEffects
from lib.studies.cebab.from_labels import (
    CONEXP,
    Approx,
    ConceptLIME,
    SLearner,
    fit_answers,
)
from lib.studies.cebab.questions import Head, Questions, Texts, one_hot
from lib.studies.cebab.registry import EXPLAINERS, Entry, explainer_named
from lib.studies.cebab.reviews import ASPECTS
from lib.training.classifier import Settings


def texts(values: list[str], answers: list[float], predicted: list[str] | None = None) -> Texts:
    """Texts by one letter per aspect (P, N, u) and the probability of the second of two classes."""
    full = {"P": "Positive", "N": "Negative", "u": "unknown"}
    table = [
        np.array([[full[v] for v in row] for row in part], dtype=object)
        for part in (values, predicted or values)
    ]
    p = np.array(answers)
    return Texts(
        np.array([f"t{i}" for i in range(len(p))], dtype=object),
        *table,
        np.column_stack([1 - p, p]),
    )


def question(of: Texts, row: int, aspect: str, old: str, new: str) -> Questions:
    return Questions(
        of.take(np.array([row])),
        np.array([ASPECTS.index(aspect)]),
        np.array([old], object),
        np.array([new], object),
    )


TRAIN = texts(["PPuu", "PNuu", "NPuu", "NNuu"], [0.9, 0.6, 0.5, 0.1])


def second(effects: np.ndarray) -> float:
    """The effect on the second of two classes; the first has the opposite."""
    assert effects.shape == (1, 2) and effects.sum() == pytest.approx(0)
    return float(effects[0, 1])


def test_floors_by_hand(toy) -> None:
    asked = question(TRAIN, 3, "food", "Negative", "Positive")
    assert second(NoConcept().fit(TRAIN, None, 0).effects(asked)) == pytest.approx(0.525 - 0.1)
    assert second(ZeroEffects().fit(TRAIN, None, 0).effects(asked)) == 0
    noise = RandomEffects().fit(toy.texts, None, 1).effects(toy.questions)
    assert np.allclose(noise.sum(1), 0) and np.array_equal(
        noise, RandomEffects().fit(toy.texts, None, 1).effects(toy.questions)
    )


def test_conexp_by_hand() -> None:
    found = CONEXP().fit(TRAIN, None, 0).effects(question(TRAIN, 3, "food", "Negative", "Positive"))
    assert second(found) == pytest.approx((0.9 + 0.6) / 2 - (0.5 + 0.1) / 2)
    with pytest.raises(TouchstoneError, match="no train text has noise 'Positive'"):
        CONEXP().fit(TRAIN, None, 0).effects(question(TRAIN, 3, "noise", "unknown", "Positive"))


def test_approx_takes_what_agrees_on_the_other_aspects() -> None:
    asked = question(TRAIN, 3, "food", "Negative", "Positive")
    exact = Approx("mean").fit(TRAIN, None, 0)
    assert second(exact.effects(asked)) == pytest.approx(0.6 - 0.1)
    assert second(Approx("sample").fit(TRAIN, None, 0).effects(asked)) == pytest.approx(0.5)
    assert second(
        Approx("mean", match="asked").fit(TRAIN, None, 0).effects(asked)
    ) == pytest.approx(0.75 - 0.1)
    far = texts(["NPPP"], [0.2])
    nearest = Approx("mean").fit(TRAIN, None, 0)
    assert second(
        nearest.effects(question(far, 0, "food", "Negative", "Positive"))
    ) == pytest.approx(0.9 - 0.2)


def test_approx_matches_predicted_values_and_the_gold_value_of_the_asked_aspect() -> None:
    train = texts(
        ["PPuu", "PNuu"], [0.9, 0.6], predicted=["PNuu", "PPuu"]
    )  # the classifier has service wrong in both
    found = (
        Approx("mean")
        .fit(train, None, 0)
        .effects(question(texts(["NNuu"], [0.1]), 0, "food", "Negative", "Positive"))
    )
    assert second(found) == pytest.approx(0.9 - 0.1)


def test_approx_samples_from_originals_where_one_has_the_new_value() -> None:
    train = texts(["PNuu", "PNuu", "PNuu", "NNuu", "uNuu"], [0.9, 0.6, 0.3, 0.1, 0.4])
    asked = question(train, 3, "food", "Negative", "Positive")
    few = replace(train, is_original=np.array([False, True, False, True, False]))
    for seed in range(5):
        found = Approx("sample", pool="originals").fit(few, None, seed).effects(asked)
        assert second(found) == pytest.approx(0.6 - 0.1)
    asked = question(train, 3, "food", "Negative", "unknown")
    found = Approx("sample", pool="originals").fit(few, None, 0).effects(asked)
    assert second(found) == pytest.approx(0.4 - 0.1), "no original has it, so all are looked at"
    with pytest.raises(TouchstoneError, match="hand in is_original"):
        Approx("sample", pool="originals").fit(train, None, 0)


def test_top_k_by_hand(toy) -> None:
    train = replace(
        texts(["Puuu"] * 3, [0.9, 0.6, 0.3]),
        embeddings=np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]),
    )
    base = replace(texts(["Nuuu"], [0.1]), embeddings=np.array([[1.0, 0.1]]))
    asked = question(base, 0, "food", "Negative", "Positive")
    assert second(Approx("top_k", k=2).fit(train, None, 0).effects(asked)) == pytest.approx(
        0.75 - 0.1
    )
    assert second(Approx("top_k", k=9).fit(train, None, 0).effects(asked)) == pytest.approx(
        0.6 - 0.1
    )
    with pytest.raises(TouchstoneError, match="hand in embeddings"):
        Approx("top_k").fit(TRAIN, None, 0)
    with pytest.raises(TouchstoneError, match="no form 'best'"):
        Approx("best")


def test_joining_equal_texts_changes_no_number(toy) -> None:
    features = one_hot(toy.texts.gold)
    p = toy.texts.probabilities
    plain = LogisticRegression(max_iter=1000).fit(features, p.argmax(1))
    assert np.allclose(
        plain.predict_proba(features),
        fit_answers(features, p, "hard")(features),
        atol=1e-3,
    )
    repeated = LogisticRegression(max_iter=1000).fit(
        np.repeat(features, 3, 0), np.tile(range(3), 400), sample_weight=p.ravel()
    )
    assert np.allclose(
        repeated.predict_proba(features),
        fit_answers(features, p, "soft")(features),
        atol=1e-3,
    )


def test_the_s_learner_finds_the_effects_of_a_model_that_is_one(toy, truth: np.ndarray) -> None:
    many = toy.texts.take(np.tile(np.arange(400), 50))  # so that the penalty hardly counts
    found = SLearner("soft").fit(many, None, 0).effects(toy.questions)
    assert l2(truth, found).max() < 0.02
    assert np.allclose(
        SLearner("soft", minus="text").fit(many, None, 0).effects(toy.questions), found, atol=0.02
    )


def test_as_released_the_s_learner_forgets_what_it_was_told(toy) -> None:
    toy.questions.texts.predicted[np.arange(60), toy.questions.aspect] = (
        toy.questions.new
    )  # predictions that equal c'
    assert not SLearner(known_old=False).fit(toy.texts, None, 0).effects(toy.questions).any()
    assert SLearner().fit(toy.texts, None, 0).effects(toy.questions).any(1).all()


def test_a_class_that_train_never_had_gets_no_effect() -> None:
    three = replace(TRAIN, probabilities=np.column_stack([TRAIN.probabilities, np.zeros(4)]))
    found = (
        SLearner().fit(three, None, 0).effects(question(three, 3, "food", "Negative", "Positive"))
    )
    assert found.shape == (1, 3) and found[0, 2] == 0
    with pytest.raises(TouchstoneError, match="answers every train text with one class"):
        SLearner().fit(texts(["PPuu", "NNuu"], [0.9, 0.8]), None, 0)


def test_concept_lime_with_an_endless_kernel_is_the_s_learner(toy) -> None:
    wide = ConceptLIME(width=1e6).fit(toy.texts, None, 0).effects(toy.questions)
    assert np.allclose(wide, SLearner().fit(toy.texts, None, 0).effects(toy.questions), atol=1e-6)
    narrow = ConceptLIME(width=1.0).fit(toy.texts, None, 0).effects(toy.questions)
    assert not np.allclose(wide, narrow, atol=0.01)


@pytest.mark.parametrize("towards", [False, True])
def test_tcav_is_the_slope_of_the_probabilities(toy, towards: bool) -> None:
    explainer = TCAV(towards=towards).fit(toy.texts, toy.head, 0)
    found = explainer.effects(toy.questions)
    step = 1e-5
    for i in (0, 7, 23):
        direction = explainer._direction(
            toy.questions.aspect[i], toy.questions.old[i], toy.questions.new[i]
        )
        at = toy.questions.texts.embeddings[i]
        slope = (
            toy.head.probabilities((at + step * direction)[None])
            - toy.head.probabilities((at - step * direction)[None])
        ) / (2 * step)
        assert np.allclose(found[i], slope[0], atol=1e-6)


def test_tcav_looks_from_texts_without_the_concept_to_texts_that_speak_of_it(toy) -> None:
    """Negative and Positive differ in sign; both have, and unknown lacks, coordinate two."""
    gold = np.repeat([["unknown"] * 4, ["Positive"] * 4, ["Negative"] * 4], 10, axis=0)
    vectors = np.repeat([[0.0, -1.0], [3.0, 1.0], [-3.0, 1.0]], 10, axis=0)
    head = Head(np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2))
    texts = Texts(
        np.arange(30).astype(str), gold, gold.copy(), head.probabilities(vectors), vectors
    )
    found = TCAV().fit(texts, head, 0)._direction(0, "Negative", "Positive")
    assert found[1] > 0.99
    released = TCAV(as_released=True).fit(texts, head, 0)._direction(0, "Negative", "Positive")
    assert released[0] < -0.5  # Positive alone, and turned round


def test_a_concept_vector_points_to_the_concept() -> None:
    x = np.array([[2.0, 0.1], [3.0, -0.1], [-2.0, 0.1], [-3.0, 0.0]])
    vector = concept_vector(x, np.array([True, True, False, False]), 0)
    assert vector[0] > 0.99 and np.linalg.norm(vector) == pytest.approx(1)
    with pytest.raises(TouchstoneError, match="with and texts without"):
        concept_vector(x, np.ones(4, bool), 0)


def test_tcav_asks_both_directions_with_opposite_signs_and_the_released_one_does_not(toy) -> None:
    there = toy.questions
    back = Questions(there.texts, there.aspect, there.new, there.old)
    ours = TCAV(towards=True).fit(toy.texts, toy.head, 0)
    assert (cosine(ours.effects(there), ours.effects(back)) > 1.5).mean() > 0.9
    deaf = TCAV().fit(toy.texts, toy.head, 0)
    assert np.array_equal(deaf.effects(there), deaf.effects(back)) and np.allclose(
        deaf.effects(there).sum(1), 0
    )
    released = TCAV(as_released=True).fit(toy.texts, toy.head, 0)
    assert np.array_equal(released.effects(there), released.effects(back))
    assert np.ptp(released.effects(there), axis=1).max() < 1e-12


def test_a_constant_estimate_has_cosine_one_with_every_effect(toy, truth: np.ndarray) -> None:
    """An effect sums to zero, so it is at a right angle to any constant vector: what the released
    TCAV was scored on.
    """
    released = TCAV(as_released=True).fit(toy.texts, toy.head, 0).effects(toy.questions)
    assert np.allclose(cosine(truth, released), 1)


def test_shapley_values_share_out_the_whole(toy) -> None:
    worth = np.random.default_rng(0).normal(size=(16, 5, 3))
    assert np.allclose(shapley_values(worth).sum(1), worth[-1] - worth[0])
    additive = np.array(
        [[[sum(chosen) + 0.0]] for chosen in subsets()]
    )  # concept i is worth i, whatever the others
    assert np.allclose(shapley_values(additive)[0, :, 0], [0, 1, 2, 3])


def test_sixteen_fits_at_once_are_sixteen_fits(toy) -> None:
    places = np.random.default_rng(1).normal(size=(300, 4))
    answers = softmax(places @ np.random.default_rng(2).normal(size=(4, 3)), axis=1)
    weight, bias = fit_subsets(places, answers, decay=0.0)
    for number in (3, 8, 15):
        chosen = list(subsets()[number])
        alone = LogisticRegression(C=1e9, max_iter=5000, tol=1e-9).fit(
            np.repeat(places[:, chosen], 3, 0),
            np.tile(range(3), 300),
            sample_weight=answers.ravel(),
        )
        assert np.allclose(
            softmax(places @ weight[number] + bias[number], axis=1),
            alone.predict_proba(places[:, chosen]),
            atol=2e-3,
        )
    assert np.allclose(softmax(bias[0]), answers.mean(0), atol=1e-4)


def test_concept_shap_and_its_released_fault(toy) -> None:
    ours = ConceptSHAP().fit(toy.texts, toy.head, 0).effects(toy.questions)
    assert np.allclose(ours.sum(1), 0, atol=1e-9)
    released = ConceptSHAP(as_released=True).fit(toy.texts, toy.head, 0).effects(toy.questions)
    assert np.allclose(released.sum(1), 1 - 3 / 2)


def test_leace_leaves_no_linear_trace_and_moves_least() -> None:
    rng = np.random.default_rng(0)
    z = np.eye(3)[rng.integers(0, 3, 500)]
    x = z @ rng.normal(size=(3, 6)) + rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6))
    eraser = fit_leace(x, z)
    erased = eraser.erase(x)
    assert np.abs((erased - erased.mean(0)).T @ (z - z.mean(0))).max() < 1e-8 * len(x)
    assert np.allclose(erased.mean(0), x.mean(0)) and np.allclose(
        eraser.removed @ eraser.removed, eraser.removed
    )
    cross = (x - x.mean(0)).T @ (z - z.mean(0))
    q = np.linalg.qr(np.linalg.svd(cross)[0][:, :2])[0]
    projected = x - (x - x.mean(0)) @ q @ q.T  # an orthogonal projection erases as well
    assert np.abs((projected - projected.mean(0)).T @ (z - z.mean(0))).max() < 1e-8 * len(x)
    assert ((erased - x) ** 2).sum() < ((projected - x) ** 2).sum()


def test_leace_in_closed_form() -> None:
    """Where the concept moves the first of two uncorrelated coordinates alone, this coordinate
    becomes its mean.
    """
    x = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    erased = fit_leace(x, np.array([[1.0], [1], [0], [0]])).erase(x)
    assert np.allclose(erased, x * [0, 1])


def test_leace_where_the_embeddings_do_not_fill_their_space() -> None:
    x = np.array([[1.0, 1, 0], [2, 2, 0], [-1, -1, 0], [-2, -2, 0]])
    assert np.allclose(fit_leace(x, np.array([[1.0], [1], [0], [0]])).erase(x), 0)


def test_inlp_leaves_nothing_for_a_linear_classifier() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 600)
    x = 2 * np.eye(8)[labels] + rng.normal(size=(600, 8))
    eraser = fit_inlp(x, labels, n_rounds=6)
    assert np.allclose(eraser.removed @ eraser.removed, eraser.removed) and np.allclose(
        eraser.removed, eraser.removed.T
    )
    before, after = (
        SGDClassifier(random_state=0).fit(v[:300], labels[:300]).score(v[300:], labels[300:])
        for v in (x, eraser.erase(x))
    )
    assert before > 0.7 and after < 0.45


@pytest.mark.parametrize("method", ["LEACE", "INLP"])
def test_towards_a_value_is_nearer_to_the_truth_than_taking_away(
    toy, truth: np.ndarray, method: str
) -> None:
    away = Erasure(method).fit(toy.texts, toy.head, 0).effects(toy.questions)
    towards = Erasure(method, towards=True).fit(toy.texts, toy.head, 0).effects(toy.questions)
    assert l2(truth, towards).mean() < 0.9 * l2(truth, away).mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(EXPLAINERS))
def test_every_explainer_answers_every_question_blindly(toy, name: str) -> None:
    entry = explainer_named(name)
    extra = (
        {"model": tiny("bert"), "settings": ProxySettings(Settings(1, 1e-3, 64), 1, 1)}
        if entry.needs == "model"
        else {}
    )
    found = entry.make(**extra).fit(toy.texts, toy.head, 0).effects(toy.questions)
    assert found.shape == (60, 3) and np.isfinite(found).all()
    if entry.family != "released":
        assert np.allclose(found.sum(1), 0, atol=1e-6)
    if entry.needs:
        with pytest.raises(TouchstoneError, match="hand in"):
            entry.make().fit(replace(toy.texts, embeddings=None, without=None), toy.head, 0)


def test_unknown_names() -> None:
    with pytest.raises(TouchstoneError, match="did you mean 'CONEXP'"):
        explainer_named("CONEX")
    with pytest.raises(TouchstoneError, match="the eraser is 'RLACE'"):
        Erasure("RLACE")
    with pytest.raises(TouchstoneError, match="the target is 'warm'; write one of hard, soft"):
        SLearner("warm").fit(TRAIN, None, 0)


class Halfway(Explainer):
    """An explainer of one's own: half of the way to the mean answer on train."""

    def learn(self) -> None:
        self.mean = self.train.probabilities.mean(0)

    def effects(self, questions: Questions) -> np.ndarray:
        return (self.mean - questions.texts.probabilities) / 2


def test_an_explainer_of_ones_own_joins_the_list(toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPLAINERS, "Halfway", Entry(Halfway, "ours"))
    halfway = explainer_named("Halfway").make().fit(toy.texts, None, 3)
    whole = NoConcept().fit(toy.texts, None, 3).effects(toy.questions)
    assert np.allclose(2 * halfway.effects(toy.questions), whole)
    assert halfway.train is toy.texts and halfway.head is None and halfway.seed == 3
