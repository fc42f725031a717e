"""Pydantic models as `StructType`, and back.

Validators and computed fields are code and not part of a schema. Types that Arrow cannot store in one column (unions,
sets, untyped lists, models that contain themselves, …) are refused, all in one error.
"""

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
    MISSING,
    Array,
    Field,
    Map,
    Scalar,
    StructType,
    Type,
    add_limits,
    check_decimal,
    is_json_number,
    is_pattern,
    merge_limits,
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
            return self._refused(path, annotation, "only a type or null (Optional) is supported, no other union")
        if origin is Literal or _is_class(annotation, (enum.Enum, BaseModel)):
            for limit in limits:
                if _read_limit(limit) != {}:
                    self._refuse(path, annotation, f"{limit!r} is not supported")
        if origin is Literal:
            return self._choices(annotation, arguments, path)
        if origin is list:
            return self._list(arguments[0], limits, path, above), False
        if origin in (dict, Mapping) or annotation is dict:
            return self._map(annotation, arguments, limits, path, above)
        if annotation is list:
            return self._refused(path, annotation, "the type of its items is missing; write list[…]")
        if _is_class(annotation, enum.Enum):
            return self._enumeration(annotation, path)
        if _is_class(annotation, BaseModel):
            return self.struct(annotation, path, above), False
        stored = next((limit.kind for limit in limits if isinstance(limit, Stored)), None)
        is_hashable = getattr(annotation, "__hash__", None) is not None
        kind = stored or (_KIND_BY_TYPE.get(annotation) if is_hashable else None)
        if kind is None:
            return self._refused(path, annotation, "has no counterpart in Arrow")
        return self._add_limits(Scalar(kind), limits, path, annotation), False

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

    def _list(self, item: Any, limits: Iterable[Any], path: str, above: tuple[Model, ...]) -> Array:
        type_, nullable = self.read(item, (), f"{path}[]", above)
        return Array(type_, nullable, **self._read_lengths(limits, path, list[item]))

    def _map(
        self, annotation: Any, arguments: tuple[Any, ...], limits: Iterable[Any], path: str, above: tuple[Model, ...]
    ) -> tuple[Type, bool]:
        if not arguments:
            return self._refused(path, annotation, "the types of its keys and values are missing; write dict[str, …]")
        if arguments[0] is not str:
            return self._refused(path, annotation, "its keys are not text; write dict[str, …]")
        value, nullable = self.read(arguments[1], (), f"{path}{{}}", above)
        return Map(value, nullable, **self._read_lengths(limits, path, annotation)), False

    def _choices(self, annotation: Any, values: tuple[Any, ...], path: str) -> tuple[Type, bool]:
        some = tuple(value for value in values if value is not None)
        if any(isinstance(value, enum.Enum) for value in some):
            return self._refused(path, annotation, "names members of an enumeration; write the enumeration, or values")
        return self._choice_type(some, annotation, path), len(some) < len(values)

    def _enumeration(self, annotation: type[enum.Enum], path: str) -> tuple[Type, bool]:
        type_ = self._choice_type(tuple(each.value for each in annotation), annotation, path)
        if isinstance(type_, Scalar):
            names = tuple(each.name for each in annotation)
            type_ = Scalar(type_.kind, choices=type_.choices, names=names, title=annotation.__name__)
        return type_, False

    def _choice_type(self, values: tuple[Any, ...], annotation: Any, path: str) -> Type:
        kinds = {_KIND_BY_TYPE.get(type(value)) for value in values}
        kind = next(iter(kinds)) if len(kinds) == 1 else None
        if kind is None:
            return self._refused(path, annotation, "its values are not all of one type that Arrow has")[0]
        return Scalar(kind, choices=values)

    def _add_limits(self, scalar: Scalar, limits: Iterable[Any], path: str, annotation: Any) -> Scalar:
        """The scalar with the limits that apply to it; others are collected as faults."""
        for limit in limits:
            words = _read_limit(limit)
            problem = _limit_fault(scalar, limit, words)
            if words is None or problem:
                self._refuse(path, annotation, problem)
                continue
            if scalar.kind == "decimal":
                bounds = {word: value for word, value in words.items() if word in BOUNDS}
                words |= {word: decimal.Decimal(str(v)) for word, v in bounds.items() if isinstance(v, int | float)}
            try:
                scalar = add_limits(scalar, **words)
            except ValueError as error:
                self._refuse(path, annotation, str(error))
        if scalar.kind == "decimal":
            declared = [words for limit in limits if (words := _read_limit(limit))]
            try:
                check_decimal(*(next((w[name] for w in declared if name in w), None) for name in ("digits", "places")))
            except ValueError as error:
                self._refuse(path, annotation, str(error))
        return scalar

    def _read_lengths(self, limits: Iterable[Any], path: str, annotation: Any) -> dict[str, Any]:
        lengths: dict[str, Any] = {}
        for limit in limits:
            words = _read_limit(limit)
            if words is None or words.keys() - {"min_length", "max_length"}:
                self._refuse(path, annotation, f"{limit!r} is not supported")
            else:
                lengths |= {name: merge_limits(name, lengths.get(name), value) for name, value in words.items()}
        return {name: value for name, value in lengths.items() if (name, value) != ("min_length", 0)}

    def _refused(self, path: str, annotation: Any, problem: str) -> tuple[Type, bool]:
        """Collect a fault, and return any type so that reading goes on."""
        self._refuse(path, annotation, problem)
        return Scalar("string"), False

    def _refuse(self, path: str, annotation: Any, problem: str) -> None:
        is_class = isinstance(annotation, type) and not get_args(annotation)
        self.faults.append(f"{path}: {annotation.__name__ if is_class else annotation}: {problem}")


