"""The report as one self-contained HTML file: no network, no fonts, no server.

The facts are written as plain HTML, readable without scripts. The rows are too many for that: the file holds what the
page on a store would read from a server (`columns/RUN/EVALUATION`, `rows/RUN/EVALUATION/3`) as compressed elements, and
its script is made of the same components. Pieces of rows are written in one pass, with one of them in memory.

Text from data cannot become markup or script. Everything written here goes through `_text`; the script inserts rows as
text; the pieces are base64; and the content security policy of the page allows only the scripts and the style sheet
whose hashes it lists, and no connections.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import IO, Any

import orjson

from evaluand.core.errors import plural as _plural
from evaluand.core.identity import json_text
from evaluand.core.provenance import experiment_origin
from evaluand.report.facts.answers import warnings
from evaluand.report.facts.base import Facts
from evaluand.report.html import charts
from evaluand.report.html.charts import Axis, Dot
from evaluand.report.html.comparisons import comparisons_section
from evaluand.report.html.examples import Examples
from evaluand.report.html.figures import confusion_section, curves_section, disparities_section
from evaluand.report.html.gates import gates_section
from evaluand.report.html.judges import judges_section
from evaluand.report.html.matches import MatchRows, match_provenance, matches_section
from evaluand.report.html.packing import compress, element as data_element, pack_columns, pack_digests
from evaluand.report.html.page import (
    clean as _text,
    example_link,
    figure as _figure,
    name as _name,
    page_end,
    page_foot,
    page_head,
    table as _table,
    th as _th,
)
from evaluand.report.html.ratings import ratings_section
from evaluand.report.html.tradeoff import tradeoff_section, write_choice
from evaluand.report.html.usage import usage_section
from evaluand.report.html.worst_groups import worst_groups_section
from evaluand.report.leaderboard import leaderboard_section
from evaluand.report.metric_labels import metric_labels, values_alone
from evaluand.report.row_columns import has_many, iterate_columns
from evaluand.report.text import (
    LABEL,
    SHORT_ID,
    between,
    clusters_text,
    defaulted_text,
    format_creation,
    git_text,
    minute,
    number_format,
    numbers,
    rests_on,
    row_bounds,
    safe,
)
from evaluand.store.statuses import COMPLETED, SCORE_STATUSES
from evaluand.tradeoff.rates import FrontRates
from evaluand.tradeoff.trade import TradeoffResult

_CHUNK_ROWS = 1000
_CHUNK_BYTES = 2 << 20
_CHARTED_GROUPS = 40
_LISTED_GROUPS = 2000
_CELL = 200
_NUMBERS = ("value", "low", "high", "worst", "best")


def write_report(
    facts: Facts,
    examples: Sequence[Examples],
    file: IO[bytes],
    tradeoffs: Sequence[TradeoffResult] = (),
    matches: MatchRows | None = None,
) -> int:
    """Writes the report.

    Args:
        facts: as `report_facts` returns them. Under `comparisons` there may be rows with `a`, `b` (tasks),
            `metric`, `direction`, `difference`, `low`, `high`, `p`, `won`, `lost`, `n`, `clusters`, `clustered_by`,
            `verdict` and `flips`, a list of `{id, index}` of the examples on which a and b differ; under
            `not_compared` a sentence on what is not compared, or on how to compare; under `prompts` what
            `prompt_changes` returns, with names of tasks; under `leaderboard` the result of `Leaderboard.to_dict`;
            under `gates` the results of gates, and under `gates_checked_by` a sentence on what they were checked by;
            under `headlines` sentences; and under `matches`, `ratings` and `unrated` what `match_facts` returns.
        examples: the rows of each task.
        matches: the rows of these matches.

    Returns:
        The number of rows in the file.
    """
    sections = list(write_sections(facts, tradeoffs))
    images = any(each.detects for each in examples)
    head = page_head(facts["title"], "Evaluation report", write_meta(facts), skip=sections[0][0], images=images)
    file.write(head.encode())
    for part in _layout(facts, sections):
        file.write(part.encode())
    for number, each in enumerate(tradeoffs):
        if each.points is not None:
            write_choice(number, {each.name: each.points}, _name_rates(each), file)
    if matches:
        _write_matches(matches, file)
    n = _write_examples(facts, examples, file) if facts["tasks"] else 0
    file.write(page_end().encode())
    return n


def _write_examples(facts: Facts, examples: Sequence[Examples], file: IO[bytes]) -> int:
    """Writes the rows of all tasks as what a page reads, and returns their number."""
    n, places = 0, dict[str, Examples]()
    for each in examples:
        run, evaluation = each.part.run.id, each.part.evaluation
        places.setdefault(f"{run}/{'-' if evaluation is None else evaluation.id}", each)
    for place, each in places.items():
        starts = []
        for number, (start, piece) in enumerate(_pieces(each)):
            starts.append(start)
            file.write(data_element(f"data:rows/{place}/{number}", piece))
        columns = each.columns()
        command = f"evaluand show {each.part.run.id[:SHORT_ID]}"
        head = each.describe(columns) | {"total": each.total, "starts": starts, "command": command}
        file.write(data_element(f"data:columns/{place}", compress(pack_columns(head, iterate_columns(columns)))))
        for number, words in enumerate(columns.attributes.values()):
            if has_many(words):
                file.write(data_element(f"data:words/{place}/{number}", compress(orjson.dumps(words.known))))
        n += len(columns)
    datasets = {each.dataset: each.part.run.store for each in examples}
    for dataset, store in datasets.items() if len(datasets) > 1 else ():
        file.write(data_element(f"data:digests/{dataset}", compress(pack_digests(store, dataset))))
    tasks = [
        {"task": entry["task"], "run": entry["run"]["id"], "evaluation": (entry["evaluation"] or {"id": None})["id"]}
        for entry in facts["tasks"]
    ]
    file.write(data_element("data:tasks", compress(orjson.dumps(tasks))))
    return n


def _write_matches(matches: MatchRows, file: IO[bytes]) -> None:
    for number, piece in enumerate(matches.pieces()):
        file.write(data_element(f"data:pairs/report/{number}", piece))
    columns = pack_columns(matches.head(), matches.columns())
    file.write(data_element("data:pair-columns/report", compress(columns)))


def write_meta(facts: Facts) -> str:
    tasks = facts["tasks"]
    if not tasks:
        n = sum(sum(each["counts"].values()) for each in facts.get("matches", ()))
        return _text(f"{_plural(n, 'match', 'matches')} · report {minute(facts['created'])} UTC")
    made = max((entry["run"]["created"] or "" for entry in tasks), default="")
    examples = sorted({sum(entry["run"]["counts"].values()) for entry in tasks})
    rows = " to ".join(f"{n:,}" for n in dict.fromkeys([*examples[:1], *examples[-1:]]))
    parts = [
        _plural(len(tasks), "task"),
        f"{rows} rows{' each' if len(tasks) > 1 else ''}",
        f"run {minute(made)} UTC",
        f"report {minute(facts['created'])} UTC",
    ]
    return _text(" · ".join(parts))


def write_sections(facts: Facts, tradeoffs: Sequence[TradeoffResult]) -> Iterator[tuple[str, str, str]]:
    """Id, title and body of each section that is not empty."""
    labels = metric_labels(facts["metrics"])
    has_tasks, sets = bool(facts["tasks"]), facts.get("matches", ())
    rated = ratings_section(facts) if facts.get("ratings") or facts.get("unrated") else ""
    judges = [*facts["judges"], *(judge for each in sets for judge in each.get("judges", ()))]
    bodies = [
        ("gates", "Gates", gates_section(facts["gates"], facts.get("gates_checked_by")) if facts.get("gates") else ""),
        ("leaderboard", "Leaderboard", leaderboard_section(facts["leaderboard"]) if facts.get("leaderboard") else ""),
        ("summary", "Summary", summary_section(facts, labels) if has_tasks else ""),
        ("judges", "Judges", judges_section(judges, facts) if judges else ""),
        ("charts", "Charts", _charts(facts, labels)),
        ("confusion", "Confusion", confusion_section(facts, labels)),
        ("curves", "Curves", curves_section(facts, labels)),
        ("groups", "Groups", _groups(facts, labels)),
        ("disparities", "Disparities", disparities_section(facts, labels)),
        ("worst-groups", "Worst groups", worst_groups_section(facts, labels)),
        ("tradeoffs", "Trade-offs", "".join(_tradeoff(n, each) for n, each in enumerate(tradeoffs))),
        ("comparisons", "Comparisons", comparisons_section(facts)),
        ("ratings", "Ratings", rated),
        ("missing", "Why rows are missing", _missing(facts) if has_tasks else ""),
        ("examples", "Examples", _BROWSER if has_tasks else ""),
        ("matches", "Matches", matches_section(sets) if sets else ""),
        ("provenance", "Provenance", _provenance(facts, labels)),
    ]
    return ((id, title, body) for id, title, body in bodies if body)


def _layout(facts: Facts, sections: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """The navigation and all sections."""
    links = "".join(f'<li><a href="#{id}">{title}</a></li>' for id, title, _ in sections)
    yield f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n'
    for id, title, body in sections:
        yield f'<section id="{id}" aria-labelledby="{id}-title">\n<h2 id="{id}-title">{title}</h2>\n'
        yield f"{body}\n</section>\n"
    yield page_foot(facts["evaluand"])


def summary_section(facts: Facts, labels: Mapping[tuple[str, str], str]) -> str:
    """What the results show in sentences, every metric over all rows, what is missing, and what it cost."""
    whole = [row for row in facts["metrics"] if not row["by"]]
    sentences = "".join(f"<li>{sentence}</li>" for entry in facts["tasks"] for sentence in _describe_missing(entry))
    parts = (
        [_values_table(whole, labels, facts)] if whole else [] if facts.get("leaderboard") else [_counts_table(facts)]
    )
    if lines := "".join(f"<li>{_text(each)}.</li>" for each in facts.get("headlines") or ()):
        parts.insert(0, f'<ul class="words">{lines}</ul>')
    if stops := "".join(f"<li>{_text(sentence)}.</li>" for sentence in warnings(facts)):
        parts.insert(0, f'<ul class="words warn">{stops}</ul>')
    parts += [f'<h3>What is missing</h3>\n<ul class="words">{sentences}</ul>', usage_section(facts["tasks"])]
    bounded = [row for row in whole if row["worst"] != row["best"]]
    if bounded:
        filled = [_counts_missing_as_wrong(row) for row in bounded]
        parts.append(
            '<p class="note">The bounds are the values if every row without a score had the lowest, or the highest, '
            f"possible score{_say_how_missing_count(filled)}. The interval shows how far chance may have moved the "
            "value.</p>"
        )
    return "\n".join(parts)


def _counts_missing_as_wrong(row: Facts) -> bool:
    return "missing=wrong" in row["signature"].split()


def _say_how_missing_count(filled: Sequence[bool]) -> str:
    """How values count the rows without a score.

    Args:
        filled: of each value, whether such rows are wrong in it.
    """
    if not any(filled):
        return "; such rows are not counted as 0"
    return "" if all(filled) else "; such rows are wrong in values with missing=wrong, and left out of the others"


def _describe_missing(entry: Facts) -> Iterator[str]:
    """Sentences about the calls of a task without an answer or a score."""
    task, counts = _name(entry["task"]), entry["run"]["counts"]
    rows = sum(counts.values())
    failed, skipped = counts.get("failed", 0), counts.get("skipped", 0)
    words = {"failed": failed, "were not made": skipped}
    missing = [f"{n:,} of {rows:,} calls {what}" for what, n in words.items() if n]
    rest = f"the other {rows - failed - skipped:,}" if failed or skipped else f"{rows:,} calls"
    for scorer, calls in entry["ungraded"].items():
        if calls["failed"]:
            missing.append(f"the scorer {_name(scorer)} failed on {calls['failed']:,} of {rest}")
        if calls["abstained"]:
            missing.append(f"the scorer {_name(scorer)} abstained in {calls['abstained']:,} of {rest}")
    if defaulted := defaulted_text(entry["run"]["provenance"]):
        yield f"{task}: asked with {_text(defaulted)}."
    if missing:
        yield f"{task}: {'; '.join(missing)}."
    elif entry["evaluation"] is None:
        yield f"{task}: all {rows:,} calls were answered; none has been graded yet."
    else:
        yield f"{task}: nothing. All {rows:,} rows were answered and scored."


def _values_table(rows: Sequence[Facts], labels: Mapping[tuple[str, str], str], facts: Facts) -> str:
    skipped = any(row["n_skipped"] for row in rows)
    bounded = any(row["worst"] != row["best"] for row in rows)
    heads = _heads(["Task"], bounded, skipped)
    drawn = _confusion_keys(facts)
    bodies = []
    for key, label in labels.items():
        mine = _rows_with_key(rows, key)
        if not mine:
            continue
        form = _value_format(facts, key)
        lines = "".join(
            f'<tr><th scope="row">{_name(row["task"])}{_target(row)}</th>'
            f"{_cells(row, form, bounded, skipped, drawn=key in drawn)}</tr>{_alone_rows(row, bounded, skipped)}"
            for row in mine
        )
        title = f'{escape(label)}<span class="signature">{_text(_signature(facts, key), 2 * _CELL)}</span>'
        head = f'<tr class="group"><th scope="rowgroup" colspan="{heads.count("<th")}">{title}</th></tr>'
        bodies.append(f"<tbody>{head}{lines}</tbody>")
    caption = "Every metric over all rows, with its interval and the numbers of rows it comes from"
    return _table(caption, heads, "".join(bodies))


def _alone_rows(row: Facts, bounded: bool, skipped: bool) -> str:
    """Rows with what the judge and people alone say."""
    lines = []
    for alone in values_alone(row):
        value, low, high, n = alone.cells()
        interval = between(low, high)
        cells = f'<td class="value">{value}</td><td>{interval}</td>{"<td></td>" * bounded}<td class="count">{n}</td>'
        more = "<td></td>" * (3 + skipped)
        lines.append(f'<tr class="alone"><th scope="row">{_name(row["task"])}: {alone.who}</th>{cells}{more}</tr>')
    return "".join(lines)


def _counts_table(facts: Facts) -> str:
    """Rows by status, where there are no metrics."""
    statuses = (COMPLETED, *SCORE_STATUSES)
    lines = []
    for entry in facts["tasks"]:
        graded = (entry["evaluation"] or {"counts": {}})["counts"]
        for what, counts in [("calls", entry["run"]["counts"]), *((f"scores of {s}", c) for s, c in graded.items())]:
            cells = "".join(f"<td>{counts.get(status, 0):,}</td>" for status in statuses)
            lines.append(
                f'<tr><th scope="row">{_name(entry["task"])}</th><td class="text">{_text(what)}</td>{cells}</tr>'
            )
    heads = _th("Task", "text") + _th("what", "text") + "".join(map(_th, statuses))
    return _table("Rows by status; no metric has been computed", heads, f"<tbody>{''.join(lines)}</tbody>")


def _heads(first: Sequence[str], bounded: bool, skipped: bool, *, sortable: bool = False) -> str:
    names = ["value", "interval", *["bounds"] * bounded, "n", "scored", "failed", "abstained", *["skipped"] * skipped]
    return "".join(_th(name, "text", sortable) for name in first) + "".join(_th(n, "", sortable) for n in names)


def _confusion_keys(facts: Facts) -> set[tuple[str, str]]:
    """The metrics that are shown as a confusion matrix."""
    return {(curve["scorer"], curve["signature"]) for curve in facts["curves"] if curve["curve"] == "confusion"}


def _cells(row: Facts, form: str, bounded: bool, skipped: bool, *, drawn: bool = False) -> str:
    value, low, high, worst, best = ("–" if row[n] is None else format(row[n], form) for n in _NUMBERS)
    why = f'<span class="why">{_text(row["reason"], _CELL)}</span>' if row["reason"] else ""
    interval = between(low, high)
    bounds = row_bounds(row, worst, best)
    cells = [
        f'<td><a href="#confusion">matrix</a>{why}</td>'
        if drawn
        else f'<td class="value"{_data(row["value"])}>{value}{why}</td>',
        f"<td{_data(row['low'])}>{interval}</td>",
        *[f"<td{_data(row['worst'])}>{bounds}</td>"] * bounded,
    ]
    counts = ["n", "n_scored", "n_failed", "n_abstained", *["n_skipped"] * skipped]
    cells += [f'<td class="{_count_class(n, row[n])}" data-v="{row[n]}">{row[n]:,}</td>' for n in counts]
    return "".join(cells)


def _data(value: float | None) -> str:
    return "" if value is None else f' data-v="{value!r}"'


def _count_class(name: str, count: int) -> str:
    if not count and name not in ("n", "n_scored"):
        return "none"
    return {"n_failed": "failed", "n_abstained": "unscored", "n_skipped": "unscored"}.get(name, "count")


def _charts(facts: Facts, labels: Mapping[tuple[str, str], str]) -> str:
    tasks = [entry["task"] for entry in facts["tasks"]]
    figures = []
    counts = _confusion_keys(facts)
    for key, label in labels.items():
        if key in counts:
            continue
        rows = [row for row in _rows_with_key(facts["metrics"], key) if not row["by"]]
        dots = [(_name(r["task"]) + _target(r), [_dot(r, tasks.index(r["task"]))]) for r in rows]
        figures.append(_plot(f"{escape(label)} by task", "Task", dots, _value_format(facts, key)))
    figures += _histograms(facts["scores"], tasks)
    return f'<div class="figures">{"".join(figures)}</div>' if figures else ""


def _plot(caption: str, what: str, lines: Sequence[tuple[str, list[Dot]]], form: str | None = None) -> str:
    """A dot-and-interval plot: a line for each label, followed by the value if a line has only one."""
    axis = Axis.over(v for _, dots in lines for dot in dots for v in dot.numbers)
    body = []
    for label, dots in lines:
        value = f'<td class="value">{_format_value(dots[0].value, form)}</td>' if form else ""
        body.append(f'<tr><th scope="row">{label}</th><td class="chart">{charts.strip(dots, axis)}</td>{value}</tr>')
    head = _th(what, "text") + _th("value and interval", "text")
    head += _th("value") if form else ""
    foot = f'<td class="chart">{charts.scale(axis)}</td>{"<td></td>" if form else ""}'
    return _figure(caption, head, body, foot)


def _dot(row: Facts, series: int, label: str = "") -> Dot:
    return Dot(row["value"], row["low"], row["high"], row["worst"], row["best"], series, safe(label, LABEL))


def _histograms(scores: Sequence[Facts], tasks: Sequence[str]) -> Iterator[str]:
    """A histogram of each scorer's values, unless they are all 0 or 1."""
    for scorer, group in itertools.groupby((s for s in scores if s["edges"]), lambda s: s["scorer"]):
        lines, edges = [], [0.0]
        for entry in group:
            edges = entry["edges"]
            chart = charts.histogram(edges, entry["counts"], tasks.index(entry["task"]))
            label = f'{_name(entry["task"])} <span class="why">{entry["n"]:,} scores</span>'
            lines.append(f'<tr><th scope="row">{label}</th><td class="chart">{chart}</td></tr>')
        low, high = numbers(edges[0], edges[-1])
        foot = f'<td class="ends"><span>{low}</span><span>{high}</span></td>'
        head = _th("Task", "text") + _th("number of scores", "text")
        yield _figure(f"Scores of {_name(scorer)}", head, lines, foot)


