"""The explainers by name; `lib.studies.cebab.explainer` says what one is and how yours joins."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ...core.errors import TouchstoneError, did_you_mean
from ...core.named import function_named
from .directions import TCAV, ConceptSHAP, Erasure
from .encoders import CausaLM, CausalProxy
from .explainer import Explainer, NoConcept, RandomEffects, ZeroEffects
from .from_labels import CONEXP, Approx, ConceptLIME, SLearner
from .own_explainer import FAMILY, OwnExplainer
from .questions import AnyHead, LayeredHead, Texts


@dataclass(frozen=True)
class Entry:
    """An explainer in the list.

    Args:
        make: makes one that is not fitted yet.
        family: floor (knows nothing of concepts), paper (as CEBaB or its released code defines it:
            Concept LIME is in the code alone), released (a fault of the released code, kept by
            name), ours (not in the paper) or outside (yours).
        needs: what it needs beside answers and labels: "" (nothing), "weights" (embeddings and the
            head above them), "layers" (the same, and no function for a head), "encoders" (vectors
            without each concept) or "model" (the explained model itself, handed to `make`).
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
    "Approx (originals)": Entry(lambda: Approx("sample", pool="originals"), "paper"),
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
    "TCAV (as released)": Entry(lambda: TCAV(as_released=True), "released", "layers"),
    "ConceptSHAP": Entry(ConceptSHAP, "paper", "weights"),
    "ConceptSHAP (towards c')": Entry(lambda: ConceptSHAP(towards=True), "ours", "weights"),
    "ConceptSHAP (as released)": Entry(
        lambda: ConceptSHAP(as_released=True), "released", "weights"
    ),
    "INLP": Entry(lambda: Erasure("INLP", retuned=True), "paper", "layers"),
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
    """An explainer of the list by its name, or yours by "module:function".

    >>> explainer_named("CONEXP").family
    'paper'
    """
    if name in EXPLAINERS:
        return EXPLAINERS[name]
    if ":" not in name:
        raise TouchstoneError(
            f"there is no explainer {name!r}{did_you_mean(name, EXPLAINERS)} "
            "(your own is named as module:function)"
        )
    function_named(name, "explainer")  # now, not after others have been asked for an hour
    return Entry(partial(OwnExplainer, name), FAMILY)


def family_of(name: str) -> str:
    """The family of an explainer, by its name; those that are not in the list are from outside.

    >>> family_of("Zero"), family_of("mine:nearest")
    ('floor', 'outside')
    """
    return EXPLAINERS[name].family if name in EXPLAINERS else FAMILY


def can_explain(name: str, train: Texts, head: AnyHead | None) -> bool:
    """Whether an explainer has what it needs of a model, which is not at hand itself.

    Args:
        name: the explainer.
        train: the train texts, with what is known of them.
        head: what makes the answers from their embeddings, or None.
    """
    has = {"": True, "encoders": train.without is not None, "model": False}
    has["weights"] = train.embeddings is not None and head is not None
    has["layers"] = has["weights"] and isinstance(head, LayeredHead)
    return has[explainer_named(name).needs]
