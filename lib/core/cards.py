"""What a data set says about itself: a card for people (Markdown) and Croissant metadata for programs (JSON-LD)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Template

from lib.core.errors import TouchstoneError, did_you_mean
from lib.core.files import sha256_of

FIELDS = (
    "name",
    "title",
    "version",
    "licence",
    "url",
    "cite",
    "creator",
    "published",
    "description",
    "keywords",
    "sections",
    "rai",
)
_CARD = Template(
    """\
# {{ title }}

{{ description }}

Version {{ version }} ({{ published }}). Licence: <{{ licence }}>. By {{ creator }}.

Please cite: {{ cite }}
{% for section, answers in sections.items() %}
## {{ section }}
{% for question, answer in answers.items() %}
**{{ question }}** {{ answer }}
{% endfor %}{% endfor %}""",
    keep_trailing_newline=True,
)
UNSAID = re.compile(r"to[ -]be[ -]said")
CROISSANT = "http://mlcommons.org/croissant/"
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": CROISSANT,
    "rai": f"{CROISSANT}RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "citeAs": "cr:citeAs",
    "isLiveDataset": "cr:isLiveDataset",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        word: f"cr:{word}"
        for word in (
            "column",
            "equivalentProperty",
            "extract",
            "field",
            "fileObject",
            "fileProperty",
            "fileSet",
            "format",
            "includes",
            "jsonPath",
            "key",
            "md5",
            "parentField",
            "path",
            "recordSet",
            "references",
            "regex",
            "repeated",
            "replace",
            "samplingRate",
            "separator",
            "source",
            "subField",
            "transform",
        )
    },
}
ROW_FIELDS = {
    "sentence_idx": ("sc:Integer", "The base sentence; all its forms share the number.", False),
    "target": ("sc:Integer", "The class: 0 female, 1 male, 2 neutral (non-binary).", False),
    "gender": ("sc:Text", "The form of the sentence: female, male or neutral.", False),
    "sentence": ("sc:Text", "The words of the sentence.", True),
}
MASK_FIELDS = {
    "sentence_idx": ROW_FIELDS["sentence_idx"],
    "target": ROW_FIELDS["target"],
    "ground_truth": ("sc:Integer", "Per word: 1 where it differs between the forms, else 0.", True),
}


def read_card(
    path: Path, source: str, numbers: Mapping[str, object], own: Path | None = None
) -> dict[str, Any]:
    """The card of a data source from a YAML file of cards, with the run's numbers in place of `{names}`.

    `own`: a YAML file with parts of a card that replace those of the first, where it is there. Raises TouchstoneError
    where the source has no card, a part is missing or unknown, or a name has no number.
    """
    cards = yaml.safe_load(path.read_text(encoding="utf-8"))
    if source not in cards:
        raise TouchstoneError(
            f"{path} has no card for {source!r}, only for {', '.join(cards)}; write one"
        )
    if missing := [name for name in FIELDS if name not in cards[source]]:
        raise TouchstoneError(
            f"{path}, card {source}: {', '.join(missing)} missing; write {', '.join(FIELDS)}"
        )
    try:
        filled: dict[str, Any] = _fill(cards[source], numbers)
    except KeyError as error:
        raise TouchstoneError(
            f"{path}, card {source}: nothing is known of {error}; use one of "
            f"{', '.join(sorted(numbers))}"
        ) from None
    return _with_own(filled, own) if own is not None and own.is_file() else filled


def unsaid(card: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a card that only its owner can write and that still stand as they are in the template.

    >>> unsaid({"creator": "(to be said) Who are you?", "name": "x", "sections": {"Uses": {"Licence": "MIT"}}})
    {'creator': '(to be said) Who are you?'}
    """
    found = {}
    for name, part in card.items():
        if isinstance(part, Mapping):
            part = unsaid(part)
        if UNSAID.search(str(part)):
            found[name] = part
    return found


def dataset_card(card: Mapping[str, Any]) -> str:
    """The data set's card in Markdown: title, description, licence, then the questions of a datasheet with answers.

    The questions follow Gebru et al., Datasheets for Datasets (Communications of the ACM, 2021), in our own words.
    """
    return _CARD.render(card)