def _groups(facts: Facts, labels: Mapping[tuple[str, str], str]) -> str:
    parts = []
    rows = [row for row in facts["metrics"] if row["by"]]
    for key, label in labels.items():
        mine = _rows_with_key(rows, key)
        for names in dict.fromkeys(tuple(row["by"]) for row in mine):
            group = [row for row in mine if tuple(row["by"]) == names]
            parts.append(_grouping(f"{escape(label)} by {_text(', '.join(names), _CELL)}", names, group, facts, key))
    return "\n".join(parts)


def _grouping(caption: str, names: Sequence[str], rows: Sequence[Facts], facts: Facts, key: tuple[str, str]) -> str:
    """The chart and the table of one grouping of one metric."""
    tasks = [entry["task"] for entry in facts["tasks"]]
    several = len({row["task"] for row in rows}) > 1
    lines: dict[tuple[Any, ...], list[Dot]] = {}
    for row in rows:
        group = (*(row["by"][n] for n in names), row["target"])
        lines.setdefault(group, []).append(_dot(row, tasks.index(row["task"]), row["task"] if several else ""))
    places = {group: place for place, group in enumerate(lines)}
    rows = sorted(rows, key=lambda row: places[*(row["by"][n] for n in names), row["target"]])
    charted = list(lines.items())[:_CHARTED_GROUPS]
    dots = [
        (" · ".join(_group_name(v) for v in [*g[:-1], *([g[-1]] if g[-1] is not None else [])]), d) for g, d in charted
    ]
    form = _value_format(facts, key)
    legend = "".join(f"<li>{charts.key(tasks.index(t))}{_name(t)}</li>" for t in dict.fromkeys(r["task"] for r in rows))
    skipped, bounded = any(r["n_skipped"] for r in rows), any(r["worst"] != r["best"] for r in rows)
    based = any(map(rests_on, rows))
    body = "".join(
        "<tr>"
        + "".join(f'<th scope="row" class="text">{_group_name(row["by"][n])}</th>' for n in names)
        + f'<td class="text">{_name(row["task"])}{_target(row)}</td>{_cells(row, form, bounded, skipped)}'
        + f"<td>{rests_on(row)}</td>" * based
        + "</tr>"
        for row in rows[:_LISTED_GROUPS]
    )
    heads = _heads([*names, "task"], bounded, skipped, sortable=True) + _th("rests on", "", True) * based
    return (
        f"<h3>{caption}</h3>\n"
        + (f'<ul class="legend">{legend}</ul>' if several else "")
        + _plot(f"{caption}, chart", ", ".join(names), dots, None if several else form)
        + _cut(_CHARTED_GROUPS, len(lines), "groups")
        + _table(f"{caption}, numbers", heads, f"<tbody>{body}</tbody>", "sortable")
        + _cut(_LISTED_GROUPS, len(rows), "lines")
    )


