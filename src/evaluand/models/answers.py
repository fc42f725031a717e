"""What the protocols of models have in common: errors within answers, counts of tokens, and pieces of streams."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from evaluand.core.errors import TaskError, kind_of
from evaluand.core.redaction import redact
from evaluand.engine.http import BadAnswer, BadRequest, refusal_of
from evaluand.models.words import STATUSES

_SHOWN: Final = 300  # characters of an answer in a message
_READ: Final = 4096  # and of those in which secrets are searched
_CODES: Final = ("code", "status", "type", "status_code", "http_status")
_SPENT: Final = re.compile(
    r'(?<!\\)"(?:code|type|status|status_code)":\s*"?(?:insufficient_(?:user_)?(?:quota|balance|credits?)|1113|1008'
    r"|exceeded_current_quota_error|billing_hard_limit_reached|billing_error)\b",
    re.IGNORECASE,
)
"""How services name a quota that is spent, which no pause mends."""
_REFUSED: Final = re.compile(
    r'used all available credits|insufficient (?:quota|balance|credits?|funds)|"quotaId":\s*"[^"]*PerDay', re.IGNORECASE
)
_SPENT_MESSAGES: Final = {
    "400": re.compile(r'"message":\s*"Your credit balance is too low'),  # Anthropic
    **dict.fromkeys(("403", "429"), _REFUSED),
}
"""What they say with a status that also means other things."""
_CONTINUED: Final = (
    *("content", "reasoning", "reasoning_content", "thinking", "text", "summary", "refusal", "arguments"),
    *("signature", "partial_json"),
)
"""The texts of pieces of a stream that continue one another; all else is said anew."""


def excerpt(value: Any) -> str:
    """The start of a part of an answer, as JSON."""
    start = json.dumps(value, ensure_ascii=False, default=str)[:_READ]
    text = redact(start)  # before it is cut, within a secret perhaps
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def require_answer(answer: Any, what: str) -> dict[str, Any]:
    """An answer that is an object and reports no error.

    Args:
        what: it should be.

    Raises:
        TaskError: it is none.
    """
    if not isinstance(answer, dict):
        raise BadAnswer(f"the answer is {kind_of(answer)}, not {what}", code="form")
    if answer.get("error"):
        raise error_in(answer["error"])
    return answer


def error_in(reported: Any) -> TaskError:
    """The error that an answer reports, handled as its code would be as a status."""
    message = f"the answer is an error: {excerpt(reported)}"
    status = _status_of(reported)
    error = BadAnswer(message, code="error") if status is None else refusal_of(status, message)
    error.stops = status == 401
    return spent_quota(error, json.dumps(reported, default=str)) or error


def spent_quota(error: TaskError, answer: str) -> BadRequest | None:
    """The error for a refusal because a quota is spent, which stops the run; None for any other refusal."""
    message = _SPENT_MESSAGES.get(str(error.code))
    if error.code != "402" and not _SPENT.search(answer) and not (message and message.search(answer)):
        return None
    return BadRequest(f"{error}; the quota of this key is spent, so nothing more is asked", code=error.code, stops=True)


def _status_of(reported: Any) -> int | None:
    for name in _CODES if isinstance(reported, Mapping) else ():
        word = str(reported.get(name)).casefold()
        if word in STATUSES:
            return STATUSES[word]
        if word.isdecimal() and 400 <= int(word) < 600:
            return int(word)
    return None


def text_or_none(value: Any) -> str | None:
    """The value if it is text; servers may write anything."""
    return value if isinstance(value, str) else None


def member(value: Any, *names: str) -> Any:
    """A part of an answer; None where it or one around it is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def mappings(value: Any) -> Iterable[Mapping[str, Any]]:
    """The objects in a list; none if it is no list."""
    return (part for part in value if isinstance(part, Mapping)) if isinstance(value, list) else ()


def count_of(usage: Any, *names: str) -> int | None:
    """A number of tokens, if the server reports a valid one."""
    count = member(usage, *names)
    return count if type(count) is int and 0 <= count < 2**63 else None


