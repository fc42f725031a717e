"""Whether a text is positive (`Sentiment`) or would offend (`Toxicity`), by libraries that know English only."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from evaluand.core.errors import SpecError, describe_error
from evaluand.core.text.language import language_of, require_language
from evaluand.core.text.sentences import Sentence, sentences
from evaluand.evaluation.local_provider import LocalProvider, longest
from evaluand.evaluation.provider import Judgement, quoted, text_of

_LIKELY = 0.5
_ENGLISH = ("en", "pcm")  # short English texts may be detected as Nigerian Pidgin, which shares its words


def judged_english(text: str) -> str | None:
    """Why a text cannot be judged by a provider that knows only English words; None if it can."""
    return "the text has no words" if not any(map(str.isalpha, text)) else other_language(text)


def other_language(text: str, name: str = "the text") -> str | None:
    """Why a text is probably not English; None if it may be.

    A few words for which no language is more probable than not pass, and so do numbers.
    """
    if not any(map(str.isalpha, text)):
        return None
    if not any("a" <= letter <= "z" for letter in text.casefold()):
        return f"{name} has no letters from a to z, but this provider judges English only"
    found = language_of(text)
    if found is not None and found.code not in _ENGLISH and found.probability >= _LIKELY:
        return f"{name} is in {found.code} ({found.probability:.2f}), but this provider judges English only"
    return None


class _English(LocalProvider):
    """Judges the sentences of English texts by a library, the extra of its name."""

    _library: ClassVar[str]

    @classmethod
    def require(cls) -> None:
        if find_spec(cls._library) is None:
            raise SpecError(f"provider {cls.kind!r} needs {cls._library}: pip install 'evaluand[{cls.kind}]'")
        require_language(cls.kind)


@dataclass(frozen=True)
class Sentiment(_English):
    """Judges the feeling of English texts by a lexicon and rules for intensifiers and negation.

    C. Hutto & E. Gilbert, "VADER: a parsimonious rule-based model for sentiment analysis of social media text" (2014).
    It knows words, not the world: soup that tastes like dishwater is neutral to it.

    Example:
        >>> Sentiment().positive_sentiment("What a wonderful day!").value > 0.8
        True
    """

    kind = "sentiment"
    _library = "vaderSentiment"

    @longest(500_000, share=True)
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
        if score == 0.5:
            return Judgement(value, {"reason": "no word of it is in the lexicon, or they balance: neutral"})
        return Judgement(
            value, {"reason": f"most of all by {quoted(strongest.text)} ({score:.2f})", **cited(strongest)}
        )

    @longest(500_000, share=True, lower_is_better=True)
    def negative_sentiment(self, text: str) -> Judgement:
        """1 − `positive_sentiment`."""
        return _complement(self.positive_sentiment(text))


@dataclass(frozen=True)
class Toxicity(_English):
    """Judges how probable it is that English texts offend.

    The model is that of alt-profanity-check, a linear model over words that was trained on some 200,000 comments in
    English. Its files are pickles of scikit-learn, which unpickles them from the installed package.

    Example:
        >>> Toxicity().toxicity("You are a stupid idiot.").value > 0.9
        True
    """

    kind = "toxicity"
    _library = "profanity_check"

    @longest(1_000_000, share=True, lower_is_better=True)
    def toxicity(self, text: str) -> Judgement:
        """The probability that a text offends: that of its worst sentence.

        Undefined if the text has no words, or is in another language than English.
        """
        why = judged_english(text_of("text", text))
        if why is not None:
            return Judgement.undefined(why)
        found = sentences(text)
        probabilities = map(float, _probabilities()([sentence.text for sentence in found]))
        value, worst = max(zip(probabilities, found, strict=True), key=lambda pair: pair[0])
        reason = f"{'worst' if len(found) > 1 else 'judged'} is {quoted(worst.text)} ({value:.2f})"
        return Judgement(value, {"reason": reason, **cited(worst)})

    @longest(1_000_000, share=True)
    def not_toxic(self, text: str) -> Judgement:
        """1 − `toxicity`."""
        return _complement(self.toxicity(text))


def cited(sentence: Sentence) -> dict[str, Any]:
    """A sentence as the details of a judgement, with its place in the text."""
    return {"sentence": sentence.text, "start": sentence.start, "end": sentence.end}


def _complement(judged: Judgement) -> Judgement:
    return Judgement(None if judged.value is None else 1 - judged.value, judged.meta)


@cache
def _analyser() -> Any:
    Sentiment.require()
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # on use: an extra

    return SentimentIntensityAnalyzer()


@cache
def _probabilities() -> Callable[[list[str]], Iterable[Any]]:
    """The function that says how probable it is that each of some texts offends.

    It gives what `profanity_check.predict_prob` does, the mean of five linear models whose margins are calibrated, but
    multiplies their weights in one step: scikit-learn would check its arguments anew in each of some twenty.

    Raises:
        SpecError: the installed scikit-learn cannot read the model.
    """
    Toxicity.require()
    try:
        from profanity_check.profanity_check import model, vectorizer  # on use: an extra

        models = [(fitted.estimator, *fitted.calibrators) for fitted in model.calibrated_classifiers_]
        numbers = [(linear.coef_[0], linear.intercept_[0], curve.a_, curve.b_) for linear, curve in models]
        weights, intercepts, a, b = map(np.array, zip(*numbers, strict=True))
    except Exception as error:  # of scikit-learn, which may not read what another version has written
        raise SpecError(
            f"provider 'toxicity' cannot load its model: {describe_error(error)}; install versions that fit:"
            " pip install --upgrade alt-profanity-check scikit-learn"
        ) from None

    def probabilities(texts: list[str]) -> Iterable[Any]:
        margins = vectorizer.transform(texts) @ weights.T + intercepts
        return np.mean(1 / (1 + np.exp(a * margins + b)), axis=1)  # type: ignore[no-any-return]

    return probabilities