def croissant(card: Mapping[str, Any], folder: Path, files: Mapping[str, str]) -> dict[str, Any]:
    """Croissant 1.0 metadata (JSON-LD) with the fields for responsible AI (RAI 1.0), for JSON-lines files of a folder.

    `files`: a name for each file, {"D_A_train": "non_binary_gender_all/train.jsonl"}. Each gives two record sets,
    its sentences and, by themselves, its masks. Checksums are those of the files as they are now.
    """
    resources = [
        {
            "@type": "cr:FileObject",
            "@id": name,
            "name": name,
            "contentUrl": path,
            "contentSize": f"{(folder / path).stat().st_size} B",
            "encodingFormat": "application/jsonlines",
            "sha256": sha256_of(folder / path),
        }
        for name, path in files.items()
    ]
    records = [
        record
        for name in files
        for record in (
            _record_set(
                f"{name}_sentences", name, "The sentences, one form in each record.", ROW_FIELDS
            ),
            _record_set(
                f"{name}_masks",
                name,
                "The word-level ground truth of the same records.",
                MASK_FIELDS,
            ),
        )
    ]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [f"{CROISSANT}1.0", f"{CROISSANT}RAI/1.0"],
        "name": card["name"],
        "description": card["description"],
        "license": card["licence"],
        "url": card["url"],
        "citeAs": card["cite"],
        "version": card["version"],
        "datePublished": card["published"],
        "creator": {"@type": "Organization", "name": card["creator"]},
        "keywords": card["keywords"],
        "inLanguage": "en",
        **card["rai"],
        "distribution": resources,
        "recordSet": records,
    }


def _record_set(
    name: str, file: str, description: str, fields: Mapping[str, tuple[str, str, bool]]
) -> dict[str, Any]:
    described = []
    for field, (kind, about, repeated) in fields.items():
        entry = {
            "@type": "cr:Field",
            "@id": f"{name}/{field}",
            "name": field,
            "description": about,
            "dataType": kind,
            "source": {"fileObject": {"@id": file}, "extract": {"column": field}},
        }
        described.append(entry | ({"repeated": True} if repeated else {}))
    key = [{"@id": f"{name}/sentence_idx"}, {"@id": f"{name}/target"}]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": description,
        "key": key,
        "field": described,
    }


def _with_own(card: dict[str, Any], path: Path) -> dict[str, Any]:
    try:
        own = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TouchstoneError(
            f"{path} is not valid YAML ({' '.join(str(error).split())}); correct that line"
        ) from None
    if not isinstance(own, dict):
        raise TouchstoneError(
            f"{path} does not map parts of the card to texts; write `creator: your name` and the like"
        )
    return _replaced(card, own, str(path))


def _replaced(card: Mapping[str, Any], own: Mapping[str, Any], where: str) -> dict[str, Any]:
    for name, part in own.items():
        if name not in card:
            raise TouchstoneError(
                f"{where} has a part {name!r} that no card has{did_you_mean(str(name), card)}; use {', '.join(card)}"
            )
        if _kind(card[name]) != _kind(part):
            raise TouchstoneError(
                f"{where}, {name}: {_kind(part)}, and the card has {_kind(card[name])} there; write it as in user_card.yaml"
            )
    return {
        name: _replaced(part, own[name], f"{where}, {name}")
        if name in own and isinstance(part, dict)
        else _plain(own.get(name, part))
        for name, part in card.items()
    }


def _kind(value: Any) -> str:
    return (
        "a mapping"
        if isinstance(value, dict)
        else "a list"
        if isinstance(value, list)
        else "a text"
    )


def _plain(value: Any) -> Any:
    """Dates and numbers of YAML as text: 2026-01-31, 1.0."""
    return value if isinstance(value, (list, dict)) else str(value)


def _fill(value: Any, numbers: Mapping[str, object]) -> Any:
    if isinstance(value, str):
        return value.format_map(numbers)
    if isinstance(value, list):
        return [_fill(part, numbers) for part in value]
    if isinstance(value, dict):
        return {key: _fill(part, numbers) for key, part in value.items()}
    return value
