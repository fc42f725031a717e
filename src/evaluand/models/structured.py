"""Structured output: a reply as data that fits a schema, from servers that support it to different degrees.

    step     asks the server                    and the model
    schema   to enforce a JSON Schema           nothing more
    json     to enforce JSON                    for JSON that fits the schema
    tool     to have a tool called              for a call with the reply as its arguments
    text     nothing                            for JSON that fits the schema
    repair   nothing                            to correct its last reply, which did not fit

The next step is tried if the server refuses the form of a step, or if the reply does not fit. A step that a server
refuses, or ignores from the first time on, is not tried there again in this process. Each reply is validated.
`Structure.read` decides what fits: a subclass may accept replies that are not data of the schema.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, cast

from pydantic import TypeAdapter

from evaluand.core.identity import json_text
from evaluand.data.schema.values import ValueSchema
from evaluand.engine.http import BadRequest
from evaluand.models.completion import Completion
from evaluand.models.messages import add_instruction
from evaluand.models.question import Form, Question
from evaluand.models.tools import Tool

_Number = TypeVar("_Number", int, float)

Step = Literal["schema", "json", "tool", "text", "repair"]
Ask = Callable[[Question], Awaitable[Completion]]

NO_JSON: Final = "it has no JSON"
OTHER_TEXT: Final = "it has other text around its JSON"
STEPS: Final[tuple[Step, ...]] = ("schema", "json", "tool", "text")
_IGNORED: Final = (NO_JSON, OTHER_TEXT)
_REFUSED: Final = ("400", "404", "415", "422", "501")
_TOOL: Final = "reply"
_MOST_PLACES: Final = 200  # in a reply, at which JSON may begin


class Structure:
    """The schema of a reply.

    Args:
        schema: a JSON Schema, a pydantic model, or a Python type such as `list[str]`.

    Raises:
        SpecError: it is not a schema.

    Example:
        >>> structure = Structure({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
        >>> structure.read('The answer is {"n": 4}.'), structure.read('{"n": "four"}')
        (({'n': 4}, ''), (None, "reply.n is text ('four'), not an integer"))
    """

    def __init__(self, schema: Any) -> None:
        self._values = ValueSchema.of(schema)
        self.json_schema = _json_schema(schema)

    @classmethod
    def of(cls, schema: Any) -> "Structure":
        """The structure of a schema; cached for JSON Schemas and types."""
        if isinstance(schema, Structure):
            return schema
        if isinstance(schema, Mapping):
            return _structure_of_text(json_text(schema))
        return _structure_of_type(schema) if isinstance(schema, Hashable) else cls(schema)

    @property
    def form(self) -> Form:
        """The schema in the form for servers, which can enforce it only if its values are objects."""
        return Form(self.json_schema, is_strict=_is_strict(self.json_schema))

    @property
    def instruction(self) -> str:
        """The instruction about the form of the reply."""
        schema = json_text(self.json_schema)
        return f"Reply with JSON only, without any other text. It must fit this JSON Schema:\n{schema}"

    def correction(self, fault: str) -> str:
        """The request to correct a reply that does not fit."""
        return f"This reply does not fit: {fault}.\n{self.instruction}"

    def read(self, text: str) -> tuple[Any, str]:
        """The data in a reply, and why there are none, so that another reply is asked for."""
        found = list(json_values(text))
        if not found:
            return None, NO_JSON
        faults = [fault or self._values.fault(value, "reply") for value, fault in found]
        fitting = [json_text(value) for (value, _), fault in zip(found, faults, strict=True) if not fault]
        if len({*fitting}) > 1:
            return None, "it has several JSON values that fit"
        return (json.loads(fitting[0]), "") if fitting else (None, faults[0])


class Support:
    """The steps that a server supports, as far as this process has seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._useless: set[Step] = set()
        self._useful: set[Step] = set()

    def steps(self) -> list[Step]:
        """The steps to take, in order."""
        with self._lock:
            return [step for step in STEPS if step not in self._useless]

    def note(self, useless: set[Step], useful: Step) -> None:
        """Remembers that one step worked after others had not."""
        with self._lock:
            self._useful.add(useful)
            self._useless |= useless - self._useful


async def complete_structured(question: Question, structure: Structure, ask: Ask, support: Support) -> Completion:
    """The completion with data that fit the schema; without data if no step succeeds.

    Args:
        question: without a form. If the model may call tools, it may do so instead, and there is no step `tool`.
        ask: makes one request.

    Raises:
        TaskError: a request failed for a reason that is not the form of the reply.
    """
    steps: Counter[str] = Counter()
    completions: list[Completion] = []
    refused: set[Step] = set()
    fault = ""
    for step in _steps_for(question, structure, support):
        steps[step] += 1
        try:
            completion = await ask(_question_of(step, question, structure))
        except BadRequest as error:
            if step == "text" or error.stops or error.code not in _REFUSED:
                raise
            refused.add(step)
            continue
        if completion.tool_calls and question.tools:
            return _summed([*completions, completion], steps, None, "")
        completion = _reply_of(step, completion)
        completions.append(completion)
        data, fault = structure.read(completion.text)
        if not fault:
            support.note(refused, step)
            return _summed(completions, steps, data, "")
        if completion.ending == "cut":
            return _summed(completions, steps, None, f"the reply was cut off: {fault}")
        if fault in _IGNORED and step != "text":
            refused.add(step)  # ignored: a server that enforces JSON gives some, and nothing else
    steps["repair"] += 1
    said = [_message_of(completions[-1]), {"role": "user", "content": structure.correction(fault)}]
    completions.append(await ask(replace(question, messages=[*question.messages, *said])))
    data, fault = structure.read(completions[-1].text)
    if not fault:
        support.note(refused, "text")
    return _summed(completions, steps, data, fault)


def _steps_for(question: Question, structure: Structure, support: Support) -> Iterator[Step]:
    is_object = structure.json_schema.get("type") == "object"  # servers enforce no other form
    for step in support.steps():
        if step == "text" or (is_object and not (step == "tool" and question.tools)):
            yield step


def _question_of(step: Step, question: Question, structure: Structure) -> Question:
    instructed = add_instruction(question.messages, structure.instruction)
    match step:
        case "schema":
            return replace(question, form=structure.form)
        case "json":
            return replace(question, messages=instructed, form=Form())
        case "tool":
            tool = Tool(_TOOL, "Give the reply as the arguments of this tool.", structure.json_schema)
            return replace(question, tools=(tool,), required_tool=_TOOL)
        case _:
            return replace(question, messages=instructed)


def _reply_of(step: Step, completion: Completion) -> Completion:
    """A completion whose text is the reply: in the step `tool` the arguments of the call, not the text beside it."""
    if step == "tool" and completion.tool_calls:
        return completion._replace(text=completion.tool_calls[0].text)
    return completion


def _message_of(completion: Completion) -> dict[str, Any]:
    """A reply as a message that may be corrected; a call of a tool, which wants a result, as text."""
    return {"role": "assistant", "content": completion.text} if completion.tool_calls else completion.message


def _summed(completions: list[Completion], steps: Mapping[str, int], data: Any, fault: str) -> Completion:
    """The last completion, with the tokens of all."""
    return completions[-1]._replace(
        input_tokens=_sum([one.input_tokens for one in completions]),
        output_tokens=_sum([one.output_tokens for one in completions]),
        cost=_sum([one.cost for one in completions]),
        data=data,
        fault=fault or None,
        steps=dict(steps),
        is_cached=all(one.is_cached for one in completions),
    )


def _sum(counts: list[_Number | None]) -> _Number | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


@lru_cache(maxsize=128)
def _structure_of_text(schema: str) -> Structure:
    return Structure(json.loads(schema))


@lru_cache(maxsize=128)
def _structure_of_type(schema: Any) -> Structure:
    return Structure(schema)


def _json_schema(schema: Any) -> Mapping[str, Any]:
    if isinstance(schema, Mapping):
        return schema
    if isinstance(schema, ValueSchema):
        row = schema.spec
        (made,) = row["properties"].values()
        made = made | {name: row[name] for name in ("$defs",) if name in row}
    else:
        made = TypeAdapter(schema).json_schema()
    if "$ref" in made:  # servers want an object at the top
        made = made | made["$defs"][made["$ref"].rpartition("/")[2]]
        del made["$ref"]
    return cast("Mapping[str, Any]", made)


def _is_strict(schema: Any) -> bool:
    """Whether each object of a schema has no further properties and requires all it has."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or {*schema.get("required", ())} != {*properties}:
            return False
    return all(_is_strict(part) for part in schema.values())


def json_values(text: str) -> Iterator[tuple[Any, str]]:
    """The JSON values in a reply, each with what makes it invalid: the whole text, or its blocks, or what is in it.

    Within other text, objects and lists that have lines of their own count. What stands in brackets that are no JSON is
    part of something broken, and where brackets are not closed nothing of the text is certain.

    Example:
        >>> [*json_values('As in [1], it is {"a": 1}.')], [*json_values('{"a": 1, "b": {"a": 1}')]
        ([({'a': 1}, '')], [(None, 'it has a { that is not closed')])
    """
    for candidates in ((text,), _BLOCK.findall(text)):
        blocks = [*_whole_values(candidates)]
        yield from blocks
        if blocks:
            return
    place = 0
    for _ in range(_MOST_PLACES):
        found = _OPENING.search(text, place)
        if found is None:
            return
        try:
            value, place = _DECODER.raw_decode(text, found.start())
        except _Ambiguous as fault:
            yield None, str(fault)
            return
        except (ValueError, RecursionError):
            place = _closing(text, found.start())
            if not place:
                yield None, f"it has a {found[0]} that is not closed"
                return
        else:
            line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()], text[place:].partition("\n")[0]
            if isinstance(value, dict) or all(map(_FENCE.fullmatch, line)):
                yield value, ""


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at the start is closed; 0 if nowhere. Brackets within quotes are none."""
    depth = 0
    for part in _BRACKET.finditer(text, start):
        depth += (part[0] in "{[") - (part[0] in "}]")
        if not depth:
            return part.end()
    return 0


def _whole_values(candidates: Iterable[str]) -> Iterator[tuple[Any, str]]:
    for candidate in map(str.strip, candidates):
        try:
            yield _DECODER.decode(candidate), ""
        except _Ambiguous as fault:
            if _OPENING.match(candidate):  # or else a constant with other text after it
                yield None, str(fault)
        except (ValueError, RecursionError):
            continue


class _Ambiguous(Exception):
    """JSON whose meaning is not certain."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        key = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise _Ambiguous(f"it has the key {key!r} twice")
    return members


def _refuse_constant(name: str) -> Any:
    raise _Ambiguous(f"it has the number {name}, which JSON does not know")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_refuse_constant)
_BLOCK: Final = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"\s*(?:`{1,3}(?:json)?)?\s*", re.IGNORECASE)
_OPENING: Final = re.compile(r"\{|\[(?=\s*(?:[\[\]{\"'\d-]|true\b|false\b|null\b))")
_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}\[\]]', re.DOTALL)
