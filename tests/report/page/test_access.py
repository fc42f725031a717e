"""Attacks on the server of the page: each is refused, shows nothing of the store, and leaves the server at work.

The server is a real process on loopback; requests are written byte by byte, since no client of HTTP sends most of them.
"""

from __future__ import annotations

import json
import re
import select
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import pytest
from support.patience import PATIENCE
from support.view_server import HOSTILE, SECRET, Answer, Server, make_store, read_all, serve_store

from evaluand.report.page.resources.base import find_resources

REFUSED = (400, 401, 403, 404, 405, 409, 411, 413, 414, 421)
CLIENTS = 200


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("view")
    make_store(folder / "store")
    with serve_store(folder / "store", folder / "errors") as server:
        server.ids = sorted(path.name for path in (folder / "store").glob("*/*") if len(path.name) == 32)
        yield server


@pytest.fixture(autouse=True)
def still_works(server: Server) -> Iterator[None]:
    yield
    assert server.works()
    logged = server.errors.read_text()
    assert [each for each in (SECRET, *server.secrets) if each in logged] == []


def assert_refused(server: Server, answer: Answer, *statuses: int) -> None:
    assert answer.status in (statuses or REFUSED), answer
    assert answer.header("set-cookie") is None
    assert answer.header("location") is None
    assert_reveals_nothing(server, answer)
    assert_keeps_to_itself(answer)


def assert_reveals_nothing(server: Server, answer: Answer) -> None:
    held = [SECRET, *server.secrets, *(id for id in server.ids if f"/{id}".encode() in answer.body)]
    assert [each for each in held if each in answer.text] == []
    assert "Traceback" not in answer.text
    assert ".py" not in answer.text


def assert_keeps_to_itself(answer: Answer) -> None:
    assert "default-src 'self'" in str(answer.header("content-security-policy"))
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("access-control-allow-origin") is None
    assert answer.header("cache-control") == "no-store"


def fresh_token(server: Server) -> str:
    link = json.loads(server.post("/session/link").body)["link"]
    token = link.partition("?token=")[2]
    server.secrets.append(token)
    return token


# Other names for this address: what a page that rebinds its name, or a confused proxy, would send

HOSTS = [
    *("evil.example", "evil.example:PORT", "127.0.0.1.evil.example:PORT", "localhost.evil.example:PORT"),
    *("127.0.0.1", "127.0.0.1:1", "127.0.0.1:0PORT", "127.0.0.1:", "localhost", "localhost.:PORT", "LOCALHOST:PORT"),
    *("127.1:PORT", "2130706433:PORT", "0x7f000001:PORT", "0177.0.0.1:PORT", "0.0.0.0:PORT", "127.0.0.1.:PORT"),
    *("[::1]:PORT", "[::ffff:127.0.0.1]:PORT", "127.0.0.1:PORT,evil.example", "evil.example@127.0.0.1:PORT"),
    *("127.0.0.1:PORT@evil.example", "127.0.0.1:PORT/", "http://127.0.0.1:PORT", "127.0.0.1:PORT#", "*", "null"),
    *("localhost%00:PORT", "xn--localhost-.example:PORT", "127.0.0.2:PORT", "127。0。0。1:PORT"),
]


@pytest.mark.parametrize("host", HOSTS)
def test_no_other_host_is_answered(server: Server, host: str) -> None:
    assert_refused(server, server.ask(host=host.replace("PORT", str(server.port))), 421, 400)


@pytest.mark.parametrize("first", ["127.0.0.1:PORT", "evil.example"])
def test_two_hosts_are_refused(server: Server, first: str) -> None:
    hosts = [first.replace("PORT", str(server.port)), server.host]
    for pair in (hosts, hosts[::-1]):
        assert_refused(server, server.ask(headers=[f"Host: {pair[0]}"], host=pair[1]), 400, 421)


def test_a_request_without_a_host_is_refused(server: Server) -> None:
    cookie = f"Cookie: {server.cookie}\r\n\r\n"
    assert_refused(server, server.send(f"GET /api/index HTTP/1.1\r\n{cookie}".encode()), 400)
    assert_refused(server, server.send(f"GET /api/index HTTP/1.0\r\n{cookie}".encode()), 421)


