"""What grading, summarising and tracing back of stored outputs cost: `python benchmarks/steps.py`.

    python benchmarks/steps.py                    # 10,000 to 1,000,000 outputs: ten minutes
    python benchmarks/steps.py --quick            # a hundredth of it: some seconds
    python benchmarks/steps.py --only interop     # one part alone: native, interop
    python benchmarks/steps.py --peers DIR        # the Pharia SDKs too, in an environment in DIR, made where it is not

Each measurement is a process of its own, over a run that an earlier process has stored. One example is a text of 40
characters that the task gave back after opening a span; a grade is that of exact match. Times are CPU time of all
threads in user and kernel mode, and memory is `ru_maxrss`, with Python, NumPy and Arrow in it.

The interop part is the whole path by the names of the Pharia SDKs, with repositories on disk and in memory and a trace
of each example: the code of `peers/pharia.py`, run with the SDKs and with `evaluand.interop.pharia` in turn.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from children import clean_environment, environment, run, say
from measures import print_measures
from meter import cpu, peak_memory, speed

SIZES = (10_000, 100_000, 1_000_000)
LINEAGE = 100_000
LINEAGE_SECONDS, MEMORY, LINEAR = 2.0, 1 << 30, 1.25
INTEROP, TIMES_LESS = 10_000, 5.0
IN_MEMORY = 1000
SDKS = ("pharia-inference-sdk==0.1.6", "pharia-studio-sdk==0.1.7")
ROWS = 10_000


def main() -> None:
    options = _options()
    if options.measure:
        request = json.loads(options.measure)
        print(json.dumps(MEASURES[request.pop("of")](**request) | {"speed": speed()}))
        return
    share = 100 if options.quick else 1
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-", dir=options.folder) as name:
        for part in PARTS:
            if options.only in (None, part.__name__):
                results |= part(Path(name), share)
        if options.peers and options.only in (None, "interop"):
            results |= sdks(Path(name), share, options.peers)
    lines = [line for part in LINES for line in part(results)]
    print_measures([each["speed"] for each in results.values()], lines)
    if options.json:
        options.json.write_text(json.dumps(results) + "\n")


# ---------------------------------------------------------------- the native steps


def native(folder: Path, share: int) -> dict[str, Any]:
    results = {}
    for size in (n // share for n in SIZES):
        store = str(folder / f"native-{size}")
        say(f"storing {size:,} outputs")
        measured("stored", folder=store, n=size)
        say(f"evaluating and aggregating {size:,} outputs")
        results[f"graded {size}"] = measured("graded", folder=store)
        if size == LINEAGE // share:
            say(f"lineage of {size:,} examples")
            results["lineage"] = measured("traced", folder=store)
    return results


def stored(folder: str, n: int) -> dict[str, Any]:
    """A run of so many examples, from Parquet, so that no process holds them all."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from ours import echo_async
    from workload import example

    from evaluand import Dataset, DirectoryStore, Runner

    schema = pa.schema([("input", pa.string()), ("expected", pa.string()), ("topic", pa.string())])
    file = f"{folder}.parquet"
    with pq.ParquetWriter(file, schema) as writer:
        for start in range(0, n, ROWS):
            numbers = range(start, min(start + ROWS, n))
            texts, expected = zip(*map(example, numbers), strict=True)
            topics = [f"topic {number % 7}" for number in numbers]
            columns = [pa.array(column, pa.string()) for column in (texts, expected, topics)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    made = Runner(DirectoryStore(folder)).run(echo_async, Dataset.from_file(file, attributes="topic"), name="run")
    os.unlink(file)
    return {"n": sum(made.counts.values())}


def graded(folder: str) -> dict[str, Any]:
    from evaluand import Accuracy, Aggregator, DirectoryStore, Evaluator, Mean, Measure, Run
    from evaluand.evaluation.scorers.exact_match import ExactMatch

    store = DirectoryStore(folder)
    (id,) = store.ids("runs")
    before = cpu()
    evaluation = Evaluator().evaluate(Run(store, id), {"exact": ExactMatch()}, name="graded")
    between = cpu()
    measures = [Measure("exact", Accuracy(), by=("topic",)), Measure("exact", Mean(range=(0, 1)))]
    table = Aggregator().aggregate([evaluation], measures).table()
    found = {"evaluate": between - before, "aggregate": cpu() - between, "memory": peak_memory()}
    return found | {"n": table["n"][0].as_py(), "value": table["value"][0].as_py()}


def traced(folder: str) -> dict[str, Any]:
    """From all scores back to examples and responses, and from the value of a group to its lowest twenty."""
    from evaluand import Aggregation, DirectoryStore, Evaluation
    from evaluand.report.lineage import lineage_of_scores, lineage_of_value

    store = DirectoryStore(folder)
    evaluation = Evaluation(store, store.ids("evaluations")[0])
    aggregation = Aggregation(store, store.ids("aggregations")[0])
    before = cpu()
    table = lineage_of_scores(evaluation).table()
    found = {"table": cpu() - before, "n": table.num_rows}
    before = cpu()
    assert lineage_of_value(aggregation, 1).lowest(20).table().num_rows == 20
    found["lowest"] = cpu() - before
    before = cpu()
    assert lineage_of_scores([evaluation, evaluation]).disagreements().table().num_rows == 0
    found["disagreements"] = cpu() - before
    before = cpu()
    assert len(lineage_of_scores(evaluation).to_pandas()) == table.num_rows
    return found | {"pandas": cpu() - before, "memory": peak_memory()}


def native_lines(results: dict[str, Any]) -> list[list[str]]:
    lines = []
    if traced := results.get("lineage"):
        rows = f"{traced['n']:,} examples"
        lines.append(_line(f"lineage table of {rows}", traced["table"], LINEAGE_SECONDS, "s"))
        lines += [
            [f"  {what}", f"{traced[name]:.2f} s", "", ""]
            for name, what in (
                ("pandas", "the same as a DataFrame"),
                ("lowest", "the lowest 20 behind the value of a group"),
                ("disagreements", "disagreements of two evaluations"),
            )
        ]
        lines.append(_memory(traced))
    found = [each for name, each in results.items() if name.startswith("graded")]
    for each in found:
        per = (each["evaluate"] + each["aggregate"]) / each["n"] * 1e6
        lines.append([f"evaluate and aggregate {each['n']:,} outputs", f"{per:.1f} µs each", "", ""])
        lines.append(_line("  peak memory", each["memory"] / 2**20, MEMORY / 2**20, "MiB"))
    each_more = [(low, high, _one_more(low, high)) for low, high in itertools.pairwise(found)]
    for low, high, cost in each_more:
        lines.append([f"one more, {low['n']:,} → {high['n']:,}", f"{cost * 1e6:.1f} µs", "", ""])
    if len(each_more) > 1:
        lines.append(_line("  the last of these by the first", each_more[-1][2] / each_more[0][2], LINEAR, "×"))
    return lines


def _one_more(low: dict[str, Any], high: dict[str, Any]) -> float:
    """CPU seconds that one more output costs between two sizes; alike at all sizes where cost is linear."""
    more = high["evaluate"] + high["aggregate"] - low["evaluate"] - low["aggregate"]
    return float(more / (high["n"] - low["n"]))


# ---------------------------------------------------------------- the path by the Pharia SDKs' names


def interop(folder: Path, share: int) -> dict[str, Any]:
    n = INTEROP // share
    say(f"the path by the names of the Pharia SDKs, {n:,} examples")
    ours = measured("path_by_their_names", n=n, folder=str(folder / "interop"))
    in_memory = measured("path_by_their_names", n=IN_MEMORY, folder=str(folder / "none"), memory=True)
    return {"interop": ours, "interop in memory": in_memory}


def sdks(folder: Path, share: int, peers: Path) -> dict[str, Any]:
    n = INTEROP // share
    found = environment(peers, SDKS, {"pharia-studio-sdk": "pharia_studio_sdk.evaluation"})
    if not found:
        return {}
    say(f"the same with the SDKs themselves, {n:,} examples")
    path = {"PYTHONPATH": str(Path(__file__).resolve().parent)}

    def measured_sdks(**request: Any) -> dict[str, Any]:
        command = [str(found["pharia-studio-sdk"]), str(PEER), json.dumps(request)]
        return run(command, clean_environment() | path)

    theirs = measured_sdks(n=n, folder=str(folder / "sdks"))
    in_memory = measured_sdks(n=IN_MEMORY, folder=str(folder / "none"), memory=True)
    return {"sdks": theirs, "sdks in memory": in_memory}


def path_by_their_names(n: int, folder: str, memory: bool = False) -> dict[str, Any]:
    """`peers/pharia.py` with its import lines changed."""
    from evaluand.interop import pharia

    sys.modules["pharia_inference_sdk.core"] = sys.modules["pharia_studio_sdk.evaluation"] = pharia
    for name in ("pharia_inference_sdk", "pharia_studio_sdk"):
        sys.modules[name] = pharia
    sys.path.insert(0, str(PEER.parent))
    measure: dict[str, Any] = importlib.import_module(PEER.stem).measure(n, folder, memory)
    return measure


def interop_lines(results: dict[str, Any]) -> list[list[str]]:
    if not (ours := results.get("interop")):
        return []
    lines = [[f"the path by the SDKs' names, {ours['n']:,} examples", f"{ours['cpu']:.2f} s", "", ""]]
    lines += [[f"  {step}", f"{seconds:.2f} s", "", ""] for step, seconds in ours["cpu_of"].items()]
    lines += [["  files", f"{ours['files']:,}", "", ""], _memory(ours)]
    if theirs := results.get("sdks"):
        times = theirs["cpu"] / ours["cpu"]
        lines.append([f"  the SDKs themselves: {theirs['files']:,} files", f"{theirs['cpu']:.2f} s", "", ""])
        lines.append(_memory(theirs))
        lines.append(
            ["  as many times as ours", f"{times:.1f} ×", f"≥ {TIMES_LESS:g} ×", "yes" if times >= TIMES_LESS else "NO"]
        )
    return lines + _in_memory_lines(results)


def _in_memory_lines(results: dict[str, Any]) -> list[list[str]]:
    ours, theirs = (results.get(f"{name} in memory") for name in ("interop", "sdks"))
    if not ours:
        return []
    each = ours["cpu"] / ours["n"] * 1e3
    lines = [[f"the same in memory, {ours['n']:,} examples", f"{each:.3f} ms each", "", ""]]
    if theirs:
        lines.append(_line("  as a share of the SDKs", ours["cpu"] / theirs["cpu"], 1.0, "×"))
    return lines


PEER = Path(__file__).resolve().parent / "peers" / "pharia.py"
MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    each.__name__: each for each in (stored, graded, traced, path_by_their_names)
}
PARTS: list[Callable[[Path, int], dict[str, Any]]] = [native, interop]
LINES: list[Callable[[dict[str, Any]], list[list[str]]]] = [native_lines, interop_lines]


def measured(of: str, **request: Any) -> dict[str, Any]:
    """What one measurement gives, in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", json.dumps({"of": of, **request})]
    return run(command, clean_environment())


def _line(what: str, figure: float, most: float, unit: str) -> list[str]:
    return [what, f"{figure:.3g} {unit}", f"≤ {most:g} {unit}", "yes" if figure <= most else "NO"]


def _memory(found: dict[str, Any]) -> list[str]:
    return ["  peak memory", f"{found['memory'] / 2**20:.0f} MiB", "", ""]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of everything")
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS], help="one part alone")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="measure the Pharia SDKs in the environment in DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where stores are made, and removed")
    parser.add_argument("--measure", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
