"""What a comparison comes to, in one sentence.

Reports need the words without the arithmetic, so nothing here imports NumPy or Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def verdict(pair: Mapping[str, Any], labels: Sequence[str], confidence: float, family: int) -> str:
    """Whether a difference was shown, how large it is, or what could not have been seen.

    Args:
        pair: a row of the table of pairs.
        labels: what the evaluations are called.
        confidence: a difference counts as shown where the adjusted p value is at most 1 − confidence.
        family: how many tests were made together.
    """
    a, b = labels[pair["a"]], labels[pair["b"]]
    if pair["difference"] is None:
        return f"nothing can be said: {pair['reason']}"
    by = measured(pair["difference"], pair, signed=True)
    interval = "" if pair["low"] is None else f" [{measured(pair['low'], pair)}, {measured(pair['high'], pair)}]"
    p = f"{p_value(pair['p_holm'])} after Holm" if family > 1 else p_value(pair["p"])
    if is_shown(pair, confidence):
        word = "higher" if pair["direction"] is None else "better"
        first = (pair["difference"] > 0) == (pair["direction"] != "lower")
        return f"{b if first else a} is {word}: {b} − {a} = {by}{unit(pair)}{interval}; {p}"
    told = f"no difference could be shown: {b} − {a} = {by}{unit(pair)}{interval}; {p}"
    rows = f"{pair['n_used']:,} row{'s'[: pair['n_used'] != 1]}"
    if pair["detectable"] is not None:
        least = f"{measured(pair['detectable'], pair)}{unit(pair)}"
        alone = ", before Holm" if family > 1 else ""
        return f"{told}; with these {rows} only a difference of at least {least} would be found 80 % of the time{alone}"
    return f"{told}; {rows}, of which {pair['won'] + pair['lost']:,} differ, are too few to show any"


def same(pair: Mapping[str, Any], labels: Sequence[str], id: str) -> str:
    """What is said in place of a verdict where both sides are one evaluation: the same grades of the same responses."""
    a, b = labels[pair["a"]], labels[pair["b"]]
    return f"nothing to compare: {a} and {b} are the same evaluation {id[:12]}, with the same responses and grades"


def is_shown(pair: Mapping[str, Any], confidence: float) -> bool:
    """Whether the two differ, all tests of the family considered."""
    return pair["p_holm"] is not None and pair["p_holm"] <= 1 - confidence + 1e-12


def measured(value: float | None, pair: Mapping[str, Any], *, signed: bool = False) -> str:
    """A difference as a number: in points of a hundred where values are shares."""
    if value is None:
        return "–"
    sign = "+" if signed else ""
    if pair["share"]:
        return f"{100 * value:{sign}.1f}"
    return f"{value:{sign},.0f}" if 1000 <= abs(value) < 1e15 else f"{value:{sign}.3g}"


def unit(pair: Mapping[str, Any]) -> str:
    return " points" if pair["share"] else ""


def p_value(p: float | None) -> str:
    if p is None:
        return "p undefined"
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"


def printable(text: str) -> str:
    """Text that can do nothing to a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
