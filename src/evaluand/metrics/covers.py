"""Metrics that compare overlapping communities: each node has a set of communities, whose names do not matter.

A node in no community has an empty set. Rows with one label are nodes of one community.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np

from evaluand.metrics.base.confusion import PREDICTION, TRUTH, Confusion, has_sets
from evaluand.metrics.base.labels import in_order
from evaluand.metrics.base.metric import LABELS, WEIGHT, Columns


class _OfCovers(Confusion):
    """A function of how two covers of the same nodes overlap."""

    direction = "higher"
    takes_sets = True
    counted: ClassVar[bool] = False

    def arranged(self, rows: Columns) -> Columns:
        """With the membership of rows in the communities of each side, rows × communities."""
        return {**rows, **{name: _membership(rows[side], rows[LABELS]) for side, name in _SIDES}}


def _membership(code: np.ndarray, vocabulary: np.ndarray) -> np.ndarray:
    """Which rows are in which communities, of those that have a node."""
    sets = vocabulary.tolist() if has_sets(vocabulary) else [(label,) for label in vocabulary.tolist()]
    used = np.unique(code)
    labels = np.fromiter(dict.fromkeys(label for place in used.tolist() for label in sets[place]), np.object_)
    place = {labels[i]: number for number, i in enumerate(in_order(labels).tolist())}
    of_set = np.zeros((len(vocabulary), len(place)))
    for number in used.tolist():
        of_set[number, [place[label] for label in sets[number]]] = 1.0
    return np.asarray(of_set[code])


Normalization = Literal["max", "lfk"]


@dataclass(frozen=True, kw_only=True)
class OverlappingMutualInformation(_OfCovers):
    """Normalised mutual information of two covers: how much each community tells about its best match in the other.

    1 if the covers are the same; 0 if no community tells anything about another, or one side has no community.
    Undefined if no node is in a community, or with `max` if every community of different covers has all nodes.
    Source: A. Lancichinetti, S. Fortunato & J. Kertész, "Detecting the overlapping and hierarchical community structure
    in complex networks" (New Journal of Physics 11, 2009), appendix; A. McDaid, D. Greene & N. Hurley, "Normalized
    mutual information to evaluate overlapping community finding algorithms" (arXiv 1110.2515, 2011).

    Args:
        normalization: `max` divides the information by the larger entropy of the covers (McDaid et al.); `lfk` is the
            mean over communities of the share of their entropy that is explained (Lancichinetti et al.), in which a
            community of all nodes counts as unexplained.

    Raises:
        SpecError: there is no such normalisation.

    Example:
        >>> OverlappingMutualInformation(normalization="lfk").signature
        'overlapping_mutual_information v1 missing=leave_out reduce=first normalization=lfk interval=jackknife 95%'
    """

    kind = "overlapping_mutual_information"
    range = (0.0, 1.0)

    normalization: Normalization = "max"

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return np.array([self._of_covers(_Cover.both(rows, one))[0] for one in weight])

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        """As long as best matches stay the same."""
        both = _Cover.both(rows, rows[WEIGHT])
        value = self._of_covers(both)
        if value[0] in (0, 1):
            return np.repeat(value, len(one))
        return self._of_covers([cover.without_rows(rows[WEIGHT], one) for cover in both])

    def _of_covers(self, covers: "Sequence[_Cover]") -> np.ndarray:
        """The value of each replicate."""
        one, other = covers
        if not (one.share.any() and other.share.any()):
            return np.array([0.0 if one.share.any() or other.share.any() else math.nan])
        if one.is_same:
            return np.ones(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.normalization == "max":
                information = sum((cover.entropy - cover.rest).sum(axis=1) for cover in covers) / 2
                found = information / np.maximum(*(cover.entropy.sum(axis=1) for cover in covers))
            else:
                shares = [np.where(c.entropy > 0, c.rest / c.entropy, 1.0) * (c.share > 0) for c in covers]
                each = [part.sum(axis=1) / (c.share > 0).sum(axis=1) for part, c in zip(shares, covers, strict=True)]
                found = 1 - sum(each) / 2
        return np.asarray(np.clip(found, 0.0, 1.0))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        some = rows[_TRUTHS][weight > 0].any() or rows[_PREDICTIONS][weight > 0].any()
        return "every community has all nodes, which tells nothing" if some else "no node is in a community"


class _Cover(NamedTuple):
    """The communities of one side that have weight, and how each is explained by its best match on the other side.

    A match counts only if it agrees more than it disagrees, else the complement of a community would match it.

    Attributes:
        members: rows × communities.
        matches: the same of the best match of each community.
        matched: of each community, whether it has one.
        share: of the rows that are in each community, replicates × communities.
        of_match: of those that are in its best match.
        common: of those that are in both.
        rest: the entropy of being in each community, given its best match.
        is_same: whether each community has exactly one with the same nodes on the other side.
    """

    members: np.ndarray
    matches: np.ndarray
    matched: np.ndarray
    share: np.ndarray
    of_match: np.ndarray
    common: np.ndarray
    rest: np.ndarray
    is_same: bool = False

    @classmethod
    def both(cls, rows: Columns, weight: np.ndarray) -> "tuple[_Cover, _Cover]":
        """Those of the truth and of the prediction."""
        weight = weight / weight.sum()
        shares = [weight @ rows[name] for _, name in _SIDES]
        truth, prediction = (rows[name][:, share > 0] for (_, name), share in zip(_SIDES, shares, strict=True))
        one, other = (share[share > 0] for share in shares)
        both = (truth * weight[:, None]).T @ prediction
        return cls._of(truth, prediction, one, other, both), cls._of(prediction, truth, other, one, both.T)

    @classmethod
    def _of(
        cls, members: np.ndarray, others: np.ndarray, one: np.ndarray, other: np.ndarray, both: np.ndarray
    ) -> "_Cover":
        given, agrees = _conditional(one[:, None], other, both)
        given = np.where(agrees, given, np.inf)
        match = given.argmin(axis=1) if len(other) else np.zeros(0, np.int64)
        equal = (np.abs(both - one[:, None]) < _NEAR) & (np.abs(both - other) < _NEAR)
        same = len(one) == len(other) and bool(equal.any(axis=1).all() and equal.any(axis=0).all())
        found = one[None], other[match][None], both[np.arange(len(match)), match][None]
        matched = agrees[np.arange(len(match)), match]
        rest = np.clip(given.min(axis=1, initial=np.inf), 0.0, _entropy(one))[None]
        return cls(members, others[:, match], matched, *found, rest, same)

    @property
    def entropy(self) -> np.ndarray:
        """Of being in each community."""
        return _entropy(self.share)

    def without_rows(self, weight: np.ndarray, one: np.ndarray) -> "_Cover":
        """Without one row of each kind; communities keep their best matches."""
        total = weight.sum() - one
        total = np.where(total > _NEAR * one, total, np.nan)[:, None]
        share, of_match, common = (
            np.where(whole - part > _NEAR, whole - part, 0.0) / total
            for whole, part in (
                (self.share * weight.sum(), self.members * one[:, None]),
                (self.of_match * weight.sum(), self.matches * one[:, None]),
                (self.common * weight.sum(), self.members * self.matches * one[:, None]),
            )
        )
        given = np.where(self.matched, _conditional(share, of_match, common)[0], np.inf)
        rest = np.clip(given, 0.0, _entropy(share))
        return self._replace(share=share, of_match=of_match, common=common, rest=rest)


def _conditional(one: np.ndarray, other: np.ndarray, both: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entropy of being in one community, given another; and whether they agree more than they disagree."""
    only, others = one - both, other - both
    neither = 1 - one - others
    alike, unlike = _plogp(both) + _plogp(neither), _plogp(only) + _plogp(others)
    return alike + unlike - _entropy(other), alike - unlike > _NEAR


