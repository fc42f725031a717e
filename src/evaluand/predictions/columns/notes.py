"""What was taken for granted in the data, and the options that change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from shlex import quote
from typing import Any, Final

from evaluand.evaluation.prediction_table import label_text

PYTHON: Final[Mapping[str, str]] = {
    "pos-label": "label",
    "score": "scores",
    "prediction": "predictions",
    "input": "inputs",
}
"""Options of the command whose arguments in Python have other names."""


class Notes(list[str]):
    """Sentences about the data, which name options as the command or as a function of Python has them.

    Args:
        arguments: option → argument of the function, where it has another name; None for the command.
        arrays: whether truth, predictions and scores are arrays, and not names of columns.

    Example:
        >>> Notes().option("kind", "numeric"), Notes(PYTHON).option("kind", "numeric"), Notes(PYTHON).option("score")
        ('--kind numeric', "kind='numeric'", 'scores=…')
    """

    def __init__(self, arguments: Mapping[str, str] | None = None, *, arrays: bool = False) -> None:
        super().__init__()
        self._arguments = arguments
        self._arrays = arrays
        self._later: list[tuple[int, Callable[[], str | None]]] = []

    def append_later(self, find: Callable[[], str | None]) -> None:
        """Appends a sentence that takes longer to find than a metric to compute, and is found only by `sentences`.

        Args:
            find: returns the sentence; None for none.
        """
        self._later.append((len(self), find))

    def sentences(self) -> list[str]:
        """All sentences in order, each once.

        Example:
            >>> notes = Notes()
            >>> notes.append_later(lambda: "found now")
            >>> notes.append("known before")
            >>> notes.sentences()
            ['found now', 'known before']
        """
        while self._later:
            place, find = self._later.pop()
            self[place:place] = filter(None, [find()])
        return [*dict.fromkeys(self)]

    def option(self, name: str, value: Any = None) -> str:
        """How to write an option with a value."""
        if self._arguments is None:
            return f"--{name}" if value is None else f"--{name} {quote(label_text(value))}"
        argument = self._arguments.get(name, name)
        if value is None or (self._arrays and name in _COLUMNS):
            return f"{argument}=…"
        return f"{argument}={value!r}"

    def name(self, option: str) -> str:
        """The name of an option.

        Example:
            >>> Notes().name("score"), Notes(PYTHON).name("score")
            ('--score', 'scores')
        """
        return f"--{option}" if self._arguments is None else self._arguments.get(option, option)

    def class_score(self, label: Any = None, column: str = "COLUMN") -> str:
        """How to write the scores of one class, or of any.

        Example:
            >>> Notes().class_score("cat", "p"), Notes(PYTHON).class_score()
            ('--score cat=p', "scores=['LABEL=COLUMN']")
        """
        text = f"{'LABEL' if label is None else label_text(label)}={column}"
        if self._arguments is None:
            return f"--score {quote(text)}"
        if self._arrays:
            return "scores={LABEL: …}" if label is None else f"scores={{{label!r}: …}}"
        return f"scores={[text]!r}"

    def several_systems(self) -> str:
        """How to pass the scores of several systems, where scores could be meant so."""
        return "; with the scores of several systems, give predictions={SYSTEM: …} too" if self._arrays else ""


_COLUMNS: Final = ("truth", "prediction", "score", "confidence")


def note_lines(notes: Iterable[str]) -> list[str]:
    """Notes as lines below a printed table."""
    return [f"note: {note}" for note in notes]
