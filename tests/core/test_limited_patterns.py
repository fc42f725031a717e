"""Regular expressions that give up match as those of Python do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from evaluand import Dataset, Evaluator, Runner
from evaluand.core import limited_patterns
from evaluand.core.limited_patterns import LimitedPattern, SlowPattern
from evaluand.evaluation.scorers.pattern import Pattern
from evaluand.run.task import FunctionTask

# fmt: off
ATOMS = (
    "a", "b", "é", "ß", "ſ", r"\d", r"\w", r"\s", r"\b", r"\B", ".", "^", "$", r"\A", r"\Z", r"\n", " ", "|", "#",
    ",", "[ab]", "[^a]", r"[a-c\d]", "[]a]", "[^]a]", "[[:alpha:]]", "[[:a]", "[a&&b]", "[a--b]", "[a||b]",
    "[a~~b]", "[a-]", "[{e}]", "[(?]", "[#]", "[(?#]", r"\[", r"\]", r"\{", "{", "}", "{e}", "a{e<=1}", "{1",
    "a{,2}", "a{1,}", "x{2}", "(a)", "(a|b)", "(?:ab|a)", "(?=a)", "(?<=a)", "(?!b)", "(?i:a)", "(?s:.)",
    "(?#c{e})", "(?#[)", "#[\n", "(?>a+)", "a++", "(?P<n>a)(?P=n)", "(?P<m>b)?(?(m)a|b)", r"\x41", r"\u00e9",
    r"\N{LATIN SMALL LETTER A}", r"\07",
)
# fmt: on
REPEATS = ("", "", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,1}")
TEXTS = (
    "",
    "a",
    "ab",
    "aab{e}ba",
    "A{B}",
    "xx a1 é ß ẞ K K",
    "ſs S",
    "a\nb\r\n c",
    "[:a] :] ]a",
    "--&&||~~",
    "aaaaaaaab",
)
FLAGS = (0, re.IGNORECASE, re.MULTILINE, re.DOTALL, re.ASCII, re.VERBOSE, re.IGNORECASE | re.ASCII)

expressions = st.lists(st.tuples(st.sampled_from(ATOMS), st.sampled_from(REPEATS)), min_size=1, max_size=5).map(
    lambda parts: "".join(atom + repeat for atom, repeat in parts)
)


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")  # that Python may read them otherwise one day
@given(expressions, st.sampled_from(FLAGS), st.sampled_from(TEXTS) | st.text("ab{}[] \n1é", max_size=12))
def test_they_match_as_those_of_python(expression: str, flags: int, text: str) -> None:
    try:
        known = re.compile(expression, flags)
    except re.error:
        with pytest.raises(re.error):
            LimitedPattern(expression, flags)
        return
    limited = LimitedPattern(expression, flags)
    assert shown(limited.search(text)) == shown(known.search(text))
    assert limited.findall(text) == known.findall(text)
    assert limited.split(text, 1) == known.split(text, 1)
    assert limited.sub(r"<\g<0>>", text) == known.sub(r"<\g<0>>", text)


def shown(match: Any) -> Any:
    return match and (match.span(), match.groups(), match.groupdict())


@pytest.mark.parametrize(
    ("expression", "text"),
    [("^(a|aa)+$", "a" * 60 + "b"), (r"\s+$", " " * 40_000 + "x"), (r"^(.|.)+$", "x" * 60 + "\n\n")],
)
def test_a_search_without_end_is_given_up(expression: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_patterns, "SECONDS", 0.01)
    limited = LimitedPattern(expression)
    for search in (limited.search, limited.findall, limited.split, lambda it: limited.sub("", it)):
        with pytest.raises(SlowPattern, match=r"took more than 0\.01 s on this text"):
            search(text)


def test_repeats_that_would_fill_the_memory_are_no_pattern() -> None:
    with pytest.raises(re.error, match=r"its repeats, written out, have 1,001,001,00. parts"):
        LimitedPattern("((a{1000}){1000}){1000}")


def test_repeats_one_after_the_other_are_not_multiplied() -> None:
    uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    line = LimitedPattern(",".join([rf"({uuid}|\d{{10,20}})"] * 20))
    found = line.search(",".join(["123e4567-e89b-12d3-a456-426614174000"] * 20))
    assert set(found.groups()) == {"123e4567-e89b-12d3-a456-426614174000"}


def test_they_match_as_in_the_tests_of_python_itself() -> None:
    python = pytest.importorskip("test.re_tests", reason="needs Python's own tests, which some distributions leave out")
    compared = 0
    for expression, text, *_ in python.tests:
        for flags in (0, re.IGNORECASE, re.MULTILINE, re.DOTALL):
            try:
                known = re.compile(expression, flags)
            except re.error:
                continue
            assert shown(LimitedPattern(expression, flags).search(text)) == shown(known.search(text)), expression
            compared += 1
    assert compared > 1000


def test_a_search_without_end_costs_its_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_patterns, "SECONDS", 0.05)
    data = Dataset.from_rows([{"input": "aaa"}, {"input": "a" * 60 + "b"}, {"input": "b"}])
    run = Runner().run(FunctionTask(str, version="1"), data)
    graded = Evaluator().evaluate(run, {"only_a": Pattern(pattern="^(a|aa)+$")})
    rows = graded.table("only_a").to_pylist()
    assert [row["status"] for row in rows] == ["scored", "failed", "scored"]
    assert [row["value"] for row in rows] == [1.0, None, 0.0]
    assert "took more than 0.05 s on this text" in rows[1]["reason"]
