"""Answers that a name's earlier work gave before a change of code: what repeating them costs, or taking them over.

Code always counts, so a change of prompt or code makes calls and grades again. Where they cost money, that is said
before, and `keep_answers` takes the stored ones over: the manifest says so, and every number made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluand.core.errors import EngineError, warn
from evaluand.engine.observation import Observer
from evaluand.engine.reuse import Answer, InputCheck, Inputs, OpenSlots
from evaluand.models.usage_total import UsageTotal
from evaluand.store.store import Manifest, Store, sealed_manifest

_BY_VERSION = "the version alone stood for the code, so whether it changed is not known"
MOST_CHANGES = 5  # that are named

Read = Callable[[str], Iterable[tuple[Iterator[tuple[int, bytes, list[Any]]], Inputs]]]
"""The answers of earlier work, with an id: slot, key and journal record without its slot, and their inputs."""


@dataclass(frozen=True)
class EarlierAnswers:
    """The answers of the work that a name meant before.

    Attributes:
        what: what they are, for people.
        ids: of the work, the newest first.
        read: reads the answers of each.
        changes: how the code has changed since the newest, in words; none where it has not.
    """

    store: Store
    kind: str
    what: str
    ids: Sequence[str]
    read: Read
    changes: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        store: Store,
        kind: str,
        what: str,
        id: str | None,
        read: Read,
        inputs: InputCheck,
        spec_in: Callable[[Manifest], Mapping[str, Any] | None],
    ) -> EarlierAnswers:
        """The answers of some work and of that before it; without changes where there is no code of the user's.

        Args:
            id: the work that the name means now.
            inputs: compare the code and its files.
            spec_in: the spec of the same code in a manifest; None where it was not there.
        """
        works: dict[str, Manifest] = {}
        while id is not None and id not in works:
            try:
                works[id] = store.manifest(kind, id)
            except EngineError:  # it was removed, or is damaged
                break
            id = works[id]["provenance"].get("before")
        known = {id: spec for id, manifest in works.items() if (spec := spec_in(manifest)) is not None}
        if not known:
            return cls(store, kind, what, (), read)
        newest, spec = next(iter(known.items()))
        changes = inputs.changed_files
        if inputs.observer is not None and spec != inputs.identity.spec:
            recorded = inputs.explain(works[newest]) if "fingerprint" in str(spec) else []
            changes = [*(recorded or [_BY_VERSION if "version" in spec else "its settings changed"]), *changes]
        return cls(store, kind, what, [*known], read, changes[:MOST_CHANGES])

    def lines(self, open_slots: OpenSlots, observer: Observer[Any] | None) -> Iterator[bytes]:
        """The journal lines of the open slots that these answers fill; they count with their files as these are now."""
        yield from open_slots.fill((self._answers(id, observer) for id in self.ids), observer)

    def _answers(self, id: str, observer: Observer[Any] | None) -> Iterator[Answer]:
        for answers, inputs in self.read(id):
            for slot, key, record in answers:
                node = inputs.of(slot)
                yield key, record, None if observer is None or node is None else observer.renew(node, inputs.nodes)

    def kept(self, open_slots: OpenSlots, total: int) -> list[dict[str, Any]]:
        """What a manifest says of the answers that are kept; nothing where the code has not changed."""
        n = sum(1 for _ in self.lines(open_slots, None)) if self.changes else 0
        kept = {"what": self.what, "from": [*self.ids], "changes": [*self.changes], "kept": n, "of": total}
        return [kept] if n else []

    def warn_of_cost(self, name: str, open_slots: OpenSlots, usage_in: Callable[[Manifest], Any]) -> None:
        """Says what has changed, how many answers are asked for again, and what they used, if they did."""
        newest = sealed_manifest(self.store, self.kind, self.ids[0]) if self.changes else None
        used = UsageTotal.read(usage_in(newest)) if newest else UsageTotal()
        if not (used.cost or used.input_tokens or used.output_tokens):
            return
        if n := sum(1 for _ in self.lines(open_slots, None)):
            warn(
                f"{name}: {'; '.join(self.changes)}, so {n:,} {self.what} are made again; the"
                f" earlier ones used {used}; --keep-answers (keep_answers=True) takes them over"
            )
