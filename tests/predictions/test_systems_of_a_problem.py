"""Several systems' predictions for one problem: which files are whose, and how the systems are compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder as Commands
from support.d3m_problem import Made

from evaluand.core.errors import DataError, SpecError
from evaluand.predictions.evaluating import evaluate
from evaluand.predictions.scoring import score
from evaluand.store.store import MemoryStore

KEYS = range(10, 50)
TRUTH = ["yes" if key % 3 else "no" for key in KEYS]
GOOD = ["yes" if key % 4 else "no" for key in KEYS]
BAD = ["yes"] * len(KEYS)


def rows(labels: Sequence[str], keys: Sequence[int] = KEYS) -> str:
    return "d3mIndex,label\n" + "".join(f"{key},{label}\n" for key, label in zip(keys, labels, strict=True))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = Made(tmp_path / "p")
    made.rows("d3mIndex,image,code,label\n" + "".join(f"{k},a.png,0,{v}\n" for k, v in zip(KEYS, TRUTH, strict=True)))
    made.splits("d3mIndex,type,repeat,fold\n" + "".join(f"{key},TEST,0,0\n" for key in KEYS))
    made.problem["inputs"]["performanceMetrics"] = [{"metric": "accuracy"}, {"metric": "f1", "posLabel": "yes"}]
    made.write()
    return made


def folded(made: Made) -> None:
    """The split as two folds of every second row."""
    made.splits(
        "d3mIndex,type,repeat,fold\n"
        + "".join(f"{k},{'TEST' if k % 2 == f else 'TRAIN'},0,{f}\n" for f in (0, 1) for k in KEYS)
    )
    made.problem["inputs"]["dataSplits"] = {"method": "kFold", "numFolds": 2}
    made.write()


def write(folder: Path, **labels: Any) -> list[Path]:
    for name, text in labels.items():
        (folder / f"{name}.csv").write_text(text if isinstance(text, str) else rows(text))
    return [folder / f"{name}.csv" for name in labels]


def test_two_files_are_two_systems_with_the_values_that_each_has_alone(made: Made, tmp_path: Path) -> None:
    files = write(tmp_path, good=GOOD, bad=BAD)
    scores = score(made.root, files)
    assert [*scores.systems] == ["good", "bad"]
    alone = [row for file in files for row in score(made.root, file).rows]
    assert [(row.metric, row.value, row.low) for row in scores.rows] == [(r.metric, r.value, r.low) for r in alone]
    one = score(made.root, files[:1])
    assert (one.systems, one.results.comparison) == (["predictions"], None)
    assert str(scores).splitlines()[1].split() == ["good"]


def test_the_differences_are_those_of_columns_of_one_file(made: Made, tmp_path: Path) -> None:
    files = write(tmp_path, good=GOOD, bad=BAD)
    comparison = score(made.root, files).results.comparison
    columns = {"label": TRUTH, "good": GOOD, "bad": BAD}
    same = evaluate("label", ["good", "bad"], data=columns, metrics=["accuracy"]).results.comparison
    assert comparison is not None
    assert same is not None
    mine, theirs = (
        next(pair for pair in each.to_dict()["pairs"] if pair["metric"] == "accuracy") for each in (comparison, same)
    )
    right = [sum(map(str.__eq__, said, TRUTH)) / 40 for said in (GOOD, BAD)]
    assert mine["difference"] == pytest.approx(right[1] - right[0])
    for name in ("difference", "low", "high", "p", "n", "won", "lost", "verdict"):
        assert mine[name] == theirs[name], name


def test_a_comparison_without_a_store_is_that_of_the_stored_systems(made: Made, tmp_path: Path) -> None:
    scores = score(made.root, write(tmp_path, good=GOOD, bad=BAD))
    compared, stored = scores.results.comparison, scores.save(MemoryStore(), "mine").comparison
    assert compared is not None
    assert stored is not None
    mine, theirs = (each.to_dict()["pairs"] for each in (compared, stored))
    assert [pair["metric"] for pair in mine] == ["accuracy", "f_beta"]
    for one, other in zip(mine, theirs, strict=True):
        for name in ("metric", "labels", "difference", "low", "high", "p", "n", "won", "lost", "verdict"):
            assert one.get(name) == other.get(name), name


def test_systems_are_stored_under_their_names_with_their_comparison(made: Made, tmp_path: Path) -> None:
    store = MemoryStore()
    results = score(made.root, write(tmp_path, good=GOOD, bad=BAD)).save(store, "plants")
    assert [result.task for result in results.tasks] == ["good", "bad"]
    assert {kind.kind for kind in store.named("plants")} == {"aggregations", "comparisons"}
    values = [row["value"] for row in results.aggregation.table().to_pylist() if row["metric"] == "accuracy"]
    assert values[1] == pytest.approx(TRUTH.count("yes") / 40)


@pytest.mark.parametrize(
    ("files", "systems"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "b", "c"], ["a", "b", "c"]),
        (["x/predictions", "y/predictions"], ["x/predictions", "y/predictions"]),
        (["x/predictions", "other"], ["predictions", "other"]),
        (["a_repeat0", "a_repeat1"], ["a_repeat0", "a_repeat1"]),  # there is one part, so numbers are only names
        (["model-fold3", "model-fold4"], ["model-fold3", "model-fold4"]),
    ],
)
def test_systems_are_called_after_their_files(made: Made, tmp_path: Path, files: list[str], systems: list[str]) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    found = score(made.root, write(tmp_path, **dict.fromkeys(files, GOOD)), intervals=False)
    assert [*found.systems] == systems


@pytest.mark.parametrize(
    ("files", "systems"),
    [
        (["a_fold0", "a_fold1"], ["predictions"]),
        (["a_fold0", "b_fold1"], ["predictions"]),
        (["a_fold0", "a_fold1", "b_fold0", "b_fold1"], ["a", "b"]),
        (["b_fold1", "a_fold0", "b_fold0", "a_fold1"], ["b", "a"]),
        (["a-fold-0", "a-fold-1", "whole"], ["a", "whole"]),
        (["one", "two"], ["one", "two"]),
        (["x/fold0", "x/fold1", "y/fold0", "y/fold1"], ["x/predictions", "y/predictions"]),
    ],
)
def test_the_parts_of_a_system_are_told_by_the_numbers_in_their_names(
    made: Made, tmp_path: Path, files: list[str], systems: list[str]
) -> None:
    folded(made)
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    tested = {number: [key for key in KEYS if key % 2 == number] for number in (0, 1)}
    texts = {
        name: next((rows(["yes"] * 20, tested[number]) for number in tested if name.endswith(str(number))), rows(BAD))
        for name in files
    }
    found = score(made.root, write(tmp_path, **texts), intervals=False)
    assert [*found.systems] == systems
    parts = [(system, row.by.get("fold")) for system, row in found.values.metrics]
    assert parts == [(name, fold) for name in systems for _ in ("accuracy", "f1") for fold in (None, "0", "1")]
    assert found.results.comparison is None
    apart = "each value is the mean over 2 parts of the split, and not that of all rows"
    assert (f"the systems are not compared row by row: {apart}" in found.notes) == (len(systems) > 1)
    stored = score(made.root, write(tmp_path, **texts), intervals=False, store=MemoryStore())
    assert f"stored values are those of all rows: here {apart}" in stored.notes
    with pytest.raises(SpecError, match=f"gate 'f1 >= 0.1': {apart}; gate the table of values instead"):
        score(made.root, write(tmp_path, **texts), intervals=False, gates="f1 >= 0.1")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["a_fold0", "b_fold0"], "1 of 2 parts has no predictions"),
        (["a_fold0", "a_fold_0", "a_fold1"], "is for repeat 0, fold 0 too; give one of them"),
        (["a_fold7", "b"], "the split has no fold 7"),
        (["x/a", "z/x/a"], "two systems are called 'x/a', after their files; rename one"),
    ],
)
def test_what_belongs_to_no_system_is_refused(made: Made, tmp_path: Path, files: list[str], message: str) -> None:
    folded(made)
    for name in ("x", "z/x"):
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(SpecError, match=message):
        score(made.root, write(tmp_path, **dict.fromkeys(files, BAD)))


def test_a_fault_in_the_file_of_one_system_names_it_and_stops_all(made: Made, tmp_path: Path) -> None:
    files = write(tmp_path, good=GOOD, bad=rows(BAD)[:-8] + "\n")
    with pytest.raises(DataError) as refused:
        score(made.root, files)
    assert {fault.where.split(":")[0].split(",")[0] for fault in refused.value.faults} == {str(files[1])}


def test_the_command_shows_values_and_differences_and_a_file_of_scores_has_one_system(
    made: Made, tmp_path: Path
) -> None:
    commands = Commands(tmp_path)
    files = [part for file in write(tmp_path, good=GOOD, bad=BAD) for part in ("--predictions", file)]
    shown = commands.call("score", made.root, *files)
    assert shown.exit_code == 0
    assert shown.output.splitlines()[1].split() == ["good"]
    assert "accuracy · prediction" in shown.output
    assert "bad − good" in shown.output
    reported = commands.json("score", made.root, *files)
    assert [row["task"] for row in reported["metrics"]] == ["good", "good", "bad", "bad"]
    assert [pair["metric"] for pair in reported["comparison"]["pairs"]] == ["accuracy", "f_beta"]
    assert commands.json("score", made.root, *files[:2])["comparison"] is None
    assert "has those of one system" in commands.refused("score", made.root, *files, "--out", tmp_path / "s.csv")
