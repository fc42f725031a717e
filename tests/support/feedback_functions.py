"""Feedback functions that other processes can import, and calls of an app that has none but its traces."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

from evaluand.evaluation.feedback import Feedback
from evaluand.trace import Trace

CONTEXTS = "__record__.calls[0].rets[:]"


def length(text: str) -> float:
    return len(text) / 100


def same(question: str, answer: str) -> float:
    if question == "q3":
        raise ValueError("three")
    return float(question.upper() == answer)


def spread(said: Sequence[float]) -> float:
    return statistics.fmean(said) + max(said)


async def slowly(text: str) -> float:
    return float(len(text))


def sleepy(text: str) -> float:
    if text == "Q1":
        time.sleep(20)
    return 1.0


def feedbacks() -> list[Feedback]:
    """Two selections of one function, one that fails on q3, one with an aggregate of our own, one that is async."""
    return [
        Feedback(length, name="context", version="1").on(CONTEXTS).aggregate(spread),
        Feedback(length, name="answer").on_output(),
        Feedback(same, version="1").on_input_output(),
        Feedback(slowly, version="1").on_output(),
    ]


def use(recording: Any, question: str, error: Exception | None = None) -> None:
    """One call of an app: it looks two contexts up and answers in capitals."""
    trace = Trace.start("query", question)
    try:
        with trace.root as root:
            with root.span("retriever.search", kind="retriever", input={"query": question}) as span:
                span.output = [f"{question} one", f"{question} and two"]
            if error is not None:
                raise error
            root.output = question.upper()
    except Exception as raised:
        recording.keep(trace, raised)
        raise
    recording.keep(trace)


def noted(text: str) -> float:
    """Appends a line for each evaluation to a file."""
    handle = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{os.getpid()} {text}\n".encode())
    os.close(handle)
    return float(len(text))


def noted_number(text: str) -> float:
    """Appends a number to a file in the folder that $NOTES names."""
    handle = os.open(os.path.join(os.environ["NOTES"], "judged"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, b"%d\n" % int(text))
    os.close(handle)
    time.sleep(0.001)
    return float(len(text))


def noted_and_held(text: str) -> float:
    """As `noted`, and then waits for the file that $GATE names."""
    score = noted(text)
    while not os.path.exists(os.environ["GATE"]):
        time.sleep(0.01)
    return score
