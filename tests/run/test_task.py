"""Tasks: the forms in which a system under test can be given, what each is called with, and what is refused."""

from __future__ import annotations

import asyncio
import functools
import itertools
import random
import threading
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evaluand.core.errors import DataError, SpecError, TaskError
from evaluand.core.identity import digest, seed_of
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Candidates, FunctionTask, Request, Task, as_task, task
from evaluand.trace import TaskSpan, Trace

WORDS = Dataset.from_rows([{"input": "one"}, {"input": "two"}])
PAIRS = Dataset.from_rows([{"a": 1, "b": 2, "note": "n"}, {"a": 3, "b": 4, "note": "m"}])


def request(input: Any, index: int = 3, id: str = "three", replication: int = 2, run_seed: int = 5) -> Request:
    return Request(input, Trace.start("t", input).root, index, id, replication, digest(input), run_seed)


def answers(run: Run) -> list[Any]:
    return [response.responses for response in run]


def failures(run: Run) -> list[str]:
    return [f"{r.error['type']}: {r.error['message']}" for r in run if r.error]


def shout(text: str) -> str:
    return text.upper()


async def shout_later(text: str) -> str:
    await asyncio.sleep(0)
    return text.upper()


class Shouter:
    """A task without a base class."""

    def __init__(self, mark: str = "!") -> None:
        self.mark = mark

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        task_span.log("seen", input)
        return input.upper() + self.mark


class AsyncShouter(Task[str, str]):
    async def do_run(self, input: str, task_span: TaskSpan) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return input.upper()


class Caller:
    def __call__(self, text: str) -> str:
        return text.upper()


class AsyncCaller:
    async def __call__(self, text: str) -> str:
        return text.upper()


# Forms


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (shout, "shout"),
        (shout_later, "shout_later"),
        (task(shout), "shout"),
        (task(shout_later), "shout_later"),
        (task(name="loud")(shout), "loud"),
        (str.upper, "upper"),
        (lambda text: text.upper(), "<lambda>"),
        (Shouter(mark=""), "Shouter"),
        (AsyncShouter(), "AsyncShouter"),
        (Caller(), "Caller"),
        (AsyncCaller(), "AsyncCaller"),
        (functools.partial(shout), "partial"),
    ],
)
def test_every_form_of_task_is_run_and_has_a_name(form: Any, name: str) -> None:
    assert answers(Runner().run(form, WORDS)) == [["ONE"], ["TWO"]]
    assert as_task(form).name == name


@pytest.mark.parametrize(
    ("form", "waits"),
    [
        (shout, False),
        (shout_later, True),
        (Shouter(), False),
        (AsyncShouter(), True),
        (AsyncCaller(), True),
        (Caller(), False),
        (functools.partial(shout_later), True),
    ],
)
def test_whether_a_task_waits_is_reported_from_its_form(form: Any, waits: bool) -> None:
    assert as_task(form).is_async is waits


def test_a_decorated_function_is_still_called_as_a_function() -> None:
    @task(version="1")
    def add(a: int, b: int = 1) -> int:
        return a + b

    assert add(2) == 3
    assert add(2, b=3) == 5
    assert isinstance(add, FunctionTask)


def test_a_function_is_made_a_task_with_its_options_in_one_call() -> None:
    made = task(len, name="length", version="2", items=True, files=["a.txt"])
    assert (made.name, made.version, made.items, made.files) == ("length", "2", True, ["a.txt"])


def test_a_task_is_its_own_task() -> None:
    given = task(shout)
    assert as_task(given) is given


@pytest.mark.parametrize("form", [3, "shout", None, [shout], {"do": shout}])
def test_what_can_not_be_called_is_no_task(form: Any) -> None:
    with pytest.raises(SpecError, match="is not a task: pass a function or an object with do_run"):
        as_task(form)


@pytest.mark.parametrize("form", [Shouter, AsyncShouter])
def test_a_class_in_place_of_its_instance_is_refused_before_anything_runs(form: Any) -> None:
    with pytest.raises(SpecError, match="Shouter"):
        Runner().run(form, WORDS)


def test_a_task_without_do_run_can_not_be_made() -> None:
    class Nothing(Task[str, str]):
        pass

    with pytest.raises(TypeError, match="do_run"):
        Nothing()  # type: ignore[abstract]


