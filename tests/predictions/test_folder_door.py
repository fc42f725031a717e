"""A problem's folder gives what columns of a file give: values, groups, gates, comparison and artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder as Commands
from support.d3m_problem import Made

from evaluand.core.errors import SpecError
from evaluand.predictions.evaluating import evaluate
from evaluand.predictions.result import SystemScores
from evaluand.predictions.scoring import score, scores_table
from evaluand.store.store import MemoryStore

KEYS = range(10, 50)
TRUTH = ["yes" if key % 3 else "no" for key in KEYS]
GOOD = ["yes" if key % 4 else "no" for key in KEYS]
BAD = ["yes"] * len(KEYS)
CODE = ["a" if key % 2 else "b" for key in KEYS]
METRICS = [{"metric": "accuracy"}, {"metric": "f1", "posLabel": "yes"}, {"metric": "f1Macro"}]
COLUMNS = {"label": TRUTH, "good": GOOD, "bad": BAD, "code": CODE}


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = Made(tmp_path / "p")
    rows = zip(KEYS, CODE, TRUTH, strict=True)
    made.rows("d3mIndex,image,code,label\n" + "".join(f"{key},a.png,{code},{label}\n" for key, code, label in rows))
    split(made, lambda key: 0)
    made.problem["inputs"]["performanceMetrics"] = METRICS
    made.write()
    for name in ("good", "bad"):
        rows = zip(KEYS, COLUMNS[name], strict=True)
        (tmp_path / f"{name}.csv").write_text("d3mIndex,label\n" + "".join(f"{key},{label}\n" for key, label in rows))
    return made


def split(made: Made, fold_of: Any) -> None:
    made.splits("d3mIndex,type,repeat,fold\n" + "".join(f"{key},TEST,0,{fold_of(key)}\n" for key in KEYS))


def files(made: Made, *names: str) -> list[Path]:
    return [made.root.parent / f"{name}.csv" for name in names]


def shown(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    names = ("task", "signature", "by", "value", "low", "high", "worst", "best", "n", "n_scored", "reason", "label")
    return [[row[name] for name in names] for row in rows]


def by_columns(systems: Sequence[str], **options: Any) -> SystemScores:
    metrics = [
        "accuracy",
        {"kind": "f_beta", "label": "yes"},
        {"kind": "f_beta", "average": "macro", "zero_division": 0},
    ]
    return evaluate("label", [*systems], data=COLUMNS, metrics=metrics, label="yes", **options)


@pytest.mark.parametrize("systems", [["good", "bad"], ["bad", "good"]])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"by": ["code"]},
        {"gates": ["accuracy >= 0.7", "accuracy > baseline"]},
    ],
)
def test_a_folder_has_the_values_gates_and_differences_of_columns(
    made: Made, systems: list[str], options: dict[str, Any]
) -> None:
    mine = score(made.root, files(made, *systems), **options).facts()
    theirs = by_columns(systems, disparities=["difference"] if "by" in options else (), **options).facts()
    for facts in (mine, theirs):
        facts["metrics"] = [row | {"target": None} for row in facts["metrics"]]
    assert shown(mine["metrics"]) == shown(theirs["metrics"])
    names = ("task", "metric", "disparity", "value", "low", "high", "reason")
    for each in ("disparities", "gates"):
        keys = names if each == "disparities" else ("subject", "result")
        assert [[row[k] for k in keys] for row in mine[each]] == [[row[k] for k in keys] for row in theirs[each]]
    pairs = ("metric", "difference", "low", "high", "p", "n", "won", "lost", "verdict")
    mine, theirs = (facts["comparison"]["pairs"] for facts in (mine, theirs))
    assert [[pair[name] for name in pairs] for pair in mine] == [[pair[name] for name in pairs] for pair in theirs]


@pytest.mark.parametrize("by", [(), "code"])
def test_what_is_stored_is_what_was_computed(made: Made, by: Any) -> None:
    store = MemoryStore()
    kept = score(made.root, files(made, "good", "bad"), by=by, store=store, name="mine")
    assert kept.made is not None
    assert kept.made.aggregation is not None
    stored = kept.made.aggregation.table().to_pylist()
    assert [(row["value"], row["low"], row["n"]) for row in stored] == [(r.value, r.low, r.n) for r in kept.rows]
    assert {ref.kind for ref in store.named("mine")} == {"aggregations", "comparisons"}
    unsaved = score(made.root, files(made, "good", "bad"), by=by)
    assert [row[:11] for row in unsaved.rows] == [row[:11] for row in kept.rows]
    again = unsaved.save(store, "again")
    assert again.aggregation is not None
    assert again.aggregation.id == kept.made.aggregation.id


def test_parts_of_a_split_are_groups_and_their_mean_is_the_value(made: Made) -> None:
    split(made, lambda key: key % 4 // 2)
    made.problem["inputs"]["dataSplits"] = {"method": "kFold", "numFolds": 2, "splitsFile": "dataSplits.csv"}
    made.write()
    scores = score(made.root, files(made, "good"), by="code")
    of_folds = [
        [TRUTH[key - 10] == GOOD[key - 10] for key in KEYS if key % 4 // 2 == fold and code in ("", CODE[key - 10])]
        for fold in (0, 1)
        for code in ("", "a", "b")
    ]
    mean, *rows = scores.rows[:7]
    assert [row.value for row in rows] == [sum(right) / len(right) for right in of_folds]
    assert [row.by for row in rows[:2]] == [{"fold": "0"}, {"fold": "0", "code": "a"}]
    assert mean.value == pytest.approx((rows[0].value + rows[3].value) / 2)
    assert scores.facts()["metrics"][0]["value"] == mean.value
    assert scores["f1Macro"].data["parts"] == 2
    assert scores_table(scores)["metric"].to_pylist() == ["accuracy", "f1", "f1Macro"] * 2
    assert "the mean of 2 parts, from " in str(scores)


def test_targets_of_several_types_are_stored_too(made: Made) -> None:
    made.dataset["dataResources"][1]["columns"][2] |= {"colType": "integer", "role": ["suggestedTarget"]}
    target = {"targetIndex": 1, "resID": "1", "colIndex": 2, "colName": "code"}
    made.problem["inputs"]["data"][0]["targets"].append(target)
    made.problem["inputs"]["performanceMetrics"] = [{"metric": "accuracy"}]
    made.rows("d3mIndex,image,code,label\n" + "".join(f"{key},a.png,{key % 3},{TRUTH[key - 10]}\n" for key in KEYS))
    made.write()
    [file] = files(made, "both")
    file.write_text("d3mIndex,label,code\n" + "".join(f"{key},{TRUTH[key - 10]},{key % 2}\n" for key in KEYS))
    scores = score(made.root, file)
    right = sum(key % 3 == key % 2 for key in KEYS) / 40
    assert [(row.target, row.value) for row in scores.rows] == [("label", 1.0), ("code", right)]
    stored = scores.save(MemoryStore(), "mine")
    assert stored.aggregation is not None
    assert stored.aggregation.table()["value"].to_pylist() == [1.0, right]
    assert stored.tasks[0].run.counts == {"completed": 40}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "colour"}, "by='colour': the learning table has no such column; known: d3mIndex, image, code, label"),
        ({"by": "d3mIndex", "groups": 39}, "by='d3mIndex': 40 groups in 40 rows; group by a column with fewer values"),
        (
            {"gates": "accuracy > baseline"},
            "there is predictions: name a second system",
        ),
    ],
)
def test_what_cannot_be_grouped_or_judged_is_refused(made: Made, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as refused:
        score(made.root, files(made, "good"), **options)
    assert message in str(refused.value)


def test_the_command_groups_checks_gates_and_stores(made: Made, tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    [good] = files(made, "good")
    given = ("score", made.root, "--predictions", good)
    result = commands.call(*given, "--by", "code", "--gate", "f1Macro >= 0.99", "--gate", "f1 >= 0.5", "--name", "mine")
    assert result.exit_code == 3
    assert "label, code=a" in result.output
    assert "f1_macro: difference by code" in result.output
    assert "FAILED  f1Macro >= 0.99" in result.output
    assert "passed  f1 >= 0.5" in result.output
    value = f"{by_columns(['good'])['f1_macro'].value:.3f}"
    assert value in result.output
    assert value in commands.done("show", "mine")
    facts = commands.json(*given)
    assert (facts["problem"], facts["definition"], [*facts["files"]]) == ("p_problem", "standard", [str(good)])
    assert "--kind is for columns of a file" in commands.refused(*given, "--kind", "binary", code=2)


def test_gates_judge_metrics_of_labels_and_of_numbers_of_one_target(made: Made) -> None:
    made.dataset["dataResources"][1]["columns"][3]["colType"] = "integer"
    made.rows("d3mIndex,image,code,label\n" + "".join(f"{key},a.png,b,{key % 3}\n" for key in KEYS))
    made.problem["inputs"]["performanceMetrics"] = [{"metric": "accuracy"}, {"metric": "meanAbsoluteError"}]
    made.write()
    said = made.root.parent / "said.csv"
    said.write_text("d3mIndex,label\n" + "".join(f"{key},0\n" for key in KEYS))
    scores = score(made.root, said, gates=["accuracy >= 0.1", "meanAbsoluteError <= 1.1"])
    right = sum(key % 3 == 0 for key in KEYS) / 40
    assert [(row.metric, row.value) for row in scores.rows] == [
        ("accuracy", right),
        ("mean_absolute_error", sum(key % 3 for key in KEYS) / 40),
    ]
    assert [gate.passed for gate in scores.gates] == [True, True]
