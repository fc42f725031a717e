"""The options of a multiple-choice question: how they are shown, and which one a reply names.

A *position* is the place of an option as it is shown, a *place* its place in the dataset. Options that are not shuffled
have both in common. Positions are lettered A, B, …

Which option a reply names follows from its words alone: where it names none, or several, there is no answer. A guess
would be right by chance, and such answers would be counted as knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Final, Literal

from evaluand.core import identity
from evaluand.core.errors import TaskError, kind_of
from evaluand.core.text.normal_form import normal_form
from evaluand.models.extraction import Extraction

Answer = Literal["letter", "number", "text", "one_hot"]
"""How a dataset states the right option: its letter, its number from 0, its text, or a list with 1 for it and 0 for the
others."""

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

        In this order: the reply is the text of an option, or a letter (`whole reply`); the last clause that says which
        option is right or taken, such as `Answer: C`, `\boxed{C}`, `C is right`, `I choose C` or `So C` (`statement`);
        its lines begin with one, as in `(C)` or `C, green` (`line`). Where a later clause denies the option, or the
        last ones say different ones without correcting each other, none is named.
        """
        words = _cleaned(reply)[-_LONGEST:]
        rules = {"whole reply": lambda text: [self._alone(text)], "statement": self._stated, "line": self._begun}
        for rule, read in rules.items():
            if candidates := [named for named in read(words) if named]:
                named = candidates[-1]
                if len(named) > 1 or _NONE in named:
                    return None, Extraction.unread(_DENIES if _NONE in named else _SEVERAL, len(candidates))
                [(position, part)] = named.items()
                return position, Extraction(part, rule, len(candidates))
        return None, Extraction.unread("the reply names no option")

    def _alone(self, words: str) -> _Named:
        """What words and nothing else name: as a text, and as a letter."""
        letter = _LETTER.fullmatch(words)
        return self._of_text(words) | (self._of_letters(letter["letter"]) if letter else {}) or self._near_text(words)

    def _stated(self, words: str) -> list[_Named]:
        """What the clauses name that say which option is right or taken, each with those before that it confirms."""
        patterns, stated, denied = _patterns(), [_Named()], _Named()
        for claim in filter(None, map(patterns["claim"].match, self._clauses(words))):
            before, text = claim["before"] or "", claim[claim.lastgroup or 0].strip(f"{_BETWEEN}?")
            read = self._first if claim["bare"] is None else self._alone
            named = read(text)
            denial = None if named else patterns["denials"].match(text)
            if denial:
                named = read(text[denial.end() :].strip(_BETWEEN))
            elif not named and claim["bare"] is None and patterns["neither"].match(text):
                named = {_NONE: text}
            doubt = patterns["hedges"].search(before) or patterns["doubts"].search(re.split("[.,:;!?]", before)[-1])
            if denial or doubt or claim.string.endswith("?"):
                denied |= named
                stated[-1] = {n: part for n, part in stated[-1].items() if n not in named}
            elif named:
                is_new = claim["before"] is not None or patterns["contrasts"].match(claim.string)
                stated.append(named if is_new else stated[-1] | named)
        return [*stated, {_NONE: words} if denied and not stated[-1] else {}]

    def _clauses(self, words: str) -> list[str]:
        """The clauses of a reply; the text of an option belongs to the letter before it, and the rest to `But,`."""
        clauses, patterns = [""], _patterns()
        for clause in patterns["clauses"].split(re.sub(r":\s+", ": ", words)):
            is_rest = patterns["leads"].fullmatch(end := clauses[-1]) or (
                _LETTERED.search(end) and self._near_text(clause)
            )
            clauses.append(f"{clauses.pop()} {clause}".strip() if is_rest else clause.strip())
        return clauses

    def _begun(self, words: str) -> list[_Named]:
        """What the lines begin with, where nothing is stated; no option that is there if one rejects it."""
        patterns, begun = _patterns(), [_Named()]
        for line in [] if patterns["statement"].search(words) else words.splitlines():
            named = self._first(line.strip())
            named.pop(_NONE, None)  # such as the I of a heading
            is_rejected = patterns["rejections"].search(patterns["endings"].split(line, maxsplit=1)[0])
            begun += [begun[-1] | ({_NONE: line} if is_rejected else named)] if named else []
        return begun

    def _first(self, words: str) -> _Named:
        """What words name, or begin with: a letter alone, several, or one before other words.

        With a letter before the text of another option, both.
        """
        if named := self._alone(words):
            return named
        words = _patterns()["endings"].split(words, maxsplit=1)[0].strip(_BETWEEN)
        words = _patterns()["fillers"].sub("", words, count=1).strip()
        if listed := _patterns()["several"].match(words):
            return self._of_letters(_LISTED.findall(listed[0]))
        if begun := _patterns()["begun"].match(words):
            further = [match["letter"] for match in _patterns()["further"].finditer(words, begun.end())]
            return self._of_letters([begun["letter"], *further]) | self._near_text(words[begun.end() :])
        beside = self._near_text(words[1:])
        return self._alone(words) or {n: beside[n] for n in self._of_letters(words[:1]) if n in beside}

    def _of_text(self, words: str) -> _Named:
        """What words are the text of, whatever the case unless that tells options apart."""
        for form in (str, str.casefold):
            if named := {n: words for n, text in enumerate(self._texts) if words and form(text) == form(words)}:
                return named
        return {}

    def _near_text(self, words: str) -> _Named:
        """What words name as a text, without what joins them to a letter, brackets and a full stop."""
        bare = words.strip().lstrip(" ,;:-–—")
        return (
            self._of_text(words.strip()) or self._of_text(bare) or self._of_text(bare.strip(" .!()[]{}'"))
            if bare
            else {}
        )

    def _of_letters(self, letters: Iterable[str]) -> _Named:
        """What letters name; no option that is there if they are none of its letters."""
        return {self.letters.find(letter.upper()): letter for letter in letters if letter.upper() in ascii_uppercase}

    @cached_property
    def _texts(self) -> list[str]:
        return [_cleaned(text) for text in self.shown]


