"""The explanation methods by name, and the door through which others join."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lib.attribution import coalitions, propagation, single_pass
from lib.attribution import model_blind as floors
from lib.attribution import path_integrals as paths
from lib.attribution import perturbed_texts as texts
from lib.attribution import rollout as attention
from lib.core.errors import TouchstoneError, did_you_mean

PRECISION = {
    "precision": "float32"
}  # an option of every method that runs a model: see lib.models.precision


@dataclass(frozen=True)
class Method:
    """An explanation method.

    level "token": `function(batch: TokenBatch, **settings) -> TokenScores`; it sees embeddings and a score,
    is given batches of equal length, and its sub-words are summed into words for it. level "word":
    `function(model, rows: list[Row], **settings)`, one list of word scores per row (or `WordScores`). `defaults` are
    all its settings; "explained" (logit, probability) and "normalise_special" belong to every token method.
    `options` are further settings, which are part of an explanation's record only where they were chosen. family:
    gradient, perturbation, attention, floor (sees no model) or own. `shares`: it takes one pass of the model, the same
    one as all methods that share.
    """

    name: str
    function: Callable[..., Any]
    family: str
    level: str = "token"
    defaults: Mapping[str, Any] = field(default_factory=dict)
    takes_any: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    shares: bool = False

    def settings(self, chosen: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The defaults with what was chosen; a setting that the method does not have is refused."""
        known = {**self.defaults, **self.options}
        for name in chosen or {}:
            if name not in known and not self.takes_any:
                raise TouchstoneError(
                    f"{self.name} has no setting {name!r}{did_you_mean(name, known)}"
                )
        return {
            **self.defaults,
            **{
                name: value
                for name, value in (chosen or {}).items()
                if name not in self.options or value != self.options[name]
            },
        }

    def has_sign(self, settings: Mapping[str, Any]) -> bool:
        """Whether the scores, found with these settings, tell for from against, and not only how much."""
        sizes = settings.get("aggregation") in ("l1", "l2") or settings.get("normalise_special")
        return not sizes and self.family not in ("attention", "floor")


def _token(name: str, function: Callable[..., Any], family: str, explained: str) -> Method:
    common = {"explained": explained, "normalise_special": False}
    options = {**PRECISION, **_options_of(function)}
    shares = function.__module__ == single_pass.__name__
    return Method(
        name,
        function,
        family,
        "token",
        {**common, **_settings_of(function)},
        options=options,
        shares=shares,
    )


def _word(name: str, function: Callable[..., Any], family: str) -> Method:
    options = {**(PRECISION if family != "floor" else {}), **_options_of(function)}
    return Method(name, function, family, "word", _settings_of(function), options=options)


def _defaults_of(function: Callable[..., Any], *kinds: inspect._ParameterKind) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {
        p.name: p.default
        for p in parameters
        if p.default is not p.empty and (not kinds or p.kind in kinds)
    }


def _settings_of(function: Callable[..., Any]) -> dict[str, Any]:
    return _defaults_of(function, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Keyword-only arguments: left at their defaults they change neither a result nor the key of a finished unit."""
    return _defaults_of(function, inspect.Parameter.KEYWORD_ONLY)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _token("Saliency", single_pass.saliency, "gradient", "logit"),
        _token("InputXGradient", single_pass.input_x_gradient, "gradient", "logit"),
        _token("Guided Backprop", single_pass.guided_backprop, "gradient", "logit"),
        _token("DeepLift", single_pass.deep_lift, "gradient", "logit"),
        _token("Gradient SHAP", paths.gradient_shap, "gradient", "logit"),
        _token("Integrated Gradients", paths.integrated_gradients, "gradient", "probability"),
        _token("Kernel SHAP", coalitions.kernel_shap, "perturbation", "probability"),
        _word("LIME", texts.lime, "perturbation"),
        _token("Gradient norm", single_pass.gradient_norm, "gradient", "logit"),
        _token("SmoothGrad", paths.smooth_grad, "gradient", "logit"),
        _token("DeepLift rescale", propagation.deep_lift_rescale, "gradient", "logit"),
        _token("AttnLRP", propagation.attn_lrp, "gradient", "logit"),
        _token("Occlusion", coalitions.occlusion, "perturbation", "probability"),
        _token("Shapley sampling", coalitions.shapley_sampling, "perturbation", "probability"),
        _token("Exact Shapley", coalitions.exact_shapley, "perturbation", "probability"),
        _token("Partition SHAP", coalitions.partition_shap, "perturbation", "probability"),
        _token("Attention rollout", attention.attention_rollout, "attention", "logit"),
        _word("Uniform random", floors.uniform_random, "floor"),
        _word("Pattern Variant", floors.pattern_variant, "floor"),
        _word("First pronoun", floors.first_pronoun, "floor"),
        _word("Pronoun list", floors.pronoun_list, "floor"),
    )
}


def resolve_method(name: str) -> Method:
    """A method by its registered name, or a user's own by "module:function".

    The function is called as `function(model, rows, **settings)` and returns one list of scores per row, a
    score per word; its keyword arguments with defaults are its settings. "module:NAME" may also name a
    `Method`, which is then used as it is: that is how a token method joins.

    >>> resolve_method("LIME").family
    'perturbation'
    """
    if name in METHODS:
        return METHODS[name]
    module_name, colon, attribute = name.partition(":")
    if not colon:
        spelt = [known for known in METHODS if known.lower() == name.lower()]
        raise TouchstoneError(
            f"there is no method {name!r}{did_you_mean(name, spelt or METHODS)} "
            "(your own is named as module:function)"
        )
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        raise TouchstoneError(
            f"method {name!r}: {error}; put the module's folder on PYTHONPATH"
        ) from None
    except AttributeError:
        raise TouchstoneError(
            f"method {name!r}: {module_name} has no {attribute!r}; correct the name"
        ) from None
    if isinstance(found, Method):
        return found
    if not callable(found):
        raise TouchstoneError(
            f"method {name!r} is {type(found).__name__}, not a function; name a function"
        )
    takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(found).parameters.values())
    return Method(name, found, "own", "word", _defaults_of(found), takes_any)
