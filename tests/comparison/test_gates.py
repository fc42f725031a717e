"""Rules that results must fulfil: what they say, when they hold, and what the command line makes of them."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from click.testing import CliRunner, Result
from hypothesis import given, strategies as st
from rich.console import Console

from evaluand import (
    Accuracy,
    Aggregator,
    Comparison,
    Dataset,
    DirectoryStore,
    Evaluation,
    Evaluator,
    Mean,
    Measure,
    MemoryStore,
    Runner,
    SpecError,
    compare,
    evaluate,
    make_metric,
)
from evaluand.aggregation.groups import summarise
from evaluand.cli import main
from evaluand.cli.gates import junit_xml
from evaluand.comparison import Gate, GateResult, check_fit, check_gates, find_evaluations
from evaluand.comparison.verdict import families_text
from evaluand.core.errors import EvaluandWarning
from evaluand.evaluation.scorer import Score
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.class_rates import FBeta
from evaluand.metrics.column_statistics import Quantile
from evaluand.metrics.stats.intervals import paired_score
from evaluand.metrics.stats.least_mean import least_mean
from evaluand.report.terminal.comparison import comparison_table
from evaluand.store.store import Store
from evaluand.testing import assert_gate

N = 40


def grade(output: Any) -> Any:
    if output == "fail":
        raise ValueError("nothing to grade")
    return Score.abstained("no number") if output == "abstain" else float(output)


def evaluated(store: Store, name: str, answers: Mapping[int, Any], *, scorer: str = "score", n: int = N) -> Evaluation:
    """Forty examples of two topics, all right but for the answers given."""
    rows = [{"input": i, "topic": ["algebra", "geometry"][i % 2]} for i in range(n)]
    run = Runner(store).run(
        lambda number: answers.get(number, 1), Dataset.from_rows(rows, attributes="topic"), name=name
    )
    return Evaluator().evaluate(run, {scorer: grade}, name=name)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def base(store: MemoryStore) -> Evaluation:
    """30 of 40 right; of geometry 10 of 20."""
    return evaluated(store, "base", dict.fromkeys(range(1, 21, 2), 0))


def one(evaluation: Evaluation, gate: str, base: Evaluation | None = None, **options: Any) -> GateResult:
    others = {"base": base} if base else {}
    checked = check_gates([gate], {"mine": evaluation} | others, "base" if base else None, **options)
    [result] = [each for each in checked if each.subject == "mine"]
    return result


# What gates say


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("accuracy >= 0.9", Gate("", "accuracy", ">=", 0.9)),
        ("accuracy>=.9", Gate("", "accuracy", ">=", 0.9)),
        ("mean < -1e3 at 99%", Gate("", "mean", "<", -1000.0, level=0.99)),
        ("accuracy better than base", Gate("", "accuracy", "better than", baseline="base", level=0.95)),
        (
            "accuracy(my scorer)".replace("my scorer", '"my scorer"')
            + " not worse than 'exp/6b [old]' by 0.02 at 90 %",
            Gate("", "accuracy", "not worse than", 0.02, "exp/6b [old]", 0.9, "my scorer"),
        ),
        (
            "accuracy[topic=algebra, level='very hard'] > 0",
            Gate("", "accuracy", ">", 0.0, where=(("topic", "algebra"), ("level", "very hard"))),
        ),
        ("accuracy not worse than base", Gate("", "accuracy", "not worse than", 0.0, "base", 0.95)),
        ("accuracy not worse than exp/6b-v2.1 by 0", Gate("", "accuracy", "not worse than", 0.0, "exp/6b-v2.1", 0.95)),
    ],
)
def test_a_gate_is_read_as_it_is_meant(text: str, gate: Gate) -> None:
    found = Gate.parse(text)
    assert vars(found) == vars(gate) | {"text": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at 1: found the end, expected a metric"),
        ("accuracy", "at 9: found the end, expected >=, <=, >, <, `better than`, `not worse than` or `equal to`"),
        ("accuracy >= [", "at 13: found '[', expected a number or a baseline"),
        ("accuracy >= nan", "at 13: found 'nan', expected a number"),
        ("accuracy >= '1'", "at 13: found '1', expected a number"),
        ("accuracy >= 0.9 for sure", "at 17: found 'for', expected `at …%` or the end"),
        ("accuracy >= 0.9 at 95", "at 22: found the end, expected `%`"),
        ("accuracy >= 0.9 at 5%", "at 20: the level must lie between 50% and 100%"),
        ("accuracy not worse than base but", "at 30: found 'but', expected the end"),
        ("accuracy not worse than base by -1", "at 33: the margin must not be negative"),
        (
            "accuracy equal to base within 0",
            "at 31: the margin must be above 0",
        ),
        ("accuracy equal to base", "at 23: found the end, expected `within`"),
        ("accuracy(x >= 1", "at 12: found '>=', expected `)`"),
        ("accuracy[topic] >= 1", "at 15: found ']', expected `=`"),
        ("f_beta(right, PER) >= 1", "at 18: found ')', expected `=`"),
        (
            "winrate('my a', b, matches=one) >= 1",
            "no metric of two systems is called 'winrate'; did you mean `win_rate(\"my a\", b)`?",
        ),
        ("accuracy better than 'base", "at 22: the quotation has no end"),
        ("accuracy better than base at 95% or so", "at 34: found 'or', expected the end"),
    ],
)
def test_invalid_gate_is_reported_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        Gate.parse(text)
    assert message in str(error.value)


@given(st.text(alphabet="accuracy ()[]=<>%'\"0.9atbeternhw\x00\n", max_size=40))
def test_any_text_is_a_gate_or_refused(text: str) -> None:
    with suppress(SpecError):
        assert Gate.parse(text).text == text


# When gates hold


def test_a_value_is_compared_with_a_number(base: Evaluation) -> None:
    assert one(base, "accuracy >= 0.75").passed
    assert not one(base, "accuracy > 0.75").passed
    assert one(base, "accuracy <= 0.75").passed
    assert one(base, "accuracy >= 0.9").message == "0.75; 40 rows: 40 scored"


def test_being_sure_takes_the_one_sided_bound(base: Evaluation) -> None:
    exact = scipy.stats.binomtest(30, 40).proportion_ci(0.9, "exact")
    low, high = float(exact.low), float(exact.high)
    assert one(base, f"accuracy > {low - 1e-6} at 95%").passed
    assert not one(base, f"accuracy > {low + 1e-6} at 95%").passed
    assert one(base, f"accuracy < {high + 1e-6} at 95%").passed
    assert not one(base, f"accuracy < {high - 1e-6} at 95%").passed


def test_the_bound_of_rows_that_are_not_independent_is_called_about(store: MemoryStore, base: Evaluation) -> None:
    assert one(base, "accuracy > 0.5 at 95%").message.startswith("lower 95% bound 0.")
    for measure in (Measure("score", Mean(range=(0, 1))), Measure("score", Accuracy(bootstrap=200))):
        found = one(base, f"{measure.metric.kind} > 0.5 at 95%", measures=[measure])
        assert found.message.startswith("lower 95% bound about 0.")
    assert one(base, "mean > 0.5").message == "0.75; 40 rows: 40 scored"


@pytest.mark.parametrize(
    ("gate", "instead"),
    [
        ("mean > 0.5 at 95%", "leave out `at …`"),
        ("mean better than base", "compare the values themselves: `mean >= base`"),
        ("mean not worse than base by 1", "compare the values themselves: `mean >= base`"),
    ],
)
def test_a_bound_of_values_that_could_have_a_range_asks_for_it(
    store: MemoryStore, base: Evaluation, gate: str, instead: str
) -> None:
    other = evaluated(store, "other", {})
    known, unknown = ([Measure("score", Mean(range=range))] for range in ((0, 1), (-math.inf, math.inf)))
    message = (
        rf"no bound holds at a level .* \{{kind: mean, scorer: score, range: \[0, 10\]\}}, or {re.escape(instead)}$"
    )
    with pytest.raises(SpecError, match=message):
        one(other, gate, base, measures=unknown)
    with pytest.raises(SpecError, match=message):
        check_fit([Gate.parse(gate)], ["score"], unknown, ["topic"], ["base"], store)
    assert one(other, gate, base, measures=known).passed


def test_a_bound_of_values_with_half_a_range_says_that_its_level_is_not_guaranteed(
    store: MemoryStore, base: Evaluation
) -> None:
    other = evaluated(store, "other", dict.fromkeys(range(1, 8, 2), 0))
    for span, unsure in (((0, math.inf), True), ((0, 1), False)):
        message = one(other, "mean better than base", base, measures=[Measure("score", Mean(range=span))]).message
        assert ("without a range of values its level is not guaranteed" in message) == unsure
        assert ("bound about" in message) == unsure


def test_a_group_may_be_requested(base: Evaluation) -> None:
    assert one(base, "accuracy[topic=algebra] >= 1").passed
    assert not one(base, "accuracy[topic=geometry] > 0.5").passed
    for gate in ("accuracy[topic=poetry] > 0.5", "accuracy[topic=poetry] better than base"):
        found = one(base, gate, base)
        assert (found.passed, found.message) == (False, "no rows")
    with pytest.raises(SpecError, match=r"'topc' is not an attribute \(did you mean 'topic'\?\)"):
        one(base, "accuracy[topc=algebra] > 0.5")


def test_better_needs_the_bound_above_nothing(store: MemoryStore, base: Evaluation) -> None:
    better = evaluated(store, "better", {})
    slightly = evaluated(store, "slightly", dict.fromkeys(range(3, 21, 2), 0))
    assert one(better, "accuracy better than base", base).passed
    found = one(slightly, "accuracy better than base", base)
    low, _ = paired_score(1, 0, 40, 0.9, correction=0.5)
    assert not found.passed
    assert found.facts["values"][0]["bound"] == pytest.approx(low)


def test_not_worse_needs_the_bound_above_the_margin(store: MemoryStore, base: Evaluation) -> None:
    same = evaluated(store, "same", dict.fromkeys(range(1, 21, 2), "0"))
    low, _ = paired_score(0, 0, 40, 0.9, correction=0.5)
    assert one(same, f"accuracy not worse than base by {-low + 1e-6}", base).passed
    assert not one(same, f"accuracy not worse than baseline by {-low - 1e-6}", base).passed


def test_a_group_is_compared_with_the_same_group(store: MemoryStore, base: Evaluation) -> None:
    mine = evaluated(store, "mine", dict.fromkeys(range(0, 40, 2), 0))
    assert one(mine, "accuracy[topic=geometry] better than base", base).passed
    assert not one(mine, "accuracy[topic=algebra] not worse than base by 0.5", base).passed


@pytest.mark.parametrize(("q", "n", "needed"), [(0.99, 50, 299), (0.99, 298, 299), (0.95, 20, 59), (0.5, 4, 5)])
def test_a_bound_that_the_rows_cannot_give_passes_no_gate_and_says_how_many_rows_it_needs(
    q: float, n: int, needed: int
) -> None:
    metric = make_metric("quantile", q=q, column="prediction", direction="lower")
    few, enough = (
        evaluate(np.zeros(rows), np.arange(rows) / rows, metrics=metric, kind="numeric") for rows in (n, needed)
    )
    with pytest.raises(AssertionError, match=f"undefined: .*no upper end: a bound at 95% needs {needed} rows"):
        assert_gate(few, "quantile <= 10 at 95%")
    assert_gate(enough, "quantile <= 10 at 95%")
    assert math.isnan(few.rows[0].high)


def test_where_lower_is_better_the_upper_bound_counts(store: MemoryStore) -> None:
    slow = evaluated(store, "slow", {i: 5 + i % 3 for i in range(N)})
    quick = evaluated(store, "quick", {i: 2 + i % 2 for i in range(N)})
    measures = [Measure("score", Mean(direction="lower", range=(0, 10)))]
    assert one(quick, "mean better than base", slow, measures=measures).passed
    assert not one(slow, "mean not worse than base by 1", quick, measures=measures).passed


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
@pytest.mark.parametrize("missing", ["leave_out", "wrong"])
def test_a_side_without_a_single_score_passes_no_comparison(store: MemoryStore, base: Evaluation, missing: str) -> None:
    crashed = evaluated(store, "crashed", dict.fromkeys(range(N), "fail"))
    for one_side, other in ((base, crashed), (crashed, base), (crashed, crashed)):
        held = one(one_side, "accuracy not worse than base by 0.9", other, missing=missing)
        assert not held.passed
        assert held.message.startswith("undefined: one side has no scores")


def test_crashes_count_against_whoever_crashed(store: MemoryStore, base: Evaluation) -> None:
    crashing = evaluated(store, "crashing", dict.fromkeys(range(1, 21, 2), "fail"))
    left_out = one(crashing, "accuracy >= 1", missing="leave_out")
    assert (left_out.passed, left_out.message) == (True, "1; 40 rows: 30 scored, 10 failed, worst 0.75 … best 1")
    held = one(crashing, "accuracy better than base", base)
    assert not held.passed
    assert "10 without a score" in held.message
    assert not one(crashing, "accuracy >= 1", missing="wrong").passed


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
@pytest.mark.parametrize(
    ("gate", "failed", "measure", "decided"),
    [
        ("accuracy >= 0.9", 2, {}, True),
        ("accuracy >= 0.9", 3, {}, False),
        ("accuracy >= 0.5 at 95%", 3, {}, False),
        ("accuracy difference by topic <= 0.1", 3, {}, False),
        ("accuracy >= 0.9", 3, {"states_missing": True}, True),
        ("accuracy >= 0.9", 3, {"metric": Accuracy(missing="wrong")}, True),
    ],
)
def test_a_rule_that_holds_for_the_scored_rows_is_undecided_where_many_have_no_score(
    store: MemoryStore, gate: str, failed: int, measure: dict[str, Any], decided: bool
) -> None:
    crashing = evaluated(store, "crashing", dict.fromkeys(range(failed), "fail"))
    found = one(crashing, gate, measures=[Measure(**{"scorer": "score", "metric": Accuracy()} | measure)])
    assert (found.passed, found.is_decided) == (decided, decided)
    assert found.message.startswith("undecided: too many rows have no score; score them, or declare") != decided


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
def test_values_that_miss_rows_on_either_side_are_not_compared_unless_somebody_says_how(store: MemoryStore) -> None:
    whole = evaluated(store, "whole", dict.fromkeys(range(N), 2.0))
    part = evaluated(store, "part", {i: "fail" if i < 3 else 2.0 for i in range(N)})
    measures = [Measure("score", Mean(direction="higher"))]
    for own, base in ((whole, part), (part, whole)):
        held = one(own, "mean >= base", base, measures=measures)
        assert (held.passed, held.is_decided, held.message[:10]) == (False, False, "undecided:")
        assert one(own, "mean >= base", base, measures=measures, missing="leave_out").passed
    assert not one(part, "mean > base", whole, measures=measures).passed


def test_what_cannot_be_counted_as_wrong_does_not_pass(store: MemoryStore) -> None:
    a = evaluated(store, "a", {i: 2.0 + i % 3 for i in range(N)})
    b = evaluated(store, "b", {i: 9.0 + i % 2 for i in range(N)} | {0: "fail"})
    no_worst = Mean(direction="lower", range=(0, math.inf))
    held = one(b, "mean better than base", a, measures=[Measure("score", no_worst)])
    assert held.message.startswith("undefined: rows without a score have no worst value")
    assert one(b, "mean better than base", a, measures=[Measure("score", Mean(range=(0, 10)))]).passed


def test_a_gate_says_why_it_passes_or_fails_with_an_interval_that_seems_to_say_otherwise(store: MemoryStore) -> None:
    a = evaluated(store, "a", {i: 2.0 + i % 3 for i in range(N)})
    b = evaluated(store, "b", {i: 1.9 + i % 3 + 0.5 * (-1) ** (i // 3) for i in range(N)})
    lower = Mean(direction="lower", range=(0, math.inf))
    free = one(b, "mean not worse than a by 0.06", a, measures=[Measure("score", lower)])
    [pair] = compare(a, b, metrics=lower).pairs
    assert free.passed
    assert pair["high"] > 0.06 > free.facts["values"][0]["bound"]
    assert free.message.endswith(
        f"95% interval [{pair['low']:+.4g}, {pair['high']:+.4g}] of a comparison is two-sided and so wider than the"
        " bound"
    )
    assert free.facts["values"][0]["high"] == pair["high"]
    held = one(b, "mean not worse than a by 0.5", a, measures=[Measure("score", Mean(range=(0, 10)))])
    bound, low = (held.facts["values"][0][name] for name in ("bound", "low"))
    assert bound < -0.5 < low
    assert held.message.endswith("the bound allows for an unseen one that differs by 10")


def test_a_mean_at_a_level_allows_for_values_that_no_row_has_shown(store: MemoryStore) -> None:
    """By the bound of Gaffke, where the interval of forty values between 0 and 1 would end near them."""
    values = {i: 0.9 + i % 10 / 100 for i in range(N)}
    own = evaluated(store, "own", values)
    measures = [Measure("score", Mean(range=(0, 10)))]
    low = least_mean(np.array([*values.values()]), np.ones(N), 0.0, 0.9)
    high = -least_mean(-np.array([*values.values()]), np.ones(N), -10.0, 0.95)
    found = one(own, "mean <= 1.5 at 95%", measures=measures)
    assert not found.passed
    assert found.facts["values"][0]["bound"] == pytest.approx(high)
    [plain] = one(own, "mean >= 0.8", measures=measures).facts["values"]
    assert one(own, "mean >= 0.8 at 90%", measures=measures).facts["values"][0]["bound"] <= low
    assert plain["high"] < 1.5 < high


@pytest.mark.parametrize(("metric", "confidence"), [(Mean(range=(0, math.inf)), 0.92), (Quantile(q=0.5), 0.9)])
def test_a_bound_is_an_end_of_an_interval_that_errs_more_on_one_side_unless_it_is_exact(
    metric: Metric, confidence: float, store: MemoryStore
) -> None:
    values = {i: float(i * i % 17) for i in range(N)}
    own = evaluated(store, "own", values)
    table = pa.table({"_index_": [*values], "status": ["scored"] * N, "value": [*values.values()]})
    [row] = summarise([table], [replace(metric, confidence=confidence)])  # type: ignore[call-arg]
    for relation, end in ((">=", row.low), ("<=", row.high)):
        found = one(own, f"{metric.kind} {relation} 8 at 95%", measures=[Measure("score", metric)])
        assert found.facts["values"][0]["bound"] == pytest.approx(end, rel=1e-12)


def test_zeros_and_ones_of_a_wider_range_are_no_proportion(store: MemoryStore) -> None:
    a, b = ({i: float(i % 2 == side) for i in range(N)} for side in (0, 1))
    b |= dict.fromkeys(range(10), 1.0)
    sides = [evaluated(store, name, each) for name, each in (("a", a), ("b", b))]
    narrow, wide = (
        one(sides[1], "mean better than a", sides[0], measures=[Measure("score", Mean(range=each))])
        for each in ((0, 1), (-10, 1))
    )
    assert wide.facts["values"][0]["bound"] < narrow.facts["values"][0]["bound"] - 0.2
    changed = evaluated(store, "c", b | {0: 0.999})
    almost = one(changed, "mean better than a", sides[0], measures=[Measure("score", Mean(range=(-10, 1)))])
    assert almost.facts["values"][0]["bound"] == pytest.approx(wide.facts["values"][0]["bound"], abs=0.01)


def test_agreement_on_numbers_is_no_certainty_that_nothing_is_worse(store: MemoryStore) -> None:
    a = evaluated(store, "a", {i: 2.0 + i % 3 for i in range(N)})
    b = evaluated(store, "b", {i: str(2.0 + i % 3) for i in range(N)})
    half = -paired_score(0, 0, 40, 0.9, correction=0.5)[0]
    for highest, span in ((math.inf, 2), (10, 10)):
        measures = [Measure("score", Mean(range=(0, highest)))]
        assert one(b, f"mean not worse than a by {half * span + 1e-6}", a, measures=measures).passed
        assert not one(b, f"mean not worse than a by {half * span - 1e-6}", a, measures=measures).passed
    same = evaluated(store, "same", dict.fromkeys(range(N), 5.0))
    other = evaluated(store, "other", dict.fromkeys(range(N), "5.0"))
    held = one(other, "mean not worse than same by 0.01", same, measures=[Measure("score", Mean(range=(0, math.inf)))])
    assert not held.passed
    assert held.message.startswith("undefined: all rows differ alike, so nothing tells the spread")


def test_what_is_undefined_fails_with_the_reason(store: MemoryStore) -> None:
    nothing = evaluated(store, "nothing", dict.fromkeys(range(N), "abstain"))
    found = one(nothing, "accuracy >= 0")
    assert not found.passed
    assert found.message.startswith("undefined: no scored rows; 40 rows: 0 scored, 40 abstained")


def test_a_metric_with_parameters_is_taken_as_declared(base: Evaluation) -> None:
    missing = [Measure("score", Accuracy(weighted=True))]
    with pytest.raises(SpecError, match="needs weights"):
        one(base, "accuracy >= 0.5", measures=missing)


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("acuracy >= 1", r"no metric is called 'acuracy' \(did you mean 'accuracy'\?\)"),
        ("score >= 0.4", r"'score' is a scorer, not a metric; did you mean `accuracy\(score\)`\?"),
        ("accuracy(scor) >= 1", r"no scorer is called 'scor' \(did you mean 'score'\?\)"),
        ("accuracy better than bse", r"no baseline is called 'bse' \(did you mean 'base'\?\)"),
        ("accuracy better than ba", r"no baseline is called 'ba' \(did you mean 'base'\?\)"),
        ("count better than base", "count of .score. has no direction"),
        ("quantile >= 1 at 95%", "quantile: give q"),
        ("count >= 3 at 95%", "count has no interval; leave out `at …`"),
    ],
)
def test_names_that_mean_nothing_are_reported(store: MemoryStore, base: Evaluation, gate: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        one(evaluated(store, "mine", {}), gate, base)


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("accuracy >= 90", r"accuracy lies between 0 and 1, never at 90; write 90 % or 0\.9$"),
        ("accuracy <= -0.1", r"accuracy lies between 0 and 1, never at -0\.1$"),
        ("accuracy > 900", r"never at 900$"),
        ("accuracy >= 1.2", r"never at 1\.2$"),
        ("accuracy >= 150 %", r"accuracy lies between 0 % and 100 %, never at 150 %$"),
        ("mean >= 90%", r"mean is no share from 0 to 1; write the threshold without %$"),
        (
            "accuracy not worse than base by 2 %",
            r"at 35: a difference is in the units of accuracy, without %; of shares, write 0\.02 for 2 perc",
        ),
        (
            "accuracy not worse than base by 2",
            r"values of accuracy differ by at most 1, never by 2; did you mean 0\.02\?$",
        ),
        ("mean >= 11", r"mean lies between -10 and 10, never at 11$"),
        ("mean not worse than base by 21", r"values of mean differ by at most 20, never by 21$"),
    ],
)
def test_a_number_that_no_value_can_reach_is_refused(base: Evaluation, gate: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        one(base, gate, base, measures=[Measure("score", Mean(range=(-10, 10)))])


def test_the_last_number_that_a_value_can_reach_is_not_refused(base: Evaluation) -> None:
    measures = [Measure("score", Mean(range=(-10, 10)))]
    for sound in ("accuracy >= 1", "accuracy >= 100 %", "accuracy > 0", "mean > -10", "mean not worse than base by 20"):
        one(base, sound, base, measures=measures)
    one(base, "mean >= 1000", base)  # whose range is not known


@pytest.mark.parametrize("name", ["bas", "baselin", "Baseline"])
def test_a_baseline_whose_name_is_nearly_right_is_hinted_at(store: MemoryStore, name: str) -> None:
    evaluated(store, "baseline", {1: 0})
    evaluated(store, "other", {2: 0})
    with pytest.raises(SpecError, match=rf"no baseline is called '{name}' \(did you mean 'baseline'\?\)"):
        one(evaluated(store, "mine", {}), f"accuracy not worse than {name} by 0.02")


def test_an_evaluation_is_not_compared_with_itself(base: Evaluation) -> None:
    with pytest.raises(SpecError, match="compares an evaluation with itself"):
        one(base, "accuracy better than mine")


def test_runs_with_the_same_responses_are_as_good_as_each_other(store: MemoryStore, base: Evaluation) -> None:
    again = evaluated(store, "again", dict.fromkeys(range(1, 21, 2), 0) | {99: 0})
    assert (again.digest, again.id == base.id) == (base.digest, False)
    assert one(again, "accuracy not worse than base by 0.1", base).passed


def test_a_baseline_may_be_anything_the_store_has_by_name(store: MemoryStore, base: Evaluation) -> None:
    assert one(evaluated(store, "mine", {}), "accuracy better than base").passed


# What metrics mean: as the experiment declares them

COSTS = """
name: lat
dataset: {path: rows.jsonl, input: x}
tasks:
  fast: {function: costs.py:fast}
  slow: {function: costs.py:slow}
