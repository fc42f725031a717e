"""Adapters: what each kind makes of rows and of whole batches, what it refuses and in which words."""

from __future__ import annotations

import copy
import json
import os
import signal
import threading
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, strategies as st
from support.forks import in_fork

from evaluand.core import identity, limited_patterns
from evaluand.core.errors import DataError
from evaluand.data.adapters.base.adapter import Adapter, Counts, Pipeline, Row, create_adapter
from evaluand.data.adapters.base.columns import read_rows
from evaluand.data.adapters.base.options import AbsentField, AdapterError, AdapterSpecError, WrongArguments, WrongType
from evaluand.data.adapters.base.template import LooksLikePath
from evaluand.store import tables as rows

RENAME = {"kind": "Rename", "configuration": {"x": "y"}}
UPLOAD = {"kind": "FileUpload", "configuration": {"field": "$.t"}}


def spec(kind: str, configuration: Any = None) -> dict[str, Any]:
    return {"kind": kind, "configuration": configuration}


def made(kind: str, configuration: Any, *given: Any) -> list[Row]:
    return list(create_adapter(spec(kind, configuration))(given))


def refused(kind: str, configuration: Any, *given: Any) -> str:
    """What is said of rows that an adapter cannot transform."""
    adapter = create_adapter(spec(kind, configuration))
    with pytest.raises(AdapterError) as raised:
        list(adapter(given))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def wrong(given: Any) -> str:
    """What is said of a spec that no pipeline can be made of."""
    with pytest.raises(AdapterSpecError) as raised:
        Pipeline.of(given)
    return str(raised.value)


def computed(steps: Any, row: Any) -> Any:
    (new,) = made("TransformJSON", {"made": {"$compute": steps}}, row)
    return new["made"]


def test_an_adapter_stays_what_it_was_made_of() -> None:
    given = {"n": 2, "prompt": "$.text"}
    pipeline = Pipeline([spec("TransformJSON", given)])
    [adapter], row, batch = pipeline.adapters, {"text": "a"}, pa.RecordBatch.from_pylist([{"text": "a"}])
    adapter.configuration["n"] = given["n"] = 9
    adapter.spec["configuration"]["n"] = 9
    assert pipeline.spec == [spec("TransformJSON", {"n": 2, "prompt": "$.text"})]
    assert pipeline.apply(row) == pipeline.adapt_batch(batch).to_pylist() == [{"n": 2, "prompt": "a"}]  # type: ignore[union-attr]
    with pytest.raises(AttributeError):
        adapter.configuration = {"n": 9}  # type: ignore[misc]


# Rename, Drop, Select


def test_fields_swap_their_names() -> None:
    assert made("Rename", {"a": "b", "b": "a"}, {"a": 1, "b": 2}) == [{"b": 1, "a": 2}]


def test_names_move_up_all_at_once() -> None:
    assert made("Rename", {"a": "b", "b": "c"}, {"a": 1, "b": 2}) == [{"b": 1, "c": 2}]


def test_renamed_fields_come_last_in_the_order_of_the_configuration() -> None:
    rows = [{"a": 1, "b": 2, "c": 3, "d": 4}]
    for names in ({"c": "y", "a": "z"}, {"c": "a", "a": "c"}):
        pipeline = Pipeline([spec("Rename", names)])
        expected = ["b", "d", *names.values()]
        assert list(next(pipeline(rows))) == list(next(pipeline(row for row in rows))) == expected


def test_a_kind_of_ones_own_does_not_inherit_how_its_base_adapts_several_rows() -> None:
    class Shouting(create_adapter(spec("Rename", {"a": "b"})).__class__):  # type: ignore[misc]
        kind = "Shouting"

        def adapt(self, row: dict[str, Any]) -> list[dict[str, Any]]:
            return [{name: value.upper() for name, value in row.items()}]

    pipeline, rows = Pipeline([Shouting({"a": "b"})]), [{"a": "x"}, {"a": "y"}]
    assert list(pipeline(rows)) == [{"a": "X"}, {"a": "Y"}]
    assert pipeline.adapt_batch(pa.RecordBatch.from_pylist(rows)) is None


@pytest.mark.parametrize("on_error", ["abort", "skip", "default"])
def test_rows_of_a_list_and_of_a_stream_become_the_same(on_error: str) -> None:
    steps = [
        spec("ExplodeCollections", {"collections": ["c"]}),
        spec("Rename", {"c": "d", "n": "m"}),
        spec("Map", {"collections": ["l"], "adapter": [spec("Rename", {"x": "y"}), spec("Drop", {"fields": ["z"]})]}),
        spec("Select", {"fields": ["l", "d", "m"]}),
    ]
    rows: list[Any] = [{"c": [i, i + 1], "n": i, "l": [{"x": k, "z": 0} for k in range(i % 3)]} for i in range(150)]
    for place, wrong in ((70, {"c": 3}), (71, [1]), (149, {"c": [1], "n": 1, "m": 2, "l": []})):
        rows[place] = wrong
    default = {"default": {"m": 0}} if on_error == "default" else {}
    results = []
    for stream in (rows, (row for row in rows)):
        adapted = Pipeline.of({"adapters": steps, "onError": on_error, **default})(stream)
        made: list[Any] = []
        try:
            made.extend(adapted)
        except AdapterError as error:
            made.append(str(error))
        results.append((made, adapted.counts))
    assert results[0] == results[1]
    assert results[0][1].read == (71 if on_error == "abort" else 150)


def test_no_field_is_overwritten_by_a_renamed_one() -> None:
    assert refused("Rename", {"a": "b"}, {"a": 1, "b": 2}).endswith(
        "'a' cannot be renamed to 'b': the row has a field of that name; rename or drop that too"
    )


def test_two_fields_cannot_get_one_name() -> None:
    assert wrong(spec("Rename", {"a": "c", "b": "c"})) == "Rename: several fields would be called 'c'"


def test_dropping_what_is_not_there_is_no_fault() -> None:
    assert made("Drop", {"fields": ["a", "nope", "a"]}, {"a": 1, "b": 2}) == [{"b": 2}]


def test_selected_fields_come_in_the_order_of_the_selection() -> None:
    assert list(made("Select", {"fields": ["b", "a"]}, {"a": 1, "b": 2, "c": 3})[0]) == ["b", "a"]


def test_selecting_nothing_leaves_empty_rows() -> None:
    assert made("Select", {"fields": []}, {"a": 1}, {}) == [{}, {}]


@pytest.mark.parametrize(
    ("kind", "configuration"),
    [
        ("Rename", {"text": "prompt"}),
        ("Select", {"fields": ["text"]}),
        ("ExplodeCollections", {"collections": ["text"]}),
        ("EmbedIndex", {"collections": ["text"], "index": {"i": None}}),
        ("FlattenHierarchy", {"fields": ["text"]}),
        ("Map", {"collections": ["text"], "adapter": RENAME}),
    ],
)
def test_a_missing_field_is_reported_with_the_nearest_present_one(kind: str, configuration: Any) -> None:
    error = refused(kind, configuration, {"_index_": 7, "txet": 1})
    assert error == f"_index_ 7: {kind}: there is no field 'text' (did you mean 'txet'?)"


# ExplodeCollections, EmbedIndex


def test_an_empty_list_gives_no_row() -> None:
    assert made("ExplodeCollections", {"collections": ["a"]}, {"a": []}, {"a": [1]}) == [{"a": 1}]


def test_three_lists_and_two_indexes_are_exploded_together() -> None:
    configuration = {"collections": ["a", "b", "c"], "index": {"i": None, "rank": "$.r[*]"}}
    row = {"a": [1, 2], "b": ["x", "y"], "c": [[], [0]], "r": [9, 8]}
    assert made("ExplodeCollections", configuration, row) == [
        {"a": 1, "b": "x", "c": [], "r": [9, 8], "i": 0, "rank": 9},
        {"a": 2, "b": "y", "c": [0], "r": [9, 8], "i": 1, "rank": 8},
    ]


