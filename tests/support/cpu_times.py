"""Which tests and fixtures take the most processor time: a plugin of pytest, loaded by `make test-times`.

The processor time of a test is that of its process and of the processes that it has started and waited for. It hardly
depends on who else uses the machine. What a fixture of several tests takes is counted for the fixture; what ends with
the last test of a file, for the file. Servers that outlive what started them count nowhere, and Chromium for the file
that is the last to use it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from support import fresh

SHOWN = 40


class _Clock:
    """What the test that runs has taken so far."""

    def __init__(self) -> None:
        self.latest = 0.0
        self.is_last_of_its_file = False
        self.shared: list[tuple[str, float]] = []

    def lap(self) -> float:
        """The seconds since the lap before, without those of shared fixtures."""
        now = cpu_seconds()
        seconds = now - self.latest - sum(taken for _, taken in self.shared)
        self.latest = now
        return seconds


_clock = _Clock()
_tests: Counter[str] = Counter()
_shared: Counter[str] = Counter()
_set_ups: Counter[str] = Counter()


def cpu_seconds() -> float:
    """The processor time of this process and of those that have ended under it."""
    return sum(os.times()[:4]) + fresh.cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    _clock.latest = cpu_seconds()
    _clock.is_last_of_its_file = nextitem is None or nextitem.path != item.path
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    start, before = cpu_seconds(), len(_clock.shared)
    try:
        return (yield)
    finally:
        seconds = cpu_seconds() - start - sum(taken for _, taken in _clock.shared[before:])
        _clock.shared.append((f"{fixturedef.baseid}::{fixturedef.argname} ({fixturedef.scope})", seconds))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    seconds = _clock.lap()
    shared, _clock.shared = _clock.shared, []
    if report.when == "teardown" and _clock.is_last_of_its_file:
        shared, seconds = [(f"{item.location[0]} (what ends with it)", seconds)], 0.0
    report.__dict__ |= {"cpu_seconds": seconds, "cpu_seconds_of_shared": shared}  # workers send what is in it
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _tests[report.nodeid] += getattr(report, "cpu_seconds", 0.0)  # the report of a process that has crashed has none
    for name, seconds in getattr(report, "cpu_seconds_of_shared", ()):
        _shared[name] += seconds
        _set_ups[name] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("processor time")
    total = _tests.total() + _shared.total()
    above = sum(seconds > 0.5 for seconds in _tests.values())
    terminalreporter.write_line(
        f"{total:.0f} s: {_tests.total():.0f} s of {len(_tests)} tests, {above} above 0.5 s; "
        f"{_shared.total():.0f} s of fixtures that several share"
    )
    for name, seconds in _tests.most_common(SHOWN):
        terminalreporter.write_line(f"{seconds:7.2f} s  {name}")
    terminalreporter.write_line("fixtures, and how often they were made")
    for name, seconds in _shared.most_common(SHOWN):
        terminalreporter.write_line(f"{seconds:7.2f} s  {_set_ups[name]:3} ×  {name}")
