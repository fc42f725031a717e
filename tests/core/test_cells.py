"""Cells of text as values of declared types."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from evaluand.core.files.cells import typed, written_as_real


def read(texts: list[str | None], type: str) -> tuple[list[Any], list[tuple[int, str]]]:
    wrong: list[tuple[int, str]] = []
    values = typed(pa.array(texts, pa.string()), type, lambda row, message: wrong.append((row, message)))
    return values.to_pylist(), wrong


@pytest.mark.parametrize(
    ("type", "texts", "values"),
    [
        ("integer", ["1", " 2 ", "3.0", "+4", "-5.", "", None], [1, 2, 3, 4, -5, None, None]),
        ("real", ["1", "1e3", ".5", "+2.", "", "inf"], [1.0, 1000.0, 0.5, 2.0, None, float("inf")]),
        ("boolean", ["True", "false", "1", "0", ""], [True, False, True, False, None]),
        ("text", ["007", "", None, " a "], ["007", "", None, " a "]),
        ("vector", ["1,2", " 3 , +4e1,-1", "5", ""], [[1.0, 2.0], [3.0, 40.0, -1.0], [5.0], None]),
    ],
)
def test_texts_become_values_and_an_empty_one_is_none(type: str, texts: list[str], values: list[Any]) -> None:
    assert read(texts, type) == (values, [])


@pytest.mark.parametrize(
    ("type", "text", "message"),
    [
        ("integer", "1.5", "'1.5' is not an integer"),
        ("integer", str(2**63), "'9223372036854775808' does not fit in 64 bits"),
        ("integer", str(-(2**63) - 1), "'-9223372036854775809' does not fit in 64 bits"),
        ("integer", "12345678901234567890.0", "'12345678901234567890' does not fit in 64 bits"),
        ("real", "one", "'one' is not a number"),
        ("boolean", "maybe", "'maybe' is neither true nor false"),
        ("vector", "1,,2", "'1,,2' is not a list of numbers"),
    ],
)
def test_what_is_no_such_value_is_reported_by_its_row_and_becomes_none(type: str, text: str, message: str) -> None:
    values, wrong = read(["", text], type)
    assert values == [None, None]
    [(row, reported)] = wrong
    assert row == 1
    assert message in reported


def test_times_are_times_only_where_all_are_in_isos_form() -> None:
    assert read(["2026-01-31", "2026-01-31T12:30", None], "time")[0] == [
        dt.datetime(2026, 1, 31),
        dt.datetime(2026, 1, 31, 12, 30),
        None,
    ]
    assert read(["2026-01-31", "Jan 2026"], "time")[0] == ["2026-01-31", "Jan 2026"]
    assert read(["2026-13-01"], "time")[0] == ["2026-13-01"]


def test_whole_numbers_written_as_reals_are_counted() -> None:
    assert written_as_real(pa.array(["1.0", "2", "3.", "x", None])) == 2


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_whole_numbers_of_64_bits_come_back_however_they_are_written(numbers: list[int]) -> None:
    for form in ("{}", "{:+}", "{:025}", "{}.0"):
        assert read([form.format(n) for n in numbers], "integer") == (numbers, [])


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), max_size=20))
def test_numbers_come_back_as_they_were_written(numbers: list[float | None]) -> None:
    assert read([None if n is None else repr(n) for n in numbers], "real") == (numbers, [])


@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), max_size=20))
def test_vectors_come_back_as_they_were_written(vectors: list[list[float]]) -> None:
    assert read([",".join(map(repr, vector)) for vector in vectors], "vector") == (vectors, [])
