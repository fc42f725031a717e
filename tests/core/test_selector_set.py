"""What a change at a path leaves as it is: the types of mappings and objects on its way."""

from __future__ import annotations

import math
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, ConfigDict

from evaluand.core.errors import DataError
from evaluand.core.selector import Selector


class Counted(dict[str, Any]):
    """A dict with an attribute of its own."""

    note = "none"


class Shelf(MutableMapping[str, Any]):
    """A mapping whose general copy would share its items."""

    def __init__(self, items: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.items_ = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self.items_[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.items_[key] = value

    def __delitem__(self, key: str) -> None:
        del self.items_[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_)

    def __len__(self) -> int:
        return len(self.items_)


class Odd(Shelf):
    """A mapping that cannot be made of its items."""

    def __init__(self, name: str, items: Mapping[str, Any]) -> None:
        super().__init__(items)


KINDS: dict[str, Callable[[dict[str, Any]], Mapping[str, Any]]] = {
    "OrderedDict": OrderedDict,
    "defaultdict": lambda items: defaultdict(list, items),
    "Counted": Counted,
    "UserDict": UserDict,
    "mappingproxy": MappingProxyType,
    "Shelf": Shelf,
}


@given(
    st.sampled_from(sorted(KINDS)),
    st.dictionaries(st.text("abc", max_size=2), st.integers() | st.just(math.nan), max_size=4),
    st.text("abc", max_size=2),
    st.sampled_from(["{}", "x.{}", "x.y.{}", "*"]),
)
def test_a_mapping_on_the_path_keeps_its_type_and_order_and_the_original_stays(
    kind: str, items: dict[str, Any], key: str, path: str
) -> None:
    before = KINDS[kind](items)
    where = Selector.of(*["x"] * (path == "x.{}"), *["x", "y"] * (path == "x.y.{}"), key)
    nested = {"{}": before, "x.{}": {"x": before}, "x.y.{}": {"x": KINDS[kind]({"y": before})}}
    if path == "*":
        after, expected = Selector("$[*]").set(before, 0), dict.fromkeys(items, 0)
    else:
        changed = where.set(nested[path], 0)
        after = changed if path == "{}" else changed["x"] if path == "x.{}" else changed["x"]["y"]
        expected = {**items, key: 0}
    assert type(after) is type(before)
    assert list(after.items()) == list(expected.items())
    assert list(before.items()) == list(items.items())
    assert getattr(after, "default_factory", None) is getattr(before, "default_factory", None)


def test_attributes_of_a_mapping_are_kept() -> None:
    before = Counted(a=1)
    before.note = "mine"
    after = Selector("a").set(before, 2)
    assert (after, after.note, before["a"]) == ({"a": 2}, "mine", 1)


def test_a_mapping_that_cannot_be_made_again_becomes_a_dict() -> None:
    before = Odd("odd", {"a": 1})
    after = Selector("a").set(before, 2)
    assert type(after) is dict
    assert (after, before["a"]) == ({"a": 2}, 1)


def test_frozen_objects_are_changed_in_a_copy() -> None:
    class Model(BaseModel):
        model_config = ConfigDict(frozen=True)
        inner: dict[str, int]

    @dataclass(frozen=True)
    class Box:
        model: Model
        derived: int = field(default=1, init=False)

    before = Box(Model(inner=OrderedDict(a=1)))
    after = Selector("model.inner.a", objects=True).set(before, 2)
    assert (after, before) == (Box(Model(inner={"a": 2})), Box(Model(inner={"a": 1})))
    with pytest.raises(DataError, match="derived"):
        Selector("derived", objects=True).set(before, 2)
