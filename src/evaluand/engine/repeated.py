"""Reuse checked by doing: before stored answers of code without a declared version are reused, some are given again.

The first process that reuses answers which it did not make repeats two of them, other rows at each check, and stores
the outcome beside them. Later processes rely on it while Python, the packages and the architecture are the same. One
difference, and nothing of that code is reused. It is a second net: what the names in the code do not allow is never
reused. Not repeated are answers that cost something, that took long, and whose calls wrote files or reached out.
"""

from __future__ import annotations

import platform
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.core import identity
from evaluand.core.errors import plural
from evaluand.engine.observation import Node
from evaluand.store.store import Manifest, Store, sealed_manifest

CHECKED: Final = 2  # answers
_DRAWN: Final = 16  # among which they are sought
LONGEST: Final = 10.0  # seconds of a call, with its share of what is prepared
_NOT_REPEATED: Final = "no answer was repeated as a check, since its calls cost, take long, write files or reach out"
_made_here: Final[set[tuple[int | str, str, str]]] = set()


def note_made(store: Store, what: str, id: str) -> None:
    """Takes note of an artifact whose answers this process makes, or has checked: of a kind, or by some code."""
    _made_here.add((_place_of(store), what, id))


def _place_of(store: Store) -> int | str:
    root = getattr(store, "root", None)
    return id(store) if root is None else str(root)


@dataclass(frozen=True)
class Repeatable:
    """A stored answer that may be given again.

    Attributes:
        answer: what must be the same.
        seconds: how long the call took, with its share of what was prepared.
    """

    slot: int
    answer: Any
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What repeating some answers has shown: whether they were the same, and what the receipt says of it."""

    same: bool = True
    note: str = ""


def check_reuse(
    store: Store,
    kind: str,
    sources: Sequence[str],
    work: str,
    total: Callable[[Manifest], int],
    read: Callable[[str, np.ndarray[Any, Any]], Iterator[Repeatable]],
    repeat: Callable[[str, Sequence[int]], Mapping[int, Any]],
    libraries: Iterable[str],
) -> Outcome:
    """Whether the answers of earlier work are given again the same.

    Args:
        sources: the ids of earlier work of the same code, the first to be checked first.
        work: what identifies the code and its settings.
        total: how many slots some work has.
        read: the answers at some slots of one, ascending, that may be repeated.
        repeat: gives answers again: slot → answer.
        libraries: the packages that the code uses.
    """
    place = _place_of(store)
    if any((place, made, id) in _made_here for id in sources for made in (kind, work)):
        return Outcome()
    known = {
        id: {key: outcome for key, outcome in store.checks(kind, id).items() if outcome.get("work") == work}
        for id in sources
    }
    if any(not outcome["same"] for outcomes in known.values() for outcome in outcomes.values()):
        return Outcome(False, "an answer that was repeated came out differently")
    key = _environment(work, libraries)
    if outcome := next((outcomes[key] for outcomes in known.values() if key in outcomes), None):
        return Outcome(note="" if outcome["rows"] else _NOT_REPEATED)
    for id in sources:
        manifest = sealed_manifest(store, kind, id)
        if manifest is None:
            continue
        chance = random.Random(f"{id}{key}{len(known[id])}")
        n = total(manifest)
        slots = np.array(sorted(chance.sample(range(n), min(_DRAWN, n))))
        drawn = [answer for answer in read(id, slots) if answer.seconds <= LONGEST]
        chosen = {answer.slot: answer.answer for answer in chance.sample(drawn, min(CHECKED, len(drawn)))}
        same = not chosen or repeat(id, sorted(chosen)) == chosen
        store.add_check(kind, id, key, {"work": work, "same": same, "rows": sorted(chosen)})
        note_made(store, work, id)
        if not chosen:
            return Outcome(note=_NOT_REPEATED)
        rows = f"{plural(len(chosen), 'answer')} repeated as a check"
        return Outcome(same, f"{rows}, the same again" if same else f"{rows} came out differently")
    return Outcome()


def is_harmless(node: str | None, nodes: Mapping[str, Node]) -> bool:
    """Whether a call with these inputs only read files, so that it may be made again."""
    while node is not None:
        node, name, _ = nodes.get(node, (None, "(", ""))
        if name.startswith("("):
            return False
    return True


def _environment(work: str, libraries: Iterable[str]) -> str:
    """A digest of what the outcome depends on: the code, Python, the architecture, the packages that the code uses."""
    versions = {name: str(vars(sys.modules.get(name, sys)).get("__version__", "")) for name in libraries}
    where = [platform.python_version(), platform.machine(), dict(sorted(versions.items()))]
    return identity.digest([work, *where]).hex()
