"""What is exported: which rows and columns, how they are written, and that they can be taken back."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from support.commands import Folder, run_once
from support.forks import end_fork, start_fork
from support.warm_program import call_evaluand

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.core.errors import SpecError
from evaluand.core.files.csv import unescape_formula
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.metrics.accuracy import Accuracy
from evaluand.report.export import flat, write_csv
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Candidates, FunctionTask
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore

DATA = Dataset.from_rows(
    [
        {"name": "a", "x": 1, "y": 0.5, "truth": "A", "topic": "one", "task": "mine", "w": 2.0},
        {"name": "b", "x": 2, "y": 1.5, "truth": "B", "topic": "two", "task": "mine", "w": 1.0},
    ],
    id="name",
    input=["x", "y"],
    expected={"letter": "truth"},
    attributes=["topic", "task"],
    weight="w",
)


def answers(*values: Any, items: bool = False) -> Run:
    """A run that gave these answers to the questions 0, 1, …."""
    data = Dataset.from_rows([{"input": i} for i in range(len(values))])
    return Runner().run(FunctionTask(lambda i: values[i], items=items), data)


class Own(Scorer):
    """Gives every response the same columns of its own."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given

    @property
    def columns(self) -> dict[str, str]:
        return {name: "int64" if isinstance(value, int) else "string" for name, value in self.given.items()}

    def score(self, output: Any, expected: Any) -> Score:
        return Score(1.0, columns=self.given)


def rows(artifact: Any, table: str | None = None, **options: Any) -> list[dict[str, Any]]:
    return flat(artifact, table, **options).read_all().to_pylist()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Folder(tmp_path_factory.mktemp("finished"))
    return run_once(made, made.experiment())


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Folder:
    return Folder.copied(finished, tmp_path)


def test_a_run_gives_a_row_for_each_call_with_its_example() -> None:
    def picky(x: int, y: float) -> str:
        if x == 2:
            raise ValueError("two")
        return f"{x} and {y}"

    first, second = rows(Runner().run(picky, DATA))
    assert (first["_index_"], first["id"], first["replication"], first["status"]) == (0, "a", 0, "completed")
    assert (first["response"], first["n_responses"], first["error_type"]) == ("1 and 0.5", 1, None)
    assert (first["input.x"], first["input.y"], first["expected.letter"]) == (1, 0.5, "A")
    assert (first["attribute.topic"], first["attribute.task"], first["weight"]) == ("one", "mine", 2.0)
    assert (second["status"], second["response"], second["error_type"]) == ("failed", None, "ValueError")
    assert second["error_message"] == "two"


def test_only_rows_of_a_status_are_given_when_asked() -> None:
    def odd(i: int) -> int:
        return i if i % 2 else 1 // 0

    run = Runner().run(odd, Dataset.from_rows([{"input": i} for i in range(4)]))
    assert [row["_index_"] for row in rows(run, status="failed")] == [0, 2]
    with pytest.raises(SpecError, match="the rows of examples have no status"):
        flat(run, "examples", status="failed")


@pytest.mark.parametrize(
    ("name", "table", "choices"),
    [
        ("doubling/mine", "responses", "completed, failed, skipped"),
        ("doubling/mine", "spans", "unset, ok, error"),
        ("doubling/mine", "tidy", "scored, failed, abstained, skipped"),
        ("doubling/mine", "number", "scored, failed, abstained, skipped"),
    ],
)
def test_a_status_that_no_row_can_have_is_refused_with_the_choices(
    folder: Folder, name: str, table: str, choices: str
) -> None:
    said = folder.refused("export", name, "--table", table, "--status", "failde")
    hint = " (did you mean 'failed'?)" if "failed" in choices else ""
    assert said == f"error: rows of {table} have no status 'failde'{hint}; there are {choices}\n"


@pytest.mark.parametrize(
    ("given", "type"),
    [
        (["a", '"', ""], pa.string()),
        ([1, -7, None], pa.int64()),
        ([1.0, -2.5, 1e300], pa.float64()),
        ([True, False], pa.bool_()),
    ],
)
def test_answers_of_one_plain_type_are_a_column_of_it(given: list[Any], type: pa.DataType) -> None:
    table = flat(answers(*given)).read_all()
    assert table.schema.field("response").type == type
    assert table["response"].to_pylist() == given


