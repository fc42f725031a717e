"""Runs scripts that call `evaluand`: each call is forked from this process, which has imported what it needs."""

from __future__ import annotations

import importlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path

from support.forks import end_fork, start_fork
from support.fresh import WARM

PROGRAM = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
server.shutdown(socket.SHUT_WR)
sys.exit(int(server.recv(16) or 1))
"""


def run_script(
    command: list[str], folder: Path, env: Mapping[str, str], first: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command that finds its programs in `first`, beside this interpreter, and where the tests find theirs."""
    for module in WARM:
        importlib.import_module(module)
    with (
        tempfile.TemporaryDirectory() as place,
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        socket.socket(socket.AF_UNIX) as server,
    ):
        server.bind(f"{place}/socket")
        server.listen()
        program = Path(place, "evaluand")
        program.write_text(PROGRAM.format(python=sys.executable, address=f"{place}/socket"))
        program.chmod(0o755)
        path = [*([str(first)] if first else []), place, str(Path(sys.executable).parent), os.environ["PATH"]]
        process = subprocess.Popen(
            command, cwd=folder, env={**env, "PATH": os.pathsep.join(path)}, stdout=output, stderr=errors
        )
        forks = []
        while process.poll() is None:
            if select.select([server], [], [], 0.01)[0]:
                with server.accept()[0] as connection:
                    forks.append(start_fork(lambda connection=connection: _serve(connection)))
        for fork in forks:
            end_fork(fork)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, process.returncode, output.read(), errors.read())


def _serve(connection: socket.socket) -> None:
    message, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while part := connection.recv(1 << 16):
        message += part
    arguments, folder, env = json.loads(message)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    connection.sendall(str(call_evaluand(arguments, dict(enumerate(streams)))).encode())


def call_evaluand(arguments: list[str], streams: dict[int, int]) -> int:
    """The exit code of `evaluand`, called in this process with other streams."""
    for stream, descriptor in streams.items():
        os.dup2(descriptor, stream)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))
    sys.argv = ["evaluand", *arguments]
    try:
        from evaluand.cli import main

        main()
        return 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
