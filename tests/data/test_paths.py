"""Roles as paths into columns: what becomes of them, what they must not do, and what is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.data.dataset import Dataset
from evaluand.data.paths import suggest_paths
from evaluand.data.roles import RoleError
from evaluand.store.store import MemoryStore

ROWS: list[dict[str, Any]] = [
    {
        "key": {"id": "a"},
        "q": {"text": "2+2", "hints": ["sum"]},
        "gold": {"answers": ["4", "four"], "labels": [{"by": "x", "ok": True}, {"by": "y", "ok": False}]},
        "person": {"sex": "F", "site": "s1"},
        "w": {"x": 1.5},
    },
    {
        "key": {"id": "b"},
        "q": {"text": "3+3", "hints": ["sum", "even"]},
        "gold": {"answers": ["6"], "labels": [{"by": "z", "ok": True}]},
        "person": {"sex": "M", "site": "s1"},
        "w": {"x": 1},
    },
]


def expected(path: Any, rows: Any = ROWS) -> list[Any]:
    return [example.expected for example in Dataset.from_rows(rows, input="q.text", expected=path)]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("gold.answers[0]", ["4", "6"]),
        ("gold.answers[-1]", ["four", "6"]),
        ("gold.answers", [["4", "four"], ["6"]]),
        ("$.gold.answers[0]", ["4", "6"]),
        ("$['gold']['answers'][1]", ["four", None]),
        ("gold.answers[*]", [["4", "four"], ["6"]]),
        ("gold.answers[::-1]", [["four", "4"], ["6"]]),
        ("gold.labels[?@.ok == true].by", [["x"], ["z"]]),
        ("gold.labels[?@.ok == true].by.collect()[0]", ["x", "z"]),
        ("$.gold.answers[?@ == $.q.text]", [[], []]),
        (
            {"first": "gold.answers[0]", "site": "person.site"},
            [{"first": "4", "site": "s1"}, {"first": "6", "site": "s1"}],
        ),
        (
            ["gold.answers[0]", "person"],
            [
                {"gold.answers[0]": "4", "person": {"sex": "F", "site": "s1"}},
                {"gold.answers[0]": "6", "person": {"sex": "M", "site": "s1"}},
            ],
        ),
    ],
)
def test_the_expected_value_is_at_its_path(path: Any, values: list[Any]) -> None:
    if values == [[], []]:
        with pytest.raises(RoleError, match="selects nothing in any of 2 rows"):
            expected(path)
    else:
        assert expected(path) == values


def test_every_role_takes_paths_and_a_name_of_its_own_renames_them() -> None:
    data = Dataset.from_rows(
        ROWS,
        input={"question": "q.text", "hint": "q.hints[0]"},
        expected="gold.answers[0]",
        id="key.id",
        attributes={"sex": "person.sex"},
        weight="w.x",
        cluster="person.site",
        metadata=["key.id"],
    )
    first, second = data
    assert first.input == {"question": "2+2", "hint": "sum"}
    assert (first.id, first.attributes, first.weight, first.cluster) == ("a", {"sex": "F"}, 1.5, "s1")
    assert second.metadata == {"key.id": "b"}
    assert second.weight == 1.0


def test_a_path_of_an_attribute_is_its_name() -> None:
    data = Dataset.from_rows(ROWS, input="q.text", attributes="person.sex")
    assert [example.attributes for example in data] == [{"person.sex": "F"}, {"person.sex": "M"}]


def test_a_column_of_exactly_this_name_comes_before_the_path_and_is_reported() -> None:
    rows = [{"input": 1, "gold.answer": "column", "gold": {"answer": "path"}}]
    with pytest.warns(EvaluandWarning, match=r"read as the column of this name.*for the path write \$\.gold\.answer"):
        assert next(iter(Dataset.from_rows(rows, expected="gold.answer"))).expected == "column"
    assert next(iter(Dataset.from_rows(rows, expected="$.gold.answer"))).expected == "path"
    assert next(iter(Dataset.from_rows(rows, expected="$['gold.answer']"))).expected == "column"


def test_columns_with_dots_that_hold_no_objects_are_not_ambiguous() -> None:
    rows = [{"input": 1, "a": 1, "a.b": 2, "x[0]": 3}]  # as pandas writes nested records; warnings are errors here
    assert [next(iter(Dataset.from_rows(rows, expected=name))).expected for name in ("a.b", "x[0]")] == [2, 3]


def test_a_task_never_sees_the_column_that_holds_the_expected_value() -> None:
    data = Dataset.from_rows(ROWS, expected="gold.answers[0]", attributes="person.sex")
    assert data.roles.input == ("key", "q", "w")
    assert "4" not in json.dumps(next(iter(data)).input)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"expected": "gold.answrs[0]"}, "expected: gold.answrs[0] selects nothing in any of 2 rows; in rows[0], $.gold"
         " has no 'answrs' (did you mean 'answers'?)"),
        ({"expected": "gld.answers"}, "expected: gld.answers: no column is called 'gld' (did you mean 'gold'?)"),
        ({"expected": "gold.answers[9]"}, "$.gold.answers is a list of 2 without 9"),
        ({"expected": "gold[?@.x]"}, "gold[?@.x] selects nothing in any of 2 rows"),
        ({"attributes": {"w": "person.sex"}, "weight": "w"}, "the name 'w' is a column and the name of the path"),
        ({"metadata": {"a": "q.text"}, "attributes": {"a": "person.sex"}}, "'a' is the name of two paths; rename one"),
        ({"expected": "[0].a"}, "'[0].a' does not begin with a column"),
        ({"expected": "gold[index]"}, "'gold[index]' is not a path at '[index]'"),
    ],
)  # fmt: skip
def test_a_path_that_leads_nowhere_is_refused_with_how_far_it_leads(roles: dict[str, Any], message: str) -> None:
    with pytest.raises(RoleError) as refused:
        Dataset.from_rows(ROWS, input="q.text", **roles)
    assert message in str(refused.value)


def test_a_number_after_a_dot_is_led_to_brackets() -> None:
    rows = [{"q": "x", "gold": {"answers": ["a", "b"]}}]
    with pytest.raises(SpecError, match=r"a list has elements by number: write gold\.answers\[0\]"):
        Dataset.from_rows(rows, input="q", expected="gold.answers.0")
    with pytest.raises(SpecError, match=r"\$\.gold\.answers is a list of 2 without '7'; write \[7\] for an element"):
        Dataset.from_rows(rows, input="q", expected="gold.answers.7")


def test_a_dotted_column_before_a_path_is_to_be_quoted() -> None:
    with pytest.raises(RoleError, match=r"write \['a\.b'\]\.c"):
        Dataset.from_rows([{"input": 1, "a.b": {"c": 2}}], expected="a.b.c")
    assert [e.expected for e in Dataset.from_rows([{"input": 1, "a.b": {"c": 2}}], expected="['a.b'].c")] == [2]


def test_rows_without_an_input_at_the_path_are_reported() -> None:
    with pytest.warns(EvaluandWarning, match=r"input: q\.hints\[1\] selects nothing in 1 of 2 rows, first rows\[0\]"):
        Dataset.from_rows(ROWS, input="q.hints[1]")


def test_an_id_and_a_weight_must_be_at_their_path_in_every_row() -> None:
    with pytest.raises(Exception, match="the id is empty"):
        Dataset.from_rows(ROWS, input="q.text", id="q.hints[1]")
    with pytest.raises(Exception, match="weight None"):
        Dataset.from_rows(ROWS, input="q.text", weight="q.hints[1]")


def test_a_cell_of_json_in_a_csv_file_has_paths(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text('q,gold\na,"{""answers"": [""x"", ""y""]}"\nb,"{""answers"": [""z""]}"\n')
    data = Dataset.from_file(file, input="q", expected="gold.answers[0]")
    assert [example.expected for example in data] == ["x", "z"]


def test_rows_objects_and_columns_of_structs_give_the_same_digest(tmp_path: Path) -> None:
    roles: dict[str, Any] = {"input": "q.text", "expected": "gold.answers[0]", "attributes": "person.sex"}
    lines, table = tmp_path / "rows.jsonl", tmp_path / "rows.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    pq.write_table(pa.Table.from_pylist(ROWS), table)
    datasets = [Dataset.from_rows(ROWS, **roles), Dataset.from_file(lines, **roles), Dataset.from_file(table, **roles)]
    assert len({data.digest for data in datasets}) == 1
    plain = [
        {"q.text": r["q"]["text"], "gold.answers[0]": r["gold"]["answers"][0], "person.sex": r["person"]["sex"]}
        for r in ROWS
    ]
    assert Dataset.from_rows(plain, **roles).digest == datasets[0].digest


def test_a_stored_dataset_has_the_values_of_its_paths() -> None:
    data = Dataset.from_rows(ROWS, input="q.text", expected="gold.answers[0]").save(MemoryStore())
    assert [(example.input, example.expected) for example in data] == [("2+2", "4"), ("3+3", "6")]


def test_paths_are_suggested_whose_values_fit() -> None:
    value = {"a b": {"x": "t"}, "list": [{"y": 1, "z": "u"}], "n": 3}
    texts = suggest_paths("gold", [value, {"other": "v"}], lambda value: isinstance(value, str))
    assert texts == ["gold.other", 'gold["a b"].x', "gold.list[0].z"]
    data = Dataset.from_rows([{"input": 1, "gold": value}], expected=texts[1])
    assert next(iter(data)).expected == "t"
