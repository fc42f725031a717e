"""Estimators: fitted by folds, used as they are, and compared with what scikit-learn does by hand."""

from __future__ import annotations

import re
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.core.errors import DataError, SpecError, TaskError
from evaluand.data.dataset import Dataset
from evaluand.data.split import Split
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.areas import RocAuc
from evaluand.metrics.calibration import ExpectedCalibrationError
from evaluand.metrics.probabilities import Brier, LogLoss
from evaluand.predictions.evaluating import evaluate
from evaluand.report.verification import verify
from evaluand.run.runner import Run, Runner
from evaluand.run.tasks.estimator import EstimatorTask, PartedClusters
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore
from evaluand.trace import Trace

X, Y = load_breast_cancer(return_X_y=True)
FIVE = Split(folds=5, stratified=True, seed=1)


def cancer(n: int = len(Y)) -> Dataset:
    rows = [{"x": x, "y": y} for x, y in zip(X[:n].tolist(), Y[:n].tolist(), strict=True)]
    return Dataset.from_rows(rows, input="x", expected="y")


def table(n: int = 24, **columns: Any) -> Dataset:
    """Two numbers a and b; y is whether a is the larger."""
    drawn = np.random.default_rng(0).normal(size=(n, 2)).round(3)
    rows = [{"a": a, "b": b, "y": "more" if a > b else "less"} for a, b in drawn.tolist()]
    for name, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    roles = {"weight": "w"} if "w" in columns else {}
    return Dataset.from_rows(rows, input=["a", "b", *(set(columns) - {"w", "y"})], expected="y", **roles)


def logistic(c: float = 1.0) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=c))


def answers(run: Run) -> list[Any]:
    return [r.responses[0] if r.responses else None for r in run]


def errors(run: Run) -> set[tuple[str, str]]:
    return {(r.error["code"], r.error["message"]) for r in run if r.error}


class Recorder(ClassifierMixin, BaseEstimator):
    """Predicts the commonest label, and notes what it was given."""

    fits: list[dict[str, Any]] = []  # noqa: RUF012 - shared on purpose, since every fit is another copy
    predictions: list[Any] = []  # noqa: RUF012
    stopped_at: int | None = None

    def __init__(self, fails_with: int | None = None) -> None:
        self.fails_with = fails_with

    def fit(self, x: Any, y: Any, sample_weight: Any = None) -> Recorder:
        self.fits.append({"X": x, "y": y, "sample_weight": sample_weight, "thread": threading.get_ident()})
        if self.stopped_at == len(self.fits):
            raise KeyboardInterrupt
        if self.fails_with == len(self.fits):
            raise ValueError("singular")
        self.common_ = Counter(np.asarray(y).tolist()).most_common(1)[0][0]
        return self

    def predict(self, x: Any) -> Any:
        self.predictions.append(x)
        return np.array([self.common_] * len(x))


@pytest.fixture(autouse=True)
def _nothing_recorded() -> None:
    Recorder.fits.clear()
    Recorder.predictions.clear()


# Against scikit-learn


def test_cross_validated_predictions_are_those_made_by_hand_with_the_same_folds() -> None:
    data = cancer()
    run = Runner().run(EstimatorTask(logistic(), FIVE), data)
    folds = FIVE.assign(data)
    for fold in range(5):
        train, test = folds.train(0, fold), folds.test(0, fold)
        model = logistic().fit(X[train], Y[train])
        probabilities = model.predict_proba(X[test])
        by_hand = [
            {"prediction": int(label), "confidence": max(p), "probabilities": {"0": p[0], "1": p[1]}}
            for label, p in zip(model.predict(X[test]), probabilities.tolist(), strict=True)
        ]
        given = answers(run)
        assert [given[i] for i in test] == by_hand
    assert run.table()["fold"].to_pylist() == folds.numbers[0].tolist()
    assert run.counts == {"completed": 569}


