"""Metrics with intervals from arrays of truth and predictions, without a store.

Nothing is stored until the result is saved; then a store has the same numbers as a run, its evaluation and its
aggregation. Lists, NumPy arrays, pandas series and Arrow arrays are all read as columns; no row becomes a Python
object, except where values are lists, objects or of mixed types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import (
    Measure,
    attribute_columns,
    check_measures,
    cluster_keys,
    compute_accepted,
    compute_measures,
)
from evaluand.aggregation.disparity import DisparityRow, Kind, check_kinds
from evaluand.aggregation.fairness import Criterion, check_decided, measures_of
from evaluand.aggregation.groups import MetricRow
from evaluand.aggregation.metric_errors import MetricFailed
from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError, kind_of
from evaluand.core.files.json import none_if_nan
from evaluand.core.near_arguments import missing_attribute, near_arguments
from evaluand.data.dataset import Dataset
from evaluand.data.roles import Roles
from evaluand.data.sources import missing_column, open_data
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.prediction_table import SCORER, PredictionColumns, label_text, to_column
from evaluand.experiment.columns.scoring import ColumnScores, score_columns
from evaluand.experiment.columns.tables import mark_json
from evaluand.experiment.experiment import Experiment, Results
from evaluand.experiment.matrices import as_columns
from evaluand.metrics.base.metric import CLUSTER, VALUE, Metric
from evaluand.metrics.function import as_metric
from evaluand.metrics.name_table import BINARY
from evaluand.metrics.names import (
    accepted_parameters,
    explain_unknown,
    has_name,
    is_name,
    make_metric,
    name_in_tables,
    resolve_metric,
)
from evaluand.report.facts.base import Facts
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import Store
from evaluand.store.tables import SHARD_ROWS

if TYPE_CHECKING:
    import pandas as pd

TASK = "predictions"

MetricLike = str | Metric | Callable[..., float]
"""A metric by its name, as an object, or as a function of columns."""


_USAGE: Final = 'evaluate(truth, predictions, metrics=…), or evaluate("label", "prediction", data=TABLE)'
_NEAR_ARGUMENTS: Final = {
    **dict.fromkeys(("y_true", "y", "targets", "target", "references", "expected", "labels"), "truth=…, the first"),
    **dict.fromkeys(("y_pred", "y_hat", "preds", "prediction", "outputs"), "predictions=…, the second"),
    **dict.fromkeys(("y_score", "y_prob", "y_proba", "probabilities", "proba"), "scores=…"),
    **dict.fromkeys(("metric", "measures", "scoring"), "metrics=…"),
    **dict.fromkeys(("sample_weight", "weights"), "weight=…"),
    **dict.fromkeys(("groups", "group", "sensitive_features", "slices", "group_by"), "by=…"),
    **dict.fromkeys(("pos_label", "positive", "positive_class"), "label=…"),
    "average": 'the average into the name of the metric, such as metrics="f1_macro"',
    "model": "predictions=model.predict(…)",
}


@overload
def evaluate(
    truth: Any,
    predictions: Mapping[str, Any],
    *,
    metrics: str | Metric | Sequence[str | Metric] | None = ...,
    by: Any = ...,
    weight: Any = ...,
    confidence: Any = ...,
    scores: Any = ...,
    cluster: Any = ...,
    columns: Mapping[str, Any] | None = ...,
    disparities: Kind | Sequence[Kind] = ...,
    fairness: Criterion | Sequence[Criterion] = ...,
    label: str | int | bool | None = ...,
    data: Any = ...,
) -> ColumnScores: ...


@overload
def evaluate(
    truth: Any,
    predictions: Any,
    *,
    metrics: MetricLike | Sequence[MetricLike] | None = ...,
    by: Any = ...,
    weight: Any = ...,
    confidence: Any = ...,
    scores: Any = ...,
    cluster: Any = ...,
    columns: Mapping[str, Any] | None = ...,
    disparities: Kind | Sequence[Kind] = ...,
    fairness: Criterion | Sequence[Criterion] = ...,
    label: str | int | bool | None = ...,
    classes: Sequence[str | int | bool] | None = ...,
    data: Any = ...,
) -> ArrayEvaluation: ...


@near_arguments(_USAGE, **_NEAR_ARGUMENTS)
def evaluate(
    truth: Any,
    predictions: Any = None,
    *,
    metrics: MetricLike | Sequence[MetricLike] | None = None,
    by: Any = None,
    weight: Any = None,
    confidence: Any = None,
    scores: Any = None,
    cluster: Any = None,
    columns: Mapping[str, Any] | None = None,
    disparities: Kind | Sequence[Kind] = (),
    fairness: Criterion | Sequence[Criterion] = (),
    label: str | int | bool | None = None,
    classes: Sequence[str | int | bool] | None = None,
    data: Any = None,
) -> ArrayEvaluation | ColumnScores:
    """Metrics of predictions with intervals, bounds and counts, overall and by group.

    Rows are matched by position; pandas series must have the same index. Rows with a missing prediction or a missing
    truth (None, NaN) count as abstained, and are neither wrong nor right; see `missing` of the metric.

    Args:
        truth: n values: text, integers, bools, numbers, or anything JSON-like. Lists of different
            texts are sets of labels, whose order does not matter; so are n × k cells of 0 and 1.
        predictions: n values of the same type; or n × k probabilities of classes, as `predict_proba` returns them, of
            which the highest is the prediction; or n × k cells of 0 and 1; or a mapping system → n values, whose
            systems are compared row by row.
        metrics: names (`evaluand list metrics`), functions or metrics; by default `accuracy`, or errors of real
            numbers, and of several systems those that suit the truth. They read the columns of the scorer
            `prediction`: `truth`, `prediction`, `confidence`, `scores`, `weight`, and `value`, which is 1 where
            prediction and truth are equal and 0 elsewhere. Real numbers have no `value`; their metrics are those of
            errors, such as `root_mean_squared_error`.
        by: what to group by: an array, a mapping name → array, a frame or a list of named series; each name is one
            grouping.
        weight: n weights of 0 or more; every metric that can use weights uses them.
        confidence: n numbers, each the confidence of a prediction; for probabilities of a class, give `scores`.
        scores: the scores of the classes, such as their probabilities: a mapping label → n numbers, or a frame
            with a column for each label, or an array of n × k. Of two classes, n numbers are the scores of the positive
            one. The prediction's own score is then its confidence. Of several systems a mapping system → n scores of
            the positive class.
        cluster: n values; rows with equal values are not independent of each other.
        columns: further columns that a metric reads, name → n values, such as the `scale` or the `samples` of
            forecasts; a list for each row may be the row of a matrix. A result with such columns cannot be saved.
        disparities: disparities between the groups of each metric, such as `difference` and `ratio`.
        fairness: criteria such as `equalized_odds`; their rates are computed too, with differences and ratios.
        label: the class that metrics of one class, such as `f_beta` and `roc_auc`, look at if they are given by name,
            and that criteria of fairness count as the positive decision.
        classes: the labels of the columns of arrays of n × k, such as `model.classes_`; by default those of the truth,
            sorted, if they are as many.
        data: a table in any form that `Dataset.from_data` reads, such as a polars frame or a path; then all other
            arguments may be names of its columns, also `predictions=["old", "new"]`.

    Raises:
        SpecError: truth and predictions have types that are never equal, or a metric does not fit.
        DataError: arrays have different lengths, or values are invalid; names the rows.

    Example:
        >>> result = evaluate(["cat", "dog", "dog"], ["cat", "dog", "cat"], by={"size": ["small", "large", "large"]})
        >>> result["accuracy"].value, result["accuracy"].n
        (0.6666666666666666, 3)
        >>> [(row.by, row.value) for row in result.rows[1:]]
        [({'size': 'large'}, 0.5), ({'size': 'small'}, 1.0)]
        >>> both = evaluate(["cat", "dog", "dog"], {"old": ["cat", "cat", "cat"], "new": ["cat", "dog", "cat"]})
        >>> [(pair["won"], pair["lost"]) for pair in both.results.comparison.pairs]
        [(1, 0)]
    """
    _check_predictions(predictions)
    if data is not None:
        take = partial(_take_columns, read_columns(data))
        truth = take("truth", truth)
        predictions = take("predictions", predictions, named=isinstance(predictions, list | tuple))
        weight, confidence, cluster = take("weight", weight), take("confidence", confidence), take("cluster", cluster)
        by, scores, columns = take("by", by, named=True), take("scores", scores), take("columns", columns)
    if isinstance(predictions, Mapping):
        if columns:
            raise SpecError("columns are for one system; evaluate each by itself")
        named = {"weight": weight, "cluster": cluster}
        return _evaluate_systems(
            truth, predictions, metrics, by, named, (confidence, scores), disparities, fairness, label
        )
    if truth is not None and predictions is not None:
        truth, predictions, scores = as_columns(truth, predictions, scores, classes, label)
    arrays = _Arrays.read(truth, predictions, by, weight, confidence, scores, cluster, columns or {})
    one_class = _one_class(label, scores)
    kind = arrays.predictions.type
    inferred = one_class or _infer_class(arrays.predictions.truth)
    asked = _as_list(metrics) if metrics is not None else _ERRORS if kind == "number" else ("accuracy",)
    chosen = [_metric(metric, kind, one_class, inferred, weighted=weight is not None) for metric in asked]
    chosen = [each for place, each in enumerate(chosen) if each not in chosen[:place]]
    kinds = check_kinds(disparities)
    measures = [Measure(SCORER, metric, tuple(arrays.by), kinds) for metric in chosen]
    for criterion in (fairness,) if isinstance(fairness, str) else fairness:
        parameters = one_class if criterion == "calibration_by_group" else {"label": label}
        measures += measures_of(criterion, tuple(arrays.by), scorer=SCORER, **parameters)
    for measure in measures:
        check_decided(measure, arrays.predictions.truth)
    if one_class and all(getattr(measure.metric, "label", None) is None for measure in measures):
        raise SpecError(f"label={label!r}: no metric given by name looks at one class; give the label to the metric")
    readable = (*arrays.predictions.scorer.readable, *arrays.further)
    check_measures(measures, {SCORER: readable}, arrays.roles)
    table = arrays.graded()
    shards = [table.slice(start, SHARD_ROWS) for start in range(0, max(table.num_rows, 1), SHARD_ROWS)]
    compute = partial(compute_measures, tables=lambda _, __: shards, drawn=False)
    results = compute_accepted(measures, compute, MetricFailed)
    values, disparity = tuple(row for _, row in results.values), tuple(row for _, row in results.disparities)
    return ArrayEvaluation(values, disparity, tuple(measures), arrays)


_NEAR_ATTRIBUTES: Final = {
    **dict.fromkeys(("to_df", "to_dataframe", "to_frame", "as_dataframe", "df"), "to_pandas()"),
    **dict.fromkeys(("metrics", "scores", "values", "results", "overall", "by_group"), "rows"),
    **dict.fromkeys(("value", "score"), "result[NAME].value, with the name of a metric"),
    **dict.fromkeys(("show", "print", "summary", "display"), "print(result)"),
    **dict.fromkeys(("report", "to_html", "html", "plot"), "save(store, NAME), and evaluand report NAME in a shell"),
    **dict.fromkeys(("compare", "diff"), "compare(result, other)"),
}


def _check_predictions(predictions: Any) -> None:
    if predictions is None:
        raise SpecError(
            'predictions is missing; write evaluate(truth, predictions), or evaluate("label", "prediction",'
            " data=PATH) for columns of a table"
        )
    if hasattr(predictions, "predict"):
        raise SpecError(f"predictions is {kind_of(predictions)}; pass what it predicts: model.predict(X)")


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

    def __getitem__(self, metric: str) -> MetricRow:
        """The value of a metric over all rows.

        Raises:
            KeyError: there is no such metric.
        """
        overall = [row for row in self.rows if not row.by]
        for row in overall:
            if has_name(row.signature, metric):
                return row
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
        raise missing_attribute("a result", name, _NEAR_ATTRIBUTES)

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

        Run and evaluation are called `NAME/predictions`, the aggregation `NAME`. What is stored already stays, and
        nothing is graded a second time.

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
        experiment = Experiment(
            name,
            self.arrays.dataset(),
            {TASK: RecordedTask.from_texts(TASK, predictions.output_texts())},
            {SCORER: predictions.scorer},
            list(self.measures),
        )
        return experiment.run(store, known_scores={TASK: {SCORER: predictions.scored_rows()}})

    def to_evaluation(self, store: Store, name: str) -> Evaluation:
        """The evaluation in a store, by which `compare` compares results; see `save`."""
        return self.save(store, name).tasks[0].evaluation

    def __str__(self) -> str:
        from rich.console import Console

        from evaluand.report.terminal.report import disparities_table, metrics_table

        console = Console(width=100, no_color=True)
        with console.capture() as capture:
            console.print(metrics_table(self._facts()))
            if self.disparities:
                console.print()
                disparities = [
                    {name: none_if_nan(value) for name, value in row._asdict().items()} for row in self.disparities
                ]
                console.print(disparities_table([{"task": TASK} | row for row in disparities]))
        return "\n".join(line.rstrip() for line in capture.get().splitlines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table of a notebook."""
        from evaluand.report.html.notebook import values_html

        return values_html(self.to_dict())

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

    @classmethod
    def read(
        cls,
        truth: Any,
        predictions: Any,
        by: Any,
        weight: Any,
        confidence: Any,
        scores: Any,
        cluster: Any,
        further: Mapping[str, Any],
    ) -> _Arrays:
        for name, value in (("truth", truth), ("predictions", predictions)):
            if value is None:
                raise SpecError(f"{name} is None; give an array")
        if scores is not None and confidence is not None:
            raise SpecError("scores include the confidence of each prediction; give either scores or confidence")
        by_class, groupings = dict(_classes(scores)), list(_groupings(by))
        arrays = {"truth": truth, "predictions": predictions, "weight": weight, "confidence": confidence}
        arrays |= {"cluster": cluster, **{f"score of {label!r}": value for label, value in by_class.items()}}
        arrays |= {f"by {name}": value for name, value in groupings}
        arrays |= {f"column {name}": list(v) if getattr(v, "ndim", 1) == 2 else v for name, v in further.items()}
        _check_one_index(arrays)
        names = [name for name, _ in groupings]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise SpecError(f"by: {twice!r} occurs twice; give each grouping its own name")
        columns = {name: to_column(name, value) for name, value in arrays.items() if value is not None}
        _check_lengths(columns)
        return cls(
            PredictionColumns.build(
                columns["truth"],
                columns["predictions"],
                confidence=columns.get("confidence"),
                scores={label: columns[f"score of {label!r}"] for label in by_class},
                weight=weight,
            ),
            {name: columns[f"by {name}"] for name in names},
            columns.get("cluster"),
            {name: columns[f"column {name}"] for name in further},
        )

    def graded(self) -> pa.Table:
        """The table of the scorer `prediction`, with the columns to group and to cluster by."""
        table = self.predictions.table()
        if self.cluster is not None:
            table = table.append_column(CLUSTER, cluster_keys(self.cluster))
        for name, column in zip(attribute_columns(tuple(self.by)), self.by.values(), strict=True):
            table = table.append_column(name, column)
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


