"""Langfuse's traces with scores and observations, as its API and its pages have them: JSON, JSON lines or CSV.

Items of an experiment are samples too, and observations of one trace in a list of observations are a sample together.
Names may be in camel or in snake case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeGuard

from evaluand.core.errors import DataError, plural
from evaluand.core.files.json_items import parse_json
from evaluand.exchange.importer import Importer, LogFile, json_records, table_records
from evaluand.exchange.sample import (
    Grade,
    Sample,
    by_name,
    cell_value,
    mapping,
    microseconds,
    named_values,
    parents_first,
    parse_object,
    require,
    sequence,
)

_KEYS: Final = frozenset(("input", "output", "projectId", "timestamp", "htmlPath", "latency", "bookmarked", "scores"))
_TABLE: Final = frozenset(
    (
        *("id", "timestamp", "name", "userId", "sessionId", "release", "version", "environment", "tags", "bookmarked"),
        *("public", "input", "output", "metadata", "comments"),
    )
)
"""The columns of an exported table of traces that are no scores."""
_OF_OBSERVATIONS: Final = ({"traceId", "parentObservationId"}, {"trace_id", "parent_observation_id"})
_SNAKE: Final = re.compile("(?<=[a-z])_([a-z])")
_KINDS: Final = {"GENERATION": "llm", "TOOL": "tool", "RETRIEVER": "retriever", "AGENT": "agent", "CHAIN": "chain"}


class Langfuse(Importer):
    """Traces of Langfuse."""

    kind: ClassVar[str] = "langfuse"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._ids = Counter[str]()  # of scores and observations that the file does not have
        self._n_traces = self._n_split = 0  # of lists of observations; those with several at the top

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        keys = file.keys | file.columns
        if keys <= {"data", "meta"} and "data" in keys:
            return (b'"projectId"' in file.head and b'"traceId"' in file.head) or any(
                mark in file.head for mark in (b'"htmlPath"', b'"experimentItemId"')
            )
        if keys == {"trace", "observations"} or _has_observations(file):
            return b'"projectId"' in file.head or b'"project_id"' in file.head
        return {"id", "input", "output"} <= keys and (
            len(_KEYS & keys) > 4 or "experimentItemId" in keys or {"timestamp", "bookmarked", "public"} <= keys
        )

    def records(self) -> Iterator[tuple[str, Any]]:
        if _has_observations(self.file):
            yield from self.grouped_records(_trace_id, "data")
        else:
            yield from table_records(self.path) if self.file.columns else json_records(self.path, "data")
        if self._n_split:
            self.notes.append(
                f"{self.path.name}: {self._n_split:,} of {self._n_traces:,} traces have several observations at the"
                " top, of which the first has the input and output"
            )
        if self._ids.total():
            counted = " and ".join(plural(n, what) for what, n in self._ids.items() if n)
            self.notes.append(
                f"{self.path.name}: of {counted} there are only the ids; export traces with their details"
            )

    def samples(self, record: Any) -> Iterable[Sample]:
        trace = self._trace(record)
        if "input" not in trace:
            raise ValueError("there is no input; export traces, or observations with the fields core, basic and io")
        started, ended = (
            microseconds(trace.get("timestamp", trace.get("startTime"))),
            microseconds(trace.get("endTime")),
        )
        scores, observations = self._known(trace, "score"), self._known(trace, "observation")
        latency = trace.get("latency")
        if latency is None and started and ended:
            latency = (ended - started) / 1e6
        failed = next((each for each in observations if each.get("level") == "ERROR"), None)
        unanswered = failed is not None and trace.get("output") is None
        yield Sample(
            str(trace.get("experimentItemId") or require(trace, "id")),
            trace["input"],
            None if unanswered else trace.get("output"),
            problem=str(trace.get("name") or ""),
            system=str(trace.get("release") or trace.get("experimentName") or ""),
            expected=trace.get("expectedOutput"),
            attributes=named_values(trace.get("metadata")),
            error=("ObservationError", str(mapping(failed).get("statusMessage"))) if unanswered else None,
            grades=by_name(_grades(scores)),
            usage=_usage(trace, observations),
            started=started,
            duration=round(latency * 1e6) if isinstance(latency, int | float) else None,
            spans=list(_spans(observations, started or 0)),
        )

    def _known(self, trace: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
        """The scores or observations of a trace; counts those of which there is only the id."""
        listed = sequence(trace.get(f"{what}s"))
        known = [_in_camel_case(each) for each in listed if isinstance(each, Mapping)]
        self._ids[what] += len(listed) - len(known)
        return known

    def _trace(self, record: Any) -> dict[str, Any]:
        """A trace as the API has it, of any record."""
        if isinstance(record, list):
            trace = _trace_of_observations([_in_camel_case(mapping(each)) for each in record])
            self._n_traces += 1
            self._n_split += trace["isSplit"]
            return _with_values(trace)
        row = parse_object(record)
        if row.keys() == {"trace", "observations"}:
            return _with_values({**mapping(row["trace"]), "observations": row["observations"]})
        if "bookmarked" in row and not {"projectId", "scores"} & row.keys():
            return _with_values({**row, "scores": list(_scores_of_columns(row))})
        return _in_camel_case(row)


def _has_observations(file: LogFile) -> bool:
    """Whether a file is a list of observations, or a page of one."""
    keys = file.keys_under("data") if file.keys <= {"data", "meta"} else file.keys
    return "experimentItemId" not in keys and any(known <= keys for known in _OF_OBSERVATIONS)


def _trace_id(observation: Any) -> str:
    return str(require(observation, "traceId", "trace_id"))


def _trace_of_observations(observations: list[dict[str, Any]]) -> dict[str, Any]:
    """The trace of these observations: what was asked and answered at the top, where the first one counts."""
    ids = {each.get("id") for each in observations}
    tops = [each for each in observations if each.get("parentObservationId") not in ids]
    tops.sort(key=lambda each: str(each.get("startTime")))
    first = next((each for each in tops if each.get("isRootObservation")), (tops or observations)[0])
    trace = {name: first[name] for name in ("input", "output", "metadata", "startTime", "endTime") if name in first}
    return trace | {
        "id": first["traceId"],
        "name": first.get("traceName") or first.get("name"),
        "release": first.get("release"),
        "observations": observations,
        "isSplit": len(tops) > 1,
    }


def _with_values(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace whose input, output and metadata may be texts of JSON."""
    return trace | {name: _value(trace[name]) for name in ("input", "output", "metadata") if name in trace}


