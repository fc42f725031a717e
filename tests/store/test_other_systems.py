"""Stores and imports where the operating system or the file system lacks something: refusals are simulated."""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import evaluand

SOURCE = Path(evaluand.__file__).parent
FRAMEWORKS = ("langchain", "llama_index", "ray_map", "wire")  # which import their packages

NAMES_OF_POSIX = """
    import asyncio, ctypes, multiprocessing.connection, os, select, signal, sqlite3, subprocess, sys, tempfile
    import numpy, pyarrow.parquet, pydantic, sysconfig
    for module in ("fcntl", "grp", "pwd", "resource", "termios"):
        sys.modules[module] = None
    for name in (
        "fork forkpty register_at_fork killpg setpgid setsid pread pwrite waitid link fdatasync getuid geteuid uname"
        " set_blocking sched_getaffinity O_CLOEXEC getpgid mkfifo"
    ).split():
        if hasattr(os, name):
            delattr(os, name)
    for name in ("SIGKILL", "SIGHUP", "SIGQUIT", "pthread_sigmask", "setitimer", "SIGALRM"):
        delattr(signal, name)
    del select.poll
"""

EXPERIMENT = """
    import sys
    from pathlib import Path
    from evaluand import Dataset, DirectoryStore, Experiment, Measure
    from evaluand.metrics.column_statistics import Mean

    def shout(text):
        return text.upper()

    def same(output, expected):
        return float(output == expected)

    rows = Dataset.from_rows([{"input": word, "expected": word.upper()} for word in ("a", "b", "c")])
    experiment = Experiment("shouting", rows, {"upper": shout}, {"same": same}, [Measure("same", Mean())])
    store = DirectoryStore("store")
"""


def run(folder, *parts, **environment):
    """Runs a program in a new interpreter."""
    file = folder / "program.py"
    file.write_text("".join(textwrap.dedent(part) for part in parts))
    return subprocess.run(
        [sys.executable, file],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_every_module_can_be_imported_without_the_names_of_posix(tmp_path):
    modules = sorted(
        ".".join(("evaluand", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for path in SOURCE.rglob("*.py")
        if path.name != "__main__.py" and not path.stem.startswith(FRAMEWORKS)
    )
    done = run(
        tmp_path,
        NAMES_OF_POSIX,
        f"import importlib\nfor name in {modules}: importlib.import_module(name)\nprint('all')",
    )
    assert (done.stdout, done.returncode) == ("all\n", 0), done.stderr


SHOW = """
    print(experiment.run(store=store).aggregation.digest)
    print(store.ids("aggregations") == DirectoryStore("store").ids("aggregations"), [*Path("store").rglob(".*")])
"""


@pytest.fixture(scope="session")
def usual(tmp_path_factory):
    """What the experiment shows where nothing is refused."""
    shown = io.StringIO()
    with contextlib.chdir(tmp_path_factory.mktemp("usual")), contextlib.redirect_stdout(shown):
        exec(textwrap.dedent(EXPERIMENT) + textwrap.dedent(SHOW), {"__name__": "program"})
    assert shown.getvalue().endswith("True []\n")
    return shown.getvalue()


NEEDS = """
    from evaluand import ProcessEngine
    from evaluand.run.tasks.program import ProgramTask
    for attempt in (lambda: ProcessEngine(), lambda: ProgramTask(command="true").prepare(None)):
        try:
            attempt()
        except Exception as error:
            print(error)
"""


@pytest.mark.slow
def test_without_the_names_of_posix_digests_are_the_same_and_what_needs_them_says_so(tmp_path, usual):
    reduced = run(tmp_path, NAMES_OF_POSIX, EXPERIMENT, SHOW, NEEDS)
    assert reduced.stdout.startswith(usual), reduced.stderr
    forks, poll = reduced.stdout[len(usual) :].splitlines()
    assert forks.startswith("calls in processes need forks")
    assert "programs are called with select.poll" in poll


REFUSALS = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <errno.h>
    #include <fcntl.h>
    #include <stdarg.h>
    int link(const char *a, const char *b) { errno = EPERM; return -1; }
    int linkat(int a, const char *b, int c, const char *d, int e) { errno = EPERM; return -1; }
    #ifdef NO_LOCKS
    int flock(int fd, int how) { errno = ENOLCK; return -1; }
    static int refuse(const char *name, int fd, int command, void *argument) {
        if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK) { errno = ENOLCK; return -1; }
        int (*real)(int, int, ...) = (int (*)(int, int, ...)) dlsym(RTLD_NEXT, name);
        return real(fd, command, argument);
    }
    int fcntl(int fd, int command, ...) {
        va_list more; va_start(more, command); void *argument = va_arg(more, void *); va_end(more);
        return refuse("fcntl", fd, command, argument);
    }
    int fcntl64(int fd, int command, ...) {
        va_list more; va_start(more, command); void *argument = va_arg(more, void *); va_end(more);
        return refuse("fcntl64", fd, command, argument);
    }
    #endif
"""


@pytest.fixture(scope="session")
def refuse(tmp_path_factory):
    """Environments in which the file system refuses hard links, or hard links and locks."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler to simulate the refusals of a file system")
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "refusals.c").write_text(textwrap.dedent(REFUSALS))
    environments = {}
    for name, flags in (("links", []), ("locks", ["-DNO_LOCKS"])):
        library = folder / f"{name}.so"
        build = [compiler, "-shared", "-fPIC", *flags, "-o", library, folder / "refusals.c", "-ldl"]
        subprocess.run(build, check=True, capture_output=True)
        environments[name] = {"LD_PRELOAD": str(library)}
    return environments


