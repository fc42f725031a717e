"""JSONPath as RFC 9535 has it: each rule by a case worked out by hand, and the public compliance suite if present."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import SpecError
from evaluand.core.selector import Selector
from evaluand.core.selector.patterns import contains, matches

LETTERS = ["a", "b", "c", "d", "e", "f", "g"]
STORE = {
    "book": [
        {"title": "Sayings", "price": 8.95, "tags": ["old", "short"]},
        {"title": "Sword", "price": 12.99, "tags": []},
        {"title": "Moby", "price": 8.99, "isbn": "0-553"},
        {"title": "Ring", "price": 22.99, "isbn": None},
    ],
    "bike": {"color": "red", "price": 399},
    "o": {"j j": {"k.k": 3}, "'": {"@": 2}, "☺": 4},
    "n": [1, True, "1", None, [], {}],
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        # names and quotes, 2.3.1 and 2.5.1
        ("$.o['j j']['k.k']", [3]),
        ('$.o["\'"]["@"]', [2]),
        ("$.o['\\u0027']['@']", [2]),
        ("$.o.☺", [4]),
        ("$.o['\\u263A']", [4]),
        # indices, 2.3.3
        ("$.book[-1].title", ["Ring"]),
        ("$.book[4]", []),
        ("$.bike[0]", []),
        # slices, 2.3.4
        ("$.book[1:3].price", [12.99, 8.99]),
        ("$.book[-2:].price", [8.99, 22.99]),
        ("$.book[::2].price", [8.95, 8.99]),
        ("$.book[::-2].price", [22.99, 12.99]),
        ("$.book[3:0:-2].price", [22.99, 12.99]),
        ("$.book[0:4:0]", []),
        ("$.book[9:].price", []),
        ("$.bike[:]", []),
        # wildcards, 2.3.2
        ("$.bike.*", ["red", 399]),
        ("$.bike.color.*", []),
        # several selectors in one bracket, with repetitions, 2.5.1
        ("$.book[0, 0, -1].title", ["Sayings", "Sayings", "Ring"]),
        ("$.bike['price', 'color']", [399, "red"]),
        ("$.book[:1, 3, ?@.isbn].title", ["Sayings", "Ring", "Moby", "Ring"]),
        # descendants, 2.5.2
        ("$..price", [8.95, 12.99, 8.99, 22.99, 399]),
        ("$..tags[0]", ["old"]),
        ("$.book..[0]", [STORE["book"][0], "old"]),  # type: ignore[index]
        # filters, 2.3.5: null is a value, a missing member is none
        ("$.book[?@.isbn].title", ["Moby", "Ring"]),
        ("$.book[?!@.isbn].title", ["Sayings", "Sword"]),
        ("$.book[?@.isbn == null].title", ["Ring"]),
        ("$.book[?@.isbn != null].title", ["Sayings", "Sword", "Moby"]),
        ("$.book[?@.none == @.other].title", ["Sayings", "Sword", "Moby", "Ring"]),
        ("$.book[?@.none < 1]", []),
        ("$.book[?@.none <= @.other].title", ["Sayings", "Sword", "Moby", "Ring"]),
        ("$.book[?@.price < 9 && @.tags || @.title == 'Ring'].title", ["Sayings", "Ring"]),
        ("$.book[?@.price < 9 && (@.tags || @.title == 'Ring')].title", ["Sayings"]),
        ("$.book[?@.price > $.bike.price]", []),
        ("$.book[?@.tags[?@ == 'old']].title", ["Sayings"]),
        ("$.n[?@ == 1]", [1]),
        ("$.n[?@ == true]", [True]),
        ("$.n[?@ == '1']", ["1"]),
        ("$.n[?@ == $.book[1].tags]", [[]]),
        ("$.n[?@ <= null]", [None]),
        ("$.n[?@ >= true]", [True]),
        # functions, 2.4
        ("$.book[?length(@.title) > 5].title", ["Sayings"]),
        ("$.book[?length(@.tags) == 0].title", ["Sword"]),
        ("$.book[?length(@.price) == 1]", []),
        ("$.book[?count(@.*) == 2]", []),
        ("$.book[?count(@.tags[*]) == 2].title", ["Sayings"]),
        ("$.book[?value(@..tags) == $.n[4]].title", ["Sword"]),
        ("$.book[?match(@.title, 'S.*')].title", ["Sayings", "Sword"]),
        ("$.book[?match(@.title, 'or')]", []),
        ("$.book[?search(@.title, 'o[rb]')].title", ["Sword", "Moby"]),
        ("$.book[?match(@.isbn, '[0-9]-[0-9]{3}')].title", ["Moby"]),
        ("$.book[?match(@.title, '\\\\p{Lu}\\\\p{Ll}{3}')].title", ["Moby", "Ring"]),
        ("$.book[?search(@.price, '9')]", []),
    ],
)
def test_a_jsonpath_finds_what_the_rfc_says(path: str, values: list[Any]) -> None:
    assert Selector.jsonpath(path).find(STORE) == values


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a.b", "begins with $"),
        ("$.0", ""),
        ("$.a-b", ""),
        ("$[a]", ""),
        ("$.a.collect()", ""),
        ("$['a", ""),
        ("$[-0]", ""),
        ("$[9007199254740992]", "an index lies between -9007199254740991 and 9007199254740991"),
        ("$[:01]", ""),
        ("$['\\uD800']", "half of a surrogate pair"),
        ("$['a\tb']", "write a control character with a backslash"),
        ("$['\\\"']", ""),
        ("$[?@.* == 1]", "compare one value; for any of several write [?@.a[?@ > 1]]"),
        ("$[?@..a < 1]", "compare one value"),
        ("$[?length(@.*) == 1]", "length takes one value"),
        ("$[?length(match(@, 'a')) == 1]", "length takes one value"),
        ("$[?count(1) == 1]", "count takes a path"),
        ("$[?match(@.a, '(?=a)')]", "is not a pattern in the syntax of RE2: invalid perl operator: (?="),
        ("$[?match(@.a, '(a)\\\\1')]", "invalid escape sequence"),
    ],
)
def test_what_the_rfc_does_not_allow_is_refused(path: str, why: str) -> None:
    with pytest.raises(SpecError) as refused:
        Selector.jsonpath(path)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("$", ["$"]),
        ("$.book[-1]", ["$['book'][3]"]),
        ("$.book[::-2].price", ["$['book'][3]['price']", "$['book'][1]['price']"]),
        ("$.bike['price', 'none', 'color']", ["$['bike']['price']", "$['bike']['color']"]),
        ("$..['@']", ["$['o']['\\'']['@']"]),
        ("$.book[?@.isbn]", ["$['book'][2]", "$['book'][3]"]),
        ("$.none.a[0]", []),
        ("book[0].title", ["$['book'][0]['title']"]),
    ],
)
def test_a_normalised_path_says_where_a_value_is(path: str, places: list[str]) -> None:
    assert Selector(path).paths(STORE) == places
    assert [Selector.jsonpath(place).get(STORE) for place in places] == Selector(path).find(STORE)


def test_the_characters_of_a_key_are_escaped_as_the_rfc_says() -> None:
    (path,) = Selector("$.*").paths({"\b\t\n\f\r'\\\x0b\"é": 1})
    assert path == r"""$['\b\t\n\f\r\'\\\u000b"é']"""


def test_a_collected_list_has_no_place() -> None:
    with pytest.raises(SpecError, match="nowhere in the data"):
        Selector("a.collect()").paths({"a": 1})


def test_no_depth_is_too_deep_for_places() -> None:
    value: Any = 1
    for _ in range(20_000):
        value = [value]
    assert len(Selector("$..[?@ == 1]").paths(value)) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab'", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab'", max_size=2), inner, max_size=3),
    max_leaves=12,
)
segments = st.sampled_from(
    [".*", "..*", "[-1]", "[0,0]", "[::-1]", ".a", "..b", "[?@.a]", "[?@ > 0]", "[?length(@) < 2]", "['a',1:]"]
)


@given(json_values, st.lists(segments, max_size=3))
def test_each_normalised_path_leads_to_the_value_that_was_found(value: Any, parts: list[str]) -> None:
    selector = Selector.jsonpath("$" + "".join(parts))
    found, places = selector.find(value), selector.paths(value)
    assert len(found) == len(places)
    assert all(Selector(place).get(value) is each for place, each in zip(places, found, strict=True))


@pytest.mark.parametrize(
    "pattern", ["(a|a)*b", "(a|ab)*c", "a*b", "(a*)*b", "(a+)+$b", "a?" * 30 + "a" * 30 + "b", ".*.*.*.*.*b"]
)
def test_a_hostile_pattern_comes_to_an_end(pattern: str) -> None:
    text = "a" * 3_000  # a matcher that tries one way after another takes years
    assert not matches(text, pattern)
    assert not contains(text, pattern)


@pytest.mark.parametrize("pattern", ["b*", "[a-c]+", "a.b", "^b", "(ab|b)", "a\\.b", "[ab]b*c", "[^a]", "b+c?"])
@pytest.mark.parametrize("text", ["", "b", "bb", "abc", "a.b", "a\nb", "b\n", "äb", "cab"])
def test_both_matchers_of_a_pattern_agree(pattern: str, text: str) -> None:
    in_re2 = f"(?:{pattern})"  # which is no simple pattern
    assert matches(text, pattern) == matches(text, in_re2)
    assert contains(text, pattern) == contains(text, in_re2)


def _suite() -> Path | None:
    """The compliance suite: the file named by JSONPATH_COMPLIANCE_SUITE, or a clone in the folder above this project.

    No package on PyPI installs it.
    """
    here = Path(__file__).parents[3] / "jsonpath-compliance-test-suite" / "cts.json"
    named = Path(os.environ.get("JSONPATH_COMPLIANCE_SUITE") or here)
    return named if named.is_file() else None


SUITE = _suite()
WHY = "set JSONPATH_COMPLIANCE_SUITE to cts.json of github.com/jsonpath-standard/jsonpath-compliance-test-suite"


@pytest.mark.skipif(SUITE is None, reason=WHY)
def test_the_public_compliance_suite_passes() -> None:
    assert SUITE is not None
    cases = json.loads(SUITE.read_text())["tests"]
    assert len(cases) > 600
    failed = [case["name"] for case in cases if not _passes(case)]
    assert failed == []


def _passes(case: dict[str, Any]) -> bool:
    try:
        selector = Selector.jsonpath(case["selector"])
    except SpecError:
        return bool(case.get("invalid_selector"))
    if case.get("invalid_selector"):
        return False
    found, places = json.dumps(selector.find(case["document"])), selector.paths(case["document"])
    results = [json.dumps(each) for each in case.get("results", [case.get("result")])]
    return found in results and places in case.get("results_paths", [case.get("result_paths")])
