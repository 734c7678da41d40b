"""The published units of GECO at scale cpu are those of the run whose tables are committed: none is
missing, and what is beside them belongs to the next run, which its parameter file plans.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from lib.core.paths import ROOT, reference_dir
from lib.core.units import Units
from lib.models.schemes import SCHEMES
from lib.studies.geco.convergence import plan_converged
from lib.studies.geco.grid import Unit
from lib.studies.geco.units import plan_units

UNITS = reference_dir("geco", "cpu") / "units"


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    """The parameters of the committed run, as its manifests have them."""
    manifests = [
        json.loads((UNITS.parent / stage / "manifest.json").read_text())
        for stage in ("02_training", "03_attribution")
    ]
    return manifests[0]["parameters"] | manifests[1]["parameters"]


@pytest.fixture(scope="module")
def planned() -> dict[str, Any]:
    """The parameters of the next run; after it they are those of the committed one."""
    small, cpu = (
        yaml.safe_load((ROOT / "params" / "geco" / f"{name}.yaml").read_text())
        for name in ("small", "cpu")
    )
    return small | cpu


def jobs(settings: dict[str, Any]) -> list[tuple[str, str, int]]:
    """The models of stage 02, as its section 6 lists them."""
    n_seeds = {
        name: settings["n_seeds_ola" if SCHEMES[name].is_one_layer else "n_seeds"]
        for name in settings["schemes"]
    }
    n_seeds |= {"ZS": 1}
    pairs = [(name, scheme) for name in settings["datasets"] for scheme in settings["schemes"]]
    pairs += [
        (f"{name}_binary", scheme)
        for name in settings["datasets"]
        for scheme in settings["binary_schemes"]
    ]
    return [
        (name, scheme, k)
        for name, scheme in pairs
        for k in range(n_seeds[scheme])
        if k < 5 or "binary" not in name
    ]


def stems(folder: Path) -> set[str]:
    return {path.stem for path in folder.iterdir() if path.suffix in (".csv", ".parquet")}


def test_every_model_has_its_predictions(settings: dict[str, Any], planned: dict[str, Any]) -> None:
    wanted, coming = (
        {f"{name}-{scheme}-seed{k}" for name, scheme, k in jobs(values)}
        for values in (settings, planned)
    )
    found = {
        stem.removesuffix("-predictions")
        for stem in stems(UNITS / "02_training")
        if stem.endswith("-predictions")
    }
    assert wanted <= found <= wanted | coming


def explanations(settings: dict[str, Any]) -> set[str]:
    """The names of the units of stage 03."""
    models = pd.DataFrame(
        [job for job in jobs(settings) if job[0] in settings["datasets"]],
        columns=["dataset", "scheme", "seed"],
    )
    plan = plan_units(
        models,
        settings["methods"],
        {},
        settings["n_base"],
        settings["n_base_ola"],
        settings["one_seed_methods"],
        settings["every_seed_methods"],
        n_base_of=settings.get("n_base_of"),
    )
    names = {unit.name for unit in plan}
    names |= {
        Unit(m.dataset, m.scheme, 0, method, {}, 1, note=f"_{n}").name
        for m in models.drop_duplicates(["dataset", "scheme"]).itertuples()
        for method in ("LIME", "Kernel SHAP")
        for n in settings["sample_sizes"]
    }
    long_runs = plan_converged(
        models[models["dataset"].isin(settings.get("converged_datasets", []))],
        settings["methods"],
        {},
        settings.get("converged_seeds", {}),
        0,
        settings.get("tolerance", 0.01),
        settings.get("most_samples", 3),
    )
    return names | {unit.name for unit in long_runs}


def test_every_explanation_is_there_and_none_is_left_over(
    settings: dict[str, Any], planned: dict[str, Any]
) -> None:
    wanted, found = explanations(settings), stems(UNITS / "03_attribution")
    assert wanted <= found <= wanted | explanations(planned)


def test_the_study_leaves_room_for_others() -> None:
    files = [
        path for path in (ROOT / "outputs" / "reference" / "geco").rglob("*") if path.is_file()
    ]
    assert sum(path.stat().st_size for path in files) < 17_500_000


@pytest.mark.parametrize(
    "folder", sorted((ROOT / "outputs/reference").glob("*/*/units/*")), ids=lambda f: f.parts[-4]
)
def test_published_units_are_read_with_and_without_checksums(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path))
    *_, study, scale, _, stage = folder.parts
    store = Units(study, scale, stage, reuse=True)
    for path in filter(Path.is_file, folder.rglob("*")):
        key = re.search(rb"# key=([0-9a-f]{16})\n", path.read_bytes())
        name = path.relative_to(folder).as_posix().removesuffix(path.suffix)
        assert key and store.load(name, key[1].decode()) is not None, path


def test_a_run_whose_scores_were_kept_in_steps_says_so() -> None:
    stepped = [
        path.stem
        for path in (UNITS / "03_attribution").glob("*.csv")
        if "scale" in path.read_text().splitlines()[1].split(",")
    ]
    note = UNITS.parent / "note.md"
    is_said = note.is_file() and "999 steps" in note.read_text()
    assert is_said == bool(stepped), "delete the note of a run that keeps every digit"
