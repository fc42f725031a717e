"""The front door: truth and predictions as arrays in, every metric with its interval out.

Nothing is stored and nothing has an id until the result is saved: the same numbers then stand in a store as a run, its
evaluation and its aggregation. Lists, NumPy arrays, pandas series and Arrow arrays are all taken as columns; no row
becomes a Python object, except where values are lists, objects or of mixed types.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure, check_measures, cluster_keys, held_as, measured
from evaluand.aggregation.disparity import DisparityRow, Kind, kinds_of
from evaluand.aggregation.fairness import Criterion, check_decided, measures_of
from evaluand.aggregation.groups import MetricRow
from evaluand.core import identity, registry
from evaluand.core.errors import DataError, Fault, SpecError, with_article
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Dataset
from evaluand.data.roles import Roles
from evaluand.evaluation.scorer import Scorer
from evaluand.experiment import Experiment, Results
from evaluand.metrics.base.labels import contents, encode_labels
from evaluand.metrics.base.metric import CLUSTER, VALUE, WEIGHT, Metric
from evaluand.report.facts import Facts
from evaluand.report.text import group_name
from evaluand.run.tasks.given import GivenTask
from evaluand.store.store import Store
from evaluand.store.tables import SHARD_ROWS

if TYPE_CHECKING:
    import pandas as pd

SCORER = "prediction"
TASK = "predictions"
_SHOWN = 10


def evaluate(
    truth: Any,
    predictions: Any,
    *,
    metrics: str | Metric | Sequence[str | Metric] = "accuracy",
    by: Any = None,
    weight: Any = None,
    confidence: Any = None,
    scores: Any = None,
    cluster: Any = None,
    disparities: Kind | Sequence[Kind] = (),
    fairness: Criterion | Sequence[Criterion] = (),
    label: str | int | bool | None = None,
) -> ArrayEvaluation:
    """What predictions are worth, with intervals, bounds and counts, overall and by groups.

    Rows belong together by their place; pandas series must have one index. A missing prediction (None, NaN) is no
    answer and a missing truth nothing to grade: both are counted as abstained and never as wrong or right in silence;
    see `missing` of the metric.

    Args:
        truth: n values: text, integers, bools, numbers, or anything JSON-like. Lists of text in which none occurs twice
            are sets of labels: their order does not matter.
        predictions: n values of the same type.
        metrics: names or metrics that read the columns of the scorer `prediction`: `truth`, `prediction`,
            `confidence`, `weight`, and `value`, which is 1 where prediction and truth are equal and 0 elsewhere. Real
            numbers have no `value`; their metrics are those of errors, such as `root_mean_squared_error`.
        by: what to group by: one array, a mapping name → array, a pandas frame or a list of named series; each name is
            one grouping.
        weight: n weights of 0 or more; every metric that can then weighs by them.
        confidence: n confidences, each in its prediction; the probabilities of one class are `scores` of it.
        scores: the scores of the classes, such as their probabilities: a mapping label → n numbers, or a pandas frame
            with a column for each label. The prediction's own is then its confidence.
        cluster: n values; rows with the same one are not independent of each other.
        disparities: how far the groups of each metric lie apart, such as `difference` and `ratio`; see `disparity.py`.
        fairness: criteria such as `equalized_odds`, whose rates are then given too, with their differences and ratios;
            see `fairness.py`.
        label: the class that is looked at, by metrics given by name that look at one, such as `f_beta` and `roc_auc`,
            and by criteria of fairness, whose decisions are for it.

    Raises:
        SpecError: types that are never equal, or a metric that does not fit.
        DataError: arrays of different lengths, or values that are none; names the rows.

    Example:
        >>> result = evaluate(["cat", "dog", "dog"], ["cat", "dog", "cat"], by={"size": ["small", "large", "large"]})
        >>> result["accuracy"].value, result["accuracy"].n
        (0.6666666666666666, 3)
        >>> [(row.by, row.value) for row in result.rows[1:]]
        [({'size': 'large'}, 0.5), ({'size': 'small'}, 1.0)]
    """
    columns = _Columns.of(truth, predictions, by, weight, confidence, scores, cluster)
    of_class = _of_class(label, scores)
    chosen = [_metric(metric, columns.kind, of_class, weighted=weight is not None) for metric in _listed(metrics)]
    kinds = kinds_of(disparities)
    measures = [Measure(SCORER, metric, tuple(columns.by), kinds) for metric in chosen]
    for criterion in (fairness,) if isinstance(fairness, str) else fairness:
        read = of_class if criterion == "calibration_by_group" else {"label": label}
        measures += measures_of(criterion, tuple(columns.by), scorer=SCORER, **read)
    for measure in measures:
        check_decided(measure, columns.truth)
    if of_class and all(getattr(measure.metric, "label", None) is None for measure in measures):
        raise SpecError(f"label={label!r}: nothing that is asked for by name looks at one class; give it to the metric")
    check_measures(measures, {SCORER: columns.scorer.readable}, columns.roles)
    table = columns.graded()
    shards = [table.slice(start, SHARD_ROWS) for start in range(0, max(table.num_rows, 1), SHARD_ROWS)]
    found = measured(measures, lambda _, __: shards, drawn=False)
    values, apart = tuple(row for _, row in found.values), tuple(row for _, row in found.disparities)
    return ArrayEvaluation(values, apart, tuple(measures), columns)


@dataclass(frozen=True)
class ArrayEvaluation:
    """What arrays came to: prints as a table, and can be saved.

    Attributes:
        rows: each metric's value overall, then by group.
        disparities: how far the groups lie apart, where that was asked for.
        measures: what was asked for.
    """

    rows: tuple[MetricRow, ...]
    disparities: tuple[DisparityRow, ...]
    measures: tuple[Measure, ...]
    columns: _Columns

    def __getitem__(self, metric: str) -> MetricRow:
        """The value of a metric over all rows.

        Raises:
            KeyError: no such metric was asked for.
        """
        for row in self.rows:
            if row.metric == metric and not row.by:
                return row
        raise KeyError(
            f"{metric!r} was not asked for; there are {', '.join(dict.fromkeys(r.metric for r in self.rows))}"
        )

    def to_dict(self) -> list[Facts]:
        """Every value as plain data, NaN as None."""
        return [{name: _plain(value) for name, value in row._asdict().items()} for row in self.rows]

    def to_json(self) -> str:
        """Every value as JSON."""
        return identity.encode(self.to_dict(), indent=True).decode()

    def to_pandas(self) -> pd.DataFrame:
        """Every value as a row of a frame.

        `by` names what the row is grouped by and is missing for the value over all rows; `group` is the group, and is
        missing for the rows that have no value there.

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
        """Keeps it in a store: as a dataset, a run of given predictions, its evaluation and its aggregation.

        Run and evaluation are called `NAME/predictions`, the aggregation `NAME`. What is there already stays.

        Args:
            store: where; `DirectoryStore()` is that of the command line.
            name: what it is called there.

        Example:
            >>> from evaluand.store.store import MemoryStore
            >>> saved = evaluate([1, 0, 1], [1, 1, 1]).save(MemoryStore(), "coin")
            >>> saved.tasks[0].run.counts
            {'completed': 3}
        """
        columns = self.columns
        given = GivenTask(TASK, {(0, row): identity.encode(output) for row, output in enumerate(columns.outputs())})
        experiment = Experiment(name, columns.dataset(), {TASK: given}, {SCORER: columns.scorer}, list(self.measures))
        return experiment.run(store)

    def __str__(self) -> str:
        from rich.console import Console

        from evaluand.report.terminal.report import disparities_table, metrics_table

        console = Console(width=100, no_color=True)
        with console.capture() as capture:
            console.print(metrics_table(self._facts()))
            if self.disparities:
                console.print()
                apart = [{name: _plain(value) for name, value in row._asdict().items()} for row in self.disparities]
                console.print(disparities_table([{"task": TASK} | row for row in apart]))
        return "\n".join(line.rstrip() for line in capture.get().splitlines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table of a notebook."""
        names = ("value", "low", "high", "worst", "best", "n", "n_scored", "n_failed", "n_abstained")
        head = "".join(f"<th>{name}</th>" for name in ("metric", "group", *names))
        body = []
        for row in self.rows:
            cells = [row.metric, group_name(row.by), *(_figure(getattr(row, name)) for name in names)]
            body.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
        rows = "".join(f"<tr>{cells}</tr>" for cells in body)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _facts(self) -> list[Facts]:
        from evaluand.report.facts import clustering

        declared = self.columns.roles.cluster
        return [
            {"task": TASK, "scorer": SCORER} | row | clustering(row["data"], declared, row["n_scored"])
            for row in self.to_dict()
        ]


@dataclass(frozen=True)
class _Columns:
    """The arrays as Arrow columns of one length."""

    scorer: Scorer
    kind: str
    truth: pa.Array
    prediction: pa.Array
    by: Mapping[str, pa.Array]
    weight: pa.Array | None
    confidence: pa.Array | None
    scores: pa.Array | None
    cluster: pa.Array | None

    @classmethod
    def of(
        cls, truth: Any, predictions: Any, by: Any, weight: Any, confidence: Any, scores: Any, cluster: Any
    ) -> _Columns:
        for name, value in (("truth", truth), ("predictions", predictions)):
            if value is None:
                raise SpecError(f"{name} is None; give an array")
        given = {"truth": truth, "predictions": predictions, "weight": weight, "confidence": confidence}
        given |= {"cluster": cluster}
        if scores is not None and confidence is not None:
            raise SpecError("scores tell the confidence of each prediction; give either scores or confidence")
        of_classes = {label: (f"score of {label!r}", value) for label, value in _classes(scores)}
        told = {**dict(of_classes.values()), **{f"by {name}": value for name, value in _attributes(by)}}
        _check_one_index({**given, **told})
        columns = {name: _column(name, value) for name, value in given.items() if value is not None}
        named = list(_attributes(by))
        twice = [name for i, (name, _) in enumerate(named) if name in [other for other, _ in named[:i]]]
        if twice:
            raise SpecError(f"by: {twice[0]!r} occurs twice; give each grouping a name of its own")
        attributes = {name: _column(f"by {name}", value) for name, value in named}
        by_class = {label: _column(name, value) for label, (name, value) in of_classes.items()}
        named_classes = {of_classes[label][0]: column for label, column in by_class.items()}
        lengths = {name: len(column) for name, column in (columns | attributes | named_classes).items()}
        if len(set(lengths.values())) > 1:
            sizes = ", ".join(f"{name} has {n:,}" for name, n in lengths.items())
            raise DataError(f"the arrays are of different lengths: {sizes}; give one value for each row")
        kind = _kind(columns["truth"], columns["predictions"])
        sure = _numbers("confidence", columns["confidence"]) if "confidence" in columns else None
        predictions = _typed(columns["predictions"], kind)
        if by_class:
            by_class = {_label(label, kind): _scores(label, column) for label, column in by_class.items()}
            sure = _own_score(predictions, by_class, kind)
        return cls(
            registry.find("scorers", SCORER)(type=kind, **({} if sure is not None else {"prediction_key": None})),
            kind,
            _typed(columns["truth"], kind),
            predictions,
            attributes,
            _weights(weight, columns["weight"]) if "weight" in columns else None,
            sure,
            _by_label(by_class) if by_class else None,
            columns.get("cluster"),
        )

    def graded(self) -> pa.Table:
        """The table of the scorer `prediction`, as it would be made row by row, with the attributes beside it."""
        n = len(self.truth)
        answered, known = pc.is_valid(self.prediction), pc.is_valid(self.truth)
        broken = pa.array(np.zeros(n, np.bool_))
        if self.kind == "number":
            broken = pc.or_(pc.is_inf(self.truth), pc.is_inf(self.prediction)).fill_null(False)
        able = pc.and_(answered, known)
        status = pc.if_else(able, pc.if_else(broken, "failed", "scored"), "abstained")
        table = {INDEX: pa.array(np.arange(n)), "status": status, "truth": self.truth, "prediction": self.prediction}
        if self.kind != "number":
            table[VALUE] = _equal(self.truth, self.prediction)
        beside = {"confidence": self.confidence, "scores": self.scores, "weight": self.weight, WEIGHT: self.weight}
        table |= {name: column for name, column in beside.items() if column is not None}
        if self.scores is not None:
            table["confidence_of"] = pc.if_else(pc.is_valid(self.confidence), self.prediction, None)
        if self.cluster is not None:
            table[CLUSTER] = cluster_keys(self.cluster)
        held = dict(zip(held_as(tuple(self.by)), self.by.values(), strict=True))
        return pa.table({**table, **held})

    @property
    def roles(self) -> Roles:
        weight, cluster = (
            None if c is None else name for name, c in (("weight", self.weight), ("cluster", self.cluster))
        )
        return Roles("row", "truth", tuple(self.by), weight=weight, cluster=cluster)

    def dataset(self) -> Dataset:
        """The truth with all that stands beside it; what a task could see is the number of the row."""
        columns = {"row": pa.array(np.arange(len(self.truth))), "truth": self.truth, **self.by}
        beside = {"weight": self.weight, "cluster": self.cluster}
        columns |= {name: column for name, column in beside.items() if column is not None}
        roles: dict[str, Any] = {"input": "row", "expected": "truth", "attributes": list(self.by)}
        roles |= {name: name for name, column in beside.items() if column is not None}
        if self.kind != "json":
            return Dataset.from_arrow(pa.table(columns), **roles)
        rows = pa.table(columns).to_pylist()
        texts = (None if row["truth"] is None else identity.decode(row["truth"]) for row in rows)
        return Dataset.from_rows([row | {"truth": value} for row, value in zip(rows, texts, strict=True)], **roles)

    def outputs(self) -> Iterator[Any]:
        """What the task gave for each row: the prediction, with its confidence where there are confidences."""
        predictions: Iterator[Any] = iter(self.prediction.to_pylist())
        if self.kind == "json":
            predictions = (None if text is None else identity.decode(text) for text in predictions)
        if self.confidence is None:
            return predictions
        sure = self.confidence.to_pylist() if self.scores is None else map(_by_text, self.scores.to_pylist())
        pairs = zip(predictions, sure, strict=True)
        return ({"prediction": p, "confidence": c} if p is not None else None for p, c in pairs)


_JSON = pa.json_(pa.string())
_OWN = frozenset(("row", "truth", "weight", "cluster"))  # what a saved dataset calls its other columns


def _listed(metrics: Any) -> Sequence[Any]:
    found = metrics if isinstance(metrics, list | tuple) else [metrics]
    if not found:
        raise SpecError("metrics is empty; name one, such as 'accuracy'")
    return found


def _of_class(label: Any, scores: Any) -> dict[str, Any]:
    """How metrics given by name look at the one class, where one was chosen."""
    chosen = {} if label is None else {"label": label}
    return chosen | ({"scored_by": "classes"} if chosen and scores is not None else {})


def _metric(given: Any, kind: str, of_class: Mapping[str, Any], *, weighted: bool) -> Metric:
    metric = _looking_at(of_class, _by_name(given, kind)) if isinstance(given, str) else given
    if not isinstance(metric, Metric):
        raise SpecError(f"a metric is a name or such as Accuracy(), and not {metric!r}")
    if kind == "number" and VALUE in metric.columns:
        raise SpecError(f"{metric.kind}: real numbers are hardly ever equal, so none is right or wrong; {_OF_NUMBERS}")
    can_weigh = any(field.name == "weighted" for field in fields(metric))
    return _weighted(metric) if weighted and can_weigh else metric


_OF_NUMBERS = """take a metric of errors, such as mean_absolute_error, root_mean_squared_error or r_squared:
    evaluate(truth, predictions, metrics="mean_absolute_error")
The mean of the predictions alone is
    evaluate(truth, predictions, metrics=Mean(column="prediction"))"""


def _by_name(name: str, kind: str) -> Any:
    known = registry.names("metrics")
    try:
        return registry.by_default("metrics", name)
    except SpecError as error:
        of_numbers = kind in ("integer", "number") and name not in known and not registry.nearest(name, known)
        raise SpecError(f"{error}; for errors of numbers, {_OF_NUMBERS}" if of_numbers else str(error)) from None


def _looking_at(of_class: Mapping[str, Any], metric: Any) -> Any:
    known = {field.name for field in fields(metric)} if metric.label_columns else set()
    return replace(metric, **{name: value for name, value in of_class.items() if name in known and "label" in known})


def _weighted(metric: Any) -> Any:
    return replace(metric, weighted=True)


def _attributes(by: Any) -> Iterator[tuple[str, Any]]:
    for name, column in _groupings(by):
        told = "group" if name is None else str(name)
        if told in _OWN or told.startswith("_"):
            raise SpecError(f"by: {told!r} is a name of our own; call it otherwise")
        yield told, column


def _groupings(by: Any) -> Iterable[tuple[Any, Any]]:
    """Name → array, the name None where it has none."""
    if by is None:
        return []
    if isinstance(by, pa.Table):
        return zip(by.column_names, by.columns, strict=True)
    if hasattr(by, "items") and not hasattr(by, "to_frame"):
        return by.items()  # type: ignore[no-any-return]
    if isinstance(by, list | tuple) and any(map(_is_array, by)):
        if all(getattr(column, "name", None) is not None for column in by):
            return [(column.name, column) for column in by]
        raise SpecError("by: the arrays of a list have no names; give a mapping, such as by={'size': [...], ...}")
    return [(getattr(by, "name", None), by)]


def _is_array(value: Any) -> bool:
    """Whether a value of a list is a column and no value to group by."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _check_one_index(given: Mapping[str, Any]) -> None:
    """Refuses pandas series whose rows are not the same: they would be put side by side by their place."""
    series = {name: value for name, value in given.items() if hasattr(value, "to_frame") and hasattr(value, "index")}
    indexed = [(name, value.index) for name, value in series.items()]
    for name, index in indexed[1:]:
        first, expected = indexed[0]
        if len(index) == len(expected) and not index.equals(expected):
            raise SpecError(f"{first} and {name} have different indexes; align them, or give {name}.to_numpy()")


def _column(name: str, given: Any) -> pa.Array:
    """An array as an Arrow column, NaN as null; what Arrow cannot hold as canonical JSON."""
    if isinstance(given, str | bytes | Mapping | Set) or not hasattr(given, "__len__"):
        raise SpecError(f"{name} is {with_article(type(given).__name__)}; give a list, an array or a column")
    if getattr(given, "ndim", 1) != 1:
        raise SpecError(f"{name} has {given.ndim} dimensions; give one value for each row")
    try:
        column = given if isinstance(given, pa.Array | pa.ChunkedArray) else pa.array(given, from_pandas=True)
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError):
        return _encoded(name, given)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # of no chunk
        column = pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    return column


