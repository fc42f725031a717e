"""Identifies the language of a text, offline.

The model is py3langid (a naive Bayes model over byte n-grams; M. Lui & T. Baldwin, "langid.py: An off-the-shelf
language identification tool", ACL 2012), which includes its weights; it is the extra `language`.

The model's probabilities get flatter the longer a text is. So several pieces of a long text, evenly spread, are
classified and their probabilities averaged. Of a text in two languages, the model reports one with a probability of
nearly 1. So its sentences are classified, and it has half of each.
"""

import re
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from evaluand.core.errors import SpecError

_PIECE: Final = 1000  # characters of a piece
_PIECES: Final = 4  # the most pieces of a text
_SHORT: Final = 25  # letters of a sentence that is joined to the next
_CLEAR: Final = 0.8  # the least probability by which a sentence is in a language
_CONSIDERABLE: Final = 0.2  # the least share of a text that makes it one in several languages
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;:\n。！？।])\s*")

NO_LANGUAGE: Final = "zxx"
"""ISO 639 for text without linguistic content."""


class Language(NamedTuple):
    """A guess.

    Attributes:
        code: of ISO 639, such as `en`.
        probability: by the model; for a few letters it is low for every language.
    """

    code: str
    probability: float


def language_of(text: str) -> Language | None:
    """The most probable language of a text; None where it has no letters.

    Raises:
        SpecError: the extra `language` is not installed.

    Example:
        >>> language_of("Das ist ein deutscher Satz über das Wetter.").code, language_of("1, 2, 3")
        ('de', None)
    """
    ranked = languages_of(text)
    if ranked is None:
        return None
    code, probability = next(iter(ranked.items()))
    return None if code == NO_LANGUAGE else Language(code, probability)


def languages_of(text: str) -> dict[str, float] | None:
    """The probability of each known language, the most probable first; None where a text has no letters.

    Raises:
        SpecError: the extra `language` is not installed.
    """
    if not any(map(str.isalpha, text)):
        return None
    ranked = [dict(_model().rank(piece)) for piece in _pieces(text)]
    means = {str(code): sum(float(one[code]) for one in ranked) / len(ranked) for code in ranked[0]}
    if mixture := language_mixture(text):
        means = dict.fromkeys(means, 0.0) | mixture
    return dict(sorted(means.items(), key=lambda pair: -pair[1]))


@lru_cache(64)
def language_mixture(text: str) -> dict[str, float] | None:
    """The shares of the languages of a text in several, the largest first; None for a text in one language.

    A share is of the letters, by sentence; it counts from a fifth, which is too much for a name or a quotation.
    Sentences count for no language where none has a probability of 0.8. Short ones are joined to the next, up to 25
    letters, since fewer are often in no clear language. Of a long text, pieces are read.

    Raises:
        SpecError: the extra `language` is not installed.

    Example:
        >>> [*language_mixture("Das ist ein deutscher Satz über das Wetter. It was worse yesterday, I think.")]
        ['de', 'en']
        >>> language_mixture("The weather is nice today. It was worse yesterday.")
    """
    sentences = _sentences(" ".join(_pieces(text)))
    if len(sentences) < 2:
        return None
    letters: dict[str, int] = {}
    total = 0
    for sentence in sentences:
        number = _letter_count(sentence)
        total += number
        code, probability = _model().rank(sentence)[0]
        if probability >= _CLEAR:
            letters[str(code)] = letters.get(str(code), 0) + number
    found = {code: number for code, number in letters.items() if number >= _CONSIDERABLE * total}
    if len(found) < 2:
        return None
    ranked = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    return {code: number / sum(found.values()) for code, number in ranked}


def known_languages() -> frozenset[str]:
    """The codes of all known languages.

    Raises:
        SpecError: the extra `language` is not installed.
    """
    return frozenset(map(str, _model().labels)) - {NO_LANGUAGE}


def require_language(what: str) -> None:
    """Checks that languages can be identified.

    Args:
        what: what needs it, for the message.

    Raises:
        SpecError: the extra is not installed; the message has the command that installs it.
    """
    if find_spec("py3langid") is None:
        raise SpecError(f"{what} needs py3langid: pip install 'evaluand[language]'")


def _sentences(text: str) -> list[str]:
    """The sentences of a text, short ones joined to the next or, at the end, to the one before."""
    sentences: list[str] = []
    begun = ""
    for part in _SENTENCE_END.split(text):
        begun = f"{begun} {part}".strip()
        if _letter_count(begun) >= _SHORT:
            sentences.append(begun)
            begun = ""
    if begun and sentences:
        sentences[-1] += f" {begun}"
    elif begun:
        sentences.append(begun)
    return sentences


def _letter_count(text: str) -> int:
    return sum(map(str.isalpha, text))


def _pieces(text: str) -> list[str]:
    if len(text) <= _PIECES * _PIECE:
        return [text]
    starts = [place * (len(text) - _PIECE) // (_PIECES - 1) for place in range(_PIECES)]
    pieces = [text[start : start + _PIECE] for start in starts]
    return [piece for piece in pieces if any(map(str.isalpha, piece))] or [text[: _PIECES * _PIECE]]


@cache
def _model() -> Any:
    require_language("languages")
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # on use: half a second, and an extra

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
