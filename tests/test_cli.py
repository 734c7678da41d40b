"""The `touchstone` command: every word leads where it says, errors are sentences."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys

import pytest
import yaml

import lib
from lib import cli
from lib.core.arithmetic import in_force, variables
from lib.core.paths import ROOT
from lib.studies.cebab import reviews
from lib.studies.geco import corpus, plan

MAKEFILE = (ROOT / "Makefile").read_text()


def test_the_makefile_uses_words_that_exist() -> None:
    words = set(re.findall(r"\$\(BIN\)/touchstone (\w+)", MAKEFILE))
    asked = {"run", "plan", "dataset", "data", "pretrain", "card", "board", "export", "example"}
    assert words == asked <= set(cli.COMMANDS)


def test_help_names_every_word_and_loads_no_study(capsys) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    printed = capsys.readouterr().out
    assert all(f"  {word} " in printed for word in cli.COMMANDS)


def test_the_version_is_printed(capsys) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out.strip() == lib.__version__


def test_an_unknown_word_is_refused_with_the_known_ones(capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["rum"])
    assert "'rum'" in (error := capsys.readouterr().err) and "'run'" in error


def test_what_follows_the_word_is_handed_on(capsys, small_outputs) -> None:
    assert cli.main(["run", "plan", "geco", "--stage", "01"]) == 0
    assert capsys.readouterr().out.split()[:2] == ["01_data_generation", "run:"]
    assert cli.main(["run", "gecko"]) == 1
    assert "did you mean 'geco'?" in capsys.readouterr().err
    assert cli.main(["dataset", " "]) == 1
    assert "error: no folder was named" in capsys.readouterr().err
    assert cli.main(["plan", "geco", "--scale", "smal"]) == 1


def test_what_is_read_is_never_overwritten(capsys, tmp_path) -> None:
    mine, answers = tmp_path / "mine.parquet", tmp_path / "answers.jsonl"
    mine.write_bytes(b"scores")
    assert cli.main(["score", str(mine), "--study", "geco", "--out", str(mine)]) == 1
    assert "is read, and would be lost" in capsys.readouterr().err
    for line in ('{"id": "a", "answer": "she"}\n', '{"prompt": "?", "answer": "she"}\n', "items\n"):
        answers.write_text(line)
        assert cli.main(["ask", "geco", str(answers), "--data", str(tmp_path)]) == 1
        assert "holds something else than questions" in capsys.readouterr().err
        assert answers.read_text() == line
    assert mine.read_bytes() == b"scores"
    assert (
        cli.main(
            [
                "score",
                str(tmp_path / "new"),
                "--study",
                "geco",
                "--data",
                str(tmp_path),
                "--out",
                str(mine),
            ]
        )
        == 1
    )
    assert "is read, and would be lost" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "geco", "-p", "scale", "x"], "write --scale x"),
        (["card", "--file", "none.parquet"], "there is no file none.parquet"),
        (["card", "LIME", "--model", "none"], "none is no folder"),
        (["card", "--file", __file__, "--settings", '{"a": 1}'], "leave one out"),
        (["board", "--submissions", "none"], "none holds no folder with a submission.yaml"),
        (["dataset", "texts", "--out", "a_file"], "a_file cannot be read or written"),
    ],
)
def test_what_cannot_work_is_said_before_anything_runs(
    words, message, capsys, tmp_path, monkeypatch, small_outputs, request
) -> None:
    if "dataset" in words:
        monkeypatch.setenv("TOUCHSTONE_SPACY", request.getfixturevalue("spacy_pipeline"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "tale.txt").write_text("He sings.\n\nShe sings.\n\nHe laughs.\n")
    (tmp_path / "a_file").touch()
    assert cli.main(words) == 1
    assert message in capsys.readouterr().err
    assert not any(small_outputs.rglob("*.csv"))


@pytest.mark.parametrize(
    "words", [["plan", "geco", "--rounds", "0"], ["run", "geco", "--jobs", "0"]]
)
def test_a_count_is_one_or_more(words, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(words)
    assert "'0' is no whole number of 1 or more" in capsys.readouterr().err


def test_a_closed_pipe_and_an_interrupt_end_in_a_line_at_most(capsys, monkeypatch) -> None:
    command = f"{sys.executable} -m lib.cli cite | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1\n", "")

    def stopped(rest: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "cite", stopped)
    assert cli.main(["cite"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_plan_says_what_it_does_before_its_sample_is_timed(
    capsys, monkeypatch, small_outputs
) -> None:
    def after_the_line(chosen, stages):
        said = capsys.readouterr().out
        assert said.startswith("geco at scale small: a sample of each training and method is timed")
        assert (chosen.rounds, stages[0].stage) == (3, "01_data_generation")
        return 0

    monkeypatch.delenv("TOUCHSTONE_PROGRESS", raising=False)
    monkeypatch.setattr(plan, "main", after_the_line)
    first = small_outputs / "geco/small/01_data_generation/manifest.json"
    first.parent.mkdir(parents=True)
    first.write_text("{}")
    assert cli.main(["plan", "geco"]) == 0
    monkeypatch.delenv("TOUCHSTONE_PROGRESS")


@pytest.mark.parametrize("study", ["geco", "cebab", "implicit_bias", "lm_saliency", "assay"])
def test_what_a_plan_misses_is_said_before_anything_large_is_loaded(study, tmp_path) -> None:
    code = f"import sys; from lib import cli; cli.main(['plan', '{study}', '--scale', 'small'])\n"
    code += "print({'torch', 'nbformat', 'matplotlib'} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"TOUCHSTONE_OUTPUTS": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    said, loaded = found.stdout.splitlines()
    assert said.startswith(f"{study} at scale small: ") and loaded == "set()"
    command = f"`touchstone run {study} --scale small --stage 01_data_generation` first"
    assert command in found.stderr


def test_units_are_listed_computed_by_key_and_merged(capsys, small_outputs, tmp_path) -> None:
    for words, said in (
        (["gecko", "small"], "gecko does not list its units; write one of geco"),
        (["geco", "small", "02_trainin/x"], "no stage '02_trainin'; did you mean '02_training'"),
        (["geco", "small", "02_training/x"], "01_data_generation has not been completed"),
    ):
        assert cli.main(["unit", *words]) == 1 and said in capsys.readouterr().err
    assert cli.main(["unit", "geco", "small"]) == 0
    assert "02_training cannot be listed yet: 01_data_gen" in capsys.readouterr().out
    unit = tmp_path / "other/geco/small/02_training/units/a.csv"
    unit.parent.mkdir(parents=True)
    unit.write_text("# key=k\n")
    assert cli.main(["merge", str(small_outputs), str(tmp_path / "other")]) == 0
    assert capsys.readouterr().out == f"1 files copied into {small_outputs}\n"
    assert cli.main(["merge", str(small_outputs), str(tmp_path / "othr")]) == 1
    assert "othr is no folder" in capsys.readouterr().err


def test_a_study_without_a_list_of_units_runs_without_jobs(capsys, monkeypatch) -> None:
    assert cli._listing("geco").__module__ == "lib.studies.geco.jobs"
    assert cli._listing("implicit_bias").__module__ == "lib.studies.implicit_bias.jobs"
    assert cli._listing("assay").__module__ == "lib.studies.assay.jobs"
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert cli.main(["run", "cebab", "--jobs", "2"]) == 1
    assert "cebab does not list its units; run it without --jobs" in capsys.readouterr().err
    assert cli.main(["unit", "cebab", "small", "--table"]) == 0
    assert capsys.readouterr().out == "key\tbatch\tseconds\tgigabytes\tneeds\n"


def test_every_command_computes_with_the_notebooks_instructions() -> None:
    """So a unit that is made apart has the notebook's bytes on a processor with wider ones, too."""
    asked = variables(in_force())
    code = "import os; from lib import cli; cli.main(['start'])\n"
    code += f"print({{name: os.environ.get(name) for name in {sorted(asked)}}})"
    without = {name: value for name, value in os.environ.items() if name not in asked}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=without, capture_output=True, text=True
    )
    assert ast.literal_eval(found.stdout.splitlines()[-1]) == asked


