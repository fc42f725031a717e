"""Views: the inputs of a dataset transformed by adapters, for services that need them in another shape.

The dataset itself does not change. A view is applied when examples are read, and enters the identity of the runs that
use it. It sees what a task may know: `_index_` and the columns with the roles input, id, attributes and metadata, not
the expected answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evaluand.core.errors import SHOWN_FAULTS, DataError, Fault, SpecError
from evaluand.core.key_columns import INDEX
from evaluand.data import schema as schemas  # which loads pydantic with the first schema
from evaluand.data.adapters.base.adapter import Counts, Pipeline
from evaluand.data.adapters.base.columns import read_rows
from evaluand.data.adapters.base.options import AdapterError
from evaluand.data.roles import Roles
from evaluand.data.sources import DataSource


@dataclass(frozen=True)
class ViewSpec:
    """The adapters of a view, and the schema of what they make.

    Attributes:
        pipeline: the adapters.
        schema: what they must make; None for anything.
    """

    pipeline: Pipeline
    schema: schemas.ValueSchema | None = None

    @classmethod
    def of(cls, adapters: Any, schema: Any = None) -> ViewSpec:
        """From a `Pipeline`, or its JSON configuration, which may have a `schema` in addition.

        Raises:
            SpecError: the adapters or the schema are wrong.
        """
        if isinstance(adapters, cls):
            return adapters if schema is None else cls(adapters.pipeline, schemas.ValueSchema.of(schema))
        if isinstance(adapters, Mapping) and "schema" in adapters and "kind" not in adapters:
            schema = adapters["schema"] if schema is None else schema
            adapters = {name: value for name, value in adapters.items() if name != "schema"} or []
        pipeline = adapters if isinstance(adapters, Pipeline) else Pipeline.of(adapters)
        # without `_index_`: as the task sees it
        return cls(pipeline, None if schema is None else schemas.ValueSchema.of(schema).without(INDEX))


class View:
    """Transforms each row into one input.

    Args:
        spec: the adapters, which must return exactly one row for each, and what each input must be.

    Attributes:
        counts: what happened to the dataset's rows when they were checked.

    Raises:
        SpecError: the pipeline skips rows, or prepares requests.
    """

    def __init__(self, spec: ViewSpec, roles: Roles) -> None:
        pipeline = spec.pipeline
        if pipeline.on_error == "skip":
            raise SpecError("a view must keep every example: use onError default with a row, not skip")
        if pipeline.last:
            raise SpecError("FileUpload prepares requests: put it into the task's input_pipeline, not into a view")
        self.pipeline, self.counts, self.schema = pipeline, Counts(), spec.schema
        visible = (roles.input, roles.id, roles.attributes, roles.metadata)
        names = [name for role in visible if role for name in ([role] if isinstance(role, str) else role)]
        self.columns = tuple(dict.fromkeys([INDEX, *names]))

    def inputs(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """The input of each row of a batch."""
        part = batch.select(list(self.columns))
        adapted = self.pipeline.adapt_batch(part)
        if adapted is not None and adapted.num_rows == part.num_rows:
            return map(_remove_index, read_rows(adapted))
        return (self._transform(row) for row in read_rows(part))

    def check(self, source: DataSource) -> None:
        """Transform all rows once, so that faults are known before any task is called."""
        failed: dict[str, list[int]] = {}
        firsts: list[str] = []
        position = 0
        for batch in source.batches():
            for place, row in enumerate(read_rows(batch.select(list(self.columns)))):
                problem = self._problem(row)
                if problem:
                    if problem not in failed:
                        firsts.append(source.where(position + place))
                    failed.setdefault(problem, []).append(row[INDEX])
            position += batch.num_rows
        if failed:
            faults = [_summarise(*each) for each in zip(firsts, failed, failed.values(), strict=True)]
            more = len(faults) - SHOWN_FAULTS
            raise DataError(faults[:SHOWN_FAULTS] + ([Fault("", f"… and {more:,} more faults")] if more > 0 else []))

    def _problem(self, row: dict[str, Any]) -> str:
        """What is wrong with the input that a row becomes; empty if it is valid."""
        try:
            made = self._transform(row, self.counts)
        except AdapterError as error:
            return error.faults[0].message
        fault = self.schema.fault(made, "input") if self.schema else ""
        return f"{fault}: it does not fit the schema of the view" if fault else ""

    def _transform(self, row: dict[str, Any], counts: Counts | None = None) -> Any:
        rows: Sequence[Any] = list(self.pipeline([row], counts))
        if len(rows) != 1:
            raise _row_error(row, f"the view returns {len(rows)} inputs for it; return one for each example")
        if isinstance(rows[0], dict) and rows[0].get(INDEX, row[INDEX]) != row[INDEX]:
            raise _row_error(
                row, f"the view writes {rows[0][INDEX]!r} to {INDEX}, which no task sees; use another field name"
            )
        return _remove_index(rows[0])


_MAX_INDICES = 5


def _row_error(row: dict[str, Any], message: str) -> AdapterError:
    error = AdapterError(message)
    error.add_place(f"{INDEX} {row[INDEX]}")
    return error


def _summarise(first: str, problem: str, indices: Sequence[int]) -> Fault:
    """One fault for all rows with the same problem; `first` is the place of the first row."""
    others = ""
    if len(indices) > 1:
        listed = ", ".join(map(str, indices[:_MAX_INDICES]))
        more = ", …" if len(indices) > _MAX_INDICES else ""
        others = f" ({len(indices):,} rows fail this way: {INDEX} {listed}{more})"
    return Fault("", f"{first}: {INDEX} {indices[0]}: {problem}{others}")


def _remove_index(row: Any) -> Any:
    """A row as the task sees it, without the `_index_`."""
    return {name: value for name, value in row.items() if name != INDEX} if isinstance(row, dict) else row
