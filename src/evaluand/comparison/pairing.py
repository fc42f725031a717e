"""Pairing: the rows of several evaluations, aligned by their examples.

Examples are matched by digest, so runs over different files, orders or `_index_` meet in the same example. Equal
examples are matched in order: the first of one side with the first of the other. A *row* of a comparison is an example
with a replication (and a target). Rows are sorted by digest, so no result depends on the order of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from evaluand.aggregation.groups import Key, Units, merge_labels, units_of
from evaluand.aggregation.score_shards import attribute_columns, dataset_of, shards
from evaluand.core.errors import DataError, Fault, SpecError, nearest, plural
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.core.row_numbers import count_earlier, digest_halves, number_rows
from evaluand.data.kind import DATASETS
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Metric, stored_as
from evaluand.store.tables import SCORE_STATUSES, SKIPPED

ABSENT: Final = -1
"""The status of a row that a side does not have."""

_SKIPPED: Final = SCORE_STATUSES.index(SKIPPED)
_SHOWN: Final = 10


@dataclass(frozen=True)
class PairedRows:
    """Aligned rows: arrays of shape (rows,) or (sides, rows).

    Attributes:
        metric: the metric whose values these are, with the labels of all sides settled.
        keys: the groups that occur: the target, then the values of attributes.
        group: the position of each row's group in `keys`.
        example: rows of one example have the same number.
        cluster: the declared cluster, None where there is none.
        weight: of the example, None where there is none.
        status: by side, a position in `SCORE_STATUSES` or `ABSENT`.
        index: by side, the `_index_` of the example there.
        replication: the repeat of the row.
        value: by side, the value that the metric averages, 0 if it averages nothing; NaN where there is none.
        worst: by side, the value if what is missing were the worst; NaN where there is no bound.
        best: by side, the value if what is missing were the best.
        tables: by side, the table of scores.
        unit: by side, the place of the row among the units of the table; -1 where it is absent.
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
    tables: Sequence[pa.Table] = ()
    unit: np.ndarray | None = None

    def take(self, chosen: np.ndarray) -> Self:
        """The chosen rows, by mask or position."""
        names = [each.name for each in fields(self) if each.name not in ("metric", "keys", "tables")]
        arrays: dict[str, Any] = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(self, **{name: array[..., chosen] for name, array in arrays.items()})

    @property
    def asked(self) -> np.ndarray:
        """By side, the rows that exist and were not skipped."""
        return np.asarray((self.status != ABSENT) & (self.status != _SKIPPED))

    @property
    def unscored(self) -> np.ndarray:
        """By side, the rows that were asked but have no score."""
        return np.asarray(self.asked & (self.status != 0))

    @property
    def known(self) -> np.ndarray:
        """By side, the rows that the metric has a value for."""
        return np.asarray(self.asked & ~np.isnan(self.value))


def iterate_units(evaluation: Evaluation, scorer: str, metric: Metric) -> Iterator[Units]:
    """The rows of a scorer in one evaluation as `pair_rows` would align them, in the order of its table, in pieces.

    Nothing is sorted by digests, and a piece is in memory at a time.

    Raises:
        SpecError, DataError: as `pair_rows`.
    """
    if why := why_unpairable(metric):
        raise SpecError(why)
    for table in _iterate_tables(evaluation, scorer, metric, ()):
        units = units_of(table, metric)
        if metric.missing == "refuse":
            _refuse_missing(evaluation, units, metric)
        yield units


