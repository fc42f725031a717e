"""Requests over HTTP to servers that answer in every way: right, wrong, late, twice or not at all."""

from __future__ import annotations

import asyncio
import base64
import gzip
import logging
import shutil
import ssl
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Coroutine
from contextlib import suppress
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.patience import PATIENCE
from support.raw_server import Connection, RawServer, raw_server
from yarl import URL

from evaluand.core.errors import SpecError, TaskError
from evaluand.engine.connections import proxy_of
from evaluand.engine.form import FilePart, encode_form
from evaluand.engine.http import LARGEST, BadAnswer, BadRequest, HttpClient, Unavailable

JSON = b"Content-Type: application/json"


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def within_client(
    use: Callable[[HttpClient], Coroutine[Any, Any, Any]], url: str, method: str = "POST", **headers: str
) -> Any:
    """What a coroutine makes of a client, in a loop that ends with it."""

    async def run() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await use(HttpClient(url, method, {name.replace("_", "-"): v for name, v in headers.items()}))

    return asyncio.run(run())


def ask(server: RawServer, *bodies: bytes, method: str = "POST", **headers: str) -> list[Any]:
    """The answer to each body, or the error, one after another."""

    async def ask_all(client: HttpClient) -> list[Any]:
        return [await outcome(client, body) for body in bodies or (b"{}",)]

    answers: list[Any] = within_client(ask_all, server.url, method, **headers)
    return answers


async def outcome(client: HttpClient, body: bytes = b"{}") -> Any:
    try:
        return await client.ask(body)
    except TaskError as error:
        return error


def answering(*lines: bytes, body: bytes = b"") -> Callable[[Connection], None]:
    """A script that answers one request so, and closes the connection."""

    def script(connection: Connection) -> None:
        connection.receive()
        connection.send(*lines, body=body)

    return script


def head(request: bytes) -> dict[str, str]:
    """The headers of a request, by their names in lower case."""
    lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    names = [line.partition(":")[0].lower() for line in lines]
    assert len(names) == len({*names})
    return {name: line.partition(":")[2].strip() for name, line in zip(names, lines, strict=True)}


# Connections that are used again


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("waits", ["blocking", "polling"])
def test_a_connection_that_the_server_closed_while_idle_costs_no_request(method: str, waits: str) -> None:
    closed = threading.Event()

    def script(connection: Connection) -> None:
        connection.receive()
        connection.answer(b"%d" % connection.number)
        if connection.number == 0:
            connection.stream.close()
            closed.set()
        else:
            connection.receive()

    async def ask_twice(client: HttpClient) -> list[Any]:
        first = await outcome(client)
        if waits == "blocking":  # the loop has not seen the end of the connection when it sends the next request
            assert closed.wait(PATIENCE)
            time.sleep(0.05)
        else:
            while not closed.is_set():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
        return [first, await outcome(client)]

    with raw_server(script) as server:
        assert within_client(ask_twice, server.url, method) == [0, 1]
        assert (len(server.requests), server.connections) == (2, 2)


@pytest.mark.parametrize("waits", ["blocking", "polling"])
def test_what_a_server_sends_unasked_is_no_answer_to_the_next_request(waits: str) -> None:
    sent, seen = threading.Event(), threading.Event()

    def script(connection: Connection) -> None:
        connection.receive()
        connection.answer(b'"own"')
        if connection.number == 0:
            assert seen.wait(PATIENCE)
            connection.answer(b'"unasked"')
            sent.set()
        connection.receive()

    async def ask_twice(client: HttpClient) -> list[Any]:
        first = await outcome(client)
        seen.set()
        if waits == "blocking":
            assert sent.wait(PATIENCE)
            time.sleep(0.05)
        else:
            while not sent.is_set():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
        return [first, await outcome(client)]

    with raw_server(script) as server:
        assert within_client(ask_twice, server.url) == ["own", "own"]
        assert server.connections == 2


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_a_request_that_the_server_has_received_is_never_repeated_unseen(method: str) -> None:
    def script(connection: Connection) -> None:
        connection.receive()
        connection.answer(b"1")
        connection.receive()  # and closes the connection

    with raw_server(script) as server:
        first, second = ask(server, b"{}", b"[]", method=method)
        assert first == 1
        assert (type(second), second.code) == (Unavailable, "connection")
        assert [request[-2:] for request in server.requests] == [b"{}", b"[]"]


