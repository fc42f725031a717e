"""The expected value of a verdict, from the probabilities that the model gave to the words of the scale.

A verdict says which word was likeliest; the probabilities also say by how much, so that two answers with the same
verdict can differ. Source: Liu et al. 2023, G-Eval, arXiv:2303.16634, equation 1.

Models report probabilities by token. Each token at the position where the verdict begins is assigned to the verdict
that begins with it; a token with which several verdicts begin is assigned to none. If less than `LEAST` of the
probability belongs to verdicts, there is no value, because nothing is known about the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, Final, NamedTuple

from evaluand.evaluation.scorer import is_number
from evaluand.judges.replies import VERDICT
from evaluand.judges.scale import Level, Scale

LEAST: Final = 0.8
TOP: Final = 20
"""How many of the likeliest tokens are asked for: the most that OpenAI's protocol allows."""


class Expectation(NamedTuple):
    """An expected value.

    Attributes:
        value: the mean of the verdicts' values, weighted by their probabilities.
        probabilities: label → probability, as the model reported them; their sum is at most 1.
    """

    value: float
    probabilities: Mapping[str, float]


def expected_value(
    text: str, tokens: Sequence[Mapping[str, Any]] | None, scale: Scale, level: Level
) -> Expectation | str:
    """The expected value of a verdict, or why there is none.

    Args:
        text: the reply.
        tokens: its tokens in order, each with `token`, `logprob` and `top` (token → logprob); None if the server does
            not report them.
        level: the verdict that was read from the reply.

    Example:
        >>> tokens = [{"token": part, "logprob": 0.0, "top": {}} for part in ('{"verdict": ', "4", "}")]
        >>> tokens[1] |= {"logprob": math.log(0.75), "top": {"4": math.log(0.75), "5": math.log(0.25)}}
        >>> scale = Scale.of("1-5")
        >>> round(expected_value('{"verdict": 4}', tokens, scale, scale.find(4)).value, 6)
        4.25
    """
    if not tokens:
        return "the model reports no probabilities"
    token = _token_of_verdict(text, tokens, level)
    if token is None:
        return "the probabilities cannot be matched with the reply"
    probabilities = dict.fromkeys(scale.labels, 0.0)
    for written, logprob in {token["token"]: token["logprob"], **token["top"]}.items():
        label = _label_of(written, scale)
        if label is not None and is_number(logprob) and logprob <= 0:
            probabilities[label] += math.exp(logprob)
    covered = math.fsum(probabilities.values())
    if not LEAST <= covered <= _MOST:
        return f"the verdicts have {covered:.0%} of the probability, of {LEAST:.0%} that are needed"
    value = math.fsum(probabilities[level.label] * level.value for level in scale.levels) / covered
    low, high = scale.range
    return Expectation(min(max(value, low), high), {label: p for label, p in probabilities.items() if p})


def ambiguous_labels(scale: Scale) -> str | None:
    """Two labels of which one begins with the other, whose first tokens may be the same."""
    for one, other in permutations(scale.labels, 2):
        if _plain(other).startswith(_plain(one)):
            return f"{other!r} begins with {one!r}"
    return None


_MOST: Final = 1.01  # rounding of the server


def _token_of_verdict(text: str, tokens: Sequence[Mapping[str, Any]], level: Level) -> Mapping[str, Any] | None:
    """The token with which the verdict begins; tokens are matched with the reply from its end."""
    place = _place_of_verdict(text, level)
    if place is None:
        return None
    for n_left_out in range(min(_AFTER, len(tokens))):  # tokens that end the reply are no text
        begins = len(text)
        token: Mapping[str, Any]
        for token in reversed(tokens[: len(tokens) - n_left_out]):
            begins -= len(token["token"])
            if begins < 0 or not text.startswith(token["token"], begins):
                break
            if begins <= place:
                return token
    return None


def _place_of_verdict(text: str, level: Level) -> int | None:
    """Where the verdict begins, after its quotation mark."""
    places = [match.end() for match in _BEFORE.finditer(text)]
    return next((at for at in reversed(places) if _plain(text[at:]).startswith(_plain(level.label))), None)


def _label_of(token: str, scale: Scale) -> str | None:
    """The verdict that begins with a token; None if none or several do."""
    end = _END_OF_NUMBER if scale.is_numeric else _END_OF_TEXT
    begun = _plain(end.split(token.lstrip(' \t\r\n"'), maxsplit=1)[0])
    if not begun:
        return None
    found = [label for label in scale.labels if _plain(label).startswith(begun)]
    return found[0] if len(found) == 1 else next((label for label in found if _plain(label) == begun), None)


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text[:_LONGEST].casefold()).strip()


_AFTER: Final = 3
_LONGEST: Final = 400
_BEFORE: Final = re.compile(rf'"\s*{VERDICT}\s*"\s*:\s*"?', re.IGNORECASE)
_END_OF_TEXT: Final = re.compile(r'["\r\n]')
_END_OF_NUMBER: Final = re.compile(r'["},\s]')
