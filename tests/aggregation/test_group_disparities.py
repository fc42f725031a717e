"""Disparities to a reference group, of pairs, within strata, and of groups of a smallest size."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import fairlearn.metrics as fairlearn
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from support.compas import COUNTS, write_compas

from evaluand.aggregation.disparity import DisparityRow
from evaluand.aggregation.group_disparities import disparities
from evaluand.aggregation.group_rules import read_rules
from evaluand.aggregation.groups import summarise_shard
from evaluand.cli import main
from evaluand.comparison.rule import Gate
from evaluand.core.errors import SpecError
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.stats.disparity import IntervalEnds, shrink
from evaluand.metrics.stats.intervals import normal_quantile, wilson

RACES = ("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other")
AGES = ("Less than 25", "25 - 45", "Greater than 45")


def negatives() -> pd.DataFrame:
    """Those in the COMPAS file who did not offend again: race, age group, sex, and whether the decile was 5 or more."""
    rows = []
    for (race, age, sex), (right, wrong, _, _) in COUNTS.items():
        rows += [(race, age, sex, 0.0)] * right + [(race, age, sex, 1.0)] * wrong
    return pd.DataFrame(rows, columns=["race", "age", "sex", "value"])


def compared(
    frame: pd.DataFrame, over: tuple[str, ...] = ("race",), kinds: Any = ("difference",), **rules: Any
) -> list:
    """The disparities of the share of ones, by the rules."""
    read = read_rules([over], **rules)
    given = read.given if read else ()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.append_column("_index_", pa.array(np.arange(len(frame)))).append_column(
        "status", pa.array(["scored"] * len(frame))
    )
    made = summarise_shard(table, [Accuracy()], [(), over, (*over, *given)])
    return disparities(made, [0], over, kinds, rules=read)


def rate(frame: pd.DataFrame, **of: str) -> tuple[float, int, int]:
    """The rate of a group, with its counts."""
    mine = frame.loc[np.logical_and.reduce([frame[name] == value for name, value in of.items()])]
    return float(mine["value"].mean()), int(mine["value"].sum()), len(mine)


def newcombe(one: tuple[float, int, int], other: tuple[float, int, int], z: float) -> tuple[float, float]:
    """Newcombe's hybrid score interval of the first rate minus the second, written out."""
    ends = []
    for p, _, n in (one, other):
        middle, reach = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        ends.append(((middle - reach) / (1 + z * z / n), (middle + reach) / (1 + z * z / n)))
    (low1, high1), (low2, high2) = ends
    difference = one[0] - other[0]
    return (
        difference - math.hypot(one[0] - low1, high2 - other[0]),
        difference + math.hypot(high1 - one[0], other[0] - low2),
    )


def test_the_group_farthest_from_the_reference_agrees_with_fairlearn() -> None:
    frame = negatives()
    by_group = fairlearn.MetricFrame(
        metrics=fairlearn.false_positive_rate,
        y_true=np.zeros(len(frame)),
        y_pred=frame["value"],
        sensitive_features=frame["race"],
    ).by_group
    row = compared(frame, reference="Caucasian")[0]
    assert row.value == pytest.approx((by_group - by_group["Caucasian"]).abs().max())
    assert (row.lowest, row.highest) == ({"race": "Caucasian"}, {"race": "African-American"})
    assert (row.reference, row.other, row.n_groups) == ({"race": "Caucasian"}, None, 6)
    assert row.value == pytest.approx(0.213925, abs=1e-6)
    assert row.low > 0.17
    ratio = compared(frame, kinds=("ratio",), reference="Caucasian")[0]
    relative = by_group / by_group["Caucasian"]
    assert ratio.value == pytest.approx(np.minimum(relative, 1 / relative).min())


def test_every_group_is_paired_with_the_reference_at_once() -> None:
    frame = negatives()
    rows = compared(frame, reference="Caucasian")[1:]
    assert [row.other["race"] for row in rows] == [race for race in RACES if race != "Caucasian"]
    [clear] = [row for row in rows if row.other == {"race": "African-American"}]
    one, other = (rate(frame, race=race) for race in ("African-American", "Caucasian"))
    assert [row.at_once for row in rows] == [5] * 5
    z = 2.5758293  # the normal quantile of 99 %: 5 pairs at 95 %
    assert (clear.low, clear.high) == pytest.approx(newcombe(one, other, z), abs=1e-6)