def test_a_collection_can_be_exploded_and_number_the_rows_too() -> None:
    configuration = {"collections": ["a"], "index": {"rank": "$.a[*].meta.rank"}}
    row = {"a": [{"meta": {"rank": 1}}, {"meta": {"rank": 0}}]}
    assert [new["rank"] for new in made("ExplodeCollections", configuration, row)] == [1, 0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"a": [1], "b": []}, "the collections differ in length: a has 1, b has 0"),
        ({"a": None, "b": []}, "a is null, not a list"),
        ({"a": [1], "b": "x"}, "b is a text, not a list"),
        ({"a": {"k": 1}, "b": [1]}, "a is an object, not a list"),
    ],
)
@pytest.mark.parametrize("kind", ["ExplodeCollections", "EmbedIndex"])
def test_lists_that_do_not_belong_together_are_refused(kind: str, row: Row, message: str) -> None:
    assert refused(kind, {"collections": ["a", "b"]}, row) == f"row 0: {kind}: {message}"


@pytest.mark.parametrize("path", ["$.r[*]", "$.r", "$.nope[*]"])
def test_an_index_must_have_a_value_for_each_element(path: str) -> None:
    error = refused("ExplodeCollections", {"collections": ["a"], "index": {"i": path}}, {"a": [1, 2, 3], "r": [7]})
    assert (
        error
        == f"row 0: ExplodeCollections: index i: {path} gives {int('nope' not in path)} values, not 3, one per element"
    )


def test_an_index_takes_the_name_of_no_field() -> None:
    error = refused("ExplodeCollections", {"collections": ["a"], "index": {"b": None}}, {"a": [1], "b": 1})
    assert error.endswith("the index 'b' has the name of an existing field; rename it")
    error = refused("EmbedIndex", {"collections": ["a"], "index": {"b": None}}, {"a": [{}, {"b": 1}]})
    assert error.endswith("the index 'b' has the name of a field of an element of a; rename it")


def test_several_collections_are_numbered_alike() -> None:
    configuration = {"collections": ["a", "b"], "index": {"i": None, "r": "$.r[*]"}}
    row = {"a": [{}, {"x": 1}], "b": [{"y": 2}, {}], "r": ["p", "q"]}
    assert made("EmbedIndex", configuration, row) == [
        {
            "a": [{"i": 0, "r": "p"}, {"x": 1, "i": 1, "r": "q"}],
            "b": [{"y": 2, "i": 0, "r": "p"}, {"i": 1, "r": "q"}],
            "r": ["p", "q"],
        }
    ]


def test_only_objects_can_be_numbered() -> None:
    error = refused("EmbedIndex", {"collections": ["a"], "index": {"i": None}}, {"a": [{}, 5]})
    assert error == "row 0: EmbedIndex: a[1] is a number, not an object"


# FlattenHierarchy


@pytest.mark.parametrize(
    ("configuration", "flat"),
    [
        (None, {"a.b.c": 1, "a.e": {}, "l": [{"x": 1}], "n": None, "o": {}}),
        ({"addPrefix": False}, {"c": 1, "e": {}, "l": [{"x": 1}], "n": None, "o": {}}),
        ({"depth": 0}, {"a": {"b": {"c": 1}, "e": {}}, "l": [{"x": 1}], "n": None, "o": {}}),
        ({"depth": 1}, {"a.b": {"c": 1}, "a.e": {}, "l": [{"x": 1}], "n": None, "o": {}}),
        ({"depth": 9}, {"a.b.c": 1, "a.e": {}, "l": [{"x": 1}], "n": None, "o": {}}),
        ({"fields": ["l"]}, {"a": {"b": {"c": 1}, "e": {}}, "l": [{"x": 1}], "n": None, "o": {}}),
        ({"fields": [], "depth": None}, {"a.b.c": 1, "a.e": {}, "l": [{"x": 1}], "n": None, "o": {}}),
    ],
)
def test_nested_objects_become_fields(configuration: Any, flat: Row) -> None:
    row = {"a": {"b": {"c": 1}, "e": {}}, "l": [{"x": 1}], "n": None, "o": {}}
    assert made("FlattenHierarchy", configuration, row) == [flat]


@pytest.mark.parametrize("row", [{"a.b": 1, "a": {"b": 2}}, {"a": {"b": 2}, "a.b": 1}])
def test_two_leaves_of_one_name_are_refused(row: Row) -> None:
    assert "two fields would be called 'a.b'" in refused("FlattenHierarchy", None, row)


# Map and nested pipelines


def test_a_mapped_adapter_wraps_plain_elements() -> None:
    adapter = spec("TransformJSON", {"text": "$"})
    assert made("Map", {"collections": ["r"], "adapter": adapter}, {"r": ["a", None]}) == [
        {"r": [{"text": "a"}, {"text": None}]}
    ]


def test_lists_within_lists_are_mapped() -> None:
    inner = spec("Map", {"collections": ["e"], "adapter": RENAME})
    row = {"r": [{"e": [{"x": 1}]}, {"e": []}]}
    assert made("Map", {"collections": ["r"], "adapter": inner}, row) == [{"r": [{"e": [{"y": 1}]}, {"e": []}]}]


@pytest.mark.parametrize("wrapped", [lambda specs: specs, lambda specs: spec("Pipeline", specs)])
def test_several_adapters_are_mapped_in_turn(wrapped: Any) -> None:
    adapters = wrapped([RENAME, spec("Drop", {"fields": ["z"]})])
    assert made("Map", {"collections": ["r"], "adapter": adapters}, {"r": [{"x": 1, "z": 2}]}) == [{"r": [{"y": 1}]}]


def test_mapping_no_collection_changes_nothing() -> None:
    assert made("Map", {"collections": [], "adapter": RENAME}, {"r": [5]}) == [{"r": [5]}]


def test_a_fault_within_a_list_is_reported_with_all_places() -> None:
    pipeline = Pipeline([spec("Drop", {"fields": ["q"]}), spec("Map", {"collections": ["r"], "adapter": [RENAME] * 2})])
    with pytest.raises(AbsentField) as raised:
        list(pipeline([{"_index_": 3, "r": []}, {"_index_": 4, "r": [{"x": 1}, {"y": 1}]}]))
    assert str(raised.value) == "_index_ 4: Map (step 2 of 2): r[0]: Rename (step 2 of 2): there is no field 'x'"


@pytest.mark.parametrize("nested", [UPLOAD, [UPLOAD], spec("Pipeline", [spec("Pipeline", [UPLOAD])])])
def test_an_upload_is_the_last_thing_done_and_to_no_element(nested: Any) -> None:
    assert wrong(spec("Map", {"collections": ["r"], "adapter": nested})).startswith("Map: FileUpload prepares requests")
    outer = nested if isinstance(nested, dict) else spec("Pipeline", nested)
    assert wrong([outer, RENAME]).endswith("(step 1 of 2) must be the last adapter of a pipeline; move it to the end")
    assert Pipeline.of([RENAME, outer]).last


def test_only_the_outermost_pipeline_says_what_becomes_of_failed_rows() -> None:
    inner = {"adapters": [RENAME], "onError": "skip"}
    assert wrong(spec("Pipeline", inner)) == "Pipeline: only the outermost pipeline has onError; leave it out here"
    assert wrong(spec("Map", {"collections": [], "adapter": inner})).startswith("Map: only the outermost pipeline")


# TransformJSON