def _encoded(name: str, values: Any) -> pa.Array:
    texts, faults = [], []
    for row, value in enumerate(values):
        missing = value is None or (isinstance(value, float) and value != value)
        try:
            texts.append(None if missing else identity.encode(value).decode())
        except DataError as error:
            faults.append(Fault(f"{name}, row {row}", str(error)))
    if faults:
        raise DataError(faults)
    return pa.ExtensionArray.from_storage(_JSON, pa.array(texts, pa.string()))


def _kind(truth: pa.Array, predictions: pa.Array) -> str:
    """The type of the scorer that takes both."""
    kinds = {_kind_of(column) for column in (truth, predictions)} - {""}
    if kinds <= {"integer", "number"}:
        whole = all(_is_whole(column) for column in (truth, predictions))
        return "integer" if kinds and whole else "number" if kinds else "text"
    if kinds == {"labels"} and not (_are_sets(truth) and _are_sets(predictions)):
        return "json"
    if len(kinds) == 1:
        return kinds.pop()
    if "json" in kinds or "labels" in kinds:
        return "json"
    one, other = _kind_of(truth), _kind_of(predictions)
    raise SpecError(f"truth holds {_PLURAL[one]} and predictions {_PLURAL[other]}, which are never equal; convert one")


_PLURAL = {"boolean": "bools", "integer": "integers", "number": "numbers", "text": "text"}
_SINGULAR = {plural: singular for singular, plural in _PLURAL.items()}


