"""What a number depends on besides data and settings, by content: the files and folders of models,
pipelines and modules that a parameter names, and what the code reads of other studies' material.
"""

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import paths
from .files import sha256_of, sha256_of_tree

_MODEL = ("config.json", "meta.json")  # of transformers, of spaCy
_PIPELINE = "$TOUCHSTONE_SPACY"
_read: set[Path] = set()


def fingerprint(path: Path) -> str:
    """The SHA-256 of a file, or of all names and contents of a folder."""
    return sha256_of_tree(path) if path.is_dir() else sha256_of(path)


def locate(text: str) -> Path | None:
    """The file, the folder of a model or the module that a parameter's text names, or None.

    None stands for a model's hub id, say, or a registered method: the text says all.

    >>> locate("all-MiniLM-L6-v2"), locate("pyproject.toml") is None, locate("json:loads").name
    (None, False, 'json')
    """
    text = os.path.expandvars(text)
    for path in (
        (paths.home() / text, Path.cwd() / text, paths.outputs_root() / text) if text else ()
    ):
        if os.path.isfile(path) or any(os.path.isfile(path / about) for about in _MODEL):
            return path
    module, colon, _ = text.partition(":")
    source = _source(module)
    return source if colon or source and (source / "meta.json").is_file() else None


def find_again(name: str) -> Path:
    """What a manifest calls `name`, the inverse of `name_of`; it may be there no longer."""
    path = paths.home() / os.path.expandvars(name)
    return path if path.exists() else locate(name) or path


def by_content(text: str) -> dict[str, str]:
    """What a key says of a local model or module beside its name; nothing of any other."""
    path = locate(text)
    return {"content": fingerprint(path)} if path else {}


def name_of(path: Path) -> str:
    """How a manifest calls a file, so that it is found again in another place."""
    for root, name in ((paths.data_root(), "$TOUCHSTONE_DATA/"), (paths.home(), "")):
        if root is not None and path.is_relative_to(root):
            return name + path.relative_to(root).as_posix()
    return str(path)


def named_contents(parameters: Mapping[str, Any]) -> dict[str, Path]:
    """What parameters name, at any depth, by the name that a manifest gives it."""
    texts = set(_texts(parameters))
    found = {name_of(path): path for text in texts if (path := locate(text))}
    pipeline = locate(_PIPELINE) if "environment" in texts else None
    return found | ({_PIPELINE: pipeline} if pipeline else {})


def noted(path: Path) -> Path:
    """A file of some study's material that is about to be read: manifests will list it."""
    _read.add(path)
    return path


def noted_contents(study: str) -> dict[str, Path]:
    """What was `noted` and is not of this study, whose own material counts as a whole."""
    own = paths.material(study)
    return {name_of(path): path for path in _read if not path.is_relative_to(own)}


def _source(module: str) -> Path | None:
    """The file of a module, or the folder of a package."""
    if not all(part.isidentifier() for part in module.split(".")):
        return None
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # no such package; a module without a file
        return None
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
