"""The explanation methods by name, and how methods of other people join (`resolve_method`).

Which code runs when `explain` is asked for a method, and what the tests assert that it is equal to:

| method               | module that runs              | equal to                               |
|----------------------|-------------------------------|----------------------------------------|
| Saliency             | `single_pass`                 | `captum_route.saliency`                |
| InputXGradient       | `single_pass`                 | `captum_route.input_x_gradient`        |
| Gradient norm        | `single_pass`                 | the length of autograd's gradient      |
| Guided Backprop      | `single_pass` (1)             | `captum_route.guided_backprop`         |
| DeepLift             | `single_pass` (2)             | `captum_route.deep_lift`               |
| Gradient SHAP        | `path_integrals`              | `captum_route.gradient_shap`           |
| Integrated Gradients | `path_integrals` (3)          | `captum_route.integrated_gradients`    |
| SmoothGrad           | `path_integrals`              | captum's NoiseTunnel, same noise       |
| Kernel SHAP          | `coalitions`, `regression`    | `captum_route.kernel_shap`             |
| LIME                 | `perturbed_texts`, `regression` | `captum_route.lime`                  |
| Occlusion            | `coalitions`                  | captum's FeatureAblation               |
| Shapley sampling     | `coalitions`                  | captum's ShapleyValueSampling          |
| Exact Shapley        | `coalitions`                  | the mean over all orders of arrival    |
| Partition SHAP       | `partition`                   | the mean over the orders of its tree   |
| DeepLift rescale     | `propagation`, `rescale`, `rules` | in sum the change of the score     |
| AttnLRP              | `propagation`, `rules`        | on BERT a detached gradient            |
| Attention rollout    | `single_pass`                 | the product of whole matrices          |
| the four floors      | `model_blind`                 | cases by hand                          |

(1) `captum_route` where the network has ReLU modules, (2) where it has Softmax or pooling modules.
(3) With placing "panels" also `panels`, equal to a fine midpoint rule.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import pandas as pd

from ..core.errors import TouchstoneError, did_you_mean
from ..core.named import function_named, object_named
from . import (
    coalitions,
    model_blind,
    partition,
    path_integrals,
    perturbed_texts,
    propagation,
    single_pass,
)

# An option of every method that runs a model: see lib.models.shortcuts.
_PRECISION = {"precision": "float32"}

# What every token method is asked for, whoever wrote it.
_COMMON: dict[str, Any] = {"explained": "logit", "normalise_special": False}


@dataclass(frozen=True)
class Method:
    """An explanation method.

    Attributes:
        name: how it is asked for, and what stands in the column `method`.
        function: for level "token" `function(batch: TokenBatch, **settings) -> TokenScores`; it
            sees embeddings and a score, is given batches of equal length, and its sub-words are
            summed into words for it. For level "word" `function(model, rows: list[Row],
            **settings)`, one list of word scores per row (or `WordScores`).
        family: gradient, perturbation, attention, floor (sees no model) or own.
        level: "token" or "word".
        defaults: all its settings; "explained" (logit, probability) and "normalise_special" belong
            to every token method.
        takes_any: whether it accepts settings that it does not name.
        options: further settings, part of an explanation's record only where they were chosen.
        shares: whether it takes one pass of the model, the same one as all methods that share.
        fit: for a floor, what makes its first argument of the rows of a split.
        fit_on: that split.
        reads_tokenizer: for a floor, whether its first argument is a model, for its tokenizer. A
            floor with neither is given None.
    """

    name: str
    function: Callable[..., Any]
    family: str
    level: str = "token"
    defaults: Mapping[str, Any] = field(default_factory=dict)
    takes_any: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    shares: bool = False
    fit: Callable[[pd.DataFrame], Any] | None = None
    fit_on: str = "train"
    reads_tokenizer: bool = False

    def __post_init__(self) -> None:
        if self.level == "token" and (missing := _COMMON.keys() - self.defaults.keys()):
            raise TouchstoneError(
                f"the method {self.name!r} of level token needs {sorted(missing)[0]!r} among its "
                f"defaults; copy {_COMMON}"
            )

    def settings(self, chosen: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The defaults with what was chosen; refused are a setting that the method does not have,
        one of another type than its default, and a number of something below 1.

        >>> METHODS["Saliency"].settings({"aggregation": "l2"})["aggregation"]
        'l2'
        """
        known, chosen = {**self.defaults, **self.options}, chosen or {}
        for name in chosen:
            if name not in known and not self.takes_any:
                raise TouchstoneError(
                    f"{self.name} has no setting {name!r}{did_you_mean(name, known)}"
                )
            _check_setting(f"{self.name}: {name}", chosen[name], known.get(name))
        return {
            **self.defaults,
            **{n: v for n, v in chosen.items() if n not in self.options or v != self.options[n]},
        }


