"""Real input: recorded solutions of four models to 1,319 questions, where these data are at hand."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
import scipy.stats
from support.places import DATA_FOLDER, ROOT_FOLDER, needs

from evaluand import Accuracy, DirectoryStore, Experiment, compare
from evaluand.comparison import check_gates
from evaluand.matches.ratings.rating_gates import check_rating_gates
from evaluand.predictions import Results

DATA = DATA_FOLDER / "gsm8k"
EXAMPLE = ROOT_FOLDER / "examples" / "gsm8k" / "experiment.yaml"
CORRECT = {"6b_finetuning": 286, "6b_verification": 515, "175b_finetuning": 458, "175b_verification": 742}
UNANSWERED = {"6b_finetuning": 4, "6b_verification": 1, "175b_finetuning": 6, "175b_verification": 1}

pytestmark = needs(DATA)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gsm8k")
    for name in ("test.jsonl", "example_model_solutions.jsonl"):
        shutil.copy(DATA / name, folder)
    return Path(shutil.copy(EXAMPLE, folder))


@pytest.fixture(scope="module")
def store(experiment: Path) -> DirectoryStore:
    return DirectoryStore(experiment.parent / "store")


@pytest.fixture(scope="module")
def part(experiment: Path, store: DirectoryStore) -> Results:
    """Of the first hundred questions."""
    return Experiment.from_file(experiment).run(store, limit=100)


@pytest.fixture(scope="module")
def whole(experiment: Path, store: DirectoryStore, part: Results) -> Results:
    """Of all questions, after the first hundred."""
    return Experiment.from_file(experiment).run(store)


@pytest.mark.slow
def test_the_first_hundred_questions_are_graded_as_the_data_say_and_never_again(
    experiment: Path, part: Results
) -> None:
    lines = (experiment.parent / "example_model_solutions.jsonl").read_text(encoding="utf-8").splitlines()[:100]
    rows = part.aggregation.table().to_pylist()
    for number, result in enumerate(part.tasks):
        right = sum(json.loads(line)[result.task]["is_correct"] for line in lines)
        _, wrong = (row for row in rows if row["evaluation"] == number)
        assert result.run.receipt.called == 100
        assert wrong["value"] == right / 100
    assert part.matches["matches"].systems == [*CORRECT]
    again = Experiment.from_file(experiment).run(DirectoryStore(experiment.parent / "store"), limit=100)
    assert again.matches["matches"].receipt.called == 0
    assert {result.run.receipt.called + result.evaluation.receipt.called for result in again.tasks} == {0}


@pytest.mark.slow
def test_four_models_are_graded_by_their_solutions_text(
    experiment: Path, store: DirectoryStore, part: Results, whole: Results
) -> None:
    assert {result.run.receipt.called for result in part.tasks} == {100}
    assert {(r.run.receipt.called, r.run.receipt.reused) for r in whole.tasks} == {(1219, 100)}

    rows = whole.aggregation.table().to_pylist()
    for number, result in enumerate(whole.tasks):
        left_out, wrong = (row for row in rows if row["evaluation"] == number)
        missing = UNANSWERED[result.task]
        assert result.evaluation.counts == {"answer": {"scored": 1319 - missing, "abstained": missing}}
        assert round(left_out["value"] * left_out["n_scored"]) == CORRECT[result.task]
        assert (left_out["n"], left_out["n_scored"], left_out["n_abstained"]) == (1319, 1319 - missing, missing)
        assert wrong["value"] == CORRECT[result.task] / 1319 == left_out["worst"]
        assert left_out["low"] < left_out["value"] < left_out["high"]
        reasons = set(result.evaluation.table("answer")["reason"].to_pylist()) - {None}
        assert all("no text after 'A:'" in reason or "John's age" in reason for reason in reasons)

    again = Experiment.from_file(experiment).run(store)
    assert again.matches["matches"].receipt.called == 0
    for result in again.tasks:
        assert result.run.receipt.called == result.evaluation.receipt.called == 0
        assert "nothing to do" in result.run.receipt.why


@pytest.mark.slow
def test_the_models_judged_two_by_two_rank_as_by_accuracy(whole: Results) -> None:
    matches, ratings = whole.matches["matches"], whole.ratings["matches"]
    assert matches.systems == [*CORRECT]
    assert sum(matches.counts.values()) == 6 * 1319
    assert matches.receipt is not None
    equal = sum(matches.table(["equal"])["equal"].to_pylist())
    assert (equal, matches.receipt.called, matches.receipt.reused) == (8, 7290, 600)  # 16 pairs have texts of others

    by_accuracy = sorted(CORRECT, key=lambda model: -CORRECT[model])
    assert [(row["system"], row["letters"]) for row in ratings.ratings] == [
        *zip(by_accuracy, ("a", "b", "c", "d"), strict=True)
    ]
    wins = {(row["a"], row["b"]): row for row in ratings.win_rates}
    pair = wins["6b_verification", "175b_finetuning"]  # as the comparison of both by their scores
    assert (pair["won"], pair["tied"], pair["lost"], pair["n_missing"]) == (209, 951, 152, 7)
    assert pair["win_rate"] == pytest.approx((209 + 951 / 2) / 1312)
    [result] = check_rating_gates(["6b_verification wins against 175b_finetuning >= 50% at 95%"], ratings)
    assert result.passed
    [bias, _] = ratings.bias
    assert bias["low"] < 0.5 < bias["high"]


@pytest.mark.slow
def test_verification_of_a_small_model_beats_fine_tuning_of_a_large_one(whole: Results) -> None:
    evaluations = {result.task: result.evaluation for result in whole.tasks}
    made = compare(evaluations["175b_finetuning"], evaluations["6b_verification"], metrics=[Accuracy()])
    [pair] = made.pairs
    assert (pair["n"], pair["n_used"], pair["n_a_missing"], pair["n_b_missing"]) == (1319, 1312, 6, 1)
    assert (pair["n_only_a"], pair["n_only_b"], pair["clusters"]) == (0, 0, None)
    assert (pair["won"], pair["tied"], pair["lost"]) == (209, 951, 152)
    assert pair["difference"] == pytest.approx(57 / 1312)
    mid_p = scipy.stats.binomtest(152, 361).pvalue - scipy.stats.binom.pmf(152, 361, 0.5)
    assert pair["p"] == pytest.approx(max(mid_p, 2 * scipy.stats.norm.sf(57 / math.sqrt(361))), abs=1e-12)
    assert (pair["low"], pair["high"]) == pytest.approx((0.0151, 0.0718), abs=5e-5)
    assert pair["worst"] < pair["difference"] < pair["best"]
    assert {flip["flip"] for flip in made.flips()} == {"lost", "won"}

    ranking = compare(*evaluations.values(), metrics=[Accuracy()]).ranking
    order = [(list(evaluations)[row["evaluation"]], row["letters"]) for row in ranking]
    assert order == [
        ("175b_verification", "a"),
        ("6b_verification", "b"),
        ("175b_finetuning", "c"),
        ("6b_finetuning", "d"),
    ]

    gates = ["accuracy better than 175b_finetuning", "accuracy not worse than 175b_verification by 0.1"]
    checked = [each for each in check_gates(gates, evaluations) if each.subject == "6b_verification"]
    assert [result.passed for result in checked] == [True, False]