def count_tokens(
    read: int | None,
    written: int | None,
    *,
    total: int | None = None,
    reasoning: int | None = None,
    cached: int | None = None,
    stored: int | None = None,
) -> dict[str, Any]:
    """The counts of a completion. Reasoning that a server counts beside the output is added to it.

    Args:
        total: of all tokens, as far as the server reports it, by which the others are checked.
    """
    notes = []
    if total is not None and read is not None and written is not None and total != read + written:
        if reasoning and total == read + written + reasoning:
            written += reasoning
        else:
            notes.append(f"the server counts {read} + {written} tokens, and {total} in all")
    if reasoning is not None and written is not None and reasoning > written:
        notes.append(f"the server counts {reasoning} tokens of reasoning among {written} of output")
    if cached is not None and read is not None and cached > read:
        notes.append(f"the server counts {cached} tokens from its cache among {read} of input")
    return {
        "input_tokens": read,
        "output_tokens": written,
        "cached_tokens": cached,
        "stored_tokens": stored,
        "reasoning_tokens": reasoning,
        "notes": notes,
    }


def read_logprobs(tokens: Any) -> list[dict[str, Any]] | None:
    """The probabilities of the tokens of a reply; None if the server reports none."""
    if not isinstance(tokens, list):
        return None
    return [
        {
            "token": token.get("token"),
            "logprob": token.get("logprob"),
            "top": {top["token"]: top.get("logprob") for top in filter(_is_token, token.get("top_logprobs") or ())},
        }
        for token in filter(_is_token, tokens)
    ]


def _is_token(token: Any) -> bool:
    """Whether a token is reported with a probability."""
    return (
        isinstance(token, dict) and isinstance(token.get("token"), str) and type(token.get("logprob")) in (int, float)
    )


class _Pieces(list[str]):
    """A text of which more may arrive."""


def merge_piece(held: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Adds a piece of a streamed object: texts continue, numbered entries of lists are merged, all else replaces.

    Example:
        >>> held = {}
        >>> for text in ("Par", "is"):
        ...     merge_piece(held, {"role": "assistant", "content": text})
        >>> join_pieces(held)
        {'role': 'assistant', 'content': 'Paris'}
    """
    for name, value in piece.items():
        before: Any = held.get(name)
        has_parts = isinstance(before, list) and not isinstance(before, _Pieces)
        if isinstance(value, str) and name in _CONTINUED and not has_parts:
            if not isinstance(before, _Pieces):
                before = held[name] = _Pieces()
            before.append(value)
        elif isinstance(value, Mapping):
            if not isinstance(before, dict):
                before = held[name] = {}
            merge_piece(before, value)
        elif isinstance(value, list) or has_parts:
            if not has_parts:
                before = held[name] = [{"type": "text", "text": before}] if isinstance(before, _Pieces) else []
            for entry in value if isinstance(value, list) else [{"type": "text", "text": value}] if value else ():
                _merge_entry(before, entry)
        elif value or name not in held:
            held[name] = value


def _merge_entry(entries: list[Any], entry: Any) -> None:
    """Adds an entry of a list, or a piece of one that is there: of the same number and id, or of the last call."""
    if not isinstance(entry, Mapping):
        entries.append(entry)
        return
    number, id, name = entry.get("index"), entry.get("id"), member(entry, "function", "name")
    held = next((known for known in reversed(entries) if member(known, "index") == number), None)
    if (
        not isinstance(held, dict)
        or (number is None and "function" not in entry)
        or (id and held.get("id") not in (None, id))
        or (number is None and name and not id and member(held, "function", "name"))
    ):
        held = {}
        entries.append(held)
    merge_piece(held, entry)


def join_pieces(value: Any) -> Any:
    """A streamed object with its texts complete."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: join_pieces(part) for name, part in value.items()}
    return [join_pieces(part) for part in value] if isinstance(value, list) else value
