"""What people type first is one file, whose every text leads to what to write."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluand import Dataset, Experiment, SpecError, evaluate
from evaluand.core.near import _read_file, keywords, near, read_section


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    twice: bool = False


@keywords(AddOptions)
def add(number: Any, **options: Any) -> Any:
    return number + 1 + AddOptions(**options).twice


class Rows(Dataset):
    pass


class Study(Experiment):
    pass


class OfAFile(Experiment):
    def __init__(self, path: str) -> None: ...


def lists_in(section: Mapping[str, Any], *path: str) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    for words, part in section.items():
        if isinstance(part, Mapping):
            yield from lists_in(part, *path, words)
        elif isinstance(part, list):
            yield (*path, words), part


def test_every_entry_is_a_text_that_leads_to_one_answer() -> None:
    of_section: dict[tuple[str, ...], list[Any]] = {}
    for (*section, _), typed in lists_in(read_section()):
        of_section.setdefault(tuple(section), []).extend(typed)
    assert len(of_section) > 20
    for section, typed in of_section.items():
        assert [each for each in typed if not isinstance(each, str)] == [], section
        assert len({*typed}) == len(typed), section


def test_an_answer_can_repeat_what_was_typed() -> None:
    assert near("parameters", "chat")["top_p"] == "it into the model: model: {…, top_p: …}"


def test_an_error_inside_a_call_that_fits_stays_as_it_is() -> None:
    with pytest.raises(TypeError, match="can only concatenate"):
        add("1")


def test_only_declared_keywords_are_taken_and_the_signature_has_them() -> None:
    assert str(inspect.signature(add)) == "(number: 'Any', *, twice: 'bool' = False) -> 'Any'"
    assert add(1, twice=True) == 3
    with pytest.raises(TypeError, match=r"^add\(\) got an unexpected keyword argument 'thrice'$"):
        add(1, thrice=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Dataset.from_csv, "Dataset has no attribute 'from_csv'; write Dataset.from_data("),
        (lambda: Rows.from_csv, "Rows has no attribute 'from_csv'; write Dataset.from_data("),
        (lambda: Study.from_yaml, "Study has no attribute 'from_yaml'; write Experiment.from_file("),
        (lambda: Rows.sing, "Rows has no attribute 'sing'"),
        (lambda: Experiment("e", metric="mean"), "Experiment() has no argument 'metric'; write measures=…"),
        (lambda: Study("e", metric="mean"), "Study() has no argument 'metric'; write measures=…"),
        (lambda: Study(), "Study(): missing a required argument: 'name'; write Experiment(name, "),
        (lambda: OfAFile(), "OfAFile() missing 1 required positional argument: 'path'"),
        (lambda: Rows(), "Rows() missing 1 required positional argument: 'source'"),
        (
            lambda: evaluate(["a"], {"x": ["a"], "y": ["b"]}, metrics="accuracy").report,
            "a result has no attribute 'report'; write save(store, NAME), and evaluand report NAME in a shell",
        ),
        (lambda: evaluate([1], [1], metric="mean"), "evaluate() has no argument 'metric'; write metrics=…"),
    ],
)
def test_hints_are_those_of_the_class_that_was_used_or_of_its_bases(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises((AttributeError, TypeError), match=f"^{re.escape(message)}"):
        wrong()


def test_the_file_is_read_only_where_something_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"input": "a", "expected": "A"}\n')
    (tmp_path / "app.py").write_text("def loud(text):\n    return text.upper()\n")
    whole = {
        "name": "one",
        "dataset": {"path": "rows.jsonl", "input": "input", "expected": "expected"},
        "tasks": {"mine": "app.py:loud"},
        "scorers": "exact_match",
        "metrics": "accuracy",
    }
    (tmp_path / "one.yaml").write_text(json.dumps(whole))
    (tmp_path / "other.yaml").write_text(json.dumps(whole | {"model": "small"}))
    _read_file.cache_clear()
    Experiment.from_file(tmp_path / "one.yaml").run()
    evaluate([0, 1], [0, 1])
    assert _read_file.cache_info().currsize == 0
    with pytest.raises(SpecError, match="kind: chat"):
        Experiment.from_file(tmp_path / "other.yaml")
    assert _read_file.cache_info().currsize == 1
