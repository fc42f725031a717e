"""What reports say, and that nothing they show can be mistaken or do harm."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st
from rich.console import Console, RenderableType

from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorer import Score
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.class_rates import FBeta
from evaluand.metrics.column_statistics import Count, Quantile
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.facts.base import Names
from evaluand.report.facts.evaluation import evaluation_facts
from evaluand.report.facts.report import report_facts, results_facts
from evaluand.report.facts.run import dataset_facts, run_facts
from evaluand.report.metric_labels import add_labels, metric_labels
from evaluand.report.terminal.artifact import artifact_table, spec_text
from evaluand.report.terminal.cells import name_values
from evaluand.report.terminal.listing import Listing
from evaluand.report.terminal.report import metrics_table, missing_table, results_table
from evaluand.report.text import format_creation, minute, number_format, numbers, safe, seconds
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Candidates, FunctionTask
from evaluand.store.store import Ref
from evaluand.trace import span

HOSTILE = "[red]x[/red]\x1b[2J\u202e"
HARMLESS = r"[red]x[/red]\x1b[2J\u202e"


def shown(renderable: RenderableType, width: int = 80) -> str:
    file = io.StringIO()
    Console(file=file, width=width, markup=False, highlight=False).print(renderable)
    return file.getvalue()


def answer(text: str) -> str:
    with span("look", kind="retriever"):
        pass
    if text == "3":
        raise ValueError(f"bad {text}")
    return text


def same(output: Any, expected: Any) -> Any:
    return Score.abstained("no number") if output in ("4", "5") else output == expected


@dataclass
class Made:
    """One task's results, as an experiment gives them."""

    task: str
    run: Run
    evaluation: Evaluation
    aggregation: Aggregation


@pytest.fixture
def made() -> Made:
    """Ten rows: row 3 fails, rows 4 and 5 are abstained from, rows 6 … 9 are wrong."""
    records = [{"input": str(i), "expected": str(i) if i < 6 else "x", "topic": HOSTILE} for i in range(10)]
    run = Runner().run(answer, Dataset.from_rows(records, attributes="topic"), name="exp/mine")
    evaluation = Evaluator().evaluate(run, {"same": same}, name="exp/mine")
    measures = [Measure("same", Accuracy(), (("topic",),)), Measure("same", Count())]
    return Made("mine", run, evaluation, Aggregator().aggregate([evaluation], measures, labels=["mine"], name="exp"))


def test_every_value_stands_with_its_counts_interval_and_bounds(made: Made) -> None:
    facts = results_facts([made], made.aggregation)
    overall = facts["metrics"][0]
    assert (overall["task"], overall["by"], overall["metric"]) == ("mine", {}, "accuracy")
    assert [overall[name] for name in ("n", "n_scored", "n_failed", "n_abstained")] == [10, 7, 1, 2]
    assert overall["value"] == pytest.approx(3 / 7)
    line = next(x for x in shown(results_table(facts), 120).splitlines() if x.startswith("  accuracy"))
    assert line.split()[3:] == ["0.429", "[0.158", "–", "0.750]", "0.300", "…", "0.600", "10", "7", "1", "2"]


def test_bounds_take_a_line_own_where_there_is_no_room_beside(made: Made) -> None:
    lines = shown(results_table(results_facts([made], made.aggregation)), 80).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  accuracy"))
    assert lines[at].split()[3:] == ["0.429", "[0.158", "–", "0.750]", "10", "7", "1", "2"]
    assert lines[at + 1].split() == ["worst", "…", "best", "0.300", "…", "0.600"]


def test_each_metric_is_explained_by_its_signature(made: Made) -> None:
    text = " ".join(shown(metrics_table(metrics_facts(made.aggregation)), 120).split())
    assert "accuracy · same accuracy v1 missing=leave_out" in text
    assert "count · same count v1 missing=leave_out" in text


