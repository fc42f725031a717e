"""Whether two texts are in the same language: the extra `language`."""

from dataclasses import dataclass

from evaluand.core.text.language import languages_of, require_language
from evaluand.evaluation.local_provider import LocalProvider, longest
from evaluand.evaluation.provider import Judgement, text_of

LIKELY = 0.5  # lowest probability at which a language counts as detected


@dataclass(frozen=True)
class Languages(LocalProvider):
    """Compares the languages of texts.

    Example:
        >>> Languages().language_match("Wie wird das Wetter heute?", "Es regnet den ganzen Tag in Berlin.").reason
        'both are in de'
    """

    kind = "languages"

    @classmethod
    def require(cls) -> None:
        require_language(cls.kind)

    @longest(10_000_000, share=True)
    def language_match(self, text1: str, text2: str) -> Judgement:
        """How far the languages of two texts agree: the overlap of their probabilities, 1 − ½ Σ |p₁ − p₂|.

        Undefined if the language of either cannot be detected: it has no letters, or no language reaches a probability
        of one half, as often for a few words.
        """
        detected = []
        for name, text in (("text1", text1), ("text2", text2)):
            probabilities = languages_of(text_of(name, text))
            if probabilities is None:
                return Judgement.undefined(f"{name} has no letters, and so no language")
            code, probability = next(iter(probabilities.items()))
            if probability < LIKELY:
                return Judgement.undefined(f"the language of {name} is uncertain: {code} has only {probability:.2f}")
            detected.append(probabilities)
        one, other = detected
        first, second = (next(iter(probabilities)) for probabilities in detected)
        value = sum(min(probability, other.get(code, 0.0)) for code, probability in one.items())
        reason = f"both are in {first}" if first == second else f"text1 is in {first}, text2 in {second}"
        languages = [
            {"language": code, "probability": probabilities[code]}
            for code, probabilities in zip((first, second), detected, strict=True)
        ]
        return Judgement(min(value, 1.0), {"reason": reason, "languages": languages})
