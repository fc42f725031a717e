"""The smallest manifests of each kind that a store reads."""

from __future__ import annotations

from typing import Any, Final

from evaluand.store.store import Manifest, now

ID: Final = "0" * 32
_COMPARED: Final[dict[str, list[Any]]] = {"evaluations": [], "runs": [], "datasets": [], "labels": [], "measures": []}
SPECS: Final[dict[str, dict[str, Any]]] = {
    "datasets": {"digest": "", "roles": {"input": "input"}},
    "runs": {"task": {}, "dataset": ID, "examples": 1, "replications": 1, "seed": 0},
    "evaluations": {"run": "", "dataset": ID, "scorers": {}},
    "aggregations": _COMPARED,
    "comparisons": _COMPARED | {"confidence": 0.95, "flips": 0},
    "matches": {"systems": []},
    "ratings": {"matches": [], "systems": [], "confidence": 0.95, "method": {"kind": "", "parameters": {}}},
    "cards": {
        "judge": {"name": "", "digest": ID, "spec": {"kind": ""}},
        "labels": ID,
        "judgements": ID,
        "items": 0,
        "confidence": 0.95,
        "options": {},
    },
    "recordings": {"app": {}, "attempts": 1, "feedbacks": {}, "mode": "with_app"},
}
PROVENANCES: Final[dict[str, dict[str, Any]]] = {
    "evaluations": {"run": ID},
    "aggregations": {"evaluations": []},
    "comparisons": {"evaluations": [], "labels": []},
    "matches": {"runs": []},
    "ratings": {"matches": []},
    "cards": {"made_from": []},
    "recordings": {"columns": {}, "forms": {}, "timeout": None},
}


def create_manifest(kind: str, id: str, **more: Any) -> Manifest:
    """A manifest that has all keys which readers need."""
    head = {"format": 1, "kind": kind, "id": id, "name": None, "spec": SPECS[kind], "attempt": 0, "created": now()}
    facts = {"provenance": PROVENANCES.get(kind, {}), "counts": {}, "pinned": True, "fresh": False}
    return head | facts | more
