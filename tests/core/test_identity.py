"""The canonical encoding: what it keeps, what it refuses, and the digests, ids and seeds made from it."""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import hashlib
import json
import math
import uuid
from collections import OrderedDict, UserDict
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pydantic
import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import DataError
from evaluand.core.identity import DIGEST_SIZE, artifact_id, decode, digest, digest_of_digests, encode, seed_of

ZONES = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=30)), dt.timezone(dt.timedelta(hours=-11))])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**200), max_value=2**200),
    st.floats(),
    st.text(),
    st.binary(),
    st.datetimes(),
    st.datetimes(timezones=ZONES),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
)
KEYS = st.one_of(
    st.text(),
    st.text(max_size=4).map("$".__add__),
    st.sampled_from(["$", "$$", "$float", "$$float", "$int", "$bytes", "$datetime", "$unknown"]),
)
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    YES = "yes"


class Level(enum.IntEnum):
    LOW = 1


class Mixed(str, enum.Enum):  # noqa: UP042 - how it was written before Python 3.11
    A = "a"


@dataclass(frozen=True)
class Point:
    x: int
    y: Any = None


class Answer(pydantic.BaseModel):
    text: str
    sure: float = 0.5


def same(one: Any, other: Any) -> bool:
    """Equal with equal types; NaN is itself, -0.0 is not 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (one != one and other != other) or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return bool(one == other)


def shuffled(value: Any) -> Any:
    """The same data with every object's keys in reverse order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@given(DATA)
def test_decoding_gives_back_what_was_encoded(value: Any) -> None:
    assert same(decode(encode(value)), value)
    assert same(decode(encode(value).decode()), value)


@given(DATA)
def test_the_text_is_json_and_encoding_it_again_changes_nothing(value: Any) -> None:
    text = encode(value)
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert encode(decode(text)) == text


@given(DATA)
def test_the_order_of_keys_is_irrelevant(value: Any) -> None:
    assert encode(shuffled(value)) == encode(value)
    assert digest(shuffled(value)) == digest(value)


@given(DATA, DATA)
def test_texts_are_the_same_only_where_values_are(one: Any, other: Any) -> None:
    assert (encode(one) == encode(other)) == same(one, other)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [None, True]}, '{"a":[null,true],"b":1}'),
        (float("nan"), '{"$float":"NaN"}'),
        (float("inf"), '{"$float":"Infinity"}'),
        (float("-inf"), '{"$float":"-Infinity"}'),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1.5e300, "1.5e+300"),
        (0.00001, "0.00001"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (2**63 - 1, "9223372036854775807"),
        (-(2**63), "-9223372036854775808"),
        (2**63, '{"$int":"9223372036854775808"}'),
        (b"\x00\xff", '{"$bytes":"AP8="}'),
        (dt.date(2024, 2, 29), '{"$date":"2024-02-29"}'),
        (dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC), '{"$datetime":"2024-02-29T01:02:03.000004+00:00"}'),
        (dt.time(1, 2), '{"$time":"01:02:00"}'),
        (dt.timedelta(seconds=-1), '{"$microseconds":"-1000000"}'),
        (Decimal("1.10"), '{"$decimal":"1.10"}'),
        (uuid.UUID(int=1), '{"$uuid":"00000000-0000-0000-0000-000000000001"}'),
        ({"$float": "NaN"}, '{"$$float":"NaN"}'),
        ({"$$x": 1}, '{"$$$x":1}'),
        ({"$float": 1, "x": 2}, '{"$float":1,"x":2}'),
        ("é\u2028", '"é\u2028"'),
    ],
)
def test_the_written_form_is_fixed(value: Any, text: str) -> None:
    assert encode(value).decode() == text


def test_equal_numbers_of_different_types_are_different_values() -> None:
    texts = {encode(value) for value in (1, 1.0, True, "1", Decimal(1), b"1")}
    assert len(texts) == 6
    assert encode(0.0) != encode(-0.0)
    assert encode(Decimal("1.0")) != encode(Decimal("1.00"))
    assert encode(None) != encode("null")
    assert encode([]) != encode({})


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, (2,)), [1, [2]]),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (UserDict(a=1), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Colour.RED, "red"),
        (Word.YES, "yes"),
        (Level.LOW, 1),
        ({Word.YES: 1}, {"yes": 1}),
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (Answer(text="a"), {"text": "a", "sure": 0.5}),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64("nan"), float("nan")),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(["a", None], dtype=object), ["a", None]),
        (pa.scalar(3), 3),
        (bytearray(b"x"), b"x"),
        (pd.Timestamp("2024-01-02T03:04:05.000006"), dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
    ],
)
def test_what_stands_for_plain_data_is_encoded_as_such(value: Any, plain: Any) -> None:
    assert encode(value) == encode(plain)


