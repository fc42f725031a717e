"""How far groups lie apart, and whether the intervals hold."""

from __future__ import annotations

import json
import math
import re
import tracemalloc
from pathlib import Path
from typing import Any

import fairlearn.metrics as fairlearn
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from evaluand import evaluate
from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.aggregation.disparity import DisparityRow, check_kinds
from evaluand.aggregation.group_disparities import disparities
from evaluand.aggregation.groups import MetricRow, Summary, merge, summarise_shard
from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.experiment import Experiment
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.column_statistics import Mean
from evaluand.metrics.stats.intervals import normal_quantile, wilson
from evaluand.report.terminal.report import disparities_table
from evaluand.report.verification import verify
from evaluand.run.runner import Runner
from evaluand.store import tables as tables

EVERY = ("difference", "ratio", "min", "max", "difference_to_overall", "ratio_to_overall")


def table(values: Any, groups: Any, **more: Any) -> pa.Table:
    n = len(values)
    columns = {"_index_": np.arange(n), "status": ["scored"] * n, "value": np.asarray(values, float), "g": groups}
    return pa.table({**columns, **more})


def summary(of: pa.Table, *metrics: Metric, by: tuple[str, ...] = ("g",)) -> Summary:
    return summarise_shard(of, metrics, [(), by])


def shares(**groups: tuple[int, int]) -> pa.Table:
    """So many of so many are right in each group."""
    values = [float(i < right) for right, n in groups.values() for i in range(n)]
    return table(values, [name for name, (_, n) in groups.items() for _ in range(n)])


def found(of: pa.Table, *metrics: Metric, kinds: Any = EVERY) -> dict[str, DisparityRow]:
    made = summary(of, *metrics)
    return {row.disparity: row for row in disparities(made, range(len(metrics)), ("g",), kinds)}


def test_two_groups_have_newcombes_interval_of_their_difference() -> None:
    row = found(shares(a=(56, 70), b=(48, 80)), Accuracy())["difference"]
    assert row.value == pytest.approx(0.2)
    assert row.high == pytest.approx(0.3339, abs=5e-5)  # Newcombe 1998, table II, method 10
    assert 0.0524 < row.low < 0.0720  # between his ends at 95 % and 90 %: a distance has no sign
    assert (row.lowest, row.highest) == ({"g": "b"}, {"g": "a"})


def test_of_distant_groups_both_ends_are_newcombes() -> None:
    row = found(shares(a=(900, 1000), b=(400, 1000)), Accuracy())["difference"]
    low, high = wilson(np.array([900, 400]), np.array([1000, 1000]), 0.95)
    assert row.low == pytest.approx(0.5 - math.hypot(0.9 - low[0], high[1] - 0.4), abs=1e-4)
    assert row.high == pytest.approx(0.5 + math.hypot(high[0] - 0.9, 0.4 - low[1]), abs=1e-9)


def test_every_disparity_is_what_it_says() -> None:
    got = found(shares(a=(8, 10), b=(30, 60), c=(12, 30)), Accuracy())
    values = {kind: row.value for kind, row in got.items()}
    assert values == pytest.approx(
        {
            "difference": 0.4,
            "ratio": 0.5,
            "min": 0.4,
            "max": 0.8,
            "difference_to_overall": 0.3,
            "ratio_to_overall": 0.5 / 0.8,
        }
    )
    assert all(row.low <= row.value <= row.high for row in got.values())
    assert got["difference"].n_groups == 3
    assert got["difference"].small == ({"g": "a"},)


def test_differences_and_ratios_are_those_of_fairlearn() -> None:
    rng = np.random.default_rng(3)
    truth, guess, group = rng.integers(0, 2, 400), rng.integers(0, 2, 400), rng.choice(list("abcd"), 400)
    from sklearn.metrics import accuracy_score

    frame = fairlearn.MetricFrame(metrics=accuracy_score, y_true=truth, y_pred=guess, sensitive_features=group)
    got = found(table(truth == guess, group.tolist()), Accuracy())
    for way, suffix in (("between_groups", ""), ("to_overall", "_to_overall")):
        assert got[f"difference{suffix}"].value == pytest.approx(frame.difference(method=way), abs=1e-12)
        assert got[f"ratio{suffix}"].value == pytest.approx(frame.ratio(method=way), abs=1e-12)
    assert got["min"].value == pytest.approx(frame.group_min())
    assert got["max"].value == pytest.approx(frame.group_max())


