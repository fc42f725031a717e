r"""The part of a reply that states its answer: the last `\boxed{…}`, or else what follows the last `answer is`.

`Answer:` and `####` (of GSM8K) state an answer, too.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final, NamedTuple

from evaluand.models.reasoning import split_reasoning

BOXED: Final = "boxed"
STATED: Final = "stated"


class Unreadable(ValueError):
    """A text cannot be read for sure; the message says why."""


class Region(NamedTuple):
    """A part of a reply.

    Attributes:
        text: the part as the reply has it.
        rule: what chose it: `boxed` or `stated`; None for the whole reply.
        candidates: how many parts there were of that kind.
    """

    text: str
    rule: str | None = None
    candidates: int = 1


def final_answer(text: str, *, reasoning: bool = False) -> Region:
    r"""The part of a reply with its answer.

    Args:
        reasoning: whether reasoning in the text is part of the reply.

    Raises:
        Unreadable: its reasoning or its last box does not end.

    Example:
        >>> final_answer(r"So $x = \boxed{\frac{1}{2}}$.").text, final_answer("The answer is $18.\nBye").text
        ('\\frac{1}{2}', '$18.')
    """
    thoughts, answer = (None, text) if reasoning else split_reasoning(text)
    if thoughts is not None and not answer:
        raise Unreadable("the reply ends within its reasoning")
    boxes = answer.count(_BOX)
    if boxes:
        return Region(_boxed(answer, answer.rindex(_BOX) + len(_BOX)), BOXED, boxes)
    if "####" in answer or "answer" in answer.lower():
        statements = deque(_STATEMENT.finditer(answer), maxlen=1)
        if statements:
            line, _, rest = answer[statements[0].end() :].partition("\n")
            return Region(line if any(map(str.isalnum, line)) else f"{line}\n{rest}", STATED)
    return Region(answer)


_BOX: Final = r"\boxed"
_STATEMENT: Final = re.compile(r"(?:\banswer\b[\s*_]*+(?:is|are|:|=)|####)(?:[^\S\n]|[:*_])*+", re.IGNORECASE)


def _boxed(text: str, start: int) -> str:
    """What the box that begins there holds."""
    depth = 0
    for mark in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return text[start : mark.end()].strip().removeprefix("{").removesuffix("}").strip()
    raise Unreadable("the last box does not end")


_BRACE: Final = re.compile(r"\\.|[{}]|(?<=\\boxed)\s*\w+", re.DOTALL)
