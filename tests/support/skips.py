"""The end of the output of the tests: which were skipped, why, and what would bring them back."""

from __future__ import annotations

from collections import Counter

import pytest

from support.places import VECTORS_FOLDER, missing


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints each reason once, with the number of tests; a reason such as `needs X: apt install x` is the remedy."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(_reason(report) for report in skipped)
    if reasons:
        terminalreporter.section("not run")
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"{number:5}  {reason}")


def _reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2].removeprefix("Skipped: ")  # type: ignore[index, union-attr]
    return missing(VECTORS_FOLDER) if reason.startswith("got empty parameter set") else reason
