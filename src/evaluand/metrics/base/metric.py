"""Metrics summarise many rows into one value, for each group of rows.

A metric never sees the whole table. It turns rows into a *state* (arrays with one entry per group, such as a count
and a sum), states of shards merge in order, and `compute` turns the last state into values. So a shard on another
worker, a group of examples, a threshold and a bootstrap replicate are all the same thing: one more axis of the
state. No state grows with the number of rows unless the metric needs every row.

A metric's type states its direction, its range, how it treats rows without a score (`missing`) and several responses to
one example (`reduce`). All parameters together are its `signature`; two values may be compared only if their signatures
are equal.

Rows pass through a metric like this:

    scored rows ── prepare ──▶ checked columns ── reduce ──▶ one row per example ── state, merge, compute ──▶ Values

Kinds live in `evaluand.metrics`, one file each, or one for several that differ by a formula.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.key_columns import INDEX
from evaluand.core.parameters import parameter_faults
from evaluand.metrics.base.curves import Drawn
from evaluand.metrics.base.left_out import LeftOut, clusters_by_group, count_clusters
from evaluand.metrics.base.signature import encode_word, format_percent
from evaluand.metrics.stats.intervals import CLUSTER_TABLE, merge_clusters

Columns = Mapping[str, np.ndarray]
"""Rows as columns of equal length. Rows to prepare include `_index_`, so that a message can name the row; rows to
summarise include `_weight_` if the examples have weights, and `_cluster_` (64-bit keys) if rows belong together or the
metric asks for it."""

State = Mapping[str, np.ndarray]
"""The intermediate result of a metric. The first axis of every array is the group, further axes are free (threshold,
replicate); except for the arrays of `CLUSTER_TABLE`."""

Direction = Literal["higher", "lower"]
Missing = Literal["leave_out", "wrong", "refuse"]
Fill = Literal["worst", "best", "wrong"]
"""How a missing row is filled in: for the bounds, and for `missing="wrong"`."""
Reduce = Literal["first", "best", "any", "mean", "all"]
OverTargets = Literal["pooled", "mean"]

Labels = Mapping[str, Sequence[Any]]
"""Column of labels → the distinct labels, or sets of labels, that occur in it."""

VALUE = "value"
WEIGHT = "_weight_"
LABELS = "_labels_"
CLUSTER = "_cluster_"
INDEPENDENT = "_independent_"
PEOPLE = "_people_"
DRAW = "_draw_"
STRATUM = "_stratum_"
"""Of a metric that `reads_labels`: what people say about a row, NaN if nothing; its place in the random order in which
people label rows; and the number of the stratum, within which that order counts."""
NO_ROWS = "no scored rows"
WEIGHTLESS = "all weights are 0"
"""Why there is no value: there are no rows, or they have no weight."""


@dataclass(frozen=True)
class Values:
    """One value per group.

    Attributes:
        value: NaN where undefined.
        low: lower end of the interval, NaN where there is none.
        high: upper end of the interval, NaN where there is none.
        reason: why the value, or only its interval, is undefined; None if both are defined.
        data: further results of the metric, JSON-like.
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
        missing: what happens to rows that failed or abstained. `leave_out` computes the value over the scored rows only
            (the bounds `worst` and `best` show how much they could change it), `wrong` gives each the worst value it
            could have had, `refuse` raises an error that lists the rows.
        reduce: how several responses to one example become one row: the `first`, the `best` by direction, `any` (the
            largest: 1 if one of them is 1), their `mean`, or `all`, each response as a separate row.
        over_targets: if examples have several targets, an additional value over all of them: of the rows of all targets
            as if they were one (`pooled`), or the `mean` of the targets' values; None for no such value.

    Attributes:
        kind: the registered name.
        version: raised whenever the same parameters would give another value.
        reductions: the values of `reduce` that make sense for this metric.
        over_replications: a row is an example with all its replications, which `reduced` turns into one value.
        averages: the value is the mean of one number per row, so that two values differ by the mean of differences.
        reads_text: columns are compared as they were written, also numbers.
        reads_labels: rows come with what people say about them, the columns `PEOPLE`, `DRAW` and `STRATUM`.
        has_differences: the difference of two values has an interval; that of largest or of biased values has none.
        compared_by: the kind by which systems are compared if there are no differences; None without one.
        of_either_class: of two classes, the value without `label` is neither that of one nor that of the other.
        errs_evenly: each end of the interval errs half as often as both, whatever the values.
        like_share: near the ends of a finite range the value varies as a proportion does.
        read: a function from the columns, as Arrow arrays with `_index_`, to what `prepare` takes in their place. It is
            called once for all metrics that have it; None for arrays of NumPy.

    Raises:
        SpecError: the parameters contradict each other.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "all")
    over_replications: ClassVar[bool] = False
    averages: ClassVar[bool] = False
    reads_text: ClassVar[bool] = False
    reads_labels: ClassVar[bool] = False
    has_differences: ClassVar[bool] = True
    compared_by: ClassVar[str | None] = None
    of_either_class: ClassVar[bool] = False
    errs_evenly: ClassVar[bool] = False
    like_share: ClassVar[bool] = True
    read: ClassVar[Any] = None

    missing: Missing = "leave_out"
    reduce: Reduce = "first"
    over_targets: OverTargets | None = None

    def __post_init__(self) -> None:
        if self.reduce not in self.reductions:
            known = ", ".join(self.reductions)
            raise SpecError(f"{self.kind}: reduce={self.reduce!r} does not work here; choose one of {known}")
        if faults := [*parameter_faults(self)]:
            raise SpecError("\n".join(f"{self.kind}: {name} {fault}" for name, fault in faults))
        if not isinstance(column := getattr(self, "column", ""), str):
            raise SpecError(f"{self.kind}: column={column!r} must be the name of a column")
        if self.reduce == "best" and self.direction is None:
            raise SpecError(f"{self.kind}: reduce='best' needs a direction; it is neither higher nor lower")
        if self.missing == "wrong" and not math.isfinite(self.ends[0]):
            raise SpecError(
                f"{self.kind}: missing='wrong' needs the worst value a row can have, but the direction is "
                f"{self.direction} and the range of a row {self.row_range}; give both, or use missing='leave_out'"
            )

    @property
    def direction(self) -> Direction | None:
        """Whether a higher or a lower value is better; None if neither is."""
        return None

    @property
    def interval_name(self) -> str | None:
        """The name of the interval's method, shown in the signature."""
        return None

    @property
    def by_cluster(self) -> bool:
        """Whether rows always need `_cluster_`; a row that belongs to no other is a cluster by itself."""
        return False

    @property
    def counts_independent_rows(self) -> bool:
        """Whether independent examples come with `_independent_` instead of `_cluster_`, which costs less."""
        return False

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """Columns of scores without which a row abstains."""
        return ()

    @property
    def fewest_answers(self) -> int:
        """How many answers to each example the metric needs."""
        return 1

    @property
    def looks_at(self) -> float:
        """How many of an example's answers the metric looks at, from the first on."""
        return 1 if self.reduce == "first" else math.inf

    @property
    def constant_column(self) -> str | None:
        """A column of lists that must be equal, in any order, in all rows and in all systems that are compared."""
        return None

    @property
    def range(self) -> tuple[float, float]:
        """The values the metric can take; infinite where unbounded."""
        return (-math.inf, math.inf)

    @property
    def row_range(self) -> tuple[float, float]:
        """The values of a single row; infinite where unknown.

        If an end is finite, missing rows can be `filled`; by default only for metrics that `prepare` one number per
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
        """The columns that hold labels: they come as codes into one vocabulary, the column `LABELS`.

        A vocabulary has each label once, as text, an integer or a bool; a missing label has the code -1. Sets of labels
        are labels too, except for a metric with `score_columns`: it gets a matrix of rows × `LABELS`, 1 where the set
        has the label, else 0, and NaN for a missing set.
        """
        return ()

    @property
    def named_labels(self) -> Sequence[Any]:
        """The labels that the parameters choose among those in its `label_columns`: none of them should be missing."""
        return ()

    @property
    def score_columns(self) -> tuple[str, ...]:
        """The columns that hold scores of labels: they come as a matrix, a column for each of `LABELS`.

        NaN where a row has no score for a label.
        """
        return ()

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        """The columns to read from a table that has these columns, or leaves of its JSON: see `LEAF`.

        Raises:
            SpecError: the table lacks a column; the message names it.
        """
        lacking = [name for name in self.columns if stored_as(name) not in available]
        if lacking:
            raise SpecError(
                f"{self.kind} reads {_quote_names(lacking)}, which the table lacks; it has {_quote_names(available)}"
            )
        return self.columns

    def settled(self, labels: Labels) -> Self:
        """This metric with the parameters that depend on the labels filled in; by default the metric itself.

        Values are computed by the settled metric and stored with its signature, so that a signature states which
        definition was used. All requested rows decide together, scored or not: no shard, group or failed row decides by
        itself.

        Args:
            labels: of each of its `label_columns` that the table has; empty for a table without such columns.

        Raises:
            SpecError: the parameters do not fit the labels.
        """
        return self

    def prepare(self, columns: Columns) -> Columns:
        """Check scored rows and return the columns that are reduced and summarised.

        Runs once on every scored row, before several responses are reduced. The default refuses empty cells and
        returns the columns unchanged.

        Args:
            columns: `_index_` and the columns that `columns_for` named. Text and lists come as arrays of Python
                objects; lists of numbers as a matrix, padded with NaN.

        Raises:
            DataError: the metric cannot take some rows; lists them by `_index_`.
        """
        for name in self.columns:
            refuse_empty(columns, name)
        return {name: columns[name] for name in self.columns}

    @property
    def fill_columns(self) -> tuple[str, ...]:
        """The columns that limit the value of a missing row; none if its range is enough."""
        return ()

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        """The columns of all rows, with the rows that have no score filled in.

        Args:
            columns: of the scored rows, as `prepare` returned them.
            scored: which of all rows are scored, as a mask.
            missing: `_index_` and the `fill_columns` of the other rows.
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
            columns: what `prepare` returned, after reduction.
            group: the group of each row, from 0 to `n_groups` - 1.
            n_groups: the number of groups; some may have no row.
        """

    def merge(self, states: Sequence[State]) -> State:
        """The state of all rows together, merged from left to right; by default the sum of the arrays."""
        names = (name for name in states[0] if name not in CLUSTER_TABLE)
        sums = {name: reduce(np.add, [state[name] for state in states]) for name in names}
        return sums | dict(merge_clusters(states))

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        """The same groups at other positions among more groups, the others empty.

        The default fills with zeros, which is right for counts, sums and moments.
        """
        arrays = {name: array for name, array in state.items() if name not in CLUSTER_TABLE}
        placed = {name: _spread_over_groups(array, positions, n_groups) for name, array in arrays.items()}
        clusters = {name: state[name] for name in CLUSTER_TABLE if name in state}
        return placed | clusters | {name: positions[clusters[name]] for name in clusters if name == "cluster_group"}

    @abstractmethod
    def compute(self, state: State) -> Values:
        """The values of a state; NaN with a reason, never 0, where the value of a group is undefined."""

    def mean_over(self, state: State, groups: Sequence[np.ndarray]) -> Values:
        """The mean of the values of several groups, such as targets; rows with the same cluster key belong together.

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

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int) -> LeftOut:
        """The values of groups, and those without each cluster of rows.

        The default leaves out at most 256 sets of clusters, by number.

        Args:
            columns: prepared and reduced, with `_cluster_` from 0 on; further arguments as for `state`.
        """
        sets = np.asarray(columns[CLUSTER] % _MOST_SETS)
        cluster, of, _ = clusters_by_group(sets, group, n_groups)
        value = self.compute(self.state(columns, group, n_groups)).value
        without = np.tile(value, (_MOST_SETS, 1))
        for number in np.unique(sets).tolist():
            rest = sets != number
            own = {name: column if name == LABELS else column[rest] for name, column in columns.items()}
            without[number] = self.compute(self.state(own, group[rest], n_groups)).value
        return LeftOut(
            value,
            cluster,
            of,
            without[cluster, of],
            min(count_clusters(columns[CLUSTER]), _MOST_SETS),
            np.ones(n_groups),
        )

    @property
    def drawn_by(self) -> "Metric | None":
        """The metric whose state holds this one's curves: itself if its state has the rows; None without curves."""
        return None

    def curves(self, state: State) -> list[list[Drawn]]:
        """The curves that a report can draw, for each group of a state; empty where undefined."""
        return [[] for _ in state["n"]]

    @property
    def spec(self) -> dict[str, Any]:
        """The identity of this metric: kind, behaviour version and parameters."""
        parameters = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if parameters.get("interval") == "wilson":
            del parameters["interval"]
        return {"kind": self.kind, "version": self.version, "parameters": parameters}

    @property
    def signature(self) -> str:
        """The spec in one line, shown with a value; equal signatures mean the same definition.

        One definition has one signature: a kind writes equivalent parameters in one form, and omits parameters that
        have no effect given the others.

        Unset parameters (None, or false by default) are omitted; the interval comes last.
        """
        words = [self.kind, f"v{self.version}"]
        off = {field.name for field in dataclasses.fields(self) if field.default is False}
        for name, value in self.spec["parameters"].items():
            unset = value is None or (value is False and name in off)
            if not unset and name not in ("confidence", "bootstrap", "interval"):
                words.append(f"{name}={encode_word(value)}")
        if self.interval_name:
            words.append(f"interval={self.interval_name} {format_percent(self.spec['parameters']['confidence'])}")
        return " ".join(words)


