"""mlcroissant accepts the metadata and loads the records; an owner's parts replace ours."""

from __future__ import annotations

import json
import shutil
import string
from pathlib import Path

import mlcroissant
import pytest

from lib.core.cards import read_card
from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.core.stage import open_stage
from lib.studies.geco.corpus import DATASETS, SPLITS, read_geco, write_geco
from lib.studies.geco.labels import labelled_rows, read_labels
from lib.studies.geco.metadata import croissant, unsaid, with_own_parts, write_card

CARD = material("geco") / "card.yaml"
NAMES = {
    name
    for _, name, _, _ in string.Formatter().parse(CARD.read_text())
    if name and name.isidentifier()
} - {"names"}
NUMBERS = {name: 40 + i for i, name in enumerate(sorted(NAMES))}


USER, FILLED = (
    material("geco") / "user_card.yaml",
    dict.fromkeys(
        (
            "folder",
            "sentences",
            "base_sentences",
            "train_base",
            "test_base",
            "pipeline",
            "decisions",
            "published",
        ),
        1,
    ),
)


def test_own_parts_replace_those_of_the_template(tmp_path: Path) -> None:
    own = tmp_path / "card.yaml"
    before = with_own_parts(read_card(USER, "user", FILLED), own)
    own.write_text(
        "creator: A. Reader\npublished: 2026-01-31\n"
        "sections:\n  Distribution and care:\n    Who keeps it?: I {do}.\n"
    )
    card = with_own_parts(read_card(USER, "user", FILLED), own)
    assert (card["creator"], card["published"]) == ("A. Reader", "2026-01-31")
    assert (
        card["sections"]["Distribution and care"]["Who keeps it?"] == "I {do}."
        and card["sections"]["Uses"] == before["sections"]["Uses"]
    )
    assert set(unsaid(before)) - set(unsaid(card)) == {"creator"} and list(
        unsaid(card)["sections"]["Distribution and care"]
    ) == ["Licence"]


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            "creater: me",
            r"card\.yaml has a part 'creater' that no card has; did you mean 'creator'",
        ),
        ("sections: {Use: {a: b}}", r"card\.yaml, sections has a part 'Use' .*did you mean 'Uses'"),
        ("keywords: gender", r"card\.yaml, keywords: a text, and the card has a list there"),
        ("creator: [me]", r"card\.yaml, creator: a list, and the card has a text there"),
        ("creator: a: b", r"card\.yaml is not readable as YAML .*line 1, column 11"),
        ("just words", r"card\.yaml does not map parts of the card to texts; write"),
    ],
)
def test_own_parts_that_do_not_fit_are_named(tmp_path: Path, own: str, message: str) -> None:
    (tmp_path / "card.yaml").write_text(own)
    with pytest.raises(TouchstoneError, match=message):
        with_own_parts(read_card(USER, "user", FILLED), tmp_path / "card.yaml")


@pytest.fixture
def released(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """Three labelled sentences in the four folders, as stage 01 lays them out."""
    labels = list(read_labels(material("geco") / "labels.yaml").values())[:3]
    files = {}
    for name, folder in DATASETS.items():
        scope = "all" if name.startswith("D_A") else "subj"
        for split in SPLITS:
            files[f"{name}_{split}"] = f"{folder}/{split}.jsonl"
            write_geco(
                labelled_rows(labels, scope, ("F", "M") if "binary" in name else ("F", "M", "NB")),
                tmp_path / folder / f"{split}.jsonl",
            )
    return tmp_path, files


@pytest.mark.slow
@pytest.mark.parametrize("source", ["bundled", "geco", "folder"])
def test_mlcroissant_validates_and_loads_sentences_and_masks(released, source: str) -> None:
    folder, files = released
    (folder / "croissant.json").write_text(
        json.dumps(croissant(read_card(CARD, source, NUMBERS), folder, files))
    )
    dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    issues = dataset.metadata.ctx.issues
    assert not issues.errors and not issues.warnings
    assert len(dataset.metadata.record_sets) == 2 * len(files) == 16
    for name, file in files.items():
        rows = read_geco(folder / file)
        masks = list(dataset.records(f"{name}_masks"))
        assert [record[f"{name}_masks/ground_truth"] for record in masks] == list(
            rows["ground_truth"]
        )
        sentences = list(dataset.records(f"{name}_sentences"))
        assert [
            [
                word.decode() if isinstance(word, bytes) else word
                for word in record[f"{name}_sentences/sentence"]
            ]
            for record in sentences
        ] == list(rows["sentence"])
        assert [record[f"{name}_sentences/target"] for record in sentences] == list(rows["target"])


def test_the_fields_for_responsible_ai_arrive(released) -> None:
    folder, files = released
    (folder / "croissant.json").write_text(
        json.dumps(croissant(read_card(CARD, "bundled", NUMBERS), folder, files))
    )
    metadata = mlcroissant.Dataset(jsonld=str(folder / "croissant.json")).metadata
    assert "http://mlcommons.org/croissant/RAI/1.0" in metadata.conforms_to
    for field in (
        "data_collection",
        "data_biases",
        "data_use_cases",
        "data_limitations",
        "data_social_impact",
        "data_annotation_protocol",
        "annotations_per_item",
        "personal_sensitive_information",
        "data_release_maintenance_plan",
        "machine_annotation_tools",
        "data_preprocessing_protocol",
    ):
        assert getattr(metadata, field), field
    assert str(NUMBERS["second"]) in str(metadata.annotations_per_item)


def test_both_cards_stand_beside_the_data_and_say_the_same(released, small_outputs: Path) -> None:
    folder, files = released
    stage = open_stage("geco", "toy", "01_make")
    for file in files.values():
        shutil.copy(folder / file, stage.path(file))
    card = write_card(stage, CARD, "bundled", NUMBERS, files)
    assert card["title"] in (stage.folder / "dataset_card.md").read_text()
    told = json.loads((stage.folder / "croissant.json").read_text())
    assert told == json.loads(json.dumps(croissant(card, stage.folder, files)))


def test_a_changed_file_no_longer_matches_its_checksum(released) -> None:
    folder, files = released
    described = croissant(read_card(CARD, "bundled", NUMBERS), folder, files)
    write_geco(read_geco(folder / files["D_A_test"]).head(1), folder / files["D_A_test"])
    again = croissant(read_card(CARD, "bundled", NUMBERS), folder, files)
    changed = [
        a["name"]
        for a, b in zip(described["distribution"], again["distribution"])
        if a["sha256"] != b["sha256"]
    ]
    assert changed == ["D_A_test"]
