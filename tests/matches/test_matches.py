"""Responses of several runs compared by a judge: who meets whom, what is judged, and what is reused."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.unread import Unread

from evaluand import (
    Dataset,
    DirectoryStore,
    EvaluandWarning,
    MemoryStore,
    Policy,
    Run,
    Runner,
    Score,
    SpecError,
    comparison_scorer,
    span,
)
from evaluand.engine.outcome import Aborted
from evaluand.evaluation import ByScore, Preference, ScorerFailed
from evaluand.evaluation.scorer import scorer
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.matches import AgainstBaseline, Matcher, Matches
from evaluand.report.verification import verify
from evaluand.store.store import Store

TEXTS = ["a", "bc", "def", "ghij"]


def once(text: str) -> str:
    return text


def twice(text: str) -> str:
    return text * 2


def thrice(text: str) -> str:
    return text * 3


def mostly_once(text: str) -> str:
    return text if text != "def" else text + "!"


def silent_on_three(text: str) -> str | None:
    if text == "def":
        raise ValueError("no idea")
    return None if text == "ghij" else text * 4


def shorter(first: str, second: str) -> str:
    return "tie" if len(first) == len(second) else "first" if len(first) < len(second) else "second"


def first_always(first: str, second: str) -> str:
    return "first"


@pytest.fixture
def store() -> Store:
    return MemoryStore()


def run_all(store: Store, *tasks: Callable[[str], Any], texts: list[str] = TEXTS) -> list[Run]:
    data = Dataset.from_rows([{"input": text} for text in texts])
    return [Runner(store).run(task, data, name=task.__name__) for task in tasks]


def rows_of(matches: Matches, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in matches.table([*columns]).to_pylist()]


def receipt_of(matches: Matches) -> tuple[int, int, int]:
    """How many judgements were made now, reused and kept."""
    assert matches.receipt is not None
    return matches.receipt.called, matches.receipt.reused, matches.receipt.kept


def test_every_two_systems_meet_on_every_example_in_both_orders(store: Store) -> None:
    matches = Matcher().match(run_all(store, once, twice, thrice), shorter)
    assert matches.systems == ["once", "twice", "thrice"]
    expected = [
        (index, a, b, order) for index in range(4) for a, b in ((0, 1), (0, 2), (1, 2)) for order in ("ab", "ba")
    ]
    assert rows_of(matches, "_index_", "a", "b", "order") == expected
    assert {outcome for (outcome,) in rows_of(matches, "outcome")} == {1.0}
    assert {(order, first) for order, first in rows_of(matches, "order", "first")} == {("ab", 1.0), ("ba", 0.0)}
    assert receipt_of(matches) == (24, 0, 0)
    assert matches.counts == {"scored": 24}


def test_a_further_run_a_corrected_answer_and_a_further_example_cost_only_new_pairs(store: Store) -> None:
    runs = run_all(store, once, twice, thrice)
    assert receipt_of(Matcher().match(runs, shorter)) == (24, 0, 0)
    runs += run_all(store, silent_on_three)
    assert receipt_of(Matcher().match(runs, shorter)) == (12, 24, 0)  # of 24, 12 have no response to compare
    corrected = [*run_all(store, mostly_once), *runs[1:3]]
    assert receipt_of(Matcher().match(corrected, shorter)) == (4, 20, 0)
    longer = run_all(store, once, twice, thrice, texts=[*TEXTS, "klmno"])
    assert receipt_of(Matcher().match(longer, shorter)) == (6, 24, 0)
    assert receipt_of(Matcher().match(longer[::-1], shorter)) == (0, 30, 0)
    assert receipt_of(Matcher().match(longer[::2], shorter)) == (0, 10, 0)
    assert receipt_of(Matcher().match(longer[::2], shorter)) == (0, 0, 10)


def test_equal_responses_tie_without_a_call_and_equal_pairs_share_one(store: Store) -> None:
    runs = run_all(store, once, mostly_once, twice)
    matches = Matcher().match(runs, shorter)
    equal = [row for row in matches.table().to_pylist() if row["equal"]]
    assert {(row["a"], row["b"]) for row in equal} == {(0, 1)}
    assert {(row["outcome"], row["judgement"]) for row in equal} == {(0.5, None)}
    assert len(equal) == 6
    assert receipt_of(matches) == (12, 0, 0)  # 4 examples against `twice`, and 2 comparisons more on the third
    judgements = [row for row in rows_of(matches, "_index_", "order", "judgement", "b") if row[3] == 2]
    assert len(judgements) == 16
    assert len({judgement for *_, judgement, _ in judgements}) == 10


def test_matches_that_need_no_judgement_are_stored_without_one(store: Store) -> None:
    same, failing = run_all(store, once, lambda text: text + ""), run_all(store, once, lambda text: text / 2)
    for judge in (shorter, lambda responses: [0.0] * len(responses)):
        matches = Matcher(store).match(same, judge, labels=["one", "other"])
        assert {*rows_of(matches, "outcome", "equal", "judgement", "digest")} == {(0.5, True, None, None)}
        matches = Matcher(store).match(failing, judge, labels=["one", "other"])
        assert {*rows_of(matches, "outcome", "status", "missing")} == {(None, "failed", "b")}


def test_a_missing_response_is_counted_and_never_scored(store: Store) -> None:
    matches = Matcher().match(run_all(store, once, silent_on_three), shorter)
    assert matches.counts == {"scored": 4, "failed": 2, "abstained": 2}
    missing = [row for row in matches.table().to_pylist() if row["missing"]]
    assert [(row["missing"], row["outcome"], row["reason"]) for row in missing] == [
        *[("b", None, "silent_on_three: the task failed")] * 2,
        *[("b", None, "silent_on_three: the task gave no answer")] * 2,
    ]
    assert receipt_of(matches) == (4, 0, 0)


def test_one_random_order_depends_on_the_responses_and_not_on_the_company(store: Store) -> None:
    texts = ["x" * n for n in range(1, 41)]
    runs = run_all(store, once, twice, thrice, texts=texts)
    matches = Matcher().match(runs, shorter, orders="random")
    assert receipt_of(matches) == (120, 0, 0)
    orders = {(index, a, b): order for index, a, b, order in rows_of(matches, "_index_", "a", "b", "order")}
    assert 30 < list(orders.values()).count("ab") < 90
    assert receipt_of(Matcher().match(runs[::-1], shorter, orders="random")) == (0, 120, 0)
    assert receipt_of(Matcher().match(runs[1:], shorter, orders="random")) == (0, 40, 0)
    other = Matcher().match(runs, shorter, orders="random", seed=1)
    assert {(i, a, b): order for i, a, b, order in rows_of(other, "_index_", "a", "b", "order")} != orders


def test_against_a_baseline_only_its_pairs_are_judged(store: Store) -> None:
    runs = run_all(store, once, twice, thrice)
    matches = Matcher().match(runs, shorter, schedule=AgainstBaseline("twice"))
    assert {(a, b) for a, b in rows_of(matches, "a", "b")} == {(0, 1), (1, 2)}
    with pytest.raises(SpecError, match=r"baseline 'twic' is not one of the systems \(did you mean 'twice'"):
        Matcher().match(runs, shorter, schedule=AgainstBaseline("twic"))


def test_a_judge_of_all_responses_is_called_once_for_each_example_and_order(store: Store) -> None:
    seen = []

    @comparison_scorer(version="1")
    def shortest(responses: list[str]) -> list[float]:
        seen.append(responses)
        return [-len(response) for response in responses]

    matches = Matcher(policy=Policy(concurrency=1)).match(run_all(store, once, mostly_once, twice, thrice), shortest)
    assert receipt_of(matches) == (8, 0, 0)
    assert sorted(len(responses) for responses in seen) == [3] * 6 + [4] * 2  # equal ones are shown once
    assert seen[0] == seen[1][::-1]
    outcomes = {(a, b, outcome) for a, b, outcome, equal in rows_of(matches, "a", "b", "outcome", "equal") if not equal}
    assert outcomes == {(a, b, 1.0) for a, b in itertools.combinations(range(4), 2)}
    again = Matcher().match(run_all(store, thrice, twice, mostly_once, once), shortest)
    assert receipt_of(again) == (0, 8, 0)
    assert len(seen) == 8


def test_the_number_of_numbers_of_such_a_judge_is_checked(store: Store) -> None:
    with pytest.warns(ScorerFailed, match="compared 2 responses and gave 1 number; give one each"):
        matches = Matcher().match(run_all(store, once, twice), comparison_scorer(lambda responses: [1.0]))
    assert matches.counts == {"failed": 8}


@pytest.mark.parametrize(
    ("said", "first", "label"),
    [
        ("first", 1.0, "first"),
        ("second", 0.0, "second"),
        ("tie", 0.5, "tie"),
        (0.25, 0.25, None),
        (Preference("second", strength=3.0, label="A<<B"), 0.0, "A<<B"),
        (Score(1.0, "yes"), 1.0, "yes"),
    ],
)
def test_what_a_judge_may_say(store: Store, said: Any, first: float, label: str | None) -> None:
    matches = Matcher().match(run_all(store, once, twice, texts=["a"]), lambda first, second: said)
    assert rows_of(matches, "order", "first", "outcome", "label") == [
        ("ab", first, first, label),
        ("ba", first, 1 - first, label),
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("frist", "the judge returned 'frist'; give first, second or tie (did you mean 'first'?)"),
        (1.5, "the judge returned the number 1.5; give first, second or tie, or the probability"),
        (True, "the judge returned true; give first"),
        (Preference("first", strength=-1.0), "the strength is the number -1.0, not a number of 0 or more"),
        (Score(label="a"), "the judge gave no value"),
    ],
)
def test_what_a_judge_must_not_say(store: Store, said: Any, reason: str) -> None:
    with pytest.warns(ScorerFailed, match="the judge failed on all 2 comparisons"):
        matches = Matcher().match(run_all(store, once, twice, texts=["a"]), lambda first, second: said)
    assert matches.counts == {"failed": 2}
    assert all(reason in row for (row,) in rows_of(matches, "reason"))


def test_a_judge_abstains_with_none_and_its_failures_are_retried_on_request(store: Store) -> None:
    answers: Iterator[Any] = iter([ValueError("busy"), None, "first"])

    @comparison_scorer(version="1")
    def judge(first: str, second: str) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    runs = run_all(store, once, twice, texts=["a"])
    policy = Policy(concurrency=1, retries=0)
    matches = Matcher(policy=policy).match(runs, judge)
    assert rows_of(matches, "status", "reason") == [
        ("failed", matches.table()["reason"][0].as_py()),
        ("abstained", "the judge returned None"),
    ]
    assert receipt_of(Matcher(policy=policy).match(runs, judge)) == (0, 0, 2)
    again = Matcher(policy=policy).match(runs, judge, retry_failed=True)
    assert receipt_of(again) == (1, 1, 0)
    assert rows_of(again, "status") == [("scored",), ("abstained",)]


def test_a_judge_that_fails_alike_from_the_start_is_stopped_and_asked_again_later(store: Store) -> None:
    asked: list[str] = []

    @comparison_scorer(version="1")
    def judge(first: str, second: str) -> str:
        asked.append(first)
        if len(asked) <= 5:
            raise PermissionError("401: invalid key")
        return "first"

    runs, matcher = run_all(store, once, twice), Matcher(policy=Policy(concurrency=1, same_failures=5))
    with pytest.raises(Aborted, match="the first 5 calls failed, all with the same error: PermissionError: 401: inv"):
        matcher.match(runs, judge, name="judged")
    assert len(asked) == 5
    matches = matcher.match(runs, judge, name="judged")
    assert (receipt_of(matches), matches.failures, len(asked)) == ((8, 0, 0), {}, 13)


def test_failures_are_counted_by_judgement_and_class_of_error(store: Store) -> None:
    @comparison_scorer(version="1")
    def judge(first: str, second: str) -> str:
        if len(first) > 3:
            raise KeyError(first) if len(first) > 6 else ValueError(first)
        return "A is better" if len(first) == 1 else "first"

    runs = run_all(store, once, twice)
    matches = Matcher(policy=Policy(concurrency=1)).match(runs[::-1], judge)
    assert matches.failures == {"ValueError": 3, "DataError": 1, "KeyError": 1}
    reasons = matches.table()["reason"].drop_null().to_pylist()
    assert {reason.partition(": ")[0] for reason in reasons} == {"judge"}
    again = Matcher().match(runs[::-1], judge)
    assert again.receipt is not None
    assert str(again.receipt).startswith("0 of 8 done now, 5 failed earlier (3 ValueError, 1 DataError, 1 KeyError), 8")
    assert again.receipt.why.endswith("; retry_failed repeats what failed")


@pytest.mark.parametrize("text", ["half \ud800", "null \0", "\udfff\0"])
def test_texts_of_judges_that_no_file_can_store_are_escaped_or_fail_their_row(store: Store, text: str) -> None:
    def judge(first: str, second: str, index: int) -> Preference:
        answers = [{"explanation": text}, {"label": text}, {"data": {text: text}}]
        if index == len(answers):
            raise ValueError(text)
        return Preference("first", **answers[index])

    matches = Matcher().match(run_all(store, once, twice), judge)
    table = matches.table().to_pylist()[::2]
    is_storable = "null" in text
    assert table[0]["explanation"] == (text if is_storable else text.encode("utf-8", "backslashreplace").decode())
    for row in table[1:3]:
        assert row["status"] == ("scored" if is_storable else "failed")
        assert is_storable or "surrogate" in row["reason"]
    assert table[3]["status"] == "failed"
    assert verify(matches.store, "matches", matches.id) == []


def test_a_judge_that_hangs_or_ends_the_process_costs_its_rows_which_are_judged_again(store: Store) -> None:
    is_well = Unread(False)

    @comparison_scorer(version="1")
    async def judge(first: str, second: str, index: int) -> str:
        if not is_well.value and index == 0:
            await asyncio.sleep(60)
        if not is_well.value and index == 1:
            raise SystemExit(2)
        return "tie"

    runs = run_all(store, once, twice)
    matches = Matcher(policy=Policy(timeout=0.05, retries=0)).match(runs, judge)
    assert matches.counts == {"failed": 4, "scored": 4}
    reasons = [str(reason) for (reason,) in rows_of(matches, "reason")[:4:2]]
    assert "took longer than 0.05 s" in reasons[0]
    assert "SystemExit: 2" in reasons[1]
    is_well.value = True
    assert receipt_of(Matcher().match(runs, judge)) == (0, 0, 8)
    again = Matcher().match(runs, judge, retry_failed=True)
    assert (receipt_of(again), again.counts) == ((4, 4, 0), {"scored": 8})


def test_an_asynchronous_judge_is_called_several_at_once(store: Store) -> None:
    most = running = 0

    async def judge(first: str, second: str) -> str:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return shorter(first, second)

    matches = Matcher(policy=Policy(concurrency=4)).match(run_all(store, once, twice), judge)
    assert matches.counts == {"scored": 8}
    assert most == 4


def test_scores_of_one_response_decide_by_score(store: Store) -> None:
    data = Dataset.from_rows([{"input": text, "expected": text} for text in TEXTS])
    runs = [Runner(store).run(task, data) for task in (once, mostly_once, twice)]
    matches = Matcher().match(runs, ByScore(ExactMatch()), labels=["a", "b", "c"])
    wins = {(a, b): outcome for a, b, outcome, index in rows_of(matches, "a", "b", "outcome", "_index_") if index == 2}
    assert wins == {(0, 1): 1.0, (0, 2): 1.0, (1, 2): 0.5}
    with pytest.raises(SpecError, match="grades one response; to compare two by its scores, write ByScore"):
        Matcher().match(runs, ExactMatch())  # type: ignore[arg-type]


def test_replications_meet_each_other(store: Store) -> None:
    data = Dataset.from_rows([{"input": text} for text in TEXTS])
    three = Runner(store).run(once, data, replications=3, name="three")
    two = Runner(store).run(twice, data, replications=2, name="two")
    with pytest.warns(EvaluandWarning) as notes:
        matches = Matcher().match([three, two], shorter)
    message = (
        "not all replications are compared, since 'three' has 3, 'two' has 2, so 4 responses have none to meet; run"
        " 'two' with replications=3 and match again"
    )
    assert [str(note.message) for note in notes] == [message]
    assert matches.left_out == message
    keys = rows_of(matches, "_index_", "replication", "order")
    assert keys == [(index, r, order) for index in range(4) for r in range(2) for order in ("ab", "ba")]
    assert receipt_of(matches) == (8, 0, 0)  # both replications have the same responses


def test_examples_that_a_run_left_out_are_not_matched(store: Store) -> None:
    data = Dataset.from_rows([{"input": text} for text in TEXTS])
    part, whole = Runner(store).run(once, data, limit=2), Runner(store).run(twice, data)
    message = "not all examples are compared, since 'a' has 2, 'b' has 4; run 'a' over all examples and match again"
    with pytest.warns(EvaluandWarning, match=message):
        assert Matcher().match([part, whole], shorter, labels=["a", "b"]).counts == {"scored": 4}
    matches = Matcher().match([part, whole], shorter, labels=["a", "b"], limit=2)
    assert (matches.counts, matches.left_out) == ({"scored": 4}, None)


def test_the_style_of_responses_is_stored(store: Store) -> None:
    texts = ["# Title\n- one **bold** word"]
    matches = Matcher().match(run_all(store, once, silent_on_three, texts=[*texts, "def"]), shorter)
    first = matches.table(["style_a", "style_b"]).to_pylist()
    assert first[0]["style_a"] | {"code_blocks": 0} == {
        "characters": 27,
        "words": 6,
        "headings": 1,
        "list_items": 1,
        "bold": 1,
        "code_blocks": 0,
    }
    assert first[0]["style_b"]["characters"] == 4 * 27
    assert first[2]["style_b"] is None


def test_matches_are_stored_verified_and_opened_by_name(tmp_path: Any) -> None:
    store = DirectoryStore(tmp_path)
    matches = Matcher().match(run_all(store, once, twice, thrice), shorter, name="first/matches")
    opened = Matches.open(store, "first/matches")
    assert opened.id == matches.id
    assert [run and run.name for run in opened.runs] == ["once", "twice", "thrice"]
    assert verify(store, "matches", matches.id) == []


def test_requests_that_cannot_be_matched_are_refused(store: Store) -> None:
    runs = run_all(store, once, twice)
    other = run_all(store, once, texts=["other"])
    with pytest.raises(SpecError, match="matches need two runs or more"):
        Matcher().match(runs[:1], shorter)
    with pytest.raises(SpecError, match="give a list of Run objects to match"):
        Matcher().match(["once", "twice"], shorter)  # type: ignore[list-item]
    with pytest.raises(SpecError, match="is in another store; matches are of runs in one store"):
        Matcher().match([runs[0], *run_all(MemoryStore(), twice)], shorter)
    with pytest.raises(SpecError, match="is over another dataset"):
        Matcher().match([runs[0], other[0]], shorter)
    with pytest.raises(SpecError, match=r"orders is the text 'bth'; give one of both, random \(did you mean 'both'"):
        Matcher().match(runs, shorter, orders="bth")
    with pytest.raises(SpecError, match="two systems are called 'a'"):
        Matcher().match(runs, shorter, labels=["a", "a"])
    with pytest.raises(SpecError, match="labels must be a list of texts, one for each of the 2 runs, not 'ab'"):
        Matcher().match(runs, shorter, labels="ab")
    for label in ("a\ud800b", "a\0b"):
        with pytest.raises(SpecError, match="labels: a name must not have control characters: 'a"):
            Matcher().match(runs, shorter, labels=["a", label])
    with pytest.raises(SpecError, match="limit: is the integer 0; give an integer of at least 1"):
        Matcher().match(runs, shorter, limit=0)
    with pytest.raises(SpecError, match="give it the parameters first and second"):
        Matcher().match(runs, lambda first: 1.0)
    with pytest.raises(SpecError, match="compares all pairs; leave out against_baseline"):
        Matcher().match(runs, comparison_scorer(lambda responses: []), schedule=AgainstBaseline("once"))


def test_an_open_run_is_not_matched(store: Store) -> None:
    def interrupted(text: str) -> str:
        raise KeyboardInterrupt

    [run] = run_all(store, once)
    with pytest.raises(KeyboardInterrupt):
        run_all(store, interrupted)
    [id] = [id for id in store.ids("runs") if not store.is_sealed("runs", id)]
    with pytest.raises(SpecError, match="is not finished; resume it before it is matched"):
        Matcher().match([run, Run(store, id)], shorter)


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (ByScore, r"the judge is the class ByScore; give an instance of it: ByScore\(…\)"),
        (3, "the judge is an int; give a comparison scorer, a function or the name of a kind"),
        ("by_scor", r"no comparison scorer is called 'by_scor' \(did you mean 'by_score'\?\)"),
    ],
)
def test_what_is_no_judge_is_refused(store: Store, judge: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Matcher().match(run_all(store, once, twice), judge)


def test_what_is_no_schedule_is_refused(store: Store) -> None:
    with pytest.raises(SpecError, match="schedule is 3; give a Schedule, such as AgainstBaseline"):
        Matcher().match(run_all(store, once, twice), shorter, schedule=3)  # type: ignore[arg-type]


def test_a_judge_of_all_responses_abstains_or_gives_a_finite_number_for_each(store: Store) -> None:
    says = dict(zip(TEXTS, (None, [1.0, float("nan")], 5, [2, 1]), strict=True))
    judge = comparison_scorer(lambda responses, input: says[input], version="1")
    matches = Matcher().match(run_all(store, once, twice), judge, orders="random")
    rows = matches.table(["status", "reason", "outcome"]).to_pylist()
    assert [row["status"] for row in rows] == ["abstained", "failed", "failed", "scored"]
    assert rows[0]["reason"] == "the judge returned None"
    assert "give a finite number for each response, in a list" in rows[1]["reason"]


@pytest.mark.parametrize("margin", [-1, float("inf"), True, "1"])
def test_a_margin_is_a_finite_number(margin: Any) -> None:
    with pytest.raises(SpecError, match=r"margin is .*; give a number of at least 0"):
        ByScore(ExactMatch(), margin=margin)


def test_a_judge_by_score_fails_and_abstains_as_its_scorer(store: Store) -> None:
    def grade(output: str) -> float | None:
        if output.startswith("a"):
            raise ValueError("no idea")
        return None if output.startswith("b") else float(len(output))

    matches = Matcher().match(run_all(store, once, twice), ByScore(grade), orders="random")
    assert matches.counts == {"failed": 1, "abstained": 1, "scored": 2}
    with pytest.raises(SpecError, match="it needs one that grades one response at a time"):
        ByScore(scorer(lambda output, source: 1.0))


def test_the_steps_of_a_judge_are_stored_and_reused_with_its_judgement(store: Store) -> None:
    def thorough(first: str, second: str) -> str:
        with span("read", first=len(first)):
            return shorter(first, second)

    runs = run_all(store, once, twice, texts=["a", "bc"])
    matches = Matcher().match(runs, thorough)
    [*batches] = store.read("matches", matches.id, "spans")
    found = [(row["judgement"], row["name"], row["status"]) for batch in batches for row in batch.to_pylist()]
    assert found == [(number, "read", "ok") for number in range(4)]
    more = Matcher().match([*runs, *run_all(store, thrice, texts=["a", "bc"])], thorough)
    assert receipt_of(more) == (8, 4, 0)
    assert sum(batch.num_rows for batch in store.read("matches", more.id, "spans")) == 12
