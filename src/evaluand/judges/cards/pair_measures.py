"""The measures of a judge of pairs: agreement with people in each order, consistency and biases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from evaluand.judges.cards.labelled_set import Item
from evaluand.judges.cards.measures import Measure, people, same_shares, undecided
from evaluand.judges.cards.scales import Readings, mean_of
from evaluand.metrics.judging.alpha import RATINGS, KrippendorffAlpha
from evaluand.metrics.judging.differences import preference_within
from evaluand.metrics.judging.estimate import Estimate, estimate, kappa, share, undefined
from evaluand.metrics.ratings.positions import inconsistency, position_bias

FIRST_ORDER: Final = "first order"
SECOND_ORDER: Final = "second order"
BOTH_ORDERS: Final = "both orders"
_WINNERS: Final = ("b", "tie", "a")


def measure_pairs(
    items: Sequence[Item], readings: Readings, *, judge_model: str | None, confidence: float
) -> Iterator[Measure]:
    """The measures of judgements of pairs.

    With both orders, the mean of the two counts: opposite winners make a tie.

    Args:
        readings: of the items.
        judge_model: the model that judges, to find answers that it wrote itself.
    """
    pairs = _Pairs(readings, confidence)
    asked = [each for each in pairs.by_order if not np.isnan(each).all()]
    yield from undecided(items, np.stack(asked or pairs.by_order[:1], axis=1), readings, confidence)
    yield from pairs.agreement()
    yield from pairs.order()
    yield from pairs.retest()
    yield from people(readings, confidence)
    yield from pairs.biases(items, judge_model)


class _Pairs:
    """Pairs with the winner of most people and the outcomes in both orders, as shares of the win of `a`."""

    def __init__(self, readings: Readings, confidence: float) -> None:
        self.readings, self.confidence, self.example = readings, confidence, readings.example
        self.truth = readings.majority
        self.by_order = mean_of(readings.judge), mean_of(readings.swapped)

    @property
    def outcome(self) -> np.ndarray:
        """The mean of the orders that were judged."""
        return mean_of(np.stack(self.by_order, axis=1))

    def agreement(self) -> Iterator[Measure]:
        """Agreement beyond chance in each order, and in both together."""
        first, second = self.by_order
        parts = {FIRST_ORDER: first, SECOND_ORDER: second, BOTH_ORDERS: (first + second) / 2}
        by_part = [self._agreement_of(part, outcome) for part, outcome in parts.items()]
        yield from (each for same_kind in zip(*filter(None, by_part), strict=True) for each in same_kind)

    def _agreement_of(self, part: str, outcome: np.ndarray) -> list[Measure]:
        """The measures of one order, or of both; none without judgements."""
        known = ~np.isnan(outcome) & ~np.isnan(self.truth)
        if not known.any():
            return []
        people, judge = (1 + np.sign(each[known] - 0.5).astype(np.int64) for each in (self.truth, outcome))
        example, same = self.example[known], (people == judge).astype(np.float64)
        ratings = np.stack([people, judge], axis=1).astype(np.float64)
        alpha = KrippendorffAlpha(confidence=self.confidence)
        return [
            Measure(
                "agreement",
                part,
                share(same, example, confidence=self.confidence),
                f"{int(same.sum()):,} of {len(same):,}",
            ),
            Measure("cohen_kappa", part, kappa(people, judge, _WINNERS, example, confidence=self.confidence)),
            Measure("krippendorff_alpha", part, estimate(alpha, {RATINGS: ratings}, example)),
        ]

    def order(self) -> Iterator[Measure]:
        """The influence of the order of presentation."""
        n = len(self.example)
        outcome = np.concatenate(self.by_order)
        known = ~np.isnan(outcome)
        a_first, pair = np.repeat([True, False], n)[known], np.tile(np.arange(n), 2)[known]
        outcome, example = outcome[known], np.tile(self.example, 2)[known]
        if a_first.all() or not a_first.any():
            return
        sides = np.zeros(len(outcome), np.int64), np.ones(len(outcome), np.int64)
        bias = position_bias(*sides, outcome, a_first, example, confidence=self.confidence)
        won = f"the first won {bias.first:,}, the second {bias.second:,}, {bias.ties:,} tied"
        rows = bias.first + bias.second + bias.ties
        yield Measure("position_bias", "", Estimate(bias.share, bias.low, bias.high, rows, float(bias.examples)), won)
        found = inconsistency(outcome, a_first, pair, example, confidence=self.confidence)
        if found.pairs:
            consistent = Estimate(1 - found.share, 1 - found.high, 1 - found.low, found.pairs, float(found.pairs))
            second = found.contradictory - found.first_twice
            note = f"{found.pairs - found.contradictory:,} of {found.pairs:,}"
            note += f"; {found.first_twice:,} favour the first place, {second:,} the second"
            yield Measure("consistency", "", consistent, note)

    def retest(self) -> Iterator[Measure]:
        """How often a judge that is asked again in the same order names the same winner."""
        rows = [(matrix, self.example) for matrix in (self.readings.judge, self.readings.swapped)]
        width = max(matrix.shape[1] for matrix, _ in rows)
        if width < 2:
            return
        padded = [np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=np.nan) for each, _ in rows]
        winners, example = np.sign(np.concatenate(padded) - 0.5), np.tile(self.example, 2)
        repeated = (~np.isnan(winners)).sum(axis=1) > 1
        if repeated.any():
            same = share(same_shares(winners[repeated]), example[repeated], confidence=self.confidence)
            yield Measure("retest_agreement", "", same, f"{int(repeated.sum()):,} judged repeatedly")

    def biases(self, items: Sequence[Item], judge_model: str | None) -> Iterator[Measure]:
        """Whether longer answers, or the judge's own, win more often than by a judge that treats both sides alike."""
        sizes = [item.lengths if len(item.lengths) == 2 else (0, 0) for item in items]
        longer = np.array([np.sign(a - b) for a, b in sizes], np.float64)
        yield from self._preference("length_bias", longer, "of different length")
        if judge_model is not None:
            written = [item.models if len(item.models) == 2 else (None, None) for item in items]
            own = np.array([(a == judge_model) - float(b == judge_model) for a, b in written], np.float64)
            yield from self._preference("self_preference", own, f"of which one is by {judge_model}")

    def _preference(self, name: str, side: np.ndarray, what: str) -> Iterator[Measure]:
        """The preference for a side (1 is `a`, −1 `b`, 0 neither), from pairs that were judged in both orders."""
        first, second = self.by_order
        rows = (side != 0) & ~np.isnan(self.truth) & ~(np.isnan(first) & np.isnan(second))
        if not rows.any():
            return
        both = rows & ~np.isnan(first) & ~np.isnan(second)
        if not both.any():
            yield Measure(name, "", undefined(_ONE_ORDER, int(rows.sum())), f"{int(rows.sum()):,} pairs {what}")
            return
        wins, people = (0.5 + side[both] * (each[both] - 0.5) for each in (self.outcome, self.truth))
        found = preference_within(wins, people, self.example[both], confidence=self.confidence)
        yield Measure(name, "", found, f"{int(both.sum()):,} pairs {what}, judged in both orders")


_ONE_ORDER: Final = "pairs judged in one order do not separate it from position bias; judge them in both"