def _kind_of(column: pa.Array) -> str:
    held = contents(column.type)
    if held == "lists":
        return "labels" if contents(column.type.value_type) in ("", "text") else "json"
    return {**_SINGULAR, "": ""}.get(held, "json")


def _are_sets(column: pa.Array) -> bool:
    """Whether no list has a label twice, or a null."""
    if pa.types.is_null(column.type):
        return True
    row, label = pc.list_parent_indices(column), column.flatten()
    pairs = pa.table({"row": row, "label": label}).group_by(["row", "label"], use_threads=False).aggregate([])
    return bool(label.null_count == 0 and pairs.num_rows == len(label))


def _equal(truth: pa.Array, prediction: pa.Array) -> pa.Array:
    """1 where they are the same, 0 elsewhere; null where one is."""
    if pa.types.is_list(truth.type):
        (truth, prediction), _ = encode_labels([truth, prediction])
        missing = (truth < 0) | (prediction < 0)
        return pa.array((truth == prediction).astype(np.float64), mask=missing)
    return pc.equal(truth, prediction).cast(pa.float64())


def _is_whole(column: pa.Array) -> bool:
    """Whether numbers are whole: pandas makes floats of integers with gaps."""
    if not pa.types.is_floating(column.type):
        return not pa.types.is_decimal(column.type)
    fits = pc.less(pc.abs(column), 2.0**63)
    whole = pc.and_(fits, pc.equal(pc.floor(column), column))
    return pc.all(whole, min_count=0).as_py() is not False


