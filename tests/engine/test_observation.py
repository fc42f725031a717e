"""Answers are reused only while the files that their calls opened stay the same: exactly these are made again."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.effort import FEW_EXAMPLES
from support.fingerprinted import load
from support.fresh import run_python

from evaluand import Dataset, DirectoryStore, Evaluator, Policy, Runner
from evaluand.engine import observation
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.outcome import Aborted
from evaluand.evaluation.scorer import scorer
from evaluand.run.runner import Run

pytestmark = pytest.mark.usefixtures("no_bytecode_files")

ROWS = 6
PER_EXAMPLE = """
    from pathlib import Path

    HERE = Path(__file__).parent

    def answer(x):
        return (HERE / "docs" / f"{x}.txt").read_text()
    """


@dataclass
class Project:
    """A folder with a task, a prompt and a document for each example, and a store."""

    folder: Path
    how: dict[str, Any] = field(default_factory=lambda: {"policy": Policy(concurrency=1)})

    def __post_init__(self) -> None:
        (self.folder / "docs").mkdir(parents=True)
        for i in range(ROWS):
            self.write(f"docs/{i}.txt", f"document {i}")
        self.write("prompt.txt", "prompt")
        self.store = DirectoryStore(self.folder / "store")
        self.data = Dataset.from_rows([{"input": i} for i in range(ROWS)])

    def write(self, name: str, text: str) -> None:
        """Writes a file as if long ago, so that its state is settled; another text is another time."""
        path = self.folder / name
        path.write_text(text)
        seconds = 1_000_000 + hash(text) % 1_000_000
        os.utime(path, (seconds, seconds))

    def run(self, source: str, **options: Any) -> Run:
        """Runs the task `answer` of a module that is loaded afresh, as a new process would."""
        forget_files()
        return Runner(self.store, **self.how).run(load(self.folder, source).answer, self.data, **options)

    def called(self, source: str, **options: Any) -> int:
        """How many calls a run has to make."""
        receipt = self.run(source, **options).receipt
        assert receipt is not None
        assert receipt.called + receipt.reused + receipt.kept == ROWS
        return receipt.called


def forget_files() -> None:
    """Forgets which files were opened, as a new process does."""
    observation._opened.clear()
    observation._places.clear()
    observation._named.clear()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path / "project")


READING_THE_PROMPT = {
    "a constant name": "def answer(x):\n    return PROMPT.read_text()\n",
    "a computed name": "def answer(x):\n    return (HERE / ''.join(['pro', 'mpt', '.t', 'xt'])).read_text()\n",
    "a name from another file": (
        "(HERE / 'name.txt').write_text('prompt.txt')\n"
        "def answer(x):\n    return (HERE / (HERE / 'name.txt').read_text()).read_text()\n"
    ),
    "os.open": "def answer(x):\n    return read(os.fdopen(os.open(PROMPT, os.O_RDONLY)))\n",
    "bytes": "def answer(x):\n    return read(open(os.fsencode(PROMPT)))\n",
    "methodcaller": "read = methodcaller('read_text')\ndef answer(x):\n    return read(PROMPT)\n",
    "partial": "read = partial(open, PROMPT)\ndef answer(x):\n    with read() as file:\n        return file.read()\n",
    "getattr": "def answer(x):\n    return getattr(PROMPT, 'read_text')()\n",
    "a thread": (
        "def answer(x):\n    found = []\n    def help():\n        found.append(PROMPT.read_text())\n"
        "    thread = threading.Thread(target=help)\n    thread.start()\n    thread.join()\n    return found\n"
    ),
    "a thread pool": (
        "def answer(x):\n    with ThreadPoolExecutor(2) as pool:\n"
        "        return list(pool.map(Path.read_text, [PROMPT, PROMPT]))\n"
    ),
    "an async call": "async def answer(x):\n    await asyncio.sleep(0)\n    return PROMPT.read_text()\n",
    "asyncio.to_thread": "async def answer(x):\n    return await asyncio.to_thread(PROMPT.read_text)\n",
    "gathered": (
        "async def read():\n    await asyncio.sleep(0)\n    return PROMPT.read_text()\n"
        "async def answer(x):\n    return await asyncio.gather(read(), read())\n"
    ),
    "an executor": (
        "async def answer(x):\n    return await asyncio.get_running_loop().run_in_executor(None, PROMPT.read_text)\n"
    ),
    "a cache": "@lru_cache\ndef prompt():\n    return PROMPT.read_text()\ndef answer(x):\n    return prompt()\n",
    "a global": (
        "TEXT = None\ndef answer(x):\n    global TEXT\n    TEXT = TEXT or PROMPT.read_text()\n    return TEXT\n"
    ),
    "a dictionary": (
        "TEXTS = {}\ndef answer(x):\n    if 'p' not in TEXTS:\n        TEXTS['p'] = PROMPT.read_text()\n"
        "    return TEXTS['p']\n"
    ),
    "an attribute": (
        "class C:\n    text = None\n    def __call__(self, x):\n        self.text = self.text or PROMPT.read_text()\n"
        "        return self.text\nanswer = C()\n"
    ),
    "a cached property": (
        "class C:\n    @cached_property\n    def text(self):\n        return PROMPT.read_text()\n"
        "    def __call__(self, x):\n        return self.text\nanswer = C()\n"
    ),
    "a lazy property": (
        "class C:\n    _text = None\n    @property\n    def text(self):\n        if self._text is None:\n"
        "            self._text = PROMPT.read_text()\n        return self._text\n"
        "c = C()\ndef answer(x):\n    return c.text\n"
    ),
    "a singleton": (
        "class C:\n    one = None\n    def __new__(cls):\n        if cls.one is None:\n"
        "            cls.one = super().__new__(cls)\n            cls.one.text = PROMPT.read_text()\n"
        "        return cls.one\ndef answer(x):\n    return C().text\n"
    ),
    "an attribute of the class": (
        "class C:\n    text = None\n    def __call__(self, x):\n        if self.text is None:\n"
        "            type(self).text = PROMPT.read_text()\n        return self.text\nanswer = C()\n"
    ),
    "a mapping of a library": (
        "from collections import ChainMap\nTEXTS = ChainMap({})\ndef answer(x):\n    if 'p' not in TEXTS:\n"
        "        TEXTS.update(p=PROMPT.read_text())\n    return TEXTS['p']\n"
    ),
    "a list that a function of its type changes": (
        "TEXTS = []\ndef answer(x):\n    if not TEXTS:\n        list.append(TEXTS, PROMPT.read_text())\n"
        "    return TEXTS[0]\n"
    ),
    "a default argument": (
        "def answer(x, texts={}):\n    if not texts:\n        texts['p'] = PROMPT.read_text()\n    return texts['p']\n"
    ),
    "an attribute of the function": (
        "def answer(x):\n    if not hasattr(answer, 'text'):\n        answer.text = PROMPT.read_text()\n"
        "    return answer.text\n"
    ),
    "an object that a helper gets": (
        "TEXTS = {}\ndef fill(texts):\n    texts['p'] = PROMPT.read_text()\ndef answer(x):\n    if not TEXTS:\n"
        "        fill(TEXTS)\n    return TEXTS['p']\n"
    ),
    "a fitted vectoriser": (
        "from sklearn.feature_extraction.text import CountVectorizer\nwords = CountVectorizer()\ndef answer(x):\n"
        "    if not hasattr(words, 'vocabulary_'):\n        words.fit([PROMPT.read_text()])\n"
        "    return sorted(words.vocabulary_)\n"
    ),
    "a folder that is made if need be": (
        "def answer(x):\n    os.makedirs(HERE, exist_ok=True)\n    return PROMPT.read_text()\n"
    ),
    "import": "TEXT = PROMPT.read_text()\ndef answer(x):\n    return TEXT\n",
    "construction": (
        "class C:\n    def __init__(self):\n        self.text = PROMPT.read_text()\n"
        "    def __call__(self, x):\n        return self.text\nanswer = C()\n"
    ),
    "prepare": (
        "from evaluand.run.task import Task\nclass C(Task):\n    def prepare(self, dataset):\n"
        "        self.text = PROMPT.read_text()\n    def do_run(self, input, task_span):\n        return self.text\n"
        "answer = C()\n"
    ),
    "a template": (
        "import jinja2\ntemplates = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE))\n"
        "def answer(x):\n    return templates.get_template('prompt.txt').render()\n"
    ),
    "a copy": (
        "def answer(x):\n    with tempfile.TemporaryDirectory() as folder:\n"
        "        return Path(shutil.copy(PROMPT, folder)).read_text()\n"
    ),
    "numpy": "import numpy as np\ndef answer(x):\n    return len(np.fromfile(PROMPT, dtype='u1').tolist())\n",
    "pandas": "import pandas as pd\ndef answer(x):\n    return list(pd.read_csv(PROMPT).columns)\n",
}
HEAD = """\
import asyncio, os, shutil, tempfile, threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from operator import methodcaller
from pathlib import Path

