"""Tables of scores with the attributes, weights and clusters of their examples, cut into shards at fixed places.

Also a random order of the examples: `--until` takes more and more of them, and worst groups are judged on one half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.shard import ATTRIBUTE
from evaluand.core import identity
from evaluand.core.errors import NotFound, SpecError
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import CLUSTER, DRAW, PEOPLE, STRATUM, WEIGHT, Metric
from evaluand.metrics.judging.labelling_order import random_places
from evaluand.metrics.stats.intervals import random_bits
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


def is_repeated(evaluation: Evaluation) -> bool:
    """Whether the run had several replications, whose rows are not independent."""
    return bool(evaluation.read_run().manifest["spec"]["replications"] > 1)


def shards(
    evaluation: Evaluation,
    scorer: str,
    attributes: Sequence[str] = (),
    read: list[str] | None = None,
    where: str | None = None,
    labelled_for: Metric | None = None,
) -> Iterator[pa.Table]:
    """The scores with the attributes (columns named `ATTRIBUTE` …), cut at multiples of `SHARD_ROWS` examples.

    Args:
        read: the columns of scores to read; all by default.
        where: only rows of examples that match this condition.
        labelled_for: a metric; if it `reads_labels`, these are added.
    """
    dataset = dataset_of(evaluation)
    matching = None if where is None else dataset.matches(where)
    indices = np.frombuffer(dataset.indices, dtype=np.int64) if len(dataset) else np.empty(0, np.int64)
    columns = {ATTRIBUTE + name: _column(dataset, name) for name in attributes} | _example_columns(dataset)
    reads_labels = labelled_for is not None and labelled_for.reads_labels
    add_labels = label_adder(evaluation, scorer, labelled_for) if labelled_for and reads_labels else None
    parts: list[pa.Table] = []
    shard = 0
    for batch in evaluation.batches(scorer, read):
        positions = np.searchsorted(indices, batch.column(INDEX).to_numpy())
        table = pa.Table.from_batches([batch])
        for name, column in columns.items():
            table = table.append_column(name, column.take(pa.array(positions)))
        if add_labels is not None:
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
    if not parts:
        parts = [evaluation.table(scorer)]
        for name, column in columns.items():
            parts = [parts[0].append_column(name, column.slice(0, 0))]
    yield pa.concat_tables(parts)


def label_adder(evaluation: Evaluation, scorer: str, metric: Metric) -> Callable[[pa.Table, np.ndarray], pa.Table]:
    """A function that adds the columns `PEOPLE`, `DRAW` and `STRATUM` to rows of a scorer's table.

    Args:
        metric: one that `reads_labels`; its parameters say which labels, in which random order they were given, and the
            attribute that defines strata.

    Returns:
        A function of rows and the positions of their examples.
    """
    from evaluand.evaluation.people_labels import read_people_values  # on use: most metrics read no labels

    dataset, name = dataset_of(evaluation), getattr(metric, "strata", None)
    strata = None if name is None else cluster_keys(_column(dataset, name).combine_chunks()).to_numpy()
    known = read_people_values(evaluation, scorer, getattr(metric, "labels", None))
    digests = _digest_halves(dataset)

    def add(table: pa.Table, positions: np.ndarray) -> pa.Table:
        replications = table.column("replication").to_numpy()
        keys = zip(*(table.column(name).to_pylist() for name in (INDEX, "replication", RESPONSE_INDEX)), strict=True)
        people = [known.get((index, replication, response or 0)) for index, replication, response in keys]
        draw = random_places(digests[positions], replications, getattr(metric, "seed", 0))
        stratum = np.zeros(len(positions), np.int64) if strata is None else strata[positions]
        table = table.append_column(PEOPLE, pa.array(people, pa.float64()))
        return table.append_column(DRAW, pa.array(draw)).append_column(STRATUM, pa.array(stratum))

    return add


def digests_of_labels(evaluations: Sequence[Evaluation], metrics: Iterable[Metric]) -> dict[str, list[str | None]]:
    """What an aggregation depends on besides evaluations: `{"people": digests}` of labels, if a metric reads any."""
    if not any(metric.reads_labels for metric in metrics):
        return {}
    from evaluand.evaluation.people_labels import find_people  # on use, as above

    found = map(find_people, evaluations)
    return {"people": [None if each is None else each.digest for each in found]}


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
    weights, clusters = weights_of(dataset), clusters_of(dataset)
    found = {} if weights is None else {WEIGHT: weights}
    return found if clusters is None else found | {CLUSTER: pa.chunked_array([pa.array(clusters)])}


def weights_of(dataset: Dataset) -> pa.ChunkedArray | None:
    """The weight of each example; None without weights."""
    name = dataset.roles.weight
    return None if name is None else _column(dataset, name).cast(pa.float64())


def clusters_of(dataset: Dataset) -> np.ndarray | None:
    """The key of each example's cluster; None without clusters."""
    name = dataset.roles.cluster
    return None if name is None else cluster_keys(_column(dataset, name).combine_chunks()).to_numpy()


def cluster_of_examples(dataset: Dataset) -> np.ndarray:
    """The key of each example's cluster; without clusters, equal examples are one."""
    clusters = clusters_of(dataset)
    return _digest_halves(dataset)[:, 0].astype(np.int64) if clusters is None else clusters


def draw_places(dataset: Dataset, seed: int, purpose: int = 0) -> np.ndarray:
    """The place of each example in a random order, from 0 to below 1; equal within a cluster, and for equal examples.

    The rows of a file are often sorted, by topic or by label, so its first rows are no fair sample of all. A place
    depends on the seed and the example's content alone, or on the value that defines its cluster: rows that are added
    later do not change the order of the others, and no outcome does.

    Args:
        purpose: orders for different purposes are independent of each other.
    """
    clusters = clusters_of(dataset)
    if clusters is None:
        return random_places(_digest_halves(dataset), np.full(len(dataset), purpose), seed)
    bits = random_bits(random_bits(clusters.view(np.uint64), seed), purpose)
    return np.asarray((bits >> np.uint64(11)) / 2**53)


def draw_positions(dataset: Dataset, n: int, of: int, seed: int) -> np.ndarray:
    """The positions of n examples drawn from the first `of` ones; more if the last cluster has more.

    Example:
        >>> data = Dataset.from_rows([{"input": place} for place in range(10)])
        >>> draw_positions(data, 3, 10, 0).tolist(), draw_positions(data, 4, 10, 0).tolist()
        ([0, 6, 8], [0, 4, 6, 8])
    """
    place = draw_places(dataset, seed)[:of]
    return np.flatnonzero(place <= np.sort(place)[min(n, len(place)) - 1])


def _digest_halves(dataset: Dataset) -> np.ndarray:
    """The digests of the examples as two numbers each."""
    return np.frombuffer(b"".join(dataset.example_digests()), ">i8").reshape(-1, 2)


def _column(dataset: Dataset, name: str) -> pa.ChunkedArray:
    return pa.chunked_array([b.column(0) for b in dataset.columns([name])], type=dataset.schema.field(name).type)
