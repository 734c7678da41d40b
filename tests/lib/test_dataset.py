"""A user's own text: what comes out, what a reader's decisions change, and what is refused with a clear error."""

from __future__ import annotations

import json
from pathlib import Path

import mlcroissant
import pytest

from lib.corpora import DATASETS, read_geco
from lib.dataset import DECISIONS, build_dataset, label_texts, main, read_texts, split_labels
from lib.errors import TouchstoneError
from lib.labels import Label
from lib.review import apply_decisions, read_decisions, review_page, text_fingerprint

TEXT = "# A tale\n\nThe actress sees her uncle.\nShe waves to him.\n\nHe laughs and leaves.\nThe king trusts his daughter.\n"
KING = Label("k", ("The", "king", "waits", "."), 1, {}, {1: ("queen", "king", "monarch")}, {1: ("queen", "king", "monarch")})
WAITS = Label("w", ("He", "waits", "."), 0, {}, {0: ("She", "He", "They"), 1: ("waits", "waits", "wait")},
              {0: ("She", "He", "They"), 1: ("waits", "waits", "wait")})
LABELS = {"k": KING, "w": WAITS}


def folder(tmp_path: Path, **files: str) -> Path:
    text = tmp_path / "text"
    text.mkdir()
    for name, content in files.items():
        (text / f"{name}.txt").write_text(content)
    return text


def saved(tmp_path: Path, entry: dict) -> Path:
    path = tmp_path / DECISIONS
    path.write_text(json.dumps({"sentences": {"k": {"text_id": text_fingerprint(KING.words), "rejected": False, "edits": {}} | entry}}))
    return path


def test_everything_is_made(tmp_path: Path, spacy_pipeline: str) -> None:
    out = tmp_path / "out"
    counts = build_dataset(folder(tmp_path, tale=TEXT), out, spacy_pipeline)
    assert list(counts["sentences"]) == [4, 4, 4, 4, 4]
    for name in DATASETS.values():
        assert read_geco(out / name / "train.jsonl").attrs["faults"].empty
    assert {p.name for p in out.iterdir()} > {"report.md", "review.html", "dataset_card.md", "croissant.json", "counts.csv"}
    assert not list(mlcroissant.Dataset(out / "croissant.json").metadata.ctx.issues.errors)
    neutral = {" ".join(row.sentence) for split in ("train", "test")
               for row in read_geco(out / "non_binary_gender_all" / f"{split}.jsonl").itertuples() if row.target == 2}
    assert {"They laugh and leave .", "The monarch trusts their child ."} <= neutral


def test_the_page_is_self_contained_and_names_the_doubtful_first(tmp_path: Path) -> None:
    page = review_page("a & b", LABELS, {"k": [], "w": ["who?"]}, {})
    assert "http" not in page and "<title>a &amp; b</title>" in page
    assert page.index('"id": "w"') < page.index('"id": "k"')


def test_no_text_can_end_the_script(tmp_path: Path) -> None:
    evil = Label("e", ("</script>", "he"), 1, {}, {}, {1: ("she", "he", "they")})
    assert review_page("t", {"e": evil}, {"e": []}, {}).count("</script>") == 2


def test_decisions_reject_and_edit(tmp_path: Path) -> None:
    path = saved(tmp_path, {"edits": {"all": {"1": ["queen", "king", "ruler"], "2": None}}})
    after = apply_decisions(LABELS, read_decisions(path), str(path))
    assert after["k"].all == {1: ("queen", "king", "ruler"), 2: None} and after["k"].subj == KING.subj
    path = saved(tmp_path, {"rejected": True})
    assert list(apply_decisions(LABELS, read_decisions(path), str(path))) == ["w"]


def test_an_edit_back_to_the_original_removes_the_alteration(tmp_path: Path) -> None:
    path = saved(tmp_path, {"edits": {"all": {"1": ["king", "king", "king"]}}})
    assert apply_decisions(LABELS, read_decisions(path), str(path))["k"].all == {}


def test_no_decisions_are_no_decisions(tmp_path: Path) -> None:
    assert read_decisions(tmp_path / DECISIONS) == {}


@pytest.mark.parametrize(("entry", "message"), [
    ({"text_id": "0" * 12}, "no longer holds this sentence"),
    ({"edits": {"all": {"9": ["a", "b", "c"]}}}, "there is no word 9"),
    ({"edits": {"all": {"1": ["a", "b"]}}}, "does not have three words"),
    ({"edits": {"all": {"1": ["a", "b", " "]}}}, "does not have three words"),
    ({"rejected": "yes"}, "neither true nor false"),
    ({"edits": {"all": {"one": ["a", "b", "c"]}}}, "does not hold decisions"),
])
def test_bad_decisions_are_refused(tmp_path: Path, entry: dict, message: str) -> None:
    path = saved(tmp_path, entry)
    with pytest.raises(TouchstoneError, match=message):
        apply_decisions(LABELS, read_decisions(path), str(path))


def test_a_broken_file_of_decisions_is_named(tmp_path: Path) -> None:
    (tmp_path / DECISIONS).write_text("{")
    with pytest.raises(TouchstoneError, match="not valid JSON"):
        read_decisions(tmp_path / DECISIONS)


def test_bad_texts_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TouchstoneError, match="is not a folder"):
        read_texts(tmp_path / "nowhere")
    text = folder(tmp_path)
    with pytest.raises(TouchstoneError, match="holds no .txt or .md file"):
        read_texts(text)
    (text / "a.txt").write_text("\n")
    with pytest.raises(TouchstoneError, match="hold no sentences"):
        read_texts(text)
    (text / "a.txt").write_bytes(b"He caf\xe9.")
    with pytest.raises(TouchstoneError, match="byte 6: not UTF-8"):
        read_texts(text)
    assert main([str(text)]) == 2 and "not UTF-8" in capsys.readouterr().err


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    text = folder(tmp_path, emma="He waits.")
    (text / "emma.md").write_text("She waits.")
    with pytest.raises(TouchstoneError, match="give the same ids"):
        read_texts(text)


def test_text_about_nobody_is_refused(tmp_path: Path, spacy_pipeline: str) -> None:
    with pytest.raises(TouchstoneError, match="a training and a test set need two"):
        build_dataset(folder(tmp_path, a="It rains. The house is empty."), tmp_path / "out", spacy_pipeline)


def test_a_share_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="between 0 and 1"):
        split_labels(LABELS, 1.0, 1)


def test_forms_of_a_sentence_stay_together_and_repetitions_go(spacy_pipeline: str) -> None:
    from lib.text import annotate, load_pipeline

    docs = dict(enumerate(annotate(["He waits.", "He waits.", "She sings."], load_pipeline(spacy_pipeline))))
    labels, counts = label_texts({str(key): doc for key, doc in docs.items()})
    assert list(labels) == ["0", "2"] and list(counts["sentences"]) == [3, 2, 2, 2]
    data = split_labels(labels, 0.5, 3)["D_A"]
    assert not set(data["train"]["sentence_idx"]) & set(data["test"]["sentence_idx"])
