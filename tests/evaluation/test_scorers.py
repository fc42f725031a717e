"""How each kind of scorer grades, what it abstains from, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import time
import unicodedata
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError
from evaluand.core.text.normal_form import Normalisation, normal_form
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.evaluation.scorers.json_equality import JsonEquality
from evaluand.evaluation.scorers.numeric_answer import NumericAnswer
from evaluand.evaluation.scorers.pattern import Includes, Pattern
from evaluand.evaluation.scorers.prediction import Prediction

NAN = math.nan
NORMALISATIONS = get_args(Normalisation)
SQUAD = ("case", "all_punctuation", "articles", "space")

KINDS: list[Scorer] = [
    ExactMatch(normalise=NORMALISATIONS, any_of=True),
    Includes(whole_word=True, ignore_case=True),
    Pattern(pattern="a+", group=0),
    NumericAnswer(after="A:", tolerance=0.1),
    JsonEquality(ignore=("id", "$.a[*].b"), unordered=True, tolerance=0.1),
    Prediction(type="json"),
]

numbers = st.integers() | st.floats()
scalars = st.none() | st.booleans() | numbers | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


# ---------------------------------------------------------------- all kinds


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_spec_names_kind_version_and_every_parameter_and_nothing_else(kind: Any) -> None:
    kind.score("a 1", "a 1") if kind.kind != "json_equality" else kind.score("1", "1")
    spec = kind.identify().spec
    assert spec["kind"] == type(kind).kind
    assert spec["version"] == type(kind).version
    assert set(spec["parameters"]) == {f.name for f in dataclasses.fields(kind)}
    assert identity.decode(identity.encode(spec))["kind"] == kind.kind


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_kind_is_graded_in_the_evaluators_own_loop(kind: Any) -> None:
    assert kind.cheap
    assert not kind.is_async
    assert not kind.is_batch


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_kind_cannot_be_changed(kind: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind.version = 2


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_equal_parameters_are_equal_scorers_whether_used_or_not(kind: Any) -> None:
    again = dataclasses.replace(kind)
    assert again == kind
    assert hash(again) == hash(kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_where_nothing_was_expected_a_kind_abstains(kind: Any) -> None:
    assert kind.score("a 1", None) == Score.abstained("no expected value")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(KINDS[0], "5"), (KINDS[1], "5"), (KINDS[2], "5"), (KINDS[3], "5"), (KINDS[4], "5"), (ExactMatch(), "5")],
    ids=lambda kind: getattr(kind, "kind", ""),
)
@given(output=values)
def test_whatever_the_system_answers_is_graded_or_abstained_from(kind: Any, expected: Any, output: Any) -> None:
    score = kind.score(output, expected)
    assert (score.status == "scored") == (score.value in (0.0, 1.0))
    assert (score.status == "abstained") == (score.reason is not None)


# ---------------------------------------------------------------- exact_match


@pytest.mark.parametrize(
    ("output", "expected", "value"),
    [
        ("Paris", "Paris", 1),
        ("Paris", "paris", 0),
        ("Paris", "Paris ", 0),
        ("", "", 1),
        ("", "x", 0),
        ("one", 1, 0),
        (1, "2", 0),
        ("1.0e", 1, 0),
        (10**400, "1", 0),
        (1, 1.0, 1),
        (1, 2, 0),
        (True, 1, 0),
        (0, False, 0),
        (True, True, 1),
        (True, False, 0),
        (None, "x", 0),
        (None, 0, 0),
        (NAN, NAN, 1),
        (NAN, 0.0, 0),
        (math.inf, math.inf, 1),
        (10**400, 10**400, 1),
        (10**400, 1.5, 0),
        ([1, 2], [1, 2.0], 1),
        ([1, True], [1, 1], 0),
        ([1, 2], [2, 1], 0),
        ([1], [1, 2], 0),
        ({"a": 1, "b": [None]}, {"b": [None], "a": 1}, 1),
        ({"a": 1}, {"a": 1, "b": 2}, 0),
        ({"a": "A"}, {"a": "a"}, 0),
        (b"x", b"x", 1),
        ("e\u0301", "é", 1),
        ("New\u00a0York", "New York", 1),
        ("don’t say “no”", 'don\'t say "no"', 1),
        ("ﬁne", "fine", 0),
    ],
)
def test_without_normalisation_only_the_same_value_matches(output: Any, expected: Any, value: float) -> None:
    assert ExactMatch().score(output, expected) == Score(float(value))


@pytest.mark.parametrize(
    ("normalise", "output", "expected", "value"),
    [
        ("case", "PARIS", "paris", 1),
        ("case", "STRASSE", "straße", 1),
        ("case", "Paris.", "paris", 0),
        ("space", "  New \t\n York\u00a0", "New York", 1),
        ("space", "NewYork", "New York", 0),
        ("punctuation", "«don't—stop»!", "dontstop", 1),
        ("punctuation", "$5", "5", 0),
        ("punctuation", "-5", "5", 0),
        ("punctuation", "−5.", "-5", 1),
        ("punctuation", "3.5", "35", 0),
        ("punctuation", "3.5.", "(3.5)", 1),
        ("punctuation", ".5", "5", 0),
        ("punctuation", "1,000", "1000", 0),
        ("punctuation", "1/2", "12", 0),
        ("punctuation", "10:30", "1030", 0),
        ("punctuation", "1914–1918", "1914-1918", 1),
        ("punctuation", "C#", "C", 0),
        ("punctuation", "C++", "C", 0),
        ("punctuation", "-x", "x", 0),
        ("punctuation", "(−x).", "-x", 1),
        ("punctuation", "-(x + 1)", "x + 1", 0),
        ("punctuation", "-$5", "$5", 0),
        ("punctuation", "e-mail", "email", 1),
        ("punctuation", "Paris —the capital", "Paris the capital", 1),
        ("punctuation", "5%", "5", 0),
        ("punctuation", "(5 %).", "5%", 1),
        ("punctuation", "100%, or % of it", "100% or  of it", 1),
        ("punctuation", "5 €", "5", 0),
        ("punctuation", ".NET", "NET", 0),
        ("punctuation", "(.NET)", ".NET", 1),
        ("punctuation", "...and so on", "and so on", 1),
        ("punctuation", "Node.js", "Nodejs", 1),
        ("punctuation", "5'", "5", 0),
        ("punctuation", "5'", '5"', 0),
        ("punctuation", "5′ 10″.", "5' 10''", 1),
        ("punctuation", '"Apollo 11"', "Apollo 11", 1),
        ("punctuation", "in '68', the 1990's", "in 68 the 1990s", 1),
        ("all_punctuation", "1,000 $", "1000 ", 1),
        ("all_punctuation", "C#, C++ — «C»", "C C  C", 1),
        ("punctuation", "。中国", "中国", 1),
        ("articles", "The cat saw an owl", "cat saw owl", 1),
        ("articles", "theatre", "atre", 0),
        ("articles", "a-level", "level", 0),
        ("unicode", "ﬁne ①", "fine 1", 1),
        ("unicode", "e\u0301", "é", 1),
        ("unicode", "Ｐａｒｉｓ", "Paris", 1),
        ("case", "e\u0301", "É", 1),
    ],
)
def test_each_normalisation_forgives_one_thing(normalise: str, output: str, expected: str, value: float) -> None:
    assert ExactMatch(normalise=(normalise,)).score(output, expected).value == value


@pytest.mark.parametrize(
    ("output", "expected", "value"),
    [
        ("The Beatles", "beatles", 1),
        ("beatles.", "The  Beatles", 1),
        ("  a  Pale Blue Dot! ", "pale blue dot", 1),
        ("the U.S.A.", "USA", 1),
        ("rock 'n' roll", "rock n roll", 1),
        ("well-known", "wellknown", 1),
        ("1,000", "1000", 1),
        ("Saint Bernadette Soubirous", "Bernadette Soubirous", 0),
        ("ten", "10", 0),
    ],
)
def test_normalised_as_squad_does_short_answers_match_as_worked_out_by_hand(
    output: str, expected: str, value: float
) -> None:
    assert ExactMatch(normalise=SQUAD).score(output, expected).value == value


@given(
    st.text(st.one_of(st.sampled_from("a1 .,-−–#C+%($_'’′\"\u0301\u00a0\u0345ﬁİßʼŉᾳ"), st.characters()), max_size=9),
    st.data(),
)
def test_the_normal_form_of_a_normal_form_is_itself(text: str, data: st.DataObject) -> None:
    forgiven = data.draw(st.sets(st.sampled_from(NORMALISATIONS)))
    normal = normal_form(text, forgiven)
    assert normal_form(normal, forgiven) == normal


@pytest.mark.parametrize(("output", "expected"), [("The", "A"), ("?", "!"), ("", "..."), ("", "the"), ("—", "«")])
def test_normalising_never_makes_a_match_out_of_nothing(output: str, expected: str) -> None:
    assert ExactMatch(normalise=SQUAD).score(output, expected).value == 0
    assert ExactMatch(normalise=SQUAD).score(expected, expected).value == 1


@pytest.mark.parametrize(
    ("output", "expected", "value"),
    [
        ("b", ["a", "B"], 1),
        ("c", ["a", "B"], 0),
        ("b", "B", 1),
        (2, ["a", 2.0], 1),
        (["a"], [["a"], "b"], 1),
        (["a", "b"], ["a", "b"], 0),
    ],
)
def test_any_acceptable_answer_will_do(output: Any, expected: Any, value: float) -> None:
    assert ExactMatch(any_of=True, normalise=("case",)).score(output, expected).value == value


@pytest.mark.parametrize(
    ("output", "expected"), [("7", 7), (7, "7"), (" 7.0", 7), ("1e3", 1000.0), ("true", True), (False, "False")]
)
def test_a_number_and_its_text_are_a_mistake_in_the_data_and_not_a_wrong_answer(output: Any, expected: Any) -> None:
    with pytest.raises(DataError, match="which are never equal; give both the same type"):
        ExactMatch().score(output, expected)
    assert ExactMatch(any_of=True).score(output, [expected, output]).value == 1


def test_a_list_is_one_value_unless_it_is_declared_to_hold_alternatives() -> None:
    assert ExactMatch().score("a", ["a", "b"]).value == 0
    assert ExactMatch().score(["a", "b"], ["a", "b"]).value == 1


def test_no_acceptable_answer_at_all_is_nothing_to_grade() -> None:
    assert ExactMatch(any_of=True).score("a", []).reason == "the list of acceptable answers is empty"


@given(values.filter(lambda value: value is not None), st.sets(st.sampled_from(NORMALISATIONS)))
def test_every_value_matches_itself(value: Any, normalise: set[str]) -> None:
    assert ExactMatch(normalise=tuple(normalise)).score(value, value).value == 1


@given(st.text(), st.sampled_from([" ", "\t", "\n", "\u00a0", " \r\n"]))
def test_space_around_a_text_is_forgiven(text: str, space: str) -> None:
    assert ExactMatch(normalise=("space",)).score(space + text + space, text).value == 1


@given(st.text())
def test_composed_and_decomposed_text_are_the_same_when_case_is_forgiven_too(text: str) -> None:
    both = ExactMatch(normalise=("unicode", "case"))
    assert both.score(unicodedata.normalize("NFD", text), text).value == 1
    assert both.score(text.casefold(), text).value == 1


def test_text_that_is_half_a_character_is_graded() -> None:
    assert ExactMatch(normalise=NORMALISATIONS).score("\ud800 a", "\ud800 A").value == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"normalise": "case"}, "normalise is the text 'case'; give a list"),
        ({"normalise": ["spaces"]}, "did you mean 'space'"),
        ({"any_of": "yes"}, "any_of is the text 'yes'"),
    ],
)
def test_exact_match_refuses_parameters_it_does_not_have(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        ExactMatch(**parameters)


# ---------------------------------------------------------------- includes


@pytest.mark.parametrize(
    ("parameters", "output", "expected", "value"),
    [
        ({}, "It is Paris.", "Paris", 1),
        ({}, "It is paris.", "Paris", 0),
        ({"ignore_case": True}, "It is PARIS.", "Paris", 1),
        ({"ignore_case": True}, "in der STRASSE", "Straße", 1),
        ({}, "1918", "18", 1),
        ({"whole_word": True}, "1918", "18", 0),
        ({"whole_word": True}, "1918, then 18", "18", 1),
        ({"whole_word": True}, "18", "18", 1),
        ({"whole_word": True}, "a_18", "18", 0),
        ({"whole_word": True}, "US$5", "$5", 1),
        ({"whole_word": True}, "$55", "$5", 0),
        ({"whole_word": True}, "cafe\u0301", "cafe", 0),
        ({"whole_word": True}, "Élan", "lan", 0),
        ({"whole_word": True, "ignore_case": True}, "NEW YORK!", "new york", 1),
        ({"any_of": True}, "red and blue", ["green", "blue"], 1),
        ({"any_of": True}, "red and blue", ["green"], 0),
        ({"any_of": True}, "red and blue", "blue", 1),
        ({"all_of": True}, "red and blue", ["red", "blue"], 1),
        ({"all_of": True}, "red and blue", ["red", "green"], 0),
        ({}, "", "x", 0),
    ],
)
def test_a_text_includes_what_can_be_found_in_it(
    parameters: dict[str, bool], output: str, expected: Any, value: float
) -> None:
    assert Includes(**parameters).score(output, expected).value == value


def test_the_label_tells_which_alternative_was_found() -> None:
    assert Includes(any_of=True).score("red and blue", ["green", "blue", "red"]).label == "blue"


def test_the_explanation_tells_what_is_missing() -> None:
    assert Includes(all_of=True).score("red", ["green", "red", "blue"]).explanation == "missing: 'green', 'blue'"


@pytest.mark.parametrize(
    ("parameters", "output", "expected", "reason"),
    [
        ({}, None, "x", "the output is null, not text"),
        ({}, ["x"], "x", "the output is a list, not text"),
        ({}, 18, "18", "the output is the integer 18, not text"),
        ({}, "x", "", "the expected text is empty"),
        ({"any_of": True}, "x", ["x", ""], "the expected text is empty"),
        ({"all_of": True}, "x", [], "the list of expected texts is empty"),
    ],
)
def test_includes_abstains_where_there_is_nothing_to_look_for_or_in(
    parameters: dict[str, bool], output: Any, expected: Any, reason: str
) -> None:
    score = Includes(**parameters).score(output, expected)
    assert score.status == "abstained"
    assert str(score.reason).startswith(reason)


@pytest.mark.parametrize(
    ("parameters", "expected", "message"),
    [
        ({}, 18, "the expected value is the integer 18; includes looks for text"),
        ({}, ["x"], "set any_of or all_of"),
        ({"any_of": True}, ["x", 3], "the expected value is the integer 3"),
    ],
)
def test_includes_refuses_to_look_for_anything_but_text(
    parameters: dict[str, bool], expected: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Includes(**parameters).score("x", expected)


def test_any_and_all_at_once_are_refused() -> None:
    with pytest.raises(SpecError, match="set any_of or all_of, not both"):
        Includes(any_of=True, all_of=True)


@given(st.text(), st.text(min_size=1), st.text())
def test_a_text_includes_each_of_its_parts(before: str, part: str, after: str) -> None:
    assert Includes().score(before + part + after, part).value == 1
    assert Includes(whole_word=True).score(f"{before} {part} {after}", part).value == 1


# ---------------------------------------------------------------- pattern


@pytest.mark.parametrize(
    ("parameters", "output", "value"),
    [
        ({"pattern": r"\d{4}"}, "in 1918", 1),
        ({"pattern": r"^\d{4}"}, "in 1918", 0),
        ({"pattern": "YES"}, "yes", 0),
        ({"pattern": "YES", "flags": ["ignorecase"]}, "yes", 1),
        ({"pattern": "^b$"}, "a\nb", 0),
        ({"pattern": "^b$", "flags": ["multiline"]}, "a\nb", 1),
        ({"pattern": "a.b"}, "a\nb", 0),
        ({"pattern": "a.b", "flags": ["dotall"]}, "a\nb", 1),
        ({"pattern": "x"}, "", 0),
    ],
)
def test_a_pattern_is_found_or_not_whatever_was_expected(parameters: dict[str, Any], output: str, value: float) -> None:
    assert Pattern(**parameters).score(output, None) == Score(float(value))


@pytest.mark.parametrize(
    ("group", "output", "expected", "score"),
    [
        (1, "Answer: B", "B", Score(1.0, "B")),
        ("letter", "Answer: B", " B\n", Score(1.0, "B")),
        (1, "Answer: B", "b", Score(0.0, "B")),
        (0, "so Answer: B", "Answer: B", Score(1.0, "Answer: B")),
        (1, "Answer: A. No, Answer: B", "B", Score(0.0, "A")),
        (1, "I do not know", "B", Score.abstained("the pattern is not found")),
        (1, "Answer: B", None, Score.abstained("no expected value")),
        (2, "Answer: B", "x", Score.abstained("the pattern is found, but its group 2 holds nothing")),
    ],
)
def test_what_a_group_extracts_is_compared(group: Any, output: str, expected: Any, score: Score) -> None:
    found = Pattern(pattern=r"Answer: (?P<letter>[A-D])( sure)?", group=group).score(output, expected)
    assert found._replace(columns=None) == score
    assert expected is None or (found.columns or {})["extraction"].get("reason") == score.reason


def test_white_space_around_what_is_extracted_does_not_count() -> None:
    assert Pattern(pattern="=(.*)", group=1).score("x =  5 ", "5")[:2] == (1.0, "5")


@pytest.mark.parametrize(
    ("which", "output", "value", "extraction"),
    [
        ("first", "=A =B", 1, {"text": "A", "rule": "first match", "candidates": 2}),
        ("last", "=A =B", 0, {"text": "B", "rule": "last match", "candidates": 2}),
        ("last", "=A = ", 0, {"text": "", "rule": "last match", "candidates": 2}),
        ("all", "=A = A", 1, {"text": "A", "rule": "all matches", "candidates": 2}),
        ("all", "=A =B =A", None, {"candidates": 3, "reason": "the matches hold several texts: 'A', 'B'"}),
        ("all", "A", None, {"candidates": 0, "reason": "the pattern is not found"}),
    ],
)
def test_which_match_is_the_answer(which: str, output: str, value: float | None, extraction: Any) -> None:
    score = Pattern(pattern="=([^=]*)", group=1, which=which).score(output, "A")
    assert (score.value, score.columns) == (value, {"extraction": extraction})


@pytest.mark.parametrize("output", [None, 5, ["x"], {"x": 1}])
def test_a_pattern_is_only_looked_for_in_text(output: Any) -> None:
    assert Pattern(pattern="x").score(output, None).status == "abstained"


def test_a_group_is_only_compared_with_text() -> None:
    with pytest.raises(DataError, match=r"the expected value is the integer 5; pattern compares text"):
        Pattern(pattern="(.)", group=1).score("5", 5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"pattern": "a(b"}, r"'a\(b' is not a regular expression: .* at line 1, column 2"),
        ({"pattern": "a\n*?b**"}, "is not a regular expression: multiple repeat at line 2, column 5"),
        ({"pattern": "a{99999999999}"}, "is not a regular expression"),
        ({"pattern": ""}, "pattern is the text ''"),
        ({"pattern": 5}, "pattern is the integer 5"),
        ({"pattern": "a", "flags": ["verbose"]}, "none of ignorecase, multiline, dotall"),
        ({"pattern": "(?P<answer>a)", "group": "anwser"}, r"no such group \(did you mean 'answer'\?\)"),
        ({"pattern": "(a)", "group": "x"}, "its named groups: none"),
        ({"pattern": "(a)", "group": 2}, "the pattern has 1 groups"),
        ({"pattern": "(a)", "group": -1}, "the pattern has 1 groups"),
        ({"pattern": "(a)", "group": True}, "give the name or number of a group"),
        ({"pattern": "(a)", "group": 1, "which": "every"}, "which is the text 'every'; give one of first, last, all"),
        ({"pattern": "a", "which": "last"}, "set group, too: without one, only whether there is a match counts"),
    ],
)
def test_what_is_no_pattern_is_refused_with_its_place(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Pattern(**parameters)


# ---------------------------------------------------------------- json_equality


@pytest.mark.parametrize(
    ("output", "expected", "explanation"),
    [
        ('{"a": 1}', '{"a": 1.0}', None),
        ('{"a": 1, "b": 2}', {"b": 2, "a": 1}, None),
        ({"a": 1}, '{"a": 1}', None),
        (" [1] \n", [1], None),
        ('"x"', '"x"', None),
        ("null", "null", None),
        ([], [], None),
        (NAN, NAN, None),
        ('{"a": [1, 2, 3]}', '{"a": [1, 2, 4]}', "$.a[2]: 3 ≠ 4"),
        ('{"a": "1"}', '{"a": 1}', '$.a: "1" ≠ 1'),
        ("[true]", "[1]", "$[0]: true ≠ 1"),
        ("[0]", "[false]", "$[0]: 0 ≠ false"),
        ("[null]", "[0]", "$[0]: null ≠ 0"),
        (None, '{"a": 1}', "$: null ≠ an object"),
        ("[]", "{}", "$: a list ≠ an object"),
        ("{}", '{"a": 1}', "$.a: missing"),
        ('{"b": 1}', "{}", "$.b: not expected"),
        ("[1]", "[1, 2]", "$: 1 items ≠ 2 items"),
        ('{"a b": {"c": 1}}', '{"a b": {"c": 2}}', '$["a b"].c: 1 ≠ 2'),
        (["x" * 100], ["y"], f'$[0]: "{"x" * 39}…" ≠ "y"'),
        pytest.param([10**5000], [1], "$[0]: a very long integer ≠ 1", id="long integer"),
        ([0.1], [0.2], "$[0]: 0.1 ≠ 0.2"),
        ([[1, 2]], [[2, 1]], "$[0][0]: 1 ≠ 2"),
        ('["é"]', '["e"]', '$[0]: "é" ≠ "e"'),
    ],
)
def test_the_first_difference_is_reported_with_its_path(output: Any, expected: Any, explanation: str | None) -> None:
    score = JsonEquality().score(output, expected)
    assert (score.value, score.explanation) == (float(explanation is None), explanation)


@pytest.mark.parametrize(
    ("output", "explanation"),
    [
        ("", "not JSON: Expecting value at line 1, column 1"),
        ("the answer is 5", "not JSON: Expecting value at line 1, column 1"),
        ('{"a": 1,\n "b": }', "not JSON: Expecting value at line 2, column 7"),
        ("{'a': 1}", "not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        ("[NaN]", "not JSON: JSON has no NaN"),
        ("[-Infinity]", "not JSON: JSON has no -Infinity"),
        ('{"a": 1, "a": 2}', 'not JSON: the key "a" occurs twice in one object'),
        pytest.param("[" * 100_000, "not JSON: nested too deeply", id="deep"),
    ],
)
def test_an_answer_that_is_not_json_is_wrong_and_says_where_it_breaks(output: str, explanation: str) -> None:
    score = JsonEquality().score(output, [1])
    assert (score.value, score.explanation) == (0.0, explanation)


@pytest.mark.parametrize("expected", ["{", "plain text", "[NaN]", ""])
def test_an_expected_text_that_is_not_json_is_a_fault_of_the_data(expected: str) -> None:
    with pytest.raises(DataError, match=r"which is not JSON: .*quote it if it is a text"):
        JsonEquality().score("[1]", expected)


@pytest.mark.parametrize(
    ("output", "fenced", "value"),
    [
        ('```json\n{"a": 1}\n```', True, 1),
        ('\n ```JSON \r\n{"a": 1}```\n', True, 1),
        ('```\n{"a": 1}\n```', True, 1),
        ('```json\n{"a": 1}\n```', False, 0),
        ('```python\n{"a": 1}\n```', True, 1),
        ('Here it is:\n```json\n{"a": 1}\n```', True, 1),
        ('Here it is:\n```json\n{"a": 1}\n```', False, 0),
        ('```json {"a": 1}```', True, 1),
        ('As in [1], it is {"a": 1}. Is it?', True, 1),
        ('It is {"a": 2}.', True, 0),
        ('{"a": 1}, that is {"a":1}', True, 1),
        ('{"a": 1}, or {"a": 2}', True, None),
        ('```\n{"a": 1}\n```\nor\n```\n{"a": 2}\n```', True, None),
        ("```", True, 0),
        ("```\n```", True, 0),
        ('{"a":1, "b": {"a":1}', True, 0),
        ('It is {"b": {"a": 1}', True, 0),
        ('It is {"a": 1} or {"b": ', True, 0),
        ('{"b": {"a": 1},} is it.', True, 0),
        ("{'b': {\"a\": 1}}", True, 0),
        ('[{"a": 1}', True, 0),
        ('"{" is {"a": 1}', True, 0),
        ('{"a": 1, "a": 1} is it', True, 0),
        ('A set {1, 2}, [or so], and {"a": 1}', True, 1),
        ('In \\frac{1}{2} the " is {"a": 1}', True, 1),
        ('It is {"a": 1}.]', True, 1),
    ],
)
def test_json_within_a_reply_counts(output: str, fenced: bool, value: float | None) -> None:
    score = JsonEquality(fenced=fenced).score(output, {"a": 1})
    assert score.value == value
    read = (score.columns or {})["extraction"]
    assert read.get("reason") == (score.reason or score.explanation if "text" not in read else None)


@pytest.mark.parametrize("part", ["[", "{", "[] ", "[1,", '{"a":', '{a"}', '{"\\"', "[" + " " * 999, "```\n", "[1]\n"])
def test_hostile_brackets_are_read_in_time(part: str) -> None:
    begun = time.process_time()
    JsonEquality().score("As in " + part * (1_000_000 // len(part)), [1])
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "part", ["'", "\"x 'y ", "5'", "5'...", " -", "-", " .", "(", " -+++", "5" + " " * 999, "− ", "5%", "''"]
)
def test_hostile_punctuation_is_forgiven_in_time(part: str) -> None:
    begun = time.process_time()
    normal_form("5'" + part * (1_000_000 // len(part)), NORMALISATIONS)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("As in [1], nothing.", 0),
        ("See [1]: it is clear", 0),
        ("It is\n[1]\nas in [2].", 1),
        ("It is\n [\n1\n] \n", 1),
        ("It is\n```json [1]```", 1),
        ("It is\n```json\n[1]", 1),
        ("[1]\nor\n[2]", None),
    ],
)
def test_a_list_within_a_reply_counts_on_lines_of_its_own(output: str, value: float | None) -> None:
    assert JsonEquality().score(output, [1]).value == value


def test_in_a_fenced_block_lines_are_counted_as_in_the_answer() -> None:
    score = JsonEquality().score('\n```json\n{"a": 1,\n "b": }\n```', {"a": 1})
    assert score.explanation == "not JSON: Expecting value at line 4, column 7"


@pytest.mark.parametrize(
    ("ignore", "output", "value"),
    [
        ([], {"id": 1, "a": [{"id": 2, "x": 3}]}, 0),
        (["id"], {"id": 1, "a": [{"id": 2, "x": 3}]}, 1),
        (["id"], {"a": [{"x": 3}]}, 1),
        (["id"], {"a": [{"x": 4}]}, 0),
        (["$.id"], {"id": 1, "a": [{"id": 8, "x": 3}]}, 1),
        (["$.id"], {"id": 1, "a": [{"id": 2, "x": 3}]}, 0),
        (["$.id", "$.a[0].id"], {"id": 1, "a": [{"id": 2, "x": 3}]}, 1),
        (["$.id", "$.a[*].id"], {"id": 1, "a": [{"id": 2, "x": 3}]}, 1),
        (["$.id", "$.a[1].id"], {"id": 1, "a": [{"id": 2, "x": 3}]}, 0),
        (['$["id"]', "$['a']"], {"id": 1}, 1),
    ],
)
def test_ignored_keys_and_paths_are_not_compared(ignore: list[str], output: Any, value: float) -> None:
    kind = JsonEquality(ignore=ignore)  # type: ignore[arg-type]
    assert kind.score(output, {"id": 9, "a": [{"id": 8, "x": 3}]}).value == value


@pytest.mark.parametrize(
    ("tolerance", "output", "expected", "explanation"),
    [
        (0, [3, 1, 2], [1, 2, 3], None),
        (0, [1, 1, 2], [1, 2, 2], "$[2]: no item equals 2"),
        (0, [1, 2, 3], [1, 2], "$: 3 items ≠ 2 items"),
        (0, [1, True], [True, 1.0], None),
        (0, [{"a": [2, 1]}, {"b": 1}], [{"b": 1}, {"a": [1, 2]}], None),
        (0, {"a": [1]}, {"a": [2]}, "$.a[0]: no item equals 2"),
        (0, [NAN], [NAN], None),
        (0.1, [1.1, 3], [3.1, 1], None),
        (0.1, [1.2], [1], "$[0]: no item equals 1"),
        (1, [0, 1], [0, -1], None),
        (1, [0, 1, 2, 3], [1, 2, 3, 4], None),
        (1, [0, 0, 5], [0, 1, 1], "$[2]: no item equals 1"),
    ],
)
def test_unordered_lists_are_equal_when_their_items_can_be_paired(
    tolerance: float, output: Any, expected: Any, explanation: str | None
) -> None:
    kind = JsonEquality(unordered=True, tolerance=tolerance)
    assert kind.score(output, expected).explanation == explanation


@pytest.mark.parametrize(
    ("output", "expected", "value"),
    [
        ([1.1], [1.0], 1),
        ([1.11], [1.0], 0),
        ([10**400], [0.5], 0),
        ([math.inf], [1.0], 0),
        ([math.inf], [math.inf], 1),
        ([NAN], [1.0], 0),
        ([True], [1.0], 0),
    ],
)
def test_numbers_within_the_tolerance_are_equal(output: Any, expected: Any, value: float) -> None:
    assert JsonEquality(tolerance=0.1).score(output, expected).value == value


def test_data_nested_too_deeply_to_compare_cost_one_score() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DataError, match="nested too deeply"):
        JsonEquality().score(deep, deep)


def test_an_explanation_can_always_be_stored() -> None:
    explanation = JsonEquality().score('["\\ud800"]', '["x"]').explanation
    assert explanation is not None
    assert explanation.encode("utf-8")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ignore": "id"}, "ignore is the text 'id'; give a list"),
        ({"ignore": [1]}, "give a list of keys and paths"),
        ({"ignore": ["$"]}, r"'\$' is not a path to a key"),
        ({"ignore": ["$.a[0]"]}, r"'\$\.a\[0\]' is not a path to a key"),
        ({"ignore": ["$.a..b"]}, "is not a path to a key"),
        ({"ignore": ["$a"]}, "is not a path to a key"),
        ({"tolerance": -1}, "tolerance is the integer -1"),
        ({"unordered": 1}, "unordered is the integer 1"),
    ],
)
def test_json_equality_refuses_parameters_that_cannot_work(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        JsonEquality(**parameters)


def turned(value: Any, seed: random.Random, *, lists: bool) -> Any:
    """The same value with its keys, and perhaps its lists, in another order."""
    if isinstance(value, dict):
        return {key: turned(value[key], seed, lists=lists) for key in seed.sample(list(value), len(value))}
    if isinstance(value, list):
        inner = [turned(item, seed, lists=lists) for item in value]
        return seed.sample(inner, len(inner)) if lists else inner
    return value


@given(values.filter(lambda value: not isinstance(value, str) and value is not None), st.randoms(use_true_random=False))
def test_the_order_of_keys_never_matters(value: Any, seed: random.Random) -> None:
    assert JsonEquality().score(turned(value, seed, lists=False), value).value == 1


@given(
    values.filter(lambda value: not isinstance(value, str) and value is not None),
    st.randoms(use_true_random=False),
    st.sampled_from([0, 0.1]),
)
def test_unordered_neither_does_the_order_of_items(value: Any, seed: random.Random, tolerance: float) -> None:
    kind = JsonEquality(unordered=True, tolerance=tolerance)
    assert kind.score(turned(value, seed, lists=True), value).value == 1


finite = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(finite.filter(lambda value: value is not None))
def test_text_and_data_are_the_same_answer(value: Any) -> None:
    text = json.dumps(value)
    assert JsonEquality().score(text, text).value == 1
    if not isinstance(value, str):
        assert JsonEquality().score(text, value).value == 1
        assert JsonEquality().score(f"```json\n{text}\n```", value).value == 1


@given(st.lists(st.integers(0, 6), max_size=5), st.lists(st.integers(0, 6), max_size=5))
def test_with_a_tolerance_unordered_numbers_pair_as_their_sorted_lists_do(a: list[int], b: list[int]) -> None:
    close = len(a) == len(b) and all(abs(x - y) <= 1 for x, y in zip(sorted(a), sorted(b), strict=True))
    assert (JsonEquality(unordered=True, tolerance=1).score(a, b).value == 1) == close


# ---------------------------------------------------------------- prediction


@pytest.mark.parametrize(
    ("type", "column", "truth", "prediction", "value"),
    [
        ("text", "string", "cat", "cat", 1),
        ("text", "string", "cat", "dog", 0),
        ("text", "string", "", "", 1),
        ("integer", "int64", 3, 3, 1),
        ("integer", "int64", -(2**63), 2**63 - 1, 0),
        ("boolean", "bool", True, False, 0),
        ("boolean", "bool", False, False, 1),
        ("number", "double", 2.5, 2.5, None),
        ("number", "double", 2, 3.5, None),
        ("json", "json", [1, {"a": None}], [1, {"a": None}], 1),
        ("json", "json", [1], [1.0], 1),
        ("json", "json", 5, "5", 0),
    ],
)
def test_truth_and_prediction_stand_side_by_side_with_their_type(
    type: str, column: str, truth: Any, prediction: Any, value: float | None
) -> None:
    kind = Prediction(type=type)
    score = kind.score(prediction, truth, None)
    sure = {"confidence": "double", "confidence_of": column, "scores": "scores"}
    assert kind.columns == {"truth": column, "prediction": column, **sure, "weight": "double"}
    nothing = dict.fromkeys([*sure, "weight"])
    assert score == Score(value, columns={"truth": truth, "prediction": prediction, **nothing})


def test_numbers_are_stored_as_floats() -> None:
    columns = Prediction(type="number").score(2, 3).columns
    assert columns is not None
    assert [type(columns[name]) for name in ("truth", "prediction")] == [float, float]


@pytest.mark.parametrize(
    ("parameters", "output", "prediction", "confidence"),
    [
        ({}, {"prediction": "cat", "confidence": 0.9}, "cat", 0.9),
        ({}, {"prediction": "cat", "confidence": 1}, "cat", 1.0),
        ({}, {"prediction": "cat"}, "cat", None),
        ({}, {"prediction": "cat", "confidence": None}, "cat", None),
        ({}, "cat", "cat", None),
        ({"prediction_key": "label", "confidence_key": "score"}, {"label": "cat", "score": -2.5}, "cat", -2.5),
        ({"confidence_key": None}, {"prediction": "cat", "confidence": 0.9}, "cat", None),
        ({"prediction_key": None, "type": "json"}, {"confidence": 1}, {"confidence": 1}, None),
    ],
)
def test_an_object_holds_the_prediction_under_its_key(
    parameters: dict[str, Any], output: Any, prediction: Any, confidence: float | None
) -> None:
    columns = Prediction(**parameters).score(output, "cat").columns
    assert columns is not None
    assert (columns["prediction"], columns["confidence"]) == (prediction, confidence)


PROBABLE = {"cat": 0.6, "dog": 0.4}


@pytest.mark.parametrize(
    ("parameters", "beside", "confidence", "of", "scores"),
    [
        ({}, {"probabilities": PROBABLE}, 0.6, "cat", PROBABLE),
        ({}, {"probabilities": PROBABLE, "confidence": 0.6}, 0.6, "cat", PROBABLE),
        ({}, {"probabilities": PROBABLE, "confidence": 0.4, "confidence_of": "dog"}, 0.4, "dog", PROBABLE),
        ({}, {"probabilities": PROBABLE, "confidence": 0.3}, 0.3, None, PROBABLE),
        ({}, {"confidence": PROBABLE}, 0.6, "cat", PROBABLE),
        ({}, {"confidence": {"dog": 0.4}}, None, None, {"dog": 0.4}),
        ({}, {"confidence": 0.4, "confidence_of": "dog"}, 0.4, "dog", None),
        ({}, {"confidence_of": "dog"}, None, None, None),
        ({}, {"probabilities": [0.6, 0.4]}, None, None, None),
        ({"probabilities_key": None}, {"probabilities": PROBABLE}, None, None, None),
        ({"confidence_key": "probabilities"}, {"probabilities": PROBABLE}, 0.6, "cat", PROBABLE),
    ],
)
def test_the_class_that_a_confidence_is_of_stands_beside_it(
    parameters: dict[str, Any], beside: dict[str, Any], confidence: float | None, of: str | None, scores: Any
) -> None:
    columns = Prediction(**parameters).score({"prediction": "cat", **beside}, "dog").columns
    assert columns is not None
    assert (columns["confidence"], columns["confidence_of"], columns["scores"]) == (confidence, of, scores)


def test_probabilities_with_a_number_are_ignored() -> None:
    output = {"prediction": 2.0, "probabilities": {"x": "high"}, "confidence": 0.5, "confidence_of": "x"}
    columns = Prediction(type="number").score(output, 2.0).columns
    assert columns is not None
    assert (columns["confidence"], columns["confidence_of"], columns["scores"]) == (0.5, None, None)


def test_probabilities_with_a_set_are_the_scores_of_its_labels() -> None:
    output = {"prediction": ["cat"], "probabilities": {"cat": 0.9, "dog": 0.4}, "confidence": 0.5, "confidence_of": "x"}
    columns = Prediction(type="labels").score(output, ["cat"]).columns
    assert columns is not None
    assert (columns["confidence"], columns["confidence_of"]) == (0.5, None)
    assert columns["scores"] == {"cat": 0.9, "dog": 0.4}
    with pytest.raises(DataError, match="the score of 'cat' is the text 'high', not a number"):
        Prediction(type="labels").score({"prediction": ["cat"], "probabilities": {"cat": "high"}}, ["cat"])


def test_the_examples_weight_comes_with_the_arguments() -> None:
    kind = Prediction()
    assert kind.arguments == ("output", "expected", "weight")
    columns = kind.score("cat", "cat", 2).columns
    assert columns is not None
    assert columns["weight"] == 2.0


@pytest.mark.parametrize("output", [None, {"prediction": None}, {"prediction": None, "confidence": 0.9}])
def test_prediction_abstains_where_there_is_none(output: Any) -> None:
    score = Prediction().score(output, "cat")
    assert (score.status, score.reason) == ("abstained", "the task gave no answer")


def test_prediction_says_beforehand_where_there_is_none() -> None:
    with pytest.raises(DataError, match="no prediction: the task gave null"):
        Prediction().check("cat", [{"prediction": None}])


def test_prediction_is_asked_for_each_target() -> None:
    assert Prediction.by_target


@pytest.mark.parametrize(
    ("parameters", "output", "truth", "message"),
    [
        ({}, {"label": "cat"}, "cat", "no prediction: the output has 'label' and not 'prediction'; set prediction_key"),
        ({}, {}, "cat", "no prediction: the output has no keys"),
        ({}, 3, "cat", "the prediction is the integer 3, not text; set the scorer's type"),
        ({}, "cat", 3, "the truth is the integer 3, not text; .*, as in {kind: prediction, type: integer}, or convert"),
        ({}, ["cat"], "cat", "the prediction is a list"),
        ({"type": "integer"}, "1", 1, "the prediction is the text '1', not an integer"),
        ({"type": "integer"}, 1.5, 1, r"the prediction is the number 1\.5, not an integer"),
        ({"type": "integer"}, True, 1, "the prediction is true, not an integer"),
        ({"type": "integer"}, 2**63, 1, "does not fit in 64 bits"),
        ({"type": "boolean"}, 1, True, "the prediction is the integer 1, not true or false"),
        ({"type": "number"}, True, 1.0, "the prediction is true, not a number"),
        ({"type": "number"}, NAN, 1.0, "the prediction is nan, not a finite number"),
        ({"type": "number"}, 1.0, math.inf, "the truth is inf, not a finite number"),
        ({"type": "number"}, 10**400, 1.0, "too large"),
        ({"type": "json"}, {1, 2}, [1], "the prediction cannot be stored as data: .*set"),
        ({}, {"prediction": "cat", "confidence": "high"}, "cat", "the confidence is the text 'high', not a number"),
        ({}, {"prediction": "cat", "confidence": NAN}, "cat", "the confidence is nan"),
        ({}, {"prediction": "cat", "confidence": True}, "cat", "the confidence is true"),
    ],
)
def test_what_is_missing_or_of_another_type_is_refused_by_name(
    parameters: dict[str, Any], output: Any, truth: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Prediction(**parameters).score(output, truth)


@pytest.mark.parametrize("weight", [-1, NAN, math.inf, "2", True])
def test_a_weight_that_is_none_is_refused(weight: Any) -> None:
    with pytest.raises(DataError, match="the weight is"):
        Prediction().score("cat", "cat", weight)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"type": "float"}, "type is the text 'float'; give one of text, integer, number, boolean, labels, json"),
        ({"prediction_key": ""}, "prediction_key is the text ''"),
        ({"confidence_key": 1}, "confidence_key is the integer 1"),
    ],
)
def test_prediction_refuses_parameters_that_cannot_work(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Prediction(**parameters)


@given(values.filter(lambda value: value is not None and not isinstance(value, dict)))
def test_as_json_every_value_is_its_own_truth(value: Any) -> None:
    assert Prediction(type="json").score(value, value).value == 1