HERE = Path(__file__).parent
PROMPT = HERE / "prompt.txt"

def read(file):
    with file:
        return file.read()

"""


@pytest.mark.parametrize("how", READING_THE_PROMPT)
def test_a_changed_prompt_makes_all_calls_again_however_it_is_read(project: Project, how: str) -> None:
    source = HEAD + READING_THE_PROMPT[how]
    assert project.called(source) == ROWS
    project.write("other.txt", "not read by anybody")
    assert project.called(source) == 0
    project.write("prompt.txt", "another prompt")
    assert project.called(source) == ROWS
    assert project.called(source) == 0


@pytest.mark.parametrize("how", [{"policy": Policy(concurrency=1)}, {}, {"engine": ProcessEngine(2)}])
def test_of_many_files_only_the_rows_that_opened_the_changed_one_are_called_again(
    project: Project, how: dict[str, Any]
) -> None:
    project.how = how
    first = project.run(PER_EXAMPLE)
    assert project.called(PER_EXAMPLE) == 0
    project.write("docs/3.txt", "corrected")
    again = project.run(PER_EXAMPLE)
    assert again.receipt is not None
    assert (again.receipt.called, again.receipt.reused) == (1, ROWS - 1)
    assert again.receipt.why == "changed since opened: docs/3.txt"
    project.write("docs/3.txt", "document 3")
    back = project.run(PER_EXAMPLE)
    assert back.receipt is not None
    assert (back.receipt.called, back.receipt.reused, back.receipt.why) == (0, ROWS, "")
    assert back.digest == first.digest
    assert [r.responses for r in again] == [[f"document {i}"] if i != 3 else ["corrected"] for i in range(ROWS)]
    assert again.id != first.id
    assert project.called(PER_EXAMPLE) == 0


def test_threads_of_calls_in_progress_at_once_count_for_each_of_them(project: Project) -> None:
    source = HEAD + (
        "def answer(x):\n    with ThreadPoolExecutor(1) as pool:\n"
        "        return pool.submit((HERE / 'docs' / f'{x}.txt').read_text).result()\n"
    )
    project.how = {"policy": Policy(concurrency=ROWS)}
    assert project.called(source) == ROWS
    project.write("docs/3.txt", "corrected")
    assert 1 <= project.called(source) <= ROWS


def test_what_a_call_leaves_behind_opens_counts_for_the_calls_in_progress(project: Project) -> None:
    source = HEAD + (
        "CACHE = {}\n"
        "async def load():\n    await asyncio.sleep(0.05)\n    CACHE['text'] = PROMPT.read_text()\n"
        "async def answer(x):\n    if x == 0:\n"
        "        CACHE['task'] = asyncio.create_task(load())\n        return 'begun'\n"
        "    await asyncio.sleep(0.2)\n    return CACHE['text']\n"
    )
    project.how = {"policy": Policy(concurrency=ROWS)}
    assert project.called(source) == ROWS
    project.write("prompt.txt", "corrected")
    assert project.called(source) >= ROWS - 1  # but for the first, which had ended


def test_what_an_earlier_call_has_read_counts_for_later_calls_of_code_that_remembers(project: Project) -> None:
    source = HEAD + "@lru_cache\ndef read(x):\n    return (HERE / 'docs' / f'{x}.txt').read_text()\n"
    source += "def answer(x):\n    return [read(i) for i in range(x // 2 + 1)]\n"
    assert project.called(source) == ROWS
    project.write("docs/2.txt", "corrected")
    assert project.called(source) == 2  # of the inputs 4 and 5, although only the first of them has opened it


@pytest.mark.parametrize("processes", [False, True])
def test_a_prompt_cached_in_an_earlier_run_of_the_process_counts(project: Project, processes: bool) -> None:
    source = HEAD + READING_THE_PROMPT["a cache"]
    answer = load(project.folder, source).answer
    project.how = {"engine": ProcessEngine(2) if processes else LocalEngine()}
    forget_files()

    def called(rows: int) -> int:
        data = Dataset.from_rows([{"input": i} for i in range(rows)])
        receipt = Runner(project.store, **project.how).run(answer, data).receipt
        assert receipt is not None
        return receipt.called

    assert (called(3), called(ROWS)) == (3, ROWS - 3)
    project.write("prompt.txt", "another prompt")
    assert project.called(source) == ROWS


def test_ids_and_digests_do_not_depend_on_what_is_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = Project(tmp_path / "one"), Project(tmp_path / "elsewhere" / "two")
    two.write("docs/3.txt", "another text in another place")
    source = PER_EXAMPLE.replace(".read_text()", ".read_text()[:0]")
    first, second = one.run(source), two.run(source)
    assert (first.id, first.digest) == (second.id, second.digest)


def test_a_project_that_has_moved_with_its_store_is_not_run_again(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path / "before")
    assert project.called(PER_EXAMPLE) == ROWS
    (tmp_path / "before").rename(tmp_path / "after")
    project.folder, project.store = tmp_path / "after", DirectoryStore(tmp_path / "after" / "store")
    assert project.called(PER_EXAMPLE) == 0


def test_a_relative_name_means_the_file_in_the_current_folder(project: Project, monkeypatch: Any) -> None:
    (project.folder / "elsewhere").mkdir()
    project.write("elsewhere/prompt.txt", "another prompt")
    source = "def answer(x):\n    with open('prompt.txt') as file:\n        return file.read()\n"
    monkeypatch.chdir(project.folder)
    assert (project.called(source), project.called(source)) == (ROWS, 0)
    monkeypatch.chdir(project.folder / "elsewhere")
    assert project.called(source) == ROWS


# -- resuming


def test_a_resumed_run_calls_again_what_has_changed_since(project: Project) -> None:
    project.how = {"policy": Policy(concurrency=1, abort_on_error=True)}
    source = HEAD + "def answer(x):\n    if x == 4: (HERE / 'docs' / 'gate.txt').read_text()\n"
    source += "    return (HERE / 'docs' / f'{x}.txt').read_text()\n"
    with pytest.raises(Aborted):
        project.run(source)
    project.write("docs/gate.txt", "")
    project.write("docs/1.txt", "corrected")
    done = project.run(source)
    assert done.receipt is not None
    assert (done.receipt.called, done.receipt.kept) == (3, 3)  # the two that were left, and the one that has changed
    assert [r.responses for r in done][1] == ["corrected"]
    assert project.called(source) == 0


def test_a_plan_counts_what_has_changed(project: Project) -> None:
    project.run(PER_EXAMPLE)
    project.write("docs/3.txt", "corrected")
    plan = Runner(project.store).plan(load(project.folder, PER_EXAMPLE).answer, project.data)
    assert (plan.called, plan.reused, plan.kept) == (1, ROWS - 1, 0)


def test_answers_stored_without_observation_are_not_reused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    run = project.run(PER_EXAMPLE)
    manifest = project.store.manifest

    def without(kind: str, id: str) -> dict[str, Any]:
        known = manifest(kind, id)
        return {key: value for key, value in known.items() if not (id == run.id and key == "observed")}

    monkeypatch.setattr(project.store, "manifest", without)
    again = project.run(PER_EXAMPLE).receipt
    assert again is not None
    assert (again.called, again.why) == (ROWS, "the stored answers have no record of the files they opened")
    assert project.called(PER_EXAMPLE) == 0


# -- scorers


SCORER = HEAD + "def same(output, expected):\n    return (HERE / 'docs' / f'{expected}.txt').read_text() == output\n"


def test_scores_are_given_again_where_the_files_of_the_scorer_have_changed(project: Project) -> None:
    project.data = Dataset.from_rows([{"input": i, "expected": i} for i in range(ROWS)])
    run = project.run("def answer(x):\n    return f'document {x}'\n")

    def graded() -> tuple[int, list[float]]:
        evaluation = Evaluator().evaluate(run, {"same": load(project.folder, SCORER, "grading").same})
        assert evaluation.receipt is not None
        return evaluation.receipt.called, evaluation.table("same")["value"].to_pylist()

    assert graded() == (ROWS, [1.0] * ROWS)
    assert graded() == (0, [1.0] * ROWS)
    project.write("docs/2.txt", "changed")
    assert graded() == (1, [1.0, 1.0, 0.0, 1.0, 1.0, 1.0])


def test_scores_of_a_batch_share_what_the_batch_has_opened(project: Project) -> None:
    run = project.run("def answer(x):\n    return x\n")
    source = HEAD + "def short(output):\n    return [len(PROMPT.read_text()) > o for o in output]\n"

    def graded() -> int:
        short = scorer(batch=True)(load(project.folder, source, "grading").short)
        receipt = Evaluator().evaluate(run, {"short": short}).receipt
        assert receipt is not None
        return receipt.called

    assert (graded(), graded()) == (ROWS, 0)
    project.write("prompt.txt", "another prompt")
    assert graded() == ROWS


# -- what is no input


NO_INPUT = {
    "a log": "def answer(x):\n    with open(HERE / 'log.txt', 'a') as log:\n        log.write(f'{x}')\n    return x\n",
    "a file of its own": (
        "def answer(x):\n    path = HERE / 'made.txt'\n    path.write_text(f'{x}')\n    return path.read_text()\n"
    ),
    "a file renamed into place": (
        "def answer(x):\n    (HERE / 'made.tmp').write_text(f'{x}')\n"
        "    os.replace(HERE / 'made.tmp', HERE / 'made.txt')\n    return (HERE / 'made.txt').read_text()\n"
    ),
    "temporary files": (
        "def answer(x):\n    with tempfile.TemporaryDirectory() as folder:\n"
        "        (Path(folder) / 'a').write_text('a')\n"
        "        return len(os.listdir(folder)), (Path(folder) / 'a').read_text()\n"
    ),
    "an import": "def answer(x):\n    import colorsys, wave\n    return colorsys.rgb_to_hsv(0, 0, 0)\n",
    "entry points": (
        "import importlib\nfrom importlib.metadata import entry_points\n"
        "def answer(x):\n    importlib.invalidate_caches()\n    return len(entry_points(group='a.group')) * 0\n"
    ),
    "entry points that a backport looks up too": (
        "import importlib, importlib_metadata\nfrom importlib.metadata import entry_points\n"
        "def answer(x):\n    importlib.invalidate_caches()\n    return len(entry_points(group='a.group')) * 0\n"
    ),
    "installed packages": "import sklearn\ndef answer(x):\n    return len(read(open(sklearn.__file__))) * 0\n",
    "/proc": "def answer(x):\n    return len(read(open('/proc/self/status'))) * 0\n",
    "/dev/null": "def answer(x):\n    return read(open('/dev/null'))\n",
    "nothing": "def answer(x):\n    return x\n",
}


def test_a_file_that_is_called_like_a_module_of_python_reads_inputs_too(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("my_tokenize.py", "def prompt():\n    with open('prompt.txt') as file:\n        return file.read()\n")
    monkeypatch.chdir(project.folder)
    monkeypatch.syspath_prepend(str(project.folder))
    source = "from my_tokenize import prompt\ndef answer(x):\n    return prompt()\n"
    assert project.called(source) == ROWS
    assert project.called(source) == 0
    project.write("prompt.txt", "another")
    assert project.called(source) == ROWS


@pytest.mark.parametrize("how", NO_INPUT)
def test_what_says_nothing_of_an_answer_is_no_input(project: Project, how: str) -> None:
    run = project.run(HEAD + NO_INPUT[how])
    assert set(run.counts) == {"completed"}
    inputs = run.store.read("runs", run.id, "inputs") if "inputs" in run.manifest["tables"] else ()
    assert {row["file"] for batch in inputs for row in batch.to_pylist()} <= {"(wrote a file)"}
    assert project.called(HEAD + NO_INPUT[how]) == 0


def test_that_a_call_wrote_is_known_from_another_process(project: Project) -> None:
    project.how["engine"] = ProcessEngine(2)
    run = project.run(HEAD + NO_INPUT["a log"])
    rows = [row for batch in run.store.read("runs", run.id, "inputs") for row in batch.to_pylist()]
    assert {row["file"] for row in rows} == {"(wrote a file)"}
    assert sum(each["count"] for row in rows for each in row["rows"]) == ROWS


# -- hostile files


NEVER_REUSED = {
    "a device of random numbers": (
        "def answer(x):\n    with open('/dev/urandom', 'rb') as file:\n        return file.read(2).hex()\n"
    ),
    "a pipe": (
        "def answer(x):\n    pipe = HERE / f'pipe{x}'\n    os.mkfifo(pipe)\n    handle = os.open(pipe, os.O_RDWR)\n"
        "    os.write(handle, b'a')\n    text = os.read(handle, 1).decode()\n    os.close(handle)\n"
        "    os.remove(pipe)\n    return text\n"
    ),
    "a file that it reads and then changes": (
        "def answer(x):\n    text = PROMPT.read_text()\n    PROMPT.write_text(text + 'a')\n    return text\n"
    ),
    "a file that it reads and then removes": (
        "def answer(x):\n    path = HERE / 'docs' / f'{x}.txt'\n    text = path.read_text()\n    path.unlink()\n"
        "    (HERE / 'docs' / f'{x}.txt').write_text(text)\n    return text\n"
    ),
    "a database that it writes to": (
        "import sqlite3\ndef answer(x):\n    with sqlite3.connect(HERE / 'a.db') as db:\n"
        "        db.execute('create table if not exists t (n)')\n        db.execute('insert into t values (1)')\n"
        "        return db.execute('select count(*) from t').fetchone()[0]\n"
    ),
}


@pytest.mark.parametrize("how", NEVER_REUSED)
def test_what_cannot_be_compared_later_is_never_reused(project: Project, how: str) -> None:
    source = HEAD + NEVER_REUSED[how]
    assert (project.called(source), project.called(source)) == (ROWS, ROWS)


DRAWS: dict[str, tuple[str, Callable[[], Any]]] = {
    "a number": ("random", random.random),
    "as many words as the generator has": ("random", lambda: [random.getrandbits(32) for _ in range(624)]),
    "the second of two normal numbers": ("random", lambda: random.gauss(0, 1)),
    "a seed": ("random", lambda: random.seed(0)),
    "a state that is set": ("random", lambda: random.setstate(random.Random(1).getstate())),
    "a number of NumPy": ("numpy.random", np.random.rand),
    "as many words of NumPy": ("numpy.random", lambda: np.random.randint(0, 2**32, 624, np.uint32)),
    "another generator of NumPy": ("numpy.random", lambda: np.random.seed(5)),
}


@pytest.mark.parametrize("way", ["in place", "by getstate"])
@pytest.mark.parametrize("what", DRAWS)
def test_every_draw_from_a_shared_generator_is_seen(what: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "by getstate":  # where the generator of Python lies otherwise in memory
        elsewhere = SimpleNamespace(tobytes=random.getstate)
        monkeypatch.setattr(observation, "_random_words", lambda generator: elsewhere)
    module, draw = DRAWS[what]
    random.seed(7)
    np.random.seed(7)
    random.gauss(0, 1)  # the next one is kept
    before = observation._state_of(module)
    assert observation._state_of(module) == before
    draw()
    assert observation._state_of(module) != before


NOT_REPEATABLE = {
    "a global forest that is fitted": (
        "drew from the generator that all code shares in numpy.random",
        "from sklearn.ensemble import RandomForestClassifier\nforest = RandomForestClassifier(n_estimators=1)\n"
        "def answer(x):\n    return forest.fit([[0], [1]], [0, 1]).predict([[x]]).tolist()\n",
    ),
    "cross-validation of a global forest": (
        "drew from the generator that all code shares in numpy.random",
        "from sklearn.ensemble import RandomForestClassifier\nfrom sklearn.model_selection import cross_val_score\n"
        "forest = RandomForestClassifier(n_estimators=1)\n"
        "def answer(x):\n    return cross_val_score(forest, [[0], [1]] * 3, [0, 1] * 3, cv=2).tolist()\n",
    ),
    "a dummy that draws": (
        "drew from the generator that all code shares in numpy.random",
        "from sklearn.dummy import DummyClassifier\n"
        "model = DummyClassifier(strategy='uniform').fit([[0], [1]], [0, 1])\n"
        "def answer(x):\n    return model.predict([[x]]).tolist()\n",
    ),
    "the generator of a distribution": (
        "drew from the generator that all code shares in numpy.random",
        "from scipy.stats import norm\ndef answer(x):\n    return float(norm.random_state.rand())\n",
    ),
    "a table behind an address": (
        "connected to a service",
        "import pandas as pd\ndef answer(x):\n    return int(pd.read_csv((HERE / 'url').read_text())['a'][0])\n",
    ),
    "the repr of an object": (
        "holds an address in memory or the name of a temporary file",
        "class A:\n    pass\ndef answer(x):\n    return repr(A())\n",
    ),
    "the name of a temporary file": (
        "holds an address in memory or the name of a temporary file",
        "def answer(x):\n    with tempfile.NamedTemporaryFile() as file:\n        return file.name\n",
    ),
}


@pytest.mark.parametrize("how", NOT_REPEATABLE)
def test_what_a_library_does_at_random_or_elsewhere_is_never_reused_and_the_receipt_says_so(
    project: Project, how: str
) -> None:
    why, source = NOT_REPEATABLE[how]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tables)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    project.write("url", f"http://127.0.0.1:{server.server_port}/table.csv")
    try:
        assert project.called(HEAD + source) == ROWS
        again = project.run(HEAD + source).receipt
    finally:
        server.shutdown()
        server.server_close()
    assert again is not None
    assert again.called == ROWS
    assert again.why == f"a call {why}; declare version=... to pin it"


class Tables(BaseHTTPRequestHandler):
    """Serves a table of one row."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a\n1\n")

    def log_message(self, *_: Any) -> None:
        pass


