"""The sections of a report on confusion matrices, curves and disparities of groups."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from evaluand.aggregation.disparity import SMALL
from evaluand.core.errors import plural
from evaluand.metrics.base.curves import part_name
from evaluand.report.facts.aggregation import confusion_matrix
from evaluand.report.facts.base import Facts
from evaluand.report.html import charts
from evaluand.report.html.charts import Axis, Dot, Plot, Series
from evaluand.report.html.page import clean, figure, name, table, th
from evaluand.report.text import (
    LABEL,
    between,
    disparity_phrase,
    family_notes,
    group_name,
    join_names,
    number_format,
    numbers,
    safe,
)

Labels = Mapping[tuple[str, str], str]

_OTHERS: Final = "all others"
_SHADES: Final = 10
_AT_RATES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_AT_RECALLS: Final = (0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
_FAMILIES: Final = {
    "differences": ("difference", "difference_to_overall"),
    "ratios": ("ratio", "ratio_to_overall"),
    "least and greatest values": ("min", "max"),
}


# Confusion


def confusion_section(facts: Facts, labels: Labels) -> str:
    """Each matrix as a table, its cells shaded by their fraction of the row."""
    parts = []
    for key, label, curves in _metrics_with_curves(facts, labels, ("confusion",)):
        matrices = [
            f"<div>{_matrix(f'{name(task)}{_target(target)}', rows, _n_classes(facts, key, task, target))}</div>"
            for (task, target), rows in _split(curves, "task", "target").items()
        ]
        parts.append(f'<h3>{escape(label)}</h3>\n<div class="matrices">{"".join(matrices)}</div>')
    note = '<p class="note">Rows by truth and prediction, with their percentage of all rows of that truth.</p>\n'
    return note + "\n".join(parts) if parts else ""


def _matrix(caption: str, rows: Sequence[Facts], n_classes: int) -> str:
    classes, cells = confusion_matrix(rows)
    form = number_format(n for line in cells for n in line)
    names = [_OTHERS if label is None else label for label in classes]
    heads = th("truth ↓ predicted →", "text") + "".join(f'<th scope="col">{_class(label)}</th>' for label in classes)
    heads += th("rows")
    lines = []
    for own, (label, line) in enumerate(zip(classes, cells, strict=True)):
        total = sum(line)
        shaded = "".join(
            _cell(n, total, form, own == place, f"{names[own]} predicted as {names[place]}")
            for place, n in enumerate(line)
        )
        lines.append(f'<tr><th scope="row">{_class(label)}</th>{shaded}<td>{total:{form}}</td></tr>')
    note = ""
    if None in classes:
        left = n_classes - len(classes) + 1
        others = f"the {left:,} others" if left > 0 else "the others"
        note = f'<p class="note">The {len(classes) - 1} classes with most rows; {others} are combined.</p>'
    return table(f"{caption}: rows by truth and prediction", heads, f"<tbody>{''.join(lines)}</tbody>", "matrix") + note


def _class(label: str | None) -> str:
    return f'<span class="muted">{_OTHERS}</span>' if label is None else name(label)


def _cell(n: float, total: float, form: str, own: bool, description: str) -> str:
    if not n:
        return f'<td class="none{" own" if own else ""}">0</td>'
    share = n / total
    shade = max(1, math.ceil(share * _SHADES - 1e-9))
    title = f"{description}: {n:{form}} of {total:{form}}"
    return (
        f'<td class="h{shade}{" own" if own else ""}" title="{clean(title, 4 * LABEL)}">{n:{form}}'
        f'<span class="share">{100 * share:.{0 if share >= 0.1 else 1}f} %</span></td>'
    )


def _n_classes(facts: Facts, key: tuple[str, str], task: str, target: str | None) -> int:
    """The number of classes, of which a matrix shows the most frequent; 0 if unknown."""
    for row in facts["metrics"]:
        if (row["scorer"], row["signature"], row["task"], row["target"]) == (*key, task, target) and not row["by"]:
            classes = (row["data"] or {}).get("classes") or []
            return 0 if None in classes else len(classes)
    return 0


# Curves


def curves_section(facts: Facts, labels: Labels) -> str:
    """A plot for each metric, target and class, with all tasks in it."""
    parts = []
    tasks = [entry["task"] for entry in facts["tasks"]]
    seen: list[Any] = []
    drawn: dict[str, None] = {}
    for key, label, curves in _metrics_with_curves(facts, labels, tuple(_PLOTTED)):
        curves = [curve for curve in curves if _is_new(curve, seen)]
        if not curves:
            continue
        kind = curves[0]["curve"]
        title = f"Errors of {name(key[0])}" if kind == "residuals" else escape(label)
        alone = len({curve["task"] for curve in curves}) == 1
        plots = [
            f'<figure class="plot2"><figcaption>{_caption(part, target, alone, group, facts, key)}</figcaption>'
            f"{_PLOTTED[kind](group, tasks, _plain_suffix(part, target))}</figure>"
            for (part, target), group in _split(curves, "part", "target").items()
        ]
        by_group = _by_group(facts, key)
        wide = " wide" if len(plots) > 1 or by_group else ""
        parts.append(
            f'<div class="plotted{wide}"><h3>{title}</h3>\n<div class="planes">{"".join(plots)}</div>\n'
            f'<p class="note">{_note(kind, curves)}{_cut(facts, key, curves)}</p>{by_group}</div>'
        )
        drawn |= dict.fromkeys(curve["task"] for curve in curves)
    legend = "".join(
        f"<li>{charts.key(tasks.index(task))}{_stroke(tasks.index(task))}{name(task)}</li>" for task in drawn
    )
    legend = f'<ul class="legend">{legend}</ul>\n' if len(drawn) > 1 else ""
    return f'{legend}<div class="planes">{"".join(parts)}</div>' if parts else ""


def _note(kind: str, curves: Sequence[Facts]) -> str:
    """What the plots of a kind show; a reliability curve is that of a label, or of whatever was answered."""
    of_label = kind == "calibration" and curves[0]["part"] is not None
    return _NOTES[kind].format(*_OF_LABEL if of_label else _OF_ANSWER)


def _by_group(facts: Facts, key: tuple[str, str]) -> str:
    """The curves of each grouping, with a line for each of the largest groups."""
    rows = [row for row in facts["metrics"] if (row["scorer"], row["signature"]) == key and row["by"]]
    curves = [
        curve | {"line": group_name(curve["by"]), "lines": "group"}
        for curve in facts["curves"]
        if (curve["scorer"], curve["signature"]) == key and curve["by"]
    ]
    parts = []
    for names in dict.fromkeys(tuple(row["by"]) for row in rows):
        sizes: dict[str, int] = {}
        for row in rows:
            if tuple(row["by"]) == names:
                group = group_name(row["by"])
                sizes[group] = sizes.get(group, 0) + row["n_scored"]
        mine = [curve for curve in curves if tuple(curve["by"]) == names]
        parts.append(f"<h4>By {clean(', '.join(names), 4 * LABEL)}</h4>\n{_group_plots(mine, sizes, facts)}")
    return "\n".join(parts)


def _group_plots(curves: Sequence[Facts], sizes: Mapping[str, int], facts: Facts) -> str:
    """A plot for each task, target and class with a line for each group; `sizes`: rows by group, in order."""
    drawn = {curve["line"] for curve in curves}
    largest = sorted(filter(drawn.__contains__, sizes), key=lambda group: -sizes[group])[: charts.SERIES]
    shown = [group for group in sizes if group in largest]
    split = _split([curve for curve in curves if curve["line"] in shown], "task", "part", "target")
    plots = "".join(
        f'<figure class="plot2"><figcaption>{_group_caption(task, part, target, facts)}</figcaption>'
        f"{_PLOTTED[mine[0]['curve']](mine, shown, _plain_suffix(part, target))}</figure>"
        for (task, part, target), mine in split.items()
    )
    legend = "".join(
        f"<li>{charts.key(number)}{_stroke(number)}<bdi>{clean(group, 2 * LABEL)}</bdi></li>"
        for number, group in enumerate(shown)
    )
    left = len(sizes) - len(shown)
    why = f", of {len(sizes):,}: shown are those with the most rows" if shown else ""
    note = f'<p class="note">{plural(left, "group")} without a line here{why}.</p>' if left else ""
    return f'<ul class="legend">{legend}</ul>\n<div class="planes">{plots}</div>\n{note}' if shown else note


def _group_caption(task: str, part: str | None, target: str | None, facts: Facts) -> str:
    parts = [task] if len(facts["tasks"]) > 1 else []
    parts += [text for text in (part, target) if text is not None]
    return " · ".join(map(name, parts)) or "all rows"


def _is_new(curve: Facts, seen: list[Any]) -> bool:
    """Whether no other metric has the same curve: errors are the same for every metric of them."""
    if curve["curve"] != "residuals":
        return True
    drawn = [curve[name] for name in ("task", "scorer", "target", "points")]
    if drawn in seen:
        return False
    seen.append(drawn)
    return True


def _stroke(series: int) -> str:
    s = series % charts.SERIES
    return (
        '<svg class="key" aria-hidden="true" width="26" height="14">'
        f'<polyline class="line s{s} d{s}" points="0 7 26 7"/></svg>'
    )


def _caption(
    part: str | None, target: str | None, alone: bool, group: Sequence[Facts], facts: Facts, key: tuple[str, str]
) -> str:
    """The caption of a plot, with the value if there is one task."""
    caption = " · ".join(name(text) for text in (part, target) if text is not None)
    value = _value(facts, key, group[0]) if alone else None
    caption = caption or ("all rows" if group[0]["curve"] != "precision_recall" else "all boxes and classes")
    return caption if value is None else f'{caption} <span class="value">{numbers(value)[0]}</span>'


def _value(facts: Facts, key: tuple[str, str], curve: Facts) -> float | None:
    """The value of a curve: that of its class, or the metric's if the curve is of all rows."""
    if curve["curve"] == "residuals":
        return None
    for row in facts["metrics"]:
        if row["by"] or (row["scorer"], row["signature"], row["task"], row["target"]) != (
            *key,
            curve["task"],
            curve["target"],
        ):
            continue
        data = row["data"] or {}
        classes = {part_name(c["label"]): c["value"] for c in data.get("classes") or () if isinstance(c, dict)}
        classes |= {label: c["value"] for label, c in (data.get("labels") or {}).items()}
        value: float | None = classes.get(curve["part"]) if classes else row["value"]
        return value
    return None


