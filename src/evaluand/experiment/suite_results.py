"""The results of a suite: scores of systems on problems, mean ranks, means over problems, and cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.macro_means import ResampledProblem, macro_means, resample_problem, seed_of
from evaluand.comparison.ranks import RankedSystems, rank_systems
from evaluand.core.errors import EvaluandError, first_fault, plural
from evaluand.core.files.json import none_if_nan
from evaluand.metrics.names import has_name, name_in_tables
from evaluand.predictions.steps import Result, Results
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.run import missing_facts
from evaluand.report.usage import total_used
from evaluand.run.runner import Run
from evaluand.store.store import caveats
from evaluand.store.tables import FAILED

_COUNTS = ("n", "n_scored", "n_failed", "n_abstained", "n_skipped")


class NotRun(EvaluandError):
    """A system was not run on a problem, because it could not be run on an earlier one."""


@dataclass(frozen=True)
class ProblemResult:
    """The results of one problem.

    Attributes:
        problem: its name in the suite.
        experiment: the name of its experiment.
        measure: its score.
        results: None if it failed.
        error: why it failed.
    """

    problem: str
    experiment: str
    measure: Measure
    results: Results | None
    error: EvaluandError | None

    @property
    def is_complete(self) -> bool:
        """Whether all systems have results, so that these have the name of the experiment."""
        return self.results is not None and not self.results.left_out

    def without(self, systems: Sequence[str]) -> dict[str, EvaluandError]:
        """System → why it has no results."""
        if self.results is not None:
            return dict(self.results.left_out)
        assert self.error is not None
        return dict.fromkeys(systems, self.error)


@dataclass(frozen=True)
class SuiteResults:
    """The results of a suite.

    Attributes:
        suite: its name.
        systems: the names of the tasks, in order.
        problems: in order.
        macro_mean: whether scores are averaged over problems; None where it depends on their kinds and ranges.
        seed: of the bootstrap.
        confidence: level of intervals, and 1 − that of tests.
        control: the task with which the others are compared; None means the first.
    """

    suite: str
    systems: Sequence[str]
    problems: Sequence[ProblemResult]
    macro_mean: bool | None
    seed: int
    confidence: float
    control: str | None = None

    def __str__(self) -> str:
        """The tables of the terminal."""
        from evaluand.report.terminal.plain_text import plain_text
        from evaluand.report.terminal.suite import suite_table

        return plain_text(suite_table(self.to_dict()))

    def to_dict(self) -> Facts:
        """Everything as JSON data; null where a number is undefined.

        Returns:
            `problems` with the value of each system, its `state` (`scored`, `undefined`, `failed` or `not run`) with
            the reason, and why a problem is left out of ranks and means; `absent` with which systems failed, or were
            not run, on which problems, by reason; `ranks` with the
            mean rank of each system, the test, and the critical difference; `macro` with the mean of each system, its
            interval, and the difference from the best; `cost` of each system; `caveats` of all numbers.
        """
        return {
            "suite": self.suite,
            "systems": [*self.systems],
            "confidence": self.confidence,
            "problems": self._with_ranks(),
            "absent": self._absent_facts(),
            "ranks": self._rank_facts(),
            "macro": self._macro_facts(),
            "cost": [self._cost_facts(system) for system in self.systems],
            "caveats": [*self._list_caveats()],
        }

    def _list_caveats(self) -> Iterator[str]:
        for each in self.problems:
            for task in each.results.tasks if each.results else ():
                made = task.evaluation or task.run
                yield from caveats(made.store, [(made.kind, made.id)])

    @cached_property
    def _problem_facts(self) -> list[Facts]:
        return [_describe_problem(each, self.systems) for each in self.problems]

    @property
    def _ranked(self) -> list[tuple[ProblemResult, Facts]]:
        """The problems that have a value of every system."""
        both = zip(self.problems, self._problem_facts, strict=True)
        return [(result, facts) for result, facts in both if facts["left_out"] is None]

    @cached_property
    def _unlike(self) -> str | None:
        """Why the scores of two problems are on different scales; None if they are not."""
        scales = {_scale_of(result.measure): result.problem for result, _ in reversed(self._ranked)}
        if len(scales) < 2:
            return None
        shown = [f"{_scale_text(scale)} ({problem})" for scale, problem in [*scales.items()][::-1]]
        return f"the scores are on different scales: {', '.join(shown[:3])}{', …' if len(shown) > 3 else ''}"

    @cached_property
    def _ranking(self) -> RankedSystems:
        values = [[each["value"] for each in facts["values"]] for _, facts in self._ranked]
        higher = np.array([facts["direction"] == "higher" for _, facts in self._ranked], bool)
        by_problem = np.array(values, float).reshape(len(values), len(self.systems))
        control = 0 if self.control is None else [*self.systems].index(self.control)
        return rank_systems(by_problem, higher, self.confidence, same_scale=self._unlike is None, control=control)

    def _with_ranks(self) -> list[Facts]:
        """The problems with the rank of each system; null where the problem is left out."""
        ranks = iter(self._ranking.ranks.tolist())
        unranked = [None] * len(self.systems)
        found = []
        for facts in self._problem_facts:
            own = unranked if facts["left_out"] is not None else next(ranks)
            values = [each | {"rank": rank} for each, rank in zip(facts["values"], own, strict=True)]
            found.append(facts | {"values": values})
        return found

    def _absent_facts(self) -> list[Facts]:
        """Which systems have no result on which problems, and why; no system where a problem failed as a whole."""
        found: dict[tuple[str | None, str, str], list[str]] = {}
        for facts in self._problem_facts:
            absent = [each for each in facts["values"] if each["state"] in ("failed", "not run")]
            keys = [(each["system"], each["state"], each["reason"]) for each in absent]
            for key in keys if facts["error"] is None else [(None, "failed", facts["error"])]:
                found.setdefault(key, []).append(facts["problem"])
        return [
            {"system": system, "state": state, "reason": reason, "problems": problems}
            for (system, state, reason), problems in found.items()
        ]

    def _rank_facts(self) -> Facts:
        found, p = self._ranking, self._ranking.against_control
        test = None if found.friedman is None else {n: _finite(v) for n, v in found.friedman._asdict().items()}
        return {
            "problems": len(found.ranks),
            "systems": [
                {
                    "system": system,
                    "mean_rank": none_if_nan(float(found.mean[place])),
                    "letters": None if found.letters is None else found.letters[place],
                    "p_control": None if p is None else none_if_nan(float(p[place])),
                }
                for place, system in enumerate(self.systems)
            ],
            "test": found.test,
            "p": found.p,
            "method": found.method,
            "statistic": found.statistic,
            "friedman": test,
            "critical_difference": found.critical_difference,
            "control": None if p is None else self.control or self.systems[0],
            "reason": found.reason,
        }

    def _macro_facts(self) -> Facts:
        facts: Facts = {"problems": len(self._ranked), "best": None, "systems": [], "reason": self._why_no_mean()}
        if facts["reason"] is not None:
            return facts
        samples, why = self._resampled()
        measure = self._ranked[0][0].measure
        higher = measure.metric.direction == "higher"
        best, found = macro_means(samples, self.confidence, higher_is_better=higher)
        facts |= {"best": self.systems[best], "direction": measure.metric.direction, "no_interval": why}
        facts["systems"] = [
            {"system": system} | {name: _finite(value) for name, value in vars(each).items()}
            for system, each in zip(self.systems, found, strict=True)
        ]
        return facts

    def _why_no_mean(self) -> str | None:
        if not self._ranked:
            return "no problem has a value of every system"
        if self.macro_mean is False:
            return "the suite says that scores are not averaged"
        if len({facts["direction"] for _, facts in self._ranked}) > 1:
            return "higher scores are better on some problems, and lower ones on others"
        if self._unlike is not None and not self.macro_mean:
            return f"{self._unlike}; macro_mean: true averages them all the same"
        return None

    def _resampled(self) -> tuple[list[ResampledProblem], str | None]:
        """The values on samples of rows, and why means have no interval."""
        samples, why = [], None
        for result, facts in self._ranked:
            assert result.results is not None
            metric, evaluations = result.measure.metric, result.results.evaluations
            values = np.array([each["value"] for each in facts["values"]], float)
            try:
                found = resample_problem(
                    [evaluations[system] for system in self.systems],
                    result.measure.scorer,
                    metric,
                    seed_of(self.seed, result.problem),
                )
                why = why or (f"{result.problem} has one independent row" if found.units < 2 else None)
                samples.append(found)
            except EvaluandError as error:
                why = why or f"{result.problem}: {first_fault(error)}"
                nothing = np.full((1, len(values)), np.nan)
                samples.append(ResampledProblem(values, nothing, nothing, 0))
        return samples, why

    def _cost_facts(self, system: str) -> Facts:
        """What the calls of a system and their grading used, in all rows, whenever they were made."""
        clock = _Clock()
        results = self._results_of(system)
        runs = {each.run.id: each.run for each in results}  # which problems with the same examples share
        evaluations = {each.evaluation.id: each.evaluation for each in results if each.evaluation is not None}
        for run in runs.values():
            clock.add(run)
        without = [each.problem for each in self.problems if system in each.without(self.systems)]
        return {
            "system": system,
            "rows": sum(sum(run.counts.values()) for run in runs.values()),
            "calls": total_used(run.manifest for run in runs.values()).to_dict(),
            "judging": total_used(each.manifest for each in evaluations.values()).to_dict(),
            "seconds": clock.seconds if clock.known else None,
            "rows_timed": clock.known,
            "without": without,
        }

    def _results_of(self, system: str) -> list[Result]:
        made = [each.results for each in self.problems if each.results is not None]
        return [result for results in made for result in results.tasks if result.task == system]


class _Clock:
    """The time that calls took together, and how many of them say it."""

    def __init__(self) -> None:
        self.seconds, self.known = 0.0, 0

    def add(self, run: Run) -> None:
        for batch in run.batches(["duration"]):
            column = batch.column("duration").cast("int64")
            self.known += len(column) - column.null_count
            self.seconds += (pc.sum(column).as_py() or 0) / 1e6


def _describe_problem(result: ProblemResult, systems: Sequence[str]) -> Facts:
    measure = result.measure
    rows = (
        []
        if result.results is None or result.results.aggregation is None
        else metrics_facts(result.results.aggregation)
    )
    absent = result.without(systems), _failed_runs(result.results)
    values = [
        _with_state(_value_of(measure, [row for row in rows if row["task"] == system], system), *absent)
        for system in systems
    ]
    facts = {
        "problem": result.problem,
        "experiment": result.experiment,
        "scorer": measure.scorer,
        "metric": name_in_tables(measure.metric.signature),
        "direction": measure.metric.direction,
        "missing": measure.metric.missing,
        "error": None if result.error is None else first_fault(result.error),
        "values": values,
        "left_out": None,
    }
    return facts | {"left_out": _why_left_out(facts), "values": _with_best(values, measure.metric.direction)}


def _failed_runs(results: Results | None) -> dict[str, str]:
    """System → the error of its calls, if all of them failed."""
    runs = {each.task: each.run for each in results.tasks} if results is not None else {}
    failed = {system: run for system, run in runs.items() if {*run.counts} == {FAILED}}
    return {
        system: f"all {plural(run.counts[FAILED], 'call')} failed: {missing_facts(run, None)[0]['reason']}"
        for system, run in failed.items()
    }


def _with_state(value: Facts, without: Mapping[str, EvaluandError], failed: Mapping[str, str]) -> Facts:
    """A value with its state, and where there is none because of a failure, with the reason of that."""
    system = value["system"]
    if value["value"] is not None:
        return value | {"state": "scored"}
    if (error := without.get(system)) is not None:
        return value | {"state": "not run" if isinstance(error, NotRun) else "failed", "reason": first_fault(error)}
    return value | ({"state": "failed", "reason": failed[system]} if system in failed else {"state": "undefined"})


def _value_of(measure: Measure, rows: Sequence[Facts], system: str) -> Facts:
    """The value of a measure over all rows, among all values of a system."""
    signature = measure.metric.signature
    name = name_in_tables(signature)
    own = [
        row for row in rows if row["scorer"] == measure.scorer and not row["by"] and has_name(row["signature"], name)
    ]
    own = [row for row in own if row["signature"] == signature] or own
    over_all = [row for row in own if row["target"] is None]
    facts: Facts = {"system": system, "value": None, "low": None, "high": None, "reason": None}
    if not own:
        return facts | dict.fromkeys(_COUNTS, 0) | {"reason": "no value"}
    row = (over_all or own)[0]
    facts |= {name: row[name] for name in _COUNTS}
    if not over_all and len({each["target"] for each in own}) > 1:
        return facts | {"reason": "a value for each target; declare over_targets"}
    return facts | {name: none_if_nan(row[name]) for name in ("value", "low", "high")} | {"reason": row["reason"]}


def _with_best(values: Sequence[Facts], direction: str | None) -> list[Facts]:
    known = [each["value"] for each in values if each["value"] is not None]
    best = None if not known or direction is None else max(known) if direction == "higher" else min(known)
    return [each | {"best": best is not None and each["value"] == best} for each in values]


def _why_left_out(facts: Facts) -> str | None:
    """Why a problem is not ranked; None if it is."""
    if facts["error"] is not None:
        return f"it failed: {facts['error']}"
    if facts["direction"] is None:
        return f"{facts['metric']} has no direction"
    without = [each for each in facts["values"] if each["value"] is None or not math.isfinite(each["value"])]
    if not without:
        return None
    names = ", ".join(each["system"] for each in without[:3]) + (", …" if len(without) > 3 else "")
    undefined = [each["reason"] or "it is not finite" for each in without if each["state"] in ("scored", "undefined")]
    return f"no value of {names}{f': {undefined[0]}' if undefined else ''}"


def _scale_of(measure: Measure) -> tuple[Any, ...]:
    """What is equal if a mean of two scores has a meaning; of scores without a known range, also the scorer."""
    metric, (low, high) = measure.metric, measure.metric.range
    scorer = None if math.isfinite(high - low) else measure.scorer
    return name_in_tables(metric.signature), low, high, metric.direction, scorer


def _scale_text(scale: tuple[Any, ...]) -> str:
    name, low, high, _, scorer = scale
    return f"{name} of {scorer}" if scorer is not None else f"{name} from {low:g} to {high:g}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
