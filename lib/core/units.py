"""Long runs resume: a finished unit (a data set, seed and method) is a small file with a key.

A CSV has the lines `# key=`, `# sha256=` (of all that follows), `# {...}` (a record in JSON:
columns that a CSV alone would not give back as they were, the files that belong to it, what made
it) and the table. Units of before there were checksums have the key and the table. A Parquet file,
for numbers of which every digit counts, has the same three lines in its metadata; it keeps rounded
numbers as decimals.
"""

import hashlib
import io
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock
from pandas.api.types import is_string_dtype

from .. import __version__
from .errors import TouchstoneError
from .files import load_parquet, sha256_of, write_atomic
from .made_by import is_strict, made_by, note_reuse
from .paths import outputs_root, reference_dir

LIMIT = 500_000  # bytes: what git may be asked to keep
_SHA256 = b"# sha256="
_CSV, _PARQUET = ".csv", ".parquet"
# The lines in the metadata of a Parquet file, whose checksum is that of the file with zeros there.
_HEAD = re.compile(rb"# key=(.*)\n# sha256=([0-9a-f]{64})\n# (\{.*\})\n")
_ZEROS = b"0" * 64
_locks: dict[Path, FileLock] = {}  # one object a file, so that a claim within a claim is granted
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
        digits: how many digits of a number are kept. Without it all of them are, or nine where
            units are published: a float32 survives these.
    """

    study: str
    scale: str
    stage: str
    reuse: bool = False
    publish: bool = True
    digits: int | None = None
    _named: set[Path] = field(default_factory=set, init=False, repr=False, compare=False)

    def key(self, **settings: Any) -> str:
        """A short hash of the unit's question: what its numbers depend on but for what makes them.

        Inputs count by their SHA-256. Code and versions are no part of it, see `made_by`.
        """
        parts = [settings, ""]  # the second was code once; published keys stay what they are
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def load(self, name: str, key: str, files: Sequence[Path] = ()) -> pd.DataFrame | None:
        """The unit's table, or None where there is none with this key.

        One of the run's own must have been made by this code and these versions. A published one
        need not, unless TOUCHSTONE_STRICT refuses all of them; `Stage.close` says what made it.
        One that is damaged is none, nor is one whose `files` (weights, say) are missing or are not
        those that it was saved with; a printed line says so.
        """
        of_the_run = self._folders()[0]
        for path in self._paths(name):
            try:
                unit = _read(path, key, unsigned=self.reuse)
            except (ValueError, OSError) as error:  # not UTF-8, no table, no JSON: each is one
                self._name(path, f"{path} is damaged ({' '.join(str(error).split())})")
                continue
            if unit is None:
                continue
            frame, record = unit
            is_own = path.is_relative_to(of_the_run)
            if is_own and record.get("made_by") != self._made_by:
                continue
            recorded = record.get("files", {})
            if not all(file.is_file() for file in files):
                continue  # a fresh clone has no weights
            if differs := [file for file in files if recorded.get(file.name) != sha256_of(file)]:
                self._name(path, f"{differs[0]} is not known to be what unit {name} was made with")
                continue
            if not is_own:
                note_reuse((self.study, self.scale, self.stage), name, record)
            return frame
        return None

    def finished(
        self, name: str, key: str, make: Callable[[], pd.DataFrame], exact: bool = False
    ) -> pd.DataFrame:
        """The unit's table: read where it is finished, else made and kept (`exact`: see `save`).

        Both ways give the same numbers, for what was made is read back.
        """
        with self.claim(name):
            table = self.load(name, key)
            return self.save(name, key, make(), exact=exact) if table is None else table

    def keep_ids(self, name: str, ids: pd.DataFrame) -> None:
        """Keep a unit that says what each row of some others is about, by ids, where it is not."""
        table = ids.reset_index(drop=True)
        self.finished(name, self.key(ids=table.to_numpy().tolist()), lambda: table, exact=True)

    @contextmanager
    def claim(self, name: str, seconds: float = -1) -> Iterator[None]:
        """Within, no other process makes this unit; the claim of one that dies is let go.

        Args:
            name: of the unit.
            seconds: how long to wait for another process that has claimed it; -1: until it is done.

        Raises:
            TimeoutError: another process has it still.
        """
        path = self._folders()[0] / ".claims" / f"{name.replace('/', '-')}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locks.setdefault(path, FileLock(path)).acquire(timeout=seconds):
            yield

    def save(
        self,
        name: str,
        key: str,
        frame: pd.DataFrame,
        files: Sequence[Path] = (),
        exact: bool = False,
    ) -> pd.DataFrame:
        """Keep a unit: ids, and numbers with `digits` digits; cells may be lists.

        Args:
            name: the file's name, without ending.
            key: of `key`.
            frame: the table.
            files: what was written with it and belongs to it, each recorded with its SHA-256.
            exact: keep every digit, published or not, as Parquet: for scores, whose order counts.

        Returns:
            The table as `load` will give it: go on with this one, and a run that was stopped and
            resumed ends with the same bytes as one that was not.

        Raises:
            TouchstoneError: it is to be published and holds text or more than `LIMIT` bytes.
        """
        of_the_run, *published = self._folders()
        about = {
            "files": {file.name: sha256_of(file) for file in files},
            "made_by": self._made_by,
            "touchstone": __version__,
        }
        if exact:
            content = _as_parquet(frame, key, about)
        else:
            content = f"# key={key}\n".encode() + _written(frame, self._digits, about)
        kept, other = (_PARQUET, _CSV) if exact else (_CSV, _PARQUET)
        for folder in (of_the_run, *published):
            if folder != of_the_run:
                self._refuse_unfit(name, frame, content)
            path = folder / f"{name}{kept}"
            for left_over in path.parent.glob(f".{escape(path.name)}.*.part"):  # of a killed run
                left_over.unlink()
            write_atomic(path, content)
            (folder / f"{name}{other}").unlink(missing_ok=True)  # of before it had this form
        unit = _read(of_the_run / f"{name}{kept}", key)
        assert unit is not None
        return unit[0]

    @cached_property
    def _digits(self) -> int | None:
        return self.digits or (9 if self.reuse and self.publish else None)

    @cached_property
    def _made_by(self) -> dict[str, Any]:
        return made_by(self.study, self.stage) | {"digits": self._digits}

    def _name(self, path: Path, fault: str) -> None:
        """Say once what is wrong with a unit."""
        if path not in self._named:
            print(f"{fault}; it is made anew")
        self._named.add(path)

    def _paths(self, name: str) -> list[Path]:
        """Where a unit may be, the run's own first."""
        folders = self._folders()[: 1 if is_strict() else None]
        paths = [folder / f"{name}{form}" for folder in folders for form in (_PARQUET, _CSV)]
        return [path for path in paths if path.is_file()]

    def _folders(self) -> list[Path]:
        of_the_run = outputs_root() / self.study / self.scale / self.stage / "units"
        published = reference_dir(self.study, self.scale) / "units" / self.stage
        return [of_the_run, published] if self.reuse and self.publish else [of_the_run]

    def _refuse_unfit(self, name: str, frame: pd.DataFrame, content: bytes) -> None:
        if text := _TEXT & set(frame.columns):
            raise TouchstoneError(
                f"unit {name} holds the column {min(text)!r}; "
                "published units hold ids and numbers only"
            )
        if (size := len(content)) > LIMIT:
            raise TouchstoneError(
                f"unit {name} has {size} bytes, {LIMIT} may be published; make it smaller"
            )


