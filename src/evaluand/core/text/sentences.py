"""Splits a text into sentences.

A sentence ends with its mark (`.`, `!`, `?`, `…`, and those of other scripts) before white space, unless what follows
continues in lower case, or the mark belongs to an abbreviation, an initial or a number of a list. A single letter is
not an initial before a word that often begins sentences. Paragraphs and entries of lists end sentences too. Texts
without marks are cut at white space, so that sentences have at most `LONGEST` characters.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST: Final = 1000  # characters of a sentence


class Sentence(NamedTuple):
    """A sentence and its position.

    Attributes:
        text: without the white space around it.
        start: where it begins in the text.
        end: where it ends.
    """

    text: str
    start: int
    end: int


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text, those without a letter or a digit left out.

    Example:
        >>> [found.text for found in sentences("Dr. Smith paid 3.50 euros. He left!")]
        ['Dr. Smith paid 3.50 euros.', 'He left!']
    """
    pieces = (piece for start, end in _paragraphs(text) for piece in _split_paragraph(text, start, end))
    return [one for piece in pieces for one in _cut(text, *piece) if any(map(str.isalnum, one.text))]


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for pause in _PAUSE.finditer(text):
        yield start, pause.start()
        start = pause.end()
    yield start, len(text)


def _split_paragraph(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for mark in _MARK.finditer(text, start, end):
        if mark.start() > start and not _continues(text, start, mark, end):
            yield start, mark.end()
            start = mark.end()
    yield start, end


def _continues(text: str, start: int, mark: re.Match[str], end: int) -> bool:
    if mark[0][0] in _ALONE:
        return False
    after = mark.end()
    if after >= end:
        return False
    if text[after : after + 1].strip():
        return True  # within a number, a name of a file, an address
    follows = _NEXT.search(text, after, min(end, after + _LONGEST_WORD))
    if follows and follows[0].islower():
        return True
    if mark[0] != ".":
        return False
    before = _LAST_WORD.search(text, max(start, mark.start() - _LONGEST_WORD), mark.start())
    if before is None:
        return False
    word, next_word = before[0], _WORD.match(text, follows.start()) if follows else None
    if len(word) == 1 and word.isupper():
        return word != "I" and not (next_word and next_word[0] in BEGINNINGS)
    if word.isdigit():
        return not text[start : before.start()].strip()
    numbers = follows is not None and follows[0].isdigit() and word.casefold() in _BEFORE_NUMBERS
    return numbers or word.casefold() in ABBREVIATIONS


def _cut(text: str, start: int, end: int) -> Iterator[Sentence]:
    while start < end:
        stop = end
        if end - start > LONGEST:
            space = max(text.rfind(white, start + LONGEST // 2, start + LONGEST) for white in " \t\n")
            stop = start + LONGEST if space < 0 else space
        piece = text[start:stop]
        bare = piece.strip()
        if bare:
            begin = start + len(piece) - len(piece.lstrip())
            yield Sentence(bare, begin, begin + len(bare))
        start = stop


_PAUSE: Final = re.compile(r"\n[^\S\n]*(?:\n\s*|(?=(?:[-*•·]|\d{1,3}[.)])[^\S\n]))")
_MARK: Final = re.compile(r"[.!?…]+[\"'”’»)\]]*|[。！？．｡।॥؟۔]+[”’」』）]*")
_ALONE: Final = frozenset("。！？．｡।॥؟۔")
_NEXT: Final = re.compile(r"\w")
_WORD: Final = re.compile(r"\w+")
_LAST_WORD: Final = re.compile(r"[^\W_]+(?:\.[^\W_]+)*\Z")
_LONGEST_WORD: Final = 20
ABBREVIATIONS: Final = frozenset(
    """
    al approx apr aug bzw ca capt cf col cp d.h dec dept dr e.g ed eds eq est etc feb fig figs gen gov hr i.e inc jan jr
    ltd mr mrs ms mt nov nr oct pp prof rev sen sept sgt sr st u.a vgl viz vol vs z.b
    """.split()  # noqa: SIM905
)
_BEFORE_NUMBERS: Final = frozenset(("art", "ch", "no", "nos", "p", "par", "sec"))
BEGINNINGS: Final = frozenset(  # of sentences: capitalised words that are not names
    """
    A After All Also An And As At Before Both But By Each For From He Her Here His How However I If In Is It Its Most
    My Next No Not Now On One Or Our She So Some That The Their Then There These They This Those To We What When Where
    Which While Who Why With Yes You Your
    """.split()  # noqa: SIM905
)
