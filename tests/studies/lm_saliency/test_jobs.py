"""lm_saliency's units as jobs: those of the notebooks, computed apart and found again by them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch

from lib.core import units
from lib.core.errors import TouchstoneError
from lib.core.files import load_parquet, save_parquet, write_atomic
from lib.core.jobs import batches, closed_stage
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT
from lib.core.stage import open_stage
from lib.studies.lm_saliency import examples, explanations, jobs, probing, trainings
from lib.studies.lm_saliency.explanations import Explanations, choose
from lib.studies.lm_saliency.items import SHUFFLED, beside_unbalanced
from lib.studies.lm_saliency.jobs import jobs_of, train_and_ask
from lib.studies.lm_saliency.lines import save_sets
from lib.studies.lm_saliency.plans import Plan
from lib.studies.lm_saliency.probing import Probing
from lib.studies.lm_saliency.trainings import Trainings

TINY = {
    "architectures": ["LSTM", "Transformer"],
    "n_layers": {"LSTM": 2, "Transformer": 2},
    "student_layers": {"LSTM": [0], "Transformer": [1]},
    "embedding": {"LSTM": 8, "Transformer": 8},
    "width": {"LSTM": 8, "Transformer": 8},
    "lm_epochs": 1,
    "with_grammar": {"LSTM": 0.5},
    "sweep_share": 0.5,
    "sweep_tasks": ["number"],
    "probe_epochs": 1,
    "methods": ["V", "SG", "V+VN", "Contrastive"],
    "student_methods": ["V"],
    "n_samples": 2,
    "n_steps": 2,
    "n_words": 20,
}


def values(stage: str) -> dict[str, Any]:
    return notebook_parameters(ROOT / "notebooks" / "lm_saliency" / f"{stage}.py") | TINY


@pytest.fixture
def texts(small_outputs: Path) -> None:
    """What stage 01 leaves: twelve sentences, examples, and a set for each task."""
    stage = open_stage("lm_saliency", "small", "01_data_generation")
    nouns = [("key", "is"), ("keys", "are"), ("cat", "is"), ("cats", "are")]
    lines = [f"the {noun} near {other} {verb} old" for noun, verb in nouns for other in "abc"]
    for part in ("train", "valid", "grammar"):
        write_atomic(stage.path(f"corpus/{part}.txt"), "\n".join(lines) + "\n")
    examples = [
        (split, f"the {noun}", int(verb == "are"))
        for split in ("train", "valid")
        for noun, verb in nouns
    ]
    table = pd.DataFrame(examples, columns=["split", "prefix", "tag"])
    for name in ("number", "number_matched"):
        save_parquet(table, stage.path(f"{name}.parquet"))
    save_parquet(table[table["prefix"] != "the cats"], stage.path("gender.parquet"))  # one of three
    rows = pd.DataFrame(
        {
            "prefix": [f"the {noun} near the {other}".split() for noun, other in PAIRS],
            "tag": [0, 1, 0, 1],
            "cues": [[(1, 1)]] * 4,
            "attractors": [[(4, 4)]] * 4,
            "pattern": ["a_singular", "a_plural", "a_singular", "a_plural"],
            "cluster": ["0", "1", "2", "3"],
        }
    )
    save_sets({"Syneval": rows, "Winobias": rows}, stage.path("sets.parquet"))
    longer = rows.assign(prefix=[[*prefix, "and"] for prefix in rows["prefix"]])
    save_sets({"Winobias whole": longer}, stage.path("whole.parquet"))
    stage.close(values("01_data_generation"))


PAIRS = [("key", "cats"), ("keys", "cat"), ("cat", "keys"), ("cats", "key")]


def trained_apart() -> list[str]:
    """Train all units of stage 02 as jobs; their names."""
    listed = jobs_of(closed_stage("lm_saliency", "small", "02_training"), values("02_training"))
    for job in listed:
        job.compute()
    return [job.key.partition("/")[2] for job in listed]


def finish_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the notebook of stage 02 does, and nothing of it is computed."""
    for module, name in ((trainings, "fit_lm"), (probing, "fit_probe"), (probing, "features")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("computed again"))
    stage = open_stage("lm_saliency", "small", "02_training")
    asked = Probing(models := Trainings(stage, values("02_training")))
    rows = []
    for plan in models.plans.values():
        assert len(models.curve(plan)) == 1 and models.about(plan)["layers"].item() > 0
        train_and_ask(asked, plan)
        rows += [asked.row(plan, kind) for kind in asked.kinds_of(plan)]
    table = models.with_checksums(pd.concat(rows, ignore_index=True))
    save_parquet(table, stage.path("models.parquet"))
    stage.close(values("02_training"))
    listed = json.loads((stage.folder / "manifest.json").read_text())["files"]
    assert {"models/LSTM-full.safetensors", "probes/LSTM-full-matched.safetensors"} <= set(listed)


