"""`SystemScores`: what every door for predictions returns, whether for one system or several."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from evaluand.aggregation.aggregator import Measure, MeasureResults, curve_points
from evaluand.aggregation.disparity import DisparityRow
from evaluand.aggregation.groups import MetricRow
from evaluand.aggregation.metric_errors import AbsentLabel
from evaluand.comparison.checking import GateResult
from evaluand.core import identity
from evaluand.core.errors import SpecError
from evaluand.core.files.json import none_if_nan
from evaluand.core.near import missing_attribute
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.curves import Drawn
from evaluand.metrics.names import has_name, is_name, name_in_tables
from evaluand.predictions.columns.notes import Notes, note_lines
from evaluand.predictions.columns.proposals import Proposals, Target
from evaluand.predictions.steps import Results
from evaluand.report.facts.aggregation import clustering, disparities_facts, metrics_facts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.gates import list_gates
from evaluand.report.facts.report import results_facts
from evaluand.report.metric_labels import add_labels
from evaluand.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

_FLIPS: Final = 3
_NUMBERS: Final = ("value", "low", "high", "worst", "best", "family_low", "family_high")


class GradedSystems(Protocol):
    """Systems that are graded, from which artifacts are made when they are asked for."""

    @property
    def scorer_name(self) -> str:
        """The name of the scorer that metrics read."""

    @property
    def cluster_column(self) -> str | None:
        """The column whose equal values mark rows that are not independent."""

    @property
    def measures(self) -> Sequence[Measure]:
        """The metrics, with further names that they are called by."""

    def unsaved(self) -> Results:
        """The results in memory."""

    def save(self, store: Store, name: str) -> Results:
        """The results in a store."""


@dataclass(frozen=True)
class Values:
    """The values of systems, and the disparities between their groups.

    Attributes:
        metrics: (system, value), overall and then by group.
        disparities: (system, disparity), if requested.
    """

    metrics: Sequence[tuple[str, MetricRow]]
    disparities: Sequence[tuple[str, DisparityRow]] = ()

    @classmethod
    def of(cls, results: Results) -> Self:
        """Those of an aggregation."""
        aggregation = results.aggregation
        assert aggregation is not None  # predictions are always graded
        return cls(
            _read_rows(MetricRow, metrics_facts(aggregation)),
            _read_rows(DisparityRow, disparities_facts(aggregation)),
        )

    def and_of(self, system: str, results: MeasureResults) -> Values:
        """These, and those of measures that were computed for a system."""
        metrics = [(system, row) for _, row in results.values]
        return Values(
            [*self.metrics, *metrics], [*self.disparities, *((system, row) for _, row in results.disparities)]
        )


def _read_rows(kind: Any, facts: Iterable[Facts]) -> list[tuple[str, Any]]:
    rows = []
    for each in facts:
        cells = {name: _read_cell(name, each[name]) for name in kind._fields}
        rows.append((each["task"], kind(**cells)))
    return rows


def _read_cell(name: str, value: Any) -> Any:
    if value is None and name in _NUMBERS:
        return math.nan
    return tuple(value) if isinstance(value, list) and name != "data" else value


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SystemScores:
    """The scores of systems whose predictions exist already; prints as a table and can be saved.

    Attributes:
        systems: the names of the systems, in order; the first of several is the baseline of gates.
        values: each metric's value overall, then by group, and the disparities between groups.
        gates: the result of each gate for each system that is judged.
        target: what the truth holds; None of images and problems.
        proposals: the metrics that suit it; None of images and problems.
        about: where truth and predictions are from, as far as more than their names is known.
        curves: the curves of the values, with what is the same for all points; None where artifacts have them.

    Example:
        >>> from evaluand.predictions.evaluating import evaluate
        >>> result = evaluate([1, 0, 1], [1, 1, 1], metrics="accuracy")
        >>> result.systems, result["accuracy"].n, result.passed
        (['predictions'], 3, True)
    """

    systems: Sequence[str]
    values: Values
    gates: Sequence[GateResult]
    noted: Notes = field(default_factory=Notes)
    graded: GradedSystems
    made: Results | None = None  # what was needed for gates, a comparison or a store
    refused: Values = field(default_factory=lambda: Values(()))
    target: Target | None = None
    proposals: Proposals | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    curves: Sequence[tuple[str, dict[str, Any], Drawn]] | None = None

    @property
    def rows(self) -> tuple[MetricRow, ...]:
        """Each metric's value overall, then by group, of one system after the other."""
        return tuple(row for _, row in self._pairs)

    @property
    def _pairs(self) -> Sequence[tuple[str, MetricRow]]:
        """(system, value), those of refused metrics last."""
        return (*self.values.metrics, *self.refused.metrics)

    @property
    def disparities(self) -> tuple[DisparityRow, ...]:
        """The disparities between groups, if requested."""
        return tuple(row for _, row in self.values.disparities)

    @property
    def notes(self) -> Sequence[str]:
        """Findings about the data, and assumptions made."""
        return self.noted.sentences()

    @cached_property
    def results(self) -> Results:
        """Runs, evaluations, values and the comparison, as of an experiment."""
        if self.made is not None:
            return self.made
        with warnings.catch_warnings(action="ignore", category=AbsentLabel):  # it was said when values were computed
            return self.graded.unsaved()

    @property
    def passed(self) -> bool:
        """Whether all gates hold."""
        return all(gate.passed for gate in self.gates)

    def __getitem__(self, name: str | tuple[str, str]) -> MetricRow:
        """The value of a metric over all rows; of several systems that of `(system, metric)`.

        Raises:
            KeyError: there is no such metric or system.
        """
        system, metric = name if isinstance(name, tuple) else (self.systems[0], name)
        if not isinstance(name, tuple) and len(self.systems) > 1:
            raise KeyError(f"there are several systems; write result[{self.systems[0]!r}, {name!r}]")
        if system not in self.systems:
            raise KeyError(f"there is no system {system!r}; there are {', '.join(self.systems)}")
        overall = [row for own, row in self._pairs if own == system and not row.by]
        named = {each.metric.signature for each in self.graded.measures if metric in each.called}
        called = [row for row in overall if has_name(row.signature, metric) or row.signature in named]
        if called:  # with the fewest parameters that the name does not say
            return min(called, key=lambda row: row.signature.count("="))
        for row in overall:
            if row.metric == metric:
                return row
        known = dict.fromkeys(name_in_tables(row.signature) for row in overall)
        raise KeyError(f"{metric!r} was not requested; there are {', '.join(known)}")

    def __iter__(self) -> Iterator[MetricRow]:
        """The rows."""
        return iter(self.rows)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and is_name(name):
            raise AttributeError(f"a result has no attribute {name!r}; write result[{name!r}].value")
        raise missing_attribute(name, "a result")

    def to_dict(self) -> list[Facts]:
        """Every value as plain data, NaN as None; of several systems with the `system`."""
        several = len(self.systems) > 1
        return [({"system": system} if several else {}) | _plain(row) for system, row in self._pairs]

    def to_json(self) -> str:
        """Every value as JSON."""
        return identity.encode(self.to_dict(), indent=True).decode()

    def to_pandas(self) -> pd.DataFrame:
        """Every value as a row of a frame.

        `by` is the grouping, missing for the value over all rows; `group` is the group, missing for the group of rows
        without a value. Of a grouping by several columns both have the parts, separated by commas.

        Raises:
            SpecError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise SpecError("to_pandas needs pandas: pip install 'evaluand[pandas]'") from None
        records = self.to_dict()
        for record in records:
            record["by"], record["group"] = _name_group(record["by"])
        several = ["system"] if len(self.systems) > 1 else []
        others = (name for name in MetricRow._fields if name not in ("metric", "by"))
        return pd.DataFrame(records, columns=[*several, "metric", "by", "group", *others])

    def save(self, store: Store, name: str) -> Results:
        """Stores the result as a dataset, and for each system a run of recorded predictions with its evaluation.

        Runs and evaluations are called `NAME/SYSTEM`, the aggregation and the comparison `NAME`. Artifacts that are
        already stored stay, and nothing is graded a second time.

        Args:
            store: where; `DirectoryStore()` is the command line's.

        Example:
            >>> from evaluand.predictions.evaluating import evaluate
            >>> from evaluand.store.store import MemoryStore
            >>> saved = evaluate([1, 0, 1], [1, 1, 1]).save(MemoryStore(), "coin")
            >>> saved.tasks[0].run.counts
            {'completed': 3}
        """
        with warnings.catch_warnings(action="ignore", category=AbsentLabel):
            return self.graded.save(store, name)

    def to_evaluation(self, store: Store, name: str) -> Evaluation:
        """The evaluation of the one system in a store, by which `compare` compares results; see `save`."""
        if len(self.systems) > 1:
            raise SpecError("a result of several systems has their comparison already: result.results.comparison")
        [evaluation] = self.save(store, name).evaluations.values()
        return evaluation

    def facts(self, flips: int = _FLIPS) -> Facts:
        """The values, the comparison and the gates as plain data.

        Args:
            flips: how many examples of each pair to list as won and as lost.
        """
        results = None if self.made is None and self.curves is not None else self.results
        facts = results_facts([], None) if results is None else results_facts(results.tasks, results.aggregation)
        if results is None:
            facts["disparities"] = [{"task": system} | _plain(row) for system, row in self.values.disparities]
            facts["curves"] = [_curve_facts(*each) for each in self.curves or ()]
        facts["metrics"] = add_labels(self._metric_facts())
        comparison = results.comparison.to_dict() if results and results.comparison else None
        if comparison is not None:
            comparison["flips"] = _first_flips(comparison["flips"], flips)
        target = self.target
        held = None if target is None else {"column": target.name, "kind": target.kind, "positive": target.positive}
        more = {"comparison": comparison, "gates": list_gates(self.gates), "notes": [*self.notes]}
        return {**self.about, **({} if held is None else {"target": held}), **facts, **more}

    def _metric_facts(self) -> list[Facts]:
        declared = self.graded.cluster_column
        scorer = {"scorer": self.graded.scorer_name}
        return [
            {"task": system} | scorer | (facts := _plain(row)) | clustering(row.data, declared, facts["n_scored"])
            for system, row in self._pairs
        ]

    def __str__(self) -> str:
        from evaluand.report.terminal.comparison import comparison_table, gates_table
        from evaluand.report.terminal.disparities import disparities_table
        from evaluand.report.terminal.plain_text import plain_text
        from evaluand.report.terminal.report import metrics_table

        parts: list[Any] = [metrics_table(self._metric_facts())]
        if self.values.disparities:
            rows = [{"task": system} | _plain(row) for system, row in self.values.disparities]
            parts += ["", disparities_table(rows)]
        if (comparison := self._comparison()) is not None:
            parts += ["", comparison_table(comparison.to_dict() | {"flips": []})]
        parts += ["", gates_table(list_gates(self.gates))] if self.gates else []
        return "\n".join([plain_text(*parts, width=100), *note_lines(self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table of a notebook."""
        from evaluand.report.html.notebook import values_html

        comparison = self._comparison()
        pairs = [] if comparison is None else comparison.to_dict()["pairs"]
        sentences = [*(pair["verdict"] for pair in pairs), *map(str, self.gates), *note_lines(self.notes)]
        return values_html(self._metric_facts(), sentences)

    def _comparison(self) -> Any:
        return self.results.comparison if len(self.systems) > 1 else None


def _plain(row: MetricRow | DisparityRow) -> Facts:
    return {name: none_if_nan(value) for name, value in row._asdict().items()}


def _curve_facts(task: str, head: Mapping[str, Any], curve: Drawn) -> Facts:
    """A curve as that of an aggregation."""
    points = [*curve_points({}, curve)]
    names = ("x", "y", "low", "high", "threshold", "n", "label")
    of_points = {name: [point.get(name) for point in points] for name in names}
    return {"task": task, **head, "by": dict(head["by"]), "points": of_points}


def _name_group(by: Mapping[str, str | None]) -> tuple[str | None, str | None]:
    """The names and the values of a grouping."""
    if len(by) > 1:
        return ",".join(by), ",".join("" if value is None else value for value in by.values())
    return next(iter(by.items()), (None, None))


def _first_flips(flips: Sequence[Facts], most: int) -> list[Facts]:
    counts: dict[Any, int] = {}
    chosen = []
    for flip in flips:
        key = (flip["pair"], flip["flip"])
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= most:
            chosen.append(flip)
    return chosen