LIMITED = """
import asyncio, resource, sys
from evaluand.engine.http import HttpClient
resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))
async def main():
    client = HttpClient(sys.argv[1], "POST", {})
    print(len(await asyncio.gather(*(client.ask(b"{}") for _ in range(500)))))
asyncio.run(main())
"""


def test_more_calls_than_a_process_may_have_files_wait_for_a_connection() -> None:
    def script(connection: Connection) -> None:
        while True:
            connection.receive()
            time.sleep(0.01)
            connection.answer()

    with raw_server(script) as server:
        command = [sys.executable, "-c", LIMITED, server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert (done.stdout, done.stderr) == ("500\n", "")
        assert server.connections <= 160


# What is sent


def test_own_headers_replace_the_usual_ones_however_they_are_written() -> None:
    with raw_server(answering(b"HTTP/1.1 200 OK", b"Content-Length: 2", body=b"{}")) as server:
        ask(server, user_agent="mine/1", accept="application/vnd.mine+json")
        sent = head(server.requests[0])
    assert sent["user-agent"] == "mine/1"
    assert sent["accept"] == "application/vnd.mine+json"
    assert sent["content-type"] == "application/json"
    assert sent["content-length"] == "2"
    assert sent["host"] == f"127.0.0.1:{server.port}"


def test_a_url_is_sent_as_it_is_written() -> None:
    with raw_server(answering(b"HTTP/1.1 200 OK", b"Content-Length: 2", body=b"{}")) as server:
        url = f"http://127.0.0.1:{server.port}/a%2Fb/ü%20?q=%26x%3D1%2B2&r=a+b"
        assert within_client(outcome, url) == {}
    assert server.requests[0].startswith(b"POST /a%2Fb/%C3%BC%20?q=%26x%3D1%2B2&r=a+b HTTP/1.1\r\n")


def test_credentials_of_netrc_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password open-sesame\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with raw_server(answering(b"HTTP/1.1 200 OK", b"Content-Length: 2", body=b"{}")) as server:
        assert ask(server) == [{}]
    assert "authorization" not in head(server.requests[0])


texts = st.text(st.characters(codec="utf-8"), max_size=10)


@given(st.dictionaries(texts, texts, max_size=3), texts, texts, st.binary(max_size=100))
def test_a_form_reads_back(fields: dict[str, str], name: str, filename: str, content: bytes) -> None:
    body, content_type = encode_form(fields, FilePart(name, filename, "image/png", content))
    boundary = content_type.removeprefix("multipart/form-data; boundary=").encode()
    start, *parts, end = (b"\r\n" + body).split(b"\r\n--" + boundary)
    assert (start, end) == (b"", b"--\r\n")
    heads, contents = zip(*(part.removeprefix(b"\r\n").split(b"\r\n\r\n", 1) for part in parts), strict=True)
    escaped = [text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A") for text in (*fields, name, filename)]
    *plain, of_file, named = escaped
    disposition = 'Content-Disposition: form-data; name="{}"'
    described = f'{disposition.format(of_file)}; filename="{named}"\r\nContent-Type: image/png'
    assert [part.decode() for part in heads] == [*map(disposition.format, plain), described]
    assert [*contents] == [*(value.encode() for value in fields.values()), content]


def test_a_form_is_read_by_the_parser_of_the_standard_library() -> None:
    body, content_type = encode_form({"lang": "de"}, FilePart("file", 'a "b".txt', "text/plain", b"Hallo\r\nWelt"))
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    language, file = message.iter_parts()
    assert (language.get_content_disposition(), language.get_payload()) == ("form-data", "de")
    assert (file.get_filename(), file.get_content_type()) == ("a %22b%22.txt", "text/plain")
    assert file.get_payload(decode=True) == b"Hallo\r\nWelt"


# Answers


def test_interim_responses_are_no_answers() -> None:
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK"
    with raw_server(answering(hints, b"Content-Length: 3", body=b"[1]")) as server:
        assert ask(server) == [[1]]


def test_a_packed_answer_is_unpacked() -> None:
    packed = gzip.compress(b'{"text": "' + b"a" * 100_000 + b'"}')
    lines = (b"HTTP/1.1 200 OK", b"Content-Encoding: gzip", b"Content-Length: %d" % len(packed))
    with raw_server(answering(*lines, body=packed)) as server:
        assert ask(server) == [{"text": "a" * 100_000}]
    assert "gzip" in head(server.requests[0])["accept-encoding"]


def test_a_small_answer_that_unpacks_to_a_huge_one_is_refused() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(2 * LARGEST >> 20)) + packer.flush()
    lines = (b"HTTP/1.1 200 OK", b"Content-Encoding: gzip", b"Content-Length: %d" % len(packed))
    with raw_server(answering(*lines, body=packed)) as server:
        [error] = ask(server)
    assert (type(error), error.code) == (BadAnswer, "too_large")
    assert len(packed) < LARGEST / 100


def test_a_refusal_ends_a_request_that_is_not_sent_in_full() -> None:
    size, refused, ended = 64 << 20, threading.Event(), threading.Event()
    received: list[int] = []

    def script(connection: Connection) -> None:
        received.append(len(connection.receive_head()[1]))
        connection.send(b"HTTP/1.1 413 Too Large", b"Content-Length: 2", body=b"no")
        assert refused.wait(PATIENCE)
        with suppress(ConnectionError):
            while piece := connection.stream.recv(1 << 20):
                received.append(len(piece))
        ended.set()

    async def ask_once(client: HttpClient) -> Any:
        error = await outcome(client, b" " * size)
        refused.set()
        while not ended.is_set():
            await asyncio.sleep(0.01)
        return error

    with raw_server(script) as server:
        error = within_client(ask_once, server.url)
    assert (type(error), str(error)) == (BadRequest, "413 Too Large: no")
    assert sum(received) < size


@pytest.mark.parametrize(
    ("lines", "body", "code", "reported"),
    [
        ([JSON, b"Content-Length: 9"], b"{}", "connection", "was lost: the answer is incomplete"),
        ([JSON, b"Transfer-Encoding: chunked"], b"5\r\n{", "connection", "was lost: the answer is incomplete"),
        ([JSON, b"Transfer-Encoding: chunked"], b"zz\r\n{}", "connection", "Invalid character in chunk size: b'zz'"),
        ([b"Content-Length: 2", b"Content-Length: 3"], b"{}", "connection", "Duplicate Content-Length"),
        ([b"X: " + b"a" * 100_000], b"{}", "connection", "Got more than 65536 bytes when reading"),
        ([JSON, b"Content-Encoding: gzip", b"Content-Length: 2"], b"{}", "encoding", "cannot be unpacked: "),
        ([JSON, b"Content-Encoding: br", b"Content-Length: 2"], b"{}", "encoding", "cannot be unpacked: "),
    ],
)
def test_an_answer_that_is_not_http_is_a_reason_on_one_line(
    lines: list[bytes], body: bytes, code: str, reported: str
) -> None:
    with raw_server(answering(b"HTTP/1.1 200 OK", *lines, body=body)) as server:
        [error] = ask(server)
    assert (type(error), error.code) == (BadAnswer if code == "encoding" else Unavailable, code)
    assert reported in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("location", "reported"),
    [
        (b"//me:pw@127.0.0.1:{port}/", "redirects to another host, http://127.0.0.1:{port}/, which is not followed"),
        (b"https://127.0.0.1:{port}/", "redirects to another host, https://127.0.0.1:{port}/, which is not followed"),
        (b"http://[::1", "redirects by 307 to no valid URL"),
        (b"file:///etc/passwd", "redirects by 307 to no valid URL"),
    ],
)
def test_a_redirect_to_anything_but_the_same_host_is_not_followed(location: bytes, reported: str) -> None:
    def script(connection: Connection) -> None:
        connection.receive()
        where = location.replace(b"{port}", b"%d" % connection.server.port)
        connection.send(b"HTTP/1.1 307 Elsewhere", b"Location: " + where, b"Content-Length: 0")

    with raw_server(script) as server:
        [error] = ask(server)
    assert (type(error), error.code) == (BadAnswer, "redirect")
    assert str(error) == reported.format(port=server.port)