def _limit_fault(scalar: Scalar, limit: Any, words: Mapping[str, Any] | None) -> str:
    """Why a limit does not apply to a scalar; empty where it does."""
    if words is None or ("multiple_of" in words and not is_json_number(scalar.kind) and scalar.kind != "decimal"):
        return f"{limit!r} is not supported"
    pattern = words.get("pattern")
    if pattern is None:
        return ""
    if not is_pattern(pattern):
        return f"the pattern {pattern!r} is not supported by RE2"
    compiled = getattr(limit, "pattern", None)
    is_ascii = isinstance(compiled, re.Pattern) and compiled.flags & re.ASCII
    if not is_ascii and (match := _CLASSES.search(pattern)):
        return (
            f"in the pattern {pattern!r}, {match[1]} means all of Unicode to pydantic, but ASCII to JSON Schema and "
            "Arrow; write which characters ([0-9], [A-Za-z_], \\p{L}), or compile it with re.ASCII"
        )
    return ""


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
    """A limit in the attributes of `Scalar`; None where they cannot express it, empty where it is not a limit."""
    for kind, (name, attribute) in _LIMITS.items():
        if isinstance(limit, kind):
            return {name: getattr(limit, attribute)}
    if isinstance(limit, EncodedBytes | EncodedStr):
        return None
    if isinstance(limit, at.BaseMetadata) or type(limit).__name__ == "UuidVersion":
        return _read_general_limit(limit)
    return _read_general_limit(limit) or {}


def _read_general_limit(limit: Any) -> dict[str, Any] | None:
    """A limit in pydantic's own metadata; how it converts values (strict, strip_whitespace) is not a limit."""
    if not hasattr(limit, "__dict__"):
        return None
    words = {
        "pattern": getattr(limit, "pattern", None),
        "digits": getattr(limit, "max_digits", None),
        "places": getattr(limit, "decimal_places", None),
    }
    if isinstance(words["pattern"], re.Pattern):
        words["pattern"] = _pattern_text(words["pattern"])
    if getattr(limit, "allow_inf_nan", None) is False:
        words["finite"] = True
    known = {name: value for name, value in words.items() if value is not None}
    return known or ({} if type(limit).__name__ in ("PydanticGeneralMetadata", "Strict", "AllowInfNan") else None)


def _pattern_text(pattern: re.Pattern[str]) -> str:
    """A compiled pattern as text, with its flags in front, except re.ASCII, which `write_model` sets."""
    as_booleans = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
    return f"(?{as_booleans}){pattern.pattern}" if as_booleans else pattern.pattern


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
    annotation = _inner_annotation(type_, name)
    return annotation | None if nullable else annotation


def _inner_annotation(type_: Type, name: str) -> Any:
    if isinstance(type_, Scalar):
        return _scalar_annotation(type_, name)
    if isinstance(type_, StructType):
        return write_model(type_, type_.title or name)
    limits = {key: value for key in ("min_length", "max_length") if (value := getattr(type_, key)) is not None}
    if isinstance(type_, Array):
        annotation: Any = list[_annotation(type_.item, type_.nullable, name)]  # type: ignore[misc]
    else:
        annotation = dict[str, _annotation(type_.value, type_.nullable, name)]  # type: ignore[misc]
    return Annotated[annotation, FieldOf(**limits)] if limits else annotation


def _scalar_annotation(scalar: Scalar, name: str) -> Any:
    if scalar.names:
        return enum.Enum(scalar.title or name, list(zip(scalar.names, scalar.choices, strict=True)))
    if scalar.choices:
        return Literal[scalar.choices]
    limits: dict[str, Any] = {
        "ge": scalar.minimum,
        "le": scalar.maximum,
        "gt": scalar.exclusive_minimum,
        "lt": scalar.exclusive_maximum,
        "multiple_of": scalar.multiple_of,
        "min_length": scalar.min_length,
        "max_length": scalar.max_length,
        "pattern": scalar.pattern
        and (re.compile(scalar.pattern, re.ASCII) if _CLASSES.search(scalar.pattern) else scalar.pattern),
        "max_digits": scalar.digits,
        "decimal_places": scalar.places,
        "allow_inf_nan": False if scalar.finite else None,
    }
    declared = {name: value for name, value in limits.items() if value is not None}
    annotation = _TYPE_BY_KIND[scalar.kind]
    return Annotated[annotation, FieldOf(**declared)] if declared else annotation


def _default_arguments(field: Field) -> dict[str, Any]:
    """The arguments of a pydantic field that is optional and has no default."""
    if isinstance(field.type, Array | Map) and not field.nullable:
        return {"default_factory": list if isinstance(field.type, Array) else dict}
    return {"default": None}


def _is_attribute(name: str) -> bool:
    reserved = name.startswith(("_", "model_")) or hasattr(BaseModel, name)
    return name.isidentifier() and not keyword.iskeyword(name) and not reserved


def _class_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^0-9a-zA-Z]+", name)) or "Item"
