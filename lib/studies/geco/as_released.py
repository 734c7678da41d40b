"""The methods as GECOBench's released code computes them (commit f0907c6, `xai/methods.py`).

Notebook 03 runs these in place of the methods of the same names where `method_variants` is
"as_released". Their settings are the released ones; `variant` among them tells the record of an
explanation, and the key of a unit, which of the two it is.

| method | where it leaves the method of that name in `lib.attribution` |
|---|---|
| Saliency, InputXGradient | the embedding layer of BERT is run twice |
| Guided Backprop | so too; the gradient's signed sum, which vanishes behind a LayerNorm |
| Gradient SHAP | so too: the path lies behind positions and LayerNorm |
| DeepLift | so too; multipliers alone; the reference is its token ids, each in all dimensions |
| Integrated Gradients | the path lies behind positions and LayerNorm; 200 Gauss-Legendre points |
| Kernel SHAP | CLS and SEP are players |
| LIME | class M whatever the row's; a feature is a word at all its places, found by its letters |
| Pattern Variant | one covariance with the class number, on test, of the pieces of words |

All divide by the sum over all tokens, CLS and SEP included, before pieces are summed into words. Of
the released steps one is left out: pieces are told by their letters there, which shifts the scores
of a word that repeats a piece (one base sentence of the test part).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from torch import Tensor, nn

from ...attribution import coalitions, path_integrals, single_pass
from ...attribution.batch import TokenBatch
from ...attribution.perturbed_texts import kernel, lime_masks
from ...attribution.registry import METHODS, Method, resolve_method
from ...attribution.regression import weighted_ridge
from ...attribution.seam import ClassScore, Row, TokenScores, aggregate, class_score, word_scores
from ...core.errors import TouchstoneError
from ...models.ola import OneLayerNet
from ...models.text_model import Encoded, TextModel, device_of, pad
from ...models.weights import PACKAGED, load_tokenizer
from .corpus import CLASSES

VARIANT = "as_released"
_LIME_CLASS = CLASSES.index("M")  # the package's own choice, class number 1, which nobody changed
_PENALTY = 1.0  # of LIME's ridge regression, the package's own
_Scores = list[Float[np.ndarray, "token"]]


def saliency(batch: TokenBatch) -> TokenScores:
    """The sum of the gradient's sizes at the output of the embedding layer."""
    return single_pass.saliency(_behind_layer(batch))


def input_x_gradient(batch: TokenBatch) -> TokenScores:
    """The output of the embedding layer times the gradient there."""
    return single_pass.input_x_gradient(_behind_layer(batch))


def guided_backprop(batch: TokenBatch) -> TokenScores:
    """The signed sum of the gradient, cut at ReLUs, of which BERT and OLA have none."""
    return single_pass.guided_backprop(_behind_layer(batch), "sum")


def gradient_shap(batch: TokenBatch, n_samples: int) -> TokenScores:
    """Gradient SHAP between the outputs of the embedding layer."""
    return path_integrals.gradient_shap(_behind_layer(batch), n_samples=n_samples)


def deep_lift(batch: TokenBatch) -> TokenScores:
    """The sum of DeepLift's multipliers, not times any difference.

    The reference is the number of each token (CLS, padding, ..., SEP) in every dimension: the ids
    were meant to be looked up, and were not.
    """
    batch, tokenizer = _behind_layer(batch), _class_score(batch).model.tokenizer
    ids = torch.full_like(batch.mask, tokenizer.pad_token_id)  # (batch, tokens)
    for at, special in ((0, tokenizer.cls_token_id), (-1, tokenizer.sep_token_id)):
        if special is not None:
            ids[:, at] = special
    baselines = ids[..., None].expand_as(batch.embeddings).to(batch.embeddings)
    batch = replace(batch, baselines=baselines, shared=None)
    return TokenScores(aggregate(batch.one_pass().multipliers(batch.score), "sum"))


def integrated_gradients(batch: TokenBatch, n_steps: int, rule: str) -> TokenScores:
    """Integrated Gradients between the outputs of the embedding layer, which is run once."""
    score = _class_score(batch)
    if (layer := _layer(score.model)) is not None:
        model = cast(TextModel, _BehindLayer(score.model, layer))
        behind = ClassScore(model, score.targets, score.pick)
        batch = replace(_behind_layer(batch), score=behind)
    return path_integrals.integrated_gradients(batch, n_steps=n_steps, rule=rule)


