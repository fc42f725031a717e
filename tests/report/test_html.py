"""The HTML report: that it says what the facts say, that it is complete in itself, and that data cannot harm it."""

from __future__ import annotations

import io
import os
import re
from html import unescape
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from support.html_page import Page, rows_of

from evaluand import Experiment
from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.cli import main
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import Score
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.metrics.accuracy import Accuracy, TopK
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.column_statistics import Mean
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.evaluation import evaluation_facts
from evaluand.report.facts.report import Part, report_facts, scores_facts
from evaluand.report.html.cells import cell
from evaluand.report.html.charts import Axis, Dot, histogram, strip
from evaluand.report.html.examples import Examples, examples_of
from evaluand.report.html.page import asset
from evaluand.report.html.report import write_report
from evaluand.report.row_columns import OUTCOMES
from evaluand.run.runner import Runner
from evaluand.run.task import Candidates, task
from evaluand.store.directory import DirectoryStore
from evaluand.trace import span

HOSTILE = "</script><script>alert(1)</script><!--\u202e\x1b[2J"


def answer(text: str) -> str:
    with span("look", kind="retriever", query=text):
        pass
    if text == "3":
        raise ValueError(f"bad {text}")
    return text


def same(output: Any, expected: Any) -> Any:
    return Score.abstained("no number") if output in ("4", "5") else output == expected


def close(output: Any) -> Score:
    return Score(int(output) / 10, label="even" if int(output) % 2 == 0 else "odd", explanation=f"is {output}")


def made(name: str = "mine", topic: str = "sums", function: Any = answer) -> tuple[list[Part], list[Facts]]:
    """Ten rows: row 3 fails, `same` abstains from rows 4 and 5, rows 6 … 9 are wrong."""
    records = [{"input": str(i), "expected": str(i) if i < 6 else "x", topic: f"{topic} {i % 2}"} for i in range(10)]
    run = Runner().run(function, Dataset.from_rows(records, attributes=topic, input="input"))
    evaluation = Evaluator().evaluate(run, {"same": same, "close": close})
    measures = [Measure("same", Accuracy(), ((topic,),)), Measure("close", Mean(range=(0, 1)))]
    aggregation = Aggregator().aggregate([evaluation], measures, labels=[name])
    return [Part(name, run, evaluation)], metrics_facts(aggregation)


def written(facts: Facts, examples: list[Examples]) -> str:
    file = io.BytesIO()
    write_report(facts, examples, file)
    return file.getvalue().decode()


def page(parts: list[Part], metrics: list[Facts], title: str = "exp", **more: Any) -> str:
    facts = report_facts(title, parts, metrics) | more
    return written(facts, examples_of(parts, facts["scores"]))


