"""Metrics: what summarises many rows into one value, for each group of rows.

A metric never sees the whole table. It turns rows into a *state* (arrays with one entry per group, such as a count
and a sum), states of shards merge in order, and `compute` turns the last state into values. So a shard on another
worker, a group of examples, a threshold and a bootstrap replicate are all the same thing: one more axis of the
state. Nothing in a state grows with the number of rows unless the metric needs every row.

What is true of a metric stands in its type, not in a comment: its direction, its range, what it does about rows
without a score (`missing`) and about several responses to one example (`reduce`). All parameters together are its
`signature`; two values may be compared only where their signatures agree.

The rows go through a metric like this:

    scored rows ── prepare ──▶ checked columns ── reduce ──▶ one row per example ── state, merge, compute ──▶ Values

Kinds live in `evaluand.metrics`, one file each.
"""

from __future__ import annotations

import dataclasses
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from numbers import Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.identity import encode
from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.curves import Drawn
from evaluand.metrics.stats.intervals import CLUSTER_TABLE, merge_clusters

Columns = Mapping[str, np.ndarray]
"""Rows as columns of equal length. `_index_` is among those to be prepared, so that a message can name the row; those
to be summarised have `_weight_` where the examples have weights, and `_cluster_` (64-bit keys) where rows belong
together or the metric asks for it."""

State = Mapping[str, np.ndarray]
"""What a metric keeps: the first axis of every array is the group, further axes are free (threshold, replicate); all
but the arrays of `CLUSTER_TABLE`."""

Direction = Literal["higher", "lower"]
Missing = Literal["leave_out", "wrong", "refuse"]
Fill = Literal["worst", "best", "wrong"]
"""What a missing row is taken for: for the bounds, and for `missing="wrong"`."""
Reduce = Literal["first", "best", "any", "mean", "all"]
OverTargets = Literal["pooled", "mean"]

Labels = Mapping[str, Sequence[Any]]
"""The labels, or sets of labels, that occur in each column of labels, each once."""

VALUE = "value"
WEIGHT = "_weight_"
LABELS = "_labels_"
CLUSTER = "_cluster_"
APART = "_apart_"
NO_ROWS = "no scored rows"
WEIGHTLESS = "all weights are 0"
"""Why there is no value, where there are no rows and where rows have no weight."""


