"""What the three steps share: concurrent calls, and the provenance in the heads of what they store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from evaluand.core.fingerprint import Identity
from evaluand.core.identity import digest
from evaluand.core.provenance import provenance
from evaluand.interop.pharia.domain import SerializableDict
from evaluand.run.concurrent_calls import call_in_threads


def origin(
    identity: Identity,
    configuration: Mapping[str, Any],
    seed: int | None = None,
    environment_version: str | None = None,
) -> SerializableDict:
    """Commit, versions, seed, arguments of the step, declared environment version, identity of the task or logic."""
    facts = {name: value for name, value in provenance().items() if name != "origin"}
    code = {"identity": digest(identity.spec).hex(), "pinned": identity.pinned, "unpinned": list(identity.unpinned)}
    declared = {"seed": seed, "environment_version": environment_version}
    return {**facts, "code": code, "configuration": dict(configuration), **declared}


T = TypeVar("T")
R = TypeVar("R")


def each_in_threads(call: Callable[[T], R], values: Iterable[T], workers: int) -> Sequence[R]:
    """The function's results, in the order of the values, with `workers` calls at a time.

    The error of a call is raised, of several that of the earliest value; no further calls begin.
    """
    return call_in_threads(call, list(values), workers)
