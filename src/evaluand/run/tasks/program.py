"""Programs: any command-line program that answers JSON lines, as a task.

For each call the program reads one line from its standard input and writes one to its standard output, at once:

    {"index":0,"id":"q1","replication":0,"seed":8123,"input":"6 x 7?"}
    {"output":"42"}      or      {"error":{"type":"Overloaded","message":"try later","code":"503"}}

One process serves one call at a time and is reused for the next, so there are at most as many processes as concurrent
calls. A process that broke the protocol, took too long or died is replaced, since its later output could not be
assigned to calls: each of these costs one example.

Each process leads its own process group, which is terminated as a whole, including the program's helpers; on Linux also
those that left the group, which a variable of their environment gives away. A program sees the end of its input when
the run ends, and also when evaluand is killed.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar, cast

import orjson

from evaluand.core import identity
from evaluand.core.errors import SpecError, TaskError, TaskTimeout
from evaluand.core.fingerprint import Identity
from evaluand.core.redaction import (
    is_secret_variable,
    redact,
    redact_command,
    redact_message,
    use_secret,
    use_secret_arguments,
)
from evaluand.core.system import kill_group, kill_marked
from evaluand.data.dataset import Dataset
from evaluand.engine.exits import describe_exit, has_exited
from evaluand.run.task import Request, Task
from evaluand.trace.spans import TaskSpan

LONGEST = 16 << 20  # bytes of one answer
GRACE = 1.0  # seconds a program may take to end by itself
_TAIL = 4096  # bytes of stderr to remember
_SHOWN = 300
_LAST = 3  # lines of stderr that are shown
_CHUNK = 1 << 16


class ProgramDied(TaskError):
    """The program ended instead of answering."""


class ProgramError(TaskError):
    """The program reported an error, or its output is not an answer."""


@dataclass(frozen=True, kw_only=True)
class ProgramTask(Task[Any, Any]):
    """Calls a program that reads and writes JSON lines.

    The program reads lines such as `{"index":0,"id":"q1","replication":0,"seed":8123,"input":…}` and answers each by
    one line, flushed: `{"output":…}` (null is no answer) or `{"error":{"type":…,"message":…,"code":…}}`. An answer
    that repeats `index`, `id`, `replication` or `seed` is checked against the call. All other output goes to stderr.

    Args:
        command: the program and its arguments as a list, or a text that is split as a shell would; no shell is used.
        folder: the working directory, and the base of relative paths.
        env: environment variables in addition to those of this process, all of which the program receives. The value of
            one whose name means a credential is no part of the identity.
        version: identifies what the files do not show, such as a model or a service; raise it when that changes.
        files: files and folders that the program depends on, besides those in its command.
        items: the output is a list of items that together are the response.
        output_schema: what each output must be; see `Task`.

    Example:
        >>> ProgramTask(command="python -u bot.py --fast").arguments
        ['python', '-u', 'bot.py', '--fast']
    """

    command: str | Sequence[str]
    folder: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    files: Sequence[str] = ()
    items: bool = False
    output_schema: Any = None

    _pool: ClassVar[_Pool]  # of the instance; no field, since it is no part of what the task is
    __pydantic_config__: ClassVar = {"coerce_numbers_to_str": True}  # in YAML, `3` is a number

    kind = "program"
    behaviour = 2
    names_errors = True

    def __post_init__(self) -> None:
        try:
            arguments: Sequence[Any] = self.arguments
        except ValueError as error:
            raise SpecError(f"command {self.command!r} cannot be split: {error}; give a list") from None
        if not arguments or not all(isinstance(a, str) and "\0" not in a for a in arguments) or not arguments[0]:
            raise SpecError(f"command is {self.command!r}; give a list of the program and its arguments")
        if isinstance(self.files, str):
            raise SpecError(f"files is the text {self.files!r}; give a list")
        object.__setattr__(self, "_pool", _Pool())

    @cached_property
    def arguments(self) -> list[str]:
        """The command as a list."""
        return shlex.split(self.command) if isinstance(self.command, str) else list(self.command)

    @property
    def name(self) -> str:
        """The first file of the command in the folder, else the program."""
        return Path(next(iter(self._command_files), self.arguments[0])).stem

    @property
    def reads(self) -> tuple[str, ...]:
        """A program gets the index and the id with the input."""
        return ("index", "id")

    def identify(self) -> Identity:
        contents = {name: _digest(self._path / name) for name in self._command_files}
        contents |= {name: self._declared(name) for name in self.files}
        spec: dict[str, Any] = {
            "kind": self.kind,
            "behaviour": self.behaviour,
            "command": redact_command([self._portable(argument) for argument in self.arguments]),
            "files": contents,
            "items": self.items,
        }
        if self.env:  # no digest of a secret: short ones can be guessed
            spec["env"] = {
                name: None if is_secret_variable(name) else identity.digest(redact_message(value)).hex()
                for name, value in self.env.items()
            }
        if self.version is not None:
            spec["version"] = self.version
        why = (
            f"{self.name}: what the program {self.arguments[0]} does cannot be seen in its command;"
            " declare `version`, or all its `files`, to pin it",
        )
        pinned = self.version is not None or bool(self.files)
        return Identity(
            spec, pinned, () if pinned else why, {**contents, "command": identity.digest(spec["command"]).hex()}
        )

    def prepare(self, dataset: Dataset) -> None:
        """Raise a SpecError if the program cannot be found or executed, or this system cannot wait for its output."""
        if not hasattr(select, "poll"):
            raise SpecError(
                f"{self.name}: programs are called with select.poll, which this operating system does not have;"
                " use a service (kind: http) or a function"
            )
        _ = self._program

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        return self.call(Request(input, task_span, 0, "0", 0, identity.digest(input), 0))

    def call(self, request: Request) -> Any:
        fields = {
            "index": request.index,
            "id": request.id,
            "replication": request.replication,
            "seed": request.seed,
            "input": request.input,
        }
        line = b"{%b}\n" % b",".join(b"%b:%b" % (orjson.dumps(name), identity.encode(v)) for name, v in fields.items())
        with self._pool.process(self) as process:
            answer = process.ask(line, request.timeout)
            output = _output(answer, fields)
            process.check_is_quiet()
        if isinstance(output, BaseException):
            raise output
        return output

    def close(self) -> None:
        self._pool.close()

    def start(self) -> _Process:
        """A new process of the program."""
        use_secret_arguments(self.arguments)
        for name, value in self.env.items():
            if is_secret_variable(name):
                use_secret(value)
        try:
            return _Process([str(self._program), *self.arguments[1:]], self._path, {**os.environ, **self.env})
        except OSError as error:
            raise ProgramDied(f"{self.arguments[0]} cannot be started: {error.strerror}", code="not_started") from None

    @property
    def _path(self) -> Path:
        return Path(self.folder).absolute()

    @property
    def _program(self) -> Path:
        name = self.arguments[0]
        if not self._path.is_dir():
            raise SpecError(f"{self.name}: the folder {self.folder} does not exist")
        if os.sep not in name:
            found = shutil.which(name, path=self.env.get("PATH"))
            if found is None:
                here = f"; write ./{name} for the one in {self.folder}" if (self._path / name).is_file() else ""
                raise SpecError(f"{self.name}: no program is called {name!r}{here or '; install it or give its path'}")
            return Path(found).absolute()
        path = self._path / name
        if not path.is_file():
            raise SpecError(f"{self.name}: {path}: no such program")
        if not os.access(path, os.X_OK):
            raise SpecError(f"{self.name}: {path} is not executable; run chmod +x on it, or name its interpreter")
        return path

    @property
    def _command_files(self) -> list[str]:
        """The files in the folder that the command names, relative to it."""
        found = []
        for place, argument in enumerate(self.arguments):
            if place == 0 and os.sep not in argument:
                continue
            name = self._portable(argument)
            if not os.path.isabs(name) and name not in (".", "") and (self._path / name).is_file():
                found.append(name)
        return list(dict.fromkeys(found))

    def _portable(self, argument: str) -> str:
        """An argument as it would be written after the folder has moved."""
        if not os.path.isabs(argument):
            return argument
        name = os.path.relpath(argument, self._path)
        if name.startswith(os.pardir):
            return os.path.basename(argument) if argument == self.arguments[0] else argument
        return name

    def _declared(self, name: str) -> str:
        path = self._path / name
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file())
            return identity.digest([[p.relative_to(path).as_posix(), _digest(p)] for p in inside]).hex()
        if not path.exists():
            raise SpecError(f"files: {path} does not exist")
        return _digest(path)


def _digest(path: Path) -> str:
    try:
        return identity.digest_of_file(path)
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}") from None


def _output(line: bytes, fields: Mapping[str, Any]) -> Any:
    """The output in an answer, or the error that the program reports."""
    try:
        # json also reads numbers of any length, and NaN
        answer = identity.decode(line) if b'"$' in line else json.loads(line)
    except (ValueError, TypeError, ArithmeticError, RecursionError):
        what = f"what is not JSON: {_excerpt(line)}; only answers may go to stdout, all else to stderr"
        raise _broken(f"wrote {what}") from None
    if not isinstance(answer, dict) or ("output" in answer) == ("error" in answer):
        raise _broken(f'wrote {_excerpt(line)}; an answer is {{"output": …}} or {{"error": {{"message": …}}}}')
    for name in _CHECKED:
        if name in answer and answer[name] != fields[name]:
            raise _broken(f"answered another call: {name} is {answer[name]!r}, not {fields[name]!r}")
    return _read_error(answer["error"]) if "error" in answer else answer["output"]


_CHECKED = ("index", "id", "replication", "seed")


def _read_error(error: Any) -> TaskError:
    """The error that a program reports, with the type name that it reports."""
    fields = error if isinstance(error, dict) else {"message": error}
    name, code = fields.get("type"), fields.get("code")
    kind: type[TaskError] = ProgramError
    if isinstance(name, str) and name.isidentifier():  # rows and `transient` use this name
        kind = type(name, (ProgramError,), {})
    message = fields.get("message")
    return kind(
        message if isinstance(message, str) else identity.encode(message).decode(),
        code=None if code is None else str(code),
    )


def _broken(what: str) -> ProgramError:
    return ProgramError(f"the program {what}", code="protocol")


def _excerpt(line: bytes) -> str:
    text = redact(line[:_TAIL].decode("utf-8", "replace"))  # before it is cut, within a secret perhaps
    return repr(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")


class _Pool:
    """The processes of one task: idle ones, and all that are alive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._living: set[_Process] = set()

    def __reduce__(self) -> Any:
        """A worker of a cluster starts its own processes."""
        return _Pool, ()

    @contextmanager
    def process(self, task: ProgramTask) -> Iterator[_Process]:
        """A process for one call; reused for the next unless something went wrong."""
        with self._lock:
            process = self._idle.pop() if self._idle else None
            if process is None:
                process = task.start()  # under the lock, so that `close` misses none
                self._living.add(process)
        try:
            yield process
        except BaseException:
            with self._lock:
                self._living.discard(process)
            process.bury()
            raise
        with self._lock:
            if process in self._living:
                self._idle.append(process)
                return
        process.bury()  # the task was closed meanwhile

    def close(self) -> None:
        """Ends all processes: those that wait by the end of their input, those still at work at once."""
        with self._lock:
            idle, busy = self._idle, self._living - {*self._idle}
            self._living, self._idle = set(), []
        for process in busy:
            process.kill()  # whoever waits for its answer buries it
        for process in idle:
            process.let_go()
        until = time.monotonic() + GRACE
        for process in idle:
            process.bury(until)


