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
import io
import json
import platform
import random
import string
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from time import get_clock_info, process_time
from typing import Any

import judges
from children import clean_environment, environment, run, say
from meter import speed

OURS, PEER, PEER_PACKAGES = "ours", "trulens", ["trulens-core==2.16.0", "trulens-feedback==2.16.0"]
ROUNDS, QUICK_ROUNDS = 3, 1
SHORT, TIMES, QUICK_TIMES = 0.002, 300, 10  # seconds of one time that is taken, and how many are
LONG = 5.0  # seconds after which no more are
RESOLUTION = get_clock_info("process_time").resolution / 1000  # less than this cannot be measured; never zero

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
        from evaluand.core.selector import Selector
        from evaluand.interop.trulens import Lens

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


# Runs


def length(text: str) -> float:
    return float(len(text))


def both(a: str, b: str) -> float:
    return float(len(a) + len(b))


def runs(who: str) -> Iterator[Work]:
    """A feedback that makes one call, and one of every combination of thirty values with thirty."""
    if who == OURS:
        from evaluand.evaluation.feedback import Feedback as Native
        from evaluand.interop.trulens import Feedback, Lens, Select

        native = Native(length).on_input()
        yield "one call, evaluate", lambda: native.evaluate(SOURCE)
        yield "one call, score", lambda: native.score(SOURCE)
    else:
        from trulens.core import Feedback, Select
        from trulens.core.utils.serial import Lens
    texts = {"thirty": [f"text {n}" for n in range(30)]}
    with redirect_stdout(io.StringIO()):  # where trulens tells what it has bound
        one = Feedback(length).on_input()
        many = Feedback(both).on(a=Lens().thirty[:]).on(b=Lens().thirty[:])
        of_record = Feedback(length).on(Select.RecordCalls.combine_docs_chain._call.rets)
    assert len(many.run(source_data=texts).calls) == 900
    yield "one call, run", lambda: one.run(source_data=SOURCE)
    yield "one call of a call, run", lambda: of_record.run(source_data=SOURCE)
    yield "900 combinations, run", lambda: many.run(source_data=texts)


# Records


def records(who: str) -> Iterator[Work]:
    """An app that calls two of its methods, recorded in a folder: one `with` block for each call, as is usual."""
    folder = tempfile.TemporaryDirectory(prefix="evaluand-bench-")  # goes with the process
    if who == OURS:
        from evaluand.apps.app import App
        from evaluand.apps.instrumentation.marking import instrument
        from evaluand.evaluation.feedback import Feedback
        from evaluand.store.directory import DirectoryStore

        def recorded(app: Any, feedbacks: list[Any], mode: str) -> Any:
            store = DirectoryStore(Path(folder.name) / mode)
            return App(app, name="bench", version="1", feedbacks=feedbacks, mode=mode, store=store)

        found = "__record__.app.retrieve[:].rets[:]"
    else:
        from trulens.apps.app import TruApp, instrument
        from trulens.core import Feedback, Select, TruSession

        database = f"sqlite:///{folder.name}/bench.sqlite"
        with redirect_stdout(io.StringIO()):
            TruSession(database_url=database)

        def recorded(app: Any, feedbacks: list[Any], mode: str) -> Any:
            with redirect_stdout(io.StringIO()):
                return TruApp(app, app_name="bench", app_version="1", feedbacks=feedbacks, feedback_mode=mode)

        found = Select.RecordCalls.retrieve.rets[:]

    class Rag:
        @instrument
        def retrieve(self, question: str) -> list[str]:
            return [f"{question} one", f"{question} two"]

        @instrument
        def generate(self, question: str, contexts: list[str]) -> str:
            return question.upper()

        @instrument
        def query(self, question: str) -> str:
            return self.generate(question, self.retrieve(question))

    with redirect_stdout(io.StringIO()):
        three = [
            Feedback(judges.length, name="answer").on_output(),
            Feedback(judges.same).on_input_output(),
            Feedback(judges.length, name="contexts").on(found),
        ]
    rag = Rag()
    yield "app alone", lambda: rag.query("Who wrote Emma?")
    for name, feedbacks, mode in (
        ("record, mode none", [], "none"),
        ("record, 3 deferred", three, "deferred"),
        ("record, 3 with app", three, "with_app"),
    ):
        used = Rag()
        app = recorded(used, feedbacks, mode)

        def once(app: Any = app, used: Any = used) -> None:
            with app:
                used.query("Who wrote Emma?")

        yield name, once


# Apps


class Rag:
    """An app of three calls, of which nobody says that they are to be traced."""

    def __init__(self) -> None:
        self.retriever, self.model = Retriever(), Model()

    def query(self, question: str) -> str:
        return self.model.ask(question, self.retriever.search(question))


class Retriever:
    def search(self, question: str) -> list[str]:
        return [f"{question} one", f"{question} two"]


class Model:
    def ask(self, question: str, contexts: list[str]) -> str:
        return question.upper()


