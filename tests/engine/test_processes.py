"""Calls in processes: the same results as in threads, and a process that dies or hangs costs one example."""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.forks import in_fork
from support.fresh import run_python
from support.patience import PATIENCE

from evaluand.core.errors import SpecError, TransientError
from evaluand.data.dataset import Dataset
from evaluand.engine.engine import Made, Recipe, UnitCodec
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.engine.rate_limit import RateLimit
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import scorer
from evaluand.run.runner import Run, Runner
from evaluand.run.task import task
from evaluand.run.tasks.program import ProgramTask
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore
from evaluand.trace import span

TWO = ProcessEngine(2)


def data(n: int) -> Dataset:
    return Dataset.from_rows([{"input": i} for i in range(n)])


def failures(run: Run) -> dict[int, tuple[str, str | None]]:
    """Type and code of each failure, by index."""
    return {r.index: (r.error["type"], r.error["code"]) for r in run if r.error}


def messages(run: Run) -> dict[int, str]:
    return {r.index: r.error["message"] for r in run if r.error}


def pids(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir() if path.name.isdigit()]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def check_all_end(processes: list[int]) -> None:
    end = time.monotonic() + PATIENCE
    while any(lives(pid) for pid in processes):
        assert time.monotonic() < end
        time.sleep(0.01)


# Results


def work(value: Any) -> Any:
    with span("inside", value=value):
        if value == 3:
            raise ValueError("three")
    return {"value": value, "more": [value, b"raw", float("nan")]}


async def work_async(value: Any) -> Any:
    await asyncio.sleep(0)
    return work(value)


def test_threads_coroutines_and_processes_give_the_same_digest() -> None:
    rows = Dataset.from_rows([{"input": v} for v in (1, "zwei 🎈", None, 3, 2.5, [1, {"$x": {}}], b"raw")])
    made = [
        Runner(engine=engine).run(function, rows, replications=2)
        for function, engine in ((work, LocalEngine()), (work_async, LocalEngine()), (work, TWO), (work_async, TWO))
    ]
    assert len({run.digest for run in made}) == 1
    assert [failures(run) for run in made] == [{3: ("ValueError", None)}] * 4
    spans = [[batch.to_pylist() for batch in run.spans()] for run in made]
    assert [sum(map(len, s)) for s in spans] == [sum(map(len, spans[0]))] * 4
    assert made[2].manifest["provenance"]["engine"] == {"kind": "processes", "workers": 2}


def test_calls_are_made_in_as_many_processes_as_allowed_none_of_them_this_one(tmp_path: Path) -> None:
    def whose(value: int) -> int:
        time.sleep(0.005)
        return os.getpid()

    run = Runner(engine=ProcessEngine(3)).run(whose, data(60))
    found = {r.responses[0] for r in run if r.responses}
    assert len(found) == 3
    assert os.getpid() not in found
    check_all_end(list(found))


def test_a_process_makes_several_calls_of_a_coroutine_function_at_once() -> None:
    in_flight = 0

    async def counting(value: int) -> list[int]:
        nonlocal in_flight
        in_flight += 1
        await asyncio.sleep(0.05)
        most = in_flight
        await asyncio.sleep(0.05)
        in_flight -= 1
        return [os.getpid(), most]

    run = Runner(policy=Policy(concurrency=4), engine=TWO).run(counting, data(24))
    found = [r.responses[0] for r in run if r.responses]
    assert len({pid for pid, _ in found}) == 2
    assert max(most for _, most in found) == 4


def test_there_are_as_many_processes_as_cpus_unless_reported_otherwise() -> None:
    assert ProcessEngine().workers == os.cpu_count()
    assert ProcessEngine(7).workers == 7


def test_each_call_has_its_seed_index_and_id() -> None:
    def reported(value: int, seed: int, index: int, id: str, replication: int) -> list[Any]:
        return [seed, index, id, replication]

    rows = Dataset.from_rows([{"_index_": 9, "input": 1, "id": "nine"}, {"_index_": 11, "input": 2, "id": "eleven"}])
    runs = [Runner(engine=engine).run(reported, rows, replications=2) for engine in (LocalEngine(), TWO)]
    assert [r.responses for r in runs[0]] == [r.responses for r in runs[1]]


def test_units_are_taken_only_when_a_call_can_be_made() -> None:
    taken, ended, ahead = 0, 0, 0

    def units() -> Iterator[int]:
        nonlocal taken, ahead
        for unit in range(100):
            taken += 1
            ahead = max(ahead, taken - ended)
            yield unit

    def done(made: Sequence[Made[int]]) -> None:
        nonlocal ended
        ended += len(made)

    wire = UnitCodec[int](lambda unit: b"%d" % unit, int)
    TWO.map_lines(units(), Recipe(lambda unit: unit, lambda unit, outcome: (b"", 0), wire), done, Policy())
    assert taken == ended == 100
    assert ahead <= 2


