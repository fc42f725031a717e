"""Ratings and matches for the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from evaluand.comparison.verdict import adjusted_p, adjustment
from evaluand.core.errors import plural
from evaluand.matches.ratings.wording import (
    PROBABILITIES,
    count_texts,
    difference_text,
    find_only_opponent,
    is_at_equal_length,
    is_share,
    rating_label,
    select_bias,
)
from evaluand.report.terminal.cells import CELL, long_text, name_values, plain_table
from evaluand.report.terminal.judges import asked_table, rubric_parts, standings_table
from evaluand.report.text import SHORT_ID, example_name, safe
from evaluand.store.statuses import SCORE_STATUSES

Facts = Mapping[str, Any]

_MATRIX: Final = 10
"""The most systems whose win rates fit a narrow terminal."""

_PAIRS: Final = 10
"""The most differences that are shown, and the most win rates in a sentence."""

_NAME: Final = 16
_BIASES: Final = {"position_bias": "position bias", "inconsistency": "inconsistency"}


def ratings_table(facts: Facts) -> RenderableType:
    """Ratings: the ranking, the win rates, the differences, and what the judges' bias was."""
    parts = list(ratings_parts(facts))
    return Group(*itertools.chain.from_iterable((part, "") for part in parts[:-1]), parts[-1])


def ratings_parts(facts: Facts) -> Iterator[RenderableType]:
    """The same, part by part."""
    yield _ranking(facts)
    if reasons := [row["reason"] for row in facts["ratings"] if row["reason"]]:
        yield Group(*(Text(safe(reason), "yellow") for reason in dict.fromkeys(reasons)))
    yield _win_rates(facts)
    if facts["differences"] and len(facts["differences"]) <= _PAIRS:
        yield _differences(facts)
    if facts["parameters"]:
        yield _parameters(facts)
    if facts["bias"]:
        yield _bias(facts)
    if facts.get("judges"):
        yield standings_table(facts["judges"])


def matches_parts(facts: Facts) -> Iterator[RenderableType]:
    """Matches: how often each system won against each other one, and some matches."""
    yield name_values([(name, safe(text, 4 * CELL)) for name, text in facts["judged"].items()])
    table = plain_table("a", "b", numbers=("won by a", "tied", "won by b", "no outcome"))
    for row in facts["pairs"]:
        counts = (_count(row[name]) for name in ("won", "tied", "lost", "n_missing"))
        table.add_row(Text(safe(row["a"], CELL)), Text(safe(row["b"], CELL)), *counts)
    yield Group(table, Text("counts of judgements; ratings count both orders of a pair as one match", "dim"))
    if any(row["n_probable"] for row in facts["pairs"]):
        yield Text(PROBABILITIES, "dim")
    if facts["usage"]:
        from evaluand.matches.matches import usage_text  # imports Arrow, which lists do without

        yield name_values([(safe(each["judge"] or "usage", CELL), safe(usage_text(each))) for each in facts["usage"]])
    if facts["judges"]:
        yield standings_table(facts["judges"])
        if (asked := asked_table(facts["judges"])) is not None:
            yield asked
    yield from rubric_parts(facts.get("rubrics", ()))
    for row in facts["rows"]:
        yield _match(row)


def _ranking(facts: Facts) -> RenderableType:
    heads = (rating_label(facts["method"]), f"{100 * facts['confidence']:g}% interval")
    without = [name for name in ("missing", "skipped") if any(row[f"n_{name}"] for row in facts["ratings"])]
    extra = () if is_share(facts) and not is_at_equal_length(facts) else ("win rate",)
    numbers = (*heads, *extra, "won", "tied", "lost", *without)
    table = plain_table("", "system", "alike", numbers=numbers)
    for row in facts["ratings"]:
        cells = [_value(row["rating"], facts), _interval(row, facts)]
        cells += [_percent(row["win_rate"])] if extra else []
        cells += [_count(row[name]) for name in ("won", "tied", "lost")]
        cells += [_count(row[f"n_{name}"]) for name in without]
        rank = "–" if row["rank"] is None else str(row["rank"])
        table.add_row(rank, Text(safe(row["system"], CELL), "bold"), row["letters"] or "", *cells)
    level, method = f"{100 * facts['confidence']:g} %", adjustment(facts["differences"])
    notes = [f"systems that share a letter cannot be distinguished at {level} ({method})", safe(facts["signature"])]
    if all(row["rank"] is None for row in facts["ratings"]):
        notes = notes[1:]
    notes[:0] = count_texts(facts)
    if "missing" in without:
        notes.insert(0, _bounds(facts))
    notes += (_count_statuses(each) for each in facts.get("sets", ()))
    return Group(table, *(Text(note, "dim") for note in notes))