_RESERVED = frozenset(("row", "truth", "weight", "cluster"))  # the other columns of a saved dataset


def _evaluate_systems(
    truth: Any,
    predictions: Mapping[str, Any],
    metrics: Any,
    by: Any,
    named: Mapping[str, Any],
    confidence_and_scores: tuple[Any, Any],
    disparities: Any,
    fairness: Any,
    label: Any,
) -> ColumnScores:
    """Several systems, as columns of one table."""
    if fairness:
        raise SpecError("fairness is for one system; evaluate each by itself")
    if not predictions:
        raise SpecError("predictions is empty; give at least one system")
    given = {"truth": truth, **{str(name): values for name, values in predictions.items()}}
    options: dict[str, Any] = {}
    for option, values in zip(("confidences", "scores"), confidence_and_scores, strict=True):
        if values is not None and not (isinstance(values, Mapping) and values.keys() <= predictions.keys()):
            raise SpecError(f"{option} of several systems must be a mapping system → n numbers")
        given |= {f"{option} of {name}": column for name, column in (values or {}).items()}
        options[option] = [f"{option} of {name}" for name in values or {}]
    groupings = dict(_groupings(by))
    others = {name: values for name, values in named.items() if values is not None}
    expected = 1 + len(predictions) + sum(map(len, options.values())) + len(groupings) + len(others)
    given |= groupings | others
    if len(given) < expected:
        raise SpecError("systems and groups must have different names, none of them 'truth', 'weight' or 'cluster'")
    _check_one_index(given)
    options |= {name: name for name in others}
    columns = {name: to_column(name, values) for name, values in given.items()}
    _check_lengths(columns)
    return score_columns(
        pa.table(columns),
        "truth",
        [str(name) for name in predictions],
        metrics=() if metrics is None else tuple(_as_list(metrics)),
        by=tuple(groupings),
        disparities=check_kinds(disparities),
        pos_label=None if label is None else label_text(label),
        **options,
    )


