"""What is wrong in a few lines of Python is told in a sentence, before anything is called."""

from __future__ import annotations

from typing import Any

import pytest

from evaluand import Accuracy, Aggregator, Dataset, Evaluator, Measure, Runner, SpecError
from evaluand.evaluation.evaluator import ScorerFailed
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.evaluation.scorers.prediction import Prediction

DATA = Dataset.from_rows([{"input": "a", "expected": "A", "topic": "x"}], attributes="topic")


def test_a_path_is_no_store() -> None:
    store: Any = "results"
    with pytest.raises(SpecError, match=r"'results' is not a store; use MemoryStore\(\), or DirectoryStore\(path\)"):
        Runner(store).run(str.upper, DATA)


def test_only_a_run_is_evaluated() -> None:
    run: Any = "exp/mine"
    with pytest.raises(SpecError, match=r"give a Run to evaluate, not a str"):
        Evaluator().evaluate(run, {"same": ExactMatch()})


def test_a_number_is_no_policy() -> None:
    policy: Any = 5
    with pytest.raises(SpecError, match=r"policy is the integer 5; give a Policy"):
        Evaluator(policy=policy)


def test_a_class_of_scorer_is_no_scorer() -> None:
    with pytest.raises(SpecError, match=r"scorer 'same' is the class ExactMatch; give an instance"):
        Evaluator().evaluate(Runner().run(str.upper, DATA), {"same": ExactMatch})


def test_a_class_of_metric_is_no_metric() -> None:
    metric: Any = Accuracy
    with pytest.raises(SpecError, match=r"a measure needs a metric, such as Accuracy\(\)"):
        Measure("same", metric)


def test_one_attribute_or_several_may_be_named_plainly() -> None:
    assert Measure("same", Accuracy(), by="topic").by == (("topic",),)
    assert Measure("same", Accuracy(), by=["topic", ("topic", "language")]).by == (("topic",), ("topic", "language"))


def test_every_measure_that_fits_nothing_is_reported_at_once() -> None:
    evaluation = Evaluator().evaluate(Runner().run(str.upper, DATA), {"same": ExactMatch(), "pair": Prediction()})
    measures = [
        Measure("some", Accuracy()),
        Measure("same", Accuracy(column="confidence")),
        Measure("same", Accuracy(), by="topik"),
    ]
    with pytest.raises(SpecError) as raised:
        Aggregator().aggregate([evaluation], measures)
    first, second, third = str(raised.value).split("\n")
    assert first.startswith("accuracy: no scorer is called 'some' (did you mean 'same'?)")
    assert second.startswith("scorer 'same': accuracy reads 'confidence', which the table lacks")
    assert third.startswith("accuracy: 'topik' is not an attribute of the dataset (did you mean 'topic'?)")


@pytest.mark.parametrize("wrong", ["evaluation", "metric", "measure", "run"])
def test_what_is_aggregated_are_lists_of_evaluations_and_measures(wrong: str) -> None:
    run = Runner().run(str.upper, DATA)
    evaluation, measure = Evaluator().evaluate(run, {"same": ExactMatch()}), Measure("same", Accuracy())
    given: dict[str, tuple[Any, Any]] = {
        "evaluation": (evaluation, [measure]),
        "metric": ([evaluation], [Accuracy()]),
        "measure": ([evaluation], measure),
        "run": ([run], [measure]),
    }
    with pytest.raises(SpecError, match="an aggregation needs a list of"):
        Aggregator().aggregate(*given[wrong])


def test_a_scorer_that_fails_on_every_row_is_reported_with_its_first_reason() -> None:
    run = Runner().run(len, Dataset.from_rows([{"input": text, "expected": len(text)} for text in ("a", "bc")]))
    reported = (
        r"scorer 'right' failed on all 2 rows: DataError: the truth is the integer 1, not text; set the scorer's type"
    )
    for _ in range(2):  # made, and found again
        with pytest.warns(ScorerFailed, match=reported):
            evaluation = Evaluator().evaluate(run, {"right": Prediction(), "same": ExactMatch()})
    assert repr(evaluation) == f"Evaluation({evaluation.id[:12]}, right: 2 failed, same)"


def test_a_scorer_that_was_asked_about_nothing_has_not_failed() -> None:
    def crash(text: str) -> str | None:
        if text == "b":
            return None
        raise ValueError(text)

    run = Runner().run(crash, Dataset.from_rows([{"input": text, "expected": text} for text in "ab"]))
    evaluation = Evaluator().evaluate(run, {"right": Prediction()})
    assert evaluation.counts == {"right": {"failed": 1, "abstained": 1}}
