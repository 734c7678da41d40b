"""Every path of lib that takes a device, each as a small run that gives numbers.

A path builds its own tiny model, so that it gives the same numbers on each device. `covers` names
the functions of lib that it is there for ("room.file:function"); the tests see to it that they are
entered, and that every function of lib in which a device is mentioned is covered, or stands in
`NOT_RUN` with a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from small_models import SENTENCES, as_rows, build, tiny_tokenizer

from lib.attribution import METHODS, captum_route, explain
from lib.attribution.continuation import explain_continuation
from lib.attribution.explain import token_batch
from lib.attribution.next_word import explain_next_word
from lib.attribution.seam import Row
from lib.attribution.swaps import swap_shapley
from lib.doors import explain_texts, wrap
from lib.metrics import faithfulness
from lib.metrics.randomisation import cascading_randomisation
from lib.metrics.sensitivity import sensitivity

Run = Callable[[torch.device, int], Any]
SHORT = {  # settings that keep a run short
    "Integrated Gradients": {"n_steps": 5},
    "LIME": {"n_samples": 20},
    "Kernel SHAP": {"n_samples": 12},
    "SmoothGrad": {"n_samples": 3},
    "Shapley sampling": {"n_samples": 3},
}


@dataclass(frozen=True)
class DevicePath:
    """One way through lib.

    Attributes:
        name: of the test.
        run: gives numbers, from the device and the number of rows.
        covers: the functions that it is there for, as "attribution.explain:token_batch".
        per_row: how many tensors a further row may copy to the device; None: the path has no rows
            to be more of. A further row may never make the host wait.
    """

    name: str
    run: Run
    covers: tuple[str, ...] = ()
    per_row: int | None = 0


def numbers(found: Any) -> np.ndarray:
    """All numbers of tables, tensors, arrays and lists, in one row; texts and None are left out."""
    if isinstance(found, torch.Tensor):
        return found.detach().cpu().double().numpy().ravel()
    if isinstance(found, pd.DataFrame):
        found = [found[name] for name in found]
    if isinstance(found, np.ndarray) and found.dtype.kind in "fiub":
        return found.astype(float).ravel()
    if isinstance(found, list | tuple | np.ndarray | pd.Series):
        parts = [numbers(part) for part in found]
        return np.concatenate(parts) if parts else np.zeros(0)
    is_number = isinstance(found, int | float | np.number)
    return np.array([float(found)] if is_number else [])


def rows(n: int) -> pd.DataFrame:
    """The same sentence n times: more rows are then nothing but more rows."""
    same = as_rows([SENTENCES[0]] * n, [0] * n)
    return same.assign(row_id=[f"{i}-F" for i in range(n)], drawn_by="0-F")


def placed(kind: str, device: torch.device) -> Any:
    """A tiny model on a device."""
    model = build(kind)
    model.module.to(device)
    return model


def explaining(method: str, kind: str = "BERT", sentences: bool = False, **settings: Any) -> Run:
    """Rows explained by one method."""

    def run(device: torch.device, n: int) -> Any:
        asked = as_rows(SENTENCES) if sentences else rows(n)
        model = placed(kind, device)
        found = explain(model, asked, method, SHORT.get(method, {}) | settings)
        return found[["scores", "delta"]]

    return run


def _captum(device: torch.device, n: int) -> Any:
    model = placed("BERT", device)
    some = [Row(str(i), i, i % 3, SENTENCES[0].split(), 7) for i in range(n)]
    batch = token_batch(model, some, model.encode([row.words for row in some]), "logit")
    found = [
        getattr(captum_route, name)(batch).scores
        for name in ("saliency", "input_x_gradient", "deep_lift", "gradient_shap", "kernel_shap")
    ]
    return [*found, captum_route.integrated_gradients(batch, n_steps=4).scores]


def _captum_lime(device: torch.device, n: int) -> Any:
    some = [Row(str(i), i, i % 3, SENTENCES[0].split(), 7) for i in range(n)]
    return captum_route.lime(placed("BERT", device), some, n_samples=8)


def _swaps(device: torch.device, n: int) -> Any:
    forms = ("she sings a song .", "he sings a song .", "they sing a song .")
    parts = [as_rows(forms).assign(sentence_idx=i) for i in range(n)]
    table = pd.concat(parts, ignore_index=True)
    table["row_id"] = [f"{i}-{t}" for i, t in zip(table.sentence_idx, table.target, strict=True)]
    found = swap_shapley(placed("BERT", device), table)
    return found.explanations["scores"], found.mixtures["score"]


def _faithfulness(device: torch.device, n: int) -> Any:
    model = placed("BERT", device)
    found = explain(model, rows(n), "Saliency")
    return faithfulness(model, found, n_random=1, n_samples=4, n_exact=0, n_beam=1)


def _sensitivity(device: torch.device, n: int) -> Any:
    return sensitivity(placed("BERT", device), rows(n), "Saliency", n_samples=2)


def _randomisation(device: torch.device, n: int) -> Any:
    return cascading_randomisation(placed("BERT", device), rows(n), ["InputXGradient"], n_draws=1)


def _wrapped(device: torch.device, n: int) -> Any:
    model = wrap(build("BERT").module.to(device), tiny_tokenizer(), ["F", "M", "NB"])
    found = explain_texts(model, [SENTENCES[0]] * n, classes=[0] * n)
    return found["scores"], model.predict([s.split() for s in SENTENCES], 4)


def _next_word(device: torch.device, n: int) -> Any:
    module, tokenizer = build("causal LM").module, tiny_tokenizer(framed=False)
    tokenizer.eos_token = "[SEP]"
    found = explain_next_word(module.to(device), tokenizer, "she sings the old", "song", "singer")
    return found["score"]


def _continuation(device: torch.device, n: int) -> Any:
    """Tokens of a continuation, each explained by the prompt and what stands before it."""
    module, tokenizer = build("causal LM").module, tiny_tokenizer(framed=False)
    tokenizer.eos_token = "[SEP]"
    said = " ".join(["song"] * n)
    return explain_continuation(module.to(device), tokenizer, "she sings", said, method="Saliency")


def _from_ids(device: torch.device, n: int) -> Any:
    import transformers as tf

    torch.manual_seed(0)
    size = {"vocab_size": 16, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1}
    ends = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0}
    config = tf.T5Config(**size, **ends, num_heads=2, num_labels=3)
    module = tf.T5ForSequenceClassification(config).eval()
    model = wrap(module.to(device), tiny_tokenizer())
    return explain_texts(model, [SENTENCES[0]] * n, "Kernel SHAP", [0] * n, {"n_samples": 8})[
        "scores"
    ]


_ENGINE = (
    "attribution.explain:token_batch",
    "attribution.seam:class_score",
    "attribution.budget:TokenBudget.for_module",
    "attribution.budget:free_memory",
    "models.text_model:device_of",
    "models.text_model:pad",
    "models.text_model:TextModel.reference_ids",
)
_COVERS = {
    "Integrated Gradients": ("attribution.path_integrals:_path_gradients",),
    "Gradient SHAP": ("attribution.path_integrals:gradient_shap",),
    "SmoothGrad": ("attribution.path_integrals:smooth_grad",),
    "Kernel SHAP": (
        "attribution.coalitions:kernel_shap",
        "attribution.coalitions:worth_of",
        "attribution.regression:fit_all",
        "attribution.regression:weighted_ridge",
    ),
    "LIME": ("attribution.perturbed_texts:TextPool.scores",),
    "Occlusion": ("attribution.coalitions:occlusion",),
    "Shapley sampling": ("attribution.coalitions:shapley_sampling",),
    "Exact Shapley": ("attribution.regression:shapley_values",),
}
# 64 coalitions a row: they are copied pass by pass, and a fifth row needs a second pass.
_BY_PASS = {"Exact Shapley"}
_METHODS = [
    DevicePath(name, explaining(name), _COVERS.get(name, _ENGINE), int(name in _BY_PASS))
    for name, method in METHODS.items()
    if method.family != "floor"
]
_VARIANTS = [
    DevicePath(
        "IG to 1 %, tripling",
        explaining("Integrated Gradients", tolerance=0.01, max_steps=81),
        ("attribution.path_integrals:integrate_until",),
    ),
    DevicePath(
        "IG to 1 %, panels",
        explaining("Integrated Gradients", tolerance=0.01, placing="panels", max_steps=81),
        ("attribution.path_integrals:integrate_where_needed", "models.text_model:exact_type"),
        per_row=1,  # the weights of a row that is done
    ),
    DevicePath(  # so few that the draws of five rows fit one pass: pairs are nearly all different
        "Kernel SHAP to a tolerance",
        explaining("Kernel SHAP", n_samples=60, tolerance=0.05),
        ("attribution.regression:jackknife_error",),
    ),
    DevicePath(
        "Kernel SHAP, exact", explaining("Kernel SHAP", n_samples=300, exact=True), per_row=1
    ),
    DevicePath("LIME to a tolerance", explaining("LIME", n_samples=300, tolerance=0.05)),
    DevicePath("LIME, exact", explaining("LIME", n_samples=40, exact=True)),
    DevicePath("Partition SHAP, 9 passes", explaining("Partition SHAP", max_evals=9)),
    DevicePath(
        "DeepLift rescale, margin",
        explaining("DeepLift rescale", explained="margin"),
        ("attribution.rescale:Rescale.largest",),
    ),
    DevicePath("margin", explaining("Saliency", explained="margin"), ("attribution.seam:_margin",)),
    DevicePath(
        "bfloat16",
        explaining("InputXGradient", precision="bfloat16"),
        ("models.shortcuts:in_precision",),
    ),
    DevicePath(
        "captum's route",
        _captum,
        ("attribution.batch:TokenBatch.row", "attribution.captum_route:mask_and_rows"),
        per_row=None,
    ),
    DevicePath("captum's LIME", _captum_lime, per_row=None),
]
_MODELS = [
    DevicePath(f"{method}, {kind}", explaining(method, kind), covers)
    for kind, method, covers in (
        ("GPT-2", "Saliency", ("models.hf:read_token", "models.hf:run_head")),
        ("RoBERTa", "InputXGradient", ()),
        ("Llama", "Occlusion", ()),
        ("OLA", "DeepLift", ("models.ola:OneLayerAttention.embed",)),
        ("masked LM", "Saliency", ("models.zero_shot:PromptedModel.reference_ids",)),
        ("causal LM", "Occlusion", ("models.zero_shot:PromptedModel.logits",)),
        ("similarity", "InputXGradient", ("models.zero_shot:LabelSimilarity.logits",)),
    )
]
EXPLAINING = [
    *_METHODS,
    *_VARIANTS,
    *_MODELS,
    DevicePath(
        "rows of many lengths",
        explaining("DeepLift", sentences=True),
        ("models.shortcuts:ignores_padding", "attribution.batch:SharedPass.logits_at_baselines"),
        per_row=None,
    ),
    DevicePath("swaps", _swaps, ("attribution.swaps:swap_shapley",)),
    DevicePath(
        "faithfulness",
        _faithfulness,
        (
            "attribution.perturbed_texts:sequence_logits",
            "metrics.deletion:DeletedWords.scores",
        ),
    ),
    DevicePath("sensitivity", _sensitivity, ("metrics.sensitivity:sensitivity",)),
    DevicePath("randomisation", _randomisation),
    DevicePath(
        "somebody's classifier",
        _wrapped,
        (
            "doors.own_model:wrap",
            "models.shortcuts:check_reading",
            "models.text_model:RunsFromEmbeddings.probabilities",
        ),
        per_row=1,  # Integrated Gradients in panels, as above
    ),
    DevicePath("a next word", _next_word, ("attribution.next_word:next_word_batch",), per_row=None),
    DevicePath(
        "a continuation",
        _continuation,
        ("attribution.continuation:explain_continuation",),
        per_row=None,  # a token is a row of another length, and these few go one by one
    ),
    DevicePath("encoder and decoder", _from_ids, ("models.from_ids:takes_embeddings",)),
]
