"""An OpenAI-compatible server on loopback that answers as it was told: `chat_server.py REPLIES ASKED`.

REPLIES is a file with a JSON list of replies to be given in turn, each an object with any of `text`, `finish_reason`,
`status`, `headers`, `body` (in place of a completion, as it is) and `delay` in seconds. When they are used up, a reply
is the first sentence of what was asked. ASKED is a file to which each request is appended as a line of JSON. The port
is printed when the server listens.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REPLIES: list[dict[str, Any]] = []
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with LOCK:
            with open(sys.argv[2], "a") as file:
                file.write(json.dumps({"path": self.path, "headers": dict(self.headers), "body": asked}) + "\n")
            reply = REPLIES.pop(0) if REPLIES else {}
        time.sleep(reply.get("delay", 0))
        body = reply.get("body", json.dumps(completion(asked, reply))).encode()
        self.send_response(reply.get("status", 200))
        for name, value in {"Content-Type": "application/json", **reply.get("headers", {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *reported: Any) -> None:
        pass


def completion(asked: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    said = asked["messages"][-1]["content"]
    text = reply.get("text", said.strip().partition(". ")[0])
    read = sum(len(message["content"].split()) for message in asked["messages"])
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": f"{asked['model']}-2026",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": reply.get("finish_reason", "stop"),
            }
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": len(text.split()),
            "total_tokens": read + len(text.split()),
        },
    }


if __name__ == "__main__":
    REPLIES += json.loads(Path(sys.argv[1]).read_text())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