@pytest.mark.parametrize("refused", ["links", "locks"])
@pytest.mark.slow
def test_a_store_without_hard_links_and_locks_gives_the_same_digests_and_reads_back(tmp_path, refuse, refused, usual):
    reduced = run(tmp_path, EXPERIMENT, SHOW, **refuse[refused])
    assert reduced.stdout == usual, reduced.stderr
    assert not (tmp_path / "store" / "catalog.db").exists()


def test_without_hard_links_the_first_of_many_writers_wins(tmp_path, refuse):
    race = """
    import multiprocessing
    from pathlib import Path
    from evaluand.core.system import put_if_absent

    def put(number):
        temporary = Path(f"{number}.tmp")
        temporary.write_text(str(number) * 1000)
        return put_if_absent(temporary, Path("one"))

    if __name__ == "__main__":
        with multiprocessing.get_context("fork").Pool(4) as pool:
            winners = [number for number, won in enumerate(pool.map(put, range(40))) if won]
        content = Path("one").read_text()
        print(len(winners), content == str(winners[0]) * 1000, sorted(path.name for path in Path().glob("*.*")))
    """
    done = run(tmp_path, race, **refuse["links"])
    assert done.stdout == "1 True ['program.py']\n", done.stderr


def test_without_hard_links_a_writer_that_died_with_its_claim_does_not_block_for_ever(tmp_path, refuse):
    claim = """
    from pathlib import Path
    import json
    from dataclasses import astuple, replace
    from evaluand.core import system
    system.CLAIM_SECONDS = 0.05
    ended = replace(system.this_process(), pid=2**22 - 1)
    Path(".one.claim").write_text(json.dumps(astuple(ended)))
    Path("one.tmp").write_text("content")
    print(system.put_if_absent(Path("one.tmp"), Path("one")), Path("one").read_text(), Path(".one.claim").exists())
    """
    assert run(tmp_path, claim, **refuse["links"]).stdout == "True content False\n"


@pytest.mark.parametrize("content", ["", "[", "elsewhere/7", "[1, 2, 3, 4, 5]", '["", "", -1, 0, ""]'])
def test_without_hard_links_a_claim_that_names_no_process_does_not_block_for_ever(tmp_path, refuse, content):
    claim = f"""
    from pathlib import Path
    from evaluand.core import system
    system.CLAIM_SECONDS = 0.05
    Path(".one.claim").write_text({content!r})
    Path("one.tmp").write_text("content")
    print(system.put_if_absent(Path("one.tmp"), Path("one")), Path(".one.claim").exists())
    """
    assert run(tmp_path, claim, **refuse["links"]).stdout == "True False\n"


@pytest.mark.parametrize("boot", ["another container", "another boot"])
def test_without_hard_links_the_claim_of_a_process_that_cannot_be_seen_is_reported(tmp_path, refuse, boot):
    claim = f"""
    import json
    from dataclasses import astuple, replace
    from pathlib import Path
    from evaluand.core import system
    system.CLAIM_SECONDS = 0.05
    elsewhere = replace(system.this_process(), numbers={boot!r}, pid=7, host="elsewhere")
    Path(".one.claim").write_text(json.dumps(astuple(elsewhere)))
    Path("one.tmp").write_text("content")
    system.put_if_absent(Path("one.tmp"), Path("one"))
    """
    last = run(tmp_path, claim, **refuse["links"]).stderr.splitlines()[-1]
    assert last.endswith(".one.claim: process 7 on elsewhere writes here; if it has ended, remove the file")


WORKERS = """
    import os, subprocess, sys
    from pathlib import Path
    from evaluand.store.io import DiskFolder
    from evaluand.store.leases import FileLeases
    from evaluand.store.log import FileLog
    leases = FileLeases(DiskFolder("log"), FileLog(DiskFolder("log"), "runs/00/log"))
    if sys.argv[1:]:
        while claimed := leases.claim(40):
            print(*claimed, flush=True)
            leases.finish(claimed[0])
            if sys.argv[1] == "die":
                leases.claim(40)
                os._exit(0)
        leases.release()
        raise SystemExit
    def start(how):
        return subprocess.Popen([sys.executable, *sys.orig_argv[1:], how], stdout=subprocess.PIPE, text=True)
"""


@pytest.mark.parametrize("refused", ["links", "locks"])
def test_without_hard_links_and_locks_several_processes_share_the_work(tmp_path, refuse, refused):
    share = """
    workers = [start("work") for _ in range(3)]
    taken = [int(line.split()[0]) for one in workers for line in one.communicate()[0].splitlines()]
    print(sorted(taken) == [*range(40)])
    """
    done = run(tmp_path, WORKERS, share, **refuse[refused])
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize("refused", ["links", "locks"])
def test_without_hard_links_and_locks_a_process_takes_over_from_one_that_died(tmp_path, refuse, refused):
    died = "print(start('die').communicate()[0].strip(), leases.busy(), [leases.claim(3) for _ in range(3)])"
    done = run(tmp_path, WORKERS, died, **refuse[refused])
    assert done.stdout == "0 0 False [(1, 1), (2, 0), None]\n", done.stderr
