"""How easily English texts are read: the formulas of Flesch, which count words, sentences and syllables."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, NamedTuple

from evaluand.core.text.language import require_language
from evaluand.core.text.sentences import sentences
from evaluand.evaluation.local_provider import LocalProvider, longest
from evaluand.evaluation.provider import Judgement, text_of
from evaluand.evaluation.providers.english import judged_english


@dataclass(frozen=True)
class Readability(LocalProvider):
    """Judges the length of words and sentences of English texts, and nothing else about their style.

    A word is a run of letters, which apostrophes and hyphens may join; accents are ignored. `syllables_of` counts its
    syllables; `sentences` counts sentences. Values for a few sentences are unreliable.

    Example:
        >>> Readability().reading_ease("The cat sat on the mat.").reason
        '116.1: very easy; 6 words of 1.00 syllables, 1 sentences of 6.0 words'
    """

    kind = "readability"

    @classmethod
    def require(cls) -> None:
        require_language(cls.kind)

    @longest(1_000_000)
    def reading_ease(self, text: str) -> Judgement:
        """Flesch's reading ease, 206.835 − 1.015 · words / sentences − 84.6 · syllables / words; higher is easier.

        Usually between 0 (very hard) and 100, but unbounded. Undefined if there are no letters from a to z, or
        the text is in another language than English. Source: R. Flesch, "A new readability yardstick" (1948).
        """
        counts = _count(text_of("text", text))
        if isinstance(counts, str):
            return Judgement.undefined(counts)
        value = counts.ease
        word = next((word for least, word in _EASE if value >= least), _EASE[-1][1])
        return Judgement(value, {"reason": f"{value:.1f}: {word}; {counts}", **counts._asdict()})

    @longest(1_000_000, lower_is_better=True)
    def grade_level(self, text: str) -> Judgement:
        """The grade of school by Flesch and Kincaid, 0.39 · words / sentences + 11.8 · syllables / words − 15.59.

        Undefined as `reading_ease` is. Source: J. P. Kincaid et al., "Derivation of new readability formulas for Navy
        enlisted personnel" (1975).
        """
        counts = _count(text_of("text", text))
        if isinstance(counts, str):
            return Judgement.undefined(counts)
        return Judgement(counts.grade, {"reason": f"grade {counts.grade:.1f}; {counts}", **counts._asdict()})

    @longest(1_000_000, share=True)
    def readability(self, text: str) -> Judgement:
        """The reading ease from 0 to 1: divided by 100, and cut off at both ends."""
        value, meta = self.reading_ease(text)
        return Judgement(None if value is None else min(max(value / 100, 0.0), 1.0), meta)


def syllables_of(word: str) -> int:
    """How many syllables an English word has, by rule; 97 of 100 words of running text are as a dictionary has them.

    One for each run of vowels (a, e, i, o, u, y), at least one. A final e, -es or -ed is silent, and so is an e before
    -ly, -ful, -less, -ness and -ment; but not in -le and -les after a consonant, in -ed after d or t, and in -es after
    c, g, s, x, z, ch or sh. Two vowels are two syllables in ia, io, iu (after c, g, s, t only in iate, iation, iety),
    eo, ual, uate, uous, uity, before -ing, and in eate, eatio and eato. The endings -ism and n't have one more.

    Example:
        >>> [syllables_of(word) for word in ("cat", "table", "baked", "wanted", "radio", "creation", "homeless")]
        [1, 2, 1, 2, 3, 3, 2]
    """
    word = word.casefold().replace("’", "'")
    runs = len(_VOWELS.findall(word)) - len(_SILENT.findall(word)) + len(_SPLIT_VOWELS.findall(word))
    return max(runs, 1)


class _Counts(NamedTuple):
    words: int
    sentences: int
    syllables: int

    @property
    def ease(self) -> float:
        return 206.835 - 1.015 * self.words / self.sentences - 84.6 * self.syllables / self.words

    @property
    def grade(self) -> float:
        return 0.39 * self.words / self.sentences + 11.8 * self.syllables / self.words - 15.59

    def __str__(self) -> str:
        words = f"{self.words} words of {self.syllables / self.words:.2f} syllables"
        return f"{words}, {self.sentences} sentences of {self.words / self.sentences:.1f} words"


def _count(text: str) -> _Counts | str:
    """The words, sentences and syllables of a text, or why they cannot be counted."""
    if (why := judged_english(text)) is not None:
        return why
    in_sentences = [found for one in sentences(text) if (found := _WORD.findall(_without_accents(one.text)))]
    words = [word for found in in_sentences for word in found]
    return _Counts(len(words), len(in_sentences), sum(map(syllables_of, words))) if words else _NOTHING


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


_NOTHING: Final = "the text has no words of letters from a to z"
_WORD: Final = re.compile(r"[a-z]+(?:['’-][a-z]+)*", re.IGNORECASE)
_VOWELS: Final = re.compile(r"[aeiouy]+")
_SILENT: Final = re.compile(
    r"(?<=[^aeiouy])(?<![^aeiouyrl]l)e(?=$|-|(?:ly|ful|less|ness|ments?)\b)"
    r"|(?<=[^aeiouycgsxz])(?<![cs]h)(?<![^aeiouyrl]l)e(?=s\b)"
    r"|(?<=[^aeiouydt])e(?=d\b)"
)
_SPLIT_VOWELS: Final = re.compile(
    r"(?<![cgst])i(?=[aou])|(?<=[cgst])i(?=ate|ation|ety)|eo(?!u)|u(?=al|ate|ous|ity)|(?<=[aeiouy])ing\b|ea(?=te|tio|to)"
    r"|ism\b|n't\b"
)
_EASE: Final = (
    (90, "very easy"),
    (80, "easy"),
    (70, "fairly easy"),
    (60, "plain"),
    (50, "fairly hard"),
    (30, "hard"),
    (-1e9, "very hard"),
)
