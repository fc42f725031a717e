"""What reports and `show` tell of one call of an app: its trace, and what each feedback was asked about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.browser import open_tab, watch

from evaluand import Dataset, DirectoryStore, Evaluator, Runner, Scorer
from evaluand.apps.app import App
from evaluand.apps.instrumentation.marking import instrument
from evaluand.apps.logs import record_logs
from evaluand.apps.recording.stored import Recording
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.cli import main
from evaluand.evaluation.evaluator import ScorerFailed
from evaluand.evaluation.feedback import Feedback
from evaluand.evaluation.scorer import Score
from evaluand.report.facts.evaluation import evaluation_facts
from evaluand.report.facts.report import Part
from evaluand.report.html import examples as module
from evaluand.report.html.examples import Examples, examples_of

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Retriever:
    @instrument
    def search(self, query: str) -> list[str]:
        return [f"{query} one", f"{query} and two"]


class Rag:
    def __init__(self) -> None:
        self.retriever = Retriever()

    @instrument
    def query(self, question: str, user: str = "ann") -> str:
        if question == "broken":
            raise ValueError(HOSTILE)
        return f"{len(self.retriever.search(question))} contexts for {user}"


def relevance(question: str, context: str) -> tuple[float, dict[str, str]]:
    if question == "half" and context.endswith("two"):
        raise ValueError("no relevance")
    return len(question) / len(context), {"reason": f"as long as it is {HOSTILE}"}


FEEDBACKS = [
    Feedback(relevance, version="1", on_error="leave_out")
    .on_input()
    .on(context="__record__.app.retriever.search[:].rets[:]"),
    Feedback(len, name="length", version="1").on_output(),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four calls of two versions: one broken, one with a feedback that is half broken."""
    folder = tmp_path_factory.mktemp("store")
    for version in "12":
        rag = Rag()
        app = App(rag, name="rag", version=version, feedbacks=FEEDBACKS, store=DirectoryStore(folder), mode="with_app")
        with app as recording:
            for question in ("Who?", "half", "last"):
                rag.query(question, user="bob")
            with pytest.raises(ValueError, match="script"):
                rag.query("broken")
        recording.close()
    return folder


def parts(folder: Path) -> list[Part]:
    store = DirectoryStore(folder)
    recording = Recording(store, store.ids("recordings")[0])
    assert recording.run is not None
    return [Part("rag", recording.run, recording.evaluation)]


def shown(folder: Path, index: int) -> dict[str, Any]:
    made = parts(folder)
    kinds = [{"scorer": name, "binary": False} for name in ("relevance", "length")]
    return [row for each in examples_of(made, kinds) for row in each][index]


def test_a_row_has_each_call_of_each_feedback_with_arguments_value_and_reason(folder: Path) -> None:
    [length, relevant] = sorted(shown(folder, 0)["scores"], key=lambda score: score["n_calls"])
    assert length["calls"] == [{"ret": 18.0, "error": None, "args": {"obj": "2 contexts for bob"}, "meta": {}}]
    assert relevant["n_calls"] == 2
    assert relevant["calls"][0]["args"] == {"question": "Who?", "context": "Who? one"}
    assert relevant["calls"][0]["ret"] == 0.5
    assert relevant["calls"][0]["meta"] == {"reason": f"as long as it is {HOSTILE}"}
    assert "columns" not in relevant


def test_a_call_that_failed_stands_with_those_that_did_not(folder: Path) -> None:
    [relevant] = [score for score in shown(folder, 1)["scores"] if score["n_calls"] == 2]
    assert [call["error"] for call in relevant["calls"]] == [None, "ValueError: no relevance"]
    assert relevant["status"] == "scored"


def test_a_call_of_the_app_is_shown_with_all_its_arguments_and_without_marks_of_ours(folder: Path) -> None:
    [root, search] = shown(folder, 0)["spans"]
    assert orjson.loads(root[7]["j"]) == {"question": "Who?", "user": "bob"}
    assert root[9] is None
    assert search[2] == "retriever.search"
    assert orjson.loads(search[8]["j"]) == ["Who? one", "Who? and two"]


def test_what_rows_hold_has_a_room_that_is_shared_among_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def held(folder: Path) -> int:
        row = shown(folder, 0)
        calls = [call for score in row["scores"] for call in score["calls"]]
        cells = [cell for call in calls for cell in (*call["args"].values(), *call["meta"].values())]
        cells += [cell for span in row["spans"] for cell in span[7:] if cell is not None]
        texts = [cell if isinstance(cell, str) else cell.get("j", cell.get("t")) for cell in cells]
        return sum(map(len, texts))

    assert held(folder) > 200
    monkeypatch.setattr(module, "_ROOM", 0)
    monkeypatch.setattr(module, "_LEAST_ROOM", 40)
    assert held(folder) <= 40
    monkeypatch.setattr(module, "_ROOM", 4 * 100)  # of four rows
    assert 40 < held(folder) <= 100


