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
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, cast

import numpy as np

from evaluand.comparison.gate_result import GateResult, bound_facts
from evaluand.comparison.judge_gates import check_judged
from evaluand.comparison.rule import AGAINST, BASELINE, EQUAL, MATCH_GATES, NOT_WORSE, RELATIONS, Gate
from evaluand.core.errors import DataError, SpecError, nearest, plural
from evaluand.judges.cards.standing import Standing, standings_of_matches
from evaluand.matches.ratings.gate_limits import check_limits
from evaluand.matches.ratings.gathering import A, B, MatchTable, gather
from evaluand.matches.ratings.method import POSITION, RatingMethod
from evaluand.matches.ratings.stored import Ratings
from evaluand.matches.ratings.tables import compute_tables, decide_missing
from evaluand.metrics.stats.intervals import clopper_pearson

Tables = dict[str, list[dict[str, Any]]]


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
    context, results = _Context(ratings), []
    judges = find_judges(ratings)
    for rule in (gate if isinstance(gate, Gate) else Gate.parse(gate) for gate in gates):
        check = partial(_check, rule, context)
        about_systems = judges if rule.metric not in _OF_JUDGES else []
        subject = rule.scorer or "judge"
        results.append(check_judged(rule, subject, about_systems, allowed=allow_unmeasured_judges, check=check))
    return results


_OF_JUDGES: Final = ("position_bias", "inconsistency")
"""Gates that are about the judge, and so need no card of it."""


def find_judges(ratings: Ratings) -> list[Standing]:
    """The judges behind ratings, each once; people and functions are none, and whoever judged elsewhere is one."""
    found: dict[str, Standing] = {}
    for matches in ratings.matches:
        for standing in () if matches is None else standings_of_matches(matches):
            found.setdefault(standing.judge.digest, standing)
    return [*found.values()]


class _Context:
    """The ratings, and their tables as gates count them, at any confidence."""

    def __init__(self, ratings: Ratings) -> None:
        self.ratings = ratings
        self.confidence = ratings.confidence
        self._tables: dict[tuple[str, float], Tables] = {}

    @cached_property
    def method(self) -> RatingMethod:
        """The method of the ratings, in which a missing response loses where that is possible."""
        method = self.ratings.method
        return method if self.has_style or method.missing == "refuse" else replace(method, missing="lose")

    @cached_property
    def rate_method(self) -> RatingMethod:
        """How win rates are counted: a missing response loses."""
        method = self.ratings.method
        return RatingMethod(
            kind="win_rate",
            baseline=method.baseline,
            outcomes=method.outcomes,
            contradictory=method.contradictory,
            missing="refuse" if method.missing == "refuse" else "lose",
            weighted=method.weighted,
        )

    @cached_property
    def has_style(self) -> bool:
        """Whether ratings are at equal length or style, which a missing response does not have."""
        method = self.ratings.method
        return any(name != POSITION for name in method.covariates) or method.kind == "equal_length"

    @cached_property
    def matches(self) -> MatchTable:
        """All matches; one that a single system skipped is asked like any other, and its response missing."""
        sets = self.ratings.matches
        found = [each for each in sets if each is not None]
        if len(found) < len(sets):
            raise SpecError(f"the matches of {self.ratings!r} are not in the store, so gates cannot be checked")
        table = gather(found)
        return replace(table, skipped=table.skipped & ~np.isin(table.missing, (A, B)))

    @cached_property
    def decided(self) -> MatchTable:
        """The judgements, with the outcomes of missing responses."""
        return decide_missing(self.matches, self.rate_method)

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

    def opponent(self, system: str) -> str | None:
        """The baseline, if the rating of a system is its win rate against it."""
        return self.method.baseline if system != self.method.baseline else None

    def tables(self, method: RatingMethod, confidence: float | None = None) -> Tables:
        """The tables of a method, with intervals of a confidence."""
        key = method.kind, self.confidence if confidence is None else confidence
        if key not in self._tables:
            self._tables[key] = compute_tables(self.matches, method, key[1])
        return self._tables[key]

    def system(self, gate: Gate, name: str | None) -> str:
        """The system that a gate names.

        Raises:
            SpecError: it names none, or one that was not rated.
        """
        known = self.ratings.systems
        if name is None:
            raise SpecError(f"gate {gate.text!r}: name a system, such as {gate.metric}({known[0]})")
        if name == BASELINE and name not in known and self.method.baseline is not None:
            return self.method.baseline
        if name not in known:
            raise SpecError(
                f"gate {gate.text!r}: no system is called {name!r}{nearest(name, known)}: {', '.join(known)}"
            )
        return name


