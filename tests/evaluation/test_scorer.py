"""What a score stands for, and how functions and classes become scorers."""

from __future__ import annotations

import asyncio
import enum
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evaluand import Dataset, Evaluator, MemoryStore, Runner
from evaluand.core import identity
from evaluand.core.errors import SpecError, described
from evaluand.core.parameters import Text, Within
from evaluand.evaluation.scorer import (
    ARGUMENTS,
    FunctionScorer,
    Score,
    Scorer,
    scorer,
)


class Colour(str, enum.Enum):  # noqa: UP042 - its str() is "Colour.RED", unlike that of a StrEnum
    RED = "red"


class Verdict(enum.StrEnum):
    GOOD = "good"


@dataclass(frozen=True, kw_only=True)
class Sample(Scorer):
    """A kind with one parameter of each sort."""

    kind = "sample"
    version = 3
    cheap = True

    flag: bool = False
    choice: Literal["first", "last"] = "first"
    choices: tuple[Literal["case", "space", "unicode"], ...] = ()
    text: Text | None = None
    tolerance: Annotated[float, Within(0)] = 0

    def score(self, output: Any, expected: Any) -> Score:
        return Score.of(output == expected)


# ---------------------------------------------------------------- Score.of


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (True, 1.0),
        (False, 0.0),
        (3, 3.0),
        (0.25, 0.25),
        (Fraction(1, 4), 0.25),
        (Decimal("0.25"), 0.25),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.int64(7), 7.0),
        (np.uint8(7), 7.0),
        (np.bool_(True), 1.0),
        (np.bool_(False), 0.0),
        (np.array(0.5), 0.5),
        (np.array(True), 1.0),
    ],
)
def test_a_number_or_bool_becomes_the_value_as_a_plain_float(result: Any, value: float) -> None:
    score = Score.of(result)
    assert score == Score(value)
    assert type(score.value) is float


@pytest.mark.parametrize(
    ("result", "label"),
    [("toxic", "toxic"), ("", ""), (np.str_("toxic"), "toxic"), (Colour.RED, "red"), (Verdict.GOOD, "good")],
)
def test_text_becomes_the_label_as_plain_text(result: Any, label: str) -> None:
    score = Score.of(result)
    assert score == Score(label=label)
    assert type(score.label) is str


@pytest.mark.parametrize("result", [{"a": 1}, [1, 2], [], {}])
def test_anything_else_becomes_data(result: Any) -> None:
    assert Score.of(result) == Score(data=result)


def test_none_is_an_abstention_and_not_a_zero() -> None:
    score = Score.of(None)
    assert (score.value, score.status) == (None, "abstained")
    assert score.reason


def test_a_function_is_made_a_scorer_with_its_options_in_one_call() -> None:
    made = scorer(lambda outputs: [1.0 for _ in outputs], name="ones", version="2", batch=True)
    assert (made.name, made.declared, made.is_batch) == ("ones", "2", True)


def test_a_score_stays_what_it_is() -> None:
    score = Score(0.5, "half", {"why": 1}, "because")
    assert Score.of(score) is score


def test_nan_is_kept_so_that_whoever_stores_it_can_refuse_it() -> None:
    value = Score.of(math.nan).value
    assert value is not None
    assert math.isnan(value)


def test_an_abstention_has_a_reason_and_may_have_a_label() -> None:
    score = Score.abstained("no number in the answer", label="many")
    assert (score.status, score.reason, score.label, score.value) == (
        "abstained",
        "no number in the answer",
        "many",
        None,
    )


# ---------------------------------------------------------------- how arguments are bound


def by_name(output: Any, expected: Any) -> bool:
    return bool(output == expected)


def other_order(expected: Any, output: Any) -> bool:
    return bool(output == expected)


def own_names(answer: Any, truth: Any) -> bool:
    return bool(answer == truth)


def output_alone(answer: Any) -> int:
    return len(answer)


def own_default(answer: Any, threshold: float = 0.5) -> bool:
    return bool(answer > threshold)


def everything(
    output: Any,
    expected: Any,
    input: Any,
    example: Any,
    index: int,
    replication: int,
    weight: float | None,
    source: Any,
) -> None: ...


def keyword_only(output: Any, *, expected: Any) -> bool:
    return bool(output == expected)


