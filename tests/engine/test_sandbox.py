"""What a program may use, with and without isolation, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.patience import PATIENCE
from support.sandboxes import (
    IMAGE,
    SANDBOXES,
    SYSTEM_PYTHON,
    await_end,
    await_no_container,
    find_processes,
    use_readable_python,
    use_sandbox,
)

from evaluand.core.errors import TransientError
from evaluand.engine.sandbox import calls, places, running
from evaluand.engine.sandbox.limits import Limits
from evaluand.engine.sandbox.running import Ended, run_program


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    use_sandbox(name, monkeypatch)
    return name


@pytest.fixture
def bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    use_sandbox("bubblewrap", monkeypatch)


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without bubblewrap, where programs may run without isolation: the folder of temporary files."""
    use_readable_python(monkeypatch)
    monkeypatch.setattr(running, "_find_place", lambda image, allow: places.in_folder)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # which other users reach, as programs of root must
        os.chmod(folder, 0o755)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def run(*texts: str, **limits: float) -> Ended:
    limit = Limits(**{"timeout": PATIENCE} | limits)  # type: ignore[arg-type]
    return run_program([(f"part {n}", text) for n, text in enumerate(texts)], limit)


# ---------------------------------------------------------------- how programs end


@pytest.mark.usefixtures("sandbox")
def test_parts_are_one_module_and_what_they_print_is_kept() -> None:
    ended = run("from __future__ import annotations\nx = 'grüße'", "import sys\nprint(x, __name__, file=sys.stderr)")
    assert ended == Ended("finished", output="grüße program\n")


@pytest.mark.usefixtures("sandbox")
def test_all_parts_are_read_before_the_first_is_executed() -> None:
    ended = run("print('begun')", "x = = 1")
    assert (ended.how, ended.where, ended.output) == ("raised", "part 1, line 1: x = = 1", "")


@pytest.mark.usefixtures("sandbox")
def test_nothing_that_a_program_writes_takes_the_place_of_its_end() -> None:
    ended = run("import os\nfor n in range(1, 100):\n try: os.write(n, b'x\\n')\n except OSError: pass\nos._exit(0)")
    assert ended.how == "exited"
    said = '{"how": "finished", "error": "none"}'
    ended = run(f"import os\nfor n in range(3, 100):\n try: os.write(n, b'{said}\\n')\n except OSError: pass")
    assert ended.how == "exited"
    endless = run(
        "import os\nfor n in range(3, 100):\n try:\n  while True: os.write(n, b'x' * 9999)\n except OSError: pass"
    )
    assert endless.how == "exited"


@pytest.mark.usefixtures("sandbox")
def test_the_callers_of_a_program_hold_nothing_that_proves_its_end() -> None:
    climbing = """
import os, re, sys

frame, found = sys._getframe(), []
while frame := frame.f_back:
    found += [*frame.f_locals.values(), *frame.f_globals.values()]
for proof in re.findall(r"[0-9a-f]{32}", repr(found)):
    for handle in range(1, 100):
        try:
            os.write(handle, proof.encode() + b"\\n")
        except OSError:
            pass
os._exit(0)
"""
    assert run(climbing, "assert False").how == "exited"


@pytest.mark.usefixtures("sandbox")
def test_endless_output_ends_the_program_and_its_beginning_is_kept() -> None:
    ended = run("i = 0\nwhile True:\n print(i)\n i += 1", output=1)
    assert (ended.how, ended.error) == ("output", "wrote more than 1 MiB")
    assert len(ended.output) == 1 << 20
    assert ended.output.startswith("0\n1\n2\n")


@pytest.mark.usefixtures("sandbox")
def test_the_clock_ends_what_never_waits_and_so_always_with_the_same_reason() -> None:
    """A limit of processor time as low as that of the clock would sometimes come first."""
    shown = run("import resource\nprint(resource.getrlimit(resource.RLIMIT_CPU))", timeout=PATIENCE)
    soft, hard = map(int, shown.output.strip("()\n ").split(","))
    assert PATIENCE < soft < hard
    assert run("while True: pass", timeout=1).error == "took longer than 1 s"


@pytest.mark.usefixtures("sandbox")
def test_the_clock_ends_a_program_that_waits_for_a_busy_child() -> None:
    running_long = "import os, time\nif os.fork() == 0:\n while True: pass\nraise SystemExit(os.wait()[1])"
    ended = run_program([("program", running_long)], Limits(timeout=0.9))
    assert (ended.how, ended.error) == ("timeout", "took longer than 0.9 s")


@pytest.mark.usefixtures("sandbox")
def test_a_large_program_is_sent_as_a_whole() -> None:
    assert run("x = '" + "x" * 3_000_000 + "'", "assert len(x) == 3_000_000").how == "finished"


@pytest.mark.usefixtures("bubblewrap")
def test_a_program_has_the_packages_of_this_environment_and_an_empty_home() -> None:
    ended = run(
        "import numpy, os\nprint(os.listdir(os.environ['HOME']), os.getcwd() == os.environ['HOME'])", memory=4096
    )
    assert (ended.how, ended.output) == ("finished", "[] True\n")


