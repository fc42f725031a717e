"""Processes that run, evaluate, judge and import, forked from one that has imported everything and done nothing.

Starting dozens of interpreters would take most of the time of the tests that kill and stop them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

NURSERY = """
import asyncio, faulthandler, json, os, sys, time, traceback
from pathlib import Path

import pyarrow as pa

from support.feedback_functions import noted_number, use
from support.random_experiment import facts, run_at_random

from evaluand.aggregation.aggregator import Measure
from evaluand.apps.recording.workers import work
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.cli import main
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.evaluation import comparison_scorer
from evaluand.matches import InformationGain, Swiss
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.feedback import Feedback
from evaluand.matches.matcher import Matcher
from evaluand.experiment import Experiment
from evaluand.metrics.accuracy import Accuracy
from evaluand.run.runner import Run, Runner
from evaluand.evaluation.scorer import scorer
from evaluand.store import garbage, leases, parquet as tables
from evaluand.store.opening import open_store
from evaluand.run.task import task

policy = Policy(concurrency=8)
pa.array([1])  # imports pandas where it is installed, once for all


def note(kind, number):
    path = os.path.join(os.environ["NOTES"], kind)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, b"%d\\n" % number)
    os.close(handle)


def result(number):
    if number % 97 == 5:
        raise ValueError(f"{number} is too hard")
    return {"answer": number * 2}


@task(version="1")
def threads(number):
    note("calls", number)
    time.sleep(0.001)
    return result(number)


@task(version="1")
async def coroutines(number):
    note("calls", number)
    await asyncio.sleep(0.002)
    return result(number)


@scorer(version="1")
def slow(output, expected, index):
    note("grades", index)
    time.sleep(0.001)
    if index % 101 == 3:
        raise ValueError("cannot tell")
    return output["answer"] == expected


def data(examples):
    return Dataset.from_rows([{"input": i, "expected": i * 2 if i % 4 else -1} for i in range(examples)])


def run(store, kind, examples):
    return Runner(store, policy).run({"threads": threads, "coroutines": coroutines}[kind], data(examples)).digest


def evaluate(store, examples):
    made = Run(store, store.ids("runs")[0])
    return Evaluator(store, policy).evaluate(made, {"slow": slow}).digest


def whole(store, examples):
    while not (Path(os.environ["NOTES"]) / "go").exists():
        time.sleep(0.001)
    measures = [Measure("slow", Accuracy())]
    made = Experiment("shared", data(examples), {"threads": threads}, {"slow": slow}, measures, policy).run(store)
    [one] = made.tasks
    return f"{one.run.id} {one.run.digest} {one.evaluation.id} {one.evaluation.digest} {made.aggregation.digest}"


def run_random(store, seed):
    return facts(run_at_random(seed, Runner(store, policy)))


def toil(store, seed, examples):
    # All steps of an experiment on rows of their own, whose name is that of the one before.
    rows = [{"input": seed * 1_000_000 + i, "expected": i % 3} for i in range(examples)]
    made = Experiment("soak", Dataset.from_rows(rows), {"steady": steady}, {"graded": graded},
        [Measure("graded", Accuracy())], policy).run(store)
    [one] = made.tasks
    return f"{one.run.digest} {one.evaluation.digest} {made.aggregation.digest}"


@task(version="1")
def steady(number):
    note("calls", number)
    time.sleep(0.004)
    return result(number)


@scorer(version="1")
def graded(output, expected, index):
    note("grades", index)
    return output["answer"] % 3 == expected


def toil_on(store, examples):
    # The same again and again in one process, which removes what it made before.
    faulthandler.cancel_dump_traceback_later()
    for seed in range(1_000_000_000):
        if (Path(os.environ["NOTES"]) / "end").exists():
            return str(seed)
        toil(store, seed, examples)
        tidy(store)
        for kind in ("calls", "grades"):
            os.unlink(os.path.join(os.environ["NOTES"], kind))


def tidy(store):
    # Removes leftovers and all that no name reaches; nothing else may work on the store.
    garbage.QUIET_SECONDS = 0
    garbage.remove(store, garbage.leftovers(store, unreferenced=True))
    return ""


def collect_old_garbage(store):
    # As `evaluand gc` does, beside others that work.
    garbage.remove(store, garbage.leftovers(store))
    return ""


def read_on(store):
    # Lists, verifies and reports whatever there is at that moment.
    from evaluand.core.errors import EvaluandError
    from evaluand.report.verification import verify
    faulthandler.cancel_dump_traceback_later()
    n = 0
    while not (Path(os.environ["NOTES"]) / "end").exists():
        for entry in store.catalog.entries():
            try:
                faults = verify(store, entry["kind"], entry["id"]) if entry["status"] == "sealed" else []
            except (EvaluandError, FileNotFoundError):
                continue  # it was removed while it was read
            if faults and store.is_sealed(entry["kind"], entry["id"]):
                raise AssertionError([str(fault) for fault in faults])
        n += 1
        time.sleep(0.5)
    return str(n)


def half_a_seal(store, kind, examples):
    # Does the work of a run and dies while its tables are written.
    append = tables.TableWriter.append
    def dies(writer, batch):
        append(writer, batch)
        if batch.num_rows and writer._table == "responses":
            os.kill(os.getpid(), 9)
    tables.TableWriter.append = dies
    return run(store, kind, examples)


