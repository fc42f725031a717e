"""Trade-offs that an experiment file asks for: what is refused, and what report and `show` have of them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from evaluand.aggregation.aggregator import Aggregation, Aggregator
from evaluand.cli import main
from evaluand.core.errors import SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.experiment import Experiment
from evaluand.store.directory import DirectoryStore
from evaluand.tradeoff.trade import Trade, compute_results, stored_results

CODE = """
def tree(i):
    return {"prediction": "yes", "confidence": [0.1, 0.9, 0.6, 0.4, 0.2, 0.7, 0.3, 0.8][i % 8]}

def coin(i):
    return {"prediction": "yes", "confidence": 0.5}

def sure(output):
    return output["confidence"]
"""

FILE = """
name: yes-men
dataset: {{path: rows.jsonl, input: i, expected: truth, attributes: [site]}}
tasks:
  tree: {{function: "models.py:tree"}}
  coin: {{function: "models.py:coin"}}
scorers:
  right: {{kind: prediction}}
  sure: {{function: "models.py:sure"}}
metrics:
  - {{kind: accuracy, scorer: right}}
{0}"""

AT_THRESHOLDS = """tradeoffs:
  - name: right for all
    objectives: [accuracy, recall difference by site]
    thresholds: every
    label: "yes"
    scorer: right
