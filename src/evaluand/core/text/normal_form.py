"""The normal form of a text, by which answers are compared: texts that look alike and mean the same are equal.

Always: accents are composed (NFC), no-break spaces are spaces, and typographic apostrophes and quotes are those of a
keyboard. The rest is forgiven by request, as it may tell answers apart: dropping case makes `US` and `us` the same.

The requests come from SQuAD (Rajpurkar et al. 2016, "SQuAD: 100,000+ questions for machine comprehension of text",
arXiv:1606.05250). `case`, `all_punctuation`, `articles` and `space` are its exact match, with two differences: the
punctuation of Unicode, such as `—` and `«`, goes too, and a step that would leave nothing of a text is not taken, so
that the option `A` is not taken for `The`, nor `?` for `!`.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from string import punctuation
from typing import Final, Literal

_Form = Literal["NFC", "NFKC"]


def normal_form(text: str, forgive: Collection[str] = ()) -> str:
    r"""The normal form of a text; that of a normal form is itself.

    Args:
        forgive: any of `Normalisation`.

    Example:
        >>> normal_form("“Cafe\u0301”\u00a0isn’t") == '"Caf\u00e9" isn\'t'
        True
        >>> normal_form("The C# (-5, 3.5).", ("case", "punctuation", "articles", "space"))
        'c# -5 3.5'
    """
    form: _Form = "NFKC" if "unicode" in forgive else "NFC"
    text = _composed(text, form)
    for name, step in _STEPS.items():
        if name in forgive and ((reduced := step(text)).strip() or not text.strip()):
            text = reduced
    return _composed(text, form)


def _composed(text: str, form: _Form) -> str:
    return text if text.isascii() else unicodedata.normalize(form, unicodedata.normalize(form, text).translate(_PLAIN))


class _Punctuation(dict[int, int | None]):
    """A table for `str.translate` that learns each character when it is first met; all of Unicode would take 0.3 s."""

    def __missing__(self, code: int) -> int | None:
        kept = None if unicodedata.category(chr(code)).startswith("P") else code
        self[code] = kept
        return kept


def _without_punctuation(text: str) -> str:
    """Text without punctuation, but for what is part of a number, a sign or point before a name, and the `#` of C#."""
    for pattern, plain in _BESIDE:
        text = pattern.sub(plain, text)
    parts = _TELLING.split(text)
    parts[::2] = [part.translate(_PUNCTUATION) for part in parts[::2]]
    return "".join(parts)


_PLAIN: Final = dict.fromkeys(map(ord, "\u00a0\u2007\u202f"), " ") | {
    ord(typographic): plain for plain, many in (("'", "‘’‚‛ʼ"), ('"', "“”„‟")) for typographic in many
}
_PUNCTUATION: Final = _Punctuation()
_ALL_PUNCTUATION: Final = _Punctuation(dict.fromkeys(map(ord, punctuation)))
_BESIDE: Final = (
    (re.compile("\u2032"), "'"),
    (re.compile("\u2033|''"), '"'),
    (re.compile(r"""(?<!\w)(?:"([^"]*)"|'([^']*)')(?!\w)"""), r"\1\2"),  # a quote after a digit is a prime otherwise
    (re.compile(r"""(?<!\S)["'(\[{*«‹¿¡]+"""), ""),
    (re.compile(r"[‐‑‒–−]|—(?=\.?\d)"), "-"),
    (re.compile(r"(?<=\d)\s+(?=[%‰])"), ""),
)
_TELLING: Final = re.compile(
    r"""((?<=\d)[^\w\s](?=\d)|-(?=\.?\d)|\.(?=\d)|(?<=\d)[%‰]|(?<=\d)["'](?=[^\w\s]*+(?!\S))"""
    r"""|(?<!\S)-(?=[^\w\s]*+[^\W_])|(?<!\S)\.(?=[^\W\d_])|(?<=[^\W\d_])\#)"""
)
_ARTICLE: Final = re.compile(r"(?<!\S)(?:an?|the)(?!\S)\s*+", re.IGNORECASE)
_STEPS: Final[Mapping[str, Callable[[str], str]]] = {
    "case": str.casefold,
    "punctuation": _without_punctuation,
    "all_punctuation": lambda text: text.translate(_ALL_PUNCTUATION),
    "articles": lambda text: _ARTICLE.sub("", text),
    "space": lambda text: " ".join(text.split()),
}
Normalisation = Literal["unicode", "case", "punctuation", "all_punctuation", "articles", "space"]
"""In the order in which they are applied, however they are listed: `unicode` (NFKC: full-width forms, ligatures, small
digits), `case`, `punctuation` (Unicode's categories P, but for what stands in numbers, `%` and primes after them, a
sign or point before a word, and the `#` of C#), `all_punctuation` (P and the symbols of ASCII), `articles` (a, an, the;
in any case) and `space` (runs of white space become one space, none at the ends)."""
