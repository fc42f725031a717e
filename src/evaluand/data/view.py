"""Views: the inputs that a task sees of a dataset's rows, after they have passed through adapters.

A dataset stays as it is; each service asks for its own shape of it. A view is applied when examples are read, and is
part of the identity of the runs made with it. It can use what a task may know: `_index_` and the columns with the
roles input, id, attributes and metadata, not what is expected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from evaluand.core.errors import SHOWN_FAULTS, DataError, Fault, SpecError
from evaluand.data.adapters.base.adapted import Counts
from evaluand.data.adapters.base.columns import read_rows
from evaluand.data.adapters.base.faults import AdapterError
from evaluand.data.adapters.base.pipeline import Pipeline
from evaluand.data.roles import Roles
from evaluand.data.sources import DataSource
from evaluand.store.tables import INDEX


class View:
    """Makes one input of each row.

    Args:
        pipeline: the adapters; each row must become exactly one.
        roles: those of the dataset.

    Attributes:
        counts: what became of the dataset's rows when they were checked.

    Raises:
        SpecError: the pipeline leaves rows out, or makes requests.
    """

    def __init__(self, pipeline: Pipeline, roles: Roles) -> None:
        if pipeline.on_error == "skip":
            raise SpecError("a view keeps every example: give onError default with a row, not skip")
        if pipeline.last:
            raise SpecError("FileUpload makes requests: it belongs to the task's input_pipeline, not to a view")
        self.pipeline, self.counts = pipeline, Counts()
        own = (roles.input, roles.id, roles.attributes, roles.metadata)
        names = [name for role in own if role for name in ([role] if isinstance(role, str) else role)]
        self.columns = tuple(dict.fromkeys([INDEX, *names]))

    def inputs(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """The input that is made of each row of a batch.

        Raises:
            AdapterError: a row cannot be transformed, or becomes none or several.
        """
        part = batch.select(list(self.columns))
        made = self.pipeline.adapt_batch(part)
        if made is not None and made.num_rows == part.num_rows:
            return map(_input, read_rows(made))
        return (self._one(row) for row in read_rows(part))

    def check(self, source: DataSource) -> None:
        """Transforms all rows once, so that what cannot be is known before anything is called.

        Raises:
            DataError: each way in which rows fail, once, with the first of them and how many they are.
        """
        failed: dict[str, list[int]] = {}
        firsts: list[str] = []
        position = 0
        for batch in source.batches():
            for place, row in enumerate(read_rows(batch.select(list(self.columns)))):
                try:
                    self._one(row, self.counts)
                except AdapterError as error:
                    why = error.faults[0].message
                    if why not in failed:
                        firsts.append(source.where(position + place))
                    failed.setdefault(why, []).append(row[INDEX])
            position += batch.num_rows
        if failed:
            told = [_told(*one) for one in zip(firsts, failed, failed.values(), strict=True)]
            more = [Fault("", f"… and {len(told) - SHOWN_FAULTS:,} more faults")] if len(told) > SHOWN_FAULTS else []
            raise DataError(told[:SHOWN_FAULTS] + more)

    def _one(self, row: dict[str, Any], counts: Counts | None = None) -> Any:
        made: Sequence[Any] = list(self.pipeline([row], counts))
        if len(made) != 1:
            raise _of_row(row, f"the view makes {len(made)} inputs of it; make one of each example")
        if isinstance(made[0], dict) and made[0].get(INDEX, row[INDEX]) != row[INDEX]:
            told = f"the view writes {made[0][INDEX]!r} to {INDEX}, which no task sees; give that another name"
            raise _of_row(row, told)
        return _input(made[0])


_EXAMPLES = 5


def _of_row(row: dict[str, Any], told: str) -> AdapterError:
    error = AdapterError(told)
    error.add_place(f"{INDEX} {row[INDEX]}")
    return error


def _told(first: str, why: str, indices: Sequence[int]) -> Fault:
    """A fault that has no place of its own, since it is that of the view; `first` is where its first row stands."""
    others = ""
    if len(indices) > 1:
        shown = ", ".join(map(str, indices[:_EXAMPLES])) + ", …" * (len(indices) > _EXAMPLES)
        others = f" ({len(indices):,} rows fail so: {INDEX} {shown})"
    return Fault("", f"{first}: {INDEX} {indices[0]}: {why}{others}")


def _input(row: Any) -> Any:
    """A row as a task sees it: its `_index_` is evaluand's, not the task's."""
    return {name: value for name, value in row.items() if name != INDEX} if isinstance(row, dict) else row
