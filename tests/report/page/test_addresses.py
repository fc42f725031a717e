"""Other addresses than this machine's own: only with a login, by a token or at a proxy."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.commands import Folder
from support.fresh import open_python
from support.patience import PATIENCE
from support.processes import open_process
from support.view_server import CODE, SECRET, Answer, Server, make_store, meet, serve_store

from evaluand.cli import view
from evaluand.core.errors import SpecError
from evaluand.report.page.access import Access
from evaluand.report.page.addresses import check_url, choose_address, read_login

URL = "https://eval.example.org"
TOKEN = "correct-horse-battery-staple"
SERVE = (sys.executable, "-c", CODE, "view", "--no-browser")
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """A server with a token, behind a proxy with HTTPS; and one whose proxy names the user."""
    folder = tmp_path_factory.mktemp("view")
    make_store(folder / "store")
    (folder / "token").write_text(f"{TOKEN}\n")
    (folder / "token").chmod(0o600)
    with ExitStack() as started:
        start = [
            serve_store(folder / "store", folder / str(n), *options, is_opened=False)
            for n, options in enumerate(
                (
                    ("--host", "0.0.0.0", "--url", URL, "--auth", str(folder / "token")),
                    ("--url", URL, "--auth", "header:X-Forwarded-User"),
                )
            )
        ]
        by_token, by_proxy = (started.enter_context(each) for each in start)
        yield by_token, by_proxy


@pytest.fixture
def by_token(servers: tuple[Server, Server]) -> Server:
    return servers[0]


@pytest.fixture
def by_proxy(servers: tuple[Server, Server]) -> Server:
    return servers[1]


def ask(server: Server, *headers: str, host: str = "eval.example.org", **how: Any) -> Answer:
    return server.ask(how.pop("target", "/api/index"), headers=headers, host=host, **how)


def log_in(server: Server, token: str, origin: str = URL, target: str = "/e/a%2Fb?sort=x") -> Answer:
    headers = [f"Origin: {origin}", "Sec-Fetch-Site: same-origin", FORM]
    return server.ask(target, "POST", headers, f"token={quote(token)}".encode(), host="eval.example.org", cookie="")


def cookie_of(answer: Answer) -> str:
    return str(answer.header("set-cookie")).partition(";")[0]


def assert_refused(answer: Answer, *statuses: int) -> None:
    assert answer.status in statuses, answer
    assert answer.header("set-cookie") is None
    assert SECRET not in answer.text
    assert "experiments" not in answer.text


def test_the_token_is_entered_in_a_form_that_leads_on_to_the_address(by_token: Server) -> None:
    form = ask(by_token, target="/e/a%2Fb?sort=x")
    assert (form.status, form.header("content-type")) == (401, "text/html; charset=utf-8")
    assert '<form method="post">' in form.text
    done = log_in(by_token, TOKEN)
    assert (done.status, done.header("location")) == (303, "/e/a%2Fb?sort=x")
    said = str(done.header("set-cookie")).lower().split("; ")
    assert said[0].startswith("__host-evaluand=")
    assert {*said[1:]} == {"httponly", "max-age=604800", "path=/", "samesite=lax", "secure"}
    assert ask(by_token, cookie=cookie_of(done)).status == 200
    assert log_in(by_token, TOKEN).status == 303


@pytest.mark.parametrize(
    "token", ["", "x", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "\0", "*", f"{TOKEN}&token={TOKEN}"]
)
def test_no_other_token_is_taken(by_token: Server, token: str) -> None:
    assert_refused(log_in(by_token, token), 401)


@pytest.mark.parametrize("origin", ["null", "http://eval.example.org", "https://evil.example", f"{URL}:443", f"{URL}/"])
def test_only_the_form_of_this_server_is_taken(by_token: Server, origin: str) -> None:
    assert_refused(log_in(by_token, TOKEN, origin), 403)


@pytest.mark.parametrize("target", ["//evil.example", "/\\evil.example", "///evil.example"])
def test_the_form_leads_to_this_server(by_token: Server, target: str) -> None:
    assert log_in(by_token, TOKEN, target=target).header("location") == "/"


def test_programs_give_the_token_as_bearer(by_token: Server) -> None:
    assert ask(by_token, f"Authorization: Bearer {TOKEN}").status == 200
    assert ask(by_token, f"authorization: bearer  {TOKEN}").status == 200
    for wrong in ("Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN} x", TOKEN, "Bearer", f"Bearer,{TOKEN}"):
        assert_refused(ask(by_token, f"Authorization: {wrong}"), 401)
    assert_refused(ask(by_token, f"Authorization: Bearer {TOKEN}", "Authorization: Bearer x"), 401)


def test_the_printed_link_still_opens_once(by_token: Server) -> None:
    assert by_token.link.startswith(f"{URL}/?token=")
    target = by_token.link.removeprefix(URL)
    assert ask(by_token, target=target).status == 303
    assert_refused(ask(by_token, target=target), 401)


def test_a_link_for_another_browser_has_the_address_of_browsers(by_token: Server) -> None:
    cookie = cookie_of(log_in(by_token, TOKEN))
    answer = by_token.ask("/session/link", "POST", [f"Origin: {URL}"], host="eval.example.org", cookie=cookie)
    link = json.loads(answer.body)["link"]
    assert ask(by_token, target=link.removeprefix(URL)).status == 303


@pytest.mark.parametrize(
    "host", ["127.0.0.1:PORT", "localhost:PORT", "0.0.0.0:PORT", f"{URL[8:]}:443", "EVAL.example.org"]
)
def test_only_the_address_of_browsers_is_answered(by_token: Server, host: str) -> None:
    answer = ask(by_token, f"Authorization: Bearer {TOKEN}", host=host.replace("PORT", str(by_token.port)))
    assert_refused(answer, 421)


def test_a_proxy_names_the_user(by_proxy: Server) -> None:
    assert by_proxy.link == f"{URL}/"
    assert ask(by_proxy, "X-Forwarded-User: ann@example.org").status == 200
    assert 'data-links="yes"' not in ask(by_proxy, "X-Forwarded-User: ann", target="/").text


@pytest.mark.parametrize(
    "headers",
    [
        *([], ["X-Forwarded-User:"], ["X-Forwarded-User:  "], ["X-Forwarded-User: ann"] * 2),
        *(
            ["X_Forwarded_User: ann"],
            ["X-Forwarded-User-: ann"],
            ["Authorization: Bearer ann"],
            ["X-Forwarded-For: ann"],
        ),
    ],
)
def test_whom_the_proxy_does_not_name_is_refused(by_proxy: Server, headers: list[str]) -> None:
    assert_refused(ask(by_proxy, *headers), 401)
    assert_refused(ask(by_proxy, *headers, target="/?token=x"), 401)


def test_behind_a_proxy_pages_of_other_sites_change_nothing(by_proxy: Server) -> None:
    for origin in ("https://evil.example", "null"):
        headers = ["X-Forwarded-User: ann", f"Origin: {origin}"]
        assert_refused(by_proxy.ask("/session/link", "POST", headers, host="eval.example.org"), 403)


def test_wrong_tokens_are_refused_slowly_and_not_logged(by_token: Server) -> None:
    assert log_in(by_token, "my-other-password").status == 401
    assert by_token.errors.read_text() == ""


# What the command refuses


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "8.8.8.8"])
def test_other_machines_are_let_in_only_with_a_login(host: str) -> None:
    with pytest.raises(SpecError, match=r"lets other machines in; say who may read the page: --auth FILE"):
        choose_address(host, 8000, URL, None)


def test_every_address_needs_the_one_that_browsers_use(token: Path) -> None:
    with pytest.raises(SpecError, match="say which one browsers use: --url URL"):
        choose_address("0.0.0.0", 8000, None, str(token))


@pytest.mark.parametrize(
    ("host", "port", "origins"),
    [
        ("127.0.0.1", 8000, ["http://127.0.0.1:8000", "http://localhost:8000"]),
        ("localhost", 80, ["http://127.0.0.1", "http://localhost"]),
        ("::1", 8000, ["http://[::1]:8000", "http://localhost:8000"]),
        ("127.0.0.2", 8000, ["http://127.0.0.2:8000", "http://localhost:8000"]),
    ],
)
def test_browsers_use_the_address_and_its_name(host: str, port: int, origins: list[str]) -> None:
    assert choose_address(host, port, None, None).find_origins(port) == origins


def test_an_address_of_a_network_is_its_own_name(token: Path) -> None:
    assert choose_address("192.168.1.5", 0, None, str(token)).find_origins(8000) == ["http://192.168.1.5:8000"]
    access = choose_address("192.168.1.5", 0, None, str(token)).make_access(8000)
    assert (access.hosts, access.cookie, access.is_secure) == (["192.168.1.5:8000"], "evaluand-8000", False)
    assert TOKEN not in repr(access)


@pytest.mark.parametrize("host", ["eval.example.org", "", "1.2.3", "127.0.0.1:80", "0.0.0.0/0", "127.1", "*"])
def test_a_host_is_an_ip_address(host: str) -> None:
    with pytest.raises(SpecError, match="is not an IP address of this machine"):
        choose_address(host, 8000, URL, None)


@pytest.mark.parametrize(
    "url",
    [
        *("eval.example.org", "ftp://eval.example.org", "https://", "https://a@b.org", "https://u:p@b.org", "//b.org"),
        *(
            "https://b.org/path",
            "https://b.org?x",
            "https://b.org#x",
            "https://b.org:99999",
            "https://b .org",
            "https://*",
        ),
        *("javascript:alert(1)", "https://b.org\r\nX: y", "https://b.org.", "https://[::1", 'https://b"x.org'),
    ],
)
def test_a_url_is_scheme_host_and_port(url: str) -> None:
    with pytest.raises(SpecError, match=r"^--url "):
        check_url(url)


def test_a_url_is_as_browsers_write_it() -> None:
    assert check_url("HTTP://Eval.Example.org:80/") == "http://eval.example.org"
    assert check_url("https://bücher.example:8443") == "https://xn--bcher-kva.example:8443"
    assert check_url("http://[::1]:8000") == "http://[::1]:8000"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no modes of files")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o602])
def test_a_token_that_others_can_read_or_write_is_refused(token: Path, mode: int) -> None:
    token.chmod(mode)
    with pytest.raises(SpecError, match="others can read the token; `chmod 600"):
        read_login(str(token))


@pytest.mark.parametrize("text", ["", "short", "two words that are long", "a\nb" * 20, "x" * 600, "é" * 20, "\0" * 20])
def test_a_token_is_one_long_word(token: Path, text: str) -> None:
    token.write_text(text)
    with pytest.raises(SpecError, match="a token is one line of 16 to 512 ASCII characters") as raised:
        read_login(str(token))
    assert text == "" or text not in str(raised.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for name in ("none", "."):
        with pytest.raises(SpecError, match=str(tmp_path)):
            read_login(str(tmp_path / name))


@pytest.mark.parametrize(
    "name", ["", " ", "Host", "cookie", "User-Agent", "Sec-Fetch-Site", "X Y", "X:Y", "X\r\nY", "X_User"]
)
def test_a_header_that_anybody_sends_is_no_login(name: str) -> None:
    with pytest.raises(SpecError, match=r"^--auth"):
        read_login(f"header:{name}")


@pytest.mark.parametrize(
    ("host", "url", "overheard"),
    [
        *(("127.0.0.1", None, False), ("::1", None, False), ("127.0.0.1", "http://localhost:8000", False)),
        *(("192.168.1.5", None, True), ("0.0.0.0", "http://a.org", True), ("127.0.0.1", "http://a.org", True)),
        *(("0.0.0.0", URL, False), ("127.0.0.1", "http://192.168.1.5", True)),
    ],
)
def test_plain_text_on_a_network_is_noted(token: Path, host: str, url: str | None, overheard: bool) -> None:
    assert choose_address(host, 8000, url, str(token)).is_overheard == overheard


def test_ctrl_c_ends_the_server_at_once_and_nothing_is_said_of_who_was_still_waiting(tmp_path: Path) -> None:
    errors, store = tmp_path / "errors", tmp_path / "store"
    store.mkdir()
    with errors.open("w") as log, open_process(*SERVE, "--store", store, stderr=log) as process:
        server = meet(process, process.stdout, errors)
        with server.connect(), server.connect() as stream:
            path = f"/api/slow/{10 * PATIENCE:.0f}"
            lines = (f"GET {path} HTTP/1.1", f"Host: {server.host}", f"Cookie: {server.cookie}", "", "")
            stream.sendall("\r\n".join(lines).encode())
            refused = Folder(tmp_path).refused("view", "--no-browser", "--port", server.port)
            assert f"127.0.0.1 port {server.port} cannot be listened on: " in refused
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
    assert errors.read_text() == ""


def test_what_a_browser_is_given_has_no_token(tmp_path: Path) -> None:
    """Its arguments can be seen by everybody on the machine; what they name is for this user alone."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.tmp\nmv {seen}.tmp {seen}\n')
    browser.chmod(0o700)
    with open_view(tmp_path, str(browser)) as (process, output):
        server = meet(process, output, tmp_path / "errors", is_opened=False)
        until(seen.exists)
        assert "token" not in seen.read_text()
        file = Path(seen.read_text().strip().removeprefix("file://"))
        assert (file.parent, stat.S_IMODE(file.stat().st_mode)) == (tmp_path, 0o600)
        assert f"url={server.link}" in file.read_text()
        assert server.ask(server.link.removeprefix(server.origin), cookie="").status == 303
        until(lambda: not file.exists())


