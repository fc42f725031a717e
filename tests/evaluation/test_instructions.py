"""Instructions that a program can check: each kind, followed and not, and what is asked for in a wrong way."""

from __future__ import annotations

from typing import Any

import pytest

from evaluand.core.errors import DataError, SpecError
from evaluand.core.text import language
from evaluand.evaluation.scorers.instructions import Instructions, count_sentences

LANGUAGE = "language:response_language"
GERMAN = "Das ist ein deutscher Satz über das Wetter."


def _asked(*instructions: tuple[str, Any]) -> dict[str, Any]:
    return {"names": [name for name, _ in instructions], "parameters": [given for _, given in instructions]}


@pytest.mark.parametrize(
    ("instruction", "parameters", "followed", "broken"),
    [
        ("punctuation:no_comma", {}, "One and two.", "One, two."),
        ("keywords:existence", {"keywords": ["sea", "c++"]}, "The Sea and C++", "The sea and c"),
        ("keywords:forbidden_words", {"forbidden_words": ["sea"]}, "A season", "The Sea."),
        ("keywords:frequency", {"keyword": "sea", "relation": "at least", "frequency": 2}, "Sea, seas", "sea"),
        ("keywords:frequency", {"keyword": "sea", "relation": "less than", "frequency": 2}, "sea", "sea sea"),
        ("keywords:letter_frequency", {"letter": "#", "let_relation": "at least", "let_frequency": 2}, "#a #b", "#a"),
        ("keywords:letter_frequency", {"letter": "t", "let_relation": "less than", "let_frequency": 2}, "Tom", "tot"),
        ("length_constraints:number_words", {"relation": "less than", "num_words": 3}, "one two", "one-two three"),
        ("length_constraints:number_sentences", {"relation": "at least", "num_sentences": 2}, "No! Yes", "Mr. Poe."),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\na\n***\nb", "a *** *** b"),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a***b", "a\n\nb"),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"},
            "First.\n\n\"Then, it's over.",
            "Then.\n\nFirst.",
        ),
        ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name], [home]", "[name]"),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye\np. s. More", "Bye PS More"),
        ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "P.P.S. More", "P.S. More"),
        ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n  - b\n**c**", "* a"),
        ("detectable_format:constrained_response", {}, "My answer is maybe.", "Maybe."),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*one* and **two**", "*one* and * *"),
        (
            "detectable_format:multiple_sections",
            {"section_spliter": "SECTION", "num_sections": 2},
            "SECTION 1\na\nSECTION2\nb",
            "Section 1\na\nSection 2\nb",
        ),
        ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "a: 1"),
        ("detectable_format:title", {}, "<<Rain>>\nIt falls.", "<< >>\nIt falls."),
        ("combination:two_responses", {}, "one ****** two", "one ****** one"),
        ("combination:two_responses", {}, "******one******two", "one ****** ****** two"),
        ("combination:repeat_prompt", {"prompt_to_repeat": "Say it."}, "say it. So.", "So: say it."),
        ("startend:end_checker", {"end_phrase": "The end."}, 'So.\n"... the END."', "The end. Really."),
        ("startend:quotation", {}, ' "All of it." ', '"Some" of it.'),
        ("change_case:english_capital", {}, "ALL OF IT.", "ALL of it."),
        ("change_case:english_lowercase", {}, "all of it.", "All of it."),
        (
            "change_case:capital_word_frequency",
            {"capital_relation": "at least", "capital_frequency": 2},
            "An END-TO-END test by NASA",
            "An END-TO-END test",
        ),
    ],
)
def test_an_instruction_is_followed_or_not(
    instruction: str, parameters: dict[str, Any], followed: str, broken: str
) -> None:
    asked = _asked((instruction, {**parameters, "of_another_kind": None}))
    assert Instructions().score(followed, asked)[:4] == (1.0, None, None, None)
    for reply in (broken, " \n", ""):
        assert Instructions().score(reply, asked)[:4] == (0.0, None, None, f"not followed: {instruction}")


