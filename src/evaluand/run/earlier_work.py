"""Earlier work, whose answers are taken over: those of the same code, and on request those from before a change of it.

Every kind of work (calls of a task, scores of a scorer, judgements of a judge) is an `EarlierWork`: it says how its
stored answers are read and given again. The rest is here, once for all of them:

- *Reuse.* Answers with the same key whose observed inputs are unchanged are copied.
- *Keeping.* Code always counts, so a change of it makes calls and grades again. Where they cost money, that is said
  before, and `keep_answers` takes the stored ones over: the manifest says so, and every number made of them.
- *The check.* The first process that reuses answers which it did not make, of code without a declared version, repeats
  two of them, the later row first and other rows at each check, and stores the outcome beside them. Later processes
  rely on it while Python, the packages and the architecture are the same. One difference, and nothing of that code is
  reused. It is a second net: what the names in the code do not allow is never reused. Not repeated are answers that
  cost something or took long, and whose calls wrote files, reached out or came in batches.
"""

from __future__ import annotations

import datetime as dt
import platform
import random
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import numpy as np
import orjson

from evaluand.core import identity
from evaluand.core.errors import EngineError, TaskTimeout, plural, warn
from evaluand.engine.engine import Line
from evaluand.engine.engines.local import make_calls
from evaluand.engine.observation import Node, Observer, machinery
from evaluand.engine.outcome import Aborted, Outcome
from evaluand.engine.policy import Policy
from evaluand.engine.reuse import Answer, InputCheck, Inputs, OpenSlots
from evaluand.models.usage_total import UsageTotal
from evaluand.run.request import Repetition
from evaluand.store.key_index import KeyIndex
from evaluand.store.store import Manifest, Store, attempts, sealed_digests, sealed_manifest

Records = Iterator[tuple[int, bytes, list[Any]]]
"""Answers in the order of their slots: slot, key, and journal record without slot and inputs."""

FindOpen = Callable[[], OpenSlots]
"""Finds the slots that are still to be filled: on use, as that reads all rows."""

CHECKED: Final = 2  # answers
MOST_CHANGES = 5  # that are named
_DRAWN: Final = 16  # among which those to be repeated are sought
_LONGEST: Final = 10.0  # seconds of a call, with its share of what is prepared
_BY_VERSION = "the version alone stood for the code, so whether it changed is not known"
_NOT_REPEATED: Final = (
    "no answer was repeated as a check, since its calls cost, take long, write files, reach out or come in batches"
)
_DIFFERENT: Final = "an answer that was repeated came out differently"
_made_here: Final[set[tuple[int | str, str, str]]] = set()

U = TypeVar("U")
Repeats = tuple[Iterator[U], Callable[[U], Any], Line[U]]


def note_made(store: Store, what: str, id: str) -> None:
    """Takes note of an artifact whose answers this process makes, or has checked: of a kind, or by some code."""
    _made_here.add((_place_of(store), what, id))


def _place_of(store: Store) -> int | str:
    root = getattr(store, "root", None)
    return id(store) if root is None else str(root)


def named_work(store: Store, kind: str, name: str | None) -> str | None:
    """The id of the newest work of a kind that a name means."""
    return next((ref.id for ref in store.named(name) if ref.kind == kind), None) if name else None


def last_attempt(store: Store, kind: str, spec: Mapping[str, Any]) -> str | None:
    """The id of the last attempt at a spec."""
    return next(reversed(attempts(store, kind, spec)), None)


def facts_of(works: Collection[EarlierWork[Any]], kept: Sequence[Mapping[str, Any]], *, fresh: bool) -> Manifest:
    """What the manifest of new work says of the reuse of its answers.

    Args:
        works: the earlier work of each code.
        kept: the entries of `kept`.
    """
    return ({"kept": [*kept]} if kept else {}) | {
        "work": [of.work for of in works if of.work],
        "pinned": all(of.inputs.identity.pinned for of in works),
        "observed": any(of.inputs.observer for of in works),
        "fresh": fresh,
    }


