"""The parts of a fingerprint: named values with separate digests, and those that are still to be read.

A part is referred to by its name and not by its content, so that cycles end and a change shows in the part that
changed. What is left to read waits in a queue rather than on Python's stack.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from evaluand.core.errors import with_article
from evaluand.core.fingerprint.homes import Home
from evaluand.core.fingerprint.tokens import leaf, mix

PIN = "declare version=... to pin it"
UNREADABLE = "holds state that cannot be read as data"
MAX_SHOWN = 80  # characters of the way to a value inside another


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was reached.

    Attributes:
        part: the part whose digest the value belongs to.
        shown: the same for people, down to the variable.
        held: the type of what that variable holds, once the walk is inside it.
        inner: the way from there to the value.
    """

    part: str
    shown: str
    home: Home
    held: str = ""
    inner: str = ""

    def inside(self, value: object, step: str) -> Place:
        """The place of something that `value`, which is here, consists of."""
        held = self.held or type(value).__qualname__
        inner = self.inner + step if len(self.inner) < MAX_SHOWN else self.inner
        return Place(self.part, self.shown, self.home, held, inner)

    def named(self, shown: str) -> Place:
        """The place of a variable that belongs to the same part."""
        return Place(self.part, shown, self.home)


Content = Callable[[Place], bytes]


class Parts:
    """The parts found in one traversal, and what is known of objects met before.

    Attributes:
        unpinned: what could not be read → the sentence that says so.
    """

    def __init__(self) -> None:
        self.unpinned: dict[str, str] = {}
        self._contents: dict[str, list[bytes]] = {}
        self._display_names: dict[str, str] = {}
        self._used_names: set[str] = set()
        self._labels: dict[str, int] = {}
        self._objects: dict[str, int] = {}
        self._tokens: dict[int, bytes] = {}
        self._alive: list[object] = []  # an id belongs to its object only while that lives
        self._queue: deque[tuple[str, Callable[[], bytes]]] = deque()
        self._last: deque[tuple[str, Callable[[], bytes]]] = deque()

    def part(self, value: object, name: str, shown: str, home: Home, content: Content) -> bytes:
        """Refer to a part, which has a separate digest, and show it by name."""
        label, shown = self._label(name), self._distinct(shown)
        self._display_names[label], self._contents[label] = shown, []
        self._queue.append((label, lambda: content(Place(label, shown, home))))
        return self.know(value, leaf("part", label.encode()))

    def later(self, value: object, place: Place, content: Callable[[], bytes]) -> bytes:
        """Refers to an object; its content joins that of the part in which it was first reached."""
        self._queue.append((place.part, content))
        return self.know(value, self._number(place))

    def last(self, place: Place, content: Callable[[], bytes]) -> bytes:
        """Refers to what is read, in the same part, once all that does not wait for it has been."""
        self._last.append((place.part, content))
        return self._number(place)

    def opaque(self, value: object, place: Place, why: str = UNREADABLE) -> bytes:
        """Says of something that it cannot be read."""
        kind = type(value).__qualname__
        sentence = f"{place.shown}: {with_article(place.held or kind)} {UNREADABLE if place.inner else why}"
        where = f" ({place.inner.lstrip('.')} is {with_article(kind)})" if place.inner else ""
        self.unpinned.setdefault(place.shown, f"{sentence}{where}; {PIN}")
        return leaf("opaque", kind.encode())

    def know(self, value: object, token: bytes) -> bytes:
        """Keeps an object's token for when it is met again."""
        self._tokens[id(value)] = token
        self._alive.append(value)
        return token

    def known(self, value: object) -> bytes | None:
        """The token of an object that was met before."""
        return self._tokens.get(id(value))

    def read(self) -> None:
        """Reads all that waits, and what is found on the way."""
        while waiting := self._queue or self._last:
            label, content = waiting.popleft()
            self._contents[label].append(content())

    def digests(self) -> list[tuple[str, str, bytes]]:
        """Label, name for people and token of every part, in the order of labels."""
        return [
            (label, self._display_names[label], mix("part", *found)) for label, found in sorted(self._contents.items())
        ]

    def _number(self, place: Place) -> bytes:
        self._objects[place.part] = number = self._objects.get(place.part, 0) + 1
        return leaf("object", f"{place.part}\0{number}".encode())

    def _label(self, name: str) -> str:
        self._labels[name] = number = self._labels.get(name, 0) + 1
        return name if number == 1 else f"{name}#{number}"

    def _distinct(self, name: str) -> str:
        number, shown = 1, name
        while shown in self._used_names:
            number += 1
            shown = f"{name} ({number})"
        self._used_names.add(shown)
        return shown
