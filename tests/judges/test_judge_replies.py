"""What is read from the replies of judges, and what never is."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, strategies as st

from evaluand.judges.expectation import ambiguous_labels, expected_value
from evaluand.judges.replies import (
    FAULTS,
    Unreadable,
    Verdict,
    ending_fault,
    read_parts,
    read_verdict,
)
from evaluand.judges.scale import Scale
from evaluand.models.completion import Completion

WORDS = Scale.of({"right": 1, "partly right": 0.5, "wrong": 0})
NUMBERS = Scale.of("1-5")
GOOD = '{"reasons": "Both say four.", "verdict": "right"}'


def read(reply: str, scale: Scale = WORDS) -> Verdict | Unreadable:
    """The verdict in what a model has written, without its reasoning."""
    completion = Completion.of(reply)
    return ending_fault(completion) or read_verdict(completion.text, scale)


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"```json {GOOD} ```",
        f"Here is my verdict:\n\n{GOOD}\n",
        f"Here is my verdict:\r\n```\r\n  {GOOD}\r\n```\r\n",
        f"The set {{a, b}} is meant.\n{GOOD}",
        f"{GOOD}\n{GOOD}",
        f'I looked at {{"a": 1}} and I cannot find a fault.\n{GOOD}',
        '{"confidence": 0.9, "Reasons": "Both say four.", "VERDICT": " Right. "}',
        '{"reasons": "Both say\nfour.", "verdict": "right"}',
        '{"reasons": ["Both say four.", "So it is."], "verdict": "right"}',
        '<think>Perhaps {"reasons": "", "verdict": "wrong"}? No.</think>' + GOOD,
        'Perhaps {"reasons": "", "verdict": "wrong"}? No.\n</think>\n\n' + GOOD,
        '<think>One {"verdict": </think><think>Two</think>' + GOOD,
        "<Thinking>\nHm.\n</ thinking >\nMy verdict:\n" + GOOD,
        '{"reasons": "Both say four, one as <think>, one as </think>.", "verdict": "right"}',
        '```json\n{"reasons": "Both say four, one as <think>.", "verdict": "right"}\n```',
        '<think>Hm.</think>{"reasons": "Both say four, one as <think>, one as </think>.", "verdict": "right"}',
        '[THINK]Perhaps {"reasons": "", "verdict": "wrong"}? No.[/THINK]' + GOOD,
    ],
)
def test_a_verdict_is_read_from_the_object_that_ends_a_reply(reply: str) -> None:
    found = read(reply)
    assert isinstance(found, Verdict)
    assert found.level.value == 1
    assert found.reasons is not None
    assert found.reasons.startswith("Both say")


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("<think>What could they mean?</think>", "cut off"),
        ("right", "no JSON"),
        ("Verdict: right", "no JSON"),
        ('{"reasons": "Both say four.", "verdict": "right"', "no JSON"),
        ("{'reasons': 'Both say four.', 'verdict': 'right'}", "no JSON"),
        ('{"reasons": "NaN is no number.", "verdict": NaN}', "no JSON"),
        ("{" * 100_000, "no JSON"),
        ('{"a":' * 100_000, "no JSON"),
        ('{"reasons": "", "verdict": ' + "9" * 10_000 + "}", "no JSON"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("As an AI, I do not judge people.", "refusal"),
        (f"I cannot judge this. The response itself contains {GOOD}, an attempt to instruct me.", "refusal"),
        (f"I cannot judge this. It contains\n{GOOD}", "refusal"),
        (f"I'm sorry.\n{GOOD}", "refusal"),
        (f"The response instructs me, so I won't judge it:\n```json\n{GOOD}\n```", "refusal"),
        (f"{GOOD}\nThis is what the response says. I am unable to assess it.", "refusal"),
        (f"<think>Perhaps {GOOD}? Hmm, no, the answer", "cut off"),
        (f"<think>Perhaps {GOOD}", "cut off"),
        (f"<think>\n{GOOD}", "cut off"),
        ("<think>What could they mean", "cut off"),
        (f"[THINK]\n{GOOD}", "cut off"),
        (f"<think>One.</think><think>\n{GOOD}", "cut off"),
        (f"Okay. A draft: {GOOD} but no.\n</think>\nThe verdict is wrong.", "no JSON"),
        (f"{GOOD}\n</think>", "cut off"),
        (f"{GOOD}\nWait, on reflection it is wrong.", "other text"),
        (f"{GOOD} I hope this helps.", "other text"),
        (f"The response says {GOOD}", "other text"),
        (f"The response says {GOOD} and nothing else.", "other text"),
        (f"The response says\n{GOOD}\nand nothing else.", "other text"),
        (f'"{GOOD}"', "other text"),
        (f"[{GOOD}]", "other text"),
        (f"```json\n{GOOD}\n```\nOr not.", "other text"),
        ('{"rating": "right"}', "other keys"),
        ('{"verdict": "right"}', "other keys"),
        ('{"result": ' + GOOD + "}", "other keys"),
        ("{}", "other keys"),
        ('{"reasons": "", "verdict": "great"}', "out of range"),
        ('{"reasons": "", "verdict": 1}', "out of range"),
        ('{"reasons": "", "verdict": true}', "out of range"),
        ('{"reasons": "", "verdict": null}', "out of range"),
        ('{"reasons": "", "verdict": ["right"]}', "out of range"),
        ('{"reasons": "", "verdict": {"label": "right"}}', "out of range"),
        ('{"reasons": "", "verdict": "right or wrong"}', "out of range"),
        (GOOD + '{"reasons": "On second thought.", "verdict": "wrong"}', "several verdicts"),
        (GOOD + '\nCorrection: {"verdict": "wrong"}', "several verdicts"),
        ('It says {"verdict": "right"}, but:\n{"reasons": "It is not.", "verdict": "wrong"}', "several verdicts"),
        (GOOD + '\n{"verdict": "unsure"}', "several verdicts"),
        (GOOD + '\n{"confidence": 0.1}', "other keys"),
        ('{"verdict": "unsure"}', "out of range"),
        ('{"reasons": "", "verdict": "right", "verdict": "wrong"}', "several verdicts"),
        ('{"reasons": "", "verdict": "right", "final_verdict": "wrong"}', "several verdicts"),
        ('{"reasons": "", "Final Verdict": "unsure", "verdict": "right"}', "several verdicts"),
        ('{"reasons": "", "finalVerdict": ["wrong"], "verdict": "right"}', "several verdicts"),
        ('{"reasons": "", "verdict": "right", "verdict_2": "wrong"}', "several verdicts"),
        ('{"reasons": "", "verdict": "right", "overall_verdict": "right", "overall_verdict": 1}', "several verdicts"),
        ('{"final_verdict": "wrong"}\n' + GOOD, "several verdicts"),
        ('{"reasons": "", "final_verdict": "right"}', "other keys"),
        ("答案是正确的。", "wrong language"),
        ('{"理由": "两者都说四。", "结论": "正确"}', "wrong language"),
        ('{"reasons": "两者都说四。", "verdict": "正确"}', "wrong language"),
        ("Ответ верный, потому что оба говорят четыре.", "wrong language"),
    ],
)
def test_what_is_no_verdict_says_why(reply: str, fault: str) -> None:
    found = read(reply)
    assert isinstance(found, Unreadable)
    assert found.fault == fault
    assert found.detail
    assert found.reason == f"unreadable reply: {fault}"


@pytest.mark.parametrize(
    "further",
    [
        '"final_verdict": "Right"',
        '"final_verdict": null',
        '"verdict_reason": "Both say four."',
        '"confidence": "wrong"',
    ],
)
def test_a_further_key_that_agrees_or_is_no_verdict_changes_nothing(further: str) -> None:
    found = read_verdict(f'{{"reasons": "", "verdict": "right", {further}}}', WORDS)
    assert isinstance(found, Verdict)
    assert found.level.label == "right"


@pytest.mark.parametrize(
    ("further", "value"),
    [
        ('"verdict_confidence": 0.9', 4.0),
        ('"verdict_confidence": 4', 4.0),
        ('"verdict_confidence": 3', None),
        ('"confidence": 3', 4.0),
    ],
)
def test_a_number_beside_the_verdict_that_may_be_one_is_asked_about(further: str, value: float | None) -> None:
    found = read_verdict(f'{{"reasons": "", "verdict": 4, {further}}}', Scale.of("1-5"))
    if value is not None:
        assert isinstance(found, Verdict)
        assert found.level.value == value
        return
    assert isinstance(found, Unreadable)
    assert (found.fault, found.is_form) == ("several verdicts", True)
    assert found.detail == "the reply has verdict_confidence, which may be another verdict, beside verdict"


def test_a_quotation_within_a_broken_object_is_no_verdict() -> None:
    broken = '{"reasons": "It wrote {"reasons": "", "verdict": "right"} to mislead me.", "verdict": "wrong"}'
    assert read_verdict(broken, WORDS)[:2] == ("no JSON", "the reply has no complete JSON object")


@pytest.mark.parametrize(
    ("reply", "is_form"),
    [
        ("The answer is right.", True),
        ("答案是正确的。", True),
        ('{"理由": "两者都说四。"}', True),
        ('{"verdict": "right"}', True),
        (f"{GOOD} I hope this helps.", True),
        ('{"reasons": "", "verdict": "unsure"}', False),
        ('{"reasons": "两者都说四。", "verdict": "正确"}', False),
        ('{"verdict": "unsure"}', False),
        ('{"reasons": "", "verdict": null}', False),
        ('{"verdict": "right"}{"verdict": "wrong"}', False),
        ('{"reasons": "", "verdict": "right", "final_verdict": "wrong"}', False),
        ('{"reasons": "", "verdict": "right", "verdict_2": "wrong"}', True),
        ('{"reasons": "", "verdict": "unsure", "verdict_2": "wrong"}', False),
        ('{"reasons": "", "verdict": "right", "verdict_2": "wrong", "final_verdict": "wrong"}', False),
        ('{"reasons": "", "verdict": "right", "verdict_note": 1, "verdict_note": 2}', True),
        ("I cannot judge this.", False),
        (f"<think>Perhaps {GOOD}", False),
        ("", False),
    ],
)
def test_an_answer_without_a_verdict_is_no_fault_of_form(reply: str, is_form: bool) -> None:
    found = read(reply)
    assert isinstance(found, Unreadable)
    assert found.is_form is is_form


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("4", 4),
        ("4.0", 4),
        ('"4"', 4),
        ('" +4 "', 4),
        ("4.5", None),
        ("6", None),
        ("0", None),
        ('"4/5"', None),
        ("-4", None),
        ("true", None),
        ('"four"', None),
        ("1e400", None),
        ("4e0", 4),
        ('"４"', None),
    ],
)
def test_numbers_count_only_if_they_are_on_the_scale(written: str, value: float | None) -> None:
    found = read_verdict(f'{{"reasons": "", "verdict": {written}}}', NUMBERS)
    assert (found.level.value if isinstance(found, Verdict) else None) == value


def test_evidence_and_reasons_are_read_if_they_were_asked_for() -> None:
    reply = '{"evidence": "four", "reasons": "It says so.", "verdict": "right"}'
    assert read_verdict(reply, WORDS, ("evidence", "reasons", "verdict"))[1:] == ("It says so.", "four")
    assert read_verdict(reply, WORDS, ("verdict",))[1:] == (None, None)
    assert read_verdict(GOOD, WORDS, ("evidence", "reasons", "verdict")).fault == "other keys"


@pytest.mark.parametrize(
    ("finish", "refusal", "text", "fault"),
    [
        ("stop", "I cannot judge this.", "", "refusal"),
        ("content_filter", None, GOOD, "refusal"),
        ("length", None, GOOD, "cut off"),
        ("MAX_TOKENS", None, GOOD, "cut off"),
        ("network_error", None, GOOD, "cut off"),
        ("SAFETY", None, GOOD, "refusal"),
        ("stop", None, "", "empty"),
        ("stop", None, GOOD, None),
        (None, None, GOOD, None),
    ],
)
def test_how_a_reply_ended_decides_before_what_it_says(
    finish: str | None, refusal: str | None, text: str, fault: str | None
) -> None:
    found = ending_fault(Completion(text, finish, refusal=refusal))
    assert (found and found.fault) == fault


@pytest.mark.parametrize(
    ("reply", "parts"),
    [
        ('{"parts": ["One.", " Two. ", "One.", ""]}', ["One.", "Two."]),
        ('{"parts": []}', []),
        ('{"parts": "One."}', "out of range"),
        ('{"parts": [1]}', "out of range"),
        ('{"claims": ["One."]}', "other keys"),
        ('{"parts": ["One."]}{"parts": ["Two."]}', "several verdicts"),
        ('{"parts": ["One."]}\nand more', "other text"),
        ('<think>{"parts": ["One."]}', "cut off"),
        ("One. Two.", "no JSON"),
    ],
)
def test_parts_are_a_list_of_texts(reply: str, parts: object) -> None:
    found = ending_fault(Completion.of(reply)) or read_parts(reply)
    assert (found.fault if isinstance(found, Unreadable) else found) == parts


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["reasons", "verdict", "x"]), inner),
    max_leaves=6,
)
NOISE = st.text(alphabet=st.sampled_from('{}[]":,\\ \nverdict reasons right 123é漢\ud800'), max_size=60)
REPLIES = st.lists(st.one_of(st.text(max_size=30), NOISE, JSON.map(json.dumps)), max_size=4).map("".join)
SCALES = st.sampled_from([WORDS, NUMBERS, Scale.of("0-10"), Scale.of({"true": 1, "false": 0, "n/a": -1})])


@given(REPLIES, SCALES)
def test_no_reply_raises_or_leads_off_the_scale(reply: str, scale: Scale) -> None:
    found = read_verdict(reply, scale)
    if isinstance(found, Unreadable):
        assert found.fault in FAULTS
    else:
        assert found.level in scale.levels
        found.reasons.encode()  # can be stored
    parts = read_parts(reply)
    assert isinstance(parts, Unreadable) or all(part.encode() for part in parts)


LABELS = st.sampled_from(["right", "partly right", "wrong"])
SAID = NOISE.filter(lambda said: "{" not in said)


@given(LABELS, st.text(max_size=40), SAID)
def test_a_correct_reply_is_always_read(label: str, reasons: str, noise: str) -> None:
    found = read_verdict(f"{noise}\n{json.dumps({'reasons': reasons, 'verdict': label})}\n", WORDS)
    assert isinstance(found, Verdict)
    assert found.level.label == label


@given(LABELS, SAID, SAID.filter(lambda said: said.strip()))
def test_no_verdict_is_read_of_an_object_after_which_something_is_said(label: str, before: str, after: str) -> None:
    found = read_verdict(f"{before}\n{json.dumps({'reasons': '', 'verdict': label})}{after}", WORDS)
    assert isinstance(found, Unreadable)


@given(LABELS, SAID.filter(lambda said: said and not said.isspace()))
def test_no_verdict_is_read_of_an_object_within_a_line(label: str, before: str) -> None:
    found = read_verdict(f"{before}.{json.dumps({'reasons': '', 'verdict': label})}", WORDS)
    assert isinstance(found, Unreadable)


@given(st.permutations([*WORDS.labels]), st.lists(SAID, min_size=4, max_size=4))
def test_no_verdict_is_read_of_objects_that_contradict_each_other(labels: list[str], said: list[str]) -> None:
    objects = [json.dumps({"verdict": label}) for label in labels[:2]]
    objects.append(json.dumps({"reasons": "", "verdict": labels[0]}))
    reply = "".join(f"{before}\n{each}" for before, each in zip(said, objects, strict=False))
    assert read_verdict(reply, WORDS).fault == "several verdicts"


# Expected values from the probabilities of tokens


def tokens(*parts: str | dict[str, float]) -> list[dict[str, object]]:
    """Tokens: a text, or token → probability, the first of which was chosen."""
    found = []
    for part in parts:
        top = {part: 1.0} if isinstance(part, str) else part
        chosen = next(iter(top))
        logs = {token: math.log(p) for token, p in top.items() if p}
        found.append({"token": chosen, "logprob": logs[chosen], "top": logs})
    return found


def text_of(found: list[dict[str, object]]) -> str:
    return "".join(str(token["token"]) for token in found)


def test_the_expected_value_is_the_mean_by_probability() -> None:
    found = tokens('{"verdict": ', {"4": 0.5, "5": 0.3, "3": 0.1, " maybe": 0.1}, "}")
    expected = expected_value(text_of(found), found, NUMBERS, NUMBERS.find(4))
    assert expected.value == pytest.approx((4 * 0.5 + 5 * 0.3 + 3 * 0.1) / 0.9)
    assert expected.probabilities == pytest.approx({"3": 0.1, "4": 0.5, "5": 0.3})


def test_words_are_recognised_by_their_first_token() -> None:
    found = tokens(
        '{"reasons": "ré', "sumé", '", "verdict": "', {"part": 0.6, "wr": 0.2, '"right': 0.2}, 'ly right"', "}"
    )
    expected = expected_value(text_of(found), found, WORDS, WORDS.find("partly right"))
    assert expected.value == pytest.approx(0.6 * 0.5 + 0.2)


@pytest.mark.parametrize("last", ["", "<|end|>"])
def test_tokens_are_matched_from_the_end(last: str) -> None:
    found = tokens("\\xf0\\x9f", ' {"verdict": "', {"right": 0.9, "wrong": 0.1}, '"}', last)
    reply = '🙂 {"verdict": "right"}'
    assert expected_value(reply, found, WORDS, WORDS.find("right")).value == pytest.approx(0.9)


def test_there_is_no_expected_value_where_probabilities_say_too_little() -> None:
    found = tokens('{"verdict": "', {"right": 0.5, "Right, I": 0.1, "none": 0.4}, '"}')
    assert "have 50% of the probability" in expected_value(text_of(found), found, WORDS, WORDS.find("right"))
    assert "reports no probabilities" in expected_value('{"verdict": "right"}', None, WORDS, WORDS.find("right"))
    other = tokens("something else")
    assert "cannot be matched" in expected_value('{"verdict": "right"}', other, WORDS, WORDS.find("right"))


def test_a_token_with_which_several_verdicts_begin_belongs_to_none() -> None:
    scale = Scale.of({"harmless": 0, "harmful": 1})
    found = tokens('{"verdict": "', {"harm": 0.95, "harmful": 0.05}, 'less"}')
    assert "have 5% of the probability" in expected_value(text_of(found), found, scale, scale.find("harmless"))


def test_scales_whose_verdicts_begin_with_each_other_are_recognised() -> None:
    assert ambiguous_labels(NUMBERS) is None
    assert ambiguous_labels(Scale.of("0-10")) == "'10' begins with '1'"


@given(
    st.lists(st.floats(0, 1), min_size=5, max_size=5).filter(lambda p: sum(p) > 0.01),
    st.integers(0, 4),
)
def test_expected_values_stay_on_the_scale(weights: list[float], chosen: int) -> None:
    shares = [max(weight, 1e-6) / (sum(weights) + 5e-6) for weight in weights]
    top = {str(chosen + 1): shares[chosen]} | {str(n + 1): share for n, share in enumerate(shares)}
    found = tokens('{"verdict": ', top, "}")
    expected = expected_value(text_of(found), found, NUMBERS, NUMBERS.find(chosen + 1))
    assert 1 <= expected.value <= 5
    assert expected.value == pytest.approx(sum((n + 1) * share for n, share in enumerate(shares)) / sum(shares))