def test_each_repeat_has_folds_of_its_own() -> None:
    split = Split(folds=2, stratified=True, repeats=3)
    data = cancer(60)
    run = Runner().run(EstimatorTask(logistic(), split), data)
    folds = [(r.replication, r.index, r.fold) for r in run]
    assert folds == [(r, i, split.assign(data).numbers[r, i]) for i in range(60) for r in range(3)]


def test_a_holdout_answers_for_what_it_tests_and_skips_what_it_learns_from() -> None:
    split = Split(test=0.25, stratified=True, repeats=2, seed=3)
    data = cancer()
    run = Runner().run(EstimatorTask(logistic(), split), data)
    folds = split.assign(data)
    assert run.counts == {"skipped": 2 * 427, "completed": 2 * 142}
    for repeat in range(2):
        rows = [r for r in run if r.replication == repeat]
        train, test = folds.train(repeat, 0), folds.test(repeat, 0)
        expected = logistic().fit(X[train], Y[train]).predict(X[test]).tolist()
        assert [r.responses[0]["prediction"] for r in rows if r.status == "completed"] == expected
        assert [r.fold for r in rows] == [0 if i in test else None for i in range(569)]


def test_a_fitted_estimator_answers_as_it_is() -> None:
    model = RandomForestClassifier(20, random_state=0).fit(X[:400], Y[:400])
    run = Runner().run(EstimatorTask(model), cancer())
    assert [a["prediction"] for a in answers(run)] == model.predict(X).tolist()
    assert [a["probabilities"]["1"] for a in answers(run)] == model.predict_proba(X)[:, 1].tolist()
    assert set(run.table()["fold"].to_pylist()) == {None}


def test_a_regression_gives_numbers() -> None:
    data = Dataset.from_rows([{"x": i / 7, "y": 3.0 * i + i % 2} for i in range(30)], input="x", expected="y")
    run = Runner().run(EstimatorTask(LinearRegression(), Split(folds=3)), data)
    folds = Split(folds=3).assign(data)
    x, y = np.arange(30)[:, None] / 7, np.array([3.0 * i + i % 2 for i in range(30)])
    for fold in range(3):
        train, test = folds.train(0, fold), folds.test(0, fold)
        by_hand = LinearRegression().fit(x[train], y[train]).predict(x[test]).tolist()
        assert [answers(run)[i] for i in test] == by_hand
    assert {type(answer) for answer in answers(run)} == {float}


# What comes out


def test_the_confidence_is_that_of_the_predicted_class_or_of_the_positive_one() -> None:
    data = table()
    plain = answers(Runner().run(EstimatorTask(logistic(), FIVE), data))
    positive = answers(Runner().run(EstimatorTask(logistic(), FIVE, positive="more"), data))
    assert {a["prediction"] for a in plain} == {"less", "more"}
    for a, b in zip(plain, positive, strict=True):
        assert a["confidence"] == a["probabilities"][a["prediction"]]
        assert b["confidence"] == a["probabilities"]["more"]
        assert ("confidence_of" in a, b["confidence_of"]) == (False, "more")
        assert a["prediction"] == b["prediction"]


@pytest.mark.parametrize(
    ("labels", "texts", "kind"),
    [([True, False], ["false", "true"], bool), ([3, 5], ["3", "5"], int), ([0.5, 2.0], ["0.5", "2.0"], float)],
)
def test_labels_come_out_in_the_type_they_went_in(labels: list[Any], texts: list[str], kind: type) -> None:
    data = table(12, y=labels * 6)
    tree: Any = KNeighborsClassifier(1) if kind is not float else DecisionTreeRegressor(random_state=0)
    for answer in answers(Runner().run(EstimatorTask(tree, Split(folds=3)), data)):
        label = answer if kind is float else answer["prediction"]
        assert type(label) is kind
        if kind is not float:
            assert list(answer["probabilities"]) == texts


