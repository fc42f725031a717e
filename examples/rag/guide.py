"""A guide to an island: answers questions from passages that a search finds, with a small language model.

Plain Python: what is recorded of it is marked with `instrument`, which changes nothing where nobody records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluand import ChatModel, instrument
from evaluand.core.text.retrieval import EmbeddingIndex, Retriever, WordIndex
from evaluand.trace import UNTRACED, current_span

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a file next to this one."""
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


class Search:
    """Finds passages by their words or by their meaning."""

    def __init__(self, passages: Mapping[str, str], by: str) -> None:
        self.index: Retriever = WordIndex(passages) if by == "words" else EmbeddingIndex(passages)

    @instrument
    def search(self, question: str, limit: int) -> list[str]:
        return [found.text for found in self.index.search(question, limit)]


class Writer:
    """Writes an answer from passages."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    @instrument
    def write(self, question: str, passages: Sequence[str]) -> str:
        told = "\n".join(passages)
        asked = f"Answer the question from the text in one short sentence.\n\nText: {told}\n\nQuestion: {question}"
        return self.model.complete([{"role": "user", "content": asked}], current_span() or UNTRACED).text.strip()


class Guide:
    """The app: searches, then writes."""

    def __init__(self, model: ChatModel, by: str, limit: int = 2) -> None:
        passages = {row["id"]: f"{row['title']}. {row['text']}" for row in rows("passages.jsonl")}
        self.retriever, self.writer, self.limit = Search(passages, by), Writer(model), limit

    @instrument
    def ask(self, question: str) -> str:
        passages = self.retriever.search(question, self.limit)
        return self.writer.write(question, passages) if passages else "The handbook does not tell."
