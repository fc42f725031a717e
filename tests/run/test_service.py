"""Inference services, asked over a real server on loopback: what is sent and read, and what every failure costs."""

from __future__ import annotations

import asyncio
import base64
import copy
import io
import itertools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from rich.console import Console
from support.patience import PATIENCE

from evaluand.core import identity as ids
from evaluand.core.errors import ParameterError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.data.schema import Schema
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.http import BadAnswer
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.engine.rate_limit import RateLimit
from evaluand.evaluation.evaluator import Evaluator
from evaluand.experiment import Experiment
from evaluand.report.facts.run import run_facts
from evaluand.report.terminal.artifact import artifact_table
from evaluand.run.runner import Run, Runner
from evaluand.run.tasks.batches import Batches, BatchRow
from evaluand.run.tasks.service import LocalServiceTask, ServiceTask
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore

QUICK = Policy(retries=2, backoff=0)
EXPLODE = {"kind": "ExplodeCollections", "configuration": {"collections": ["text"]}}
RENAME = {"kind": "Rename", "configuration": {"text": "prompt"}}


@dataclass
class Reply:
    """An answer that is not just JSON with status 200."""

    status: int = 200
    body: bytes = b"{}"
    kind: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None  # told, where it is not that of the body


class Hangup(Exception):
    """The server closes the connection without an answer."""


@dataclass
class Server:
    """A service on loopback.

    Attributes:
        asked: bodies in the order of their coming.
        heads: the headers that came with them.
        connections: the ports of the clients.
        released: set when calls that wait may go on.
    """

    answer: Callable[[Any], Any]
    asked: list[bytes] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    connections: set[int] = field(default_factory=set)
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    @property
    def rows(self) -> list[Any]:
        return [json.loads(body) for body in self.asked]


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Any], Any]], Server]]:
    """Starts servers whose answers a function makes of the parsed request."""
    started: list[tuple[Loopback, Server, threading.Thread]] = []

    def start(answer: Callable[[Any], Any]) -> Server:
        server = Server(answer)
        http = Loopback(("127.0.0.1", 0), handler(server))
        http.daemon_threads = True
        server.url = f"http://127.0.0.1:{http.server_port}/answer"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        started.append((http, server, thread))
        return server

    yield start
    for http, server, thread in started:
        server.released.set()
        http.shutdown()
        http.server_close()
        thread.join()


class Loopback(ThreadingHTTPServer):
    """Lets so many wait to be connected that none is turned away."""

    request_queue_size = 256


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # the client was killed while it asked
                self.close_connection = True
                return
            server.asked.append(body)
            server.heads.append({name.lower(): value for name, value in self.headers.items()})
            server.times.append(time.monotonic())
            server.paths.append(self.path)
            server.connections.add(self.client_address[1])
            is_json = self.headers["Content-Type"] == "application/json"
            try:
                made = server.answer(json.loads(body) if is_json else body)
            except Hangup:
                self.close_connection = True
                return
            reply = made if isinstance(made, Reply) else Reply(body=json.dumps(made).encode())
            self.send_response(reply.status)
            if reply.kind is not None:
                self.send_header("Content-Type", reply.kind)
            self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(reply.body)
            except OSError:
                self.close_connection = True
            self.close_connection |= reply.length is not None

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def data(*inputs: Any) -> Dataset:
    """Examples whose input is an object with one text, or whatever is given."""
    rows = [{"text": value} for value in inputs]
    return Dataset.from_rows(rows, input=["text"])


def outcomes(run: Run) -> list[Any]:
    """Of each row what it answered, or the type and code of its failure."""
    return [(r.error["type"], r.error["code"]) if r.error else r.responses for r in run]


def messages(run: Run) -> list[str]:
    return [r.error["message"] for r in run if r.error]


def attempts(run: Run) -> list[int]:
    return run.table()["attempts"].to_pylist()  # type: ignore[no-any-return]


# What is sent and read


def test_a_service_leaves_the_same_responses_as_the_function_behind_it(serve: Any) -> None:
    answers = {
        "object": {"text": "ü 🎈", "score": 0.1, "big": 2**70, "nested": [{"a": None}]},
        "list": [{"text": "first"}, {"text": "second"}],
        "empty": [],
        "none": None,
        "nan": {"score": float("nan")},
        "text": "just text",
    }

    def answer(asked: dict[str, Any]) -> Any:
        return answers[asked["prompt"]]

    same: dict[str, Any] = {"input_pipeline": [RENAME]}
    server = serve(answer)
    examples = data(*answers)
    runs = [Runner().run(one, examples) for one in (ServiceTask(server.url, **same), LocalServiceTask(answer, **same))]
    assert runs[0].digest == runs[1].digest
    assert messages(runs[0]) == messages(runs[1])
    assert runs[0].counts == {"completed": 5, "failed": 1}
    found = dict(zip(answers, outcomes(runs[0]), strict=True))
    assert found["object"] == [answers["object"]]
    assert found["list"] == [{"text": "first"}, {"text": "second"}]
    assert found["empty"] == []
    assert found["none"] is None
    assert found["text"] == ("BadAnswer", "form")


@pytest.mark.parametrize(
    ("schema", "fits", "reported"),
    [
        (
            {"type": "object", "properties": {"text": {"type": "string"}}},
            {"text": "a"},
            "item 0.text",
        ),
        ("text.Text", {"text": "a"}, "item 0.text"),
        (pa.schema([pa.field("text", pa.string())]), {"text": "a"}, "item 0.text"),
        ({"type": "string"}, "a", "item 0"),
    ],
)
def test_an_item_that_does_not_fit_the_output_schema_fails_its_row(
    serve: Any, schema: Any, fits: Any, reported: str
) -> None:
    answers = {"right": {"text": "a"}, "wrong": {"text": 3}}
    server = serve(lambda asked: answers[asked["text"]])
    pipeline = [] if isinstance(fits, dict) else [{"kind": "TransformJSON", "configuration": "$.text"}]
    task = ServiceTask(server.url, output_schema=schema, output_pipeline=pipeline)
    run = Runner().run(task, data("right", "wrong"))
    assert outcomes(run) == [[fits], ("BadAnswer", "schema")]
    assert messages(run) == [f"{reported} is an integer (3), not text: it does not fit the output schema"]


@pytest.mark.parametrize("word", ["$defs", "definitions"])
def test_an_output_schema_may_name_its_parts(word: str) -> None:
    span = {"type": "object", "properties": {"tag": {"type": "string"}}, "required": ["tag"]}
    schema = {
        "type": "object",
        "properties": {"spans": {"type": "array", "items": {"$ref": f"#/{word}/Span"}}},
        "required": ["spans"],
        word: {"Span": span},
    }
    task = LocalServiceTask(lambda asked: {"spans": [{"tag": asked["text"]}]}, output_schema=schema)
    run = Runner().run(task, data("A", 1))
    assert outcomes(run) == [[{"spans": [{"tag": "A"}]}], ("BadAnswer", "schema")]


def test_the_first_item_that_does_not_fit_is_reported_by_its_place() -> None:
    rows = {"a": [{"n": 1}, {"n": "x"}, {"n": "y"}], "b": [{"n": n} for n in range(3000)], "c": []}
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    run = Runner().run(LocalServiceTask(lambda asked: rows[asked["text"]], output_schema=schema), data(*rows))
    assert outcomes(run) == [("BadAnswer", "schema"), rows["b"], []]
    assert messages(run) == ["item 1.n is text ('x'), not an integer: it does not fit the output schema"]


