"""Pairing: the rows of several evaluations, laid side by side by what was asked.

An example is known by its digest, so runs over different files, orders or `_index_` meet in the same example; where
several examples are equal, the first of one side meets the first of the other. With the replication (and the target)
that makes one *row* of a comparison. Rows stand in the order of their digests, so no result depends on how a file was
sorted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluand.aggregation.aggregator import dataset_of, held_as, shards
from evaluand.aggregation.groups import Key, Units, merged_labels, units_of
from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.core.registry import nearest
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Metric, stored_as
from evaluand.store.tables import SCORE_STATUSES, SKIPPED

ABSENT: Final = -1
"""The status of a row that a side does not have."""

_SKIPPED: Final = SCORE_STATUSES.index(SKIPPED)
_SHOWN: Final = 10


@dataclass(frozen=True)
class PairedRows:
    """Rows side by side: arrays of rows, or of sides × rows.

    Attributes:
        metric: what was taken of each row, settled by the labels of all sides.
        keys: the groups that occur: target, then the values of attributes.
        group: which of them a row is in.
        example: rows of one example have the same number.
        cluster: the declared cluster, None where there is none.
        weight: of the example, None where there is none.
        status: by side, a position in `SCORE_STATUSES` or `ABSENT`.
        index: by side, the `_index_` of the example there.
        replication: which repeat.
        value: by side, what the metric takes; NaN where it takes nothing.
        worst: by side, the value if what is missing were the worst; NaN where that cannot be told.
        best: by side, the value if what is missing were the best.
    """

    metric: Metric
    keys: Sequence[Key]
    group: np.ndarray
    example: np.ndarray
    cluster: np.ndarray | None
    weight: np.ndarray | None
    status: np.ndarray
    index: np.ndarray
    replication: np.ndarray
    value: np.ndarray
    worst: np.ndarray
    best: np.ndarray

    def of(self, chosen: np.ndarray) -> PairedRows:
        """Some of the rows."""
        return PairedRows(
            metric=self.metric,
            keys=self.keys,
            group=self.group[chosen],
            example=self.example[chosen],
            cluster=None if self.cluster is None else self.cluster[chosen],
            weight=None if self.weight is None else self.weight[chosen],
            status=self.status[:, chosen],
            index=self.index[:, chosen],
            replication=self.replication[chosen],
            value=self.value[:, chosen],
            worst=self.worst[:, chosen],
            best=self.best[:, chosen],
        )

    @property
    def asked(self) -> np.ndarray:
        """By side, the rows that are there and were not skipped."""
        return np.asarray((self.status != ABSENT) & (self.status != _SKIPPED))

    @property
    def unscored(self) -> np.ndarray:
        """By side, the rows that were asked and have no score."""
        return np.asarray(self.asked & (self.status != 0))

    @property
    def known(self) -> np.ndarray:
        """By side, the rows the metric takes."""
        return np.asarray(self.asked & ~np.isnan(self.value))


def paired(
    evaluations: Sequence[Evaluation], scorer: str, metric: Metric, where: Mapping[str, str] | None = None
) -> PairedRows:
    """The rows of a scorer in several evaluations, side by side.

    Args:
        metric: what is taken of each row; one that averages.
        where: attribute → value: only these examples.

    Raises:
        SpecError: the metric averages nothing, or a side lacks the scorer, a column or an attribute.
        DataError: the metric refuses missing rows, and there are some.
    """
    if why := unpairable(metric):
        raise SpecError(why)
    sides = [_Side.of(evaluation, scorer, metric, dict(where or {})) for evaluation in evaluations]
    examples = matched([side.example_key for side in sides])
    keys = list(dict.fromkeys(key for side in sides for key in side.units.keys))
    places = {key: place for place, key in enumerate(keys)}
    columns = [
        (
            np.array([places[key] for key in side.units.keys], np.int64)[side.units.group],
            example[side.example],
            side.units.replication,
            side.units.response,
        )
        for side, example in zip(sides, examples, strict=True)
    ]
    rows = matched([np.stack(column, axis=1).astype(np.int64) for column in columns])
    alike = matched([side.example_key[:, :2] for side in sides])
    examples = [content[side.example] for side, content in zip(sides, alike, strict=True)]
    settled = metric.settled(merged_labels([side.units.labels for side in sides]))
    return _side_by_side(settled, sides, rows, columns, examples, keys)


def unpairable(metric: Metric) -> str | None:
    """Why a metric has no differences by row; None where it has."""
    if metric.reduce == "all" and not metric.over_replications:
        return (
            f"{metric.kind} with reduce='all' takes each response for a row, and no response of one run belongs to one"
            " of another; compare with reduce='first', 'best', 'any' or 'mean'"
        )
    if not metric.averages:
        known = [name for name in registry.names("metrics") if registry.find("metrics", name).averages]
        return (
            f"{metric.kind} is no mean of one number per row, so there are no differences by row; compare by"
            f" {', '.join(known[:-1])} or {known[-1]}: mean is that of the scorer's value of each row, which of spans"
            " is the F1 of one answer"
        )
    return None


def _side_by_side(
    metric: Metric,
    sides: Sequence[_Side],
    rows: Sequence[np.ndarray],
    columns: Sequence[tuple[np.ndarray, ...]],
    examples: Sequence[np.ndarray],
    keys: list[Key],
) -> PairedRows:
    n = max((int(row.max()) + 1 for row in rows if len(row)), default=0)

    def by_side(name: str, nothing: float, kind: Any) -> np.ndarray:
        result = np.full((len(sides), n), nothing, kind)
        for place, side in enumerate(sides):
            result[place, rows[place]] = getattr(side.units, name)
        return result

    def of_row(columns: Sequence[np.ndarray]) -> np.ndarray:
        result = np.zeros(n, np.int64)
        for row, column in zip(rows, columns, strict=True):
            result[row] = column
        return result

    def of_example(name: str, kind: Any) -> np.ndarray | None:
        """Equal examples agree in it, so any side may tell it."""
        if any(getattr(side.units, name) is None for side in sides):
            return None
        result = np.zeros(n, kind)
        for row, side in zip(rows, sides, strict=True):
            result[row] = getattr(side.units, name)
        return result

    return PairedRows(
        metric=metric,
        keys=keys,
        group=of_row([column[0] for column in columns]),
        example=of_row(examples),
        replication=of_row([column[2] for column in columns]),
        cluster=of_example("cluster", np.int64),
        weight=of_example("weight", np.float64),
        status=by_side("outcome", ABSENT, np.int8),
        index=by_side("index", -1, np.int64),
        value=by_side("value", np.nan, np.float64),
        worst=by_side("worst", np.nan, np.float64),
        best=by_side("best", np.nan, np.float64),
    )


@dataclass(frozen=True)
class _Side:
    units: Units
    example: np.ndarray  # the example of each unit, by its place in `example_key`
    example_key: np.ndarray  # digest in two halves, and which of equal ones

    @classmethod
    def of(cls, evaluation: Evaluation, scorer: str, metric: Metric, where: Mapping[str, str]) -> _Side:
        units = _where(_units(evaluation, scorer, metric, tuple(where)), tuple(where.values()))
        if metric.missing == "refuse":
            _refuse_missing(evaluation, units, metric)
        indices, example = np.unique(units.index, return_inverse=True)
        digests = digests_of(evaluation, indices)
        return cls(units, example, np.column_stack([digests, occurrences(digests)]))


def _units(evaluation: Evaluation, scorer: str, metric: Metric, attributes: tuple[str, ...]) -> Units:
    if scorer not in evaluation.scorers:
        known = ", ".join(evaluation.scorers)
        raise SpecError(f"{evaluation!r} has no scorer {scorer!r}{nearest(scorer, evaluation.scorers)}; it has {known}")
    dataset = dataset_of(evaluation)
    lacking = [name for name in attributes if name not in dataset.roles.attributes]
    if lacking:
        raise SpecError(
            f"{lacking[0]!r} is no attribute of the dataset{nearest(lacking[0], dataset.roles.attributes)};"
            " name it under attributes"
        )
    key = [INDEX, "replication", "_response_index_", "target", "status"]
    read = [*key, *dict.fromkeys(map(stored_as, metric.columns_for(evaluation.columns(scorer))))]
    cut = shards(evaluation, dataset, scorer, attributes, read)
    parts = [units_of(shard, metric, held_as(attributes)) for shard in cut]
    keys = list(dict.fromkeys(key for part in parts for key in part.keys))
    places = {key: place for place, key in enumerate(keys)}
    group = [np.array([places[key] for key in part.keys], np.int64)[part.group] for part in parts]
    told = [name for name in _ARRAYS if getattr(parts[0], name) is not None]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in told}
    labels = merged_labels([part.labels for part in parts])
    return replace(parts[0], keys=keys, group=np.concatenate(group), labels=labels, **arrays)


_ARRAYS: Final = tuple(field.name for field in fields(Units) if field.name not in ("keys", "group", "labels"))


def _where(units: Units, values: tuple[str, ...]) -> Units:
    """The units whose attributes have these values, with the targets as their only groups."""
    wanted = [place for place, key in enumerate(units.keys) if key[1:] == values]
    chosen = np.isin(units.group, wanted)
    place = np.zeros(len(units.keys), np.int64)
    place[wanted] = np.arange(len(wanted))
    told = [name for name in _ARRAYS if getattr(units, name) is not None]
    arrays = {name: getattr(units, name)[chosen] for name in told}
    return replace(units, keys=[units.keys[key][:1] for key in wanted], group=place[units.group[chosen]], **arrays)


def _refuse_missing(evaluation: Evaluation, units: Units, metric: Metric) -> None:
    missing = np.unique(units.index[(units.outcome != 0) & (units.outcome != _SKIPPED)])
    if len(missing):
        shown = ", ".join([*map(str, missing[:_SHOWN].tolist()), *["…"] * (len(missing) > _SHOWN)])
        raise DataError(
            Fault(
                f"{INDEX} {shown}",
                f"{len(missing)} examples of {evaluation!r} have no score (failed or abstained) and {metric.kind} "
                "refuses missing rows; retry them, or use missing='leave_out' or 'wrong'",
            )
        )


def digests_of(evaluation: Evaluation, indices: np.ndarray) -> np.ndarray:
    """The digests of examples, each as two whole numbers."""
    batches = evaluation.store.read("datasets", evaluation.manifest["spec"]["dataset"], "examples", [INDEX, DIGEST])
    found, digests = [], []
    for batch in batches:
        found.append(batch.column(0).to_numpy())
        digests.append(halves(batch.column(1)))
    place = np.searchsorted(np.concatenate(found), indices)  # examples are stored in the order of their index
    return np.asarray(np.concatenate(digests)[place])


def halves(column: pa.FixedSizeBinaryArray) -> np.ndarray:
    """Digests as two whole numbers each."""
    halves = np.frombuffer(column.buffers()[1] or b"", ">i8").reshape(-1, 2)
    return halves[column.offset : column.offset + len(column)].astype(np.int64)


def occurrences(keys: np.ndarray) -> np.ndarray:
    """For each row, how many equal ones stand before it."""
    order, starts = _sorted(keys)
    count = np.empty(len(keys), np.int64)
    count[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(starts, append=len(keys)))
    return count


def matched(tables: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A number for each row of some tables, the same for equal rows, in their order."""
    rows = np.concatenate(tables)
    order, starts = _sorted(rows)
    number = np.empty(len(rows), np.int64)
    number[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
    return np.split(number, np.cumsum([len(table) for table in tables])[:-1])


def _sorted(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The stable order of rows, and where new ones begin in it."""
    rows = _packed(rows)
    order = np.argsort(rows[:, 0], kind="stable")
    run, falls = _runs(rows[order])
    if falls.any():  # by the first number alone they are out of order, which with digests are few
        bad = np.zeros(run[-1] + 1, np.bool_)
        bad[run[falls]] = True
        places = np.flatnonzero(bad[run])
        some = order[places]
        order[places] = some[np.lexsort(rows[some].T[::-1])]
    ordered = rows[order]
    new = np.ones(len(rows), np.bool_)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in ordered.T])
    return order, np.flatnonzero(new)


def _packed(rows: np.ndarray) -> np.ndarray:
    """Rows as one number each where that is possible: sorting by several takes many times as long."""
    if len(rows) == 0:
        return rows
    low, high = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
    spans = [last - first + 1 for first, last in zip(low, high, strict=True)]
    if math.prod(spans) >= 2**63:
        return rows
    packed = np.zeros(len(rows), np.int64)
    for column, first, span in zip(rows.T, low, spans, strict=True):
        packed = packed * span + (column - first)
    return packed[:, None]


def _runs(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of each row's run of equal first numbers, and which rows are smaller than the one before in it."""
    same = ordered[1:, 0] == ordered[:-1, 0]
    run = np.concatenate([[0], np.cumsum(~same)]) if len(ordered) else np.zeros(0, np.int64)
    falls, tied = np.zeros(len(ordered), np.bool_), same
    for column in ordered.T[1:]:
        falls[1:] |= tied & (column[1:] < column[:-1])
        tied = tied & (column[1:] == column[:-1])
    return run, falls