scorers:
  cost: {function: costs.py:cost}
metrics:
  - {kind: mean, scorer: cost, direction: lower, range: [0, 20]}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, before = tmp_path_factory.mktemp("costs"), sys.path[:]
    (path / "rows.jsonl").write_text("".join(f'{{"x": {x}}}\n' for x in range(N)))
    (path / "costs.py").write_text(
        "def fast(x):\n    return x % 7\n\ndef slow(x):\n    return x % 7 + 3 + x % 2\n\n"
        "def cost(output):\n    return float(output)\n"
    )
    (path / "e.yaml").write_text(COSTS)
    call(path, "run", str(path / "e.yaml"))
    sys.path[:] = before
    return path


@pytest.fixture
def costs(finished: Path, tmp_path: Path) -> Path:
    """Where the slow task has cost 3 or 4 more than the fast one, and less is better."""
    return shutil.copytree(finished, tmp_path, dirs_exist_ok=True)


def test_a_gate_means_the_same_where_it_runs_and_where_it_compares(costs: Path) -> None:
    ran = call(costs, "run", str(costs / "e.yaml"), "--gate", "mean better than fast", "--gate", "mean >= 0")
    assert (ran.exit_code, ran.stdout.count("FAILED")) == (3, 1)
    for named in (["lat/fast", "lat/slow"], ["lat"]):
        for metric in ([], ["--metric", "mean"]):
            compared = call(costs, "compare", *named, *metric, "--gate", "mean better than baseline")
            assert compared.exit_code == 3
            assert "fast is better: slow − fast = +3.5" in compared.stdout
            assert "direction=lower" in compared.stdout
    assert call(costs, "compare", "lat/slow", "lat/fast", "--gate", "mean better than baseline").exit_code == 0
    call(costs, "report", "lat", "-o", str(costs / "lat.html"))
    assert "fast is better: slow − fast = +3.5" in (costs / "lat.html").read_text()


