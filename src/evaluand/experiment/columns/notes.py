"""What was taken for granted in the data, and the options that change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any, Final

from evaluand.evaluation.prediction_table import label_text

PYTHON: Final[Mapping[str, str]] = {
    "pos-label": "pos_label",
    "score": "scores",
    "prediction": "predictions",
    "confidence": "confidences",
}
"""Options of the command whose arguments in Python have other names."""


class Notes(list[str]):
    """Sentences about the data, which name options as the command or as a function of Python has them.

    Args:
        arguments: option → argument of the function, where it has another name; None for the command.

    Example:
        >>> Notes().option("kind", "numeric"), Notes(PYTHON).option("kind", "numeric"), Notes(PYTHON).option("score")
        ('--kind numeric', "kind='numeric'", 'scores=…')
    """

    def __init__(self, arguments: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._arguments = arguments

    def option(self, name: str, value: Any = None) -> str:
        """How to write an option with a value."""
        if self._arguments is None:
            return f"--{name}" if value is None else f"--{name} {quote(label_text(value))}"
        argument = self._arguments.get(name, name)
        return f"{argument}=…" if value is None else f"{argument}={value!r}"


def note_lines(notes: Iterable[str]) -> list[str]:
    """Notes as lines below a printed table."""
    return [f"note: {note}" for note in notes]
