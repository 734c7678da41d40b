"""Which card is asked for: of an explainer or a file, on our models or on somebody's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...attribution import resolve_method
from ...core.runner import plan_jobs
from .card import read_run, run_small, run_with
from .explainers import FLOORS
from .file_card import card_of_file, check_file
from .own_card import own_card


def make_card(
    name: str, settings: Mapping[str, Any], file: Path | None, model: Path | None, out: Path
) -> dict[str, Any]:
    """The card, after what has to run for it has run.

    Args:
        name: the explainer; what a file is called.
        settings: of the explainer.
        file: of explanations, in place of an explainer.
        model: the folder of somebody's own classifier, in place of our models.
        out: the folder of the card.

    Raises:
        TouchstoneError: there is no such explainer, file or classifier; see `file_card`,
            `own_card`.
    """
    if file is None and name not in FLOORS:
        resolve_method(name).settings(settings)  # before anything runs
    if model is None:
        if file is None:
            return read_run(run_with(name, settings), name, settings)
        run = run_small()
        check_file(file, run / "02_training" / "asked.csv")
        return card_of_file(run, file, name)
    made = run_small(["01_data_generation"]) / "01_data_generation"
    chosen = {job.stage: job.all for job in plan_jobs("assay", "small")}["04_metrics"]
    print(f"a copy of {model} learns planted words; then both are explained", flush=True)
    return own_card(model, made, chosen, name, settings, out, file)
