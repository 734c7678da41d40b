"""The other arm of the benchmarks: captum and lime called one row at a time, with the settings of
the released code.

Guided Backprop and DeepLift in their corrected forms (length, contributions), all on the word
embeddings; otherwise as braindatalab/gecobench at f0907c6 calls them. No batching over rows,
nothing shared, no sentence explained twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from captum.attr import IntegratedGradients, KernelShap
from lime.lime_text import LimeTextExplainer

from lib.attribution import METHODS, Row, TokenBatch, captum_route
from lib.attribution.captum_route import ScoreNetwork, drawing_from, mask_and_rows
from lib.attribution.explain import token_batch
from lib.attribution.seam import aggregate, word_scores
from lib.core.seeds import seed_for
from lib.models.text_model import Encoded, TextModel, device_of, pad

SINGLE = {
    "Saliency": captum_route.saliency,
    "InputXGradient": captum_route.input_x_gradient,
    "Guided Backprop": captum_route.guided_backprop,
    "DeepLift": captum_route.deep_lift,
    "Gradient SHAP": captum_route.gradient_shap,
}
Scores = list[np.ndarray]


def original(
    model: TextModel, rows: Sequence[Row], method: str, *, seed: int = -1, **settings: Any
) -> Scores:
    """One method, row after row; `settings` are n_steps (and rule) or n_samples, `seed` is that of
    the model's training.
    """
    return [
        _one(
            model,
            Row(
                row.row_id,
                row.sentence_idx,
                row.target,
                row.words,
                seed_for(method, row.row_id, seed),
            ),
            method,
            **settings,
        )
        for row in rows
    ]


def _one(model: TextModel, row: Row, method: str, **settings: Any) -> np.ndarray:
    if method == "LIME":
        return _lime(model, row, **settings)
    encoded = model.encode([row.words])
    batch = token_batch(model, [row], encoded, METHODS[method].defaults["explained"])
    if method == "Integrated Gradients":
        found = aggregate(_integrated(batch, **settings), "sum")[0].cpu().numpy()
    elif method == "Kernel SHAP":
        found = _kernel_shap(batch, **settings)
    else:
        found = SINGLE[method](batch, **settings).scores[0].cpu().numpy()
    return word_scores(found, encoded[0].word_ids, len(row.words))


def _integrated(batch: TokenBatch, n_steps: int, rule: str = "gausslegendre") -> torch.Tensor:
    explainer = IntegratedGradients(ScoreNetwork(batch.score), multiply_by_inputs=True)
    return explainer.attribute(
        batch.embeddings.clone().requires_grad_(),
        batch.baselines,
        n_steps=n_steps,
        method=rule,
        additional_forward_args=mask_and_rows(batch),
    )


@torch.no_grad()
def _kernel_shap(batch: TokenBatch, n_samples: int) -> np.ndarray:
    is_word, scores = batch.is_word[0], np.zeros(batch.mask.shape[1])
    players = torch.where(is_word, is_word.cumsum(0) - 1, 0)[None, :, None]
    with drawing_from(batch.seeds[0]):
        found = KernelShap(ScoreNetwork(batch.score)).attribute(
            batch.embeddings,
            batch.baselines,
            additional_forward_args=mask_and_rows(batch),
            feature_mask=players,
            n_samples=n_samples,
            perturbations_per_eval=1,
            return_input_shape=False,
        )
    scores[is_word.cpu().numpy()] = found.flatten().cpu().numpy()
    return scores


def _lime(model: TextModel, row: Row, n_samples: int) -> np.ndarray:
    @torch.no_grad()
    def predict(texts: list[str]) -> np.ndarray:
        """Padded batches of 100 texts, as a classifier's predict function does it."""
        words = [[row.words[int(i)] for i in text.split()] for text in texts]
        encoded = [
            one if one.ids else Encoded([model.tokenizer.pad_token_id], [None])
            for one in model.encode(words)
        ]
        parts = []
        for start in range(0, len(encoded), 100):
            ids, mask = (
                t.to(device_of(model.module))
                for t in pad(encoded[start : start + 100], model.tokenizer.pad_token_id)
            )
            parts.append(model.logits(model.embed(ids), mask).softmax(-1).cpu())
        return torch.cat(parts).numpy()

    explainer = LimeTextExplainer(
        split_expression=str.split, feature_selection="none", random_state=row.seed
    )
    found = explainer.explain_instance(
        " ".join(str(i) for i in range(len(row.words))),
        predict,
        labels=(row.target,),
        num_samples=n_samples,
    )
    weights = np.zeros(len(row.words))
    for position, weight in found.local_exp[row.target]:
        weights[position] = weight
    return weights
