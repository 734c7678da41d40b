"""The table of inputs, and how each of its formats is made and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from formats_of_files import FORMATS as OF_FILES
from formats_of_models import FORMATS as OF_MODELS
from formats_of_tables import FORMATS as OF_TABLES

HERE = Path(__file__).parent
FORMATS = OF_FILES | OF_TABLES | OF_MODELS
TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "inputs.yaml").read_text())
