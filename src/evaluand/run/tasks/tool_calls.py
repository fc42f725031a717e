"""Tools in a conversation: a model asks for calls of functions, reads what they return, and goes on.

Whatever goes wrong with a call (an unknown tool, arguments that do not fit, an error of the function) is its result for
the model, which may mend it, and marks the span of the call as failed.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from evaluand.core.errors import Skipped, TaskError, TransientError, nearest, storable_message
from evaluand.core.identity import json_text
from evaluand.models.chat_model import ChatModel
from evaluand.models.completion import Completion, ToolCall
from evaluand.models.tools import Tool
from evaluand.run.task import is_coroutine_function
from evaluand.trace.tracer import Tracer


async def converse(
    model: ChatModel,
    messages: Sequence[Mapping[str, Any]],
    tracer: Tracer,
    *,
    tools: Sequence[Tool],
    max_turns: int,
    schema: Any = None,
    sample: int = 0,
) -> Completion:
    """The reply of a model after all calls that it asks for.

    Args:
        messages: the conversation so far.
        tracer: opens the spans of requests, of the kind `llm`, and of calls, of the kind `tool`.
        max_turns: how often the model may be asked.
        schema: of the reply as data; see `ChatModel.complete`.
        sample: numbers repeats of the same conversation.

    Raises:
        TaskError: a request failed; or, with the code `max_turns`, the model asks for calls again and again.
        TransientError: a tool asked for another attempt.
        Skipped: a tool left the example out.
    """
    said = [dict(message) for message in messages]
    for _ in range(max_turns):
        completion = await model.complete_async(said, tracer, tools=tools, schema=schema, sample=sample)
        if not completion.tool_calls:
            return completion
        said.append(completion.message)
        for call in completion.tool_calls:  # one by one, in the order of the model: a call may need the one before
            result = await _result_of(call, tools, tracer)
            said.append({"role": "tool", "tool_call_id": call.id, "content": result})
    asked = ", ".join(dict.fromkeys(call.name for call in completion.tool_calls))
    raise TaskError(
        f"the model was asked {max_turns} times and still calls tools ({asked}) in place of a reply; raise max_turns,"
        " or tell it in the prompt when to stop",
        code="max_turns",
    )


async def _result_of(call: ToolCall, tools: Sequence[Tool], tracer: Tracer) -> str:
    """The result of a call for the model: what the tool returns, or what went wrong."""
    known = {tool.name: tool for tool in tools}
    try:
        with tracer.span(call.name, kind="tool", input=call.text if call.arguments is None else call.arguments) as span:
            if call.name not in known:
                there = f"there are {', '.join(known)}"
                raise TaskError(f"no tool is called {call.name!r}{nearest(call.name, known)}; {there}", code="tool")
            span.output = output = await _returned(known[call.name], call)
            return output if isinstance(output, str) else json_text(output)
    except (TransientError, Skipped):
        raise
    except Exception as error:
        if getattr(error, "stops", False):
            raise
        return f"error: {_describe(error)}"


def _describe(error: Exception) -> str:
    """What went wrong, for the model: an error of the tool's own code with its class, which a KeyError does not say."""
    message, name = storable_message(error), type(error).__name__
    if isinstance(error, TaskError) and message:
        return message
    return f"{name}: {message}" if message else name


async def _returned(tool: Tool, call: ToolCall) -> Any:
    """What a tool returns; a plain function runs in a thread, so that other conversations go on."""
    if tool.function is not None and is_coroutine_function(tool.function):
        return await tool.call(call.arguments)
    returned = await asyncio.to_thread(tool.call, call.arguments)
    return await returned if inspect.isawaitable(returned) else returned
