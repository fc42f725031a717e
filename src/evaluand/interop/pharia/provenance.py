"""The provenance stored in the heads of runs, evaluations and aggregations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluand.core.fingerprint import Identity
from evaluand.core.identity import digest
from evaluand.core.provenance import provenance
from evaluand.interop.pharia.domain import SerializableDict


def origin(
    identity: Identity,
    configuration: Mapping[str, Any],
    seed: int | None = None,
    environment_version: str | None = None,
) -> SerializableDict:
    """Commit, versions, seed, configuration, declared version of the environment, identity of the code.

    Args:
        identity: the identity of the task or logic.
        configuration: the arguments of the step.
        seed: the declared seed.
        environment_version: the declared version of the environment.
    """
    facts = {name: value for name, value in provenance().items() if name != "origin"}
    code = {"identity": digest(identity.spec).hex(), "pinned": identity.pinned, "unpinned": list(identity.unpinned)}
    declared = {"seed": seed, "environment_version": environment_version}
    return {**facts, "code": code, "configuration": dict(configuration), **declared}
