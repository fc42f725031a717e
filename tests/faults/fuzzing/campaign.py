"""Runs hostile inputs over everything that reads foreign input; in tests/:

    python -m faults.fuzzing.campaign --inputs 100000 --seed 7
    python -m faults.fuzzing.campaign --target csv --seed 7 --number 123     that one input again
    python -m faults.fuzzing.campaign --target csv --file FILE               the input in a file
    python -m faults.fuzzing.campaign --corpus                               every input that is kept

Children work through the inputs and say through a pipe which one they begin, so a finding belongs to one input:
a traceback, a crash, a hang, much memory, or a message that nobody reads to its end. Input n of a seed is the same as
long as the corpus is; findings are written into a folder as they were read.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import hashlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import click
from faults.fuzzing.mutations import mutate
from faults.fuzzing.targets import TARGETS, Target

from evaluand.core.errors import EvaluandError

SECONDS: Final = 20  # of work
LONGEST_WAIT: Final = 120  # seconds, also without work
MOST_MEMORY: Final = 1 << 30
MOST_ADDRESSES: Final = 4 << 30
MOST_MESSAGE: Final = 4096
PER_CHILD: Final = 4000
KEPT: Final = 3  # inputs that are written for each kind of finding


@dataclass(frozen=True)
class Case:
    """One input of a target: the number of a seed, or a file."""

    target: Target
    seed: int = 0
    number: int = 0
    file: Path | None = None

    def content(self, inputs: Sequence[bytes]) -> bytes:
        if self.file is not None:
            return self.file.read_bytes()
        random = Random(f"{self.target.name} {self.seed} {self.number}")
        if self.target.make is not None and (not inputs or random.random() < 0.9):
            return self.target.make(random)
        return random.choice(inputs) if self.target.make is not None else mutate(self.target.form, random, inputs)

    @property
    def words(self) -> str:
        place = f"--file {self.file}" if self.file else f"--seed {self.seed} --number {self.number}"
        return f"--target {self.target.name} {place}"


@dataclass(frozen=True)
class Outcome:
    """What became of an input: `accepted`, `refused`, or a kind of finding with its place and text."""

    kind: str
    where: str = ""
    text: str = ""
    seconds: float = 0.0

    @property
    def is_finding(self) -> bool:
        return self.kind not in ("accepted", "refused")


@dataclass
class Row:
    """The outcomes of one target."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.outcomes[outcome.kind if not outcome.is_finding else "findings"] += 1
        self.slowest = max(self.slowest, outcome.seconds)
        self.seconds += outcome.seconds


# In a child


def judge(case: Case, content: bytes, folder: Path) -> Outcome:
    """Reads one input, in a folder of its own."""
    before, begun = _resident(), time.process_time()
    outcome = _read(case.target, content, folder)
    seconds = time.process_time() - begun
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    if used > MOST_MEMORY and not outcome.is_finding:
        outcome = Outcome("memory", case.target.name, f"{used >> 20} MiB")
    return Outcome(outcome.kind, outcome.where, outcome.text, seconds)


def _read(target: Target, content: bytes, folder: Path) -> Outcome:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = target.read(content, folder)
    except MemoryError as error:
        return Outcome("memory", _place(error), "MemoryError")
    except (EvaluandError, click.ClickException) as error:
        return _refusal(error)
    except Exception as error:
        text = "".join(traceback.format_exception(error, limit=-12))[-6000:]
        return Outcome("traceback", f"{type(error).__name__} {_place(error)}", text)
    return Outcome("accepted" if rows else "refused")


def _refusal(error: Exception) -> Outcome:
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    size = len(text.encode("utf-8", "surrogatepass"))
    if not text.strip():
        return Outcome("empty message", _place(error))
    if size > MOST_MESSAGE:
        return Outcome("long message", _place(error), f"{size} bytes: {text[:1500]}")
    return Outcome("refused", text=text)


