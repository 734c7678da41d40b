"""From text to annotated sentences: splitting, and spaCy annotation live or stored (CoNLL-U)."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pandas as pd
import spacy
from spacy.language import Language
from spacy.parts_of_speech import IDS
from spacy.tokens import Doc

from ..core.errors import TouchstoneError
from ..core.files import read_text
from ..core.paths import spacy_pipeline
from .conllu import Tree, read_conllu

STORED = "stored"
ENVIRONMENT = "environment"
# The marks that open a quotation or a bracket, at the end of what comes before a sentence.
_OPENING = re.compile(r"(?:^|(?<=\s))[\"'“‘«(\[]+(\s*)$")
_UPOS = {"_", *IDS} - {""}
_FEATURES = re.compile(r"_|[^=|]+=[^=|]+(\|[^=|]+=[^=|]+)*")
_CLOSED = re.compile(r"[.!?…]\s*[\"'”’»]\s*$")


def split_sentences(text: str) -> list[str]:
    """The sentences of a paragraph by spaCy's punctuation rules: "." ends one, that of "Mr." not.

    A mark that opens a quotation (or a bracket) goes with the sentence after it, one that closes it
    with the one before; what follows a quotation in small letters belongs to it.

    >>> split_sentences("Mr. Darcy bows. She laughs.")
    ['Mr. Darcy bows.', 'She laughs.']
    >>> split_sentences('He sits. "Are you ill?" she asks.')
    ['He sits.', '"Are you ill?" she asks.']
    """
    text = text.strip()
    starts = sorted({_before_marks(text, part.start_char) for part in _splitter()(text).sents})
    starts = [i for i in starts if i == 0 or not (text[i].islower() and _CLOSED.search(text[:i]))]
    return [text[i:j].strip() for i, j in zip(starts, [*starts[1:], len(text)], strict=False)]


def read_summaries(path: Path) -> pd.DataFrame:
    """The sentences of a Markdown file of texts (`## Title` above paragraphs).

    Returns:
        A row per sentence: sentence_id (its title in small letters and its number within the text,
        "emma-02"), title, paragraph, sentence. What stands above the first title is left out.

    Raises:
        TouchstoneError: there is no title, or one is used twice.
    """
    rows: list[tuple[str, str, int, str]] = []
    texts = re.split(r"^## ", read_text(path), flags=re.MULTILINE)[1:]
    titles = [text.split("\n", 1)[0].strip() for text in texts]
    ids = list(map(text_id, titles))
    if not titles or len(set(ids)) < len(titles) or not all(ids):
        raise TouchstoneError(
            f"{path} has no headings `## Title`, two that give the same id, or one without "
            "letters; give every text one of its own"
        )
    for title, text in zip(titles, texts, strict=True):
        blocks = [part for part in text.partition("\n")[2].split("\n\n") if part.strip()]
        sentences = [
            (number, sentence)
            for number, block in enumerate(blocks, start=1)
            for sentence in split_sentences(" ".join(block.split()))
        ]
        rows += [
            (f"{text_id(title)}-{k:02d}", title, number, sentence)
            for k, (number, sentence) in enumerate(sentences, start=1)
        ]
    return pd.DataFrame(rows, columns=["sentence_id", "title", "paragraph", "sentence"])


def text_id(title: str) -> str:
    """A title without author and year, in small letters, as the beginning of an id.

    >>> text_id("Tess of the d'Urbervilles (Thomas Hardy, 1891)")
    'tess_of_the_d_urbervilles'
    """
    return re.sub(r"[^a-z]+", "_", title.split(" (")[0].lower()).strip("_")


def load_pipeline(name: str) -> Language:
    """A spaCy pipeline with a parser.

    Args:
        name: a name or path, or "environment" for that of `TOUCHSTONE_SPACY`.

    Raises:
        TouchstoneError: the pipeline is missing, or annotates no dependencies.
    """
    given = spacy_pipeline() if name == ENVIRONMENT else name
    if given is None:
        raise TouchstoneError(
            'spacy_pipeline is "environment", but TOUCHSTONE_SPACY is not set; set it to the name '
            "or path of a spaCy pipeline, or use spacy_pipeline: stored"
        )
    try:
        pipeline = spacy.load(given)
    except (OSError, ImportError) as error:
        raise TouchstoneError(
            f"the spaCy pipeline {given!r} cannot be loaded "
            f"({str(error).strip().splitlines()[0]}); install it "
            "(`python -m spacy download en_core_web_sm`), or use spacy_pipeline: stored"
        ) from error
    if "parser" not in pipeline.pipe_names:
        raise TouchstoneError(
            f"the spaCy pipeline {given!r} has no parser, and the sentence filters need one; "
            "choose a pipeline with a tagger, a morphologizer or rules, and a parser"
        )
    return pipeline


def annotate(sentences: Sequence[str], pipeline: Language) -> list[Doc]:
    """Parse each sentence by itself, as one: the parser is not allowed to split it again."""
    docs = [pipeline.make_doc(sentence) for sentence in sentences]
    for doc in docs:
        for token in doc:
            token.is_sent_start = token.i == 0
    return list(pipeline.pipe(docs))


def annotate_tokens(sentences: Sequence[Sequence[str]], pipeline: Language) -> list[Doc]:
    """Parse sentences that are split into words already, keeping their words as they are."""
    docs = [
        Doc(pipeline.vocab, words=list(words), sent_starts=[i == 0 for i in range(len(words))])
        for words in sentences
    ]
    return list(pipeline.pipe(docs))


def stored_annotation(sentences: Sequence[str], files: Iterable[Path]) -> list[Doc]:
    """The annotation of sentences as an earlier run stored it in CoNLL-U, found by their text.

    Raises:
        TouchstoneError: a sentence is not stored, since the text has changed.
    """
    stored: dict[str, Doc] = {}  # by text: a sentence that was changed must not get its old parse
    for file in files:
        stored |= {doc.text: doc for doc in read_docs(file).values()}
    for sentence in sentences:
        if sentence not in stored:
            raise TouchstoneError(
                f"the stored annotation does not hold the sentence {sentence[:60]!r}; the text has "
                'changed, so set spacy_pipeline to a pipeline ("environment", or its name)'
            )
    return [stored[sentence] for sentence in sentences]


def parse_by(
    pipeline: str, sentences: Sequence[str], files: Sequence[Path]
) -> tuple[list[Doc], str]:
    """The parse of sentences, stored or made now, and the name of the pipeline that made it.

    Args:
        pipeline: "stored", or as for `load_pipeline`.
        sentences: of one text.
        files: where their parse is stored.
    """
    if pipeline == STORED:
        return stored_annotation(sentences, files), stored_pipeline(files[0])
    loaded = load_pipeline(pipeline)
    return annotate(sentences, loaded), loaded.path.name


def stored_pipeline(file: Path) -> str:
    """The pipeline that made a stored annotation, from its head: "en_ud_sm with spaCy 3.8.18"."""
    with file.open(encoding="utf-8") as lines:
        named = re.search(r"by the spaCy pipeline (.+?),", next(lines))
    if named is None:
        raise TouchstoneError(
            f"{file} does not name its pipeline in the first line; store the annotation again"
        )
    return named[1]


def read_docs(path: Path | str) -> dict[str, Doc]:
    """The sentences of a CoNLL-U file as spaCy documents, by `sent_id`.

    Raises:
        TouchstoneError: as `read_conllu`, and with the line for an unknown part of speech and
            for features that are not `Name=Value|Name=Value`.
    """
    trees = read_conllu(path)
    for row in (row for tree in trees for row in tree.rows):
        for column, text, is_known in (
            ("UPOS", row.upos, row.upos in _UPOS),
            ("features", row.feats, _FEATURES.fullmatch(row.feats)),
        ):
            if not is_known:
                raise TouchstoneError(
                    f"{path}, line {row.line}: the {column} {text!r} are none of Universal "
                    "Dependencies; write _ where there are none"
                )
    return {
        tree.comments.get("sent_id", f"line {tree.rows[0].line}"): doc_of(tree) for tree in trees
    }


def doc_of(tree: Tree) -> Doc:
    """A sentence of a CoNLL-U file as a spaCy document."""
    rows, last = tree.rows, len(tree.rows) - 1
    return Doc(
        _splitter().vocab,
        words=[row.form for row in rows],
        lemmas=[row.lemma for row in rows],
        pos=["" if row.upos == "_" else row.upos for row in rows],
        tags=[row.xpos for row in rows],
        morphs=["" if row.feats == "_" else row.feats for row in rows],
        heads=[i if row.head < 0 else row.head for i, row in enumerate(rows)],
        deps=["ROOT" if row.head < 0 else row.deprel for row in rows],
        spaces=["SpaceAfter=No" not in row.misc and i < last for i, row in enumerate(rows)],
    )


@cache
def _splitter() -> Language:
    splitter = spacy.blank("en")
    splitter.add_pipe("sentencizer")
    return splitter


def _before_marks(text: str, start: int) -> int:
    """The start of a sentence, moved before the marks that open it.

    A `"` between two blanks opens a quotation if an even number of them came before.
    """
    marks = _OPENING.search(text[:start])
    if marks is None or (marks[1] and '"' in marks[0] and text[: marks.start()].count('"') % 2):
        return start
    return marks.start()