@pytest.mark.parametrize(
    "target",
    [
        "http://evil.example/api/index",
        "http://HOST/api/index",
        "https://HOST/",
        "HOST",
        "*",
        "api/index",
        "?x",
        "\\api",
    ],
)
def test_only_paths_are_answered(server: Server, target: str) -> None:
    assert_refused(server, server.ask(target.replace("HOST", server.host)), 400)


@pytest.mark.parametrize(
    "name", ["X-Forwarded-Host", "X-Host", "Forwarded", "X-Original-URL", "X-HTTP-Method-Override"]
)
def test_headers_of_proxies_change_nothing(server: Server, name: str) -> None:
    answer = server.post("/session/link", f"Origin: {server.origin}", f"{name}: evil.example")
    link = json.loads(answer.body)["link"]
    server.secrets.append(link.partition("token=")[2])
    assert link.startswith(f"{server.origin}/?token=")


# Requests that a page of another site makes a browser send


@pytest.mark.parametrize(
    "origin",
    [
        *("null", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:1", "https://HOST", "http://HOST/"),
        *("HTTP://HOST", "http://HOST.evil.example", "http://localhost.:PORT", "http://[::1]:PORT", "", "file://", "*"),
        *("http://evil.example@HOST", "http://HOST http://evil.example"),
    ],
)
def test_no_other_origin_changes_anything(server: Server, origin: str) -> None:
    origin = origin.replace("HOST", server.host).replace("PORT", str(server.port))
    assert_refused(server, server.post("/session/link", f"Origin: {origin}"), 403)


def test_nothing_is_changed_without_an_origin_or_with_two(server: Server) -> None:
    assert_refused(server, server.post("/session/link", "X: y"), 403)
    for origins in ([server.origin, "http://evil.example"], ["null", server.origin], [server.origin] * 2):
        assert_refused(server, server.post("/session/link", *(f"Origin: {each}" for each in origins)), 403)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "", "SAME-ORIGIN", "same-origin, cross-site"])
def test_nothing_is_changed_for_a_page_of_another_site(server: Server, site: str) -> None:
    answer = server.post("/session/link", f"Origin: {server.origin}", f"Sec-Fetch-Site: {site}")
    assert_refused(server, answer, 403)


@pytest.mark.parametrize("mode", ["no-cors", "cors", "same-origin", "websocket", ""])
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_nothing_is_loaded_into_a_page_of_another_site_or_port(server: Server, site: str, mode: str) -> None:
    headers = [f"Sec-Fetch-Site: {site}", f"Sec-Fetch-Mode: {mode}"]
    assert_refused(server, server.ask(headers=headers), 403)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"])
def test_a_form_of_another_site_is_refused(server: Server, kind: str) -> None:
    headers = ["Origin: http://evil.example", f"Content-Type: {kind}"]
    assert_refused(server, server.post("/session/link", *headers, body=b"token=x"), 403)


# Tokens


def test_a_link_opens_once(server: Server) -> None:
    target = f"/api/index?token={fresh_token(server)}"
    first = server.ask(target, cookie="")
    assert (first.status, first.header("location")) == (303, "/api/index")
    server.secrets.append(str(first.header("set-cookie")).partition(";")[0].partition("=")[2])
    assert_refused(server, server.ask(target, cookie=""), 401)
    assert_refused(server, server.ask(f"/?token={server.link.partition('token=')[2]}", cookie=""), 401)


def test_a_cookie_is_kept_from_scripts_and_other_sites(server: Server) -> None:
    answer = server.ask(f"/?token={fresh_token(server)}", cookie="")
    name, *said = str(answer.header("set-cookie")).split("; ")
    server.secrets.append(name.partition("=")[2])
    assert name.startswith(f"evaluand-{server.port}=")
    assert {each.lower() for each in said} == {"httponly", "max-age=604800", "path=/", "samesite=lax"}