def test_the_page_is_complete_in_itself_and_allows_no_connection() -> None:
    text = page(*made())
    seen = Page(text)
    links = [value for _, attributes in seen.elements for n, value in attributes.items() if n in ("src", "href")]
    assert all(link and link.startswith("#") for link in links)
    assert not {"link", "img", "iframe", "object", "base"} & {tag for tag, _ in seen.elements}
    assert not re.search(r"url\(|@import", text)
    [policy] = [a["content"] or "" for a in seen.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert not re.search("unsafe|http|data:", policy)


def test_the_page_has_one_title_landmarks_and_tables_that_say_what_they_are() -> None:
    text = page(*made())
    seen = Page(text)
    assert [len(seen.all(tag)) for tag in ("h1", "main", "header", "footer")] == [1, 1, 1, 1]
    assert len(seen.all("table")) == len(seen.all("caption"))
    assert all("scope" in th for th in seen.all("th"))
    sections = [section["aria-labelledby"] for section in seen.all("section")]
    assert set(sections) <= {h2.get("id") for h2 in seen.all("h2")}
    ids = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    add_labels = {label.get("for") for label in seen.all("label")}
    assert all(i.get("id") in add_labels for i in (*seen.all("input"), *seen.all("select")))


def test_values_stand_with_intervals_bounds_and_counts() -> None:
    parts, metrics = made()
    lines = Page(page(parts, metrics)).lines
    overall = next(m for m in metrics if m["scorer"] == "same" and not m["by"])
    assert overall["value"] == pytest.approx(3 / 7)
    assert ["mine", "0.429", "0.158 to 0.750", "0.300 … 0.600", "10", "7", "1", "2"] in lines
    group = next(m for m in metrics if m["by"] == {"sums": "sums 0"})
    counts = [str(group[n]) for n in ("n", "n_scored", "n_failed", "n_abstained")]
    [line] = [line for line in lines if line[:2] == ["sums 0", "mine"]]
    assert line[2] == f"{group['value']:.3f}"
    assert line[-4:] == counts


def test_missing_rows_are_said_not_to_count_as_zero_only_where_they_do_not() -> None:
    parts, metrics = made()
    note = "such rows are not counted as 0"
    assert note in page(parts, metrics)
    measures = [Measure("same", Accuracy(missing="wrong")), Measure("same", Accuracy())]
    assert parts[0].evaluation is not None
    both = metrics_facts(Aggregator().aggregate([parts[0].evaluation], measures, labels=["mine"]))
    mixed = page(parts, both)
    assert note not in mixed
    assert "such rows are wrong in values with missing=wrong, and left out of the others" in mixed
    assert "such rows" not in page(parts, [row for row in both if "missing=wrong" in row["signature"]])


def test_reasons_of_all_tasks_are_listed_by_how_often_they_occur() -> None:
    parts = [made(name)[0][0] for name in ("mine", "theirs")]
    found = [
        int(line[3]) for line in Page(page(parts, [])).lines if line[:1] in (["mine"], ["theirs"]) and len(line) == 6
    ]
    assert found == [2, 2, 1, 1]


def test_what_is_missing_is_reported_in_words_and_by_reason() -> None:
    text = page(*made())
    reported = "".join(Page(text).texts)
    assert "mine: 1 of 10 calls failed; the scorer same abstained in 2 of the other 9." in reported
    lines = Page(text).lines
    assert ["mine", "the task", "failed", "1", "ValueError: bad 3", "3"] in lines
    assert ["mine", "same", "abstained", "2", "no number", "4"] in lines
    assert 'href="#example=mine/3"' in text


def test_where_the_numbers_come_from_is_reported() -> None:
    parts, metrics = made()
    reported = "".join(Page(page(parts, metrics, commands={"Reproduce": "evaluand run 'a b.yaml'"})).texts)
    assert parts[0].evaluation is not None
    for fact in (parts[0].run.id, parts[0].run.digest, parts[0].evaluation.digest, "evaluand run 'a b.yaml'"):
        assert fact in reported
    assert metrics[0]["signature"] in reported


def test_commands_are_reported_with_the_folder_they_are_to_be_run_in() -> None:
    parts, metrics = made()
    facts = report_facts("exp", parts, metrics, {"Reproduce": "evaluand run e.yaml"}, "/home/<me>")
    reported = "".join(Page(written(facts, examples_of(parts, facts["scores"]))).texts)
    assert "Run in /home/<me>" in reported


def test_what_was_predicted_stands_before_how_sure_that_is() -> None:
    data = Dataset.from_rows([{"input": "a"}, {"input": "b"}])
    run = Runner().run(lambda text: {"confidence": 0.25, "prediction": text, "about": {"prediction": 1}}, data)
    [first, _] = rows_of(page([Part("t", run, None)], []))
    assert first["responses"] == [{"j": '{"prediction":"a","about":{"prediction":1},"confidence":0.25}'}]
    listed = task(items=True)(lambda text: [{"confidence": 0.5, "prediction": text}, "x"])
    run = Runner().run(listed, data)
    [first, _] = rows_of(page([Part("t", run, None)], []))
    assert first["responses"] == [{"j": '[{"prediction":"a","confidence":0.5},"x"]'}]


def test_each_row_holds_what_was_asked_answered_scored_and_traced() -> None:
    parts, metrics = made()
    rows = rows_of(page(parts, metrics))
    assert [row["index"] for row in rows] == [str(i) for i in range(10)]
    assert [row["outcome"] for row in rows] == [3, 3, 3, 0, 1, 1, 2, 2, 2, 2]
    failed, wrong = rows[3], rows[6]
    assert failed["error"]["message"] == "bad 3"
    assert failed["error"]["place"].startswith("test_html.py:")
    assert (wrong["input"], wrong["expected"], wrong["responses"]) == ("6", "x", ["6"])
    assert wrong["attributes"] == {"sums": "sums 0"}
    assert [s["value"] for s in wrong["scores"]] == [0.6, 0.0]
    assert (wrong["scores"][0]["label"], wrong["scores"][0]["explanation"]) == ("even", "is 6")
    assert [(s[2], s[3]) for s in wrong["spans"]] == [("look", "retriever")]


def test_of_too_many_rows_the_worst_are_shown() -> None:
    parts, _ = made()
    [part] = parts
    examples = Examples(part, scores_facts(parts), limit=5)
    reported = [OUTCOMES[row["outcome"]] for row in Examples(part, scores_facts(parts))]
    assert reported == ["right"] * 3 + ["failed"] + ["not scored"] * 2 + ["wrong"] * 4
    assert [row["index"] for row in examples] == [3, 4, 5, 6, 7]
    assert examples.total == 10


def test_repeats_and_several_answers_keep_their_places() -> None:
    def twice(text: str) -> Candidates:
        return Candidates([text, text * 2])

    data = Dataset.from_rows([{"_index_": 5, "input": "a", "expected": "aa"}, {"_index_": 2, "input": "b"}])
    run = Runner().run(twice, data, replications=2)
    evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})
    rows = list(Examples(Part("t", run, evaluation), []))
    assert {OUTCOMES[row["outcome"]] for row in rows} == {"scored"}
    assert {OUTCOMES[row["outcome"]] for row in Examples(Part("t", run, None), [])} == {"answered"}
    assert [(row["index"], row["replication"]) for row in rows] == [(2, 0), (2, 1), (5, 0), (5, 1)]
    assert rows[2]["responses"] == ["a", "aa"]
    assert [(s["response"], s["value"]) for s in rows[2]["scores"]] == [(0, 0.0), (1, 1.0)]