def test_two_metrics_of_one_kind_are_reported_apart(made: Made) -> None:
    measures = [Measure("same", Accuracy()), Measure("same", Accuracy(missing="wrong"))]
    aggregation = Aggregator().aggregate([made.evaluation], measures)
    text = shown(metrics_table(metrics_facts(aggregation)), 140)
    lines = [line.split() for line in text.splitlines()]
    assert ["accuracy(missing=leave_out)", "·", "same", "0.429"] in [line[:4] for line in lines]
    assert ["accuracy(missing=wrong)", "·", "same", "0.300"] in [line[:4] for line in lines]
    assert any(line[:4] == ["accuracy(missing=wrong)", "·", "same", "accuracy"] for line in lines)


def test_a_metric_is_called_by_what_says_it_from_others_of_its_kind(made: Made) -> None:
    metrics = [FBeta(), FBeta(average="macro"), FBeta(label="PLACE a=b"), FBeta(missing="wrong"), FBeta(confidence=0.9)]
    rows = [{"scorer": s, "metric": "f_beta", "signature": m.signature} for s in ("strict", "x") for m in metrics]
    reported = ["", "_macro", '(label="PLACE a=b")', "(missing=wrong)", "(interval=jackknife 90%)"]
    assert [row["label"] for row in add_labels(rows)] == [f"f1{t} · {s}" for s in ("strict", "x") for t in reported]
    assert [row["label"] for row in add_labels(rows[1:2])] == ["f1_macro · strict"]
    assert list(metric_labels(rows).values()) == [row["label"] for row in add_labels(rows)]


def test_a_metric_of_the_first_k_always_says_k() -> None:
    [label] = metric_labels([{"scorer": "s", "signature": "top_k v1 reduce=any k=3"}]).values()
    assert label == "top_k(k=3) · s"


@given(st.lists(st.lists(st.none() | st.sampled_from("ab"), min_size=3, max_size=3), min_size=1, unique_by=tuple))
def test_no_two_metrics_are_called_alike(parameters: list[list[str | None]]) -> None:
    signatures = [" ".join(["m v1", *(f"p{i}={p}" for i, p in enumerate(each) if p)]) for each in parameters]
    labels = metric_labels([{"scorer": "s", "metric": "m", "signature": signature} for signature in signatures])
    assert len(set(labels.values())) == len(signatures)


def test_values_are_called_alike_in_tables_and_as_data(made: Made) -> None:
    measures = [Measure("same", Accuracy()), Measure("same", Accuracy(missing="wrong"))]
    rows = metrics_facts(Aggregator().aggregate([made.evaluation], measures))
    assert [row["label"] for row in rows] == ["accuracy(missing=leave_out) · same", "accuracy(missing=wrong) · same"]
    assert all(row["label"] in shown(metrics_table(rows), 140) for row in rows)
    assert report_facts("t", [], rows)["metrics"] == rows


def test_what_failed_is_reported_by_reason_with_its_number_and_first_row(made: Made) -> None:
    facts = results_facts([made], made.aggregation)
    assert facts["tasks"][0]["missing"] == [
        {"scorer": None, "status": "failed", "count": 1, "reason": "ValueError: bad 3", "first": 3},
        {"scorer": "same", "status": "abstained", "count": 2, "reason": "no number", "first": 4},
    ]
    text = " ".join(shown(results_table(facts)).split())
    assert "mine 1 failed ValueError: bad 3 (first: _index_ 3)" in text
    assert "mine · same 2 abstained no number (first: _index_ 4)" in text


def test_reasons_that_differ_only_in_figures_are_one() -> None:
    def broken(text: str) -> str:
        raise KeyError(f"no row for id {text}")

    run = Runner().run(broken, Dataset.from_rows([{"input": str(i)} for i in range(50)]))
    (reason,) = run_facts(run)["missing"]
    assert (reason["count"], reason["first"]) == (50, 0)


def test_many_reasons_are_cut_to_the_most_frequent_and_the_rest_is_counted() -> None:
    missing = [
        {"scorer": "s", "status": "failed", "count": 9 - i, "reason": f"reason {'abcdef'[i]}", "first": i}
        for i in range(6)
    ]
    text = " ".join(shown(missing_table([("t", reason) for reason in missing])).split())
    assert "reason c" in text
    assert "reason d" not in text
    assert "15 more for 3 other reasons" in text