def test_a_browser_that_is_in_keeps_no_token_in_its_address_and_uses_it_up(server: Server) -> None:
    token = fresh_token(server)
    answer = server.ask(f"/e/a%2Fb?sort=x&token={token}")
    assert (answer.status, answer.header("location")) == (303, "/e/a%2Fb?sort=x")
    server.secrets.append(str(answer.header("set-cookie")).partition(";")[0].partition("=")[2])
    assert_refused(server, server.ask(f"/?token={token}", cookie=""), 401)
    assert server.ask("/e/a%2Fb?token=wrong").header("location") == "/e/a%2Fb"


@pytest.mark.parametrize(
    "query",
    [
        *("", "token=", "token", "token=%00", "token[]=TOKEN", "token=wrong", "TOKEN=TOKEN", "token=TOKEN&token=TOKEN"),
        *("token=TOKENx", "token=xTOKEN", "token= TOKEN", "token=TOKEN%00", "token=*", "token=' or '1'='1", "token={}"),
        *("token=%ed%a0%80", "token=%ff", "token=" + "A" * 8000, "&".join(["token=x"] * 900), "token=TOKEN;x"),
    ],
)
def test_no_other_token_lets_in(server: Server, query: str) -> None:
    token = fresh_token(server)
    target = quote(f"/api/index?{query.replace('=TOKEN', f'={token}')}", safe="/?=&%[]")
    assert_refused(server, server.ask(target, cookie=""), 401)


def test_a_token_of_another_case_lets_nobody_in(server: Server) -> None:
    assert_refused(server, server.ask(f"/?token={fresh_token(server).swapcase()}", cookie=""), 401)


@pytest.mark.parametrize("how", ["HEAD", "POST", "header", "bearer", "cookie", "path", "body"])
def test_a_token_lets_in_only_by_a_link(server: Server, how: str) -> None:
    token = fresh_token(server)
    origin = f"Origin: {server.origin}"
    tried: dict[str, Callable[[], Answer]] = {
        "HEAD": lambda: server.ask(f"/?token={token}", "HEAD", cookie=""),
        "POST": lambda: server.post(f"/session/link?token={token}", origin, cookie=""),
        "header": lambda: server.ask("/", headers=[f"Token: {token}"], cookie=""),
        "bearer": lambda: server.ask("/", headers=[f"Authorization: Bearer {token}"], cookie=""),
        "cookie": lambda: server.ask("/", cookie=f"evaluand-{server.port}={token}; token={token}"),
        "path": lambda: server.ask(f"/token={token}", cookie=""),
        "body": lambda: server.post(
            "/", origin, "Content-Type: application/x-www-form-urlencoded", body=f"token={token}".encode(), cookie=""
        ),
    }
    assert_refused(server, tried[how](), 401)
    assert server.ask(f"/?token={token}", cookie="").status == 303, "it has been used up"


@pytest.mark.parametrize(
    "cookie",
    [
        *("", "evaluand=VALUE", "evaluand-1=VALUE", "__Host-evaluand-PORT=VALUE", "Evaluand-PORT=VALUE"),
        *("evaluand-PORT=", "evaluand-PORT", "evaluand-PORT=wrong", 'evaluand-PORT="VALUE"', "evaluand-PORT=VALUE x"),
        *(
            "evaluand-PORT=VALUE,x",
            "=VALUE",
            "VALUE",
            "evaluand-PORT=%00",
            "evaluand-PORT=" + "x" * 20_000,
            ";" * 20_000,
        ),
    ],
)
def test_no_other_cookie_lets_in(server: Server, cookie: str) -> None:
    value = server.cookie.partition("=")[2]
    cookie = cookie.replace("VALUE", value).replace("PORT", str(server.port))
    assert_refused(server, server.ask(cookie=cookie), 401)


@pytest.mark.parametrize("other", ['a={"x": [1, "é"]}', "a", "=", 'a="', "evaluand-1=x", "evaluand-PORT=planted"])
def test_cookies_of_other_servers_of_this_machine_shut_nobody_out(server: Server, other: str) -> None:
    other = other.replace("PORT", str(server.port))
    for cookie in (f"{other}; {server.cookie}", f"{server.cookie}; {other}"):
        assert server.ask(cookie=cookie).status == 200


# Paths

