"""The verdict of a comparison in one sentence.

Reports need the words without the arithmetic, so this module imports neither NumPy nor Arrow.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from evaluand.core.errors import plural

_Pair = TypeVar("_Pair", bound=Mapping[str, Any])


def verdict(pair: Mapping[str, Any], labels: Sequence[str], confidence: float, family: int) -> str:
    """Whether a difference was found, how large it is, or how large it would have to be to be detected.

    Args:
        pair: a row of the table of pairs.
        confidence: a difference is significant if the adjusted p value is at most 1 − confidence.
        family: the number of tests made together.
    """
    a, b = labels[pair["a"]], labels[pair["b"]]
    if pair["difference"] is None:
        return f"nothing can be said: {pair['reason']}"
    size = format_difference(pair["difference"], pair, signed=True)
    interval = (
        ""
        if pair["low"] is None
        else f" [{format_difference(pair['low'], pair)}, {format_difference(pair['high'], pair)}]"
    )
    p = f"{format_p(adjusted_p(pair))} after {adjustment([pair])}" if family > 1 else format_p(pair["p"])
    excludes_zero = pair["low"] is not None and not pair["low"] <= 0 <= pair["high"]
    is_found = pair["p"] is not None and pair["p"] <= 1 - confidence  # by the test alone, before it is adjusted
    disagree = None not in (pair["p"], pair["low"]) and is_found != excludes_zero
    if disagree:
        p += " (exact test; the interval is approximate)"
    if is_significant(pair, confidence):
        word = "higher" if pair["direction"] is None else "better"
        first = (pair["difference"] > 0) == (pair["direction"] != "lower")
        return f"{b if first else a} is {word}: {b} − {a} = {size}{unit_suffix(pair)}{interval}; {p}"
    finding = f"no difference could be shown: {b} − {a} = {size}{unit_suffix(pair)}{interval}; {p}"
    if family > 1 and excludes_zero and not disagree:
        finding += f" (the interval is not adjusted for the {family} comparisons)"
    rows = plural(pair["n_used"], "row")
    if pair["detectable"] is not None:
        least = f"{format_difference(pair['detectable'], pair)}{unit_suffix(pair)}"
        alone = f", before {adjustment([pair])}" if family > 1 else ""
        return (
            f"{finding}; with these {rows} only a difference of at least {least} would be found 80 % of the time{alone}"
        )
    if pair["won"] is None:
        return f"{finding}; {pair['reason']}" if pair["low"] is None else finding
    return f"{finding}; {rows}, of which {pair['won'] + pair['lost']:,} differ, are too few to show any"


def same_evaluation_verdict(pair: Mapping[str, Any], labels: Sequence[str], id: str) -> str:
    """The verdict where both sides are one evaluation: the same grades of the same responses."""
    a, b = labels[pair["a"]], labels[pair["b"]]
    return f"nothing to compare: {a} and {b} are the same evaluation {id[:12]}, with the same responses and grades"


def is_significant(pair: Mapping[str, Any], confidence: float) -> bool:
    """Whether the two differ, adjusted for all tests of the family."""
    p = adjusted_p(pair)
    return p is not None and p <= 1 - confidence + 1e-12


def adjusted_p(pair: Mapping[str, Any]) -> float | None:
    """The p value adjusted for all tests of the family: by Shaffer's procedure where several systems were compared."""
    found: float | None = pair["p_holm"] if pair.get("p_shaffer") is None else pair["p_shaffer"]
    return found


def families(pairs: Iterable[_Pair]) -> list[list[_Pair]]:
    """The rows of pairs whose p values are adjusted together: those of all examples, and those of a metric's groups."""
    found: dict[Any, list[_Pair]] = {}
    for pair in pairs:
        found.setdefault(pair.get("by") and (pair["scorer"], pair["signature"]), []).append(pair)
    return [*found.values()]


def adjustment(pairs: Sequence[Mapping[str, Any]]) -> str:
    """The name of the procedure that adjusted p values."""
    return "Shaffer" if any(pair.get("p_shaffer") is not None for pair in pairs) else "Holm"


def format_difference(value: float | None, pair: Mapping[str, Any], *, signed: bool = False) -> str:
    """A difference as text: in percentage points where values lie between 0 and 1."""
    if value is None:
        return "–"
    sign = "+" if signed else ""
    if pair["share"]:
        return f"{100 * value:{sign}.1f}"
    return f"{value:{sign},.0f}" if 1000 <= abs(value) < 1e15 else f"{value:{sign}.3g}"


def unit_suffix(pair: Mapping[str, Any]) -> str:
    return " points" if pair["share"] else ""


def format_p(p: float | None) -> str:
    if p is None:
        return "p undefined"
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"


def printable(text: str) -> str:
    """Text that cannot control a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
