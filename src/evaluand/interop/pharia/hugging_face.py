"""Repositories on the Hugging Face Hub, and its multiple-choice questions as a repository of datasets."""

import shutil
import string
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from evaluand.core.errors import EngineError, SpecError, warn
from evaluand.interop.pharia.datasets import FileDatasetRepository, StoredDatasets
from evaluand.interop.pharia.domain import AggregatedEvaluation, AggregationOverview, Dataset, Example, Refused
from evaluand.interop.pharia.evaluations import FileAggregationRepository
from evaluand.interop.pharia.file_systems import FileSystemBasedRepository, LocalFiles
from evaluand.interop.pharia.repository_files import file_name

if TYPE_CHECKING:
    from huggingface_hub import HfApi


class HuggingFaceRepository(FileSystemBasedRepository):
    """A repository of files on the Hugging Face Hub, which are copied to a temporary folder when they are read.

    Needs the extra `hugging-face`: `pip install 'evaluand[hugging-face]'`.

    Args:
        repository_id: `owner/name`; created if it does not exist.
        token: for the Hub.
        private: whether to create it as a private one.
        endpoint: the address of the Hub; by default that of the package `huggingface_hub`.
    """

    def __init__(self, repository_id: str, token: str, private: bool, *, endpoint: str | None = None) -> None:
        self._repository_id = repository_id
        self._hub = _connect(token, endpoint)
        self._local_root = Path(tempfile.mkdtemp(prefix="evaluand-hub-"))
        FileSystemBasedRepository.__init__(self, LocalFiles(), self._local_root)
        weakref.finalize(self, shutil.rmtree, self._local_root, ignore_errors=True)
        self.create_repository(repository_id, token, private)

    def create_repository(self, repository_id: str, token: str, private: bool) -> None:
        """Create a repository unless it exists."""
        with self._calling():
            self._hub.create_repo(repository_id, token=token, repo_type=_TYPE, private=private, exist_ok=True)

    def delete_repository(self) -> None:
        """Delete the repository with all that it contains."""
        with self._calling():
            self._hub.delete_repo(self._repository_id, repo_type=_TYPE)

    def write_utf8(self, path: Path, content: str, create_parents: bool = False) -> None:
        """Write a text file of the repository; folders need not be created."""
        super().mkdir((self._local_root / path).parent)
        super().write_utf8(self._local_root / path, content)
        self._upload([path.as_posix()])

    def read_utf8(self, path: Path) -> str:
        """The content of a text file of the repository; raises FileNotFoundError if there is none."""
        if path.as_posix() not in self._files():
            raise FileNotFoundError(f"{self._repository_id} on Hugging Face has no file {path.as_posix()}")
        self._download([path.as_posix()])
        return super().read_utf8(self._local_root / path)

    def remove_file(self, path: Path) -> None:
        """Remove a file of the repository."""
        with self._calling():
            self._hub.delete_file(path.as_posix(), self._repository_id, repo_type=_TYPE)

    def exists(self, path: Path) -> bool:
        """Whether the repository has a file or folder."""
        return path.as_posix() in self._files() or bool(self._list(path.as_posix()))

    def mkdir(self, path: Path) -> None:
        """Do nothing: on the Hub, folders are the beginnings of paths."""

    def file_names(self, path: Path, file_type: str = "json") -> Sequence[str]:
        """The names of the files of a type in a folder of the repository, without the type."""
        found = (Path(name) for name in self._list(path.as_posix()))
        return sorted(each.stem for each in found if each.parent == path and each.suffix == f".{file_type}")

    def _list(self, folder: str) -> list[str]:
        """The files in a folder of the repository."""
        return [name for name in self._files() if name.startswith(f"{folder}/")]

    def _files(self) -> list[str]:
        with self._calling():
            return list(self._hub.list_repo_files(self._repository_id, repo_type=_TYPE))

    def _download(self, names: Iterable[str]) -> None:
        with self._calling():
            for name in names:
                self._hub.hf_hub_download(self._repository_id, name, repo_type=_TYPE, local_dir=self._local_root)

    def _upload(self, names: Iterable[str]) -> None:
        from huggingface_hub import CommitOperationAdd

        added = [CommitOperationAdd(name, self._local_root / name) for name in names]
        with self._calling():
            self._hub.create_commit(
                self._repository_id, added, commit_message=f"Add {added[-1].path_in_repo}", repo_type=_TYPE
            )

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """A context for calls of the Hub, whose errors become one sentence."""
        try:
            yield
        except Exception as error:  # which errors there are depends on the HTTP library of huggingface_hub
            message = getattr(error, "server_message", None) or str(error).partition("\n")[0]
            reason = message or type(error).__name__
            raise EngineError(f"{self._repository_id} on Hugging Face: {reason}") from error


