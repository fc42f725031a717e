"""Paths into JSON-like data: what they select, where they stop being paths, and how far they lead."""

from __future__ import annotations

import copy
import random
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import DataError, SpecError
from evaluand.core.selector import Member, Selector
from evaluand.core.selector.steps import Collect, Descend, Every, Slice, Step, Union, printed, quoted

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
    assert f"{path!r} is not a path at {rest!r}" in str(refused.value)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(SpecError, match=r"write \$ to select everything"):
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
        ("$[?lenght(@.a) > 1]", "no function is called 'lenght' (did you mean 'length'?); known: length, count,"),
        ("$[?length(@.a)]", "length(…) is a value; compare it, as in length(@.a) > 1"),
        ("$[?match(@.a, 'b') == true]", "match(…) is true or false; do not compare it"),
        ("$[?count('a') > 1]", "count takes a path"),
        ("$[?search(@.a)]", "search takes a text and a pattern"),
        ("$[?length(@.a, @.b) > 1]", "length takes one value"),
        ("$[?match(@.a, '(')]", "'(' is not a pattern in the syntax of RE2: missing )"),
        ("$[?length(@.a", "length takes one value"),
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
        *("$[01]", "$['a\\q']", "$[?@.a = 1]", "$.a[1:2:00]", "$.*a", "$[*", "$[]"),
        *("$[?" + "(" * 2000, "$[?" + "!" * 2000 + "@"),
    ],
)
def test_a_jsonpath_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(SpecError, match="is not a path at"):
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
        ("$.`this`", "functions between ` are not supported"),
        ("$.a.`len`", "functions between ` are not supported"),
        ("$.a.[0]", "remove the dot before the bracket: $.a[0]"),
        ("$. a", "remove the blank after the dot"),
        ("$.a[?(b>1)]", "with @: [?@.score > 0.5]"),
        ("$.a[?@.b = 1]", "with @: [?@.score > 0.5]"),
        ("$.a[(@.length-1)]", "this is not part of RFC 9535"),
        ("$.a where $.b", "this is not part of RFC 9535"),
        ("$.a[\\b]", "this is not part of RFC 9535"),
        ("$.a ", "write it like a.b[0] or $['a.b'].c"),
    ],
)
def test_how_other_libraries_write_a_path_is_refused_with_how_it_is_written_here(path: str, hint: str) -> None:
    with pytest.raises(SpecError, match="is not a path at") as refused:
        Selector(path)
    assert hint in str(refused.value)


def test_no_depth_of_data_is_too_deep() -> None:
    value: Any = {"k": 1}
    for _ in range(100_000):
        value = [value]
    assert Selector("$..k").find(value) == [1]


steps_of_all_kinds: st.SearchStrategy[Step] = st.one_of(
    st.text(),
    st.integers(-(2**53 - 1), 2**53 - 1),
    st.sampled_from([Selector(path).steps[0] for path in ("$[*]", "$[1:]", "$[::-2]", "$[1,'a']")]),
)


@given(st.lists(steps_of_all_kinds, max_size=6))
def test_printed_steps_are_read_as_the_same_path(steps: list[Step]) -> None:
    assert Selector("$" + "".join(map(printed, steps))).steps == tuple(steps)


# Texts and steps

AWKWARD = [
    "",
    " ",
    ".",
    "..",
    "$",
    "$.a",
    "*",
    "'",
    '"',
    "\\",
    "\\'",
    "a.b",
    "a b",
    "[0]",
    "0",
    "-1",
    "é",
    "\n",
    "collect()",
]
AWKWARD += ["collect", "get", "__record__", "@", "a-b", "?", ":", ",", "\x00", "\ud800", "🙂", "class", "]", "a" * 300]


def any_step(chance: random.Random) -> Step:
    """A step of any kind, mostly with keys that have to be quoted."""
    key = chance.choice([*AWKWARD, "".join(chance.choices("a.'\"[]$* 0\\", k=chance.randrange(6)))])
    place = chance.choice([0, 1, -1, 2**53 - 1, chance.randrange(-9, 9)])
    sliced = Slice(*(chance.choice([None, place]) for _ in range(2)), chance.choice([None, 1, -2]))
    joined = Union((key, place, sliced, Every()))
    return chance.choice([key, Member(key), Member(key), Member("word"), place, sliced, joined, Every(), Collect()])


