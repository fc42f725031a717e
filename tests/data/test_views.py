"""Views: one dataset in the shapes that several tasks ask for, and outputs in the shape that a scorer asks for."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evaluand.comparison import compare
from evaluand.core.errors import DataError, SpecError
from evaluand.data.adapters.base.options import AdapterSpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator, ScorerFailed
from evaluand.evaluation.output_view import ExpectedView, OutputView
from evaluand.evaluation.preflight import check_gradable
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.evaluation.scorers.pattern import Includes
from evaluand.experiment import Experiment
from evaluand.metrics.accuracy import Accuracy
from evaluand.report.facts.report import Part, report_facts
from evaluand.report.facts.run import run_facts
from evaluand.report.html.examples import examples_of
from evaluand.report.html.report import write_report
from evaluand.report.terminal.artifact import artifact_table
from evaluand.run.runner import Runner
from evaluand.run.task import task
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore

ROWS = [
    {"id": "a", "text": "2 + 2", "lang": "en", "expected": "4", "meta": {"level": 1}},
    {"id": "b", "text": "3 + 3", "lang": "de", "expected": "6", "meta": {"level": 2}},
]
PROMPT = [{"kind": "TransformJSON", "configuration": {"prompt": "$.text", "n": 1}}]
CHAT = [{"kind": "TransformJSON", "configuration": {"messages": [{"role": "user", "content": "$.text"}]}}]
ROLES: dict[str, Any] = {"input": "text", "attributes": "lang", "metadata": "meta"}


def data(rows: Sequence[dict[str, Any]] = ROWS) -> Dataset:
    return Dataset.from_rows(rows, **ROLES)


@task(version="1")
def completes(input: Any) -> Any:
    return {"choices": [{"text": str(sum(map(int, input["prompt"].split(" + "))))}]}


@task(version="1")
def chats(input: Any) -> Any:
    return str(sum(map(int, input["messages"][0]["content"].split(" + "))))


ANSWER = [{"kind": "TransformJSON", "configuration": "$.choices[0].text"}]


def test_two_views_of_one_dataset_feed_two_tasks_that_are_compared_row_by_row() -> None:
    store, examples = MemoryStore(), data()
    first = Runner(store).run(completes, examples.view(PROMPT))
    second = Runner(store).run(chats, examples.view(CHAT))
    graded = [
        Evaluator().evaluate(first, {"right": OutputView(ExactMatch(), ANSWER)}, name="a"),
        Evaluator().evaluate(second, {"right": ExactMatch()}, name="b"),
    ]
    (pair,) = compare(*graded, metrics=[Accuracy()]).pairs
    assert (pair["n_used"], pair["value_a"], pair["value_b"]) == (2, 1.0, 1.0)
    assert first.dataset.id == second.dataset.id == examples.id


def test_a_view_changes_what_the_task_sees_and_nothing_else() -> None:
    examples = data()
    seen = list(examples.view(PROMPT))
    assert [e.input for e in seen] == [{"prompt": "2 + 2", "n": 1}, {"prompt": "3 + 3", "n": 1}]
    for mine, native in zip(seen, examples, strict=True):
        assert (mine.digest, mine.expected, mine.attributes) == (native.digest, native.expected, native.attributes)
    assert examples.view(PROMPT).id == examples.id
    assert [e.input for e in examples] == ["2 + 2", "3 + 3"]


def test_a_view_is_part_of_the_identity_of_a_run_and_calls_are_reused_by_what_they_are_asked() -> None:
    store, examples = MemoryStore(), data()
    first = Runner(store).run(completes, examples.view(PROMPT))
    same = Runner(store).run(completes, examples.view([*PROMPT]))
    two_steps = [
        {"kind": "Rename", "configuration": {"text": "t"}},
        {"kind": "TransformJSON", "configuration": {"prompt": "$.t", "n": 1}},
    ]
    other = Runner(store).run(completes, examples.view(two_steps))
    assert same.id == first.id
    assert other.id != first.id
    assert (other.receipt.called, other.receipt.reused, other.digest) == (0, 2, first.digest)


def test_a_view_holds_after_the_dataset_is_stored(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    stored = data().view(PROMPT).save(store)
    assert stored.view_spec == PROMPT
    assert [e.input["prompt"] for e in stored] == ["2 + 2", "3 + 3"]
    assert Dataset.stored(store, stored.id).view_spec is None


def test_adapters_see_the_index_and_what_a_task_may_know_but_not_what_is_expected() -> None:
    configuration = {"i": "$._index_", "id": "$.id", "lang": "$.lang", "level": "$.meta.level"}
    seen = list(data().view([{"kind": "TransformJSON", "configuration": configuration}]))
    assert seen[1].input == {"i": 1, "id": "b", "lang": "de", "level": 2}
    with pytest.raises(DataError, match=r"rows\[0\]: _index_ 0: TransformJSON: x: \$\.expected: \$ has no 'expected'"):
        data().view([{"kind": "TransformJSON", "configuration": {"x": "$.expected"}}])


def test_the_index_that_adapters_keep_is_not_shown_to_the_task() -> None:
    assert next(iter(data().view([{"kind": "Select", "configuration": {"fields": ["_index_", "text"]}}]))).input == {
        "text": "2 + 2"
    }


def test_every_row_that_can_not_be_transformed_is_reported_before_anything_is_called(tmp_path: Path) -> None:
    lines = [{"text": "a", "tags": ["x"]}, {"text": "b", "tags": []}, {"text": "c", "tags": ["y", "z"]}]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    examples = Dataset.from_file(path, input=["text", "tags"])
    with pytest.raises(DataError) as raised:
        examples.view([{"kind": "ExplodeCollections", "configuration": {"collections": ["tags"]}}])
    assert [str(fault).removeprefix(str(path)) for fault in raised.value.faults] == [
        ":2: _index_ 1: the view returns 0 inputs for it; return one for each example",
        ":3: _index_ 2: the view returns 2 inputs for it; return one for each example",
    ]


def test_rows_that_fail_in_one_way_are_reported_once_with_their_number(tmp_path: Path) -> None:
    lines = [{**ROWS[0], "id": str(i), "meta": None if i == 7 else {"depth": 1}} for i in range(8)]
    with pytest.raises(DataError) as raised:
        data(lines).view([{"kind": "TransformJSON", "configuration": {"x": "$.meta.level"}}])
    one, other = map(str, raised.value.faults)
    assert one.startswith("rows[0]: _index_ 0: TransformJSON: x: $.meta.level: ")
    assert one.endswith(" (7 rows fail this way: _index_ 0, 1, 2, 3, 4, …)")
    assert other.startswith("rows[7]: _index_ 7: TransformJSON: x: $.meta.level: ")
    assert "fail so" not in other


def test_a_row_that_fails_may_have_another_put_in_its_place_but_not_be_left_out() -> None:
    adapters = [{"kind": "TransformJSON", "configuration": {"x": "$.meta.none"}}]
    seen = data().view({"adapters": adapters, "onError": "default", "default": {"x": None}})
    assert [e.input for e in seen] == [{"x": None}] * 2
    with pytest.raises(SpecError, match="a view must keep every example"):
        data().view({"adapters": adapters, "onError": "skip"})


def test_inputs_that_are_a_default_row_are_counted_in_the_manifest_and_shown() -> None:
    rows = [*ROWS, {**ROWS[0], "id": "c", "lang": None}]
    explode = [{"kind": "ExplodeCollections", "configuration": {"collections": ["lang"]}}]
    default = {"prompt": "1 + 1"}
    plain = Runner().run(completes, data().view(PROMPT))
    made = Runner().run(completes, data(rows).view({"adapters": explode, "onError": "default", "default": default}))
    message = made.manifest["provenance"]["defaulted"]
    assert message == {
        "rows": 3,
        "of": 3,
        "reasons": {
            "ExplodeCollections: lang is a text, not a list": 2,
            "ExplodeCollections: lang is null, not a list": 1,
        },
    }
    assert "defaulted" not in plain.manifest["provenance"]
    shown = "the view's default in place of 3 of 3 rows: 2 × ExplodeCollections: lang is a text, not a list; 1 × "
    parts = [Part("t", made, None)]
    page = io.BytesIO()
    write_report(report_facts("r", parts, []), examples_of(parts, [], limit=0), page)
    assert f"asked with {escape(shown)}" in page.getvalue().decode()
    console = Console(file=io.StringIO(), width=400)
    about = {"kind": "runs", "id": made.id, "names": [], "status": "sealed", "manifest": made.manifest}
    console.print(artifact_table(about | run_facts(made)))
    assert shown in console.file.getvalue()  # type: ignore[attr-defined]


def test_what_a_view_made_of_the_input_is_shown_with_it() -> None:
    run = Runner().run(completes, data().view(PROMPT))
    assert [row["asked"] for row in run_facts(run, 2)["rows"]] == [{"n": 1, "prompt": e["text"]} for e in ROWS]
    assert "asked" not in run_facts(Runner().run(task(version="1")(str), data()), 1)["rows"][0]


def test_a_view_writes_no_other_index() -> None:
    with pytest.raises(DataError) as raised:
        data().view([{"kind": "Rename", "configuration": {"_index_": "n", "text": "_index_"}}])
    assert str(raised.value.faults[0]).endswith(
        "_index_ 0: the view writes '2 + 2' to _index_, which no task sees; use another field name"
    )


UPLOAD = [{"kind": "FileUpload", "configuration": {"field": "$.text", "encoding": "utf-8"}}]


def test_no_view_makes_uploads() -> None:
    with pytest.raises(SpecError, match="FileUpload prepares requests: put it into the task's input_pipeline"):
        data().view(UPLOAD)
    with pytest.raises(SpecError, match="FileUpload makes requests; it has no place in a view of outputs"):
        OutputView(ExactMatch(), UPLOAD)


@pytest.mark.parametrize("more", [{"onError": "skip"}, {"onError": "default", "default": {"text": ""}}])
def test_a_view_of_outputs_has_no_other_way_with_what_it_cannot_transform(more: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="costs its grade: leave onError out"):
        OutputView(ExactMatch(), {"adapters": ANSWER, **more})


def test_columns_and_rows_give_the_same_inputs() -> None:
    rows = [{"text": f"t{i}", "n": i} for i in range(10_000)]
    adapters = [
        {"kind": "Rename", "configuration": {"text": "prompt"}},
        {"kind": "TransformJSON", "configuration": {"prompt": "$.prompt", "n": "$.n", "stop": None, "t": 0.5}},
    ]
    examples = Dataset.from_rows(rows, input=["text", "n"]).view(adapters)
    assert [e.input for e in examples] == [{"prompt": f"t{i}", "n": i, "stop": None, "t": 0.5} for i in range(10_000)]


def test_a_task_that_reads_columns_takes_no_view() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    from evaluand.data.split import Split
    from evaluand.run.tasks.estimator import EstimatorTask

    rows = [{"x": float(i), "expected": str(i % 2)} for i in range(10)]
    examples = Dataset.from_rows(rows, input=["x"]).view([{"kind": "Select", "configuration": {"fields": ["x"]}}])
    with pytest.raises(SpecError, match="reads the dataset's columns, which a view does not change"):
        Runner().run(EstimatorTask(linear.LogisticRegression(), Split(folds=2)), examples)


# Views of outputs


def test_an_output_view_is_part_of_the_identity_of_a_scorer() -> None:
    plain, viewed = ExactMatch(), OutputView(ExactMatch(), ANSWER)
    assert plain.identify().spec != viewed.identify().spec
    assert viewed.identify().spec == OutputView(ExactMatch(), ANSWER).identify().spec
    assert viewed.identify().pinned


def test_items_are_seen_one_by_one() -> None:
    spans = [{"begin": 0, "end": 3}, {"begin": 5, "end": 9}]
    rename = [{"kind": "Rename", "configuration": {"begin": "start"}}]
    seen: list[Any] = []
    OutputView(_Keeps(seen), rename).score(spans, None)
    assert seen == [[{"start": 0, "end": 3}, {"start": 5, "end": 9}]]
    assert spans[0] == {"begin": 0, "end": 3}


class _Keeps(Includes):
    def __init__(self, seen: list[Any]) -> None:
        object.__setattr__(self, "seen", seen)

    def score(self, output: Any, expected: Any) -> Any:
        self.seen.append(output)  # type: ignore[attr-defined]
        return 1.0


def test_an_output_that_does_not_fit_costs_one_grade() -> None:
    @task(version="1")
    def odd(text: str) -> Any:
        return "just text" if text == "2 + 2" else {"choices": [{"text": "6"}]}

    evaluation = Evaluator().evaluate(Runner().run(odd, data()), {"right": OutputView(ExactMatch(), ANSWER)})
    table = evaluation.table("right").to_pylist()
    assert [row["status"] for row in table] == ["failed", "scored"]
    assert "the output is a text; a view is made of objects" in table[0]["reason"]


# In experiment files


# Views of expected values

BEST = [{"kind": "TransformJSON", "configuration": "$.best.text"}]
NESTED = [row | {"expected": {"best": {"text": row["expected"]}, "others": []}} for row in ROWS]


def test_each_scorer_sees_expected_values_in_its_shape_and_the_dataset_stays() -> None:
    run = Runner().run(completes, data(NESTED).view(PROMPT))
    scorers = {
        "text": ExpectedView(OutputView(ExactMatch(), ANSWER), BEST),
        "any": OutputView(ExpectedView(ExactMatch(any_of=True), ALL), ANSWER),
    }
    evaluation = Evaluator().evaluate(run, scorers)
    assert [evaluation.table(name)["value"].to_pylist() for name in scorers] == [[1.0, 1.0], [1.0, 1.0]]
    assert [example.expected["others"] for example in run.dataset] == [[], []]


ALL = [
    {"kind": "TransformJSON", "configuration": {"all": ["$.best.text", "none"]}},
    {"kind": "TransformJSON", "configuration": "$.all"},
]


def test_a_view_of_expected_values_is_part_of_the_identity_and_passes_what_is_missing() -> None:
    plain, viewed = ExactMatch(), ExpectedView(ExactMatch(), BEST)
    assert plain.identify().spec != viewed.identify().spec != OutputView(ExactMatch(), BEST).identify().spec
    assert viewed.score("4", None).status == "abstained"
    with pytest.raises(DataError, match="the expected value is a text; a view is made of objects"):
        viewed.score("4", "4")
    with pytest.raises(SpecError, match="FileUpload makes requests; it has no place in a view of expected values"):
        ExpectedView(ExactMatch(), UPLOAD)


def test_what_a_view_of_expected_values_makes_is_checked_before_a_run() -> None:
    check_gradable(ExpectedView(ExactMatch(), BEST), data(NESTED), {})
    with pytest.raises(SpecError, match=r"no example can be graded: expected_view: .* has no 'bst'"):
        check_gradable(
            ExpectedView(ExactMatch(), [{"kind": "TransformJSON", "configuration": "$.bst"}]), data(NESTED), {}
        )


def experiment(folder: Path, text: str) -> Path:
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "app.py").write_text(
        "def answer(input):\n    return {'text': str(sum(map(int, input['prompt'].split(' + '))))}\n"
    )
    path = folder / "e.yaml"
    path.write_text(text)
    return path


FILE = """\
name: views
dataset:
  path: data.jsonl
  input: text
  views:
    prompts: [{kind: TransformJSON, configuration: {prompt: $.text}}]