def test_answers_of_several_types_are_json_that_keeps_them_apart() -> None:
    assert [row["response"] for row in rows(answers(1, 1.0, "1", [1], {"a": {}}, float("nan")))] == [
        "1",
        "1.0",
        '"1"',
        "[1]",
        '{"a":{}}',
        '{"$float":"NaN"}',
    ]


def test_several_answers_stand_with_the_first() -> None:
    first, second = rows(answers(Candidates(["x", "y"]), "z"))
    assert (first["response"], first["responses"]) == ("x", '["x","y"]')
    assert (second["response"], second["responses"]) == ("z", '["z"]')


def test_items_are_one_answer_together_and_an_empty_list_is_not_none() -> None:
    assert [row["response"] for row in rows(answers(["a", "b"], [], None, items=True))] == ['["a","b"]', "[]", None]


def test_an_evaluation_gives_a_row_for_each_score_with_example_and_response() -> None:
    run = Runner().run(FunctionTask(lambda x, y: f"{x}", name="t"), DATA, name="shop/t")
    evaluation = Evaluator().evaluate(run, {"letter": "prediction", "long": Own({"input": "mine", "length": 1})})
    found = rows(evaluation)
    assert [(r["scorer"], r["id"], r["target"]) for r in found] == [
        ("letter", "a", "letter"),
        ("letter", "b", "letter"),
        ("long", "a", None),
        ("long", "b", None),
    ]
    assert (found[0]["truth"], found[0]["prediction"], found[0]["response"]) == ("A", "1", "1")
    assert (found[0]["run"], found[0]["value"], found[0]["expected.letter"]) == ("shop/t", 0.0, "A")
    assert (found[3]["score.input"], found[3]["length"], found[3]["input.x"], found[3]["truth"]) == ("mine", 1, 2, None)
    assert [r["_index_"] for r in rows(evaluation, "long")] == [0, 1]
    assert "truth" not in rows(evaluation, "long")[0]


def test_each_answer_stands_with_its_own_score_through_replications_and_alternatives() -> None:
    def answer(i: int, replication: int) -> Any:
        return None if i == 1 else Candidates([f"{i}.{replication}a", f"{i}.{replication}b"])

    data = Dataset.from_rows([{"_index_": 10 * i, "input": i, "expected": "x"} for i in range(3)])
    run = Runner().run(answer, data, replications=2)
    found = rows(Evaluator().evaluate(run, {"same": "exact_match"}))
    assert [(r["_index_"], r["replication"], r["response"]) for r in found] == [
        (0, 0, "0.0a"),
        (0, 0, "0.0b"),
        (0, 1, "0.1a"),
        (0, 1, "0.1b"),
        (10, 0, None),
        (10, 1, None),
        (20, 0, "2.0a"),
        (20, 0, "2.0b"),
        (20, 1, "2.1a"),
        (20, 1, "2.1b"),
    ]


def test_own_columns_of_one_name_and_two_types_become_json() -> None:
    evaluation = Evaluator().evaluate(answers("a"), {"one": Own({"found": 1}), "two": Own({"found": "1"})})
    assert [row["found"] for row in rows(evaluation)] == ["1", '"1"']
    assert [row["found"] for row in rows(evaluation, "one")] == [1]


def test_an_aggregation_gives_a_column_for_each_attribute() -> None:
    run = Runner().run(lambda x, y: "A", DATA, name="t")
    evaluation = Evaluator().evaluate(run, {"letter": "prediction"}, name="shop/t")
    aggregation = Aggregator().aggregate([evaluation], [Measure("letter", Accuracy(), by=("topic", "task"))])
    found = [(r["task"], r["attribute.topic"], r["attribute.task"], r["value"], r["n"]) for r in rows(aggregation)]
    assert found == [
        ("shop/t", None, None, 0.5, 2),
        ("shop/t", "one", None, 1.0, 1),
        ("shop/t", "two", None, 0.0, 1),
        ("shop/t", None, "mine", 0.5, 2),
    ]


