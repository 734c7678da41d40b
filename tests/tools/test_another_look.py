"""Another look at open claims is told with what it costs."""

import pandas as pd
import pytest
import runs
from another_look import TABLE, another_look

from lib.core.errors import TouchstoneError
from lib.core.paths import material

TOLD = [study for study in runs.told() if (material(study) / TABLE).is_file()]


def test_what_was_open_or_moved_is_judged_at_a_stricter_level() -> None:
    verdicts = pd.DataFrame(
        [(1, "a", "holds"), (1, "b", "undecided"), (1, "c", "not run"), (1, "d", "partly")]
        + [(2, "a", "holds"), (2, "b", "holds"), (2, "c", "not run"), (2, "d", "holds")]
        + [(2, "new", "holds")],
        columns=["run", "claim", "verdict"],
    )
    again = {"c": "not run", "b": "undecided", "a": "holds", "d": "partly"}
    stricter = pd.DataFrame(list(again.items()), columns=["id", "verdict"])
    found = another_look(verdicts, stricter, looks=3)
    assert found.columns.tolist() == ["run", "claim", "before", "now", "looks", "stricter"]
    assert found.to_numpy().tolist() == [
        [2, "b", "undecided", "holds", 3, "undecided"],
        [2, "c", "not run", "not run", 3, "not run"],
        [2, "d", "partly", "holds", 3, "partly"],
    ]
    with pytest.raises(TouchstoneError, match="claim b was not judged at the stricter level"):
        another_look(verdicts, stricter[stricter["id"] != "b"], looks=3)


@pytest.mark.parametrize("study", TOLD)
def test_a_committed_table_has_the_verdicts_of_its_runs(study: str) -> None:
    _, verdicts = runs.read_runs(study)
    by_run = verdicts.set_index(["run", "claim"])["verdict"]
    table = pd.read_csv(material(study) / TABLE)
    assert table["looks"].gt(1).all()
    for row in table.itertuples():
        assert by_run[row.run - 1, row.claim] == row.before
        assert by_run[row.run, row.claim] == row.now
