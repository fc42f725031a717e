"""The core of gates: a rule and its rows become one result, whoever made the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from evaluand.comparison.checking import Row, check, decide
from evaluand.comparison.rule import Gate


def outcome(rule: str, row: Row) -> tuple[bool, str]:
    found = check(Gate.parse(rule), row)
    return found.passed, found.message


@pytest.mark.parametrize(
    ("rule", "row", "passed", "message"),
    [
        ("accuracy >= 0.9", Row(0.9, counts="10 rows"), True, "0.9; 10 rows"),
        ("accuracy > 0.9", Row(0.9), False, "0.9"),
        ("accuracy >= 0.8 at 95%", Row(0.9, 0.7, 0.95, "low"), False, "lower 95% bound about 0.7"),
        ("error <= 0.1 at 90%", Row(0.05, 0.01, 0.09, "high", is_exact=True), True, "upper 90% bound 0.09"),
        ("accuracy better than base", Row(0.1, 0.0, 0.2, "low", sign="+"), False, "lower 95% bound about +0"),
        ("accuracy not worse than base by 0.02", Row(0, -0.01, 0.1, "low"), True, "lower 95% bound about -0.01"),
        ("loss not worse than base by 0.02", Row(0, -0.1, 0.02, "high"), False, "upper 95% bound about 0.02"),
        ("accuracy equal to base within 0.05", Row(0, -0.04, 0.03, "low"), True, "lower 95% bound about -0.04"),
    ],
)
def test_a_rule_compares_the_number_or_the_bound_that_decides(rule: str, row: Row, passed: bool, message: str) -> None:
    assert outcome(rule, row) == (passed, message)


def test_the_rounding_of_a_subtraction_does_not_decide() -> None:
    difference = 0.90 - 0.92  # −0.020000000000000018
    assert outcome("accuracy >= base - 0.02", Row(difference, is_rounded=True))[0]
    assert not outcome("accuracy >= base - 0.02", Row(difference))[0]


def test_a_level_without_a_range_of_values_is_not_guaranteed() -> None:
    message = outcome("mean >= 1 at 95%", Row(2.0, 1.5, 2.5, "low", is_bounded=False))[1]
    assert message == "lower 95% bound about 1.5 (without a range of values its level is not guaranteed)"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (Row(missing="no rows"), "no rows"),
        (Row(reason="no row is scored", counts="3 rows: 0 scored"), "undefined: no row is scored; 3 rows: 0 scored"),
        (Row(0.9, math.nan, math.nan, "low", reason="it has no interval"), "undefined: it has no interval"),
    ],
)
def test_a_row_without_a_number_decides_nothing(row: Row, message: str) -> None:
    found = check(Gate.parse("accuracy >= 0.5 at 95%"), row)
    assert (found.passed, found.is_decided, found.message) == (False, False, message)


def test_gaps_leave_only_a_rule_that_would_hold_undecided() -> None:
    gate = Gate.parse("accuracy >= 0.5")
    high, low = (check(gate, Row(value, has_gaps=True)) for value in (0.9, 0.1))
    assert (high.passed, high.is_decided) == (False, False)
    assert high.message.startswith("undecided: too many rows have no score; score them, or declare how they count")
    assert (low.passed, low.is_decided, low.message) == (False, True, "0.1")


def test_two_sides_that_are_the_same_are_not_worse_and_not_better() -> None:
    row = Row(0.0, -0.1, 0.1, "low", is_same=True, counts="9 pairs")
    unchanged = "unchanged: both sides are the same evaluation of the same task; 9 pairs"
    assert outcome("accuracy not worse than base", row) == (True, unchanged)
    assert outcome("accuracy better than base", row) == (False, unchanged)


def test_the_bound_stands_between_the_data_of_a_row() -> None:
    row = Row(0.9, 0.8, math.nan, "low", {"target": "a"}, {"worst": 0.7}, {"n": 10})
    facts = check(Gate.parse("accuracy >= 0.5 at 95%"), row).facts or {}
    assert [*facts.items()] == [
        ("target", "a"), ("value", 0.9), ("low", 0.8), ("high", None), ("worst", 0.7), ("bound", 0.8),
        ("side", "lower"), ("n", 10),
    ]  # fmt: skip


def test_a_gate_holds_if_it_holds_for_every_row() -> None:
    gate = Gate.parse("accuracy >= 0.5")
    result = decide(
        gate, "mine", lambda: [Row(0.9, key={"target": "a"}), Row(0.2, key={"target": "b"})], scorer="exact"
    )
    assert str(result) == "FAILED  accuracy >= 0.5  mine: (b) 0.2"
    assert result.facts["scorer"] == "exact"
    assert [(row["target"], row["value"]) for row in result.facts["values"]] == [("a", 0.9), ("b", 0.2)]
    nothing = decide(gate, "mine", list[Row])
    assert (nothing.result, nothing.message) == ("undecided", "no rows")


def test_rows_that_are_refused_are_not_made() -> None:
    class Unmeasured:
        name, digest, status, card_id, finding, remedy = "strict", "5f", "unmeasured", None, "unmeasured", "measure it"

        def correct(self, *_: object) -> None:
            raise AssertionError

    def rows() -> Iterator[Row]:
        raise AssertionError
        yield

    result = decide(Gate.parse("accuracy >= 0.5"), "mine", rows, [Unmeasured()])  # type: ignore[list-item]
    assert result.message.startswith("refused: judge 'strict' is unmeasured; measure it, or allow it with")
    assert result.facts["judges"][0] == {
        "judge": "strict", "digest": "5f", "status": "unmeasured", "card": None, "finding": "unmeasured",
        "allowed": False,
    }  # fmt: skip