def test_texts_and_keys_are_escaped_by_a_second_dollar() -> None:
    assert made("TransformJSON", {"$$k": "$$v", "$$": "$$", "a": "x$.y"}, {}) == [{"$k": "$v", "$": "$", "a": "x$.y"}]


def test_a_template_may_be_any_structure() -> None:
    row = {"a": [1, {"b": None}]}
    template = {"l": ["$.a[0]", {"deep": ["$.a[1].b", True, 1.0, None]}], "e": {}, "all": "$"}
    (new,) = made("TransformJSON", template, row)
    assert new == {"l": [1, {"deep": [None, True, 1.0, None]}], "e": {}, "all": row}


def test_a_quoted_key_may_follow_a_dot() -> None:
    assert made("TransformJSON", {"r": "$.'a/b'.\"c d\""}, {"a/b": {"c d": 1}}) == [{"r": 1}]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("$.a.b", "x: $.a.b: $.a is a number, which has no 'b'"),
        ("$.txt", "x: $.txt: $ has no 'txt' (did you mean 'text'?)"),
        ("$.l[2]", "x: $.l[2]: $.l is a list of 1 without 2"),
        ("$.l[*].k", "x: $.l[*].k: no values where one is needed; $list in $compute takes any number of them"),
        ("$..*", "x: $..*: 4 values where one is needed; $list in $compute takes any number of them"),
    ],
)
def test_a_path_must_lead_to_one_value(path: str, message: str) -> None:
    row = {"a": 1, "text": "t", "l": [0]}
    assert refused("TransformJSON", {"x": path}, row) == f"row 0: TransformJSON: {message}"


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        ({"$literal": None}, None),
        ({"$literal": {"$compute": "$$x"}}, {"$compute": "$$x"}),
        ({"$scalar": "$.x"}, "a1b22"),
        ({"$scalar": "$.nope", "default": ["d"]}, ["d"]),
        ({"$list": "$.l[*]"}, ["p", "q"]),
        ({"$list": "$.nope"}, []),
        ({"$list": []}, []),
        ({"$list": [{"$literal": 1}, {"$scalar": "$.x"}, {"$list": "$.l[*]"}]}, [1, "a1b22", ["p", "q"]]),
        ([{"$scalar": "$.o"}, {"$scalar": "$.k"}], "v"),
        ([{"$scalar": "$.x"}, {"$literal": 3}], 3),
        ([{"$scalar": "$.x"}, {"$func": "findall", "pattern": "([a-z])(\\d)"}], [["a", "1"], ["b", "2"]]),
        ([{"$scalar": "$.x"}, {"$func": "findall", "pattern": "[AB]", "flags": 2}], ["a", "b"]),
        ([{"$scalar": "$.x"}, {"$func": "search", "pattern": "(?P<n>\\d+)$", "group": "n"}], "22"),
        ([{"$scalar": "$.x"}, {"$func": "search", "pattern": "q"}], None),
        ([{"$scalar": "$.x"}, {"$func": "search", "pattern": "q", "default": "none"}], "none"),
        ([{"$scalar": "$.x"}, {"$func": "search", "pattern": "a|(q)", "group": 1, "default": "none"}], "none"),
        ([{"$scalar": "$.x"}, {"$func": "search", "pattern": "q*", "default": "none"}], ""),
        ([{"$scalar": "$.x"}, {"$func": "split", "pattern": "(\\d)", "maxsplit": 1}], ["a", "1", "b22"]),
        ([{"$scalar": "$.x"}, {"$func": "sub", "pattern": "([ab])", "repl": "<\\1>", "count": 1}], "<a>1b22"),
        ([{"$scalar": "$.x"}, {"$func": "list"}], ["a", "1", "b", "2", "2"]),
        ([{"$list": "$.l[*]"}, {"$func": "join", "separator": "-"}], "p-q"),
        ([{"$list": "$.n[*]"}, {"$func": "reduce"}], 6),
        ([{"$list": "$.l[*]"}, {"$func": "reduce"}], "pq"),
        ([{"$list": "$['l','n']"}, {"$func": "reduce"}], ["p", "q", 1, 2, 3]),
        ([{"$func": "list"}], ["x", "l", "n", "o"]),
    ],
)
def test_a_computation_gives_what_python_gives(steps: Any, value: Any) -> None:
    assert computed(steps, {"x": "a1b22", "l": ["p", "q"], "n": [1, 2, 3], "o": {"k": "v"}}) == value


def test_reduce_does_not_copy_what_it_has_added_up_for_each_list() -> None:
    class Part(list[int]):
        def __add__(self, other: Any) -> Any:
            copied.append(len(self))
            return Part(super().__add__(other))

    copied: list[int] = []
    parts = [Part([i]) for i in range(1000)]
    assert computed([{"$list": "$.p[*]"}, {"$func": "reduce"}], {"p": parts}) == list(range(1000))
    assert sum(copied) <= 1000


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"$scalar": "$.n"}, {"$func": "search", "pattern": "a"}], "made: search of a number: it works on text"),
        ([{"$scalar": "$.z"}, {"$func": "split", "pattern": "a"}], "made: split of null: it works on text"),
        (
            [{"$list": "$.e[*]"}, {"$func": "reduce"}],
            "made: reduce of an empty list: it works on a list of at least one number, ",
        ),
        ([{"$list": "$.m[*]"}, {"$func": "reduce"}], "made: reduce of a list of a number and a text: it works "),
        (
            [{"$list": "$.m[*]"}, {"$func": "join"}],
            "made: join of a list of a number and a text: it works on a list of texts",
        ),
        ([{"$scalar": "$.n"}, {"$func": "list"}], "made: list of a number: it works on a list or a text"),
    ],
)
def test_a_computation_on_the_wrong_type_is_reported(steps: Any, message: str) -> None:
    row = {"n": 5, "z": None, "e": [], "m": [1, "a"]}
    assert refused("TransformJSON", {"made": {"$compute": steps}}, row).startswith(f"row 0: TransformJSON: {message}")
    with pytest.raises(WrongType):
        computed(steps, row)


