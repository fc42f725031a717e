"""Answers that a name's earlier runs gave before a change of code: what repeating them costs, or taking them over.

Code always counts, so a change of prompt or code makes the calls again. Where they cost money, that is said before, and
`keep_answers` takes the stored answers over: the manifest of the run says so, and every number made of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evaluand.core.errors import EngineError, plural, warn
from evaluand.engine.observation import Observer
from evaluand.engine.reuse import Answer, InputCheck, OpenSlots
from evaluand.models.usage_total import UsageTotal
from evaluand.run.responses import completed, inputs_of
from evaluand.store.store import Manifest, Store, sealed_manifest

_BY_VERSION = "the version alone stood for the code, so whether it changed is not known"
MOST_CHANGES = 5  # that are named


@dataclass(frozen=True)
class EarlierAnswers:
    """The answers of the runs that a name meant before.

    Attributes:
        runs: their ids, the newest first.
        changes: how the code has changed since the newest, in words.
    """

    store: Store
    runs: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    @classmethod
    def of(cls, store: Store, run: str | None, inputs: InputCheck, task: Any) -> EarlierAnswers:
        """The answers of a run and of those before it; none where the code has not changed.

        Args:
            run: the run that the name means now.
            inputs: compare the code and its files.
            task: the present spec of the task.
        """
        runs: dict[str, Manifest] = {}
        while run is not None and run not in runs:
            try:
                runs[run] = store.manifest("runs", run)
            except EngineError:  # it was removed, or is damaged
                break
            run = runs[run]["provenance"].get("before")
        if not runs:
            return cls(store)
        newest = next(iter(runs.values()))
        is_same = newest["spec"]["task"] == task
        unknown = _BY_VERSION if "version" in newest["spec"]["task"] else "the task changed"
        recorded = inputs.explain(newest) if newest["provenance"].get("parts") else []
        changes = [] if is_same else recorded or [unknown]
        changes += inputs.changed_files
        return cls(store, tuple(runs), tuple(changes[:MOST_CHANGES])) if changes else cls(store)

    def lines(self, open_slots: OpenSlots, observer: Observer[Any] | None) -> Iterator[bytes]:
        """The journal lines of the open slots that these answers fill; they count with their files as these are now."""
        yield from open_slots.fill((self._answers(run, observer) for run in self.runs), observer)

    def _answers(self, run: str, observer: Observer[Any] | None) -> Iterator[Answer]:
        inputs = inputs_of(self.store, run)
        for slot, key, record in completed(self.store, run):
            node = inputs.of(slot)
            yield key, record, None if observer is None or node is None else observer.renew(node, inputs.nodes)

    def facts(self, open_slots: OpenSlots, total: int) -> dict[str, Any]:
        """What a manifest says of answers that are kept; empty if there are none."""
        answers = sum(1 for _ in self.lines(open_slots, None))
        kept = {"runs": list(self.runs), "changes": list(self.changes), "answers": answers, "of": total}
        return {"kept": kept} if answers else {}

    def warn_of_cost(self, name: str, open_slots: OpenSlots) -> None:
        """Says what has changed, how many answers are asked for again, and what they cost, if they did."""
        newest = sealed_manifest(self.store, "runs", self.runs[0]) if self.runs else None
        used = UsageTotal.read(newest.get("usage")) if newest else UsageTotal()
        if not (used.cost or used.input_tokens or used.output_tokens):
            return
        if n := sum(1 for _ in self.lines(open_slots, None)):
            rows = sum(newest["counts"].values()) if newest else n
            warn(
                f"{name}: {'; '.join(self.changes)}, so {plural(n, 'call')} of {rows:,} are made again, which used"
                f" {used}; --keep-answers (keep_answers=True) takes the stored answers over"
            )
