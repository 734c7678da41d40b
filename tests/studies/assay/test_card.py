"""Cards and the board, from the tables of a small made-up run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from lib import cli
from lib.core.errors import TouchstoneError
from lib.core.files import read_table, save_csv, save_json, save_parquet
from lib.core.paths import reference_dir
from lib.doors.board import COLUMNS, render_board
from lib.doors.card import check_card, read_card, render_card
from lib.doors.submission import ABOUT, NUMBERS
from lib.studies.assay import board as boards
from lib.studies.assay import card as cards
from lib.studies.assay import make_card as make
from lib.studies.assay import standing
from lib.studies.assay.card import ASKS, CANNOT_SEE, read_run, renewed, run_with, summary
from lib.studies.assay.file_card import NOT_BLIND, card_of_file, check_file
from lib.studies.assay.synthesis import on_one_scale
from lib.studies.assay.truths import (
    cheaters,
    items_to_answer,
    oracle,
    score_items,
    telling_items,
)

FLOOR_OF = {"mask": "Even", "edit": "Goal of the edit"}
ASKED = {"Honest": {}, "mine:by_place": {"n": 2}, "Copy": {}}
WORDS = ["she", "sings", "an", "old", "song"]


def a_truth(truth: str, i: int, training: int) -> dict[str, Any]:
    mark = [float(k == i % 5) for k in range(5)]
    change = (-1.0) ** i * (1 + i + training)
    return {
        "item_id": f"{truth}-{i}",
        "truth": truth,
        "model": "gender" if truth == "mask" else "reviews",
        "training": training,
        "cluster": f"{truth}-{i}",
        "sentence": [f"{truth}{i}", *WORDS[1:]],
        "target": 1,
        "key": mark,
        "mark": mark,
        "change": change if truth == "edit" else np.nan,
        "goal": np.sign(change) if truth == "edit" else np.nan,
        "second": np.nan,
        "part": "test",
        "tells": True,
    }


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stages 02 to 04: an honest explainer knows the key, one goes by the place of a word."""
    folder = tmp_path / "assay" / "card"
    rows = [a_truth(t, i, n) for t in FLOOR_OF for i in range(4) for n in (0, 1)]
    truths = pd.DataFrame(rows)
    save_parquet(truths, folder / "02_training" / "truths.parquet")
    items = telling_items(truths)
    said = {
        "Honest": [
            (np.array(row.key) * (row.change if row.truth == "edit" else 1) + 0.01 * n).tolist()
            for n, row in enumerate(items.itertuples())
        ],
        "mine:by_place": [[5.0, 4.0, 3.0, 2.0, 1.0]] * len(items),
        "Even": [[1.0] * 5] * len(items),
    }
    explained = pd.concat(
        [
            items[["model", "training", "text"]].assign(explainer=name, scores=scores)
            for name, scores in said.items()
        ],
        ignore_index=True,
    )
    answered = folder / "03_attribution"
    save_parquet(explained, answered / "explanations.parquet")
    save_csv(
        pd.DataFrame({"explainer": ["Copy"], "is the same as": ["Honest"]}), answered / "copies.csv"
    )
    refused = {
        "explainer": ["Shy", "mine:by_place"],
        "model": ["gender", "number"],
        "why": ["has no layers"] * 2,
    }
    save_csv(pd.DataFrame(refused), answered / "refused.csv")
    answers = items[["item_id", "model", "training", "text"]].merge(explained)
    known = [answers[["item_id", "explainer", "scores"]], oracle(items), cheaters(items)]
    scored = score_items(items, pd.concat(known, ignore_index=True))
    scores = on_one_scale(scored, FLOOR_OF)
    tables = {
        "cells": standing.cells(scores, [], 20, 0.05, 0),
        "gate": pd.DataFrame({"explainer": ["Honest"], "likeness": [0.9], "passes": [False]}),
        "budgets": pd.DataFrame({"explainer": ["Honest"], "passes": [10], "value": [0.7]}),
    }
    for name, table in tables.items():
        save_csv(table, folder / "04_metrics" / f"{name}.csv")
    chosen = {"floor_of": FLOOR_OF, "pads": [], "n_bootstrap": 20, "alpha": 0.05, "seed": 0}
    for stage, parameters in (
        ("03_attribution", {"explainers": ASKED}),
        ("04_metrics", chosen | {"n_deleted": 1}),
    ):
        about = {"parameters": parameters, "inputs": {}, "externals": {}, "files": {}}
        save_json(about, folder / stage / "manifest.json")
    monkeypatch.setattr(cards, "read_model", lambda *_: None)
    monkeypatch.setattr(cards, "asked_twice", lambda *_: (0.5, 0.25))
    monkeypatch.setattr(boards, "read_model", lambda *_: None)
    for name in ("score_deletion", "score_swaps"):
        monkeypatch.setattr(boards, name, lambda *_: scored.iloc[:0])
    save_parquet(pd.DataFrame({"row_id": []}), folder / "01_data_generation" / "forms.parquet")
    return folder


