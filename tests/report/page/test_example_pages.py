"""An example with what all runs answered, and the trace of a call: what is read of a store, and what is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.browser import open_tab
from support.view_server import serve_store

from evaluand import Aggregator, Dataset, DirectoryStore, Evaluator, Runner
from evaluand.aggregation.aggregator import Measure
from evaluand.core.errors import NotFound
from evaluand.evaluation.feedback import Feedback
from evaluand.evaluation.scorer import Score
from evaluand.evaluation.scorers.detection import Detection
from evaluand.evaluation.scorers.spans import Spans
from evaluand.metrics.column_statistics import Mean
from evaluand.report.page.resources import examples as module
from evaluand.report.page.resources.base import Source, find_resources, read_resource
from evaluand.run.task import FunctionTask
from evaluand.trace import span

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
TURNED = "safe\u202egnp.exe"
LONG = "x" * 60_000
CALL = {"id": "c", "type": "function", "function": {"name": HOSTILE, "arguments": json.dumps({"of": HOSTILE})}}
MARKDOWN = (
    f"# Heading\n\n- one **bold**\n- two [link](https://example.org/) [bad](javascript:alert(3))\n\n```\n{HOSTILE}\n```"
)


def answer(text: str) -> Any:
    """Asks a model twice, of which one fails; questions that end in 3 have no answer."""
    asked = [{"role": "user", "content": f"{text} {HOSTILE}"}]
    with span("retrieve", kind="retriever", input={"query": text}, k=2) as hits:
        hits.output = [HOSTILE, TURNED, LONG]
        hits.log("hits", 3)
    with span(HOSTILE, kind="agent"):
        usage = {"output_tokens": 34, "cost": 0.0012, "currency": "USD"}
        with span("chat", kind="llm", input=asked, model="small", input_tokens=1200, usage=usage) as request:
            called = {"role": "assistant", "content": "", "tool_calls": [CALL]}
            request.output = called
        said = [*asked, called, {"role": "tool", "tool_call_id": "c", "content": f"found {HOSTILE}"}]
        with span("chat", kind="llm", input=said, model="small", input_tokens=1300, output_tokens=5) as request:
            request.output = "word " * 20
    if text.endswith("3"):
        with span("lookup"):
            raise ValueError(f"no answer to {text} {HOSTILE} {TURNED}")
    return {"answer": f"{text} {HOSTILE}", "because": MARKDOWN, "big": 12345678901234567890, "list": [*range(70)]}


def earlier(text: str) -> str:
    return f"{text} {TURNED}\n\n{MARKDOWN}"


def right(output: Any, expected: str) -> Any:
    if not isinstance(output, dict):
        return Score.abstained(HOSTILE)
    return Score(float(expected in output["answer"]), explanation=HOSTILE)


def relevance(question: str, response: Any) -> tuple[float, dict[str, str]]:
    return 0.5, {"reason": f"half of it {HOSTILE}"}


def graded(output: Any) -> Any:
    return Score(1.0, "8")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    """Four examples: two runs of `mine`, the newer one in two replications and graded, and one of `theirs`."""
    store = DirectoryStore(tmp_path_factory.mktemp("store"))
    records = [
        {"input": f"question {i}", "expected": f"question {i // 2 * 2}", "id": f"id {i}", HOSTILE: f"{HOSTILE} {i % 2}"}
        for i in range(4)
    ]
    data = Dataset.from_rows(records, attributes=HOSTILE, input="input")
    runner = Runner(store)
    runner.run(FunctionTask(earlier, name="mine", version="1"), data, name="mine/1")
    runner.run(FunctionTask(earlier, name=HOSTILE, version="1"), data, name="other", limit=2)
    run = runner.run(FunctionTask(answer, name="mine", version="2"), data, name="mine/2", replications=2)
    scorers = {"right": right, HOSTILE: right, "relevant": Feedback(relevance, version="1").on_input().on_output()}
    scorers["graded"] = graded
    Evaluator(store).evaluate(run, scorers, name="mine/2")
    return store


def read(store: DirectoryStore, path: str) -> Any:
    return json.loads(read_resource(Source(store), path, {}))


def test_an_example_has_the_calls_of_every_run_newest_first(store: DirectoryStore) -> None:
    [dataset] = store.ids("datasets")
    found = read(store, f"example/{dataset}/1")
    assert (found["id"], found["input"], found["expected"]) == ("id 1", "question 1", "question 0")
    assert found["attributes"] == {HOSTILE: f"{HOSTILE} 1"}
    assert [(run["task"], run["names"], len(run["rows"])) for run in found["runs"]] == [
        ("mine", ["mine/2"], 2),
        (HOSTILE, ["other"], 1),
        ("mine", ["mine/1"], 1),
    ]
    mine, other, _ = found["runs"]
    assert [scorer["name"] for scorer in mine["scorers"]] == [HOSTILE, "graded", "relevant", "right"]
    assert [score["value"] for score in mine["rows"][1]["scores"]] == [0.0, 1.0, 0.5, 0.0]
    assert mine["rows"][1]["scores"][2]["calls"][0]["ret"] == 0.5
    assert (other["evaluation"], other["rows"][0]["scores"]) == (None, [])
    assert "--index 1 --json" in mine["command"]


def test_runs_that_left_an_example_out_are_not_with_it(store: DirectoryStore) -> None:
    [dataset] = store.ids("datasets")
    found = read(store, f"example/{dataset}/3")
    assert [run["names"] for run in found["runs"]] == [["mine/2"], ["mine/1"]]
    assert [row["error"]["type"] for row in found["runs"][0]["rows"]] == ["ValueError"] * 2


def test_a_trace_has_all_replications_with_what_their_spans_used(store: DirectoryStore) -> None:
    [run] = [ref.id for ref in store.refs() if ref.kind == "runs" and ref.name == "mine/2"]
    found = read(store, f"trace/{run}/0")
    assert [row["replication"] for row in found["rows"]] == [0, 1]
    names = [(span[2], span[3], span[11]) for span in found["rows"][1]["spans"]]
    first = {"model": "small", "input_tokens": 1200, "output_tokens": 34, "cost": 0.0012, "currency": "USD"}
    second = {"model": "small", "input_tokens": 1300, "output_tokens": 5}
    assert names == [
        ("retrieve", "retriever", None),
        (HOSTILE, "agent", None),
        ("chat", "llm", first),
        ("chat", "llm", second),
    ]
    held = found["rows"][0]["spans"][0][8]
    assert LONG[:100] in held["j"]
    assert held["c"] > 0  # longer than a value may be


def test_the_spans_of_all_replications_share_a_room(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROOM", 3000)
    monkeypatch.setattr(module, "_MOST_SPANS", 6)
    monkeypatch.setattr(module, "_LEAST_SPANS", 1)
    [run] = [ref.id for ref in store.refs() if ref.kind == "runs" and ref.name == "mine/2"]
    rows = read(store, f"trace/{run}/0")["rows"]
    assert [(len(row["spans"]), row["n_spans"]) for row in rows] == [(3, 4)] * 2
    assert len(json.dumps([row["spans"] for row in rows])) < 6000


def test_what_is_not_there_is_said(store: DirectoryStore) -> None:
    [dataset], [run, *_] = store.ids("datasets"), store.ids("runs")
    for path, reason in {
        f"example/{dataset}/99": "this dataset has no example 99",
        f"example/{dataset}/one": "there is no such example",
        f"example/{dataset}/9223372036854775808": "there is no such example",
        f"example/{dataset}/%D9%A1": "there is no such example",
        f"example/{dataset[:-1]}/1": "no",
        "example/..%2F..%2Fetc/1": "not an id in this store",
        f"trace/{run}/99": "this run has no example 99",
        f"trace/{run}/-": "there is no such example",
        f"trace/{dataset}/1": "this run is not finished, or not in this store",
        "trace/..%2F..%2Fetc/1": "not an id in this store",
    }.items():
        with pytest.raises(NotFound, match=reason):
            read(store, path)


@contextmanager
def opened(tab: Any, store: DirectoryStore) -> Iterator[Any]:
    """A tab that a server of the store has let in."""
    with TemporaryDirectory() as folder, serve_store(store.root, Path(folder, "errors"), is_opened=False) as server:
        tab.goto(server.link)
        tab.origin = server.origin
        yield tab


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        tab.faults = []
        tab.on("dialog", lambda dialog: (tab.faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
        tab.on("pageerror", lambda error: tab.faults.append(str(error)))
        tab.on("console", lambda message: tab.faults.append(message.text))
        yield tab


@pytest.fixture(scope="module")
def server(tab: Any, store: DirectoryStore) -> Iterator[str]:
    with opened(tab, store):
        yield tab.origin


@pytest.fixture
def page(tab: Any, server: str) -> Any:
    tab.origin = server
    return tab


def show(page: Any, *parts: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/".join([page.origin, *parts]))
    page.wait_for_selector("h1")


def newest_run(store: DirectoryStore) -> str:
    return next(ref.id for ref in store.refs() if ref.kind == "runs" and ref.name == "mine/2")


def test_an_example_shows_the_newest_answer_of_each_task_and_the_history(page: Any, store: DirectoryStore) -> None:
    show(page, "x", store.ids("datasets")[0], "1")
    assert page.locator("h1").inner_text() == "Example 1 (id 1)"
    assert page.locator(".card h3").all_inner_texts() == ["mine", HOSTILE]
    mine = page.locator(".card").first
    assert mine.locator(".pill").inner_text() == "wrong"
    scores = mine.locator(".score-list li")
    assert [scores.nth(place).inner_text()[:13].strip() for place in (1, 2)] == ["graded 1 · 8", "relevant 0.5"]
    assert scores.nth(1).locator("b").inner_text() == "1"
    history = page.get_by_role("region", name="Earlier runs").locator("tbody tr")
    assert history.count() == 1
    assert history.locator("th").inner_text() == "mine/1"
    assert "safeU+202Egnp.exe" in history.inner_text()
    mine.get_by_role("link", name="Trace of mine").click()
    page.wait_for_selector(".waterfall")
    assert page.locator("h1").inner_text() == "mine: trace of example 1"
    page.get_by_role("link", name="this example in all runs").click()
    page.wait_for_selector(".cards")


def test_all_of_a_row_unfolds_in_its_card(page: Any, store: DirectoryStore) -> None:
    show(page, "x", store.ids("datasets")[0], "1")
    card = page.locator(".card").first
    card.get_by_role("button", name="1 wrong").click()
    card.get_by_text("all of this row").click()
    detail = card.locator("details > .detail")
    detail.locator("h4").first.wait_for()
    heads = [
        "Input",
        "Expected",
        "Response",
        "Scores",
        "What feedbacks were asked",
        "Conversation",
        "Trace",
        "About this row",
    ]
    assert detail.locator("> h4, > .sides h4").all_inner_texts() == heads
    assert detail.locator(".asked > ol > li").count() == 1
    assert f"half of it {HOSTILE}" in detail.locator(".asked").inner_text()
    assert detail.locator(".bubble .role").all_inner_texts() == ["user", "assistant", "assistant"]
    tool = detail.locator(".bubble details")
    assert tool.get_attribute("open") is None
    tool.locator("summary").click()
    assert f"found {HOSTILE}" in tool.inner_text()
    assert detail.locator(".spans bdi").all_inner_texts() == ["retrieve", HOSTILE, "chat", "chat"]


def test_json_is_a_tree_that_keeps_every_digit_and_can_be_read_as_text(page: Any, store: DirectoryStore) -> None:
    show(page, "x", store.ids("datasets")[0], "0")
    card = page.locator(".card").first
    tree = card.locator(".tree").first
    assert "12345678901234567890" in tree.inner_text()
    assert "49" in tree.inner_text()
    assert "51" not in tree.inner_text()
    tree.get_by_role("button", name="show 20 more").click()
    assert "69" in tree.inner_text()
    tree.locator("summary", has_text="list").click()
    assert "49" not in tree.inner_text()
    card.get_by_role("button", name="Text", exact=True).click()
    assert '"because": "# Heading' in card.locator(".text-block.json").inner_text()


def test_markdown_is_rendered_on_demand_without_what_could_run(page: Any, store: DirectoryStore) -> None:
    show(page, "x", store.ids("datasets")[0], "1")
    other = page.locator(".card").nth(1)
    assert "- one **bold**" in other.locator(".text-block").inner_text()
    other.get_by_role("button", name="Rendered").click()
    shown = other.locator(".markdown")
    assert shown.get_by_role("heading").inner_text() == "Heading"
    assert shown.locator("li").all_inner_texts()[0] == "one bold"
    assert shown.locator("strong").inner_text() == "bold"
    assert shown.locator("pre").inner_text() == HOSTILE
    [link] = shown.locator("a").all()
    assert (link.get_attribute("href"), link.get_attribute("rel")) == ("https://example.org/", "noreferrer noopener")
    assert "[bad](javascript:alert(3))" in shown.inner_text()


def test_a_trace_shows_a_bar_for_the_call_and_each_span(page: Any, store: DirectoryStore) -> None:
    show(page, "t", newest_run(store), "3")
    assert page.locator(".span-bar").count() == 1 + 5
    names = page.locator(".span-name bdi").all_inner_texts()
    assert names == ["mine", "retrieve", HOSTILE, "chat", "chat", "lookup"]
    assert page.locator(".span-name", has_text="lookup").inner_text().split() == ["lookup", "error"]
    assert page.locator(".span-bar.bad").count() == 2
    assert "1,234 tok" in page.locator(".span-row").nth(3).inner_text()
    tiles = page.locator(".tiles").inner_text().splitlines()
    used = "2,539 tokens, 0.0012 USD and unknown for 1 of 2 requests"
    assert {"failed", "5 spans", "2 errors", used} <= set(tiles)
    lefts = page.locator(".span-bar").evaluate_all("bars => bars.map((bar) => bar.getBoundingClientRect().left)")
    assert lefts[0] < lefts[1] < lefts[2] <= lefts[3] < lefts[4] < lefts[5]
    assert "at test_example_pages.py" in page.locator(".text-block.bad").inner_text()
    assert page.locator(".bubble").count() == 3


def test_a_span_unfolds_what_it_held_and_folds_what_is_below_it(page: Any, store: DirectoryStore) -> None:
    show(page, "t", newest_run(store), "0")
    retrieve = page.locator(".span-row", has_text="retrieve")
    retrieve.click()
    assert retrieve.get_attribute("aria-expanded") == "true"
    held = page.get_by_role("region", name="What retrieve held")
    assert held.locator("h4").all_inner_texts() == ["Input", "Output", "Attributes", "Events"]
    assert "characters more; the whole: evaluand show" in held.inner_text()
    assert held.locator(".events").inner_text().startswith("hits at ")
    retrieve.click()
    assert held.count() == 0
    page.get_by_role("button", name="Fold the 2 spans below </").click()
    assert page.locator(".span-row").count() == 3


def test_spans_are_reached_by_the_keyboard(page: Any, store: DirectoryStore) -> None:
    show(page, "t", newest_run(store), "0")
    focused = "document.activeElement.querySelector('bdi')?.textContent ?? ''"
    page.locator(".span-row").first.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "retrieve"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.get_by_role("region", name="What retrieve held").count() == 1
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) == "mine"


def test_replications_are_tabs(page: Any, store: DirectoryStore) -> None:
    run = newest_run(store)
    show(page, "t", run, "0")
    tabs = page.get_by_role("navigation", name="Replications").get_by_role("link")
    assert tabs.all_inner_texts() == ["replication 0 right", "replication 1 right"]
    assert [tab.get_attribute("aria-current") for tab in tabs.all()] == ["page", None]
    tabs.nth(1).click()
    page.wait_for_url(f"**/t/{run}/0/1")
    assert [tab.get_attribute("aria-current") for tab in tabs.all()] == [None, "page"]
    show(page, "t", run, "0", "7")
    assert page.get_by_role("alert").inner_text() == "This call has no replication 7 here."


def test_what_is_not_in_the_store_is_said_on_the_page(page: Any, store: DirectoryStore) -> None:
    page.goto(f"{page.origin}/x/{store.ids('datasets')[0]}/99")
    page.wait_for_selector("[role=alert]")
    assert page.get_by_role("alert").inner_text() == "this dataset has no example 99"
    page.faults.clear()  # the browser notes that it was answered by 404


def test_hostile_text_stays_text_in_every_part_of_both_pages(page: Any, store: DirectoryStore) -> None:
    [dataset], run = store.ids("datasets"), newest_run(store)
    for parts in (["x", dataset, "1"], ["t", run, "1"], ["t", run, "3", "1"]):
        show(page, *parts)
        for row in page.locator(".span-row").all():
            row.dispatch_event("click")
        for _ in range(2):  # what is folded may hold further folds
            page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
            page.wait_for_timeout(100)
        for name in ("Rendered", "Text"):
            for button in page.get_by_role("button", name=name, exact=True).all():
                button.dispatch_event("click")
        assert page.locator("main").get_by_text(HOSTILE).count() > 5
        assert page.locator("main img, main script, main iframe, main a[href^='javascript']").count() == 0
        assert "\u202e" not in page.locator("body").inner_text()
        assert page.locator(".invisible", has_text="U+202E").count() > 0
    assert page.faults == []


def test_both_pages_fit_a_narrow_screen(page: Any, store: DirectoryStore) -> None:
    for parts in (["x", store.ids("datasets")[0], "1"], ["t", newest_run(store), "3"]):
        show(page, *parts)
        page.set_viewport_size({"width": 390, "height": 800})
        for row in page.locator(".span-row").all():
            row.dispatch_event("click")
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.faults == []


def open_row(page: Any, store: DirectoryStore) -> Any:
    show(page, "x", store.ids("datasets")[0], "0")
    page.get_by_text("all of this row").click()
    detail = page.locator(".card details > .detail")
    detail.locator("h4").first.wait_for()
    return detail


def test_spans_of_a_text_are_marked(tab: Any, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    expected = [{"start": 2, "end": 5, "tag": "PER"}, {"start": 10, "end": 13, "tag": "PER"}]
    given = [expected[0], {"start": 10, "end": 13, "tag": HOSTILE}]
    data = Dataset.from_rows([{"input": "\U0001f642 Ada met Bob", "expected": expected}])
    run = Runner(store).run(FunctionTask(lambda text: given, name="tagger", version="1", items=True), data)
    Evaluator(store).evaluate(run, {"spans": Spans()})
    with opened(tab, store) as page:
        row = open_row(page, store)
        assert row.locator("h4", has_text="Spans").locator("+ p").inner_text() == (
            "✓ 1 in both · − 1 only expected · + 1 only answered"
        )
        assert row.locator(".tagged b bdi").all_text_contents() == ["PER", "PER", HOSTILE]
        lines = "all => all.map((each) => `${each.classList[1]}: ${each.textContent}`)"
        assert row.locator(".marked").evaluate_all(lines) == ["both: Ada", "answered: Bob", "expected: Bob"]


def test_boxes_are_drawn_and_listed(tab: Any, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    expected = [{"box": [0, 10, 10, 20], "label": HOSTILE}, {"box": [40, 10, 50, 20], "label": "dog"}]
    given = [{"box": [1, 10, 11, 20], "label": HOSTILE, "confidence": 0.9}]
    data = Dataset.from_rows([{"image": "a.png", "expected": expected}], input="image")
    run = Runner(store).run(FunctionTask(lambda image: given, name="detector", version="1"), data)
    Evaluator(store).evaluate(run, {"boxes": Detection()})
    with opened(tab, store) as page:
        row = open_row(page, store)
        assert row.locator(".frame .box").evaluate_all("all => all.map((each) => each.classList[1])") == [
            "missed",
            "right",
        ]
        row.get_by_text("Boxes as a list").click()
        assert row.locator(".boxes li").all_inner_texts() == [
            f"✓ right {HOSTILE} 0.9 at 1, 10, 11, 20",
            "− missed dog at 40, 10, 50, 20",
        ]
    assert tab.faults == []


def test_scores_stand_beside_their_scorers_whichever_metric_is_declared_first(tmp_path: Path) -> None:
    find_resources()
    store = DirectoryStore(tmp_path)
    run = Runner(store).run(FunctionTask(str, version="1"), Dataset.from_rows([{"input": "a"}]))
    graded = Evaluator(store).evaluate(run, {"brief": lambda output: 0.25, "right": lambda output: 1.0})
    Aggregator(store).aggregate([graded], [Measure("right", Mean())])
    data = run.manifest["spec"]["dataset"]
    example = json.loads(read_resource(Source(store), f"example/{data}/0", {}))["runs"][0]
    for shown in (example, json.loads(read_resource(Source(store), f"trace/{run.id}/0", {}))):
        [row] = shown["rows"]
        found = {shown["scorers"][score["scorer"]]["name"]: score["value"] for score in row["scores"]}
        assert found == {"brief": 0.25, "right": 1.0}
