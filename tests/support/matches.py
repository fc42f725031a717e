"""Matches with outcomes written by hand."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evaluand import Dataset, Matcher, Matches, Runner, comparison_scorer
from evaluand.run.runner import Run
from evaluand.store.store import Store

Outcome = float | tuple[float, float | None] | None
Outcomes = Mapping[tuple[str, str], Sequence[Outcome]]
"""(a, b) → a's share of the win on each example; a pair is one for each order, None is a judge that abstains."""


def play(store: Store, outcomes: Outcomes, *, fails: Mapping[str, Collection[int]] | None = None) -> Matches:
    """The matches with these outcomes.

    Args:
        fails: the examples on which a system gives no answer.
    """
    labels = list(dict.fromkeys(itertools.chain.from_iterable(outcomes)))
    runs = play_runs(store, labels, max(len(each) for each in outcomes.values()), fails or {})
    return Matcher().match(runs, table_judge(outcomes), labels=labels)


def table_judge(outcomes: Outcomes) -> Any:
    """A judge that looks outcomes up."""
    said: dict[tuple[str, str], float | None] = {}
    for (a, b), shares in outcomes.items():
        for number, share in enumerate(shares):
            ab, ba = share if isinstance(share, tuple) else (share, share)
            said[f"{a} {number}", f"{b} {number}"] = ab
            said[f"{b} {number}", f"{a} {number}"] = None if ba is None else 1 - ba
    return comparison_scorer(
        lambda first, second: said.get((first, second)), name="table", version=str(sorted(said.items()))
    )


def play_runs(
    store: Store, labels: Sequence[str], n: int, fails: Mapping[str, Collection[int]] | None = None
) -> list[Run]:
    """Runs that answer with their label and the number of the example."""

    def run(label: str) -> Run:
        def answer(number: int) -> str:
            if number in (fails or {}).get(label, ()):
                raise ValueError("no answer")
            return f"{label} {number}"

        return Runner(store).run(answer, data, name=f"run/{label}")

    data = Dataset.from_rows([{"input": number} for number in range(n)])
    return [run(label) for label in labels]
