"""Connections of clients that are slow, many, or send what is no request.

uvicorn waits for the rest of a request, and for a client that does not read, as long as the client likes. So a few
hundred idle connections would keep everybody else out.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from evaluand.report.page.access import HEADERS

MOST: Final = 512
"""Connections at once: below the 1,024 files that a process may usually have open."""
MOST_OF_ONE: Final = 256
"""Connections of one address at once, those of streams of events included: half of all are left for others."""

_SENT_WITHIN: Final = 10.0  # seconds for a whole request, from its first byte or from the connection on
_READ_WITHIN: Final = 30.0  # seconds in which a client must read something of an answer
_REFUSAL: Final = "\r\n".join(
    [
        "HTTP/1.1 {status}",
        "content-type: text/plain; charset=utf-8",
        *(f"{name}: {value}" for name, value in HEADERS.items()),
        "connection: close",
        "",
        "{text}",
    ]
)


class Connection(H11Protocol):
    """A connection that ends if its client keeps the server waiting."""

    _sending: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _is_over = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        addresses = [each.client and each.client[0] for each in list[Any](self.connections)]
        if len(addresses) > MOST or addresses.count(self.client and self.client[0]) > MOST_OF_ONE:
            self._end("503 Service Unavailable", "too many connections; try again in a moment")
        else:
            self._watch_request()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._sending, self._reading):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._is_over = False
        super().data_received(data)
        self._watch_request()

    def _watch_request(self) -> None:
        """Gives the client a moment to send the rest of a request."""
        state, (rest, _) = self.conn.their_state, self.conn.trailing_data
        is_begun = state is h11.SEND_BODY or (state is h11.IDLE and (rest or self.cycle is None))
        if not is_begun and self._sending is not None:
            self._sending.cancel()
            self._sending = None
        elif is_begun and self._sending is None:
            self._sending = self.loop.call_later(_SENT_WITHIN, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():  # closing would wait until the client reads
            self._is_over = True
            self._watch_reader()
        else:
            super().timeout_keep_alive_handler()

    def _watch_reader(self) -> None:
        if self._reading is None:
            left = self.transport.get_write_buffer_size()
            self._reading = self.loop.call_later(_READ_WITHIN, self._check_reader, left)

    def _check_reader(self, left: int) -> None:
        self._reading = None
        if (now := self.transport.get_write_buffer_size()) >= left:
            self.transport.abort()
        elif now:
            self._watch_reader()
        elif self._is_over:  # all is read, and no request has followed
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        self._end("400 Bad Request", "this is not a request that can be read")

    def _end(self, status: str, text: str) -> None:
        self.transport.write(_REFUSAL.format(status=status, text=text).encode())
        self.transport.close()