def test_a_library_that_does_not_draw_is_reused(project: Project) -> None:
    source = HEAD + (
        "from sklearn.linear_model import LogisticRegression\nmodel = LogisticRegression()\n"
        "def answer(x):\n    return model.fit([[0], [1]], [0, 1]).predict([[x]]).tolist()\n"
    )
    assert (project.called(source), project.called(source)) == (ROWS, 0)


def test_a_file_that_does_not_exist_yet_counts_once_it_does(project: Project) -> None:
    source = HEAD + "def answer(x):\n    try:\n        return read(open(HERE / 'override.txt'))\n"
    source += "    except FileNotFoundError:\n        return 'no override'\n"
    assert (project.called(source), project.called(source)) == (ROWS, 0)
    project.write("override.txt", "now there is one")
    assert project.called(source) == ROWS


def test_a_file_that_a_call_appends_to_and_then_reads_counts(project: Project) -> None:
    source = HEAD + (
        "def answer(x):\n    with open(HERE / 'notes.txt', 'a') as file:\n        file.write('')\n"
        "    return (HERE / 'notes.txt').read_text()\n"
    )
    project.write("notes.txt", "one")
    assert (project.called(source), project.called(source)) == (ROWS, 0)
    project.write("notes.txt", "two")
    assert project.called(source) == ROWS


