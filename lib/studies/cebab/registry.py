"""The explainers by name, and what an explainer is: fitted on train texts, asked about changes.

An explainer of one's own joins by a line, and is then asked like all others:
`EXPLAINERS["Mine"] = Entry(Mine, "ours")`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lib.core.errors import TouchstoneError, did_you_mean
from lib.studies.cebab.causalm import CausaLM
from lib.studies.cebab.directions import TCAV, ConceptSHAP
from lib.studies.cebab.erasers import Erasure
from lib.studies.cebab.floors import NoConcept, RandomEffects, ZeroEffects
from lib.studies.cebab.from_labels import CONEXP, Approx, ConceptLIME, SLearner
from lib.studies.cebab.head import Head
from lib.studies.cebab.proxy import CausalProxy
from lib.studies.cebab.questions import Effects, Questions, Texts


class Explainer(Protocol):
    """Anything that estimates the effects of concepts on a model of K classes."""

    def fit(self, train: Texts, head: Head | None, seed: int) -> Explainer:
        """Learn from train texts; all are handed the same, and each may ignore what it likes.

        Args:
            train: n texts with `gold` labels (n, 4), `predicted` ones (n, 4) and the model's
                `probabilities` (n, K); the other fields are None where nobody has them.
            head: the model's last layer, which reads `train.embeddings`, or None where its weights
                are not known. Floors and explainers from labels ignore it.
            seed: of all that is random; the same seed gives the same estimates. Explainers without
                a draw ignore it.

        Returns:
            The explainer itself; what it keeps is its own matter.

        Raises:
            TouchstoneError: something is missing that it needs; the message says what to hand in.
        """

    def effects(self, questions: Questions) -> Effects:
        """Estimate what each change would do to the model's answer, one side of the pair in sight.

        Args:
            questions: m base texts, each with the number of an aspect, its value `old` and the
                value `new` that it should have. `questions.texts` holds what the model says of the
                base texts; `gold` is empty there.

        Returns:
            (m, K): for each question and class the probability after the change minus the one
            before it, from -1 to 1. Both are distributions, so a row sums to 0.
        """


@dataclass(frozen=True)
class Entry:
    """An explainer in the list.

    Args:
        make: makes one that is not fitted yet.
        family: floor (knows nothing of concepts), paper (as CEBaB defines it), released (a fault of
            the released code, kept by name) or ours (not in the paper).
        needs: what it needs beside answers and labels: "" (nothing), "weights" (embeddings and the
            last layer), "encoders" (vectors without each concept) or "model" (the explained model
            itself, handed to `make`).
    """

    make: Callable[..., Explainer]
    family: str
    needs: str = ""


EXPLAINERS: dict[str, Entry] = {
    "Random": Entry(RandomEffects, "floor"),
    "Zero": Entry(ZeroEffects, "floor"),
    "No concept": Entry(NoConcept, "floor"),
    "CONEXP": Entry(CONEXP, "paper"),
    "Approx": Entry(lambda: Approx("sample"), "paper"),
    "Approx (mean)": Entry(lambda: Approx("mean"), "ours"),
    "Approx (top k)": Entry(lambda: Approx("top_k"), "ours", "weights"),
    "Approx (asked aspect only)": Entry(lambda: Approx("mean", match="asked"), "ours"),
    "S-Learner": Entry(SLearner, "paper"),
    "S-Learner (soft)": Entry(lambda: SLearner("soft"), "ours"),
    "S-Learner (soft, from the text)": Entry(lambda: SLearner("soft", minus="text"), "ours"),
    "S-Learner (as released)": Entry(lambda: SLearner(known_old=False), "released"),
    "Concept LIME": Entry(ConceptLIME, "paper"),
    "TCAV": Entry(TCAV, "paper", "weights"),
    "TCAV (towards c')": Entry(lambda: TCAV(towards=True), "ours", "weights"),
    "TCAV (scaled)": Entry(lambda: TCAV(scaled=True), "ours", "weights"),
    "TCAV (as released)": Entry(lambda: TCAV(as_released=True), "released", "weights"),
    "ConceptSHAP": Entry(ConceptSHAP, "paper", "weights"),
    "ConceptSHAP (towards c')": Entry(lambda: ConceptSHAP(towards=True), "ours", "weights"),
    "ConceptSHAP (as released)": Entry(
        lambda: ConceptSHAP(as_released=True), "released", "weights"
    ),
    "INLP": Entry(lambda: Erasure("INLP", retuned=True), "paper", "weights"),
    "INLP (towards c')": Entry(lambda: Erasure("INLP", towards=True), "ours", "weights"),
    "INLP (as released)": Entry(lambda: Erasure("INLP"), "released", "weights"),
    "CausaLM": Entry(CausaLM, "paper", "encoders"),
    "CausaLM (nothing unlearnt)": Entry(lambda: CausaLM(nothing=True), "ours", "encoders"),
    "CausaLM (as released)": Entry(lambda: CausaLM(as_released=True), "released", "encoders"),
    "LEACE": Entry(lambda: Erasure("LEACE"), "ours", "weights"),
    "LEACE (towards c')": Entry(lambda: Erasure("LEACE", towards=True), "ours", "weights"),
    "Causal Proxy Model": Entry(CausalProxy, "ours", "model"),
}


def explainer_named(name: str) -> Entry:
    """An explainer of the list by its name.

    >>> explainer_named("CONEXP").family
    'paper'
    """
    if name not in EXPLAINERS:
        raise TouchstoneError(f"there is no explainer {name!r}{did_you_mean(name, EXPLAINERS)}")
    return EXPLAINERS[name]
