"""Real input: recorded solutions of four models to 1,319 questions, where these data are at hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evaluand import DirectoryStore, Experiment

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "shared" / "data" / "gsm8k"
EXAMPLE = HERE.parent / "examples" / "gsm8k" / "experiment.yaml"
CORRECT = {"6b_finetuning": 286, "6b_verification": 515, "175b_finetuning": 458, "175b_verification": 742}
UNANSWERED = {"6b_finetuning": 4, "6b_verification": 1, "175b_finetuning": 5, "175b_verification": 1}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"needs GSM8K's test questions and solutions in {DATA}")


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    for name in ("test.jsonl", "example_model_solutions.jsonl"):
        shutil.copy(DATA / name, tmp_path)
    return Path(shutil.copy(EXAMPLE, tmp_path))


def test_four_models_are_graded_by_their_solutions_text(experiment: Path) -> None:
    store = DirectoryStore(experiment.parent / "store")
    part = Experiment.from_file(experiment).run(store, limit=100)
    assert {result.run.receipt.called for result in part.tasks} == {100}
    whole = Experiment.from_file(experiment).run(store)
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
        assert all("no text after 'A:'" in reason or "number" in reason for reason in reasons)

    again = Experiment.from_file(experiment).run(store)
    for result in again.tasks:
        assert result.run.receipt.called == result.evaluation.receipt.called == 0
        assert "nothing to do" in result.run.receipt.why
