"""Runs with their grades in the formats of other tools.

A format is a kind found by the registry (entry points `evaluand.exporters`), so that no command needs `interop`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Final

import orjson
import pyarrow as pa

from evaluand._version import __version__
from evaluand.aggregation.aggregator import Aggregation, find_summary
from evaluand.core.errors import plural
from evaluand.core.key_columns import INDEX
from evaluand.core.labels import shown_name
from evaluand.evaluation.evaluator import Evaluation
from evaluand.report.export import flat, json_line
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.facts.base import Facts
from evaluand.report.text import SHORT_ID
from evaluand.run.responses import SpanStream
from evaluand.run.runner import Run
from evaluand.store.tables import COMPLETED, is_json
from evaluand.trace.traces import Trace
from evaluand.trace.values import nanoseconds

GROUP = "exporters"


class Exporter(ABC):
    """Writes a run with its grades in the format of another tool.

    Attributes:
        kind: the registered name.
        is_folder: whether the format is several files in a folder.
        notes: sentences for the user about what the format cannot say.
    """

    kind: ClassVar[str]
    is_folder: ClassVar[bool] = False

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._left_out = Counter[str]()

    @abstractmethod
    def write(self, result: Result, path: Path) -> list[Path]:
        """Writes a result, and returns the files.

        Args:
            path: the file to write, or the folder of a format of several files.

        Raises:
            SpecError: the format has no place for such a result.
        """

    def leave_out(self, n: int, what: str) -> None:
        """Counts parts of samples that the format has no place for; `note_left_out` names their number."""
        self._left_out[what] += n

    def note_left_out(self, result: Result) -> None:
        """Notes what was left out of the samples, and of the values."""
        self.notes += [f"{plural(n, what)} left out" for what, n in self._left_out.items() if n]
        self.notes += result.describe_left_out()


@dataclass(frozen=True)
class Sample:
    """One call with its grades.

    Attributes:
        call: its row of `flat(run)`.
        grades: scorer → the rows of `flat(evaluation, scorer)` for this call: several for several answers or targets.
    """

    call: Facts
    grades: Mapping[str, list[Facts]]

    @property
    def input(self) -> Any:
        return role(self.call, "input")

    @property
    def expected(self) -> Any:
        return role(self.call, "expected")

    @property
    def about(self) -> Facts:
        """Attributes and metadata of the example, by name."""
        return {name.partition(".")[2]: value for name, value in self.call.items() if name.startswith(_ABOUT)}

    @property
    def key(self) -> tuple[int, int]:
        """The example and the repeat."""
        return _key(self.call)

    def row(self) -> Facts:
        """The call and its first grades as one flat row: `id`, `input`, …, `exact.value`, `exact.status`, …"""
        call = self.call
        found = {"id": call["id"], "replication": call["replication"], "input": self.input, "expected": self.expected}
        found |= {"status": call["status"], "response": call["response"]}
        found["error"] = None if call["error_type"] is None else f"{call['error_type']}: {call['error_message']}"
        further = ("responses", "duration", "input_tokens", "output_tokens", "cost", "currency")
        found |= {name: value for name, value in call.items() if name in further or name.startswith(_ABOUT)}
        for name, grade in self.first_grades():
            found |= {f"{name}.{column}": grade[column] for column in _GRADE}
            found |= {f"{name}.{column}": value for column, value in own_columns(grade).items()}
        return found

    def first_grades(self) -> Iterator[tuple[str, Facts]]:
        """The grade of the first answer by each scorer, and by target where there are several."""
        return ((name, row) for name, row in self.all_grades() if not row["_response_index_"])

    def all_grades(self) -> Iterator[tuple[str, Facts]]:
        """The grades of all answers, as `first_grades` names them."""
        for rows in self.grades.values():
            yield from ((named(row), row) for row in rows)


def named(row: Facts) -> str:
    """The name of a grade or value: that of its scorer, and of its target where there are several.

    Example:
        >>> named({"scorer": "exact", "target": None}), named({"scorer": "exact", "target": "year"})
        ('exact', 'exact.year')
    """
    return str(row["scorer"]) if row["target"] is None else f"{row['scorer']}.{row['target']}"


def own_columns(grade: Facts) -> Facts:
    """What a scorer says besides value, label, reason and explanation: its own columns and `data`, by name.

    Example:
        >>> own_columns({"scorer": "exact", "value": 1.0, "input": "a", "data": None, "margin": 0.5})
        {'margin': 0.5}
    """
    return {
        name.removeprefix("score."): value
        for name, value in grade.items()
        if value is not None and name not in _OF_EVERY_GRADE and name.partition(".")[0] not in _OF_EXAMPLES
    }


_ABOUT: Final = ("attribute.", "metadata.")
_GRADE: Final = ("status", "value", "label", "reason", "explanation")
_OF_EVERY_GRADE: Final = frozenset(
    [
        *("run", INDEX, "id", "replication", "fold", "_response_index_", "target", "scorer", "response"),
        *_GRADE,
    ]
)
_OF_EXAMPLES: Final = frozenset(("input", "expected", "attribute", "metadata", "weight", "cluster"))


def role(row: Facts, name: str) -> Any:
    """The value of a role in a flat row; of several columns an object.

    Example:
        >>> role({"input": "a"}, "input"), role({"input.x": 1, "input.y": 2}, "input"), role({}, "expected")
        ('a', {'x': 1, 'y': 2}, None)
    """
    parts = {key.partition(".")[2]: value for key, value in row.items() if key.startswith(f"{name}.")}
    return parts or row.get(name)


def text_of(value: Any) -> str:
    """A value as the text that other tools store: JSON if it is not a text; empty for none.

    Example:
        >>> text_of("a"), text_of({"x": 1}), text_of(None)
        ('a', '{"x":1}', '')
    """
    return value if isinstance(value, str) else "" if value is None else json_line(value).decode()


@dataclass(frozen=True)
class Result:
    """A run, its grades and the values of its metrics, as stored.

    Attributes:
        evaluation: None where nothing was graded.
    """

    run: Run
    evaluation: Evaluation | None

    @property
    def problem(self) -> str:
        """What was asked: the name without the system, else the name of the dataset."""
        return self._parts[0]

    @property
    def system(self) -> str:
        """Who answered: the name of the task or imported system and what follows it, or the last part of the name."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[str, str]:
        name, dataset = shown_name(self._name), self.run.dataset.name
        manifest = self.run.manifest
        task = manifest["provenance"].get("origin", {}).get("task") or manifest["spec"]["task"].get("system")
        place = name.rfind(f"/{task}") if task else -1
        if place > 0:
            return name[:place], name[place + 1 :]
        problem, _, system = name.rpartition("/")
        return problem or dataset or "evaluand", system

    @property
    def _name(self) -> str:
        made = [each for each in (self.evaluation, self.run) if each is not None]
        names = [*(each.called for each in made), *(each.name for each in made), self.run.id[:SHORT_ID]]
        return next(name for name in names if name)

    @property
    def scorers(self) -> list[str]:
        return [] if self.evaluation is None else [*self.evaluation.scorers]

    @property
    def newest(self) -> Mapping[str, Any]:
        """The manifest of the evaluation, else that of the run."""
        return self.run.manifest if self.evaluation is None else self.evaluation.manifest

    @property
    def values(self) -> list[Facts]:
        """The values over all rows, as `metrics_facts` has them, each with its `direction`."""
        return [row for row in self._all_values if not row["by"]]

    @cached_property
    def _all_values(self) -> list[Facts]:
        summary = self._summary
        if summary is None or self.evaluation is None:
            return []
        label = summary.label_of(self.evaluation)
        directions = {(each.scorer, each.metric.kind): each.metric.direction for each in summary.measures}
        return [
            row | {"direction": directions.get((row["scorer"], row["metric"]))}
            for row in metrics_facts(summary)
            if row["task"] == label
        ]

    def numbers(self) -> dict[str, Facts]:
        """The values over all rows that are numbers, by the names of scorer and metric, such as `exact.accuracy`."""
        return {
            f"{named(row)}.{row['label'].rpartition(' · ')[0]}": row for row in self.values if row["value"] is not None
        }

    def measured(self) -> dict[str, float]:
        """The `numbers` with the ends of their intervals and their rows (`exact.accuracy.low`), and calls by status."""
        found: dict[str, float] = {f"calls.{status}": n for status, n in self.run.counts.items()}
        for name, row in self.numbers().items():
            found[name] = row["value"]
            parts = ("low", "high", "n", "n_scored")
            found |= {f"{name}.{part}": row[part] for part in parts if row[part] is not None}
        return found

    def describe_left_out(self) -> list[str]:
        """Sentences about the values that are not among `numbers`."""
        by_group = sum(bool(row["by"]) for row in self._all_values)
        others = len(self.values) - len(self.numbers())
        return [
            f"{plural(n, 'value')} {what} left out; `evaluand export NAME --table metrics` has all"
            for n, what in ((by_group, "by group"), (others, "without a number"))
            if n
        ]

    def facts(self) -> Facts:
        """What the result is of, as plain values with dotted names: `dataset.digest`, `scorer.exact.kind`."""
        run, spec = self.run.manifest, self.run.manifest["spec"]
        found = {
            "problem": self.problem,
            "system": self.system,
            "dataset.name": self.run.dataset.name,
            "dataset.digest": self.run.dataset.digest,
            "dataset.examples": spec["examples"],
            "task.kind": spec["task"].get("kind"),
            "task.version": _version(spec["task"]),
            "replications": spec["replications"],
            "seed": spec["seed"],
            "run.id": run["id"],
            "run.digest": run["digest"],
            "git.commit": (self.newest["provenance"].get("git") or {}).get("commit"),
            "evaluand": __version__,
        }
        if self.evaluation is not None:
            found |= {"evaluation.id": self.evaluation.id, "evaluation.digest": self.evaluation.digest}
            for name, scorer in self.evaluation.manifest["spec"]["scorers"].items():
                found |= {f"scorer.{name}.kind": scorer.get("kind"), f"scorer.{name}.version": _version(scorer)}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def _summary(self) -> Aggregation | None:
        return None if self.evaluation is None else find_summary(self.evaluation)

    def samples(self) -> Iterator[Sample]:
        """Every call with its grades, in the order of the examples."""
        grades = {scorer: _Grades(self.evaluation, scorer) for scorer in self.scorers if self.evaluation}
        for row in _rows(flat(self.run)):
            yield Sample(row, {scorer: each.take(_key(row)) for scorer, each in grades.items()})

    def traces(self) -> Iterator[tuple[Sample, Trace]]:
        """Every call with its grades and its trace, whose root is the call; it starts at 0 where no time is known."""
        spans = SpanStream(self.run.spans())
        for sample in self.samples():
            yield sample, self._trace(sample, spans.of(*sample.key))

    def _trace(self, sample: Sample, spans: list[list[Any]]) -> Trace:
        call = sample.call
        start = 0 if call["started"] is None else nanoseconds(call["started"])
        trace = Trace.from_rows(
            spans,
            name=self.system,
            input=sample.input,
            output=call["response"],
            start_ns=start,
            status="ok" if call["status"] == COMPLETED else "error",
        )
        trace.root.end_ns = start + round((call["duration"] or 0) * 1e6) * 1000
        return trace


def _version(spec: Mapping[str, Any]) -> str | None:
    """The version of a task or scorer, or the fingerprint of its code."""
    version = spec.get("version", spec.get("fingerprint"))
    return None if version is None else str(version)


def _key(row: Facts) -> tuple[int, int]:
    return row[INDEX], row["replication"]


def _rows(batches: pa.RecordBatchReader) -> Iterator[Facts]:
    """The rows of a flat table, with JSON parsed."""
    parsed = [field.name for field in batches.schema if is_json(field)]
    for batch in batches:
        for row in batch.to_pylist():
            yield row | {name: orjson.loads(row[name]) for name in parsed if row[name] is not None}


class _Grades:
    """The grades of a scorer by call, read in step with the calls."""

    def __init__(self, evaluation: Evaluation, scorer: str) -> None:
        self._groups = ((key, [*rows]) for key, rows in groupby(_rows(flat(evaluation, scorer)), _key))
        self._next = next(self._groups, None)

    def take(self, key: tuple[int, int]) -> list[Facts]:
        if self._next is None or self._next[0] != key:
            return []
        rows = self._next[1]
        self._next = next(self._groups, None)
        return rows
