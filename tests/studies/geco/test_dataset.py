"""A user's own text: what comes out, what decisions change, and what is refused."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import mlcroissant
import pytest
import yaml

from lib.core.errors import TouchstoneError
from lib.language.labels import Label
from lib.studies.geco.corpus import DATASETS, read_geco
from lib.studies.geco.dataset import (
    CARD,
    DECISIONS,
    build_dataset,
    label_texts,
    main,
    read_texts,
    split_labels,
)
from lib.studies.geco.doubts import Doubts
from lib.studies.geco.faults import faults_of
from lib.studies.geco.review import (
    apply_decisions,
    match_decisions,
    read_decisions,
    review_page,
    text_fingerprint,
)

TEXT = (
    "# A tale\n\nThe actress sees her uncle.\nShe waves to him.\n\n"
    "He laughs and leaves.\nThe king trusts his daughter.\n"
)
KING = Label(
    "k",
    ("The", "king", "waits", "."),
    1,
    {},
    {1: ("queen", "king", "monarch")},
    {1: ("queen", "king", "monarch")},
)
WAITS = Label(
    "w",
    ("He", "waits", "."),
    0,
    {},
    {0: ("She", "He", "They"), 1: ("waits", "waits", "wait")},
    {0: ("She", "He", "They"), 1: ("waits", "waits", "wait")},
)
LABELS = {"k": KING, "w": WAITS}


def folder(tmp_path: Path, **files: str) -> Path:
    text = tmp_path / "text"
    text.mkdir()
    for name, content in files.items():
        (text / f"{name}.txt").write_text(content)
    return text


def saved(tmp_path: Path, entry: dict) -> Path:
    path = tmp_path / DECISIONS
    path.write_text(
        json.dumps(
            {
                "sentences": {
                    "k": {"text_id": text_fingerprint(KING.words), "rejected": False, "edits": {}}
                    | entry
                }
            }
        )
    )
    return path


def test_everything_is_made(tmp_path: Path, spacy_pipeline: str) -> None:
    out = tmp_path / "out"
    counts = build_dataset(folder(tmp_path, tale=TEXT), out, spacy_pipeline)
    assert list(counts["sentences"]) == [4, 4, 4, 4, 4]
    for name in DATASETS.values():
        assert faults_of(read_geco(out / name / "train.jsonl")).empty
    assert {p.name for p in out.iterdir()} > {
        "report.md",
        "review.html",
        "dataset_card.md",
        "croissant.json",
        "counts.csv",
    }
    assert not list(mlcroissant.Dataset(out / "croissant.json").metadata.ctx.issues.errors)
    neutral = {
        " ".join(row.sentence)
        for split in ("train", "test")
        for row in read_geco(out / "non_binary_gender_all" / f"{split}.jsonl").itertuples()
        if row.target == 2
    }
    assert {"They laugh and leave .", "The monarch trusts their child ."} <= neutral


def page_data(page: str) -> dict:
    """What a page knows: rows and decisions that match no row."""
    return json.loads(page.split('type="application/json">')[1].split("</script>")[0])


def test_the_page_is_self_contained_and_knows_how_doubtful_a_row_is(tmp_path: Path) -> None:
    page = review_page(
        "a & b",
        LABELS,
        {"k": Doubts(["a title: Sir"], ["nearly a toss-up: her"]), "w": Doubts([], [])},
        {},
        {},
    )
    assert "http" not in page and "<title>a &amp; b</title>" in page
    king, waits = page_data(page)["rows"]
    assert king["rank"] == {"all": 1, "subj": 1.01} and waits["rank"] == {"all": 0, "subj": 0}
    assert king["doubts"] == {
        "all": ["a title: Sir"],
        "subj": ["nearly a toss-up: her", "a title: Sir"],
    }


def test_no_text_can_end_the_script(tmp_path: Path) -> None:
    evil = Label("e", ("</script>", "he"), 1, {}, {}, {1: ("she", "he", "they")})
    assert review_page("t", {"e": evil}, {"e": Doubts([], [])}, {}, {}).count("</script>") == 2


def test_no_text_can_begin_a_comment_in_the_script(tmp_path: Path) -> None:
    """After `<!--` and `<script>` a browser reads on to the second `</script>`: an empty page."""
    words = ("<!--", "<script>", "he")
    evil = Label("e", words, 2, {}, {}, {2: ("she", "he", "they")})
    page = review_page("t", {"e": evil}, {"e": Doubts([], [])}, {}, {})
    assert "<!--" not in page and page.count("<script") == 2
    assert page_data(page)["rows"][0]["words"] == list(words)


def test_a_folder_cannot_put_the_data_into_the_heading(tmp_path: Path) -> None:
    evil = Label("e", ("<img onerror=x>", "he"), 1, {}, {}, {1: ("she", "he", "they")})
    page = review_page("{{data}}", {"e": evil}, {"e": Doubts([], [])}, {}, {})
    assert "<h1>{{data}}</h1>" in page and "<img" not in page


def test_decisions_reject_and_edit(tmp_path: Path) -> None:
    path = saved(tmp_path, {"edits": {"all": {"1": ["queen", "king", "ruler"], "2": None}}})
    after = apply_decisions(LABELS, read_decisions(path), str(path))
    assert (
        after["k"].all == {1: ("queen", "king", "ruler"), 2: None} and after["k"].subj == KING.subj
    )
    path = saved(tmp_path, {"rejected": True})
    assert list(apply_decisions(LABELS, read_decisions(path), str(path))) == ["w"]


def test_an_edit_back_to_the_original_removes_the_alteration(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        {"edits": {"all": {"1": ["king", "king", "king"], "2": ["sits", "waits", "stays"]}}},
    )
    assert apply_decisions(LABELS, read_decisions(path), str(path))["k"].all == {
        2: ("sits", "waits", "stays")
    }
    path = saved(tmp_path, {"edits": {"all": {"1": ["king", "king", "king"]}}})
    assert list(apply_decisions(LABELS, read_decisions(path), str(path))) == ["w"], (
        "nothing is altered any more"
    )


def test_no_decisions_are_no_decisions(tmp_path: Path) -> None:
    assert read_decisions(tmp_path / DECISIONS) == {}


def decided(tmp_path: Path, text: Path, pipeline: str, key: str, **entry: object) -> Path:
    """A folder with a decision about one sentence of a text, as the page saves it."""
    words = {k: label.words for k, label in labels_of(text, pipeline).items()}[key]
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    entries = {
        key: {
            "text_id": text_fingerprint(words),
            "text": " ".join(words),
            "rejected": False,
            "edits": {},
        }
        | entry
    }
    (out / DECISIONS).write_text(json.dumps({"sentences": entries}))
    return out


def labels_of(text: Path, pipeline: str) -> dict[str, Label]:
    from lib.language.parse import annotate, load_pipeline

    sentences = read_texts(text)
    found, others, _ = label_texts(
        dict(
            zip(sentences, annotate(list(sentences.values()), load_pipeline(pipeline)), strict=True)
        )
    )
    return found | others


def sentences_of(out: Path) -> set[str]:
    return {
        " ".join(words)
        for split in ("train", "test")
        for words in read_geco(out / DATASETS["D_A"] / f"{split}.jsonl")["sentence"]
    }


def test_a_decision_finds_its_sentence_wherever_it_stands(
    tmp_path: Path, spacy_pipeline: str
) -> None:
    text = folder(tmp_path, tale=TEXT)
    out = decided(tmp_path, text, spacy_pipeline, "tale-0003", rejected=True)
    (text / "tale.txt").write_text("She sings at the window.\n\n" + TEXT)
    build_dataset(text, out, spacy_pipeline)
    rejected = [
        row["id"] for row in page_data((out / "review.html").read_text())["rows"] if row["rejected"]
    ]
    assert rejected == ["tale-0004"] and "He laughs and leaves ." not in sentences_of(out)
    assert "not in the text" not in (out / "report.md").read_text()


def test_a_decision_about_a_sentence_that_has_gone_is_listed_and_kept(
    tmp_path: Path, spacy_pipeline: str
) -> None:
    text = folder(tmp_path, tale=TEXT)
    out = decided(tmp_path, text, spacy_pipeline, "tale-0003", rejected=True)
    (text / "tale.txt").write_text(TEXT.replace("laughs and leaves", "sighs and leaves"))
    (out / "decisions (1).json").write_text("{}")
    build_dataset(text, out, spacy_pipeline)
    report = (out / "report.md").read_text()
    assert "- rejected: He laughs and leaves .\n" in report and "- decisions (1).json\n" in report
    stale = page_data((out / "review.html").read_text())["stale"]
    assert [entry["text"] for entry in stale.values()] == ["He laughs and leaves ."]
    (out / DECISIONS).write_text(json.dumps({"sentences": stale}))  # what the page saves again
    (text / "tale.txt").write_text(TEXT)
    build_dataset(text, out, spacy_pipeline)
    assert "He laughs and leaves ." not in sentences_of(out)


def test_the_page_is_written_even_where_the_decisions_cannot_be_read(
    tmp_path: Path, spacy_pipeline: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / DECISIONS).write_text("{")
    with pytest.raises(TouchstoneError, match="not valid JSON"):
        build_dataset(folder(tmp_path, tale=TEXT), out, spacy_pipeline)
    assert len(page_data((out / "review.html").read_text())["rows"]) == 4


def test_sentences_that_changed_places_keep_their_decisions(tmp_path: Path) -> None:
    path = saved(tmp_path, {"rejected": True})  # about "The king waits ."
    matched, stale = match_decisions({"w": KING, "k": WAITS}, read_decisions(path))
    assert list(matched) == ["w"] and matched["w"].rejected and not stale
    matched, stale = match_decisions({"w": WAITS}, read_decisions(path))
    assert not matched and list(stale) == [f"gone-{text_fingerprint(KING.words)}"]


def test_a_sentence_in_which_nobody_was_found_can_join(tmp_path: Path, spacy_pipeline: str) -> None:
    text = folder(tmp_path, tale=TEXT + "\nThey bring their own lunch.\n\nIt rains.\n")
    edits = {
        "all": {
            "0": ["She", "He", "They"],
            "1": ["brings", "brings", "bring"],
            "2": ["her", "his", "their"],
        }
    }
    out = decided(tmp_path, text, spacy_pipeline, "tale-0005", edits=edits)
    build_dataset(text, out, spacy_pipeline)
    rows = {
        row["id"]: row["labelled"] for row in page_data((out / "review.html").read_text())["rows"]
    }
    assert rows == {
        "tale-0001": True,
        "tale-0002": True,
        "tale-0003": True,
        "tale-0004": True,
        "tale-0005": False,
    }
    assert {"She brings her own lunch .", "They bring their own lunch ."} <= sentences_of(out)


def test_the_owner_says_what_only_the_owner_can(tmp_path: Path, spacy_pipeline: str) -> None:
    text, out = folder(tmp_path, tale=TEXT), tmp_path / "out"
    build_dataset(text, out, spacy_pipeline, published=date(2026, 1, 31))
    report, metadata = (
        (out / "report.md").read_text(),
        json.loads((out / "croissant.json").read_text()),
    )
    assert metadata["datePublished"] == "2026-01-31"
    open_parts = yaml.safe_load(report.split("```yaml\n")[1].split("```")[0])
    assert set(open_parts) == {"licence", "url", "cite", "creator", "sections", "rai"}
    said = (
        yaml.safe_dump(open_parts).replace("(to be said)", "Said -").replace("to-be-said", "said")
    )
    (text / CARD).write_text(said + "version: 1.2\n")
    build_dataset(text, out, spacy_pipeline)
    assert "Still to be said" not in (out / "report.md").read_text()
    metadata = json.loads((out / "croissant.json").read_text())
    assert (metadata["license"], metadata["version"]) == (
        "https://example.org/said/licence-of-your-text",
        "1.2",
    )
    assert (
        metadata["datePublished"] == date.today().isoformat()
        and "By Said - Who you are" in (out / "dataset_card.md").read_text()
    )
    assert not list(mlcroissant.Dataset(out / "croissant.json").metadata.ctx.issues.errors)


@pytest.mark.parametrize("named", ["", "  "])
def test_no_folder_is_not_this_folder(named: str) -> None:
    with pytest.raises(TouchstoneError, match="say which one holds your texts: make dataset TEXT="):
        main([named])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"edits": {"all": {"9": ["a", "b", "c"]}}}, "there is no word 9"),
        ({"edits": {"all": {"1": ["a", "b"]}}}, "does not have three words"),
        ({"edits": {"all": {"1": ["a", "b", " "]}}}, "does not have three words"),
        ({"edits": {"all": {"1": ["The nurse", "b", "c"]}}}, "without blanks"),
        ({"edits": {"all": {"1": ["a", "b\nb", "c"]}}}, "without blanks"),
        ({"edits": {"all": {"1": "abc"}}}, "does not have three words"),
        ({"edits": {"every": {"1": ["a", "b", "c"]}}}, "edits of every, which is neither"),
        ({"rejected": "yes"}, "neither true nor false"),
        ({"edits": {"all": {"one": ["a", "b", "c"]}}}, "position 'one' is no whole number"),
    ],
)
def test_bad_decisions_are_refused(tmp_path: Path, entry: dict, message: str) -> None:
    path = saved(tmp_path, entry)
    with pytest.raises(TouchstoneError, match=message):
        apply_decisions(LABELS, read_decisions(path), str(path))


def test_a_broken_file_of_decisions_is_named(tmp_path: Path) -> None:
    (tmp_path / DECISIONS).write_text("{")
    with pytest.raises(TouchstoneError, match="not valid JSON"):
        read_decisions(tmp_path / DECISIONS)


def test_bad_texts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="is not a folder"):
        read_texts(tmp_path / "nowhere")
    text = folder(tmp_path)
    with pytest.raises(TouchstoneError, match="holds no .txt or .md file"):
        read_texts(text)
    (text / "a.txt").write_text("\n")
    with pytest.raises(TouchstoneError, match="hold no sentences"):
        read_texts(text)
    (text / "a.txt").write_bytes(b"He caf\xe9.")
    with pytest.raises(TouchstoneError, match="a.txt, line 1: the bytes are not UTF-8"):
        read_texts(text)
    with pytest.raises(TouchstoneError, match="not UTF-8"):
        main([str(text)])


def test_a_text_may_be_named_in_capitals(tmp_path: Path) -> None:
    text = folder(tmp_path)
    (text / "A.TXT").write_text("He waits.")
    assert read_texts(text) == {"a-0001": "He waits."}


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    text = folder(tmp_path, emma="He waits.")
    (text / "emma.md").write_text("She waits.")
    with pytest.raises(TouchstoneError, match="give the same ids"):
        read_texts(text)


def test_text_about_nobody_is_refused(tmp_path: Path, spacy_pipeline: str) -> None:
    with pytest.raises(TouchstoneError, match="a training and a test set need two"):
        build_dataset(
            folder(tmp_path, a="It rains. The house is empty."), tmp_path / "out", spacy_pipeline
        )


def test_a_set_without_sentences_and_a_card_that_is_none_replace_nothing(
    tmp_path: Path, spacy_pipeline: str
) -> None:
    text, out = folder(tmp_path, tale=TEXT), tmp_path / "out"
    build_dataset(text, out, spacy_pipeline)
    kept = {p: p.read_bytes() for p in out.rglob("*") if p.is_file() and p.suffix != ".html"}
    (text / "card.yaml").write_text("- a list\n")
    (text / "tale.txt").write_text(TEXT + "\nThe queen sings.\n")
    with pytest.raises(TouchstoneError, match=r"card\.yaml does not map"):
        build_dataset(text, out, spacy_pipeline)
    (text / "card.yaml").unlink()
    (text / "tale.txt").write_text("The stone hit her.\n\nThe rain fell on his coat.\n")
    with pytest.raises(TouchstoneError, match=r"_subj has no sentence to train on; give more text"):
        build_dataset(text, out, spacy_pipeline)
    assert kept == {p: p.read_bytes() for p in kept}, "what was there stays, but for the page"
    with pytest.raises(TouchstoneError, match="is the folder of the texts.*name another folder"):
        build_dataset(text, text, spacy_pipeline)


def test_a_share_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="between 0 and 1"):
        split_labels(LABELS, 1.0, 1)


def test_forms_of_a_sentence_stay_together_and_repetitions_go(spacy_pipeline: str) -> None:
    from lib.language.parse import annotate, load_pipeline

    docs = dict(
        enumerate(annotate(["He waits.", "He waits.", "She sings."], load_pipeline(spacy_pipeline)))
    )
    labels, _, counts = label_texts({str(key): doc for key, doc in docs.items()})
    assert list(labels) == ["0", "2"] and list(counts["sentences"]) == [3, 2, 2, 2]
    data = split_labels(labels, 0.5, 3)["D_A"]
    assert not set(data["train"]["sentence_idx"]) & set(data["test"]["sentence_idx"])
