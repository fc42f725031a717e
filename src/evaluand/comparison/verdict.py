"""The verdict of a comparison in one sentence.

Reports need the words without the arithmetic, so this module imports neither NumPy nor Arrow.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from evaluand.core.errors import plural

AT_ALL_LOOKS: Final = "anytime"
"""What intervals are called that hold at all looks of a run together: of a family, for all its tests together."""

BONFERRONI: Final = "Bonferroni"
"""How intervals at all looks are adjusted, each with an equal share of the level; they have no p."""

PRIMARY: Final = "primary"
SECONDARY: Final = "secondary"
GROUPS: Final = "groups"


def verdict(pair: Mapping[str, Any], labels: Sequence[str], confidence: float, family: int) -> str:
    """Whether a difference was found, how large it is, or how large it would have to be to be detected.

    Args:
        pair: a row of the table of pairs.
        confidence: a difference is significant if the adjusted p value is at most 1 − confidence.
        family: the number of tests made together, see `family_of`.
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
    p = p_text(pair, family)
    if is_significant(pair, confidence):
        word = "higher" if pair["direction"] is None else "better"
        first = (pair["difference"] > 0) == (pair["direction"] != "lower")
        return f"{b if first else a} is {word}: {b} − {a} = {size}{unit_suffix(pair)}{interval}; {p}"
    finding = f"no difference could be shown: {b} − {a} = {size}{unit_suffix(pair)}{interval}; {p}"
    if family > 1 and excludes_zero(pair):
        finding += f" (the interval is not adjusted for the {family} comparisons)"
    weighing = None if pair["won"] is None else pair["won"] + pair["tied"] + pair["lost"]  # those with weight
    rows = plural(weighing or pair["n_used"], "row")
    if pair["detectable"] is not None:
        least = f"{format_difference(pair['detectable'], pair)}{unit_suffix(pair)}"
        alone = f", before {adjustment([pair])}" if family > 1 else ""
        return (
            f"{finding}; with these {rows} only a difference of at least {least} would be found 80 % of the time{alone}"
        )
    if pair["low"] is None:
        return f"{finding}; {pair['reason']}"
    if pair["won"] is None or pair["p"] is None:
        return finding
    return f"{finding}; {rows}, of which {pair['won'] + pair['lost']:,} differ, are too few to show any"


def family_key(pair: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the tests have in common that are adjusted together: of groups and primary metrics the metric, too."""
    family = pair.get("family")
    return (family, *((pair["scorer"], pair["signature"]) if family in (GROUPS, PRIMARY) else ()))


def is_test(pair: Mapping[str, Any]) -> bool:
    """Whether a pair has what decides: p, or an interval that holds at all looks."""
    return pair["p"] is not None or (pair.get("interval") == AT_ALL_LOOKS and pair["low"] is not None)


def family_of(pair: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]]) -> int:
    """The number of tests among all pairs that are adjusted together with that of a pair."""
    return sum(is_test(other) and family_key(other) == family_key(pair) for other in pairs)


def families_text(pairs: Sequence[Mapping[str, Any]]) -> str:
    """The size and the method of each family of tests; empty where there is one test only."""
    parts = []
    keys = dict.fromkeys(family_key(pair) for pair in pairs if is_test(pair) and pair.get("family"))
    alone = sum(key[0] == PRIMARY for key in keys) == 1
    for key in keys:
        own = [pair for pair in pairs if is_test(pair) and family_key(pair) == key]
        by_metric = key[0] == GROUPS or (key[0] == PRIMARY and not alone)
        metric = own[0].get("label") or f"{own[0]['metric']} · {own[0]['scorer']}"
        name = f"{key[0]} by {metric}" if by_metric else key[0]
        methods = " and ".join(dict.fromkeys(adjustment([pair]) for pair in own))
        methods = methods.replace(BONFERRONI, f"{BONFERRONI}, in the intervals")
        together = f", adjusted together ({methods})" if len(own) > 1 else ""
        parts.append(f"{name}: {plural(len(own), 'test')}{together}")
    return "; ".join(parts) if len(pairs) > 1 else ""


def p_text(pair: Mapping[str, Any], family: int) -> str:
    """The p value after adjustment, marked if the metric is secondary; what the interval allows for in its place."""
    if pair["interval"] == AT_ALL_LOOKS:
        if pair["low"] is None:
            return "p undefined"
        p = f"at all looks and for all {family} tests" if family > 1 else "at all looks"
    elif pair["p"] is None:
        return format_p(None)
    else:
        p = f"{format_p(adjusted_p(pair))} after {adjustment([pair])}" if family > 1 else format_p(pair["p"])
    return f"{p}, {SECONDARY}" if pair["family"] == SECONDARY else p


def excludes_zero(pair: Mapping[str, Any]) -> bool:
    return pair["low"] is not None and not pair["low"] <= 0 <= pair["high"]


def same_evaluation_verdict(pair: Mapping[str, Any], labels: Sequence[str], id: str) -> str:
    """The verdict where both sides are one evaluation: the same grades of the same responses."""
    a, b = labels[pair["a"]], labels[pair["b"]]
    return f"nothing to compare: {a} and {b} are the same evaluation {id[:12]}, with the same responses and grades"


def is_significant(pair: Mapping[str, Any], confidence: float) -> bool:
    """Whether the two differ, adjusted for all tests of the family; without p, as after looks, the interval is so."""
    p = adjusted_p(pair)
    return excludes_zero(pair) if p is None else p <= 1 - confidence + 1e-12


def adjusted_p(pair: Mapping[str, Any]) -> float | None:
    """The p value adjusted for all tests of the family: by Shaffer's procedure where several systems were compared."""
    found: float | None = pair["p_holm"] if pair.get("p_shaffer") is None else pair["p_shaffer"]
    return found


def adjustment(pairs: Sequence[Mapping[str, Any]]) -> str:
    """The name of the procedure that adjusted p values; intervals, where none has p."""
    if pairs and all(pair.get("interval") == AT_ALL_LOOKS for pair in pairs):
        return BONFERRONI
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
