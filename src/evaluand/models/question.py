"""One request to a model, independent of the protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

from evaluand.core import identity
from evaluand.models.tools import Tool

Protocol = Literal["chat", "responses", "anthropic", "gemini"]


class Form(NamedTuple):
    """The form that a server enforces on a reply.

    Attributes:
        schema: the JSON Schema; None for any JSON object.
        name: of the schema, for the server.
        is_strict: whether the schema is in the subset that servers enforce completely: each object has no further
            properties and requires all it has.
    """

    schema: Mapping[str, Any] | None = None
    name: str = "reply"
    is_strict: bool = False


@dataclass(frozen=True)
class Question:
    """One request.

    Attributes:
        messages: as `read_messages` returns them.
        tools: the tools whose calls the model may request.
        required_tool: the tool that it must call, if any.
        form: the form of the reply; None for text.
        logprobs: how many of the likeliest tokens are reported at each position; 0 for no probabilities.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Tool] = ()
    required_tool: str | None = None
    form: Form | None = None
    logprobs: int = 0


@dataclass(frozen=True)
class Settings:
    """The settings of a model that are sent with each request; None leaves one to the server.

    Attributes:
        max_tokens_name: the name under which chat completions of the server take `max_tokens`.
    """

    name: str
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    parameters: Mapping[str, Any] | None = None
    max_tokens_name: str = "max_tokens"

    def repeated(self, *numbers: int) -> Self:
        """The settings for a repeat of a question: a declared seed is that of the first, each other has its own.

        Args:
            numbers: of the repeat, all 0 for the first.
        """
        if self.seed is None or not any(numbers):
            return self
        drawn = identity.digest([self.seed, *numbers])
        return replace(self, seed=int.from_bytes(drawn[:4], "big") >> 1)  # servers take 31 bits


def without_none(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not left to the server."""
    return {name: value for name, value in settings.items() if value is not None}