def test_a_fault_at_the_root_is_reported_without_a_place() -> None:
    steps = [{"$scalar": "$.x"}, {"$func": "join"}]
    assert refused("TransformJSON", {"$compute": steps}, {"x": 5}).startswith(
        "row 0: TransformJSON: join of a number: "
    )
    several = {"$scalar": "$.x[*]", "default": 0}
    error = refused("TransformJSON", {"$compute": several}, {"x": [1, 2]})
    assert error == "row 0: TransformJSON: $.x[*]: 2 values where one is needed; $list takes them all"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (None, "TransformJSON: the configuration is missing; give the structure of the new rows"),
        ({"a": "$5"}, "TransformJSON: a: '$5' is not a path; write $.name for a path, or $$5 for the text itself"),
        ({"a": {"b": ["$["]}}, "TransformJSON: a.b[0]: '$[' is not a path at '['"),
        (
            {"$compte": 1},
            "TransformJSON: the key '$compte' begins with $, which is reserved (did you mean '$compute'?)",
        ),
        (
            {"$compute": {"$literal": 1}, "a": 2},
            "TransformJSON: $compute must be the only key of its object; remove 'a'",
        ),
        ({"a": {"$compute": []}}, "TransformJSON: a: $compute is []; give a step, or a list of steps"),
        ({"a": {"$compute": "x"}}, "TransformJSON: a: $compute is 'x'; give a step"),
        ({"a": {"$compute": [5]}}, "TransformJSON: a: 5 is not a step of $compute"),
        (
            {"a": {"$compute": {"$scaler": "$.x"}}},
            "TransformJSON: a: a step of $compute has '$scaler' (did you mean '$sc",
        ),
        (
            {"a": {"$compute": {"$scalar": "$.x", "$func": "list"}}},
            "TransformJSON: a: a step of $compute has '$scalar', '",
        ),
        (
            {"a": {"$compute": {"$scalar": "$$x"}}},
            "TransformJSON: a: $scalar is '$$x'; give a path that begins with $, or",
        ),
        ({"a": {"$compute": {"$list": [1]}}}, "TransformJSON: a[0]: 1 is not a step of $compute"),
        ({"a": {"$compute": {"$list": [{"$func": "list"}]}}}, "TransformJSON: a[0]: an element of $list is a $literal"),
        (
            {"a": {"$compute": {"$func": "serach"}}},
            "TransformJSON: a: no function is called 'serach' (did you mean 'sea",
        ),
        ({"a": {"$compute": {"$func": ["x"]}}}, "TransformJSON: a: no function is called ['x']; known: findall, join"),
        ({"a": {"$compute": {"$func": "sub", "pattern": "a"}}}, "TransformJSON: a: sub needs repl"),
        ({"a": {"$compute": {"$func": "list", "n": 1}}}, "TransformJSON: a: list takes no 'n'; it takes none"),
        (
            {"a": {"$compute": {"$func": "split", "pattern": 5}}},
            "TransformJSON: a: split: pattern is 5; give a regular ex",
        ),
        (
            {"a": {"$compute": {"$func": "search", "pattern": "("}}},
            "TransformJSON: a: search: pattern '(' is wrong: missi",
        ),
        (
            {"a": {"$compute": {"$func": "search", "pattern": "a", "group": 1}}},
            "TransformJSON: a: search: pattern 'a' with group 1 is wrong: it has no group 1",
        ),
        (
            {"a": {"$compute": {"$func": "sub", "pattern": "a", "repl": "\\1"}}},
            "TransformJSON: a: sub: pattern 'a' with repl '\\\\1' is wrong: invalid group reference",
        ),
        (
            {"a": {"$compute": {"$func": "sub", "pattern": "(?P<b>a)", "repl": r"\g<c>"}}},  # an IndexError of `re`
            r"TransformJSON: a: sub: pattern '(?P<b>a)' with repl '\\g<c>' is wrong: unknown group name 'c'",
        ),
        (
            {"a": {"$compute": {"$func": "split", "pattern": "a", "flags": 128}}},
            "TransformJSON: a: split: flags is 128; give a sum of",
        ),
        (
            {"a": {"$compute": {"$func": "split", "pattern": "a", "maxsplit": 10**30}}},
            "TransformJSON: a: split: pattern 'a' with maxsplit 1000000000000000000000000000000 is wrong: Python int",
        ),
        ({"a": float("nan")}, "TransformJSON: a: JSON has no number nan"),
        ({"a": [b"x"]}, "TransformJSON: a[0]: a bytes is not JSON data"),
        ({"a": {1: 2}}, "TransformJSON: a: the key 1 is not text"),
    ],
)
def test_a_wrong_template_is_reported_in_one_line_with_its_place(template: Any, message: str) -> None:
    error = wrong(spec("TransformJSON", template))
    assert error.startswith(message)
    assert "\n" not in error


@pytest.mark.parametrize("step", [{"$func": "split"}, {"$func": "list", "n": 1}])
def test_wrong_arguments_are_a_type_error_too(step: Any) -> None:
    with pytest.raises(TypeError):
        create_adapter(spec("TransformJSON", {"$compute": step}))


def test_an_unknown_function_is_a_key_error_too() -> None:
    with pytest.raises(KeyError, match="no function is called"):
        create_adapter(spec("TransformJSON", {"$compute": {"$func": "eval"}}))


def test_literals_are_no_shared_objects() -> None:
    template = {
        "a": {"$compute": {"$literal": [1]}},
        "b": {"$compute": {"$scalar": "$.nope", "default": [2]}},
        "c": [{}],
    }
    adapter = create_adapter(spec("TransformJSON", template))
    first, second = adapter([{}, {}])
    for value in (first["a"], first["b"], first["c"]):
        value.append("changed")
    assert second == {"a": [1], "b": [2], "c": [{}]}
    assert adapter.configuration == template


# FileUpload


def upload(configuration: Any, row: Any) -> Any:
    (new,) = made("FileUpload", configuration, row)
    assert list(new) == ["$fileUpload"]
    return new["$fileUpload"]


def test_an_upload_has_these_parts_and_no_other() -> None:
    configuration = {
        "field": "$.image.data",
        "name": "picture",
        "contentType": "$.image.type",
        "filename": {"$compute": [{"$list": [{"$scalar": "$.id"}, {"$literal": ".png"}]}, {"$func": "join"}]},
        "formFields": {"$$model": "$.model", "n": "$.n", "half": 0.5, "flag": True},
    }
    row = {"image": {"data": "aGVs\nbG8=", "type": "image/png"}, "id": "i1", "model": "m", "n": 3, "left": "out"}
    assert upload(configuration, row) == {
        "name": "picture",
        "filename": "i1.png",
        "contentType": "image/png",
        "content": b"hello",
        "formFields": {"$model": "m", "n": "3", "half": "0.5", "flag": "true"},
    }


def test_form_fields_can_be_computed_as_a_whole() -> None:
    configuration = {"field": "$.t", "formFields": {"$compute": {"$scalar": "$.o"}}}
    assert upload(configuration, {"t": "", "o": {"k": 1}})["formFields"] == {"k": "1"}
    assert refused("FileUpload", configuration, {"t": "", "o": [1]}).endswith("formFields: is a list, not an object")


@pytest.mark.parametrize(
    ("encoding", "value", "content"),
    [
        ("base64", "aGk=", b"hi"),
        ("base64", b"hi", b"hi"),
        ("base64", memoryview(b"hi"), b"hi"),
        ("binary", bytearray(b"hi"), b"hi"),
        ("utf-8", "hä", "hä".encode()),
        ("json", {"k": [1, 2.5, None, "ä"]}, b'{"k": [1, 2.5, null, "\\u00e4"]}'),
        ("json", None, b"null"),
    ],
)
def test_contents_are_read_as_they_are_encoded(encoding: str, value: Any, content: bytes) -> None:
    assert upload({"field": "$.t", "encoding": encoding}, {"t": value})["content"] == content


@pytest.mark.parametrize(
    ("encoding", "value", "message"),
    [
        ("base64", "!!!!", "field: is not base64 text: "),
        ("base64", "aGk", "field: is not base64 text: "),
        ("base64", "ä", "field: is not base64 text: "),
        ("base64", 5, "field: is a number, not base64 text or bytes"),
        ("binary", "hi", "field: is a text, not bytes; encoding base64 accepts both"),
        ("binary", None, "field: is null, not bytes"),
        ("utf-8", b"hi", "field: is a bytes, not text"),
        ("json", b"hi", "field: cannot be written as JSON: "),
        ("json", float("nan"), "field: cannot be written as JSON: "),
    ],
)
def test_contents_that_cannot_be_read_are_refused(encoding: str, value: Any, message: str) -> None:
    error = refused("FileUpload", {"field": "$.t", "encoding": encoding}, {"t": value})
    assert error.startswith(f"row 0: FileUpload: {message}")


@pytest.mark.parametrize(
    ("configuration", "row", "message"),
    [
        ({"filename": "$.n"}, {"n": 5}, "filename: is a number, not text"),
        ({"contentType": "$.z"}, {"z": None}, "contentType: is null, not text"),
        ({"contentType": "$.nope"}, {}, "contentType: $.nope: $ has no 'nope'"),
        ({"formFields": {"a": "$.o"}}, {"o": {}}, "formFields: a: is an object; give text"),
        ({"formFields": {"a": "$.z"}}, {"z": None}, "formFields: a: is null; give text"),
        ({"field": "$.nope"}, {}, "field: $.nope: $ has no 'nope'"),
    ],
)
def test_parts_that_cannot_be_sent_are_refused(configuration: Any, row: Row, message: str) -> None:
    error = refused("FileUpload", {"field": "$.t"} | configuration, {"t": ""} | row)
    assert error.startswith(f"row 0: FileUpload: {message}")