def test_a_failed_call_is_reported_once_and_not_again_for_each_scorer(made: Made) -> None:
    evaluation = Evaluator().evaluate(made.run, {"a": same, "b": same})
    reasons = evaluation_facts(evaluation, made.run)["missing"]
    assert [(r["scorer"], r["status"], r["count"]) for r in reasons if r["status"] == "failed"] == [
        ("a", "failed", 1),
        ("b", "failed", 1),
    ]
    both = Made("t", made.run, evaluation, made.aggregation)
    reported = results_facts([both], made.aggregation)["tasks"][0]["missing"]
    assert [r["scorer"] for r in reported if r["status"] == "failed"] == [None]


def test_the_rows_of_a_run_begin_with_those_that_failed(made: Made) -> None:
    rows = run_facts(made.run, 3)["rows"]
    assert [(row["_index_"], row["status"]) for row in rows] == [(3, "failed"), (0, "completed"), (1, "completed")]
    assert rows[0]["error"]["message"] == "bad 3"
    assert rows[1]["input"] == "0"
    assert rows[1]["responses"] == ["0"]
    assert [s["name"] for s in rows[1]["spans"]] == ["look"]


def test_each_row_stands_with_its_own_example_whatever_the_indices() -> None:
    def odd(text: str) -> str:
        if int(text) % 3 == 1:
            raise ValueError("odd")
        return text

    data = Dataset.from_rows([{"_index_": 7 * i + 2, "input": str(i)} for i in range(12)])
    rows = run_facts(Runner().run(odd, data, replications=2), 12)["rows"]
    assert [row["_index_"] for row in rows] == [7 * i + 2 for i in (1, 1, 4, 4, 7, 7, 10, 10, 0, 0, 2, 2)]
    assert all(int(row["input"]) * 7 + 2 == row["_index_"] for row in rows)


def test_only_failed_rows_are_given_on_demand(made: Made) -> None:
    assert [row["_index_"] for row in run_facts(made.run, 5, failed=True)["rows"]] == [3]
    scores = evaluation_facts(made.evaluation, made.run, 9, failed=True)["rows"]["same"]
    assert [(row["_index_"], row["status"]) for row in scores] == [(3, "failed"), (4, "abstained"), (5, "abstained")]


def test_a_row_shows_its_input_its_answer_and_its_trace(made: Made) -> None:
    text = shown(artifact_table(described("runs", made.run, run_facts(made.run, 2))))
    assert "_index_ 3: failed" in text
    assert "ValueError: bad 3" in text
    assert "└─ look (retriever)" in text
    assert "response  0" in text


def test_items_of_one_response_stay_together() -> None:
    task = FunctionTask(lambda text: Candidates([["a", "b"], [text]]), items=True, version="1")
    (row,) = run_facts(Runner().run(task, Dataset.from_rows([{"input": "x"}])), 1)["rows"]
    assert row["responses"] == [["a", "b"], ["x"]]


def test_what_a_task_is_breaks_and_is_cut_at_blanks() -> None:
    spec = {"words": [f"word{i}" for i in range(99)]}
    reported = shown(name_values([("task", spec_text(spec))]))
    assert set(re.findall(r"[a-z]+\d*", reported)) <= {"task", "words", *spec["words"]}
    assert reported.rstrip().endswith(", …")


def test_an_answer_without_items_is_shown_as_one() -> None:
    task = FunctionTask(list, items=True, version="1")
    run = Runner().run(task, Dataset.from_rows([{"input": "", "expected": ["a"]}]))
    assert run_facts(run, 1)["rows"][0]["responses"] == [[]]
    evaluation = Evaluator().evaluate(run, {"same": same})
    assert evaluation_facts(evaluation, run, 1)["rows"]["same"][0]["responses"] == [[]]


