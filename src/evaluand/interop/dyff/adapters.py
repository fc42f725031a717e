"""`dyff.schema.adapters`: the kinds of adapters, and functions that create them from JSON."""

from collections.abc import Iterable, Mapping
from typing import Any

from evaluand.core import registry
from evaluand.data.adapters.base.adapter import (
    Adapter as Adapter,
    Pipeline as Pipeline,
    create_adapter as create_adapter,
)
from evaluand.data.adapters.drop import Drop as Drop
from evaluand.data.adapters.embed_index import EmbedIndex as EmbedIndex
from evaluand.data.adapters.explode_collections import ExplodeCollections as ExplodeCollections
from evaluand.data.adapters.file_upload import FileUpload as FileUpload
from evaluand.data.adapters.flatten_hierarchy import FlattenHierarchy as FlattenHierarchy
from evaluand.data.adapters.map import Map as Map
from evaluand.data.adapters.rename import Rename as Rename
from evaluand.data.adapters.select import Select as Select
from evaluand.data.adapters.transform_json import TransformJSON as TransformJSON


def create_pipeline(adapters: Iterable[Adapter | Mapping[str, Any]]) -> Pipeline:
    """A pipeline of adapters or their specs."""
    return Pipeline(adapters)


def known_adapters() -> dict[str, type[Adapter]]:
    """Name → class of every installed adapter."""
    return {name: registry.find("adapters", name) for name in registry.names("adapters")}
