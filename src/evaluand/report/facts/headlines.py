"""Headlines: by each metric, which system is best, or that none is shown to be, in one sentence.

They say what a stored comparison has found, with its intervals and its p values, which are adjusted within families.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evaluand.comparison.verdict import family_of, format_difference, is_significant, p_text, unit_suffix
from evaluand.core.errors import plural
from evaluand.report.facts.base import Facts
from evaluand.report.metric_labels import add_labels
from evaluand.report.text import numbers

_MOST_METRICS: Final = 5
_MOST_NAMED: Final = 3

_Key = tuple[str, str, str | None]


def headlines(
    comparison: Mapping[str, Any], systems: Sequence[str], metrics: Sequence[Facts], judges: Sequence[Facts]
) -> list[str]:
    """A sentence for each metric of a comparison that has a direction.

    None for a metric whose systems have different rows, or no common row with a score.

    Args:
        comparison: `pairs`, `ranking` and `confidence`, as in `Comparison.to_dict`.
        systems: the names of its evaluations.
        metrics: as `metrics_facts` returns them, with these names as tasks.
        judges: as `judge_facts` returns them.
    """
    by_key: dict[_Key, list[Facts]] = {}
    for pair in add_labels(comparison["pairs"]):
        by_key.setdefault(_key_of(pair), []).append(pair)
    found = []
    for key, pairs in by_key.items():
        order = _order(pairs, [row for row in comparison["ranking"] if _key_of(row) == key])
        if not _is_comparable(pairs) or any(own is None for _, own in order):
            continue
        best, value = order[0]
        verdicts = [_against(best, other, pairs) for other, _ in order[1:]]
        if any(is_significant(one, comparison["confidence"]) and not _is_won(one) for one in verdicts):
            continue  # of pairs with other rows than those that all systems have
        better = [one for one in verdicts if is_significant(one, comparison["confidence"])]
        similar = [one for one in verdicts if one not in better]
        names = [systems[each] for each, own in order if own == value]
        shown = _format_value(systems[best], value, pairs, metrics)
        metric = pairs[0]["label"] if key[2] is None else f"{pairs[0]['label']} · {key[2]}"
        caution = "" if pairs[0]["metric"] == _BY_PEOPLE else _caution(key[0], judges)
        found.append(
            _sentence(metric, names, shown, better, similar, systems, family_of(pairs[0], comparison["pairs"]))
            + caution
        )
    more = len(found) - _MOST_METRICS
    return [*found[:_MOST_METRICS], *([f"{plural(more, 'more metric')} in the tables"] if more > 0 else [])]


_BY_PEOPLE: Final = "prediction_powered_mean"
"""The metric that people decide, whatever the judge is worth."""


def _key_of(row: Facts) -> _Key:
    return row["scorer"], row["signature"], row["target"]


def _is_comparable(pairs: Sequence[Facts]) -> bool:
    return all(
        pair["direction"] is not None and pair["difference"] is not None and not (pair["n_only_a"] or pair["n_only_b"])
        for pair in pairs
    )


def _order(pairs: Sequence[Facts], ranking: Sequence[Facts]) -> list[tuple[int, float | None]]:
    """The systems and their values, best first; two systems have no ranking. None if no row has a score of all."""
    if ranking:
        return [(row["evaluation"], row["value"]) for row in ranking]
    [pair] = pairs
    both = [(pair["a"], pair["value_a"]), (pair["b"], pair["value_b"])]
    return sorted(both, key=lambda one: one[1] or 0.0, reverse=pair["direction"] != "lower")


def _against(best: int, other: int, pairs: Sequence[Facts]) -> Facts:
    """The pair of two systems, as the difference of the best from the other."""
    pair = next(pair for pair in pairs if {pair["a"], pair["b"]} == {best, other})
    if pair["b"] == best:
        return pair
    low, high = (None if pair[end] is None else -pair[end] for end in ("high", "low"))
    return {**pair, "a": other, "b": best, "difference": -pair["difference"], "low": low, "high": high}


def _is_won(pair: Facts) -> bool:
    return bool((pair["difference"] > 0) == (pair["direction"] != "lower"))


def _format_value(system: str, value: float | None, pairs: Sequence[Facts], metrics: Sequence[Facts]) -> str:
    """The value with its interval; if rows have no score, over the rows that all have."""
    used, rows = min(pair["n_used"] for pair in pairs), max(pair["n"] + pair["n_skipped"] for pair in pairs)
    if used < rows:
        return f"{numbers(value)[0]} over the {used:,} of {rows:,} rows that all systems have a score for"
    own = [row for row in metrics if row["task"] == system and not row["by"] and _is_same_metric(row, pairs[0])]
    known = {(row["value"], row["low"], row["high"]) for row in own}  # once, also if a criterion of fairness has it too
    if len(known) != 1 or own[0]["low"] is None:
        return numbers(value)[0]
    shown, low, high = numbers(*known.pop())
    return f"{shown} [{low}, {high}]"


def _is_same_metric(row: Facts, pair: Facts) -> bool:
    """Whether a value is of a compared metric, whose signature lacks what the interval is."""
    same = (row["scorer"], row["target"]) == (pair["scorer"], pair["target"])
    return same and f"{row['signature']} ".startswith(f"{pair['signature']} ")


def _sentence(
    metric: str,
    best: Sequence[str],
    value: str,
    better: Sequence[Facts],
    similar: Sequence[Facts],
    systems: Sequence[str],
    family: int,
) -> str:
    """What is shown about the best systems, several if their values are equal."""
    listed = _join([f"{systems[pair['a']]} ({_describe(pair, family)})" for pair in better])
    if not similar:
        return f"{best[0]} is best by {metric}, {value}: better than {listed}"
    end = "lowest" if similar[0]["direction"] == "lower" else "highest"
    has = "has" if len(best) == 1 else "have"
    wins = f"; {best[0]} is better than {listed}" if better else ""
    others = _join([systems[pair["a"]] for pair in similar])
    return (
        f"No system is shown to be best by {metric}: {_join(best)} {has} the {end}, {value}{wins};"
        f" no difference of {best[0]} from {others} could be shown"
    )


def _describe(pair: Facts, family: int) -> str:
    size = format_difference(pair["difference"], pair, signed=True) + unit_suffix(pair)
    ends = (
        "" if pair["low"] is None else f" [{', '.join(format_difference(pair[end], pair) for end in ('low', 'high'))}]"
    )
    return f"{size}{ends}, {p_text(pair, family)}"


def _join(names: Sequence[str]) -> str:
    """Names as a list in a sentence; of many the first."""
    shown = [*names[:_MOST_NAMED]]
    shown += [f"{more:,} more"] if (more := len(names) - _MOST_NAMED) > 0 else []
    return " and ".join([part for part in (", ".join(shown[:-1]), *shown[-1:]) if part])


def _caution(scorer: str, judges: Sequence[Facts]) -> str:
    statuses: Iterator[str] = (each["status"] for each in judges if each["judge"] == scorer)
    status = next(statuses, "measured")
    return "" if status == "measured" else f"; judge {scorer} is {status}"
