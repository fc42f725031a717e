"""What spans and their attributes are called by OpenTelemetry's GenAI conventions and by OpenInference.

A native attribute that both know, such as `model`, is told under both names and understood under either; all others
keep the names they have. Sources: the OpenTelemetry semantic conventions for generative AI, and the OpenInference
specification.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from evaluand.trace.export import json_text

OPENINFERENCE_KINDS = {
    "task": "CHAIN",
    "span": "CHAIN",
    "llm": "LLM",
    "retriever": "RETRIEVER",
    "tool": "TOOL",
    "agent": "AGENT",
    "embedding": "EMBEDDING",
    "reranker": "RERANKER",
    "guardrail": "GUARDRAIL",
    "evaluator": "EVALUATOR",
}
OPERATIONS = {
    "task": "invoke_workflow",
    "llm": "chat",
    "retriever": "retrieval",
    "tool": "execute_tool",
    "agent": "invoke_agent",
    "embedding": "embeddings",
}
NAMED = {"task": "gen_ai.workflow.name", "tool": "gen_ai.tool.name", "agent": "gen_ai.agent.name"}
NAMES = {
    "model": ("gen_ai.request.model", "llm.model_name"),
    "response_model": ("gen_ai.response.model",),
    "provider": ("gen_ai.provider.name", "llm.provider"),
    "input_tokens": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    "temperature": ("gen_ai.request.temperature",),
    "top_p": ("gen_ai.request.top_p",),
    "top_k": ("gen_ai.request.top_k",),
    "max_tokens": ("gen_ai.request.max_tokens",),
    "seed": ("gen_ai.request.seed",),
    "stop": ("gen_ai.request.stop_sequences",),
    "finish_reasons": ("gen_ai.response.finish_reasons",),
    "session_id": ("gen_ai.conversation.id", "session.id"),
}
OLDER = {
    "gen_ai.system": "provider",
    "gen_ai.usage.prompt_tokens": "input_tokens",
    "gen_ai.usage.completion_tokens": "output_tokens",
}


def of_span(kind: str, name: str) -> dict[str, Any]:
    """What sort of step a span is."""
    told = {"openinference.span.kind": OPENINFERENCE_KINDS.get(kind, "CHAIN")}
    if kind in OPERATIONS:
        told["gen_ai.operation.name"] = OPERATIONS[kind]
    if kind in NAMED:
        told[NAMED[kind]] = name
    if kind not in OPENINFERENCE_KINDS:
        told["evaluand.kind"] = kind
    return told


def of_value(where: str, value: Any) -> dict[str, Any]:
    """The input or output of a span: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return {f"{where}.value": plain_text(value), f"{where}.mime_type": "text/plain"}
    return {f"{where}.value": json_text(value).decode(), f"{where}.mime_type": "application/json"}