def test_the_value_over_all_rows_is_reported_from_that_of_rows_without_an_attribute() -> None:
    data = Dataset.from_rows([{"input": "a", "expected": "a", "topic": t} for t in ("x", None)], attributes=["topic"])
    evaluation = Evaluator().evaluate(Runner().run(str.strip, data), {"same": "exact_match"})
    aggregation = Aggregator().aggregate([evaluation], [Measure("same", Accuracy(), by="topic")])
    found = [(row["by"], row["attribute.topic"], row["n"]) for row in rows(aggregation)]
    assert found == [("[]", None, 2), ('["topic"]', "x", 1), ('["topic"]', None, 1)]


def test_a_dataset_gives_its_columns_and_makes_the_same_dataset_again(tmp_path: Path) -> None:
    stored = DATA.save(DirectoryStore(tmp_path / "store"))
    path = tmp_path / "again.parquet"
    pq.write_table(flat(stored).read_all(), path)
    roles = {"id": "name", "input": ["x", "y"], "expected": {"letter": "truth"}}
    again = Dataset.from_file(path, **roles, attributes=["topic", "task"], weight="w")
    assert again.id == stored.id


def test_spans_are_rows_with_seconds() -> None:
    def traced(i: int, task_span: Any) -> int:
        with task_span.span("look up", query="q"):
            return i

    run = Runner().run(traced, Dataset.from_rows([{"input": 1, "id": "one"}]))
    found = rows(run, "spans")
    assert [(row["id"], row["name"]) for row in found][-1] == ("one", "look up")
    assert all(isinstance(row["duration"], float) for row in found)
    assert rows(answers(1), "spans") == [] or rows(answers(1), "spans")[0]["span"] == 0


def test_an_empty_dataset_gives_a_header_and_no_rows() -> None:
    data = Dataset.from_arrow(pa.table({"input": pa.array([], pa.string())}))
    run = Runner().run(str.upper, data)
    evaluation = Evaluator().evaluate(run, {"same": lambda output: 1.0})
    for artifact in (data, run, evaluation):
        file = io.BytesIO()
        assert write_csv(flat(artifact), file) == 0
        assert file.getvalue().startswith((b'"_index_"', b'"run"'))


@pytest.mark.slow
def test_every_shard_and_batch_lines_up_with_its_examples(tmp_path: Path) -> None:
    n = 10_000
    data = Dataset.from_rows([{"_index_": 3 * i, "input": i, "expected": i} for i in range(n)])
    run = Runner(DirectoryStore(tmp_path)).run(FunctionTask(lambda i: i + 1), data, limit=n - 1)
    table = flat(Evaluator().evaluate(run, {"same": "exact_match"})).read_all()
    assert table["_index_"].to_pylist() == [3 * i for i in range(n - 1)]
    assert table["expected"].to_pylist() == list(range(n - 1))
    assert table["response"].to_pylist() == list(range(1, n))


def test_an_open_run_is_not_exported() -> None:
    store = MemoryStore()
    run = Runner(store).run(str.upper, Dataset.from_rows([{"input": "a"}]))
    sealed = ("digest", "counts", "tables", "sealed", "seal")
    other = MemoryStore()
    other.open({key: value for key, value in run.manifest.items() if key not in sealed})
    with pytest.raises(SpecError, match="is not finished; resume it first"):
        flat(Run(other, run.id))


# written


HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\n=1", "a,b", 'say "hi"', "", "two\nlines", "'", "ünï", " =1"]
HOSTILE += ["\xa0=1", "\u3000@x", "\u200b+1", "＝1", " －1", "'\ufeff=1", "\x9b31m", " - a list"]
HOSTILE += [f"{unseen}=1" for unseen in "\u202e\u2066\u061c\ufe0f\u2800\u115f\u3164\x01\x1b\x7f\x9b"]
HOSTILE += [f"{sign}1" for sign in "\ufe62\ufe63\ufe66\ufe6b\u2212"]
UNTOUCHED = {"a,b", 'say "hi"', "", "two\nlines", "'", "ünï", "\x9b31m"}


