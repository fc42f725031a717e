"""The page in a real browser: the list, results with their grid, and comparisons, by mouse and by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from support.accessible import check_readable
from support.browser import open_tab
from support.view_server import Server, serve_store

from evaluand.cli import main
from evaluand.report.page.server import first_reads

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: make install")
expect = sync_api.expect

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
TURNED = "safe\u202egnp.exe"
ROWS = 240
CODE = f"""
def first(text):
    if text.endswith("7"):
        raise ValueError("no answer {HOSTILE}")
    return {{"answer": text.split()[-1], "because": "{HOSTILE}"}}

def second(text):
    return {{"answer": text.split()[-1] if int(text.split()[-1]) % 3 else "none of it", "because": "of nothing"}}

def right(output, expected):
    return output["answer"] == expected
"""
EXPERIMENT = """
name: big/quiz
dataset: {path: rows.jsonl, input: question, expected: answer, attributes: [topic]}
tasks:
  first: {function: code.py:first}
  second: {function: code.py:second}
scorers:
  right: {function: code.py:right}
metrics:
  - {kind: accuracy, by: [topic], disparities: difference}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "code.py").write_text(CODE)
    (folder / "e.yaml").write_text(EXPERIMENT)
    rows = [
        {"question": f"{HOSTILE} {TURNED} number {i}", "answer": str(i), "topic": ["plus", "<b>times</b>"][i % 2]}
        for i in range(ROWS)
    ]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = CliRunner().invoke(main, ["--store", str(folder / "store"), "run", str(folder / "e.yaml"), "--quiet"])
    assert done.exit_code == 0, done.output
    with serve_store(folder / "store", folder / "log", is_opened=False) as server:
        yield server


@pytest.fixture(scope="module")
def browser(chromium: Any, server: Server) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        tab.goto(server.link)
        yield tab


@pytest.fixture
def tab(browser: Any, server: Server) -> Iterator[Any]:
    """A tab on the server; nothing of the data runs, and nothing is loaded from elsewhere."""
    faults: list[str] = []
    watching = {
        "dialog": lambda dialog: (faults.append(f"dialog {dialog.message}"), dialog.dismiss()),
        "pageerror": lambda error: faults.append(str(error)),
        "request": lambda request: None if request.url.startswith(server.origin) else faults.append(request.url),
    }
    browser.set_viewport_size({"width": 1280, "height": 800})
    for event, note in watching.items():
        browser.on(event, note)
    yield browser
    for event, note in watching.items():
        browser.remove_listener(event, note)
    assert faults == []


def count(tab: Any) -> Any:
    return tab.locator(".row-count").first


def follow(tab: Any, to: str) -> None:
    """Goes to an address as a link of the page does, which loads nothing again."""
    tab.evaluate("(to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }", to)


def open_results(tab: Any, server: Server, state: str = "") -> None:
    tab.goto(f"{server.origin}/e/big%2Fquiz{state}")
    expect(count(tab)).to_contain_text("rows")


@pytest.mark.parametrize(
    ("path", "early"),
    [
        ("/", ["index"]),
        ("/e/big%2Fquiz", ["results/big%2Fquiz", "answers/big%2Fquiz"]),
        ("/e/big/quiz", ["results/big%2Fquiz", "answers/big%2Fquiz"]),
        ("/e/", []),
        ("/e/%FF", []),
        ("/e/" + "%22%3E" * 1000, []),
        ("/j/", []),
    ],
)
def test_what_a_page_begins_with_is_read_early(path: str, early: list[str]) -> None:
    assert first_reads(path) == early


@pytest.mark.slow
def test_what_is_read_early_is_read_once(tab: Any, server: Server) -> None:
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(f"{server.origin}/e/big/quiz")
    tab.wait_for_selector("html[data-ready]")
    once = [f"{server.origin}/api/{what}/big%2Fquiz" for what in ("results", "answers")]
    assert [asked.count(each) for each in once] == [1, 1]
    assert all(asked.index(each) < asked.index(f"{server.origin}/assets/view.js") for each in once)


@pytest.mark.slow
def test_results_are_reached_from_the_list_and_answer_first(tab: Any, server: Server) -> None:
    tab.goto(server.origin)
    entry = tab.locator(".entry").first
    expect(entry).to_contain_text("accuracy · right")
    tab.get_by_role("link", name="big/quiz").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("big/quiz")
    expect(tab.get_by_role("heading", name="Which is better, and how sure is it?")).to_be_visible()
    expect(tab.locator(".answers")).to_contain_text("is best by accuracy")
    expect(tab.locator(".answers")).to_contain_text("24 failed by the task: ValueError: no answer </script>")
    expect(tab.get_by_role("heading", name="Provenance")).to_be_visible()
    tab.go_back()
    expect(tab.get_by_role("heading", level=1)).to_have_text("What is stored")


