"""What the path costs in this checkout and in another, run in turn: `python benchmarks/versions.py ../earlier`.

    git worktree add ../earlier COMMIT
    python benchmarks/versions.py ../earlier              # 20,000 examples, 24 turns: five minutes
    python benchmarks/versions.py ../earlier --turns 6

Both are measured by the `ours.py` of this checkout, in one environment, with one or the other package on the path.
A turn runs both, in changing order, so that whatever else the machine does falls on both; its ratio is that of their
CPU times. A busy machine hardly changes the median of these ratios, and the smallest times even less.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from children import clean_environment, run, say

HERE = Path(__file__).parent
STEPS = ("dataset", "run", "evaluate", "aggregate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the folder of another checkout")
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--mode", choices=("async", "threads"), default="async")
    options = parser.parse_args()
    sources = {"this": HERE.parent / "src", "other": options.other.resolve() / "src"}
    if not (sources["other"] / "evaluand").is_dir():
        parser.error(f"{options.other}: is not a checkout of evaluand")
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        examples = str(Path(folder, "examples.parquet"))
        _measure(sources["this"], measure="examples", file=examples, n=options.examples)
        turns = [_turn(sources, examples, options.mode, number) for number in range(options.turns)]
    _print(turns, options.examples)


def _turn(sources: dict[str, Path], examples: str, mode: str, number: int) -> dict[str, Any]:
    say(f"turn {number + 1}")
    measured = {}
    for name in sorted(sources, reverse=number % 2 == 1):
        with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as store:
            measured[name] = _measure(sources[name], measure="path", file=examples, folder=store, mode=mode)
    return measured


def _measure(source: Path, **request: Any) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "ours.py"), json.dumps(request)]
    return run(command, clean_environment() | {"PYTHONPATH": str(source)})


def _print(turns: list[dict[str, Any]], examples: int) -> None:
    print(f"CPU time per example, µs, of {examples:,} examples in {len(turns)} turns\n")
    print(f"{'':<12}{'smallest':>20}{'median':>20}{'median of ratios':>20}")
    print(f"{'':<12}" + f"{'this':>10}{'other':>10}" * 2)
    for step in ("all", *STEPS):
        times = {
            name: [
                (turn[name]["cpu"] if step == "all" else turn[name]["cpu_of"][step]) * 1e6 / examples for turn in turns
            ]
            for name in ("this", "other")
        }
        cells = [f"{reduce(times[name]):>10.2f}" for reduce in (min, statistics.median) for name in ("this", "other")]
        ratio = statistics.median(this / other for this, other in zip(times["this"], times["other"], strict=True))
        print(f"{step:<12}{''.join(cells)}{ratio:>20.3f}")


if __name__ == "__main__":
    main()
