"""Metrics that a comparison or a plan names and no stored result declares: they are of the class that others are of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import evaluand
from evaluand.cli import main
from evaluand.comparison.measures import find_evaluations, undeclared_metric
from evaluand.comparison.planning import plan
from evaluand.core.errors import SpecError
from evaluand.metrics.names import make_metric

TRUTH = [0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1]
OLD = [0.1, 0.8, 0.4, 0.7, 0.2, 0.9, 0.3, 0.6, 0.7, 0.4, 0.8, 0.5]
NEW = [0.25, 0.6, 0.45, 0.55, 0.3, 0.65, 0.35, 0.6, 0.6, 0.45, 0.7, 0.55]
REFUSED = (
    "brier is another number for each of two classes and for both, and no stored metric of 'prediction' says which"
)


def square_error(scores: list[float]) -> float:
    return sum((y - p) ** 2 for y, p in zip(TRUTH, scores, strict=True)) / len(TRUTH)


def call(*words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--store", "store"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def score(*words: str) -> None:
    """Scores two systems, `old` and `new`."""
    for name, scores in (("old", OLD), ("new", NEW)):
        lines = [f"{y},{int(p > 0.5)},{p}\n" for y, p in zip(TRUTH, scores, strict=True)]
        Path(f"{name}.csv").write_text("".join(["y,said,p\n", *lines]))
        result = call(
            "score", f"{name}.csv", "--truth", "y", "--prediction", "said", "--score", "p", "--name", name, *words
        )
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("declared", ["brier", "f1", "roc_auc", "accuracy"])
def test_a_comparison_has_the_number_that_score_has(folder: Path, declared: str) -> None:
    score("--metric", declared)
    [pair] = json.loads(call("compare", "old", "new", "--metric", "brier", "--json").stdout)["pairs"]
    assert (pair["value_a"], pair["value_b"]) == pytest.approx((square_error(OLD), square_error(NEW)))
    assert "label=1" in pair["signature"].split()
    [gate] = json.loads(call("compare", "old", "new", "--gate", "brier <= 0.5", "--json").stdout)["gates"]
    assert gate["values"][0]["value"] == pytest.approx(square_error(NEW))


def test_the_class_that_was_chosen_counts_and_not_the_usual_one(folder: Path) -> None:
    score("--metric", "f1", "--pos-label", "0")
    [pair] = json.loads(call("compare", "old", "new", "--metric", "recall", "--json").stdout)["pairs"]
    assert pair["value_a"] == pytest.approx(4 / 5)
    assert "label=0" in pair["signature"].split()


def of_no_class(scores: list[float]) -> evaluand.SystemScores:
    """Two classes of which none is the positive one."""
    by_class = {"dog": scores, "cat": [1 - p for p in scores]}
    truth = [["cat", "dog"][y] for y in TRUTH]
    return evaluand.evaluate(truth, scores=by_class, metrics="accuracy")


def test_without_a_stored_class_it_is_refused(folder: Path) -> None:
    for name, scores in (("old", OLD), ("new", NEW)):
        of_no_class(scores).save(evaluand.DirectoryStore("store"), name)
    for words in (
        ("compare", "old", "new", "--metric", "brier"),
        ("compare", "old", "new", "--metric", "accuracy", "--gate", "brier <= 0.5"),
        ("plan", "brier better than old", "--pilot", "old", "new"),
    ):
        result = call(*words)
        assert result.exit_code == 1
        assert REFUSED in result.stderr
        assert "name it where the evaluations are made, by `--metric brier` of" in result.stderr
    assert (
        json.loads(call("compare", "old", "new", "--metric", "roc_auc", "--json").stdout)["pairs"][0]["value_a"] > 0.8
    )


def test_a_plan_is_for_the_class_that_is_stored(folder: Path) -> None:
    score("--metric", "f1")
    store = evaluand.DirectoryStore("store")
    [old], [new] = (find_evaluations(store, name) for name in ("old", "new"))
    by_name = plan("brier not worse than old by 0.2", pilot=(old, new))
    by_metric = plan("brier not worse than old by 0.2", pilot=(old, new), metric=make_metric("brier", label=1))
    assert by_name == by_metric


def test_arrays_know_their_class_or_are_refused() -> None:
    of_class = [evaluand.evaluate(TRUTH, scores=scores, metrics="roc_auc", threshold=0.5) for scores in (OLD, NEW)]
    [pair] = evaluand.compare(*of_class, metrics="brier").pairs
    assert pair["value_a"] == pytest.approx(square_error(OLD))
    sides = [of_no_class(scores) for scores in (OLD, NEW)]
    with pytest.raises(SpecError, match=r"name it where .* or make_metric\('brier', label=…\)"):
        evaluand.compare(*sides, metrics="brier")
    [pair] = evaluand.compare(*sides, metrics=make_metric("brier", label="dog")).pairs
    assert pair["value_a"] == pytest.approx(square_error(OLD))


def test_more_than_two_classes_need_none() -> None:
    truth = ["a", "b", "c"] * 4
    scores = {label: [0.6 if y == label else 0.2 for y in truth] for label in "abc"}
    evaluation = evaluand.evaluate(truth, scores=scores, metrics="roc_auc").to_evaluation(evaluand.MemoryStore(), "one")
    assert undeclared_metric("brier", [evaluation], "prediction", []).signature.startswith("brier v1")
