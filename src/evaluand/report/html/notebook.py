"""Values as the table of a notebook cell, with intervals and counts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from evaluand.metrics.names import name_in_tables
from evaluand.report.metric_labels import distinct_values
from evaluand.report.text import group_name

_NUMBERS: Final = ("value", "low", "high", "worst", "best", "n", "n_scored", "n_failed", "n_abstained")


def values_html(rows: Sequence[Mapping[str, Any]], notes: Iterable[str] = ()) -> str:
    """A line for each value: the task where rows name one, the metric, the group, the value, its interval and counts.

    Args:
        rows: values as plain data, NaN as None.
        notes: sentences below the table, such as verdicts of comparisons.

    Example:
        >>> values_html([{"signature": "accuracy v1", "by": {}, "value": 0.5, "n": 4}])[-57:]
        'td>4</td><td></td><td></td><td></td></tr></tbody></table>'
    """
    with_task = any("task" in row for row in rows)
    lines = [_cells("th", [*(("task",) if with_task else ()), "metric", "group", *_NUMBERS])]
    for row in distinct_values(rows):
        texts = [str(row["task"])] if with_task else []
        texts += [name_in_tables(row["signature"]), group_name(row["by"])]
        lines.append(_cells("td", [*texts, *(_format(row.get(name)) for name in _NUMBERS)]))
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<table><thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody></table>{below}"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(text)}</{tag}>' for text in texts)}</tr>"


def _format(number: float | None) -> str:
    if isinstance(number, int):
        return f"{number:,}"
    return "" if number is None else f"{number:.4g}"
