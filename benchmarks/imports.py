"""What it costs to import results of other tools: `python benchmarks/imports.py`.

    python benchmarks/imports.py                     # 20,000 and 100,000 samples of each format
    python benchmarks/imports.py --quick             # 2,000 samples
    python benchmarks/imports.py --large             # 20,000 samples in a gigabyte

Each measurement is one import into a new store, in a process of its own, whose CPU time and memory are printed. Next to
it stands what it takes to parse the file with orjson and no more: a floor, not a peer. The samples are short: one
question, one answer, one to three scores. The start of Python and imports of modules are not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import IO, Any

from children import clean_environment, run, say
from measures import print_measures
from meter import cpu, peak_memory, speed

HERE = Path(__file__).parent
SIZES = (20_000, 100_000)
LARGE = 20_000
PER_100K = 10.0  # seconds of CPU
MOST = 500  # MB of memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true", help="answers of 50 kB, which differ")
    parser.add_argument("--formats", nargs="+", choices=[*WRITERS], default=[*WRITERS])
    options = parser.parse_args()
    rows, speeds = [], []
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        for format in options.formats:
            for n in (LARGE,) if options.large else (2000,) if options.quick else SIZES:
                say(f"{format}, {n:,} samples")
                path = WRITERS[format](Path(folder), n, long_answer if options.large else str)
                command = [sys.executable, str(HERE / "imports.py"), "--child", str(path)]
                found = run(command, clean_environment() | {"PYTHONPATH": str(HERE.parent / "src")})
                speeds.append(found["speed"])
                target = PER_100K * n / 100_000
                megabytes = path.stat().st_size / 1e6
                name = f"{format}: {n:,} samples, {megabytes:.0f} MB"
                figure = (
                    f"{found['cpu']:.2f} s ({found['cpu'] / found['floor']:.1f} × parsing), {found['memory']:.0f} MB"
                )
                if options.large:
                    rows.append((name, figure, f"{MOST} MB", "yes" if found["memory"] <= MOST else "no"))
                else:
                    rows.append((name, figure, f"{target:.1f} s", "yes" if found["cpu"] <= target else "no"))
                path.unlink()
    print_measures(speeds, rows)


Answer = Callable[[int], str]


def long_answer(number: int) -> str:
    """50 kB of text of its own."""
    return Random(number).randbytes(25_000).hex()


def write_inspect(folder: Path, n: int, answer: Answer = str) -> Path:
    return _write_list(
        folder / "log.json",
        {"version": 2, "eval": {"task": "addition", "model": "m"}},
        "samples",
        (
            {
                "id": number,
                "epoch": 1,
                "input": f"{number} + 7",
                "target": str(number + 7),
                "messages": [{"role": "user", "content": f"{number} + 7"}],
                "output": {"choices": [{"message": {"role": "assistant", "content": answer(number)}}]},
                "scores": {name: {"value": "C", "answer": "8"} for name in ("match", "includes")},
                "model_usage": {"m": {"input_tokens": 20, "output_tokens": 2}},
                "started_at": "2026-11-22T09:32:58.840726+00:00",
                "total_time": 0.5,
            }
            for number in range(n)
        ),
    )


def write_promptfoo(folder: Path, n: int, answer: Answer = str) -> Path:
    part = {"pass": True, "score": 1, "reason": "why", "assertion": {"type": "contains"}}
    path = folder / "out.json"
    with path.open("w") as file:
        file.write('{"evalId": "e", "results": {"results": [')
        _write_items(
            file,
            (
                {
                    "testIdx": number,
                    "vars": {"question": f"{number} + 7"},
                    "provider": {"id": "m"},
                    "response": {"output": answer(number)},
                    "success": True,
                    "score": 1,
                    "gradingResult": {"componentResults": [part]},
                    "latencyMs": 12,
                }
                for number in range(n)
            ),
        )
        file.write("]}}")
    return path


def write_deepeval(folder: Path, n: int, answer: Answer = str) -> Path:
    metric = {"name": "Exact Match", "score": 1.0, "success": True, "reason": "compared"}
    case = {"expectedOutput": "8", "metricsData": [metric]}
    cases = (
        {"name": f"q{number}", "input": f"{number} + 7", "actualOutput": answer(number), **case} for number in range(n)
    )
    return _write_list(folder / "test_run.json", {}, "testCases", cases)


def write_lm_eval(folder: Path, n: int, answer: Answer = str) -> Path:
    path = folder / "samples_addition_2026-11-22T09-36-27.188943.jsonl"
    with path.open("w") as file:
        for number in range(n):
            row = {"doc_id": number, "doc": {}, "target": "8", "arguments": {"a": {"arg_0": f"{number} + 7"}}}
            text = answer(number)
            row |= {"resps": [[text]], "filtered_resps": [text], "filter": "none", "metrics": ["acc"], "acc": 1.0}
            file.write(json.dumps(row) + "\n")
    return path


def write_mlflow(folder: Path, n: int, answer: Answer = str) -> Path:
    path = folder / "eval_results.json"
    assessment = {"assessment_name": "exact", "feedback": {"value": True}}
    with path.open("w") as file:
        file.write("[")
        rows = (
            {"trace_id": f"tr-{number}", "request": f"{number} + 7", "response": answer(number)} for number in range(n)
        )
        infos = ({**row, "state": "OK", "assessments": [assessment]} for row in rows)
        _write_items(file, ({"trace_id": i["trace_id"], "trace": {"info": i, "data": {}}} for i in infos))
        file.write("]")
    return path


def write_spans(folder: Path, n: int, answer: Answer = str) -> Path:
    path = folder / "spans.json"
    span = {"name": "answer", "startTimeUnixNano": "1", "endTimeUnixNano": "9"}
    said = {"gen_ai.evaluation.name": {"stringValue": "exact"}, "gen_ai.evaluation.score.value": {"doubleValue": 1.0}}
    score = {"name": "gen_ai.evaluation.result", "timeUnixNano": "9", "attributes": _attributes(said)}
    with path.open("w") as file:
        file.write('{"resourceSpans": [{"scopeSpans": [{"spans": [')
        _write_items(
            file,
            (
                {
                    **span,
                    "traceId": f"{number:032x}",
                    "spanId": f"{number:016x}",
                    "attributes": _attributes(
                        {"input.value": {"stringValue": "1 + 7"}, "output.value": {"stringValue": answer(number)}}
                    ),
                    "events": [score],
                }
                for number in range(1, n + 1)
            ),
        )
        file.write("]}]}]}")
    return path


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _write_list(path: Path, head: dict[str, Any], key: str, items: Iterator[dict[str, Any]]) -> Path:
    with path.open("w") as file:
        file.write("{" + "".join(f"{json.dumps(name)}: {json.dumps(value)}, " for name, value in head.items()))
        file.write(f'"{key}": [')
        _write_items(file, items)
        file.write("]}")
    return path


def _write_items(file: IO[str], items: Iterator[dict[str, Any]]) -> None:
    for number, item in enumerate(items):
        file.write((", " if number else "") + json.dumps(item))


WRITERS: dict[str, Callable[[Path, int, Answer], Path]] = {
    "deepeval": write_deepeval,
    "inspect": write_inspect,
    "lm_eval": write_lm_eval,
    "mlflow": write_mlflow,
    "promptfoo": write_promptfoo,
    "spans": write_spans,
}


def child(path: Path) -> None:
    """Imports one file, and prints what it took."""
    import orjson

    from evaluand.exchange import import_results
    from evaluand.store.opening import open_store

    work = speed()
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        warm = path.parent / "warm"
        warm.mkdir(exist_ok=True)
        import_results(write_deepeval(warm, 10), open_store(folder + "/warm"))
        began = cpu()
        result = import_results(path, open_store(folder + "/store"))
        took = cpu() - began
    assert not result.left_out
    memory = peak_memory() / 1e6
    began = cpu()
    content = path.read_bytes()
    for text in content.splitlines() if path.suffix == ".jsonl" else [content]:
        orjson.loads(text)
    print(json.dumps({"cpu": took, "floor": cpu() - began, "memory": memory, "speed": work}))


if __name__ == "__main__":
    child(Path(sys.argv[2])) if sys.argv[1:2] == ["--child"] else main()
