"""Whether a text is positive: the rules and the lexicon of VADER, the extra `sentiment`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from evaluand.core.text.sentences import sentences
from evaluand.evaluation.provider import Judgement, Provider, from_0_to_1, lower_is_better, quoted, text_of
from evaluand.evaluation.providers.english import judged_english, require


@dataclass(frozen=True)
class Sentiment(Provider):
    """Judges the feeling of English texts by a lexicon and rules for intensifiers and negation.

    C. Hutto & E. Gilbert, "VADER: a parsimonious rule-based model for sentiment analysis of social media text" (2014).
    It knows words, not the world: soup that tastes like dishwater is neutral to it.

    Example:
        >>> Sentiment().positive_sentiment("What a wonderful day!").value > 0.8
        True
    """

    kind = "sentiment"

    @classmethod
    def require(cls) -> None:
        require(cls.kind, "vaderSentiment", "sentiment")

    @from_0_to_1
    def positive_sentiment(self, text: str) -> Judgement:
        """How positive a text is: the mean over its sentences of VADER's compound score, scaled to 0 to 1.

        0.5 is neutral. Undefined if the text has no words, or is in another language than English.
        """
        why = judged_english(text_of("text", text))
        if why is not None:
            return Judgement.undefined(why)
        scored = [((_analyser().polarity_scores(one.text)["compound"] + 1) / 2, one) for one in sentences(text)]
        value = sum(score for score, _ in scored) / len(scored)
        score, strongest = max(scored, key=lambda pair: abs(pair[0] - 0.5))
        cited = {"sentence": strongest.text, "start": strongest.start, "end": strongest.end}
        if score == 0.5:
            return Judgement(value, {"reason": "no word of it is in the lexicon, or they balance: neutral"})
        return Judgement(value, {"reason": f"most of all by {quoted(strongest.text)} ({score:.2f})", **cited})

    @from_0_to_1
    @lower_is_better
    def negative_sentiment(self, text: str) -> Judgement:
        """1 − `positive_sentiment`."""
        value, meta = self.positive_sentiment(text)
        return Judgement(None if value is None else 1 - value, meta)


@cache
def _analyser() -> Any:
    require("sentiment", "vaderSentiment", "sentiment")
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # on use: an extra

    return SentimentIntensityAnalyzer()
