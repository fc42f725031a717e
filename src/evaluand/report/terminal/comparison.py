"""Comparisons and gates for the terminal."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evaluand.comparison.verdict import (
    BONFERRONI,
    SECONDARY,
    adjusted_p,
    adjustment,
    families_text,
    family_of,
    format_difference,
    unit_suffix,
)
from evaluand.core.errors import plural
from evaluand.models.usage_total import UsageTotal
from evaluand.report.facts.gates import shorten_refusals
from evaluand.report.metric_labels import add_labels, left_out_text
from evaluand.report.terminal.cells import CELL, long_text, name_values, plain_table
from evaluand.report.text import SHORT_ID, clusters_text, example_name, numbers, safe
from evaluand.report.usage import usage_cells, usage_totals

Facts = Mapping[str, Any]

_DIFF = {"-": "red", "+": "green", "…": "dim"}
_DIFF_LINES = 60


def comparison_table(facts: Facts) -> RenderableType:
    """A comparison: the differences, a sentence for each, the ranking, and the examples that changed."""
    parts = list(comparison_parts(facts))
    return Group(*itertools.chain.from_iterable((part, "") for part in parts[:-1]), parts[-1])


def comparison_parts(facts: Facts) -> Iterator[RenderableType]:
    """The same, part by part."""
    over = facts.get("over")
    sides = [safe(name, CELL) for name in over["levels"]] if over else [*map(_letter, range(len(facts["evaluations"])))]
    named = [{name: sides[pair[name]] for name in "ab"} for pair in facts["pairs"]]
    pairs = [pair | {"sides": names} for pair, names in zip(add_labels(facts["pairs"]), named, strict=True)]
    facts = {**facts, "sides": sides, "pairs": pairs, "ranking": add_labels(facts["ranking"])}
    yield _legend(facts)
    yield from (Text(safe(sentence), "yellow") for sentence in facts["caveats"])
    yield from map(_prompt_change, facts["prompts"])
    if used := list(_list_usage(facts)):
        yield _usage_table(used)
    for _, group in itertools.groupby(pairs, _measure_key):
        pairs = list(group)
        different = [pair for pair in pairs if not _is_same(pair, facts)]
        if different:
            yield _differences(different, facts["confidence"], family_of(pairs[0], facts["pairs"]))
        else:
            yield Text(_title(pairs[0]), "bold")
        yield _notes(pairs, facts)
    if families := families_text(facts["pairs"]):
        yield Text(f"p values: {families}", "dim")
    if facts["left_out"]:
        yield Text(f"not compared: {left_out_text(facts['left_out'], facts['pairs'])}", "dim")
    if facts["ranking"]:
        yield _ranking(facts)
    for number, pair in enumerate(facts["pairs"]):
        flips = [flip for flip in facts["flips"] if flip["pair"] == number]
        if flips:
            yield _flips(pair, flips)


def gates_table(results: Sequence[Facts]) -> RenderableType:
    """Gates, one or two lines each: whether they hold, and the number that decided."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for result in shorten_refusals(results):
        passed = Text("passed", "green") if result["passed"] else Text(result["result"].upper(), "red")
        text = Text.assemble(
            (safe(result["gate"], 2 * CELL), "bold"), f"  {safe(result['subject'], CELL)}\n{safe(result['message'])}"
        )
        grid.add_row(passed, text)
    return grid


def _legend(facts: Facts) -> RenderableType:
    return name_values(
        (_letter(i), f"{safe(e['label'], CELL)}  (evaluation {safe(e['id'])[:SHORT_ID]})")
        for i, e in enumerate(facts["evaluations"])
    )


def _list_usage(facts: Facts) -> Iterator[tuple[str, UsageTotal]]:
    """What the calls and the judges of each side have used."""
    for number, side in enumerate(facts["evaluations"]):
        for made in ("run", "evaluation"):
            for scorer, total in usage_totals(side.get("usage", {}).get(made)):
                yield f"{_letter(number)} · {scorer or 'calls'}", total


def _usage_table(used: Sequence[tuple[str, UsageTotal]]) -> Table:
    heads, rows = usage_cells([total for _, total in used])
    table = plain_table("used by", numbers=heads)
    for (label, _), cells in zip(used, rows, strict=True):
        table.add_row(Text(safe(label, CELL)), *map(Text, cells))
    return table


def _prompt_change(change: Facts) -> RenderableType:
    """The settings and the lines of a prompt that differ."""
    a, b = _letter(change["a"]), _letter(change["b"])
    settings = name_values(
        (each["name"], f"{long_text(each['a'] or '–')} → {long_text(each['b'] or '–')}") for each in change["settings"]
    )
    lines = [Text(safe(line), _DIFF.get(line[0], "")) for line in change["prompt"][:_DIFF_LINES]]
    if (more := len(change["prompt"]) - _DIFF_LINES) > 0:
        lines.append(Text(f"and {plural(more, 'more line')} (--json lists all)", "dim"))
    return Group(Text(f"what differs, {a} → {b}", "bold"), *([settings] if change["settings"] else []), *lines)


def _letter(number: int) -> str:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[number] if number < 26 else f"#{number + 1}"


def _measure_key(row: Facts) -> tuple[Any, ...]:
    return row["scorer"], row["signature"], row["target"], bool(row.get("by"))


def _title(row: Facts) -> str:
    title = row["label"] if row["target"] is None else f"{row['label']} · {safe(row['target'], CELL)}"
    return f"{title}, by group" if row.get("by") else title


def _names(pair: Facts) -> str:
    group = ", ".join(f"{name}={value}" for name, value in (pair.get("by") or {}).items())
    return f"{safe(group, CELL)} {' → '.join(pair['sides'].values())}".strip()


