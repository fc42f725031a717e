"""Adapters: JSON-like rows from one shape to another, by configuration alone.

    from evaluand.data.adapters import Pipeline

One module per kind; `base/` has the class `Adapter` and what the kinds share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.data.adapters.base.adapted import Counts as Counts
    from evaluand.data.adapters.base.adapter import Adapter as Adapter
    from evaluand.data.adapters.base.adapter import create_adapter as create_adapter
    from evaluand.data.adapters.base.faults import AdapterError as AdapterError
    from evaluand.data.adapters.base.faults import AdapterSpecError as AdapterSpecError
    from evaluand.data.adapters.base.pipeline import Pipeline as Pipeline
    from evaluand.data.adapters.drop import Drop as Drop
    from evaluand.data.adapters.embed_index import EmbedIndex as EmbedIndex
    from evaluand.data.adapters.explode_collections import ExplodeCollections as ExplodeCollections
    from evaluand.data.adapters.file_upload import FileUpload as FileUpload
    from evaluand.data.adapters.flatten_hierarchy import FlattenHierarchy as FlattenHierarchy
    from evaluand.data.adapters.map import Map as Map
    from evaluand.data.adapters.rename import Rename as Rename
    from evaluand.data.adapters.select import Select as Select
    from evaluand.data.adapters.transform_json import TransformJSON as TransformJSON

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "base.adapted": ("Counts",),
        "base.adapter": ("Adapter", "create_adapter"),
        "base.faults": ("AdapterError", "AdapterSpecError"),
        "base.pipeline": ("Pipeline",),
        "drop": ("Drop",),
        "embed_index": ("EmbedIndex",),
        "explode_collections": ("ExplodeCollections",),
        "file_upload": ("FileUpload",),
        "flatten_hierarchy": ("FlattenHierarchy",),
        "map": ("Map",),
        "rename": ("Rename",),
        "select": ("Select",),
        "transform_json": ("TransformJSON",),
    },
)
