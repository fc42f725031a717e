"""The cost of trade-offs, compared with fairical on the same scores.

    python benchmarks/tradeoff.py                everything; fairical is installed into a temporary environment
    python benchmarks/tradeoff.py --quick        few rows, without fairical, some seconds
    python benchmarks/tradeoff.py --peers DIR    install fairical's environment into DIR and reuse it

Each runs in a separate process, in turn. The table has the median and the smallest CPU time of all repetitions. The
times include neither making nor reading the data: both get Python lists.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from children import clean_environment, environment, run, say
from meter import speed

OURS, PEER = "ours", "fairical"
ROUNDS, REPEATS, ENOUGH = 3, 7, 10.0  # seconds after which nothing is repeated
METRICS = ["acc", "eod+a", "eod+b"]
OBJECTIVES = ["accuracy", "equalized_odds difference by a", "equalized_odds difference by b"]
Work = Callable[[], float]


class Case(NamedTuple):
    """One thing computed.

    Attributes:
        name: shown in the table.
        ours: makes the data, at a share of their size, and gives what is timed.
        theirs: the same by fairical, if it can.
        times: how many times as much fairical should take at least.
        most: how many seconds ours may take.
    """

    name: str
    ours: Callable[[float], Work]
    theirs: Callable[[], Work] | None = None
    times: float | None = None
    most: float | None = None


def document(n: int, models: int) -> dict[str, Any]:
    """A score file of so many samples, with attributes of two and of three groups."""
    random = np.random.default_rng(0)
    truth = random.random(n) < 0.4
    return {
        "scores": [np.clip(truth * 0.3 + random.random(n) * 0.7, 0, 1).round(6).tolist() for _ in range(models)],
        "ground-truth": truth.astype(int).tolist(),
        "attributes": {"a": random.choice(list("fm"), n).tolist(), "b": random.choice(list("xyz"), n).tolist()},
    }


def points(n: int) -> dict[str, Any]:
    """A solution file of points of which none dominates another: on a sphere about the worst."""
    at = np.abs(np.random.default_rng(0).normal(size=(n, 3)))
    at *= 0.9 / np.linalg.norm(at, axis=1, keepdims=True)
    metadata = {"identifiers": [0] * n, "identifier-names": ["m"], "thresholds": [0.5] * n}
    return {"points": dict(zip(["acc", "dpr+a", "dpr+b"], at.T.tolist(), strict=True)), "metadata": metadata}


def grid(n: int) -> list[float]:
    return [float(each) for each in np.linspace(0, 1, n)]


def small(share: float = 1.0) -> tuple[dict[str, Any], list[float]]:
    return document(round(1000 * share), 5), grid(100)


def our_solutions(share: float) -> Work:
    from evaluand.interop.fairical import Scores

    given, thresholds = small(share)
    scores = Scores.from_dict(given)
    return lambda: sum(scores.solutions_a_posteriori(METRICS, thresholds)["acc"])


def their_solutions() -> Work:
    from fairical.scores import Scores

    given, thresholds = small()
    scores = Scores(**given)
    return lambda: sum(scores.solutions_a_posteriori(METRICS, thresholds)["acc"])


def our_indicators(share: float) -> Work:
    from evaluand.interop.fairical import Solutions

    given = points(round(2000 * share))
    return lambda: Solutions.from_dict(given).indicators()["hv"]


def their_indicators() -> Work:
    from fairical.solutions import Solutions

    given = points(2000)
    return lambda: float(Solutions(**given).indicators()["hv"])


def many(share: float) -> Any:
    from evaluand.tradeoff import Confidences

    given = document(round(100_000 * share), 1)
    models = {"m": given["scores"][0]}
    return Confidences.read(given["ground-truth"], models, given["attributes"])


def solved(share: float) -> Work:
    from evaluand.tradeoff import solve

    given = many(share)
    return lambda: float(solve(given, OBJECTIVES, 1000)["accuracy"].sum())


def evaluated(share: float) -> Work:
    from evaluand.tradeoff import solve

    found = solve(many(share), OBJECTIVES, 1000)
    return lambda: len(found.front()) + found.indicators()["hv"]


def with_intervals(share: float) -> Work:
    from evaluand.tradeoff import solve

    found = solve(many(share), OBJECTIVES, 1000)
    return lambda: float(np.nansum(found.with_intervals().ends.low))  # type: ignore[union-attr]


def banded(share: float) -> Work:
    from evaluand.tradeoff import solve

    found = solve(many(share), OBJECTIVES[:2], 100)
    return lambda: float(np.nansum(found.bands(replicates=1000).low))


def volumes(share: float) -> Work:
    from evaluand.tradeoff import solve

    found = solve(many(share), OBJECTIVES[:2], 100)
    return lambda: found.hypervolume_interval(replicates=1000)[0]


CASES = [
    Case("solve: 1e3 samples, 5 models, 2 attributes, 100 thresholds", our_solutions, their_solutions, 1000),
    Case("indicators of 2,000 points, 3 objectives", our_indicators, their_indicators, 500),
    Case("solve: 1e5 samples, 2 attributes, 1,000 thresholds", solved, most=1.0),
    Case("  front and indicators of these", evaluated, most=0.2),
    Case("  an interval for each of these", with_intervals),
    Case("bands: 1e5 samples, 100 thresholds, 1,000 replicates", banded, most=1.0),
    Case("  interval of the hypervolume of these", volumes),
]


def main() -> None:
    options = _options()
    if options.measure:
        print(json.dumps({"cases": _measured(options), "speed": speed()}))
        return
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as name:
        pythons = {OURS: Path(sys.executable)}
        if not options.quick:
            pythons |= environment(
                options.peers or Path(name) / "peers", ["fairical==2.0.3"], {PEER: "fairical.scores"}
            )
        results: dict[str, list[dict[str, Any]]] = {who: [] for who in pythons}
        for turn in range(options.rounds):
            for who, python in pythons.items():
                say(f"{who}, {turn + 1} of {options.rounds}")
                passed = ["--measure", who, *["--quick"] * options.quick]
                results[who].append(run([str(python), str(Path(__file__).resolve()), *passed], clean_environment()))
    _print(results, not options.quick)
    if options.json:
        options.json.write_text(json.dumps(results) + "\n")


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of each repetition, and the result."""
    found = {}
    for case in CASES:
        if options.measure == PEER and not case.theirs:
            continue
        work = case.theirs() if options.measure == PEER and case.theirs else case.ours(0.01 if options.quick else 1.0)
        times, value = list[float](), 0.0
        while len(times) < REPEATS and sum(times) < ENOUGH:
            started = time.process_time()
            value = work()
            times.append(time.process_time() - started)
        found[case.name] = {"times": times, "value": value}
    return found