def test_a_column_of_that_name_of_another_scorer_stays_as_it_is() -> None:
    @dataclass(frozen=True)
    class Counts(Scorer):
        kind = "counts"
        columns = {"calls": "json"}  # noqa: RUF012
        version = "1"

        def score(self, output: Any, expected: Any) -> Score:
            return Score(1.0, columns={"calls": [{"args": {}, "ret": 1}]})

    run = Runner().run(str.upper, Dataset.from_rows([{"input": "a"}]))
    evaluation = Evaluator().evaluate(run, {"counts": Counts()})
    [row] = Examples(Part("upper", run, evaluation), [{"scorer": "counts", "binary": True}])
    assert row["scores"][0]["columns"] == {"calls": '[{"args":{},"ret":1}]'}
    [shown] = evaluation_facts(evaluation, run, 1)["rows"]["counts"]
    assert shown["calls"] == [{"args": {}, "ret": 1}]


def evaluand(*arguments: str, status: Any = None) -> None:
    assert main([*arguments], standalone_mode=False) == status


@pytest.mark.parametrize("name", ["rag/1", "the recording"])
def test_show_says_what_each_feedback_was_asked(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    store = DirectoryStore(folder)
    id = next(ref.id for ref in store.refs() if ref.kind == "recordings" and ref.name == "rag/1")
    evaluand("show", id if name == "the recording" else name, "--index", "1", "--store", str(folder))
    out = capsys.readouterr().out
    assert re.search(r"call 1 +0\.5\n +context +half one\n +question +half\n", out)
    assert re.search(r"call 2 +ValueError: no relevance", out)
    assert "retriever.search" in out
    assert '{"user":"bob"}' in out
    assert "evaluand.call" not in out
    assert '"ret"' not in out


def test_a_time_that_was_not_logged_is_reported_as_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = record_logs([{"input": "x", "output": "y", "calls": {"find": {"rets": 1}}}], store=DirectoryStore(tmp_path))
    run = made.close().run
    assert run is not None
    [row] = Examples(Part("logged", run, None), [])
    assert (row["started"], row["duration"], row["spans"][0][5]) == (None, None, None)
    evaluand("show", run.id, "--index", "0", "--store", str(tmp_path))
    shown = capsys.readouterr().out
    assert "completed, time unknown" in shown
    assert "find time unknown" in shown
    evaluand("show", run.id, "--index", "0", "--json", "--store", str(tmp_path))
    assert orjson.loads(capsys.readouterr().out)["rows"][0]["duration"] is None


def test_show_says_how_an_open_recording_is_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = DirectoryStore(tmp_path)
    made = RecordingWriter.begin(store, {"name": "rag", "version": "3"}, [], mode="none")
    evaluand("show", made.id, "--index", "1", "--store", str(tmp_path), status=1)
    assert f"evaluand resume {made.id[:12]}" in capsys.readouterr().err
    made.close()


@pytest.mark.parametrize("name", ["rag", "rag/1", "the recording"])
def test_a_report_of_recordings_begins_with_their_leaderboard(folder: Path, tmp_path: Path, name: str) -> None:
    store, file = DirectoryStore(folder), tmp_path / "r.html"
    id = next(ref.id for ref in store.refs() if ref.kind == "recordings" and ref.name == "rag/1")
    evaluand("report", id if name == "the recording" else name, "-o", str(file), "--store", str(folder))
    text = file.read_text()
    assert text.index('id="leaderboard"') < text.index('id="summary"')
    assert ("rag 2" in text) == (name == "rag")
    assert "<td>4 of 4</td>" not in text
    assert "<td>3 of 4</td>" in text
    assert "no metric has been computed" not in text


def test_the_leaderboard_of_a_report_shows_all_recordings_that_are_closed(tmp_path: Path) -> None:
    store, rag = DirectoryStore(tmp_path), Rag()
    for calls in (3, 2):
        app = App(rag, name="rag", version="1", feedbacks=FEEDBACKS[1:], store=store)
        with app as recording:
            for n in range(calls):
                rag.query(f"{calls} {n}")
        recording.close()
    RecordingWriter.begin(store, {"name": "rag", "version": "1"}, [], mode="none")
    evaluand("report", "rag", "-o", str(tmp_path / "r.html"), "--store", str(tmp_path))
    text = (tmp_path / "r.html").read_text()
    assert "<td>5 of 5</td>" in text
    assert "the leaderboard covers all recordings, the rest of this report only the newest of each version" in text


def test_a_report_says_of_a_feedback_that_it_failed_everywhere(tmp_path: Path) -> None:
    def never(text: str) -> float:
        raise ValueError("never")

    app = App(Rag(), name="rag", feedbacks=[Feedback(never, version="1").on_output()], store=DirectoryStore(tmp_path))
    with app as recording:
        app.app.query("Who?")
    with pytest.warns(ScorerFailed):
        recording.close()
    evaluand("report", "rag", "-o", str(tmp_path / "r.html"), "--store", str(tmp_path))
    assert "never failed on 1 of 1 call" in re.sub("<[^>]*>", "", (tmp_path / "r.html").read_text())


def test_a_report_of_an_open_recording_says_how_to_close_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = RecordingWriter.begin(DirectoryStore(tmp_path), {"name": "rag"}, [], mode="none")
    evaluand("report", made.id, "-o", str(tmp_path / "r.html"), "--store", str(tmp_path), status=1)
    assert f"evaluand resume {made.id[:12]}" in capsys.readouterr().err
    made.close()


# In a browser


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        yield tab


@pytest.fixture(scope="module")
def written(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "r.html"
    evaluand("report", "rag", "-o", str(path), "--store", str(folder))
    return path


@pytest.fixture(params=[(1200, "light"), (400, "dark")], ids=["wide", "narrow"])
def page(tab: Any, written: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The report, open at one call."""
    width, scheme = request.param
    with watch(tab):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=scheme)
        tab.goto(f"{written.as_uri()}#example=rag%2F1/1")
        tab.wait_for_selector(".asked")
        yield tab


def test_the_page_says_calls_of_feedbacks_their_aggregate_and_the_trace_and_fits_its_window(page: Any) -> None:
    of_first = page.locator(".side").filter(has_text="rag/1")
    reported = of_first.locator(".asked").all_inner_texts()
    [relevant] = [text for text in reported if text.startswith("relevance")]
    assert "0.5, the mean of 2 calls" in relevant
    assert re.search(r"context\s+half one", relevant)
    assert "ValueError: no relevance" in relevant
    assert HOSTILE in relevant
    gists = of_first.locator(".spans .gist").all_inner_texts()
    assert gists[1].startswith('{"query":"half"} → ["half one","half and two"]')
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    beyond = "each => each.getBoundingClientRect().right > innerWidth"
    assert not page.evaluate(f"[...document.querySelectorAll('.asked *')].some({beyond})")


def test_the_page_shows_a_time_that_nobody_knows(tab: Any, tmp_path: Path) -> None:
    logs = [
        {"input": "x", "output": "y", "calls": {"find": {"rets": 1}}},
        {"input": "z", "output": "y", "duration": 2.0},
    ]
    record_logs(logs, version="1", store=DirectoryStore(tmp_path)).close()
    evaluand("report", "logged/1", "-o", str(tmp_path / "r.html"), "--store", str(tmp_path))
    with watch(tab):
        tab.goto(f"file://{tmp_path}/r.html#example=logged%2F1/0")
        tab.wait_for_selector(".spans")
        assert "completed, time unknown" in tab.locator(".panel").inner_text()
        assert "time unknown" in tab.locator(".spans").first.inner_text()
        tab.get_by_label("Sort by").select_option("slow")
        tab.locator(".lines .line").first.get_by_text("z", exact=True).wait_for()


def parted(output: str) -> tuple[dict[str, float], dict[str, str]]:
    return {"letters of the answer": float(len(output)), "words": 3.0}, {"reason": "counted by hand"}


@pytest.mark.parametrize("width", [1280, 768, 380])
@pytest.mark.slow
def test_scores_of_feedbacks_have_their_names_and_reasons_at_every_width(tab: Any, tmp_path: Path, width: int) -> None:
    logs = [{"input": "Who?", "output": "Jane Austen did."}]
    feedbacks = [
        Feedback(parted, name="parts", version="1").on_output(),
        Feedback(relevance, version="1").on_input_output(),
    ]
    record_logs(logs, version="1", feedbacks=feedbacks, store=DirectoryStore(tmp_path)).close()
    evaluand("report", "logged/1", "-o", str(tmp_path / "r.html"), "--store", str(tmp_path))
    with watch(tab):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(f"file://{tmp_path}/r.html#example=logged%2F1/0")
        tab.wait_for_selector(".asked")
        assert sorted(tab.locator(".lines .pill").all_text_contents()) == [
            "parts letters of the answer 16",
            "parts words 3",
            "relevance 0.25",
        ]
        table = tab.locator(".stacked")
        for text in ("letters of the answer", f"as long as it is {HOSTILE}"):
            box = table.get_by_text(text, exact=True).bounding_box()
            assert box["width"] > 100
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        assert tab.evaluate(
            "[...document.querySelectorAll('.detail .scroll')].every(e => e.scrollWidth <= e.clientWidth)"
        )
        assert '"letters' not in tab.locator(".asked").all_inner_texts()[0] + table.inner_text()