def _cut(facts: Facts, key: tuple[str, str], curves: Sequence[Facts]) -> str:
    """A note if only some classes are shown."""
    shown = len({curve["part"] for curve in curves})
    there = 0
    for row in facts["metrics"]:
        if (row["scorer"], row["signature"]) == key and not row["by"]:
            data = row["data"] or {}
            there = max(there, len(data.get("classes") or data.get("labels") or ()))
    return f" The {shown} classes with most rows, of {there:,}." if 1 < shown < there else ""


def _roc(curves: Sequence[Facts], names: Sequence[str], what: str) -> str:
    words = _in_words(curves, "the true positive rate", "at a false positive rate of 0.1", 0.1)
    plot = Plot("false positive rate", "true positive rate", f"ROC{what}: {words}", guides=[((0, 0), (1, 1))])
    heads = ("false positive rate", "true positive rate", "threshold")
    lines = [Series(names.index(curve["line"]), _pairs(curve)) for curve in curves]
    return plot.svg(lines) + _numbers(curves, heads, _AT_RATES)


def _precision_recall(curves: Sequence[Facts], names: Sequence[str], what: str) -> str:
    words = _in_words(curves, "the precision", "at a recall of 0.9", 0.9, above=True)
    chance = curves[0]["points"]["y"][-1]
    by_chance = curves[0]["metric"] == "average_precision" and curves[0]["lines"] == "task"  # it differs by group
    guides = [((0.0, chance), (1.0, chance))] if by_chance else []
    plot = Plot("recall", "precision", f"Precision against recall{what}: {words}", guides=guides)
    heads = ("recall", "precision", "threshold")
    steps = [Series(names.index(curve["line"]), _steps(_pairs(curve))) for curve in curves]
    return plot.svg(steps) + _numbers(curves, heads, _AT_RECALLS, above=True)


