"""What a span with one log costs: in a run's trace, and with each tracer.

.venv/bin/python benchmarks/tracing.py [--quick]

Where the Pharia SDK is installed too, its file tracer is measured beside ours.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

from evaluand import CompositeTracer, FileTracer, InMemoryTracer, NoOpTracer, OpenTelemetryTracer, Trace

SPANS, QUICK_SPANS = 2_000, 100
ROUNDS = 5


def traced(tracer: Any, spans: int) -> None:
    """A task call with spans below it."""
    with tracer.task_span("answer", {"q": "Who wrote Emma?"}) as task_span:
        for number in range(spans):
            with task_span.span("step") as step:
                step.log("hits", {"n": number})
        task_span.record_output("Jane Austen")


def in_a_run(spans: int) -> None:
    trace = Trace.start("answer", "q")
    with trace.root as root:
        traced(root, spans)


def tracers(folder: Path) -> dict[str, Callable[[int], None]]:
    otel = TracerProvider().get_tracer("benchmark")
    kinds: dict[str, Callable[[int], None]] = {
        "trace of a run": in_a_run,
        "NoOpTracer": lambda spans: traced(NoOpTracer(), spans),
        "InMemoryTracer": lambda spans: traced(InMemoryTracer(), spans),
        "FileTracer": lambda spans: traced(FileTracer(folder / "trace.jsonl"), spans),
        "OpenTelemetryTracer": lambda spans: traced(OpenTelemetryTracer(otel), spans),
        "InMemory and File": lambda spans: traced(
            CompositeTracer([InMemoryTracer(), FileTracer(folder / "both.jsonl")]), spans
        ),
    }
    try:
        from pharia_inference_sdk.core import FileTracer as Theirs
    except ModuleNotFoundError:
        return kinds
    return kinds | {"their FileTracer": lambda spans: traced(Theirs(folder / "theirs.jsonl"), spans)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few spans")
    spans = QUICK_SPANS if parser.parse_args().quick else SPANS
    with tempfile.TemporaryDirectory() as folder:
        for name, run in tracers(Path(folder)).items():
            times = []
            for _ in range(ROUNDS):
                start = process_time()
                run(spans)
                times.append((process_time() - start) / spans)
            print(f"{name:<20} {min(times) * 1e6:8.1f} µs CPU per span")


if __name__ == "__main__":
    main()
