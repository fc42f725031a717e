"""Schemas by name, products of them, and schemas that are stored with what they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import pyarrow as pa
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evaluand.core import registry
from evaluand.core.errors import SpecError, with_article
from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.data.schema import keys, kinds
from evaluand.data.schema.arrow import (
    arrow_type,
    decode_schema,
    encode_schema,
    field_names,
    named_twice,
    read_arrow,
    write_arrow,
)
from evaluand.data.schema.declared import TOO_DEEP, check_declared
from evaluand.data.schema.faults import Faults, SchemaError
from evaluand.data.schema.json_schema import read_json_schema, write_json_schema
from evaluand.data.schema.kinds import StructType
from evaluand.data.schema.models import Model, read_annotation, read_model, write_model
from evaluand.data.schema.rows import check_rows

GROUP = "schemas"


class Schema:
    """What rows are: names, types, limits, what may be null or missing, and what everything means.

    One schema has three written forms, and each is read back to the same schema. Two schemas are equal where their
    fields are, whatever their models are called.

    Example:
        >>> schema = Schema.of("text.Text")
        >>> schema.arrow.names, schema.json["required"], list(schema.model.model_fields)
        (['text'], ['text'], ['text'])
        >>> schema.faults([{"text": "a"}, {"txet": "b"}])[0].message
        "is missing (there is 'txet')"
    """

    def __init__(self, record: StructType, kind: str = "") -> None:
        self.record, self.kind = record, kind

    @classmethod
    def of(cls, given: Any) -> Schema:
        """A schema from any of its forms.

        Args:
            given: a pydantic model, an Arrow schema, a JSON Schema, a name, a product (`DyffDataSchema`), a stored
                schema (`DataSchema`), or a schema.

        Raises:
            SpecError: it is none of these, or says what cannot be expressed: all of it, with path and type.
        """
        if isinstance(given, Schema):
            return given
        if isinstance(given, str):
            return find(given)
        if isinstance(given, DyffDataSchema | DataSchema):
            return given.to_schema()
        if isinstance(given, type) and issubclass(given, BaseModel):
            return cls(_declared(read_model, given, given.__name__), given.__dict__.get("kind") or "")
        if isinstance(given, pa.Schema):
            return cls(_declared(read_arrow, given, ""))
        if isinstance(given, Mapping):
            return cls(_declared(read_json_schema, given, "$"))
        raise SpecError(
            f"{with_article(type(given).__name__)} is no schema; give a pydantic model, an Arrow schema, a JSON "
            "Schema, a name or a product"
        )

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema; what its types cannot say stands in the metadata of its fields."""
        return write_arrow(self.record)

    @property
    def json(self) -> dict[str, Any]:
        """The JSON Schema."""
        return write_json_schema(self.record)

    @property
    def model(self) -> Model:
        """A pydantic model."""
        return write_model(self.record)

    def validate(self, data: Any, *, json: bool = False) -> pa.Table:
        """The table that rows make which hold to the schema; missing values are filled with their defaults.

        A column cannot tell a missing value from null. So where a field may be missing and has no default, null says
        that it is: what comes out holds to the schema again and comes out the same, as a table and as its rows. (The
        JSON Schema cannot say so of a field that may be missing and not null, and refuses the null there.)

        Rows that have an `_index_`, and nothing by which one example may have several rows (`_replication_`,
        `_response_index_`), are a dataset, in which no two have the same: give them all at once.

        Args:
            data: mappings, or an Arrow table or batch. A table may be laid out otherwise (narrower numbers, another
                order of columns), if its values are the same.
            json: the rows are as JSON has them: times, UUIDs and decimals as text, bytes as base64.

        Raises:
            SchemaError: rows break the schema; all faults are counted, and the first thousand of each path and sort
                told.
        """
        table, faults = check_rows(self.record, data, json=json, most=_MOST_FAULTS)
        if table is None:
            raise SchemaError(faults)
        return table

    def faults(self, data: Any, *, json: bool = False, most: int | None = None) -> Faults:
        """What is wrong with rows, in their order; nothing where they hold to the schema.

        Args:
            data: as in `validate`.
            json: as in `validate`.
            most: how many faults to tell of each path and sort; `counts` of what is returned counts all.

        Example:
            >>> faults = Schema.of("text.Text").faults([{"text": 1}] * 1000, most=1)
            >>> len(faults), faults.counts
            (1, Counter({('text', 'type'): 1000}))
        """
        return check_rows(self.record, data, json=json, most=most)[1]

    def json_rows(self, table: pa.Table) -> Iterator[dict[str, Any]]:
        """The rows of a table that `validate` made as JSON has them, for `validate(…, json=True)` to read.

        Example:
            >>> schema = Schema.of(pa.schema([("spent", pa.duration("us"))]))
            >>> list(schema.json_rows(schema.validate([{"spent": "PT1.5H"}], json=True)))
            [{'spent': 'PT5400S'}]
        """
        for batch in table.to_batches(_JSON_ROWS):
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                yield kinds.json_value(self.record, row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.record.fields == other.record.fields

    def __hash__(self) -> int:
        return hash(tuple(self.record.names))

    def __repr__(self) -> str:
        fields = ", ".join(f"{each.name}: {arrow_type(each.type)}" for each in self.record.fields)
        return f"Schema({fields})"


def _declared(read: Callable[[Any], StructType], given: Any, name: str) -> StructType:
    try:
        record = read(given)
    except RecursionError:
        raise SpecError(f"{name or 'the schema'}: {TOO_DEEP}") from None
    check_declared(record, name)
    return record


_MOST_FAULTS, _JSON_ROWS = 1000, 1024


_registered: dict[str, Schema] = {}


def register(name: str, schema: Any) -> Schema:
    """Gives a schema of your own a name for as long as the process runs; a package declares an entry point instead.

    Args:
        name: such as `acme.Ticket`.
        schema: any form of a schema.

    Raises:
        SpecError: the name is taken, or a field has a reserved name.

    Example:
        >>> _ = register("acme.Ticket", pa.schema([pa.field("ticket", pa.string(), nullable=False)]))
        >>> find("acme.Ticket")
        Schema(ticket: string)
    """
    made = Schema(Schema.of(schema).record, name)
    _check_names(made.record, name)
    known = _registered.get(name)
    if name in registry.names(GROUP) or (known is not None and known != made):
        raise SpecError(f"a schema is called {name!r} already; give yours another name")
    _registered[name] = made
    return made


def find(name: str) -> Schema:
    """The schema of a name.

    Raises:
        SpecError: none has that name; the message names the nearest.
    """
    if name in _registered:
        return _registered[name]
    known = names()
    if name not in known:
        raise SpecError(f"no schema is called {name!r}{registry.nearest(name, known)}; known: {', '.join(known)}")
    return Schema.of(registry.find(GROUP, name))


def names() -> list[str]:
    """The names of all schemas there are, sorted."""
    return sorted({*registry.names(GROUP), *_registered})


Source: TypeAlias = "DyffDataSchema | str | type[BaseModel] | pa.Schema | Schema | Mapping[str, Any]"


def _component(given: Any) -> Any:
    """A component as it is stored: a name, or the JSON Schema of a model."""
    if isinstance(given, str | Mapping):
        return given
    return Schema.of(given).json


Component = Annotated[str | dict[str, Any], BeforeValidator(_component)]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DyffDataSchema(_Stored):
    """A product of schemas: all the fields of all of them.

    The fields of a component that is named later come before those of an earlier one, as Dyff has it.

    Attributes:
        components: names of schemas, pydantic models, or JSON Schemas; a model is kept as its JSON Schema.

    Example:
        >>> DyffDataSchema(components=["classification.Label", "text.Text"]).to_schema()
        Schema(text: string, label: string)
    """

    components: list[Component] = Field(min_length=1, description="Names of schemas, or JSON Schemas.")
    schemaVersion: Literal["0.1"] = "0.1"  # noqa: N815 - the name in stored files

    def to_schema(self) -> Schema:
        """The product.

        Raises:
            SpecError: a component is not known, or two have a field of the same name; names both.
        """
        owners: dict[str, str] = {}
        twice = []
        parts = []
        for number, component in enumerate(self.components):
            record, name = Schema.of(component).record, _name_of(component, number)
            if not isinstance(component, str):
                _check_names(record, name)
            for field in record.names:
                if field in owners:
                    where = f"twice in {name}" if owners[field] == name else f"in both {owners[field]} and {name}"
                    twice.append(f"the field {field!r} is {where}; a product has each once")
                owners.setdefault(field, name)
            parts.append(record.fields)
        if twice:
            raise SpecError("\n".join(twice))
        return Schema(StructType(tuple(field for part in reversed(parts) for field in part), "Product"))


def _name_of(component: str | Mapping[str, Any], number: int) -> str:
    if isinstance(component, str):
        return component
    return f"{component.get('title') or 'the schema'} (component {number + 1})"


class DataSchema(_Stored):
    """A schema as it is stored with what it describes: in three forms.

    Attributes:
        arrowSchema: the Arrow schema, base64 of its IPC form. Every column may be null in it, as Dyff writes it.
        dyffSchema: the product it was made of, if it was.
        jsonSchema: the JSON Schema, which says everything.
    """

    arrowSchema: str  # noqa: N815 - the names in stored files
    dyffSchema: DyffDataSchema | None = None  # noqa: N815
    jsonSchema: dict[str, Any] | None = None  # noqa: N815

    @classmethod
    def from_model(cls, model: Source) -> DataSchema:
        """A pydantic model, or any other form of a schema, in all three forms.

        Example:
            >>> DataSchema.from_model("text.Text").to_schema() == Schema.of("text.Text")
            True
        """
        record = Schema.of(model).record
        if isinstance(model, type):
            _check_names(record, record.title)
        return cls._of(record, model)

    @classmethod
    def make_input_schema(cls, schema: Source) -> DataSchema:
        """A schema with the field that every input needs: `_index_`."""
        if isinstance(schema, pa.Schema):
            return cls._of_arrow(schema, item_schema(schema), _input_record)
        return cls._of(_input_record(Schema.of(schema).record), schema)

    @classmethod
    def make_output_schema(cls, schema: Source) -> DataSchema:
        """The schema of outputs: `_index_`, `_replication_`, and `responses`, a list of what is given, each with its
        `_response_index_`.
        """
        if isinstance(schema, pa.Schema):
            return cls._of_arrow(schema, response_schema(schema), _output_record)
        return cls._of(_output_record(Schema.of(schema).record), schema)

    @classmethod
    def _of(cls, record: StructType, source: Any) -> DataSchema:
        arrow = encode_schema(write_arrow(record, dyff=True))
        return cls(arrowSchema=arrow, dyffSchema=_product(source), jsonSchema=write_json_schema(record))

    @classmethod
    def _of_arrow(cls, own: pa.Schema, whole: pa.Schema, wrap: Callable[[StructType], StructType]) -> DataSchema:
        """An Arrow schema stays as it was given; what only Arrow has is in no JSON Schema."""
        keys.check_names(field_names(own), "the Arrow schema")
        twice = named_twice(own)
        if twice:
            raise SpecError(f"the Arrow schema has several columns called {', '.join(map(repr, twice))}; rename them")
        try:
            record = Schema.of(own).record
        except SpecError:
            return cls(arrowSchema=encode_schema(whole))
        return cls(arrowSchema=encode_schema(whole), jsonSchema=write_json_schema(wrap(record)))

    def to_schema(self) -> Schema:
        """The schema, from the form that says most."""
        return Schema.of(decode_schema(self.arrowSchema) if self.jsonSchema is None else self.jsonSchema)

    def response(self) -> Schema:
        """The schema of one item of `responses`, without its `_response_index_`.

        Raises:
            SpecError: it is no schema of outputs.

        Example:
            >>> DataSchema.make_output_schema("text.Text").response() == Schema.of("text.Text")
            True
        """
        for each in self.to_schema().record.fields:
            if (
                each.name == keys.RESPONSES
                and isinstance(each.type, kinds.Array)
                and isinstance(each.type.item, StructType)
            ):
                item = each.type.item
                return Schema(StructType(tuple(_without(item, keys.RESPONSE_INDEX_FIELD)), item.title))
        raise SpecError(f"a schema of outputs has a list {keys.RESPONSES!r}; make one with make_output_schema")


def arrow_schema(schema: Source, *, metadata: Mapping[str, str] | None = None) -> pa.Schema:
    """The Arrow schema of any form of a schema, with every field nullable as Dyff writes it."""
    made = write_arrow(Schema.of(schema).record, dyff=True)
    return made.with_metadata({**(made.metadata or {}), **metadata}) if metadata else made


def annotation_type(annotation: Any) -> pa.DataType:
    """The Arrow type of an annotation of a model's field.

    Example:
        >>> annotation_type(list[str] | None)
        ListType(list<item: string>)
    """
    return arrow_type(read_annotation(annotation)[0], dyff=True)


def item_schema(schema: pa.Schema) -> pa.Schema:
    """An Arrow schema with `_index_` before its fields."""
    return _with(schema, keys.INDEX)


def response_item_schema(schema: pa.Schema) -> pa.Schema:
    """An Arrow schema with `_response_index_` before its fields."""
    return _with(schema, RESPONSE_INDEX)


def response_schema(schema: pa.Schema) -> pa.Schema:
    """The Arrow schema of outputs whose responses are of a schema."""
    item = pa.struct([*response_item_schema(schema)])
    return pa.schema([(keys.INDEX, pa.int64()), (keys.REPLICATION, pa.string()), (keys.RESPONSES, pa.list_(item))])


def _with(schema: pa.Schema, key: str) -> pa.Schema:
    if key in schema.names and schema.field(key).type != pa.int64():
        raise SpecError(f"{key} is {schema.field(key).type}; it must be int64")
    return pa.schema([pa.field(key, pa.int64()), *(each for each in schema if each.name != key)], schema.metadata)


def _input_record(record: StructType) -> StructType:
    _check_names(record, record.title or "the schema")
    return StructType((keys.INDEX_FIELD, *_without(record, keys.INDEX_FIELD)), f"{record.title}Item")


def _output_record(record: StructType) -> StructType:
    _check_names(record, record.title or "the schema")
    own = _without(record, keys.RESPONSE_INDEX_FIELD)
    item = StructType((keys.RESPONSE_INDEX_FIELD, *own), f"{record.title}ResponseItem")
    return StructType((keys.INDEX_FIELD, keys.REPLICATION_FIELD, keys.responses_field(item)), "Response")


def _check_names(record: StructType, where: str) -> None:
    keys.check_names(field_names(write_arrow(record)), where)


def _without(record: StructType, key: kinds.Field) -> list[kinds.Field]:
    """The fields of a record but the key, which it may only have in its own type."""
    for field in record.fields:
        if field.name == key.name and arrow_type(field.type) != arrow_type(key.type):
            raise SpecError(f"{key.name} is {arrow_type(field.type)}; it must be {arrow_type(key.type)}")
    return [field for field in record.fields if field.name != key.name]


def _product(source: Any) -> DyffDataSchema | None:
    if isinstance(source, str):
        return DyffDataSchema(components=[source])
    return source if isinstance(source, DyffDataSchema) else None