def _calibration(curves: Sequence[Facts], names: Sequence[str], what: str) -> str:
    said, right = ("confidence", "correct") if curves[0]["part"] is None else ("probability", "with the label")
    words = "; ".join(
        f"{curve['line']}: at {said} " + ", ".join(f"{x:.2f} {100 * y:.0f} % {right}" for x, y in _pairs(curve))
        for curve in curves
    )
    plot = Plot(
        f"mean {said}",
        f"proportion {right}",
        f"Calibration{what}: {safe(words)}",
        guides=[((0, 0), (1, 1))],
        bars="rows",
    )
    series = [
        Series(
            names.index(curve["line"]),
            _pairs(curve),
            ends=list(zip(curve["points"]["low"], curve["points"]["high"], strict=True)),
            dots=True,
            titles=[
                f"{said} {x:.3f}: {y:.3f} {right}, {n:,.0f} rows"
                for (x, y), n in zip(_pairs(curve), curve["points"]["n"], strict=True)
            ],
            bars=list(zip(curve["points"]["x"], curve["points"]["n"], strict=True)),
        )
        for curve in curves
    ]
    return plot.svg(series) + _bins(curves, (f"mean {said}", f"proportion {right}", "interval", "rows"))


def _residuals(curves: Sequence[Facts], names: Sequence[str], what: str) -> str:
    def ends(axis: str, *more: str) -> Axis:
        return Axis.over(v for c in curves for n in (axis, *more) for v in c["points"][n] if v is not None)

    x, y = ends("x"), ends("y", "low", "high")
    binned = curves[0]["points"]["low"][0] is not None
    shown = "median errors in bins of predictions" if binned else "the error of each row"
    zero = [((x.low, 0.0), (x.high, 0.0))] if y.low <= 0 <= y.high else []
    label = f"Errors{what}: {shown}, from {numbers(y.low)[0]} to {numbers(y.high)[0]}"
    plot = Plot("prediction", "truth − prediction", label, x, y, zero)
    series = [
        Series(
            names.index(curve["line"]),
            _pairs(curve),
            ends=list(zip(curve["points"]["low"], curve["points"]["high"], strict=True)),
            line=False,
            dots=True,
        )
        for curve in curves
    ]
    table_ = _bins(curves, ("mean prediction", "median error", "5 % to 95 %", "rows")) if binned else ""
    return plot.svg(series) + table_