def test_the_scorer_prediction_reads_the_response() -> None:
    run = Runner().run(EstimatorTask(logistic(), FIVE, positive=1), cancer())
    scores = Evaluator().evaluate(run, {"p": Prediction(type="integer")}).table("p").to_pylist()
    assert {row["status"] for row in scores} == {"scored"}
    assert [row["truth"] for row in scores] == Y.tolist()
    assert [row["confidence"] for row in scores] == [a["probabilities"]["1"] for a in answers(run)]
    assert all((row["confidence"] > 0.5) == row["prediction"] for row in scores)
    assert {row["confidence_of"] for row in scores} == {1}


@pytest.mark.parametrize("positive", [None, 1])
def test_metrics_of_probabilities_are_the_same_whatever_class_the_confidence_is_of(positive: int | None) -> None:
    run = Runner().run(EstimatorTask(logistic(), FIVE, positive=positive), cancer())
    evaluation = Evaluator().evaluate(run, {"p": Prediction(type="integer")})
    of_one = [a["probabilities"]["1"] for a in answers(run)]
    metrics = [
        RocAuc(label=1),
        RocAuc(scored_by="predicted", label=1),
        Brier(scored_by="predicted", label=1),
        LogLoss(clip=1e-15),
        ExpectedCalibrationError(label=1),
        ExpectedCalibrationError(),
    ]
    table = Aggregator().aggregate([evaluation], [Measure("p", metric) for metric in metrics]).table()
    area, same, brier, loss, error, own = table["value"].to_pylist()
    assert (area, same) == pytest.approx([roc_auc_score(Y, of_one)] * 2)
    assert (brier, loss) == pytest.approx((brier_score_loss(Y, of_one), log_loss(Y, of_one)))
    said, scores = [a["prediction"] for a in answers(run)], {0: 1 - np.array(of_one), 1: of_one}
    cases = ((error, "ece"), (error, ExpectedCalibrationError(label=1)), (own, ExpectedCalibrationError()))
    for value, metric in cases:
        [reported] = evaluate(Y, said, metrics=metric, scores=scores).rows
        assert value == pytest.approx(reported.value)


def test_several_targets_get_a_response_each() -> None:
    rows = [{"x": i, "even": i % 2 == 0, "small": i < 6} for i in range(12)]
    data = Dataset.from_rows(rows, input=["x"], expected={"E": "even", "S": "small"})
    split = Split(folds=3)
    run = Runner().run(EstimatorTask(KNeighborsClassifier(3), split), data)
    folds = split.assign(data)
    x, y = np.arange(12.0)[:, None], np.array([[row["even"], row["small"]] for row in rows])
    for fold in range(3):
        model = KNeighborsClassifier(3).fit(x[folds.train(0, fold)], y[folds.train(0, fold)])
        for i, (even, small) in zip(folds.test(0, fold), model.predict(x[folds.test(0, fold)]), strict=True):
            answer = answers(run)[i]
            assert (answer["E"]["prediction"], answer["S"]["prediction"]) == (even, small)
            assert answer["S"]["probabilities"]["true"] == model.predict_proba(x[[i]])[1][0, 1]
    scores = Evaluator().evaluate(run, {"p": Prediction(type="boolean")}).table("p")
    assert set(scores["target"].to_pylist()) == {"E", "S"}
    numbers = Runner().run(
        EstimatorTask(LinearRegression(), split),
        Dataset.from_rows([{"x": i, "a": i, "b": -i} for i in range(9)], input=["x"], expected=["a", "b"]),
    )
    assert answers(numbers)[4] == pytest.approx({"a": 4, "b": -4})


