"""chrF: how far two texts share pieces of letters."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evaluand.evaluation.scorer import (
    ReferenceScorer,
    Score,
    require_extra,
    require_flags,
    wrong_parameter,
)


@dataclass(frozen=True, kw_only=True)
class Chrf(ReferenceScorer):
    """sacreBLEU's chrF of one answer, from 0 to 100 (M. Popović, "chrF: character n-gram F-score", WMT 2015; with
    `word_order=2` chrF++, WMT 2017).

    The expected value is a reference or a list of them, of which the best counts. Needs no words, so it serves scripts
    that part none. Abstains where nothing is expected, every reference is empty, or the answer is no text.

    Needs the extra `text`: `pip install evaluand[text]`.

    Attributes:
        char_order: the longest pieces, in letters.
        word_order: the longest sequences of words; 0 is chrF, 2 is chrF++.
        beta: how much recall counts beside precision.
        lowercase: compare without case.

    Raises:
        SpecError: a number is none, or sacrebleu is not installed.

    Example:
        >>> round(Chrf().score("the cat", "the cat sat").value, 2)
        55.77
    """

    kind = "chrf"
    version = 1
    cheap = True
    ranges: ClassVar = {"value": (0.0, 100.0)}

    char_order: int = 6
    word_order: int = 0
    beta: int = 2
    lowercase: bool = False

    def __post_init__(self) -> None:
        require_flags(self, "lowercase")
        for name, least in (("char_order", 1), ("word_order", 0), ("beta", 1)):
            value: Any = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise wrong_parameter(self, name, f"give a whole number of at least {least}")
        require_extra(self, "sacrebleu", "text")

    def compared(self, output: str, references: Sequence[str]) -> Score:
        if not any(map(str.strip, references)):
            return Score.abstained("no reference has any letters")
        return Score(float(_chrf(self).sentence_score(output, references).score))


@functools.cache
def _chrf(scorer: Chrf) -> Any:
    from sacrebleu.metrics.chrf import CHRF  # on use: an extra

    return CHRF(
        char_order=scorer.char_order, word_order=scorer.word_order, beta=scorer.beta, lowercase=scorer.lowercase
    )