_TYPES = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "labels": pa.list_(pa.string()),
}


def _typed(column: pa.Array, kind: str) -> pa.Array:
    if kind == "json":
        return (column if column.type == _JSON else _encoded("a value", column.to_pylist())).storage
    try:
        column = column.cast(_TYPES[kind])
        return _sorted(column) if kind == "labels" else column
    except pa.ArrowInvalid as error:
        raise DataError(f"a value does not fit in 64 bits: {error}") from None


def _sorted(column: pa.Array) -> pa.Array:
    """Lists with their labels in order, as the scorer tells them."""
    row, label = pc.list_parent_indices(column), column.flatten()
    order = pc.sort_indices(pa.table({"row": row, "label": label}), [("row", "ascending"), ("label", "ascending")])
    lengths = pc.list_value_length(column)
    offsets = pa.array(np.concatenate([[0], np.cumsum(np.asarray(pc.fill_null(lengths, 0)))]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, label.take(order))
    return pc.if_else(column.is_valid(), lists, None) if column.null_count else lists


def _numbers(name: str, column: pa.Array) -> pa.Array:
    if _kind_of(column) not in ("integer", "number", ""):
        raise SpecError(f"{name} holds {_PLURAL.get(_kind_of(column), 'objects')}; give numbers")
    return column.cast(pa.float64())


def _classes(scores: Any) -> Iterable[tuple[Any, Any]]:
    """Label → scores."""
    if scores is None:
        return []
    if not hasattr(scores, "items") or hasattr(scores, "to_frame"):
        raise SpecError('scores are a mapping label → n numbers, such as {"cat": [0.9, 0.2], "dog": [0.1, 0.8]}')
    found = list(scores.items())
    if not found:
        raise SpecError("scores hold no class; give the scores of one at least")
    return found


def _label(label: Any, kind: str) -> str:
    """The text of a class's label.

    Raises:
        SpecError: it is none that a prediction could be.
    """
    given = label.item() if isinstance(label, np.generic) else label
    wanted: dict[str, Any] = {"text": str, "integer": int, "boolean": bool}
    if kind not in wanted:
        raise SpecError(
            f"scores are those of classes, and no class is {with_article(kind)}; give text, integers or bools"
        )
    if not isinstance(given, wanted[kind]) or (kind == "integer" and isinstance(given, bool)):
        raise SpecError(
            f"scores have the label {given!r}, but predictions are {_PLURAL[kind]}; give labels of one type"
        )
    return given if kind == "text" else identity.encode(given).decode()


def _scores(label: Any, column: pa.Array) -> pa.Array:
    numbers = _numbers(f"score of {label!r}", column)
    rows = np.flatnonzero(np.asarray(pc.is_inf(numbers).fill_null(False))).tolist()
    if rows:
        raise DataError(Fault(f"score of {label!r}, row {row}", "is infinite; give a finite number") for row in rows)
    return numbers


def _own_score(predictions: pa.Array, by_class: Mapping[str, pa.Array], kind: str) -> pa.Array:
    """The score of each prediction's own class."""
    texts = predictions if kind == "text" else predictions.cast(pa.string())
    place = pc.index_in(texts, pa.array([*by_class], texts.type))
    return pc.choose(place, *by_class.values())


def _by_label(by_class: Mapping[str, pa.Array]) -> pa.Array:
    """Scores as a list of labels and scores for each row; a class without one is not in it."""
    table = np.stack([np.asarray(column.to_numpy(zero_copy_only=False), np.float64) for column in by_class.values()], 1)
    known = ~np.isnan(table)
    code = np.broadcast_to(np.arange(len(by_class), dtype=np.int32), table.shape)[known]
    labels = pa.array([*by_class], pa.string()).take(pa.array(code))
    pairs = pa.StructArray.from_arrays([labels, pa.array(table[known])], names=["label", "score"])
    ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pairs)


def _by_text(pairs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {pair["label"]: pair["score"] for pair in pairs}


def _weights(given: Any, column: pa.Array) -> pa.Array:
    weights = _numbers("weight", column)
    bad = pc.invert(pc.and_(pc.is_finite(weights), pc.greater_equal(weights, 0.0))).fill_null(True)
    rows = np.flatnonzero(np.asarray(bad)).tolist()
    if rows:
        values = np.asarray(given, object)  # as they were given: NaN and None are both null in the column
        faults = (
            Fault(f"weight, row {row}", f"{_called(values[row])} is no finite number of 0 or more") for row in rows
        )
        raise DataError(faults)
    return weights


def _called(value: Any) -> str:
    return "NaN" if isinstance(value, float) and value != value else str(value)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _figure(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value != value else f"{value:.4g}"