def test_an_estimator_that_needs_no_truth_gets_none() -> None:
    data = Dataset.from_rows([{"x": float(i // 5 * 100 + i)} for i in range(10)], input=["x"])
    run = Runner().run(EstimatorTask(KMeans(2, n_init=1), Split(folds=2)), data)
    assert {type(answer) for answer in answers(run)} == {int}


# What goes in


def test_columns_of_numbers_make_a_matrix_in_which_a_missing_number_is_nan() -> None:
    rows = [{"a": i, "b": None if i == 3 else 0.5, "c": i % 2 == 0, "y": i % 2} for i in range(6)]
    data = Dataset.from_rows(rows, input=["c", "a", "b"], expected="y")
    Runner().run(EstimatorTask(Recorder(), Split(folds=2)), data)
    whole = np.vstack([fit["X"] for fit in Recorder.fits])
    assert (whole.dtype, whole.shape) == (np.float64, (6, 3))
    by_a = whole[np.argsort(whole[:, 1])]
    assert by_a[:, 0].tolist() == [1, 0, 1, 0, 1, 0]
    assert np.isnan(by_a[:, 2]).tolist() == [False, False, False, True, False, False]


def test_other_columns_make_a_frame_with_their_names() -> None:
    data = table(colour=["red", "green"] * 12)
    Runner().run(EstimatorTask(Recorder(), Split(folds=2)), data)
    assert {tuple(fit["X"].columns) for fit in Recorder.fits} == {("a", "b", "colour")}
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough"), LogisticRegression()
    )
    assert Runner().run(EstimatorTask(model, FIVE), data).counts == {"completed": 24}


def test_numbers_make_a_frame_where_it_is_asked_for() -> None:
    model = make_pipeline(make_column_transformer((StandardScaler(), ["b"])), LogisticRegression())
    matrix = Runner().run(EstimatorTask(model, FIVE), table())
    assert matrix.counts == {"failed": 24}
    assert Runner().run(EstimatorTask(model, FIVE, frame=True), table()).counts == {"completed": 24}


def test_without_pandas_other_columns_make_an_array_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    Runner().run(EstimatorTask(Recorder(), Split(folds=2)), table(colour=["red", "green"] * 12))
    first = Recorder.fits[0]["X"]
    assert (first.dtype, first.shape) == (object, (12, 3))
    assert {type(value) for value in first[0]} == {float, str}
    with pytest.raises(SpecError, match=r"need pandas: pip install 'evaluand\[pandas\]'"):
        Runner().run(EstimatorTask(Recorder(), Split(folds=2), frame=True), table())


def test_text_goes_to_vectorisers() -> None:
    rows = [{"text": f"{'good' if i % 2 else 'bad'} film {i}", "y": i % 2} for i in range(20)]
    data = Dataset.from_rows(rows, input="text", expected="y")
    model = make_pipeline(CountVectorizer(), MultinomialNB())
    run = Runner().run(EstimatorTask(model, Split(folds=4, stratified=True)), data)
    assert [a["prediction"] for a in answers(run)] == [0, 1] * 10


def test_a_model_fitted_on_a_frame_gets_the_columns_it_knows_in_its_order() -> None:
    data = table()
    rows = [{"b": e.input["b"], "a": e.input["a"]} for e in data]
    model = DecisionTreeClassifier(random_state=0).fit(pd.DataFrame(rows), [e.expected for e in data])
    assert [a["prediction"] for a in answers(Runner().run(EstimatorTask(model), data))] == [e.expected for e in data]
    other = Dataset.from_rows([{"a": 1.0, "c": 2.0}], input=["a", "c"])
    with pytest.raises(SpecError, match="it was fitted on b, which the input lacks"):
        Runner().run(EstimatorTask(model), other)


def test_weights_go_to_fit_where_asked_for() -> None:
    data = table(w=list(range(24)))
    split = Split(folds=2)
    Runner().run(EstimatorTask(Recorder(), split), data)
    assert [fit["sample_weight"] for fit in Recorder.fits] == [None, None]
    Recorder.fits.clear()
    Runner().run(EstimatorTask(Recorder(), split, weighted=True), data)
    folds = split.assign(data)
    given = sorted(fit["sample_weight"].tolist() for fit in Recorder.fits)
    assert given == sorted(folds.train(0, fold).tolist() for fold in range(2))


# Fits


def test_each_fold_is_fitted_once_and_predicted_at_once() -> None:
    Runner(policy=Policy(concurrency=16)).run(EstimatorTask(Recorder(), Split(folds=4, repeats=2)), table())
    assert [len(fit["X"]) for fit in Recorder.fits] == [18] * 8
    assert [len(x) for x in Recorder.predictions] == [6] * 8


def test_a_limit_changes_neither_the_folds_nor_what_is_learnt() -> None:
    runner, data = Runner(), cancer(150)
    part = runner.run(EstimatorTask(logistic(), FIVE), data, limit=50)
    fresh = Runner().run(EstimatorTask(logistic(), FIVE), data)
    assert answers(part) == answers(fresh)[:50]
    whole = runner.run(EstimatorTask(logistic(), FIVE), data)
    assert (whole.receipt.called, whole.receipt.reused, whole.digest) == (100, 50, fresh.digest)


def test_a_fit_that_fails_costs_its_own_fold_and_is_not_repeated() -> None:
    run = Runner(policy=Policy(concurrency=1)).run(EstimatorTask(Recorder(fails_with=2), Split(folds=3)), table())
    assert len(Recorder.fits) == 3
    assert run.counts == {"completed": 16, "failed": 8}
    [failed] = {r.fold for r in run if r.status == "failed"}
    assert errors(run) == {("fit_failed", f"the fit of repeat 0, fold {failed} failed: ValueError: singular")}
    again = Runner().run(EstimatorTask(Recorder(), Split(folds=3)), table())
    assert again.counts == {"completed": 24}


def test_a_prediction_that_fails_says_so() -> None:
    class Short(Recorder):
        def predict(self, x: Any) -> Any:
            raise RuntimeError("no memory")

    run = Runner().run(EstimatorTask(Short(), Split(folds=2)), table())
    assert errors(run) == {
        ("predict_failed", f"the prediction of repeat 0, fold {fold} failed: RuntimeError: no memory")
        for fold in (0, 1)
    }


def test_a_positive_class_that_a_fold_has_not_learnt_fails_its_rows() -> None:
    data = table(6, y=["x", "x", "x", "y", "x", "x"])
    run = Runner().run(EstimatorTask(DummyClassifier(), Split(folds=3), positive="y"), data)
    assert run.counts == {"completed": 4, "failed": 2}
    assert all("learnt no class 'y'" in message and "stratify" in message for _, message in errors(run))


def test_the_estimator_given_stays_as_it_was() -> None:
    model = LogisticRegression()
    Runner().run(EstimatorTask(model, FIVE), table())
    assert not hasattr(model, "coef_")
    assert model.get_params() == LogisticRegression().get_params()


# Again


def test_the_same_again_calls_nothing_and_another_parameter_calls_all(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    data = cancer(120)
    first = Runner(store).run(EstimatorTask(logistic(), FIVE), data)
    again = Runner(store).run(EstimatorTask(logistic(), FIVE), data)
    assert (first.receipt.called, again.receipt.called, again.id) == (120, 0, first.id)
    assert verify(store, "runs", first.id) == []
    changed = [
        EstimatorTask(logistic(2.0), FIVE),
        EstimatorTask(logistic(), Split(folds=5, stratified=True, seed=2)),
        EstimatorTask(logistic(), FIVE, positive=1),
    ]
    assert [Runner(store).run(task, data).receipt.called for task in changed] == [120, 120, 120]


def test_a_run_that_was_stopped_goes_on_to_what_it_would_have_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = EstimatorTask(Recorder(), Split(folds=3, seed=2), version="1")
    whole = Runner().run(task, table())
    store = DirectoryStore(tmp_path / "store")
    monkeypatch.setattr(Recorder, "stopped_at", 5)
    with pytest.raises(KeyboardInterrupt):
        Runner(store, Policy(concurrency=1)).run(task, table())
    run = Runner(store).run(task, table())
    assert 0 < run.receipt.kept < 24
    assert (run.receipt.called + run.receipt.kept, run.digest) == (24, whole.digest)


def test_a_dataset_with_one_row_more_is_another_and_reuses_nothing() -> None:
    runner = Runner()
    runner.run(EstimatorTask(logistic(), FIVE), cancer(100))
    more = runner.run(EstimatorTask(logistic(), FIVE), cancer(101))
    assert (more.receipt.called, more.receipt.reused) == (101, 0)


@pytest.mark.parametrize(
    "model", [RandomForestClassifier(5), make_pipeline(StandardScaler(), RandomForestClassifier(5))]
)
@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_also_for_what_draws_at_random(model: Any) -> None:
    split = Split(folds=4, stratified=True, repeats=2)
    runs = [
        Runner(policy=Policy(concurrency=n)).run(EstimatorTask(clone(model), split), cancer(80), seed=seed)
        for n, seed in ((1, 0), (2, 0), (16, 0), (2, 1))
    ]
    assert runs[0].digest == runs[1].digest == runs[2].digest
    assert runs[3].digest != runs[0].digest


def test_a_random_state_that_was_set_is_kept() -> None:
    data, split = cancer(80), Split(folds=2, stratified=True)
    run = Runner().run(EstimatorTask(RandomForestClassifier(5, random_state=7), split), data)
    train, test = split.assign(data).train(0, 1), split.assign(data).test(0, 1)
    model = RandomForestClassifier(5, random_state=7).fit(X[train], Y[train])
    assert [answers(run)[i]["prediction"] for i in test] == model.predict(X[test]).tolist()


def test_the_fitted_state_is_part_of_the_identity_where_it_is_used_as_it_is() -> None:
    one, other = (logistic().fit(X[:n], Y[:n]) for n in (50, 60))
    specs = [EstimatorTask(model).identify().spec for model in (one, other, clone(one).fit(X[:50], Y[:50]))]
    assert specs[0] == specs[2] != specs[1]
    fresh = [EstimatorTask(model, FIVE).identify().spec for model in (one, other, logistic())]
    assert fresh[0] == fresh[1] == fresh[2]


def make_tree() -> Any:
    return DecisionTreeClassifier(max_depth=DEPTH, random_state=0)


DEPTH = 2


def test_a_function_that_makes_an_estimator_is_known_by_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    task = EstimatorTask(make_tree, FIVE)
    assert task.name == "make_tree"
    before = task.identify()
    assert before.pinned
    runner = Runner()
    made = runner.run(task, cancer())
    by_hand = runner.run(EstimatorTask(make_tree(), FIVE), cancer())
    assert answers(made) == answers(by_hand)
    monkeypatch.setattr(sys.modules[__name__], "DEPTH", 3)
    assert EstimatorTask(make_tree, FIVE).identify().spec != before.spec


def test_the_model_and_the_split_count_beside_a_declared_version() -> None:
    spec = EstimatorTask(logistic(), FIVE, version="2").identify().spec
    assert spec == EstimatorTask(logistic(), FIVE, version="2").identify().spec
    assert spec != EstimatorTask(logistic(5.0), FIVE, version="2").identify().spec
    assert spec != EstimatorTask(logistic(), Split(folds=4), version="2").identify().spec


def test_a_class_derived_from_the_task_is_another() -> None:
    class Louder(EstimatorTask):
        def call(self, request: Any) -> Any:
            return {"loud": super().call(request)}

    louder = Louder(DummyRegressor(), Split(folds=2)).identify()
    assert louder.pinned
    assert louder.spec != EstimatorTask(DummyRegressor(), Split(folds=2)).identify().spec


# What cannot be


class NoClone:
    def fit(self, x: Any, y: Any) -> None: ...
    def predict(self, x: Any) -> Any: ...


def test_what_is_no_model_is_refused() -> None:
    for wrong in ("models.py:make", 3):
        with pytest.raises(SpecError, match="is not a model; pass an estimator with predict, or a function"):
            EstimatorTask(wrong)
    with pytest.raises(SpecError, match="NoClone cannot be copied unfitted; give a function that makes it"):
        Runner().run(EstimatorTask(NoClone(), FIVE), table())
    with pytest.raises(SpecError, match="StandardScaler is a StandardScaler, which lacks fit or predict"):
        Runner().run(EstimatorTask(StandardScaler, FIVE), table())
    with pytest.raises(SpecError, match=r"<lambda>\(\) cannot be made: ZeroDivisionError"):
        Runner().run(EstimatorTask(lambda: 1 / 0, FIVE), table())
    with pytest.raises(SpecError, match="LogisticRegression is not fitted; fit it first, or give a split"):
        Runner().run(EstimatorTask(LogisticRegression()), table())
    with pytest.raises(SpecError, match="without a split nothing is fitted"):
        EstimatorTask(LogisticRegression(), weighted=True)
    with pytest.raises(TaskError, match="cannot be asked for an input alone"):
        EstimatorTask(LogisticRegression()).do_run([1.0], Trace.start("t", None).root)


@pytest.mark.parametrize("model", [LogisticRegression, LogisticRegression(), make_pipeline(KNeighborsClassifier())])
def test_an_estimator_in_place_of_a_task_is_refused_with_the_call_to_make(model: Any) -> None:
    name = model.__name__ if isinstance(model, type) else type(model).__name__
    call = f"use EstimatorTask({name}(…), Split(folds=5)) to cross-validate it, or EstimatorTask(model) if"
    with pytest.raises(SpecError, match=re.escape(f"a {name} is an estimator: {call}")):
        Runner().run(model, table())


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(SpecError, match=r"needs scikit-learn: pip install 'evaluand\[sklearn\]'; or give a function"):
        Runner().run(EstimatorTask(NoClone(), FIVE), table())
    assert Runner().run(EstimatorTask(Recorder, Split(folds=2)), table()).counts == {"completed": 24}


@pytest.mark.parametrize(
    ("task", "data", "error", "message"),
    [
        (EstimatorTask(Recorder(), FIVE, weighted=True), table(), SpecError, "the dataset has no weight"),
        (
            EstimatorTask(KNeighborsClassifier(), FIVE, weighted=True),
            table(w=[1.0] * 24),
            SpecError,
            "fit of KNeighborsClassifier takes no sample_weight",
        ),
        (
            EstimatorTask(Recorder(), FIVE, positive="big"),
            table(),
            SpecError,
            "'big', which is not a class; .* 'less', 'mo",
        ),
        (EstimatorTask(Recorder(), Split(folds=99)), table(), SpecError, "24 examples are too few for 99 folds"),
        (
            EstimatorTask(Recorder(), Split(folds=2)),
            Dataset.from_rows([{"input": i, "expected": [None, 1][i]} for i in range(2)]),
            DataError,
            "'expected' of _index_ 0 is missing, and an estimator is to learn from it",
        ),
        (
            EstimatorTask(Recorder(), Split(folds=2)),
            Dataset.from_rows([{"input": i, "expected": ["a", 1][i]} for i in range(2)]),
            SpecError,
            "'expected' holds int, str; estimators learn numbers, text or booleans, of one type",
        ),
        (
            EstimatorTask(Recorder(), Split(folds=2)),
            Dataset.from_rows([{"input": x, "expected": 1} for x in ([1.0, 2.0], [1.0])]),
            SpecError,
            "'input' of _index_ 1 is not a list of 2 numbers, as the first",
        ),
        (
            EstimatorTask(Recorder(), Split(folds=2)),
            Dataset.from_rows([{"input": x, "expected": 1} for x in ({"k": 1}, {"k": 2})]),
            SpecError,
            "'input' of _index_ 0 is not a number, a list of numbers or text",
        ),
        (
            EstimatorTask(Recorder(), Split(folds=2)),
            Dataset.from_rows([{"x": i, "p": i, "q": "a"} for i in range(4)], input="x", expected=["p", "q"]),
            SpecError,
            "the targets p, q are of several types",
        ),
    ],
)
def test_what_does_not_fit_together_stops_before_any_fit(
    task: EstimatorTask, data: Dataset, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Runner().run(task, data)
    assert Recorder.fits == []


def test_a_split_may_be_reported_as_data_and_a_misspelt_part_is_refused() -> None:
    made = TypeAdapter(EstimatorTask).validate_python({"model": make_tree, "split": {"folds": 5, "stratified": True}})
    assert (made.split, made.name) == (Split(folds=5, stratified=True), "make_tree")
    with pytest.raises(ValidationError, match="repeat"):
        TypeAdapter(EstimatorTask).validate_python({"model": make_tree, "split": {"folds": 5, "repeat": 3}})


def test_replications_are_the_repeats_of_the_split() -> None:
    task = EstimatorTask(DummyClassifier(), Split(folds=2, repeats=3))
    assert sum(Runner().run(task, table()).counts.values()) == 72
    with pytest.raises(SpecError, match="set replications: 3, not 2"):
        Runner().run(task, table(), replications=2)


# Clusters


def patients(visits: int) -> Dataset:
    """24 rows: so many visits of each patient, and two of nobody known."""
    rows = [{"a": i % 5, "y": str(i % 2), "patient": None if i > 21 else f"p{i // visits}"} for i in range(24)]
    return Dataset.from_rows(rows, input=["a"], expected="y", cluster="patient")


@pytest.mark.parametrize("split", [Split(folds=6), Split(test=0.5)])
def test_a_split_that_parts_declared_clusters_is_reported(split: Split) -> None:
    task, data = EstimatorTask(DummyClassifier(), split), patients(2)
    parted = sum(len(set(pair)) == 2 for pair in split.assign(data).numbers[0, :22].reshape(11, 2).tolist())
    reported = (
        f"'patient' are in training and in test rows, for {parted} of 11: values are optimistic; say groups: true"
    )
    with pytest.warns(PartedClusters, match=reported):
        task.prepare(data)


def test_a_split_by_the_clusters_parts_none_and_tells_nothing() -> None:
    data = patients(2)
    for split in (Split(folds=6, groups=True), Split(test=0.5, groups="patient")):
        EstimatorTask(DummyClassifier(), split).prepare(data)
        assert (np.diff(split.assign(data).numbers[0, :22].reshape(11, 2)) == 0).all()


def test_nothing_is_reported_where_no_cluster_is_parted() -> None:
    EstimatorTask(DummyClassifier(), Split(folds=6, repeats=3)).prepare(patients(1))
    EstimatorTask(DummyClassifier().fit([[0], [1]], ["0", "1"])).prepare(patients(2))


@pytest.mark.parametrize("several", [False, True], ids=["one matrix", "a list of matrices"])
def test_sets_of_labels_are_learnt_as_indicators(several: bool) -> None:
    drawn = np.random.default_rng(1)
    features = drawn.normal(size=(40, 3))
    cells = (features + drawn.normal(scale=0.5, size=(40, 3)) > 0).astype(int)
    rows = [
        {"x": x.tolist(), "labels": [label for label, has in zip("cab", y, strict=True) if has]}
        for x, y in zip(features, cells, strict=True)
    ]
    data = Dataset.from_rows(rows, input="x", expected="labels")
    model = KNeighborsClassifier(3) if several else OneVsRestClassifier(LogisticRegression())
    split = Split(folds=2)
    run = Runner(MemoryStore()).run(EstimatorTask(model, split), data)
    folds = split.assign(data)
    assert folds is not None
    train, test = folds.train(0, 0), folds.test(0, 0)
    in_order = cells[:, [1, 2, 0]]  # a, b, c
    fitted = model.fit(features[train], in_order[train])
    chances = fitted.predict_proba(features[test])
    chances = np.column_stack([one[:, 1] for one in chances]) if several else chances
    answers = {response.index: response.responses[0] for response in run}
    for position, chance, cell in zip(test.tolist(), chances, fitted.predict(features[test]), strict=True):
        answer = answers[data.indices[position]]
        assert answer["prediction"] == [label for label, has in zip("abc", cell, strict=True) if has]
        assert [*answer["probabilities"].values()] == pytest.approx(chance.tolist())
