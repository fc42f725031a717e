"""Summaries of texts of any length."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Annotated, Any

from evaluand.core.errors import TaskError
from evaluand.core.parameters import Within
from evaluand.models.chat_model import ChatModel
from evaluand.run.parameters import check_parameters
from evaluand.run.tasks.asking import AskingTask
from evaluand.run.tasks.chunk import Chunk
from evaluand.run.tasks.instruct import Instruct
from evaluand.trace.spans import TaskSpan


@dataclass(frozen=True)
class Summary(AskingTask[str, str]):
    """A model's summary of a document.

    A document longer than `max_length` is split into chunks, which are summarised one by one; their joined summaries
    are summarised again, until they fit into one chunk. A document without words has an empty summary.

    Args:
        model: the model that writes the summary.
        instruction: what the summary should be like.
        max_length: the largest number of characters for the model at a time.
        concurrency: the number of chunks that are summarised concurrently.
        output_schema: what each output must be; see `Task`.
    """

    model: ChatModel
    _: KW_ONLY
    instruction: str = "Summarize the text in a few sentences. Reply with the summary only."
    max_length: Annotated[int, Within(1)] = 6000
    concurrency: Annotated[int, Within(1)] = 4
    output_schema: Any = None

    kind = "summary"

    def __post_init__(self) -> None:
        check_parameters(self)

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if not input.strip():
            return ""
        text = input
        while len(chunks := self._chunk.run(text, task_span)) > 1:
            parts = self._instruct.run_concurrently(chunks, task_span, self.concurrency)
            joined = "\n\n".join(part.strip() for part in parts)
            if len(joined) >= len(text):
                problem = f"the summaries of {len(chunks)} chunks are together no shorter than the chunks"
                raise TaskError(f"{problem}; lower the model's max_tokens or raise max_length", code="length")
            text = joined
        return self._instruct.run(text, task_span)

    @property
    def _answer_spec(self) -> dict[str, Any]:
        chunked = {"chunk": Chunk.behaviour, "max_length": self.max_length}
        return {"behaviour": self.behaviour, "instruction": self.instruction, **chunked}

    @cached_property
    def _chunk(self) -> Chunk:
        return Chunk(self.max_length)

    @cached_property
    def _instruct(self) -> Instruct:
        return Instruct(self.model, instruction=self.instruction)
