"""A server on loopback that behaves as services of language models do, by the name of the model that is asked.

    with ScriptedServer() as server:
        ChatModel(server.url("chat"), "think_wrong", version="1").complete(…)
        server.asked["think_wrong"]    # the bodies of its requests

It speaks chat completions (`/v1/chat/completions`), Responses (`/v1/responses`), Anthropic's Messages (`/v1/messages`)
and Gemini (`/v1beta/models/NAME:generateContent`, `:streamGenerateContent?alt=sse`), each streamed if asked.
`behaviours.jsonl` declares each behaviour and its right result, `replies/` has answers in the manner of ten families:

    turns       answers in the order of the requests; the last one is repeated
    loop        answers in the order of the conversation: each is given only if all earlier ones came back unchanged,
                else the status and body of `unless`

An answer has `message`, in the form of its protocol (a message, the items of `output`, blocks of content, parts), with
`finish`, `usage`, and `more` fields beside it; or `body` as it is, text if it is no JSON; or `events` of a stream.
Further keys: `status`, `headers`, `echo` (a field of the request that becomes the text), `comments` in a stream,
`pause` (seconds before each event), `cut` (events after which the connection ends).
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

Body = dict[str, Any]

FOLDER: Final = Path(__file__).parent


def _rows(*paths: Path) -> list[Body]:
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").strip().split("\n")]


BEHAVIOURS: Final = _rows(FOLDER / "behaviours.jsonl")
REPLIES: Final = _rows(*sorted(FOLDER.glob("replies/*.jsonl")))
_ANSWER: Final = ("status", "body", "events")
_SCRIPTS: Final[dict[str, Body]] = {row["name"]: row for row in BEHAVIOURS} | {
    row["id"]: {"turns": [{key: row[key] for key in _ANSWER if key in row}]} for row in REPLIES
}
_USAGE: Final = {
    "chat": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
    "responses": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
    "anthropic": {"input_tokens": 20, "output_tokens": 5},
    "gemini": {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25},
}
_FINISH: Final = {"chat": "stop", "responses": "completed", "anthropic": "end_turn", "gemini": "STOP"}
_CHANGED: Final = {"status": 400, "body": {"error": {"message": "the assistant's message was changed", "code": 400}}}


class ScriptedServer:
    """The server, in a thread of this process.

    Args:
        scripts: further scripts by name.

    Attributes:
        asked: the bodies of the requests, by the name of the model.
        given: its answers, in the same way.
    """

    def __init__(self, scripts: Mapping[str, Body] = {}) -> None:
        self.asked: defaultdict[str, list[Body]] = defaultdict(list)
        self.given: defaultdict[str, list[Body]] = defaultdict(list)
        own = {"asked": self.asked, "given": self.given, "scripts": _SCRIPTS | scripts}
        self._http = _Loopback(("127.0.0.1", 0), type("Handler", (_Handler,), own))

    def url(self, protocol: str) -> str:
        """The endpoint up to its version."""
        return f"http://127.0.0.1:{self._http.server_port}/{'v1beta' if protocol == 'gemini' else 'v1'}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Loopback(ThreadingHTTPServer):
    request_queue_size = 128  # a connection that finds the queue full is tried again a second later
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that has read enough closes its end
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    asked: defaultdict[str, list[Body]]
    given: defaultdict[str, list[Body]]
    scripts: Mapping[str, Body]
    lock = threading.Lock()
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for headers and body; the second of two waits for the first to be acknowledged

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        kinds = {"completions": "chat", "responses": "responses", "messages": "anthropic"}
        protocol = kinds.get(path.rpartition("/")[2], "gemini")
        name = asked["model"] if protocol != "gemini" else path.rpartition("/")[2].partition(":")[0]
        with self.lock:
            self.asked[name].append(asked)
            answer = _answer(self.scripts[name], protocol, asked, len(self.asked[name]) - 1)
            self.given[name].append(answer)
        if "echo" in answer:
            answer = answer | {"message": {"role": "assistant", "content": f"{asked.get(answer['echo'])}"}}
        body = answer["body"] if "body" in answer else _body(protocol, name, answer)
        if answer.get("status", 200) != 200 or "body" in answer:
            self._send(answer, body if isinstance(body, str) else json.dumps(body))
        elif "events" in answer or asked.get("stream") or ":stream" in path:
            self._stream(answer, answer["events"] if "events" in answer else [*_EVENTS[protocol](body)])
        else:
            self._send(answer, json.dumps(body))

    def _send(self, answer: Body, content: str) -> None:
        self.send_response(answer.get("status", 200))
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content.encode()))}
        for header, value in {**headers, **answer.get("headers", {})}.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(content.encode())

    def _stream(self, answer: Body, events: list[Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events[: answer.get("cut")]:
            time.sleep(answer.get("pause", 0))
            kind = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            comment = ": PROCESSING\n\n" if answer.get("comments") else ""
            self._write(f"{comment}{kind}data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
        if "cut" in answer:
            self.close_connection = True  # without the empty chunk that ends an answer
        else:
            self._write(b"")

    def _write(self, chunk: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.flush()

    def log_message(self, *reported: Any) -> None:
        pass


def _answer(script: Body, protocol: str, asked: Body, n: int) -> Body:
    """The answer to the request of number `n` for a model."""
    if "loop" not in script:
        turns: list[Body] = script["turns"]
        return turns[min(n, len(turns) - 1)]
    given, back = script["loop"], _returned(protocol, asked)
    if protocol == "responses":  # the items of all messages follow one another; an answer here has one call at most
        n = sum(item.get("type") == "function_call_output" for item in back)
        is_kept = all(any(_is_kept(item, b) for b in back) for answer in given[:n] for item in answer["message"])
    else:
        n = len(back)
        is_kept = n < len(given) and all(map(_is_kept, (answer["message"] for answer in given), back))
    answer: Body = given[n] if is_kept else _CHANGED | script.get("unless", {})
    return answer


def _returned(protocol: str, asked: Body) -> list[Any]:
    """What a request has of earlier answers, in the form of the protocol."""
    if protocol == "responses":
        return [item for item in asked["input"] if isinstance(item, dict)]
    if protocol == "gemini":
        return [turn["parts"] for turn in asked["contents"] if turn.get("role") == "model"]
    said = [message for message in asked["messages"] if message["role"] == "assistant"]
    return said if protocol == "chat" else [message["content"] for message in said]


def _is_kept(given: Any, back: Any) -> bool:
    """Whether all of a message came back; fields that were null may be left out."""
    if isinstance(given, dict):
        fields = (name for name, value in given.items() if value is not None)
        return isinstance(back, dict) and all(_is_kept(given[name], back.get(name)) for name in fields)
    if isinstance(given, list):
        return isinstance(back, list) and len(given) == len(back) and all(map(_is_kept, given, back))
    return bool(given == back)


def _body(protocol: str, name: str, answer: Body) -> Body:
    """The body of an answer that is not streamed."""
    message, more = answer.get("message"), answer.get("more", {})
    finish, usage = answer.get("finish", _FINISH[protocol]), answer.get("usage", _USAGE[protocol])
    if protocol == "chat":
        choice = {"index": 0, "message": message, "finish_reason": finish} | more
        return {"id": "1", "object": "chat.completion", "model": name, "choices": [choice], "usage": usage}
    if protocol == "responses":
        body = {"id": "resp_1", "object": "response", "model": name, "status": finish, "output": message}
        return body | {"error": None, "incomplete_details": None, "usage": usage} | more
    if protocol == "anthropic":
        body = {"id": "msg_1", "type": "message", "role": "assistant", "model": name, "content": message}
        return body | {"stop_reason": finish, "stop_sequence": None, "usage": usage} | more
    content = {} if message is None else {"parts": message, "role": "model"}
    candidate = {"content": content, "finishReason": finish, "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": name} | more


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces that no tag fits into."""
    return (text[i : i + 5] for i in range(0, len(text), 5))


