"""Disparities of groups in the terminal: what differs most, and for groups with a smallest size their shrunk values."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.metrics.base.signature import condition_of
from evaluand.metrics.names import name_in_tables
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import CELL, plain_table
from evaluand.report.text import between, disparity_phrase, family_notes, group_name, join_names, numbers, safe


def disparities_table(rows: Sequence[Facts]) -> RenderableType:
    """Disparities: a line per task, metric, grouping and kind, with the lowest and the highest group."""
    table = plain_table("disparity", "task", "value", "interval", "lowest", "highest")
    for row in rows:
        value, *of = numbers(row["value"], row["low"], row["high"], row.get("family_low"), row.get("family_high"))
        interval, adjusted = between(*of[:2]), between(*of[2:])
        what = f"{safe(_disparity_metric(row), CELL)}: {disparity_phrase(row)}"
        if row["decided_by"]:
            what, interval = f"{what}\n  of {safe(row['decided_by'], CELL)}", f"{interval}\n"
        if adjusted and row["family_size"] > 1:
            what, interval = f"{what}\n  adjusted", f"{interval}\n{adjusted}"
        interval += " *" * row["found"]
        ends = ["" if row[name] is None else group_name(row[name]) or "all rows" for name in ("lowest", "highest")]
        table.add_row(*map(Text, (what, safe(row["task"], CELL), value, interval, *ends)))
    notes = (Text(note, "dim") for note in dict.fromkeys(_list_notes(rows)))
    return Group(table, *notes, *_rated_tables(rows))


def _list_notes(rows: Sequence[Facts]) -> Iterator[str]:
    yield from family_notes(rows)
    yield from (f"{safe(_disparity_metric(row), CELL)}: {row['reason']}" for row in rows if row["reason"])
    for name, words in _LISTED.items():
        groups = {group_name(group) for row in rows for group in row.get(name) or () if not row.get("given")}
        if groups:
            yield f"{words}: {join_names(sorted(groups))}"
    if any((row.get("at_once") or 1) > 1 for row in rows):
        yield "intervals of several pairs, or of several strata, hold at the same time"


_LISTED = {
    "small": "values from few rows",
    "undefined": "no value, so left out",
    "unjudged": "too few rows, so listed and not judged",
}


def _rated_tables(rows: Sequence[Facts]) -> Iterator[RenderableType]:
    """For each disparity with a smallest size: its groups with raw values and, beside them, shrunk ones."""
    for row in rows:
        if not row.get("groups"):
            continue
        table = plain_table("group", "task", "rows", "raw", "interval", "shrunk", "interval", "")
        for each in row["groups"]:
            cells = [f"{each['metric']}  {group_name(each['by'])}", safe(row["task"], CELL), f"{each['n']:,.0f}"]
            for prefix in ("", "shrunk_"):
                value, low, high = numbers(*(each[f"{prefix}{name}"] for name in ("value", "low", "high")))
                cells += [value, between(low, high)]
            table.add_row(*map(Text, (*cells, "" if each["judged"] else "not judged")))
        yield Text("")
        yield table


def _disparity_metric(row: Facts) -> str:
    """The name of the metric of a disparity, or of the criterion of several metrics."""
    signature = str(row["signature"])
    name = name_in_tables(signature) if signature.partition(" ")[0] == row["metric"] else str(row["metric"])
    where = condition_of(signature)
    return name if where is None else f"{name} where {where}"
