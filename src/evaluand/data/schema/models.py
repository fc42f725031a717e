"""pydantic models to records, and back.

Validators and computed fields are code and no part of a schema. What Arrow cannot hold in one column (unions, sets,
untyped lists, models that contain themselves, …) is refused, all of it at once.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import keyword
import math
import re
import types
import uuid
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import annotated_types as at
from pydantic import AwareDatetime, BaseModel, EncodedBytes, EncodedStr, NaiveDatetime, RootModel, create_model
from pydantic import Field as FieldOf
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from evaluand.core.errors import SpecError
from evaluand.data.schema.kinds import (
    BOUNDS,
    MISSING,
    Array,
    Field,
    Map,
    Scalar,
    StructType,
    Type,
    check_decimal,
    is_number,
    is_pattern,
    limited,
    tighter,
)
from evaluand.data.schema.stored import SIZED, Json, SchemaModel, Stored

Model = type[BaseModel]


def read_model(model: Model) -> StructType:
    """The record that a pydantic model describes.

    Raises:
        SpecError: every field that cannot be expressed, with its path and type.
    """
    reader = _Reader()
    record = reader.record(model, model.__name__, ())
    if reader.faults:
        raise SpecError("\n".join(reader.faults))
    return record


def read_annotation(annotation: Any) -> tuple[Type, bool]:
    """The type of an annotation, and whether it may be null.

    Raises:
        SpecError: it cannot be expressed.
    """
    reader = _Reader()
    made = reader.read(annotation, (), "the type", ())
    if reader.faults:
        raise SpecError("\n".join(reader.faults))
    return made


def write_model(record: StructType, name: str = "") -> Model:
    """A pydantic model of a record."""
    fields: dict[str, Any] = {}
    for number, each in enumerate(record.fields):
        info: dict[str, Any] = {"description": each.doc} if each.doc else {}
        if each.default is not MISSING:
            info |= {"default": each.default, "validate_default": True}  # of a choice, the member is made
        elif not each.required:
            info |= _absent(each)
        attribute = each.name
        if not _is_attribute(each.name) or each.name in fields:
            attribute = f"field{number}_{re.sub(r'[^0-9a-zA-Z]+', '_', each.name)}".rstrip("_")
            info["alias"] = each.name
        fields[attribute] = (_annotation(each.type, each.nullable, _class_name(each.name)), FieldOf(**info))
    made: Model = create_model(
        name or record.title or "Item", __base__=SchemaModel, __doc__=record.doc or None, **fields
    )
    return made


_SIMPLE: Mapping[Any, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    bytes: "binary",
    uuid.UUID: "uuid",
    dt.date: "date",
    dt.time: "time",
    dt.datetime: "datetime",
    AwareDatetime: "datetime",
    NaiveDatetime: "datetime-local",
    dt.timedelta: "duration",
    decimal.Decimal: "decimal",
}
_BACK: Mapping[str, Any] = {
    **{kind: annotation for annotation, kind in _SIMPLE.items() if annotation is not dt.datetime},
    **SIZED,
    "float64": float,
    "json": Json,
}


class _Reader:
    """Reads annotations and keeps what cannot be expressed."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def record(self, model: Model, path: str, above: tuple[Model, ...]) -> StructType:
        if model in above:
            self._refuse(path, model.__name__, "contains itself")
            return StructType(())
        if issubclass(model, RootModel):
            self._refuse(path, model.__name__, "is a root model and has no named fields")
            return StructType(())
        if not model.model_fields:
            self._refuse(path, model.__name__, "has no fields")
        if not model.__pydantic_complete__:
            model.model_rebuild()
        if model.model_config.get("extra") == "allow":
            self._refuse(path, model.__name__, "takes any other fields (extra='allow')")
        read = [self._field(name, info, path, (*above, model)) for name, info in model.model_fields.items()]
        names = [each.name for each in read]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self._refuse(f"{path}.{name}", name, "is the name of two fields")
        return StructType(tuple(read), model.__name__, _docstring(model))

    def read(self, annotation: Any, limits: Iterable[Any], path: str, above: tuple[Model, ...]) -> tuple[Type, bool]:
        """The type of an annotation under limits, and whether it may be null."""
        annotation, limits = _peeled(annotation, limits)
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin in (Union, types.UnionType):
            rest = [each for each in arguments if each is not type(None)]
            if len(rest) == 1:
                return self.read(rest[0], limits, path, above)[0], True
            return self._refused(path, annotation, "only a type or null (Optional) can be, no other union")
        if origin is Literal or _is(annotation, (enum.Enum, BaseModel)):
            for limit in limits:
                if _told(limit) != {}:
                    self._refuse(path, annotation, f"{limit!r} cannot be expressed")
        if origin is Literal:
            return self._choices(annotation, arguments, path)
        if origin is list:
            return self._list(arguments[0], limits, path, above), False
        if origin in (dict, Mapping) or annotation is dict:
            return self._map(annotation, arguments, limits, path, above)
        if annotation is list:
            return self._refused(path, annotation, "the type of its items is not said; write list[…]")
        if _is(annotation, enum.Enum):
            return self._enumeration(annotation, path)
        if _is(annotation, BaseModel):
            return self.record(annotation, path, above), False
        kind = _stored(limits) or (_SIMPLE.get(annotation) if _hashable(annotation) else None)
        if kind is None:
            return self._refused(path, annotation, "has no counterpart in Arrow")
        return self._limited(Scalar(kind), limits, path, annotation), False

    def _field(self, name: str, info: FieldInfo, path: str, above: tuple[Model, ...]) -> Field:
        alias = info.alias or name
        for other in (info.validation_alias, info.serialization_alias):
            if other not in (None, alias):
                self._refuse(f"{path}.{name}", other, "a field has one name in data; use alias=")
        made, nullable = self.read(info.annotation, info.metadata, f"{path}.{alias}", above)
        if info.default_factory not in (None, list, dict):
            why = "the default is what a function makes, which no schema tells; give the value as default="
            self._refuse(f"{path}.{alias}", info.annotation, why)
        default = _default(info, made, nullable)
        if default is None and not nullable:  # a common way to write "may be missing"
            default = MISSING
        if isinstance(default, float) and not math.isfinite(default):
            self._refuse(f"{path}.{alias}", info.annotation, f"the default {default} cannot be written as JSON")
        return Field(alias, made, nullable, info.is_required(), default, (info.description or "").strip())

    def _list(self, item: Any, limits: Iterable[Any], path: str, above: tuple[Model, ...]) -> Array:
        made, nullable = self.read(item, (), f"{path}[]", above)
        return Array(made, nullable, **self._lengths(limits, path, list[item]))

    def _map(
        self, annotation: Any, arguments: tuple[Any, ...], limits: Iterable[Any], path: str, above: tuple[Model, ...]
    ) -> tuple[Type, bool]:
        if not arguments:
            return self._refused(path, annotation, "the types of its keys and values are not said; write dict[str, …]")
        if arguments[0] is not str:
            return self._refused(path, annotation, "its keys are no texts; write dict[str, …]")
        made, nullable = self.read(arguments[1], (), f"{path}{{}}", above)
        return Map(made, nullable, **self._lengths(limits, path, annotation)), False

    def _choices(self, annotation: Any, values: tuple[Any, ...], path: str) -> tuple[Type, bool]:
        some = tuple(value for value in values if value is not None)
        if any(isinstance(value, enum.Enum) for value in some):
            return self._refused(path, annotation, "names members of an enumeration; write the enumeration, or values")
        return self._of_one_type(some, annotation, path), len(some) < len(values)

    def _enumeration(self, annotation: type[enum.Enum], path: str) -> tuple[Type, bool]:
        made = self._of_one_type(tuple(each.value for each in annotation), annotation, path)
        if isinstance(made, Scalar):
            made = Scalar(
                made.kind,
                choices=made.choices,
                names=tuple(each.name for each in annotation),
                title=annotation.__name__,
            )
        return made, False

    def _of_one_type(self, values: tuple[Any, ...], annotation: Any, path: str) -> Type:
        kinds = {_SIMPLE.get(type(value)) for value in values}
        kind = next(iter(kinds)) if len(kinds) == 1 else None
        if kind is None:
            return self._refused(path, annotation, "its values are not all of one type that Arrow has")[0]
        return Scalar(kind, choices=values)

    def _limited(self, made: Scalar, limits: Iterable[Any], path: str, annotation: Any) -> Scalar:
        for limit in limits:
            told = _told(limit)
            if told is None:
                self._refuse(path, annotation, f"{limit!r} cannot be expressed")
                continue
            if not is_number(made.kind) and "multiple_of" in told and made.kind != "decimal":
                self._refuse(path, annotation, f"{limit!r} cannot be expressed")
                continue
            pattern = told.get("pattern")
            if pattern is not None and not is_pattern(pattern):
                self._refuse(path, annotation, f"the pattern {pattern!r} needs more than RE2 has")
                continue
            if pattern is not None and not _ascii(limit) and (found := _CLASSES.search(pattern)):
                self._refuse(
                    path, annotation,
                    f"in the pattern {pattern!r}, {found[1]} means all of Unicode to pydantic, ASCII to JSON Schema "
                    "and Arrow; write which characters ([0-9], [A-Za-z_], \\p{L}), or compile it with re.ASCII",
                )  # fmt: skip
                continue
            if made.kind == "decimal":
                told = {word: _decimal(value) if word in BOUNDS else value for word, value in told.items()}
            try:
                made = limited(made, **told)
            except ValueError as error:
                self._refuse(path, annotation, str(error))
        if made.kind == "decimal":
            declared = [told for limit in limits if (told := _told(limit))]
            try:
                check_decimal(*(next((t[word] for t in declared if word in t), None) for word in ("digits", "places")))
            except ValueError as error:
                self._refuse(path, annotation, str(error))
        return made

    def _lengths(self, limits: Iterable[Any], path: str, annotation: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for limit in limits:
            told = _told(limit)
            if told is None or told.keys() - {"min_length", "max_length"}:
                self._refuse(path, annotation, f"{limit!r} cannot be expressed")
            else:
                found |= {name: tighter(name, found.get(name), value) for name, value in told.items()}
        return {name: value for name, value in found.items() if (name, value) != ("min_length", 0)}

    def _refused(self, path: str, annotation: Any, why: str) -> tuple[Type, bool]:
        self._refuse(path, annotation, why)
        return Scalar("string"), False

    def _refuse(self, path: str, annotation: Any, why: str) -> None:
        self.faults.append(f"{path}: {_name(annotation)}: {why}")


def _peeled(annotation: Any, limits: Iterable[Any]) -> tuple[Any, list[Any]]:
    """An annotation without `Annotated`, aliases and new names, and the limits they carry."""
    found = [each for limit in limits for each in _single(limit)]
    while True:
        if isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif get_origin(annotation) is Annotated:
            inner, *more = get_args(annotation)
            annotation, found = inner, [*(each for limit in more for each in _single(limit)), *found]
        elif hasattr(annotation, "__value__"):  # type X = …
            annotation = annotation.__value__
        else:
            return annotation, found


def _single(limit: Any) -> Iterable[Any]:
    if isinstance(limit, FieldInfo):
        return [each for inner in limit.metadata for each in _single(inner)]
    if isinstance(limit, at.GroupedMetadata):
        return [each for inner in limit for each in _single(inner)]
    return [limit]


def _is(annotation: Any, kind: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, kind)


def _stored(limits: Iterable[Any]) -> str | None:
    return next((limit.kind for limit in limits if isinstance(limit, Stored)), None)


_TOLD: Mapping[Any, tuple[str, str]] = {
    at.Ge: ("minimum", "ge"),
    at.Le: ("maximum", "le"),
    at.Gt: ("exclusive_minimum", "gt"),
    at.Lt: ("exclusive_maximum", "lt"),
    at.MultipleOf: ("multiple_of", "multiple_of"),
    at.MinLen: ("min_length", "min_length"),
    at.MaxLen: ("max_length", "max_length"),
}


def _told(limit: Any) -> dict[str, Any] | None:
    """What a limit says, in the words of `Scalar`; None where it says something that cannot be told."""
    for kind, (name, attribute) in _TOLD.items():
        if isinstance(limit, kind):
            return {name: getattr(limit, attribute)}
    if isinstance(limit, EncodedBytes | EncodedStr):
        return None
    if isinstance(limit, at.BaseMetadata) or type(limit).__name__ == "UuidVersion":
        return _general(limit)
    return _general(limit) or {}


def _general(limit: Any) -> dict[str, Any] | None:
    """What pydantic's own limits say; how it converts values (strict, strip_whitespace) is not of the schema."""
    if not hasattr(limit, "__dict__"):
        return None
    told = {
        "pattern": getattr(limit, "pattern", None),
        "digits": getattr(limit, "max_digits", None),
        "places": getattr(limit, "decimal_places", None),
    }
    if isinstance(told["pattern"], re.Pattern):
        told["pattern"] = _text_of(told["pattern"])
    if getattr(limit, "allow_inf_nan", None) is False:
        told["finite"] = True
    known = {name: value for name, value in told.items() if value is not None}
    return known or ({} if type(limit).__name__ in ("PydanticGeneralMetadata", "Strict", "AllowInfNan") else None)


def _decimal(value: Any) -> Any:
    return decimal.Decimal(str(value)) if isinstance(value, int | float) else value


def _ascii(limit: Any) -> bool:
    pattern = getattr(limit, "pattern", None)
    return isinstance(pattern, re.Pattern) and bool(pattern.flags & re.ASCII)


def _text_of(pattern: re.Pattern[str]) -> str:
    """What a compiled pattern is as a text; its flags stand before it, but for that of `write_model`."""
    flags = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern


_FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
_CLASSES = re.compile(r"(?<!\\)(?:\\\\)*(\\[wWdDsSbB])")
"""What means any letter or digit in pydantic, and those of ASCII in Arrow and JSON Schema."""


def _default(info: FieldInfo, made: Type, nullable: bool) -> Any:
    """The default; an empty list or object that stands for a missing value anyway is none."""
    if info.default_factory not in (list, dict):
        return MISSING if info.default is PydanticUndefined else _plain(info.default)
    empty = Array if info.default_factory is list else Map
    return MISSING if isinstance(made, empty) and not nullable else [] if empty is Array else {}


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(by_alias=True))
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _docstring(model: Model) -> str:
    own = model.__dict__.get("__doc__")
    return " ".join((own or "").split("\n\n")[0].split())


