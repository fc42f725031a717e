"""Trade-offs of what is stored: each task of an experiment, or each of its settings, is a point.

A system without thresholds (an LLM application) has as many points as variants were run; their values, disparities and
intervals are those of an aggregation, and are made from the stored scores where none was asked for. Classifiers whose
confidences are stored have points at every threshold: they are the models of one system.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import (
    Aggregation,
    Measure,
    check_measures,
    dataset_of,
    held_as,
    is_repeated,
    measured,
    shards,
)
from evaluand.aggregation.fairness import CRITERIA, Criterion, measures_of
from evaluand.comparison.comparing import short_labels
from evaluand.comparison.find import declared_measures, find_evaluations
from evaluand.core import registry
from evaluand.core.errors import DataError, EvaluandWarning, Fault, SpecError, collect_warnings
from evaluand.core.identity import encode
from evaluand.core.registry import nearest
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import CLUSTER, WEIGHT, Metric
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.store.store import Store
from evaluand.store.tables import INDEX
from evaluand.tradeoff import Confidences, Tradeoff, solve
from evaluand.tradeoff.confidences import Thresholds, label_of
from evaluand.tradeoff.objectives import DISPARITIES, Objective, objectives_of, written

Label = str | int | bool


@dataclass(frozen=True, kw_only=True)
class Trade:
    """A trade-off that is asked of the tasks of an experiment.

    Args:
        objectives: two or more, such as `mean(quality)` and `mean(quality) difference by topic`.
        name: what it is called; its objectives if not given.
        tasks: which of the tasks; all if not given.
        thresholds: where given, the tasks are models whose confidences are decided at these thresholds; see
            `Confidences.thresholds`. Else each task is a point, by its stored scores.
        label: the positive label.
        scorer: whose confidences.

    Raises:
        SpecError: these do not go together.

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
        said = [written(text) for text in self.objectives]
        if len({(one["metric"], one["scorer"], one["disparity"], one["by"]) for one in said}) < 2:
            raise SpecError("a trade-off is one between two objectives or more")
        if not self.name:
            object.__setattr__(self, "name", ", ".join(self.objectives))
        if self.thresholds is not None:
            for text, one in zip(self.objectives, said, strict=True):
                if one["scorer"] is not None:
                    raise SpecError(f"{text!r}: at thresholds, name the scorer of all objectives under scorer")
            objectives_of(self.objectives)
            _ANY.thresholds("", self.thresholds)
        for text, one in zip(self.objectives, said, strict=True):
            _check_objective(text, one)

    @property
    def spec(self) -> dict[str, Any]:
        """As it is stored with an aggregation."""
        return {name: list(v) if isinstance(v, tuple | list) else v for name, v in dataclasses.asdict(self).items()}

    @property
    def by(self) -> tuple[str, ...]:
        """The attributes whose groups are compared."""
        return tuple(dict.fromkeys(name for text in self.objectives for name in written(text)["by"]))

    @property
    def scorers(self) -> set[str]:
        """The scorers that are named."""
        return {name for name in (self.scorer, *(written(text)["scorer"] for text in self.objectives)) if name}

    def misfits(self, scorers: Mapping[str, Collection[str]], declared: Sequence[Measure]) -> list[str]:
        """What of it does not fit the scorers there are, as far as is known before anything is scored.

        Args:
            scorers: name → the columns of its table.
            declared: see `of_evaluations`.
        """
        if self.thresholds is not None:
            known = [name for name, columns in scorers.items() if set(columns) >= _CONFIDENT]
            return [] if self.scorer in known or (self.scorer is None and len(known) == 1) else [_unsaid(known)]
        faults = []
        for text in self.objectives:
            try:
                _, measures = _asked(
                    text,
                    [*scorers],
                    declared,
                    self.scorer,
                    self.label,
                    lambda kind, _: _by_default(kind, self.label, _UNIT),
                )
                for measure in measures:
                    measure.metric.columns_for(scorers[measure.scorer])
            except SpecError as error:
                faults.append(str(error) if str(error).startswith(repr(text)) else f"{text!r}: {error}")
        return faults

    def points(self, evaluations: Mapping[str, Evaluation], declared: Sequence[Measure] | None = None) -> Tradeoff:
        """The points, with their intervals, and with what is told meanwhile as an `EvaluandWarning` as their notes.

        Args:
            evaluations: task → its evaluation.
            declared: see `of_evaluations`.

        Raises:
            SpecError: a task is not among them, or the scores are no such objectives.
            DataError: see `confidences_of`.
        """
        for task in self.tasks:
            if task not in evaluations:
                raise SpecError(f"the task {task!r} was not run; there are: {', '.join(evaluations)}")
        chosen = {name: evaluations[name] for name in self.tasks or evaluations}
        with collect_warnings() as told:
            points = self._points(chosen, declared)
        return replace(points, notes=tuple(told))

    def _points(self, chosen: Mapping[str, Evaluation], declared: Sequence[Measure] | None) -> Tradeoff:
        asked: dict[str, Any] = {"label": self.label, "scorer": self.scorer, "declared": declared}
        if self.thresholds is None:
            return of_evaluations(chosen, self.objectives, system=self.name, **asked)
        given = confidences_of(chosen, self.by, system=self.name, **asked)
        return solve(given, self.objectives, self.thresholds).with_intervals()


