"""What carries a dataset and its tasks through the path, and the results."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, Unpack

from evaluand.aggregation.aggregator import (
    Aggregation,
    Aggregator,
    Measure,
    MeasureResults,
    check_measures,
    with_ranges,
)
from evaluand.aggregation.score_shards import draw_positions
from evaluand.comparison.comparing import Comparison, compare
from evaluand.comparison.gate_metrics import measures_of_gates
from evaluand.comparison.rule import Gate
from evaluand.core.errors import DataError, EvaluandError, EvaluandWarning, SpecError, kind_of, nearest, plural
from evaluand.core.labels import join_name
from evaluand.core.near import keywords
from evaluand.core.registry import split_entry
from evaluand.core.text.html_table import html_notes
from evaluand.data.dataset import Dataset
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.keyed_work import Progress
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluation, Evaluator, KnownScores
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.preflight import warn_of_declared
from evaluand.evaluation.sample import RowSample, choose_rows
from evaluand.evaluation.scorer import as_scorer
from evaluand.matches.kind import MATCHES
from evaluand.matches.matcher import Matcher
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.rating import Ratings
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.names import make_metric
from evaluand.predictions.preflight import check_answers, check_tournaments, check_trade
from evaluand.predictions.tournament import MatchResults, Tournament
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.run.kind import RUNS
from evaluand.run.request import ExperimentOptions, ExperimentRequest
from evaluand.run.runner import Run, Runner
from evaluand.run.task import as_task
from evaluand.run.tasks.stored import StoredTask
from evaluand.store.store import MemoryStore, Store, check_name
from evaluand.tradeoff.trade import Trade, compute_results, result_tables

FLIPS = 50
"""How many examples of each pair of tasks to list as won and as lost."""


@dataclass(frozen=True)
class Result:
    """The results of an experiment for one task; no evaluation without scorers."""

    task: str
    run: Run
    evaluation: Evaluation | None


@dataclass(frozen=True)
class Results(MatchResults):
    """The results of an experiment.

    Attributes:
        tasks: by task, in order.
        aggregation: of the evaluations of all tasks; None without scorers.
        comparison: of the tasks with each other; None if there is only one task, or nothing to compare.
        left_out: task → why it has no result; of `Experiment.run` with `left_out`.
        matches: by the name of their tournament; none if only one task was run.
        ratings: of their systems, by the same name.
        unrated: the name of a tournament → why its systems have no ratings.
    """

    tasks: Sequence[Result]
    aggregation: Aggregation | None
    comparison: Comparison | None = None
    left_out: Mapping[str, EvaluandError] = field(default_factory=dict)

    @property
    def evaluations(self) -> dict[str, Evaluation]:
        """The evaluations by task; none without scorers."""
        return {result.task: result.evaluation for result in self.tasks if result.evaluation is not None}

    def __str__(self) -> str:
        """The values of every task, and their comparison."""
        from evaluand.report.facts.report import results_facts
        from evaluand.report.terminal.plain_text import results_text

        comparison = None if self.comparison is None else self.comparison.to_dict()
        return results_text(
            {**results_facts(self.tasks, self.aggregation, self.matches_facts()), "comparison": comparison}
        )

    def _repr_html_(self) -> str:
        """The table of a notebook."""
        from evaluand.report.html.notebook import values_html

        pairs = self.comparison.to_dict()["pairs"] if self.comparison else []
        ratings = "".join(html_notes([name]) + each._repr_html_() for name, each in self.ratings.items())
        if self.aggregation is None:
            return ratings
        return values_html(metrics_facts(self.aggregation), [pair["verdict"] for pair in pairs]) + ratings


def name_in_experiment(experiment: str, part: str) -> str:
    """The name in stores of what belongs to a task, or to matches, of an experiment.

    Raises:
        SpecError: a name that no artifact can have.

    Example:
        >>> name_in_experiment("a/b", "mine")
        'a%2Fb/mine'
    """
    return join_name(check_name(experiment), check_name(part))


@dataclass
class Steps:
    """One dataset and its tasks on the path: run, evaluate, aggregate, compare, and judge matches.

    The arguments are those of `Experiment`.
    """

    name: str
    dataset: Dataset
    tasks: Mapping[str, Any]
    scorers: Mapping[str, Any] = field(default_factory=dict)
    measures: Sequence[Measure] = ()
    policy: Policy = field(default_factory=Policy)
    replications: int | None = None
    seed: int = 0
    origin: dict[str, Any] = field(default_factory=dict)
    views: Mapping[str, Any] = field(default_factory=dict)
    tradeoffs: Sequence[Trade] = ()
    gates: Sequence[Gate] = ()
    matches: Sequence[Tournament] = ()
    allow_unmeasured_judges: bool = False
    engine: Engine = field(default_factory=LocalEngine)

    def __post_init__(self) -> None:
        self.dataset = Dataset.from_data(self.dataset)
        self.scorers = _named_kinds(self.scorers)
        if isinstance(self.tasks, Mapping):
            self.tasks = {
                name: StoredTask(task) if isinstance(task, Run) else task for name, task in self.tasks.items()
            }
        is_graded = not self.matches or bool(self.scorers) or bool(self.measures)
        parts: Any
        for what, parts in (("task", self.tasks), ("scorer", self.scorers)):
            if not isinstance(parts, Mapping) or not (parts or (what == "scorer" and not is_graded)):
                raise SpecError(f"{what}s must be a mapping name: {what} with at least one, not {kind_of(parts)}")
        measures: Any = _as_measures(self.measures, self.scorers)
        is_list = isinstance(measures, list | tuple) and all(isinstance(m, Measure) for m in measures)
        if not is_list or not (measures or not is_graded):
            raise SpecError(
                "measures must be a list of names of metrics or of Measure(scorer, metric), with at least one"
            )
        if not isinstance(self.policy, Policy):
            raise SpecError(f"policy must be a Policy, not {kind_of(self.policy)}")
        names: Any = (self.name, *self.tasks, *self.scorers)
        for name in names:
            if not isinstance(name, str):
                raise SpecError(f"a name must be text, not {name!r}")
            check_name(name)
        for name, task in self.tasks.items():
            try:
                as_task(task)
            except SpecError as error:
                raise SpecError(f"tasks.{name}: {error}") from None
        for name in self.views:
            if name not in self.tasks:
                raise SpecError(f"views.{name}: no task has this name{nearest(name, self.tasks)}")
        scorers = {name: as_scorer(name, scorer) for name, scorer in self.scorers.items()}
        self.measures = with_ranges(measures, {name: scorer.ranges for name, scorer in scorers.items()})
        check_measures(self.measures, {name: scorer.readable for name, scorer in scorers.items()}, self.dataset.roles)
        for measure in self.measures:
            check_answers(measure.metric, self.tasks, self.replications)
        check_tournaments(self.matches, [*self.tasks])
        for trade in self.tradeoffs:
            check_trade(trade, [*self.tasks], scorers, self.measures_of_all_rows, self.dataset)

    @property
    def measures_of_all_rows(self) -> list[Measure]:
        """The measures without a condition, which gates, comparisons and trade-offs use."""
        return [measure for measure in self.measures if measure.where is None]

    def is_of_matches(self, gate: Gate) -> bool:
        """Whether a gate is about these matches; without any, a metric may have the name of one of their numbers."""
        return bool(self.matches) and gate.is_of_matches

    def run_name(self, task: str) -> str:
        """The name of a task's runs and evaluations in stores."""
        return name_in_experiment(self.name, task)

    @property
    def summary_name(self) -> str | None:
        """The name of the summary of all tasks in stores."""
        return check_name(self.name)

    def seen_by(self, task: str) -> Dataset:
        """The dataset as a task sees it."""
        return self.dataset.view(self.views[task]) if task in self.views else self.dataset

    def where(self, condition: str) -> Self:
        """This experiment over the examples that match a condition; see `Dataset.where`."""
        return replace(self, dataset=self.dataset.where(condition), origin=self.origin | {"where": condition})

    def drawn(self, n: int, of: int, until: str) -> Self:
        """This experiment over n examples, drawn at random from the first `of` ones; all of them if n is their number.

        With clusters whole ones are drawn, so there may be more. Fewer examples are always among more.

        Args:
            until: the rule for which they are drawn, for provenance.
        """
        origin = self.origin | {"until": {"rule": until, "drawn": n, "of": of}}
        if n >= len(self.dataset):
            return replace(self, origin=origin)
        positions = draw_positions(self.dataset, n, of, self.seed)
        return replace(self, dataset=self.dataset.take(positions), origin=origin)

    @keywords(ExperimentRequest)
    def run(
        self,
        store: Store | None = None,
        *,
        progress: Progress | None = None,
        known_scores: Mapping[str, KnownScores] | None = None,
        known_values: Sequence[MeasureResults] = (),
        compared: bool = True,
        left_out: Mapping[str, EvaluandError] | None = None,
        **options: Unpack[ExperimentOptions],
    ) -> Results:
        """Runs, grades, summarises and compares; does only what is not stored yet.

        Args:
            store: where everything is stored; by default in memory.
            progress: shows the progress of each step.
            known_scores: task → scorer → scores that need no grading; see `Evaluator.evaluate`.
            known_values: the results of measures for each task, if they are known; see `Aggregator.aggregate`.
            compared: whether every two tasks are compared; `compare` does it later too.
            left_out: tasks that are not run, with the reason. If given, one that fails is left out as well, and the
                others are run; the summary of these has no name, and no matches are judged.
            options: what is run and repeated: `limit`, `fresh`, `retry_failed`, `calls`, `only`; and `resume`, the
                (kind, id) of an open run or evaluation of the one task to run, to continue it.
        """
        store, request = store or MemoryStore(), ExperimentRequest(**options)
        if (only := request.only) is not None and only not in self.tasks:
            raise SpecError(f"no task is called {only!r}{nearest(only, self.tasks)}; there are {', '.join(self.tasks)}")
        if request.calls:
            scorers = {name: as_scorer(name, scorer) for name, scorer in self.scorers.items()}
            warn_of_declared(scorers, self.dataset, {name: as_task(task) for name, task in self.tasks.items()})
        earlier = self._find_earlier_runs(store) if only is None else {}
        if only is not None:
            self._count_finished(store)
        runner = Runner(store, self.policy, self.engine, progress)
        evaluator = Evaluator(store, self._grading_policy, self.engine, progress)
        results, failed = [], dict(left_out or {})
        for name in self.tasks:
            if only not in (None, name) or name in failed:
                continue
            known = (known_scores or {}).get(name)
            try:
                results.append(self._run_and_grade(runner, evaluator, name, request, known))
            except EvaluandError as error:
                if left_out is None:
                    raise
                failed[name] = error
        matcher = Matcher(store, self._grading_policy, self.engine, progress)
        runs = {result.task: result.run for result in results}
        matches = {
            one.name: self._play(matcher, one, runs | earlier[one.name], request.limit, **request.repetition)
            for one in self.matches
            if only is None and not failed
        }
        rated = self._rate(matches)
        summary = self.summarise(store, results, known_values, compared=compared)
        return replace(summary, **vars(rated), left_out=failed)

    def _run_and_grade(
        self, runner: Runner, evaluator: Evaluator, name: str, request: ExperimentRequest, known: KnownScores | None
    ) -> Result:
        """The run of a task and its evaluation."""
        resumed = dict([request.resume] if request.resume else ())
        origin, graded = self.origin | {"task": name, "limit": request.limit}, resumed.get("evaluations")
        options: dict[str, Any] = {"name": self.run_name(name), "origin": origin}
        is_stored = as_task(self.tasks[name]).stored is not None
        if graded:
            run = Evaluation(runner.store, graded).read_run()
        elif not (request.calls or is_stored):
            run = _find_finished_run(runner.store, self.run_name(name))
        else:
            run = runner.run(
                self.tasks[name],
                self.seen_by(name),
                replications=self.replications,
                seed=self.seed,
                limit=request.limit,
                resume=resumed.get("runs"),
                **options,
                **(request.repetition if request.calls else {}),
            )
        evaluation = None
        if self.scorers:
            sample = self.sample_of(name, run, request.limit) if is_stored else None
            scorers = self.scorers_of(name)
            evaluation = evaluator.evaluate(
                run, scorers, judged=known, sample=sample, resume=graded, **options, **request.repetition
            )
        return Result(name, run, evaluation)

    def scorers_of(self, task: str) -> Mapping[str, Any]:
        """What grades a task."""
        return self.scorers

    def sample_of(self, task: str, run: Run, limit: int | None) -> RowSample | None:
        """The rows of a stored run that are graded: those of the examples that are asked for; None if these are all."""
        if limit is None and self.dataset.id == run.manifest["spec"]["dataset"]:
            return None
        asked = {*self.dataset.indices[:limit]}
        return choose_rows(run, f"{plural(len(asked), 'example')} asked for", lambda key: key[0] in asked)

    def _rate(self, matches: Mapping[str, Matches]) -> MatchResults:
        """The ratings of the systems of matches by tournament."""
        ratings: dict[str, Ratings] = {}
        unrated: dict[str, str] = {}
        for one in self.matches:
            if one.name not in matches:
                continue
            origin = self.origin | {"matches": one.name}
            try:
                made = one.rate(matches[one.name], name=self.run_name(one.name), origin=origin)
            except DataError as error:
                unrated[one.name] = str(error)
                continue
            if made is not None:
                ratings[one.name] = made
        return MatchResults(matches=matches, ratings=ratings, unrated=unrated)

    def resume_matches(
        self, store: Store, id: str, *, progress: Progress | None = None, repeat_lost: bool = False
    ) -> MatchResults:
        """Continues open matches that this experiment has begun, and rates their systems.

        Args:
            id: of the matches.
            repeat_lost: make judgements again that cost, where the stored ones are damaged or missing.

        Returns:
            The results of this tournament.

        Raises:
            SpecError: the matches belong to no tournament of this experiment, or judge or schedule have changed.
        """
        manifest = store.manifest(MATCHES, id)
        origin = manifest["provenance"]["origin"]
        name = origin.get("matches")
        tournament = next((one for one in self.matches if one.name == name), None)
        if tournament is None:
            raise SpecError(f"matches {id[:12]} were begun by the entry {name!r} of matches, which there is no longer")
        runs = zip(manifest["spec"]["systems"], manifest["provenance"]["runs"], strict=True)
        self._count_finished(store)
        matcher = Matcher(store, self._grading_policy, self.engine, progress)
        found = {label: Run(store, run) for label, run in runs}
        matches = self._play(matcher, tournament, found, origin.get("limit"), resume=id, repeat_lost=repeat_lost)
        return self._rate({tournament.name: matches})

    @property
    def _grading_policy(self) -> Policy:
        return replace(self.policy, rate=None, total_timeout=None)  # these limits are for tasks

    def _count_finished(self, store: Store) -> None:
        """Counts the cost of its finished runs, evaluations and matches against the budget, which covers all."""
        if (budget := self.policy.shared_budget) is None:
            return
        names = sorted({self.run_name(name) for name in (*self.tasks, *(one.name for one in self.matches))})
        stored = {run.id for task in self.tasks.values() if (run := as_task(task).stored) is not None}
        finished = (
            (f"{ref.kind}/{ref.id}", store.manifest(ref.kind, ref.id).get("spent", {}))
            for name in names
            for ref in store.named(name)
            if ref.kind in (RUNS, EVALUATIONS, MATCHES) and ref.id not in stored and store.is_sealed(ref.kind, ref.id)
        )
        for work, spent in finished:
            by_part = {f"{work}/{part}": costs for part, costs in spent.items()}  # by scorer, or round of matches
            for name, costs in ({work: spent} if work.startswith("runs/") else by_part).items():
                budget.count_earlier(name, costs)

    def _find_earlier_runs(self, store: Store) -> dict[str, dict[str, Run]]:
        """The earlier runs of each tournament by label; looked up before anything is called."""
        names = {task: self.run_name(task) for task in self.tasks}
        return {one.name: one.find_runs(store, self.dataset, names) for one in self.matches}

    def _play(
        self, matcher: Matcher, tournament: Tournament, runs: Mapping[str, Run], limit: int | None, **options: Any
    ) -> Matches:
        """The matches of a tournament, from runs by label; further runs are ignored."""
        is_new = "resume" not in options
        chosen = {label: runs[label] for label in tournament.systems([*self.tasks])} if is_new else runs
        name, origin = self.run_name(tournament.name), self.origin | {"matches": tournament.name, "limit": limit}
        return tournament.play(matcher, chosen, limit=limit, name=name, origin=origin, **options)

    def summarise(
        self, store: Store, results: Sequence[Result], known: Sequence[MeasureResults] = (), *, compared: bool = True
    ) -> Results:
        """Aggregates the evaluations of tasks and compares them; under the experiment's name if no task is left out."""
        by_task = {result.task: result.evaluation for result in results if result.evaluation is not None}
        if not by_task:
            return Results(results, None)
        name = self.summary_name if len(results) == len(self.tasks) else None
        aggregation = Aggregator(store).aggregate(
            [*by_task.values()],
            self.measures,
            labels=[*by_task],
            name=name,
            origin=self.origin,
            tradeoffs=[trade.spec for trade in self.tradeoffs],
            known=known,
            further=lambda measures: result_tables(
                compute_results(self.tradeoffs, by_task, [one for one in measures if one.where is None])
            ),
        )
        comparison = self._compare([*by_task.values()], [*by_task], name) if compared else None
        return Results(results, aggregation, comparison)

    def _compare(self, evaluations: Sequence[Evaluation], labels: Sequence[str], name: str | None) -> Comparison | None:
        """Compares the tasks on the same examples; None if they share no scorer that returns numbers."""
        if len(evaluations) < 2:
            return None
        try:
            with warnings.catch_warnings(action="ignore", category=EvaluandWarning):  # the default metrics will do
                return compare(
                    *evaluations,
                    labels=labels,
                    flips=FLIPS,
                    declared=self.measures_of_all_rows,
                    name=name,
                    origin=self.origin,
                    primary=measures_of_gates(self.gates, evaluations, self.measures_of_all_rows),
                )
        except (DataError, SpecError):
            return None