_PLOTTED: Final[Mapping[str, Callable[[Sequence[Facts], Sequence[str], str], str]]] = {
    "roc": _roc,
    "precision_recall": _precision_recall,
    "calibration": _calibration,
    "residuals": _residuals,
}
_NOTES: Final = {
    "roc": "True positive rate against false positive rate, for every threshold. The dashed line is chance.",
    "precision_recall": "Precision against recall, for every threshold. A dashed line is chance: the proportion of "
    "rows of the class.",
    "calibration": "The proportion of {} by {}; on the dashed line the two are equal. Whiskers are 95 % intervals of "
    "each bin by itself; the bars below count the rows.",
    "residuals": "Errors (truth − prediction) by prediction. With many rows: the median error of each bin of "
    "predictions, and its 5 % to 95 % range. A trend or a fan shape shows what the mean error hides.",
}

_OF_ANSWER: Final = "correct rows", "the confidence of the answer"
_OF_LABEL: Final = "rows with the label", "its probability"


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """A step line: each precision holds from the recall before it; no value between them is known."""
    before = [0.0, *(x for x, _ in points)]
    return [place for (x, y), start in zip(points, before, strict=False) for place in ((start, y), (x, y))]


def _pairs(curve: Facts) -> list[tuple[float, float]]:
    return list(zip(curve["points"]["x"], curve["points"]["y"], strict=True))