def _value(text: Any) -> Any:
    """What a text of JSON says, if it is an object, a list or a text itself; anything else as it is."""
    if not isinstance(text, str) or not text.startswith(("{", "[", '"')):
        return text
    try:
        return parse_json(text, "")
    except DataError:
        return text


def _scores_of_columns(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The scores in a row of an exported table of traces: of each name a column with the list of its values."""
    for name, values in row.items():
        if name not in _TABLE:
            values = cell_value(values) if isinstance(values, str) else values
            for value in values if isinstance(values, list) else [values]:
                if value is not None:
                    yield {"name": name, "value": value}


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


def _usage(trace: Mapping[str, Any], observations: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    used: dict[str, Any] = {}
    for ours, theirs in (("input_tokens", "input"), ("output_tokens", "output")):
        found = (mapping(each.get("usage") or each.get("usageDetails")).get(theirs) for each in observations)
        counts = [n for n in found if type(n) is int]
        if counts:
            used[ours] = sum(counts)
    costs = [each.get("totalCost") for each in observations]
    cost = trace.get("totalCost", sum(each for each in costs if _is_number(each)))
    if _is_number(cost) and cost > 0:
        used |= {"cost": float(cost), "currency": "USD"}
    return used or None


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _spans(observations: Sequence[Mapping[str, Any]], started: int) -> Iterator[list[Any]]:
    """The observations, parents before children, by their start."""

    def start_of(observation: Mapping[str, Any]) -> int:
        return microseconds(observation.get("startTime")) or started

    for number, parent, each in parents_first(observations, "parentObservationId", start_of):
        start, end = start_of(each), microseconds(each.get("endTime"))
        duration = end - start if end is not None and end >= start else None
        kind = _KINDS.get(str(each.get("type")), "span")
        status = 2 if each.get("level") == "ERROR" else 1
        name, attributes = str(each.get("name") or kind), {"model": each["model"]} if each.get("model") else None
        yield [
            number, parent, name, kind, max(0, start - started), duration, status,
            each.get("input"), each.get("output"), attributes, None,
        ]  # fmt: skip
