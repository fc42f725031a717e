"""Score and solution files: the printed examples, faults, names, round trips, and what undefined values become."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.interop.fairical import Scores, Solutions
from evaluand.tradeoff import Tradeoff, solve
from evaluand.tradeoff.files.metrics import parse_metric, parse_metrics

SCORES = """{
  "scores": [ [ 0.5077, 0.5165, 0.5073, 0.4777, 0.6062, 0.4830, 0.7178, 0.7152, 0.4331 ] ],
  "identifiers": [ "my-model-1" ],
  "ground-truth": [ 0, 0, 0, 1, 1, 0, 0, 0, 1 ],
  "attributes": { "race": [ 1, 0, 2, 1, 0, 0, 2, 0, 0 ] }
}"""
SOLUTIONS = """{
  "points": {
    "eod+race": [ 0.104166, 1.0, 1.0 ], "eod+gender": [ 0.398741, 1.0, 1.0 ], "acc": [ 0.652702, 0.0, 0.0 ]
  },
  "metadata": {
    "threholds": [ 0.1, 0.2, 0.3 ], "identifier-names": [ "model-1" ], "identifiers": [ 0, 0, 0 ], "nds-from": null
  }
}"""  # as printed, with the comma after the points, and one brace around the metadata, mended


HUGE = 10**400


def two_models(**more: Any) -> dict[str, Any]:
    return {
        "scores": [[0.9, 0.1, 0.8, 0.2], [0.1, 0.9, 0.2, 0.8]],
        "ground-truth": [0, 1, 0, 1],
        "attributes": {"g": list("aabb")},
        **more,
    }


def points(**metadata: Any) -> dict[str, Any]:
    output = {"identifiers": [0, 0], "identifier-names": ["m"], "thresholds": [0.1, 0.2], **metadata}
    return {"points": {"acc": [0.6, 0.7], "eod+g": [0.1, 0.2]}, "metadata": output}


# The printed examples


def test_the_printed_scores_load() -> None:
    scores = Scores.load(io.StringIO(SCORES))
    assert scores.identifiers == ["my-model-1"]
    assert scores.attributes["race"] == [1, 0, 2, 1, 0, 0, 2, 0, 0]
    assert scores.to_dict() == json.loads(SCORES)


def test_the_printed_solutions_have_one_that_is_not_dominated_and_two_that_are() -> None:
    with pytest.warns(EvaluandWarning, match=r"metadata\.threholds: is read as thresholds"):
        solutions = Solutions.load(io.StringIO(SOLUTIONS))
    front, dominated = solutions.non_dominated_solutions()
    assert (front["acc"], dominated["acc"]) == ([0.652702], [0.0, 0.0])
    assert front.metadata["thresholds"] == [0.1]
    assert "threholds" not in solutions.to_dict()["metadata"]
    assert solutions.to_dict()["metadata"]["thresholds"] == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("printed", ['{"identifiers": ["my-model-1", ]}', '{"points": {"acc": [0.1]} "metadata": {}}'])
def test_blocks_that_lack_or_have_a_comma_too_many_are_no_json(printed: str) -> None:
    with pytest.raises(DataError, match=r"the text:1:\d+: not JSON"):
        Scores.load(io.StringIO(printed))


def test_a_file_names_its_system_also_with_dots(tmp_path: Path) -> None:
    path = tmp_path / "v1.2.json"
    path.write_text(SCORES)
    scores = Scores.load(path)
    assert scores.system == "v1.2"
    assert scores.solutions_a_posteriori(["acc", "eod+race"], [0.5]).system == "v1.2"


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.json: no such file"):
        Scores.load(tmp_path / "no.json")


# Names of models


def test_models_without_names_are_counted_from_1() -> None:
    scores = Scores.from_dict(two_models())
    assert scores.identifiers == ["model-1", "model-2"]
    assert scores.solutions_a_posteriori(["acc", "eod+g"], [0.5]).metadata["identifier-names"] == scores.identifiers


def test_equal_names_are_numbered_and_reported() -> None:
    with pytest.warns(EvaluandWarning, match="identifiers: the name 'a' occurs twice; the second model is now 'a-2'"):
        scores = Scores.from_dict(two_models(identifiers=["a", "a"]))
    assert scores.identifiers == ["a", "a-2"]


def test_a_numbered_name_is_none_that_is_there() -> None:
    three = two_models(identifiers=["a", "a", "a-2"])
    three["scores"].append([0.5] * 4)
    with pytest.warns(EvaluandWarning):
        assert Scores.from_dict(three).identifiers == ["a", "a-3", "a-2"]


# Thresholds


def test_every_threshold_is_all_scores_and_the_one_that_nothing_reaches() -> None:
    scores = Scores([[0.1, 0.5, 0.5, 0.9]], [0, 1, 0, 1], {"g": list("aabb")})
    found = scores.solutions_a_posteriori(["acc", "eod+g"], "every")
    assert found.metadata["thresholds"] == [math.inf, 0.9, 0.5, 0.1]
    found = scores.solutions_a_posteriori(["f1", "eod+g"])  # one that depends on the scores themselves
    assert found.metadata["thresholds"] == [0.1, 0.5, 0.9]
    found = scores.solutions_a_posteriori(["f1", "eod+g"], "every")
    assert found.metadata["thresholds"] == [math.inf, 0.9, 0.5, 0.1]
    found = scores.solutions_a_posteriori(["f1", "eod+g"], 3)
    assert found.metadata["thresholds"] == [0.0, 0.5, 1.0]
    found = scores.solutions_a_posteriori(["f1", "eod+g"], np.array([0.2, 0.3]))  # type: ignore[arg-type]
    assert found.metadata["thresholds"] == [0.2, 0.3]
    with pytest.raises(SpecError, match="thresholds='few' must be 'every', 'roc', a number of them, or a list"):
        scores.solutions_a_posteriori(["f1", "eod+g"], "few")


def test_corners_leave_out_what_lies_on_a_straight_line() -> None:
    scores = Scores([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]], [0, 0, 0, 1, 1, 1], {"g": list("aabbab")})
    corners = scores.solutions_a_posteriori(["acc", "dpd+g"]).metadata["thresholds"]
    assert corners == [math.inf, 0.6, 0.4, 0.1]
    assert len(scores.solutions_a_posteriori(["acc", "dpd+g"], "every").metadata["thresholds"]) == 7


# Undefined values


def test_undefined_values_are_0_and_marked() -> None:
    """Group b has no negative row, and of truths that are all positive the area under the ROC curve is undefined."""
    scores = Scores([[0.2, 0.8, 0.6, 0.4]], [0, 1, 1, 1], {"g": list("aabb")})
    found = scores.solutions_a_posteriori(["acc", "eod+g"], [0.5])
    assert found.metadata["undefined"] == {"eod+g": [0]}
    positive = Scores([[0.2, 0.8]], [1, 1], {"g": list("ab")})
    found = positive.solutions_a_posteriori(["acc", "roc_auc", "dpd+g"], [0.5])
    assert (found["roc_auc"], found.metadata["undefined"]) == ([0.0], {"roc_auc": [0]})
    native = solve(positive.confidences, ["accuracy", "roc_auc"], [0.5])
    assert math.isnan(native["roc_auc"][0])


def test_marks_go_with_their_points() -> None:
    of = Solutions.from_dict(points(undefined={"eod+g": [1], "acc": [0]}))
    one, other = of.take(np.array([1])), of.take(np.array([0]))
    assert one.metadata["undefined"] == {"eod+g": [0]}
    assert other.metadata["undefined"] == {"acc": [0]}
    assert of.metadata["undefined"] == {"eod+g": [1], "acc": [0]}


def test_a_point_that_is_undefined_by_what_is_asked_for_is_not_picked() -> None:
    of = Solutions.from_dict(
        {
            "points": {"acc": [0.6, 0.9, 0.8], "eod+g": [0.1, 0.0, 0.2]},
            "metadata": {"identifiers": [0, 0, 0], "thresholds": [0.1, 0.2, 0.3], "undefined": {"eod+g": [1]}},
        }
    )
    assert of.n_undefined == 1
    with pytest.warns(
        EvaluandWarning,
        match="1 of 3 points have undefined values of these objectives; they are left out of the choice",
    ):
        assert of.pick("acc", ["eod+g <= 0.3"]).threshold.tolist() == [0.3]
    with pytest.warns(EvaluandWarning):
        assert of.pick("eod+g").threshold.tolist() == [0.1]
    chosen = of.pick("acc")  # asks for nothing that is undefined, and the other value is reported as undefined
    assert (chosen.threshold.tolist(), chosen["acc"].tolist()) == ([0.2], [0.9])
    assert math.isnan(chosen["eod+g"][0])
    with pytest.raises(SpecError, match="2 of 2 points have undefined values of these objectives"):
        Solutions.from_dict(points(undefined={"acc": [0, 1]})).pick("acc")


def test_a_limit_on_an_attribute_with_a_sign_in_its_name_is_about_what_is_defined() -> None:
    of = Solutions(
        {"acc": [0.6, 0.9], "eod+a<=b": [0.04, 0.0]},
        {"identifiers": [0, 0], "thresholds": [0.1, 0.2], "undefined": {"eod+a<=b": [1]}},
    )
    for limit in ("eod+a<=b <= 0.05", "eod+a<=b >= 0.01"):
        with pytest.warns(EvaluandWarning, match="1 of 2 points have undefined values"):
            assert of.pick("acc", [limit]).threshold.tolist() == [0.1]


def test_a_point_is_not_lost_to_an_equal_one_that_is_undefined() -> None:
    equal = {"acc": [0.6] * 3, "eod+g": [0.0] * 3}
    output = {"identifiers": [0] * 3, "thresholds": [0.1, 0.2, 0.3], "undefined": {"eod+g": [0]}}
    found = Solutions(equal, output).deduplicate()
    assert found.metadata["thresholds"] == [0.1, 0.2]
    assert found.metadata["undefined"] == {"eod+g": [0]}


def test_all_defined_is_not_marked() -> None:
    assert "undefined" not in Scores.from_dict(two_models()).solutions_a_posteriori(["acc", "eod+g"], [0.5]).metadata


# Points that decide alike for all


def test_points_that_make_the_same_decision_for_all_are_known_of_a_file(tmp_path: Path) -> None:
    scores = Scores([[0.2, 0.7, 0.6, 0.9]], [0, 1, 0, 1], {"g": list("aabb")})
    found = scores.solutions_a_posteriori(["acc", "eod+g"], [0.1, 0.65, 0.95])
    found.save(tmp_path / "s.json")
    again = Solutions.load(tmp_path / "s.json")
    assert again.tradeoff.trivial.tolist() == [True, False, True]
    assert again.take(np.array([1, 2])).tradeoff.trivial.tolist() == [False, True]
    later = scores.solutions_a_priori(["acc", "eod+g"], again)
    assert later.metadata["trivial"] == [0, 2]


def test_without_marks_only_infinite_thresholds_make_the_same_decision_for_all() -> None:
    found = Solutions.from_dict(points(thresholds=[-math.inf, 0.5]))
    assert found.tradeoff.trivial.tolist() == [True, False]


def test_thresholds_that_occur_twice_have_to_be_the_same() -> None:
    document = points(thresholds=[0.1, 0.2])
    document["metadata"]["threholds"] = [0.1, 0.2]
    with pytest.warns(EvaluandWarning, match=r"metadata\.threholds: is read as thresholds"):
        assert Solutions.from_dict(document).metadata["thresholds"] == [0.1, 0.2]
    document["metadata"]["threholds"] = [0.1, 0.3]
    with (
        pytest.warns(EvaluandWarning),
        pytest.raises(DataError, match=r"metadata\.threholds: differs from metadata\.thresholds"),
    ):
        Solutions.from_dict(document)


# An earlier solution


def test_thresholds_come_from_a_system_that_is_named() -> None:
    scores = Scores.from_dict(two_models(), "validation")
    chosen = scores.solutions_a_posteriori(["acc", "eod+g"], [0.3, 0.5])
    assert chosen.metadata["nds-from"] is None
    later = Scores.from_dict(two_models(), "test").solutions_a_priori(["acc", "dpd+g"], chosen, False)
    assert (later.system, later.metadata["nds-from"]) == ("test", "validation")
    assert later.metadata["prior-solution-set"] == "non-dominated"
    assert list(later) == ["acc", "dpd+g"]
    again = Scores.from_dict(two_models(), "later still").solutions_a_priori(["acc", "dpd+g"], later)
    assert again.metadata["nds-from"] == "validation"
    named = scores.solutions_a_priori(["acc", "dpd+g"], chosen, True, nds_from="another")
    assert (named.metadata["nds-from"], named.metadata["prior-solution-set"]) == ("another", "dominated")


@pytest.mark.parametrize("dominated", [None, False, True])
def test_the_same_scores_give_the_same_points_by_model_name(dominated: bool | None) -> None:
    scores = Scores.from_dict(two_models(identifiers=["bad", "good"]))
    for prior in (made := scores.solutions_a_posteriori(["acc", "eod+g"], [0.15, 0.5, 0.85]), made.deduplicate()):
        front, others = prior.non_dominated_solutions()
        expected = {None: prior, False: front, True: others}[dominated]
        found = scores.solutions_a_priori(["acc", "eod+g"], prior, dominated)
        assert dict(found.items()) == dict(expected.items())
        assert [found.metadata[key] for key in ("identifiers", "thresholds", "identifier-names")] == [
            expected.metadata[key] for key in ("identifiers", "thresholds", "identifier-names")
        ]


def test_a_model_of_the_earlier_solution_that_has_no_scores_is_reported() -> None:
    with pytest.raises(SpecError, match="no confidences of the model 'm'"):
        Scores.from_dict(two_models()).solutions_a_priori(["acc", "eod+g"], Solutions.from_dict(points()))


def test_an_earlier_solution_without_thresholds_is_reported() -> None:
    prior = points()
    del prior["metadata"]["thresholds"]
    scores = Scores.from_dict(two_models(identifiers=["m", "n"]))
    with pytest.raises(SpecError, match="has no thresholds"):
        scores.solutions_a_priori(["acc", "eod+g"], Solutions.from_dict(prior))


# Mapping, array, evaluation without scores


def test_solutions_are_a_mapping_and_an_array() -> None:
    solutions = Solutions.from_dict(points())
    assert (len(solutions), solutions.n_metrics(), solutions.n_solutions()) == (2, 2, 2)
    assert list(solutions) == list(solutions.keys()) == ["acc", "eod+g"]
    assert dict(solutions.items()) == points()["points"]
    assert list(solutions.values()) == [[0.6, 0.7], [0.1, 0.2]]
    assert np.asarray(solutions).tolist() == [[0.6, 0.1], [0.7, 0.2]]
    with pytest.raises(KeyError):
        solutions["f1"]


def test_solutions_are_drawn_as_a_table_of_values_thresholds_and_models() -> None:
    assert Solutions.from_dict(points()).tabulate().splitlines() == [
        "acc  eod+g  thresholds  identifiers",
        "---  -----  ----------  -----------",
        "0.6  0.1    0.1         m",
        "0.7  0.2    0.2         m",
    ]


@pytest.mark.parametrize(
    ("kind", "document", "field"), [(Scores, two_models(), "ground_truth"), (Solutions, None, "points")]
)
def test_files_have_the_methods_of_models(kind: Any, document: Any, field: str) -> None:
    made = kind.model_validate(document or points())
    assert kind.model_validate(made) is made
    assert made == kind.model_validate_json(json.dumps(document or points()).encode())
    assert field in made.model_dump()
    assert json.loads(made.model_dump_json(by_alias=True, indent=2)) == made.to_dict() == made.model_dump(by_alias=True)
    schema = kind.model_json_schema()
    assert set(schema["required"]) <= set(schema["properties"])
    with pytest.raises(DataError, match="must be an object"):
        kind.model_validate_json("[]")


@pytest.mark.parametrize(
    ("key", "path", "content", "message"),
    [
        ("scores", "one.json", [0.1, 0.5, 0.5, 0.9], None),
        ("ground-truth", "parts/truth.json", [0, 1, 1, 0], None),
        ("attributes", "a.json", {"g": ["x", "y", "x", "y"]}, None),
        ("scores", "none.json", None, "no such file"),
        ("scores", "../one.json", [0.1, 0.5, 0.5, 0.9], "leads out"),
        ("scores", "/etc/hostname", None, "leads out"),
        ("scores", "short.json", [0.1], r"scores\[1\]: has 1 scores"),
        ("scores", "text.json", "another.json", "must be a list"),
        ("ground-truth", "truth.json", [0, 2, 1, 0], r"ground-truth\[1\]: 2 is neither 0 nor 1"),
        ("attributes", "a.json", ["x"], "must be an object of lists"),
        ("attributes", "bad.json", None, "no such file"),
    ],
)
def test_lists_may_be_in_other_files_of_the_folder(
    tmp_path: Path, key: str, path: str, content: Any, message: str | None
) -> None:
    folder = tmp_path / "files"
    (folder / "parts").mkdir(parents=True)
    if content is not None:
        (folder / path).write_text(json.dumps(content))
    document = two_models()
    document[key] = [document[key][0], path] if key == "scores" else path
    (folder / "s.json").write_text(json.dumps(document))
    if message is not None:
        with pytest.raises(DataError, match=message):
            Scores.load(folder / "s.json")
        return
    scores = Scores.load(folder / "s.json")
    found = scores.to_dict()[key]
    assert (found[1] if key == "scores" else found) == content
    assert scores == Scores.model_validate(document, context={"base_dir": folder})


def test_solutions_come_from_an_array() -> None:
    made = Solutions.fromarray([[0.6, 0.1], [0.7, 0.2]], ["acc", "eod+g"], [0.1, 0.2], [0, 1], ["a", "b"])
    assert made.metadata["identifier-names"] == ["a", "b"]
    assert made["acc"] == [0.6, 0.7]
    assert np.asarray(made).tolist() == [[0.6, 0.1], [0.7, 0.2]]
    with pytest.raises(DataError, match=r"points: must be an array of points × 3 metrics and is 1 × 1$"):
        Solutions.fromarray([[0.6]], ["acc", "f1", "dpd+g"], [0.1])
    with pytest.raises(DataError, match="points × 2 metrics and is 2 × 3; give its transpose"):
        Solutions.fromarray([[0.6, 0.7, 0.8], [0.1, 0.2, 0.3]], ["acc", "eod+g"], [0.1, 0.2, 0.3])


def test_solutions_without_scores_are_judged_and_picked_from() -> None:
    solutions = Solutions.from_dict(points())
    assert solutions.indicators()["hv"] == pytest.approx(0.6 * 0.1 + 0.7 * 0.8)
    picked = solutions.tradeoff.pick("acc", ["eod+g <= 0.15"])
    assert (picked.threshold.tolist(), picked["acc"].tolist()) == ([0.1], [0.6])


# Files


@pytest.mark.parametrize("thresholds", [[math.inf, 0.5], [0.5, -math.inf]])
def test_infinite_thresholds_are_strict_json(tmp_path: Path, thresholds: list[float]) -> None:
    path = tmp_path / "solutions.json"
    Solutions.from_dict(points(thresholds=thresholds)).save(path)
    strict = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert strict["metadata"]["thresholds"] == [
        f"{'-' if t < 0 else ''}Infinity" if math.isinf(t) else t for t in thresholds
    ]
    assert Solutions.load(path).metadata["thresholds"] == thresholds
    assert [each.name for each in tmp_path.iterdir()] == ["solutions.json"]


def test_infinite_thresholds_as_some_programs_write_them_are_read() -> None:
    text = json.dumps(points(thresholds=[math.inf, 0.5]))
    assert "Infinity," in text
    assert Solutions.load(io.StringIO(text)).metadata["thresholds"] == [math.inf, 0.5]


names_of_models = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=4, unique=True)


@st.composite
def some_scores(draw: st.DrawFn) -> Scores:
    models, n = draw(names_of_models), draw(st.integers(1, 6))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    rows = [column(st.floats(0, 1)) for _ in models]
    kinds = st.sampled_from([st.text(max_size=3), st.integers(0, 10)])
    attributes = {name: column(draw(kinds)) for name in draw(st.lists(st.text(max_size=4), max_size=2, unique=True))}
    return Scores(rows, column(st.integers(0, 1)), attributes, models)


@given(some_scores())
def test_scores_come_back_as_they_were_saved(scores: Scores) -> None:
    text = io.StringIO()
    scores.save(text)
    assert Scores.load(io.StringIO(text.getvalue())) == scores


@st.composite
def some_solutions(draw: st.DrawFn) -> Solutions:
    models, n = draw(names_of_models), draw(st.integers(0, 5))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    output = {
        "thresholds": column(st.floats(allow_nan=False)),
        "identifiers": column(st.integers(0, len(models) - 1)),
        "identifier-names": models,
        "nds-from": draw(st.none() | st.text(max_size=4)),
        "note": draw(st.none() | st.text(max_size=4)),
    }
    return Solutions({metric: column(st.floats(0, 1)) for metric in ("acc", "eod+g", "minmaxr+f1+g")}, output)


@given(some_solutions())
def test_solutions_come_back_as_they_were_saved(solutions: Solutions) -> None:
    text = io.StringIO()
    solutions.save(text)
    again = Solutions.load(io.StringIO(text.getvalue()))
    assert again.to_dict() == solutions.to_dict()
    assert list(again) == list(solutions)


# Faults


@pytest.mark.parametrize(
    ("change", "output"),
    [
        ({"scores": []}, "scores: must be a list with a list of scores for each model"),
        ({"scores": [[0.1, 0.2, 0.3, 1.5]]}, "scores[0][3]: is 1.5; give a number from 0 to 1"),
        ({"scores": [[0.1, 0.2, 0.3, None]]}, "scores[0][3]: None is not a number"),
        ({"scores": [[0.1] * 4, [0.1] * 3]}, "scores[1]: has 3 scores, but scores[0] has 4"),
        ({"ground-truth": [0, 1, 0, 2]}, "ground-truth[3]: 2 is neither 0 nor 1"),
        ({"ground-truth": "0101"}, "ground-truth: must be a list of 0 and 1, not a text"),
        ({"attributes": [1]}, "attributes: must be an object of lists, not a list"),
        ({"attributes": {"g": ["a", "b", 1.5, None]}}, "attributes.g[2]: 1.5 is neither text nor an integer"),
        ({"attributes": {"g": ["a"]}}, "attributes.g: has 1 values, but each model has 4 scores"),
        ({"identifiers": ["a"]}, "identifiers: has 1 names for 2 models"),
        ({"identifiers": ["a", 1]}, "identifiers[1]: 1 is not a name; write it as text"),
        ({"identifiers": ["a", "\ud800"]}, "identifiers[1]: '\\ud800' is not a name; write it as text"),
        ({"identifiers": 0}, "identifiers: must be a list of names, not a number"),
        ({"identifiers": ""}, "identifiers: must be a list of names, not a text"),
        ({"identifiers": {}}, "identifiers: must be a list of names, not an object"),
        ({"identifiers": False}, "identifiers: must be a list of names, not true or false"),
        ({"scores": [[0.1, 0.2, 0.3, HUGE]]}, "scores[0][3]: 1000"),
        ({"ground-truth": [0, 1, 0, HUGE]}, "ground-truth[3]: 1000"),
        ({"attributes": {"g": [0, 1, 0, HUGE]}}, "attributes.g[3]: 1000"),
        ({"attributes": {"g": [1, "1", 0, 0]}}, "attributes.g[1]: '1' differs in type from 1; use texts only"),
        ({"attributes": {"g": ["a", "\ud800", "a", "a"]}}, "attributes.g[1]: '\\ud800' is neither text nor"),
        ({"attributes": {"\ud800": ["a"] * 4}}, "attributes: '\\ud800' is not a name"),
    ],
)
def test_scores_that_do_not_fit_are_reported_by_field_and_position(change: dict[str, Any], output: str) -> None:
    with pytest.raises(DataError) as fault:
        Scores.from_dict(two_models(**change))
    assert output in str(fault.value)


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(DataError) as fault:
        Scores.from_dict(two_models(scores=[[2, 0.1, 0.1, "x"]], **{"ground-truth": [0, 1, 0, 5]}))
    assert [line.partition(":")[0] for line in str(fault.value).splitlines()] == [
        "scores[0][0]",
        "scores[0][3]",
        "ground-truth[3]",
    ]


@pytest.mark.parametrize(
    ("change", "output"),
    [
        ({"identifiers": None}, "metadata.identifiers: is missing"),
        ({"identifiers": [0, -1]}, "metadata.identifiers[1]: -1 is not a position"),
        ({"identifiers": [0, 1]}, "metadata.identifiers[1]: is 1, but identifier-names has positions 0 to 0"),
        ({"thresholds": [0.1]}, "metadata.thresholds: has 1 entries for 2 points"),
        ({"thresholds": [0.1, math.nan]}, "metadata.thresholds[1]: is nan; give a number from -inf to inf"),
        ({"identifier-names": "m"}, "metadata.identifier-names: must be a list of names, not a text"),
        ({"thresholds": [0.1, HUGE]}, "metadata.thresholds[1]: 1000"),
        ({"identifiers": [0, HUGE]}, "metadata.identifiers[1]: is 1000"),
        (
            {"identifiers": [0, 5_000_000], "identifier-names": None},
            "metadata.identifiers[1]: is 5000000, but there are 2",
        ),
        (
            {"undefined": 5},
            "metadata.undefined: must be an object with a list of positions for each metric, not a number",
        ),
        ({"undefined": {"acc": None}}, "metadata.undefined.acc: must be a list of positions, not null"),
        ({"undefined": {"f1": [0]}}, "metadata.undefined.f1: is not one of the metrics acc, eod+g"),
        ({"undefined": {"acc": [0, 2]}}, "metadata.undefined.acc[1]: 2 is not the position of a point; there are 2"),
        ({"trivial": [True]}, "metadata.trivial[0]: True is not the position of a point"),
        ({"nds-from": 3}, "metadata.nds-from: must be the name of a system or null, not 3"),
    ],
)
def test_metadata_that_do_not_fit_are_reported_by_field_and_position(change: dict[str, Any], output: str) -> None:
    with pytest.raises(DataError) as fault:
        Solutions.from_dict(points(**change))
    assert output in str(fault.value)


@pytest.mark.parametrize(
    ("given_points", "output"),
    [
        ({}, "points: must be an object with a list of values for each metric"),
        ({"acc": [0.5, 2.0]}, "points.acc[1]: is 2; give a number from 0 to 1"),
        ({"acc": [0.5, 0.5], "f1": [0.5]}, "points.f1: has 1 values, but points.acc has 2"),
        ({"acc": [0.5, 0.5], "acc+g": [0.5, 0.5]}, "there is no metric 'acc+g'; acc has no attribute"),
        ({"tpr": [0.5, 0.5], "rec": [0.5, 0.5]}, "points: tpr and rec alone cannot be the utility"),
    ],
)
def test_points_that_do_not_fit_are_reported(given_points: dict[str, Any], output: str) -> None:
    with pytest.raises(DataError) as fault:
        Solutions(given_points, points()["metadata"])
    assert output in str(fault.value)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('{"points": {"acc": [0.1], "acc": [0.2]}}', "the text: acc: occurs twice in one object"),
        (r'{"points": {"eod+\ud800": [0.1]}}', "the text: 'eod+"),
        ("[" * 100_000, "the text: not readable as JSON"),
        ('{"a": ' + "1" * 5000 + "}", "the text: not readable as JSON"),
        (b'{"a": "\xff"}', "the text: not readable as JSON"),
    ],
)
def test_texts_that_cannot_be_read_are_one_fault(text: str | bytes, output: str) -> None:
    with pytest.raises(DataError) as fault:
        Solutions.load(io.BytesIO(text) if isinstance(text, bytes) else io.StringIO(text))
    assert str(fault.value).startswith(output)


def test_what_json_cannot_hold_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written as JSON"):
        Solutions.from_dict(points(note="\ud800")).save(tmp_path / "s.json")
    assert not list(tmp_path.iterdir())


def test_files_are_read_also_when_they_are_open_as_bytes() -> None:
    assert Scores.load(io.BytesIO(b"\xef\xbb\xbf" + SCORES.encode())).to_dict() == json.loads(SCORES)


def test_many_equal_names_are_numbered_and_reported_once() -> None:
    many = two_models(scores=[[0.5] * 4] * 5000, identifiers=["a"] * 5000)
    with pytest.warns(EvaluandWarning) as output:
        assert Scores.from_dict(many).identifiers == ["a", *(f"a-{number}" for number in range(2, 5001))]
    [note] = output
    assert "the name 'a' occurs 5000 times; the others are now 'a-2' to 'a-5000'" in str(note.message)


def test_arrays_are_taken_as_lists() -> None:
    document = two_models(identifiers=["a", "b"])
    arrays = Scores(
        np.array(document["scores"]),  # type: ignore[arg-type]
        np.array(document["ground-truth"], np.int64),  # type: ignore[arg-type]
        {"g": np.array(document["attributes"]["g"])},  # type: ignore[dict-item]
        np.array(["a", "b"]),  # type: ignore[arg-type]
    )
    assert arrays == Scores.from_dict(document)
    items = Scores([[np.float32(0.5), np.int64(1)]], [np.bool_(True), np.int8(0)], {"g": [np.int64(3), np.int64(4)]})
    assert items.to_dict() == {
        "scores": [[0.5, 1.0]],
        "identifiers": ["model-1"],
        "ground-truth": [1, 0],
        "attributes": {"g": [3, 4]},
    }
    found = Solutions(
        {"acc": np.array([0.6, 0.7]), "eod+g": np.array([0.1, 0.2], np.float32)},  # type: ignore[dict-item]
        {"identifiers": np.array([0, 0]), "thresholds": np.array([0.1, 0.2]), "trivial": np.array([1])},
    )
    found.save(io.StringIO())
    assert (found.metadata["identifiers"], found.tradeoff.trivial.tolist()) == ([0, 0], [False, True])
    with pytest.raises(DataError, match=r"scores\[0\]\[1\]: .*True.* is not a number"):
        Scores([[0.5, np.bool_(True)]], [0, 1], {"g": [0, 1]})  # type: ignore[list-item]


def test_fields_that_are_none_are_reported_and_left_out() -> None:
    with pytest.warns(EvaluandWarning, match="score: is not a field of a score file and is ignored"):
        Scores.from_dict(two_models(score=1))
    with pytest.warns(EvaluandWarning, match="foo: is not a field of a solution file"):
        Solutions.from_dict({**points(), "foo": 1})
    spelt = two_models()
    spelt["ground_truth"] = spelt.pop("ground-truth")
    with pytest.warns(EvaluandWarning, match="ground_truth: is read as ground-truth"):
        Scores.from_dict(spelt)


def test_a_metric_twice_is_reported() -> None:
    with pytest.raises(SpecError, match="occurs twice: acc, acc"):
        Scores.from_dict(two_models()).solutions_a_posteriori(["acc", "acc"])


def apart() -> Tradeoff:
    return solve(scores().confidences, parse_metrics("acc"), [0.5], thresholds_by="g")


def scores() -> Scores:
    return Scores.from_dict(two_models())


WRONG = {
    "scores": (
        lambda: Scores(None, [0], {}),
        "scores: must be a list with a list of scores for each model, not null",
    ),
    "scores by name": (lambda: Scores({"m": [0.1]}, [0], {}), "for each model, not an object"),
    "truth": (lambda: Scores([[0.1, 0.2]], [0, math.nan], {}), r"ground-truth\[1\]: nan is neither 0 nor 1"),
    "system": (lambda: Scores([[0.1]], [0], {}, ["m"], 5), "system: 5 is not a name; write it as text"),
    "document": (lambda: Scores.from_dict([1]), "the file: must be an object, not a list"),
    "no document": (lambda: Solutions.from_dict(None), "the file: must be an object, not null"),
    "file": (lambda: Scores.load(3), "give the path of a file or an open file, not a number"),
    "no folder": (lambda: scores().save("no folder/s.json"), "s.json cannot be written: No such file or directory"),
    "bytes": (lambda: scores().save(io.BytesIO()), "is not a file open for text"),
    "text": (lambda: Solutions.from_dict(points()).write(io.StringIO()), "is not a file open for bytes"),
    "metrics": (lambda: scores().solutions_a_posteriori(None), "metrics must be a list and is null"),
    "metric": (lambda: scores().solutions_a_posteriori([3]), r"metrics\[0\] is a number"),
    "no metric": (lambda: scores().solutions_a_posteriori([]), "there are no metrics; write such as"),
    "name": (lambda: parse_metric(3), "a metric must be a name, .* not a number"),
    "thresholds": (lambda: scores().solutions_a_posteriori(["acc"], ["x"]), "some of these are not numbers"),
    "earlier": (lambda: scores().solutions_a_priori(["acc"], scores()), "prior_solutions must be a Solutions and is a"),
    "dominated": (
        lambda: scores().solutions_a_priori(["acc"], Solutions.from_dict(points()), "front"),
        "dominated='front' must be True, False, or None for all",
    ),
    "array": (lambda: Solutions.fromarray("x", ["acc"], [0.1]), "points: must be numbers: an array of points × 1"),
    "no thresholds": (lambda: Solutions.fromarray([[0.5]], ["acc"], None), "metadata.thresholds: must be a list"),
    "identifiers": (lambda: Solutions.fromarray([[0.5]], ["acc"], [0.5], 0), "metadata.identifiers: must be a list"),
    "points": (lambda: Solutions.of_points(None), "points must be a Tradeoff and is null"),
    "apart": (lambda: Solutions.of_points(apart()), "hold one threshold per point, and these points have one for"),
    "metadata": (lambda: Solutions.of_points(Solutions.from_dict(points()).tradeoff, 3), "metadata must be an object"),
    "where": (lambda: Solutions.from_dict(points()).pick("acc", [1]), r"where\[0\] is a number"),
    "distance": (lambda: Solutions.from_dict(points()).deduplicate("x"), "must be a number of 0 or more"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_arguments_of_another_kind_are_reported_in_a_sentence(wrong: str) -> None:
    called, output = WRONG[wrong]
    with pytest.raises((SpecError, DataError), match=output):
        called()


@given(some_solutions())
def test_solutions_come_back_from_their_array(solutions: Solutions) -> None:
    output = (solutions.metadata[key] for key in ("thresholds", "identifiers", "identifier-names"))
    again = Solutions.fromarray(np.asarray(solutions), list(solutions), *output)
    kept = {key: value for key, value in solutions.metadata.items() if key not in ("nds-from", "note")}
    assert again == Solutions(solutions.points, kept)