def test_a_card_says_what_the_run_found(run: Path) -> None:
    card = read_run(run, "Honest", {})
    check_card(card)
    rows = {row["truth"]: row for row in card["truths"]}
    assert rows["mask"]["raw"] == pytest.approx(1) and rows["mask"]["value"] == pytest.approx(1)
    assert (rows["mask"]["floor"], rows["mask"]["floor_raw"]) == ("Even", 0.5)
    assert rows["mask"]["best"] == "mine:by_place"
    assert rows["cue"]["raw"] is None, "the run has no such truth"
    assert card["gate"] == {"likeness": 0.9, "passes": False}
    assert card["single"]["draws"] == 0.5 and card["cost"]["seconds"] == 0.25
    assert card["cost"]["quality"] == [{"passes": 10, "score": 0.7}]
    own = {row["truth"]: row for row in card["other_model"]}
    assert own["edit"]["own"] == pytest.approx(rows["edit"]["raw"])
    assert card["summary"].startswith("Above the rule that was chosen beforehand")
    assert "hardly changes when all weights" in card["summary"]


def with_a_stronger_rule(run: Path, value: float) -> pd.DataFrame:
    """The run's cells, among them one more rule under *mask*, at a value."""
    path = run / "04_metrics" / "cells.csv"
    cells = read_table(path)
    floor = cells.query("truth == 'mask' and explainer == 'Even'")
    raw = 0.5 + 0.5 * value
    rule = floor.assign(explainer="Word counts", raw=raw, value=value, low=value, high=value)
    save_csv(pd.concat([cells, rule], ignore_index=True), path)
    return read_table(path)


def test_a_rule_that_is_stronger_than_the_chosen_one_is_named(run: Path) -> None:
    before = {row["truth"]: row for row in read_run(run, "Honest", {})["truths"]}
    assert before["mask"]["stronger"] is None and before["cue"]["stronger"] is None
    with_a_stronger_rule(run, 0.8)
    card = read_run(run, "Honest", {})
    row = card["truths"][0]
    assert (row["floor"], row["floor_raw"]) == ("Even", 0.5), "the floor stays"
    assert (row["stronger"], row["stronger_raw"], row["stronger_value"]) == (
        "Word counts",
        0.9,
        0.8,
    )
    assert "stronger" not in card["summary"], "Honest is above that rule, too"
    assert "stronger: Word counts, 0.90" in render_card(card)


def test_who_is_only_above_the_chosen_rule_is_not_praised() -> None:
    row = {"truth": "mask", "low": 0.2, "high": 0.9, "by_identity": False}
    row |= {"stronger": "Word counts", "stronger_raw": 0.75, "stronger_value": 0.5}
    told = summary({"truths": [row], "gate": None, "decides": True})
    assert told.endswith(
        "Not clearly above a stronger rule of that kind: mask (Word counts, 0.75)."
    )


