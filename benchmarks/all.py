"""Every benchmark, one after another: `make bench-all`, or `make bench-all ARGS=--quick`.

    python benchmarks/all.py                     # hours, most of them for peers
    python benchmarks/all.py --quick             # small sizes and no peers where a benchmark can: half an hour
    python benchmarks/all.py --only path,rows

What each prints, and what it needs, is in README.md. One that fails is named at the end, and the others go on; then
this exits with 1. `d3m_public.py` is left out: it needs published problems from you.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
QUICK = ["--quick"]
QUICKLY: dict[str, list[str]] = {  # benchmark → its arguments when time is short
    "path": QUICK,
    "versions": QUICK,
    "rows": QUICK,
    "imports": QUICK,
    "history": QUICK,
    "drivers": QUICK,
    "engines": ["--calls", "1000", "--rounds", "1"],
    "processes": ["--examples", "200", "--rounds", "1"],
    "metrics": QUICK,
    "columns": QUICK,
    "differences": QUICK,
    "gates": ["--samples", "200"],
    "ratings": QUICK,
    "matches": QUICK,
    "judging": QUICK,
    "tradeoff": QUICK,
    "tradeoff_coverage": ["--simulations", "20"],
    "adapters": QUICK,
    "feedback": QUICK,
    "steps": QUICK,
    "tracing": QUICK,
    "models": QUICK,
    "services": QUICK,
    "schemas": QUICK,
    "report": ["--rows", "5000"],
    "view": ["--rows", "5000", "--runs", "50", "--memory-rows", "20000", "--pairs", "1"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[*QUICKLY], metavar="NAME,…")
    chosen = parser.parse_args()
    if unknown := set(chosen.only) - QUICKLY.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(QUICKLY)}")
    failed = [name for name in chosen.only if not _run(name, QUICKLY[name] if chosen.quick else [])]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _run(name: str, arguments: list[str]) -> bool:
    """Whether a benchmark ended well."""
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    print(f"\n== {' '.join([f'{name}.py', *arguments])}\n", flush=True)
    began = time.monotonic()
    code = subprocess.run(command, check=False).returncode
    print(f"\n{name}: exit status {code} after {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    main()
