"""`evaluate`: predictions that exist, as arrays or as columns of tables, measured, compared and checked by gates.

Nothing is stored unless a store is given or the result is saved; then the store has the same numbers. Lists, NumPy
arrays, pandas series and Arrow arrays are all read as columns; no row becomes a Python object, except where values are
lists, objects or of mixed types.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from evaluand.core.errors import SpecError, kind_of
from evaluand.core.near import keywords
from evaluand.evaluation.prediction_table import label_text
from evaluand.predictions.arrays import read_arrays
from evaluand.predictions.columns.files import score_tables
from evaluand.predictions.columns.names import looks_like_id
from evaluand.predictions.columns.notes import PYTHON, Notes
from evaluand.predictions.columns.scoring import score_systems
from evaluand.predictions.columns.tables import NamedTable, as_table, read_table
from evaluand.predictions.matrices import plain_label
from evaluand.predictions.options import ColumnOptions, EvaluateOptions, Keywords, as_tuple
from evaluand.predictions.result import SystemScores


@keywords(EvaluateOptions)
def evaluate(truth: Any, predictions: Any = None, **options: Unpack[Keywords]) -> SystemScores:
    """Metrics of predictions with intervals, bounds and counts, overall and by group, and their comparison.

    Rows of arrays are matched by position; pandas series must have the same index. Rows with a missing prediction or a
    missing truth (None, NaN) count as abstained, and are neither wrong nor right; see `missing`. Types and metrics
    follow from the data: assumptions, such as the positive class, are in `notes` of the result. A metric that cannot
    use what there is has a row with the reason; an error is raised only if all are refused.

    Args:
        truth: n values: text, integers, bools, numbers, or anything JSON-like. Lists of different
            texts are sets of labels, whose order does not matter; so are n × k cells of 0 and 1. Lists of the tags of
            tokens, such as `B-PER`, are sets of spans.
        predictions: n values of the same type; or n × k probabilities of classes, as `predict_proba` returns them, of
            which the highest is the prediction; or n × k cells of 0 and 1; or a mapping system → any of these, whose
            systems are compared row by row. None with scores: the class with the highest score, or from `threshold` on.
        metrics: names (`evaluand list metrics`), dictionaries such as `{"kind": "f_beta", "beta": 2}`, functions or
            metrics; by default those that suit the truth. They read the columns of the scorer `prediction`: `truth`,
            `prediction`, `confidence`, `scores`, `weight`, and `value`, which is 1 where prediction and truth are equal
            and 0 elsewhere. Real numbers have no `value`; their metrics are those of errors, such as
            `root_mean_squared_error`. Metrics by name look at the positive class, where there is one.
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
        gates: rules such as `accuracy >= 0.9`, checked for each system; of several the first is `baseline`, and the
            others are judged.
        missing: how rows without a prediction count: `leave_out` (the default; gates that hold are then undecided where
            more than one row in twenty has none), `wrong` or `refuse`.
        label: the class that metrics of one class, such as `f_beta` and `roc_auc`, look at if they are given by name,
            and that criteria of fairness count as the positive decision.
        classes: the labels of the columns of arrays of n × k, such as `model.classes_`; by default those of the truth,
            sorted, if they are as many.
        kind: `binary`, `multiclass`, `multilabel` or `numeric`, if the truth does not say what it holds.
        threshold: without predictions: predict the positive class where its score is at least this.
        intervals: whether to compute intervals of values.
        groups: the most groups of a grouping; more are refused.
        data: a table of any library, a mapping column → values, a list of rows, a file; or a list of tables or files,
            each of one system. Then the other arguments name columns, or paths into them (`gold.answers[0]`): of
            several systems `predictions=["old", "new"]`; of scores one for each system, or label → column; `by` a list
            of columns, of which a list, or `a,b`, crosses several. A single table may be combined with arrays.
        truth_file: with data: the table or file with the truth, if it is another one; joined by `id`.
        id: with data: the column that names each row, by which files are joined.
        inputs: with data: columns to show with each example.
        where: with data: only rows of the truth that match this condition, such as `age > 30`; see `RowFilter`.
        types: with data: column → `integer`, `number`, `boolean`, `text` or `list`, in place of what its cells look
            like.
        store: where runs, evaluations and values are stored under `name`; by default nothing is stored.
        name: what they are called.

    Raises:
        SpecError: there is no such column, truth and predictions have types that are never equal, or no metric fits.
        DataError: arrays have different lengths, or values are invalid; names the rows.

    Example:
        >>> result = evaluate(["cat", "dog", "dog"], ["cat", "dog", "cat"], by={"size": ["small", "large", "large"]})
        >>> result["accuracy"].value, result["accuracy"].n, result.target.kind
        (0.6666666666666666, 3, 'binary')
        >>> [(row.by, row.value) for row in result.rows if row.metric == "accuracy"]
        [({}, 0.6666666666666666), ({'size': 'large'}, 0.5), ({'size': 'small'}, 1.0)]
        >>> table = {"label": ["cat", "dog", "dog"], "old": ["cat", "cat", "cat"], "new": ["cat", "dog", "cat"]}
        >>> both = evaluate("label", ["old", "new"], data=table, metrics="accuracy")
        >>> [pair] = both.results.comparison.pairs
        >>> both["new", "accuracy"].value, pair["won"], pair["lost"]
        (0.6666666666666666, 1, 0)
    """
    given = EvaluateOptions(**options)
    if isinstance(given.metrics, list | tuple) and not given.metrics:
        raise SpecError("metrics is empty; name one, such as 'accuracy'")
    _check_predictions(predictions, given)
    if given.data is not None:
        if _are_names(truth, predictions, given):
            return _require_use_of_label(_evaluate_columns(truth, predictions, given), given)
        truth, predictions, given = _take_columns(truth, predictions, given)
    if truth is None:
        raise SpecError("truth is None; give an array")
    for name in ("truth_file", "id", "inputs", "where", "types"):
        if getattr(given, name):
            raise SpecError(f"{name} is for columns of a table; give data=TABLE and the names of its columns")
    base, specs, chosen = read_arrays(truth, predictions, given)
    result = score_systems(base, specs, chosen, Notes(PYTHON, arrays=True), given.store, given.name)
    return _require_use_of_label(result, given)


_ROLES = ("by", "weight", "confidence", "scores", "cluster", "columns")


def _check_predictions(predictions: Any, given: EvaluateOptions) -> None:
    if predictions is None and given.scores is None:
        raise SpecError(
            'predictions is missing; write evaluate(truth, predictions), or evaluate("label", "prediction",'
            " data=PATH) for columns of a table"
        )
    if hasattr(predictions, "predict"):
        raise SpecError(f"predictions is {kind_of(predictions)}; pass what it predicts: model.predict(X)")


def _require_use_of_label(result: SystemScores, given: EvaluateOptions) -> SystemScores:
    """Refuses a label that nothing reads: no metric, gate, threshold or later comparison of what is stored."""
    if given.label is None or given.gates or given.threshold is not None or given.store is not None:
        return result
    if not any("label=" in row.signature for row in result.rows):
        raise SpecError(
            f"label={given.label!r}: no metric given by name looks at one class; give the label to the metric"
        )
    return result


# Columns of tables


def _evaluate_columns(truth: str, predictions: Any, given: EvaluateOptions) -> SystemScores:
    scores = given.scores
    if isinstance(scores, Mapping):
        scores = [f"{label_text(plain_label(label))}={column}" for label, column in scores.items()]
    chosen = ColumnOptions(
        truth=truth,
        predictions=as_tuple(predictions),
        scores=as_tuple(scores),
        confidences=as_tuple(given.confidence),
        by=as_tuple(given.by),
        label=plain_label(given.label),
        weight=given.weight,
        cluster=given.cluster,
        columns=as_tuple(given.columns),
        **given.shared(),
    )
    as_named = partial(_as_table, types=chosen.column_types())
    if isinstance(given.data, list | tuple) and _are_tables(given.data, given.id, given.truth_file is not None):
        files = [as_named(table, f"table {place}") for place, table in enumerate(given.data, 1)]
    else:
        files = [as_named(given.data, "the table")]
    base = files[0] if given.truth_file is None else as_named(given.truth_file, "the table of the truth")
    return score_tables(base, files, chosen, given.store, given.name, notes=Notes(PYTHON))


def _are_names(truth: Any, predictions: Any, given: EvaluateOptions) -> bool:
    """Whether all arguments name columns, and none is an array."""
    roles = [predictions, *(getattr(given, name) for name in _ROLES if name != "scores")]
    scores = [*given.scores.values()] if isinstance(given.scores, Mapping) else given.scores
    return isinstance(truth, str) and all(value is None or _is_name(value) for value in (*roles, scores))


def _is_name(value: Any) -> bool:
    """Whether a value is a name, or a list of names; texts that occur twice in a list are labels of rows."""
    if not isinstance(value, list | tuple):
        return isinstance(value, str)
    return bool(value) and all(map(_is_name, value)) and len({*map(repr, value)}) == len(value)


def _take_columns(truth: Any, predictions: Any, given: EvaluateOptions) -> tuple[Any, Any, EvaluateOptions]:
    """The arguments with the columns that some of them name, where others are arrays."""
    table = _as_table(given.data, "data", {})

    def take(option: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: take(option, own) for name, own in value.items()}
        return table.column(value, option) if isinstance(value, str) else value

    taken = {name: take(name, getattr(given, name)) for name in _ROLES}
    if _is_name(given.by):
        taken["by"] = {name: table.column(name, "by") for name in as_tuple(given.by)}
    return take("truth", truth), take("predictions", predictions), replace(given, data=None, **taken)


def _are_tables(items: Sequence[Any], id: str | None, joined: bool) -> bool:
    """Whether a list is one of tables, and not of rows.

    Mappings are tables if their values are columns of one length, and if lists as cells would make no sense: rows are
    joined, or lists are ids.
    """
    if not (items and isinstance(items[0], Mapping)):
        return True
    if not all(isinstance(table, Mapping) and _has_columns(table) for table in items):
        return False
    return joined or any(name == id or looks_like_id(name) for name in items[0])


def _has_columns(table: Mapping[str, Any]) -> bool:
    """Whether all values are arrays of one length."""
    scalar = (str, bytes, Mapping)
    lengths = {
        len(values) if hasattr(values, "__len__") and not isinstance(values, scalar) else None
        for values in table.values()
    }
    return len(lengths) == 1 and None not in lengths


def _as_table(value: Any, name: str, types: Mapping[str, str]) -> NamedTable:
    return read_table(value, types=types) if isinstance(value, str | os.PathLike) else as_table(value, name, types)
