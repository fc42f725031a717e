"""What people say about the rows of a judge, as columns beside them, for metrics that read labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.metrics.base.metric import DRAW, PEOPLE, STRATUM, Metric
from evaluand.metrics.judging.labelling_order import random_places

if TYPE_CHECKING:
    from evaluand.data.dataset import Dataset
    from evaluand.evaluation.evaluator import Evaluation


def label_adder(
    evaluation: Evaluation, dataset: Dataset, scorer: str, metric: Metric, strata: np.ndarray | None
) -> Callable[[pa.Table, np.ndarray], pa.Table]:
    """A function that adds the columns `PEOPLE`, `DRAW` and `STRATUM` to rows of a scorer's table.

    Args:
        metric: one that `reads_labels`; its parameters say which labels, and in which random order they were given.
        strata: the number of the stratum of each example; None without strata.

    Returns:
        A function of rows and the positions of their examples.
    """
    from evaluand.evaluation.people_labels import read_people_values  # on use: most metrics read no labels

    known = read_people_values(evaluation, scorer, getattr(metric, "labels", None))
    digests = np.array([np.frombuffer(each, ">i8") for each in dataset.example_digests()], np.int64).reshape(-1, 2)

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
