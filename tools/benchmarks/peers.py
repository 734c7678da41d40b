"""The other arms of the table of speeds: peers as their own documentation lets a user batch them.

Every arm takes a model and rows, and returns one score a word for each row. None uses the engine:
captum and lime are called on the plain module; `six_lines` is what a user of plain PyTorch writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from captum.attr import DeepLift, InputXGradient, IntegratedGradients, KernelShap, Saliency
from lime.lime_text import LimeTextExplainer

from lib.attribution import Row
from lib.attribution.batch import TokenBatch
from lib.attribution.captum_route import ScoreNetwork, drawing_from, mask_and_rows
from lib.attribution.explain import token_batch
from lib.attribution.registry import METHODS
from lib.attribution.seam import aggregate, word_scores
from lib.core.seeds import seed_for
from lib.models.text_model import Encoded, TextModel, device_of, pad

Scores = list[np.ndarray]
TOGETHER = 32  # rows of one padded batch, sorted by length
POINTS = 96  # captum's internal_batch_size: the fastest of 32, 96 and none where it was tried
TEXTS = 16  # lime's altered texts of one padded batch, sorted by length


def seeded(rows: Sequence[Row], method: str, seed: int = -1) -> list[Row]:
    """The rows with the seeds that `explain` gives a method, so that the draws are the same."""
    return [
        Row(
            row.row_id,
            row.sentence_idx,
            row.target,
            row.words,
            seed_for(method, row.row_id, seed),
        )
        for row in rows
    ]


def batches(
    model: TextModel, rows: Sequence[Row], explained: str, size: int
) -> Iterator[tuple[list[int], list[Encoded], TokenBatch]]:
    """Rows sorted by length, `size` at a time, each batch padded to its longest row."""
    encoded = model.encode([row.words for row in rows])
    order = sorted(range(len(rows)), key=lambda i: len(encoded[i].ids))
    for start in range(0, len(order), size):
        some = order[start : start + size]
        few = [encoded[i] for i in some]
        yield some, few, token_batch(model, [rows[i] for i in some], few, explained)


def in_batches(
    model: TextModel,
    rows: Sequence[Row],
    explained: str,
    size: int,
    attribute: Callable[[TokenBatch], torch.Tensor],
) -> Scores:
    """Word scores of a function that gives one score a token of a padded batch."""
    found: Scores = [np.empty(0)] * len(rows)
    for some, few, batch in batches(model, rows, explained, size):
        scores = attribute(batch).detach().cpu().numpy()
        for i, one, of_row in zip(some, few, scores, strict=True):
            found[i] = word_scores(of_row[: len(one.ids)], one.word_ids, len(rows[i].words))
    return found


def captum_single(model: TextModel, rows: Sequence[Row], size: int) -> dict[str, Scores]:
    """Saliency and Input x Gradient by captum, each in a pass of its own."""

    def by(kind: Any, method: str) -> Scores:
        how = METHODS[method].defaults["aggregation"]

        def attribute(batch: TokenBatch) -> torch.Tensor:
            inputs = batch.embeddings.clone().requires_grad_()
            more = {"abs": False} if kind is Saliency else {}
            found = kind(ScoreNetwork(batch.score)).attribute(
                inputs, additional_forward_args=mask_and_rows(batch), **more
            )
            return aggregate(found.abs() if kind is Saliency else found, how)

        return in_batches(model, rows, "logit", size, attribute)

    return {
        "Saliency": by(Saliency, "Saliency"),
        "InputXGradient": by(InputXGradient, "InputXGradient"),
    }


def six_lines(model: TextModel, rows: Sequence[Row], size: int = TOGETHER) -> dict[str, Scores]:
    """Both by plain PyTorch: one pass forward and back a padded batch."""
    saliency: Scores = [np.empty(0)] * len(rows)
    times_input: Scores = [np.empty(0)] * len(rows)
    network: Any = model.module
    for some, few, batch in batches(model, rows, "logit", size):
        x = batch.embeddings.clone().requires_grad_()
        logits = network(inputs_embeds=x, attention_mask=batch.mask).logits
        targets = torch.tensor([[rows[i].target] for i in some], device=logits.device)
        gradient = torch.autograd.grad(logits.gather(1, targets).sum(), x)[0]
        sizes, products = gradient.abs().sum(-1), (gradient * x).detach().sum(-1)
        for found, scores in ((saliency, sizes), (times_input, products)):
            for i, one, of_row in zip(some, few, scores.cpu().numpy(), strict=True):
                found[i] = word_scores(of_row[: len(one.ids)], one.word_ids, len(rows[i].words))
    return {"Saliency": saliency, "InputXGradient": times_input}


def captum_deep_lift(model: TextModel, rows: Sequence[Row], size: int) -> Scores:
    """DeepLift by captum."""

    def attribute(batch: TokenBatch) -> torch.Tensor:
        inputs = batch.embeddings.clone().requires_grad_()
        found = DeepLift(ScoreNetwork(batch.score, model.module)).attribute(
            inputs, batch.baselines, additional_forward_args=mask_and_rows(batch)
        )
        return aggregate(found, "sum")

    return in_batches(model, rows, "logit", size, attribute)


def captum_integrated(
    model: TextModel,
    rows: Sequence[Row],
    n_steps: int,
    size: int,
    points: int | None,
    rule: str = "gausslegendre",
) -> Scores:
    """Integrated Gradients by captum; `points` is its internal_batch_size."""

    def attribute(batch: TokenBatch) -> torch.Tensor:
        explainer = IntegratedGradients(ScoreNetwork(batch.score), multiply_by_inputs=True)
        found = explainer.attribute(
            batch.embeddings.clone().requires_grad_(),
            batch.baselines,
            n_steps=n_steps,
            method=rule,
            additional_forward_args=mask_and_rows(batch),
            internal_batch_size=None if points is None else max(points, len(batch.mask)),
        )
        return aggregate(found, "sum")

    return in_batches(model, rows, "probability", size, attribute)


@torch.no_grad()
def captum_kernel(
    model: TextModel, rows: Sequence[Row], n_samples: int, per_eval: int | None = None
) -> Scores:
    """Kernel SHAP by captum, row by row; `per_eval` coalitions (None: all) in one batch."""
    found = []
    for row in seeded(rows, "Kernel SHAP"):
        encoded = model.encode([row.words])
        batch = token_batch(model, [row], encoded, "probability")
        is_word, scores = batch.is_word[0], np.zeros(batch.mask.shape[1])
        players = torch.where(is_word, is_word.cumsum(0) - 1, 0)[None, :, None]
        with drawing_from(row.seed):
            answer = KernelShap(ScoreNetwork(batch.score)).attribute(
                batch.embeddings,
                batch.baselines,
                additional_forward_args=mask_and_rows(batch),
                feature_mask=players,
                n_samples=n_samples,
                perturbations_per_eval=per_eval or min(n_samples, POINTS),
                return_input_shape=False,
            )
        scores[is_word.cpu().numpy()] = answer.flatten().cpu().numpy()
        found.append(word_scores(scores, encoded[0].word_ids, len(row.words)))
    return found


def lime_texts(
    model: TextModel, rows: Sequence[Row], n_samples: int, together: int, is_sorted: bool
) -> Scores:
    """LIME by its package; its predict function pads `together` texts, sorted by length or not."""
    return [_lime(model, row, n_samples, together, is_sorted) for row in seeded(rows, "LIME")]


def _lime(model: TextModel, row: Row, n_samples: int, together: int, is_sorted: bool) -> np.ndarray:
    device, pad_id = device_of(model.module), model.tokenizer.pad_token_id

    @torch.no_grad()
    def predict(texts: list[str]) -> np.ndarray:
        words = [[row.words[int(i)] for i in text.split()] for text in texts]
        encoded = [one if one.ids else Encoded([pad_id], [None]) for one in model.encode(words)]
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i].ids))
        order = order if is_sorted else list(range(len(encoded)))
        found = np.zeros((len(encoded), len(model.classes)))
        for start in range(0, len(order), together):
            some = order[start : start + together]
            ids, mask = (t.to(device) for t in pad([encoded[i] for i in some], pad_id))
            found[some] = model.logits(model.embed(ids), mask).softmax(-1).cpu().numpy()
        return found

    explainer = LimeTextExplainer(
        split_expression=str.split, feature_selection="none", random_state=row.seed
    )
    answer = explainer.explain_instance(
        " ".join(str(i) for i in range(len(row.words))),
        predict,
        labels=(row.target,),
        num_samples=n_samples,
    )
    weights = np.zeros(len(row.words))
    for position, weight in answer.local_exp[row.target]:
        weights[position] = weight
    return weights


def shap_partition(model: TextModel, rows: Sequence[Row], max_evals: int = 500) -> Scores:
    """Partition SHAP by shap, on its terms: its own tree, its mask token, its tokens.

    Raises ImportError where shap is not installed.
    """
    import shap

    @torch.no_grad()
    def predict(texts: Any) -> np.ndarray:
        parts = []
        for start in range(0, len(texts), TOGETHER):
            some = [str(text) for text in texts[start : start + TOGETHER]]
            given = model.tokenizer(some, padding=True, return_tensors="pt")
            network: Any = model.module
            logits = network(given["input_ids"], attention_mask=given["attention_mask"]).logits
            parts.append(logits.softmax(-1).numpy())
        return np.concatenate(parts)

    explainer = shap.Explainer(predict, shap.maskers.Text(model.tokenizer))
    found = explainer([" ".join(row.words) for row in rows], max_evals=max_evals, silent=True)
    return [np.asarray(found.values[i])[..., row.target] for i, row in enumerate(rows)]


class _Padding:
    """A masker of shap with the engine's terms: absent tokens are padding, spans are halved."""

    immutable_outputs = True

    def __init__(self, places: Sequence[int], pad_id: int) -> None:
        self.places, self.pad_id = np.array(places), pad_id
        self.shape, self.clustering = (1, len(places)), halved(len(places))

    def __call__(self, mask: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray]:
        altered = ids.copy()
        altered[self.places[~mask]] = self.pad_id
        return (altered[None],)

    def mask_shapes(self, ids: np.ndarray) -> list[tuple[int]]:
        """What shap asks for: how many players there are."""
        return [(len(self.places),)]


