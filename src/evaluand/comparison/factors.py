"""One factor of a matrix of tasks, each prompt with each model: its effect on each example, averaged over the other.

The levels of a factor are sides of a comparison: the value of a row is the mean over the levels of the other factor, of
the same example and replication. Whether the effect depends on the other factor is tested by its contrasts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from evaluand.comparison.difference import row_weights
from evaluand.comparison.pairing import ABSENT, PairedRows
from evaluand.core import identity
from evaluand.core.errors import SpecError
from evaluand.metrics.stats.intervals import cluster_sums
from evaluand.metrics.stats.two_samples import hotelling


@dataclass(frozen=True)
class Factor:
    """The prompts, or the models, of a matrix of tasks.

    Attributes:
        name: of the factor.
        other: that of the other factor, which is averaged over.
        levels: the names of its prompts or models.
        cells: levels × levels of the other factor: the numbers of the evaluations.
    """

    name: str
    other: str
    levels: Sequence[str]
    cells: np.ndarray

    def describe(self) -> dict[str, Any]:
        """What is stored with a comparison: the names of both factors, and that of each evaluation's level."""
        levels = {number: name for name, own in zip(self.levels, self.cells.tolist(), strict=True) for number in own}
        return {"factor": self.name, "other": self.other, "levels": [levels[number] for number in sorted(levels)]}

    def average(self, rows: PairedRows) -> PairedRows:
        """The rows with a side for each level; a row has the value of a level if it has all of its values."""
        first = self.cells[:, 0]
        status = rows.status[self.cells]
        return replace(
            rows,
            status=np.where((status == ABSENT).any(axis=1), ABSENT, status.max(axis=1)).astype(np.int8),
            index=rows.index[first],
            **{name: getattr(rows, name)[self.cells].mean(axis=1) for name in ("value", "worst", "best")},
            sides=(),
            unit=None,
        )

    def interaction(self, rows: PairedRows, a: int, b: int) -> float:
        """The p value of the hypothesis that two levels differ equally under all levels of the other factor.

        Args:
            rows: of all evaluations.

        Returns:
            By Hotelling's test of the contrasts of clusters.
        """
        change = rows.value[self.cells[b]] - rows.value[self.cells[a]]
        used = ~np.isnan(change).any(axis=0) & (row_weights(rows, rows.metric) > 0)
        rows, contrasts = rows.take(used), (change[1:] - change[0])[:, used]
        weight, zeros = row_weights(rows, rows.metric), np.zeros(len(rows.group), np.int64)
        cluster = rows.example if rows.cluster is None else rows.cluster
        states = [cluster_sums(contrast, weight, cluster, zeros) for contrast in contrasts]
        return hotelling(np.stack([state["cluster_sum"] for state in states]), states[0]["cluster_weight"])


def find_factor(name: str, tasks: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> Factor:
    """The factor of a matrix of tasks.

    Args:
        name: `prompt` or `model`.
        tasks: the identities of the tasks of some evaluations; empty where one is unknown.
        labels: names of the evaluations.

    Raises:
        SpecError: there is no such factor, a task is unknown or asks no model, or the matrix has gaps.
    """
    if name not in _OTHER:
        raise SpecError(f"over is {name!r}; give prompt or model, the factors of a matrix of tasks")
    for task, label in zip(tasks, labels, strict=True):
        if "chat" not in task:
            raise SpecError(
                f"the {name} of {label} is unknown: its task asks no model, or its run is not in the store; compare the"
                " tasks of one entry with prompts and models"
            )
    keys = {"model": [identity.digest(task["chat"]) for task in tasks]}
    keys["prompt"] = [identity.digest({key: task[key] for key in task if key != "chat"}) for task in tasks]
    other = _OTHER[name]
    levels, others = (_name_levels(keys[factor], labels) for factor in (name, other))
    for factor, found in ((name, levels), (other, others)):
        if len(found) < 2:
            raise SpecError(
                f"all tasks have the same {factor}; compare tasks with several {name}s and several {other}s"
            )
    cells = np.full((len(levels), len(others)), -1)
    for number, (level, of_other) in enumerate(zip(keys[name], keys[other], strict=True)):
        place = [*levels].index(level), [*others].index(of_other)
        if cells[place] >= 0:
            raise SpecError(f"{labels[cells[place]]} and {labels[number]} have one prompt and one model; leave out one")
        cells[place] = number
    for row, column in np.argwhere(cells < 0)[:1].tolist():
        both = f"the {name} {[*levels.values()][row]} with the {other} {[*others.values()][column]}"
        raise SpecError(f"no task has {both}; run it too, or leave out one of them")
    return Factor(name, other, [*levels.values()], cells)


_OTHER: Final = {"prompt": "model", "model": "prompt"}


def _name_levels(of_tasks: Sequence[bytes], labels: Sequence[str]) -> dict[bytes, str]:
    """The levels of a factor with their names: the part that the labels of a level share, and no others have there."""
    parts = [label.split("/") for label in labels]
    found = {}
    for level in dict.fromkeys(of_tasks):
        own = [each for each, key in zip(parts, of_tasks, strict=True) if key == level]
        names = (
            name
            for place, name in enumerate(own[0])
            if all(each[place : place + 1] == [name] for each in own)
            and sum(each[place : place + 1] == [name] for each in parts) == len(own)
        )
        found[level] = next(names, "/".join(own[0]))
    return found