def test_an_interval_is_wider_where_more_groups_are_compared() -> None:
    two = found(shares(a=(40, 50), b=(20, 50)), Accuracy())["difference"]
    three = found(shares(a=(40, 50), b=(20, 50), c=(38, 50)), Accuracy())["difference"]
    assert three.value == two.value
    assert three.high == two.high  # whichever is the worst pair, its own upper end holds
    assert three.low < two.low


def test_the_lowest_group_has_an_interval_that_counts_all_groups() -> None:
    row = found(shares(a=(22, 50), b=(20, 50)), Accuracy(), kinds=("min",))["min"]
    low, high = wilson(np.array([20]), np.array([50]), 0.95)
    assert row.low == pytest.approx(float(low[0]))  # the lowest of the lower ends errs no more often than one
    assert row.high > float(high[0])  # either may be the lowest
    lone = found(shares(a=(49, 50), b=(20, 50)), Accuracy(), kinds=("min",))["min"]
    assert lone.high == pytest.approx(float(high[0]), abs=1e-4)


def test_a_group_in_which_nothing_is_right_has_a_ratio_of_zero_with_an_upper_end() -> None:
    row = found(shares(a=(0, 40), b=(20, 40)), Accuracy())["ratio"]
    assert (row.value, row.low) == (0.0, 0.0)
    assert 0 < row.high < 0.5


def test_groups_of_zeros_alone_have_no_ratio_but_a_difference() -> None:
    got = found(shares(a=(0, 40), b=(0, 40)), Accuracy())
    assert math.isnan(got["ratio"].value)
    assert got["ratio"].reason == "a ratio of zeros: all groups have the value 0"
    assert got["difference"].value == 0.0
    assert got["difference"].high > 0


def test_values_that_may_be_negative_have_no_ratio() -> None:
    row = found(table([1.0, 2, 3, 4], list("aabb")), Mean())["ratio"]
    assert row.reason == "a ratio needs values that cannot be negative"


def test_groups_without_a_value_are_left_out_and_reported() -> None:
    of = shares(a=(5, 10), b=(8, 10), c=(0, 1))
    of = of.set_column(1, "status", pa.array(["scored"] * 20 + ["failed"]))
    row = found(of, Accuracy())["difference"]
    assert row.undefined == ({"g": "c"},)
    assert (row.n_groups, row.value) == (2, pytest.approx(0.3))


def test_rows_without_the_attribute_are_no_group() -> None:
    row = found(table([1.0, 0, 1, 0, 0, 0], ["a", "a", "b", "b", None, None]), Accuracy())["difference"]
    assert (row.n_groups, row.value) == (2, 0.0)


def test_one_group_is_no_disparity() -> None:
    row = found(shares(a=(5, 10)), Accuracy())["difference"]
    assert math.isnan(row.value)
    assert row.reason == "only one group has a value; a disparity is one of two groups"


def test_of_several_metrics_the_largest_disparity_counts() -> None:
    rng = np.random.default_rng(0)
    of = table(rng.integers(0, 2, 200), rng.choice(["a", "b"], 200).tolist(), other=rng.integers(0, 2, 200) * 1.0)
    first, second = Accuracy(), Accuracy(column="other")
    one, two = (found(of, metric)["difference"] for metric in (first, second))
    both = found(of, first, second)["difference"]
    assert both.value == max(one.value, two.value)
    assert both.high >= max(one.high, two.high)
    assert both.signature == f"{first.signature} | {second.signature}"


def test_a_group_without_an_interval_is_named_and_left_out_of_it() -> None:
    values, groups = [1.0, 2.0, 1.5, 5.0, 6.0, 5.5, 3.0], list("aaabbbc")
    row = found(table(values, groups), Mean())["difference"]
    two = found(table(values[:6], groups[:6]), Mean())["difference"]
    assert (row.value, row.n_groups) == (4.0, 3)
    assert (row.low, row.high) == pytest.approx((two.low, two.high))
    assert row.reason == "the interval leaves out g=c, which has none"