def test_a_file_that_a_call_makes_for_later_calls_counts_as_it_left_it(project: Project) -> None:
    source = HEAD + (
        "def answer(x):\n    path = HERE / 'cached.txt'\n    try:\n        return path.read_text()\n"
        "    except FileNotFoundError:\n        path.write_text('made')\n        return 'made'\n"
    )
    assert (project.called(source), project.called(source)) == (ROWS, 0)
    project.write("cached.txt", "edited")
    assert project.called(source) == ROWS


def test_a_deleted_file_makes_the_call_fail_again(project: Project) -> None:
    assert project.called(PER_EXAMPLE) == ROWS
    (project.folder / "docs" / "3.txt").unlink()
    again = project.run(PER_EXAMPLE)
    assert again.receipt is not None
    assert (again.receipt.called, again.receipt.failed) == (1, 1)


def test_a_link_counts_by_what_it_leads_to(project: Project) -> None:
    link = project.folder / "link.txt"
    link.symlink_to(project.folder / "prompt.txt")
    source = HEAD + "def answer(x):\n    return (HERE / 'link.txt').read_text()\n"
    assert (project.called(source), project.called(source)) == (ROWS, 0)
    link.unlink()
    link.symlink_to(project.folder / "docs" / "1.txt")
    assert project.called(source) == ROWS


