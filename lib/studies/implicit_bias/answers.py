"""What stage 03 asks of the models, as units: probabilities at the masks, explanations, vectors.

A unit holds ids and numbers, no texts; what is returned has them again. Its key is that of the
weights by content, of the texts, and of the settings. The rows of vectors and of phrases have no
ids of their own: `rows-texts`, `rows-sentences` and `rows-phrases` say what each is about.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from ...attribution.explain import explain_many
from ...core.errors import TouchstoneError
from ...core.files import load_parquet, read_yaml
from ...core.paths import data_root, material
from ...core.stage import Stage
from ...core.units import Units
from ...language.lexicon import MASK
from ...metrics.masked_pronoun import gender_probabilities, top_words
from ...models.masked_gender import GenderAtMask, gender_ids, slot_ids
from ...models.masked_lm import MaskedLM
from ...training.pretrain import RECIPES, texts_of
from .asked import ASKED, Model, winogender
from .sentences import SLOTS, split_words

_PART = 200  # vectors in a unit, so that it may be published
KINDS = ("input", "encoder", "template")  # of the vectors of words and phrases


class Answers:
    """What the models of one run answer, each asked when its answer is first wanted.

    Args:
        stage: stage 03, open or not; its folder keeps the units.
        values: the parameters of its notebook.
        sentences: the sentences that passed, with `part`.

    Raises:
        TouchstoneError: `transfer` names no set of sentences that is at hand.
    """

    def __init__(self, stage: Stage, values: Mapping[str, Any], sentences: pd.DataFrame) -> None:
        transfer = values["transfer"]
        if transfer not in ("", "winogender") or (transfer and data_root() is None):
            raise TouchstoneError(
                f"transfer is {transfer!r}; write winogender (with TOUCHSTONE_DATA set), or nothing"
            )
        self._stage, self._values, self.sentences = stage, values, sentences
        self.asked = sentences[ASKED]
        if transfer:
            learnt = set(sentences.loc[sentences["part"] == "trained on", "antecedent"])
            more = winogender(stage, learnt)
            self.asked = pd.concat([self.asked, more], ignore_index=True)
        self._store = Units(stage.study, stage.scale, stage.stage, values["reuse_units"])

    def probabilities(self, model: Model) -> pd.DataFrame:
        """Both genders at every mask, for each choice of words (column `forms`).

        Returns:
            The sentences without their words, with p_F, p_M, rank_F, rank_M, forms, model, base,
            seed.
        """
        asked = self.asked
        found = self._kept(
            f"{model.name}/probabilities",
            model,
            [list(asked["masked"]), list(asked["slot"]), list(asked["sentence_id"])],
            lambda: fill(model.load(), asked),
        )
        place = {"model": model.model, "base": model.base, "seed": model.seed}
        about = asked.drop(columns="masked")
        parts = [
            about.join(part.drop(columns=["sentence_id", "forms"]).set_index(asked.index)).assign(
                forms=kind, **place
            )
            for kind, part in found.groupby("forms", sort=False)
        ]
        return pd.concat(parts, ignore_index=True)

    def explained(self) -> pd.DataFrame:
        """The sentences that are explained: a fixed draw."""
        n = min(self._values["n_explained"] or len(self.sentences), len(self.sentences))
        return self.sentences.sample(n=n, random_state=self._values["seed"]).sort_index()

    def explanations(self, model: Model) -> pd.DataFrame:
        """The scores of all words of the explained sentences, by every method, in the one format
        of explanations. What is explained is the score of class male at the mask.
        """
        chosen, seed = self.explained(), self._values["seed"]
        rows = pd.DataFrame(
            {
                "row_id": chosen["sentence_id"],
                "sentence_idx": range(len(chosen)),
                "target": 1,
                "sentence": chosen["masked"],
            }
        )
        exact = {
            "tolerance": self._values["tolerance"],
            "placing": "panels",
            "max_steps": 2001,
        }
        methods = {
            name: {"explained": "logit"} | (exact if name == "Integrated Gradients" else {})
            for name in self._values["methods"]
        }
        place = {"study": "implicit_bias", "dataset": "filtered", "scheme": "base", "seed": seed}

        def make() -> pd.DataFrame:
            asked = GenderAtMask(model.load())
            return explain_many(asked, rows, list(methods.items()), **place).drop(columns="words")

        about = [list(rows["row_id"]), list(rows["sentence"]), methods, seed]
        found = self._kept(f"{model.name}/explanations", model, about, make)
        words = dict(zip(rows["row_id"], rows["sentence"]))
        return found.assign(
            words=[list(words[row]) for row in found["row_id"]],
            scores=found["scores"].map(list),
        )

    def example(self, model: Model) -> pd.DataFrame:
        """The k likeliest words at the mask of the first sentence with a possessive: word,
        probability, gender.
        """
        possessives = self.sentences.loc[self.sentences["slot"] == "possessive", "masked"]
        words, k = possessives.iloc[0], self._values["k"]

        def make() -> pd.DataFrame:
            lm = model.load()
            own = [lm.tokenizer.mask_token if word == MASK else word for word in words]
            return top_words(lm.log_prob(lm.encode([own]))[0], lm.tokenizer, k)

        return self._kept(f"{model.name}/example", model, [list(words), k], make)

    def vectors(self, model: Model) -> pd.DataFrame:
        """Vectors of words, phrases (in `KINDS`) and sentences (without their pronoun).

        Returns:
            kind (word, phrase, sentence), text (of a sentence its id), vectors, vector.
        """
        texts = self.texts()
        self._store.keep_ids("rows-texts", pd.DataFrame(texts, columns=["kind", "entry"]))
        self._store.keep_ids("rows-sentences", self.sentences[["sentence_id"]])
        tables = []
        for kind in KINDS:
            split = self._framed(kind, texts)
            rows = self._vectors(model, kind, split, kind != "input")
            tables.append(
                pd.DataFrame(texts, columns=["kind", "text"]).assign(vectors=kind, vector=rows)
            )
        bare = [[word for word in words if word != MASK] for words in self.sentences["masked"]]
        own = {"kind": "sentence", "text": self.sentences["sentence_id"], "vectors": "encoder"}
        rows = self._vectors(model, "sentences", [bare], True)
        return pd.concat([*tables, pd.DataFrame(own | {"vector": rows})]).reset_index(drop=True)

    def texts(self) -> list[tuple[str, str]]:
        """The words and phrases of the association tests, each with its kind."""
        weat, phrases = self._lists()
        listed = sorted({word for test in weat.values() for name in "XYAB" for word in test[name]})
        return [("word", word) for word in listed] + [
            ("phrase", phrase) for gender in ("male", "female") for phrase in phrases[gender]
        ]

    def phrases(self, model: Model) -> pd.DataFrame:
        """What is at the mask of "The person [phrase] and then [MASK] went home."

        Returns:
            p_F, p_M, rank_F, rank_M, phrase, stereotype.
        """
        _, lists = self._lists()
        told = [(phrase, gender) for gender in ("male", "female") for phrase in lists[gender]]
        self._store.keep_ids("rows-phrases", pd.DataFrame(told, columns=["phrase", "stereotype"]))

        def make() -> pd.DataFrame:
            lm = model.load()
            end = [lm.tokenizer.mask_token, "went", "home", "."]
            frames = [split_words(f"The person {phrase} and then") + end for phrase, _ in told]
            log_prob = lm.log_prob(lm.encode(frames))
            return gender_probabilities(log_prob, slot_ids(lm.tokenizer, "subject"))

        found = self._kept(f"{model.name}/phrases", model, told, make)
        return found.assign(
            phrase=[phrase for phrase, _ in told], stereotype=[gender for _, gender in told]
        )

    def _lists(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        own = material("implicit_bias")
        return read_yaml(own / "weat.yaml"), read_yaml(own / "phrases.yaml")

    def _framed(self, kind: str, texts: Sequence[tuple[str, str]]) -> list[list[list[str]]]:
        """The texts as words: as they are, or in each of three templates."""
        if kind != "template":
            return [[split_words(text) for _, text in texts]]
        _, phrases = self._lists()
        of = {"word": phrases["templates"], "phrase": phrases["phrase_templates"]}
        return [[split_words(of[what][j].format(text)) for what, text in texts] for j in range(3)]

    def _vectors(
        self, model: Model, name: str, framed: Sequence[list[list[str]]], contextual: bool
    ) -> list[list[float]]:
        """The mean over frames of each text's vector, kept in parts that may be published."""

        @cache
        def whole() -> list[Float[np.ndarray, "hidden"]]:
            lm = model.load()
            filled = [lm.mean_vectors(texts, contextual) for texts in framed]
            return list((sum(filled[1:], filled[0]) / len(filled)).numpy())

        found: list[list[float]] = []
        for start in range(0, len(framed[0]), _PART):
            some = slice(start, start + _PART)
            part = self._kept(
                f"{model.name}/vectors-{name}-{start // _PART}",
                model,
                [framed, contextual, start],
                partial(_rows, whole, some),
            )
            found += [np.asarray(vector, float).tolist() for vector in part["vector"]]
        return found

    def occupations(self, books: Sequence[str] = ()) -> pd.DataFrame:
        """How often each occupation of `transfer` stands in what the base models read, also those
        that an arm was trained on, whose sentences are not asked.

        Args:
            books: models of `touchstone pretrain`; a column for the books of each.

        Returns:
            occupation, a column for each source of the text of stage 01 that is learnt from, and
            for each of `books`.
        """
        text = load_parquet(self._stage.input("01_data_generation", "text.parquet"))
        text = text[text["part"] == "train"]
        nouns = sorted(winogender(self._stage, set())["antecedent"].unique())
        found = {"occupation": nouns}
        for source, part in text.groupby("source", sort=False):
            found[source] = count_words(part["words"], nouns)
        for name in books:
            key = self._store.key(recipe=asdict(RECIPES[name]), nouns=nouns)
            found[name] = self._store.finished(
                f"occupations-{name}", key, partial(_in_books, name, nouns)
            )["n"].tolist()
        return pd.DataFrame(found)

    def _kept(
        self, name: str, model: Model, question: Any, make: Callable[[], pd.DataFrame]
    ) -> pd.DataFrame:
        """A unit found finished, or made now, to the last digit."""
        asked = json.dumps(question, default=list, sort_keys=True)
        digest = hashlib.sha256(asked.encode()).hexdigest()
        key = self._store.key(model=model.identity, asked=digest)
        with self._store.claim(name):
            found = self._store.load(name, key)
            return self._store.save(name, key, make(), exact=True) if found is None else found


