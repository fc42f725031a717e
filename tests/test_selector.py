"""Paths into JSON-like data: what they select, where they stop being paths, and how far they lead."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluand.errors import DataError, SpecError
from evaluand.selector import Selector
from evaluand.selector.steps import Step, printed, quoted

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
        ("a...b", "...b"),
        ("a.", "."),
        ("$.", "."),
        ("a[", "["),
        ("a[0", "[0"),
        ("a[x]", "[x]"),
        ("a[1.5]", "[1.5]"),
        ("a[0]b", "b"),
        ("a['b", "['b"),
        ("a['b\"]", "['b\"]"),
        ("a[::0]", "[::0]"),
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
        ("none.x", "none.x: $.none is null, which has no 'x'"),
        ("text[0]", "text[0]: $.text is a text, which has no 0"),
        ("a.b[0].c", "a.b[0].c: $.a.b[0] is a number, which has no 'c'"),
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


@given(st.lists(st.text() | st.integers(0, 3), min_size=1, max_size=5))
def test_quoted_keys_of_any_characters_find_their_value(steps: list[str | int]) -> None:
    value: Any = "found"
    for step in reversed(steps):
        value = {step: value} if isinstance(step, str) else [None] * step + [value]
    text = "".join(f"[{step}]" if isinstance(step, int) else f"[{quoted(step)}]" for step in steps)
    for path in (text, f"${text}"):
        selector = Selector(path)
        assert selector.steps == tuple(steps)
        assert selector.get(value) == "found"
        assert selector.find(value) == ["found"]


@given(st.text())
def test_any_text_is_a_path_or_refused_as_one(text: str) -> None:
    try:
        selector = Selector(text)
    except SpecError:
        return
    assert isinstance(selector.find(DATA), list)


def test_equal_paths_are_equal_selectors() -> None:
    assert Selector("a.b") == Selector("a.b")
    assert len({Selector("a.b"), Selector("a.b"), Selector("a")}) == 2


# Paths to any number of values

ROWS = {
    "k": 0,
    "x": [
        {"k": 1, "n": 3, "ok": True, "s": "a"},
        {"k": 2, "n": 1.5, "ok": False, "s": "b"},
        {"k": 3, "ok": 1, "deep": {"k": 4, "list": [5, [6]]}},
    ],
    "limit": 2,
    "o": {"p": 7, "q": 8},
    "codes": {"0": "zero"},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$.x[*].k", [1, 2, 3]),
        ("x[*].k", [1, 2, 3]),
        ("$.x.*.k", [1, 2, 3]),
        ("$.o.*", [7, 8]),
        ("$.o[*]", [7, 8]),
        ("$.k[*]", []),
        ("$..k", [0, 1, 2, 3, 4]),
        ("$.x[2]..k", [3, 4]),
        ("$..[0]", [ROWS["x"][0], 5, 6]),  # type: ignore[index]
        ("$.o..*", [7, 8]),
        ("$.x[2].deep..*", [4, [5, [6]], 5, [6], 6]),
        ("$.x[1:].k", [2, 3]),
        ("$.x[:-1].k", [1, 2]),
        ("$.x[::-1].k", [3, 2, 1]),
        ("$.x[:].k", [1, 2, 3]),
        ("$.x[ 0 , -1 ].k", [1, 3]),
        ("$['k', 'limit']", [0, 2]),
        ("$.x[0]['s','n','none']", ["a", 3]),
        ("$.x[9]", []),
        ("$.none", []),
        ("$.codes.0", ["zero"]),
        ("$.x[?@.n].k", [1, 2]),
        ("$.x[?(@.n > 2)].k", [1]),
        ("$.x[?@.n >= $.limit || @.s == 'b'].k", [1, 2]),
        ("$.x[?@.ok == true].k", [1]),
        ("$.x[?@.ok == 1].k", [3]),
        ('$.x[?@.s != "a" && !@.n].k', [3]),
        ("$.x[?!(@.s == 'a' || @.s == 'b')].k", [3]),
        ("$.x[?@.none == @.nothing].k", [1, 2, 3]),
        ("$.x[?@.s < 'b'].k", [1]),
        ("$.x[?@.s <= 2].k", []),
        ("$.x[?@.deep.list[?@ == 5]].k", [3]),
        ("$.o[?@ == 8]", [8]),
        ("$[?@ == 2]", [2]),
        ("$.x[?length(@) == 4].k", [1, 2]),
        ("$.x[?length(@.s) == 1].k", [1, 2]),
        ("$.x[?length(@.n) == length(@.none)].k", [1, 2, 3]),  # both are nothing
        ("$.x[?count(@.*) > 3].k", [1, 2]),
        ("$.x[?count(@..k) == 2].k", [3]),
        ("$.x[?value(@..list[0]) == 5].k", [3]),
        ("$.x[?value(@..k) == 3].k", []),  # there are two
        ("$.x[?match(@.s, '[ab]')].k", [1, 2]),
        ("$.x[?!match( @.s , 'a' )].k", [2, 3]),
        ("$[?match(@.p, 'x') || search(@['0'], 'er')]['0']", ["zero"]),
        ("$.codes[?match(@, 'er')]", []),
        ("$.codes[?search(@, 'z.r') && length(@) >= 4]", ["zero"]),
        ("$.x[?match(@.s, $.k)].k", []),
    ],
)
def test_a_path_selects_all_that_fit(path: str, values: list[Any]) -> None:
    assert Selector(path).find(ROWS) == values


def test_a_dot_of_a_pattern_stands_for_no_line_break_and_a_pattern_of_the_data_that_is_none_fits_nothing() -> None:
    data = {"t": ["a\nb", "a\rb", "a.b", "axb"], "p": "(", "q": "a[.]b"}
    assert Selector("$.t[?match(@, 'a.b')]").find(data) == ["a.b", "axb"]
    assert Selector("$.t[?match(@, 'a\\\\.b')]").find(data) == ["a.b"]
    assert Selector("$.t[?match(@, $.p)]").find(data) == []
    assert Selector("$.t[?match(@, $.q)]").find(data) == ["a.b"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("$[?lenght(@.a) > 1]", "no function is called 'lenght' (did you mean 'length'?); there are length, count,"),
        ("$[?length(@.a)]", "length(…) is a value; compare it, as in length(@.a) > 1"),
        ("$[?match(@.a, 'b') == true]", "match(…) is true or false by itself; compare it with nothing"),
        ("$[?count('a') > 1]", "count takes a path"),
        ("$[?search(@.a)]", "search takes a text and a pattern"),
        ("$[?length(@.a, @.b) > 1]", "length takes a value"),
        ("$[?match(@.a, '(')]", "'(' is no pattern of Python: missing )"),
        ("$[?length(@.a", "length takes a value"),
        ("$[?" + "length(" * 100 + "@" + ")" * 100 + " > 1]", "a filter is a test of values"),
    ],
)
def test_a_function_that_is_not_used_as_it_must_be_is_refused_with_why(path: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        Selector(path)
    assert message in str(refused.value)


def test_one_value_of_many_is_asked_for_in_vain() -> None:
    assert Selector("$.x[?@.k == 2].s").get(ROWS) == "b"
    assert not Selector("$.x[*]").singular
    with pytest.raises(DataError, match=r"\$\.x\[\*\]: 3 values where one is needed"):
        Selector("$.x[*]").get(ROWS)
    with pytest.raises(DataError, match=r"no values where one is needed"):
        Selector("$.x[5:]").get(ROWS)


@pytest.mark.parametrize(
    "path",
    [
        *("$.", "$..", "$x[", "$.a b", "$.index/rank", "$[?]", "$[?@.a ==]", "$[?'a']", "$[?(@.a]", "$[1,]"),
        *("$[01]", "$['a\\q']", "$[?@.a = 1]", "$.a[1:2:0]", "$.*a", "$[*", "$[]"),
        *("$[?" + "(" * 2000, "$[?" + "!" * 2000 + "@"),
    ],
)
def test_a_jsonpath_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(SpecError, match="is no path at"):
        Selector(path)


@pytest.mark.parametrize(
    ("path", "same"),
    [
        ("$[x]", "$['x']"),
        ("$.a[x][0]", "$.a['x'][0]"),
        ("$[ a-b , 'c' ]", "$['a-b','c']"),
        ("$..[k]", "$..k"),
        ("$[?@[ok] == true]", "$[?@.ok == true]"),
        ("$ .a", "$.a"),
        ("$.a [0]\n.b", "$.a[0].b"),
        ("$[?@ .ok == true]", "$[?@.ok == true]"),
    ],
)
def test_a_name_in_brackets_and_blanks_before_a_step_are_taken(path: str, same: str) -> None:
    data = {"x": 1, "a": {"x": [{"b": 2}], "a-b": 3}, "a-b": 4, "c": {"ok": True, "k": 5}}
    listed = {**data, "a": [{"b": 2}]}
    assert Selector(path).find(data) == Selector(same).find(data)
    assert Selector(path).find(listed) == Selector(same).find(listed)
    assert Selector(path).find(data) or Selector(path).find(listed)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("$.a|$.b", "for several keys write $['a','b']"),
        ("$.a,b", "for several keys write $['a','b']"),
        ("$.`this`", "functions between ` are not known"),
        ("$.a.`len`", "functions between ` are not known"),
        ("$.a.[0]", "no dot stands before a bracket: $.a[0]"),
        ("$. a", "no blank stands after a dot"),
        ("$.a[?(b>1)]", "with @: [?@.score > 0.5]"),
        ("$.a[?@.b = 1]", "with @: [?@.score > 0.5]"),
        ("$.a[(@.length-1)]", "it is no part of RFC 9535"),
        ("$.a where $.b", "it is no part of RFC 9535"),
        ("$.a[\\b]", "it is no part of RFC 9535"),
        ("$.a ", "write it like a.b[0] or $['a.b'].c"),
    ],
)
def test_how_other_libraries_write_a_path_is_refused_with_how_it_is_written_here(path: str, hint: str) -> None:
    with pytest.raises(SpecError, match="is no path at") as refused:
        Selector(path)
    assert hint in str(refused.value)


def test_no_depth_of_data_is_too_deep() -> None:
    value: Any = {"k": 1}
    for _ in range(100_000):
        value = [value]
    assert Selector("$..k").find(value) == [1]


steps_of_all_kinds: st.SearchStrategy[Step] = st.one_of(
    st.text(),
    st.integers(),
    st.sampled_from([Selector(path).steps[0] for path in ("$[*]", "$[1:]", "$[::-2]", "$[1,'a']")]),
)


@given(st.lists(steps_of_all_kinds, max_size=6))
def test_printed_steps_are_read_as_the_same_path(steps: list[Step]) -> None:
    assert Selector("$" + "".join(map(printed, steps))).steps == tuple(steps)