_ERRORS: Final = ("mae", "rmse", "r2")


def _as_list(metrics: Any) -> Sequence[Any]:
    listed = metrics if isinstance(metrics, list | tuple) else [metrics]
    if not listed:
        raise SpecError("metrics is empty; name one, such as 'accuracy'")
    return listed


def _one_class(label: Any, scores: Any) -> dict[str, Any]:
    """The parameters by which metrics given by name look at one class; none if no class was chosen."""
    chosen = {} if label is None else {"label": label}
    return chosen | ({"scored_by": "classes"} if chosen and scores is not None else {})


def _infer_class(truth: pa.Array) -> dict[str, Any]:
    """The positive class of bools, or of integers that are all 0 or 1; none of other labels."""
    if pa.types.is_boolean(truth.type):
        return {"label": True}
    if not pa.types.is_integer(truth.type):
        return {}
    ends = pc.min_max(truth).as_py()
    return {"label": 1} if ends["min"] is not None and 0 <= ends["min"] <= ends["max"] <= 1 else {}


def _metric(
    metric: Any, kind: str, one_class: Mapping[str, Any], inferred: Mapping[str, Any], *, weighted: bool
) -> Metric:
    if isinstance(metric, str):
        must_choose = is_name(metric) and resolve_metric(metric).parameters.get("average") == BINARY
        metric = _find_metric(metric, kind, inferred if must_choose else one_class)
    metric = metric if isinstance(metric, Metric) else as_metric(metric) or metric
    if not isinstance(metric, Metric):
        raise SpecError(f"metrics: give names, functions or metrics such as Accuracy(), not {metric!r}")
    if kind == "number" and VALUE in metric.columns:
        raise SpecError(f"{metric.kind}: real numbers are hardly ever equal; {_NUMERIC_HINT}")
    can_weigh = any(field.name == "weighted" for field in fields(metric))
    return replace(metric, weighted=True) if weighted and can_weigh else metric  # type: ignore[call-arg]


