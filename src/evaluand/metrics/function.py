"""A function of the user as a metric: its value over the rows of a group, with a bootstrap interval.

The function is called with columns as NumPy arrays and returns one number, as the metrics of scikit-learn do:
`def top(truth, prediction)`, or `fbeta_score` as a `functools.partial` with `beta=2`. The names of its parameters say
which columns it reads (`PARAMETERS`). An interval needs no formula: whole clusters are drawn with replacement, and
the function is called again for each draw. If the function fails, only its number is missing.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import uuid
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from evaluand.core import identity
from evaluand.core.errors import SpecError, describe_error, kind_of, warn
from evaluand.core.fingerprint import code_identity
from evaluand.metrics.base.class_scores import CONFIDENCE, SCORES
from evaluand.metrics.base.confusion import PREDICTION, TRUTH
from evaluand.metrics.base.labels import in_order
from evaluand.metrics.base.metric import (
    FEWEST_REPLICATES,
    LABELS,
    VALUE,
    WEIGHT,
    Columns,
    Direction,
    State,
    check_whole_number,
    refuse_empty,
    stored_as,
)
from evaluand.metrics.base.signature import encode_word, format_percent
from evaluand.metrics.base.weighted_rows import GroupResult, WeightedRowsMetric, clusters_in
from evaluand.metrics.stats.intervals import random_bits
from evaluand.metrics.stats.resampling import draw_places

PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    TRUTH: ("truth", "y_true", "expected", "target", "actual", "labels_true", "gold", "y"),
    PREDICTION: ("prediction", "predictions", "y_pred", "predicted", "output", "labels_pred", "forecast", "y_hat"),
    SCORES: ("scores", "y_score", "y_prob", "y_proba", "y_pred_proba", "probabilities", "probas", "proba"),
    CONFIDENCE: ("confidence", "confidences"),
    VALUE: ("value", "values"),
    WEIGHT: ("weight", "weights", "sample_weight"),
}
"""Column → the parameters of a function that read it. A parameter with the name of any other column reads that."""


@dataclass(frozen=True, kw_only=True)
class FunctionMetric(WeightedRowsMetric):
    """A function of columns as a metric.

    Args:
        function: takes columns as arrays and returns a number. Its first two parameters are truth and prediction, or
            its only one is `value`, unless their names say otherwise, see `PARAMETERS`. Scores of classes come as a
            matrix of rows × classes in the order of the labels, of two classes as those of the second.
        name: the name in tables; by default that of the function.
        code_version: names what the code cannot show, such as the model that it asks; the code counts beside it.
        files: further files on which it depends.
        direction: whether a higher or a lower value is better; by default neither.
        range: the lowest and the highest possible value.
        bootstrap: how many times clusters of rows are drawn for the interval.
        weighted: pass the weights of the examples to the parameter `sample_weight` or `weight`.
        confidence: of the interval; None for no interval.

    Raises:
        SpecError: the function cannot be called with columns, or a parameter is invalid.

    Example:
        >>> from evaluand import evaluate
        >>> def within_one(truth, prediction):
        ...     return np.mean(np.abs(truth - prediction) <= 1)
        >>> evaluate([1.0, 2.0, 5.0], [1.5, 4.0, 5.5], metrics=within_one)["within_one"].value
        0.6666666666666666
    """

    kind = "function"
    has_differences: ClassVar[bool] = False  # its bootstrap draws the rows of one system

    function: Callable[..., Any] = field(repr=False)
    name: str = ""
    code_version: str | None = None
    files: Sequence[str | os.PathLike[str]] = ()
    direction: Direction | None = None
    range: tuple[float, float] = (-math.inf, math.inf)
    bootstrap: int = 400
    reads: Mapping[str, str] = field(init=False, repr=False, hash=False)
    keywords: frozenset[str] = field(init=False, repr=False, hash=False)
    code: Mapping[str, Any] = field(init=False, repr=False, hash=False)

    def __post_init__(self) -> None:
        function: Any = self.function
        if not callable(function) or isinstance(function, type):
            raise SpecError(f"a metric's function must be callable with columns, not {kind_of(self.function)}")
        name = self.name or _function_name(self.function)
        check_whole_number(name, "bootstrap", self.bootstrap, FEWEST_REPLICATES)
        if self.direction not in ("higher", "lower", None):
            raise SpecError(f"{name}: direction={self.direction!r} must be 'higher' or 'lower', or be omitted")
        reads = _read_parameters(self.function, name)
        if self.weighted and WEIGHT not in reads.values():
            raise SpecError(f"{name} takes no weights; give it the parameter sample_weight, or leave out weighted")
        chosen = {parameter: column for parameter, column in reads.items() if self.weighted or column != WEIGHT}
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "files", tuple(self.files))
        object.__setattr__(self, "range", (float(self.range[0]), float(self.range[1])))
        object.__setattr__(self, "reads", chosen)
        parameters = inspect.signature(function).parameters.values()
        keywords = (one.name for one in parameters if one.kind is one.KEYWORD_ONLY or one.default is not one.empty)
        object.__setattr__(self, "keywords", frozenset(keywords))
        object.__setattr__(self, "code", self._identify(name))
        super().__post_init__()

    def _identify(self, name: str) -> dict[str, Any]:
        """What distinguishes the code; code that may compute something else next time is distinct each time."""
        found = code_identity(
            "function", self.function, version=self.code_version, files=self.files, place=_place_of(self.function)
        )
        if found.pinned:
            return dict(found.spec)
        warn(
            f"metric {name}: its code is not pinned ({found.unpinned[0]}), so its values are not reused; "
            "declare a version to pin it"
        )
        return {**found.spec, "made": uuid.uuid4().hex}

    @property
    def interval_name(self) -> str | None:
        return None if self.confidence is None else f"bootstrap-{self.bootstrap}"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for column in self.reads.values() if column != WEIGHT))

    @property
    def row_columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.columns

    @property
    def label_columns(self) -> tuple[str, ...]:
        return tuple(name for name in (TRUTH, PREDICTION) if name in self.columns) if SCORES in self.columns else ()

    @property
    def score_columns(self) -> tuple[str, ...]:
        return (SCORES,) if SCORES in self.columns else ()

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        lacking = [(p, column) for p, column in self.reads.items() if stored_as(column) not in (*available, WEIGHT)]
        if lacking:
            parameter, column = lacking[0]
            raise SpecError(
                f"the parameter {parameter!r} of {self.name} reads the column {column!r}, which the table lacks; "
                f"it has {', '.join(map(repr, available))}"
            )
        return self.columns

    def prepare(self, columns: Columns) -> Columns:
        for name in self.columns:
            if name not in (SCORES, *self.label_columns):
                refuse_empty(columns, name)
        labels = {LABELS: columns[LABELS]} if LABELS in columns else {}
        return {**labels, **{name: columns[name] for name in self.columns}}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        raise NotImplementedError("a function is called for rows, see group_results")

    def group_results(self, state: State) -> Iterator[tuple[int, GroupResult]]:
        for group, rows in self.rows_of(state):
            arguments = self._arguments(rows)
            value, reason = self._call(arguments)
            ends = (math.nan, math.nan)
            if reason is None and self.confidence is not None:
                ends = self._bootstrap_ends(arguments, clusters_in(rows))
            yield group, GroupResult(value, dict, reason, ends=ends)

    def _arguments(self, rows: Columns) -> dict[str, np.ndarray]:
        """Parameter → the column it reads, as an array of its natural type."""
        decoded = {name: rows[name] for name in self.columns}
        if SCORES in decoded:
            vocabulary = rows[LABELS]
            for name in self.label_columns:
                decoded[name] = vocabulary[rows[name]]
            scores, ordered = rows[SCORES], in_order(vocabulary).tolist()
            known = [place for place in ordered if not np.isnan(scores[:, place]).all()]
            decoded[SCORES] = scores[:, known[1] if len(known) == 2 else known]  # as scikit-learn has it
        decoded |= {name: _natural_type(column) for name, column in decoded.items()}
        return {p: rows[WEIGHT] if column == WEIGHT else decoded[column] for p, column in self.reads.items()}

    def _call(self, arguments: Mapping[str, np.ndarray]) -> tuple[float, str | None]:
        """The number that the function returns, and why there is none."""
        by_name = {name: column for name, column in arguments.items() if name in self.keywords}
        try:
            found = self.function(*(column for name, column in arguments.items() if name not in by_name), **by_name)
            if found is None or np.ndim(found) or isinstance(found, str):
                raise TypeError(f"returned {'an array' if np.ndim(found) else kind_of(found)}, not a number")
            value = float(found)
        except _OF_THE_MACHINE as error:
            error.add_note(
                f"raised by the metric {self.name}, so no values were stored; mend the cause and repeat this"
            )
            raise
        except Exception as error:
            return math.nan, f"{self.name} failed: {describe_error(error)}"
        return (value, None) if math.isfinite(value) else (math.nan, f"{self.name} returned {value}")

    def _bootstrap_ends(self, arguments: Mapping[str, np.ndarray], key: np.ndarray) -> tuple[float, float]:
        """The percentile interval of clusters drawn with replacement; NaN where too few draws have a value.

        Clusters are numbered by what their rows hold, so that draws do not depend on the order of the rows.
        """
        assert self.confidence is not None
        columns = [codes for column in arguments.values() for codes in _codes(column)]
        _, content = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        keys, cluster = np.unique(key, return_inverse=True)
        n, held = len(keys), np.zeros(len(keys), np.uint64)
        np.add.at(held, cluster, random_bits(content.astype(np.uint64).ravel(), 0))
        cluster = np.argsort(np.argsort(held, kind="stable"))[cluster]
        if n < 2:
            return math.nan, math.nan
        order = np.argsort(cluster, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(cluster))[:-1]) if n < len(key) else []
        found = np.full(self.bootstrap, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the call with all rows has warned
            for draw in range(self.bootstrap):
                [drawn] = draw_places(n, draw, 1, seed=0)
                rows = np.concatenate([parts[c] for c in drawn]) if parts else order[drawn]
                # NaN of such as a draw of one class only
                found[draw], _ = self._call({name: column[rows] for name, column in arguments.items()})
        known = found[np.isfinite(found)]
        if len(known) < _LEAST_KNOWN * self.bootstrap or np.ptp(known) == 0:
            return math.nan, math.nan
        low, high = np.quantile(known, [(1 - self.confidence) / 2, (1 + self.confidence) / 2])
        return float(low), float(high)

    @property
    def spec(self) -> dict[str, Any]:
        names = ("missing", "reduce", "over_targets", "weighted", "confidence", "name", "code", "direction", "range")
        plain = {"code": dict(self.code), "range": [end if math.isfinite(end) else None for end in self.range]}
        parameters = {name: getattr(self, name) for name in (*names, "bootstrap")} | plain
        return {"kind": self.kind, "version": self.version, "parameters": parameters}

    @property
    def signature(self) -> str:
        pinned = {name: value for name, value in self.code.items() if name != "made"}
        code = self.code.get("version") or identity.digest(pinned).hex()[:_SHORT]
        words = [self.kind, f"v{self.version}", f"missing={self.missing}", f"reduce={self.reduce}"]
        words += [f"name={encode_word(self.name)}", f"code={encode_word(code)}"]
        words += [f"over_targets={encode_word(self.over_targets)}"] if self.over_targets else []
        words += ["weighted=true"] if self.weighted else []
        if self.confidence is not None:
            words.append(f"interval={self.interval_name} {format_percent(self.confidence)}")
        return " ".join(words)


_LEAST_KNOWN: Final = 0.95
"""The share of draws that must have a value for an interval."""

_OF_THE_MACHINE: Final = (OSError, MemoryError)
"""Errors that may not occur the next time, so that no value is stored in their place."""

_SHORT: Final = 12


def as_metric(value: Any) -> FunctionMetric | None:
    """A metric of a function or a partial; None if it is neither."""
    return FunctionMetric(function=value) if callable(value) and not isinstance(value, type) else None


def _function_name(function: Any) -> str:
    """The name of a function; of a partial with the arguments it sets."""
    if isinstance(function, functools.partial):
        given = [*map(repr, function.args), *(f"{name}={value!r}" for name, value in function.keywords.items())]
        return f"{_function_name(function.func)}({', '.join(given)})" if given else _function_name(function.func)
    return str(getattr(function, "__name__", type(function).__name__))


def _place_of(function: Any) -> str:
    """The module and the name of a function, or of the one that a partial calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__qualname__)}"


