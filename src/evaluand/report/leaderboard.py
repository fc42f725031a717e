"""Leaderboards for the terminal and for HTML pages, built from facts alone."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.report.facts.base import Facts
from evaluand.report.html.charts import Axis, Dot, strip
from evaluand.report.html.explanations import explain
from evaluand.report.html.page import clean, name, table, th
from evaluand.report.terminal.cells import CELL, count_text, plain_table
from evaluand.report.text import between, bounds_text, number_format, numbers, safe, seconds

_STYLES: Final = {"failed": "red", "abstained": "yellow", "waiting": "yellow"}
_CLASSES: Final = {"failed": "failed", "abstained": "unscored", "skipped": "unscored", "waiting": "unscored"}
_LISTED: Final = 10
_WITHOUT: Final = ("failed", "abstained", "skipped", "waiting")
_WORDS: Final = {"higher": "higher is better", "lower": "lower is better"}
_SPENT: Final = "spent by feedbacks, in addition to the cost of calls"
_BOUNDS: Final = "worst … best"
_NOTE: Final = "versions that share a letter do not differ significantly at {level:g} % (Holm)"


def leaderboard_table(facts: Facts) -> RenderableType:
    """A table for each feedback (best version first), one of latency, tokens and cost, one of what feedbacks spent."""
    parts: list[RenderableType] = []
    for rows in _by_feedback(facts):
        parts += [Text(_title(rows), "bold"), _feedback(rows), ""]
    parts.append(_calls(facts["versions"]))
    if facts["spent"]:
        parts += ["", Text(_SPENT, "bold"), _spent(facts["spent"])]
    comparison = [_NOTE.format(level=100 * facts["confidence"])] if facts["pairs"] else []
    notes = [Text(safe(note), "dim") for note in (*comparison, *facts["notes"])]
    return Group(*parts, *([""] if notes else []), *notes)


def leaderboard_section(facts: Facts) -> str:
    """The same tables as HTML."""
    parts = []
    for rows in _by_feedback(facts):
        without = _lacking(rows)
        form = number_format(row[n] for row in rows for n in ("mean", "low", "high"))
        axis = Axis.over(row[n] for row in rows for n in ("mean", "low", "high") if row[n] is not None)
        bounded = _bounded(rows)
        columns = ("chart", "mean", "interval", "scored", *without, *[_BOUNDS] * bounded, "alike")
        head = th("Version", "text") + "".join(map(th, columns))
        lines = "".join(_line(row, form, axis, without, bounded) for row in rows)
        order = "best first" if rows[0]["direction"] else "by their means"
        caption = f"The versions by {clean(rows[0]['feedback'], CELL)}, {order}"
        parts.append(f"<h3>{clean(_title(rows))}</h3>\n" + table(caption, head, f"<tbody>{lines}</tbody>", "rates"))
    if facts["pairs"]:
        note = _NOTE.format(level=100 * facts["confidence"])
        parts.append(f'<p class="note">{note[0].upper()}{note[1:]}; scored are so many of all records.</p>')
        parts.append(explain("letters", "Holm"))
    heads = _call_columns(facts["versions"])
    calls = [((version["label"],), _call_cells(version, heads)) for version in facts["versions"]]
    parts.append(_html_table("Latency of completed calls, tokens and cost", ("Version",), heads, calls))
    if facts["spent"]:
        heads = _spent_columns(facts["spent"])
        spent = [((one["label"], one["feedback"]), _spent_cells(one, heads)) for one in facts["spent"]]
        parts.append(_html_table(_SPENT[0].upper() + _SPENT[1:], ("Version", "Feedback"), heads, spent))
    parts += [f'<p class="note">{clean(note)}.</p>' for note in facts["notes"]]
    return "\n".join(parts)


def _html_table(
    caption: str, texts: Sequence[str], columns: Sequence[str], rows: Iterable[tuple[Sequence[str], Iterable[str]]]
) -> str:
    """A table of names, then numbers."""
    lines = []
    for (first, *more), cells in rows:
        names = "".join(f'<td class="text">{name(one)}</td>' for one in more)
        numbers = "".join(f"<td>{clean(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{name(first)}</th>{names}{numbers}</tr>')
    heads = "".join(th(text, "text") for text in texts) + "".join(map(th, columns))
    return table(caption, heads, f"<tbody>{''.join(lines)}</tbody>")


def _by_feedback(facts: Facts) -> Iterator[list[Facts]]:
    for feedback in dict.fromkeys(row["feedback"] for row in facts["feedbacks"]):
        yield [row for row in facts["feedbacks"] if row["feedback"] == feedback]


def _title(rows: Sequence[Facts]) -> str:
    direction = rows[0]["direction"]
    return safe(rows[0]["feedback"], CELL) + (f", {_WORDS[direction]}" if direction else "")


def _lacking(rows: Sequence[Facts]) -> list[str]:
    """The statuses without a value that occur."""
    return [status for status in _WITHOUT if any(row[f"n_{status}"] for row in rows)]


def _feedback(rows: Sequence[Facts]) -> RenderableType:
    without, bounded = _lacking(rows), _bounded(rows)
    heads = ("mean", "interval", "scored", *without, *[_BOUNDS] * bounded, "alike")
    grid = plain_table("version", folded=["version"], numbers=heads)
    form = number_format(row[n] for row in rows for n in ("mean", "low", "high"))
    for row in rows:
        mean, interval, scored, bounds, letters = _cells(row, form)
        counts = (count_text(row[f"n_{status}"], _STYLES.get(status, "")) for status in without)
        label = Text(safe(row["label"], CELL))
        grid.add_row(label, mean, interval, scored, *counts, *[bounds] * bounded, letters)
    why: dict[str, list[str]] = {}
    for row in rows:
        if row["reason"]:
            why.setdefault(row["reason"], []).append(row["label"])
    reasons = (
        f"{reason} ({', '.join(labels[:_LISTED])}{', …' if len(labels) > _LISTED else ''})"
        for reason, labels in why.items()
    )
    return Group(grid, *(Text(safe(each, 4 * CELL), "dim") for each in reasons))


def _bounded(rows: Sequence[Facts]) -> bool:
    """Whether records lack a value and its lowest and highest possible values are known."""
    return any(row["worst"] is not None and row["n_scored"] < row["n"] for row in rows)


def _cells(row: Facts, form: str) -> tuple[str, str, str, str, str]:
    texts = ("–" if row[n] is None else format(row[n], form) for n in ("mean", "low", "high", "worst", "best"))
    mean, low, high, worst, best = texts
    interval = between(low, high)
    bounds = "" if row["worst"] is None or row["n_scored"] == row["n"] else bounds_text(worst, best)
    return mean, interval, f"{row['n_scored']:,} of {row['n']:,}", bounds, row["letters"] or ""


def _line(row: Facts, form: str, axis: Axis, without: Sequence[str], bounded: bool) -> str:
    mean, interval, scored, bounds, letters = _cells(row, form)
    chart = strip([Dot(row["mean"], row["low"], row["high"], None, None)], axis)
    why = f'<span class="why">{clean(row["reason"])}</span>' if row["reason"] else ""
    counts = "".join(
        f'<td class="{_CLASSES[status] if row[f"n_{status}"] else "none"}">{row[f"n_{status}"]:,}</td>'
        for status in without
    )
    return (
        f'<tr><th scope="row">{name(row["label"])}</th><td class="chart">{chart}</td>'
        f'<td class="value">{mean}{why}</td><td>{interval}</td>'
        f"<td>{scored}</td>{counts}{f'<td>{bounds}</td>' * bounded}<td>{clean(letters)}</td></tr>"
    )


def _calls(versions: Sequence[Facts]) -> RenderableType:
    columns = _call_columns(versions)
    grid = plain_table("version", folded=["version"], numbers=columns)
    for version in versions:
        grid.add_row(Text(safe(version["label"], CELL)), *map(Text, _call_cells(version, columns)))
    return grid


def _call_columns(versions: Sequence[Facts]) -> list[str]:
    shown = {"records": True, "failed": any(version["calls_failed"] for version in versions)}
    shown |= {"skipped": any(version["calls_skipped"] for version in versions), "median": True, "95 % below": True}
    shown |= {"tokens in": any(version["input_tokens"] is not None for version in versions)}
    shown |= {"tokens out": any(version["output_tokens"] is not None for version in versions)}
    shown |= {"cost": any(version["n_cost"] for version in versions)}
    return [column for column, has_values in shown.items() if has_values]


def _call_cells(version: Facts, columns: Sequence[str]) -> Iterator[str]:
    for column in columns:
        if column in ("median", "95 % below"):
            time = version["latency_median" if column == "median" else "latency_p95"]
            completed = version["records"] - version["calls_failed"] - version["calls_skipped"]
            known = _coverage_text(version["n_latency"], completed)
            yield ("unknown" if completed else "–") if time is None else f"{seconds(time)}{known}"
        elif column in ("tokens in", "tokens out"):
            tokens = version[f"{'input' if column == 'tokens in' else 'output'}_tokens"]
            yield "–" if tokens is None else f"{tokens:,}{_coverage_text(version['n_tokens'], version['records'])}"
        elif column == "cost":
            yield _cost(version, version["records"])
        else:
            yield f"{version[{'failed': 'calls_failed', 'skipped': 'calls_skipped'}.get(column, column)]:,}"


def _spent(spent: Sequence[Facts]) -> RenderableType:
    columns = _spent_columns(spent)
    grid = plain_table("version", "feedback", folded=["version", "feedback"], numbers=columns)
    for one in spent:
        names = (Text(safe(one[name], CELL)) for name in ("label", "feedback"))
        grid.add_row(*names, *map(Text, _spent_cells(one, columns)))
    return grid


def _spent_columns(spent: Sequence[Facts]) -> list[str]:
    keys = {"scores": "n", "requests": "requests", "tokens in": "input_tokens", "tokens out": "output_tokens"}
    return [head for head, key in (keys | {"cost": "cost"}).items() if any(one[key] is not None for one in spent)]


def _spent_cells(one: Facts, columns: Sequence[str]) -> Iterator[str]:
    for column in columns:
        if column == "cost":
            yield _cost(one, one["n"])
        elif column in ("tokens in", "tokens out"):
            tokens = one[f"{'input' if column == 'tokens in' else 'output'}_tokens"]
            yield "–" if tokens is None else f"{tokens:,}{_coverage_text(one['n_tokens'], one['n'])}"
        else:
            yield f"{one['n' if column == 'scores' else column]:,}"


def _cost(facts: Facts, of: int) -> str:
    if facts["cost"] is None:
        return "–"
    cost = numbers(facts["cost"])[0]
    currency = f" {safe(facts['currency'], 12)}" if facts["currency"] else ""
    return cost + currency + _coverage_text(facts["n_cost"], of)


def _coverage_text(known: int, of: int) -> str:
    """How many of all have a known value; empty if all have."""
    return "" if known == of else f" ({known:,} of {of:,})"