def test_a_disparity_that_lies_at_a_group_without_an_interval_has_none() -> None:
    got = found(table([1.0, 2.0, 1.5, 5.0, 6.0, 5.5, 9.0], list("aaabbbc")), Mean())
    assert [math.isnan(got[kind].low) for kind in ("difference", "max", "difference_to_overall")] == [True] * 3
    assert got["difference"].reason == got["max"].reason == "no interval: g=c has none"
    assert got["min"].low < 1.5
    assert got["min"].reason == "the interval leaves out g=c, which has none"


def test_of_many_groups_without_an_interval_some_are_named() -> None:
    row = found(table([float(i) for i in range(6)], list("abcdef")), Mean())["difference"]
    assert row.reason == "no interval: g=a, g=b, g=c and 3 more have none"


@pytest.mark.parametrize(("seed", "n"), [(0, 25), (1, 25), (2, 25), (3, 140), (4, 140), (5, 140)])
def test_the_ends_of_many_groups_are_those_of_all_pairs(seed: int, n: int) -> None:
    """The upper ends as they are; the lower ones at a level that holds for all pairs at once (Bonferroni)."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 30, n)
    groups = np.repeat(np.arange(n), sizes)
    values = (rng.random(len(groups)) < rng.beta(0.5, 0.5, n)[groups]).astype(float)
    got = found(table(values, groups.astype(str).tolist()), Accuracy(), kinds=("difference", "ratio"))
    rows = summary(table(values, groups.astype(str).tolist()), Accuracy()).values(0, ("g",))
    farther = normal_quantile(1 - 0.025 / (n * (n - 1) / 2)) / normal_quantile(0.95)
    for kind in ("difference", "ratio"):
        lows, highs = [], []
        for a in rows:
            for b in rows:
                if a is not b:
                    lows.append(_of_pair(a, b, kind, farther)[0])
                    highs.append(_of_pair(a, b, kind)[1])
        ends = max(*lows, 0.0), max(highs)
        expected = ends if kind == "difference" else (math.exp(-ends[1]), math.exp(-ends[0]))
        assert (got[kind].low, got[kind].high) == pytest.approx(expected)


def _of_pair(a: MetricRow, b: MetricRow, kind: str, farther: float = 1.0) -> tuple[float, float]:
    """Zou and Donner's interval of a − b, or of log a − log b, where a zero has only ends."""

    def scaled(x: float) -> float:
        return x if kind == "difference" else math.log(x) if x > 0 else -math.inf

    (x, x_low, x_high), (y, y_low, y_high) = ([scaled(v) for v in (row.value, row.low, row.high)] for row in (a, b))
    if math.isinf(x) or math.isinf(y):
        x_low = x_low if math.isinf(x) else x - farther * (x - x_low)
        return x_low - (y_high + 2 * math.log(farther)), x_high - y_low
    return x - y - farther * math.hypot(x - x_low, y_high - y), x - y + math.hypot(x_high - x, y - y_low)


def test_many_groups_take_memory_by_their_number_and_not_by_that_of_their_pairs() -> None:
    n = 8_000
    of = table(np.arange(3 * n) % 3 > 0, np.repeat(np.arange(n), 3).astype(str).tolist())
    made = summary(of, Accuracy())
    tracemalloc.start()
    rows = disparities(made, [0], ("g",), ("difference", "ratio"))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < n * 8 * 1000  # a row of the matrix of all pairs has n * 8
    assert [len(row.small) for row in rows] == [n, n]


def test_shards_give_what_the_whole_gives() -> None:
    of = shares(a=(30, 50), b=(20, 50), c=(10, 30))
    parts = [summary(of.slice(start, 37), Accuracy()) for start in range(0, of.num_rows, 37)]
    assert disparities(merge(parts), [0], ("g",), EVERY) == disparities(summary(of, Accuracy()), [0], ("g",), EVERY)


