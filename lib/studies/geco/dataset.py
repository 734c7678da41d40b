"""Any English text as a gender-controlled data set: `make dataset TEXT=FOLDER`, which calls
`touchstone dataset FOLDER`.

From a folder of `.txt` and `.md` files come the four data sets in GECO's format, a card, Croissant
metadata, a report and a review page. Decisions that a reader saves on that page as `decisions.json`
are applied when the command is run again. A file `card.yaml` beside the texts says what only their
owner can say: licence, creator, how to cite.
"""

import argparse
import random
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pandas as pd
import spacy
from spacy.tokens import Doc

from ...core.cards import dataset_card, read_card
from ...core.errors import TouchstoneError
from ...core.files import read_utf8, save_csv, save_json, write_atomic
from ...core.paths import material, outputs_root
from ...language.annotator import annotate_sentence
from ...language.labels import Label
from ...language.lexicon import load_lexicon
from ...language.names import names_of_text
from ...language.parse import ENVIRONMENT, annotate, load_pipeline, split_sentences, text_id
from .corpus import DATASETS, SPLITS, write_geco
from .doubts import THEY, Doubts, doubts
from .labels import CONTENTS, labelled_rows
from .metadata import croissant, with_own_parts
from .review import (
    CARD,
    DECISIONS,
    Decision,
    apply_decisions,
    decisions_left,
    match_decisions,
    read_decisions,
    report,
    review_page,
    to_be_said,
)

_SUFFIXES = (".txt", ".md")
_MAX_WORDS = 60  # longer "sentences" are lists and tables


def read_texts(folder: Path) -> dict[str, str]:
    """The sentences of a folder of texts by id ("emma-0007").

    A block of lines is a paragraph; headings are left out.

    Raises:
        TouchstoneError: the folder holds no texts, a file is not UTF-8, or two files give the same
        ids.
    """
    if not folder.is_dir():
        raise TouchstoneError(f"{folder} is not a folder; hand in the folder that holds your texts")
    files = sorted(
        p for p in folder.iterdir() if p.suffix.lower() in _SUFFIXES and p.name[0] != "."
    )
    if not files:
        raise TouchstoneError(
            f"{folder} holds no {' or '.join(_SUFFIXES)} file; put your texts there as plain text"
        )
    sentences: dict[str, str] = {}
    stems: dict[str, Path] = {}
    for file in files:
        stem = text_id(file.stem) or f"text_{len(stems) + 1}"
        # Emma.txt and emma.md, or two names that differ in signs alone
        if stem in stems:
            raise TouchstoneError(
                f"{file} and {stems[stem].name} give the same ids ({stem}-0001); rename one of "
                f"the two"
            )
        stems[stem] = file
        of_file = [
            sentence
            for block in re.sub(r"\r\n?", "\n", read_utf8(file)).split("\n\n")
            for sentence in split_sentences(_plain(block))
        ]
        sentences |= {f"{stem}-{k:04d}": sentence for k, sentence in enumerate(of_file, start=1)}
    if not sentences:
        raise TouchstoneError(f"the files in {folder} hold no sentences; write some text into them")
    return sentences


def label_texts(docs: Mapping[str, Doc]) -> tuple[dict[str, Label], dict[str, Label], pd.DataFrame]:
    """The labels of the sentences that tell of somebody, and empty ones of those that may.

    A sentence may tell of somebody if it has a proper noun or a form of "they".

    Returns:
        Both kinds of labels by id, and what was left after each step (step, sentences).
    """
    first = {doc.text: key for key, doc in reversed(list(docs.items()))}
    unique = {key: doc for key, doc in docs.items() if first[doc.text] == key}
    short = {key: doc for key, doc in unique.items() if len(doc) <= _MAX_WORDS}
    known = names_of_text(short.values(), load_lexicon())
    labels = {key: annotate_sentence(doc, key, known_names=known) for key, doc in short.items()}
    labelled = {key: label for key, label in labels.items() if label.all}
    others = {
        key: label
        for key, label in labels.items()
        if not label.all
        and any(token.pos_ == "PROPN" or token.lower_ in THEY for token in docs[key])
    }
    counts = {
        "sentences": len(docs),
        "no duplicate": len(unique),
        f"at most {_MAX_WORDS} words": len(short),
        "with a gendered word or a name": len(labelled),
    }
    return labelled, others, pd.DataFrame(counts.items(), columns=["step", "sentences"])