def _read(
    path: Path, key: str, unsigned: bool = False
) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """Table and record of a unit, or None where its key is another; see `_parse`."""
    content = path.read_bytes()
    if path.suffix == _PARQUET:
        return _of_parquet(content, key)
    first, _, rest = content.partition(b"\n")
    return _parse(rest, unsigned) if first == f"# key={key}".encode() else None


def _as_parquet(frame: pd.DataFrame, key: str, record: dict[str, Any]) -> bytes:
    """A unit as Parquet, to the last digit; columns hold text, numbers or lists of numbers."""
    head = b"# key=%b\n# sha256=%b\n# %b\n" % (key.encode(), _ZEROS, json.dumps(record).encode())
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    table = pa.table({name: _as_decimals(table[name]) for name in table.column_names})
    types = {
        f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name: getattr(
            field.type, "value_type", field.type
        )
        for field in table.schema
    }
    numbers = {
        path
        for path, kind in types.items()
        if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    }
    # Of a number only the first bytes repeat: bytes of a place are put together before zstd. Where
    # whole numbers come back, zstd finds more by itself: the smaller file is kept.
    both = (_encoded(table, head, split, types.keys() - numbers) for split in (numbers, set()))
    content = min(both, key=len)
    sha256 = hashlib.sha256(content).hexdigest().encode()
    return content.replace(head, head.replace(_ZEROS, sha256))


