"""Versions of apps: all records of one version, taken together."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.apps.leaderboards.records import USAGE, FeedbackScores, RecordColumns
from evaluand.core.row_numbers import count_earlier, number_rows
from evaluand.store.tables import COMPLETED, RESPONSE_STATUSES


def version_label(row: Mapping[str, Any]) -> str:
    """The name of a version of an app, such as `rag 2`; of an app without versions, its name."""
    return str(row["app"]) if row["version"] is None else f"{row['app']} {row['version'] or repr('')}"


def natural_order(label: str) -> list[tuple[int, int, str]]:
    """A sort key that puts version 9 before version 10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", label) if part]


@dataclass
class Version:
    """All records of one version of an app.

    Attributes:
        sources: the records, by recording or run.
        input: a number for the input of each, the same in all versions.
        asked: a number for the input of each and which of equal ones it is.
    """

    sources: Sequence[RecordColumns]
    input: np.ndarray
    asked: np.ndarray

    @property
    def label(self) -> str:
        return version_label(vars(self.sources[0]))

    @cached_property
    def scores(self) -> dict[str, FeedbackScores]:
        """The scores of each feedback; records of a source that it did not judge are not among them."""
        starts = np.cumsum([0, *(len(source.status) for source in self.sources)])
        parts: dict[str, list[FeedbackScores]] = {}
        for start, source in zip(starts.tolist(), self.sources, strict=False):
            for name, scores in source.scores.items():
                parts.setdefault(name, []).append(replace(scores, call=scores.call + start))
        return {name: _concatenate(each) for name, each in parts.items()}

    @property
    def currencies(self) -> frozenset[str]:
        return frozenset().union(*(source.currencies for source in self.sources))

    @cached_property
    def spent(self) -> list[dict[str, Any]]:
        """What judging cost, by feedback that asked providers."""
        parts: dict[str, list[pa.StructArray]] = {}
        for source in self.sources:
            for name, usage in source.usage.items():
                parts.setdefault(name, []).append(usage)
        usages = {name: pa.chunked_array(each, USAGE).combine_chunks() for name, each in parts.items()}
        return [
            {"label": self.label, "feedback": name, **_sum_usage(usage)} for name, usage in usages.items() if len(usage)
        ]

    @cached_property
    def about(self) -> dict[str, Any]:
        """Name, number of records, latency, tokens and cost."""
        status, seconds, cost = (
            np.concatenate([getattr(source, name) for source in self.sources]) for name in ("status", "seconds", "cost")
        )
        tokens = np.concatenate([source.tokens for source in self.sources], axis=1)
        timed = seconds[(status == RESPONSE_STATUSES.index(COMPLETED)) & ~np.isnan(seconds)]
        median, p95 = np.quantile(timed, (0.5, 0.95)).tolist() if len(timed) else (None, None)
        summed = [int(np.nansum(each)) if not np.isnan(each).all() else None for each in tokens]
        priced = int((~np.isnan(cost)).sum())
        currencies = self.currencies
        return {
            "app": self.sources[0].app,
            "version": self.sources[0].version,
            "records": len(status),
            "calls_failed": int((status == RESPONSE_STATUSES.index("failed")).sum()),
            "calls_skipped": int((status == RESPONSE_STATUSES.index("skipped")).sum()),
            "latency_median": median,
            "latency_p95": p95,
            "input_tokens": summed[0],
            "output_tokens": summed[1],
            "cost": math.fsum(cost[~np.isnan(cost)]) if priced and len(currencies) < 2 else None,
            "currency": next(iter(currencies)) or None if len(currencies) == 1 else None,
            "n_latency": len(timed),
            "n_tokens": int((~np.isnan(tokens).all(axis=0)).sum()),
            "n_cost": priced,
        }


def group_versions(sources: Sequence[RecordColumns]) -> list[Version]:
    """The sources by version, in natural order; versions of different tasks with one name get distinct names."""
    by_version: dict[tuple[str, str | None], dict[str | None, list[RecordColumns]]] = {}
    for source in sources:
        by_version.setdefault((source.app, source.version), {}).setdefault(source.task, []).append(source)
    for by_task in by_version.values():
        for task, parts in by_task.items() if len(by_task) > 1 else ():
            for source in parts:
                source.app += f" ({task[:8]})" if task else ""
    groups = [parts for by_task in by_version.values() for parts in by_task.values()]
    labels = Counter(version_label(vars(parts[0])) for parts in groups)
    for parts in groups:
        if labels[version_label(vars(parts[0]))] > 1:  # such as `rag 2` without a version, and version 2 of `rag`
            for source in parts:
                source.app = repr(source.app)
    if not groups:
        return []
    groups.sort(key=lambda parts: natural_order(version_label(vars(parts[0]))))
    inputs = number_rows([np.concatenate([source.digest for source in parts]) for parts in groups])
    asked = number_rows([np.column_stack([each, count_earlier(each[:, None])]) for each in inputs])
    return [Version(*each) for each in zip(groups, inputs, asked, strict=True)]


def common_direction(scores: Iterable[FeedbackScores]) -> str | None:
    """The direction of all scores that have one; None where they differ."""
    directions = {each.direction for each in scores} - {None}
    return directions.pop() if len(directions) == 1 else None


def common_range(scores: Iterable[FeedbackScores]) -> tuple[float, float] | None:
    """The range of all scores; None where they differ."""
    ranges = {each.range for each in scores}
    return ranges.pop() if len(ranges) == 1 else None


def _concatenate(parts: Sequence[FeedbackScores]) -> FeedbackScores:
    call, status, value = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
    definition = frozenset[str]().union(*(part.definition for part in parts))
    return FeedbackScores(call, status, value, definition, common_direction(parts), common_range(parts))


_COLUMNS: Final = ("call", "status", "value")


def _sum_usage(usage: pa.StructArray) -> dict[str, Any]:
    column = dict(zip(usage.type.names, usage.flatten(), strict=True))
    sums = {name: pc.sum(column[name]).as_py() for name in ("requests", "input_tokens", "output_tokens")}
    priced = usage.filter(column["cost"].is_valid())
    cost, currencies = priced.field("cost").to_pylist(), pc.fill_null(priced.field("currency"), "").unique().to_pylist()
    return {
        "n": len(usage),
        **sums,
        "cost": math.fsum(cost) if cost and len(currencies) < 2 else None,
        "currency": currencies[0] or None if len(currencies) == 1 else None,
        "n_tokens": len(pc.coalesce(column["input_tokens"], column["output_tokens"]).drop_null()),
        "n_cost": len(cost),
    }