NAMES = [
    *("..", ".", "../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%2e%2e"),
    *("..%5c..%5cwindows", "..\\..\\windows", "/etc/passwd", "%2fetc%2fpasswd", "C:%5c", "C:", "file:%2f%2f%2fetc"),
    *(
        "%00",
        "x%00.json",
        "con",
        "NUL",
        "COM1",
        "aux.txt",
        "~root",
        "$HOME",
        "`id`",
        "%24%28id%29",
        "|id",
        "*",
        "?",
        "%",
    ),
    *("%zz", "%ff%fe", "%c0%ae%c0%ae%2f", "%ef%bc%8e%ef%bc%8e%2f", "%e2%80%ae", "%ed%a0%80", "%0d%0aSet-Cookie:x=1"),
    *("-1", "-0", "1e999", "NaN", "Infinity", "99999999999", "9" * 30, "9" * 4000, "0x10", "1.5", "%d9%a1", "+1"),
    *(
        "manifest.json",
        "refs",
        "{}",
        "[]",
        "null",
        "__proto__",
        "constructor",
        "'%20or%20'1'='1",
        "a" * 4000,
        "%2e" * 2000,
    ),
]


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)], ids=["some names", "all names"])
@pytest.mark.parametrize("kind", find_resources(), ids=lambda each: each.pattern[0])
def test_no_parameter_leads_out_of_the_store(server: Server, kind: Any, step: int) -> None:
    holes = [place for place, part in enumerate(kind.pattern) if part.startswith("{")]
    known = json.loads(server.ask().body)["artifacts"]
    ids = {entry["kind"]: entry["id"] for entry in known}
    good = {"{kind}": "runs", "{id}": ids["runs"], "{run}": ids["runs"], "{evaluation}": "-", "{piece}": "0"}
    for hole in holes:
        for name in NAMES[find_resources().index(kind) % step :: step]:
            parts = [good.get(part, "good") for part in kind.pattern]
            parts[hole] = name
            answer = server.ask(f"/api/{'/'.join(parts)}?q=x")
            assert_refused(server, answer)
            assert "root:" not in answer.text


@pytest.mark.parametrize("name", NAMES)
def test_no_asset_is_outside_of_the_package(server: Server, name: str) -> None:
    answer = server.ask(f"/assets/{name}")
    if "/" in name.replace("%2f", "/") or answer.status == 200:  # the page itself, which says that there is none
        assert 'id="page"' in answer.text
    else:
        assert_refused(server, answer, 404)
    assert_reveals_nothing(server, answer)


@pytest.mark.parametrize("target", ["/api/", "/api", "/api//index", "/api/index/", "/api/../api/index", "/API/index"])
def test_no_other_spelling_of_a_path_is_a_resource(server: Server, target: str) -> None:
    answer = server.ask(target)
    assert b"experiments" not in answer.body
    assert_reveals_nothing(server, answer)
    assert_keeps_to_itself(answer)


# Redirects


@pytest.mark.parametrize(
    "target",
    [
        *(
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "/\\/evil.example",
            "//evil.example/%2e%2e",
            "/%09/evil",
        ),
        *("/%0d%0aSet-Cookie:%20x=1", "/%0aLocation:%20http://evil.example", "/x%00", "/%5cevil.example", "/%2fevil"),
        *("/.//evil.example", "/..//evil.example", "/;//evil.example", "/@evil.example", "/:80", "//HOST@evil.example"),
        *("/x?next=http://evil.example", "/x?%0d%0aSet-Cookie:x=1=1", "/x?a=%23&b=%26", "/javascript:alert(1)"),
    ],
)
def test_a_link_leads_to_this_server(server: Server, target: str) -> None:
    target = target.replace("HOST", server.host)
    joined = f"{target}{'&' if '?' in target else '?'}token={fresh_token(server)}"
    answer = server.ask(joined, cookie="")
    place = str(answer.header("location"))
    assert answer.status == 303
    assert place.startswith("/")
    assert not place.startswith(("//", "/\\"))
    assert urlsplit(urljoin(server.origin, place)).netloc == server.host
    assert [name for name, _ in answer.headers].count("set-cookie") == 1
    assert "token" not in place