# Specs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "a pipeline is 5; give a list of adapters"),
        (None, "a pipeline is empty; give a list of adapters"),
        ([5], "an adapter: its spec is 5; give an object with kind"),
        ([{}], "an adapter: kind is missing"),
        ([{"kind": "Rename", "config": {}}], "an adapter: no key is called 'config' (did you mean 'configuration'?)"),
        (
            [spec("rename", {})],
            "no adapter is called 'rename' (did you mean 'Rename'?); known: Drop, EmbedIndex, Explo",
        ),
        ([spec(["Rename"], {})], "no adapter is called ['Rename']"),  # type: ignore[arg-type]
        ([RENAME, spec("Nope")], "step 2: no adapter is called 'Nope'"),
        ({"adapters": [RENAME], "onerror": "skip"}, "a pipeline: no key is called 'onerror' (did you mean 'onError'?)"),
        ({"adapters": [RENAME], "onError": "ignore"}, "onError is 'ignore'; give one of abort, skip, default"),
        ({"adapters": [RENAME], "onError": "default"}, "default: give the row that replaces a failed one"),
        ({"adapters": [RENAME], "default": {}}, "default: give the row that replaces a failed one"),
        ({"adapters": [RENAME], "onError": "default", "default": 5}, "default is a number; give an object"),
        (spec("Rename"), "Rename: the configuration is missing; give an object: old name: new name"),
        (spec("Rename", ["x"]), "Rename: the configuration is ['x']; give an object: old name: new name"),
        (spec("Rename", {"a": 5}), "Rename: the configuration is {'a': 5}; give an object: old name: new name"),
        (spec("Drop"), "Drop: the configuration is missing; give an object with fields"),
        (spec("Drop", ["a"]), "Drop: the configuration is a list; give an object with fields"),
        (spec("Drop", {"fields": "ab"}), "Drop: fields is 'ab'; give a list of field names"),
        (spec("Select", {"fields": [1]}), "Select: fields contains 1; give a list of field names"),
        (
            spec("Select", {"field": ["a"]}),
            "Select: no key is called 'field' (did you mean 'fields'?); known: fields; ",
        ),
        (spec("ExplodeCollections", {}), "ExplodeCollections: collections is missing"),
        (
            spec("ExplodeCollections", {"collections": []}),
            "ExplodeCollections: collections is empty; name at least one",
        ),
        (
            spec("ExplodeCollections", {"collections": ["a"], "index": ["i"]}),
            "ExplodeCollections: index is ['i']; give an object: field name: path, or null to count",
        ),
        (
            spec("ExplodeCollections", {"collections": ["a"], "index": {"i": "$["}}),
            "ExplodeCollections: index: i: '$[' is not a path",
        ),
        (
            spec("ExplodeCollections", {"collections": ["score", "a", "score"]}),
            "ExplodeCollections: collections contains 'score' more than once",
        ),
        (spec("FlattenHierarchy", []), "FlattenHierarchy: the configuration is a list; give an object"),
        (spec("FlattenHierarchy", {"depth": -1}), "FlattenHierarchy: depth is -1; give an integer of at least 0"),
        (spec("FlattenHierarchy", {"depth": True}), "FlattenHierarchy: depth is True; give an integer"),
        (spec("FlattenHierarchy", {"addPrefix": "no"}), "FlattenHierarchy: addPrefix is 'no'; give true or false"),
        (spec("Map", {"collections": ["r"], "adapter": None}), "Map: a pipeline is empty; give a list of adapters"),
        (spec("Map", {"collections": ["r"], "adapter": spec("Drop")}), "Map: Drop: the configuration is missing"),
        (spec("FileUpload", {}), "FileUpload: field is missing"),
        (spec("FileUpload", {"field": 5}), "FileUpload: field: 5 is not a path; write it like $.a.b[0]"),
        (spec("FileUpload", {"field": "$", "encoding": "hex"}), "FileUpload: no encoding is called 'hex'; use one of"),
        (spec("FileUpload", {"field": "$", "nme": "x"}), "FileUpload: no key is called 'nme' (did you mean 'name'?)"),
        (spec("FileUpload", {"field": "$", "formFields": [1]}), "FileUpload: formFields is [1]; give an object"),
        (
            spec("FileUpload", {"field": "$", "formFields": {"$a": 1}}),
            "FileUpload: formFields: the key '$a' begins with",
        ),
    ],
)
def test_a_wrong_spec_is_reported_in_one_line(given: Any, message: str) -> None:
    error = wrong(given)
    assert error.startswith(message)
    assert "\n" not in error


def test_all_wrong_adapters_of_a_pipeline_are_reported() -> None:
    error = wrong([spec("Nope"), RENAME, spec("Drop")]).split("\n")
    assert [line.split(":")[0] for line in error] == ["step 1", "step 3"]


@pytest.mark.parametrize(
    "kind", ["Drop", "EmbedIndex", "ExplodeCollections", "FileUpload", "Map", "Rename", "Select", "TransformJSON"]
)
def test_a_configuration_that_is_missing_is_a_type_error_too(kind: str) -> None:
    with pytest.raises(WrongArguments, match="is missing"):
        create_adapter({"kind": kind})


PIPELINES: list[Any] = [
    [],
    [RENAME],
    [spec("FlattenHierarchy")],
    [
        RENAME,
        spec("Pipeline", [spec("Drop", {"fields": ["a"]}), spec("Map", {"collections": ["r"], "adapter": RENAME})]),
    ],
    {"adapters": [RENAME], "onError": "skip"},
    {"adapters": [RENAME], "onError": "default", "default": {"x": [None]}},
    [spec("TransformJSON", {"a": {"$compute": [{"$scalar": "$.x"}, {"$func": "sub", "pattern": "a", "repl": "b"}]}})],
    [UPLOAD],
]


@pytest.mark.parametrize("given", PIPELINES)
def test_a_spec_is_read_twice_and_written_as_it_was(given: Any) -> None:
    before = json.dumps(given)
    for _ in range(2):
        pipeline = Pipeline.of(given)
        assert json.dumps(pipeline.spec) == json.dumps(Pipeline.of(pipeline.spec).spec) == before
        pipeline.spec.clear()
        assert json.dumps(given) == json.dumps(pipeline.spec) == before


def test_a_single_spec_and_an_adapter_make_pipelines_too() -> None:
    assert (
        Pipeline.of(RENAME).spec
        == Pipeline.of(create_adapter(RENAME)).spec
        == Pipeline([create_adapter(RENAME)]).spec
        == [RENAME]
    )


def test_a_change_of_the_configuration_object_changes_no_adapter() -> None:
    given = {"fields": ["a"]}
    adapter = create_adapter(spec("Select", given))
    given["fields"].append("b")
    adapter.spec["configuration"]["fields"].append("c")
    assert list(adapter([{"a": 1, "b": 2}])) == [{"a": 1}]
    assert adapter.spec == spec("Select", {"fields": ["a"]})


# Rows


def test_an_empty_list_is_reduced_to_the_default_where_there_is_one() -> None:
    total = {"$compute": [{"$list": "$.n[*]"}, {"$func": "reduce", "default": 0}]}
    made = Pipeline([{"kind": "TransformJSON", "configuration": {"total": total}}])([{"n": []}, {"n": [1, 2]}])
    assert list(made) == [{"total": 0}, {"total": 3}]