def _entropy(share: np.ndarray) -> np.ndarray:
    """The entropy of being in each community."""
    return np.asarray(_plogp(share) + _plogp(1 - share))


def _plogp(share: np.ndarray) -> np.ndarray:
    """−p log p, 0 for a share that is 0 or 1 but for rounding."""
    some = (share > _NEAR) & (share < 1 - _NEAR)
    return np.where(some, -share * np.log(np.where(some, share, 1.0)), 0.0)


class OmegaIndex(_OfCovers):
    """The share of pairs of nodes that are together in equally many communities of both sides, adjusted for chance.

    (observed − expected) / (1 − expected); of partitions it is the adjusted Rand index. 1 if all pairs agree. A pair
    counts by the product of its nodes' weights. Undefined for a single node.
    Source: L. Collins & C. Dent, "Omega: A general formulation of the Rand index of cluster recovery suitable for
    non-disjoint solutions" (Multivariate Behavioral Research 23, 1988).

    Example:
        >>> OmegaIndex().signature
        'omega_index v1 missing=leave_out reduce=first interval=influence 95%'
    """

    kind = "omega_index"
    range = (-1.0, 1.0)

    def arranged(self, rows: Columns) -> Columns:
        n = max(len(rows[LABELS]), 1)
        kinds, kind = np.unique(rows[TRUTH] * n + rows[PREDICTION], return_inverse=True)
        of_kind = super().arranged({**rows, TRUTH: kinds // n, PREDICTION: kinds % n})
        return {**rows, _KIND: kind, _TRUTHS: of_kind[_TRUTHS], _PREDICTIONS: of_kind[_PREDICTIONS]}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return np.array([self._of_weights(rows, one)[0] for one in weight])

    def influence(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return self._of_weights(rows, weight)[1]

    def _of_weights(self, rows: Columns, weight: np.ndarray) -> tuple[float, np.ndarray]:
        """The index, and its derivative by the weight of each row."""
        differ, *often = (each[rows[_KIND]] for each in self._by_kind(rows, weight))
        truths, predictions = rows[_TRUTHS][rows[_KIND]], rows[_PREDICTIONS][rows[_KIND]]
        for each, members in zip(often, (truths, predictions), strict=True):  # a node makes no pair with itself
            each[np.arange(len(weight)), members.sum(axis=1).astype(np.int64)] -= weight
        differ = differ - weight * (truths.sum(axis=1) != predictions.sum(axis=1))
        disagree = float(weight @ differ) / 2
        one, other = (weight @ each / 2 for each in often)
        pairs = float(one.sum())
        if not pairs > 0:
            return np.nan, np.full(len(weight), np.nan)
        if not disagree > _NEAR * pairs:
            return 1.0, np.zeros(len(weight))
        by_chance = float(one @ (pairs - other)) / pairs**2  # 1 − expected
        change_of_pairs = often[0].sum(axis=1)
        changed = (often[0] @ (pairs - other) + (change_of_pairs[:, None] - often[1]) @ one) / pairs**2
        changed = changed - 2 * by_chance * change_of_pairs / pairs
        share = disagree / pairs
        of_share = (differ - share * change_of_pairs) / pairs
        return 1 - share / by_chance, -of_share / by_chance + share * changed / by_chance**2

    def _by_kind(self, rows: Columns, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each kind of node the weight of nodes about which the sides differ, and that by shared communities."""
        truth, prediction = rows[_TRUTHS], rows[_PREDICTIONS]
        total = np.bincount(rows[_KIND], weight, minlength=len(truth))
        width = int(max(truth.sum(axis=1).max(initial=0), prediction.sum(axis=1).max(initial=0))) + 1
        differ, often = np.zeros(len(truth)), np.zeros((2, len(truth), width))
        step = max(1, _AT_ONCE // max(len(truth), 1))
        for start in range(0, len(truth), step):
            part = slice(start, start + step)
            shared = [each[part] @ each.T for each in (truth, prediction)]
            differ[part] = (shared[0] != shared[1]) @ total
            for side in range(2):
                for number in range(width):
                    often[side, part, number] = (shared[side] == number) @ total
        return differ, often[0], often[1]

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "there is one node, which makes no pair"

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The number of communities of each side."""
        return {"communities": [rows[_TRUTHS].shape[1], rows[_PREDICTIONS].shape[1]]}


_TRUTHS: Final = "_truths_"
_PREDICTIONS: Final = "_predictions_"
_SIDES: Final = ((TRUTH, _TRUTHS), (PREDICTION, _PREDICTIONS))
_KIND: Final = "_kind_"
_NEAR: Final = 1e-13
_AT_ONCE: Final = 1 << 22
