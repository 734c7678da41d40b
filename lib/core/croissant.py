"""Croissant 1.0: what a data set says about its files to programs (JSON-LD), beside its card."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .files import sha256_of

_CROISSANT = "http://mlcommons.org/croissant/"
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": _CROISSANT,
    "rai": f"{_CROISSANT}RAI/",
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
Field = tuple[str, str, bool]  # its type, what it is, whether a record holds a list of it


def metadata(
    card: Mapping[str, Any], resources: Sequence[Any], records: Sequence[Any]
) -> dict[str, Any]:
    """The whole document, with the fields for responsible AI (RAI 1.0).

    Args:
        card: what `lib.core.cards.read_card` returns.
        resources: of `file_object`.
        records: of `record_set`.
    """
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [f"{_CROISSANT}1.0", f"{_CROISSANT}RAI/1.0"],
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
        "distribution": list(resources),
        "recordSet": list(records),
    }


def file_object(folder: Path, name: str, path: str, kind: str) -> dict[str, Any]:
    """A file of the data set, with its size and checksum as they are now.

    Args:
        folder: that the data set lies in.
        name: of the file, in the document.
        path: below the folder.
        kind: its media type, "application/jsonlines".
    """
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": path,
        "contentSize": f"{(folder / path).stat().st_size} B",
        "encodingFormat": kind,
        "sha256": sha256_of(folder / path),
    }


def record_set(
    name: str, file: str, description: str, fields: Mapping[str, Field], key: Sequence[str]
) -> dict[str, Any]:
    """The records of a file whose columns are the fields.

    Args:
        file: the name of the file object.
        key: the fields that tell records apart.
    """
    described = [
        {
            "@type": "cr:Field",
            "@id": f"{name}/{field}",
            "name": field,
            "description": about,
            "dataType": kind,
            "source": {"fileObject": {"@id": file}, "extract": {"column": field}},
            **({"repeated": True} if repeated else {}),
        }
        for field, (kind, about, repeated) in fields.items()
    ]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": description,
        "key": [{"@id": f"{name}/{field}"} for field in key],
        "field": described,
    }
