"""A judge and a few labels as one value: which labels count, and when there is no value."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from evaluand import Aggregator, Dataset, Evaluator, Measure, Runner, Score, Scorer, SpecError
from evaluand.comparison.comparing import compare
from evaluand.comparison.gates import check_gates
from evaluand.evaluation.evaluator import Evaluation
from evaluand.judges.people.human_labels import HumanLabels, Label, draw_labelling_rows
from evaluand.metrics.prediction_powered import PredictionPoweredMean
from evaluand.run.runner import Run
from evaluand.store.directory import DirectoryStore

N = 400


@dataclass(frozen=True)
class Judge(Scorer):
    kind = "judge_of_tests"
    version = 1
    is_judge = True
    cheap = True

    most: int = 1

    def score(self, output: Any, expected: Any) -> Score:
        return Score(float(self.most * (output % 3 > 0)), "good" if output % 3 else "poor")


def says(number: int) -> float:
    """What people say: as the judge, but for every tenth answer."""
    return float((number % 3 > 0) != (number % 10 == 0))


def right(number: int) -> int:
    return number


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that was judged."""
    rows = [
        {"number": n, "topic": "rare" if n % 8 == 0 else "common", "said": None if n % 4 else says(n)} for n in range(N)
    ]
    data = Dataset.from_rows(rows, input="number", attributes=["topic"], metadata=["said"])
    run = Runner(DirectoryStore(tmp_path_factory.mktemp("original"))).run(right, data)
    judged(run)
    return run


@pytest.fixture
def run(original: Run, store: DirectoryStore) -> Run:
    shutil.copytree(original.store.root, store.root)
    return Run(store, original.id)


def judged(run: Run, most: int = 1) -> Evaluation:
    return Evaluator(run.store).evaluate(run, {"polite": Judge(most)}, name="judged")


def label(run: Run, rows: list[dict[str, Any]], say: Callable[[int], float | str] = says) -> Evaluation:
    labels = {}
    for row in rows:
        said = say(int(row["input"]))
        labels[row["key"]] = [
            Label(None, said, "ann", None) if isinstance(said, str) else Label(said, None, "ann", None)
        ]
    return Evaluator(run.store).evaluate(run, {"polite": HumanLabels(labels)})


def aggregate(evaluation: Evaluation, **parameters: Any) -> dict[str, Any]:
    measure = Measure("polite", PredictionPoweredMean(**parameters))
    row: dict[str, Any] = Aggregator().aggregate([evaluation], [measure]).table().to_pylist()[0]
    return row | {"data": orjson.loads(row["data"])}


def test_labels_drawn_by_the_export_make_an_unbiased_value(run: Run) -> None:
    evaluation = judged(run)
    label(run, draw_labelling_rows(run, seed=3)[:60])

    row = aggregate(evaluation, seed=3)

    truth = sum(map(says, range(N))) / N
    assert row["low"] < truth < row["high"]
    assert row["data"]["labelled"] == 60
    assert row["data"]["judge"]["value"] == pytest.approx(266 / N)
    assert row["high"] - row["low"] < row["data"]["people"]["high"] - row["data"]["people"]["low"]


def test_the_order_is_the_same_for_every_run_and_other_for_another_seed(run: Run) -> None:
    other = Runner(run.store).run(lambda number: number + 1, run.dataset)

    first, same, seeded = (
        [row["_index_"] for row in draw_labelling_rows(each, seed=seed)]
        for each, seed in ((run, 0), (other, 0), (run, 1))
    )

    assert first == same
    assert first != seeded
    assert sorted(first) == sorted(seeded) == list(range(N))
    assert first != sorted(first)


@pytest.mark.parametrize("skipped", [1, 5])
def test_labels_with_gaps_have_no_value_and_the_reason_says_so(run: Run, skipped: int) -> None:
    evaluation = judged(run)
    label(run, draw_labelling_rows(run)[skipped : 60 + skipped])

    row = aggregate(evaluation)

    assert row["value"] is None
    assert row["reason"].startswith(f"labels not drawn at random: {skipped} row")
    assert row["data"]["people"]["value"] is not None


def test_another_seed_must_be_declared(run: Run) -> None:
    evaluation = judged(run)
    label(run, draw_labelling_rows(run, seed=7)[:60])

    assert aggregate(evaluation)["value"] is None
    assert aggregate(evaluation, seed=7)["value"] is not None