def _hashable(annotation: Any) -> bool:
    return getattr(annotation, "__hash__", None) is not None


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)


# Back


def _annotation(given: Type, nullable: bool, name: str) -> Any:
    made = _inner(given, name)
    return made | None if nullable else made


def _inner(given: Type, name: str) -> Any:
    if isinstance(given, Scalar):
        return _scalar(given, name)
    if isinstance(given, StructType):
        return write_model(given, given.title or name)
    limits = {key: value for key in ("min_length", "max_length") if (value := getattr(given, key)) is not None}
    if isinstance(given, Array):
        made: Any = list[_annotation(given.item, given.nullable, name)]  # type: ignore[misc]
    else:
        made = dict[str, _annotation(given.value, given.nullable, name)]  # type: ignore[misc]
    return Annotated[made, FieldOf(**limits)] if limits else made


def _scalar(given: Scalar, name: str) -> Any:
    if given.names:
        return enum.Enum(given.title or name, list(zip(given.names, given.choices, strict=True)))
    if given.choices:
        return Literal[given.choices]
    limits: dict[str, Any] = {
        "ge": given.minimum,
        "le": given.maximum,
        "gt": given.exclusive_minimum,
        "lt": given.exclusive_maximum,
        "multiple_of": given.multiple_of,
        "min_length": given.min_length,
        "max_length": given.max_length,
        "pattern": given.pattern
        and (re.compile(given.pattern, re.ASCII) if _CLASSES.search(given.pattern) else given.pattern),
        "max_digits": given.digits,
        "decimal_places": given.places,
        "allow_inf_nan": False if given.finite else None,
    }
    told = {name: value for name, value in limits.items() if value is not None}
    return Annotated[_BACK[given.kind], FieldOf(**told)] if told else _BACK[given.kind]


def _absent(field: Field) -> dict[str, Any]:
    if isinstance(field.type, Array | Map) and not field.nullable:
        return {"default_factory": list if isinstance(field.type, Array) else dict}
    return {"default": None}


def _is_attribute(name: str) -> bool:
    free = not name.startswith(("_", "model_")) and not hasattr(BaseModel, name)
    return name.isidentifier() and not keyword.iskeyword(name) and free


def _class_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^0-9a-zA-Z]+", name)) or "Item"