def test_cookies_are_neither_read_nor_sent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "aiohttp")

    def script(connection: Connection) -> None:
        for _ in range(2):
            connection.receive()
            connection.send(
                b"HTTP/1.1 200 OK", b"Set-Cookie: a=1", b"Set-Cookie: (b)=2", b"Content-Length: 1", body=b"1"
            )

    with raw_server(script) as server:
        assert ask(server, b"{}", b"{}") == [1, 1]
    assert ["cookie" in head(request) for request in server.requests] == [False, False]
    assert caplog.text == ""


def test_what_the_client_library_logs_shows_no_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_TOKEN", "open-sesame")

    async def ask_and_log(client: HttpClient) -> None:
        await client.ask(b"{}")
        logging.getLogger("aiohttp.client").warning("sent %s", "open-sesame")

    with raw_server(answering(b"HTTP/1.1 200 OK", b"Content-Length: 2", body=b"{}")) as server:
        within_client(ask_and_log, server.url, x_token="${MY_TOKEN}")
    assert head(server.requests[0])["x-token"] == "open-sesame"
    assert [record.getMessage() for record in caplog.records] == ["sent ${MY_TOKEN}"]


# Proxies and certificates


def test_the_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with raw_server(answering(b"HTTP/1.1 200 OK", b"Content-Length: 2", body=b"{}")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"me:open-sesame@127.0.0.1:{proxy.port}")
        assert within_client(outcome, "http://models.invalid/answer") == {}
        monkeypatch.setenv("NO_PROXY", "models.invalid")
        assert within_client(outcome, "http://models.invalid/answer").code == "connect"
    [asked] = proxy.requests
    assert asked.startswith(b"POST http://models.invalid/answer HTTP/1.1\r\n")
    assert head(asked)["proxy-authorization"] == f"Basic {base64.b64encode(b'me:open-sesame').decode()}"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "0.0.0.0"])
