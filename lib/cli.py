"""The `touchstone` command: one word for each thing that this package does from a shell.

    touchstone run geco --scale small     a study's notebooks, in order
    touchstone start                      where to begin

It stands above every room, and is the one file that may import studies by name. A word's module is
imported when the word is used, so that `touchstone --help` costs nothing.
"""

import argparse
import os
import select
import shlex
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import __version__
from .core.arithmetic import ask_for, in_force
from .core.errors import TouchstoneError, did_you_mean
from .core.paths import IS_INSTALLED, outputs_root

DESCRIPTION = "Four published checks of language-model explanations, and the explainers themselves."
START = """\
One sentence, one model, one explanation:

    from touchstone.doors import explain_texts, wrap
    model = wrap(module, tokenizer)        # your sequence classifier of transformers
    explain_texts(model, ["A fine film ."], "Integrated Gradients")

The same by hand, step by step: notebooks/00_start_here.ipynb
A study from its texts to its figures: touchstone run geco (then look into outputs/geco/small/)
One of its notebooks alone: touchstone start geco 04 (fills in what stages before it leave)
What a longer run will cost: touchstone plan geco --scale cpu
Your own text as a gender-controlled data set: touchstone dataset FOLDER
Your own explanations against a study's truth: touchstone score FILE --study geco
Adding a method, a metric or a study: CONTRIBUTING.md
"""
CHECKOUT = "The notebooks and CONTRIBUTING.md are in the repository; this installation has none.\n"


STUDIES = ("geco", "lm_saliency", "cebab", "implicit_bias")


def run(arguments: Sequence[str]) -> int:
    """run a study's notebooks, those stages that are not up to date"""
    from .core import runner

    return runner.main(arguments, _listing)


def unit(arguments: Sequence[str]) -> int:
    """compute units of a study, for a cluster or another machine; without a key, list them"""
    from .core.jobs import batches, closed_stage, job_named
    from .core.runner import plan_jobs

    parser = argparse.ArgumentParser(prog="touchstone unit", description=unit.__doc__)
    parser.add_argument("study")
    parser.add_argument("scale", help="a file of params/<study>/")
    parser.add_argument("keys", nargs="*", metavar="KEY", help="stage/name, as the list has it")
    parser.add_argument("--stage", default="", help="list this stage alone")
    parser.add_argument(
        "--table", action="store_true", help="key, batch, seconds, gigabytes, needs as TSV"
    )
    chosen, head = parser.parse_args(arguments), "key\tbatch\tseconds\tgigabytes\tneeds"
    if (listing := _listing(chosen.study)) is None:
        if chosen.table:  # nothing to compute apart
            print(head)
            return 0
        listing_theirs = ", ".join(filter(_lists_units, (*STUDIES, "assay")))
        raise TouchstoneError(
            f"{chosen.study} does not list its units; write one of {listing_theirs}"
        )
    if len(of := {key.partition("/")[0] for key in chosen.keys}) > 1:
        raise TouchstoneError(f"{' and '.join(sorted(of))} are two stages; ask for one at a time")
    wanted = min(of, default=chosen.stage)
    stages = plan_jobs(chosen.study, chosen.scale)
    if wanted and wanted not in (known := [stage.stage for stage in stages]):
        raise TouchstoneError(f"there is no stage {wanted!r}{did_you_mean(wanted, known)}")
    for stage in stages:
        if wanted not in ("", stage.stage):
            continue
        try:
            jobs = listing(closed_stage(chosen.study, chosen.scale, stage.stage), stage.all)
        except TouchstoneError as error:
            if wanted:
                raise
            print(f"{stage.stage} cannot be listed yet: {error}")
            continue
        for key in chosen.keys:
            job_named(jobs, key).compute()
        if chosen.table:
            print(head)
        for name, batch in ({} if chosen.keys else batches(jobs)).items():
            for job in batch:
                about = f"{job.seconds:.0f}", f"{job.gigabytes:.1f}", " ".join(job.needs)
                print(
                    "\t".join((job.key, name, *about))
                    if chosen.table
                    else f"{job.key}  {about[0]} s  {about[1]} GB  {about[2]}"
                )
    return 0


