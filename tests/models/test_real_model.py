"""A real small model behind llama.cpp, which speaks the protocol in its own way."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest

from evaluand.models.chat_model import ChatModel
from evaluand.models.tools import Tool

ASKED = [{"role": "user", "content": "What is the capital of France? Reply in JSON."}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "certain": {"type": "boolean"}},
    "required": ["city", "certain"],
    "additionalProperties": False,
}

pytestmark = pytest.mark.slow


def test_a_schema_is_enforced(smollm: ChatModel) -> None:
    found = replace(smollm, max_tokens=100).complete(ASKED, schema=SCHEMA)
    assert found.steps == {"schema": 1}
    assert {*found.data} == {"city", "certain"}


def test_probabilities_are_reported_and_add_up(smollm: ChatModel) -> None:
    found = replace(smollm, max_tokens=5).complete(ASKED, logprobs=3)
    assert found.logprobs
    assert "".join(one["token"] for one in found.logprobs).strip() in found.text
    for one in found.logprobs:
        assert 0 < math.fsum(math.exp(logprob) for logprob in one["top"].values()) <= 1.001
        assert one["logprob"] <= 0


def test_a_stream_is_the_reply(smollm: ChatModel) -> None:
    async def read() -> tuple[list[str], Any]:
        stream = smollm.stream(ASKED)
        return [piece async for piece in stream], stream.completion

    pieces, completion = asyncio.run(read())
    assert len(pieces) > 1
    assert "".join(pieces) == completion.text
    assert completion.output_tokens
    assert completion.text == smollm.complete(ASKED).text


def test_samples_differ_and_a_seed_repeats_them(smollm: ChatModel) -> None:
    warm = replace(smollm, temperature=1.0, max_tokens=8, cache=False)
    assert len({warm.complete(ASKED, sample=sample).text for sample in range(4)}) > 1
    seeded = replace(warm, seed=7)
    assert len({seeded.complete(ASKED).text for _ in range(2)}) == 1


def test_tools_are_accepted(smollm: ChatModel) -> None:
    tool = Tool("capital", "The capital of a country.", {"type": "object", "properties": {"of": {"type": "string"}}})
    found = smollm.complete(ASKED, tools=[tool])
    assert found.text or found.tool_calls
