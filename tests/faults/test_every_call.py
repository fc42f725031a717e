"""The path run, resume, evaluate, aggregate on a disk that fails at one call, whichever that is.

The path makes one call at a time, in a thread, or three at once, as coroutines.

Each trial begins one step of the path from the store that the steps before have left. At one call to the disk, that
call fails, or all do from then on, or the process or the machine dies. Then the disk is well again, and the path is
finished in the same store:

- the step that met the fault has raised nothing but one sentence that names a file and says what to do, and has made
  no call twice;
- where the machine dies, all lines are synced but those being written;
- what the store shows has a manifest, and no handle is open that was not before;
- nothing waits for a lease that nobody has any more;
- no call whose line is in the journal is made again, every row is there once, all digests are those of an undisturbed
  path, and `verify` finds no damage.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import random
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from support.faulty_disk import DEATH, FAULTS, Fault, faulty
from support.forks import call_in_fork
from support.power import Node, WatchedDisk, unsynced_lines, write_survivors
from support.sample_store import Calls

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Run, Runner
from evaluand.aggregation.aggregator import Measure
from evaluand.core.errors import EvaluandError
from evaluand.core.system import KILLED, this_process
from evaluand.engine import keyed_work
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.scorer import scorer
from evaluand.report.verification import verify
from evaluand.run.task import task
from evaluand.store import io, journal, leases
from evaluand.store.kinds import kind_names

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not show open files")

ROWS, STOPPED_AFTER = 6, 3
NEVER = 1 << 30
WIDTHS = 1, 3
MOST_VARIED = 2
TRIED = int(os.environ.get("TRIED", 10))  # calls of each step that fail, by kind of fault

# The path

answers, grades = Calls(), Calls()


def answer(number: int) -> dict[str, Any]:
    answers.count(number)
    if number == 2:
        raise ValueError(f"{number} is too hard")
    return {"answer": number * 2}


def grade(output: Any, expected: Any, index: int) -> bool:
    grades.count(index)
    return bool(output["answer"] == expected)


@task(version="1")
def double(number: int) -> dict[str, Any]:
    return answer(number)


@task(version="1")
async def double_at_once(number: int) -> dict[str, Any]:
    answered = answer(number)
    await asyncio.sleep(0)  # others begin
    return answered


@scorer(version="1")
def right(output: Any, expected: Any, index: int) -> bool:
    return grade(output, expected, index)


@scorer(version="1")
async def right_at_once(output: Any, expected: Any, index: int) -> bool:
    graded = grade(output, expected, index)
    await asyncio.sleep(0)
    return graded


def begin(store: DirectoryStore, width: int) -> None:
    """A run that the user stops."""
    answers.most = STOPPED_AFTER
    try:
        run(store, width)
    except KeyboardInterrupt:
        pass
    finally:
        answers.most = float("inf")


def run(store: DirectoryStore, width: int) -> Run:
    rows = [{"number": n, "twice": n * 2, "even": n % 2 == 0} for n in range(ROWS)]
    data = Dataset.from_rows(rows, name="numbers", input="number", expected="twice", attributes=["even"])
    called = double if width == 1 else double_at_once
    return Runner(store, Policy(concurrency=width)).run(called, data, name="path/run")


def evaluate(store: DirectoryStore, width: int) -> Evaluation:
    scorers = {"right": right if width == 1 else right_at_once}
    evaluator = Evaluator(store, Policy(concurrency=width))
    return evaluator.evaluate(Run.open(store, "path/run"), scorers, name="path/evaluation")


def aggregate(store: DirectoryStore, width: int) -> Any:
    evaluation = Evaluation.open(store, "path/evaluation")
    return Aggregator(store).aggregate([evaluation], [Measure("right", Accuracy(), by=("even",))], name="path")


STEPS: dict[str, Callable[[DirectoryStore, int], Any]] = {
    "begin": begin,
    "resume": run,
    "evaluate": evaluate,
    "aggregate": aggregate,
}


@dataclass
class Made:
    """What a path has made, and which calls it took."""

    digests: tuple[str, ...]
    rows: list[Any]
    answers: list[int]
    grades: list[int]


def finish(root: Path, width: int) -> Made:
    answers.made, grades.made = [], []
    store = DirectoryStore(root)
    made = [run(store, width), evaluate(store, width), aggregate(store, width)]
    rows = [
        sorted(each["_index_"] for each in table.to_pylist()) for table in (made[0].table(), made[1].table("right"))
    ]
    return Made(tuple(each.digest for each in made), rows, answers.made, grades.made)


# What is undisturbed


@dataclass
class Undisturbed:
    """The path without a fault.

    Attributes:
        root: the place of the store, always the same.
        width: how many calls are made at once.
        starts: by step, a copy of the store before it.
        synced: by step, what of it would survive a loss of power.
        made: what the path makes.
        calls: by step and by which calls a fault concerns, their number.
    """

    root: Path
    width: int
    starts: dict[str, Path] = field(default_factory=dict)
    synced: dict[str, Node] = field(default_factory=dict)
    made: Made | None = None
    calls: dict[tuple[str, object], int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Undisturbed]:
    """The path for each of the widths."""
    return cache(lambda width: make_undisturbed(tmp_path_factory.mktemp("path"), width))


def make_undisturbed(folder: Path, width: int) -> Undisturbed:
    path = Undisturbed(folder / "store", width)
    path.root.mkdir()
    disk, ended = WatchedDisk(path.root), replace(this_process(), started=-1)  # a later loss of power ended it as well
    for name, step in STEPS.items():
        path.starts[name], path.synced[name] = folder / name, deepcopy(disk.top)
        shutil.copytree(path.root, path.starts[name])
        with patch.object(io, "disk", disk), patch.object(leases, "this_process", lambda: ended), steady_clock():
            step(DirectoryStore(path.root), width)
    path.made = finish(path.root, width)
    assert path.made.rows == [[*range(ROWS)]] * 2
    assert (path.made.answers, path.made.grades) == ([], [])
    return path


@contextmanager
def steady_clock() -> Iterator[None]:
    """Lets a step make the same calls each time: leases are asked, and lines synced, as if each took seconds."""
    ticks = itertools.count(0, 2.0)
    with patch.object(journal, "boot_seconds", lambda: next(ticks)):
        yield


def restore(path: Undisturbed, step: str) -> None:
    answers.made, grades.made = [], []
    shutil.rmtree(path.root)
    shutil.copytree(path.starts[step], path.root)


def count_calls(path: Undisturbed, step: str, fault: Fault) -> int:
    """How many calls of a step a fault concerns."""
    key = step, fault.concerns
    if key not in path.calls:
        restore(path, step)
        with faulty(fault, at=NEVER) as disk, steady_clock():
            STEPS[step](DirectoryStore(path.root), path.width)
        path.calls[key] = len(disk.calls)
    return path.calls[key]


# A trial


def check_fault(fault: Fault, path: Undisturbed, step: str, at: int) -> None:
    restore(path, step)
    gc.collect()
    handles, kept_before = open_files(), (kept(path.root, "runs"), kept(path.root, "evaluations"))
    with faulty(fault, at), steady_clock(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            STEPS[step](DirectoryStore(path.root), path.width)
        except EvaluandError as error:
            check_message(path.root, str(error))
    for before, made in zip(kept_before, (answers.made, grades.made), strict=True):
        assert before.isdisjoint(made)
        assert len({*made}) == len(made)
    check_open(handles)
    check_finished(path)
    check_open(handles)


def check_open(before: list[str]) -> None:
    """Nothing is open that was not before; what stood in a cycle of references is closed when it is collected."""
    if open_files() != before:
        gc.collect()
        assert open_files() == before


def open_files() -> list[str]:
    """What this process has open."""
    found = []
    for handle in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the list itself
            found.append(os.readlink(f"/proc/self/fd/{handle}"))
    return sorted(found)


def check_message(root: Path, message: str) -> None:
    """One line with the place of a file, and with what to do."""
    assert str(root) in message, message
    assert "; " in message, message
    assert "\n" not in message


def check_death(path: Undisturbed, step: str, at: int) -> None:
    restore(path, step)
    with faulty(DEATH, at), steady_clock():
        ended = call_in_fork(lambda: STEPS[step](DirectoryStore(path.root), path.width))
    check_ended(ended, path, step, at)
    check_finished(path)


def check_ended(ended: int, path: Undisturbed, step: str, at: int) -> None:
    """A process dies at its call; two threads hand over to each other, and one may make one call more or less."""
    assert ended == KILLED or (ended == 0 and at >= path.calls[step, DEATH.concerns] - MOST_VARIED)


def check_loss_of_power(path: Undisturbed, step: str, at: int) -> None:
    """The machine dies at a call, and with it what was not synced, or a part of it."""
    restore(path, step)
    disk = WatchedDisk(path.root)
    disk.top = deepcopy(path.synced[step])
    left = path.root.with_name("left")

    def lose(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        write_survivors(disk.top, left, random.Random(at), lost=[0.0, 1.0, 0.5][at % 3])
        most = ROWS if step == "evaluate" else path.width  # lines that are written together
        os._exit(KILLED if unsynced_lines(disk.top) <= most else 1)

    with faulty(Fault("loss of power", lose), at, disk), steady_clock():
        ended = call_in_fork(lambda: STEPS[step](DirectoryStore(path.root), path.width))
    check_ended(ended, path, step, at)
    if left.exists():
        shutil.rmtree(path.root)
        left.rename(path.root)
    check_finished(path)


def check_finished(path: Undisturbed) -> None:
    """Checks what the step has left, and that the path is finished from there as if nothing had been."""
    store = DirectoryStore(path.root)
    for kind in kind_names():
        for id in store.ids(kind):
            store.manifest(kind, id)
    kept_answers, kept_grades = kept(path.root, "runs"), kept(path.root, "evaluations")
    with no_waiting(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(damaged|manifest).*")
        made = finish(path.root, path.width)
    assert path.made is not None
    assert (made.digests, made.rows) == (path.made.digests, path.made.rows)
    assert kept_answers.isdisjoint(made.answers)
    assert kept_grades.isdisjoint(made.grades)
    assert len({*made.answers}) == len(made.answers)
    assert len({*made.grades}) == len(made.grades)
    store = DirectoryStore(path.root)
    faults = [fault for key in store.artifacts() for fault in verify(store, *key)]
    assert [*faults, *store.damaged_refs(), *store.strays()] == []


@contextmanager
def no_waiting() -> Iterator[None]:
    """Refuses to wait for others: nobody else is there."""

    def refuse(seconds: float) -> None:
        raise AssertionError("waits for a lease that nobody has")

    patient = SimpleNamespace(sleep=refuse, monotonic=time.monotonic)
    with patch.object(keyed_work, "time", patient), patch.object(leases, "time", patient):
        yield


def kept(root: Path, kind: str) -> set[int]:
    """The units whose line is complete; all of a sealed artifact."""
    slots: set[int] = set()
    for artifact in (root / kind).glob("*"):
        if (artifact / "manifest.json").exists():
            slots |= {*range(ROWS)}
        for segment in artifact.glob("journal/*/*.lines"):
            slots |= {orjson.loads(line[:-8])[0] for line in segment.read_bytes().split(b"\n")[:-1]}
    return slots


# The trials

CHECKS: dict[str, tuple[Fault, Callable[[Undisturbed, str, int], None]]] = {
    **{fault.name: (fault, partial(check_fault, fault)) for fault in FAULTS},
    "death": (DEATH, check_death),
    "loss of power": (DEATH, check_loss_of_power),
}


def play(path: Undisturbed, step: str, kind: str, numbers: Callable[[int], Iterable[int]]) -> None:
    """Lets a step meet a fault.

    Args:
        numbers: at which of the calls that the fault concerns, by their number.
    """
    fault, check = CHECKS[kind]
    calls = count_calls(path, step, fault)
    print(f"{step}, {path.width} at once: {kind} at some of {calls:,} calls")  # noqa: T201
    for at in numbers(calls):
        try:
            check(path, step, at)
        except BaseException as error:
            error.add_note(f"{step}, {path.width} at once: {kind} at call {at}")
            raise


@pytest.mark.parametrize("step", STEPS)
def test_a_fault_at_a_call_costs_no_result(undisturbed: Callable[[int], Undisturbed], step: str) -> None:
    drawn = random.Random(step)
    path, kind = undisturbed(drawn.choice(WIDTHS)), drawn.choice([*CHECKS])
    play(path, step, kind, lambda calls: [drawn.randrange(calls)])


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", CHECKS)
def test_a_fault_at_any_call_costs_no_result(
    undisturbed: Callable[[int], Undisturbed], step: str, kind: str, width: int
) -> None:
    drawn = random.Random(f"{step} {kind} {width}")
    play(undisturbed(width), step, kind, lambda calls: drawn.sample(range(calls), min(calls, TRIED)))