def test_an_old_card_is_renewed_and_nobody_is_asked(run: Path) -> None:
    cells, card = with_a_stronger_rule(run, 0.8), read_run(run, "Copy", {})
    new = {"cannot_see", "stronger", "stronger_raw", "stronger_value"}
    rows = [{k: v for k, v in row.items() if k not in new} for row in card["truths"]]
    words = "Its numbers are those of Honest. Above the best rule that never looks at the model."
    old = card | {"schema": 2, "truths": rows, "summary": words}
    check_card(old)
    assert renewed(old, cells) == card


def test_every_truth_says_what_it_cannot_see() -> None:
    assert list(CANNOT_SEE) == list(ASKS)
    assert all(
        told.startswith("It cannot see ") and told.endswith(".") for told in CANNOT_SEE.values()
    )


CARDS = sorted((reference_dir("assay", "small").parent / "cards").glob("*/card.json"))


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.parent.name)
def test_a_committed_card_says_what_a_card_says_today(path: Path) -> None:
    card = read_card(path)
    cells = read_table(reference_dir("assay", "small") / "04_metrics" / "cells.csv")
    assert card == renewed(card, cells), "lib.studies.assay.card.renewed writes it anew"
    assert path.with_suffix(".html").read_text(encoding="utf-8") == render_card(card)


def test_three_sentences_from_good_to_bad(run: Path) -> None:
    shown = read_run(run, "mine:by_place", {"n": 2})["sentences"]
    assert [sentence["which"] for sentence in shown] == ["good", "typical", "bad"]
    assert [sentence["score"] for sentence in shown] == [1.0, 0.75, 0.25]
    assert shown[0]["words"] == ["mask0", *WORDS[1:]] and shown[0]["key"][0] == 1.0


def test_a_copy_has_the_cells_of_what_it_copies_and_says_so(run: Path) -> None:
    copy, honest = read_run(run, "Copy", {}), read_run(run, "Honest", {})
    assert copy["truths"] == honest["truths"]
    assert copy["summary"].startswith("Its numbers are those of Honest.")


def test_a_refusal_stands_in_its_cells(run: Path) -> None:
    card = read_run(run, "Shy", {})
    check_card(card)
    rows = {row["truth"]: row for row in card["truths"]}
    assert rows["mask"]["why"] == "has no layers" and rows["edit"]["why"] is None
    assert card["single"] == {"draws": None, "trainings": None} and card["sentences"] == []


def test_a_refusal_of_one_model_leaves_what_another_told(run: Path) -> None:
    card = read_run(run, "mine:by_place", {"n": 2})
    assert card["single"]["draws"] == 0.5 and card["cost"]["seconds"] == 0.25


def test_who_was_not_asked_has_no_card(run: Path) -> None:
    with pytest.raises(TouchstoneError, match="did not ask 'Nobody'"):
        read_run(run, "Nobody", {})


def test_an_unknown_explainer_is_refused_before_anything_runs(small_outputs: Path) -> None:
    with pytest.raises(TouchstoneError, match="Integrated Gradient.*Integrated Gradients"):
        run_with("Integrated Gradient", {})
    assert not (small_outputs / "assay").exists()


def test_a_rule_has_a_card_of_the_run_as_it_is(small_outputs: Path, monkeypatch: Any) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(cards, "run_jobs", lambda jobs: asked.extend(job.all for job in jobs))
    for name in ("Even", "mine:by_place"):
        run_with(name, {})
    of_rule, of_function = (job["explainers"] for job in asked if "explainers" in job)
    assert set(of_function) - set(of_rule) == {"mine:by_place"} and "Even" not in of_rule


