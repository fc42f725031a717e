"""Tools: how functions are described to a model, and how its arguments are read."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from evaluand.core.errors import SpecError, TaskError
from evaluand.models.tools import Tool, read_tools


def book(city: str, nights: int = 1, board: Literal["none", "half"] = "none", json: list[int] | None = None) -> str:
    """Book a room.

    For tonight.

    Args:
        city: where, in
            English.
        nights (int): how many.

    Returns:
        What was booked.
    """
    return f"{city} {nights} {board} {json}"


async def wait(seconds: float) -> float:
    return seconds


class Counter:
    """Counts calls."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, by: int) -> int:
        self.n += by
        return self.n

    def reset(self) -> None:
        """Start again."""
        self.n = 0


def test_a_function_is_described_by_its_signature_and_docstring() -> None:
    tool = Tool.of(book)
    assert (tool.name, tool.description) == ("book", "Book a room.\n\nFor tonight.")
    assert tool.schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["city"],
        "properties": {
            "city": {"type": "string", "description": "where, in English."},
            "nights": {"type": "integer", "description": "how many."},
            "board": {"enum": ["none", "half"], "type": "string"},
            "json": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        },
    }


def test_a_call_reads_its_arguments_and_uses_the_defaults_of_the_function() -> None:
    assert Tool.of(book).call({"city": "Rome", "nights": 2}) == "Rome 2 none None"
    assert asyncio.run(Tool.of(wait).call({"seconds": 0})) == 0
    counter = Counter()
    assert [Tool.of(counter).call({"by": 2}), Tool.of(counter.reset).call({}), counter.n] == [2, None, 0]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "the arguments of book do not fit: city: Field required"),
        ({"city": "Rome", "stars": 5}, "stars: Extra inputs are not permitted"),
        ({"city": "Rome", "nights": "many"}, "nights: Input should be a valid integer"),
        (None, "the arguments of book are no JSON object"),
    ],
)
def test_arguments_that_do_not_fit_are_reported_for_the_model(arguments: Any, fault: str) -> None:
    with pytest.raises(TaskError, match=fault):
        Tool.of(book).call(arguments)


def test_what_cannot_be_described_is_refused() -> None:
    def many(*cities: str) -> None: ...

    def undefined(city: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821, UP037

    for function, fault in ((many, "cannot be passed by name"), (undefined, "Nowhere")):
        with pytest.raises(SpecError, match=f"its arguments cannot be described: .*{fault}"):
            Tool.of(function)
    with pytest.raises(SpecError, match="give a name of at most 64 letters"):
        Tool("a b", "", {"type": "object"})
    with pytest.raises(SpecError, match="must be that of an object"):
        Tool("a", "", {"type": "array"})
    with pytest.raises(SpecError, match="two tools have the name 'book'"):
        read_tools([book, Tool.of(book)])
    with pytest.raises(SpecError, match="has no function to call"):
        Tool("a", "", {"type": "object"}).call({})