def test_no_answer_and_an_empty_answer_look_different() -> None:
    data = Dataset.from_rows([{"input": "none"}, {"input": ""}])
    run = Runner().run(lambda text: None if text == "none" else text, data)
    text = shown(artifact_table(described("runs", run, run_facts(run, 2))))
    assert text.count("no answer") == 1
    assert [row["responses"] for row in run_facts(run, 2)["rows"]] == [None, [""]]


def test_an_evaluation_counts_rows_by_status_for_each_scorer(made: Made) -> None:
    facts = evaluation_facts(made.evaluation, made.run, 2)
    text = shown(artifact_table(described("evaluations", made.evaluation, facts)), 120)
    assert "same      10       7       1          2        0" in text
    assert "2  abstained  no number" in text


def test_a_grade_stands_with_what_was_asked_and_answered(made: Made) -> None:
    wrong = evaluation_facts(made.evaluation, made.run, 2, below=1)
    assert [(row["_index_"], row["value"], row["input"], row["expected"]) for row in wrong["rows"]["same"]] == [
        (6, 0.0, "6", "x"),
        (7, 0.0, "7", "x"),
    ]
    text = shown(artifact_table(described("evaluations", made.evaluation, wrong)))
    assert "_index_ 6: scored 0\n  input     6\n  expected  x\n  response  6\n" in text


def test_rows_below_a_value_are_reported_by_their_grade_alone(made: Made) -> None:
    def below(value: float) -> list[int]:
        rows = evaluation_facts(made.evaluation, made.run, 99, below=value)["rows"]["same"]
        return [row["_index_"] for row in rows]

    assert below(0) == []
    assert below(0.5) == [6, 7, 8, 9]
    assert below(1.1) == [0, 1, 2, 6, 7, 8, 9]


def test_a_grade_is_shown_also_where_its_run_is_gone(made: Made) -> None:
    (row,) = evaluation_facts(made.evaluation, None, 1)["rows"]["same"]
    assert (row["_index_"], row["status"]) == (3, "failed")
    assert "input" not in row


def test_columns_of_a_scorer_s_own_are_shown() -> None:
    from evaluand.evaluation.scorers.prediction import Prediction

    data = Dataset.from_rows([{"input": "a", "expected": "b"}])
    evaluation = Evaluator().evaluate(Runner().run(str, data), {"p": Prediction()})
    text = shown(artifact_table(described("evaluations", evaluation, evaluation_facts(evaluation, None, 1))), 120)
    assert "truth" in text
    assert "prediction" in text


def test_a_dataset_shows_its_roles_columns_and_first_rows(made: Made) -> None:
    dataset = made.run.dataset
    facts = dataset_facts(dataset, 2)
    assert facts["roles"]["attributes"] == ["topic"]
    assert list(facts["columns"]) == ["input", "expected", "topic"]
    assert [row["input"] for row in facts["rows"]] == ["0", "1"]
    described_ = {"kind": "datasets", "id": dataset.id, "names": [], "status": "sealed"}
    manifest = made.run.store.manifest("datasets", dataset.id)
    text = shown(artifact_table(described_ | {"manifest": manifest} | facts))
    assert "10 examples" in text
    assert "[red]x[/red]" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_text_from_data_is_shown_harmlessly_everywhere(made: Made) -> None:
    facts = results_facts([made], made.aggregation)
    facts["tasks"][0]["task"] = facts["metrics"][0]["task"] = HOSTILE
    facts["tasks"][0]["missing"][0]["reason"] = HOSTILE
    entry: dict[str, Any] = {"kind": "runs", "id": "0" * 32, "names": [HOSTILE], "name": HOSTILE, "status": "sealed"}
    entry |= {"created": "2026-01-01T00:00:00", "counts": {HOSTILE: {"scored": 1}}}
    for text in (shown(results_table(facts), 200), shown(Listing([entry]), 300)):
        assert HARMLESS in text
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_facts_can_be_printed_as_json(made: Made) -> None:
    for facts in (
        results_facts([made], made.aggregation),
        run_facts(made.run, 3),
        evaluation_facts(made.evaluation, made.run, 3),
        dataset_facts(made.run.dataset, 3),
    ):
        assert orjson.loads(orjson.dumps(facts)) == facts


