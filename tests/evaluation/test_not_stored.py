"""Values that a record lacks because they are too large or not data: nothing is scored from them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from evaluand import Evaluator, MemoryStore
from evaluand.apps.app import App
from evaluand.core.errors import NotStored
from evaluand.core.placeholders import too_large, unstorable
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback import Feedback

PAGE = "x" * 9_000_000
TEXT = too_large("text of 9000000 characters")
RECORD = {
    "main_output": TEXT,
    "app": {
        "search": [{"rets": ["a", TEXT]}, {"rets": [{"text": "b"}, TEXT, {"text": "c"}]}],
        "read": [{"rets": {"pages": ["a", TEXT], "count": 2, "lock": unstorable("lock")}}],
        "open": [{"rets": unstorable("File")}],
    },
}
SOURCE = {"__record__": RECORD}


def is_long(value: Any) -> float:
    return float(len(value) > 1000)


def give(value: Any) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ("main_output", "main_output was not stored, because it is too large (text of 9000000 characters)"),
        ("main_output.text", "main_output was not stored"),
        ("main_output[0]", "main_output was not stored"),
        ("main_output[:]", "main_output was not stored"),
        ("main_output[*]", "main_output was not stored"),
        ("app.search[0].rets[:]", "rets[:] (value 2 of 2) was not stored"),
        ("app.search[0].rets[:].collect()", "collect()[1] was not stored"),
        ("app.search[1].rets.text", "a part of __record__.app.search[1].rets was not stored"),
        ("app.search[1].rets[?@.text == 'b'].text", "a part of __record__.app.search[1].rets was not stored"),
        ("app.search[?length(@.rets[1]) > 5].rets[0]", "a part of __record__.app.search was not stored"),
        ("app.read[0]..text", "a part of __record__.app.read[0] was not stored"),
        ("app.read[0].rets", "rets.pages[1] was not stored"),
        ("app.read[0].rets['count', 'pages']", "rets['count', 'pages'][1] (value 2 of 2) was not stored"),
        ("app.open[0].rets", "rets was not stored, because it is not data (File)"),
        ("app.open[0].rets[*]", "rets was not stored, because it is not data (File)"),
    ],
)
@pytest.mark.parametrize("if_missing", ["error", "warn", "ignore"])
def test_a_selection_that_meets_what_was_not_stored_fails_with_the_reason(
    selector: str, reason: str, if_missing: str
) -> None:
    feedback = Feedback(give, if_missing=if_missing).on(f"__record__.{selector}")
    result = feedback.evaluate(SOURCE)
    assert (result.status, result.value) == ("failed", None)
    assert reason in str(result.reason)
    assert str(result.reason).endswith("; select a part that was stored, or record a smaller one")


@pytest.mark.parametrize(
    ("selector", "values"),
    [
        ("app.search[0].rets[0]", ["a"]),
        ("app.read[0].rets.count", [2]),
        ("app.read[0].rets.pages[:1]", ["a"]),
        ("app.search[1].rets[::2].text", ["b", "c"]),
        ("app.search[?@.rets[0] == 'a'].rets[0]", ["a"]),
    ],
)
def test_what_was_stored_beside_it_is_selected(selector: str, values: list[Any]) -> None:
    assert Selector(f"__record__.{selector}").require(SOURCE) == values


def test_a_description_of_what_is_not_data_is_part_of_a_value() -> None:
    record = {"main_output": {"text": "a", "client": unstorable("Client")}}
    assert Feedback(give).on_output().evaluate({"__record__": record}).value == 1.0


def test_whether_what_was_not_stored_exists_is_unknown() -> None:
    feedback = Feedback(give, if_exists="__record__.main_output.text").on("__record__.app.read[0].rets.count")
    result = feedback.evaluate(SOURCE)
    assert (result.status, isinstance(result.error, NotStored)) == ("failed", True)
    assert str(result.reason).startswith(
        "if_exists: __record__.main_output.text: __record__.main_output was not stored"
    )


class Reader:
    def read(self, name: str) -> Any:
        return {"text": PAGE, "lock": threading.Lock()} if name == "large" else {"text": "x" * 2000}

    def echo(self, text: str) -> str:
        return text

    def measure(self, text: str) -> int:
        return len(text)


@pytest.mark.parametrize("when", ["live", "stored"])
def test_an_app_that_returns_a_large_text_has_a_failed_row(when: str) -> None:
    reader, feedback = Reader(), Feedback(is_long).on("__record__.main_output.text")
    app = App(reader, feedbacks=[feedback] if when == "live" else [], mode="with_app", store=MemoryStore())
    with app as recording:
        reader.read("small")
        reader.read("large")
    assert recording.run is not None
    stored = None if when == "live" else Evaluator().evaluate(recording.run, {"is_long": feedback})
    evaluation = stored or recording.evaluation
    assert evaluation is not None
    table = evaluation.table("is_long")
    assert table["status"].to_pylist() == ["scored", "failed"]
    assert table["value"].to_pylist() == [1.0, None]
    assert "text was not stored, because it is too large (text of 9000000 characters)" in table["reason"][1].as_py()


@pytest.mark.parametrize(
    ("method", "reads", "scorer"),
    [
        ("echo", "output", lambda output: len(output) > 1000),
        ("measure", "input", lambda output, input: len(input) > 1000),
    ],
)
def test_scorers_of_recorded_calls_score_nothing_that_was_not_stored(
    method: str, reads: str, scorer: Callable[..., bool]
) -> None:
    reader = Reader()
    with App(reader, store=MemoryStore()) as recording:
        getattr(reader, method)("short")
        getattr(reader, method)(PAGE)
    assert recording.run is not None
    table = Evaluator().evaluate(recording.run, {"long": scorer}).table("long")
    assert table["status"].to_pylist() == ["scored", "failed"]
    assert table["reason"][1].as_py().startswith(f"the {reads} was not stored, because it is too large")
