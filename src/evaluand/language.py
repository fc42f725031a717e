"""Which language a text is in, offline.

The work is done by py3langid (a naive Bayes model over byte n-grams; M. Lui & T. Baldwin, "langid.py: An off-the-shelf
language identification tool", ACL 2012), which carries its model: the extra `language`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from evaluand.errors import SpecError

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


def language_of(text: str, among: Collection[str] | None = None) -> Language | None:
    """The most probable language of a text; None where it has no letters.

    Args:
        text: the text.
        among: codes of the languages that it may be in; its probability is then a share of theirs.

    Raises:
        SpecError: the extra `language` is not installed.

    Example:
        >>> language_of("Das ist ein deutscher Satz über das Wetter.").code, language_of("1, 2, 3")
        ('de', None)
        >>> language_of("Das ist ein deutscher Satz über das Wetter.", among=("en", "fr")).code in ("en", "fr")
        True
    """
    if not any(map(str.isalpha, text)):
        return None
    if among is not None:
        return _likeliest([Language(str(code), float(share)) for code, share in _model().rank(text) if code in among])
    code, probability = _model().classify(text)
    return None if code == NO_LANGUAGE else Language(str(code), float(probability))


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


def _likeliest(languages: list[Language]) -> Language | None:
    whole = sum(language.probability for language in languages)
    best = max(languages, key=lambda language: language.probability, default=None)
    return Language(best.code, best.probability / whole) if best and whole else best


@cache
def _model() -> Any:
    require_language("languages")
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # on use: half a second, and an extra

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
