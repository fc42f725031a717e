"""Modules beside those of the page, in Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.places import ROOT_FOLDER
from support.processes import open_process

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node.js: apt install nodejs")

_COMMAND = (str(NODE), "--input-type=module", "--eval")
_FOLDER = ROOT_FOLDER / "web/src"


def run_script(code: str, said: Any) -> Any:
    """What a module prints as JSON, with something as JSON at its standard input."""
    done = subprocess.run(
        [*_COMMAND, code], input=json.dumps(said), capture_output=True, text=True, cwd=_FOLDER, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def serve_script(code: str) -> Iterator[Callable[[Any], Any]]:
    """A function that asks a module, which prints one line of JSON for each that it reads."""
    with open_process(*_COMMAND, code, cwd=_FOLDER, stdin=subprocess.PIPE) as node:

        def ask(said: Any) -> Any:
            assert node.stdin is not None
            assert node.stdout is not None
            node.stdin.write(f"{json.dumps(said)}\n")
            node.stdin.flush()
            return json.loads(node.stdout.readline())

        yield ask
