"""Repositories of datasets: in memory, or in a folder as `datasets/<id>/<id>.json` and `.jsonl`, as in the SDKs."""

import os
import posixpath
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from pydantic import ValidationError
from pydantic_core import from_json

from evaluand.core.errors import Fault
from evaluand.core.files.paths import replaced
from evaluand.core.identity import DIGEST_SIZE
from evaluand.interop.pharia.domain import (
    Dataset,
    Example,
    ExpectedOutput,
    ExtendedExample,
    Refused,
    SerializableDict,
    copy_value,
    new_id,
    read_each,
    require_stored,
    retyped,
)
from evaluand.interop.pharia.file_systems import (
    FileSystem,
    FileSystemBasedRepository,
    LocalFiles,
    find_path,
    list_folders,
    list_heads,
    read_file,
)
from evaluand.interop.pharia.repository_files import exact_text, file_name, heads, place, read_text
from evaluand.interop.pharia.types import Misfit, read_head
from evaluand.run.task import Input
from evaluand.run.types import adapter_of


class DatasetRepository(ABC):
    """Stores datasets. They are immutable: created once, read in the order of the examples' ids, deleted entirely."""

    @abstractmethod
    def create_dataset(
        self,
        examples: Iterable[Example[Input, ExpectedOutput]],
        dataset_name: str,
        id: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> Dataset:
        """Store examples as a dataset.

        Args:
            examples: no two with the same id.
            dataset_name: its name, for people.
            id: the dataset's id; a new one by default.
            labels: for finding it.
            metadata: further facts to store with it.

        Raises:
            Refused: the id is in use, two examples have the same id, or an example's id is empty or cannot be
                written as text.
        """

    @abstractmethod
    def delete_dataset(self, dataset_id: str) -> None:
        """Delete a dataset, if it exists."""

    @abstractmethod
    def dataset(self, dataset_id: str) -> Dataset | None:
        """The head of a dataset, or None."""

    @abstractmethod
    def dataset_ids(self) -> Iterable[str]:
        """The ids of all datasets, sorted."""

    @abstractmethod
    def examples(
        self,
        dataset_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        examples_to_skip: frozenset[str] | None = None,
    ) -> Iterable[Example[Input, ExpectedOutput]]:
        """The examples with these types, in the order of their ids, without those to skip.

        Raises:
            Unknown: there is no such dataset.
            Misfit: examples do not have these types; lists each.
        """

    def datasets(self) -> Iterable[Dataset]:
        """The heads of all datasets, in the order of their ids."""
        return read_each(self.dataset, self.dataset_ids())

    def content_digest(self, dataset_id: str, num_examples: int | None = None) -> str:
        """A digest of the stored examples, or of the first of them, equal in every process and repository."""
        return _digest(islice(self.examples(dataset_id, Any, Any), num_examples))

    def example(
        self,
        dataset_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
    ) -> Example[Input, ExpectedOutput] | None:
        """The example with this id, or None.

        Raises:
            Unknown: there is no such dataset.
            Misfit: it does not have these types.
        """
        for example in self.examples(dataset_id, Any, Any):
            if example.id == example_id:
                return next(_convert([example], dataset_id, input_type, expected_output_type, shares_values=False))
        return None


class StoredDatasets(DatasetRepository):
    """A repository whose storage three methods define.

    Attributes:
        shares_values: the methods return the stored objects, so what a caller gets is copied.
    """

    shares_values: ClassVar[bool] = False

    @abstractmethod
    def _store(self, dataset: Dataset, examples: Iterator[Example[Any, Any]]) -> None:
        """Store a new dataset."""

    @abstractmethod
    def _read_examples(self, dataset_id: str) -> Iterable[Example[Any, Any]] | None:
        """The examples, in the order of their ids; None if there is no such dataset."""

    @abstractmethod
    def _read_example(self, dataset_id: str, example_id: str) -> Sequence[Example[Any, Any]] | None:
        """The example with this id, or an empty sequence; None if there is no such dataset."""

    def create_dataset(
        self,
        examples: Iterable[Example[Input, ExpectedOutput]],
        dataset_name: str,
        id: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> Dataset:
        id = new_id() if id is None else id
        dataset = Dataset(id=id, name=dataset_name, labels=labels or set(), metadata=metadata or {})
        if self.dataset(dataset.id) is not None:
            raise Refused(f"a dataset has the id {dataset.id!r} already; datasets do not change, so choose another id")
        self._store(dataset, _distinct(examples))
        return dataset

    def examples(
        self,
        dataset_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        examples_to_skip: frozenset[str] | None = None,
    ) -> Iterable[Example[Input, ExpectedOutput]]:
        skipped = examples_to_skip or frozenset()
        examples = require_stored(self._read_examples(dataset_id), "dataset", dataset_id)
        rest = (each for each in examples if each.id not in skipped)
        return _convert(rest, dataset_id, input_type, expected_output_type, self.shares_values)

    def example(
        self,
        dataset_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
    ) -> Example[Input, ExpectedOutput] | None:
        found = require_stored(self._read_example(dataset_id, example_id), "dataset", dataset_id)
        return next(_convert(found, dataset_id, input_type, expected_output_type, self.shares_values), None)


class InMemoryDatasetRepository(StoredDatasets):
    """Stores datasets in memory."""

    shares_values = True

    def __init__(self) -> None:
        self._datasets: dict[str, tuple[Dataset, dict[str, Example[Any, Any]]]] = {}

    def delete_dataset(self, dataset_id: str) -> None:
        self._datasets.pop(dataset_id, None)

    def dataset(self, dataset_id: str) -> Dataset | None:
        return self._datasets[dataset_id][0] if dataset_id in self._datasets else None

    def dataset_ids(self) -> Iterable[str]:
        return sorted(self._datasets)

    def _store(self, dataset: Dataset, examples: Iterator[Example[Any, Any]]) -> None:
        exact_text(dataset)  # refuses what a file repository would refuse
        copies = {each.id: each.model_copy(deep=True) for each in examples}
        self._datasets[dataset.id] = dataset, dict(sorted(copies.items()))

    def _read_examples(self, dataset_id: str) -> Iterable[Example[Any, Any]] | None:
        return self._datasets[dataset_id][1].values() if dataset_id in self._datasets else None

    def content_digest(self, dataset_id: str, num_examples: int | None = None) -> str:
        return _digest(islice(self._datasets[dataset_id][1].values(), num_examples))  # only read, so not copied

    def _read_example(self, dataset_id: str, example_id: str) -> Sequence[Example[Any, Any]] | None:
        if dataset_id not in self._datasets:
            return None
        found = self._datasets[dataset_id][1].get(example_id)
        return [found] if found else []


class FileSystemDatasetRepository(StoredDatasets, FileSystemBasedRepository):
    """Stores datasets on a file system, in the file format of the SDKs; see `FileSystemBasedRepository`."""

    def __init__(self, file_system: FileSystem, root_directory: Path) -> None:
        super().__init__(file_system, root_directory)
        self._folder = self._root_directory / "datasets"

    def delete_dataset(self, dataset_id: str) -> None:
        folder = find_path(self._file_system, self._folder, dataset_id)
        if self._file_system.exists(folder):
            self._file_system.rm(folder, recursive=True)

    def dataset(self, dataset_id: str) -> Dataset | None:
        path = self._file(dataset_id, ".json")
        return read_head(Dataset, read_file(self._file_system, path), path)

    def dataset_ids(self) -> Iterable[str]:
        folders = list_folders(self._file_system, self._folder.as_posix())
        return sorted(id for folder in folders for id in list_heads(self._file_system, folder, ".json"))

    def _store(self, dataset: Dataset, examples: Iterator[Example[Any, Any]]) -> None:
        folder, name, head = self._folder / file_name(dataset.id), file_name(dataset.id), exact_text(dataset)
        lines = b"".join(exact_text(example) + b"\n" for example in examples)
        self._file_system.makedirs(folder.as_posix(), exist_ok=True)
        for suffix, content in ((".jsonl", lines), (".json", head)):  # the head last: it makes the dataset visible
            self._file_system.pipe_file((folder / (name + suffix)).as_posix(), content)

    def _read_examples(self, dataset_id: str) -> Iterable[Example[Any, Any]] | None:
        path = self._file(dataset_id, ".jsonl")
        text = read_file(self._file_system, path)
        return None if text is None else _parse_examples(text, path)

    def _read_example(self, dataset_id: str, example_id: str) -> Sequence[Example[Any, Any]] | None:
        examples = self._read_examples(dataset_id)
        return None if examples is None else [each for each in examples if each.id == example_id]

    def _file(self, dataset_id: str, suffix: str) -> str:
        folder = find_path(self._file_system, self._folder, dataset_id)
        return f"{folder}/{posixpath.basename(folder)}{suffix}"


class FileDatasetRepository(FileSystemDatasetRepository):
    """Stores datasets in a folder, which the first write creates, in the file format of the SDKs."""

    def __init__(self, root_directory: Path) -> None:
        super().__init__(LocalFiles(), root_directory)
        self._indexed: tuple[tuple[int, ...], dict[str, tuple[int, int]]] = (), {}

    def delete_dataset(self, dataset_id: str) -> None:
        folder = place(self._folder, dataset_id)
        if folder.is_dir():
            shutil.rmtree(folder)

    def dataset(self, dataset_id: str) -> Dataset | None:
        path = self._path(dataset_id, ".json")
        return read_head(Dataset, read_text(path), path)

    def dataset_ids(self) -> Iterable[str]:
        if not self._folder.is_dir():
            return []
        return sorted(id for folder in self._folder.iterdir() if folder.is_dir() for id in heads(folder, ".json"))

    def _store(self, dataset: Dataset, examples: Iterator[Example[Any, Any]]) -> None:
        name, head = file_name(dataset.id), exact_text(dataset)
        lines = b"".join(exact_text(example) + b"\n" for example in examples)
        (self._folder / name).mkdir(parents=True, exist_ok=True)
        for suffix, content in ((".jsonl", lines), (".json", head)):  # the head last: it makes the dataset visible
            with replaced(self._folder / name / (name + suffix)) as file:
                file.write(content)

    def _read_examples(self, dataset_id: str) -> Iterable[Example[Any, Any]] | None:
        path = self._path(dataset_id, ".jsonl")
        text = read_text(path)
        return None if text is None else _parse_examples(text, path)

    def _read_example(self, dataset_id: str, example_id: str) -> Sequence[Example[Any, Any]] | None:
        path = self._path(dataset_id, ".jsonl")
        try:
            with path.open("rb") as file:
                found = self._places(file, path).get(example_id)
                if found is None:
                    return []
                number, offset = found
                file.seek(offset)
                return [_read(file.readline(), path, number)]
        except FileNotFoundError:
            return None

    def _path(self, dataset_id: str, suffix: str) -> Path:
        folder = place(self._folder, dataset_id)
        return folder / (folder.name + suffix)

    def _places(self, file: BinaryIO, path: Path) -> dict[str, tuple[int, int]]:
        """Line number and offset of each example; cached for the file that was read last."""
        status = os.fstat(file.fileno())
        key = status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
        last, places = self._indexed
        if last != key:
            places, offset = {}, 0
            for number, line in enumerate(file, 1):
                if line.strip():
                    places.setdefault(_row(line, path, number)["id"], (number, offset))
                offset += len(line)
            self._indexed = key, places
        return places


def _digest(examples: Iterable[Example[Any, Any]]) -> str:
    """A digest of the stored form of examples, since sets have no order in memory."""
    content = blake2b(digest_size=DIGEST_SIZE)
    for each in examples:
        for name, value in each:
            content.update(b"%s:%s\n" % (name.encode(), exact_text(value)))
        content.update(b"\n")
    return content.hexdigest()


def _parse_examples(text: bytes, path: Path | str) -> list[Example[Any, Any]]:
    """The examples of a file, in the order of their ids; raises at the end if some lines are none."""
    found: list[Example[Any, Any]] = []
    causes: list[Misfit] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        try:
            if line.strip():
                found.append(_read(line, path, number))
        except Misfit as error:
            causes.append(error)
    _raise_misfits([fault for each in causes for fault in each.faults], causes)
    return sorted(found, key=lambda example: example.id)


def _read(line: bytes, path: Path | str, number: int) -> Example[Any, Any]:
    """The example of a line, with any additional fields."""
    row = _row(line, path, number)
    type_ = Example[Any, Any] if row.keys() <= Example.model_fields.keys() else ExtendedExample
    try:
        return adapter_of(type_).validate_python(row)  # type: ignore[no-any-return]
    except ValidationError as error:
        raise Misfit.from_faults(_faults(f"{path}:{number}", error), [error]) from None


def _row(line: bytes, path: Path | str, number: int) -> dict[str, Any]:
    try:
        row = from_json(line)
    except ValueError as error:
        raise Misfit.from_faults(Fault(f"{path}:{number}", f"is not JSON: {error}")) from None
    if not (isinstance(row, dict) and isinstance(row.get("id"), str)):
        raise Misfit.from_faults(Fault(f"{path}:{number}", "is not an example; write an object whose id is a text"))
    return row


def _distinct(examples: Iterable[Example[Any, Any]]) -> Iterator[Example[Any, Any]]:
    seen: set[str] = set()
    for example in examples:
        if not example.id:
            raise Refused("the id of an example is empty; give it a text that no other example has")
        if example.id in seen:
            raise Refused(f"two examples have the id {example.id!r}; their results could not be distinguished")
        seen.add(example.id)
        exact_text(example.id)
        yield example


def as_class(
    class_: type[Example[Any, Any]], examples: Iterable[Example[Any, Any]], dataset_id: str
) -> Iterator[Example[Any, Any]]:
    """Yield the examples as a user's subclass; raises a Misfit at the end that lists each field that does not fit."""
    faults: list[Fault] = []
    causes: list[ValidationError] = []
    for each in examples:
        try:
            yield each if isinstance(each, class_) else class_.model_validate(dict(each))
        except ValidationError as error:
            faults += _faults(f"dataset {dataset_id}, example {each.id}", error)
            causes.append(error)
    _raise_misfits(faults, causes)


def _convert(
    examples: Iterable[Example[Any, Any]], dataset_id: str, input_type: Any, expected_type: Any, shares_values: bool
) -> Iterator[Example[Any, Any]]:
    """Yield the examples with their values converted to the types; raises at the end if some do not fit."""
    faults: list[Fault] = []
    causes: list[ValidationError] = []
    adapters = {"input": adapter_of(input_type), "expected_output": adapter_of(expected_type)}
    for example in examples:
        found = {}
        for name, adapter in adapters.items():
            value = getattr(example, name)
            try:
                found[name] = adapter.validate_python(copy_value(value) if shares_values else value)
            except ValidationError as error:
                faults += _faults(f"dataset {dataset_id}, example {example.id}, {name}", error)
                causes.append(error)
        if not faults:
            yield retyped(example, found, shares_values=shares_values)
    _raise_misfits(faults, causes)


def _raise_misfits(faults: Sequence[Fault], causes: Sequence[ValidationError]) -> None:
    if faults:
        raise Misfit.from_faults(faults, causes)


def _faults(where: str, error: ValidationError) -> Iterator[Fault]:
    return (Fault(".".join((where, *map(str, each["loc"]))), each["msg"]) for each in error.errors())
