"""Pairing: the rows of several evaluations, aligned by their examples.

Examples are matched by digest, so runs over different files, orders or `_index_` meet in the same example. Equal
examples are matched in order: the first of one side with the first of the other. A *row* of a comparison is an example
with a replication (and a target). Rows are sorted by digest, so no result depends on the order of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from evaluand.aggregation.groups import MetricRows, Units, merge_labels, units_of, unweighed_rules
from evaluand.aggregation.score_shards import dataset_of, shards
from evaluand.aggregation.shard import EXAMPLES, Groups, Key, RowRules, Shard, UnitRows, lacking
from evaluand.core.errors import DataError, Fault, SpecError, nearest, plural
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.core.row_numbers import count_earlier, digest_halves, number_rows
from evaluand.data.columns import join_chunks
from evaluand.data.dataset import Dataset
from evaluand.data.kind import DATASETS
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import CLUSTER, WEIGHT, Metric, stored_as
from evaluand.store.tables import SCORE_STATUSES, SKIPPED

ABSENT: Final = -1
"""The status of a row that a side does not have."""

_SKIPPED: Final = SCORE_STATUSES.index(SKIPPED)
_SHOWN: Final = 10


class Side(NamedTuple):
    """The scores of one evaluation: the columns that a metric reads, and their units."""

    table: Shard
    units: UnitRows


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
        sides: the tables of scores.
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
    sides: Sequence[Side] = ()
    unit: np.ndarray | None = None

    def take(self, chosen: np.ndarray) -> Self:
        """The chosen rows, by mask or position."""
        if chosen.dtype == np.bool_ and chosen.all():
            return self
        arrays = {name: array for name, array in vars(self).items() if isinstance(array, np.ndarray)}
        taken = {id(array): array[..., chosen] for array in arrays.values()}
        return replace(self, **{name: taken[id(array)] for name, array in arrays.items()})  # type: ignore[arg-type]

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
    _check(evaluation, scorer, ())
    read = [*dict.fromkeys([*_KEY, *_columns_of(evaluation, scorer, metric)])]
    for table in shards(evaluation, scorer, (), read):
        units = units_of(table, metric)
        _check_missing(evaluation, units.index, units.outcome, metric)
        yield units


def pair_rows(
    evaluations: Sequence[Evaluation], scorer: str, metric: Metric, where: Mapping[str, str] | None = None
) -> PairedRows:
    """Aligns the rows of a scorer in several evaluations; for several metrics of a scorer see `Pairing`.

    Raises:
        SpecError: the metric has no differences, a side lacks the scorer, a column or an attribute, or the sides differ
            in a column that must be constant, such as the levels of quantiles.
        DataError: the metric refuses missing rows, and some rows are missing.
    """
    return Pairing(evaluations, scorer, where).rows(metric)


@dataclass(frozen=True)
class Pairing:
    """The rows of a scorer in several evaluations, aligned once for all metrics that reduce responses alike.

    Attributes:
        where: attribute → value: only these examples.
        by: attributes by whose values rows are grouped.
        matching: by side, of each example of its dataset whether it is compared; None where all are.
    """

    evaluations: Sequence[Evaluation]
    scorer: str
    where: Mapping[str, str] | None = None
    by: Sequence[str] = ()
    matching: Sequence[np.ndarray] | None = None
    _aligned: dict[RowRules, tuple[Sequence[Side], dict[str, Any]]] = field(
        default_factory=dict, init=False, repr=False
    )
    _lacking: dict[str, bool] = field(default_factory=dict, init=False, repr=False)

    def rows(self, metric: Metric) -> PairedRows:
        """The rows with the values of a metric; errors as for `pair_rows`."""
        if why := why_unpairable(metric):
            raise SpecError(why)
        rules = unweighed_rules(metric)
        if not any(self._lacks(name) for name in rules.needs):
            rules = rules._replace(needs=())
        if rules not in self._aligned:
            sides, columns = zip(*(self._read(number, rules) for number in range(len(self.evaluations))), strict=True)
            self._aligned[rules] = sides, _align(self.evaluations, columns)
        sides, aligned = self._aligned[rules]
        unit = aligned["unit"]
        ends = [np.full(unit.shape, np.nan) for _ in range(1 if all(side.units.complete for side in sides) else 3)]
        tables, labels = [], []
        for number, (evaluation, side) in enumerate(zip(self.evaluations, sides, strict=True)):
            names = [*dict.fromkeys(_columns_of(evaluation, self.scorer, metric))]
            table = pa.Table.from_batches(evaluation.batches(self.scorer, names)) if names else side.table.table
            side = side._replace(table=replace(side.table, table=table))
            own = MetricRows(metric, *side)
            values = own.bounded_values()
            _check_missing(evaluation, aligned["index"][number], aligned["status"][number], metric)
            present = unit[number] >= 0
            for end, of_units in zip(ends, values, strict=False):
                end[number, present] = of_units[unit[number, present]]
            tables.append(side)
            labels.append(own.labels)
        if why := why_incomparable(self.evaluations, self.scorer, metric):
            raise SpecError(why)
        settled = metric.settled(merge_labels(labels))
        return PairedRows(settled, **aligned, value=ends[0], worst=ends[len(ends) // 2], best=ends[-1], sides=tables)

    def _lacks(self, name: str) -> bool:
        """Whether some rows of a side, and not all, lack what a column has."""
        if name not in self._lacking:
            sides = (
                side.batches(self.scorer, [name]) for side in self.evaluations if name in side.columns(self.scorer)
            )
            lacks = [lacking(join_chunks(pa.Table.from_batches(side).column(0))) for side in sides]
            self._lacking[name] = any(rows.any() and not rows.all() for rows in lacks)
        return self._lacking[name]

    def _read(self, number: int, rules: RowRules) -> tuple[Side, dict[str, Any]]:
        """The units of one evaluation that are compared: columns of `PairedRows`, and the groups that occur."""
        evaluation, values = self.evaluations[number], dict(self.where or {})
        attributes = (*values, *self.by)
        dataset = _check(evaluation, self.scorer, attributes)
        needed = [name for name in rules.needs if name in evaluation.columns(self.scorer)]
        pieces = shards(evaluation, self.scorer, attributes, [*_KEY, *needed])
        table = Shard.of(pa.concat_tables(pieces, promote_options="permissive"))
        units = table.units(rules, rules.needs)
        groups = _select_groups(table.groups(attributes), (*values.values(),))
        index = table.at(table.index, units.first)
        chosen = table.at(groups.code, units.first) >= 0
        if self.matching is not None:
            chosen &= self.matching[number][np.searchsorted(np.frombuffer(dataset.indices, np.int64), index)]
        place = np.flatnonzero(chosen).astype(np.int32)
        first = units.first if chosen.all() else units.first[place]
        return Side(replace(table, table=table.table.select([])), units), {
            "keys": groups.keys,
            "group": table.at(groups.code, first),
            "replication": table.at(table.replication, first) * (rules.reduce != EXAMPLES),
            "cluster": table.array_at(CLUSTER, first),
            "weight": table.array_at(WEIGHT, first),
            "status": units.outcome if first is units.first else units.outcome[place],
            "index": table.at(table.index, first),
            "unit": place,
        }


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


def _align(evaluations: Sequence[Evaluation], sides: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The fields of `PairedRows` that depend on no metric; rows are in the order of target, example and replication."""
    keys = [*dict.fromkeys(key for side in sides for key in side["keys"])]
    places = {key: place for place, key in enumerate(keys)}
    targets = {target: place for place, target in enumerate(dict.fromkeys(key[0] for key in keys))}
    target_of = np.array([targets[key[0]] for key in keys], np.int64)
    contents, examples = number_examples(evaluations, [side["index"] for side in sides])
    most, times = (
        max((int(array.max()) + 1 for array in arrays if len(array)), default=0)
        for arrays in (examples, [side["replication"] for side in sides])
    )
    numbers = []
    for side, content, example in zip(sides, contents, examples, strict=True):
        side["example"] = content
        side["group"] = np.array([places[key] for key in side.pop("keys")], np.int32)[side["group"]]
        numbers.append(((target_of[side["group"]] * most + example) * times + side["replication"])[:, None])
    rows = number_rows(numbers)
    n = max((int(row.max()) + 1 for row in rows if len(row)), default=0)
    found: dict[str, Any] = {"keys": keys}
    for name, first in sides[0].items():
        by_side = name in ("status", "index", "unit")
        if not by_side and any(side[name] is None for side in sides):
            found[name] = None
            continue
        found[name] = np.full((len(sides), n) if by_side else n, ABSENT, first.dtype)
        for number, (side, row) in enumerate(zip(sides, rows, strict=True)):
            into = (
                found[name][number] if by_side else found[name]
            )  # equal rows have equal values, so any side's will do
            into[row] = side[name]
    return found


