"""Numbers and texts in one column: read alike from every source, noted, or refused with the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from support.commands import Folder

from evaluand import Dataset, evaluate
from evaluand.comparison.drift.drift import measure_drift
from evaluand.core.errors import DataError, SpecError
from evaluand.data import DataNote
from evaluand.data.row_filter import RowFilter
from evaluand.evaluation.scorers.ranking import Ranking
from evaluand.store.tables import json_field

WORD = [(1, 1.0), (0, 0.0), (1, 1.0), (0, "unknown")]
WRITTEN = [(1, 1.0), (0, "0"), (1, 0), (0, "NA")]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def write(folder: Folder, suffix: str, rows: list[tuple[Any, ...]], names: str = "yp") -> Path:
    """Rows as a file of the format that the suffix names."""
    frame = pd.DataFrame(rows, columns=[*names], dtype=object)
    path = folder.path / f"rows.{suffix}"
    if suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif suffix == "parquet":
        pq.write_table(pa.table({name: [str(value) for value in frame[name]] for name in names}), path)
    else:
        frame.to_csv(path, index=False)
    return path


def score(folder: Folder, path: Path, *more: str) -> Result:
    return folder.call("score", path, "--truth", "y", "--prediction", "p", *more)


# A word among numbers, and numbers written as text


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_word_among_numbers_is_a_class_of_its_own(folder: Folder, suffix: str) -> None:
    path = write(folder, suffix, WORD)
    facts = json.loads(score(folder, path, "--metric", "accuracy", "--json").stdout)
    assert [(row["value"], row["n_scored"]) for row in facts["metrics"]] == [(0.75, 4)]
    row = 5 if suffix == "csv" else 4
    [note] = [note for note in facts["notes"] if "word" in note]
    assert note.startswith("'p' has 1 word among numbers, such as 'unknown' (")
    assert note.endswith(f"rows.{suffix}:{row}): counts as a class of its own")


@pytest.mark.parametrize(
    ("n_words", "n", "value"),
    [(1, 4, 1.0), (2, 5, 1.0), (3, 60, 1.0), (3, 59, None), (4, 79, None)],
)
def test_words_among_numbers_are_missing_where_numbers_are_needed_and_refused_where_many(
    n_words: int, n: int, value: float | None
) -> None:
    table = {"y": [row + 0.5 for row in range(n)], "p": ["?!"] * n_words + [row + 1.5 for row in range(n_words, n)]}
    if value is None:
        with pytest.raises(DataError, match=r"the table\[0\]: 'p' is '\?!' where a number is needed"):
            evaluate("y", "p", data=table, metrics=["mae"])
        return
    found = evaluate("y", "p", data=table, metrics=["mae"])
    [row] = found.facts()["metrics"]
    assert (row["value"], row["n_abstained"]) == (value, n_words)
    assert f"'p' has {n_words} word{'s' * (n_words > 1)} among numbers, such as '?!'" in "\n".join(found.notes)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_numbers_written_as_text_are_numbers_and_words_for_a_missing_one_are_missing(
    folder: Folder, suffix: str
) -> None:
    result = score(folder, write(folder, suffix, WRITTEN), "--metric", "accuracy", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [(row["value"], row["n_abstained"]) for row in found["metrics"]] == [(pytest.approx(2 / 3), 1)]
    assert "'p' has 1 cell with 'NA', taken as missing" in found["notes"]
    assert ("'p' has 2 texts among 2 numbers; both are read as in a CSV file" in found["notes"]) == (suffix == "jsonl")


@pytest.mark.parametrize(
    ("truth", "said", "value", "note"),
    [
        ([1.5, 2.5, 3.5, 4.5], [1.25, "2.0", 3, 4], 0.4375, "'p' has 1 text among 3 numbers"),
        ([1.5, "2.5", 3.5, "NA"], [1.25, 2.0, 3.0, 4.0], 1.25 / 3, "'y' has 1 cell with 'NA', taken as missing"),
    ],
)
def test_errors_of_numbers_are_those_of_the_values(truth: list[Any], said: list[Any], value: float, note: str) -> None:
    found = evaluate("y", "p", data=pd.DataFrame({"y": truth, "p": said}, dtype=object), metrics=["mae"])
    assert found.facts()["metrics"][0]["value"] == pytest.approx(value)
    assert note in "\n".join(found.notes)


def test_labels_that_are_numbers_and_words_are_compared_by_value() -> None:
    found = evaluate("y", "p", data={"y": [1, 2, "none of these"], "p": [1.0, 3, "none of these"]})
    assert found.facts()["metrics"][0]["value"] == pytest.approx(2 / 3)
    assert "'y' has 1 text among 2 numbers; both are read as in a CSV file" in found.notes


def test_texts_of_digits_in_both_columns_are_labels(folder: Folder) -> None:
    path = write(folder, "parquet", [("1", "1"), ("2", "1"), ("2", "2")])
    [value] = json.loads(score(folder, path, "--metric", "accuracy", "--json").stdout)["metrics"]
    assert value["value"] == pytest.approx(2 / 3)


def test_columns_without_a_role_may_hold_anything() -> None:
    table = {"y": [1, 0], "p": [1, 0], "other": [1, "a"], "id": ["x", 7]}
    assert evaluate("y", "p", data=table, metrics=["accuracy"], id="id").facts()["metrics"][0]["value"] == 1.0


def test_arrays_are_read_as_columns_are() -> None:
    assert evaluate([1, 0, 1], [1.0, 0.0, "unknown"], metrics="accuracy")["accuracy"].value == pytest.approx(2 / 3)
    assert evaluate([1, 0, 1], [1.0, "0", "-"], metrics="accuracy")["accuracy"].n_abstained == 1


@pytest.mark.parametrize(
    ("truth", "said", "value", "note"),
    [
        ([[1], [2]], [[3.0], [2.0]], 0.5, ""),
        ([{"n": 1}, {"n": [2]}], [{"n": 1.0}, {"n": [2.0]}], 1.0, ""),
        ([1, 0, 1], [1.0, True, 0.0], 1 / 3, "'p' has 1 bool among 2 numbers, which equal no number"),
        ([True, False], ["True", False], 1.0, "'p' has 1 text among 1 bool; both are read as in a CSV file"),
        ([True, "False"], [True, False], 1.0, "'y' has 1 text among 1 bool; both are read as in a CSV file"),
        ([2**70, 2**70 + 1], [2**70, 2**70], 0.5, ""),
    ],
)
def test_values_that_are_equal_are_right_however_they_are_written(
    truth: list[Any], said: list[Any], value: float, note: str
) -> None:
    rows = [{"y": a, "p": b} for a, b in zip(truth, said, strict=True)]
    found = evaluate("y", "p", data=rows, metrics=["accuracy"])
    assert found.facts()["metrics"][0]["value"] == pytest.approx(value)
    assert note in "\n".join(found.notes)


def test_a_word_for_a_missing_one_among_true_and_false_is_missing(folder: Folder) -> None:
    rows = [(True, "True"), (False, "False"), (True, "NA"), (False, "False")]
    facts = json.loads(score(folder, write(folder, "csv", rows), "--metric", "accuracy", "--json").stdout)
    assert (facts["metrics"][0]["value"], facts["metrics"][0]["n_scored"]) == (1.0, 3)
    assert "'p' has 1 cell with 'NA', taken as missing" in facts["notes"]


def test_groups_are_those_of_equal_values(folder: Folder) -> None:
    rows = [(1, 1, 1), (0, 0, "1"), (1, 0, 1.0), (0, 0, None)]
    path = folder.write("rows.jsonl", [dict(zip("ypg", row, strict=True)) for row in rows])
    found = json.loads(score(folder, path, "--metric", "accuracy", "--by", "g", "--json").stdout)
    assert [(row["by"], row["n"]) for row in found["metrics"]] == [({}, 4), ({"g": "1"}, 3), ({"g": None}, 1)]
    arrays = evaluate([1, 0, 1, 0], [1, 0, 0, 0], metrics="accuracy", by={"g": [1, "1", 1.0, None]})
    assert [row.n for row in arrays.rows] == [4, 3, 1]


# Drift


def test_a_word_for_a_missing_number_leaves_the_drift_of_numbers_visible(folder: Folder) -> None:
    for name, shift, word in (("a", 0, "NA"), ("b", 30, "-"), ("c", 0, ""), ("d", 30, "")):
        cells = [word, *(str((i * 37 % 100 + shift) / 2) for i in range(100))]
        (folder.path / f"{name}.csv").write_text("\n".join(["x,i", *(f"{cell},{i}" for i, cell in enumerate(cells))]))

    def drift(a: str, b: str) -> Result:
        paths = (folder.path / f"{name}.csv" for name in (a, b))
        return folder.call("drift", *paths, "--column", "x", "--json", "--fail-on-drift")

    words, empty = drift("a", "b"), drift("c", "d")
    assert (words.exit_code, empty.exit_code) == (3, 3)
    assert [row["p"] for row in json.loads(words.stdout)["columns"]] == [
        row["p"] for row in json.loads(empty.stdout)["columns"]
    ]
    for name, word in (("a", "NA"), ("b", "-")):
        assert f"{name}.csv: 'x' has 1 cell with {word!r}, taken as missing" in words.stderr


def test_what_drift_cannot_compare_as_numbers_is_noted() -> None:
    rows = [{"x": str(i / 2), "zip": f"0{1000 + i}"} for i in range(40)]
    others = [*rows, *({"x": f"unknown {i}", "zip": "01"} for i in range(9))]
    with pytest.warns(DataNote, match="'x' has numbers among words, so it is compared as text"):
        found = measure_drift(Dataset.from_rows(rows), Dataset.from_rows(others))
    assert {row.column for row in found.columns} == {
        f"{name} ({what})" for name in ("x", "zip") for what in ("characters", "words")
    }


# Conditions on rows


def test_rows_are_chosen_by_the_numbers_of_a_column_with_missing_words(folder: Folder) -> None:
    ages = [(1, 1, 9), (0, 1, 100), (1, 1, 45), (0, 0, "NA"), (1, 0, 31), (0, 0, 7)]
    path = write(folder, "csv", ages, "ypa")
    result = score(folder, path, "--metric", "accuracy", "--where", "a > 30", "--json")
    [value] = json.loads(result.stdout)["metrics"]
    assert (value["n"], value["value"]) == (3, pytest.approx(1 / 3))
    assert "where: 'a' has 1 cell with 'NA', taken as missing" in result.stderr
    assert "where: 1 of 6 rows has a missing value in 'a > 30', which matches nothing" in result.stderr
    with pytest.warns(DataNote):
        assert [each.index for each in Dataset.from_file(path, input="y").where("a == null")] == [3]


T, F, N = True, False, None


@pytest.mark.parametrize(
    ("values", "condition", "mask"),
    [
        (["1", "NA", "45", None], "v > 30", [F, N, T, N]),
        (["1", "NA", "45", None], "v in [45]", [F, N, T, N]),
        (["1", "NA", "45", None], "v != null", [T, F, T, F]),
        (["1", "NA", "45", None], 'v == "45"', [F, F, T, N]),
        (["NA", None], "v > 30", [N, N]),
        (["1", "NA", "45", "1"], f"v < {10**310}", [T, N, T, T]),
        ([1, "45", "NA", None], "v > 30", [F, T, N, N]),
        ([42, "Paris", None], "v == 42", [T, F, N]),
        ([1, "45", None], "v in [45]", [F, T, N]),
        (["31", "12", "about 40"], "v > 30", [T, F, N]),
    ],
)
@pytest.mark.filterwarnings("ignore::evaluand.data.DataNote")
def test_a_condition_reads_texts_as_numbers(values: list[Any], condition: str, mask: list[bool | None]) -> None:
    assert RowFilter(condition).mask(batch(values)).to_pylist() == mask


@pytest.mark.parametrize(
    ("values", "condition", "message"),
    [
        (["31", "about 40"], "v > 30", "v has 'about 40' among numbers; leave such cells empty"),
        ([31, "40", "about 40", "x"], "v > 30", "v has 'about 40' among numbers; leave such cells empty"),
        (["31", "007"], "v > 30", "v has '007' among numbers"),
        (["a", "b"], "v == 30", 'v is text and 30 is a number, which are never equal; write "30"'),
    ],
)
def test_a_condition_on_words_among_numbers_is_refused(values: list[Any], condition: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        RowFilter(condition).mask(batch(values))
    assert message in str(refused.value)


def batch(values: list[Any]) -> pa.RecordBatch:
    """A column `v` of text, or of JSON if there are numbers."""
    if all(value is None or isinstance(value, str) for value in values):
        return pa.record_batch({"v": pa.array(values, pa.string())})
    texts = [None if value is None else json.dumps(value) for value in values]
    return pa.RecordBatch.from_arrays([pa.array(texts)], schema=pa.schema([json_field("v")]))


def test_a_condition_of_an_experiment_is_refused_before_it_runs(folder: Folder) -> None:
    folder.write("rows.jsonl", [{"question": str(i), "answer": "a", "n": ["1", "many"][i % 2]} for i in range(4)])
    text = """name: x
