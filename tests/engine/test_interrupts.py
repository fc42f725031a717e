"""Ctrl-C where work can stop without losing anything."""

import signal
import threading
import time

import pytest
from support.forks import in_fork

from evaluand.engine import interrupts as module
from evaluand.engine.interrupts import DelayedInterrupts


def press() -> None:
    signal.raise_signal(signal.SIGINT)


@in_fork
def test_ctrl_c_waits_until_it_is_allowed() -> None:
    seen = []
    with DelayedInterrupts() as interrupts:
        press()
        seen.append("stored")
        with pytest.raises(KeyboardInterrupt):
            interrupts.allow()
        interrupts.allow()
        with pytest.raises(KeyboardInterrupt):
            press()
        interrupts.allow()
        interrupts.delay()
        press()
        seen.append("stored again")
        with pytest.raises(KeyboardInterrupt):
            interrupts.allow()
    assert seen == ["stored", "stored again"]


@in_fork
def test_signals_that_come_together_are_one_ctrl_c() -> None:
    with DelayedInterrupts() as interrupts:
        press()
        press()
        with pytest.raises(KeyboardInterrupt):
            interrupts.allow()
        interrupts.allow()


@in_fork
def test_ctrl_c_ends_what_is_stuck_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STUCK", 0.01)
    with DelayedInterrupts():
        press()
        time.sleep(0.02)
        with pytest.raises(KeyboardInterrupt):
            press()


@in_fork
def test_an_interrupt_still_waiting_at_the_end_is_raised_there() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), DelayedInterrupts():
        press()
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_changes_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    during = []

    def work() -> None:
        with DelayedInterrupts() as interrupts:
            interrupts.allow()
            during.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert during == [before]


@in_fork
def test_ignored_interrupts_stay_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with DelayedInterrupts():
        press()
