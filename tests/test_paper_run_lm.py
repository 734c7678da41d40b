"""`paper.yaml` of lm_saliency runs through all five stages: tiny models, hand-made files.

The repository is copied, so that `sources.yaml`, the sweep and WikiText's checksum can be those of
the files made here, which stand in the place of every download. All paths that paper scale takes
are taken: corpora made from archives, WikiText-103, PTB and CoNLL in tarsius' format, a model of
Hugging Face, 21 models of the sweep. More than two minutes of CPU, so it runs on request only:
TOUCHSTONE_DRY_RUN=1 pytest tests/test_paper_run_lm.py
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as tf
import yaml
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from lib.core.files import sha256_of, sha256_of_tree
from lib.core.parameters import read_params
from lib.core.paths import ROOT, data_root
from lib.core.runner import main
from lib.language.corpora import lines_sha256
from lib.studies.lm_saliency.lines import read_agreement, write_agreement
from lib.studies.lm_saliency.recipes import masc_lines, review_lines, treebank_lines
from lib.studies.lm_saliency.templates import syneval_rows, winobias_row

pytestmark = pytest.mark.slow

# what makes the run small, and nothing else
SMALLER = {
    "embedding": {"LSTM": 16, "QRNN": 16, "Transformer": 32},
    "width": {"LSTM": 16, "QRNN": 16, "Transformer": 64},
    "n_layers": {"LSTM": 3, "QRNN": 4, "Transformer": 4},
    "student_layers": {"LSTM": [0, 2], "QRNN": [0, 1, 3], "Transformer": [0, 3]},
    "vocabulary_size": 2600,
    "cutoffs": [800],
    "valid_share": 0.15,
    "lm_epochs": 4,
    "student_epochs": 1,
    "sweep_share": 0.1,
    "dropout": 0.0,
    "weight_drop": 0.1,
    "lm_lr": {"LSTM": 0.02, "QRNN": 0.02, "Transformer": 0.01},
    "batch_words": 150,
    "probe_epochs": 4,
    "probe_lr": 0.02,
    "n_probe_examples": 300,
    "n_words": 330,
    "n_samples": 3,
    "n_steps": 10,
    "sweep_samples": 2,
    "sweep_steps": 2,
    "n_bootstrap": 20,
}
N_NOUNS = 40


def sentence(rng: np.random.Generator) -> list[tuple[str, str]]:
    """`the n7s near the n3 are old .`: a noun, one of the other number, the verb of the first."""
    tag, (noun, other), s = int(rng.integers(2)), rng.integers(N_NOUNS, size=2), ("", "s")
    return [
        ("the", "DT"),
        (f"n{noun}{s[tag]}", ("NN", "NNS")[tag]),
        ("near", "IN"),
        ("the", "DT"),
        (f"n{other}{s[1 - tag]}", ("NN", "NNS")[1 - tag]),
        (("is", "are")[tag], ("VBZ", "VBP")[tag]),
        ("old", "JJ"),
        (".", "."),
    ]


def tree(rng: np.random.Generator) -> str:
    """The same as a CoNLL-U tree; *is* hangs from the adjective, as copulas do."""
    heads, relations = (
        (2, 7, 5, 5, 2, 7, 0, 7),
        ("det", "nsubj", "case", "det", "nmod", "cop", "root", "punct"),
    )
    rows = [
        f"{i}\t{w}\t{w}\t_\t{t}\t_\t{h}\t{r}\t_\t_"
        for i, ((w, t), h, r) in enumerate(
            zip(sentence(rng), heads, relations, strict=True), start=1
        )
    ]
    return "\n".join(rows) + "\n\n"


def coreference(rng: np.random.Generator, name: str) -> str:
    """`Ann met Mr. Lee . Then she slept .` with two clusters, or with the genders turned round."""
    tokens = [
        ("Ann", "(a)"),
        ("met", "_"),
        ("Mr.", "(b"),
        ("Lee", "b)"),
        (".", "_"),
        ("Then", "_"),
        ("she", "(a)"),
        ("slept", "_"),
        (".", "_"),
    ]
    if rng.integers(2):
        tokens = [
            ("Mr.", "(b"),
            ("Lee", "b)"),
            ("met", "_"),
            ("Ann", "(a)"),
            (".", "_"),
            ("Then", "_"),
            ("he", "(b)"),
            ("slept", "_"),
            (".", "_"),
        ]
    rows = "".join(f"{i}\t{word}\t{mark}\n" for i, (word, mark) in enumerate(tokens))
    return f"# begin document {name}\n{rows}# end document\n"


def natural_set(rng: np.random.Generator, gender: bool, n: int) -> pd.DataFrame:
    """Lines as PTB (number) or CoNLL (gender) have them, in tarsius' columns."""
    rows = []
    for _ in range(n):
        tag = int(rng.integers(2))
        if gender:
            people = [("king", "queen")[tag], ("queen", "king")[tag]]
            rows.append(
                (
                    f"the {people[0]} saw the {people[1]} and said that".split(),
                    tag,
                    [(1, 1)],
                    [(4, 4)],
                )
            )
        else:
            words = sentence(rng)
            tag = int(words[5][0] == "are")
            rows.append(([word for word, _ in words[:5]], tag, [(1, 1)], [(4, 4)]))
    return pd.DataFrame(rows, columns=["prefix", "tag", "cues", "attractors"])