def test_in_a_test_suite_a_gate_takes_metrics_as_they_were_declared(costs: Path) -> None:
    fast, slow = (find_evaluations(DirectoryStore(costs / "store"), f"lat/{task}")[0] for task in ("fast", "slow"))
    assert_gate(fast, "mean better than baseline", baseline=slow)
    with pytest.raises(AssertionError):
        assert_gate(slow, "mean better than baseline", baseline=fast)


def test_an_experiment_that_is_declared_again_means_what_it_says_now(costs: Path) -> None:
    for direction in ("lower", "higher", "lower"):
        (costs / "e.yaml").write_text(COSTS.replace("lower", direction))
        call(costs, "run", str(costs / "e.yaml"))
        better = {"lower": "fast", "higher": "slow"}[direction]
        assert f"{better} is better" in call(costs, "compare", "lat/fast", "lat/slow").stdout


def test_where_no_direction_is_known_nothing_is_better_and_a_gate_on_it_is_refused(store: MemoryStore) -> None:
    a = evaluated(store, "a", {i: 2.0 + i % 3 for i in range(N)})
    b = evaluated(store, "b", {i: 5.0 + i % 2 for i in range(N)})
    assert str(compare(a, b)).startswith("mean · score: b is higher: b − a = ")
    assert one(b, "mean >= 4").passed
    console = Console(file=io.StringIO(), width=200)
    console.print(comparison_table(compare(a, b).to_dict()))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "40 higher; 3 of them:" in shown
    assert not any(word in shown for word in ("better", "won", "lost"))
    for gate in ("mean better than a", "mean not worse than a by 1"):
        with pytest.raises(SpecError, match="mean of 'score' has no direction; declare under metrics"):
            one(b, gate, a)
    assert one(b, "mean better than a", a, measures=[Measure("score", Mean(range=(0, 10)))]).passed


