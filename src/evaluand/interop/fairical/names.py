"""The names of metrics in score and solution files: `acc`, `eod+race`, `minmaxd+f1+race`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from evaluand.core.errors import SpecError, kind_of
from evaluand.core.files.json import Findings, as_python, is_text, short_repr
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


def unique_names(names: Any, where: str, count: int | None, findings: Findings) -> list[str]:
    """The names of models; equal ones are numbered, with a note.

    Args:
        names: a list of texts; `model-1` … if None.
        where: the path of the names, for faults and notes.
        count: how many models there are; None where only the names say so.
        findings: where to collect faults and notes.
    """
    names = as_python(names)
    if names is None:
        return [f"model-{place + 1}" for place in range(count or 0)]
    if not isinstance(names, list | tuple):
        findings.fault(where, "wrong_type", f"must be a list of names, not {kind_of(names)}")
        return []
    for place, name in enumerate(names):
        if not is_text(name):
            findings.fault(f"{where}[{place}]", "wrong_type", f"{short_repr(name)} is not a name; write it as text")
    if count is not None and len(names) != count:
        findings.fault(where, "wrong_length", f"has {len(names)} names for {count} models")
    return _number_repeated(names, where, findings) if all(map(is_text, names)) else [""] * len(names)


def _number_repeated(names: Sequence[str], where: str, findings: Findings) -> list[str]:
    taken = set(names)
    renamed: dict[str, list[str]] = {}  # name → the new names of its second and later models
    following: dict[str, int] = {}
    unique: list[str] = []
    for name in names:
        if name not in following:
            following[name] = 2
            unique.append(name)
            continue
        while (free := f"{name}-{following[name]}") in taken:
            following[name] += 1
        taken.add(free)
        renamed.setdefault(name, []).append(free)
        unique.append(free)
    for name, new in renamed.items():
        if len(new) == 1:
            message = f"the name {name!r} occurs twice; the second model is now {new[0]!r}"
        else:
            message = f"the name {name!r} occurs {len(new) + 1} times; the others are now {new[0]!r} to {new[-1]!r}"
        findings.note(where, "twice", message)
    return unique


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
