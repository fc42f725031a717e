"""Replies in the manner of ten model families are read as their list says, which was written before the reader."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from models.scripted_server import REPLIES, ScriptedServer

from evaluand import ChatModel
from evaluand.core.errors import EvaluandError, EvaluandWarning
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.evaluation.scorers.json_equality import JsonEquality
from evaluand.evaluation.scorers.numeric_answer import NumericAnswer
from evaluand.evaluation.scorers.pattern import Includes
from evaluand.models.completion import Completion, UnusableReply
from evaluand.run.tasks.multiple_choice import MultipleChoice

SCORERS = {
    "exact_match": ExactMatch,
    "includes": Includes,
    "json_equality": JsonEquality,
    "numeric_answer": NumericAnswer,
}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


async def ask(model: ChatModel, question: str, is_streamed: bool) -> Completion:
    messages = [{"role": "user", "content": question}]
    if not is_streamed:
        return await model.complete_async(messages)
    stream = model.stream(messages)
    async for _ in stream:
        pass
    return stream.completion


def grade_of(expect: dict[str, Any], text: str, model: ChatModel) -> Any:
    """The grade of an answer: a number, or `abstained`."""
    scorer = dict(expect["scorer"])
    kind = scorer.pop("kind")
    if kind == "multiple_choice":
        input = {"question": expect["question"], "choices": scorer["choices"]}
        chosen = MultipleChoice(model).read_reply(input, text)["prediction"]
        return "abstained" if chosen is None else int(chosen == expect["expected"])
    normalise = {"normalise": tuple(scorer.pop("normalise"))} if "normalise" in scorer else {}
    value = SCORERS[kind](**scorer, **normalise).score(text, expect["expected"]).value
    return "abstained" if value is None else value


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply["id"])
def test_reply(server: ScriptedServer, reply: dict[str, Any]) -> None:
    expect, url = reply["expect"], server.url(reply["protocol"])
    model = ChatModel(url, reply["id"], version="1", protocol=reply["protocol"], timeout=5, cache=False)
    if expect["error"] is not None:
        with pytest.raises(EvaluandError) as failure:
            asyncio.run(ask(model, expect["question"], "events" in reply))
        assert expect["error"] in f"{getattr(failure.value, 'code', '')} {failure.value}"
        assert getattr(failure.value, "stops", False) or not expect.get("stops")
        return
    fault: UnusableReply | None = None
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            completion = asyncio.run(ask(model, expect["question"], "events" in reply))
        except UnusableReply as failed:
            fault, completion = failed, failed.completion
    assert "noted" not in expect or [note for note in notes if issubclass(note.category, EvaluandWarning)]
    assert completion.ending == expect.get("ending", completion.ending)
    assert (completion.text or "").strip() == (expect["answer"] or "")
    assert "".join((completion.reasoning or "").split()) == "".join((expect["reasoning"] or "").split())
    calls = [{"name": call.name, "arguments": call.arguments} for call in completion.tool_calls]
    assert calls == expect["tool_calls"]
    usage = expect.get("usage", {})
    assert {name: getattr(completion, name) for name in usage} == usage
    if expect["grade"] == "failed":
        assert fault is not None
    elif expect["grade"] is not None:
        assert fault is None
        assert grade_of(expect, completion.text, model) == expect["grade"]
