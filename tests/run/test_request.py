"""What is asked of a step: each door takes its own keywords, says their defaults, and refuses all others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from evaluand import Dataset, Evaluator, Experiment, Runner, SpecError, evaluate
from evaluand.comparison import comparing
from evaluand.experiment import Suite
from evaluand.matches.matcher import Matcher
from evaluand.predictions import options
from evaluand.run import request

DATA = Dataset.from_rows([{"input": "a", "expected": "A"}, {"input": "b", "expected": "B"}])
SCORERS = {"same": "exact_match"}
STEP = {"fresh": False, "retry_failed": False, "name": None, "resume": None, "origin": None}
PATH = {"fresh": False, "retry_failed": False, "limit": None, "calls": True}


class Mine(Experiment):
    pass


def experiment(kind: type[Experiment] = Experiment) -> Experiment:
    return kind("demo", DATA, {"upper": str.upper, "lower": str.lower}, SCORERS, "mean")


def run(*args: Any, **options: Any) -> Any:
    return Runner().run(str.upper, DATA, *args, **options)


def grade(*args: Any, **options: Any) -> Any:
    return Evaluator().evaluate(Runner().run(str.upper, DATA), SCORERS, *args, **options)


def match(*args: Any, **options: Any) -> Any:
    runner = Runner()
    runs = [runner.run(task, DATA) for task in (str.upper, str.lower)]
    return Matcher().match(runs, lambda first, second: "tie", *args, labels=["a", "b"], **options)


def run_all(*args: Any, **options: Any) -> Any:
    return experiment().run(None, *args, **options)


def run_mine(*args: Any, **options: Any) -> Any:
    return experiment(Mine).run(None, *args, **options)


def run_suite(*args: Any, **options: Any) -> Any:
    return Suite("several", {"one": experiment()}).run(None, *args, **options)


@pytest.mark.parametrize(
    ("door", "options"),
    [
        (Runner.run, STEP | {"limit": None}),
        (Runner.plan, STEP | {"limit": None}),
        (Evaluator.evaluate, STEP),
        (Matcher.match, STEP | {"limit": None}),
        (Experiment.run, PATH | {"only": None, "resume": None}),
        (Suite.run, PATH),
        (evaluate, {"metrics": None, "by": None, "disparities": (), "fairness": (), "threshold": None, "data": None}),
    ],
)
def test_the_signature_has_the_keywords_with_their_defaults(door: Callable[..., Any], options: dict[str, Any]) -> None:
    parameters = inspect.signature(door).parameters
    assert options.items() <= {name: each.default for name, each in parameters.items()}.items()
    assert not {"options", "request"} & {*parameters}
    assert not any(each.default is ... for each in parameters.values())


@pytest.mark.parametrize(
    ("door", "options", "name"),
    [
        (run, {"calls": False}, "Runner.run"),
        (run, {"only": "upper"}, "Runner.run"),
        (grade, {"limit": 1}, "Evaluator.evaluate"),
        (match, {"calls": False}, "Matcher.match"),
        (run_all, {"max_samples": 3}, "Experiment.run"),
        (run_all, {"name": "other"}, "Experiment.run"),
        (run_all, {"origin": {}}, "Experiment.run"),
        (run_mine, {"name": "other"}, "Mine.run"),
        (run_suite, {"only": "upper"}, "Suite.run"),
    ],
)
def test_what_a_door_does_not_take_is_refused(door: Callable[..., Any], options: dict[str, Any], name: str) -> None:
    with pytest.raises(TypeError) as raised:
        door(**options)
    assert str(raised.value) == f"{name}() got an unexpected keyword argument {next(iter(options))!r}"


@pytest.mark.parametrize(
    ("door", "name"),
    [
        (run, "Runner.run"),
        (grade, "Evaluator.evaluate"),
        (match, "Matcher.match"),
        (run_all, "Experiment.run"),
        (run_mine, "Mine.run"),
        (run_suite, "Suite.run"),
    ],
)
def test_a_request_is_given_by_keywords_only(door: Callable[..., Any], name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) takes .* positional arguments but .* given$"):
        door(5)


@pytest.mark.parametrize(
    ("door", "options", "message"),
    [
        (run, {"limit": "3"}, "limit: is the text '3'; give an integer of at least 1, or leave it out"),
        (run, {"limit": 0}, "limit: is the integer 0; give an integer of at least 1, or leave it out"),
        (run, {"limit": True}, "limit: is true; give an integer of at least 1, or leave it out"),
        (run, {"limit": 2.0}, "limit: is the number 2.0; give an integer of at least 1, or leave it out"),
        (run, {"name": 5}, "name: is the integer 5; give some text, or leave it out"),
        (run, {"name": " "}, "a name must not be empty or blank: ' '"),
        (run, {"fresh": "no"}, "fresh: is the text 'no'; give true or false"),
        (run, {"origin": "here"}, "origin: is the text 'here'; give a mapping, or leave it out"),
        (run, {"resume": 5}, "resume: is the integer 5; give some text, or leave it out"),
        (grade, {"retry_failed": None}, "retry_failed: is null; give true or false"),
        (match, {"limit": "3"}, "limit: is the text '3'; give an integer of at least 1, or leave it out"),
        (run_all, {"calls": 0}, "calls: is the integer 0; give true or false"),
        (run_all, {"only": ["upper"]}, "only: is a list; give some text, or leave it out"),
        (run_all, {"only": "ups"}, "no task is called 'ups'; there are upper, lower"),
        (run_all, {"resume": "3f2a"}, "resume: is the text '3f2a'; give a kind and an id, or leave it out"),
        (run_all, {"resume": ("runs",)}, "resume: is a list; give a kind and an id, or leave it out"),
        (run_all, {"resume": ("runs", 5)}, "resume: is a list; give a kind and an id, or leave it out"),
        (run_suite, {"limit": -1}, "limit: is the integer -1; give an integer of at least 1, or leave it out"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence(
    door: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError) as raised:
        door(**options)
    assert str(raised.value) == message


def test_evaluate_takes_the_defaults_that_its_signature_names() -> None:
    defaults = {
        name: each.default
        for name, each in inspect.signature(evaluate).parameters.items()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert str(evaluate([1, 0], [1, 1], **defaults)) == str(evaluate([1, 0], [1, 1]))


@pytest.mark.parametrize(
    ("record", "keywords"),
    [
        (request.Repetition, request.RepetitionOptions),
        (request.StepRequest, request.StepOptions),
        (request.Request, request.RequestOptions),
        (comparing.RowRequest, comparing.RowOptions),
        (request.PathRequest, request.PathOptions),
        (request.ExperimentRequest, request.ExperimentOptions),
        (options.EvaluateOptions, options.Keywords),
    ],
)
def test_type_checkers_know_the_keywords_of_each_record(record: Any, keywords: type) -> None:
    assert get_type_hints(keywords) == get_type_hints(record)
