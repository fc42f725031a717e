"""`dyff.schema.adapters`: the kinds of adapters, and how they are made of their JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evaluand import registry
from evaluand.adapter import Adapter, Pipeline
from evaluand.adapter import create as create_adapter
from evaluand.adapters.drop import Drop
from evaluand.adapters.embed_index import EmbedIndex
from evaluand.adapters.explode_collections import ExplodeCollections
from evaluand.adapters.file_upload import FileUpload
from evaluand.adapters.flatten_hierarchy import FlattenHierarchy
from evaluand.adapters.map import Map
from evaluand.adapters.rename import Rename
from evaluand.adapters.select import Select
from evaluand.adapters.transform_json import TransformJSON

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
    """A pipeline from adapters or their JSON."""
    return Pipeline(adapters)


def known_adapters() -> dict[str, type[Adapter]]:
    """Name → kind of every adapter that is installed."""
    return {name: registry.find("adapters", name) for name in registry.names("adapters")}