def _place(error: BaseException) -> str:
    """The innermost line of evaluand that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/evaluand/" in frame.filename] or frames
    return f"{own[-1].filename.rpartition('/evaluand/')[2]}:{own[-1].lineno}" if own else ""


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def work(cases: Sequence[Case], pipe: int) -> None:
    """Reads inputs one after the other, and writes a line when one begins and when it has ended."""
    _silence()
    most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MOST_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    inputs: dict[str, list[bytes]] = {}
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        os.environ |= {"XDG_CACHE_HOME": f"{scratch}/cache", "XDG_CONFIG_HOME": f"{scratch}/config"}
        for number, case in enumerate(cases):
            if case.target.name not in inputs:
                inputs[case.target.name] = case.target.inputs()
            os.write(pipe, f"begin {number}\n".encode())
            content = case.content(inputs[case.target.name])
            outcome = judge(case, content, _folder(scratch, case.target))
            os.write(pipe, json.dumps([outcome.kind, outcome.where, outcome.text, outcome.seconds]).encode() + b"\n")
            if outcome.kind == "memory":
                break  # the most memory that a process has had never becomes less


def _folder(scratch: str, target: Target) -> Path:
    """The folder of a target, mostly empty, which is the current one, so that messages name short paths."""
    folder = Path(scratch, target.name)
    if not target.keeps_folder:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    return Path()


def _silence() -> None:
    faulthandler.disable()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115


# In the parent


def run(cases: Sequence[Case]) -> Iterator[tuple[Case, Outcome]]:
    """The outcome of every input, in children that are replaced when they end."""
    done = 0
    while done < len(cases):
        for case, outcome in _run_child(cases[done : done + PER_CHILD]):
            done += 1
            yield case, outcome


def _run_child(cases: Sequence[Case]) -> Iterator[tuple[Case, Outcome]]:
    """The outcomes until a child has read all, has crashed, or hangs."""
    reading, writing = os.pipe()
    gc.freeze()
    child = os.fork()
    if not child:
        os.close(reading)
        code = 1
        try:
            work(cases, writing)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    begun, ended, is_hanging = 0, 0, False
    try:
        for line in _lines(reading, child):
            if line is None:
                is_hanging = True
                break
            if line.startswith(b"begin "):
                begun = int(line[6:]) + 1
            else:
                yield cases[ended], Outcome(*json.loads(line))
                ended += 1
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if is_hanging:
        yield cases[begun - 1], Outcome("hang", cases[begun - 1].target.name, f"no end after {SECONDS} s", SECONDS)
    elif ended < begun:
        yield cases[begun - 1], Outcome("crash", cases[begun - 1].target.name, _ending(status))
    elif not ended:
        raise RuntimeError(f"a child ended before its first input: {_ending(status)}")


def _ending(status: int) -> str:
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"


def _lines(pipe: int, child: int) -> Iterator[bytes | None]:
    """The lines of a pipe until it is closed; None once nothing comes for too long."""
    rest, waited, worked = b"", 0, _cpu_seconds(child)
    while True:
        ready, _, _ = select.select([pipe], [], [], 1)
        if not ready:
            waited += 1
            if waited >= LONGEST_WAIT or _cpu_seconds(child) - worked >= SECONDS:
                yield None
                return
            continue
        piece = os.read(pipe, 1 << 16)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        waited, worked = 0, _cpu_seconds(child)


def _cpu_seconds(child: int) -> float:
    """The time that a process has worked, which on a busy machine is less than what has passed."""
    user, system = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Report:
    """Counts outcomes, writes findings into a folder, and prints how far the campaign is."""

    def __init__(self, total: int, folder: Path) -> None:
        self.total, self.folder = total, folder
        self.rows: dict[str, Row] = {}
        self.findings: Counter[tuple[str, str, str]] = Counter()
        self._begun = self._printed = time.monotonic()
        self._done = 0

    def add(self, case: Case, outcome: Outcome) -> None:
        self._done += 1
        self.rows.setdefault(case.target.name, Row()).add(outcome)
        if outcome.is_finding:
            self._add_finding(case, outcome)
        if time.monotonic() - self._printed > 5:
            self._printed = time.monotonic()
            say(f"{self._done:,} of {self.total:,} inputs, {self.rate:.0f}/s, {self.findings.total()} findings")

    @property
    def rate(self) -> float:
        return self._done / max(time.monotonic() - self._begun, 1e-9)

    def _add_finding(self, case: Case, outcome: Outcome) -> None:
        key = (case.target.name, outcome.kind, outcome.where)
        self.findings[key] += 1
        if self.findings[key] > KEPT:
            return
        content = case.content(case.target.inputs())
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{case.target.name}-{outcome.kind.replace(' ', '_')}-{hashlib.sha256(content).hexdigest()[:10]}"
        (self.folder / name).write_bytes(content)
        command = f"python -m faults.fuzzing.campaign {case.words}"
        (self.folder / f"{name}.txt").write_text(f"{command}\n{outcome.where}\n{outcome.text}\n", errors="replace")
        say(f"finding: {outcome.kind}: {case.target.name} {case.seed} {case.number}: {outcome.where}\n    {command}")

    def table(self) -> str:
        """A line for each target."""
        head = f"{'target':<18}{'inputs':>9}{'accepted':>10}{'refused':>9}{'findings':>10}{'ms':>8}{'slowest':>9}"
        lines = [head]
        for name, row in sorted(self.rows.items()):
            counts = row.outcomes
            total = counts.total()
            numbers = f"{total:>9,}{counts['accepted']:>10,}{counts['refused']:>9,}{counts['findings']:>10,}"
            lines.append(f"{name:<18}{numbers}{row.seconds / total * 1000:>8.1f}{row.slowest:>8.1f}s")
        lines.append(f"{self._done:,} inputs, {self.rate:.0f}/s, {self.findings.total():,} findings")
        lines += [f"{count:>6} × {' '.join(key)}" for key, count in self.findings.most_common()]
        return "\n".join(lines)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def cases_of(options: argparse.Namespace) -> list[Case]:
    """The inputs that were asked for; those of a campaign go round all targets."""
    targets = [TARGETS[name] for name in options.target or TARGETS]
    if options.file is not None:
        return [Case(targets[0], file=options.file.absolute())]
    if options.number is not None:
        return [Case(targets[0], options.seed, options.number)]
    cases = [Case(target, file=path) for target in targets if options.corpus for path in target.files()]
    count = options.inputs if options.inputs is not None else 0 if options.corpus else 10_000
    return cases + [Case(targets[n % len(targets)], options.seed, n // len(targets)) for n in range(count)]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, help="how many; 10,000 by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="may be repeated; all by default")
    parser.add_argument("--number", type=int, help="only this input of one target and seed")
    parser.add_argument("--file", type=Path, help="only the input in this file, of one target")
    parser.add_argument("--corpus", action="store_true", help="also every input of the corpus")
    parser.add_argument("--findings", type=Path, default=Path(tempfile.gettempdir(), "fuzzing-findings"))
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 if there are findings."""
    options = parse(arguments)
    cases = cases_of(options)
    report = Report(len(cases), options.findings)
    last: Any = None
    for case, outcome in run(cases):
        report.add(case, outcome)
        last = outcome
    if len(cases) == 1:
        say(f"{last.kind}: {last.where}\n{last.text}")
    say(report.table())
    return int(bool(report.findings))


if __name__ == "__main__":
    sys.exit(main())