def kept_in(manifest: Manifest, what: str) -> list[dict[str, Any]]:
    """What a manifest says of the answers that were kept from before a change.

    Args:
        what: the answers are called.
    """
    return [entry for entry in manifest.get("kept", ()) if entry["what"] == what]


def sources_in(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ids of the work from which answers were kept, by the entries of `kept`."""
    return [id for entry in entries for id in entry["from"]]


def _explain_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two specs of a code of which no change is recorded."""
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    is_by_version = "fingerprint" in changed and "fingerprint" not in old
    return [_BY_VERSION] if is_by_version else [f"{name} changed" for name in changed]


@dataclass
class EarlierWork(ABC, Generic[U]):
    """The stored answers of one kind of work by some code.

    Args:
        inputs: compares code and files.
        policy: how answers are given again.
        before: the id of the work that the name means now.

    Attributes:
        kind: of the artifacts that have them.
    """

    inputs: InputCheck
    policy: Policy
    before: str | None

    kind: ClassVar[str]

    @property
    def what(self) -> str:
        """What the answers are called."""
        return "answers"

    def as_in(self, manifest: Manifest) -> Self:
        """The same under the name that this code has in other work."""
        return self

    @property
    @abstractmethod
    def code(self) -> str:
        """What identifies the code and its settings, for any data."""

    @abstractmethod
    def read(self, id: str, slots: np.ndarray | None = None) -> Iterator[tuple[Records, Inputs]]:
        """The answers in some work, sealed or open, and their inputs.

        Args:
            slots: those of sealed work that are wanted, ascending.
        """

    def keys(self, id: str) -> tuple[np.ndarray, np.ndarray] | None:
        """The first eight bytes of the keys of answers in sealed work, and their slots; None if all are to be read."""
        return None

    @abstractmethod
    def spec_in(self, manifest: Manifest) -> Mapping[str, Any] | None:
        """The spec of the same code in a manifest; None where it was not there."""

    def count_slots(self, manifest: Manifest) -> int:
        """How many slots sealed work has."""
        return sum(manifest["counts"].values())

    def can_repeat(self, manifest: Manifest) -> bool:
        """Whether calls of sealed work can be made again alone."""
        return True

    @abstractmethod
    def usage_of(self, record: list[Any]) -> list[Any]:
        """What giving an answer has used: none where nothing is known of it.

        Args:
            record: as JSON.
        """

    @abstractmethod
    def compared(self, record: list[Any]) -> Any:
        """What must be the same in an answer that is given again.

        Args:
            record: as JSON.
        """

    def seconds_of(self, manifest: Manifest, n_slots: int, record: list[Any]) -> float:
        """How long giving one of some answers took at most, with its share of what was prepared."""
        begun, ended = (dt.datetime.fromisoformat(str(manifest[name])) for name in ("created", "sealed"))
        return (ended - begun).total_seconds() / n_slots

    @abstractmethod
    def repeating(self, id: str, slots: Sequence[int], policy: Policy) -> AbstractContextManager[Repeats[U]]:
        """A block in which answers of sealed work can be given again: their units, the call, and the line of each."""

    # -- reuse

    @property
    def store(self) -> Store:
        return self.inputs.store

    @property
    def work(self) -> str | None:
        """What identifies the code; None if nothing of it may be reused."""
        return self.code if self.inputs.identity.pinned else None

    def needs_attempt(self, last: str, request: Repetition, table: str) -> bool:
        """Whether the last attempt no longer stands.

        Answers that it keeps from before a change stand where the name means this attempt, or asks to keep the same.

        Args:
            table: of the inputs.
        """
        if request.fresh:
            return True
        manifest = self.store.manifest(self.kind, last)
        is_stale = self.inputs.is_stale(self.kind, last, table)  # which finds files that have changed
        if is_stale or not (self.inputs.identity.pinned and manifest["pinned"]):
            return True
        kept, asked = sources_in(kept_in(manifest, self.what)), sources_in(self.keeping(request))
        return kept != asked and (last != self.before if kept else "digest" not in manifest)

    def others(self, id: str | None = None) -> list[str]:
        """The ids of other work of the same code."""
        return [other for other in (self.store.find(self.kind, self.work) if self.work else ()) if other != id]

    def lines(self, manifest: Manifest, find_open: FindOpen, label: str) -> Iterator[bytes]:
        """The journal lines of the open slots of some work that earlier answers fill; warns of what the rest costs.

        Args:
            label: of the work, for the warning.
        """
        sources = [] if manifest["fresh"] else self.others(manifest["id"])
        kept = sources_in(kept_in(manifest, self.what))
        changes = [] if manifest["fresh"] or kept else self.changes
        if not (sources or kept or changes):
            return
        open_slots = find_open()
        yield from self.reused(open_slots, sources, self.inputs.observer)
        yield from self._kept_lines(kept, open_slots, self.inputs.observer)
        if changes:
            self._warn_of_costs(open_slots, label)

    def _warn_of_costs(self, open_slots: OpenSlots, label: str) -> None:
        """Warns of answers that are made again since the code has changed, if the earlier ones have cost something."""
        n, used = 0, UsageTotal()
        if any("digest" not in made or made.get("usage") for made in self._named.values()):
            for line in self._kept_lines(self._named, open_slots, None):
                n += 1
                for usage in self.usage_of(orjson.loads(line)[1:]):
                    used.add(usage)
        if used.cost or used.input_tokens or used.output_tokens:
            warn(
                f"{label}: {'; '.join(self.changes)}, so {n:,} {self.what} are made again; the"
                f" earlier ones used {used}; --keep-answers (keep_answers=True) takes them over"
            )

    def reused(
        self, open_slots: OpenSlots, sources: Sequence[str], observer: Observer[Any] | None = None
    ) -> Iterator[bytes]:
        """The journal lines of the open slots that other work of the same code, the sources, fills.

        Args:
            observer: writes the inputs of an answer into its line.
        """
        if not (sources and open_slots.left):
            return
        digests = sealed_digests(self.store, self.kind, sources)
        index = KeyIndex(self.store, f"{self.kind}/{self.code}", digests, self.keys)
        yield from open_slots.fill_from(index, self._unchanged, observer)

    def _unchanged(self, id: str, slots: np.ndarray | None) -> Iterator[Answer]:
        if self.inputs.may_use(self.kind, id):
            kept = self._kept_keys(id)
            for records, inputs in self.read(id, slots):
                yield from (answer for answer in self.inputs.same(records, inputs) if answer[0] not in kept)

    def _kept_keys(self, id: str) -> frozenset[bytes]:
        """The keys of the answers in work of this code that were kept from before a change: another code gave them."""
        if id not in self._kept_from:
            manifest = self.store.manifest(self.kind, id)
            there = self.as_in(manifest)
            sources = sources_in(kept_in(manifest, there.what))
            read = (records for source in sources for records, _ in there.read(source))
            self._kept_from[id] = frozenset(key for records in read for _, key, _ in records)
        return self._kept_from[id]

    # -- keeping

    @cached_property
    def _kept_from(self) -> dict[str, frozenset[bytes]]:
        return {}

    @cached_property
    def _named(self) -> dict[str, Manifest]:
        """By id, the manifests of the work that the name meant so far, the newest first, as far as it has this code."""
        found: dict[str, Manifest] = {}
        id = self.before
        while id is not None and id not in found:
            try:
                found[id] = self.store.manifest(self.kind, id)
            except EngineError:  # it was removed, or is damaged
                break
            id = found[id]["provenance"].get("before")
        return {id: manifest for id, manifest in found.items() if self.spec_in(manifest) is not None}

    @property
    def _newest(self) -> Manifest | None:
        """The newest work of the name with answers of another code: its own, or those that it keeps."""
        own, works = self.inputs.identity.spec, [*self._named.values()]
        others = (made for made in works if self.spec_in(made) != own or kept_in(made, self.what))
        return next(others, works[0] if works and self.inputs.changed_files else None)

    @cached_property
    def changes(self) -> list[str]:
        """How the code has changed since it gave the newest answers of the name, in words; none where it has not."""
        newest = self._newest
        spec = newest and self.spec_in(newest)
        if newest is None or spec is None:
            return []
        changes = [*self.inputs.changed_files]
        if spec != (own := self.inputs.identity.spec):
            changes = [*(self.inputs.explain(newest) or _explain_settings(spec, own)), *changes]
        changes += [change for entry in kept_in(newest, self.what) for change in entry["changes"]]
        return [*dict.fromkeys(changes)][:MOST_CHANGES]

    def keeping(self, request: Repetition) -> list[dict[str, Any]]:
        """What a manifest says of the answers that are kept as asked; `recount` counts them."""
        return self.offered if request.keep_answers else []

    @cached_property
    def offered(self) -> list[dict[str, Any]]:
        """The same if it is asked to keep answers."""
        if not (self.changes and self._newest):
            return []
        spec, kept = self.spec_in(self._newest), kept_in(self._newest, self.what)
        is_own = spec == self.inputs.identity.spec and kept  # its other answers are found as those of this code
        sources = sources_in(kept) if is_own else [*self._named]
        return [{"what": self.what, "from": sources, "changes": self.changes, "kept": 0, "of": 0}]

    def recount(self, manifest: Manifest, find_all: FindOpen) -> Manifest:
        """A manifest that says how many answers are kept.

        Args:
            find_all: finds all slots of the work, as if none were filled.
        """
        own = kept_in(manifest, self.what)
        if not own:
            return manifest
        every = find_all()
        total = every.left
        deque(self.reused(every, self.others(manifest["id"])), maxlen=0)
        n = self.count_kept(every, sources_in(own))
        kept = [entry for entry in manifest["kept"] if entry not in own]
        kept += [entry | {"kept": n, "of": total} for entry in own if n]
        return {**manifest, "kept": kept} if kept else {k: v for k, v in manifest.items() if k != "kept"}

    def count_kept(self, open_slots: OpenSlots, sources: Iterable[str]) -> int:
        """How many of the open slots the answers of some work would fill if they are kept."""
        return sum(1 for _ in self._kept_lines(sources, open_slots, None))

    def _kept_lines(
        self, sources: Iterable[str], open_slots: OpenSlots, observer: Observer[Any] | None
    ) -> Iterator[bytes]:
        """The lines of the open slots that kept answers fill; they count with their files as these are now."""
        yield from open_slots.fill((self._renewed(id, observer) for id in sources), observer)

    def _renewed(self, id: str, observer: Observer[Any] | None) -> Iterator[Answer]:
        for records, inputs in self.read(id):
            for slot, key, record in records:
                node = inputs.of(slot)
                yield key, record, None if observer is None or node is None else observer.renew(node, inputs.nodes)

    # -- the check

    def check(self, last: str | None, find_open: FindOpen) -> str:
        """Repeats some answers where stored ones of code without a version may be reused; unpins it if one differs.

        Args:
            last: the last attempt at the same work, which has all answers.
            find_open: otherwise, finds the slots for which answers are wanted.

        Returns:
            What the receipt says of it.
        """
        facts = self.inputs.identity.observed
        if facts is None or facts.is_versioned or self.work is None:
            return ""
        try:
            is_same, note = self._check([last] if last else self.others(), facts.libraries, None if last else find_open)
        except EngineError:  # what is damaged is reported where it would be used
            return ""
        if not is_same:
            self.inputs.identity = replace(self.inputs.identity, pinned=False, unpinned=(note,))
        return note

    def _check(self, sources: Sequence[str], libraries: Iterable[str], find_open: FindOpen | None) -> tuple[bool, str]:
        """Whether answers are given again the same, and what the receipt says of it."""
        place = _place_of(self.store)
        if any((place, made, id) in _made_here for id in sources for made in (self.kind, self.code)):
            return True, ""
        known = {id: self._outcomes(id) for id in dict.fromkeys([*sources, *self.others()])}
        if any(not outcome["same"] for outcomes in known.values() for outcome in outcomes.values()):
            return False, _DIFFERENT
        key = _environment(self.code, libraries)
        if outcome := next((outcomes[key] for outcomes in known.values() if key in outcomes), None):
            return True, "" if outcome["rows"] else _NOT_REPEATED
        made = filter(None, (sealed_manifest(self.store, self.kind, id) for id in sources))
        sealed = next((manifest for manifest in made if not kept_in(manifest, self.as_in(manifest).what)), None)
        n = self.count_slots(sealed) if sealed else 0
        if sealed is None or not n or (find_open and next(self.reused(find_open(), sources), None) is None):
            return True, ""
        chance = random.Random(f"{sealed['id']}{key}{len(known[sealed['id']])}")
        drawn = self._repeatable(sealed, n, np.array(sorted(chance.sample(range(n), min(_DRAWN, n)))))
        chosen = dict(sorted(chance.sample(drawn, min(CHECKED, len(drawn)))))
        repeated = self._repeat(sealed["id"], [*chosen]) if chosen else {}
        if chosen and not repeated:  # in time; another process may have more of it
            return True, _NOT_REPEATED
        chosen = {slot: answer for slot, answer in chosen.items() if slot in repeated}
        is_same = repeated == chosen
        self.store.add_check(self.kind, sealed["id"], key, {"work": self.code, "same": is_same, "rows": [*chosen]})
        note_made(self.store, self.code, sealed["id"])
        if not chosen:
            return True, _NOT_REPEATED
        rows = f"{plural(len(chosen), 'answer')} repeated as a check"
        return is_same, f"{rows}, the same again" if is_same else f"{rows} came out differently"

    def _outcomes(self, id: str) -> dict[str, dict[str, Any]]:
        checks = self.store.checks(self.kind, id)
        return {key: outcome for key, outcome in checks.items() if outcome.get("work") == self.code}

    def _repeatable(self, manifest: Manifest, n: int, slots: np.ndarray) -> list[tuple[int, Any]]:
        """Of sealed work those of some slots whose answers may be given again, and what must be the same in them."""
        found: list[tuple[int, Any]] = []
        for records, inputs in self.read(manifest["id"], slots) if self.can_repeat(manifest) else ():
            for slot, _, stored in records:
                node, record = inputs.of(slot), orjson.loads(orjson.dumps(stored))
                only_read = _only_reads(node, inputs.nodes) and self.inputs.holds(node, inputs)
                if only_read and not any(self.usage_of(record)) and self.seconds_of(manifest, n, record) <= _LONGEST:
                    found.append((slot, self.compared(record)))
        return found

    def _repeat(self, id: str, slots: Sequence[int]) -> dict[int, Any]:
        answers: dict[int, Any] = {}
        policy = replace(self.policy, concurrency=1, retries=0, budget=None, abort_on_error=False)
        with self.repeating(id, slots, policy) as (units, call, line), machinery():

            def keep(unit: U, outcome: Outcome) -> None:
                if not isinstance(outcome.error, TaskTimeout):  # which says nothing of the answer
                    slot, *record = orjson.loads(line(unit, outcome)[0])
                    answers[slot] = self.compared(record)

            with suppress(Aborted):  # by an error that stops a run; the answer is missing then
                make_calls(reversed([*units]), call, keep, policy)  # so that what counts calls differs
        return answers


def _only_reads(node: str | None, nodes: Mapping[str, Node]) -> bool:
    """Whether a call with these inputs only read files, so that it may be made again."""
    while node is not None:
        node, name, _ = nodes.get(node, (None, "(", ""))
        if name.startswith("("):
            return False
    return True


def _environment(code: str, libraries: Iterable[str]) -> str:
    """A digest of what the outcome depends on: the code, Python, the architecture, the packages that the code uses."""
    versions = {name: str(vars(sys.modules.get(name, sys)).get("__version__", "")) for name in libraries}
    where = [platform.python_version(), platform.machine(), dict(sorted(versions.items()))]
    return identity.digest([code, *where]).hex()
