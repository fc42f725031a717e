"""Descriptions of datasets: Croissant and Data Packages, read and written."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, example, given, settings, strategies as st

from evaluand.core.errors import DataError, EvaluandError, SpecError
from evaluand.data import DataNote, publish
from evaluand.data.dataset import Dataset
from evaluand.data.sources import DataSource, open_file

PEOPLE = "person,name,born,height,active\n1,Ann,1990-01-02,1.5,true\n2,Bob,,2,false\n"


def values(source: DataSource) -> list[dict[str, Any]]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


# Croissant


def croissant(folder: Path, fields: list[dict[str, Any]], files: list[dict[str, Any]], **more: Any) -> Path:
    record_set = {"@type": "cr:RecordSet", "@id": "people", "field": fields} | more
    value = {
        "@context": {"@vocab": "https://schema.org/", "cr": "http://mlcommons.org/croissant/"},
        "@type": "sc:Dataset",
        "name": "people",
        "distribution": files,
        "recordSet": [record_set],
    }
    return write(folder / "croissant.json", value)


def field(name: str, kind: Any, origin: str = "people.csv", **source: Any) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"people/{name}",
        "dataType": kind,
        "source": {"fileObject": {"@id": origin}, "extract": {"column": name}} | source,
    }


def file_object(**more: Any) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": "people.csv",
        "contentUrl": "data/people.csv",
        "encodingFormat": "text/csv",
    } | more


def test_the_fields_of_a_record_set_are_columns_of_the_declared_types(tmp_path: Path) -> None:
    path = write(tmp_path / "data" / "people.csv", PEOPLE)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    fields = [
        field("person", "sc:Text"),
        field("height", "sc:Float"),
        field("born", "sc:Text"),
        field("name", ["sc:Text", "cr:Label"]),
    ]
    described = croissant(tmp_path, fields, [file_object(sha256=digest)], key={"@id": "people/person"})
    source = open_file(described)
    assert values(source) == [
        {"person": "1", "height": 1.5, "born": "1990-01-02", "name": "Ann"},
        {"person": "2", "height": 2.0, "born": None, "name": "Bob"},
    ]
    data = Dataset.from_file(described)
    assert (data.roles.id, data.roles.expected, data.roles.input) == ("person", "name", ("height", "born"))
    assert Dataset.from_file(described, input="name").roles.id is None


def test_a_cell_that_is_not_of_its_declared_type_is_named(tmp_path: Path) -> None:
    write(tmp_path / "data" / "people.csv", PEOPLE)
    described = croissant(tmp_path, [field("height", "sc:Integer"), field("name", "sc:Boolean")], [file_object()])
    with pytest.raises(DataError) as refused:
        open_file(described)
    assert [fault.message for fault in refused.value.faults] == [
        "'1.5' is not of the declared type int64",
        "'Ann' is not of the declared type bool",
        "'Bob' is not of the declared type bool",
    ]
    assert refused.value.faults[0].where.endswith(":2:height")


def test_a_file_other_than_the_described_one_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "data" / "people.csv", PEOPLE)
    for algorithm in ("sha256", "md5"):
        described = croissant(tmp_path, [field("name", "sc:Text")], [file_object(**{algorithm: "0" * 32})])
        with pytest.raises(
            DataError, match=f"{algorithm} is [0-9a-f]+, but 000.* in the description; restore the file"
        ):
            open_file(described)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("../secret.csv", "outside the folder of the description"),
        ("/etc/passwd", "outside the folder of the description"),
        ("a/../../secret.csv", "outside the folder of the description"),
        ("link.csv", "outside the folder of the description"),
        ("missing.csv", "does not exist"),
        ("https://example.org/x/people.csv", "nothing is downloaded; save it as"),
    ],
)
def test_files_are_only_read_below_the_folder(tmp_path: Path, place: str, message: str) -> None:
    folder = tmp_path / "folder"
    write(tmp_path / "secret.csv", "name\nsecret\n")
    folder.mkdir()
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    described = croissant(folder, [field("name", "sc:Text")], [file_object(contentUrl=place)])
    with pytest.raises(DataError, match=message):
        open_file(described)


def test_a_path_with_backslashes_leads_to_one_with_slashes(tmp_path: Path) -> None:
    write(tmp_path / "data" / "people.csv", PEOPLE)
    described = croissant(tmp_path, [field("name", "sc:Text")], [file_object(contentUrl="data\\people.csv")])
    with pytest.raises(DataError, match=r"does not exist; write it with /, as in data/people\.csv"):
        open_file(described)


def test_a_file_that_was_downloaded_is_found_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "people.csv", PEOPLE)
    described = croissant(
        tmp_path, [field("name", "sc:Text")], [file_object(contentUrl="https://example.org/people.csv?v=1")]
    )
    assert values(open_file(described)) == [{"name": "Ann"}, {"name": "Bob"}]


def test_the_files_of_a_set_are_one_table_whose_names_may_be_a_column(tmp_path: Path) -> None:
    for name, number in (("test", 3), ("train", 1)):
        (tmp_path / "data").mkdir(exist_ok=True)
        pq.write_table(pa.table({"x": [number, number + 1]}), tmp_path / "data" / f"{name}.parquet")
    source = {"fileSet": {"@id": "parts"}}
    fields = [
        {"@id": "people/x", "dataType": "sc:Integer", "source": {**source, "extract": {"column": "x"}}},
        {
            "@id": "people/split",
            "dataType": "sc:Text",
            "source": {
                **source,
                "extract": {"fileProperty": "filename"},
                "transform": {"regex": r"^(train|test)\.parquet$"},
            },
        },
    ]
    files = [
        {
            "@type": "cr:FileSet",
            "@id": "parts",
            "includes": "data/*.parquet",
            "encodingFormat": "application/x-parquet",
        }
    ]
    assert values(open_file(croissant(tmp_path, fields, files))) == [
        {"x": 3, "split": "test"},
        {"x": 4, "split": "test"},
        {"x": 1, "split": "train"},
        {"x": 2, "split": "train"},
    ]


def test_patterns_of_a_description_take_linear_time_and_are_checked(tmp_path: Path) -> None:
    write(tmp_path / "data" / "people.csv", f"name\n{'a' * 5000}b\nxé-ü\n")
    fields = [field("name", "sc:Text", transform={"regex": pattern}) for pattern in ("(a+)+$", "(z)|-(.+)", "(a")]
    described = croissant(tmp_path, fields[:1], [file_object()])
    assert values(open_file(described)) == [{"name": "a" * 5000 + "b"}, {"name": "xé-ü"}]
    assert values(open_file(croissant(tmp_path, fields[1:2], [file_object()])))[1] == {"name": "ü"}
    with pytest.raises(DataError, match=r"croissant.json: the field 'people/name': regex: '\(a' is not a pattern"):
        open_file(croissant(tmp_path, fields[2:], [file_object()]))


def test_json_documents_are_read_by_path(tmp_path: Path) -> None:
    write(tmp_path / "data" / "people.csv", {"rows": [{"a": 1, "b": ["x"]}, {"a": 2, "b": ["y"]}]})
    fields = [
        field("n", "sc:Integer", extract={"jsonPath": "$.rows[*].a"}),
        field("t", "sc:Text", extract={"jsonPath": "$.rows[*].b[0]"}),
    ]
    described = croissant(tmp_path, fields, [file_object(encodingFormat="application/json")])
    assert values(open_file(described)) == [{"n": 1, "t": "x"}, {"n": 2, "t": "y"}]
    fields[1]["source"]["extract"] = {"jsonPath": "$.rows[0].b[*]"}
    described = croissant(tmp_path, fields, [file_object(encodingFormat="application/json")])
    with pytest.raises(DataError, match="select different numbers of values: n 2, t 1"):
        open_file(described)


def key_field(parent: str, key: str, kind: str, column: str, **more: Any) -> dict[str, Any]:
    """A sub-field as the Hugging Face Hub describes a key of a column of objects."""
    return {
        "@type": "cr:Field",
        "@id": f"people/{parent}/{key}",
        "dataType": kind,
        "source": {"fileSet": {"@id": "parts"}, "extract": {"column": column}, "transform": {"jsonPath": key}},
    } | more


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_sub_fields_are_keys_of_a_column_of_objects(tmp_path: Path, form: str) -> None:
    rows = [
        {"q": "Who?", "answers": {"text": ["Ann", "Bob"], "answer_start": [3, 9]}},
        {"q": "When?", "answers": {"text": [], "answer_start": []}},
    ]
    (tmp_path / "parts").mkdir()
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "parts" / "0.parquet")
    elif form == "jsonl":
        write(tmp_path / "parts" / "0.jsonl", "\n".join(map(json.dumps, rows)))
    else:
        cells = (json.dumps(row["answers"]).replace('"', '""') for row in rows)
        write(tmp_path / "parts" / "0.csv", "q,answers\n" + "".join(f'Q,"{cell}"\n' for cell in cells))
    kinds = {"parquet": "application/x-parquet", "jsonl": "application/jsonlines", "csv": "text/csv"}
    files = [{"@type": "cr:FileSet", "@id": "parts", "includes": f"parts/*.{form}", "encodingFormat": kinds[form]}]
    answers = {
        "@type": "cr:Field",
        "@id": "people/answers",
        "subField": [
            key_field("answers", "text", "sc:Text", "answers", repeated=True),
            key_field("answers", "answer_start", "sc:Integer", "answers", isArray=True, arrayShape="-1"),
        ],
    }
    question = {
        "@id": "people/q",
        "dataType": "sc:Text",
        "source": {"fileSet": {"@id": "parts"}, "extract": {"column": "q"}},
    }
    described = croissant(tmp_path, [question, answers], files)
    data = Dataset.from_data(str(described), input="q", expected="answers.text[0]")
    assert [example.expected for example in data] == ["Ann", None]
    starts = Dataset.from_data(str(described), input="q", expected="answers.answer_start")
    assert [example.expected for example in starts] == [[3, 9], []]
    answers["subField"].append(key_field("answers", "score", "sc:Float", "scores"))
    with pytest.warns(DataNote, match=r"answers .its sub-fields come from answers, scores, and not from one column"):
        open_file(croissant(tmp_path, [question, answers], files))


def test_fields_that_cannot_be_read_are_left_out_with_a_note(tmp_path: Path) -> None:
    write(tmp_path / "data" / "people.csv", PEOPLE)
    fields = [
        field("name", "sc:Text"),
        {"@id": "people/parts", "subField": []},
        field("born", "sc:Date", transform={"format": "%Y"}),
        field("picture", "sc:ImageObject", extract={"fileProperty": "content"}),
    ]
    with pytest.warns(DataNote, match="parts .it has no file.*; born .it is transformed by format.; picture"):
        assert values(open_file(croissant(tmp_path, fields, [file_object()]))) == [{"name": "Ann"}, {"name": "Bob"}]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"field": [5]}, "people/field[0] must be an object, not a number"),
        (
            {"field": field("x", "sc:Text", extract=["x"])},
            "the field 'people/x': extract must be an object of one text",
        ),
        ({"field": field("x", "sc:Text", extract={"column": 0})}, "the field 'people/x': extract must be an object"),
        (
            {"field": field("x", "sc:Text", transform="a")},
            "the field 'people/x': transform must be an object, not a text",
        ),
        ({"field": field("x", "sc:Text", transform={"separator": ""})}, "separator must be a text that is not empty"),
        ({"field": {"@id": "x", "subField": [1]}}, "the field 'x': subField[0] must be an object, not a number"),
        ({"field": [field("x", "sc:Text")] * 2}, "its description has several fields called 'x'"),
        ({"data": "[1"}, "data of 'people' is a text that is not JSON"),
    ],
)
def test_a_record_set_with_a_part_of_another_type_is_refused_with_its_place(
    tmp_path: Path, part: dict[str, Any], message: str
) -> None:
    write(tmp_path / "data" / "people.csv", "x\n1\n")
    with pytest.raises(DataError, match=re.escape(message)):
        open_file(croissant(tmp_path, [], [file_object()], **part))


def test_of_several_record_sets_the_one_with_rows_is_read_or_one_is_chosen(tmp_path: Path) -> None:
    write(tmp_path / "data" / "people.csv", PEOPLE)
    path = croissant(tmp_path, [field("name", "sc:Text")], [file_object()])
    value = json.loads(path.read_text())
    labels = {"@id": "labels", "dataType": "sc:Enumeration", "data": [{"labels/n": 1}], "field": []}
    write(path, value | {"recordSet": [*value["recordSet"], labels]})
    assert values(open_file(path)) == [{"name": "Ann"}, {"name": "Bob"}]
    assert values(open_file(f"{path}#labels")) == [{"n": 1}]
    with pytest.raises(SpecError, match=r"no record set is called 'poeple' \(did you mean 'people'\?\)"):
        open_file(f"{path}#poeple")
    write(path, value | {"recordSet": [*value["recordSet"], labels | {"dataType": "sc:Text"}]})
    with pytest.raises(SpecError, match=re.escape(f"choose one, as in {path}#people")):
        open_file(path)


# Data Packages


def package(folder: Path, schema: Any = None, **resource: Any) -> Path:
    value: dict[str, Any] = {"name": "people", "path": "people.csv"} | resource
    if schema is not None:
        value["schema"] = schema
    return write(folder / "datapackage.json", {"name": "a", "resources": [value]})


def test_the_columns_of_a_resource_have_the_types_of_its_schema(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", PEOPLE)
    digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    kinds = {"person": "string", "name": "string", "born": "date", "height": "number", "active": "boolean"}
    schema = {"fields": [{"name": name, "type": kind} for name, kind in kinds.items()], "primaryKey": "person"}
    data = Dataset.from_file(package(tmp_path, schema, hash=digest))
    assert data.roles.id == "person"
    assert [example.input for example in data] == [
        {"name": "Ann", "born": dt.date(1990, 1, 2), "height": 1.5, "active": True},
        {"name": "Bob", "born": None, "height": 2.0, "active": False},
    ]


@pytest.mark.parametrize(
    ("field", "cells", "expected"),
    [
        ({"type": "integer", "groupChar": ","}, ["1,000", "-2"], [1000, -2]),
        ({"type": "integer", "bareNumber": False}, ["€ 95", "12 %"], [95, 12]),
        ({"type": "number", "decimalChar": ",", "groupChar": "."}, ["1.234,5"], [1234.5]),
        ({"type": "number"}, ["NaN", "1e3"], [pytest.approx(float("nan"), nan_ok=True), 1000.0]),
        ({"type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]}, ["ja", "nein"], [True, False]),
        ({"type": "date", "format": "%d.%m.%Y"}, ["02.01.2026"], [dt.date(2026, 1, 2)]),
        ({"type": "datetime"}, ["2026-01-02T03:04:05Z"], [dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)]),
        ({"type": "datetime"}, ["2026-01-02T03:04:05"], [dt.datetime(2026, 1, 2, 3, 4, 5)]),
        ({"type": "year"}, ["2026"], [2026]),
        ({"type": "object"}, ['{"b": 1, "a": []}'], ['{"a":[],"b":1}']),
        ({"type": "string", "missingValues": ["-"]}, ["-", ""], [None, ""]),
        ({"type": "string"}, ["", "x"], [None, "x"]),
    ],
)
def test_cells_are_read_as_a_table_schema_says(
    tmp_path: Path, field: dict[str, Any], cells: list[str], expected: list[Any]
) -> None:
    quoted = "".join('"{}",0\n'.format(cell.replace('"', '""')) for cell in cells)
    write(tmp_path / "people.csv", f"x,y\n{quoted}")
    source = open_file(package(tmp_path, {"fields": [{"name": "x", **field}, {"name": "y", "type": "integer"}]}))
    assert [row["x"] for row in values(source)] == expected


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"required": True}, "3:x: is null"),
        ({"unique": True}, "5:x: '2' occurs twice, but must be unique"),
        ({"minimum": 2}, "2:x: 1 is less than 2"),
        ({"maximum": "1"}, "4:x: 2 is more than 1"),
        ({"exclusiveMaximum": 2}, "4:x: 2 is not less than 2"),
        ({"enum": [1, "3"]}, "4:x: 2 is none of 1, 3"),
        ({"pattern": "[13]"}, "constraints of the field 'x': pattern does not apply to int64; correct it"),
        ({"maximum": 2, "required": True, "minimum": -1}, "3:x: is null"),
    ],
)
def test_cells_that_break_a_constraint_are_named(tmp_path: Path, constraints: dict[str, Any], message: str) -> None:
    write(tmp_path / "people.csv", "x,y\n1,0\n,0\n2,0\n2,0\n")
    schema = {"fields": [{"name": "x", "type": "integer", "constraints": constraints}, {"name": "y"}]}
    with pytest.raises(DataError) as refused:
        open_file(package(tmp_path, schema))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("field", "cells", "message"),
    [
        (
            {"type": "date", "constraints": {"minimum": "2026-01-02"}},
            ["2026-01-01"],
            "2026-01-01 is less than 2026-01-02",
        ),
        ({"type": "date", "format": "%d.%m.%Y", "constraints": {"enum": ["02.01.2026"]}}, ["03.01.2026"], "is none of"),
        ({"type": "string", "constraints": {"maxLength": 2}}, ["abc"], "has 3 characters, more than 2"),
        ({"type": "string", "constraints": {"pattern": "a|b"}}, ["ab"], "'ab' does not match ^(?:a|b)$"),
        ({"type": "boolean", "constraints": {"enum": [True]}}, ["false"], "False is none of True"),
        ({"type": "object", "constraints": {"required": True}}, [""], "is null"),
        ({"type": "number", "constraints": {"unique": True}}, ["1", "1.0"], "'1.0' occurs twice, but must be unique"),
    ],
)
def test_constraints_of_each_type_are_checked(
    tmp_path: Path, field: dict[str, Any], cells: list[str], message: str
) -> None:
    write(tmp_path / "people.csv", "x,y\n" + "".join(f"{cell},0\n" for cell in cells))
    with pytest.raises(DataError) as refused:
        open_file(package(tmp_path, {"fields": [{"name": "x", **field}, {"name": "y"}]}))
    assert message in str(refused.value)


def test_a_pattern_of_a_constraint_takes_linear_time_and_is_checked(tmp_path: Path) -> None:
    write(tmp_path / "people.csv", f"x,y\n{'a' * 5000}b,0\n")
    for pattern, message in (
        ("(a+)+", "a… does not match"),
        ("(a", "field 'x': the pattern .* is not supported by RE2"),
    ):
        schema = {"fields": [{"name": "x", "type": "string", "constraints": {"pattern": pattern}}, {"name": "y"}]}
        with pytest.raises(DataError, match=message):
            open_file(package(tmp_path, schema))


def test_dialects_and_encodings_are_read_as_declared(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes("name^age\ncafé^1\n".encode("latin-1"))
    described = package(tmp_path, dialect={"delimiter": "^"}, encoding="iso-8859-1")
    assert values(open_file(described)) == [{"name": "café", "age": 1}]
    with pytest.raises(DataError, match='its dialect has quoteChar: "\'", which cannot be read; convert the file'):
        open_file(package(tmp_path, dialect={"delimiter": "^", "quoteChar": "'"}))
    with pytest.raises(DataError, match="the declared encoding 'klingon' does not fit"):
        open_file(package(tmp_path, encoding="klingon"))


def test_data_may_be_in_the_description(tmp_path: Path) -> None:
    for data in ([["a", "b"], [1, "x"]], [{"a": 1, "b": "x"}]):
        path = write(tmp_path / "datapackage.json", {"resources": [{"name": "one", "data": data}]})
        assert values(open_file(path)) == [{"a": 1, "b": "x"}]


def test_of_several_resources_one_is_chosen(tmp_path: Path) -> None:
    write(tmp_path / "people.csv", PEOPLE)
    one = {"name": "one", "path": "people.csv"}
    path = write(tmp_path / "datapackage.json", {"resources": [one, {"name": "two", "data": [{"a": 1}]}]})
    with pytest.raises(SpecError, match=re.escape(f"there are the resources one, two; choose one, as in {path}#one")):
        open_file(path)
    assert values(open_file(f"{path}#two")) == [{"a": 1}]
    with pytest.raises(SpecError, match="no resource is called 'twoo'"):
        open_file(f"{path}#twoo")


def test_types_without_a_column_of_their_own_are_read_as_text_with_a_note(tmp_path: Path) -> None:
    write(tmp_path / "people.csv", 'where,when\n"1,2",10:00\n')
    schema = {"fields": [{"name": "where", "type": "geopoint"}, {"name": "when", "type": "time"}]}
    with pytest.warns(DataNote, match=r"where \(geopoint\) is read as text; when \(time\) is read as text"):
        assert values(open_file(package(tmp_path, schema))) == [{"where": "1,2", "when": "10:00"}]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"fields": [{"name": "x"}, 5]}, "fields[1] must be an object, not a number"),
        ({"fields": [{"type": "integer"}]}, "fields[0] has no name; give it that of a column"),
        ({"fields": [{"name": "x"}, {"name": "x"}]}, "its description has several fields called 'x'"),
        ({"fields": [], "primaryKey": [{}]}, "primaryKey must be a text or a list of texts, not an object"),
        ({"fields": [{"name": "x"}], "missingValues": "-"}, "missingValues must be a list of texts, not a text"),
        ({"fields": [{"name": "x", "missingValues": None}]}, "x: missingValues must be a list of texts, not null"),
        (
            {"fields": [{"name": "x", "type": "boolean", "trueValues": [1]}]},
            "fields[0]: trueValues must be a text or a list of texts, not",
        ),
        ({"fields": [{"name": "x", "constraints": [1]}]}, "fields[0]: constraints must be an object, not a list"),
        (
            {"fields": [{"name": "x", "constraints": {"enum": 1}}]},
            "field 'x': enum is 1; give a list",
        ),
        (
            {"fields": [{"name": "x", "constraints": {"enum": [[]]}}]},
            "constraints of the field 'x': a list is no value of a field",
        ),
        (
            {"fields": [{"name": "x", "constraints": {"minLength": 1.5}}]},
            "minLength is 1.5; give an integer",
        ),
        (
            {"fields": [{"name": "x", "type": "integer", "constraints": {"minimum": "a"}}, {"name": "y"}]},
            "constraints of the field 'x': 'a' is not of its type int64; correct it",
        ),
        (
            {"fields": [{"name": "x", "type": "integer", "constraints": {"minLength": 2}}, {"name": "y"}]},
            "constraints of the field 'x': minLength does not apply to int64; correct it",
        ),
    ],
)
def test_a_schema_with_a_part_of_another_type_is_refused_with_its_place(
    tmp_path: Path, schema: dict[str, Any], message: str
) -> None:
    write(tmp_path / "people.csv", "x,y\n1,0\n")
    with pytest.raises(DataError, match=re.escape(message)):
        open_file(package(tmp_path, schema))


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ({"path": []}, "has neither a path nor data"),
        ({"path": "http://[::1"}, "its file is at 'http://[::1', which is no URL"),
        ({"path": "a\0b"}, "which is outside the folder of the description"),
        ({"path": "x" * 300}, "does not exist"),
        ({"dialect": [1]}, "its dialect must be an object, not a list"),
    ],
)
def test_a_resource_without_a_file_is_refused(tmp_path: Path, resource: dict[str, Any], message: str) -> None:
    write(tmp_path / "people.csv", "x,y\n1,0\n")
    with pytest.raises(DataError, match=re.escape(message)):
        open_file(package(tmp_path, **resource))


def test_one_text_in_place_of_a_list_is_that_text(tmp_path: Path) -> None:
    write(tmp_path / "people.csv", "x,y\nyes,0\nno,0\n")
    field = {"name": "x", "type": "boolean", "trueValues": "yes", "falseValues": ["no"]}
    assert [row["x"] for row in values(open_file(package(tmp_path, {"fields": [field, {"name": "y"}]})))] == [
        True,
        False,
    ]


@pytest.mark.parametrize("value", [{"resources": []}, {"resources": [{}]}, {"resources": [{"name": "a", "data": 5}]}])
def test_a_package_without_rows_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(EvaluandError):
        open_file(write(tmp_path / "datapackage.json", value))


# Writing

ROWS: list[dict[str, Any]] = [
    {
        "key": "k1",
        "text": 'a, "b"\nc',
        "n": 1,
        "x": 0.1,
        "ok": True,
        "day": dt.date(2026, 1, 2),
        "when": dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC),
        "tags": ["p", "q"],
        "label": "yes",
        "sex": "f",
        "w": 2.5,
    },
    dict.fromkeys(("n", "x", "ok", "day", "when", "label"))
    | {"key": "k2", "text": "", "tags": [], "sex": "m", "w": 1.0},
]
ROLES: dict[str, Any] = {
    "input": ["text", "n", "x", "ok", "day", "when", "tags"],
    "expected": "label",
    "attributes": ["sex"],
    "weight": "w",
    "id": "key",
}


@pytest.mark.parametrize("form", ["croissant", "datapackage"])
def test_a_dataset_that_was_published_is_read_again(tmp_path: Path, form: Any) -> None:
    data = Dataset.from_rows(ROWS, name="people", **ROLES)
    again = Dataset.from_file(publish(data, tmp_path, form, license="CC-BY-4.0", url="https://example.org"))
    assert again.roles == data.roles
    assert again.digest == data.digest


@pytest.mark.parametrize("form", ["croissant", "datapackage"])
def test_indices_and_several_targets_are_published(tmp_path: Path, form: Any) -> None:
    rows = [{"_index_": 7, "q": "a", "y": 1, "z": "u"}, {"_index_": 3, "q": "b", "y": 2, "z": "v"}]
    data = Dataset.from_rows(rows, name="people", input="q", expected={"first one": "y", "b:c": "z"})
    again = Dataset.from_file(publish(data, tmp_path, form))
    assert (again.roles, list(again.indices)) == (data.roles, [3, 7])
    assert again.digest == data.digest


def test_what_cannot_be_represented_is_reported(tmp_path: Path) -> None:
    rows = [
        {"input": {"a": 1}, "mixed": 1, "raw": b"x", "span": dt.timedelta(seconds=1)},
        {"input": {}, "mixed": "a", "raw": None, "span": None},
    ]
    data = Dataset.from_arrow(
        pa.table({"raw": [b"x", None], "span": pa.array([dt.timedelta(seconds=1), None])}), name="hard"
    )
    with pytest.warns(DataNote, match=r"raw has bytes, written as text in base64; span is duration\[us\], written as"):
        publish(data, tmp_path / "bytes", "datapackage")
    with pytest.warns(DataNote, match="mixed has objects or values of mixed types, written as JSON text"):
        again = publish(Dataset.from_rows(rows, name="hard", input=["input", "mixed"]), tmp_path, "datapackage")
    assert values(open_file(again)) == [{"input": '{"a":1}', "mixed": "1"}, {"input": "{}", "mixed": '"a"'}]


def test_a_published_dataset_needs_a_name_and_a_known_form(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"input": 1}])
    with pytest.raises(SpecError, match="the dataset has no name; give name"):
        publish(data, tmp_path)
    with pytest.raises(SpecError, match="form must be croissant or datapackage, not 'dcat'"):
        publish(data, tmp_path, "dcat", name="x")  # type: ignore[arg-type]


def test_a_text_with_a_null_byte_is_published_as_croissant_alone(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"input": "a"}, {"input": "b\0"}], name="bytes")
    with pytest.raises(DataError, match="a text of the column 'input' has a null byte, which CSV cannot hold"):
        publish(data, tmp_path, "datapackage")
    assert Dataset.from_file(publish(data, tmp_path)).digest == data.digest


cells = st.one_of(
    st.lists(
        st.one_of(st.none(), st.text(max_size=6).filter(lambda text: max(text, default="a") < "\ud800")), min_size=1
    ),
    st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), min_size=1),
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1),
    st.lists(st.one_of(st.none(), st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1))), min_size=1),
    st.lists(st.one_of(st.none(), st.lists(st.integers(-5, 5), max_size=3)), min_size=1),
)


@settings(max_examples=25, deadline=None)
@example(column=["\r", "a\rb", "\r\n"], form="datapackage")
@example(column=[[]], form="croissant")
@example(column=[[], None], form="datapackage")
@given(column=cells, form=st.sampled_from(["croissant", "datapackage"]))
def test_any_column_is_published_and_read_again(column: list[Any], form: Any, tmp_path_factory: Any) -> None:
    assume(form == "croissant" or not any(isinstance(value, str) and "\0" in value for value in column))
    data = Dataset.from_rows([{"input": value, "n": 1} for value in column], name="any", input=["input", "n"])
    assert Dataset.from_file(publish(data, tmp_path_factory.mktemp("published"), form)).digest == data.digest
