"""What is kept of the calls of a feedback, how little that is, and that all of it can be told again."""

from __future__ import annotations

import json
import math
import random
import shutil
import string
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from evaluand import Dataset, DirectoryStore, Evaluation, Evaluator, Run, Runner
from evaluand.apps.app import App
from evaluand.apps.recording.stored import MODES
from evaluand.cli import main
from evaluand.core.errors import SpecError
from evaluand.evaluation.feedback import Feedback
from evaluand.evaluation.feedback.calls import SHORT, read_calls
from evaluand.interop import trulens
from evaluand.report.facts.report import Part
from evaluand.report.html.examples import Examples
from evaluand.run.task import Candidates
from evaluand.store.store import MemoryStore, Store, drafted
from evaluand.trace import span

RETS = "__record__.app.search.rets[:]"
LONG = "a text that is longer than what is kept beside a judgement, " * 3


def both(question: str, context: Any) -> float:
    if "fails" in str(context):
        raise ValueError("no")
    return float(len(str(context)))


def length(text: Any) -> float:
    return float(len(str(text)))


def found_of(question: Any) -> list[Any]:
    return [f"{question} one", f"{question} fails", {"page": question}]


def answer(question: Any) -> Any:
    with span("search", input={"query": question}) as search:
        search.output = found_of(question)
    return f"{question}!"


PRODUCT = Feedback(both, name="product", on_error="leave_out").on_input().on(RETS)
SEVERAL = {
    "product": PRODUCT,
    "zip": PRODUCT.on(question="__record__.app.search.args.query").aggregate(combinations="zip"),
    "grid": PRODUCT.on(question="__record__.app.search.rets[:2]"),
    "length": Feedback(length).on_output(),
}


def run_of(inputs: list[Any], store: Store | None = None, replications: int | None = None) -> Run:
    data = Dataset.from_rows([{"input": text} for text in inputs])
    return Runner(store or MemoryStore()).run(answer, data, replications=replications)


def judged(run: Run, scorers: Any = None) -> Evaluation:
    return Evaluator().evaluate(run, scorers or SEVERAL)


def arguments(evaluation: Evaluation, name: str) -> list[list[dict[str, Any]]]:
    return [[call["args"] for call in calls] for calls in evaluation.calls(name)]


# What is kept


def test_short_arguments_stand_in_the_table_and_long_ones_do_not() -> None:
    short, long = judged(run_of(["q", LONG]), {"length": SEVERAL["length"]}).table("length")["calls"].to_pylist()
    assert json.loads(short) == [{"args": {"text": "q!"}, "ret": 2.0}]
    assert json.loads(long) == [{"ret": len(LONG) + 1.0}]


@pytest.mark.parametrize("value", ["x" * SHORT, ["x" * SHORT], {"x": list(range(SHORT))}])
def test_what_is_long_is_so_whatever_it_is(value: Any) -> None:
    score = Feedback(length).on("x").score({"x": value})
    assert score.columns is not None
    assert score.columns["calls"] == [{"ret": length(value)}]


def test_many_short_arguments_are_long_together() -> None:
    feedback = Feedback(length).on("x[:]")
    few, many = (feedback.score({"x": [*range(n)]}).columns["calls"] for n in (10, 100))
    assert [call["args"] for call in few] == [{"text": n} for n in range(10)]
    assert all(call.keys() == {"ret"} for call in many)


def test_reasons_and_errors_are_kept_where_there_are_any() -> None:
    def says(text: str) -> tuple[float, dict[str, str]]:
        if text == "b":
            raise ValueError("no b")
        return 1.0, {"reason": "an a"}

    score = Feedback(says).on("x[:]").score({"x": ["a", "b"]})
    assert score.columns["calls"] == [
        {"args": {"text": "a"}, "meta": {"reason": "an a"}, "ret": 1.0},
        {"args": {"text": "b"}, "ret": None, "error": "ValueError: no b"},
    ]


# What is told again


@pytest.mark.parametrize("question", ["q", LONG])
def test_each_call_is_reported_with_what_it_was_given(question: str) -> None:
    evaluation = judged(run_of(["other", question]))
    asked = [{"question": question, "context": context} for context in found_of(question)]
    assert arguments(evaluation, "product")[1] == asked
    assert arguments(evaluation, "zip")[1] == asked[:1]
    grid = [{"question": q, "context": c} for q in found_of(question)[:2] for c in found_of(question)]
    assert arguments(evaluation, "grid")[1] == grid
    assert arguments(evaluation, "length")[1] == [{"text": f"{question}!"}]
    rets = [(call["ret"], call["error"], call["meta"]) for call in list(evaluation.calls("product"))[1]]
    failed = (None, "ValueError: no", {})
    assert rets == [(len(question) + 4.0, None, {}), failed, (len(str({"page": question})), None, {})]


