"""Any value as data: what is told of it, and what is not."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections import deque
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from evaluand.core.identity import decode, encode
from evaluand.core.json_like import JsonLikeConverter, attributes_of, text_of, to_json_like


class Colour(Enum):
    RED = "red"


class Hidden:
    __slots__ = ("__mangled", "_own", "shown", "unset")

    def __init__(self) -> None:
        self.__mangled, self._own, self.shown = 1, 2, 3


class Below(Hidden):
    def __init__(self) -> None:
        super().__init__()
        self.more = 4

    @property
    def never(self) -> int:
        raise AssertionError("asked for")


class Client:
    def __init__(self, api_key: str) -> None:
        self.api_key, self.url, self.token = api_key, "https://me:word@host/x", "word"


@dataclass
class ClientData:
    api_key: str
    url: str = "https://me:word@host/x"
    token: str = "word"


class ClientModel(BaseModel):
    api_key: str
    url: str = "https://me:word@host/x"
    token: str = "word"


@pytest.mark.parametrize("made", [Client, ClientData, ClientModel])
def test_objects_of_every_shape_are_reported_alike_without_what_can_only_be_a_credential(made: Any) -> None:
    reported = {"api_key": "***", "url": "https://me:***@host/x", "token": "word"}
    assert decode(text_of(made(api_key="sk-1"))) == reported
    assert decode(text_of({"clients": [made(api_key="sk-1"), made(api_key="sk-2")]})) == {
        "clients": [reported, reported]
    }
    headers = SimpleNamespace(options={"headers": {"Authorization": "Bearer x", "token": "word"}})
    assert decode(text_of((headers,))) == [{"options": {"headers": {"Authorization": "***", "token": "word"}}}]


def test_dictionaries_and_texts_are_data_and_reported_as_they_are() -> None:
    value = {"api_key": "x", "text": "https://me:word@host/x", "words": ["Password=word"]}
    assert decode(text_of(value)) == value
    assert decode(text_of(SimpleNamespace(text="see https://me:word@host/x")))["text"] == "see https://me:word@host/x"


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ({1: "a", None: 2}, {"1": "a", "None": 2}),
        ((1, {2}, deque([3])), [1, [2], [3]]),
        (Colour.RED, "red"),
        (Path("a/b"), "a/b"),
        (b"raw", b"raw"),
        (dt.date(2026, 1, 2), dt.date(2026, 1, 2)),
        (ValueError("no"), {"type": "ValueError", "message": "no"}),
        (np.array([1.5, 2.5]), [1.5, 2.5]),
        (len, {"$unstorable": "len"}),
        (Path, {"$unstorable": "Path"}),
        (threading.Lock(), {"$unstorable": "lock"}),
        (Below(), {"shown": 3, "more": 4}),
        ("half \ud800", "half \\ud800"),
        ({"\udc00": Client("x")}, {"\\udc00": {"api_key": "***", "url": "https://me:***@host/x", "token": "word"}}),
        ("https://me:word@host/x", "https://me:word@host/x"),
        (SimpleNamespace(api_key="x", tokens=3, password=None), {"api_key": "***", "tokens": 3, "password": None}),
    ],
)
def test_values_are_reported_as_data(value: Any, reported: Any) -> None:
    assert to_json_like(value) == reported
    assert decode(encode(to_json_like(value))) == to_json_like(value)


def test_keys_are_hidden_where_it_is_asked_for() -> None:
    value = {"access_token": "x", "Authorization": "y", "key": 0, "monkeys": 1, "is_token": True, "pwd": None}
    assert to_json_like(value) == value
    hidden = {"access_token": "***", "Authorization": "***", "key": "***", "monkeys": 1, "is_token": True, "pwd": None}
    assert to_json_like(value, hide=True) == hidden
    assert to_json_like(["a;Password=word;", "https://me:word@host"], hide=True) == [
        "a;Password=***;",
        "https://me:***@host",
    ]


def test_attributes_are_those_that_the_object_holds() -> None:
    assert dict(attributes_of(Below())) == {"more": 4, "_Hidden__mangled": 1, "_own": 2, "shown": 3}


def test_what_is_deep_within_itself_or_large_is_cut_and_says_so() -> None:
    deep: Any = "bottom"
    for _ in range(200):
        deep = [deep]
    looped: list[Any] = []
    looped.append(looped)
    assert "{'$too_large': 'list nested too deeply'}" in str(to_json_like(deep))
    assert to_json_like(looped) == [{"$unstorable": "list within itself"}]
    few = JsonLikeConverter(hide=False, values=10, characters=20)
    assert few.convert({"a": "x" * 15, "b": "y" * 15, "c": list(range(50))}) == {
        "a": "x" * 15,
        "b": {"$too_large": "text of 15 characters"},
        "c": {"$too_large": "list of 50 values"},
    }


def test_data_are_reported_exactly() -> None:
    value = {"nan": math.nan, "big": 2**70, "raw": b"x", "$float": 1, "t": (1, 2)}
    assert text_of(value).encode() == encode(value)


def test_shared_values_are_reported_each_time() -> None:
    shared = {"a": 1}
    assert to_json_like([shared, shared, object]) == [shared, shared, {"$unstorable": "object"}]