def test_an_unknown_disparity_is_refused_with_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"no disparity is called 'diference' \(did you mean 'difference'\?\)"):
        check_kinds(["diference"])


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [2, 5])
def test_the_worst_difference_is_covered_at_least_as_often_as_said(n_groups: int) -> None:
    rng = np.random.default_rng(n_groups)
    true = np.linspace(0.6, 0.7, n_groups)
    covered, tries = 0, 1000
    for _ in range(tries):
        right = rng.binomial(60, true)
        row = found(shares(**{f"g{i}": (int(k), 60) for i, k in enumerate(right)}), Accuracy(), kinds=("difference",))[
            "difference"
        ]
        covered += row.low <= 0.1 <= row.high
    assert covered / tries > 0.935


def test_an_aggregation_keeps_disparities_with_its_values() -> None:
    data = Dataset.from_rows(
        [{"input": i, "expected": i % 2, "group": "ab"[i % 3 == 0]} for i in range(60)], attributes=["group"]
    )
    run = Runner().run(lambda x: int(x % 4 == 1), data)
    evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})
    measure = Measure("same", Accuracy(), by="group", disparities="difference")
    aggregation = Aggregator().aggregate([evaluation], [measure])
    values = {dict(row["by"]).get("group"): row["value"] for row in aggregation.table().to_pylist()}
    [row] = aggregation.disparities().to_pylist()
    assert row["value"] == pytest.approx(abs(values["a"] - values["b"]))
    assert (row["over"], row["disparity"], row["n_groups"]) == (["group"], "difference", 2)
    assert aggregation.measures == [measure]
    assert verify(aggregation.store, "aggregations", aggregation.id) == []


def test_disparities_kept_before_a_column_came_are_read_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Dataset.from_rows(
        [{"input": i, "expected": 1, "group": "ab"[i % 2]} for i in range(9)], attributes=["group"]
    )
    evaluation = Evaluator().evaluate(
        Runner().run(lambda x: x % 2, data), {"same": lambda output, expected: output == expected}
    )
    older = tables.DISPARITIES.remove(tables.DISPARITIES.get_field_index("decided_by"))
    with monkeypatch.context() as before:
        before.setattr(tables, "DISPARITIES", older)
        made = Aggregator().aggregate([evaluation], [Measure("same", Accuracy(), by="group", disparities="difference")])
    assert made.disparities()["decided_by"].to_pylist() == [None]


def test_the_measures_of_one_criterion_have_one_disparity() -> None:
    data = Dataset.from_rows(
        [{"input": i, "expected": i % 2, "group": "ab"[i % 3 == 0]} for i in range(60)], attributes=["group"]
    )
    run = Runner().run(lambda x: int(x % 4 == 1), data)
    evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})
    one, other = (
        Measure("same", metric, by="group", disparities="difference", criterion="both")
        for metric in (Accuracy(), Mean())
    )
    aggregation = Aggregator().aggregate([evaluation], [one, other])
    [row] = aggregation.disparities().to_pylist()
    assert (row["metric"], row["signature"]) == ("both", f"{Accuracy().signature} | {Mean().signature}")


def test_disparities_without_groups_are_refused() -> None:
    with pytest.raises(SpecError, match="accuracy: disparities compare groups; name attributes under by"):
        Measure("same", Accuracy(), disparities="difference")


@pytest.fixture(scope="module")
def decisions() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    group = rng.choice(["a", "b", "c"], 900, p=[0.6, 0.3, 0.1])
    truth = rng.random(900) < np.select([group == "a", group == "b"], [0.5, 0.4], 0.3)
    guess = np.where(rng.random(900) < np.select([group == "a", group == "b"], [0.8, 0.7], 0.6), truth, ~truth)
    return {"truth": truth, "guess": guess, "group": group}


def test_criteria_of_fairness_are_those_of_fairlearn(decisions: dict[str, Any]) -> None:
    truth, guess, group = decisions.values()
    criteria = ("demographic_parity", "equalized_odds", "equal_opportunity")
    result = evaluate(truth, guess, by={"group": group}, fairness=criteria)
    got = {(row.metric, row.disparity): row.value for row in result.disparities}
    for criterion in criteria:
        for kind in ("difference", "ratio"):
            expected = getattr(fairlearn, f"{criterion}_{kind}")(truth, guess, sensitive_features=group)
            assert got[criterion, kind] == pytest.approx(expected, abs=1e-12), (criterion, kind)


