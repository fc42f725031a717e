"""Reads the replies of judges: the verdict, or why there is none.

A reply may have any form, and a text that it quotes may have been written to mislead. So a verdict is read only from a
complete JSON object with the requested keys, which starts a line and ends the reply. The verdict must be on the scale,
and no other object may have another one. Everything else is `Unreadable`, with one of `FAULTS`: an abstention,
never a number.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from evaluand.core.errors import described
from evaluand.core.json_like import escape_surrogates
from evaluand.judges.scale import Level, Scale
from evaluand.models.completion import Completion

VERDICT: Final = "verdict"
REASONS: Final = "reasons"
EVIDENCE: Final = "evidence"
PARTS: Final = "parts"

NO_JSON: Final = "no JSON"
OTHER_KEYS: Final = "other keys"
OTHER_TEXT: Final = "other text"
OUT_OF_RANGE: Final = "out of range"
SEVERAL: Final = "several verdicts"
REFUSAL: Final = "refusal"
EMPTY: Final = "empty"
CUT_OFF: Final = "cut off"
WRONG_LANGUAGE: Final = "wrong language"
FAULTS: Final = (NO_JSON, OTHER_KEYS, OTHER_TEXT, OUT_OF_RANGE, SEVERAL, REFUSAL, EMPTY, CUT_OFF, WRONG_LANGUAGE)


class Verdict(NamedTuple):
    """The decision of a judge.

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
        detail: what the reply has instead, for people.
        is_form: whether only the form is wrong, so that the judge can be asked again. Refusals, verdicts that are not
            on the scale and contradictory verdicts are answers, and the judge must not be pressed to change them.
    """

    fault: str
    detail: str
    is_form: bool = False

    @property
    def reason(self) -> str:
        """The reason of the abstention; equal for equal faults, so that they can be counted."""
        return f"unreadable reply: {self.fault}"


def read_verdict(text: str, scale: Scale, keys: Sequence[str] = (REASONS, VERDICT)) -> Verdict | Unreadable:
    """The verdict of a complete reply.

    Args:
        keys: those that the reply must have.

    Example:
        >>> scale = Scale.of({"right": 1, "wrong": 0})
        >>> read_verdict('{"reasons": "Both say 4.", "verdict": "right"}', scale).level.value
        1.0
        >>> read_verdict('{"reasons": "Both say 4.", "verdict": 10}', scale).reason
        'unreadable reply: out of range'
        >>> read_verdict('{"reasons": "Both say 4.", "verdict": "right"} Or not.', scale).reason
        'unreadable reply: other text'
    """
    reply = _read_reply(text, scale.labels)
    if isinstance(reply, Unreadable):
        return reply
    level = _read_level(reply.objects, scale)
    if isinstance(level, Unreadable):
        return level
    if fault := reply.form_fault(keys, scale.labels):
        return fault
    assert level is not None  # the last object has a verdict
    last = reply.objects[-1]
    return Verdict(
        level,
        _as_text(last[REASONS]) if REASONS in keys else None,
        _as_text(last[EVIDENCE]) if EVIDENCE in keys else None,
    )


def read_parts(text: str) -> list[str] | Unreadable:
    """The parts into which a judge divided a text, without repeats; possibly none.

    Example:
        >>> read_parts('{"parts": ["The shop opens at nine.", "It sells books."]}')
        ['The shop opens at nine.', 'It sells books.']
    """
    reply = _read_reply(text, ())
    if isinstance(reply, Unreadable):
        return reply
    lists = [each[PARTS] for each in reply.objects if PARTS in each]
    if any(one is _CONFLICT or one != lists[0] for one in lists):
        return Unreadable(SEVERAL, "the reply has lists that differ")
    if fault := reply.form_fault([PARTS], ()):
        return fault
    parts = lists[0]
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        return Unreadable(OUT_OF_RANGE, f"{PARTS} is {described(parts)}, not a list of texts", is_form=True)
    return list(dict.fromkeys(escape_surrogates(part.strip()) for part in parts if part.strip()))


def ending_fault(completion: Completion) -> Unreadable | None:
    """Why an answer has no reply to read: it was refused, withheld, cut off, broken off or is empty."""
    if completion.ending in ("refused", "filtered"):
        return Unreadable(REFUSAL, completion.refusal or "the model refused, or the server withheld the reply")
    if completion.ending == "cut":
        return Unreadable(CUT_OFF, "the reply was cut off; raise max_tokens of the model")
    if completion.ending == "failed":
        return Unreadable(CUT_OFF, f"the server broke the reply off (finish_reason {completion.finish_reason!r})")
    if completion.text.strip():
        return None
    if completion.reasoning:
        return Unreadable(CUT_OFF, "the reply has no answer after its reasoning; raise max_tokens of the model")
    return Unreadable(EMPTY, "the reply is empty")


def is_quoted(evidence: str, text: str) -> bool:
    """Whether a text contains the words of a quotation, at least one; `…` or `...` stands for omitted words.

    Scripts that write no spaces are compared by characters.

    Example:
        >>> is_quoted("The shop … sells “books”.", "The shop at the corner sells books.")
        True
        >>> is_quoted("九点开门", "书店九点开门,卖书。"), is_quoted("...", "The shop sells books.")
        (True, False)
    """
    pieces = [wanted for piece in re.split(r"…|\.\.\.", evidence) if (wanted := _words(piece))]
    words, place = f" {_words(text)} ", 0
    for wanted in pieces:
        place = words.find(f" {wanted} ", place)
        if place < 0:
            return False
        place += len(wanted) + 1
    return bool(pieces)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


class _Reply(NamedTuple):
    """A reply that has JSON.

    Attributes:
        objects: the outermost JSON objects, at least one.
        around: the texts before, between and after them.
    """

    objects: Sequence[dict[str, Any]]
    around: Sequence[str]

    @property
    def ends_with_object(self) -> bool:
        """Whether the last object starts a line and ends the reply, not counting fences of code blocks."""
        *_, before, after = self.around
        line = _LINE_BREAK.split(before)[-1].strip()
        return _FENCE.fullmatch(line) is not None and not after.strip().strip("`")

    def form_fault(self, keys: Sequence[str], labels: Collection[str]) -> Unreadable | None:
        """Why the last object cannot be read as the answer."""
        if not self.ends_with_object:
            return Unreadable(OTHER_TEXT, "the reply has other text around its JSON object", is_form=True)
        last = self.objects[-1]
        if all(key in last for key in keys):
            return None
        fault = WRONG_LANGUAGE if _is_foreign(" ".join(last), labels) else OTHER_KEYS
        shown = ", ".join([*last][:_SHOWN_KEYS]) or "no keys"
        return Unreadable(fault, f"the reply has {shown[:_SHOWN]}; it needs {', '.join(keys)}", is_form=True)


def _read_reply(text: str, labels: Collection[str]) -> _Reply | Unreadable:
    """The JSON objects of a reply and the texts around them."""
    if not text.strip():
        return Unreadable(EMPTY, "the reply is empty")
    reply = _split(text)
    if reply is None:
        fault = WRONG_LANGUAGE if _is_foreign(text, labels) else REFUSAL if _refuses(text) else NO_JSON
        return Unreadable(fault, "the reply has no complete JSON object", is_form=fault != REFUSAL)
    refuses = _refuses("\n".join(reply.around))
    return Unreadable(REFUSAL, "the reply refuses, and has a JSON object") if refuses else reply


def _refuses(said: str) -> bool:
    return _REFUSAL.match(said) is not None or _LATER_REFUSAL.search(said) is not None


def _read_level(objects: Sequence[Mapping[str, Any]], scale: Scale) -> Level | Unreadable | None:
    """The level of all verdicts of a reply; None if it has no verdict."""
    written = [each[VERDICT] for each in objects if VERDICT in each]
    levels = {scale.find(each) for each in written}
    others = [value for key, value in _further_entries(objects) if key.endswith(VERDICT)] if written else []
    if len(levels) > 1 or any(each is _CONFLICT for each in (*written, *others)):
        return Unreadable(SEVERAL, "the reply has verdicts that differ")
    if None in levels:
        is_foreign = isinstance(written[0], str) and _is_foreign(written[0], scale.labels)
        fault = WRONG_LANGUAGE if is_foreign else OUT_OF_RANGE
        return Unreadable(fault, f"the verdict is {described(written[0])}, which is not on the scale")
    if levels and any(scale.find(each) not in levels for each in others):
        return Unreadable(SEVERAL, "the reply has verdicts under several keys that differ")
    doubtful = [key for key, value in _further_entries(objects) if _may_be_verdict(value, scale, levels)]
    if levels and doubtful:
        detail = f"the reply has {doubtful[0][:_SHOWN]}, which may be another verdict, beside {VERDICT}"
        return Unreadable(SEVERAL, detail, is_form=True)
    return levels.pop() if levels else None


def _further_entries(objects: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    """What stands under other keys that name the verdict, such as `final_verdict` or `verdict_confidence`."""
    return [
        (key, value)
        for each in objects
        for key, value in each.items()
        if VERDICT in key and key != VERDICT and value is not None
    ]


def _may_be_verdict(value: Any, scale: Scale, levels: Collection[Level | None]) -> bool:
    """Whether a value under a further key may be another verdict: it cannot be told from one, and is not the same."""
    level = scale.find(value)
    return value is _CONFLICT or (level is not None and level not in levels)


def _split(text: str) -> _Reply | None:
    """The outermost JSON objects in a text; None if there is none, or if one of them is broken.

    The content of a broken object may be a quotation, so it is not read.
    """
    objects, around, place = list[dict[str, Any]](), list[str](), 0
    while beginning := _BEGINNING.search(text, place):
        around.append(text[place : beginning.start()])
        try:
            each, place = _DECODER.raw_decode(text, beginning.start())
        except (ValueError, RecursionError):
            return None
        objects.append(each)
    return _Reply(objects, [*around, text[place:]]) if objects else None


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
    """A text of a reply; a list of texts becomes lines, and anything else is described."""
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
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_FENCE: Final = re.compile(r"(?:`{3,}\s*\w*)?")
_REFUSAL: Final = re.compile(
    r"\W*(?:I(?:['’]m| am)? (?:very |so )?(?:sorry|unable|not able|afraid)|I (?:cannot|can['’]t|won['’]t|must decline)"
    r"|(?:sorry|apologies),? (?:but )?I|as an ai\b)",
    re.IGNORECASE,
)
_LATER_REFUSAL: Final = re.compile(
    r"\bI (?:cannot|can not|can['’]t|won['’]t|will not|must decline to|(?:am|['’]m) (?:unable|not able) to|"
    r"refuse to|decline to) (?:\w+ly )?(?:judge|assess|evaluate|examine|grade|rate|decide|help|assist|comply)\b",
    re.IGNORECASE,
)
_UNSPACED: Final = (  # Thai to Tibetan, Burmese, Khmer, kana, Chinese characters
    r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
_WORD: Final = re.compile(rf"(?=\w)[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_SHOWN_KEYS: Final = 8
_SHOWN: Final = 200
_LOOKED_AT: Final = 2000
