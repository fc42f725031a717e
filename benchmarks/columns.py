"""What `evaluand score` costs for two columns of predictions, beside a script with scikit-learn and SciPy.

    python benchmarks/columns.py                 100,000 and 1,000,000 rows; the peer is installed for this once
    python benchmarks/columns.py --quick         10,000 rows, ours alone
    python benchmarks/columns.py --peers DIR     keep the peer's environment in DIR and use it again

Both read the same CSV file of three classes, compute four metrics of each system, and compare the systems by accuracy
with an interval and a test. CPU time is that of the complete process, with its imports.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from children import clean_environment, environment
from meter import speed

HERE = Path(__file__).resolve().parent
ROUNDS = 3
CLASSES = np.array(["cat", "dog", "bird"])


def main() -> None:
    options = _options()
    sizes = [10_000] if options.quick else options.sizes
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        peers = options.peers or folder / "peers"
        found = (
            {}
            if options.quick
            else environment(peers, ["scikit-learn", "scipy", "pandas"], {"scikit-learn": "sklearn"})
        )
        print(f"a fixed piece of work took {speed() * 1000:.0f} ms of CPU time")
        print(f"{'seconds of CPU time':<34}{'ours':>8}{'stored':>8}{'script':>8}")
        for n in sizes:
            file = folder / f"{n}.csv"
            write_rows(file, n)
            columns = ["--truth", "label", "--prediction", "a", "--prediction", "b"]
            command = str(Path(sys.executable).with_name("evaluand"))
            ours = [command, "--store", str(folder / "store"), "score", str(file), *columns]
            theirs = {
                name: [str(python), str(HERE / "peers" / "columns.py"), str(file)] for name, python in found.items()
            }
            taken: dict[str, list[float]] = {}
            for number in range(ROUNDS):
                commands = {"ours": ours, "stored": [*ours, "--name", f"round {number}"], **theirs}
                for name, arguments in commands.items():
                    taken.setdefault(name, []).append(cpu_time(arguments))
                    _empty(folder / "store")
            figures = "".join(f"{min(taken[name]):8.2f}" if name in taken else f"{'':8}" for name in ("ours", "stored"))
            peer = "".join(f"{min(taken[name]):8.2f}" for name in theirs)
            print(f"{f'{n:,} rows × 2 systems':<34}{figures}{peer}", flush=True)


def write_rows(file: Path, n: int) -> None:
    """A CSV file with an id, the truth, and the predictions of two systems."""
    random = np.random.default_rng(0)
    truth = CLASSES[random.integers(0, 3, n)]
    systems = [np.where(random.random(n) < p, truth, CLASSES[random.integers(0, 3, n)]) for p in (0.60, 0.62)]
    with file.open("w") as out:
        out.write("id,label,a,b\n")
        out.writelines(f"{row},{y},{a},{b}\n" for row, (y, a, b) in enumerate(zip(truth, *systems, strict=True)))


def cpu_time(command: Sequence[str]) -> float:
    """Seconds of CPU time that a process takes, in user and kernel mode."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=clean_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _empty(folder: Path) -> None:
    """Removes a store, so that nothing stored is used again."""
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 rows, ours alone")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000], help="numbers of rows")
    parser.add_argument("--peers", type=Path, help="the folder of the peer's environment")
    return parser.parse_args()


if __name__ == "__main__":
    main()
