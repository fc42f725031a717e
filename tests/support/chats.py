"""The scripted server of a chat model in a process of its own, for the fixture `chat`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluand.models.chat_model import ChatModel
from support.places import SUPPORT_FOLDER


class Chat:
    """A server that gives replies in turn; see `chat_server.py`.

    Attributes:
        url: of the endpoint.
        model: a model there.
    """

    def __init__(self, folder: Path, replies: Sequence[dict[str, Any]]) -> None:
        self._asked = folder / "asked.jsonl"
        self._asked.touch()
        (folder / "replies.json").write_text(json.dumps(replies))
        command = [sys.executable, SUPPORT_FOLDER / "chat_server.py", folder / "replies.json", self._asked]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/v1"
        self.model = ChatModel(self.url, "small", version="1")

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The requests, each with path, headers and body."""
        return [json.loads(line) for line in self._asked.read_text().splitlines()]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests."""
        return [request["body"] for request in self.asked]

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()
