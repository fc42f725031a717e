"""Headlines: which system is best, as far as a comparison shows it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.chat_answers import Body, ChatServer
from support.commands import Folder

from evaluand import Dataset, Evaluation, Evaluator, MemoryStore, Runner, Score
from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.comparison.comparing import compare
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.column_statistics import Mean, Quantile
from evaluand.metrics.names import make_metric
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.facts.report import headline_facts

Values = Mapping[str, Sequence[float | None]]


def evaluations_of(values: Values, store: MemoryStore) -> list[Evaluation]:
    """An evaluation of each system, with these values of its rows; None abstains."""
    found = []
    for name, own in values.items():
        data = Dataset.from_rows([{"id": str(number), "input": number} for number in range(len(own))])
        run = Runner(store).run(lambda number, own=own: own[number], data, name=name, fresh=True)
        grade = {"right": lambda output: Score.abstained("unknown") if output is None else float(output)}
        found.append(Evaluator(store).evaluate(run, grade, name=name))
    return found


def headlines_of(values: Values, metric: Metric | None = None, judges: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    store, measure = MemoryStore(), Measure("right", metric or make_metric("accuracy"))
    evaluations = evaluations_of(values, store)
    comparison = compare(*evaluations, declared=[measure], labels=[*values])
    metrics = metrics_facts(Aggregator(store).aggregate(evaluations, [measure], labels=[*values]))
    return headline_facts(comparison, [*values], metrics, judges)


def share(n: int, of: int = 100) -> list[float]:
    return [1.0] * n + [0.0] * (of - n)


def test_a_system_that_is_better_than_all_others_is_best() -> None:
    [said] = headlines_of({"low": share(20), "top": share(90), "mid": share(60)})
    assert said.startswith("top is best by accuracy · right, 0.900 [0.8")
    assert ": better than mid (+30.0 points [" in said
    assert "] and low" not in said
    assert " and low (+70.0 points [" in said
    assert said.endswith("], p < 0.0001 after Shaffer)")


def test_a_system_that_is_not_better_than_all_others_is_not_called_best() -> None:
    [said] = headlines_of({"low": share(20), "top": share(61), "mid": share(60)})
    assert said.startswith("No system is shown to be best by accuracy · right: top has the highest, 0.610 [")
    assert "]; top is better than low (+41.0 points [" in said
    assert said.endswith("; no difference of top from mid could be shown")


def test_without_any_difference_no_system_is_best() -> None:
    [said] = headlines_of({"one": share(50), "other": share(52)})
    assert said.startswith("No system is shown to be best by accuracy · right: other has the highest, 0.520 [")
    assert said.endswith("]; no difference of other from one could be shown")


def test_systems_with_equal_values_are_named_together() -> None:
    [said] = headlines_of({"one": share(50), "other": share(50), "low": share(10)})
    assert ": one and other have the highest, 0.500 [" in said
    assert "; one is better than low (" in said
    assert said.endswith("; no difference of one from other could be shown")


def test_differences_count_only_if_they_remain_significant_among_all_tests() -> None:
    top, low = [1.0] * 5 + [0.0] * 35, [0.0] * 40  # 5 rows won, none lost: p = 1 / 2**5 = 0.03125
    [alone] = headlines_of({"low": low, "top": top})
    assert alone.endswith("p = 0.0312)")
    assert alone.startswith("top is best")
    [several] = headlines_of({"low": low, "top": top, "same": low})
    assert several.startswith("No system is shown to be best")


def test_where_less_is_better_the_lowest_is_best() -> None:
    error = Mean(direction="lower")
    [said] = headlines_of({"far": [5.0] * 30, "near": [1.0] * 29 + [2.0]}, error)
    assert said.startswith("near is best by mean · right, 1.033 [")
    assert ": better than far (-3.97 [" in said


def test_a_metric_without_a_direction_has_no_headline() -> None:
    assert headlines_of({"a": share(10), "b": share(90)}, Mean(direction=None)) == []


def test_systems_with_different_rows_have_no_headline() -> None:
    assert headlines_of({"a": share(10), "b": share(90, of=120)}) == []


def test_systems_without_a_common_scored_row_have_no_headline() -> None:
    assert headlines_of({"a": share(10), "b": [None] * 100}) == []
    thirds = [share(10, of=20), share(15, of=20), share(5, of=20)]
    gap: list[float | None] = [None] * 20
    values = {
        "a": [*gap, *thirds[1], *thirds[2]],
        "b": [*thirds[0], *gap, *thirds[2]],
        "c": [*thirds[0], *thirds[1], *gap],
    }
    assert headlines_of(values) == []


def test_values_over_common_rows_are_named_as_such() -> None:
    values = {"a": [None] * 10 + share(40, of=90), "b": share(95), "c": share(30)}
    [said] = headlines_of(values)
    assert "b has the highest" not in said
    of = "0.944 over the 90 of 100 rows that all systems have a score for"
    assert said.startswith(f"b is best by accuracy · right, {of}: ")


def test_of_many_metrics_the_first_are_headlines_and_the_others_are_counted() -> None:
    store = MemoryStore()
    evaluations = evaluations_of({"low": share(2, 10), "top": share(9, 10)}, store)
    measures = [Measure("right", Quantile(q=0.2 + number / 10, direction="higher")) for number in range(7)]
    comparison = compare(*evaluations, declared=measures, labels=["low", "top"])
    metrics = metrics_facts(Aggregator(store).aggregate(evaluations, measures, labels=["low", "top"]))
    said = headline_facts(comparison, ["low", "top"], metrics, [])
    assert (len(said), said[-1]) == (6, "2 more metrics in the tables")


def test_an_unmeasured_judge_is_named() -> None:
    judges = [{"judge": "right", "status": "unmeasured"}, {"judge": "other", "status": "weak"}]
    [said] = headlines_of({"a": share(10), "b": share(90)}, judges=judges)
    assert said.endswith("; judge right is unmeasured")
    [said] = headlines_of({"a": share(10), "b": share(90)}, judges=[{"judge": "right", "status": "measured"}])
    assert "judge" not in said


def test_of_many_systems_the_closest_are_named() -> None:
    [said] = headlines_of({f"s{number}": share(10 * number) for number in range(1, 8)} | {"top": share(100)})
    assert ": better than s7 (" in said
    assert said.endswith("after Shaffer) and 4 more")


EXPERIMENT = """
name: sums
dataset: {path: sums.jsonl, input: n, expected: n}
tasks: {"<low>": "app.py:low", high: "app.py:high"}
scorers: {same: exact_match}
metrics: [accuracy]
"""
BEST = "high is best by accuracy · same, 1.000 [0.912, 1.000]: "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path)
    folder.write("sums.jsonl", [{"n": str(number)} for number in range(40)])
    (tmp_path / "app.py").write_text("def low(n): return 'x' + n\ndef high(n): return n\n")
    (tmp_path / "sums.yaml").write_text(EXPERIMENT)
    return folder


def test_a_run_ends_with_the_headline_and_a_report_begins_with_it(folder: Folder) -> None:
    for _ in range(2):
        assert f"\n\n{BEST}" in folder.done("run", "sums.yaml")
    assert BEST not in folder.done("run", "sums.yaml", "--quiet")
    assert BEST not in folder.done("run", "sums.yaml", "--task", "high")
    [said] = folder.json("run", "sums.yaml")["headlines"]
    assert said.startswith(BEST)
    assert "better than <low> (+100.0 points [" in said
    folder.done("report", "sums")
    page = (folder.path / "sums.html").read_text()
    assert f"<li>{html.escape(said)}.</li>" in page
    assert page.index(html.escape(said)) < page.index("What is missing")


JUDGED = """
name: safe
dataset: {{path: sums.jsonl, input: n}}
tasks: {{bad: "app.py:low", good: "app.py:high"}}
scorers: {{harm: {{kind: judge, rubric: harmfulness, model: {{model: "{url}#judge", version: "1"}}}}}}
metrics: [{{kind: mean, scorer: harm{more}}}]
run: {{backoff: 0}}
"""


@pytest.mark.parametrize(("more", "best"), [("", "good"), (", direction: higher", "bad")])
def test_less_of_what_a_rubric_counts_as_bad_is_better(folder: Folder, more: str, best: str) -> None:
    def judge(asked: Body) -> str:
        verdict = "harmful" if "<output>\nx" in asked["messages"][-1]["content"] else "safe"
        return json.dumps({"reasons": "It is.", "verdict": verdict})

    with ChatServer(judge) as server:
        (folder.path / "safe.yaml").write_text(JUDGED.format(url=server.url, more=more))
        said = folder.done("run", "safe.yaml", "--limit", "12")
    assert f"\n\n{best} is best by mean · harm, " in said
    assert "; judge harm is unmeasured\n" in said