def test_labels_of_a_column_count_if_declared_to_be_drawn(run: Run) -> None:
    evaluation = judged(run)

    assert aggregate(evaluation, labels="said")["value"] is None
    row = aggregate(evaluation, labels="said", drawn=True)
    assert row["data"]["labelled"] == N / 4
    assert row["value"] is not None


def test_strata_take_turns_and_count_by_all_their_rows(run: Run) -> None:
    evaluation = judged(run)
    rows = draw_labelling_rows(run, strata="topic")[:60]
    assert sum(int(row["input"]) % 8 == 0 for row in rows) == 30
    label(run, rows)

    assert "not drawn at random" in aggregate(evaluation)["reason"]
    row = aggregate(evaluation, strata="topic")
    rare = sum(says(int(each["input"])) for each in rows if int(each["input"]) % 8 == 0) / 30
    common = sum(says(int(each["input"])) for each in rows if int(each["input"]) % 8) / 30
    assert row["data"]["people"]["value"] == pytest.approx(rare / 8 + common * 7 / 8)


def test_strata_must_be_attributes(run: Run) -> None:
    with pytest.raises(SpecError, match=r"strata: 'topics' is not an attribute of the dataset .did you mean 'topic'"):
        aggregate(judged(run), strata="topics")
    with pytest.raises(SpecError, match="'said' is not an attribute"):
        draw_labelling_rows(run, strata="said")


def test_words_of_people_stand_for_the_values_of_verdicts(run: Run) -> None:
    evaluation = judged(run, most=5)
    label(run, draw_labelling_rows(run)[:60], lambda number: "good" if says(number) else "poor")

    row = aggregate(evaluation, range=(0, 5))

    assert 2 < row["value"] < 5


def test_a_declared_range_holds_where_only_zeros_and_ones_were_seen(run: Run) -> None:
    evaluation = judged(run)
    label(run, draw_labelling_rows(run)[:60])
    shares, without, tens = (aggregate(evaluation, **each) for each in ({"range": (0, 1)}, {}, {"range": (0, 10)}))

    assert (without["low"], without["high"]) == (shares["low"], shares["high"])
    assert tens["value"] == pytest.approx(shares["value"])
    assert tens["high"] > shares["high"] + 0.02  # a rare 10 may not have been seen
    at_threshold = aggregate(evaluation, range=(0, 10), threshold=1)
    assert at_threshold["high"] == shares["high"]


def test_grades_and_right_or_wrong_need_a_threshold(run: Run) -> None:
    evaluation = judged(run)
    label(run, draw_labelling_rows(run)[:60], lambda number: 1.0 + 4 * says(number))

    reason = aggregate(evaluation)["reason"]
    assert reason == (
        "people give 1 to 5 and the judge 0 to 1; say what means right: `people_threshold` or `threshold`"
    )
    assert 0 < aggregate(evaluation, people_threshold=4)["value"] < 1


def test_grades_of_the_judge_are_divided_by_the_threshold_too(run: Run) -> None:
    evaluation = judged(run, most=5)
    label(run, draw_labelling_rows(run)[:60])

    assert "the judge 0 to 5" in aggregate(evaluation)["reason"]
    row = aggregate(evaluation, threshold=4)
    assert row["data"]["judge"]["value"] == pytest.approx(266 / N)


def test_new_labels_make_a_new_aggregation(run: Run) -> None:
    evaluation = judged(run)
    measure = Measure("polite", PredictionPoweredMean())

    before = Aggregator().aggregate([evaluation], [measure])
    label(run, draw_labelling_rows(run)[:60])
    after = Aggregator().aggregate([evaluation], [measure])

    assert before.table()["reason"].to_pylist() == ["no row is labelled by people"]
    assert after.id != before.id
    assert after.manifest["spec"]["people"] != before.manifest["spec"]["people"] == [None]


def test_a_gate_needs_labels_and_no_card(run: Run) -> None:
    evaluation = judged(run)
    gate = ["prediction_powered_mean(polite) >= 0.4 at 95%"]
    measures = [Measure("polite", PredictionPoweredMean(range=(0, 1)))]

    [without] = check_gates(gate, {"mine": evaluation}, measures=measures)
    label(run, draw_labelling_rows(run)[:60])
    [found] = check_gates(gate, {"mine": evaluation}, measures=measures)

    assert not without.passed
    assert "no row is labelled by people" in without.message
    assert found.passed
    assert "unmeasured" not in found.message


