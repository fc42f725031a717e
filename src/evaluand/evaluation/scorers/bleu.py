"""BLEU of a text beside one or several references."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from evaluand.evaluation.scorer import (
    ReferenceScorer,
    Score,
    require_choice,
    require_extra,
    require_flags,
)

TOKENIZERS: Final = ("13a", "intl", "char", "zh", "none")
SMOOTHINGS: Final = ("exp", "floor", "add-k", "none")


@dataclass(frozen=True, kw_only=True)
class Bleu(ReferenceScorer):
    """sacreBLEU's score of one answer, from 0 to 100 (K. Papineni et al., "BLEU", ACL 2002; M. Post, "A call for
    clarity in reporting BLEU scores", WMT 2018).

    The expected value is a reference or a list of them. The mean over rows is the mean of sentence scores and not the
    BLEU of a corpus, whose counts are summed first. Abstains where nothing is expected or the references have no words,
    and where the answer is no text.

    Needs the extra `text`: `pip install evaluand[text]`.

    Attributes:
        effective_order: leave out the orders for which an answer is too short. Without it an answer of three words is
            worth 0 even where it is the reference itself.
        lowercase: compare without case.
        tokenize: how texts become words: `13a`, `intl`, `char`, `zh` or `none`.
        smooth: what a precision of 0 becomes: `exp`, `floor`, `add-k` or `none`.

    Raises:
        SpecError: a parameter is none of these, or sacrebleu is not installed.

    Example:
        >>> Bleu().score("a b c d e f g h", "a b c d x f g h").value
        50.000000000000014
    """

    kind = "bleu"
    version = 2
    cheap = True
    ranges: ClassVar = {"value": (0.0, 100.0)}

    effective_order: bool = True
    lowercase: bool = False
    tokenize: str = "13a"
    smooth: str = "exp"

    def __post_init__(self) -> None:
        require_flags(self, "effective_order", "lowercase")
        require_choice(self, "tokenize", TOKENIZERS)
        require_choice(self, "smooth", SMOOTHINGS)
        require_extra(self, "sacrebleu", "text")

    def compared(self, output: str, references: Sequence[str]) -> Score:
        if not any(map(str.strip, references)):
            return Score.abstained("no reference has any words")
        found = _bleu(self).corpus_score([output], [[reference] for reference in references])
        return Score(min(float(found.score), 100.0))  # the mean of logarithms may round to a little more


@functools.cache
def _bleu(scorer: Bleu) -> Any:
    from sacrebleu.metrics.bleu import BLEU  # on use: an extra

    return BLEU(
        lowercase=scorer.lowercase,
        tokenize=scorer.tokenize,
        smooth_method=scorer.smooth,
        effective_order=scorer.effective_order,
    )
