"""LangSmith's runs as JSON lines or a JSON list: root runs are samples, the runs below them spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from evaluand.experiment.imports.importer import GroupedLines, Importer, LogFile, json_records
from evaluand.experiment.imports.sample import (
    Grade,
    Sample,
    mapping,
    microseconds,
    parse_object,
    plain_attributes,
    require,
)

_KINDS: Final = frozenset(("llm", "tool", "chain", "retriever", "embedding", "prompt", "parser"))


class LangSmith(Importer):
    """Runs of LangSmith."""

    kind: ClassVar[str] = "langsmith"

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return {"run_type", "inputs"} <= file.keys

    def records(self) -> Iterator[tuple[str, Any]]:
        if self.file.head.lstrip()[:1] == b"[":
            for where, text in json_records(self.path):
                yield where, text
            return
        lines = GroupedLines(self.path, lambda run: str(run.get("trace_id") or require(run, "id")))
        yield from lines
        for where, reason in lines.faults:
            self.leave_out(where, reason)

    def samples(self, record: Any) -> Iterable[Sample]:
        runs = [parse_object(record)] if isinstance(record, bytes) else record
        roots = [run for run in runs if not run.get("parent_run_id")]
        if not roots:
            raise ValueError("none of the runs of this trace is its root")
        for root in roots:
            others = [run for run in runs if run is not root] if len(roots) == 1 else []
            yield _sample(root, [*others, *root.get("child_runs", ())])


def _sample(root: Mapping[str, Any], below: list[Mapping[str, Any]]) -> Sample:
    started, ended = microseconds(root.get("start_time")), microseconds(root.get("end_time"))
    error = root.get("error")
    return Sample(
        str(root.get("reference_example_id") or require(root, "id")),
        require(root, "inputs"),
        None if error else root.get("outputs"),
        system=str(root.get("name") or ""),
        expected=root.get("reference_outputs"),
        attributes=plain_attributes(mapping(root.get("extra")).get("metadata")),
        error=("RunError", str(error)) if error else None,
        grades=dict(_grades(root)),
        usage=_usage(root),
        started=started,
        duration=ended - started if started is not None and ended is not None and ended >= started else None,
        spans=list(_spans(below, str(root.get("id")), started or 0)),
    )


def _grades(run: Mapping[str, Any]) -> Iterator[tuple[str, Grade]]:
    """Single feedback where it is in the file, otherwise the averages that LangSmith states for a run."""
    feedback = run.get("feedback")
    if isinstance(feedback, list):
        for each in feedback:
            score = each.get("score")
            value = each.get("value") if score is None else score
            yield str(require(each, "key")), Grade.of(value, explanation=each.get("comment"))
        return
    for name, stats in mapping(run.get("feedback_stats")).items():
        yield str(name), Grade.of(mapping(stats).get("avg"))


def _usage(run: Mapping[str, Any]) -> dict[str, Any] | None:
    used: dict[str, Any] = {}
    for ours, theirs in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
        if type(run.get(theirs)) is int:
            used[ours] = run[theirs]
    try:
        cost = float(run.get("total_cost") or 0)  # some exports write it as text
    except (TypeError, ValueError):
        cost = 0.0
    return used | ({"cost": cost, "currency": "USD"} if cost > 0 else {}) or None


def _spans(runs: list[Mapping[str, Any]], root: str, started: int) -> Iterator[list[Any]]:
    numbers = {root: 0}
    times = {id(run): microseconds(run.get("start_time")) or started for run in runs}
    for number, run in enumerate(sorted(runs, key=lambda run: times[id(run)]), 1):
        numbers[str(run.get("id"))] = number
        start, end = times[id(run)], microseconds(run.get("end_time"))
        kind = str(run.get("run_type"))
        name, parent = str(run.get("name") or kind), numbers.get(str(run.get("parent_run_id")), 0)
        duration = end - start if end is not None and end >= start else None
        yield [
            number, parent, name, kind if kind in _KINDS else "span", max(0, start - started), duration,
            2 if run.get("error") else 1, run.get("inputs"), run.get("outputs"), None, None,
        ]  # fmt: skip
