"""Metrics with intervals from arrays of truth and predictions, without a store.

Nothing is stored until the result is saved; then a store has the same numbers as a run, its evaluation and its
aggregation. Lists, NumPy arrays, pandas series and Arrow arrays are all read as columns; no row becomes a Python
object, except where values are lists, objects or of mixed types.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, overload

import numpy as np
import pyarrow as pa

from evaluand.aggregation.aggregator import Measure, check_measures, compute_accepted, compute_measures
from evaluand.aggregation.disparity import DisparityRow, Kind, check_kinds
from evaluand.aggregation.fairness import Criterion, check_decided, measures_of
from evaluand.aggregation.group_rules import BONFERRONI, GroupRules, read_rules
from evaluand.aggregation.groups import MetricRow
from evaluand.aggregation.metric_errors import AbsentLabel, MetricFailed
from evaluand.aggregation.score_shards import cluster_keys
from evaluand.aggregation.shard import ATTRIBUTE
from evaluand.core import identity
from evaluand.core.errors import SpecError, kind_of, warn
from evaluand.core.files.json import none_if_nan
from evaluand.core.near import keywords, missing_attribute
from evaluand.core.provenance import OF_CLASS
from evaluand.data.dataset import Dataset
from evaluand.data.roles import Roles
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.prediction_table import SCORER, PredictionColumns, to_column
from evaluand.metrics.base.metric import CLUSTER, VALUE, Metric
from evaluand.metrics.function import as_metric
from evaluand.metrics.names import explain_unknown, has_name, is_name, name_in_tables
from evaluand.predictions.arrays.array_columns import (
    check_lengths,
    check_one_index,
    plain_label,
    read_columns,
    read_groupings,
    take_columns,
)
from evaluand.predictions.arrays.array_systems import Reading, evaluate_systems, name_scores, read_system
from evaluand.predictions.arrays.matrices import as_columns
from evaluand.predictions.columns.notes import Notes, note_lines
from evaluand.predictions.columns.proposals import Proposals, Target, note_reversed_scores
from evaluand.predictions.columns.readings import read_group
from evaluand.predictions.columns.scoring import ColumnScores, reads_text
from evaluand.predictions.columns.tables import NamedTable
from evaluand.predictions.steps import Results, Steps
from evaluand.report.facts.base import Facts
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import Store
from evaluand.store.tables import SHARD_ROWS

if TYPE_CHECKING:
    import pandas as pd

TASK = "predictions"

MetricLike = str | Metric | Callable[..., float]
"""A metric by its name, as an object, or as a function of columns."""


class Keywords(TypedDict, total=False):
    """The keywords of `evaluate`, for type checkers."""

    metrics: MetricLike | Sequence[MetricLike] | None
    by: Any
    weight: Any
    confidence: Any
    scores: Any
    cluster: Any
    columns: Mapping[str, Any] | None
    disparities: Kind | Sequence[Kind]
    fairness: Criterion | Sequence[Criterion]
    adjust: str
    label: str | int | bool | None
    classes: Sequence[str | int | bool] | None
    kind: str | None
    threshold: float | None
    data: Any


@dataclass(frozen=True, kw_only=True)
class ArrayOptions:
    """The keywords of `evaluate`."""

    metrics: MetricLike | Sequence[MetricLike] | None = None
    by: Any = None
    weight: Any = None
    confidence: Any = None
    scores: Any = None
    cluster: Any = None
    columns: Mapping[str, Any] | None = None
    disparities: Kind | Sequence[Kind] = ()
    fairness: Criterion | Sequence[Criterion] = ()
    adjust: str = BONFERRONI
    label: str | int | bool | None = None
    classes: Sequence[str | int | bool] | None = None
    kind: str | None = None
    threshold: float | None = None
    data: Any = None


@overload
def evaluate(truth: Any, predictions: Mapping[str, Any], **options: Unpack[Keywords]) -> ColumnScores: ...


@overload
def evaluate(truth: Any, predictions: Any = ..., **options: Unpack[Keywords]) -> ArrayEvaluation: ...


@keywords(ArrayOptions)
def evaluate(truth: Any, predictions: Any = None, **options: Unpack[Keywords]) -> ArrayEvaluation | ColumnScores:
    """Metrics of predictions with intervals, bounds and counts, overall and by group.

    Rows are matched by position; pandas series must have the same index. Rows with a missing prediction or a missing
    truth (None, NaN) count as abstained, and are neither wrong nor right; see `missing` of the metric. Assumptions,
    such as the positive class, are in `notes` of the result, as for `score_columns`.

    Args:
        truth: n values: text, integers, bools, numbers, or anything JSON-like. Lists of different
            texts are sets of labels, whose order does not matter; so are n × k cells of 0 and 1.
        predictions: n values of the same type; or n × k probabilities of classes, as `predict_proba` returns them, of
            which the highest is the prediction; or n × k cells of 0 and 1; or a mapping system → any of these, whose
            systems are compared row by row. None with scores: the class with the highest score, or from `threshold` on.
        metrics: names (`evaluand list metrics`), functions or metrics; by default those that suit the truth. They read
            the columns of the scorer `prediction`: `truth`, `prediction`, `confidence`, `scores`, `weight`, and
            `value`, which is 1 where prediction and truth are equal and 0 elsewhere. Real numbers have no `value`;
            their metrics are those of errors, such as `root_mean_squared_error`. Metrics by name look at the positive
            class, where there is one.
        by: what to group by: an array, a mapping name → array, a frame or a list of named series; each name is one
            grouping.
        weight: n weights of 0 or more; every metric that can use weights uses them.
        confidence: n numbers, each the confidence of a prediction; for probabilities of a class, pass `scores`.
        scores: the scores of the classes, such as their probabilities: a mapping label → n numbers, or a frame
            with a column for each label, or an array of n × k. Of two classes, n numbers are the scores of the positive
            one. The prediction's own score is then its confidence. Of several systems a mapping system → n scores of
            the positive class.
        cluster: n values; rows with equal values are not independent of each other.
        columns: further columns that a metric reads, name → n values, such as the `scale` or the `samples` of
            forecasts; a list for each row may be the row of a matrix. A result with such columns cannot be saved.
        disparities: disparities between the groups of each metric, such as `difference` and `ratio`.
        fairness: criteria such as `equalized_odds`; their rates are computed too, with differences and ratios.
        adjust: intervals of all disparities together: `bonferroni`, which hold at once, or `fdr_by`, of which those of
            disparities that are found err in at most the level's share on average (Benjamini & Yekutieli).
        label: the class that metrics of one class, such as `f_beta` and `roc_auc`, look at if they are given by name,
            and that criteria of fairness count as the positive decision.
        classes: the labels of the columns of arrays of n × k, such as `model.classes_`; by default those of the truth,
            sorted, if they are as many.
        kind: `binary`, `multiclass`, `multilabel` or `numeric`, if the truth does not say what it holds.
        threshold: without predictions: predict the positive class where its score is at least this.
        data: a table in any form that `Dataset.from_data` reads, such as a polars frame or a path; then all other
            arguments may be names of its columns, also `predictions=["old", "new"]`.

    Raises:
        SpecError: truth and predictions have types that are never equal, or a metric does not fit.
        DataError: arrays have different lengths, or values are invalid; names the rows.

    Example:
        >>> result = evaluate(["cat", "dog", "dog"], ["cat", "dog", "cat"], by={"size": ["small", "large", "large"]})
        >>> result["accuracy"].value, result["accuracy"].n, result.target.kind
        (0.6666666666666666, 3, 'binary')
        >>> [(row.by, row.value) for row in result.rows if row.metric == "accuracy"]
        [({}, 0.6666666666666666), ({'size': 'large'}, 0.5), ({'size': 'small'}, 1.0)]
        >>> both = evaluate(["cat", "dog", "dog"], {"old": ["cat", "cat", "cat"], "new": ["cat", "dog", "cat"]})
        >>> [pair] = [pair for pair in both.results.comparison.pairs if pair["metric"] == "accuracy"]
        >>> pair["won"], pair["lost"]
        (1, 0)
    """
    given = ArrayOptions(**options)
    columns: dict[str, Any] = {name: getattr(given, name) for name in _COLUMNS}
    _check_predictions(predictions, given.scores, given.threshold)
    if given.data is not None:
        take = partial(take_columns, read_columns(given.data))
        truth = take("truth", truth)
        predictions = take("predictions", predictions, named=isinstance(predictions, list | tuple))
        columns = {name: take(name, value, named=name == "by") for name, value in columns.items()}
    if truth is None:
        raise SpecError("truth is None; give an array")
    label = plain_label(given.label)
    as_text = given.metrics is not None and any(map(reads_text, _as_list(given.metrics)))
    reading = Reading(given.kind, label, given.classes, given.threshold, as_text)
    if isinstance(predictions, Mapping):
        if columns["columns"] or given.fairness:
            what = "columns are" if columns["columns"] else "fairness is"
            raise SpecError(f"{what} for one system; evaluate each by itself")
        named_metrics: Any = () if given.metrics is None else tuple(_as_list(given.metrics))
        del columns["columns"]
        return evaluate_systems(truth, predictions, named_metrics, given.disparities, reading, **columns)
    arrays = _Arrays.read(truth, predictions, reading, **columns)
    one_class = _one_class(None if label is None else arrays.proposals.target.positive, columns["scores"])
    asked = arrays.proposals.names() if given.metrics is None else _as_list(given.metrics)
    chosen = [_metric(metric, arrays) for metric in asked]
    chosen = [each for place, each in enumerate(chosen) if each not in chosen[:place]]
    rules = read_rules([(name,) for name in arrays.by], adjust=given.adjust)
    measures = _measures(arrays, chosen, given.disparities, given.fairness, one_class, rules)
    if one_class and all(getattr(measure.metric, "label", None) is None for measure in measures):
        raise SpecError(f"label={label!r}: no metric given by name looks at one class; give the label to the metric")
    table = arrays.graded()
    shards = [table.slice(start, SHARD_ROWS) for start in range(0, max(table.num_rows, 1), SHARD_ROWS)]
    compute = partial(compute_measures, tables=lambda *_, **__: shards, drawn=False)
    results = compute_accepted(measures, compute, MetricFailed)
    for metric, doubt in dict.fromkeys(results.doubts):
        if arrays.proposals.target.positive not in metric.named_labels:  # of which the notes speak
            warn(doubt, AbsentLabel)
    values, disparity = tuple(row for _, row in results.values), tuple(row for _, row in results.disparities)
    result = ArrayEvaluation(values, disparity, tuple(measures), arrays)
    for facts in result.to_dict():
        note_reversed_scores("scores", facts, arrays.proposals.target, arrays.notes, of_positive=arrays.of_positive)
    return result


_COLUMNS: Final = ("by", "weight", "confidence", "scores", "cluster", "columns")


def _check_predictions(predictions: Any, scores: Any, threshold: float | None) -> None:
    if predictions is None and scores is None:
        raise SpecError(
            'predictions is missing; write evaluate(truth, predictions), or evaluate("label", "prediction",'
            " data=PATH) for columns of a table"
        )
    if predictions is not None and threshold is not None and not isinstance(predictions, Mapping):
        raise SpecError("threshold makes predictions of scores; leave out predictions or threshold")
    if hasattr(predictions, "predict"):
        raise SpecError(f"predictions is {kind_of(predictions)}; pass what it predicts: model.predict(X)")


def _measures(
    arrays: _Arrays,
    metrics: Sequence[Metric],
    disparities: Kind | Sequence[Kind],
    fairness: Criterion | Sequence[Criterion],
    one_class: Mapping[str, Any],
    rules: GroupRules | None,
) -> list[Measure]:
    """The metrics and the rates of criteria, by each grouping; a SpecError if one does not fit the arrays."""
    by, kinds = tuple(arrays.by), check_kinds(disparities)
    measures = [Measure(SCORER, metric, by, kinds, rules=rules) for metric in metrics]
    for criterion in (fairness,) if isinstance(fairness, str) else fairness:
        parameters = one_class if criterion == "calibration_by_group" else {"label": one_class.get("label")}
        measures += measures_of(criterion, by, scorer=SCORER, rules=rules, **parameters)
    for measure in measures:
        check_decided(measure, arrays.predictions.truth)
    readable = (*arrays.predictions.scorer.readable, *arrays.further)
    check_measures(measures, {SCORER: readable}, arrays.roles)
    return measures


@dataclass(frozen=True)
class ArrayEvaluation:
    """The metrics of arrays; prints as a table and can be saved.

    Attributes:
        rows: each metric's value overall, then by group.
        disparities: the disparities between groups, if requested.
        measures: the metrics with their groupings.
        arrays: the truth and predictions that were evaluated.
    """

    rows: tuple[MetricRow, ...]
    disparities: tuple[DisparityRow, ...]
    measures: tuple[Measure, ...]
    arrays: _Arrays

    @property
    def target(self) -> Target:
        """The type of the truth."""
        return self.arrays.proposals.target

    @property
    def notes(self) -> Sequence[str]:
        """Findings about the arrays, and assumptions made."""
        return self.arrays.notes.sentences()

    def __getitem__(self, metric: str) -> MetricRow:
        """The value of a metric over all rows.

        Raises:
            KeyError: there is no such metric.
        """
        overall = [row for row in self.rows if not row.by]
        called = [row for row in overall if has_name(row.signature, metric)]
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
        """Every value as plain data, NaN as None."""
        return [{name: none_if_nan(value) for name, value in row._asdict().items()} for row in self.rows]

    def to_json(self) -> str:
        """Every value as JSON."""
        return identity.encode(self.to_dict(), indent=True).decode()

    def to_pandas(self) -> pd.DataFrame:
        """Every value as a row of a frame.

        `by` is the grouping, missing for the value over all rows; `group` is the group, missing for the group of rows
        without a value.

        Raises:
            SpecError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise SpecError("to_pandas needs pandas: pip install 'evaluand[pandas]'") from None
        records = self.to_dict()
        for record in records:
            [(record["by"], record["group"])] = record["by"].items() or [(None, None)]
        others = (name for name in MetricRow._fields if name not in ("metric", "by"))
        return pd.DataFrame(records, columns=["metric", "by", "group", *others])

    def save(self, store: Store, name: str) -> Results:
        """Stores the result as a dataset, a run of recorded predictions, its evaluation and its aggregation.

        Run and evaluation are called `NAME/predictions`, the aggregation `NAME`. Artifacts that are already stored
        stay, and nothing is graded a second time.

        Args:
            store: where; `DirectoryStore()` is the command line's.

        Example:
            >>> from evaluand.store.store import MemoryStore
            >>> saved = evaluate([1, 0, 1], [1, 1, 1]).save(MemoryStore(), "coin")
            >>> saved.tasks[0].run.counts
            {'completed': 3}
        """
        if self.arrays.further:
            names = ", ".join(map(repr, self.arrays.further))
            raise SpecError(f"a result with further columns ({names}) cannot be saved; run an experiment instead")
        predictions = self.arrays.predictions
        experiment = Steps(
            name,
            self.arrays.dataset(),
            {TASK: RecordedTask.from_texts(TASK, predictions.output_texts)},
            {SCORER: predictions.scorer},
            list(self.measures),
            origin={OF_CLASS: self.arrays.proposals.of_class},
        )
        with warnings.catch_warnings(action="ignore", category=AbsentLabel):  # it was said when they were computed
            return experiment.run(store, known_scores={TASK: {SCORER: predictions.scored_rows()}})

    def to_evaluation(self, store: Store, name: str) -> Evaluation:
        """The evaluation in a store, by which `compare` compares results; see `save`."""
        [evaluation] = self.save(store, name).evaluations.values()
        return evaluation

    def __str__(self) -> str:
        from evaluand.report.terminal.disparities import disparities_table
        from evaluand.report.terminal.plain_text import plain_text
        from evaluand.report.terminal.report import metrics_table

        parts: list[Any] = [metrics_table(self._facts())]
        if self.disparities:
            rows = [{name: none_if_nan(value) for name, value in row._asdict().items()} for row in self.disparities]
            parts += ["", disparities_table([{"task": TASK} | row for row in rows])]
        return "\n".join([plain_text(*parts, width=100), *note_lines(self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table of a notebook."""
        from evaluand.report.html.notebook import values_html

        return values_html(self.to_dict(), note_lines(self.notes))

    def _facts(self) -> list[Facts]:
        from evaluand.report.facts.aggregation import clustering

        declared = self.arrays.roles.cluster
        return [
            {"task": TASK, "scorer": SCORER} | row | clustering(row["data"], declared, row["n_scored"])
            for row in self.to_dict()
        ]


@dataclass(frozen=True, eq=False)
class _Arrays:
    """The arrays as Arrow columns of one length."""

    predictions: PredictionColumns
    by: Mapping[str, pa.Array]
    cluster: pa.Array | None
    further: Mapping[str, pa.Array]
    proposals: Proposals
    notes: Notes
    of_positive: bool  # whether scores are those of the positive class alone

    @classmethod
    def read(
        cls,
        truth: Any,
        predictions: Any,
        reading: Reading,
        *,
        by: Any,
        weight: Any,
        confidence: Any,
        scores: Any,
        cluster: Any,
        columns: Mapping[str, Any] | None,
    ) -> _Arrays:
        further = columns or {}
        if scores is not None and confidence is not None:
            raise SpecError("scores include the confidence of each prediction; give either scores or confidence")
        inputs = as_columns(truth, predictions, scores, reading.classes, reading.label)
        (scored, score_names), groupings = name_scores(inputs), list(read_groupings(by))
        arrays = {"truth": inputs.truth, "predictions": inputs.predictions, "weight": weight, "confidence": confidence}
        arrays |= {"cluster": cluster, **scored}
        arrays |= {f"by {name}": value for name, value in groupings}
        arrays |= {f"column {name}": list(v) if getattr(v, "ndim", 1) == 2 else v for name, v in further.items()}
        check_one_index(arrays)
        names = [name for name, _ in groupings]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise SpecError(f"by: {twice!r} occurs twice; give each grouping its own name")
        read = {name: to_column(name, value) for name, value in arrays.items() if value is not None}
        check_lengths(read)
        system, proposals, notes = read_system(read, score_names, reading, weight)
        by_name = {name.removeprefix("by "): column for name, column in read.items()}
        base = NamedTable("the arrays", pa.table(by_name), lambda row: f"row {row}")
        return cls(
            system,
            {name: read_group(base, name, notes) for name in names},
            base.column("cluster", "cluster") if "cluster" in read else None,
            {name: read[f"column {name}"] for name in further},
            proposals,
            notes,
            inputs.score is not None,
        )

    def graded(self) -> pa.Table:
        """The table of the scorer `prediction`, with the columns to group and to cluster by."""
        table = self.predictions.table()
        if self.cluster is not None:
            table = table.append_column(CLUSTER, cluster_keys(self.cluster))
        for name, column in self.by.items():
            table = table.append_column(ATTRIBUTE + name, column)
        for name, column in self.further.items():
            if name in table.column_names or name.startswith("_"):
                raise SpecError(f"columns: {name!r} is a reserved name; choose another")
            table = table.append_column(name, column)
        return table

    @property
    def roles(self) -> Roles:
        weight = None if self.predictions.weight is None else "weight"
        cluster = None if self.cluster is None else "cluster"
        return Roles("row", "truth", tuple(self.by), weight=weight, cluster=cluster)

    def dataset(self) -> Dataset:
        """The truth with groups, weights and clusters; a task would see the number of the row."""
        truth = self.predictions.truth
        columns = {"row": pa.array(np.arange(len(truth))), "truth": truth, **self.by}
        optional = {"weight": self.predictions.weight, "cluster": self.cluster}
        columns |= {name: column for name, column in optional.items() if column is not None}
        roles: dict[str, Any] = {"input": "row", "expected": "truth", "attributes": list(self.by)}
        roles |= {name: name for name, column in optional.items() if column is not None}
        if self.predictions.type != "json":
            return Dataset.from_arrow(pa.table(columns), **roles)
        rows = pa.table(columns).to_pylist()
        texts = (None if row["truth"] is None else identity.decode(row["truth"]) for row in rows)
        return Dataset.from_rows([row | {"truth": value} for row, value in zip(rows, texts, strict=True)], **roles)


def _as_list(metrics: Any) -> Sequence[Any]:
    listed = metrics if isinstance(metrics, list | tuple) else [metrics]
    if not listed:
        raise SpecError("metrics is empty; name one, such as 'accuracy'")
    return listed


def _one_class(label: Any, scores: Any) -> dict[str, Any]:
    """The parameters by which metrics given by name look at one class; none if no class was chosen."""
    chosen = {} if label is None else {"label": label}
    return chosen | ({"scored_by": "classes"} if chosen and scores is not None else {})


def _metric(metric: Any, arrays: _Arrays) -> Metric:
    kind = arrays.predictions.type
    if isinstance(metric, str):
        if not is_name(metric) and kind in ("integer", "number"):
            raise SpecError(f"{explain_unknown(metric)}; for errors of numbers, {_NUMERIC_HINT}")
        metric = arrays.proposals.metric(metric)
    metric = metric if isinstance(metric, Metric) else as_metric(metric) or metric
    if not isinstance(metric, Metric):
        raise SpecError(f"metrics: give names, functions or metrics such as Accuracy(), not {metric!r}")
    if kind == "number" and VALUE in metric.columns:
        raise SpecError(f"{metric.kind}: real numbers are hardly ever equal; {_NUMERIC_HINT}")
    arrays.proposals.require_predictions(metric)
    return arrays.proposals.weigh(metric)


_NUMERIC_HINT = """take a metric of errors, such as mean_absolute_error, root_mean_squared_error or r_squared:
    evaluate(truth, predictions, metrics="mean_absolute_error")
The mean of the predictions alone is
    evaluate(truth, predictions, metrics=Mean(column="prediction"))"""
