"""Runs Python code in a new process that does not import the large libraries again: it is forked from one that has.

Take a real interpreter (`sys.executable`) where a test is about start-up, the modules that are loaded, or what happens
when an interpreter ends.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from types import ModuleType

from support.patience import PATIENCE

_WARM = (
    "aiohttp",
    "evaluand.apps",
    "evaluand.cli",
    "evaluand.cli.compare",
    "evaluand.cli.near_commands",
    "evaluand.cli.report",
    "evaluand.cli.run",
    "evaluand.cli.score",
    "evaluand.cli.show",
    "evaluand.cli.validate",
    "evaluand.core.text.template_sandbox",
    "evaluand.data.formats.delimited",
    "evaluand.data.formats.json_rows",
    "evaluand.engine.connections",
    "evaluand.evaluation.scorers",
    "evaluand.experiment.experiment",
    "evaluand.report.terminal.report",
    "evaluand.run.tasks.chat",
    "evaluand.store.catalog",
    "evaluand.store.directory",
    "evaluand.store.parquet",
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
    "xml.etree.ElementTree",
)
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(list(_WARM))
_cpu_seconds: list[float] = []


def cpu_seconds() -> float:
    """The processor time of the processes that have ended: they are children of another one, which counts none."""
    return sum(_cpu_seconds)


def run_python(
    code: str, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> CompletedProcess[str]:
    """Runs `code` as `python -c code *arguments` does, with `cwd` first on the path, and waits for its end."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors, times = Path(folder, "output"), Path(folder, "errors"), Path(folder, "times")
        where = str(cwd or os.getcwd())
        process = CONTEXT.Process(
            target=_execute,
            args=(code, list(arguments), dict(env or os.environ), where, str(output), str(errors), str(times)),
        )
        process.start()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"the process has not ended after {PATIENCE} seconds: {errors.read_text()}")
        _cpu_seconds.append(float(times.read_text()) if times.exists() else 0.0)
        return CompletedProcess([code, *arguments], process.exitcode, output.read_text(), errors.read_text())


def _execute(
    code: str, arguments: list[str], env: dict[str, str], where: str, output: str, errors: str, times: str
) -> None:
    for stream, path in ((1, output), (2, errors)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(descriptor, stream)
        os.close(descriptor)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))
    os.environ.clear()
    os.environ.update(env)
    os.chdir(where)
    sys.argv, sys.path[:0] = ["-c", *arguments], [where]
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
        Path(times).write_text(str(sum(os.times()[:4])))
