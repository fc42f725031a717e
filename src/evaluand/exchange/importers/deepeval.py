"""DeepEval's test runs: the files of its results folder and of `.deepeval`, and what `evaluate` returns, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError
from evaluand.core.files.json_items import JsonCursor, parse_json
from evaluand.exchange.importer import Importer, LogFile
from evaluand.exchange.sample import (
    Grade,
    Sample,
    Total,
    by_name,
    mapping,
    named_values,
    require,
    sequence,
)

_SUCCESS: Final = "success"
_CASES: Final = ("testCases", "conversationalTestCases", "test_results", "test_cases")
_RUN: Final = "testRunData"
_CACHE: Final = "test_cases_lookup_map"


class DeepEval(Importer):
    """Test runs of DeepEval."""

    kind: ClassVar[str] = "deepeval"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._facts: dict[str, Any] = {}
        self._scores: list[Any] = []
        self._scorers: set[str] = set()
        self._judging = 0.0  # dollars

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        if _CACHE in file.keys or _RUN in file.keys:
            return True
        return any(f'"{name}"'.encode() in file.head for name in ("metricsData", "metrics_data")) and any(
            name in file.keys for name in _CASES
        )

    def records(self) -> Iterator[tuple[str, Any]]:
        cursor = JsonCursor.open(self.path)
        yield from self._cases(cursor)
        self.leave_out_rest(cursor)
        if self._judging:
            self.notes.append(
                f"{self.path.name}: the evaluation has cost {self._judging:.4g} USD, which is no part of the cost of"
                " the answers and is not imported"
            )

    def _cases(self, cursor: JsonCursor) -> Iterator[tuple[str, Any]]:
        """The test cases of the test run here, which may be a member of the file."""
        for key in cursor.members():
            if key in _CASES and cursor.kind == "[":
                for n, _ in enumerate(cursor.items()):
                    yield f"{self.path}: {key}[{n}]", cursor.value()
            elif key == _RUN and cursor.kind == "{":
                yield from self._cases(cursor)
            elif key == _CACHE and cursor.kind == "{":
                for n, case in enumerate(cursor.members()):
                    yield f"{self.path}: {key}, member {n + 1}", _case_of_cache(case, cursor.value())
            elif key == "metricsScores":
                self._scores = list(sequence(cursor.value()))
            elif cursor.kind not in ("{", "["):  # such as the totals testPassed and testFailed
                self._facts[key] = cursor.value()

    def samples(self, record: Any) -> Iterable[Sample]:
        require(record, "metricsData", "metrics_data")
        turns = [mapping(turn) for turn in sequence(_either(record, "turns"))]
        input = [dict(each) for each in turns] if turns else require(record, "input")
        context = {name: c for name in ("context", "retrieval_context") if (c := _either(record, name))}
        seconds, cost = _number(record, "completion_time", "run_duration"), _number(record, "token_cost")
        grades = by_name(_grades(record))
        self._judging += _cost_of_grading(record)
        self._scorers.update(grades)
        yield Sample(
            _either(record, "name"),
            {"input": input, **context} if context else input,
            turns[-1].get("content") if turns else _either(record, "actual_output"),
            expected=_either(record, "expected_output"),
            attributes=named_values(_either(record, "metadata")),
            grades=grades,
            usage=None if cost is None else {"cost": cost, "currency": "USD"},
            duration=None if seconds is None else round(seconds * 1e6),
        )

    def totals(self) -> Iterable[Total]:
        for each in map(mapping, self._scores):
            name = str(each.get("metric"))
            if f"{name} (2)" in self._scorers:
                continue  # the scores of several metrics of one name are in one list
            numbers = [s for s in sequence(each.get("scores")) if isinstance(s, int | float)]
            yield Total("", "", name, "sum", float(sum(numbers)))
            yield Total("", "", name, "count", float(len(numbers)))

        passed, failed = self._facts.get("testPassed"), self._facts.get("testFailed")
        if type(passed) is int and type(failed) is int and _SUCCESS in self._scorers:
            yield Total("", "", _SUCCESS, "passed", float(passed))
            yield Total("", "", _SUCCESS, "count", float(passed + failed))

    def is_higher_better(self, problem: str, scorer: str) -> bool | None:
        return True if scorer == _SUCCESS else None

    def facts(self) -> dict[str, Any]:
        return self._facts


def _case_of_cache(case: str, found: Any) -> Any:
    """A test case of the cache, where it is text and its key, with the metrics that were computed."""
    try:
        metrics = [each["metric_data"] for each in found["cached_metrics_data"]]
        return {**mapping(parse_json(case, "")), "metrics_data": metrics}
    except (DataError, LookupError, TypeError, ValueError):
        return found


def _grades(record: Mapping[str, Any]) -> Iterator[tuple[str, Grade]]:
    """Whether the test case passed, and the score of each metric; one that failed has none."""
    if isinstance(success := _either(record, _SUCCESS), bool):
        yield _SUCCESS, Grade.of(success)
    for metric in map(mapping, sequence(_either(record, "metrics_data"))):
        name, score = str(require(metric, "name")), metric.get("score")
        passed = metric.get("success")
        label = ("pass" if passed else "fail") if isinstance(passed, bool) else None
        if error := metric.get("error"):
            yield name, Grade(label=None, reason=f"{DeepEval.kind}: {error}")
        else:
            yield name, Grade.of(score, explanation=metric.get("reason"), label=label).as_share()


def _cost_of_grading(record: Mapping[str, Any]) -> float:
    """What the judges of a test case have cost, together or by metric."""
    metrics = map(mapping, sequence(_either(record, "metrics_data")))
    together = _number(record, "evaluation_cost")
    return sum(_number(metric, "evaluation_cost") or 0.0 for metric in metrics) if together is None else together


def _number(record: Mapping[str, Any], *names: str) -> float | None:
    """The first of these members that is a number and not negative."""
    for name in names:
        value = _either(record, name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return float(value)
    return None


def _either(record: Mapping[str, Any], name: str) -> Any:
    """A member that is in snake case or in camel case."""
    first, *rest = name.split("_")
    camel = first + "".join(word.capitalize() for word in rest)
    return record.get(name, record.get(camel))
