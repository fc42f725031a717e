"""Keys of rows that must occur only once: `_index_` in a dataset; with replication and response index in outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.data.schema import keys
from evaluand.data.schema.faults import RowFault
from evaluand.data.schema.kinds import Array, Scalar, StructType


class KeyChecker:
    """Finds rows whose key occurs in an earlier row; rows without a key pass.

    Within one row of outputs a `_response_index_` may occur several times: its items are one response.
    """

    def __init__(self, struct: StructType) -> None:
        types = {each.name: each.type for each in struct.fields}
        responses = types.get(keys.RESPONSES)
        item = responses.item if isinstance(responses, Array) else None
        self._in_list = isinstance(item, StructType) and RESPONSE_INDEX in item.names
        names = (keys.INDEX, keys.REPLICATION, keys.RESPONSES if self._in_list else RESPONSE_INDEX)
        self._names: Sequence[str] = [keys.INDEX] if keys.index_is_unique(struct) else names
        simple = [name for name in self._names if name != keys.RESPONSES]
        has_key = set(self._names) <= types.keys() and all(isinstance(types[name], Scalar) for name in simple)
        self._places = [struct.names.index(name) for name in self._names] if has_key else []
        self._rows: dict[Any, int] = {}
        self._repeated: list[RowFault] = []

    def add(self, columns: Sequence[pa.Array], first: int) -> None:
        """Add the columns of a chunk of rows; `first` is the number of its first row."""
        if self._places:
            values = zip(*(columns[place].to_pylist() for place in self._places), strict=True)
            for row, key in enumerate(values, first):
                for whole in dict.fromkeys(self._keys(key)) if None not in key else ():
                    earlier = self._rows.setdefault(whole, row)
                    if earlier != row:
                        self._repeated.append(self._fault(row, whole, earlier))

    def faults(self, counts: Counter[tuple[str, str]], most: int | None) -> list[RowFault]:
        """The faults of all rows, which are counted; at most `most` are returned."""
        counts.update((fault.path, fault.what) for fault in self._repeated)
        return self._repeated[:most]

    def _keys(self, key: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        if not self._in_list or len(key) == 1:
            return iter([key])
        *pair, responses = key
        return ((*pair, item and item[RESPONSE_INDEX]) for item in responses or [None])

    def _fault(self, row: int, key: tuple[Any, ...], earlier: int) -> RowFault:
        if len(key) == 1:
            path, message = keys.INDEX, f"row {earlier} has the same value; give each row its own"
        elif key[-1] is None:
            path = keys.REPLICATION
            message = f"row {earlier} has the same {keys.INDEX} and {keys.REPLICATION}; keep one"
        else:
            path = f"{keys.RESPONSES}[].{RESPONSE_INDEX}" if self._in_list else RESPONSE_INDEX
            same = f"{keys.INDEX}, {keys.REPLICATION} and {RESPONSE_INDEX} {key[-1]}"
            message = f"row {earlier} has the same {same}; give each response one row"
        return RowFault(f"row {row} ({keys.INDEX} {key[0]}): {path}", message, row, key[0], path, "twice")
