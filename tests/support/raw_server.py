"""A TCP server on loopback whose script decides byte by byte what each connection answers, and when it ends."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Connection:
    """One connection of a client.

    Attributes:
        number: how many connections there were before.
    """

    number: int
    server: RawServer
    stream: socket.socket

    def receive(self) -> bytes:
        """The next request, head and body.

        Raises:
            ConnectionError: there is none.
        """
        head, body = self.receive_head()
        lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        while len(body) < (int(lengths[0]) if lengths else 0):
            body += self._read()
        self.server.requests.append(head + body)
        return head + body

    def receive_head(self) -> tuple[bytes, bytes]:
        """The head of the next request, and what came with it."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._read()
        head, mark, rest = data.partition(b"\r\n\r\n")
        return head + mark, rest

    def send(self, *lines: bytes, body: bytes = b"") -> None:
        """Sends a head of these lines, and a body."""
        self.stream.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    def answer(self, body: bytes = b"{}") -> None:
        """Sends an answer in JSON."""
        self.send(b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), body=body)

    def _read(self) -> bytes:
        data = self.stream.recv(1 << 16)
        if not data:
            raise ConnectionResetError
        return data


@dataclass
class RawServer:
    """What happened at a server.

    Attributes:
        requests: in the order in which they came.
        connections: how many there were.
    """

    port: int
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/answer"


@contextmanager
def raw_server(script: Callable[[Connection], None], trust: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    """Serves each connection by a script in a thread; the connection is closed when the script returns."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    server = RawServer(listening.getsockname()[1])
    streams: list[socket.socket] = []

    def serve(stream: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError):  # the client has closed its end
            if trust is not None:
                stream = trust.wrap_socket(stream, server_side=True)
            with stream:
                script(Connection(number, server, stream))
        stream.close()

    def accept() -> None:
        with contextlib.suppress(OSError):  # the end of the test
            while True:
                stream, _ = listening.accept()
                streams.append(stream)
                threads.append(threading.Thread(target=serve, args=(stream, server.connections), daemon=True))
                server.connections += 1
                threads[-1].start()

    threads = [threading.Thread(target=accept, daemon=True)]
    threads[0].start()
    try:
        yield server
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for stream in streams:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