def test_preparing_comes_before_the_first_call_and_what_it_raises_stops_the_run() -> None:
    calls: list[str] = []

    class Model(Task[str, str]):
        version = "1"

        def __init__(self, weights: str | None) -> None:
            self.weights = weights

        def prepare(self, dataset: Dataset) -> None:
            calls.append("prepare")
            if self.weights is None:
                raise DataError("weights.bin: no such file")

        def do_run(self, input: str, task_span: TaskSpan) -> str:
            calls.append(input)
            return input

    Runner().run(Model("w"), WORDS)
    assert calls[0] == "prepare"
    assert sorted(calls) == ["one", "prepare", "two"]
    calls.clear()
    with pytest.raises(DataError, match="no such file"):
        Runner().run(Model(None), WORDS)
    assert calls == ["prepare"]


# What a function is called with


def test_one_parameter_is_given_the_whole_input_whatever_it_is_called() -> None:
    for parameter in (lambda row: row, lambda task_span: task_span, lambda a, c=0: a):
        assert answers(Runner().run(parameter, PAIRS)) == [
            [{"a": 1, "b": 2, "note": "n"}],
            [{"a": 3, "b": 4, "note": "m"}],
        ]


def test_several_parameters_take_a_mapping_input_by_name() -> None:
    def add(b: int, a: int, scale: int = 10) -> int:
        return scale * b + a

    assert answers(Runner().run(add, PAIRS)) == [[21], [43]]


def test_a_parameter_by_keyword_alone_is_taken_by_name() -> None:
    def double(*, a: int) -> int:
        return 2 * a

    assert answers(Runner().run(double, PAIRS)) == [[2], [6]]


def test_extras_are_filled_in_by_name_wherever_they_stand() -> None:
    def everything(text: str, seed: int, *, id: str, index: int, replication: int, task_span: TaskSpan) -> list[Any]:
        return [text, seed, id, index, replication, type(task_span) is TaskSpan]

    given = request("q")
    expected = ["q", seed_of(5, digest("q"), 2), "three", 3, 2, True]
    assert task(everything).call(given) == expected


def test_extras_stand_beside_inputs_taken_by_name() -> None:
    def labelled(a: int, index: int, b: int) -> list[int]:
        return [index, a, b]

    assert answers(Runner().run(labelled, PAIRS)) == [[[0, 1, 2]], [[1, 3, 4]]]


def test_an_extra_in_the_first_place_is_the_input() -> None:
    def of_index(index: Any) -> Any:
        return index

    assert answers(Runner().run(of_index, WORDS)) == [["one"], ["two"]]


def test_what_is_traced_inside_belongs_to_the_call() -> None:
    def traced(text: str, task_span: TaskSpan) -> str:
        with task_span.span("think", kind="llm", input=text) as span:
            span.output = text[::-1]
        return text

    spans = [batch.to_pylist() for batch in Runner().run(traced, WORDS).spans()]
    found = [(row["_index_"], row["name"], row["input"]) for rows in spans for row in rows if row["name"] == "think"]
    assert found == [(0, "think", '"one"'), (1, "think", '"two"')]


@pytest.mark.parametrize("function", [lambda: 1, lambda **rest: 1, lambda *rest: 1])
def test_a_function_without_a_parameter_for_the_input_is_refused(function: Any) -> None:
    with pytest.raises(SpecError, match="its first parameter must be the example's input"):
        task(function)


def test_several_parameters_and_an_input_of_one_value_do_not_go_together() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    with pytest.raises(SpecError, match=r"declare these as input columns: input: \[a, b\]"):
        task(add).call(request("text"))


def test_parameters_that_the_input_has_not_are_named() -> None:
    def add(a: int, c: int, d: int) -> int:
        return a + c + d

    with pytest.raises(SpecError, match="task 'add' takes c, d, which the input does not have"):
        task(add).call(request({"a": 1, "b": 2}))


# Seeds


def drawn(run: Run) -> list[Any]:
    return [response.responses[0] for response in run if response.responses]


def draw(text: str, seed: int) -> float:
    return random.Random(seed).random()