def behind_a_gap(output: Any, strict: bool = True, expected: Any = None) -> bool:
    return strict and bool(output == expected)


def anything(*args: Any) -> int:
    return len(args)


def judged(model: str, output: Any) -> str:
    return f"{model}: {output}"


class Indexed:
    def __call__(self, output: Any, index: int) -> int:
        return index


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (by_name, ("output", "expected")),
        (other_order, ("expected", "output")),
        (own_names, ("output", "expected")),
        (output_alone, ("output",)),
        (own_default, ("output",)),
        (everything, ARGUMENTS),
        (keyword_only, ("output", "expected")),
        (behind_a_gap, ("output", "expected")),
        (anything, ("output", "expected")),
        (functools.partial(judged, model="m"), ("output",)),
        (functools.partial(judged, "m"), ("output",)),
        (Indexed(), ("output", "index")),
        (len, ("output",)),
        (max, ("output", "expected")),
    ],
)
def test_a_function_is_given_what_its_parameters_ask_for(function: Any, arguments: tuple[str, ...]) -> None:
    assert FunctionScorer(function).arguments == arguments


@pytest.mark.parametrize("function", [by_name, own_names, keyword_only, behind_a_gap])
def test_a_function_gets_output_and_expected_where_it_wants_them(function: Any) -> None:
    graded = FunctionScorer(function)
    assert graded.score("a", "a") is True
    assert graded.score("a", "b") is False


def test_arguments_that_python_only_takes_by_keyword_are_passed_so() -> None:
    assert FunctionScorer(functools.partial(judged, model="m")).score("fine") == "m: fine"


def unknown(output: Any, question: str) -> None: ...


def unknown_keyword(output: Any, *, model: str) -> None: ...


def three(a: Any, b: Any, c: Any) -> None: ...


def nothing() -> None: ...