def _point_at(curve: Facts, x: float, above: bool) -> tuple[float, float | None] | None:
    """y and threshold of the last point at or before x, or with `above` of the first at or after it."""
    points = curve["points"]
    place = next((i for i, v in enumerate(points["x"]) if v >= x - 1e-12), -1) if above else None
    if place is None:
        place = bisect_right(points["x"], x + 1e-12) - 1
    return (points["y"][place], points["threshold"][place]) if place >= 0 else None


def _in_words(curves: Sequence[Facts], what: str, where: str, x: float, above: bool = False) -> str:
    points = ((curve["line"], _point_at(curve, x, above)) for curve in curves)
    values = [f"{safe(line, LABEL)} {point[0]:.3f}" for line, point in points if point is not None]
    return f"{what} {where} is " + ", ".join(values) if values else "see the numbers"


def _numbers(curves: Sequence[Facts], heads: tuple[str, str, str], at: Sequence[float], above: bool = False) -> str:
    """Some points of curves as a table."""
    several = len(curves) > 1
    lines = []
    for curve in curves:
        for x in at:
            found = _point_at(curve, x, above)
            if found is None:
                continue
            task = f'<td class="text">{name(curve["line"])}</td>' if several else ""
            threshold = "–" if found[1] is None else f"{found[1]:.4g}"
            lines.append(f'<tr><th scope="row">{x:g}</th>{task}<td>{found[0]:.3f}</td><td>{threshold}</td></tr>')
    if not lines:
        return ""
    head = th(heads[0], "text") + (th(curves[0]["lines"], "text") if several else "") + th(heads[1]) + th(heads[2])
    return _numbers_table(f"{heads[1]} by {heads[0]}", head, lines)


def _bins(curves: Sequence[Facts], heads: tuple[str, str, str, str]) -> str:
    several = len(curves) > 1
    lines = []
    for curve in curves:
        points = curve["points"]
        form_x, form = number_format(points["x"]), number_format([*points["y"], *filter(None, points["low"])])
        rows = zip(*(points[n] for n in ("x", "y", "low", "high", "n")), strict=True)
        for x, y, low, high, n in rows:
            task = f'<td class="text">{name(curve["line"])}</td>' if several else ""
            interval = "" if low is None else between(f"{low:{form}}", f"{high:{form}}")
            cells = f"<td>{y:{form}}</td><td>{interval}</td><td>{n:,.6g}</td>"
            lines.append(f'<tr><th scope="row">{x:{form_x}}</th>{task}{cells}</tr>')
    head = th(heads[0], "text") + (th(curves[0]["lines"], "text") if several else "") + "".join(map(th, heads[1:]))
    return _numbers_table(f"{heads[1]} by {heads[0]}", head, lines)


def _numbers_table(caption: str, head: str, lines: Sequence[str]) -> str:
    body = f"<tbody>{''.join(lines)}</tbody>"
    return f"<details><summary>Numbers</summary>{table(caption, head, body, 'small')}</details>"


# Disparities