@dataclass(frozen=True)
class Values:
    """One value per group.

    Attributes:
        value: NaN where undefined.
        low: lower end of the interval, NaN where there is none.
        high: upper end of the interval, NaN where there is none.
        reason: why the value, or else only its interval, is undefined; None where nothing is.
        data: what else the metric has to say, JSON-like.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    reason: Sequence[str | None]
    data: Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """Summarises rows by group. Subclasses are frozen dataclasses whose fields are their parameters.

    Args:
        missing: what happens to rows that failed or abstained. `leave_out` takes the value over the scored rows alone
            (the bounds `worst` and `best` then tell what was left out), `wrong` gives each the worst value it could
            have had, `refuse` stops with the rows' names.
        reduce: how several responses to one example become one row: the `first`, the `best` by direction, `any` (the
            largest: 1 if one of them is 1), their `mean`, or `all`, each response a row of its own.
        over_targets: where examples have several targets, a value for all of them beside that of each: of the rows of
            all targets as if they were one (`pooled`), or the `mean` of the targets' values; None for none.

    Attributes:
        kind: the registered name.
        version: raised whenever the same parameters would give another value.
        reductions: the ways of reducing that make sense for this metric.
        over_replications: a row is an example with all its replications, which `reduced` makes one value of.
        averages: the value is the mean of one number per row, so that two of them differ by the mean of differences.

    Raises:
        SpecError: the parameters contradict each other.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "all")
    over_replications: ClassVar[bool] = False
    averages: ClassVar[bool] = False

    missing: Missing = "leave_out"
    reduce: Reduce = "first"
    over_targets: OverTargets | None = None

    def __post_init__(self) -> None:
        if self.over_targets is not None:
            _one_of(self.kind, "over_targets", self.over_targets, get_args(OverTargets))
        for field in dataclasses.fields(self):
            if field.default is False and not isinstance(getattr(self, field.name), bool):
                raise SpecError(f"{self.kind}: {field.name}={getattr(self, field.name)!r} must be true or false")
        _one_of(self.kind, "missing", self.missing, get_args(Missing))
        _one_of(self.kind, "reduce", self.reduce, self.reductions)
        if self.reduce == "best" and self.direction is None:
            raise SpecError(f"{self.kind}: reduce='best' needs a direction; it is neither higher nor lower")
        if self.missing == "wrong" and not math.isfinite(self.ends[0]):
            raise SpecError(
                f"{self.kind}: missing='wrong' needs the worst value a row can have, but the direction is "
                f"{self.direction} and the range of a row {self.row_range}; give both, or use missing='leave_out'"
            )

    @property
    def direction(self) -> Direction | None:
        """Whether a higher or a lower value is better; None where neither is."""
        return None

    @property
    def interval(self) -> str | None:
        """The name of the interval's method, shown in the signature."""
        return None

    @property
    def by_cluster(self) -> bool:
        """Whether rows are always to be told apart by `_cluster_`, each its own where nothing binds them."""
        return False

    @property
    def counts_apart(self) -> bool:
        """Whether rows that are examples of their own are told apart by `_apart_` instead, which costs less."""
        return False

    @property
    def fewest_answers(self) -> int:
        """How many answers to each example it needs."""
        return 1

    @property
    def looks_at(self) -> float:
        """How many of an example's answers it looks at, from the first on."""
        return 1 if self.reduce == "first" else math.inf

    @property
    def range(self) -> tuple[float, float]:
        """The values the metric can take; infinite where unbounded."""
        return (-math.inf, math.inf)

    @property
    def row_range(self) -> tuple[float, float]:
        """The values of a single row; infinite where unknown.

        Where an end is finite, missing rows can be `filled`; by default only for metrics that `prepare` one number per
        row, in the column `value`.
        """
        return (-math.inf, math.inf)

    @property
    def ends(self) -> tuple[float, float]:
        """The worst and the best value of a single row; NaN without a direction."""
        low, high = self.row_range
        return {"higher": (low, high), "lower": (high, low), None: (math.nan, math.nan)}[self.direction]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the scorer's table this metric reads."""
        return (VALUE,)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Those of its columns that hold labels: they come as codes into one vocabulary, the column `LABELS`.

        A vocabulary has each label once, as text, an integer or a bool; a missing label has the code -1.
        """
        return ()

    @property
    def score_columns(self) -> tuple[str, ...]:
        """Those of its columns that hold scores of labels: they come as a matrix, a column for each of `LABELS`.

        A label that a row has no score for is NaN there.
        """
        return ()

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        """The columns to read from a table that has these, or leaves of its JSON: see `LEAF`.

        Raises:
            SpecError: the table lacks a column; the message names it.
        """
        lacking = [name for name in self.columns if stored_as(name) not in available]
        if lacking:
            raise SpecError(f"{self.kind} reads {_listed(lacking)}, which the table lacks; it has {_listed(available)}")
        return self.columns

    def settled(self, labels: Labels) -> Self:
        """This metric with what its parameters leave to the labels there are; by default itself.

        It is the settled metric whose values are computed and whose signature stands beside them, so that a signature
        tells which definition was used. All rows that are asked for decide together, scored or not: no shard, group or
        failed row does so for itself.

        Args:
            labels: of each of its `label_columns` that the table has; nothing of a table without such columns.

        Raises:
            SpecError: the parameters do not fit the labels.
        """
        return self

    def prepare(self, columns: Columns) -> Columns:
        """Checks scored rows and gives the columns that are reduced and summarised.

        Runs once on every scored row, before several responses are reduced. The default refuses empty cells and
        leaves the columns as they are.

        Args:
            columns: `_index_` and what `columns_for` named. Text comes as an array of Python objects, and so do lists;
                those of numbers as a matrix, filled up with NaN.

        Raises:
            DataError: rows this metric cannot take, by `_index_`.
        """
        for name in self.columns:
            refuse_empty(columns, name)
        return {name: columns[name] for name in self.columns}

    @property
    def fill_columns(self) -> tuple[str, ...]:
        """The columns that tell what a missing row could have come to; none where its range is enough."""
        return ()

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        """The columns of all rows, with something put in for those that have no score.

        Args:
            columns: of the scored rows, as `prepare` gave them.
            scored: which of all rows these are, as a mask.
            missing: `_index_` and the `fill_columns` of the others.
            fill: what the others are taken for.
        """
        worst, best = self.ends
        values = np.full(len(scored), best if fill == "best" else worst)
        values[scored] = columns[VALUE]
        return {VALUE: values}

    def reduced(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """One value for each row of several responses.

        Args:
            values: of the responses, row by row.
            starts: where each row begins.
        """
        if self.reduce == "mean":
            return np.asarray(np.add.reduceat(values, starts) / np.diff(starts, append=len(values)))
        smallest = self.reduce == "best" and self.direction == "lower"
        return np.asarray((np.minimum if smallest else np.maximum).reduceat(values, starts))

    @abstractmethod
    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        """The state of prepared rows.

        Args:
            columns: what `prepare` gave, after reduction.
            group: the group of each row, from 0 to `n_groups` - 1.
            n_groups: how many groups there are; some may have no row.
        """

    def merge(self, states: Sequence[State]) -> State:
        """The state of all rows together, merged from left to right; by default the sum of the arrays."""
        plain = (name for name in states[0] if name not in CLUSTER_TABLE)
        sums = {name: reduce(np.add, [state[name] for state in states]) for name in plain}
        return sums | dict(merge_clusters(states))

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        """The same groups at other positions among more groups, the others empty.

        The default fills up with zeros, which is right for counts, sums and moments.
        """
        plain = {name: array for name, array in state.items() if name not in CLUSTER_TABLE}
        placed = {name: _placed(array, positions, n_groups) for name, array in plain.items()}
        clusters = {name: state[name] for name in CLUSTER_TABLE if name in state}
        return placed | clusters | {name: positions[clusters[name]] for name in clusters if name == "cluster_group"}

    @abstractmethod
    def compute(self, state: State) -> Values:
        """The values of a state; NaN with a reason, never 0, where a group has nothing to say."""

    def mean_over(self, state: State, groups: Sequence[np.ndarray]) -> Values:
        """The mean of the values of several groups, such as of targets; rows with one cluster's key belong together.

        The default has no interval.

        Args:
            state: of all groups.
            groups: which of them are taken together, for each value.
        """
        found = self.compute(state)
        value = np.array([_mean(found.value[members]) for members in groups])
        nothing = np.full(value.shape, np.nan)
        reason = [
            next(
                (found.reason[i] for i in members.tolist() if np.isnan(found.value[i])),
                "no interval of a mean of these",
            )
            for members in groups
        ]
        return Values(value, nothing, nothing, reason, [{"targets": len(members)} for members in groups])

    @property
    def drawn_by(self) -> Metric | None:
        """The metric whose state has the curves of this one: itself where that holds the rows; None without curves."""
        return None

    def curves(self, state: State) -> list[list[Drawn]]:
        """What a report can draw of each group of a state; nothing of one where the curve is undefined."""
        return [[] for _ in state["n"]]

    @property
    def spec(self) -> dict[str, Any]:
        """What identifies this metric: kind, behaviour version and parameters."""
        parameters = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"kind": self.kind, "version": self.version, "parameters": parameters}

    @property
    def signature(self) -> str:
        """The spec in one line, to stand beside a value; equal signatures mean the same definition.

        One definition has one signature: a kind writes parameters that mean the same in one way, and leaves out those
        that mean nothing beside the others.

        What is not set (None, or false by default) is left out; the interval comes last.
        """
        words = [self.kind, f"v{self.version}"]
        off = {field.name for field in dataclasses.fields(self) if field.default is False}
        for name, value in self.spec["parameters"].items():
            unset = value is None or (value is False and name in off)
            if not unset and name not in ("confidence", "bootstrap"):
                words.append(f"{name}={_word(value)}")
        if self.interval:
            words.append(f"interval={self.interval} {_percent(self.spec['parameters']['confidence'])}")
        return " ".join(words)


def weights_of(columns: Columns, kind: str) -> np.ndarray:
    """The rows' weights.

    Raises:
        SpecError: the examples have none.
    """
    if WEIGHT not in columns:
        raise SpecError(f"{kind}: weighted=true needs weights; name the dataset's column under weight")
    return np.asarray(columns[WEIGHT], np.float64)


def whole_of(kind: str, name: str, value: Any, least: int) -> None:
    """Checks a parameter that is a whole number.

    Raises:
        SpecError: it is none, or too small.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SpecError(f"{kind}: {name}={value!r} must be a whole number of at least {least}")


