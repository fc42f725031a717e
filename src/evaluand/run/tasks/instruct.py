"""A model's reply to an instruction with a context."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from pydantic import BaseModel

from evaluand.core.errors import TaskError
from evaluand.models.chat_model import ChatModel
from evaluand.run.tasks.asking import AskingTask
from evaluand.trace.spans import TaskSpan


class Instruction(BaseModel):
    """An instruction for a model.

    Attributes:
        instruction: what to do.
        context: the text to work on; None if the instruction is complete.
    """

    instruction: str
    context: str | None = None


@dataclass(frozen=True)
class Instruct(AskingTask[Instruction | str, str]):
    """A model's reply to an instruction.

    The input is an `Instruction`, or a text: the context if the task has an instruction, else the instruction.

    Args:
        model: the model that replies.
        instruction: what to do with each input.
        output_schema: what each output must be; see `Task`.

    Example:
        >>> task = Instruct(ChatModel("http://127.0.0.1:8080/v1", "smollm2", version="1"), instruction="Translate.")
        >>> task.identify().pinned
        True
    """

    model: ChatModel
    _: KW_ONLY
    instruction: str | None = None
    output_schema: Any = None

    kind = "instruct"

    def do_run(self, input: Instruction | str, task_span: TaskSpan) -> str:
        return self.model.complete(self.messages(input), task_span).text

    @property
    def _answer_spec(self) -> dict[str, Any]:
        return {"behaviour": self.behaviour, "instruction": self.instruction}

    def messages(self, input: Instruction | str) -> list[dict[str, str]]:
        """The messages for the model.

        Raises:
            TaskError: both the task and the input have an instruction.
        """
        if isinstance(input, Instruction):
            if self.instruction is not None:
                raise TaskError("both the task and the input have an instruction; give only one", code="input")
            instruction, context = input.instruction, input.context
        elif self.instruction is not None:
            instruction, context = self.instruction, input
        else:
            instruction, context = input, None
        if context is None:
            return [{"role": "user", "content": instruction}]
        return [{"role": "system", "content": instruction}, {"role": "user", "content": context}]
