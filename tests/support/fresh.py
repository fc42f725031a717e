"""Runs Python code in a new process that does not import the large libraries again: it is forked from one that has.

Take a real interpreter (`sys.executable`) where a test is about start-up, the modules that are loaded, or what happens
when an interpreter ends.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess
from types import ModuleType
from typing import TextIO

from support.patience import PATIENCE

WARM = (
    "aiohttp",
    "encodings.utf_8_sig",
    "evaluand.apps",
    "evaluand.cli",
    "evaluand.cli.compare",
    "evaluand.cli.judge",
    "evaluand.cli.label",
    "evaluand.cli.near_commands",
    "evaluand.cli.plan",
    "evaluand.cli.report",
    "evaluand.cli.run",
    "evaluand.cli.score",
    "evaluand.cli.show",
    "evaluand.cli.validate",
    "evaluand.cli.view",
    "evaluand.comparison.drawn_power",
    "evaluand.comparison.planning",
    "evaluand.core.text.template_sandbox",
    "evaluand.data.formats.delimited",
    "evaluand.data.formats.json_rows",
    "evaluand.engine.connections",
    "evaluand.matches.labelled_sets",
    "evaluand.judges.judge",
    "evaluand.judges.label_words",
    "evaluand.judges.people.labelling",
    "evaluand.evaluation.scorers",
    "evaluand.evaluation.scorers.prediction",
    "evaluand.experiment.experiment",
    "evaluand.metrics.accuracy",
    "evaluand.metrics.class_rates",
    "evaluand.report.terminal.plan",
    "evaluand.report.terminal.report",
    "evaluand.run.tasks.chat",
    "evaluand.store.catalog",
    "evaluand.store.directory",
    "evaluand.store.parquet",
    "evaluand.report.page.addresses",
    "evaluand.report.page.server",
    "jinja2.meta",
    "numpy",
    "pandas",
    "pyarrow.compute",
    "pyarrow.pandas_compat",
    "pyarrow.parquet",
    "pydantic.dataclasses",
    "pytest",
    "rich.progress",
    "rich.table",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "uvicorn.protocols.http.h11_impl",
    "xml.etree.ElementTree",
)
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(list(WARM))
_cpu_seconds: list[float] = []


def cpu_seconds() -> float:
    """The processor time of the processes that have ended: they are children of another one, which counts none."""
    return sum(_cpu_seconds)


def run_python(
    code: str, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> CompletedProcess[str]:
    """Runs `code` as `python -c code *arguments` does, with `cwd` first on the path, and waits for its end."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        with _started(code, arguments, env, cwd, output, errors) as process:
            process.join(PATIENCE)
            if process.exitcode is None:
                raise TimeoutError(f"the process has not ended after {PATIENCE} seconds: {errors.read_text()}")
        return CompletedProcess([code, *arguments], process.exitcode, output.read_text(), errors.read_text())


@contextmanager
def open_python(
    code: str, *arguments: str, errors: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator[tuple[BaseProcess, TextIO]]:
    """A process that runs `code`, and its output while it runs. The end of the block terminates it."""
    reader, writer = CONTEXT.Pipe(duplex=False)
    with (
        _started(code, arguments, env, cwd, writer, errors) as process,
        reader,
        open(reader.fileno(), closefd=False) as output,
    ):
        writer.close()
        yield process, output
        process.terminate()
        process.join(PATIENCE)


@contextmanager
def _started(
    code: str,
    arguments: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: Path | None,
    output: Path | Connection,
    errors: Path,
) -> Iterator[BaseProcess]:
    """A process that runs `code` during the block, and what it has taken."""
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder, "times")
        given = (code, list(arguments), dict(env or os.environ), str(cwd or os.getcwd()), output, errors, times)
        process = CONTEXT.Process(target=_execute, args=given)
        process.start()
        try:
            yield process
        finally:
            if process.exitcode is None:
                process.kill()
                process.join()
            _cpu_seconds.append(float(times.read_text()) if times.exists() else 0.0)


def _execute(
    code: str,
    arguments: list[str],
    env: dict[str, str],
    where: str,
    output: Path | Connection,
    errors: Path,
    times: Path,
) -> None:
    for stream, place in ((1, output), (2, errors)):
        is_path = isinstance(place, Path)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if is_path else os.dup(place.fileno())
        os.dup2(descriptor, stream)
        os.close(descriptor)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))
    os.environ.clear()
    os.environ.update(env)
    os.chdir(where)
    tempfile.tempdir = None  # as the environment says
    sys.argv, sys.path[:0] = ["-c", *arguments], [where]
    gc.freeze()
    os.fsync = os.fdatasync = lambda descriptor: None  # as in the tests themselves
    sys.dont_write_bytecode = True  # bytecode files tell versions of a source apart by the second, and tests are faster
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    try:
        exec(compile(code, "<string>", "exec"), main.__dict__)
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        times.write_text(str(sum(os.times()[:4])))
