"""Answers to questions about a document, or about passages that a retriever finds."""

import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.parameters import Within
from evaluand.core.text.retrieval import EmbeddingIndex, Passage, Retriever, WordIndex, require_embeddings
from evaluand.data.source import missing_column, read_column
from evaluand.data.sources import open_file
from evaluand.models.chat_model import ChatModel
from evaluand.run.parameters import Place, check_parameters
from evaluand.run.tasks.asking import AskingTask
from evaluand.run.tasks.chunk import Chunk, chunks
from evaluand.run.tasks.instruct import Instruct, Instruction
from evaluand.trace.spans import TaskSpan

_NO_ANSWER: Final = "NO ANSWER"
_INSTRUCTION: Final = (
    f"Answer the question from the text only, briefly. Reply {_NO_ANSWER} if the text does not answer it."
)
_CITED: Final = (
    "Answer the question from the numbered passages only, briefly, and cite the passages you use by their numbers, such"
    f" as [1]. Reply {_NO_ANSWER} if they do not answer it."
)
_CITATION: Final = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")
_PASSAGES: Final = 4  # of a document that is too long for the model


class DocumentQuestion(BaseModel):
    """A question about a document."""

    document: str
    question: str


class CitedPassage(BaseModel):
    """A passage that may support an answer.

    Attributes:
        id: its id in the retriever.
        score: the retriever's score for the question.
        cited: whether the answer cites it.
    """

    id: str
    text: str
    score: float
    cited: bool


class CitedAnswer(BaseModel):
    """An answer and the passages found for it.

    Attributes:
        answer: None if the passages do not answer the question, according to the model, or none was found.
        sources: best first; citations in the answer number them from 1.
    """

    answer: str | None
    sources: list[CitedPassage]