def test_seeds_belong_to_input_and_replication_whatever_the_order_and_number_of_examples() -> None:
    rows = [{"_index_": i, "input": f"q{i}"} for i in range(20)]
    whole = drawn(Runner().run(draw, Dataset.from_rows(rows), replications=2))
    assert drawn(Runner().run(draw, Dataset.from_rows(rows[::-1]), replications=2)) == whole
    assert drawn(Runner().run(draw, Dataset.from_rows(rows[5:]), replications=2)) == whole[10:]
    assert drawn(Runner().run(draw, Dataset.from_rows(rows))) == whole[::2]
    assert len(set(whole)) == 40


def test_another_seed_of_the_run_gives_other_draws() -> None:
    one, other = (drawn(Runner().run(draw, WORDS, seed=seed)) for seed in (0, 1))
    assert not set(one) & set(other)


def test_a_seed_is_a_whole_number_that_generators_take() -> None:
    seed = request("q").seed
    assert 0 <= seed < 2**63
    assert request("q").seed == seed != request("q", replication=3).seed


def test_an_answer_that_depends_on_the_example_is_not_taken_for_that_of_another_with_the_same_input() -> None:
    def numbered(text: str, index: int, id: str) -> str:
        return f"{text} {index} {id}"

    rows = [{"input": "same", "id": name} for name in "abc"]
    runner = Runner()
    runner.run(numbered, Dataset.from_rows(rows), limit=1)
    assert answers(runner.run(numbered, Dataset.from_rows(rows))) == [["same 0 a"], ["same 1 b"], ["same 2 c"]]


def test_answers_to_equal_inputs_stay_where_they_were_when_an_example_is_added() -> None:
    numbers = itertools.count()

    @task(version="1")
    def sampled(text: str) -> int:
        return next(numbers)

    rows = [{"input": "same", "expected": name} for name in "abcd"]
    runner = Runner(policy=Policy(concurrency=1))
    assert answers(runner.run(sampled, Dataset.from_rows(rows[:3]))) == [[0], [1], [2]]
    again = runner.run(sampled, Dataset.from_rows(rows))
    assert answers(again)[:3] == [[0], [1], [2]]


def test_answers_that_are_taken_over_are_counted_once_however_many_inputs_are_equal() -> None:
    runner = Runner()
    for names in ("abc", "abd"):
        run = runner.run(task(shout), Dataset.from_rows([{"input": "same", "expected": name} for name in names]))
    assert run.receipt
    assert (run.receipt.total, run.receipt.reused, run.receipt.called) == (3, 3, 0)


# What a task gives


class Pair(NamedTuple):
    a: int
    b: str


@pytest.mark.parametrize(
    ("output", "responses"),
    [
        ("text", ["text"]),
        (None, None),
        ([], [[]]),
        ({}, [{}]),
        ([1, None], [[1, None]]),
        ((1, 2), [[1, 2]]),
        (Pair(1, "x"), [[1, "x"]]),
        (Candidates(["a", "b"]), ["a", "b"]),
        (Candidates([None, {}]), [None, {}]),
        (Candidates([]), []),
        (b"raw", [b"raw"]),
    ],
)
def test_an_output_is_one_response_alternatives_are_several_and_none_is_no_answer(output: Any, responses: Any) -> None:
    run = Runner().run(task(version="1")(lambda text: output), Dataset.from_rows([{"input": "q"}]))
    assert answers(run) == [responses]


@pytest.mark.parametrize(
    ("output", "responses"),
    [
        ([], [[]]),
        ([1, 2], [[1, 2]]),
        (None, None),
        (Candidates([[1], [], [2, 3]]), [[1], [], [2, 3]]),
        (Candidates([]), []),
    ],
)
def test_items_make_up_a_response_together(output: Any, responses: Any) -> None:
    run = Runner().run(task(version="1", items=True)(lambda text: output), Dataset.from_rows([{"input": "q"}]))
    assert answers(run) == [responses]


@pytest.mark.parametrize("output", ["text", 3, {"a": 1}, Candidates([[1], "text"])])
def test_a_task_of_items_that_gives_no_list_fails_that_row(output: Any) -> None:
    run = Runner().run(task(version="1", items=True)(lambda text: output), Dataset.from_rows([{"input": "q"}]))
    assert run.counts == {"failed": 1}
    [failure] = failures(run)
    assert failure.startswith("DataError: the task declares items, so it must return a list of items, not a")


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("output", [{1, 2}, object(), {1: 2}, "\ud800", Shouter, dict, cyclic()])
def test_an_output_that_is_no_data_fails_its_row_and_no_other(output: Any) -> None:
    def give(text: str) -> Any:
        return output if text == "one" else "fine"

    run = Runner().run(task(version="1")(give), WORDS)
    assert run.counts == {"failed": 1, "completed": 1}
    assert answers(run) == [None, ["fine"]]


