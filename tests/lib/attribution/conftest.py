"""The small models as fixtures."""

from __future__ import annotations

import pandas as pd
import pytest
from small_models import FAMILIES, SENTENCES, LinearText, as_rows, build

from lib.models.face import RunsFromEmbeddings
from lib.models.hf import HFClassifier


@pytest.fixture
def linear() -> LinearText:
    return LinearText()


@pytest.fixture(scope="session", params=["BERT", "RoBERTa", "GPT-2", "OLA"])
def model(request: pytest.FixtureRequest) -> RunsFromEmbeddings:
    return build(request.param)


@pytest.fixture(scope="session", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> RunsFromEmbeddings:
    return build(request.param)


@pytest.fixture(params=["masked LM", "causal LM", "similarity"])
def zero_shot(request: pytest.FixtureRequest) -> RunsFromEmbeddings:
    return build(request.param)


@pytest.fixture
def bert() -> HFClassifier:
    return build("BERT")


@pytest.fixture
def rows() -> pd.DataFrame:
    return as_rows(SENTENCES)