def _count_statuses(matches: Facts) -> str:
    """How many judgements were made, failed or abstained."""
    name = f"matches {safe(matches['name'] or matches['id'][:SHORT_ID], CELL)}"
    if matches["counts"] is None:
        return f"{name}: not in this store"
    counts = [f"{matches['counts'][each]:,} {each}" for each in SCORE_STATUSES if matches["counts"].get(each)]
    notes = [f"; {safe(note)}" for note in (matches["left_out"], *matches["caveats"]) if note]
    return f"{name}: {', '.join(counts) or 'none'}{''.join(notes)}"


def _bounds(facts: Facts) -> str:
    parts = [
        f"{safe(row['system'], CELL)} {_percent(row['win_rate_worst'])} … {_percent(row['win_rate_best'])}"
        for row in facts["ratings"]
        if row["n_missing"] and row["win_rate_worst"] is not None
    ]
    more = f" and {len(parts) - _PAIRS:,} more (see --json)" if len(parts) > _PAIRS else ""
    return f"were the missing matches known, win rates would lie in: {', '.join(parts[:_PAIRS])}{more}"


def _value(value: float | None, facts: Facts) -> str:
    if value is None:
        return "–"
    return _percent(value) if is_share(facts) else f"{value:,.0f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _interval(row: Facts, facts: Facts) -> str:
    return _ends(row, lambda end: f"{100 * end:.1f}" if is_share(facts) else f"{end:,.0f}")


def _ends(row: Facts, form: Callable[[float], str]) -> str:
    """An interval, one end of which may be open; – if it is undefined."""
    low, high = row["low"], row["high"]
    if low is None and high is None:
        return "–"
    return f"[{'−∞' if low is None else form(low)}, {'∞' if high is None else form(high)}]"


def _count(n: float) -> str:
    return f"{n:,.4g}" if n < 10_000 else f"{n:,.0f}"


def _win_rates(facts: Facts) -> RenderableType:
    """The share of the win that the system of each line gets from that of each column."""
    systems = [row["system"] for row in facts["ratings"]]
    rates = {(row["a"], row["b"]): row["win_rate"] for row in facts["win_rates"]}
    if (only := find_only_opponent(facts["win_rates"])) is not None and len(systems) > 2:
        return Text(f"all matches are against {safe(only, CELL)}, so the win rates above are those against it", "dim")
    if len(systems) > _MATRIX:
        return _NumberedWinRates(systems, rates, str(facts["id"])[:SHORT_ID])
    table = plain_table("win rate \\ against", numbers=[safe(name, _NAME) for name in systems])
    for one in systems:
        cells = ("" if one == other else _percent(rates.get((one, other))) for other in systems)
        table.add_row(Text(safe(one, CELL)), *cells)
    return table


