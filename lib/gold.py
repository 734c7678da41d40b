"""The annotator against GECO's own labels: masks and rewritten sentences, with the published and the corrected gold.

`python -m lib.gold train en_core_web_sm` prints the table; the test split is for the final figures only.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from spacy.language import Language
from spacy.tokens import Doc

from lib.annotator import annotate_sentence, gendered_words
from lib.corpora import DATASETS, fetch_geco, read_geco
from lib.corrections import read_corrected
from lib.labels import Scope, gender_variants
from lib.lexicon import load_lexicon
from lib.reference import fit_weights
from lib.text import annotate_tokens, load_pipeline

SIDES = ("female", "male", "neutral")


@dataclass(frozen=True)
class Base:
    """One base sentence of GECO: its three published forms, the published mask, and the corrected neutral form and mask."""

    forms: Sequence[Sequence[str]]
    mask: Collection[int]
    corrected: Sequence[str]
    corrected_mask: Collection[int] | None


@dataclass
class Tally:
    """Counts of a comparison of position sets, and of whole sentences that are right."""

    hits: int = 0
    marked: int = 0
    wanted: int = 0
    right: int = 0
    sentences: int = 0

    def add(self, marked: Collection[int], wanted: Collection[int]) -> None:
        """Compare the positions that were marked with those that should be."""
        self.hits += len(set(marked) & set(wanted))
        self.marked += len(set(marked))
        self.wanted += len(set(wanted))
        self.whole(set(marked) == set(wanted))

    def whole(self, is_right: bool) -> None:
        """Count one sentence as right or wrong as a whole."""
        self.right += is_right
        self.sentences += 1

    def row(self) -> dict[str, float]:
        """Precision, recall and F1 over positions (NaN where only sentences were compared), and the share of sentences."""
        scored = self.marked > 0 and self.wanted > 0
        precision, recall = (self.hits / self.marked, self.hits / self.wanted) if scored else (float("nan"),) * 2
        return {"precision": precision, "recall": recall, "F1": 2 * self.hits / (self.marked + self.wanted) if scored else float("nan"),
                "sentences_right": self.right / self.sentences, "n": self.sentences}


def read_bases(dataset: str, split: str, folder: Path) -> dict[int, Base]:
    """The base sentences of "D_A" or "D_S" by index; those whose forms differ in length are left out."""
    rows = read_geco(folder / DATASETS[dataset] / f"{split}.jsonl", on_fault="keep")
    corrected, _ = read_corrected(dataset, split, folder)
    neutral = {row.sentence_idx: row for row in corrected.itertuples() if row.target == 2}
    bases: dict[int, Base] = {}
    for idx, group in rows.groupby("sentence_idx"):
        forms = [[word.strip() for word in words] for words in group.sort_values("target")["sentence"]]
        if len({len(form) for form in forms}) == 1:
            mine = neutral[idx]
            fits = len(mine.sentence) == len(forms[0])
            bases[idx] = Base(forms, _ones(group["ground_truth"].iloc[0]), mine.sentence, _ones(mine.ground_truth) if fits else None)
    return bases


def compare_sentence(doc: Doc, base: Base, side: int, scope: Scope, tally: Mapping[str, Tally]) -> None:
    """Label one parsed form (`side` 0 female, 1 male) and add every comparison with the gold to the tallies."""
    female, male, neutral = base.forms
    full = annotate_sentence(doc, names="keep")
    near = annotate_sentence(doc, names="keep", agreement="adjacent").replacements(scope)
    changes, forms = full.replacements(scope), gender_variants(full, scope)
    tally["mask without verbs"].add([i for i, f in changes.items() if f and f[0] != f[1]], _differing(female, male))
    tally["mask, adjacent verbs"].add(near, base.mask)
    tally["mask, full agreement"].add(changes, base.mask)
    if base.corrected_mask is not None:
        tally["mask, full agreement, corrected gold"].add(changes, base.corrected_mask)
    tally["to the other gender"].whole(forms["F" if side else "M"] == base.forms[1 - side])
    verbs = {i for i, f in changes.items() if f and f[0] == f[1]}
    written = forms["NB"]
    tally["to neutral, strict"].whole(written == neutral)
    tally["to neutral, lenient"].whole(all(
        a == b or (a.lower(), b.lower()) == ("their", "them") or i in verbs for i, (a, b) in enumerate(zip(written, neutral, strict=True))))
    tally["to neutral, corrected gold"].whole([word for word in written if word != "_"] == list(base.corrected))


def score_annotator(split: str, pipeline: Language, folder: Path,
                    keep: Callable[[int], bool] = lambda idx: True) -> pd.DataFrame:
    """A table dataset, input, quantity, precision, recall, F1, sentences_right, n over a split, for one spaCy pipeline."""
    rows = []
    for dataset, scope in (("D_A", "all"), ("D_S", "subj")):
        bases = {idx: base for idx, base in read_bases(dataset, split, folder).items() if keep(idx)}
        for side in (1, 0):
            tally: dict[str, Tally] = defaultdict(Tally)
            docs = annotate_tokens([[word or "_" for word in base.forms[side]] for base in bases.values()], pipeline)
            for doc, base in zip(docs, bases.values(), strict=True):
                compare_sentence(doc, base, side, scope, tally)  # type: ignore[arg-type]
            rows += [{"dataset": dataset, "input": SIDES[side], "quantity": name} | made.row() for name, made in tally.items()]
    return pd.DataFrame(rows)


def fit_reference(pipelines: Sequence[Language], folder: Path) -> dict[str, float]:
    """The weights of `lib.reference` anew: D_S, training split, female and male forms, parsed by each pipeline."""
    docs: list[Doc] = []
    wanted: list[list[int]] = []
    for nlp in pipelines:
        bases = read_bases("D_S", "train", folder).values()
        for side in (0, 1):
            docs += annotate_tokens([[word or "_" for word in base.forms[side]] for base in bases], nlp)
            wanted += [_differing(base.forms[0], base.forms[1]) for base in bases]
    genders = [{i: gender for i, (gender, _) in gendered_words(doc, load_lexicon()).items()} for doc in docs]
    return fit_weights(docs, genders, wanted)


def _ones(mask: Sequence[int]) -> list[int]:
    return [i for i, value in enumerate(mask) if value]


def _differing(female: Sequence[str], male: Sequence[str]) -> list[int]:
    return [i for i, (f, m) in enumerate(zip(female, male, strict=True)) if f != m]


if __name__ == "__main__":
    nlp = load_pipeline(sys.argv[2])
    print(f"split {sys.argv[1]}, spaCy pipeline {nlp.path.name}")
    print(score_annotator(sys.argv[1], nlp, fetch_geco()).round(4).to_string(index=False))