def split_labels(
    labels: Mapping[str, Label], test_share: float, seed: int
) -> dict[str, dict[str, pd.DataFrame]]:
    """The rows of the four data sets by name and split.

    All forms of a sentence fall on the same side.

    Args:
        test_share: the share of the sentences that are kept for testing, between 0 and 1.
    """
    if not 0 < test_share < 1:
        raise TouchstoneError(
            f"test_share is {test_share}; use a number between 0 and 1, 0.2 for instance"
        )
    data: dict[str, dict[str, pd.DataFrame]] = {}
    # a test set of a very short text still has a sentence
    n_test = max(1, round(test_share * len(labels)))
    chosen = set(random.Random(seed).sample(range(len(labels)), n_test))
    for name, content in CONTENTS.items():
        rows = labelled_rows(list(labels.values()), *content)
        # where nothing is altered, the forms would be one sentence
        rows = rows[rows["ground_truth"].map(any)]
        is_test = rows["sentence_idx"].isin(chosen)
        data[name] = {"train": rows[~is_test], "test": rows[is_test]}
    return data


def build_dataset(
    text: Path,
    out: Path,
    pipeline: str,
    test_share: float = 0.2,
    seed: int = 1234,
    published: date | None = None,
) -> pd.DataFrame:
    """Make everything: review page, data sets, counts, report, card, Croissant.

    The page is written first, so that it is there whatever else is refused.

    Args:
        text: the folder of texts.
        out: where to write.
        pipeline: a spaCy pipeline's name or path, or "environment".
        published: the date on the card (today).

    Returns:
        The table of counts.

    Raises:
        TouchstoneError: what is handed in does not make four data sets with two parts each; of an
            earlier set nothing is replaced then but the page.
    """
    if out.resolve() == text.resolve():
        raise TouchstoneError(
            f"{out} is the folder of the texts, and what is written there would be read as text; "
            "name another folder (--out)"
        )
    sentences, nlp = read_texts(text), load_pipeline(pipeline)
    docs = dict(zip(sentences, annotate(list(sentences.values()), nlp), strict=True))
    labelled, unlabelled, counts = label_texts(docs)
    against = {key: doubts(docs[key], label) for key, label in (labelled | unlabelled).items()}
    decisions, stale = _reviewed(
        f"Review of {text.resolve().name}", out, labelled | unlabelled, against
    )
    labels = apply_decisions(labelled | unlabelled, decisions, str(out / DECISIONS))
    counts.loc[len(counts)] = ["after the reader's decisions", len(labels)]
    if len(labels) < 2:
        raise TouchstoneError(
            f"{text}: {len(labels)} sentences are left, and a training and a test set need two; "
            "hand in more text about people"
        )
    data = split_labels(labels, test_share, seed)
    for name, splits in data.items():
        if empty := [split for split, rows in splits.items() if rows.empty]:
            raise TouchstoneError(
                f"{text}: the data set {DATASETS[name]} has no sentence to {empty[0]} on; give "
                "more text about people, or try another --test-share or --seed"
            )
    name = f"{nlp.path.name} with spaCy {spacy.__version__}"
    day = (published or date.today()).isoformat()
    card = _card(text, counts, len(labels), data, name, len(decisions), day)
    for name_of_set, splits in data.items():
        for split, rows in splits.items():
            write_geco(rows, out / DATASETS[name_of_set] / f"{split}.jsonl")
    save_csv(counts, out / "counts.csv")
    _describe(card, out, data)
    write_atomic(
        out / "report.md",
        report(text, counts, labels, data, against, len(decisions), name)
        + decisions_left(out, stale)
        + to_be_said(text, card),
    )
    return counts


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="touchstone dataset", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "text", help="a folder of .txt and .md files (UTF-8), and a card.yaml if you like"
    )
    parser.add_argument(
        "--out", type=Path, help="where to write (default: outputs/dataset/<name of the folder>)"
    )
    parser.add_argument(
        "--spacy",
        default=ENVIRONMENT,
        help="a spaCy pipeline's name or path (default: $TOUCHSTONE_SPACY)",
    )
    parser.add_argument(
        "--test-share",
        type=float,
        default=0.2,
        help="share of the sentences kept for testing (0.2)",
    )
    parser.add_argument(
        "--seed", type=int, default=1234, help="for the choice of the test sentences (1234)"
    )
    parser.add_argument(
        "--date",
        type=date.fromisoformat,
        help="the date of publication on the card, as 2026-01-31 (default: today)",
    )
    given = parser.parse_args(arguments)
    if not given.text.strip():
        raise TouchstoneError(
            "no folder was named; say which one holds your texts: make dataset TEXT=folder"
        )
    text = Path(given.text)
    out = given.out or outputs_root() / "dataset" / text.resolve().name
    counts = build_dataset(text, out, given.spacy, given.test_share, given.seed, given.date)
    print(counts.to_string(index=False))
    print(
        f"written to {out}: read report.md and review.html, save decisions.json there, and run "
        f"this again"
    )
    print(
        f"next: copy params/geco/small.yaml to params/geco/mine.yaml, write scale: mine and "
        f"data_source: {out.resolve()} there, and run: touchstone run geco --scale mine; or see "
        f"how an explainer does on these texts: touchstone card LIME --texts {out.resolve()}"
    )
    return 0