@pytest.mark.parametrize(
    ("b", "a"),
    [([1, 2], [LONG]), ([1], [LONG, 2]), ([LONG, 1], [1, 2]), ([None, None], [LONG, 1]), ([1, 2], [LONG] * 2)],
)
def test_values_are_combined_in_the_order_of_the_signature(b: list[Any], a: list[Any]) -> None:
    def differs(b: Any, a: Any) -> float:
        return float(a != b)

    run = Runner().run(lambda q: {"a": a, "b": b}, Dataset.from_rows([{"input": "q"}]))
    feedback = Feedback(differs, version="1").on("__record__.main_output.b[:]", "__record__.main_output.a[:]")
    assert arguments(judged(run, {"x": feedback}), "x") == [[{"b": each, "a": other} for each in b for other in a]]


@pytest.mark.parametrize(
    "value",
    [
        {"selected": "a value of __record__.main_output"},
        {"$selected": 0},
        {"$float": "NaN"},
        {"$$x": {"$y": 1}},
        math.inf,
        b"raw",
        [],
        None,
    ],
)
@pytest.mark.parametrize("beside", ["", LONG])
def test_no_value_is_taken_for_anything_else(value: Any, beside: str) -> None:
    def gives(question: str) -> Any:
        return {"is": value, "beside": beside}

    run = Runner().run(gives, Dataset.from_rows([{"input": "q"}]))
    scorers = {
        "is": Feedback(lambda a, b: 1.0, version="1").on(*(f"__record__.main_output.{n}" for n in ("is", "beside")))
    }
    assert arguments(judged(run, scorers), "is") == [[{"a": value, "b": beside}]]


def test_rows_of_several_repeats_and_responses_have_their_own_arguments() -> None:
    def gives(question: str) -> Candidates:
        return Candidates([f"{question} first", f"{question} second"])

    data = Dataset.from_rows([{"input": LONG + "0"}, {"input": LONG + "1"}])
    run = Runner().run(gives, data, replications=2)
    asked = arguments(judged(run, {"length": SEVERAL["length"]}), "length")
    each = [[[{"text": f"{LONG}{n} {which}"}] for which in ("first", "second")] for n in "0011"]
    assert asked == [calls for row in each for calls in row]


def test_calls_are_reported_of_every_mode_alike_and_have_one_digest(tmp_path: Path) -> None:
    class Rag:
        def search(self, query: str) -> list[Any]:
            return found_of(query)

        def ask(self, question: str) -> str:
            return str(self.search(question)[0])

    said, digests = [], set()
    for mode in MODES:
        store = DirectoryStore(tmp_path / mode)
        feedbacks = [PRODUCT, SEVERAL["length"]]
        app = App(rag := Rag(), name="rag", feedbacks=feedbacks, mode=mode, store=store, methods=["search", "ask"])
        with app as recording:
            rag.ask(LONG)
            rag.ask("q")
        recording.close()
        evaluation = recording.evaluate() if mode == "none" else recording.evaluation
        digests.add(evaluation.digest)
        said.append([list(evaluation.calls(name)) for name in ("product", "length")])
        assert LONG not in evaluation.table("product")["calls"][0].as_py()
    assert len(digests) == 1
    assert said == [said[0]] * len(MODES)
    assert [call["args"]["context"] for call in said[0][0][0]] == found_of(LONG)


def test_rows_that_were_kept_whole_before_are_read() -> None:
    made = judged(run_of([LONG]))
    calls = [{"args": {"question": LONG, "context": c}, "ret": 1.0, "meta": {}, "error": None} for c in ("a", LONG)]
    table = made.table("product")
    cell = pa.array([orjson.dumps(calls, option=orjson.OPT_SORT_KEYS).decode()])
    before = made.manifest | {"id": "0" * 32}
    with drafted(made.store, "evaluations", before["id"]) as draft:
        for name in made.scorers:
            place = table.schema.get_field_index("calls")
            whole = table.set_column(place, table.schema.field(place), cell) if name == "product" else made.table(name)
            draft.append(f"scores/{name}", whole.combine_chunks().to_batches()[0])
        draft.seal(before)
    assert list(Evaluation(made.store, before["id"]).calls("product")) == [calls]


def test_what_the_store_has_lost_is_reported_by_its_selector(tmp_path: Path) -> None:
    evaluation = judged(run_of([LONG], DirectoryStore(tmp_path)))
    lost = {"question": {"selected": "a value of __record__.main_input"}, "context": {"selected": f"a value of {RETS}"}}
    [dataset] = (tmp_path / "datasets").iterdir()
    shutil.move(dataset, tmp_path / "elsewhere")
    assert arguments(evaluation, "product") == [[lost] * 3]
    [run] = (tmp_path / "runs").iterdir()
    shutil.rmtree(run)
    assert arguments(evaluation, "product") == [[lost] * 3]


