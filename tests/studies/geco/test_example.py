"""The example of the first minute: the numbers of the first notebook, as text."""

from __future__ import annotations

import pandas as pd
import pytest

from lib.core.paths import ROOT
from lib.studies.geco.example import as_text, make_example


@pytest.mark.slow
def test_the_example_is_the_first_notebook_s() -> None:
    example = make_example()
    committed = pd.read_csv(ROOT / "outputs/reference/start_here/attribution.csv")
    assert example.words == committed["word"].tolist()
    assert example.truth == committed["ground_truth"].tolist()
    assert example.scores["Integrated Gradients"] == pytest.approx(committed["score"], abs=2e-3)
    text = as_text(example, coloured=False)
    assert "First pronoun, a rule that never looks at the model: 100% on changed words" in text
    assert "\x1b[" not in text and "\x1b[" in as_text(example, coloured=True)
