"""What an answer shares with reference texts: BLEU, chrF and ROUGE."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from evaluand.core.parameters import Within
from evaluand.evaluation.scorer import ReferenceScorer, Score, wrong_parameter


@dataclass(frozen=True, kw_only=True)
class Bleu(ReferenceScorer):
    """sacreBLEU's score of one answer, from 0 to 100 (K. Papineni et al., "BLEU", ACL 2002; M. Post, "A call for
    clarity in reporting BLEU scores", WMT 2018).

    The expected value is a reference or a list of them. The mean over rows is the mean of sentence scores and not the
    BLEU of a corpus, whose counts are summed first. Abstains where nothing is expected or the references have no words,
    and where the answer is no text.

    Needs the extra `text`: `pip install 'evaluand[text]'`.

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
    needs = ("sacrebleu", "text")
    ranges: ClassVar = {"value": (0.0, 100.0)}

    effective_order: bool = True
    lowercase: bool = False
    tokenize: Literal["13a", "intl", "char", "zh", "none"] = "13a"
    smooth: Literal["exp", "floor", "add-k", "none"] = "exp"

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


@dataclass(frozen=True, kw_only=True)
class Chrf(ReferenceScorer):
    """sacreBLEU's chrF of one answer, from 0 to 100 (M. Popović, "chrF: character n-gram F-score", WMT 2015; with
    `word_order=2` chrF++, WMT 2017).

    The expected value is a reference or a list of them, of which the best counts. Needs no words, so it serves scripts
    that part none. Abstains where nothing is expected, every reference is empty, or the answer is no text.

    Needs the extra `text`: `pip install 'evaluand[text]'`.

    Attributes:
        char_order: the longest pieces, in letters.
        word_order: the longest sequences of words; 0 is chrF, 2 is chrF++.
        beta: how much more recall counts than precision.
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
    needs = ("sacrebleu", "text")
    ranges: ClassVar = {"value": (0.0, 100.0)}

    char_order: Annotated[int, Within(1)] = 6
    word_order: Annotated[int, Within(0)] = 0
    beta: Annotated[int, Within(1)] = 2
    lowercase: bool = False

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


@dataclass(frozen=True, kw_only=True)
class Rouge(ReferenceScorer):
    """The F1 of what rouge-score finds in both texts, from 0 to 1; precision and recall are separate columns.

    Source: C.-Y. Lin, "ROUGE: a package for automatic evaluation of summaries" (2004), as Google's rouge-score computes
    it. The expected value is a reference or a list of them, of which the one with the best F1 counts. Abstains where
    nothing is expected, where no reference has enough words (two for ROUGE-2), and where the answer is no text.

    Needs the extra `text`: `pip install 'evaluand[text]'`.

    Attributes:
        variant: `1` words, `2` pairs of words, `L` the longest common sequence of words.
        stemmer: take English words by their stems; if not given, yes unless words are of `any_script`.
        any_script: words are letters and digits of any script. Otherwise they are those of a–z and 0–9 alone, which is
            how ROUGE is published: `über` becomes `ber`, and a text in Greek has no words.

    Raises:
        SpecError: there is no such variant, both flags are set, or rouge-score is not installed.

    Example:
        >>> score = Rouge(variant="2").score("a b c d e f g h", "a b c d x f g h")
        >>> round(score.value, 3), round(score.columns["recall"], 3)
        (0.714, 0.714)
    """

    kind = "rouge"
    version = 1
    cheap = True
    needs = ("rouge_score", "text")
    ranges: ClassVar = dict.fromkeys(("value", "precision", "recall"), (0.0, 1.0))
    columns: ClassVar = {"precision": "double", "recall": "double"}

    variant: Literal["1", "2", "L"] = "L"
    stemmer: bool | None = None
    any_script: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stemmer is None:
            object.__setattr__(self, "stemmer", not self.any_script)
        if self.stemmer and self.any_script:
            raise wrong_parameter(self, "stemmer", "leave it out with any_script, since it knows English words alone")

    def compared(self, output: str, references: Sequence[str]) -> Score:
        least = 2 if self.variant == "2" else 1
        rouge = _rouge(self)
        wordy = [text for text in references if len(rouge.words(text)) >= least]
        if not wordy:
            return Score.abstained(f"no reference has {'two words' if least == 2 else 'words'}{self._script()}")
        best = max((rouge.compared(text, output) for text in wordy), key=lambda found: found[2])
        return Score(best[2], columns={"precision": best[0], "recall": best[1]})

    def _script(self) -> str:
        return "" if self.any_script else " of a–z and 0–9; the scorer rouge takes any_script"


class _Compared:
    """One of rouge-score's scorers with the words it takes."""

    def __init__(self, scorer: Rouge) -> None:
        from rouge_score import rouge_scorer, tokenizers  # on use: an extra, which takes seconds where scipy is there

        words = _AnyScript() if scorer.any_script else tokenizers.DefaultTokenizer(scorer.stemmer)
        self._name = f"rouge{scorer.variant}"
        self._scorer = rouge_scorer.RougeScorer([self._name], tokenizer=words)
        self.words = words.tokenize

    def compared(self, reference: str, output: str) -> tuple[float, float, float]:
        found = self._scorer.score(reference, output)[self._name]
        return float(found.precision), float(found.recall), float(found.fmeasure)


class _AnyScript:
    def tokenize(self, text: str) -> list[str]:
        return _WORD.findall(text.casefold())


_WORD: Final = re.compile(r"[^\W_]+")


@functools.cache
def _rouge(scorer: Rouge) -> _Compared:
    return _Compared(scorer)