def test_a_named_pair_alone_has_newcombes_interval() -> None:
    frame = negatives()
    *_, row = compared(frame, pairs=[["African-American", "Caucasian"]])
    one, other = (rate(frame, race=race) for race in ("African-American", "Caucasian"))
    assert (row.value, row.at_once) == (pytest.approx(one[0] - other[0]), 1)
    assert (row.low, row.high) == pytest.approx(newcombe(one, other, 1.959964), abs=1e-6)


def test_standardised_rates_are_means_over_the_strata_of_everyone() -> None:
    frame = negatives()
    large = frame[frame["race"].isin(["African-American", "Caucasian", "Hispanic", "Other"])]
    rows = compared(large, given="age", reference="Caucasian")
    share = large["age"].value_counts(normalize=True)
    means = {race: sum(share[age] * rate(large, race=race, age=age)[0] for age in AGES) for race in set(large["race"])}
    [whole] = [row for row in rows if row.given == {"age": None} and row.other is None]
    farthest = max(means, key=lambda race: abs(means[race] - means["Caucasian"]))
    assert whole.value == pytest.approx(abs(means[farthest] - means["Caucasian"]))
    assert {"race": farthest} in (whole.lowest, whole.highest)
    within = {row.given["age"]: row for row in rows if row.given and row.given["age"]}
    assert {*within} == {*AGES}
    assert {row.at_once for row in within.values()} == {3}
    young = {race: rate(large, race=race, age="Less than 25")[0] for race in means}
    assert within["Less than 25"].value == pytest.approx(max(abs(p - young["Caucasian"]) for p in young.values()))


def test_a_group_without_a_stratum_has_no_standardised_value() -> None:
    frame = pd.DataFrame(
        [("a", "x", 1.0), ("a", "x", 0.0), ("a", "y", 0.0), ("b", "x", 1.0), ("b", "y", 1.0), ("c", "x", 1.0)],
        columns=["race", "age", "value"],
    )
    *_, whole = compared(frame, given="age")
    assert whole.undefined == ({"race": "c"},)
    assert whole.value == pytest.approx(1 - (4 / 6 * 0.5 + 2 / 6 * 0))


def test_groups_below_the_smallest_size_are_listed_and_not_judged() -> None:
    row = compared(negatives(), smallest=30)[0]
    assert row.unjudged == ({"race": "Asian"}, {"race": "Native American"})
    assert (row.n_groups, row.lowest, row.value) == (4, {"race": "Other"}, pytest.approx(0.300, abs=1e-3))
    judged = {group["by"]["race"]: group["judged"] for group in row.groups}
    assert judged == {race: race not in ("Asian", "Native American") for race in RACES}
    raw = {group["by"]["race"]: (group["value"], group["shrunk_value"]) for group in row.groups}
    assert raw["Native American"][0] == 3 / 8
    assert 0.235 < raw["Native American"][1] < 3 / 8  # towards the others
    assert abs(raw["Caucasian"][1] - raw["Caucasian"][0]) < 0.001


def test_a_reference_that_is_too_small_gives_no_disparity_and_says_so() -> None:
    row = compared(negatives(), smallest=30, reference="Asian")[0]
    assert math.isnan(row.value)
    assert row.reason == "the reference group race=Asian has too few rows or none"