def test_the_rates_behind_a_criterion_are_shown_with_it(decisions: dict[str, Any]) -> None:
    truth, guess, group = decisions.values()
    result = evaluate(truth, guess, by={"group": group}, fairness="equalized_odds")
    rates = {(row.metric, row.by.get("group")): row.value for row in result.rows}
    found = [rates["false_positive_rate", name] for name in "abc"], [rates["recall", name] for name in "abc"]
    [difference, _] = result.disparities
    assert difference.value == pytest.approx(max(max(each) - min(each) for each in found))
    assert "equalized_odds: difference by group" in str(result)


def test_a_ratio_where_one_rate_is_0_in_all_groups_is_that_of_the_other() -> None:
    truth, group = [True] * 8 + [False] * 8, {"group": list("aaaabbbb") * 2}
    guess = [True] * 6 + [False] * 10
    *_, ratio = evaluate(truth, guess, by=group, fairness="equalized_odds").disparities
    assert (ratio.disparity, ratio.value, ratio.decided_by, ratio.reason) == ("ratio", 0.5, "recall", None)
    *_, none = evaluate(truth, [False] * 15 + [True], by=group, fairness="equalized_odds").disparities
    assert (none.value, none.decided_by) == (0.0, "false_positive_rate")
    *_, none = evaluate([*truth[:-1], True], [False] * 16, by=group, fairness="equalized_odds").disparities
    assert math.isnan(none.value)
    assert none.reason == "a ratio of zeros: all groups have the value 0"


def test_the_rate_that_decides_is_named(decisions: dict[str, Any]) -> None:
    truth, guess, group = decisions.values()
    result = evaluate(truth, guess, by={"group": group}, fairness="equalized_odds")
    for row, apart in zip(
        result.disparities, (lambda low, high: high - low, lambda low, high: low / high), strict=True
    ):
        rates = {
            kind: [r.value for r in result.rows if r.metric == kind and r.by]
            for kind in ("recall", "false_positive_rate")
        }
        found = {kind: apart(min(each), max(each)) for kind, each in rates.items()}
        assert row.decided_by in rates
        assert found[row.decided_by] == pytest.approx(row.value)
        ends = {r.by["group"]: r.value for r in result.rows if r.metric == row.decided_by and r.by}
        assert apart(ends[row.lowest["group"]], ends[row.highest["group"]]) == pytest.approx(row.value)  # type: ignore[index]
        assert re.search(rf"{row.disparity} by group .*\n *of {row.decided_by}\b", str(result))


def test_one_metric_alone_decides_without_being_named(decisions: dict[str, Any]) -> None:
    truth, guess, group = decisions.values()
    result = evaluate(truth, guess, by={"group": group}, fairness="equal_opportunity")
    assert [row.decided_by for row in result.disparities] == [None, None]


def test_predictive_parity_has_intervals_and_calibration_none(decisions: dict[str, Any]) -> None:
    truth, guess, group = decisions.values()
    confidence = np.random.default_rng(1).random(900)
    criteria = ("predictive_parity", "calibration_by_group")
    result = evaluate(truth, guess, by={"group": group}, confidence=confidence, fairness=criteria)
    assert {row.metric for row in result.disparities} == set(criteria)
    answer = {row.metric: row for row in result.disparities}
    parity, calibration = answer["predictive_parity"], answer["calibration_by_group"]
    assert parity.low <= parity.value <= parity.high
    assert math.isnan(calibration.low)
    assert calibration.reason == "no interval: group=a, group=b and group=c have none"


def test_an_experiment_file_asks_for_criteria(tmp_path: Path, decisions: dict[str, Any]) -> None:
    truth, guess, group = decisions.values()
    rows = [{"x": str(g), "y": str(t), "group": str(of)} for t, g, of in zip(truth, guess, group, strict=True)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "tasks.py").write_text("def same(x):\n    return x\n")
    (tmp_path / "fair.yaml").write_text(
        "name: fair\n"
        "dataset: {path: rows.jsonl, input: x, expected: y, attributes: [group]}\n"
        "tasks: {same: {function: tasks.py:same}}\n"
        "scorers: {decision: prediction}\n"
        "metrics: [accuracy]\n"
        "fairness: [{criterion: equalized_odds, by: group, label: 'True'}]\n"
    )
    results = Experiment.from_file(tmp_path / "fair.yaml").run()
    rows = results.aggregation.disparities().to_pylist()
    assert [(row["metric"], row["disparity"]) for row in rows] == [
        ("equalized_odds", "difference"),
        ("equalized_odds", "ratio"),
    ]
    expected = evaluate(truth, guess, by={"group": group}, fairness="equalized_odds")
    assert rows[0]["value"] == expected.disparities[0].value


