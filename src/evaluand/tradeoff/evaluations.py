"""Trade-offs of stored scores: each task of an experiment, or each of its settings, is a point.

A system without thresholds (an LLM application) has one point per variant that was run. Values, disparities and
intervals are those of an aggregation, and are computed from the stored scores. Classifiers with stored confidences have
points at every threshold instead: `confidences_of` reads them, as the input of `solve`.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Aggregation, Measure, check_measures, compute_measures
from evaluand.aggregation.fairness import CRITERIA, Criterion, measures_of
from evaluand.aggregation.score_shards import dataset_of, is_repeated, shards
from evaluand.aggregation.seen import StoppedRun
from evaluand.aggregation.shard import ATTRIBUTE
from evaluand.comparison.measures import declared_measures, find_evaluations
from evaluand.core.errors import DataError, Fault, SpecError, nearest, pluralize, warn
from evaluand.core.key_columns import INDEX
from evaluand.core.labels import short_labels
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.prediction_table import class_score, label_text, scored_classes
from evaluand.metrics.base.metric import CLUSTER, WEIGHT, Metric
from evaluand.metrics.names import accepted_parameters, as_called, make_metric, resolve_metric
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.store.store import Store
from evaluand.tradeoff.confidences import Confidences, positive_label
from evaluand.tradeoff.objectives import Objective, check_disparity, parse_objectives, parse_text
from evaluand.tradeoff.points import Tradeoff

Label = str | int | bool

UNIT: Final = (0.0, 1.0)
"""The assumed range of a metric that declares none."""


def find_variants(store: Store, names: Sequence[str]) -> dict[str, Evaluation]:
    """The evaluations behind names of runs, evaluations and aggregations, by the names of their tasks.

    So the same variants have the same names when they are run on other data. Where task names are unknown or repeated,
    the evaluations get the labels of a comparison.

    Raises:
        NotFound: nothing has this name, or it was never evaluated.
        SpecError: the name is of something without evaluations, an evaluation occurs twice, or the evaluations are of
            different data.
    """
    pairs = [(name, each) for name in names for each in find_evaluations(store, name)]
    first: dict[str, str] = {}
    for name, each in pairs:
        if each.id in first:
            again = f"{name!r} repeats {first[each.id]!r}" if name != first[each.id] else f"{name!r} occurs twice"
            raise SpecError(f"{again}: {each.name or each.id} is one point or model; leave one out")
        first[each.id] = name
    evaluations = [each for _, each in pairs]
    _check_same_data(pairs)
    origins = [(each.manifest["provenance"] or {}).get("origin") or {} for each in evaluations]
    tasks = [str(origin["task"]) for origin in origins if "task" in origin]
    if len(set(tasks)) < len(evaluations):
        tasks = short_labels([each.name for each in evaluations], [each.id for each in evaluations])
    return dict(zip(tasks, evaluations, strict=True))


def of_evaluations(
    evaluations: Mapping[str, Evaluation],
    objectives: Sequence[str],
    *,
    label: Label | None = None,
    scorer: str | None = None,
    declared: Sequence[Measure] | None = None,
    system: str = "system",
) -> Tradeoff:
    """A point for each evaluation, computed from its stored scores; no aggregation is needed.

    Rows without a score count as the metric defines, and are reported as an `EvaluandWarning`.

    Args:
        evaluations: variant of the system → its evaluation.
        objectives: such as `mean(quality)` and `mean(quality) difference by topic`.
        label: the positive label, for metrics of classes that were declared without one.
        scorer: the scorer whose scores are read, where an objective does not name one.
        declared: metrics with their direction, range and other parameters; by default those of the aggregation of the
            evaluations. An undeclared mean has the range from 0 to 1 if all its values are within it, which is
            reported as an `EvaluandWarning`.

    Raises:
        SpecError: there is no such scorer, metric or attribute, or the range of a metric is unknown.
    """
    each = list(evaluations.values())
    known = declared_measures(each) if declared is None else declared
    shared = [name for name in each[0].scorers if all(name in one.scorers for one in each)]
    resolved = [
        resolve_objective(text, shared, known, scorer, label, lambda kind, of: _metric_by_values(kind, of, each, label))
        for text in objectives
    ]
    parsed = parse_objectives([objective for objective, _ in resolved])
    ends = np.full((3, len(each), len(parsed)), np.nan)
    for number, (name, evaluation) in enumerate(evaluations.items()):
        tables = {scorer: evaluation.columns(scorer) for scorer in evaluation.scorers}
        for place, (objective, measures) in enumerate(resolved):
            check_measures(measures, tables, dataset_of(evaluation).roles)
            ends[:, number, place] = _measure(name, objective, measures, evaluation)
    return _variant_points(parsed, tuple(evaluations), IntervalEnds(*ends), system)


def of_aggregation(aggregation: Aggregation, objectives: Sequence[str], system: str = "system") -> Tradeoff:
    """A point for each evaluation of an aggregation, under its label there.

    Args:
        aggregation: of the variants of a system, with the disparities of the objectives.
        objectives: such as `mean(quality)` and `mean(quality) difference by topic`.

    Raises:
        SpecError: the aggregation has no such metric or disparity, or several.
    """
    parsed = tuple(_find_objective(text, aggregation.measures) for text in objectives)
    ends = np.full((3, len(aggregation.labels), len(parsed)), np.nan)
    for place, objective in enumerate(parsed):
        table = aggregation.disparities() if objective.disparity else aggregation.table()
        for row in table.to_pylist():
            groups = tuple(row["over"] if objective.disparity else row["by"])
            key = (row["scorer"], row["target"], row["metric"], row.get("disparity"), groups)
            if key != (objective.scorer, None, objective.metric, objective.disparity, objective.by):
                continue
            for part, name in zip(ends, IntervalEnds._fields, strict=True):
                part[row["evaluation"], place] = np.nan if row[name] is None else row[name]
    return _variant_points(parsed, tuple(aggregation.labels), IntervalEnds(*ends), system)


def check_objective(text: str, parts: Mapping[str, Any]) -> None:
    """Refuses objectives that stored scores cannot have, as far as their parts (see `parse_text`) show."""
    if parts["metric"] in CRITERIA:
        Objective(parts["metric"], parts["disparity"], parts["by"])
    else:
        resolve_metric(parts["metric"])
    check_disparity(repr(text), parts["disparity"])


def resolve_objective(
    text: str,
    scorers: Sequence[str],
    declared: Sequence[Measure],
    scorer: str | None,
    label: Label | None,
    metric_of: Callable[[str, str], Metric],
) -> tuple[Objective, list[Measure]]:
    """An objective of stored scores, and its measures; `metric_of` makes metrics that were not declared."""
    parts = parse_text(text)
    check_objective(text, parts)
    metric, by = parts["metric"], [parts["by"]] if parts["by"] else []
    same_metric = [one for one in declared if _is_of_metric(one, metric)]
    chosen = _choose_scorer(text, parts["scorer"] or scorer, scorers, same_metric)
    metrics = list(dict.fromkeys(one.metric for one in same_metric if one.scorer == chosen))
    disparities = [parts["disparity"]] if parts["disparity"] else []
    criterion = metric if metric in CRITERIA else None
    if len(metrics) > (1 if criterion is None else len(CRITERIA[criterion])):
        signatures = "; ".join(one.signature for one in metrics)
        raise SpecError(f"{text!r} was declared several times: {signatures}; a trade-off needs one of them")
    if not metrics and criterion is None:
        metrics = [metric_of(metric, chosen)]
    elif not metrics:
        metrics = [one.metric for one in measures_of(cast(Criterion, criterion), by, scorer=chosen, label=label)]
    objective = Objective(**{**parts, "scorer": chosen}, name=text.strip(), parts=tuple(metrics))
    return objective, [Measure(chosen, part, by, disparities, criterion) for part in metrics]


def _is_of_metric(measure: Measure, name: str) -> bool:
    """Whether a measure is of the metric, or of the criterion, with a name."""
    return _is_metric(measure.metric, name) if measure.criterion is None else measure.criterion == name


def _is_metric(metric: Metric, name: str) -> bool:
    return metric.kind == name or as_called(metric, name) is metric


def as_declared(objective: Objective, declared: Iterable[Measure], scorer: str | None) -> Objective:
    """An objective of decisions with the parameters that its metric was declared with, if once, such as `beta`."""
    same = {
        measure.metric
        for measure in declared
        if measure.criterion is None and scorer in (None, measure.scorer)
        if _is_metric(measure.metric, objective.metric)
    }
    [default, *others] = objective.parts
    if len(same) != 1 or others or {type(metric) for metric in same} != {type(default)}:
        return objective
    names = [field.name for field in dataclasses.fields(default) if field.name not in _OF_ROWS]
    settings = {name: getattr(metric, name) for metric in same for name in names}
    return dataclasses.replace(objective, parts=(dataclasses.replace(default, **settings),))


_OF_ROWS: Final = {
    *("label", "labels", "average", "scored_by", "column", "weighted"),
    *("missing", "reduce", "over_targets", "confidence", "bootstrap"),
}
"""Parameters that say which rows and classes count, as confidences do themselves."""


def default_metric(name: str, label: Label | None, range: tuple[float, float] | None = None) -> Metric:
    """A metric that was not declared, with the label and the range if it has such parameters."""
    settings = {"label": label, "range": range}
    return make_metric(
        name, **accepted_parameters(name, {n: value for n, value in settings.items() if value is not None})
    )


def _check_same_data(evaluations: Sequence[tuple[str, Evaluation]]) -> None:
    """Refuses evaluations on different examples; the same examples may have other roles."""
    data: dict[str, tuple[str, Dataset]] = {}
    for name, each in evaluations:
        data.setdefault(each.manifest["spec"]["dataset"], (name, dataset_of(each)))
    (one, first), *others = data.values()
    for other, second in others:
        pairs = zip(first, second, strict=False)
        if len(first) != len(second) or any(
            (a.id, a.input_digest, a.expected) != (b.id, b.input_digest, b.expected) for a, b in pairs
        ):
            raise SpecError(
                f"{one!r} is on the dataset {_describe(first)} and {other!r} on {_describe(second)}, and the models or "
                "variants of one system are compared on the same examples; to compare systems, name each: --stored "
                "SYSTEM=NAME; to evaluate the picked point on other data: --on-stored"
            )


def _describe(dataset: Dataset) -> str:
    name = f"{dataset.name!r} " if dataset.name else ""
    return f"{name}({dataset.id[:_SHORT_ID]}, {len(dataset):,} examples)"


def _measure(
    name: str, objective: Objective, measures: Sequence[Measure], evaluation: Evaluation
) -> tuple[float, float, float]:
    """The value of an objective in an evaluation, with its interval."""
    read, stopped = partial(shards, evaluation), StoppedRun.of(evaluation)
    result = compute_measures(measures, read, repeated=is_repeated(evaluation), drawn=False, stopped=stopped)
    values = [row for _, row in result.values if not row.by and row.target is None]
    rows = [row for _, row in result.disparities if row.target is None] if objective.disparity else values
    if not rows:
        raise SpecError(f"{objective.name!r} has a value for each target, and none over all: see over_targets")
    if values and values[0].n_scored < values[0].n:
        missing = values[0].n - values[0].n_scored
        have = pluralize(missing, "has", "have")
        warn(f"{name}: {objective.name}: {missing:,} of {values[0].n:,} rows {have} no score")
    if math.isnan(rows[0].value):
        warn(f"{name}: {objective.name} is undefined: {rows[0].reason}")
    return rows[0].value, rows[0].low, rows[0].high


def _variant_points(
    objectives: tuple[Objective, ...], names: tuple[str, ...], ends: IntervalEnds, system: str
) -> Tradeoff:
    n = len(names)
    thresholds, trivial = np.full(n, np.nan), np.zeros(n, bool)
    return Tradeoff(objectives, names, np.arange(n), thresholds, ends.value, trivial, system, ends=ends)


def _choose_scorer(text: str, name: str | None, scorers: Sequence[str], same_metric: Sequence[Measure]) -> str:
    """The scorer of an objective: the one named, else the one its metric was declared for, or the only one."""
    known = ", ".join(scorers) or "none"
    if name is not None and name not in scorers:
        raise SpecError(f"{text!r}: no scorer is called {name!r}{nearest(name, scorers)}; there are {known}")
    declared = list(dict.fromkeys(one.scorer for one in same_metric if one.scorer in scorers))
    candidates = [name] if name is not None else declared if len(declared) == 1 else scorers
    if len(candidates) != 1:
        metric, _, rest = text.strip().partition(" ")
        example = f"{metric}({[*declared, *scorers, 'SCORER'][0]}) {rest}".strip()
        raise SpecError(f"{text!r}: name the scorer, as in {example!r}; there are {known}")
    return candidates[0]


def _metric_by_values(kind: str, scorer: str, evaluations: Sequence[Evaluation], label: Label | None) -> Metric:
    """A metric that was not declared; one without a range gets 0 to 1 if all values are within it."""
    metric = default_metric(kind, label)
    if default_metric(kind, label, UNIT) == metric:
        return metric
    values = (batch.column(0).drop_null() for e in evaluations for batch in e.batches(scorer, ["value"]))
    ends = [pc.min_max(each).as_py() for each in values if len(each)]
    low, high = min((e["min"] for e in ends), default=0.0), max((e["max"] for e in ends), default=0.0)
    hint = f"declare it under metrics, such as {{kind: {kind}, scorer: {scorer}, range: [1, 5], direction: higher}}"
    if low < 0 or high > 1:
        problem = f"the values of {scorer!r} lie between {low:g} and {high:g}, and the range of its scores is unknown"
        raise SpecError(f"{problem}; {hint}")
    assumption = f"{kind}({scorer}) is assumed to range from 0 to 1, higher is better, since all its values do"
    warn(f"{assumption}; otherwise {hint}")
    return default_metric(kind, label, UNIT)


def _find_objective(text: str, measures: Sequence[Measure]) -> Objective:
    """The objective, with the metrics of an aggregation that computed it."""
    parts = parse_text(text)
    matches = [measure for measure in measures if _matches(parts, measure)]
    scorers = list(dict.fromkeys(measure.scorer for measure in matches))
    if not matches:
        known = ", ".join(dict.fromkeys(map(_measure_text, measures)))
        raise SpecError(f"{text!r} was not computed; there are: {known}")
    if len(scorers) > 1:
        raise SpecError(f"{text!r} was computed of several scorers; write such as {parts['metric']}({scorers[0]})")
    metrics = tuple(dict.fromkeys(measure.metric for measure in matches))
    if parts["metric"] not in CRITERIA and len(metrics) > 1:
        raise SpecError(f"{text!r} was computed several times: {'; '.join(part.signature for part in metrics)}")
    return Objective(**{**parts, "scorer": scorers[0]}, name=text.strip(), parts=metrics)


def _matches(parts: Mapping[str, Any], measure: Measure) -> bool:
    if parts["scorer"] not in (None, measure.scorer):
        return False
    if parts["disparity"] is None:
        return _is_metric(measure.metric, parts["metric"])
    disparate = parts["disparity"] in measure.disparities and parts["by"] in measure.by
    return bool(_is_of_metric(measure, parts["metric"]) and disparate)


def _measure_text(measure: Measure) -> str:
    metric = f"{measure.metric.kind}({measure.scorer})"
    if not measure.disparities:
        return metric
    by = " or ".join(", ".join(each) for each in measure.by)
    return f"{metric}, {measure.criterion or measure.metric.kind} {'|'.join(measure.disparities)} by {by}"


_SHORT_ID: Final = 8


CONFIDENT: Final = {"truth", "prediction", "confidence"}
"""The columns of a scorer's table that make it one of predictions with confidences."""


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

    Rows without a confidence of some model are left out for all models, and reported as an `EvaluandWarning`. Rows
    count by the weights of the dataset, unless metrics of these scores are declared and none is `weighted`. Clusters
    are those of the dataset; without any, the replications of an example form one.

    Args:
        evaluations: model → its evaluation.
        by: attributes of the dataset.
        label: the positive label; by default `True` of bools and 1 of integers.
        scorer: one of the kind `prediction`; by default the only one with confidences.
        system: the name of the system that the models belong to.
        declared: metrics as they were declared; by default those of the aggregation of the evaluations.

    Raises:
        SpecError: there is no such scorer or attribute, or the examples differ.
        DataError: no row has a confidence of every model.
    """
    tables = {name: _scored_rows(name, evaluation, by, scorer) for name, evaluation in evaluations.items()}
    labels = {one for table in tables.values() for one in pc.unique(table["truth"]).to_pylist()}
    label = positive_label(sorted(labels, key=lambda one: (str(type(one)), one)), label)
    confidence = {name: _probability(name, table, label) for name, table in tables.items()}
    if missing := [name for name, each in confidence.items() if len(each) and np.isnan(each).all()]:
        raise DataError(missing_confidences(missing))
    known = {name: tables[name].filter(pa.array(~np.isnan(confidence[name]))) for name in tables}
    common = set.intersection(*(set(_keys(table)) for table in known.values()))
    if not common:
        raise DataError("no row has a truth and a confidence of every model; were they run on the same examples?")
    if left_out := len(set().union(*map(_keys, tables.values()))) - len(common):
        words = "1 row is left out" if left_out == 1 else f"{left_out:,} rows are left out"
        warn(f"{words}, as not every model has a confidence for {'it' if left_out == 1 else 'them'}")
    order = [(name, "ascending") for name in _KEY]
    used = {}
    for name, table in tables.items():
        chosen = pa.array([key in common for key in _keys(table)])
        used[name] = table.append_column(_CONFIDENCE, pa.array(confidence[name])).filter(chosen).sort_by(order)
    first = next(iter(used.values()))
    positive = pa.array([one == label for one in first["truth"].to_pylist()], pa.bool_())
    models = {name: table[_CONFIDENCE] for name, table in used.items()}
    attributes = {name: first[ATTRIBUTE + name] for name in by}
    weight, cluster = (first[column] if column in first.column_names else None for column in (WEIGHT, CLUSTER))
    if weight is not None and not _is_weighted(evaluations, scorer, declared):
        weight = None
    cluster = first[INDEX] if cluster is None else cluster  # replications of an example are not independent
    return Confidences.read(positive, models, attributes, label=True, system=system, weight=weight, cluster=cluster)


def missing_confidences(models: Sequence[str]) -> str:
    """A message for models without confidences."""
    return (
        f"no confidences are recorded of {', '.join(models)}, and thresholds apply to confidences; add a confidence to "
        "the response (see howto/tradeoffs: What to record)"
    )


def lacks_confidences(evaluation: Evaluation, scorer: str | None) -> bool:
    """Whether rows have predictions, and none has a confidence."""
    chosen = prediction_scorer(evaluation, scorer)
    if chosen is None:
        return False
    columns = [name for name in ("confidence", "scores") if name in evaluation.columns(chosen)]
    batches = evaluation.batches(chosen, ["prediction", *columns])
    counts = [[len(column) - column.null_count for column in batch.columns] for batch in batches]
    predicted, *known = map(sum, zip(*counts, strict=True)) if counts else (0,)
    return predicted > 0 and not any(known)


def prediction_scorer(evaluation: Evaluation, scorer: str | None) -> str | None:
    """The scorer whose table has confidences: the one named, or the only one; None if there is none."""
    known = _prediction_scorers(evaluation)
    chosen = scorer or (known[0] if len(known) == 1 else None)
    return chosen if chosen in known else None


def unclear_scorer(known: Sequence[str]) -> str:
    """A message for confidences whose scorer is not clear."""
    message = f"name the scorer of the kind prediction; there are: {', '.join(known) or 'none'}"
    hint = "thresholds apply to confidences; without them, use objectives of scores such as mean(SCORER)"
    return message if known else f"{message}; {hint}"


def _prediction_scorers(evaluation: Evaluation) -> list[str]:
    return [each for each in evaluation.scorers if set(evaluation.columns(each)) >= CONFIDENT]


def _is_weighted(evaluations: Mapping[str, Evaluation], scorer: str | None, declared: Sequence[Measure] | None) -> bool:
    """Whether rows count by their weights: as in the metrics of the same scores; yes if there are none."""
    each = list(evaluations.values())
    chosen = scorer or _prediction_scorers(each[0])[0]
    measures = declared_measures(each) if declared is None else declared
    settings = {bool(getattr(one.metric, "weighted", False)) for one in measures if one.scorer == chosen}
    if len(settings) > 1:
        warn(f"some metrics of {chosen!r} are declared weighted and some not; the trade-off at thresholds is weighted")
    elif settings == {False}:
        warn(f"the weights of the dataset are ignored, as no metric of {chosen!r} is declared weighted: true")
    return settings != {False}


def _scored_rows(name: str, evaluation: Evaluation, by: Sequence[str], scorer: str | None) -> pa.Table:
    """The rows of an evaluation that were scored and have a truth."""
    dataset = dataset_of(evaluation)
    for attribute in by:
        if attribute not in dataset.roles.attributes:
            raise SpecError(
                f"{name}: {attribute!r} is not an attribute of the dataset"
                f"{nearest(attribute, dataset.roles.attributes)}; name it under attributes"
            )
    chosen = prediction_scorer(evaluation, scorer)
    if chosen is None:
        raise SpecError(f"{name}: {unclear_scorer(_prediction_scorers(evaluation))}")
    table = pa.concat_tables(shards(evaluation, chosen, by), promote_options="default")
    return table.filter(pc.and_(pc.is_valid(table["truth"]), pc.equal(table["status"].cast(pa.string()), "scored")))


def _keys(table: pa.Table) -> Iterator[tuple[int, int]]:
    return zip(*(table[name].to_pylist() for name in _KEY), strict=True)


def _probability(name: str, table: pa.Table, label: Any) -> np.ndarray:
    """A model's confidence in the label; NaN where the row has none.

    It is the score of this class; else the confidence, if that is of this class; else, of two classes, one minus the
    confidence in the other. The confidence in one of several other classes says nothing about the label.
    """
    of = table["confidence_of"] if "confidence_of" in table.column_names else table["prediction"]
    classes = pc.coalesce(of, table["prediction"])
    confidence = np.array(table["confidence"].to_numpy(), np.float64)
    scores = table["scores"].combine_chunks() if "scores" in table.column_names else pa.nulls(len(table))
    score = class_score(scores, label_text(label))
    own = np.where(
        np.isnan(score), np.where([each == label for each in classes.to_pylist()], confidence, np.nan), score
    )
    complement = np.isnan(own) & ~np.isnan(confidence)
    if not complement.any():
        return own
    columns = [table["truth"], table["prediction"], of]
    others = {label_text(one) for column in columns for one in pc.unique(column).to_pylist() if one is not None}
    others |= set(scored_classes(scores))
    others -= {label_text(label)}
    if len(others) > 1:
        one, other = sorted(others)[:2]
        have = pluralize(complement.sum(), "has", "have")
        problem = f"{complement.sum():,} of {len(table):,} rows {have} no confidence in {label!r}"
        reason = f"with {one!r} and {other!r} as further classes, the confidence in one of them does not give it"
        raise DataError(Fault(name, f"{problem}: {reason}; have the task return the probabilities of all classes"))
    if ((confidence[complement] < 0) | (confidence[complement] > 1)).any():
        problem = f"its confidences are not probabilities, so that in {label!r} does not follow from the other class"
        raise DataError(Fault(name, f"{problem}; record the confidence in {label!r}"))
    implied = np.isnan(score) & ~np.isnan(confidence)
    if "confidence_of" in table.column_names:
        implied &= of.is_null().to_numpy()
    _check_predicted_class(name, confidence[implied], table["prediction"].filter(pa.array(implied)).to_pylist(), label)
    return np.where(complement, 1 - confidence, own)


def _check_predicted_class(name: str, confidence: np.ndarray, predicted: Sequence[Any], label: Any) -> None:
    """Refuses confidences that clearly are those of one class, not of the prediction, and warns of doubtful ones.

    Of two classes the more likely one has a probability of a half or more. If many predictions have less, and one class
    is predicted wherever the confidence is high and the other wherever it is low, then it is the probability of that
    class.
    """
    is_label = np.array([one == label for one in predicted], bool)
    low = int((confidence < _EVEN).sum())
    if not low or is_label.all() or not is_label.any():
        return
    ends = [(confidence[side].min(), confidence[side].max()) for side in (is_label, ~is_label)]
    likely = label if ends[0][0] >= ends[1][1] else next(one for one in predicted if one != label)
    separated = ends[0][0] >= ends[1][1] or ends[1][0] >= ends[0][1]
    counts = f"{low:,} of {len(confidence):,} confidences are below 0.5"
    problem = f"{counts}, and the predicted of two classes has 0.5 or more"
    hint = "add the class of the confidence to the response as confidence_of, or the probabilities of both"
    if separated and low >= _CLEAR:
        finding = f"{likely!r} is predicted where they are high, so they seem to be the probability of {likely!r}"
        raise DataError(Fault(name, f"{problem}; {finding}; {hint} (see howto/tradeoffs: What to record)"))
    if low >= _DOUBTFUL * len(confidence):
        assumption = "they are read as those of the predicted class; if they are the probability of one class"
        warn(f"{name}: {problem}; {assumption}, {hint}")


_KEY: Final = (INDEX, "replication")
_CONFIDENCE: Final = "_confidence_"
_EVEN: Final = 0.5
_CLEAR: Final = 5
"""So many confidences below a half are no accident where they separate the predictions."""
_DOUBTFUL: Final = 0.05
"""The share of confidences below a half that gets a warning."""
