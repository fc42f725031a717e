"""Adapters as functions that turn one row into new rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from evaluand.core.errors import kind_of
from evaluand.data.adapters.base.faults import AdapterError, WrongType

Row = dict[str, Any]
Step = Callable[[Any], Sequence[Row]]

INDEX: Final = "_index_"


def make_step(adapt: Step, name: str, *, objects_only: bool) -> Step:
    """An adapter's `adapt` whose errors name the adapter.

    Args:
        name: the adapter's kind, with its place in a pipeline of several.
        objects_only: refuse rows that are not objects before they reach the adapter.
    """

    def step(row: Any) -> Sequence[Row]:
        try:
            return adapt(row) if type(row) is dict or not objects_only else adapt(_as_object(row))
        except AdapterError as error:
            error.add_place(name)
            raise
        except RecursionError:
            raise AdapterError(f"{name}: the row is nested too deeply") from None

    return step


def chain_steps(steps: Sequence[Step]) -> Step:
    """One step that applies several in order, each to every row that the step before produced."""
    if len(steps) == 1:
        return steps[0]

    def apply(row: Any) -> Sequence[Row]:
        rows: Sequence[Row] = (row,)
        for step in steps:
            rows = step(rows[0]) if len(rows) == 1 else [new for old in rows for new in step(old)]
        return rows

    return apply


def row_name(row: Any, place: int) -> str:
    """How messages name a row: by its `_index_`, or by its place in the stream."""
    index = row.get(INDEX) if isinstance(row, Mapping) else None
    return f"row {place}" if index is None else f"{INDEX} {index}"


def _as_object(row: Any) -> Row:
    if isinstance(row, Mapping):
        return dict(row)
    raise WrongType(f"the row is {kind_of(row)}; an adapter works on objects")
