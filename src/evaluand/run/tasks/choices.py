"""The options of a multiple-choice question: how they are shown, and which one a reply names.

A *position* is the place of an option as it is shown, a *place* its place in the dataset. Options that are not shuffled
have both in common. Positions are lettered A, B, …

Which option a reply names follows from its words alone: where it names none, or several, there is no answer. A guess
would be right by chance, and such answers would be counted as knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Final, Literal, get_args

from evaluand.core import identity
from evaluand.core.errors import TaskError, kind_of
from evaluand.core.text.normal_form import normal_form
from evaluand.models.extraction import Extraction

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
        >>> options.read("Answer: B"), options.read("A or B")[0], options.stated(1, "letter")
        ((1, Extraction(text='B', rule='statement', candidates=1, reason=None)), None, 'B')
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

    def read(self, reply: str) -> tuple[int | None, Extraction]:
        r"""The position of the option that a reply names, None if it names none or several, and from what it was read.

        In this order: the reply is the text of an option, or a letter (`whole reply`); its last statement that names an
        option, such as `Answer: C`, `the correct option is C` or `\boxed{C}` (`statement`); sentences such as `C is
        right` or `I choose C` (`sentence`); its lines begin with one, as in `(C)` or `C, green` (`line`).
        """
        words = _cleaned(reply)
        rules: dict[str, Callable[[str], list[_Named]]] = {
            "whole reply": lambda words: [self._alone(words)],
            "statement": self._stated,
            "sentence": self._taken,
            "line": self._begun,
        }
        for rule, read in rules.items():
            if candidates := [named for named in read(words) if named]:
                named = candidates[-1] if rule == "statement" else _merged(candidates)
                if len(named) > 1 or _NONE in named:
                    return None, Extraction.unread(_DENIES if _NONE in named else _SEVERAL, len(candidates))
                [(position, part)] = named.items()
                return position, Extraction(part, rule, len(candidates))
        return None, Extraction.unread("the reply names no option")

    def _alone(self, words: str) -> _Named:
        """What words and nothing else name: as a text, and as a letter."""
        letter = _LETTER.fullmatch(words)
        return self._of_text(words) | (self._of_letter(letter["letter"]) if letter else {}) or self._near_text(words)

    def _stated(self, words: str) -> list[_Named]:
        """What each statement names, the last one without what later ones deny."""
        patterns, found, denied = _patterns(), list[_Named](), _Named()
        matches = [*patterns["statement"].finditer(words)]
        ends = [*(match.start() for match in matches[1:]), len(words)]
        for match, end in [*zip(matches, ends, strict=False)][::-1]:
            text = words[match.end() : end].strip().partition("\n")[0]
            before = _CLAUSE.split(words[max(0, match.start() - _NEAR) : match.start()])[-1]
            denial = patterns["denials"].match(text)
            text = text[denial.end() :] if denial else text
            named = {_NONE: text} if patterns["neither"].match(text) else self._first(text, "stated")
            if denial or patterns["doubts"].search(before):
                denied |= named
            elif named and not found:
                found = [{n: part for n, part in named.items() if n not in denied} or {_NONE: text}]
            elif named:
                found.insert(0, named)
        return found or [denied and {_NONE: words}]

    def _taken(self, words: str) -> list[_Named]:
        """What each sentence names that says which option is right, or which one the writer takes."""
        patterns = _patterns()
        matches = (patterns["sentence"].match(sentence) for sentence in _SENTENCE.split(words))
        texts = [(match["taken"] or match["judged"]).strip() for match in matches if match]
        return [{_NONE: t} if patterns["denials"].search(t) else self._first(t, "stated") for t in texts]

    def _begun(self, words: str) -> list[_Named]:
        """What each line begins with, where nothing is stated; no option that is there if the line rejects it."""
        patterns, found = _patterns(), list[_Named]()
        for line in [] if patterns["statement"].search(words) else words.splitlines():
            if named := self._first(line.strip(), "begun"):
                named = _merged([named, *(self._of_letter(m["letter"]) for m in patterns["further"].finditer(line))])
                named.pop(_NONE, None)  # such as the I of a heading
                found.append({_NONE: line} if named and patterns["rejections"].search(line) else named)
        return found

    def _first(self, words: str, rule: str) -> _Named:
        """What words name, or begin with: a letter alone, several, or one before other words.

        With a letter before the text of another option, both.
        """
        words = _patterns()["denials"].split(words, maxsplit=1)[0].strip(_BETWEEN)
        if named := self._alone(words):
            return named
        words = _patterns()["titles"].sub("", words, count=1).strip()
        if listed := _patterns()["several"].match(words):
            return _merged([self._of_letter(letter) for letter in _LISTED.findall(listed[0])])
        if begun := _patterns()[rule].match(words):
            return self._of_letter(begun["letter"]) | self._near_text(words[begun.end() :])
        beside = self._of_letter(words[:1])
        return self._alone(words) or {n: part for n, part in self._near_text(words[1:]).items() if n in beside}

    def _of_text(self, words: str) -> _Named:
        """What words are the text of, whatever the case unless that tells options apart."""
        for form in (str, str.casefold):
            if named := {n: words for n, text in enumerate(self._texts) if words and form(text) == form(words)}:
                return named
        return {}

    def _near_text(self, words: str) -> _Named:
        """What words name as a text, without what joins them to a letter, brackets and a full stop."""
        words = words.strip()
        bare = words.lstrip(_JOINTS)
        return self._of_text(words) or self._of_text(bare) or self._of_text(bare.strip(_ENDS)) if bare else {}

    def _of_letter(self, letter: str) -> _Named:
        """What a letter names; no option that is there if it is none of their letters."""
        return {self.letters.find(letter.upper()): letter} if letter and letter.upper() in ascii_uppercase else {}

    @cached_property
    def _texts(self) -> list[str]:
        return [_cleaned(text) for text in self.shown]


_Named = dict[int, str]
"""The positions that words name, each with the words that do."""
_NONE: Final = -1  # the position of what is no option: `str.find` gives it for a letter that is none
_SEVERAL: Final = "the reply names several options"
_DENIES: Final = "the reply denies an option, or names one that is not there"


def _merged(several: Iterable[_Named]) -> _Named:
    return {position: part for named in several for position, part in named.items()}


def _cleaned(text: str) -> str:
    """Text in its normal form, without markup, quotes, tokens of templates and signs without width."""
    text = normal_form(text).translate(_WIDE)
    for pattern, plain in _NOISE:
        text = pattern.sub(plain, text)
    return text.strip()


_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | str.maketrans("。、【】", ".,[]")
_NOISE: Final = (
    (re.compile(r"<(?:final[_ ])?answer>", re.IGNORECASE), "answer:"),
    (re.compile(r"<\|[^<>|]*\|>|</?s>|<(?:end|start)_of_turn>|</?(?:br|p|b|i|em|strong|code|div|answer) ?/?>"), "\n"),
    (re.compile('[*$`"\u00ad\u200b-\u200f\u2060\ufeff]'), ""),
)
_NEAR: Final = 200  # characters before a statement that can be of its clause
_CLAUSE: Final = re.compile(r"[.,:;!?\n]")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+|(?<=[.!?;])(?=[^\x00-\x7f])")
_L: Final = r"[A-Za-zÀ-ɏͰ-ӿ]"  # letters of scripts that put spaces between words
_STATED: Final = r"(?:[A-Z]|[a-z](?=[])]))"
_OPENED: Final = rf"[(\[{{']{{0,3}}(?P<letter>{_STATED})"
_CLOSED: Final = r"[])}'.:!]{1,4}(?=[\s,;]|$)"
_LETTER: Final = re.compile(r"[(\[{']{0,3}(?P<letter>[A-Za-z])[])}'.:!]{0,4}")
_LISTED: Final = re.compile(rf"(?<!{_L}){_STATED}(?!{_L})")
_BETWEEN: Final = " ,;("
_JOINTS: Final = " ,;:-–—"
_ENDS: Final = " .!()[]{}'"


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """The patterns of `wordings.yaml`, and those that are made of them."""
    import yaml  # only where replies are read: it takes a while to import

    written = Path(__file__).with_name("wordings.yaml").read_text(encoding="utf-8")
    uses = yaml.load(written, yaml.BaseLoader)  # every value a text: `no` is a word here
    word = {use: _word("|".join(by_language.values())) for use, by_language in uses.items()}
    titles, one = rf"(?:{word['titles']}\s*)*", rf"[(\[{{']{{0,3}}(?<!{_L}){_STATED}(?!{_L})[])}}'.:]{{0,3}}"
    stated = rf"{word['answers']}\s*{word['is']}\s*:?|(?:{word['answers']}|{word['titles']})\s*:"
    judged = rf"(?P<judged>.{{1,{_NEAR}}}?){word['verdicts']}(?=\s*(?:$|[.,;:!)]|{word['endings']}))"
    reason = rf",?\s*{word['endings']}"
    words = word | {
        "titles": titles,
        "statement": rf"{stated}|\\boxed\{{(?:\\text\w*\{{)?|\[\[",
        "sentence": rf"(?:{word['leads']}[\s,]*)?(?:{word['choices']}\s*:?(?P<taken>.+)|{judged})",
    }
    letters = {
        "several": rf"{one}(?:\s*(?:[,;/&]|[,;]?\s*{word['several']})\s*{titles}{one})+(?!\w)",
        "stated": rf"{_OPENED}(?:{_CLOSED}|(?=[,;]\s|\s+[-–—]\s|{reason}))",
        "begun": rf"{_OPENED}(?:{_CLOSED}|(?={reason}))",
        "further": rf"(?<=[.,;!]\s){_OPENED}{_CLOSED}",
    }
    compiled = {use: re.compile(pattern, re.IGNORECASE) for use, pattern in words.items()}
    return compiled | {use: re.compile(pattern) for use, pattern in letters.items()}


def _word(pattern: str) -> str:
    edge = rf"(?:(?<!{_L})|(?!{_L}))"
    return rf"{edge}(?:{pattern.replace(' ', '[ ]+')}){edge}"


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
