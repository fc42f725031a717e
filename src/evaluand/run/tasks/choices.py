"""The options of a multiple-choice question: how they are shown, and which one a reply names.

A *position* is the place of an option as it is shown, a *place* its place in the dataset. Options that are not shuffled
have both in common. Positions are lettered A, B, …

Which option a reply names follows from its words alone: where it names none, or several, there is no answer. A guess
would be right by chance, and such answers would be counted as knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase
from typing import Any, Final, Literal, get_args

from evaluand.core import identity
from evaluand.core.errors import TaskError, kind_of

Answer = Literal["letter", "number", "text", "one_hot"]
"""How a dataset states the right option: its letter, its number from 0, its text, or a list with 1 for it and 0 for the
others."""

ANSWERS: Final = get_args(Answer)
MOST: Final = len(ascii_uppercase)
"""How many options a question can have, as there are letters."""


@dataclass(frozen=True)
class Options:
    """The options of one question.

    Args:
        texts: of the options, as the dataset has them.
        names: the letters by which the dataset calls them.
        order: the place of the option at each position.

    Example:
        >>> options = Options(("red", "blue", "green"), ("A", "B", "C"), (2, 0, 1))
        >>> print(options.text)
        A. green
        B. red
        C. blue
        >>> options.read("Answer: B"), options.read("blue"), options.read("A or B"), options.stated(1, "letter")
        (1, 2, None, 'B')
    """

    texts: Sequence[str]
    names: Sequence[str]
    order: Sequence[int]

    @property
    def text(self) -> str:
        """The options as a prompt shows them: a line for each, behind its letter."""
        return "\n".join(f"{letter}. {text}" for letter, text in zip(self.letters, self.shown, strict=True))

    @property
    def letters(self) -> str:
        """The letters of the positions."""
        return ascii_uppercase[: len(self.order)]

    @cached_property
    def shown(self) -> list[str]:
        """The texts by position."""
        return [self.texts[place] for place in self.order]

    def stated(self, place: int, answer: Answer) -> Any:
        """An option as the dataset would state it."""
        if answer == "one_hot":
            return [int(place == each) for each in range(len(self.texts))]
        return {"letter": self.names[place], "number": place, "text": self.texts[place]}[answer]

    def place_of(self, stated: Any, answer: Answer) -> int | None:
        """The place of the option that the dataset states to be right; None if there is no such option."""
        return next((n for n in range(len(self.texts)) if self.stated(n, answer) == stated), None)

    def read(self, reply: str) -> int | None:
        r"""The position of the option that a reply names; None if it names none, or several.

        In this order: the reply is the text of an option, or a letter; its last statement that names an option, such as
        `Answer: C`, `the correct option is C` or `\boxed{C}`; its lines begin with one, as in `(C)` or `C, green`.
        """
        words = _without_markup(reply)
        found = self._alone(words)
        statements = _STATED.split(words)[1:]
        if not found and statements:
            found = self._last(statements)
        elif not found:
            found = {position for line in words.splitlines() for position in self._begun(line.strip(), _LETTERED)}
        return found.pop() if len(found) == 1 else None

    def _alone(self, words: str) -> set[int]:
        """The positions that words and nothing else name: as a text, and as a letter."""
        letter = _LETTER.fullmatch(words)
        return self._of_text(words) | (self._of_letter(letter["letter"]) if letter else set()) or self._near_text(words)

    def _last(self, statements: Sequence[str]) -> set[int]:
        """The positions that the last of the statements names that names any, but for those that later ones deny."""
        denied: set[int] = set()
        for statement in reversed(statements):
            words = statement.strip().partition("\n")[0].strip()
            if _NEITHER.match(words):
                return set()
            if (negated := _NOT.sub("", words)) != words:
                denied |= self._begun(negated, _STATED_LETTER)
            elif named := self._begun(words, _STATED_LETTER):
                return named - denied
        return set()

    def _begun(self, words: str, letter: re.Pattern[str]) -> set[int]:
        """The positions that words name, or begin with: a letter alone, several, or one before other words.

        With a letter before the text of another option, both.
        """
        if named := self._alone(words):
            return named
        words = _CALLED.sub("", words)
        if listed := _LISTED.match(words):
            return set().union(*map(self._of_letter, _CAPITAL.findall(listed[0])))
        if begun := letter.match(words):
            return self._of_letter(begun["letter"]) | self._near_text(words[begun.end() :])
        return self._alone(words) or self._of_letter(words[:1]) & self._near_text(words[1:])

    def _of_text(self, words: str) -> set[int]:
        return {position for position, text in enumerate(self.shown) if words == _without_markup(text)}

    def _near_text(self, words: str) -> set[int]:
        """The positions whose text words are, without what joins them to a letter, brackets and a full stop."""
        words = words.strip()
        bare = words.lstrip(_JOINTS)
        return self._of_text(words) or self._of_text(bare) or self._of_text(bare.strip(_ENDS)) if bare else set()

    def _of_letter(self, letter: str) -> set[int]:
        position = self.letters.find(letter.upper()) if letter else -1
        return {position} if position >= 0 else set()


def _without_markup(text: str) -> str:
    """Text without what marks it as bold, as code or as a formula."""
    return _MARKUP.sub("", text).strip()


_MARKUP: Final = re.compile(r"[*$`]")
_STATED: Final = re.compile(
    r"\b(?:answer|(?:correct|right|best)\s+(?:option|choice))\s*(?:is\b\s*:?|:)|\\boxed\{(?:\\text\{)?", re.IGNORECASE
)
_NEITHER: Final = re.compile(r"(?:neither|none)\b", re.IGNORECASE)
_NOT: Final = re.compile(r"not\s+", re.IGNORECASE)
_CALLED: Final = re.compile(r"(?:either\s+)?(?:options?|choices?|letters?)\s+|either\s+", re.IGNORECASE)
_LETTER: Final = re.compile(r"[(\[]?(?P<letter>[A-Za-z])[])}.:]{0,4}")
_ONE: Final = r"[(\[]?\b[A-Z]\b[])}.:]{0,2}"
_LISTED: Final = re.compile(rf"{_ONE}(?:\s*(?:[,;/&]|[,;]?\s*\b(?:and|or)\b)\s*{_ONE})+(?!\w)")
_CAPITAL: Final = re.compile(r"\b[A-Z]\b")
_LETTERED: Final = re.compile(r"[(\[]?(?P<letter>[A-Z])[])}.:]{1,3}(?=[\s,;]|$)")
_STATED_LETTER: Final = re.compile(
    r"[(\[]?(?P<letter>[A-Z])(?:[])}.:]{1,4}(?=[\s,;]|$)|(?=[,;]\s|\s+[-–—]\s|\s+(?:because|since)\b))"
)
_JOINTS: Final = " ,;:-–—"
_ENDS: Final = " .()[]{}"


def read_options(
    values: Mapping[str, Any], choices: str | Sequence[str], labels: str | None, seed: int | None
) -> Options:
    """The options in a row.

    Args:
        choices: the name of the value with the list of options, or the names of the values that each are one.
        labels: the name of the value with the letters of the options; A, B, … without one.
        seed: shuffles them; None leaves them in their order.

    Raises:
        TaskError: there are no options or too many, or one is no text.

    Example:
        >>> read_options({"choices": ["red", "blue"]}, "choices", None, None).shown
        ['red', 'blue']
    """
    texts = _texts(values.get(choices), choices) if isinstance(choices, str) else _columns(values, choices)
    if not 2 <= len(texts) <= MOST:
        raise TaskError(f"the question has {len(texts)} options; there must be 2 to {MOST}", code="choices")
    names = [*ascii_uppercase[: len(texts)]] if labels is None else _texts(values.get(labels), labels)
    if len(names) != len(texts) or len({*names}) < len(names):
        raise TaskError(f"{labels} must have a different letter for each of {len(texts)} options", code="choices")
    return Options(tuple(texts), tuple(names), shuffled(len(texts), seed))


def shuffled(n: int, seed: int | None) -> tuple[int, ...]:
    """The numbers below n in an order that depends on a seed alone; in their own order without one.

    Example:
        >>> shuffled(4, None), shuffled(4, 1) == shuffled(4, 1), sorted(shuffled(4, 1))
        ((0, 1, 2, 3), True, [0, 1, 2, 3])
    """
    return tuple(range(n) if seed is None else sorted(range(n), key=lambda place: identity.digest([seed, place])))


def _columns(values: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [_text(values.get(name), name) for name in names]


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list | tuple):
        raise TaskError(f"{name} is {kind_of(value)}, not a list of options", code="choices")
    return [_text(each, f"{name}[{place}]") for place, each in enumerate(value)]


def _text(value: Any, name: str) -> str:
    """An option as text; numbers are written as they are."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TaskError(f"{name} is {kind_of(value)}; an option is text", code="choices")
    return str(value)
