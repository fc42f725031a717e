"""Short explanations of words of statistics, where they are used."""

from __future__ import annotations

from html import escape
from typing import Final

_WORDS: Final = {
    "Holm": "Of many tests some look significant by chance. Holm's procedure raises the p values of tests that were"
    " made together enough that the chance of any false finding is at most 5 %.",
    "Shaffer": "As Holm's procedure, for all pairs of several systems. Not every pair can differ if some others do not,"
    " so p values need to be raised less.",
    "Bonferroni": "Of many tests some look significant by chance. Each interval of tests that were made together has an"
    " equal share of the chance of an error, so that the chance of any false finding is at most 5 %.",
    "detectable difference": "The true difference that a test of these rows finds in 80 of 100 cases. Smaller ones are"
    " often missed, so “not shown” does not mean “equal”.",
    "flips": "Examples on which the two disagree: won by one, lost by the other. All others are tied.",
    "letters": "Between systems that share a letter these rows show no difference. Those that share none differ"
    " significantly.",
}


def explain(*words: str) -> str:
    """A fold that says what some words mean."""
    pairs = "".join(f"<dt>{escape(word)}</dt><dd>{escape(_WORDS[word])}</dd>" for word in words)
    summary = "<summary>What do these words mean?</summary>"
    return f'<details class="meanings">{summary}<dl class="pairs">{pairs}</dl></details>'
