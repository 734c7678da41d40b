"""What a GECO data set says about itself besides its card: Croissant, and its owner's parts.

Croissant (JSON-LD) is for programs. A card that the owner of a text completes (`make dataset`) is
the template of `material/user_card.yaml` with the parts that the owner wrote in place of ours.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.cards import checked_part, dataset_card, read_card
from ...core.croissant import file_object, metadata, record_set
from ...core.errors import TouchstoneError, did_you_mean
from ...core.files import parse_yaml, read_utf8, save_json, write_atomic
from ...core.stage import Stage

_KINDS: dict[type, str] = {dict: "a mapping", list: "a list"}  # of a card's parts, beside texts
_UNSAID = re.compile(r"to[ -]be[ -]said")
_ROW_FIELDS = {
    "sentence_idx": ("sc:Integer", "The base sentence; all its forms share the number.", False),
    "target": ("sc:Integer", "The class: 0 female, 1 male, 2 neutral (non-binary).", False),
    "gender": ("sc:Text", "The form of the sentence: female, male or neutral.", False),
    "sentence": ("sc:Text", "The words of the sentence.", True),
}
_MASK_FIELDS = {
    "sentence_idx": _ROW_FIELDS["sentence_idx"],
    "target": _ROW_FIELDS["target"],
    "ground_truth": ("sc:Integer", "Per word: 1 where it differs between the forms, else 0.", True),
}


def croissant(card: Mapping[str, Any], folder: Path, files: Mapping[str, str]) -> dict[str, Any]:
    """Croissant 1.0 metadata (JSON-LD), with the fields for responsible AI (RAI 1.0).

    Each JSON-lines file gives two record sets: its sentences and, by themselves, its masks. The
    checksums are those of the files as they are now.

    Args:
        card: what `lib.core.cards.read_card` returns.
        folder: the folder that the files lie in.
        files: a name for each file, {"D_A_train": "non_binary_gender_all/train.jsonl"}.
    """
    resources = [
        file_object(folder, name, path, "application/jsonlines") for name, path in files.items()
    ]
    kinds = (
        ("sentences", "The sentences, one form in each record.", _ROW_FIELDS),
        ("masks", "The word-level ground truth of the same records.", _MASK_FIELDS),
    )
    records = [
        record_set(f"{name}_{kind}", name, about, fields, ("sentence_idx", "target"))
        for name in files
        for kind, about, fields in kinds
    ]
    return metadata(card, resources, records)


def write_card(
    stage: Stage, file: Path, kind: str, numbers: Mapping[str, Any], files: Mapping[str, str]
) -> dict[str, Any]:
    """Write `dataset_card.md` for people and `croissant.json` for programs; returns the card.

    Args:
        stage: where the data set lies.
        file: the card's template.
        kind: the part of the template that fits the data.
        numbers: what the template leaves open.
        files: as for `croissant`.
    """
    card = read_card(file, kind, numbers)
    write_atomic(stage.path("dataset_card.md"), dataset_card(card))
    save_json(croissant(card, stage.folder, files), stage.path("croissant.json"))
    return card


def with_own_parts(card: dict[str, Any], path: Path) -> dict[str, Any]:
    """The card with a YAML file's parts in place of its own; as it is where there is no such file.

    Args:
        card: a template, as `lib.core.cards.read_card` returns it.
        path: the owner's file, which need not exist.

    Raises:
        TouchstoneError: the file is no YAML, or a part of it is unknown or of another kind.
    """
    if not path.is_file():
        return card
    parts = parse_yaml(read_utf8(path), str(path)) or {}
    if not isinstance(parts, dict):
        raise TouchstoneError(
            f"{path} does not map parts of the card to texts; write `creator: your name` "
            "and the like"
        )
    return _replaced(card, parts, str(path))


def unsaid(card: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a card that only its owner can write and that are still those of the template.

    >>> unsaid({"creator": "(to be said) Who?", "name": "x", "sections": {"Uses": {"Who?": "I"}}})
    {'creator': '(to be said) Who?'}
    """
    parts = {
        name: unsaid(part) if isinstance(part, Mapping) else part for name, part in card.items()
    }
    return {name: part for name, part in parts.items() if _UNSAID.search(str(part))}


def _replaced(card: Mapping[str, Any], parts: Mapping[str, Any], where: str) -> dict[str, Any]:
    for name, part in parts.items():
        if name not in card:
            raise TouchstoneError(
                f"{where} has a part {name!r} that no card has{did_you_mean(str(name), card)}; "
                f"use {', '.join(card)}"
            )
        theirs, ours = (_KINDS.get(type(one), "a text") for one in (part, card[name]))
        if theirs != ours:
            raise TouchstoneError(
                f"{where}, {name}: {theirs}, and the card has {ours} there; write it as in "
                "user_card.yaml"
            )
    return {
        name: _replaced(part, parts[name], f"{where}, {name}")
        if name in parts and isinstance(part, dict)
        else checked_part(name, parts[name], type(part), f"{where}, {name}")
        if name in parts
        else part
        for name, part in card.items()
    }
