"""What made a number: code counts where it is run through, comments and docstrings nowhere."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lib.core import made_by as module
from lib.core import paths, units
from lib.core.made_by import imported_code, made_by
from lib.core.stage import open_stage
from lib.core.units import Units

NOTEBOOK = '''# %% [markdown]
# # A title

# %%
import lib.training.loop as loop
from lib.core.units import Units
from lib.plots import style

# %% tags=["parameters"]
seed = 0  # the seed

# %%
units = Units("toy", "small", "02_use")


def trained(name):
    """A unit."""
    return units.finished(name, units.key(seed=seed), loop.fit)


# %%
found = [trained(name) for name in "ab"]  # the last unit

# %%
style.draw(found, width=3)
'''
MODULES = {
    "__init__.py": '__version__ = "1"\n',
    "core/__init__.py": "",
    "core/units.py": "from .files import read\n\n\nclass Units:\n    pass\n",
    "core/files.py": "def read():\n    return 1\n",
    "plots/__init__.py": "",
    "plots/style.py": "width = 1\n",
    "training/__init__.py": "from .unused import never\n",
    "training/unused.py": "def never():\n    return 1\n",
    "training/loop.py": '''"""A loop."""
from ..stats import mean as average


def fit():
    """Go down."""
    from lib.training import late

    return average([1, 2]) + late.one  # two steps
''',
    "training/late.py": "one = 1\n",
    "stats/__init__.py": "from .means import mean\n",
    "stats/means.py": "def mean(x):\n    return sum(x) / len(x)\n",
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {f"lib/{name}": text for name, text in MODULES.items()}
    for name, text in (files | {"notebooks/toy/02_use.py": NOTEBOOK}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "lib")
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / "outputs"))
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


LOOP, MEANS, USE = "lib/training/loop.py", "lib/stats/means.py", "notebooks/toy/02_use.py"


@pytest.mark.parametrize(
    "path, old, new",
    [
        (LOOP, "# two steps", "# three"),
        (LOOP, '"""Go down."""', '"""Go\n    up."""\n'),
        (LOOP, '"""A loop."""\n', ""),
        (LOOP, "average([1, 2])", "average([1,  2])"),
        ("lib/training/unused.py", "1", "2"),
        ("lib/training/__init__.py", "unused", "other"),
        ("lib/__init__.py", "1", "2"),
        ("lib/plots/style.py", "1", "2"),
        (USE, "A title", "Another"),
        (USE, "# the last unit", ""),
        (USE, "seed = 0", "seed = 1"),
        (USE, "width=3", "width=4"),
        (USE, '    """A unit."""\n', ""),
    ],
)
def test_what_makes_no_number_counts_nowhere(
    repository: Path, path: str, old: str, new: str
) -> None:
    before = made_by("toy", "02_use")
    change(repository / path, old, new)
    assert made_by("toy", "02_use") == before


@pytest.mark.parametrize(
    "path, old, new",
    [
        (LOOP, "average([1, 2]) +", "average([1, 2]) -"),
        (LOOP, "late.one", '"late.one"'),
        ("lib/training/late.py", "1", "1.0"),
        ("lib/stats/__init__.py", "mean\n", "mean\n\nmean = max\n"),
        (MEANS, "/", "*"),
        ("lib/core/files.py", "1", "2"),
        (USE, "loop.fit)", "loop.fit())"),
        (USE, '"ab"', '"abc"'),
    ],
)
def test_what_a_unit_runs_through_counts(repository: Path, path: str, old: str, new: str) -> None:
    before = made_by("toy", "02_use")
    change(repository / path, old, new)
    assert made_by("toy", "02_use")["code"] != before["code"]


def test_a_manifest_counts_figures_and_not_the_notebook(repository: Path) -> None:
    before = imported_code(repository / USE, repository / "lib")
    change(repository / USE, "loop.fit)", "loop.fit())")
    change(repository / "lib/training/unused.py", "1", "2")
    assert imported_code(repository / USE, repository / "lib") == before
    change(repository / "lib/plots/style.py", "1", "2")
    assert imported_code(repository / USE, repository / "lib") != before


def test_without_a_notebook_all_modules_count(repository: Path) -> None:
    before = made_by("benchmarks", "speed")
    change(repository / "lib/training/unused.py", "1", "2")
    assert made_by("benchmarks", "speed") != before


def test_code_that_cannot_be_read_counts_by_its_bytes(repository: Path) -> None:
    codes = set()
    for text in ("def (", "def ((", "x = 1"):
        (repository / LOOP).write_text(text)
        codes.add(made_by("toy", "02_use")["code"])
    assert len(codes) == 3


def test_a_version_counts(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made_by("toy", "02_use")
    assert list(before["versions"]) == ["torch", "transformers", "numpy", "spacy"]
    monkeypatch.setattr(module, "version", lambda package: "0")
    assert made_by("toy", "02_use")["versions"] == dict.fromkeys(before["versions"], "0")


def test_a_unit_of_ones_own_is_made_anew_by_other_code(repository: Path) -> None:
    frame = pd.DataFrame({"p": [1]})
    Units("toy", "small", "02_use").save("D_A/a", "k", frame)
    assert Units("toy", "small", "02_use").load("D_A/a", "k") is not None
    change(repository / MEANS, "(x):", "(x):  # all of them")
    assert Units("toy", "small", "02_use").load("D_A/a", "k") is not None
    change(repository / MEANS, "/", "*")
    assert Units("toy", "small", "02_use").load("D_A/a", "k") is None


def test_what_is_published_is_reused_in_a_printed_line_unless_it_is_refused(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    published = repository / "reference"
    monkeypatch.setattr(units, "reference_dir", lambda study, scale: published / study / scale)

    def run() -> int:
        """How many of three units are made anew."""
        stage, made = open_stage("toy", "small", "02_use"), []
        store = Units("toy", "small", "02_use", reuse=True)
        for name in "abc":
            for _ in range(2):  # read twice, said once
                store.finished(name, "k", lambda: made.append(0) or pd.DataFrame({"p": [1]}))
        stage.close({"seed": 0})
        return len(made)

    assert run() == 3 and run() == 0 and capsys.readouterr().out == ""
    code = made_by("toy", "02_use")["code"][:8]
    change(repository / MEANS, "/", "*")
    old = published / "toy/small/units/02_use/c.csv"
    old.write_text("# key=k\np\n1\n")  # of before there were records
    assert run() == 0
    said = capsys.readouterr().out
    assert said.startswith(
        f"3 published units are reused: 2 made by touchstone {units.__version__}"
    )
    assert f" {code}, torch " in said and said.count("\n") == 1
    assert "; 1 made before versions were kept (TOUCHSTONE_STRICT=1 makes them anew)" in said
    monkeypatch.setenv("TOUCHSTONE_STRICT", "1")
    assert run() == 3 and run() == 0 and capsys.readouterr().out == ""
    assert "sha256" in old.read_text(), "what is made anew is published"
