"""Stored runs that further scorers grade: under the names that they have, beside the scores that they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.comparison.measures import declared_measures, find_artifact, find_evaluations
from evaluand.core.errors import SpecError, warn
from evaluand.core.labels import short_labels
from evaluand.evaluation.earlier_scores import work_of
from evaluand.evaluation.evaluator import Evaluation, newest_evaluation_of
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.people_labels import HUMAN
from evaluand.evaluation.sample import RowSample, choose_rows, draw_sample
from evaluand.evaluation.scorer import as_scorer
from evaluand.evaluation.stored_scores import StoredScores
from evaluand.predictions.steps import Steps
from evaluand.report.facts.base import matching_keys
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.store import Store
from evaluand.store.tables import ABSTAINED, FAILED, SKIPPED


@dataclass(frozen=True)
class GradedRun:
    """A stored run, and the evaluation that has its scores; None without scores."""

    run: Run
    evaluation: Evaluation | None

    @property
    def name(self) -> str:
        """The name of its evaluations."""
        called = self.evaluation.called if self.evaluation is not None else None
        return called or self.run.name or self.run.id[:12]


def find_graded_runs(store: Store, text: str) -> list[GradedRun]:
    """The runs that a name or id refers to: a run, that of an evaluation, or those of an aggregation.

    Raises:
        NotFound: nothing has this name.
        SpecError: it is of another kind, or not finished.
    """
    kind, _ = find_artifact(store, text, (RUNS, EVALUATIONS, AGGREGATIONS))
    names = {ref.name: ref.id for ref in store.refs() if ref.kind == EVALUATIONS}
    if kind == RUNS:
        return [graded_run(Run.open(store, text), names)]
    if kind == EVALUATIONS:
        return [_run_of(Evaluation.open(store, text))]
    known = [(evaluation.name, _run_of(evaluation)) for evaluation in find_evaluations(store, text)]
    return [graded_run(old.run, names, name, old.evaluation) for name, old in known]


def _run_of(evaluation: Evaluation) -> GradedRun:
    return GradedRun(evaluation.read_run(), evaluation)


def graded_run(
    run: Run, names: Mapping[str, str], name: str | None = None, known: Evaluation | None = None
) -> GradedRun:
    """A run with its scores: those of the evaluation with its name, as far as that is of this run.

    Args:
        names: name → the id of the evaluation.
        name: that of its evaluation, if not its own.
        known: an evaluation of it, if there is none of its name.
    """
    name = name or run.name or ""
    if (id := names.get(name)) is not None and run.store.is_sealed(EVALUATIONS, id):
        found = Evaluation(run.store, id)
        if found.manifest["provenance"]["run"] == run.id:
            found.called = name
            return GradedRun(run, found)
    return GradedRun(run, known or newest_evaluation_of(run.store, run.id))


@dataclass(frozen=True, kw_only=True)
class RowChoice:
    """Which rows of a run are graded.

    Attributes:
        size: how many, or their share below 1, drawn at random; None takes all.
        seed: of the draw.
        where: only rows that match this condition on the columns of the run, or else of its scores, see `RowFilter`.
        failed: only rows that failed or have no score.
    """

    size: int | float | None = None
    seed: int = 0
    where: str | None = None
    failed: bool = False

    def sample(self, graded: GradedRun) -> RowSample | None:
        """The chosen rows; None if these are all.

        Raises:
            SpecError: no row is chosen, or the run has no scores by which to choose.
        """
        among = None if self.where is None else _matching(graded, self.where)
        if self.failed:
            if graded.evaluation is None:
                raise SpecError(f"{graded.name} has no scores yet, by which rows could be chosen")
            unscored = _scored_keys(graded.evaluation, f'status == "{FAILED}" or status == "{ABSTAINED}"')
            among = unscored if among is None else among & unscored
        rules = [f"where {self.where}"] if self.where is not None else []
        rule = " ".join([*rules, *["that failed or have no score"] * self.failed])
        if among is not None and not among:
            raise SpecError(f"{graded.name} has no rows {rule}, so nothing can be graded")
        if self.size is not None:
            drawn = draw_sample(graded.run, self.size, seed=self.seed, among=among, rule=f" {rule}" if rule else "")
            return None if drawn.chosen.all() else drawn
        return None if among is None else choose_rows(graded.run, f"rows {rule}", among.__contains__)


def _matching(graded: GradedRun, where: str) -> set[tuple[Any, ...]]:
    """`_index_` and replication of the rows of a run that match a condition, or of those whose scores do."""
    try:
        return matching_keys(graded.run, where)
    except SpecError:
        if graded.evaluation is None:
            raise
        return _scored_keys(graded.evaluation, where)


def _scored_keys(evaluation: Evaluation, where: str) -> set[tuple[Any, ...]]:
    return {(index, replication) for _, index, replication, *_ in matching_keys(evaluation, where)}


@dataclass
class Regrading(Steps):
    """Stored runs over one dataset, graded by further scorers; the arguments are those of `Steps`, and:

    Args:
        runs: task → the run, with the scores that stay beside the new ones; a scorer of the same name replaces them.
        samples: task → the rows that are graded; by default all.
        summary: the name of their aggregation and comparison.
    """

    runs: Mapping[str, GradedRun] = field(default_factory=dict)
    samples: Mapping[str, RowSample | None] = field(default_factory=dict)
    summary: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._kept = {task: self._keep(task, graded.evaluation) for task, graded in self.runs.items()}
        declared = [declared_measures([g.evaluation]) if g.evaluation else [] for g in self.runs.values()]
        kept = [
            measure
            for measure in (declared[0] if declared else [])
            if all(measure.scorer in names for names in self._kept.values())
            and all(measure.spec in [other.spec for other in others] for others in declared)
        ]
        self.measures = [*kept, *self.measures]

    def _keep(self, task: str, evaluation: Evaluation | None) -> dict[str, StoredScores]:
        """The scores of an evaluation that stay; warns of others that its name leads to no longer."""
        kept: dict[str, StoredScores] = {}
        for name in evaluation.scorers if evaluation is not None else ():
            assert evaluation is not None
            spec, counts = evaluation.manifest["spec"]["scorers"][name], evaluation.counts[name]
            if spec.get("kind") == HUMAN:  # labels are found by their run, and people may have given others since
                continue
            stays = f"stay in evaluation {evaluation.id[:12]}"
            if name in self.scorers:
                sample, graded = self.samples.get(task), sum(counts.values()) - counts.get(SKIPPED, 0)
                if work_of(spec) != work_of(self._identities[name]):
                    warn(f"{name}: the scores of another scorer of this name {stays}")
                elif sample is not None and sample.chosen.sum() < graded:
                    warn(f"{name}: the scores of more rows {stays}")
            elif {*counts} - {SKIPPED} == {FAILED}:
                warn(f"{name}: it failed on every row, and its errors {stays}")
            else:
                kept[name] = StoredScores(evaluation, name)
        return kept

    @cached_property
    def _identities(self) -> dict[str, Mapping[str, Any]]:
        return {name: as_scorer(name, scorer).identify().spec for name, scorer in self.scorers.items()}

    def run_name(self, task: str) -> str:
        return self.runs[task].name if task in self.runs else super().run_name(task)

    def scorers_of(self, task: str) -> Mapping[str, Any]:
        return {**self.scorers, **self._kept[task]}

    def sample_of(self, task: str, run: Run, limit: int | None) -> RowSample | None:
        return self.samples.get(task)

    @property
    def summary_name(self) -> str | None:
        return self.summary


def label_runs(runs: Sequence[GradedRun]) -> dict[str, GradedRun]:
    """Runs by short labels, each name once: one run may have the names of several tasks that answer alike.

    Raises:
        SpecError: they are over different datasets.
    """
    unique = [*{graded.name: graded for graded in runs}.values()]
    first, *others = unique
    for other in others:
        if other.run.manifest["spec"]["dataset"] != first.run.manifest["spec"]["dataset"]:
            raise SpecError(f"{first.name} and {other.name} are over different datasets; grade them one by one")
    labels = short_labels([graded.name for graded in unique], [graded.run.id for graded in unique])
    return dict(zip(labels, unique, strict=True))
