"""Multiple-choice questions of Hugging Face as a repository of datasets."""

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from evaluand.interop.pharia.datasets import StoredDatasets
from evaluand.interop.pharia.domain import Dataset, Example, Refused


class ReadOnly(Refused, NotImplementedError):
    """A repository that cannot be changed; a NotImplementedError, as users of the SDKs expect."""


class MultipleChoiceInput(BaseModel):
    """A question and the answers to choose from."""

    question: str
    choices: Sequence[str]


class SingleHuggingfaceDatasetRepository(StoredDatasets):
    """A dataset of Hugging Face with multiple-choice questions, such as MMLU: each split is a dataset. Read only.

    The expected output of an example is the letter of the right choice, and its id the number of its row.

    Args:
        huggingface_dataset: what `datasets.load_dataset` returns, or any other mapping of the names of splits to rows
            with `question`, `choices` and `answer`, the place of the right choice from 0.

    Example:
        >>> rows = [{"question": "2 + 2?", "choices": ["3", "4"], "answer": 1}]
        >>> repository = SingleHuggingfaceDatasetRepository({"test": rows})
        >>> next(iter(repository.examples("test", MultipleChoiceInput, str))).expected_output
        'B'
    """

    def __init__(self, huggingface_dataset: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
        if not isinstance(huggingface_dataset, Mapping):
            raise Refused("give all splits, such as load_dataset(name) returns, and not the rows of one split")
        self._splits = huggingface_dataset

    def delete_dataset(self, dataset_id: str) -> None:
        raise ReadOnly("datasets of Hugging Face are read only; delete the split where it was published")

    def dataset(self, dataset_id: str) -> Dataset | None:
        return Dataset(id=dataset_id, name=dataset_id) if dataset_id in self._splits else None

    def dataset_ids(self) -> Iterable[str]:
        return sorted(self._splits)

    def _store(self, dataset: Dataset, examples: Iterator[Example[Any, Any]]) -> None:
        raise ReadOnly("datasets of Hugging Face are read only; store examples in a FileDatasetRepository")

    def _read_examples(self, dataset_id: str) -> Iterable[Example[Any, Any]] | None:
        if dataset_id not in self._splits:
            return None
        found = [_example(str(number), row) for number, row in enumerate(self._splits[dataset_id])]
        return sorted(found, key=lambda example: example.id)

    def _read_example(self, dataset_id: str, example_id: str) -> Sequence[Example[Any, Any]] | None:
        examples = self._read_examples(dataset_id)
        return None if examples is None else [each for each in examples if each.id == example_id]


def _example(id: str, row: Mapping[str, Any]) -> Example[Any, Any]:
    missing = [name for name in ("question", "choices", "answer") if name not in row]
    if missing:
        raise Refused(f"row {id} has no {', '.join(missing)}; rows need question, choices and answer")
    choices, answer = list(row["choices"]), row["answer"]
    if not isinstance(answer, int) or not 0 <= answer < min(len(choices), len(string.ascii_uppercase)):
        raise Refused(f"row {id}: the answer is {answer!r}; it must be the place of one of the choices, from 0")
    question = {"question": row["question"], "choices": choices}
    return Example(input=question, expected_output=string.ascii_uppercase[answer], id=id)
