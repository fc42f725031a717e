"""Lineage: from numbers back to scores, responses, examples and traces, and how rows are chosen and sorted."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.commands import Folder, run_once

from evaluand import (
    Accuracy,
    Aggregator,
    Dataset,
    DirectoryStore,
    Evaluation,
    Evaluator,
    FBeta,
    Mean,
    Measure,
    MemoryStore,
    Runner,
    Score,
    Skipped,
    TaskSpan,
    TopK,
    task,
)
from evaluand.aggregation.aggregator import Aggregation
from evaluand.core.errors import EvaluandWarning, NotFound, SpecError
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.report.lineage import Lineage, lineage_of_scores, lineage_of_value
from evaluand.run.task import Candidates

ROWS = [
    {"id": "a", "input": 1, "expected": 2, "topic": "x"},
    {"id": "b", "input": 2, "expected": 9, "topic": "y"},
    {"id": "c", "input": 3, "expected": 6, "topic": "x"},
    {"id": "d", "input": 4, "expected": 8, "topic": None},
]


@task
def doubled(number: int, task_span: TaskSpan) -> int:
    with task_span.span("look up", query=number):
        pass
    if number == 3:
        raise ValueError("no threes")
    return number * 2


@task
def doubled_and_more(number: int) -> Any:
    if number == 4:
        raise Skipped("not asked")
    return number * 2 + (number == 1)


def near(output: Any, expected: Any) -> Score:
    if output > 7:
        return Score.abstained("too large")
    return Score(1 / (1 + abs(output - expected)), label=str(output))


def exact(output: Any, expected: Any) -> bool:
    return bool(output == expected)


@pytest.fixture
def data() -> Dataset:
    return Dataset.from_rows(ROWS, attributes="topic")


def evaluated(data: Dataset, function: Any = doubled, store: Any = None, **scorers: Any) -> Evaluation:
    return Evaluator().evaluate(Runner(store or MemoryStore()).run(function, data), scorers or {"near": near})


def shown(found: Lineage, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in found]


# ---------------------------------------------------------------- what stands beside a score


def test_each_score_has_its_example_response_and_trace(data: Dataset) -> None:
    found = lineage_of_scores(evaluated(data))
    assert shown(found, "id", "input", "expected", "response", "status", "value", "response_status") == [
        ("a", 1, 2, 2, "scored", 1, "completed"),
        ("b", 2, 9, 4, "scored", 1 / 6, "completed"),
        ("c", 3, 6, None, "failed", None, "failed"),
        ("d", 4, 8, 8, "abstained", None, "completed"),
    ]
    assert [row["n_spans"] for row in found] == [len(found.trace(place)) for place in range(4)]
    rows = list(found)
    assert rows[0]["attributes"] == {"topic": "x"}
    assert rows[2]["error"]["message"] == "no threes"
    assert rows[2]["reason"] == "task: ValueError: no threes"
    (span,) = found.trace(1)
    assert (span["name"], span["attributes"]) == ("look up", {"query": 2})


def test_a_task_without_spans_has_no_trace_to_show(data: Dataset) -> None:
    found = lineage_of_scores(evaluated(data, doubled_and_more))
    assert found.table()["n_spans"].to_pylist() == [len(found.trace(place)) for place in range(4)]


def test_several_columns_of_input_or_expected_are_one_struct() -> None:
    rows = [{"q": "2+2", "lang": "en", "truth": "4", "mood": "calm", "note": {"k": [1]}}]
    roles: dict[str, Any] = {"input": ("q", "lang"), "expected": {"t": "truth", "m": "mood"}, "metadata": "note"}
    data = Dataset.from_rows(rows, **roles)
    evaluation = evaluated(data, lambda row: row["q"], any=lambda output: 1.0)
    (row,) = lineage_of_scores(evaluation)
    assert row["input"] == {"q": "2+2", "lang": "en"}
    assert row["expected"] == {"t": "4", "m": "calm"}
    assert row["metadata"] == {"note": {"k": [1]}}
    assert row["id"] == "0"


def test_each_of_several_answers_stands_with_its_own_score(data: Dataset) -> None:
    evaluation = evaluated(data, lambda n: Candidates([n, n * 2]), exact=exact)
    assert shown(lineage_of_scores(evaluation), "id", "_response_index_", "response", "value")[:4] == [
        ("a", 0, 1, 0),
        ("a", 1, 2, 1),
        ("b", 0, 2, 0),
        ("b", 1, 4, 0),
    ]


def test_answers_that_are_lists_of_items_are_lists(data: Dataset) -> None:
    @task(items=True)
    def parts(number: int) -> Any:
        return None if number == 4 else Candidates([[number] * number, [], [{"n": number}]])

    found = lineage_of_scores(evaluated(data, parts, length=lambda output: len(output)))
    assert shown(found, "id", "response", "value")[3:] == [
        ("b", [2, 2], 2),
        ("b", [], 0),
        ("b", [{"n": 2}], 1),
        ("c", [3, 3, 3], 3),
        ("c", [], 0),
        ("c", [{"n": 3}], 1),
        ("d", None, None),
    ]


def test_replications_keep_their_own_responses(data: Dataset) -> None:
    @task
    def counted(number: int, replication: int) -> int:
        return number * 10 + replication

    run = Runner().run(counted, data, replications=3)
    evaluation = Evaluator().evaluate(run, {"value": lambda output: float(output)})
    found = shown(lineage_of_scores(evaluation), "input", "replication", "response", "value")
    assert found == [(n, r, n * 10 + r, n * 10 + r) for n in (1, 2, 3, 4) for r in range(3)]


def test_a_stored_evaluation_has_the_lineage_it_had_in_memory(data: Dataset, tmp_path: Any) -> None:
    inside = lineage_of_scores(evaluated(data)).table()
    stored = lineage_of_scores(evaluated(data, store=DirectoryStore(tmp_path))).table()
    alike = [name for name in inside.column_names if name != "duration"]
    assert stored.select(alike).to_pylist() == inside.select(alike).to_pylist()


def test_rows_in_any_order_get_what_is_theirs(data: Dataset) -> None:
    found = lineage_of_scores(evaluated(data, sign=lambda output, expected: float(output - expected)))
    for chosen in (found.lowest(), found.highest()):
        assert all(row["response"] == row["input"] * 2 for row in chosen)
    assert shown(found.lowest(), "id") == [("b",), ("a",), ("d",)]
    assert shown(found.highest(1), "id") == [("a",)]


def test_columns_of_a_scorers_own_stand_with_the_rest_under_a_name_own() -> None:
    data = Dataset.from_rows([{"input": "a b", "expected": "a b c"}])
    (row,) = lineage_of_scores(evaluated(data, lambda text: text, rouge="rouge"))
    assert (row["precision"], row["recall"]) == (1, pytest.approx(2 / 3))


def test_scorers_with_columns_of_different_types_are_in_one_table(data: Dataset) -> None:
    evaluation = evaluated(data, doubled_and_more, near=near, exact="exact_match", prediction=Prediction(type="number"))
    found = lineage_of_scores(evaluation)
    assert len(found) == 12
    assert sorted({row["scorer"] for row in found}) == ["exact", "near", "prediction"]
    assert len(lineage_of_scores(evaluation, "exact")) == 4


# ---------------------------------------------------------------- choosing


def test_failures_are_what_failed_or_holds_nothing_to_grade(data: Dataset) -> None:
    assert shown(lineage_of_scores(evaluated(data)).failures(), "id", "status") == [("c", "failed"), ("d", "abstained")]


def test_rows_can_be_chosen_by_the_columns_of_scores(data: Dataset) -> None:
    found = lineage_of_scores(evaluated(data))
    assert shown(found.where(status="scored", label="2"), "id") == [("a",)]
    assert shown(found.where(value=None).head(1), "id") == [("c",)]
    assert found.where(label="none such").table().num_rows == 0


@pytest.mark.parametrize(
    ("ask", "reported"),
    [
        (lambda found: found.where(statsu="scored"), r"no column is called 'statsu' \(did you mean 'status'\?\)"),
        (lambda found: found.where(value="high"), "column value has the type double, so it never equals 'high'"),
        (lambda found: found.lowest(column="label"), "sorted by numbers, but label has the type string"),
        (
            lambda found: found.lowest(-1),
            "n must be a number of rows: an integer from 0, not -1",
        ),
        (lambda found: found.highest(1.5), "an integer from 0, not 1.5"),
        (lambda found: found.head(-1), "an integer from 0, not -1"),
        (lambda found: found.trace(9), "the lineage has 4 rows, counted from 0; none is 9"),
        (lambda found: found.trace("a"), "counted from 0; none is 'a'"),
        (lambda found: found.head(True), "an integer from 0, not True"),
        (
            lambda found: lineage_of_scores(found.evaluations, "nera"),
            r"no scorer is called 'nera' \(did you mean 'near'\?\)",
        ),
        (lambda found: lineage_of_scores([]), "lineage_of_scores takes one or more Evaluation objects"),
    ],
)
def test_what_cannot_be_chosen_is_reported(data: Dataset, ask: Any, reported: str) -> None:
    with pytest.raises(SpecError, match=reported):
        ask(lineage_of_scores(evaluated(data)))


@pytest.mark.parametrize("best_first", [False, True])
def test_rows_that_hold_no_number_stand_last_and_are_reported(data: Dataset, best_first: bool) -> None:
    found = lineage_of_scores(evaluated(data, lambda number: number, near=exact))
    numbers = pa.array([math.nan, 2.0, math.nan, 1.0])
    place = found.scores.schema.get_field_index("value")
    odd = Lineage(found.evaluations, found.scores.set_column(place, "value", numbers))
    with pytest.warns(EvaluandWarning, match="^2 of 4 scored rows have NaN in value; they come last$"):
        rows = odd.highest() if best_first else odd.lowest()
    assert [key for (key,) in shown(rows, "id")] == (["b", "d", "a", "c"] if best_first else ["d", "b", "a", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.lowest()


# ---------------------------------------------------------------- several evaluations


def test_runs_disagree_where_their_grades_differ_the_most_first(data: Dataset) -> None:
    found = lineage_of_scores([evaluated(data), evaluated(data, doubled_and_more)]).disagreements()
    assert shown(found, "id", "evaluation", "status", "value", "spread") == [
        ("a", 0, "scored", 1, 0.5),
        ("a", 1, "scored", 0.5, 0.5),
        ("c", 0, "failed", None, None),
        ("c", 1, "scored", 1, None),
    ]  # b is graded alike, and d was skipped by one


def test_labels_disagree_where_there_are_no_values(data: Dataset) -> None:
    sides = [
        evaluated(data, lambda n: n, verdict=lambda output: "odd" if output % 2 else "even"),
        evaluated(data, lambda n: n * 2, verdict=lambda output: "odd" if output % 2 else "even"),
    ]
    found = lineage_of_scores(sides).disagreements()
    assert shown(found, "id", "label") == [("a", "odd"), ("a", "even"), ("c", "odd"), ("c", "even")]
    assert len(lineage_of_scores([sides[0], sides[0]]).disagreements()) == 0


def test_examples_meet_by_what_they_are_and_not_by_where_they_stand(data: Dataset) -> None:
    turned = Dataset.from_rows(ROWS[::-1], attributes="topic")
    found = lineage_of_scores([evaluated(data), evaluated(turned, doubled_and_more)]).disagreements()
    assert shown(found, "id", "evaluation") == [("a", 0), ("a", 1), ("c", 0), ("c", 1)]


def test_inputs_of_different_types_become_json_in_one_table() -> None:
    numbers = Dataset.from_rows([{"input": 1, "expected": 1}])
    texts = Dataset.from_rows([{"input": "one", "expected": 1}])
    found = lineage_of_scores([evaluated(data, lambda x: 1, exact=exact) for data in (numbers, texts)])
    assert shown(found, "evaluation", "input", "value") == [(0, 1, 1), (1, "one", 1)]


def test_evaluations_keep_the_order_in_which_they_are_given(data: Dataset) -> None:
    one, other = evaluated(data), evaluated(data, doubled_and_more)
    found = shown(lineage_of_scores([other, one]), "evaluation", "response")
    assert (found[0], found[4]) == ((0, 3), (1, 2))


# ---------------------------------------------------------------- values of an aggregation


def test_a_value_leads_back_to_the_rows_it_is_the_mean_of(data: Dataset) -> None:
    evaluation = evaluated(data)
    aggregation = Aggregator().aggregate([evaluation], [Measure("near", Mean(), by=("topic",))])
    for number, row in enumerate(aggregation.table().to_pylist()):
        rows = list(lineage_of_value(aggregation, number))
        assert len(rows) == row["n"]
        values = [each["value"] for each in rows if each["value"] is not None]
        assert row["value"] == (pytest.approx(sum(values) / len(values)) if values else None)
        assert {each["attributes"]["topic"] for each in rows} <= ({v for _, v in row["by"]} or {"x", "y", None})
        assert len(lineage_of_value(aggregation, row)) == row["n"]


@pytest.mark.parametrize(("metric", "n"), [(Accuracy(), 4), (Accuracy(reduce="any"), 8), (TopK(k=2), 8)])
def test_of_several_answers_those_are_shown_that_the_metric_goes_by(data: Dataset, metric: Any, n: int) -> None:
    evaluation = evaluated(data, lambda number: Candidates([number, number * 2]), exact=exact)
    aggregation = Aggregator().aggregate([evaluation], [Measure("exact", metric)])
    assert len(lineage_of_value(aggregation, 0)) == n


def test_a_value_of_the_second_evaluation_leads_to_its_rows(data: Dataset) -> None:
    store = MemoryStore()
    sides = [evaluated(data, store=store), evaluated(data, doubled_and_more, store)]
    aggregation = Aggregator().aggregate(sides, [Measure("near", Mean())], labels=["one", "two"])
    found = lineage_of_value(aggregation, 1)
    assert [row["response"] for row in found] == [3, 4, 6]  # the skipped one counts in no value
    with pytest.raises(SpecError, match="the aggregation has 2 values, counted from 0; none is 2"):
        lineage_of_value(aggregation, 2)
    with pytest.raises(SpecError, match="the aggregation has 2 values, counted from 0; none is 'x'"):
        lineage_of_value(aggregation, "x")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="this one lacks evaluation, scorer, metric, signature, by, target"):
        lineage_of_value(aggregation, {"a": 1})


def test_evaluations_of_other_stores_are_given_beside(data: Dataset) -> None:
    sides = [evaluated(data), evaluated(data, doubled_and_more)]
    aggregation = Aggregator().aggregate(sides, [Measure("near", Mean())], labels=["one", "two"])
    stored = Aggregation(aggregation.store, aggregation.id)
    for found in (lineage_of_value(aggregation, 1), lineage_of_value(stored, 1, sides)):
        assert [row["response"] for row in found] == [3, 4, 6]
    with pytest.raises(NotFound, match="are in other stores; pass them as evaluations"):
        lineage_of_value(stored, 1)
    with pytest.raises(SpecError, match="made from other evaluations, or from these"):
        lineage_of_value(aggregation, 1, sides[::-1])


def test_a_value_of_one_target_leads_to_scores_of_that_target() -> None:
    rows = [{"x": 1, "t": "a", "m": "b"}, {"x": 2, "t": "a", "m": "c"}]
    data = Dataset.from_rows(rows, input="x", expected=("t", "m"))
    evaluation = evaluated(data, lambda x: {"t": "a", "m": "b"}, prediction="prediction")
    aggregation = Aggregator().aggregate([evaluation], [Measure("prediction", FBeta(average="macro"))])
    targets = [{row["target"] for row in lineage_of_value(aggregation, number)} for number in range(2)]
    assert targets == [{row["target"]} for row in aggregation.table().to_pylist()]


# ---------------------------------------------------------------- pandas


def test_a_frame_has_plain_values_and_attributes_as_columns(data: Dataset) -> None:
    frame = lineage_of_scores(evaluated(data)).to_pandas()
    assert frame["response"].tolist()[:2] == [2, 4]
    assert frame["attributes.topic"].tolist()[:2] == ["x", "y"]
    assert frame["status"].value_counts().to_dict() == {"scored": 2, "failed": 1, "abstained": 1}
    assert len(lineage_of_scores(evaluated(data)).where(label="none").to_pandas()) == 0


@pytest.mark.slow
def test_large_tables_in_many_batches_are_joined_as_small_ones_are(tmp_path: Any) -> None:
    n = 10_000
    data = Dataset.from_arrow(pa.table({"input": pa.array(range(n)), "expected": pa.array(range(n))}))
    evaluation = evaluated(data, lambda x: x * 2, DirectoryStore(tmp_path), value=lambda output: float(output % 97))
    found = lineage_of_scores(evaluation)
    table = found.table()
    assert table["input"].to_pylist() == list(range(n))
    assert table["response"].to_pylist() == [str(2 * x) for x in range(n)]
    worst = found.lowest(5).table()
    assert worst["input"].to_pylist() == [0, 97, 194, 291, 388]
    assert worst["response"].to_pylist() == ["0", "194", "388", "582", "776"]


# ---------------------------------------------------------------- evaluand show


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Folder(tmp_path_factory.mktemp("finished"))
    path = made.experiment()
    path.write_text(path.read_text().replace("scorers:", "  other: {function: app.py:whole}\nscorers:"))
    return run_once(made, path)


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Folder:
    return Folder.copied(finished, tmp_path)


def keys(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["_index_"], row["status"], row["value"]) for row in rows]


def test_the_lowest_scores_are_shown_first(folder: Folder) -> None:
    rows = folder.json("show", "doubling/other", "--lowest", "--scorer", "number", "--examples", "2")["rows"]["number"]
    assert keys(rows) == [(1, "scored", 0), (2, "scored", 0)]
    assert (rows[0]["input"], rows[0]["expected"], rows[0]["responses"]) == ("1", "2", [1])


def test_what_two_runs_are_graded_differently_for_is_shown_side_by_side(folder: Folder) -> None:
    shown = ("show", "doubling/mine", "--against", "doubling/other", "--scorer", "number")
    rows = folder.json(*shown, "--examples", "1")["rows"]["number"]
    assert keys(rows) == [(1, "scored", 1), (1, "scored", 0)]
    assert [row["evaluation"] for row in rows] == ["doubling/mine", "doubling/other"]
    assert [row["responses"] for row in rows] == [["about 2"], [1]]
    out = folder.call(*shown).stdout
    assert "_index_ 1, in doubling/mine: scored 1\n" in out
    assert "_index_ 1, in doubling/other: scored 0\n" in out
    alike = folder.call("show", "doubling/mine", "--against", "doubling/mine", "--scorer", "number").stdout
    assert "number: same grades by doubling/mine" in alike


def test_a_value_of_a_group_leads_to_its_rows(folder: Folder) -> None:
    shown = ("show", "doubling", "--metric", "accuracy", "--group", "parity=odd", "--examples", "9")
    rows = folder.json(*shown)["rows"]
    assert {value: keys(found) for value, found in rows.items()} == {
        "mine · number": [(1, "scored", 1), (3, "failed", None), (5, "scored", 1)],
        "other · number": [(1, "scored", 0), (3, "scored", 0), (5, "scored", 0)],
    }
    failed = folder.json(*shown, "--failed")["rows"]
    assert [len(found) for found in failed.values()] == [1, 0]
    assert "other · number: no such rows" in folder.call(*shown, "--failed").stdout
    assert "_index_ 3" in folder.call(*shown, "--lowest").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "reported"),
    [
        (("doubling", "--metric", "acuracy"), 1, "no metric is called 'acuracy' (did you mean 'accuracy'?)"),
        (("doubling", "--metric", "accuracy", "--group", "parity=none"), 1, "it has values for all rows, parity=even"),
        (("doubling", "--metric", "accuracy", "--group", "parity"), 2, "must be an attribute and its value"),
        (("doubling", "--group", "parity=odd"), 2, "--metric can be combined with --group"),
        (("doubling/mine", "--lowest", "--below", "1"), 2, "give one of --failed, --below, --lowest and --against"),
        (("doubling/mine", "--failed", "--below", "1"), 2, "--lowest and --against, not --failed and --below"),
        (("doubling/mine", "--below", "nan"), 2, "--below must be a number, not nan"),
        (("doubling", "--index", "1"), 1, "'doubling' is one of the aggregations, which have no calls"),
        (("doubling", "--rubric", "--against", "doubling/mine"), 1, "--against compares evaluations, and"),
        (("doubling", "--rubric", "--against", "doubling/none"), 1, "--against compares evaluations, and"),
        (("doubling/mine", "--lowest", "--index", "1"), 2, "give it without other options that select rows"),
    ],
)
def test_choices_that_cannot_be_are_reported(
    folder: Folder, arguments: tuple[str, ...], code: int, reported: str
) -> None:
    result = folder.call("show", *arguments)
    assert result.exit_code == code
    assert reported in " ".join(result.output.split())


TRACED = """
from evaluand import span

