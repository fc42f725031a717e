"""Score and solution files against recorded results of fairical 2.0.3, where these lie beside us."""

from __future__ import annotations

import io
import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
from support.places import VECTORS_FOLDER, missing
from support.thinned import thinned

from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.interop.fairical import Scores, Solutions
from evaluand.tradeoff import Confidences, solve
from evaluand.tradeoff.files.metrics import parse_metric

FOLDER = VECTORS_FOLDER / "fairical"
POINTS, INDICATORS = 1e-12, 1e-9

WITHOUT_RESULT = {
    "multiclass-truth-acc-dpd": (DataError, r"^ground-truth\[\d+\]: 2 is neither 0 nor 1"),
    "sole-tpr": (SpecError, "tpr alone cannot be the utility"),
    "missing-attribute": (SpecError, "there is no attribute 'zz' to group by; there are: gender"),
    "attribute-name-with-plus-eod": (SpecError, r"there is no metric 'eod\+a\+b'; write eod\+ATTRIBUTE"),
}
"""What fairical refuses, or (a third label) takes silently for a wrong result, and what is said of it here."""

DUPLICATES = "duplicate-model-names"


def cases(file: str) -> Any:
    path = FOLDER / f"{file}.json"
    return json.loads(path.read_text()) if path.exists() else []


def by_name(file: str) -> Any:
    return [pytest.param(case, id=case["case"]) for case in cases(file)]


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    if not FOLDER.exists():
        pytest.skip(missing(FOLDER))


def numbers(values: Any) -> list[float]:
    return [float(value) if isinstance(value, str) else value for value in values]


def check(found: Solutions, expected: Any, *, renamed: bool = False) -> None:
    """The same points of the same models at the same thresholds, in order.

    Model names that were not given count from 1, as the seed has it, and in fairical from 0.
    """
    assert list(found) == list(expected["points"])
    for metric, values in expected["points"].items():
        assert found[metric] == pytest.approx(numbers(values), abs=POINTS), metric
    output = expected["metadata"]
    assert found.metadata["identifiers"] == output["identifiers"]
    assert numbers(found.metadata["thresholds"]) == numbers(output["thresholds"])
    if not renamed:
        assert found.metadata["identifier-names"] == output["identifier-names"]


def check_indicators(solutions: Solutions, expected: Any) -> None:
    if "error" in expected:
        with pytest.raises(SpecError, match=r"two objectives or more|there are no points"):
            solutions.indicators()
        return
    assert solutions.indicators() == pytest.approx(expected, abs=INDICATORS)


@pytest.mark.parametrize("number", range(len(cases("metrics")["cases"] if FOLDER.exists() else [])))
def test_every_metric_at_every_threshold(number: int) -> None:
    recorded = cases("metrics")
    case = recorded["cases"][number]
    given = Confidences.read(case["y"], {"m": case["scores"]}, {"g": case["groups"]}, label=1)
    assert set(case["values"]) == set(recorded["minimise"])
    for name, values in case["values"].items():
        objective = parse_metric(name)
        found = solve(given, [objective], numbers(case["thresholds"]), undefined="zero").value[:, 0]
        assert found == pytest.approx(np.array(numbers(values)), abs=POINTS, nan_ok=True), name
        assert (objective.direction == "lower") == recorded["minimise"][name]


@thinned("case", by_name("solve"), every=4)
def test_scores_become_solutions_fronts_and_indicators(case: Any) -> None:
    expected, wanted = case["expected"], case["thresholds"]

    def solved() -> Solutions:
        thresholds = None if wanted == "automatic" else wanted
        return Scores.from_dict(case["input"]).solutions_a_posteriori(case["metrics"], thresholds)

    if case["case"] in WITHOUT_RESULT:
        fault, output = WITHOUT_RESULT[case["case"]]
        with pytest.raises(fault, match=output):
            solved()
        return
    renamed = "identifiers" not in case["input"] or case["case"] == DUPLICATES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if case["case"] == DUPLICATES else "error", EvaluandWarning)
        found = solved()
    unique = found.deduplicate()
    front, dominated = unique.non_dominated_solutions()
    for made, name in ((found, "solutions"), (unique, "dedup"), (front, "nds"), (dominated, "ds")):
        check(made, expected[name], renamed=renamed)
    check_indicators(found, expected["indicators_raw"])
    check_indicators(unique, expected["indicators_dedup"])


@pytest.mark.parametrize("case", by_name("solutions_indicators"))
def test_solutions_without_scores_have_fronts_and_indicators(case: Any) -> None:
    found, expected = Solutions.from_dict(case["input"]), case["expected"]
    check_indicators(found, expected["indicators"])
    if "error" in expected["dedup"]:  # fairical cannot, without points
        assert found.deduplicate().n_solutions() == 0
    else:
        check(found.deduplicate(), expected["dedup"])
        check_indicators(found.deduplicate(), expected["indicators_dedup"])
    for made, each in zip(found.non_dominated_solutions(), expected["nds_ds"], strict=True):
        check(made, each)


@pytest.mark.parametrize("case", by_name("a_priori"))
def test_thresholds_chosen_on_other_scores(case: Any) -> None:
    prior = Solutions.from_dict(case["prior"], "before")
    output = json.dumps(prior.to_dict())
    scores = Scores.from_dict({**case["scores"], "identifiers": case["prior"]["metadata"]["identifier-names"]})
    found = scores.solutions_a_priori(case["metrics"], prior, case["dominated"])
    check(found, case["expected"])
    assert found.metadata["prior-solution-set"] == case["expected"]["metadata"]["prior-solution-set"]
    assert found.metadata["nds-from"] == "before"
    assert json.dumps(prior.to_dict()) == output  # fairical changes it


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        pytest.param(kind, case, id=f"{kind} {case['case']}")
        for kind in ("scores", "solutions")
        for case in (cases("validation") or {kind: []})[kind]
    ],
)
def test_files_are_accepted_or_refused_by_their_field(kind: str, case: Any) -> None:
    load = {"scores": Scores, "solutions": Solutions}[kind].load
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluandWarning)
        if case["expected"]["accepted"]:
            found = load(io.StringIO(case["json"]))
            for key, value in case["expected"].get("parsed", {}).items():
                if key != "identifiers":  # counted from 1 here
                    assert found.to_dict()[key] == value
            return
        with pytest.raises(DataError) as output:
            load(io.StringIO(case["json"]))
    fields = ("scores[", "scores:", "ground-truth", "attributes.g[", "points", "metadata", "the text")
    assert str(output.value).startswith(fields)


def test_a_priori_with_the_front_takes_the_models_by_their_names() -> None:
    """Fairical numbers the models of a front anew and then takes the wrong ones."""
    case = cases("wrong_results")[0]
    scores, prior = Scores.from_dict(case["scores"]), Solutions.from_dict(case["prior_nds"])
    for dominated in (None, False):
        found = scores.solutions_a_priori(["acc", "eod+g"], prior, dominated)
        assert dict(found.items()) == case["correct"] != case["fairical"]["points"]
        assert found.metadata["identifier-names"] == ["good"]


def test_the_thresholds_of_one_model_are_not_anothers() -> None:
    """Fairical tries those of the first model with all."""
    case = cases("wrong_results")[1]
    found = Scores.from_dict(case["scores"]).solutions_a_posteriori(["acc", "dpd+g"])
    output = found.metadata
    second = [t for t, model in zip(output["thresholds"], output["identifiers"], strict=True) if model == 1]
    assert second == [math.inf if t is None else t for t in case["correct_thresholds_model_1"]]
    assert max(found["acc"][5:]) == 0.75
