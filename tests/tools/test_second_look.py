"""A second look at open claims is told with what it costs."""

import pandas as pd
import pytest
import runs
from second_look import TABLE, second_look

from lib.core.errors import TouchstoneError
from lib.core.paths import material

TOLD = [study for study in runs.told() if (material(study) / TABLE).is_file()]


def test_what_was_open_is_judged_at_half_the_level() -> None:
    verdicts = pd.DataFrame(
        [(1, "a", "holds"), (1, "b", "undecided"), (1, "c", "not run")]
        + [(2, "a", "fails"), (2, "b", "holds"), (2, "c", "not run"), (2, "new", "holds")],
        columns=["run", "claim", "verdict"],
    )
    half = pd.DataFrame({"id": ["c", "b", "a"], "verdict": ["not run", "undecided", "fails"]})
    found = second_look(verdicts, half)
    assert found.to_numpy().tolist() == [
        [2, "b", "undecided", "holds", "undecided"],
        [2, "c", "not run", "not run", "not run"],
    ]
    with pytest.raises(TouchstoneError, match="claim b was not judged at half the level"):
        second_look(verdicts, half[half["id"] != "b"])


@pytest.mark.parametrize("study", TOLD)
def test_a_committed_table_has_the_verdicts_of_its_runs(study: str) -> None:
    _, verdicts = runs.read_runs(study)
    by_run = verdicts.set_index(["run", "claim"])["verdict"]
    for row in pd.read_csv(material(study) / TABLE).itertuples():
        assert by_run[row.run - 1, row.claim] == row.before
        assert by_run[row.run, row.claim] == row.now
