"""Outputs are validated against the schema that their task declares, whatever kind of task it is."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from pydantic import BaseModel

from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.data.schema.data import DataSchema, DyffDataSchema
from evaluand.data.schema.values import ValueSchema
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Candidates, Task, task
from evaluand.run.tasks.chunk import Chunk
from evaluand.run.tasks.estimator import EstimatorTask
from evaluand.run.tasks.program import ProgramTask
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.run.tasks.service import LocalServiceTask

DATA = Dataset.from_rows([{"input": "good"}, {"input": "bad"}])
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def answer(text: str) -> dict[str, Any]:
    return {"text": text} if text == "good" else {"text": 3}


async def answer_async(text: str) -> dict[str, Any]:
    return answer(text)


class Answer(BaseModel):
    text: str


class Answering(Task[str, dict[str, Any]]):
    output_schema = Answer

    def do_run(self, input: str, task_span: Any) -> dict[str, Any]:
        return answer(input)


class Duck:
    output_schema = TEXT

    def do_run(self, input: str, task_span: Any) -> dict[str, Any]:
        return answer(input)


class Model:
    """An estimator that is fitted already."""

    def predict(self, inputs: Any) -> Any:
        return np.array([len(text) for text in inputs])


def program(folder: Path) -> ProgramTask:
    (folder / "bot.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    text = json.loads(line)['input']\n"
        "    print(json.dumps({'output': {'text': text if text == 'good' else 3}}), flush=True)\n"
    )
    return ProgramTask(command=[sys.executable, "bot.py"], folder=str(folder), output_schema="text.Text", version="1")


def recorded(folder: Path) -> RecordedTask:
    (folder / "outputs.jsonl").write_text("\n".join(json.dumps({"said": answer(text)}) for text in ("good", "bad")))
    return RecordedTask(path=str(folder / "outputs.jsonl"), response="said", output_schema=Answer)


KINDS: dict[str, Callable[[Path], Any]] = {
    "function": lambda folder: task(answer, output_schema=TEXT),
    "async function": lambda folder: task(answer_async, output_schema=Answer),
    "class": lambda folder: Answering(),
    "object with do_run": lambda folder: Duck(),
    "program": program,
    "recorded": recorded,
    "service": lambda folder: LocalServiceTask(lambda row: answer(row["input"]), output_schema=TEXT),
}


def reasons(run: Run) -> list[str | None]:
    return [row.error["message"] if row.error else None for row in run]


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_that_breaks_the_schema_fails_its_row_with_the_reason(kind: str, tmp_path: Path) -> None:
    run = Runner().run(KINDS[kind](tmp_path), DATA)
    assert [row.status for row in run] == ["completed", "failed"]
    name = "item 0" if kind == "service" else "output"
    assert reasons(run) == [None, f"{name}.text is an integer (3), not text: it does not fit the output schema"]
    assert [row.error["code"] for row in run if row.error] == ["schema"]


def test_an_estimators_predictions_are_validated() -> None:
    run = Runner().run(EstimatorTask(Model(), output_schema=Literal[4, 5]), DATA)
    assert reasons(run) == [None, "output 3 is none of 4, 5: it does not fit the output schema"]


def test_each_item_of_a_task_that_declares_items_is_validated() -> None:
    chunks = Chunk(6, unit="characters", output_schema={"type": "string", "maxLength": 3})
    run = Runner().run(chunks, Dataset.from_rows([{"input": "a b"}, {"input": "a b. c defg"}, {"input": ""}]))
    assert [row.status for row in run] == ["completed", "failed", "completed"]
    assert "output, item 0 has 5 characters, more than 3" in str(reasons(run)[1])


def test_each_candidate_is_validated_and_no_answer_is_not() -> None:
    @task(version="1", output_schema=str)
    def guess(text: str) -> Any:
        return {"none": None, "good": Candidates(["a", "b"]), "bad": Candidates(["a", 7])}[text]

    run = Runner().run(guess, Dataset.from_rows([{"input": each} for each in ("none", "good", "bad")]))
    assert reasons(run) == [None, None, "output 1 is an integer (7), not text: it does not fit the output schema"]


def test_several_faults_of_an_output_are_in_one_reason() -> None:
    rows = {"type": "array", "items": {"type": "string"}}
    assert ValueSchema(rows).fault([1, 2, 3, "a", 4, 5]) == (
        "output[0] is an integer (1), not text; output[1] is an integer (2), not text; output[2] is an integer (3),"
        " not text; and 2 more faults"
    )


@dataclass
class Spoken:
    text: str


@pytest.mark.parametrize(
    ("schema", "output"),
    [
        (Answer, Answer(text="a")),
        (Answer, Spoken("a")),
        (list[float], np.array([0.5, 1.0])),
        (dt.date, dt.date(2026, 11, 22)),
        (dt.date, "2026-11-22"),
        (bytes, b"\xff"),
        (bytes, "/w=="),
        (pa.schema([("text", pa.string())]), {"text": None}),
        (DyffDataSchema(components=["text.Text", "classification.Label"]), {"text": "a", "label": "b"}),
        (DyffDataSchema(components=["text.Text"]).model_dump(), {"text": "a"}),
        (DataSchema.make_output_schema("text.Text"), {"text": "a"}),
        (DataSchema.make_output_schema("text.Text").model_dump(), {"text": "a"}),
        (str | None, None),
    ],
)
def test_a_schema_may_have_any_form_and_an_output_any_that_is_stored(schema: Any, output: Any) -> None:
    assert ValueSchema(schema).fault(output) == ""


def test_forms_of_one_schema_have_one_identity() -> None:
    assert len({ValueSchema(each) for each in (TEXT, Answer, "text.Text", DataSchema.make_output_schema(Answer))}) == 1


def test_the_schema_is_part_of_the_identity_of_a_run() -> None:
    runner = Runner()
    first, second, third = (
        runner.run(task(answer, version="1", output_schema=schema), DATA) for schema in (None, TEXT, Answer)
    )
    assert first.counts == {"completed": 2}
    assert first.id != second.id == third.id


def test_a_wrong_schema_is_reported_before_anything_is_called() -> None:
    with pytest.raises(
        SpecError, match=r"output_schema: no schema is called 'text.Txt' \(did you mean 'text.Text'\?\)"
    ):
        Runner().run(task(answer, output_schema="text.Txt"), DATA)


def test_outputs_are_validated_in_processes_too() -> None:
    run = Runner(engine=ProcessEngine(1)).run(task(answer, output_schema=TEXT), DATA)
    assert [row.status for row in run] == ["completed", "failed"]
