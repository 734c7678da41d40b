"""The wheel in an environment of its own, used from an empty folder, as other people use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import lib
from lib.core import paths
from lib.core.notebooks import find_notebooks, find_studies

pytestmark = pytest.mark.more
pytest.importorskip("hatchling", reason="needs hatchling, which builds the wheel: make test-more")

TINY = """
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

words = ["[PAD]", "[UNK]", "a", "fine", "dull", "film", "."]
words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
torch.manual_seed(0)
sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
module = BertForSequenceClassification(BertConfig(vocab_size=7, **sizes)).eval()
"""
EXPLAIN = """
import math

from touchstone.doors import explain_texts, wrap

table = explain_texts(wrap(module, tokenizer), ["a fine film .", "a dull film ."], METHOD)
for row in table.itertuples():
    assert len(row.scores) == 4 and all(map(math.isfinite, row.scores))
print(len(table))
"""
IMPORT_ALL = """
import importlib, pkgutil, touchstone

modules = list(pkgutil.walk_packages(touchstone.__path__, "touchstone."))
for module in modules:
    if "_data" not in module.name:
        importlib.import_module(module.name)
print(len(modules))
"""
LABELS = """
from touchstone.core.paths import material
from touchstone.language.labels import gender_variants
from touchstone.language.lexicon import load_lexicon
from touchstone.studies.geco.labels import read_labels

labels = read_labels(material("geco") / "labels.yaml")
variants = [gender_variants(label, "all") for label in labels.values()]
assert all(len(set(map(len, forms.values()))) == 1 for forms in variants)
assert load_lexicon()
print(len(labels))
"""


@dataclass(frozen=True)
class Installed:
    """A fresh environment with the wheel: it sees the packages of this one, not the checkout."""

    wheel: Path
    folder: Path
    empty: Path

    def run(self, *command: str, spacy: str = "") -> str:
        """What a command prints, started in the empty folder with no variable of this project."""
        own = {k: v for k, v in os.environ.items() if not k.startswith(("TOUCHSTONE_", "PYTHON"))}
        own |= {"HF_HUB_OFFLINE": "1"} | ({"TOUCHSTONE_SPACY": spacy} if spacy else {})
        program = str(self.folder / "bin" / command[0])
        done = subprocess.run(
            [program, *command[1:]], cwd=self.empty, env=own, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python(self, code: str) -> str:
        """What a program prints."""
        return self.run("python", "-c", code).strip()

    def files(self) -> set[str]:
        """The files of the installed package."""
        package = next(self.folder.glob("lib/python*/site-packages/touchstone"))
        return {str(p) for p in package.rglob("*") if p.is_file() and p.suffix != ".pyc"}


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(paths.ROOT))
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    # A line of a .pth file is a folder to look into; the .pth files in there, one of which may lead
    # to this checkout, are not read.
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    seen = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "packages.pth").write_text("".join(f"{path}\n" for path in sorted(seen)))
    (folder / "empty").mkdir()
    return Installed(wheel, folder / "venv", folder / "empty")


def test_the_wheel_installs_touchstone_and_nothing_else(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    top_level = {name.split("/")[0] for name in names}
    assert top_level == {"touchstone", f"touchstone-{lib.__version__}.dist-info"}
    assert not [name for name in names if name.endswith((".ipynb", ".pyc"))]
    files = {p.relative_to(paths.PACKAGE) for p in paths.PACKAGE.rglob("*") if p.is_file()}
    assert {f"touchstone/{p.as_posix()}" for p in files if p.suffix != ".pyc"} <= set(names)
    assert installed.wheel.stat().st_size < 3_000_000
    found = "from importlib.util import find_spec; print(find_spec('lib'))"
    assert installed.python(found) == "None"


def test_the_version_is_that_of_the_metadata(installed: Installed) -> None:
    code = """
import importlib.metadata, touchstone
print(touchstone.__version__, importlib.metadata.version("touchstone"))
"""
    assert installed.python(code).split() == [lib.__version__] * 2
    assert installed.run("touchstone", "--version").strip() == lib.__version__


def test_every_module_can_be_imported(installed: Installed) -> None:
    assert int(installed.python(IMPORT_ALL)) > 50


@pytest.mark.parametrize("method", ["Integrated Gradients", "LIME"])
def test_a_tiny_model_is_explained(installed: Installed, method: str) -> None:
    assert installed.python(f"METHOD = {method!r}{TINY}{EXPLAIN}") == "2"


def test_labels_and_word_lists_are_read(installed: Installed) -> None:
    assert int(installed.python(LABELS)) > 100


def test_a_run_is_planned(installed: Installed) -> None:
    for study in find_studies():
        lines = installed.run("touchstone", "run", "plan", study).splitlines()
        assert [line.split()[:2] for line in lines] == [
            [n.stem, "run:"] for n in find_notebooks(study)
        ]


def test_a_stage_runs_and_writes_only_where_one_works(installed: Installed) -> None:
    before = installed.files()
    installed.run("touchstone", "run", "lm_saliency", "--stage", "01")
    stage = installed.empty / "outputs" / "lm_saliency" / "small" / "01_data_generation"
    assert json.loads((stage / "manifest.json").read_text())["files"]
    assert installed.files() == before


def test_what_to_cite_and_where_to_start_are_printed(installed: Installed) -> None:
    assert "GECOBench" in installed.run("touchstone", "cite")
    assert "this installation has none" in installed.run("touchstone", "start")


def test_own_text_becomes_a_data_set(installed: Installed, spacy_pipeline: str) -> None:
    text = installed.empty / "texts"
    text.mkdir()
    (text / "a.txt").write_text(
        "Ann Lee sold her house. John kept his dog. The actress left him.\n"
    )
    installed.run("touchstone", "dataset", "texts", spacy=spacy_pipeline)
    assert (installed.empty / "outputs" / "dataset" / "texts" / "review.html").is_file()
    shutil.rmtree(text)
