"""How much processes gain for a task that computes: about 5 ms of pure Python a call, in one process and in several.
And what calls that wait take: of a coroutine that waits 100 ms, 16 at once in each process, and in this one alone.

    python benchmarks/processes.py [--examples 2000] [--rounds 3] [--processes 2]

The two ways take turns, so that whoever else uses the machine slows both down. The median ratio is what counts, and it
says something only where as many cores as processes are free.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time

from evaluand import Dataset, Policy, ProcessEngine, Runner
from evaluand.engine.engines.local import LocalEngine

WORK = 5e-3  # seconds of CPU time a call takes
WAIT = 0.1  # seconds that a call waits


def steps_in(seconds: float) -> int:
    """How many steps of work take so long on this machine."""
    began = time.process_time()
    _work(2_000_000)
    return int(2_000_000 * seconds / (time.process_time() - began))


def _work(steps: int) -> int:
    total = 0
    for step in range(steps):
        total += step & 7
    return total


def seconds_for(dataset: Dataset, steps: int, processes: int) -> float:
    """How long a run takes by the clock on the wall."""

    def task(number: int) -> int:
        return _work(steps) + number

    began = time.perf_counter()
    run = Runner(engine=ProcessEngine(processes)).run(task, dataset)
    assert run.counts == {"completed": len(dataset)}
    return time.perf_counter() - began


async def waiting(number: int) -> int:
    await asyncio.sleep(WAIT)
    return number


def measure_waiting(processes: int, calls: int = 200) -> None:
    rows = Dataset.from_rows([{"input": number} for number in range(calls)])
    for name, engine in (("this process", LocalEngine()), (f"{processes} processes", ProcessEngine(processes))):
        began = time.perf_counter()
        Runner(policy=Policy(concurrency=16), engine=engine).run(waiting, rows)
        print(f"{calls} calls that wait {WAIT * 1e3:g} ms, 16 at once, in {name}: {time.perf_counter() - began:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    dataset = Dataset.from_rows([{"input": i} for i in range(chosen.examples)])
    steps = steps_in(WORK)
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; {chosen.examples} calls of about {WORK * 1e3:g} ms")
    ratios = []
    for number in range(chosen.rounds):
        one, several = (seconds_for(dataset, steps, n) for n in (1, chosen.processes))
        ratios.append(one / several)
        print(f"round {number + 1}: in 1 {one:.2f} s, in {chosen.processes} {several:.2f} s: {ratios[-1]:.2f}×")
    print(f"median: {statistics.median(ratios):.2f}× (load now {os.getloadavg()[0]:.1f})")
    measure_waiting(chosen.processes)


if __name__ == "__main__":
    main()