QUESTION = "Who wrote Emma?"


def apps(who: str) -> Iterator[Work]:
    """What a call of three costs that is traced, before anything is kept of it."""
    if who != OURS:
        return
    from evaluand.apps.app import App
    from evaluand.apps.instrumentation.steps import CompletedCall, start_recording, stop_recording

    class Nobody:
        """Takes records and keeps nothing."""

        def __init__(self, app: Any) -> None:
            self.place = app.place

        def take(self, recorded: CompletedCall) -> None:
            recorded.trace.rows()

    bare, rag = Rag(), Rag()
    nobody = Nobody(App(rag, name="bench"))

    def traced() -> None:
        start_recording(nobody)
        rag.query(QUESTION)
        stop_recording(nobody)

    yield "three calls, bare", lambda: bare.query(QUESTION)
    yield "three calls, nobody records", lambda: rag.query(QUESTION)
    yield "three calls, traced", traced


def sizes(who: str) -> dict[str, float]:
    """What is told once: the first record of a process in ms, and what a record takes beside its values."""
    if who != OURS:
        return {}
    from evaluand.apps.app import App

    rag = Rag()
    app = App(rag, name="bench", mode="none")
    with app as recording:
        start = process_time()
        rag.query(QUESTION)
        first = process_time() - start
        latency = recording.records[0]["perf"]["latency"]
        rag.query(QUESTION)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            rag.query(QUESTION)
        held = (tracemalloc.get_traced_memory()[0] - before) / 1000
        tracemalloc.stop()
    values = sum(
        len(json.dumps(call["args"])) + len(json.dumps(call["rets"])) for call in recording.records[0]["calls"]
    )
    return {
        "first record, ms": first * 1e3,
        "first record, ms recorded": latency * 1e3,
        "a record in memory beside its values, bytes": held - values,
        **{
            f"on disk beside its values, {n} feedbacks, {form}, bytes": taken
            for n in (0, 3)
            for form, taken in _on_disk(n).items()
        },
    }


TEXT, CONTEXTS, KEPT_RECORDS = 2000, 5, 500
_chance = random.Random(0)


def long_text() -> str:
    """A text that is like no other, so that none can be written by referring to another."""
    return "".join(_chance.choices(string.ascii_letters + string.digits, k=TEXT))


class LongRag(Rag):
    def __init__(self) -> None:
        self.retriever, self.model = LongRetriever(), LongModel()


class LongRetriever(Retriever):
    def search(self, question: str) -> list[str]:
        return [long_text() for _ in range(CONTEXTS)]


class LongModel(Model):
    def ask(self, question: str, contexts: list[str]) -> str:
        return long_text()


def _on_disk(n_feedbacks: int) -> dict[str, float]:
    """What a record takes in a folder beside what its calls were given and gave, open and sealed.

    Each feedback is asked about every context. Sealed, what calls were given and gave is compressed as the tables are:
    column by column.
    """
    import pyarrow as pa

    from evaluand.apps.app import App
    from evaluand.evaluation.feedback import Feedback
    from evaluand.store.directory import DirectoryStore

    contexts = "__record__.app.retriever.search[:].rets[:]"
    feedbacks = [Feedback(judges.same, name=f"judge {n}").on_input().on(contexts) for n in range(n_feedbacks)]
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        rag = LongRag()
        app = App(rag, name="bench", feedbacks=feedbacks, mode="with_app", store=DirectoryStore(folder))
        with app as recording:
            for _ in range(KEPT_RECORDS):
                rag.query(long_text())
        calls = [call for record in recording.records for call in record["calls"]]
        taken = {"open": _bytes_in(folder)}
        recording.close()
        taken["sealed"] = _bytes_in(folder)
    columns: dict[tuple[bool, str], list[str]] = {}
    for call in calls:
        for part in ("args", "rets"):
            columns.setdefault((len(call["stack"]) == 1, part), []).append(json.dumps(call[part]))
    texts = ["".join(column).encode() for column in columns.values()]
    values = {"open": sum(map(len, texts)), "sealed": sum(pa.Codec("zstd", 3).compress(t).size for t in texts)}
    return {form: (taken[form] - values[form]) / KEPT_RECORDS for form in taken}


