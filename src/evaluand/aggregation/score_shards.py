"""Tables of scores with the attributes, weights and clusters of their examples, cut into shards at fixed places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.labelled_rows import label_adder
from evaluand.core import identity
from evaluand.core.errors import NotFound, SpecError
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import CLUSTER, WEIGHT, Metric
from evaluand.metrics.stats.intervals import random_bits
from evaluand.run.kind import RUNS
from evaluand.store.tables import SHARD_ROWS


def dataset_of(evaluation: Evaluation) -> Dataset:
    """The dataset of an evaluation.

    Raises:
        NotFound: the store does not have it.
    """
    try:
        return Dataset.stored(evaluation.store, evaluation.manifest["spec"]["dataset"])
    except NotFound as error:
        raise NotFound(f"evaluation {evaluation.id}: its dataset is missing: {error}") from None


def datasets_of(evaluations: Sequence[Evaluation]) -> list[Dataset]:
    """The dataset of each evaluation; each is read once.

    Raises:
        NotFound: a store does not have it.
    """
    keys = [(id(each.store), each.manifest["spec"]["dataset"]) for each in evaluations]
    read = {key: dataset_of(each) for key, each in dict(zip(keys, evaluations, strict=True)).items()}
    return [read[key] for key in keys]


def is_repeated(evaluation: Evaluation) -> bool:
    """Whether the run had several replications, whose rows are not independent."""
    run = evaluation.store.manifest(RUNS, evaluation.manifest["provenance"]["run"])
    return bool(run["spec"]["replications"] > 1)


def shards(
    evaluation: Evaluation,
    dataset: Dataset,
    scorer: str,
    attributes: Sequence[str] = (),
    read: list[str] | None = None,
    where: str | None = None,
    labelled_for: Metric | None = None,
) -> Iterator[pa.Table]:
    """The scores with the attributes (`attribute_columns`), cut at multiples of `SHARD_ROWS` examples.

    Args:
        dataset: its dataset, with the attributes.
        read: the columns of scores to read; all by default.
        where: only rows of examples that match this condition.
        labelled_for: a metric that `reads_labels`; the labels are added for it.
    """
    matching = None if where is None else dataset.matches(where)
    indices = np.frombuffer(dataset.indices, dtype=np.int64) if len(dataset) else np.empty(0, np.int64)
    names = zip(attribute_columns(attributes), attributes, strict=True)
    columns = {column: _column(dataset, name) for column, name in names} | _example_columns(dataset)
    add_labels = find_label_adder(evaluation, dataset, scorer, labelled_for)
    parts: list[pa.Table] = []
    shard = 0
    for batch in evaluation.batches(scorer, read):
        positions = np.searchsorted(indices, batch.column(INDEX).to_numpy())
        table = pa.Table.from_batches([batch])
        for name, column in columns.items():
            table = table.append_column(name, column.take(pa.array(positions)))
        table = add_labels(table, positions)
        if matching is not None:
            table, positions = table.filter(pa.array(matching[positions])), positions[matching[positions]]
        borders = np.flatnonzero(np.diff(positions // SHARD_ROWS)) + 1
        for start, stop in zip([0, *borders.tolist()], [*borders.tolist(), len(positions)], strict=True):
            if stop > start and int(positions[start]) // SHARD_ROWS != shard:
                if parts:
                    yield pa.concat_tables(parts)
                parts, shard = [], int(positions[start]) // SHARD_ROWS
            parts.append(table.slice(start, stop - start))
    yield pa.concat_tables(parts) if parts else _empty_shard(evaluation, scorer, columns)


def find_label_adder(
    evaluation: Evaluation, dataset: Dataset, scorer: str, metric: Metric | None
) -> Callable[[pa.Table, np.ndarray], pa.Table]:
    if metric is None:
        return lambda table, positions: table
    name = getattr(metric, "strata", None)
    strata = None if name is None else cluster_keys(_column(dataset, name).combine_chunks()).to_numpy()
    return label_adder(evaluation, dataset, scorer, metric, strata)


_ATTRIBUTE: Final = "by:"


def attribute_columns(attributes: Sequence[str]) -> tuple[str, ...]:
    """The column names of attributes, which cannot clash with the columns of a scorer."""
    return tuple(f"{_ATTRIBUTE}{name}" for name in attributes)


def attribute_values(by: Mapping[str, str | None]) -> dict[str, str | None]:
    """The values of a group by the names of its attributes: the inverse of `attribute_columns`."""
    return {column.removeprefix(_ATTRIBUTE): value for column, value in by.items()}


def cluster_keys(column: pa.Array) -> pa.Array:
    """64-bit keys of the values of a column; equal values have equal keys on any machine.

    A row without a value gets a unique key.

    Raises:
        SpecError: the column holds lists or objects.
    """
    if pa.types.is_nested(column.type):
        raise SpecError(f"clusters must be text, numbers or times, not {column.type}")
    codes = column.dictionary_encode()
    keys = [int.from_bytes(identity.digest(value)[:8], "big", signed=True) for value in codes.dictionary.to_pylist()]
    own = pa.array(random_bits(np.arange(len(column), dtype=np.uint64), 1).view(np.int64))
    return pc.coalesce(pa.array(keys, pa.int64()).take(codes.indices), own)


def _example_columns(dataset: Dataset) -> dict[str, pa.ChunkedArray]:
    """The weights of the examples and the keys of their clusters, where they have some."""
    found = {}
    if dataset.roles.weight is not None:
        found[WEIGHT] = _column(dataset, dataset.roles.weight).cast(pa.float64())
    if (clusters := _clusters_of(dataset)) is not None:
        found[CLUSTER] = pa.chunked_array([clusters])
    return found


def weights_of(dataset: Dataset) -> np.ndarray | None:
    """The weight of each example; None without weights."""
    name = dataset.roles.weight
    return None if name is None else np.asarray(_column(dataset, name).cast(pa.float64()).to_numpy())


def clusters_of(dataset: Dataset) -> np.ndarray | None:
    """The key of each example's cluster; None without clusters."""
    keys = _clusters_of(dataset)
    return None if keys is None else keys.to_numpy()


def _clusters_of(dataset: Dataset) -> pa.Array | None:
    name = dataset.roles.cluster
    return None if name is None else cluster_keys(_column(dataset, name).combine_chunks())


def _empty_shard(evaluation: Evaluation, scorer: str, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    table = evaluation.table(scorer)
    for name, column in columns.items():
        table = table.append_column(name, column.slice(0, 0))
    return table


def _column(dataset: Dataset, name: str) -> pa.ChunkedArray:
    return pa.chunked_array([b.column(0) for b in dataset.columns([name])], type=dataset.schema.field(name).type)
