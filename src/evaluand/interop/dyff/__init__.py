"""The names of the Dyff platform, `dyff.schema.…`, over the schemas and adapters of evaluand.

The modules have the names of those in `dyff.schema`, and are imported on first use:

    platform          resources: Dataset, DataView, Model, InferenceService, InferenceSession, Evaluation, Report;
                      and the schemas in them: DataSchema, DyffDataSchema
    adapters          the kinds of adapters, create_adapter, create_pipeline, known_adapters
    arrow             Arrow schemas: arrow_schema, decode_schema, encode_schema, make_item_schema, …
    base, pydantic    DyffSchemaBaseModel, sized numbers (int8 … float64), list_
    ids               generate_entity_id, namespaced_id, null_id, replication_id
    text, classification, binary, vision, embedding
                      named schemas: Text, Tokens, TaggedSpan, TaggedSpans, Label, Media, Image, embedding
"""

import importlib
from types import ModuleType

__all__ = [
    "adapters",
    "arrow",
    "base",
    "binary",
    "classification",
    "embedding",
    "ids",
    "platform",
    "pydantic",
    "text",
    "vision",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return __all__