FEWEST_REPLICATES = 100
"""Fewer bootstrap replicates do not tell the ends of an interval."""


def refuse(columns: Columns, bad: np.ndarray, message: Callable[[int], str]) -> None:
    """Stops at rows a metric cannot take.

    Args:
        columns: their `_index_` names the rows.
        bad: which rows, as a mask.
        message: what is wrong with the row at a position and what to do about it.

    Raises:
        DataError: any row is bad; one fault each.

    Example:
        >>> refuse({"_index_": np.array([3, 4])}, np.array([False, True]), lambda row: "is empty")
        Traceback (most recent call last):
        evaluand.DataError: _index_ 4: is empty
    """
    if bad.any():
        raise DataError(Fault(f"{INDEX} {columns[INDEX][row]}", message(row)) for row in np.flatnonzero(bad).tolist())


def refuse_empty(columns: Columns, name: str) -> None:
    """Stops at scored rows whose cell in a column is null or NaN.

    Raises:
        DataError: there is one; what cannot be graded should abstain.
        SpecError: all are.
    """
    empty = _empty(columns[name])
    if len(empty) > 1 and empty.all():
        raise SpecError(
            f"the column {name!r} is empty in every scored row; read another column, such as with Count(label=…)"
        )
    refuse(columns, empty, lambda row: f"is scored but has no {name}; a score without one abstains")


