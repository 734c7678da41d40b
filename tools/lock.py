"""Write requirements/{run,test,lab}.txt: every package, direct or not, at the version that pip
resolves today.

    python tools/lock.py

pip itself does the resolving (`pip install --dry-run --report`); this file only writes the answer
down. `run.txt` is what `make demo` installs; `test.txt` and `lab.txt` hold what their extra adds to
it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def resolve(requirements: list[str]) -> dict[str, str]:
    """The versions that pip would install for these requirements in an empty environment."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--dry-run",
        "--ignore-installed",
        "--report",
        "-",
    ]
    report = json.loads(
        subprocess.run([*command, *requirements], check=True, capture_output=True, text=True).stdout
    )
    metadata = [package["metadata"] for package in report["install"]]
    # "2.13.0+cpu" is a build of 2.13.0: the pin names the release, so that any build of it fits.
    return {
        entry["name"].lower().replace("_", "-"): entry["version"].split("+")[0]
        for entry in metadata
    }


def write_lock(name: str, versions: dict[str, str], note: str) -> None:
    lines = [f"# {note}. Written by tools/lock.py; edit pyproject.toml instead."]
    lines += [f"{package}=={version}" for package, version in sorted(versions.items())]
    (ROOT / "requirements" / f"{name}.txt").write_text("\n".join(lines) + "\n")


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run = resolve(project["dependencies"])
    write_lock("run", run, "What a study needs to run")
    for extra, added in project["optional-dependencies"].items():
        together = resolve([*(f"{package}=={version}" for package, version in run.items()), *added])
        write_lock(
            extra,
            {p: v for p, v in together.items() if p not in run},
            f"What the extra '{extra}' adds to run.txt",
        )


if __name__ == "__main__":
    main()