def test_nothing_to_do_starts_no_process() -> None:
    forks: list[int] = []
    os.register_at_fork(before=lambda: forks.append(os.getpid()))
    wire = UnitCodec[int](lambda unit: b"%d" % unit, int)

    def started(units: list[int]) -> int:
        forks.clear()
        recipe = Recipe(abs, lambda unit, outcome: (b"", 0), wire)
        TWO.map_lines(iter(units), recipe, lambda made: None, Policy())
        return len(forks)

    assert [started([]), started([1])] == [0, 1]


def test_what_a_megabyte_long_answer_says_comes_whole() -> None:
    run = Runner(engine=TWO).run(lambda value: "x" * 3_000_000 + str(value), data(4))
    assert [r.responses[0][-1] for r in run if r.responses] == list("0123")


def test_a_store_on_disk_is_written_by_one_process_alone(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    run = Runner(store, engine=TWO).run(work, data(50))
    assert run.counts == {"completed": 49, "failed": 1}
    assert store.damage("runs", run.id) == []
    assert run.digest == Runner().run(work, data(50)).digest


# What goes wrong


def test_a_process_that_dies_costs_the_example_it_was_at() -> None:
    def dies(value: int) -> int:
        if value == 3:
            os._exit(7)
        if value == 5:
            faulthandler.disable()
            ctypes.string_at(0)
        if value == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    run = Runner(engine=TWO).run(dies, data(20))
    assert run.counts == {"completed": 17, "failed": 3}
    assert failures(run) == {3: ("WorkerDied", "exit 7"), 5: ("WorkerDied", "SIGSEGV"), 8: ("WorkerDied", "SIGKILL")}
    assert messages(run)[3] == "its process ended with exit status 7 during the call"
    assert "perhaps out of memory" in messages(run)[8]


def test_a_call_that_takes_too_long_is_ended_and_costs_one_example(tmp_path: Path) -> None:
    def hangs(value: int) -> int:
        if value == 3:
            (tmp_path / str(os.getpid())).touch()
            while True:
                pass
        return value

    run = Runner(policy=Policy(timeout=0.5), engine=TWO).run(hangs, data(20))
    assert failures(run) == {3: ("TaskTimeout", "timeout")}
    assert run.counts == {"completed": 19, "failed": 1}
    check_all_end(pids(tmp_path))


@pytest.mark.parametrize("how", ["dies", "blocks", "waits"])
def test_a_coroutine_that_ends_its_process_costs_its_example_and_no_other(tmp_path: Path, how: str) -> None:
    async def harms(value: int) -> int:
        await asyncio.sleep(0.01)
        if value == 3:
            (tmp_path / str(os.getpid())).touch()
            if how == "dies":
                os._exit(7)
            while how == "blocks":
                pass
            await asyncio.sleep(60)
        return value

    run = Runner(policy=Policy(concurrency=4, timeout=1.0), engine=TWO).run(harms, data(20))
    assert failures(run) == {3: ("WorkerDied", "exit 7") if how == "dies" else ("TaskTimeout", "timeout")}
    assert run.counts == {"completed": 19, "failed": 1}
    check_all_end(pids(tmp_path))


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_inputs_and_outputs_pass_each_other_however_long_they_are(size: int) -> None:
    async def echo(text: str) -> str:
        await asyncio.sleep(0)
        return text

    texts = [f"{n:x<{size}}" for n in range(30)]
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    run = Runner(engine=ProcessEngine(1)).run(echo, Dataset.from_rows([{"input": text} for text in texts]))
    faulthandler.cancel_dump_traceback_later()
    assert [response.responses for response in run] == [[text] for text in texts]


def test_a_process_whose_loop_is_blocked_keeps_nothing_from_others(tmp_path: Path) -> None:
    async def call(value: dict[str, Any]) -> bool:
        if value["n"] == 0:  # blocks the loop of its process until others have made many calls
            end = time.monotonic() + PATIENCE
            while (n_others := len(list(tmp_path.iterdir()))) < 20 and time.monotonic() < end:
                time.sleep(0.01)
            return n_others >= 20
        (tmp_path / str(value["n"])).touch()
        return True

    rows = [{"input": {"n": n, "padding": "x" * 100_000}} for n in range(40)]
    run = Runner(policy=Policy(concurrency=8), engine=TWO).run(call, Dataset.from_rows(rows))
    assert [response.responses for response in run] == [[True]] * 40


def test_calls_beside_one_that_ends_their_process_are_made_again_in_all_processes(tmp_path: Path) -> None:
    async def harms(value: int) -> int:
        (tmp_path / f"{value} {os.getpid()}").touch()
        if value == 3:
            os._exit(7)
        await asyncio.sleep(0.5)
        return value

    run = Runner(policy=Policy(concurrency=8), engine=ProcessEngine(3)).run(harms, data(24))
    assert run.counts == {"completed": 23, "failed": 1}
    assert {row["attempts"] for row in run.table().to_pylist()} == {1}
    processes: dict[str, set[str]] = {}
    for value, process in (path.name.split() for path in tmp_path.iterdir()):
        processes.setdefault(value, set()).add(process)
    again = [of for of in processes.values() if len(of) > 1]
    assert len(again) > 1
    assert len(set.union(*again) - set.intersection(*again)) > 1


def test_what_a_call_has_started_ends_with_it_when_it_takes_too_long(tmp_path: Path) -> None:
    def starts(value: int) -> int:
        if value == 3:
            helper = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE)
            assert helper.stdout is not None
            for pid in (helper.pid, int(helper.stdout.readline())):
                (tmp_path / str(pid)).touch()
            helper.wait()
        return value

    run = Runner(policy=Policy(timeout=0.5), engine=TWO).run(starts, data(6))
    assert failures(run) == {3: ("TaskTimeout", "timeout")}
    assert len(pids(tmp_path)) == 2
    check_all_end(pids(tmp_path))


