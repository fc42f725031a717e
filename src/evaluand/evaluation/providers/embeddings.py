"""Relevance and groundedness by the meaning of sentences: embeddings of a small model, the extra `embeddings`.

The similarity of two texts is the cosine between their embeddings. The model (wordllama) is a table of vectors for
pieces of words and ignores their order. So it distinguishes subjects, but not who did what to whom, nor true from
false: `18` and `81` are almost the same to it. Where that matters, numbers, names and negations are compared by rules
in addition (`claims`). The model knows English; texts in other languages are not judged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.core.errors import DataError, kind_of
from evaluand.core.text.language import require_language
from evaluand.core.text.retrieval import directions, require_embeddings
from evaluand.core.text.sentences import Sentence, sentences
from evaluand.evaluation.local_provider import LocalProvider, longest
from evaluand.evaluation.provider import Judgement, quoted, text_of
from evaluand.evaluation.providers import claims
from evaluand.evaluation.providers.english import cited, other_language

_SHOWN: Final = 3  # statements in a reason
_NEGATED: Final = 0.5  # factor if only one of two texts is negated


@dataclass(frozen=True)
class Embeddings(LocalProvider):
    """Judges by the meaning of words, in English; undefined for texts in other languages.

    Example:
        >>> judged = Embeddings().groundedness("Iron rusts. Gold does not.", "Iron rusts in water.")
        >>> judged.meta["statements"][0]["support"]
        'Iron rusts.'
    """

    kind = "embeddings"

    @classmethod
    def require(cls) -> None:
        require_embeddings(cls.kind)
        require_language(cls.kind)

    @longest(200_000, share=True)
    def similarity(self, text1: str, text2: str) -> Judgement:
        """The similarity of two texts: the cosine of their embeddings, 0 if negative.

        Undefined if either has no words. Numbers, negations and the order of words have almost no effect; `agreement`
        compares numbers and negations.
        """
        return _similarity(lambda: "the texts", "one of the texts", text1=text1, text2=text2)

    @longest(100_000, share=True)
    def agreement(self, response: str, expected: str | Sequence[str], question: str = "") -> Judgement:
        """How far a response agrees with the expected text, or with the best of several.

        The cosine to the expected text, or to the question followed by it if that is higher; times the share of its
        numbers and names, except those of the question, that occur in the response (0 if the response has other
        numbers instead); halved if only one of the two is negated and the question is not. If neither a number or name
        nor yes or no is expected, the question counts only if the response is less similar to the question alone:
        a response may repeat it.

        If both the expected text and the response begin with yes or no, the value is 0 unless they are the same; if
        either consists of nothing else, the value is 1 or 0.

        Undefined if nothing is expected, or a text has no words.

        Args:
            response: the answer.
            expected: a text, or several of which any counts.
            question: the question, which a response in full sentences repeats.

        Example:
            >>> said = Embeddings().agreement("It costs 81 crowns.", "18 crowns.", "How much does it cost?")
            >>> said.value, said.meta["missing"]
            (0.0, ['18'])
        """
        texts = _texts("expected", expected)
        judged = [self._agreement(response, one, question) for one in texts]
        if not judged:
            return Judgement.undefined("nothing is expected")
        return max(judged, key=lambda one: -1.0 if one.value is None else one.value)

    @longest(200_000, share=True)
    def relevance(self, prompt: str, response: str) -> Judgement:
        """The similarity of a response to its prompt; undefined if either has no words."""
        both, either = lambda: f"{quoted(prompt)} and the response", "the prompt or the response"
        return _similarity(both, either, prompt=prompt, response=response)

    @longest(500_000, share=True)
    def context_relevance(self, question: str, context: str) -> Judgement:
        """The similarity of the nearest sentence of a context to the question; undefined if either has no words."""
        why = _refusal(question=question, context=context)
        if why is not None:
            return Judgement.undefined(why)
        found = sentences(context)
        nearest = _nearest([question], [one.text for one in found])
        if nearest is None or not question.strip():
            return Judgement.undefined(f"the {'question' if found else 'context'} has no words")
        ((place, cosine),) = nearest
        reason = f"nearest to {quoted(question)} is {quoted(found[place].text)} ({cosine:.2f})"
        return Judgement(cosine, {"reason": reason, **cited(found[place])})

    @longest(50_000, share=True)
    def groundedness(self, source: str | Sequence[str], statement: str) -> Judgement:
        """How far a text is supported by its source: the mean over its sentences.

        The support of a sentence is its cosine to the nearest sentence of the source, times the share of its numbers
        and names that occur in the source, halved if only one of the two is negated. An empty source supports nothing.

        Undefined if the text has no sentence.

        Args:
            source: a text, or several.
            statement: the text to judge.
        """
        texts = _texts("source", source)
        stated = sentences(text_of("statement", statement))
        if not stated:
            return Judgement.undefined("the statement has no words")
        why = _refusal(source="\n".join(texts), statement=statement)
        if why is not None:
            return Judgement.undefined(why)
        found = [(number, one) for number, text in enumerate(texts) for one in sentences(text)]
        nearest = _nearest([one.text for one in stated], [one.text for _, one in found])
        known = frozenset[str]().union(*map(claims.keys, texts))
        if nearest is None:
            unsupported: dict[str, Any] = {"score": 0.0, "support": None, "missing": [], "negated": False}
            judged = [{"statement": one.text, **unsupported} for one in stated]
        else:
            judged = [
                _supported(one, *found[place], cosine, known)
                for one, (place, cosine) in zip(stated, nearest, strict=True)
            ]
        value = sum(one["score"] for one in judged) / len(judged)
        weakest = sorted(judged, key=lambda one: float(one["score"]))[:_SHOWN]
        head = f"{len(judged)} statements, the weakest: " if len(judged) > 1 else ""
        return Judgement(value, {"reason": head + "; ".join(map(_weak, weakest)), "statements": judged})

    def _agreement(self, response: str, expected: str, question: str) -> Judgement:
        why = _refusal(question=question, expected=expected, response=response)
        cosine = None if why else _cosine(response, expected)
        if cosine is None:
            return Judgement.undefined(why or "the response or what is expected has no words")
        asked = claims.keys(question)
        needed = [claim for claim in claims.claims(expected) if claim.key not in asked]
        right, said = claims.answered(expected), claims.answered(response)
        whole, repeated = (_cosine(response, text) or 0.0 for text in (f"{question} {expected}", question))
        if right or needed or whole > repeated:
            cosine = max(cosine, whole)
        details: dict[str, Any] = {"expected": expected, "cosine": cosine, "missing": [], "negated": False}
        if right and said and (right != said or claims.is_only_answer(expected) or claims.is_only_answer(response)):
            return Judgement(float(right == said), {"reason": f"{said} beside {quoted(expected)}", **details})
        share, missing = claims.held(needed, claims.keys(response))
        known = asked | claims.keys(expected)
        other = [claim for claim in claims.claims(response) if claim.key not in known]
        lost = set(missing)
        if any(claim.is_number and claim.text in lost for claim in needed) and any(one.is_number for one in other):
            share = 0.0
        negated = claims.is_negated(response) != claims.is_negated(expected) and not claims.is_negated(question)
        details |= {"missing": missing, "negated": negated}
        reason = f"the cosine to {quoted(expected)} is {cosine:.2f}{_deductions(details, 'the response')}"
        return Judgement(cosine * share * (_NEGATED if negated else 1.0), {"reason": reason, **details})


def _texts(name: str, value: str | Sequence[str]) -> Sequence[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, Sequence):
        raise DataError(f"{name} is {kind_of(value)}, not a text or a list of texts")
    return [text_of(name, text) for text in texts]


def _refusal(**texts: str) -> str | None:
    """Why the first text that cannot be judged is refused; None if all can be judged."""
    found = (other_language(text_of(name, text), name) for name, text in texts.items())
    return next((why for why in found if why is not None), None)


def _similarity(both: Callable[[], str], either: str, **texts: str) -> Judgement:
    """The cosine of two texts, which are named together and apart; undefined if one cannot be judged."""
    why = _refusal(**texts)
    cosine = None if why else _cosine(*texts.values())
    if cosine is None:
        return Judgement.undefined(why or f"{either} has no words")
    return Judgement(cosine, {"reason": f"the cosine between {both()} is {cosine:.2f}"})


def _cosine(one: str, other: str) -> float | None:
    nearest = _nearest([one], [other]) if one.strip() and other.strip() else None
    return nearest[0][1] if nearest else None


def _nearest(texts: Sequence[str], among: Sequence[str]) -> list[tuple[int, float]] | None:
    """For each text the index of the nearest of the others (the first on ties), and its cosine from 0 to 1."""
    if not among:
        return None
    candidates = directions(among)
    found: list[tuple[int, float]] = []
    for start in range(0, len(texts), _AT_ONCE):
        cosines = np.clip(directions(texts[start : start + _AT_ONCE]) @ candidates.T, 0.0, 1.0).round(_DIGITS)
        places = cosines.argmax(axis=1)
        found += [(int(place), float(row[place])) for place, row in zip(places, cosines, strict=True)]
    return found


_AT_ONCE: Final = 256
_DIGITS: Final = 6  # further digits depend on the size of the product and on the machine


def _supported(
    stated: Sentence, source: int, support: Sentence, cosine: float, known: frozenset[str]
) -> dict[str, Any]:
    share, missing = claims.held(claims.claims(stated.text), known)
    negated = claims.is_negated(stated.text) != claims.is_negated(support.text)
    return {
        "statement": stated.text,
        "score": cosine * share * (_NEGATED if negated else 1.0),
        "support": support.text,
        "source": source,
        "start": support.start,
        "end": support.end,
        "cosine": cosine,
        "missing": missing,
        "negated": negated,
    }


def _weak(one: Mapping[str, Any]) -> str:
    if one["support"] is None:
        return f"{quoted(one['statement'])} has no source"
    return (
        f"{quoted(one['statement'])} by {quoted(one['support'])} ({one['score']:.2f}){_deductions(one, 'the source')}"
    )


def _deductions(one: Mapping[str, Any], where: str) -> str:
    """The reasons that lower a value, appended to its explanation."""
    missing = f", not in {where}: {', '.join(one['missing'])}" if one["missing"] else ""
    return missing + (", one of the two is negated" if one["negated"] else "")
