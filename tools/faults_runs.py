"""Runs that can be killed: the runner in one process, its kernel in another, and what is seen.

For tools/faults.py.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from faults_files import results

from lib.core.paths import ROOT
from lib.core.runner import Job, plan_jobs
from lib.core.runner import main as run_stages

TINY = ROOT / "tests" / "faults" / "params"  # parameters of scale tiny, a file a study
LETS_GO = {"tree": 10, "runner": 10, "kernel": 60}  # seconds to end in, by who was killed
_NO_KERNEL = re.compile("Kernel died before|Kernel didn't respond")
# A runner is forked from a process that has its imports, for these take longer than most stages.
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["lib.core.runner", "papermill"])


def studies() -> list[str]:
    """The studies that have tiny parameters; the assay has none yet."""
    return sorted(path.stem for path in TINY.glob("*.yaml"))


@dataclass(frozen=True)
class Place:
    """Where a campaign works: a repository with tiny parameters, and the outputs of its runs."""

    work: Path

    @property
    def root(self) -> Path:
        """The repository."""
        return self.work / "root"

    @property
    def undisturbed(self) -> Path:
        """The outputs of runs that were left alone."""
        return self.work / "undisturbed"

    @property
    def encoder(self) -> Path:
        """The encoder of scale tiny."""
        return self.work / "encoder"

    def make(self) -> None:
        """Make the repository, and the encoder where there is none."""
        (self.root / "params").mkdir(parents=True, exist_ok=True)
        for folder in ("notebooks", "lib"):
            (self.root / folder).unlink(missing_ok=True)
            (self.root / folder).symlink_to(ROOT / folder)
        shutil.copy(ROOT / "params" / "ranges.yaml", self.root / "params")
        for study in studies():
            params = self.root / "params" / study
            params.mkdir(exist_ok=True)
            shutil.copy(TINY / f"{study}.yaml", params / "tiny.yaml")
            shutil.copy(ROOT / "params" / study / "small.yaml", params)
        if not self.encoder.is_dir():
            _save_encoder(self.encoder)
        os.environ["TOUCHSTONE_OUTPUTS"] = str(self.undisturbed)  # for `jobs`

    def parameters(self, study: str, scale: str) -> dict[str, str]:
        """What is set beside the parameter file: a path of this machine."""
        has_encoder = any("encoder" in job.all for job in plan_jobs(study, scale, self.root))
        return {"encoder": str(self.encoder)} if scale == "tiny" and has_encoder else {}

    def jobs(self, study: str, scale: str) -> list[Job]:
        """The undisturbed stages of a study."""
        return plan_jobs(study, scale, self.root, self.parameters(study, scale))


def _save_encoder(folder: Path) -> None:
    """A masked LM of two small layers with random weights, and MiniLM's word pieces."""
    import torch
    import transformers as tf

    from lib.models.weights import load_tokenizer

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    part = folder.with_name("encoder.part")
    shutil.rmtree(part, ignore_errors=True)
    config = tf.BertConfig(vocab_size=30522, intermediate_size=24, **sizes)
    tf.BertForMaskedLM(config).save_pretrained(part)
    load_tokenizer("all-MiniLM-L6-v2").save_pretrained(part)
    part.rename(folder)


class Run:
    """One stage, run by the runner into a folder of outputs.

    Attributes:
        folder: the stage's.
        log: what the runner printed.
        kernels: the runner's children.
        marks: seconds after the beginning at which the `kernel` was there, the stage was `opened`,
            the run was `killed` or had `ended`.
    """

    def __init__(self, place: Place, study: str, scale: str, stage: str, outputs: Path) -> None:
        self.folder = outputs / study / scale / stage
        self.log = outputs / f"{study} {scale}.txt"
        self.kernels: list[psutil.Process] = []
        self.marks: dict[str, float] = {}
        arguments = [study, "--scale", scale, "--stage", stage, "--root", str(place.root)]
        for name, value in place.parameters(study, scale).items():
            arguments += ["-p", name, value]
        outputs.mkdir(parents=True, exist_ok=True)
        self._begun = time.monotonic()
        self._process = _forks.Process(target=_serve, args=(arguments, outputs, self.log))
        self._process.start()

    @property
    def second(self) -> float:
        """How long ago the run began."""
        return time.monotonic() - self._begun

    def results(self) -> set[str]:
        """The files that were begun or finished so far, by their final names."""
        return results(self.folder)

    def wait(self) -> int:
        """Look on until the run ends; its exit status."""
        while self._goes_on():
            time.sleep(0.02)
        self.marks["ended"] = self.second
        self._process.join()
        return self._process.exitcode or 0

    def is_without_kernel(self) -> bool:
        """Whether a run that failed did so because its kernel did not come up."""
        log = self.folder / "failed.log"
        return log.is_file() and bool(_NO_KERNEL.search(log.read_text()))

    def kill(self, victim: str, is_time: Callable[[Run], bool]) -> bool:
        """Kill tree, runner or kernel when it is time; False where the run ended before."""
        while not (is_time(self) and (self.kernels or victim == "runner")):
            if not self._goes_on():
                self.marks["ended"] = self.second
                return False
            # A file is written in a millisecond; before the stage is open none is.
            time.sleep(0.001 if "opened" in self.marks else 0.02)
        self.marks["killed"] = self.second
        if victim != "kernel":
            self._process.kill()
        for kernel in self.kernels if victim != "runner" else []:
            with suppress(psutil.NoSuchProcess):
                kernel.kill()
        return True

    def orphans(self, victim: str) -> list[str]:
        """What of the run outlives the kill; it is ended, for the next run needs the folder."""
        self._process.join(LETS_GO[victim])
        alive = psutil.wait_procs(self.kernels, timeout=LETS_GO["runner"])[1]
        names = ["kernel" for _ in alive]
        for kernel in alive:
            kernel.kill()
        if self._process.is_alive():
            names.append("runner")
            self._process.kill()
        self._process.join()
        return names

    def _goes_on(self) -> bool:
        """Whether the runner lives; notes when the kernel was there and the stage was opened."""
        if not self.kernels:
            with suppress(psutil.NoSuchProcess):
                self.kernels = psutil.Process(self._process.pid).children()
            if self.kernels:
                self.marks["kernel"] = self.second
        if "opened" not in self.marks and (self.folder / ".lock").exists():
            self.marks["opened"] = self.second
        return self._process.is_alive()


def _serve(arguments: list[str], outputs: Path, log: Path) -> None:
    """In the runner's process: what `python -m lib.core.runner` does with these arguments."""
    os.setsid()
    os.chdir(ROOT)
    temporary = outputs / "tmp"
    temporary.mkdir(exist_ok=True)
    tempfile.tempdir = None  # asked for anew
    os.environ |= {
        "TOUCHSTONE_OUTPUTS": str(outputs),
        "TMPDIR": str(temporary),  # where a killed runner leaves its kernel's addresses
        "PYTHONPATH": str(ROOT),
    }
    with log.open("ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.exit(run_stages(arguments))
