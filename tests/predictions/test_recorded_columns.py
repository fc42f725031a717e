"""Recorded outputs in the file of the examples: they are no part of the question."""

from pathlib import Path

import pytest

from evaluand.comparison.comparing import compare
from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.experiment.experiment import Experiment
from evaluand.predictions.steps import Results
from evaluand.run.tasks.recorded import DoubtfulJoin
from evaluand.store.store import MemoryStore, Store

TRUTH = [("1", "x"), ("2", "y"), ("3", "x"), ("4", "y")]


def write(
    folder: Path, name: str, predictions: str, truth: str = "xyxy", roles: str = "expected: truth, id: id"
) -> Path:
    rows = "".join(f"{i},{t},{p}\n" for i, (t, p) in enumerate(zip(truth, predictions, strict=True), 1))
    (folder / f"{name}.csv").write_text(f"id,truth,prediction\n{rows}")
    path = folder / f"{name}.yaml"
    path.write_text(
        f"name: {name}\ndataset: {{path: {name}.csv, {roles}}}\n"
        f"tasks: {{{name}: {{kind: recorded, path: {name}.csv, by: id, key: id, response: prediction}}}}\n"
        "scorers: {right: prediction}\nmetrics: [accuracy]\n"
    )
    return path


def run(path: Path, store: Store) -> Results:
    return Experiment.from_file(path).run(store)


def test_recorded_columns_of_the_same_file_are_no_part_of_the_input(tmp_path: Path) -> None:
    experiment = Experiment.from_file(write(tmp_path, "a", "xyyy"))
    assert experiment.dataset.roles.input == "id"
    text = (
        (tmp_path / "a.yaml")
        .read_text()
        .replace("expected: truth, id: id", "expected: truth, id: id, input: [prediction]")
    )
    (tmp_path / "a.yaml").write_text(text)
    assert Experiment.from_file(tmp_path / "a.yaml").dataset.roles.input == ("prediction",)


@pytest.mark.parametrize(
    "setting",
    [
        "score: {column: prediction, range: [1, 10], threshold: 5, labels: [x, y]}",
        "decision: {column: prediction, negative: 1, positive: [7, 9], labels: [x, y]}",
    ],
)
def test_files_with_other_scores_have_the_same_examples(tmp_path: Path, setting: str) -> None:
    found = []
    for name, scores in (("a", "1719"), ("b", "7117")):
        path = write(tmp_path, name, scores)
        path.write_text(path.read_text().replace("response: prediction", setting))
        found.append(Experiment.from_file(path).dataset.digest)
    assert found[0] == found[1]


def test_other_columns_stay_the_input(tmp_path: Path) -> None:
    write(tmp_path, "a", "xyyy")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    (tmp_path / "a.csv").write_text("\n".join([f"{lines[0]},text", *(f"{line},t" for line in lines[1:])]))
    assert Experiment.from_file(tmp_path / "a.yaml").dataset.roles.input == ("text",)


def test_experiments_over_two_files_of_id_truth_prediction_pair_all_rows(tmp_path: Path) -> None:
    store = MemoryStore()
    a, b = (run(write(tmp_path, *each), store).tasks[0].evaluation for each in (("a", "xyxx"), ("b", "yyxy")))
    [pair] = compare(a, b).pairs
    assert (pair["n_used"], pair["won"], pair["lost"], pair["n_only_a"]) == (4, 1, 1, 0)


def test_a_comparison_says_which_examples_have_changed(tmp_path: Path) -> None:
    store = MemoryStore()
    a = run(write(tmp_path, "a", "xyxx"), store).tasks[0].evaluation
    b = run(write(tmp_path, "b", "yyxy", truth="xyxx"), store).tasks[0].evaluation
    with pytest.warns(
        EvaluandWarning, match="1 of 4 examples that a/a and b/b share by id differs in truth, such as '4'"
    ):
        comparison = compare(a, b)
    assert comparison.pairs[0]["n_used"] == 3


def test_examples_that_contain_the_predictions_are_not_compared(tmp_path: Path) -> None:
    store = MemoryStore()
    roles = "expected: truth, id: id, input: prediction"
    a, b = (
        run(write(tmp_path, name, said, roles=roles), store).tasks[0].evaluation
        for name, said in (("a", "xyxx"), ("b", "yyxy"))
    )
    with pytest.raises(DataError, match="2 of 4 examples that a/a and b/b share by id differ in prediction"):
        compare(a, b)


def test_a_file_with_nothing_but_truth_needs_no_input_for_recorded_tasks(tmp_path: Path) -> None:
    path = write(tmp_path, "a", "xyyy")
    (tmp_path / "truth.csv").write_text("id,truth\n1,x\n2,y\n3,x\n4,y\n")
    path.write_text(path.read_text().replace("dataset: {path: a.csv", "dataset: {path: truth.csv"))
    assert Experiment.from_file(path).dataset.roles.input == "id"
    (tmp_path / "app.py").write_text("def answer(text):\n    return text\n")
    path.write_text(path.read_text().replace("tasks: {a:", "tasks: {live: app.py:answer, a:"))
    with pytest.raises(SpecError, match="every column has another role"):
        Experiment.from_file(path)


def test_a_second_truth_that_differs_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path, "a", "xyyy")
    write(tmp_path, "b", "xyyy", truth="xyyy")
    path.write_text(path.read_text().replace("path: a.csv, by", "path: b.csv, by"))
    with pytest.warns(DoubtfulJoin, match="'truth' differs from the expected value of the dataset in 1 row, such as"):
        run(path, MemoryStore())
