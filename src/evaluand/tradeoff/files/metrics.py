"""The metrics of score and solution files, by their short names: `acc`, `eod+race`, `minmaxd+f1+race`."""

from collections.abc import Sequence
from typing import Final

from evaluand.core.errors import SpecError, kind_of, nearest
from evaluand.tradeoff.arguments import read_list
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.short_names import FAIRNESS, UTILITIES, WITHIN, parts_of

_SAME_SIDE: Final = ({"fpr", "tnr"}, {"tpr", "rec", "fnr"})
"""Rates of the negative rows, and of the positive ones: an extreme threshold makes all rates of a set perfect."""


def parse_metric(name: str) -> Objective:
    """The objective of a short name.

    Example:
        >>> parse_metric("minmaxd+f1+race").text
        'f_beta difference by race'
        >>> parse_metric("eod+race").direction
        'lower'
    """
    if not isinstance(name, str):
        raise SpecError(f"a metric must be a name, such as acc or eod+ATTRIBUTE, not {kind_of(name)}")
    parts = parts_of(name)
    if parts is None:
        raise SpecError(f"there is no metric {name!r}{_hint(name.partition('+')[0])}")
    return Objective(*parts, name=name)


def parse_metrics(names: str | Sequence[str]) -> tuple[Objective, ...]:
    """The objectives of short names, which must make a trade-off.

    Raises:
        SpecError: there is no such metric, one occurs twice, or the utilities alone are perfect at an extreme
            threshold.
    """
    names = read_list("metrics", names, str, "['acc', 'eod+ATTRIBUTE']")
    if not names:
        raise SpecError("there are no metrics; write such as ['acc', 'eod+ATTRIBUTE']")
    objectives = tuple(map(parse_metric, names))
    if len(set(names)) < len(names):
        raise SpecError(f"a metric occurs twice: {', '.join(names)}")
    utilities = {name for name in names if name in UTILITIES}
    for side in _SAME_SIDE:
        if utilities and utilities <= side:
            utility_names = " and ".join(name for name in names if name in utilities)
            raise SpecError(
                f"{utility_names} alone cannot be the utility: it is perfect at an extreme threshold, where nothing or "
                "everything is positive; add another such as acc"
            )
    return objectives


def _hint(head: str) -> str:
    if head in UTILITIES:
        return f"; {head} has no attribute: write {head}, or minmaxd+{head}+ATTRIBUTE"
    if head in FAIRNESS:
        return f"; write {head}+ATTRIBUTE, with an attribute whose name has no +"
    if head in WITHIN:
        return f"; write {head}+UTILITY+ATTRIBUTE, with a utility of {', '.join(UTILITIES)}"
    native = head.strip().split(" ")[0]
    short = {metric: name for name, metric in reversed(UTILITIES.items())}
    short |= {metric: f"{name}+ATTRIBUTE" for name, (metric, _) in reversed(FAIRNESS.items())}
    if native in short:
        return f" (did you mean {short[native]!r}?)"
    heads = [*UTILITIES, *FAIRNESS, *WITHIN]
    return nearest(head, heads) or f"; there are {', '.join(heads)}"
