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
from functools import cache, reduce
from statistics import NormalDist
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from evaluand.errors import DataError, Fault, SpecError
from evaluand.ids import encode
from evaluand.rows import INDEX

Columns = Mapping[str, np.ndarray]
"""Rows as columns of equal length. `_index_` is always among them, so that a message can name the row."""

State = Mapping[str, np.ndarray]
"""What a metric keeps: the first axis of every array is the group, further axes are free (threshold, replicate)."""

Direction = Literal["higher", "lower"]
Missing = Literal["leave_out", "wrong", "refuse"]
Reduce = Literal["first", "best", "any", "mean", "all"]

VALUE = "value"
NO_ROWS = "no scored rows"


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

    Attributes:
        kind: the registered name.
        version: raised whenever the same parameters would give another value.
        reductions: the ways of reducing that make sense for this metric.
        interval: the name of the interval's method, shown in the signature.

    Raises:
        SpecError: the parameters contradict each other.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "all")
    interval: ClassVar[str | None] = None

    missing: Missing = "leave_out"
    reduce: Reduce = "first"

    def __post_init__(self) -> None:
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
    def range(self) -> tuple[float, float]:
        """The values the metric can take; infinite where unbounded."""
        return (-math.inf, math.inf)

    @property
    def row_range(self) -> tuple[float, float]:
        """The values of a single row; infinite where unknown.

        Finite only for metrics that `prepare` one number per row, in the column `value`: only for these can a missing
        row be given its worst and its best value.
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

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        """The columns to read from a table that has these.

        Raises:
            SpecError: the table lacks a column; the message names it.
        """
        lacking = [name for name in self.columns if name not in available]
        if lacking:
            raise SpecError(f"{self.kind} reads {_listed(lacking)}, which the table lacks; it has {_listed(available)}")
        return self.columns

    def prepare(self, columns: Columns) -> Columns:
        """Checks scored rows and gives the columns that are reduced and summarised.

        Runs once on every scored row, before several responses are reduced. The default refuses empty cells and
        leaves the columns as they are.

        Args:
            columns: `_index_` and what `columns_for` named. Text and lists come as arrays of Python objects.

        Raises:
            DataError: rows this metric cannot take, by `_index_`.
        """
        for name in self.columns:
            refuse_empty(columns, name)
        return {name: columns[name] for name in self.columns}

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
        return {name: reduce(np.add, [state[name] for state in states]) for name in states[0]}

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        """The same groups at other positions among more groups, the others empty.

        The default fills up with zeros, which is right for counts, sums and moments.
        """
        return {name: _placed(array, positions, n_groups) for name, array in state.items()}

    @abstractmethod
    def compute(self, state: State) -> Values:
        """The values of a state; NaN with a reason, never 0, where a group has nothing to say."""

    @property
    def spec(self) -> dict[str, Any]:
        """What identifies this metric: kind, behaviour version and parameters."""
        parameters = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"kind": self.kind, "version": self.version, "parameters": parameters}

    @property
    def signature(self) -> str:
        """The spec in one line, to stand beside a value; equal signatures mean the same definition."""
        words = [self.kind, f"v{self.version}"]
        for name, value in self.spec["parameters"].items():
            if name == "confidence" and self.interval:
                words.append(f"interval={self.interval} {_percent(value)}")
            elif value is not None:
                words.append(f"{name}={_word(value)}")
        return " ".join(words)


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
        evaluand.errors.DataError: _index_ 4: is empty
    """
    if bad.any():
        raise DataError(Fault(f"{INDEX} {columns[INDEX][row]}", message(row)) for row in np.flatnonzero(bad).tolist())


def refuse_empty(columns: Columns, name: str) -> None:
    """Stops at scored rows whose cell in a column is null or NaN.

    Raises:
        DataError: there is one; what cannot be graded should abstain.
    """
    refuse(columns, _empty(columns[name]), lambda row: f"is scored but has no {name}; a score without one abstains")


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
    if not 0 < confidence < 1:
        raise SpecError(f"{kind}: confidence={confidence} must lie between 0 and 1, such as 0.95")
    return float(confidence)


def count_rows(group: np.ndarray, n_groups: int) -> np.ndarray:
    """The number of rows of each group."""
    return np.bincount(group, minlength=n_groups)


