"""The published units of GECO at scale cpu are those that its parameter file plans: none is
missing, none is left over.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from lib.core.paths import ROOT, reference_dir
from lib.core.units import Units
from lib.models.schemes import SCHEMES
from lib.studies.geco.grid import Unit
from lib.studies.geco.units import plan_units

UNITS = reference_dir("geco", "cpu") / "units"


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
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


def test_every_model_has_its_predictions(settings: dict[str, Any]) -> None:
    wanted = {f"{name}-{scheme}-seed{k}" for name, scheme, k in jobs(settings)}
    found = {
        stem.removesuffix("-predictions")
        for stem in stems(UNITS / "02_training")
        if stem.endswith("-predictions")
    }
    assert found == wanted


def test_every_explanation_is_there_and_none_is_left_over(settings: dict[str, Any]) -> None:
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
    )
    names = {unit.name for unit in plan}
    names |= {
        Unit(m.dataset, m.scheme, 0, method, {}, 1, note=f"_{n}").name
        for m in models.drop_duplicates(["dataset", "scheme"]).itertuples()
        for method in ("LIME", "Kernel SHAP")
        for n in settings["sample_sizes"]
    }
    assert stems(UNITS / "03_attribution") == names


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
