"""Published models are whole: what was explained has its probe, and so has a control. Weights are
not published, so a probe that was forgotten can only be had by training its model again.
"""

from __future__ import annotations

import re

import pytest

from lib.core.paths import reference_dir
from lib.studies.lm_saliency.naming import BALANCED, WHOLE
from lib.studies.lm_saliency.probing import CONTROLS, KINDS
from lib.studies.lm_saliency.text import BALANCED_KIND, task_of_set

UNITS = reference_dir("lm_saliency", "cpu") / "units"
PROBES = {path.stem for path in (UNITS / "02_training").glob("probe-*.csv")}
MODELS = {path.stem.partition("-")[2] for path in (UNITS / "02_training").glob("about-*.csv")}
LINES = {path.stem.removesuffix("-lines") for path in (UNITS / "03_attribution").glob("*-lines.*")}


def probe(model: str, kind: str) -> str:
    return f"probe-{model}-{kind.replace(' ', '-')}"


def missing(model: str, names: set[str], probes: set[str]) -> list[str]:
    """The probes that a model lacks, given the sets that it explained."""
    is_check = any(name.endswith(BALANCED) for name in names)
    wanted = {
        BALANCED_KIND if name.endswith(BALANCED) else task_of_set(name.removesuffix(WHOLE))
        for name in names
    }
    if "full" in model or "student" in model:  # not of the sweep
        wanted.add("matched")
    beside = [kind for kind in (*KINDS, BALANCED_KIND) if kind not in CONTROLS]
    if is_check:
        wanted |= {*beside, *CONTROLS}
        wanted |= {f"{control} {kind}" for control in CONTROLS for kind in beside[1:]}
    for control in CONTROLS:
        for kind in ("", *beside[1:]):
            if probe(model, f"{control} {kind}".strip()) in probes:
                wanted |= {kind or beside[0], *(f"{one} {kind}".strip() for one in CONTROLS)}
    return sorted({probe(model, kind) for kind in wanted} - probes)


def test_a_lost_probe_is_found() -> None:
    """Of a model of the check, which has all of them, and of another one."""
    for model, names in (
        ("QRNN-full-6", {"Winobias", "Winobias balanced"}),
        ("LSTM-full-1", {"EWT", "Winobias"}),
    ):
        own = {name for name in PROBES if name.startswith(f"probe-{model}-")}
        assert own and not missing(model, names, own)
        for lost in own:
            assert missing(model, names, own - {lost}) == [lost]


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_published_model_is_whole(model: str) -> None:
    names = {
        name.removesuffix(f"-{model}").replace("_", " ")
        for name in LINES
        if re.fullmatch(rf"[A-Za-z_]+-{re.escape(model)}", name)
    }
    assert names, f"{model} explained nothing"
    assert not missing(model, names, PROBES)
