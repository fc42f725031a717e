"""Differences that embeddings miss, found by rules: numbers, names, negation, yes and no. In English."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from evaluand.core.text.sentences import BEGINNINGS, sentences


class Claim(NamedTuple):
    """A number or a name; keys are equal for equivalent texts: `1,000` and `one thousand`, `Prize` and `Prizes`."""

    text: str
    key: str

    @property
    def is_number(self) -> bool:
        return any(map(str.isdigit, self.key))


def claims(text: str) -> list[Claim]:
    """The numbers of a text, and its capitalised words except at the beginning of a sentence.

    `one` counts as a number only before hundred or thousand, since it is often a pronoun.

    Example:
        >>> [claim.key for claim in claims("In March I paid 1,000 crowns, or fifty a day, to Anna.")]
        ['march', '1000', '50', 'anna']
    """
    found = (word for one in sentences(text) for word in enumerate(_WORD.finditer(one.text)))
    return [Claim(word[0], _key(word)) for at, word in found if _is_number(word) or (at and _is_name(word[0]))]


def keys(text: str) -> frozenset[str]:
    """The keys of all words of a text; a claim is supported if its key is among them."""
    return frozenset(map(_key, _WORD.finditer(text)))


def held(stated: Sequence[Claim], known: frozenset[str]) -> tuple[float, list[str]]:
    """The share of claims whose keys are known, and the claims that are missing; 1 without claims."""
    missing = [claim.text for claim in stated if claim.key not in known]
    return (1 - len(missing) / len(stated) if stated else 1.0), sorted(set(missing))


def is_negated(text: str) -> bool:
    """Whether a text contains a negation.

    Example:
        >>> [is_negated(text) for text in ("It doesn't rain.", "Not only in room no. 5.")]
        [True, False]
    """
    return _NEGATION.search(text) is not None


def answered(text: str) -> Literal["yes", "no"] | None:
    """The yes or no at the beginning of a text, if any.

    Example:
        >>> [answered(text) for text in ("No, it rains.", "Yes", "No one knows.")]
        ['no', 'yes', None]
    """
    found = _ANSWER.match(text)
    if found is None:
        return None
    return "yes" if found[1].casefold() == "yes" else "no"


def is_only_answer(text: str) -> bool:
    """Whether a text consists of yes or no alone."""
    return answered(text) is not None and len(_WORD.findall(text)) == 1


def _is_number(word: re.Match[str]) -> bool:
    return any(map(str.isdigit, word[0])) or (word["number"] is not None and word[0].casefold() != "one")


def _is_name(word: str) -> bool:
    return word[:1].isupper() and word not in BEGINNINGS


def _key(word: re.Match[str]) -> str:
    if word["number"] is None:
        folded = word[0].casefold()
        return folded[:-1] if len(folded) > _SHORT and folded.endswith("s") else folded
    written = word["number"].casefold().replace("−", "-")
    number = str(sum(map(_VALUES.__getitem__, written.split("-")))) if written[0].isalpha() else written
    if _THOUSANDS.fullmatch(number):
        number = number.replace(",", "")
    scales = re.findall(r"\w+", word["scale"].casefold())
    if not scales or not re.fullmatch(r"-?\d+(?:\.\d+)?", number):
        return " ".join((number, *scales))
    value = Decimal(number)
    for scale in scales:
        value *= _SCALES[scale]
    return f"{value.normalize():f}"


_SHORT: Final = 3
_UNITS: Final = tuple(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
    """.split()  # noqa: SIM905
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES: Final = {word: value for value, word in enumerate(_UNITS)} | {
    word: 10 * value for value, word in enumerate(_TENS, 2)
}
_SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_WORD: Final = re.compile(
    r"(?P<number>(?:(?<![\w.,:)])[-−])?\d++(?:[.,:]\d++)*+(?!\w)"
    rf"|(?:(?:{'|'.join(_TENS)})-)?(?:{'|'.join((*_UNITS, *_TENS))})\b)"
    rf"(?P<scale>(?:[ -](?:{'|'.join(_SCALES)})\b){{0,3}})"
    r"|\w+(?:[.,:]\d+)*",
    re.IGNORECASE,
)
_THOUSANDS: Final = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NEGATION: Final = re.compile(
    r"\b(?:not(?! only\b)|no(?!\.\s?\d)|never|nothing|nobody|none|neither|nor|cannot|without|\w+n['’]t)\b",
    re.IGNORECASE,
)
_ANSWER: Final = re.compile(
    r"\W*(yes|no)\b(?!\.\s?\d)(?=\s*(?:[,.;:!–—-]|\Z|(?:i|it|he|she|they|we|you|there|this|that)\b))", re.IGNORECASE
)
