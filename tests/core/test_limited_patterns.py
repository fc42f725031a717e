"""Regular expressions that give up match as those of Python do."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
CLASSES = (r"\w+", r"\W", r"\b.", r"\d", r"\s+", r"\S", "(?i)i+", ".", "[^a]+", r"e\w*")
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
    "a\x1cb \x1f",
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
    for limited in both_ways(expression, flags):
        assert shown(limited.search(text)) == shown(known.search(text))
        assert [*map(shown, limited.finditer(text))] == [*map(shown, known.finditer(text))]
        assert limited.findall(text) == known.findall(text)
        assert limited.split(text, 1) == known.split(text, 1)
        assert limited.sub(r"<\g<0>>", text) == known.sub(r"<\g<0>>", text)


def both_ways(expression: str, flags: int = 0) -> Iterator[LimitedPattern]:
    """The pattern with the engine that it chooses, and with the one that has a time limit."""
    yield LimitedPattern(expression, flags)
    limited = LimitedPattern(expression, flags)
    limited.longest = 0
    yield limited


def shown(match: Any) -> Any:
    return match and (match.span(), match.groups(), match.groupdict())


# Which engine


@given(st.sampled_from(CLASSES), st.text("ae\u0301é²½\u0915\u094d5\U0001e951ⓐİı \x1c’中", max_size=8))
def test_a_text_is_read_alike_whatever_its_length(expression: str, text: str) -> None:
    """Letters that the engines take for different things are read by the one with the time limit."""
    quick, limited = both_ways(expression)
    assert quick.findall(text) == limited.findall(text)


@pytest.mark.parametrize("expression", [r"\w", r"\d", r"\s", r"\b.", "."])
def test_both_engines_know_the_characters_that_either_may_read(expression: str) -> None:
    characters = map(chr, [*range(0xD800), *range(0xE000, 0x110000)])
    text = " ".join(each for each in characters if not limited_patterns._UNLIKE.match(each))
    quick, limited = both_ways(expression)
    quick.longest = len(text)
    assert len(text) > 50_000
    assert quick.findall(text) == limited.findall(text)


@pytest.mark.parametrize(
    ("expression", "longest"),
    [
        ("answer is ([A-D])", 1 << 20),
        ("[a-z]", 1 << 20),
        (r"\s+", 1 << 20),  # what it has tried is part of the match
        (r"-?\d+(?:\.\d+)?", 1 << 20),
        (r"\\boxed\{([^}]*)\}", 2048),  # n²: each beginning, and the rest of the text
        (r"\s+$", 4096),
        (r".*a.*b", 256),  # n³
        ("^(a|aa)+$", 16),  # 2 to the power of n
        (r"(?>a|aa)+", 0),  # not understood
        (r"(?P<n>a+)(?P=n)", 0),
        ("(?i)\u0130", 0),  # cases of other letters differ between the engines
    ],
)
def test_the_limit_is_set_where_a_search_may_take_more_than_a_second(expression: str, longest: int) -> None:
    assert LimitedPattern(expression).longest == longest


simple = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "$", r"\b", "ab"])
nested = st.recursive(
    simple,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map("".join)
        | st.tuples(inner, inner).map(lambda sides: f"({sides[0]}|{sides[1]})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,3}", "{2,}"])).map(
            lambda parts: f"(?:{parts[0]}){parts[1]}"
        )
        | inner.map(lambda it: f"(?={it})")
    ),
    max_leaves=6,
)


@given(nested, st.text("ab ", max_size=9))
def test_a_search_takes_no_more_steps_than_it_is_said_to(expression: str, text: str) -> None:
    """As a matcher that backtracks counts them, which tries every way."""
    parts = re._parser.parse(expression)
    counted = Backtracking(text).count_steps(parts)
    assert counted <= limited_patterns._count_steps(parts, len(text)), expression


class Backtracking:
    """A matcher as that of `re`, without its shortcuts, that counts what it tries."""

    def __init__(self, text: str) -> None:
        self.text, self.steps = text, 0

    def count_steps(self, parts: Any) -> int:
        """Finds all matches."""
        start = 0
        while start <= len(self.text):
            end = next(self.ends([*parts], start), None)
            start = start + 1 if end is None or end == start else end
        return self.steps

    def ends(self, parts: list[Any], start: int) -> Iterator[int]:
        if not parts:
            yield start
            return
        for middle in self.ends_of(str(parts[0][0]), parts[0][1], start):
            yield from self.ends(parts[1:], middle)

    def ends_of(self, name: str, content: Any, start: int) -> Iterator[int]:
        if name == "SUBPATTERN":
            yield from self.ends([*content[-1]], start)
        elif name == "ASSERT":
            if next(self.ends([*content[1]], start), None) is not None:
                yield start
        elif name == "BRANCH":
            for side in content[1]:
                yield from self.ends([*side], start)
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            yield from self.repeats(content, start, 0, is_lazy=name == "MIN_REPEAT")
        else:
            self.steps += 1
            if name == "AT":
                if start == len(self.text) or "BOUNDARY" in str(content):
                    yield start
            elif start < len(self.text) and self.is_in(name, content, self.text[start]):
                yield start + 1

    def repeats(self, content: Any, start: int, turn: int, is_lazy: bool) -> Iterator[int]:
        least, most, body = content
        if is_lazy and turn >= least:
            yield start
        if turn < most:
            for end in self.ends([*body], start):
                if end > start or turn < least:
                    yield from self.repeats(content, end, turn + 1, is_lazy)
        if not is_lazy and turn >= least:
            yield start

    def is_in(self, name: str, content: Any, character: str) -> bool:
        if name == "IN":
            negated = str(content[0][0]) == "NEGATE"
            return (ord(character) in {value for _, value in content[negated:]}) is not negated
        return name == "ANY" or (ord(character) == content) is (name == "LITERAL")


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
            for limited in both_ways(expression, flags):
                assert shown(limited.search(text)) == shown(known.search(text)), expression
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
