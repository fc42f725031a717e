"""Pydantic models as `StructType`, and back.

Validators and computed fields are code and not part of a schema. Types that Arrow cannot store in one column (unions,
sets, untyped lists, models that contain themselves, …) are refused, all in one error.
"""

import datetime as dt
import decimal
import enum
import keyword as python
import math
import re
import types
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import annotated_types as at
from pydantic import (
    AwareDatetime,
    BaseModel,
    EncodedBytes,
    EncodedStr,
    Field as FieldOf,
    NaiveDatetime,
    RootModel,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from evaluand.core.errors import SpecError
from evaluand.data.schema.kinds import (
    BOUNDS,
    KEYWORDS,
    MISSING,
    Array,
    Field,
    Map,
    Scalar,
    StructType,
    Type,
    keyword,
    merge_limits,
    read_scalar,
)
from evaluand.data.schema.stored import SIZED, Json, SchemaModel, Stored

Model = type[BaseModel]


def read_model(model: Model) -> StructType:
    """The row type that a pydantic model describes."""
    reader = _Reader()
    struct = reader.struct(model, model.__name__, ())
    if reader.faults:
        raise SpecError("\n".join(reader.faults))
    return struct


def read_annotation(annotation: Any) -> tuple[Type, bool]:
    """The type of an annotation, and whether it may be null."""
    reader = _Reader()
    type_, nullable = reader.read(annotation, (), "the type", ())
    if reader.faults:
        raise SpecError("\n".join(reader.faults))
    return type_, nullable


def write_model(struct: StructType, name: str = "") -> Model:
    """A pydantic model of a row type."""
    fields: dict[str, Any] = {}
    for number, each in enumerate(struct.fields):
        info: dict[str, Any] = {"description": each.doc} if each.doc else {}
        if each.default is not MISSING:
            info |= {"default": each.default, "validate_default": True}  # validation turns a choice into its member
        elif not each.required:
            info |= _default_arguments(each)
        attribute = each.name
        if not _is_attribute(each.name) or each.name in fields:
            attribute = f"field{number}_{re.sub(r'[^0-9a-zA-Z]+', '_', each.name)}".rstrip("_")
            info["alias"] = each.name
        fields[attribute] = (_annotation(each.type, each.nullable, _class_name(each.name)), FieldOf(**info))
    model: Model = create_model(
        name or struct.title or "Item", __base__=SchemaModel, __doc__=struct.doc or None, **fields
    )
    return model


_KIND_BY_TYPE: Mapping[Any, str] = {
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
_TYPE_BY_KIND: Mapping[str, Any] = {
    **{kind: annotation for annotation, kind in _KIND_BY_TYPE.items() if annotation is not dt.datetime},
    **SIZED,
    "float64": float,
    "json": Json,
}


class _Reader:
    """Reads annotations and collects those that cannot be expressed.

    `above` holds the models that a field is in, to find one that contains itself.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []

    def struct(self, model: Model, path: str, above: tuple[Model, ...]) -> StructType:
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
            self._refuse(path, model.__name__, "allows other fields (extra='allow'), which have no columns")
        fields = [self._field(name, info, path, (*above, model)) for name, info in model.model_fields.items()]
        names = [each.name for each in fields]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self._refuse(f"{path}.{name}", name, "is the name of two fields")
        first, *_ = (model.__dict__.get("__doc__") or "").split("\n\n")
        return StructType(tuple(fields), model.__name__, " ".join(first.split()))

    def read(self, annotation: Any, limits: Iterable[Any], path: str, above: tuple[Model, ...]) -> tuple[Type, bool]:
        """The type of an annotation with limits, and whether it may be null."""
        annotation, limits = _unwrap(annotation, limits)
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin in (Union, types.UnionType):
            rest = [each for each in arguments if each is not type(None)]
            if len(rest) == 1:
                return self.read(rest[0], limits, path, above)[0], True
            return self._refuse(path, annotation, "only a type or null (Optional) is supported, no other union")
        if origin is list:
            item, nullable = self.read(arguments[0], (), f"{path}[]", above)
            return Array(item, nullable, **self._lengths(limits, path, annotation)), False
        if annotation is list:
            return self._refuse(path, annotation, "the type of its items is missing; write list[…]")
        if origin in (dict, Mapping) or annotation is dict:
            if not arguments:
                return self._refuse(
                    path, annotation, "the types of its keys and values are missing; write dict[str, …]"
                )
            if arguments[0] is not str:
                return self._refuse(path, annotation, "its keys are not text; write dict[str, …]")
            value, nullable = self.read(arguments[1], (), f"{path}{{}}", above)
            return Map(value, nullable, **self._lengths(limits, path, annotation)), False
        if origin is Literal or _is_class(annotation, (enum.Enum, BaseModel)):
            self._limits(limits, (), path, annotation)
        if origin is Literal:
            return self._choices(annotation, arguments, path)
        if _is_class(annotation, enum.Enum):
            type_, _ = self._choices(annotation, tuple(each.value for each in annotation), path)
            names = tuple(each.name for each in annotation)
            if isinstance(type_, Scalar) and type_.choices:
                type_ = replace(type_, names=names, title=annotation.__name__)
            return type_, False
        if _is_class(annotation, BaseModel):
            return self.struct(annotation, path, above), False
        stored = next((limit.kind for limit in limits if isinstance(limit, Stored)), None)
        is_hashable = getattr(annotation, "__hash__", None) is not None
        kind = stored or (_KIND_BY_TYPE.get(annotation) if is_hashable else None)
        if kind is None:
            return self._refuse(path, annotation, "has no counterpart in Arrow")
        words = self._limits(limits, KEYWORDS, path, annotation)
        if kind == "decimal":
            words |= {name: str(words[name]) for name in BOUNDS if isinstance(words.get(name), int | float)}
        try:
            return read_scalar(kind, {keyword(kind, name): value for name, value in words.items()}), False
        except (ValueError, TypeError) as error:
            return self._refuse(path, annotation, str(error))

    def _field(self, name: str, info: FieldInfo, path: str, above: tuple[Model, ...]) -> Field:
        alias = info.alias or name
        for other in (info.validation_alias, info.serialization_alias):
            if other not in (None, alias):
                self._refuse(f"{path}.{name}", other, "a field has one name in data; use alias=")
        type_, nullable = self.read(info.annotation, info.metadata, f"{path}.{alias}", above)
        if info.default_factory not in (None, list, dict):
            problem = "the default is the result of a function, which a schema cannot store; give a value as default="
            self._refuse(f"{path}.{alias}", info.annotation, problem)
        default = _read_default(info, type_, nullable)
        if default is None and not nullable:  # a common way to write "may be missing"
            default = MISSING
        if isinstance(default, float) and not math.isfinite(default):
            self._refuse(f"{path}.{alias}", info.annotation, f"the default {default} cannot be written as JSON")
        return Field(alias, type_, nullable, info.is_required(), default, (info.description or "").strip())

    def _choices(self, annotation: Any, values: tuple[Any, ...], path: str) -> tuple[Type, bool]:
        some = tuple(value for value in values if value is not None)
        if any(isinstance(value, enum.Enum) for value in some):
            return self._refuse(path, annotation, "names members of an enumeration; write the enumeration, or values")
        kinds = {_KIND_BY_TYPE.get(type(value)) for value in some}
        kind = next(iter(kinds)) if len(kinds) == 1 else None
        if kind is None:
            return self._refuse(path, annotation, "its values are not all of one type that Arrow has")
        return Scalar(kind, choices=some), len(some) < len(values)

    def _limits(self, limits: Iterable[Any], known: Iterable[str], path: str, annotation: Any) -> dict[str, Any]:
        """The limits by the attributes of `Scalar`; those that are not `known`, or contradict others, are faults."""
        words: dict[str, Any] = {}
        for limit in limits:
            try:
                new = _read_limit(limit)
                if new is None or new.keys() - {*known}:
                    self._refuse(path, annotation, f"{limit!r} is not supported")
                else:
                    words |= {name: merge_limits(name, words.get(name), value) for name, value in new.items()}
            except ValueError as error:
                self._refuse(path, annotation, str(error))
        return words

    def _lengths(self, limits: Iterable[Any], path: str, annotation: Any) -> dict[str, Any]:
        lengths = self._limits(limits, ("min_length", "max_length"), path, annotation)
        return {name: value for name, value in lengths.items() if (name, value) != ("min_length", 0)}

    def _refuse(self, path: str, annotation: Any, problem: str) -> tuple[Type, bool]:
        """Collect a fault, and return any type so that reading goes on."""
        is_class = isinstance(annotation, type) and not get_args(annotation)
        self.faults.append(f"{path}: {annotation.__name__ if is_class else annotation}: {problem}")
        return Scalar("string"), False


def _unwrap(annotation: Any, limits: Iterable[Any]) -> tuple[Any, list[Any]]:
    """An annotation without `Annotated`, aliases and new names, and the limits they carry."""
    single = [each for limit in limits for each in _split_limit(limit)]
    while True:
        if isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif get_origin(annotation) is Annotated:
            inner, *more = get_args(annotation)
            annotation, single = inner, [*(each for limit in more for each in _split_limit(limit)), *single]
        elif hasattr(annotation, "__value__"):  # type X = …
            annotation = annotation.__value__
        else:
            return annotation, single


def _split_limit(limit: Any) -> Iterable[Any]:
    if isinstance(limit, FieldInfo):
        return [each for inner in limit.metadata for each in _split_limit(inner)]
    if isinstance(limit, at.GroupedMetadata):
        return [each for inner in limit for each in _split_limit(inner)]
    return [limit]


def _is_class(annotation: Any, kind: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, kind)


_LIMITS: Mapping[Any, tuple[str, str]] = {
    at.Ge: ("minimum", "ge"),
    at.Le: ("maximum", "le"),
    at.Gt: ("exclusive_minimum", "gt"),
    at.Lt: ("exclusive_maximum", "lt"),
    at.MultipleOf: ("multiple_of", "multiple_of"),
    at.MinLen: ("min_length", "min_length"),
    at.MaxLen: ("max_length", "max_length"),
}


def _read_limit(limit: Any) -> dict[str, Any] | None:
    """A limit in the attributes of `Scalar`; None where they cannot express it, empty where it is not a limit.

    How pydantic converts values (strict, strip_whitespace) is not a limit.
    """
    for kind, (name, attribute) in _LIMITS.items():
        if isinstance(limit, kind):
            return {name: getattr(limit, attribute)}
    if isinstance(limit, EncodedBytes | EncodedStr):
        return None
    words = {
        "pattern": _pattern_text(getattr(limit, "pattern", None)),
        "digits": getattr(limit, "max_digits", None),
        "places": getattr(limit, "decimal_places", None),
        "finite": getattr(limit, "allow_inf_nan", None) is False or None,
    }
    known = {name: value for name, value in words.items() if value is not None}
    kind = type(limit).__name__
    is_limit = kind == "UuidVersion" or isinstance(limit, at.BaseMetadata)
    return None if is_limit and not known and kind not in _CONVERSIONS else known


def _pattern_text(pattern: Any) -> str | None:
    """A pattern with its flags in front, except re.ASCII, which `write_model` sets."""
    text, flags = (pattern.pattern, pattern.flags) if isinstance(pattern, re.Pattern) else (pattern, 0)
    if isinstance(text, str) and not flags & re.ASCII and (match := _CLASSES.search(text)):
        raise ValueError(
            f"in the pattern {text!r}, {match[1]} means all of Unicode to pydantic, but ASCII to JSON Schema and "
            "Arrow; write which characters ([0-9], [A-Za-z_], \\p{L}), or compile it with re.ASCII"
        )
    letters = "".join(letter for flag, letter in _FLAGS.items() if flags & flag)
    return f"(?{letters}){text}" if letters else text


_CONVERSIONS = ("PydanticGeneralMetadata", "Strict", "AllowInfNan")
_FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
_CLASSES = re.compile(r"(?<!\\)(?:\\\\)*(\\[wWdDsSbB])")
"""Classes that match all of Unicode in pydantic, but only ASCII in Arrow and JSON Schema."""


def _read_default(info: FieldInfo, type_: Type, nullable: bool) -> Any:
    """The default; MISSING where there is none, or where it is the empty list or object that fills the field anyway."""
    if info.default_factory not in (list, dict):
        return MISSING if info.default is PydanticUndefined else _as_data(info.default)
    empty = Array if info.default_factory is list else Map
    if isinstance(type_, empty) and not nullable:
        return MISSING
    return [] if empty is Array else {}


def _as_data(value: Any) -> Any:
    """A default without enumerations, models and tuples."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, BaseModel):
        return _as_data(value.model_dump(by_alias=True))
    if isinstance(value, list | tuple):
        return [_as_data(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _as_data(each) for key, each in value.items()}
    return value


# Writing


def _annotation(type_: Type, nullable: bool, name: str) -> Any:
    limits = {
        argument: value
        for attribute, argument in _LIMITS.values()
        if (value := getattr(type_, attribute, None)) is not None
    }
    if isinstance(type_, StructType):
        annotation: Any = write_model(type_, type_.title or name)
    elif isinstance(type_, Array):
        annotation = list[_annotation(type_.item, type_.nullable, name)]  # type: ignore[misc]
    elif isinstance(type_, Map):
        annotation = dict[str, _annotation(type_.value, type_.nullable, name)]  # type: ignore[misc]
    elif type_.names:
        annotation, limits = enum.Enum(type_.title or name, list(zip(type_.names, type_.choices, strict=True))), {}
    elif type_.choices:
        annotation, limits = Literal[type_.choices], {}
    else:
        annotation = _TYPE_BY_KIND[type_.kind]
        pattern = type_.pattern and (
            re.compile(type_.pattern, re.ASCII) if _CLASSES.search(type_.pattern) else type_.pattern
        )
        others = {"pattern": pattern, "max_digits": type_.digits, "decimal_places": type_.places}
        limits |= {argument: value for argument, value in others.items() if value is not None}
        limits |= {"allow_inf_nan": False} if type_.finite else {}
    annotation = Annotated[annotation, FieldOf(**limits)] if limits else annotation
    return annotation | None if nullable else annotation


def _default_arguments(field: Field) -> dict[str, Any]:
    """The arguments of a pydantic field that is optional and has no default."""
    if isinstance(field.type, Array | Map) and not field.nullable:
        return {"default_factory": list if isinstance(field.type, Array) else dict}
    return {"default": None}


def _is_attribute(name: str) -> bool:
    reserved = name.startswith(("_", "model_")) or hasattr(BaseModel, name)
    return name.isidentifier() and not python.iskeyword(name) and not reserved


def _class_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^0-9a-zA-Z]+", name)) or "Item"
