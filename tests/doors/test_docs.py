"""The page about the doors does what it says: its code runs, block by block, in one folder.

The glossary knows every name of settings and tables, and every code of the notebooks.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from causal_families import decoder
from small_models import as_rows, build, tiny_tokenizer

import lib.doors
from lib import cli
from lib.attribution import METHODS
from lib.core.notebooks import find_sources, read_notebook
from lib.core.paths import ROOT
from lib.metrics import METRICS, ROW_SETS
from lib.models.schemes import SCHEMES
from lib.stats import VERDICTS
from lib.studies.assay.truths import TRUTHS
from lib.studies.geco.corpus import DATASETS, write_geco

PAGE = (ROOT / "docs" / "doors.md").read_text()
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
TERMS = re.findall(r"^(\w.*)\n  \S", GLOSSARY, flags=re.M)
# Names of programs, of formats, of published models and text, and words in capitals: no codes.
NAMES = """AND CLEAR CPU CSV DeYoung GECOBench GELU GPU JSON LIBERTy LayerNorm NAACL NumPy PyTorch
README ReLU SHA-256 SHAP TSV VBP VBZ XOR XLNet""".split()
BLOCKS = re.findall(r"```(python|sh)\n(.*?)```", PAGE, flags=re.S)


def yours() -> dict[str, Any]:
    """What the page calls the reader's: a classifier, its answers, a decoder that chats."""
    lm, lm_tokenizer = decoder("GPT-2", 80)
    lm_tokenizer.chat_template = (
        "{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}<model> "
    )
    return {
        "model": build("BERT").module,
        "tokenizer": tiny_tokenizer(),
        "answers": lambda texts: np.array([[0.2, 0.5, 0.3]] * len(texts)),
        "lm": lm,
        "lm_tokenizer": lm_tokenizer,
    }


def by_captum_alone(names: dict[str, Any], i: int) -> list[float]:
    """The page's scores of one text that is not padded."""
    encoding = names["tokenizer"]([names["texts"][i]], return_tensors="pt")
    target = names["target"][[i]]
    more = {"additional_forward_args": (encoding["attention_mask"],), "target": target}
    found = names["method"].attribute(encoding["input_ids"], n_steps=5, **more)
    row, text = names["rows"].iloc[[i]], [names["texts"][i]]
    mine = names["from_captum"](row, found, encoding, "alone", text, targets=target)
    return mine["scores"].iloc[0]


def test_every_block_runs(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rows = as_rows(["she sings the old song .", "he sings a song ."], [0, 1])
    rows["ground_truth"] = [[1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]
    rows["gender"] = ["female", "male"]
    write_geco(rows, tmp_path / "data" / DATASETS["D_A"] / "test.jsonl")
    names, compared = yours(), 0
    for language, code in BLOCKS:
        if language == "python":
            exec(compile(code, "docs/doors.md", "exec"), names)
            if "from_captum(" in code:
                together, alone = names["mine"]["scores"].iloc[1], by_captum_alone(names, 1)
                np.testing.assert_allclose(together, alone, rtol=1e-3, atol=1e-6)
                compared += 1
        else:
            assert cli.main(shlex.split(code)[1:]) == 0
    assert compared == 1
    assert set(names["chat"]["segment"]) == {"template", "user", "continuation"}
    assert names["mine"]["method"].tolist() == ["LIME", "LIME"]
    assert "2 answered, 0 refused" in capsys.readouterr().out
    names["lm_tokenizer"].chat_template = None


@pytest.mark.parametrize("name", lib.doors.__all__)
def test_the_page_or_the_house_names_every_door(name: str) -> None:
    assert name in PAGE + (ROOT / "lib" / "README.md").read_text()


def test_the_glossary_has_every_name_that_tables_and_settings_use() -> None:
    names = [*METHODS, *SCHEMES, *DATASETS, *ROW_SETS, *VERDICTS, *METRICS, *TRUTHS]
    codes = {"MA": "mass accuracy (MA)", "D_A_binary": "D_A", "D_S_binary": "D_S"}
    assert not [name for name in names if codes.get(name, name) not in TERMS]
    assert len(TERMS) == len(set(TERMS)), "a term is explained once"


@pytest.mark.parametrize("path", find_sources(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_glossary_has_every_code_of_the_notebooks(path: Path) -> None:
    """A code: two capitals, or one before an underscore, in prose (not in code or formulas)."""
    prose = "\n".join(c.source for c in read_notebook(path).cells if c.cell_type == "markdown")
    prose = re.sub(r"```.*?```|\$\$.*?\$\$", " ", prose, flags=re.S)
    prose = re.sub(r"`[^`]*`|\$[^$\n]*\$|\]\([^)]*\)", " ", prose)
    codes = set(re.findall(r"\b(?:[A-Z][a-z]*[A-Z][\w-]*|[A-Z]_\w+)", prose))
    terms = [*TERMS, *(part for term in TERMS for part in re.split(r"\W+|_", term))]
    known = {term.lower() for term in [*terms, *NAMES]}
    is_model = re.compile(r"BERT|GPT|MiniLM|WikiText")
    parts = {code: re.split(r"[-_]", code.lower()) for code in codes if not is_model.search(code)}
    unknown = {
        code
        for code, of_code in parts.items()
        if not (code.lower() in known or all(x in known or x.isdigit() for x in of_code))
    }
    assert not unknown, "docs/glossary.md says in one line what each of these is"
