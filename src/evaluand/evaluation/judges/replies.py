"""Reads the replies of judges: the verdict, or why there is none.

A reply is a text that a model wrote: nothing in it is sure, and whatever it quotes may have been written to mislead. So
a verdict is read only from one complete JSON object with the keys that were asked for, and only if it is on the scale.
Everything else is `Unreadable`, whose fault is one of `FAULTS`: it becomes an abstention, never a number.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from evaluand.core.json_like import escape_surrogates
from evaluand.evaluation.judges.scale import Level, Scale
from evaluand.evaluation.scorer import described

VERDICT: Final = "verdict"
REASONS: Final = "reasons"
EVIDENCE: Final = "evidence"
PARTS: Final = "parts"

NO_JSON: Final = "no JSON"
OTHER_KEYS: Final = "other keys"
OUT_OF_RANGE: Final = "out of range"
SEVERAL: Final = "several verdicts"
REFUSAL: Final = "refusal"
EMPTY: Final = "empty"
CUT_OFF: Final = "cut off"
WRONG_LANGUAGE: Final = "wrong language"
FAULTS: Final = (NO_JSON, OTHER_KEYS, OUT_OF_RANGE, SEVERAL, REFUSAL, EMPTY, CUT_OFF, WRONG_LANGUAGE)


class Verdict(NamedTuple):
    """What a judge decided.

    Attributes:
        level: the verdict on the scale.
        reasons: why, as the judge wrote it before the verdict; None if the rubric does not ask for reasons.
        evidence: the words that the judge quotes; None if the rubric does not ask for evidence.
    """

    level: Level
    reasons: str | None = None
    evidence: str | None = None


class Unreadable(NamedTuple):
    """Why a reply has no verdict.

    Attributes:
        fault: one of `FAULTS`.
        detail: what stands there instead, for people.
    """

    fault: str
    detail: str

    @property
    def reason(self) -> str:
        """The reason of the abstention, equal for equal faults, so that they can be counted."""
        return f"unreadable reply: {self.fault}"


def read_verdict(text: str, scale: Scale, keys: Sequence[str] = (REASONS, VERDICT)) -> Verdict | Unreadable:
    """The verdict of a complete reply.

    Args:
        keys: those that the reply must have.

    Example:
        >>> scale = Scale.of({"right": 1, "wrong": 0})
        >>> read_verdict('Here it is: {"reasons": "Both say 4.", "verdict": "right"}', scale).level.value
        1.0
        >>> read_verdict('{"reasons": "Both say 4.", "verdict": 10}', scale).reason
        'unreadable reply: out of range'
    """
    found = _read_objects(text, keys, scale.labels)
    if isinstance(found, Unreadable):
        return found
    first = found[0]
    levels = {scale.find(each[VERDICT]) for each in found}
    if len(levels) > 1 or any(each[VERDICT] is _CONFLICT for each in found):
        return Unreadable(SEVERAL, "the reply has verdicts that differ")
    if (level := levels.pop()) is None:
        written = first[VERDICT]
        is_foreign = isinstance(written, str) and _is_foreign(written, scale.labels)
        fault = WRONG_LANGUAGE if is_foreign else OUT_OF_RANGE
        return Unreadable(fault, f"the verdict is {described(written)}, which is not on the scale")
    return Verdict(
        level,
        _as_text(first[REASONS]) if REASONS in keys else None,
        _as_text(first[EVIDENCE]) if EVIDENCE in keys else None,
    )


def read_parts(text: str) -> list[str] | Unreadable:
    """The parts into which a judge divided a text, without repeats; possibly none.

    Example:
        >>> read_parts('{"parts": ["The shop opens at nine.", "It sells books."]}')
        ['The shop opens at nine.', 'It sells books.']
    """
    found = _read_objects(text, [PARTS], ())
    if isinstance(found, Unreadable):
        return found
    lists = [each[PARTS] for each in found]
    if any(one is _CONFLICT or one != lists[0] for one in lists):
        return Unreadable(SEVERAL, "the reply has lists that differ")
    parts = lists[0]
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        return Unreadable(OUT_OF_RANGE, f"{PARTS} is {described(parts)}, not a list of texts")
    return list(dict.fromkeys(escape_surrogates(part.strip()) for part in parts if part.strip()))


def ending_fault(finish_reason: str | None, refusal: str | None, text: str) -> Unreadable | None:
    """Why a reply cannot be read, whatever it says: it was refused, withheld, cut off or is empty."""
    if refusal or finish_reason == "content_filter":
        return Unreadable(REFUSAL, refusal or "the server withheld the reply")
    if finish_reason in ("length", "max_output_tokens"):
        return Unreadable(CUT_OFF, "the reply was cut off; raise max_tokens of the model")
    if not text.strip():
        return Unreadable(EMPTY, "the reply is empty")
    return None


def is_quoted(evidence: str, text: str) -> bool:
    """Whether a text holds the words of a quotation; `…` or `...` may stand for words that are left out.

    Example:
        >>> is_quoted("The shop … sells “books”.", "The shop at the corner sells books.")
        True
    """
    words, place = f" {_words(text)} ", 0
    for piece in re.split(r"…|\.\.\.", evidence):
        if wanted := _words(piece):
            place = words.find(f" {wanted} ", place)
            if place < 0:
                return False
            place += len(wanted) + 1
    return True


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _read_objects(text: str, keys: Sequence[str], labels: Collection[str]) -> list[dict[str, Any]] | Unreadable:
    """The JSON objects of a reply that have the keys; at least one."""
    said = _without_thoughts(text)
    if not said.strip():
        return Unreadable(EMPTY, "the reply is empty")
    objects = _objects(said)
    if not objects:
        fault = WRONG_LANGUAGE if _is_foreign(said, labels) else REFUSAL if _REFUSAL.match(said) else NO_JSON
        return Unreadable(fault, "the reply has no complete JSON object")
    fitting = [each for each in objects if all(key in each for key in keys)]
    if not fitting:
        present = list(dict.fromkeys(key for each in objects for key in each))
        fault = WRONG_LANGUAGE if _is_foreign(" ".join(present), labels) else OTHER_KEYS
        shown = ", ".join(present[:_SHOWN_KEYS]) or "no keys"
        return Unreadable(fault, f"the reply has {shown[:_SHOWN]}; it needs {', '.join(keys)}")
    return fitting


def _without_thoughts(text: str) -> str:
    """The reply after the thoughts of a model that thinks aloud between tags, which may hold drafts."""
    return text.rpartition("</think>")[2] if text.lstrip().startswith("<think>") else text


def _objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects that stand in a text, outermost only; none if one of them is broken.

    What stands inside a broken object may be a quotation, so it is not read.
    """
    found = list[dict[str, Any]]()
    beginning = _BEGINNING.search(text)
    while beginning is not None:
        try:
            each, end = _DECODER.raw_decode(text, beginning.start())
        except (ValueError, RecursionError):
            return []
        found.append(each)
        beginning = _BEGINNING.search(text, end)
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are compared without case; a key with two values has none."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        key = name.strip().casefold()
        made[key] = value if key not in made or _is_same(made[key], value) else _CONFLICT
    return made


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _as_text(value: Any) -> str:
    """A text of a reply; several are lines, and anything else is described."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = "\n".join(each.strip() for each in value)
    if isinstance(value, str):
        return escape_surrogates(value.strip())
    return "" if value is None or value is _CONFLICT else described(value)


def _is_foreign(text: str, labels: Collection[str]) -> bool:
    """Whether a text is written in another script than the labels and the keys, which are Latin."""
    scripts = Counter(_script(letter) for letter in text[:_LOOKED_AT] if letter.isalpha())
    if not scripts:
        return False
    known = {_script(letter) for label in (VERDICT, *labels) for letter in label if letter.isalpha()}
    return scripts.most_common(1)[0][0] not in known


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


_CONFLICT: Final = object()
_DECODER: Final = json.JSONDecoder(strict=False, object_pairs_hook=_object, parse_constant=_refuse_constant)
_BEGINNING: Final = re.compile(r'\{\s*["}]')  # other braces are words
_REFUSAL: Final = re.compile(
    r"\W*(?:I(?:['’]m| am)? (?:very |so )?(?:sorry|unable|not able|afraid)|I (?:cannot|can['’]t|won['’]t|must decline)"
    r"|(?:sorry|apologies),? (?:but )?I|as an ai\b)",
    re.IGNORECASE,
)
_SHOWN_KEYS: Final = 8
_SHOWN: Final = 200
_LOOKED_AT: Final = 2000
