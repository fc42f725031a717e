"""Schemas, rows and ids against recorded ones of Dyff's, where these are next to the project.

Where a case deviates from what was expected by hand, or where the documentation prints another text, that counts.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pytest
from pydantic import Field, create_model
from support.commands import Folder
from support.json_schemas import jsonschema
from support.places import VECTORS_FOLDER, missing

from evaluand.core.errors import EvaluandError
from evaluand.interop.dyff import arrow, base, ids
from evaluand.interop.dyff.embedding import embedding
from evaluand.interop.dyff.platform import DataSchema, DyffDataSchema

FOLDER = VECTORS_FOLDER / "dyff"
PLACES = {"input": DataSchema.make_input_schema, "output": DataSchema.make_output_schema}
DOCUMENTED = {"ID of the replication the item belongs to.": "ID of the replication the response belongs to."}


def cases(name: str) -> list[Any]:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else []


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    if not FOLDER.exists():
        pytest.skip(missing(FOLDER))


# schemas

UNSUPPORTED = {
    "list (untyped)": list,
    "Union[str,float]": str | float,
    "datetime": dt.datetime,
    "Literal": Literal["a", "b"],
    "Optional fixed list": Annotated[list[base.float32()], Field(min_length=2, max_length=2)] | None,
}


def annotation(declared: Any, title: str) -> Any:
    """The annotation that a case tells in words: `int32?`, a list of one, an object with fields."""
    if isinstance(declared, dict):
        return model(declared, title)
    if isinstance(declared, list):
        return list[annotation(declared[0], title)]  # type: ignore[misc]
    if declared in UNSUPPORTED:
        return UNSUPPORTED[declared]
    name = declared.rstrip("?")
    made = str if name == "string" else getattr(base, name)()
    return made | None if declared.endswith("?") else made


def model(fields: dict[str, Any], title: str, schema: dict[str, Any] | None = None) -> Any:
    docs = {name: part.get("description") for name, part in (schema or {}).get("properties", {}).items()}
    made = {}
    for number, (name, declared) in enumerate(fields.items()):
        optional = {"default": None} if isinstance(declared, str) and declared.endswith("?") else {}
        alias = {} if name.isidentifier() else {"alias": name}
        attribute = name if name.isidentifier() else f"f{number}"
        info = Field(description=docs.get(name) or ITEM_DOCS.get(name), **optional, **alias)
        made[attribute] = (annotation(declared, name.title()), info)
    return create_model(title, __base__=base.DyffSchemaBaseModel, **made)


ITEM_DOCS = {"k": "key", "n": "count"}


def source(case: dict[str, Any]) -> Any:
    spec = case["spec"]
    if "components" in spec:
        return DyffDataSchema(components=spec["components"])
    if case["name"].startswith("model embedding"):
        words = case["name"].split()
        return embedding(getattr(base, words[2])(), int(words[3]))
    if not isinstance(spec.get("fields"), dict):
        return None
    schema = spec.get("model_json_schema", {})
    return model(spec["fields"], schema.get("title", "Unsupported"), schema)


def describe_fields(fields: Any) -> list[Any]:
    return [describe(field) for field in fields]


def describe(field: pa.Field) -> dict[str, Any]:
    found: dict[str, Any] = {"name": field.name, "type": str(field.type), "nullable": field.nullable}
    doc = (field.metadata or {}).get(b"__doc__")
    if doc:
        found["doc"] = doc.decode()
    if pa.types.is_struct(field.type):
        found["fields"] = describe_fields(field.type.field(i) for i in range(field.type.num_fields))
    if pa.types.is_list(field.type):
        found["item"] = describe(field.type.value_field)
    return found


def documented(fields: list[Any]) -> list[Any]:
    return json.loads(json.dumps(fields), object_hook=lambda o: {k: DOCUMENTED.get(str(v), v) for k, v in o.items()})


def meaning(part: Any, defs: Any) -> Any:
    """A JSON Schema with its definitions in place, without titles and without what says how wide numbers are stored."""
    if isinstance(part, list):
        return [meaning(each, defs) for each in part]
    if not isinstance(part, dict):
        return DOCUMENTED.get(part, part) if isinstance(part, str) else part
    if "$ref" in part:
        found = defs[part["$ref"].removeprefix("#/$defs/")]
        part = found | {key: each for key, each in part.items() if key != "$ref"}
    drop = {"$defs", "title", "format", "contentEncoding"} | {key for key in part if key.startswith("x-")}
    if part.get("type") == "integer":
        drop |= {"maximum"} | ({"minimum"} if part.get("minimum") != 0 or part.get("format") in UNSIGNED else set())
    rest = {key: meaning(each, defs) for key, each in part.items() if key not in drop | {"properties"}}
    fields = {name: meaning(each, defs) for name, each in part.get("properties", {}).items()}
    return rest | ({"properties": fields} if fields else {})


UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SCHEMAS = [
    pytest.param(case, place, id=f"{case['name']}: {place}")
    for case in cases("schemas")
    for place in PLACES
    if source(case) is not None
]
REFUSED = ("bad ", "unsupported list (untyped)", "unsupported Union")


@pytest.mark.parametrize(("case", "place"), SCHEMAS or [(None, None)])
def test_a_recorded_schema_comes_out_as_documented(case: Any, place: str) -> None:
    recorded = case[place]
    if case["name"].startswith(REFUSED):
        with pytest.raises(EvaluandError):
            PLACES[place](source(case))
        return
    made = PLACES[place](source(case))
    schema = arrow.decode_schema(made.arrowSchema)
    verdict = (case.get("verdict") or {}).get(place)
    if isinstance(verdict, dict):
        assert [[field.name, str(field.type)] for field in schema] == verdict["expected"]
    elif "error" not in recorded:
        assert describe_fields(schema) == documented(recorded["arrow_fields"])
    if "error" not in recorded:
        ours, theirs = made.jsonSchema, recorded["json_schema"]
        assert ours is not None
        assert meaning(ours, ours.get("$defs")) == meaning(theirs, theirs.get("$defs"))
        assert made.model_dump()["dyffSchema"] == recorded["dyff_schema"]


# rows


@pytest.mark.parametrize("case", cases("rows") or [None], ids=lambda case: case and case["name"])
def test_a_recorded_row_is_taken_or_refused_as_documented(case: Any) -> None:
    assert case["schema"] == "make_output_schema(text.Text)"
    schema = DataSchema.make_output_schema("text.Text")
    faults = schema.to_schema().faults([case["row"]])
    assert ("reject" if faults else "accept") == case["documented"], faults
    valid = jsonschema.Draft202012Validator(schema.jsonSchema).is_valid(case["row"])
    assert valid is (case["documented"] == "accept")


@pytest.mark.parametrize("case", [c for c in cases("rows") if c["documented"] == "reject"] or [None], ids=str)
def test_a_recorded_row_is_refused_at_the_command_line_with_its_place(case: Any, tmp_path: Path) -> None:
    folder, schema = Folder(tmp_path), tmp_path / "schema.json"
    schema.write_text(DataSchema.make_output_schema("text.Text").model_dump_json())
    result = folder.call("schema", "validate", folder.write("in.jsonl", [case["row"]]), "--schema", schema)
    assert result.exit_code == 1
    *faults, count = result.stdout.splitlines()
    assert all(line.startswith(f"fault  {tmp_path}/in.jsonl:1") for line in faults)
    assert count.startswith(f"{len(faults)} fault{'s'[: len(faults) != 1]} in {tmp_path}/in.jsonl (1 row) against ")
    assert result.stderr == ""


@pytest.mark.parametrize("components", [["text.Text", "text.Text"], ["embedding.embedding"]], ids=str)
def test_a_recorded_product_that_is_none_is_refused_at_the_command_line(components: Any, tmp_path: Path) -> None:
    recorded = [case for case in cases("schemas") if case["spec"].get("components") == components]
    assert all("error" in case["input"] for case in recorded)
    assert recorded
    (tmp_path / "s.json").write_text(json.dumps({"components": components}))
    message = Folder(tmp_path).refused("schema", "show", tmp_path / "s.json")
    assert message.startswith(f"error: {tmp_path}/s.json: ")
    assert message.count("\n") == 1


# ids


@pytest.mark.parametrize("case", cases("ids") or [None], ids=str)
def test_a_recorded_id_is_derived(case: Any) -> None:
    def derived() -> str:
        if "namespace" in case:
            return ids.namespaced_id(case["namespace"], case["name"])
        if "evaluation" in case:
            return ids.replication_id(case["evaluation"], case["replication"])
        return ids.null_id()

    if "error" in case:
        with pytest.raises(EvaluandError):
            derived()
    else:
        assert derived() == case.get("id", derived())