_Named = dict[int, str]
"""The positions that words name, each with the words that do."""
_NONE: Final = -1  # the position of what is no option: `str.find` gives it for a letter that is none
_SEVERAL: Final = "the reply names several options"
_DENIES: Final = "the reply denies an option, or names one that is not there"


def _cleaned(text: str) -> str:
    """Text in its normal form, without markup, quotes and signs without width."""
    text = normal_form(text).translate(_WIDE)
    for pattern, plain in _NOISE:
        text = pattern.sub(plain, text)
    return text.strip()


_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | str.maketrans("。、【】", ".,[]")
_NOISE: Final = (
    (re.compile(r"<(?:final[_ ])?answer>", re.IGNORECASE), "answer:"),
    (re.compile(r"<\|[^<>|]*\|>|</?(?:br|p|b|i|em|strong|code|div|answer) ?/?>"), "\n"),  # a token: GLM boxes answers
    (re.compile(r"\\(?:text|math)[a-z]*(?=\{)|\\[ ,;!()\[\]]|[ \t]+"), " "),
    (re.compile('(?<="),(?=")'), ", "),
    (re.compile('[*$`"\u00ad\u200b-\u200f\u2060\ufeff]'), ""),
)
_LONGEST: Final = 100_000  # characters; an answer ends a reply
_LETTERED: Final = re.compile(r"(?:^|\W)[A-Z][.)]$")
_NEAR: Final = 200  # characters before a verdict that can name an option
_L: Final = r"[A-Za-zÀ-ɏͰ-ӿ]"  # letters of scripts that put spaces between words
_STATED: Final = r"(?-i:[A-Z]|[a-z](?=[])]))"
_OPENED: Final = rf"[(\[{{']{{0,3}}(?P<letter>{_STATED})"
_CLOSED: Final = r"[])}'.:!]{1,4}(?=[\s,;]|$)"
_LETTER: Final = re.compile(r"[(\[{']{0,3}(?P<letter>[A-Za-z])[])}'.:!]{0,4}")
_LISTED: Final = re.compile(rf"(?<!{_L}){_STATED}(?!{_L})")
_BETWEEN: Final = " ,;("


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """The patterns of `wordings.yaml`, and those that are made of them."""
    import yaml  # only where replies are read: it takes a while to import

    uses = yaml.load(Path(__file__).with_name("wordings.yaml").read_bytes(), yaml.BaseLoader)  # `no` is a word here
    word = {use: _word("|".join(by_language.values())) for use, by_language in uses.items()}
    one = rf"[(\[{{']{{0,3}}(?<!{_L}){_STATED}(?!{_L})[])}}'.:]{{0,3}}"
    fillers, lead = rf"(?:{word['fillers']}[\s,:]*)*+", rf"(?:(?:{word['contrasts']}|{word['fillers']})[\s,:]*)"
    marks = r"####|\\boxed\{|\[\["
    stated = rf"{word['answers']}\s*{word['is']}\s*:?|(?:{word['answers']}|{word['fillers']}(?<!s))\s*:|{marks}"
    judged = rf"(?P<judged>.{{1,{_NEAR}}}?){word['verdicts']}(?=\s*(?:$|[.,;:!)]|{word['endings']}))"
    turns = "|".join(word[use] for use in ("contrasts", "fillers", "choices", "denials"))
    patterns = word | {
        "fillers": fillers,
        "leads": rf"{lead}{{0,3}}",
        "statement": stated,
        "claim": rf"(?P<before>.*)(?:{stated})(?P<said>.*)|{lead}*+(?:{word['choices']}\s*:?(?P<taken>.+)|{judged})"
        rf"|(?:{lead}++|(?={word['denials']}))(?P<bare>.+)",
        "clauses": rf"\n+|(?<=[.!?;])(?:\s+|(?=[^\x00-\x7f]))|(?<=[,;(]) ?(?!{word['several']})(?={turns})"
        rf"| (?={word['contrasts']})",
        "several": rf"{one}(?:\s*(?:[,;/&]|[,;]?\s*{word['several']})\s*{fillers}{one})+(?!\w)",
        "begun": rf"{_OPENED}(?:{_CLOSED}|(?=$|[,;]\s(?!{word['several']})|\s+[-–—]\s))",
        "further": rf"(?:[.,;!]|{word['several']})\s+{_OPENED}{_CLOSED}",
    }
    return {use: re.compile(pattern, re.IGNORECASE) for use, pattern in patterns.items()}


def _word(pattern: str) -> str:
    edge = rf"(?:(?<!{_L})|(?!{_L}))"
    grouped = re.sub(r"\((?!\?)", "(?:", pattern).replace(" ", "[ ]+")
    return rf"{edge}(?:{grouped}){edge}"


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
    texts = _texts(values, choices)
    if not 2 <= len(texts) <= MOST:
        raise TaskError(f"the question has {len(texts)} options; there must be 2 to {MOST}", code="choices")
    names = [*ascii_uppercase[: len(texts)]] if labels is None else _texts(values, labels)
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


def _texts(values: Mapping[str, Any], names: str | Sequence[str]) -> list[str]:
    """The options in a list, or in values of their own."""
    if not isinstance(names, str):
        return [_text(values.get(name), name) for name in names]
    if not isinstance(options := values.get(names), list | tuple):
        raise TaskError(f"{names} is {kind_of(options)}, not a list of options", code="choices")
    return [_text(option, f"{names}[{place}]") for place, option in enumerate(options)]


def _text(value: Any, name: str) -> str:
    """An option as text; numbers are written as they are."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TaskError(f"{name} is {kind_of(value)}; an option is text", code="choices")
    return str(value)