class _NumberedWinRates:
    """The win rates of many systems in whole percents, as many columns as fit."""

    _HEAD = "% \\ against"
    _COLUMN = 5

    def __init__(self, systems: Sequence[str], rates: Mapping[tuple[str, str], float | None], id: str) -> None:
        self._systems, self._rates, self._id = systems, rates, id

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = max(cell_len(f"99 {safe(each, _NAME)}  ") for each in self._systems)
        wide = max(wide, cell_len(f"{self._HEAD}  "))
        n = min(max((options.max_width - wide) // self._COLUMN, 1), len(self._systems))
        table = plain_table(self._HEAD, numbers=[str(place) for place in range(1, n + 1)])
        for place, one in enumerate(self._systems, 1):
            rates = (None if one == other else self._rates.get((one, other)) for other in self._systems[:n])
            cells = ("" if rate is None else f"{100 * rate:.0f}" for rate in rates)
            table.add_row(Text(f"{place:2} {safe(one, _NAME)}"), *cells)
        yield table
        which = "all of them are" if n < len(self._systems) else "unrounded ones with intervals are"
        yield Text(f"{which} in the table win_rates of `evaluand export {self._id}`", "dim")


def _differences(facts: Facts) -> RenderableType:
    unit = "points" if is_share(facts) else "difference"
    interval = f"{100 * facts['confidence']:g}% interval"
    adjusted = f"p ({adjustment(facts['differences'])})"
    table = plain_table("", numbers=(unit, interval, adjusted if len(facts["differences"]) > 1 else "p"))
    factor, digits = (100, 1) if is_share(facts) else (1, 0)
    for row in facts["differences"]:
        name = Text(f"{safe(row['a'], CELL)} − {safe(row['b'], CELL)}")
        if row["difference"] is None:
            table.add_row(name, "–", "–", "–")
            continue
        p = adjusted_p(row)
        p_text = "–" if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"
        interval = _ends(row, lambda end: f"{factor * end:+,.{digits}f}")
        table.add_row(name, f"{factor * row['difference']:+,.{digits}f}", interval, p_text)
    unrated = {row["system"] for row in facts["ratings"] if row["rating"] is None}  # their reasons are above
    above = {None, *(row["reason"] for row in facts["ratings"])}
    rows = [row for row in facts["differences"] if row["reason"] not in above and not {row["a"], row["b"]} & unrated]
    notes = dict.fromkeys(f"{row['a']} − {row['b']}: {row['reason']}" for row in rows)
    return Group(table, *(Text(safe(note), "dim") for note in (difference_text(facts), *notes)))


def _parameters(facts: Facts) -> RenderableType:
    table = plain_table("coefficient", "system", numbers=("value", f"{100 * facts['confidence']:g}% interval"))
    for row in facts["parameters"]:
        value = "–" if row["value"] is None else f"{row['value']:.4g}"
        ends = [row["low"], row["high"]]
        interval = "–" if None in ends else f"[{ends[0]:.4g}, {ends[1]:.4g}]"
        table.add_row(safe(row["name"], CELL), Text(safe(row["system"] or "", CELL)), value, interval)
    notes = dict.fromkeys(row["reason"] for row in facts["parameters"] if row["reason"])
    return Group(table, *(Text(safe(note), "dim") for note in notes))


def _bias(facts: Facts) -> RenderableType:
    table = plain_table("judge", "", numbers=("share", f"{100 * facts['confidence']:g}% interval", "of"))
    rows, n_others = select_bias(facts["bias"])
    for row in rows:
        judge = "all" if row["judge"] is None else safe(row["judge"], CELL)
        interval = "–" if row["low"] is None else f"[{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
        what = "judgement" if row["measure"] == "position_bias" else "pair"
        cells = (_percent(row["share"]), interval, plural(int(row["n"]), what))
        table.add_row(Text(judge), _BIASES.get(row["measure"], row["measure"]), *cells)
    left_out = sum(
        row["n_left_out"] for row in facts["bias"] if row["judge"] is None and row["measure"] != "inconsistency"
    )
    notes = ["position bias: how often the response seen first wins; inconsistency: pairs with opposite winners"]
    if n_others:
        notes.append(f"each of {n_others:,} judges: --json, or the table bias of `evaluand export`")
    if left_out:
        notes.append(f"{plural(left_out, 'judgement')} of pairs seen in one order only cannot show a bias")
    return Group(table, *(Text(note, "dim") for note in notes))


def _match(row: Facts) -> RenderableType:
    """A match: who won, why, and both responses."""
    a, b = (safe(row[f"model_{side}"], CELL) for side in "ab")
    verdicts = {None: row["status"], 1.0: f"{a} wins", 0.0: f"{b} wins", 0.5: "tie"}
    verdict = verdicts.get(row["outcome"], f"{a} {_percent(row['outcome'])}")
    seen = "" if row["first"] is None else f", {a if row['order'] == 'ab' else b} seen first"
    by = f", by {safe(row['judge'], CELL)}" if row["judge"] else ""
    head = f"{example_name(row['_index_'], row['id'])}, {a} – {b}: {verdict}{seen}{by}"
    texts = [("input", row["input"]), (a, row["response_a"]), (b, row["response_b"])]
    texts += [(name, row[name]) for name in ("reason", "explanation")]
    return Group(Text(head, "bold"), name_values([(n, long_text(text)) for n, text in texts if text is not None], "  "))