class _Number(NamedTuple):
    """What a gate compares with its threshold.

    Attributes:
        value: NaN where undefined.
        low, high: its one-sided bounds.
        about: the level of the bounds is approximate.
        details: the counts behind it, for the message.
        reason: why it is undefined.
        facts: the same as data.
    """

    value: float
    low: float
    high: float
    about: bool
    details: str
    reason: str | None
    facts: dict[str, Any]


def _check(gate: Gate, context: _Context) -> GateResult:
    if gate.metric not in MATCH_GATES:
        hint = nearest(gate.metric, MATCH_GATES)
        raise SpecError(
            f"gate {gate.text!r}: ratings have no number called {gate.metric!r}{hint}; they have"
            f" {', '.join(MATCH_GATES)}"
        )
    if gate.where or gate.disparity is not None:
        raise SpecError(f"gate {gate.text!r}: ratings have no groups; leave out what is in [], and `by`")
    if gate.relation == EQUAL:
        raise SpecError(f"gate {gate.text!r}: ratings are not checked for equality; write `not worse than` both ways")
    unknown = [name for name, _ in gate.parameters if name != AGAINST or gate.metric != "win_rate"]
    if unknown:
        raise SpecError(f"gate {gate.text!r}: {gate.metric} has no parameter {unknown[0]!r}")
    check_limits(gate, context.ratings.method)
    try:
        return _READERS[gate.metric](gate, context)
    except DataError as error:
        return GateResult(gate, gate.scorer or "judge", False, str(error), {"values": []}, is_decided=False)


def _check_win_rate(gate: Gate, context: _Context) -> GateResult:
    system = context.system(gate, gate.scorer)
    against = dict(gate.parameters).get(AGAINST)
    if gate.baseline is not None:
        raise SpecError(
            f"gate {gate.text!r}: write a win rate against a system as `win_rate({system}, {gate.baseline}) > 0.5`,"
            f" and a difference as `rating({system}) {gate.relation} {gate.baseline}`"
        )
    tables = context.tables(context.rate_method, _two_sided(gate))
    if against is None:
        row = next(row for row in tables["ratings"] if row["system"] == system)
        base = context.method.baseline
        if base is None:
            ends = [row[name] for name in ("win_rate", "win_rate_low", "win_rate_high")]
            return _compare(gate, system, _number(ends, row, None, context.n_unanswered(system, None)))
        against = base
    other = context.system(gate, against)
    if other == system:
        raise SpecError(f"gate {gate.text!r}: {system} does not meet itself; name another system")
    row = next(row for row in tables["win_rates"] if (row["a"], row["b"]) == (system, other))
    ends = [row[name] for name in ("win_rate", "low", "high")]
    number = _number(ends, row, f"{system} and {other} never met", context.n_unanswered(system, other))
    return _compare(gate, system, _exact(number, gate, context, system, other))


def _two_sided(gate: Gate) -> float | None:
    """The confidence of the two-sided interval whose ends are the bounds of a gate."""
    return None if gate.level is None else 2 * gate.level - 1


def _number(ends: Sequence[float | None], row: dict[str, Any], reason: str | None, n_unanswered: float) -> _Number:
    value, low, high = (math.nan if end is None else end for end in ends)
    count = f"{row['n']:,g} {'match' if row['n'] == 1 else 'matches'}"
    facts = {name: row[name] for name in ("n", "won", "tied", "lost", "n_missing")}
    details = f"win rate {value:.4g} of {count}{_missing_counts(row, n_unanswered)}"
    return _Number(value, low, high, True, details, reason, facts | {"n_unanswered": n_unanswered})


def _missing_counts(row: dict[str, Any], n_unanswered: float) -> str:
    """The matches that one side lost without an answer, and those without an outcome, which do not count."""
    lost = f", {n_unanswered:,g} decided by a missing answer" if n_unanswered else ""
    return lost + (f", {row['n_missing']:,g} without an outcome" if row["n_missing"] else "")


def _exact(number: _Number, gate: Gate, context: _Context, system: str, other: str) -> _Number:
    """The number with exact bounds, if on each example one of both won every judgement, and else as it is."""
    if gate.level is None or math.isnan(number.value):
        return number
    table, labels = context.decided, context.ratings.systems
    one, two = labels.index(system), labels.index(other)
    chosen = table.take((table.a == min(one, two)) & (table.b == max(one, two)) & table.known)
    if context.method.contradictory != "average" or context.method.weighted:
        return number
    outcome = chosen.outcome if one < two else 1 - chosen.outcome
    _, cluster = np.unique(chosen.cluster, return_inverse=True)
    judged = np.bincount(cluster)
    won = np.bincount(cluster, outcome)
    if len(np.unique(judged)) > 1 or not np.isin(won, (0, judged[0])).all():
        return number
    low, high = clopper_pearson(int((won > 0).sum()), len(judged), gate.level)
    return number._replace(low=low, high=high, about=False)


