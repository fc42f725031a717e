"""Servers on loopback that speak OpenAI's protocols and reply as scripted.

For each line `["REPLIES", "ASKED"]` of its input it forks a server, which prints its process and its port when it
listens: that takes less than an interpreter for each. A line with the number of such a process ends it, and is answered
by an empty one. The end of the input ends all.

REPLIES is a file with a JSON list of replies to be given in turn, each an object with any of

    text, refusal, tool_calls       the reply; a call has `name`, `arguments` (text) and maybe `id`
    reasoning_tokens                how many tokens it reports for reasoning
    finish_reason                   `stop`, `length`, `content_filter` …, in the words of chat completions
    logprobs                        true: each word is a token of probability 0.5
    usage                           null: the server reports no tokens
    status, headers, body           an HTTP status, further headers, and a body in place of a reply, as it is
    delay                           seconds before it answers
    cut                             bytes of the body after which the connection ends
    events                          of a stream, as they are, in place of those of a reply

When they are used up, a reply is the first sentence of what was asked. Requests to `/responses` are answered as
Responses, all others as chat completions, with `stream` as server-sent events. ASKED is a file to which each request is
appended as a line of JSON, with the moment, `at`, of the monotonic clock.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

Body = dict[str, Any]

REPLIES: list[Body] = []
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    asked: ClassVar[str]
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for headers and body; the second of two waits for the first to be acknowledged

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        noted = {"path": self.path, "headers": dict(self.headers), "body": asked, "at": time.monotonic()}
        with LOCK:
            with open(self.asked, "a") as file:
                file.write(json.dumps(noted) + "\n")
            reply = REPLIES.pop(0) if REPLIES else {}
        time.sleep(reply.get("delay", 0))
        is_responses = self.path.partition("?")[0].endswith("/responses")
        if asked.get("stream") and "body" not in reply:
            lines = reply.get("events") or [*(response_events if is_responses else chat_events)(asked, reply)]
            return self._answer("".join(lines).encode(), reply, {"Content-Type": "text/event-stream; charset=utf-8"})
        made = response if is_responses else completion
        content = reply["body"] if "body" in reply else json.dumps(made(asked, reply))
        self._answer(content.encode(), reply, {"Content-Type": "application/json"})

    def _answer(self, content: bytes, reply: Body, headers: dict[str, str]) -> None:
        self.send_response(reply.get("status", 200))
        for name, value in {**headers, "Content-Length": str(len(content)), **reply.get("headers", {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: reply.get("cut", len(content))])
        if "cut" in reply:
            self.close_connection = True

    def log_message(self, *reported: Any) -> None:
        pass


def completion(asked: Body, reply: Body) -> Body:
    """The body of a chat completion."""
    message: Body = {"role": "assistant", "content": text_of(asked, reply), "refusal": reply.get("refusal")}
    if "tool_calls" in reply:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in calls_of(reply)
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish_of(reply), "logprobs": None}
    if reply.get("logprobs"):
        choice["logprobs"] = {"content": tokens_of(message["content"], asked.get("top_logprobs", 0)), "refusal": None}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "choices": [choice]}
    return body | {"model": f"{asked['model']}-2026"} | used(asked, reply, "prompt_tokens", "completion_tokens")


def chat_events(asked: Body, reply: Body) -> Iterator[str]:
    """The events of a streamed chat completion."""
    whole = completion(asked, reply)
    [choice] = whole["choices"]
    message, logprobs = choice["message"], choice["logprobs"]
    deltas: list[Body] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in words_of(message["content"])]
    deltas += [{"refusal": message["refusal"]}] if message["refusal"] else []
    for place, call in enumerate(message.get("tool_calls", ())):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        begun = {"index": place, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        rest = [{"index": place, "function": {"arguments": piece}} for piece in words_of(arguments)]
        deltas += [{"tool_calls": [piece]} for piece in (begun, *rest)]
    for delta in deltas:
        chunk = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}
        if logprobs and delta.get("content"):
            chunk["logprobs"] = {"content": [logprobs["content"].pop(0)], "refusal": None}
        yield sse({**whole, "object": "chat.completion.chunk", "choices": [chunk], "usage": None})
    ended = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"], "logprobs": None}
    yield sse({**whole, "object": "chat.completion.chunk", "choices": [ended], "usage": None})
    if (asked.get("stream_options") or {}).get("include_usage"):
        yield sse({**whole, "object": "chat.completion.chunk", "choices": []})
    yield "data: [DONE]\n\n"


def response(asked: Body, reply: Body) -> Body:
    """The body of a Response."""
    content: list[Body] = []
    if "tool_calls" not in reply and not reply.get("refusal"):
        text = text_of(asked, reply)
        tokens = tokens_of(text, asked.get("top_logprobs", 0)) if reply.get("logprobs") else []
        content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": tokens}]
    elif reply.get("refusal"):
        content = [{"type": "refusal", "refusal": reply["refusal"]}]
    output: list[Body] = [{"type": "reasoning", "id": "rs_1", "summary": []}]
    if content:
        said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        output.append({**said, "content": content})
    output += [
        {"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": arguments}
        for id, name, arguments in calls_of(reply)
    ]
    reason = {"length": "max_output_tokens"}.get(finish_of(reply), finish_of(reply))
    is_whole = reason in ("stop", "tool_calls")
    ended = {
        "status": "completed" if is_whole else "incomplete",
        "incomplete_details": None if is_whole else {"reason": reason},
        "error": None,
        "parallel_tool_calls": True,
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": asked.get("tools", []),
    }
    body = {"id": "resp_1", "object": "response", "created_at": 1, "output": output, **ended}
    return body | {"model": f"{asked['model']}-2026"} | used(asked, reply, "input_tokens", "output_tokens")


def response_events(asked: Body, reply: Body) -> Iterator[str]:
    """The events of a streamed Response."""
    whole = response(asked, reply)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    numbers = iter(range(10_000))
    yield named({"type": "response.created", "sequence_number": next(numbers), "response": begun})
    for place, item in enumerate(whole["output"]):
        at = {"output_index": place, "item_id": item["id"]}
        for part in item.get("content", ()) if item["type"] == "message" else ():
            for word in words_of(part.get("text", "")):
                delta = {"type": "response.output_text.delta", "delta": word, "content_index": 0, "logprobs": []}
                yield named({**delta, **at, "sequence_number": next(numbers)})
    yield named({"type": f"response.{whole['status']}", "sequence_number": next(numbers), "response": whole})


def text_of(asked: Body, reply: Body) -> str | None:
    if "tool_calls" in reply or reply.get("refusal"):
        return reply.get("text")
    said = asked["messages"] if "messages" in asked else asked["input"]
    return reply.get("text", plain(said[-1].get("content", "")).strip().partition(". ")[0])


def calls_of(reply: Body) -> list[tuple[str, str, str]]:
    return [
        (call.get("id", f"call_{place}"), call["name"], call["arguments"])
        for place, call in enumerate(reply.get("tool_calls", ()))
    ]


def finish_of(reply: Body) -> str:
    return reply.get("finish_reason", "tool_calls" if "tool_calls" in reply else "stop")


def tokens_of(text: str, top: int) -> list[Body]:
    """The words of a text as tokens of probability 0.5, each with other likely tokens."""
    return [
        {
            "token": word,
            "bytes": list(word.encode()),
            "logprob": math.log(0.5),
            "top_logprobs": [
                {"token": other, "bytes": list(other.encode()), "logprob": math.log(0.5 / (place + 1))}
                for place, other in enumerate((word, " other")[:top])
            ],
        }
        for word in words_of(text)
    ]


def used(asked: Body, reply: Body, read: str, written: str) -> Body:
    if reply.get("usage", ...) is None:
        return {}
    said = asked["messages"] if "messages" in asked else asked["input"]
    n_read = sum(len(plain(message.get("content")).split()) for message in said)
    n_written = len((text_of(asked, reply) or "").split()) + reply.get("reasoning_tokens", 0)
    details = {
        f"{read}_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        f"{written}_details": {"reasoning_tokens": reply.get("reasoning_tokens", 0)},
    }
    return {"usage": {read: n_read, written: n_written, "total_tokens": n_read + n_written, **details}}


def plain(content: Any) -> str:
    """The text of a message, whose parts may be other than text."""
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content)
    return content or ""


def words_of(text: str | None) -> list[str]:
    """The words of a text, each with the space before it."""
    words = (text or "").split(" ")
    return [f" {word}" if place else word for place, word in enumerate(words) if word or place]


def sse(data: Body) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def named(event: Body) -> str:
    return f"event: {event['type']}\n{sse(event)}"


def serve(replies: str, asked: str) -> None:
    REPLIES.extend(json.loads(Path(replies).read_text()))
    Handler.asked = asked
    ThreadingHTTPServer.request_queue_size = 128  # a connection that finds the queue full is tried again a second later
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sys.stdout.write(f"{os.getpid()} {server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


def end(server: int) -> None:
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)


if __name__ == "__main__":
    servers: set[int] = set()
    for line in sys.stdin:
        match json.loads(line):
            case [replies, asked]:
                server = os.fork()
                if not server:
                    os.close(0)
                    serve(replies, asked)
                servers.add(server)
            case server:
                end(server)
                servers.remove(server)
                sys.stdout.write("\n")
                sys.stdout.flush()
    for server in servers:
        end(server)
