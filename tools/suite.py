"""The tests of the README's second command, and where their time goes.

    python tools/suite.py [JOBS]

Notebooks and unit tests run in JOBS processes (each study's notebooks in order in one of them),
then the tables that the notebooks wrote are compared with the reference. Everything is written into
a temporary folder, which is kept if a test fails.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lib.core.expected import expected_minutes

ROOT = Path(__file__).resolve().parents[1]
LOG = ROOT / "outputs" / "test.log"


def pytest(*arguments: str, log: Path = LOG) -> int:
    """Run pytest, showing what it prints and adding it to the log."""
    command = [sys.executable, "-m", "pytest", *arguments]
    with (
        log.open("a") as file,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        for line in process.stdout or ():
            print(line, end="", flush=True)
            file.write(line)
    return process.returncode


def main(jobs: int) -> int:
    """Run everything; returns the exit status."""
    minutes = expected_minutes("test")
    about = f"about {minutes / jobs:.0f} minutes on this machine" if minutes else "never timed"
    print(f"make test: unit tests, every notebook, every table; {about}; log: outputs/test.log")
    LOG.parent.mkdir(exist_ok=True)
    LOG.unlink(missing_ok=True)
    folder = tempfile.mkdtemp(prefix="touchstone-test-")
    started = time.monotonic()
    parallel = ["-n", str(jobs), "--dist", "loadgroup"] if jobs > 1 else []
    status = pytest(*parallel, "--outputs", folder, "--ignore", "tests/test_reference.py")
    status = pytest("tests/test_reference.py", "--outputs", folder) or status
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{(time.monotonic() - started) / 60:.1f} minutes with {jobs} jobs, "
        f"{(used.ru_utime + used.ru_stime) / 60:.1f} minutes of processor time"
    )
    if status:
        print(f"what the notebooks wrote is kept in {folder}")
    else:
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else min(2, os.cpu_count() or 1)))