def merge(arguments: Sequence[str]) -> int:
    """copy the finished units of one output root into another"""
    from .core.jobs import merge as merge_roots

    parser = argparse.ArgumentParser(prog="touchstone merge", description=merge.__doc__)
    parser.add_argument("into", type=Path, help="the output root that grows")
    parser.add_argument("other", type=Path, help="the output root that is read")
    chosen = parser.parse_args(arguments)
    copied = merge_roots(chosen.into, chosen.other)
    print(f"{len(copied)} files copied into {chosen.into}")
    return 0


def plan(arguments: Sequence[str]) -> int:
    """say what a parameter file will cost before it runs"""
    from .core.parameters import at_least_one
    from .core.runner import plan_jobs
    from .core.stage import MANIFEST

    parser = argparse.ArgumentParser(prog="touchstone plan", description=plan.__doc__)
    add = parser.add_argument
    add("study")
    add("--scale", default="small", help="a file of params/<study>/ (default: small)")
    add("--rows-from", default="", help="the scale whose stage 01 has the rows (the same)")
    add("--rounds", type=at_least_one, default=3, help="how often a training is timed (default: 3)")
    chosen = parser.parse_args(arguments)
    stages, rows = plan_jobs(chosen.study, chosen.scale), chosen.rows_from or chosen.scale
    about = "counted from its units; nothing is computed"
    if chosen.study == "geco":
        about = "a sample of each training and method is timed here, which takes minutes"
    # said before torch is imported
    print(f"{chosen.study} at scale {chosen.scale}: {about}; the sum follows", flush=True)
    if not (outputs_root() / chosen.study / rows / stages[0].stage / MANIFEST).is_file():
        raise TouchstoneError(
            f"what runs depends on the rows of {stages[0].stage}, which has not been completed at "
            f"scale {rows}; run `touchstone run {chosen.study} --scale {rows} "
            f"--stage {stages[0].stage}` first: it trains nothing"
        )
    if chosen.study == "geco":
        from .studies.geco import plan as planner

        os.environ.setdefault("TOUCHSTONE_PROGRESS", "1")
        return planner.main(chosen, stages)
    if (listing := _listing(chosen.study)) is None:
        raise TouchstoneError(f"{chosen.study} does not list its units, so nothing can be counted")
    from .core.planned import planned, print_planned

    beside = getattr(import_module(_module_of_jobs(chosen.study)), "BESIDE", {})
    print_planned(*planned(listing, stages, rows, beside))
    return 0


def dataset(arguments: Sequence[str]) -> int:
    """make a gender-controlled data set of your own text, with a review page"""
    from .studies.geco import dataset as maker

    return maker.main(list(arguments))


def score(arguments: Sequence[str]) -> int:
    """score a file of explanations against a study's truth; nothing is trained"""
    from .core.files import save_csv
    from .doors.score import score_file

    parser = argparse.ArgumentParser(prog="touchstone score", description=score.__doc__)
    add = parser.add_argument
    add(
        "file",
        type=Path,
        help="explanations as Parquet (cebab: estimates; lm_saliency: also a folder)",
    )
    add("--study", required=True, help=", ".join(STUDIES))
    add("--data", type=Path, help="the folder of the items (default: what stage 01 left)")
    add("--scale", default="small", help="of stage 01, where --data is not given (small)")
    add("--predictions", type=Path, help="cebab: the explained model's answers, text_id, p_1 ...")
    add("--out", type=Path, help="write the table as CSV")
    chosen = parser.parse_args(arguments)
    hand_in = _hand_in(chosen.study)
    if chosen.predictions and chosen.study != "cebab":
        raise TouchstoneError(f"{chosen.study} takes no predictions; leave --predictions out")
    read = [path.resolve() for path in (chosen.file, chosen.predictions, _items_of(chosen)) if path]
    out = chosen.out.resolve() if chosen.out else None
    if out and out.exists() and any(path in (out, *out.parents) for path in read):
        raise TouchstoneError(f"{chosen.out} is read, and would be lost; write to another file")
    more = {"predictions": chosen.predictions} if chosen.predictions else {}
    table = score_file(chosen.file, _items_of(chosen), hand_in, **more)
    if chosen.out:
        save_csv(table, chosen.out)
    shown = ["dataset", "scheme", "method", "measure", "estimate", "low", "high", "n"]
    print(table[shown].round(3).to_string(index=False))
    print(hand_in.needs_model)
    return 0


