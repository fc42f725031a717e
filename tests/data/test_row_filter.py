"""Row filters: what matches, what a missing value does, and what is refused."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.core.selector.conditions import parse_condition
from evaluand.data.dataset import Dataset
from evaluand.data.row_filter import RowFilter, combine
from evaluand.data.source import DataNote
from evaluand.store.tables import json_field

JANUARY, MARCH = dt.date(2026, 1, 1), dt.date(2026, 3, 1)
SEVEN = {"x": 1}
T, F, N = True, False, None
ROWS: list[dict[str, Any]] = [
    {"sex": "F", "age": 31, "w": 1.5, "p": {"x": 1, "t": "ab"}, "l": ["a"], "ok": T, "a.b": 1, "d": JANUARY, "7b": N},
    {"sex": None, "age": 40, "w": math.nan, "p": {"x": 2, "t": None}, "l": [], "ok": N, "a.b": 2, "d": N, "7b": SEVEN},
    {"sex": "M", "age": None, "w": -1.0, "p": None, "l": None, "ok": F, "a.b": 3, "d": MARCH},
]  # fmt: skip
TABLE = pa.RecordBatch.from_pylist(ROWS)


@pytest.mark.parametrize(
    ("condition", "mask"),
    [
        ('sex == "F"', [T, N, F]),
        ("sex == 'F' and age > 30", [T, N, F]),
        ('sex == "M" and age > 30', [F, N, N]),
        ('sex == "M" or age > 30', [T, T, T]),
        ('sex == "F" or age > 50', [T, N, N]),
        ('sex != "F"', [F, N, T]),
        ('not sex == "F"', [F, N, T]),
        ('!(sex == "F") && age >= 30', [F, N, N]),
        ("age == null", [F, F, T]),
        ("null != age", [T, T, F]),
        ("not age == null", [T, T, F]),
        ("w > 0", [T, N, F]),
        ("w != null", [T, F, T]),
        ("30.5 <= age", [T, T, N]),
        ("age < 9007199254740993", [T, T, N]),
        ("age == 31.5", [F, F, N]),
        ("ok", [T, N, F]),
        ("not ok", [F, N, T]),
        ("ok == false", [F, N, T]),
        ('sex in ["F", "X"]', [T, N, F]),
        ('sex not in ["F", "X"]', [F, N, T]),
        ("age in (31, 40)", [T, T, N]),
        ("p.x == 1", [T, F, N]),
        ("p['x'] < 2", [T, F, N]),
        ('$.p.t == "ab"', [T, N, N]),
        ("@.p.t == null", [F, T, T]),
        ('l[0] == "a"', [T, N, N]),
        ("l[-1] != null", [T, F, F]),
        ("l[?@ == 'a'] != null", [T, F, F]),
        ("length(l) < 1", [F, T, N]),
        ("length(sex) == 1", [T, N, T]),
        ("count(l[*]) == 0", [F, T, T]),
        ('match(sex, "[FM]")', [T, N, T]),
        ('search(p.t, "b$")', [T, N, N]),
        ("a.b > 1", [F, T, T]),
        ("7b.x == null", [T, F, T]),
        ("p.x < age", [T, T, N]),
        ("age > w", [T, N, N]),
        ('d >= "2026-02-01"', [F, N, T]),
        ('d == "2026-01-01" or d == null', [T, T, F]),
    ],
)
def test_a_condition_is_true_false_or_unknown(condition: str, mask: list[bool | None]) -> None:
    assert RowFilter(condition).mask(TABLE).to_pylist() == mask


def test_objects_and_mixed_values_are_compared_as_jsonpath_does() -> None:
    schema = pa.schema([json_field("v"), json_field("o")])
    columns = [["1", '"1"', "true", None, "[1]"], ['{"a": 1}', '{"a": null}', "{}", "3", None]]
    batch = pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=schema)

    def mask(condition: str) -> list[bool | None]:
        return RowFilter(condition).mask(batch).to_pylist()  # type: ignore[no-any-return]

    assert mask("v == 1") == [T, F, F, N, F]
    assert mask('v == "1"') == [F, T, F, N, F]
    assert mask("v") == [N, N, T, N, N]
    assert mask("v > 0") == [T, F, F, N, F]
    assert mask("o.a == 1") == [T, N, N, N, N]
    assert mask("o.a != null") == [T, F, F, F, F]
    assert mask('match(v, ".")') == [F, T, F, N, F]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ('sex = "F"', "at 5: '= \"F\"'; write == for equal"),
        (
            "sex == F",
            "no column is called 'F'; there are sex, age, w, p, l, ok, a.b, d, 7b; write a text in quotes: \"F\"",
        ),
        ('sx == "F"', "no column is called 'sx' (did you mean 'sex'?)"),
        ('age > "30"', "age is a number and '30' is text, which are never equal; write 30 without quotes"),
        ("sex == 3", 'sex is text and 3 is a number, which are never equal; write "3"'),
        ("sex in [1]", "which are never equal"),
        ("sex == age", "sex is text and age is a number, which are never equal"),
        ("p.y == 1", "p.y: 'p' has no 'y'"),
        ("age", "age is not true or false; compare it, or write age != null"),
        ("ok > true", "true and false have no order"),
        ("age > null", "null has no order; write == null, or != null"),
        ("age is null", "write == null, or != null"),
        ("age <> 3", "write != for not equal"),
        ('sex == "F" AND ok', "write and, or, not, in as small letters"),
        ("ok & ok", "write `and`, `or`"),
        ('sex like "F"', 'for a pattern write search(name, "pattern")'),
        ("", "a filter must not be empty"),
        ("(ok", "the parenthesis is not closed"),
        ("ok or", "at 6: the end"),
        ("ok ok", "at 4: 'ok'"),
        ("1 == 1", "compare a column with a value"),
        ("[0] == 1", "at 1: '[0] == 1'"),
        ("sex in []", ""),
        ('match(age, "x")', "match needs a text, and age is none"),
        ('match(sex, "(")', "'(' is not a pattern in the syntax of RE2: missing ): ("),
        ('match(sex, "(?=a)")', "invalid perl operator"),
        ("length(sex)", "a comparison is expected"),
        ("size(sex) > 1", "the functions are length, count, value, match and search"),
        ('d > "soon"', 'd is a time; compare it with a text such as "2026-01-31"'),
        ("__import__('os') == 1", "the functions are length"),
        ('sex == "\ud800"', "contains a lone surrogate at 8, which cannot be stored; write the character itself"),
        ("p['\ud800'] == 1", "contains a lone surrogate at 3"),
        ("(" * 2000, "at "),
        ("not " * 2000 + "ok", "at "),
    ],
)
def test_what_is_no_condition_or_never_true_is_refused_with_what_to_write(condition: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        RowFilter(condition).mask(TABLE)
    assert message in str(refused.value)


values = st.sampled_from(ROWS)
atoms = st.sampled_from(
    [
        *("age > 31", "age == null", 'sex == "F"', 'sex != "F"', "ok", "w < 1", "w != null", "p.x >= 2", "l[0] == 'a'"),
        *("length(l) == 0", 'sex in ["M"]', 'match(sex, "F|M")', "p.t == null", "age == w", "count(l) == 1"),
    ]
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda each: f"not ({each})"),
    ),
    max_leaves=6,
)


@given(conditions)
def test_columns_give_what_rows_give_one_by_one(condition: str) -> None:
    one_by_one = [parse_condition(condition).test(row) for row in ROWS]
    assert RowFilter(condition).mask(TABLE).to_pylist() == one_by_one


@given(st.text(max_size=30))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    with suppress(SpecError):
        RowFilter(text).mask(TABLE)


BOOLS, MANY = ["true", "FALSE", "NA", None], ["true", "yes", "no", "maybe"]


@pytest.mark.parametrize(
    ("cells", "condition", "expected"),
    [
        (BOOLS, "z == true", [T, F, N, N]),
        (BOOLS, "z != true", [F, T, N, N]),
        (BOOLS, "z in [false]", [F, T, N, N]),
        (BOOLS, "z", [T, F, N, N]),
        (BOOLS, "not z", [F, T, N, N]),
        (BOOLS, 'z == "true"', [T, F, F, N]),
        (BOOLS, "z == 1", "z is text and 1 is a number, which are never equal"),
        (MANY, "z == true", 'z is text and true is true or false, which are never equal; write "true"'),
        (MANY, "z", "z is not true or false; compare it, or write z != null"),
        (["1", "2", "NA", "0"], "z == true", "z is text and true is true or false"),
    ],
)
def test_texts_of_true_and_false_are_compared_as_bools(cells: list[Any], condition: str, expected: Any) -> None:
    batches = [pa.RecordBatch.from_pydict({"z": pa.array(part, pa.string())}) for part in (cells[:2], cells[2:])]
    if isinstance(expected, list):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataNote)
            assert RowFilter(condition).mask_of(batches, batches[0].schema).to_pylist() == expected
    else:
        with pytest.raises(SpecError) as refused:
            RowFilter(condition).mask_of(batches, batches[0].schema)
        assert expected in str(refused.value)


def test_a_dataset_has_only_matching_rows_and_their_indices() -> None:
    rows = [{"input": f"q{i}", "age": age} for i, age in enumerate([20, 40, None, 50])]
    with pytest.warns(
        EvaluandWarning, match=r"where: 1 of 4 rows has a missing value in 'age > 30', which matches nothing"
    ):
        data = Dataset.from_rows(rows, where="age > 30", input="input")
    assert [(example.index, example.position, example.input) for example in data] == [(1, 0, "q1"), (3, 1, "q3")]
    assert [example.index for example in data.where("input == 'q3'")] == [3]
    assert len(data) == 2
    assert [example.index for example in data.examples(1)] == [3]


def test_a_filtered_dataset_is_another_dataset() -> None:
    rows = [{"input": i} for i in range(3)]
    data = Dataset.from_rows(rows)
    part = data.where("input > 0")
    assert (part.id, part.digest) != (data.id, data.digest)
    assert part.digest == Dataset.from_rows([{"_index_": i, "input": i} for i in (1, 2)]).digest


def test_a_filter_that_nothing_matches_is_refused() -> None:
    with pytest.raises(DataError, match=r"no row matches where: a > 5; 1 of 2 rows has a missing value"):
        Dataset.from_rows([{"input": 1, "a": 1}, {"input": 2, "a": None}], where="a > 5", input="input")


def test_ids_and_weights_are_checked_in_matching_rows_only(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,input,weight,ok\na,1,1,true\na,2,-1,false\n\nb,3,-2,true\n")
    data = Dataset.from_file(file, where="ok and id == 'a'", weight="weight", input="input")
    assert [example.id for example in data] == ["a"]
    with pytest.raises(DataError, match=r"rows\.csv:5: weight -2"):
        Dataset.from_file(file, where="ok", weight="weight", input="input")


def test_several_filters_are_joined() -> None:
    assert combine([]) is None
    assert combine(["a or b"]) == "a or b"
    assert combine(["a or b", "c"]) == "(a or b) and (c)"


def test_unsigned_integers_beyond_the_signed_ones_compare_exactly() -> None:
    batch = pa.RecordBatch.from_pydict({"h": pa.array([3, 2**63 + 7, 2**64 - 1, None], pa.uint64())})
    assert RowFilter("h > 5").mask(batch).to_pylist() == [F, T, T, N]
    assert RowFilter(f"h > {2**63 + 7}").mask(batch).to_pylist() == [F, F, T, N]
    assert RowFilter("h > -1").mask(batch).to_pylist() == [T, T, T, N]
