"""Gates on win rates, checked by the matches of one or several sets.

    mine wins against base >= 55%            the win rate itself, ties ½; also <=, > and <
    mine wins against base >= 55% at 95%     its one-sided 95 % confidence bound, by example
    mine wins >= 0.5                         the mean over all opponents, each of which counts equally
    mine wins(helpful) against base > 0.5    of one of several sets of matches

A match is lost by the system whose response is missing: a system that crashes is not as good as one that answers.
Matches without an outcome for another reason are counted in the message.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evaluand.comparison.gates import GateResult
from evaluand.comparison.ratings.gathering import gather
from evaluand.comparison.ratings.method import RatingMethod
from evaluand.comparison.ratings.tables import win_rate_tables
from evaluand.comparison.rule import RELATIONS, WinGate, parse_rule
from evaluand.core.errors import SpecError, nearest, plural
from evaluand.evaluation.matching.matches import Matches

_METHOD = RatingMethod(kind="win_rate", missing="lose")


def check_win_gates(gates: Sequence[str | WinGate], matches: Mapping[str, Matches]) -> list[GateResult]:
    """Checks gates on win rates.

    Args:
        matches: name → matches.

    Raises:
        SpecError: a text is no such gate, or names matches or a system that do not exist.

    Example:
        >>> from evaluand.evaluation.matching.battles import read_battles
        >>> rows = [{"question": n, "model_a": "x", "model_b": "y", "winner": "model_a"} for n in range(40)]
        >>> print(*check_win_gates(["x wins against y >= 55% at 95%"], {"battles": read_battles(rows)}))
        passed  x wins against y >= 55% at 95%  x: lower 95% bound about 0.9337 of 1; 40 matches: 40 won, 0 tied, 0 lost
    """
    rules = [gate if isinstance(gate, WinGate) else _parse(gate) for gate in gates]
    check_win_fit(rules, {name: each.systems for name, each in matches.items()})
    return [_check(rule, matches[_choose(rule, [*matches])]) for rule in rules]


def check_win_fit(gates: Sequence[WinGate], systems: Mapping[str, Sequence[str]]) -> None:
    """Refuses gates that could never be checked.

    Args:
        systems: name of matches → the labels of their systems.

    Raises:
        SpecError: matches or a system do not exist.
    """
    for gate in gates:
        known = systems[_choose(gate, [*systems])]
        for label in (gate.system, gate.opponent):
            if label is not None and label not in known:
                listed = ", ".join(known)
                raise SpecError(f"gate {gate.text!r}: no system is called {label!r}{nearest(label, known)}; {listed}")
        if gate.system == gate.opponent:
            raise SpecError(f"gate {gate.text!r}: compares a system with itself; name another opponent")


def _parse(text: str) -> WinGate:
    rule = parse_rule(text)
    if not isinstance(rule, WinGate):
        raise SpecError(f"gate {text!r} is about a metric; matches have win rates: `SYSTEM wins against OTHER >= 55%`")
    return rule


def _choose(gate: WinGate, known: Sequence[str]) -> str:
    """The name of the matches that a gate is about."""
    if not known:
        raise SpecError(f"gate {gate.text!r} needs matches: write them under matches in the experiment file")
    if gate.matches is None and len(known) == 1:
        return known[0]
    if gate.matches is None:
        raise SpecError(f"gate {gate.text!r}: name the matches: {gate.system} wins({' | '.join(known)}) …")
    if gate.matches not in known:
        raise SpecError(f"gate {gate.text!r}: no matches are called {gate.matches!r}{nearest(gate.matches, known)}")
    return gate.matches


def _check(gate: WinGate, matches: Matches) -> GateResult:
    confidence = 0.95 if gate.level is None else 2 * gate.level - 1  # a one-sided bound is an end of this interval
    row = _find_row(gate, matches, confidence)
    end = None if gate.level is None else "low" if gate.relation in (">=", ">") else "high"
    value, number = row["win_rate"], row[end or "win_rate"]
    facts: dict[str, Any] = {"win_rate": value, "bound": row[end] if end else None, "level": gate.level}
    facts |= {name: row[name] for name in ("n", "won", "tied", "lost", "n_missing", "examples")}
    if number is None or math.isnan(number):
        why = "no match has an outcome" if value is None else "the win rate has no interval"
        return GateResult(gate, gate.system, False, f"undefined: {why}; {_format_counts(row)}", facts)
    shown = f"{value:.4g}"
    if gate.level is not None:
        shown = f"{'lower' if end == 'low' else 'upper'} {100 * gate.level:g}% bound about {number:.4g} of {value:.4g}"
    passed = RELATIONS[gate.relation](number, gate.number)
    return GateResult(gate, gate.system, passed, f"{shown}; {_format_counts(row)}", facts)


def _find_row(gate: WinGate, matches: Matches, confidence: float) -> dict[str, Any]:
    """The win rate of the gate with its interval and its counts."""
    averages, pairs = win_rate_tables(gather([matches]), _METHOD, confidence)
    if gate.opponent is None:
        return next(row for row in averages if row["a"] == gate.system)
    return next(row for row in pairs if (row["a"], row["b"]) == (gate.system, gate.opponent))


def _format_counts(row: Mapping[str, Any]) -> str:
    won, tied, lost = (f"{row[name]:,g}" for name in ("won", "tied", "lost"))
    unknown = f", {row['n_missing']:,g} without an outcome" if row["n_missing"] else ""
    n = row["n"]
    counted = plural(int(n), "match", "matches") if n == int(n) else f"{n:,g} matches"
    return f"{counted}: {won} won, {tied} tied, {lost} lost{unknown}"