_KEY: Final = (INDEX, "replication", "_response_index_", "target", "status")


def _check(evaluation: Evaluation, scorer: str, attributes: Sequence[str]) -> Dataset:
    """The dataset of an evaluation that has a scorer and attributes."""
    if scorer not in evaluation.scorers:
        known = ", ".join(evaluation.scorers)
        raise SpecError(f"{evaluation!r} has no scorer {scorer!r}{nearest(scorer, evaluation.scorers)}; it has {known}")
    dataset = dataset_of(evaluation)
    dataset.check_attributes(attributes)
    return dataset


def _columns_of(evaluation: Evaluation, scorer: str, metric: Metric) -> list[str]:
    """The columns of scores that a metric reads."""
    available = evaluation.columns(scorer)
    return [*map(stored_as, metric.columns_for(available)), *(n for n in metric.fill_columns if n in available)]


def _select_groups(groups: Groups, values: tuple[str, ...]) -> Groups:
    """Groups by the target and the other attributes, where the first attributes have these values; else -1."""
    of_key = [(key[0], *key[1 + len(values) :]) if key[1 : 1 + len(values)] == values else None for key in groups.keys]
    keys = [*dict.fromkeys(key for key in of_key if key is not None)]
    places: dict[Key | None, int] = {None: -1} | {key: place for place, key in enumerate(keys)}
    return Groups(np.array([places[key] for key in of_key], np.int64)[groups.code], keys)


