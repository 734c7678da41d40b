"""What stages 2 and 3 hand to stage 4, small enough for git, and put back in a clone.

    python tools/handover.py small geco
        after a run of any study at scale small: writes outputs/reference/geco/small/handover/,
        from which `touchstone start geco 04` fills an output root
    python tools/handover.py pack cpu
        after a run: writes outputs/reference/cebab/cpu/handover/, a file for each model
    python tools/handover.py restore cpu
        in a clone, after stage 01: writes of stages 2 and 3 what stages 4 and 5 read

Numbers alone are kept: probabilities to four decimals, and of each estimate one byte, finer near
zero, so that the errors of stage 4 move by less than .001. What depends on their order alone (its
table `order`) moves by up to .006, for near estimates tie. Texts and labels come from stage 01,
that is from the published data.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from lib.core import handover
from lib.core.errors import TouchstoneError
from lib.core.files import atomic_path, load_parquet, save_parquet
from lib.core.notebooks import find_notebooks
from lib.core.parameters import notebook_parameters, read_params
from lib.core.paths import ROOT, outputs_root, reference_dir
from lib.core.stage import MANIFEST, Stage, open_stage
from lib.studies.cebab.reviews import ASPECTS, rating_labels

STEPS = 50  # on either side of zero
DIGITS = 10_000
MODEL = ["dataset", "model", "seed"]
ABOUT = ["base_id", "counterfactual_id", "group", "aspect", "old", "new"]


def to_bytes(numbers: np.ndarray) -> tuple[np.ndarray, float]:
    """Numbers as whole steps of their signed square root, and the largest number; small ones keep
    more of their precision.

    >>> steps, largest = to_bytes(np.array([0.9, -0.1, 0.0]))
    >>> from_bytes(steps, largest).round(2).tolist()
    [0.9, -0.1, 0.0]
    """
    largest = float(np.abs(numbers).max()) or 1.0
    return np.round(STEPS * np.sign(numbers) * np.sqrt(np.abs(numbers) / largest)).astype(
        np.int8
    ), largest


def from_bytes(steps: np.ndarray, largest: float) -> np.ndarray:
    """The numbers again, as far as they were kept."""
    share = steps.astype(float) / STEPS
    return np.sign(share) * share**2 * largest


def pack(scale: str) -> None:
    """One file for each model of a finished run."""
    run, folder = outputs_root() / "cebab" / scale, reference_dir("cebab", scale) / "handover"
    predictions, estimates = (
        load_parquet(run / name)
        for name in ("02_training/predictions.parquet", "03_attribution/estimates.parquet")
    )
    columns, numbers = (
        [n for n in table if n.startswith(start)]
        for table, start in ((predictions, "p_"), (estimates, "e_"))
    )
    for (dataset, model, number), told in predictions.groupby(MODEL, sort=False):
        mine = estimates.query("dataset == @dataset and model == @model and seed == @number")
        whole = {
            name: part[numbers].to_numpy() for name, part in mine.groupby("explainer", sort=False)
        }
        rest = {
            name: to_bytes(e[:, -1:]) for name, e in whole.items() if np.abs(e.sum(1)).max() > 1e-5
        }  # the others sum to zero
        kept = {name: to_bytes(e[:, :-1]) for name, e in whole.items()}
        path = folder / f"{dataset}-{model.replace(' ', '_')}-seed{number}.npz"
        with atomic_path(path) as part, part.open("wb") as file:
            np.savez_compressed(
                file,
                model=np.array([dataset, model, str(number)]),
                ids=told["text_id"].to_numpy(str),
                predictions=np.round(DIGITS * told[columns].to_numpy()).astype(np.uint16),
                explainers=np.array(list(kept)),
                largest=np.array([largest for _, largest in kept.values()]),
                estimates=np.array(
                    [steps.T for steps, _ in kept.values()]
                ),  # K - 1 x pairs: alike numbers side by side
                **{
                    f"last of {name}": from_bytes(*last).astype(np.float16)
                    for name, last in rest.items()
                },
            )
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes, {len(kept)} explainers")


def restore(scale: str) -> None:
    """The files that stage 4 reads of stages 2 and 3, where these were not run."""
    files = sorted((reference_dir("cebab", scale) / "handover").glob("*.npz"))
    if not files:
        raise TouchstoneError(
            f"nothing is published of cebab at scale {scale}; run `make cebab SCALE={scale}`"
        )
    for stage in ("02_training", "03_attribution"):
        if (outputs_root() / "cebab" / scale / stage / MANIFEST).is_file():
            raise TouchstoneError(
                f"{stage} has been run here at scale {scale}; nothing is put in its place"
            )
    training, attribution = (
        open_stage("cebab", scale, stage) for stage in ("02_training", "03_attribution")
    )
    texts, pairs = (
        load_parquet(attribution.input("01_data_generation", name))
        for name in ("texts.parquet", "pairs.parquet")
    )
    answers, found = zip(
        *(
            _unpacked(np.load(file, allow_pickle=False), texts, pairs[pairs["split"] == "test"])
            for file in files
        ),
        strict=True,
    )
    predictions = pd.concat(answers, ignore_index=True)
    save_parquet(predictions, training.path("predictions.parquet"))
    # What that run did not keep: nothing is said of it.
    none = pd.DataFrame(columns=["dataset", "seed", "split", "text_id", *ASPECTS])
    save_parquet(none, training.path("aspects.parquet"))
    models = predictions[MODEL].drop_duplicates().assign(encoder="all-MiniLM-L6-v2")
    save_parquet(models, training.path("trainings.parquet"))
    save_parquet(pd.concat(found, ignore_index=True), attribution.path("estimates.parquet"))
    save_parquet(predictions.head(0), attribution.path("outside.parquet"))
    for stage in (training, attribution):
        stage.close(_parameters(stage))
    print(
        f"{len(files)} models put back, their estimates in {STEPS} steps (the table order moves by "
        f"up to .006); now `make cebab SCALE={scale} STAGE=04_metrics`, then 05_figures"
    )


def _unpacked(
    kept: np.lib.npyio.NpzFile, texts: pd.DataFrame, pairs: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The predictions and the estimates of one model."""
    dataset, model, number = kept["model"].tolist()
    labels = dict(zip(MODEL, (dataset, model, int(number)), strict=True))
    p = kept["predictions"] / DIGITS
    told = pd.DataFrame(
        {"text_id": kept["ids"], **{f"p_{k + 1}": p[:, k] for k in range(p.shape[1])}}
    ).assign(**labels)
    told = told.merge(
        texts[["dataset", "text_id", "group", "split", "rating"]], on=["dataset", "text_id"]
    )
    if len(told) != len(p):
        raise TouchstoneError(
            f"{len(p) - len(told)} of {len(p)} texts are not in stage 01; "
            "run stage 01 on the published data"
        )
    told = told.assign(label=rating_labels(told["rating"], p.shape[1]))
    known = set(told["text_id"])
    asked = pairs[
        (pairs["dataset"] == dataset)
        & pairs["base_id"].isin(known)
        & pairs["counterfactual_id"].isin(known)
    ]
    parts = []
    for name, steps, largest in zip(
        kept["explainers"].tolist(), kept["estimates"], kept["largest"], strict=True
    ):
        numbers = from_bytes(steps, largest)
        last = (
            kept[f"last of {name}"][:, 0].astype(float)
            if f"last of {name}" in kept
            else -numbers.sum(0)
        )
        parts.append(
            asked[ABOUT].assign(
                explainer=name,
                **labels,
                **{f"e_{k + 1}": row for k, row in enumerate([*numbers, last])},
            )
        )
    return told[
        [*MODEL, "split", "text_id", "group", "label", *(f"p_{k + 1}" for k in range(p.shape[1]))]
    ], pd.concat(parts, ignore_index=True)


def _parameters(stage: Stage) -> dict[str, object]:
    """The parameters that the stage would have been run with."""
    source = next(path for path in find_notebooks("cebab") if path.stem == stage.stage)
    defaults = notebook_parameters(source)
    return defaults | {
        k: v
        for k, v in read_params(ROOT / f"params/cebab/{stage.scale}.yaml").items()
        if k in defaults
    }


def small(study: str) -> None:
    """Pack a study's run at scale small."""
    for path in handover.pack(study, outputs_root() / study / "small"):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    try:
        {"pack": pack, "restore": restore, "small": small}[sys.argv[1]](sys.argv[2])
    except TouchstoneError as error:
        sys.exit(f"error: {error}")
