"""Types of tasks: which are declared, what a task of them is called with, and which datasets are refused."""

from __future__ import annotations

import datetime as dt
import enum
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

import numpy as np
import pytest
from pydantic import BaseModel

from evaluand.core.errors import DataError
from evaluand.data.dataset import Dataset
from evaluand.run.runner import Runner
from evaluand.run.task import Task, as_task, task, types_of
from evaluand.run.types import Typed, typed
from evaluand.trace import TaskSpan

if TYPE_CHECKING:
    from nowhere import Unknown

T = TypeVar("T")
U = TypeVar("U")


class Question(BaseModel):
    text: str
    hints: tuple[str, ...] = ()


class Answer(BaseModel):
    text: str
    n: int


class Color(enum.Enum):
    RED = "red"


class QA(Task[Question, Answer]):
    calls = 0

    def do_run(self, input: Question, task_span: TaskSpan) -> Answer:
        type(self).calls += 1
        return Answer(text=input.text.upper(), n=len(input.hints))


class ByHints(Task):  # type: ignore[type-arg]
    """Its parameters of type are not given."""

    def do_run(self, input: Question, task_span: TaskSpan) -> list[Answer]:
        return []


class Partly(ByHints):
    pass


class Generalised(Task[list[T], U], Generic[T, U]):
    def do_run(self, input: list[T], task_span: TaskSpan) -> U:
        raise NotImplementedError


class Halfway(Generalised[Question, T]):
    pass


class Concrete(Halfway[int]):
    pass


class Forward(Task["Later", "list[Later]"]):
    def do_run(self, input: Later, task_span: TaskSpan) -> list[Later]:
        return [input]


class Later(BaseModel):
    n: int


class ForCheckersOnly:
    def do_run(self, input: Unknown, task_span: TaskSpan) -> Answer:
        return Answer(text="", n=0)


class Duck:
    def do_run(self, input: Question, task_span: TaskSpan) -> Answer:
        return Answer(text=input.text, n=0)


def shout(text: str) -> str:
    return text.upper()


@pytest.mark.parametrize(
    ("form", "types"),
    [
        (QA(), (Question, Answer)),
        (ByHints(), (Question, list[Answer])),
        (Partly(), (Question, list[Answer])),
        (Concrete(), (list[Question], int)),
        (Forward(), (Later, list[Later])),
        (ForCheckersOnly(), (None, Answer)),
        (Duck(), (Question, Answer)),
        (shout, (str, str)),
        (lambda text: text, (None, None)),
        (len, (None, None)),
    ],
)
def test_types_are_read_from_where_they_are_declared(form: Any, types: tuple[Any, Any]) -> None:
    assert types_of(as_task(form)) == types


def test_a_callable_without_a_hash_is_a_task() -> None:
    @dataclass
    class Loud:
        mark: str

        def __call__(self, text: Annotated[str, ["no hash"]]) -> str:
            return text + self.mark

    assert [r.responses for r in Runner().run(Loud("!"), Dataset.from_rows([{"input": "a"}]))] == [["a!"]]
    with pytest.raises(DataError, match="input should be a valid string"):
        Runner().run(Loud("!"), Dataset.from_rows([{"input": 1}]))


def test_types_of_a_local_class_are_read_where_it_names_them() -> None:
    class Local(BaseModel):
        n: int

    class LocalTask(Task[Local, Local]):
        def do_run(self, input: Local, task_span: TaskSpan) -> Local:
            return input

    assert types_of(LocalTask()) == (Local, Local)


def test_a_task_gets_the_type_that_it_declares() -> None:
    rows = [{"input": {"text": "a", "hints": ["x", "y"]}}, {"input": {"text": "b", "hints": []}}]
    run = Runner().run(QA(), Dataset.from_rows(rows))
    assert [r.responses for r in run] == [[{"text": "A", "n": 2}], [{"text": "B", "n": 0}]]


def test_several_columns_are_one_model() -> None:
    data = Dataset.from_rows([{"text": "a", "hints": ["x"], "expected": "A"}])
    assert [r.responses for r in Runner().run(Duck(), data)] == [[{"text": "a", "n": 0}]]


def test_a_function_gets_the_type_that_it_declares() -> None:
    @task
    def ask(question: Question) -> str:
        return question.text

    assert [r.responses for r in Runner().run(ask, Dataset.from_rows([{"input": {"text": "a"}}]))] == [["a"]]


def test_a_dataset_whose_inputs_are_of_another_type_is_refused_before_anything_runs() -> None:
    QA.calls = 0
    rows = [{"input": {"text": "a", "hints": ["x"]}}, {"input": {"hints": ["x"], "text": None}}]
    with pytest.raises(DataError) as caught:
        Runner().run(QA(), Dataset.from_rows(rows))
    assert str(caught.value) == "_index_ 1, input: text: input should be a valid string; task 'QA' takes Question"
    with pytest.raises(DataError, match="task 'QA' takes Question"):
        Runner().plan(QA(), Dataset.from_rows(rows))
    assert QA.calls == 0