def pair_rows(
    evaluations: Sequence[Evaluation],
    scorer: str,
    metric: Metric,
    where: Mapping[str, str] | None = None,
    by: Sequence[str] = (),
) -> PairedRows:
    """Aligns the rows of a scorer in several evaluations.

    Args:
        where: attribute → value: only these examples.
        by: attributes by whose values rows are grouped.

    Raises:
        SpecError: the metric has no differences, a side lacks the scorer, a column or an attribute, or the sides differ
            in a column that must be constant, such as the levels of quantiles.
        DataError: the metric refuses missing rows, and some rows are missing.
    """
    if why := why_unpairable(metric):
        raise SpecError(why)
    sides = [_Side.read(evaluation, scorer, metric, dict(where or {}), tuple(by)) for evaluation in evaluations]
    if why := why_incomparable(evaluations, scorer, metric):
        raise SpecError(why)
    examples = number_rows([side.example_key for side in sides])
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
    rows = number_rows([np.stack(column, axis=1).astype(np.int64) for column in columns])
    alike = number_rows([side.example_key[:, :2] for side in sides])
    examples = [content[side.example] for side, content in zip(sides, alike, strict=True)]
    settled = metric.settled(merge_labels([side.units.labels for side in sides]))
    return _side_by_side(settled, sides, rows, columns, examples, keys)


def why_unpairable(metric: Metric) -> str | None:
    """Why a metric has no differences; None if it has them."""
    if metric.reduce == "all" and not metric.over_replications:
        return (
            f"{metric.kind} with reduce='all' counts each response as a row, and responses of different runs cannot be"
            " paired; compare with reduce='first', 'best', 'any' or 'mean'"
        )
    if not metric.has_differences:
        return f"{metric.kind} has no differences with an interval; compare by {metric.compared_by or 'another metric'}"
    return None


def why_incomparable(evaluations: Sequence[Evaluation], scorer: str, metric: Metric) -> str | None:
    """Why the values of a metric mean something else in another evaluation; None if they do not."""
    name = metric.constant_column
    if name is None:
        return None
    distinct = list(dict.fromkeys(filter(None, (_first_list(each, scorer, name) for each in evaluations))))
    if len(distinct) < 2:
        return None
    first, second = (", ".join(f"{value:g}" for value in values) for values in distinct[:2])
    return (
        f"{metric.kind} cannot compare systems with different {name}: {first} and {second}; compare with"
        f" mean_quantile_loss and the {name} that all systems have"
    )


def _first_list(evaluation: Evaluation, scorer: str, name: str) -> tuple[float, ...]:
    """The sorted numbers of the first row that has some; the metric refuses rows with others."""
    if name not in evaluation.columns(scorer):
        return ()
    for batch in evaluation.batches(scorer, [name]):
        for value in batch.column(0):
            if numbers := value.as_py():
                return tuple(sorted(numbers))
    return ()


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
            result[place, rows[place]] = side.position if name == "position" else getattr(side.units, name)
        return result

    def by_row(columns: Sequence[np.ndarray]) -> np.ndarray:
        result = np.zeros(n, np.int64)
        for row, column in zip(rows, columns, strict=True):
            result[row] = column
        return result

    def by_example(name: str, kind: Any) -> np.ndarray | None:
        """Equal examples have equal values, so any side's value will do."""
        if any(getattr(side.units, name) is None for side in sides):
            return None
        result = np.zeros(n, kind)
        for row, side in zip(rows, sides, strict=True):
            result[row] = getattr(side.units, name)
        return result

    return PairedRows(
        metric=metric,
        keys=keys,
        group=by_row([column[0] for column in columns]),
        example=by_row(examples),
        replication=by_row([column[2] for column in columns]),
        cluster=by_example("cluster", np.int64),
        weight=by_example("weight", np.float64),
        status=by_side("outcome", ABSENT, np.int8),
        index=by_side("index", -1, np.int64),
        value=by_side("value", np.nan, np.float64),
        worst=by_side("worst", np.nan, np.float64),
        best=by_side("best", np.nan, np.float64),
        tables=[side.table for side in sides],
        unit=by_side("position", -1, np.int64),
    )