def _check_missing(evaluation: Evaluation, index: np.ndarray, outcome: np.ndarray, metric: Metric) -> None:
    """Refuses missing rows for a metric that does."""
    if metric.missing != "refuse":
        return
    missing = np.unique(index[(outcome != 0) & (outcome != _SKIPPED)])
    if len(missing):
        shown = ", ".join([*map(str, missing[:_SHOWN].tolist()), *["…"] * (len(missing) > _SHOWN)])
        raise DataError(
            Fault(
                f"{INDEX} {shown}",
                f"{plural(len(missing), 'example')} of {evaluation!r} without a score (failed or abstained), and"
                f" {metric.kind} refuses missing rows; retry them, or use missing='leave_out' or 'wrong'",
            )
        )


def number_examples(
    evaluations: Sequence[Evaluation], indices: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Numbers of the examples of rows, in the order of their digests.

    Args:
        indices: by evaluation the `_index_` of its rows, ascending.

    Returns:
        By evaluation, numbers that are equal for equal examples; and numbers that are equal only for the first example
        of one evaluation and the first that equals it in another, and so on.
    """
    starts = [np.append(True, index[1:] != index[:-1])[: len(index)] for index in indices]
    digests: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    read = []
    for evaluation, index, start in zip(evaluations, indices, starts, strict=True):
        dataset = evaluation.manifest["spec"]["dataset"]
        if dataset not in digests:
            batches = evaluation.store.read(DATASETS, dataset, "examples", [INDEX, DIGEST])
            parts = zip(*((each.column(0).to_numpy(), digest_halves(each.column(1))) for each in batches), strict=True)
            all_indices, halves = map(np.concatenate, parts)
            digests[dataset] = all_indices, halves
        known, of_example = digests[dataset]  # examples are stored in the order of their index
        read.append(of_example if len(known) == start.sum() else of_example[np.searchsorted(known, index[start])])
    contents = examples = number_rows(read)
    if any(np.bincount(content, minlength=1).max() > 1 for content in contents):
        examples = number_rows([np.column_stack([each, count_earlier(each[:, None])]) for each in contents])
    rows = [np.cumsum(start) - 1 for start in starts]
    contents, examples = ([each[row] for each, row in zip(of, rows, strict=True)] for of in (contents, examples))
    return contents, examples
