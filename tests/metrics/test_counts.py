"""Count it: nothing that was asked disappears from a number, and no failure reads back as an answer."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import gc
import math
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorer import FunctionScorer, Score, Scorer
from evaluand.experiment import Experiment
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Mean
from evaluand.run.responses import Response
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Candidates, task
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore, Store
from evaluand.trace import TaskSpan

BY_STATUS = ("n", "n_scored", "n_failed", "n_abstained", "n_skipped")


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """No finalizer runs, and fails, where a value nests to the end of the stack."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(params=["memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path / "store")


def numbers(n: int) -> Dataset:
    return Dataset.from_rows([{"input": i, "expected": i} for i in range(n)])


def same(output: Any, expected: Any) -> bool:
    return bool(output == expected)


# 80 right, 10 wrong, 10 crashed


def answers(number: int) -> int:
    if number >= 90:
        raise RuntimeError("crashed")
    return number if number < 80 else -1


def overall(measure: Accuracy | Mean, store: Store) -> dict[str, Any]:
    results = Experiment("hundred", numbers(100), {"it": answers}, {"same": same}, [Measure("same", measure)]).run(
        store
    )
    [row] = results.aggregation.table().to_pylist()
    return dict(row)


def test_a_crash_is_left_out_of_the_value_and_shown_beside_it(store: Store) -> None:
    row = overall(Accuracy(), store)
    assert row["value"] == pytest.approx(80 / 90, abs=1e-15)
    assert (row["worst"], row["best"]) == (0.8, 0.9)
    assert [row[name] for name in BY_STATUS] == [100, 90, 10, 0, 0]
    assert row["low"] < row["value"] < row["high"]
    assert "missing=leave_out" in row["signature"]


def test_a_crash_counts_as_wrong_where_that_is_asked(store: Store) -> None:
    row = overall(Accuracy(missing="wrong"), store)
    assert row["value"] == 0.8
    assert [row[name] for name in BY_STATUS] == [100, 90, 10, 0, 0]
    assert "missing=wrong" in row["signature"]


def test_a_crash_refuses_the_value_where_that_is_asked(store: Store) -> None:
    with pytest.raises(DataError, match=r"_index_ 90, 91, .*10 rows"):
        overall(Accuracy(missing="refuse"), store)


def test_a_mean_of_grades_between_0_and_1_counts_crashes_in_the_same_way(store: Store) -> None:
    row = overall(Mean(range=(0.0, 1.0)), store)
    assert row["value"] == pytest.approx(80 / 90, abs=1e-15)
    assert (row["worst"], row["best"]) == (pytest.approx(0.8), pytest.approx(0.9))
    assert [row[name] for name in BY_STATUS] == [100, 90, 10, 0, 0]


def test_statuses_of_run_and_grades_add_up_to_what_was_asked(store: Store) -> None:
    run = Runner(store).run(answers, numbers(100))
    evaluation = Evaluator().evaluate(run, {"same": same})
    assert run.counts == {"completed": 90, "failed": 10}
    assert evaluation.counts == {"same": {"scored": 90, "failed": 10}}
    rows = evaluation.table("same").to_pylist()
    assert [row["_index_"] for row in rows] == list(range(100))
    assert {row["value"] for row in rows[90:]} == {None}
    assert {row["reason"] for row in rows[90:]} == {"task: RuntimeError: crashed"}


def test_when_everything_crashed_there_is_no_value_and_a_reason(store: Store) -> None:
    def broken(number: int) -> int:
        raise RuntimeError("always")

    results = Experiment("b", numbers(7), {"it": broken}, {"same": same}, [Measure("same", Accuracy())]).run(store)
    [row] = results.aggregation.table().to_pylist()
    assert row["value"] is None
    assert row["reason"]
    assert (row["worst"], row["best"]) == (0.0, 1.0)
    assert [row[name] for name in BY_STATUS] == [7, 0, 7, 0, 0]