def tradeoffs_of(aggregation: Aggregation) -> Iterator[tuple[Trade, Tradeoff | str]]:
    """The trade-offs that an experiment asked for, each with its points, or why there are none."""
    made = aggregation.manifest["provenance"]["evaluations"]
    for spec in aggregation.manifest["spec"].get("tradeoffs", ()):
        trade = Trade(**spec)
        evaluations = [Evaluation(aggregation.store, id) for id in made]
        try:
            yield trade, trade.points(dict(zip(aggregation.labels, evaluations, strict=True)), aggregation.measures)
        except (SpecError, DataError) as error:
            yield trade, str(error)


def variants(store: Store, names: Sequence[str]) -> dict[str, Evaluation]:
    """The evaluations that names of runs, evaluations and aggregations stand for, by the names of their tasks.

    So the same variants have the same names where they were run on other data. Where tasks do not tell them apart, or
    are not known, they are called as evaluations that are compared.

    Raises:
        NotFound: nothing is called so, or it was never evaluated.
        SpecError: it is something that has no evaluations, one is given twice, or they are of different data.
    """
    given = [(name, each) for name in names for each in find_evaluations(store, name)]
    first: dict[str, str] = {}
    for name, each in given:
        if each.id in first:
            again = f"{name!r} and {first[each.id]!r} are" if name != first[each.id] else f"{name!r} is"
            raise SpecError(f"{again} given twice: {each.name or each.id} is one point or model; leave one out")
        first[each.id] = name
    found = [each for _, each in given]
    _check_same_data(given)
    origins = [(each.manifest["provenance"] or {}).get("origin") or {} for each in found]
    tasks = [str(origin["task"]) for origin in origins if "task" in origin]
    if len(set(tasks)) < len(found):
        tasks = short_labels([each.name for each in found], [each.id for each in found])
    return dict(zip(tasks, found, strict=True))


def _check_same_data(given: Sequence[tuple[str, Evaluation]]) -> None:
    """Refuses evaluations on different examples; the same ones may have other roles."""
    data: dict[str, tuple[str, Dataset]] = {}
    for name, each in given:
        data.setdefault(each.manifest["spec"]["dataset"], (name, dataset_of(each)))
    (one, first), *others = data.values()
    for other, second in others:
        pairs = zip(first, second, strict=False)
        if len(first) != len(second) or any(
            (a.id, a.input_digest, a.expected) != (b.id, b.input_digest, b.expected) for a, b in pairs
        ):
            told = f"{one!r} is on the dataset {_data(first)} and {other!r} on {_data(second)}"
            raise SpecError(
                f"{told}, and the models or variants of one system are compared on the same examples; to compare"
                " systems, name each: --stored SYSTEM=NAME; to tell the point that is picked on other data: --on-stored"
            )


