"""Which parts of a problem's documents a score depends on: targets, index, split and metrics. It is stated only here.

A finding in another part is a fault for `evaluand problem check`, and a note where predictions are scored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from evaluand.core.errors import Fault
from evaluand.core.files.json import Findings

_PROBLEM: Final = (
    "inputs",
    "inputs.data",
    "inputs.data[]",
    "inputs.data[].datasetID",
    "inputs.data[].targets",
    "inputs.data[].targets[]",
    "inputs.data[].targets[].resID",
    "inputs.data[].targets[].colIndex",
    "inputs.data[].targets[].colName",
    "inputs.dataSplits",
    "inputs.dataSplits.splitsFile",
    "inputs.performanceMetrics",
    "inputs.performanceMetrics[]",
    "inputs.performanceMetrics[].metric",
    "inputs.performanceMetrics[].specifyOther",
    "inputs.performanceMetrics[].K",
    "inputs.performanceMetrics[].posLabel",
    "inputs.performanceMetrics[].applicabilityToTarget",
)
_TABLE: Final = ("", ".resID", ".resPath", ".resType", ".columns")
"""Of the resource with the index and the targets."""

_COLUMN: Final = ("", ".colIndex", ".colName", ".colType", ".role")
"""Of each column of the index, and of each target."""

_WITHOUT_MEANING: Final = ("not_applicable", "other_dataset", "other_resource")
"""Codes of a value that means nothing where it stands, and of wrong names where there is only one thing to be meant."""

Needed = Callable[[Fault], bool]


def needed_of_problem(fault: Fault) -> bool:
    """Whether a fault of a problemDoc.json, by its path in the document, is in a part that a score depends on.

    Example:
        >>> needed_of_problem(Fault("inputs.data[0].targets[1].colName", "is missing", code="missing_key"))
        True
        >>> needed_of_problem(Fault("about.taskKeywords[2]", "unknown value 'lukewarm'", code="not_allowed"))
        False
    """
    return fault.code not in _WITHOUT_MEANING and re.sub(r"\d+", "", fault.where) in _PROBLEM


def needed_of_dataset(table: int | None, columns: Iterable[int]) -> Needed:
    """The same for a datasetDoc.json.

    Args:
        table: the number of the resource with index and targets; None if there is none.
        columns: the numbers of its columns that are index or target.
    """
    resource = f"dataResources[{table}]"
    paths = {"dataResources", *(resource + key for key in _TABLE)}
    paths |= {f"{resource}.columns[{number}]{key}" for number in columns for key in _COLUMN}
    return lambda fault: fault.code not in _WITHOUT_MEANING and fault.where in paths


@dataclass
class FolderFindings(Findings):
    """What is wrong with a problem's folder.

    Attributes:
        beside: what is wrong in its documents, though no score depends on it.
    """

    beside: list[Fault] = field(default_factory=list)

    def take(self, document: str, inner: Findings, needed: Needed) -> None:
        """Takes over what was found in a document, under the name of its file."""

        def named(fault: Fault) -> Fault:
            return replace(fault, where=f"{document}: {fault.where}" if fault.where else document)

        self.notes += map(named, inner.notes)
        for fault in inner.faults:
            (self.faults if needed(fault) else self.beside).append(named(fault))

    def all(self) -> Findings:
        """With every fault, whether a score depends on it or not."""
        return Findings([*self.faults, *self.beside], self.notes)