@pytest.mark.parametrize(
    "listing",
    ["os.listdir(HERE / 'docs')", "[p.name for p in (HERE / 'docs').glob('*.txt')]", "next(os.walk(HERE / 'docs'))[2]"],
)
def test_a_listed_folder_counts_by_the_names_in_it(project: Project, listing: str) -> None:
    source = HEAD + f"def answer(x):\n    return sorted({listing})\n"
    assert (project.called(source), project.called(source)) == (ROWS, 0)
    project.write("docs/1.txt", "other content, same name")
    assert project.called(source) == 0
    project.write("docs/more.txt", "one more")
    assert project.called(source) == ROWS


def test_a_file_that_cannot_be_read_counts_as_such(project: Project) -> None:
    source = HEAD + "def answer(x):\n    try:\n        return read(open(HERE / 'docs'))\n"
    source += "    except IsADirectoryError:\n        return 'a folder'\n"
    assert (project.called(source), project.called(source)) == (ROWS, 0)


def test_a_large_file_is_read_once_for_its_state(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluand.core import identity

    project.write("weights.bin", "0" * 3_000_000)
    read: list[Path] = []
    digest = identity.digest_of_file
    monkeypatch.setattr(identity, "digest_of_file", lambda path: (read.append(path), digest(path))[1])
    source = HEAD + "def answer(x):\n    with open(HERE / 'weights.bin') as file:\n        return file.read(x)\n"
    assert (project.called(source), project.called(source)) == (ROWS, 0)
    assert [path.name for path in read] == ["weights.bin"]


def test_all_rows_that_share_a_prompt_are_one_row_of_the_inputs(project: Project) -> None:
    project.data = Dataset.from_rows([{"input": i} for i in range(1_000)])
    run = project.run(HEAD + READING_THE_PROMPT["a constant name"])
    assert next(project.store.read("runs", run.id, "inputs")).to_pylist() == [
        {"parent": None, "file": "prompt.txt", "state": run_state(run), "rows": [{"first": 0, "count": 1_000}]}
    ]


def run_state(run: Run) -> str:
    """The digest of the one file that a run has opened."""
    (state,) = (row["state"] for row in next(run.store.read("runs", run.id, "inputs")).to_pylist())
    assert len(state) == 32
    return str(state)


def test_nothing_is_observed_outside_of_calls(project: Project) -> None:
    source = HEAD + "def answer(x):\n    return x\n"
    project.run(source)
    (project.folder / "docs" / "1.txt").read_text()
    assert project.called(source) == 0


# -- any set of files


@settings(max_examples=FEW_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    reads=st.lists(st.sets(st.integers(0, ROWS - 1)), min_size=ROWS, max_size=ROWS),
    changed=st.sets(st.integers(0, ROWS - 1)),
)
def test_rows_are_called_again_from_the_first_that_opened_a_changed_file_but_those_that_name_their_own(
    tmp_path_factory: pytest.TempPathFactory, reads: list[set[int]], changed: set[int]
) -> None:
    project = Project(tmp_path_factory.mktemp("any") / "project")
    source = HEAD + f"READS = {[sorted(each) for each in reads]!r}\ndef answer(x):\n"
    source += "    return [(HERE / 'docs' / f'{i}.txt').read_text() for i in READS[x]]\n"
    assert project.called(source) == ROWS
    for i in changed:
        project.write(f"docs/{i}.txt", f"changed {i}")
    found = [{i for row in reads[: x + 1] for i in row} for x in range(ROWS)]
    own = [{x} & reads[x] for x in range(ROWS)]
    shared = [{i for i in found[x] if any(i in reads[row] for row in range(x + 1) if row != i)} for x in range(ROWS)]
    assert project.called(source) == sum(bool((own[x] | shared[x]) & changed) for x in range(ROWS))
    assert project.called(source) == 0


def test_a_second_process_finds_what_the_first_has_observed(project: Project) -> None:
    main = (
        "from app import answer\nfrom evaluand import Dataset, DirectoryStore, Runner\n"
        "data = Dataset.from_rows([{'input': i} for i in range(6)])\n"
        "print(Runner(DirectoryStore('store')).run(answer, data).receipt.called)\n"
    )
    load(project.folder, PER_EXAMPLE)

    def called() -> int:
        done = run_python(main, cwd=project.folder)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert (called(), called()) == (6, 0)
    project.write("docs/3.txt", "corrected")
    assert called() == 1


LOOKS_INTO_THE_STORE = """
import threading
from evaluand import Dataset, DirectoryStore, Runner, task
from evaluand.store.io import DiskFolder


def look():
    folder = DiskFolder("store") / "datasets"
    for name in folder.folders():
        (folder / name).read("manifest.json")


@task
def shout(text):
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return text.upper()


run = Runner(DirectoryStore("store")).run(shout, Dataset.from_rows([{"input": "a"}, {"input": "b"}]))
print(sorted(run.manifest["tables"]))
"""


def test_what_threads_of_evaluand_read_of_a_store_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "looks.py").write_text(LOOKS_INTO_THE_STORE)
    ran = run_python("import looks", cwd=tmp_path)
    assert ran.stdout == "['responses']\n", ran.stderr


def test_a_file_whose_name_is_no_text_ends_no_run_and_its_answers_are_made_again(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("!")
    source = (
        "import os\nfrom pathlib import Path\ndef answer(x):\n"
        "    return x + Path(__file__).with_name(os.fsdecode(b'caf\\xe9.txt')).read_text()\n"
    )
    answer, data = load(tmp_path, source).answer, Dataset.from_rows([{"input": "a"}])
    for _ in range(2):
        run = Runner(DirectoryStore(tmp_path / "store")).run(answer, data)
        assert ([row.responses for row in run], run.receipt and run.receipt.called) == ([["a!"]], 1)
