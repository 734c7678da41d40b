"""Whatever lies in outputs/submissions is whole; code that came along is run again on new items."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lib.attribution import Row
from lib.core.errors import TouchstoneError
from lib.core.files import save_csv
from lib.core.paths import ROOT, reference_dir
from lib.doors.submission import Submission
from lib.studies.assay import fresh
from lib.studies.assay.board import read_folder

FOLDER = ROOT / "outputs" / "submissions"


@pytest.fixture
def asked() -> pd.DataFrame:
    return pd.read_csv(reference_dir("assay", "small") / "02_training" / "asked.csv")


def test_every_submission_answers_every_item(asked: pd.DataFrame) -> None:
    found = {one.name: one for one in read_folder(FOLDER, asked)}
    assert {"by_length"} <= set(found) == {p.name for p in FOLDER.iterdir() if p.is_dir()}
    assert all(len(one.explanations) == len(asked) for one in found.values())
    assert fresh.with_code([found["by_length"]]) == [found["by_length"]]


def test_the_examples_code_gives_the_examples_numbers(
    asked: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER / "by_length"))
    function = importlib.import_module("by_length").by_length
    (example,) = (one for one in read_folder(FOLDER, asked) if one.name == "by_length")
    scores = example.explanations.set_index("item_id")["scores"]
    for row in asked.itertuples():
        words = row.text.split(" ")
        assert function(None, [Row("a", 0, 1, words, 0)])[0] == list(scores[row.item_id])


def handed_in(name: str, code: str, **settings: Any) -> Submission:
    about = {"author": "A", "method": "ours", "settings": settings, "code": code, "tuned": False}
    return Submission(name, about, pd.DataFrame())


def test_code_is_a_function_and_no_address() -> None:
    given = [handed_in(n, c) for n, c in (("a", "m:f"), ("b", ""), ("c", "https://x.org/m"))]
    assert [one.name for one in fresh.with_code(given)] == ["a"]


def test_the_commit_is_the_seed_and_the_functions_join(
    small_outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(fresh, "run_jobs", ran.extend)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    given = [handed_in("first", "short_words:f", power=2)]
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "short_words.py").write_text("def f(model, rows, power=1): ...\n")
    out = fresh.run_fresh(given, tmp_path, "e93533a0c2")
    assert out.name == "fresh-e93533a" and [job.folder.parent for job in ran] == [out] * 4
    chosen = {job.stage: job.all for job in ran}
    assert {stage["seed"] for stage in chosen.values()} == {244536122}
    assert chosen["03_attribution"]["explainers"]["short_words:f"] == {"power": 2}
    assert chosen["04_metrics"]["families"]["short_words:f"] == "theirs"
    assert os.environ["PYTHONPATH"].startswith(str(tmp_path / "first"))


def test_fresh_lines_stand_beside_the_boards_own(tmp_path: Path) -> None:
    names = ["truth", "explainer", "role", "value", "low", "high", "by_identity"]
    cells = [
        (truth, name, role, 0.5, 0.1, 0.9, False)
        for truth in ("planted", "mask")
        for name, role in (("LIME", "explainer"), ("m:f", "explainer"), ("oracle", "oracle"))
    ]
    save_csv(pd.DataFrame(cells, columns=names), tmp_path / "04_metrics" / "cells.csv")
    copies = pd.DataFrame({"explainer": ["k:g"], "is the same as": ["LIME"]})
    save_csv(copies, tmp_path / "03_attribution" / "copies.csv")
    given = [handed_in("first", "m:f"), handed_in("second", "k:g")]
    who = ["LIME", "first: ours", "second: ours"]
    about = {"author": "A", "settings": "{}", "code": "", "role": "x", "remarks": "told"}
    own = pd.DataFrame({"explainer": who, "truth": "mask", "value": 0.2}).assign(
        **about, low=0.0, high=1.0, by_identity=False
    )
    found = fresh.fresh_rows(tmp_path, given, own)
    assert list(found) == list(own) and set(found["truth"]) == {"planted, fresh"}
    assert sorted(found["explainer"]) == sorted(who) and set(found["value"]) == {0.5}
    assert set(found["remarks"]) == {"told"}


@pytest.mark.parametrize("commit", ["HEAD", "", "xyz"])
def test_what_is_no_commit_is_refused(commit: str) -> None:
    with pytest.raises(TouchstoneError, match="is no commit"):
        fresh.seed_of(commit)


def test_outside_a_checkout_a_commit_has_to_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(TouchstoneError, match="no git checkout.*--fresh COMMIT"):
        fresh.current_commit()
