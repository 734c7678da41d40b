"""The card of an explainer on somebody's own classifier, a tiny one with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import transformers as tf
from tiny_models import word_piece

from lib.core.errors import TouchstoneError
from lib.core.files import save_parquet
from lib.doors.card import check_card, render_card
from lib.language.lexicon import MASK
from lib.studies.assay.edits import removed_words
from lib.studies.assay.file_card import NOT_BLIND
from lib.studies.assay.own_card import ITEMS, own_card
from lib.studies.assay.own_model import COPY, YOURS, load_own, own_items
from lib.studies.assay.plants import planted_texts

CHOSEN = {"pads": ["Occlusion"], "n_bootstrap": 20, "alpha": 0.05, "seed": 0, "gate": 0.5}
FORMS = ["she loves her piano and her son".split(), "he loves his horse and his son".split()]
LONG = ["they sing and she is old", "the son is old and sings", "he loves a horse he is old"]


def classifier(folder: Path, n_labels: int = 2, **config: Any) -> Path:
    tokenizer = word_piece()
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
    made = tf.BertConfig(
        vocab_size=len(tokenizer),
        intermediate_size=16,
        max_position_embeddings=64,
        num_labels=n_labels,
        initializer_range=0.6,
        **sizes,
        **config,
    )
    tf.BertForSequenceClassification(made).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tables() -> dict[str, pd.DataFrame]:
    """What stage 01 leaves, with few texts."""
    about = {"model": "x", "part": "test", "target": 1, "sentence_idx": 0, "rule": None}
    mark = [float(a != b) for a, b in zip(*FORMS, strict=True)]
    mask = about | {"item_id": "mask-0", "truth": "mask", "sentence": FORMS[1], "mark": mark}
    swap = mask | {"item_id": "swap-0", "truth": "swap"}
    noun = about | {"item_id": "noun-0", "truth": "noun", "mark": [0.0, 1.0, 0.0, 0.0, 0.0]}
    noun |= {"sentence": ["the", "singer", "loves", MASK, "son"]}
    items, altered = [mask, swap, noun], []
    for at, others in {1: ["person", "horse"], 2: ["sings", "is"], 4: ["piano", "woman"]}.items():
        for word in others:
            words = [*noun["sentence"][:at], word, *noun["sentence"][at + 1 :]]
            altered.append(("noun-0", "replacement", at, words))
    for i, long in enumerate(map(str.split, LONG)):
        removed = removed_words(long, long[:-3])
        edit = about | {"item_id": f"edit-{i}", "truth": "edit", "sentence": long}
        items.append(edit | {"mark": [float(k in removed) for k in range(len(long))]})
        altered.append((f"edit-{i}", "removed", -1, long[:-3]))
    planted = planted_texts(FORMS, {"single": ("male", "friends")}, "neutral", 20)
    chosen = planted.iloc[0]
    plant = about | {"item_id": "planted-0", "truth": "planted", "sentence": chosen["sentence"]}
    plant |= {"mark": chosen["truth"], "rule": "single", "target": int(chosen["target"])}
    found = pd.DataFrame([*items, plant, plant | {"item_id": "ola-0", "model": "planted-ola"}])
    found = found.assign(cluster=found["item_id"], goal=1.0)
    return {
        "items": found,
        "altered": pd.DataFrame(altered, columns=["item_id", "change", "at", "sentence"]),
        "forms": pd.DataFrame(
            {"row_id": ["f", "m"], "sentence_idx": 0, "target": [0, 1], "sentence": FORMS}
        ),
        "train": planted.assign(model="planted"),
        "planted": planted,
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for name, table in tables().items():
        save_parquet(table, folder / f"{name}.parquet")
    return folder


def test_what_needs_no_training_of_ours_has_numbers_and_the_rest_a_reason(
    made: Path, tmp_path: Path
) -> None:
    folder = classifier(tmp_path / "mine")
    card = own_card(folder, made, CHOSEN, "Occlusion", {}, tmp_path / "out")
    check_card(card)
    rows = {row["truth"]: row for row in card["truths"]}
    for truth in ("swap", "edit", "noun", "deletion, pad", "deletion, mask", "deletion, swap"):
        assert rows[truth]["raw"] is not None, truth
    assert rows["deletion, pad"]["by_identity"] and not rows["deletion, mask"]["by_identity"]
    assert "only models of ours" in rows["mask"]["why"] and rows["cue"]["raw"] is None
    planted = rows["planted"]
    assert planted["raw"] is not None or "has learnt no planted rule" in planted["why"]
    assert "judges the architecture" in card["notes"][0] and card["model"] == str(folder)
    assert card["single"]["draws"] == 1.0 and card["cost"]["seconds"] > 0
    assert card["other_model"] == [] and card["gate"] is not None
    assert "unknown" in render_card(card)
    items = pd.read_parquet(tmp_path / "out" / ITEMS)
    asked = {" ".join(words) for words in items[items["truth"] == "swap"]["sentence"]}
    told = [" ".join(sentence["words"]) for sentence in card["sentences"]]
    assert set(told) <= asked and len(set(told)) == len(told) == min(3, len(asked))
    assert not {"mask-0", "planted-0", "ola-0"} & set(items["item_id"])
    assert "they" in list(items.set_index("item_id").loc["noun-0", "sentence"])


def test_a_file_about_a_classifier_counts_where_it_answers_a_truth_whole(
    made: Path, tmp_path: Path
) -> None:
    folder = classifier(tmp_path / "mine")
    out, file = tmp_path / "out", tmp_path / "mine.parquet"
    with pytest.raises(TouchstoneError, match=f"no file .*mine.parquet.*{ITEMS}"):
        own_card(folder, made, CHOSEN, "mine", {}, out, file)
    items = pd.read_parquet(out / ITEMS)
    some = items[items["truth"] == "edit"]
    scores = [np.arange(len(words), dtype=float).tolist() for words in some["sentence"]]
    save_parquet(pd.DataFrame({"item_id": some["item_id"], "scores": scores}), file)
    card = own_card(folder, made, CHOSEN, "mine", {}, out, file)
    check_card(card)
    rows = {row["truth"]: row for row in card["truths"]}
    assert rows["edit"]["raw"] is not None and rows["edit"]["best"] is not None
    for truth in ("swap", "deletion, swap"):
        assert rows[truth]["raw"] is None and rows[truth]["why"] == "the file has 0 of 1 items"
    assert "cannot explain the copy" in rows["planted"]["why"]
    assert card["notes"] == [NOT_BLIND] and card["gate"] is None
    assert card["cost"]["seconds"] is None and card["sentences"] == []


def test_a_classifier_of_more_classes_is_asked_about_its_own(tmp_path: Path) -> None:
    model = load_own(classifier(tmp_path / "five", n_labels=5))
    found = own_items(tables()["items"], model).set_index("item_id")
    assert found.loc["edit-0", "target"] == 4 and found.loc["swap-0", "target"] == 1
    assert found.loc["noun-0", "target"] in range(5)
    assert found["model"].to_dict() == {
        name: COPY if name == "planted-0" else YOURS for name in found.index
    }


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"n_labels": 1}, "gives 1 numbers"),
        ({"n_labels": 3, "problem_type": "multi_label_classification"}, "exclude each other"),
    ],
)
def test_what_has_no_classes_to_compare_is_refused(
    config: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(TouchstoneError, match=told):
        load_own(classifier(tmp_path / "odd", **config))


def test_a_folder_without_a_classifier_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="has no config.json"):
        load_own(tmp_path)
