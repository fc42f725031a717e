"""Outputs in the form of Dyff: rows with `_index_`, `_replication_` and a list `responses`, and views of them.

Such rows are validated wherever they are read: against their schema, and each `_replication_` must be a UUID. A view
transforms each item of `responses`, and its rows are validated against the schema of the view.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from evaluand.core.errors import SpecError
from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.data.adapters.base.adapter import Pipeline
from evaluand.data.adapters.base.options import AdapterError
from evaluand.data.schema import keys
from evaluand.data.schema.data import DataSchema
from evaluand.data.schema.declared import check_rows
from evaluand.data.schema.faults import Faults, RowFault, SchemaError, sort_faults
from evaluand.data.schema.limits import format_value

_UUID: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MOST: Final = 1000
Rows: TypeAlias = pa.Table | Iterable[Mapping[str, Any]]


def validate_outputs(
    schema: DataSchema, data: Rows, *, json: bool = False, indices: Iterable[int] | None = None
) -> pa.Table:
    """The table of valid outputs, with missing values filled by their defaults.

    Args:
        schema: a schema of outputs, as `DataSchema.make_output_schema` makes one.
        data: mappings, or an Arrow table.
        json: whether the rows have the forms of JSON.
        indices: every `_index_` of the dataset that the outputs belong to; by default any is valid.

    Raises:
        SchemaError: rows break the schema, a `_replication_` is not a UUID, an `_index_` is unknown, or an `_index_`,
            `_replication_` and `_response_index_` occur together in two rows.
        SpecError: it is not a schema of outputs.

    Example:
        >>> schema = DataSchema.make_output_schema("text.Text")
        >>> row = {"_index_": 0, "_replication_": "1", "responses": [{"_response_index_": 0, "text": "a"}]}
        >>> try:
        ...     validate_outputs(schema, [row])
        ... except SchemaError as error:
        ...     print(error)
        row 0 (_index_ 0): _replication_: '1' is not a UUID; give replication_id(evaluation, number)
    """
    schema.response()  # refuses a schema that is not of outputs
    rows = data if isinstance(data, pa.Table) else list(data)
    table, faults = check_rows(schema.to_schema().struct, rows, json=json, most=_MOST)
    known = None if indices is None else frozenset(indices)
    found = _key_faults(rows.to_pylist() if isinstance(rows, pa.Table) else rows, known)
    if table is None or found:
        counts = faults.counts + Counter((each.path, each.what) for each in found)
        raise SchemaError(Faults(sort_faults([*faults, *found]), counts))
    return table


def view_outputs(table: pa.Table, adapters: Any, schema: DataSchema) -> pa.Table:
    """Valid outputs in a view: each item of `responses` after the adapters, valid against the schema of the view.

    Items that are made of one item have its `_response_index_`.

    Args:
        table: of `validate_outputs`.
        adapters: a `Pipeline`, or its JSON configuration; None leaves the items as they are.

    Raises:
        SchemaError: an item cannot be transformed, or breaks the schema; lists every fault.
    """
    pipeline = adapters if isinstance(adapters, Pipeline) else Pipeline.of(adapters or [])
    if pipeline.last or pipeline.on_error != "abort":
        raise SpecError("a view of outputs transforms every item: leave out onError and FileUpload")
    rows, faults = [], []
    for number, row in enumerate(table.to_pylist(maps_as_pydicts="strict")):
        items: list[Any] = []
        for place, item in enumerate(row[keys.RESPONSES]):
            try:
                for made in pipeline.apply(item):
                    is_object = isinstance(made, Mapping)
                    items.append({RESPONSE_INDEX: item[RESPONSE_INDEX], **made} if is_object else made)
            except AdapterError as error:
                path, index = f"{keys.RESPONSES}[{place}]", row[keys.INDEX]
                where = f"row {number} ({keys.INDEX} {index}): {path}"
                faults.append(RowFault(where, str(error), number, index, path, "view"))
        rows.append(row | {keys.RESPONSES: items})
    if faults:
        raise SchemaError(Faults(faults[:_MOST], Counter((f"{keys.RESPONSES}[]", "view") for _ in faults)))
    return validate_outputs(schema, rows)


def _key_faults(rows: Sequence[Any], known: frozenset[int] | None) -> list[RowFault]:
    faults = []
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            continue
        index, replication = row.get(keys.INDEX), row.get(keys.REPLICATION)
        whole = index if type(index) is int else None
        messages = {}  # values of another type are faults of the schema
        if isinstance(replication, str) and not _UUID.fullmatch(replication):
            shown = format_value(replication)
            messages[keys.REPLICATION] = f"{shown} is not a UUID; give replication_id(evaluation, number)"
        if known is not None and whole is not None and whole not in known:
            messages[keys.INDEX] = f"{whole} is not an _index_ of the dataset"
        for name, message in messages.items():
            where = f"row {number} ({keys.INDEX} {index}): {name}"
            faults.append(RowFault(where, message, number, whole, name, "key"))
    return faults