def of_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes under the names that the conventions give them, in the types that OpenTelemetry has.

    Example:
        >>> of_attributes({"model": "small", "hits": {"n": 2}})
        {'gen_ai.request.model': 'small', 'llm.model_name': 'small', 'hits': '{"n":2}'}
    """
    told: dict[str, Any] = {}
    for key, value in attributes.items():
        if key == "usage" and isinstance(value, Mapping):
            told |= of_attributes(value)
        elif value is not None:
            told |= dict.fromkeys(NAMES.get(key, (str(key),)), _primitive(value))
    tokens = [told.get(NAMES[name][0]) for name in ("input_tokens", "output_tokens")]
    if all(isinstance(n, int) for n in tokens):
        told["llm.token_count.total"] = sum(n for n in tokens if isinstance(n, int))
    return told


def understood(name: str, attributes: Mapping[str, Any]) -> tuple[str, Any, Any, dict[str, Any]]:
    """The kind, input, output and native attributes of a span that another system has told of.

    Where documents of a retriever are told with their texts, these are the output; `documents` is what else is told of
    each, in the same order, and `output.value` what the output was told to be.

    Args:
        name: the span's name.
        attributes: as they came, by dotted names.
    """
    rest = dict(attributes)
    kind = _kind(rest)
    given, gave = (_value(rest, where) for where in ("input", "output"))
    documents = _documents(rest)
    texts = [document.pop("content", None) for document in documents]
    if any(text is not None for text in texts):
        gave, whole = texts, gave
        if whole not in (None, "", texts):
            rest["output.value"] = whole
    if any(documents):
        rest["documents"] = documents
    named = NAMED.get(kind)
    if named and rest.get(named) == name:
        del rest[named]
    rest.pop("llm.token_count.total", None)
    native: dict[str, Any] = {}
    for key, value in rest.items():
        native.setdefault(_NATIVE.get(key, key), value)
    return kind, given, gave, native


def plain_text(text: str) -> str:
    """Text that can be written whatever it holds."""
    return text.encode("utf-8", "replace").decode()


_KINDS = {told: kind for kind, told in OPENINFERENCE_KINDS.items()} | {"CHAIN": "span"}
_BY_OPERATION = {told: kind for kind, told in OPERATIONS.items()} | {
    "text_completion": "llm",
    "generate_content": "llm",
    "create_agent": "agent",
}
_NATIVE = {told: name for name, names in NAMES.items() for told in names} | OLDER


def _kind(rest: dict[str, Any]) -> str:
    """The kind, whose attributes are taken out."""
    own, inference, operation, sort = (
        rest.pop(key, None) for key in ("evaluand.kind", "openinference.span.kind", "gen_ai.operation.name", "type")
    )
    if own:
        return str(own)
    if sort == "TASK_SPAN":
        return "task"
    by_inference = _KINDS.get(str(inference).upper(), "span")
    return _BY_OPERATION.get(str(operation), "span") if by_inference == "span" else by_inference


def _value(rest: dict[str, Any], where: str) -> Any:
    """The input or output, whose attributes are taken out; messages where there is no value of the whole."""
    mime, value, whole = (rest.pop(key, None) for key in (f"{where}.mime_type", f"{where}.value", where))
    if value is not None:
        return _parsed(value) if mime == "application/json" else value
    if whole is not None:
        return _parsed(whole)
    messages = rest.pop(f"gen_ai.{where}.messages", None)
    return None if messages is None else _parsed(messages)


_DOCUMENTS = "retrieval.documents"


def _documents(rest: dict[str, Any]) -> list[dict[str, Any]]:
    """What is told of each document, by dotted names or as a list, whose attributes are taken out."""
    found: dict[int, dict[str, Any]] = {}
    for key in [key for key in rest if key.startswith(f"{_DOCUMENTS}.")]:
        place, _, name = key.removeprefix(f"{_DOCUMENTS}.").partition(".")
        if place.isdecimal() and len(place) < 10 and name:
            found.setdefault(int(place), {})[name] = rest.pop(key)
    listed = rest.get(_DOCUMENTS)
    if isinstance(listed, list) and listed and not found and all(isinstance(each, Mapping) for each in listed):
        found = dict(enumerate(rest.pop(_DOCUMENTS)))
    return [_document(found[place]) for place in sorted(found)]


def _document(told: Mapping[str, Any]) -> dict[str, Any]:
    """A document by the names of its parts; metadata, which OpenInference writes as JSON, as they are."""
    inner = told.get("document")
    told = inner if isinstance(inner, Mapping) else told
    named = {str(name).removeprefix("document."): value for name, value in told.items()}
    return {name: _parsed(value) if name == "metadata" else value for name, value in named.items()}


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _primitive(value: Any) -> Any:
    if isinstance(value, bool | float):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, list | tuple) and value and all(type(item) is str for item in value):
        return [plain_text(item) for item in value]
    return json_text(value).decode()


def flat(attributes: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Attributes by dotted names, where they came nested."""
    for key, value in attributes.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + str(key), value