def test_an_empty_dataset_goes_the_whole_path(store: Store, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("input,expected\n")
    data = Dataset.from_file(tmp_path / "empty.csv")
    results = Experiment("e", data, {"it": answers}, {"same": same}, [Measure("same", Accuracy())]).run(store)
    [row] = results.aggregation.table().to_pylist()
    assert row["value"] is None
    assert row["reason"]
    assert [row[name] for name in BY_STATUS] == [0, 0, 0, 0, 0]


# What a task gives


NINE = 9  # other examples beside the one in question


def response(output: Any, *, items: bool = False) -> Response:
    """What is kept of an output (or of what a function gives) that nine others have for company."""

    def gives(number: int) -> Any:
        if number == 3:
            return output() if callable(output) else output
        return [number] if items else number

    found = list(Runner(policy=Policy(concurrency=2)).run(task(items=items)(gives), numbers(NINE + 1)))
    assert [one.index for one in found] == list(range(NINE + 1))
    others = [one for one in found if one.index != 3]
    assert {one.status for one in others} == {"completed"}
    assert [one.responses for one in others] == [[[one.index] if items else one.index] for one in others]
    return found[3]


def alike(a: Any, b: Any) -> bool:
    """Equal to the last bit and in type: 1, 1.0 and True differ, NaN is NaN, 0.0 is not -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return bool((math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b)))
    if isinstance(a, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(value, b[key]) for key, value in a.items())
    if isinstance(a, dt.datetime):
        return bool(a.isoformat() == b.isoformat())
    return bool(a == b)


ZONE = dt.timezone(dt.timedelta(hours=5, minutes=30))

EXACT: dict[str, Any] = {
    "what looks like a failure": {"status": "failed", "error": {"type": "ValueError", "message": "no"}},
    "what looks like an exception": "Traceback (most recent call last):\nValueError: no",
    "an empty list": [],
    "an empty object": {},
    "empty text": "",
    "zero": 0,
    "false": False,
    "NaN": math.nan,
    "infinities": [math.inf, -math.inf],
    "both zeros": [0.0, -0.0],
    "the smallest and the largest": [5e-324, 1.7976931348623157e308],
    "numbers that look alike": [1, 1.0, True, "1"],
    "bytes": b"\x00\xff raw",
    "times": [
        dt.datetime(2024, 2, 29, 12, 30, 59, 999_999),
        dt.datetime(2024, 2, 29, 12, tzinfo=ZONE),
        dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
        dt.date(1, 1, 1),
        dt.time(23, 59, 59, 1),
        dt.timedelta(days=-1, microseconds=1),
    ],
    "huge integers": [2**63 - 1, -(2**63), 2**63, 2**64, -(10**400)],
    "decimals": [decimal.Decimal("0.10"), decimal.Decimal("1E+999")],
    "an identifier": uuid.UUID(int=7),
    "nested and mixed": {"a": [1, "x", None, {"b": [[], {}, [None]]}], "": {"": ""}, "ü": [True, 2.5]},
    "keys with dollars": [{"$float": "NaN"}, {"$$": 1}, {"$bytes": "AA==", "more": 1}, {"$": {"$int": "5"}}],
    "text of all kinds": "\x00 \x1f \u2028 \U0001f600 e\u0301 é \ufeff \uffff",
    "keys in their own order": {"b": 1, "a": 2},
    "an object in a list of nothing": [None, {}, None],
    "10 MB of text": "0123456789abcdef" * 655_360,
}


@pytest.mark.parametrize("name", EXACT)
def test_an_output_reads_back_exactly_as_it_was_given(name: str) -> None:
    found = response(EXACT[name])
    assert found.status == "completed"
    assert found.error is None
    assert found.responses is not None
    assert alike(found.responses[0], EXACT[name])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=5) | st.datetimes(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.just("$float"), inner),
    max_leaves=12,
)


@given(outputs=st.lists(JSON, min_size=1, max_size=8))
def test_any_data_reads_back_exactly(outputs: list[Any]) -> None:
    run = Runner(policy=Policy(concurrency=1)).run(lambda number: outputs[number], numbers(len(outputs)))
    assert run.counts == {"completed": len(outputs)}
    for found, output in zip(run, outputs, strict=True):
        assert found.responses is None if output is None else alike(found.responses, [output])


def test_no_answer_is_not_an_empty_answer() -> None:
    assert response(None).responses is None
    assert response([]).responses == [[]]


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: float


LIKE: dict[str, tuple[Any, Any]] = {
    "a tuple": ((1, (2,)), [1, [2]]),
    "an enum": (Colour.RED, "red"),
    "a dataclass": (Point(1, 2.0), {"x": 1, "y": 2.0}),
    "numpy numbers": (
        [np.int8(-5), np.uint64(2**64 - 1), np.float32(0.5), np.float64("nan"), np.bool_(True), np.str_("x")],
        [-5, 2**64 - 1, 0.5, math.nan, True, "x"],
    ),
    "a numpy array": (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "an empty numpy array": (np.array([]), []),
    "a numpy time": (np.datetime64("2024-02-29T12:30", "us"), dt.datetime(2024, 2, 29, 12, 30)),
    "a numpy day": (np.datetime64("2024-02-29"), dt.date(2024, 2, 29)),
    "a pandas time": (pd.Timestamp("2024-02-29 12:30:00.000001"), dt.datetime(2024, 2, 29, 12, 30, 0, 1)),
}


@pytest.mark.parametrize("name", LIKE)
def test_what_other_libraries_call_data_reads_back_as_the_same_plain_data(name: str) -> None:
    given_, expected = LIKE[name]
    found = response(given_)
    assert found.status == "completed"
    assert found.responses is not None
    assert alike(found.responses[0], expected)


def cyclic() -> list[Any]:
    value: list[Any] = [1]
    value.append({"again": value})
    return value


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


class Dumps:
    """Says it can be made data, and then cannot."""

    def model_dump(self) -> Any:
        raise RuntimeError("not today")


class AgreesToAll:
    """Has every method one asks for, as stand-ins and remote proxies have."""

    def __getattr__(self, name: str) -> Any:
        return AgreesToAll() if not name.startswith("__") else object.__getattribute__(self, name)

    def __call__(self, *args: Any) -> Any:
        return self


class FalseMapping(Mapping[str, int]):
    """A mapping whose items cannot be read."""

    def __getitem__(self, key: str) -> int:
        raise KeyError(key)

    def __iter__(self) -> Any:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


NOT_DATA: dict[str, Callable[[], Any]] = {
    "a set": lambda: {1, 2},
    "a set inside": lambda: {"tags": [{"a"}]},
    "an object": lambda: object(),
    "a function": lambda: print,
    "a class": lambda: int,
    "a complex number": lambda: 1j,
    "a numpy complex number": lambda: np.complex128(1j),
    "a generator": lambda: (i for i in range(3)),
    "an exception": lambda: ValueError("no"),
    "an open file": lambda: sys.stdout,
    "half a character": lambda: "\ud800",
    "half a character as a key": lambda: {"\udfff": 1},
    "a key that is a number": lambda: {1: "one"},
    "a key that is nothing": lambda: {None: 0},
    "a cyclic list": cyclic,
    "lists in lists without end": lambda: deep(5000),
    "an object that says it is data": lambda: Dumps(),
    "an object that agrees to everything": lambda: AgreesToAll(),
    "a mapping that cannot be read": lambda: FalseMapping(),
    "a frame": lambda: pd.DataFrame({"a": [1]}),
}


@pytest.mark.parametrize("name", NOT_DATA)
def test_an_output_that_is_not_data_costs_one_example_and_says_why(name: str) -> None:
    found = response(NOT_DATA[name])
    assert found.status == "failed"
    assert found.responses is None
    assert found.error is not None
    assert found.error["type"]
    assert found.error["message"].strip()


MAY_BE_REFUSED: dict[str, Any] = {
    "nanoseconds": np.datetime64("2024-02-29T12:30:00.123456789"),
    "a time in nanoseconds": np.datetime64("2024-02-29T12:30", "ns"),
    "a span in nanoseconds": np.timedelta64(5, "ns"),
    "no time": np.datetime64("NaT"),
    "no span": np.timedelta64("NaT"),
    "a pandas time that is none": pd.NaT,
    "a pandas value that is none": pd.NA,
    "pandas nanoseconds": pd.Timestamp(1_700_000_000_123_456_789),
    "a long double": np.longdouble("0.1"),
    "a masked value": np.ma.masked,
}


@pytest.mark.parametrize("name", MAY_BE_REFUSED)
def test_what_plain_data_cannot_say_is_refused_and_never_becomes_something_else(name: str) -> None:
    output = MAY_BE_REFUSED[name]
    found = response(lambda: [output])
    if found.status == "failed":
        assert found.error is not None
        assert found.error["message"]
        return
    assert found.responses is not None
    [[read]] = found.responses
    if read is None:  # no time is nothing
        assert output != output
        return
    if isinstance(output, np.generic):  # 12:30 in nanoseconds is 12:30
        assert isinstance(read, dt.datetime | dt.timedelta)
        assert type(output)(read) == output
        return
    assert isinstance(output, type(read))
    assert read == output
    if isinstance(read, dt.datetime):
        assert getattr(output, "nanosecond", 0) == 0


def test_outputs_of_every_kind_stand_side_by_side_on_disk(tmp_path: Path) -> None:
    exact = list(EXACT.values()) + [value for value, _ in LIKE.values()]
    plain = list(EXACT.values()) + [value for _, value in LIKE.values()]
    outputs = [*exact, *NOT_DATA.values()]

    def gives(number: int) -> Any:
        output = outputs[number]
        return output() if number >= len(exact) else output

    store = DirectoryStore(tmp_path)
    run = Runner(store).run(task(version="1")(gives), numbers(len(outputs)))
    found = list(Run(DirectoryStore(tmp_path), run.id))
    assert [one.status for one in found] == ["completed"] * len(exact) + ["failed"] * len(NOT_DATA)
    for one, expected in zip(found, plain, strict=False):
        assert alike(one.responses, [expected])


# Several answers, items


def test_several_answers_read_back_in_order() -> None:
    found = response(Candidates([{"a": 1}, None, [], "x"]))
    assert found.status == "completed"
    assert found.responses == [{"a": 1}, None, [], "x"]


def test_no_answers_at_all_is_not_a_failure() -> None:
    found = response(Candidates([]))
    assert (found.status, found.responses) == ("completed", [])


@pytest.mark.parametrize("values", [5, None, (i for i in range(2)), {1, 2}], ids=["number", "none", "generator", "set"])
def test_answers_that_are_no_sequence_cost_one_example(values: Any) -> None:
    found = response(Candidates(values))
    assert found.status == "failed"
    assert found.error is not None
    assert found.error["message"]


@pytest.mark.parametrize("output", [5, "text", {"a": 1}, Candidates([[1], 2]), Candidates(["text"])])
def test_items_that_are_no_list_cost_one_example(output: Any) -> None:
    found = response(output, items=True)
    assert found.status == "failed"
    assert found.error is not None
    assert "list" in found.error["message"]


def test_items_of_several_answers_stay_apart() -> None:
    found = response(Candidates([[1, 2], [], [{"a": None}]]), items=True)
    assert found.responses == [[1, 2], [], [{"a": None}]]


# What a task says beside its answer


USAGE: dict[str, Any] = {
    "text": "a lot",
    "a list": [1, 2],
    "words for numbers": {"input_tokens": "many", "output_tokens": 3},
    "fractions of tokens": {"input_tokens": 1.5},
    "unknown names": {"prompt_tokens": 7},
    "bytes": {"model": b"raw"},
    "NaN": {"cost": math.nan},
    "huge": {"input_tokens": 2**80},
    "an object": {"cost": object()},
}


@pytest.mark.parametrize("name", USAGE)
def test_usage_that_makes_no_sense_costs_at_most_one_example(name: str) -> None:
    def reports(number: int, task_span: TaskSpan) -> int:
        usage = USAGE[name] if number == 3 else {"input_tokens": number, "cost": 0.5, "model": "m"}
        task_span.set(usage=usage)
        return number

    run = Runner().run(reports, numbers(10))
    assert sum(run.counts.values()) == 10
    others = [row for row in run.table().to_pylist() if row["_index_"] != 3]
    assert {row["status"] for row in others} == {"completed"}
    assert [row["usage"]["input_tokens"] for row in others] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


# What a scorer gives


def scores(result: Any, scorer: Scorer | None = None) -> list[dict[str, Any]]:
    """The grades of ten answers, of which the fourth gets a result (or the scorer does as it likes), the others 1."""

    def grade(output: Any) -> Any:
        if output == 3:
            return result() if callable(result) else result
        return 1.0

    evaluation = evaluated(scorer or FunctionScorer(grade, version="1"))
    rows: list[dict[str, Any]] = evaluation.table("it").to_pylist()
    assert [row["_index_"] for row in rows] == list(range(NINE + 1))
    others = [row for row in rows if row["_index_"] != 3]
    assert {(row["status"], row["value"]) for row in others} == {("scored", 1.0)}
    return rows


def evaluated(scorer: Scorer, store: Store | None = None) -> Evaluation:
    run = Runner(store or MemoryStore()).run(task(version="1")(lambda number: number), numbers(NINE + 1))
    return Evaluator().evaluate(run, {"it": scorer})


SCORED: dict[str, tuple[Any, dict[str, Any]]] = {
    "true": (True, {"value": 1.0}),
    "false": (False, {"value": 0.0}),
    "an integer": (7, {"value": 7.0}),
    "a numpy number": (np.float32(0.5), {"value": 0.5}),
    "a numpy bool": (np.bool_(False), {"value": 0.0}),
    "a decimal": (decimal.Decimal("0.25"), {"value": 0.25}),
    "text": ("toxic", {"label": "toxic"}),
    "an object": ({"status": "failed"}, {"data": '{"status":"failed"}'}),
    "an empty object": ({}, {"data": "{}"}),
    "a list": ([1, "x", None], {"data": '[1,"x",null]'}),
    "a score": (Score(0.5, "half", {"x": 1}, "since"), {"value": 0.5, "label": "half", "explanation": "since"}),
}


@pytest.mark.parametrize("name", SCORED)
def test_a_score_is_kept_as_what_it_is(name: str) -> None:
    result, expected = SCORED[name]
    row = scores(result)[3]
    assert row["status"] == "scored"
    assert row["reason"] is None
    assert {key: row[key] for key in expected} == expected
    assert row["value"] == expected.get("value")
    assert row["label"] == expected.get("label")


def test_a_scorer_that_finds_nothing_to_grade_abstains() -> None:
    assert scores(None)[3]["status"] == "abstained"
    row = scores(Score.abstained("no number in the text"))[3]
    assert (row["status"], row["reason"], row["value"]) == ("abstained", "no number in the text", None)


def raises(error: BaseException) -> Callable[[], Any]:
    def result() -> Any:
        raise error

    return result


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("an error about the error")


RAISED: dict[str, BaseException] = {
    "an error": ValueError("cannot tell"),
    "a way out": SystemExit(1),
    "a cancellation": asyncio.CancelledError(),
    "a transient error": ConnectionError("gone"),
    "what ends loops": StopIteration(),
    "an error in half characters": ValueError("\ud800"),
    "an error that cannot be printed": Unprintable(),
}

NO_SCORES: dict[str, Any] = {
    "NaN": math.nan,
    "infinity": math.inf,
    "a numpy NaN": np.float64("nan"),
    "too large a number": 10**400,
    "a set": lambda: {1},
    "an object": lambda: object(),
    "a cyclic list": cyclic,
    "half a character": "\ud800",
    "half a character in data": lambda: {"a": "\ud800"},
    "an object that agrees to everything": lambda: AgreesToAll(),
    "a value that is no number": Score("a"),  # type: ignore[arg-type]
    "a value too large": Score(10**400),
    "a label that is no text": Score(1.0, label=5),  # type: ignore[arg-type]
    "a label of half a character": Score(1.0, label="\ud800"),
    "an explanation that is no text": Score(1.0, explanation=5),  # type: ignore[arg-type]
    "a status there is not": Score(1.0, status="excellent"),
    "a failure of its own": Score(1.0, status="failed"),
    "a reason that is no text": Score(status="abstained", reason=5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", RAISED)
def test_a_scorer_that_raises_costs_one_score_and_says_why(name: str) -> None:
    row = scores(raises(RAISED[name]))[3]
    assert row["status"] == "failed"
    assert row["value"] is None
    assert type(RAISED[name]).__name__ in row["reason"]


@pytest.mark.parametrize("name", [name for name in RAISED if name != "what ends loops"])  # cannot leave a coroutine
def test_an_async_scorer_that_raises_costs_one_score_and_says_why(name: str) -> None:
    async def grade(output: int) -> float:
        if output == 3:
            raise RAISED[name]
        return 1.0

    row = scores(None, FunctionScorer(grade, version="1"))[3]
    assert row["status"] == "failed"
    assert row["value"] is None
    assert type(RAISED[name]).__name__ in row["reason"]


@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
@pytest.mark.parametrize("name", NO_SCORES)
def test_a_result_that_is_no_score_costs_one_score_and_says_why(name: str, batch: bool) -> None:
    result = NO_SCORES[name]

    def grades(output: list[Any]) -> list[Any]:
        wrong = result() if callable(result) else result
        return [wrong if number == 3 else 1.0 for number in output]

    row = scores(result, FunctionScorer(grades, version="1", batch=True) if batch else None)[3]
    assert row["status"] == "failed"
    assert row["value"] is None
    assert row["reason"].strip()


def test_scores_of_every_kind_stand_side_by_side_on_disk(tmp_path: Path) -> None:
    results = [*(result for result, _ in SCORED.values()), *map(raises, RAISED.values()), *NO_SCORES.values()]

    def grade(output: int) -> Any:
        result = results[output]
        return result() if callable(result) else result

    run = Runner(DirectoryStore(tmp_path)).run(lambda number: number, numbers(len(results)))
    Evaluator().evaluate(run, {"it": FunctionScorer(grade, version="1")}, name="all kinds")
    store = DirectoryStore(tmp_path)
    [id] = store.ids("evaluations")
    rows = Evaluation(store, id).table("it").to_pylist()
    wrong = len(RAISED) + len(NO_SCORES)
    assert [row["status"] for row in rows] == ["scored"] * len(SCORED) + ["failed"] * wrong
    for row, (_, expected) in zip(rows, SCORED.values(), strict=False):
        assert {key: row[key] for key in expected} == expected


def test_half_a_character_in_what_a_scorer_tells_is_escaped_and_costs_no_value() -> None:
    row = scores(Score(1.0, explanation="half \ud800"))[3]
    assert (row["status"], row["value"], row["explanation"]) == ("scored", 1.0, "half \\ud800")
    row = scores(Score(status="abstained", reason="é \udfff"))[3]
    assert (row["status"], row["reason"]) == ("abstained", "é \\udfff")
    assert "half \\ud800" in scores(raises(ValueError("half \ud800")))[3]["reason"]


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
def test_an_error_ends_no_more_than_its_batch() -> None:
    def grades(output: list[Any]) -> list[Any]:
        raise SystemExit(1)

    evaluation = evaluated(FunctionScorer(grades, version="1", batch=True))
    assert evaluation.counts == {"it": {"failed": NINE + 1}}


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
@pytest.mark.parametrize("n", [0, 9, 11])
def test_a_batch_with_another_number_of_scores_fails_as_a_whole(n: int) -> None:
    evaluation = evaluated(FunctionScorer(lambda output: [1.0] * n, version="1", batch=True))
    assert evaluation.counts == {"it": {"failed": NINE + 1}}
    assert "one each" in evaluation.table("it")["reason"][0].as_py()


def test_a_score_of_text_or_data_is_no_number_for_a_metric() -> None:
    for result in ("toxic", {"a": 1}):
        evaluation = evaluated(FunctionScorer(lambda output, r=result: r, version=repr(result)))
        with pytest.raises(DataError, match="accuracy of 'it': the column 'value' is empty in every scored row"):
            Aggregator().aggregate([evaluation], [Measure("it", Accuracy())])


def test_a_metric_of_a_scorer_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"'its'.*'it'"):
        Aggregator().aggregate([evaluated(FunctionScorer(same))], [Measure("its", Accuracy())])


UNFIT: list[tuple[str, Any]] = [
    ("string", 5),
    ("string", "\ud800"),
    ("string", ["x"]),
    ("int64", "many"),
    ("int64", 2**63),
    ("int64", 1.5),
    ("double", "half"),
    ("double", [0.5]),
    ("double", 10**400),
    ("bool", "yes"),
    ("bool", 2),
    ("json", {1, 2}),
    ("json", "\ud800"),
]
FITTING = {"string": "x", "int64": 1, "double": 0.5, "bool": True, "json": [1]}


@dataclass(frozen=True)
class Declares(Scorer):
    """A scorer with a column of its own, for which it has an unfit value in the fourth row."""

    kind: ClassVar[str] = "declares"
    version: ClassVar[int] = 1

    case: int

    @property
    def columns(self) -> dict[str, str]:
        return {"own": UNFIT[self.case][0]}

    def score(self, output: Any, expected: Any) -> Score:
        what, unfit = UNFIT[self.case]
        return Score(1.0, columns={"own": unfit if output == 3 else FITTING[what]})


@pytest.mark.parametrize("case", range(len(UNFIT)), ids=[f"{what} {value!a:.20}" for what, value in UNFIT])
def test_a_value_that_does_not_fit_its_declared_column_costs_one_score(case: int) -> None:
    row = scores(None, Declares(case))[3]
    assert row["status"] == "failed"
    assert (row["value"], row["own"]) == (None, None)
    assert row["reason"].strip()


# Several pieces to one row


def three_answers() -> Dataset:
    return Dataset.from_rows([{"input": i, "expected": 1} for i in range(4)])


@pytest.mark.parametrize("error", [ValueError("no"), ConnectionError("gone")], ids=["error", "transient error"])
def test_a_scorer_that_fails_on_one_of_several_answers_costs_one_score(store: Store, error: Exception) -> None:
    def second_is_hard(output: int) -> float:
        if output == 1:
            raise error
        return 1.0

    run = Runner(store).run(lambda number: Candidates([0, 1, 2]), three_answers())
    evaluation = Evaluator().evaluate(run, {"it": second_is_hard})
    assert evaluation.counts == {"it": {"scored": 8, "failed": 4}}
    rows = evaluation.table("it").to_pylist()
    assert [(r["_response_index_"], r["status"]) for r in rows if r["_index_"] == 2] == [
        (0, "scored"),
        (1, "failed"),
        (2, "scored"),
    ]


def test_a_transient_error_of_a_scorer_is_tried_again_where_the_run_allows(store: Store) -> None:
    seen: list[int] = []

    def busy_at_first(output: int) -> float:
        seen.append(output)
        if seen.count(output) == 1:
            raise ConnectionError("busy")
        return 1.0

    run = Runner(store).run(lambda number: number, numbers(5))
    evaluation = Evaluator(policy=Policy(retries=1, backoff=0)).evaluate(run, {"it": busy_at_first})
    assert evaluation.counts == {"it": {"scored": 5}}
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_an_answer_that_is_none_is_abstained_and_not_graded(store: Store) -> None:
    def grade(output: Any) -> float:
        raise AssertionError("nobody asks about no answer")

    run = Runner(store).run(lambda number: None, numbers(3))
    evaluation = Evaluator().evaluate(run, {"it": grade})
    assert run.counts == {"completed": 3}
    assert evaluation.counts == {"it": {"abstained": 3}}


def test_every_target_of_a_failed_row_is_counted(store: Store) -> None:
    from evaluand.evaluation.scorers.prediction import Prediction

    data = Dataset.from_rows([{"input": i, "a": "x", "b": "y"} for i in range(4)], input="input", expected=["a", "b"])

    def half(number: int) -> dict[str, str]:
        if number >= 2:
            raise RuntimeError("crashed")
        return {"a": "x", "b": "n"}

    evaluation = Evaluator().evaluate(Runner(store).run(half, data), {"it": Prediction()})
    rows = evaluation.table("it").to_pylist()
    assert [(r["_index_"], r["target"], r["status"]) for r in rows] == [
        (i, target, "scored" if i < 2 else "failed") for i in range(4) for target in ("a", "b")
    ]
    table = Aggregator().aggregate([evaluation], [Measure("it", Accuracy())]).table().to_pylist()
    assert [(r["target"], r["value"], r["worst"], r["best"], r["n"], r["n_failed"]) for r in table] == [
        ("a", 1.0, 0.5, 1.0, 4, 2),
        ("b", 0.0, 0.0, 0.5, 4, 2),
    ]


def test_a_run_reads_back_the_same_from_another_process_worth_of_objects(tmp_path: Path) -> None:
    run = Runner(DirectoryStore(tmp_path)).run(answers, numbers(100), name="hundred")
    again = Run(DirectoryStore(tmp_path), run.id)
    assert list(again) == list(run)
    assert again.counts == run.counts
    assert identity.encode(again.table().to_pylist()) == identity.encode(run.table().to_pylist())