def kernel_shap(batch: TokenBatch, n_samples: int) -> TokenScores:
    """Kernel SHAP with every token as a player.

    CLS and SEP stay when they are absent, for the reference has them too, but they change which
    coalitions are drawn and how these are weighed.
    """
    return coalitions.kernel_shap(
        replace(batch, is_word=torch.ones_like(batch.is_word)), n_samples=n_samples
    )


def lime(
    model: TextModel, rows: Sequence[Row], explained: str, n_samples: int, normalise_special: bool
) -> _Scores:
    """LIME of class M, on the words of the decoded text, each removed at all its places at once.

    Weights are found again by letters: a token gets the largest weight of a word that it is part
    of, as *he* of *she*; punctuation and later pieces of a word are part of none, and get 0.
    """
    scores = []
    for row, tokens in zip(rows, model.encode([row.words for row in rows]), strict=True):
        found = _lime_of_row(model, row.seed, tokens, explained, n_samples)
        scores.append(word_scores(found, tokens.word_ids, len(row.words), normalise_special))
    return scores


def _lime_of_row(
    model: TextModel, seed: int, tokens: Encoded, explained: str, n_samples: int
) -> Float[np.ndarray, "token"]:
    decode = model.tokenizer.decode
    of_words = [
        i for i, owner in zip(tokens.ids, tokens.word_ids, strict=True) if owner is not None
    ]
    parts = re.split(r"(\W+)", decode(of_words, clean_up_tokenization_spaces=True))
    features = list(dict.fromkeys(part for part in parts if re.fullmatch(r"\w+", part)))
    pieces = [decode([i]).replace(" ", "") for i in tokens.ids]
    scores = np.zeros(len(pieces))
    if features:
        masks = lime_masks(len(features), n_samples, seed)  # (steps, features)
        values = _texts_scored(model, parts, features, masks.tolist(), explained)
        weights = kernel(masks.sum(1) / len(features))
        found = weighted_ridge(masks[None], values[None], weights[None], _PENALTY)[0].tolist()
        # The largest first, as the package sorts them; the first match counts.
        by_size = sorted(zip(features, found, strict=True), key=lambda pair: -abs(pair[1]))
        for at, piece in enumerate(pieces):
            scores[at] = next((weight for word, weight in by_size if piece in word), 0.0)
    return scores


@torch.inference_mode()
def _texts_scored(
    model: TextModel,
    parts: Sequence[str],
    features: Sequence[str],
    masks: Sequence[Sequence[bool]],
    explained: str,
) -> Float[Tensor, "step"]:
    """The score of class M for the text without some of its words, a text a mask.

    All texts are padded to the longest, as released: OLA as released attends to padding.
    """
    texts = []
    for mask in masks:
        removed = {word for word, left in zip(features, mask, strict=True) if not left}
        texts.append("".join(part for part in parts if part not in removed).split())
    ids, present = pad(
        model.encode(texts), model.tokenizer.pad_token_id, device=device_of(model.module)
    )
    score = class_score(model, [_LIME_CLASS] * len(texts), explained)
    return score(model.embed(ids), present).cpu()


@dataclass(frozen=True)
class Covariances:
    """What the released Pattern Variant knows: Cov(tf-idf of a piece, class number), by piece."""

    tokenizer: Any
    of_piece: dict[str, float]

    def pieces(self, words: Sequence[str]) -> tuple[list[str], list[int]]:
        """The pieces of a sentence, as bert-base-uncased reads it, and the word of each."""
        encoded = self.tokenizer([*words], is_split_into_words=True, add_special_tokens=False)
        return self.tokenizer.convert_ids_to_tokens(encoded["input_ids"]), encoded.word_ids()


def fit_covariances(rows: pd.DataFrame) -> Covariances:
    """The released Pattern Variant, fitted on rows with sentence and target: those of test.

    Of one-letter words, punctuation and later pieces ("##s") the package counts none: they get 0.
    """
    known = Covariances(load_tokenizer(next(iter(PACKAGED))), {})
    pieces = [known.pieces(words)[0] for words in rows["sentence"]]
    counts = CountVectorizer(vocabulary=sorted({piece for row in pieces for piece in row}))
    features = TfidfTransformer().fit_transform(counts.transform([" ".join(row) for row in pieces]))
    target = rows["target"].to_numpy(dtype=float)
    # The features' own means cancel: sum((x - mean) c) = sum(x c) for a centred c.
    covariance = features.T @ (target - target.mean()) / (len(rows) - 1)
    return replace(known, of_piece=dict(zip(counts.vocabulary, covariance, strict=True)))


