"""Repositories on the Hugging Face Hub, and its multiple-choice questions, by the names of the Pharia SDKs."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from evaluand.core.errors import EngineError, EvaluandWarning
from evaluand.interop.pharia import (
    AggregationOverview,
    Example,
    HuggingFaceAggregationRepository,
    HuggingFaceDatasetRepository,
    MultipleChoiceInput,
    SingleHuggingfaceDatasetRepository,
    utc_now,
)

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


def test_an_id_that_is_no_split_means_the_test_split(repository: SingleHuggingfaceDatasetRepository) -> None:
    assert len(list(repository.examples("", MultipleChoiceInput, str))) == 12
    with pytest.warns(EvaluandWarning, match="there is no split 'train', so 'test' is read; there are dev, test"):
        assert len(list(repository.examples("train", MultipleChoiceInput, str))) == 12


def test_a_missing_split_and_rows_without_splits_are_refused() -> None:
    only_dev = SingleHuggingfaceDatasetRepository({"dev": ROWS})
    assert only_dev.dataset("train") is None
    with pytest.raises(ValueError, match="no dataset 'train'"):
        only_dev.examples("train", Any, Any)
    with pytest.raises(ValueError, match="give all splits"):
        SingleHuggingfaceDatasetRepository(ROWS)  # type: ignore[arg-type]


class Hub(BaseHTTPRequestHandler):
    """The calls of the Hugging Face Hub that create repositories and commit, list and read files."""

    server: HubServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("authorization") != "Bearer hf_right":
            self.reply({"error": "Invalid credentials"}, 401)
        elif self.path == "/api/repos/create":
            self.reply({"url": f"{self.server.url}/datasets/me/data", "name": "me/data"})
        elif "/preupload/" in self.path:
            known = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            files = [known | {"path": each["path"]} for each in json.loads(body)["files"]]
            self.reply({"files": files})
        else:
            for line in map(json.loads, body.splitlines()):
                path = line["value"].get("path")
                if line["key"] == "file":
                    self.server.files[path] = base64.b64decode(line["value"]["content"])
                elif line["key"] == "deletedFile":
                    del self.server.files[path]
                elif line["key"] == "deletedFolder":
                    kept = {k: v for k, v in self.server.files.items() if not k.startswith(path.rstrip("/") + "/")}
                    self.server.files = kept
            self.reply({"commitOid": "c" * 40, "commitUrl": f"{self.server.url}/datasets/me/data/commit/{'c' * 40}"})

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.headers.get("authorization") != "Bearer hf_right":
            self.reply({"error": "Invalid credentials"}, 401)
            return
        if "/tree/" in path:
            tree = [{"type": "file", "path": name, "size": 1, "oid": "0"} for name in self.server.files]
            self.reply(tree)
            return
        self.server.reads.append((self.command, name := path.partition("/resolve/main/")[2].partition("/resolve/")[0]))
        content = self.server.files[name or path.rpartition("c" * 40 + "/")[2]]
        etag = hashlib.sha1(content).hexdigest()
        self.reply(content, headers={"etag": f'"{etag}"', "x-repo-commit": "c" * 40})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.server.files.clear()
        self.reply({})

    def reply(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


class HubServer(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Hub)
        self.files: dict[str, bytes] = {}
        self.reads: list[tuple[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


EXAMPLES = [Example(id=id, input=f"in {id}", expected_output=id.upper()) for id in "ab"]


def test_a_dataset_on_the_hub_is_written_and_read_by_others(hub: HubServer) -> None:
    mine, others = (HuggingFaceDatasetRepository("me/data", "hf_right", True, endpoint=hub.url) for _ in range(2))
    mine.create_dataset(EXAMPLES, "letters", id="letters", labels={"x"})
    assert sorted(hub.files) == ["datasets/letters/letters.json", "datasets/letters/letters.jsonl"]
    assert list(others.dataset_ids()) == ["letters"]
    head = others.dataset("letters")
    assert head is not None
    assert (head.name, head.labels) == ("letters", {"x"})
    assert list(others.examples("letters", str, str)) == EXAMPLES
    assert others.example("letters", "b", str, str) == EXAMPLES[1]
    with pytest.raises(ValueError, match="has the id 'letters' already"):
        others.create_dataset([], "again", id="letters")
    others.delete_dataset("letters")
    assert hub.files == {}
    assert others.dataset("letters") is None


def test_a_cached_dataset_is_downloaded_once(hub: HubServer) -> None:
    for caching, downloads in ((True, 2), (False, 6)):
        HuggingFaceDatasetRepository("me/data", "hf_right", True, endpoint=hub.url).create_dataset(
            EXAMPLES, "letters", id=f"letters-{caching}"
        )
        reader = HuggingFaceDatasetRepository("me/data", "hf_right", True, caching, endpoint=hub.url)
        hub.reads.clear()
        for _ in range(3):
            assert len(list(reader.examples(f"letters-{caching}", str, str))) == 2
        assert sum(method == "GET" for method, _ in hub.reads) == downloads


def test_an_aggregation_on_the_hub_is_written_and_read_by_others(hub: HubServer) -> None:
    mine, others = (HuggingFaceAggregationRepository("me/data", "hf_right", False, endpoint=hub.url) for _ in range(2))
    overview: AggregationOverview[dict[str, float]] = AggregationOverview(
        evaluation_overviews=frozenset(),
        id="A/1",
        start=utc_now(),
        end=utc_now(),
        successful_evaluation_count=1,
        crashed_during_evaluation_count=0,
        description="mean",
        statistics={"mean": 0.5},
    )
    mine.store_aggregation_overview(overview)
    assert list(others.aggregation_overview_ids()) == ["A/1"]
    found = others.aggregation_overview("A/1", dict[str, float])
    assert found is not None
    assert found.statistics == {"mean": 0.5}
    assert others.aggregation_overview("B", dict[str, float]) is None
    mine.delete_repository()
    assert hub.files == {}


def test_text_files_of_a_repository_on_the_hub_are_written_read_and_removed(hub: HubServer) -> None:
    mine, others = (HuggingFaceDatasetRepository("me/data", "hf_right", True, endpoint=hub.url) for _ in range(2))
    path = Path("notes/a.json")
    mine.write_utf8(path, "ä", create_parents=True)
    assert hub.files == {"notes/a.json": "ä".encode()}
    assert others.read_utf8(path) == "ä"
    assert others.exists(path)
    assert others.exists(path.parent)
    assert others.file_names(Path("notes")) == ["a"]
    assert others.file_names(Path("notes"), "txt") == []
    others.remove_file(path)
    assert not mine.exists(path)
    with pytest.raises(FileNotFoundError, match=r"me/data on Hugging Face has no file notes/a\.json"):
        mine.read_utf8(path)


def test_a_refusal_of_the_hub_is_one_sentence(hub: HubServer) -> None:
    with pytest.raises(EngineError, match=r"^me/data on Hugging Face: Invalid credentials"):
        HuggingFaceDatasetRepository("me/data", "hf_wrong", True, endpoint=hub.url)
