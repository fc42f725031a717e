"""One question to a model, and its reply. A reply that cannot be read is an opinion without a verdict, not an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evaluand.core.json_like import escape_surrogates
from evaluand.judges.expectation import TOP, expected_value
from evaluand.judges.prompt import Message
from evaluand.judges.replies import (
    NO_JSON,
    OTHER_TEXT,
    Unreadable,
    Verdict,
    ending_fault,
    read_parts,
    read_verdict,
)
from evaluand.judges.rubric import Rubric
from evaluand.models import structured
from evaluand.models.chat_model import ChatModel
from evaluand.models.completion import Completion, UnusableReply
from evaluand.trace.spans import current_span


@dataclass(frozen=True)
class Opinion:
    """The answer of a model to one question.

    Attributes:
        reply: its text.
        verdict: the verdict in the reply, or why it cannot be read.
        value: the value of the verdict, or the expected value; None without one.
        reason: why there is no value; None if there is one.
        steps: the number of requests for each step of structured output.
        probabilities: label → probability, if the value is an expected one.
    """

    reply: str
    verdict: Verdict | Unreadable
    value: float | None = None
    reason: str | None = None
    steps: Mapping[str, int] = field(default_factory=dict)
    probabilities: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str | None:
        return self.verdict.level.label if isinstance(self.verdict, Verdict) else None

    @property
    def explanation(self) -> str | None:
        """The judge's reasons, or what the reply has instead."""
        return self.verdict.reasons if isinstance(self.verdict, Verdict) else self.verdict.detail

    @property
    def data(self) -> dict[str, Any]:
        """The data to store with the score."""
        details = {
            "evidence": self.verdict.evidence if isinstance(self.verdict, Verdict) else None,
            "fault": self.verdict.fault if isinstance(self.verdict, Unreadable) else None,
            "probabilities": dict(self.probabilities) or None,
            "steps": dict(self.steps) or None,
        }
        return {"reply": self.reply, **{name: value for name, value in details.items() if value is not None}}


async def ask_verdict(
    rubric: Rubric, model: ChatModel, values: Mapping[str, Any], *, sample: int = 0, from_logprobs: bool = False
) -> Opinion:
    """The verdict of a model on some material.

    Args:
        values: of the variables of the rubric's material, none of them null.
        sample: the number of the repeat of the same question.
        from_logprobs: whether the value is the expected one.

    Raises:
        TaskError: there is no reply.
    """
    logprobs = TOP if from_logprobs else 0

    def read(text: str) -> Verdict | Unreadable:
        return read_verdict(text, rubric.scale, rubric.keys)

    form = _ReplyForm(rubric.schema, read)
    completion = await _ask(model, rubric.messages(values), form, sample=sample, logprobs=logprobs)
    reply, steps = escape_surrogates(completion.text), completion.steps
    verdict = ending_fault(completion) or read(reply)
    if isinstance(verdict, Unreadable):
        return Opinion(reply, verdict, reason=verdict.reason, steps=steps)
    if not from_logprobs:
        return Opinion(reply, verdict, verdict.level.value, steps=steps)
    found = expected_value(reply, completion.logprobs, rubric.scale, verdict.level)
    if isinstance(found, str):
        return Opinion(reply, verdict, reason=f"no expected value: {found}", steps=steps)
    return Opinion(reply, verdict, found.value, steps=steps, probabilities=found.probabilities)


async def ask_parts(rubric: Rubric, model: ChatModel, values: Mapping[str, Any]) -> tuple[str, list[str] | Unreadable]:
    """The reply of a model that was asked to divide a text, and the parts.

    Raises:
        TaskError: there is no reply.
    """
    completion = await _ask(model, rubric.messages_to_divide(values), _ReplyForm(rubric.schema_to_divide, read_parts))
    reply = escape_surrogates(completion.text)
    return reply, ending_fault(completion) or read_parts(reply)


class _ReplyForm(structured.Structure):
    """The schema of a judge's reply; the judge is asked again only if the form of its reply is wrong.

    Refusals, and verdicts that are not on the scale, are answers; asking again would put pressure on the judge.
    """

    def __init__(self, schema: Mapping[str, Any], reader: Callable[[str], Any]) -> None:
        self.json_schema = schema
        self._reader = reader

    def read(self, text: str) -> tuple[Any, str]:
        found = self._reader(text)
        if isinstance(found, Unreadable) and found.is_form:
            return None, _FORM_FAULTS.get(found.fault, found.detail)
        return found, ""


_FORM_FAULTS: Final = {NO_JSON: structured.NO_JSON, OTHER_TEXT: structured.OTHER_TEXT}


async def _ask(model: ChatModel, messages: Sequence[Message], form: _ReplyForm, **options: Any) -> Completion:
    """The answer of a model, even if it has no usable reply."""
    try:
        return await model.complete_async(messages, current_span(), schema=form, **options)
    except UnusableReply as error:
        return error.completion