def _cut(shown: int, total: int, what: str) -> str:
    return f'<p class="note">The first {shown:,} of {total:,} {what}.</p>' if total > shown else ""


def _group_name(value: Any) -> str:
    return '<span class="muted">none</span>' if value is None else _name(value)


def _tradeoff(number: int, result: TradeoffResult) -> str:
    """One of the trade-offs on the page."""
    if result.points is None:
        section = f'<p class="note">{_text(result.reason or "")}</p>'
    else:
        systems = {result.name: result.points}
        section = tradeoff_section(number, systems, {result.name: result.indicators}, _name_rates(result))
    return f'<div class="tradeoff"><h3 dir="auto">{_name(result.name)}</h3>\n{section}</div>\n'


def _name_rates(result: TradeoffResult) -> dict[str, FrontRates]:
    """The rates of groups of a trade-off, by its name."""
    return {} if result.rates is None else {result.name: result.rates}


def _missing(facts: Facts) -> str:
    lines = []
    reasons = [(entry["task"], reason) for entry in facts["tasks"] for reason in entry["missing"]]
    for task, reason in sorted(reasons, key=lambda each: -each[1]["count"]):
        kind = "failed" if reason["status"] == "failed" else "unscored"
        link = f'<a href="{example_link(task, reason["first"])}">{reason["first"]}</a>'
        by = "the task" if reason["scorer"] is None else reason["scorer"]
        lines.append(
            f'<tr><th scope="row">{_name(task)}</th><td class="text">{_name(by)}</td>'
            f'<td class="text {kind}">{_text(reason["status"])}</td><td>{reason["count"]:,}</td>'
            f'<td class="text long">{_text(reason["reason"], 3 * _CELL)}</td><td>{link}</td></tr>'
        )
    if not lines:
        return "<p>No row is missing.</p>"
    heads = _th("Task", "text") + _th("by", "text") + _th("status", "text") + _th("rows")
    heads += _th("reason", "text") + _th("first at")
    return _table("Why rows failed or have no score, most frequent first", heads, f"<tbody>{''.join(lines)}</tbody>")


