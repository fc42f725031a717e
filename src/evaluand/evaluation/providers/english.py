"""Checks shared by the providers that know only English."""

from __future__ import annotations

from importlib.util import find_spec

from evaluand.core.errors import SpecError
from evaluand.core.text.language import language_of, require_language

_LIKELY = 0.5
_ENGLISH = ("en", "pcm")  # short English texts may be detected as Nigerian Pidgin, which shares its words


def judged_english(text: str) -> str | None:
    """Why a text cannot be judged by a provider that knows only English words; None if it can."""
    return "the text has no words" if not any(map(str.isalpha, text)) else other_language(text)


def other_language(text: str, name: str = "the text") -> str | None:
    """Why a text is probably not English; None if it may be.

    A few words for which no language is more probable than not pass, and so do numbers.
    """
    if not any(map(str.isalpha, text)):
        return None
    if not any("a" <= letter <= "z" for letter in text.casefold()):
        return f"{name} has no letters from a to z, and what judges it knows English only"
    found = language_of(text)
    if found is not None and found.code not in _ENGLISH and found.probability >= _LIKELY:
        return f"{name} is in {found.code} ({found.probability:.2f}), and what judges it knows English only"
    return None


def require(kind: str, module: str, extra: str) -> None:
    """Checks that a library is installed.

    Raises:
        SpecError: it is not; with the command that installs it.
    """
    if find_spec(module) is None:
        raise SpecError(f"provider {kind!r} needs {module}: pip install evaluand[{extra}]")
    require_language(kind)
