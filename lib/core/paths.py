"""Where things are. No other module builds a path of the repository by itself."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
IS_INSTALLED = (PACKAGE / "_data").is_dir()  # where the wheel has notebooks, material, parameters
ROOT = PACKAGE / "_data" if IS_INSTALLED else PACKAGE.parent  # of notebooks and params


def data_root() -> Path | None:
    """The folder of downloads (`TOUCHSTONE_DATA`), or None where it is not set."""
    return _folder("TOUCHSTONE_DATA")


def spacy_pipeline() -> str | None:
    """The spaCy pipeline of this machine, a name or a path (`TOUCHSTONE_SPACY`), or None."""
    return os.environ.get("TOUCHSTONE_SPACY") or None


def outputs_root() -> Path:
    """The folder that runs write into (`TOUCHSTONE_OUTPUTS`, by default `outputs/`)."""
    return _folder("TOUCHSTONE_OUTPUTS") or home() / "outputs"


def home() -> Path:
    """The folder of `outputs/`, and of a parameter's relative path.

    It is the checkout. An installed package has none and writes nothing beside itself: the current
    folder takes its place.
    """
    return Path.cwd() if IS_INSTALLED else ROOT


def material(study: str) -> Path:
    """The folder of what was written for a study: texts, labels, lists, the paper's numbers."""
    return ROOT / "notebooks" / study / "material"


def pretrained_dir(name: str) -> Path:
    """The folder of a model that `touchstone pretrain NAME` trains."""
    return outputs_root() / "pretrained" / name


def reference_dir(study: str, scale: str) -> Path:
    """The folder of the committed results that we vouch for."""
    return home() / "outputs" / "reference" / study / scale


def _folder(variable: str) -> Path | None:
    value = os.environ.get(variable)
    # Absolute, for a kernel may start in another folder than its caller.
    return Path(value).expanduser().resolve() if value else None
