"""Relevance and groundedness by what sentences mean: embeddings of a small model, the extra `embeddings`.

Two texts are as near as the cosine between their embeddings says. The model (wordllama) is a table of vectors for
pieces of words and looks at no order among them, so it tells subjects apart, and neither who did what to whom nor
whether it is true: `18` is as near to `81` as can be. Where that matters, numbers, names and negations are held against
each other beside (`claims`). The model knows English, and texts in other languages are not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.core.errors import DataError, kind_of
from evaluand.core.text.language import require_language
from evaluand.core.text.retrieval import directions, require_embeddings
from evaluand.core.text.sentences import Sentence, sentences
from evaluand.evaluation.provider import Judgement, Provider, from_0_to_1, quoted, text_of
from evaluand.evaluation.providers import claims
from evaluand.evaluation.providers.english import other_language

_SHOWN: Final = 3  # statements in a reason
_NEGATED: Final = 0.5  # of the value is left where one of two texts is negated


@dataclass(frozen=True)
class Embeddings(Provider):
    """Judges by the meaning of words, in English: where a text is in another language, there is no value.

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

    @from_0_to_1
    def similarity(self, text1: str, text2: str) -> Judgement:
        """How near two texts are as wholes: the cosine of their embeddings, 0 where it is below.

        Undefined where either has no words. Numbers, negations and the order of words count for next to nothing:
        `agreement` looks at them.
        """
        why = _unknown(text1=text1, text2=text2)
        cosine = None if why else _cosine(text1, text2)
        if cosine is None:
            return Judgement.undefined(why or "one of the texts has no words")
        return Judgement(cosine, {"reason": f"the cosine between the texts is {cosine:.2f}"})

    @from_0_to_1
    def agreement(self, response: str, expected: str | Sequence[str], question: str = "") -> Judgement:
        """How far a response says what was expected, or one of several texts that were.

        The cosine to the expected text, or to the question with it where that is higher; times the share of its numbers
        and names, those of the question left out, that stand in the response (0 where it has other numbers instead);
        and half as much where one of the two is negated, but the question is not. Where neither a number or name nor
        yes or no is expected, the question counts only if the response is less near to it alone: it may repeat it.

        Where what is expected begins with yes or no, and the response does, they are the same or the value is 0; if
        either says nothing else, it is 1 or 0.

        Undefined where nothing is expected, or a text has no words.

        Args:
            response: what was answered.
            expected: a text, or several of which any will do.
            question: what was asked, which a response in full sentences repeats.

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

    @from_0_to_1
    def relevance(self, prompt: str, response: str) -> Judgement:
        """How near an answer is to what was asked, as a whole; undefined where either has no words."""
        why = _unknown(prompt=prompt, response=response)
        cosine = None if why else _cosine(prompt, response)
        if cosine is None:
            return Judgement.undefined(why or "the prompt or the response has no words")
        return Judgement(cosine, {"reason": f"the cosine between {quoted(prompt)} and the response is {cosine:.2f}"})

    @from_0_to_1
    def context_relevance(self, question: str, context: str) -> Judgement:
        """How near the nearest sentence of a context is to the question; undefined where either has no words."""
        why = _unknown(question=question, context=context)
        if why is not None:
            return Judgement.undefined(why)
        found = sentences(context)
        nearest = _nearest([question], [one.text for one in found])
        if nearest is None or not question.strip():
            return Judgement.undefined(f"the {'question' if found else 'context'} has no words")
        ((place, cosine),) = nearest
        reason = f"nearest to {quoted(question)} is {quoted(found[place].text)} ({cosine:.2f})"
        return Judgement(cosine, {"reason": reason, **_cited(found[place])})

    @from_0_to_1
    def groundedness(self, source: str | Sequence[str], statement: str) -> Judgement:
        """How far a text is supported by its source: the mean over its sentences.

        A sentence is as well supported as the cosine to the sentence of the source that is nearest says, times the
        share of its numbers and names that stand in the source, and half as well where one of the two is negated and
        the other is not. An empty source supports nothing.

        Undefined where the text has no sentence.

        Args:
            source: a text, or several.
            statement: the text to be looked at.
        """
        texts = _texts("source", source)
        stated = sentences(text_of("statement", statement))
        if not stated:
            return Judgement.undefined("the statement has no words")
        why = _unknown(source="\n".join(texts), statement=statement)
        if why is not None:
            return Judgement.undefined(why)
        found = [(number, one) for number, text in enumerate(texts) for one in sentences(text)]
        nearest = _nearest([one.text for one in stated], [one.text for _, one in found])
        known = frozenset[str]().union(*map(claims.keys, texts))
        if nearest is None:
            judged = [_unsupported(one) for one in stated]
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
        why = _unknown(question=question, expected=expected, response=response)
        cosine = None if why else _cosine(response, expected)
        if cosine is None:
            return Judgement.undefined(why or "the response or what is expected has no words")
        asked = claims.keys(question)
        needed = [claim for claim in claims.claims(expected) if claim.key not in asked]
        right, said = claims.answered(expected), claims.answered(response)
        whole, repeated = (_cosine(response, text) or 0.0 for text in (f"{question} {expected}", question))
        if right or needed or whole > repeated:
            cosine = max(cosine, whole)
        told: dict[str, Any] = {"expected": expected, "cosine": cosine, "missing": [], "negated": False}
        if right and said and (right != said or claims.is_only_answer(expected) or claims.is_only_answer(response)):
            return Judgement(float(right == said), {"reason": f"{said} beside {quoted(expected)}", **told})
        share, missing = claims.held(needed, claims.keys(response))
        other = [claim for claim in claims.claims(response) if claim.key not in asked | claims.keys(expected)]
        if any(claim.is_number and claim.text in missing for claim in needed) and any(one.is_number for one in other):
            share = 0.0
        negated = claims.is_negated(response) != claims.is_negated(expected) and not claims.is_negated(question)
        told |= {"missing": missing, "negated": negated}
        reason = f"the cosine to {quoted(expected)} is {cosine:.2f}{_told(told, 'the response')}"
        return Judgement(cosine * share * (_NEGATED if negated else 1.0), {"reason": reason, **told})


def _texts(name: str, given: str | Sequence[str]) -> Sequence[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Sequence):
        raise DataError(f"{name} is {kind_of(given)}, not a text or a list of texts")
    return [text_of(name, text) for text in texts]


def _unknown(**texts: str) -> str | None:
    """Why the first of some texts that cannot be judged is none that can; None where all can."""
    found = (other_language(text_of(name, text), name) for name, text in texts.items())
    return next((why for why in found if why is not None), None)


def _cosine(one: str, other: str) -> float | None:
    nearest = _nearest([one], [other]) if one.strip() and other.strip() else None
    return nearest[0][1] if nearest else None


def _nearest(texts: Sequence[str], among: Sequence[str]) -> list[tuple[int, float]] | None:
    """For each text the place of the nearest among others, the first of several, and its cosine from 0 to 1."""
    if not among:
        return None
    there = directions(among)
    found: list[tuple[int, float]] = []
    for start in range(0, len(texts), _AT_ONCE):
        cosines = np.clip(directions(texts[start : start + _AT_ONCE]) @ there.T, 0.0, 1.0).round(_DIGITS)
        places = cosines.argmax(axis=1)
        found += [(int(place), float(row[place])) for place, row in zip(places, cosines, strict=True)]
    return found


_AT_ONCE: Final = 256
_DIGITS: Final = 6  # the last of the others depend on how many texts are multiplied at once, and on the machine


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


def _unsupported(stated: Sentence) -> dict[str, Any]:
    return {"statement": stated.text, "score": 0.0, "support": None, "missing": [], "negated": False}


def _weak(one: Mapping[str, Any]) -> str:
    if one["support"] is None:
        return f"{quoted(one['statement'])} has no source"
    return f"{quoted(one['statement'])} by {quoted(one['support'])} ({one['score']:.2f}){_told(one, 'the source')}"


def _told(one: Mapping[str, Any], where: str) -> str:
    """What lowers a value."""
    missing = f", not in {where}: {', '.join(one['missing'])}" if one["missing"] else ""
    return missing + (", one of the two is negated" if one["negated"] else "")


def _cited(one: Sentence) -> dict[str, Any]:
    return {"sentence": one.text, "start": one.start, "end": one.end}
