"""Facts about an aggregation: values, disparities, curves, and the rows behind a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from evaluand.aggregation.group_rules import is_beyond_none
from evaluand.core.errors import NotFound, SpecError, nearest
from evaluand.data.kind import DATASETS
from evaluand.metrics.names import has_name, name_in_tables
from evaluand.report.facts.base import Facts
from evaluand.report.facts.evaluation import graded_rows
from evaluand.report.metric_labels import add_labels
from evaluand.run.excerpts import to_json

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Aggregation
    from evaluand.store.store import Store


def summary_facts(aggregation: Aggregation) -> dict[str, list[Facts]]:
    """The tables of an aggregation, as `report_facts` takes them."""
    tables = {
        "metrics": metrics_facts,
        "disparities": disparities_facts,
        "worst_groups": worst_groups_facts,
        "curves": curves_facts,
    }
    return {name: table(aggregation) for name, table in tables.items()}


def metrics_facts(aggregation: Aggregation) -> list[Facts]:
    """Every value of an aggregation, with the labels of its evaluation and metric and the clusters of its interval."""
    tasks = aggregation.labels
    columns = [_read_cluster_column(aggregation.store, id) for id in aggregation.manifest["spec"]["datasets"]]
    found = []
    for row in aggregation.table().to_pylist():
        number, data = row.pop("evaluation"), None if row["data"] is None else orjson.loads(row["data"])
        more = {"by": dict(row["by"]), "data": data} | clustering(data, columns[number], row["n_scored"])
        found.append({"task": tasks[number]} | row | more)
    return add_labels(found)


def disparities_facts(aggregation: Aggregation) -> list[Facts]:
    """Every disparity of an aggregation, with the label of its evaluation."""
    found = []
    for row in aggregation.disparities().to_pylist():
        task = aggregation.labels[row.pop("evaluation")]
        ends = ("lowest", "highest", "reference", "other", "given")
        groups = {name: None if row[name] is None else dict(row[name]) for name in ends}
        lists = {name: [dict(group) for group in row[name] or ()] for name in ("small", "undefined", "unjudged")}
        rated = {"groups": [{**each, "by": dict(each["by"])} for each in row["groups"] or ()]}
        shown = row["found"] if row["found"] is not None else is_beyond_none(row["disparity"], row["low"], row["high"])
        found.append({"task": task} | row | groups | lists | rated | {"found": shown})
    return found


def worst_groups_facts(aggregation: Aggregation) -> list[Facts]:
    """The worst groups of an aggregation, with the labels of their evaluation and metric."""
    tasks = aggregation.labels
    rows = aggregation.worst_groups().to_pylist()
    return add_labels(
        [
            {"task": tasks[row.pop("evaluation")]} | row | {"by": None if row["by"] is None else dict(row["by"])}
            for row in rows
        ]
    )


def curves_facts(aggregation: Aggregation) -> list[Facts]:
    """The curves of an aggregation: for each curve and part, its points as columns."""
    found: dict[tuple[Any, ...], Facts] = {}
    tasks = aggregation.labels
    for row in aggregation.curves().to_pylist():
        task, by = tasks[row.pop("evaluation")], dict(row.pop("by"))
        points = {name: row.pop(name) for name in _POINT}
        key = (task, *row.values(), *by.items())
        curve = found.setdefault(key, {"task": task} | row | {"by": by, "points": {name: [] for name in _POINT}})
        for name, value in points.items():
            curve["points"][name].append(value)
    return list(found.values())


def confusion_matrix(rows: Sequence[Facts]) -> tuple[list[str | None], list[list[float]]]:
    """The classes of a confusion matrix in order, and how often each truth met each prediction.

    Args:
        rows: the curves of one matrix, as `curves_facts` gives them; the class for all others is None.
    """
    places: dict[str | None, float] = {}
    for row in rows:
        places |= dict(zip(row["points"]["label"], row["points"]["x"], strict=True))
    classes = sorted(places, key=lambda label: places[label])
    cells = {
        (row["part"], label): n
        for row in rows
        for label, n in zip(row["points"]["label"], row["points"]["n"], strict=True)
    }
    return classes, [[cells.get((truth, label), 0.0) for label in classes] for truth in classes]


def _read_cluster_column(store: Store, dataset: str) -> str | None:
    try:
        return to_json(store.manifest(DATASETS, dataset)["spec"]["roles"]).get("cluster")  # type: ignore[no-any-return]
    except NotFound:
        return None


def clustering(data: Mapping[str, Any] | None, declared: str | None, n: int) -> Facts:
    """The clusters of an interval.

    Returns:
        `clusters`, the number of independent observations where these are not the rows, and `clustered_by`, the column
        that defines them: None where each example with its rows is a cluster.
    """
    clusters = (data or {}).get("clusters")
    if clusters is None or (declared is None and clusters >= n):
        return {"clusters": None, "clustered_by": None}
    return {"clusters": clusters, "clustered_by": declared}


def value_facts(
    aggregation: Aggregation,
    metric: str,
    group: Mapping[str, str],
    examples: int,
    *,
    failed: bool = False,
    lowest: bool = False,
    scorers: Sequence[str] = (),
) -> dict[str, list[Facts]]:
    """The first rows behind the values of a metric, by evaluation and scorer.

    Args:
        metric: its name in tables, or another name of it.
        group: attribute → value: the group of the value; all rows if empty.
        examples: how many rows of each value.
        failed: only rows without a score.
        lowest: the rows with the lowest scores first.
        scorers: only of these; of all if empty.
    """
    from evaluand.report.lineage import lineage_of_value  # on use: `evaluand list` does without Arrow

    values = aggregation.table().to_pylist()
    called = [row for row in values if has_name(row["signature"], metric)]
    called = called or [row for row in values if row["metric"] == metric]
    if not called:
        names = dict.fromkeys(name_in_tables(row["signature"]) for row in values)
        raise SpecError(f"no metric is called {metric!r}{nearest(metric, names)}; there are {', '.join(names)}")
    of_metric = [row for row in called if not scorers or row["scorer"] in scorers]
    chosen = [row for row in of_metric if dict(row["by"]) == dict(group)]
    if not chosen:
        known = dict.fromkeys(" ".join(f"{k}={v}" for k, v in row["by"]) or "all rows" for row in of_metric)
        raise SpecError(
            f"{metric} has no value for this group; it has values for {', '.join(known) or 'no group of this scorer'}"
        )
    found: dict[str, list[Facts]] = {}
    for row in chosen:
        rows = lineage_of_value(aggregation, row)
        rows = rows.failures() if failed else rows.lowest(examples) if lowest else rows
        parts = (aggregation.labels[row["evaluation"]], row["scorer"], row["target"])
        own = [{k: v for k, v in each.items() if k != "evaluation"} for each in graded_rows(rows.head(examples))]
        found.setdefault(" · ".join(part for part in parts if part is not None), own)
    return found


_POINT = ("x", "y", "low", "high", "threshold", "n", "label")
