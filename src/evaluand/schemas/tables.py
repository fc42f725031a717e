"""The tables of the path as named schemas: `evaluand.responses` is how the responses of a run are stored.

Datasets and scorers add columns of their own to `evaluand.examples` and `evaluand.scores`.
"""

from __future__ import annotations

import pyarrow as pa

from evaluand import rows
from evaluand.schema import Schema

EXAMPLES = pa.schema([pa.field(rows.INDEX, pa.int64(), nullable=False), pa.field(rows.DIGEST, pa.binary(16))])


def _named(name: str, schema: pa.Schema) -> Schema:
    return Schema(Schema.of(schema).record, f"evaluand.{name}")


examples = _named("examples", EXAMPLES)
responses = _named("responses", rows.RESPONSES)
spans = _named("spans", rows.SPANS)
scores = _named("scores", rows.scores_schema({}))
metrics = _named("metrics", rows.METRICS)
disparities = _named("disparities", rows.DISPARITIES)
curves = _named("curves", rows.CURVES)
pairs = _named("pairs", rows.PAIRS)
ranking = _named("ranking", rows.RANKING)
flips = _named("flips", rows.FLIPS)