def test_numbers_are_never_cut_in_eighty_columns() -> None:
    row: dict[str, Any] = {
        "task": "a task with a rather long name",
        "scorer": "some scorer",
        "metric": "accuracy",
        "signature": "s",
        "target": None,
        "by": {"attribute": "a value with many words in it"},
        "reason": None,
        "data": None,
        "value": 0.123456,
        "low": 0.1,
        "high": 0.2,
        "worst": 0.01,
        "best": 0.99,
        "n": 12345678,
        "n_scored": 11111111,
        "n_failed": 1222222,
        "n_abstained": 12345,
        "n_skipped": 0,
    }
    text = shown(metrics_table([row]), 80)
    for number in ("0.123", "[0.100 – 0.200]", "0.010 … 0.990", "12,345,678", "11,111,111", "1,222,222", "12,345"):
        assert number in text
    assert max(map(len, text.splitlines())) <= 80


def test_an_undefined_value_says_why_and_is_no_zero() -> None:
    evaluation = Evaluator().evaluate(
        Runner().run(str, Dataset.from_rows([{"input": "a"}])), {"s": lambda output: Score.abstained("unclear")}
    )
    rows = metrics_facts(Aggregator().aggregate([evaluation], [Measure("s", Accuracy())], labels=["t"]))
    text = shown(metrics_table(rows))
    assert rows[0]["value"] is None
    assert "  –  " in text
    assert "no scored rows" in text


def test_skipped_rows_get_a_column_only_where_there_are_some(made: Made) -> None:
    rows = metrics_facts(made.aggregation)
    assert "skipped" not in shown(metrics_table(rows))
    rows[0]["n_skipped"] = 77
    assert "skipped" in shown(metrics_table(rows))
    assert "77" in shown(metrics_table(rows))


