"""Selectors written as Python with the names of TruLens."""

from __future__ import annotations

import copy
import pickle
import random
from types import SimpleNamespace
from typing import Any

import pytest

from evaluand.core.errors import DataError, SpecError
from evaluand.core.selector import Selector
from evaluand.interop import trulens
from evaluand.interop.trulens import (
    Collect,
    GetAttribute,
    GetIndex,
    GetIndices,
    GetItem,
    GetItemOrAttribute,
    GetItems,
    GetSlice,
    JSONPath,
    Lens,
    Select,
    all_objects,
    all_queries,
)

CALL = {"args": {"query": "q", "my key": 1}, "rets": ["a", "b"]}
SOURCE = {
    "__record__": {"main_input": "in", "main_output": "out", "calls": [CALL], "app": {"retriever": {"search": [CALL]}}},
    "__app__": {"name": "n"},
    "__example__": {"id": "e"},
}
METHODS = [name for name in vars(Lens) if not name.startswith("_")]


@pytest.mark.parametrize(
    ("lens", "text", "values"),
    [
        (Select.Query(), "", [SOURCE]),
        (Select.RecordInput, "__record__.main_input", ["in"]),
        (Select.RecordOutput, "__record__.main_output", ["out"]),
        (Select.RecordCall.rets, "__record__.calls[-1].rets", [["a", "b"]]),
        (Select.RecordRets[:], "__record__.calls[-1].rets[:]", ["a", "b"]),
        (Select.RecordArgs.query, "__record__.calls[-1].args.query", ["q"]),
        (Select.RecordArgs["my key"], "__record__.calls[-1].args.'my key'", [1]),
        (Select.RecordCalls.retriever.search.rets, "__record__.app.retriever.search.rets", [["a", "b"]]),
        (Select.RecordCalls.retriever.search.rets[:].collect(), None, [["a", "b"]]),
        (Select.App.name, "__app__.name", ["n"]),
        (Select.Example.id, "__example__.id", ["e"]),
        (JSONPath().__record__["main_input", "main_output"], "__record__['main_input','main_output']", ["in", "out"]),
        (Select.RecordRets[1, 0], "__record__.calls[-1].rets[1,0]", ["b", "a"]),
        (Select.RecordRets[:1], "__record__.calls[-1].rets[:1:]", ["a"]),
        (Select.RecordRets[::-1], "__record__.calls[-1].rets[::-1]", ["b", "a"]),
    ],
)
def test_a_lens_is_called_with_what_it_selects_from(lens: Lens, text: str | None, values: list[Any]) -> None:
    assert lens(SOURCE) == values
    assert lens.get(SOURCE) == values
    assert lens.exists(SOURCE)
    assert text in (None, str(lens))
    assert Lens.of_string(str(lens)) == lens
    assert Lens(lens.path()) == lens
    assert lens.selector().select(SOURCE) == values
    assert not text or lens.selector() == Selector(text)


def test_python_objects_are_selected_from_and_changed_too() -> None:
    thing = SimpleNamespace(a=SimpleNamespace(b=[1, 2]), text="xy")
    assert Lens().a.b[:](thing) == [1, 2]
    assert Lens().text[0](thing) == ["x"]
    assert Lens().a.b[0].set(thing, 5).a.b == [5, 2]
    assert thing.a.b == [1, 2]
    assert Lens().text.set_or_append({"text": "xy"}, "z") == {"text": ["x", "y", "z"]}
    with pytest.raises(DataError):
        Lens().a.selector().select(thing)


# Names


@pytest.mark.parametrize(
    "name", [*METHODS, "items", "keys", "class", "self", "obj", "steps", "model_dump", "_call", "_"]
)
def test_any_name_is_a_step_unless_it_is_called(name: str) -> None:
    for lens in (getattr(Lens().a, name), Lens().a[name], Lens.of_string(f"a.{name}")):
        assert isinstance(lens, Lens)
        assert lens == Lens().a[name]
        assert hash(lens) == hash(Lens().a[name])
        assert str(lens) == f"a.{name}"
        assert lens.path() == (GetItemOrAttribute(item_or_attribute="a"), GetItemOrAttribute(item_or_attribute=name))
        assert lens.get({"a": {name: 5}}) == [5]
        assert lens.b.get({"a": {name: {"b": 5}}}) == [5]
        assert lens[0]({"a": {name: [5]}}) == [5]
        assert lens.selector() == Selector(f"a.{name}")
        assert len(lens) == 2
    assert Lens().a[name]({"a": {name: 5}}) == [5]


