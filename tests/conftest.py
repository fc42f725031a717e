"""What all tests share."""

import gc
import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from support.browser import chromium as chromium
from support.places import ROOT_FOLDER
from support.servers import postgres as postgres, s3 as s3, s3_server as s3_server
from support.skips import pytest_terminal_summary as pytest_terminal_summary

# A process of the tests has less than one core: threads of numerical libraries would wait busily for one another. These
# are read when NumPy and scikit-learn are imported.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# The files of tests stay in memory where there is room for them: on a disk they take a tenth of the time of all tests.
_memory = Path("/dev/shm")
if (
    "TMPDIR" not in os.environ
    and os.access(_memory, os.W_OK)
    and not os.statvfs(_memory).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(_memory).free > 4 << 30
):
    os.environ["TMPDIR"], tempfile.tempdir = str(_memory), None

# No test reads or writes the settings and the cache of whoever runs it.
_home = tempfile.TemporaryDirectory(prefix="evaluand-home-", ignore_cleanup_errors=True)
os.environ |= {f"XDG_{name}_HOME": os.path.join(_home.name, name.lower()) for name in ("CONFIG", "CACHE")}
_numbers = itertools.count()

# Tests kill processes, never the machine; waiting until the disk has what was written would take long on a slow one.
# Interpreters that tests start do wait.
os.fsync = os.fdatasync = lambda descriptor: None

# How long one example takes depends on who else uses the machine; a deadline would fail tests at random.
settings.register_profile("quick", deadline=None, max_examples=8)
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    """Takes Ctrl-C as usual also where the shell that started the tests in the background ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(_OnlyModulesWithExamples())  # a hook in this file is asked for tests/ alone


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are processors: a sixth of their time tests wait for servers, pages and processes."""
    return (os.cpu_count() or 1) + 1


class _OnlyModulesWithExamples:
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Imports no module without examples to look for some: it may need an extra, and imports take time."""
        is_module = collection_path.suffix == ".py" and collection_path.is_relative_to(ROOT_FOLDER / "src")
        return True if is_module and b">>>" not in collection_path.read_bytes() else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported to collect the tests lives until the end: the garbage collector need not look through it.

    It looks through what the tests make less often than usual: they are short, and memory is there.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        gc.enable()


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test is answered by the replies of an earlier one, whose server had the same port by chance."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.path.join(_home.name, f"cache-{next(_numbers)}"))
    if "evaluand.models.reply_cache" in sys.modules:
        sys.modules["evaluand.models.reply_cache"]._reset_after_fork()
    if "evaluand.models.chat_model" in sys.modules:
        sys.modules["evaluand.models.chat_model"]._support_by_model.clear()


@pytest.fixture(autouse=True)
def no_secrets_in_use() -> None:
    """No text of a test is hidden because a test before it has used it as a credential in this process."""
    if "evaluand.core.redaction" in sys.modules:
        sys.modules["evaluand.core.redaction"]._in_use.clear()
        sys.modules["evaluand.core.redaction"]._redact.cache_clear()


@pytest.fixture(autouse=True)
def same_search_path() -> Iterator[None]:
    """Experiments leave the folder of their code on the path, where reading entry points lists it in later tests."""
    before = sys.path[:]
    yield
    sys.path[:] = before


@pytest.fixture
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Starts scripted servers of a chat model, which give replies in turn."""
    from support.chats import Chat  # few tests need it, and it imports much

    started: list[Chat] = []

    def start(*replies: dict[str, Any]) -> Chat:
        started.append(Chat(tmp_path_factory.mktemp("chat"), replies))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def smollm() -> Iterator[Any]:
    """A real small language model."""
    from support.chats import real_model

    with real_model() as model:
        yield model


@pytest.fixture
def no_bytecode_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode files tell versions of a source apart by the second; some tests are faster."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
