"""Base classes that users implement for the second and third step: how to evaluate an example, how to aggregate."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, get_args

from evaluand.interop.pharia.domain import (
    AggregatedEvaluation,
    Evaluation,
    Example,
    ExpectedOutput,
    Refused,
    SuccessfulExampleOutput,
    is_extended,
)
from evaluand.interop.pharia.types import first_declared, require_type
from evaluand.run.task import Input, Output
from evaluand.run.types import arguments, hints


class EvaluationLogicBase(ABC, Generic[Input, Output, ExpectedOutput, Evaluation]):
    """Base of all evaluation logics: declares the types in brackets."""

    _signature: ClassVar = ("do_evaluate", 0, 1)
    """The method whose annotations declare the types, and the places of its example and output."""


class EvaluationLogic(EvaluationLogicBase[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates an example by the outputs of one or more runs.

    Declare input, output, expected output and result, in this order:
    `class Best(EvaluationLogic[str, str, str, Verdict])`.
    """

    @abstractmethod
    def do_evaluate(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> Evaluation:
        """The result for one example, with the output of each run that did not fail on it, in the order of the runs."""


class SingleOutputEvaluationLogic(EvaluationLogic[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates an example by the output of one run."""

    _signature: ClassVar = ("do_evaluate_single_output", 0, 1)

    def do_evaluate(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> Evaluation:
        if len(output) != 1:
            raise Refused(f"{type(self).__name__} evaluates the output of one run, but got {len(output)} outputs")
        return self.do_evaluate_single_output(example, output[0].output)

    @abstractmethod
    def do_evaluate_single_output(self, example: Example[Input, ExpectedOutput], output: Output) -> Evaluation:
        """The result for one example and its output."""


class AggregationLogic(ABC, Generic[Evaluation, AggregatedEvaluation]):
    """Computes statistics of results: `class Accuracy(AggregationLogic[Verdict, Share])`."""

    @abstractmethod
    def aggregate(self, evaluations: Iterable[Evaluation]) -> AggregatedEvaluation:
        """The statistics of all results, which may be iterated more than once."""


class LogicTypes:
    """The types that an evaluation logic declares; `example` is its subclass of `Example`, if it has one."""

    def __init__(self, logic: EvaluationLogicBase[Any, Any, Any, Any]) -> None:
        self._logic = logic
        cls = type(logic)
        brackets = arguments(cls, EvaluationLogicBase)
        self._method, *places = logic._signature
        method = getattr(cls, self._method, None)
        annotations = {} if method is None else hints(method)
        names = [] if method is None else [n for n in inspect.signature(method).parameters if n != "self"]
        example, output = (annotations.get(names[place]) if place < len(names) else None for place in places)
        self.example = example if is_extended(example) else None
        input, expected = _value_types(self.example) or _arguments(example) or (Input, ExpectedOutput)
        if not isinstance(logic, SingleOutputEvaluationLogic):
            output = next(iter(_arguments(next(iter(get_args(output)), output))), Output)
        annotated = input, output or Output, expected, annotations.get("return", Evaluation)
        self._types = [first_declared(*both) for both in zip(brackets, annotated, strict=True)]

    def input(self) -> Any:
        return self._type(0, "input")

    def output(self) -> Any:
        return self._type(1, "output")

    def expected(self) -> Any:
        return self._type(2, "expected output")

    def evaluation(self) -> Any:
        return self._type(3, "result")

    def _type(self, place: int, what: str) -> Any:
        return require_type(self._types[place], self._logic, what, self._method)


def aggregation_types(logic: AggregationLogic[Any, Any]) -> tuple[Any, Any]:
    """The types of results and statistics that an aggregation logic declares."""
    brackets = arguments(type(logic), AggregationLogic)
    annotations = hints(type(logic).aggregate)
    names = [name for name in inspect.signature(type(logic).aggregate).parameters if name != "self"]
    item = next(iter(get_args(annotations.get(names[0]))), Evaluation)
    found = (
        first_declared(brackets[0], item),
        first_declared(brackets[1], annotations.get("return", AggregatedEvaluation)),
    )
    return (
        require_type(found[0], logic, "result", "aggregate"),
        require_type(found[1], logic, "statistics", "aggregate"),
    )


def _arguments(type_: Any) -> tuple[Any, ...]:
    """The type arguments of a pydantic model."""
    return tuple(getattr(type_, "__pydantic_generic_metadata__", {}).get("args", ()))


def _value_types(example: type[Example[Any, Any]] | None) -> tuple[Any, ...]:
    """The types of input and expected output of a subclass of `Example`."""
    if example is None:
        return ()
    return tuple(example.model_fields[name].annotation for name in ("input", "expected_output"))
