"""Tables for the terminal, made from facts alone, so that they always agree with `--json`."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluand.core.errors import plural
from evaluand.report.facts.aggregation import confusion_matrix
from evaluand.report.facts.base import Facts
from evaluand.report.metric_labels import distinct_values, metric_labels, value_formats, value_texts, values_alone
from evaluand.report.terminal.cells import (
    CELL,
    count_text,
    plain_table,
    status_text,
)
from evaluand.report.terminal.disparities import disparities_table
from evaluand.report.terminal.judges import standings_table
from evaluand.report.terminal.ratings import ratings_table
from evaluand.report.terminal.worst_groups import worst_groups_table
from evaluand.report.text import (
    SHORT_ID,
    bracketed,
    clusters_text,
    example_name,
    group_name,
    number_format,
    numbers,
    rests_on,
    row_bounds,
    safe,
)
from evaluand.report.usage import step_usage_lines

_WIDE = 104
_REASONS = 3
_MATRIX = 60
_CLASS = 12
_CURVES = {
    "roc": "the ROC curve",
    "precision_recall": "the curve of precision and recall",
    "residuals": "the errors",
}
_EARLIER_WORK = {"retried": "retried", "reused": "reused", "kept": "already stored", "skipped": "skipped"}


def results_table(facts: Facts, *, quiet: bool = False) -> RenderableType:
    """The results of an experiment."""
    parts: list[RenderableType] = []
    if not quiet:
        parts.append(_steps_table(facts["tasks"], facts["matches"]))
    if facts["metrics"]:  # none where responses are compared and not graded
        parts.append(metrics_table(facts["metrics"]))
    parts += [Text(safe(sentence), "yellow") for sentence in facts["caveats"]]
    if facts.get("unread"):
        parts.append(unread_lines(facts["unread"]))
    if judges := _all_judges(facts):
        parts.append(standings_table(judges))
    parts += [
        Group(Text(safe(each["matches"], CELL), "bold"), ratings_table(each["ratings"]))
        for each in facts["matches"]
        if _has_ratings(each)
    ]
    if facts["disparities"]:
        parts.append(disparities_table(facts["disparities"]))
    if facts["worst_groups"]:
        parts.append(worst_groups_table(facts["worst_groups"]))
    parts += curves_tables(facts)
    missing = [(entry["task"], reason) for entry in facts["tasks"] for reason in entry["missing"]]
    missing += [(each["matches"], {"scorer": None} | reason) for each in facts["matches"] for reason in each["missing"]]
    if missing:
        parts.append(missing_table(missing))
    return Group(*itertools.islice(itertools.chain.from_iterable(("", part) for part in parts), 1, None))


def _all_judges(facts: Facts) -> list[Facts]:
    """The judges of scores and of matches."""
    return [*facts["judges"], *(judge for each in facts["matches"] for judge in each["judges"])]


def metrics_table(rows: Sequence[Facts]) -> RenderableType:
    """Values with interval, bounds and counts: a line per task, metric and group, and the metrics' signatures."""
    labels = metric_labels(rows)
    signatures = Table.grid(padding=(0, 2, 0, 0))
    signatures.add_column(overflow="fold")
    signatures.add_column(overflow="fold", style="dim")
    for key, label in labels.items():
        clusters = clusters_text(row for row in rows if not row["by"] and (row["scorer"], row["signature"]) == key)
        signatures.add_row(Text(label), Text(f"{safe(key[1])}{f', by {clusters}' if clusters else ''}"))
    return Group(_Metrics(rows, labels), "", signatures)


def curves_tables(facts: Facts) -> Iterator[RenderableType]:
    """Reliabilities, and confusion matrices that fit a narrow terminal; the names of other curves, for the report."""
    labels, rest = metric_labels(facts["metrics"]), dict[str, None]()
    matrices: dict[tuple[Any, ...], list[Facts]] = {}
    for row in facts["curves"]:
        label = labels[row["scorer"], row["signature"]]
        if row["by"]:
            continue
        if row["curve"] == "confusion":
            matrices.setdefault((row["task"], label, row["target"]), []).append(row)
        elif row["curve"] == "calibration":
            yield Group(_curve_title(row, label), _reliability(row["points"], row["part"]))
        else:
            rest[f"{_CURVES[row['curve']]} of {label}"] = None
    for (task, label, target), rows in matrices.items():
        matrix = _matrix(*confusion_matrix(rows))
        if matrix is None:
            rest[f"the matrix of {label}"] = None
            continue
        yield Group(_curve_title({"task": task, "target": target, "part": None}, label), matrix)
    if rest:
        yield Text(f"see the report for {', '.join(rest)}", "dim")