def written(run: Run, **options: Any) -> list[list[str]]:
    file = io.BytesIO()
    write_csv(flat(run), file, **options)
    return list(csv.reader(io.StringIO(file.getvalue().decode(), newline="")))


def test_texts_that_a_spreadsheet_would_execute_get_a_leading_quote() -> None:
    header, *cells = written(answers(*HOSTILE))
    place = header.index("response")
    for given, row in zip(HOSTILE, cells, strict=True):
        assert row[place] == (given if given in UNTOUCHED else "'" + given)
        assert unescape_formula(row[place]) == given


def test_raw_leaves_every_text_as_it_is() -> None:
    header, *cells = written(answers(*HOSTILE), raw=True)
    assert [row[header.index("response")] for row in cells] == HOSTILE


def test_numbers_are_no_formulas_and_need_no_quote() -> None:
    header, *cells = written(answers(-1, -2.5, "x"))
    assert [row[header.index("response")] for row in cells] == ["-1", "-2.5", '"x"']


def test_names_of_columns_are_made_safe_too() -> None:
    data = Dataset.from_rows([{"=cmd()": 1, "b": 2}], input="b", metadata="=cmd()")
    file = io.BytesIO()
    write_csv(flat(data), file)
    assert file.getvalue().splitlines()[0] == b'"_index_","\'=cmd()","b"'


def test_pandas_and_arrow_read_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with path.open("wb") as file:
        write_csv(flat(answers(*HOSTILE)), file, raw=True)
    assert pd.read_csv(path, keep_default_na=False)["response"].tolist() == HOSTILE
    options = pa.csv.ParseOptions(newlines_in_values=True)
    assert pa.csv.read_csv(path, parse_options=options)["response"].to_pylist() == HOSTILE


# the command


def test_a_run_goes_to_stdout_as_csv(folder: Folder) -> None:
    header, *found = csv.reader(io.StringIO(folder.done("export", "doubling/mine"), newline=""))
    assert [dict(zip(header, row, strict=True))["response"] for row in found] == [
        "about 0",
        "about 2",
        "about 4",
        "",
        "no idea",
        "about 10",
    ]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_the_suffix_says_the_format(folder: Folder, form: str) -> None:
    path = folder.path / f"out.{form}"
    reported = folder.json("export", "doubling/mine", "--table", "tidy", "-o", path)
    read = {"csv": pd.read_csv, "jsonl": lambda p: pd.read_json(p, lines=True), "parquet": pd.read_parquet}[form]
    frame = read(path)
    assert (reported["rows"], reported["columns"]) == (12, list(frame.columns))
    assert frame[frame["scorer"] == "number"]["status"].tolist() == ["scored"] * 3 + ["failed", "abstained", "scored"]


def test_json_lines_hold_json_and_not_text_of_it(folder: Folder) -> None:
    folder.call("run", folder.experiment("app.py:table", "t.yaml"), "--limit", 1)  # the scorer of text fails throughout
    line = json.loads(folder.done("export", "doubling/mine", "--format", "jsonl"))
    assert line["response"] == {"given": 0, "parts": [1, 2.5, None]}


def test_of_several_of_one_name_the_one_with_the_table_is_meant(folder: Folder) -> None:
    for name, table in [("doubling/mine", "number"), ("doubling/mine", "spans"), ("doubling", "metrics")]:
        assert folder.done("export", name, "--table", table, "--format", "csv")
    dataset = folder.done("export", folder.id("datasets"))
    assert dataset.splitlines()[:2] == ['"_index_","question","answer","parity"', '0,"0","0","even"']


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["doubling/mine", "--table", "numbr"], 1, "has no table 'numbr' (did you mean 'number'?)"),
        (["nobody"], 1, "nothing is called 'nobody' here"),
        (["nobody", "--table", "tidy"], 1, "nothing is called 'nobody' here"),
        (["doubling/mine", "--format", "parquet"], 2, "Parquet cannot be written to stdout; give -o FILE"),
        (["doubling/mine", "-o", "x.xlsx"], 2, "the suffix '.xlsx' is not a known format"),
        (["doubling/mine", "--json"], 2, "--json needs -o FILE"),
        (["doubling", "--status", "failed"], 1, "the rows of metrics have no status"),
        (["doubling/mine", "-o", "no/such/folder.csv"], 1, "No such file or directory"),
    ],
)
def test_what_cannot_be_exported_is_reported(folder: Folder, arguments: list[str], code: int, message: str) -> None:
    assert message in folder.refused("export", *arguments, code=code)


