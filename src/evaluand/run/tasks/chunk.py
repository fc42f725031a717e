"""Split text into chunks that end at a pause: after a paragraph, else a line, a sentence, a word.

Nothing is lost or changed: the joined chunks are the text.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic.json_schema import SkipJsonSchema

from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.parameters import Within
from evaluand.core.text.retrieval import count_tokens
from evaluand.run.parameters import check_parameters
from evaluand.run.task import Task
from evaluand.trace.spans import TaskSpan

Unit = Literal["characters", "words", "tokens"]

_PAUSES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\n[^\S\n]*\n\s*",  # a paragraph
        r"\n\s*",  # a line
        r"[.!?…]+[\"'”’»)\]]*\s+|[。！？]+[”’」』）]*\s*",  # a sentence
        r"\s+",
    )
)
_WORD = re.compile(r"\S+")
_JOINER: Final = "\u200d"
_TONES: Final = frozenset("🏻🏼🏽🏾🏿")


@dataclass(frozen=True)
class Chunk(Task[str, list[str]]):
    """Splits a text into chunks of a maximum length, at the best pause in the second half of each chunk.

    The last chunk is the rest. Text without a pause is cut between characters, but never before a combining mark; a
    character longer than the maximum is a separate chunk. An empty text has no chunks.

    Args:
        max_length: the largest length of a chunk.
        unit: the unit of the length: `characters`, `words`, or `tokens` of Llama 2's tokenizer, which comes with the
            extra `embeddings`; from Python also a function that returns the length of a text, such as its number of
            tokens for your model. A part of a text must not be longer than the text.
        output_schema: what each chunk must be; see `Task`.

    Raises:
        ParameterError: a parameter is invalid.

    Example:
        >>> from evaluand.trace.tracers.no_op import NoOpTracer
        >>> Chunk(20).run("It rains. It pours. The old man is snoring.", NoOpTracer())
        ['It rains. It pours. ', 'The old man is ', 'snoring.']
    """

    max_length: Annotated[int, Within(1)] = 2000
    unit: Unit | SkipJsonSchema[Callable[[str], int]] = "characters"
    output_schema: Any = field(default=None, kw_only=True)

    kind = "chunk"
    behaviour: ClassVar[int] = 1
    items = True

    def __post_init__(self) -> None:
        known = callable(self.unit) or self.unit in get_args(Unit)
        check_parameters(
            self, [] if known else [(("unit",), f"is {self.unit!r}; give {' or '.join(map(repr, get_args(Unit)))}")]
        )

    def do_run(self, input: str, task_span: TaskSpan) -> list[str]:
        return list(chunks(input, self.max_length, self.unit))

    def identify(self) -> Identity:
        if type(self) is not Chunk or callable(self.unit):
            return code_identity("task", self)
        spec = {"behaviour": self.behaviour, "max_length": self.max_length, "unit": self.unit}
        return Identity({"kind": self.kind, **spec}, parts={name: str(value) for name, value in spec.items()})

    def prepare(self, dataset: Any) -> None:
        """Raises a SpecError where tokens are to be counted and cannot be."""
        if self.unit == "tokens":
            count_tokens("")


def chunks(text: str, max_length: int, unit: Unit | Callable[[str], int] = "characters") -> Iterator[str]:
    """The chunks of a text, as `Chunk` gives them."""
    begin = 0
    while begin < len(text):
        reach = _reach(text, begin, max_length, unit)
        end = reach if reach == len(text) else _pause(text, begin, reach)
        yield text[begin:end]
        begin = end


def _reach(text: str, begin: int, max_length: int, unit: Unit | Callable[[str], int]) -> int:
    """Where the longest chunk that begins here would end; behind the first character at the soonest."""
    if unit == "characters":
        return min(begin + max_length, len(text))
    length = unit if callable(unit) else _LENGTHS[unit]
    fits, step = begin, 4 * max_length
    while fits < len(text) and length(text[begin : min(fits + step, len(text))]) <= max_length:
        fits = min(fits + step, len(text))
        step *= 2
    fails = min(fits + step, len(text)) + 1 if fits < len(text) else fits + 1
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if length(text[begin:middle]) <= max_length:
            fits = middle
        else:
            fails = middle
    return max(fits, begin + 1)


def _pause(text: str, begin: int, reach: int) -> int:
    """The best place to end a chunk that can reach so far."""
    middle = begin + (reach - begin) // 2
    for pattern in _PAUSES:
        for after in (middle, begin) if pattern is _PAUSES[-1] else (middle,):
            ends = [found.end() for found in pattern.finditer(text, after, reach)]
            if ends and ends[-1] > after:
                return ends[-1]
    end = reach
    while end > begin + 1 and _belongs_to_the_one_before(text, end):
        end -= 1
    return end if end > begin + 1 or not _belongs_to_the_one_before(text, end) else reach


def _belongs_to_the_one_before(text: str, at: int) -> bool:
    """Whether a character is an accent, a variant of the one before, or joined to it; or ends a line with it."""
    mark = unicodedata.category(text[at]).startswith("M") or text[at] == _JOINER or text[at] in _TONES
    return mark or text[at - 1] == _JOINER or text[at - 1 : at + 1] == "\r\n"


def _words(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))


_LENGTHS: Final[dict[str, Callable[[str], int]]] = {"characters": len, "words": _words, "tokens": count_tokens}
