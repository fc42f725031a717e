"""The names of metrics in score and solution files: `acc`, `eod+race`, `minmaxd+f1+race`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaluand.core.errors import SpecError, kind_of
from evaluand.core.registry import nearest
from evaluand.tradeoff import Objective
from evaluand.tradeoff.arguments import listed
from evaluand.tradeoff.short_names import FAIRNESS, UTILITIES, WITHIN

OF_SCORES: Final = frozenset({"prec", "rec", "avg_prec", "f1"})
"""Utilities for which thresholds that are not given are all scores there are."""

_SAME_SIDE: Final = ({"fpr", "tnr"}, {"tpr", "rec", "fnr"})
"""Rates of the negative rows alone, and of the positive ones: a threshold makes all of a set perfect at once."""


def objective(name: str) -> Objective:
    """The objective of a name.

    Raises:
        SpecError: there is no such metric.

    Example:
        >>> objective("minmaxd+f1+race").text
        'f_beta difference by race'
        >>> objective("eod+race").direction
        'lower'
    """
    if not isinstance(name, str):
        raise SpecError(f"a metric is given by its name, such as acc or eod+ATTRIBUTE, and not as {kind_of(name)}")
    head, *rest = name.split("+")
    if head in UTILITIES and not rest:
        return Objective(UTILITIES[head], name=name)
    if head in FAIRNESS and len(rest) == 1:
        metric, kind = FAIRNESS[head]
        return Objective(metric, kind, (rest[0],), name=name)
    if head in WITHIN and len(rest) == 2 and rest[0] in UTILITIES:
        return Objective(UTILITIES[rest[0]], WITHIN[head], (rest[1],), name=name)
    raise SpecError(f"there is no metric {name!r}{_hint(head, rest)}")


def objectives(names: str | Sequence[str]) -> tuple[Objective, ...]:
    """The objectives of names, which have to be fit for a trade-off.

    Raises:
        SpecError: there is no such metric, one is given twice, or the utilities alone are perfect at an extreme
            threshold.
    """
    names = listed("metrics", names, str, "['acc', 'eod+ATTRIBUTE']")
    if not names:
        raise SpecError("no metric is given; write such as ['acc', 'eod+ATTRIBUTE']")
    found = tuple(map(objective, names))
    if len(set(names)) < len(names):
        raise SpecError(f"a metric is given twice: {', '.join(names)}")
    utilities = {name for name in names if name in UTILITIES}
    for side in _SAME_SIDE:
        if utilities and utilities <= side:
            named = " and ".join(name for name in names if name in utilities)
            raise SpecError(
                f"{named} alone cannot be the utility, which is perfect at an extreme threshold, where nothing or "
                "everything is positive; add another such as acc"
            )
    return found


def _hint(head: str, rest: Sequence[str]) -> str:
    if head in UTILITIES:
        return f"; {head} has no attribute: write {head}, or minmaxd+{head}+ATTRIBUTE"
    if head in FAIRNESS:
        return f"; write {head}+ATTRIBUTE, with an attribute whose name has no +"
    if head in WITHIN:
        return f"; write {head}+UTILITY+ATTRIBUTE, with a utility of {', '.join(UTILITIES)}"
    native = head.strip().split(" ")[0]
    of = {metric: name for name, metric in reversed(UTILITIES.items())}
    of |= {metric: f"{name}+ATTRIBUTE" for name, (metric, _) in reversed(FAIRNESS.items())}
    if native in of:
        return f" (did you mean {of[native]!r}?)"
    heads = [*UTILITIES, *FAIRNESS, *WITHIN]
    return nearest(head, heads) or f"; there are {', '.join(heads)}"