def test_rows_of_all_systems_stand_side_by_side(tab: Any, server: Server) -> None:
    open_results(tab, server, "?s=index")
    heads = tab.get_by_role("grid").get_by_role("columnheader")
    expect(heads).to_have_text(["#", "Input", "Expected", "first", "second"])
    row = tab.get_by_role("grid").get_by_role("row").nth(1)
    expect(row).to_contain_text("answer: 0 · because: </script><script>alert(1)</script>")
    expect(row).to_contain_text("U+202E")
    expect(row.locator(".pill")).to_have_count(2)
    assert tab.get_by_role("grid").get_attribute("aria-rowcount") == str(ROWS + 1)


def test_presets_filters_and_searches_show_their_rows(tab: Any, server: Server) -> None:
    open_results(tab, server)
    for state, n in {
        "?p=failed": 24,
        "?p=wrong": 80,
        "?p=better-0-1": 72,
        "?p=better-1-0": 0,
        '?f=score.right < 1 and topic == "plus"': 40,
        '?f=first.outcome == "failed" or second.score.right == 0': 96,
        '?f="second".outcome == "wrong" and first.score.right': 72,
        "?f=index in [1, 2, 3] and not disagree": 2,
        "?q=of nothing": ROWS,
        "?q=none of it": 80,
        "?q=NUMBER 239": 1,
        "?q=no such text": 0,
    }.items():
        follow(tab, state)
        expect(count(tab)).to_have_text(f"{n} of {ROWS} rows")


def test_a_wrong_filter_says_what_is_wrong_and_where(tab: Any, server: Server) -> None:
    open_results(tab, server)
    for text, fault in {
        "score.wrong < 1": "no column is called score.wrong; there are score.right, first.score.right",
        "topic == ": "a number or a text in quotes is expected at character 10",
        "(topic": "a closing parenthesis is missing",
        "topic ~ 3": '"~" is not expected at character 7',
        "topic = 3": '"=" is not expected at character 7; write == to compare',
    }.items():
        tab.get_by_label("Filter", exact=True).fill(text)
        tab.get_by_label("Filter", exact=True).press("Enter")
        expect(tab.get_by_role("alert")).to_contain_text(fault)


def test_a_link_shows_the_same_view_to_a_colleague(tab: Any, server: Server) -> None:
    open_results(tab, server)
    tab.get_by_role("button", name="Wrong", exact=True).click()
    tab.get_by_label("Filter", exact=True).fill('topic == "plus"')
    tab.get_by_label("Filter", exact=True).press("Enter")
    tab.get_by_label("Sort by").select_option("index")
    expect(count(tab)).to_have_text(f"40 of {ROWS} rows")
    tab.get_by_role("row").nth(2).click()
    expect(tab.get_by_role("complementary", name="Example")).to_contain_text("2 of 40 rows")
    address = tab.url
    tab.goto("about:blank")
    tab.goto(address)
    expect(count(tab)).to_have_text(f"40 of {ROWS} rows")
    panel = tab.get_by_role("complementary", name="Example")
    expect(panel).to_contain_text("2 of 40 rows")
    expect(panel.get_by_role("heading", name="Example 6")).to_be_visible()