"""


class Place:
    """A folder with an experiment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "models.py").write_text(CODE)
        rows = [{"i": i, "truth": ["no", "yes"][i % 2], "site": "ab"[i // 4]} for i in range(8)]
        (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write(self, tradeoffs: str) -> Path:
        (self.path / "experiment.yaml").write_text(FILE.format(tradeoffs))
        return self.path / "experiment.yaml"

    def call(self, *arguments: str) -> Result:
        return CliRunner(env={"COLUMNS": "160"}).invoke(main, [*arguments, "--store", str(self.path / "store")])

    def done(self, *arguments: str) -> str:
        result = self.call(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def shown(self) -> list[dict[str, Any]]:
        return json.loads(self.done("show", "yes-men", "--json"))["tradeoffs"]  # type: ignore[no-any-return]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)


def test_the_tasks_of_an_experiment_are_models_at_thresholds(place: Place) -> None:
    place.done("run", str(place.write(AT_THRESHOLDS)), "--report")
    [trade] = place.shown()
    assert (trade["name"], trade["reason"], trade["of"]) == ("right for all", None, 11)
    front = {(point["model"], point["threshold"]): point for point in trade["points"]}
    best = front["tree", 0.4]["values"]
    assert best["accuracy"]["value"] == 0.875
    assert best["recall difference by site"]["value"] == 0.0
    assert best["accuracy"]["low"] < 0.875 < best["accuracy"]["high"]
    page = (place.path / "yes-men.html").read_text()
    assert '<h2 id="tradeoffs-title">Trade-offs</h2>' in page
    assert "right for all" in page
    assert "trade-off: right for all" in place.done("show", "yes-men")


def test_points_that_look_dominated_have_intervals_too_so_that_the_area_is_that_of_all_points(place: Place) -> None:
    place.done("run", str(place.write(AT_THRESHOLDS)))
    store = DirectoryStore(place.path / "store")
    [id] = [ref.id for ref in store.refs() if ref.kind == "aggregations"]
    [result] = stored_results(Aggregation(store, id))
    points = result.points
    assert points is not None
    assert points.ends is not None
    assert not points.on_front.all()
    assert (points.ends.low < points.ends.high).all(axis=1).all()


def test_a_trade_off_is_stored_with_its_rates_so_that_reports_read_it(place: Place) -> None:
    file = place.write(AT_THRESHOLDS)
    place.done("run", str(file))
    store = DirectoryStore(place.path / "store")
    aggregation = Aggregation(store, next(ref.id for ref in store.refs() if ref.kind == "aggregations"))
    evaluations = [Evaluation(store, id) for id in aggregation.manifest["provenance"]["evaluations"]]
    trades = Experiment.from_file(file).tradeoffs
    [computed] = compute_results(trades, dict(zip(aggregation.labels, evaluations, strict=True)), aggregation.measures)
    shutil.rmtree(place.path / "store" / "evaluations")
    [read] = stored_results(aggregation)
    assert (read.name, read.objectives, read.indicators) == (computed.name, computed.objectives, computed.indicators)
    assert read.points is not None
    assert computed.points is not None
    assert read.points.ends is not None
    assert computed.points.ends is not None
    assert read.points.models == computed.points.models
    assert read.points.notes == computed.points.notes
    assert [one.text for one in read.points.objectives] == ["accuracy", "recall difference by site"]
    for name in ("model", "threshold", "value", "trivial", "on_front"):
        np.testing.assert_array_equal(getattr(read.points, name), getattr(computed.points, name))
    for one, other in zip(read.points.ends, computed.points.ends, strict=True):
        np.testing.assert_array_equal(one, other)
    assert read.rates is not None
    assert computed.rates is not None
    assert read.rates.keys == computed.rates.keys
    assert repr(read.rates.by_point) == repr(computed.rates.by_point)
    [group, other] = read.rates.by_point[0][0]
    assert (group.group, other.group, other.of) == ("a", "b", 2.0)


def test_trade_offs_beside_worst_groups_are_stored_intact(place: Place) -> None:
    path = place.write(AT_THRESHOLDS)
    search = "{kind: accuracy, scorer: right, worst_groups: {attributes: site, smallest: 2}}"
    path.write_text(path.read_text().replace("{kind: accuracy, scorer: right}", search))
    place.done("run", str(path))
    store = DirectoryStore(place.path / "store")
    [made] = (Aggregation(store, id) for id in store.ids("aggregations"))
    assert {"worst_groups", "tradeoff_points"} <= {*made.tables()}
    assert "0 with faults" in place.done("verify", made.id)


def test_trade_offs_of_an_aggregation_without_stored_ones_are_computed(place: Place) -> None:
    place.done("run", str(place.write("")))
    store = DirectoryStore(place.path / "store")
    plain = Aggregation(store, next(ref.id for ref in store.refs() if ref.kind == "aggregations"))
    trade = Trade(objectives=["accuracy", "recall difference by site"], thresholds="every", label="yes", scorer="right")
    earlier = Aggregator(store).aggregate(
        plain.evaluations, plain.measures, labels=plain.labels, tradeoffs=[trade.spec]
    )
    assert "tradeoffs" not in earlier.manifest["counts"]
    [result] = stored_results(earlier)
    assert result.points is not None
    assert len(result.points) == 11
    assert stored_results(plain) == []


def test_a_trade_off_that_is_asked_for_later_needs_no_further_calls(place: Place) -> None:
    place.done("run", str(place.write("")))
    assert place.shown() == []
    printed = json.loads(place.done("run", str(place.write(AT_THRESHOLDS)), "--json"))
    assert [task["run"]["receipt"]["called"] for task in printed["tasks"]] == [0, 0]
    assert [trade["name"] for trade in place.shown()] == ["right for all"]


def test_what_has_no_points_says_why_and_the_report_is_written(place: Place) -> None:
    """Where no row has a confidence, nothing can be decided at thresholds."""
    (place.path / "models.py").write_text(CODE.replace('"confidence": 0.5', '"confidence": None'))
    (place.path / "models.py").write_text((place.path / "models.py").read_text().replace('output["confidence"]', "1"))
    printed = place.call("run", str(place.write(AT_THRESHOLDS)), "--report").stderr
    assert "note: the trade-off 'right for all' has no points: no confidences are recorded of coin" in printed
    [trade] = place.shown()
    assert trade["reason"].startswith("no confidences are recorded of coin, and thresholds apply to confidences")
    assert "no confidences are recorded of coin" in (place.path / "yes-men.html").read_text()


def test_rows_that_are_left_out_are_reported_with_the_points(place: Place) -> None:
    some = CODE.replace('"confidence": 0.5', '"confidence": 0.5 if i else None').replace(
        'output["confidence"]', 'output["confidence"] or 0'
    )
    (place.path / "models.py").write_text(some)
    place.done("run", str(place.write(AT_THRESHOLDS)), "--report")
    [trade] = place.shown()
    printed = "1 row is left out, as not every model has a confidence for it"
    assert trade["notes"] == [printed]
    assert f'<p class="note">Note: {printed}</p>' in (place.path / "yes-men.html").read_text()
    assert f"note: {printed}" in place.done("show", "yes-men")


def test_each_of_several_trade_offs_of_a_report_has_ids_of_its_own(place: Place) -> None:
    two = AT_THRESHOLDS + "  - {objectives: [mean(sure), accuracy(right)]}\n"
    place.done("run", str(place.write(two)), "--report", "--quiet")
    ids = re.findall(r' id="([^"]*)"', (place.path / "yes-men.html").read_text())
    assert len(ids) == len(set(ids))
    assert [id for id in ids if id.startswith("data:tradeoffs/")] == ["data:tradeoffs/0", "data:tradeoffs/1"]


FAULTS: list[tuple[str, str]] = [
    ("objectives: [accuracy(right)]", "a trade-off needs two different objectives or more"),
    ("objectives: [accuracy(right), mean(sur)]", "no scorer is called 'sur' (did you mean 'sure'?)"),
    ("objectives: [mean, accuracy]", "'mean': name the scorer, as in 'mean(right)'; there are right, sure"),
    (
        "objectives: [mean(sure), mean(sure) ratio by sit]",
        "'sit' is not an attribute of the dataset (did you mean 'site'?)",
    ),
    ("objectives: [mean(sure), meen(sure)]", "no metric is called 'meen' (did you mean 'mean'?)"),
    ("objectives: [mean(sure), mean(sure) gap by site]", "no disparity is called 'gap'"),
    ("objectives: [mean(sure), recall(sure)]", "'recall(sure)': recall reads 'truth' and 'prediction'"),
    ("objectives: [mean(sure), mean of it]", "'mean of it' is not an objective"),
    ("objectives: [mean(sure), accuracy], tasks: [tre]", "no task is called 'tre' (did you mean 'tree'?)"),
    ("objectives: [accuracy, recall], thresholds: every", "which label is positive? The truth has 'no', 'yes'"),
    ("objectives: [accuracy, recall], thresholds: every, label: maybe", "no truth is 'maybe'; there are 'no', 'yes'"),
    ("objectives: [accuracy, recall], thresholds: every, scorer: sure", "name the scorer of the kind prediction"),
    ("objectives: [accuracy, recall(right)], thresholds: every", "name the scorer of all objectives under scorer"),
    ("objectives: [accuracy, recall], thresholds: 1", "thresholds=1 must be 2 or more"),
    ("objectives: [accuracy, recall], thresholds: some", "thresholds: is 'some'; give 'every' or 'roc'"),
    ("objective: [accuracy, recall]", "unknown key (did you mean 'objectives'?)"),
]


@pytest.mark.parametrize(("entry", "sentence"), FAULTS)
def test_what_of_a_trade_off_cannot_work_is_reported_with_its_line_before_anything_is_called(
    place: Place, entry: str, sentence: str
) -> None:
    result = place.call("validate", str(place.write(f"tradeoffs:\n  - {{{entry}}}\n")))
    assert result.exit_code == 1
    [line] = [line for line in result.output.splitlines() if sentence in line]
    assert "experiment.yaml:13: tradeoffs.0" in line


def test_a_trade_off_in_python_is_refused_as_in_a_file(place: Place) -> None:
    experiment = Experiment.from_file(place.write(AT_THRESHOLDS))
    made: Callable[..., Experiment] = lambda *trades: Experiment(  # noqa: E731
        "again", experiment.dataset, experiment.tasks, experiment.scorers, experiment.measures, tradeoffs=trades
    )
    assert made(*experiment.tradeoffs).tradeoffs[0].name == "right for all"
    with pytest.raises(SpecError, match="no task is called 'oak'; there are tree, coin"):
        made(Trade(objectives=["mean(sure)", "accuracy(right)"], tasks=["oak"]))


@pytest.mark.slow
def test_a_report_goes_under_the_name_of_its_experiment_and_replaces_no_other(place: Place) -> None:
    """Two experiments that differ in nothing but their name have one aggregation."""
    place.done("run", str(place.write(AT_THRESHOLDS)), "--report")
    mine = (place.path / "yes-men.html").read_bytes()
    other = place.path / "other.yaml"
    other.write_text((place.path / "experiment.yaml").read_text().replace("name: yes-men", "name: other name"))
    assert "written: other_name.html" in place.call("run", str(other), "--report").stderr
    assert (place.path / "yes-men.html").read_bytes() == mine
    assert "<title>other name" in (place.path / "other_name.html").read_text()
    place.done("run", str(other), "--report")  # its own is written anew
    other.write_text(other.read_text().replace("name: other name", "name: other_name"))
    refused = place.call("run", str(other), "--report")
    assert refused.exit_code == 1
    assert "other_name.html exists and is not a report of 'other_name'" in refused.output
    place.done("run", str(other), "--report", "--force")


def test_recorded_predictions_without_confidences_are_reported_before_anything_runs(place: Place) -> None:
    (place.path / "said.csv").write_text("said,sure\n" + "yes,0.7\n" * 8)
    text = place.write(AT_THRESHOLDS).read_text()
    for response, code in (("said", 1), ("{prediction: said, confidence: sure}", 0)):
        task = f"{{kind: recorded, path: said.csv, response: {response}}}"
        (place.path / "e.yaml").write_text(text.replace('{function: "models.py:coin"}', task))
        result = place.call("validate", str(place.path / "e.yaml"))
        assert result.exit_code == code, result.output
        assert ("no confidences are recorded of coin" in result.output) == bool(code)


def test_a_tradeoff_at_thresholds_has_the_numbers_of_the_metrics_as_declared(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    truth, score = rng.integers(0, 2, 90), rng.random(90).round(3)
    said = np.where(rng.random(90) < 0.75, truth, 1 - truth)
    sure = 0.51 + score * 0.48
    rows = [f"{i},{y},{p},{s}" for i, (y, p, s) in enumerate(zip(truth, said, sure, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(["id,y,p,s", *rows]))
    (tmp_path / "e.yaml").write_text(
        "name: e\ndataset: {path: t.csv, id: id, input: id, expected: y}\n"
        "tasks: {a: {kind: recorded, path: t.csv, by: id, key: id, response: {prediction: p, confidence: s}}}\n"
        "scorers: {p: {kind: prediction, type: integer}}\n"
        "metrics:\n  - {kind: f_beta, scorer: p, label: 1, beta: 2}\n"
        "  - {kind: recall, scorer: p, label: 1, interval: exact}\n"
        "tradeoffs: [{objectives: [f_beta, recall], thresholds: [0.5], label: 1}]\n"
    )
    results = Experiment.from_file(tmp_path / "e.yaml").run(DirectoryStore(tmp_path / "store"))
    assert results.aggregation is not None
    [found] = stored_results(results.aggregation)
    assert found.points is not None
    assert found.points.ends is not None
    [place] = np.flatnonzero(~found.points.trivial).tolist()
    for number, row in enumerate(results.aggregation.table().to_pylist()):
        ends = [float(end[place, number]) for end in found.points.ends]
        assert ends == pytest.approx([row["value"], row["low"], row["high"]], abs=1e-9)
