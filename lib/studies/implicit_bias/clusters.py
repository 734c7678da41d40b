"""Coreference clusters that another system made, read from a file: a resolver like the rules."""

import json
from pathlib import Path

from spacy.tokens import Doc

from ...core.errors import TouchstoneError
from ...core.files import read_utf8
from .coreference import Clusters, Resolver


def file_resolver(path: Path | str) -> Resolver:
    """Clusters that another system made, found by the words of a sentence.

    Args:
        path: JSON lines `{"words": [...], "clusters": [[[start, end], ...], ...]}`, ends included.

    Raises:
        TouchstoneError: naming file and line, for a line that is no such object or has a span
            outside its sentence; where no file is named or it is not there; and, when the resolver
            is called, for a sentence that the file does not hold.
    """
    stored: dict[tuple[str, ...], Clusters] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            entry = json.loads(line)
            words = tuple(map(str, entry["words"]))
            clusters = [[(int(a), int(b)) for a, b in spans] for spans in entry["clusters"]]
        except (ValueError, KeyError, TypeError) as error:
            raise TouchstoneError(
                f'{path}, line {number}: not {{"words": [...], "clusters": [[[0, 1], [4, 4]]]}} '
                f"({error}); write one such object per sentence"
            ) from None
        for start, end in (span for spans in clusters for span in spans):
            if not 0 <= start <= end < len(words):
                raise TouchstoneError(
                    f"{path}, line {number}: the mention {[start, end]} lies outside the "
                    f"{len(words)} words; count from 0, both ends included"
                )
        stored[words] = clusters

    def resolve(doc: Doc) -> Clusters:
        """The clusters that the file holds for the sentence."""
        words = tuple(token.text for token in doc)
        if words not in stored:
            raise TouchstoneError(
                f"{path} holds no clusters for the sentence {doc.text[:60]!r}; "
                "resolve the sentences as they are split here (candidates.jsonl of stage 1)"
            )
        return stored[words]

    return resolve


def _lines(path: Path | str) -> list[str]:
    if not str(path).strip(". "):
        raise TouchstoneError(
            'resolver is "file", and clusters_file names none; '
            "name the file of JSON lines that your system wrote"
        )
    try:
        return read_utf8(Path(path)).splitlines()
    except OSError as error:
        raise TouchstoneError(
            f"the file of clusters {path} cannot be read ({error.strerror}); correct clusters_file"
        ) from None