def _read_parameters(function: Callable[..., Any], name: str) -> dict[str, str]:
    """Parameter → the column it reads: of those without a default, and those for weights."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise SpecError(f"{name} shows no parameters; wrap it in a function of truth and prediction") from None
    column_of = {parameter: column for column, names in PARAMETERS.items() for parameter in names}
    required = [one.name for one in parameters if one.default is one.empty and one.kind not in _VARIADIC]
    if not required:
        raise SpecError(f"{name} takes no columns; give it parameters such as truth and prediction")
    usual = (VALUE,) if len(required) == 1 else (TRUTH, PREDICTION)
    reads = {}
    for place, parameter in enumerate(required):
        usual_column = usual[place] if place < len(usual) and not any(p in column_of for p in required) else parameter
        reads[parameter] = column_of.get(parameter, usual_column)
    weights = (one.name for one in parameters if one.name in PARAMETERS[WEIGHT] and one.name not in reads)
    return reads | dict.fromkeys(weights, WEIGHT)


_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _natural_type(column: np.ndarray) -> np.ndarray:
    """Objects that are all texts, integers or bools as an array of that type."""
    if column.dtype != np.object_ or not len(column):
        return column
    kinds = {type(value) for value in column.tolist()}
    return np.array(column.tolist()) if kinds in ({str}, {int}, {bool}) else column


def _codes(column: np.ndarray) -> Iterator[np.ndarray]:
    """What rows hold, numbered in order."""
    texts = column if column.dtype.kind in "biuf" else np.array([repr(value) for value in column.tolist()])
    for part in texts.reshape(len(column), -1).T:
        yield np.unique(part, return_inverse=True)[1]