def model_only(*, model: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (unknown, "asks for question; a scorer is given output, expected, input"),
        (unknown_keyword, "asks for model"),
        (three, "give it parameters named from output, expected"),
        (nothing, "give it parameters named from"),
        (model_only, "give it parameters named from"),
    ],
)
def test_a_function_that_asks_for_something_else_is_refused_by_name(function: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        FunctionScorer(function)
    assert function.__name__ in str(caught.value)


# ---------------------------------------------------------------- functions as scorers


def test_the_decorator_makes_a_scorer_that_can_still_be_called() -> None:
    @scorer
    def same_length(output: str, expected: str) -> bool:
        return len(output) == len(expected)

    assert isinstance(same_length, Scorer)
    assert same_length.name == "same_length"
    assert same_length("ab", expected="cd") is True
    assert (same_length.is_batch, same_length.is_async, same_length.columns) == (False, False, {})


def test_the_decorator_takes_a_name_and_a_version() -> None:
    @scorer(name="longest", version="2")
    def length(output: str) -> int:
        return len(output)

    assert length.name == "longest"
    assert length.identify().pinned
    assert length.identify().spec["version"] == "2"


def test_a_declared_version_is_added_to_the_code_and_hides_none_of_it() -> None:
    def spec(score: Any, version: str | None) -> Any:
        return FunctionScorer(score, name="f", version=version).identify().spec

    def one(output: Any) -> int:
        return 1

    specs = [spec(one, "1"), spec(one, "2"), spec(one, None), spec(lambda output: 2, "1")]
    assert specs[0] == spec(one, "1")
    assert all(other != specs[0] for other in specs[1:])


def test_an_error_of_the_function_reaches_the_caller() -> None:
    @scorer
    def broken(output: str) -> float:
        return 1 / len(output)

    with pytest.raises(ZeroDivisionError):
        broken.score("")


def test_a_batch_function_takes_and_gives_lists() -> None:
    @scorer(batch=True, version="1")
    def shares(output: Sequence[str], *, expected: Sequence[str]) -> list[float]:
        return [float(o == e) for o, e in zip(output, expected, strict=True)]

    assert shares.is_batch
    assert shares.score_batch(["a", "b"], ["a", "c"]) == [1.0, 0.0]
    assert shares.identify().spec != FunctionScorer(shares.function, version="1").identify().spec


async def slow(output: Any) -> float:
    return 0.5


class AsyncCallable:
    async def __call__(self, output: Any) -> float:
        return 0.5


@pytest.mark.parametrize("function", [slow, AsyncCallable(), functools.partial(slow)])
@pytest.mark.parametrize("batch", [False, True])
def test_an_async_function_is_known_as_such(function: Any, batch: bool) -> None:
    graded = FunctionScorer(function, batch=batch)
    assert graded.is_async
    assert asyncio.run(graded.score("x")) == 0.5


# ---------------------------------------------------------------- classes as scorers


def test_a_class_that_grades_batches_is_async_when_its_batches_are() -> None:
    class Judge(Scorer):
        kind = "judge"

        async def score_batch(self, output: list[Any], expected: list[Any]) -> list[float]:
            return [1.0 for _ in output]

    assert Judge().is_batch
    assert Judge().is_async
    with pytest.raises(NotImplementedError, match="Judge"):
        Judge().score("a", "b")


def test_the_spec_is_kind_version_and_parameters() -> None:
    assert Sample(choices=("space",)).identify().spec == {
        "kind": "sample",
        "version": 3,
        "parameters": {"flag": False, "choice": "first", "choices": ("space",), "text": None, "tolerance": 0},
    }


def test_the_spec_can_be_encoded() -> None:
    assert b'"kind":"sample"' in identity.encode(Sample().identify().spec)


def test_a_selection_has_one_identity_however_it_is_written() -> None:
    assert Sample(choices=["unicode", "case", "unicode"]) == Sample(choices=("case", "unicode"))  # type: ignore[arg-type]


def test_a_class_without_fields_to_tell_says_what_to_do() -> None:
    class Loose(Scorer):
        kind = "loose"
        version = 1

    with pytest.raises(SpecError, match=r"Loose.*frozen dataclass"):
        _ = Loose().identify().spec


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"flag": "no"}, "scorer 'sample': flag is the text 'no'; give true or false"),
        ({"flag": 1}, "flag is the integer 1"),
        ({"choice": "lst"}, r"give one of first, last \(did you mean 'last'\?\)"),
        ({"choice": None}, "choice is null"),
        ({"choices": "case"}, "choices is the text 'case'; give a list of any of case, space, unicode"),
        ({"choices": ["Case"]}, r"the text 'Case' is none of case, space, unicode \(did you mean 'case'\?\)"),
        ({"choices": [["case"]]}, "a list is none of"),
        ({"text": ""}, "give some text, or leave it out"),
        ({"text": 5}, "text is the integer 5"),
        ({"tolerance": -0.1}, "tolerance is the number -0.1; give a number of at least 0"),
        ({"tolerance": math.nan}, "tolerance is the number nan"),
        ({"tolerance": math.inf}, "tolerance is the number inf"),
        ({"tolerance": True}, "tolerance is true"),
        ({"tolerance": "1"}, "tolerance is the text '1'"),
        ({"flag": 0, "text": ""}, "flag is the integer 0; .*\nscorer 'sample': text is the text ''"),
    ],
)
def test_a_wrong_parameter_is_refused_with_its_name_and_the_remedy(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Sample(**parameters)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        (1, "the integer 1"),
        pytest.param(10**5000, "a very long integer", id="long"),
        (2.5, "the number 2.5"),
        ("x" * 100, "the text '" + "x" * 39 + "…'"),
        ([1], "a list"),
        ((1,), "a list"),
        ({"a": 1}, "an object"),
        (b"x", "a bytes"),
    ],
)
def test_values_are_described_in_few_words(value: Any, words: str) -> None:
    assert described(value) == words


@given(st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.lists(st.integers())))
def test_every_value_can_be_described_briefly(value: Any) -> None:
    assert 0 < len(described(value)) < 300


def test_a_column_that_all_scores_have_is_refused_before_anything_is_graded() -> None:
    class Counted(Sample):
        columns: ClassVar = {"usage": "int64"}  # type: ignore[misc, assignment]

    run = Runner(MemoryStore()).run(str, Dataset.from_rows([{"input": "a"}]))
    with pytest.raises(SpecError, match="column 'usage': every table of scores has a column of this name"):
        Evaluator().evaluate(run, {"counted": Counted()})
