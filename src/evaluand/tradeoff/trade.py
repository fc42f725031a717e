"""`Trade`: a trade-off that an experiment asks for."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from evaluand.aggregation.aggregator import Measure
from evaluand.core.errors import SpecError, collect_warnings
from evaluand.evaluation.evaluator import Evaluation
from evaluand.tradeoff.confidences import Confidences, Thresholds
from evaluand.tradeoff.evaluations import (
    CONFIDENT,
    UNIT,
    Label,
    check_objective,
    confidences_of,
    default_metric,
    lacks_confidences,
    missing_confidences,
    of_evaluations,
    resolve_objective,
    unclear_scorer,
)
from evaluand.tradeoff.objectives import parse_objectives, parse_text
from evaluand.tradeoff.points import Tradeoff, solve


@dataclass(frozen=True, kw_only=True)
class Trade:
    """A trade-off between the tasks of an experiment.

    Args:
        objectives: two or more, such as `mean(quality)` and `mean(quality) difference by topic`.
        name: a name for it; by default its objectives.
        tasks: the tasks to compare; all by default.
        thresholds: if set, the tasks are models with confidences, which have a point at each of these thresholds; see
            `Confidences.thresholds`. Otherwise each task is a point, by its stored scores.
        label: the positive label.
        scorer: the scorer whose confidences are read.

    Raises:
        SpecError: these do not fit together.

    Example:
        >>> Trade(objectives=["mean(fit)", "mean(fit) difference by topic"]).name
        'mean(fit), mean(fit) difference by topic'
    """

    objectives: Sequence[str]
    name: str = ""
    tasks: Sequence[str] = ()
    thresholds: Thresholds | int | Sequence[float] | None = None
    label: Label | None = None
    scorer: str | None = None

    def __post_init__(self) -> None:
        parts = [parse_text(text) for text in self.objectives]
        if len({(one["metric"], one["scorer"], one["disparity"], one["by"]) for one in parts}) < 2:
            raise SpecError("a trade-off needs two different objectives or more")
        if not self.name:
            object.__setattr__(self, "name", ", ".join(self.objectives))
        if self.thresholds is not None:
            for text, one in zip(self.objectives, parts, strict=True):
                if one["scorer"] is not None:
                    raise SpecError(f"{text!r}: at thresholds, name the scorer of all objectives under scorer")
            parse_objectives(self.objectives)
            _ANY.thresholds("", self.thresholds)
        for text, one in zip(self.objectives, parts, strict=True):
            check_objective(text, one)

    @property
    def spec(self) -> dict[str, Any]:
        """The form stored with an aggregation."""
        return {name: list(v) if isinstance(v, tuple | list) else v for name, v in dataclasses.asdict(self).items()}

    @property
    def by(self) -> tuple[str, ...]:
        """The attributes whose groups are compared."""
        return tuple(dict.fromkeys(name for text in self.objectives for name in parse_text(text)["by"]))

    @property
    def scorers(self) -> set[str]:
        """The scorers that it names."""
        return {name for name in (self.scorer, *(parse_text(text)["scorer"] for text in self.objectives)) if name}

    def misfits(self, scorers: Mapping[str, Collection[str]], declared: Sequence[Measure]) -> list[str]:
        """Everything that does not fit the scorers, as far as is known before anything is scored.

        Args:
            scorers: name → the columns of its table.
            declared: see `of_evaluations`.
        """
        if self.thresholds is not None:
            known = [name for name, columns in scorers.items() if set(columns) >= CONFIDENT]
            fits = self.scorer in known or (self.scorer is None and len(known) == 1)
            return [] if fits else [unclear_scorer(known)]
        faults = []
        options = self.scorer, self.label, lambda kind, _: default_metric(kind, self.label, UNIT)
        for text in self.objectives:
            try:
                _, measures = resolve_objective(text, [*scorers], declared, *options)
                for measure in measures:
                    measure.metric.columns_for(scorers[measure.scorer])
            except SpecError as error:
                faults.append(str(error) if str(error).startswith(repr(text)) else f"{text!r}: {error}")
        return faults

    def points(self, evaluations: Mapping[str, Evaluation], declared: Sequence[Measure] | None = None) -> Tradeoff:
        """The points with their intervals; warnings become their notes.

        Args:
            evaluations: task → its evaluation.
            declared: see `of_evaluations`.

        Raises:
            SpecError: a task is not among them, or the scores do not fit the objectives.
            DataError: see `confidences_of`.
        """
        for task in self.tasks:
            if task not in evaluations:
                raise SpecError(f"the task {task!r} was not run; there are: {', '.join(evaluations)}")
        chosen = {name: evaluations[name] for name in self.tasks or evaluations}
        with collect_warnings() as notes:
            points = self._points(chosen, declared)
        return replace(points, notes=tuple(notes))

    def _points(self, evaluations: Mapping[str, Evaluation], declared: Sequence[Measure] | None) -> Tradeoff:
        options: dict[str, Any] = {"label": self.label, "scorer": self.scorer, "declared": declared}
        if self.thresholds is None:
            return of_evaluations(evaluations, self.objectives, system=self.name, **options)
        confidences = confidences_of(evaluations, self.by, system=self.name, **options)
        return solve(confidences, self.objectives, self.thresholds).with_intervals()


def trades_without_confidences(trades: Sequence[Trade], evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    """A message for each trade-off at thresholds that has no points because models have no confidences."""
    for trade in trades:
        if trade.thresholds is None:
            continue
        tasks = [name for name in trade.tasks or evaluations if name in evaluations]
        missing = [name for name in tasks if lacks_confidences(evaluations[name], trade.scorer)]
        if missing:
            yield f"the trade-off {trade.name!r} has no points: {missing_confidences(missing)}"


_ANY: Final = Confidences(np.array([True]), {"": np.array([0.5])}, {})