def halved(n: int) -> np.ndarray:
    """The tree of n tokens whose spans are cut in the middle, the longer part first, as scipy and
    shap write trees: a line a span, with its two parts, a distance and how many tokens it has.

    >>> halved(3).tolist()
    [[0.0, 1.0, 1.0, 2.0], [3.0, 2.0, 1.0, 3.0]]
    """
    lines: list[list[float]] = []

    def number(start: int, stop: int) -> int:
        if stop - start == 1:
            return start
        middle = start + (stop - start + 1) // 2
        parts = number(start, middle), number(middle, stop)
        lines.append([*parts, 1, stop - start])
        return n + len(lines) - 1

    number(0, n)
    return np.array(lines, dtype=float)


def shap_on_our_terms(model: TextModel, rows: Sequence[Row], max_evals: int = 500) -> Scores:
    """Partition SHAP by shap on the engine's terms: the same players, tree, padding, class, and
    passes at a time. Raises ImportError where shap is not installed.
    """
    import shap

    device, pad_id = device_of(model.module), model.tokenizer.pad_token_id
    found = []
    for row in rows:
        (encoded,) = model.encode([row.words])

        @torch.no_grad()
        def predict(texts: Any, target: int = row.target) -> np.ndarray:
            ids = torch.tensor(np.asarray(texts, dtype=np.int64), device=device)
            logits = model.logits(model.embed(ids), torch.ones_like(ids))
            return logits.softmax(-1)[:, target].cpu().numpy()

        places = [i for i, word in enumerate(encoded.word_ids) if word is not None]
        explainer = shap.PartitionExplainer(predict, _Padding(places, pad_id))
        answer = explainer(np.array([encoded.ids]), max_evals=max_evals, silent=True)
        scores = np.zeros(len(encoded.ids))
        scores[places] = np.asarray(answer.values).reshape(-1)
        found.append(word_scores(scores, encoded.word_ids, len(row.words)))
    return found


def interpreto_on_its_terms(model: TextModel, rows: Sequence[Row], method: str, n: int) -> Scores:
    """A method of Interpreto with n points or samples and the row's class: its own baseline, draws
    and sums over sub-words. Raises ImportError where it is not installed.
    """
    import interpreto

    kind = {
        "Integrated Gradients": "IntegratedGradients",
        "Kernel SHAP": "KernelShap",
        "LIME": "Lime",
    }[method]
    explainer = getattr(interpreto, kind)(
        model.module, model.tokenizer, batch_size=TOGETHER, n_perturbations=n
    )
    answers = explainer(
        [" ".join(row.words) for row in rows], torch.tensor([[row.target] for row in rows])
    )
    return [np.asarray(answer.attributions).reshape(-1) for answer in answers]