_NUMERIC_HINT = """take a metric of errors, such as mean_absolute_error, root_mean_squared_error or r_squared:
    evaluate(truth, predictions, metrics="mean_absolute_error")
The mean of the predictions alone is
    evaluate(truth, predictions, metrics=Mean(column="prediction"))"""


def _find_metric(name: str, kind: str, one_class: Mapping[str, Any]) -> Metric:
    if not is_name(name) and kind in ("integer", "number"):
        raise SpecError(f"{explain_unknown(name)}; for errors of numbers, {_NUMERIC_HINT}")
    return make_metric(name, **accepted_parameters(name, one_class))


def _groupings(by: Any) -> Iterator[tuple[str, Any]]:
    for name, column in _named_arrays(by):
        text = "group" if name is None else str(name)
        if text in _RESERVED or text.startswith("_"):
            raise SpecError(f"by: {text!r} is a reserved name; choose another")
        yield text, column


def read_columns(data: Any) -> Mapping[str, pa.ChunkedArray]:
    """The columns of any table by name."""
    source = open_data(data, "data")
    table = mark_json(pa.Table.from_batches(source.batches(), source.schema))
    return dict(zip(table.column_names, table.columns, strict=True))


def _take_columns(known: Mapping[str, Any], argument: str, value: Any, *, named: bool = False) -> Any:
    """The column with a name, or the columns of several; other values stay as they are."""
    if isinstance(value, Mapping):
        return {name: _take_columns(known, argument, each) for name, each in value.items()}
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names) or not names:
        return value
    if not isinstance(value, str) and not (named and set(names) <= {*known}):
        return value
    for name in names:
        if name not in known:
            raise SpecError(f"{argument}: {missing_column(name, [*known])}")
    return {name: known[name] for name in names} if named else known[names[0]]


