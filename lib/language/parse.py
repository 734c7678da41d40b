"""From text to annotated sentences: splitting, spaCy annotation live or stored, and what the sentence filters ask.

Two label schemes are understood everywhere: Universal Dependencies ("UD": nsubj:pass, aux:pass, and a copula that hangs
below its predicate) and the scheme of spaCy's own English pipelines ("CLEAR": nsubjpass, auxpass, the copula as head).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pandas as pd
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Token

from lib.core.errors import TouchstoneError
from lib.core.paths import spacy_pipeline
from lib.language.conllu import Sentence, read_conllu, write_conllu

STORED = "stored"
ENVIRONMENT = "environment"
SUBJECTS = frozenset({"nsubj", "nsubj:pass", "nsubjpass"})
FINITE_HELPERS = frozenset({"cop", "aux", "aux:pass", "auxpass"})
EXPLETIVE = "expl"
OPENING = re.compile(
    r"(?:^|(?<=\s))[\"'“‘«(\[]+(\s*)$"
)  # at the end of what comes before a sentence
CLOSED = re.compile(r"[.!?…]\s*[\"'”’»]\s*$")
SENTENCES_A_FILE = 280  # keeps a file of stored annotation below 500 kB


def split_sentences(text: str) -> list[str]:
    """The sentences of a paragraph, by spaCy's punctuation rules: a full stop ends one, that of "Mr." does not.

    A mark that opens a quotation (or a bracket) goes with the sentence after it, one that closes it with the one before;
    what follows a quotation in small letters belongs to it.

    >>> split_sentences("Mr. Darcy bows. She laughs.")
    ['Mr. Darcy bows.', 'She laughs.']
    >>> split_sentences('He sits. "Are you ill?" she asks.')
    ['He sits.', '"Are you ill?" she asks.']
    """
    text = text.strip()
    starts = sorted(
        {_before_marks(text, sentence.start_char) for sentence in _splitter()(text).sents}
    )
    starts = [i for i in starts if i == 0 or not (text[i].islower() and CLOSED.search(text[:i]))]
    return [text[i:j].strip() for i, j in zip(starts, [*starts[1:], len(text)], strict=False)]


def read_summaries(path: Path) -> pd.DataFrame:
    """The sentences of a Markdown file of texts (`## Title` above paragraphs): sentence_id, title, paragraph, sentence.

    A sentence's id is its title in small letters and its number within the text: "emma-02". What stands above the
    first title is a preface and left out. Raises TouchstoneError where there is no title, or one is used twice.
    """
    rows: list[tuple[str, str, int, str]] = []
    texts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    titles = [text.split("\n", 1)[0].strip() for text in texts]
    if not titles or len(set(map(text_id, titles))) < len(titles):
        raise TouchstoneError(
            f"{path} has no headings `## Title`, or two that give the same id; "
            "give every text one of its own"
        )
    for title, text in zip(titles, texts, strict=True):
        paragraphs = [
            " ".join(part.split()) for part in text.partition("\n")[2].split("\n\n") if part.strip()
        ]
        sentences = [
            (number, sentence)
            for number, part in enumerate(paragraphs, start=1)
            for sentence in split_sentences(part)
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
    """The spaCy pipeline of a name or path, or of `TOUCHSTONE_SPACY` for "environment"; it must have a parser.

    Raises TouchstoneError where it is missing, or annotates no dependencies.
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
            f"the spaCy pipeline {given!r} cannot be loaded ({_first_line(error)}); install it "
            "(`python -m spacy download en_core_web_sm`), or use spacy_pipeline: stored"
        ) from error
    if "parser" not in pipeline.pipe_names:
        raise TouchstoneError(
            f"the spaCy pipeline {given!r} has no parser, and the sentence filters need one; "
            "choose a pipeline with a tagger, a morphologizer or rules, and a parser"
        )
    return pipeline


