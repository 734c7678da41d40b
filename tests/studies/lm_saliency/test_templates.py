"""The synthetic sets against the published files."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
import yaml

from lib.core.errors import TouchstoneError
from lib.core.paths import data_root, material
from lib.studies.lm_saliency.lines import (
    frame_groups,
    nearest_baseline,
    random_baseline,
    read_agreement,
)
from lib.studies.lm_saliency.templates import syneval_rows, winobias_row, winobias_rows

HERE = material("lm_saliency")


@cache
def words(name: str):
    return yaml.safe_load((HERE / f"{name}.yaml").read_text())


@pytest.fixture
def published():
    root = data_root()
    if root is None or not (root / "tarsius").is_dir():
        pytest.skip(
            "needs the published prefixes: set TOUCHSTONE_DATA to a folder that holds tarsius/"
        )
    return root / "tarsius"


def test_syneval_is_the_published_file_line_by_line(published) -> None:
    theirs, ours = read_agreement(published / "Syneval"), syneval_rows(words("syneval"))
    assert len(ours) == 6280
    for column in ("prefix", "tag", "cues", "attractors"):
        assert list(ours[column]) == list(theirs[column]), column


def test_the_published_gender_set_has_the_groups_of_the_paper(published) -> None:
    sizes = Counter(frame_groups(read_agreement(published / "Winobias")))
    assert len(sizes) == 283 and sum(size > 1 for size in sizes.values()) == 254


def test_syneval_has_24_sections_and_the_printed_baselines() -> None:
    rows = syneval_rows(words("syneval"))
    assert rows["pattern"].nunique() == 24 and list(rows["tag"].value_counts()) == [3140, 3140]
    assert random_baseline(rows).mean() == 0.5 and round(nearest_baseline(rows).mean(), 3) == 0.140
    assert rows["prefix"].map(tuple).is_unique


def test_a_two_word_noun_is_inflected_at_its_end_and_spanned_by_its_second_word() -> None:
    rows = syneval_rows(words("syneval"))
    row = next(
        row
        for row in rows.itertuples()
        if "drivers" in row.prefix and row.pattern.startswith("obj_rel_across")
    )
    assert " ".join(row.prefix) == "the author that the taxi drivers like" and row.attractors == [
        (5, 5)
    ]


def test_the_gender_set_has_one_of_each_and_is_balanced_in_order() -> None:
    rows = winobias_rows(words("winobias"), 200, seed=3)
    assert rows["prefix"].map(tuple).is_unique and set(rows["tag"]) == {1}
    assert nearest_baseline(rows).mean() == 0.5
    for row in rows.itertuples():
        assert row.prefix[row.cues[0][0]] in words("winobias")["female"]
        assert row.prefix[row.attractors[0][0]] in words("winobias")["male"]
    assert rows.equals(winobias_rows(words("winobias"), 200, seed=3))


def test_a_frame_without_a_slot_and_too_many_lines_are_refused() -> None:
    with pytest.raises(TouchstoneError, match="lacks"):
        winobias_row("The {1} slept because", "aunt", "uncle", True)
    few = {"frames": ["The {1} met the {2} and"], "female": ["aunt"], "male": ["uncle"]}
    with pytest.raises(TouchstoneError, match="allow 2"):
        winobias_rows(few, 3, seed=0)