def test_rows_are_read_by_keyboard_alone(tab: Any, server: Server) -> None:
    open_results(tab, server, "?p=failed&s=index")
    tab.evaluate("document.activeElement.blur()")
    for key in ("j", "j", "k", "Enter"):
        tab.keyboard.press(key)
    panel = tab.get_by_role("complementary", name="Example")
    expect(panel.get_by_role("heading", name="Example 17")).to_be_visible()
    expect(panel).to_contain_text("ValueError: no answer </script><script>alert(1)</script>")
    expect(tab.get_by_role("grid").get_by_role("columnheader")).to_have_text(["#", "first", "second"])
    tab.keyboard.press("j")
    expect(panel.get_by_role("heading", name="Example 27")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(panel).to_have_count(0)


@pytest.mark.slow
def test_columns_are_chosen_by_keyboard_and_are_in_the_address(tab: Any, server: Server) -> None:
    open_results(tab, server, '?s=index&f=topic == "plus"')
    grid = tab.get_by_role("grid")
    heads = grid.get_by_role("columnheader")
    tab.get_by_text("Columns", exact=True).focus()
    tab.keyboard.press("Enter")
    for name in ("Expected", "first", "score right", "topic", "Duration"):
        tab.get_by_role("group", name="Columns").get_by_label(name, exact=True).focus()
        tab.keyboard.press("Space")
    for _ in range(2):
        expect(heads).to_have_text(["#", "Input", "second", "topic", "Duration"])
        row = grid.get_by_role("row").nth(1)
        expect(row).to_contain_text("plus")
        expect(row).to_contain_text("ms ·")
        expect(row.locator(".pill")).to_have_count(0)
        expect(count(tab)).to_have_text(f"{ROWS // 2} of {ROWS} rows")
        tab.reload()
    tab.get_by_label("Filter", exact=True).fill("first.score.right < 1 or second.score.right < 1")
    tab.get_by_label("Filter", exact=True).press("Enter")
    expect(count(tab)).to_have_text(f"80 of {ROWS} rows")
    assert "cols=-expected%2C-answer.first%2C-score.right%2Cattribute.topic%2Cduration" in tab.url


@pytest.mark.slow
def test_a_link_to_an_open_row_scrolls_to_it(tab: Any, server: Server) -> None:
    open_results(tab, server, "?s=index&x=123")
    row = tab.get_by_role("grid").locator(".opened")
    expect(row).to_be_in_viewport()
    expect(row.get_by_role("rowheader")).to_have_text("123")
    tab.get_by_role("grid").focus()
    tab.keyboard.press("j")
    expect(row.get_by_role("rowheader")).to_have_text("124")


def test_only_the_rows_that_are_seen_are_in_the_page(tab: Any, server: Server) -> None:
    open_results(tab, server, "?s=index")
    grid = tab.get_by_role("grid")
    assert tab.locator("*").count() < 3000
    grid.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    expect(grid.get_by_role("row").last).to_contain_text(f"number {ROWS - 1}")
    assert grid.get_by_role("row").count() < 60


def test_two_systems_are_compared_from_their_results(tab: Any, server: Server) -> None:
    open_results(tab, server)
    expect(tab.get_by_label("Baseline")).to_have_value("0")
    tab.get_by_role("link", name="Compare them").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("second compared with first")
    expect(tab.locator(".verdicts")).to_contain_text("first is better")
    expect(tab.get_by_role("region", name="Differences")).to_contain_text("144")
    expect(tab.get_by_role("region", name="Differences")).to_contain_text(re.compile(r"−0\.\d+ to −0\.\d+"))
    tab.get_by_text("What do these words mean?").first.click()
    expect(tab.get_by_text("p values of tests that were made together").first).to_be_visible()
    expect(tab.get_by_role("region", name="Changes by group")).to_contain_text("topic=<b>times</b>")
    expect(count(tab)).to_have_text(f"96 of {ROWS} rows")
    tab.get_by_label("A rule that").fill("accuracy not worse than baseline by 0.5")
    tab.get_by_role("button", name="Check").click()
    expect(tab.get_by_text("passed")).to_be_visible()
    expect(tab.get_by_text("scores of right:")).to_be_visible()
    expect(tab.get_by_text("--gate 'accuracy not worse than baseline by 0.5'")).to_be_visible()
    tab.get_by_label("A rule that").fill("accuracy better")
    tab.get_by_role("button", name="Check").click()
    expect(tab.get_by_role("alert")).to_contain_text("gate 'accuracy better'")


def test_what_differs_between_two_answers_is_marked(tab: Any, server: Server) -> None:
    tab.goto(f"{server.origin}/c?a=big%252Fquiz%2Ffirst&b=big%252Fquiz%2Fsecond&p=first&s=index&x=3")
    diff = tab.locator(".diff")
    expect(diff).to_contain_text("none")
    texts = {kind: "".join(diff.locator(kind).all_text_contents()) for kind in ("del", "ins")}
    assert "none" in texts["ins"]
    assert "3" in texts["del"]


def test_sections_of_reports_are_sorted_and_lead_to_rows(tab: Any, server: Server) -> None:
    open_results(tab, server)
    table = tab.locator("#groups table.sortable")
    head = table.locator("thead th", has_text="value")
    for direction in ("ascending", "descending"):
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", direction)
    expect(table.locator("tbody tr").first).to_contain_text("1.000")
    tab.locator("#missing a").first.click()
    panel = tab.get_by_role("complementary", name="Example")
    expect(panel.get_by_role("heading", name="Example 7", exact=True)).to_be_visible()


def test_what_is_not_there_is_a_sentence(tab: Any, server: Server) -> None:
    open_results(tab, server)
    for path, said in {
        "/e/nothing": "nothing is called 'nothing' here",
        "/v/0123": "nothing is called '0123' here",
        "/x/nothing/1": "datasets 'nothing': not an id in this store",
        "/t/nothing/1": "runs 'nothing': not an id in this store",
        "/c?a=nothing&b=nothing": "nothing is called 'nothing' here",
        "/c": "Choose two evaluations in the list",
        "/nothing": "There is no such page.",
    }.items():
        follow(tab, path)
        expect(tab.get_by_role("alert").first).to_contain_text(said)
    tab.goto(f"{server.origin}/e/nothing")
    expect(tab.get_by_role("alert").first).to_contain_text("nothing is called 'nothing' here")


ROUTES = {
    "list": "/?k=all",
    "results": "/e/big%2Fquiz?s=index&x=17",
    "columns": "/e/big%2Fquiz?cols=attribute.topic%2Cduration&p=wrong",
    "comparison": "/c?a=big%252Fquiz%2Ffirst&b=big%252Fquiz%2Fsecond&gate=accuracy%20better%20than%20baseline",
    "live": "/live",
}


@pytest.mark.parametrize(
    "route", ["results", *(pytest.param(route, marks=pytest.mark.slow) for route in ROUTES if route != "results")]
)
def test_readers_of_all_kinds_can_use_it(tab: Any, server: Server, route: str) -> None:
    check_readable(tab, f"{server.origin}{ROUTES[route]}")
