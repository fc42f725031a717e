"""Schemas in their three forms, products of them, names, and validated rows."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import re
import uuid
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import (
    UUID4,
    Base64Bytes,
    Base64Str,
    Base64UrlStr,
    BaseModel,
    Field,
    NaiveDatetime,
    RootModel,
    TypeAdapter,
    create_model,
)
from support.json_schemas import jsonschema

from evaluand.core.errors import DataError, SpecError
from evaluand.data.schema import (
    DataSchema,
    DyffDataSchema,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Json,
    Schema,
    SchemaError,
    SchemaModel,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    decode_schema,
    encode_schema,
    names,
    register,
)
from evaluand.data.schema.kinds import RANGES, Map, Scalar, StructType, Type, to_json
from evaluand.interop.dyff import arrow, base, embedding, ids, platform
from evaluand.store import tables as rows

# forms


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


class Part(BaseModel):
    """A part of it."""

    key: str = Field(description="its key", min_length=1)
    count: Int32 | None = None


class Everything(BaseModel):
    """One field of every type."""

    plain: int = Field(description="a whole number")
    byte: Int8
    count: UInt64 = Field(ge=3)
    real: float = Field(allow_inf_nan=False)
    share: Float32 = Field(ge=0, lt=1)
    flag: bool
    text: str = Field(pattern="^a", max_length=5)
    raw: bytes = Field(min_length=4, max_length=4)
    some: bytes = Field(max_length=9)
    id: uuid.UUID
    day: dt.date = Field(gt=dt.date(2020, 1, 1))
    hour: dt.time
    instant: dt.datetime
    wall: NaiveDatetime
    span: dt.timedelta = Field(le=dt.timedelta(days=1))
    amount: Decimal
    price: Decimal = Field(max_digits=6, decimal_places=2, ge=0)
    color: Color = Color.RED
    word: Literal["x", "y"]
    number: Literal[1, 2, None]
    maybe: float | None = None
    numbers: list[int | None]
    pair: Annotated[list[Float32], Field(min_length=2, max_length=2)]
    pair_or_none: Annotated[list[Float32], Field(min_length=2, max_length=2)] | None
    few: list[str] = Field(min_length=1, max_length=3)
    table: dict[str, list[Part]]
    part: Part
    parts: list[Part] | None
    document: Json
    named: int = Field(alias="class")
    space: str = Field(alias="acme.com/x", default="d")
    later: list[str] = Field(default_factory=list)


FORMS: dict[str, Any] = {
    "Arrow": lambda schema: schema.arrow,
    "encoded Arrow": lambda schema: decode_schema(encode_schema(schema.arrow)),
    "Dyff's Arrow": lambda schema: decode_schema(DataSchema.from_model(schema).arrowSchema),
    "JSON Schema": lambda schema: json.loads(json.dumps(schema.json)),
    "pydantic": lambda schema: schema.model,
    "stored": lambda schema: DataSchema.model_validate_json(DataSchema.from_model(schema).model_dump_json()),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_model_of_every_type_comes_back_from_every_form(form: str) -> None:
    schema = Schema.of(Everything)
    back = Schema.of(FORMS[form](schema))
    assert back == schema
    assert back.struct.doc == "One field of every type."
    assert back.json["properties"]["plain"]["description"] == "a whole number"


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("form", FORMS)
def test_a_named_schema_comes_back_from_every_form(name: str, form: str) -> None:
    schema = Schema.of(name)
    assert Schema.of(FORMS[form](schema)) == schema


SCALARS: list[Any] = [
    *(int, float, bool, str, bytes, uuid.UUID, dt.date, dt.time, dt.datetime, dt.timedelta, Decimal, Color),
    *(Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64, Json, Literal["a", "b"], Part),
    *(Annotated[int, Field(ge=-5, lt=9)], Annotated[UInt8, Field(multiple_of=5)], Annotated[str, Field(min_length=2)]),
]
TYPES = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda each: each | None),
        inner.map(lambda each: list[each]),  # type: ignore[valid-type]
        inner.map(lambda each: dict[str, each]),  # type: ignore[valid-type]
        st.tuples(inner, st.integers(1, 3)).map(lambda two: base.list_(two[0], list_size=two[1])),
    ),
    max_leaves=4,
)
MODELS = st.dictionaries(
    st.from_regex(r"[a-z]{1,5}", fullmatch=True).filter(lambda name: not hasattr(BaseModel, name)),
    st.tuples(TYPES, st.sampled_from(["", "what it is"])),
    min_size=1,
    max_size=4,
).map(
    lambda fields: create_model(
        "Made", **{name: (kind, Field(description=doc or None)) for name, (kind, doc) in fields.items()}
    )
)


@given(MODELS)
def test_no_form_of_any_model_loses_anything(model: type[BaseModel]) -> None:
    schema = Schema.of(model)
    for form in FORMS.values():
        assert Schema.of(form(schema)) == schema
    made = decode_schema(DataSchema.make_output_schema(model).arrowSchema)
    assert Schema.of(made) == DataSchema.make_output_schema(model).to_schema()


@st.composite
def values(draw: st.DrawFn, kind: Type, *, json_form: bool = False) -> Any:
    """A value of a type; what may be null or missing is at times."""
    if isinstance(kind, Scalar):
        some = st.sampled_from(kind.choices) if kind.choices else VALUES[kind.kind]
        made = draw(some.filter(lambda value: holds(kind, value)))
        return to_json(kind, made) if json_form else made
    if isinstance(kind, StructType):
        held = [each for each in kind.fields if each.required or draw(st.booleans())]
        return {each.name: draw(values_or_null(each.type, each.stores_null, json_form)) for each in held}
    most = kind.max_length or 2
    if isinstance(kind, Map):
        inner = values_or_null(kind.value, kind.nullable, json_form)
        return draw(st.dictionaries(st.sampled_from("xyz"), inner, max_size=most))
    inner = values_or_null(kind.item, kind.nullable, json_form)
    return draw(st.lists(inner, min_size=kind.min_length or 0, max_size=most))


def values_or_null(kind: Type, nullable: bool, json_form: bool) -> st.SearchStrategy[Any]:
    some = values(kind, json_form=json_form)
    return st.none() | some if nullable else some


def holds(kind: Scalar, value: Any) -> bool:
    low = kind.minimum is None or value >= kind.minimum
    high = kind.exclusive_maximum is None or value < kind.exclusive_maximum
    multiple = kind.multiple_of is None or value % kind.multiple_of == 0
    return low and high and multiple and (kind.min_length is None or len(value) >= kind.min_length)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(max(low, -9), 9) for name, (low, _) in RANGES.items()},
    "float32": st.floats(allow_nan=False, width=32),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": st.text(max_size=3),
    "json": st.sampled_from(["{}", "null", "[1]"]),
    "binary": st.binary(max_size=3),
    "uuid": st.uuids(),
    "date": st.dates(),
    "time": st.times(),
    "datetime": st.datetimes(timezones=st.just(dt.UTC)),
    "duration": st.timedeltas(dt.timedelta(-9), dt.timedelta(9)),
    "decimal": st.decimals(-9, 9, places=3),
}


@st.composite
def loose(draw: st.DrawFn, record: StructType) -> StructType:
    """The record with some fields that may be missing, and be null."""
    return StructType(tuple(draw(loose_field(each)) for each in record.fields))


@st.composite
def loose_field(draw: st.DrawFn, given: Any) -> Any:
    kind = draw(loose(given.type)) if isinstance(given.type, StructType) else given.type
    made = replace(given, type=kind, nullable=draw(st.booleans()), required=draw(st.booleans()))
    if made.required or not draw(st.booleans()):
        return made
    default = draw(values_or_null(kind, made.nullable, False))
    return replace(made, default=default)


@given(st.data(), MODELS, st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_what_comes_out_of_validation_comes_out_of_it_again(
    data: st.DataObject, model: type[BaseModel], json_form: bool
) -> None:
    schema = Schema(data.draw(loose(Schema.of(model).struct)))
    rows_ = data.draw(st.lists(values(schema.struct, json_form=json_form), max_size=4))
    table = schema.validate(rows_, json=json_form)
    assert schema.validate(table).equals(table)
    assert schema.validate(table.to_pylist(maps_as_pydicts="strict")).equals(table)
    filled = schema.validate(table.select([each.name for each in schema.struct.fields if each.required]))
    assert schema.validate(filled).equals(filled)


@pytest.mark.parametrize("item", [int, uuid.UUID, list[str], dict[str, int], Part])
def test_lists_of_one_length_may_be_null_whatever_they_hold(item: Any) -> None:
    pair = base.list_(item, list_size=2)
    schema = Schema.of(create_model("M", x=(list[pair | None], ...), y=(list[pair | None], [None])))  # type: ignore[valid-type]
    one = {int: 1, uuid.UUID: uuid.UUID(int=1), Part: {"key": "k", "count": None}, dict[str, int]: {"k": 1}}.get(
        item, ["a"]
    )
    data = [{"x": [None, [one, one], None, [one, one]], "y": [None]}, {"x": [], "y": []}, {"x": [None], "y": [None]}]
    table = schema.validate(data)
    assert table.to_pylist(maps_as_pydicts="strict") == data
    assert schema.validate(table).equals(table)
    assert schema.validate(table.slice(2)).equals(table.slice(2))
    assert schema.validate(table.slice(0, 0)).equals(table.slice(0, 0))
    assert schema.validate(table.slice(2).select(["x"])).equals(table.slice(2))


def test_null_means_missing_where_there_is_no_other_fill_value() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}, "b": {"type": "string"}}}
    properties = {"x": {"type": "integer"}, "y": inner, "z": {"type": "integer", "default": 3}}
    schema = Schema.of({"type": "object", "properties": properties})
    table = schema.validate([{}, {"x": 1, "y": {"b": "t"}}, {"x": None, "y": {"a": None}}])
    assert table.to_pylist() == [
        {"x": None, "y": None, "z": 3},
        {"x": 1, "y": {"a": None, "b": "t"}, "z": 3},
        {"x": None, "y": {"a": None, "b": None}, "z": 3},
    ]
    assert schema.validate(table) == schema.validate(table.to_pylist()) == table
    null = [("z", "is null")]  # there is a default, so that its column has no nulls
    for data in ([{"z": None}], pa.table({"z": pa.array([None], pa.int64())})):
        assert [(fault.path, fault.message) for fault in schema.faults(data)] == null


@given(st.lists(st.integers(-(2**64), 2**64) | st.booleans() | st.floats() | st.text() | st.none(), max_size=6))
def test_numbers_are_taken_where_strict_pydantic_takes_them(values: list[Any]) -> None:
    schema, adapter = Schema.of(create_model("M", x=(Int16, ...))), TypeAdapter(Int16)
    wrong = {fault.row for fault in schema.faults([{"x": value} for value in values])}
    for row, value in enumerate(values):
        try:
            adapter.validate_python(value, strict=not isinstance(value, float))  # 1.0 is whole, as in JSON Schema
        except ValueError:
            assert row in wrong
        else:
            assert row not in wrong


@pytest.mark.parametrize("json_form", [False, True])
def test_a_float_is_an_integer_where_it_equals_one_exactly(json_form: bool) -> None:
    schema = Schema.of({"properties": {"x": {"type": "integer", "minimum": 1.0, "default": 2.0}}})
    taken = [1, 1.0, np.float64(3), 2.0**53 - 1]
    table = schema.validate([*({"x": value} for value in taken), {}], json=json_form)
    assert table["x"].to_pylist() == [1, 1, 3, 2**53 - 1, 2]
    values = (1.5, 2.0**53, math.inf, math.nan, True, 0.0)
    assert [fault.message for fault in schema.faults([{"x": x} for x in values])] == [
        "is a number (1.5), not an integer",
        "is a number (9007199254740992.0) of at least 2**53, where a float is not an exact integer; give an integer",
        *(f"is a number ({x}), not an integer" for x in ("inf", "nan")),
        *("is true or false, not an integer", "0 is less than 1"),
    ]
    (fault,) = schema.faults([{"x": 2.0**70}])
    assert fault.message == f"{2.0**70} is out of the range of int64, {-(2**63)} to {2**63 - 1}"
    assert Schema.of(schema.model) == schema


def test_json_schema_treats_integral_floats_the_same() -> None:
    schema = Schema.of({"properties": {"x": {"type": "integer", "enum": [1.0, 2]}}, "additionalProperties": False})
    validator = jsonschema.Draft202012Validator(schema.json)
    for value in (1, 1.0, 2.0, 1.5, True, 3.0):
        assert validator.is_valid({"x": value}) is (schema.faults([{"x": value}]) == [])


def test_an_integer_has_64_bits_and_says_so() -> None:
    schema = Schema.of(create_model("M", x=(int, ...)))
    assert schema.arrow.field("x").type == pa.int64()
    limits = schema.json["properties"]["x"]
    assert (limits["minimum"], limits["maximum"]) == (-(2**63), 2**63 - 1)


def test_json_schema_judges_as_the_rows_are_judged() -> None:
    schema = Schema.of(Part)
    validator = jsonschema.Draft202012Validator(schema.json)
    for row in ({"key": "a"}, {"key": ""}, {"key": "a", "count": None}, {"count": 1}, {"key": "a", "count": 2**31}):
        assert validator.is_valid(row) is (schema.faults([row], json=True) == [])


# what is not supported


class Impossible(BaseModel):
    union: int | str
    untyped: list
    anything: Any
    unique: set[int]
    two: tuple[int, int]
    inner: list[dict]
    keys: dict[int, str]
    mixed: Literal["a", 1]
    again: Impossible | None = None
    version: RootModel[int]
    chosen: Annotated[Literal[1, 2], Field(ge=2)]
    nothing: float = float("nan")
    other: int = Field(validation_alias="others")
    fourth: UUID4


def test_everything_that_cannot_be_expressed_is_reported_with_path_and_type() -> None:
    with pytest.raises(SpecError) as raised:
        Schema.of(Impossible)
    lines = str(raised.value).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        *("Impossible.union", "Impossible.untyped", "Impossible.anything", "Impossible.unique", "Impossible.two"),
        *("Impossible.inner[]", "Impossible.keys", "Impossible.mixed", "Impossible.again"),
        *("Impossible.version", "Impossible.chosen", "Impossible.nothing", "Impossible.other", "Impossible.fourth"),
    ]
    assert lines[0] == "Impossible.union: int | str: only a type or null (Optional) is supported, no other union"


def test_fields_of_arrow_that_have_no_counterpart_are_reported() -> None:
    with pytest.raises(SpecError, match=r"a\.b: timestamp\[ns\]: has no counterpart in a schema\nc: dense_union"):
        Schema.of(
            pa.schema(
                [("a", pa.struct([("b", pa.timestamp("ns"))])), ("c", pa.dense_union([pa.field("x", pa.int8())]))]
            )
        )


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "$.x: may be one of several types"),
        ({"type": ["string", "integer"]}, "$.x: may be string or integer"),
        ({"type": "array"}, "$.x: is a list without a type of items"),
        ({}, "$.x: has no type"),
        ({"type": "object"}, "$.x: is an object of any shape"),
        ({"$ref": "#/$defs/Node"}, "$.x.next: Node contains itself"),
        ({"$ref": "https://example.org/x"}, "$.x: refers to"),
        ({"type": "string", "not": {"const": "a"}}, "$.x: the keyword 'not' is not supported"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "$.x: the keyword 'uniqueItems' is"),
        (True, "$.x: is a bool"),
    ],
)
def test_places_of_a_json_schema_that_cannot_be_expressed_are_reported(part: Any, message: str) -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    with pytest.raises(SpecError) as raised:
        Schema.of({"type": "object", "properties": {"x": part}, "$defs": {"Node": node}})
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("given", [3, None, [], object])
def test_what_is_no_schema_is_refused(given: Any) -> None:
    with pytest.raises(SpecError, match="is not a schema"):
        Schema.of(given)


# products and what evaluation needs

PRINTED = """\
_index_: int64
  -- field metadata --
  __doc__: 'The index of the item in the dataset'