def _bytes_in(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


# Leaderboard

RECORDS, VERSIONS = 100_000, 4


def leaderboard(who: str) -> Iterator[Work]:
    """Four versions of an app with 25,000 records each in a folder, judged by three feedbacks; ours alone.

    All versions were asked the same, so every two are held against each other input by input.
    """
    if who != OURS:
        return
    from evaluand import DirectoryStore
    from evaluand.apps.leaderboards.board import leaderboard

    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        store = DirectoryStore(folder)
        evaluations = [_judged(store, str(version)) for version in range(VERSIONS)]
        assert sum(version["records"] for version in leaderboard(evaluations).versions) == RECORDS
        yield f"leaderboard of {RECORDS:,} records", lambda: leaderboard(evaluations)


def _judged(store: Any, version: str) -> Any:
    """The records of one version with what three feedbacks say of them, as sealing leaves them."""
    import numpy as np
    import pyarrow as pa

    from evaluand import Evaluation
    from evaluand.core import identity
    from evaluand.store import tables
    from evaluand.store.store import at_once, drafted

    n, chance = RECORDS // VERSIONS, np.random.default_rng(int(version))
    key = {"_index_": np.arange(n), "replication": np.zeros(n, np.int32)}
    digests = [identity.digest(number) for number in range(n)]
    usage = [{"input_tokens": 200, "output_tokens": int(k)} for k in chance.integers(10, 90, n)]
    calls = {"digest": digests, "status": ["completed"] * n, "n_responses": [1] * n, "attempts": [1] * n}
    calls |= {"usage": usage, "started": [0] * n, "duration": chance.integers(1_000, 90_000, n)}

    def table(schema: pa.Schema, columns: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        arrays = [pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(n, f.type) for f in schema]
        yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(tables.BATCH_ROWS)

    state = {"pinned": True, "fresh": False}
    task = {"kind": "app", "name": "rag", "version": version, "recording": identity.digest(version).hex()}
    spec = {"task": task, "dataset": "0" * 32, "examples": n, "replications": 1, "seed": 0}
    run = identity.artifact_id("runs", spec)
    with drafted(store, "runs", run) as draft:
        for batch in table(tables.RESPONSES, key | calls):
            draft.append("responses", batch)
        made = {"digest": run, "counts": {"completed": n}, "provenance": {"task": "rag"}}
        draft.seal(at_once("runs", run, spec, None, **made) | state)
    names = ("groundedness", "context relevance", "language")
    spec = {"run": run, "dataset": "0" * 32, "scorers": {name: {"kind": "feedback", "name": name} for name in names}}
    id = identity.artifact_id("evaluations", spec)
    with drafted(store, "evaluations", id) as draft:
        for name in names:
            value = chance.random(n).round(3) if name != "language" else chance.integers(0, 2, n).astype(float)
            said = ['[{"args":{"text":"a"},"error":null,"meta":{},"ret":0.5}]'] * n
            scores = {"digest": digests, "status": ["scored"] * n, "value": value, "calls": said}
            for batch in table(tables.scores_schema({"calls": "json"}), key | scores):
                draft.append(f"scores/{name}", batch)
        made = {"digest": id, "counts": {name: {"scored": n} for name in names}, "provenance": {"run": run}}
        draft.seal(at_once("evaluations", id, spec, None, **made) | state)
    return Evaluation(store, id)


SECTIONS: dict[str, Callable[[str], Iterator[Work]]] = {
    "selectors": selectors,
    "runs": runs,
    "apps": apps,
    "records": records,
    "leaderboard": leaderboard,
}
SIZES = {
    "first record, ms": 50,
    "first record, ms recorded": 50,
    "a record in memory beside its values, bytes": 1000,
    **{f"on disk beside its values, {n} feedbacks, {form}, bytes": 1000 for n in (0, 3) for form in ("open", "sealed")},
}
TARGETS = {
    "9-step Selector.select": 2e-6,
    "9-step Lens called": 2e-6,
    "one call, evaluate": 20e-6,
    "one call, run": 20e-6,
    "900 combinations, run": 5e-3,
    "three calls, traced": 150e-6,
    "record, mode none": 150e-6,
    "record, 3 deferred": 150e-6,
    "record, 3 with app": 500e-6,
    f"leaderboard of {RECORDS:,} records": 1.0,
}


# Measuring


def _times(who: str, sections: list[str], quick: bool) -> dict[str, Any]:
    told = sizes(who) if "apps" in sections else {}
    taken = {name: _smallest(work, quick) for section in sections for name, work in SECTIONS[section](who)}
    return {"times": taken, "sizes": told, "speed": speed()}


def _smallest(work: Callable[[], Any], quick: bool) -> float:
    """Seconds of CPU time of one piece of work: the smallest of many means."""
    start, loops = process_time(), 0
    while loops == 0 or process_time() - start < SHORT:  # on a busy machine the time may be over before the first
        work()
        loops += 1
    times: list[float] = []
    spent = 0.0
    while not times or (len(times) < (QUICK_TIMES if quick else TIMES) and spent < LONG):
        start = process_time()
        for _ in range(loops):
            work()
        taken = process_time() - start
        times.append(taken / loops)
        spent += taken
    return max(min(times), RESOLUTION)


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
    told = results[OURS][0]["sizes"]
    for name, limit in SIZES.items() if told else ():
        least = min(each["sizes"][name] for each in results[OURS])
        print(f"{name:<52}{least:>10.2f}{'≤ ' + format(limit, 'g'):>10}  {'yes' if least <= limit else 'NO'}")


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