dataset: {{path: rows.jsonl, input: question, expected: answer, attributes: [n]}}
tasks: {{mine: {task}}}
scorers: {{right: exact_match}}
metrics: [{{kind: accuracy, where: n > 0}}]
"""
    assert "n has 'many' among numbers" in folder.refused("run", folder.experiment(text=text))
    assert not folder.path.joinpath("store").exists() or not [*folder.store.ids("runs")]


# Scores of classes, and rankings


@pytest.mark.parametrize(
    ("output", "expected", "found", "wanted"),
    [
        ([7, 8], ["7"], "the integer 7", "the text '7'"),
        (["7", "8"], 7, "the text '7'", "the integer 7"),
        ([{"answer": 7, "score": 1.0}], ["x"], "the integer 7", "the text 'x'"),
    ],
)
def test_a_ranking_of_ids_of_another_type_is_refused(output: Any, expected: Any, found: str, wanted: str) -> None:
    with pytest.raises(DataError, match=f"the ranking has {found}, and relevant is {wanted}, which are never equal"):
        Ranking().score(output, expected)


def test_ids_that_are_equal_numbers_are_one_answer() -> None:
    assert Ranking().score([7, 8], {"7": 1}).value == 1.0  # keys of objects are texts
    assert Ranking().score([8, 7.0], {"7": 1, "9": 2}).value == 0.5
    assert Ranking().score({"7": 0.2, "8": 0.9}, [7]).value == 0.5
    assert Ranking().score([8, 7.0], [7]).value == 0.5
    assert Ranking().score([8, "a"], ["a"]).value == 0.5


def test_an_experiment_with_ids_of_another_type_is_refused(folder: Folder) -> None:
    folder.write("rows.jsonl", [{"q": "q1", "rel": ["7"], "ranked": [7, 8]}])
    path = folder.path / "e.yaml"
    path.write_text(
        "{name: ids, dataset: {path: rows.jsonl, id: q, expected: rel}, scorers: {r: ranking},"
        " tasks: {mine: {kind: recorded, path: rows.jsonl, by: id, key: q, response: ranked}}}"
    )
    assert "the ranking has the integer 7, and relevant is the text '7'" in folder.refused("run", path)


# Labels


@pytest.mark.parametrize(
    ("truth", "said", "spellings"),
    [
        (["Positive", "positive", "no"], ["positive", "positive", "no"], "'Positive' and 'positive'"),
        (["101", "x", "z"], ["101.0", "x", "z"], "'101' and '101.0'"),
        (["a", "a", "b"], ["a", "b ", "b"], "'b' and 'b '"),
        (["1e99999999999999999999", "X"], ["1", "x"], "'X' and 'x'"),
        ([["caf\u00e9"], ["b"]], [["cafe\u0301"], ["b"]], "'caf\u00e9' and 'cafe\u0301'"),
    ],
)
def test_labels_that_differ_in_spelling_only_are_noted(truth: list[Any], said: list[Any], spellings: str) -> None:
    found = evaluate("y", "p", data={"y": truth, "p": said}, metrics=["accuracy"]).notes
    assert f"'y' and 'p': {spellings} differ in spelling only; they count as different labels" in found


def test_groups_that_differ_in_spelling_only_are_noted_at_every_door(folder: Folder) -> None:
    rows = [("a", "a", "North"), ("b", "b", "north "), ("a", "b", "South")]
    path = write(folder, "csv", rows, "ypg")
    note = "'g': 'North' and 'north ' differ in spelling only; they count as different groups"
    assert note in json.loads(score(folder, path, "--by", "g", "--json").stdout)["notes"]
    truth, said, group = map(list, zip(*rows, strict=True))
    assert note in evaluate(truth, said, by={"g": group}).notes
    assert note in evaluate(truth, {"m": said}, by={"g": group}).notes


@pytest.mark.parametrize(
    ("truth", "said", "note"),
    [
        (["cat", "dog"], ["chat", "chien"], "no value of 'p', such as 'chat', occurs in 'y', such as 'cat'"),
        ([1, 2, 3], [4, 5, 6], "no value of 'p', such as 4, occurs in 'y', such as 1"),
        ([["a"], ["b"]], [["c"], ["d"]], "no value of 'p', such as 'c', occurs in 'y', such as 'a'"),
    ],
)
def test_predictions_without_any_label_of_the_truth_are_noted(truth: list[Any], said: list[Any], note: str) -> None:
    assert note in evaluate("y", "p", data={"y": truth, "p": said}, metrics=["accuracy"]).notes