def _data(dataset: Dataset) -> str:
    named = f"{dataset.name!r} " if dataset.name else ""
    return f"{named}({dataset.id[:_SHORT_ID]}, {len(dataset):,} examples)"


def of_evaluations(
    evaluations: Mapping[str, Evaluation],
    objectives: Sequence[str],
    *,
    label: Label | None = None,
    scorer: str | None = None,
    declared: Sequence[Measure] | None = None,
    system: str = "system",
) -> Tradeoff:
    """A point for each evaluation, by what its stored scores come to; nothing has to have been summarised before.

    Rows without a score are left out or not as the metric says, and told as an `EvaluandWarning`.

    Args:
        evaluations: what each variant of a system is called → its evaluation.
        objectives: such as `mean(quality)` and `mean(quality) difference by topic`.
        label: the positive label, of metrics of classes that were not declared with one.
        scorer: whose scores, where an objective does not say so.
        declared: how metrics are meant, with their direction, range and other parameters; as in what the evaluations
            were summarised by if not given. A mean that was not declared goes from 0 to 1 where all its values do,
            which is told as an `EvaluandWarning`.
        system: what the points belong to.

    Raises:
        SpecError: there is no such scorer, metric or attribute, or it is not known what values a metric can have.
    """
    made = list(evaluations.values())
    known = declared_measures(made) if declared is None else declared
    shared = [each for each in made[0].scorers if all(each in one.scorers for one in made)]
    asked = [
        _asked(text, shared, known, scorer, label, lambda kind, mine: _by_values(kind, mine, made, label))
        for text in objectives
    ]
    wanted = objectives_of([objective for objective, _ in asked])
    found = np.full((3, len(made), len(wanted)), np.nan)
    for number, (name, evaluation) in enumerate(evaluations.items()):
        dataset = dataset_of(evaluation)
        tables = {each: evaluation.columns(each) for each in evaluation.scorers}
        for place, (objective, measures) in enumerate(asked):
            check_measures(measures, tables, dataset.roles)
            come = measured(
                measures, partial(shards, evaluation, dataset), repeated=is_repeated(evaluation), drawn=False
            )
            whole = [row for _, row in come.values if not row.by and row.target is None]
            rows = [row for _, row in come.disparities if row.target is None] if objective.disparity else whole
            if not rows:
                raise SpecError(f"{objective.name!r} has a value for each target, and none over all: see over_targets")
            for part, end in zip(found, IntervalEnds._fields, strict=True):
                part[number, place] = getattr(rows[0], end)
            if whole and whole[0].n_scored < whole[0].n:
                told = f"{whole[0].n - whole[0].n_scored:,} of {whole[0].n:,} rows have no score"
                warnings.warn(f"{name}: {objective.name}: {told}", EvaluandWarning, stacklevel=2)
            if math.isnan(rows[0].value):
                warnings.warn(f"{name}: {objective.name} is undefined: {rows[0].reason}", EvaluandWarning, stacklevel=2)
    return _of_variants(wanted, tuple(evaluations), IntervalEnds(*found), system)


def of_aggregation(aggregation: Aggregation, objectives: Sequence[str], system: str = "system") -> Tradeoff:
    """A point for each evaluation of an aggregation, called as it is there.

    Args:
        aggregation: of the variants of a system, with the disparities that are asked for.
        objectives: such as `mean(quality)` and `mean(quality) difference by topic`.
        system: what the points belong to.

    Raises:
        SpecError: the aggregation has no such metric or disparity, or several.
    """
    wanted = tuple(_found(text, aggregation.measures) for text in objectives)
    found = np.full((3, len(aggregation.labels), len(wanted)), np.nan)
    for place, objective in enumerate(wanted):
        for row in _rows(aggregation, objective):
            for part, name in zip(found, IntervalEnds._fields, strict=True):
                part[row["evaluation"], place] = np.nan if row[name] is None else row[name]
    return _of_variants(wanted, tuple(aggregation.labels), IntervalEnds(*found), system)


