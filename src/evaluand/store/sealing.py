"""Artifacts whose tables are computed at once: sealed together, with the digest of their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from evaluand.core import identity
from evaluand.store.store import Store, at_once, drafted


def seal_tables(
    store: Store,
    kind: str,
    id: str,
    spec: Mapping[str, Any],
    batches: Mapping[str, pa.RecordBatch],
    name: str | None,
    provenance: Mapping[str, Any],
    *,
    work: Sequence[str] = (),
) -> None:
    """Stores computed tables as an artifact, whose digest is that of their rows.

    Args:
        work: what the artifact is found by, see `Store.find`.
    """
    with drafted(store, kind, id) as draft:
        for table, batch in batches.items():
            draft.append(table, batch)
        digest = tables_digest(batch.to_pylist() for batch in batches.values())
        counts = {table: batch.num_rows for table, batch in batches.items()}
        manifest = at_once(kind, id, spec, name, digest=digest, counts=counts, provenance=provenance)
        draft.seal(manifest | ({"work": list(work)} if work else {}))


def tables_digest(tables: Iterable[list[dict[str, Any]]]) -> str:
    """The digest of the rows of some tables: 32 hexadecimal digits."""
    state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
    for table in tables:
        state.update(identity.encode(table))
    return state.hexdigest()