def archive(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
    return path


def pronouns(rng: np.random.Generator, n: int) -> list[str]:
    return [
        f"the {('king', 'queen')[g]} said that {('he', 'she')[g]} slept ."
        for g in rng.integers(2, size=n)
    ]


def make_data(data: Path, notebooks: Path) -> dict[str, dict[str, object]]:
    """The data folder, and the entries of `sources.yaml` that fit it."""
    rng, folder = np.random.default_rng(0), notebooks / "material"
    syneval, winobias = (
        yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("syneval", "winobias")
    )
    write_agreement(syneval_rows(syneval), data / "tarsius/Syneval")
    pairs = list(zip(winobias["female"], winobias["male"], strict=True))
    write_agreement(
        pd.DataFrame(
            [
                winobias_row(frame, woman, man, first)
                for first in (True, False)
                for frame in winobias["frames"]
                for woman, man in pairs[:4]
            ]
        ),
        data / "tarsius/Winobias",
    )
    write_agreement(natural_set(rng, False, 60), data / "tarsius/PTB")
    write_agreement(natural_set(rng, True, 60), data / "tarsius/CoNLL")
    trees = {
        f"treebanks/en_ewt-ud-{part}.conllu": "".join(tree(rng) for _ in range(n))
        for part, n in (("train", 40), ("dev", 10), ("test", 10))
    }
    documents = {
        f"treebanks/ontogum/GUM_bio_{i}.conll": coreference(rng, str(i)) for i in range(60)
    }
    for name, text in (trees | documents).items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(text)
    tagged = "".join(" ".join(f"{w}_{t}" for w, t in sentence(rng)) + "\n" for _ in range(1200))
    masc = archive(data / "downloads/masc_tagged.zip", {"masc_tagged/written/a.txt": tagged})
    rare = [
        " ".join(f"name{i:04d}" for i in range(k, k + 20)) + " ." for k in range(0, 2200, 20)
    ]  # 2,000 word types and more
    texts = {
        f"movie_reviews/{kind}/cv{i:03d}_1.txt": " \n".join(pronouns(rng, 60)) + "\n"
        for kind in ("neg", "pos")
        for i in range(4)
    }
    reviews = archive(data / "downloads/movie_reviews.zip", texts)
    (data / "wikitext2").mkdir()
    (data / "wikitext2/valid.txt").write_text(
        " = Names = \n" + "".join(f" {line} \n" for line in rare)
    )
    wiki = " = Head = \n \n the wiki queen said that she slept . \n"
    archive(data / "wikitext/wikitext-103-v1.zip", {"wikitext-103/wiki.train.tokens": wiki})
    sources = yaml.safe_load((folder / "sources.yaml").read_text())
    made = {
        "wikitext2/masc_written.tagged.txt": (masc_lines(masc), "masc", masc),
        "wikitext2/movie_reviews.0.txt": (review_lines(reviews, 0, 1), "reviews 0 1", reviews),
        "wikitext2/movie_reviews.1.txt": (review_lines(reviews, 2, 3), "reviews 2 3", reviews),
        "wikitext2/ud_ewt.tagged.txt": (
            treebank_lines(data / name for name in trees),
            "treebank",
            None,
        ),
    }
    del sources["wikitext2/test.txt"]
    for name, about in sources.items():
        path = data / name
        about["sha256"] = (
            "made here"
            if not path.exists()
            else sha256_of_tree(path)
            if path.is_dir()
            else sha256_of(path)
        )
        if name in made:
            lines, recipe, origin = made[name]
            about |= {"lines_sha256": lines_sha256(lines), "recipe": recipe}
            about |= (
                {"checksum": "md5:" + hashlib.md5(origin.read_bytes()).hexdigest()}
                if origin
                else {}
            )
    return sources


def make_gpt2(folder: Path) -> str:
    """A random GPT-2 of two layers that reads letters."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(
        models.BPE(
            {"<|endoftext|>": 0} | {letter: i for i, letter in enumerate(letters, start=1)}, []
        )
    )
    inner.pre_tokenizer, inner.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=True),
        decoders.ByteLevel(),
    )
    tokenizer = tf.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|endoftext|>", bos_token="<|endoftext|>"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    tf.GPT2LMHeadModel(
        tf.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=1024, vocab_size=len(letters) + 1)
    ).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def paper_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the repository whose paper.yaml is ours but for `SMALLER`; a data folder for it."""
    root, data = tmp_path / "repository", tmp_path / "data"
    shutil.copytree(ROOT / "lib", root / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    notebooks = root / "notebooks/lm_saliency"
    shutil.copytree(
        ROOT / "notebooks/lm_saliency", notebooks, ignore=shutil.ignore_patterns("*.ipynb")
    )
    (notebooks / "material/sources.yaml").write_text(
        yaml.safe_dump(make_data(data, notebooks), sort_keys=False)
    )
    sweep = pd.read_csv(notebooks / "material/sweep.csv").query("scale == 'paper'")
    sweep.assign(width=sweep["width"] // 32, embedding=sweep["embedding"] // 32).to_csv(
        notebooks / "material/sweep.csv", index=False
    )
    code = (root / "lib/studies/lm_saliency/recipes.py").read_text()
    pinned = re.search(r'"wikitext-103": "(\w+)"', code)
    assert pinned
    (root / "lib/studies/lm_saliency/recipes.py").write_text(
        code.replace(pinned[1], sha256_of(data / "wikitext/wikitext-103-v1.zip"))
    )
    values = (
        read_params(ROOT / "params/lm_saliency/paper.yaml")
        | SMALLER
        | {"hf_models": {make_gpt2(tmp_path / "tiny-gpt2"): ""}}
    )
    (root / "params/lm_saliency").mkdir(parents=True)
    (root / "params/lm_saliency/paper.yaml").write_text(yaml.safe_dump(values))
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv("TOUCHSTONE_DATA", str(data))
    return root


@pytest.mark.skipif(
    not os.environ.get("TOUCHSTONE_DRY_RUN"),
    reason="over two minutes of CPU: set TOUCHSTONE_DRY_RUN=1",
)
def test_paper_yaml_runs_through_with_tiny_models(
    paper_root: Path, small_outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["lm_saliency", "--scale", "paper", "--root", str(paper_root)])
    assert status == 0, capsys.readouterr().err
    stages, data = small_outputs / "lm_saliency/paper", data_root()
    assert (
        data is not None and (data / "wikitext2/masc_written.tagged.txt").is_file()
    )  # made from the archive
    assert "wiki queen" in "".join(
        (stages / f"01_data_generation/corpus/{part}.txt").read_text()
        for part in ("train", "valid")
    )
    names = ["Syneval", "EWT", "Winobias", "OntoGUM", "PTB", "CoNLL"]
    statistics = pd.read_csv(stages / "01_data_generation/statistics.csv").set_index("set")
    assert list(statistics.index) == names and statistics.loc["Syneval", "lines"] == 6280
    assert (statistics.loc[["PTB", "CoNLL", "EWT"], "lines"] == 60).all()
    assert len(read_agreement(stages / "01_data_generation/sets/CoNLL")) == 60
    probes = pd.read_csv(stages / "02_training/probes.csv")
    # three models, their students, GPT-2, and 21 models of the sweep, which have no matched probe
    assert probes.groupby("kind").size().to_dict() == {"gender": 28, "matched": 7, "number": 28}
    assert len(pd.read_csv(stages / "02_training/sweep.csv")) == 21
    plausibility = pd.read_csv(stages / "04_metrics/plausibility.csv")
    full = plausibility[plausibility["size"] == "full"]
    assert set(zip(full["dataset"], full["scheme"])) == {
        (name, scheme) for name in names for scheme in ("LSTM", "QRNN", "Transformer", "tiny-gpt2")
    }
    figure = pd.read_csv(stages / "05_figures/figure_1.csv")
    assert figure.groupby(["dataset", "method"]).size().to_dict() == {
        (name, method): 21 for name in ("PTB", "CoNLL") for method in ("SG", "IG")
    }
    assert len(list((stages / "05_figures").glob("*.png"))) == 5
