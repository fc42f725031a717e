"""Histograms: how the numbers of a column of a dataset are distributed, and those of the rows of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.models.usage_total import costs_of
from evaluand.report.facts.base import Facts
from evaluand.report.histograms import count_between, find_edges
from evaluand.report.html.charts import histogram
from evaluand.report.page.resources.base import Source, resource
from evaluand.report.page.resources.rows import find_rows, list_parts
from evaluand.run.runner import Run


def draw_histogram(values: np.ndarray) -> Facts | None:
    """The histogram of numbers, as a chart with its edges and counts; None if they do not differ."""
    edges = find_edges(values)
    if edges is None:
        return None
    counts = count_between(values, edges)
    return {"edges": edges, "counts": counts, "chart": histogram(edges, counts)}


@resource("histograms/{run}/{evaluation}", list_parts)
def read_histograms(source: Source, run: str, evaluation: str) -> Facts:
    """How the scores, durations, tokens and costs of the rows of a run are distributed.

    `name` is what a filter of the rows calls the numbers, as its parts; None for those that filters cannot name. With
    `lowest` a number is the lowest score of a row, of which some rows have several.
    """
    key = "histograms", run, evaluation, source.list_ids(AGGREGATIONS)
    return source.facts.get(key, lambda: _describe_all(source, run, evaluation))


def _describe_all(source: Source, run: str, evaluation: str) -> Facts:
    rows = find_rows(source, run, evaluation)
    numbers: list[tuple[str, list[str] | None, str, np.ndarray]] = [
        (name, ["score", name], "", of.value) for name, of in rows.columns.scorers.items()
    ]
    scores = {each["scorer"]: each["n"] for each in rows.scores}
    numbers.append(("duration", ["duration"], "seconds", rows.columns.duration))
    tokens, costs = _read_usage(rows.part.run)
    numbers.append(("tokens", None, "", tokens))
    numbers += (("cost", None, currency, values) for currency, values in (costs or {"": np.zeros(0)}).items())
    described = [_describe(*each) for each in numbers]
    for each in described:
        each["lowest"] = each["name"] is not None and scores.get(each["name"][-1], 0) > each["n"] and each["n"] > 0
    return {
        "rows": len(rows.columns),
        "quantities": [each for each in described if each["n"]],
        "absent": [each["title"] for each in described if not each["n"]],
    }


def _describe(title: str, name: list[str] | None, unit: str, values: np.ndarray) -> Facts:
    finite = values[np.isfinite(values)]
    ends: list[Any] = [float(finite.min()), float(finite.max())] if len(finite) else [None, None]
    drawn = draw_histogram(finite)
    return {"title": title, "name": name, "unit": unit, "n": len(finite), "ends": ends, "drawn": drawn}


def _read_usage(run: Run) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The tokens of the rows that say them, and the costs by currency of those that say these."""
    tokens, costs = [], dict[str, list[float]]()
    for usage in _iterate_usages(run):
        counts = [usage[name] for name in ("input_tokens", "output_tokens") if usage[name] is not None]
        if counts:
            tokens.append(sum(counts))
        for currency, cost in costs_of(usage).items():
            costs.setdefault(currency, []).append(cost)
    return np.array(tokens, np.float64), {currency: np.array(of) for currency, of in sorted(costs.items())}


def _iterate_usages(run: Run) -> Iterator[Facts]:
    for batch in run.batches(["usage"]):
        yield from (usage for usage in batch.column("usage").to_pylist() if usage is not None)