def _provenance(facts: Facts, labels: Mapping[tuple[str, str], str]) -> str:
    parts = []
    if facts["commands"]:
        commands = "".join(
            f"<dt>{_text(what)}</dt><dd><pre><code>{_text(command)}</code></pre></dd>"
            for what, command in facts["commands"].items()
        )
        where = f'<p class="note">Run in <code>{_text(facts["folder"])}</code></p>' if facts["folder"] else ""
        parts.append(f'<h3>Commands</h3>\n{where}<dl class="commands">{commands}</dl>')
    signatures = "".join(
        f'<tr><th scope="row">{escape(label)}</th>'
        f'<td class="text long"><code>{_text(_signature(facts, key))}</code></td></tr>'
        for key, label in labels.items()
    )
    if signatures:
        heads = _th("Metric", "text") + _th("signature", "text")
        caption = "Values with different signatures cannot be compared"
        parts.append(f"<h3>Signatures</h3>\n{_table(caption, heads, f'<tbody>{signatures}</tbody>')}")
    for entry in facts["tasks"]:
        pairs = "".join(
            f'<dt>{_text(name)}</dt><dd class="{kind}">{_text(value, 8 * _CELL)}</dd>'
            for name, value, kind in _list_provenance(entry)
            if value
        )
        parts.append(f'<h3 dir="auto">{_name(entry["task"])}</h3>\n<dl class="pairs">{pairs}</dl>')
    parts += map(match_provenance, facts.get("matches", ()))
    return "\n".join(parts)