_TYPE: Final = "dataset"


def _connect(token: str, endpoint: str | None) -> "HfApi":
    try:
        from huggingface_hub import HfApi
    except ImportError:
        message = "repositories on the Hugging Face Hub need huggingface_hub: pip install 'evaluand[hugging-face]'"
        raise SpecError(message) from None
    return HfApi(endpoint=endpoint, token=token)


class HuggingFaceDatasetRepository(HuggingFaceRepository, FileDatasetRepository):
    """Stores datasets on the Hugging Face Hub, in the file format of the SDKs; see `HuggingFaceRepository`.

    Args:
        caching: download a dataset once, and not each time it is read.
    """

    def __init__(
        self, repository_id: str, token: str, private: bool, caching: bool = True, *, endpoint: str | None = None
    ) -> None:
        HuggingFaceRepository.__init__(self, repository_id, token, private, endpoint=endpoint)
        FileDatasetRepository.__init__(self, self._local_root)
        self._caching = caching
        self._known: set[str] = set()

    def delete_dataset(self, dataset_id: str) -> None:
        folders = {name.rpartition("/")[0] for name in self._names(dataset_id)}
        with self._calling():
            for folder in folders:
                self._hub.delete_folder(folder, self._repository_id, repo_type=_TYPE)
        super().delete_dataset(dataset_id)
        self._known.discard(dataset_id)

    def dataset(self, dataset_id: str) -> Dataset | None:
        self._fetch(dataset_id)
        return super().dataset(dataset_id)

    def dataset_ids(self) -> Iterable[str]:
        self._download(name for name in self._list("datasets") if name.endswith(".json"))
        return super().dataset_ids()

    def _store(self, dataset: Dataset, examples: Iterator[Example[Any, Any]]) -> None:
        super()._store(dataset, examples)
        name = file_name(dataset.id)
        self._upload(f"datasets/{name}/{name}{suffix}" for suffix in (".jsonl", ".json"))
        self._known.add(dataset.id)

    def _read_examples(self, dataset_id: str) -> Iterable[Example[Any, Any]] | None:
        self._fetch(dataset_id)
        return super()._read_examples(dataset_id)

    def _read_example(self, dataset_id: str, example_id: str) -> Sequence[Example[Any, Any]] | None:
        self._fetch(dataset_id)
        return super()._read_example(dataset_id, example_id)

    def _fetch(self, dataset_id: str) -> None:
        if self._caching and dataset_id in self._known:
            return
        super().delete_dataset(dataset_id)  # the copy
        names = self._names(dataset_id)
        self._download(names)
        if names:
            self._known.add(dataset_id)

    def _names(self, dataset_id: str) -> list[str]:
        """The files of a dataset, under its file name or, where the SDKs wrote it, its id."""
        folders = {f"datasets/{file_name(dataset_id)}", f"datasets/{dataset_id}"}
        return [name for name in self._list("datasets") if name.rpartition("/")[0] in folders]


