"""Confusion counts: how often each truth met each prediction, and the counts of each class.

The table of combinations is sparse: it has a row for each combination that occurred (see `WeightedRowsMetric`,
`counted`), so it does not grow with the data. Counts of classes are sums over it, for many weightings at once. If rows
have sets of labels, sets are counted, and each label of a set is a class.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from evaluand.core.errors import SpecError, plural
from evaluand.metrics.base.labels import in_order, one_vocabulary
from evaluand.metrics.base.metric import LABELS, WEIGHT, Columns, Fill, State, Values, refuse
from evaluand.metrics.base.weighted_rows import NUMBER, Kinds, WeightedRowsMetric, row_column, weight_of_one
from evaluand.metrics.stats.intervals import (
    PartChanges,
    Spread,
    clustered_wilson,
    count_rows,
    mean_of_parts,
    mean_of_shares,
    wilson,
)

TRUTH, PREDICTION = "truth", "prediction"
Label = str | int | bool

NO_CLASS: Final = -1
"""The code of a prediction outside the classes, or of an unknown truth."""

ALL_WRONG: Final = -2
"""The code of a prediction that is wrong about every class."""

MAX_CLASSES: Final = 100
"""The largest number of classes in `data`: those with the most rows."""


class ClassCounts(NamedTuple):
    """Sums of weights, replicates × classes; without an axis of classes for all rows."""

    classes: list[Label]
    expected: np.ndarray  # the truth is this class, or has it
    predicted: np.ndarray
    right: np.ndarray  # both
    total: np.ndarray  # all rows
    stray: np.ndarray  # wrong predictions outside the classes
    opposite: np.ndarray  # rows that are wrong about every class

    def minus(self, other: Self) -> Self:
        """The one replicate minus each replicate of the other; 0 where only rounding remains."""
        parts = zip(self[1:], other[1:], strict=True)
        return type(self)(self.classes, *(_subtract(whole, part) for whole, part in parts))


@dataclass(frozen=True, kw_only=True)
class Confusion(WeightedRowsMetric):
    """A function of how often each truth met each prediction; reads the table of the scorer `prediction`.

    Attributes:
        takes_sets: rows may have sets of labels.
    """

    counted = True
    row_columns: ClassVar[tuple[str, ...]] = (TRUTH, PREDICTION)
    takes_sets: ClassVar[bool] = False
    columns = (TRUTH, PREDICTION)
    label_columns = (TRUTH, PREDICTION)

    def prepare(self, columns: Columns) -> Columns:
        lacking = (columns[TRUTH] < 0) | (columns[PREDICTION] < 0)
        refuse(columns, lacking, lambda row: "is scored but has no truth or no prediction; such rows must abstain")
        if has_sets(columns[LABELS]) and not self.takes_sets:
            raise SpecError(f"{self.kind} reads one label per row, but these rows have lists of labels")
        return {name: columns[name] for name in (TRUTH, PREDICTION, LABELS)}

    def classes(self, vocabulary: np.ndarray) -> Sequence[Label] | None:
        """The chosen classes; None for those that occur."""
        return None

    def arranged(self, rows: Columns) -> Columns:
        return {**rows, **_occurrences(rows, self.classes(rows[LABELS]))}


@dataclass(frozen=True, kw_only=True)
class OfCounts(Confusion):
    """A function of the counts of each class.

    If rows are independent and unweighted, the interval of a share is Wilson's, and that of a mean of shares combines
    theirs. That of any other function leaves out one row of each kind.
    """

    @abstractmethod
    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        """The value of each replicate."""

    def share_of(self, counts: ClassCounts) -> tuple[np.ndarray, np.ndarray] | None:
        """Numerator and denominator, in rows, if the value of each replicate is a share; else None."""
        return None

    def shares_of(self, counts: ClassCounts) -> tuple[np.ndarray, np.ndarray] | None:
        """Numerators and denominators, in rows, if the value is a mean of shares: replicates × classes; else None."""
        return None

    def of_mean(self, mean: np.ndarray, counts: ClassCounts) -> np.ndarray:
        """The value for a mean of shares; maps the ends of the mean's interval too."""
        return mean

    def bounds_of(self, counts: ClassCounts, confidence: float) -> tuple[np.ndarray, np.ndarray] | None:
        """The interval of each replicate of independent rows; None if it must be computed by leaving rows out."""
        share = self.share_of(counts)
        if share is not None:
            return wilson(*share, confidence)
        shares = self.shares_of(counts)
        if shares is None:
            return None
        right, n = shares
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = mean_of_shares(right / n, *wilson(right, n, confidence, correction=0.5))
            low, high = (self.of_mean(end, counts) for end in ends)
        return low, high

    def basis_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> float:
        """See `basis`; the counts are those of one replicate."""
        return 1.0

    def details_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> dict[str, Any]:
        """See `details`; the counts are those of one replicate."""
        return {}

    def averaged(self, counts: ClassCounts) -> np.ndarray | None:
        """Which classes of one replicate an average over classes takes; None if the value is another function."""
        return None

    def why_unbounded(self, rows: Columns) -> str | None:
        """See `why_rare`, by the number of rows of each class, which sums of weights do not say."""
        counts = class_counts(rows, rows[NUMBER][None].astype(np.float64))
        chosen = self.averaged(counts)
        if chosen is None:
            return None
        names = [counts.classes[place] for place in np.flatnonzero(chosen).tolist()]
        return why_rare(names, counts.expected[0, chosen])

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return self.of_counts(class_counts(rows, weight), rows[LABELS])

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        whole = class_counts(rows, rows[WEIGHT][None])
        step = max(1, _AT_ONCE // max(len(whole.classes), 1))
        parts = (slice(start, min(start + step, len(one))) for start in range(0, len(one), step))
        return np.concatenate([self._defined(whole.minus(counts_of_each(rows, one, part)), rows) for part in parts])

    def basis(self, rows: Columns, weight: np.ndarray) -> float:
        return self.basis_of(class_counts(rows, weight[None]), rows[LABELS])

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        return self.details_of(class_counts(rows, weight[None]), rows[LABELS])

    def bounds(self, rows: Columns, kinds: Kinds) -> Callable[[float], tuple[float, float]] | None:
        assert self.confidence is not None
        counts = class_counts(rows, rows[WEIGHT][None])
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = self.bounds_of(counts, self.confidence) if kinds.of_row is None else None
        if ends is not None:
            (low,), (high,) = ends
            return lambda effective: (float(low), float(high))
        return None if self.shares_of(counts) is None else partial(self._by_shares, rows, counts, kinds)

    def _by_shares(self, rows: Columns, counts: ClassCounts, kinds: Kinds, effective: float) -> tuple[float, float]:
        """The interval of a mean of shares of rows with one label, from what clusters change in each.

        A share in which all clusters agree, or that occurs in a single one, depends on as many as its part of the rows.
        """
        shares = self.shares_of(counts)
        assert shares is not None
        assert self.confidence is not None
        occurs = shares[1][0] > 0
        n_rows, one = shares[1][0][occurs], weight_of_one(rows)
        share = shares[0][0][occurs] / n_rows
        of_class = np.zeros(len(one), np.int64)
        of_class[rows[EXPECTED][0]] = (np.cumsum(occurs) - 1)[rows[EXPECTED][1]]
        right = np.zeros(len(one))
        right[rows[RIGHT][0]] = 1.0
        rest = n_rows[of_class] - one
        left = np.where(rest > _ROUNDING * one, one * (right - share[of_class]) / np.where(rest > 0, rest, 1.0), 0.0)
        changes = kinds.changes(left)
        assert kinds.of_row is not None
        of_row = of_class[kinds.of_row][kinds.weight > 0]
        by_class = PartChanges.of(of_row, changes.key, changes.change, len(share))
        n = int(by_class.unit.max(initial=-1)) + 1
        if n < 2:
            return math.nan, math.nan
        rests_on = effective * n_rows / counts.total[0]
        rests_on = np.where(by_class.error > 0, np.minimum(rests_on, n), rests_on)
        spread = Spread((n - 1) / n * np.square(by_class.error), np.full(len(share), n), rests_on)
        ends = mean_of_parts(share, *clustered_wilson(share, spread, self.confidence), by_class, 0.0)
        low, high = (float(self.of_mean(np.array([end]), counts)[0]) for end in ends)
        return low, high

    def _defined(self, counts: ClassCounts, rows: Columns) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.asarray(self.of_counts(counts, rows[LABELS]), np.float64)
        return np.where(np.isfinite(found) & (counts.total > 0), found, np.nan)


@dataclass(frozen=True, kw_only=True)
class ByClass(OfCounts):
    """A function of the counts of each class, with bounds for rows without a score whose truth is known.

    `best` takes a missing prediction as right. `worst` takes it as wrong about each class separately: no single
    prediction can be wrong about several classes in this way, so the value lies within the bounds but may be unable to
    reach them. If the truth of a missing row is unknown, or the value `is_open`, the bounds are those of the
    range. With `missing="wrong"` a missing prediction is outside the classes.
    """

    takes_sets = True

    @property
    def range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    @property
    def row_range(self) -> tuple[float, float]:
        return self.range

    @property
    def fill_columns(self) -> tuple[str, ...]:
        return (TRUTH,)

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        vocabulary, (code, code_of_missing) = one_vocabulary([columns[LABELS], missing[LABELS]])
        known = code_of_missing[missing[TRUTH]]
        if fill == "wrong":
            refuse(missing, known == NO_CLASS, lambda row: TRUTH_UNKNOWN)
        wrong = np.full(len(known), NO_CLASS if fill == "wrong" else self.worst_prediction(vocabulary))
        taken = known if fill == "best" else np.where(known == NO_CLASS, NO_CLASS, wrong)
        truth, prediction = (np.empty(len(scored), np.int64) for _ in range(2))
        truth[scored], truth[~scored] = code[columns[TRUTH]], known
        prediction[scored], prediction[~scored] = code[columns[PREDICTION]], taken
        limits = {f"to_{fill}": truth == NO_CLASS, f"open_to_{fill}": ~scored} if fill != "wrong" else {}
        return {TRUTH: truth, PREDICTION: prediction, LABELS: vocabulary, **limits}

    def is_open(self, vocabulary: np.ndarray) -> bool:
        """Whether nothing limits the value if missing rows are predicted as classes that occur in no other row."""
        return False

    def worst_prediction(self, vocabulary: np.ndarray) -> int:
        """The code of the worst prediction."""
        return ALL_WRONG

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        unknown = (group[columns[name]] if name in columns else group[:0] for name in _LIMITS)
        limits = (count_rows(groups, n_groups) for groups in unknown)
        return {**super().state(columns, group, n_groups), **dict(zip(_LIMITS, limits, strict=True))}

    def compute(self, state: State) -> Values:
        values = super().compute(state)
        limits = {name: state[name] > 0 for name in _LIMITS}
        if self.is_open(state[LABELS]):
            limits = {name: limits[name] | limits[f"open_{name}"] for name in ("to_worst", "to_best")}
        worst, best = self.ends
        value = np.where(limits["to_worst"], worst, np.where(limits["to_best"], best, values.value))
        return replace(values, value=value)


def why_rare(classes: Sequence[Label], rows: np.ndarray) -> str | None:
    """Why an average over classes, which so many rows have as their truth, has no interval; None if it has one.

    Few rows of a class do not show how its share varies, and there is none at all of a class that does not occur.

    Example:
        >>> why_rare(["cat", "dog"], np.array([9, 2]))
        "no interval: class 'dog' has 2 rows, and an average over classes needs 3 of each"
    """
    if len(classes) == 1:
        return f"no interval: class {classes[0]!r} is the only one, and an average over classes needs two"
    rarest = int(rows.argmin())
    if rows[rarest] >= _FEWEST:
        return None
    n = plural(int(rows[rarest]), "row")
    return f"no interval: class {classes[rarest]!r} has {n}, and an average over classes needs {_FEWEST} of each"


_FEWEST: Final = 3


def harmonic(counts: np.ndarray, total: float) -> float:
    """The share of the rows that a mean over classes depends on: as many classes, each of the harmonic mean's size.

    The variance of a mean of k shares, each of so many rows, is that of one share of k² / Σ 1/n rows.
    """
    there = counts[counts > 0]
    return float(len(there) ** 2 / (1 / there).sum() / total) if len(there) else 1.0


def class_counts(rows: Columns, weight: np.ndarray) -> ClassCounts:
    """The counts of each class, of rows as `Confusion` arranges them and weights of replicates × rows."""
    classes = rows[_CLASSES].tolist()
    expected, predicted, right = (sums_of(rows[name], weight, len(classes)) for name in (EXPECTED, PREDICTED, RIGHT))
    stray, opposite = ((weight * rows[name]).sum(axis=1) for name in (_STRAY, OPPOSITE))
    return ClassCounts(classes, expected, predicted, right, weight.sum(axis=1), stray, opposite)


def truths_of(state: State) -> list[Any]:
    """The labels, or sets of labels, that occur as truths."""
    vocabulary, truth = state[LABELS], row_column(state, TRUTH)
    often = np.bincount(truth[truth >= 0], minlength=len(vocabulary))
    found: list[Any] = vocabulary[often > 0].tolist()
    return found


def counts_of_each(rows: Columns, one: np.ndarray, part: slice) -> ClassCounts:
    """The counts of one row of each kind of some consecutive kinds, kinds × classes."""
    classes, first, n = rows[_CLASSES].tolist(), part.start, part.stop - part.start
    counts = []
    for name in (EXPECTED, PREDICTED, RIGHT):
        row, code = rows[name]
        chosen = slice(*np.searchsorted(row, [first, part.stop]))
        table = np.zeros((n, len(classes)))
        np.add.at(table, (row[chosen] - first, code[chosen]), one[row[chosen]])
        counts.append(table)
    expected, predicted, right = counts
    own = one[part]
    return ClassCounts(classes, expected, predicted, right, own, own * rows[_STRAY][part], own * rows[OPPOSITE][part])


def _subtract(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    rest = whole - part
    return np.where(rest > _ROUNDING * part, rest, 0.0)


def sums_of(pairs: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """The weights of rows by class, replicates × n, from pairs of row and class."""
    row, code = pairs
    if not len(weight) or weight.shape[1] <= len(weight):  # few rows, weighted in many ways
        member = np.zeros((weight.shape[1], n))
        np.add.at(member, (row, code), 1.0)
        return np.asarray(weight @ member)
    return np.stack([np.bincount(code, each[row], minlength=n) for each in weight])


def table_of(counts: ClassCounts, value: np.ndarray) -> dict[str, Any]:
    """The counts and value of each class in one replicate, for `data`; of the `MAX_CLASSES` with the most rows."""
    each = [getattr(counts, name)[0].tolist() for name in ("expected", "predicted", "right")]
    rows = list(zip(counts.classes, value.tolist(), *each, strict=True))
    largest = sorted(rows, key=lambda row: -row[2])[:MAX_CLASSES] if len(rows) > MAX_CLASSES else rows
    names = ("label", "value", "expected", "predicted", "right")
    return {
        "n_classes": len(rows),
        "classes": [dict(zip(names, (row[0], *map(json_number, row[1:])), strict=True)) for row in largest],
    }


def confusion(rows: Columns, weight: np.ndarray, most: int = MAX_CLASSES) -> tuple[list[Label | None], np.ndarray]:
    """The confusion matrix: classes in order, and how often each truth (row) met each prediction (column).

    Args:
        rows: codes of `truth` and `prediction` into `LABELS`.
        weight: one for each row.
        most: the largest number of classes; those with the fewest rows are merged into one, named None, at the end.

    Example:
        >>> rows = {"truth": np.array([0, 0, 1]), "prediction": np.array([0, 1, 1]), "_labels_": np.array(["b", "a"])}
        >>> confusion(rows, np.ones(3))
        (['a', 'b'], array([[1., 0.],
               [1., 1.]]))
    """
    vocabulary = rows[LABELS]
    often = sum(np.bincount(rows[name], weight, minlength=len(vocabulary)) for name in (TRUTH, PREDICTION))
    order = in_order(vocabulary)
    order = order[np.asarray(often)[order] > 0]
    shown = np.sort(np.argsort(-np.asarray(often)[order], kind="stable")[:most])
    chosen = order[shown]
    names: list[Label | None] = [*vocabulary[chosen].tolist(), *[None] * (len(order) > len(chosen))]
    place = np.full(len(vocabulary), len(chosen))
    place[chosen] = np.arange(len(chosen))
    there = weight > 0
    cell = place[rows[TRUTH][there]] * len(names) + place[rows[PREDICTION][there]]
    table = np.bincount(cell, weight[there], minlength=len(names) ** 2)
    return names, table.reshape(len(names), len(names))


def json_number(number: float) -> float | int | None:
    """A number for JSON: an integer if it is whole, None if it is undefined."""
    return None if number != number else int(number) if float(number).is_integer() else float(number)


def has_sets(vocabulary: np.ndarray) -> bool:
    """Whether the labels are sets of labels."""
    return len(vocabulary) > 0 and isinstance(vocabulary[0], tuple)


EXPECTED: Final = "_expected_"
PREDICTED: Final = "_predicted_"
RIGHT: Final = "_right_"
_STRAY: Final = "_stray_"
OPPOSITE: Final = "_opposite_"
_ROUNDING: Final = 1e-13
_CLASSES: Final = "_classes_"
_AT_ONCE: Final = 1 << 21  # counts in memory at once
_LIMITS: Final = ("to_worst", "to_best", "open_to_worst", "open_to_best")
"""How many rows have an unknown truth, so that the value can be anything; and how many have no score, so that it can be
anything if another class could occur."""

TRUTH_UNKNOWN: Final = (
    "has no score and nothing tells what was expected, so nothing can count as wrong; use missing='leave_out'"
)


def _occurrences(rows: Columns, chosen: Sequence[Label] | None) -> dict[str, np.ndarray]:
    """The classes, and which rows expect and predict which of them, as pairs of row and class (2 × pairs)."""
    labels, members, starts = _members(rows[LABELS])
    expected, predicted = (_pairs(rows[name], members, starts) for name in (TRUTH, PREDICTION))
    if chosen is None:
        code = np.full(len(labels), -1)
        occurs = np.union1d(expected[1], predicted[1])
        occurs = occurs[np.argsort(np.argsort(in_order(labels))[occurs])]
        code[occurs] = np.arange(len(occurs))
        classes = labels[occurs]
    else:
        place = {label: number for number, label in enumerate(chosen)}
        code = np.array([place.get(label, -1) for label in labels.tolist()], np.int64)
        classes = np.fromiter(chosen, np.object_, len(chosen))
    size = np.bincount(expected[0], minlength=len(rows[TRUTH]))
    expected, predicted = (np.stack([row, code[kind]])[:, code[kind] >= 0] for row, kind in (expected, predicted))
    of_expected = expected[0] * len(classes) + expected[1]
    opposite = np.flatnonzero(rows[PREDICTION] == ALL_WRONG)
    if len(opposite):
        every = (opposite[:, None] * len(classes) + np.arange(len(classes))).ravel()
        wrong = np.setdiff1d(every, of_expected)
        predicted = np.concatenate([predicted, np.stack(np.divmod(wrong, max(len(classes), 1)))], axis=1)
        predicted = predicted[:, np.argsort(predicted[0], kind="stable")]
    right = np.isin(of_expected, predicted[0] * len(classes) + predicted[1])
    stray = np.where(rows[PREDICTION] == NO_CLASS, size, 0).astype(np.float64)
    pairs = {EXPECTED: expected, PREDICTED: predicted, RIGHT: expected[:, right]}
    others = {_STRAY: stray, OPPOSITE: (rows[PREDICTION] == ALL_WRONG).astype(np.float64)}
    return {_CLASSES: classes, **pairs, **others}


def _members(vocabulary: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Single labels, the labels of each vocabulary entry as one flat list of codes, and where each entry begins."""
    if not has_sets(vocabulary):
        return vocabulary, np.arange(len(vocabulary)), np.arange(len(vocabulary) + 1)
    sets = vocabulary.tolist()
    place: dict[Label, int] = {}
    members = np.array([place.setdefault(label, len(place)) for one in sets for label in one], np.int64)
    return np.fromiter(place, np.object_, len(place)), members, np.cumsum([0, *map(len, sets)])


def _pairs(code: np.ndarray, members: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Pairs of each row with each of its classes."""
    there = np.flatnonzero(code >= 0)
    begin, end = starts[code[there]], starts[code[there] + 1]
    row = np.repeat(there, end - begin)
    within = np.arange(len(row)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
    return np.stack([row, members[np.repeat(begin, end - begin) + within]])