def moments(values: np.ndarray, group: np.ndarray, n_groups: int) -> State:
    """Count, mean and squared deviations of each group, as a state that keeps its digits.

    The mean is the unevaluated sum of `mean` and the much smaller `rest`, and deviations are taken from it, so values
    with a large common offset lose nothing: the corrected two-pass algorithm of Chan, Golub & LeVeque, "Algorithms
    for computing the sample variance" (The American Statistician 37, 1983).

    Returns:
        `n`, `mean`, `rest` and `m2`, the sum of squared deviations; zeros for a group without rows. What overflows is
        infinite or NaN, without a warning.
    """
    n = count_rows(group, n_groups)
    share = 1.0 / np.maximum(n, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.zeros(n_groups)
        mean[group] = values  # any value of the group, so that equal values deviate by nothing at all
        mean += np.bincount(group, (values - mean[group]) * share[group], minlength=n_groups)
        deviations = values - mean[group]
        rest = np.bincount(group, deviations * share[group], minlength=n_groups)
        m2 = np.bincount(group, deviations * deviations, minlength=n_groups) - n * rest * rest
        mean, rest = _two_sum(mean, rest)
    return {"n": n, "mean": mean, "rest": rest, "m2": np.maximum(m2, 0.0)}


def merge_moments(states: Sequence[State]) -> State:
    """The moments of all rows together, merged from left to right.

    Source: the pairwise update of Chan, Golub & LeVeque (see `moments`).
    """
    return reduce(_merge_two, states)


def wilson(successes: np.ndarray, n: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """The score interval of a proportion, without continuity correction.

    It stays within [0, 1] and is usable for few rows and for proportions near 0 and 1, where the textbook normal
    interval is not. It takes the rows as independent: rows that share a cluster make it too narrow.
    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference" (JASA 22, 1927).

    Returns:
        Lower and upper ends, NaN for n = 0.

    Example:
        >>> low, high = wilson(np.array([80]), np.array([90]), 0.95)
        >>> round(float(low[0]), 4), round(float(high[0]), 4)
        (0.8074, 0.9385)
    """
    rows = np.where(n > 0, n, np.nan)
    z2 = _normal_quantile(confidence) ** 2
    p = successes / rows
    scale = 1 + z2 / rows
    centre = (p + z2 / (2 * rows)) / scale
    half = np.sqrt(z2 * (p * (1 - p) / rows + z2 / (4 * rows * rows))) / scale
    low = np.where(successes == 0, 0 * rows, centre - half)
    high = np.where(successes == n, 1 + 0 * rows, centre + half)
    return low, high


def t_quantile(confidence: float, degrees: np.ndarray) -> np.ndarray:
    """The t for which a Student variable lies in [-t, t] with the given probability.

    Agrees with the exact quantile to better than 1e-9, relatively, for confidences up to 0.99999.

    Args:
        degrees: degrees of freedom, whole numbers; below 1 the result is NaN.

    Example:
        >>> [round(float(t), 3) for t in t_quantile(0.95, np.array([1, 10, 100_000]))]
        [12.706, 2.228, 1.96]
    """
    degrees = np.asarray(degrees)
    result = np.full(degrees.shape, np.nan)
    large = degrees > _EXACT_DEGREES
    result[large] = _t_expansion(confidence, degrees[large].astype(np.float64))
    small = (degrees >= 1) & ~large
    distinct, where = np.unique(degrees[small], return_inverse=True)
    result[small] = np.array([_t_exact(confidence, int(df)) for df in distinct], np.float64)[where]
    return result


def _one_of(kind: str, name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise SpecError(f"{kind}: {name}={value!r} does not work here; choose one of {', '.join(known)}")


def _listed(names: Collection[str]) -> str:
    return ", ".join(repr(name) for name in names) or "no column"


def _placed(array: np.ndarray, positions: np.ndarray, n_groups: int) -> np.ndarray:
    result = np.zeros((n_groups, *array.shape[1:]), array.dtype)
    result[positions] = array
    return result


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


def _merge_two(a: State, b: State) -> State:
    n = a["n"] + b["n"]
    share = b["n"] / np.maximum(n, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        apart = (b["mean"] - a["mean"]) + (b["rest"] - a["rest"])
        mean, rest = _two_sum(a["mean"], a["rest"] + apart * share)
        m2 = a["m2"] + b["m2"] + apart * apart * (a["n"] * share)
    merged = {"n": n, "mean": mean, "rest": rest, "m2": m2}
    only_one = [a["n"] == 0, b["n"] == 0]
    return {name: np.select(only_one, [b[name], a[name]], merged[name]) for name in merged}


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A sum and what rounding took from it (Knuth, The Art of Computer Programming, vol. 2, 4.2.2)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _normal_quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


_EXACT_DEGREES = 1000


@cache
def _t_exact(confidence: float, degrees: int) -> float:
    """Newton's method from the normal quantile.

    That lies below the root and the distribution is concave above 0, so every step goes up to the root and none
    beyond it; the number of steps grows only with the logarithm of the quantile.
    """
    t = _normal_quantile(confidence)
    log_peak = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    for _ in range(200):
        density = math.exp(log_peak - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = (confidence - _t_within(t, degrees)) / (2 * density)
        t += step
        if abs(step) <= 1e-14 * t:
            break
    return t


def _t_within(t: float, degrees: int) -> float:
    """The probability of [-t, t]: the finite sums of Abramowitz & Stegun 26.7.3 and 26.7.4."""
    cosine2 = degrees / (degrees + t * t)
    sine = t / math.sqrt(degrees + t * t)
    steps = np.arange(1 + degrees % 2, degrees - 2, 2)
    series = 1 + float(np.cumprod(steps / (steps + 1) * cosine2).sum())
    if degrees % 2 == 0:
        return sine * series
    angle = math.atan(t / math.sqrt(degrees))
    return 2 / math.pi * (angle + (sine * math.sqrt(cosine2) * series if degrees > 1 else 0.0))


def _t_expansion(confidence: float, degrees: np.ndarray) -> np.ndarray:
    """For many degrees of freedom: the expansion about the normal quantile, Abramowitz & Stegun 26.7.5."""
    z = _normal_quantile(confidence)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    quantile = np.full_like(degrees, z)
    for power, term in enumerate(terms, 1):
        quantile += term / degrees**power
    return quantile