@dataclass(frozen=True)
class _Side:
    table: pa.Table
    units: Units
    position: np.ndarray  # of each unit among all of the table
    example: np.ndarray  # the example of each unit, by its position in `example_key`
    example_key: np.ndarray  # the digest in two halves, and the number of equal examples before it

    @classmethod
    def read(
        cls, evaluation: Evaluation, scorer: str, metric: Metric, where: Mapping[str, str], by: tuple[str, ...]
    ) -> _Side:
        attributes = (*where, *by)
        table = pa.concat_tables(_iterate_tables(evaluation, scorer, metric, attributes), promote_options="permissive")
        every = units_of(table, metric, attribute_columns(attributes))
        units, position = _select_group(every, tuple(where.values()))
        if metric.missing == "refuse":
            _refuse_missing(evaluation, units, metric)
        indices, example = np.unique(units.index, return_inverse=True)
        digests = read_digests(evaluation, indices)
        return cls(table, units, position, example, np.column_stack([digests, count_earlier(digests)]))


def _iterate_tables(
    evaluation: Evaluation, scorer: str, metric: Metric, attributes: tuple[str, ...]
) -> Iterator[pa.Table]:
    """The scores that a metric reads, with the attributes, in pieces that do not split an example."""
    if scorer not in evaluation.scorers:
        known = ", ".join(evaluation.scorers)
        raise SpecError(f"{evaluation!r} has no scorer {scorer!r}{nearest(scorer, evaluation.scorers)}; it has {known}")
    dataset = dataset_of(evaluation)
    unknown = [name for name in attributes if name not in dataset.roles.attributes]
    if unknown:
        raise SpecError(
            f"{unknown[0]!r} is not an attribute of the dataset{nearest(unknown[0], dataset.roles.attributes)};"
            " declare it under attributes"
        )
    available = evaluation.columns(scorer)
    columns = [*map(stored_as, metric.columns_for(available)), *(n for n in metric.fill_columns if n in available)]
    key = [INDEX, "replication", "_response_index_", "target", "status"]
    read = [*dict.fromkeys([*key, *columns])]
    return shards(evaluation, dataset, scorer, attributes, read)


_ARRAYS: Final = tuple(field.name for field in fields(Units) if field.name not in ("keys", "group", "labels"))


def _select_group(units: Units, values: tuple[str, ...]) -> tuple[Units, np.ndarray]:
    """The units whose first attributes have these values, grouped by the target and the others; and their places."""
    of_key = [(key[0], *key[1 + len(values) :]) if key[1 : 1 + len(values)] == values else None for key in units.keys]
    keys = [*dict.fromkeys(key for key in of_key if key is not None)]
    places: dict[Key | None, int] = {None: -1} | {key: place for place, key in enumerate(keys)}
    place = np.array([places[key] for key in of_key], np.int64)
    chosen = np.flatnonzero(place[units.group] >= 0)
    present = [name for name in _ARRAYS if getattr(units, name) is not None]
    arrays = {name: getattr(units, name)[chosen] for name in present}
    return replace(units, keys=keys, group=place[units.group[chosen]], **arrays), chosen


def _refuse_missing(evaluation: Evaluation, units: Units, metric: Metric) -> None:
    missing = np.unique(units.index[(units.outcome != 0) & (units.outcome != _SKIPPED)])
    if len(missing):
        shown = ", ".join([*map(str, missing[:_SHOWN].tolist()), *["…"] * (len(missing) > _SHOWN)])
        raise DataError(
            Fault(
                f"{INDEX} {shown}",
                f"{plural(len(missing), 'example')} of {evaluation!r} without a score (failed or abstained), and"
                f" {metric.kind} refuses missing rows; retry them, or use missing='leave_out' or 'wrong'",
            )
        )


def read_digests(evaluation: Evaluation, indices: np.ndarray) -> np.ndarray:
    """The digests of examples, each as two integers."""
    batches = evaluation.store.read(DATASETS, evaluation.manifest["spec"]["dataset"], "examples", [INDEX, DIGEST])
    found, digests = [], []
    for batch in batches:
        found.append(batch.column(0).to_numpy())
        digests.append(digest_halves(batch.column(1)))
    place = np.searchsorted(np.concatenate(found), indices)  # examples are stored in the order of their index
    return np.asarray(np.concatenate(digests)[place])
