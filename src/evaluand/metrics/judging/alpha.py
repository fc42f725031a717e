"""Krippendorff's alpha: how far several raters agree beyond chance, where not everybody has rated everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from evaluand.metrics.base.confusion import sums_of
from evaluand.metrics.base.metric import WEIGHT, Columns
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric
from evaluand.metrics.stats.intervals import normal_quantile

Level = Literal["nominal", "ordinal", "interval", "ratio"]

RATINGS: Final = "ratings"
"""The column of a matrix of rows × raters: numbers, or the codes of labels, and NaN where a rater gave none."""


@dataclass(frozen=True, kw_only=True)
class KrippendorffAlpha(WeightedRowsMetric):
    """1 − the mean disagreement of two ratings of one row / that of any two ratings.

    Rows with fewer than two ratings do not count. Undefined if all ratings are one value.
    Source: K. Krippendorff, Content Analysis (4th ed., 2019), chapter 12.

    Args:
        level: what a disagreement is. `nominal`: 1. `interval`: the squared difference. `ordinal`: the squared
            difference of the mean ranks among all ratings. `ratio`: the squared difference over the squared sum, of
            numbers that are not negative.

    Raises:
        SpecError: there is no such level.

    Example:
        >>> alpha, ratings = KrippendorffAlpha(confidence=None), np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        >>> alpha.compute(alpha.state({"ratings": ratings}, np.zeros(3, int), 1)).value.round(3)
        array([0.444])
    """

    kind = "krippendorff_alpha"
    direction = "higher"
    range = (-1.0, 1.0)
    row_columns = (RATINGS,)

    level: Level = "nominal"

    def arranged(self, rows: Columns) -> Columns:
        """The rows with at least two ratings, as codes of the distinct values."""
        paired = (~np.isnan(rows[RATINGS])).sum(axis=1) > 1
        values, code = np.unique(rows[RATINGS][paired], return_inverse=True)
        known = int(np.count_nonzero(~np.isnan(values)))
        code = np.where(code < known, code, _NO_RATING).reshape(-1, rows[RATINGS].shape[1])
        row, rater = np.nonzero(code != _NO_RATING)
        found: dict[str, Any] = {_PAIRED: paired, _CODE: code, _VALUES: values[:known]}
        found[_OF] = np.stack([row, code[row, rater]])
        if self.level != "ordinal":  # whose distances depend on the weights
            found[_WITHIN] = self._within(code, values[:known])
        return {**rows, **found}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        weight = weight[:, rows[_PAIRED]]
        often = sums_of(rows[_OF], weight, len(rows[_VALUES]))  # replicates × values
        place = self._places(rows, often)
        if self.level == "ordinal":
            observed = np.einsum("rn,rn->r", weight, np.stack([self._within(rows[_CODE], each) for each in place]))
        else:
            observed = weight @ rows[_WITHIN]
        pairs = (often * self._away(often, place)).sum(axis=1)
        return self._of_sums(observed, pairs, often.sum(axis=1), (often > 0).sum(axis=1) > 1)

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        """Exactly, but where ranks are distances: those that a row moves move the value by their first derivative."""
        paired, code, (row, of) = rows[_PAIRED], rows[_CODE], rows[_OF]
        weight, one, n = rows[WEIGHT][paired], one[paired], (code != _NO_RATING).sum(axis=1)
        often = sums_of(rows[_OF], weight[None], len(rows[_VALUES]))
        place = self._places(rows, often)
        away, within = self._away(often, place)[0], self._within(code, place[0])
        moved_pairs, moved_within = (
            self._moved(rows, weight, often[0], place[0]) if self.level == "ordinal" else (np.zeros(len(away)),) * 2
        )
        by_row = [np.bincount(row, part[of], minlength=len(n)) for part in (2 * away + moved_pairs, moved_within)]
        observed = float(weight @ within) - one * (within + by_row[1])
        pairs = float(often[0] @ away) - one * by_row[0] + np.square(one) * within * (n - 1)
        several = pairs > _ROUNDING * float(often[0] @ away)
        found = np.full(len(paired), self.value(rows, rows[WEIGHT][None])[0])
        found[paired] = self._of_sums(observed, pairs, often.sum() - one * n, several)
        return found

    def _of_sums(self, observed: np.ndarray, pairs: np.ndarray, n: np.ndarray, several: np.ndarray) -> np.ndarray:
        """The value, from the disagreement within rows, that of all ordered pairs of n ratings, and if any differ."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(several, 1 - observed * (n - 1) / pairs, np.nan)

    def _places(self, rows: Columns, often: np.ndarray) -> np.ndarray:
        """What distances are taken of, replicates × values: mean ranks, or the values themselves."""
        if self.level == "ordinal":
            return np.asarray(np.cumsum(often, axis=1) - often / 2)
        return np.broadcast_to(rows[_VALUES], often.shape)

    def _moved(
        self, rows: Columns, weight: np.ndarray, often: np.ndarray, place: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """By how much a rating of each value, by moving the ranks of others, adds to the two sums of distances."""
        code, (row, of) = rows[_CODE], rows[_OF]
        n = (code != _NO_RATING).sum(axis=1)
        sums = np.bincount(row, place[of], minlength=len(n))
        of_within = np.bincount(
            of, (4 * weight / (n - 1))[row] * (n[row] * place[of] - sums[row]), minlength=len(often)
        )
        of_pairs = 4 * often * (often.sum() * place - often @ place)
        moved = [np.cumsum(slope[::-1])[::-1] - slope / 2 for slope in (of_pairs, of_within)]
        return moved[0], moved[1]

    def _within(self, code: np.ndarray, place: np.ndarray) -> np.ndarray:
        """The disagreement of all ordered pairs of ratings of each row, over the number of other ratings."""
        rated = code != _NO_RATING
        x = np.where(rated, place[code], np.nan)
        n = rated.sum(axis=1)
        found = np.zeros(len(code))
        for one in range(1, code.shape[1]):  # each pair of raters once, so that memory grows with rows alone
            for other in range(one):
                found += np.nan_to_num(self._distance(x[:, one], x[:, other]))
        return np.asarray(2 * found / (n - 1))

    def _away(self, often: np.ndarray, place: np.ndarray) -> np.ndarray:
        """The sum of the distances of each value from all ratings, replicates × values."""
        n = often.sum(axis=1, keepdims=True)
        if self.level == "nominal":
            return np.asarray(n - often)
        if self.level in ("interval", "ordinal"):
            square = np.square(place - (often * place).sum(axis=1, keepdims=True) / n)
            return np.asarray(n * square + (often * square).sum(axis=1, keepdims=True))
        found = np.zeros(often.shape)
        for number in range(often.shape[1]):
            found += often[:, number, None] * self._distance(place[:, number, None], place)
        return found

    def _distance(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        if self.level == "nominal":
            return np.asarray(np.where(np.isnan(one) | np.isnan(other), np.nan, one != other))
        if self.level != "ratio":
            return np.asarray(np.square(one - other))
        total = one + other
        return np.asarray(np.square(np.divide(one - other, total, out=np.zeros_like(total), where=total != 0)))

    def least_variance(self, rows: Columns, value: float) -> float:
        """That of rows with two ratings of a rare label that may exist although none was observed.

        Their number may be z², by the score interval of a share; each would change the value as one that is added.
        """
        if self.level != "nominal" or self.confidence is None:
            return 0.0
        often = np.bincount(rows[_OF][1], minlength=len(rows[_VALUES]))
        rarest, commonest = rows[_VALUES][[often.argmin(), often.argmax()]]
        changes = [self._with_row(rows, rarest, other) - value for other in (rarest, commonest)]
        return normal_quantile(self.confidence) ** 2 * max(change * change for change in changes)

    def _with_row(self, rows: Columns, *ratings: float) -> float:
        """The value with one more row."""
        row = np.full((1, rows[RATINGS].shape[1]), np.nan)
        row[0, : len(ratings)] = ratings
        more = self.arranged({RATINGS: np.append(rows[RATINGS], row, axis=0)})
        return float(self.value(more, np.append(rows[WEIGHT], 1.0)[None])[0])

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        if not (weight[rows[_PAIRED]] > 0).any():
            return "no row has two ratings"
        return "all ratings are one value, so chance agrees everywhere"

    def basis(self, rows: Columns, weight: np.ndarray) -> float:
        """The share of the rows that have two ratings; of labels, less where nearly all are one label.

        If two labels are equally frequent, every row says as much about alpha as about a share.
        """
        paired = float(weight[rows[_PAIRED]].sum() / weight.sum())
        if self.level != "nominal":
            return paired
        often = np.bincount(rows[_OF][1], weight[rows[_PAIRED]][rows[_OF][0]])
        return paired * min(2 * float(1 - np.square(often / often.sum()).sum()), 1.0)


_NO_RATING: Final = -1
_ROUNDING: Final = 1e-13
_PAIRED: Final = "_paired_"
_CODE: Final = "_code_"
_VALUES: Final = "_values_"
_OF: Final = "_of_"
_WITHIN: Final = "_within_"
