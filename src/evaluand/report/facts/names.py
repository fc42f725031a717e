"""The names of artifacts in a store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluand.store.store import Ref


class Names:
    """The names of artifacts, from the refs of a store."""

    def __init__(self, refs: Iterable[Ref]) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}
        self._taken: set[tuple[str, str]] = set()
        for ref in refs:
            self._names.setdefault((ref.kind, ref.id), []).append(ref.name)
            self._taken.add((ref.kind, ref.name))

    def find(self, kind: str, id: str, name: str | None) -> list[str]:
        """The names that refer to an artifact; else the name in its manifest, if no other artifact has taken it."""
        own = [] if name is None or (kind, name) in self._taken else [name]
        return sorted(self._names.get((kind, id), own))
