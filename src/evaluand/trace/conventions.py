"""Names of spans and attributes in OpenTelemetry's GenAI conventions and in OpenInference.

A native attribute with a name in both, such as `model`, is written under both names and read from either; other
attributes keep their names. Sources: the OpenTelemetry semantic conventions for generative AI, and the OpenInference
specification.
"""

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
NAME_ATTRIBUTES = {"task": "gen_ai.workflow.name", "tool": "gen_ai.tool.name", "agent": "gen_ai.agent.name"}
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
OLD_NAMES = {
    "gen_ai.system": "provider",
    "gen_ai.usage.prompt_tokens": "input_tokens",
    "gen_ai.usage.completion_tokens": "output_tokens",
}
GRADE_EVENT = "gen_ai.evaluation.result"
"""The event of a grade, on a span of what was graded; the names of its attributes begin with `GRADE`."""
GRADE = "gen_ai.evaluation."
OWN = "evaluand."
"""What the names of attributes begin with that the conventions lack."""
COLUMN = f"{OWN}score.column."
"""What the names of attributes begin with that are columns of a scorer: its own ones, and `data` as JSON."""


def span_attributes(kind: str, name: str) -> dict[str, Any]:
    """The attributes that state the kind of a span."""
    found = {"openinference.span.kind": OPENINFERENCE_KINDS.get(kind, "CHAIN")}
    if kind in OPERATIONS:
        found["gen_ai.operation.name"] = OPERATIONS[kind]
    if kind in NAME_ATTRIBUTES:
        found[NAME_ATTRIBUTES[kind]] = name
    if kind not in OPENINFERENCE_KINDS:
        found["evaluand.kind"] = kind
    return found


def value_attributes(where: str, value: Any) -> dict[str, Any]:
    """Attributes for the input or output of a span: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return {f"{where}.value": plain_text(value), f"{where}.mime_type": "text/plain"}
    return {f"{where}.value": json_text(value).decode(), f"{where}.mime_type": "application/json"}


def named_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes under the names of the conventions, in types that OpenTelemetry accepts.

    Example:
        >>> named_attributes({"model": "small", "hits": {"n": 2}})
        {'gen_ai.request.model': 'small', 'llm.model_name': 'small', 'hits': '{"n":2}'}
    """
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        if key == "usage" and isinstance(value, Mapping):
            found |= named_attributes(value)
        elif value is not None:
            found |= dict.fromkeys(NAMES.get(key, (str(key),)), _primitive(value))
    tokens = [found.get(NAMES[name][0]) for name in ("input_tokens", "output_tokens")]
    if all(isinstance(n, int) for n in tokens):
        found["llm.token_count.total"] = sum(n for n in tokens if isinstance(n, int))
    return found


def read_attributes(name: str, attributes: Mapping[str, Any]) -> tuple[str, Any, Any, dict[str, Any]]:
    """The kind, input, output and native attributes of a span written by another system, by its dotted attributes.

    If the documents of a retriever have texts, the output is the list of texts; `documents` holds the other attributes
    of each in the same order, and `output.value` the original output.
    """
    rest = dict(attributes)
    kind = _kind(rest)
    input, output = (_value(rest, where) for where in ("input", "output"))
    documents = _documents(rest)
    texts = [document.pop("content", None) for document in documents]
    if any(text is not None for text in texts):
        output, original = texts, output
        if original not in (None, "", texts):
            rest["output.value"] = original
    if any(documents):
        rest["documents"] = documents
    name_attribute = NAME_ATTRIBUTES.get(kind)
    if name_attribute and rest.get(name_attribute) == name:
        del rest[name_attribute]
    rest.pop("llm.token_count.total", None)
    native: dict[str, Any] = {}
    for key, value in rest.items():
        native.setdefault(_NATIVE.get(key, key), value)
    return kind, input, output, native


def plain_text(text: str) -> str:
    """Text that can always be encoded: lone surrogates are replaced."""
    return text.encode("utf-8", "replace").decode()


_KINDS = {value: kind for kind, value in OPENINFERENCE_KINDS.items()} | {"CHAIN": "span"}
_BY_OPERATION = {operation: kind for kind, operation in OPERATIONS.items()} | {
    "text_completion": "llm",
    "generate_content": "llm",
    "create_agent": "agent",
}
_NATIVE = {foreign: name for name, names in NAMES.items() for foreign in names} | OLD_NAMES


def _kind(rest: dict[str, Any]) -> str:
    """The kind; removes its attributes from `rest`."""
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
    """The input or output, or its messages; removes the attributes from `rest`."""
    mime, value, plain_value = (rest.pop(key, None) for key in (f"{where}.mime_type", f"{where}.value", where))
    if value is not None:
        return _parse_json(value) if mime == "application/json" else value
    if plain_value is not None:
        return _parse_json(plain_value)
    messages = rest.pop(f"gen_ai.{where}.messages", None)
    return None if messages is None else _parse_json(messages)


_DOCUMENTS = "retrieval.documents"


def _documents(rest: dict[str, Any]) -> list[dict[str, Any]]:
    """The attributes of each document, given by dotted names or as a list; removes them from `rest`."""
    found: dict[int, dict[str, Any]] = {}
    for key in [key for key in rest if key.startswith(f"{_DOCUMENTS}.")]:
        place, _, name = key.removeprefix(f"{_DOCUMENTS}.").partition(".")
        if place.isdecimal() and len(place) < 10 and name:
            found.setdefault(int(place), {})[name] = rest.pop(key)
    items = rest.get(_DOCUMENTS)
    if isinstance(items, list) and items and not found and all(isinstance(item, Mapping) for item in items):
        found = dict(enumerate(rest.pop(_DOCUMENTS)))
    return [_document(found[place]) for place in sorted(found)]


def _document(document: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a document by name; metadata, which OpenInference writes as JSON, are parsed."""
    inner = document.get("document")
    document = inner if isinstance(inner, Mapping) else document
    parts = {str(name).removeprefix("document."): value for name, value in document.items()}
    return {name: _parse_json(value) if name == "metadata" else value for name, value in parts.items()}


def _parse_json(value: Any) -> Any:
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


def flatten(attributes: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested attributes by dotted names."""
    for key, value in attributes.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + str(key), value
