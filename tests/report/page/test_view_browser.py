"""The page in a real browser: from files of a bundle, and by links and logins of a server."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.browser import open_tab, watch
from support.view_server import make_store, serve_store

from evaluand import Dataset, Runner
from evaluand.engine.keyed_work import Tally
from evaluand.report.page.bundle import PIECE, write_bundle
from evaluand.report.page.resources.base import Source
from evaluand.report.row_columns import MOST_VALUES
from evaluand.run.task import FunctionTask
from evaluand.store.directory import DirectoryStore

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: make install")

TOKEN = "correct-horse-battery-staple"
LINK = "Link for another browser"


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        yield tab


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and a bundle of it, whose name must be quoted in addresses."""
    folder = tmp_path_factory.mktemp("view") / "a #?% b"
    folder.mkdir()
    store: DirectoryStore = make_store(folder / "store")
    write_bundle(Source(store, PIECE), folder / "page", Tally())
    return folder


def read_as_page(tab: Any, path: str) -> Any:
    """What a script gives to the page for a path: its length, or the reason why there is nothing."""
    return tab.evaluate(
        """async ([path, file]) => {
            const given = new Promise((resolve) => {
                const own = globalThis.evaluand;
                globalThis.evaluand = (found, content, problem) =>
                    found === path ? resolve([content, problem]) : own(found, content, problem);
            });
            const loader = document.createElement("script");
            loader.src = file;
            document.head.append(loader);
            const [content, problem] = await given;
            if (problem) return problem;
            const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0));
            return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
        }""",
        [path, f"data/{path}.js"],
    )


def test_a_bundle_opens_from_a_disk_and_requests_nothing_from_a_network(tab: Any, folder: Path) -> None:
    with watch(tab):  # which fails at any other request
        tab.goto((folder / "page/index.html").as_uri())
        sync_api.expect(tab.get_by_role("banner")).to_contain_text("evaluand")
        assert {each["name"] for each in read_as_page(tab, "index")["experiments"]} >= {"good", "damaged"}
        assert "its digest differs" in read_as_page(tab, "answers/damaged")
        assert tab.get_by_role("button", name=LINK).count() == 0


def test_places_of_a_bundle_are_in_its_address(tab: Any, folder: Path) -> None:
    with watch(tab):
        tab.goto(f"{(folder / 'page/index.html').as_uri()}#/e/good")
        sync_api.expect(tab.get_by_role("navigation", name="Page")).to_contain_text("good")
        tab.get_by_role("link", name="Skip to the content").press("Enter")
        sync_api.expect(tab.get_by_role("navigation", name="Page")).to_contain_text("good")


def test_a_bundle_is_filtered_by_an_attribute_of_many_values(tab: Any, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    rows = [{"input": f"{i}", "id": f"id {i}"} for i in range(MOST_VALUES + 5)]
    data = Dataset.from_rows(rows, attributes=["id"])
    run = Runner(store).run(FunctionTask(str.upper, name="mine", version="1"), data)
    write_bundle(Source(store, PIECE), tmp_path / "page", Tally())
    with watch(tab):
        tab.goto(f'{(tmp_path / "page/index.html").as_uri()}#/r/{run.id}?f=id in ["id 3", "id 204"]')
        sync_api.expect(tab.locator(".row-count")).to_have_text(f"2 of {len(rows)} rows")
        sync_api.expect(tab.get_by_role("alert")).to_have_count(0)


def test_the_policy_of_a_bundle_allows_its_own_files_alone(tab: Any, folder: Path) -> None:
    tab.goto((folder / "page/index.html").as_uri())
    for code in (
        "fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')",
        "new Promise((resolve) => Object.assign(new Image(), {onload: () => resolve('sent'), "
        "onerror: () => resolve('refused'), src: 'http://127.0.0.1:9/x.png'}))",
        "new Promise((resolve) => { addEventListener('securitypolicyviolation', () => resolve('refused'));"
        "const one = document.createElement('script'); one.textContent = 'alert(1)'; document.head.append(one); })",
    ):
        assert tab.evaluate(code) == "refused"
    tab.goto("about:blank")


def test_a_bundle_works_on_any_web_server(tab: Any, folder: Path) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *said: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder / "page"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tab.goto(f"http://127.0.0.1:{server.server_port}/#/e/good")
        sync_api.expect(tab.get_by_role("navigation", name="Page")).to_contain_text("good")
        assert {each["name"] for each in read_as_page(tab, "index")["experiments"]} >= {"good", "damaged"}
        assert tab.get_by_role("button", name=LINK).count() == 0
        tab.goto("about:blank")
        server.shutdown()


@pytest.mark.slow
def test_a_page_makes_a_link_that_opens_what_it_shows_in_one_other_browser(tab: Any, folder: Path) -> None:
    with serve_store(folder / "store", folder / "errors", is_opened=False) as server:
        tab.goto(server.link)
        assert "token" not in tab.url
        tab.goto(f"{server.origin}/e/good?sort=x")
        tab.get_by_role("button", name=LINK).click()
        link = tab.get_by_role("textbox", name=LINK).input_value()
        for works in (True, False):
            other = tab.context.browser.new_context()
            page = other.new_page()
            page.goto(link)
            assert (page.url == f"{server.origin}/e/good?sort=x") == works
            assert (page.get_by_role("banner").count() == 1) == works
            other.close()
        tab.goto("about:blank")


@pytest.mark.slow
def test_a_link_says_whether_only_this_machine_can_open_it(tab: Any, folder: Path) -> None:
    others = ("http://192.0.2.7:8000/", "https://127.0.0.1.example/")

    def answer(link: str) -> Any:
        return lambda route: route.fulfill(json={"link": link})

    with serve_store(folder / "store", folder / "errors", is_opened=False) as server:
        tab.goto(server.link)
        for address in (None, "http://localhost:8000/", "http://[::1]:8000/", *others):
            if address is not None:
                tab.route("**/session/link", answer(f"{address}?token=t"))
            tab.reload()
            tab.get_by_role("button", name=LINK).click()
            end = "once, within ten minutes" + ("" if address in others else ", and only on this machine")
            sync_api.expect(tab.get_by_role("banner").get_by_role("status")).to_have_text(re.compile(f"{end}$"))
        tab.unroute_all()
        tab.goto("about:blank")


def test_a_person_enters_the_token_and_comes_to_the_address(tab: Any, folder: Path) -> None:
    token = folder / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    with serve_store(folder / "store", folder / "errors", "--auth", str(token), is_opened=False) as server:
        tab.context.clear_cookies()
        tab.goto(f"{server.origin}/e/good?sort=x")
        for entered in (TOKEN[:-1], TOKEN):
            assert tab.get_by_role("banner").count() == 0
            tab.locator("#token").fill(entered)
            tab.get_by_role("button", name="Open the page").click()
        sync_api.expect(tab.get_by_role("banner")).to_contain_text("good")
        assert tab.url == f"{server.origin}/e/good?sort=x"
        tab.goto("about:blank")