def _as_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers rounded to three or four decimals as what they are: in half the bytes of a float32.

    A column stays as it is unless all its numbers come back (of a zero not the sign).
    """
    if pa.types.is_float32(column.type):
        for decimals in (3, 4):
            # nine digits fit into four bytes; a number that has more becomes another one
            rounded = column.cast(pa.decimal128(9, decimals), safe=False)
            if rounded.cast(pa.float64()).cast(pa.float32()).equals(column):
                return rounded
    return column


def _encoded(
    table: pa.Table, head: bytes, split: Collection[str], repeated: Collection[str]
) -> bytes:
    """The table as Parquet: bytes of `split` columns put together, dictionaries for `repeated`."""
    buffer = io.BytesIO()
    with pq.ParquetWriter(
        buffer,
        table.schema,
        compression="zstd",
        compression_level=19,
        use_dictionary=list(repeated),
        column_encoding=dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
        store_schema=False,
        store_decimal_as_integer=True,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"unit": head})
    return buffer.getvalue()


def _of_parquet(content: bytes, key: str) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """Table and record of `_as_parquet`, None where the key is another; errors as in `_parse`."""
    if not (head := _HEAD.search(content)):
        raise ValueError("it has no checksum")
    if head[1] != key.encode():
        return None
    unsigned = content[: head.start(2)] + _ZEROS + content[head.end(2) :]
    if hashlib.sha256(unsigned).hexdigest().encode() != head[2]:
        raise ValueError("its checksum does not fit")
    fields = pq.read_schema(io.BytesIO(content))
    rounded = [field.name for field in fields if pa.types.is_decimal(field.type)]
    frame = load_parquet(io.BytesIO(content)).astype(dict.fromkeys(rounded, np.float32))
    return frame, json.loads(head[3])


def _written(frame: pd.DataFrame, digits: int | None, about: dict[str, Any]) -> bytes:
    """What stands below the key: checksum, record (with what it says `about` the unit), table."""
    record = {
        "float32": [name for name in frame if frame[name].dtype == np.float32],
        "text": [n for n in frame if is_string_dtype(frame[n]) and frame[n].notna().all()],
    } | about
    table = frame.map(lambda cell: _as_text(cell, digits)).to_csv(
        index=False, float_format=f"%.{digits}g" if digits else None, lineterminator="\n"
    )
    kept = json.dumps({part: what for part, what in record.items() if what})
    body = f"# {kept}\n{table}".encode()
    return _SHA256 + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _parse(rest: bytes, unsigned: bool = False) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Table and record of what stands below the key; a ValueError says what is wrong with it.

    `unsigned` lets a table pass that was written before there were checksums.
    """
    line, _, body = rest.partition(b"\n")
    record = {}
    if line.startswith(_SHA256):
        if line.removeprefix(_SHA256).decode() != hashlib.sha256(body).hexdigest():
            raise ValueError("its checksum does not fit")
        about, _, body = body.partition(b"\n")
        record = json.loads(about.removeprefix(b"# "))
    elif b"\n#" in b"\n" + rest or not unsigned:
        raise ValueError("it has no checksum")
    else:
        body = rest
    text = record.get("text", [])
    names = pd.read_csv(io.BytesIO(body), nrows=0).columns if text else []
    frame = pd.read_csv(
        io.BytesIO(body),
        dtype=dict.fromkeys(text, str),
        keep_default_na=not text,
        na_values={name: [""] for name in names if name not in text},  # a text may be "NA"
    )
    for name in set(frame.columns) - set(text):
        if frame[name].map(lambda cell: isinstance(cell, str) and cell.startswith("[")).any():
            frame[name] = frame[name].map(json.loads, na_action="ignore")
    return frame.astype(dict.fromkeys(record.get("float32", []), np.float32)), record


def _as_text(cell: Any, digits: int | None) -> Any:
    if not isinstance(cell, list | tuple | np.ndarray):
        return cell
    numbers = [
        float(f"{x:.{digits}g}" if digits else x) if isinstance(x, float | np.floating) else x
        for x in cell
    ]
    return json.dumps(numbers, default=int, separators=(",", ":"))
