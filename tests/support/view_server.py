"""A real server of the page, in a process of its own, and requests to it byte by byte."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Runner
from evaluand.aggregation.aggregator import Measure
from evaluand.core.labels import join_name
from evaluand.engine.policy import Policy
from support.fresh import open_python
from support.patience import PATIENCE

SECRET = "only-for-those-who-are-let-in"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
ROWS = 8

# Two resources that no store has: one whose reading fails in a way that nobody foresaw, and one that takes long.
CODE = """
import sys, time
from evaluand.cli import main
from evaluand.report.page.resources.base import resource

@resource("broken/{name}")
def read_broken(source, name):
    raise RuntimeError("the inner part of " + name)

@resource("slow/{seconds}")
def read_slow(source, seconds):
    time.sleep(float(seconds))
    return {"slept": seconds}

main(sys.argv[1:], prog_name="evaluand")
"""


def make_store(folder: Path) -> DirectoryStore:
    """A store whose names are markup, with an experiment `good` and one `damaged`."""
    store, policy = DirectoryStore(folder), Policy(concurrency=1)
    rows = [{"input": f"{SECRET} {i}", "expected": f"{i}", HOSTILE: f"{HOSTILE} {i % 2}"} for i in range(ROWS)]
    data = Dataset.from_rows(rows, name=HOSTILE, input="input", expected="expected", attributes=[HOSTILE])

    def answer(input: str) -> str:
        if input.endswith("3"):
            raise ValueError(HOSTILE)
        return input[-1] if input.endswith(("1", "2")) else HOSTILE

    def right(output: Any, expected: Any) -> bool:
        return bool(output == expected)

    for name in ("good", "damaged", HOSTILE):
        given = data if name != "damaged" else Dataset.from_rows(rows[:5], input="input", expected="expected")
        run = Runner(store, policy).run(answer, given, name=join_name(name, "mine"))
        graded = Evaluator(store, policy).evaluate(run, {HOSTILE: right}, name=join_name(name, "mine"))
        Aggregator(store).aggregate([graded], [Measure(HOSTILE, Accuracy())], name=name)
        if name == "damaged":
            for table in (folder / "evaluations" / graded.id).glob("*.parquet"):
                table.write_bytes(table.read_bytes()[:-40] + b"\0" * 40)
    return store


@dataclass
class Answer:
    """What a server sent."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @classmethod
    def parse(cls, data: bytes) -> Answer:
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        found = re.match(r"HTTP/1\.1 (\d{3})", first)
        pairs = [line.partition(":") for line in lines]
        return cls(int(found[1]) if found else 0, [(name.lower(), text.strip()) for name, _, text in pairs], body)

    def header(self, name: str) -> str | None:
        return next((value for found, value in self.headers if found == name), None)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


@dataclass
class Server:
    """A server and a browser that it has let in."""

    process: Any
    link: str
    port: int
    errors: Path
    cookie: str = ""
    secrets: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def send(self, data: bytes) -> Answer:
        """What is answered to some bytes, until the server closes the connection."""
        with self.connect() as stream:
            with suppress(ConnectionError):
                stream.sendall(data)
            return Answer.parse(read_all(stream))

    def ask(
        self,
        target: str = "/api/index",
        method: str = "GET",
        headers: Sequence[str] = (),
        body: bytes = b"",
        *,
        host: str | None = None,
        cookie: str | None = None,
    ) -> Answer:
        """Asks as the browser that was let in, or with another host or cookie; an empty one is left out."""
        host, cookie = self.host if host is None else host, self.cookie if cookie is None else cookie
        lines = [f"{method} {target} HTTP/1.1", *headers]
        lines += [f"Host: {host}"] * bool(host) + [f"Cookie: {cookie}"] * bool(cookie) + ["Connection: close"]
        lines += [f"Content-Length: {len(body)}"] * (method == "POST")
        return self.send("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body)

    def post(self, target: str, *headers: str, body: bytes = b"", **how: Any) -> Answer:
        return self.ask(target, "POST", headers or (f"Origin: {self.origin}",), body, **how)

    def works(self) -> bool:
        """Whether a good request is answered."""
        answer = self.ask()
        return answer.status == 200 and b"experiments" in answer.body


def read_all(stream: socket.socket) -> bytes:
    parts = []
    with suppress(ConnectionError):
        while part := stream.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


@contextmanager
def serve_store(store: Path, errors: Path, *options: str, is_opened: bool = True) -> Iterator[Server]:
    """Starts a server of a store, and lets one browser in."""
    command = ("view", "--no-browser", "--store", str(store), *options)
    with open_python(CODE, *command, errors=errors) as (process, output):
        yield meet(process, output, errors, is_opened)


def meet(process: Any, output: Any, errors: Path, is_opened: bool = True) -> Server:
    """A server that has just been started."""
    line = output.readline()
    assert " is shown at " in line, errors.read_text()
    said = line.split(" is shown at ")[1].strip()
    link, port = said.partition(";")[0], re.findall(r":(\d+)/|port (\d+)$", said)[-1]
    server = Server(process, link, int("".join(port)), errors)
    if is_opened:
        answer = server.ask(link[link.index("/", len("https://")) :], cookie="")
        assert answer.status == 303, answer
        server.cookie = str(answer.header("set-cookie")).partition(";")[0]
        server.secrets += [link.partition("token=")[2], server.cookie.partition("=")[2]]
    return server