def _list_provenance(entry: Facts) -> Iterator[tuple[str, str, str]]:
    """The provenance of a task's numbers: (name, value, CSS class)."""
    run, evaluation, dataset = entry["run"], entry["evaluation"], entry["dataset"]
    origin, spec = run["provenance"] or {}, run["spec"]
    for kind, made in (("run", run), ("evaluation", evaluation), ("dataset", dataset)):
        if made:
            yield kind, f"{made['id']}  {made['name'] or ''}", "code"
            yield f"{kind} digest", made["digest"] or "", "code"
    yield "begun", format_creation(run), ""
    yield "asked", f"{spec['examples']:,} examples × {spec['replications']:,}, seed {spec['seed']}", ""
    yield "attempt", str(run["attempt"] + 1) if run["attempt"] else "", ""
    yield "task", json_text(spec["task"]), "code"
    for name, scorer in (evaluation["spec"]["scorers"] if evaluation else {}).items():
        yield f"scorer {name}", json_text(scorer), "code"
    yield "data from", dataset["source"] or "", "code"
    yield (
        "roles",
        json_text({k: v for k, v in (dataset["roles"] or {}).items() if v}) if dataset["roles"] else "",
        "code",
    )
    if source := experiment_origin(run):
        yield "experiment", source.path, "code"
        yield "its digest", source.digest or "", "code"
    policy = origin.get("policy") or {}
    yield "policy", ", ".join(f"{name} {'none' if v is None else v}" for name, v in policy.items()), ""
    for made in (run, evaluation):
        unpinned = ((made or {}).get("provenance") or {}).get("unpinned") or ()
        yield "unpinned", "; ".join(unpinned), "warn"
    yield "defaulted", defaulted_text(origin), "warn"
    versions = {"evaluand": origin.get("evaluand"), "python": origin.get("python")} | (origin.get("packages") or {})
    yield "versions", ", ".join(f"{name} {v}" for name, v in versions.items() if v), ""
    yield "platform", origin.get("platform") or "", ""
    yield "git", git_text(origin), "code"


