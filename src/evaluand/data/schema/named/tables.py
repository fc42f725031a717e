"""The tables of the path as named schemas: `evaluand.responses` is how the responses of a run are stored.

Datasets and scorers add columns of their own to `evaluand.examples` and `evaluand.scores`.
"""

from __future__ import annotations

import pyarrow as pa

from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.data.schema import Schema
from evaluand.store import tables

EXAMPLES = pa.schema([pa.field(INDEX, pa.int64(), nullable=False), pa.field(DIGEST, pa.binary(16))])


def _named(name: str, schema: pa.Schema) -> Schema:
    return Schema(Schema.of(schema).record, f"evaluand.{name}")


examples = _named("examples", EXAMPLES)
responses = _named("responses", tables.RESPONSES)
spans = _named("spans", tables.SPANS)
scores = _named("scores", tables.scores_schema({}))
metrics = _named("metrics", tables.METRICS)
disparities = _named("disparities", tables.DISPARITIES)
curves = _named("curves", tables.CURVES)
pairs = _named("pairs", tables.PAIRS)
ranking = _named("ranking", tables.RANKING)
flips = _named("flips", tables.FLIPS)
