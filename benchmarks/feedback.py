"""What feedback functions over traces cost, beside trulens-core: the same work of both, in turn.

    python benchmarks/feedback.py                     all sections; trulens-core goes into a throw-away environment
    python benchmarks/feedback.py --only selectors    one section, or several parted by commas
    python benchmarks/feedback.py --quick             few rounds, no peer, some seconds
    python benchmarks/feedback.py --peers DIR         keep the peer's environment in DIR and use it again

Each of the two is measured in processes of its own, in turn, and of many short times of CPU the smallest is shown: on a
machine that others use as well, it says what the code costs. trulens-core runs in its record mode.

A section is a function of this file that yields names and pieces of work, for one of the two. `SECTIONS` lists them,
`TARGETS` tells how many seconds a piece of ours may take.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

from children import clean_environment, environment, run, say
from meter import speed

OURS, PEER, PEER_PACKAGES = "ours", "trulens", ["trulens-core==2.16.0", "trulens-feedback==2.16.0"]
ROUNDS, QUICK_ROUNDS = 3, 1
SHORT, TIMES, QUICK_TIMES = 0.002, 300, 10  # seconds of one time that is taken, and how many are
LONG = 5.0  # seconds after which no more are

Work = tuple[str, Callable[[], Any]]


def main() -> None:
    options = _options()
    if options.measure:
        print(json.dumps(_times(options.measure, options.only, options.quick)))
        return
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as name:
        pythons = {OURS: Path(sys.executable)}
        if not options.quick:
            folder = options.peers or Path(name) / "peers"
            pythons |= environment(folder, PEER_PACKAGES, {PEER: "trulens.core"})
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in pythons}
        rounds = QUICK_ROUNDS if options.quick else ROUNDS
        for turn in range(rounds):
            for who, python in pythons.items():
                say(f"{who}, {turn + 1} of {rounds}")
                command = [str(python), __file__, "--measure", who, "--only", ",".join(options.only)]
                command += ["--quick"] * options.quick
                results[who].append(run(command, clean_environment() | {"TRULENS_OTEL_TRACING": "0"}))
        _print(results)
        if options.json:
            options.json.write_text(json.dumps(results) + "\n")


# Selectors

CALLS = [{"args": {"inputs": {"input_documents": [{"page_content": "a"}, {"page_content": "b"}]}}, "rets": "c"}]
SOURCE = {
    "__record__": {"main_input": "q", "calls": CALLS, "app": {"combine_docs_chain": {"_call": CALLS}}},
    "__app__": {"app_id": "a"},
}
NINE = "__record__.app.combine_docs_chain._call.args.inputs.input_documents[:].page_content"


def selectors(who: str) -> Iterator[Work]:
    """One that goes through a list of calls and a slice of documents, in nine steps; and its text."""
    if who == OURS:
        from evaluand.interop.trulens import Lens
        from evaluand.selector import Selector

        selector = Selector(NINE)
        yield "9-step Selector.select", lambda: selector.select(SOURCE)
        made = Lens.of_string(NINE)
        yield "9-step Lens called", lambda: made(SOURCE)
    else:
        from trulens.core.utils.serial import Lens
    lens = Lens.of_string(NINE)
    assert list(lens.get(SOURCE)) == ["a", "b"]
    yield "9-step Lens.get", lambda: list(lens.get(SOURCE))
    first = Lens.of_string("__record__.main_input")
    yield "2-step Lens.get", lambda: list(first.get(SOURCE))
    yield "text to 9-step Lens", lambda: Lens.of_string(NINE)
    yield "9-step Lens to text", lambda: str(lens)


# Leaderboard

RECORDS, VERSIONS = 100_000, 4


def leaderboard(who: str) -> Iterator[Work]:
    """Four versions of an app with 25,000 records each in a folder, judged by three feedbacks; ours alone.

    All versions were asked the same, so every two are held against each other input by input.
    """
    if who != OURS:
        return
    from evaluand import DirectoryStore
    from evaluand.leaderboard import leaderboard

    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        store = DirectoryStore(folder)
        evaluations = [_judged(store, str(version)) for version in range(VERSIONS)]
        assert sum(version["records"] for version in leaderboard(evaluations).versions) == RECORDS
        yield f"leaderboard of {RECORDS:,} records", lambda: leaderboard(evaluations)


def _judged(store: Any, version: str) -> Any:
    """The records of one version with what three feedbacks say of them, as sealing leaves them."""
    import numpy as np
    import pyarrow as pa

    from evaluand import Evaluation, ids, rows
    from evaluand.store import at_once, drafted

    n, chance = RECORDS // VERSIONS, np.random.default_rng(int(version))
    key = {"_index_": np.arange(n), "replication": np.zeros(n, np.int32)}
    digests = [ids.digest(number) for number in range(n)]
    usage = [{"input_tokens": 200, "output_tokens": int(k)} for k in chance.integers(10, 90, n)]
    calls = {"digest": digests, "status": ["completed"] * n, "n_responses": [1] * n, "attempts": [1] * n}
    calls |= {"usage": usage, "started": [0] * n, "duration": chance.integers(1_000, 90_000, n)}

    def table(schema: pa.Schema, columns: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        arrays = [pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(n, f.type) for f in schema]
        yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(rows.BATCH_ROWS)

    task = {"kind": "app", "name": "rag", "version": version}
    spec = {"task": task, "dataset": "0" * 32, "examples": n, "replications": 1, "seed": 0}
    run = ids.artifact_id("runs", spec)
    with drafted(store, "runs", run) as draft:
        for batch in table(rows.RESPONSES, key | calls):
            draft.append("responses", batch)
        made = {"digest": run, "counts": {"completed": n}, "provenance": {"task": "rag"}}
        draft.seal(at_once("runs", run, spec, None, **made))
    names = ("groundedness", "context relevance", "language")
    spec = {"run": run, "scorers": {name: {"kind": "feedback", "name": name} for name in names}}
    id = ids.artifact_id("evaluations", spec)
    with drafted(store, "evaluations", id) as draft:
        for name in names:
            value = chance.random(n).round(3) if name != "language" else chance.integers(0, 2, n).astype(float)
            said = ['[{"args":{"text":"a"},"error":null,"meta":{},"ret":0.5}]'] * n
            scores = {"digest": digests, "status": ["scored"] * n, "value": value, "calls": said}
            for batch in table(rows.scores_schema({"calls": "json"}), key | scores):
                draft.append(f"scores/{name}", batch)
        made = {"digest": id, "counts": {name: {"scored": n} for name in names}, "provenance": {"run": run}}
        draft.seal(at_once("evaluations", id, spec, None, **made))
    return Evaluation(store, id)


SECTIONS: dict[str, Callable[[str], Iterator[Work]]] = {"selectors": selectors, "leaderboard": leaderboard}
TARGETS = {
    "9-step Selector.select": 2e-6,
    "9-step Lens called": 2e-6,
    f"leaderboard of {RECORDS:,} records": 1.0,
}


# Measuring


def _times(who: str, sections: list[str], quick: bool) -> dict[str, Any]:
    taken = {name: _smallest(work, quick) for section in sections for name, work in SECTIONS[section](who)}
    return {"times": taken, "speed": speed()}


def _smallest(work: Callable[[], Any], quick: bool) -> float:
    """Seconds of CPU time of one piece of work: the smallest of many means."""
    start, loops = process_time(), 0
    while process_time() - start < SHORT:
        work()
        loops += 1
    times: list[float] = []
    while len(times) < (QUICK_TIMES if quick else TIMES) and sum(times) * loops < LONG:
        start = process_time()
        for _ in range(loops):
            work()
        times.append((process_time() - start) / loops)
    return min(times)


def _print(results: dict[str, list[dict[str, Any]]]) -> None:
    speeds = sorted(each["speed"] for rounds in results.values() for each in rounds)
    print(f"{platform.platform()}, Python {platform.python_version()}")
    print(f"a fixed piece of work took {speeds[0] * 1e3:.0f} to {speeds[-1] * 1e3:.0f} ms of CPU time\n")
    best = {who: _best(rounds) for who, rounds in results.items()}
    print(f"{'µs of CPU time':<28}{'ours':>10}{PEER:>10}{'ratio':>8}{'target':>10}  met?")
    for name, ours in best[OURS].items():
        theirs, target = best.get(PEER, {}).get(name), TARGETS.get(name)
        peer = f"{theirs * 1e6:>10.2f}{theirs / ours:>7.1f}×" if theirs else " " * 18
        met = f"{'≤ ' + format(target * 1e6, 'g'):>10}  {'yes' if ours <= target else 'NO'}" if target else ""
        print(f"{name:<28}{ours * 1e6:>10.2f}{peer}{met}".rstrip())


def _best(rounds: list[dict[str, Any]]) -> dict[str, float]:
    return {name: min(each["times"][name] for each in rounds) for name in rounds[0]["times"]}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SECTIONS), help="which sections")
    parser.add_argument("--quick", action="store_true", help="few rounds, no peer")
    parser.add_argument("--peers", type=Path, help="folder of the peer's environment")
    parser.add_argument("--json", type=Path, help="file for all results")
    parser.add_argument("--measure", choices=[OURS, PEER], help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
