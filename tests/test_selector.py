"""Paths into JSON-like data: what they select, where they stop being paths, and how far they lead."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluand.errors import DataError, SpecError
from evaluand.selector import Selector

DATA = {
    "a": {"b": [10, 20, {"c": 30}], "b c": 1, "": 2, "0": 3},
    "a.b": {"c": 4},
    "$x": 5,
    "it's": 6,
    "none": None,
    "list": [],
    "text": "abc",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", DATA),
        ("a.b[0]", 10),
        ("$.a.b[0]", 10),
        ("$['a'].b[-1].c", 30),
        ("a.b[2]['c']", 30),
        ('a["b"][1]', 20),
        ("a.b c", 1),
        ("a['b c']", 1),
        ("a['']", 2),
        ("a.0", 3),
        ("['a.b'].c", 4),
        ("$['a.b']['c']", 4),
        ("$x", 5),
        ("$['$x']", 5),
        ('$["it\'s"]', 6),
        ("none", None),
        ("list", []),
    ],
)
def test_a_path_selects_one_value(path: str, value: Any) -> None:
    assert Selector(path).get(DATA) == value


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$", ()),
        ("a", ("a",)),
        (".a", ("a",)),
        ("[0][-1]", (0, -1)),
        ("$[0].a", (0, "a")),
        ("a.b[0]['c.d'].e", ("a", "b", 0, "c.d", "e")),
        ("$$.a", ("$$", "a")),
    ],
)
def test_both_ways_of_writing_give_the_same_steps(path: str, steps: tuple[str | int, ...]) -> None:
    assert Selector(path).steps == steps


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("a..b", "..b"),
        ("a.", "."),
        ("$.", "."),
        ("a[", "["),
        ("a[0", "[0"),
        ("a[x]", "[x]"),
        ("a[1.5]", "[1.5]"),
        ("a[0]b", "b"),
        ("a['b", "['b"),
        ("a['b\"]", "['b\"]"),
        ("a[:]", "[:]"),
        ("a]", "]"),
        ("it's", "'s"),
        ("[]", "[]"),
    ],
)
def test_text_that_is_no_path_is_refused_where_it_stops_being_one(path: str, rest: str) -> None:
    with pytest.raises(SpecError) as refused:
        Selector(path)
    assert f"{path!r} is no path at {rest!r}" in str(refused.value)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(SpecError, match=r"write \$ for the whole"):
        Selector("")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("b", "b: $ has no 'b'"),
        ("a.bb.c", "a.bb.c: $.a has no 'bb' (did you mean 'b'?)"),
        ("a.b[3]", "a.b[3]: $.a.b is a list of 3 without 3"),
        ("a.b[-4]", "a.b[-4]: $.a.b is a list of 3 without -4"),
        ("a.b[2].d.e", "a.b[2].d.e: $.a.b[2] has no 'd'"),
        ("a.b.c", "a.b.c: $.a.b is a list of 3 without 'c'"),
        ("a[0]", "a[0]: $.a has no 0"),
        ("none.x", "none.x: $.none is a NoneType, which has no 'x'"),
        ("text[0]", "text[0]: $.text is a str, which has no 0"),
        ("a.b[0].c", "a.b[0].c: $.a.b[0] is an int, which has no 'c'"),
        ("list[0]", "list[0]: $.list is a list of 0 without 0"),
    ],
)
def test_a_path_that_leads_nowhere_says_how_far_it_leads(path: str, message: str) -> None:
    with pytest.raises(DataError) as missing:
        Selector(path).get(DATA)
    assert str(missing.value).startswith(message)


def test_the_prefix_that_exists_is_itself_a_path_to_what_is_there() -> None:
    with pytest.raises(DataError, match=r"has no 'd'") as missing:
        Selector("['a.b'].d").get(DATA)
    prefix = str(missing.value).split(": ", 1)[1].split(" has no ")[0]
    assert Selector(prefix).get(DATA) == {"c": 4}


def test_any_mapping_and_any_sequence_can_be_walked() -> None:
    assert Selector("a[1].b").get(MappingProxyType({"a": (0, {"b": 1})})) == 1


def test_nothing_but_data_is_walked() -> None:
    class Thing:
        secret = 1

    for value in (Thing(), "text", b"bytes", {1, 2}):
        with pytest.raises(DataError):
            Selector("secret").get(value)
        with pytest.raises(DataError):
            Selector("[0]").get(value)


def quoted(key: str) -> str | None:
    """A key in brackets, in the kind of quotes that it leaves possible."""
    return next((f"[{mark}{key}{mark}]" for mark in ("'", '"') if f"{mark}]" not in key), None)


@given(st.lists(st.text().filter(lambda key: quoted(key) is not None) | st.integers(0, 3), min_size=1, max_size=5))
def test_quoted_keys_of_any_characters_find_their_value(steps: list[str | int]) -> None:
    value: Any = "found"
    for step in reversed(steps):
        value = {step: value} if isinstance(step, str) else [None] * step + [value]
    text = "".join(f"[{step}]" if isinstance(step, int) else str(quoted(step)) for step in steps)
    for path in (text, f"${text}"):
        selector = Selector(path)
        assert selector.steps == tuple(steps)
        assert selector.get(value) == "found"


@given(st.text())
def test_any_text_is_a_path_or_refused_as_one(text: str) -> None:
    try:
        selector = Selector(text)
    except SpecError:
        return
    assert all(isinstance(step, str | int) for step in selector.steps)


def test_equal_paths_are_equal_selectors() -> None:
    assert Selector("a.b") == Selector("a.b")
    assert len({Selector("a.b"), Selector("a.b"), Selector("a")}) == 2
