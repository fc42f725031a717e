"""Facts about how the tasks of a report compare, read from a stored comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evaluand.report.facts.base import Facts
from evaluand.report.text import add_labels

if TYPE_CHECKING:
    from evaluand.comparison.comparing import Comparison
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.store.store import Store

_COLUMNS = ("difference", "low", "high", "won", "lost", "verdict", "clusters", "clustered_by")


def comparison_facts(store: Store, evaluations: Mapping[str, Evaluation]) -> list[Facts] | None:
    """Every two tasks by every metric, as `write_report` takes them.

    Args:
        evaluations: task → its evaluation.

    Returns:
        None where no stored comparison has exactly these evaluations.
    """
    comparison = _find_comparison(store, evaluations)
    if comparison is None:
        return None
    tasks = _name_sides(comparison, evaluations)
    stored = comparison.to_dict()
    return [
        {
            "a": tasks[pair["a"]],
            "b": tasks[pair["b"]],
            "metric": " · ".join(str(part) for part in (pair["label"], pair["target"]) if part),
            "direction": pair["direction"],
            **{name: pair[name] for name in _COLUMNS},
            "p": pair["p_holm"],
            "n": pair["n_used"],
            "flips": [{"id": f["id"], "index": f["index_b"]} for f in stored["flips"] if f["pair"] == number],
        }
        for number, pair in enumerate(add_labels(stored["pairs"]))
    ]


def _find_comparison(store: Store, evaluations: Mapping[str, Evaluation]) -> Comparison | None:
    """The stored comparison of exactly these evaluations; of several the one with most examples, then the newest."""
    from evaluand.comparison.comparing import Comparison  # on use: `evaluand list` does without Arrow

    digests = Counter(evaluation.digest for evaluation in evaluations.values())
    sealed = (
        store.manifest("comparisons", id) for id in store.ids("comparisons") if store.is_sealed("comparisons", id)
    )
    suiting = [manifest for manifest in sealed if Counter(manifest["spec"]["evaluations"]) == digests]
    if not suiting:
        return None
    best = max(suiting, key=lambda manifest: (manifest["spec"]["flips"], str(manifest["created"])))
    return Comparison(store, best["id"])


def _name_sides(comparison: Comparison, evaluations: Mapping[str, Evaluation]) -> list[str]:
    """The task of each side of a comparison; tasks that share an evaluation are named in their order."""
    tasks: dict[str, list[str]] = {}
    for task, evaluation in evaluations.items():
        tasks.setdefault(evaluation.digest, []).append(task)
    return [tasks[digest].pop(0) for digest in comparison.manifest["spec"]["evaluations"]]
