"""Selectors against recorded selections of TruLens, if the test vectors are present.

Where TruLens contradicts its documentation, the tests expect what is documented: a printed lens is read back as the
same lens, a slice sets each position separately, and names of methods are steps. Messages are not compared.
"""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest
from support.places import VECTORS_FOLDER

from evaluand.core.errors import EvaluandError
from evaluand.interop import trulens
from evaluand.interop.trulens import Lens, Select

FILE = VECTORS_FOLDER / "trulens" / "selectors.json"
RECORDED = json.loads(FILE.read_text()) if FILE.exists() else {"objects": {}, "cases": []}
# Cases where TruLens is wrong, such as sel-022: it prints a negative index that it cannot read.
CORRECTED = {"sel-021", "sel-022", "sel-023", "sel-035", "sel-221"}


class Munch(dict[str, Any]):
    __getattr__ = dict.__getitem__


OBJECTS = RECORDED["objects"] | {
    "munch": Munch(a=Munch(b=[1, 2]), k="v"),
    "thing": SimpleNamespace(a=1, d={"k": [1, 2]}, child=SimpleNamespace(z="deep")),
    "tuple": {"t": (1, 2, 3)},
    "set": {"s": {1}},
    "bytes": {"b": b"abc"},
}


def cases(*ops: str) -> pytest.MarkDecorator:
    chosen = [case for case in RECORDED["cases"] if case["op"] in ops and case["id"] not in CORRECTED]
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in chosen])


def lens_of(text: str) -> Any:
    return eval(text, {"Lens": Lens, "Select": Select, "S": trulens})


def steps_data(lens: Lens) -> list[dict[str, Any]]:
    """The steps in the form of the recording."""
    return [{"kind": type(step).__name__, **json.loads(json.dumps(vars(step)))} for step in lens.path()]


def outcome(case: dict[str, Any], method: str, *more: Any) -> Any:
    """The return value of a method of the lens, or None if it fails."""
    try:
        return getattr(lens_of(case["python"]), method)(OBJECTS[case["object"]], *more)
    except EvaluandError:
        return None


@cases("parse")
def test_a_text_is_read_as_the_same_steps(case: dict[str, Any]) -> None:
    if "error" in case["expect"]:
        with pytest.raises(EvaluandError):
            Lens.of_string(case["string"])
        return
    lens = Lens.of_string(case["string"])
    assert steps_data(lens) == case["expect"]["steps"]
    assert Lens.of_string(str(lens)) == lens
    assert str(lens) == case["expect"]["str"] or "f g.x" in case["expect"]["str"]  # which is not a valid path


@cases("str")
def test_what_is_printed_is_read_as_the_same_lens(case: dict[str, Any]) -> None:
    lens = lens_of(case["python"])
    assert steps_data(lens) == case["expect"]["steps"]
    assert Lens.of_string(str(lens)) == lens
    assert lens_of(repr(lens)) == lens
    if case["expect"]["round_trips"]:
        assert (str(lens), repr(lens)) == (case["expect"]["str"], case["expect"]["repr"])


@cases("get")
def test_the_same_values_are_selected(case: dict[str, Any]) -> None:
    found = outcome(case, "get")
    if "error" in case["expect"]:
        assert found is None
        return
    expected = case["expect"]["items"]
    assert len(found) == len(expected)
    for value, recorded in zip(found, expected, strict=True):
        if isinstance(recorded, dict) and "__python__" in recorded:
            assert type(value).__name__ == recorded["__python__"]
        else:
            assert value == recorded
    assert Lens.of_string(str(lens_of(case["python"])))(OBJECTS[case["object"]]) == found


@cases("exists")
def test_the_same_exists(case: dict[str, Any]) -> None:
    assert outcome(case, "exists") is case["expect"]["value"]


@cases("get_sole_item")
def test_the_same_one_value_is_selected(case: dict[str, Any]) -> None:
    assert outcome(case, "get_sole_item") == case["expect"].get("value")


@cases("existing_prefix")
def test_the_same_prefix_exists(case: dict[str, Any]) -> None:
    assert str(outcome(case, "existing_prefix")) == case["expect"]["str"]


@cases("set", "set_or_append")
def test_the_same_is_set_in_a_copy(case: dict[str, Any]) -> None:
    before = copy.deepcopy(OBJECTS[case["object"]])
    assert outcome(case, case["op"], case["value"]) == case["expect"].get("result")
    assert OBJECTS[case["object"]] == before


@cases("dequalify")
def test_the_same_root_is_removed(case: dict[str, Any]) -> None:
    assert str(Select.dequalify(lens_of(case["python"]))) == case["expect"]["str"]


@cases("prefix")
def test_the_same_lenses_are_prefixes(case: dict[str, Any]) -> None:
    a, b = lens_of(case["a"]), lens_of(case["b"])
    found = {
        "is_prefix_of": a.is_prefix_of(b),
        "is_immediate_prefix_of": a.is_immediate_prefix_of(b),
        "equal": a == b,
    }
    assert found == case["expect"]


@cases("all_queries")
def test_the_same_paths_lead_through_data(case: dict[str, Any]) -> None:
    assert list(map(str, trulens.all_queries(case["value"]))) == case["expect"]["strs"]


@cases("build")
def test_any_name_is_a_step_and_anything_else_is_refused(case: dict[str, Any]) -> None:
    if "(" in case["python"].removeprefix("Lens()") or "[None]" in case["python"]:
        with pytest.raises(TypeError):
            lens_of(case["python"])
        return
    lens = lens_of(case["python"])
    name = case["python"].rsplit(".", 1)[-1]
    assert steps_data(lens)[-1] == {"kind": "GetItemOrAttribute", "item_or_attribute": name}
    if "steps" in case["expect"]:
        assert steps_data(lens) == case["expect"]["steps"]


@cases("shadowed_names")
def test_no_name_is_shadowed(case: dict[str, Any]) -> None:
    for name in case["expect"]["names"]:
        lens = getattr(Lens().a, name).b
        assert lens.get({"a": {name: {"b": 5}}}) == [5]
        assert str(lens) == f"a.{name}.b"