def annotate(sentences: Sequence[str], pipeline: Language) -> list[Doc]:
    """Parse each sentence by itself, as one sentence: the parser is not allowed to split it again."""
    docs = [pipeline.make_doc(sentence) for sentence in sentences]
    for doc in docs:
        for token in doc:
            token.is_sent_start = token.i == 0
    return list(pipeline.pipe(docs))


def annotate_tokens(sentences: Sequence[Sequence[str]], pipeline: Language) -> list[Doc]:
    """Parse sentences that are split into words already (GECO's are), keeping their words as they are."""
    docs = [
        Doc(pipeline.vocab, words=list(words), sent_starts=[i == 0 for i in range(len(words))])
        for words in sentences
    ]
    return list(pipeline.pipe(docs))


def stored_annotation(sentences: Sequence[str], files: Iterable[Path]) -> list[Doc]:
    """The annotation of sentences as an earlier run stored it in CoNLL-U files, found by their text.

    Raises TouchstoneError for a sentence that is not stored: the text has changed since.
    """
    stored: dict[str, Doc] = {}
    for file in files:
        stored |= {doc.text: doc for doc in read_docs(file).values()}
    for sentence in sentences:
        if sentence not in stored:
            raise TouchstoneError(
                f"the stored annotation does not hold the sentence {sentence[:60]!r}; the text has "
                'changed, so set spacy_pipeline to a pipeline ("environment", or its name)'
            )
    return [stored[sentence] for sentence in sentences]


def store_annotation(text: Path, pipeline: Language, date: str) -> list[Path]:
    """Annotate a file of texts and keep the result beside it as `annotation_1.conllu` ...; returns the files."""
    sentences = read_summaries(text)
    docs = dict(
        zip(sentences["sentence_id"], annotate(list(sentences["sentence"]), pipeline), strict=True)
    )
    files: list[Path] = []
    header = [
        f"annotation of {text.name} by the spaCy pipeline {pipeline.path.name} with spaCy {spacy.__version__}, "
        f"{date}",
        "one sentence at a time, split by punctuation rules",
        "made by a program and not corrected; licence of the text: CC BY 4.0",
    ]
    for start in range(0, len(docs), SENTENCES_A_FILE):
        files.append(text.with_name(f"annotation_{len(files) + 1}.conllu"))
        write_conllu(dict(list(docs.items())[start : start + SENTENCES_A_FILE]), files[-1], header)
    return files


def stored_pipeline(file: Path) -> str:
    """What the head of a stored annotation says about the pipeline that made it: "en_ud_sm with spaCy 3.8.18"."""
    with file.open(encoding="utf-8") as lines:
        found = re.search(r"by the spaCy pipeline (.+?),", next(lines))
    if found is None:
        raise TouchstoneError(
            f"{file} does not name its pipeline in the first line; store the annotation again"
        )
    return found[1]


def read_docs(path: Path | str) -> dict[str, Doc]:
    """The sentences of a CoNLL-U file as spaCy documents, by `sent_id`."""
    return {
        sentence.comments.get("sent_id", f"line {sentence.rows[0].line}"): doc_of(sentence)
        for sentence in read_conllu(path)
    }


def doc_of(sentence: Sentence) -> Doc:
    """A sentence of a CoNLL-U file as a spaCy document."""
    rows, last = sentence.rows, len(sentence.rows) - 1
    return Doc(
        _splitter().vocab,
        words=[row.form for row in rows],
        lemmas=[row.lemma for row in rows],
        pos=[row.upos for row in rows],
        tags=[row.xpos for row in rows],
        morphs=["" if row.feats == "_" else row.feats for row in rows],
        heads=[i if row.head < 0 else row.head for i, row in enumerate(rows)],
        deps=["ROOT" if row.head < 0 else row.deprel for row in rows],
        spaces=["SpaceAfter=No" not in row.misc and i < last for i, row in enumerate(rows)],
    )