def ask(arguments: Sequence[str]) -> int:
    """write a study's items as questions to a language model, JSON lines; `score` reads answers"""
    from .doors.self_explanations import write_prompts

    parser = argparse.ArgumentParser(prog="touchstone ask", description=ask.__doc__)
    add = parser.add_argument
    add("study", help="geco, lm_saliency or implicit_bias")
    add("file", type=Path, help="the file of questions that is written: id, prompt")
    add("--data", type=Path, help="the folder of the items (default: what stage 01 left)")
    add("--scale", default="small", help="of stage 01, where --data is not given (small)")
    chosen = parser.parse_args(arguments)
    hand_in = _hand_in(chosen.study)
    if hand_in.ask is None:
        raise TouchstoneError(f"{chosen.study} asks for no words; write geco, or another study")
    if chosen.file.is_file():
        there = chosen.file.read_text(encoding="utf-8", errors="replace")
        if '"answer"' in there or (there and '"prompt"' not in there.partition("\n")[0]):
            raise TouchstoneError(
                f"{chosen.file} holds something else than questions, and would be lost; name "
                "another file"
            )
    n = write_prompts(hand_in.ask(hand_in.read(_items_of(chosen))), chosen.file)
    print(f'{n} questions in {chosen.file}; write the answers as {{"id": ..., "answer": ...}}')
    where = (
        f" --data {shlex.quote(str(chosen.data))}" if chosen.data else f" --scale {chosen.scale}"
    )
    then = f"touchstone score answers.jsonl --study {chosen.study}{where}"
    print(f"lines into answers.jsonl, and: {then}")
    return 0


def card(arguments: Sequence[str]) -> int:
    """one page on an explainer: what it reaches under each truth, how sure, at what cost"""
    from .core.files import parse_json
    from .doors.card import save_card
    from .studies.assay.make_card import check_own_texts, make_card
    from .studies.geco.corpus import read_geco

    parser = argparse.ArgumentParser(prog="touchstone card", description=card.__doc__)
    add = parser.add_argument
    add("explainer", nargs="?", help="a registered method, or module:function of yours")
    add("--settings", default="{}", help='of the method, as JSON: {"n_samples": 200}')
    add("--file", type=Path, help="item_id and scores (.parquet), in place of an explainer")
    add("--model", type=Path, help="the folder of your own classifier (Hugging Face)")
    add("--texts", type=Path, help="a folder that `touchstone dataset` made: texts of your own")
    add("--out", type=Path, help="the folder of the card (default: outputs/cards/NAME)")
    chosen = parser.parse_args(arguments)
    if bool(chosen.explainer) == bool(chosen.file):
        parser.error("name an explainer, or a file of explanations (--file)")
    settings = parse_json(chosen.settings, "--settings", "write settings as a JSON object")
    if not isinstance(settings, dict):
        raise TouchstoneError("--settings is no JSON object; write names and values in braces")
    if chosen.file and settings:
        raise TouchstoneError("--settings are of a method, and --file holds scores; leave one out")
    if chosen.file and not chosen.file.is_file():
        raise TouchstoneError(f"there is no file {chosen.file}; correct the path")
    if chosen.model and not chosen.model.is_dir():
        raise TouchstoneError(f"{chosen.model} is no folder; name that of your own classifier")
    if chosen.texts:
        check_own_texts(chosen.texts, read_geco)
    os.environ.setdefault("TOUCHSTONE_PROGRESS", "1")
    name = chosen.explainer or chosen.file.stem
    slug = "_on_".join(
        "".join(c if c.isalnum() else "_" for c in part)
        for part in (name, *(of.resolve().name for of in (chosen.model, chosen.texts) if of))
    )
    out = chosen.out or outputs_root() / "cards" / slug
    made = make_card(name, settings, chosen.file, chosen.model, out, chosen.texts)
    page = save_card(made, out)
    print(f"the card: {page}; its numbers: {page.with_suffix('.json')}")
    return 0