@pytest.mark.parametrize("selectors", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_selectors_are_printed_and_read_as_the_same(selectors: int) -> None:
    chance = random.Random(0)
    for _ in range(selectors):
        steps = [any_step(chance) for _ in range(chance.randrange(6))]
        if chance.random() < 0.2:
            steps += [Descend(), chance.choice([*AWKWARD, Member("name"), 0, Every()])]
        selector = Selector.of(*steps)
        read = Selector(str(selector))
        assert read == selector
        assert hash(read) == hash(selector)
        assert str(read) == str(selector)
        assert read.steps == tuple(steps)
        assert list(map(type, read.steps))[:-1] == list(map(type, steps))[:-1]  # a name behind `..` is a key


@given(st.text())
def test_any_text_that_is_a_path_is_printed_as_the_same_path(text: str) -> None:
    try:
        selector = Selector(text)
    except SpecError:
        return
    assert Selector(str(selector)) == selector
    assert Selector(str(selector)).steps == selector.steps


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("a.b[0]", "a.b[0]"),
        ("$['a']['b'][0]", "$.a.b[0]"),
        ("['a']", "$.a"),
        ("a['b']", "a['b']"),
        ("a.b c", "a.'b c'"),
        ("a.'b.c'", "a.'b.c'"),
        ("a.*[1:2]", "a[*][1:2:]"),
        ("a..b", "a..['b']"),
        ("$..['b c']", "$..['b c']"),
        ("$[ ? @.a > 1 ].b", "$[?@.a > 1].b"),
        ("a[?@.b]", "a[?@.b]"),
        ("a[:].collect()", "a[:].collect()"),
        ("$.collect()", "$.collect()"),
        (".collect()", "$.collect()"),
        ("collect()", ".'collect()'"),
    ],
)
def test_a_path_has_one_canonical_text(path: str, canonical: str) -> None:
    assert str(Selector(path)) == canonical
    assert Selector(canonical) == Selector(path)


def test_a_name_is_not_the_same_as_a_key() -> None:
    assert Selector("a.b") != Selector("$.a.b")
    assert Selector("a.b") != Selector("a['b']")
    assert Selector("$.a.b") == Selector("['a']['b']")
    assert Selector("a") != Selector("a", objects=True)
    assert Selector("a") != "a"


@pytest.mark.parametrize("step", [None, 1.5, True, b"a", ("a",), slice(1)])
def test_what_is_no_step_is_refused(step: Any) -> None:
    with pytest.raises(SpecError, match="is not a step"):
        Selector.of("a", step)


@pytest.mark.parametrize(
    "steps",
    [
        (Descend(),),
        (Descend(), Descend(), "a"),
        (Descend(), Collect()),
        (Member("a"), Slice(None, None, 0)),
        (Union(()),),
    ],
)
def test_steps_that_no_text_can_have_are_refused(steps: tuple[Step, ...]) -> None:
    with pytest.raises(SpecError, match="is not a path at"):
        Selector.of(*steps)


def test_a_path_is_a_prefix_of_those_that_begin_as_it_does() -> None:
    path = Selector("a.b[0]")
    for prefix in ("$", "a", "a.b", "a.b[0]"):
        assert Selector(prefix).is_prefix_of(path)
    for other in ("b", "$.a", "a.b[0].c", "a['b']", "a.b[1]"):
        assert not Selector(other).is_prefix_of(path)


# What is demanded of data

CALLS = {
    "query": "q",
    "search": [
        {"args": {"k": 2}, "rets": ["a", "b"]},
        {"args": {"k": 1}, "rets": ["c"], "error": "late"},
    ],
    "nested": [[{"k": 1}], [{"k": 2}, {"j": 3}], 4],
    "none": None,
    "empty": [],
    "object": {},
    "alone": [[{"k": 9}]],
    "number": [1],
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [CALLS]),
        ("query", ["q"]),
        ("search.rets", [["a", "b"], ["c"]]),
        ("search.rets[:]", ["a", "b", "c"]),
        ("search.rets[0]", ["a", "c"]),
        ("search.rets[:].collect()", [["a", "b", "c"]]),
        ("search.rets.collect()", [[["a", "b"], ["c"]]]),
        ("search.rets.collect()[1][0]", ["c"]),
        ("query.collect()", [["q"]]),
        ("empty[:].collect()", [[]]),
        ("search[-1].args['k']", [1]),
        ("search[:].args.k", [2, 1]),
        ("search[::-1].args.k", [1, 2]),
        ("search[1,0].args.k", [1, 2]),
        ("search[0]['rets','args']", [["a", "b"], {"k": 2}]),
        ("search.error", ["late"]),
        ("search.nothing", []),
        ("search.nothing.more[0]", []),
        ("nested.k", [1, 2]),
        ("alone.k", [9]),
        ("empty[:]", []),
        ("empty[:].k", []),
        ("search[5:]", []),
        ("none", [None]),
        ("object[*]", []),
        ("search[?@.error].args.k", [1]),
        ("$..k", [2, 1, 1, 2, 9]),
        ("search..k", [2, 1]),
    ],
)
def test_all_that_is_demanded_is_selected(path: str, values: list[Any]) -> None:
    selector = Selector(path)
    assert selector.select(CALLS) == values
    assert selector.exists(CALLS)
    assert selector.existing(CALLS) == selector


