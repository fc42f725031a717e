"""Apps made with NeMo Guardrails, recorded through the methods that it documents (`pip install nemoguardrails`).

    app = NeMoApp(rails, name="bot")
    with app as recording:
        rails.generate(messages=[{"role": "user", "content": "Who wrote Emma?"}])
    app.select_context()                    # the selector of the chunks that the knowledge base found

Recorded are the calls of the rails (`generate`, `generate_async`, `stream_async`), of their knowledge base, their
actions and their main model, each under the path of its component, and methods with `@instrument`. The main input is
the text of the last message of the user, the main output that of the answer; `calls[-1]` has the complete arguments and
return value.

Nothing of NeMo Guardrails is imported: the app has these methods, or is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

import orjson

from evaluand.apps.app import App
from evaluand.apps.components import Component, class_of, find_components, walk_objects
from evaluand.apps.instrumentation.steps import CompletedCall
from evaluand.apps.session import RecordingSession
from evaluand.core.errors import SpecError
from evaluand.core.selector import Selector
from evaluand.trace.record import CALL
from evaluand.trace.traces import Trace

RETRIEVE: Final = "search_relevant_chunks"
"""The method of a knowledge base that retrieves."""


class NeMoRecordingSession(RecordingSession):
    """What is recorded of rails; see `RecordingSession`."""

    def take(self, recorded: CompletedCall) -> None:
        super().take(recorded._replace(trace=_with_texts(recorded.trace)))


class NeMoApp(App):
    """The `LLMRails` of an app, whose calls can be recorded; see `App` for the arguments.

    Raises:
        SpecError: the object is no `LLMRails`: it has no method `generate` or `generate_async`.
    """

    def record(self, *, tags: str | None = None, meta: Any = None) -> NeMoRecordingSession:
        return NeMoRecordingSession(self, self.tags if tags is None else tags, meta)

    def select_context(self) -> Selector:
        """The selector of the texts that the app's knowledge base found.

        Raises:
            SpecError: the app has no knowledge base.
        """
        path = next((each.path for each in self.components if RETRIEVE in each.methods), None)
        if path is None:
            raise SpecError(f"{self.name} has no knowledge base; give the configuration documents")
        return Selector(f"__record__.app.{path}.{RETRIEVE}[:].rets[:].body")

    def _find_components(self) -> list[Component]:
        missing = [name for name in _ENTRIES[:2] if not _has_method(self.target, name)]
        if missing:
            raise SpecError(f"{class_of(self.target).__qualname__} has no method {missing[0]!r}; pass an LLMRails")
        methods = [
            f"{path}.{name}"
            for path, value in walk_objects(self.target)
            for name in (_ENTRIES if not path else _MODEL if path == "llm" else _PARTS)
            if _has_method(value, name)
        ]
        return find_components(self.target, [*methods, *(self._methods or ())])


_ENTRIES: Final = ("generate", "generate_async", "stream_async")
_MODEL: Final = ("generate_async", "stream_async")
_PARTS: Final = (RETRIEVE, "execute_action")


def _has_method(value: object, name: str) -> bool:
    return inspect.isfunction(inspect.getattr_static(class_of(value), name, None))


def _with_texts(trace: Trace) -> Trace:
    """The trace of a call with the text of the question as its input, and that of the answer as its output."""
    root = trace.root
    given, output = root.input, root.output
    question, answer = _last_text(given, "user"), _answer_text(output)
    rows = trace.rows()
    if (question is None and answer is None) or not rows or rows[0][0] != 0:
        return trace
    attributes = orjson.loads(orjson.dumps(rows[0][9]))
    call = attributes[CALL]
    if question is not None:
        call |= {"argument": None, "arguments": {call["argument"]: given, **call.get("arguments", {})}}
    if answer is not None:
        call["rets"] = output
    rows[0] = [*rows[0][:9], attributes, rows[0][10]]
    return Trace.from_rows(
        rows,
        name=root.name,
        input=given if question is None else question,
        output=output if answer is None else answer,
        start_ns=root.start_ns,
        end_ns=root.end_ns,
        status=root.status,
    )


def _last_text(messages: Any, role: str) -> str | None:
    """The text of the last message of a role; None where there are no messages."""
    if not isinstance(messages, list) or not all(isinstance(each, Mapping) for each in messages):
        return None
    texts = [each.get("content") for each in messages if each.get("role") == role]
    return texts[-1] if texts and isinstance(texts[-1], str) else None


def _answer_text(output: Any) -> str | None:
    """The text of a message, or of the messages of a response with details."""
    if not isinstance(output, Mapping):
        return None
    if isinstance(response := output.get("response"), str):
        return response
    return _last_text(response if isinstance(response, list) else [output], "assistant")