def test_a_gate_does_not_choose_among_several_metrics_of_its_kind(base: Evaluation) -> None:
    measures = [Measure("score", Quantile(q=q), by) for q, by in ((0.5, ()), (0.5, ("topic",)), (0.99, ()))]
    with pytest.raises(SpecError, match=r"name one: quantile\(score, q=0\.5\), quantile\(score, q=0\.99\)$"):
        one(base, "quantile <= 7", measures=measures)
    assert one(base, "quantile <= 7", measures=measures[:2]).passed


@pytest.mark.parametrize(
    ("gate", "passes"),
    [
        ("accuracy better than base", False),
        ("accuracy not worse than base by 0.02", True),
        ("accuracy not worse than base by 0", True),
        ("accuracy[topic=algebra] not worse than base by 0", True),
    ],
)
def test_one_and_the_same_evaluation_is_unchanged(base: Evaluation, gate: str, passes: bool) -> None:
    result = one(base, gate, base)
    assert result.passed == passes
    assert result.message.startswith("unchanged: both sides are the same evaluation of the same task; ")


def test_two_systems_with_the_same_answers_are_not_taken_for_one(store: MemoryStore) -> None:
    rows = Dataset.from_rows([{"input": i, "expected": i} for i in range(10)])
    base, mine = (
        Evaluator().evaluate(Runner(store).run(task, rows, name=name), {"same": "exact_match"}, name=name)
        for name, task in (("base", lambda i: i), ("mine", lambda i: i + 0))
    )
    assert mine.digest == base.digest
    [held] = check_gates(["accuracy not worse than base by 0.0001 at 99.9%"], {"mine": mine, "base": base}, "base")
    assert (held.passed, "unchanged" in held.message) == (False, False)
    a, b = (Evaluator().evaluate(Runner(MemoryStore()).run(int, rows), {"same": "exact_match"}) for _ in "ab")
    assert "unchanged" not in one(a, "accuracy not worse than base by 0.04", b).message
    ones = [evaluate(np.ones(10, int), np.ones(10, int), metrics="accuracy", kind="binary") for _ in "ab"]
    with pytest.raises(AssertionError):
        assert_gate(ones[0], "accuracy not worse than baseline by 0.04", baseline=ones[1])