def test_a_method_name_called_at_once_is_the_method() -> None:
    assert [
        *("collect", "of_string", "get", "get_sole_item", "exists", "existing_prefix", "set", "set_or_append"),
        *("path", "selector", "is_prefix_of", "is_immediate_prefix_of"),
    ] == METHODS
    data = {"a": [1, 2]}
    assert Lens().a.collect()(data) == [[[1, 2]]]
    assert Lens().a.get(data) == Lens.get(Lens().a, data) == [[1, 2]]
    assert Lens().a.get_sole_item(data) == [1, 2]
    assert str(Lens().a[5].b.existing_prefix(data)) == "a"
    assert Lens().a.set(data, 3) == {"a": 3}
    assert Lens().a.set_or_append(data, 3) == {"a": [1, 2, 3]}
    assert Lens().b.c.set_or_append(data, 3) == {"a": [1, 2], "b": {"c": [3]}}
    assert Lens().is_prefix_of(Lens().a)
    assert Lens().get.set.is_immediate_prefix_of(Lens().get.set.a)
    with pytest.raises(TypeError, match="collect"):
        Lens().a.collect(data)


@pytest.mark.parametrize("name", ["__wrapped__", "__array__", "__iter__x__", "__deepcopy"])
def test_names_reserved_by_python_are_keys_not_steps(name: str) -> None:
    if name.endswith("__"):
        with pytest.raises(AttributeError, match=r"reserved by Python; to select a key of this name write \['__"):
            getattr(Lens(), name)
    assert Lens()[name]({name: 1}) == [1]
    assert Lens.of_string(str(Lens()[name])) == Lens()[name]


def test_a_lens_is_copied_and_pickled_but_not_iterated() -> None:
    lens = Lens().a.get[1:2]["b c"]
    assert copy.copy(lens) == copy.deepcopy(lens) == pickle.loads(pickle.dumps(lens)) == lens
    assert pickle.loads(pickle.dumps(Lens().a.get)).get({"a": {"get": 1}}) == [1]
    with pytest.raises(TypeError, match="not iterable"):
        iter(lens)
    with pytest.raises(TypeError, match="not"):
        _ = 1 in lens
    with pytest.raises(AttributeError):
        lens.a = 1  # type: ignore[misc]
    assert lens != str(lens)
    assert Lens().a + Lens().b[0] == Lens().a.b[0]
    assert Lens().a + GetIndex(index=0) == Lens().a[0]


# Texts


def test_steps_are_listed_as_classes() -> None:
    lens = Lens.of_string("a['b'][0][1:][0,1]['c','d'].collect()")
    assert lens.path() == (
        GetItemOrAttribute(item_or_attribute="a"),
        GetItem(item="b"),
        GetIndex(index=0),
        GetSlice(start=1),
        GetIndices((0, 1)),
        GetItems(("c", "d")),
        Collect(),
    )
    assert Lens(lens.path()) == lens
    assert Lens((GetAttribute(attribute="a"),)) == Lens().a


def test_a_name_goes_through_a_list_and_a_key_does_not() -> None:
    data = {"a": [{"b": 1}, {"b": 2}]}
    assert Lens.of_string("a.b")(data) == Lens().a["b"](data) == [1, 2]
    with pytest.raises(DataError, match="a is a list of 2 without 'b'"):
        Lens.of_string("a['b']")(data)


@pytest.mark.parametrize(
    "text",
    [
        *("a + b", "a b", " a", "a()", "collect()", "a.collect(1)", "a..b", "a[", "a[x]", "a[1.5]", "a[None]", "[]"),
        *("$.a", "$", "a.*", "a[*]", "a[?@.b]", "a[0,'x']", "a[0,1:2]", "'a'", "a-b", "a.", ".", "a[::0]"),
    ],
)
def test_text_that_is_not_a_lens_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        Lens.of_string(text)


