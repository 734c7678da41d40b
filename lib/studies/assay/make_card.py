"""Which card is asked for: of an explainer or a file, on our models or on somebody's own, about our
texts or somebody's own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...attribution import resolve_method
from ...core.files import read_table
from ...core.runner import plan_jobs
from .card import LONGEST, MODEL_OF_TEXTS, read_run, run_small, run_with
from .explainers import FLOORS
from .file_card import card_of_file, check_file
from .own_card import own_card
from .published import Reader, check_texts

_FIRST = "01_data_generation"
_RULE = "Even"  # is asked in every run, so that a run with it asks nobody else


def make_card(
    name: str,
    settings: Mapping[str, Any],
    file: Path | None,
    model: Path | None,
    out: Path,
    texts: Path | None = None,
) -> dict[str, Any]:
    """The card, after what has to run for it has run.

    Args:
        name: the explainer; what a file is called.
        settings: of the explainer.
        file: of explanations, in place of an explainer.
        model: the folder of somebody's own classifier, in place of our models.
        out: the folder of the card.
        texts: a folder that `touchstone dataset` made (`check_own_texts`): the sentences of *mask*,
            *swap* and the deletions, in place of ours.

    Raises:
        TouchstoneError: there is no such explainer, file or classifier; see `file_card`,
            `own_card`.
    """
    if file is None and name not in FLOORS:
        resolve_method(name).settings(settings)  # before anything runs
    if model is None:
        if file is None:
            run = run_with(name, settings, texts)
            return _with_note(read_run(run, name, settings), texts, run)
        run = run_small() if texts is None else run_with(_RULE, {}, texts)
        check_file(file, run / "02_training" / "asked.csv")
        return _with_note(card_of_file(run, file, name), texts, run)
    run = run_small([_FIRST]) if texts is None else run_with(_RULE, {}, texts, _FIRST)
    chosen = {job.stage: job.all for job in plan_jobs("assay", "small")}["04_metrics"]
    print(f"a copy of {model} learns planted words; then both are explained", flush=True)
    card = own_card(model, run / _FIRST, chosen, name, settings, out, file)
    return _with_note(card, texts)


def check_own_texts(folder: Path, read_geco: Reader) -> None:
    """Refuse a folder whose texts are too few for a card, before anything runs.

    Args:
        folder: that `touchstone dataset` made.
        read_geco: the reader of its format.

    Raises:
        TouchstoneError: a file is missing, or there are too few sentences.
    """
    n_items = plan_jobs("assay", "small")[0].all["n_items"]
    check_texts(folder, read_geco, LONGEST, n_items)


def _with_note(card: dict[str, Any], texts: Path | None, run: Path | None = None) -> dict[str, Any]:
    """The card, which says whose texts they are; and how well our model of them has learnt, where
    the card is of our models.
    """
    if texts is None:
        return card
    note = f"swap and the deletions: asked about sentences of {texts}"
    if run is not None:
        table = read_table(run / "02_training" / "accuracy.csv")
        right = table.loc[table["model"] == MODEL_OF_TEXTS, "accuracy"].mean()
        note = f"mask, {note}; their model is right in {right:.2f} of those that it has not learnt"
    return card | {"notes": [*card.get("notes", []), note]}