def test_a_key_that_is_a_member_of_a_text_enum_is_its_value_as_it_is_elsewhere() -> None:
    assert encode({Mixed.A: Mixed.A}) == b'{"a":"a"}'


@pytest.mark.parametrize(
    ("value", "path", "word"),
    [
        (object(), "$", "object"),
        ({"a": [0, {1, 2}]}, "$.a[1]", "set"),
        ({"a": {"b": lambda: 0}}, "$.a.b", "function"),
        ([[], [iter([])]], "$[1][0]", "iterator"),
        ({"a": 1j}, "$.a", "complex"),
        ({"a": {1: 2}}, "$.a", "the key 1"),
        ({None: 2}, "$", "the key None"),
        ({"a": Point(1, object())}, "$.a.y", "object"),
        ({"a": np.longdouble(1)}, "$.a", "longdouble|float128"),
    ],
)
def test_what_is_no_data_is_refused_by_its_path(value: Any, path: str, word: str) -> None:
    with pytest.raises(DataError, match=word) as refused:
        encode(value)
    assert str(refused.value).startswith(f"{path}: ")


def test_a_class_is_refused_where_its_instances_are_data() -> None:
    with pytest.raises(DataError):
        encode({"a": Point})
    with pytest.raises(DataError):
        encode({"a": Answer})


@pytest.mark.parametrize("value", ["\ud800", {"a": ["\udfff"]}, {"\ud800": 1}])
def test_text_that_cannot_be_written_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="surrogates"):
        encode(value)


def test_nesting_too_deep_to_be_written_is_refused_as_data_however_deep_it_is() -> None:
    for depth in (300, 5_000, 100_000):
        value: Any = 1
        for _ in range(depth):
            value = [value]
        with pytest.raises(DataError):
            encode(value)


def test_data_that_contain_themselves_are_refused() -> None:
    value: dict[str, Any] = {}
    value["self"] = [value]
    with pytest.raises(DataError):
        encode(value)


@pytest.mark.parametrize("value", [pd.NaT, np.datetime64("NaT", "ns")])
def test_no_time_is_never_written_as_some_time(value: Any) -> None:
    try:
        text = encode(value)
    except DataError:
        return
    assert decode(text) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pd.Timestamp("2024-01-01T00:00:00.000000001"), pd.Timestamp("2024-01-01T00:00:00.000000002")),
        (np.datetime64("2024-01-01", "ns"), np.datetime64("2024-01-01", "ns").astype(np.int64)),
    ],
)
def test_times_finer_than_microseconds_are_kept_apart_or_refused(one: Any, other: Any) -> None:
    with contextlib.suppress(DataError):
        assert encode(one) != encode(other)


def test_a_digest_is_sixteen_bytes_that_never_change() -> None:
    assert len(digest({"a": 1})) == DIGEST_SIZE == 16
    text = b'{"a":[1,2.5,null],"b":"\xc3\xa9"}'
    assert digest({"b": "é", "a": [1, 2.5, None]}) == hashlib.blake2b(text, digest_size=16).digest()
    assert digest({"b": "é", "a": [1, 2.5, None]}).hex() == "90adee927e01caf39ef9781e1c85a688"


def test_a_digest_of_digests_knows_their_order_and_number() -> None:
    a, b = digest("a"), digest("b")
    assert digest_of_digests([a, b]) == digest_of_digests(iter([a, b]))
    assert len({digest_of_digests(parts) for parts in ([], [a], [a, b], [b, a], [a, a])}) == 5


def test_an_id_differs_by_kind_spec_and_attempt() -> None:
    spec = {"task": "t", "seed": 0}
    ids = [
        artifact_id("runs", spec),
        artifact_id("runs", spec, attempt=1),
        artifact_id("runs", spec | {"seed": 1}),
        artifact_id("evaluations", spec),
    ]
    assert len(set(ids)) == 4
    assert all(len(id) == 32 and int(id, 16) >= 0 for id in ids)
    assert artifact_id("runs", {"seed": 0, "task": "t"}) == ids[0]


@given(st.integers(min_value=0, max_value=2**63), st.binary(min_size=16, max_size=16), st.integers(0, 1000))
def test_a_seed_is_a_function_of_seed_example_and_replication(seed: int, example: bytes, replication: int) -> None:
    value = seed_of(seed, example, replication)
    assert 0 <= value < 2**63
    assert value == seed_of(seed, example, replication)
    others = (seed_of(seed + 1, example, replication), seed_of(seed, example, replication + 1))
    assert value not in others
    assert value != seed_of(seed, bytes(16) if example != bytes(16) else b"x" * 16, replication)
