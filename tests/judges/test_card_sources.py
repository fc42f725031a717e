"""What a card is made from: the labels of the judge's own question, and every column that it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.labelled import judge_numbers

from evaluand import Evaluator, MemoryStore, SpecError
from evaluand.judges.cards.card import JudgeCard, make_card
from evaluand.judges.cards.from_evaluation import read_labelled_evaluation
from evaluand.judges.people.human_labels import labelling_rows, read_labels
from evaluand.matches.labelled_sets import read_labelled_file

NUMBERS = [*range(0, 100, 2), *range(1, 100, 2)]  # the judge takes the upper half for right


def truth(number: int) -> int:
    """People disagree with the judge about 40 to 49, which are right, and 60 to 64, which are wrong."""
    return int(40 <= number < 60 or number >= 65)


def agreement(card: JudgeCard) -> float:
    found = card.find("agreement")
    assert found is not None
    return found.value


def test_a_judge_is_measured_by_the_labels_of_its_own_question(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS)
    run = evaluation.run
    assert run is not None
    rows = list(labelling_rows(run))

    def labels(name: str, say: Any) -> Any:
        path = tmp_path / f"{name}.jsonl"
        path.write_text(
            "".join(json.dumps(row | {"value": say(n)}) + "\n" for row, n in zip(rows, NUMBERS, strict=True))
        )
        return read_labels([path])

    def people(**scorers: Any) -> Any:
        return Evaluator(store).evaluate(run, {name: labels(name, say) for name, say in scorers.items()})

    several = people(aims=lambda n: 1 - truth(n), fine=truth)
    own = make_card(read_labelled_evaluation(evaluation, "fine", several), store)
    assert agreement(own) == 0.85
    assert (own.manifest["spec"]["question"], own.to_dict()["question"]) == ("fine", "fine")
    others = people(aims=lambda n: 1 - truth(n), tone=truth)
    with pytest.raises(SpecError, match=r"none of which is called 'fine': aims, tone; name the one.*label=aims"):
        read_labelled_evaluation(evaluation, "fine", others)
    named = make_card(read_labelled_evaluation(evaluation, "fine", others, "tone"), store)
    assert agreement(named) == 0.85
    assert named.headline.endswith("100 answers labelled by people (tone)")
    with pytest.raises(SpecError, match=r"has no labels called 'tune' \(did you mean 'tone'\?\): aims, tone"):
        read_labelled_evaluation(evaluation, "fine", others, "tune")


@pytest.mark.parametrize(
    "more",
    [
        {"model": "gpt"},
        {"cost": 0.5, "currency": "EUR"},
        {"seconds": 2.0},
        {"response": "a text"},
        {"explanation": "a reason"},
        {"input": "a question"},
    ],
)
def test_a_card_is_made_again_when_a_column_is_added(more: dict[str, Any]) -> None:
    store = MemoryStore()
    rows = [{"id": n, "label": n % 2, "judgement": n % 2} for n in range(30)]
    plain, with_more = (make_card(read_labelled_file(each, "mine"), store) for each in (rows, [r | more for r in rows]))
    assert plain.id != with_more.id
    assert make_card(read_labelled_file([r | more for r in rows[::-1]], "mine"), store).id == with_more.id