def pattern_variant(model: Covariances, rows: Sequence[Row], normalise_special: bool) -> _Scores:
    """Each piece's covariance with the class number, the same whatever the row's class."""
    scores = []
    for row in rows:
        pieces, owners = model.pieces(row.words)
        found = np.array([model.of_piece.get(piece, 0.0) for piece in pieces])
        scores.append(word_scores(found, owners, len(row.words), normalise_special))
    return scores


def _class_score(batch: TokenBatch) -> ClassScore:
    if not isinstance(batch.score, ClassScore):
        raise TouchstoneError(
            "the released methods explain classifiers; for another score take those of "
            "lib.attribution.METHODS"
        )
    return batch.score


def _layer(model: TextModel) -> nn.Module | None:
    """BERT's embedding layer (words, positions, types, LayerNorm); None for OLA, which has none."""
    if isinstance(model.module, OneLayerNet):
        return None
    base = getattr(model.module, "base_model", None)
    layer = getattr(base, "embeddings", None)
    if not isinstance(layer, nn.Module) or layer is model.module.get_input_embeddings():
        raise TouchstoneError(
            f"the released methods know BERT and OLA, and {type(model.module).__name__} has no "
            "embedding layer as BERT has; set method_variants to corrected"
        )
    return layer


def _behind_layer(batch: TokenBatch) -> TokenBatch:
    """The batch with the embedding layer's output in the place of word embeddings.

    The model takes it for word embeddings and runs the layer once more.
    """
    layer = _layer(_class_score(batch).model)
    if layer is None:
        return batch
    with torch.no_grad():
        embeddings, baselines = (
            layer(inputs_embeds=points) for points in (batch.embeddings, batch.baselines)
        )
    return replace(batch, embeddings=embeddings, baselines=baselines, shared=None)


class _BehindLayer:
    """A model that runs from the output of its embedding layer."""

    def __init__(self, model: TextModel, layer: nn.Module) -> None:
        self.model, self.layer = model, layer
        self.module, self.classes, self.tokenizer = model.module, model.classes, model.tokenizer

    def logits(
        self, hidden: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The class scores; the layer's own answer is exchanged for `hidden`."""
        hook = self.layer.register_forward_hook(lambda module, inputs, output: hidden)
        try:
            return self.model.logits(hidden, mask)
        finally:
            hook.remove()


def _as_released(name: str, function: Callable[..., Any], **settings: Any) -> Method:
    """A released method under the name of ours, with the released settings."""
    ours = METHODS[name]

    def without_name(*given: Any, variant: str, **chosen: Any) -> Any:
        return function(*given, **chosen)

    explained = {"explained": ours.defaults["explained"]} if "explained" in ours.defaults else {}
    defaults = {**explained, "normalise_special": True, **settings, "variant": VARIANT}
    return Method(name, without_name, ours.family, ours.level, defaults)


AS_RELEASED: dict[str, Method] = {
    method.name: method
    for method in (
        _as_released("Saliency", saliency),
        _as_released("InputXGradient", input_x_gradient),
        _as_released("Guided Backprop", guided_backprop),
        _as_released("DeepLift", deep_lift),
        _as_released("Gradient SHAP", gradient_shap, n_samples=5),
        _as_released(
            "Integrated Gradients", integrated_gradients, n_steps=200, rule="gausslegendre"
        ),
        _as_released("Kernel SHAP", kernel_shap, n_samples=25),
        _as_released("LIME", lime, n_samples=100),
        replace(
            _as_released("Pattern Variant", pattern_variant), fit=fit_covariances, fit_on="test"
        ),
    )
}


def method_of(name: str, settings: Mapping[str, Any] | None = None) -> Method:
    """A method by name; the released one where its settings name this variant.

    >>> method_of("LIME").defaults["n_samples"], method_of("LIME", {"variant": VARIANT}).options
    (100, {})
    """
    asked = (settings or {}).get("variant") == VARIANT
    return AS_RELEASED[name] if asked and name in AS_RELEASED else resolve_method(name)


def released_settings(chosen: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The settings of every released method, by name, with what was `chosen` for a method."""
    return {name: method.settings(chosen.get(name)) for name, method in AS_RELEASED.items()}