def test_an_evaluation_without_scores_is_undefined_rather_than_unchanged(store: MemoryStore) -> None:
    nothing = evaluated(store, "nothing", dict.fromkeys(range(N), "abstain"))
    result = one(nothing, "accuracy not worse than base by 0.1", nothing)
    assert not result.passed
    assert result.message.startswith("undefined: one side has no scores")


def test_a_gate_says_which_of_several_metrics_by_the_words_of_the_tables(base: Evaluation) -> None:
    measures = [Measure("score", Quantile(q=q)) for q in (0.2, 0.5)]
    for gate in ("quantile(score, q=0.2) >= 1", "quantile(q=0.20) >= 1"):
        assert not one(base, gate, measures=measures).passed
    assert one(base, 'quantile(score, "q"="0.5") >= 1', measures=measures).passed
    with pytest.raises(
        SpecError,
        match=r"has no quantile with these parameters; there are quantile\(score, q=0\.2\), quantile\(score, q=",
    ):
        one(base, "quantile(q=0.9) >= 1", measures=measures)
    with pytest.raises(SpecError, match=r"the experiment has no mean with these parameters$"):
        one(base, "mean(q=0.9) >= 1", measures=measures)


def test_a_gate_on_one_of_several_tags_and_on_all_of_them(store: MemoryStore) -> None:
    spans = [{"start": 0, "end": 1, "tag": "PER"}, {"start": 2, "end": 3, "tag": "the end"}]
    run = Runner(store).run(lambda text: spans[:1], Dataset.from_rows([{"input": "a b", "expected": spans}] * 9))
    evaluation = Evaluator().evaluate(run, {"strict": "spans"})
    measures = [Measure("strict", FBeta(label=label)) for label in (None, "PER", "the end")]
    gates = ["f_beta(strict, label=PER) >= 1", "f_beta(label='the end') <= 0", "f_beta(strict) < 0.7", "f_beta > 0.6"]
    assert all(result.passed for result in check_gates(gates, {"mine": evaluation}, measures=measures))


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("max_error better than base", "max_error has no differences with an interval"),
        ("count >= 3 at 95%", "count has no interval"),
        ("mean better than base", "mean of 'score' has no direction"),
        ("k_of_n better than base", "k_of_n: give k"),
        ("accuracy better than other", "no scorer is called 'score'; there are cost"),
        ("accuracy[topic=algebra] better than bare", "'topic' is not an attribute"),
    ],
)
def test_a_gate_that_nothing_can_decide_is_refused_before_anything_is_called(
    store: MemoryStore, base: Evaluation, gate: str, message: str
) -> None:
    evaluated(store, "other", {1: 0}, scorer="cost")
    bare = Runner(store).run(lambda number: 1, Dataset.from_rows([{"input": 1}]), name="bare")
    Evaluator().evaluate(bare, {"score": grade}, name="bare")
    with pytest.raises(SpecError, match=message):
        check_fit([Gate.parse(gate)], ["score"], [Measure("score", Quantile(q=0.5))], ["topic"], [], store)