def test_whatever_a_task_raises_costs_one_example() -> None:
    class Quit(BaseException):
        def __str__(self) -> str:
            raise RuntimeError("an error about the error")

    def raises(value: int) -> int:
        if value < 4:
            raise (SystemExit(3), Quit(), KeyboardInterrupt(), RecursionError())[value]
        return value

    run = Runner(engine=TWO).run(raises, data(10))
    assert {index: kind for index, (kind, _) in failures(run).items()} == {
        0: "SystemExit",
        1: "Quit",
        2: "KeyboardInterrupt",
        3: "RecursionError",
    }


def tries(folder: Path, value: int) -> int:
    """How often a value was tried before, in any process."""
    with (folder / f"tries-{value}").open("ab") as file:
        file.write(b"x")
        return file.tell() - 1


@pytest.mark.parametrize("is_async", [False, True])
def test_transient_errors_are_tried_again(tmp_path: Path, is_async: bool) -> None:
    def flaky(value: int) -> int:
        before = tries(tmp_path, value)
        if before < value % 3:
            raise TransientError("busy")
        return value

    async def flaky_async(value: int) -> int:
        return flaky(value)

    run = Runner(policy=Policy(retries=1, backoff=0.001), engine=TWO).run(flaky_async if is_async else flaky, data(9))
    assert run.table()["attempts"].to_pylist() == [1, 2, 2] * 3
    assert failures(run) == dict.fromkeys((2, 5, 8), ("TransientError", None))


def test_deaths_and_timeouts_are_tried_again_where_that_is_declared_transient(tmp_path: Path) -> None:
    def once(value: int) -> int:
        if tries(tmp_path, value) == 0:
            if value == 1:
                os._exit(1)
            if value == 2:
                time.sleep(60)
        return value

    policy = Policy(timeout=0.5, retries=1, backoff=0.01, transient=("WorkerDied", "TaskTimeout"))
    run = Runner(policy=policy, engine=TWO).run(once, data(6))
    assert run.counts == {"completed": 6}
    assert run.table()["attempts"].to_pylist() == [1, 2, 2, 1, 1, 1]


@pytest.mark.parametrize("how", ["raises", "dies"])
def test_the_first_failure_stops_the_work_where_that_is_asked_and_it_is_resumed(tmp_path: Path, how: str) -> None:
    def careful(value: int) -> int:
        tries(tmp_path, value)
        if value == 40 and not (tmp_path / "mended").exists():
            if how == "dies":
                os._exit(1)
            raise ValueError("forty")
        elif value > 40 and not (tmp_path / "mended").exists():
            time.sleep(0.01)  # so that the end is told before all is done
        return value

    store, careful_task = MemoryStore(), task(version="1")(careful)
    with pytest.raises(Aborted, match=r"_index_ 40, replication 0: (ValueError: forty|WorkerDied: its process)"):
        Runner(store, Policy(abort_on_error=True), TWO).run(careful_task, data(200))
    assert len(list(tmp_path.iterdir())) < 200
    (tmp_path / "mended").touch()
    run = Runner(store, engine=TWO).run(careful_task, data(200))
    assert sum(run.counts.values()) == 200
    assert set(failures(run)) <= {40}
    assert sum(path.stat().st_size for path in tmp_path.glob("tries-*")) <= 202


