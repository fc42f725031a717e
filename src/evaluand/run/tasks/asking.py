"""What tasks that ask a language model have in common."""

from typing import Any, ClassVar

from evaluand.core.fingerprint import Identity, code_identity
from evaluand.models.chat_model import RETRIES, ChatModel
from evaluand.run.task import Input, Output, Task


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
            return code_identity("task", self, self.name)
        return self.model.identity(self.kind, **self._answer_spec)

    @property
    def _answer_spec(self) -> dict[str, Any]:
        """What the answers depend on besides the model."""
        return {}
