"""The table of what was measured, and on which machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence


def print_measures(speeds: Iterable[float], rows: Iterable[Sequence[str]]) -> None:
    """Prints the machine and some measures.

    Args:
        speeds: seconds that a fixed piece of work took in each of the measuring processes.
        rows: of each measure its name, our figure, the target, and whether it is met.
    """
    times = sorted(speeds)
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} CPUs")
    print(f"a fixed piece of work took {times[0] * 1e3:.0f} to {times[-1] * 1e3:.0f} ms of CPU time\n")
    lines = [("measure", "ours", "target", "met?"), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