def test_what_has_no_score_is_counted_in_calls_whatever_the_number_of_their_answers() -> None:
    def given(text: str) -> Any:
        if text == "fail":
            raise ValueError("no")
        return None if text == "none" else Candidates([text, text, "odd"])

    def right(output: str) -> bool:
        if output == "odd":
            raise ValueError("odd")
        return True

    data = Dataset.from_rows([{"input": text} for text in ("a", "b", "none", "fail")])
    run = Runner().run(given, data)
    parts = [Part("t", run, Evaluator().evaluate(run, {"right": right}))]
    reported = "".join(Page(page(parts, [])).texts)
    assert (
        "1 of 4 calls failed; the scorer right failed on 2 of the other 3; the scorer right abstained in 1 of the"
        in reported
    )


@pytest.mark.parametrize(
    ("metric", "outcomes"),
    [
        (Accuracy(), ["right", "wrong", "right"]),
        (Accuracy(reduce="any"), ["right", "right", "right"]),
        (TopK(k=2), ["right", "wrong", "right"]),
        (Accuracy(reduce="all"), ["wrong", "wrong", "wrong"]),
    ],
)
def test_of_several_answers_those_decide_by_which_the_metric_goes(metric: Metric, outcomes: list[str]) -> None:
    data = Dataset.from_rows(
        [
            {"input": ["a", "b"], "expected": "a"},
            {"input": ["b", "c", "a"], "expected": "a"},
            {"input": ["a", None], "expected": "a"},
        ]
    )
    run = Runner().run(Candidates, data)
    evaluation = Evaluator().evaluate(run, {"same": ExactMatch()})
    parts, measures = [Part("t", run, evaluation)], [Measure("same", metric)]
    scores = scores_facts(parts)
    assert [OUTCOMES[row["outcome"]] for row in Examples(parts[0], scores, measures=measures)] == outcomes
    worst = next(iter(Examples(parts[0], scores, 1, measures)))
    assert OUTCOMES[worst["outcome"]] == min(outcomes, key=OUTCOMES.index)
    below = evaluation_facts(evaluation, run, 9, below=1, measures=measures)["rows"]["same"]
    assert {row["_index_"] for row in below} == {i for i, outcome in enumerate(outcomes) if outcome == "wrong"}