def _as_columns(frame: Any) -> Any:
    """The columns of a frame of another library by name; other values stay as they are."""
    is_frame = hasattr(frame, "__arrow_c_stream__") and hasattr(frame, "columns") and not hasattr(frame, "items")
    return read_columns(frame) if is_frame else frame


def _named_arrays(by: Any) -> Iterable[tuple[Any, Any]]:
    if by is None:
        return []
    by = _as_columns(by)
    if hasattr(by, "items") and not hasattr(by, "to_frame"):
        return by.items()  # type: ignore[no-any-return]
    if isinstance(by, list | tuple) and any(map(_is_array, by)):
        if all(getattr(column, "name", None) is not None for column in by):
            return [(column.name, column) for column in by]
        raise SpecError("by: the arrays of a list have no names; give a mapping, such as by={'size': [...], ...}")
    return [(getattr(by, "name", None), by)]


def _is_array(value: Any) -> bool:
    """Whether an item of a list is a column, and not a value to group by."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _check_one_index(arrays: Mapping[str, Any]) -> None:
    series = {name: value for name, value in arrays.items() if hasattr(value, "to_frame") and hasattr(value, "index")}
    indexed = [(name, value.index) for name, value in series.items()]
    for name, index in indexed[1:]:
        first, expected = indexed[0]
        if len(index) == len(expected) and not index.equals(expected):
            raise SpecError(f"{first} and {name} have different indexes; align them, or give {name}.to_numpy()")


def _check_lengths(columns: Mapping[str, pa.Array]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {n:,}" for name, n in lengths.items())
        raise DataError(f"the arrays are of different lengths: {sizes}; give one value for each row")


def _classes(scores: Any) -> Iterable[tuple[Any, Any]]:
    if scores is None:
        return []
    scores = _as_columns(scores)
    if not hasattr(scores, "items") or hasattr(scores, "to_frame"):
        raise SpecError('scores must be a mapping label → n numbers, such as {"cat": [0.9, 0.2], "dog": [0.1, 0.8]}')
    classes = list(scores.items())
    if not classes:
        raise SpecError("scores is empty; give the scores of at least one class")
    return classes