def test_the_calibration_of_a_label_is_that_of_its_probability(decisions: dict[str, Any]) -> None:
    truth, guess, group = decisions.values()
    of_true = np.random.default_rng(1).uniform(0.001, 0.999, len(truth))
    by: dict[str, Any] = {"by": {"group": group}, "label": True, "fairness": "calibration_by_group"}
    bins = np.digitize(of_true, np.linspace(0, 1, 11)[1:-1])
    parts = [bins == place for place in range(10)]
    expected = sum(abs(of_true[part].mean() - truth[part].mean()) * part.mean() for part in parts)
    of_guess = np.where(guess, of_true, 1 - of_true)
    for given in ({"confidence": of_guess}, {"scores": {True: of_true}}):
        assert evaluate(truth, guess, **given, **by)["expected_calibration_error"].value == pytest.approx(expected)


def test_a_criterion_of_texts_says_beforehand_that_it_needs_a_label() -> None:
    by: dict[str, Any] = {"by": {"sex": ["f", "m"]}}
    with pytest.raises(SpecError, match=r"equalized_odds needs the positive class; name it, as in label='cat'"):
        evaluate(["cat", "dog"], ["cat", "cat"], **by, fairness="equalized_odds")
    assert evaluate(["cat", "dog"], ["cat", "cat"], **by, fairness="equalized_odds", label="dog").disparities
    assert evaluate(["no", "yes"], ["no", "no"], **by, fairness="equalized_odds").disparities


def test_an_unknown_criterion_is_refused_with_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"no criterion is called 'equalised_odds' \(did you mean 'equalized_odds'\?\)"):
        evaluate([True], [True], by={"g": ["a"]}, fairness="equalised_odds")  # type: ignore[arg-type]


def test_rates_of_few_that_matter_say_so_however_many_rows_there_are() -> None:
    truth = np.r_[np.ones(6, int), np.zeros(1994, int)]
    group = np.where(np.arange(2000) % 2, "a", "b")
    result = evaluate(truth, truth, by={"group": group}, fairness="equal_opportunity")
    [difference, _] = result.disparities
    assert result["recall"].low < 0.7
    assert difference.small == ({"group": "a"}, {"group": "b"})
    assert difference.high > 0.3


def test_a_printed_disparity_without_an_interval_has_none_and_its_reason_stays_in_its_place() -> None:
    generator = np.random.default_rng(2)
    truth, sure = generator.random(80) < 0.5, generator.random(80)
    sex = generator.choice(["f", "m"], 80)
    result = evaluate(truth, truth, confidence=sure, by={"sex": sex}, fairness="calibration_by_group")
    printed = str(result)
    assert "nan" not in printed
    table = printed.split("\n\n")[0].splitlines()
    assert all(line.startswith("  ") for line in table[2:])
    rows = [row._asdict() | {"task": "t", "family_low": None, "family_high": None} for row in result.disparities]
    small = ({"sex": "f", "site": "C"}, {"sex": "m", "site": "C"})
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(disparities_table([{**rows[0], "low": None, "high": None, "small": small}]))
    assert "values from few rows: sex=f, site=C; sex=m, site=C" in capture.get()


def test_a_rate_that_two_criteria_share_is_printed_once(decisions: dict[str, Any]) -> None:
    truth, guess, group = decisions.values()
    criteria: Any = ["equal_opportunity", "equalized_odds"]
    both = evaluate(truth, guess, metrics="accuracy", by={"group": group}, fairness=criteria)
    [line] = [line for line in str(both).splitlines() if line.startswith("  recall")]
    assert "900" in line
    assert str(both).split("\n\n")[0].count("group=a  ") == 3  # accuracy, recall and false alarms
