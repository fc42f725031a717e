"""The fields of a rubric, as they are read from data: each is checked by itself, and every fault has its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final

from evaluand.core.errors import ParameterError, SpecError, described, nearest
from evaluand.core.text.templates import Template
from evaluand.evaluation.scorer import is_number
from evaluand.judges.scale import Fault, Scale, unknown_keys

MODEL: Final = "model"
SENTENCES: Final = "sentences"
ITEMS: Final = "items"
SPLITS: Final = (MODEL, SENTENCES, ITEMS)
COMBINATIONS: Final = ("mean", "min", "max")


@dataclass(frozen=True, kw_only=True)
class RubricExample:
    """A case with its verdict, which the judge is shown before the material.

    Attributes:
        material: a value for each variable of the rubric's material.
        verdict: a label of the scale.
        reasons: why.
        evidence: the quoted words, if the rubric asks for evidence.
    """

    material: Mapping[str, Any]
    verdict: Any
    reasons: str = ""
    evidence: str = ""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """How a text is divided into parts that are judged one by one.

    Attributes:
        of: the variable that is divided.
        name: the variable of the rubric's material that holds a part.
        split: `model` asks the judge for the parts, `sentences` splits a text, `items` a list.
        instructions: what a part is, for the split `model`.
        material: the variables that the judge sees when it divides the text; by default only the text itself.
        most: the largest number of parts; texts with more are not judged.
        combine: how the value is computed: the `mean`, `min` or `max` of the parts.
    """

    of: str
    name: str = "part"
    split: str = MODEL
    instructions: str = ""
    material: Sequence[str] = ()
    most: int = 50
    combine: str = "mean"

    @property
    def spec(self) -> dict[str, Any]:
        """The fields that may change the value."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def read_fields(written: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """The fields that are valid, and the faults of the others."""
    valid, faults = dict[str, Any](), list[Fault]()
    for name, value in written.items():
        try:
            valid[name] = _READINGS[name](value)
        except ParameterError as error:
            faults += [((name, *place), message) for place, message in error.faults]
    return valid, faults


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ParameterError([((), f"is {described(value)}; give some text")])
    return value.strip()


def _needed_text(value: Any) -> str:
    if not (text := _text(value)):
        raise ParameterError([((), "is missing; say what to judge, and by what")])
    return text


def _version(value: Any) -> str:
    return _text(f"{value}" if is_number(value) else value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ParameterError([((), f"is {described(value)}; give true or false")])
    return value


def _direction(value: Any) -> bool | None:
    return None if value is None else _flag(value)


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ParameterError([((), f"is {described(value)}; give the name of a variable, such as output")])
    return value


def _optional_variable(value: Any) -> str | None:
    return None if value is None else _variable(value)


def _variables(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ParameterError([((), f"is {described(value)}; give a list of variables, such as [input, output]")])
    return tuple(dict.fromkeys(_each(_variable, value)))


def _material(value: Any) -> tuple[str, ...] | Template:
    if isinstance(value, Template):
        return value
    if not value:
        raise ParameterError([((), "is missing; list what the judge sees, such as [input, output]")])
    if not isinstance(value, str):
        return _variables(value)
    try:
        return Template(value.strip())
    except SpecError as error:
        raise ParameterError([((), line) for line in str(error).split("\n")]) from None


def _scale(value: Any) -> Scale:
    if value in ("", {}, None):
        raise ParameterError([((), "is missing; list the verdicts, such as {right: 1, wrong: 0}")])
    return Scale.of(value)


def _examples(value: Any) -> tuple[RubricExample, ...]:
    if not isinstance(value, list | tuple):
        raise ParameterError([((), f"is {described(value)}; give a list of examples")])
    return tuple(_each(_example, value))


def _example(value: Any) -> RubricExample:
    if isinstance(value, RubricExample):
        return value
    form = "an example has material and verdict, and may have reasons and evidence"
    found = _fields_of(RubricExample, value, form, {"material": _values, "reasons": _text, "evidence": _text})
    return RubricExample(**found)


def _values(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ParameterError([((), f"is {described(value)}; give variable: value")])
    return dict(value)


def _parts(value: Any) -> Parts | None:
    if value is None or isinstance(value, Parts):
        return value
    readings = {
        **dict.fromkeys(("of", "name"), _variable),
        "split": _one_of(SPLITS),
        "instructions": _text,
        "material": _variables,
        "most": _positive,
        "combine": _one_of(COMBINATIONS),
    }
    found = _fields_of(Parts, value, "parts say which variable is divided, such as {of: output}", readings)
    parts = Parts(**{"material": (found["of"],), **found})
    if (parts.split == MODEL) != bool(parts.instructions):
        needed = "are missing; say what a part is, or split by sentences or items"
        raise ParameterError([(("instructions",), needed if parts.split == MODEL else "are for the split model")])
    return parts


def _one_of(choices: Sequence[str]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            hint = nearest(value, choices) if isinstance(value, str) else ""
            raise ParameterError([((), f"is {described(value)}; give one of {', '.join(choices)}{hint}")])
        return str(value)

    return read


def _positive(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ParameterError([((), f"is {described(value)}; give an integer of at least 1")])
    return value


def _each(read: Callable[[Any], Any], values: Sequence[Any]) -> Iterator[Any]:
    """The values, read; all their faults at once, by position."""
    found, faults = list[Any](), list[Fault]()
    for number, value in enumerate(values):
        try:
            found.append(read(value))
        except ParameterError as error:
            faults += [((number, *place), message) for place, message in error.faults]
    if faults:
        raise ParameterError(faults)
    return iter(found)


def _fields_of(made: Any, value: Any, form: str, readings: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """The fields of a mapping for a dataclass."""
    if not isinstance(value, Mapping):
        raise ParameterError([((), f"is {described(value)}; {form}")])
    known = [each.name for each in fields(made)]
    faults = unknown_keys(value, known)
    found: dict[str, Any] = {}
    for name in known:
        if name not in value:
            continue
        try:
            found[name] = readings[name](value[name]) if name in readings else value[name]
        except ParameterError as error:
            faults += [((name, *place), message) for place, message in error.faults]
    required = [each.name for each in fields(made) if each.default is MISSING]
    faults += [((name,), f"is missing; {form}") for name in required if name not in value]
    if faults:
        raise ParameterError(faults)
    return found


_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*")
_READINGS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "instructions": _needed_text,
    "material": _material,
    "scale": _scale,
    **dict.fromkeys(("name", "summary", "source"), _text),
    "version": _version,
    "higher_is_better": _direction,
    "reasons": _flag,
    "optional": _variables,
    "evidence": _optional_variable,
    "examples": _examples,
    "parts": _parts,
}
