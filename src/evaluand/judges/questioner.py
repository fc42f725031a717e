"""How one row is judged: the questions that a rubric asks about it.

A text that is judged whole is one question, or as many as there are samples. A text that is judged by parts is divided
first; each part is one question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from evaluand.core import identity
from evaluand.core.errors import ParameterError, described, plural
from evaluand.core.text.sentences import sentences
from evaluand.evaluation.scorer import NOTHING_EXPECTED, Score
from evaluand.judges.asking import Opinion, ask_parts, ask_verdict
from evaluand.judges.expectation import ambiguous_labels
from evaluand.judges.outcomes import abstained, score_of_parts, score_of_samples
from evaluand.judges.prompt import as_text
from evaluand.judges.replies import Unreadable
from evaluand.judges.rubric import Rubric
from evaluand.judges.rubric_fields import ITEMS, SENTENCES, Parts
from evaluand.judges.scale import Fault
from evaluand.models.chat_model import ChatModel

_T = TypeVar("_T")


@dataclass(frozen=True)
class Questioner:
    """A rubric, a model and the settings of the questions: everything that determines a verdict.

    Args:
        samples: how often each question is asked.
        first: the number of the first of them, so that members of a jury draw apart from one another.
        from_logprobs: whether values are expected ones.

    Raises:
        ParameterError: lists every fault.
    """

    rubric: Rubric
    model: ChatModel
    samples: int = 1
    from_logprobs: bool = False
    first: int = 0

    def __post_init__(self) -> None:
        if faults := list(self._faults()):
            raise ParameterError(faults)

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """Everything that may change a verdict: digest of the rubric, model and parameters."""
        asked = {"rubric": self.rubric.digest, "model": dict(self.model.spec)}
        return asked | {"samples": self.samples, "from_logprobs": self.from_logprobs}

    @cached_property
    def digest(self) -> str:
        """32 hexadecimal digits: a hash of the spec."""
        return identity.digest(self.spec).hex()

    async def judge(self, values: Mapping[str, Any]) -> Score:
        """The score of a row.

        Args:
            values: those of the rubric's variables; None where the row has none.

        Raises:
            TaskError: a request failed.
        """
        for name in self.rubric.required:
            if values.get(name) is None:
                return NOTHING_EXPECTED if name == "expected" else Score.abstained(f"no {name}")
        if self.rubric.parts is not None:
            return await self._judge_parts(self.rubric.parts, values)
        return await self._judge_whole(values)

    async def _judge_whole(self, values: Mapping[str, Any]) -> Score:
        def ask(sample: int) -> Coroutine[Any, Any, Opinion]:
            return ask_verdict(self.rubric, self.model, values, sample=sample, from_logprobs=self.from_logprobs)

        opinions = await ask_together([ask(self.first + sample) for sample in range(self.samples)])
        source = self.rubric.evidence
        return score_of_samples(opinions, None if source is None else as_text(values.get(source) or ""))

    async def _judge_parts(self, parts: Parts, values: Mapping[str, Any]) -> Score:
        reply, found = await self._divide(parts, values)
        data = {} if reply is None else {"division": reply}
        if isinstance(found, Unreadable):
            return abstained(found.reason, found.detail, {**data, "fault": found.fault})
        if not found:
            return abstained(f"no {parts.name} in the {parts.of}", None, data)
        if len(found) > parts.most:
            explanation = f"the {parts.of} has {plural(len(found), parts.name)}; the rubric allows {parts.most}"
            return abstained(f"too many parts of the {parts.of}", explanation, data | {"n_parts": len(found)})
        scores = await ask_together([self._judge_whole({**values, parts.name: part}) for part in found])
        return score_of_parts(parts, found, scores, data)

    async def _divide(self, parts: Parts, values: Mapping[str, Any]) -> tuple[str | None, list[str] | Unreadable]:
        """The parts of a text, and the reply of the model if it divided it."""
        value = values[parts.of]
        if parts.split == ITEMS:
            return None, [as_text(item) for item in value] if isinstance(value, list | tuple) else [as_text(value)]
        if parts.split == SENTENCES:
            return None, [sentence.text for sentence in sentences(as_text(value))]
        return await ask_parts(self.rubric, self.model, values)

    def _faults(self) -> Iterator[Fault]:
        if type(self.samples) is not int or self.samples < 1:
            yield ("samples",), f"is {described(self.samples)}; give an integer of at least 1"
        elif self.samples > 1 and self.model.temperature == 0:
            yield ("samples",), f"are {self.samples} equal replies at temperature 0; give the model a temperature"
        if not isinstance(self.from_logprobs, bool):
            yield ("from_logprobs",), f"is {described(self.from_logprobs)}; give true or false"
        elif self.from_logprobs and (ambiguous := ambiguous_labels(self.rubric.scale)):
            yield ("from_logprobs",), f"needs verdicts that begin differently; {ambiguous}"


async def ask_together(questions: Sequence[Coroutine[Any, Any, _T]]) -> list[_T]:
    """The answers to questions that are asked at once; if one fails, the others are abandoned."""
    tasks = [asyncio.ensure_future(question) for question in questions]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