def board(arguments: Sequence[str]) -> int:
    """score what lies in outputs/submissions beside our own explainers: one page, one CSV"""
    from pandas import concat

    from .doors.board import save_board
    from .studies.assay import fresh
    from .studies.assay.board import board as table_of
    from .studies.assay.board import read_submissions
    from .studies.assay.card import run_small

    parser = argparse.ArgumentParser(prog="touchstone board", description=board.__doc__)
    add = parser.add_argument
    add("--submissions", type=Path, help="their folder (default: outputs/submissions)")
    add("--out", type=Path, help="the folder of the board (default: outputs/board)")
    again = "run code that was handed in on new items; read it first (seeded by COMMIT, or HEAD)"
    add("--fresh", nargs="?", const="", metavar="COMMIT", help=again)
    chosen = parser.parse_args(arguments)
    if chosen.submissions and not any(chosen.submissions.glob("*/submission.yaml")):
        raise TouchstoneError(
            f"{chosen.submissions} holds no folder with a submission.yaml; name the folder above "
            "the submissions"
        )
    run = run_small()
    folder = chosen.submissions or outputs_root() / "submissions"
    submissions = read_submissions(folder, run)
    about = f"{len(submissions)} submissions; scale small: a few texts a truth, nothing is decided."
    table = table_of(run, submissions)
    if chosen.fresh is not None:
        commit = chosen.fresh or fresh.current_commit()
        known = fresh.with_code(submissions)
        anew = fresh.run_fresh(known, folder, commit)
        table = concat([table, fresh.fresh_rows(anew, known, table)], ignore_index=True)
        about += f" Columns named fresh: {len(known)} of them run again on items of {commit[:7]}."
    page = save_board(table, chosen.out or outputs_root() / "board", about)
    print(f"the board: {page}; its numbers: {page.with_suffix('.csv')}")
    return 0


def export(arguments: Sequence[str]) -> int:
    """all explanations of a finished assay as a data set, with words, card and Croissant"""
    from .studies.assay.data_set import export as write

    parser = argparse.ArgumentParser(prog="touchstone export", description=export.__doc__)
    add = parser.add_argument
    add("--run", type=Path, help="the folder of the run (default: outputs/assay/small)")
    add("--out", type=Path, help="the folder of the data set (default: outputs/explanations)")
    chosen = parser.parse_args(arguments)
    out = chosen.out or outputs_root() / "explanations"
    numbers = write(chosen.run or outputs_root() / "assay" / "small", out)
    print(f"{', '.join(f'{n} {what}' for what, n in numbers.items())}: {out}")
    return 0


def data(arguments: Sequence[str]) -> int:
    """download the published data sets, checked by SHA-256, into TOUCHSTONE_DATA or a cache"""
    from .studies.cebab.reviews import fetch_cebab
    from .studies.geco.corpus import fetch_geco

    sources: dict[str, Callable[[], Path]] = {"geco": fetch_geco, "cebab": fetch_cebab}
    parser = argparse.ArgumentParser(prog="touchstone data", description=data.__doc__)
    which = f"{' or '.join(sources)}; none: both"
    parser.add_argument("names", nargs="*", metavar="NAME", help=which)
    names = parser.parse_args(arguments).names or list(sources)
    if unknown := sorted(set(names) - set(sources)):
        parser.error(f"there is no data set {unknown[0]!r}; write {' or '.join(sources)}")
    for name in names:
        print(f"{name}: {sources[name]()}")
    return 0


def pretrain(arguments: Sequence[str]) -> int:
    """train a model that several studies start from, into outputs/pretrained"""
    from .training import pretrain as trainer

    return trainer.main(arguments)


def example(arguments: Sequence[str]) -> int:
    """one sentence, its words coloured by an explanation; takes seconds, writes nothing"""
    from .studies.geco.example import as_text, make_example

    argparse.ArgumentParser(prog="touchstone example", description=example.__doc__).parse_args(
        arguments
    )
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(as_text(make_example(), coloured), flush=True)
    return 0