def test_results_are_printed_even_where_a_gate_cannot_be_checked(costs: Path) -> None:
    weighted = COSTS.replace("direction", "weighted: true, direction").replace("input: x", "input: x, weight: x")
    (costs / "e.yaml").write_text(weighted.replace("lat", "heavy"))
    ran = call(costs, "run", str(costs / "e.yaml"), "--gate", "mean better than lat/fast", "--json")
    assert (ran.exit_code, len(json.loads(ran.stdout)["tasks"])) == (1, 2)
    assert "needs weights" in ran.stderr


def test_gates_are_written_for_a_build_server_even_where_every_call_failed(costs: Path) -> None:
    (costs / "costs.py").write_text(
        "def fast(x):\n    raise ValueError('no')\n\nslow = fast\n\ndef cost(output):\n    return 1.0\n"
    )
    (costs / "e.yaml").write_text(f"{COSTS}run: {{same_failures: 0}}\n")
    report = costs / "gates.xml"
    ran = call(costs, "run", str(costs / "e.yaml"), "--gate", "mean <= 1", "--junit", str(report))
    assert ran.exit_code == 1
    assert "calls of task 'fast' failed" in ran.stderr
    [case] = ElementTree.parse(report).getroot()
    assert (case.get("classname"), case[0].tag) == ("slow", "failure")


def test_a_group_that_only_one_side_has_fails_a_gate(store: MemoryStore, base: Evaluation) -> None:
    rows = [{"input": i, "topic": "poetry"} for i in range(N)]
    run = Runner(store).run(lambda number: 1, Dataset.from_rows(rows, attributes="topic"), name="poet")
    poet = Evaluator().evaluate(run, {"score": grade}, name="poet")
    for gate in ("accuracy[topic=poetry] better than base", "accuracy[topic=algebra] better than base"):
        found = one(poet, gate, base)
        assert not found.passed
        assert "0 pairs" in found.message


def test_a_measure_that_not_all_evaluations_can_take_is_none_to_compare_them_by(store: MemoryStore) -> None:
    rows = [{"input": i, "w": 1.0 + i} for i in range(N)]
    runs = [Runner(store).run(lambda x: x % 5, Dataset.from_rows(rows, weight="w"), name="weighted")]
    weighted = Evaluator().evaluate(runs[0], {"score": grade}, name="weighted")
    Aggregator(store).aggregate([weighted], [Measure("score", Mean(weighted=True))])
    assert compare(weighted, weighted).pairs[0]["signature"].split()[-2:] == ["range=(-inf,inf)", "direction=higher"]
    plain = evaluated(store, "plain", {i: 2.0 + i % 3 for i in range(N)})
    with pytest.warns(EvaluandWarning, match="mean as declared cannot be compared row by row; the plain mean"):
        assert compare(weighted, plain).pairs[0]["direction"] is None


# Disparities and names of problems

MARGIN = "equalized difference by topic"


def differing(base: Evaluation) -> list[Measure]:
    """One criterion of two metrics: of algebra all is right, of geometry half; and the declared accuracy."""
    two = [Accuracy(), Mean(range=(0, 2), direction="higher")]
    return [Measure("score", Accuracy())] + [Measure("score", m, "topic", "difference", "equalized") for m in two]


@pytest.mark.parametrize(
    ("gate", "passed", "reported"),
    [
        (f"{MARGIN} <= 0.5", True, "0.5; from topic=geometry to topic=algebra; 40 rows: 40 scored; few rows: topic="),
        ("equalized: difference by topic <= 0.49", False, "0.5; from topic=geometry"),
        (f"{MARGIN} <= 0.5 at 95%", False, "upper 95% bound about 0."),
        ("accuracy ratio by topic >= 0.5", True, "0.5; "),
        ("accuracy min by topic >= 0.5", True, "0.5; "),
    ],
)
def test_a_gate_may_be_on_how_far_groups_differ(base: Evaluation, gate: str, passed: bool, reported: str) -> None:
    found = one(base, gate, measures=differing(base))
    assert (found.passed, found.message.startswith(reported)) == (passed, True)
    assert found.facts["values"][0]["lowest"] == {"topic": "geometry"}


def test_the_bound_of_a_disparity_is_an_end_of_its_interval_at_twice_the_rarity(base: Evaluation) -> None:
    measure = Measure("score", Accuracy(confidence=0.9), "topic", "difference")
    [row] = Aggregator(base.store).aggregate([base], [measure]).disparities().to_pylist()
    found = one(base, "accuracy difference by topic <= 0.9 at 95%")
    assert found.facts["values"][0]["high"] == row["high"]


