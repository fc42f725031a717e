"""What workers of a Ray cluster cost: the share of the ideal time that calls take, and the driver's CPU time per call.

    python benchmarks/engines.py [--calls 10000] [--workers 4] [--address ADDRESS]

Two cases. Calls that wait 50 ms, 16 at once in each worker: the ideal is the time of all calls divided by those at
once. Calls that compute 5 ms in one worker, one at a time: the ideal is the same calls in a plain loop, measured in
turn. The CPU time of the driver is that of this process from the request of a run to its sealed tables; workers are
started before.

Ray's agents and the workers need processors too: with less than one free for each, this measures the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from evaluand import Dataset, DirectoryStore, Policy, Runner
from evaluand.engine.engines.ray import RayEngine

WAIT, WORK, AT_ONCE = 0.05, 0.005, 16


def waiting(number: int) -> int:
    time.sleep(WAIT)
    return number


async def waiting_async(number: int) -> int:
    await asyncio.sleep(WAIT)
    return number


def computing(steps: int) -> int:
    total = 0
    for step in range(steps):
        total += step & 7
    return total


def steps_in(seconds: float) -> int:
    """How many steps of work take so long on this machine."""
    began = time.process_time()
    computing(2_000_000)
    return int(2_000_000 * seconds / (time.process_time() - began))


def run(engine: RayEngine, task: Any, rows: list[dict[str, int]], at_once: int) -> tuple[float, float]:
    """Seconds by the clock on the wall, and of CPU time in this process."""
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(DirectoryStore(Path(folder)), Policy(concurrency=at_once), engine)
        dataset = Dataset.from_rows(rows).save(runner.store)
        wall, cpu = time.perf_counter(), time.process_time()
        made = runner.run(task, dataset)
        assert made.counts == {"completed": len(rows)}
        return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--address")
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    measure_waiting(RayEngine(chosen.workers, chosen.address), chosen.calls)
    measure_computing(RayEngine(1, chosen.address), chosen.rounds)


def measure_waiting(engine: RayEngine, calls: int) -> None:
    rows, ideal = [{"input": number} for number in range(calls)], calls * WAIT / (engine.size * AT_ONCE)
    for task in (waiting, waiting_async):
        run(engine, task, rows[:640], AT_ONCE)  # starts the workers
        wall, cpu = run(engine, task, rows, AT_ONCE)
        print(
            f"{calls:,} calls of {WAIT * 1e3:g} ms ({task.__name__}), {engine.size} workers:"
            f" {ideal / wall:.2f} of the ideal, driver {cpu / calls * 1e6:.0f} µs of CPU time per call",
            flush=True,
        )


def measure_computing(engine: RayEngine, rounds: int, calls: int = 1_000) -> None:
    steps, ratios = steps_in(WORK), list[float]()
    rows = [{"input": steps + number % 2} for number in range(calls)]
    run(engine, computing, rows[:8], 1)
    for _ in range(rounds):
        began = time.perf_counter()
        for row in rows:
            computing(row["input"])
        alone = time.perf_counter() - began
        ratios.append(alone / run(engine, computing, rows, 1)[0])
    share = statistics.median(ratios)
    print(f"{calls:,} calls of {WORK * 1e3:g} ms of computing, one worker: {share:.2f} of the ideal", flush=True)


if __name__ == "__main__":
    main()
