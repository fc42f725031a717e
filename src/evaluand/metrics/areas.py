"""Areas under curves over all thresholds, of classes against the rest and of pairs of classes."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, get_args

import numpy as np

from evaluand.core.errors import SpecError, pluralize
from evaluand.metrics.base.class_scores import GIVE_SCORES, SCORES, OfScores, has_label, one_hot
from evaluand.metrics.base.confusion import MAX_CLASSES, PREDICTION, TRUTH, harmonic, why_rare
from evaluand.metrics.base.curves import PARTS, POINTS, Drawn, part_name, precision_recall_curve, roc_curve
from evaluand.metrics.base.labels import in_order, object_array
from evaluand.metrics.base.metric import LABELS, WEIGHT, Columns, Labels, Metric, State
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric, clusters_in
from evaluand.metrics.names import BINARY
from evaluand.metrics.stats.intervals import runs

Average = Literal["macro", "weighted", "micro", "samples"]


class Ties(NamedTuple):
    """The weight of positive and of negative rows in each tie of equal scores, lowest first: lines × ties."""

    positive: np.ndarray
    negative: np.ndarray

    def ties(self, weight: np.ndarray) -> Self:
        """Of rows whose weights are known, themselves."""
        return self


class Ordered(NamedTuple):
    """Rows by their score for one class, lowest first; rows with equal scores are one tie."""

    row: np.ndarray
    positive: np.ndarray
    starts: np.ndarray  # where each tie begins

    def ties(self, weight: np.ndarray) -> Ties:
        """A line for each weighting."""
        by_row = weight[:, self.row]
        positive = np.add.reduceat(by_row * self.positive, self.starts, axis=1)
        return Ties(positive, np.add.reduceat(by_row, self.starts, axis=1) - positive)


@dataclass(frozen=True, kw_only=True)
class OneVsRest(OfScores, WeightedRowsMetric):
    """A metric of each class against the rest, computed from scores of classes.

    If rows have sets of labels, a row is positive for each label of its set.

    Args:
        scored_by: what the scores are, see `OfScores`.
        label: the positive class; by default the value is an average over all classes.
        absent: the score of a class without one in a row; by default the value is undefined if one is missing.
        average: over classes: their mean (`macro`), their mean weighted by how often each is the truth (`weighted`), or
            one value of all pairs of a row and a class (`micro`), or the mean over rows of the value of a row's
            classes, those of its truth against the others (`samples`). No effect with `label`.

    Attributes:
        drawn: the kind of curve of a class.
        known_averages: the values of `average`.

    Raises:
        SpecError: there is no such average, or the parameters contradict each other.
    """

    direction = "higher"
    range = (0.0, 1.0)
    takes_sets = True
    drawn: ClassVar[Literal["roc", "precision_recall"]]
    known_averages: ClassVar[tuple[str, ...]] = get_args(Average)

    average: Average = "macro"

    def __post_init__(self) -> None:
        if self.average not in self.known_averages:
            raise SpecError(f"{self.kind}: average={self.average!r} must be one of {', '.join(self.known_averages)}")
        if self.label is not None:
            object.__setattr__(self, "average", "macro")
        super().__post_init__()

    @property
    def row_columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (TRUTH, PREDICTION) if self._hard else (TRUTH, SCORES)

    @property
    def _hard(self) -> bool:
        """Whether labels replace the scores of all classes: of single labels counts suffice, and no matrix is built."""
        return self.scored_by == "labels" and self.label is None

    def prepare(self, columns: Columns) -> Columns:
        if not self._hard:
            return self.scored(columns)
        self.check_truth(columns)
        return {name: columns[name] for name in (TRUTH, PREDICTION, LABELS)}

    @abstractmethod
    def of_ties(self, ties: Ties) -> np.ndarray:
        """The value of each line of ties; NaN if all rows with weight are positive, or all negative."""

    @abstractmethod
    def influence_in_ties(self, ties: Ties) -> Ties:
        """The derivative of the value by the weight of a row of each tie, for positive and for negative rows."""

    def rows_like(self, share: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The share of all rows of which a proportion would vary as much as the value of a class is expected to.

        `share` is that of the positive rows of each class.
        """
        return share

    @property
    def drawn_by(self) -> Metric | None:
        return self

    def curves(self, state: State) -> list[list[Drawn]]:
        found: list[list[Drawn]] = [[] for _ in state["n"]]
        for group, rows in self.rows_of(state):
            found[group] = [*self._curves(self._scored_by_labels(rows))]
        return found

    def _curves(self, rows: Columns) -> Iterator[Drawn]:
        """The curves of the classes that are most often the truth; for the micro average, that of all pairs."""
        classes, weight = _occurring_classes(rows), rows[WEIGHT]
        names: list[str | None] = [None]
        if self._is_pooled(classes):
            weight = np.repeat(weight, len(classes))
        else:
            shown = classes[np.argsort(-_often(rows, classes, weight), kind="stable")][:PARTS]
            classes = np.array([place for place in in_order(rows[LABELS]).tolist() if place in shown], np.int64)
            names = [part_name(rows[LABELS][place]) for place in classes.tolist()]
        for name, (positive, scores) in zip(names, self._sides(rows, classes), strict=True):
            both = weight[positive].sum() > 0 and weight[~positive].sum() > 0
            if both and not np.isnan(scores).any():
                yield Drawn(self.drawn, name, _CURVES[self.drawn](positive, scores, weight, points=POINTS))

    def _is_pooled(self, classes: np.ndarray) -> bool:
        """Whether all pairs of a row and a class have one value."""
        return self.average == "micro" and len(classes) > 1

    def _sides(self, rows: Columns, classes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Which rows are positive, and the scores of all, of each class or of all pairs of a row and a class."""
        scores = (self._filled(_scores(rows, place)) for place in classes.tolist())
        if self._is_pooled(classes):
            yield _members(rows, classes).ravel(), np.stack([*scores], axis=1).ravel()
        else:
            yield from zip((has_label(rows[TRUTH], place) for place in classes.tolist()), scores, strict=True)

    def arranged(self, rows: Columns) -> Columns:
        rows = self._scored_by_labels(rows)
        rows = {**rows, CLASSES: _occurring_classes(rows)}
        if self._by_row(rows):
            return {**rows, _OF_ROWS: self._of_rows(rows)}
        return {**rows, ORDERED: object_array(self._ordered(rows))} if SCORES in rows else rows

    def _scored_by_labels(self, rows: Columns) -> Columns:
        """Rows with predicted labels as scores, if counts do not suffice."""
        if SCORES in rows or not self.needs_matrix(rows):
            return rows
        return {**rows, SCORES: one_hot(rows[PREDICTION], len(rows[LABELS]))}

    def needs_matrix(self, rows: Columns) -> bool:
        """Whether predicted labels must become a matrix of scores, because their counts do not suffice."""
        return rows[TRUTH].ndim == 2 or self.average == "samples"

    def _by_row(self, rows: Columns) -> bool:
        return self.average == "samples" and len(rows[CLASSES]) > 1

    def _of_rows(self, rows: Columns) -> np.ndarray:
        """The value of each row's classes: those of its truth against the others."""
        classes = rows[CLASSES]
        positive, scores = _members(rows, classes), self._filled(rows[SCORES][:, classes])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.of_ties(ties_of_rows(positive, scores))
        both = positive.any(axis=1) & ~positive.all(axis=1) & ~np.isnan(scores).any(axis=1)
        return np.where(both, found, np.nan)

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        if self._by_row(rows):
            return np.asarray(np.where(weight > 0, weight * rows[_OF_ROWS], 0.0).sum(axis=1) / weight.sum(axis=1))
        return np.array([self._of_classes(rows, each) @ self._shares(rows, each) for each in weight])

    def _of_classes(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """The value of each class; a single one for micro."""
        if ORDERED not in rows:
            return self.of_ties(self._counted(rows, weight))
        return np.array([self.of_ties(one.ties(weight[None]))[0] for one in rows[ORDERED]])

    def _shares(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """How much of the average each class is."""
        positives = self._positives(rows, weight)
        if self.average == "weighted":
            return np.asarray(positives / positives.sum())
        return np.full(len(positives), 1 / len(positives))

    def _positives(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """The weight of the rows of each class; for micro, of all positive pairs of a row and a class."""
        classes = rows[CLASSES]
        found = _often(rows, classes, weight)
        return found.sum(keepdims=True) if self._is_pooled(classes) else found

    def _counted(self, rows: Columns, weight: np.ndarray) -> Ties:
        """The two ties of each class: rows with another prediction and rows with this one; one line for micro."""
        classes, n = rows[CLASSES], len(rows[LABELS])
        right = rows[TRUTH] == rows[PREDICTION]
        expected, predicted, both = (
            np.bincount(code + 1, each, minlength=n + 1)[1:][classes]
            for code, each in ((rows[TRUTH], weight), (rows[PREDICTION], weight), (rows[TRUTH], weight * right))
        )
        total = np.full(len(classes), weight.sum())
        if self.average == "micro":
            expected, predicted, both, total = (x.sum(keepdims=True) for x in (expected, predicted, both, total))
        negative = [total - expected - (predicted - both), predicted - both]
        return Ties(np.stack([expected - both, both], axis=1), np.maximum(np.stack(negative, axis=1), 0.0))

    def influence(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        if self._by_row(rows):
            change = rows[_OF_ROWS] - self.value(rows, weight[None])[0]
            return np.where(weight > 0, change / weight.sum(), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            values, shares = self._of_classes(rows, weight), self._shares(rows, weight)
            found = (self._of_orders if ORDERED in rows else self._of_labels)(rows, weight, shares)
        if self.average == "weighted":  # the shares depend on the rows too
            found = found + _sums_by_row(rows, rows[CLASSES], self._of_share(rows, weight, values, shares))
        return np.where(self._depends_on_one_cluster(rows, weight), np.nan, found)

    def _of_share(self, rows: Columns, weight: np.ndarray, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """What a row of each class adds by changing the shares of the average."""
        return np.asarray((values - values @ shares) / self._positives(rows, weight).sum())

    def _of_each_class(self, rows: Columns, values: np.ndarray) -> np.ndarray:
        """The value of each class, from the values that are averaged."""
        return values

    def _of_orders(self, rows: Columns, weight: np.ndarray, shares: np.ndarray) -> np.ndarray:
        found = np.zeros(len(weight))
        for one, share in zip(rows[ORDERED], shares, strict=True):
            sizes = np.diff(one.starts, append=len(one.row))
            positive, negative = (np.repeat(each[0], sizes) for each in self.influence_in_ties(one.ties(weight[None])))
            by_row = np.where(one.positive, positive, negative)
            found += share * np.bincount(one.row, by_row, minlength=len(weight))
        return found

    def _of_labels(self, rows: Columns, weight: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """The influence of each row: that of an uninvolved row, corrected for its truth and its prediction."""
        classes = rows[CLASSES]
        of_ties = self.influence_in_ties(self._counted(rows, weight))
        if self.average == "micro":
            of_ties = Ties(*(np.repeat(each, len(classes), axis=0) for each in of_ties))
            shares = np.ones(len(classes))
        positive, negative = (shares[:, None] * each for each in of_ties)
        place = np.zeros(len(rows[LABELS]), np.int64)
        place[classes] = np.arange(len(classes))
        truth, prediction = place[rows[TRUTH]], place[rows[PREDICTION]]
        right, answered = rows[TRUTH] == rows[PREDICTION], rows[PREDICTION] >= 0
        found = negative[:, 0].sum() + positive[truth, right.astype(int)] - negative[truth, 0]
        return np.asarray(found + np.where(answered & ~right, negative[prediction, 1] - negative[prediction, 0], 0.0))

    def _depends_on_one_cluster(self, rows: Columns, weight: np.ndarray) -> bool:
        """Whether all rows of a class, or all others, are in one cluster, so that their spread is unknown."""
        there, classes = weight > 0, rows[CLASSES]
        if self._is_pooled(classes):
            return False
        key = clusters_in(rows)[there]
        if rows[TRUTH].ndim == 2:
            members = _members(rows, classes)[there]
            sides = [key[side] for member in members.T for side in (member, ~member)]
            return any(bool((side == side[:1]).all()) for side in sides)
        truth = rows[TRUTH][there]
        code = np.searchsorted(classes, truth) + 1 if len(classes) > 1 else (truth == classes[0]).astype(int)
        low, high = np.full(code.max() + 1, np.iinfo(np.int64).max), np.full(code.max() + 1, np.iinfo(np.int64).min)
        np.minimum.at(low, code, key)
        np.maximum.at(high, code, key)
        return bool((low == high).any())

    def parts(self, rows: Columns, weight: np.ndarray) -> np.ndarray | None:
        """The class of each row, of several the rarest; one more for rows without any of the classes."""
        classes = rows[CLASSES]
        if self.average in ("micro", "samples") and len(classes) > 1:
            return None
        rank = np.argsort(np.argsort(-_often(rows, classes, weight), kind="stable")) + 1
        return np.asarray(np.where(_members(rows, classes), rank, 0).max(axis=1))

    def why_unbounded(self, rows: Columns) -> str | None:
        classes = rows[CLASSES]
        if self.label is not None or self.average != "macro":
            return None
        return why_rare(rows[LABELS][classes].tolist(), _often(rows, classes, np.sign(rows[WEIGHT])))

    def basis(self, rows: Columns, weight: np.ndarray) -> float:
        share = self._row_shares(rows, weight)
        rest = np.where(1 - share > _ROUNDING, 1 - share, 0.0)
        return harmonic(np.minimum(share, rest), 1.0)

    def expected_basis(self, rows: Columns, weight: np.ndarray) -> float:
        if self._by_row(rows):
            return 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self._of_each_class(rows, self._of_classes(rows, weight))
        share = self._row_shares(rows, weight)
        return harmonic(self.rows_like(share, values[: len(share)]), 1.0)

    def _row_shares(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """The share of the rows that is of each class; 1 if the value is not a mean over classes."""
        if self.average in ("micro", "samples") and len(rows[CLASSES]) > 1:
            return np.ones(1)
        return np.asarray(self._positives(rows, weight) / weight.sum())

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        if self.label is None and not self._hard and np.isnan(rows[SCORES]).all():
            return f"no row has scores of classes; {GIVE_SCORES}"
        if self._by_row(rows) and not np.isnan(self._filled(rows[SCORES][:, rows[CLASSES]])).any():
            bad = int(np.isnan(rows[_OF_ROWS][weight > 0]).sum())
            what = f"{bad} {pluralize(bad, 'row has', 'rows have')} no label, or all of them"
            return f"{what}, so no label can be above another"
        for place in rows[CLASSES].tolist():
            label, mine = rows[LABELS][place], has_label(rows[TRUTH], place)
            lacking = 0 if self._hard else int(np.isnan(rows[SCORES][:, place]).sum())
            if lacking and np.isnan(self.otherwise):
                what = f"{lacking} {pluralize(lacking, 'row has', 'rows have')} no score for {label!r}"
                return f"{what}; {GIVE_SCORES}, or absent=0, which takes it for 0"
            if self._is_pooled(rows[CLASSES]):
                continue
            verb = "has" if rows[TRUTH].ndim == 2 else "is"
            if not weight[mine].sum() > 0:
                return f"no truth {verb} {label!r}"
            if not weight[~mine].sum() > 0:
                return f"all truths {'have' if verb == 'has' else 'are'} {label!r}"
        if self.average == "micro" and rows[TRUTH].ndim == 2:
            return "every truth has every label, or none has any"
        return "undefined for these rows"

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The value of each class."""
        classes = rows[CLASSES]
        if self.average in ("micro", "samples") or len(classes) < 2:
            return {}
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._of_classes(rows, weight)
        by_label = dict(zip(classes.tolist(), found.tolist(), strict=True))
        order = [place for place in in_order(rows[LABELS]).tolist() if place in by_label]
        labelled = [(rows[LABELS][place], by_label[place]) for place in order]
        return {"classes": [{"label": label, "value": None if v != v else v} for label, v in labelled]}

    def _ordered(self, rows: Columns) -> Iterator[Ordered | Ties]:
        """The rows of each class in order; only their ties if all rows count equally and no interval is needed."""
        classes = rows[CLASSES]
        per_row = len(classes) if self._is_pooled(classes) else 1
        return (self._order_rows(scores, positive, per_row) for positive, scores in self._sides(rows, classes))

    def _order_rows(self, scores: np.ndarray, positive: np.ndarray, per_row: int) -> Ordered | Ties:
        if np.isnan(scores).any():
            return _UNKNOWN
        if self.confidence is None and not self.weighted:
            return _ties_of(scores, positive)
        order = np.argsort(scores)
        return Ordered(order // per_row, positive[order], runs(scores[order]))

    def _filled(self, scores: np.ndarray) -> np.ndarray:
        return scores if np.isnan(self.otherwise) else np.where(np.isnan(scores), self.otherwise, scores)


def ties_of_rows(positive: np.ndarray, scores: np.ndarray) -> Ties:
    """The ties of the labels of each row, a line for each; labels without a score (NaN) do not count.

    Args:
        positive: which labels are in the truth, rows × labels.
        scores: rows × labels.

    Example:
        >>> ties_of_rows(np.array([[True, False, True]]), np.array([[0.5, 0.5, 0.9]])).positive.tolist()
        [[1.0, 1.0, 0.0]]
    """
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    tie = np.cumsum(np.diff(ordered, axis=1, prepend=ordered[:, :1]) != 0, axis=1) % max(scores.shape[1], 1)
    cell = (np.arange(len(tie))[:, None] * scores.shape[1] + tie).ravel()
    known = ~np.isnan(ordered)
    right = np.take_along_axis(positive, order, axis=1) & known
    sizes, expected = (
        np.bincount(cell, each.ravel(), minlength=tie.size).reshape(tie.shape) for each in (known, right)
    )
    return Ties(expected, sizes - expected)


def _ties_of(scores: np.ndarray, positive: np.ndarray) -> Ties:
    """The ties of rows of equal weight. Sorting numbers takes a quarter of the time of finding their order."""
    ordered = np.sort(scores)
    starts = runs(ordered)
    sizes = np.diff(starts, append=len(ordered))
    rare = np.count_nonzero(positive) * 2 <= len(positive)  # look the fewer up among the others
    fewer = np.searchsorted(ordered[starts], np.sort(scores[positive if rare else ~positive]))
    counted = np.bincount(fewer, minlength=len(starts))
    ties = (counted, sizes - counted) if rare else (sizes - counted, counted)
    return Ties(*(each[None].astype(np.float64) for each in ties))


def _occurring_classes(rows: Columns) -> np.ndarray:
    """The labels that are the truth of a row, or have a score in one."""
    n, truth = len(rows[LABELS]), rows[TRUTH]
    known = (truth > 0).any(axis=0) if truth.ndim == 2 else np.bincount(truth + 1, minlength=n + 1)[1:] > 0
    if SCORES in rows:
        known = known | ~np.isnan(rows[SCORES]).all(axis=0)
    else:
        known = known | (np.bincount(rows[PREDICTION] + 1, minlength=n + 1)[1:] > 0)
    return np.flatnonzero(known if known.any() else ~known)


def _members(rows: Columns, classes: np.ndarray) -> np.ndarray:
    """Which rows have which classes as truth, rows × classes."""
    truth = rows[TRUTH]
    return np.asarray(truth[:, classes] == 1 if truth.ndim == 2 else truth[:, None] == classes)


def _often(rows: Columns, classes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The weight of the rows whose truth has each class."""
    if rows[TRUTH].ndim == 2:
        return np.asarray(weight @ _members(rows, classes))
    return np.asarray(np.bincount(rows[TRUTH] + 1, weight, minlength=len(rows[LABELS]) + 1)[1:][classes])


def _sums_by_row(rows: Columns, classes: np.ndarray, by_class: np.ndarray) -> np.ndarray:
    """The sum of a number of each class over the classes of each row's truth."""
    if rows[TRUTH].ndim == 2:
        return np.asarray(_members(rows, classes) @ by_class)
    place = np.full(len(rows[LABELS]) + 1, len(classes))
    place[classes] = np.arange(len(classes))
    return np.asarray(np.append(by_class, 0.0)[place[rows[TRUTH]]])


def _scores(rows: Columns, place: int) -> np.ndarray:
    """The score of each row for a class."""
    if SCORES in rows:
        return np.asarray(rows[SCORES][:, place])
    return np.asarray(rows[PREDICTION] == place, np.float64)


_CURVES: Final = {"roc": roc_curve, "precision_recall": precision_recall_curve}
ORDERED: Final = "_ordered_"
_ROUNDING: Final = 1e-13
CLASSES: Final = "_classes_"
_OF_ROWS: Final = "_of_rows_"
_UNKNOWN: Final = Ties(np.full((1, 1), np.nan), np.full((1, 1), np.nan))


class RocAuc(OneVsRest):
    """The area under the ROC curve: how often a positive row has a higher score than a negative one; ties count half.

    0.5 for random scores. With several classes, each is compared against the rest. It depends only on the order of
    scores; if positives are rare, a high value may still come with many false positives: see `average_precision`.
    Source: J. Hanley & B. McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC)
    curve" (Radiology 143, 1982).

    Example:
        >>> metric = RocAuc(scored_by="positive", label="cat", confidence=None)
        >>> metric.signature
        'roc_auc v1 missing=leave_out reduce=first scored_by=positive label=cat average=macro'
    """

    kind = "roc_auc"
    drawn = "roc"

    def of_ties(self, ties: Ties) -> np.ndarray:
        below = np.cumsum(ties.negative, axis=1) - ties.negative / 2
        pairs = ties.positive.sum(axis=1) * ties.negative.sum(axis=1)
        return np.asarray(np.einsum("rt,rt->r", ties.positive, below) / pairs)

    def influence_in_ties(self, ties: Ties) -> Ties:
        """How much more often than average a row is ordered correctly against rows of the other class.

        Source: E. DeLong, D. DeLong & D. Clarke-Pearson, "Comparing the areas under two or more correlated receiver
        operating characteristic curves" (Biometrics 44, 1988); in O(n log n), X. Sun & W. Xu, "Fast implementation of
        DeLong's algorithm" (IEEE Signal Processing Letters 21, 2014).
        """
        positives, negatives = (each.sum(axis=1, keepdims=True) for each in ties)
        value = self.of_ties(ties)[:, None]
        below = np.cumsum(ties.negative, axis=1) - ties.negative / 2
        above = positives - np.cumsum(ties.positive, axis=1) + ties.positive / 2
        return Ties((below / negatives - value) / positives, (above / positives - value) / negatives)

    def _row_shares(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """Of two classes that exclude each other only one: both areas depend on the same pairs of rows."""
        share = super()._row_shares(rows, weight)
        return share[:1] if len(share) == 2 and rows[TRUTH].ndim == 1 else share

    def rows_like(self, share: np.ndarray, value: np.ndarray) -> np.ndarray:
        """For positive and negative rows with exponential scores, averaged over which of them has the longer tail.

        Source: Hanley & McNeil (see above), averaged over both as in R. Newcombe (see `steady_interval`).
        """
        return np.asarray(2 * share * (1 - share) / ((1 - value) / (2 - value) + value / (1 + value)))


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(OneVsRest):
    """Average precision: Σ (recall at a threshold − recall at the one above) · precision there, over all thresholds.

    Computed in steps, not interpolated. By chance it equals the share of positives, so values are not comparable
    between data with different shares. With few positives that are hard to find it is biased upwards, since precision
    is read only at positives. The interval treats it as a proportion of the positives: K. Boyd, K. Eng & C. D. Page,
    "Area under the precision-recall curve: point estimates and confidence intervals" (ECML PKDD 2013), with the
    variance by influence.

    Args:
        scored_by: what the scores are, see `OfScores`.
        label: the positive class; by default the value is an average over all classes.
        absent: the score of a class without one in a row; by default the value is undefined if one is missing.
        average: see `OneVsRest`; `binary` is `macro` but refuses two classes, of which one must be chosen as `label`.

    Example:
        >>> AveragePrecision().signature
        'average_precision v1 missing=leave_out reduce=first scored_by=classes average=macro interval=influence 95%'
    """

    kind = "average_precision"
    drawn = "precision_recall"
    known_averages = (*OneVsRest.known_averages, BINARY)

    average: Average | Literal["binary"] = "macro"  # type: ignore[assignment]

    def settled(self, labels: Labels) -> Self:
        found = super().settled(labels)
        truths = labels.get(TRUTH, ())
        if self.average != BINARY or not truths:
            return found
        if len(truths) == 2 and not isinstance(truths[0], tuple):
            raise SpecError(
                f"{self.kind} of two classes is that of the positive one, and the labels are {truths[0]!r} and "
                f"{truths[1]!r}: choose it, as in label={truths[-1]!r}, or give average='macro' for the mean of both"
            )
        return replace(found, average="macro")

    def of_ties(self, ties: Ties) -> np.ndarray:
        positive = np.cumsum(ties.positive[:, ::-1], axis=1)
        all_above = positive + np.cumsum(ties.negative[:, ::-1], axis=1)
        precision = positive / np.where(all_above > 0, all_above, 1.0)
        return np.asarray(np.einsum("rt,rt->r", ties.positive[:, ::-1], precision) / positive[:, -1])

    def influence_in_ties(self, ties: Ties) -> Ties:
        """What a row adds by its own precision, and its effect on that of the positives at or below its score."""
        positive = np.cumsum(ties.positive[:, ::-1], axis=1)[:, ::-1]
        all_above = np.maximum(positive + np.cumsum(ties.negative[:, ::-1], axis=1)[:, ::-1], _TINY)
        positives = positive[:, :1]
        precision = positive / all_above
        share = ties.positive / positives / all_above
        raised, lowered = (np.cumsum(share * each, axis=1) for each in (1 - precision, precision))
        own = (precision - self.of_ties(ties)[:, None]) / positives
        return Ties(own + raised, -lowered)


_TINY: Final = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, kw_only=True)
class OneVsOneRocAuc(RocAuc):
    """The mean area over all pairs of classes, each computed from the rows whose truth is one of the two.

    A pair has two areas, one by the score of each class; their mean counts. Unlike `roc_auc`, it does not depend on how
    common classes are if `average` is `macro`.
    Source: D. Hand & R. Till, "A simple generalisation of the area under the ROC curve for multiple class
    classification problems" (Machine Learning 45, 2001).

    Args:
        scored_by: `classes`, or `labels` for predicted labels without scores; see `OfScores`.
        absent: the score of a class without one in a row; by default the value is undefined if one is missing.
        average: over pairs: their mean (`macro`), or weighted by how many rows each has (`weighted`).

    Raises:
        SpecError: there is no such average, or `scored_by` is the score of a single class.

    Example:
        >>> OneVsOneRocAuc(confidence=None).signature
        'roc_auc_one_vs_one v1 missing=leave_out reduce=first scored_by=classes average=macro'
    """

    kind = "roc_auc_one_vs_one"
    takes_sets = False
    drawn_by = None
    label: ClassVar[None] = None  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.average not in ("macro", "weighted"):
            raise SpecError(f"{self.kind}: average={self.average!r} must be one of macro, weighted")
        if self.scored_by not in ("classes", "labels"):
            raise SpecError(f"{self.kind}: scored_by={self.scored_by!r} must be one of classes, labels")
        super().__post_init__()

    def needs_matrix(self, rows: Columns) -> bool:
        return True

    def _ordered(self, rows: Columns) -> Iterator[Ordered | Ties]:
        """The rows of both classes of each pair, ordered by the score of one; then by that of the other."""
        for pair in rows[CLASSES][_ranks(rows)].tolist():
            chosen = np.flatnonzero(np.isin(rows[TRUTH], pair))
            for place in pair:
                one = self._order_rows(self._filled(rows[SCORES][chosen, place]), rows[TRUTH][chosen] == place, 1)
                yield one._replace(row=chosen[one.row]) if isinstance(one, Ordered) else one

    def _shares(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        pairs = _ranks(rows)
        of_pair = np.ones(len(pairs))
        if self.average == "weighted":
            of_pair = self._positives(rows, weight)[pairs].sum(axis=1)
        return np.asarray(np.repeat(of_pair / of_pair.sum() / 2, 2))

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        if len(rows[CLASSES]) < 2:
            return np.full(len(weight), np.nan)
        return super().value(rows, weight)

    def _of_share(self, rows: Columns, weight: np.ndarray, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """What a row of each class adds by changing the shares of the pairs with its class."""
        pairs = _ranks(rows)
        change = (values.reshape(-1, 2).mean(axis=1) - values @ shares) / self._positives(rows, weight)[pairs].sum()
        return np.asarray(np.bincount(pairs.ravel(), np.repeat(change, 2), minlength=len(rows[CLASSES])))

    def _of_each_class(self, rows: Columns, values: np.ndarray) -> np.ndarray:
        pairs = _ranks(rows)
        of_pair = np.repeat(values.reshape(-1, 2).mean(axis=1), 2)
        return np.asarray(np.bincount(pairs.ravel(), of_pair) / np.bincount(pairs.ravel()))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        if len(rows[CLASSES]) < 2:
            return "there is one class, and a pair needs two"
        return super().undefined(rows, weight)

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The value of each pair of classes, of at most `MAX_CLASSES` pairs."""
        if len(rows[CLASSES]) < 2:
            return {}
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self._of_classes(rows, weight).reshape(-1, 2).mean(axis=1).tolist()
        rank = np.argsort(in_order(rows[LABELS])).tolist()
        places = [sorted(pair, key=rank.__getitem__) for pair in rows[CLASSES][_ranks(rows)].tolist()]
        in_ranks = sorted(zip(places, values, strict=True), key=lambda each: [rank[place] for place in each[0]])
        named = [
            {"labels": [rows[LABELS][place] for place in pair], "value": None if value != value else value}
            for pair, value in in_ranks
        ]
        return {"n_pairs": len(named), "pairs": named[:MAX_CLASSES]}


def _ranks(rows: Columns) -> np.ndarray:
    """The places of both classes of each pair among the classes."""
    return np.stack(np.triu_indices(len(rows[CLASSES]), 1), axis=1)
