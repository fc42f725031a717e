"""Whether two texts are in one language: the extra `language`."""

from __future__ import annotations

from dataclasses import dataclass

from evaluand.core.text.language import languages_of, require_language
from evaluand.evaluation.provider import Judgement, Provider, from_0_to_1, text_of

LIKELY = 0.5  # a language less probable than this is not told


@dataclass(frozen=True)
class Languages(Provider):
    """Judges which languages texts are in.

    Example:
        >>> Languages().language_match("Wie wird das Wetter heute?", "Es regnet den ganzen Tag in Berlin.").reason
        'both are in de'
    """

    kind = "languages"

    @classmethod
    def require(cls) -> None:
        require_language(cls.kind)

    @from_0_to_1
    def language_match(self, text1: str, text2: str) -> Judgement:
        """How far the languages of two texts agree: what their probabilities have in common, 1 − ½ Σ |p₁ − p₂|.

        Undefined where the language of either cannot be told: it has no letters, or none is more probable than not,
        as of a few words.
        """
        found = []
        for name, text in (("text1", text1), ("text2", text2)):
            told = languages_of(text_of(name, text))
            if told is None:
                return Judgement.undefined(f"{name} has no letters, and so no language")
            code, probability = next(iter(told.items()))
            if probability < LIKELY:
                return Judgement.undefined(f"the language of {name} cannot be told: {code} has only {probability:.2f}")
            found.append(told)
        one, other = found
        first, second = (next(iter(told)) for told in found)
        value = sum(min(probability, other.get(code, 0.0)) for code, probability in one.items())
        reason = f"both are in {first}" if first == second else f"text1 is in {first}, text2 in {second}"
        languages = [
            {"language": code, "probability": told[code]} for code, told in zip((first, second), found, strict=True)
        ]
        return Judgement(min(value, 1.0), {"reason": reason, "languages": languages})
