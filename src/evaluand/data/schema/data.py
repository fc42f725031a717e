"""Schemas: in any form, by name, as products, and as stored with the data they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import pyarrow as pa
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from evaluand.core import registry
from evaluand.core.errors import SpecError, nearest, with_article
from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.data.schema import keys, kinds
from evaluand.data.schema.arrow import (
    arrow_type,
    decode_schema,
    encode_schema,
    field_names,
    read_arrow,
    repeated_names,
    write_arrow,
)
from evaluand.data.schema.declared import TOO_DEEP, check_declared, check_rows
from evaluand.data.schema.faults import Faults, SchemaError
from evaluand.data.schema.json_schema import read_json_schema, write_json_schema
from evaluand.data.schema.kinds import StructType
from evaluand.data.schema.models import Model, read_annotation, read_model, write_model

GROUP = "schemas"


class Schema:
    """The schema of rows: names, types, limits, what may be null or missing, and the documentation of each field.

    A schema has three written forms, and each is read back to the same schema. Two schemas are equal if their fields
    are equal, whatever the names of their models.

    Attributes:
        struct: the type of a row.
        kind: the name of a named schema, else empty.

    Example:
        >>> schema = Schema.of("text.Text")
        >>> schema.arrow.names, schema.json["required"], list(schema.model.model_fields)
        (['text'], ['text'], ['text'])
        >>> schema.faults([{"text": "a"}, {"txet": "b"}])[0].message
        "is missing (there is 'txet')"
    """

    def __init__(self, struct: StructType, kind: str = "") -> None:
        self.struct, self.kind = struct, kind

    @classmethod
    def of(cls, schema: Any) -> Schema:
        """A schema from any of its forms.

        Args:
            schema: a pydantic model, an Arrow schema, a JSON Schema, a name, a product (`DyffDataSchema`) or a stored
                schema (`DataSchema`), each of them also as the mapping that JSON has, or a `Schema`.

        Raises:
            SpecError: it is none of these, or contains what cannot be expressed; lists every fault with path and type.
        """
        if isinstance(schema, Schema):
            return schema
        if isinstance(schema, str):
            return find(schema)
        if isinstance(schema, DyffDataSchema | DataSchema):
            return schema.to_schema()
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            return cls(_read_checked(read_model, schema, schema.__name__), schema.__dict__.get("kind") or "")
        if isinstance(schema, pa.Schema):
            return cls(_read_checked(read_arrow, schema, ""))
        if isinstance(schema, Mapping):
            stored = next((kind for name, kind in _STORED.items() if name in schema), None)
            return _read_stored(stored, schema) if stored else cls(_read_checked(read_json_schema, schema, "$"))
        raise SpecError(
            f"{with_article(type(schema).__name__)} is not a schema; give a pydantic model, an Arrow schema, a JSON "
            "Schema, a name or a product"
        )

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema; the metadata of its fields holds what Arrow types cannot express."""
        return write_arrow(self.struct)

    @property
    def json(self) -> dict[str, Any]:
        """The JSON Schema."""
        return write_json_schema(self.struct)

    @property
    def model(self) -> Model:
        """A pydantic model."""
        return write_model(self.struct)

    def validate(self, data: Any, *, json: bool = False) -> pa.Table:
        """The table of valid rows, with missing values filled by their defaults.

        A column cannot distinguish a missing value from null. So in an optional field without a default, null means
        missing. The result is valid again and stays the same, both as a table and as its rows. (Only the JSON Schema
        refuses that null in a field that may be missing but not null.)

        Rows with an `_index_` and without a field that gives an example several rows (`_replication_`,
        `_response_index_`) are a dataset, in which every `_index_` must be unique: validate them in one call.

        Args:
            data: mappings, or an Arrow table or batch. The types of a table may differ (narrower numbers, another
                order of columns), as long as its values are the same.
            json: whether the rows have the forms of JSON: times, UUIDs and decimals as text, bytes as base64.

        Raises:
            SchemaError: rows break the schema; it counts all faults and lists the first thousand of each path and
                code.
        """
        table, faults = check_rows(self.struct, data, json=json, most=_MOST_FAULTS)
        if table is None:
            raise SchemaError(faults)
        return table

    def faults(self, data: Any, *, json: bool = False, most: int | None = None) -> Faults:
        """The faults of rows, in the order of the rows; empty where all are valid.

        Args:
            data, json: as in `validate`.
            most: how many faults of each path and code to return; `counts` of the result counts all.

        Example:
            >>> faults = Schema.of("text.Text").faults([{"text": 1}] * 1000, most=1)
            >>> len(faults), faults.counts
            (1, Counter({('text', 'type'): 1000}))
        """
        return check_rows(self.struct, data, json=json, most=most)[1]

    def json_rows(self, table: pa.Table) -> Iterator[dict[str, Any]]:
        """The rows of a validated table in the forms of JSON, as `validate(…, json=True)` reads them.

        Example:
            >>> schema = Schema.of(pa.schema([("spent", pa.duration("us"))]))
            >>> list(schema.json_rows(schema.validate([{"spent": "PT1.5H"}], json=True)))
            [{'spent': 'PT5400S'}]
        """
        for batch in table.to_batches(_JSON_ROWS):
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                yield kinds.to_json(self.struct, row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.struct.fields == other.struct.fields

    def __hash__(self) -> int:
        return hash(tuple(self.struct.names))

    def __repr__(self) -> str:
        fields = ", ".join(f"{each.name}: {arrow_type(each.type)}" for each in self.struct.fields)
        return f"Schema({fields})"


def _read_checked(read: Callable[[Any], StructType], schema: Any, name: str) -> StructType:
    try:
        struct = read(schema)
    except RecursionError:
        raise SpecError(f"{name or 'the schema'}: {TOO_DEEP}") from None
    check_declared(struct, name)
    return struct


_MOST_FAULTS, _JSON_ROWS = 1000, 1024


_registered: dict[str, Schema] = {}


def register(name: str, schema: Any) -> Schema:
    """Register a schema under a name in this process; a package declares an entry point instead.

    Args:
        name: such as `acme.Ticket`.

    Raises:
        SpecError: the name is taken, or a field has a reserved name.

    Example:
        >>> _ = register("acme.Ticket", pa.schema([pa.field("ticket", pa.string(), nullable=False)]))
        >>> find("acme.Ticket")
        Schema(ticket: string)
    """
    named = Schema(Schema.of(schema).struct, name)
    _check_names(named.struct, name)
    known = _registered.get(name)
    if name in registry.names(GROUP) or (known is not None and known != named):
        raise SpecError(f"another schema is called {name!r}; choose another name")
    _registered[name] = named
    return named


def find(name: str) -> Schema:
    """The schema with that name.

    Raises:
        SpecError: the name is unknown; the message suggests the nearest.
    """
    if name in _registered:
        return _registered[name]
    known = names()
    if name not in known:
        raise SpecError(f"no schema is called {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    return Schema.of(registry.find(GROUP, name))


def names() -> list[str]:
    """The names of all installed and registered schemas, sorted."""
    return sorted({*registry.names(GROUP), *_registered})


SchemaLike: TypeAlias = "DyffDataSchema | str | type[BaseModel] | pa.Schema | Schema | Mapping[str, Any]"


def _as_component(schema: Any) -> Any:
    """The stored form of a component: a name, or the JSON Schema of a model."""
    return schema if isinstance(schema, str | Mapping) else Schema.of(schema).json


Component = Annotated[str | dict[str, Any], BeforeValidator(_as_component)]


class _StoredModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DyffDataSchema(_StoredModel):
    """A product of schemas: the fields of all of them.

    The fields of a later component come before those of an earlier one, as in Dyff.

    Attributes:
        components: names of schemas, pydantic models, or JSON Schemas; a model is stored as its JSON Schema.

    Example:
        >>> DyffDataSchema(components=["classification.Label", "text.Text"]).to_schema()
        Schema(text: string, label: string)
    """

    components: list[Component] = Field(min_length=1, description="Names of schemas, or JSON Schemas.")
    schemaVersion: Literal["0.1"] = "0.1"  # noqa: N815 - the name in stored files

    def to_schema(self) -> Schema:
        """The product.

        Raises:
            SpecError: a component is unknown, or two have a field of the same name; names both.
        """
        owners: dict[str, str] = {}
        faults = []
        parts = []
        for number, component in enumerate(self.components):
            struct, name = Schema.of(component).struct, str(component)
            if not isinstance(component, str):
                name = f"{component.get('title') or 'the schema'} (component {number + 1})"
                _check_names(struct, name)
            for field in struct.names:
                if field in owners:
                    where = f"twice in {name}" if owners[field] == name else f"in both {owners[field]} and {name}"
                    faults.append(f"the field {field!r} is {where}; a product may have it only once")
                owners.setdefault(field, name)
            parts.append(struct.fields)
        if faults:
            raise SpecError("\n".join(faults))
        return Schema(StructType(tuple(field for part in reversed(parts) for field in part), "Product"))


class DataSchema(_StoredModel):
    """A schema in three forms, as it is stored with the data it describes.

    Attributes:
        arrowSchema: the Arrow schema, its IPC form in base64, with every column nullable as Dyff writes it.
        dyffSchema: the product that it comes from, if any.
        jsonSchema: the JSON Schema, the most complete form.
    """

    arrowSchema: str  # noqa: N815 - the names in stored files
    dyffSchema: DyffDataSchema | None = None  # noqa: N815
    jsonSchema: dict[str, Any] | None = None  # noqa: N815

    @classmethod
    def from_model(cls, model: SchemaLike) -> DataSchema:
        """A pydantic model, or any other form of a schema, in all three forms.

        Example:
            >>> DataSchema.from_model("text.Text").to_schema() == Schema.of("text.Text")
            True
        """
        struct = Schema.of(model).struct
        if isinstance(model, type):
            _check_names(struct, struct.title)
        return cls._from_struct(struct, model)

    @classmethod
    def make_input_schema(cls, schema: SchemaLike) -> DataSchema:
        """A schema of inputs: its fields and `_index_`, which every input needs."""
        if isinstance(schema, pa.Schema):
            return cls._from_arrow(schema, item_schema(schema), _input_struct)
        return cls._from_struct(_input_struct(Schema.of(schema).struct), schema)

    @classmethod
    def make_output_schema(cls, schema: SchemaLike) -> DataSchema:
        """A schema of outputs: `_index_`, `_replication_`, and the list `responses`, whose items have the fields of the
        schema and `_response_index_`.
        """
        if isinstance(schema, pa.Schema):
            return cls._from_arrow(schema, response_schema(schema), _output_struct)
        return cls._from_struct(_output_struct(Schema.of(schema).struct), schema)

    @classmethod
    def _from_struct(cls, struct: StructType, source: Any) -> DataSchema:
        arrow = encode_schema(write_arrow(struct, dyff=True))
        product = DyffDataSchema(components=[source]) if isinstance(source, str) else source
        product = product if isinstance(product, DyffDataSchema) else None
        return cls(arrowSchema=arrow, dyffSchema=product, jsonSchema=write_json_schema(struct))

    @classmethod
    def _from_arrow(cls, schema: pa.Schema, full: pa.Schema, wrap: Callable[[StructType], StructType]) -> DataSchema:
        """An Arrow schema, stored unchanged, and its JSON Schema, unless some of its types exist in Arrow only."""
        keys.check_names(field_names(schema), "the Arrow schema")
        repeated = repeated_names(schema)
        if repeated:
            raise SpecError(
                f"the Arrow schema has several columns called {', '.join(map(repr, repeated))}; rename them"
            )
        try:
            struct = Schema.of(schema).struct
        except SpecError:
            return cls(arrowSchema=encode_schema(full))
        return cls(arrowSchema=encode_schema(full), jsonSchema=write_json_schema(wrap(struct)))

    def to_schema(self) -> Schema:
        """The schema, from its most complete form."""
        return Schema.of(decode_schema(self.arrowSchema) if self.jsonSchema is None else self.jsonSchema)

    def response(self) -> Schema:
        """The schema of one item of `responses`, without its `_response_index_`.

        Raises:
            SpecError: it is not a schema of outputs.

        Example:
            >>> DataSchema.make_output_schema("text.Text").response() == Schema.of("text.Text")
            True
        """
        for each in self.to_schema().struct.fields:
            if (
                each.name == keys.RESPONSES
                and isinstance(each.type, kinds.Array)
                and isinstance(each.type.item, StructType)
            ):
                item = each.type.item
                return Schema(StructType(tuple(_without(item, keys.RESPONSE_INDEX_FIELD)), item.title))
        raise SpecError(f"a schema of outputs has a list {keys.RESPONSES!r}; create one with make_output_schema")


_STORED: Mapping[str, type[DataSchema | DyffDataSchema]] = {"arrowSchema": DataSchema, "components": DyffDataSchema}
"""The field by which a mapping is a stored schema or a product, and no JSON Schema."""


def _read_stored(kind: type[DataSchema | DyffDataSchema], value: Mapping[str, Any]) -> Schema:
    try:
        return kind.model_validate(dict(value)).to_schema()
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    raise SpecError("\n".join(lines))


def arrow_schema(schema: SchemaLike, *, metadata: Mapping[str, str] | None = None) -> pa.Schema:
    """The Arrow schema of any form of a schema, with every field nullable as Dyff writes it."""
    arrow = write_arrow(Schema.of(schema).struct, dyff=True)
    return arrow.with_metadata({**(arrow.metadata or {}), **metadata}) if metadata else arrow


def annotation_type(annotation: Any) -> pa.DataType:
    """The Arrow type of an annotation of a model's field.

    Example:
        >>> annotation_type(list[str] | None)
        ListType(list<item: string>)
    """
    return arrow_type(read_annotation(annotation)[0], dyff=True)


def item_schema(schema: pa.Schema) -> pa.Schema:
    """An Arrow schema with `_index_` before its fields."""
    return _with_key(schema, keys.INDEX)


def response_item_schema(schema: pa.Schema) -> pa.Schema:
    """An Arrow schema with `_response_index_` before its fields."""
    return _with_key(schema, RESPONSE_INDEX)


def response_schema(schema: pa.Schema) -> pa.Schema:
    """The Arrow schema of outputs whose responses have a schema."""
    item = pa.struct([*response_item_schema(schema)])
    return pa.schema([(keys.INDEX, pa.int64()), (keys.REPLICATION, pa.string()), (keys.RESPONSES, pa.list_(item))])


def _with_key(schema: pa.Schema, key: str) -> pa.Schema:
    if key in schema.names and schema.field(key).type != pa.int64():
        raise SpecError(f"{key} is {schema.field(key).type}; it must be int64")
    return pa.schema([pa.field(key, pa.int64()), *(each for each in schema if each.name != key)], schema.metadata)


def _input_struct(struct: StructType) -> StructType:
    _check_names(struct, struct.title or "the schema")
    return StructType((keys.INDEX_FIELD, *_without(struct, keys.INDEX_FIELD)), f"{struct.title}Item")


def _output_struct(struct: StructType) -> StructType:
    _check_names(struct, struct.title or "the schema")
    own = _without(struct, keys.RESPONSE_INDEX_FIELD)
    item = StructType((keys.RESPONSE_INDEX_FIELD, *own), f"{struct.title}ResponseItem")
    responses = kinds.Field(keys.RESPONSES, kinds.Array(item), doc="Inference responses")
    return StructType((keys.INDEX_FIELD, keys.REPLICATION_FIELD, responses), "Response")


def _check_names(struct: StructType, where: str) -> None:
    keys.check_names(field_names(write_arrow(struct)), where)


def _without(struct: StructType, key: kinds.Field) -> list[kinds.Field]:
    """The fields except the key."""
    for field in struct.fields:
        if field.name == key.name and arrow_type(field.type) != arrow_type(key.type):
            raise SpecError(f"{key.name} is {arrow_type(field.type)}; it must be {arrow_type(key.type)}")
    return [field for field in struct.fields if field.name != key.name]