def _chat_events(body: Body) -> Iterator[Any]:
    head = {"id": "1", "object": "chat.completion.chunk", "model": body["model"]}

    def chunk(delta: Body, finish: str | None = None, **more: Any) -> Body:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish} | more]}

    choice = body["choices"][0]
    for field, value in choice["message"].items():
        if field == "tool_calls":
            for i, call in enumerate(value):
                yield chunk({field: [{"index": i} | call | {"function": call["function"] | {"arguments": ""}}]})
                for text in _pieces(call["function"]["arguments"]):
                    yield chunk({field: [{"index": i, "function": {"arguments": text}}]})
        elif isinstance(value, str) and field != "role":
            yield from (chunk({field: text}) for text in _pieces(value))
        else:
            yield chunk({field: value})
    yield chunk({}, choice["finish_reason"], **({"error": choice["error"]} if "error" in choice else {}))
    if body["usage"]:
        yield head | {"choices": [], "usage": body["usage"]}
    yield "[DONE]"


def _responses_events(body: Body) -> Iterator[Any]:
    yield {"type": "response.created", "response": body | {"status": "in_progress", "output": []}}
    for i, item in enumerate(body["output"]):
        yield {"type": "response.output_item.added", "output_index": i, "item": item}
        for part in item.get("content", ()) if item["type"] == "message" else ():
            yield from (
                {"type": "response.output_text.delta", "output_index": i, "content_index": 0, "delta": text}
                for text in _pieces(part.get("text", ""))
            )
        yield {"type": "response.output_item.done", "output_index": i, "item": item}
    yield {"type": f"response.{body['status']}", "response": body}


