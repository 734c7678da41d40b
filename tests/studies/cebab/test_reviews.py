from __future__ import annotations

import copy
import http.server
import json
import threading
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cebab_records import record

from lib.core.errors import TouchstoneError
from lib.studies.cebab import reviews
from lib.studies.cebab.reviews import (
    ASPECTS,
    CEBAB_SHA256,
    check_texts,
    fetch_cebab,
    in_classes,
    majority,
    rating_labels,
    read_cebab,
    read_reviews,
    train_set,
)


def written(tmp_path: Path, *records: object) -> Path:
    path = tmp_path / "reviews.json"
    path.write_text(json.dumps(list(records)))
    return path


def test_a_record_becomes_a_row(tmp_path: Path) -> None:
    row = read_reviews(written(tmp_path, record(), record("7_000001"))).to_dict("records")
    assert row[0]["rating"] == 4 and row[0]["food"] == "Positive" and row[0]["noise"] == ""
    assert pd.isna(row[0]["edit_type"]) and row[1]["edit_type"] == "food" and row[1]["group"] == "7"


def test_majority_needs_three_votes_and_no_rival() -> None:
    assert majority({"1": 2, "2": 2, "3": 1}) == "no majority"
    assert majority({"Negative": 5, "Positive": 5}) == "no majority"
    assert majority({"Negative": 6, "unknown": 3, "Positive": 1}) == "Negative"


def test_an_original_has_no_edit_whatever_the_file_says(tmp_path: Path) -> None:
    row = read_reviews(
        written(tmp_path, record(edit_type="noise", edit_goal="Positive", edit_worker="w2"))
    ).iloc[0]
    assert row[["edit_type", "edit_goal", "editor"]].isna().all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"review_majority": "6"}, "record 0: review majority is '6'; write one of 1, 2"),
        ({"review_majority": "5"}, "record 0: review majority is '5', but the votes"),
        (
            {"food_aspect_majority": "positive"},
            "food majority is 'positive'; write one of Negative",
        ),
        ({"food_aspect_majority": ""}, "food majority is '', but the votes"),
        ({"id": "8_000000"}, "id '8_000000' is not original_id and edit_id"),
        ({"is_original": False}, "unknown edit_type None"),
        ({"is_original": "no"}, "record 0: is_original is 'no'; write true or false"),
        ({"is_original": 1}, "is_original is 1; write true or false"),
        ({"edit_type": "price"}, "unknown edit_type 'price'"),
        ({"description": "  "}, "the description is empty"),
    ],
)
def test_a_bad_field_is_named_with_its_record(tmp_path: Path, changes: dict, said: str) -> None:
    with pytest.raises(TouchstoneError, match=said):
        read_reviews(written(tmp_path, record(**changes)))


def test_a_key_that_is_written_twice_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, record())
    path.write_text(path.read_text().replace("{", '{"is_original": false, ', 1))
    with pytest.raises(TouchstoneError, match="reviews.json .*'is_original' is written twice"):
        read_reviews(path)


def test_missing_fields_files_and_double_ids(tmp_path: Path) -> None:
    lacking = record()
    del lacking["noise_aspect_majority"]
    with pytest.raises(TouchstoneError, match="record 0 lacks 'noise_aspect_majority'"):
        read_reviews(written(tmp_path, lacking))
    with pytest.raises(TouchstoneError, match="text '7_000000' stands there twice"):
        read_reviews(written(tmp_path, record(), record()))
    with pytest.raises(TouchstoneError, match="does not exist"):
        read_reviews(tmp_path / "none.json")
    (tmp_path / "reviews.json").write_text("{")
    with pytest.raises(TouchstoneError, match="not valid JSON"):
        read_reviews(tmp_path / "reviews.json")


def table(**changes: list) -> pd.DataFrame:
    rows = {
        "text_id": ["a", "b"],
        "group": ["1", "2"],
        "split": ["train", "test"],
        "rating": [0, 5],
        **{aspect: ["Positive", ""] for aspect in ASPECTS},
    }
    return pd.DataFrame(rows | changes)


