"""What a match costs: ten runs compared by a judge, all pairs in both orders, stored on disk and read again.

.venv/bin/python benchmarks/matches.py [--quick] [--million]

Each measurement runs in a separate process. The judge compares two lengths, so that nearly everything is the cost of
the path: `cheap` is called in the thread that writes, `threads` and `coroutines` as a judge that waits for a service.
`reuse` adds one run to nine: their judgements are found again. Times are CPU time of all threads, in user and kernel
mode; memory is the most that the process has had at once, with the runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import meter

SYSTEMS = 10
PER_EXAMPLE = SYSTEMS * (SYSTEMS - 1)
SIZES, QUICK_SIZES, MILLION = (10_000, 100_000), (900, 1_800), 1_000_000
KINDS = ("cheap", "threads", "coroutines", "reuse")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few matches")
    parser.add_argument("--million", action="store_true", help="a million matches too, by the cheap judge")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "MATCHES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.one[0], int(options.one[1]))
        return
    print("judge            matches     match    read  beyond 10 %     memory", flush=True)
    print("                          µs each  µs each      µs each        MiB", flush=True)
    sizes = QUICK_SIZES if options.quick else SIZES
    measured = [(kind, size) for kind in KINDS for size in sizes] + [("cheap", MILLION)] * options.million
    before: dict[str, tuple[int, float]] = {}
    for kind, size in measured:
        command = [sys.executable, __file__, "--one", kind, str(size)]
        words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        n, seconds, read, memory = int(words[0]), float(words[1]), float(words[2]), int(words[3])
        known = before.get(kind)
        more = "" if known is None else f"{(seconds - known[1]) / (n - known[0]) * 1e6:12.1f}"
        before[kind] = n, seconds
        print(
            f"{kind:<12} {n:>11,} {seconds / n * 1e6:9.1f} {read / n * 1e6:8.2f} {more:>12} {memory / 2**20:10.0f}",
            flush=True,
        )


def measure(kind: str, n: int) -> None:
    """Prints the number of matches, seconds to make and to read them, and the peak of memory."""
    from evaluand import Dataset, DirectoryStore, Matcher, Policy, Runner, comparison_scorer
    from evaluand.evaluation import ComparisonScorer

    is_cheap = kind in ("cheap", "reuse")

    class Shorter(ComparisonScorer):
        kind, cheap = "shorter", is_cheap

        def compare(self, first: str, second: str) -> str:
            return "first" if len(first) < len(second) else "second"

    @comparison_scorer(version="1")
    async def shorter_soon(first: str, second: str) -> str:
        return "first" if len(first) < len(second) else "second"

    judge = shorter_soon if kind == "coroutines" else Shorter()
    examples = n // PER_EXAMPLE
    with tempfile.TemporaryDirectory() as folder:
        store = DirectoryStore(Path(folder) / "store")
        data = Dataset.from_rows([{"input": f"Question {number:08}"} for number in range(examples)])
        runner = Runner(store, Policy(concurrency=64))
        runs = [runner.run(make_task(number), data, name=f"system {number}") for number in range(SYSTEMS)]
        matcher = Matcher(store, Policy(concurrency=64))
        if kind == "reuse":
            matcher.match(runs[1:], judge)
        start = meter.cpu()
        matches = matcher.match(runs, judge)
        made = meter.cpu() - start
        start = meter.cpu()
        rows = matches.table(["a", "b", "_index_", "outcome"]).num_rows
        read = meter.cpu() - start
    print(rows, made, read, meter.peak_memory())


def make_task(number: int):  # type: ignore[no-untyped-def]
    from evaluand import task

    @task(name=f"system {number}", version="1")
    def answer(text: str) -> str:
        return f"{text}: " + "word " * (2 + (number + len(text)) % 7) + str(number)

    return answer


if __name__ == "__main__":
    main()
