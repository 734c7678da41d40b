"""Corpora in GECO's format, read, written and fetched: JSON lines, one form of a sentence each."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ...core.downloads import check_files, download, download_folder
from ...core.errors import TouchstoneError
from ...core.files import parse_json, read_text, write_atomic
from ...core.stage import Stage, locate_external
from ...language.visible import HALF, is_visible
from .faults import drop_faulty, find_format_faults, keep_faults, repair_rows

CLASSES = ("F", "M", "NB")
GENDERS = ("female", "male", "neutral")
DATASETS = {
    "D_A": "non_binary_gender_all",
    "D_S": "non_binary_gender_subj",
    "D_A_binary": "binary_gender_all",
    "D_S_binary": "binary_gender_subj",
}
SPLITS = ("train", "test")
_CHOICES = {
    "data_source": ("bundled", "geco"),
    "on_fault": ("repair", "keep", "drop"),
    "gold": ("published", "corrected"),
}
COLUMNS = ["row_id", "sentence_idx", "target", "gender", "sentence", "ground_truth"]
_EXPECTED = (
    "{sentence: [words], ground_truth: [0 or 1 per word], target: 0 | 1 | 2, sentence_idx: number}"
)

_LARGEST = 2**63 - 1  # of a whole number in a table
_GECO_COMMIT = "f0907c6"
_GECO_URL = f"https://github.com/braindatalab/gecobench/raw/{_GECO_COMMIT}/data/dataset"
GECO_SHA256 = {
    "binary_gender_all/test.jsonl": (
        "60f4f84ec5aa1d23eba47bec31e2e22b8c78557a2b28314549ab832d99960edd"
    ),
    "binary_gender_all/train.jsonl": (
        "2763003165719d26ef66503ef3943b782a77e4ef9741098a8e18ad1592ad0df9"
    ),
    "binary_gender_subj/test.jsonl": (
        "0ff41288c3691acc46a6df62a4fab407703e2c5a7a8e09f6cd71b3a679869d79"
    ),
    "binary_gender_subj/train.jsonl": (
        "590549986d54f2a7d5e49e2bcd66473e0ce79d53879960751c9e39395115f066"
    ),
    "non_binary_gender_all/test.jsonl": (
        "08d5803e7b6aed5d3f894127a9f88b93ee3e9e35245e261444c68cb5bf57fdb6"
    ),
    "non_binary_gender_all/train.jsonl": (
        "ef1b972be4c3485027db7ead0df5dfeb4a4082e61a642c0da9d2eb7724ac8849"
    ),
    "non_binary_gender_subj/test.jsonl": (
        "a8f8dc273edfddfb800ef98d6747de68e01c6b0c8c6dffb39a62f6cb410a393f"
    ),
    "non_binary_gender_subj/train.jsonl": (
        "ffee51c528469ab94ce4ba272065d385c2b351c84c931dd478288952c9cd7859"
    ),
}


def check_choices(
    data_source: str = "geco", on_fault: str = "repair", gold: str = "published"
) -> None:
    """Accept what the parameters may say of the data, and what of it goes together.

    Args:
        data_source: `bundled` (our text), `geco` (the published files), or a folder that
            `touchstone dataset` made: a path, with a slash in it.
        on_fault: `repair`, `keep` or `drop`, as in `read_geco`.
        gold: `published`, or `corrected` for the published data with their form repaired.

    Raises:
        TouchstoneError: a choice is another one, or the three do not go together.
    """
    given = (data_source, on_fault, gold)
    for (name, known), choice in zip(_CHOICES.items(), given, strict=True):
        if choice not in known and not (name == "data_source" and "/" in choice):
            or_path = ", or a folder with its path" if name == "data_source" else ""
            raise TouchstoneError(
                f"{name} is {choice!r}; choose one of {', '.join(known)}{or_path}"
            )
    if gold == "corrected" and (data_source, on_fault) != ("geco", "repair"):
        raise TouchstoneError(
            "gold: corrected mends the published data (data_source: geco) and repairs their form "
            f"(on_fault: repair); here they are {data_source} and {on_fault}, so set both, or use "
            "gold: published"
        )


def source_folder(data_source: str, stage: Stage) -> Path:
    """The folder of the published files, or of a data set that `touchstone dataset` made.

    The files of the latter are noted in the stage's manifest.

    Raises:
        TouchstoneError: a file is missing.
    """
    if data_source == "geco":
        return fetch_geco()
    folder = locate_external(data_source)
    for part in DATASETS.values():
        for split in SPLITS:
            if not (folder / part / f"{split}.jsonl").is_file():
                raise TouchstoneError(
                    f"data_source {folder} has no {part}/{split}.jsonl; name a folder that "
                    "touchstone dataset made"
                )
            stage.external(folder / part / f"{split}.jsonl")
    return folder


def refuse(where: str, problems: Mapping[str, bool]) -> None:
    """Raise a TouchstoneError for the first of the problems that is there."""
    for problem, is_there in problems.items():
        if is_there:
            raise TouchstoneError(f"{where} {problem}")


def read_geco(
    path: Path | str, on_fault: Literal["repair", "keep", "drop"] = "repair"
) -> pd.DataFrame:
    """The rows of a file in GECO's format (arXiv 2406.11547, appendix A.1.3).

    Args:
        path: JSON lines, one variant of a sentence on each.
        on_fault: faults of form are repaired (`repair`), left alone (`keep`), or their base
            sentences left out (`drop`).

    Returns:
        row_id ("12-F"), sentence_idx (the base sentence), target (0 F, 1 M, 2 NB), gender,
        sentence (words), ground_truth (one 0/1 per word). `lib.studies.geco.faults.faults_of` of
        them is the table of faults.

    Raises:
        TouchstoneError: naming file and line, for what no setting can mend.
    """
    check_choices(on_fault=on_fault)
    rows = _parse(Path(path))
    faults = find_format_faults(rows)
    if on_fault == "repair":
        rows, faults = repair_rows(rows, faults, str(path))
    elif on_fault == "drop":
        rows, faults = drop_faulty(rows, faults)
    keep_faults(rows, faults)
    return rows


def write_geco(rows: pd.DataFrame, path: Path | str) -> None:
    """Write rows as JSON lines in GECO's format, all at once.

    Args:
        rows: with sentence, ground_truth, gender, target and sentence_idx.
    """
    fields = ["sentence", "ground_truth", "gender", "target", "sentence_idx"]
    records = rows[fields].to_dict("records")
    write_atomic(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def load_dataset(stage: Stage, dataset: str, split: str) -> pd.DataFrame:
    """The rows of a data set and a split, as stage 01 left them.

    Rows whose mask does not fit the sentence cannot be scored; where stage 01 kept such rows they
    are left out here.

    Args:
        dataset: D_A, D_S, D_A_binary or D_S_binary.
        split: train or test.

    Raises:
        TouchstoneError: there is no such data set or split.
    """
    problems = {
        f"{dataset!r} among {', '.join(DATASETS)}; choose one of these": dataset not in DATASETS,
        f"{split!r} among {', '.join(SPLITS)}; choose one of these": split not in SPLITS,
    }
    refuse("there is no", problems)
    rows = read_geco(
        stage.input("01_data_generation", f"{DATASETS[dataset]}/{split}.jsonl"), on_fault="keep"
    )
    rows.attrs.clear()  # the faults are stage 01's business
    fits = [len(s) == len(g) for s, g in zip(rows["sentence"], rows["ground_truth"], strict=True)]
    return rows[fits].reset_index(drop=True)


def altered_terms(rows: pd.DataFrame) -> frozenset[str]:
    """The words in which the female and the male form of a base sentence differ, in small letters.

    With them come the words of the neutral form at these positions. Base sentences whose forms
    differ in length are passed over.

    Args:
        rows: sorted by target within a base sentence.
    """
    terms: set[str] = set()
    for _, sentences in rows.groupby("sentence_idx")["sentence"]:
        forms = [[word.strip().lower() for word in words] for words in sentences]
        if len({len(words) for words in forms}) == 1:
            terms |= {
                word for words in zip(*forms, strict=True) if words[0] != words[1] for word in words
            }
    return frozenset(terms)


def mask_statistics(rows: pd.DataFrame, n_pieces: Callable[[str], int]) -> dict[str, float]:
    """Numbers of rows, words and masked words, and the mean masked share of words and word pieces.

    The share of pieces is what an even attribution puts on the mask, so it is the expected mass
    accuracy of noise (paper, eq. 3). Masks are read up to the sentence's length.

    Args:
        n_pieces: into how many pieces a tokenizer splits a word.
    """
    lengths, masked = rows["sentence"].map(len), rows["ground_truth"].map(sum)
    shares = []
    for words, mask in zip(rows["sentence"], rows["ground_truth"], strict=True):
        sizes = np.array([n_pieces(word) for word in words])
        # on_fault="keep" leaves masks that are too long or too short
        fitting = np.pad(mask, (0, len(sizes)))[: len(sizes)]
        shares.append((fitting.mean(), (sizes * fitting).sum() / sizes.sum()))
    of_words, of_pieces = np.mean(shares, axis=0)
    return {
        "rows": len(rows),
        "base_sentences": rows["sentence_idx"].nunique(),
        "words_min": lengths.min(),
        "words_mean": lengths.mean(),
        "words_max": lengths.max(),
        "masked_mean": masked.mean(),
        "share_of_words": of_words,
        "share_of_pieces": of_pieces,
        "rows_without_mask": int((masked == 0).sum()),
    }


def fetch_geco(base_url: str = _GECO_URL) -> Path:
    """The folder of the published GECO; what is missing is downloaded once.

    It is `$TOUCHSTONE_DATA/geco`, or lies in the user's cache where that is not set.

    Raises:
        TouchstoneError: a file is not what its SHA-256 says, or a download fails.
    """
    folder = download_folder("geco")
    for name, sha256 in GECO_SHA256.items():
        if not (folder / name).is_file():
            download(f"{base_url}/{name}", sha256, folder / name)
    check_files(folder, GECO_SHA256, _GECO_COMMIT, "make data")
    return folder


def _parse(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise TouchstoneError(
            f"{path} does not exist; run the stage that makes it, or correct the path"
        )
    records: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            record = _record(line, f"{path}, line {number}")
            # a row is known by base sentence and class, so a second one would take its place
            if (first := seen.setdefault(record["row_id"], number)) != number:
                raise TouchstoneError(
                    f"{path}, line {number}: sentence {record['sentence_idx']} already has a "
                    f"{record['gender']} variant in line {first}; remove one of the two"
                )
            records.append(record)
    if not records:
        raise TouchstoneError(
            f"{path} holds no sentences; hand in a file with at least one JSON line"
        )
    return pd.DataFrame(records, columns=COLUMNS)


def _record(line: str, where: str) -> dict[str, Any]:
    record = parse_json(line, where, "correct or remove the line")
    fields = ("sentence", "ground_truth", "target", "sentence_idx")
    if not isinstance(record, dict) or not set(fields) <= set(record):
        raise TouchstoneError(f"{where} lacks a field; write {_EXPECTED}")
    words, mask, target, idx = (record[name] for name in fields)
    # to Python True is 1, so `in` alone would take it for a class
    is_class = not isinstance(target, bool) and target in (0, 1, 2)
    number = int(target) if is_class else 0
    gender = record.get("gender", GENDERS[number])
    has_words = isinstance(words, list) and all(isinstance(word, str) for word in words)
    # "\ud83d" without its other half is no text: it could not be written or encoded
    is_text = has_words and not any(HALF.search(word) for word in words)
    is_number = isinstance(idx, int) and not isinstance(idx, bool) and abs(idx) <= _LARGEST
    has_mask = isinstance(mask, list) and all(value in (0, 1) for value in mask)
    problems = {
        f"unknown target {target!r}; use 0 (female), 1 (male) or 2 (neutral)": not is_class,
        f"target {target} means {GENDERS[number]}, but gender says {gender!r}; make the two "
        "agree": gender != GENDERS[number],
        f"the sentence is not a list of words; write {_EXPECTED}": not (has_words and words),
        "a word holds half a character (a lone surrogate); write the whole character": has_words
        and not is_text,
        "no word of the sentence can be seen; write its words": has_words
        and not any(map(is_visible, words)),
        f"the ground truth holds something other than 0 and 1; write {_EXPECTED}": not has_mask,
        f"sentence_idx {idx!r} is not a whole number; write {_EXPECTED}": not is_number,
    }
    refuse(f"{where}:", problems)
    return {
        "row_id": f"{idx}-{CLASSES[number]}",
        "sentence_idx": idx,
        "target": number,
        "gender": gender,
        "sentence": words,
        "ground_truth": [int(value) for value in mask],
    }
