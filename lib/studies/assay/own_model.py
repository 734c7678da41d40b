"""The card of an explainer on somebody's own classifier.

Four truths need no training of ours, for they are the classifier's own answers to altered texts:
*swap*, *edit*, *noun* and the deletions. Plants need a model that has learnt them, so a copy of the
classifier is fine-tuned on planted texts. That judges the explainer on the copy: the architecture,
and not the weights that somebody uses. *Mask* and *cue* ask about tasks that only models of ours
have learnt; they stay unknown.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from transformers import AutoModelForSequenceClassification

from ...core.errors import TouchstoneError
from ...core.files import load_parquet
from ...core.progress import progress
from ...core.seeds import seed_for
from ...doors.own_model import wrap
from ...language.lexicon import MASK
from ...models.hf import HFClassifier
from ...models.text_model import TextModel, lengths_of
from ...models.weights import load_classifier, load_pretrained, load_tokenizer
from ...training.classifier import Settings, fit, token_forward, validation_split
from . import standing, synthesis
from .answers import rules_followed, true_answers
from .explainers import FLOORS, ask, fit_floors
from .swapped import score_swaps
from .truths import cheaters, oracle, score_deletion, score_items, telling_items

YOURS, COPY = "yours", "copy"
FLOOR_OF = {
    "swap": "Even",
    "planted": "Word counts",
    "edit": "Goal of the edit",
    "noun": "Even",
    "deletion, pad": "Random",
    "deletion, mask": "Random",
    "deletion, swap": "Random",
}
_OWN = ("swap", "edit", "noun")
_TABLES = ("items", "altered", "forms", "train", "planted")
_HIDDEN = "they"  # what stands where our own models read a mask
_PLANTS = Settings(epochs=4, lr=1e-4, batch_size=16)
_N_DELETED = 3  # texts whose words are deleted
_ABOUT = ["item_id", "model", "training", "text"]


class Asked(NamedTuple):
    """Somebody's classifier and its copy, with what they themselves answer.

    Attributes:
        models: by name: `YOURS`, and `COPY`, which was fine-tuned on planted texts.
        truths: the items, as stage 02 of the assay leaves them.
        rules: which planted rules the copy follows: rule, right, is_followed.
        forms: both forms of the sentences that are swapped.
        fitted: what the floors know of the planted texts; nothing is known of other training text.
    """

    models: Mapping[str, HFClassifier]
    truths: pd.DataFrame
    rules: pd.DataFrame
    forms: pd.DataFrame
    fitted: Mapping[str, Any]


def ask_classifier(folder: Path, made: Path, seed: int = 0) -> Asked:
    """A classifier's own answers to the items of a run, and those of its copy.

    Args:
        folder: of a Hugging Face sequence classifier with its tokenizer.
        made: the folder of the run's stage 01.

    Raises:
        TouchstoneError: the folder holds no classifier of two or more classes that exclude each
            other.
    """
    tables = {name: load_parquet(made / f"{name}.parquet") for name in _TABLES}
    model = load_own(folder)
    train = tables["train"].query("model == 'planted'").reset_index(drop=True)
    copy = planted_copy(folder, train, seed)
    rules = rules_followed(copy, tables["planted"])
    followed = rules.loc[rules["is_followed"], "rule"].tolist()
    items = own_items(tables["items"], model)
    altered = without_masks(tables["altered"], tables["items"])
    parts = [
        true_answers(of, items[items["model"] == name], altered, tables["forms"], followed)
        for name, of in ((YOURS, model), (COPY, copy))
    ]
    truths = pd.concat(parts, ignore_index=True).assign(training=0)
    return Asked({YOURS: model, COPY: copy}, truths, rules, tables["forms"], fit_floors(train))


def load_own(folder: Path) -> HFClassifier:
    """A classifier from a folder, to be explained."""
    if not (folder / "config.json").is_file():
        raise TouchstoneError(
            f"{folder} has no config.json; name the folder of a Hugging Face classifier, with its "
            "tokenizer (save_pretrained writes both)"
        )
    network = load_pretrained(AutoModelForSequenceClassification, str(folder))
    model = wrap(network, load_tokenizer(str(folder)))
    if len(model.classes) < 2 or model.independent:
        raise TouchstoneError(
            f"{folder} gives {len(model.classes)} numbers that do not exclude each other; the "
            "truths compare classes, so name a classifier of two or more"
        )
    return model


def planted_copy(folder: Path, train: pd.DataFrame, seed: int = 0) -> HFClassifier:
    """A copy of a classifier with a new head of two classes, fine-tuned on planted texts; the word
    table stays as it is.

    Args:
        train: sentence_idx, sentence (a list of words), target (0 or 1).
    """
    copy = load_classifier(str(folder), "", ["0", "1"])
    copy.redraw("head", seed_for("copy", seed))
    table = copy.module.get_input_embeddings().weight
    table.requires_grad_(False)
    named = {name: p for name, p in copy.module.named_parameters() if p is not table}
    encoded = copy.encode(train["sentence"].map(list).tolist())
    split = validation_split(train["sentence_idx"], 0.1, seed_for("validation", seed))
    fit(
        token_forward(copy, encoded),
        named,
        torch.tensor(train["target"].to_numpy()),
        torch.tensor(lengths_of(encoded)),
        split,
        _PLANTS,
        seed_for("fit", seed),
    )
    copy.module.eval()
    return copy


def own_items(items: pd.DataFrame, model: TextModel) -> pd.DataFrame:
    """The items that need no model of ours, of the classifier, and the plants, of its copy.

    *Edit* asks about the last class, which sentiment classifiers call the best; *noun* about the
    one that the classifier predicts; *swap* about the first two, one a form.
    """
    kept = items[items["truth"].isin([*_OWN, "planted"]) & (items["part"] == "test")]
    kept = kept[kept["model"] != "planted-ola"].reset_index(drop=True)
    texts = [_in_words(row.sentence, row.truth) for row in kept.itertuples()]
    best = model.predict(texts, 32).argmax(1).tolist()
    of_truth = {"edit": len(model.classes) - 1}
    targets = [
        predicted if truth == "noun" else of_truth.get(truth, target)
        for truth, predicted, target in zip(kept["truth"], best, kept["target"], strict=True)
    ]
    names = np.where(kept["truth"] == "planted", COPY, YOURS)
    return kept.assign(sentence=texts, target=targets, model=names)


def without_masks(altered: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """The altered texts as `own_items` has the items."""
    truth = altered["item_id"].map(items.set_index("item_id")["truth"])
    texts = [_in_words(words, of) for words, of in zip(altered["sentence"], truth, strict=True)]
    return altered.assign(sentence=texts)


def explain_own(
    asked: Asked, explainers: Mapping[str, Mapping[str, Any]]
) -> tuple[pd.DataFrame, dict[tuple[str, str], str]]:
    """What explainers and floors say of every text of the classifier and of its copy.

    Returns:
        explainer, model, training, text, scores; and by (explainer, model) why one refuses.
    """
    rows = with_text(asked.truths).drop_duplicates(["model", "text", "target"])
    everybody = {**explainers, **dict.fromkeys(FLOORS, {})}
    lines: list[tuple[str, str, int, str, list[float]]] = []
    refused: dict[tuple[str, str], str] = {}
    for row in progress(list(rows.itertuples()), "texts"):
        fitted = asked.fitted if row.model == COPY else {}
        names = {
            name: chosen
            for name, chosen in everybody.items()
            if name not in FLOORS or FLOORS[name].fit is None or name in fitted
        }
        scores, why = ask(asked.models[row.model], fitted, row.sentence, row.target, names)
        lines += [(name, row.model, 0, row.text, found) for name, found in scores.items()]
        refused |= {(name, row.model): reason for name, reason in why.items()}
    columns = ["explainer", "model", "training", "text", "scores"]
    return pd.DataFrame(lines, columns=columns), refused


def with_text(truths: pd.DataFrame) -> pd.DataFrame:
    """The items with their text in one string."""
    return truths.assign(text=truths["sentence"].map(" ".join))


def own_cells(
    asked: Asked, explanations: pd.DataFrame, chosen: Mapping[str, Any]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The cells of everybody who was asked, and the truths that cannot be asked, with the reason.

    Args:
        explanations: of `explain_own`.
        chosen: the parameters of the assay's stage 04: pads, n_bootstrap, alpha, seed.
    """
    items = telling_items(asked.truths)
    answers = items[_ABOUT].merge(explanations, on=_ABOUT[1:])
    known = [answers[["item_id", "explainer", "scores"]], oracle(items), cheaters(items)]
    scored = [score_items(items, pd.concat(known, ignore_index=True))]
    texts = items[items["truth"] == "swap"].head(_N_DELETED)
    model, unknown = asked.models[YOURS], {}
    for operator in ("pad", "mask"):
        try:
            scored.append(score_deletion(model, texts, explanations, operator, chosen["seed"]))
        except TouchstoneError as error:  # a tokenizer may have no mask token
            unknown[f"deletion, {operator}"] = str(error)
    scored.append(score_swaps(model, texts, explanations, asked.forms))
    scores = synthesis.on_one_scale(pd.concat(scored, ignore_index=True), FLOOR_OF)
    found = standing.cells(
        scores, chosen["pads"], chosen["n_bootstrap"], chosen["alpha"], chosen["seed"]
    )
    return found, unknown


def _in_words(words: Any, truth: str) -> list[str]:
    """The words of an item, with a pronoun where our own model reads a mask."""
    return [_HIDDEN if truth == "noun" and word == MASK else str(word) for word in words]
