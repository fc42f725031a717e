"""Multiple-choice questions of Hugging Face by the names of the Pharia SDKs."""

from __future__ import annotations

from typing import Any

import pytest

from evaluand.interop.pharia import MultipleChoiceInput, SingleHuggingfaceDatasetRepository

ROWS = [{"question": f"{n} + 1?", "choices": [str(n), str(n + 1)], "answer": 1} for n in range(12)]


@pytest.fixture
def repository() -> SingleHuggingfaceDatasetRepository:
    return SingleHuggingfaceDatasetRepository({"test": ROWS, "dev": ROWS[:1]})


def test_each_split_is_a_dataset_with_the_letter_of_the_right_choice(
    repository: SingleHuggingfaceDatasetRepository,
) -> None:
    assert [each.id for each in repository.datasets()] == ["dev", "test"]
    examples = list(repository.examples("test", MultipleChoiceInput, str, frozenset({"0"})))
    assert [each.id for each in examples] == ["1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"]
    assert (examples[0].input.choices, examples[0].expected_output) == (["1", "2"], "B")
    found = repository.example("test", "11", MultipleChoiceInput, str)
    assert found is not None
    assert found.input == MultipleChoiceInput(question="11 + 1?", choices=["11", "12"])
    assert repository.example("test", "12", MultipleChoiceInput, str) is None


def test_it_is_read_only(repository: SingleHuggingfaceDatasetRepository) -> None:
    with pytest.raises(NotImplementedError, match="read only"):
        repository.create_dataset([], "mine")
    with pytest.raises(NotImplementedError, match="read only"):
        repository.delete_dataset("test")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "?", "choices": ["a"]}, "row 0 has no answer"),
        ({"question": "?", "choices": ["a"], "answer": 1}, "row 0: the answer is 1"),
        ({"question": "?", "choices": ["a"], "answer": "A"}, "row 0: the answer is 'A'"),
    ],
)
def test_a_row_of_another_form_is_refused(row: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(SingleHuggingfaceDatasetRepository({"test": [row]}).examples("test", Any, Any))


def test_a_missing_split_and_rows_without_splits_are_refused(repository: SingleHuggingfaceDatasetRepository) -> None:
    assert repository.dataset("train") is None
    with pytest.raises(ValueError, match="no dataset 'train'"):
        repository.examples("train", Any, Any)
    with pytest.raises(ValueError, match="give all splits"):
        SingleHuggingfaceDatasetRepository(ROWS)  # type: ignore[arg-type]