@pytest.mark.parametrize("values", [[1, 2], ["a", None], [["a"], ["b"]]])
def test_a_column_of_another_type_is_refused(values: list[Any]) -> None:
    with pytest.raises(DataError, match="task 'shout' takes str"):
        Runner().run(shout, Dataset.from_rows([{"input": value} for value in values]))


def test_a_dataset_that_expects_another_type_is_refused() -> None:
    class Counting(Task[str, int]):
        expects = int

        def do_run(self, input: str, task_span: TaskSpan) -> int:
            return len(input)

    run = Runner().run(Counting(), Dataset.from_rows([{"input": "a", "expected": 1}]))
    assert [response.responses for response in run] == [[1]]
    with pytest.raises(DataError) as caught:
        Runner().run(Counting(), Dataset.from_rows([{"input": "a", "expected": "one"}]))
    reported = "_index_ 0, expected: input should be a valid integer; task 'Counting' is for datasets that expect int"
    assert str(caught.value) == reported


def test_not_more_faults_are_reported_than_can_be_read() -> None:
    with pytest.raises(DataError) as caught:
        Runner().run(shout, Dataset.from_rows([{"input": n} for n in range(1000)]))
    assert len(caught.value.faults) == 20


class Pair(NamedTuple):
    a: int
    b: str


@dataclass
class Point:
    x: float


@pytest.mark.parametrize(
    ("type", "given", "read"),
    [
        (str, "a", "a"),
        (float, 1, 1),
        (float, float("inf"), float("inf")),
        (Color, "red", Color.RED),
        (Literal["a", "b"], "b", "b"),
        (UUID, "00000000-0000-0000-0000-00000000000a", UUID(int=10)),
        (Pair, [1, "x"], Pair(1, "x")),
        (Point, {"x": 1.5}, Point(1.5)),
        (set[int], [1, 2], {1, 2}),
        (Sequence[int], [1], [1]),
        (Mapping[str, int], {"a": 1}, {"a": 1}),
        (dt.date, dt.date(2024, 1, 2), dt.date(2024, 1, 2)),
        (dict[str, dt.date], {"d": dt.date(2024, 1, 2)}, {"d": dt.date(2024, 1, 2)}),
        (bytes, b"\xff", b"\xff"),
        (int | None, None, None),
        (list[Question], [{"text": "a"}], [Question(text="a")]),
        (Question, Question(text="a"), Question(text="a")),
    ],
)
def test_a_value_is_read_as_a_type(type: Any, given: Any, read: Any) -> None:
    assert Typed(type).read(given) == read


@pytest.mark.parametrize(
    ("type", "given", "fault"),
    [
        (str, 1, "input should be a valid string"),
        (int, "1", "input should be a valid integer"),
        (int, 1.5, "input should be a valid integer"),
        (bool, 1, "input should be a valid boolean"),
        (Color, "blue", "input should be 'red'"),
        (dict[str, int], {"a": {"b": 1}}, "a: input should be a valid integer"),
        (list[Question], [{"text": "a"}, {}], "1.text: field required"),
        (str, object(), "input should be a valid string"),
        (str, dt.date(2024, 1, 2), "input should be a valid string"),
    ],
)
def test_a_value_of_another_type_is_reported_with_its_place(type: Any, given: Any, fault: str) -> None:
    assert Typed(type).fault(given) == fault


@pytest.mark.parametrize("anything", [None, Any, object, T, "str", Dataset])
def test_what_admits_anything_or_is_unknown_is_not_checked(anything: Any) -> None:
    assert typed(anything) is None


def test_plain_values_are_read_without_loading_pydantic_in_the_time_of_a_call() -> None:
    code = """
import sys
from evaluand.run.types import typed
pairs = (str, "é"), (str, "\\ud800"), (int, 1), (float, 0.5), (float, 2), (bool, True)
print([typed(kind).read(value) for kind, value in pairs], "pydantic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['é', '\\ud800', 1, 0.5, 2.0, True] False\n"


@pytest.mark.parametrize(
    ("kind", "value"), [(str, 1), (int, True), (int, 1.0), (float, True), (float, 10**400), (bool, 1)]
)
def test_values_that_are_not_quite_of_a_plain_type_are_refused(kind: type, value: Any) -> None:
    assert Typed(kind).fault(value) is not None


def test_what_only_equals_a_plain_type_is_none() -> None:
    assert np.dtype("int64") == int
    assert typed(np.dtype("int64")) is None
