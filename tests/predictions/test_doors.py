"""The same data give the same values, counts, notes and gates at every door: a table of doors and of inputs."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import Folder

from evaluand import Dataset, DirectoryStore, Experiment, FBeta, SpecError, SystemScores, evaluate

YES = ["yes", "no", "yes", "no", "yes", "no", "no", "yes"]
SAID = ["yes", "no", "no", "no", "yes", "yes", "no", "yes"]
OTHER = ["yes", "yes", "no", "no", "yes", "yes", "no", "no"]
CHANCE = [0.9, 0.2, 0.4, 0.1, 0.8, 0.7, 0.3, 0.6]
SEX = ["f", "f", "f", "f", "m", "m", "m", "m"]
WEIGHT = [1.0, 2.0, 1.0, 1.0, 3.0, 1.0, 1.0, 2.0]
CLUSTER = ["a", "a", "b", "b", "c", "c", "d", "d"]
KINDS = ["cat", "dog", "bird", "cat", "dog", "bird", "cat", "dog"]
NUMBERS = [1.5, 2.0, 3.25, 4.0, 5.5, 6.0, 7.25, 8.0]


class Shown(NamedTuple):
    """What a door says: rows by system, metric and group; notes without the words of options; gates."""

    rows: dict[Any, tuple[Any, ...]]
    disparities: list[Any]
    notes: list[str]
    gates: list[tuple[str, bool]]


_OPTION = re.compile(r"--[a-z-]+( (?!names|takes)[A-Za-z0-9.=-]+)?|\b[a-z_]+=(…|'[^']*'|\{[^}]*\}|\[[^\]]*\])")


def shown(facts: Mapping[str, Any]) -> Shown:
    counts = ("n", "n_scored", "n_failed", "n_abstained")
    rows = {
        (row["task"], row["signature"], tuple(row["by"].items())): (
            *(row[name] for name in ("value", "low", "high")),
            _OPTION.sub("OPTION", row["reason"] or ""),
            *(row[name] for name in counts),
        )
        for row in facts["metrics"]
    }
    disparities = [(row["task"], row["metric"], row["disparity"], row["value"]) for row in facts["disparities"]]
    notes = [_OPTION.sub("OPTION", note) for note in facts["notes"]]
    return Shown(rows, disparities, notes, [(gate["subject"], gate["result"] == "passed") for gate in facts["gates"]])


def shown_result(result: SystemScores) -> Shown:
    """What a result says, whose rows are those of its facts."""
    facts = result.facts()
    several = len(result.systems) > 1
    values = [(row["system"] if several else result.systems[0], row["value"], row["low"]) for row in result.to_dict()]
    assert values == [(row["task"], row["value"], row["low"]) for row in facts["metrics"]]
    return shown(facts)


Inputs = dict[str, Any]


def by_arrays(columns: Inputs, options: Inputs, folder: Folder) -> Shown:
    chosen = dict(options)
    systems = chosen.pop("predictions", "predictions")
    taken = {name: columns[chosen.pop(name)] for name in ("weight", "cluster", "scores") if name in chosen}
    if "by" in chosen:
        taken["by"] = {name: columns[name] for name in chosen.pop("by")}
    said = {name: columns[name] for name in systems} if isinstance(systems, list) else columns[systems]
    return shown_result(evaluate(columns["truth"], said, **chosen, **taken))


def by_columns(columns: Inputs, options: Inputs, folder: Folder) -> Shown:
    return shown_result(evaluate("truth", **{"predictions": "predictions"} | options, data=columns))


def by_table(columns: Inputs, options: Inputs, folder: Folder) -> Shown:
    return shown_result(evaluate("truth", **{"predictions": "predictions"} | options, data=pa.table(columns)))


def by_files(columns: Inputs, options: Inputs, folder: Folder) -> Shown:
    path = folder.path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return shown_result(evaluate("truth", **{"predictions": "predictions"} | options, data=path))


def by_store(columns: Inputs, options: Inputs, folder: Folder) -> Shown:
    store = DirectoryStore(folder.path / "store")
    result = evaluate("truth", **{"predictions": "predictions"} | options, data=columns, store=store, name="kept")
    assert store.named("kept")
    return shown_result(result)


def by_command(columns: Inputs, options: Inputs, folder: Folder) -> Shown:
    pq.write_table(pa.table(columns), folder.path / "table.parquet")
    names = {"predictions": "prediction", "metrics": "metric", "gates": "gate", "scores": "score", "label": "pos-label"}
    words = ["score", str(folder.path / "table.parquet"), "--truth", "truth"]
    for option, value in ({"predictions": "predictions"} | options).items():
        for each in value if isinstance(value, list) else [value]:
            if option != "disparities":  # the command always shows these differences
                words += [f"--{names.get(option, option)}", str(each)]
    result = folder.call(*words, "--json")
    assert result.exit_code in (0, 1, 3), result.output  # 1: a metric is refused
    return shown(json.loads(result.stdout))


Door = Callable[[Inputs, Inputs, Folder], Shown]
DOORS: list[Door] = [by_columns, by_table, by_files, by_store, by_command]

TWO = {"truth": YES, "predictions": SAID, "other": OTHER, "p": CHANCE, "sex": SEX, "w": WEIGHT, "c": CLUSTER}
GROUPED: Inputs = {"by": ["sex"], "disparities": ["difference"]}
INPUTS: dict[str, tuple[Inputs, Inputs]] = {
    "two classes": (TWO, {}),
    "scores": (TWO, {"scores": "p"}),
    "groups": (TWO, GROUPED),
    "weights": (TWO, {"weight": "w"}),
    "clusters": (TWO, {"cluster": "c", "metrics": ["accuracy"]}),
    "the other class": (TWO, {"label": "no"}),
    "fairness": (TWO, GROUPED | {"fairness": ["equalized_odds"], "metrics": ["accuracy"]}),
    "a gate": (TWO, {"gates": ["accuracy >= 0.5", "recall >= 0.99"]}),
    "several systems": (TWO, {"predictions": ["other", "predictions"]}),
    "gates of several": (TWO, {"predictions": ["other", "predictions"], "gates": ["accuracy >= 0.7"]}),
    "gates against the first": (TWO, {"predictions": ["other", "predictions"], "gates": ["accuracy >= baseline"]}),
    "groups of several": (TWO, GROUPED | {"predictions": ["other", "predictions"], "metrics": ["accuracy"]}),
    "missing cells": (TWO | {"predictions": [None, *SAID[1:]]}, {"missing": "wrong", "metrics": ["accuracy"]}),
    "several classes": ({"truth": KINDS, "predictions": [*KINDS[1:], "cat"]}, {}),
    "numbers": ({"truth": NUMBERS, "predictions": [*NUMBERS[1:], 8.5]}, {}),
    "few integers": ({"truth": [1, 2, 3, 1], "predictions": [1, 2, 2, 1]}, {}),
    "numbers by kind": ({"truth": [1, 2, 3, 1], "predictions": [1, 2, 2, 1]}, {"kind": "numeric"}),
    "a refused metric": (TWO, {"metrics": ["accuracy", "auc"]}),
    "one class": ({"truth": ["a"] * 4, "predictions": ["a", "b", "a", "a"]}, {}),
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_every_door_says_what_arrays_say(name: str, door: Door, tmp_path: Path) -> None:
    columns, options = INPUTS[name]
    named = {"truth", "predictions"}.union(
        *(value if isinstance(value, list) else [value] for value in options.values())
    )
    columns = {column: values for column, values in columns.items() if column in named}
    expected = by_arrays(columns, options, Folder(tmp_path))
    found = door(columns, options, Folder(tmp_path))
    assert found.rows == expected.rows
    assert found.disparities == expected.disparities
    assert found.notes == expected.notes
    assert found.gates == expected.gates


def test_gates_judge_candidates_and_not_the_baseline() -> None:
    columns, options = INPUTS["gates of several"]
    result = evaluate("truth", data=columns, **options)
    assert [(gate.subject, gate.passed) for gate in result.gates] == [("predictions", True)]
    assert [gate.subject for gate in evaluate(YES, SAID, gates="accuracy >= 0.5").gates] == ["predictions"]
    named = evaluate(YES, {"old": OTHER, "new": SAID}, gates="accuracy not worse than new by 0.5")
    assert [gate.subject for gate in named.gates] == ["old"]


def test_a_refused_metric_costs_only_itself() -> None:
    result = evaluate([1, 0], [1, 0], metrics=["accuracy", "mae", "auc"])
    assert (result["accuracy"].value, result["mae"].value) == (1.0, 0.0)
    assert (result["auc"].reason, result["auc"].n) == (
        "refused: roc_auc needs scores: give scores=…, the score of the positive class",
        2,
    )
    with pytest.raises(SpecError, match=r"^roc_auc needs scores"):
        evaluate([1, 0], [1, 0], metrics=["auc", "brier"])
    numbers = evaluate([1.5, 2.5], [1.5, 2.0], metrics=["mae", "accuracy"])
    assert (numbers["mae"].value, numbers["accuracy"].reason) == (0.25, numbers["accuracy"].reason)
    assert "refused: accuracy: real numbers are hardly ever equal" in str(numbers["accuracy"].reason)


def test_metrics_are_dictionaries_as_in_a_file() -> None:
    result = evaluate(YES, SAID, metrics=[{"kind": "f_beta", "beta": 2}, "accuracy"])
    # 3 of 4 are found, and 3 of 4 that are said are right
    assert [row.value for row in result.rows] == [0.75, 0.75]
    assert "beta=2" in result.rows[0].signature
    assert result.rows[0].value == evaluate(YES, SAID, metrics=FBeta(beta=2.0, label="yes")).rows[0].value
    with pytest.raises(SpecError, match="has no kind; write it such as"):
        evaluate(YES, SAID, metrics={"beta": 2})


MIXED: list[tuple[str, list[Any]]] = [
    ("lists", [["a"], ["b"], ["a"]]),
    ("mixed values", [1, "a", {"x": 1}]),
    ("objects", [{"x": 1}, {"x": 2}, {"x": 1}]),
]


@pytest.mark.parametrize(("what", "values"), MIXED, ids=[what for what, _ in MIXED])
@pytest.mark.parametrize("role", ["by", "cluster"])
def test_lists_and_objects_are_no_groups(what: str, values: list[Any], role: str) -> None:
    truth, said = ["a", "b", "a"], ["a", "b", "b"]
    message = rf"^{role}: 'g' holds lists, objects or mixed values such as .*, which are no groups; name a column"
    with pytest.raises(SpecError, match=message):
        evaluate("y", "p", data={"y": truth, "p": said, "g": values}, **{role: "g"})
    given = {"g": values} if role == "by" else values
    with pytest.raises(SpecError, match=message.replace("'g'", "'g'" if role == "by" else "'cluster'")):
        evaluate(truth, said, **{role: given})


def test_more_than_fifty_groups_are_asked_for(tmp_path: Path) -> None:
    n = 60
    columns: Inputs = {"truth": ["a", "b"] * 30, "predictions": ["a"] * n, "g": [f"g{i}" for i in range(n)]}
    message = r"by='g': 60 groups in 60 rows; .* \(at most 50\), or give groups=60 to see all"
    with pytest.raises(SpecError, match=message):
        evaluate("truth", "predictions", data=columns, by="g")
    with pytest.raises(SpecError, match=message):
        evaluate(columns["truth"], columns["predictions"], by={"g": columns["g"]})
    rows = evaluate("truth", "predictions", data=columns, by="g", groups=n, metrics="accuracy").rows
    assert len(rows) == n + 1
    folder = Folder(tmp_path)
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    words = ("score", str(tmp_path / "t.parquet"), "--truth", "truth", "--prediction", "predictions", "--by", "g")
    refused = folder.call(*words)
    assert (refused.exit_code, "or give --groups 60 to see all" in refused.output) == (1, True)
    assert folder.call(*words, "--groups", "60").exit_code == 0


def test_columns_of_several_systems_have_criteria_of_fairness() -> None:
    columns, _ = INPUTS["fairness"]
    result = evaluate(
        "truth", ["predictions", "other"], data=columns, by="sex", fairness="demographic_parity", metrics="accuracy"
    )
    # said yes: women 1 of 4 and men 3 of 4; by the other 2 of 4 and 2 of 4
    gaps = [(s, row.value) for s, row in result.values.disparities if row.disparity == "difference"]
    assert gaps == [("predictions", 0.5), ("other", 0.0)]


def test_values_of_several_systems_have_names() -> None:
    both = evaluate(YES, {"old": OTHER, "new": SAID}, metrics="accuracy")
    assert (both["old", "accuracy"].value, both["new", "accuracy"].value) == (0.5, 0.75)
    assert [row["system"] for row in both.to_dict()] == ["old", "new"]
    assert list(both.to_pandas().columns[:2]) == ["system", "metric"]
    with pytest.raises(KeyError, match="there are several systems; write result"):
        both["accuracy"]
    with pytest.raises(KeyError, match="there is no system 'mine'; there are old, new"):
        both["mine", "accuracy"]


def test_arrays_and_names_of_columns_may_be_combined() -> None:
    table = {"y": YES, "sex": SEX}
    assert evaluate("y", SAID, by="sex", data=table).to_dict() == evaluate(YES, SAID, by={"sex": SEX}).to_dict()


def test_scorers_and_metrics_of_an_experiment_are_dictionaries_as_in_a_file() -> None:
    rows = [{"input": "a", "expected": "A"}, {"input": "b", "expected": "C"}]
    scorers = {"same": {"kind": "exact_match", "normalise": ["case"]}}
    results = Experiment("e", Dataset.from_rows(rows), {"t": lambda text: text}, scorers, [{"kind": "accuracy"}]).run()
    assert results.aggregation.table()["value"].to_pylist() == [0.5]
    with pytest.raises(SpecError, match=r"^scorer 'same': {'any_of': True} has no kind"):
        Experiment("e", Dataset.from_rows(rows), {"t": str.upper}, {"same": {"any_of": True}}, "accuracy")
