"""Long runs resume: a finished unit (a data set, seed and method) is a small CSV with a key."""

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .errors import TouchstoneError
from .files import sha256_of_tree, write_atomic
from .paths import PACKAGE, outputs_root, reference_dir

LIMIT = 500_000  # bytes: what git may be asked to keep
_TEXT = {"words", "sentence", "text", "tokens"}  # columns that would publish somebody's corpus


@dataclass(frozen=True)
class Units:
    """The finished units of one stage.

    Attributes:
        study: the study, a folder of notebooks.
        scale: a file of its parameters, without ending.
        stage: the stage, a notebook.
        reuse: also read from and publish to `outputs/reference/<study>/<scale>/units/<stage>/`,
            which git keeps.
        publish: whether reused units go there; if not they stay where the run is, for they are too
            large for git.
        digits: how many digits of a number are kept; a float32 survives nine.
    """

    study: str
    scale: str
    stage: str
    reuse: bool = False
    publish: bool = True
    digits: int = 9

    def key(self, **settings: Any) -> str:
        """A short hash of all that the unit's numbers depend on (inputs by their SHA-256).

        Without `reuse` the code of lib counts as well: a changed line makes the units anew.
        Published units outlive changes of the code; after a change of the method, delete them.
        """
        parts = [settings, "" if self.reuse else sha256_of_tree(PACKAGE, "**/*.py")]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def load(self, name: str, key: str) -> pd.DataFrame | None:
        """The unit's table, or None where there is none with this key."""
        for folder in self._folders():
            path = folder / f"{name}.csv"
            if path.is_file():
                first, _, body = path.read_text(encoding="utf-8").partition("\n")
                if first == f"# key={key}":
                    return _with_lists(pd.read_csv(io.StringIO(body)))
        return None

    def finished(self, name: str, key: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """The unit's table: read where it is finished, else made and kept.

        Both ways give the same numbers, for what was made is read back.
        """
        if (table := self.load(name, key)) is None:
            self.save(name, key, make())
            table = self.load(name, key)
        assert table is not None
        return table

    def save(self, name: str, key: str, frame: pd.DataFrame) -> None:
        """Keep a unit: ids, and numbers with `digits` digits; cells may be lists.

        Raises:
            TouchstoneError: it is to be published and holds text or more than `LIMIT` bytes.
        """
        content = f"# key={key}\n" + frame.map(lambda cell: _as_text(cell, self.digits)).to_csv(
            index=False, float_format=f"%.{self.digits}g", lineterminator="\n"
        )
        of_the_run, *published = self._folders()
        write_atomic(of_the_run / f"{name}.csv", content)
        for folder in published:
            self._refuse_unfit(name, frame, content)
            write_atomic(folder / f"{name}.csv", content)

    def _folders(self) -> list[Path]:
        of_the_run = outputs_root() / self.study / self.scale / self.stage / "units"
        published = reference_dir(self.study, self.scale) / "units" / self.stage
        return [of_the_run, published] if self.reuse and self.publish else [of_the_run]

    def _refuse_unfit(self, name: str, frame: pd.DataFrame, content: str) -> None:
        if text := _TEXT & set(frame.columns):
            raise TouchstoneError(
                f"unit {name} holds the column {min(text)!r}; "
                "published units hold ids and numbers only"
            )
        if (size := len(content.encode())) > LIMIT:
            raise TouchstoneError(
                f"unit {name} has {size} bytes, {LIMIT} may be published; make it smaller"
            )


def _as_text(cell: Any, digits: int) -> Any:
    if not isinstance(cell, list | tuple | np.ndarray):
        return cell
    return json.dumps(
        [float(f"{x:.{digits}g}") if isinstance(x, float | np.floating) else x for x in cell],
        default=int,
        separators=(",", ":"),
    )


def _with_lists(frame: pd.DataFrame) -> pd.DataFrame:
    for column in frame.columns:
        if frame[column].map(lambda cell: isinstance(cell, str) and cell.startswith("[")).any():
            frame[column] = frame[column].map(json.loads)
    return frame
