"""Whether an answer is in the language it was asked in, or in a given one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from evaluand.core.errors import DataError
from evaluand.core.text.language import Language, known_languages, language_of, require_language
from evaluand.evaluation.scorer import Score, Scorer, described, require_text, wrong_parameter


@dataclass(frozen=True, kw_only=True)
class LanguageMatch(Scorer):
    """1 where the answer is in the language of the input, 0 where it is in another; the answer's is the `label`.

    Abstains where the language of the input or of the answer cannot be told: where it is no text, has no letters, or
    where no language reaches the threshold. A few words rarely do.

    Needs the extra `language`: `pip install evaluand[language]`.

    Attributes:
        language: the code of ISO 639 that answers should be in, such as `de`; that of the input if not given.
        input_key: where in an input that is an object the text stands; None where the whole input is the text.
        threshold: the probability that a language must reach to be taken for that of a text.

    Raises:
        SpecError: there is no such language, the threshold is no probability, or py3langid is not installed.

    Example:
        >>> LanguageMatch().score("Voici une phrase sur la pluie.", None, "Wie wird das Wetter heute in Berlin?")[:2]
        (0.0, 'fr')
    """

    kind = "language_match"
    version = 1
    cheap = True
    ranges: ClassVar = {"value": (0.0, 1.0)}

    language: str | None = None
    input_key: str | None = None
    threshold: float = 0.5

    def __post_init__(self) -> None:
        require_text(self, "language", optional=True)
        require_text(self, "input_key", optional=True)
        value: Any = self.threshold
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
            raise wrong_parameter(self, "threshold", "give a probability from 0 to 1")
        require_language(self.kind)
        if self.language is not None and self.language not in known_languages():
            raise wrong_parameter(self, "language", "give a code of ISO 639 that can be told, such as en, de or zh")

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("output", "expected", "input")

    def score(self, output: Any, expected: Any, input: Any = None) -> Score:
        """Tells both languages.

        Raises:
            DataError: an input that is an object lacks the key.
        """
        wanted = self.language or self._told("input", self._text(input))
        if isinstance(wanted, Score):
            return wanted
        given = self._told("answer", output)
        if isinstance(given, Score):
            return given
        if given == wanted:
            return Score(1.0, given)
        return Score(0.0, given, explanation=f"the answer is in {given}, not in {wanted}")

    def _text(self, input: Any) -> Any:
        if self.input_key is None or not isinstance(input, Mapping):
            return input
        if self.input_key not in input:
            raise DataError(f"the input has {', '.join(map(repr, input)) or 'no keys'} and not {self.input_key!r}")
        return input[self.input_key]

    def _told(self, what: str, text: Any) -> str | Score:
        """The language of a text, or the score of a row where it cannot be told."""
        if not isinstance(text, str):
            hint = "; name its text with input_key" if isinstance(text, Mapping) and what == "input" else ""
            return Score.abstained(f"the {what} is {described(text)}, not text{hint}")
        found: Language | None = language_of(text)
        if found is None:
            return Score.abstained(f"the {what} has no language: {described(text)}")
        if found.probability < self.threshold:
            return Score.abstained(
                f"the language of the {what} cannot be told: {found.code} has a probability of {found.probability:.2f}"
            )
        return found.code