@dataclass(frozen=True)
class QuestionAnswering(AskingTask[DocumentQuestion, str | None]):
    """A model's answer to a question about a document; None if the model finds none.

    Of a document longer than `max_length`, the model gets the passages that share most words with the question.

    Args:
        model: the model that answers.
        max_length: the largest number of characters of a document for the model.
        output_schema: what each output must be; see `Task`.
    """

    model: ChatModel
    _: KW_ONLY
    max_length: Annotated[int, Within(1)] = 6000
    output_schema: Any = None

    kind = "question_answering"

    def __post_init__(self) -> None:
        check_parameters(self)

    def do_run(self, input: DocumentQuestion, task_span: TaskSpan) -> str | None:
        text = input.document
        if len(text) > self.max_length:
            found = _search(WordIndex(self._chunk.run(text, task_span)), input.question, _PASSAGES, task_span)
            if not found:
                return None
            text = "\n…\n".join(passage.text for passage in sorted(found, key=lambda passage: int(passage.id)))
        return _answer(self.model, _INSTRUCTION, text, input.question, task_span)

    @property
    def _answer_spec(self) -> dict[str, Any]:
        return {"behaviour": self.behaviour, "chunk": Chunk.behaviour, "max_length": self.max_length}

    @cached_property
    def _chunk(self) -> Chunk:
        return Chunk(max(self.max_length // _PASSAGES, 1))


@dataclass(frozen=True)
class RetrieverQuestionAnswering(AskingTask[str, CitedAnswer]):
    """A model's answer to a question from the passages that a retriever finds, with the passages it cites.

    Args:
        model: the model that answers.
        retriever: finds passages: anything with `search(query, limit)`. In an experiment file: `search.py:index`.
        path: instead of a retriever, a file of documents, one per row.
        text: the column of the file with the documents.
        id: the column with their ids; by default their row numbers, from 0.
        index: how the documents are searched: by `words`, or by `embeddings` (the extra `embeddings`).
        max_length: the largest number of characters of a passage. In a longer document, the id of a passage is that of
            the document, `#`, and the number of the passage, from 0.
        limit: the number of passages for the model.
        output_schema: what each output must be; see `Task`.

    Raises:
        ParameterError: lists all invalid parameters.
    """

    model: ChatModel
    retriever: Any = None
    _: KW_ONLY
    path: str | None = None
    text: str = "text"
    id: str | None = None
    index: Literal["words", "embeddings"] = "words"
    max_length: Annotated[int, Within(1)] = 1000
    limit: Annotated[int, Within(1)] = 4
    output_schema: Any = None

    kind = "retriever_question_answering"

    def __post_init__(self) -> None:
        faults: list[tuple[Place, str]] = []
        if (self.retriever is None) == (self.path is None):
            faults.append((("path",), "needs either path, a file of documents, or retriever"))
        elif self.retriever is not None and not isinstance(self.retriever, Retriever):
            faults.append((("retriever",), "has no search(query, limit)"))
        check_parameters(self, faults)

    def prepare(self, dataset: Any) -> None:
        """Raise a SpecError if the model cannot be used, a DataError if there are no documents."""
        super().prepare(dataset)
        _ = self._retriever

    def do_run(self, input: str, task_span: TaskSpan) -> CitedAnswer:
        found = _search(self._retriever, input, self.limit, task_span)
        if not found:
            return CitedAnswer(answer=None, sources=[])
        numbered = "\n\n".join(f"[{number}] {passage.text.strip()}" for number, passage in enumerate(found, 1))
        answer = _answer(self.model, _CITED, numbered, input, task_span)
        cited = _cited_numbers(answer or "", len(found), task_span)
        sources = [
            CitedPassage(id=passage.id, text=passage.text, score=passage.score, cited=number in cited)
            for number, passage in enumerate(found, 1)
        ]
        return CitedAnswer(answer=answer, sources=sources)

    def identify(self) -> Identity:
        own = super().identify()
        if self.retriever is None or "chat" not in own.spec:
            return own
        return own.joined({"retriever": code_identity("retriever", self.retriever)})

    @property
    def _answer_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"behaviour": self.behaviour, "limit": self.limit}
        if self.path is None:
            return spec
        search = {"text": self.text, "id": self.id, "index": self.index, "max_length": self.max_length}
        return {**spec, **search, "chunk": Chunk.behaviour, "file": identity.digest_of_file(self._file)}

    @property
    def _file(self) -> Path:
        path = Path(self.path or "")
        if not path.is_file():
            raise DataError(f"{path}: no such file")
        return path

    @cached_property
    def _retriever(self) -> Retriever:
        if self.path is None:
            return self.retriever  # type: ignore[no-any-return]
        if self.index == "embeddings":
            require_embeddings(self.kind)
        passages = {
            f"{document}#{number}" if len(parts) > 1 else document: part
            for document, parts in self._documents()
            for number, part in enumerate(parts)
        }
        if not passages:
            raise DataError(f"{self.path}: the file holds no documents")
        return WordIndex(passages) if self.index == "words" else EmbeddingIndex(passages)

    def _documents(self) -> Iterator[tuple[str, list[str]]]:
        """The passages of each document of the file, by its id."""
        source, columns = open_file(self._file), [*filter(None, (self.text, self.id))]
        for name in columns:
            if name not in source.schema.names:
                raise SpecError(f"{self.path}: {missing_column(name, source.schema.names)}")
        seen: set[str] = set()
        read = (zip(*(read_column(batch, name) for name in columns), strict=True) for batch in source.batches())
        for number, (text, *ids) in enumerate(chain.from_iterable(read)):
            document = str(ids[0] if ids else number)
            if not isinstance(text, str) or None in ids:
                id = f", and an id in {self.id!r}" if ids else ""
                raise DataError(f"{source.where(number)}: a document needs a text in {self.text!r}{id}")
            if document in seen:
                raise DataError(f"{source.where(number)}: the id {document!r} occurs twice; give each document its own")
            seen.add(document)
            yield document, [*chunks(text, self.max_length)]


def _search(retriever: Retriever, query: str, limit: int, task_span: TaskSpan) -> list[Passage]:
    with task_span.span("search", kind="retriever", input=query, limit=limit) as span:
        found = [Passage(*each) for each in retriever.search(query, limit)]
        span.output = [passage._asdict() for passage in found]
    return found


def _answer(model: ChatModel, instruction: str, text: str, question: str, task_span: TaskSpan) -> str | None:
    request = Instruction(instruction=instruction, context=f"{text}\n\nQuestion: {question}")
    reply = Instruct(model).run(request, task_span).strip()
    return None if reply.strip(" .!*\"'").upper() == _NO_ANSWER else reply


def _cited_numbers(answer: str, n: int, task_span: TaskSpan) -> set[int]:
    """The numbers of the passages that an answer cites; unknown numbers are logged."""
    numbers = {int(number) for found in _CITATION.findall(answer) for number in found.split(",")}
    unknown = sorted(number for number in numbers if not 1 <= number <= n)
    if unknown:
        task_span.log("cites passages that it was not given", unknown)
    return numbers.difference(unknown)
