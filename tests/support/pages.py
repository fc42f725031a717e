"""Runs a page of the documentation as its reader would: block by block, in one folder.

- A block whose first line is a comment with a file's name (`# bot.py`), or which follows its name in
  bold on a line of its own, is that file.
- Other `python` blocks are executed in one namespace. A `text` block is what the Python since the last one printed.
- `sh` blocks are executed line by line. A `console` block is what the last of them printed; `# exits 3` at the end
  of a line is its exit code.
- All other blocks (`yaml`, `json`, `csv`, `toml`) must be files, unless test_docs.py lists them with a reason.

Port 8000 stands for a free port, so that pages with servers can run at once.

`…` in an expected output matches anything. Blanks and line breaks do not count, since tables go by the width of the
terminal.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import socketserver
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from support.forks import call_in_fork
from support.fresh import run_python
from support.places import ROOT_FOLDER
from support.warm_program import call_evaluand, run_script

FENCE = re.compile(r"^(?:\*\*`(?P<named>[^`\s]+)`\*\*\n+)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
FILE_NAME = re.compile(r"(?:#|//) (\S+\.\w+)\n")


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    file: str | None
    line: int

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]


def blocks_of(page: str) -> list[Block]:
    text = (ROOT_FOLDER / page).read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        name = FILE_NAME.match(fence["text"])
        file = fence["named"] or (name[1] if name else None)
        found.append(Block(fence["language"], fence["text"], file, text.count("\n", 0, fence.start()) + 1))
    return found


def run_page(page: str, folder: Path, skipped: list[str]) -> None:
    """Run all blocks but those whose first line is in `skipped`, and compare their output with what the page shows."""
    blocks = [block for block in blocks_of(page) if block.first_line not in skipped]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ported = [block._replace(text=re.sub(r"\b8000\b", port, block.text)) for block in blocks]
    _execute_in("execute", [[page, *block] for block in ported], folder)


def run_commands(lines: list[str], folder: Path) -> list[str]:
    """What each line of shell prints."""
    return json.loads(_execute_in("execute_commands", lines, folder))


def _execute_in(function: str, todo: list[Any], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT_FOLDER / "tests"), "COLUMNS": "120"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    code = f"import sys; from support.pages import {function}; {function}(sys.argv[1])"
    done = run_python(code, json.dumps(todo), env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def execute_commands(todo: str) -> None:
    sys.stdout.write(json.dumps([_output_of_command(line, "") for line in json.loads(todo)]))


def execute(todo: str) -> None:
    """Run blocks, as JSON, in this process and the current folder."""
    _make_servers_quick()
    namespace = _as_main()
    printed, at = {"python": "", "sh": ""}, ""
    for page, *fields in json.loads(todo):
        block = Block(*fields)
        at = f"{page}:{block.line}"
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed["python"] += _output_of_python(block.text, at, namespace)
        elif block.language == "sh":
            printed["sh"] = "".join(_output_of_command(line, at) for line in _commands(block.text))
        elif block.language in ("text", "console"):
            language = "python" if block.language == "text" else "sh"
            compare_output(block.text, printed[language], at)
            printed[language] = ""
        else:
            raise AssertionError(f"{at}: a block of {block.language} that is no file")
    if printed["python"]:
        raise AssertionError(f"{at}: printed and not shown: {printed['python']}")


def _make_servers_quick() -> None:
    """Pages show servers that are as short as may be; their second packet of a reply, and every sixth client, wait."""
    socketserver.StreamRequestHandler.wbufsize = -1
    socketserver.TCPServer.request_queue_size = 128


def _as_main() -> dict[str, object]:
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    return module.__dict__


def _output_of_python(code: str, at: str, namespace: dict[str, object]) -> str:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        sys.stdout.flush()
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            exec(compile(code, f"<{at}>", "exec"), namespace)
        finally:
            sys.stdout.flush()
            os.dup2(before, 1)
            os.close(before)
        file.seek(0)
        return file.read()


def _commands(text: str) -> list[str]:
    """Lines, with those that go on after a backslash, or within quotes or a here-document, as one."""
    lines, part = [], ""
    for line in text.splitlines():
        part += line + "\n"
        if not line.endswith("\\") and part.count("'") % 2 == 0:
            lines.append(part)
            part = ""
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _output_of_command(command: str, at: str) -> str:
    comment = re.search(r"\s# exits (\d+)", command)
    expected = int(comment[1]) if comment else 0
    simple = re.match(r"evaluand [^|>;&$<*`]*$", re.sub(r"'[^']*'|\"[^\"]*\"", "", command))
    if simple:
        code, output, errors = _forked([part for part in shlex.split(command, comments=True) if part != "\n"][1:])
    else:
        done = run_script(["bash", "-euc", command], Path.cwd(), os.environ)
        code, output, errors = done.returncode, done.stdout, done.stderr
    assert code == expected, f"{at}: {command} exits {code}, not {expected}\n{output}{errors}"
    return output


def _forked(arguments: list[str]) -> tuple[int, str, str]:
    """Exit code, output and errors of `evaluand`, called in a process forked from this one."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "output"), Path(folder, "errors")]
        sys.stdout.flush()
        streams = {stream: os.open(path, os.O_WRONLY | os.O_CREAT) for stream, path in enumerate(paths, 1)}
        code = call_in_fork(lambda: os._exit(call_evaluand(arguments, streams)))
        for descriptor in streams.values():
            os.close(descriptor)
        return code, *(path.read_text(encoding="utf-8") for path in paths)


def compare_output(shown: str, printed: str, at: str) -> None:
    """Fails where the output that a page shows differs from what was printed."""
    pattern = re.escape(" ".join(shown.split())).replace("…", ".*")
    if not re.fullmatch(pattern, " ".join(printed.split())):
        pytest.fail(f"{at}: the page shows\n{shown}\nand this was printed:\n{printed}", pytrace=False)
