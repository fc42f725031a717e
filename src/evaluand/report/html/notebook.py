"""Artifacts and values as notebooks show them: in the tables of a report, which need no script and no style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from evaluand.aggregation.aggregator import Aggregation, find_summary
from evaluand.comparison.comparing import Comparison
from evaluand.core.text.html_table import escape_markup, html_notes
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.names import name_in_tables
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.report import Part, comparison_facts, report_facts
from evaluand.report.html.comparisons import comparisons_section
from evaluand.report.html.report import summary_section
from evaluand.report.metric_labels import distinct_values, metric_labels
from evaluand.report.text import SHORT_ID, group_name
from evaluand.run.runner import Run
from evaluand.store.store import caveats

_NUMBERS: Final = ("value", "low", "high", "worst", "best", "n", "n_scored", "n_failed", "n_abstained")


def run_html(run: Run) -> str:
    """Rows by status, what is missing, and what it cost."""
    return html_notes([repr(run)]) + _summarize(Part(run.name or run.id[:SHORT_ID], run, None), [])


def evaluation_html(evaluation: Evaluation) -> str:
    """Its metrics with intervals if they have been computed, else rows by status; and what is missing."""
    title, run = html_notes([repr(evaluation)]), evaluation.run
    if run is None:
        return title + html_notes(["its run is not in this store"])
    summary = find_summary(evaluation)
    name = evaluation.name or evaluation.id[:SHORT_ID]
    if summary is None:
        return title + _summarize(Part(name, run, evaluation), [])
    label = summary.label_of(evaluation)
    values = [row for row in metrics_facts(summary) if row["task"] == label]
    return title + _summarize(Part(label, run, evaluation), values)


def _summarize(part: Part, values: Sequence[Facts]) -> str:
    facts = report_facts(part.task, [part], values, distributions=False)
    return summary_section(facts, metric_labels(facts["metrics"]))


def aggregation_html(aggregation: Aggregation) -> str:
    """Every value with its interval and counts."""
    notes = [repr(aggregation), *caveats(aggregation.store, [(aggregation.kind, aggregation.id)])]
    return html_notes(notes) + values_html(metrics_facts(aggregation))


def comparison_html(comparison: Comparison) -> str:
    """Every difference with its interval, p value and verdict."""
    rows = [row | {"flips": []} for row in comparison_facts(comparison, comparison.labels)]  # they link to a report
    return html_notes([repr(comparison), *comparison.caveats]) + comparisons_section({"comparisons": rows})


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
    below = "".join(f"<p>{escape_markup(note)}</p>" for note in notes)
    return f"<table><thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody></table>{below}"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape_markup(text)}</{tag}>' for text in texts)}</tr>"


def _format(number: float | None) -> str:
    if isinstance(number, int):
        return f"{number:,}"
    return "" if number is None else f"{number:.4g}"
