"""Which methods are the same function on which architecture, and what an explanation owes to the
choices around its method: the explained function, the class, the baseline.

Two methods that agree on every token of an architecture are one method with two names there.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from ...attribution import captum_route, coalitions, propagation
from ...attribution import path_integrals as paths
from ...attribution.batch import TokenBatch
from ...attribution.explain import explain_many, token_batch
from ...attribution.seam import Row
from ...core.errors import TouchstoneError, did_you_mean
from ...metrics.agreement import rank_likeness
from ...models.shortcuts import parameters_fixed
from ...models.text_model import BATCH, TextModel

SAME = 1e-4  # a largest difference below this share of the largest score is rounding
_FUNCTIONS = ("probability", "log_probability", "margin")
_BASELINES = ("pad", "mask", "zero")
_Scores = Callable[[TokenBatch], Tensor]


def _gradient_x_difference(batch: TokenBatch) -> Float[Tensor, "batch token"]:
    """The gradient times (input - baseline), summed.

    DeepLift for a model that is a straight line.
    """
    return ((batch.embeddings - batch.baselines) * batch.gradient()).sum(-1)


def _minus_position_and_type(batch: TokenBatch) -> Float[Tensor, "batch token"]:
    """Minus the gradient along position and type embeddings; NaN where a model adds none."""
    tables = {
        name.split(".")[-2]: p
        for name, p in batch.score.network().named_parameters()
        if name.endswith("weight")
    }
    positions = tables.get("position_embeddings", tables.get("wpe"))
    if positions is None:
        return torch.full(batch.embeddings.shape[:2], torch.nan)
    types = tables.get("token_type_embeddings", torch.zeros(1, positions.shape[1]))
    return -((positions[: batch.embeddings.shape[1]] + types[0]) * batch.gradient()).sum(-1)


_PAIRS: tuple[tuple[str, str, _Scores, _Scores], ...] = (
    (
        "Guided Backprop",
        "length of the gradient",
        lambda b: captum_route.guided_backprop(b).scores,
        lambda b: b.gradient().norm(dim=-1),
    ),
    (
        "Saliency",
        "length of the gradient",
        lambda b: captum_route.saliency(b).scores,
        lambda b: b.gradient().norm(dim=-1),
    ),
    (
        "DeepLift (captum)",
        "gradient x (input - reference)",
        lambda b: captum_route.deep_lift(b).scores,
        _gradient_x_difference,
    ),
    (
        "InputXGradient",
        "gradient x (input - reference)",
        lambda b: captum_route.input_x_gradient(b).scores,
        _gradient_x_difference,
    ),
    (
        "InputXGradient",
        "minus gradient along position and type",
        lambda b: captum_route.input_x_gradient(b).scores,
        _minus_position_and_type,
    ),
    (
        "InputXGradient",
        "AttnLRP",
        lambda b: captum_route.input_x_gradient(b).scores,
        lambda b: propagation.attn_lrp(b).scores,
    ),
    (
        "DeepLift (captum)",
        "DeepLift rescale",
        lambda b: captum_route.deep_lift(b).scores,
        lambda b: propagation.deep_lift_rescale(b).scores,
    ),
    (
        "DeepLift rescale",
        "Integrated Gradients, 300 points",
        lambda b: propagation.deep_lift_rescale(b).scores,
        lambda b: paths.integrated_gradients(b, n_steps=300).scores,
    ),
    (
        "Occlusion",
        "Exact Shapley",
        lambda b: coalitions.occlusion(b).scores,
        lambda b: coalitions.exact_shapley(b).scores,
    ),
)


def identities(
    model: TextModel, sentence: Sequence[str], target: int = 0, architecture: str = ""
) -> pd.DataFrame:
    """Pairs of methods on one sentence: are they one function on this architecture?

    Columns: left, right, architecture, difference (the largest over the tokens of words, as a share
    of the largest score of the right), r (Pearson), same (difference below `SAME`). NaN where the
    right does not exist in the architecture. All explain the logit, in double precision. The
    sentence should be short: one pair tries every coalition of its tokens.
    """
    # in single precision rounding could hide that two methods are one
    double = copy.copy(model)
    double.module = copy.deepcopy(model.module).double().eval()
    row = Row("identities", -1, target, list(sentence), 0)
    with parameters_fixed(double.module):
        batch = token_batch(double, [row], double.encode([list(sentence)]), "logit")
        lines = []
        for left, right, first, second in _PAIRS:
            a, b = (f(batch).detach()[0][batch.is_word[0]].numpy() for f in (first, second))
            gap = float(np.abs(a - b).max() / np.abs(b).max())
            lines.append(
                (left, right, architecture, gap, float(np.corrcoef(a, b)[0, 1]), gap < SAME)
            )
    return pd.DataFrame(lines, columns=["left", "right", "architecture", "difference", "r", "same"])


def with_reference(model: Any, baseline: str) -> Any:
    """The same model with another baseline: words replaced by "pad", by "mask", or by "zero".

    The weights are shared. Raises TouchstoneError for an unknown baseline, and for "mask" where the
    tokenizer has none.
    """
    if baseline not in _BASELINES:
        raise TouchstoneError(
            f"there is no baseline {baseline!r}{did_you_mean(baseline, _BASELINES)}"
        )
    changed, pad_id = copy.copy(model), model.tokenizer.pad_token_id
    if baseline == "mask":
        mask_id = getattr(model.tokenizer, "mask_token_id", None)
        if mask_id is None:
            raise TouchstoneError(
                "the tokenizer of this model has no mask token; take the baseline pad or zero"
            )
        changed.reference_ids = lambda ids: torch.where(
            (ids != pad_id) & (model.reference_ids(ids) == pad_id),
            mask_id,
            model.reference_ids(ids),
        )
    if baseline == "zero":  # rows of one length hold no padding, so only references meet it
        changed.embed = lambda ids: model.embed(ids) * (ids != pad_id)[..., None]
    return changed


def ranking_moves(
    model: Any, rows: pd.DataFrame, methods: Sequence[tuple[str, Mapping[str, Any]]]
) -> pd.DataFrame:
    """How far the order of a row's words moves when one choice is changed, the method staying the
    same.

    Usual are the logit, the true class and padding. Choices: the explained function (probability,
    log_probability, margin), the class (predicted, on the rows where it is not the true one), the
    baseline (mask, zero). Columns: method, choice, value, row_id, sentence_idx, seed, rank_signed
    and rank_size (Spearman over the words with the usual explanation, with and without signs),
    first (the same word on top).
    """

    def explained(one: Any, table: pd.DataFrame, function: str = "logit") -> pd.DataFrame:
        return explain_many(
            one, table, [(name, {**own, "explained": function}) for name, own in methods]
        )

    usual = explained(model, rows)
    predicted = model.predict(rows["sentence"], BATCH).argmax(1)
    wrong = rows.assign(target=predicted)[predicted != rows["target"].to_numpy()]
    changed = {("function", name): explained(model, rows, name) for name in _FUNCTIONS}
    if len(wrong):
        changed["class", "predicted"] = explained(model, wrong)
    changed |= {
        ("baseline", name): explained(with_reference(model, name), rows)
        for name in ("mask", "zero")
    }
    return pd.concat(
        [
            _compared(usual, now).assign(choice=choice, value=value)
            for (choice, value), now in changed.items()
        ],
        ignore_index=True,
    )


def summarise_moves(moves: pd.DataFrame) -> pd.DataFrame:
    """Per method and choice: rank (mean of rank_signed over the rows), first (share of rows), rows
    (how many).
    """
    groups = moves.groupby(["method", "choice", "value"], sort=False)
    return groups.agg(
        rank=("rank_signed", "mean"), first=("first", "mean"), rows=("row_id", "nunique")
    ).reset_index()


def _compared(usual: pd.DataFrame, changed: pd.DataFrame) -> pd.DataFrame:
    keys = ["method", "row_id"]
    both = changed.merge(usual[[*keys, "scores"]], on=keys, suffixes=("", "_usual"))
    scores, usual_scores = both["scores"], both["scores_usual"]
    top, usual_top = (
        column.map(lambda row: np.abs(row).argmax()) for column in (scores, usual_scores)
    )
    return both[["method", "row_id", "sentence_idx", "seed"]].assign(
        **rank_likeness(scores, usual_scores), first=(top == usual_top).astype(float)
    )