class HuggingFaceAggregationRepository(HuggingFaceRepository, FileAggregationRepository):
    """Stores aggregations on the Hugging Face Hub, in the file format of the SDKs; see `HuggingFaceRepository`."""

    def __init__(self, repository_id: str, token: str, private: bool, *, endpoint: str | None = None) -> None:
        HuggingFaceRepository.__init__(self, repository_id, token, private, endpoint=endpoint)
        FileAggregationRepository.__init__(self, self._local_root)

    def store_aggregation_overview(self, aggregation_overview: AggregationOverview[AggregatedEvaluation]) -> None:
        super().store_aggregation_overview(aggregation_overview)
        self._upload([f"aggregations/{file_name(aggregation_overview.id)}.json"])

    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        own = {f"aggregations/{name}.json" for name in (file_name(aggregation_id), aggregation_id)}
        self._download(own.intersection(self._list("aggregations")))
        return super().aggregation_overview(aggregation_id, aggregation_type)

    def aggregation_overview_ids(self) -> Sequence[str]:
        self._download(self._list("aggregations"))
        return super().aggregation_overview_ids()


class ReadOnly(Refused, NotImplementedError):
    """A repository that cannot be changed; a NotImplementedError, as users of the SDKs expect."""


_READ_ONLY: Final = "a published dataset is read only here; store examples in a FileDatasetRepository"


class MultipleChoiceInput(BaseModel):
    """A question and the answers to choose from."""

    question: str
    choices: Sequence[str]


class SingleHuggingfaceDatasetRepository(StoredDatasets):
    """A dataset of Hugging Face with multiple-choice questions, such as MMLU: each split is a dataset. Read only.

    The expected output of an example is the letter of the right choice, and its id the number of its row. An id that is
    no split means `test`, with an `EvaluandWarning` unless it is empty.

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

    def create_dataset(self, *arguments: Any, **options: Any) -> Dataset:
        raise ReadOnly(_READ_ONLY)

    def delete_dataset(self, dataset_id: str) -> None:
        raise ReadOnly(_READ_ONLY)

    def dataset(self, dataset_id: str) -> Dataset | None:
        split = self._split(dataset_id)
        return Dataset(id=dataset_id, name=split) if split else None

    def dataset_ids(self) -> Iterable[str]:
        return sorted(self._splits)

    def _store(self, dataset: Dataset, examples: Iterator[Example[Any, Any]]) -> None:
        raise ReadOnly(_READ_ONLY)

    def _read_examples(self, dataset_id: str) -> Iterable[Example[Any, Any]] | None:
        split = self._split(dataset_id)
        if split is None:
            return None
        if dataset_id and dataset_id != split:
            warn(f"there is no split {dataset_id!r}, so {split!r} is read; there are {', '.join(self.dataset_ids())}")
        found = [_example(str(number), row) for number, row in enumerate(self._splits[split])]
        return sorted(found, key=lambda example: example.id)

    def _read_example(self, dataset_id: str, example_id: str) -> Sequence[Example[Any, Any]] | None:
        examples = self._read_examples(dataset_id)
        return None if examples is None else [each for each in examples if each.id == example_id]

    def _split(self, dataset_id: str) -> str | None:
        """The split with this name; any other id means the test split, as in the SDKs."""
        return next((name for name in (dataset_id, "test") if name in self._splits), None)


def _example(id: str, row: Mapping[str, Any]) -> Example[Any, Any]:
    missing = [name for name in ("question", "choices", "answer") if name not in row]
    if missing:
        raise Refused(f"row {id} has no {', '.join(missing)}; rows need question, choices and answer")
    choices, answer = list(row["choices"]), row["answer"]
    if not isinstance(answer, int) or not 0 <= answer < min(len(choices), len(string.ascii_uppercase)):
        raise Refused(f"row {id}: the answer is {answer!r}; it must be the place of one of the choices, from 0")
    question = {"question": row["question"], "choices": choices}
    return Example(input=question, expected_output=string.ascii_uppercase[answer], id=id)