def test_instructions_are_counted_by_kind() -> None:
    asked = _asked(("startend:quotation", None), ("punctuation:no_comma", {}), ("punctuation:no_comma", {}))
    score = Instructions().score("None", asked)
    counts = {"correct": 2, "partial": 0, "n_expected": 3, "n_predicted": 3}
    by_tag = {
        "startend:quotation": {"expected": 1, "found": 0, "predicted": 1, "right": 0},
        "punctuation:no_comma": {"expected": 2, "found": 2, "predicted": 2, "right": 2},
    }
    assert (score.value, score.columns) == (0.0, {**counts, "by_tag": by_tag})
    assert Instructions().unanswered(asked) == {"n_expected": 3}


def test_a_language_is_identified_on_request() -> None:
    asked = _asked((LANGUAGE, {"language": "de"}), ("punctuation:no_comma", {}))
    unread = Instructions().score(GERMAN, asked)
    assert (unread.status, unread.reason) == ("abstained", f"{LANGUAGE} needs detect_language: true")
    scorer = Instructions(detect_language=True)
    assert [scorer.score(reply, asked).value for reply in (GERMAN, "This is an English sentence.", "1")] == [1, 0, 0]
    lower = _asked(("change_case:english_lowercase", {}))
    assert Instructions().score(GERMAN.lower(), lower).value == 1
    assert scorer.score(GERMAN.lower(), lower).value == 0
    assert scorer.score("this is a sentence about the weather.", lower).value == 1


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "find_spec", lambda name: None)
    with pytest.raises(SpecError, match=r"instructions needs py3langid: pip install 'evaluand\[language\]'"):
        Instructions(detect_language=True)


def test_what_cannot_be_graded_abstains() -> None:
    asked = _asked(("punctuation:no_comma", {}))
    assert Instructions().score("a", None).reason == "no expected value"
    assert Instructions().score(1, asked).reason == "the output is the integer 1, not text"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("no commas", "the expected value has the text 'no commas'; instructions reads names and parameters"),
        ({"names": ["punctuation:no_comma"]}, "has 'names'; instructions reads names and parameters"),
        ({"names": [], "parameters": []}, "names of the expected value is a list"),
        ({"names": ["punctuation:no_comma"], "parameters": [{}, {}]}, "has 1 names and 2 parameters"),
        ({"names": [["a"]], "parameters": [{}]}, "a list is no known instruction"),
        (_asked(("punctuation:no_coma", {})), "'punctuation:no_coma' is no known instruction .did you mean"),
        (_asked(("punctuation:no_comma", "none")), "the parameters of punctuation:no_comma are the text 'none'"),
        (_asked(("keywords:existence", {})), "keywords:existence has the parameters keywords, and is given none"),
        (_asked(("keywords:existence", {"keywords": [1]})), "keywords of keywords:existence is a list; give a list of"),
        (_asked(("startend:end_checker", {"end_phrase": ""})), "end_phrase of startend:end_checker is the text ''"),
        (
            _asked(("length_constraints:number_words", {"relation": "at most", "num_words": 3})),
            "relation of length_constraints:number_words is the text 'at most'; give 'less than' or 'at least'",
        ),
    ],
)
def test_what_is_asked_for_in_a_wrong_way_is_refused(asked: Any, message: str) -> None:
    for grade in (Instructions().check, lambda expected: Instructions().score("a", expected)):
        with pytest.raises(DataError, match=message):
            grade(asked)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("no mark at all", 1),
        ("One. two! three?", 3),
        ('He said "No." Then he left.', 2),
        ("Dr. J. S. Bach, e.g. in Leipzig", 1),
        ("So... it is... Indeed", 2),
        ("It cost 3.50 euros in 1999. And now?", 2),
        ("A line\nanother line\n- an entry", 1),
    ],
)
def test_sentences_are_counted(text: str, number: int) -> None:
    assert count_sentences(text) == number
