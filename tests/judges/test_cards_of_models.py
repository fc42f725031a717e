"""Cards of judges that ask a model: what they are bound to, how they become stale, and what asking has cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chat_answers import Body, ChatServer
from support.labelled import label_numbers, play_numbers

from evaluand import Evaluation, Evaluator, MemoryStore, Run
from evaluand.comparison.gates import check_gates
from evaluand.core.errors import EvaluandWarning
from evaluand.evaluation import OutputView
from evaluand.judges import Judge, Jury, make_card, read_labelled_evaluation, standings
from evaluand.judges.cards.card import JudgeCard
from evaluand.judges.cards.labelled_set import JudgeIdentity
from evaluand.judges.cards.standing import Standing
from evaluand.models import ChatModel

LARGE = {
    "name": "large",
    "version": 1,
    "instructions": "Is the number (output) large?",
    "material": ["output"],
    "scale": {"large": 1, "small": 0},
}
NUMBERS = [*range(40)]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(says_large) as started:
        yield started


def says_large(asked: Body) -> str:
    number = int(asked["messages"][-1]["content"].split("\n")[1])
    return json.dumps({"reasons": f"{number} it is.", "verdict": "large" if number >= 20 else "small"})


def model(server: ChatServer, **settings: Any) -> ChatModel:
    price = {"input": 1.0, "output": 2.0, "currency": "EUR"}
    return ChatModel(server.url, settings.pop("name", "tiny"), **{"version": "1", "price": price, **settings})


def judged(run: Run, judge: Any) -> Evaluation:
    return Evaluator(run.store).evaluate(run, {"large": judge}, name="numbers/mine")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, JudgeCard]:
    """A run whose answers people have labelled, and the card of a judge by these labels."""
    run = play_numbers(MemoryStore(), NUMBERS)
    label_numbers(run, tmp_path_factory.mktemp("labels"), {"ann": [int(n >= 16) for n in NUMBERS]})
    with ChatServer(says_large) as server:
        evaluation = judged(run, Judge(rubric=LARGE, model=model(server)))
    return run, make_card(read_labelled_evaluation(evaluation, "large"), run.store)


def standing(run: Run, judge: Any) -> Standing:
    return standings(judged(run, judge))["large"]


def test_a_judge_with_a_model_is_measured_by_its_card(measured: tuple[Run, JudgeCard], server: ChatServer) -> None:
    run, card = measured
    judge = Judge(rubric=LARGE, model=model(server))
    found = standing(run, judge)
    assert (found.status, found.card.id) == ("measured", card.id)  # type: ignore[union-attr]
    assert card.judge_digest == judge.judge_digest
    assert [card.find(name).value for name in ("agreement", "sensitivity", "specificity")] == [  # type: ignore[union-attr]
        36 / 40,
        20 / 24,
        1.0,
    ]
    assert card.judge.model == "tiny-2026"  # by which name it answers


@pytest.mark.parametrize(
    ("rubric", "settings", "options", "changed"),
    [
        ({"instructions": "Is the number (output) very large?"}, {}, {}, "rubric"),
        ({"scale": {"large": 1, "small": -1}}, {}, {}, "rubric"),
        ({}, {"name": "other"}, {}, "model"),
        ({}, {"version": "2"}, {}, "model"),
        ({}, {"temperature": 0.7}, {}, "model"),
        ({}, {}, {"from_logprobs": True}, "from_logprobs"),
        ({}, {}, {"variables": {"output": "input"}}, "variables"),
    ],
)
def test_whatever_may_change_a_verdict_makes_the_card_stale(
    rubric: Any, settings: Any, options: Any, changed: str, measured: tuple[Run, JudgeCard], server: ChatServer
) -> None:
    run, card = measured
    with pytest.warns(EvaluandWarning, match="so 40 scores of large are made again; the earlier ones used"):
        found = standing(run, Judge(rubric={**LARGE, **rubric}, model=model(server, **settings), **options))
    assert found.status == "stale"
    assert found.text.startswith("stale: ")
    assert found.finding == f"stale: {changed} changed since card {card.id[:12]}"


def test_what_changes_no_verdict_keeps_the_card(measured: tuple[Run, JudgeCard], server: ChatServer) -> None:
    run, card = measured
    renamed = {**LARGE, "version": 2, "summary": "Whether a number is large."}
    with ChatServer(says_large) as elsewhere:
        found = standing(run, Judge(rubric=renamed, model=model(elsewhere, rate="9000/min", timeout=9)))
    assert (found.status, found.card.id) == ("measured", card.id)  # type: ignore[union-attr]


def test_a_card_of_one_kind_is_none_of_another(measured: tuple[Run, JudgeCard], server: ChatServer) -> None:
    run, _ = measured
    with pytest.warns(EvaluandWarning, match="so 40 scores of large are made again"):
        found = standing(run, Jury(rubric=LARGE, models=[model(server), model(server, name="other")]))
    assert (found.status, found.card) == ("unmeasured", None)


def test_a_judge_whose_model_may_change_behind_its_name_says_so(server: ChatServer, tmp_path: Path) -> None:
    run = play_numbers(MemoryStore(), NUMBERS)
    label_numbers(run, tmp_path, {"ann": [int(n >= 16) for n in NUMBERS]})
    evaluation = judged(run, Judge(rubric=LARGE, model=model(server, version=None)))
    make_card(read_labelled_evaluation(evaluation, "large"), run.store)
    reservation = "no version is declared, so its model may have changed since"
    assert standings(evaluation)["large"].text.endswith(reservation)
    [result] = check_gates(["mean >= 0.1"], {"mine": evaluation})
    assert result.passed
    assert reservation in result.message


def test_a_card_of_an_unpinned_model_is_none_of_the_same_name_elsewhere(server: ChatServer, tmp_path: Path) -> None:
    run = play_numbers(MemoryStore(), NUMBERS)
    label_numbers(run, tmp_path, {"ann": [int(n >= 16) for n in NUMBERS]})
    evaluation = judged(run, Judge(rubric=LARGE, model=model(server, version=None)))
    make_card(read_labelled_evaluation(evaluation, "large"), run.store)
    with ChatServer(says_large) as elsewhere:
        found = standing(run, Judge(rubric=LARGE, model=model(elsewhere, version=None)))
    assert found.finding.startswith("stale: address changed since card ")


def test_a_card_is_bound_to_the_view_of_the_output(server: ChatServer) -> None:
    judge = Judge(rubric=LARGE, model=model(server))
    plain, viewed = judge.identify(), OutputView(judge, [{"kind": "TransformJSON", "configuration": "$"}]).identify()
    digests = [JudgeIdentity("large", each.spec, each.parts).digest for each in (plain, viewed)]
    assert digests[0] == judge.judge_digest != digests[1]


def test_the_version_of_a_kind_is_part_of_a_judge(measured: tuple[Run, JudgeCard]) -> None:
    _, card = measured
    spec = dict(card.judge.spec)
    assert card.judge._replace(spec=spec).digest == card.judge_digest
    assert card.judge._replace(spec={**spec, "version": 2}).digest != card.judge_digest
    assert card.judge._replace(spec={**spec, "kind": "jury"}).digest != card.judge_digest


def test_the_order_of_a_jury_is_no_part_of_it(server: ChatServer) -> None:
    members = [model(server, version=None), model(server, name="other", version=None)]
    one, other = (Jury(rubric=LARGE, models=each) for each in (members, members[::-1]))
    assert one.judge_digest == other.judge_digest


def test_a_card_tells_what_judging_has_cost_and_how_long_it_took(measured: tuple[Run, JudgeCard]) -> None:
    _, card = measured
    usage, seconds = (card.to_dict()[name] for name in ("usage", "seconds"))
    assert seconds["n"] == 40
    assert 0 < seconds["median"] <= seconds["high"]
    tokens = usage["input_tokens"] + 2 * usage["output_tokens"]
    assert (usage["rows"], usage["requests"]) == (40, 40)
    assert usage["cost"] == {"EUR": pytest.approx(tokens / 1e6)}


def test_reasons_of_the_judge_stand_beside_its_misses(measured: tuple[Run, JudgeCard]) -> None:
    _, card = measured
    assert [(miss["people"], miss["judge"], miss["explanation"]) for miss in card.misses] == [
        ("1", "0", f"{number} it is.") for number in range(16, 20)
    ]


def test_a_judge_that_says_nothing_readable_has_a_card_that_says_so(server: ChatServer, tmp_path: Path) -> None:
    server.answer = lambda asked: "I would rather not."
    run = play_numbers(MemoryStore(), NUMBERS)
    label_numbers(run, tmp_path, {"ann": [int(n >= 16) for n in NUMBERS]})
    evaluation = judged(run, Judge(rubric=LARGE, model=model(server)))
    card = make_card(read_labelled_evaluation(evaluation, "large"), run.store)
    abstained, agreement = card.find("abstained"), card.find("agreement")
    assert abstained is not None
    assert agreement is not None
    assert (abstained.value, agreement.n) == (1.0, 0)
    assert agreement.value != agreement.value
    assert card.headline == "abstained 1.00 [0.91, 1.00], 40 answers labelled by people"
    assert standings(evaluation)["large"].status == "unmeasured"
