"""Summaries of texts of any length."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

from evaluand.core.errors import TaskError
from evaluand.run.tasks.chat import AskingTask, ChatModel
from evaluand.run.tasks.chunk import Chunk
from evaluand.run.tasks.instruct import Instruct
from evaluand.trace.spans import TaskSpan


@dataclass(frozen=True)
class Summary(AskingTask[str, str]):
    """A model's summary of a document.

    A document that is longer than `max_length` is divided into chunks; these are summarised one by one, and so is what
    their summaries come to, until it is one chunk. A document without words has an empty summary.

    Args:
        model: what writes the summary.
        instruction: what a summary is to be like.
        max_length: how many characters the model is given at a time.
        concurrency: how many chunks are summarised at a time.
    """

    model: ChatModel
    _: KW_ONLY
    instruction: str = "Summarize the text in a few sentences. Reply with the summary only."
    max_length: int = 6000
    concurrency: int = 4

    kind = "summary"

    def __post_init__(self) -> None:
        _ = self._chunk  # refuses what is no length

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if not input.strip():
            return ""
        text = input
        while len(chunks := self._chunk.run(text, task_span)) > 1:
            parts = self._instruct.run_concurrently(chunks, task_span, self.concurrency)
            joined = "\n\n".join(part.strip() for part in parts)
            if len(joined) >= len(text):
                told = f"the summaries of {len(chunks)} chunks are together no shorter than the chunks"
                raise TaskError(f"{told}; lower the model's max_tokens or raise max_length", code="length")
            text = joined
        return self._instruct.run(text, task_span)

    @property
    def _told(self) -> dict[str, Any]:
        chunked = {"chunk": Chunk.behaviour, "max_length": self.max_length}
        return {"behaviour": self.behaviour, "instruction": self.instruction, **chunked}

    @cached_property
    def _chunk(self) -> Chunk:
        return Chunk(self.max_length)

    @cached_property
    def _instruct(self) -> Instruct:
        return Instruct(self.model, instruction=self.instruction)