def test_what_is_for_this_machine_goes_through_no_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = answering(b"HTTP/1.1 200 OK", b"Content-Length: 2", body=b"{}")
    with raw_server(answer) as server, raw_server(answer) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert within_client(outcome, f"http://{host}:{server.port}/answer") == {}
    assert (len(server.requests), proxy.requests) == (1, [])


@pytest.mark.parametrize("host", ["127.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "[::]", "a.localhost"])
def test_no_spelling_of_this_machine_is_asked_of_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example")
    assert proxy_of(URL(f"http://{host}:8080/answer")) is None
    assert proxy_of(URL("http://10.0.0.1/answer")) == "http://proxy.example"


def test_a_proxy_that_refuses_is_a_lost_connection_that_does_not_show_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with raw_server(answering(b"HTTP/1.1 407 Proxy Authentication Required", b"Content-Length: 0")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:open-sesame@127.0.0.1:{proxy.port}")
        refused = within_client(outcome, "https://models.invalid/answer")
    gone = within_client(outcome, "https://models.invalid/answer")
    assert proxy.requests[0].startswith(b"CONNECT models.invalid:443 HTTP/1.1\r\n")
    assert [type(refused), type(gone)] == [Unavailable, Unavailable]
    reason = "the proxy of the environment answers 407 Proxy Authentication Required"
    assert str(refused) == f"no connection to models.invalid: {reason}"
    assert str(gone) == "no connection to models.invalid: the proxy of the environment: Connection refused"


def test_a_proxy_of_another_protocol_is_reported_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:open-sesame@127.0.0.1:9")
    client = HttpClient("http://models.invalid/answer", "POST", {})
    with pytest.raises(SpecError, match="the proxy in ALL_PROXY has the scheme socks5; give one with http") as raised:
        client.check()
    assert "sesame" not in str(raised.value)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made by openssl")
def test_certificates_of_the_environment_are_trusted_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject)
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(certificate, key)

    def script(connection: Connection) -> None:
        for number in range(2):
            connection.receive()
            connection.answer(b"%d" % number)

    async def ask_twice(client: HttpClient) -> list[Any]:
        return [await outcome(client), await outcome(client)]

    with raw_server(script, trust) as server:
        unknown, _ = within_client(ask_twice, f"https://localhost:{server.port}/")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        other, _ = within_client(ask_twice, f"https://127.0.0.1:{server.port}/")
        assert within_client(ask_twice, f"https://localhost:{server.port}/") == [0, 1]
    for refused, reason in ((unknown, "self-signed certificate"), (other, "IP address mismatch")):
        assert (type(refused), refused.code) == (Unavailable, "connect")
        assert reason in str(refused)
