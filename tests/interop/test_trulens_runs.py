"""Runs of TruLens: an app called on the rows of a frame, and rows that were logged elsewhere."""

from __future__ import annotations

import threading
from typing import Any

import pandas as pd
import pytest

from evaluand import DirectoryStore, SpecError
from evaluand.interop.trulens import (
    Feedback,
    Mode,
    RunConfig,
    RunStatus,
    Select,
    TruApp,
    TruBasicApp,
    TruVirtual,
    VirtualApp,
    instrument,
)

ROWS = [
    {"nr": "q1", "question": "Who wrote Emma?", "k": 2, "right": "Austen"},
    {"nr": "q2", "question": "Who wrote Ulysses?", "k": 1, "right": "Joyce"},
]
SPEC = {"INPUT_ID": "nr", "RECORD_ROOT.INPUT": "question", "k": "k", "RECORD_ROOT.GROUND_TRUTH_OUTPUT": "right"}


class Rag:
    def __init__(self) -> None:
        self.threads: set[int] = set()

    @instrument
    def search(self, query: str, k: int) -> list[str]:
        return ["Emma is by Austen.", "It rains."][:k]

    def answer(self, question: str, k: int = 2) -> str:
        self.threads.add(threading.get_ident())
        if "Ulysses" in question and k == 1:
            raise ValueError("unknown book")
        return self.search(question, k)[0].split(" by ")[1]


def relevance(question: str, context: str) -> float:
    return float("Emma" in question and "Emma" in context)


def length(text: str) -> float:
    return float(len(text))


def config(**changes: Any) -> RunConfig:
    return RunConfig(**{"run_name": "march", "dataset_name": "questions", "dataset_spec": SPEC, **changes})


RELEVANCE = Feedback(relevance).on_input().on(Select.RecordCalls.search.rets[:])


@pytest.mark.parametrize("rows", [ROWS, pd.DataFrame(ROWS)], ids=["mappings", "frame"])
def test_an_app_is_called_on_each_row_and_a_row_that_fails_is_a_record(rows: Any, tmp_path: Any) -> None:
    rag = Rag()
    recorder = TruApp(rag, app_name="rag", main_method=rag.answer, store=DirectoryStore(tmp_path))
    run = recorder.add_run(config(label="monthly"))
    assert run.get_status() is RunStatus.CREATED
    run.start(rows)
    assert run.get_status() is RunStatus.INVOCATION_PARTIALLY_COMPLETED
    evaluation = run.compute_metrics([RELEVANCE, Feedback(length).on_output()])
    assert sorted(evaluation.scorers) == ["length", "relevance"]
    records = {row["record_id"]: row for row in run.get_records()}
    assert records["q1"]["output"] == "Austen."
    assert (records["q1"]["relevance"], records["q1"]["length"]) == (0.5, 7.0)
    assert records["q1"]["latency"] >= 0
    assert (records["q2"]["output"], records["q2"]["relevance"]) == (None, None)
    assert len(DirectoryStore(tmp_path).ids("runs")) == 1


def test_a_run_has_only_its_own_records() -> None:
    rag = Rag()
    recorder = TruApp(rag, app_name="rag", main_method=rag.answer, feedbacks=[RELEVANCE])
    with recorder:
        rag.answer("Who wrote Emma?")
    run = recorder.add_run(config())
    run.start(ROWS)
    with recorder as later:
        rag.answer("Who wrote Emma?")
    assert len(run.get_records()) == 2
    assert len(run.compute_metrics([Feedback(length).on_input()]).table("length")) == 2
    values = {row["input"]: row["length"] for row in run.get_records()}
    assert values == {"Who wrote Emma?": 15.0, "Who wrote Ulysses?": None}
    assert len(later) == 1


def test_calls_are_made_at_once_up_to_the_number_of_workers() -> None:
    together = threading.Barrier(3)

    def wait(text: str) -> str:
        together.wait(timeout=30)
        return text

    recorder = TruBasicApp(wait, app_name="wait")
    run = recorder.add_run(config(dataset_spec={"input": "text"}, invocation_max_workers=3))
    run.start([{"text": text} for text in "abcdef"])
    assert run.get_status() is RunStatus.INVOCATION_COMPLETED
    assert sorted(row["output"] for row in run.get_records()) == list("abcdef")
    run.compute_metrics([Feedback(length).on_output()])
    assert run.get_status() is RunStatus.COMPLETED


def test_an_async_app_is_called_too() -> None:
    class Soon:
        @instrument
        async def answer(self, text: str) -> str:
            return text.upper()

    run = TruApp(Soon()).add_run(config(dataset_spec={"input": "text"}))
    run.start([{"text": "a"}, {"text": "b"}])
    assert sorted(row["output"] for row in run.get_records()) == ["A", "B"]


def test_logged_rows_become_records_with_their_contexts() -> None:
    rows = [
        {"q": "Emma?", "a": "Austen", "found": ["Emma is by Austen.", "It rains."]},
        {"q": "Rain?", "a": "Yes", "found": ["It rains."]},
    ]
    spec = {"input": "q", "output": "a", "retrieval.retrieved_contexts": "found", "retrieval.query_text": "q"}
    run = TruVirtual(app_name="logged").add_run(config(dataset_spec=spec, mode=Mode.LOG_INGESTION))
    run.start(pd.DataFrame(rows))
    run.compute_metrics([Feedback(relevance).on_input().on(VirtualApp.select_context())])
    assert [(row["input"], row["output"], row["relevance"]) for row in run.get_records()] == [
        ("Emma?", "Austen", 0.5),
        ("Rain?", "Yes", 0.0),
    ]
    assert run.get_status() is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_type": "TABLE"}, "only DATAFRAME is offered"),
        ({"mode": "DRY"}, "mode is 'DRY'; give one of APP_INVOCATION, LOG_INGESTION"),
        ({"dataset_spec": {"output": "a"}}, "names no column for the input"),
        ({"invocation_max_workers": 0}, "invocation_max_workers is 0"),
        (
            {"mode": "LOG_INGESTION", "dataset_spec": {"input": "q", "otput": "a"}},
            r"has 'otput' \(did you mean 'output'\?\); logged rows have input_id",
        ),
    ],
)
def test_a_config_that_means_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        config(**changes)


def test_what_cannot_be_run_is_refused_with_what_to_do() -> None:
    rag = Rag()
    recorder = TruApp(rag, main_method=rag.answer)
    run = recorder.add_run(config())
    with pytest.raises(SpecError, match=r"run 'march' has not been started; call start\(rows\)"):
        run.get_records()
    with pytest.raises(SpecError, match="there are no rows"):
        run.start([])
    with pytest.raises(SpecError, match="row 1 has no column 'k'"):
        run.start([ROWS[0], {"nr": "q2", "question": "?", "right": ""}])
    with pytest.raises(SpecError, match=r"does not fit .*Rag\.answer: too many positional arguments"):
        recorder.add_run(config(dataset_spec={**SPEC, "more": "nr"})).start(ROWS)
    run.start(ROWS)
    with pytest.raises(SpecError, match="was started before; add another run"):
        run.start(ROWS)
    with pytest.raises(SpecError, match="a metric is the text 'correctness'; pass Feedback"):
        run.compute_metrics(["correctness"])
    with pytest.raises(SpecError, match="there are no metrics"):
        run.compute_metrics([])