def root_of(doc: Doc) -> Token:
    """The head of the sentence: in UD the predicate ("She is [happy]"), in CLEAR the finite verb ("She [is] happy")."""
    return next(token for token in doc if token.head.i == token.i)


def finite_verbs(doc: Doc) -> list[Token]:
    """What may carry the person and number of the main clause: the root, its copula and its auxiliaries, if finite."""
    root = root_of(doc)
    group = [root, *(child for child in root.children if child.dep_ in FINITE_HELPERS)]
    return [token for token in group if "Fin" in token.morph.get("VerbForm")]


def is_third_singular(doc: Doc) -> bool:
    """Whether the main clause is in the third person singular: she walks, she is walking, she has gone, she is a nun.

    The paper (appendix A.1.2) asks the root alone; in UD the root of "she is a nun" is the nun, and in both schemes
    that of "she has gone" is a participle, so the verb group is asked here.
    """
    return any(
        "3" in verb.morph.get("Person") and "Sing" in verb.morph.get("Number")
        for verb in finite_verbs(doc)
    )


def subject_of(doc: Doc) -> Token | None:
    """The head word of the main clause's subject, active or passive, or None ("There is a widow" counts as none).

    UD calls the widow of "There is a widow" a subject and CLEAR does not; both give None here.
    """
    children = list(root_of(doc).children)
    if any(child.dep_ == EXPLETIVE for child in children):
        return None
    return next((child for child in children if child.dep_ in SUBJECTS), None)


def is_neuter(token: Token) -> bool:
    """Whether a word is marked as neuter (it, itself, its)."""
    return "Neut" in token.morph.get("Gender")


def is_human(token: Token, human_nouns: Collection[str]) -> bool:
    """Whether a subject is one gendered person: a proper noun, he or she, or a noun of the list; never a plural."""
    if "Plur" in token.morph.get("Number"):
        return False
    if token.pos_ == "NOUN":
        return token.lemma_.lower() in human_nouns
    return token.pos_ == "PROPN" or token.lower_ in ("he", "she")


def apply_filters(
    docs: Mapping[str, Doc],
    filters: Mapping[str, Callable[[Doc], bool]],
) -> tuple[dict[str, Doc], dict[str, str], pd.DataFrame]:
    """Apply named filters one after the other, then leave out repeated sentences.

    Returns the documents that are left by id, the filter that took each of the others, and a table (step, sentences) of
    what was left after each step.
    """
    left, lost, steps = dict(docs), {}, [("sentences", len(docs))]
    for name, keeps in filters.items():
        lost |= {key: name for key, doc in left.items() if not keeps(doc)}
        left = {key: doc for key, doc in left.items() if key not in lost}
        steps.append((name, len(left)))
    first = {doc.text: key for key, doc in reversed(left.items())}
    lost |= {key: "no duplicate" for key, doc in left.items() if first[doc.text] != key}
    left = {key: doc for key, doc in left.items() if key not in lost}
    return (
        left,
        lost,
        pd.DataFrame([*steps, ("no duplicate", len(left))], columns=["step", "sentences"]),
    )


def read_word_list(path: Path) -> frozenset[str]:
    """The words of a list, one or more on a line; what follows a `#` is a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines for word in line.split("#")[0].split())


@cache
def _splitter() -> Language:
    splitter = spacy.blank("en")
    splitter.add_pipe("sentencizer")
    return splitter


def _before_marks(text: str, start: int) -> int:
    """The start of a sentence, moved before the marks that open it; `"` between two spaces opens if an even number came before."""
    found = OPENING.search(text[:start])
    if found is None or (found[1] and '"' in found[0] and text[: found.start()].count('"') % 2):
        return start
    return found.start()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


if (
    __name__ == "__main__"
):  # python -m lib.language.parse notebooks/geco/material/plots.md en_core_web_sm 2026-11-21
    for made in store_annotation(Path(sys.argv[1]), load_pipeline(sys.argv[2]), sys.argv[3]):
        print(made)