def test_an_error_while_units_are_read_comes_through_after_what_was_in_flight() -> None:
    found = list[Made[int]]()

    def units() -> Iterator[int]:
        yield from range(2)
        raise OSError("the dataset went away")

    def call(unit: int) -> None:
        time.sleep(0.1)

    wire = UnitCodec[int](lambda unit: b"%d" % unit, int)
    recipe = Recipe(call, lambda unit, outcome: (b"", 0), wire)
    with pytest.raises(OSError, match="went away"):
        ProcessEngine(3).map_lines(units(), recipe, found.extend, Policy())
    assert sorted(found) == [(0, b"", 0, 1, ""), (1, b"", 0, 1, "")]


def test_where_processes_cannot_be_forked_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    with pytest.raises(
        SpecError, match=r"calls in processes need forks, .*; choose the engine `local`, so that calls are made in thr"
    ):
        ProcessEngine()


@pytest.mark.parametrize("workers", [0, True, "4", 1.5])
def test_a_number_of_processes_is_an_integer_of_at_least_one(workers: Any) -> None:
    with pytest.raises(SpecError, match=f"workers is {workers!r}; give an integer of at least 1"):
        ProcessEngine(workers)


# Together with the rest


@pytest.mark.slow  # how soon a process reaches its task's first line depends on who else uses the machine
def test_a_rate_holds_for_all_processes_together() -> None:
    def stamp(value: int) -> float:
        return time.monotonic()

    run = Runner(policy=Policy(rate="20/0.5 s"), engine=TWO).run(stamp, data(50))
    starts = sorted(r.responses[0] for r in run if r.responses)
    assert len(starts) == 50
    assert max(bisect_left(starts, start + 0.5) - i for i, start in enumerate(starts)) <= 20


def test_scorers_that_are_not_cheap_grade_in_processes_too() -> None:
    @scorer(version="1")
    def far(output: Any, expected: Any, example: Any) -> float:
        if example.input == 3:
            os._exit(1)
        if example.input == 4:
            raise ValueError("four")
        return float(os.getpid() != here and output == expected)

    here = os.getpid()
    rows = Dataset.from_rows([{"input": i, "expected": i, "group": "a"} for i in range(8)], attributes="group")
    run = Runner().run(lambda value: value, rows)
    table = Evaluator(engine=TWO).evaluate(run, {"far": far, "same": "exact_match"}).table("far")
    assert table["value"].to_pylist() == [1.0, 1.0, 1.0, None, None, 1.0, 1.0, 1.0]
    assert table["status"].to_pylist()[3:5] == ["failed", "failed"]
    assert "WorkerDied: its process ended with exit status 1" in table["reason"].to_pylist()[3]


def test_batches_are_graded_in_processes_as_in_threads() -> None:
    @scorer(batch=True, version="1")
    def same(outputs: list[Any], expecteds: list[Any]) -> list[bool]:
        return [output == expected for output, expected in zip(outputs, expecteds, strict=True)]

    rows = Dataset.from_rows([{"input": i, "expected": i % 2} for i in range(600)])
    run = Runner().run(lambda value: value % 3, rows)
    digests = {Evaluator(engine=engine).evaluate(run, {"same": same}).digest for engine in (LocalEngine(), TWO)}
    assert len(digests) == 1


def test_programs_asked_from_processes_end_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(
        "import json, os, sys\nopen(str(os.getpid()), 'w').close()\n"
        "for line in sys.stdin: print(json.dumps({'output': json.loads(line)['input']}), flush=True)\n"
    )
    asked = ProgramTask(command=[sys.executable, "bot.py"], folder=str(tmp_path))
    run = Runner(engine=TWO).run(asked, data(20))
    assert run.counts == {"completed": 20}
    assert len(pids(tmp_path)) == 2
    check_all_end(pids(tmp_path))


def test_a_run_in_processes_can_be_made_from_within_a_running_event_loop() -> None:
    async def cell() -> Run:
        return Runner(engine=TWO).run(work_async, data(10))

    assert asyncio.run(cell()).counts == {"completed": 9, "failed": 1}


def test_no_processes_threads_or_files_are_left_after_a_run() -> None:
    before = children()
    Runner(engine=TWO).run(work, data(10))
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    Runner(engine=TWO).run(work, data(10))
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= files
    assert children() == before