def disparities_section(facts: Facts, labels: Labels) -> str:
    """Disparities: dots with their intervals, and a table with the lowest and highest groups."""
    rows = facts.get("disparities") or []
    parts = []
    for (scorer, signature, over), mine in _split(
        [row | {"over_text": ", ".join(row["over"])} for row in rows], "scorer", "signature", "over_text"
    ).items():
        metric = mine[0]["metric"]
        label = labels.get((scorer, signature), "")
        shown = escape(label) if label.startswith(metric) else f"{name(metric)} · {name(scorer)}"
        caption = f"{shown} by {clean(over, 4 * LABEL)}"
        body = _disparity_plots(mine, facts) + _disparity_table(caption, mine) + _flags(mine) + _rated(caption, mine)
        parts.append(f"<h3>{caption}</h3>\n{body}")
    return "\n".join([*(f'<p class="note">{note[0].upper()}{note[1:]}.</p>' for note in family_notes(rows)), *parts])


def _disparity_plots(rows: Sequence[Facts], facts: Facts) -> str:
    """Dots on a common axis for disparities of the same scale."""
    tasks = [entry["task"] for entry in facts["tasks"]]
    several = len({row["task"] for row in rows}) > 1
    plots = []
    for family, kinds in _FAMILIES.items():
        mine = [row for row in rows if row["disparity"] in kinds and row["value"] is not None]
        if not mine:
            continue
        lines: dict[tuple[str, str | None], list[Dot]] = {}
        for row in mine:
            dot = Dot(row["value"], row["low"], row["high"], None, None, tasks.index(row["task"]))
            lines.setdefault((_phrase(row), row["target"]), []).append(dot)
        same = 1.0 if family == "ratios" else 0.0
        more = [] if family.startswith("least") else [same]
        axis = Axis.over([*(v for dots in lines.values() for dot in dots for v in dot.numbers), *more])
        body = [
            f'<tr><th scope="row">{what}{_target(target)}</th><td class="chart">{charts.strip(dots, axis)}</td></tr>'
            for (what, target), dots in lines.items()
        ]
        head = th("Disparity", "text") + th("value and interval", "text")
        note = "" if family.startswith("least") else f", {same:.0f} means no disparity"
        plots.append(figure(f"{family.capitalize()}{note}", head, body, f'<td class="chart">{charts.scale(axis)}</td>'))
    own = dict.fromkeys(row["task"] for row in rows)
    legend = "".join(f"<li>{charts.key(tasks.index(task))}{name(task)}</li>" for task in own)
    return (f'<ul class="legend">{legend}</ul>' if several else "") + "".join(plots)


def _disparity_table(caption: str, rows: Sequence[Facts]) -> str:
    lines = []
    adjusted = any((row.get("family_size") or 0) > 1 for row in rows)
    for row in rows:
        value, *ends = numbers(row["value"], row["low"], row["high"], row.get("family_low"), row.get("family_high"))
        cells = [between(*ends[:2]), *[between(*ends[2:])] * adjusted]
        intervals = "</td><td>".join(cells) + " *" * row["found"]
        why = f'<span class="why">{clean(row["reason"], 4 * LABEL)}</span>' if row["reason"] else ""
        of = f' <span class="why">of {name(row["decided_by"])}</span>' if row["decided_by"] else ""
        groups = "".join(f'<td class="text">{_group(row[end], row["small"])}</td>' for end in ("lowest", "highest"))
        lines.append(
            f'<tr><th scope="row">{_phrase(row)}{of}</th>'
            f'<td class="text">{name(row["task"])}{_target(row["target"])}</td>'
            f'<td class="value">{value}{why}</td><td>{intervals}</td>{groups}<td>{row["n_groups"]:,}</td></tr>'
        )
    heads = th("Disparity", "text") + th("task", "text") + th("value") + th("interval") + th("adjusted") * adjusted
    heads += th("lowest", "text") + th("highest", "text") + th("groups")
    body = f"<tbody>{''.join(lines)}</tbody>"
    return table(f"{caption}, disparities with the lowest and highest groups", heads, body)


def _group(group: Mapping[str, str | None] | None, small: Sequence[Mapping[str, str | None]]) -> str:
    if group is None:
        return ""
    flag = f' <span class="warn">fewer than {SMALL} rows</span>' if dict(group) in [dict(g) for g in small] else ""
    return f"<bdi>{clean(group_name(group) or 'all rows', 2 * LABEL)}</bdi>{flag}"