def _anthropic_events(body: Body) -> Iterator[Any]:
    usage = body["usage"] | {"output_tokens": 1}
    yield {"type": "message_start", "message": body | {"content": [], "stop_reason": None, "usage": usage}}
    yield {"type": "ping"}
    for i, block in enumerate(body["content"]):
        empty: Body = {"text": "", "thinking": "", "signature": ""}
        empty = {field: empty.get(field, value) for field, value in block.items()}
        deltas = [("text_delta", "text"), ("thinking_delta", "thinking"), ("signature_delta", "signature")]
        said = [(kind, field, text) for kind, field in deltas if field in block for text in _pieces(block[field])]
        if block["type"] == "tool_use":
            empty["input"] = {}
            said = [("input_json_delta", "partial_json", text) for text in _pieces(json.dumps(block["input"]))]
        yield {"type": "content_block_start", "index": i, "content_block": empty}
        for kind, field, text in said:
            yield {"type": "content_block_delta", "index": i, "delta": {"type": kind, field: text}}
        yield {"type": "content_block_stop", "index": i}
    delta = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": body["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def _gemini_events(body: Body) -> Iterator[Any]:
    if "candidates" not in body or not body["candidates"][0]["content"]:
        yield body
        return
    candidate = body["candidates"][0]
    for part in candidate["content"]["parts"]:
        texts = [*_pieces(part["text"])] if part.get("text") else [None]
        for i, text in enumerate(texts):
            said = part if text is None else part | {"text": text}
            if i < len(texts) - 1:  # the signature comes with the last piece
                said = {field: value for field, value in said.items() if field != "thoughtSignature"}
            content = {"content": {"parts": [said], "role": "model"}, "index": 0}
            yield body | {"candidates": [content]}
    yield body | {"candidates": [candidate | {"content": {"parts": [{"text": ""}], "role": "model"}}]}


_EVENTS: Final = {
    "chat": _chat_events,
    "responses": _responses_events,
    "anthropic": _anthropic_events,
    "gemini": _gemini_events,
}
