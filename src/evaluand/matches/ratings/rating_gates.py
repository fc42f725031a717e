"""Gates of ratings: rules about systems that were rated from matches.

    win_rate(mine, base) >= 0.55             mine's share of the win against base
    win_rate(mine, base) >= 0.55 at 95%      its one-sided 95 % confidence bound
    mine wins against base >= 55% at 95%     the same in words
    win_rate(mine) >= 0.5                    the mean over opponents, or against the baseline of the ratings
    rating(mine) >= 0.5                      of ratings at equal length: they have no `win_rate`
    rating(mine) >= 1050 at 95%              the rating, in the unit of the ratings
    rating(mine) better than base            the one-sided 95 % bound of the difference of ratings lies above 0
    rating(mine) not worse than base by 20   … above −20
    position_bias <= 0.55                    how often the response seen first wins
    inconsistency <= 0.1 at 95%              the share of pairs with opposite winners in their two orders

A match in which a response is missing, or was skipped by one of both, counts as lost by the system that gave none: a
system that crashes on a hard example is not as good as one that answers. The message counts them, and the matches that
the judge did not decide, which are left out. A missing response has no length, so ratings at equal length are not
compared where one is missing, unless they were made with `missing=leave_out`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any, Final, cast

import numpy as np

from evaluand.comparison.checking import GateResult, Row, check_distance, check_threshold, decide, refuse_anytime
from evaluand.comparison.rule import (
    AGAINST,
    BASELINE,
    EQUAL,
    MATCH_GATES,
    RELATIONS,
    WIN_RATE,
    Gate,
    quote_word,
)
from evaluand.core.errors import DataError, SpecError, nearest, plural
from evaluand.evaluation.standing import ScorerStanding
from evaluand.matches.labelled_sets import standings_of
from evaluand.matches.ratings.method import POSITION, RatingMethod
from evaluand.matches.ratings.rating import Ratings
from evaluand.matches.ratings.tables import A, B, MatchTable, compute_tables, decide_missing, gather
from evaluand.metrics.stats.intervals import clopper_pearson


def check_rating_gates(
    gates: Sequence[str | Gate], ratings: Ratings, *, allow_unmeasured_judges: bool = False
) -> list[GateResult]:
    """Checks each gate.

    Args:
        gates: the rules, as text.
        ratings: what they are about.
        allow_unmeasured_judges: whether verdicts of judges count that have no card, only one from before they
            changed, or one that does not show agreement with people; otherwise gates on them are refused, and fail.

    Raises:
        SpecError: a text is no gate of ratings, names a system that was not rated, or has a threshold that no rating
            can have; or the arguments are swapped.

    Example:
        >>> from evaluand import Dataset, Matcher, Runner, rate
        >>> data = Dataset.from_rows([{"input": str(i)} for i in range(60)])
        >>> runner = Runner()
        >>> runs = [runner.run(task, data) for task in (lambda text: text, lambda text: text + text[:1])]
        >>> shorter = lambda first, second: "first" if len(first) < len(second) else "second"
        >>> ratings = rate(Matcher().match(runs, shorter, labels=["once", "more"]), method="win_rate")
        >>> print(*check_rating_gates(["win_rate(once, more) >= 0.55 at 95%"], ratings))
        passed  win_rate(once, more) >= 0.55 at 95%  once: lower 95% bound 0.9513; win rate 1 of 60 matches
    """
    rules, about = cast("tuple[Any, Any]", (gates, ratings))  # callers without types swap them
    if not isinstance(about, Ratings) or not isinstance(rules, list | tuple):
        raise SpecError(
            "check_rating_gates takes a list of rules and then the ratings, such as"
            ' check_rating_gates(["win_rate(mine, base) >= 0.55"], ratings)'
        )
    context, judges = _Context(ratings), dict[str, ScorerStanding]()
    for standing in (one for matches in ratings.matches if matches is not None for _, one in standings_of(matches)):
        judges.setdefault(standing.digest, standing)
    return [
        decide(
            rule,
            context.find_system(rule.scorer) or "judge",
            partial(_find_rows, rule, context),
            () if rule.metric in ("position_bias", "inconsistency") else [*judges.values()],  # about the judge itself
            allowed=allow_unmeasured_judges,
        )
        for rule in (gate if isinstance(gate, Gate) else Gate.parse(gate) for gate in gates)
    ]


def check_limits(gate: Gate, method: RatingMethod) -> None:
    """Refuses a gate that holds always or never, whatever the matches are.

    Args:
        method: how the systems are rated.

    Raises:
        SpecError: the threshold is no share, two ratings never differ by the margin, the method has no such number, or
            the rule is for repeated looks.

    Example:
        >>> check_limits(Gate.parse("mine wins against base >= 55"), RatingMethod())
        Traceback (most recent call last):
        evaluand.SpecError: gate '...': a share of wins lies between 0 and 1, never at 55; write 55 % or 0.55
    """
    refuse_anytime(gate, gate.metric)
    if gate.metric == WIN_RATE and method.kind == "equal_length":
        name = f"rating({'SYSTEM' if gate.scorer is None else quote_word(gate.scorer)})"
        threshold = f"{gate.relation} {gate.number:g}" + ("" if gate.level is None else f" at {100 * gate.level:g}%")
        threshold = threshold if gate.baseline is None else f"better than {quote_word(gate.baseline)}"
        raise gate.fault(
            f"{name} is the win rate at equal length; write `{name} {threshold}`, or rate by method"
            " win_rate to check the raw one"
        )
    if gate.metric != "rating" or gate.baseline is None:
        check_threshold(gate, *_RANGES[method.kind if gate.metric == "rating" else gate.metric])
    elif method.kind != "bradley_terry" and gate.relation != EQUAL:
        check_distance(gate, f"ratings by {method.kind}", 1.0, is_share=True)


_RANGES: Final = {
    "bradley_terry": ("a Bradley–Terry rating, in points,", -math.inf, math.inf),
    "equal_length": ("a win rate at equal length", 0.0, 1.0),
    WIN_RATE: ("a share of wins", 0.0, 1.0),
    "position_bias": ("position_bias, a share of judgements,", 0.0, 1.0),
    "inconsistency": ("inconsistency, a share of pairs,", 0.0, 1.0),
}
"""What ratings of a method, or other numbers, are called, and their lowest and highest value."""


class _Context:
    """The ratings, and their tables as gates count them, at any confidence.

    Attributes:
        has_style: whether ratings are at equal length or style, which a missing response does not have.
        method: that of the ratings, in which a missing response loses where that is possible.
        rate_method: how win rates are counted: a missing response loses.
        tables: the tables of a method at a confidence.
    """

    def __init__(self, ratings: Ratings) -> None:
        method = ratings.method
        missing = "refuse" if method.missing == "refuse" else "lose"
        shared = {name: getattr(method, name) for name in ("baseline", "outcomes", "contradictory", "weighted")}
        self.ratings = ratings
        self.has_style = any(name != POSITION for name in method.covariates) or method.kind == "equal_length"
        self.method = method if self.has_style else replace(method, missing=missing)
        self.rate_method = RatingMethod(kind="win_rate", missing=missing, **shared)
        self.tables = cache(lambda method, confidence: compute_tables(self.matches, method, confidence))

    @cached_property
    def matches(self) -> MatchTable:
        """All matches; one that a single system skipped is asked like any other, and its response missing."""
        sets = self.ratings.matches
        found = [each for each in sets if each is not None]
        if len(found) < len(sets):
            raise SpecError(f"the matches of {self.ratings!r} are not in the store, so gates cannot be checked")
        table = gather(found)
        return replace(table, skipped=table.skipped & ~np.isin(table.missing, (A, B)))

    def n_unanswered(self, *systems: str | None) -> float:
        """How many matches of a system, or of two systems, count as lost because a response is missing.

        Args:
            systems: their names; None for any.
        """
        if self.rate_method.missing != "lose":
            return 0.0
        asked = self.matches.take(~self.matches.skipped | self.matches.known)
        involved = ~asked.known & np.isin(asked.missing, (A, B))
        for each in systems:
            if each is not None:
                number = self.ratings.systems.index(each)
                involved &= (asked.a == number) | (asked.b == number)
        return float(asked.shares()[involved].sum())

    def refuse_unanswered(self, *systems: str) -> None:
        """Refuses ratings at equal length if responses are missing, which cannot lose, and may not be left out either.

        Raises:
            DataError: counts the matches.
        """
        method = self.ratings.method
        if not self.has_style or method.missing is not None:
            return
        if method.kind == "equal_length":
            n = sum(self.n_unanswered(each, method.baseline) for each in systems if each != method.baseline)
        else:
            n = self.n_unanswered()
        if n:
            are = "match lacks" if n == 1 else "matches lack"
            raise DataError(
                f"{n:,g} {are} the response of one system, which cannot count as lost at equal length; check the win"
                " rate by method win_rate, or rate with missing=leave_out to leave them out"
            )

    def find_row(self, gate: Gate, method: RatingMethod, table: str, **key: str | None) -> dict[str, Any] | None:
        """The row of a table that has a key, with an interval whose ends are the bounds of a gate."""
        rows = self.tables(method, self.ratings.confidence if gate.level is None else 2 * gate.level - 1)[table]
        return next((row for row in rows if all(row[name] == value for name, value in key.items())), None)

    def system(self, gate: Gate, name: str | None) -> str:
        """The system that a gate names.

        Raises:
            SpecError: it names none, or one that was not rated.
        """
        if (found := self.find_system(name)) is None:
            raise gate.fault(f"name a system, such as {gate.metric}({self.ratings.systems[0]})")
        check_system(gate, found, self.ratings.systems)
        return found

    def find_system(self, name: str | None) -> str | None:
        """The system of a name, of which `baseline` is that of the ratings unless a system is called so."""
        is_baseline = name == BASELINE and name not in self.ratings.systems
        return self.ratings.method.baseline or name if is_baseline else name


def _find_rows(gate: Gate, context: _Context) -> list[Row]:
    if gate.metric not in MATCH_GATES:
        hint = nearest(gate.metric, MATCH_GATES)
        raise gate.fault(f"ratings have no number called {gate.metric!r}{hint}; they have {', '.join(MATCH_GATES)}")
    if gate.where or gate.disparity is not None:
        raise gate.fault("ratings have no groups; leave out what is in [], and `by`")
    if gate.relation == EQUAL:
        raise gate.fault("ratings are not checked for equality; write `not worse than` both ways")
    for name, _ in gate.parameters:
        if name != AGAINST or gate.metric != WIN_RATE:
            raise gate.fault(f"{gate.metric} has no parameter {name!r}")
    check_limits(gate, context.ratings.method)
    read = {WIN_RATE: _read_win_rate, "rating": _read_rating}.get(gate.metric, _read_bias)
    try:
        return [read(gate, context)]
    except DataError as error:
        return [Row(facts=None, missing=str(error))]


def check_system(gate: Gate, name: str, systems: Sequence[str]) -> None:
    """Refuses a system that is not rated."""
    if name not in systems:
        raise gate.fault(f"no system is called {name!r}{nearest(name, systems)}: {', '.join(systems)}")


def _row(gate: Gate, ends: Sequence[float | None], facts: dict[str, Any], details: str, reason: str | None) -> Row:
    """The row of a number with its one-sided bounds, of which those that are unknown are None."""
    value, low, high = (math.nan if end is None else end for end in ends)
    return Row(
        value,
        low,
        high,
        gate.end,
        facts=facts,
        note=f"; {details}" if details else "",
        is_rounded=True,
        reason=reason or ("there is no number" if math.isnan(value) else "it has no interval"),
    )


def _row_of_matches(
    gate: Gate, ends: Sequence[float | None], details: str, row: dict[str, Any], n_unanswered: float, reason: str | None
) -> Row:
    """The row of a number that rests on the matches of a table's row.

    Those that one side lost without an answer are counted, and those without an outcome, which do not count.
    """
    facts = {name: row[name] for name in ("n", "won", "tied", "lost", "n_missing")} | {"n_unanswered": n_unanswered}
    details += f", {n_unanswered:,g} decided by a missing answer" if n_unanswered else ""
    details += f", {row['n_missing']:,g} without an outcome" if row["n_missing"] else ""
    return _row(gate, ends, facts, details, reason)


def _read_win_rate(gate: Gate, context: _Context) -> Row:
    system = context.system(gate, gate.scorer)
    if gate.baseline is not None:
        raise gate.fault(
            f"write a win rate against a system as `win_rate({system}, {gate.baseline}) > 0.5`, and a difference as"
            f" `rating({system}) {gate.relation} {gate.baseline}`"
        )
    against = dict(gate.parameters).get(AGAINST, context.method.baseline)
    other = None if against is None else context.system(gate, against)
    if other == system:
        raise gate.fault(f"{system} does not meet itself; name another system")
    if other is None:
        row = context.find_row(gate, context.rate_method, "ratings", system=system)
        names, reason = ("win_rate", "win_rate_low", "win_rate_high"), None
    else:
        row = context.find_row(gate, context.rate_method, "win_rates", a=system, b=other)
        names, reason = ("win_rate", "low", "high"), f"{system} and {other} never met"
    assert row is not None
    value = math.nan if row["win_rate"] is None else row["win_rate"]
    details = f"win rate {value:.4g} of {row['n']:,g} {'match' if row['n'] == 1 else 'matches'}"
    n_unanswered = context.n_unanswered(system, other)
    rate = _row_of_matches(gate, [row[name] for name in names], details, row, n_unanswered, reason)
    if other is None or gate.level is None or math.isnan(value):
        return rate
    exact = _exact_bounds(gate.level, context, system, other)
    return rate if exact is None else rate._replace(low=exact[0], high=exact[1], is_exact=True)


def _exact_bounds(level: float, context: _Context, system: str, other: str) -> tuple[float, float] | None:
    """Exact bounds, if on each example one of both won every judgement."""
    if context.method.contradictory != "average" or context.method.weighted:
        return None
    one, two = map(context.ratings.systems.index, (system, other))
    table = decide_missing(context.matches, context.rate_method)
    chosen = table.take((table.a == min(one, two)) & (table.b == max(one, two)) & table.known)
    _, cluster = np.unique(chosen.cluster, return_inverse=True)
    judged, won = np.bincount(cluster), np.bincount(cluster, chosen.outcome if one < two else 1 - chosen.outcome)
    if len(np.unique(judged)) > 1 or not np.isin(won, (0, judged[0])).all():
        return None
    return clopper_pearson(int((won > 0).sum()), len(judged), level)


def _read_rating(gate: Gate, context: _Context) -> Row:
    system, method = context.system(gate, gate.scorer), context.method
    other = None if gate.baseline is None else context.system(gate, gate.baseline)
    if other == system:
        raise gate.fault("compares a system with itself; name another baseline")
    context.refuse_unanswered(system, *([] if other is None else [other]))
    own = context.find_row(gate, method, "ratings", system=system)
    assert own is not None
    opponent = method.baseline if method.baseline != system else None
    n_unanswered = 0.0 if context.has_style else context.n_unanswered(system, opponent)
    is_raw = method.kind == "equal_length" and own["win_rate"] is not None
    details = f"raw win rate {own['win_rate']:.4g}, " if is_raw else ""
    details += f"won {own['won']:,g}, tied {own['tied']:,g}, lost {own['lost']:,g}"
    if other is None:
        ends = [own[name] for name in ("rating", "low", "high")]
        return _row_of_matches(gate, ends, details, own, n_unanswered, own["reason"])
    if (row := context.find_row(gate, method, "differences", a=system, b=other)) is not None:
        ends = [row[name] for name in ("difference", "low", "high")]
    else:
        row = context.find_row(gate, method, "differences", a=other, b=system)
        assert row is not None
        ends = [None if row[name] is None else -row[name] for name in ("difference", "high", "low")]
    difference = _row_of_matches(gate, ends, details, own, n_unanswered, row["reason"])
    difference = difference._replace(facts={"baseline": other})
    if gate.relation in RELATIONS:
        note = f"{difference.note}; a point rule, which ignores chance"
        return difference._replace(lead="difference ", note=note)
    return difference._replace(lead=f"difference {difference.value:+.4g}, ", end="low")


def _read_bias(gate: Gate, context: _Context) -> Row:
    if gate.scorer is not None or gate.baseline is not None:
        raise gate.fault(f"{gate.metric} is a number of all matches; write `{gate.metric} <= 0.1`")
    row = context.find_row(gate, context.rate_method, "bias", measure=gate.metric, judge=None)
    if row is None:
        return _row(gate, [None] * 3, {}, "", "no order of presentation is known")
    what = "judgement" if gate.metric == "position_bias" else "pair"
    details = f"{plural(int(row['n']), what)} in both orders"
    return _row(gate, [row[name] for name in ("share", "low", "high")], {"n": row["n"]}, details, None)
