"""Confusion counts: how often each truth met each prediction, and the counts of each class.

The table of combinations is sparse: it has a row for each combination that occurred (see `WeightedRowsMetric`,
`counted`), so it does not grow with the data. Counts of classes are sums over it, for many weightings at once. If rows
have sets of labels, sets are counted, and each label of a set is a class.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from evaluand.core.errors import SpecError, plural
from evaluand.metrics.base.labels import in_order, one_vocabulary
from evaluand.metrics.base.metric import INDEPENDENT, LABELS, WEIGHT, Columns, Fill, State, Values, refuse
from evaluand.metrics.base.weighted_rows import (
    GroupResult,
    WeightedRowsMetric,
    blocks_by_kind,
    row_column,
    sorted_parts,
)
from evaluand.metrics.stats.intervals import (
    Spread,
    clustered_wilson,
    correlation_of,
    count_rows,
    mean_of_shares,
    runs,
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

    def summed(self, starts: np.ndarray) -> Self:
        """Sums over consecutive replicates, from each start on."""
        return type(self)(self.classes, *(np.add.reduceat(part, starts) for part in self[1:]))

    def minus(self, other: Self, of: np.ndarray) -> Self:
        """Replicate `of` minus each replicate of the other; 0 where only rounding remains."""
        whole = (part[of] for part in self[1:])
        return type(self)(self.classes, *(_subtract(*parts) for parts in zip(whole, other[1:], strict=True)))

    def over(self, parts: np.ndarray) -> Self:
        """Each replicate divided into this many equal parts."""
        divided = (part / np.maximum(parts, 1.0).reshape(-1, *[1] * (part.ndim - 1)) for part in self[1:])
        return type(self)(self.classes, *divided)

    def at(self, places: np.ndarray) -> Self:
        """Some of the replicates."""
        return type(self)(self.classes, *(part[places] for part in self[1:]))

    def within(self, places: slice, classes: np.ndarray) -> Self:
        """Consecutive replicates, and some of the classes."""
        expected, predicted, right = (part[places, classes] for part in self[1:4])
        total, stray, opposite = (part[places] for part in self[4:])
        labels = [self.classes[i] for i in classes.tolist()]
        return type(self)(labels, expected, predicted, right, total, stray, opposite)


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
    """A function of the counts of each class, computed at once for many groups and without each block.

    If rows are independent and unweighted, the interval of a share is Wilson's, that of a mean of shares combines
    theirs, and that of any other function leaves out single rows: equal rows change it equally. With more than `BLOCKS`
    kinds of rows, and otherwise, it leaves out blocks.
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
            ends = mean_of_shares(right / n, *wilson(right, n, confidence))
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
        counts = class_counts(rows, np.asarray(rows[WEIGHT] > 0 if self.weighted else rows[WEIGHT], np.float64)[None])
        return self._find_rare_class(counts, counts.expected[0])

    def _find_rare_class(self, counts: ClassCounts, rows: np.ndarray) -> str | None:
        """See `why_rare`; `rows` is the number of rows of each class, which sums of weights do not say."""
        chosen = self.averaged(counts)
        if chosen is None:
            return None
        return why_rare([counts.classes[place] for place in np.flatnonzero(chosen).tolist()], rows[chosen])

    def at_once(self, vocabulary: np.ndarray) -> bool:
        """Whether the value depends on the counts alone, and classes that do not occur do not matter."""
        return True

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return self.of_counts(class_counts(rows, weight), rows[LABELS])

    def basis(self, rows: Columns, weight: np.ndarray) -> float:
        return self.basis_of(class_counts(rows, weight[None]), rows[LABELS])

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        return self.details_of(class_counts(rows, weight[None]), rows[LABELS])

    def group_results(self, state: State) -> Iterator[tuple[int, GroupResult]]:
        if not self.at_once(state[LABELS]):
            yield from super().group_results(state)
            return
        single = np.zeros(len(state["n"]), np.bool_)
        if INDEPENDENT in state:
            state, single = blocks_by_kind(state, self.row_columns)
        for rows, group, block in sorted_parts(state, len(state[LABELS])):
            yield from self._of_part(rows, group, block, single)

    def _of_part(
        self, rows: Columns, group: np.ndarray, block: np.ndarray, single: np.ndarray
    ) -> Iterator[tuple[int, GroupResult]]:
        """The results of groups of rows by group and block; in a `single` group blocks are kinds of equal rows."""
        starts, first = runs(group, block), runs(group)
        arranged = self.arranged(rows)
        leaves, seen = _counts_of(arranged, starts, first)
        of = np.searchsorted(first, starts, side="right") - 1  # the group of each leaf
        ends = np.searchsorted(of, np.arange(len(first) + 1))
        whole = leaves.summed(ends[:-1])
        values = self._defined(whole, rows[LABELS])
        alone = single[group[first]]
        often = np.where(alone[of], leaves.total, 1.0)
        without = self._defined(whole.minus(leaves.over(often), of), rows[LABELS])
        ends_of = self.bounds_of(whole, self.confidence) if self.confidence is not None and alone.any() else None
        bounds = None if ends_of is None else np.stack(ends_of, axis=1).tolist()
        of_shares = self.confidence is not None and self.shares_of(whole) is not None
        there = leaves.total > 0
        for place, start in enumerate(first.tolist()):
            counts = whole.within(slice(place, place + 1), seen[place])
            details, value = self.details_of(counts, rows[LABELS]), float(values[place])
            if math.isfinite(value):
                mine = slice(ends[place], ends[place + 1])
                basis = min(self.basis_of(counts, rows[LABELS]), 1.0)
                by_block = leaves.expected[mine, seen[place]]
                of_class = (by_block > 0).sum(axis=0) if self.weighted else counts.expected[0]
                why = None if self.confidence is None else self._find_rare_class(counts, of_class)
                found = GroupResult(
                    value, details, why, basis, without[mine][there[mine]], often=often[mine][there[mine]]
                )
                if bounds and alone[place]:
                    found = found._replace(ends=tuple(bounds[place]))
                elif of_shares:
                    found = found._replace(bounds=partial(self._by_shares, counts, leaves.within(mine, seen[place])))
                yield int(group[start]), found
            else:
                end = first[place + 1] if place + 1 < len(first) else len(group)
                own = {name: column if name == LABELS else column[start:end] for name, column in rows.items()}
                yield int(group[start]), GroupResult(value, details, self._undefined_reason(own, own[WEIGHT]))

    def _by_shares(self, counts: ClassCounts, leaves: ClassCounts, effective: float) -> tuple[float, float]:
        """The interval of a mean of shares, from the values and correlations of the shares without each block.

        A share in which all blocks agree, or that occurs in a single block, depends on as many clusters as its part of
        the rows. The leaves are the blocks of the one replicate of `counts`.
        """
        leaves = leaves.at(leaves.total > 0)
        n = len(leaves.total)
        shares, left = self.shares_of(counts), self.shares_of(counts.minus(leaves, np.zeros(n, np.int64)))
        if n < 2 or shares is None or left is None or self.confidence is None:
            return math.nan, math.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            share, without = shares[0][0] / shares[1][0], left[0] / left[1]
        off = without - without.mean(axis=0)
        off = np.where(np.isfinite(off) & (np.abs(off) > _ROUNDING), off, 0.0)
        covariance = (n - 1) / n * off.T @ off
        rests_on = effective * shares[1][0] / counts.total[0]
        variance = np.diagonal(covariance)
        rests_on = np.where(variance > 0, np.minimum(rests_on, n), rests_on)
        ends = clustered_wilson(share, Spread(variance, np.full(len(share), n), rests_on), self.confidence)
        low, high = map(np.atleast_1d, mean_of_shares(share, *ends, correlation_of(covariance)))
        return float(self.of_mean(low, counts)[0]), float(self.of_mean(high, counts)[0])

    def _defined(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.asarray(self.of_counts(counts, vocabulary), np.float64)
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
            refuse(missing, known == NO_CLASS, lambda row: _TRUTH_UNKNOWN)
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
    stray, opposite = ((weight * rows[name]).sum(axis=1) for name in (_STRAY, _OPPOSITE))
    return ClassCounts(classes, expected, predicted, right, weight.sum(axis=1), stray, opposite)


def truths_of(state: State) -> list[Any]:
    """The labels, or sets of labels, that occur as truths."""
    vocabulary, truth = state[LABELS], row_column(state, TRUTH)
    often = np.bincount(truth[truth >= 0], minlength=len(vocabulary))
    found: list[Any] = vocabulary[often > 0].tolist()
    return found


def _counts_of(rows: Columns, starts: np.ndarray, first: np.ndarray) -> tuple[ClassCounts, list[np.ndarray]]:
    """The counts of classes in each leaf (group and block), and which classes occur in each group.

    Leaves begin at `starts` and groups at `first`, of rows as `Confusion` arranges them.
    """
    classes, weight, n = rows[_CLASSES].tolist(), rows[WEIGHT], len(rows[WEIGHT])
    leaf = np.repeat(np.arange(len(starts)), np.diff(starts, append=n))
    group = np.repeat(np.arange(len(first)), np.diff(first, append=n))
    shape = len(starts), len(classes)
    sums, occurs = [], np.zeros(len(first) * len(classes), np.bool_)
    for name in (EXPECTED, PREDICTED, RIGHT):
        row, code = rows[name]
        sums.append(np.bincount(leaf[row] * shape[1] + code, weight[row], minlength=shape[0] * shape[1]).reshape(shape))
        occurs[group[row] * shape[1] + code] = True
    if rows[_CHOSEN]:
        occurs[:] = True
    total, stray, opposite = (
        np.bincount(leaf, each, minlength=shape[0])
        for each in (weight, weight * rows[_STRAY], weight * rows[_OPPOSITE])
    )
    seen = [np.flatnonzero(each) for each in occurs.reshape(len(first), len(classes))]
    expected, predicted, right = sums
    return ClassCounts(classes, expected, predicted, right, total, stray, opposite), seen


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
_OPPOSITE: Final = "_opposite_"
_CHOSEN: Final = "_chosen_"
_ROUNDING: Final = 1e-13
_CLASSES: Final = "_classes_"
_LIMITS: Final = ("to_worst", "to_best", "open_to_worst", "open_to_best")
"""How many rows have an unknown truth, so that the value can be anything; and how many have no score, so that it can be
anything if another class could occur."""

_TRUTH_UNKNOWN: Final = (
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
    right = np.isin(of_expected, predicted[0] * len(classes) + predicted[1])
    stray = np.where(rows[PREDICTION] == NO_CLASS, size, 0).astype(np.float64)
    pairs = {EXPECTED: expected, PREDICTED: predicted, RIGHT: expected[:, right]}
    others = {_STRAY: stray, _OPPOSITE: (rows[PREDICTION] == ALL_WRONG).astype(np.float64)}
    return {_CLASSES: classes, _CHOSEN: np.asarray(chosen is not None), **pairs, **others}


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
