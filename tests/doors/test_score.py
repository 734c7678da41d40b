"""`touchstone score` and `touchstone ask`: files held against the items of each study."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from small_models import as_rows

from lib import cli
from lib.attribution import save_explanations
from lib.core.errors import TouchstoneError
from lib.core.files import save_parquet
from lib.doors import from_words
from lib.doors.score import floor_explanations, score_file, score_words
from lib.studies.cebab.hand_in import HAND_IN as CEBAB
from lib.studies.geco.corpus import DATASETS, write_geco
from lib.studies.geco.hand_in import HAND_IN as GECO
from lib.studies.implicit_bias.hand_in import HAND_IN as BIAS
from lib.studies.lm_saliency.hand_in import HAND_IN as LM
from lib.studies.lm_saliency.lines import save_sets, write_agreement

GENDER = {0: "female", 1: "male", 2: "neutral"}


def geco_folder(folder: Path) -> Path:
    rows = as_rows(["she sings the old song .", "he sings a song ."], [0, 1])
    rows["ground_truth"] = [[1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]
    rows["gender"] = rows["target"].map(GENDER)
    write_geco(rows, folder / DATASETS["D_A"] / "test.jsonl")
    return folder


def value(table: pd.DataFrame, method: str, measure: str) -> float:
    [found] = table[(table["method"] == method) & (table["measure"] == measure)]["estimate"]
    return found


def test_geco_masks_and_floors(tmp_path: Path) -> None:
    folder = geco_folder(tmp_path / "data")
    items = GECO.read(folder)
    made = from_words(items, [[1, 0, 1, 0, 0, 0], [1, 0, 0, 0, 1]], "mine")
    save_explanations(tmp_path / "mine.parquet", made)
    table = score_file(tmp_path / "mine.parquet", folder, GECO)
    assert value(table, "mine", "MA") == 0.5 and value(table, "First pronoun", "MA") == 1
    assert value(table, "mine", "share") == pytest.approx((1 / 6 + 1 / 5) / 2)
    assert set(table["method"]) == {"mine", "Uniform random", "First pronoun", "Pronoun list"}
    some = made[:1]  # a file may explain some rows; the floors then have these
    save_explanations(tmp_path / "some.parquet", some)
    table = score_file(tmp_path / "some.parquet", folder, GECO)
    assert set(table["n"]) == {1}


def test_floors_see_no_model() -> None:
    made = floor_explanations("First pronoun", as_rows(["the song she sings"]))
    assert made["scores"].tolist() == [[0, 0, 1, 0]] and made["scheme"].tolist() == ["-"]


LINES = pd.DataFrame(
    {
        "prefix": ["the keys to the cabinet".split(), "the key to the cabinets".split()],
        "tag": [1, 0],
        "cues": [[(1, 1)], [(1, 1)]],
        "attractors": [[(4, 4)], [(4, 4)]],
        "pattern": "p",
        "cluster": ["a", "b"],
    }
)


def test_agreement_lines_are_held_to_the_expected_test(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    save_sets({"Syneval": LINES}, folder / "sets.parquet")
    items = LM.read(folder)
    made = from_words(items, [[0, 2, 0, 0, 1], [0, 1, 0, 0, 1]], "mine")
    save_explanations(tmp_path / "mine.parquet", made)
    table = score_file(tmp_path / "mine.parquet", folder, LM)
    assert value(table, "mine", "passed") == 0.5  # a tie fails
    assert value(table, "Random", "passed") == 0.5 and value(table, "Nearest", "passed") == 0
    asked = LM.ask(pd.concat([items, items.assign(dataset="Winobias")]))["question"]
    forms = ["plural", "singular", "female", "male"]
    assert all(f" {form} form" in text for form, text in zip(forms, asked, strict=True))


def test_tarsius_files_are_read_beside_a_set(tmp_path: Path) -> None:
    folder, out = tmp_path / "Syneval", tmp_path / "theirs"
    write_agreement(LINES, folder)
    out.mkdir()
    (out / "out.verum").write_text("[0, 2, 0, 0, 1]\n[0, 0, 0, 0, 1]\n")
    (out / "out.malum").write_text("[0, 2, 0, 0, 1]\n[0, 0, 0, 0, 1]\n")
    (out / "out.pos.idx").write_text("0\n")
    table = score_file(out, folder, LM)
    assert value(table, "theirs", "passed") == 1  # the second line is no expected one
    save_sets({"one": LINES, "two": LINES}, tmp_path / "both" / "sets.parquet")
    with pytest.raises(TouchstoneError, match="does not say which set it explains; name the set"):
        score_file(out, tmp_path / "both", LM)


def test_the_word_that_a_pronoun_is_of(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    sentences = pd.DataFrame(
        {
            "sentence_id": ["s1"],
            "masked": [["the", "nurse", "lost", "[MASK]", "hat"]],
            "antecedent_at": [1],
        }
    )
    save_parquet(sentences, folder / "sentences.parquet")
    made = from_words(BIAS.read(folder), [[0, 3, 1, 0, 0]], "mine")
    save_explanations(tmp_path / "mine.parquet", made)
    table = score_file(tmp_path / "mine.parquet", folder, BIAS)
    assert value(table, "mine", "MA") == 0.75 and value(table, "mine", "roc_auc") == 1


def cebab_folder(folder: Path) -> Path:
    texts = pd.DataFrame(
        {"dataset": "world", "text_id": ["a", "b", "c"], "rating": [5, 1, 0], "group": "a"}
    )
    pairs = pd.DataFrame(
        {
            "dataset": "world",
            "split": "test",
            "group": "a",
            "base_id": ["a", "b", "a"],
            "counterfactual_id": ["b", "a", "c"],
            "aspect": "food",
            "old": ["Positive", "Negative", "Positive"],
            "new": ["Negative", "Positive", "Negative"],
        }
    )
    save_parquet(texts, folder / "texts.parquet")
    save_parquet(pairs, folder / "pairs.parquet")
    return folder


ESTIMATES = pd.DataFrame(
    {
        "base_id": ["a", "b", "a"],
        "counterfactual_id": ["b", "a", "c"],
        "e_1": [0.5, 0.5, 0.0],
        "e_2": [-0.5, -0.5, 0.0],
    }
)


def test_estimates_beside_readers_and_beside_a_model(tmp_path: Path) -> None:
    folder, file = cebab_folder(tmp_path / "data"), tmp_path / "mine.csv"
    ESTIMATES.to_csv(file, index=False)
    table = score_file(file, folder, CEBAB)
    assert value(table, "mine", "direction") == 0.5  # two pairs have a direction
    assert value(table, "Goal of the edit", "direction") == 1
    answers = pd.DataFrame({"text_id": list("abc"), "p_1": [0.1, 0.6, 0.1], "p_2": [0.9, 0.4, 0.9]})
    answers.to_csv(tmp_path / "p.csv", index=False)
    table = score_file(file, folder, CEBAB, predictions=tmp_path / "p.csv")
    assert value(table, "mine", "L2") == pytest.approx((0 + 2**0.5) / 3, abs=1e-6)
    assert value(table, "Zero", "L2") == pytest.approx(2 / 3 * 0.5 * 2**0.5)
    answers[:2].to_csv(tmp_path / "p.csv", index=False)
    wrong = {
        r"text 'c' and 0 others have no predictions; hand in a row": answers[:2],
        r"'a'.* twice": pd.concat([answers, answers[:1]]),
        r"text 'b' are \[0\.6, 0\.9\]; they must be at least 0 and sum": answers.assign(p_2=0.9),
        r"has 3 classes and .*mine\.csv has 2; write a column": answers.assign(p_3=0.0),
    }
    for message, table in wrong.items():
        table.to_csv(tmp_path / "p.csv", index=False)
        with pytest.raises(TouchstoneError, match=r"p\.csv.*" + message):
            score_file(file, folder, CEBAB, predictions=tmp_path / "p.csv")


def test_a_method_may_not_have_the_name_of_a_floor(tmp_path: Path) -> None:
    rows = as_rows(["she sings .", "he sings ."], [0, 1])
    rows["ground_truth"] = [[1, 0, 0]] * 2
    mine = from_words(rows, [[1.0, 2.0, 3.0]] * 2, "Uniform random", scheme="-")
    save_explanations(tmp_path / "mine.parquet", mine)
    with pytest.raises(TouchstoneError, match="Uniform random is the name of a floor"):
        score_words(tmp_path / "mine.parquet", rows)


def test_bad_files_are_refused_by_name_row_and_remedy(tmp_path: Path) -> None:
    folder = geco_folder(tmp_path / "data")
    cases: dict[str, tuple[Path, Path, str]] = {
        "none": (tmp_path / "no.parquet", folder, "no.parquet; correct the path"),
        "text": (tmp_path / "a.txt", folder, "a.txt is no .parquet file"),
        "folder": (tmp_path / "a.txt", tmp_path / "nowhere", "there are no items in"),
        "empty": (tmp_path / "a.txt", tmp_path, "holds no non_binary_gender_all/test.jsonl; run"),
    }
    (tmp_path / "a.txt").write_text("he")
    for file, items, message in cases.values():
        with pytest.raises(TouchstoneError, match=re.escape(message)):
            score_file(file, items, GECO)
    made = from_words(
        as_rows(["she sang the old song ."]), [[1, 0, 0, 0, 0, 0]], "mine", dataset="D_A"
    )
    save_explanations(tmp_path / "mine.parquet", made)
    with pytest.raises(TouchstoneError, match="mine.parquet: .*row 0-F.*has the word 'sang'"):
        score_file(tmp_path / "mine.parquet", folder, GECO)
    with pytest.raises(TouchstoneError, match="holds neither pairs.parquet nor the published"):
        CEBAB.read(tmp_path)
    with pytest.raises(TouchstoneError, match=r"holds no sentences\.parquet; run"):
        BIAS.read(tmp_path)
    ESTIMATES[:2].to_csv(tmp_path / "e.csv", index=False)
    with pytest.raises(TouchstoneError, match=r"e\.csv.*pair a > c .*have no estimate"):
        score_file(tmp_path / "e.csv", cebab_folder(tmp_path / "cebab"), CEBAB)


def test_the_commands_ask_score_and_say_what_needs_a_model(tmp_path: Path, capsys) -> None:
    folder, asked = str(geco_folder(tmp_path / "data")), tmp_path / "questions.jsonl"
    assert cli.main(["ask", "geco", str(asked), "--data", folder]) == 0
    assert "2 questions in" in capsys.readouterr().out
    lines = [json.loads(line) for line in asked.read_text().splitlines()]
    assert "speaks of a woman" in lines[0]["prompt"]
    answers = tmp_path / "rule.jsonl"
    said = ['["she"]', "I cannot say."]
    answers.write_text(
        "".join(
            json.dumps({"id": line["id"], "answer": answer}) + "\n"
            for line, answer in zip(lines, said, strict=True)
        )
    )
    out = tmp_path / "table.csv"
    arguments = ["score", str(answers), "--study", "geco", "--data", folder, "--out", str(out)]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "1 answered, 1 refused" in printed and GECO.needs_model in printed
    assert value(pd.read_csv(out), "rule", "MA") == pytest.approx((1 + 0.2) / 2)
    assert cli.main(["score", str(answers), "--study", "gecko"]) == 1
    assert "there is no study 'gecko'; did you mean 'geco'?" in capsys.readouterr().err
    assert cli.main(["ask", "cebab", str(asked), "--data", folder]) == 1
    assert "cebab asks for no words" in capsys.readouterr().err
    more = ["--predictions", str(out)]
    assert cli.main([*arguments, *more]) == 1
    assert "geco takes no predictions; leave --predictions out" in capsys.readouterr().err


@pytest.mark.parametrize("study", cli.STUDIES)
def test_every_study_is_registered(study: str) -> None:
    hand_in = cli._hand_in(study)
    assert hand_in.measures and hand_in.needs_model.endswith(".")