class _Process:
    """One process of the program, which answers one call at a time."""

    def __init__(self, command: list[str], folder: Path, env: Mapping[str, str]) -> None:
        name, value = "EVALUAND_PROGRAM", secrets.token_hex(16)
        self._mark = f"{name}={value}"  # in the environment of all processes that it starts
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**env, name: value},
            bufsize=0,
            process_group=0,
        )
        streams = self._popen.stdin, self._popen.stdout, self._popen.stderr
        self._stdin, self._stdout, self._stderr = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", streams)
        os.set_blocking(self._stdin.fileno(), False)
        self._read = b""
        self._tail = b""
        self._killing = threading.Lock()
        self._drain = threading.Thread(target=self._drain_stderr, name="evaluand program", daemon=True)
        self._drain.start()

    def ask(self, line: bytes, timeout: float | None) -> bytes:
        """The line that answers a line."""
        self.check_is_quiet()
        until = None if timeout is None else time.monotonic() + timeout
        unsent, pieces, size = memoryview(line), list[bytes](), 0
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        poll.register(self._stdin, select.POLLOUT)
        while True:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise TaskTimeout(f"took longer than {timeout:g} s", code="timeout")
            for handle, _ in poll.poll(None if left is None else left * 1000 + 1):
                if handle == self._stdin.fileno():
                    unsent = self._send(unsent)
                    if not unsent:
                        poll.unregister(self._stdin)
                    continue
                piece = os.read(handle, _CHUNK)
                if not piece:
                    raise self._died()
                size += len(piece)
                if size > LONGEST:
                    start = _excerpt(b"".join([*pieces, piece]))
                    raise _broken(f"wrote a line of more than {LONGEST >> 20} MiB, which begins {start}")
                head, ended, self._read = piece.partition(b"\n")
                pieces.append(head)
                if ended:
                    return b"".join(pieces)

    def check_is_quiet(self) -> None:
        """Raise a ProgramError if the program has written more than its answers."""
        more, poll = self._read, select.poll()
        poll.register(self._stdout, select.POLLIN)
        if not more and poll.poll(0):
            more = os.read(self._stdout.fileno(), _CHUNK)
        if more:
            raise _broken(f"wrote {_excerpt(more)} without a request; write one line for each call")

    def let_go(self) -> None:
        """Close the input of the process, which asks it to end."""
        with suppress(OSError):
            self._stdin.close()

    def kill(self, until: float = 0.0) -> int:
        """End the process and its group, at a time at the latest; returns its exit status, or minus the signal."""
        with self._killing:
            if self._popen.returncode is None:
                self._await_exit(until)
                kill_group(self._popen.pid)  # before it is reaped, while the pid is still its own
                kill_marked(self._mark)
            return self._popen.wait()

    def bury(self, until: float = 0.0) -> None:
        """End the process and close its streams; only for the thread that uses it."""
        self.kill(until)
        self._drain.join(GRACE)
        self.let_go()
        self._stdout.close()

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._stdin.fileno(), unsent[:_CHUNK]) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:  # it stopped reading; its output or its end shows why
            return unsent[:0]

    def _died(self) -> ProgramDied:
        lives = not self._await_exit(time.monotonic() + GRACE)
        status = self.kill()
        self._drain.join(GRACE)
        said = redact(self._tail.decode("utf-8", "replace")).strip().splitlines()[-_LAST:]
        last = f"; the last it wrote to stderr: {' | '.join(said)[-_SHOWN:]}" if said else ""
        if lives:
            return ProgramDied(f"the program closed its output without an answer{last}", code="closed")
        how, code = describe_exit(status)
        return ProgramDied(f"the program {how} without an answer{last}", code=code)

    def _await_exit(self, until: float) -> bool:
        """Waits for the process to exit, without burying it; whether it did."""
        pause = 0.001
        while not has_exited(self._popen):
            if time.monotonic() >= until:
                return False
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
        return True

    def _drain_stderr(self) -> None:
        while piece := os.read(self._stderr.fileno(), _CHUNK):
            self._tail = (self._tail + piece)[-_TAIL:]
        self._stderr.close()
