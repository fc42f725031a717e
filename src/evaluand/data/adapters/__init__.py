"""Adapters: JSON-like rows from one shape to another, by configuration alone.

    from evaluand.data.adapters import Pipeline

One module per kind; `base/` has the class `Adapter` and what the kinds share.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.data.adapters.base.adapter import (
        Adapter as Adapter,
        Counts as Counts,
        Pipeline as Pipeline,
        create_adapter as create_adapter,
    )
    from evaluand.data.adapters.base.options import AdapterError as AdapterError, AdapterSpecError as AdapterSpecError
    from evaluand.data.adapters.drop import Drop as Drop
    from evaluand.data.adapters.embed_index import EmbedIndex as EmbedIndex
    from evaluand.data.adapters.explode_collections import ExplodeCollections as ExplodeCollections
    from evaluand.data.adapters.file_upload import FileUpload as FileUpload
    from evaluand.data.adapters.flatten_hierarchy import FlattenHierarchy as FlattenHierarchy
    from evaluand.data.adapters.map import Map as Map
    from evaluand.data.adapters.rename import Rename as Rename
    from evaluand.data.adapters.select import Select as Select
    from evaluand.data.adapters.transform_json import TransformJSON as TransformJSON

__getattr__, __dir__ = lazy_names(__name__)
