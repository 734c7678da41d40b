"""Clusters from a file: found by the words of a sentence, and refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.parse import read_docs
from lib.studies.implicit_bias.coreference import rule_resolver
from lib.studies.implicit_bias.sentences import file_resolver

STORED = read_docs(material("implicit_bias") / "annotation_1.conllu")
DOCS = {doc.text.strip(): doc for doc in STORED.values()}


def test_clusters_from_a_file(tmp_path: Path) -> None:
    doc = DOCS["The tennis player throws his racket on the ground ."]
    file = tmp_path / "clusters.jsonl"
    file.write_text(
        json.dumps({"words": [t.text for t in doc], "clusters": [[[0, 2], [4, 4]]]}) + "\n"
    )
    assert file_resolver(file)(doc) == rule_resolver()(doc)
    with pytest.raises(TouchstoneError, match="holds no clusters for the sentence 'He jumps off"):
        file_resolver(file)(DOCS["He jumps off the platform and swims to the edge ."])
    for line, message in (
        ("{}", "line 1: not"),
        (
            '{"words": ["a"], "clusters": [[[0, 1]]]}',
            "line 1: the mention .0, 1. lies outside the 1 words",
        ),
    ):
        file.write_text(line + "\n")
        with pytest.raises(TouchstoneError, match=message):
            file_resolver(file)
    file.write_bytes(b'\n{"words": ["caf\xe9"]}\n')
    with pytest.raises(TouchstoneError, match="clusters.jsonl, line 2: the bytes are not UTF-8"):
        file_resolver(file)


def test_a_file_of_clusters_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match='resolver is "file", and clusters_file names none'):
        file_resolver("")
    with pytest.raises(
        TouchstoneError,
        match="none.jsonl cannot be read .No such file.*; put the file there, or correct",
    ):
        file_resolver(tmp_path / "none.jsonl")
    with pytest.raises(TouchstoneError, match="cannot be read .Is a directory"):
        file_resolver(tmp_path)
