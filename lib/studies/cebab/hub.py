"""CEBaB from the Hugging Face hub: Parquet files, checked to hold what the release holds."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError
from ...core.files import read_table
from .reviews import (
    CEBAB_COMMIT,
    CEBAB_SHA256,
    NOT_ANNOTATED,
    by_id,
    join_splits,
    texts_of,
)

HUB = "CEBaB/CEBaB"
HUB_REVISION = "refs/convert/parquet"  # the hub's own copy of a data set, as Parquet
# the SHA-256 of what `read_cebab` reads of the published files
CEBAB_ROWS = "f14276cc45a00278e548bc84e113c729385c28746e2502e80117132a1431901f"


def fetch_hub(repository: str = HUB, revision: str = HUB_REVISION) -> Path:
    """The folder of a data set's Parquet files, in the hub's own cache; `read_hub` checks them."""
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                repository, repo_type="dataset", revision=revision, allow_patterns="*.parquet"
            )
        )
    except (OSError, ValueError) as error:
        raise TouchstoneError(
            f"could not fetch {repository} from the Hugging Face hub ({type(error).__name__}); try "
            'again with a connection, or take the published files: data_source = "cebab"'
        ) from error


def read_hub(folder: Path | str) -> pd.DataFrame:
    """The table of `read_cebab`, from Parquet files: one or more for each of the hub's splits.

    Raises:
        TouchstoneError: a split is missing, a record is not as it should be, or what is read is not
            what the release holds, text by text and label by label: a hub can change.
    """
    folder, parts = Path(folder), {}
    for name in (file.removesuffix(".json") for file in CEBAB_SHA256):
        split = "validation" if name == "dev" else name
        # The hub names a split by a folder, or by how the file begins.
        files = sorted(
            path
            for path in folder.rglob("*.parquet")
            if path.parent.name == split or path.name.startswith(f"{split}-")
        )
        if not files:
            raise TouchstoneError(
                f"{folder} holds no Parquet file of {split}; delete the folder and fetch the data "
                "set again"
            )
        source = f"{folder}, {split}"
        records = [record for file in files for record in read_table(file).to_dict("records")]
        published = [_as_published(r, f"{source}, record {i}") for i, r in enumerate(records)]
        parts[name] = texts_of(published, source)
    texts = join_splits(parts, folder)
    if rows_sha256(texts) != CEBAB_ROWS:
        raise TouchstoneError(
            f"{folder} holds other texts or labels than CEBaB v1.1 (commit {CEBAB_COMMIT}); take "
            'the published files: data_source = "cebab"'
        )
    return texts


def rows_sha256(texts: pd.DataFrame) -> str:
    """The SHA-256 of a table of texts, in whatever order its rows and columns come."""
    rows = by_id(texts)[sorted(texts)].to_csv(index=False, lineterminator="\n")
    return hashlib.sha256(rows.encode()).hexdigest()


def _as_published(record: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A record as the release has it: votes as a dictionary, missing cells None, "" for aspects."""
    cells: dict[str, Any] = {}
    for name, cell in record.items():
        missing = cell is None or (isinstance(cell, float) and np.isnan(cell))
        cells[name] = None if missing else cell
        if name.endswith("_label_distribution"):
            cells[name] = _votes(cells[name], f"{where}: {name}")
        elif "_aspect_" in name and missing:
            cells[name] = NOT_ANNOTATED
    return cells


def _votes(cell: Any, where: str) -> dict[str, int] | str:
    """Votes from a cell for each label, from JSON, or from a dictionary as Python writes it."""
    try:
        if isinstance(cell, str) and cell:
            # A dictionary as Python writes it has single quotes and None, JSON has neither.
            cell = json.loads(cell.replace("'", '"').replace("None", "null"))
        votes = {label: int(n) for label, n in (cell or {}).items() if n is not None and n == n}
    except (ValueError, AttributeError):
        raise TouchstoneError(f"{where} is {cell!r}; votes are a number for each label") from None
    return votes or NOT_ANNOTATED