def children() -> list[str]:
    """The processes, also those that have ended and were not waited for, that this one has started."""
    return sorted(id for path in Path("/proc/self/task").glob("*/children") for id in path.read_text().split())


def test_calls_in_processes_wait_for_their_turn() -> None:
    pace = RateLimit(1, 0.3)
    began = time.monotonic()
    run = Runner(policy=Policy(rate=pace), engine=TWO).run(work, data(2))
    assert sum(run.counts.values()) == 2
    assert time.monotonic() - began >= 0.3


# Stopped from outside

RUNNING = """
import os, sys, time
from pathlib import Path
from evaluand import Dataset, DirectoryStore, ProcessEngine, Runner, task

@task(version="1")
def slow(value):
    Path(str(os.getpid())).touch()
    with open("calls", "ab") as file:
        file.write(b"%d\\n" % value)
    time.sleep(float(sys.argv[2]))
    print(f"called {value}\\n", end="", flush=True)
    return value

rows = Dataset.from_rows([{"input": i} for i in range(int(sys.argv[1]))])
run = Runner(DirectoryStore("store"), engine=ProcessEngine(2)).run(slow, rows)
print(run.digest, *run.counts.items())
"""


def running(folder: Path, n: int, seconds: float, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUNNING, str(n), str(seconds)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def calls(folder: Path) -> list[int]:
    path = folder / "calls"
    return [int(text) for text in path.read_text().split()] if path.exists() else []


def test_what_children_print_is_printed(tmp_path: Path) -> None:
    said = run_python(RUNNING, "5", "0.02", cwd=tmp_path).stdout
    assert sorted(said.splitlines()[:5]) == [f"called {i}" for i in range(5)]


@in_fork
def test_an_interrupt_tells_at_once_how_many_calls_are_waited_for(tmp_path: Path) -> None:
    counts: list[int] = []

    @task(version="1")
    def waits(number: int) -> int:
        (tmp_path / f"begun{number}").touch()
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        return number

    def interrupt() -> None:
        while not ((tmp_path / "begun0").exists() and (tmp_path / "begun1").exists()):
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def finishing(calls: int) -> None:
        counts.append(calls)
        (tmp_path / "go").touch()

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        Runner(policy=Policy(finishing=finishing), engine=TWO).run(waits, data(5))
    thread.join()
    assert counts == [2]
    assert len([*tmp_path.glob("begun*")]) == 2


@pytest.mark.parametrize("presses", [1, 2])
@in_fork
def test_an_interrupt_while_a_line_is_stored_loses_no_call(tmp_path: Path, presses: int) -> None:
    stored = []

    def call(unit: int) -> None:
        (tmp_path / str(unit)).touch()

    def done(made: Sequence[Made[int]]) -> None:
        units = [unit for unit, *_ in made]
        if 3 in units:
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)
        stored.extend(units)

    wire = UnitCodec[int](lambda unit: b"%d" % unit, int)
    with pytest.raises(KeyboardInterrupt):
        TWO.map_lines(iter(range(1000)), Recipe(call, lambda unit, outcome: (b"", 0), wire), done, Policy())
    assert 4 <= len(stored) < 1000
    assert sorted(stored) == sorted(int(path.name) for path in tmp_path.iterdir())


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The last line of a run that nobody stops."""
    return run_python(RUNNING, "80", "0", cwd=tmp_path_factory.mktemp("uninterrupted")).stdout.splitlines()[-1]


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_a_run_stopped_from_outside_leaves_no_process_and_is_resumed(
    tmp_path: Path, uninterrupted: str, by: signal.Signals
) -> None:
    run = running(tmp_path, 80, 0.02, start_new_session=True)
    end = time.monotonic() + PATIENCE
    while len(calls(tmp_path)) < 20:
        assert time.monotonic() < end
        time.sleep(0.005)
    if by == signal.SIGINT:
        os.killpg(run.pid, by)  # as a terminal does: the children get it too
    else:
        os.kill(run.pid, by)
    _, said = run.communicate(timeout=PATIENCE)
    assert run.returncode == -by
    assert said.count("Traceback") <= 1
    check_all_end(pids(tmp_path))
    assert len(calls(tmp_path)) < 80

    printed, errors = running(tmp_path, 80, 0).communicate(timeout=PATIENCE)
    assert printed.splitlines()[-1] == uninterrupted, errors
    assert set(calls(tmp_path)) == set(range(80))
    assert len(calls(tmp_path)) <= 80 + (2 if by == signal.SIGKILL else 0)
