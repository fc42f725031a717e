"""Each behaviour of the scripted server leads to the grade that it declares, or to a failed row with the reason."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from models.scripted_server import BEHAVIOURS, ScriptedServer

from evaluand import ChatModel, ChatTask, Dataset, Evaluator, Policy, Runner
from evaluand.core.errors import EvaluandError, EvaluandWarning
from evaluand.run.tasks.multiple_choice import MultipleChoice
from evaluand.store.store import MemoryStore

POLICY = Policy(concurrency=1, retries=2, backoff=0.0)


def population(city: str) -> int:
    """The population of a city.

    Args:
        city: its English name.
    """
    return 2_100_000


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


def task_of(behaviour: dict[str, Any], model: ChatModel) -> Any:
    async def streamed(question: str) -> str:
        stream = model.stream([{"role": "user", "content": question}])
        async for _ in stream:
            pass
        return stream.completion.text

    if behaviour.get("stream"):
        return streamed
    if behaviour["result"]["scorer"]["kind"] == "multiple_choice":
        return MultipleChoice(model)
    return ChatTask(model, prompt="{{ question }}", tools=[population] if behaviour.get("tools") else ())


def scorer_of(result: dict[str, Any]) -> dict[str, Any]:
    is_choice = result["scorer"]["kind"] == "multiple_choice"
    return {"kind": "prediction"} if is_choice else result["scorer"]


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour["name"])
def test_behaviour(server: ScriptedServer, behaviour: dict[str, Any]) -> None:
    name, result = behaviour["name"], behaviour["result"]
    model = ChatModel(
        server.url(behaviour["protocol"]),
        name,
        version="1",
        protocol=behaviour["protocol"],
        seed=result.get("seed"),
        timeout=5,
        cache=False,
    )
    row = {"question": result["question"], "choices": result["scorer"].get("choices"), "answer": result["expected"]}
    roles = {"input": ["question", "choices"] if row["choices"] else "question", "expected": "answer"}
    questions = [f"{row['question']}{' ' * n}" for n in range(behaviour.get("rows", 1))]
    data = Dataset.from_rows([row | {"question": question} for question in questions], **roles)
    task, replications = task_of(behaviour, model), behaviour.get("replications")
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        if result.get("stops"):
            with pytest.raises(EvaluandError) as error:
                Runner(MemoryStore(), POLICY).run(task, data, replications=replications)
            assert result["failed"] in str(error.value)
            assert len(server.asked[name]) == result["requests"]
            return
        run = Runner(MemoryStore(), POLICY).run(task, data, replications=replications)
    rows = list(run)
    if "requests" in result:
        assert len(server.asked[name]) == result["requests"]
    if "failed" in result:
        assert rows[0].error, rows[0].responses
        assert result["failed"].casefold() in f"{rows[0].error['code']} {rows[0].error['message']}".casefold()
        return
    assert rows[0].error is None
    answers = [output["reply"] if row["choices"] else output for each in rows for output in each.responses]
    assert result["answer"].strip() in [answer.strip() for answer in answers]
    if "different" in result:
        assert len(set(answers)) == result["different"]
        return
    assert "noted" not in result or [note for note in notes if issubclass(note.category, EvaluandWarning)]
    if "usage" in result:
        assert run.table()["usage"][0].as_py().items() >= result["usage"].items()
    [grade] = Evaluator(run.store).evaluate(run, {"right": scorer_of(result)}).table("right").to_pylist()
    assert (grade["status"] if grade["value"] is None else grade["value"]) == result["grade"], grade["explanation"]