@pytest.mark.slow
def test_jobs_are_the_notebooks_units_and_are_found_by_them(
    texts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = trained_apart()
    assert names[:4] == ["LSTM-full", "LSTM-student", "Transformer-full", "Transformer-student"]
    assert names[4] == "LSTM+grammar-full"
    assert len(names) == 8 and all(name.startswith("Transformer-") for name in names[5:])
    finish_training(monkeypatch)

    stage = closed_stage("lm_saliency", "small", "03_attribution")
    explaining = jobs_of(stage, values("03_attribution"))
    named = (
        *(f"Syneval-{model}" for model in names),
        *(f"Winobias-{model}" for model in names[:4]),  # neither grammar nor sweep
        *(f"Winobias_whole-{model}" for model in names[:4]),
    )
    assert [job.key for job in explaining] == [f"03_attribution/{name}" for name in named]
    for job in explaining:
        job.compute()
        assert job.needs == ("01_data_generation", "02_training") and job.gigabytes > 0
    by_size = {job.key: job.seconds for job in explaining}
    full, student = (by_size[f"03_attribution/Syneval-LSTM-{s}"] for s in ("full", "student"))
    assert full > 2 * student > 0, "a full model is explained by more methods"
    for name in ("probe_saliencies", "baseline_saliency"):
        monkeypatch.setattr(explanations, name, lambda *_: pytest.fail("explained again"))
    stage = open_stage("lm_saliency", "small", "03_attribution")
    asked = Explanations(stage, values("03_attribution"))
    found = asked.collected()
    n_lines, n_methods = 4, 4 + 1  # of a full model and of its student; those of the sweep have one
    assert len(found["lines"]) == n_lines * (2 * 2 * n_methods + 4 + 3)
    assert len(found["whole"]) == 2 * 2 * n_methods  # two of its lines are drawn
    none = Explanations(stage, values("03_attribution") | {"whole_trainings": [1]}).collected()
    assert none["whole"].empty and list(none["whole"]) == list(found["whole"])
    assert len(found["agreement"]) == 2 * 2 * n_lines
    assert len(found["shown"]) == 2 * 2 * 2 * 3 + 2 * 2
    assert (
        found["agreement"]["verum"].between(-1, 1).all() and found["pairs"]["verum"].notna().all()
    )
    of_pairs = found["pairs"].groupby(["dataset", "grouping"])["line"].nunique()
    assert of_pairs.loc["Syneval"].tolist() == [2, 2]  # by both groupings
    sizes = found["pairs"].groupby("grouping")["size"].unique()
    assert set(sizes["released"]) == {"full"} < set(sizes["paper"])
    assert not stage.externals and set(stage.inputs) == {
        "01_data_generation/sets.parquet",
        "01_data_generation/whole.parquet",
        "02_training/models.parquet",
    }


def test_gender_and_matched_probes_get_their_controls_where_weights_are(
    texts: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = closed_stage("lm_saliency", "small", "02_training")
    more = {"trainings": {"LSTM": 2, "QRNN": 2, "Transformer": 2}, "reuse_units": True}
    monkeypatch.setattr(units, "reference_dir", lambda *_: tmp_path / "published")
    asked = Probing(Trainings(stage, values("02_training") | more))
    plans = asked.models.plans

    def has_more(probing_of: Probing) -> list[tuple[str, str, int]]:
        return [key for key, plan in plans.items() if probing_of.further_controls(plan)]

    for plan in plans.values():
        asked.models.about(plan)  # trained, and published
    for model in (stage.folder / "models").glob("*"):
        if not model.stem.startswith("LSTM-full-1"):
            model.unlink()
    assert has_more(asked) == [("LSTM", "full", 1)]
    alone = Probing(Trainings(stage, values("02_training") | more | {"reuse_units": False}))
    assert has_more(alone) == [], "none where nothing is published, as at scale small"
    assert not any(set(probing.FURTHER) & set(asked.kinds_of(plan)) for plan in plans.values()), (
        "answers and explanations do not depend on them"
    )
    plan, seen = plans["LSTM", "full", 1], {}
    fit = probing.fit_probe
    monkeypatch.setattr(
        probing, "fit_probe", lambda lm, *rest: seen.update(lm=lm, rows=rest[2]) or fit(lm, *rest)
    )
    tasks = {
        "untrained gender": "gender",
        "shuffled classes gender": "gender",
        "untrained matched": "matched",
        "shuffled classes matched": "matched",
    }
    of_check = {f"{control} balanced": "balanced" for control in probing.CONTROLS}
    assert (*tasks, *of_check) == probing.FURTHER
    for kind, source in tasks.items():
        row = asked.row(plan, kind).iloc[0]
        assert row["kind"] == kind and row["task"] == source.replace("matched", "number")
        own = asked.examples[source]
        assert (seen["rows"].sort_index()["prefix"] == own["prefix"]).all()
        is_shuffled = (seen["rows"].sort_index()["tag"] != own["tag"]).any()
        assert is_shuffled == kind.startswith("shuffled")
        first = asked.models.untrained(plan).state_dict()
        now = seen["lm"].state_dict()
        is_first = all(torch.equal(now[name], first[name]) for name in first)
        assert is_first == kind.startswith("untrained")
    shutil.rmtree(stage.folder)  # a new machine, with what is published
    anew = Probing(Trainings(stage, values("02_training") | more))
    assert has_more(anew) == [("LSTM", "full", 1)]


def test_a_published_model_is_asked_for_whole_lines_whatever_the_trainings(texts: None) -> None:
    columns = ["architecture", "size", "training", "kind"]
    names = [("LSTM", 0), ("LSTM", 1), ("LSTM+grammar", 0), ("gpt2", 0)]
    table = pd.DataFrame([(name, "full", i, "gender") for name, i in names], columns=columns)
    stage = closed_stage("lm_saliency", "small", "03_attribution")
    for chosen, asked in (([1], names[1:2]), ([], []), ([0], [names[0], names[2]])):
        given = values("03_attribution") | {"whole_trainings": chosen}
        units = Explanations(stage, given, table).units
        found = [(unit.architecture, unit.training) for unit in units if unit.is_whole]
        assert found == [*asked, ("gpt2", 0)]
        cut = [(unit.architecture, unit.training) for unit in units if not unit.is_whole]
        assert cut == names


def test_a_sweep_that_reads_the_grammar_is_the_same_models_with_another_text(texts: None) -> None:
    def swept(**more: object) -> dict[str, tuple[Plan, str]]:
        stage = closed_stage("lm_saliency", "small", "02_training")
        models = Trainings(stage, values("02_training") | more)
        plans = [plan for plan in models.plans.values() if plan.is_swept]
        return {plan.size: (plan, models.key_of(plan)) for plan in plans}

    plain, mixed = swept(with_grammar={}), swept(with_grammar={"sweep": 0.25})
    assert list(plain) == list(mixed) and len(plain) == 3
    for size, (plan, key) in mixed.items():
        assert plan.name == f"Transformer+grammar-{size}" and plan.reads_grammar
        assert plan.config == plain[size][0].config and key != plain[size][1]
        assert (plan.share, plain[size][0].share) == (0.25, 0.5)
        assert plan.settings.batch_words > plain[size][0].settings.batch_words


def test_an_architecture_may_have_more_trainings_than_the_others(texts: None) -> None:
    stage = closed_stage("lm_saliency", "small", "02_training")
    more = {"trainings": {"LSTM": 2, "Transformer": 1}, "sweep_share": 0.0}
    plans = Trainings(stage, values("02_training") | more).plans.values()
    assert [plan.name for plan in plans if plan.training] == [
        *("LSTM-full-1", "LSTM-student-1", "LSTM+grammar-full-1")
    ]
    assert sorted(plan.architecture for plan in plans if plan.size == "student") == [
        *("LSTM", "LSTM", "Transformer")
    ]


def test_the_last_trainings_of_models_that_read_the_grammar_may_have_students(
    texts: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "reference_dir", lambda *_: tmp_path / "published")
    stage = closed_stage("lm_saliency", "small", "02_training")
    more = {"trainings": {"LSTM": 1, "Transformer": 1, "LSTM+grammar": 3, "students+grammar": 2}}
    more |= {"sweep_share": 0.0, "reuse_units": True}
    asked = Probing(models := Trainings(stage, values("02_training") | more))
    plain = models.plans["LSTM", "student", 0]
    of_family = [plan for plan in models.plans.values() if plan.reads_grammar]
    assert [plan.name for plan in of_family] == [
        *("LSTM+grammar-full", "LSTM+grammar-full-1", "LSTM+grammar-student-1"),
        *("LSTM+grammar-full-2", "LSTM+grammar-student-2"),
    ]
    student = of_family[-1]
    assert models.teacher_of(student) is of_family[-2] and student.config == plain.config
    assert student.share == of_family[-2].share == 0.5 and student.layers == plain.layers
    assert student.settings.lr == plain.settings.lr
    assert student.settings.batch_words == of_family[-2].settings.batch_words
    assert {*asked.kinds_of(student)} == {"number", "matched", *probing.CONTROLS}
    assert not set(probing.CONTROLS) & {*asked.kinds_of(plain)}
    first, trained = models.untrained(student), models.trained(student)[0]
    assert first.config == trained.config, "the control is of the student's size"
    assert asked.further_controls(student) == ["untrained matched", "shuffled classes matched"]
    assert asked.further_controls(plain) == []


def test_models_of_the_check_have_two_probes_of_gender_and_no_other_part(
    texts: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "reference_dir", lambda *_: tmp_path / "published")
    stage = closed_stage("lm_saliency", "small", "02_training")
    more = {"trainings": {"LSTM": 1, "Transformer": 1, "balanced": 1}, "reuse_units": True}
    more |= {"architectures": ["LSTM"], "sweep_share": 0.0, "with_grammar": {}}
    asked = Probing(models := Trainings(stage, values("02_training") | more))
    plans = list(models.plans.values())
    assert [plan.name for plan in plans if plan.is_check] == ["LSTM-full-1", "LSTM-student-1"]
    # The same models as if they were further trainings, so that these need not be trained again.
    further = Trainings(stage, values("02_training") | more | {"trainings": {"LSTM": 2}})
    assert [further.key_of(plan) for plan in further.plans.values()] == [
        models.key_of(plan) for plan in plans
    ]
    even = asked.examples["balanced"]
    assert even.groupby(["split", "tag"]).size().tolist() == [1] * 4
    assert len(even.merge(asked.examples["gender"])) == len(even), "drawn from the others"

    with_ig = {"methods": [*TINY["methods"], "IG"]}
    later = SimpleNamespace(stage="03_attribution", all=values("03_attribution") | more | with_ig)
    monkeypatch.setattr(jobs, "plan_jobs", lambda *_: [later])
    for plan in plans:
        train_and_ask(asked, plan)
    folder = tmp_path / "published/units"
    names = {path.stem for path in (folder / "02_training").iterdir()}
    for size in ("full", "student"):
        kinds = (kind.replace(" ", "-") for kind in (*probing.CONTROLS, *probing.FURTHER))
        assert {f"probe-LSTM-{size}-1-{kind}" for kind in kinds} <= names
    assert "thresholds-LSTM-full" in names and "thresholds-LSTM-full-1" not in names
    of_check = {p.stem for p in (folder / "03_attribution").iterdir() if "LSTM-full-1" in p.stem}
    assert of_check == {
        f"Winobias{whole}{second}-LSTM-full-1-lines"
        for whole in ("", "_whole")
        for second in ("", "_balanced")
    }, "no set of number, no pairs, nothing shown"

    rows = [asked.row(plan, kind) for plan in plans for kind in asked.kinds_of(plan)]
    table = models.with_checksums(pd.concat(rows, ignore_index=True))
    there = Explanations(closed_stage("lm_saliency", "small", "03_attribution"), later.all, table)
    found = there.collected()
    assert set(found["balanced"]["training"]) == {1}
    assert not any((found[name]["training"] == 1).any() for name in found if name != "balanced")
    assert (found["balanced"]["method"] == SHUFFLED).any()  # stage 04 leaves it out
    both = beside_unbalanced(found["balanced"][found["balanced"]["method"] != SHUFFLED])
    assert both.groupby("dataset")["line"].nunique().to_dict() == {
        "Winobias": 4,
        "Winobias whole": 2,
    }
    assert len(both) == (4 + 2) * 5 + 4, "uncut lines of the full model alone"
    probes = [there.probe("LSTM", "full", kind, 1) for kind in ("gender", "balanced")]
    assert probes[0].classes == probes[1].classes
    assert not torch.equal(*(probe.layer.weight for probe in probes))


@pytest.mark.slow
def test_a_clone_without_weights_goes_on_with_what_is_missing(
    texts: None,
    small_outputs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    more = {"reuse_units": True, "architectures": ["LSTM"], "sweep_share": 0.0}
    more |= {"with_grammar": {}, "trainings": {"LSTM": 2}}
    later = SimpleNamespace(stage="03_attribution", all=values("03_attribution") | more)
    monkeypatch.setattr(jobs, "plan_jobs", lambda *_: [later])
    monkeypatch.setattr(units, "reference_dir", lambda *_: tmp_path / "published")

    def chain(n: int) -> tuple[Probing, list[Plan]]:
        stage = closed_stage("lm_saliency", "small", "02_training")
        asked = Probing(Trainings(stage, values("02_training") | more))
        plans = list(asked.models.plans.values())
        for plan in plans[:n]:
            train_and_ask(asked, plan)
        return asked, plans

    _, plans = chain(2)
    assert [plan.name for plan in plans] == [
        *("LSTM-full", "LSTM-student", "LSTM-full-1", "LSTM-student-1")
    ]
    for stage in ("02_training", "03_attribution"):
        shutil.rmtree(small_outputs / "lm_saliency/small" / stage)  # a new machine
    trained: list[str] = []
    fit = trainings.fit_lm
    monkeypatch.setattr(trainings, "fit_lm", lambda *a: trained.append("") or fit(*a))
    chain(2)
    assert not trained, "published numbers are enough"
    asked, plans = chain(4)
    assert len(trained) == 2, "the models that were missing"
    published = sorted(p for p in (tmp_path / "published/units").rglob("*") if p.is_file())
    assert {path.suffix for path in published} == {".csv", ".parquet"}
    plain = [path.read_text() for path in published if path.suffix == ".csv"]
    tables = [load_parquet(path) for path in published if path.suffix == ".parquet"]
    assert all("key " not in text for text in plain), "no texts"
    assert all(table.select_dtypes(["object", "str"]).empty for table in tables), "no texts"
    rows = [asked.row(plan, kind) for plan in plans for kind in asked.kinds_of(plan)]
    table = asked.models.with_checksums(pd.concat(rows, ignore_index=True))
    stage = closed_stage("lm_saliency", "small", "03_attribution")
    found = Explanations(stage, later.all, table).collected()
    assert found["lines"].groupby(["size", "training"]).size().tolist() == [32, 32, 8, 8]
    # An example of stage 03 shows a model of its own where the weights are on another machine.
    for path in (small_outputs / "lm_saliency/small/02_training/models").glob("LSTM-full.*"):
        path.unlink()
    here = SimpleNamespace(stage="02_training", all=values("02_training") | more)
    monkeypatch.setattr(examples, "plan_jobs", lambda *_: [here])
    monkeypatch.setattr(examples, "SHARE", 1.0)
    probe = examples.probe_to_show(Explanations(stage, later.all, table), "LSTM")
    assert "not here: the examples show a model" in capsys.readouterr().out
    assert len(trained) == 3 and probe.predict([["the", "author"]]).shape == (1, 2)
    # Where the weights of a published model are asked for after all, it is trained once more.
    later.all |= {"noise": 0.3}
    chain(1)
    assert len(trained) == 4


@pytest.mark.slow
def test_a_student_trains_its_teacher_where_it_is_missing(
    texts: None, small_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = closed_stage("lm_saliency", "small", "02_training")
    listed = {job.key: job for job in jobs_of(stage, values("02_training"))}
    listed["02_training/Transformer-student"].compute()
    alone = (stage.folder / "models/Transformer-student.safetensors").read_bytes()
    kept = {path.stem for path in (stage.folder / "units").glob("*.*")}
    assert {"Transformer-full", "Transformer-student"} <= kept
    for path in stage.folder.rglob("*.*"):
        if path.is_file():
            path.unlink()
    trained_apart()
    assert (stage.folder / "models/Transformer-student.safetensors").read_bytes() == alone


def test_a_list_says_what_units_take_and_where_they_belong(texts: None) -> None:
    stage = closed_stage("lm_saliency", "small", "02_training")
    listed = jobs_of(stage, values("02_training"))
    longer = jobs_of(stage, values("02_training") | {"lm_epochs": 100})
    assert all(0 < job.seconds < 60 and job.needs == ("01_data_generation",) for job in listed)
    assert longer[0].seconds > 20 * listed[0].seconds
    assert [job.key for job in batches(listed)["LSTM-0.1"]] == [job.key for job in listed[:2]]
    assert jobs_of(closed_stage("lm_saliency", "small", "04_metrics"), {}) == []
    with pytest.raises(TouchstoneError, match="02_training has not been completed"):
        jobs_of(closed_stage("lm_saliency", "small", "03_attribution"), values("03_attribution"))


def test_a_control_that_nobody_knows_is_refused(texts: None) -> None:
    stage = closed_stage("lm_saliency", "small", "02_training")
    asked = Probing(Trainings(stage, values("02_training")))
    with pytest.raises(TouchstoneError, match="shuffled classes"):
        asked.row(next(iter(asked.models.plans.values())), "shuffled")


def test_lines_are_chosen_by_template_and_stay_in_order() -> None:
    rows = pd.DataFrame({"prefix": [["a", "b"]] * 40, "pattern": list("abcd") * 10})
    few = choose(rows, 24, seed=0)
    assert len(few) == 12 and few.index.is_monotonic_increasing
    assert few["pattern"].value_counts().tolist() == [3, 3, 3, 3]
    assert choose(rows, 0, seed=0) is rows and choose(rows, 80, seed=0) is rows
    assert choose(rows, 8, seed=0)["pattern"].value_counts().tolist() == [2, 2], "fewer templates"
