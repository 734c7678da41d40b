"""The released code's files are read as it prints them; its groups are those of its scripts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml

from lib.core.errors import TouchstoneError
from lib.core.paths import data_root, material
from lib.metrics.plausibility import input_consistency, plausibility
from lib.studies.lm_saliency.lines import frame_groups, read_agreement
from lib.studies.lm_saliency.released import read_outputs, template_groups
from lib.studies.lm_saliency.templates import syneval_rows

ROWS = pd.DataFrame(
    [
        (["the", "dogs", "near", "it", "car"], 1, [(1, 1)], [(4, 4)], "p", "dogs"),
        (["a", "dog", "by", "men"], 0, [(1, 1)], [(3, 3)], "q", "dog"),
    ],
    columns=["prefix", "tag", "cues", "attractors", "pattern", "cluster"],
)


def test_outputs_made_elsewhere_are_scored(tmp_path) -> None:
    rows = ROWS
    (tmp_path / "out.verum").write_text("0 1 0 0 0.5\n0 1 0 2\n")
    (tmp_path / "out.malum").write_text("0 -1 0 0 -0.5\n0 -1 0 2\n")
    (tmp_path / "out.pos.idx").write_text("0\n")
    table = plausibility(read_outputs(tmp_path, rows), {"files": rows})
    assert list(table["is_expected"]) == [True, False] and list(table["passed"]) == [True, True]
    (tmp_path / "out.verum").write_text("0 1 0 0 0.5\n0 1 0\n")
    with pytest.raises(TouchstoneError, match="out.verum, line 2: 3 scores for 4 words"):
        read_outputs(tmp_path, rows)
    (tmp_path / "out.verum").write_text("0 1 0 0 0.5\n0 1 0 x\n")
    with pytest.raises(TouchstoneError, match="out.verum, line 2: could not convert"):
        read_outputs(tmp_path, rows)
    (tmp_path / "out.verum").write_text("0 1 0 0 0.5\n")
    with pytest.raises(TouchstoneError, match="must be aligned"):
        read_outputs(tmp_path, rows)
    (tmp_path / "out.verum").write_text("0 1 0 0 0.5\n0 1 nan 0\n")
    with pytest.raises(TouchstoneError, match="out.verum, line 2: a score is not finite"):
        read_outputs(tmp_path, rows)
    (tmp_path / "out.pos.idx").unlink()
    with pytest.raises(
        TouchstoneError,
        match="there is no .*out.pos.idx; write out.verum, out.malum and out.pos.idx",
    ):
        read_outputs(tmp_path, rows)


def test_the_two_lines_of_an_outsider_with_tarsius_files(tmp_path) -> None:
    files = {
        "all.prefx.txt": "the dogs near the car\nthe cats near the van\na dog by men\n",
        "all.tag.txt": "1\n1\n0\n",
        "all.subjs.txt": "[(1, 1)] ||| [(4, 4)]\n" * 2 + "[(1, 1)] ||| [(3, 3)]\n",
        "out.verum": "[0, 1, 0, 0, 0.5]\n[0, 1, 0, 0, 2]\n[0, 1, 0, 2]\n",
        "out.malum": "[0, -1, 0, 0, -0.5]\n[0, -1, 0, 0, -2]\n[0, -1, 0, 2]\n",
        "out.pos.idx": "0\n1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    rows = read_agreement(tmp_path)
    table = plausibility(read_outputs(tmp_path, rows), {"files": rows})
    assert list(table["passed"]) == [True, False, True]
    assert list(table["is_expected"]) == [True, True, False]
    # The first two lines have one frame: they are one cluster, and a pair of one template.
    assert table["cluster"].nunique() == 2 and table["cluster"][0] == table["cluster"][1]
    pairs = input_consistency(read_outputs(tmp_path, rows), {"files": rows})
    assert list(pairs["line"]) == [1]


def test_outputs_as_tarsius_prints_them(tmp_path) -> None:
    rows = ROWS.loc[[1]].reset_index(drop=True)
    (tmp_path / "out.verum").write_text("[0.0, 1.0, 0.0, -2.5e-1]\n")
    (tmp_path / "out.malum").write_text("[0.0, -1.0, 0.0, 0.25]\n")
    (tmp_path / "out.pos.idx").write_text("0\n")
    found = read_outputs(tmp_path, rows)
    assert found["class_0"][0] == [0.0, 1.0, 0.0, -0.25] and found["probability"][0] == 0.0
    (tmp_path / "out.verum").write_bytes(b"\xef\xbb\xbf[0.0, 1.0, 0.0, -2.5e-1]\n")
    (tmp_path / "out.pos.idx").write_bytes(b"\xef\xbb\xbf0\n")
    assert read_outputs(tmp_path, rows)["class_0"][0] == [0.0, 1.0, 0.0, -0.25]
    (tmp_path / "out.malum").write_bytes(b"[0.0, \xb9]\n")
    with pytest.raises(TouchstoneError, match="out.malum, line 1: the bytes are not UTF-8"):
        read_outputs(tmp_path, rows)
    (tmp_path / "out.malum").write_text("[0.0, -1.0, 0.0, 0.25]\n")
    (tmp_path / "out.pos.idx").write_text("\u00b2\n")
    with pytest.raises(TouchstoneError, match="is no line number"):
        read_outputs(tmp_path, rows)
    (tmp_path / "out.pos.idx").write_text("[0]\n")
    with pytest.raises(TouchstoneError, match=r"out.pos.idx: '\[0\]' is no line number"):
        read_outputs(tmp_path, rows)
    (tmp_path / "out.pos.idx").write_text("1\n")
    with pytest.raises(TouchstoneError, match="names line 1, and the set has 1 lines"):
        read_outputs(tmp_path, rows)
    (tmp_path / "out.pos.idx").write_text("9\n0\n7\n")
    with pytest.raises(TouchstoneError, match="names line 7, and the set has 1 lines"):
        read_outputs(tmp_path, rows)


def syneval() -> pd.DataFrame:
    return syneval_rows(yaml.safe_load((material("lm_saliency") / "syneval.yaml").read_text()))


@pytest.mark.parametrize(
    ("grouping", "n_groups", "n_pairs", "n_skipped"),
    [("paper", 24, 6256, 1296), ("released", 12, 4708, 460)],
)
def test_the_groups_of_syneval_and_the_pairs_that_skipping_loses(
    grouping, n_groups, n_pairs, n_skipped
) -> None:
    rows = syneval()
    lengths = rows["prefix"].map(len)
    groups = lengths.groupby(template_groups(rows, grouping), sort=False)
    assert groups.ngroups == n_groups
    assert sum(len(part) - 1 for _, part in groups) == n_pairs
    assert sum((part.iloc[1:] != part.iloc[0]).sum() for _, part in groups) == n_skipped


def test_the_groups_of_the_published_gender_set() -> None:
    root = data_root()
    if root is None or not (root / "tarsius/Winobias").is_dir():
        pytest.skip("needs tarsius/Winobias below TOUCHSTONE_DATA")
    rows = read_agreement(root / "tarsius/Winobias")
    rows["pattern"] = frame_groups(rows)
    sizes = rows["pattern"].value_counts()
    assert (len(sizes), (sizes > 1).sum(), sizes[sizes > 1].sum()) == (283, 254, 971)
    kept = template_groups(rows, "released")
    assert (
        kept.nunique() == 147 and kept.iloc[:500].notna().all()
    )  # all 139 frames with the woman first, and 8 others
    with pytest.raises(TouchstoneError, match="grouping is 'mine'; write one of paper, released"):
        template_groups(rows, "mine")


def test_the_released_script_reads_147_templates_cue_first_before_the_others() -> None:
    """100 frames with the cue first (or on one word with an attractor), and then 47 of the others
    by the alphabet.
    """
    lines = [
        (f"{start}{i:03d} she he she".split(), 1, cues, attractors, f"{start}{i:03d}")
        for i in range(50)
        for start, cues, attractors in (
            ("a", [(2, 2)], [(1, 1), (3, 3)]),
            ("b", [(2, 2), (3, 3)], [(1, 1)]),
            ("c", [(1, 1), (3, 3)], [(2, 2)]),
            ("d", [(1, 1)], [(1, 1), (2, 2)]),
        )
    ]
    rows = pd.DataFrame(lines, columns=["prefix", "tag", "cues", "attractors", "pattern"])
    kept = template_groups(rows[::-1], "released").dropna()
    assert sorted(kept) == sorted(
        [f"a{i:03d}" for i in range(47)] + [f"{start}{i:03d}" for start in "cd" for i in range(50)]
    )


def test_released_groups_pair_other_lines() -> None:
    rows = (
        syneval().iloc[[0, 1, 400, 800, 801]].reset_index(drop=True)
    )  # two animate plural, one singular, two inanimate
    frame = pd.DataFrame(
        [
            {
                "dataset": "Syneval",
                "architecture": "LSTM",
                "size": "full",
                "method": "V",
                "line": i,
                "class_0": np.arange(len(p)).tolist(),
                "class_1": np.arange(len(p)).tolist(),
            }
            for i, p in enumerate(rows["prefix"])
        ]
    )
    paper, released = (
        input_consistency(frame, {"Syneval": rows}, templates={"Syneval": template_groups(rows, g)})
        for g in ("paper", "released")
    )
    assert paper["line"].tolist() == [1, 4] and released["line"].tolist() == [1, 3, 4]
