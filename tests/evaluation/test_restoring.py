"""A stored feedback is the same judge when it is read, or an error: never another one."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from evaluand import App, MemoryStore, Provider
from evaluand.core.errors import SpecError
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback import Feedback
from evaluand.interop.trulens import Feedback as TruLens, Lens


class Mode(Enum):
    WORDS = "words"
    LETTERS = "letters"


class Counting(Provider):
    """Derives what it needs from its arguments."""

    def __init__(self, least: int, words: Sequence[str] = (), pattern: str = ".") -> None:
        self.least, self.words, self.pattern = least, words, pattern
        self._matcher = re.compile(pattern)
        self._lock = threading.Lock()
        self._weigh = lambda text: len(text) * least
        self._parts = {"words": set(words), "all": [self.judge]}

    @cached_property
    def connection(self) -> sqlite3.Connection:
        return sqlite3.connect(":memory:")

    def judge(self, text: str) -> float:
        return float(len(text) >= self.least)

    def other(self, text: str) -> float:
        return 0.0


@dataclass
class Fields(Provider):
    least: int
    total: int = field(default=0, init=False)

    def judge(self, text: str) -> float:
        return float(len(text) >= self.least)


class Options(Provider):
    def __init__(self, least: int = 1, **options: Any) -> None:
        self.least, self.options = least, options

    def judge(self, text: str) -> float:
        return float(len(text) >= self.options.get("most", self.least))


class Doubling(Provider):
    def __init__(self, least: int) -> None:
        self.least = least * 2

    def judge(self, text: str) -> float:
        return float(len(text) >= self.least)


class Choosing(Provider):
    def __init__(self, mode: Any) -> None:
        self.mode = mode

    def judge(self, text: str) -> float:
        return 1.0


class Failing(Provider):
    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        if type(self).made > 1:
            raise RuntimeError("only once")

    def judge(self, text: str) -> float:
        return 1.0


def changed(provider: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(provider, name, value)
    return provider


def renamed() -> Any:
    provider = Counting(3)
    provider.judge.__func__.__name__ = "other"
    return provider


OTHER = "its provider has another identity when made again; give it texts"


@pytest.mark.parametrize(
    ("provider", "reported"),
    [
        (lambda: changed(Counting(3), least=9), OTHER),
        (lambda: Counting(3, ("a", "b")), OTHER),
        (lambda: changed(Counting(3), strict=True), OTHER),
        (lambda: changed(Counting(3), _lock=5), OTHER),
        (lambda: changed(Counting(3), _matcher=re.compile("a")), OTHER),
        (lambda: changed(Counting(3), _weigh=lambda text: 0), OTHER),
        (lambda: changed(Counting(3), _weigh=Counting(4)._weigh), OTHER),
        (lambda: changed(Fields(3), strict=True), OTHER),
        (lambda: changed(Fields(3), total=4), OTHER),
        (lambda: Options(3, most=9), "what its constructor was given as **options is unknown; name its arguments"),
        (lambda: Options(), "what its constructor was given as **options is unknown"),
        (lambda: Doubling(2), OTHER),
        (lambda: Choosing(Mode.WORDS), OTHER),
        (lambda: Failing(), "Failing cannot be made again: RuntimeError: only once"),
    ],
)
def test_what_cannot_be_restored_is_refused_when_it_is_stored_or_deferred(
    provider: Callable[[], Any], reported: str
) -> None:
    Failing.made = 0
    feedback = Feedback(provider().judge).on_output()
    with pytest.raises(SpecError) as raised:
        feedback.to_json()
    assert reported in str(raised.value)
    with pytest.raises(SpecError) as raised:
        App(len, feedbacks=[feedback], mode="deferred", store=MemoryStore())
    assert str(raised.value).startswith("feedback 'judge' cannot be deferred: ")
    assert reported in str(raised.value)
    App(len, feedbacks=[feedback], mode="with_app", store=MemoryStore())  # judged by this very provider


@pytest.mark.parametrize(
    "provider", [Counting(3), Counting(2, ["a", "b"], "[a-z]"), changed(Fields(3), least=9), Fields(3)]
)
def test_what_can_be_restored_is_the_same_judge(provider: Any) -> None:
    feedback = Feedback(provider.judge).on_output()
    again = Feedback.from_json(json.loads(json.dumps(feedback.to_json())), modules=[__name__])
    assert again.identify() == feedback.identify()
    texts = ["", "a", "ab", "abc", "a" * 9]
    assert [again.implementation(text) for text in texts] == [provider.judge(text) for text in texts]
    assert App(len, feedbacks=[feedback], mode="deferred", store=MemoryStore()).mode == "deferred"


def test_what_a_cached_property_holds_is_made_when_it_is_needed() -> None:
    provider = Counting(3)
    assert provider.connection.execute("select 1").fetchone() == (1,)
    Feedback(provider.judge).on_output().to_json()


def test_a_method_under_the_name_of_another_is_refused() -> None:
    class_ = type("Named", (Counting,), {"judge": Counting.other, "other": Counting.judge})
    globals()["Named"] = class_
    class_.__module__, class_.__qualname__ = __name__, "Named"
    with pytest.raises(SpecError, match="Named has another method under the name 'other'"):
        Feedback(class_(3).judge).on_output().to_json()  # type: ignore[attr-defined]


def test_a_judge_whose_code_has_changed_since_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    code = "def rate(text):\n    return float(len(text) > {})\n"
    (tmp_path / "changing_judges.py").write_text(code.format(3))
    module = importlib.import_module("changing_judges")
    stored = Feedback(module.rate).on_output().to_json()
    (tmp_path / "changing_judges.py").write_text(code.format(10))
    importlib.invalidate_caches()
    importlib.reload(module)
    with pytest.raises(SpecError, match="'rate' has changed since it was stored; to take it as it is now, remove its"):
        Feedback.from_json(stored, modules=["changing_judges"])
    del stored["identity"]
    again = Feedback.from_json(stored, modules=["changing_judges"])
    assert again.implementation("12345") == 0.0


def test_a_definition_that_was_edited_is_refused() -> None:
    stored = Feedback(Counting(3).judge).on_output().to_json()
    stored["implementation"]["parameters"]["least"] = 4
    with pytest.raises(SpecError, match="has changed since it was stored"):
        Feedback.from_json(stored, modules=[__name__])


def test_a_lens_reads_objects_after_it_was_stored_too() -> None:
    feedback = TruLens(Counting(3).judge, selectors={"text": Lens().answer.text})
    again = TruLens.from_json(feedback.to_json(), modules=[__name__])
    assert again.bound == feedback.bound == {"text": Selector("answer.text", objects=True)}
    answer = type("Answer", (), {"text": "four"})()
    assert (
        again.run(source_data={"answer": answer}).result == feedback.run(source_data={"answer": answer}).result == 1.0
    )