def test_somebodys_own_texts_have_a_run_of_their_own(
    small_outputs: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(cards, "run_jobs", asked.extend)
    folder = tmp_path / "tale"
    assert run_with("LIME", {}, folder) == small_outputs / "assay" / "card-tale"
    first, *later = (job.all for job in asked)
    assert first["texts_of"] == {"geco": str(folder)} and first["longest"] == 24
    assert {values["scale"] for values in [first, *later]} == {"card-tale"}
    assert [job.folder.parent.name for job in asked] == ["card-tale"] * 4
    asked.clear()
    run_with("Even", {}, folder, "01_data_generation")
    assert [job.stage for job in asked] == ["01_data_generation"]


def hand_in(folder: Path, run: Path, **about: Any) -> None:
    items = telling_items(pd.read_parquet(run / "02_training" / "truths.parquet"))
    folder.mkdir(parents=True)
    told = {"author": "A", "method": "ours", "settings": {"k": 1}, "code": "", "tuned": False}
    (folder / ABOUT).write_text(yaml.safe_dump(told | about))
    scores = [[1.0, 1.0, 1.0, 1.0, 1.0]] * len(items)
    save_parquet(pd.DataFrame({"item_id": items["item_id"], "scores": scores}), folder / NUMBERS)


def test_a_submission_stands_beside_our_explainers(run: Path, tmp_path: Path) -> None:
    assert boards.read_submissions(tmp_path / "none", run) == []
    hand_in(tmp_path / "handed" / "first", run)
    found = boards.read_submissions(tmp_path / "handed", run)
    table = boards.board(run, found)
    assert list(table) == list(COLUMNS) and set(table["role"]) == {
        "explainer",
        "floor",
        "submission",
    }
    theirs = table[table["role"] == "submission"].set_index("truth")
    assert set(theirs["explainer"]) == {"first: ours"} and set(theirs["author"]) == {"A"}
    assert theirs.loc["mask", "value"] == pytest.approx(0), "all words alike, as the floor has it"
    assert "model-blind" in theirs["remarks"].iloc[0]
    assert "same answers as Even" in theirs["remarks"].iloc[0]
    assert "not blind" in theirs["remarks"].iloc[0]
    ours = table.query("explainer == 'mine:by_place' and truth == 'mask'").iloc[0]
    assert (ours["author"], ours["settings"]) == ("Touchstone", '{"n": 2}')
    assert "first: ours" in render_board(table, "Scale small.")


def answers_of(run: Path, path: Path, truths: list[str], drop: int = 0) -> Path:
    asked = items_to_answer(pd.read_parquet(run / "02_training" / "truths.parquet"))
    some = asked[asked["truth"].isin(truths)]["item_id"].tolist()[drop:]
    save_parquet(
        pd.DataFrame({"item_id": some, "scores": [[5.0, 4.0, 3.0, 2.0, 1.0]] * len(some)}), path
    )
    return path


def test_a_file_has_a_card_of_the_truths_that_it_answers_whole(run: Path, tmp_path: Path) -> None:
    path = answers_of(run, tmp_path / "mine.parquet", ["mask"])
    card = card_of_file(run, path, "mine")
    check_card(card)
    rows = {row["truth"]: row for row in card["truths"]}
    ours = {row["truth"]: row for row in read_run(run, "mine:by_place", {"n": 2})["truths"]}
    assert rows["mask"]["raw"] == ours["mask"]["raw"] and rows["mask"]["best"] == "Honest"
    assert rows["edit"]["raw"] is None and rows["edit"]["why"] == "the file has 0 of 8 items"
    assert card["notes"][0] == NOT_BLIND and "model-blind" in card["notes"][1]
    assert card["single"] == {"draws": None, "trainings": 1.0}
    assert card["cost"] == {"seconds": None, "quality": []} and card["gate"] is None
    assert [sentence["which"] for sentence in card["sentences"]] == ["good", "typical", "bad"]


def test_a_file_that_answers_no_truth_whole_is_refused(run: Path, tmp_path: Path) -> None:
    path = answers_of(run, tmp_path / "mine.parquet", ["mask"], drop=1)
    with pytest.raises(TouchstoneError, match="of mask it has 7 of 8 items"):
        card_of_file(run, path, "mine")


def test_a_file_that_is_not_there_names_the_items(run: Path, tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match=r"no file .*none.parquet.*items in asked.csv"):
        check_file(tmp_path / "none.parquet", Path("asked.csv"))


@pytest.mark.parametrize("words", [["card"], ["card", "LIME", "--file", "scores.parquet"]])
def test_a_card_is_of_an_explainer_or_of_a_file(words: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(words)
    assert "name an explainer, or a file" in capsys.readouterr().err


def test_what_was_named_decides_what_runs(tmp_path: Path, monkeypatch: Any) -> None:
    ran: list[tuple[str, Any]] = []
    made = tmp_path / "run"
    for name in ("run_with", "run_small"):
        monkeypatch.setattr(make, name, lambda *given, name=name: ran.append((name, given)) or made)
    for name in ("read_run", "card_of_file", "own_card"):
        monkeypatch.setattr(make, name, lambda *given, name=name: {name: given})
    file, model = tmp_path / "scores.parquet", tmp_path / "model"
    file.touch()
    assert make.make_card("LIME", {"n_samples": 9}, None, None, tmp_path) == {
        "read_run": (made, "LIME", {"n_samples": 9})
    }
    assert "card_of_file" in make.make_card("scores", {}, file, None, tmp_path)
    own = make.make_card("LIME", {}, None, model, tmp_path)["own_card"]
    assert own[:2] == (model, made / "01_data_generation") and own[2]["n_bootstrap"] == 200
    assert make.make_card("scores", {}, file, model, tmp_path)["own_card"][-1] == file
    assert [name for name, _ in ran] == ["run_with", *["run_small"] * 3]
    with pytest.raises(TouchstoneError, match="LIMEE.*LIME"):
        make.make_card("LIMEE", {}, None, model, tmp_path)
    with pytest.raises(TouchstoneError, match=r"no file .*none.parquet.*asked.csv"):
        make.make_card("none", {}, tmp_path / "none.parquet", None, tmp_path)


def test_a_card_about_somebodys_own_texts_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    ran: list[Any] = []
    made, texts = tmp_path / "run", tmp_path / "tale"
    accuracy = {"model": ["gender", "gender", "reviews"], "accuracy": [0.8, 1.0, 0.1]}
    save_csv(pd.DataFrame(accuracy), made / "02_training" / "accuracy.csv")
    monkeypatch.setattr(make, "run_with", lambda *given: ran.append(given) or made)
    monkeypatch.setattr(make, "run_small", lambda *_: pytest.fail("our texts were asked for"))
    for name in ("read_run", "card_of_file", "own_card"):
        monkeypatch.setattr(make, name, lambda *_, name=name: {"notes": [name]})
    file, model = tmp_path / "scores.parquet", tmp_path / "model"
    file.touch()
    about = {"read_run": (None, None), "card_of_file": (file, None), "own_card": (None, model)}
    for name, given in about.items():
        found = make.make_card("LIME", {}, *given, tmp_path, texts)["notes"]
        assert found[0] == name and f"asked about sentences of {texts}" in found[1]
        is_told = found[1].endswith("is right in 0.90 of those that it has not learnt")
        assert is_told == (name != "own_card"), "of somebody's classifier nothing is known"
    names = [(given[0], given[2], *given[3:]) for given in ran]
    assert names == [
        ("LIME", texts),
        ("Even", texts),
        ("Even", texts, "01_data_generation"),
    ]


def test_the_command_hands_on_the_folder_and_refuses_few_texts(
    small_outputs: Path,
    tmp_path: Path,
    a_data_set: Callable[[Path, int], Path],
    monkeypatch: Any,
    capsys: Any,
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(make, "make_card", lambda *about: given.append(about) or {})
    monkeypatch.setattr("lib.doors.card.save_card", lambda card, out: out / "card.html")
    texts = a_data_set(tmp_path / "tale", 70)
    assert cli.main(["card", "LIME", "--texts", str(texts)]) == 0
    assert given[0][-2:] == (small_outputs / "cards" / "LIME_on_tale", texts)
    assert cli.main(["card", "LIME", "--texts", str(a_data_set(tmp_path / "few", 8))]) == 1
    told = capsys.readouterr().err
    assert "8 sentences of at most 24 words" in told and "a card needs 6 and 66" in told
    assert cli.main(["card", "LIME", "--texts", str(tmp_path / "none")]) == 1
    assert "name a folder that touchstone dataset made" in capsys.readouterr().err
    assert len(given) == 1, "nothing ran"
