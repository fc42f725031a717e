"""Classes against the rest: statistics of the order that scores put rows into, for one class or averaged over all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np

from evaluand.class_scores import GIVE_SCORES, SCORES, OfScores
from evaluand.counts import TRUTH, harmonic
from evaluand.curves import PARTS, Curve, Drawn, Kind, named
from evaluand.errors import SpecError
from evaluand.labels import in_order
from evaluand.metric import LABELS, WEIGHT, Columns, Metric, State
from evaluand.statistic import Statistic

Average = Literal["macro", "weighted", "micro"]


class Ordered(NamedTuple):
    """Rows by their score for one class, lowest first; rows with equal scores are one tie."""

    row: np.ndarray
    positive: np.ndarray
    starts: np.ndarray  # where each tie begins
    known: bool  # whether each row has a score


class Ties(NamedTuple):
    """The weight of each tie, replicates × ties."""

    positive: np.ndarray
    negative: np.ndarray


@dataclass(frozen=True, kw_only=True)
class OneVsRest(OfScores, Statistic):
    """A statistic of each class against the rest.

    Args:
        average: over classes: their mean (`macro`), their mean by how often they are the truth (`weighted`), or one
            value of all pairs of a row and a class (`micro`). With `label` there is only one.

    Attributes:
        drawn: what the curve of a class is.

    Raises:
        SpecError: there is no such average.
    """

    keeps: ClassVar[tuple[str, ...]] = (TRUTH, SCORES)
    direction = "higher"
    range = (0.0, 1.0)
    drawn: ClassVar[Kind]

    average: Average = "macro"

    def __post_init__(self) -> None:
        if self.average not in ("macro", "weighted", "micro"):
            raise SpecError(f"{self.kind}: average={self.average!r} must be one of macro, weighted, micro")
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        return self.scored(columns)

    @abstractmethod
    def of_ties(self, ties: Ties) -> np.ndarray:
        """The value of each replicate, NaN where all rows that have weight are of one kind."""

    @abstractmethod
    def curve(self, positive: np.ndarray, score: np.ndarray, weight: np.ndarray) -> Curve:
        """The curve of one class, of rows of which some are positive and some are not."""

    @property
    def drawn_by(self) -> Metric:
        return self

    def curves(self, state: State) -> list[list[Drawn]]:
        found: list[list[Drawn]] = [[] for _ in state["n"]]
        for group, rows in self.rows_of(state):
            found[group] = [Drawn(self.drawn, part, curve) for part, curve in self._curves(rows)]
        return found

    def _curves(self, rows: Columns) -> Iterator[tuple[str | None, Curve]]:
        """The curves of classes, of many those that are most often the truth; with micro averages that of all pairs."""
        classes, weight = _classes(rows), rows[WEIGHT]
        if self.average == "micro" and len(classes) > 1:
            scores, pairs = rows[SCORES][:, classes], rows[TRUTH][:, None] == np.array(classes)
            yield from self._part(None, pairs.ravel(), scores.ravel(), np.repeat(weight, len(classes)))
            return
        often = {place: -weight[rows[TRUTH] == place].sum() for place in classes}
        shown = set(sorted(classes, key=lambda place: often[place])[:PARTS])
        for place in [place for place in in_order(rows[LABELS]).tolist() if place in shown]:
            name = named(rows[LABELS][place])
            yield from self._part(name, rows[TRUTH] == place, rows[SCORES][:, place], weight)

    def _part(
        self, part: str | None, positive: np.ndarray, scores: np.ndarray, weight: np.ndarray
    ) -> Iterator[tuple[str | None, Curve]]:
        scores = self._filled(scores)
        both = weight[positive].sum() > 0 and weight[~positive].sum() > 0
        if both and not np.isnan(scores).any():
            yield part, self.curve(positive, scores, weight)

    def arranged(self, rows: Columns) -> Columns:
        return {**rows, ORDERED: _held([*self._ordered(rows)])}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        values = np.array([self._of_class(one, weight) for one in rows[ORDERED]])
        if self.average != "weighted":
            return np.asarray(values.mean(axis=0))
        return _weighted(values, np.array([weight @ _positives_of(one, weight.shape[1]) for one in rows[ORDERED]]))

    def _of_class(self, one: Ordered, weight: np.ndarray) -> np.ndarray:
        return self.of_ties(_ties(one, weight)) if one.known else np.full(len(weight), np.nan)

    def basis(self, rows: Columns, weight: np.ndarray) -> float:
        positive = np.array([weight @ _positives_of(one, len(weight)) for one in rows[ORDERED]])
        total = weight.sum()
        rest = np.where(total - positive > _ROUNDING * total, total - positive, 0.0)
        return harmonic(np.minimum(positive, rest), float(total))

    def without_each(self, rows: Columns, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A block's rows are taken from the ties they are in, and nothing is ordered again."""
        weight = rows[WEIGHT]
        blocks, code = np.unique(block, return_inverse=True)
        used = np.bincount(code, weight, minlength=len(blocks)) > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.array(
                [
                    [self.of_ties(ties)[0] if one.known else np.nan for ties in _left(one, weight, code)]
                    for one in rows[ORDERED]
                ]
            )[:, used]
            if self.average != "weighted":
                return blocks[used], values.mean(axis=0)
            mine = np.array(
                [np.bincount(code, weight * _positives_of(one, len(weight)), len(blocks)) for one in rows[ORDERED]]
            )
            return blocks[used], _weighted(values, (mine.sum(axis=1, keepdims=True) - mine)[:, used])

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        if self.label is None and np.isnan(rows[SCORES]).all():
            return f"no row has scores of classes; {GIVE_SCORES}"
        for place in _classes(rows):
            label, mine = rows[LABELS][place], rows[TRUTH] == place
            lacking = int(np.isnan(rows[SCORES][:, place]).sum())
            if lacking and np.isnan(self.otherwise):
                told = f"{lacking} {'row has' if lacking == 1 else 'rows have'} no score for {label!r}"
                return f"{told}; {GIVE_SCORES}, or absent=0, which takes it for 0"
            if not weight[mine].sum() > 0:
                return f"no truth is {label!r}"
            if not weight[~mine].sum() > 0:
                return f"all truths are {label!r}"
        return "undefined for these rows"

    def told(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The value of each class."""
        classes = _classes(rows)
        if self.average == "micro" or len(classes) < 2:
            return {}
        with np.errstate(divide="ignore", invalid="ignore"):
            found = [float(self._of_class(one, weight[None])[0]) for one in rows[ORDERED]]
        by_label = dict(zip(classes, found, strict=True))
        order = [place for place in in_order(rows[LABELS]).tolist() if place in by_label]
        named = [(rows[LABELS][place], by_label[place]) for place in order]
        return {"classes": [{"label": label, "value": None if v != v else v} for label, v in named]}

    def _ordered(self, rows: Columns) -> Iterator[Ordered]:
        classes = _classes(rows)
        if self.average == "micro" and len(classes) > 1:
            scores = self._filled(rows[SCORES][:, classes].ravel())
            order = np.argsort(scores)
            row, of = np.divmod(order, len(classes))
            positive = np.asarray(rows[TRUTH][row] == np.array(classes)[of])
            yield _ordered_by(scores[order], row, positive)
            return
        for place in classes:
            scores = self._filled(rows[SCORES][:, place])
            order = np.argsort(scores)
            yield _ordered_by(scores[order], order, rows[TRUTH][order] == place)

    def _filled(self, scores: np.ndarray) -> np.ndarray:
        return scores if np.isnan(self.otherwise) else np.where(np.isnan(scores), self.otherwise, scores)


def _ordered_by(scores: np.ndarray, row: np.ndarray, positive: np.ndarray) -> Ordered:
    return Ordered(row, positive, _starts_of(scores), not np.isnan(scores[-1]))


def _classes(rows: Columns) -> list[int]:
    """The labels that are the truth of a row, or that one has a score for."""
    known = np.array(~np.isnan(rows[SCORES]).all(axis=0))
    known |= np.bincount(rows[TRUTH] + 1, minlength=len(known) + 1)[1:] > 0
    if not known.any():
        known[:] = True
    return [int(place) for place in np.flatnonzero(known)]


def _held(ordered: list[Ordered]) -> np.ndarray:
    found = np.empty(len(ordered), np.object_)
    for place, one in enumerate(ordered):
        found[place] = one
    return found


def _starts_of(ordered: np.ndarray) -> np.ndarray:
    """Where a new value begins."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def _ties(one: Ordered, weight: np.ndarray) -> Ties:
    by_row = weight[:, one.row]
    positive = np.add.reduceat(by_row * one.positive, one.starts, axis=1)
    return Ties(positive, np.add.reduceat(by_row, one.starts, axis=1) - positive)


def _left(one: Ordered, weight: np.ndarray, block: np.ndarray) -> Iterator[Ties]:
    """The ties without each block."""
    whole = _ties(one, weight[None])
    tie = np.repeat(np.arange(len(one.starts)), np.diff(one.starts, append=len(one.row)))
    order = np.argsort(block[one.row].astype(np.int16), kind="stable")
    row, positive, tie = one.row[order], one.positive[order], tie[order]
    starts = _starts_of(block[row] * len(one.starts) + tie)
    own = _ties(Ordered(row, positive, starts, True), weight[None])
    bounds = np.searchsorted(block[row][starts], np.arange(int(block.max()) + 2))
    for start, stop in pairwise(bounds.tolist()):
        place = tie[starts[start:stop]]
        yield Ties(*(_less(all_[0], place, mine[0, start:stop]) for all_, mine in zip(whole, own, strict=True)))


def _less(weight: np.ndarray, place: np.ndarray, without: np.ndarray) -> np.ndarray:
    """The weight of ties, less of some of them; what is left by rounding is 0."""
    found = weight.copy()
    rest = found[place] - without
    found[place] = np.where(rest > _ROUNDING * without, rest, 0.0)
    return found[None]


def _weighted(values: np.ndarray, positives: np.ndarray) -> np.ndarray:
    """The mean of classes × replicates by the weight of their positives."""
    share = positives / positives.sum(axis=0)
    return np.asarray(np.where(positives > 0, values * share, 0.0).sum(axis=0))


def _positives_of(one: Ordered, n_rows: int) -> np.ndarray:
    """How often each row is positive: with micro averages it is once, of all its classes."""
    return np.bincount(one.row, one.positive, minlength=n_rows)


ORDERED: Final = "_ordered_"
_ROUNDING: Final = 1e-13