def test_an_async_function_is_a_service_too() -> None:
    async def answer(asked: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return {"text": asked["text"] * 2}

    class Answer:
        async def __call__(self, asked: dict[str, Any]) -> Any:
            return await answer(asked)

    for function in (answer, Answer()):
        assert outcomes(Runner().run(LocalServiceTask(function), data("a"))) == [[{"text": "aa"}]]


def test_the_input_is_sent_as_an_object_and_its_index_only_where_a_pipeline_names_it(serve: Any) -> None:
    server = serve(lambda asked: {"said": sorted(asked)})
    rows = Dataset.from_rows([{"_index_": 7, "text": "a", "n": 1}], input=["text", "n"])
    with_index = [{"kind": "TransformJSON", "configuration": {"id": "$._index_", "prompt": "$.text"}}]
    kept = [{"kind": "Select", "configuration": {"fields": ["_index_", "n"]}}]
    for pipeline in ([], [RENAME], with_index, kept):
        Runner(policy=Policy(concurrency=1)).run(ServiceTask(server.url, input_pipeline=pipeline), rows)
    assert server.rows == [
        {"text": "a", "n": 1},
        {"prompt": "a", "n": 1},
        {"id": 7, "prompt": "a"},
        {"_index_": 7, "n": 1},
    ]
    assert ServiceTask(server.url, input_pipeline=kept).reads == ("index",)
    assert ServiceTask(server.url, input_pipeline=[RENAME]).reads == ()


@pytest.mark.parametrize(
    ("kind", "configuration", "names"),
    [
        ("Rename", {"doc_index_id": "id"}, False),
        ("Rename", {"_response_index_": "id"}, False),
        ("TransformJSON", {"prompt": "what is _index_ good for?"}, False),
        ("TransformJSON", {"prompt": "$.doc_index_id"}, False),
        ("TransformJSON", {"prompt": "$.my-_index_"}, False),
        ("Rename", {"_index_": "id"}, True),
        ("Drop", {"fields": ["_index_"]}, True),
        ("TransformJSON", {"prompt": "$['_index_']"}, True),
        ("TransformJSON", {"prompt": {"$compute": {"$list": "$[?@._index_==1]"}}}, True),
        ("ExplodeCollections", {"collections": ["text"], "index": {"i": "_index_"}}, True),
        ("FileUpload", {"field": "$.text", "formFields": {"i": "$._index_"}}, True),
    ],
)
def test_only_a_key_a_field_or_a_step_of_a_path_names_the_index(kind: str, configuration: Any, names: bool) -> None:
    task = ServiceTask("http://127.0.0.1/", input_pipeline=[{"kind": kind, "configuration": configuration}])
    assert task.reads == (("index",) if names else ())


def test_an_input_that_is_no_object_is_sent_under_a_name(serve: Any) -> None:
    server = serve(lambda asked: asked)
    run = Runner().run(ServiceTask(server.url), Dataset.from_rows([{"input": 3}]))
    assert outcomes(run) == [[{"input": 3}]]


def test_what_json_cannot_say_is_not_sent(serve: Any) -> None:
    server = serve(lambda asked: asked)
    run = Runner().run(ServiceTask(server.url), data(float("nan")))
    [raw] = Runner().run(ServiceTask(server.url), data(b"raw"))
    assert outcomes(run) == [("TaskError", "request")]
    assert raw.error is not None
    assert "a bytes has no form in it; make text of it in the input pipeline" in raw.error["message"]
    assert server.asked == []


def test_a_row_that_a_pipeline_cannot_transform_fails_with_its_place(serve: Any) -> None:
    server = serve(lambda asked: asked)
    several = ServiceTask(server.url, input_pipeline=[EXPLODE])
    run = Runner().run(several, Dataset.from_rows([{"text": ["a", "b"]}, {"text": "no list"}], input=["text"]))
    assert outcomes(run) == [("TaskError", "input_pipeline")] * 2
    assert "made 2 rows of the input" in messages(run)[0]
    assert "ExplodeCollections" in messages(run)[1]
    assert server.asked == []
    out = ServiceTask(server.url, output_pipeline=[EXPLODE])
    assert outcomes(Runner().run(out, data("x"))) == [("BadAnswer", "output_pipeline")]


def test_items_are_alternatives_unless_an_adapter_groups_them(serve: Any) -> None:
    server = serve(lambda asked: {"text": ["best", "second"]})
    alternatives = ServiceTask(server.url, output_pipeline=[EXPLODE])
    assert outcomes(Runner().run(alternatives, data("x"))) == [[{"text": "best"}, {"text": "second"}]]
    plain = [EXPLODE, {"kind": "TransformJSON", "configuration": "$.text"}]
    run = Runner().run(ServiceTask(server.url, output_pipeline=plain), data("x"))
    assert outcomes(run) == [["best", "second"]]
    assert run.table()["n_responses"].to_pylist() == [2]


def test_a_response_index_groups_the_entities_of_a_tagger(serve: Any) -> None:
    found = {"entities": [{"tag": "B", "at": 1}, {"tag": "A", "at": 0}, {"tag": "C", "at": 0}]}
    server = serve(lambda asked: {"none": []}.get(asked["text"], found))
    steps = [
        {"kind": "ExplodeCollections", "configuration": {"collections": ["entities"]}},
        {
            "kind": "TransformJSON",
            "configuration": {"tag": "$.entities.tag", "_response_index_": "$.entities.at"},
        },
    ]
    grouped = Runner().run(ServiceTask(server.url, output_pipeline=steps, items=True), data("x", "none"))
    assert outcomes(grouped) == [[[{"tag": "A"}, {"tag": "C"}], [{"tag": "B"}]], [[]]]
    [first, *_] = grouped.table()["responses"].to_pylist()
    assert [item["_response_index_"] for item in first] == [0, 0, 1]
    one = Runner().run(ServiceTask(server.url, output_pipeline=steps[:1], items=True), data("x"))
    assert outcomes(one) == [[[{"entities": e} for e in found["entities"]]]]
    [row] = Runner().run(ServiceTask(server.url, output_pipeline=steps), data("x"))
    assert row.error is not None
    assert "_response_index_ 0 occurs 2 times; set items: true" in row.error["message"]


@pytest.mark.parametrize("http", [True, False])
@pytest.mark.parametrize("items", [True, False])
def test_numbers_of_responses_that_are_not_kept_are_reported(serve: Any, http: bool, items: bool) -> None:
    given = {"gaps": [5, 0, 2], "from one": [1, 2], "kept": [1, 0]}

    def answer(asked: dict[str, Any]) -> Any:
        return [{"n": number, "_response_index_": number} for number in given[asked["text"]]]

    task = ServiceTask(serve(answer).url, items=items) if http else LocalServiceTask(answer, items=items)
    run = Runner().run(task, data(*given))
    kept = [[{"n": 0}, {"n": 2}, {"n": 5}], [{"n": 1}, {"n": 2}], [{"n": 0}, {"n": 1}]]
    assert outcomes(run) == ([[[item] for item in row] for row in kept] if items else kept)
    numbers = [[item["_response_index_"] for item in row] for row in run.table()["responses"].to_pylist()]
    assert numbers == [[0, 1, 2], [0, 1], [0, 1]]
    events = [json.loads(row["events"] or "[]") for batch in run.spans() for row in batch.to_pylist()]
    assert sorted(value for reported in events for name, _, value in reported if name == "given_response_indexes") == [
        [0, 2, 5],
        [1, 2],
    ]


def test_answers_of_other_rows_and_half_numbered_items_are_refused(serve: Any) -> None:
    answers = {"foreign": {"_index_": 99}, "own": {"_index_": 1, "a": 1}, "half": [{"_response_index_": 0}, {}]}
    server = serve(lambda asked: answers[asked["text"]])
    run = Runner().run(ServiceTask(server.url), data(*answers))
    assert outcomes(run) == [("BadAnswer", "foreign"), [{"a": 1}], ("BadAnswer", "form")]


@pytest.mark.parametrize("reported", [False, 0.0, "0", None])
def test_what_only_equals_the_index_is_another(serve: Any, reported: Any) -> None:
    def answer(asked: Any) -> Any:
        return {"_index_": reported, "a": 1}

    for task in (ServiceTask(serve(answer).url), LocalServiceTask(answer)):
        assert outcomes(Runner().run(task, data("x"))) == [("BadAnswer", "foreign")]


def test_a_key_that_an_object_has_twice_is_no_answer(serve: Any) -> None:
    server = serve(lambda asked: Reply(body=b'{"a":[{"text":"a","n":1,"text":"b"}]}'))
    run = Runner().run(ServiceTask(server.url), data("x"))
    assert outcomes(run) == [("BadAnswer", "json")]
    assert messages(run) == ["an object of the answer has the key 'text' twice"]
    server = serve(lambda rows: Reply(body=b'[{"_index_":0,"text":"a","text":"b"},{"_index_":1,"text":"c"}]'))
    run = Runner().run(ServiceTask(server.url, batch=2), data("x", "y"))
    assert outcomes(run) == [("BadAnswer", "json"), [{"text": "c"}]]


def test_an_arrow_schema_is_checked_too(serve: Any) -> None:
    answers = [{"text": "a"}, {"text": 3}, {}, {"text": "a", "more": 1}]
    server = serve(lambda asked: answers[asked["text"]])
    schema = pa.schema([pa.field("text", pa.string())])
    run = Runner().run(ServiceTask(server.url, output_schema=schema), data(0, 1, 2, 3))
    assert outcomes(run) == [[{"text": "a"}], *[("BadAnswer", "schema")] * 3]


def test_a_file_is_sent_as_multipart_form_data(serve: Any) -> None:
    server = serve(lambda body: {"size": len(body)})
    upload = {
        "kind": "FileUpload",
        "configuration": {"field": "$.text", "encoding": "utf-8", "filename": "a.txt", "formFields": {"lang": "de"}},
    }
    run = Runner().run(ServiceTask(server.url, input_pipeline=[upload]), data("grüße"))
    assert run.counts == {"completed": 1}
    assert server.heads[0]["content-type"].startswith("multipart/form-data; boundary=")
    [body] = server.asked
    assert b'name="lang"\r\n\r\nde' in body
    assert b'name="file"; filename="a.txt"' in body
    assert "grüße".encode() in body


def test_a_column_is_no_file_whatever_it_is_called(serve: Any) -> None:
    server, rows = serve(lambda asked: asked), Dataset.from_rows([{"$fileUpload": "x"}], input=["$fileUpload"])
    for task in (ServiceTask(server.url), LocalServiceTask(lambda asked: asked)):
        assert outcomes(Runner().run(task, rows)) == [[{"$fileUpload": "x"}]]


@pytest.mark.parametrize("wrong", ["text/plain\r\nX-Evil: 1", "text/plain\x00", "téxt/plain"])
def test_a_content_type_that_no_header_can_hold_is_not_sent(serve: Any, wrong: str) -> None:
    server, rows = serve(lambda body: {}), Dataset.from_rows([{"text": "a", "type": wrong}], input=["text", "type"])
    upload = {"kind": "FileUpload", "configuration": {"field": "$.text", "encoding": "utf-8", "contentType": "$.type"}}
    for task in (ServiceTask, LocalServiceTask):
        given: Any = server.url if task is ServiceTask else lambda asked: {}
        run = Runner().run(task(given, input_pipeline=[upload]), rows)
        assert outcomes(run) == [("TaskError", "input_pipeline")]
        assert f"contentType: {wrong!r} is not allowed in a header" in messages(run)[0]
    assert server.asked == []


# Failures


def one_row(server: Server, text: str = "x", policy: Policy = QUICK, **more: Any) -> tuple[Any, str, int]:
    """What became of a single call: type and code, message, attempts."""
    run = Runner(policy=policy).run(ServiceTask(server.url, **more), data(text))
    [row], [message], [count] = outcomes(run), messages(run), attempts(run)
    return row, message, count


@pytest.mark.parametrize(
    ("reply", "code", "reported"),
    [
        (
            Reply(body=b"<html>oh</html>", kind="text/html; charset=utf-8"),
            "content_type",
            "the answer is text/html, not",
        ),
        (Reply(body=b"not json"), "json", "the answer is not JSON: not json"),
        (Reply(body=b"\xff\xfe\xff"), "json", "the answer is not JSON: "),
        (Reply(body=b""), "json", "the answer is empty"),
        (Reply(body=b"[" * 100_000), "json", "the answer is not JSON: [[["),
        (Reply(body=b" " * ((16 << 20) + 1)), "too_large", "the answer is larger than 16 MiB"),
        (Reply(body=b"3"), "form", "the answer is a number; it must be a JSON object"),
        (Reply(body=b"[null]"), "form", "the answer holds null; it must be"),
        (Reply(302, headers={"Location": "/other"}), "redirect", "redirects by 302"),
        (Reply(307, headers={"Location": "http://other.example/x?token=1"}), "redirect", "another host, http://other."),
        (Reply(304, body=b""), "304", "304 Not Modified"),
    ],
)
def test_what_is_no_answer_is_a_failed_row_that_says_so(serve: Any, reply: Reply, code: str, reported: str) -> None:
    server = serve(lambda asked: reply)
    row, message, count = one_row(server)
    assert (row, count) == (("BadAnswer", code), 1)
    assert reported in message
    assert "\n" not in message
    assert len(message) < 500


def test_an_answer_without_a_type_is_read(serve: Any) -> None:
    server = serve(lambda asked: Reply(body=b'{"a":1}', kind=None))
    assert outcomes(Runner().run(ServiceTask(server.url), data("x"))) == [[{"a": 1}]]


def test_a_redirect_on_the_same_host_is_followed(serve: Any) -> None:
    server = serve(lambda asked: None)
    server.answer = lambda asked: (
        Reply(308, headers={"Location": "/there"}) if server.paths[-1] == "/answer" else {"path": server.paths[-1]}
    )
    run = Runner().run(ServiceTask(server.url), data("x"))
    assert outcomes(run) == [[{"path": "/there"}]]
    server.answer = lambda asked: Reply(307, headers={"Location": "/round"})
    assert one_row(server)[1] == "redirects more than 5 times"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_and_counted(serve: Any, status: int) -> None:
    server = serve(lambda asked: {"n": len(server.asked)} if len(server.asked) > 2 else Reply(status))
    run = Runner(policy=QUICK).run(ServiceTask(server.url), data("x"))
    assert outcomes(run) == [[{"n": 3}]]
    assert attempts(run) == [3]
    server.answer = lambda asked: Reply(status, body=b"busy\nnow")
    row, message, count = one_row(server)
    assert (row, count) == (("Unavailable", str(status)), 3)
    assert message.startswith(f"{status} ")
    assert message.endswith(": busy now")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_bad_request_is_not_tried_again(serve: Any, status: int) -> None:
    server = serve(lambda asked: Reply(status, body=b'{"error":"too long"}'))
    row, message, count = one_row(server)
    assert (row, count) == (("BadRequest", str(status)), 1)
    assert message.endswith(': {"error":"too long"}')


def test_a_service_that_asks_to_wait_is_left_alone_so_long(serve: Any) -> None:
    server = serve(lambda asked: {} if len(server.asked) > 1 else Reply(429, headers={"Retry-After": "0.3"}))
    run = Runner(policy=QUICK).run(ServiceTask(server.url), data("x"))
    assert attempts(run) == [2]
    assert server.times[1] - server.times[0] >= 0.3


def test_a_service_that_asks_to_wait_for_a_day_costs_the_row(serve: Any) -> None:
    server = serve(lambda asked: Reply(429, headers={"Retry-After": "86400"}))
    row, message, count = one_row(server)
    assert (row, count) == (("TaskError", "429"), 1)
    assert message.startswith("the service asks to wait 86,400 s, more than the limit of 600 s; 429 Too Many Requests")


@pytest.mark.parametrize("reported", ["Wed, 21 Oct 2015 07:28:00 GMT", "soon"])
def test_a_moment_that_is_past_or_none_is_not_waited_for(serve: Any, reported: str) -> None:
    server = serve(lambda asked: {} if len(server.asked) > 1 else Reply(503, headers={"Retry-After": reported}))
    assert attempts(Runner(policy=QUICK).run(ServiceTask(server.url), data("x"))) == [2]


def test_a_refused_connection_is_reported_and_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    run = Runner(policy=QUICK).run(ServiceTask(f"http://127.0.0.1:{port}/"), data("x"))
    assert (outcomes(run), attempts(run)) == ([("Unavailable", "connect")], [3])
    assert messages(run)[0].startswith(f"no connection to 127.0.0.1:{port}: ")


def test_a_connection_that_breaks_off_is_reported_and_tried_again(serve: Any) -> None:
    def answer(asked: dict[str, Any]) -> Any:
        if asked["text"] == "half":
            return Reply(body=b'{"text":', length=100)
        raise Hangup

    server = serve(answer)
    for text in ("half", "hangup"):
        row, message, count = one_row(server, text)
        assert (row, count) == (("Unavailable", "connection"), 3)
        assert message.startswith("the connection to 127.0.0.1:")
        assert " was lost: " in message


def test_a_timeout_is_tried_again(serve: Any) -> None:
    def answer(asked: dict[str, Any]) -> Any:
        if len(server.asked) == 1:
            server.released.wait(PATIENCE)
        return {"n": len(server.asked)}

    server = serve(answer)
    run = Runner(policy=Policy(timeout=0.2, retries=100, backoff=0)).run(ServiceTask(server.url), data("x"))
    [[answered]], [made] = outcomes(run), attempts(run)
    assert made >= answered["n"] >= 2  # all but the first are answered at once; a busy machine may need more
    mute = serve(lambda asked: mute.released.wait(PATIENCE))
    run = Runner(policy=Policy(timeout=0.1, retries=0)).run(ServiceTask(mute.url), data("x"))
    assert (outcomes(run), attempts(run)) == ([("TaskTimeout", "timeout")], [1])


def test_a_service_that_is_busy_is_asked_again_without_being_told_to(serve: Any) -> None:
    busy = Counter[str]()

    def answer(asked: dict[str, Any]) -> Any:
        busy[asked["text"]] += 1
        return Reply(503) if busy[asked["text"]] < 4 else {"n": 1}

    server = serve(answer)
    run = Runner(policy=Policy(backoff=0.001)).run(ServiceTask(server.url), data("x", "y"))
    assert attempts(run) == [4, 4]
    assert run.receipt is not None
    assert run.receipt.retried == 6
    assert "6 retried" in str(run.receipt)


def scripted(asked: dict[str, Any]) -> Any:
    kinds = {2: Reply(400), 3: Reply(body=b"?"), 5: [], 7: [{"n": 1}, {"n": 2}]}
    return kinds.get(asked["text"] % 10, {"n": asked["text"]})


def test_statuses_and_counts_of_a_long_run_are_exact(serve: Any) -> None:
    flaky: Counter[int] = Counter()

    def answer(asked: dict[str, Any]) -> Any:
        number = asked["text"]
        if number % 10 == 9:
            flaky[number] += 1
            if flaky[number] <= 1:
                raise Hangup
        return scripted(asked)

    server = serve(answer)
    run = Runner(policy=QUICK).run(ServiceTask(server.url), data(*range(200)))
    assert run.counts == {"completed": 160, "failed": 40}
    assert Counter(row for row in outcomes(run) if isinstance(row, tuple)) == {
        ("BadRequest", "400"): 20,
        ("BadAnswer", "json"): 20,
    }
    assert Counter(attempts(run)) == {1: 180, 2: 20}
    assert len(server.asked) == 220
    assert Counter(run.table()["n_responses"].to_pylist()) == {0: 60, 1: 120, 2: 20}


def test_a_bad_request_may_skip_its_row(serve: Any) -> None:
    server = serve(scripted)
    run = Runner().run(ServiceTask(server.url, on_bad_request="skip"), data(1, 2, 3))
    assert [r.status for r in run] == ["completed", "skipped", "failed"]
    assert outcomes(run)[1] == ("Skipped", "400")
    evaluation = Evaluator().evaluate(run, {"one": lambda output, expected: output == expected})
    assert evaluation.counts == {"one": {"scored": 1, "skipped": 1, "failed": 1}}
    assert evaluation.table("one")["reason"].to_pylist()[1] == "task: 400 Bad Request: {}"


@pytest.mark.parametrize("processes", [False, True])
def test_a_bad_request_may_stop_the_run_which_then_goes_on(serve: Any, processes: bool) -> None:
    server = serve(scripted)
    asked = ServiceTask(server.url, on_bad_request="abort", model="m", version="1")
    runner = Runner(MemoryStore(), Policy(concurrency=1), ProcessEngine(1) if processes else LocalEngine())
    with pytest.raises(Aborted, match=r"_index_ 1, replication 0: BadRequest: 400 Bad Request"):
        runner.run(asked, data(1, 2, 3))
    assert len(server.asked) == 2
    run = runner.run(asked, data(1, 2, 3))
    assert outcomes(run) == [[{"n": 1}], ("BadRequest", "400"), ("BadAnswer", "json")]
    assert len(server.asked) == 3


# Connections


@pytest.mark.parametrize("processes", [False, True])
def test_connections_are_used_again(serve: Any, processes: bool) -> None:
    server = serve(lambda asked: asked)
    engine = ProcessEngine(2) if processes else LocalEngine()
    run = Runner(policy=Policy(concurrency=2), engine=engine).run(ServiceTask(server.url), data(*range(40)))
    assert run.counts == {"completed": 40}
    assert 1 <= len(server.connections) <= (4 if processes else 2)  # two calls in each process


def test_one_task_serves_several_runs_also_from_within_a_loop(serve: Any) -> None:
    server = serve(lambda asked: asked)
    asked = ServiceTask(server.url)

    async def notebook() -> Run:
        return Runner().run(asked, data(1))

    assert outcomes(Runner().run(asked, data(0))) == [[{"text": 0}]]
    assert outcomes(asyncio.run(notebook())) == [[{"text": 1}]]


def test_an_answer_leaves_no_cookie_for_the_next(serve: Any) -> None:
    server = serve(lambda asked: Reply(headers={"Set-Cookie": "session=1; Path=/"}))
    Runner(policy=Policy(concurrency=1)).run(ServiceTask(server.url), data(1, 2))
    assert ["cookie" in head for head in server.heads] == [False, False]


KILLED = """
import sys
from evaluand import Dataset, DirectoryStore, Policy, Runner
from evaluand.run.tasks.service import ServiceTask
rows = [{"text": n} for n in range(int(sys.argv[3]))]
asked = ServiceTask(sys.argv[1], model="m", version="1")
Runner(DirectoryStore(sys.argv[2]), Policy(concurrency=4)).run(asked, Dataset.from_rows(rows, input=["text"]))
"""


@pytest.mark.slow
def test_a_run_that_was_killed_asks_nothing_twice_that_was_answered(serve: Any, tmp_path: Path) -> None:
    def answer(asked: dict[str, Any]) -> Any:
        if asked["text"] >= 40:
            server.released.wait(PATIENCE)
        return asked

    server, total = serve(answer), 60
    child = subprocess.Popen([sys.executable, "-c", KILLED, server.url, str(tmp_path / "store"), str(total)])
    end = time.monotonic() + PATIENCE
    while len(kept(tmp_path)) < 40:
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    server.released.set()
    asked = ServiceTask(server.url, model="m", version="1")
    run = Runner(DirectoryStore(tmp_path / "store")).run(asked, data(*range(total)))
    assert run.counts == {"completed": total}
    calls = Counter(row["text"] for row in server.rows)
    assert {n: calls[n] for n in range(40)} == dict.fromkeys(range(40), 1)
    assert set(calls) == set(range(total))
    local = LocalServiceTask(lambda row: row)
    assert run.digest == Runner().run(local, data(*range(total))).digest


def kept(folder: Path) -> list[bytes]:
    """The complete lines of the journal."""
    return [
        line for path in folder.glob("store/runs/*/journal/*/*.lines") for line in path.read_bytes().split(b"\n")[:-1]
    ]


# Secrets


SECRET = 'sk-live-"9f8e7d6c5b4a'


def test_a_secret_is_sent_and_stands_nowhere_else(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    caplog.set_level(logging.DEBUG)

    def answer(asked: dict[str, Any]) -> Any:
        reported = server.heads[-1]["authorization"]
        quoted = json.dumps({"error": f"bad token: {reported}"}).encode()
        plain = f"you said {reported}".encode()
        return {
            "refuse": Reply(401, quoted),
            "refuse in html": Reply(403, plain, "text/html"),
            "fail": Reply(500, quoted),
            "no json": Reply(body=plain),
            "wrong type": Reply(body=plain, kind="text/plain"),
            "late": Reply(body=b" " * 290 + plain, kind="text/plain"),
            "elsewhere": Reply(307, headers={"Location": f"http://x.example/{SECRET}"}),
            "in a header": Reply(headers={"X-Said": reported}),
            "repeat": {"you": reported},
            "repeat in base64": {"you": base64.b64encode(reported.encode()).decode()},
            "refuse in base64": Reply(401, b"you: " + base64.urlsafe_b64encode(reported.encode())),
        }.get(asked["text"], asked)

    server = serve(answer)
    asked = ServiceTask(server.url, headers={"Authorization": "Bearer ${API_TOKEN}", "X-Plain": "1"})
    texts = (
        "refuse",
        "refuse in html",
        "fail",
        "no json",
        "wrong type",
        "late",
        "elsewhere",
        "repeat",
        "in a header",
        "repeat in base64",
        "refuse in base64",
        "good",
    )
    run = Runner(DirectoryStore(tmp_path / "store"), Policy(concurrency=1, backoff=0)).run(asked, data(*texts))
    assert run.counts == {"failed": 10, "completed": 2}
    assert {head["authorization"] for head in server.heads} == {f"Bearer {SECRET}"}
    assert server.heads[0]["x-plain"] == "1"
    assert "401 Unauthorized" in messages(run)[0]
    assert "bad token: Bearer ${API_TOKEN}" in messages(run)[0]
    assert messages(run)[7] == messages(run)[8]
    assert messages(run)[8] == "the answer repeats the environment variable API_TOKEN, so it is not stored"
    stored = b"".join(path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert b"401 Unauthorized" in stored or b"Unauthorized" in b"".join(m.encode() for m in messages(run))
    for text in (stored.decode("latin-1"), caplog.text, repr(asked), repr(asked.identify()), *messages(run)):
        for part in (SECRET, SECRET[:7], SECRET[-6:], base64.b64encode(f"Bearer {SECRET}".encode())[12:-4].decode()):
            assert part not in text
    assert f"POST {server.url}: 401" in caplog.text
    tables = b"".join(json.dumps(b.to_pylist(), default=str).encode() for b in run.batches())
    assert SECRET[:7].encode() not in tables


@pytest.mark.parametrize("secret", ["it's-all-mine", "back\\slash-'q'-\"", "12345678"])
def test_no_way_of_writing_a_secret_gets_into_a_log(
    serve: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, secret: str
) -> None:
    monkeypatch.setenv("API_TOKEN", secret)
    caplog.set_level(logging.DEBUG)
    server = serve(lambda asked: Reply(headers={"X-Said": server.heads[-1]["x-mine"]}))
    Runner().run(ServiceTask(server.url, headers={"X-Mine": "${API_TOKEN}"}), data("a"))
    assert [head["x-mine"] for head in server.heads] == [secret]
    assert f"POST {server.url}: 200" in caplog.text
    for written in (secret, repr(secret)[1:-1], repr(f"{secret}'\"")[1:-4], json.dumps(secret)[1:-1]):
        assert written not in caplog.text


def test_a_variable_that_is_not_set_stops_the_run_before_anything_is_asked(serve: Any) -> None:
    server = serve(lambda asked: asked)
    asked = ServiceTask(server.url, headers={"Authorization": "Bearer ${NO_SUCH_TOKEN}"})
    with pytest.raises(SpecError, match="headers: the environment variable NO_SUCH_TOKEN is not set"):
        Runner().run(asked, data("x"))
    assert server.asked == []


@pytest.mark.parametrize(
    ("parameters", "reported"),
    [
        (
            {"headers": {"Authorization": "Bearer abc"}},
            "headers.Authorization: write the secret as ${NAME}",
        ),
        ({"headers": {"Authorization": "Bearer sk-live-${SHORT}"}}, "headers.Authorization: write the secret"),
        ({"headers": {"X-Subscription": "sk-123456"}}, "headers.X-Subscription: write the secret"),
        ({"headers": {"X-Forward": "Bearer abc"}}, "headers.X-Forward: write the secret"),
        (
            {"url": "https://models.example/?api_key=secret"},
            "url: has api_key in its query; write the secret as ${NAME}",
        ),
        *(
            ({"url": f"https://models.example/?{name}=hunter2"}, f"url: has {name} in its query; write the secret")
            for name in ("passwd", "passphrase", "token2", "api_key_1", "secret_value", "bearer", "jwt", "sas", "otp")
        ),
        *(
            ({"headers": {name: "hunter2"}}, f"headers.{name}: write the secret")
            for name in ("X-Passwd", "X-Passphrase", "X-UserPass", "X-Bearer", "X-Jwt", "X-Signature", "X-Otp")
        ),
        (
            {"url": "https://${HOST}/"},
            "url: has a variable in its host; variables are allowed in the path and the query",
        ),
        ({"url": "models.example/answer?x=secret"}, "url: is 'models.example/answer'; give the full URL"),
        ({"headers": {"X-Api-Key": "abc"}}, "headers.X-Api-Key: write the secret"),
        ({"headers": {"X": "a\r\nb"}}, "headers.X: cannot be sent"),
        ({"headers": {"a b": "x"}}, "headers.a b: is not a valid header name"),
        ({"url": "https://me:secret@models.example/"}, "url: contains a user; put the secret into a header"),
        ({"url": "models.example/answer"}, "url: is 'models.example/answer'; give the full URL"),
        ({"version": "3"}, "version: is the version of no model"),
        ({"on_bad_request": "ignore"}, "on_bad_request: is the text 'ignore'; give one of fail, skip, abort"),
        ({"batch": 0}, "batch: is the integer 0; give an integer of at least 1, or leave it out"),
        (
            {"batch": 2, "input_pipeline": [{"kind": "FileUpload", "configuration": {"field": "$.a"}}]},
            "batch: FileUpload sends one file in a request; leave batch out",
        ),
        ({"output_schema": {"pattern": "x"}}, "output_schema: $.item: "),
        ({"output_schema": "text.Txt"}, "output_schema: no schema is called 'text.Txt' (did you mean 'text.Text'?)"),
        ({"input_pipeline": [RENAME, {"kind": "Renam"}]}, "input_pipeline.1: no adapter is called 'Renam' (did you"),
        ({"output_pipeline": {"adapters": [], "onError": "skip"}}, "output_pipeline: onError is 'skip'; here a row"),
        (
            {"client_pipeline": [{"kind": "FileUpload", "configuration": {"field": "$.a"}}]},
            "client_pipeline: FileUpload is allowed only at the end of input_pipeline",
        ),
    ],
)
def test_parameters_that_cannot_be_are_refused_with_their_place(parameters: dict[str, Any], reported: str) -> None:
    given = {"url": "http://127.0.0.1/"} | parameters
    with pytest.raises(ParameterError) as raised:
        ServiceTask(**given)
    assert reported in str(raised.value)
    assert "secret@" not in str(raised.value)
    assert "=secret" not in str(raised.value)


def test_headers_that_only_look_a_little_like_secrets_are_sent() -> None:
    plain = {"Accept-Language": "sk-SK;q=0.9", "X-Run": "task-${RUN}", "X-Model": "pk-large"}
    secret = {"Authorization": 'Token token="${A}"', "Cookie": "session=${A}; user=${B}", "X-Auth": "${A}:${B}"}
    assert ServiceTask("http://127.0.0.1/?max_tokens=3&mode=key", headers=plain | secret).headers == plain | secret


def test_a_secret_in_the_address_is_sent_and_stands_nowhere_else(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    caplog.set_level(logging.DEBUG)
    server = serve(lambda asked: {"you": server.paths[-1]} if asked["text"] == "repeat" else Reply(400, b"no"))
    asked = ServiceTask(server.url + "/${API_KEY}?api_key=${API_KEY}&n=1", model="m", version="1")
    run = Runner(DirectoryStore(tmp_path / "store"), Policy(concurrency=1)).run(asked, data("repeat", "other"))
    quoted = quote(SECRET, safe="")
    assert server.paths == [f"/answer/{quoted}?api_key={quoted}&n=1"] * 2
    assert outcomes(run) == [("BadAnswer", "secret"), ("BadRequest", "400")]
    stored = b"".join(path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file())
    for text in (stored.decode("latin-1"), caplog.text, repr(asked), *messages(run)):
        assert SECRET[:7] not in text
        assert "api_key=" not in text.replace("api_key=${API_KEY}", "")
    monkeypatch.delenv("API_KEY")
    with pytest.raises(SpecError, match="url: the environment variable API_KEY is not set"):
        Runner().run(ServiceTask(server.url + "?key=${API_KEY}"), data("x"))


def told_of(run: Run, index: int = 0) -> dict[str, Any]:
    """What the trace of a row tells of its exchange."""
    rows = [row for batch in run.spans() for row in batch.to_pylist() if row["_index_"] == index]
    return {name: value for row in rows for name, _, value in json.loads(row["events"] or "[]")}


def shown(run: Run) -> str:
    console = Console(file=io.StringIO(), width=400)
    about = {"kind": "runs", "id": run.id, "names": [], "status": "sealed", "manifest": run.manifest}
    console.print(artifact_table(about | run_facts(run, 2)))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_what_was_sent_and_an_answer_that_does_not_fit_stand_in_the_trace_cut_and_without_secrets(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    server = serve(lambda asked: {"text": 3, "long": "x" * 5000})
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    view = {"client_pipeline": [RENAME], "output_schema": schema, "headers": {"Authorization": "Bearer ${API_KEY}"}}
    run = Runner(DirectoryStore(tmp_path)).run(ServiceTask(server.url, **view), data(f"say {SECRET}"))
    assert outcomes(run) == [("BadAnswer", "schema")]
    found = told_of(run)
    assert found["request"] == '{"prompt": "say ${API_KEY}"}'
    assert found["answer"] == '{"text": 3, "long": "' + "x" * 1979 + "…"
    assert 'request  {"prompt": "say ${API_KEY}"}' in shown(run)
    assert 'answer   {"text": 3, "long": "xxx' in shown(run)


def test_an_answer_that_repeats_a_secret_is_not_kept_in_the_trace_either(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    server = serve(lambda asked: {"text": f"you sent {SECRET}"})
    out = {"output_pipeline": [EXPLODE], "headers": {"Authorization": "Bearer ${API_KEY}"}}
    run = Runner().run(ServiceTask(server.url, **out), data("x"))
    assert (outcomes(run), told_of(run).keys() & {"answer"}) == ([("BadAnswer", "secret")], set())


def test_an_answer_that_the_output_pipeline_cannot_transform_is_kept_and_its_message_names_no_row(serve: Any) -> None:
    server = serve(lambda asked: {"text": "no list"})
    run = Runner().run(ServiceTask(server.url, output_pipeline=[EXPLODE]), data("a", "b"))
    assert told_of(run, 1)["answer"] == '{"text": "no list"}'
    hint = "the answer has the field text: change output_pipeline so that it fits"
    assert messages(run) == [f"output_pipeline: ExplodeCollections: text is a text, not a list; {hint}"] * 2


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ({}, "no fields"),
        ({"a": 1, "b": 2}, "the fields a, b"),
        (dict.fromkeys("abcdef", 1) | {"a" * 60: 1}, "the fields a, b, c, d, e and 2 more fields"),
        ({"a" * 60: 1}, f"the field {'a' * 40}"),
    ],
)
def test_a_failed_output_pipeline_names_the_fields_of_the_answer(
    serve: Any, answer: dict[str, int], fields: str
) -> None:
    run = Runner().run(ServiceTask(serve(lambda asked: answer).url, output_pipeline=[EXPLODE]), data("a"))
    [message] = messages(run)
    assert message.endswith(f"; the answer has {fields}: change output_pipeline so that it fits")


def test_what_was_sent_of_a_file_is_reported_without_its_content(serve: Any) -> None:
    upload = {"kind": "FileUpload", "configuration": {"field": "$.text", "encoding": "utf-8"}}
    run = Runner().run(LocalServiceTask(lambda asked: {"ok": True}, input_pipeline=[upload]), data("abc"))
    assert json.loads(told_of(run)["request"])["$fileUpload"]["content"] == "3 bytes"


def test_what_the_client_pipeline_removes_never_leaves_the_machine(serve: Any, tmp_path: Path) -> None:
    server = serve(lambda asked: {"keys": sorted(asked)})
    rows = Dataset.from_rows([{"text": "hello", "name": "Erika Mustermann"}], input=["text", "name"])
    drop = {"kind": "Drop", "configuration": {"fields": ["name"]}}
    asked = ServiceTask(server.url, client_pipeline=[drop], input_pipeline=[RENAME])
    assert outcomes(Runner().run(asked, rows)) == [[{"keys": ["prompt"]}]]
    sent = b"".join(server.asked) + json.dumps(server.heads).encode() + "".join(server.paths).encode()
    assert b"Mustermann" not in sent


# Identity


def test_services_are_the_same_where_model_version_and_pipelines_are() -> None:
    def spec(url: str = "http://a.example/", **more: Any) -> Any:
        return ServiceTask(url, **({"model": "m", "version": "1", "input_pipeline": [RENAME]} | more)).identify().spec

    same = spec()
    assert spec("http://b.example:8080/v2?mode=1") == same
    assert spec(headers={"X-Trace": "1"}, method="PUT", on_bad_request="abort") == same
    assert spec(batch=2) == same
    assert spec(on_duplicate="fail", on_missing="ignore", on_foreign="ignore") == same
    assert spec(input_pipeline=RENAME) == same
    assert spec(input_pipeline={"adapters": [dict(RENAME)]}) == same
    others: list[dict[str, Any]] = [
        {"model": "other"},
        {"version": "2"},
        {"input_pipeline": []},
        {"input_pipeline": [], "client_pipeline": [RENAME]},
        {"output_pipeline": [EXPLODE]},
        {"output_schema": {"type": "string"}},
        {"output_schema": pa.schema([("text", pa.string())])},
        {"items": True},
        {"on_bad_request": "skip"},
        {"batch": 2, "on_missing": "ignore"},
    ]
    made = [json.dumps(spec(**other), sort_keys=True) for other in others]
    assert len({*made, json.dumps(same, sort_keys=True)}) == len(others) + 1
    assert "example" not in json.dumps(same)


def test_what_an_output_schema_says_to_people_is_no_part_of_identity() -> None:
    def digest(schema: Any) -> bytes:
        return ids.digest(
            ServiceTask("http://a.example/", model="m", version="1", output_schema=schema).identify().spec
        )

    span = {"type": "object", "properties": {"tag": {"enum": ["A", "B"]}}, "required": ["tag"]}
    spans = {"type": "array", "items": {"$ref": "#/$defs/Span"}}
    of_strings = {"type": "object", "additionalProperties": {"type": "string"}}
    fields = {"text": {"type": "string"}, "spans": spans, "more": of_strings}
    schema = {"type": "object", "properties": fields, "required": ["text"], "$defs": {"Span": span}}
    reported = {
        "title": "Answer",
        "description": "what the model said",
        "type": "object",
        "required": ["text"],
        "properties": {
            "more": of_strings | {"title": "More"},
            "spans": {"type": "array", "items": {"$ref": "#/definitions/Entity"}, "description": "all of them"},
            "text": {"type": "string", "title": "The text"},
        },
        "definitions": {"Entity": span | {"title": "An entity", "description": "one"}},
    }
    assert digest(schema) == digest(reported) == digest(Schema.of(reported)) == digest(Schema.of(schema).arrow)
    assert digest(schema | {"required": ["text", "spans"]}) != digest(schema)


@pytest.mark.parametrize("http", [True, False])
def test_a_service_stays_what_it_was_made_of(serve: Any, http: bool) -> None:
    steps: list[Any] = [{"kind": "Rename", "configuration": {"text": "prompt"}}]
    headers = {"X-A": "1"}
    schema: dict[str, Any] = {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}
    server, given = serve(lambda asked: asked), {"input_pipeline": steps, "output_schema": schema}
    task = ServiceTask(server.url, headers=headers, **given) if http else LocalServiceTask(lambda row: row, **given)
    steps[0]["configuration"]["text"] = "other"
    steps.append({"kind": "Drop", "configuration": {"fields": ["prompt"]}})
    headers["Authorization"] = "Bearer sk-live"
    schema["properties"]["prompt"] = {"type": "integer"}
    before = task.identify()
    task.input_pipeline[0]["configuration"]["text"] = "other"  # type: ignore[index]
    assert outcomes(Runner().run(task, data("a"))) == [[{"prompt": "a"}]]
    assert task.identify() == before
    assert all("authorization" not in head for head in server.heads)
    assert "sk-live" not in repr(task)


def test_a_service_without_a_version_is_asked_every_time_and_says_why(serve: Any) -> None:
    server = serve(lambda asked: asked)
    runner = Runner()
    for _ in range(2):
        run = runner.run(ServiceTask(server.url + "?mode=1", model="bot"), data("x"))
    assert len(server.asked) == 2
    assert run.receipt is not None
    reported = f"bot: what answers at {server.url} cannot be seen from here; declare `model` and `version` to pin it"
    assert run.receipt.why == f"unpinned, so never reused: {reported}"


def test_a_versioned_service_is_asked_for_what_is_new_wherever_it_lives(serve: Any) -> None:
    first, second = serve(lambda asked: asked), serve(lambda asked: asked)
    runner = Runner()
    runner.run(ServiceTask(first.url, model="m", version="1"), data("a", "b"))
    run = runner.run(ServiceTask(second.url, model="m", version="1"), data("a", "b", "c"))
    assert (len(first.asked), second.rows) == (2, [{"text": "c"}])
    assert run.manifest["provenance"]["parts"]["address"] == second.url
    runner.run(ServiceTask(second.url, model="m", version="1", input_pipeline=[RENAME]), data("a"))
    assert second.rows[-1] == {"prompt": "a"}


def test_a_function_is_pinned_by_its_code() -> None:
    identity = LocalServiceTask(lambda asked: asked).identify()
    assert identity.pinned
    assert identity.spec != LocalServiceTask(lambda asked: [asked]).identify().spec


# Batches


def in_batches(change: Callable[[list[dict[str, Any]]], Any] = lambda out: out) -> Callable[[Any], Any]:
    """A service that takes lists and answers backwards."""

    def answer(rows: Any) -> Any:
        if any(row["text"] == "bad" for row in rows):
            return Reply(400, b"a row is bad")
        return change([{"_index_": row["_index_"], "said": row["text"]} for row in reversed(rows)])

    return answer


def test_several_examples_are_asked_in_one_request(serve: Any) -> None:
    server = serve(in_batches())
    texts = [str(n) for n in range(50)]
    run = Runner(policy=Policy(concurrency=20)).run(ServiceTask(server.url, batch=10), data(*texts), replications=2)
    assert outcomes(run) == [[{"said": text}] for text in texts for _ in range(2)]
    assert max(len(rows) for rows in server.rows) == 10
    assert sum(len(rows) for rows in server.rows) == 100
    for rows in server.rows:
        assert len({row["_index_"] for row in rows}) == len(rows)


def test_an_element_may_hold_several_answers_or_none(serve: Any) -> None:
    held: dict[int, Any] = {0: [{"a": 1}, {"a": 2}], 1: [], 2: None, 3: {"a": 3}}
    beside = {3: {"latency": 7}}
    server = serve(
        lambda rows: [
            {"_index_": r["_index_"], "responses": held[r["_index_"]]} | beside.get(r["_index_"], {}) for r in rows
        ]
    )
    run = Runner().run(ServiceTask(server.url, batch=4), data(*"abcd"))
    assert outcomes(run) == [[{"a": 1}, {"a": 2}], [], None, [{"a": 3}]]


def test_a_bad_row_costs_its_batch_nothing(serve: Any) -> None:
    server = serve(in_batches())
    run = Runner(policy=QUICK).run(ServiceTask(server.url, batch=3), data("a", "bad", "c"))
    assert outcomes(run) == [[{"said": "a"}], ("BadRequest", "400"), [{"said": "c"}]]
    assert sorted(len(rows) for rows in server.rows) == [1, 1, 1, 2, 3]


def test_a_refused_batch_is_halved_until_the_bad_row_is_found(serve: Any) -> None:
    server = serve(in_batches())
    texts = ["bad" if n == 37 else str(n) for n in range(64)]
    run = Runner(policy=Policy(concurrency=64)).run(ServiceTask(server.url, batch=64), data(*texts))
    assert run.counts == {"completed": 63, "failed": 1}
    assert sorted(len(rows) for rows in server.rows) == [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64]


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405, 407, 410])
def test_a_refusal_that_has_nothing_to_do_with_the_rows_is_asked_for_once(serve: Any, status: int) -> None:
    server = serve(lambda rows: Reply(status))
    run = Runner(policy=Policy(concurrency=8)).run(ServiceTask(server.url, batch=8), data(*range(8)))
    assert outcomes(run) == [("BadRequest", str(status))] * 8
    assert len(server.asked) == 1


def test_the_first_bad_row_of_a_batch_stops_the_run_and_all_requests(serve: Any) -> None:
    server = serve(in_batches())
    asked = ServiceTask(server.url, batch=4, on_bad_request="abort", model="m", version="1")
    runner = Runner(MemoryStore(), Policy(concurrency=4))
    with pytest.raises(Aborted, match="_index_ 1, replication 0: BadRequest: 400"):
        runner.run(asked, data("a", "bad", "bad", "d"))
    assert [len(rows) for rows in server.rows] == [4, 2, 1, 1]


def test_the_requests_that_a_refused_batch_becomes_keep_the_rate(serve: Any) -> None:
    server, period = serve(lambda rows: Reply(400)), 0.2
    policy = Policy(concurrency=8, rate=RateLimit(8, period))
    run = Runner(policy=policy).run(ServiceTask(server.url, batch=8), data(*range(8)))
    assert run.counts == {"failed": 8}
    assert len(server.times) == 15
    assert server.times[-1] - server.times[0] >= period  # 8 turns of the first period are those of the rows


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer ${API_TOKEN}"}])
def test_in_a_batch_a_row_costs_only_itself(
    serve: Any, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    alone = {"half": json.loads('"\\ud800"'), "secret": SECRET, "list": []}

    def answer(rows: Any) -> Any:
        several = rows if isinstance(rows, list) else [rows]
        made = [{"_index_": row["_index_"], "said": alone.get(row["text"], "a")} for row in several]
        return made if isinstance(rows, list) else made[0]

    server, examples = serve(answer), data("good", "half", "secret", float("nan"))
    with_index = [{"kind": "Select", "configuration": {"fields": ["_index_", "text"]}}]
    service: dict[str, Any] = {"input_pipeline": with_index, "headers": headers}
    runs = [
        Runner(policy=Policy(concurrency=4)).run(ServiceTask(server.url, batch=batch, **service), examples)
        for batch in (None, 3)
    ]
    assert outcomes(runs[0]) == outcomes(runs[1])
    assert messages(runs[0]) == messages(runs[1])
    assert [len(rows) for rows in server.rows[3:]] == [3]
    assert runs[1].counts == {"completed": 1 if headers else 2, "failed": 3 if headers else 2}
    local = Runner().run(LocalServiceTask(answer, input_pipeline=with_index), examples)
    assert headers or outcomes(local) == outcomes(runs[1])


def test_an_element_for_no_row_costs_the_others_nothing_where_such_are_ignored(serve: Any) -> None:
    server = serve(in_batches(lambda out: [{"text": "?"}, 3, {"_index_": "0"}, *out]))
    run = Runner().run(ServiceTask(server.url, batch=4, on_foreign="ignore"), data(*"abcd"))
    assert outcomes(run) == [[{"said": text}] for text in "abcd"]
    assert logged(run, "foreign_outputs") == 3
    run = Runner().run(ServiceTask(server.url, batch=4), data(*"abcd"))
    assert "3 outputs for an _index_ that was not requested: none, none, none" in messages(run)[0]


def logged(run: Run, name: str) -> int:
    """The sum of what was logged under a name."""
    events = [e for batch in run.spans() for row in batch.to_pylist() for e in json.loads(row["events"] or "[]")]
    return sum(value for reported, _, value in events if reported == name)


def test_duplicates_are_left_out_and_counted_or_fail_their_row(serve: Any) -> None:
    server = serve(in_batches(lambda out: [*out, out[0], *out[:1]]))
    policy = Policy(concurrency=4)
    run = Runner(policy=policy).run(ServiceTask(server.url, batch=4), data(*"abcd"))
    assert run.counts == {"completed": 4}
    assert logged(run, "duplicate_outputs") == 2
    run = Runner(policy=policy).run(ServiceTask(server.url, batch=4, on_duplicate="fail"), data(*"abcd"))
    assert outcomes(run)[3] == ("BadAnswer", "duplicate")
    assert messages(run) == ["the answer holds 3 outputs for _index_ 3"]


def test_missing_outputs_fail_their_row_or_are_no_answer(serve: Any) -> None:
    server = serve(in_batches(lambda out: out[1:]))
    run = Runner().run(ServiceTask(server.url, batch=4), data(*"abcd"))
    assert outcomes(run)[3] == ("BadAnswer", "missing")
    assert messages(run) == ["the answer holds no output for _index_ 3"]
    run = Runner().run(ServiceTask(server.url, batch=4, on_missing="ignore"), data(*"abcd"))
    assert outcomes(run)[3] is None
    assert run.counts == {"completed": 4}


def test_foreign_outputs_fail_the_rows_that_they_come_with_or_are_left_out_and_counted(serve: Any) -> None:
    server = serve(in_batches(lambda out: [{"_index_": 99}, *out, {"_index_": 98}]))
    run = Runner().run(ServiceTask(server.url, batch=4), data(*"abcd"))
    assert outcomes(run) == [("BadAnswer", "foreign")] * 4
    assert "2 outputs for an _index_ that was not requested: 99, 98" in messages(run)[0]
    run = Runner().run(ServiceTask(server.url, batch=4, on_foreign="ignore"), data(*"abcd"))
    assert outcomes(run) == [[{"said": text}] for text in "abcd"]
    assert logged(run, "foreign_outputs") == 2


@pytest.mark.parametrize(
    ("invalid", "code"),
    [
        (lambda out: [{**each, "_index_": 99} if each["said"] == "odd" else each for each in out], "foreign"),
        (lambda out: {"error": "odd"}, "form"),
        (lambda out: Reply(200, b"[not JSON"), "json"),
        (lambda out: Reply(200, b"<html>", "text/html"), "content_type"),
    ],
)
def test_an_invalid_answer_to_a_batch_fails_only_the_row_that_causes_it(serve: Any, invalid: Any, code: str) -> None:
    texts = ["odd" if n == 5 else str(n) for n in range(16)]
    server = serve(in_batches(lambda out: invalid(out) if any(each["said"] == "odd" for each in out) else out))
    run = Runner(policy=Policy(concurrency=16)).run(ServiceTask(server.url, batch=16), data(*texts))
    assert outcomes(run) == [("BadAnswer", code) if text == "odd" else [{"said": text}] for text in texts]
    assert len(server.rows) == 1 + 2 * 4  # the batch, then two halves at each of four levels


@pytest.mark.parametrize("odd", [(2, 13), (0, 15), (0, 5, 10, 15), (*range(0, 16, 2),), (*range(15),)])
def test_rows_with_the_same_invalid_answer_fail_alone_wherever_they_are(serve: Any, odd: tuple[int, ...]) -> None:
    texts = ["odd" if n in odd else str(n) for n in range(16)]
    page = Reply(200, b"<html>", "text/html")
    server = serve(in_batches(lambda out: page if any(each["said"] == "odd" for each in out) else out))
    run = Runner(policy=Policy(concurrency=16)).run(ServiceTask(server.url, batch=16), data(*texts))
    assert outcomes(run) == [("BadAnswer", "content_type") if text == "odd" else [{"said": text}] for text in texts]
    assert len(server.rows) <= min(1 + 2 * 4 * len(odd), 2 * 16 - 1)


@pytest.mark.parametrize(("rows", "requests"), [(2, 3), (4, 7), (8, 8), (16, 8), (64, 12), (1000, 20)])
def test_a_service_that_answers_every_batch_with_a_page_gets_few_requests(serve: Any, rows: int, requests: int) -> None:
    server = serve(in_batches(lambda out: Reply(200, b"<html>", "text/html")))
    policy = Policy(concurrency=rows, same_failures=0)
    run = Runner(policy=policy).run(ServiceTask(server.url, batch=rows), data(*map(str, range(rows))))
    assert outcomes(run) == [("BadAnswer", "content_type")] * rows
    assert len(server.rows) == requests


def test_any_two_rows_with_the_same_invalid_answer_fail_alone() -> None:
    async def fail(odd: set[int], rows: int) -> set[int]:
        async def send(body: bytes) -> Any:
            asked = json.loads(body)
            return {"error": "odd"} if any(row["_index_"] in odd for row in asked) else asked

        batches = Batches(rows, send, "deduplicate", "fail", "ignore")
        calls = [batches.ask(BatchRow(n, 0, json.dumps({"_index_": n}).encode())) for n in range(rows)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        return {n for n, answer in enumerate(answers) if isinstance(answer, BadAnswer)}

    for rows in (5, 8, 17):
        for pair in itertools.combinations(range(rows), 2):
            assert asyncio.run(fail({*pair}, rows)) == {*pair}


def test_foreign_outputs_are_counted_by_a_row_that_still_waits() -> None:
    first, second = (BatchRow(index, 0, json.dumps({"_index_": index, "text": "a"}).encode()) for index in (0, 1))

    async def ask_both() -> Any:
        asked, answered = asyncio.Event(), asyncio.Event()

        async def send(rows: bytes) -> Any:
            asked.set()
            await answered.wait()
            return [{"_index_": 7}, *json.loads(rows)]

        batches = Batches(2, send, "deduplicate", "fail", "ignore")
        calls = [asyncio.ensure_future(batches.ask(each)) for each in (first, second)]
        await asked.wait()
        calls[0].cancel()  # as a timeout does
        await asyncio.wait(calls[:1])
        answered.set()
        return await calls[1]

    assert asyncio.run(ask_both()) == {"text": "a"}
    assert (first.notes, second.notes) == ({}, {"foreign_outputs": 1})


@pytest.mark.parametrize("answer", [{}, None])
def test_an_answer_that_is_no_batch_fails_every_row_of_it(serve: Any, answer: Any) -> None:
    server = serve(lambda rows: answer)
    run = Runner().run(ServiceTask(server.url, batch=2), data("a", "b"))
    assert outcomes(run) == [("BadAnswer", "form")] * 2


class Uncopied(Exception):
    """An error that is not made of its message."""

    def __init__(self, place: str, reported: str) -> None:
        super().__init__(f"{place}: {reported}")


@pytest.mark.parametrize("error", [ParameterError([(("headers",), "is not set")]), Uncopied("headers", "is not set")])
def test_any_error_of_a_batch_is_that_of_each_of_its_rows(error: Exception) -> None:
    async def send(rows: Any) -> Any:
        raise error

    async def ask_both() -> list[Any]:
        batches = Batches(2, send, "deduplicate", "fail", "ignore")
        asked = [batches.ask(BatchRow(index, 0, b"{}")) for index in (0, 1)]
        return await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), PATIENCE)

    reported = asyncio.run(ask_both())
    assert [(type(each), str(each)) for each in reported] == [(type(error), "headers: is not set")] * 2


def test_a_copy_of_wrong_parameters_tells_the_same() -> None:
    error = ParameterError([(("headers", "X"), "cannot be sent")])
    assert (str(copy.copy(error)), copy.copy(error).faults) == (str(error), error.faults)


def test_a_batch_that_fails_is_tried_again_row_by_row_count(serve: Any) -> None:
    good = in_batches()
    server = serve(lambda rows: Reply(503) if len(server.asked) == 1 else good(rows))
    run = Runner(policy=Policy(concurrency=4, retries=1, backoff=0)).run(
        ServiceTask(server.url, batch=4), data(*"abcd")
    )
    assert run.counts == {"completed": 4}
    assert attempts(run) == [2] * 4


def test_a_batch_that_takes_too_long_times_out_every_row_of_it(serve: Any) -> None:
    server = serve(lambda rows: server.released.wait(PATIENCE) and [])
    run = Runner(policy=Policy(timeout=0.1, retries=1, backoff=0)).run(ServiceTask(server.url, batch=2), data("a", "b"))
    assert outcomes(run) == [("TaskTimeout", "timeout")] * 2


# In experiment files


EXPERIMENT = """
name: views
dataset: {{path: cases.jsonl, input: [text], expected: answer}}
tasks:
  bot:
    kind: service
    url: {url}
    model: echo
    version: 3
    headers: {{Authorization: "Bearer ${{API_TOKEN}}"}}
    input_pipeline:
      - kind: Rename
        configuration: {{text: prompt}}
    output_pipeline:
      - {{kind: TransformJSON, configuration: $.text}}
    output_schema: {{type: string}}
scorers: {{same: exact_match}}
metrics: [accuracy]
run: {{retries: 2, total_timeout: 60}}
"""


def test_an_experiment_file_names_a_service(serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    monkeypatch.setenv("EVALUAND_SECRETS", "API_TOKEN=127.0.0.1")
    server = serve(lambda asked: {"text": asked["prompt"].upper()})
    (tmp_path / "cases.jsonl").write_text('{"text":"a","answer":"A"}\n{"text":"b","answer":"?"}\n')
    (tmp_path / "views.yaml").write_text(EXPERIMENT.format(url=server.url))
    results = Experiment.from_file(tmp_path / "views.yaml").run(MemoryStore())
    assert results.aggregation.table()["value"].to_pylist() == [0.5]
    assert results.tasks[0].run.manifest["spec"]["task"]["version"] == "3"


def test_every_fault_of_a_service_is_reported_by_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    (tmp_path / "cases.jsonl").write_text('{"text":"a","answer":"A"}\n')
    wrong = EXPERIMENT.format(url="ftp://x")
    for right, other in (("Rename", "Renam"), ("$.text", '"$..["'), ("{type: s", "{typ: s")):
        wrong = wrong.replace(right, other)
    path = tmp_path / "views.yaml"
    path.write_text(wrong)
    with pytest.raises(SpecError) as raised:
        Experiment.from_file(path)
    reported = [line.removeprefix(f"{path}:") for line in str(raised.value).split("\n")]
    assert [line.partition(": ")[0] for line in reported] == ["7", "12", "15", "16"]
    assert reported[0].startswith("7: tasks.bot.url: is 'ftp://x'")
    assert reported[1].startswith(
        "12: tasks.bot.input_pipeline.0: no adapter is called 'Renam' (did you mean 'Rename'?)"
    )
    assert reported[2].startswith("15: tasks.bot.output_pipeline.0: TransformJSON")
    assert reported[3].startswith("16: tasks.bot.output_schema: $.item: ")


def test_without_the_client_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(SpecError, match=r"pip install 'evaluand\[http\]'"):
        Runner().run(ServiceTask("http://127.0.0.1/"), data("x"))