def _check_setting(where: str, value: Any, default: Any) -> None:
    """Refuse a setting of another type than its default; what is None may be anything."""
    kinds: dict[type, tuple[type, str]] = {
        bool: (bool, "true or false"),
        int: (Integral, "a whole number"),
        float: (Real, "a number, 0 or more"),
        str: (str, "text"),
    }
    if type(default) not in kinds:
        return
    kind, said = kinds[type(default)]
    is_kind = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    is_count = kind is Integral and where.rpartition(": ")[2].startswith("n_")
    if not is_kind or (is_count and value < 1) or (kind is Real and not value >= 0):
        raise TouchstoneError(f"{where} is {value!r}; write {said}{' from 1 on' * is_count}")


def _token(
    name: str, function: Callable[..., Any], family: str, explained: str, shares: bool = False
) -> Method:
    common = _COMMON | {"explained": explained}
    settings, options = (
        common | _defaults_of(function),
        _PRECISION | _defaults_of(function, options=True),
    )
    return Method(name, function, family, "token", settings, options=options, shares=shares)


def _word(name: str, function: Callable[..., Any], family: str, **about: Any) -> Method:
    options = ({} if family == "floor" else _PRECISION) | _defaults_of(function, options=True)
    return Method(name, function, family, "word", _defaults_of(function), options=options, **about)


def _defaults_of(function: Callable[..., Any], options: bool = False) -> dict[str, Any]:
    """The arguments with defaults; with `options` those that can be given by keyword alone.

    The latter, at their defaults, change neither a result nor a unit's key.
    """
    return {
        p.name: p.default
        for p in inspect.signature(function).parameters.values()
        if p.default is not p.empty and (p.kind is p.KEYWORD_ONLY) is options
    }


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _token("Saliency", single_pass.saliency, "gradient", "logit", shares=True),
        _token("InputXGradient", single_pass.input_x_gradient, "gradient", "logit", shares=True),
        _token("Guided Backprop", single_pass.guided_backprop, "gradient", "logit", shares=True),
        _token("DeepLift", single_pass.deep_lift, "gradient", "logit", shares=True),
        _token("Gradient SHAP", path_integrals.gradient_shap, "gradient", "logit"),
        _token(
            "Integrated Gradients", path_integrals.integrated_gradients, "gradient", "probability"
        ),
        _token("Kernel SHAP", coalitions.kernel_shap, "perturbation", "probability"),
        _word("LIME", perturbed_texts.lime, "perturbation"),
        _token("Gradient norm", single_pass.gradient_norm, "gradient", "logit", shares=True),
        _token("SmoothGrad", path_integrals.smooth_grad, "gradient", "logit"),
        _token("DeepLift rescale", propagation.deep_lift_rescale, "gradient", "logit"),
        _token("AttnLRP", propagation.attn_lrp, "gradient", "logit"),
        _token("Occlusion", coalitions.occlusion, "perturbation", "probability"),
        _token("Shapley sampling", coalitions.shapley_sampling, "perturbation", "probability"),
        _token("Exact Shapley", coalitions.exact_shapley, "perturbation", "probability"),
        _token("Partition SHAP", partition.partition_shap, "perturbation", "probability"),
        _token("Attention rollout", single_pass.attention_rollout, "attention", "logit"),
        _word("Uniform random", model_blind.uniform_random, "floor", reads_tokenizer=True),
        _word("Pattern Variant", model_blind.pattern_variant, "floor", fit=model_blind.fit_pattern),
        _word("First pronoun", model_blind.first_pronoun, "floor"),
        _word("Pronoun list", model_blind.pronoun_list, "floor"),
    )
}


def resolve_method(name: str) -> Method:
    """A method by its registered name, or a user's own by "module:function".

    The function is called as `function(model, rows, **settings)` and returns one list of scores per
    row, a score per word; its keyword arguments with defaults are its settings. "module:NAME" may
    also name a `Method`, which is then used as it is: that is how a token method joins.

    >>> resolve_method("LIME").family
    'perturbation'
    """
    if not isinstance(name, str):
        raise TouchstoneError(f"the method is {name!r}; write its name, or module:function")
    if name in METHODS:
        return METHODS[name]
    if ":" not in name:
        raise TouchstoneError(
            f"there is no method {name!r}{did_you_mean(name, METHODS)} "
            "(your own is named as module:function)"
        )
    chosen = object_named(name, "method")
    if isinstance(chosen, Method):
        return chosen
    chosen = function_named(name, "method")
    takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(chosen).parameters.values())
    defaults = _defaults_of(chosen) | _defaults_of(chosen, options=True)
    return Method(name, chosen, "own", "word", defaults, takes_any)
