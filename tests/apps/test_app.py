"""Apps: which calls are recorded, and what of them."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import dataclasses
import functools
import gc
import inspect
import pickle
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import BaseModel

from evaluand import Dataset, Evaluator, Runner, span
from evaluand.apps.app import App
from evaluand.apps.instrumentation.marking import carry_context, instrument
from evaluand.apps.logs import record_logs
from evaluand.apps.recording.writer import NotRecorded
from evaluand.apps.session import RecordingSession
from evaluand.core.errors import DataError, EvaluandWarning, SpecError, warn
from evaluand.core.selector import Selector
from evaluand.evaluation.evaluator import ScorerFailed
from evaluand.evaluation.feedback import Feedback
from evaluand.evaluation.scorers.feedback import FeedbackKind
from evaluand.trace import Trace
from evaluand.trace.foreign_spans import traces_of
from evaluand.trace.record import Record
from evaluand.trace.tracers.in_memory import InMemoryTracer


class Retriever:
    def search(self, query: str, k: int = 2) -> list[str]:
        return [f"{query} {n}" for n in range(k)]


class Model:
    def ask(self, prompt: str) -> str:
        return prompt.upper()


class Rag:
    def __init__(self) -> None:
        self.retriever = Retriever()
        self.model = Model()

    def query(self, question: str) -> str:
        return self.model.ask(" ".join(self.retriever.search(question, k=1)))


class Marked:
    """Every sort of method, marked."""

    made: ClassVar[list[str]] = []

    @instrument
    def plain(self, a: int, /, b: int = 2, *rest: int, c: int = 3, **more: int) -> int:
        return a

    @instrument
    async def soon(self, text: str) -> str:
        await asyncio.sleep(0)
        return self.inner(text)

    @instrument(kind="tool", name="within")
    def inner(self, text: str) -> str:
        return text + "!"

    @instrument
    def stream(self, text: str) -> Iterator[str]:
        for letter in text:
            self.inner(letter)
            yield letter

    @instrument
    async def astream(self, text: str) -> AsyncIterator[str]:
        for letter in text:
            await asyncio.sleep(0)
            self.inner(letter)
            yield letter

    @instrument
    def gives_generator(self, n: int) -> Iterator[int]:
        return (i for i in range(n))

    @instrument
    def gives_coroutine(self, text: str) -> Any:
        return self.soon(text)

    @property
    @instrument
    def above(self) -> str:
        return "property"

    @instrument
    @property
    def below(self) -> str:
        return "property"

    @functools.cached_property
    @instrument
    def cached(self) -> str:
        return "cached"

    @instrument
    @classmethod
    def of_class(cls, x: int) -> str:
        return cls.__name__

    @classmethod
    @instrument
    def of_class_too(cls, x: int) -> str:
        return cls.__name__

    @instrument
    @staticmethod
    def static(x: int) -> int:
        return x

    @staticmethod
    @instrument
    def static_too(x: int) -> int:
        return x

    @instrument
    def __call__(self, text: str) -> str:
        return self.inner(text)

    @instrument
    def fails(self, text: str) -> str:
        self.inner(text)
        raise ValueError(f"no {text}")

    @instrument
    def down(self, n: int) -> int:
        return n if n == 0 else self.down(n - 1)


def methods(record: Record) -> list[str]:
    return [call["stack"][-1]["method"] for call in record["calls"]]


def recorded(target: Any, call: Any) -> Record:
    with App(target) as recording:
        call(target)
    return recording.get()


# What is recorded


def test_each_outermost_call_is_one_record() -> None:
    rag = Rag()
    with App(rag, name="rag", version="2") as recording:
        rag.query("Emma")
        rag.query("Persuasion")
    first, second = recording.records
    assert (first["main_input"], first["main_output"]) == ("Emma", "EMMA 0")
    assert (second["main_input"], second["main_output"]) == ("Persuasion", "PERSUASION 0")
    assert methods(first) == ["search", "ask", "query"]
    assert first["app"]["retriever"]["search"][0]["args"] == {"query": "Emma", "k": 1}
    assert first["app"]["retriever"]["search"][0]["rets"] == ["Emma 0"]
    assert first["app"]["query"][0]["args"] == {"question": "Emma"}
    assert (first["app_id"], second["record_id"]) == ("rag:2", "1")


def test_nothing_is_recorded_outside_the_block() -> None:
    rag = Rag()
    app = App(rag)
    rag.query("before")
    with app as recording:
        pass
    rag.query("after")
    assert len(recording.records) == 0


def test_blocks_record_each_their_own() -> None:
    rag = Rag()
    app = App(rag)
    with app as first:
        rag.query("a")
    with app as second:
        rag.query("b")
        rag.query("c")
    assert ([r["main_input"] for r in first.records], [r["main_input"] for r in second.records]) == (["a"], ["b", "c"])


def test_other_objects_of_the_class_and_the_class_stay_as_they_are() -> None:
    search, rag, other = Retriever.search, Rag(), Rag()
    with App(rag) as recording:
        other.query("not mine")
    assert len(recording.records) == 0
    assert Retriever.search is search
    assert (type(other), type(other.retriever)) == (Rag, Retriever)


def test_an_instrumented_object_passes_for_what_it_is() -> None:
    rag = Rag()
    App(rag)
    assert isinstance(rag, Rag)
    assert rag.__class__ is Rag
    assert type(rag).__name__ == "Rag"
    copied = copy.deepcopy(rag)
    assert (type(copied), type(copied.retriever)) == (Rag, Retriever)
    assert type(pickle.loads(pickle.dumps(rag))) is Rag
    assert "search" not in vars(rag.retriever)


def test_a_copy_is_no_component() -> None:
    rag = Rag()
    with App(rag) as recording:
        copy.copy(rag.retriever).search("x")
    assert len(recording.records) == 0


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: int = 1

    def search(self, query: str) -> str:
        return query * self.k


def test_a_dataclass_still_equals_others() -> None:
    frozen = Frozen()
    with App(frozen) as recording:
        frozen.search("a")
    assert frozen == Frozen()
    assert hash(frozen) == hash(Frozen())
    assert recording.get()["main_output"] == "a"


class Slotted:
    __slots__ = ("_k", "part")

    def __init__(self) -> None:
        self._k = 2

    def search(self, query: str) -> str:
        return query * self._k


class Holder:
    __slots__ = ("slotted",)

    def __init__(self) -> None:
        self.slotted = Slotted()

    def run(self, text: str) -> str:
        return self.slotted.search(text)


def test_objects_with_slots_are_recorded() -> None:
    record = recorded(Holder(), lambda holder: holder.run("a"))
    assert record["app"]["slotted"]["search"][0]["rets"] == "aa"


class Settings(BaseModel):
    k: int = 3

    def times(self, x: int) -> int:
        return self.k * x


def test_pydantic_models_are_recorded() -> None:
    settings = Settings()
    record = recorded(settings, lambda s: s.times(2))
    assert (record["main_input"], record["main_output"]) == (2, 6)
    assert settings == Settings()
    assert settings.model_dump() == {"k": 3}
    assert methods(record) == ["times"]


class Plugin(ABC):
    known: ClassVar[dict[str, type]] = {}

    def __init_subclass__(cls, *, key: str) -> None:
        Plugin.known[key] = cls

    @abstractmethod
    def run(self, x: int) -> int: ...


class Twice(Plugin, key="twice"):
    def run(self, x: int) -> int:
        return 2 * x


def test_a_register_of_subclasses_sees_none_that_nobody_wrote() -> None:
    record = recorded(Twice(), lambda twice: twice.run(2))
    assert record["main_output"] == 4
    assert Plugin.known == {"twice": Twice}


class Counter(dict[str, int]):
    def count(self, word: str) -> int:
        self[word] = self.get(word, 0) + 1
        return self[word]


def test_objects_derived_from_builtin_classes_are_recorded() -> None:
    assert recorded(Counter(), lambda counter: counter.count("a"))["main_output"] == 1


def brief(text: str) -> bool:
    return len(text) < 5


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"feedbacks": brief}, r"feedbacks is a function; give Feedback\(function\)\.on\(…\), or a list of such"),
        ({"feedbacks": [brief]}, r"a feedback is a function; give Feedback\(function\)\.on\(…\)"),
        ({"feedbacks": "brief"}, "feedbacks is the text 'brief'"),
        ({"feedbacks": 5}, "feedbacks is the integer 5"),
        ({"metadata": 5}, "metadata is the integer 5; give a dictionary"),
        ({"name": 5}, "name is the integer 5; give text, such as name='5'"),
        ({"name": ""}, "name is the text ''"),
        ({"version": 2}, "version is the integer 2; give text, such as version='2'"),
        ({"tags": 5}, "tags is the integer 5; give text"),
        ({"policy": 5}, r"policy is the integer 5; give a Policy\("),
        ({"store": "folder"}, r"'folder' is not a store; use .*DirectoryStore\(path\)"),
        ({"methods": ["query"]}, "is a function and has no methods to trace; leave methods out"),
    ],
)
def test_what_an_app_cannot_be_made_with_is_reported(options: dict[str, Any], reported: str) -> None:
    with pytest.raises(SpecError, match=reported):
        App(lambda text: text, **options)


def test_one_feedback_is_as_good_as_a_list_of_it() -> None:
    feedback = Feedback(brief).on_output()
    for given in (feedback, [feedback], {"brief": feedback}):
        app = App(lambda text: text, feedbacks=given)
        with app as recording:
            app.app("yes")
        assert recording.evaluation is not None
        assert recording.evaluation.counts == {"brief": {"scored": 1}}


def test_what_cannot_be_instrumented_is_reported() -> None:
    class Final(BaseException):
        def run(self) -> None: ...

    with pytest.raises(SpecError, match="Final has no method that can be traced"):
        App(object.__new__(type("Final", (), {})))


# Which methods


def test_public_methods_of_first_party_components_are_traced_where_nothing_is_said() -> None:
    class Hidden(Rag):
        def _secret(self) -> None: ...

        def __call__(self, x: str) -> str:
            return x

    app = App(Hidden())
    assert app.instrumented == {"": ["__call__", "query"], "retriever": ["search"], "model": ["ask"]}


def test_only_marked_methods_are_traced_where_any_is() -> None:
    class Part:
        @instrument
        def one(self) -> None: ...

        def two(self) -> None: ...

    class Whole:
        def __init__(self) -> None:
            self.part, self.retriever = Part(), Retriever()

    assert App(Whole()).instrumented == {"part": ["one"]}


@pytest.mark.parametrize(
    ("asked", "traced"),
    [
        (["search"], {"retriever": ["search"]}),
        (["retriever.search", ".query"], {"": ["query"], "retriever": ["search"]}),
        (["_hidden"], {"": ["_hidden"]}),
    ],
)
def test_named_methods_are_traced(asked: list[str], traced: dict[str, list[str]]) -> None:
    class Whole(Rag):
        def _hidden(self) -> None: ...

    assert App(Whole(), methods=asked).instrumented == traced


def test_a_method_that_no_component_has_is_reported_with_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"no component has a method 'retriever.serch'.*retriever.search"):
        App(Rag(), methods=["retriever.serch"])


def test_one_name_in_place_of_a_list_is_reported() -> None:
    with pytest.raises(SpecError, match=r"methods=\['search'\]"):
        App(Rag(), methods="search")


def test_properties_are_traced_where_they_are_named_and_asked_by_no_one_else() -> None:
    class Lazy:
        asked = 0

        @property
        def index(self) -> str:
            Lazy.asked += 1
            return "index"

        def query(self) -> str:
            return self.index

    lazy = Lazy()
    app = App(lazy, methods=["query", "index"])
    assert app.json["app"] == {"__class__": app.json["root_class"]}
    assert Lazy.asked == 0
    with app as recording:
        lazy.query()
    assert methods(recording.get()) == ["index", "query"]


def test_class_and_static_methods_are_traced_without_a_mark() -> None:
    class Tools:
        @classmethod
        def make(cls, x: int) -> object:
            return cls

        @staticmethod
        def add(a: int, b: int) -> int:
            return a + b

        def run(self) -> object:
            return self.make(1), self.add(1, b=2)

    class Toolbox:
        def __init__(self) -> None:
            self.tools = Tools()

        def go(self) -> object:
            return self.tools.run()

    app = Toolbox()
    record = recorded(app, lambda a: a.go())
    assert app.go() == (Tools, 3)
    assert record["app"]["tools"]["make"][0]["args"] == {"x": 1}
    assert record["app"]["tools"]["add"][0]["args"] == {"a": 1, "b": 2}


def test_components_in_lists_and_dictionaries_have_their_places() -> None:
    class Step:
        def run(self, x: int) -> int:
            return x + 1

    class Pipeline:
        def __init__(self) -> None:
            self.steps = [Step(), Step()]
            self.named = {"last one": Step()}

        def go(self, x: int) -> int:
            for step in (*self.steps, *self.named.values()):
                x = step.run(x)
            return x

    pipeline = Pipeline()
    record = recorded(pipeline, lambda p: p.go(0))
    assert Selector("app.steps[*].run[0].rets").find(record) == [1, 2]
    assert record["app"]["named"]["last one"]["run"][0]["rets"] == 3
    assert list(App(pipeline).instrumented) == ["", "steps[0]", "steps[1]", "named['last one']"]


def test_cycles_among_components_end() -> None:
    class Node:
        def __init__(self) -> None:
            self.other: Any = None

        def run(self) -> int:
            return 1 if self.other is None or self.other.other is not self else self.other.work()

        def work(self) -> int:
            return 2

    a, b = Node(), Node()
    a.other, b.other = b, a
    app = App(a)
    with app as recording:
        a.run()
    assert methods(recording.get()) == ["work", "run"]
    assert app.json["app"]["other"]["other"] == {"$unstorable": f"{Node.__qualname__} within itself"}


def test_large_lists_are_data_and_not_looked_into() -> None:
    class Store:
        def __init__(self) -> None:
            self.parts = [Retriever() for _ in range(10_000)]

        def query(self) -> int:
            return len(self.parts)

    assert App(Store()).instrumented == {"": ["query"]}


def test_components_that_came_later_are_found_by_refresh() -> None:
    rag = Rag()
    app = App(rag)
    rag.retriever = Retriever()
    with app as recording:
        rag.query("a")
    assert methods(recording.get()) == ["ask", "query"]
    app.refresh()
    with app as recording:
        rag.query("a")
    assert methods(recording.get()) == ["search", "ask", "query"]


def test_a_method_as_the_app_is_recorded_of_its_object() -> None:
    rag = Rag()
    app = App(rag.query)
    with app as recording:
        app.app("a")
    assert app.target is rag
    assert recording.get()["main_output"] == "A 0"


def test_a_private_method_as_the_app_is_traced_beside_the_marked_ones() -> None:
    class Half(Marked):
        def _go(self, text: str) -> str:
            return self.inner(text)

    half = Half()
    app = App(half._go)
    with app as recording:
        app.app("a")
    assert methods(recording.get()) == ["within", "_go"]


def test_a_function_is_an_app() -> None:
    def shout(text: str, times: int = 1) -> str:
        with span("inner", input=text):
            return text.upper() * times

    app = App(shout)
    with app as recording:
        assert app.app("a", times=2) == "AA"
        shout("not this")
    record = recording.get()
    assert (record["main_input"], record["main_output"], methods(record)) == ("a", "AA", ["inner", "shout"])
    assert record["calls"][-1]["args"] == {"text": "a", "times": 2}


def test_a_marked_function_is_recorded_by_whoever_records() -> None:
    @instrument(kind="retriever")
    def search(query: str) -> list[str]:
        return [query]

    class Asking:
        def ask(self, q: str) -> str:
            return search(q)[0]

    asking = Asking()
    with App(asking) as recording:
        asking.ask("a")
        search("b")
    assert [methods(record) for record in recording.records] == [["search", "ask"], ["search"]]
    assert recording.records[0]["calls"][0]["kind"] == "retriever"
    assert search("c") == ["c"]


@pytest.mark.parametrize("target", [None, "text", [1], 3, Rag])
def test_what_is_no_app_is_refused(target: Any) -> None:
    with pytest.raises(SpecError, match="an app is"):
        App(target)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(SpecError, match="give one of none, with_app"):
        App(Rag(), mode="later")


# Sorts of methods


def test_arguments_are_reported_by_name() -> None:
    record = recorded(Marked(), lambda m: m.plain(1, 5, 6, 7, c=8, d=9))
    assert record["calls"][-1]["args"] == {"a": 1, "b": 5, "rest": [6, 7], "c": 8, "more": {"d": 9}}
    assert record["main_input"] == 1
    assert recorded(Marked(), lambda m: m.inner(text="t"))["calls"][-1]["args"] == {"text": "t"}
    assert recorded(Marked(), lambda m: m.above)["calls"][-1]["args"] == {}


def test_the_main_input_is_the_first_argument_of_the_signature() -> None:
    class Two:
        def ask(self, question: str, k: int) -> str:
            return question

    assert recorded(Two(), lambda two: two.ask(k=2, question="q"))["main_input"] == "q"


def test_wrong_arguments_raise_as_without_a_recording() -> None:
    with App(Marked()) as recording, pytest.raises(TypeError, match="missing 1 required positional argument"):
        recording.app.target.inner()
    assert recording.get()["main_error"]["type"] == "TypeError"


def test_async_calls_are_recorded() -> None:
    marked = Marked()
    with App(marked) as recording:
        assert asyncio.run(marked.soon("a")) == "a!"
    assert methods(recording.get()) == ["within", "soon"]
    assert recording.get()["main_output"] == "a!"


def test_concurrent_async_calls_are_a_record_each() -> None:
    marked = Marked()

    async def all_() -> None:
        await asyncio.gather(*(marked.soon(str(n)) for n in range(20)))

    with App(marked) as recording:
        asyncio.run(all_())
    assert sorted(record["main_input"] for record in recording.records) == sorted(map(str, range(20)))
    assert all(methods(record) == ["within", "soon"] for record in recording.records)
    assert all(record["calls"][0]["args"]["text"] == record["main_input"] for record in recording.records)


def test_a_cancelled_call_is_an_error() -> None:
    class Slow:
        async def wait(self) -> None:
            await asyncio.sleep(60)

    slow = Slow()

    async def run() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(slow.wait(), 0.01)

    with App(slow) as recording:
        asyncio.run(run())
    assert recording.get()["main_error"]["type"] == "CancelledError"


def test_what_a_generator_gave_out_is_its_output() -> None:
    record = recorded(Marked(), lambda m: list(m.stream("abc")))
    assert record["main_output"] == "abc"
    assert methods(record) == ["within", "within", "within", "stream"]
    assert recorded(Marked(), lambda m: list(m.gives_generator(3)))["main_output"] == [0, 1, 2]


def test_calls_between_two_values_of_a_generator_are_not_within_it() -> None:
    marked = Marked()
    with App(marked) as recording:
        for letter in marked.stream("ab"):
            marked.plain(ord(letter))
    assert [methods(record)[-1] for record in recording.records] == ["plain", "plain", "stream"]
    assert methods(recording.records[2]) == ["within", "within", "stream"]


@pytest.mark.parametrize("method", ["stream", "gives_generator"])
def test_a_generator_left_unfinished_is_recorded_when_it_is_closed(method: str) -> None:
    marked = Marked()
    with App(marked) as recording:
        given = getattr(marked, method)("abc" if method == "stream" else 3)
        next(given)
        assert len(recording.records) == 0
        given.close()
    record = recording.get()
    assert record["main_output"] in ("a", [0])
    assert record["main_error"] is None


def test_a_generator_that_was_dropped_is_recorded_without_an_error() -> None:
    marked = Marked()
    with App(marked) as recording:
        next(marked.stream("abc"))
        marked.gives_generator(3)  # never begun
        gc.collect()
    assert [record["main_output"] for record in recording.records] == ["a", []]


def test_a_generator_that_is_read_after_the_block_is_still_recorded() -> None:
    marked = Marked()
    with App(marked) as recording:
        given = marked.stream("abc")
        next(given)
    assert list(given) == ["b", "c"]
    assert recording.get()["main_output"] == "abc"


def test_values_and_errors_reach_into_generators() -> None:
    class Talking:
        @instrument
        def talk(self) -> Any:
            heard = yield "hello"
            try:
                yield heard
            except KeyError:
                yield "caught"
            return "end"

    talking = Talking()
    with App(talking) as recording:
        given = talking.talk()
        assert [next(given), given.send("you"), given.throw(KeyError("x"))] == ["hello", "you", "caught"]
        with pytest.raises(StopIteration) as stopped:
            next(given)
    assert stopped.value.value == "end"
    assert recording.get()["main_output"] == "helloyoucaught"


def test_an_error_within_a_generator_is_recorded() -> None:
    class Breaking:
        @instrument
        def give(self) -> Iterator[str]:
            yield "a"
            raise OSError("broken")

    breaking = Breaking()
    with App(breaking) as recording, pytest.raises(OSError, match="broken"):
        list(breaking.give())
    record = recording.get()
    assert (record["main_output"], record["main_error"]) == (None, {"type": "OSError", "message": "broken"})


def test_async_generators_are_recorded() -> None:
    marked = Marked()

    async def read() -> list[str]:
        return [letter async for letter in marked.astream("abc")]

    with App(marked) as recording:
        assert asyncio.run(read()) == ["a", "b", "c"]
    assert recording.get()["main_output"] == "abc"
    assert methods(recording.get()) == ["within"] * 3 + ["astream"]


def test_an_async_generator_left_unfinished_is_recorded() -> None:
    marked = Marked()

    async def read() -> None:
        async for _ in marked.astream("abc"):
            break
        given = marked.astream("xyz")
        await anext(given)
        await given.aclose()

    with App(marked) as recording:
        asyncio.run(read())
    assert sorted(record["main_output"] for record in recording.records) == ["a", "x"]


def test_values_and_errors_reach_into_async_generators() -> None:
    class Talking:
        @instrument
        async def talk(self) -> Any:
            heard = yield "hello"
            try:
                yield heard
            except KeyError:
                yield "caught"

    async def talk() -> list[str]:
        given = talking.talk()
        said = [await anext(given), await given.asend("you"), await given.athrow(KeyError("x"))]
        with pytest.raises(StopAsyncIteration):
            await anext(given)
        return said

    talking = Talking()
    with App(talking) as recording:
        assert asyncio.run(talk()) == ["hello", "you", "caught"]
    assert recording.get()["main_output"] == "helloyoucaught"
    assert asyncio.run(talk()) == ["hello", "you", "caught"]


def test_a_coroutine_that_a_plain_method_gives_is_followed_to_its_end() -> None:
    marked = Marked()
    with App(marked) as recording:
        assert asyncio.run(marked.gives_coroutine("a")) == "a!"
    assert methods(recording.get()) == ["within", "soon", "gives_coroutine"]
    assert recording.get()["main_output"] == "a!"


@pytest.mark.parametrize(
    ("call", "method", "output"),
    [
        (lambda m: m.above, "above", "property"),
        (lambda m: m.below, "below", "property"),
        (lambda m: m.cached, "cached", "cached"),
        (lambda m: m.of_class(1), "of_class", "Marked"),
        (lambda m: m.of_class_too(1), "of_class_too", "Marked"),
        (lambda m: m.static(1), "static", 1),
        (lambda m: m.static_too(1), "static_too", 1),
        (lambda m: m("t"), "__call__", "t!"),
    ],
)
def test_every_sort_of_method_is_recorded(call: Any, method: str, output: Any) -> None:
    record = recorded(Marked(), call)
    assert record["main_output"] == output
    assert record["calls"][-1]["stack"] == [{"path": "", "method": method}]


class Otherwise:
    """Methods whose receiver is not called self."""

    def go(this, question: str) -> str:  # noqa: N805
        return question

    @classmethod
    def of_class(kind, question: str) -> str:  # noqa: N804
        return question


class OtherwiseMarked:
    @instrument
    def go(this, question: str) -> str:  # noqa: N805
        return question

    @classmethod
    @instrument
    def below(kind, question: str) -> str:  # noqa: N804
        return question

    @instrument
    @classmethod
    def above(kind, question: str) -> str:  # noqa: N804
        return question

    @staticmethod
    @instrument
    def static(other: object) -> int:
        return 1

    @property
    @instrument
    def held(this) -> str:  # noqa: N805
        return "held"


@pytest.mark.parametrize("method", ["go", "of_class"])
def test_a_receiver_is_known_by_its_place(method: str) -> None:
    record = recorded(Otherwise(), lambda app: getattr(app, method)("Who?"))
    assert (record["main_input"], record["calls"][-1]["args"]) == ("Who?", {"question": "Who?"})


@pytest.mark.parametrize("method", ["go", "below", "above"])
def test_a_receiver_of_a_marked_method_is_known_by_its_place(method: str) -> None:
    record = recorded(OtherwiseMarked(), lambda app: getattr(app, method)("Who?"))
    assert (record["main_input"], record["calls"][-1]["args"]) == ("Who?", {"question": "Who?"})
    assert record["calls"][-1]["stack"] == [{"path": "", "method": method}]


@pytest.mark.parametrize("given", ["Who?", OtherwiseMarked()])
def test_a_static_method_has_no_receiver_whatever_it_is_given(given: Any) -> None:
    record = recorded(OtherwiseMarked(), lambda app: app.static(given))
    assert list(record["calls"][-1]["args"]) == ["other"]


def test_a_property_is_called_with_nothing() -> None:
    record = recorded(OtherwiseMarked(), lambda app: app.held)
    assert (record["main_input"], record["calls"][-1]["args"]) == (None, {})


def test_the_main_input_is_the_first_of_the_signature_that_was_given() -> None:
    class Asked:
        def go(self, *, question: str | None = None, k: int = 1, **more: int) -> str | None:
            return question

    record = recorded(Asked(), lambda app: app.go(n=1, k=3, question="Who?"))
    assert record["main_input"] == "Who?"
    assert recorded(Asked(), lambda app: app.go(n=1, k=3))["main_input"] == 3


def test_what_is_made_in_a_block_and_read_after_it_belongs_to_the_recording() -> None:
    marked = Marked()
    with App(marked) as recording:
        stream, astream, soon = marked.stream("ab"), marked.astream("cd"), marked.soon("e")

    async def read() -> tuple[list[str], str]:
        return [letter async for letter in astream], await soon

    assert list(stream) == ["a", "b"]
    assert asyncio.run(read()) == (["c", "d"], "e!")
    assert [record["main_output"] for record in recording.records] == ["ab", "cd", "e!"]
    assert methods(recording.records[0]) == ["within", "within", "stream"]


def test_a_generator_that_is_read_in_another_block_or_thread_belongs_to_the_one_it_was_made_in() -> None:
    marked = Marked()
    with App(marked, name="first") as first:
        one, two = marked.stream("ab"), marked.stream("cd")
    with App(marked, name="second") as second:
        assert list(one) == ["a", "b"]
    with ThreadPoolExecutor() as pool:
        assert pool.submit(list, two).result() == ["c", "d"]
    assert [record["main_output"] for record in first.records] == ["ab", "cd"]
    assert len(second.records) == 0


def test_a_generator_that_is_made_in_a_call_and_read_in_it_is_a_part_of_it() -> None:
    class Reads:
        def stream(self) -> Iterator[str]:
            yield "a"

        def ask(self) -> str:
            return "".join(self.read(self.stream()))

        def read(self, parts: Iterator[str]) -> list[str]:
            return list(parts)

    reads = Reads()
    with App(reads) as recording:
        reads.ask()
    assert methods(recording.get()) == ["stream", "read", "ask"]


def test_a_generator_that_is_read_after_the_recording_was_closed_is_reported_of() -> None:
    marked = Marked()
    with App(marked) as recording:
        stream = marked.stream("ab")
    recording.close()
    with pytest.warns(NotRecorded, match="a call ended after the recording had"):
        assert list(stream) == ["a", "b"]


def test_a_generator_that_a_task_made_and_nobody_records_is_read_as_it_is() -> None:
    made: list[Any] = []

    class Makes:
        def stream(self) -> Iterator[str]:
            yield "a"

        def ask(self, question: str) -> str:
            made.append(self.stream())
            return question

    app = App(Makes())
    Runner().run(app.as_task("ask"), Dataset.from_rows([{"input": "a"}]))
    assert list(made[0]) == ["a"]


def test_sorts_of_functions_are_what_they_were() -> None:
    assert inspect.iscoroutinefunction(Marked.soon)
    assert inspect.isgeneratorfunction(Marked.stream)
    assert inspect.isasyncgenfunction(Marked.astream)
    assert list(inspect.signature(Marked.inner).parameters) == ["self", "text"]


def test_recursion_is_a_list_of_calls() -> None:
    record = recorded(Marked(), lambda m: m.down(3))
    assert [call["args"]["n"] for call in record["app"]["down"]] == [0, 1, 2, 3]
    assert len(record["calls"][0]["stack"]) == 4


def test_an_error_passes_through_and_is_recorded() -> None:
    marked = Marked()
    with App(marked) as recording, pytest.raises(ValueError, match="no x"):
        marked.fails("x")
    record = recording.get()
    assert record["main_error"] == {"type": "ValueError", "message": "no x"}
    assert [call["error"] for call in record["calls"]] == [None, {"type": "ValueError", "message": "no x"}]


def test_a_name_and_a_kind_can_be_given() -> None:
    record = recorded(Marked(), lambda m: m("a"))
    assert (record["calls"][0]["stack"][-1]["method"], record["calls"][0]["kind"]) == ("within", "tool")


@pytest.mark.parametrize("wrong", [3, "search", Rag])
def test_what_is_no_function_cannot_be_marked(wrong: Any) -> None:
    with pytest.raises(SpecError, match="@instrument is for functions and methods"):
        instrument(wrong)


# Threads, several apps


def test_a_plain_thread_belongs_to_no_recording_unless_it_is_carried() -> None:
    rag = Rag()
    with App(rag) as recording, ThreadPoolExecutor(4) as pool:
        with pytest.warns(EvaluandWarning, match="in no record"):
            pool.submit(rag.query, "lost").result()
        list(pool.map(recording.carry_context(rag.query), map(str, range(50))))
    assert sorted(int(record["main_input"]) for record in recording.records) == list(range(50))
    assert all(methods(record) == ["search", "ask", "query"] for record in recording.records)


def test_a_call_that_a_thread_loses_is_reported_once_for_each_app_and_method() -> None:
    rag, other = Rag(), Rag()
    with App(rag, name="one"), App(rag, name="two"), ThreadPoolExecutor(1, "worker") as pool:
        with pytest.warns(EvaluandWarning) as reported:
            list(pool.map(lambda each: each.query("lost"), [rag, rag, rag, other]))
        said = [str(each.message) for each in reported]
        assert sorted(text.partition(" was called")[0] for text in said) == sorted(
            f"{app}: {call}" for app in ("one", "two") for call in ("query", "model.ask", "retriever.search")
        )
        assert "in the thread worker_0" in said[0]
        assert "give the thread recording.carry_context(function)" in said[0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pool.submit(rag.query, "lost again").result()


@pytest.mark.parametrize("kind", ["coroutine", "generator", "function"])
def test_calls_of_every_sort_are_reported_that_a_thread_loses(kind: str) -> None:
    class Sorts:
        async def coroutine(self) -> int:
            return 1

        def generator(self) -> Iterator[int]:
            yield 1

    def function() -> int:
        return 1

    sorts = Sorts()
    app: App = App(function) if kind == "function" else App(sorts)
    calls: dict[str, Callable[[], Any]] = {
        "coroutine": lambda: asyncio.run(sorts.coroutine()),
        "generator": lambda: list(sorts.generator()),
        "function": lambda: app.app(),
    }
    with app, ThreadPoolExecutor(1) as pool, pytest.warns(EvaluandWarning, match=f": {kind} was called in the thread"):
        pool.submit(calls[kind]).result()


def test_nothing_is_reported_where_nothing_is_lost() -> None:
    rag = Rag()

    def judge(text: str) -> float:  # is asked in a thread, and uses the app
        return float(bool(rag.retriever.search(text)))

    async def beside(app: App) -> None:
        outside = asyncio.create_task(asyncio.sleep(0.0))
        outside.add_done_callback(lambda _: rag.query("of this thread"), context=contextvars.Context())
        with app:
            await outside
            await asyncio.to_thread(rag.query, "carry_context by itself")

    app = App(rag, feedbacks=[Feedback(judge).on_output()])
    with warnings.catch_warnings(), ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("error")
        pool.submit(rag.query, "before").result()
        with app as recording:
            rag.query("here")
            pool.submit(recording.carry_context(rag.query), "carry_context").result()
        pool.submit(rag.query, "after").result()
        asyncio.run(beside(app))
        assert recording.evaluation.table("judge").column("value").to_pylist() == [1.0] * 3
    assert sorted(record["main_input"] for record in recording.records) == ["carry_context", "here"]


def test_threads_within_a_call_belong_to_it_where_they_are_carried() -> None:
    class Fan:
        def __init__(self) -> None:
            self.retriever = Retriever()

        def query(self, words: list[str]) -> int:
            with ThreadPoolExecutor(4) as pool:
                return len(list(pool.map(carry_context(self.retriever.search), words)))

    record = recorded(Fan(), lambda fan: fan.query(["a", "b", "c"]))
    calls = record["app"]["retriever"]["search"]
    assert sorted(call["args"]["query"] for call in calls) == ["a", "b", "c"]
    assert all(len(call["stack"]) == 2 for call in calls)
    assert {call["tid"] for call in calls}.isdisjoint({record["calls"][-1]["tid"]})
    assert record["calls"][-1]["tid"] == threading.get_ident()


def test_to_thread_is_carried_by_itself() -> None:
    rag = Rag()

    async def run() -> None:
        await asyncio.gather(*(asyncio.to_thread(rag.query, str(n)) for n in range(5)))

    with App(rag) as recording:
        asyncio.run(run())
    assert len(recording.records) == 5


def test_threads_that_record_for_themselves_do_not_mix() -> None:
    rag = Rag()
    app = App(rag)

    def work(n: int) -> bool:
        with app as recording:
            for i in range(20):
                rag.query(f"{n} {i}")
        return [record["main_input"] for record in recording.records] == [f"{n} {i}" for i in range(20)]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


def test_two_apps_record_each_their_own() -> None:
    a, b = Rag(), Rag()
    with App(a, name="a") as of_a, App(b, name="b") as of_b:
        a.query("1")
        b.query("2")
        a.query("3")
    assert [record["main_input"] for record in of_a.records] == ["1", "3"]
    assert [record["main_input"] for record in of_b.records] == ["2"]


def test_two_marked_apps_record_each_their_own() -> None:
    a, b = Marked(), Marked()
    with App(a) as of_a, App(b) as of_b:
        a.inner("1")
        b.inner("2")
    assert ([r["main_input"] for r in of_a.records], [r["main_input"] for r in of_b.records]) == (["1"], ["2"])


class Outer:
    def __init__(self, rag: Rag) -> None:
        self.inner = rag

    def answer(self, text: str) -> str:
        with span("native"):
            return self.inner.query(text + "?") + self.inner.query("again")


def test_the_record_of_an_outer_app_holds_the_calls_of_the_inner_one() -> None:
    rag = Rag()
    outer = Outer(rag)
    with App(outer, name="outer") as of_outer, App(rag, name="inner") as of_inner:
        outer.answer("a")
    assert methods(of_outer.get()) == ["search", "ask", "query"] * 2 + ["native", "answer"]
    assert of_outer.get()["app"]["inner"]["retriever"]["search"][0]["args"]["query"] == "a?"
    assert of_outer.get()["app"]["inner"]["query"][0]["args"] == {"question": "a?"}
    first, second = of_inner.records
    assert methods(first) == methods(second) == ["search", "ask", "query"]
    assert (first["main_input"], first["main_output"], second["main_input"]) == ("a?", "A? 0", "again")
    assert first["app"]["query"][0]["args"] == {"question": "a?"}
    assert first["app"]["retriever"]["search"][0]["rets"] == ["a? 0"]
    assert second["app"]["model"]["ask"][0]["rets"] == "AGAIN 0"
    assert first["perf"]["latency"] <= of_outer.get()["perf"]["latency"]
    assert first["calls"][-1]["tid"] == threading.get_ident()


def test_an_inner_app_is_recorded_alone_too() -> None:
    rag = Rag()
    outer = Outer(rag)
    App(outer)
    with App(rag) as of_inner:
        outer.answer("a")
    assert [record["main_input"] for record in of_inner.records] == ["a?", "again"]


def test_two_recordings_of_one_app_both_have_the_record() -> None:
    rag = Rag()
    with App(rag, name="a") as one, App(rag, name="b") as two:
        rag.query("x")
    assert one.get()["main_output"] == two.get()["main_output"] == "X 0"
    assert methods(two.get()) == ["search", "ask", "query"]
    assert two.get()["calls"][-1]["args"] == {"question": "x"}


def test_one_app_entered_twice_records_in_both_blocks() -> None:
    rag = Rag()
    app = App(rag)
    with app as outer:
        rag.query("1")
        with app as inner:
            rag.query("2")
        rag.query("3")
    assert [record["main_input"] for record in outer.records] == ["1", "2", "3"]
    assert [record["main_input"] for record in inner.records] == ["2"]


def test_the_failing_call_of_an_inner_app_is_its_error_alone() -> None:
    class Safe:
        def __init__(self) -> None:
            self.marked = Marked()

        @instrument
        def go(self) -> str:
            try:
                return self.marked.fails("x")
            except ValueError:
                return "saved"

    safe = Safe()
    with App(safe) as of_outer, App(safe.marked) as of_inner:
        safe.go()
    assert (of_outer.get()["main_output"], of_outer.get()["main_error"]) == ("saved", None)
    assert of_inner.get()["main_error"] == {"type": "ValueError", "message": "no x"}


def test_calls_of_an_instrumented_app_are_spans_of_a_task() -> None:
    marked = Marked()

    def answer(text: str) -> str:
        return marked(text)

    run = Runner().run(answer, Dataset.from_rows([{"input": "a"}]))
    names = [name for batch in run.spans() for name in batch.column("name").to_pylist()]
    assert names == ["Marked.__call__", "Marked.within"]


def test_an_app_as_a_task_leaves_the_calls_that_a_recording_has() -> None:
    rag = Rag()
    app = App(rag, name="rag")
    feedback = Feedback(_joined, name="joined").on(
        "__record__.app.retriever.search[:].rets[:]", "__record__.app.query.rets"
    )
    with app as recording:
        rag.query("Emma")
    data = Dataset.from_rows([{"input": "Emma"}])
    run = Runner().run(app.as_task("query"), data)
    [row] = Evaluator().evaluate(run, {"joined": feedback}).table("joined").to_pylist()
    assert row["calls"] == Evaluator().evaluate(recording.run, {"joined": feedback}).table("joined")["calls"][0].as_py()
    assert row["value"] == len("Emma 0EMMA 0")


def _joined(found: str, answer: str) -> float:
    return float(len(found + answer))


@pytest.mark.parametrize("method", ["soon", "inner"])
def test_marked_methods_are_tasks_plain_and_async(method: str) -> None:
    app = App(Marked())
    run = Runner().run(app.as_task(method), Dataset.from_rows([{"input": "a"}]))
    assert [response.responses for response in run] == [["a!"]]
    names = [name for batch in run.spans() for name in batch.column("name").to_pylist()]
    assert names == (["within"] if method == "soon" else [])


def test_a_function_and_a_method_are_tasks_by_themselves() -> None:
    data = Dataset.from_rows([{"input": "a"}])
    for app in (App(str_upper), App(Model().ask), App(Model())):
        assert [response.responses for response in Runner().run(app.as_task(), data)] == [["A"]]
    with pytest.raises(SpecError, match="which method is the task"):
        App(Marked()).as_task()


def str_upper(text: str) -> str:
    return text.upper()


def test_a_tracer_is_reported_of_calls() -> None:
    rag = Rag()
    App(rag)
    tracer = InMemoryTracer()
    with tracer.task_span("whole", "q"):
        rag.query("a")
    assert [entry.name for entry in tracer.entries[0].entries] == ["Rag.query"]


def test_calls_recorded_within_a_task_are_spans_of_it_too() -> None:
    rag = Rag()
    trace = Trace.start("task", "q")
    with App(rag) as recording, trace.root:
        rag.query("a")
    assert [each.name for each in trace.spans] == ["task", "query", "retriever.search", "model.ask"]
    assert recording.get()["main_input"] == "a"
    assert methods(recording.get()) == ["search", "ask", "query"]


# Values


def test_values_are_kept_as_they_were_at_the_time_of_the_call() -> None:
    class Changing:
        def sort(self, values: list[int]) -> list[int]:
            values.sort()
            return values

    values = [3, 1, 2]
    changing = Changing()
    with App(changing) as recording:
        changing.sort(values).append(4)
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ([3, 1, 2], [1, 2, 3])


class Passage:
    def __init__(self, text: str) -> None:
        self.text = text
        self.api_key = "sk-1"
        self._private = 1

    @property
    def never(self) -> str:
        raise AssertionError("asked for")


def test_objects_are_reported_by_their_public_attributes() -> None:
    class Finding:
        def find(self, query: str) -> list[Passage]:
            return [Passage(query), Passage("b")]

    record = recorded(Finding(), lambda finding: finding.find("a"))
    assert record["main_output"] == [{"text": "a", "api_key": "***"}, {"text": "b", "api_key": "***"}]


def test_what_is_no_data_fails_nothing_and_hides_nothing_beside_it() -> None:
    class Client:
        def send(self, question: str, lock: Any, other: Any) -> Any:
            return lock

    looped: dict[str, Any] = {"n": 1}
    looped["self"] = looped
    record = recorded(Client(), lambda client: client.send("q", threading.Lock(), looped))
    assert record["calls"][-1]["args"] == {
        "question": "q",
        "lock": {"$unstorable": "lock"},
        "other": {"n": 1, "self": {"$unstorable": "dict within itself"}},
    }
    assert record["main_output"] == {"$unstorable": "lock"}


def test_huge_values_are_cut_and_said_to_be() -> None:
    class Big:
        def give(self) -> Any:
            return {"numbers": list(range(300_000)), "text": "x" * 9_000_000, "small": 1}

    output = recorded(Big(), lambda big: big.give())["main_output"]
    assert output["numbers"] == {"$too_large": "list of 300000 values"}
    assert output["text"] == {"$too_large": "text of 9000000 characters"}
    assert output["small"] == 1


def test_a_value_whose_own_code_fails_costs_no_call() -> None:
    class Bad:
        def __iter__(self) -> Any:
            raise RuntimeError("no")

        def model_dump(self) -> Any:
            raise RuntimeError("no")

        def __repr__(self) -> str:
            raise RuntimeError("no")

    class Giving:
        def give(self, bad: Any) -> Any:
            return bad

    record = recorded(Giving(), lambda giving: giving.give(Bad()))
    assert record["main_output"] == {"$unstorable": Bad.__qualname__}


def test_secrets_of_an_app_are_hidden() -> None:
    class Secretive:
        def __init__(self) -> None:
            self.api_key, self.k, self.max_tokens = "sk-1", 3, 9
            self.options = {"access_token": "abc", "url": "https://me:word@host/x"}
            self.retriever = Retriever()
            self._model = Model()
            self._cache = "not shown"

        def query(self) -> None: ...

    app = App(Secretive(), name="s", version="1", metadata={"password": "p", "team": "x"})
    assert app.json["app"] == {
        "__class__": app.json["root_class"],
        "api_key": "***",
        "k": 3,
        "max_tokens": 9,
        "options": {"access_token": "***", "url": "https://me:***@host/x"},
        "retriever": {"__class__": f"{__name__}:Retriever"},
        "_model": {"__class__": f"{__name__}:Model"},
    }
    assert app.json["metadata"] == {"password": "***", "team": "x"}
    assert (app.json["app_id"], app.json["instrumented"]["_model"]) == ("s:1", ["ask"])


def test_what_is_instrumented_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    App(Rag()).print_instrumented()
    assert capsys.readouterr().out == "(app): query  [Rag]\nretriever: search  [Retriever]\nmodel: ask  [Model]\n"


def test_tags_and_meta_stand_in_the_records() -> None:
    rag = Rag()
    app = App(rag, tags="all")
    with app.record(tags="some", meta={"user": 1}) as recording:
        rag.query("a")
    with app as other:
        rag.query("a")
    assert (recording.get()["tags"], recording.get()["meta"]) == ("some", {"user": 1})
    assert (other.get()["tags"], other.get()["meta"]) == ("all", None)


def test_one_record_is_got_and_more_are_reported() -> None:
    rag = Rag()
    with App(rag) as recording:
        with pytest.raises(DataError, match="exactly one record, not 0"):
            recording.get()
        rag.query("a")
        rag.query("b")
    with pytest.raises(DataError, match="exactly one record, not 2"):
        recording.get()
    assert [record["main_input"] for record in recording.records[-1:]] == ["b"]
    with pytest.raises(IndexError):
        recording.records[2]


# Logged interactions


def logged() -> RecordingSession:
    return record_logs(
        [
            {
                "input": "Who?",
                "output": "Austen",
                "started": "2026-01-02T03:04:05+00:00",
                "duration": 1.5,
                "usage": {"input_tokens": 3, "output_tokens": 4},
                "calls": {"retriever.search": [{"args": {"q": 1}, "rets": ["a"]}, {"rets": ["b", {"c": 2}]}]},
                "record_id": "mine",
                "meta": {"user": 7},
            },
            {"input": "Why?", "error": "no answer"},
            {"input": "When?", "error": {"type": "Timeout", "message": "late"}, "calls": {"llm.ask": {"kind": "llm"}}},
        ],
        name="old",
        version="1",
        structure={"model": "small", "api_key": "x"},
    )


def test_logged_interactions_are_records() -> None:
    recording = logged()
    first, second, third = recording.records
    assert Selector("app.retriever.search[*].rets[*]").find(first) == ["a", "b", {"c": 2}]
    assert (first["main_input"], first["main_output"], first["perf"]["latency"]) == ("Who?", "Austen", 1.5)
    assert (first["record_id"], first["meta"], first["app_id"]) == ("mine", {"user": 7}, "old:1")
    assert (first["ts"], first["cost"]["n_tokens"]) == ("2026-01-02T03:04:05.000000+00:00", 7)
    assert (second["main_error"], second["perf"]) == ({"type": "Error", "message": "no answer"}, None)
    assert (third["main_error"]["type"], third["cost"]["n_requests"]) == ("Timeout", 1)
    assert recording.app.json["app"] == {"model": "small", "api_key": "***"}


@pytest.mark.parametrize(
    ("interaction", "message"),
    [
        ("text", "must be a mapping or a Trace"),
        ({"imput": "x"}, r"interaction 0: has no 'imput'.*'input'"),
        ({"input": "x", "started": "yesterday"}, "started must be a datetime or ISO text"),
        ({"input": "x", "started": "2026-01-01", "duration": -4}, "interaction 0: .*duration seconds from 0.* and -4"),
        ({"input": "x", "duration": -0.001}, "duration seconds from 0"),
        ({"input": "x", "duration": "long"}, "duration seconds from 0"),
        ({"input": "x", "duration": float("nan")}, "duration seconds from 0"),
        ({"input": "x", "duration": 1e300}, "up to the year 9999"),
        ({"input": "x", "started": "9999-12-31T23:59:59", "duration": 2}, "interaction 0: .*up to the year 9999"),
        ({"input": "x", "record_id": 5}, "interaction 0: record_id must be text, not the integer 5"),
        ({"input": "x", "tags": ["a"]}, "tags must be text, not a list"),
        ({"input": "x", "calls": [1]}, "calls must be a mapping"),
        ({"input": "x", "calls": {"a.b": "c"}}, "a call of a.b must be a mapping"),
        ({"input": "x", "calls": {"a.b": {"ret": 1}}}, r"call of a.b: has no 'ret'.*'rets'"),
    ],
)
def test_a_log_of_another_form_is_reported(interaction: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        record_logs([interaction])


def test_a_duration_counts_where_nobody_knows_when_it_began() -> None:
    recording = record_logs(
        [{"input": "x", "output": "y", "duration": np.float32(2.5), "calls": {"find": {"rets": 1}}}]
    )
    perf = {"start_time": None, "end_time": None, "latency": 2.5}
    record = recording.get()
    assert (record["perf"], record["ts"], record["calls"][-1]["perf"]) == (perf, None, perf)
    run = recording.close().run
    assert run is not None
    assert [(row["started"], row["duration"].total_seconds()) for row in run.table().to_pylist()] == [(None, 2.5)]
    assert recording.get()["perf"] == perf


def test_a_time_that_was_not_logged_is_none() -> None:
    recording = record_logs(
        [
            {"input": "x", "output": "y", "calls": {"find": {"rets": 1}}},
            {"input": "z", "started": "2026-01-02T03:04:05+00:00"},
        ]
    )
    begun = {"start_time": "2026-01-02T03:04:05.000000+00:00", "end_time": None, "latency": None}
    live = [[call["perf"] for call in record["calls"]] for record in recording.records]
    assert live == [[None, None], [begun]]
    run = recording.close().run
    assert run is not None
    assert [row["duration"] for row in run.table().to_pylist()] == [None, None]
    assert [[call["perf"] for call in record["calls"]] for record in recording.records] == live


def test_a_trace_whose_times_cannot_be_is_reported() -> None:
    backwards = Trace.from_rows(
        [[1, 0, "find", "span", 5, -3, 1, None, None, None, None]], start_ns=10**18, end_ns=10**18
    )
    with pytest.raises(DataError, match="interaction 0: the span 'find' must begin before it ends"):
        record_logs([backwards])
    with pytest.raises(DataError, match="the span 'task'"):
        record_logs([Trace.from_rows([], start_ns=10**18, end_ns=10**18 - 1, status="ok")])


def test_spans_of_open_telemetry_are_records() -> None:
    def reported(id: str, parent: str, name: str, kind: str, **values: str) -> dict[str, Any]:
        attributes = {"openinference.span.kind": kind} | {key.replace("_", "."): v for key, v in values.items()}
        return {
            "traceId": "0a" * 16,
            "spanId": id * 8,
            "parentSpanId": parent * 8,
            "name": name,
            "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": "1700000001000000000",
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        }

    found = [
        {"key": f"retrieval.documents.{key}", "value": {"stringValue": value}}
        for key, value in [
            ("0.document.content", "by Austen"),
            ("1.document.content", "on Emma"),
            ("0.document.score", "0.5"),
        ]
    ]
    spans = [
        reported("01", "00", "query", "CHAIN", input_value="Who?", output_value="Austen"),
        reported("02", "01", "retriever.search", "RETRIEVER", input_value="Who?", output_value="")
        | {"attributes": [*found, *reported("02", "01", "", "RETRIEVER", input_value="Who?")["attributes"]]},
    ]
    document = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    record = record_logs(traces_of([document])).get()
    assert (record["main_input"], record["main_output"], record["perf"]["latency"]) == ("Who?", "Austen", 1.0)
    assert Selector("app.retriever.search[*].rets[:]").find(record) == ["by Austen", "on Emma"]
    assert Selector("app.retriever.search[*].attributes.documents[:].score").find(record) == ["0.5"]
    assert record["calls"][0]["args"] == {"input": "Who?"}


def test_the_structure_of_an_app_has_the_names_and_arguments_of_its_calls() -> None:
    class Shelf:
        @instrument(name="find")
        def search(self, query: str, k: int = 2) -> list[str]:
            return [query]

        look = search

        @instrument
        @classmethod
        def at(cls, place: int) -> int:
            return place

        @instrument
        @property
        def size(self) -> int:
            return 1

    class Rag:
        def __init__(self) -> None:
            self.shelves = [Shelf()]

        @instrument(name="ask")
        def query(self, question: str) -> str:
            shelf = self.shelves[0]
            return f"{shelf.search(question)}{shelf.look(question, k=3)}{shelf.at(1)}{shelf.size}"

    rag = Rag()
    wrong = Feedback(len).on("__record__.app.shelves[0].search.rets[:]")
    right = Feedback(len, name="right").on("__record__.app.shelves[-1].find.rets[:]")
    with pytest.warns(EvaluandWarning, match=r"search.rets\[:\]: selects no call that the app instruments") as warned:
        app = App(rag, feedbacks=[wrong, right])
    assert len(warned) == 1
    assert app.instrumented == {"": ["ask"], "shelves[0]": ["find", "at", "size"]}
    assert app.json["arguments"]["shelves[0].find"][:2] == ["query", "k"]
    with app as recording:
        rag.query("a")
    made = {place(call) for call in recording.get()["calls"]}
    known = {f"{path}.{name}" if path else name for path, names in app.instrumented.items() for name in names}
    assert made == known
    assert all(set(call["args"]) <= set(app.json["arguments"][place(call)]) for call in recording.get()["calls"])
    with pytest.warns(ScorerFailed):
        assert recording.evaluation is not None
    assert recording.evaluation.counts == {"len": {"failed": 1}, "right": {"scored": 1}}
    assert app.as_task().name == "query"


def place(call: Any) -> str:
    return ".".join(filter(None, call["stack"][-1].values()))


def test_methods_without_a_mark_stand_in_the_structure_as_in_records() -> None:
    class Shelf:
        def search(self, query: str) -> list[str]:
            return [query]

        find = search

    shelf = Shelf()
    app = App(shelf)
    with app as recording:
        shelf.search("a")
        shelf.find("b")
    assert {name for record in recording.records for name in record["app"]} == set(app.instrumented[""])
    function = App(instrument(name="shout")(lambda text: text.upper()))
    assert function.instrumented == {"": ["shout"]}


def test_feedbacks_of_experiment_files_are_held_against_the_app_too() -> None:
    with pytest.raises(SpecError, match="__record__ has no 'outptu'"):
        App(lambda text: text, name="a", feedbacks=[FeedbackKind(implementation=len, on=["__record__.outptu"])])


def test_warnings_point_to_the_line_that_led_to_them() -> None:
    def broken(text: str) -> float:
        raise ValueError("no")

    rag, feedback = Rag(), Feedback(broken).on_input()
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        App(rag, feedbacks=[Feedback(len).on("__record__.app.qery[0].rets")])
        with App(rag, feedbacks=[feedback]) as recording:
            rag.query("Who?")
        recording.close()
        Evaluator().evaluate(recording.run, {"broken": feedback})
        traces_of([{"traceId": "0a" * 16, "spanId": "0b" * 8, "parentSpanId": "0c" * 8, "name": "a"} | TIMES])
    lines = inspect.getsource(test_warnings_point_to_the_line_that_led_to_them).splitlines()
    first = test_warnings_point_to_the_line_that_led_to_them.__code__.co_firstlineno
    pointed = [
        (each.category, each.filename, lines[each.lineno - first].strip().partition("(")[0]) for each in reported
    ]
    assert pointed == [
        (EvaluandWarning, __file__, "App"),
        (ScorerFailed, __file__, "recording.close"),
        (ScorerFailed, __file__, "Evaluator"),
        (EvaluandWarning, __file__, "traces_of"),
    ]


TIMES = {"startTimeUnixNano": "1000", "endTimeUnixNano": "2000"}


def test_a_warning_of_a_thread_of_evaluands_own_repeats_no_source() -> None:
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        thread = threading.Thread(target=warn, args=["something"])
        thread.start()
        thread.join()
    assert [(str(each.message), each.filename) for each in reported] == [("something", "evaluand")]


def test_feedbacks_are_held_against_the_app_when_it_is_made() -> None:
    class Answers:
        def query(self, question: str) -> str:
            return question

    found = Feedback(len).on("__record__.app.query[0].rets")
    anywhere = Feedback(len, name="anywhere").on("__record__.app..rets")
    assert list(App(Answers(), methods=["query"], feedbacks=[found, anywhere]).feedbacks) == ["len", "anywhere"]
    with pytest.warns(EvaluandWarning, match="selects no call that the app instruments; it instruments query"):
        App(Answers(), methods=["query"], feedbacks=[Feedback(len).on("__record__.app.qery[0].rets")])
    with pytest.raises(SpecError, match="__app__ has no 'nam'"):
        App(Answers(), methods=["query"], feedbacks=[Feedback(len).on("__app__.nam")])