tasks:
  named: {function: app.py:answer, view: prompts}
  own: {function: app.py:answer, view: {kind: Rename, configuration: {text: prompt}}}
scorers:
  right: {kind: exact_match, view: [{kind: TransformJSON, configuration: $.text}]}
metrics: [accuracy]
"""


def test_an_experiment_file_names_views_of_the_dataset_and_of_outputs(tmp_path: Path) -> None:
    results = Experiment.from_file(experiment(tmp_path, FILE)).run()
    assert results.aggregation.table()["value"].to_pylist() == [1.0, 1.0]


def test_what_a_view_makes_is_validated_against_its_schema(tmp_path: Path) -> None:
    of_prompt = "schema: {type: object, properties: {prompt: {type: string}}, required: [prompt]}"
    own, made = (
        "{kind: Rename, configuration: {text: prompt}}",
        "{kind: TransformJSON, configuration: {prompt: $.text}}",
    )
    graded = "{kind: TransformJSON, configuration: $.text}"
    valid = FILE.replace(own, f"{{adapters: [{made}], {of_prompt}}}").replace(
        f"view: [{graded}]", f"view: {{adapters: [{graded}], schema: {{type: string, maxLength: 1}}}}"
    )
    results = Experiment.from_file(experiment(tmp_path, valid)).run()
    assert results.aggregation.table()["value"].to_pylist() == [1.0, 1.0]
    with pytest.raises(SpecError) as raised:
        Experiment.from_file(experiment(tmp_path, valid.replace("properties: {prompt: ", "properties: {promt: ")))
    assert "9: tasks.own.view: " in str(raised.value)
    with pytest.raises(DataError) as refused:
        data().view(PROMPT, schema={"type": "object", "properties": {"prompt": {"type": "string"}}, "required": []})
    assert str(refused.value) == (
        "rows[0]: _index_ 0: input.n is not a field: it does not fit the schema of the view"
        " (2 rows fail this way: _index_ 0, 1)"
    )
    run = Runner().run(completes, data().view(PROMPT))
    view = OutputView(ExactMatch(), ANSWER, schema={"type": "string", "maxLength": 0})
    with pytest.warns(ScorerFailed):
        reasons = Evaluator().evaluate(run, {"right": view}).table("right")["reason"].to_pylist()
    assert "output has 1 characters, more than 0: it does not fit the schema of the view" in reasons[0]
    assert view.identify() != OutputView(ExactMatch(), ANSWER).identify()


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            "view: prompts}",
            "view: promts}",
            "8: tasks.named.view: no view is called 'promts' (did you mean 'prompts'?)",
        ),
        (
            "{kind: Rename, ",
            "{kind: Renam, ",
            "9: tasks.own.view: no adapter is called 'Renam' (did you mean 'Rename'?)",
        ),
        ("{text: prompt}}", "{txt: prompt}}", "e.yaml:9: tasks.own.view: "),
        (
            "{text: prompt}}",
            "{txt: prompt}}",
            "data.jsonl:1: _index_ 0: Rename: there is no field 'txt' (did you mean 'text'?) (2 rows fail this way: ",
        ),
        (
            "configuration: $.text}]}",
            "configuration: $text}]}",
            "11: scorers.right: TransformJSON: '$text' is not a",
        ),
    ],
)
def test_a_wrong_view_is_reported_by_its_line(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    assert right in FILE
    with pytest.raises((SpecError, DataError)) as raised:
        Experiment.from_file(experiment(tmp_path, FILE.replace(right, wrong)))
    assert message in str(raised.value)
    assert not isinstance(raised.value, AdapterSpecError)


def test_a_wrong_view_of_outputs_is_found_before_a_run_where_they_are_known(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text('{"_index_": 0, "r": {"t": "4"}}\n{"_index_": 1, "r": {"t": "6"}}\n')
    own = "{function: app.py:answer, view: {kind: Rename, configuration: {text: prompt}}}"
    recorded = FILE.replace(own, "{kind: recorded, path: out.jsonl, response: r}")
    with pytest.raises(SpecError) as raised:
        Experiment.from_file(experiment(tmp_path, recorded))
    message = "scorers.right: no output of task 'own' can be graded: view: TransformJSON: $.text: $ has no 'text'"
    assert f"e.yaml:11: {message}" in str(raised.value)