def start(arguments: Sequence[str]) -> int:
    """print where to begin; with a study and a stage, put there what that notebook reads"""
    from .core.handover import LESSON, SCALE, prepare_lesson, prepare_stage

    parser = argparse.ArgumentParser(prog="touchstone start", description=start.__doc__)
    parser.add_argument("study", nargs="?", help="start one of its notebooks alone")
    parser.add_argument("stage", nargs="?", help="04_metrics or 04")
    scales = [SCALE, LESSON]
    told = "small, from what is committed; or lesson, where all that it reads is made first"
    parser.add_argument("--scale", default=SCALE, choices=scales, help=told)
    chosen = parser.parse_args(arguments)
    if not chosen.study:
        print(START + (CHECKOUT if IS_INSTALLED else ""), end="")
        return 0
    if not chosen.stage:
        parser.error(f"say which notebook: touchstone start {chosen.study} 04")
    if chosen.scale == LESSON:
        stage = prepare_lesson(chosen.study, chosen.stage)
        made = outputs_root() / chosen.study / LESSON / stage / f"{stage}.ipynb"
        print(
            f"ready: `touchstone run {chosen.study} --scale {LESSON} --stage {stage}` runs it in "
            f"about a minute and leaves {made}, to open, change and run again"
        )
        return 0
    for line in prepare_stage(chosen.study, chosen.stage):
        print(line, flush=True)
    print("ready: open the notebook (make lab) and run it, or `touchstone run` with --stage")
    return 0


def cite(arguments: Sequence[str]) -> int:
    """print what to cite; with a study, the BibTeX of what its run used: data, methods, papers"""
    from .core.citations import as_text, cite_run

    parser = argparse.ArgumentParser(prog="touchstone cite", description=cite.__doc__)
    parser.add_argument("study", nargs="?", help="one that you have run")
    parser.add_argument("--scale", default="small", help="of the run (default: small)")
    chosen = parser.parse_args(arguments)
    run = outputs_root() / chosen.study / chosen.scale if chosen.study else None
    print(cite_run(run) if run else as_text())
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "run": run,
    "unit": unit,
    "merge": merge,
    "plan": plan,
    "dataset": dataset,
    "score": score,
    "ask": ask,
    "card": card,
    "board": board,
    "export": export,
    "data": data,
    "pretrain": pretrain,
    "example": example,
    "start": start,
    "cite": cite,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; an error that the user can mend is printed without a trace.

    Args:
        arguments: the words after `touchstone`; by default those of this process.

    Returns:
        The exit status.
    """
    words = "\n".join(f"  {name:<9} {command.__doc__}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="touchstone",
        description=DESCRIPTION,
        epilog=f"commands (touchstone COMMAND --help says more):\n{words}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of those below")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="what it is given")
    chosen = parser.parse_args(arguments)
    try:
        ask_for(in_force())  # before a command imports numpy: a unit has the notebook's bytes
        status = COMMANDS[chosen.command](chosen.rest)
        sys.stdout.flush()
        return status
    except TouchstoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        if not _is_read():
            return 1  # of `touchstone ... | head`
        raise
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        path = error.filename2 or error.filename
        print(f"error: {path} cannot be read or written ({error.strerror})", file=sys.stderr)
        return 1


def _is_read() -> bool:
    """Whether somebody reads what is printed; if not, nothing more is printed."""
    ends = select.poll()
    ends.register(sys.stdout.fileno(), select.POLLOUT)
    if not any(event & select.POLLERR for _, event in ends.poll(0)):
        return True
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return False


def _hand_in(study: str) -> Any:
    """What a study knows of files that are handed in."""
    if study not in STUDIES:
        raise TouchstoneError(f"there is no study {study!r}{did_you_mean(study, STUDIES)}")
    return import_module(f"{__package__}.studies.{study}.hand_in").HAND_IN


def _items_of(chosen: argparse.Namespace) -> Path:
    """The folder of a study's items: the one that was named, or that of stage 01."""
    folder = outputs_root() / chosen.study / chosen.scale / "01_data_generation"
    return chosen.data or folder


def _listing(study: str) -> Any:
    """The list of a study's units, None where it has none."""
    return import_module(_module_of_jobs(study)).jobs_of if _lists_units(study) else None


def _lists_units(study: str) -> bool:
    return study in (*STUDIES, "assay") and find_spec(_module_of_jobs(study)) is not None


def _module_of_jobs(study: str) -> str:
    return f"{__package__}.studies.{study}.jobs"


if __name__ == "__main__":
    sys.exit(main())