def test_data_fetches_what_is_named(capsys, monkeypatch) -> None:
    monkeypatch.setattr(corpus, "fetch_geco", lambda: "there")
    monkeypatch.setattr(reviews, "fetch_cebab", lambda: "elsewhere")
    assert cli.main(["data"]) == 0
    assert capsys.readouterr().out == "geco: there\ncebab: elsewhere\n"
    assert cli.main(["data", "cebab"]) == 0
    assert capsys.readouterr().out == "cebab: elsewhere\n"
    with pytest.raises(SystemExit, match="2"):
        cli.main(["data", "cebap"])


def test_what_to_cite_is_the_citation_file(capsys) -> None:
    assert cli.main(["cite"]) == 0
    printed = capsys.readouterr().out
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    for work in (citation, *citation["references"]):
        names = [author.get("family-names", author.get("name")) for author in work["authors"]]
        assert all(text in printed for text in [work["title"], *names])


def test_where_to_start_names_files_that_are_there(capsys) -> None:
    assert cli.main(["start"]) == 0
    printed = capsys.readouterr().out
    assert all((ROOT / path).is_file() for path in re.findall(r"[\w/]+\.(?:ipynb|md)", printed))
    assert set(re.findall(r"touchstone (\w+) ", printed)) - {"import"} <= set(cli.COMMANDS)


def test_lib_itself_is_imported_cheaply() -> None:
    code = (
        "import sys, lib, lib.cli; print({'torch', 'pandas', 'spacy', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