def test_a_run_that_nothing_has_graded_is_shown_too() -> None:
    run = Runner().run(answer, Dataset.from_rows([{"input": "1"}, {"input": "3"}]))
    text = page([Part("mine", run, None)], [])
    assert ["mine", "calls", "1", "0", "1", "0", "0"] in Page(text).lines
    assert [row["outcome"] for row in rows_of(text)] == [5, 0]


def test_a_run_without_rows_makes_a_page() -> None:
    run = Runner().run(answer, Dataset.from_rows([{"input": "1"}]), limit=1)
    text = written(report_facts("none", [Part("t", run, None)], []), [Examples(Part("t", run, None), [], limit=0)])
    assert rows_of(text) == []


def test_a_long_text_is_cut_and_says_how_much() -> None:
    run = Runner().run(lambda text: {"text": text * 2_000_000}, Dataset.from_rows([{"input": "12345"}]))
    text = page([Part("t", run, None)], [])
    [row] = rows_of(text)
    [response] = row["responses"]
    assert response["c"] + len(response["j"]) == 10_000_011
    assert len(text) - len(asset("report.js")) - len(asset("report.css")) < 20_000


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, {"j": "null"}),
        ("", ""),
        ("a" * 5000, {"t": "a" * 4000, "c": 1000}),
        ([1, "<b>"], {"j": '[1,"<b>"]'}),
        (2**60, {"j": str(2**60)}),
    ],
)
def test_values_are_shown_as_text_or_as_json(value: Any, shown: Any) -> None:
    assert cell(value) == shown


def test_nothing_that_comes_from_data_becomes_markup() -> None:
    def hostile(text: str) -> str:
        return HOSTILE + text

    records = [{"input": HOSTILE, "expected": HOSTILE, HOSTILE: HOSTILE, "id": f"{HOSTILE}{i}"} for i in range(3)]
    run = Runner().run(hostile, Dataset.from_rows(records, attributes=HOSTILE, input="input"))
    name = "</script><script>alert(2)</script>"
    evaluation = Evaluator().evaluate(run, {name: lambda output, expected: Score(0.5, label=HOSTILE)})
    aggregation = Aggregator().aggregate([evaluation], [Measure(name, Mean(), (HOSTILE,))], labels=[HOSTILE])
    parts = [Part(HOSTILE, run, evaluation)]
    comparison = {"a": HOSTILE, "b": HOSTILE, "metric": HOSTILE, "difference": 0.1, "low": 0.0, "high": 0.2}
    comparison |= {"p": 0.5, "won": 1, "lost": 0, "n": 1, "verdict": HOSTILE, "flips": [{"id": HOSTILE, "index": 0}]}
    text = page(parts, metrics_facts(aggregation), title=HOSTILE, comparisons=[comparison])
    plain = page(*made())
    assert text.count("</script>") == Page(text).open.count("script")
    assert [a.get("type") for a in Page(text).all("script")].count(None) == 1
    assert text.count("<!--") == plain.count("<!--") == 0
    assert not re.search(r"[\u202e\x1b]", text)
    assert rows_of(text)[0]["input"] == HOSTILE


