"""The annotator against GECO's own labels: masks and rewritten sentences, for two golds.

The golds are the published labels and the corrected ones (`lib.studies.geco.corrections`). The test
split is for the final figures only; `fit_annotator.py scores` prints the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from spacy.language import Language
from spacy.tokens import Doc

from lib.language.annotator import annotate_sentence
from lib.language.labels import Scope, gender_variants
from lib.language.parse import annotate_tokens
from lib.studies.geco.corpus import DATASETS, read_geco
from lib.studies.geco.corrections import read_gold

SIDES = ("female", "male", "neutral")


@dataclass(frozen=True)
class Base:
    """One base sentence of GECO.

    Args:
        forms: its three published forms.
        mask: the positions of the published mask.
        corrected: the corrected neutral form.
        corrected_mask: its mask, or None where the form has another length.
    """

    forms: Sequence[Sequence[str]]
    mask: Collection[int]
    corrected: Sequence[str]
    corrected_mask: Collection[int] | None
    idx: int = -1


@dataclass
class Tally:
    """Counts of a comparison of position sets, and of whole sentences that are right.

    `wrong`: the number of wrong words by sentence.
    """

    hits: int = 0
    marked: int = 0
    wanted: int = 0
    right: int = 0
    sentences: int = 0
    wrong: dict[int, int] = field(default_factory=dict)

    def add(self, marked: Collection[int], wanted: Collection[int], idx: int = -1) -> None:
        """Compare the positions that were marked with those that should be."""
        self.hits += len(set(marked) & set(wanted))
        self.marked += len(set(marked))
        self.wanted += len(set(wanted))
        self.whole(len(set(marked) ^ set(wanted)), idx)

    def same(self, written: Sequence[str], wanted: Sequence[str], idx: int = -1) -> None:
        """Compare two sentences word by word."""
        differ = sum(a != b for a, b in zip(written, wanted, strict=False)) + abs(
            len(written) - len(wanted)
        )
        self.whole(differ, idx)

    def whole(self, n_wrong: int, idx: int = -1) -> None:
        """Count one sentence, which is right as a whole if no word of it is wrong."""
        self.right += n_wrong == 0
        self.sentences += 1
        if n_wrong:
            self.wrong[idx] = n_wrong

    def row(self) -> dict[str, float]:
        """Precision, recall and F1 over positions, and the share of sentences that are right.

        NaN where only sentences were compared.
        """
        scored = self.marked > 0 and self.wanted > 0
        precision, recall = (
            (self.hits / self.marked, self.hits / self.wanted) if scored else (float("nan"),) * 2
        )
        return {
            "precision": precision,
            "recall": recall,
            "F1": 2 * self.hits / (self.marked + self.wanted) if scored else float("nan"),
            "sentences_right": self.right / self.sentences,
            "n": self.sentences,
        }


def read_bases(dataset: str, split: str, folder: Path) -> dict[int, Base]:
    """The base sentences of "D_A" or "D_S" by index, where their forms have the same length."""
    rows = read_geco(folder / DATASETS[dataset] / f"{split}.jsonl", on_fault="keep")
    corrected, _ = read_gold(dataset, split, "corrected", folder=folder)
    neutral = {row.sentence_idx: row for row in corrected.itertuples() if row.target == 2}
    bases: dict[int, Base] = {}
    for idx, group in rows.groupby("sentence_idx"):
        forms = [
            [word.strip() for word in words] for words in group.sort_values("target")["sentence"]
        ]
        if len({len(form) for form in forms}) == 1:
            mended = neutral[idx]
            fits = len(mended.sentence) == len(forms[0])
            bases[idx] = Base(
                forms,
                _ones(group["ground_truth"].iloc[0]),
                mended.sentence,
                _ones(mended.ground_truth) if fits else None,
                idx,
            )
    return bases


def compare_sentence(
    doc: Doc, base: Base, side: int, scope: Scope, tally: Mapping[str, Tally]
) -> None:
    """Label one parsed form (`side` 0 female, 1 male) and add each comparison to the tallies."""
    female, male, neutral = base.forms
    full, idx = annotate_sentence(doc, names="keep"), base.idx
    near = annotate_sentence(doc, names="keep", agreement="adjacent").replacements(scope)
    changes, forms = full.replacements(scope), gender_variants(full, scope)
    tally["mask without verbs"].add(
        [i for i, f in changes.items() if f and f[0] != f[1]], differing(female, male), idx
    )
    tally["mask, adjacent verbs"].add(near, base.mask, idx)
    tally["mask, full agreement"].add(changes, base.mask, idx)
    if base.corrected_mask is not None:
        tally["mask, full agreement, corrected gold"].add(changes, base.corrected_mask, idx)
    tally["to the other gender"].same(forms["F" if side else "M"], base.forms[1 - side], idx)
    verbs = {i for i, f in changes.items() if f and f[0] == f[1]}
    forgiven = [
        b if i in verbs or (a.lower(), b.lower()) == ("their", "them") else a
        for i, (a, b) in enumerate(zip(forms["NB"], neutral, strict=True))
    ]
    tally["to neutral, strict"].same(forms["NB"], neutral, idx)
    tally["to neutral, lenient"].same(forgiven, neutral, idx)
    tally["to neutral, corrected gold"].same(
        [word for word in forms["NB"] if word != "_"], base.corrected, idx
    )


def score_annotator(
    split: str, pipeline: Language, folder: Path, keep: Callable[[int], bool] = lambda idx: True
) -> pd.DataFrame:
    """The annotator's scores over a split, for one spaCy pipeline.

    Returns:
        dataset, input, quantity, precision, recall, F1, sentences_right, n.
    """
    return pd.DataFrame(
        [
            {"dataset": dataset, "input": side, "quantity": name} | made.row()
            for dataset in ("D_A", "D_S")
            for side, tally in _tallies(dataset, split, pipeline, folder, keep)
            for name, made in tally.items()
        ]
    )


def sentence_errors(dataset: str, split: str, pipeline: Language, folder: Path) -> pd.DataFrame:
    """The base sentences that are wrong in a comparison.

    Returns:
        input, quantity, sentence_idx, words (how many of it are wrong).
    """
    return pd.DataFrame(
        [
            (side, name, idx, words)
            for side, tally in _tallies(dataset, split, pipeline, folder, lambda idx: True)
            for name, made in tally.items()
            for idx, words in made.wrong.items()
        ],
        columns=["input", "quantity", "sentence_idx", "words"],
    )


def _tallies(
    dataset: str, split: str, pipeline: Language, folder: Path, keep: Callable[[int], bool]
) -> Iterator[tuple[str, Mapping[str, Tally]]]:
    scope: Scope = "all" if dataset == "D_A" else "subj"
    bases = {idx: base for idx, base in read_bases(dataset, split, folder).items() if keep(idx)}
    for side in (1, 0):
        tally: dict[str, Tally] = defaultdict(Tally)
        docs = annotate_tokens(
            [[word or "_" for word in base.forms[side]] for base in bases.values()], pipeline
        )
        for doc, base in zip(docs, bases.values(), strict=True):
            compare_sentence(doc, base, side, scope, tally)
        yield SIDES[side], tally


def pipeline_label(pipeline: Language) -> str:
    """How a pipeline is named beside a figure: name and version, or the name of its folder."""
    meta = pipeline.meta
    return (
        f"{meta['lang']}_{meta['name']} {meta['version']}"
        if meta["version"].strip("0.")
        else pipeline.path.name
    )


def _ones(mask: Sequence[int]) -> list[int]:
    return [i for i, value in enumerate(mask) if value]


def differing(female: Sequence[str], male: Sequence[str]) -> list[int]:
    return [i for i, (f, m) in enumerate(zip(female, male, strict=True)) if f != m]