class ModelLike:
    """Says of itself that it can be dumped, and can not."""

    def model_dump(self) -> Mapping[str, Any]:
        raise RuntimeError("not today")


def test_an_output_that_raises_while_it_is_written_fails_its_row_and_no_other() -> None:
    run = Runner().run(task(version="1")(lambda text: ModelLike() if text == "one" else "fine"), WORDS)
    assert run.counts == {"failed": 1, "completed": 1}


def test_a_crash_is_a_row_with_type_message_and_code() -> None:
    def crash(text: str) -> str:
        if text == "one":
            raise TaskError("out of tokens", code="429")
        raise KeyError("missing")

    run = Runner().run(crash, WORDS)
    errors = [response.error or {} for response in run]
    assert [(error["type"], error["message"], error["code"]) for error in errors] == [
        ("TaskError", "out of tokens", "429"),
        ("KeyError", "'missing'", None),
    ]
    first = crash.__code__.co_firstlineno
    lines = [int(error["place"].removeprefix("test_task.py:").removesuffix(" in crash")) for error in errors]
    assert all(first < line < first + 10 for line in lines)
    assert run.counts == {"failed": 2}


# Identity


def test_a_declared_version_is_added_to_the_code_and_hides_none_of_it() -> None:
    one = task(name="answer", version="1")(shout).identify()
    assert one.spec == task(name="reply", version="1")(shout).identify().spec
    assert one.pinned
    others = [
        task(name="answer", version="2")(shout),
        task(name="answer", version="1")(shout_later),
        task(name="answer")(shout),
        task(name="answer", version="1", items=True)(shout),
    ]
    assert all(changed.identify().spec != one.spec for changed in others)


def test_without_a_version_other_code_or_other_state_is_another_task() -> None:
    specs = [as_task(form).identify().spec for form in (shout, shout_later, Shouter("!"), Shouter("?"))]
    assert all(specs.count(spec) == 1 for spec in specs)
    assert as_task(Shouter("!")).identify().spec == specs[2]


