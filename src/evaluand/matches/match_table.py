"""The table of matches of runs from columns: who met on which row, and what was said about it.

A `Matcher` and matches that were judged elsewhere write the same table, and seal it alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.key_columns import INDEX
from evaluand.matches.matches import TABLE, MatchDigest
from evaluand.matches.pairing import ANSWERED, Entrants, unjudged_status
from evaluand.store.store import Draft, Manifest, Store, drafted, now
from evaluand.store.tables import BATCH_ROWS, MATCHES

Columns = Mapping[str, np.ndarray]
"""`row`, `a`, `b`, `equal`, `outcome`, `first` and `round` of matches, as in the table or a `Round`; `ab`: whether a's
response is presented first; `judgement`: the number of the judgement that decides each, -1 for none."""


def match_batches(
    entrants: Entrants, styles: np.ndarray, columns: Columns, said: Callable[[np.ndarray], Mapping[str, Any]]
) -> Iterator[pa.RecordBatch]:
    """The rows of the table.

    Args:
        styles: systems × rows × counts of `ResponseStyle`.
        said: judgements → the further cells that they have, by the name of their column; null for -1.
    """
    for start in range(0, len(columns["row"]), BATCH_ROWS):
        part = {name: column[start : start + BATCH_ROWS] for name, column in columns.items()}
        cells = _cells(entrants, styles, part, said(part["judgement"]))
        arrays = [_as_array(cells.get(field.name), field, len(part["row"])) for field in MATCHES]
        yield pa.RecordBatch.from_arrays(arrays, schema=MATCHES)


def seal_matches(
    store: Store,
    manifest: Manifest,
    batches: Iterable[pa.RecordBatch],
    write_others: Callable[[Draft], Mapping[str, Any]] = lambda _: {},
) -> None:
    """Stores open matches with the digest of their table and its rows by status.

    Args:
        write_others: writes further tables, and returns further entries of the manifest.
    """
    state = MatchDigest()
    with drafted(store, "matches", manifest["id"]) as draft:
        draft.append(TABLE, pa.RecordBatch.from_pylist([], MATCHES))
        for batch in batches:
            state.add(batch)
            draft.append(TABLE, batch)
        sealed = {"digest": state.digest, "counts": state.counts, "sealed": now()}
        draft.seal({**manifest, **sealed, **write_others(draft)})


def _cells(entrants: Entrants, styles: np.ndarray, columns: Columns, said: Mapping[str, Any]) -> dict[str, Any]:
    row, decided, every = columns["row"], columns["judgement"], entrants.replications
    is_missing = [entrants.states[row, columns[side]] != ANSWERED for side in "ab"]
    is_asked = pa.array(decided >= 0)
    missing = np.select([is_missing[0] & is_missing[1], *is_missing], ["both", "a", "b"], "")
    status, reason = _explain_unjudged(entrants, columns)
    return {
        **said,
        INDEX: entrants.index[row // every],
        "replication": row % every,
        "order": np.where(columns["ab"], "ab", "ba"),
        "judgement": pa.array(decided, mask=decided < 0),
        "status": pc.if_else(is_asked, said["status"], status),
        "reason": pc.if_else(is_asked, said["reason"], reason),
        "missing": pa.array(missing, mask=(decided >= 0) | (missing == "")),
        **{name: pa.array(columns[name], from_pandas=True) for name in ("outcome", "first")},
        **{
            f"style_{side}": _as_styles(styles[columns[side], row], absent)
            for side, absent in zip("ab", is_missing, strict=True)
        },
        **{name: columns[name] for name in ("a", "b", "round", "equal")},
    }


def _explain_unjudged(entrants: Entrants, columns: Columns) -> tuple[pa.Array, pa.Array]:
    """Status and reason of each match, if no judgement decides it."""
    a, b, labels = columns["a"], columns["b"], entrants.labels
    states = [entrants.states[columns["row"], each] for each in (a, b)]
    kinds = np.stack([*states, a, b, columns["equal"]])
    kinds[2:4, (states[0] == ANSWERED) & (states[1] == ANSWERED)] = 0
    kinds, which = np.unique(kinds, axis=1, return_inverse=True)
    found = [unjudged_status({labels[i]: s, labels[j]: t}, bool(equal)) for s, t, i, j, equal in kinds.T.tolist()]
    status, reasons = (pa.array(each, pa.string()) for each in zip(*found, strict=True))
    places = pa.array(which.ravel())
    return status.take(places), reasons.take(places)


def _as_styles(counts: np.ndarray, absent: np.ndarray) -> pa.StructArray:
    fields = [*MATCHES.field("style_a").type]
    return pa.StructArray.from_arrays([*map(pa.array, counts.T)], fields=fields, mask=pa.array(absent))


def _as_array(values: Any, field: pa.Field, n: int) -> pa.Array:
    if values is None:
        return pa.nulls(n, field.type)
    return values.cast(field.type) if isinstance(values, pa.Array) else pa.array(values, field.type)
