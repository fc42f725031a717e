"""What a match costs on the whole path: ten runs compared by a judge, in both orders, stored, rated and reported.

.venv/bin/python benchmarks/matches.py [--quick] [--million]

Each measurement runs in a separate process. The judge compares two lengths, so that nearly everything is the cost of
the path: `cheap` is called in the thread that writes, `threads` and `coroutines` as a judge that waits for a service.
`reuse` adds one run to nine: their judgements are found again. The path is to match, to rate (Bradley–Terry, intervals
by 1,000 replicates) and to write the report; reading the table again is measured, too. Times are CPU time of all
threads, in user and kernel mode; memory is the most that the process has had at once, with the runs.
"""

from __future__ import annotations

import argparse
import itertools
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
    print(
        "judge            matches    match     rate   report  whole path  beyond 10 %      read     memory", flush=True
    )
    print(
        "                          µs each  µs each  µs each     µs each      µs each   µs each        MiB", flush=True
    )
    sizes = QUICK_SIZES if options.quick else SIZES
    measured = [(kind, size) for kind in KINDS for size in sizes] + [("cheap", MILLION)] * options.million
    before: dict[str, tuple[int, float]] = {}
    for kind, size in measured:
        command = [sys.executable, __file__, "--one", kind, str(size)]
        words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        n, memory, *seconds = int(words[0]), int(words[1]), *map(float, words[2:])
        match, rating, report, read = (each / n * 1e6 for each in seconds)
        path = sum(seconds[:3])
        known = before.get(kind)
        more = "" if known is None else f"{(path - known[1]) / (n - known[0]) * 1e6:.1f}"
        before[kind] = n, path
        print(
            f"{kind:<12} {n:>11,} {match:8.1f} {rating:8.1f} {report:8.1f} {path / n * 1e6:11.1f} {more:>12}"
            f" {read:9.2f} {memory / 2**20:10.0f}",
            flush=True,
        )


def measure(kind: str, n: int) -> None:
    """Prints the number of matches, the peak of memory, and the seconds to make, rate, report and read them."""
    from evaluand import Dataset, DirectoryStore, Matcher, Policy, Runner, comparison_scorer, rate
    from evaluand.cli.report import write
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
        times = [meter.cpu()]
        matches = matcher.match(runs, judge, name="judged")
        times.append(meter.cpu())
        rate(matches, name="rated", penalty=1.0)
        times.append(meter.cpu())
        write(store, "rated", str(Path(folder) / "report.html"))
        times.append(meter.cpu())
        rows = matches.table(["a", "b", "_index_", "outcome"]).num_rows
        times.append(meter.cpu())
    print(rows, meter.peak_memory(), *(end - start for start, end in itertools.pairwise(times)))


def make_task(number: int):  # type: ignore[no-untyped-def]
    from evaluand import task

    @task(name=f"system {number}", version="1")
    def answer(text: str) -> str:
        return f"{text}: " + "word " * (2 + (number + len(text)) % 7) + str(number)

    return answer


if __name__ == "__main__":
    main()