@pytest.mark.parametrize(
    "item", [None, 1.5, True, b"a", (), [], ("a", 0), (0, slice(1)), slice(0, 1, 0), slice("a"), ...]
)
def test_an_invalid_step_is_refused(item: Any) -> None:
    with pytest.raises(SpecError, match="is not a step: use a string, an integer") as refused:
        _ = Lens().a[item]
    assert isinstance(refused.value, TypeError)


@pytest.mark.parametrize("path", ["a.b", ["a"], [0]])
def test_the_constructor_takes_only_steps(path: Any) -> None:
    with pytest.raises(SpecError, match=r"Lens\.of_string"):
        Lens(path)


@pytest.mark.parametrize("lenses", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_lenses_are_printed_and_read_as_the_same(lenses: int) -> None:
    chance = random.Random(0)
    keys = [
        "",
        ".",
        "a.b",
        "it's",
        '"',
        "\\",
        "0",
        "é",
        " ",
        "get",
        "class",
        "__x__",
        "collect()",
        "[0]",
        "a\nb",
        "$",
        "🙂",
    ]
    for _ in range(lenses):
        lens = Lens()
        for _ in range(chance.randrange(6)):
            key = chance.choice([*keys, "".join(chance.choices("a.'\"[] 0\\", k=3))])
            place = chance.choice([0, 3, -1])
            step = chance.choice([key, key, place, (key, "b"), (place, 1), slice(place), slice(None, None, -1), None])
            lens = lens.collect() if step is None else lens[step] if chance.random() < 0.8 else lens + GetItem(item=key)
        read = Lens().of_string(str(lens))
        assert read == lens == Lens.of_string(str(lens))
        assert read.path() == lens.path()
        assert eval(repr(lens), {"Lens": Lens}) == lens


# Errors


@pytest.mark.parametrize(
    ("lens", "kind", "message"),
    [
        (Lens().b, KeyError, "b: $ has no 'b'"),
        (Lens().a[2], IndexError, "a[2]: a is a list of 2 without 2"),
        (Lens().a[0].k, ValueError, "a[0].k: a[0] is a number, which has no 'k'"),
        (Lens().a[:].k, ValueError, "a[:].k: a[:], value 1 of 2, is a number, which has no 'k'"),
    ],
)
def test_a_missing_value_is_also_a_builtin_error(lens: Lens, kind: type[Exception], message: str) -> None:
    for select in (lens, Lens.get, Lens.get_sole_item):
        with pytest.raises(kind) as missing:
            select(*(() if select is lens else (lens,)), {"a": [1, 2]})
        assert isinstance(missing.value, DataError)
        assert str(missing.value) == message
    assert not lens.exists({"a": [1, 2]})


def test_get_sole_item_refuses_several_values() -> None:
    with pytest.raises(ValueError, match=r"a\[:\]: 2 values where one is needed"):
        Lens().a[:].get_sole_item({"a": [1, 2]})


# Roots, and all paths


def test_roots_are_removed_and_added() -> None:
    assert Select.dequalify(Select.RecordCall.args) == Lens().calls[-1].args
    assert Select.dequalify(Select.Example) == Lens()
    assert Select.dequalify(Lens().a) == Lens().a
    assert Select.dequalify(Lens()) == Lens()
    assert Select.dequalify(Lens()[0]) == Lens()[0]
    assert Select.for_record(Lens().a) == Select.Record.a
    assert Select.for_app(Lens().a) == Select.App.a


def test_a_path_to_a_method_is_split_from_its_name() -> None:
    assert Select.path_and_method(Select.RecordCalls.retriever.get) == (Select.RecordCalls.retriever, "get")
    for lens in (Lens(), Lens().a[0]):
        with pytest.raises(SpecError, match=r"^Lens\(\).*: the last step must be the name of a method"):
            Select.path_and_method(lens)


def test_every_value_of_data_has_a_path() -> None:
    data = {"a": [1, {"b c": None}], "get": {}, "": "text"}
    texts = ["", "a", "a[0]", "a[1]", "a[1].'b c'", "get", ".''"]
    assert list(map(str, all_queries(data))) == texts
    for lens, value in all_objects(data):
        assert lens.get_sole_item(data) is value


@pytest.mark.slow
def test_all_public_names_load_and_others_are_refused() -> None:
    assert set(trulens.__all__) <= set(dir(trulens))
    for name in trulens.__all__:
        assert getattr(trulens, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Lense'"):
        _ = trulens.Lense
