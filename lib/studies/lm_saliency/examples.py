"""The models of stage 03's examples, also where the weights of the run are on another machine."""

from functools import cache
from pathlib import Path

from ...core.paths import outputs_root
from ...core.runner import plan_jobs
from ...core.stage import Stage
from ...models.probe import Probe
from .explanations import Explanations
from .plans import model_name
from .probing import Probing
from .trainings import Trainings

SHARE = 0.02  # of the text, for a model of the examples alone: a minute or two
_STAGE = "02_examples"  # beside the stages; nothing of a stage is read from there


def architectures_to_show(explanations: Explanations) -> list[str]:
    """The architectures of the examples: all whose weights are here, and of the others those that
    learn enough in a minute or two.
    """
    names = explanations.models.loc[explanations.models["size"] == "full", "architecture"].unique()
    plans = _probing(
        explanations.stage.study, explanations.stage.scale, outputs_root()
    ).models.plans
    return [
        name
        for name in names
        if explanations.has_weights(name, "full", "number")
        or (plans[name, "full", 0].config and not plans[name, "full", 0].reads_grammar)
    ]


def probe_to_show(explanations: Explanations, architecture: str) -> Probe:
    """The number probe of a full model; where its weights are not here, of one that learns now.

    Examples show what a method does, and nothing that is counted rests on them. The model that
    learns now reads a `SHARE` of the text, which a printed line says.

    Args:
        explanations: of stage 03.
        architecture: of the model.
    """
    place = architecture, "full", "number"
    if explanations.has_weights(*place):
        return explanations.probe(*place)
    if architecture not in explanations.examples:
        print(
            f"the weights of {model_name(architecture, 'full', 0)} are not here: the examples show "
            f"a model that has read {SHARE:.0%} of the text"
        )
        probing = _probing(explanations.stage.study, explanations.stage.scale, outputs_root())
        probe = probing.probe(probing.models.plans[architecture, "full", 0], "number")
        probe.module.to(explanations.device)
        explanations.examples[architecture] = probe
    return explanations.examples[architecture]


@cache
def _probing(study: str, scale: str, root: Path) -> Probing:
    """Probes of models that read little; the text is read once."""
    asked = {stage.stage: stage.all for stage in plan_jobs(study, scale)}["02_training"]
    short = {"lm_share": SHARE, "lm_epochs": 1, "lm_checks": 1, "lm_bar": 0, "reuse_units": False}
    stage = Stage(study, scale, _STAGE, root / study / scale / _STAGE)
    return Probing(Trainings(stage, asked | short))
