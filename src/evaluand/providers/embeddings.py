"""Relevance and groundedness by what sentences mean: embeddings of a small model, the extra `embeddings`.

Two texts are as near as the cosine between their embeddings says. The model (wordllama) is a table of vectors for
pieces of words and looks at no order among them, so it tells subjects apart, and neither who did what to whom nor
whether it is true. It understands English best.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.errors import DataError, kind_of
from evaluand.provider import Judgement, Provider, from_0_to_1, quoted, text_of
from evaluand.retriever import directions, require_embeddings
from evaluand.sentences import Sentence, sentences

_SHOWN: Final = 3  # statements in a reason


@dataclass(frozen=True)
class Embeddings(Provider):
    """Judges by the meaning of words.

    Example:
        >>> judged = Embeddings().groundedness("Iron rusts. Gold does not.", "Iron rusts in water.")
        >>> judged.meta["statements"][0]["support"]
        'Iron rusts.'
    """

    kind = "embeddings"

    @classmethod
    def require(cls) -> None:
        require_embeddings(cls.kind)

    @from_0_to_1
    def similarity(self, text1: str, text2: str) -> Judgement:
        """How near two texts are as wholes: the cosine of their embeddings, 0 where it is below.

        Undefined where either has no words.
        """
        cosine = _cosine(text_of("text1", text1), text_of("text2", text2))
        if cosine is None:
            return Judgement.undefined("one of the texts has no words")
        return Judgement(cosine, {"reason": f"the cosine between the texts is {cosine:.2f}"})

    @from_0_to_1
    def relevance(self, prompt: str, response: str) -> Judgement:
        """How near an answer is to what was asked, as a whole; undefined where either has no words."""
        cosine = _cosine(text_of("prompt", prompt), text_of("response", response))
        if cosine is None:
            return Judgement.undefined("the prompt or the response has no words")
        return Judgement(cosine, {"reason": f"the cosine between {quoted(prompt)} and the response is {cosine:.2f}"})

    @from_0_to_1
    def context_relevance(self, question: str, context: str) -> Judgement:
        """How near the nearest sentence of a context is to the question; undefined where either has no words."""
        found = sentences(text_of("context", context))
        nearest = _nearest([text_of("question", question)], [one.text for one in found])
        if nearest is None or not question.strip():
            return Judgement.undefined(f"the {'question' if found else 'context'} has no words")
        ((place, cosine),) = nearest
        reason = f"nearest to {quoted(question)} is {quoted(found[place].text)} ({cosine:.2f})"
        return Judgement(cosine, {"reason": reason, **_cited(found[place])})

    @from_0_to_1
    def groundedness(self, source: str | Sequence[str], statement: str) -> Judgement:
        """How far a text is supported by its source: the mean over its sentences.

        A sentence is as well supported as the cosine to the sentence of the source that is nearest says, times the
        share of its numbers and names that stand in the source, and half as well where one of the two is negated (in
        English) and the other is not. An empty source supports nothing.

        Undefined where the text has no sentence.

        Args:
            source: a text, or several.
            statement: the text to be looked at.
        """
        texts = [source] if isinstance(source, str) else source
        if not isinstance(texts, Sequence):
            raise DataError(f"source is {kind_of(source)}, not a text or a list of texts")
        stated = sentences(text_of("statement", statement))
        if not stated:
            return Judgement.undefined("the statement has no words")
        found = [(number, one) for number, text in enumerate(texts) for one in sentences(text_of("source", text))]
        nearest = _nearest([one.text for one in stated], [one.text for _, one in found])
        known = frozenset(word.casefold() for text in texts for word in _WORD.findall(text))
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
        return Judgement(value, {"reason": head + "; ".join(map(_told, weakest)), "statements": judged})


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
    exact = _exact(stated.text)
    missing = sorted({word for word in exact if word.casefold() not in known})
    share = 1 - sum(word in missing for word in exact) / len(exact) if exact else 1.0
    negated = bool(_NEGATION.search(stated.text)) != bool(_NEGATION.search(support.text))
    return {
        "statement": stated.text,
        "score": cosine * share * (0.5 if negated else 1.0),
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


def _exact(text: str) -> list[str]:
    """What must stand in a source as it is: numbers, and words with a capital that begin no sentence."""
    words = _WORD.findall(text)
    return [word for at, word in enumerate(words) if any(map(str.isdigit, word)) or (at and word[:1].isupper())]


def _told(one: Mapping[str, Any]) -> str:
    if one["support"] is None:
        return f"{quoted(one['statement'])} has no source"
    told = f"{quoted(one['statement'])} by {quoted(one['support'])} ({one['score']:.2f})"
    if one["missing"]:
        told += f", not in the source: {', '.join(one['missing'])}"
    return told + (", one of the two is negated" if one["negated"] else "")


def _cited(one: Sentence) -> dict[str, Any]:
    return {"sentence": one.text, "start": one.start, "end": one.end}


_WORD: Final = re.compile(r"\w+(?:[.,:]\d+)*")
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|nothing|nobody|none|neither|nor|cannot|without|\w+n['’]t)\b", re.IGNORECASE
)