@pytest.mark.parametrize("row", [5, None, "x", [1]])
def test_what_is_no_object_is_refused(row: Any) -> None:
    with pytest.raises(WrongType, match=r"^row 1: Rename: the row is .*; an adapter works on objects$"):
        list(Pipeline([RENAME])([{"x": 1}, row]))


@pytest.mark.parametrize("kind", [MappingProxyType, OrderedDict])
def test_any_mapping_is_an_object(kind: Any) -> None:
    assert list(Pipeline([RENAME, RENAME | {"configuration": {"y": "z"}}])([kind({"x": 1})])) == [{"z": 1}]


def test_a_template_makes_objects_of_anything() -> None:
    assert made("TransformJSON", {"v": "$"}, 5, [1], None) == [{"v": 5}, {"v": [1]}, {"v": None}]


def test_an_empty_pipeline_hands_rows_on() -> None:
    assert list(Pipeline([])([{"a": 1}, {}])) == [{"a": 1}, {}]


def test_rows_are_made_when_they_are_asked_for() -> None:
    taken: list[int] = []
    adapted = Pipeline([RENAME])({"x": taken.append(i)} for i in range(3))
    assert (taken, adapted.counts.read) == ([], 0)
    assert (next(adapted), taken, adapted.counts.read, adapted.counts.made) == ({"y": None}, [0], 1, 1)


# What becomes of rows that fail

EXPLODE_THEN_RENAME = [
    spec("ExplodeCollections", {"collections": ["r"]}),
    spec("FlattenHierarchy", {"addPrefix": False}),
]
SOME_WRONG = [
    {"_index_": 0, "r": [{"a": 1}, {"a": 2}]},
    {"_index_": 1, "r": None},
    {"_index_": 2, "r": [{"a": 1}, {"_index_": 2}]},
    {"_index_": 3, "r": []},
    {"_index_": 4, "r": 5},
]
SOME_RIGHT = [{"_index_": 0, "a": 1}, {"_index_": 0, "a": 2}]
NULL = "ExplodeCollections (step 1 of 2): r is null, not a list"
NUMBER = "ExplodeCollections (step 1 of 2): r is a number, not a list"
TWICE = "FlattenHierarchy (step 2 of 2): two fields would be called '_index_'; use addPrefix, or rename one first"


def test_the_first_failed_row_ends_the_stream() -> None:
    adapted = Pipeline(EXPLODE_THEN_RENAME)(SOME_WRONG)
    assert [next(adapted), next(adapted)] == SOME_RIGHT
    with pytest.raises(AdapterError) as raised:
        next(adapted)
    assert str(raised.value) == f"_index_ 1: {NULL}"
    assert (adapted.counts.read, adapted.counts.made) == (2, 2)


def test_failed_rows_are_left_out_and_counted() -> None:
    adapted = Pipeline(EXPLODE_THEN_RENAME, on_error="skip")(SOME_WRONG)
    assert list(adapted) == SOME_RIGHT
    counts = adapted.counts
    assert (counts.read, counts.made, counts.skipped, counts.defaulted) == (5, 2, 3, 0)
    assert counts.reasons == {NULL: 1, TWICE: 1, NUMBER: 1}


def test_a_row_on_which_a_pattern_takes_too_long_is_a_failed_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_patterns, "SECONDS", 0.01)
    search = {"$compute": [{"$scalar": "$.text"}, {"$func": "search", "pattern": "^(a|aa)+$"}]}
    steps = [{"kind": "TransformJSON", "configuration": {"found": search}}]
    hostile, short = {"text": "a" * 60 + "b"}, {"text": "aa"}
    adapted = Pipeline.of({"adapters": steps, "onError": "skip"})([hostile, short])
    assert [*adapted] == [{"found": "aa"}]
    [reason] = adapted.counts.reasons
    assert reason.startswith("TransformJSON: found: search: the pattern '^(a|aa)+$' took more than 0.01 s on this text")
    with pytest.raises(AdapterError, match=r"^_index_ 1: TransformJSON: found: search: the pattern"):
        [*Pipeline.of({"adapters": steps})([short | {"_index_": 0}, hostile | {"_index_": 1}])]


def test_another_row_takes_a_failed_ones_place_and_is_counted() -> None:
    default = {"_index_": -1, "l": [0]}
    adapted = Pipeline(EXPLODE_THEN_RENAME, on_error="default", default=default)(SOME_WRONG)
    assert list(adapted) == [*SOME_RIGHT, default, default, default]
    counts = adapted.counts
    assert (counts.read, counts.made, counts.skipped, counts.defaulted) == (5, 5, 0, 3)


def test_a_default_is_a_row_of_its_own_each_time() -> None:
    default = {"l": [0]}
    first, second = Pipeline([RENAME], on_error="default", default=default)([{}, {}])
    first["l"].append(1)
    assert (second, default) == ({"l": [0]}, {"l": [0]})


def test_an_empty_object_is_a_default() -> None:
    adapted = Pipeline([RENAME], on_error="default", default={})([{}, {"x": 1}])
    assert (list(adapted), adapted.counts.defaulted) == ([{}, {"y": 1}], 1)


def test_only_so_many_different_reasons_are_stored() -> None:
    explode = spec("ExplodeCollections", {"collections": ["a", "b"]})
    adapted = Pipeline([explode], on_error="skip")({"a": [0] * (i + 1), "b": []} for i in range(150))
    assert (list(adapted), adapted.counts.skipped, len(adapted.counts.reasons)) == ([], 150, 100)


def test_a_fault_of_code_is_no_fault_of_a_row() -> None:
    class Broken(Adapter):
        kind = "Broken"

        def adapt(self, row: Row) -> list[Row]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(Pipeline([Broken()], on_error="skip")([{}]))


# Hostile input


def nest(depth: int, leaf: Any = 1) -> Any:
    for _ in range(depth):
        leaf = {"a": leaf}
    return leaf


@pytest.mark.parametrize(
    "adapter",
    [
        spec("FlattenHierarchy"),
        spec("FileUpload", {"field": "$", "encoding": "json"}),
    ],
)
def test_rows_nested_too_deeply_fail_as_rows(adapter: Any) -> None:
    adapted = Pipeline([adapter], on_error="skip")([{"a": 1}, nest(100_000)])
    assert len(list(adapted)) == 1
    assert adapted.counts.reasons == {f"{adapter['kind']}: the row is nested too deeply": 1}


def test_deep_rows_are_no_matter_to_what_goes_not_into_them() -> None:
    deep = nest(100_000)
    assert made("TransformJSON", {"x": "$.a", "n": {"$compute": {"$list": "$.a.a.nope"}}}, deep)[0]["x"] is deep["a"]
    assert len(computed({"$list": "$..a"}, deep)) == 100_000


@pytest.mark.parametrize("kind", ["TransformJSON", "Rename", "Map", "FileUpload", "Pipeline"])
def test_configurations_nested_too_deeply_are_refused(kind: str) -> None:
    assert wrong(spec(kind, nest(5000))) == f"{kind}: the configuration is nested more than 100 levels deep"


def test_a_template_as_deep_as_allowed_works() -> None:
    template = nest(100, "$.v")
    assert made("TransformJSON", template, {"v": 5}) == [nest(100, 5)]


def test_a_huge_list_is_exploded_into_as_many_rows() -> None:
    explode = create_adapter(spec("ExplodeCollections", {"collections": ["a"], "index": {"i": None}}))
    assert sum(row["a"] == row["i"] for row in explode([{"a": [*range(100_000)]}])) == 100_000


@in_fork
def test_a_pattern_that_finds_no_end_can_be_interrupted() -> None:
    steps = [{"$scalar": "$.x"}, {"$func": "search", "pattern": "(a|aa)+$"}]
    threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        computed(steps, {"x": "a" * 60 + "b"})


