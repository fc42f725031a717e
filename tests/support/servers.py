"""Real servers on loopback for tests of shared stores: PostgreSQL from its package, and moto's S3."""

from __future__ import annotations

import logging
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_USER = "postgres"  # the server refuses to run as root


class PostgresServer:
    """A cluster of its own, with one database for each `database()`.

    Attributes:
        port: on 127.0.0.1; a restarted server has the same one.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self.port = _free_port()
        self._n_databases = 0
        self._call("initdb", "--pgdata", folder / "data", "--auth", "trust", "--username", "evaluand", "--no-sync")
        self.start()

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        command = ("pg_ctl", "--pgdata", self._folder / "data", "--log", self._folder / "log", "--wait")
        for patience in range(100):  # backends of a killed server may hold its memory for a moment
            if self._call(*command, "start", "--options", options, check=patience == 99).returncode == 0:
                return
            time.sleep(0.1)

    def stop(self) -> None:
        self._call("pg_ctl", "--pgdata", self._folder / "data", "--mode", "immediate", "stop", check=False)

    def kill(self) -> None:
        """Kills the server with SIGKILL, and waits until its processes have ended, as they do by themselves."""
        pid, *others = self._processes()
        os.kill(pid, signal.SIGKILL)
        while any(map(_is_running, others)):
            time.sleep(0.02)
        self._lock.unlink()  # where nobody reaps the process, its number seems to be that of a server

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """The server accepts connections and answers nothing during the block."""
        processes = self._processes()
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)

    @property
    def _lock(self) -> Path:
        return self._folder / "data" / "postmaster.pid"

    def _processes(self) -> list[int]:
        pid = int(self._lock.read_text().split()[0])
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def database(self) -> str:
        """The address of a new database."""
        self._n_databases += 1
        name = f"test{self._n_databases}"
        place = ("--host", "127.0.0.1", "--port", self.port, "--username", "evaluand")
        self._call("createdb", *place, name)
        return f"postgresql://evaluand@127.0.0.1:{self.port}/{name}"

    def _call(self, program: str, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        command = [str(self._programs / program), *map(str, arguments)]
        if os.getuid() == 0:
            command = ["runuser", "-u", _USER, "--", *command]
        return subprocess.run(command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


@contextmanager
def open_postgres() -> Iterator[PostgresServer]:
    """A running server; skips the test if PostgreSQL is not installed."""
    programs = _find_programs()
    if programs is None:
        pytest.skip("needs PostgreSQL: apt install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="evaluand-postgres-", dir=_choose_parent()))
    if os.getuid() == 0:
        user = pwd.getpwnam(_USER)
        os.chown(folder, user.pw_uid, user.pw_gid)
    server = PostgresServer(programs, folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server."""
    with open_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3 server."""
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """An S3 server that this process reaches."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server


def _find_programs() -> Path | None:
    """The folder of PostgreSQL's programs, of the newest version that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def _choose_parent() -> str:
    """A folder for temporary files that every user can reach."""
    for place in (tempfile.gettempdir(), "/var/tmp", "/tmp"):
        path = Path(place).resolve()
        if all(each.stat().st_mode & 0o001 for each in (path, *path.parents)):
            return str(path)
    return tempfile.gettempdir()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class S3Server:
    """An S3 server whose buckets live in the memory of this process.

    Attributes:
        url: its endpoint.
        refuses: the share of requests that are answered with 503.
        ignores_conditions: whether objects are replaced that must not be.
        n_refused: how many were.
    """

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.refuses, self.n_refused, self.ignores_conditions = 0.0, 0, False
        self._random = random.Random(7)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # else each request is a line
        self._n_buckets = 0
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which clients reach it."""
        return {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
        }

    def bucket(self) -> str:
        """The address of a new bucket."""
        import boto3

        self._n_buckets += 1
        name = f"bucket{self._n_buckets}"
        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": "us-east-1"}
        boto3.client("s3", endpoint_url=self.url, **keys).create_bucket(Bucket=name)
        return f"s3://{name}"

    def stop(self) -> None:
        self._server.shutdown()

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self.refuses and self._random.random() < self.refuses:
            self.n_refused += 1
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", "0")])
            return [b""]
        if self.ignores_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        answer: Iterable[bytes] = self._app(environ, start_response)
        return answer
