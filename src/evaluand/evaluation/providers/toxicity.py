"""Whether a text would offend: the extra `toxicity`.

The work is done by alt-profanity-check, a linear model over words and their letters that was trained on some 200,000
comments in English. Importing it loads its weights, a scikit-learn pickle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from evaluand.core.text.sentences import sentences
from evaluand.evaluation.provider import Judgement, Provider, from_0_to_1, lower_is_better, quoted, text_of
from evaluand.evaluation.providers.english import judged_english, require


@dataclass(frozen=True)
class Toxicity(Provider):
    """Judges how probable it is that English texts offend.

    Example:
        >>> Toxicity().toxicity("You are a stupid idiot.").value > 0.9
        True
    """

    kind = "toxicity"

    @classmethod
    def require(cls) -> None:
        require(cls.kind, "profanity_check", "toxicity")

    @from_0_to_1
    @lower_is_better
    def toxicity(self, text: str) -> Judgement:
        """The probability that a text offends: that of its worst sentence.

        Undefined if the text has no words, or is in another language than English.
        """
        why = judged_english(text_of("text", text))
        if why is not None:
            return Judgement.undefined(why)
        found = sentences(text)
        chances = map(float, _model()([one.text for one in found]))
        value, worst = max(zip(chances, found, strict=True), key=lambda pair: pair[0])
        reason = f"{'worst' if len(found) > 1 else 'judged'} is {quoted(worst.text)} ({value:.2f})"
        return Judgement(value, {"reason": reason, "sentence": worst.text, "start": worst.start, "end": worst.end})

    @from_0_to_1
    def not_toxic(self, text: str) -> Judgement:
        """1 − `toxicity`."""
        value, meta = self.toxicity(text)
        return Judgement(None if value is None else 1 - value, meta)


@cache
def _model() -> Any:
    require("toxicity", "profanity_check", "toxicity")
    from profanity_check import predict_prob  # on use: an extra that takes 1.5 s to import

    return predict_prob