def _differences(pairs: Sequence[Facts], confidence: float, family: int) -> RenderableType:
    heading = unit_suffix(pairs[0]).strip() or "difference"
    method = adjustment(pairs)
    adjusted = f" ({method})" if family > 1 else ""
    of_interval, of_p = (adjusted, "") if method == BONFERRONI else ("", adjusted)
    interval = f"{100 * confidence:g}% interval{of_interval}"
    heads = (heading, interval, f"p{of_p}", *_change_words(pairs[0]).values(), "rows")
    table = plain_table("", "values", numbers=heads)
    values = numbers(*(pair[side] for pair in pairs for side in ("value_a", "value_b")))
    for pair, before, after in zip(pairs, values[::2], values[1::2], strict=True):
        low, high = format_difference(pair["low"], pair), format_difference(pair["high"], pair)
        table.add_row(
            Text(_names(pair), "bold"),
            f"{before} → {after}",
            format_difference(pair["difference"], pair, signed=True),
            "–" if pair["low"] is None else f"[{low}, {high}]",
            _p(adjusted_p(pair)),
            *("–" if pair[side] is None else f"{pair[side]:,}" for side in ("won", "lost")),
            f"{pair['n_used']:,}",
        )
    title = f"{_title(pairs[0])}{f' ({SECONDARY})' if pairs[0]['family'] == SECONDARY else ''}"
    return Group(Text(title, "bold"), table, Text(safe(pairs[0]["signature"]), "dim"))


def _change_words(pair: Facts) -> dict[str, str]:
    """The words for rows in which the second is better and worse."""
    return {"won": "won", "lost": "lost"} if pair["direction"] else {"won": "higher", "lost": "lower"}


def _p(p: float | None) -> str:
    return "–" if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _is_same(pair: Facts, facts: Facts) -> bool:
    """Whether both sides are one evaluation."""
    return bool(facts["evaluations"][pair["a"]]["id"] == facts["evaluations"][pair["b"]]["id"])


def _notes(pairs: Sequence[Facts], facts: Facts) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for pair in pairs:
        label = _names(pair)
        counts = () if _is_same(pair, facts) else _counts(pair)
        for line in (Text(safe(pair["verdict"])), *(Text(line, "yellow") for line in counts)):
            grid.add_row(label, line)
            label = ""
    return grid


def _counts(pair: Facts) -> Iterator[str]:
    """The rows that the numbers leave out."""
    a, b = pair["sides"].values()
    if pair["n_a_missing"] or pair["n_b_missing"]:
        bounds = ""
        if pair["worst"] is not None and pair["best"] is not None:
            ends = " … ".join(format_difference(pair[end], pair, signed=True) for end in ("worst", "best"))
            bounds = f"; were they known, the difference would lie in {ends}{unit_suffix(pair)}"
        missing = f"{pair['n_a_missing']:,} in {a} and {pair['n_b_missing']:,} in {b}"
        yield f"without a score, of {pair['n']:,} rows: {missing}{bounds}"
    for side, name in ((a, "a"), (b, "b")):
        if pair[f"n_only_{name}"]:
            ids = ", ".join(safe(id, CELL) for id in pair[f"only_{name}"])
            yield f"{pair[f'n_only_{name}']:,} rows only in {side}, such as {ids}"
    if pair["n_skipped"]:
        yield f"{plural(pair['n_skipped'], 'row')} skipped by one of them"
    if clusters := clusters_text([pair]):
        weightless = "" if pair["clustered_by"] else ", and rows of weight 0 do not count"
        yield f"interval and test by {clusters}: rows of the same one are not independent{weightless}"


def _ranking(facts: Facts) -> RenderableType:
    parts: list[RenderableType] = []
    for _, group in itertools.groupby(facts["ranking"], _measure_key):
        places = list(group)
        table = plain_table("", "", "value", "rows", "alike")
        for place, value in zip(places, numbers(*(place["value"] for place in places)), strict=True):
            label = safe(facts["evaluations"][place["evaluation"]]["label"], CELL)
            table.add_row(facts["sides"][place["evaluation"]], label, value, f"{place['n']:,}", place["letters"])
        parts += [Text(f"ranking by {_title(places[0])}", "bold"), table]
    level, method = f"{100 * facts['confidence']:g} %", adjustment(facts["pairs"])
    return Group(*parts, Text(f"runs that share a letter cannot be distinguished at {level} ({method})", "dim"))


def _flips(pair: Facts, flips: Sequence[Facts]) -> RenderableType:
    a, b = pair["sides"].values()
    parts: list[RenderableType] = []
    for flip, group in itertools.groupby(flips, lambda one: one["flip"]):
        shown = list(group)
        head = f"{_title(pair)}, {a} → {b}: {pair[flip]:,} {_change_words(pair)[flip]}"
        parts.append(Text(f"{head}; {len(shown):,} of them:" if len(shown) < pair[flip] else f"{head}:", "bold"))
        parts += [_flip(one, a, b) for one in shown]
    return Group(*parts)


def _flip(flip: Facts, a: str, b: str) -> RenderableType:
    before, after = numbers(flip["value_a"], flip["value_b"])
    head = Text(f"{example_name(flip['index_a'], flip['id'])}: {before} → {after}")
    pairs = [(name, long_text(flip[name])) for name in ("input", "expected") if flip[name] is not None]
    pairs += [(a, long_text(answer)) for answer in flip["responses_a"] or ()]
    pairs += [(b, long_text(answer)) for answer in flip["responses_b"] or ()]
    return Group(head, name_values(pairs, "  "))