# Requests that two servers could read differently, or that are none


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (["Content-Length: 5", "Transfer-Encoding: chunked"], b"0\r\n\r\nGET /api/index HTTP/1.1\r\n\r\n"),
        (["Transfer-Encoding: chunked", "Content-Length: 5"], b"0\r\n\r\nX"),
        (["Transfer-Encoding: chunked"], b"0\r\n\r\n"),
        (["Transfer-Encoding: chunked"], b"5;ext=\r\nhello\r\n0\r\n\r\n"),
        (["Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
        (["Transfer-Encoding: chunked, identity"], b"0\r\n\r\n"),
        (["Transfer-Encoding : chunked"], b"0\r\n\r\n"),
        (["Transfer-Encoding:\x0bchunked"], b"0\r\n\r\n"),
        (["Content-Length: 0", "Content-Length: 30"], b"GET /api/index HTTP/1.1\r\n\r\n"),
        (["Content-Length: -1"], b""),
        (["Content-Length: +1"], b"x"),
        (["Content-Length: 1e3"], b"x"),
        (["Content-Length: 0x10"], b"x"),
        (["Content-Length: ١"], b"x"),
        (["Content-Length: 99999999999999999999"], b"x"),
        (["Content-Length: 1048577"], b"x"),
        (["Content-Length:"], b""),
        (["No colon here"], b""),
        ([": no name"], b""),
        (["Na me: x"], b""),
        (["X: a\x00b"], b""),
        (["X: a\rb"], b""),
        (["X: " + "a" * 100_000], b""),
        ([f"X{n}: y" for n in range(20_000)], b""),
    ],
)
def test_what_two_servers_could_read_differently_is_refused(server: Server, lines: list[str], body: bytes) -> None:
    head = ["POST /session/link HTTP/1.1", f"Host: {server.host}", f"Cookie: {server.cookie}", *lines]
    head += [f"Origin: {server.origin}", "Connection: close"]
    answer = server.send("\r\n".join([*head, "", ""]).encode() + body)
    assert_refused(server, answer, 400, 411, 413, 431)
    assert answer.body.count(b"HTTP/1.1") == 0, "two answers"


