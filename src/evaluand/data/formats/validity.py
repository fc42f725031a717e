"""Whether the arrays of a file are sound: their lengths, offsets, texts and places in dictionaries.

Arrow trusts what a file says of them, and would read outside of the memory.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.data.formats.expansion import Expansion, children_of, has_type, identity_of, is_text_view, view_lengths


class Validator:
    """Validates the batches of a file, and each of their dictionaries once.

    Args:
        expansion: of the file; views of texts are counted before they are read, since each may be as long as all.
    """

    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion
        self._known: dict[Any, pa.Array] = {}  # dictionaries that are sound, which stay where they are meanwhile

    def check(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch.

        Raises:
            ArrowInvalid: it is not sound.
            DataError: its views stand for more than the file may expand to.
        """
        for column in batch.columns:
            if has_type(column.type, is_text_view):
                column.validate()
                self._count_views(column)
            if pa.types.is_dictionary(column.type):
                self._check_places(column)
            else:
                column.validate(full=True)
        return batch

    def _count_views(self, array: pa.Array) -> None:
        if isinstance(array.type, pa.BaseExtensionType):
            self._count_views(array.storage)
        elif pa.types.is_dictionary(array.type):
            self._count_views(array.dictionary)
        elif is_text_view(array.type):
            Expansion(self._expansion.name, self._expansion.limit).add(float(view_lengths(array).sum()))
        else:
            for child in children_of(array):
                self._count_views(child)

    def _check_places(self, column: pa.Array) -> None:
        column.validate()
        key = identity_of(column.dictionary)
        if key not in self._known:
            column.dictionary.validate(full=True)
            self._known[key] = column.dictionary
        column.indices.validate(full=True)
        ends = pc.min_max(column.indices)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if low is not None and not 0 <= low <= high < len(column.dictionary):
            raise pa.ArrowInvalid(f"the file is damaged: a place is outside of the {len(column.dictionary):,} labels")