LEAF = "data."
"""What the name of a number within the JSON of `data` begins with: `data.f1` is `{"f1": 0.5}`'s."""


def stored_as(name: str) -> str:
    """The column of the table that holds what a metric reads: `data` for a leaf of it."""
    return "data" if name.startswith(LEAF) else name


def numbers(columns: Columns, name: str, kind: str) -> np.ndarray:
    """A column as finite 64-bit floats; bools count as 0 and 1.

    Raises:
        SpecError: the column holds something else than numbers.
        DataError: a scored row has no finite number.
    """
    column = columns[name]
    if len(column) and column.dtype.kind not in "fiub":
        raise SpecError(f"{kind} needs numbers, but the column {name!r} holds none; name another column")
    values = column.astype(np.float64, copy=False)
    refuse_empty({**columns, name: values}, name)
    refuse(columns, ~np.isfinite(values), lambda row: f"{name} is {values[row]}; {kind} needs finite numbers")
    return values


def confidence_of(kind: str, confidence: float) -> float:
    """A confidence level, checked.

    Raises:
        SpecError: it does not lie between 0 and 1.
    """
    given: Any = confidence
    if not isinstance(given, Real) or not 0 < confidence < 1 or (1 + confidence) / 2 == 1:
        told = repr(given) if isinstance(given, str) else given
        raise SpecError(f"{kind}: confidence={told} must lie between 0 and 1, such as 0.95")
    return float(confidence)


def _one_of(kind: str, name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise SpecError(f"{kind}: {name}={value!r} does not work here; choose one of {', '.join(known)}")


def _listed(names: Collection[str]) -> str:
    return ", ".join(repr(name) for name in names) or "no column"


def _placed(array: np.ndarray, positions: np.ndarray, n_groups: int) -> np.ndarray:
    result = np.zeros((n_groups, *array.shape[1:]), array.dtype)
    result[positions] = array
    return result


def _mean(values: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        mean = values.mean()
    return float(mean if not np.isinf(mean) else (values / len(values)).sum())


_PLAIN = re.compile(r"(?!(?:true|false|null|inf|nan)\Z)[A-Za-z_][A-Za-z0-9_]*")


def _word(value: Any) -> str:
    """A parameter as a word that no other value is written as."""
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, list | tuple):
        return f"({','.join(_word(item) for item in value)})"
    return encode(value).decode()


def _percent(confidence: float) -> str:
    text = f"{Decimal(repr(confidence)) * 100:f}"
    return f"{text.rstrip('0').rstrip('.')}%"


def _empty(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind == "O":
        return np.asarray(column == np.array(None), np.bool_)
    if column.dtype.kind == "M":
        return np.asarray(np.isnat(column))
    return np.asarray(np.isnan(column)) if column.dtype.kind == "f" else np.zeros(len(column), np.bool_)