@pytest.mark.parametrize(
    ("path", "existing", "message"),
    [
        ("querry", "$", "querry: $ has no 'querry' (did you mean 'query'?)"),
        ("search[0].args.q", "search[0].args", "search[0].args.q: search[0].args has no 'q'"),
        ("search[:].error", "search[:]", "search[:].error: search[:], value 1 of 2, has no 'error'"),
        ("search[2]", "search", "search[2]: search is a list of 2 without 2"),
        ("search[0,-3]", "search", "search[0,-3]: search is a list of 2 without -3"),
        ("search['rets']", "search", "search['rets']: search is a list of 2 without 'rets'"),
        ("$.search.rets", "$.search", "$.search.rets: $.search is a list of 2 without 'rets'"),
        ("search[0]['rets','ars']", "search[0]", "search[0] has no 'ars' (did you mean 'args'?)"),
        ("search.rets[:].text", "search.rets[:]", "search.rets[:], value 1 of 3, is a text, which has no 'text'"),
        ("search.rets[1]", "search.rets", "search.rets, value 2 of 2, is a list of 1 without 1"),
        ("query[0]", "query", "query[0]: query is a text, which has no 0"),
        ("query.upper", "query", "query.upper: query is a text, which has no 'upper'"),
        ("object[:]", "object", "object[:]: object is an object, which has no [:]"),
        ("none.k", "none", "none.k: none is null, which has no 'k'"),
        ("none[*]", "none", "none[*]: none is null, which has no [*]"),
        ("empty.k", "empty", "empty.k: empty is a list of 0 without 'k'"),
        ("alone.kk", "alone", "alone.kk: alone has no 'kk' (did you mean 'k'?)"),
        ("number.k", "number", "number.k: number is a number, which has no 'k'"),
    ],
)
def test_what_is_missing_is_reported_with_the_longest_path_that_exists(path: str, existing: str, message: str) -> None:
    selector = Selector(path)
    with pytest.raises(DataError) as missing:
        selector.select(CALLS)
    assert message in str(missing.value)
    assert not selector.exists(CALLS)
    assert selector.existing(CALLS) == Selector(existing)


def test_what_is_required_is_had_by_some_element_of_a_list_that_is_not_empty() -> None:
    assert Selector("search.error").require(CALLS) == ["late"]
    assert Selector("empty.k").require(CALLS) == Selector("empty.k.more[0]").require(CALLS) == []
    assert Selector("search.rets[:]").require(CALLS) == Selector("search.rets[:]").select(CALLS)
    with pytest.raises(
        DataError, match=r"search\.erro\[:\]: search is a list of 2 without 'erro' \(did you mean 'error'"
    ):
        Selector("search.erro[:]").require(CALLS)
    with pytest.raises(DataError, match=r"search\[:\], value 1 of 2, has no 'error'"):
        Selector("search[:].error").require(CALLS)


def test_one_value_is_selected_through_lists_where_there_is_one() -> None:
    assert Selector("search.error").sole(CALLS) == "late"
    with pytest.raises(DataError, match=r"search\.rets: 2 values where one is needed"):
        Selector("search.rets").sole(CALLS)
    with pytest.raises(DataError, match=r"empty\[:\]: no values where one is needed"):
        Selector("empty[:]").sole(CALLS)
    with pytest.raises(DataError, match="is a list of 2 without 'error'"):
        Selector("search.error").get(CALLS)
    assert Selector("search.error").find(CALLS) == []


