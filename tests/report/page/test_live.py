"""A run is watched while it is made, interrupted from the page, killed and continued."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import AsyncMock

import pytest
from support.fresh import open_python
from support.patience import PATIENCE
from support.processes import open_process
from support.view_server import Server, serve_store

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.core.errors import NotFound
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Mean
from evaluand.report.facts.base import Facts
from evaluand.report.page import events as events_module
from evaluand.report.page.live import EVERY, NEWEST, LiveRun, LiveRuns
from evaluand.run.responses import LANE
from evaluand.run.runner import Runner
from evaluand.run.task import Candidates, FunctionTask
from evaluand.store.directory import DirectoryStore

CODE = """
import os, time

def slow(text):
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
    if text.endswith("7"):
        raise ValueError("no answer to " + text)
    return text.upper()

def right(output, expected):
    return output == expected
"""
EXPERIMENT = """
name: watched
dataset: {path: rows.jsonl, input: q, expected: a}
tasks:
  slow: {function: code.py:slow}
run: {concurrency: 2}
scorers:
  right: {function: code.py:right}
metrics: [accuracy]
"""
ROWS = 40
COMMAND = "from evaluand.cli import main; main(prog_name='evaluand')"
LINK = re.compile(r"http://127.0.0.1:(\d+)(/live\?token=\S+)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text(CODE)
    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    rows = ({"q": f"row {i}", "a": f"ROW {i}" if i % 2 else "x"} for i in range(ROWS))
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


@contextmanager
def start(folder: Path, *options: str, pause: float = 0.05) -> Iterator[BaseProcess]:
    environment = os.environ | {"PAUSE": str(pause), "BROWSER": "true"}
    said = folder / f"said-by-{options[0]}"
    said.touch()
    with open_python(COMMAND, *options, errors=said, env=environment, cwd=folder) as (process, _):
        yield process


def find_link(folder: Path) -> re.Match[str]:
    """The link that a run prints."""
    wait_for(lambda: LINK.search((folder / "said-by-run").read_text()) is not None)
    [link] = LINK.finditer((folder / "said-by-run").read_text())
    return link


@contextmanager
def events(server: Server, id: str = "newest") -> Iterator[Iterator[Any]]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as connection:
        connection.request("GET", f"/api/live/{id}", headers={"Cookie": server.cookie})
        answer = connection.getresponse()
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        yield (json.loads(line[6:]) for line in answer if line.startswith(b"data: "))


def wait_for(of: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not of():
        assert time.monotonic() < end
        time.sleep(0.05)


def begun(folder: Path) -> bool:
    return any((folder / ".evaluand/runs").glob("*/journal/**/*")) if (folder / ".evaluand/runs").is_dir() else False


def test_a_run_is_watched_to_its_end(folder: Path) -> None:
    with start(folder, "run", "e.yaml", "--quiet") as process:
        wait_for(lambda: begun(folder))
        with serve_store(folder / ".evaluand", folder / "log") as server, events(server) as seen:
            states = [*seen]
        process.join(PATIENCE)
    assert states[0]["status"] in ("starting", "running", "finished")
    assert states[-1]["status"] == "finished"
    assert states[-1]["done"] == states[-1]["total"] == ROWS
    assert [state["done"] for state in states] == sorted(state["done"] for state in states)
    numbers = [row["number"] for state in states for row in state["rows"]]
    assert numbers == sorted({*numbers})
    failed = [row for state in states for row in state["rows"] if row["status"] == "failed"]
    assert all(row["error"].startswith("ValueError: no answer to row ") for row in failed)


@pytest.mark.slow
def test_a_killed_run_is_stopped_and_goes_on_when_it_is_continued(folder: Path) -> None:
    with start(folder, "run", "e.yaml", "--quiet", pause=1) as process:
        wait_for(lambda: begun(folder))
        with serve_store(folder / ".evaluand", folder / "log") as server, events(server) as seen:
            assert next(each for each in seen if each["done"])["status"] == "running"
            process.kill()
            stopped = next(each for each in seen if each["status"] == "stopped")
            assert 0 < stopped["done"] < ROWS
            assert stopped["command"] == f"evaluand resume {stopped['id'][:12]} --store {folder / '.evaluand'}"
            with start(folder, *stopped["command"].split()[1:], pause=0.1) as again:
                assert next(each for each in seen if each["status"] == "running")["done"] >= stopped["done"]
                assert [*seen][-1]["status"] == "finished"
                again.join(PATIENCE)


def test_the_page_of_a_run_can_stop_it_and_no_other_site_can(folder: Path) -> None:
    (folder / "rows.jsonl").write_text((folder / "rows.jsonl").read_text() * 10)
    with start(folder, "run", "e.yaml", "--view", pause=0.2) as process:
        link = find_link(folder)
        server = Server(process, link[0], int(link[1]), folder / "log")
        server.cookie = str(server.ask(link[2], cookie="").header("set-cookie")).partition(";")[0]
        wait_for(lambda: begun(folder))
        assert b'data-stop="yes"' in server.ask("/live").body
        for origin in ("null", "http://evil.example", f"http://127.0.0.1:{server.port + 1}"):
            assert server.ask("/session/stop", "POST", [f"Origin: {origin}"]).status == 403
        assert server.ask("/session/stop").status == 200  # the page, as any address is: looking stops nothing
        guest = server.post("/session/link").text
        opened = server.ask(f"/live?{json.loads(guest)['link'].partition('?')[2]}", cookie="")
        cookie = str(opened.header("set-cookie")).partition(";")[0]
        assert server.ask("/live", cookie=cookie).status == 200
        assert b"data-stop" not in server.ask("/live", cookie=cookie).body
        assert server.post("/session/stop", cookie=cookie).status == 403
        assert process.exitcode is None
        assert server.post("/session/stop").status == 204
        process.join(PATIENCE)
        assert process.exitcode == 130
    said = (folder / "said-by-run").read_text()
    assert "evaluand resume" in said or "evaluand run e.yaml" in said


@pytest.mark.slow
def test_the_page_of_a_killed_run_ends_too(folder: Path) -> None:
    with start(folder, "run", "e.yaml", "--view", pause=2) as process:
        link = find_link(folder)
        socket.create_connection(("127.0.0.1", int(link[1]))).close()
        process.kill()
        wait_for(lambda: not answers(int(link[1])))


@pytest.mark.slow
def test_what_a_killed_run_has_forked_does_not_keep_its_page(folder: Path) -> None:
    code = (
        "import os, time; from pathlib import Path; from evaluand.cli.watched import watch_in_browser\n"
        "with watch_in_browser(Path('.evaluand')):\n"
        "    worker = os.fork()\n"
        "    if worker: print(worker, flush=True)\n"
        "    time.sleep(600)"
    )
    environment = os.environ | {"BROWSER": "true"}
    command = [sys.executable, "-c", code]
    with open_process(*command, cwd=folder, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        worker = int(process.stdout.readline())
        try:
            [link] = islice((found for line in process.stderr if (found := LINK.search(line))), 1)
            process.kill()
            wait_for(lambda: not answers(int(link[1])))
        finally:
            os.kill(worker, signal.SIGKILL)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.slow
def test_without_a_run_beside_it_the_page_stops_nothing(folder: Path) -> None:
    DirectoryStore(folder / ".evaluand")
    with serve_store(folder / ".evaluand", folder / "log") as server:
        assert server.post("/session/stop").status == 405
        assert b"data-stop" not in server.ask("/live").body
        assert server.ask("/api/live/newest").status == 404
        assert server.ask("/api/live/..%2f..%2fetc").status == 404


def test_watchers_share_a_reader_which_is_closed_with_the_last(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    run = Runner(store).run(str.upper, Dataset.from_rows([{"input": "a"}]))
    runs = LiveRuns(store)
    first, second = runs.watch(run.id), runs.watch(run.id)
    assert first is second
    first.look()
    assert (first.facts()["status"], first.facts()["done"], first.rows_after(0)) == ("finished", 1, [])
    runs.leave(first)
    assert runs.watch(run.id) is first
    runs.leave(first)
    runs.leave(first)
    assert runs.watch(run.id) is not first
    assert runs.find(NEWEST) == runs.find(run.id) == run.id
    with pytest.raises(NotFound):
        runs.find("0" * 32)
    with pytest.raises(NotFound, match="no run has begun yet"):
        LiveRuns(DirectoryStore(tmp_path / "empty")).find(NEWEST)


class Interrupted:
    """A task that is interrupted at some of its calls, and fails at others."""

    def __init__(self, interrupted: set[int], failing: set[int]) -> None:
        self.calls, self.interrupted, self.failing = 0, interrupted, failing

    def __call__(self, text: str) -> str:
        self.calls += 1
        if self.calls in self.interrupted:
            raise KeyboardInterrupt
        if self.calls in self.failing:
            raise ValueError("no answer")
        return f"{text} by call {self.calls}"


def test_rows_that_are_made_again_count_once(tmp_path: Path) -> None:
    """What a retry or changed inputs make undone counts no more, until it is done again."""
    store, data = DirectoryStore(tmp_path), Dataset.from_rows([{"input": f"row {i}"} for i in range(6)])
    runner = Runner(store, Policy(concurrency=1))
    answer = Interrupted({5, 8}, {1, 2})
    task = FunctionTask(answer, version="1")
    with pytest.raises(KeyboardInterrupt):
        runner.run(task, data)
    [id] = store.ids("runs")
    live = LiveRun(store, id)
    live.look()
    assert (live.facts()["done"], live.facts()["counts"]) == (4, {"failed": 2, "completed": 2})
    with closing(store.lane("runs", id, LANE, len(data))) as log:
        log.refresh()
        log.void([0, 1, 2])
    look_again(live)
    assert (live.facts()["done"], live.facts()["counts"]) == (1, {"completed": 1})
    with pytest.raises(KeyboardInterrupt):
        runner.run(task, data)
    look_again(live)
    assert (live.facts()["done"], live.facts()["counts"]) == (3, {"completed": 3})
    shown = [(row["place"], row["answer"]) for row in live.rows_after(4)]
    assert shown == [(0, "row 0 by call 6"), (1, "row 1 by call 7")]
    live.close()


def test_scores_that_are_made_again_count_once(tmp_path: Path) -> None:
    store, data = DirectoryStore(tmp_path), Dataset.from_rows([{"input": "1"}, {"input": "2"}, {"input": "3"}])
    run = Runner(store).run(str.upper, data)
    calls: list[str] = []

    def score(output: str) -> float:
        calls.append(output)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return float(output)

    with pytest.raises(KeyboardInterrupt):
        Evaluator(store, Policy(concurrency=1)).evaluate(run, {"size": score})
    [id] = store.ids("evaluations")
    live = LiveRun(store, run.id)
    live.look()
    [found] = live.facts()["scores"]
    assert (live.facts()["status"], found["n"], found["mean"]) == ("stopped", 2, 1.5)
    assert live.facts()["command"] is None  # begun in Python
    with closing(store.lane("evaluations", id, "scorer0", len(data))) as log:
        log.refresh()
        log.void([0])
    look_again(live)
    [found] = live.facts()["scores"]
    assert (found["n"], found["mean"]) == (1, 2.0)
    live.close()


def look_again(live: LiveRun) -> None:
    time.sleep(EVERY / 2)
    live.look()


@dataclass(frozen=True)
class Sides(Scorer):
    """A number for each target; none for some answers, and none of a row without an answer."""

    kind = "sides"
    by_target = True
    ranges: ClassVar = {"value": (0.0, 40.0)}

    def score(self, output: Any, expected: Any) -> Score:
        if output < 2:
            raise ValueError("no score")
        return Score(output * expected)


def halves(text: str) -> Any:
    """One answer, or several; some of each are too low for a score."""
    number = int(text)
    return Candidates([number % 4, 3, 7]) if number % 2 else number


def above(output: float) -> Any:
    if output < 2:
        raise ValueError("no score")
    return output


def alternating(text: str) -> int:
    """Another number at each call, without an answer to some."""
    alternating.calls += 1  # type: ignore[attr-defined]
    if int(text) < 4 and alternating.calls % 2:  # type: ignore[attr-defined]
        raise ValueError("no answer")
    return alternating.calls % 5 + 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("task", "scorer", "targets", "replications", "roles"),
    [
        (int, Sides(), ["a", "b"], 1, {"expected": {"a": "a", "b": "b"}}),
        (halves, above, [None], 1, {}),
        (alternating, above, [None], 2, {}),
        (int, lambda output: output > 3, [None], 1, {}),
        (int, above, [None], 1, {"cluster": "a"}),
    ],
    ids=["targets", "answers", "replications", "zeros and ones", "clusters"],
)
def test_the_mean_so_far_is_the_one_that_is_stored(
    task: Any,
    scorer: Any,
    targets: list[str | None],
    replications: int,
    roles: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alternating.calls = 0  # type: ignore[attr-defined]
    store, evaluator = DirectoryStore(tmp_path), Evaluator(policy=Policy(concurrency=1, retries=0))
    rows = [{"input": str(i), "a": 1 + i % 3, "b": i % 5} for i in range(10)]
    data = Dataset.from_rows(rows, **roles).save(store)
    runner = Runner(store, Policy(concurrency=1, retries=0))
    run = runner.run(FunctionTask(task, version="1"), data, replications=replications)
    with monkeypatch.context() as patch:
        patch.setattr("evaluand.evaluation.evaluator._Job._seal", interrupt)
        with pytest.raises(KeyboardInterrupt):
            evaluator.evaluate(run, {"size": scorer})
    with closing(LiveRun(store, run.id)) as live:
        live.look()
        found = live.facts()["scores"]
    evaluation = evaluator.evaluate(run, {"size": scorer})
    metric = Accuracy() if found[0]["high"] <= 1 else Mean()
    stored = Aggregator(store).aggregate([evaluation], [Measure("size", metric)]).table().to_pylist()
    assert [each["target"] for each in found] == [each["target"] for each in stored] == targets
    for live_one, stored_one in zip(found, stored, strict=True):
        assert live_one["scored"] == stored_one["n_scored"] < len(rows) * replications or metric.kind == "accuracy"
        names = {"mean": "value", "low": "low", "high": "high", "n": "n"}
        assert [live_one[name] for name in names] == pytest.approx([stored_one[name] for name in names.values()])


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def test_an_evaluation_is_being_graded_while_somebody_has_a_part_of_it(tmp_path: Path) -> None:
    store, data = DirectoryStore(tmp_path), Dataset.from_rows([{"input": "1"}, {"input": "2"}])
    run = Runner(store).run(str.upper, data)
    states: list[Facts] = []

    def score(output: str) -> float:
        with closing(LiveRun(store, run.id)) as live:
            live.look()
            states.append(live.facts())
        if len(states) == 2:
            raise KeyboardInterrupt
        return float(output)

    with pytest.raises(KeyboardInterrupt):
        Evaluator(store, Policy(concurrency=1)).evaluate(run, {"size": score}, origin={"experiment": "/e.yaml"})
    with closing(LiveRun(store, run.id)) as live:
        live.look()
        states.append(live.facts())
    [id] = store.ids("evaluations")
    assert [state["status"] for state in states] == ["grading", "grading", "stopped"]
    assert [state["command"] for state in states] == [None, None, f"evaluand resume {id[:12]} --store {tmp_path}"]


def test_an_evaluation_that_has_only_just_begun_is_being_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectoryStore(tmp_path)
    run = Runner(store).run(str.upper, Dataset.from_rows([{"input": "1"}]))
    with pytest.raises(KeyboardInterrupt):
        Evaluator(store, Policy(concurrency=1)).evaluate(run, {"size": interrupt})
    with closing(LiveRun(store, run.id)) as live:
        live.look()
        assert live.facts()["status"] == "grading"
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 61)
        look_again(live)
        assert live.facts()["status"] == "stopped"


def test_an_abandoned_evaluation_does_not_matter_once_the_run_is_graded(tmp_path: Path) -> None:
    store, data = DirectoryStore(tmp_path), Dataset.from_rows([{"input": "one"}, {"input": "two"}])
    evaluator = Evaluator(store, Policy(concurrency=1))
    run, other = (Runner(store).run(task, data) for task in (str.upper, str.title))
    evaluator.evaluate(run, {"before": len})
    scorer = Interrupted({2}, set())
    with pytest.raises(KeyboardInterrupt):
        evaluator.evaluate(run, {"size": lambda output: len(scorer(output))})
    evaluator.evaluate(other, {"after": len})
    with closing(LiveRun(store, run.id)) as live:
        live.look()
        assert (live.facts()["status"], len(live.facts()["scores"])) == ("stopped", 1)
        evaluator.evaluate(run, {"after": len})
        look_again(live)
        assert (live.facts()["status"], live.facts()["scores"]) == ("finished", [])


def test_who_watches_the_newest_run_is_not_kept_by_one_that_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "EVERY", 0.01)
    monkeypatch.setattr(events_module, "_BEATS", 2)
    store, data = DirectoryStore(tmp_path), Dataset.from_rows([{"input": "1"}, {"input": "2"}])
    with pytest.raises(KeyboardInterrupt):
        Runner(store, Policy(concurrency=1)).run(FunctionTask(Interrupted({2}, set()), version="1"), data)
    runs, request = LiveRuns(store), AsyncMock()
    request.is_disconnected.return_value = False

    async def watch(asked: str) -> list[Any]:
        seen = []
        async for event in events_module._watch(runs, asked, stopped, request):
            seen.append(json.loads(event[6:]))
            if len(seen) == 2:
                Runner(store).run(str.upper, data)
            if len(seen) == 6:
                break
        return seen

    stopped = runs.find(NEWEST)
    assert len(asyncio.run(watch(NEWEST))) < 6
    assert len(asyncio.run(watch(stopped))) == 6


def test_a_run_that_nobody_works_on_yet_is_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectoryStore(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        Runner(store).run(FunctionTask(Interrupted({1}, set()), version="1"), Dataset.from_rows([{"input": "a"}]))
    live = LiveRun(store, store.ids("runs")[0])
    live.look()
    assert live.facts()["status"] == "starting"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert live.facts()["status"] == "stopped"
    live.close()


def test_finished_evaluations_are_not_read_at_each_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, data = DirectoryStore(tmp_path), Dataset.from_rows([{"input": "a"}])
    run = Runner(store).run(str.upper, data)
    for number in range(5):
        Evaluator(store).evaluate(run, {f"score {number}": len})
    live = LiveRun(store, run.id)
    live.look()
    asked: list[str] = []
    monkeypatch.setattr(store, "is_sealed", lambda kind, id: bool(asked.append(kind)))
    monkeypatch.setattr(store, "manifest", lambda kind, id: asked.append(kind))
    look_again(live)
    assert "evaluations" not in asked