def confidences_of(
    evaluations: Mapping[str, Evaluation],
    by: Sequence[str] = (),
    *,
    label: str | int | bool | None = None,
    scorer: str | None = None,
    system: str = "system",
    declared: Sequence[Measure] | None = None,
) -> Confidences:
    """The confidences of models that were evaluated on the same examples, for `solve`.

    Rows that a model gave no confidence for are left out for all models, and told as an `EvaluandWarning`. Rows count
    by the weights of the dataset, unless metrics of these scores are declared and none is `weighted`. Those of a
    cluster belong together; without clusters, replications of an example do.

    Args:
        evaluations: what each model is called → its evaluation.
        by: attributes of the dataset.
        label: the positive label; `True` of bools and 1 of integers if not given.
        scorer: one of the kind `prediction`; the only one that has confidences if not given.
        system: what the models belong to.
        declared: how metrics are meant; as in what the evaluations were summarised by if not given.

    Raises:
        SpecError: no such scorer or attribute, or other examples.
        DataError: no row has a confidence of every model.
    """
    tables = {name: _judged(name, evaluation, by, scorer) for name, evaluation in evaluations.items()}
    labels = {one for table in tables.values() for one in pc.unique(table["truth"]).to_pylist()}
    label = label_of(sorted(labels, key=lambda one: (str(type(one)), one)), label)
    sure = {name: _probability(name, table, label) for name, table in tables.items()}
    if blank := [name for name, each in sure.items() if len(each) and np.isnan(each).all()]:
        raise DataError(without_confidences(blank))
    cut = {name: tables[name].filter(pa.array(~np.isnan(sure[name]))) for name in tables}
    keys = [set(_keys(table)) for table in cut.values()]
    common = set.intersection(*keys)
    if not common:
        raise DataError("no row has a truth and a confidence of every model; were they run on the same examples?")
    left = len(set().union(*map(_keys, tables.values()))) - len(common)
    if left:
        told = "row is left out, as not every model has a confidence for it"
        told = told if left == 1 else "rows are left out, as not every model has a confidence for them"
        warnings.warn(f"{left:,} {told}", EvaluandWarning, stacklevel=2)
    kept = {name: _of_keys(table.append_column(_SURE, pa.array(sure[name])), common) for name, table in tables.items()}
    first = next(iter(kept.values()))
    positive = pa.array([one == label for one in first["truth"].to_pylist()], pa.bool_())
    models = {name: table[_SURE] for name, table in kept.items()}
    named = {name: first[held] for name, held in zip(by, held_as(by), strict=True)}
    weight, cluster = (first[held] if held in first.column_names else None for held in (WEIGHT, CLUSTER))
    if weight is not None and not _weighted(evaluations, scorer, declared):
        weight = None
    together = first[INDEX] if cluster is None else cluster  # replications of an example belong together
    return Confidences.read(positive, models, named, label=True, system=system, weight=weight, cluster=together)


def _weighted(evaluations: Mapping[str, Evaluation], scorer: str | None, declared: Sequence[Measure] | None) -> bool:
    """Whether rows count by the weights there are: as in the metrics of the same scores; yes where there are none."""
    made = list(evaluations.values())
    chosen = scorer or next(each for each in made[0].scorers if set(made[0].columns(each)) >= _CONFIDENT)
    measures = declared_measures(made) if declared is None else declared
    told = {bool(getattr(one.metric, "weighted", False)) for one in measures if one.scorer == chosen}
    if len(told) > 1:
        what = f"some metrics of {chosen!r} are declared weighted and some not"
        warnings.warn(f"{what}; the trade-off at thresholds is weighted", EvaluandWarning, stacklevel=3)
    elif told == {False}:
        what = f"the weights of the dataset are not taken, as no metric of {chosen!r} is declared weighted: true"
        warnings.warn(what, EvaluandWarning, stacklevel=3)
    return told != {False}