def _reviewed(
    title: str,
    out: Path,
    labels: Mapping[str, Label],
    against: Mapping[str, Doubts],
) -> tuple[dict[str, Decision], dict[str, Decision]]:
    """Write the page, with the decisions that are there.

    Returns:
        The decisions about a sentence of the text, and the others.
    """
    page = out / "review.html"
    # first without decisions: it is to be there even where their file is refused
    write_atomic(page, review_page(title, labels, against, {}, {}))
    decisions, stale = match_decisions(labels, read_decisions(out / DECISIONS))
    write_atomic(page, review_page(title, labels, against, decisions, stale))
    return decisions, stale


def _plain(block: str) -> str:
    return " ".join(
        " ".join(line for line in block.splitlines() if not line.startswith("#")).split()
    )


def _card(
    text: Path,
    counts: pd.DataFrame,
    n_labels: int,
    data: Mapping[str, Mapping[str, pd.DataFrame]],
    pipeline: str,
    n_decisions: int,
    published: str,
) -> dict[str, object]:
    """The parts of the card: ours, with those that the owner wrote."""
    numbers = {
        "folder": text.resolve().name,
        "sentences": int(counts["sentences"].iloc[0]),
        "base_sentences": n_labels,
        "train_base": data["D_A"]["train"]["sentence_idx"].nunique(),
        "pipeline": pipeline,
        "decisions": n_decisions,
        "test_base": data["D_A"]["test"]["sentence_idx"].nunique(),
        "published": published,
    }
    template = read_card(material("geco") / "user_card.yaml", "user", numbers)
    return with_own_parts(template, text / CARD)


def _describe(card: Mapping[str, object], out: Path, data: Mapping[str, object]) -> None:
    """Write card and Croissant metadata."""
    write_atomic(out / "dataset_card.md", dataset_card(card))
    files = {
        f"{name}_{split}": f"{DATASETS[name]}/{split}.jsonl" for name in data for split in SPLITS
    }
    save_json(croissant(card, out, files), out / "croissant.json")