def test_python_objects_are_walked_only_by_selectors_that_are_reported_to() -> None:
    thing = SimpleNamespace(a=1, parts=[SimpleNamespace(b=2), {"b": 3}, 4], __secret=5)
    assert Selector("a", objects=True).select(thing) == [1]
    assert Selector("parts.b", objects=True).select(thing) == [2, 3]
    assert Selector.of(Member("parts"), 0, Member("b"), objects=True).select(thing) == [2]
    assert Selector("t[1]", objects=True).select({"t": "text"}) == ["e"]
    assert Selector("t[1:3]", objects=True).select({"t": "text"}) == ["e", "x"]
    assert Selector("keys", objects=True).select({"keys": 1}) == [1]
    for path in ("a", "parts.b", "parts[0].b"):
        with pytest.raises(DataError):
            Selector(path).select(thing)
    for path in ("__class__", "a.__class__", "__secret", "_SimpleNamespace__secret", "['a']", "aa"):
        with pytest.raises(DataError):
            Selector(path, objects=True).select(thing)
    with pytest.raises(DataError, match="has no 'part' \\(did you mean 'parts'"):
        Selector("part", objects=True).select(thing)


# Setting


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("$", {"a": 1}, 0),
        ("a", {"a": 1, "b": 2}, {"a": 0, "b": 2}),
        ("$.a.b", {}, {"a": {"b": 0}}),
        ("a.b", {"a": None}, {"a": {"b": 0}}),
        ("a[2]", {}, {"a": [None, None, 0]}),
        ("a[0].b", None, {"a": [{"b": 0}]}),
        ("[-1]", [1, 2], [1, 0]),
        ("[1]", (1, 2), [1, 0]),
        ("[0,2]", [1, 2, 3], [0, 2, 0]),
        ("['a','b'].c", {"a": {"c": 1}}, {"a": {"c": 0}, "b": {"c": 0}}),
        ("[1:]", [1, 2, 3], [1, 0, 0]),
        ("[::2]", [1, 2, 3], [0, 2, 0]),
        ("[:]", [], []),
        ("a[:]", {}, {"a": []}),
        ("[:].a", [{"a": 1, "b": 2}, {"c": 3}], [{"a": 0, "b": 2}, {"c": 3, "a": 0}]),
        ("[*]", {"a": 1, "b": 2}, {"a": 0, "b": 0}),
        ("[?@.a > 1].a", [{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 0}]),
        ("a.b", {"a": [{"b": 1}, {}, [{"b": 2}], 5]}, {"a": [{"b": 0}, {"b": 0}, [{"b": 0}], 5]}),
        ("a.b", {"a": [[{}]]}, {"a": [[{"b": 0}]]}),
    ],
)
def test_a_copy_is_changed_at_each_place_of_the_path(path: str, before: Any, after: Any) -> None:
    given = copy.deepcopy(before)
    selector = Selector(path)
    changed = selector.set(given, 0)
    assert changed == after
    assert given == before
    assert selector.exists(changed)
    assert set(selector.select(changed)) <= {0}


def test_what_does_not_lie_on_the_path_is_not_copied() -> None:
    before = {"a": [1], "b": {"c": 1}}
    after = Selector("b.c").set(before, 2)
    assert after["a"] is before["a"]
    assert after["b"] is not before["b"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("query.a", "query.a: query is a text, which has no 'a'"),
        ("query[0]", "query[0]: query is a text, which has no 0"),
        ("search[-3]", "search[-3]: search is a list of 2 without -3"),
        ("search[9000000]", "search is a list of 2 without 9000000"),
        ("search['a']", "search['a']: search is a list of 2 without 'a'"),
        ("object[0]", "object[0]: object has no 0"),
        ("empty.k", "empty.k: empty is a list of 0 without 'k'"),
        ("number.k", "number.k: number is a number, which has no 'k'"),
        ("search.rets.k", "search.rets.k: search.rets is a list of 2 without 'k'"),
        ("search[0].rets[0].a", "search[0].rets[0] is a text, which has no 'a'"),
    ],
)
def test_what_cannot_be_set_is_reported(path: str, message: str) -> None:
    with pytest.raises(DataError) as refused:
        Selector(path).set(CALLS, 0)
    assert message in str(refused.value)


@pytest.mark.parametrize("path", ["$..a", "a[:].collect()"])
def test_nothing_is_set_where_a_path_names_no_places(path: str) -> None:
    with pytest.raises(SpecError, match="which names no places"):
        Selector(path).set({"a": [1]}, 0)


def test_attributes_are_set_in_a_copy_of_the_object() -> None:
    thing = SimpleNamespace(a=SimpleNamespace(b=1), c=2)
    changed = Selector("a.b", objects=True).set(thing, 5)
    assert (changed.a.b, changed.c, thing.a.b) == (5, 2, 1)
    for path, value in (("a.b", thing), ("upper", "text"), ("__class__", thing)):
        with pytest.raises(DataError):
            Selector(path, objects=path != "a.b").set(value, 5)
