"""The units of implicit_bias as jobs: those of the notebooks, made apart and found again."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import transformers as tf
from tiny_models import tiny_module

from lib.core import units
from lib.core.errors import TouchstoneError
from lib.core.files import save_parquet
from lib.core.jobs import closed_stage
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT, pretrained_dir
from lib.core.stage import open_stage
from lib.language.lexicon import PRONOUNS
from lib.metrics.masked_pronoun import bias_score
from lib.studies.implicit_bias import answers, arms, asked, jobs, trainings
from lib.studies.implicit_bias.answers import Answers
from lib.studies.implicit_bias.asked import Model, filled_sentences, models_of
from lib.studies.implicit_bias.jobs import jobs_of
from lib.studies.implicit_bias.kept_models import Training
from lib.studies.implicit_bias.sentences import masked_words
from lib.studies.implicit_bias.trainings import Trainings

PLACE = ("implicit_bias", "small")
NOUNS = ["singer", "friend", "person", "horse", "piano", "son", "nurse", "cook", "judge", "guard"]
WORDS = {"she": "F", "her": "F", "he": "M", "his": "M"}


def tiny_encoder(folder: Path) -> str:
    """A tiny BERT whose vocabulary has all pronouns."""
    module, tokenizer = tiny_module("bert", tf.AutoModelForMaskedLM)
    tokenizer.add_tokens(sorted(PRONOUNS))
    module.resize_token_embeddings(len(tokenizer))
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def filtered() -> pd.DataFrame:
    rows = []
    for i, noun in enumerate(NOUNS * 2):
        pronoun = list(WORDS)[i % 4]
        at = 2 if pronoun in ("she", "he") else 3
        words = (
            ["The", noun, pronoun, "sings", "."]
            if at == 2
            else ["The", noun, "loves", pronoun, "horse", "."]
        )
        slot = "subject" if at == 2 else "possessive"
        place = (f"r{i}", words, masked_words(words, at), at, slot, WORDS[pronoun], noun, 1)
        rows.append(place)
    columns = ["sentence_id", "words", "masked", "at", "slot", "gender", "antecedent"]
    return pd.DataFrame(rows, columns=[*columns, "antecedent_at"])


def first_stage() -> None:
    """What stage 01 leaves, in little."""
    texts = [f"{who} is a friend of {of} son .".split() for who, of in [("She", "her")] * 4]
    frames = [f"The singer said that {who} sings .".split() for who in ("she", "he")] * 6
    text = pd.DataFrame({"source": "plots", "words": texts * 3, "part": ["train", "valid"] * 6})
    more = pd.DataFrame({"source": "frames", "words": frames, "part": "train"})
    stage = open_stage(*PLACE, "01_data_generation")
    text = pd.concat([text, more], ignore_index=True)
    save_parquet(filtered(), stage.path("sentences.parquet"))
    save_parquet(text, stage.path("text.parquet"))
    stage.close(defaults("01_data_generation"))


def defaults(stage: str) -> dict[str, Any]:
    return notebook_parameters(ROOT / "notebooks" / "implicit_bias" / f"{stage}.py")


def second_stage(values: dict[str, Any]) -> list[trainings.Training]:
    """What the notebook of stage 02 does with the units."""
    stage = open_stage(*PLACE, "02_training")
    found = Trainings(stage, values)
    bases = [found.base(b) for b in range(values["n_bases"])]
    started = [found.arm(*place, found.chosen_mixture()) for place in found.arms()]
    about = [(t.name, t.key, t.sha256) for t in bases + started]
    table = pd.DataFrame(about, columns=["name", "key", "sha256"])
    save_parquet(table, stage.path("trainings.parquet"))
    split = found.sentences[["sentence_id", "antecedent", "part"]]
    save_parquet(split, stage.path("split.parquet"))
    gates = pd.DataFrame({"model": "base", "base": [0, 1], "passes": [False, True]})
    stage.table("gate", gates)
    stage.close(values)
    return bases + started


@pytest.fixture
def values(small_outputs: Path, tmp_path: Path) -> dict[str, Any]:
    first_stage()
    return defaults("02_training") | {
        "encoder": tiny_encoder(tmp_path / "tiny"),
        "epochs": 1,
        "batch_tokens": 64,
        "gate": 0.0,
        "mixtures": [[1e-4, 1.0], [1e-5, 1.0]],
        "device": "cpu",
    }


@pytest.mark.slow
def test_jobs_are_the_notebooks_units_and_are_found_by_them(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    training = jobs_of(closed_stage(*PLACE, "02_training"), values)
    assert [job.key.partition("/")[2] for job in training] == [
        "base0",
        "base1",
        "without_frames",
        "mixture",
        *(
            f"{arm}/base{b}_seed0"
            for b in (0, 1)
            for arm in ("placebo", "even_placebo", "augmented")
        ),
    ]
    assert {job.model for job in training} == {"base0", "base1"}
    assert all(job.seconds > 0 and job.needs == ("01_data_generation",) for job in training)
    for job in reversed(training):  # an arm that comes first makes its base model
        job.compute()
    monkeypatch.setattr(trainings, "fit_or_read", lambda *_: pytest.fail("trained again"))
    started = second_stage(values)
    assert [t.name for t in started[:3]] == ["base0", "base1", "placebo/base0_seed0"]
    assert [(t.base, t.seed) for t in started[4:6]] == [(0, 0), (1, 0)]

    chosen = defaults("03_attribution") | {"n_explained": 2, "device": "cpu"}
    chosen["methods"] = ["InputXGradient"]
    stage = closed_stage(*PLACE, "03_attribution")
    asking = jobs_of(stage, chosen)
    names = [job.key.partition("/")[2] for job in asking]
    assert names[:2] == ["base0/probabilities", "base1/probabilities"] and len(names) == 10
    assert names[-2:] == ["base1/explanations", "base1/vectors"], "of the first that passed"
    for job in asking:
        job.compute()
    monkeypatch.setattr(asked, "read_masked_lm", lambda *_: pytest.fail("asked again"))
    stage = open_stage(*PLACE, "03_attribution")
    found, models = Answers(stage, chosen, filled_sentences(stage)), models_of(stage, chosen)
    tables = [found.probabilities(model) for model in models]
    assert all(len(table) == 3 * 20 for table in tables)
    assert tables[-1][["model", "base", "seed"]].drop_duplicates().to_numpy().tolist() == [
        ["augmented", 1, 0]
    ]
    told = found.explanations(models[1])
    assert [len(w) for w in told["words"]] == [len(s) for s in told["scores"]]
    assert len(found.vectors(models[1]).query("kind == 'sentence'")) == 20
    assert found.phrases(models[1])["stereotype"].value_counts().nunique() == 1
    assert len(found.example(models[1])) == chosen["k"]
    stage.close(chosen)
    assert "02_training/models/base1.safetensors" in stage.inputs, "read by whoever made the unit"


@pytest.mark.slow
def test_a_changed_question_and_damaged_weights_train_again(
    values: dict[str, Any], small_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    fit = trainings.fit_or_read
    monkeypatch.setattr(
        trainings, "fit_or_read", lambda path, *rest: (made.append(path.stem), fit(path, *rest))[1]
    )
    values |= {"mixtures": [[1e-4, 1.0]], "n_bases": 1}
    stage = closed_stage(*PLACE, "02_training")
    first = Trainings(stage, values).arm("augmented", 0, 0, 0)
    assert sorted(made) == ["base0", "base0_seed0"]
    again = Trainings(stage, values).arm("augmented", 0, 0, 0)
    pd.testing.assert_frame_equal(first.about, again.about)
    assert len(made) == 2 and first.curve["epoch"].tolist() == [1]
    assert first.perplexity == first.curve["perplexity"].iloc[-1] > 1
    assert 0 <= first.share_right("gate_choice") <= 1 and len(first.right()) == 200
    weights = stage.folder / "models/augmented/base0_seed0.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    Trainings(stage, values).arm("augmented", 0, 0, 0)
    assert made[2:] == ["base0_seed0"]
    Trainings(stage, values | {"arm_epochs": 2}).arm("augmented", 0, 0, 0)
    assert made[3:] == ["base0_seed0"]
    Trainings(stage, values | {"lr": 1e-3}).arm("augmented", 0, 0, 0)
    assert sorted(made[4:]) == ["base0", "base0_seed0"], "another base model, another arm"


def test_an_answer_is_kept_by_weights_and_texts(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = defaults("03_attribution")
    stage, sentences = closed_stage(*PLACE, "03_attribution"), filtered().assign(part="held out")
    loaded: list[int] = []
    monkeypatch.setattr(answers, "fill", lambda model, rows: toy_fill(rows))

    def model(identity: str) -> Model:
        return Model("base0", "base", 0, -1, identity, lambda: loaded.append(1))  # type: ignore

    found = Answers(stage, chosen, sentences)
    first = found.probabilities(model("a"))
    assert found.probabilities(model("a")).equals(first) and len(loaded) == 1
    assert first["p_M"].tolist() == [0.5 + i / 100 for i in range(20)]
    assert bias_score(first["p_M"], first["p_F"]).between(0, 1).all() and "masked" not in first
    found.probabilities(model("b"))
    Answers(stage, chosen, sentences.iloc[:9]).probabilities(model("b"))
    assert len(loaded) == 3
    with pytest.raises(TouchstoneError, match="transfer is 'winobias'; write winogender"):
        Answers(stage, chosen | {"transfer": "winobias"}, sentences)


@pytest.mark.slow
def test_a_clone_without_weights_goes_on_with_what_is_missing(
    values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was published of a base model and its arms is all that later stages need of it."""
    monkeypatch.setattr(units, "reference_dir", lambda study, scale: tmp_path / "reference")
    monkeypatch.setattr(Training, "passes", lambda self, least: self.base == 1)
    values |= {"mixtures": [[1e-4, 1.0]], "reuse_units": True}
    chosen = defaults("03_attribution") | {"n_explained": 2, "device": "cpu", "reuse_units": True}
    chosen["methods"] = ["InputXGradient"]
    later = SimpleNamespace(stage="03_attribution", all=chosen)
    monkeypatch.setattr(jobs, "plan_jobs", lambda *_: [later])
    for job in jobs_of(closed_stage(*PLACE, "02_training"), values):
        job.compute()
    published = sorted((tmp_path / "reference").rglob("*.parquet"))
    assert max(path.stat().st_size for path in published) < units.LIMIT
    explained = {path.parent.name for path in published if path.stem == "explanations"}
    assert explained == {"base1"}, "base 0 did not pass, which is known by then"
    ids = {path.stem: pd.read_parquet(path) for path in published if path.stem.startswith("rows-")}
    assert set(ids) == {"rows-texts", "rows-sentences", "rows-phrases"}
    length = {path.stem: len(pd.read_parquet(path)) for path in published}
    assert length["vectors-input-0"] == len(ids["rows-texts"]) < 200, "one part"
    assert length["vectors-sentences-0"] == len(ids["rows-sentences"])
    assert length["phrases"] == len(ids["rows-phrases"])

    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / "clone"))
    first_stage()
    fit = trainings.fit_or_read
    monkeypatch.setattr(trainings, "fit_or_read", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(asked, "read_masked_lm", lambda *_: pytest.fail("asked again"))
    started = second_stage(values)
    assert not list((tmp_path / "clone").rglob("*.safetensors")) and len(started) == 8
    stage = open_stage(*PLACE, "03_attribution")
    found, models = Answers(stage, chosen, filled_sentences(stage)), models_of(stage, chosen)
    assert sum(len(found.probabilities(model)) for model in models) == 8 * 60
    assert len(found.explanations(models[1])) == 2
    vectors = found.vectors(models[1])
    assert set(ids["rows-sentences"]["sentence_id"]) == set(
        vectors.loc[vectors["kind"] == "sentence", "text"]
    )
    assert (
        ids["rows-texts"]["entry"].tolist() == vectors.query("vectors == 'input'")["text"].to_list()
    )
    with pytest.raises(TouchstoneError, match="base0 has no weights here.*reuse_units false"):
        found.explanations(models[0])

    made: list[str] = []
    monkeypatch.setattr(
        trainings, "fit_or_read", lambda path, *rest: (made.append(path.stem), fit(path, *rest))[1]
    )
    (lost,) = (tmp_path / "reference/units/02_training/augmented").glob("base1_seed0.*")
    lost.unlink()
    shutil.rmtree(tmp_path / "clone/implicit_bias/small/02_training")
    again = second_stage(values)
    assert sorted(made) == ["base1", "base1_seed0"] and lost.is_file(), "the others stay published"
    assert [t.sha256 for t in again] == [t.sha256 for t in started]


def test_a_base_model_starts_from_a_pretrained_one(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    values |= {"pretrained": ["minilm-books-1"], "n_bases": 1, "checks": 2}
    started: list[str] = []

    def pretrain(name: str) -> None:
        started.append(name)
        tiny_encoder(pretrained_dir(name))

    monkeypatch.setattr(trainings, "pretrain", pretrain)
    stage = closed_stage(*PLACE, "02_training")
    base = Trainings(stage, values).base(0)
    assert started == ["minilm-books-1"] and len(base.curve) == 2 and np.isfinite(base.gain())
    assert set(base.on_sources()) == {"plots"} and base.number("unigram") > 1
    shutil.rmtree(pretrained_dir("minilm-books-1"))
    assert Trainings(stage, values).base(0).key == base.key, "the recipe is the question"
    plain = Trainings(stage, values | {"pretrained": []}).base(0)
    assert plain.key != base.key and started == ["minilm-books-1"]
    upper = Trainings(stage, values | {"pretrained": [], "base_tuned": "upper"}).base(0)
    assert upper.key != plain.key and not upper.curve.equals(plain.curve)
    with pytest.raises(TouchstoneError, match="pretrained names 1 models and n_bases is 2"):
        Trainings(stage, values | {"n_bases": 2})


def toy_fill(rows: pd.DataFrame) -> pd.DataFrame:
    p = 0.5 + np.arange(len(rows)) / 100
    about = {"sentence_id": rows["sentence_id"], "forms": "slot", "p_F": 0.1, "p_M": p}
    return pd.DataFrame(about | {"rank_F": 3, "rank_M": 1})


def test_the_arms_differ_in_the_pronouns_alone() -> None:
    sentences = arms.with_parts(filtered(), 0.5, 0)
    assert set(sentences.groupby("antecedent")["part"].nunique()) == {1}
    assert set(arms.with_parts(filtered(), 1.0, 0)["part"]) == {"held out"}
    texts = {arm: arms.arm_text(sentences, arm, 0, 0) for arm in arms.ARMS}
    assert len({len(text) for text in texts.values()}) == 1
    for first, second in zip(texts["augmented"][::2], texts["augmented"][1::2]):
        assert sum(a != b for a, b in zip(first, second, strict=True)) == 1
    assert texts["placebo"][::2] == texts["placebo"][1::2]
    genders = [
        WORDS[word.lower()] for text in texts["even placebo"] for word in text if word in WORDS
    ]
    assert genders.count("M") == genders.count("F")
    own, base = texts["placebo"], [(["a"], True), (["b"], False)] * 20
    read = arms.rehearsed(own, base, 0.5, 0.75, arms.random.Random(0))[len(own) :]
    assert read.count(["a"]) == round(0.375 * len(own)) and len(read) - read.count(["a"]) == round(
        0.125 * len(own)
    )