@pytest.mark.parametrize("rets", [{}, {"rets": ["a"]}, {"rets": ["a", "b", "c"]}])
def test_another_source_is_not_taken_for_what_was_judged(rets: dict[str, Any]) -> None:
    spec = {"kind": "feedback", "selectors": {"text": "rets[:]"}, "combinations": "product"}
    calls = read_calls(spec, [{"ret": 1.0}, {"ret": 2.0}], lambda: rets)
    assert [call["args"] for call in calls] == [{"text": {"selected": "a value of rets[:]"}}] * 2


def test_only_feedbacks_have_calls() -> None:
    evaluation = judged(run_of(["q"]), {"same": lambda output: 1.0})
    for name in ("same", "other"):
        with pytest.raises(SpecError, match=f"'{name}' is not a feedback"):
            next(evaluation.calls(name))


# Who reads them


@pytest.mark.parametrize("how", [["--index", "1"], ["--scorer", "product"], ["--scorer", "product", "--lowest"]])
def test_show_tells_arguments_that_the_table_has_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    evaluation = judged(run_of(["q", LONG], DirectoryStore(tmp_path)))
    main(["show", evaluation.id, *how, "--json", "--store", str(tmp_path)], standalone_mode=False)
    rows = json.loads(capsys.readouterr().out)["rows"]["product"]
    [row] = [row for row in rows if row["_index_"] == 1]
    assert [call["args"]["context"] for call in row["calls"]] == found_of(LONG)
    assert row["calls"][1]["error"] == "ValueError: no"
    main(["show", evaluation.id, *how, "--store", str(tmp_path)], standalone_mode=False)
    assert LONG[:30] in capsys.readouterr().out.partition("call 1")[2]


def test_report_pages_tell_arguments_that_the_table_has_not() -> None:
    run = run_of(["q", LONG], replications=2)
    evaluation = judged(run)
    rows = list(Examples(Part("rag", run, evaluation), [{"scorer": s, "binary": False} for s in evaluation.scorers]))
    assert [(row["index"], row["replication"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for row in rows:
        [product] = [score for score in row["scores"] if evaluation.scorers[score["scorer"]] == "product"]
        question = LONG if row["index"] else "q"
        assert product["n_calls"] == 3
        assert [call["args"]["question"] for call in product["calls"]] == [question] * 3
        assert product["calls"][0]["args"]["context"] == f"{question} one"


def test_results_by_the_names_of_trulens_have_all_arguments() -> None:
    class Rag:
        def search(self, query: str) -> list[Any]:
            return found_of(query)

        def ask(self, question: str) -> str:
            return str(self.search(question)[0])

    feedback = trulens.Feedback(length, name="length").on(trulens.Select.RecordCalls.search.rets[:])
    recorder = trulens.TruApp(rag := Rag(), feedbacks=[feedback], methods_to_instrument=["search", "ask"])
    with recorder as recording:
        rag.ask(LONG)
    [result] = recording.get().wait_for_feedback_results().values()
    assert [call.args["text"] for call in result.calls] == found_of(LONG)
    assert result.model_dump()["calls"][1]["args"] == {"text": f"{LONG} fails"}


# How much it is


@pytest.mark.parametrize("characters", [15, *(pytest.param(n, marks=pytest.mark.slow) for n in (5, 40, 2000))])
def test_a_record_with_three_feedbacks_takes_little_beside_what_it_tells(tmp_path: Path, characters: int) -> None:
    chance, records = random.Random(1), 200

    def text() -> str:
        return "".join(chance.choices(string.ascii_letters + string.digits, k=characters))

    class Rag:
        def search(self, query: str) -> list[str]:
            return [text() for _ in range(5)]

        def ask(self, question: str) -> str:
            return self.search(question)[0][::-1]

    feedbacks = [Feedback(both, name=f"of {n}", version="1").on_input().on(RETS) for n in range(3)]
    store = DirectoryStore(tmp_path)
    app = App(rag := Rag(), name="rag", feedbacks=feedbacks, mode="with_app", store=store, methods=["search", "ask"])
    with app as recording:
        for _ in range(records):
            rag.ask(text())
    payload = sum(len(json.dumps([call["args"], call["rets"]])) for r in recording.records for call in r["calls"])
    journal = sum(file.stat().st_size for file in tmp_path.rglob("*.lines"))
    assert (journal - payload) / records <= 1000
    recording.close()
    tables = sum(file.stat().st_size for file in tmp_path.rglob("*.parquet"))
    assert (tables - payload) / records <= 1000
