"""What it costs to open a million rows and to save them as a dataset: `python benchmarks/rows.py`.

    python benchmarks/rows.py                   # JSON lines, CSV and Parquet, each three times
    python benchmarks/rows.py --rows 100000 --other ../earlier

Each measurement runs in a process of its own. `open` finds every fault and the type of each column; `save` computes the
digest of each row and writes the table. Next to them stands what pandas and pyarrow take to read the same file into
memory and no more: a floor, not a peer, since neither checks, hashes nor stores the rows. Imports are not counted.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from children import clean_environment, run, say
from meter import cpu, speed
from workload import example

HERE = Path(__file__).parent
FORMATS = ("jsonl", "csv", "parquet")
NAMES = ("input", "expected", "group", "number", "weight")
ROWS = 1_000_000
REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--other", type=Path, help="the folder of another checkout, measured in turn with this one")
    options = parser.parse_args()
    sources = {"this": HERE.parent} | ({"other": options.other.resolve()} if options.other else {})
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        for format in options.formats:
            file = str(Path(folder, f"rows.{format}"))
            _measure(HERE.parent, measure="write", file=file, n=options.rows)
            results: dict[str, list[dict[str, Any]]] = {}
            for number in range(options.repeats):
                say(f"{format}, turn {number + 1}")
                for name in sorted(sources, reverse=number % 2 == 1):
                    results.setdefault(name, []).append(_measure(sources[name], measure="import", file=file))
                for reader in READERS[format]:
                    results.setdefault(reader, []).append(_measure(HERE.parent, measure=reader, file=file))
            _print(format, options.rows, results)
            Path(file).unlink()


def _measure(checkout: Path, **request: Any) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "rows.py"), "--child", json.dumps(request)]
    return run(command, clean_environment() | {"PYTHONPATH": str(checkout / "src")})


def _print(format: str, rows: int, results: dict[str, list[dict[str, Any]]]) -> None:
    speeds = [result["speed"] for each in results.values() for result in each]
    print(f"{format}, {rows:,} rows; a fixed piece of work took {statistics.median(speeds) * 1e3:.0f} ms")
    print(f"{'seconds of CPU time':<22}{'smallest':>10}{'median':>10}")
    for name, each in results.items():
        for step in ("all", "open", "save") if "open" in each[0] else ("all",):
            times = [result[step] for result in each]
            label = name if step == "all" else f"  {step}"
            print(f"{label:<22}{min(times):>10.2f}{statistics.median(times):>10.2f}")
    print(flush=True)


# In a process of its own


def write(file: str, n: int) -> dict[str, Any]:
    """Writes rows of two texts of 40 characters, a group, an integer and a number."""
    rows = ((*example(number), "abcd"[number % 4], number, number / 7) for number in range(n))
    if file.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = zip(*rows, strict=True)
        pq.write_table(pa.table({name: pa.array(column) for name, column in zip(NAMES, columns, strict=True)}), file)
        return {}
    with Path(file).open("w", encoding="utf-8", newline="") as stream:
        if file.endswith(".csv"):
            lines = csv.writer(stream)
            lines.writerow(NAMES)
            lines.writerows(rows)
        else:
            stream.writelines(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows)
    return {}


def import_rows(file: str) -> dict[str, Any]:
    """Opens a file as a dataset and saves it in a store."""
    import pandas  # noqa: F401 - Arrow imports it at its first array, if it is there

    from evaluand import Dataset, DirectoryStore

    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        started = cpu()
        dataset = Dataset.from_file(
            file, input="input", expected="expected", attributes=["group"], metadata=["number", "weight"]
        )
        opened = cpu()
        dataset.save(DirectoryStore(folder))
        saved = cpu()
    return {"all": saved - started, "open": opened - started, "save": saved - opened}


def read_by_pandas(file: str) -> dict[str, Any]:
    """Reads a file into a frame."""
    import pandas

    started = cpu()
    pandas.read_json(file, lines=True) if file.endswith(".jsonl") else pandas.read_csv(file)
    return {"all": cpu() - started}


def read_by_pyarrow(file: str) -> dict[str, Any]:
    """Reads a file into a table."""
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet

    readers: dict[str, Callable[[str], Any]] = {
        ".jsonl": pyarrow.json.read_json,
        ".csv": pyarrow.csv.read_csv,
        ".parquet": pyarrow.parquet.read_table,
    }
    started = cpu()
    readers[Path(file).suffix](file)
    return {"all": cpu() - started}


READERS = {"jsonl": ("pyarrow", "pandas"), "csv": ("pyarrow", "pandas"), "parquet": ("pyarrow",)}
MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "write": write,
    "import": import_rows,
    "pandas": read_by_pandas,
    "pyarrow": read_by_pyarrow,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        request = json.loads(sys.argv[2])
        print(json.dumps(MEASURES[request.pop("measure")](**request) | {"speed": speed()}))
    else:
        main()