def test_the_bound_of_a_disparity_towards_none_leaves_out_that_its_end_errs_more_often(base: Evaluation) -> None:
    """Of what an interval errs, that end may make three quarters alone."""
    measure = Measure("score", Accuracy(confidence=1 - 0.05 / 0.75), "topic", ("difference", "ratio"))
    rows = Aggregator(base.store).aggregate([base], [measure]).disparities().to_pylist()
    asked = [("difference by topic >= 0.1", "low"), ("ratio by topic <= 0.9", "high")]
    for row, (gate, end) in zip(rows, asked, strict=True):
        found = one(base, f"accuracy {gate} at 95%")
        assert found.facts["values"][0][end] == row[end]


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (
            "equalized <= 0.5",
            "is a criterion, which has no value; name one of its disparities: equalized difference by",
        ),
        ("equalised difference by topic <= 0.5", r"no metric is called 'equalised' \(did you mean 'equalized'\?\)"),
        ("equalized difference by topc <= 0.5", r"'topc' is not an attribute \(did you mean 'topic'\?\)"),
        (
            "accuracy ratio by topic >= 80",
            "the ratio of accuracy lies between 0 and 1, never at 80; write 80 % or 0.8$",
        ),
        (
            "accuracy[topic=algebra] ratio by topic >= 1",
            r"a disparity compares all groups; leave out the group in \[\]",
        ),
        ("accuracy difference by topic from algebra better than base", "against a baseline all groups count"),
        ("accuracy max by topic better than base", "kind 'max' has no difference with an interval"),
        ("accuracy ratio", "found the end, expected `by`"),
    ],
)
def test_a_disparity_that_cannot_be_is_reported(base: Evaluation, gate: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        one(base, gate, base, measures=differing(base))


def test_a_gate_finds_a_metric_by_what_the_problem_calls_it(base: Evaluation) -> None:
    Aggregator(base.store).aggregate([base], [Measure("score", Quantile(q=0.1), called=["lowTenth"])])
    assert one(base, "lowTenth <= 0").passed
    assert one(base, "quantile <= 0").passed
    with pytest.raises(SpecError, match=r"no metric is called 'lowTent' \(did you mean 'lowTenth'\?\)"):
        one(base, "lowTent <= 0")
    with pytest.raises(SpecError, match=r"shows all names; known names: lowTenth"):
        one(base, "zzz <= 0")


def test_without_a_scorer_the_declared_metric_decides(store: MemoryStore) -> None:
    run = Runner(store).run(lambda number: number, Dataset.from_rows([{"input": i % 2} for i in range(10)]), name="two")
    evaluation = Evaluator().evaluate(run, {"answer": grade, "polite": lambda output: 1.0}, name="two")
    measures = [Measure("answer", Accuracy()), Measure("polite", Mean(range=(0, 1)))]
    gates = ["accuracy <= 0.5", "mean >= 1"]
    assert all(check.passed for check in check_gates(gates, {"two": evaluation}, measures=measures))
    check_fit([Gate.parse(gate) for gate in gates], ["answer", "polite"], measures, [], [], store)
    with pytest.raises(SpecError, match=r"did you mean `mean\(polite\)`\?"):
        check_gates(["polite >= 1"], {"two": evaluation}, measures=measures)
    with pytest.raises(SpecError, match=r"name the scorer: accuracy\(answer \| polite\)"):
        check_gates(gates, {"two": evaluation}, measures=[*measures, Measure("polite", Accuracy())])
    for wrong, message in (
        ("accurcy >= 0.5", r"no metric is called 'accurcy' \(did you mean 'accuracy'\?\)"),
        ("equalized_odds difference by sex <= 0.1", "is a criterion of fairness, which the experiment must declare"),
        ("f1 >= 0.5", r"name the scorer: f1\(answer \| polite\)"),
        ("corrected_mean >= 0.5", r"name the scorer: corrected_mean\(answer \| polite\)"),
    ):
        with pytest.raises(SpecError, match=message):
            check_fit([Gate.parse(wrong)], ["answer", "polite"], measures, [], [], store)
        with pytest.raises(SpecError, match=message):
            check_gates([wrong], {"two": evaluation}, measures=measures)


# In tests and on the command line


def test_asserting_a_gate_says_what_is_wrong(store: MemoryStore, base: Evaluation) -> None:
    better = evaluated(store, "exp/better", {})
    right = evaluated(store, "right", {})
    tasks = [SimpleNamespace(evaluation=each) for each in (better, base, right)]
    assert_gate(better, "accuracy better than baseline", baseline=base)
    with pytest.raises(AssertionError) as error:
        assert_gate(SimpleNamespace(tasks=tasks), "accuracy >= 0.9")
    assert str(error.value).splitlines() == [
        "accuracy >= 0.9 does not hold",
        "  FAILED  base: 0.75; 40 rows: 40 scored",
        "  passed  right: 1; 40 rows: 40 scored",
    ]
    assert [each.subject for each in assert_gate(SimpleNamespace(tasks=tasks[1:]), "accuracy >= 0.9")] == ["right"]
    with pytest.raises(SpecError, match="give an evaluation"):
        assert_gate(3, "accuracy >= 0.9")


def test_junit_says_every_gate_and_holds_no_character_that_xml_cannot() -> None:
    hostile = "a\x00<b>&\ud800\ufffe"
    results = [
        {"gate": hostile, "subject": hostile, "passed": False, "message": hostile},
        {"gate": "g", "subject": "s", "passed": True, "message": "m"},
    ]
    suite = ElementTree.fromstring(junit_xml(results))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed, passed = suite
    assert failed.find("failure").get("message") == "a\ufffd<b>&\ufffd\ufffd"  # type: ignore[union-attr]
    assert passed.find("failure") is None


# Gates on two values


@pytest.mark.parametrize(
    ("text", "baseline", "number"),
    [
        ("accuracy >= base - 0.02", "base", -0.02),
        ("accuracy >= base -0.02", "base", -0.02),
        ("accuracy >= baseline-0.02", "baseline", -0.02),
        ("accuracy >= baseline", "baseline", 0.0),
        ('mae <= "my run" + 1.5', "my run", 1.5),
    ],
)
def test_a_threshold_may_be_a_baseline_with_a_tolerance(text: str, baseline: str, number: float) -> None:
    gate = Gate.parse(text)
    assert (gate.baseline, gate.number, gate.level) == (baseline, number, None)


def test_a_point_rule_compares_the_values_themselves_and_says_so(store: MemoryStore, base: Evaluation) -> None:
    mine = evaluated(store, "mine", dict.fromkeys(range(1, 25, 2), 0))  # 28 of 40 right, of the baseline 30
    passed = one(mine, "accuracy >= base - 0.05", base)
    assert passed.passed
    assert passed.message == (
        "0.7 against 0.75, difference -0.05: a point rule, which ignores chance; `accuracy not worse than base by 0.05`"
        " allows for it; 40 rows: 40 scored"
    )
    assert not one(mine, "acc >= base - 0.04", base).passed
    assert not one(mine, "accuracy > base", base).passed
    assert one(mine, "accuracy(score)[topic=geometry] >= base - 0.2", base).passed
    assert one(base, "accuracy >= base", base).passed
    with pytest.raises(SpecError, match=r"written as `accuracy not worse than base by 0.1 at 95%`"):
        one(mine, "accuracy >= base - 0.1 at 95%", base)
    with pytest.raises(SpecError, match="values of accuracy differ by at most 1, never by 5"):
        one(mine, "accuracy >= base - 5", base)


def test_everyday_names_work_in_gates_and_unknown_ones_lead_to_them(store: MemoryStore, base: Evaluation) -> None:
    assert one(base, "acc >= 0.7").passed
    assert one(base, "acc not worse than base by 0.9", base).passed
    with pytest.raises(SpecError, match="'neg_mean_absolute_error' is scikit-learn's name for mean_absolute_error"):
        one(base, "neg_mean_absolute_error >= -3")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = DirectoryStore(tmp_path / "store")
    base = evaluated(store, "exp/base", dict.fromkeys(range(1, 21, 2), 0))
    mine = evaluated(store, "exp/mine", {0: 0})
    Aggregator(store).aggregate([base, mine], [Measure("score", Accuracy())], name="exp")
    return tmp_path


def call(folder: Path, *arguments: str) -> Result:
    env = {"EVALUAND_STORE": str(folder / "store"), "COLUMNS": "80"}
    return CliRunner(env=env).invoke(main, list(arguments))


def test_the_command_line_compares_by_name_and_says_who_is_better(folder: Path) -> None:
    done = call(folder, "compare", "exp/base", "exp/mine")
    assert done.exit_code == 0, done.output
    assert "B  mine" in done.stdout
    assert "0.750 → 0.975   +22.5" in done.stdout
    assert "mine is better: mine − base = +22.5 points" in done.stdout
    assert "10 won; 3 of them" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:20])) <= 80


def test_an_aggregation_stands_for_all_it_was_made_of(folder: Path) -> None:
    facts = json.loads(call(folder, "compare", "exp", "--json").stdout)
    assert [e["label"] for e in facts["evaluations"]] == ["base", "mine"]
    assert facts["pairs"][0]["won"] == 10
    assert facts["gates"] == []


