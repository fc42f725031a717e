"""Whether a dataset has the types that a task declares."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from evaluand.core.errors import SHOWN_FAULTS, DataError, Fault
from evaluand.data.dataset import Dataset
from evaluand.run.task import Task, input_type
from evaluand.run.types import typed


def prepare(task: Task[Any, Any], dataset: Dataset) -> None:
    """Check that a dataset has the types that a task declares, and let the task prepare for it."""
    _require_fit(task, dataset)
    task.prepare(dataset)


def _require_fit(task: Task[Any, Any], dataset: Dataset) -> None:
    faults: list[Fault] = []
    takes = ("input", input_type(task), "takes"), ("expected", typed(task.expects), "is for datasets that expect")
    for part, type, verb in takes:
        if type is not None and not _has_column_type(type.type, dataset, getattr(dataset.roles, part)):
            misfits = ((e.index, fault) for e in dataset if (fault := type.fault(getattr(e, part))))
            faults += [
                Fault(f"_index_ {index}, {part}", f"{fault}; task {task.name!r} {verb} {type.name}")
                for index, fault in itertools.islice(misfits, SHOWN_FAULTS)
            ]
    if faults:
        raise DataError(faults)


def _has_column_type(type: Any, dataset: Dataset, role: Any) -> bool:
    """Whether the column type already guarantees the type of all values."""
    if dataset.view_spec is not None or not isinstance(role, str):
        return False
    if not inspect.isclass(type) or type not in _COLUMN_TYPES:
        return False
    if not any(of(dataset.schema.field(role).type) for of in _COLUMN_TYPES[type]):
        return False
    return all(batch.column(0).null_count == 0 for batch in dataset.columns([role]))


_COLUMN_TYPES: Mapping[Any, tuple[Callable[[pa.DataType], bool], ...]] = {
    str: (pa.types.is_string, pa.types.is_large_string),
    int: (pa.types.is_integer,),
    float: (pa.types.is_floating, pa.types.is_integer),
    bool: (pa.types.is_boolean,),
}