def _print(results: dict[str, list[dict[str, Any]]], compared: bool) -> None:
    """Prints the times; targets are of all rows, and not compared with fewer."""
    speeds = sorted(result["speed"] for each in results.values() for result in each)
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} CPUs")
    print(
        f"a fixed piece of work took {statistics.median(speeds) * 1e3:.0f} ms of CPU time"
        f" ({speeds[0] * 1e3:.0f} to {speeds[-1] * 1e3:.0f} in {len(speeds)} processes)\n"
    )
    lines = [["s of CPU time: median (smallest)", OURS, PEER, "ratio", "target", "met?"]]
    for case in CASES:
        ours, theirs = (_times(results, who, case) for who in (OURS, PEER))
        line, target, met = [case.name, _figure(ours), "", ""], "", ""
        if theirs:
            ratio = statistics.median(theirs) / statistics.median(ours)
            line[2:] = [_figure(theirs), f"{ratio:,.0f}× ({min(theirs) / min(ours):,.0f}×)"]
            target, met = f"≥ {case.times:,.0f}×", "yes" if ratio >= (case.times or 0) else "NO"
        elif case.most is not None:
            target, met = f"≤ {case.most:g} s", "yes" if statistics.median(ours) <= case.most else "NO"
        lines.append([*line, *((target, met) if compared else ("", ""))])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
    for case in CASES:
        values = {
            who: each[0]["cases"][case.name]["value"] for who, each in results.items() if _times(results, who, case)
        }
        if max(values.values()) - min(values.values()) > 1e-9:
            print(f"{case.name}: results differ: {values}")


def _times(results: dict[str, list[dict[str, Any]]], who: str, case: Case) -> list[float]:
    return [each for result in results.get(who, []) for each in result["cases"].get(case.name, {"times": []})["times"]]


def _figure(times: list[float]) -> str:
    return f"{statistics.median(times):.3g} ({min(times):.3g})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows, once, and no peer")
    parser.add_argument("--rounds", type=int, help=f"processes of each; {ROUNDS}, with --quick 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="the peer's environment; made if it is not there")
    parser.add_argument("--measure", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    return options


if __name__ == "__main__":
    main()
