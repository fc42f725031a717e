"""Several drivers on one store: what an evaluation costs them together, and how much sooner a run ends.

    python benchmarks/drivers.py [--rows 100000] [--rounds 3] [--quick]

Drivers are processes that do the same work on one store, as `evaluand run` in several terminals does.

- *Evaluation*: the CPU time of all drivers, with imports, for a scorer in Python of some 20 µs. Where one driver is
  measured, a process that only computes uses the other processor, since two at once slow each other down.
- *Run*: 400 calls of 100 ms, 8 at once in each driver, from the first call to the sealed tables; a driver that ends
  is one that has found them sealed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluand import Dataset, DirectoryStore, Evaluator, Policy, Runner
from evaluand.evaluation.scorer import scorer
from evaluand.run.runner import Run
from evaluand.run.task import task

CALLS, SECONDS, AT_ONCE = 400, 0.1, 8


@task(version="1")
async def echo(value: str) -> str:
    return value


@task(version="1")
def waiting(value: str) -> str:
    time.sleep(SECONDS)
    return value


@scorer(version="1")
def adding(output: Any, expected: Any, example: Any) -> float:
    total = 0
    for number in range(200):
        total += number
    return float(output == expected)


def drive(folder: str, work: str) -> None:
    """What one driver does: prints the digest, and the seconds from the first call to its end."""
    store = DirectoryStore(Path(folder))
    [dataset] = store.ids("datasets")
    began = time.perf_counter()
    if work == "run":
        made = Runner(store, Policy(concurrency=AT_ONCE)).run(waiting, Dataset.stored(store, dataset))
        digest = made.digest
    else:
        [run] = store.ids("runs")
        digest = Evaluator(store).evaluate(Run(store, run), {"adding": adding}).manifest["digest"]
    print(json.dumps([digest, time.perf_counter() - began]))


def measure(prepared: Path, work: str, drivers: int) -> tuple[float, float, set[str]]:
    """CPU seconds of some drivers, the longest time of one by the clock, and their digests."""
    with tempfile.TemporaryDirectory() as top:
        folder = str(shutil.copytree(prepared, Path(top, "store")))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with other_work(drivers == 1 and work == "evaluate"):
            command = [sys.executable, __file__, "--drive", folder, work]
            children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(drivers)]
            found = [json.loads(child.communicate()[0]) for child in children]
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, max(seconds for _, seconds in found), {digest for digest, _ in found}


@contextmanager
def other_work(is_wanted: bool) -> Iterator[None]:
    """A process that computes during the block."""
    if not is_wanted:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def prepare(folder: Path, rows: int, *, is_run: bool) -> Path:
    """A store with a dataset, and a run of it."""
    store = DirectoryStore(folder)
    dataset = Dataset.from_rows([{"input": str(i), "expected": str(i)} for i in range(rows)]).save(store)
    if is_run:
        Runner(store, Policy(concurrency=64)).run(echo, dataset)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="10,000 rows, once")
    parser.add_argument("--drive", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.drive:
        return drive(*chosen.drive)
    rows, rounds = (10_000, 1) if chosen.quick else (chosen.rows, chosen.rounds)
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as top:
        graded = prepare(Path(top, "graded"), rows, is_run=True)
        called = prepare(Path(top, "called"), CALLS, is_run=False)
        for place, work, several in ((graded, "evaluate", (1, 2, 4)), (called, "run", (1, 2))):
            found: dict[int, list[tuple[float, float]]] = {drivers: [] for drivers in several}
            digests = set[str]()
            for _ in range(rounds):
                for drivers in several:
                    cpu, wall, seen = measure(place, work, drivers)
                    found[drivers].append((cpu, wall))
                    digests |= seen
            assert len(digests) == 1
            report(work, found, rows)
    return None


def report(work: str, found: dict[int, list[tuple[float, float]]], rows: int) -> None:
    number, unit = (0, "s of CPU time") if work == "evaluate" else (1, "s by the clock")
    what = f"evaluation of {rows:,} rows" if work == "evaluate" else f"run of {CALLS} calls of {SECONDS * 1e3:g} ms"
    medians = {drivers: statistics.median(each[number] for each in pairs) for drivers, pairs in found.items()}
    for drivers, median in medians.items():
        print(f"{what}, {drivers} drivers: {median:.2f} {unit}, {median / medians[1]:.2f}×", flush=True)


if __name__ == "__main__":
    main()
