from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.studies.cebab.questions import Head, check_head
from lib.studies.cebab.reading import (
    gather_texts,
    load_vectors,
    read_outside,
    read_vectors,
    save_vectors,
)
from lib.studies.cebab.reviews import ASPECTS

TEXTS = pd.DataFrame(
    {"text_id": ["a", "b"], **{aspect: ["Positive", "unknown"] for aspect in ASPECTS}}
)
PREDICTIONS = pd.DataFrame({"text_id": ["b", "a"], "p_1": [0.2, 0.7], "p_2": [0.8, 0.3]})
PREDICTED = pd.DataFrame(
    {"text_id": ["b", "a"], **{aspect: ["Negative", "Positive"] for aspect in ASPECTS}}
)


def test_tables_meet_by_id_not_by_order() -> None:
    found = gather_texts(
        TEXTS, PREDICTIONS, PREDICTED, (np.array(["b", "a"]), np.array([[2.0], [1.0]]))
    )
    assert found.probabilities.tolist() == [[0.7, 0.3], [0.2, 0.8]]
    assert (
        found.predicted[:, 0].tolist() == ["Positive", "Negative"] and found.gold[1, 0] == "unknown"
    )
    assert found.embeddings.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("predictions", "predicted", "said"),
    [
        (PREDICTIONS.head(1), PREDICTED, "text 'a' and 0 others have no predictions"),
        (
            PREDICTIONS.assign(p_1=[0.2, 0.9]),
            PREDICTED,
            r"probabilities of text 'a' are \[0.9, 0.3\]",
        ),
        (PREDICTIONS.assign(p_1=[1.2, 0.7], p_2=[-0.2, 0.3]), PREDICTED, "text 'b' are"),
        (PREDICTIONS.assign(p_1=[np.nan, 0.7]), PREDICTED, "text 'b' are"),
        (
            PREDICTIONS.assign(text_id=["b", "b"]),
            PREDICTED,
            "predictions: text 'b' stands there twice",
        ),
        (PREDICTIONS[["text_id"]], PREDICTED, "no column 'p_1'"),
        (PREDICTIONS, PREDICTED.drop(columns="noise"), "predicted aspects has no column 'noise'"),
        (PREDICTIONS, PREDICTED.assign(food="good"), "text 'a': food is 'good'"),
        (PREDICTIONS, PREDICTED.assign(noise="no majority"), "text 'a': noise is 'no majority'"),
    ],
)
def test_bad_tables_are_refused(
    predictions: pd.DataFrame, predicted: pd.DataFrame, said: str
) -> None:
    with pytest.raises(TouchstoneError, match=said):
        gather_texts(TEXTS, predictions, predicted)


def test_tables_from_outside(tmp_path) -> None:
    PREDICTIONS.to_csv(tmp_path / "p.csv", index=False)
    PREDICTIONS.to_parquet(tmp_path / "p.parquet")
    assert read_outside(tmp_path / "p.csv").equals(read_outside(tmp_path / "p.parquet"))
    pd.DataFrame({"id": [1]}).to_csv(tmp_path / "q.csv")
    with pytest.raises(TouchstoneError, match="no column text_id"):
        read_outside(tmp_path / "q.csv")
    with pytest.raises(TouchstoneError, match="no Parquet or CSV"):
        read_outside(tmp_path / "none.csv")


def test_probabilities_are_read_by_name_wherever_they_stand(tmp_path) -> None:
    wide = pd.DataFrame({"text_id": ["a", "b"], **{f"p_{k}": [0.0, 0.0] for k in range(11, 0, -1)}})
    wide = wide.assign(p_2=[1.0, 0.0], p_10=[0.0, 1.0])
    wide.to_csv(tmp_path / "p.csv", index=False)
    for table in (wide, read_outside(tmp_path / "p.csv")):
        found = gather_texts(TEXTS, table, PREDICTED).probabilities
        assert found.argmax(1).tolist() == [1, 9]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["p_1", "p_3"], "no column 'p_2'; it has p_1, p_3: write exactly p_1"),
        (["p_0", "p_1"], "no column 'p_2'; it has p_0, p_1"),
        (["p_1", "p_2", "p_value"], "no column 'p_3'; it has p_1, p_2, p_value"),
        (["p_01", "p_2"], "no column 'p_1'"),
        (["p_1"], "no column 'p_2'"),
    ],
)
def test_columns_of_classes_are_exactly_those(tmp_path, columns: list[str], said: str) -> None:
    table = TEXTS[["text_id"]].assign(**dict.fromkeys(columns, 1 / len(columns)))
    with pytest.raises(TouchstoneError, match=said):
        gather_texts(TEXTS, table, PREDICTED)
    table.to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(TouchstoneError, match=f"p.csv has {said}"):
        read_outside(tmp_path / "p.csv")