# Columns

SCALARS = [
    (pa.int64(), st.integers(-9, 9)),
    (pa.float64(), st.floats(width=32)),
    (pa.string(), st.text("ab$", max_size=3)),
    (pa.bool_(), st.booleans()),
]
FIELDS = ("a", "b", "c", "d")


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def structs(inner: list[tuple[str, Any]]) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    kind = pa.struct([pa.field(name, each) for name, (each, _) in inner])
    return kind, st.fixed_dictionaries({name: nullable(values) for name, (_, values) in inner})


def columns_of(depth: int) -> st.SearchStrategy[Any]:
    """An Arrow type with a strategy for its values."""
    scalars = st.sampled_from(SCALARS)
    if depth == 0:
        return scalars
    inner = columns_of(depth - 1)
    lists = inner.map(lambda each: (pa.list_(each[0]), st.lists(nullable(each[1]), max_size=3)))
    large = inner.map(lambda each: (pa.large_list(each[0]), st.lists(nullable(each[1]), max_size=3)))
    objects = st.lists(st.tuples(st.sampled_from(FIELDS), inner), max_size=3, unique_by=lambda p: p[0]).map(structs)
    return scalars | lists | large | objects


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """A slice of a batch whose lists of one column are now and then as long as those of another."""
    names = draw(st.lists(st.sampled_from(FIELDS), min_size=1, unique=True))
    kinds = {name: draw(columns_of(2)) for name in names}
    n = draw(st.integers(0, 6))
    gaps = draw(st.booleans())
    columns = {}
    for name, (_, values) in kinds.items():
        values = nullable(values) if gaps else values
        columns[name] = draw(st.lists(values, min_size=n, max_size=n))
    if draw(st.booleans()):
        kinds["l"] = kinds["m"] = (pa.list_(pa.int64()), None)
        columns["l"] = draw(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=n, max_size=n))
        columns["m"] = [list(reversed(each)) for each in columns["l"]]
    batch = pa.RecordBatch.from_arrays([pa.array(columns[name], kinds[name][0]) for name in kinds], names=[*kinds])
    start = draw(st.integers(0, n))
    return batch.slice(start, draw(st.integers(0, n - start)))


NAMES = st.sampled_from([*FIELDS, "l", "m", "x"])
PATHS = st.builds(lambda names: "$." + ".".join(names), st.lists(NAMES, min_size=1, max_size=3))
LITERALS = st.sampled_from([None, 1, 1.5, True, "x", "$$x", [1, 2], [], [1, "a"], {}, 2**70, ["$$x"]])
TEMPLATES = st.dictionaries(NAMES, PATHS | LITERALS | st.dictionaries(NAMES, PATHS | LITERALS, max_size=2), max_size=3)
INDEXES = st.dictionaries(
    st.sampled_from(["i", "j", "a"]), st.none() | NAMES.map(lambda name: f"$.{name}[*]"), max_size=2
)
SPECS = st.one_of(
    st.lists(NAMES, max_size=3).map(lambda names: spec("Drop", {"fields": names})),
    st.lists(NAMES, max_size=3).map(lambda names: spec("Select", {"fields": names})),
    st.dictionaries(NAMES, st.sampled_from([*FIELDS, "y", "z"]), max_size=2)
    .filter(lambda names: len({*names.values()}) == len(names))
    .map(lambda names: spec("Rename", names)),
    st.builds(
        lambda fields, depth, prefix: spec("FlattenHierarchy", {"fields": fields, "depth": depth, "addPrefix": prefix}),
        st.lists(NAMES, max_size=2),
        st.none() | st.integers(0, 3),
        st.booleans(),
    ),
    st.builds(
        lambda names, index: spec("ExplodeCollections", {"collections": names, "index": index}),
        st.lists(NAMES, min_size=1, max_size=2, unique=True) | st.just(["l", "m"]),
        INDEXES,
    ),
    TEMPLATES.map(lambda template: spec("TransformJSON", template)),
)


@given(batches(), st.lists(SPECS, min_size=1, max_size=2))
def test_a_batch_gives_what_its_rows_give(batch: pa.RecordBatch, specs: list[Any]) -> None:
    pipeline = Pipeline(specs)
    whole = pipeline.adapt_batch(batch)
    if whole is not None:
        whole.validate(full=True)
        assert identity.encode(whole.to_pylist()) == identity.encode(list(pipeline(batch.to_pylist())))


@given(batches(), st.lists(SPECS, min_size=1, max_size=3))
def test_no_adapter_changes_its_input_or_its_configuration(batch: pa.RecordBatch, specs: list[Any]) -> None:
    given_rows, before = batch.to_pylist(), json.dumps(specs)
    kept = copy.deepcopy(given_rows)
    pipeline = Pipeline(specs, on_error="skip")
    adapted = pipeline(given_rows)
    for row in adapted:
        row.clear()
    counts = adapted.counts
    assert identity.encode(given_rows) == identity.encode(kept)
    assert json.dumps(specs) == json.dumps(pipeline.spec["adapters"]) == before
    assert counts.read == len(kept)
    assert counts.skipped == sum(counts.reasons.values())


BATCH = pa.RecordBatch.from_pylist(
    [
        {"_index_": 0, "text": "p", "o": {"k": {"v": 1}}, "l": [1, 2], "m": [3, None], "n": None},
        {"_index_": 1, "text": None, "o": {"k": {"v": None}}, "l": [], "m": [], "n": None},
        {"_index_": 2, "text": "r", "o": {"k": {"v": 3}}, "l": [5], "m": [6], "n": None},
    ]
)


@pytest.mark.parametrize(
    "specs",
    [
        [spec("Rename", {"text": "prompt", "_index_": "text"})],
        [spec("Drop", {"fields": ["l", "nope"]})],
        [spec("Select", {"fields": ["o", "n"]})],
        [spec("FlattenHierarchy", {"depth": 1})],
        [spec("FlattenHierarchy", {"addPrefix": False})],
        [spec("ExplodeCollections", {"collections": ["l", "m"], "index": {"i": None, "rank": "$.m[*]"}})],
        [
            spec(
                "TransformJSON",
                {"p": "$.text", "v": "$.o.k.v", "in": {"k": "$.o.k"}, "t": 0.5, "$$s": ["a"], "z": None},
            )
        ],
        [spec("Drop", {"fields": ["n"]}), spec("Pipeline", [spec("Rename", {"l": "a"})]), spec("FlattenHierarchy")],
    ],
)
@pytest.mark.parametrize(("start", "length"), [(0, 3), (1, 2), (2, 1), (1, 0)])
def test_these_go_without_going_through_the_rows(specs: list[Any], start: int, length: int) -> None:
    batch, pipeline = BATCH.slice(start, length), Pipeline(specs)
    whole = pipeline.adapt_batch(batch)
    assert whole is not None
    assert identity.encode(whole.to_pylist()) == identity.encode(list(pipeline(batch.to_pylist())))


@pytest.mark.parametrize(
    "specs",
    [
        [spec("Rename", {"nope": "a"})],
        [spec("Rename", {"text": "n"})],
        [spec("Drop", {"fields": BATCH.schema.names})],
        [spec("Select", {"fields": ["nope"]})],
        [spec("ExplodeCollections", {"collections": ["text"]})],
        [spec("ExplodeCollections", {"collections": ["l"], "index": {"n": None}})],
        [spec("ExplodeCollections", {"collections": ["l"], "index": {"i": "$.o.k"}})],
        [spec("TransformJSON", {"a": "$.nope"})],
        [spec("TransformJSON", {"a": "$.l[0]"})],
        [spec("TransformJSON", {"a": {"$compute": {"$literal": 1}}})],
        [spec("Map", {"collections": ["l"], "adapter": spec("TransformJSON", {"v": "$"})})],
    ],
)
def test_these_are_left_to_the_rows(specs: list[Any]) -> None:
    assert Pipeline(specs).adapt_batch(BATCH) is None


