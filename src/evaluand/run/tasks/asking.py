"""What tasks that ask a language model have in common."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

from evaluand.core.errors import EvaluandError, ParameterError
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.data.dataset import Dataset
from evaluand.models.chat_model import RETRIES, ChatModel
from evaluand.run.parameters import Place, check_parameters
from evaluand.run.task import Input, Output, Task
from evaluand.run.tasks.conversation import (
    EXAMPLES,
    Conversation,
    FewShot,
    MessageTemplate,
    Shot,
    read_template,
)


class AskingTask(Task[Input, Output]):
    """A task that uses a `ChatModel`, its field `model`."""

    model: ChatModel
    kind: ClassVar[str]
    behaviour: ClassVar[int] = 1
    transient = ("TaskTimeout",)
    retries = RETRIES

    def prepare(self, dataset: Any) -> None:
        """Raise a SpecError if the model cannot be used."""
        self.model.check()

    def close(self) -> None:
        self.model.close()

    def identify(self) -> Identity:
        if not type(self).__module__.startswith("evaluand.run.tasks."):  # a subclass may behave differently
            return code_identity("task", self)
        return self.model.identity(self.kind, **self._answer_spec)

    @property
    def _answer_spec(self) -> dict[str, Any]:
        """What the answers depend on besides the model."""
        return {}


class PromptedTask(AskingTask[Any, Any]):
    """A task whose messages are made from templates, and which reports all faults of its parameters at once."""

    system: str | None
    examples: FewShot | None
    folder: str

    def __post_init__(self) -> None:
        check_parameters(self, self._faults())
        _ = self._templates

    def prepare(self, dataset: Dataset) -> None:
        """Raise a SpecError if the model cannot be used, or the task does not fit the dataset; lists every fault."""
        faults: list[tuple[Place, str]] = []
        try:
            super().prepare(dataset)
        except ParameterError as error:
            faults += ((("model", *place), message) for place, message in error.faults)
        faults += self._conversation.faults(dataset)
        if faults:
            raise ParameterError(faults)

    @abstractmethod
    def _faults(self) -> Iterator[tuple[Place, str]]:
        """What is wrong with the parameters, apart from the templates and what breaks an annotation."""

    def _texts(self) -> Iterator[tuple[str, str, Place]]:
        """Role, text and place among the parameters of every template."""
        if self.system is not None:
            yield "system", self.system, ("system",)

    @cached_property
    def _templates(self) -> list[MessageTemplate]:
        """The templates of all messages.

        Raises:
            ParameterError: lists everything that is wrong with them.
        """
        templates: list[MessageTemplate] = []
        faults: list[tuple[Place, str]] = []
        for role, text, place in self._texts():
            try:
                templates.append(MessageTemplate(role, read_template(text, self.folder, place), place))
            except ParameterError as error:
                faults += error.faults
        if faults:
            raise ParameterError(faults)
        return templates

    @cached_property
    def _conversation(self) -> Conversation:
        """The templates with the examples that are shown first."""
        try:
            shots = [] if self.examples is None else self.examples.read(self.folder)
            shown = [self._shot_to_show(shot, number) for number, shot in enumerate(shots)]
        except EvaluandError as error:
            raise ParameterError([((EXAMPLES,), line) for line in str(error).split("\n")]) from None
        drawn = self.examples if self.examples is not None and self.examples.per_row else None
        return Conversation(self._templates, shots=shown, drawn=drawn, **self._conversation_options)

    def _shot_to_show(self, shot: Shot, number: int) -> Shot:
        """The answered example in the form in which messages show it."""
        return shot

    @property
    def _conversation_options(self) -> dict[str, Any]:
        """Further arguments of the `Conversation`."""
        return {}