def test_gates_that_fail_exit_with_three(folder: Path) -> None:
    passed = call(folder, "compare", "exp", "--gate", "accuracy better than base", "--gate", "accuracy >= 0.9")
    assert (passed.exit_code, passed.stdout.count("passed")) == (0, 2)
    report = folder / "gates.xml"
    failed = call(folder, "compare", "exp", "--gate", "accuracy >= 0.99", "--junit", str(report))
    assert failed.exit_code == 3
    assert "FAILED  accuracy >= 0.99  mine" in failed.stdout
    assert ElementTree.parse(report).getroot().get("failures") == "1"


def test_wrong_use_is_reported_without_a_traceback(folder: Path) -> None:
    for arguments, code, message in (
        (("exp/base",), 1, "needs two evaluations"),
        (("exp/base", "--gate", "accuracy >= 1"), 1, "needs two evaluations"),
        (("exp/base", "nobody"), 1, "nothing is called 'nobody'"),
        (("exp/base", "exp/mien"), 1, "nothing is called 'exp/mien' here (did you mean 'exp/mine'?)"),
        (("exp", "--gate", "accuracy => 1"), 1, "at 10: found '='"),
        (("exp", "--confidence", "95"), 1, "must lie between 0 and 1"),
        (("exp", "--junit", "x.xml"), 2, "--junit needs --gate"),
    ):
        done = call(folder, "compare", *arguments)
        assert (done.exit_code, done.stdout) == (code, "")
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_nothing_is_stored_where_a_gate_is_refused(folder: Path) -> None:
    refused = call(folder, "compare", "exp", "--gate", "accuracy >= 90")
    assert (refused.exit_code, "write 90 % or 0.9" in refused.stderr) == (1, True)
    assert list(DirectoryStore(folder / "store").ids("comparisons")) == []


def test_a_run_without_grades_is_reported_with_a_command_there_and_with_a_call_in_python(folder: Path) -> None:
    store = DirectoryStore(folder / "store")
    data = Dataset.from_rows([{"input": 1}])
    Runner(store).run(str, data, name="plain")
    Runner(store).run(repr, data, name="filed", origin={"experiment": "my file.yaml"})
    for name, command in (
        ("plain", "`evaluand run FILE`"),
        ("filed", "evaluate it with `evaluand run 'my file.yaml'`"),
    ):
        for arguments in ((name, "exp/mine"), ("exp", "--gate", f"accuracy better than {name}")):
            done = call(folder, "compare", *arguments)
            assert (done.exit_code, "Evaluator" in done.stderr) == (1, False)
            assert done.stderr.endswith(f"{command}\n")
        with pytest.raises(SpecError, match=r"has not been evaluated; see Evaluator\.evaluate$"):
            find_evaluations(store, name)


def test_an_evaluation_with_itself_is_reported_so_and_not_by_zeros(folder: Path) -> None:
    store = DirectoryStore(folder / "store")
    same = find_evaluations(store, "exp/base")[0].id
    store.refer("other", "evaluations", same)
    done = call(folder, "compare", "exp/base", "other", "--gate", "accuracy >= 0.7")
    assert done.exit_code == 0
    said = f"nothing to compare: exp/base and other are the same evaluation {same[:12]}"
    assert said in " ".join(done.stdout.split())
    assert "interval" not in done.stdout.split("passed")[0]
    facts = json.loads(call(folder, "compare", "exp/base", "other", "exp/mine", "--json").stdout)
    assert [said in pair["verdict"] for pair in facts["pairs"]] == [True, False, False]
    assert "B → C" in call(folder, "compare", "exp/base", "other", "exp/mine").stdout


def test_a_stored_comparison_is_listed_shown_and_verified(folder: Path) -> None:
    call(folder, "compare", "exp")
    [entry] = json.loads(call(folder, "list", "comparisons", "--json").stdout)
    assert entry["counts"] == {"pairs": 1, "ranking": 0, "flips": 4}
    assert "1 pair compared, 4 examples" in call(folder, "list", "comparisons").stdout
    shown = call(folder, "show", entry["id"])
    assert "mine is better" in shown.stdout
    assert shown.stdout.count("made from  evaluation") == 1
    assert "6 artifacts checked, 0 with faults" in call(folder, "verify", entry["id"]).stdout
    used = json.loads(call(folder, "show", "exp/base", "--json", "--below", "1").stdout)["used_by"]
    assert {other["kind"] for other in used} == {"aggregations", "comparisons"}


# Which metric a comparison with gates decides by


@pytest.mark.parametrize(
    ("gates", "primary"),
    [
        (["accuracy(two) better than a"], ["two"]),
        (["accuracy(two) >= 0.1", "accuracy(three) better than a"], ["three"]),
        (["accuracy(three) not worse than a by 0.5", "accuracy(two) better than a"], ["three", "two"]),
        (["accuracy(two) >= 0.1"], ["one"]),
    ],
)
def test_each_gated_metric_is_tested_alone_on_the_scorer_of_its_gate(
    tmp_path: Path, gates: Sequence[str], primary: Sequence[str]
) -> None:
    store, data = DirectoryStore(tmp_path / "store"), Dataset.from_rows([{"input": i} for i in range(N)])
    right = {name: lambda output, modulus=modulus: output % modulus > 0 for name, modulus in SCORERS.items()}
    for name, change in (("a", 0), ("b", 3)):
        run = Runner(store).run(lambda number, change=change: number + change, data, name=name)
        Evaluator(store).evaluate(run, right, name=name)
    options = [part for gate in gates for part in ("--gate", gate)]
    said = json.loads(call(tmp_path, "compare", "a", "b", *options, "--json").stdout)
    pairs = {pair["scorer"]: pair for pair in said["pairs"]}
    assert [name for name, pair in pairs.items() if pair["family"] == "primary"] == primary
    for pair in pairs.values():
        others = len(SCORERS) - len(primary) if pair["family"] == "secondary" else 1
        assert pair["p"] <= pair["p_holm"] <= others * pair["p"]
        assert others > 1 or pair["p_holm"] == pair["p"]
    if len(primary) == 2:
        assert families_text(said["pairs"]) == (
            "secondary: 1 test; primary by accuracy · three: 1 test; primary by accuracy · two: 1 test"
        )


SCORERS = {"one": 5, "two": 4, "three": 7}


def test_a_run_is_compared_by_the_metric_of_its_gate(costs: Path) -> None:
    file, both = costs / "e.yaml", "scorers:\n  again: {function: costs.py:cost}"
    text = COSTS.replace("scorers:", both) + "  - {kind: mean, scorer: again, direction: lower, range: [0, 20]}\n"
    file.write_text(f"{text}gates: [mean(again) not worse than fast by 9]\n")
    assert call(costs, "run", str(file)).exit_code == 0
    store = DirectoryStore(costs / "store")
    [id] = [ref.id for ref in store.refs() if ref.kind == "comparisons"]
    families = {pair["scorer"]: pair["family"] for pair in Comparison(store, id).pairs}
    assert families == {"cost": "secondary", "again": "primary"}