def _check_rating(gate: Gate, context: _Context) -> GateResult:
    system = context.system(gate, gate.scorer)
    if gate.baseline is not None:
        return _check_difference(gate, context, system, context.system(gate, gate.baseline))
    context.refuse_unanswered(system)
    tables = context.tables(context.method, _two_sided(gate))
    row = next(row for row in tables["ratings"] if row["system"] == system)
    n_unanswered = 0.0 if context.has_style else context.n_unanswered(system, context.opponent(system))
    number = _number([row[name] for name in ("rating", "low", "high")], row, row["reason"], n_unanswered)
    return _compare(gate, system, number._replace(details=_match_counts(row, n_unanswered, context.method)))


def _match_counts(row: dict[str, Any], n_unanswered: float, method: RatingMethod) -> str:
    raw = ""
    if method.kind == "equal_length" and row["win_rate"] is not None:
        raw = f"raw win rate {row['win_rate']:.4g}, "
    counts = f"{raw}won {row['won']:,g}, tied {row['tied']:,g}, lost {row['lost']:,g}"
    return counts + _missing_counts(row, n_unanswered)


def _check_difference(gate: Gate, context: _Context, system: str, other: str) -> GateResult:
    if system == other:
        raise SpecError(f"gate {gate.text!r}: compares a system with itself; name another baseline")
    context.refuse_unanswered(system, other)
    tables = context.tables(context.method, _two_sided(gate))
    row = next(row for row in tables["differences"] if {row["a"], row["b"]} == {system, other})
    sign = 1 if row["a"] == system else -1
    ends = [None if row[name] is None else sign * row[name] for name in ("difference", "low", "high")]
    if sign < 0:
        ends[1], ends[2] = ends[2], ends[1]
    difference, low, high = (math.nan if end is None else end for end in ends)
    own = next(one for one in tables["ratings"] if one["system"] == system)
    n_unanswered = 0.0 if context.has_style else context.n_unanswered(system, context.opponent(system))
    counts = _match_counts(own, n_unanswered, context.method)
    number = _Number(difference, low, high, True, counts, row["reason"], {"baseline": other})
    if gate.relation in RELATIONS:
        result = _compare(gate, system, number)
        note = "a point rule, which ignores chance"
        return replace(result, message=f"difference {result.message}; {note}")
    margin = -gate.number if gate.relation == NOT_WORSE else 0.0
    strict = replace(gate, relation=">", number=margin)
    result = _compare(strict, system, number)
    return replace(result, gate=gate, message=f"difference {difference:+.4g}, {result.message}")


def _check_bias(gate: Gate, context: _Context) -> GateResult:
    if gate.scorer is not None or gate.baseline is not None:
        raise SpecError(f"gate {gate.text!r}: {gate.metric} is a number of all matches; write `{gate.metric} <= 0.1`")
    tables = context.tables(context.rate_method, _two_sided(gate))
    rows = [row for row in tables["bias"] if row["measure"] == gate.metric]
    row = next((row for row in rows if row["judge"] is None), None)
    if row is None:
        number = _Number(math.nan, math.nan, math.nan, True, "", "no order of presentation is known", {})
        return _compare(gate, "judge", number)
    value, low, high = (math.nan if row[name] is None else row[name] for name in ("share", "low", "high"))
    what = "judgement" if gate.metric == "position_bias" else "pair"
    details = f"{plural(int(row['n']), what)} in both orders"
    return _compare(gate, "judge", _Number(value, low, high, True, details, None, {"n": row["n"]}))


_READERS: Final[dict[str, Callable[[Gate, _Context], GateResult]]] = {
    "win_rate": _check_win_rate,
    "rating": _check_rating,
    "position_bias": _check_bias,
    "inconsistency": _check_bias,
}


def _compare(gate: Gate, subject: str, number: _Number) -> GateResult:
    """The result of comparing a number, or its bound, with the threshold."""
    end = None if gate.level is None else "low" if gate.relation in (">=", ">") else "high"
    compared = number.value if end is None else getattr(number, end)
    facts = {name: _finite(getattr(number, name)) for name in ("value", "low", "high")} | number.facts
    facts |= bound_facts(end, compared)
    if math.isnan(compared):
        why = number.reason or ("it has no interval" if not math.isnan(number.value) else "there is no number")
        return GateResult(gate, subject, False, f"undefined: {why}", {"values": [facts]}, is_decided=False)
    number_text = f"{compared:.4g}"
    if end is not None:
        side = "lower" if end == "low" else "upper"
        about = "about " if number.about else ""
        number_text = f"{side} {100 * float(gate.level or 0):g}% bound {about}{number_text}"
    passed = RELATIONS[gate.relation](round(compared, 12), gate.number)
    return GateResult(
        gate, subject, passed, "; ".join(filter(None, [number_text, number.details])), {"values": [facts]}
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
