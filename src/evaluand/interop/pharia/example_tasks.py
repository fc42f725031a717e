"""The SDK's tasks that come with it, over the native ones: chunks, the language of a text, instructions.

A model is a `evaluand.ChatModel`: any endpoint that speaks the protocol of OpenAI's chat completions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from evaluand.core.errors import SpecError
from evaluand.core.text.retrieval import count_tokens
from evaluand.interop.pharia.languages import NAMES
from evaluand.interop.pharia.tasks import Task
from evaluand.run.tasks.chat import ChatModel
from evaluand.run.tasks.chunk import Chunk as NativeChunk
from evaluand.run.tasks.detect_language import DetectLanguage as NativeDetectLanguage
from evaluand.run.tasks.instruct import Instruct as NativeInstruct
from evaluand.run.tasks.instruct import Instruction
from evaluand.trace.spans import TaskSpan

Config = TypeVar("Config")
TextChunk = str


class ChunkInput(BaseModel):
    """A text that is to be divided."""

    text: str


class ChunkOutput(BaseModel):
    """The chunks of a text, which joined are the text."""

    chunks: Sequence[TextChunk]


class ChunkWithStartEndIndices(BaseModel):
    """A chunk and where it stands in its text, from its first character to behind its last."""

    chunk: TextChunk
    start_index: int
    end_index: int


class ChunkWithIndicesOutput(BaseModel):
    """The chunks of a text and where they stand."""

    chunks_with_indices: Sequence[ChunkWithStartEndIndices]


class Chunk(Task[ChunkInput, ChunkOutput]):
    """Divides a text into chunks of so many tokens at most, where it pauses.

    Args:
        model: what has `tokenize(text)`; tokens of any other are counted as Llama 2 has them (the extra `embeddings`).
        max_tokens_per_chunk: how many tokens.
    """

    def __init__(self, model: Any, max_tokens_per_chunk: int = 512) -> None:
        tokenize = getattr(model, "tokenize", None)
        count = (lambda text: len(tokenize(text))) if tokenize else count_tokens
        self._chunk = NativeChunk(max_tokens_per_chunk, count)

    def do_run(self, input: ChunkInput, task_span: TaskSpan) -> ChunkOutput:
        return ChunkOutput(chunks=self._chunk.do_run(input.text, task_span))


class ChunkWithIndices(Task[ChunkInput, ChunkWithIndicesOutput]):
    """Chunks as `Chunk` makes them, and where they stand in the text."""

    def __init__(self, model: Any, max_tokens_per_chunk: int = 512) -> None:
        self._chunk = Chunk(model, max_tokens_per_chunk)

    def do_run(self, input: ChunkInput, task_span: TaskSpan) -> ChunkWithIndicesOutput:
        made: list[ChunkWithStartEndIndices] = []
        for chunk in self._chunk.run(input, task_span).chunks:
            start = made[-1].end_index if made else 0
            made.append(ChunkWithStartEndIndices(chunk=chunk, start_index=start, end_index=start + len(chunk)))
        return ChunkWithIndicesOutput(chunks_with_indices=made)


class LanguageNotSupportedError(SpecError, ValueError):
    """There is nothing for this language."""


@dataclass(frozen=True)
class Language:
    """A language by its code of ISO 639-1."""

    iso_639_1: str

    def get_name(self) -> str | None:
        """What it is called in English; None of a code that no language has.

        Example:
            >>> Language("de").get_name(), Language("xx").get_name()
            ('German', None)
        """
        return NAMES.get(self.iso_639_1.lower())

    def language_config(self, configs: Mapping[Language, Config]) -> Config:
        """What there is for this language.

        Raises:
            LanguageNotSupportedError: there is nothing for it.
        """
        if self not in configs:
            known = ", ".join(language.iso_639_1 for language in configs)
            raise LanguageNotSupportedError(f"there is nothing for {self.iso_639_1}; there is for {known or 'none'}")
        return configs[self]


class DetectLanguageInput(BaseModel):
    """A text, and the languages that it may be in."""

    text: str
    possible_languages: Sequence[Language]


class DetectLanguageOutput(BaseModel):
    """The language of a text; None where it is none of those that it may be in."""

    best_fit: Language | None


class DetectLanguage(Task[DetectLanguageInput, DetectLanguageOutput]):
    """Tells which of some languages a text is in.

    Args:
        threshold: the probability that it must reach, among all languages.
    """

    def __init__(self, threshold: float = 0.5) -> None:
        self._detect = NativeDetectLanguage(threshold=threshold)

    def do_run(self, input: DetectLanguageInput, task_span: TaskSpan) -> DetectLanguageOutput:
        code = self._detect.do_run(input.text, task_span)
        fit = next((language for language in input.possible_languages if language.iso_639_1 == code), None)
        return DetectLanguageOutput(best_fit=fit)


class InstructInput(BaseModel):
    """What a model is to do, with what, and in how many tokens."""

    instruction: str
    input: str | None = None
    response_prefix: str | None = None
    maximum_tokens: int = 128


class CompletionResult(BaseModel):
    """A reply and why it ended."""

    completion: str | None = None
    finish_reason: str | None = None


class CompleteOutput(BaseModel):
    """What a model replied, and how many tokens it read and wrote; 0 where it does not tell."""

    model_version: str
    completions: Sequence[CompletionResult]
    num_tokens_prompt_total: int
    num_tokens_generated: int

    @property
    def completion(self) -> str:
        """The reply."""
        return self.completions[0].completion or ""

    @property
    def generated_tokens(self) -> int:
        """How many tokens the model wrote."""
        return self.num_tokens_generated


class Instruct(Task[InstructInput, CompleteOutput]):
    """A model's reply to an instruction; one that the maximum of tokens has cut off is kept.

    A prefix of the reply is sent as the beginning of the model's own message, which most servers go on with; what is
    given back is what follows it.

    Args:
        model: what replies.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self._limited: dict[int, ChatModel] = {}

    def do_run(self, input: InstructInput, task_span: TaskSpan) -> CompleteOutput:
        prefix = input.response_prefix or ""
        limit = input.maximum_tokens
        model = self._limited.setdefault(limit, replace(self.model, max_tokens=limit, cut_off="keep"))
        asked = Instruction(instruction=input.instruction, context=input.input)
        begun = [{"role": "assistant", "content": prefix}] if prefix else []
        found = model.complete([*NativeInstruct(model).messages(asked), *begun], task_span)
        return CompleteOutput(
            model_version=found.model or model.name,
            completions=[
                CompletionResult(completion=found.text.removeprefix(prefix), finish_reason=found.finish_reason)
            ],
            num_tokens_prompt_total=found.input_tokens or 0,
            num_tokens_generated=found.output_tokens or 0,
        )