def record(store, records):
    with RecordingWriter.begin(store, {"name": "app"}, judged(), mode="deferred", attempts=1000) as recording:
        for number in range(records):
            use(recording, str(number))
    return recording.id


def judge(store):
    [id] = store.ids("recordings")
    return work(store, id, feedbacks={"noted_number": judged()[0]}).manifest["digest"]


def judged():
    return [Feedback(noted_number).on_output()]


def system(number, corrected):
    # The answers of one of several systems; those of the systems 0 and 1 to every ninth question are equal.
    @task(name=f"system{number}", version=f"{number}{'c' * corrected}")
    def answer(question):
        if question % 17 == 4 and number == 2:
            raise ValueError(f"{question} is too hard")
        said = 0 if question % 9 == 8 and number < 2 else number
        return {"question": question, "system": said, "corrected": bool(corrected) and question == 1}
    return answer


@comparison_scorer(version="1")
def referee(first, second):
    question, one, other = first["question"], first["system"], second["system"]
    note("judgements", (question * 100 + one) * 100 + other)
    time.sleep(0.001)
    if (question + one + other) % 31 == 30:
        raise ValueError("cannot tell")
    if (question * one + other) % 23 == 5:
        return None
    chance = (question * 7919 + min(one, other) * 104729 + max(one, other) * 1299709) % 1000
    return "first" if chance < 1000 / (1 + 2.0 ** (other - one)) else "second"


SCHEDULES = {"all_pairs": lambda budget: "all_pairs", "swiss": Swiss, "information_gain": InformationGain}


def match(store, schedule, systems, examples, budget, corrected=0):
    # The corrected system is the last.
    tasks = [system(number, corrected and number == systems - 1) for number in range(systems)]
    runs = [Runner(store, policy).run(each, data(examples)) for each in tasks]
    labels = [f"system {number}" for number in range(systems)]
    go = Path(os.environ["NOTES"]) / "wait"
    while go.exists():
        time.sleep(0.001)
    made = Matcher(store, policy).match(runs, referee, schedule=SCHEDULES[schedule](budget), labels=labels)
    return f"{made.id} {made.digest}"


def collect_garbage(store):
    garbage.QUIET_SECONDS = 0
    garbage.remove(store, garbage.leftovers(store))
    return ""


def take_in(store, rows):
    os.chdir(os.environ["NOTES"])
    main(["--store", str(store.root), "import", "predictions.jsonl", "--dataset", "data.jsonl"], standalone_mode=False)
    [id] = store.ids("runs")
    return store.manifest("runs", id)["digest"]


def child(folder, what, *arguments):
    os.environ["NOTES"] = folder
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    lease = os.path.join(folder, "lease_seconds")
    if os.path.exists(lease):
        leases.LEASE_SECONDS = float(Path(lease).read_text())
    plain = [int(a) if a.isdigit() else a for a in arguments]
    address = os.path.join(folder, "address.json")
    place = os.path.join(folder, "store")
    if os.path.exists(address):
        place, variables = json.loads(Path(address).read_text())
        os.environ |= variables
    told = globals()[what](open_store(place), *plain)
    (Path(folder) / f"told-{os.getpid()}").write_text(told)


for text in sys.stdin:
    order, *words = text.split()
    if order == "start":
        pid = os.fork()
        if pid == 0:
            try:
                faulthandler.dump_traceback_later(120, exit=True)
                child(*words)
                code = 0
            except KeyboardInterrupt:
                code = 130
            except BaseException:
                traceback.print_exc()
                code = 1
            sys.stderr.flush()
            os._exit(code)
        print(pid, flush=True)
    elif order == "signal":
        os.kill(int(words[0]), int(words[1]))
        print(flush=True)
    else:
        print(os.waitstatus_to_exitcode(os.waitpid(int(words[0]), 0)[1]), flush=True)
"""


class Nursery:
    """Starts processes and buries them.

    Args:
        prefix: a command in which it runs, such as one that makes a namespace of process numbers.
        environment: further variables.
    """

    def __init__(self, folder: Path, *prefix: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **environment},
        )
        self.living: set[int] = set()

    def start(self, folder: Path, what: str, *arguments: object) -> int:
        """The id of a new process that does something in a folder."""
        folder.mkdir(exist_ok=True)
        pid = int(self._ask(f"start {folder} {what} {' '.join(map(str, arguments))}"))
        self.living.add(pid)
        return pid

    def send(self, pid: int, number: int) -> None:
        """Sends a signal to a process."""
        self._ask(f"signal {pid} {number}")

    def end(self, pid: int) -> int:
        """Waits for a process; how it ended (below 0: by which signal)."""
        code = int(self._ask(f"end {pid}"))
        self.living.discard(pid)
        return code

    def finish(self, folder: Path, what: str, *arguments: object) -> str:
        """What a process that is left alone has to tell."""
        pid = self.start(folder, what, *arguments)
        assert self.end(pid) == 0
        return (folder / f"told-{pid}").read_text()

    def close(self) -> None:
        for pid in self.living:
            self.send(pid, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()

    def _ask(self, text: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(text + "\n")
        return self.process.stdout.readline()


def noted(folder: Path, kind: str) -> list[int]:
    """The numbers of the calls made so far, in order."""
    try:
        return [int(text) for text in (folder / kind).read_bytes().split()]
    except FileNotFoundError:
        return []
