"""Facts about gates, as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evaluand.report.facts.base import Facts

if TYPE_CHECKING:
    from evaluand.comparison.checking import GateResult


def list_gates(results: Iterable[GateResult]) -> list[Facts]:
    """Results of gates as plain data."""
    return [
        {
            "gate": each.gate.text,
            "subject": each.subject,
            "passed": each.passed,
            "decided": each.is_decided,
            "result": each.result,
            "limit": each.gate.limit,
            "message": each.message,
            **each.facts,
        }
        for each in results
    ]


def shorten_refusals(gates: Iterable[Mapping[str, Any]]) -> Iterator[Facts]:
    """Results of gates, of which only the first one on a judge says how to measure it.

    Example:
        >>> even = {"judge": "even", "digest": "1f", "status": "unmeasured", "allowed": False}
        >>> refused = {"message": "refused: judge 'even' is unmeasured; measure it with …", "judges": [even]}
        >>> [gate["message"] for gate in shorten_refusals([refused, refused])]
        ["refused: judge 'even' is unmeasured; measure it with …", "refused: judge 'even' is unmeasured (see above)"]
    """
    explained = set[str]()
    for gate in gates:
        judges = gate.get("judges", ())
        refused = {each["digest"]: each for each in judges if each["status"] != "measured" and not each["allowed"]}
        if refused and refused.keys() <= explained:
            words = " and ".join(f"judge {each['judge']!r} is {each['status']}" for each in refused.values())
            yield {**gate, "message": f"refused: {words} (see above)"}
        else:
            yield dict(gate)
        explained |= refused.keys()