def test_tables_are_checked_whole() -> None:
    check_texts(table(), "x")
    for changes, said in (
        ({"text_id": ["a", "a"]}, "'a' stands there twice"),
        ({"food": ["good", ""]}, "text a: food is 'good'"),
        ({"rating": [7, 1]}, "text a: rating is 7"),
        ({"group": ["1", "1"]}, "group 1 is in more than one split"),
    ):
        with pytest.raises(TouchstoneError, match=said):
            check_texts(table(**changes), "x")


def test_labels_of_the_three_tasks() -> None:
    stars = [0, 1, 2, 3, 4, 5]
    assert rating_labels(stars, 5).tolist() == [-1, 0, 1, 2, 3, 4]
    assert rating_labels(stars, 3).tolist() == [-1, 0, 0, 1, 2, 2]
    assert rating_labels(stars, 2).tolist() == [-1, 0, 0, -1, 1, 1]
    with pytest.raises(TouchstoneError, match="n_classes is 4; write one of 5, 3, 2"):
        rating_labels(stars, 4)


def test_effects_on_ratings_add_up_to_effects_on_classes() -> None:
    effect = np.array([[-0.4, 0.1, 0.0, 0.1, 0.2], [0.0, 0.0, -0.5, 0.5, 0.0]])
    assert np.allclose(
        in_classes(effect, 3), [[-0.3, 0.0, 0.3], [0.0, -0.5, 0.5]]
    ) and np.array_equal(in_classes(effect, 5), effect)
    with pytest.raises(TouchstoneError, match="do not add up to 2 classes"):
        in_classes(effect, 2)


def test_the_published_files_as_counted(cebab: pd.DataFrame) -> None:
    assert len(cebab) == 15090 and cebab["is_original"].sum() == 2299
    assert cebab["split"].value_counts().to_dict() == {"train": 11728, "test": 1689, "dev": 1673}
    assert cebab["rating"].value_counts().to_dict() == {
        1: 1870,
        2: 3056,
        3: 3517,
        4: 2035,
        5: 2732,
        0: 1880,
    }
    assert cebab["food"].value_counts().to_dict() == {
        "Positive": 5726,
        "Negative": 5526,
        "unknown": 2605,
        "": 1025,
        "no majority": 208,
    }
    assert [
        len(train_set(cebab, which)) for which in ("inclusive", "exclusive", "observational")
    ] == [9848, 1463, 1495]
    with pytest.raises(TouchstoneError, match="the train set is 'all'; write one of incl"):
        train_set(cebab, "all")


def test_a_train_set_that_is_no_subset_is_refused(tmp_path: Path) -> None:
    files = {name: [record(f"{i}_000000")] for i, name in enumerate(CEBAB_SHA256)}
    inclusive = copy.deepcopy(files["train_exclusive.json"] + files["train_observational.json"])
    for name, records in (files | {"train_inclusive.json": inclusive}).items():
        (tmp_path / name).write_text(json.dumps(records))
    assert len(read_cebab(tmp_path)) == 4
    inclusive[0]["description"] = "Another text."
    (tmp_path / "train_inclusive.json").write_text(json.dumps(inclusive))
    with pytest.raises(TouchstoneError, match="train_exclusive.json is no subset"):
        read_cebab(tmp_path)


def test_fetching_unpacks_checks_and_complains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    with zipfile.ZipFile(served / "data.zip", "w") as archive:
        archive.writestr("v1/dev.json", "[]")
    handler = lambda *a: http.server.SimpleHTTPRequestHandler(*a, directory=str(served))  # noqa: E731
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *a: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    known = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"  # of "[]"
    monkeypatch.setattr(reviews, "CEBAB_SHA256", {"dev.json": known})
    assert (fetch_cebab(f"{url}/data.zip", tmp_path / "a") / "dev.json").read_text() == "[]"
    with pytest.raises(TouchstoneError, match="could not fetch dev.json"):
        fetch_cebab(f"{url}/none.zip", tmp_path / "b")
    (tmp_path / "a" / "dev.json").write_text("[1]")
    with pytest.raises(TouchstoneError, match="is not the published file"):
        fetch_cebab(f"{url}/data.zip", tmp_path / "a")
    server.shutdown()