_replication_: string
  -- field metadata --
  __doc__: 'ID of the replication the response belongs to.'
responses: list<item: struct<_response_index_: int64, text: string, label: string>>
  child 0, item: struct<_response_index_: int64, text: string, label: string>
      child 0, _response_index_: int64
      -- field metadata --
      __doc__: 'The index of the response among responses to the correspo' + 13
      child 1, text: string
      -- field metadata --
      __doc__: 'Text data'
      child 2, label: string
      -- field metadata --
      __doc__: 'The discrete label of the item'
  -- field metadata --
  __doc__: 'Inference responses'"""


def test_the_documented_example_prints_what_is_documented() -> None:
    dyff_schema = platform.DyffDataSchema(components=["classification.Label", "text.Text"])
    full_schema = platform.DataSchema.make_output_schema(dyff_schema)
    assert str(arrow.decode_schema(full_schema.arrowSchema)) == PRINTED


def test_a_field_that_two_components_have_is_refused_with_both() -> None:
    class Mine(SchemaModel):
        text: str

    with pytest.raises(SpecError, match=r"'text' is in both text\.Text and Mine \(component 2\)"):
        DataSchema.make_input_schema(DyffDataSchema(components=["text.Text", Mine]))


def test_a_product_with_a_model_of_ones_own_can_be_stored() -> None:
    class Mine(SchemaModel):
        votes: UInt8 = Field(description="how many")

    product = DyffDataSchema(components=["text.Text", Mine])
    stored = DyffDataSchema.model_validate_json(product.model_dump_json())
    assert stored == product
    schema = stored.to_schema()
    assert schema.arrow.names == ["votes", "text"]
    assert schema.arrow.field("votes").type == pa.uint8()


@pytest.mark.parametrize("name", ["_mine_", "dyff.io", "sub.dyff.io", "dyff.io/x", "sub.dyff.io/x"])
def test_reserved_names_that_mean_nothing_are_refused(name: str) -> None:
    model = create_model("Mine", x=(str, Field(alias=name)))
    for make in (
        lambda: DataSchema.make_input_schema(model),
        lambda: DataSchema.make_output_schema(Schema.of(model).arrow),
        lambda: DyffDataSchema(components=[model]).to_schema(),
        lambda: register("acme.Mine", model),
    ):
        with pytest.raises(SpecError, match=f"{name!r} is reserved"):
            make()


@pytest.mark.parametrize("wrap", [lambda inner: inner, lambda inner: dict[str, list[inner]]])  # type: ignore[valid-type]
def test_reserved_names_inside_fields_are_refused_with_their_path(wrap: Any) -> None:
    inner = create_model("Inner", x=(str, Field(alias="_mine_")), y=(int, Field(alias="_index_")))
    model = create_model("Mine", a=(wrap(inner), ...))
    path = "a._mine_" if wrap(inner) is inner else "a{}[]._mine_"
    only_arrow = pa.schema([*Schema.of(model).arrow, ("t", pa.timestamp("ns"))])
    for make in (
        lambda: DataSchema.from_model(model),
        lambda: DataSchema.make_input_schema(model),
        lambda: DataSchema.make_output_schema(Schema.of(model).arrow),
        lambda: DataSchema.make_output_schema(only_arrow),
        lambda: DyffDataSchema(components=[model]).to_schema(),
        lambda: register("acme.Mine", model),
    ):
        with pytest.raises(SpecError) as raised:
            make()
        assert f": {path}: the field name '_mine_' is reserved" in str(raised.value)
        assert "'_index_'" not in str(raised.value)


def test_a_key_that_is_there_stays_one_and_is_refused_in_another_type() -> None:
    there = pa.schema([("text", pa.string()), ("_index_", pa.int64())])
    assert decode_schema(DataSchema.make_input_schema(there).arrowSchema).names == ["_index_", "text"]
    for wrong in (pa.schema([("_index_", pa.string())]), create_model("M", x=(str, Field(alias="_index_")))):
        with pytest.raises(SpecError, match="_index_ is string; it must be int64"):
            DataSchema.make_input_schema(wrong)


def test_an_arrow_schema_stays_as_it_is() -> None:
    given = pa.schema([pa.field("x", pa.large_string(), nullable=False, metadata={"a": "b"})])
    made = decode_schema(DataSchema.make_input_schema(given).arrowSchema)
    assert made.field("x").equals(given.field("x"), check_metadata=True)
    only_arrow = DataSchema.make_input_schema(pa.schema([("x", pa.timestamp("ns"))]))
    assert only_arrow.jsonSchema is None


@pytest.mark.parametrize(
    ("components", "message"),
    [
        (["text.Txet"], r"no schema is called 'text\.Txet' \(did you mean 'text\.Text'\?\)"),
        (["text.Text", "text.Text"], "'text' is twice in text.Text; a product may have it only once"),
        (["embedding.embedding"], "no schema is called"),
    ],
)
def test_a_product_that_cannot_be_is_refused(components: list[Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        DataSchema.make_output_schema(DyffDataSchema(components=components))


def test_an_own_schema_has_a_name_and_keeps_it() -> None:
    made = register("acme.Answer", Part)
    assert Schema.of("acme.Answer") == made
    assert register("acme.Answer", Part) == made
    with pytest.raises(SpecError, match=r"another schema is called 'acme\.Answer'"):
        register("acme.Answer", Everything)
    with pytest.raises(SpecError, match="another schema"):
        register("text.Text", Part)


@pytest.mark.parametrize("name", ["responses", "spans", "metrics", "pairs", "ranking", "flips"])
def test_the_tables_of_the_path_are_as_they_are_stored(name: str) -> None:
    assert Schema.of(f"evaluand.{name}").arrow.equals(getattr(rows, name.upper()))


def test_an_embedding_has_one_length() -> None:
    schema = Schema.of(embedding.embedding(base.float32(), 3))
    assert [fault.message for fault in schema.faults([{"embedding": [1.0, 2.0]}])] == ["has 2 items, not 3"]
    with pytest.raises(SpecError, match="at least 1"):
        embedding.embedding(base.float32(), 0)


def test_functions_on_arrow_schemas() -> None:
    schema = arrow.arrow_schema(Part)
    assert arrow.subset_schema(schema, ["count"]).names == ["count"]
    with pytest.raises(SpecError, match=r"no field is called 'cuont' \(did you mean 'count'\?\)"):
        arrow.subset_schema(schema, ["cuont"])
    assert arrow.schema_docstring(schema).splitlines() == ["key : string", "    its key", "count : int32"]
    assert arrow.field_with_docstring("x", pa.int8(), docstring="d").metadata == {b"__doc__": b"d"}
    assert arrow.arrow_type(list[base.int32()]) == pa.list_(pa.int32())
    assert arrow.make_response_schema(schema).names == ["_index_", "_replication_", "responses"]
    with pytest.raises(SpecError, match="not an encoded Arrow schema"):
        arrow.decode_schema("bm8=")


def test_ids_are_refused_where_they_are_none() -> None:
    with pytest.raises(SpecError, match="'x' is not an id"):
        ids.replication_id("x", 0)
    assert ids.generate_entity_id() != ids.generate_entity_id()


# rows


def whole_row() -> dict[str, Any]:
    """A row of `Everything`."""
    return {
        "plain": 1,
        "byte": -128,
        "count": 2**64 - 1,
        "real": 1,
        "share": 0.5,
        "flag": True,
        "text": "abc",
        "raw": b"1234",
        "some": b"",
        "id": uuid.UUID(int=7),
        "day": dt.date(2026, 1, 2),
        "hour": dt.time(1, 2, 3),
        "instant": dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        "wall": dt.datetime(2026, 1, 2),
        "span": dt.timedelta(minutes=-1),
        "amount": Decimal("1.5"),
        "price": Decimal("9999.99"),
        "color": Color.BLUE,
        "word": "x",
        "number": None,
        "numbers": (1, None),
        "pair": np.array([1.0, 2.0]),
        "pair_or_none": None,
        "few": ["a"],
        "table": {"k": [{"key": "z", "count": 1}]},
        "part": {"key": "z"},
        "parts": None,
        "document": "{}",
        "class": np.int64(5),
    }


def test_right_rows_become_a_table_in_which_defaults_fill_missing_values() -> None:
    schema = Schema.of(Everything)
    table = schema.validate([whole_row()])
    assert table.schema == schema.arrow
    (row,) = table.to_pylist(maps_as_pydicts="strict")
    assert (row["color"], row["acme.com/x"], row["later"], row["maybe"]) == ("b", "d", [], None)
    assert row["instant"] == whole_row()["instant"]
    assert row["part"] == {"key": "z", "count": None}
    assert row["table"] == whole_row()["table"]
    assert schema.validate(table).equals(table)


def test_rows_in_their_json_form_are_the_same_rows() -> None:
    schema = Schema.of(Everything)
    row = json.loads(Everything.model_validate(whole_row() | {"pair": [1.0, 2.0]}).model_dump_json(by_alias=True))
    row |= {"raw": "MTIzNA==", "some": ""}
    assert schema.validate([row], json=True) == schema.validate([whole_row()])
    jsonschema.Draft202012Validator(schema.json).validate(row)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (dt.timedelta, "PT1.5H", dt.timedelta(minutes=90)),
        (dt.timedelta, "-P1DT0.5S", -dt.timedelta(days=1, seconds=0.5)),
        (dt.timedelta, "P0.5W", dt.timedelta(days=3.5)),
        (dt.datetime, "2024-01-01T00:00:00.123456000z", dt.datetime(2024, 1, 1, 0, 0, 0, 123456, dt.UTC)),
        (dt.datetime, "2024-01-01 00:00:00+00:30", dt.datetime(2023, 12, 31, 23, 30, tzinfo=dt.UTC)),
        (dt.time, "01:02:03.5", dt.time(1, 2, 3, 500_000)),
        (Decimal, "-1.5e+2", Decimal(-150)),
        (bytes, "YQ==", b"a"),
    ],
)
def test_texts_of_json_are_read_as_their_standards_say(kind: Any, text: str, value: Any) -> None:
    schema = Schema.of(create_model("M", x=(kind, ...)))
    assert schema.validate([{"x": text}], json=True).to_pylist() == [{"x": value}]


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (dt.timedelta, "P1Y", "with years or months, which have no fixed length; give days"),
        (dt.timedelta, "P1M", "with years or months, which have no fixed length; give days"),
        (dt.timedelta, "PT0.0000001S", "finer than microseconds"),
        (dt.timedelta, "PT1.5H1M", "not the text of an ISO 8601 duration"),
        (dt.timedelta, "P", "not the text of an ISO 8601 duration"),
        (dt.datetime, "2024-01-01T00:00:00.123456789+00:00", "finer than microseconds"),
        (dt.datetime, "2024-W01-1T00:00:00Z", "not the text of a datetime"),
        (dt.date, "2024-W01-1", "not the text of a date"),
        (dt.date, "20240101", "not the text of a date"),
        (dt.time, "T01:02:03", "not the text of a time"),
        (Decimal, "1_0.5", "not the text of a decimal number"),
        (Decimal, "１２", "not the text of a decimal number"),
        (Decimal, " 12 ", "not the text of a decimal number"),
        (uuid.UUID, "urn:uuid:{00000000-0000-0000-0000-000000000003}", "not the text of a UUID"),
        (bytes, "YR==", "not the text of base64"),
    ],
)
def test_texts_of_json_that_python_reads_loosely_are_faults(kind: Any, text: str, message: str) -> None:
    (fault,) = Schema.of(create_model("M", x=(kind, ...))).faults([{"x": text}], json=True)
    assert fault.message.endswith(message)


def test_defaults_fill_missing_values_also_in_json() -> None:
    day = dt.date(2026, 1, 2)
    schema = Schema.of(create_model("M", a=(dt.date, day), b=(list[str], Field(default_factory=list)), c=(int, 3)))
    for json_form in (False, True):
        assert schema.validate([{}, {"c": 4}], json=json_form).to_pylist() == [
            {"a": day, "b": [], "c": 3},
            {"a": day, "b": [], "c": 4},
        ]
    assert schema.validate(pa.table({"c": [3, 4]})).to_pylist()[1] == {"a": day, "b": [], "c": 4}


def test_rows_are_not_changed() -> None:
    row = whole_row() | {"wall": dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "numbers": [1, "x"], "part": {}}
    before = dict(row, numbers=[*row["numbers"]], part={})
    Schema.of(Everything).faults([row])
    assert {k: v for k, v in row.items() if k != "pair"} == {k: v for k, v in before.items() if k != "pair"}


def test_mappings_that_make_what_they_are_asked_for_stay_as_they_are() -> None:
    row: dict[str, int] = defaultdict(int, {"a": 1})
    schema = Schema.of(create_model("M", a=(int, ...), b=(int, ...)))
    for each in (row, Counter({"a": 1})):
        assert [fault.what for fault in schema.faults([each])] == ["missing"]
    assert dict(row) == {"a": 1}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"plain": "1"}, "plain", "is text ('1'), not an integer"),
    ({"plain": True}, "plain", "is true or false, not an integer"),
    ({"plain": 1.5}, "plain", "is a number (1.5), not an integer"),
    ({"plain": 2**63}, "plain", f"{2**63} is out of the range of int64, {-(2**63)} to {2**63 - 1}"),
    ({"plain": None}, "plain", "is null"),
    ({"byte": 128}, "byte", "128 is out of the range of int8, -128 to 127"),
    ({"count": 2}, "count", "2 is less than 3"),
    ({"real": float("nan")}, "real", "nan is not finite"),
    ({"real": 2**53 + 1}, "real", f"is an integer ({2**53 + 1}) that no float equals exactly"),
    ({"share": 1.0}, "share", "1.0 is not less than 1"),
    ({"share": float("nan")}, "share", "nan is less than 0"),
    ({"share": 1e39}, "share", "1e+39 is out of the range of float32"),
    ({"flag": 1}, "flag", "is an integer (1), not true or false"),
    ({"text": b"abc"}, "text", "is bytes, not text"),
    ({"text": "\ud800"}, "text", "contains a lone surrogate at 0, which cannot be stored"),
    ({"text": "aaaaaa"}, "text", "has 6 characters, more than 5"),
    ({"text": "b"}, "text", "'b' does not match ^a"),
    ({"raw": b"1"}, "raw", "has 1 bytes, not 4"),
    ({"some": "text"}, "some", "is text ('text'), not bytes"),
    ({"id": "x"}, "id", "is text ('x'), not a UUID"),
    ({"day": dt.datetime(2026, 1, 2)}, "day", "is a datetime, not a date"),
    ({"day": dt.date(2020, 1, 1)}, "day", "2020-01-01 is not more than 2020-01-01"),
    ({"instant": dt.datetime(2026, 1, 2)}, "instant", "2026-01-02T00:00:00 has no time zone; give one, such as +00:00"),
    ({"wall": dt.datetime(2026, 1, 2, tzinfo=dt.UTC)}, "wall", "2026-01-02T00:00:00+00:00 has a time zone; remove it"),
    ({"span": dt.timedelta(days=2)}, "span", "2 days, 0:00:00 is more than 1 day, 0:00:00"),
    ({"amount": 1.5}, "amount", "is a number (1.5), not a Decimal"),
    ({"price": Decimal("1.005")}, "price", "1.005 has 3 decimal places, more than 2"),
    ({"price": Decimal(-1)}, "price", "-1.00 is less than 0"),
    ({"color": "z"}, "color", "'z' is none of 'r', 'b'"),
    ({"number": 3}, "number", "3 is none of 1, 2"),
    ({"numbers": [1, "2"]}, "numbers[1]", "is text ('2'), not an integer"),
    ({"numbers": "12"}, "numbers", "is text ('12'), not a list"),
    ({"numbers": {1, 2}}, "numbers", "is a set, not a list"),
    ({"pair": [1.0]}, "pair", "has 1 items, not 2"),
    ({"few": []}, "few", "has 0 items, fewer than 1"),
    ({"few": ["a"] * 4}, "few", "has 4 items, more than 3"),
    ({"table": {"k": [{"key": ""}]}}, "table['k'][0].key", "has 0 characters, fewer than 1"),
    ({"table": {1: []}}, "table[1]", "the key is an integer (1), not text"),
    ({"part": []}, "part", "is a list, not an object"),
    ({"part": {"kye": "a"}}, "part.key", "is missing (there is 'kye')"),
    ({"parts": [None]}, "parts[0]", "is null"),
    ({"document": "{"}, "document", "'{' is not JSON"),
    ({"zzzz": 1}, "zzzz", "is not a field"),
]


@pytest.mark.parametrize(
    ("change", "path", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_fault_is_reported_with_row_path_and_reason(change: dict[str, Any], path: str, message: str) -> None:
    good, bad = whole_row(), whole_row() | change
    fault = Schema.of(Everything).faults([good, bad, good])[0]
    assert (fault.row, fault.path, fault.message) == (1, path, message)


def test_all_faults_of_all_rows_are_reported_in_the_order_of_the_rows() -> None:
    schema = DataSchema.make_output_schema("text.Text").to_schema()
    item = {"_response_index_": 0, "text": "a"}
    data: list[Any] = [{"_index_": i, "_replication_": "r", "responses": [item, item]} for i in range(3000)]
    data[5] = data[5] | {"responses": [item, {"_response_index_": -1, "text": None}]}
    data[2999] = {"_index_": 7, "responses": [{"_response_index_": 0, "txet": "a"}], "extra": 1}
    data[2998] = "no row"
    with pytest.raises(SchemaError) as raised:
        schema.validate(data)
    assert [str(fault) for fault in raised.value.faults] == [
        "row 5 (_index_ 5): responses[1]._response_index_: -1 is less than 0",
        "row 5 (_index_ 5): responses[1].text: is null",
        "row 2998: is text ('no row'), not an object",
        "row 2999 (_index_ 7): _replication_: is missing",
        "row 2999 (_index_ 7): extra: is not a field",
        "row 2999 (_index_ 7): responses[0].text: is missing (there is 'txet')",
        "row 2999 (_index_ 7): responses[0].txet: is not a field (did you mean 'text'?)",
    ]
    assert [(fault.row, fault.index, fault.what) for fault in raised.value.faults][:2] == [
        (5, 5, "bounds"),
        (5, 5, "null"),
    ]


def test_faults_are_all_counted_and_only_some_stored() -> None:
    schema = DataSchema.make_input_schema(Part).to_schema()
    data: list[Any] = [{"_index_": 1, "key": "", "count": "x"}] * 5000
    faults = schema.faults(data, most=2)
    sorts = [("_index_", "twice"), ("count", "type"), ("key", "length")]
    assert sorted(faults.counts.items()) == list(zip(sorts, (4999, 5000, 5000), strict=True))
    assert [(fault.row, fault.path) for fault in faults] == [
        *((0, "key"), (0, "count"), (1, "key"), (1, "count"), (1, "_index_"), (2, "_index_")),
    ]
    table = pa.table({"_index_": [1] * 5000, "key": [""] * 5000})
    assert schema.faults(table, most=0).counts == {sorts[0]: 4999, sorts[2]: 5000}
    with pytest.raises(SchemaError, match="… and 14,979 more faults") as raised:
        schema.validate(data)
    assert len(raised.value.faults) == 3000
    assert len(schema.faults(data)) == 14_999


def test_faults_of_lists_are_in_the_order_of_their_items() -> None:
    natural = Annotated[int, Field(ge=0)]
    faults = Schema.of(create_model("M", x=(list[natural], ...), y=(list[natural], ...))).faults(
        [{"x": [-1, "a", -1, "a", -1, *[0] * 6, -1], "y": [-1]}]
    )
    assert [fault.path for fault in faults] == ["x[0]", "x[1]", "x[2]", "x[3]", "x[4]", "x[11]", "y[0]"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1.005", "1.005 has 3 decimal places, more than 2"),
        ("12345", "12345 has 5 digits before the point, more than 4"),
        ("1E+5", "1E+5 has 6 digits before the point, more than 4"),
        ("-1E-999", "-1E-999 has 999 decimal places, more than 2"),
        ("NaN", "NaN is not finite"),
        ("-Infinity", "-Infinity is not finite"),
        ("1" * 50, f"{'1' * 40}… has 50 digits before the point, more than 4"),
    ],
)
def test_a_decimal_that_does_not_fit_is_reported_by_its_digits(value: str, message: str) -> None:
    schema = Schema.of(create_model("M", a=(list[Annotated[Decimal, Field(max_digits=6, decimal_places=2)]], ...)))
    assert schema.faults([{"a": [Decimal("9999.990"), Decimal(0), Decimal("1E+3")]}]) == []
    for json_form, one in ((False, Decimal(value)), (True, value)):
        (fault,) = schema.faults([{"a": [one]}], json=json_form)
        assert (fault.path, fault.message, fault.what) == ("a[0]", message, "bounds")


def test_a_decimal_of_a_table_that_does_not_fit_is_reported_by_its_digits() -> None:
    schema = Schema.of(create_model("M", x=(Decimal, Field(max_digits=6, decimal_places=2))))
    faults = schema.faults(pa.table({"x": [Decimal("1.000"), Decimal("1.005"), Decimal("12345.000")]}))
    assert [str(fault) for fault in faults] == [
        "row 1: x: 1.005 has 3 decimal places, more than 2",
        "row 2: x: 12345.000 has 5 digits before the point, more than 4",
    ]


@pytest.mark.parametrize(
    ("digits", "places", "message"),
    [
        (6, None, "it has at most 6 digits, but a column needs a fixed number of them after the point; give that too"),
        (
            20,
            None,
            "it has at most 20 digits, but a column needs a fixed number of them after the point; give that too",
        ),
        (80, 2, "it has 80 digits; give 1 to 76"),
        (6, 8, "it has 8 decimal places, more than its 6 digits"),
        (None, 40, "it has 40 decimal places, more than its 38 digits"),
    ],
)
def test_decimals_that_no_column_holds_are_refused(digits: int | None, places: int | None, message: str) -> None:
    limits = {"max_digits": digits, "decimal_places": places}
    inner = create_model("Inner", x=(Decimal, Field(**{name: n for name, n in limits.items() if n is not None})))
    with pytest.raises(SpecError) as raised:
        Schema.of(create_model("M", a=(list[inner], ...)))  # type: ignore[valid-type]
    assert str(raised.value).startswith(f"M.a[].x: Decimal: {message}")
    words = {"x-digits": digits, "x-places": places}
    part = {"type": "string", "format": "decimal"} | {word: n for word, n in words.items() if n is not None}
    with pytest.raises(SpecError) as raised:
        Schema.of({"properties": {"x": part}})
    assert message in str(raised.value)


@pytest.mark.parametrize(("digits", "places"), [(50, 2), (50, 20), (76, 76), (38, 0), (None, 20), (None, None)])
def test_as_many_digits_as_are_declared_are_stored(digits: int | None, places: int | None) -> None:
    limits = {"max_digits": digits, "decimal_places": places}
    schema = Schema.of(create_model("M", x=(Decimal, Field(**{k: n for k, n in limits.items() if n is not None}))))
    kind = schema.arrow.field("x").type
    assert (kind.precision, kind.scale) == (digits or 38, 18 if places is None else places)
    for form in FORMS.values():
        assert Schema.of(form(schema)) == schema


@pytest.mark.parametrize("size", [1, 2000])
def test_rows_of_a_dataset_have_unique_indices(size: int) -> None:
    schema = DataSchema.make_input_schema("text.Text").to_schema()
    data = [{"_index_": index, "text": "a"} for index in (*range(9, 9 + size), 9, 3, 9, 3)]
    expected = [
        f"row {size} (_index_ 9): _index_: row 0 has the same value; give each row its own",
        f"row {size + 2} (_index_ 9): _index_: row 0 has the same value; give each row its own",
        f"row {size + 3} (_index_ 3): _index_: row {size + 1} has the same value; give each row its own",
    ]
    parts = pa.concat_tables([pa.Table.from_pylist(data[:2]), pa.Table.from_pylist(data[2:])])
    for form in (data, iter(data), parts):
        faults = schema.faults(form)
        assert [str(fault) for fault in faults] == expected
        assert {fault.what for fault in faults} == {"twice"}
    assert schema.faults(data[:size]) == schema.faults([]) == []


def test_an_index_twice_is_reported_among_the_other_faults_in_the_order_of_the_rows() -> None:
    schema = DataSchema.make_input_schema("text.Text").to_schema()
    indices: list[Any] = [5, None, 5, "x", None, 5, 2**64]
    faults = schema.faults([{"_index_": index, "text": "a" if at < 5 else 1} for at, index in enumerate(indices)])
    assert [(fault.row, fault.path, fault.what) for fault in faults] == [
        (1, "_index_", "null"),
        (2, "_index_", "twice"),
        (3, "_index_", "type"),
        (4, "_index_", "null"),
        (5, "text", "type"),
        (5, "_index_", "twice"),
        (6, "_index_", "bounds"),
        (6, "text", "type"),
    ]


@pytest.mark.parametrize("more", ["_replication_", "_response_index_", "replication"])
def test_an_index_repeats_where_an_example_has_several_rows(more: str) -> None:
    schema = Schema.of(pa.schema([("_index_", pa.int64()), (more, pa.int64())]))
    assert schema.faults([{"_index_": 1, more: 0}, {"_index_": 1, more: 1}]) == []
    output = DataSchema.make_output_schema("text.Text").to_schema()
    assert output.faults([{"_index_": 1, "_replication_": each, "responses": []} for each in "ab"]) == []


def test_an_index_that_is_no_number_is_no_key() -> None:
    assert Schema.of(pa.schema([("_index_", pa.string())])).faults([{"_index_": "a"}, {"_index_": "a"}]) == []


@pytest.mark.parametrize("data", ["text", {"text": "a"}, 3, None])
def test_what_is_no_rows_is_refused(data: Any) -> None:
    with pytest.raises(SpecError, match="give rows as a list of mappings or an Arrow table"):
        Schema.of("text.Text").validate(data)


def test_no_rows_are_an_empty_table() -> None:
    schema = Schema.of(Everything)
    assert schema.validate([]).schema == schema.arrow
    assert len(schema.validate(schema.arrow.empty_table())) == 0


def test_rows_may_come_as_a_stream() -> None:
    assert len(Schema.of("text.Text").validate({"text": str(i)} for i in range(5000))) == 5000


# tables


def test_a_table_laid_out_otherwise_is_the_same_table() -> None:
    schema = Schema.of(
        create_model("M", a=(int, ...), b=(list[str], ...), c=(float | None, None), d=(dt.datetime, ...))
    )
    table = pa.table(
        {
            "d": pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("s", "Europe/Berlin")),
            "b": pa.array([["x"]], pa.large_list(pa.dictionary(pa.int8(), pa.string()))),
            "a": pa.array([1], pa.uint8()),
        }
    )
    made = schema.validate(table)
    assert made.schema == schema.arrow
    assert made.select(["a", "b", "c"]).to_pylist() == [{"a": 1, "b": ["x"], "c": None}]


def test_faults_of_a_table_are_those_of_its_rows() -> None:
    schema = DataSchema.make_output_schema(Part).to_schema()
    items = [[{"_response_index_": 0, "key": "", "count": None}], None, [None], [{"_response_index_": -1, "key": "a"}]]
    data = [{"_index_": 10 + i, "_replication_": "r", "responses": item} for i, item in enumerate(items)]
    data[3]["_replication_"] = None
    by_rows = [fault for fault in schema.faults(data) if fault.what != "missing"]
    loose = decode_schema(DataSchema.make_output_schema(Part).arrowSchema)
    table = pa.Table.from_pylist(data, loose)
    for same in (table, table.slice(0), pa.concat_tables([table.slice(0, 1), table.slice(1)])):
        assert sorted(map(str, schema.faults(same))) == sorted(map(str, by_rows))
    assert [fault.row for fault in schema.faults(table.slice(2))] == [0, 1, 1]


def test_columns_that_are_missing_unknown_or_of_another_type_are_reported_once() -> None:
    schema = Schema.of(create_model("M", a=(int, ...), b=(list[Part], ...), c=(str, ...)))
    table = pa.table({"a": ["x"] * 9, "b": [[{"key": 1, "more": 1}]] * 9, "d": [1] * 9})
    assert [str(fault) for fault in schema.faults(table)] == [
        "a: the column is string, not int64",
        "b[].key: the column is int64, not string",
        "b[].more: is not a field",
        "c: is missing",
        "d: is not a field",
    ]


def test_numbers_of_a_table_that_do_not_fit_are_reported_by_row() -> None:
    schema = Schema.of(create_model("M", a=(Int8, ...), b=(Float32, ...), c=(dict[str, UInt8], ...)))
    maps = pa.array([[("k", 1)], [("k", 1), ("l", 256)], []], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"a": [1, 200, 3], "b": [1.0, 2.0, 1e39], "c": maps})
    assert [str(fault) for fault in schema.faults(table)] == [
        "row 1: a: 200 is out of the range of int8, -128 to 127",
        "row 1: c['l']: 256 is out of the range of uint8, 0 to 255",
        "row 2: b: 1e+39 is out of the range of float32",
    ]


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "a": st.lists(st.integers(-3, 3) | st.none(), max_size=3) | st.none(),
                "b": st.none() | st.fixed_dictionaries({"key": st.sampled_from(["", "a"]), "count": st.none()}),
                "c": st.dictionaries(st.sampled_from("xy"), st.integers(-3, 3), max_size=2),
                "d": st.lists(st.none() | st.just(1.0), max_size=3) | st.none(),
            }
        ),
        max_size=5,
    )
)
def test_rows_and_the_table_of_them_have_the_same_faults(data: list[Any]) -> None:
    natural = Annotated[int, Field(ge=0)]
    pair = base.list_(float, list_size=2)
    schema = Schema.of(
        create_model("M", a=(list[natural], ...), b=(Part, ...), c=(dict[str, natural] | None, ...), d=(pair, ...))
    )
    loose = pa.schema(
        [
            ("a", pa.list_(pa.int64())),
            ("b", pa.struct([("key", pa.string()), ("count", pa.int32())])),
            ("c", pa.map_(pa.string(), pa.int64())),
            ("d", pa.list_(pa.float64())),
        ]
    )
    table = pa.Table.from_pylist([row | {"c": list(row["c"].items())} for row in data], loose)
    assert sorted(map(str, schema.faults(table))) == sorted(map(str, schema.faults(data)))


def test_a_table_written_and_read_again_holds_to_its_schema(tmp_path: Path) -> None:
    schema = Schema.of(Everything)
    pq.write_table(schema.validate([whole_row()] * 3), tmp_path / "x.parquet")
    assert Schema.of(pq.read_schema(tmp_path / "x.parquet")) == schema
    assert schema.faults(pq.read_table(tmp_path / "x.parquet")) == []


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"$ref": "#/$defs/S", "minLength": 3}, "$.x: the keyword 'minLength' is not supported"),
        ({"allOf": [{"type": "string"}], "minLength": 3}, "$.x: the keyword 'minLength' is not supported"),
        ({"anyOf": [{"type": "string"}], "oneOf": [{"type": "string"}]}, "$.x: the keyword 'oneOf' is not supported"),
    ],
)
def test_limits_next_to_a_reference_or_a_union_are_refused_and_not_dropped(part: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        Schema.of({"properties": {"x": part}, "$defs": {"S": {"type": "string"}}})
    assert message in str(raised.value)


def test_other_properties_are_refused_where_they_are_asked_for_and_a_fault_where_nothing_is_said() -> None:
    inner = {"type": "object", "properties": {"y": {"type": "string"}}}
    for others in (True, "yes"):
        with pytest.raises(SpecError) as raised:
            Schema.of({"properties": {"x": {"type": "array", "items": inner | {"additionalProperties": others}}}})
        message = f"$.x[]: allows other properties (additionalProperties: {json.dumps(others)}), which have no"
        assert str(raised.value).startswith(message)
    for said in ({}, {"additionalProperties": False}):
        schema = Schema.of({"properties": {"x": inner | said}})
        assert [fault.what for fault in schema.faults([{"x": {"y": "a", "z": 1}}])] == ["extra"]


def test_what_is_required_must_be_a_property_and_null_one_of_the_choices() -> None:
    with pytest.raises(SpecError, match="requires 'y', which is not one of its properties"):
        Schema.of({"properties": {"x": {"type": "string"}}, "required": ["x", "y"]})
    schema = Schema.of({"properties": {"x": {"type": ["string", "null"], "enum": ["a"]}}, "required": ["x"]})
    assert [fault.what for fault in schema.faults([{"x": None}, {"x": "a"}])] == ["null"]


def test_a_row_that_is_null_is_no_row() -> None:
    assert [(f.row, f.message) for f in Schema.of("text.Text").faults([{"text": "a"}, None])] == [
        (1, "is null, not an object")
    ]


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(SpecError, match="several columns called 'a'"):
        platform.DataSchema.make_input_schema(pa.schema([("a", pa.int8()), ("a", pa.int8())]))


def test_a_list_that_may_hold_nothing_holds_nothing() -> None:
    model = create_model("M", x=(Annotated[list[float], Field(max_length=0)], ...))
    assert [fault.what for fault in Schema.of(model).faults([{"x": []}, {"x": [1.0]}])] == ["length"]


def test_ids_are_made_of_texts() -> None:
    for wrong in ((None, "a"), ("0" * 32, 5)):
        with pytest.raises(TypeError, match="give text"):
            ids.namespaced_id(*wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lone surrogate"):
        ids.namespaced_id("0" * 32, "\ud800")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"type": "string", "pattern": "^(?!a)"}, "is not supported by RE2"),
        ({"type": "integer", "pattern": "a"}, "pattern does not apply to int64"),
        ({"type": "integer", "minLength": 1}, "minLength does not apply to int64"),
        ({"type": "integer", "multipleOf": 0}, "multipleOf is 0; give a number above 0"),
        ({"type": "string", "multipleOf": 2}, "multipleOf is 2; give a number above 0, for a numeric type only"),
        ({"type": "array", "items": {"type": "string"}, "minItems": "2"}, "minItems is '2'; give an integer"),
        ({"type": "string", "minLength": -1}, "minLength is -1; give an integer of at least 0"),
        (
            {"type": "string", "format": "decimal", "x-digits": 6, "x-places": -2},
            "it has -2 decimal places; give an integer",
        ),
        ({"type": "integer", "minimum": 1.5}, "1.5 is not an integer"),
        ({"type": "number", "enum": [1, "a"]}, "'a' is not a number"),
        ({"type": "string", "enum": [1, "a"]}, "the choice: is an integer (1), not text"),
        ({"type": "string", "enum": "abc"}, "enum is 'abc'; give a list of at least one value"),
        ({"type": "string", "enum": []}, "enum is []; give a list of at least one value"),
        ({"type": ["string", "null"], "enum": [None]}, "enum is []; give a list of at least one value"),
        ({"type": "integer", "format": "int8", "enum": [1000]}, "the choice: 1000 is out of the range of int8"),
        ({"type": "integer", "maximum": 1, "enum": [1, 2]}, "the choice: 2 is more than 1"),
        ({"type": "integer", "enum": [1, 1.0]}, "a choice occurs twice"),
        (
            {"type": "string", "enum": ["a", "b"], "x-enum-varnames": ["A"]},
            "has 2 choices and 1 names; give each choice one distinct name",
        ),
        ({"type": "string", "enum": ["a"], "x-enum-varnames": [1]}, "x-enum-varnames is [1]; give a list of texts"),
        ({"type": "integer", "default": "x"}, "the default: is text ('x'), not an integer"),
        ({"type": "integer", "maximum": 3, "default": 5}, "the default: 5 is more than 3"),
        ({"type": "array", "items": {"type": "integer"}, "default": [1, "x"]}, "the default[1]: is text ('x')"),
        ({"type": "string", "format": "date", "default": "2020-13-01"}, "the default: is text ('2020-13-01')"),
        (
            {"properties": {"y": {"type": "string"}}, "default": {"y": "a", "z": 1}},
            "the default.z: is not a field",
        ),
        ({"type": "integer", "minimum": 5, "maximum": 3}, "no value is between 5 and 3, its minimum and maximum"),
        ({"type": "number", "exclusiveMinimum": 3, "maximum": 3}, "no value is between 3 and 3, its exclusive minimum"),
        ({"type": "string", "minLength": 5, "maxLength": 3}, "no length is between 5 and 3"),
        ({"type": "number", "minimum": math.nan}, "the minimum: nan is not finite"),
        ({"type": "number", "exclusiveMaximum": math.inf}, "the exclusive maximum: inf is not finite"),
        ({"type": "number", "format": "float", "maximum": 1e39}, "the maximum: 1e+39 is out of the range of float32"),
        (
            {"type": "string", "format": "date-time", "formatMinimum": "2020-01-01T00:00:00"},
            "the minimum: 2020-01-01T00:00:00 has no time zone",
        ),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2**40}, "no column holds more than 2147483647"),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 2**30, "maxItems": 2**30},
            "a fixed-length list has at most 1,048,576 items",
        ),
        ({"type": "string", "format": []}, "format is []; give text"),
        ({"type": "string", "description": 5}, "description is 5; give text"),
        ({"properties": [1]}, "properties is a list; give an object: name: schema"),
        ({"properties": {5: {"type": "string"}}}, "properties is a dict; give an object: name: schema"),
        ({"properties": {"y": {"type": "string"}}, "required": 5}, "required is 5; give a list of names"),
        ({"properties": {"a": {"type": "string"}}, "required": "a"}, "required is 'a'; give a list of names"),
        ({"type": "string", "format": "decimal", "x-digits": 200, "x-places": 2}, "it has 200 digits; give 1 to 76"),
        ({"type": "string", "format": "decimal", "multipleOf": 2}, "multipleOf is 2; give a number above 0"),
    ],
)
def test_limits_that_no_value_can_satisfy_are_refused_when_declared(part: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        Schema.of({"properties": {"x": part}})
    assert "$.x: " in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"type": "string", "format": "email"}, "the format 'email' of a string cannot be validated"),
        ({"type": "integer", "format": "int128"}, "the format 'int128' of an integer cannot be validated"),
        ({"type": "number", "format": "int32"}, "the format 'int32' of a number cannot be validated"),
        ({"type": "string", "contentMediaType": "text/html"}, "contentMediaType 'text/html' cannot be validated"),
        ({"type": "string", "contentEncoding": "base32"}, "contentEncoding 'base32' of a string is not supported"),
        ({"type": "integer", "contentEncoding": "base64"}, "contentEncoding 'base64' of an int64 is not supported"),
    ],
)
def test_formats_that_cannot_be_validated_are_refused_and_not_dropped(part: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        Schema.of({"properties": {"x": part}})
    assert message in str(raised.value)


@pytest.mark.parametrize("encoded", [Base64Str, Base64Bytes, Base64UrlStr])
def test_texts_that_pydantic_decodes_are_refused(encoded: Any) -> None:
    with pytest.raises(SpecError, match=r"M\.x: .* is not supported"):
        Schema.of(create_model("M", x=(encoded, ...)))


@pytest.mark.parametrize("pattern", [r"^\w+$", r"\d", r"[\s-]", r"a\b", r"\\\D", re.compile(r"\d")])
def test_patterns_that_mean_more_to_pydantic_are_refused_with_what_to_write(pattern: Any) -> None:
    with pytest.raises(SpecError, match=r"means all of Unicode to pydantic, .*write which characters"):
        Schema.of(create_model("M", x=(str, Field(pattern=pattern))))


def test_patterns_mean_the_same_in_every_form() -> None:
    schema = Schema.of({"properties": {"x": {"type": "string", "pattern": r"^\d+$"}}, "required": ["x"]})
    assert [fault.row for fault in schema.faults([{"x": "1"}, {"x": "１"}])] == [1]
    with pytest.raises(ValueError, match="should match"):
        schema.model(x="１")
    for form in FORMS.values():
        assert Schema.of(form(schema)) == schema
    free = Schema.of(create_model("M", x=(str, Field(pattern=re.compile(r"^a\\d.$", re.IGNORECASE)))))
    assert free.faults([{"x": "A\\Dx"}]) == []


def test_a_default_that_a_function_makes_is_refused_unless_it_is_empty() -> None:
    for factory in (lambda: ["x"], set):
        with pytest.raises(SpecError, match=r"M\.x: .*which a schema cannot store; give a value as default="):
            Schema.of(create_model("M", x=(list[str], Field(default_factory=factory))))
    empty = create_model(
        "M", x=(list[str] | None, Field(default_factory=list)), y=(dict[str, int], Field(default_factory=dict))
    )
    assert Schema.of(empty).validate([{}]).to_pylist() == [{"x": [], "y": []}]


def test_the_name_that_only_writing_uses_is_refused() -> None:
    with pytest.raises(SpecError, match=r"M\.x: y: a field has one name in data; use alias="):
        Schema.of(create_model("M", x=(str, Field(serialization_alias="y"))))


def test_zones_other_than_utc_and_names_twice_in_an_object_are_refused() -> None:
    inner = pa.struct([("a", pa.int8()), ("a", pa.int16())])
    with pytest.raises(SpecError) as raised:
        Schema.of(
            pa.schema([("t", pa.timestamp("us", "Europe/Paris")), ("u", pa.timestamp("s", "+00:00")), ("s", inner)])
        )
    assert str(raised.value).splitlines() == [
        "s.a: two columns have this name",
        "t: timestamp[us, tz=Europe/Paris]: timestamps with a time zone must be UTC; cast to timestamp[us, tz=UTC]",
    ]
    with pytest.raises(SpecError, match=r"several columns called 's\.a'"):
        DataSchema.make_input_schema(pa.schema([("s", inner)]))


def test_a_key_that_a_map_of_a_table_has_twice_is_a_fault() -> None:
    schema = Schema.of(create_model("M", m=(dict[str, int], ...)))
    maps = [[("a", 1)], [], [("b", 1), ("a", 1), ("b", 2)], [("b", 1)]]
    table = pa.table({"m": pa.array(maps, pa.map_(pa.string(), pa.int64()))})
    for part, row in ((table, 2), (table.slice(1), 1)):
        assert [str(fault) for fault in schema.faults(part)] == [f"row {row}: m: the key 'b' occurs twice"]


def test_columns_of_other_layouts_hold_the_same_values() -> None:
    schema = Schema.of(create_model("M", u=(uuid.UUID, ...), t=(dt.datetime, ...), s=(str, ...), n=(UInt8, ...)))
    columns = {
        "n": pa.array([7], pa.int64()),
        "s": pa.array(["a"]).dictionary_encode(),
        "t": pa.array([1_000], pa.timestamp("ns", "UTC")),
        "u": pa.array([bytes(16)], pa.binary(16)),
    }
    (row,) = schema.validate(pa.table(columns)).to_pylist()
    assert row == {"u": uuid.UUID(int=0), "t": dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC), "s": "a", "n": 7}
    far = pa.table(columns | {"t": pa.array([10**14], pa.timestamp("s", "UTC"))})
    with pytest.raises(DataError, match="the table cannot be read: "):
        schema.validate(far)


def test_definitions_that_are_no_object_are_refused() -> None:
    with pytest.raises(SpecError, match=r"\$: \$defs is a list; give an object"):
        Schema.of({"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": []})


def test_metadata_of_arrow_are_looked_at_as_json_schemas_are() -> None:
    for words, why in (({"enum": 5}, "enum is 5"), ({"default": "a"}, "x: the default: is text ('a')")):
        with pytest.raises(SpecError) as raised:
            Schema.of(pa.schema([pa.field("x", pa.int8(), metadata={"evaluand.schema": json.dumps(words)})]))
        assert why in str(raised.value)


def test_what_a_model_declares_is_checked_against_its_types() -> None:
    class Wrong(BaseModel):
        day: dt.date = "2020"  # type: ignore[assignment]
        share: float = Field(le=math.inf)

    with pytest.raises(SpecError) as raised:
        Schema.of(Wrong)
    assert [line.split(":")[0] for line in str(raised.value).splitlines()] == ["Wrong.day", "Wrong.share"]
    with pytest.raises(SpecError, match=r"^M\.x: int: 9007199254740992\.0 is not an integer$"):
        Schema.of(create_model("M", x=(int, Field(le=2.0**53))))


def test_bounds_that_a_width_has_anyway_are_none() -> None:
    schema = Schema.of(create_model("M", x=(UInt8, Field(lt=256, gt=-1))))
    assert schema.struct.fields[0].type == Scalar("uint8")


def test_a_schema_has_a_depth_that_can_be_read() -> None:
    part: Any = {"type": "string"}
    for level in range(3000):
        part = {"type": "object", "properties": {"a": part}}
        if level == 50:
            assert Schema.of(Schema.of(part).arrow) == Schema.of(part)
        if level in (70, 2999):
            with pytest.raises(SpecError, match="is more than 60 levels deep; make it flatter"):
                Schema.of(part)


def test_references_that_double_at_every_level_are_read_once_each() -> None:
    def two(name: str) -> dict[str, Any]:
        return {"type": "object", "properties": {each: {"$ref": f"#/$defs/{name}"} for each in "ab"}}

    defs: dict[str, Any] = {f"D{i}": two(f"D{i + 1}") for i in range(40)} | {"D40": {"type": "string"}}
    with pytest.raises(SpecError, match="has more than 10,000 fields"):
        Schema.of({**two("D0"), "$defs": defs})
    assert len(list(arrow_names(Schema.of({**two("D35"), "$defs": defs}).arrow))) == 2**7 - 2


def arrow_names(fields: Any) -> Any:
    for each in fields:
        yield each.name
        yield from arrow_names(each.type.field(i) for i in range(each.type.num_fields))


def test_two_limits_of_a_sort_both_hold_or_are_refused() -> None:
    def of(kind: Any, **limits: Any) -> Schema:
        return Schema.of(create_model("M", x=(kind, Field(**limits))))

    both = of(Annotated[int, Field(multiple_of=4)], multiple_of=6)
    assert [bool(both.faults([{"x": x}])) for x in (4, 6, 12)] == [True, True, False]
    lengths = of(Annotated[list[int], Field(min_length=2)], min_length=1)
    assert [fault.what for fault in lengths.faults([{"x": [1]}])] == ["length"]
    for kind, limits in (
        (Annotated[str, Field(pattern="^a")], {"pattern": "z$"}),
        (Annotated[float, Field(multiple_of=0.5)], {"multiple_of": 0.25}),
    ):
        with pytest.raises(SpecError, match=r"M\.x: .*has the limit .* twice, .* and .*; combine them in one"):
            of(kind, **limits)


def test_multiples_of_decimals_are_exact_and_come_back_from_every_form() -> None:
    schema = Schema.of(create_model("M", x=(Decimal, Field(multiple_of=Decimal("0.05"), ge=0))))
    for form in FORMS.values():
        assert Schema.of(form(schema)) == schema
    texts = ("0.15", "0.16", "12345678901234567890.05", "12345678901234567890.01")
    faults = schema.faults([{"x": text} for text in texts], json=True)
    assert [str(fault) for fault in faults] == [
        "row 1: x: 0.160000000000000000 is not a multiple of 0.05",
        "row 3: x: 12345678901234567890.010000000000000000 is not a multiple of 0.05",
    ]


def test_choices_of_numbers_are_numbers_of_their_kind() -> None:
    schema = Schema.of({"properties": {"x": {"type": "number", "enum": [1, 2.5]}}})
    assert Schema.of(schema.model) == schema


def test_a_model_of_ones_own_has_no_reserved_names() -> None:
    with pytest.raises(SpecError, match="'_foo_' is reserved"):
        platform.DataSchema.from_model(create_model("M", y=(str, Field(alias="_foo_"))))


# Keys of outputs


def output(index: int, replication: str, *numbers: int) -> dict[str, Any]:
    items = [{"_response_index_": number, "text": "a"} for number in numbers]
    return {"_index_": index, "_replication_": replication, "responses": items}


def test_index_replication_and_response_index_occur_together_in_one_row() -> None:
    schema = DataSchema.make_output_schema("text.Text").to_schema()
    valid = [output(0, "a", 0, 0, 1), output(0, "b", 0), output(1, "a", 0), output(0, "a", 2)]
    assert schema.faults(valid) == []
    assert schema.faults(schema.validate(valid)) == []
    invalid = [*valid, output(0, "a", 3, 1), output(2, "a"), output(2, "a")]
    for data in (invalid, pa.Table.from_pylist(invalid, schema.arrow)):
        faults = schema.faults(data)
        assert [(fault.row, fault.path) for fault in faults] == [
            (4, "responses[]._response_index_"),
            (6, "_replication_"),
        ]
        assert faults.counts == {("responses[]._response_index_", "twice"): 1, ("_replication_", "twice"): 1}
        assert faults[0].message.startswith("row 0 has the same _index_, _replication_ and _response_index_ 1")


def test_flat_rows_of_responses_have_unique_keys_too() -> None:
    names = ("_index_", "_replication_", "_response_index_")
    schema = Schema.of(pa.schema(list(zip(names, (pa.int64(), pa.string(), pa.int64()), strict=True))))
    rows = [dict(zip(names, key, strict=True)) for key in ((0, "a", 0), (0, "a", 1), (1, "a", 0), (0, "a", 1))]
    assert [(fault.row, fault.path) for fault in schema.faults(rows)] == [(3, "_response_index_")]


def test_the_rows_of_a_validated_table_are_valid_again_with_maps_as_pairs() -> None:
    class Counted(BaseModel):
        words: dict[str, int] = {"a": 1}

    schema = Schema.of(Counted)
    table = schema.validate([{}])
    assert schema.validate(table.to_pylist()).equals(table)


def test_multiples_of_narrow_floats_are_those_of_their_precision() -> None:
    class Priced(BaseModel):
        price: Float32 = Field(0.1, multiple_of=0.1)

    schema = Schema.of(Priced)
    table = schema.validate([{}, {"price": 12.3}])
    assert schema.faults(table) == schema.faults(table.to_pylist()) == []
    assert [fault.row for fault in schema.faults([{"price": 12.3}, {"price": 12.35}])] == [1]