_BROWSER = """<noscript><p>Allow this page to run its script to browse the examples.</p></noscript>
<div data-part="rows"></div>"""


def _pieces(examples: Iterable[Facts]) -> Iterator[tuple[int, bytes]]:
    """(number of the first row, compressed rows) of each piece."""
    pending: list[bytes] = []
    size = start = 0
    for row in examples:
        pending.append(orjson.dumps(row | {"index": str(row["index"])}, option=orjson.OPT_NON_STR_KEYS))
        size += len(pending[-1])
        if len(pending) == _CHUNK_ROWS or size >= _CHUNK_BYTES:
            yield start, compress(b"[" + b",".join(pending) + b"]")
            start += len(pending)
            pending, size = [], 0
    if pending:
        yield start, compress(b"[" + b",".join(pending) + b"]")


def _signature(facts: Facts, key: tuple[str, str]) -> str:
    """A metric's signature, and the clusters of its intervals if rows are not independent."""
    clusters = clusters_text(row for row in _rows_with_key(facts["metrics"], key) if not row["by"])
    return f"{key[1]}, by {clusters}" if clusters else key[1]


def _value_format(facts: Facts, key: tuple[str, str]) -> str:
    return number_format(row[n] for row in _rows_with_key(facts["metrics"], key) for n in _NUMBERS)


def _rows_with_key(rows: Iterable[Facts], key: tuple[str, str]) -> list[Facts]:
    """The values of one metric, by its scorer and signature."""
    return [row for row in rows if (row["scorer"], row["signature"]) == key]


def _format_value(value: float | None, form: str | None) -> str:
    return "–" if value is None else format(value, form or "")


def _target(row: Facts) -> str:
    return "" if row["target"] is None else f" · {_name(row['target'])}"
