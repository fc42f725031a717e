"""Checks that an answer is in the language of its input, or in a fixed language."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from evaluand.core.errors import described
from evaluand.core.parameters import Text, Within
from evaluand.core.text.language import Language, known_languages, language_mixture, language_of, require_language
from evaluand.evaluation.scorer import Score, Scorer, read_field, wrong_parameter


@dataclass(frozen=True, kw_only=True)
class LanguageMatch(Scorer):
    """1 where the answer is in the language of the input, 0 where it is in another; the answer's is the `label`.

    Abstains if the language of the input or of the answer cannot be detected: it is not text, has no letters, no
    language reaches the threshold, or a second language has a fifth of its letters or more, by sentence. A few words
    rarely suffice.

    Needs the extra `language`: `pip install 'evaluand[language]'`.

    Attributes:
        language: the ISO 639 code of the expected language, such as `de`; the language of the input by default.
        input_key: the key of the text in an input that is an object; None if the input itself is the text.
        threshold: the lowest probability at which a language is accepted.

    Raises:
        SpecError: the language is unknown, the threshold is not a probability, or py3langid is not installed.

    Example:
        >>> LanguageMatch().score("Voici une phrase sur la pluie.", None, "Wie wird das Wetter heute in Berlin?")[:2]
        (0.0, 'fr')
    """

    kind = "language_match"
    version = 2
    cheap = True
    ranges: ClassVar = {"value": (0.0, 1.0)}
    arguments = ("output", "expected", "input")

    language: Text | None = None
    input_key: Text | None = None
    threshold: Annotated[float, Within(0, 1)] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_language(self.kind)
        if self.language is not None and self.language not in known_languages():
            raise wrong_parameter(
                self, "language", "give the ISO 639 code of a language that can be detected, such as en, de or zh"
            )

    def score(self, output: Any, expected: Any, input: Any = None) -> Score:
        """Detects both languages and compares them; a DataError if an input that is an object lacks the key."""
        expected_language = self.language or self._detect("input", self._text(input))
        if isinstance(expected_language, Score):
            return expected_language
        language = self._detect("answer", output)
        if isinstance(language, Score):
            return language
        if language == expected_language:
            return Score(1.0, language)
        return Score(0.0, language, explanation=f"the answer is in {language}, not in {expected_language}")

    def _text(self, input: Any) -> Any:
        if self.input_key is None or not isinstance(input, Mapping):
            return input
        return read_field("the input", input, self.input_key)

    def _detect(self, what: str, text: Any) -> str | Score:
        """The language of a text, or an abstained score if it cannot be detected."""
        if not isinstance(text, str):
            hint = "; name its text with input_key" if isinstance(text, Mapping) and what == "input" else ""
            return Score.abstained(f"the {what} is {described(text)}, not text{hint}")
        found: Language | None = language_of(text)
        if found is None:
            return Score.abstained(f"the {what} has no language: {described(text)}")
        if found.probability < self.threshold:
            return Score.abstained(
                f"the language of the {what} is uncertain: {found.code} has a probability of {found.probability:.2f}"
            )
        if mixture := language_mixture(text):
            return Score.abstained(f"the language of the {what} is unclear: it is in {' and '.join(mixture)}")
        return found.code