def test_comparisons_are_shown_with_links_to_the_examples_that_differ() -> None:
    row = {"a": "old", "b": "new", "metric": "accuracy", "difference": 0.05, "low": -0.01, "high": 0.11, "p": 0.0931}
    row |= {"won": 7, "lost": 2, "n": 100, "verdict": "undecided", "flips": [{"id": "q17", "index": 17}]}
    text = page(*made(), comparisons=[row])
    assert ["old", "new", "accuracy", "0.050", "−0.010 to 0.110", "0.0931", "7", "2", "100"] in [
        line[:9] for line in Page(text).lines
    ]
    assert '<a href="#example=new/17">q17</a>' in text


def test_scores_between_edges_add_up_to_their_number() -> None:
    parts, _ = made()
    close_, same_ = scores_facts(parts)
    assert (close_["low"], close_["high"], close_["n"], close_["unit"]) == (0.0, 0.9, 9, True)
    assert sum(close_["counts"]) == 9
    assert len(close_["edges"]) == len(close_["counts"]) + 1
    assert (same_["binary"], same_["edges"]) == (True, None)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.83, 0.97], 0.8, 1.0),
        ([0.5], 0.2, 0.8),
        ([], 0.0, 1.0),
        ([-3.0, 4.0], -4.0, 4.0),
        ([1e12, 1.1e12], 1e12, 1.1e12),
        ([-1e308, 1.7e308], -1e308, 1.7e308),
        ([float("nan"), 2.0, 3.0], 2.0, 3.0),
    ],
)
def test_an_axis_holds_its_values_between_round_ends(values: list[float], low: float, high: float) -> None:
    axis = Axis.over(values)
    assert axis.low <= low + 1e-9 * abs(low)
    assert axis.high >= high - 1e-9 * abs(high)
    assert 2 <= len(axis.ticks) <= 8
    assert axis.place(axis.low) == "0.00%"
    assert axis.place(axis.high) == "100.00%"