def double(question):
    with span("calc", kind="tool", input={"question": question}) as calc:
        calc.set(model="abacus", input_tokens=3)
        calc.log("note", "carry one")
        calc.output = 2 * int(question)
    return f"about {calc.output}"
"""


def test_all_of_one_example_is_shown_with_what_its_call_did_and_its_grades(folder: Folder) -> None:
    (folder.path / "traced.py").write_text(TRACED)
    folder.done("run", folder.experiment("traced.py:double", "t.yaml"))
    evaluation = next(ref.id for ref in folder.store.refs() if (ref.name, ref.kind) == ("doubling/mine", "evaluations"))
    for artifact in ("doubling/mine", evaluation[:8]):
        lines = [" ".join(line.split()) for line in folder.done("show", artifact, "--index", "2").splitlines()]
        assert "calc (tool)" in lines
        for reported in ('input {"question":"2"}', "output 4", "model abacus", "input_tokens 3", "note carry one"):
            assert reported in lines
        assert "_index_ 2: scored 1" in lines
    assert [len(rows) for rows in folder.json("show", "doubling/mine", "--index", "2")["grades"].values()] == [1, 1]
    assert "has no _index_ 9" in folder.refused("show", evaluation[:8], "--index", "9")


def test_fewer_than_no_rows_are_refused(folder: Folder) -> None:
    found = lineage_of_scores([Evaluation(folder.store, id) for id in folder.store.ids("evaluations")])
    for choose in (found.lowest, found.highest, found.head):
        with pytest.raises(SpecError, match="n must be a number of rows"):
            choose(-1)
    assert len(found.lowest(0)) == len(found.head(0)) == 0


def test_what_an_artifact_was_made_from_is_verified_with_it(folder: Folder) -> None:
    checked = folder.json("verify", "doubling")["artifacts"]
    assert {artifact["kind"] for artifact in checked} == {"aggregations", "evaluations", "runs", "datasets"}
    [table] = (folder.path / "store" / "runs" / folder.json("list", "runs")[0]["id"]).glob("*.parquet")
    table.write_bytes(table.read_bytes() + b" ")
    result = folder.call("verify", "doubling")
    assert (result.exit_code, "fault  run" in result.stdout) == (1, True)
