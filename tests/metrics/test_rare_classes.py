"""Averages over classes of which one has hardly any row, or none: they have a value, and an interval never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import evaluand
from evaluand.cli import main
from evaluand.metrics.names import make_metric

ONE_CLASS = (["a"] * 30, ["a"] * 28 + ["b"] * 2)
RARE = (["a"] * 20 + ["b"] * 18 + ["c"] * 2, ["a"] * 19 + ["b"] * 19 + ["c"] * 2)
FREQUENT = (["a"] * 20 + ["b"] * 18 + ["c"] * 3, ["a"] * 19 + ["b"] * 19 + ["c"] * 3)
TWO_OF_C = "no interval: class 'c' has 2 rows, and an average over classes needs 3 of each"


def row_of(rows: tuple[list[str], list[str]], metric: Any, **options: Any) -> Any:
    [row] = evaluand.evaluate(*map(np.array, rows), metrics=metric, kind="multiclass", **options).rows
    return row


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [
        ("balanced_accuracy", 28 / 30, "no interval: class 'a' is the only one, and an average over classes needs two"),
        ("f1_macro", 28 / 58, "no interval: class 'b' has 0 rows, and an average over classes needs 3 of each"),
    ],
)
def test_an_average_over_one_true_class_has_no_interval(metric: str, value: float, reason: str) -> None:
    row = row_of(ONE_CLASS, metric)
    assert row.value == pytest.approx(value)
    assert (np.isnan([row.low, row.high]).all(), row.reason) == (True, reason)


AVERAGES = ("balanced_accuracy", "precision_macro", "recall_macro", "f1_macro", "jaccard_macro")


@pytest.mark.parametrize("metric", AVERAGES)
def test_an_average_over_classes_needs_three_rows_of_each(metric: str) -> None:
    rare, frequent = row_of(RARE, metric), row_of(FREQUENT, metric)
    assert (rare.value > 0.9, rare.reason) == (True, TWO_OF_C)
    assert np.isnan([rare.low, rare.high]).all()
    assert frequent.low < frequent.value < frequent.high


@pytest.mark.parametrize("metric", ["f1_weighted", "f1_micro", "cohen_kappa", "matthews_correlation"])
def test_what_gives_no_class_an_equal_say_keeps_its_interval(metric: str) -> None:
    row = row_of(RARE, metric)
    assert row.low < row.value < row.high


def test_the_ratio_of_one_class_keeps_its_interval() -> None:
    row = row_of(RARE, make_metric("recall", label="c"))
    assert (row.value, row.low < 0.5) == (1.0, True)


def test_predictions_outside_the_true_classes_are_no_class_of_a_balanced_accuracy() -> None:
    truth = ["a", "b"] * 10
    assert row_of((truth, [*truth[:-1], "unknown"]), "balanced_accuracy").low < 0.95


def test_rows_are_counted_and_not_their_weights() -> None:
    for rows, reason in ((RARE, TWO_OF_C), (FREQUENT, None)):
        weight = np.where(np.array(rows[0]) == "c", 50.0, 0.5)
        for metric in ("balanced_accuracy", "f1_macro"):
            assert row_of(rows, metric, weight=weight).reason == reason


def test_the_area_of_each_class_against_the_others_needs_them_too() -> None:
    rng = np.random.default_rng(0)
    for truth, reason in ((RARE[0], TWO_OF_C), (FREQUENT[0], None)):
        scores = rng.dirichlet(np.ones(3), len(truth)) + 0.5 * (np.array(truth)[:, None] == np.array(["a", "b", "c"]))
        by_class = dict(zip("abc", (scores / scores.sum(axis=1, keepdims=True)).T, strict=True))
        for metric in ("roc_auc_macro", "roc_auc_one_vs_one", "average_precision_macro"):
            [row] = evaluand.evaluate(np.array(truth), scores=by_class, metrics=metric).rows
            assert row.reason == reason
            assert np.isfinite(row.low) == (reason is None)


def test_groups_are_judged_one_by_one() -> None:
    truth, predicted = (np.array([*rare, *frequent]) for rare, frequent in zip(RARE, FREQUENT, strict=True))
    group = np.array(["few"] * len(RARE[0]) + ["enough"] * len(FREQUENT[0]))
    found = evaluand.evaluate(truth, predicted, metrics="f1_macro", by={"g": group}, disparities=["difference"])
    assert {row.by["g"]: row.reason for row in found.rows if row.by} == {"few": TWO_OF_C, "enough": None}
    [disparity] = found.disparities
    assert (np.isnan(disparity.low), "few has none" in disparity.reason) == (True, True)


@pytest.mark.parametrize("metric", ["balanced_accuracy", "f1_macro"])
def test_a_difference_has_no_interval_either(metric: str) -> None:
    for rows, reason in ((RARE, TWO_OF_C), (FREQUENT, None)):
        truth, first = map(np.array, rows)
        second = np.where(np.arange(len(truth)) % 9 == 0, "b", first)
        a, b = (evaluand.evaluate(truth, each, metrics=metric) for each in (first, second))
        [pair] = evaluand.compare(a, b).pairs
        assert pair["difference"] < 0
        assert (pair["reason"], pair["low"] is None, pair["p"] is None) == (reason, bool(reason), bool(reason))
        assert pair["verdict"].endswith(TWO_OF_C) == bool(reason)


def test_a_mean_over_targets_has_no_interval_if_a_target_has_none() -> None:
    truth, predicted = (np.array([*map("abc".index, [*one, *two])]) for one, two in zip(RARE, FREQUENT, strict=True))
    target = np.repeat([0, 1], [len(RARE[0]), len(FREQUENT[0])])
    rows = {"truth": truth, "prediction": predicted, "_labels_": np.array([*"abc"], object)}
    for name in ("f1_macro", "balanced_accuracy"):
        metric = make_metric(name)
        found = metric.mean_over(
            metric.state(rows | {"_cluster_": np.arange(len(truth))}, target, 2), [np.array([0, 1]), np.array([1])]
        )
        assert (found.reason, np.isnan(found.low).tolist()) == ([TWO_OF_C, None], [True, False])


def test_gates_on_such_a_bound_are_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ("y,p,q", *map(",".join, zip(*RARE, RARE[0], strict=True)))
    Path("rows.csv").write_text("\n".join(lines) + "\n")
    gates = ["--gate", "f1_macro >= 0.5 at 95%", "--gate", "f1_macro not worse than baseline by 0.5"]
    words = ["score", "rows.csv", "--truth", "y", "--prediction", "p", "--prediction", "q", "--metric", "f1_macro"]
    result = CliRunner().invoke(main, [*words, *gates])
    assert result.exit_code == 3
    assert result.stdout.count("UNDECIDED") == 2
    assert TWO_OF_C in " ".join(result.stdout.split())
