"""Calls in workers of a Ray cluster: the same results, whatever dies."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from models.scripted_server import ScriptedServer
from support.patience import PATIENCE
from support.random_experiment import facts, run_at_random
from support.ray_cluster import TestCluster, cluster

from evaluand.core.errors import EngineError, SpecError, TransientError
from evaluand.data.dataset import Dataset
from evaluand.engine.engines import ray_worker
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.engines.ray import RayEngine, _require_listener, nodes
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import scorer
from evaluand.models.prices import Price, PriceTable
from evaluand.run.runner import Run, Runner
from evaluand.run.task import task
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore
from evaluand.trace import span

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'evaluand[ray]'"),
]


@pytest.fixture(scope="module")
def nearby() -> Iterator[TestCluster]:
    with cluster() as started:
        yield started


@pytest.fixture(scope="module")
def two(nearby: TestCluster) -> RayEngine:
    return RayEngine(2)


def data(n: int) -> Dataset:
    return Dataset.from_rows([{"input": i} for i in range(n)])


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def timeless_spans(run: Run) -> list[dict[str, Any]]:
    """The spans of a run without their times."""
    rows = [row for batch in run.spans() for row in batch.drop_columns(["start", "duration"]).to_pylist()]
    for row in rows:
        row["events"] = [(name, facts) for name, _, facts in json.loads(row["events"] or "[]")]
    return rows


# Results


def work(value: Any) -> Any:
    with span("inside", value=value):
        if value == 3:
            raise ValueError("three")
    return {"value": value, "more": [value, b"raw", float("nan")]}


async def work_async(value: Any) -> Any:
    return work(value)


@pytest.mark.parametrize("function", [work, work_async])
def test_a_cluster_gives_the_digest_of_one_process(two: RayEngine, function: Any) -> None:
    rows = Dataset.from_rows([{"input": v} for v in (1, "zwei 🎈", None, 3, 2.5, [1, {"$x": {}}], b"raw")])
    here, there = (Runner(**how).run(function, rows, replications=2) for how in ({}, {"engine": two}))
    assert (there.id, there.digest) == (here.id, here.digest)
    assert timeless_spans(here) == timeless_spans(there)
    assert there.manifest["provenance"]["engine"] == {"kind": "ray", "workers": 2}


def test_that_a_call_wrote_is_known_from_there(two: RayEngine, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def noted(number: int) -> int:
        with open(log, "a") as file:
            file.write("1")
        return number

    run = Runner(engine=two).run(noted, data(4))
    [row] = [row for batch in run.store.read("runs", run.id, "inputs") for row in batch.to_pylist()]
    assert (row["file"], row["rows"]) == ("(wrote a file)", [{"first": 0, "count": 4}])


def test_scorers_that_are_not_cheap_grade_there_too(two: RayEngine) -> None:
    @scorer(version="1")
    def far(output: Any, expected: Any, example: Any) -> float:
        if example.input == 4:
            raise ValueError("four")
        return float(os.getpid() != here and output == expected)

    here = os.getpid()
    rows = Dataset.from_rows([{"input": i, "expected": i, "group": "a"} for i in range(8)], attributes="group")
    run = Runner().run(lambda value: value, rows)
    table = Evaluator(engine=two).evaluate(run, {"far": far, "same": "exact_match"}).table("far")
    assert table["value"].to_pylist() == [1.0] * 4 + [None] + [1.0] * 3


def test_requests_to_models_are_observed_there(two: RayEngine) -> None:
    def ask(url: str) -> int:
        import httpx

        body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        return int(httpx.post(f"{url}/chat/completions", json=body).json()["usage"]["prompt_tokens"])

    reply = {"message": {"role": "assistant", "content": "Paris"}}
    policy = Policy(prices=PriceTable({"127.0.0.1": {"m": Price(1, 2)}}))
    with ScriptedServer({"m": {"turns": [reply]}}) as server:
        run = Runner(engine=two, policy=policy).run(ask, Dataset.from_rows([{"input": server.url("chat")}] * 4))
    assert [row["cost"] for row in run.table()["usage"].to_pylist()] == [pytest.approx(30e-6)] * 4
    assert run.manifest["spent"] == {"USD": pytest.approx(120e-6)}
    assert [row["kind"] for row in timeless_spans(run)] == ["llm"] * 4


def test_code_of_a_module_is_sent_with_what_it_imports(two: RayEngine, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "sent_helper.py").write_text("MARK = '!'\ndef shout(text):\n    return text.upper() + MARK\n")
    (tmp_path / "sent_task.py").write_text("from sent_helper import shout\ndef answer(text):\n    return shout(text)\n")
    monkeypatch.syspath_prepend(tmp_path)
    answer = __import__("sent_task").answer
    rows = Dataset.from_rows([{"input": "a"}])
    here = Runner().run(answer, rows)
    start = RayEngine.take_actors

    def remove_and_start(*args: Any) -> list[Any]:
        (tmp_path / "sent_helper.py").unlink()  # a worker has what was sent, and not what lies on its disk
        return start(*args)

    monkeypatch.setattr(RayEngine, "take_actors", remove_and_start)
    there = Runner(engine=two).run(answer, rows)
    assert [r.responses for r in there] == [["A!"]]
    assert there.manifest["pinned"] == here.manifest["pinned"]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.slow
def test_random_runs_have_the_same_digests_everywhere(nearby: TestCluster, seed: int) -> None:
    engines = [LocalEngine(), *(ProcessEngine(k) for k in (2, 4, 8)), *(RayEngine(k) for k in (1, 2, 4))]
    assert len({facts(run_at_random(seed, Runner(engine=engine))) for engine in engines}) == 1


@pytest.mark.slow
def test_random_runs_have_the_same_digests_on_two_nodes(nearby: TestCluster, tmp_path: Path) -> None:
    node = nearby.add(cpus=2)
    latest = time.time() + 60

    def where(value: int) -> str:
        note(tmp_path, value)
        while len({at for _, _, at in calls(tmp_path)}) < 2 and time.time() < latest:  # workers take a while to start
            time.sleep(0.1)
        return "done"

    engine = RayEngine(6)
    Runner(engine=engine).run(where, data(100))
    assert node.node_id in {at for _, _, at in calls(tmp_path)}
    for seed in range(20):
        assert facts(run_at_random(seed, Runner(engine=engine))) == facts(run_at_random(seed, Runner()))
    nearby.kill(node)


# What goes wrong


def test_transient_errors_are_tried_again_there(two: RayEngine, tmp_path: Path) -> None:
    def flaky(value: int) -> int:
        with (tmp_path / str(value)).open("ab") as file:
            file.write(b"x")
            if file.tell() <= value % 3:
                raise TransientError("busy")
        return value

    run = Runner(policy=Policy(retries=1, backoff=0.001), engine=two).run(flaky, data(9))
    assert run.table()["attempts"].to_pylist() == [1, 2, 2] * 3
    assert run.counts == {"completed": 6, "failed": 3}


def test_a_unit_that_ends_its_workers_fails_alone(two: RayEngine, tmp_path: Path) -> None:
    def deadly(value: int) -> int:
        if value == 5:
            (tmp_path / f"{time.time_ns()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    run = Runner(policy=Policy(concurrency=4), engine=two).run(deadly, data(40))
    assert {r.index: r.error["type"] for r in run if r.error} == {5: "WorkerDied"}
    assert len([*tmp_path.iterdir()]) == 3


def note(folder: Path, value: int) -> None:
    """Appends a call to a file: its value, its process and its node."""
    import ray

    with (folder / "calls").open("a") as file:
        file.write(f"{value} {os.getpid()} {ray.get_runtime_context().get_node_id()}\n")


def calls(folder: Path) -> list[tuple[int, int, str]]:
    """The calls that have begun."""
    file = folder / "calls"
    complete = file.read_text().split("\n")[:-1] if file.exists() else []  # the last line may be under way
    return [(int(value), int(process), node) for value, process, node in map(str.split, complete)]


class Killer(threading.Thread):
    """Kills something that has made calls, again and again, until the block ends."""

    def __init__(self, folder: Path, times: int, kill: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.killed, self._folder, self._times, self._kill = 0, folder, times, kill
        self._ended = threading.Event()

    def run(self) -> None:
        while self.killed < self._times and not self._ended.wait(0.05):
            self.killed += bool(self._kill())

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._ended.set()
        self.join()


@pytest.mark.slow
def test_thirty_killed_workers_lose_no_row_and_repeat_only_calls_in_flight(nearby: TestCluster, tmp_path: Path) -> None:
    def slow(value: int) -> int:
        note(tmp_path, value)
        time.sleep(0.02)
        return value

    dead = set[int]()

    def kill() -> bool:
        living = {process for _, process, _ in calls(tmp_path)[-100:]} - dead
        if len(living) < 2 or random.random() < 0.2:
            return False
        dead.add(chosen := random.choice(sorted(living)))
        os.kill(chosen, signal.SIGKILL)
        return True

    store = DirectoryStore(tmp_path / "store")
    with Killer(tmp_path, 30, kill) as killer:
        run = Runner(store, Policy(concurrency=4), RayEngine(3)).run(slow, data(18_000))
    assert killer.killed == 30
    assert run.counts == {"completed": 18_000}
    assert run.digest == Runner().run(lambda value: value, data(18_000)).digest
    begun = Counter(value for value, _, _ in calls(tmp_path))
    in_flight = 4 + 4 + 1  # that are being made, and those that are finished and on their way
    assert sum(begun.values()) - 18_000 <= killer.killed * in_flight


@pytest.mark.slow
def test_lost_nodes_lose_no_row(tmp_path: Path, nearby: TestCluster) -> None:
    enough = tmp_path / "enough"

    def slow(value: int) -> int:
        note(tmp_path, value)
        if not enough.exists():
            time.sleep(0.1)
        return value

    def work_everywhere() -> Run:
        return Runner(policy=Policy(concurrency=2), engine=RayEngine(6)).run(slow, data(20_000))

    killed = 0
    node = nearby.add(cpus=2)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work_everywhere)
        while killed < 3 and not running.done():
            time.sleep(0.05)
            if any(at == node.node_id for _, _, at in calls(tmp_path)[-500:]):
                nearby.kill(node)
                killed, node = killed + 1, nearby.add(cpus=2)
        enough.touch()
        run = running.result()
    nearby.kill(node)
    assert killed == 3
    assert run.counts == {"completed": 20_000}


@pytest.mark.parametrize("how", ["policy", "task"])
def test_a_failure_that_stops_the_run_stops_it(two: RayEngine, how: str) -> None:
    def careful(value: int) -> int:
        if value == 4:
            raise ValueError("four")
        time.sleep(0.01)
        return value

    store, careful_task = MemoryStore(), task(version="1")(careful)
    with pytest.raises(Aborted, match="_index_ 4, replication 0: ValueError: four; this stops the run"):
        Runner(store, Policy(abort_on_error=True), two).run(careful_task, data(500))
    assert sum(Runner(store, engine=two).run(careful_task, data(500)).counts.values()) == 500


def test_an_error_of_the_first_unit_comes_through(two: RayEngine, monkeypatch: Any) -> None:
    def broken(*args: Any) -> Iterator[Any]:
        raise OSError("the dataset went away")
        yield

    monkeypatch.setattr("evaluand.run.runner.Calls.between", broken)
    with pytest.raises(OSError, match="went away"):
        Runner(engine=two).run(work, data(3))


def test_a_worker_of_another_version_is_refused(two: RayEngine, monkeypatch: Any) -> None:
    monkeypatch.setattr("evaluand.engine.engines.ray_map.__version__", "0.0.1")
    with pytest.raises(EngineError, match=r"has evaluand .*, but this is 0\.0\.1; install the same version there"):
        Runner(engine=two).run(work, data(3))


def test_code_that_cannot_be_sent_is_named(two: RayEngine) -> None:
    lock = threading.Lock()

    def locked(value: int) -> int:
        with lock:
            return value

    with pytest.raises(SpecError, match="task 'locked' cannot be sent to workers: TypeError: cannot pickle"):
        Runner(engine=two).run(locked, data(3))


class OnDriverOnly:
    """Something that a worker cannot load."""

    def __reduce__(self) -> Any:
        return _load_here, (os.getpid(),)

    def do_run(self, value: Any, task_span: Any) -> Any:
        return value


def _load_here(pid: int) -> OnDriverOnly:
    if os.getpid() != pid:
        raise FileNotFoundError("weights.bin")
    return OnDriverOnly()


def test_code_that_a_worker_cannot_load_ends_the_run_in_one_sentence(two: RayEngine) -> None:
    with pytest.raises(
        EngineError, match=r"cannot load the code: FileNotFoundError: weights\.bin .*must be there, too"
    ):
        Runner(engine=two).run(OnDriverOnly(), data(3))


PROCESS = os.getpid()
"""Different in each process that imports this module."""


def differs(value: int) -> int:
    return value + PROCESS


def test_a_worker_with_another_fingerprint_is_refused(two: RayEngine) -> None:
    with pytest.raises(EngineError, match=r"has another task 'differs': .*give all machines the same code and files"):
        Runner(engine=two).run(differs, data(3))


def test_a_budget_is_refused_before_anything_is_opened(two: RayEngine) -> None:
    runner = Runner(policy=Policy(budget="1 USD"), engine=two)
    with pytest.raises(SpecError, match="a budget cannot stop the requests of other processes"):
        runner.run(work, data(3))


# Together with the rest


def test_a_rate_holds_for_all_workers_together(two: RayEngine) -> None:
    def stamp(value: int) -> float:
        return time.time()

    run = Runner(policy=Policy(rate="20/0.5 s"), engine=two).run(stamp, data(60))
    starts = sorted(r.responses[0] for r in run if r.responses)
    assert len(starts) == 60
    assert all(late - early >= 0.499 for early, late in zip(starts, starts[20:], strict=False))


def test_an_interrupt_stores_finished_calls_and_the_run_is_resumed(two: RayEngine, tmp_path: Path) -> None:
    @task(version="1")
    def slow(value: int) -> int:
        with (tmp_path / "calls").open("a") as file:
            file.write(f"{value}\n")
        time.sleep(0.1)
        return value

    def interrupt() -> None:
        while len(lines(tmp_path / "calls")) < 20:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    store, told = MemoryStore(), list[int]()
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        Runner(store, Policy(concurrency=4, finishing=told.append), two).run(slow, data(100))
    thread.join()
    begun = len(lines(tmp_path / "calls"))
    assert begun < 100
    assert told
    run = Runner(store, engine=two).run(slow, data(100))
    assert run.receipt is not None
    assert (run.receipt.kept, run.counts) == (begun, {"completed": 100})
    assert len(lines(tmp_path / "calls")) == 100


def test_an_address_at_which_nothing_listens_is_one_sentence() -> None:
    with pytest.raises(EngineError, match=r"no Ray cluster answers at 127\.0\.0\.1:1: .*ray start --head"):
        _require_listener("127.0.0.1:1")
    _require_listener("auto")


def test_the_machines_of_a_cluster_are_listed(nearby: TestCluster) -> None:
    assert sum(node.cpus for node in nodes(nearby.address) if node.is_alive) >= 4


def test_calls_of_an_engine_use_the_same_processes(two: RayEngine, tmp_path: Path) -> None:
    def whose(value: int) -> int:
        (tmp_path / str(os.getpid())).touch()
        until = time.monotonic() + PATIENCE
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < until:  # the other worker starts
            time.sleep(0.01)
        return os.getpid()

    def processes_of(run: Run) -> set[int]:
        return {r.responses[0] for r in run if r.responses}

    first = processes_of(Runner(engine=two).run(whose, data(200)))
    assert len(first) == 2
    assert processes_of(Runner(engine=two).run(whose, data(200))) <= first


def test_what_a_worker_has_not_begun_when_its_work_is_to_end_is_not_begun() -> None:
    feed = ray_worker._Feed(is_async=False)
    feed.put([(1, b"a"), (2, b"b")])
    assert next(feed) == (1, b"a")
    feed.close()
    assert next(feed, None) is None