def without_confidences(models: Sequence[str]) -> str:
    """That models have no confidences, and how they would."""
    told = f"no confidences are recorded of {', '.join(models)}, and thresholds are about confidences"
    return f"{told}; let the response have a confidence beside the prediction (see howto/tradeoffs: What to record)"


def lacking(trades: Sequence[Trade], evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    """Which trade-offs at thresholds have no points, as some of their models have no confidences."""
    for trade in trades:
        chosen = [name for name in trade.tasks or evaluations if name in evaluations]
        blank = [name for name in chosen if trade.thresholds is not None and _blank(evaluations[name], trade.scorer)]
        if blank:
            yield f"the trade-off {trade.name!r} has no points: {without_confidences(blank)}"


def _blank(evaluation: Evaluation, scorer: str | None) -> bool:
    """Whether rows were graded, and none has a confidence."""
    known = [each for each in evaluation.scorers if set(evaluation.columns(each)) >= _CONFIDENT]
    chosen = scorer or (known[0] if len(known) == 1 else None)
    if chosen not in known:
        return False
    told = [name for name in ("confidence", "scores") if name in evaluation.columns(chosen)]
    batches = evaluation.batches(chosen, ["prediction", *told])
    counts = [[len(column) - column.null_count for column in batch.columns] for batch in batches]
    predicted, *sure = map(sum, zip(*counts, strict=True)) if counts else (0,)
    return predicted > 0 and not any(sure)


def _judged(name: str, evaluation: Evaluation, by: Sequence[str], scorer: str | None) -> pa.Table:
    """The rows of an evaluation that were scored and have a truth."""
    dataset = dataset_of(evaluation)
    for attribute in by:
        if attribute not in dataset.roles.attributes:
            raise SpecError(
                f"{name}: {attribute!r} is no attribute of the dataset{nearest(attribute, dataset.roles.attributes)}; "
                "name it under attributes"
            )
    known = [each for each in evaluation.scorers if set(evaluation.columns(each)) >= _CONFIDENT]
    chosen = scorer or (known[0] if len(known) == 1 else None)
    if chosen is None or chosen not in known:
        raise SpecError(f"{name}: {_unsaid(known)}")
    table = pa.concat_tables(shards(evaluation, dataset, chosen, by), promote_options="default")
    return table.filter(pc.and_(pc.is_valid(table["truth"]), pc.equal(table["status"].cast(pa.string()), "scored")))


def _unsaid(known: Sequence[str]) -> str:
    """That it is not known whose confidences are meant."""
    told = f"say which scorer of the kind prediction is meant; there are: {', '.join(known) or 'none'}"
    return told if known else f"{told}, and confidences are what thresholds are for; without, name scores: mean(SCORER)"


def _keys(table: pa.Table) -> Iterator[tuple[int, int]]:
    return zip(*(table[name].to_pylist() for name in _KEY), strict=True)


def _of_keys(table: pa.Table, keys: Set[tuple[int, int]]) -> pa.Table:
    kept = [key in keys for key in _keys(table)]
    return table.filter(pa.array(kept)).sort_by([(name, "ascending") for name in _KEY])


def _probability(name: str, table: pa.Table, label: Any) -> np.ndarray:
    """How sure a model is of the label; NaN where it tells no confidence.

    That is its score of this class; else its confidence where that is of this class; else, of two classes, what is left
    of the confidence in the other one. The confidence in one of several others does not tell.
    """
    of = table["confidence_of"] if "confidence_of" in table.column_names else table["prediction"]
    classes = pc.coalesce(of, table["prediction"])
    given = np.array(table["confidence"].to_numpy(), np.float64)
    scores = table["scores"].combine_chunks() if "scores" in table.column_names else pa.nulls(len(table))
    sure = _scored(scores, _named(label))
    sure = np.where(np.isnan(sure), np.where([each == label for each in classes.to_pylist()], given, np.nan), sure)
    left = np.isnan(sure) & ~np.isnan(given)
    if not left.any():
        return sure
    told = [table["truth"], table["prediction"], of]
    others = {_named(one) for column in told for one in pc.unique(column).to_pylist() if one is not None}
    others |= set(_classes(scores)) - {_named(label)}
    others -= {_named(label)}
    if len(others) > 1:
        one, other = sorted(others)[:2]
        what = f"{left.sum():,} of {len(table):,} rows do not tell how sure it was of {label!r}"
        why = f"beside {one!r} and {other!r}, the confidence in one of these is not that in {label!r}"
        raise DataError(Fault(name, f"{what}: {why}; let the task give the probabilities of all classes"))
    if ((given[left] < 0) | (given[left] > 1)).any():
        raise DataError(Fault(name, "its confidences are no probabilities, so those of the other class tell nothing"))
    untold = np.isnan(_scored(scores, _named(label))) & ~np.isnan(given)
    if "confidence_of" in table.column_names:
        untold &= of.is_null().to_numpy()
    _check_own(name, given[untold], table["prediction"].filter(pa.array(untold)).to_pylist(), label)
    return np.where(left, 1 - given, sure)


def _check_own(name: str, given: np.ndarray, predicted: Sequence[Any], label: Any) -> None:
    """Stops at confidences that are plainly those of one class and not of the prediction, and tells doubtful ones.

    Of two classes the likelier one has a probability of half or more. Where it has less in many rows, and one class is
    predicted wherever the confidence is high and the other wherever it is low, it is the probability of that class.
    """
    mine = np.array([one == label for one in predicted], bool)
    low = int((given < _EVEN).sum())
    if not low or mine.all() or not mine.any():
        return
    ends = [(given[side].min(), given[side].max()) for side in (mine, ~mine)]
    of = label if ends[0][0] >= ends[1][1] else next(one for one in predicted if one != label)
    parted = ends[0][0] >= ends[1][1] or ends[1][0] >= ends[0][1]
    what = f"{low:,} of {len(given):,} confidences are below 0.5, which of two classes the predicted one cannot have"
    how = "let the response have the class beside the confidence as confidence_of, or the probabilities of both"
    if parted and low >= _PLAIN:
        told = f"and {of!r} is predicted where they are high: they seem to be the probability of {of!r}"
        raise DataError(Fault(name, f"{what}, {told}; {how} (see howto/tradeoffs: What to record)"))
    if low >= _DOUBTFUL * len(given):
        told = "they are taken for those of the predicted class; if they are the probability of one class"
        warnings.warn(f"{name}: {what}; {told}, {how}", EvaluandWarning, stacklevel=5)


def _scored(scores: pa.Array, label: str) -> np.ndarray:
    """The score of a class in each row; NaN where it has none."""
    found = np.full(len(scores), np.nan)
    if not pa.types.is_null(scores.type):
        flat, rows = scores.flatten(), scores.value_parent_indices().to_numpy()
        mine = np.flatnonzero(pc.equal(flat.field("label"), label).to_numpy(zero_copy_only=False))
        found[rows[mine]] = flat.field("score").to_numpy(zero_copy_only=False)[mine]
    return found


def _classes(scores: pa.Array) -> list[str]:
    """The classes that have scores."""
    return [] if pa.types.is_null(scores.type) else pc.unique(scores.flatten().field("label")).to_pylist()


def _named(label: Any) -> str:
    """The text of a label, as scores of classes are called."""
    return label if isinstance(label, str) else encode(label).decode()


def _of_variants(wanted: tuple[Objective, ...], names: tuple[str, ...], ends: IntervalEnds, system: str) -> Tradeoff:
    """Points without thresholds."""
    n = len(names)
    thresholds, trivial = np.full(n, np.nan), np.zeros(n, bool)
    return Tradeoff(wanted, names, np.arange(n), thresholds, ends.value, trivial, system, ends=ends)


def _check_objective(text: str, said: Mapping[str, Any]) -> None:
    """Refuses what can be no objective of stored scores, as far as its text tells.

    Raises:
        SpecError: there is no such metric or disparity, or it is about groups.
    """
    if said["metric"] in CRITERIA:
        Objective(said["metric"], said["disparity"], said["by"])
    else:
        registry.find("metrics", said["metric"])
    if said["disparity"] not in (None, *DISPARITIES):
        hint = nearest(said["disparity"], DISPARITIES)
        told = f"{text!r}: no disparity is called {said['disparity']!r}{hint}"
        raise SpecError(f"{told}; there are {', '.join(DISPARITIES)}")


def _asked(
    text: str,
    shared: Sequence[str],
    declared: Sequence[Measure],
    scorer: str | None,
    label: Label | None,
    undeclared: Callable[[str, str], Metric],
) -> tuple[Objective, list[Measure]]:
    """An objective of stored scores, with what it is measured by.

    Args:
        shared: the scorers there are.
        declared: how metrics are meant.
        scorer: whose scores, where the text does not say so.
        label: the positive one.
        undeclared: gives the metric of a kind and a scorer that was not declared.
    """
    said = written(text)
    _check_objective(text, said)
    metric, by = said["metric"], [said["by"]] if said["by"] else []
    alike = [one for one in declared if (one.criterion or one.metric.kind) == metric]
    mine = _scorer(text, said["scorer"] or scorer, shared, alike)
    known = list(dict.fromkeys(one.metric for one in alike if one.scorer == mine))
    kinds = [said["disparity"]] if said["disparity"] else []
    criterion = metric if metric in CRITERIA else None
    if len(known) > (1 if criterion is None else len(CRITERIA[criterion])):
        ways = "; ".join(one.signature for one in known)
        raise SpecError(f"{text!r} was declared in several ways: {ways}; a trade-off needs one of them")
    if not known and criterion is None:
        known = [undeclared(metric, mine)]
    elif not known:
        known = [one.metric for one in measures_of(cast(Criterion, criterion), by, scorer=mine, label=label)]
    objective = Objective(**{**said, "scorer": mine}, name=text.strip(), parts=tuple(known))
    return objective, [Measure(mine, part, by, kinds, criterion) for part in known]


def _scorer(text: str, wanted: str | None, shared: Sequence[str], alike: Sequence[Measure]) -> str:
    """The scorer an objective is of: the one named, else the one its metric was declared of, or the only one."""
    there = ", ".join(shared) or "none"
    if wanted is not None and wanted not in shared:
        raise SpecError(f"{text!r}: no scorer is called {wanted!r}{nearest(wanted, shared)}; there are {there}")
    declared = list(dict.fromkeys(one.scorer for one in alike if one.scorer in shared))
    fits = [wanted] if wanted is not None else declared if len(declared) == 1 else shared
    if len(fits) != 1:
        metric, _, rest = text.strip().partition(" ")
        such = f"{metric}({[*declared, *shared, 'SCORER'][0]}) {rest}".strip()
        raise SpecError(f"{text!r}: say of which scorer, as in {such!r}; there are {there}")
    return fits[0]


def _by_default(kind: str, label: Label | None, range: tuple[float, float] | None = None) -> Metric:
    """A metric that was not declared, with the label and the range if it has such parameters."""
    fields = {one.name for one in dataclasses.fields(registry.find("metrics", kind))}
    given = {"label": label, "range": range}
    known = {name: value for name, value in given.items() if value is not None and name in fields}
    return registry.make_default("metrics", kind, **known)  # type: ignore[no-any-return]


def _by_values(kind: str, scorer: str, evaluations: Sequence[Evaluation], label: Label | None) -> Metric:
    """A metric that was not declared; one without a range goes from 0 to 1 where all values do."""
    metric = _by_default(kind, label)
    if _by_default(kind, label, _UNIT) == metric:
        return metric
    values = (batch.column(0).drop_null() for e in evaluations for batch in e.batches(scorer, ["value"]))
    ends = [pc.min_max(each).as_py() for each in values if len(each)]
    low, high = min((e["min"] for e in ends), default=0.0), max((e["max"] for e in ends), default=0.0)
    how = f"declare it under metrics, such as {{kind: {kind}, scorer: {scorer}, range: [1, 5], direction: higher}}"
    if low < 0 or high > 1:
        told = f"the values of {scorer!r} lie from {low:g} to {high:g}, and it is not known which there can be"
        raise SpecError(f"{told}; {how}")
    told = f"{kind}({scorer}) is taken as from 0 to 1 with higher as better, as all values lie there"
    warnings.warn(f"{told}; if it is otherwise, {how}", EvaluandWarning, stacklevel=6)
    return _by_default(kind, label, _UNIT)


def _found(text: str, measures: Sequence[Measure]) -> Objective:
    """The objective with the metrics that were computed."""
    said = written(text)
    fits = [measure for measure in measures if _fits(said, measure)]
    scorers = list(dict.fromkeys(measure.scorer for measure in fits))
    if not fits:
        known = ", ".join(dict.fromkeys(map(_called, measures)))
        raise SpecError(f"{text!r} was not computed; there are: {known}")
    if len(scorers) > 1:
        raise SpecError(f"{text!r} was computed of several scorers; write such as {said['metric']}({scorers[0]})")
    parts = tuple(dict.fromkeys(measure.metric for measure in fits))
    if said["metric"] not in CRITERIA and len(parts) > 1:
        raise SpecError(f"{text!r} was computed in several ways: {'; '.join(part.signature for part in parts)}")
    return Objective(**{**said, "scorer": scorers[0]}, name=text.strip(), parts=parts)


def _fits(said: Mapping[str, Any], measure: Measure) -> bool:
    if said["scorer"] not in (None, measure.scorer):
        return False
    if said["disparity"] is None:
        return bool(said["metric"] == measure.metric.kind)
    name = measure.criterion or measure.metric.kind
    return bool(name == said["metric"] and said["disparity"] in measure.disparities and said["by"] in measure.by)


def _called(measure: Measure) -> str:
    metric = f"{measure.metric.kind}({measure.scorer})"
    if not measure.disparities:
        return metric
    by = " or ".join(", ".join(each) for each in measure.by)
    return f"{metric}, {measure.criterion or measure.metric.kind} {'|'.join(measure.disparities)} by {by}"


def _rows(aggregation: Aggregation, objective: Objective) -> Iterator[dict[str, Any]]:
    """The rows of its table that tell of an objective."""
    table = aggregation.disparities() if objective.disparity else aggregation.table()
    for row in table.to_pylist():
        if row["scorer"] != objective.scorer or row["target"] is not None:
            continue
        if objective.disparity is None:
            if row["metric"] == objective.metric and not row["by"]:
                yield row
        elif (row["metric"], row["disparity"], tuple(row["over"])) == (
            objective.metric,
            objective.disparity,
            objective.by,
        ):
            yield row


_CONFIDENT: Final = {"truth", "prediction", "confidence"}
_KEY: Final = (INDEX, "replication")
_SURE: Final = "_sure_"
_UNIT: Final = (0.0, 1.0)
_SHORT_ID: Final = 8
_EVEN: Final = 0.5
_PLAIN: Final = 5
"""So many confidences below a half are no chance, where they part the predictions."""
_DOUBTFUL: Final = 0.05
"""The share of confidences below a half from which on they are told."""
_ANY: Final = Confidences(np.array([True]), {"": np.array([0.5])}, {})
