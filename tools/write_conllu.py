"""Documents of spaCy as CoNLL-U, for annotations that the repository keeps."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from spacy.tokens import Doc

from lib.core.files import write_atomic


def write_conllu(docs: Mapping[str, Doc], path: Path | str, header: Sequence[str]) -> None:
    """Write spaCy documents of one sentence each, by `sent_id`, with comments at the top."""
    comments = "".join(f"# {line}\n" for line in header)
    blocks = [_block(name, doc) for name, doc in docs.items()]
    write_atomic(path, comments + "\n".join(blocks) + "\n")


def _block(name: str, doc: Doc) -> str:
    lines = [f"# sent_id = {name}", f"# text = {doc.text}"]
    for token in doc:
        is_root = token.head.i == token.i
        columns = (
            str(token.i + 1),
            token.text,
            token.lemma_,
            token.pos_,
            token.tag_,
            str(token.morph) or "_",
            "0" if is_root else str(token.head.i + 1),
            "root" if is_root else token.dep_,
            "_",
            "_" if token.whitespace_ or token.i == len(doc) - 1 else "SpaceAfter=No",
        )
        lines.append("\t".join(columns))
    return "\n".join(lines) + "\n"