def count_words(sentences: Iterable[Iterable[str]], nouns: Sequence[str]) -> list[int]:
    """How often each noun stands in some sentences, in either number, capitals folded.

    >>> count_words([["The", "nurse", "met", "nurses"]], ["nurse", "cook"])
    [2, 0]
    """
    n = Counter(word.lower() for words in sentences for word in words)
    return [n[noun] + n[f"{noun}s"] for noun in nouns]


def _rows(whole: Callable[[], list[Any]], some: slice) -> pd.DataFrame:
    return pd.DataFrame({"vector": whole()[some]})


def _in_books(name: str, nouns: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame({"n": count_words(texts_of(RECIPES[name])[0], nouns)})


def fill(model: MaskedLM, asked: pd.DataFrame) -> pd.DataFrame:
    """The probabilities of both genders at every mask, for each choice of words.

    Args:
        model: the masked LM.
        asked: sentence_id, masked (a list of words), slot; numbered from 0.

    Returns:
        sentence_id, forms (pronouns, identities, slot), p_F, p_M, rank_F, rank_M.
    """
    own = {MASK: model.tokenizer.mask_token}
    texts = [[own.get(word, word) for word in words] for words in asked["masked"]]
    log_prob = model.log_prob(model.encode(texts))  # (batch, vocab)
    found = {
        kind: gender_probabilities(log_prob, gender_ids(model.tokenizer, kind))
        for kind in ("pronouns", "identities")
    }
    slots = {slot: asked.index[asked["slot"] == slot] for slot in SLOTS}
    parts = [
        gender_probabilities(log_prob[list(rows)], slot_ids(model.tokenizer, slot)).set_index(rows)
        for slot, rows in slots.items()
        if len(rows)
    ]
    found["slot"] = pd.concat(parts).sort_index()
    tables = [
        part.assign(sentence_id=asked["sentence_id"], forms=kind) for kind, part in found.items()
    ]
    return pd.concat(tables, ignore_index=True)