def _curve_title(curve: Facts, label: str) -> Text:
    parts = [safe(part, CELL) for part in (curve["part"], curve["target"]) if part is not None]
    return Text(" · ".join([safe(curve["task"], CELL), label, *parts]), "bold")


def _reliability(points: Mapping[str, Sequence[Any]], label: str | None) -> Table:
    """How often the rows of each bin are right, or have the label whose probability the bins are of.

    In bold where the interval does not hold the mean confidence of the rows.
    """
    heads = ("mean confidence", "right") if label is None else ("mean probability", "with the label")
    table = plain_table(numbers=(*heads, "interval", "rows"))
    for said, right, low, high, n in zip(*(points[name] for name in ("x", "y", "low", "high", "n")), strict=True):
        texts = numbers(said, right, *(() if low is None else (low, high)))
        between = "" if low is None else f"[{texts[2]}, {texts[3]}]"
        off = low is not None and not low <= said <= high
        table.add_row(texts[0], Text(texts[1], "bold" if off else ""), between, f"{n:,.6g}")
    return table


def _matrix(classes: Sequence[str | None], cells: Sequence[Sequence[float]]) -> Table | None:
    """Truths by line, predictions by column, the diagonal in bold; None if it is too wide."""
    names = ["all others" if label is None else safe(label, _CLASS) for label in classes]
    form = number_format(n for line in cells for n in line)
    figures = max((len(format(n, form)) for line in cells for n in line), default=0)
    if sum(max(cell_len(name), figures) + 2 for name in names) > _MATRIX:
        return None
    table = plain_table("truth \\ predicted", numbers=names)
    for own, (name, line) in enumerate(zip(names, cells, strict=True)):
        table.add_row(
            Text(name), *(Text(format(n, form), "bold" if own == i else "" if n else "dim") for i, n in enumerate(line))
        )
    return table


def missing_table(missing: Sequence[tuple[str, Facts]]) -> RenderableType:
    """Why rows have no score: the most frequent reasons by task and scorer."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for (task, scorer), group in itertools.groupby(missing, lambda pair: (pair[0], pair[1]["scorer"])):
        reasons = [reason for _, reason in group]
        label = " · ".join(safe(part, CELL) for part in (task, scorer) if part)
        for reason in reasons[:_REASONS]:
            why = Text(
                f"{safe(reason['reason'], 3 * CELL)} (first: {example_name(reason['first'], reason.get('first_id'))})"
            )
            grid.add_row(Text(label), count_text(reason["count"]), status_text(reason["status"]), why)
            label = ""
        rest = reasons[_REASONS:]
        if rest:
            others = f"for {plural(len(rest), 'other reason')} (--json lists all)"
            grid.add_row("", count_text(sum(r["count"] for r in rest)), Text("more", "dim"), Text(others, "dim"))
    return grid


def unread_lines(unread: Sequence[Facts]) -> RenderableType:
    """Which replies could not be read, a sentence for each system and scorer."""
    return Text("\n".join(each["sentence"] for each in unread), "yellow")


class _Metrics:
    """The table of values; bounds get a column where there is room, else a line."""

    def __init__(self, rows: Sequence[Facts], labels: Mapping[tuple[str, str], str]) -> None:
        self._rows, self._labels, self._formats = distinct_values(rows), labels, value_formats(rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bounded = any(row["worst"] != row["best"] for row in self._rows)
        wide = bounded and options.max_width >= _WIDE
        yield self._table(wide, any(row["n_skipped"] for row in self._rows))

    def _table(self, wide: bool, skipped: bool) -> Table:
        counts = ["n", "scored", "failed", "abstained", *["skipped"] * skipped]
        counts += ["rests on"] * (based := any(row["by"] and rests_on(row) for row in self._rows))
        numbers = ["value", "interval", *["worst … best"] * wide, *counts]
        table = plain_table("", folded=[""], numbers=numbers)
        task = None
        for row in self._rows:
            if row["task"] != task:
                task = row["task"]
                table.add_row(Text(safe(task, CELL), "bold"))
            form = self._formats[row["scorer"], row["signature"]]
            value, low, high, worst, best = value_texts(row, form)
            interval = bracketed(low, high)
            bounds = row_bounds(row, worst, best)
            table.add_row(
                self._label(row),
                value,
                interval,
                *[bounds] * wide,
                *_row_counts(row, skipped),
                *[rests_on(row)] * based,
            )
            indent = " " * (4 if row["by"] else 2)
            for alone in values_alone(row):
                mean, low, high, n = alone.cells()
                interval = bracketed(low, high)
                cells = (f"{indent}  {alone.who}", mean, interval, *[""] * wide, n)
                table.add_row(*(Text(cell, "dim") for cell in cells))
            if bounds and not wide:
                table.add_row(Text(f"{indent}worst … best", "dim"), "", Text(bounds, "dim"))
            if row["reason"]:
                why = Text(safe(row["reason"], 2 * CELL), "dim")
                table.add_row(Padding(why, (0, 0, 0, len(indent))))
        return table

    def _label(self, row: Facts) -> Padding:
        target = "" if row["target"] is None else safe(row["target"], CELL)
        if not row["by"]:
            label = self._labels[row["scorer"], row["signature"]]
            return Padding(Text(label + (f" · {target}" if target else "")), (0, 0, 0, 2))
        return Padding(Text(", ".join([*([target] if target else []), group_name(row["by"])])), (0, 0, 0, 4))


def _row_counts(row: Facts, skipped: bool) -> list[Text]:
    return [
        count_text(row["n"]),
        count_text(row["n_scored"]),
        count_text(row["n_failed"], "red"),
        count_text(row["n_abstained"], "yellow"),
        *[count_text(row["n_skipped"])] * skipped,
    ]


def _steps_table(tasks: Sequence[Facts], matches: Sequence[Facts]) -> RenderableType:
    """What each step did, one line each."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold", style="bold")
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for entry in tasks:
        label = safe(entry["task"], CELL)
        for step in ("run", "evaluation") if entry["evaluation"] is not None else ("run",):
            reasons = (m for m in entry["missing"] if (m["scorer"] is None) == (step == "run"))
            failed = Counter[str]()
            for reason in reasons:
                if reason["status"] == "failed":
                    failed[_kind_of_error(reason["reason"])] += reason["count"]
            grid.add_row(Text(label), step, entry[step]["id"][:SHORT_ID], _describe_step(entry[step], failed))
            _add_usage(grid, entry[step])
            label = ""
    _add_match_steps(grid, matches)
    return grid


