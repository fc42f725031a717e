"""`dyff.schema.adapters`: the kinds of adapters, and functions that create them from JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evaluand.core import registry
from evaluand.data.adapters.base.adapter import Adapter, Pipeline, create_adapter
from evaluand.data.adapters.drop import Drop
from evaluand.data.adapters.embed_index import EmbedIndex
from evaluand.data.adapters.explode_collections import ExplodeCollections
from evaluand.data.adapters.file_upload import FileUpload
from evaluand.data.adapters.flatten_hierarchy import FlattenHierarchy
from evaluand.data.adapters.map import Map
from evaluand.data.adapters.rename import Rename
from evaluand.data.adapters.select import Select
from evaluand.data.adapters.transform_json import TransformJSON

__all__ = [
    "Adapter",
    "Drop",
    "EmbedIndex",
    "ExplodeCollections",
    "FileUpload",
    "FlattenHierarchy",
    "Map",
    "Pipeline",
    "Rename",
    "Select",
    "TransformJSON",
    "create_adapter",
    "create_pipeline",
    "known_adapters",
]


def create_pipeline(adapters: Iterable[Adapter | Mapping[str, Any]]) -> Pipeline:
    """A pipeline of adapters or their specs."""
    return Pipeline(adapters)


def known_adapters() -> dict[str, type[Adapter]]:
    """Name → class of every installed adapter."""
    return {name: registry.find("adapters", name) for name in registry.names("adapters")}