def test_an_export_that_fails_leaves_the_old_file_and_no_other(folder: Folder) -> None:
    (folder.path / "out").mkdir()
    path = folder.path / "out" / "old.csv"
    path.write_text("old")
    table = next((folder.path / "store" / "runs").glob("*/responses-*.parquet"))
    table.write_bytes(table.read_bytes()[:-200])
    assert "cannot be read" in folder.refused("export", "doubling/mine", "-o", path)
    assert [p.read_text() for p in path.parent.iterdir()] == ["old"]


def test_a_link_is_written_through(folder: Folder) -> None:
    (folder.path / "link.csv").symlink_to(folder.path / "real.csv")
    folder.done("export", "doubling/mine", "-o", folder.path / "link.csv")
    assert (folder.path / "link.csv").is_symlink()
    assert (folder.path / "real.csv").read_text().startswith('"_index_"')


CONTROLLING = "\x9b2J\u202e\x7f\u2066plain é"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["export", "--format", "jsonl"], r'"\u009b2J\u202e\u007f\u2066plain é"'),
        (["export", "--format", "csv"], r'"\u009b2J\u202e\u007f\u2066plain é"'),
        (["list", "--json"], r'"\u202eplain é"'),
    ],
)
def test_what_was_answered_does_not_control_the_terminal(tmp_path: Path, command: list[str], shown: str) -> None:
    data = Dataset.from_rows([{"input": CONTROLLING}])
    name = "\u202eplain é"
    Runner(DirectoryStore(tmp_path)).run(FunctionTask(str, version="1"), data, name=name)
    artifact = [name] if command[0] == "export" else []
    printed = show_on_terminal(*command, *artifact, "--store", str(tmp_path))
    assert shown in printed
    assert not {"\x9b", "\u202e", "\x7f", "\u2066"} & {*printed}


def show_on_terminal(*arguments: str) -> str:
    """What `evaluand` prints on a terminal."""
    controlled, terminal = pty.openpty()
    process = start_fork(lambda: os._exit(call_evaluand([*arguments], {1: terminal})))
    os.close(terminal)
    parts = []
    with suppress(OSError):  # the end, for a terminal
        while part := os.read(controlled, 65536):
            parts.append(part)
    assert end_fork(process) == 0
    os.close(controlled)
    return b"".join(parts).decode()


@pytest.mark.slow
def test_a_reader_that_has_enough_ends_the_export_quietly(folder: Folder) -> None:
    command = f"{sys.executable} -m evaluand.cli export doubling/mine --store {folder.path}/store | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith('"_index_"')


@pytest.mark.parametrize("form", ["croissant", "datapackage"])
def test_a_dataset_is_exported_with_its_description(folder: Folder, form: str) -> None:
    rows = [{"q": "a", "truth": "A", "said": "A"}, {"q": "b", "truth": "B", "said": "C"}]
    path = folder.write("rows.jsonl", rows)
    roles = ("--input", "q", "--expected", "truth", "--response", "said")
    folder.done("import", path, "--dataset", path, *roles)
    output = str(folder.path / "out" / f"{form}.json")
    printed = json.loads(folder.done("export", "rows", "-o", output, "--json"))
    assert printed == {"file": output, "format": form, "rows": 2}
    again = Dataset.from_file(output)
    assert [(example.input, example.expected) for example in again] == [("a", "A"), ("b", "B")]
    refused = folder.refused("export", "rows", "-o", output, "--status", "failed", code=2)
    assert f"{form}.json describes a complete dataset; leave out the other options" in refused
