"""Chats: a model's reply to a prompt made from a template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Annotated, Any, Final

from evaluand.core.errors import SpecError, TaskError, kind_of
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.parameters import Text, Within
from evaluand.data.schema.data import Schema
from evaluand.data.schema.values import ValueSchema
from evaluand.models.chat_model import ChatModel
from evaluand.models.tools import Tool, read_tools
from evaluand.run.parameters import Place
from evaluand.run.tasks.asking import PromptedTask
from evaluand.run.tasks.conversation import IMAGES, INPUT, ROLES, FewShot
from evaluand.run.tasks.tool_calls import converse
from evaluand.trace.spans import TaskSpan

_WHOLE_INPUT: Final = f"{{{{ {INPUT} }}}}"


@dataclass(frozen=True)
class ChatTask(PromptedTask):
    """A model's reply to a prompt: text, or data where there is a schema.

    Prompts are templates of Jinja: `{{ question }}` is the row's value of the input column `question`, `{{ input }}`
    the whole input. A text that begins with `file:` names the file of a template. A value that is missing or null fails
    the row. The messages are, in this order: system, examples, earlier turns, prompt.

    Args:
        model: the model that replies.
        prompt: the template of the user's message; by default the input as it is, or nothing after earlier turns.
        system: the template of the system message.
        messages: instead of prompt and system, the templates of several messages, each with `role` and `content`.
        history: the input column with earlier turns: a list of messages, each with `role` and `content`.
        images: the input columns with images: bytes, a data URL, an address, or a list of these. The model sees them
            after the text of the prompt.
        examples: answered examples of another file, which are shown to the model first.
        tools: functions that the model may ask to have called, or `Tool`s; in an experiment file as `file.py:name`.
            They are called until the model replies.
        max_turns: how often the model may be asked for one output, where it has tools.
        version: pins the tools in place of the fingerprint of their code; raise it when they change.
        response_schema: what the reply must be as data, in any form that `ValueSchema` takes. The model is asked for
            it, and the output is the data.
        folder: the folder to which files are relative; in an experiment file, that of the experiment.
        output_schema: what each output must be; see `Task`.

    Raises:
        ParameterError: lists all invalid parameters.

    Example:
        >>> model = ChatModel("http://127.0.0.1:8080/v1", "smollm2", version="135M-Q4")
        >>> task = ChatTask(model, prompt="Answer in one word: {{ question }}", system="You are a geographer.")
        >>> [message["content"] for message in task.make_messages({"question": "The capital of France?"})]
        ['You are a geographer.', 'Answer in one word: The capital of France?']
    """

    model: ChatModel
    _: KW_ONLY
    prompt: Text | None = None
    system: Text | None = None
    messages: Sequence[Mapping[str, Any]] = ()
    history: Text | None = None
    images: Sequence[str] = ()
    examples: FewShot | None = None
    tools: Sequence[Any] = ()
    max_turns: Annotated[int, Within(1)] = 10
    version: str | None = None
    response_schema: Any = None
    folder: str = ""
    output_schema: Any = None

    kind = "chat"

    async def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        completion = await converse(
            self.model,
            self.make_messages(input),
            task_span,
            tools=self._tools,
            max_turns=self.max_turns,
            schema=self._schema,
        )
        if self._schema is None:
            return completion.text
        if completion.fault is not None:
            raise TaskError(f"the reply does not fit response_schema: {completion.fault}", code="schema")
        return completion.data

    def make_messages(self, input: Any) -> list[dict[str, Any]]:
        """The messages for the model, each with `role` and `content`.

        Raises:
            TaskError: a value that a template needs is missing or null, or the earlier turns are no messages.
        """
        return self._conversation.messages(input)

    def identify(self) -> Identity:
        own = super().identify()
        if not self._tools or "chat" not in own.spec:
            return own
        tools = {f"tool {t.name}": code_identity("tool", t.function, version=self.version) for t in self._tools}
        return own.joined(tools)

    @property
    def _answer_spec(self) -> dict[str, Any]:
        spec = {"behaviour": self.behaviour, **self._conversation.spec}
        if self._tools:
            tools = [{"name": t.name, "description": t.description, "schema": dict(t.schema)} for t in self._tools]
            spec |= {"tools": tools, "max_turns": self.max_turns}
            spec |= {} if self.version is None else {"version": self.version}
        return spec if self._schema is None else {**spec, "response_schema": self._schema}

    @cached_property
    def _tools(self) -> tuple[Tool, ...]:
        return read_tools(self.tools)

    @cached_property
    def _schema(self) -> Any:
        """The JSON Schema of a reply; None if it is text."""
        if self.response_schema is None or isinstance(self.response_schema, Mapping):
            return self.response_schema
        return Schema.of(self.response_schema).json

    @property
    def _conversation_options(self) -> dict[str, Any]:
        return {"history": self.history, "images": self.images}

    def _texts(self) -> Iterator[tuple[str, str, Place]]:
        yield from super()._texts()
        for number, message in enumerate(self.messages):
            yield message["role"], message["content"], ("messages", number, "content")
        if self.prompt is not None:
            yield "user", self.prompt, ("prompt",)
        elif not self.messages and self.history is None:
            yield "user", _WHOLE_INPUT, ("prompt",)

    def _faults(self) -> Iterator[tuple[Place, str]]:
        if isinstance(self.images, str) or not all(isinstance(name, str) for name in self.images):
            yield (IMAGES,), "is no list of columns"
        if self.messages and self.prompt is not None:
            yield ("prompt",), "and messages exclude each other; make it the last of the messages"
        for number, message in enumerate(self.messages):
            yield from _message_faults(message, ("messages", number))
        try:
            if without := [tool.name for tool in self._tools if tool.function is None]:
                yield ("tools",), f"{without[0]} has no function to call"
        except SpecError as error:
            yield ("tools",), str(error)
        try:
            if self._schema is not None:
                ValueSchema.of(self._schema)
        except SpecError as error:
            yield from ((("response_schema",), line) for line in str(error).split("\n"))


def _message_faults(message: Any, place: Place) -> Iterator[tuple[Place, str]]:
    if not isinstance(message, Mapping) or {*message} != {"role", "content"}:
        yield place, "is no message; give role and content"
        return
    if message["role"] not in ROLES:
        yield (*place, "role"), f"is {message['role']!r}; give {', '.join(ROLES)}"
    if not isinstance(message["content"], str):
        yield (*place, "content"), f"is {kind_of(message['content'])}; give text"
