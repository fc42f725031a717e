"""Ctrl-C where work can stop without losing anything."""

import signal
import threading

import pytest

from evaluand.engine.interrupts import DelayedInterrupts


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_waits_for_a_block_that_allows_it() -> None:
    seen = []
    with DelayedInterrupts() as interrupts:
        press()
        seen.append("stored")
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            seen.append("waited for more")
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            press()
    assert seen == ["stored"]


def test_a_second_ctrl_c_does_not_wait() -> None:
    with DelayedInterrupts():
        press()
        with pytest.raises(KeyboardInterrupt):
            press()


def test_an_interrupt_still_waiting_at_the_end_is_raised_there() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), DelayedInterrupts():
        press()
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_changes_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    during = []

    def work() -> None:
        with DelayedInterrupts() as interrupts, interrupts.allowed():
            during.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert during == [before]


def test_ignored_interrupts_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with DelayedInterrupts():
            press()
    finally:
        signal.signal(signal.SIGINT, before)