@pytest.mark.usefixtures("sandbox")
def test_programs_do_not_see_one_another() -> None:
    text = (
        "import os, time\nopen('mine', 'x')\ntime.sleep(0.2)\n"
        "print(os.listdir('.'), sum(name.isdigit() for name in os.listdir('/proc')))"
    )
    outputs: list[str] = []
    threads = [threading.Thread(target=lambda: outputs.append(run(text).output)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == ["['mine'] 2\n"] * 3  # the program, and what waits for its children


def test_a_program_ends_with_the_process_that_started_it(sandbox: str, tmp_path: Path) -> None:
    mark = f"# {tmp_path}"
    script = (
        "from evaluand.engine.sandbox import limits, running\n"
        f"place, _ = running.find_sandbox({sandbox!r}, {IMAGE!r})\n"
        "running._find_place = lambda image, allow: place\n"
        f"running._INSIDE = {mark!r} + '\\n' + running._INSIDE\n"
        "running.run_program([('program', 'import time; time.sleep(600)')], limits.Limits(timeout=600))"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    until = time.monotonic() + PATIENCE
    while len([*find_processes(mark)]) < 4:  # this script, what it has started, the first process, the program
        assert time.monotonic() < until
        time.sleep(0.01)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    await_end(mark)
    await_no_container(sandbox)


def test_many_programs_at_once_leave_nothing_open(sandbox: str) -> None:
    before = os.listdir("/proc/self/fd")
    ended: list[str] = []
    texts = ["x = 1", "import os; os._exit(0)", "while True: print('x' * 1000)"] * 2
    threads = [
        threading.Thread(target=lambda: ended.extend(run(text, timeout=PATIENCE).how for text in texts))
        for _ in range(4 if sandbox == "bubblewrap" else 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == sorted(["finished", "exited", "output"] * 2 * len(threads))
    assert os.listdir("/proc/self/fd") == before
    await_no_container(sandbox)


@pytest.mark.usefixtures("sandbox")
def test_a_program_can_write_to_its_folder_alone() -> None:
    text = """
import os
for top, folders, _ in os.walk("/"):
    if top in ("/proc", "/sys", "/usr", "/dev/mqueue") or top.count("/") > 2: folders.clear()
    elif os.access(top, os.W_OK): print(top)
"""
    assert run(text).output.split() == ["/tmp"]


@pytest.mark.usefixtures("sandbox")
def test_a_program_has_no_open_file_but_its_streams() -> None:
    """And the pipe of its answer."""
    text = """
import os
for n in range(100):
    try: print(os.readlink(f"/proc/self/fd/{n}").partition(":")[0])
    except OSError: pass
"""
    assert run(text).output.split() == ["/dev/null", "pipe", "pipe", "pipe"]


@pytest.mark.usefixtures("bubblewrap")
def test_a_sandbox_that_does_not_start_grades_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_DEVICES", ("--no-such-option",))
    with pytest.raises(TransientError, match="Unknown option --no-such-option"):
        run("x = 1")


@pytest.mark.skipif(os.geteuid() != 0, reason="another user runs these tests, as all others")
@pytest.mark.usefixtures("bubblewrap")
def test_a_user_without_rights_has_a_sandbox_too() -> None:
    if not os.access(SYSTEM_PYTHON, os.X_OK):
        pytest.skip("the system has no Python")
    script = f"""
import os, sys
from evaluand.engine.sandbox.limits import Limits
from evaluand.engine.sandbox.running import run_program
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
os.chdir("/")
sys.executable = {SYSTEM_PYTHON!r}
for name in ("prefix", "exec_prefix", "base_prefix", "base_exec_prefix"): setattr(sys, name, "/usr")
for text in {[*_AS_USER]!r}:
    ended = run_program([("program", text)], Limits(processes=8))
    print((ended.error or ended.how).partition(":")[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [*_AS_USER.values()]


_AS_USER = {  # a program → how it ends
    "open('/etc/passwd')": "FileNotFoundError",
    "import os\nwhile True: os.fork()": "BlockingIOError",
    "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)": "ConnectionRefusedError",
    "if 'bwrap' in open('/proc/1/environ').read(): 1 / 0": "finished",
    "open('x', 'w').write('x')": "finished",
    "open('/usr/x', 'w').write('x')": "OSError",
    "open('/dev/shm/x', 'w').write('x')": "OSError",
    "open('/x', 'w').write('x')": "OSError",
    "import os\nos.kill(os.getppid(), 9)": "finished",
    "import os\nos.killpg(0, 9)": "was ended by SIGKILL",
    "import os\nos.setuid(0)": "OSError",
}


# ---------------------------------------------------------------- calls of the kernel

ALLOWED, PERMISSION, UNKNOWN, KILLED = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
X86_64, AARCH64 = 0xC000003E, 0xC00000B7


@pytest.mark.parametrize(
    ("machine", "call", "result"),
    [  # numbers of asm/unistd_64.h and asm-generic/unistd.h: architecture, number, flags
        ("x86_64", (X86_64, 1, 0), ALLOWED),  # write
        ("x86_64", (X86_64, 165, 0), PERMISSION),  # mount
        ("x86_64", (X86_64, 272, 0), PERMISSION),  # unshare
        ("x86_64", (X86_64, 56, 0x11), ALLOWED),  # clone
        ("x86_64", (X86_64, 56, 0x10000011), PERMISSION),  # clone with CLONE_NEWUSER
        ("x86_64", (X86_64, 1, 0x10000011), ALLOWED),
        ("x86_64", (X86_64, 435, 0), UNKNOWN),  # clone3
        ("x86_64", (X86_64, 442, 0), PERMISSION),  # mount_setattr
        ("x86_64", (X86_64, 29, 0), PERMISSION),  # shmget
        ("x86_64", (X86_64, 319, 0), PERMISSION),  # memfd_create
        ("x86_64", (X86_64, 41, 1), ALLOWED),  # socket of AF_UNIX
        ("x86_64", (X86_64, 41, 16), ALLOWED),  # of AF_NETLINK
        ("x86_64", (X86_64, 41, 40), PERMISSION),  # of AF_VSOCK
        ("x86_64", (X86_64, 41, 17), PERMISSION),  # of AF_PACKET
        ("x86_64", (X86_64, 198, 40), ALLOWED),  # lremovexattr
        ("aarch64", (AARCH64, 198, 2), ALLOWED),  # socket of AF_INET
        ("aarch64", (AARCH64, 198, 38), PERMISSION),  # of AF_ALG
        ("x86_64", (X86_64, 0x40000000 | 165, 0), PERMISSION),  # of x32
        ("x86_64", (0x40000003, 21, 0), KILLED),  # of i386
        ("aarch64", (AARCH64, 64, 0), ALLOWED),  # write
        ("aarch64", (AARCH64, 40, 0), PERMISSION),  # mount
        ("aarch64", (AARCH64, 165, 0), ALLOWED),  # getrusage
        ("aarch64", (AARCH64, 97, 0), PERMISSION),  # unshare
        ("aarch64", (AARCH64, 220, 0x10000011), PERMISSION),  # clone with CLONE_NEWUSER
    ],
)
def test_calls_that_only_root_needs_are_refused(machine: str, call: tuple[int, int, int], result: int) -> None:
    program = calls.filter_calls(machine)
    assert program is not None
    assert execute_filter([*struct.iter_unpack("=HBBI", program)], *call) == result


def execute_filter(lines: list[tuple[int, ...]], audit: int, number: int, flags: int) -> int:
    """What a program of BPF returns for a call: only the few instructions that such filters use."""
    data = {0: number, 4: audit, 16: flags}
    register = at = 0
    jumps = {0x15: lambda k: register == k, 0x35: lambda k: register >= k, 0x45: lambda k: register & k != 0}
    while True:
        code, if_true, if_false, operand = lines[at]
        at += 1
        if code == 0x06:
            return operand
        if code == 0x20:
            register = data[operand]
        else:
            at += if_true if jumps[code](operand) else if_false


def test_a_machine_whose_calls_are_unknown_has_no_filter() -> None:
    assert calls.filter_calls("riscv64") is None


# ---------------------------------------------------------------- without isolation


def test_without_isolation_programs_have_limits_and_leave_nothing(
    no_sandbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "kept-secret")
    mark = f"# {no_sandbox}"
    monkeypatch.setattr(running, "_INSIDE", f"{mark}\n{running._INSIDE}")
    assert run("x = 1", "assert x == 1").how == "finished"
    assert run("import os; os._exit(0)").how == "exited"
    assert run("import os; os.abort()") == Ended("killed", "was ended by SIGABRT")
    assert run("x = bytearray(10 ** 10)").how == "memory"
    assert run("while True: print('x' * 1000)").how == "output"
    assert run("import time; time.sleep(600)", timeout=0.2).how == "timeout"
    assert "kept-secret" not in run("import os; print(dict(os.environ))").output
    assert run("import subprocess\nsubprocess.Popen(['sleep', '600'])").how == "finished"
    daemon = "import os, time\nif os.fork() == 0:\n os.setsid()\n time.sleep(600)"
    assert run(daemon).how == "finished"
    nested = "import os\nfor _ in range(100):\n os.mkdir('d'); os.chdir('d')\nos.chmod('.', 0)"
    assert run(nested).how == "finished"
    assert not [*no_sandbox.iterdir()]
    await_end(mark)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as another user")
@pytest.mark.usefixtures("no_sandbox")
def test_root_starts_programs_as_another_user() -> None:
    ended = run("import os\nprint(os.getuid() > 0, os.getgroups(), os.getgid() > 0)\nopen('/etc/shadow')")
    assert ended.output == "True [] True\n"
    assert ended.error is not None
    assert ended.error.startswith("PermissionError")
    assert run("import os\nos.kill(os.getppid(), 9)").error == "PermissionError: [Errno 1] Operation not permitted"
    assert run("import os\nwhile True: os.fork()", processes=8).how == "raised"
