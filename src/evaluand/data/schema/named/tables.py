"""The stored tables as named schemas, such as `evaluand.responses` for the responses of a run.

Datasets and scorers add their columns to `evaluand.examples` and `evaluand.scores`.
"""

import pyarrow as pa

from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.data.schema.data import Schema
from evaluand.store import tables

EXAMPLES = pa.schema([pa.field(INDEX, pa.int64(), nullable=False), pa.field(DIGEST, pa.binary(16))])


def _name_schema(name: str, schema: pa.Schema) -> Schema:
    return Schema(Schema.of(schema).struct, f"evaluand.{name}")


examples = _name_schema("examples", EXAMPLES)
responses = _name_schema("responses", tables.RESPONSES)
spans = _name_schema("spans", tables.SPANS)
scores = _name_schema("scores", tables.scores_schema({}))
metrics = _name_schema("metrics", tables.METRICS)
disparities = _name_schema("disparities", tables.DISPARITIES)
curves = _name_schema("curves", tables.CURVES)
pairs = _name_schema("pairs", tables.PAIRS)
ranking = _name_schema("ranking", tables.RANKING)
flips = _name_schema("flips", tables.FLIPS)
