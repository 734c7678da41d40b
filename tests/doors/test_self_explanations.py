"""What language models say of themselves: questions, strict reading, and a rule that answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from small_models import as_rows

from lib.core.errors import TouchstoneError
from lib.doors import read_answers, write_prompts
from lib.doors.self_explanations import FORM, answer_scores, prompts
from lib.metrics import score_explanations

ROWS = as_rows(["he sings the old song .", "she sings a song ."]).assign(
    ground_truth=[[1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0]],
    question="Which words tell who it is?",
    dataset="D_A",
)
IDS = [line["id"] for line in prompts(ROWS)]


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_rule_that_reads_the_questions_is_scored_on_the_same_gold(tmp_path: Path) -> None:
    """The example: whoever answers sees the prompt alone, and names its pronouns."""
    assert write_prompts(ROWS, tmp_path / "questions.jsonl") == 2
    answers = []
    for line in (tmp_path / "questions.jsonl").read_text().splitlines():
        asked = json.loads(line)
        question, text, form = asked["prompt"].split("\n\n")
        assert question == "Which words tell who it is?" and form == FORM
        named = [word for word in text.split() if word in ("he", "she", "they")]
        answers.append({"id": asked["id"], "answer": json.dumps(named)})
    made, counts = read_answers(written(tmp_path / "rule.jsonl", *answers), ROWS)
    assert score_explanations(made, ROWS)["MA"].tolist() == [1.0, 1.0]
    assert counts == {"answered": 2, "refused": 0, "unreadable": 0, "empty": 0, "invented": 0}
    assert made["method"].tolist() == ["rule", "rule"]


@pytest.mark.parametrize(
    ("answer", "kind", "scores", "invented"),
    [
        ('["sings", "he"]', "answered", [1, 1, 0], []),
        (' {"he": 2.5, "sings": -1}\n', "answered", [2.5, -1, 0], []),
        ('["He", "sang"]', "answered", [1, 1, 1], ["He", "sang"]),
        ("[]", "answered", [1, 1, 1], []),
        ("As a model I cannot know.", "refused", [1, 1, 1], []),
        ("", "refused", [1, 1, 1], []),
        ('```json\n["he"]\n```', "unreadable", [1, 1, 1], []),
        ('["he", 2]', "unreadable", [1, 1, 1], []),
        ('{"he": "much"}', "unreadable", [1, 1, 1], []),
        ('{"he": NaN}', "unreadable", [1, 1, 1], []),
        ('{"he": true}', "unreadable", [1, 1, 1], []),
        ('{"he": 1, "he": 2}', "unreadable", [1, 1, 1], []),
        ('[["he"]]', "unreadable", [1, 1, 1], []),
    ],
)
def test_answers_are_read_strictly(
    answer: str, kind: str, scores: list[float], invented: list[str]
) -> None:
    found = answer_scores(answer, ["he", "sings", "."])
    assert (found.kind, found.scores, found.invented) == (kind, scores, invented)


def test_a_word_that_stands_twice_is_meant_twice() -> None:
    assert answer_scores('["the"]', ["the", "old", "the"]).scores == [1, 0, 1]


def test_who_refuses_is_where_chance_is_and_is_counted(tmp_path: Path) -> None:
    lines = [{"id": IDS[1], "answer": "No."}, {"id": IDS[0], "answer": '["he", "sang", "Ann"]'}]
    made, counts = read_answers(written(tmp_path / "a.jsonl", *lines), ROWS, "model")
    assert counts == {"answered": 1, "refused": 1, "unreadable": 0, "empty": 0, "invented": 2}
    scored = score_explanations(made, ROWS)
    assert scored["MA"].tolist() == [1.0, pytest.approx(0.2)]
    assert scored["share"].tolist()[1] == pytest.approx(0.2)
    assert json.loads(made["settings"][0])["refused"] == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"id": "D_A/0-X", "answer": "[]"}], "line 1: nobody asked 'D_A/0-X'; did you mean"),
        ([{"id": IDS[0], "answer": "[]"}] * 2, f"line 2: {IDS[0]} is answered twice; keep one"),
        ([{"id": IDS[0], "answer": ["he"]}], 'line 1 is not {"id": text, "answer": text}'),
        (["he"], 'line 1 is not {"id": text, "answer": text}; write these two'),
        ([], "holds no answer; write a line for each question"),
    ],
)
def test_bad_files_are_refused_with_the_line(
    tmp_path: Path, lines: list[object], message: str
) -> None:
    with pytest.raises(TouchstoneError, match=re.escape(message)) as raised:
        read_answers(written(tmp_path / "a.jsonl", *lines), ROWS)
    assert "a.jsonl" in str(raised.value)


def test_an_answer_about_another_text_is_not_scored_against_this_one(tmp_path: Path) -> None:
    """Two sets of items may number their rows alike; the id holds a fingerprint of the text."""
    others = ROWS.assign(sentence=[[*words[:-1], "else"] for words in ROWS["sentence"]])
    lines = [{"id": asked["id"], "answer": "[]"} for asked in prompts(others)]
    with pytest.raises(TouchstoneError, match="was asked about another text than") as raised:
        read_answers(written(tmp_path / "a.jsonl", *lines), ROWS)
    assert "line 1" in str(raised.value) and "ask again" in str(raised.value)


@pytest.mark.parametrize("cut", ["", "#", "#1a2b"])
def test_an_id_that_was_cut_is_not_taken_for_one_of_another_text(cut: str, tmp_path: Path) -> None:
    name = IDS[0].rpartition("#")[0] + cut
    lines = [{"id": name, "answer": "[]"}]
    with pytest.raises(TouchstoneError, match=f"nobody asked '{name}'; did you mean '{IDS[0]}'"):
        read_answers(written(tmp_path / "a.jsonl", *lines), ROWS)


def test_what_is_no_json_and_rows_without_a_question_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("he\n")
    with pytest.raises(TouchstoneError, match=r"a\.jsonl, line 1 is not valid JSON"):
        read_answers(tmp_path / "a.jsonl", ROWS)
    with pytest.raises(TouchstoneError, match="the rows have no column 'question'"):
        write_prompts(ROWS.drop(columns="question"), tmp_path / "q.jsonl")
