"""The scorer `spans`: pairs and their rating by hand and by brute force, empty answers, and what is no span."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.thinned import thinned

from evaluand import Candidates, Dataset, Evaluation, Evaluator, Runner, Score, SpecError, task
from evaluand.core.errors import DataError
from evaluand.evaluation.scorers.spans import OUTCOMES, Span, Spans

MODES = ("strict", "exact", "partial", "type")


def span(start: int, end: int, tag: str) -> dict[str, Any]:
    return {"start": start, "end": end, "tag": tag}


def counts(score: Score) -> tuple[int, ...]:
    """Correct, incorrect, partial, missed and spurious spans."""
    assert score.columns is not None
    return tuple(score.columns[outcome] for outcome in OUTCOMES)


# Pairs

EXPECTED = [span(0, 3, "PER"), span(10, 20, "ORG"), span(30, 40, "LOC"), span(50, 55, "PER"), span(60, 65, "LOC")]
ANSWER = [span(0, 3, "PER"), span(10, 20, "LOC"), span(30, 38, "LOC"), span(51, 55, "ORG"), span(70, 75, "ORG")]


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("strict", (1, 3, 0, 1, 1)),  # only the first has its place and its tag
        ("exact", (2, 2, 0, 1, 1)),  # the second too has its place
        ("partial", (2, 0, 2, 1, 1)),  # the third and the fourth overlap
        ("type", (2, 2, 0, 1, 1)),  # the first and the third have their tag
    ],
)
def test_the_four_modes_rate_the_same_pairs_differently(mode: str, found: tuple[int, ...]) -> None:
    score = Spans(mode=mode).score(ANSWER, EXPECTED)
    assert counts(score) == found
    assert score.value == (found[0] + found[2] / 2) / 5


def test_the_order_of_the_lists_changes_nothing() -> None:
    for mode in MODES:
        assert Spans(mode=mode).score(ANSWER[::-1], EXPECTED[::-1]) == Spans(mode=mode).score(ANSWER, EXPECTED)


def test_what_is_wrong_is_reported_span_by_span() -> None:
    reported = (
        Spans().score([span(0, 3, "PER"), span(8, 11, "LOC")], [span(8, 11, "PER"), span(15, 19, "LOC")]).explanation
    )
    assert reported == "incorrect: LOC 8–11 for PER 8–11; spurious: PER 0–3; missed: LOC 15–19"


def test_counts_by_tag_are_those_of_the_tag_expected_and_of_the_tag_predicted() -> None:
    score = Spans(mode="partial").score(
        [span(0, 3, "PER"), span(8, 12, "LOC")], [span(0, 3, "PER"), span(8, 11, "PER"), span(20, 22, "LOC")]
    )
    assert score.columns is not None
    assert score.columns["by_tag"] == {
        "PER": {"expected": 2, "found": 1.5, "predicted": 1, "right": 1},
        "LOC": {"expected": 1, "found": 0, "predicted": 1, "right": 0.5},
    }


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_answer_where_nothing_is_expected_is_right(mode: str) -> None:
    score = Spans(mode=mode).score([], [])
    assert (score.value, counts(score), score.explanation) == (1.0, (0, 0, 0, 0, 0), None)


def test_an_empty_answer_misses_everything_and_one_to_nothing_is_spurious() -> None:
    assert counts(Spans().score([], EXPECTED)) == (0, 0, 0, 5, 0)
    assert counts(Spans().score(ANSWER, [])) == (0, 0, 0, 0, 5)


@pytest.mark.parametrize("mode", MODES)
def test_neighbours_do_not_overlap(mode: str) -> None:
    assert counts(Spans(mode=mode).score([span(3, 5, "A")], [span(0, 3, "A"), span(5, 6, "A")])) == (0, 0, 0, 2, 1)


def test_a_span_given_twice_is_right_once() -> None:
    assert counts(Spans().score([span(0, 3, "A")] * 2, [span(0, 3, "A")])) == (1, 0, 0, 0, 1)
    assert counts(Spans().score([span(0, 3, "A")], [span(0, 3, "A")] * 2)) == (1, 0, 0, 1, 0)


def test_nested_spans_are_matched_by_their_places_before_what_merely_overlaps() -> None:
    outer, inner = span(0, 20, "ORG"), span(0, 5, "LOC")
    assert counts(Spans().score([outer, inner], [inner, outer])) == (2, 0, 0, 0, 0)
    assert counts(Spans(mode="partial").score([span(0, 20, "X"), span(0, 4, "X")], [inner, outer])) == (1, 0, 1, 0, 0)


def test_two_tags_on_one_place_are_two_spans() -> None:
    both = [span(0, 5, "LOC"), span(0, 5, "ORG")]
    assert counts(Spans().score(both, both[::-1])) == (2, 0, 0, 0, 0)
    assert counts(Spans().score(both[:1], both)) == (1, 0, 0, 1, 0)


def test_by_type_a_span_of_the_same_tag_comes_before_one_in_the_same_place() -> None:
    expected, answer = [span(0, 5, "PER")], [span(0, 5, "LOC"), span(0, 4, "PER")]
    assert counts(Spans(mode="type").score(answer, expected)) == (1, 0, 0, 0, 1)
    assert counts(Spans(mode="exact").score(answer, expected)) == (1, 0, 0, 0, 1)


PLACES = st.integers(0, 12)
ANY = st.lists(st.tuples(PLACES, st.integers(1, 12), st.sampled_from("AB")), max_size=5).map(
    lambda spans: [(start, start + length, tag) for start, length, tag in spans]
)


@st.composite
def apart(draw: st.DrawFn) -> list[tuple[int, int, str]]:
    """Spans of which no two overlap."""
    ends = sorted(draw(st.sets(PLACES, max_size=10)))
    return [(a, b, draw(st.sampled_from("AB"))) for a, b in zip(ends[::2], ends[1::2], strict=False)]


def credit(mode: str, one: tuple[int, int, str], other: tuple[int, int, str]) -> float:
    same_place, same_tag = one[:2] == other[:2], one[2] == other[2]
    whole = {"strict": same_place and same_tag, "exact": same_place, "partial": same_place, "type": same_tag}[mode]
    return 1.0 if whole else 0.5 if mode == "partial" else 0.0


def most(mode: str, given: list[tuple[int, int, str]], wanted: list[tuple[int, int, str]]) -> float:
    """The greatest credit that any way of putting spans into pairs can give."""
    if not given:
        return 0.0
    one, *rest = given
    ways = [most(mode, rest, wanted)]
    for place, other in enumerate(wanted):
        if one[0] < other[1] and other[0] < one[1]:
            left = wanted[:place] + wanted[place + 1 :]
            ways.append(credit(mode, one, other) + most(mode, rest, left))
    return max(ways)


@thinned("mode", MODES, every=4)
@given(given_=apart(), wanted=apart())
def test_no_other_pairs_would_give_more_credit_where_no_spans_of_a_list_overlap(
    mode: str, given_: list[tuple[int, int, str]], wanted: list[tuple[int, int, str]]
) -> None:
    score = Spans(mode=mode).score([span(*one) for one in given_], [span(*one) for one in wanted])
    correct, _, partial, _, _ = counts(score)
    assert correct + partial / 2 == most(mode, given_, wanted)


@pytest.mark.parametrize("mode", MODES)
@given(given_=ANY, wanted=ANY)
def test_no_other_pairs_would_give_more_credit_however_spans_overlap(
    mode: str, given_: list[tuple[int, int, str]], wanted: list[tuple[int, int, str]]
) -> None:
    score = Spans(mode=mode).score([span(*one) for one in given_], [span(*one) for one in wanted])
    correct, _, partial, _, _ = counts(score)
    assert correct + partial / 2 == most(mode, given_, wanted)


@pytest.mark.parametrize("mode", MODES)
@given(given_=ANY, wanted=ANY)
def test_spans_that_are_left_alone_overlap_none_that_is_left(
    mode: str, given_: list[tuple[int, int, str]], wanted: list[tuple[int, int, str]]
) -> None:
    pairs = list(Spans(mode=mode)._pairs(*([Span(*one) for one in sorted(each)] for each in (given_, wanted))))
    alone = [pair.given for pair in pairs if pair.wanted is None]
    missed = [pair.wanted for pair in pairs if pair.given is None]
    assert not [
        1 for one in alone for other in missed if one and other and one.start < other.end and other.start < one.end
    ]
    for pair in pairs:
        if pair.given and pair.wanted:
            assert pair.given.start < pair.wanted.end
            assert pair.wanted.start < pair.given.end


def test_a_long_span_leaves_the_short_one_to_the_span_that_has_no_other() -> None:
    given_, wanted = [span(0, 10, "A"), span(1, 2, "A")], [span(0, 3, "A"), span(8, 12, "A")]
    assert counts(Spans(mode="type").score(given_, wanted)) == (2, 0, 0, 0, 0)
    assert counts(Spans(mode="partial").score(given_, wanted)) == (0, 0, 2, 0, 0)


@pytest.mark.parametrize("mode", MODES)
def test_twice_as_many_spans_within_a_long_one_are_about_twice_the_work(mode: str) -> None:
    def calls(n: int) -> int:
        places = [(2 * i, 2 * i + 1) for i in range(n)]
        given_ = [span(0, 2 * n, "A"), *(span(*place, "A") for place in places)]
        wanted = [span(0, 2 * n, "B"), *(span(*place, "B") for place in places)]
        return steps(lambda: Spans(mode=mode).score(given_, wanted))

    assert calls(400) < 2.5 * calls(200)


def steps(work: Callable[[], Any]) -> int:
    """How many lines are run: the same whatever the machine."""
    count, before = 0, sys.gettrace()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("mode", MODES)
@given(given_=ANY, wanted=ANY)
def test_every_span_is_counted_once(
    mode: str, given_: list[tuple[int, int, str]], wanted: list[tuple[int, int, str]]
) -> None:
    score = Spans(mode=mode).score([span(*one) for one in given_], [span(*one) for one in wanted])
    correct, incorrect, partial, missed, spurious = counts(score)
    assert correct + incorrect + partial + missed == len(wanted)
    assert correct + incorrect + partial + spurious == len(given_)
    assert score.columns is not None
    assert (score.columns["n_expected"], score.columns["n_predicted"]) == (len(wanted), len(given_))
    tags = score.columns["by_tag"].values()
    for part, whole in (("found", "expected"), ("right", "predicted")):
        assert sum(tag[part] for tag in tags) == correct + partial / 2
        assert all(tag[part] <= tag[whole] for tag in tags)
    assert sum(tag["expected"] for tag in tags) == len(wanted)
    assert 0 <= (score.value or 0) <= 1


# What is no span

GOOD = span(0, 3, "A")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("Ada", "the predicted spans are the text 'Ada', not a list of spans"),
        ({"spans": []}, "the predicted spans are an object, not a list"),
        ([GOOD, "Ada"], "predicted span 1 is the text 'Ada', not an object"),
        ([{"start": 0, "end": 3}], "predicted span 0 has 'start', 'end' and not 'tag'; name its keys with start_key"),
        ([{}], "predicted span 0 has no keys and not 'start'"),
        ([GOOD, span(3, 3, "A")], "predicted span 1: it ends at 3 and starts at 3; an end is the first place after"),
        ([span(-1, 3, "A")], "predicted span 0: 'start' is the integer -1, not an integer of at least 0"),
        ([{**GOOD, "end": 3.0}], r"predicted span 0: 'end' is the number 3\.0, not an integer"),
        ([{**GOOD, "end": True}], "predicted span 0: 'end' is true, not an integer"),
        ([{**GOOD, "tag": None}], "predicted span 0: 'tag' is null, not text"),
    ],
)
def test_what_is_no_span_is_named_with_its_place(answer: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Spans().score(answer, [GOOD])


def test_an_expected_span_that_is_none_is_named_too() -> None:
    with pytest.raises(DataError, match="expected span 1: it ends at 2 and starts at 5"):
        Spans().score([], [GOOD, span(5, 2, "A")])


def test_other_names_of_fields_are_reported() -> None:
    scorer = Spans(start_key="begin", end_key="stop", tag_key="label")
    given = {"begin": 0, "stop": 3, "label": "A", "score": 0.9}
    assert scorer.score([given], [given]).value == 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"mode": "strikt"}, "mode is the text 'strikt'; .*strict"), ({"start_key": ""}, "start_key .*give some text")],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Spans(**parameters)


def test_words_that_do_not_stand_at_their_place_cost_the_row_its_score() -> None:
    scorer, text = Spans(text_key="text"), "🙂 Ada"
    right, shifted = {**span(2, 5, "PER"), "text": "Ada"}, {**span(3, 6, "PER"), "text": "Ada"}
    assert scorer.score([right], [span(2, 5, "PER")], text).value == 1.0
    assert scorer.score([right], [span(2, 5, "PER")], {"text": text, "language": "en"}).value == 1.0
    with pytest.raises(DataError, match="span 0: its words are the text 'Ada', but the input has the text 'da' at 3–6"):
        scorer.score([shifted], [], text)
    with pytest.raises(
        DataError, match=r"span 0 has 'start', .* and not 'text'; name its keys with text_key, or leave"
    ):
        scorer.score([span(2, 5, "PER")], [], text)
    with pytest.raises(DataError, match="the input is the integer 7, in which no words of spans can be found"):
        scorer.score([right], [], 7)


# In an evaluation


@task(version="1", items=True)
def tagger(text: str) -> Any:
    if text == "crash":
        raise RuntimeError("out of memory")
    return {"null": None, "bad": [span(1, 0, "A")], "some": Candidates([[GOOD], []])}.get(text, [GOOD])


def evaluated() -> Evaluation:
    rows = [
        {"input": "good", "expected": [GOOD]},
        {"input": "crash", "expected": [GOOD, GOOD]},
        {"input": "null", "expected": [GOOD]},
        {"input": "bad", "expected": []},
        {"input": "good", "expected": None},
        {"input": "crash", "expected": [span(1, 0, "A")]},
        {"input": "some", "expected": []},
    ]
    return Evaluator().evaluate(Runner().run(tagger, Dataset.from_rows(rows)), {"spans": Spans()})


def test_a_row_without_a_score_still_tells_how_many_spans_were_expected() -> None:
    rows = evaluated().table("spans").to_pylist()
    assert [(row["status"], row["value"], row["n_expected"], row["n_predicted"]) for row in rows] == [
        ("scored", 1.0, 1, 1),
        ("failed", None, 2, None),
        ("abstained", None, 1, None),
        ("failed", None, 0, None),
        ("abstained", None, None, None),
        ("failed", None, None, None),  # what is expected is no span either
        ("scored", 0.0, 0, 1),
        ("scored", 1.0, 0, 0),
    ]
    assert [row["by_tag"] for row in rows][1] == '{"A":{"expected":2,"found":0,"predicted":0,"right":0}}'
    assert {row["reason"] for row in rows[:5]} == {
        None,
        "task: RuntimeError: out of memory",
        "the task gave no answer",
        "scorer: DataError: predicted span 0: it ends at 0 and starts at 1; an end is the first place after the span, "
        "so it must be greater than the start",
        "no expected value",
    }


def test_scores_that_are_given_again_keep_their_counts() -> None:
    first = evaluated()
    again = Evaluator(first.store).evaluate(
        Runner(first.store).run(tagger, Dataset.stored(first.store, first.manifest["spec"]["dataset"])),
        {"spans": Spans(), "other": lambda output: True},
    )
    assert again.table("spans").equals(first.table("spans"))


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O O", []),
        ("B-PER I-PER O B-LOC", [(0, 2, "PER"), (3, 4, "LOC")]),
        ("B-PER B-PER", [(0, 1, "PER"), (1, 2, "PER")]),
        ("I-PER I-PER O I-LOC", [(0, 2, "PER"), (3, 4, "LOC")]),
        ("B-PER I-LOC", [(0, 1, "PER"), (1, 2, "LOC")]),
        ("B-PER I-PER E-PER S-LOC O", [(0, 3, "PER"), (3, 4, "LOC")]),
        ("B-PER L-PER U-LOC U-LOC", [(0, 2, "PER"), (2, 3, "LOC"), (3, 4, "LOC")]),
        ("E-PER I-PER", [(0, 1, "PER"), (1, 2, "PER")]),
        ("B-event-name I-event-name", [(0, 2, "event-name")]),
    ],
)
def test_tags_of_tokens_are_spans(tags: str, spans: list[tuple[int, int, str]]) -> None:
    objects = [{"start": start, "end": end, "tag": tag} for start, end, tag in spans]
    for written in (tags, tags.split()):
        score = Spans().score(written, objects)
        assert (score.value, score.columns["correct"]) == (1.0, len(spans))


def test_tags_of_another_number_of_tokens_fail_the_row() -> None:
    with pytest.raises(DataError, match="the output has the tags of 2 tokens, and 3 are expected"):
        Spans().score("O O", "O O B-PER")
    assert Spans().score([], "O O").value == 1.0
