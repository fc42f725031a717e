"""Verification: whether an artifact is intact, from its bytes to its id."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from evaluand.aggregation.aggregator import Aggregation, table_digest
from evaluand.apps.recording.stored import Recording, count_records, find_faults, recording_digest
from evaluand.comparison.comparing import stored_digest
from evaluand.core import identity
from evaluand.core.errors import EngineError, EvaluandError, Fault, NotFound, describe_error, singular
from evaluand.core.provenance import origins
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.known_scores import row_digest as score_digest
from evaluand.judges.cards.card import stored_digest as digest_of_card
from evaluand.judges.stored_rubric import find_changed_rubrics
from evaluand.matches.matches import stored_digest as digest_of_matches
from evaluand.matches.ratings.stored import stored_digest as digest_of_ratings
from evaluand.run.responses import row_digest as response_digest
from evaluand.run.runner import Run
from evaluand.store.store import Manifest, Store

UNCHECKED: Final = "unchecked"
"""The code of the fault of an intact artifact that needs a damaged one to be checked."""


def verify(store: Store, kind: str, id: str) -> list[Fault]:
    """The faults of an artifact; empty if it is intact.

    Checks that the manifest is unchanged, that the files hold the bytes that were written, that the id is that of the
    spec, that digest and counts are those of the rows, and that the artifacts it was made from are in the store. Of an
    open artifact the id and the lines of the journal are checked; its damaged lines count as not done. Of an open
    recording, records are also reported that are missing, although other lines or leases show that they were written.

    Where an artifact is intact, but one that it was made from is damaged and needed for the check, the only fault has
    the code `UNCHECKED`.

    Raises:
        NotFound: the store has no such artifact.

    Example:
        >>> from evaluand.store.store import MemoryStore
        >>> store = MemoryStore()
        >>> data = Dataset.from_rows([{"input": "a"}]).save(store)
        >>> verify(store, "datasets", data.id)
        []
    """
    where = f"{kind} {id}"
    damage = store.damage(kind, id)
    try:
        manifest = store.manifest(kind, id)
    except EngineError as error:
        return damage or [Fault(where, str(error))]
    faults = [*_identity(manifest, kind, id, where), *damage]
    is_sealed = store.is_sealed(kind, id)
    if is_sealed and damage:
        return faults
    try:
        if not is_sealed:
            return faults + (find_faults(store, id) if kind == "recordings" else [])
        faults += _content(store, manifest, where)
        faults += _upstream(store, manifest, where)
    except Exception as error:  # a store from elsewhere may hold anything
        damaged = _damaged_origins(store, manifest)
        faults.append(_unchecked(where, damaged) if damaged else Fault(where, _describe(error)))
    return faults


def _damaged_origins(store: Store, manifest: Manifest) -> list[str]:
    """The damaged artifacts that an artifact was made from, directly or not, such as `run 3f2a`."""
    damaged = []
    waiting, seen = [manifest], set[tuple[str, str]]()
    while waiting:
        with suppress(EngineError):  # the manifest does not say what it was made from
            for key in origins(waiting.pop()):
                if key in seen:
                    continue
                seen.add(key)
                try:
                    if not store.damage(*key):
                        waiting.append(store.manifest(*key))
                        continue
                except NotFound:
                    continue
                except EngineError:  # such as a link in the place of its folder
                    pass
                damaged.append(f"{singular(key[0])} {key[1]}")
    return damaged


def _unchecked(where: str, damaged: list[str]) -> Fault:
    verb = "is" if len(damaged) == 1 else "are"
    message = f"cannot be checked against {' and '.join(damaged)}, which {verb} damaged"
    return Fault(where, message, code=UNCHECKED)


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, EvaluandError) else f"cannot be read: {describe_error(error)}"


def _identity(manifest: Manifest, kind: str, id: str, where: str) -> Iterator[Fault]:
    if identity.artifact_id(kind, manifest["spec"], manifest["attempt"]) != id:
        yield Fault(where, "the manifest was changed: its spec does not match the id")


def _content(store: Store, manifest: Manifest, where: str) -> Iterator[Fault]:
    digest, counts = _RECOUNTED[manifest["kind"]](store, manifest["id"])
    if digest != manifest["digest"]:
        yield Fault(where, f"its rows have the digest {digest}, but the manifest says {manifest['digest']}")
    if counts != manifest["counts"]:
        yield Fault(where, f"its rows count {counts}, but the manifest says {manifest['counts']}")
    if manifest["kind"] in ("evaluations", "matches"):
        yield from (Fault(where, change) for change in find_changed_rubrics(manifest).values())


def _dataset(store: Store, id: str) -> tuple[str, object]:
    dataset = Dataset.stored(store, id)
    return dataset.compute_digest(), {"examples": len(dataset)}


def _run(store: Store, id: str) -> tuple[str, object]:
    state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
    counts: dict[str, int] = {}
    for row in Run(store, id):
        state.update(response_digest(row.index, row.replication, row.fold, row.content))
        counts[row.status] = counts.get(row.status, 0) + 1
    return state.hexdigest(), counts


def _evaluation(store: Store, id: str) -> tuple[str, object]:
    evaluation = Evaluation(store, id)
    counts: dict[str, dict[str, int]] = {}
    digests = []
    for scorer in evaluation.scorers:
        state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
        tally = counts.setdefault(scorer, {})
        for batch in evaluation.batches(scorer):
            columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name != "usage"}
            for status, *row in zip(columns["status"], *columns.values(), strict=True):
                state.update(score_digest(row))
                tally[status] = tally.get(status, 0) + 1
        digests.append(state.digest())
    return identity.digest_of_digests(digests).hex(), counts


def _aggregation(store: Store, id: str) -> tuple[str, object]:
    tables = Aggregation(store, id).tables()
    batches = [batch for table in tables.values() for batch in table.combine_chunks().to_batches()]
    counts = {name: table.num_rows for name, table in tables.items()}
    return (table_digest(*batches) if batches else "no rows"), counts


def _recording(store: Store, id: str) -> tuple[str, object]:
    recording = Recording(store, id)
    run, evaluation = recording.run, recording.evaluation
    return recording_digest(run, evaluation), count_records(run)


_RECOUNTED: dict[str, Callable[[Store, str], tuple[str, object]]] = {
    "datasets": _dataset,
    "runs": _run,
    "evaluations": _evaluation,
    "aggregations": _aggregation,
    "comparisons": stored_digest,
    "matches": digest_of_matches,
    "ratings": digest_of_ratings,
    "cards": digest_of_card,
    "recordings": _recording,
}


def _upstream(store: Store, manifest: Manifest, where: str) -> Iterator[Fault]:
    spec, origin = manifest["spec"], manifest["provenance"]
    needed = [("datasets", spec["dataset"], None)] if "dataset" in spec else []
    if manifest["kind"] == "evaluations":
        needed.append(("runs", origin["run"], spec["run"]))
    if manifest["kind"] in ("aggregations", "comparisons"):
        needed += [
            ("evaluations", id, digest) for id, digest in zip(origin["evaluations"], spec["evaluations"], strict=True)
        ]
    if manifest["kind"] == "matches":
        needed += [("runs", id, digest) for id, digest in zip(origin["runs"], spec.get("runs", ()), strict=True)]
    if manifest["kind"] == "ratings":
        needed += [("matches", id, digest) for id, digest in zip(origin["matches"], spec["matches"], strict=True)]
    if manifest["kind"] in ("cards", "recordings"):
        needed += [(kind, id, None) for kind, id in origins(manifest)]
    for kind, id, digest in needed:
        try:
            found = store.manifest(kind, id).get("digest")
        except NotFound:
            if _is_damaged(store, kind, id):
                raise
            yield Fault(where, f"was made from {kind} {id}, which is not in this store")
            continue
        if digest is not None and found != digest:
            yield Fault(where, f"was made from {kind} {id} with the digest {digest}, which now has {found}")


def _is_damaged(store: Store, kind: str, id: str) -> bool:
    """Whether an artifact without a manifest is in the store."""
    try:
        return bool(store.damage(kind, id))
    except NotFound:
        return False