@pytest.mark.parametrize(
    "data",
    [
        *(
            b"\r\n\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET /\r\n\r\n",
            b"GET / HTTP/9.9\r\nConnection: close\r\n\r\n",
            b"GET / HTTP/1.1 \r\n\r\n",
        ),
        *(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n",
            b"\x00" * 1000 + b"\n",
        ),
        *(b"GET /\x00 HTTP/1.1\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"GET / / HTTP/1.1\r\n\r\n", b"x" * 100_000),
        *(b"GET / HTTP/1.1\nHost: x\n\n", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
)
def test_what_is_no_request_is_refused(server: Server, data: bytes) -> None:
    assert_refused(server, server.send(data), 400, 421)


@pytest.mark.parametrize(
    "target",
    ["/" + "a" * 9000, "/api/" + "a/" * 5000, "/?" + "a" * 9000, "/?" + "a=b&" * 3000, "/api/find/x/y?q=" + "a" * 9000],
)
def test_an_address_that_is_too_long_is_refused(server: Server, target: str) -> None:
    assert_refused(server, server.ask(target), 414)


@pytest.mark.parametrize("query", ["", "q=", "q=" + "(" * 4000, "q=%00", "q=.*(a%2b)%2b%24", "q=x&q=y", "Q=x"])
def test_any_text_can_be_searched_for(server: Server, query: str) -> None:
    run = next(each["id"] for each in json.loads(server.ask().body)["artifacts"] if each["kind"] == "runs")
    answer = server.ask(f"/api/find/{run}/-?{query}")
    assert answer.status in (200, 404)
    assert_reveals_nothing(server, answer)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "TRACE", "OPTIONS", "PATCH", "PROPFIND", "get", "GETX", "TRACK"])
@pytest.mark.parametrize("target", ["/", "/api/index", "/session/link"])
def test_no_other_method_is_answered(server: Server, method: str, target: str) -> None:
    headers = [f"Origin: {server.origin}", "Access-Control-Request-Method: POST", "X-Echo: echoed"]
    answer = server.ask(target, method, headers)
    assert_refused(server, answer, 405)
    assert "echoed" not in answer.text


def test_the_server_is_no_proxy(server: Server) -> None:
    assert_refused(server, server.ask("evil.example:443", "CONNECT", host=server.host), 400)
    assert_refused(server, server.ask("evil.example:443", "CONNECT", host="evil.example:443"), 421)


@pytest.mark.parametrize("target", ["/api/index", "/assets/view.js", "/", "/session"])
def test_nothing_but_a_link_is_posted(server: Server, target: str) -> None:
    assert_refused(server, server.post(target), 405)


@pytest.mark.parametrize("cookie", ["", None])
def test_there_are_no_web_sockets(server: Server, cookie: str | None) -> None:
    upgrade = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA"]
    origin = ["Origin: http://evil.example"]
    assert_refused(server, server.ask("/", headers=[*upgrade, *origin], cookie=cookie), 400)


def test_a_body_that_is_too_large_is_refused_before_it_comes(server: Server) -> None:
    head = [f"Origin: {server.origin}", "Content-Length: 100000000", "Expect: 100-continue"]
    lines = [
        "POST /session/link HTTP/1.1",
        f"Host: {server.host}",
        f"Cookie: {server.cookie}",
        "Connection: close",
        *head,
    ]
    assert_refused(server, server.send("\r\n".join([*lines, "", ""]).encode()), 413)


# Texts of the store that are markup


def test_names_are_data_and_no_markup(server: Server) -> None:
    name = quote(HOSTILE, safe="")
    for target in ("/api/index", f"/api/results/{name}", f"/api/answers/{name}", f"/api/sections/{name}"):
        answer = server.ask(target)
        assert (answer.status, answer.header("content-type")) == (200, "application/json")
        assert_keeps_to_itself(answer)
    assert json.loads(server.ask(f"/api/answers/{name}").body)["title"] == HOSTILE
    sections = json.loads(server.ask(f"/api/sections/{name}").body)
    assert len(sections) > 1
    for section in sections:
        assert_runs_nothing(section["html"])


def assert_runs_nothing(html: str) -> None:
    found: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend((tag, *(name for name, _ in attrs if name.startswith("on"))))
            found.extend(value or "" for name, value in attrs if name in ("href", "src", "action", "style", "srcdoc"))

    Tags().feed(html)
    assert [
        each for each in found if re.match(r"on|script|img|iframe|object|embed|form|base|link|javascript:", each)
    ] == []


@pytest.mark.parametrize("target", ["/PAGE", "/e/PAGE", "/?q=PAGE", "/api/PAGE", "/api/results/PAGE", "/assets/PAGE"])
def test_addresses_are_not_repeated_as_markup(server: Server, target: str) -> None:
    answer = server.ask(target.replace("PAGE", quote("<script>alert(3)</script>", safe="")))
    assert "alert(3)" not in answer.text or answer.header("content-type") == "text/plain; charset=utf-8"
    assert_keeps_to_itself(answer)


# Faults


def test_a_fault_of_the_program_is_a_sentence_and_a_line_in_the_terminal(server: Server) -> None:
    answer = server.ask("/api/broken/part%1b%5b31m")
    assert_refused(server, answer, 500)
    assert answer.text == "this could not be read; the terminal of `evaluand view` says why"
    [line] = [each for each in server.errors.read_text().splitlines() if "broken" in each]
    assert "RuntimeError: the inner part of part" in line
    assert "\x1b" not in line


def test_damage_is_a_sentence(server: Server) -> None:
    answer = server.ask("/api/answers/damaged")
    assert answer.status == 409
    assert "its digest differs" in answer.text
    assert_keeps_to_itself(answer)


# Many and slow clients


def test_cheap_requests_do_not_wait_for_others_that_read_much(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with serve_store(tmp_path / "store", tmp_path / "errors") as server, ExitStack() as open_ones:
        for _ in range(40):
            stream = open_ones.enter_context(server.connect())
            stream.sendall(request(server, f"/api/slow/{10 * PATIENCE}"))
        time.sleep(0.1)
        assert server.ask("/").status == 200


def request(server: Server, target: str) -> bytes:
    head = [f"GET {target} HTTP/1.1", f"Host: {server.host}", f"Cookie: {server.cookie}", "Connection: close"]
    return "\r\n".join([*head, "", ""]).encode()


def test_two_hundred_clients_are_answered_at_once(server: Server) -> None:
    with ExitStack() as open_ones:
        streams = [open_ones.enter_context(server.connect()) for _ in range(CLIENTS)]
        for stream in streams:
            stream.sendall(request(server, "/api/results/good"))
        answers = [Answer.parse(read_all(stream)) for stream in streams]
    assert [answer.status for answer in answers] == [200] * CLIENTS
    assert len({answer.body for answer in answers}) == 1


@pytest.mark.parametrize("sent", [0, 1, 20, 60, -1])
def test_clients_that_say_no_more_keep_nobody_waiting(server: Server, sent: int) -> None:
    with ExitStack() as open_ones:
        streams = [open_ones.enter_context(server.connect()) for _ in range(100)]
        for stream in streams:
            stream.sendall(request(server, "/api/index")[:sent])
        assert server.works()
        ended, _, _ = select.select(streams, [], [], 0)
        assert len(ended) < len(streams)


def test_clients_that_go_leave_nothing_behind(server: Server) -> None:
    for target in ("/api/results/good", "/api/slow/0", "/") * 20:
        with server.connect() as stream:
            stream.sendall(request(server, target))
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # resets the connection
    assert server.works()
    assert "Traceback" not in server.errors.read_text()


def test_several_requests_at_once_are_answered_in_turn(server: Server) -> None:
    first = request(server, "/api/index").replace(b"Connection: close\r\n", b"")
    with server.connect() as stream:
        stream.sendall(first * 20 + request(server, "/api/nothing"))
        data = read_all(stream)
    assert (data.count(b"HTTP/1.1 200"), data.count(b"HTTP/1.1 404")) == (20, 1)


@pytest.mark.slow
def test_slow_clients_are_sent_away(server: Server) -> None:
    def is_sent_away(first: bytes, more: bytes) -> bool:
        until = time.monotonic() + PATIENCE
        with server.connect() as stream:
            stream.sendall(first)
            stream.settimeout(0.5)
            while time.monotonic() < until:
                try:
                    stream.sendall(more)
                    if not stream.recv(100):
                        return True
                except TimeoutError:
                    continue
                except ConnectionError:
                    return True
        return False

    post = f"POST /session/link HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 1000\r\n\r\n".encode()
    tried = [(b"", b""), (b"GET / HTTP/1.1\r\n", b"X: y\r\n"), (post, b"x"), (b"G", b"")]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(is_sent_away, *zip(*tried, strict=True)))


@pytest.mark.slow
def test_clients_that_do_not_read_are_sent_away(server: Server) -> None:
    wanted = 400
    more = request(server, "/assets/view.js").replace(b"Connection: close\r\n", b"")
    with server.connect() as stream:
        stream.sendall(more * wanted)
        time.sleep(40)
        data = read_all(stream)
    assert 0 < data.count(b"HTTP/1.1 200") < wanted


@pytest.mark.slow
def test_more_connections_than_a_process_can_hold_are_refused(server: Server) -> None:
    with ExitStack() as open_ones:
        streams = [open_ones.enter_context(server.connect()) for _ in range(700)]
        assert Answer.parse(read_all(streams[-1])).status == 503
    time.sleep(0.5)
    assert server.works()


def test_connections_of_one_address_leave_room_for_others(server: Server) -> None:
    with ExitStack() as open_ones:
        streams = [open_ones.enter_context(server.connect()) for _ in range(300)]
        assert Answer.parse(read_all(streams[-1])).status == 503
        assert b"too many connections; try again in a moment" in read_all(streams[-2])
        other = open_ones.enter_context(
            socket.create_connection(("127.0.0.1", server.port), PATIENCE, ("127.0.0.2", 0))
        )
        other.sendall(request(server, "/api/results/good"))
        assert Answer.parse(read_all(other)).status == 200
    time.sleep(0.5)
    assert server.works()
