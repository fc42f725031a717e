"""Datasets as a kind of artifact."""

from __future__ import annotations

from typing import Any, Final

from evaluand.store import checks
from evaluand.store.checks import Check, or_null
from evaluand.store.kinds import Kind, Page, provenance

DATASETS: Final = "datasets"

_ROLE: Final = or_null(checks.text)


def _expected(value: Any) -> str:
    return checks.map_of(checks.text)(value) if type(value) is dict else _ROLE(value)


_ROLES: Final[dict[str, Check]] = {
    "attributes": checks.TEXTS,
    "cluster": _ROLE,
    "expected": _expected,
    "id": _ROLE,
    "input": checks.NAMES,
    "metadata": checks.TEXTS,
    "weight": _ROLE,
}

KIND: Final = Kind(
    name=DATASETS,
    rank=80,
    spec=checks.object_of(
        {
            "digest": checks.text,
            "roles": checks.closed_object(checks.object_of({"input": checks.NAMES}, _ROLES), _ROLES, "a role"),
        }
    ),
    provenance=provenance(),
    view="evaluand.report.kinds.datasets:DatasetView",
    is_found_by_id=True,
    named_by_manifest=True,
    page=Page("dataset", {"sealed": "d"}),
)
