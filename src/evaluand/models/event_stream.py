"""Server-sent events: the data of each, from the pieces of a body, wherever these are cut.

Source: html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.6.
"""

import re
from collections.abc import Iterator
from typing import Final

_END_OF_LINE: Final = re.compile(rb"\r\n|\n|\r")
_MARK: Final = b"\xef\xbb\xbf"


class EventDecoder:
    r"""Reads the data of events; their names, ids and comments are left out.

    Example:
        >>> decoder = EventDecoder()
        >>> [*decoder.feed(b"data: on"), *decoder.feed(b"e\n\ndata: two\n"), *decoder.feed(b"\n")]
        [b'one', b'two']
    """

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[bytes] = []
        self._is_first = True

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of the events that end with a piece of the body."""
        received = self._rest + piece
        if self._is_first and len(received) >= len(_MARK):
            received, self._is_first = received.removeprefix(_MARK), False
        held_back = received.endswith(b"\r")  # perhaps the first half of a line's end
        *lines, rest = _END_OF_LINE.split(received[:-1] if held_back else received)
        self._rest = rest + b"\r" if held_back else rest
        for line in lines:
            yield from self._read(line)

    def _read(self, line: bytes) -> Iterator[bytes]:
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._lines.append(value.removeprefix(b" "))
        elif self._lines:
            yield b"\n".join(self._lines)
            self._lines = []
