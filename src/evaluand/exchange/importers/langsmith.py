"""LangSmith's runs as JSON lines or a JSON list: root runs are samples, the runs below them spans.

Rows of an experiment's `to_pandas()`, as JSON or CSV, are samples too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from evaluand.exchange.importer import Importer, LogFile, table_records
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

_KINDS: Final = frozenset(("llm", "tool", "chain", "retriever", "embedding", "prompt", "parser"))


class LangSmith(Importer):
    """Runs of LangSmith."""

    kind: ClassVar[str] = "langsmith"

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return {"run_type", "inputs"} <= file.keys or _has_rows(file)

    def records(self) -> Iterator[tuple[str, Any]]:
        if _has_rows(self.file):
            yield from table_records(self.path)
            return
        yield from self.grouped_records(lambda run: str(mapping(run).get("trace_id") or require(run, "id")))

    def samples(self, record: Any) -> Iterable[Sample]:
        if not isinstance(record, list):
            yield _sample_of_row(parse_object(record), are_texts=bool(self.file.columns))
            return
        runs = [mapping(run) for run in record]
        roots = [run for run in runs if not run.get("parent_run_id")]
        if not roots:
            raise ValueError("none of the runs of this trace is its root")
        below: dict[str, list[Mapping[str, Any]]] = {str(root.get("id")): [] for root in roots}
        tops = _tops(runs)
        for run in runs:
            if run.get("parent_run_id"):
                top = tops[str(run.get("id"))]
                if top in below or len(roots) == 1:
                    below.get(top, below[str(roots[0].get("id"))]).append(run)
                else:
                    self.leave_out(f"{self.path}: run {run.get('id')}", "its parent is none of the runs of its trace")
        for root in roots:
            yield _sample(root, _below(root, below[str(root.get("id"))]))


def _tops(runs: list[Mapping[str, Any]]) -> dict[str, str]:
    """For each run below another, the id of the one at the top, as far as parents are known."""
    parents = {str(run.get("id")): str(run["parent_run_id"]) for run in runs if run.get("parent_run_id")}
    tops: dict[str, str] = {}
    for at in parents:
        path: dict[str, None] = {}
        while at in parents and at not in tops and at not in path:  # runs may be each other's parents
            path[at] = None
            at = parents[at]
        tops |= dict.fromkeys(path, tops.get(at, at))
    return tops


def _has_rows(file: LogFile) -> bool:
    names = file.keys | file.columns
    return "execution_time" in names and any(name.startswith("inputs.") for name in names)


def _sample_of_row(row: Mapping[str, Any], *, are_texts: bool) -> Sample:
    """The sample of a row whose columns are `inputs.…`, `outputs.…`, `reference.…` and `feedback.…`."""
    parts: dict[str, dict[str, Any]] = {}
    for key, value in row.items():
        part, _, name = key.partition(".")
        if name and value is not None:
            parts.setdefault(part, {})[name] = value
    seconds, error, scores = row.get("execution_time"), row.get("error"), parts.get("feedback", {})
    if are_texts:
        seconds, scores = cell_value(seconds or ""), {name: cell_value(text) for name, text in scores.items()}
    return Sample(
        str(row.get("example_id") or require(row, "id")),
        parts.get("inputs"),
        None if error else parts.get("outputs"),
        expected=parts.get("reference"),
        error=("RunError", str(error)) if error else None,
        grades={name: Grade.of(value) for name, value in scores.items()},
        duration=round(seconds * 1e6) if isinstance(seconds, int | float) else None,
    )


def _below(root: Mapping[str, Any], listed: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The runs below a root: those of its trace, and those that are nested in a run, each once."""
    found: dict[str, Mapping[str, Any]] = {}
    waiting = [*listed, *map(mapping, sequence(root.get("child_runs")))]
    while waiting:
        run = waiting.pop()
        if found.setdefault(str(require(run, "id")), run) is run:
            waiting += map(mapping, sequence(run.get("child_runs")))
    return [*found.values()]


def _sample(root: Mapping[str, Any], below: list[Mapping[str, Any]]) -> Sample:
    started, ended = microseconds(root.get("start_time")), microseconds(root.get("end_time"))
    error = root.get("error")
    return Sample(
        str(root.get("reference_example_id") or require(root, "id")),
        require(root, "inputs"),
        None if error else root.get("outputs"),
        system=str(root.get("name") or ""),
        expected=root.get("reference_outputs"),
        attributes=named_values(mapping(root.get("extra")).get("metadata")),
        error=("RunError", str(error)) if error else None,
        grades=by_name(_grades(root)),
        usage=_usage(root),
        started=started,
        duration=ended - started if started is not None and ended is not None and ended >= started else None,
        spans=list(_spans(below, started or 0)),
    )


def _grades(run: Mapping[str, Any]) -> Iterator[tuple[str, Grade]]:
    """Single feedback where it is in the file, otherwise the averages that LangSmith states for a run."""
    feedback = run.get("feedback")
    if isinstance(feedback, list):
        for each in map(mapping, feedback):
            score = each.get("score")
            value = each.get("value") if score is None else score
            yield str(require(each, "key")), Grade.of(value, explanation=each.get("comment"))
        return
    for name, stats in mapping(run.get("feedback_stats")).items():
        average, words = mapping(stats).get("avg"), mapping(mapping(stats).get("values"))
        grade = Grade.of(next(iter(words)) if average is None and len(words) == 1 else average)
        if average is None and len(words) > 1:
            said = ", ".join(f"{word} ({n})" for word, n in words.items())
            grade = grade._replace(reason=f"the file has several words here, and how often each was said: {said}")
        yield str(name), grade


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


def _spans(runs: list[Mapping[str, Any]], started: int) -> Iterator[list[Any]]:
    def start_of(run: Mapping[str, Any]) -> int:
        return microseconds(run.get("start_time")) or started

    for number, parent, run in parents_first(runs, "parent_run_id", start_of):
        start, end = start_of(run), microseconds(run.get("end_time"))
        kind = str(run.get("run_type"))
        name = str(run.get("name") or kind)
        duration = end - start if end is not None and end >= start else None
        yield [
            number, parent, name, kind if kind in _KINDS else "span", max(0, start - started), duration,
            2 if run.get("error") else 1, run.get("inputs"), run.get("outputs"), None, None,
        ]  # fmt: skip