def matches_table(facts: Facts) -> RenderableType:
    """A set of matches: what judging took, the ratings, and why matches have no outcome."""
    parts: list[RenderableType] = [_steps_table([], [facts])]
    parts += [Text(safe(sentence), "yellow") for sentence in facts["caveats"]]
    if _has_ratings(facts):
        parts += ["", ratings_table(facts["ratings"])]
    if facts["missing"]:
        parts += ["", missing_table([(facts["matches"], {"scorer": None} | reason) for reason in facts["missing"]])]
    return Group(*parts)


def _has_ratings(matches: Facts) -> bool:
    """Whether there are ratings to show; not those of equal responses alone, where the judge failed on all others."""
    return matches["ratings"] is not None and matches["judge_error"] is None


def _add_match_steps(grid: Table, matches: Sequence[Facts]) -> None:
    for each in matches:
        failed = Counter({safe(kind, CELL): n for kind, n in each["failures"].items()})
        grid.add_row(Text(safe(each["matches"], CELL)), "judge", each["id"][:SHORT_ID], _describe_step(each, failed))
        _add_usage(grid, each)


def _add_usage(grid: Table, step: Facts) -> None:
    for line in step_usage_lines(step):
        grid.add_row("", "", "", Text(line, "dim"))


def _kind_of_error(reason: str) -> str:
    """The class of the error in a reason such as `scorer: ValueError: no`."""
    return safe(reason.removeprefix("scorer: ").partition(":")[0], CELL)


def _describe_step(step: Facts, failed: Counter[str]) -> Text:
    """What one step did, and how many of its calls or grades failed."""
    receipt = step["receipt"] or {"called": 0, "reused": 0, "kept": 0, "skipped": 0, "retried": 0, "why": ""}
    parts = [f"{receipt['called']:,} done now"] if receipt["called"] else []
    parts += [f"{receipt[name]:,} {word}" for name, word in _EARLIER_WORK.items() if receipt[name]]
    why = safe(receipt["why"], 6 * CELL)
    if not receipt["called"] and not receipt["reused"]:
        parts, why = [why or "nothing to do"], ""
    text = Text(", ".join(parts))
    if failed:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in failed.most_common())
        text.append(f"; {failed.total():,} failed{'' if receipt['called'] else ' earlier'} ({kinds})", "red")
    return text.append(f" ({why})" if why else "")