def open_view(folder: Path, browser: str) -> AbstractContextManager[Any]:
    """A server that opens a browser."""
    environment = os.environ | {"BROWSER": browser, "TMPDIR": str(folder)}
    command = ("view", "--store", str(folder / "store"))
    return open_python(CODE, *command, errors=folder / "errors", env=environment)


def test_a_server_that_is_terminated_leaves_no_link_behind(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with open_view(tmp_path, "true") as (process, _):
        until(lambda: any(file.stat().st_size for file in tmp_path.glob("evaluand-*.html")))
        process.terminate()
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert (tmp_path / "errors").read_text() == ""
    assert [*tmp_path.glob("evaluand-*.html")] == []


def test_a_store_that_does_not_exist_is_noted(tmp_path: Path) -> None:
    with serve_store(tmp_path / "none", tmp_path / "errors"):
        pass
    assert "there is no store at " in (tmp_path / "errors").read_text()


def test_a_link_that_no_browser_follows_is_soon_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    monkeypatch.setattr(view, "_OPENING", 0.2)
    view.BrowserFile().open("http://127.0.0.1/")
    until(lambda: not [*tmp_path.glob("evaluand-*.html")])


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_links_end_and_the_oldest_make_room() -> None:
    now = [0.0]
    access = Access(["a"], ["http://a"], clock=lambda: now[0])
    first, link = access.issue_token(), access.issue_link("http://a")
    now[0] = 601.0
    assert access.redeem(link.partition("token=")[2]) is None
    session = access.redeem(first)
    assert session is not None
    assert access.is_open(session)
    now[0] += 8 * 86400
    assert not access.is_open(session)
    oldest, *_, newest = (access.issue_token() for _ in range(101))
    assert (access.redeem(oldest), access.redeem(newest) is None) == (None, False)


@pytest.mark.parametrize("option", ["auth = 'header:X-User'", "host = '0.0.0.0'", "url = 'https://evil.example'"])
def test_settings_of_a_checkout_open_the_page_to_nobody(tmp_path: Path, monkeypatch: Any, option: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evaluand.toml").write_text(f"[view]\n{option}\n")
    message = f"view.{option.partition(' ')[0]}: cannot be set in evaluand.toml; give it on the command line"
    assert message in Folder(tmp_path).refused("view", "--no-browser")
