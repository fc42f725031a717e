"""Langfuse's traces with scores and observations, as its API and its export have them: JSON, or JSON lines.

Items of an experiment, which its newer API has, are samples too. Names may be in camel or in snake case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from evaluand.experiment.imports.importer import Importer, LogFile, json_records
from evaluand.experiment.imports.sample import (
    Grade,
    Sample,
    by_name,
    mapping,
    microseconds,
    named_values,
    parse_object,
    require,
    sequence,
)

_KEYS: Final = frozenset(("input", "output", "projectId", "timestamp", "htmlPath", "latency", "bookmarked", "scores"))
_SNAKE: Final = re.compile("(?<=[a-z])_([a-z])")
_KINDS: Final = {"GENERATION": "llm", "TOOL": "tool", "RETRIEVER": "retriever", "AGENT": "agent", "CHAIN": "chain"}


class Langfuse(Importer):
    """Traces of Langfuse."""

    kind: ClassVar[str] = "langfuse"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._n_ids = 0  # of scores that the file does not have

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        keys = file.keys
        if keys <= {"data", "meta"} and "data" in keys:
            return (b'"projectId"' in file.head and b'"traceId"' in file.head) or any(
                mark in file.head for mark in (b'"htmlPath"', b'"experimentItemId"')
            )
        return {"id", "input", "output"} <= keys and (len(_KEYS & keys) > 4 or "experimentItemId" in keys)

    def records(self) -> Iterator[tuple[str, Any]]:
        yield from json_records(self.path, "data")
        if self._n_ids:
            self.notes.append(
                f"{self.path.name}: of {self._n_ids:,} scores there are only the ids; export traces with their details"
            )

    def samples(self, record: Any) -> Iterable[Sample]:
        trace = _in_camel_case(parse_object(record))
        started, ended = (
            microseconds(trace.get("timestamp", trace.get("startTime"))),
            microseconds(trace.get("endTime")),
        )
        observations = [
            _in_camel_case(each) for each in sequence(trace.get("observations")) if isinstance(each, Mapping)
        ]
        scores = [_in_camel_case(each) for each in sequence(trace.get("scores")) if isinstance(each, Mapping)]
        self._n_ids += len(sequence(trace.get("scores"))) - len(scores)
        latency, cost = trace.get("latency"), trace.get("totalCost")
        if latency is None and started and ended:
            latency = (ended - started) / 1e6
        failed = next((each for each in observations if each.get("level") == "ERROR"), None)
        unanswered = failed is not None and trace.get("output") is None
        yield Sample(
            str(trace.get("experimentItemId") or require(trace, "id")),
            require(trace, "input"),
            None if unanswered else trace.get("output"),
            problem=str(trace.get("name") or ""),
            system=str(trace.get("release") or trace.get("experimentName") or ""),
            expected=trace.get("expectedOutput"),
            attributes=named_values(trace.get("metadata")),
            error=("ObservationError", str(mapping(failed).get("statusMessage"))) if unanswered else None,
            grades=by_name(_grades(scores)),
            usage=_usage(observations, cost),
            started=started,
            duration=round(latency * 1e6) if isinstance(latency, int | float) else None,
            spans=list(_spans(observations, started or 0)),
        )


def _in_camel_case(record: Mapping[str, Any]) -> dict[str, Any]:
    return {_SNAKE.sub(lambda found: found[1].upper(), name): value for name, value in record.items()}


def _grades(scores: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Grade]]:
    for score in scores:
        value, label = score.get("value"), score.get("stringValue")
        if score.get("dataType") == "BOOLEAN" and isinstance(value, int | float):
            value = bool(value)
        elif score.get("dataType") == "CATEGORICAL":
            value, label = label if label is not None else value, None
        grade = Grade.of(value, explanation=score.get("comment"), label=label if isinstance(label, str) else None)
        yield str(require(score, "name")), grade


def _usage(observations: Sequence[Mapping[str, Any]], cost: Any) -> dict[str, Any] | None:
    used: dict[str, Any] = {}
    for ours, theirs in (("input_tokens", "input"), ("output_tokens", "output")):
        counts = [n for each in observations if type(n := mapping(each.get("usage")).get(theirs)) is int]
        if counts:
            used[ours] = sum(counts)
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost > 0:
        used |= {"cost": float(cost), "currency": "USD"}
    return used or None


def _spans(observations: Sequence[Mapping[str, Any]], started: int) -> Iterator[list[Any]]:
    """The observations, parents before children, by their start."""
    times = {id(each): microseconds(each.get("startTime")) or started for each in observations}
    numbers: dict[str, int] = {}
    for number, each in enumerate(sorted(observations, key=lambda each: times[id(each)]), 1):
        numbers[str(each.get("id"))] = number
        parent = numbers.get(str(each.get("parentObservationId")), 0)
        start, end = times[id(each)], microseconds(each.get("endTime"))
        duration = end - start if end is not None and end >= start else None
        kind = _KINDS.get(str(each.get("type")), "span")
        status = 2 if each.get("level") == "ERROR" else 1
        name, attributes = str(each.get("name") or kind), {"model": each["model"]} if each.get("model") else None
        yield [
            number, parent, name, kind, max(0, start - started), duration, status,
            each.get("input"), each.get("output"), attributes, None,
        ]  # fmt: skip
