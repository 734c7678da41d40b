"""What to cite for a run: works in BibTeX, chosen by what its manifests name.

`CITATION.cff` has this software and the paper of each study; `notebooks/citations.bib` has data,
encoders and methods. A work says in its field `used_for`, which BibTeX ignores, for what it is
cited, split by semicolons: names of methods, explainers and encoders as parameters have them,
`study: name of the source` for data, and `study: parameter` for what a study does where that
parameter is set.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import TouchstoneError
from .files import read_text, read_yaml
from .paths import ROOT
from .stage import MANIFEST, read_manifest

_NAMING = re.compile(r"(methods|explainers|hub_models|hf_models|encoder|transfer)$")
_MORE = "`touchstone cite STUDY` prints BibTeX of what your run of it used."
_VARIANT = re.compile(r"( \(.*\)| released| norm|\+VN)$")  # a variant is cited as its method
_ENTRY = re.compile(r"^@\w+\{([\w:-]+),\n.*?^\}", re.M | re.S)
_USED_FOR = re.compile(r"^  used_for = \{(.*?)\},\n", re.M | re.S)


def cite_run(folder: Path) -> str:
    """The BibTeX of what the finished stages of a run used: software, study, data, methods.

    Args:
        folder: of the run, `outputs/<study>/<scale>`, with a folder for each stage.

    Raises:
        TouchstoneError: no stage there is finished, or a manifest is damaged.
    """
    manifests = {path: read_manifest(path) for path in sorted(folder.glob(f"*/{MANIFEST}"))}
    if not manifests:
        raise TouchstoneError(
            f"{folder} has no finished stage; run the study first, or name another --scale"
        )
    names: set[str] = set()
    for path, manifest in manifests.items():
        if manifest is None:
            raise TouchstoneError(f"{path} is damaged; run its stage again")
        names |= names_in(manifest["study"], manifest["parameters"])
    return "\n\n".join([*software_and_study(folder.parent.name), *works_for(names)])


def names_in(study: str, parameters: Mapping[str, Any]) -> set[str]:
    """What of a stage's parameters may have a work: methods, encoders, data, and what is set.

    >>> sorted(names_in("geco", {"methods": ["LIME"], "seed": 0, "data_source": "published"}))
    ['LIME', 'geco: data_source', 'geco: methods', 'geco: published']
    """
    found = {f"{study}: {name}" for name, value in parameters.items() if value}
    if "data_source" in parameters:
        found.add(f"{study}: {parameters['data_source']}")
    for name, value in parameters.items():
        if _NAMING.search(name):
            found |= {value} if isinstance(value, str) else set(value)
    return {_VARIANT.sub("", one) for one in found}


def works_for(names: set[str]) -> list[str]:
    """The entries of notebooks/citations.bib that are cited for one of these names."""
    return [entry for entry, used_for in read_works().values() if used_for & names]


def read_works() -> dict[str, tuple[str, set[str]]]:
    """The works of notebooks/citations.bib: {key: (entry without `used_for`, names)}."""
    works = {}
    for entry in _ENTRY.finditer(read_text(ROOT / "notebooks" / "citations.bib")):
        used_for = _USED_FOR.search(entry[0])
        names = re.split(r";\s*", used_for[1]) if used_for else []
        works[entry[1]] = _USED_FOR.sub("", entry[0]), set(names)
    return works


def software_and_study(study: str) -> list[str]:
    """The BibTeX of this software and of a study's paper, from CITATION.cff."""
    citation = read_yaml(ROOT / "CITATION.cff")
    papers = [work for work in citation["references"] if study in work.get("keywords", [])]
    this = citation | {"year": citation["date-released"].year}
    return [bibtex(work) for work in (this, *papers)]


def bibtex(work: Mapping[str, Any]) -> str:
    """A work of CITATION.cff as a BibTeX entry.

    >>> print(bibtex({"authors": [{"family-names": "Ye", "given-names": "Wenqian"}], "year": 2021,
    ...               "title": "Adversarial Examples", "url": "https://arxiv.org/abs/2110.01094"}))
    @misc{ye2021adversarial,
      author = {Ye, Wenqian},
      title = {Adversarial Examples},
      year = {2021},
      url = {https://arxiv.org/abs/2110.01094},
    }
    """
    names = [
        f"{a['family-names']}, {a['given-names']}" if "family-names" in a else f"{{{a['name']}}}"
        for a in work["authors"]
    ]
    fields = {
        "author": " and ".join(names),
        "title": work["title"],
        "year": work["year"],
        "version": work.get("version"),
        "doi": work.get("doi"),
        "url": work.get("url", work.get("repository-code")),
    }
    kind = "software" if work.get("type") == "software" else "misc"
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{_key(work)},", *lines, "}"])


def as_text() -> str:
    """What to cite in plain words: this software, and the paper of each study."""
    citation = read_yaml(ROOT / "CITATION.cff")
    this = citation | {"year": citation["date-released"].year}
    works = "\n".join(work_as_text(work) for work in (this, *citation["references"]))
    return f"{citation['message']}\n\n{works}\n{_MORE}"


def work_as_text(work: Mapping[str, Any]) -> str:
    """A work of CITATION.cff in one paragraph: authors (year). Title. Version or address.

    >>> work_as_text({"authors": [{"family-names": "Ye", "given-names": "Wenqian"}], "year": 2021,
    ...           "title": "Adversarial Examples", "url": "https://arxiv.org/abs/2110.01094"})
    'Ye, Wenqian (2021). Adversarial Examples. https://arxiv.org/abs/2110.01094\\n'
    """
    authors = "; ".join(
        ", ".join(
            author[part] for part in ("family-names", "given-names", "name") if part in author
        )
        for author in work["authors"]
    )
    version = f"Version {work['version']}. " if "version" in work else ""
    where = version + work.get("url", work.get("repository-code", ""))
    return f"{authors} ({work['year']}). {work['title']}. {where}\n"


def _key(work: Mapping[str, Any]) -> str:
    first: Mapping[str, Any] = work["authors"][0]
    words: Sequence[str] = re.findall(r"\w+", work["title"])
    name = first.get("family-names", words[0])
    key = f"{name}{work['year']}{words[0]}" if "family-names" in first else f"{name}{work['year']}"
    plain = unicodedata.normalize("NFKD", key).encode("ascii", "ignore").decode()
    return re.sub(r"\W", "", plain).lower()