def test_ids_stay_text(tmp_path) -> None:
    (tmp_path / "p.csv").write_text("p_2,text_id,p_1\n.2,NA,.8\n.3,000123,.7\n1,null,0\n")
    table = read_outside(tmp_path / "p.csv")
    assert table["text_id"].tolist() == ["NA", "000123", "null"]
    assert table["p_1"].tolist() == [0.8, 0.7, 0.0]
    pd.DataFrame({"text_id": [1, 2], "p_1": 0.5, "p_2": 0.5}).to_parquet(tmp_path / "p.parquet")
    with pytest.raises(TouchstoneError, match="p.parquet: the text_id 1 is no text"):
        read_outside(tmp_path / "p.parquet")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("p.csv", b"", "p.csv is empty"),
        ("p.csv", b"text_id,p_1,p_2\na,.5,.5,.1\n", "p.csv, line 2: 4 fields, and the head has 3"),
        ("p.csv", b"text_id,p_1,p_2\na,.5\n", "p.csv, line 2: 2 fields"),
        ("p.csv", b"text_id,p_1,p_2\n\xe9,.5,.5\n", "p.csv, line 2: the bytes are not UTF-8"),
        ("p.csv", b"text_id,p_1,p_2\na,half,.5\n", "p.csv holds something .*'half'"),
        ("p.csv", b"text_id,p_1,p_2\na,.5+0j,.5\n", "p.csv holds something .*5.0j"),
        ("p.csv", b"text_id,p_1,p_1\na,.5,.5\n", "p.csv has the column 'p_1' twice"),
        ("p.parquet", b"text_id,p_1,p_2\na,.5,.5\n", "p.parquet is not readable as Parquet"),
    ],
)
def test_a_table_that_cannot_be_read_is_named(tmp_path, name, content, said) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TouchstoneError, match=said.replace("5.0j", "0j")):
        read_outside(tmp_path / name)


def test_vectors_and_a_head_from_outside(tmp_path) -> None:
    arrays = {
        "text_id": np.array(["b", "a"]),
        "vectors": np.array([[2.0, 0.0], [0.0, 1.0]]),
        "weight": np.eye(2),
        "bias": np.zeros(2),
    }
    np.savez(tmp_path / "v.npz", **arrays)
    vectors, head = read_vectors(tmp_path / "v.npz")
    p = head.probabilities(arrays["vectors"])
    right = pd.DataFrame({"text_id": ["b", "a"], "p_1": p[:, 0], "p_2": p[:, 1]})
    texts = gather_texts(TEXTS, right, PREDICTED, vectors)
    assert texts.embeddings.tolist() == [[0.0, 1.0], [2.0, 0.0]] and np.allclose(
        head.probabilities(texts.embeddings), texts.probabilities
    )
    check_head(texts, head)
    with pytest.raises(TouchstoneError, match="text 'a': the head's .* is off its prediction by 0"):
        check_head(texts, Head(np.eye(2), np.array([0.0, 0.5])))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"bias": None}, "no array 'bias'"),
        ({"weight": np.eye(3)}, r"weight \(3, 3\)"),
        ({"text_id": np.array(["a"])}, r"text_id has shape \(1,\)"),
        ({"text_id": np.array([1, 2])}, "text_id holds no text"),
        ({"text_id": np.array(["b", "a"], dtype=object)}, "not readable as .npz"),
        ({"vectors": np.array([[np.nan, 0.0], [0.0, 1.0]])}, "a number that is not finite"),
        ({"vectors": np.eye(2) + 1j}, "vectors holds something that is no real number"),
        ({"vectors": np.ones(2)}, r"vectors \(2,\)"),
        ({"weight": np.array([["x", "y"], ["x", "y"]])}, "weight holds something"),
        ({"bias": np.array(0.0)}, r"bias \(\)"),
    ],
)
def test_bad_arrays_are_refused(tmp_path, changed: dict, said: str) -> None:
    arrays = {
        "text_id": np.array(["b", "a"]),
        "vectors": np.eye(2),
        "weight": np.eye(2),
        "bias": np.zeros(2),
    } | changed
    np.savez(
        tmp_path / "v.npz", **{name: array for name, array in arrays.items() if array is not None}
    )
    with pytest.raises(TouchstoneError, match=said):
        read_vectors(tmp_path / "v.npz")
    with pytest.raises(TouchstoneError, match="no .npz file"):
        read_vectors(tmp_path / "none.npz")


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04cut"])
def test_a_file_that_holds_no_arrays_is_named(tmp_path, content: bytes) -> None:
    (tmp_path / "v.npz").write_bytes(content)
    with pytest.raises(TouchstoneError, match="v.npz is not readable as .npz"):
        read_vectors(tmp_path / "v.npz")


def test_vectors_that_miss_a_text_are_refused() -> None:
    with pytest.raises(TouchstoneError, match="text 'b' and 0 others have no embeddings"):
        gather_texts(TEXTS, PREDICTIONS, PREDICTED, (np.array(["a"]), np.eye(1)))
    with pytest.raises(
        TouchstoneError, match="text 'a' and 0 others have no vectors without a concept"
    ):
        gather_texts(TEXTS, PREDICTIONS, PREDICTED, without=(np.array(["b"]), np.zeros((5, 1, 2))))


def test_damaged_arrays_are_made_anew_or_named(tmp_path, capsys) -> None:
    path = tmp_path / "encoder.npz"
    save_vectors(path, "k", ["a"], np.ones((1, 50)))
    whole = path.read_bytes()
    for content in (whole[:-9], whole.replace(bytes(np.float32(1)), bytes(4)), b"", b"no zip"):
        path.write_bytes(content)
        assert load_vectors(path, "k") is None
        assert capsys.readouterr().out == f"{path} is damaged; it is made anew\n"
        with pytest.raises(TouchstoneError, match="damaged; run 02_training again"):
            load_vectors(path)
    assert load_vectors(tmp_path / "none.npz") is None