def test_lists_of_different_lengths_are_left_to_the_rows_that_say_which() -> None:
    batch = pa.RecordBatch.from_pylist([{"_index_": 1, "a": [1], "b": [2]}, {"_index_": 2, "a": [1, 2], "b": [3]}])
    pipeline = Pipeline([spec("ExplodeCollections", {"collections": ["a", "b"]})])
    assert pipeline.adapt_batch(batch) is None
    with pytest.raises(AdapterError, match=r"^_index_ 2: .*: a has 2, b has 1$"):
        list(pipeline(batch.to_pylist()))


def test_a_missing_object_is_left_to_the_rows() -> None:
    batch = pa.RecordBatch.from_pylist([{"o": {"k": 1}}, {"o": None}])
    assert create_adapter(spec("TransformJSON", {"k": "$.o.k"})).adapt_batch(batch) is None
    assert create_adapter(spec("FlattenHierarchy")).adapt_batch(batch) is None
    assert create_adapter(spec("TransformJSON", {"k": "$.o.k"})).adapt_batch(batch.slice(0, 1)) is not None


def test_chunks_one_by_one_give_what_the_whole_gives() -> None:
    table = pa.Table.from_batches([BATCH.slice(0, 1), BATCH.slice(1, 0), BATCH.slice(1)])
    pipeline = Pipeline([spec("ExplodeCollections", {"collections": ["l", "m"], "index": {"i": None}})])
    parts = pa.Table.from_batches([pipeline.adapt_batch(batch) for batch in table.to_batches()])
    assert parts.to_pylist() == pipeline.adapt_batch(BATCH).to_pylist()  # type: ignore[union-attr]


def test_a_column_of_json_texts_stays_marked_and_is_never_flattened_as_text() -> None:
    schema = pa.schema([rows.json_field("o"), pa.field("l", pa.list_(pa.int64()))])
    batch = pa.RecordBatch.from_pylist([{"o": '{"k":1}', "l": [1, 2]}], schema=schema)
    for kept in (
        spec("Rename", {"o": "p"}),
        spec("TransformJSON", {"p": "$.o"}),
        spec("ExplodeCollections", {"collections": ["l"]}),
        spec("FlattenHierarchy", {"fields": ["l"]}),
    ):
        whole = create_adapter(kept).adapt_batch(batch)
        assert whole is not None
        assert rows.is_json(whole.schema.field("p" if "p" in whole.schema.names else "o"))
    assert create_adapter(spec("FlattenHierarchy")).adapt_batch(batch) is None
    assert create_adapter(spec("TransformJSON", {"k": "$.o.k"})).adapt_batch(batch) is None


def test_a_batch_with_a_name_twice_is_left_to_the_rows() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert Pipeline([spec("Drop", {"fields": ["b"]})]).adapt_batch(batch) is None


# Tables


def rows_in(table: pa.Table) -> list[Any]:
    return [row for batch in table.to_batches() for row in read_rows(batch)]


LISTS = pa.schema([("n", pa.int32()), ("l", pa.list_(pa.float32()))])


def in_batches(*batches: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist(rows, schema=LISTS) for rows in batches]


def test_a_table_keeps_its_types_though_one_batch_must_go_row_by_row() -> None:
    pipeline, counts = Pipeline([spec("ExplodeCollections", {"collections": ["l"]})], on_error="skip"), Counts()
    table = pipeline.table(in_batches([{"n": 1, "l": [0.5, 2.0]}], [{"n": 2, "l": None}, {"n": 3, "l": [4.0]}]), counts)
    assert table.schema.types == [pa.int32(), pa.float32()]
    assert table.to_pylist() == [{"n": 1, "l": 0.5}, {"n": 1, "l": 2.0}, {"n": 3, "l": 4.0}]
    assert (counts.read, counts.made, counts.skipped) == (3, 3, 1)


@pytest.mark.parametrize("default", [{"n": 2**40, "l": 0.5}, {"n": None, "l": 0.1}, {"n": "none"}, {"l": {"x": 1}}])
def test_a_row_that_does_not_fit_with_the_types_of_the_rest_loses_nothing(default: dict[str, Any]) -> None:
    batches = in_batches([{"n": 1, "l": [0.5]}], [{"n": 2, "l": None}])
    explode = [spec("ExplodeCollections", {"collections": ["l"]})]
    table = Pipeline(explode, on_error="default", default=default).table(batches)
    assert rows_in(table) == [{"n": 1, "l": 0.5}, {"n": None, "l": None} | default]


def test_a_pipeline_that_never_goes_at_once_makes_a_table_of_its_rows() -> None:
    batches = in_batches([{"n": 1, "l": [0.5]}], [{"n": 2, "l": []}])
    value = {"$compute": [{"$list": "$.l"}, {"$func": "reduce"}]}
    table = Pipeline([spec("TransformJSON", {"n": "$.n", "v": value, "o": {"l": "$.l"}})]).table(batches)
    assert rows_in(table) == [{"n": 1, "v": [0.5], "o": {"l": [0.5]}}, {"n": 2, "v": [], "o": {"l": []}}]
    assert rows.is_json(table.schema.field("o"))
    assert table.schema.field("n").type == pa.int64()


def test_what_no_table_can_store_is_reported() -> None:
    batches = in_batches([{"n": 1, "l": []}])
    with pytest.raises(DataError, match="new row 0 is a number, not an object; a table is made of objects"):
        Pipeline([spec("TransformJSON", "$.n")]).table(batches)
    with pytest.raises(DataError, match=r"^new row 0: t: .*surrogate"):
        Pipeline([spec("TransformJSON", {"t": "\ud800"})]).table(batches)
    with pytest.raises(DataError, match="the new rows have no fields; a table needs at least one"):
        Pipeline([spec("Select", {"fields": []})]).table(batches)
    assert Pipeline([]).table([]).num_rows == 0


@given(st.lists(batches(), max_size=2), st.lists(SPECS, min_size=1, max_size=2))
def test_a_table_holds_what_the_rows_give(whole: list[pa.RecordBatch], specs: list[Any]) -> None:
    one_by_one, counts = Pipeline(specs, on_error="skip")(row for batch in whole for row in batch.to_pylist()), Counts()
    made = list(one_by_one)
    names = dict.fromkeys(name for row in made for name in row)
    assume(names or not made)
    table = Pipeline(specs, on_error="skip").table(whole, counts)
    assert identity.encode([{name: row[name] for name in names} for row in rows_in(table)]) == identity.encode(
        [{name: row.get(name) for name in names} for row in made]
    )
    assert counts == one_by_one.counts


@pytest.mark.parametrize(
    ("template", "place"),
    [("a.b[0]", "TransformJSON"), ({"x": ["c[*].d"]}, r"TransformJSON: x\[0\]"), ({"x": "a[1]"}, "")],
)
def test_a_text_that_looks_like_a_path_gives_a_warning_and_is_used_as_text(template: Any, place: str) -> None:
    with pytest.warns(LooksLikePath, match=f"{place}.* is used as text; write \\$\\."):
        (made,) = create_adapter({"kind": "TransformJSON", "configuration": template}).adapt({"a": {"b": [1]}})
    assert made == template


@pytest.mark.parametrize("text", ["a.b", "[1]", "see [1]", "a[b]", "$$a[0]", "www.example.org"])
def test_other_texts_are_not_doubted(text: str) -> None:
    create_adapter({"kind": "TransformJSON", "configuration": {"x": text}})