def _named_kinds(scorers: Any) -> Any:
    """Names of kinds of scorers as a mapping, in which each is its own name."""
    names = [scorers] if isinstance(scorers, str) else scorers
    is_list = isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names)
    return {name: name for name in names} if is_list else scorers


def _as_measures(measures: Any, scorers: Mapping[str, Any]) -> Any:
    """Names of metrics, dictionaries as in files and metrics as measures on the only scorer.

    Raises:
        SpecError: no metric has a name, or there are several scorers.
    """
    entries = [measures] if isinstance(measures, str | Mapping | Metric | Measure) else measures
    if not isinstance(entries, list | tuple):
        return measures
    words = [entry for entry in entries if isinstance(entry, str | Mapping | Metric)]
    if len(scorers) > 1 and words:
        metric = f"{type(words[0]).__name__}()" if isinstance(words[0], Metric) else f"make_metric({words[0]!r})"
        raise SpecError(
            f"measures: {metric} could read several scorers; write Measure({next(iter(scorers))!r}, {metric})"
        )
    return [Measure(next(iter(scorers)), _as_metric(entry)) if entry in words else entry for entry in entries]


def _as_metric(entry: str | Mapping[str, Any] | Metric) -> Metric:
    if isinstance(entry, Metric):
        return entry
    name, parameters = (entry, {}) if isinstance(entry, str) else split_entry("measures", entry)
    return make_metric(name, **parameters)


def _find_finished_run(store: Store, name: str) -> Run:
    id = next((ref.id for ref in store.named(name) if ref.kind == RUNS), None)
    if id is None or not store.is_sealed(RUNS, id):
        raise SpecError(f"no finished run is called {name!r}; run it first, without --no-calls")
    run = Run(store, id)
    run.called = name
    return run
