"""Recorded apps on the page: the leaderboard, and records of closed and open recordings, one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.accessible import check_readable
from support.view_page import open_page
from support.view_server import HOSTILE

from evaluand import App, DirectoryStore, Feedback
from evaluand.apps.instrumentation.marking import instrument
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.core.errors import NotFound
from evaluand.report.page.resources.base import Source, find_resources, list_paths, read_resource

TURNED = "safe\u202egnp.exe"


class Retriever:
    @instrument
    def search(self, query: str) -> list[str]:
        return [f"{query} one {HOSTILE}", f"{query} and two"]


class Rag:
    def __init__(self) -> None:
        self.retriever = Retriever()

    @instrument
    def query(self, question: str) -> str:
        if question == "broken":
            raise ValueError(HOSTILE)
        return f"{len(self.retriever.search(question))} contexts for {question} {TURNED}"


def relevance(question: str, context: str) -> tuple[float, dict[str, str]]:
    return len(question) / len(context), {"reason": f"as long as it is {HOSTILE}"}


FEEDBACKS = [
    Feedback(relevance, version="1").on_input().on(context="__record__.app.retriever.search[:].rets[:]"),
    Feedback(len, name="length", version="1").on_output(),
]
QUESTIONS = ["Who?", "half", *(f"question {n}" for n in range(58))]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DirectoryStore]:
    """A closed recording of sixty calls and a broken one, an open one, and apps with one call and with none."""
    store = DirectoryStore(tmp_path_factory.mktemp("store") / "store")
    rag = Rag()
    with App(rag, name="rag", version="1", feedbacks=FEEDBACKS, store=store, mode="with_app") as recording:
        for question in QUESTIONS:
            rag.query(question)
        with pytest.raises(ValueError, match="script"):
            rag.query("broken")
    recording.close()
    app = App(rag, name="rag", version="2", feedbacks=FEEDBACKS, store=store, mode="with_app")
    with app as is_open:
        for question in QUESTIONS[:3]:
            rag.query(question)
        with pytest.raises(ValueError, match="script"):
            rag.query("broken")
    other = App(lambda text: f"{text}!", name=HOSTILE, version=TURNED, store=store)
    with other as hostile:
        other.app("a")
    hostile.close()
    RecordingWriter.begin(store, {"name": "empty"}, [], mode="none").close()
    yield store
    is_open.close()


def read(store: DirectoryStore, path: str, piece: int = 50) -> Any:
    find_resources()
    return json.loads(read_resource(Source(store, piece), path, {}))


def recordings_of(store: DirectoryStore) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in read(store, "app/rag")["recordings"]}


def test_an_app_has_the_leaderboard_and_its_recordings_newest_first(store: DirectoryStore) -> None:
    found = read(store, "app/rag")
    assert [(one["name"], one["version"], one["is_open"], one["records"]) for one in found["recordings"]] == [
        ("rag/2", "2", True, 4),
        ("rag/1", "1", False, 61),
    ]
    assert "60 of 61" in found["leaderboard"]
    assert "3 of 4" in found["leaderboard"]
    assert found["command"].startswith("evaluand leaderboard rag")
    closed, opened = found["recordings"][1], found["recordings"][0]
    assert read(store, f"app/{closed['id']}")["chosen"] == closed["id"]
    assert read(store, "app/rag%2F2")["chosen"] == opened["id"]


def test_records_have_every_call_of_each_feedback(store: DirectoryStore) -> None:
    closed = recordings_of(store)["rag/1"]
    first = read(store, f"records/{closed['id']}/0")
    assert (len(first["rows"]), first["total"], first["piece"]) == (50, 61, 50)
    assert len(read(store, f"records/{closed['id']}/1")["rows"]) == 11
    names = [scorer["name"] for scorer in first["scorers"]]
    relevant = next(score for score in first["rows"][0]["scores"] if names[score["scorer"]] == "relevance")
    assert [call["args"]["question"] for call in relevant["calls"]] == ["Who?", "Who?"]
    assert first["scorers"][relevant["scorer"]]["aggregate"] == "mean"
    assert relevant["value"] == pytest.approx(sum(call["ret"] for call in relevant["calls"]) / 2)


def test_an_open_recording_has_the_rows_that_it_has_when_it_is_closed(store: DirectoryStore) -> None:
    found = recordings_of(store)
    opened, closed = (read(store, f"records/{found[name]['id']}/0") for name in ("rag/2", "rag/1"))
    assert opened["total"] == 4
    assert opened["rows"][3]["error"]["message"] == HOSTILE
    for mine, other in zip(opened["rows"][:3], closed["rows"], strict=False):
        assert mine.keys() == other.keys()
        for name in mine.keys() - {"started", "duration", "spans", "scores"}:
            assert mine[name] == other[name], name
        assert [span[:4] for span in mine["spans"]] == [span[:4] for span in other["spans"]]
        assert [span[7:] for span in mine["spans"]] == [span[7:] for span in other["spans"]]
        scores = [
            {names["scorers"][score["scorer"]]["name"]: {**score, "scorer": 0} for score in row["scores"]}
            for names, row in ((opened, mine), (closed, other))
        ]
        assert scores[0] == scores[1]


def test_a_feedback_that_has_not_judged_is_waiting(tmp_path: Path) -> None:
    store, rag = DirectoryStore(tmp_path), Rag()
    app = App(rag, name="rag", feedbacks=FEEDBACKS, store=store, mode="deferred")
    with app as recording:
        rag.query("Who?")
    [one] = read(store, "app/rag")["recordings"]
    [row] = read(store, f"records/{one['id']}/0")["rows"]
    assert [score["status"] for score in row["scores"]] == ["waiting"] * 2
    assert one["waiting"] == 2
    recording.close()


@pytest.mark.parametrize("name", ["rag/1", "rag/2"])
def test_one_record_is_there_as_feedbacks_read_it(store: DirectoryStore, name: str) -> None:
    found = read(store, f"record/{recordings_of(store)[name]['id']}/1")
    app, record = (json.loads(found[part]["j"]) for part in ("app", "record"))
    assert app["app_id"] == f"rag:{name[-1]}"
    assert record["main_input"] == "half"
    assert record["app"]["retriever"]["search"][0]["rets"] == [f"half one {HOSTILE}", "half and two"]


def test_what_is_empty_or_not_there_is_said(store: DirectoryStore) -> None:
    found = read(store, "app/empty")
    [empty] = found["recordings"]
    assert found["leaderboard"] == ""
    assert read(store, f"records/{empty['id']}/0")["rows"] == []
    ids = {name: one["id"] for name, one in recordings_of(store).items()}
    for path in (
        "app/none",
        "app/..%2F..%2Fetc",
        "records/..%2F..%2Fetc/0",
        f"records/{ids['rag/1'][:-1]}/0",
        f"records/{ids['rag/1']}/9",
        f"records/{ids['rag/2']}/9",
        f"records/{ids['rag/2']}/-1",
        f"records/{empty['id']}/1",
        f"record/{ids['rag/1']}/99",
        f"record/{ids['rag/2']}/99",
        f"record/{empty['id']}/0",
    ):
        with pytest.raises(NotFound):
            read(store, path)


def test_names_from_data_are_no_markup_in_the_leaderboard(store: DirectoryStore) -> None:
    leaderboard = read(store, f"app/{quote(HOSTILE, safe='')}")["leaderboard"]
    assert "alert(1)" in leaderboard
    assert "<script" not in leaderboard
    assert "\u202e" not in leaderboard


def test_results_of_a_recording_lead_to_its_app(store: DirectoryStore) -> None:
    evaluation = recordings_of(store)["rag/1"]["evaluation"]
    assert read(store, f"answers/{evaluation}")["links"] == [{"title": "Records of rag", "path": ["a", "rag"]}]


def test_files_of_the_page_have_the_records_in_pieces(store: DirectoryStore) -> None:
    paths = {*list_paths(Source(store))}
    ids = {name: one["id"] for name, one in recordings_of(store).items()}
    assert {"app/rag", f"app/{ids['rag/1']}", f"records/{ids['rag/1']}/1", f"records/{ids['rag/2']}/0"} <= paths


@pytest.fixture(scope="module")
def page(chromium: Any, store: DirectoryStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_page(chromium, Path(store.root), tmp_path_factory.mktemp("log") / "errors") as tab:
        yield tab


def show(page: Any, *parts: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/".join([page.origin, "a", *(quote(part, safe="") for part in parts)]))
    page.wait_for_selector("h1")


@pytest.mark.slow
def test_records_unfold_with_each_call_next_to_its_aggregate(page: Any, store: DirectoryStore) -> None:
    show(page, "rag/1")
    lines = page.locator(".record-line")
    lines.first.wait_for()
    assert lines.count() == 25
    lines.first.press("Enter")
    asked = page.locator(".asked").all_inner_texts()
    assert any("the mean of 2 calls" in text and f"as long as it is {HOSTILE}" in text for text in asked)
    page.keyboard.press("j")
    page.wait_for_selector("#record-1 .detail")
    assert page.locator("#record-0 .detail").count() == 0
    page.locator("#record-1").get_by_text("The app and the whole record as JSON").click()
    page.locator("#record-1 .tree", has_text="main_input").wait_for()
    page.get_by_role("link", name="The whole trace").click()
    page.wait_for_selector(".waterfall")


def test_records_are_in_pages_and_the_last_one_is_the_broken_call(page: Any) -> None:
    show(page, "rag/1")
    for number in (2, 3):
        page.get_by_role("button", name="Next").click()
        page.get_by_text(f"Page {number} of 3").wait_for()
    assert page.locator(".record-line").count() == 11
    assert HOSTILE in page.locator(".record-line").last.inner_text()
    assert "\u202e" not in page.locator("body").inner_text()


def test_an_open_recording_is_read_again_on_demand(page: Any) -> None:
    show(page, "rag")
    page.locator(".record-line").first.wait_for()
    assert page.locator("#records-title").inner_text() == "Records of rag/2"
    assert page.locator(".record-line").count() == 4
    page.get_by_role("button", name="Read again").click()
    page.locator(".record-line").first.wait_for()
    page.get_by_role("button", name="rag/1").click()
    page.wait_for_function("() => document.querySelectorAll('.record-line').length === 25")


def test_nothing_is_wider_than_the_window(page: Any) -> None:
    show(page, "rag")
    page.locator(".record-line").first.click()
    page.wait_for_selector(".detail")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_readers_of_all_kinds_can_use_apps(page: Any) -> None:
    check_readable(page, f"{page.origin}/a/rag?x=0")