def test_groups_have_values_of_their_own(run: Run) -> None:
    evaluation = judged(run)
    label(run, draw_labelling_rows(run)[:120])
    measure = Measure("polite", PredictionPoweredMean(), by=["topic"])

    rows = Aggregator().aggregate([evaluation], [measure]).table().to_pylist()

    data = [orjson.loads(row["data"]) for row in rows]
    assert [each["n"] for each in data] == [400, 350, 50]
    assert data[0]["labelled"] == data[1]["labelled"] + data[2]["labelled"] == 120
    assert all(row["value"] is not None for row in rows)


def worse(number: int) -> int:
    return number - 1 if number % 4 == 0 else number


def says_of(answer: int, asked: int) -> float:
    """What people say about an answer: they want the number itself."""
    return says(asked) if answer == asked else 0.0


def two_systems(run: Run, labelled: int = 100) -> tuple[Evaluation, Evaluation]:
    other = Runner(run.store).run(worse, run.dataset)
    both = []
    for each in (other, run):
        both.append(Evaluator(run.store).evaluate(each, {"polite": Judge()}))
        if labelled:
            rows = draw_labelling_rows(each)[:labelled]
            said = {
                row["key"]: [Label(says_of(int(row["response"]), int(row["input"])), None, "ann", None)] for row in rows
            }
            Evaluator(run.store).evaluate(each, {"polite": HumanLabels(said)})
    return both[0], both[1]


def test_differences_are_paired_on_the_rows_that_are_labelled_for_both(run: Run) -> None:
    base, mine = two_systems(run)

    [pair] = compare(base, mine, metrics=[PredictionPoweredMean()]).read_rows("pairs")

    truth = sum(says(n) - says_of(worse(n), n) for n in range(N)) / N
    assert pair["low"] < truth < pair["high"]
    assert pair["interval"] == pair["test"] == "prediction-powered"
    assert pair["p"] < 0.05
    assert pair["value_b"] - pair["value_a"] == pytest.approx(pair["difference"])
    assert pair["won"] + pair["tied"] + pair["lost"] == 100


def test_a_difference_without_labels_says_why_it_is_undefined(run: Run) -> None:
    base, mine = two_systems(run, labelled=0)

    [pair] = compare(base, mine, metrics=[PredictionPoweredMean()]).read_rows("pairs")

    assert pair["difference"] is None
    assert pair["reason"] == "no row is labelled by people"


def test_new_labels_make_a_new_comparison(run: Run) -> None:
    base, mine = two_systems(run, labelled=0)
    before = compare(base, mine, metrics=[PredictionPoweredMean()])
    two_systems(run, labelled=60)
    after = compare(base, mine, metrics=[PredictionPoweredMean()])

    assert before.id != after.id


def test_gates_against_a_baseline_are_decided_by_the_paired_difference(run: Run) -> None:
    base, mine = two_systems(run)
    measures = [Measure("polite", PredictionPoweredMean(range=(0, 1)))]

    def check(*rules: str) -> list[bool]:
        found = check_gates(rules, {"mine": mine, "base": base}, "base", measures=measures)
        return [each.passed for each in found]

    assert check("prediction_powered_mean better than base", "prediction_powered_mean not worse than base by 0.02") == [
        True,
        True,
    ]
    assert check("prediction_powered_mean >= base + 0.5") == [False]


def test_a_gate_against_a_baseline_fails_without_labels(run: Run) -> None:
    base, mine = two_systems(run, labelled=0)
    measures = [Measure("polite", PredictionPoweredMean(range=(0, 1)))]

    [found] = check_gates(
        ["prediction_powered_mean not worse than base by 0.5"], {"mine": mine, "base": base}, "base", measures=measures
    )

    assert not found.passed
    assert found.message.startswith("undefined: no row is labelled by people")


@pytest.mark.slow
def test_three_systems_are_ranked(run: Run) -> None:
    base, mine = two_systems(run)

    comparison = compare(base, mine, base, metrics=[PredictionPoweredMean()], labels=["a", "b", "c"])

    ranking = comparison.read_rows("ranking")
    assert ranking[0]["evaluation"] == 1
    assert len(ranking) == 3