def test_a_file_that_a_task_names_is_part_of_it(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Answer briefly.")
    named = task(files=[prompt])(shout)
    before = named.identify()
    assert named.identify().spec == before.spec
    assert before.spec != task(shout).identify().spec
    prompt.write_text("Answer at length.")
    assert named.identify().spec != before.spec


def test_a_class_that_declares_its_version_items_and_files_keeps_them() -> None:
    class Tagger:
        version = "3"
        items = True
        files: Sequence[str] = ()

        def do_run(self, input: str, task_span: TaskSpan) -> list[str]:
            return input.split()

    given = as_task(Tagger())
    assert (given.version, given.items) == ("3", True)
    run = Runner().run(given, Dataset.from_rows([{"input": "a b"}]))
    assert run.items
    assert answers(run) == [[["a", "b"]]]


def test_files_of_an_object_that_is_no_task_by_base_class_are_part_of_it_too(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"

    class Prompted:
        def __init__(self) -> None:
            self.files = [str(prompt)]

        def do_run(self, input: str, task_span: TaskSpan) -> str:
            return input

    specs = []
    for text in ("Answer briefly.", "Answer at length."):
        prompt.write_text(text)
        specs.append(as_task(Prompted()).identify().spec)
    assert specs[0] != specs[1]


# What one call does to its input is nobody else's business


def test_a_task_that_changes_its_input_changes_it_for_itself_alone() -> None:
    @task(version="1")
    def chat(messages: list[str]) -> int:
        messages.append("answer")
        return len(messages)

    run = Runner().run(chat, Dataset.from_rows([{"input": ["hello"]}]), replications=4)
    assert answers(run) == [[2], [2], [2], [2]]


def test_a_further_attempt_sees_the_input_as_it_was() -> None:
    @task(version="1")
    def flaky(messages: list[str]) -> str:
        messages.append("seen")
        if len(messages) == 2:
            raise ConnectionError("once more")
        return "the first attempt left something behind"

    runner = Runner(policy=Policy(retries=2, backoff=0))
    run = runner.run(flaky, Dataset.from_rows([{"input": ["hello"]}]))
    assert failures(run) == ["ConnectionError: once more"]


# What a task says beside its answer costs no run


@pytest.mark.parametrize("usage", [{"input_tokens": True}, {"cost": 2**53 + 1}, {"cost": 2}, {"model": "m" * 10}])
def test_any_usage_can_be_sealed(usage: dict[str, Any]) -> None:
    def tell(text: str, task_span: TaskSpan) -> str:
        task_span.set(usage=usage)
        return text

    assert Runner().run(tell, WORDS).counts == {"completed": len(WORDS)}


class Code(Exception):
    @property
    def code(self) -> str:
        raise KeyError("no code")


class Rpc(Exception):
    def code(self) -> int:
        return 14


@pytest.mark.parametrize("error", [Code, Rpc])
def test_a_code_that_is_none_is_left_out(error: type[Exception]) -> None:
    def fail(text: str) -> str:
        raise error("broken")

    run = Runner().run(fail, WORDS)
    assert {response.error["code"] for response in run if response.error} == {None}


def test_an_answer_its_list_and_a_list_of_items_are_three_things() -> None:
    data = Dataset.from_rows([{"input": "q"}])
    runs = [
        Runner().run(task(version="1")(lambda q: "x"), data),
        Runner().run(task(version="1", items=True)(lambda q: ["x"]), data),
        Runner().run(task(version="1", items=True)(lambda q: Candidates([["x"], []])), data),
        Runner().run(task(version="1", items=True)(lambda q: []), data),
        Runner().run(task(version="1", items=True)(lambda q: Candidates([])), data),
    ]
    assert len({run.digest for run in runs}) == len(runs)


def test_a_plan_tells_of_an_open_run_what_going_on_with_it_does() -> None:
    calls: list[str] = []

    def counted(text: str) -> str:
        calls.append(text)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return text

    runner = Runner(policy=Policy(concurrency=1))
    pinned = FunctionTask(counted, version="1")
    same = Dataset.from_rows([{"input": "a"}, {"input": "a"}])
    with pytest.raises(KeyboardInterrupt):
        runner.run(pinned, same)
    plan, receipt = runner.plan(pinned, same), runner.run(pinned, same).receipt
    assert receipt is not None
    assert (plan.kept, plan.reused, plan.called) == (receipt.kept, receipt.reused, receipt.called) == (1, 0, 1)
    assert runner.plan(pinned, same).kept == 2


def test_a_plan_counts_all_calls_of_a_stopped_run_whose_task_is_called_again_each_time() -> None:
    lock, calls = threading.Lock(), count()

    def locked(text: str) -> str:
        with lock:
            if next(calls) == 1:
                raise KeyboardInterrupt
        return text

    runner = Runner(policy=Policy(concurrency=1))
    data = Dataset.from_rows([{"input": "a"}, {"input": "b"}])
    with pytest.raises(KeyboardInterrupt):
        runner.run(locked, data)
    plan, receipt = runner.plan(locked, data), runner.run(locked, data).receipt
    assert receipt is not None
    assert (plan.kept, plan.called) == (receipt.kept, receipt.called) == (0, 2)


def test_a_plan_with_options_counts_what_a_run_with_them_calls() -> None:
    def reciprocal(n: int) -> float:
        return 1 / n

    runner, data = Runner(policy=Policy(retries=0)), Dataset.from_rows([{"input": n} for n in (0, 1, 2)])
    task = FunctionTask(reciprocal, version="1")
    runner.run(task, data)
    options: list[dict[str, Any]] = [{}, {"retry_failed": True}, {"fresh": True}, {"limit": 2}, {"limit": 4, "seed": 1}]
    for each in options:
        plan, receipt = runner.plan(task, data, **each), runner.run(task, data, **each).receipt
        assert receipt is not None
        found, made = ((one.total, one.called, one.reused, one.kept) for one in (plan, receipt))
        assert found == made
    assert runner.plan(task, data, retry_failed=True).why == "failures tried again"