def test_a_reference_without_rows_is_refused_with_a_hint() -> None:
    with pytest.raises(SpecError, match=r"no row belongs to the group race=Caucasion \(did you mean 'race=Caucasian'"):
        compared(negatives(), reference="Caucasion")


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ({"reference": {"rase": "a"}}, "reference: 'rase' is not under by"),
        ({"pairs": "a"}, "pairs is 'a'; write lists of two groups"),
        ({"pairs": [["a"]]}, r"pairs\[0\] is \['a'\]; write lists of two groups"),
        ({"pairs": [["a", "a"]]}, r"pairs\[0\]: both are the same group"),
        ({"given": "race"}, "given: 'race' defines the groups that are compared"),
        ({"smallest": -1}, "smallest is -1; write a number of rows"),
        ({"reference": ["a", "b"]}, r"reference is \['a', 'b'\], and several groupings could be meant"),
    ],
)
def test_wrong_rules_are_refused(rules: Any, fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        read_rules([("race",)], **rules)


def test_shrunk_values_are_means_over_all_spreads_between_groups() -> None:
    """By numerical integration over the mean and the spread of normal groups, with flat priors for both."""
    value, error = np.array([0.1, 0.3, 0.35, 0.7]), np.array([0.05, 0.04, 0.1, 0.2])
    z = normal_quantile(0.95)
    found = shrink(IntervalEnds(value, value - z * error, value + z * error), 0.95, (0.0, 1.0))
    spread, centre = np.meshgrid(np.linspace(0, 40, 4_001)[1:], np.linspace(-1.5, 2, 141), indexing="ij")
    total = error**2 + spread[..., None] ** 2
    joint = np.prod(np.exp(-0.5 * (value - centre[..., None]) ** 2 / total) / np.sqrt(total), axis=-1)
    own = spread[..., None] ** 2 / total
    mean = own * value + (1 - own) * centre[..., None]
    expected = (joint[..., None] * mean).sum(axis=(0, 1)) / joint.sum()
    assert found.value == pytest.approx(expected, abs=3e-3)
    square = (joint[..., None] * (own * error**2 + (mean - expected) ** 2)).sum(axis=(0, 1)) / joint.sum()
    assert (found.high - found.low)[:3] / (2 * z) == pytest.approx(np.sqrt(square)[:3], rel=0.02)


class ShrunkGroups(NamedTuple):
    covered: np.ndarray  # by group
    width: float  # relative to that of the raw values
    error: float  # squared, relative to that of the raw values


def shrink_simulated(groups: int, spread: float, repeats: int) -> ShrunkGroups:
    """Groups of 5 to some thousand rows, whose true shares are normal about .3."""
    rng = np.random.default_rng(groups)
    found = []
    for _ in range(repeats):
        n = np.maximum(rng.lognormal(4.5, 1.2, groups).astype(int), 5)
        truth = np.clip(rng.normal(0.3, spread, groups), 0.01, 0.99)
        right = rng.binomial(n, truth)
        raw = IntervalEnds(right / n, *wilson(right, n, 0.95))
        shrunk = shrink(raw, 0.95, (0.0, 1.0))
        widths = [each.high - each.low for each in (shrunk, raw)]
        errors = [np.square(each.value - truth) for each in (shrunk, raw)]
        found.append([(shrunk.low <= truth) & (truth <= shrunk.high), *widths, *errors])
    covered, *sums = np.mean(found, axis=0)
    width, raw_width, error, raw_error = (float(each.mean()) for each in sums)
    return ShrunkGroups(covered, width / raw_width, error / raw_error)


@pytest.mark.parametrize(("groups", "spread"), [(3, 0.0), (3, 0.05), (5, 0.02), (12, 0.05), (40, 0.15)])
def test_shrunk_intervals_cover_the_truth(groups: int, spread: float) -> None:
    assert shrink_simulated(groups, spread, 200).covered.mean() > 0.92


@pytest.mark.slow
@pytest.mark.parametrize("groups", [3, 5, 12, 40])
@pytest.mark.parametrize("spread", [0.0, 0.02, 0.05, 0.15])
def test_shrunk_intervals_cover_the_truth_of_each_group(groups: int, spread: float) -> None:
    of = shrink_simulated(groups, spread, 1000)
    figures = f"{of.covered.mean():.3f} | {of.covered.min():.3f} | {of.width:.2f} | {of.error:.2f}"
    print(f"| {groups} | {spread} | {figures} |")  # noqa: T201 - for the documentation
    assert of.covered.mean() >= 0.92
    assert of.covered.min() >= 0.9
    assert of.width < 1
    assert of.error < 1


def test_shrunk_values_are_closer_to_the_truth_than_raw_ones() -> None:
    rng = np.random.default_rng(3)
    truth, n = rng.beta(8, 16, 400), rng.integers(5, 60, 400)
    right = rng.binomial(n, truth)
    shrunk = shrink(IntervalEnds(right / n, *wilson(right, n, 0.95)), 0.95, (0.0, 1.0))
    raw_error, error = (np.square(each - truth).mean() for each in (right / n, shrunk.value))
    assert error < 0.75 * raw_error
    assert 0.92 < ((shrunk.low <= truth) & (truth <= shrunk.high)).mean() < 0.99


GATES = {
    "false_positive_rate difference by race from Caucasian <= 0.1": False,
    "false_positive_rate difference by race from Caucasian to Hispanic <= 0.1 at 95%": True,
    "false_positive_rate difference by race from Caucasian to African-American <= 0.2": False,
    "false_positive_rate difference by race from Caucasian to African-American given age_cat <= 0.2": True,
    "false_positive_rate ratio by race, sex from Caucasian, Male to Hispanic, Male >= 0.8": True,
}


@pytest.mark.slow
def test_a_file_states_reference_pairs_strata_and_gates(tmp_path: Path) -> None:
    write_compas(tmp_path / "compas.csv")
    rules = "disparities: difference, reference: Caucasian, pairs: [[Other, Hispanic]], given: age_cat, smallest: 30"
    (tmp_path / "e.yaml").write_text(
        "name: e\n"
        "dataset: {path: compas.csv, id: id, expected: two_year_recid, attributes: [race, sex, age_cat]}\n"
        "tasks:\n  c: {kind: recorded, path: compas.csv, by: id,"
        " score: {column: decile_score, range: [1, 10], threshold: 5}}\n"
        "scorers: {risk: {kind: prediction, type: integer}}\n"
        f"metrics:\n  - {{kind: false_positive_rate, by: race, {rules}}}\n"
        f"fairness:\n  - {{criterion: equalized_odds, by: race, reference: Caucasian}}\n"
        f"gates: {json.dumps([*GATES])}\n"
    )
    store = ["--store", str(tmp_path / "store")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(main, ["run", str(tmp_path / "e.yaml"), "--json", *store], terminal_width=200)
        shown = CliRunner().invoke(main, ["show", "e", *store], env={"COLUMNS": "200"})
        page = CliRunner().invoke(main, ["report", "e", "--output", str(tmp_path / "e.html"), *store])
    assert result.exit_code == 3, result.output
    printed = json.loads(result.stdout)
    assert {gate["gate"]: gate["passed"] for gate in printed["gates"]} == GATES
    first = printed["disparities"][0]
    assert (first["reference"], first["at_once"]) == ({"race": "Caucasian"}, 1)
    assert first["unjudged"] == [{"race": "Asian"}, {"race": "Native American"}]
    assert {row["given"]["age_cat"] for row in printed["disparities"] if row["given"]} == {None, *AGES}
    for text in (
        "false_positive_rate: difference by race from Caucasian to Hispanic",
        "given age_cat (standardised)",
        "too few rows, so listed and not judged: race=Asian; race=Native American",
        "not judged",
    ):
        assert text in shown.stdout, shown.stdout
    assert page.exit_code == 0, page.output
    html = (tmp_path / "e.html").read_text()
    assert "groups with raw and shrunk values" in html
    assert "difference from Caucasian given age_cat=25 - 45" in html


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("fpr difference by race, sex from Caucasian <= 0.1", "expected the value of the reference group"),
        ("fpr difference by race from Caucasian to <= 0.1", "expected the value of a group"),
        ("fpr min by race from Caucasian >= 0.1", "found 'from', expected >="),
    ],
)
def test_a_gate_on_a_reference_says_what_it_expects(text: str, fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        Gate.parse(text)


@pytest.mark.slow
def test_intervals_to_a_reference_cover_as_often_as_they_say() -> None:
    """The group farthest from the reference, and all pairs at once: 4 groups, small and large, equal and different."""
    rng = np.random.default_rng(11)
    for sizes, rates in (
        ((300, 300, 300, 30), (0.3, 0.3, 0.3, 0.3)),
        ((1000, 400, 100, 40), (0.45, 0.25, 0.35, 0.4)),
        ((150, 150, 150, 150), (0.2, 0.3, 0.5, 0.4)),
    ):
        farthest = at_once = standardised = 0
        away = np.abs(np.array(rates) - rates[0])
        for _ in range(200):
            frame = pd.concat(
                pd.DataFrame(
                    {"race": name, "age": rng.choice(["x", "y"], n), "value": (rng.random(n) < rate).astype(float)}
                )
                for name, n, rate in zip("abcd", sizes, rates, strict=True)
            )
            rows: list[DisparityRow] = compared(frame, reference="a", given="age")
            first, *pairs = [row for row in rows if row.given is None]
            [whole] = [row for row in rows if row.given == {"age": None} and row.other is None]
            farthest += first.low <= away.max() <= first.high
            standardised += whole.low <= away.max() <= whole.high
            at_once += all(row.low <= each <= row.high for row, each in zip(pairs, away[1:], strict=True))
        assert farthest / 200 >= 0.93
        assert at_once / 200 >= 0.93
        assert standardised / 200 >= 0.93