def test_what_intervals_go_by_is_reported_with_the_signatures_and_differences() -> None:
    data = Dataset.from_rows([{"input": str(i), "page": i // 2} for i in range(6)], input="input", cluster="page")
    run = Runner().run(str.upper, data)
    evaluation = Evaluator().evaluate(run, {"low": lambda output: int(output) < 3})
    aggregation = Aggregator().aggregate([evaluation], [Measure("low", Accuracy())], labels=["mine"])
    row = {"a": "old", "b": "new", "metric": "accuracy", "difference": 0.05, "low": -0.01, "high": 0.11, "p": 0.0931}
    row |= {"won": 7, "lost": 2, "n": 100, "verdict": "undecided", "clusters": 12, "clustered_by": "<page>"}
    text = page([Part("mine", run, evaluation)], metrics_facts(aggregation), comparisons=[row])
    reported = "".join(Page(text).texts)
    assert reported.count("interval=wilson 95%, by 3 clusters (page)") == 2
    assert "Interval and test by 12 clusters (<page>)." in reported


def test_charts_say_in_words_what_they_show() -> None:
    dot = Dot(0.5, 0.25, 0.75, 0.4, 0.6, label='a "b"')
    text = strip([dot, Dot(None, None, None, None, None)], Axis.over(dot.numbers))
    assert 'aria-label="a &quot;b&quot;: 0.500, interval 0.250 to 0.750, bounds 0.400 to 0.600; no value"' in text
    assert 'aria-label="3 from 0.000 to 0.500, 1 from 0.500 to 1.000"' in histogram([0, 0.5, 1], [3, 1])


# ---------------------------------------------------------------- the command


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DirectoryStore:
    monkeypatch.chdir(tmp_path)
    store = DirectoryStore(tmp_path / ".evaluand")
    data = Dataset.from_rows([{"input": str(i), "expected": str(i)} for i in range(6)])
    tasks = {"mine": answer, "theirs": lambda text: "1"}
    Experiment("an experiment", data, tasks, {"same": same}, [Measure("same", Accuracy())]).run(store)
    return store


def called(*words: str) -> Any:
    return CliRunner().invoke(main, ["report", *words])


def test_the_report_of_an_experiment_holds_all_its_tasks(store: DirectoryStore) -> None:
    done = called("an experiment")
    assert done.output.startswith("an_experiment.html: 12 of 12 examples")
    text = Path("an_experiment.html").read_text()
    assert len(set(re.findall(r'id="data:rows/([^"]*)/0"', text))) == 2
    assert [line[0] for line in Page(text).lines if line[-4:] == ["6", "3", "1", "2"]] == ["mine"]


@pytest.mark.parametrize("kind", ["runs", "evaluations"])
def test_the_report_of_one_task_has_its_values_too(store: DirectoryStore, kind: str) -> None:
    [id] = [ref.id for ref in store.refs() if (ref.name, ref.kind) == ("an experiment/mine", kind)]
    assert called(id, "-o", "one.html").exit_code == 0
    assert ["mine", "1", "0.439 to 1.000", "0.500 … 1.000", "6", "3", "1", "2"] in [
        [line[0], line[1].split(".")[0], *line[2:]]
        for line in Page(Path("one.html").read_text()).lines
        if len(line) == 8
    ]


@pytest.mark.parametrize("place", ["store", ".evaluand"])
def test_commands_name_files_as_seen_from_the_folder_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "some folder").mkdir()
    (tmp_path / "data.csv").write_text("input,expected\na,a\n")
    (tmp_path / "app.py").write_text("def answer(text):\n    return text\n")
    (tmp_path / "some folder" / "e.yaml").write_text(
        "name: e\ndataset: {path: ../data.csv}\ntasks: {mine: '../app.py:answer'}\n"
        "scorers: {same: exact_match}\nmetrics: [accuracy]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALUAND_STORE", str(tmp_path / place))
    run = CliRunner().invoke(main, ["run", str(tmp_path / "some folder" / "e.yaml")])
    assert run.exit_code == 0, run.output
    assert called("e").exit_code == 0
    text = Path("e.html").read_text()
    store = "" if place == ".evaluand" else " --store store"
    assert f"Run in <code>{tmp_path}</code>" in text
    commands = [unescape(command) for command in re.findall("<dd><pre><code>([^<]*)</code></pre></dd>", text)]
    assert commands[0] == f"evaluand run 'some folder/e.yaml'{store} --task mine"
    [aggregation] = DirectoryStore(tmp_path / place).ids("aggregations")
    assert commands[-1] == f"evaluand report {aggregation[:12]}{store}"


def test_the_report_can_go_to_stdout_and_be_reported_as_json(store: DirectoryStore) -> None:
    assert called("an experiment", "-o", "-").stdout.startswith("<!DOCTYPE html>")
    reported = orjson.loads(called("an experiment", "--examples", "2", "--json").stdout)
    assert (reported["examples"], reported["of"]) == (4, 12)
    assert os.path.getsize(reported["file"]) == reported["bytes"]


def test_what_cannot_be_reported_is_reported(store: DirectoryStore) -> None:
    assert "nothing is called 'other'" in called("other").output
    assert "must be a number of examples or all" in called("an experiment", "--examples", "some").output
    assert "there is no folder nowhere; make it" in called("an experiment", "-o", "nowhere/report.html").output
    Path("here").mkdir()
    assert "here: is a folder; name a file with -o" in called("an experiment", "-o", "here").output
    [dataset] = store.ids("datasets")
    assert "is a dataset" in called(dataset).output
    assert not list(Path().glob("*.html"))


def test_the_rows_of_one_example_are_shown_whole(store: DirectoryStore) -> None:
    [id] = [ref.id for ref in store.refs() if (ref.name, ref.kind) == ("an experiment/mine", "runs")]
    shown = CliRunner().invoke(main, ["show", id, "--index", "4", "--json"])
    assert [row["_index_"] for row in orjson.loads(shown.stdout)["rows"]] == [4]
