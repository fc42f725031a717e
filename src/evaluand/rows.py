"""The tables of the path: their key, their statuses and their Arrow schemas, in one place.

    examples     one row per example: `_index_`, `_digest_` and the native columns, whose roles stand in the schema
    responses    one row per example and replication: what the task gave, or how it failed
    spans        what happened inside the calls
    scores/NAME  one row per response (and target): what a scorer gave
    metrics      one row per metric and group: what everything comes to

The key of a row is `_index_` (which example), `replication` (which repeat), `_response_index_` (which of several
answers) and `target` (which of several things expected). A text column that holds canonical JSON carries
`evaluand: json` in its field's metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from evaluand.errors import SpecError

INDEX: Final = "_index_"
DIGEST: Final = "_digest_"

COMPLETED: Final = "completed"
SCORED: Final = "scored"
FAILED: Final = "failed"
ABSTAINED: Final = "abstained"
SKIPPED: Final = "skipped"
RESPONSE_STATUSES: Final = (COMPLETED, FAILED, SKIPPED)
SCORE_STATUSES: Final = (SCORED, FAILED, ABSTAINED, SKIPPED)

SHARD_ROWS: Final = 65_536
"""Aggregation shards have borders at multiples of this `_index_`, so any number of workers gives the same bytes."""

_JSON: Final = {"evaluand": "json"}


def json_field(name: str) -> pa.Field:
    """A text field that holds canonical JSON."""
    return pa.field(name, pa.string(), metadata=_JSON)


def is_json(field: pa.Field) -> bool:
    """Whether a field holds canonical JSON."""
    return bool(field.metadata) and field.metadata.get(b"evaluand") == b"json"


RESPONSE_ITEM: Final = pa.struct([pa.field("_response_index_", pa.int64()), json_field("value")])

ERROR: Final = pa.struct([(name, pa.string()) for name in ("type", "message", "code", "place")])

RESPONSES: Final = pa.schema(
    [
        pa.field(INDEX, pa.int64(), nullable=False),
        pa.field("replication", pa.int32(), nullable=False),
        pa.field("fold", pa.int32()),
        pa.field("digest", pa.binary(16), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", ERROR),
        pa.field("responses", pa.list_(RESPONSE_ITEM)),
        pa.field("n_responses", pa.int32(), nullable=False),
        pa.field("attempts", pa.int32(), nullable=False),
        pa.field(
            "usage",
            pa.struct(
                [
                    ("input_tokens", pa.int64()),
                    ("output_tokens", pa.int64()),
                    ("cost", pa.float64()),
                    ("currency", pa.string()),
                    ("model", pa.string()),
                ]
            ),
        ),
        pa.field("started", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("duration", pa.duration("us"), nullable=False),
    ]
)
"""`digest` is that of what the task could see of the example; `responses` null is no answer, `[]` an empty answer.
`place` of an error is where in first-party code it arose: `app.py:11 in lookup`."""

SPANS: Final = pa.schema(
    [
        pa.field(INDEX, pa.int64(), nullable=False),
        pa.field("replication", pa.int32(), nullable=False),
        pa.field("span", pa.int32(), nullable=False),
        pa.field("parent", pa.int32()),
        pa.field("name", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("start", pa.duration("us"), nullable=False),
        pa.field("duration", pa.duration("us")),
        pa.field("status", pa.string(), nullable=False),
        json_field("input"),
        json_field("output"),
        json_field("attributes"),
        json_field("events"),
    ]
)
"""`start` counts from the row's `started`; `duration` null is a span left open. Span 0 is the call itself."""

METRICS: Final = pa.schema(
    [
        pa.field("evaluation", pa.int32(), nullable=False),
        pa.field("scorer", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("signature", pa.string(), nullable=False),
        pa.field("run_digest", pa.string(), nullable=False),
        pa.field("target", pa.string()),
        pa.field("by", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("value", pa.float64()),
        json_field("data"),
        pa.field("reason", pa.string()),
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
        pa.field("worst", pa.float64()),
        pa.field("best", pa.float64()),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("n_scored", pa.int64(), nullable=False),
        pa.field("n_failed", pa.int64(), nullable=False),
        pa.field("n_abstained", pa.int64(), nullable=False),
        pa.field("n_skipped", pa.int64(), nullable=False),
    ]
)
"""`evaluation` counts the evaluations aggregated, from 0; `run_digest` is that of the run that was graded."""

_COLUMN_TYPES: Final[Mapping[str, Any]] = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
}


def scores_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The schema of a scorer's table.

    Args:
        columns: the scorer's own columns, name → `string`, `int64`, `double`, `bool` or `json`.
    """
    return pa.schema(
        [
            pa.field(INDEX, pa.int64(), nullable=False),
            pa.field("replication", pa.int32(), nullable=False),
            pa.field("fold", pa.int32()),
            pa.field("_response_index_", pa.int64()),
            pa.field("target", pa.string()),
            pa.field("digest", pa.binary(16), nullable=False),
            pa.field("status", pa.string(), nullable=False),
            pa.field("reason", pa.string()),
            pa.field("value", pa.float64()),
            pa.field("label", pa.string()),
            json_field("data"),
            pa.field("explanation", pa.string()),
            *(_column(name, kind) for name, kind in columns.items()),
        ]
    )


def _column(name: str, kind: str) -> pa.Field:
    if kind == "json":
        return json_field(name)
    if kind not in _COLUMN_TYPES:
        raise SpecError(f"column {name!r}: no type is called {kind!r}; known: json, {', '.join(_COLUMN_TYPES)}")
    return pa.field(name, _COLUMN_TYPES[kind])
