"""Which language a text is in, offline.

The work is done by py3langid (a naive Bayes model over byte n-grams; M. Lui & T. Baldwin, "langid.py: An off-the-shelf
language identification tool", ACL 2012), which carries its model: the extra `language`.

The longer a text, the flatter its probabilities come out of that model. So of long texts several pieces are looked at,
spread evenly over the whole, and their probabilities averaged: a text of two languages has a half of each.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from evaluand.core.errors import SpecError

_PIECE: Final = 1000  # characters of a piece
_PIECES: Final = 4  # of which a text has at most so many

NO_LANGUAGE: Final = "zxx"
"""What ISO 639 calls linguistic content that there is none of."""


class Language(NamedTuple):
    """A guess.

    Attributes:
        code: of ISO 639, such as `en`.
        probability: by the model; of a few letters it is low for every language.
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
    told = languages_of(text)
    if told is None:
        return None
    code, probability = next(iter(told.items()))
    return None if code == NO_LANGUAGE else Language(code, probability)


def languages_of(text: str) -> dict[str, float] | None:
    """The probability of each language that can be told, the most probable first; None where a text has no letters.

    Raises:
        SpecError: the extra `language` is not installed.
    """
    if not any(map(str.isalpha, text)):
        return None
    ranked = [dict(_model().rank(piece)) for piece in _pieces(text)]
    means = {str(code): sum(float(one[code]) for one in ranked) / len(ranked) for code in ranked[0]}
    return dict(sorted(means.items(), key=lambda pair: -pair[1]))


def known_languages() -> frozenset[str]:
    """The codes of all languages that can be told.

    Raises:
        SpecError: the extra `language` is not installed.
    """
    return frozenset(map(str, _model().labels)) - {NO_LANGUAGE}


def require_language(what: str) -> None:
    """Stops at what needs languages where none can be told.

    Raises:
        SpecError: with the line that installs what is missing.
    """
    if find_spec("py3langid") is None:
        raise SpecError(f"{what}: telling languages needs py3langid: pip install evaluand[language]")


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
