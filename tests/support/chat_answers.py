"""An OpenAI-compatible server on loopback, in a thread of this process, whose replies a function makes of the requests.

    with ChatServer(lambda asked: {"text": "yes"}) as server:
        ChatModel(server.url, "small", version="1").complete(…)
        server.asked    # the bodies of the requests

The function may return a text, or any of `text`, `finish_reason`, `refusal`, `logprobs`, `status`, `headers`, `body`
and `delay`; `hang` never answers.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from support.chat_server import completion

Body = dict[str, Any]
Answer = Callable[[Body], str | dict[str, Any]]


class ChatServer:
    """The server; `answer` may be replaced while it runs."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Body] = []
        self.ended = threading.Event()
        self._server = _Loopback(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    def texts(self) -> list[str]:
        """The last message of each request."""
        return [body["messages"][-1]["content"] for body in self.asked]


class _Loopback(ThreadingHTTPServer):
    request_queue_size = 128  # a connection that finds the queue full is tried again a second later
    daemon_threads = True


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet for headers and body; the second of two waits for the first to be acknowledged

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append(asked)
            reply = server.answer(asked)
            reply = {"text": reply} if isinstance(reply, str) else reply
            if reply.get("hang"):
                server.ended.wait()
                return
            time.sleep(reply.get("delay", 0))
            body = json.dumps(reply["body"] if "body" in reply else _completion(asked, reply)).encode()
            self.send_response(reply.get("status", 200))
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
            for name, value in {**headers, **reply.get("headers", {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *reported: Any) -> None:
            pass

    return Handler


def _completion(asked: Body, reply: dict[str, Any]) -> Body:
    """The body of a chat completion, with the probabilities of the reply if it has any."""
    body = completion(asked, {name: value for name, value in reply.items() if name != "logprobs"})
    body["choices"][0]["logprobs"] = reply.get("logprobs")
    return body