def test_what_intervals_go_by_stands_with_the_signature() -> None:
    def reported(replications: int, weighted: bool = False, **roles: Any) -> tuple[Any, Any, str]:
        records = [{"input": str(i), "page": i // 2, "w": 1.0 + i} for i in range(6)]
        run = Runner().run(str.upper, Dataset.from_rows(records, input="input", **roles), replications=replications)
        evaluation = Evaluator().evaluate(run, {"low": lambda output: int(output) < 3})
        measures = [Measure("low", Accuracy(weighted=weighted)), Measure("low", Quantile(q=0.5))]
        rows = metrics_facts(Aggregator().aggregate([evaluation], measures))
        lines = [line for line in shown(metrics_table(rows), 200).splitlines() if "interval=" in line]
        ends = {line.partition("95%")[2].rstrip() for line in lines}
        assert len(lines) == 2
        assert len({(row["clusters"], row["clustered_by"]) for row in rows}) == len(ends) == 1
        return rows[0]["clusters"], rows[0]["clustered_by"], ends.pop()

    assert reported(1) == (None, None, "")
    assert reported(1, weighted=True, weight="w") == (None, None, "")
    assert reported(2) == (6, None, ", by 6 examples")
    assert reported(2, cluster="page") == (3, "page", ", by 3 clusters (page)")


def test_the_list_keeps_ids_and_times_whole_however_long_the_names() -> None:
    entry: dict[str, Any] = {"kind": "aggregations", "id": "0123456789abcdef" * 2, "status": "sealed", "name": None}
    entry |= {"created": "2026-01-02T03:04:05", "counts": {"a scorer": {"scored": 1000000, "failed": 2}}}
    text = shown(Listing([entry | {"names": ["a-name-" * 9]}]), 80)
    assert "aggregations  0123456789ab  2026-01-02 03:04  a-name-" in text
    assert "1,000,000" in text
    assert max(map(len, text.splitlines())) <= 80


def test_open_artifacts_and_lost_names_are_marked_in_the_list() -> None:
    entry: dict[str, Any] = {
        "kind": "runs",
        "id": "0" * 32,
        "created": "2026-01-02T03:04:05",
        "counts": {},
        "name": "exp/mine",
    }
    lines = shown(Listing([entry | {"names": [], "status": "open"}])).splitlines()
    assert lines[1].split()[-2:] == ["(exp/mine)", "open"]


def test_a_name_belongs_to_the_artifact_it_stands_for_now() -> None:
    names = Names([Ref("exp/mine", "runs", "b"), Ref("best", "runs", "b")])
    assert names.find("runs", "b", "exp/mine") == ["best", "exp/mine"]
    assert names.find("runs", "a", "exp/mine") == []
    assert names.find("datasets", "d", "exp/mine") == ["exp/mine"]
    assert names.find("runs", "c", None) == []


@given(st.text(), st.integers(0, 50))
def test_safe_text_holds_nothing_invisible(text: str, limit: int) -> None:
    assert all(c.isprintable() or c in "\u200c\u200d" for c in safe(text, limit))


def test_harmless_text_is_left_as_it_is() -> None:
    assert safe("Größe [bold] 日本語 ✓") == "Größe [bold] 日本語 ✓"
    assert safe("abcdef", limit=4) == "abc…"


@given(st.lists(st.floats(-1e300, 1e300) | st.none()))
def test_shown_numbers_are_near_what_they_stand_for(values: list[float | None]) -> None:
    for value, text in zip(values, numbers(*values), strict=True):
        if value is None:
            assert text == "–"
        else:
            largest = max(abs(v) for v in values if v is not None)
            assert abs(float(text.replace(",", "")) - value) <= largest / 100


def test_numbers_have_the_decimals_that_matter() -> None:
    assert numbers(0.8125, 1.0, 0.0) == ["0.812", "1.000", "0.000"]
    assert numbers(0.0012) == ["0.00120"]
    assert numbers(12.345, 5.0) == ["12.35", "5.00"]
    assert numbers(123456.0) == ["123,456"]
    assert numbers(1e-9) == ["1.000e-09"]
    assert number_format([]) == ",.0f"


def test_times_are_reported_in_the_unit_that_suits() -> None:
    assert [seconds(t) for t in (0.00012, 0.5, 59.9, 60, 3599.6)] == [
        "0.12 ms",
        "500 ms",
        "59.9 s",
        "1 min 00 s",
        "1 h 00 min",
    ]
    assert minute("2026-11-21T02:10:03+00:00") == "2026-11-21 02:10"


def test_what_is_not_sealed_has_no_duration() -> None:
    manifest = {"created": "2026-01-01T00:00:00+00:00", "sealed": "2026-01-01T00:01:05+00:00"}
    assert format_creation(manifest) == "2026-01-01 00:00 UTC, complete after 1 min 05 s"
    assert format_creation({"created": manifest["created"]}) == "2026-01-01 00:00 UTC"


def described(kind: str, made: Any, facts: dict[str, Any]) -> dict[str, Any]:
    head = {"kind": kind, "id": made.id, "names": [], "status": "sealed", "manifest": made.manifest}
    return head | facts


@pytest.mark.parametrize(
    ("counts", "reported"),
    [
        ({"examples": 1}, "1 example"),
        ({"examples": 0}, "0 examples"),
        ({"metrics": 1}, "1 value"),
        ({"metrics": 1200}, "1,200 values"),
        ({"flips": 0, "pairs": 1, "ranking": 0}, "1 pair compared"),
        ({"flips": 1, "pairs": 3, "ranking": 3}, "3 pairs compared, 3 places ranked, 1 example listed"),
        ({"failed": 1, "completed": 2}, "2 completed, 1 failed"),
        ({"pairs": {"scored": 1}}, "pairs: 1 scored"),
    ],
)
def test_the_list_counts_in_words(counts: Any, reported: str) -> None:
    entry = {"kind": "comparisons", "id": "f" * 32, "name": "x", "names": ["x"], "created": "", "status": "sealed"}
    assert shown(Listing([entry | {"counts": counts}]), 120).splitlines()[1].endswith(f"  x     {reported}")