def _flags(rows: Sequence[Facts]) -> str:
    """Notes on groups that are small or left out."""
    small, left, unjudged = (
        [clean(one, 2 * LABEL) for one in sorted({group_name(group) for row in rows for group in row.get(part) or ()})]
        for part in ("small", "undefined", "unjudged")
    )
    notes = []
    if small:
        notes.append(f"{plural(len(small), 'group')} with fewer than {SMALL} scored rows: {join_names(small)}")
    if left:
        notes.append(f"{plural(len(left), 'group')} without a value, left out: {join_names(left)}")
    if unjudged:
        notes.append(
            f"{plural(len(unjudged), 'group')} with too few rows, listed and not judged: {join_names(unjudged)}"
        )
    return "".join(f'<p class="note warn">{line}</p>' for line in notes)


def _phrase(row: Facts) -> str:
    """What is compared, without the attributes, which the heading names."""
    return clean(disparity_phrase(row).replace(f" by {', '.join(row['over'])}", "", 1), 8 * LABEL)


def _rated(caption: str, rows: Sequence[Facts]) -> str:
    """The groups of disparities with a smallest size: raw values, and beside them shrunk ones."""
    lines = []
    for row in rows:
        for each in row.get("groups") or ():
            cells = f"<td>{each['n']:,.0f}</td>"
            for prefix in ("", "shrunk_"):
                value, low, high = numbers(*(each[f"{prefix}{part}"] for part in ("value", "low", "high")))
                interval = between(low, high)
                cells += f'<td class="value">{value}</td><td>{interval}</td>'
            flag = "" if each["judged"] else '<span class="warn">not judged</span>'
            lines.append(
                f'<tr><th scope="row"><bdi>{clean(group_name(each["by"]), 2 * LABEL)}</bdi></th>'
                f'<td class="text">{name(each["metric"])}</td><td class="text">{name(row["task"])}</td>'
                f'{cells}<td class="text">{flag}</td></tr>'
            )
    if not lines:
        return ""
    heads = "".join(th(head, "text") for head in ("Group", "metric", "task"))
    heads += "".join(th(head) for head in ("rows", "raw", "interval", "shrunk", "interval")) + th("note", "text")
    note = (
        '<p class="note">Shrunk: drawn towards the mean of all groups as far as chance may have moved the raw value'
        " (empirical Bayes). Disparities are those of the raw values.</p>"
    )
    return table(f"{caption}, groups with raw and shrunk values", heads, f"<tbody>{''.join(lines)}</tbody>") + note


# Shared


def _metrics_with_curves(
    facts: Facts, labels: Labels, kinds: Sequence[str]
) -> Iterator[tuple[tuple[str, str], str, list[Facts]]]:
    """(scorer, signature), label and curves over all rows of each metric that has curves of these kinds."""
    whole = [
        curve | {"line": curve["task"], "lines": "task"}
        for curve in facts.get("curves") or ()
        if not curve["by"] and curve["curve"] in kinds
    ]
    for (scorer, signature), curves in _split(whole, "scorer", "signature").items():
        yield (scorer, signature), labels.get((scorer, signature), safe(curves[0]["metric"], LABEL)), curves


def _split(rows: Sequence[Facts], *names: str) -> dict[tuple[Any, ...], list[Facts]]:
    """Rows grouped by some fields, in order of first occurrence."""
    found: dict[tuple[Any, ...], list[Facts]] = {}
    for row in rows:
        found.setdefault(tuple(row[n] for n in names), []).append(row)
    return found


def _target(target: str | None) -> str:
    return "" if target is None else f" · {name(target)}"


def _plain_suffix(part: str | None, target: str | None) -> str:
    own = " · ".join(safe(text, LABEL) for text in (part, target) if text is not None)
    return f" of {own}" if own else ""
