"""Histograms: how the numbers of a column of a dataset are distributed, and those of the rows of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from evaluand.models.usage_total import costs_of
from evaluand.report.facts.base import Facts
from evaluand.report.html.charts import histogram
from evaluand.run.runner import Run
from evaluand.view.resources.base import Source, resource
from evaluand.view.resources.rows import find_rows, list_parts

BINS: Final = 20
_LEAST_WIDTH: Final = 1e-290


def draw_histogram(values: np.ndarray) -> Facts | None:
    """The histogram of finite numbers, as a chart with its edges and counts; None if they do not differ.

    Edges between two bars have few digits, so that a filter with them can be read.
    """
    distinct = np.unique(values).tolist()
    n = min(BINS, len(distinct))
    width = (distinct[-1] - distinct[0]) / n if distinct else 0
    if not _LEAST_WIDTH < width < math.inf:
        return None
    edges = np.linspace(distinct[0], distinct[-1], n + 1)
    rounded = np.round(edges[1:-1], 2 - math.floor(math.log10(width)))
    if np.all(np.diff([edges[0], *rounded, edges[-1]]) > 0):
        edges[1:-1] = rounded
    counts, _ = np.histogram(values, edges)
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "chart": histogram(edges.tolist(), counts.tolist()),
    }


@resource("histograms/{run}/{evaluation}", list_parts)
def read_histograms(source: Source, run: str, evaluation: str) -> Facts:
    """How the scores, durations, tokens and costs of the rows of a run are distributed.

    `name` is what a filter of the rows calls the numbers, as its parts; None for those that filters cannot name.
    """
    key = "histograms", run, evaluation, source.list_ids("aggregations")
    return source.facts.get(key, lambda: _describe_all(source, run, evaluation))


def _describe_all(source: Source, run: str, evaluation: str) -> Facts:
    rows = find_rows(source, run, evaluation)
    numbers: list[tuple[str, list[str] | None, str, np.ndarray]] = [
        (name, ["score", name], "", of.value) for name, of in rows.columns.scorers.items()
    ]
    numbers.append(("duration", ["duration"], "seconds", rows.columns.duration))
    tokens, costs = _read_usage(rows.part.run)
    numbers.append(("tokens", None, "", tokens))
    numbers += (("cost", None, currency, values) for currency, values in (costs or {"": np.zeros(0)}).items())
    described = [_describe(*each) for each in numbers]
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