def weights_of(columns: Columns, kind: str) -> np.ndarray:
    """The rows' weights; a SpecError if the examples have none."""
    if WEIGHT not in columns:
        raise SpecError(
            f"{kind}: weighted=true needs weights; set the dataset's role weight to the column that holds them"
        )
    return np.asarray(columns[WEIGHT], np.float64)


def check_whole_number(kind: str, name: str, value: Any, least: int) -> None:
    """Raise a SpecError if a parameter is not an integer, or is too small."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SpecError(f"{kind}: {name}={value!r} must be an integer of at least {least}")


_MOST_SETS: Final = 256

FEWEST_REPLICATES = 100
"""Fewer bootstrap replicates do not determine the ends of an interval."""


def refuse(columns: Columns, bad: np.ndarray, message: Callable[[int], str]) -> None:
    """Raise an error that lists the rows a metric cannot take.

    Args:
        columns: include `_index_`, which names the rows.
        bad: which rows, as a mask.
        message: row position → what is wrong with the row and what to do about it.

    Raises:
        DataError: any row is bad; one fault per row.

    Example:
        >>> refuse({"_index_": np.array([3, 4])}, np.array([False, True]), lambda row: "is empty")
        Traceback (most recent call last):
        evaluand.DataError: _index_ 4: is empty
    """
    if bad.any():
        raise DataError(Fault(f"{INDEX} {columns[INDEX][row]}", message(row)) for row in np.flatnonzero(bad).tolist())


def refuse_empty(columns: Columns, name: str) -> None:
    """Raise a DataError if scored rows have null or NaN, since they should abstain; with one fault if all have."""
    empty = _empty_cells(columns[name])
    if len(empty) > 1 and empty.all():
        raise DataError(
            f"the column {name!r} is empty in every scored row; {_REMEDIES.get(name, 'read another column')}"
        )
    refuse(columns, empty, lambda row: f"is scored but has no {name}; a score without one abstains")


_REMEDIES: Final = {
    VALUE: "read another column, such as with Count(label=…)",
    "confidence": 'let each output hold it, as in {"prediction": "yes", "confidence": 0.9}; of a file write '
    "response: {prediction: COLUMN, confidence: COLUMN}",
}
"""What to do about a column that is empty in every scored row."""

LEAF = "data."
"""Prefix of names of numbers within the JSON of `data`: `data.f1` reads `{"f1": 0.5}`."""


def stored_as(name: str) -> str:
    """The table column that holds what a metric reads: `data` for one of its leaves."""
    return "data" if name.startswith(LEAF) else name


def numbers(columns: Columns, name: str, kind: str) -> np.ndarray:
    """A column as finite 64-bit floats; bools count as 0 and 1.

    Raises:
        SpecError: the column does not hold numbers.
        DataError: a scored row has no finite number.
    """
    column = columns[name]
    if len(column) and column.dtype.kind not in "fiub":
        raise SpecError(f"{kind} needs numbers, but the column {name!r} holds none; choose another column")
    values = column.astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        refuse_empty({**columns, name: values}, name)
        refuse(columns, np.isinf(values), lambda row: f"{name} is {values[row]}; {kind} needs finite numbers")
    return values


def check_confidence(kind: str, confidence: float) -> float:
    """Return a confidence level as a float; a SpecError if it does not lie between 0 and 1."""
    value: Any = confidence
    if not isinstance(value, Real) or not 0 < confidence < 1 or (1 + confidence) / 2 == 1:
        shown = repr(value) if isinstance(value, str) else value
        raise SpecError(f"{kind}: confidence={shown} must lie between 0 and 1, such as 0.95")
    return float(confidence)


def _quote_names(names: Collection[str]) -> str:
    return ", ".join(repr(name) for name in names) or "no column"


def _spread_over_groups(array: np.ndarray, positions: np.ndarray, n_groups: int) -> np.ndarray:
    result = np.zeros((n_groups, *array.shape[1:]), array.dtype)
    result[positions] = array
    return result


def _mean(values: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        mean = values.mean()
    return float(mean if not np.isinf(mean) else (values / len(values)).sum())


def _empty_cells(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind == "O":
        return np.asarray(column == np.array(None), np.bool_)
    if column.dtype.kind == "M":
        return np.asarray(np.isnat(column))
    return np.asarray(np.isnan(column)) if column.dtype.kind == "f" else np.zeros(len(column), np.bool_)
