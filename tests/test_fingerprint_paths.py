"""Files that code reads count where their names can be told without running it, and leave it unpinned elsewhere."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evaluand.fingerprint import Fingerprint, explain, fingerprint
from evaluand.fingerprint import files as limits

COMPUTED = "reads a file whose name is known only when it runs; name the files with files=[...] or declare version=..."
LISTED = "lists a folder whose name is known only when it runs; name the files with files=[...] or declare version=..."


@pytest.fixture(autouse=True)
def _no_bytecode_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode files tell versions of a source apart by the second; these tests are faster."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture(autouse=True)
def _prompts(tmp_path: Path) -> None:
    folder = tmp_path / "code" / "prompts" / "deep"
    folder.mkdir(parents=True)
    for path in (folder.parent / "a.txt", folder.parent / "b.txt", folder / "c.txt", folder.parents[1] / "d"):
        path.write_text(path.name)


def load(folder: Path, source: str) -> ModuleType:
    path = folder / "code" / "app.py"
    path.write_text(HEAD + source)
    spec = importlib.util.spec_from_file_location("evaluand_test_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of(folder: Path, source: str) -> Fingerprint:
    return fingerprint(load(folder, source).answer)


HEAD = """\
import functools, glob, gzip, io, json, os
from pathlib import Path, PurePath
HERE = Path(__file__).parent
P = HERE / "prompts"
NAME, KINDS = "a", {"x": "a", "y": "b"}
"""

ONE = {
    "divided": "def answer(x):\n    return (HERE / 'prompts' / (NAME + '.txt')).read_text()\n",
    "formatted": "def answer(x):\n    return open(f'{P}/{NAME}.txt').read()\n",
    "formatted by the method": "def answer(x):\n    return open('{}/{n}.txt'.format(P, n=NAME)).read()\n",
    "formatted by percent": "def answer(x):\n    return open('%s/a.txt' % P).read()\n",
    "added": "def answer(x):\n    return io.open(str(P) + '/' + NAME + '.txt').read()\n",
    "joined": (
        "def answer(x):\n    return open(os.path.join(os.path.dirname(__file__), 'prompts', f'{NAME}.txt')).read()\n"
    ),
    "methods": (
        "def answer(x):\n    return P.joinpath('b.md').with_name(NAME).with_suffix('.txt').resolve().read_bytes()\n"
    ),
    "parents": "def answer(x):\n    return (Path(__file__).resolve().parents[0] / f'prompts/{NAME}.txt').read_text()\n",
    "opened by the path": "def answer(x):\n    with (P / f'{NAME}.txt').open() as f:\n        return json.load(f)\n",
    "by keyword": "def answer(x):\n    return open(file=P / f'{NAME}.txt', mode='rb').read()\n",
    "compressed": "def answer(x):\n    return gzip.open(os.fspath(P / f'{NAME}.txt'), 'rt').read()\n",
    "variable": "def answer(x):\n    n = NAME + '.txt'\n    p = P / n\n    return p.read_text()\n",
    "annotated": "def answer(x):\n    p: Path = P / f'{NAME}.txt'\n    return p.read_text()\n",
    "named in passing": "def answer(x):\n    return (p := P / f'{NAME}.txt').read_text()\n",
    "closure": (
        "def make(n):\n    def answer(x):\n        return (P / (n + '.txt')).read_text()\n    return answer\n"
        "answer = make('a')\n"
    ),
    "inner function": (
        "def answer(x):\n    p = P / f'{NAME}.txt'\n    def inner():\n        return p.read_text()\n"
        "    return inner()\n"
    ),
    "class attribute": "class C:\n    stem = 'a'\ndef answer(x):\n    return (P / (C.stem + '.txt')).read_text()\n",
    "item": "def answer(x):\n    return (P / f\"{KINDS['x']}.txt\").read_text()\n",
    "attribute of an instance": (
        "class C:\n    def __init__(self):\n        self.stem = 'a'\nc = C()\n"
        "def answer(x):\n    return (P / f'{c.stem}.txt').read_text()\n"
    ),
    "method": (
        "class C:\n    def __init__(self, stem):\n        self.stem = stem\n"
        "    def __call__(self, x):\n        return (P / f'{self.stem}.txt').read_text()\nanswer = C('a')\n"
    ),
    "property": (
        "class C:\n    stem = 'a'\n    @property\n    def text(self):\n"
        "        return (P / f'{self.stem}.txt').read_text()\n"
        "c = C()\ndef answer(x):\n    return c.text\n"
    ),
    "method of a base": (
        "class B:\n    def text(self):\n        return (P / f'{self.stem}.txt').read_text()\n"
        "class C(B):\n    __slots__ = ('stem',)\n    def __init__(self):\n        self.stem = 'a'\n"
        "c = C()\ndef answer(x):\n    return c.text()\n"
    ),
    "class method": (
        "class C:\n    stem = 'a'\n    @classmethod\n    def text(cls):\n"
        "        return (P / f'{cls.stem}.txt').read_text()\nc = C()\ndef answer(x):\n    return c.text()\n"
    ),
    "helper": (
        "def text(n, end='.txt'):\n    return (P / (n + end)).read_text()\ndef answer(x):\n    return text(NAME)\n"
    ),
    "helper of a helper": (
        "def text(p):\n    return p.read_text()\ndef named(n):\n    return text(P / f'{n}.txt')\n"
        "def answer(x):\n    return named(n=NAME)\n"
    ),
    "helper that keeps": (
        "@functools.cache\ndef text(n):\n    return (P / (n + '.txt')).read_text()\ndef answer(x):\n"
        "    return text(NAME)\n"
    ),
    "array": "import numpy as np\ndef answer(x):\n    return np.loadtxt(P / f'{NAME}.txt')\n",
    "frame": "import pandas as pd\ndef answer(x):\n    return pd.read_csv(P / f'{NAME}.txt')\n",
    "frame from an open file": (
        "from pandas import read_csv\ndef answer(x):\n    with open(P / f'{NAME}.txt') as f:\n"
        "        return read_csv(f)\n"
    ),
    "either of two": "def answer(x):\n    return open(P / f'{NAME}.txt' if x else P / ('a' + '.txt')).read()\n",
}


@pytest.mark.parametrize("how", ONE)
def test_a_name_whose_parts_are_known_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.chdir(tmp_path)
    module = load(tmp_path, ONE[how])
    before = fingerprint(module.answer)
    assert before.unpinned == ()
    assert list(before.files) == ["prompts/a.txt"]
    (tmp_path / "code" / "prompts" / "a.txt").write_text("another")
    assert explain(before.files, fingerprint(module.answer).files) == ["prompts/a.txt changed"]


SEVERAL = {
    "numbered loop": (
        "def answer(x):\n    for i, n in enumerate(['a', 'b']):\n        x += (P / f'{n}.txt').read_text()\n"
        "    return x\n"
    ),
    "values in pairs": "def answer(x):\n    return {k: (P / f'{v}.txt').read_text() for k, v in KINDS.items()}\n",
    "keys in pairs": (
        "N = {'a.txt': 1, 'b.txt': 2}\ndef answer(x):\n    return [open(P / k).read() for k, v in N.items()]\n"
    ),
    "loop": "def answer(x):\n    for n in ('a', 'b'):\n        x += (P / f'{n}.txt').read_text()\n    return x\n",
    "comprehension": "N = ['b', 'a']\ndef answer(x):\n    return [open(P / (n + '.txt')).read() for n in sorted(N)]\n",
    "keys of a dictionary": (
        "def answer(x):\n    N = {'a': 1, 'b': 2}\n    return [(P / n).read_text() for n in ['a.txt', 'b.txt']]\n"
    ),
    "any item": "def answer(x):\n    return (P / f'{KINDS[x]}.txt').read_text()\n",
    "branches": (
        "def answer(x):\n    if x:\n        n = 'a'\n    else:\n        n = 'b'\n"
        "    return (P / f'{n}.txt').read_text()\n"
    ),
    "instances": (
        "class C:\n    def __init__(self, stem):\n        self.stem = stem\n"
        "    def text(self):\n        return (P / f'{self.stem}.txt').read_text()\n"
        "several = [C('a'), C('b')]\ndef answer(x):\n    return [c.text() for c in several]\n"
    ),
    "calls": (
        "def text(n):\n    return (P / f'{n}.txt').read_text()\n"
        "def other(x):\n    return text('b')\ndef answer(x):\n    return text('a') + other(x)\n"
    ),
    "loop over a helper": (
        "def text(n):\n    return (P / f'{n}.txt').read_text()\ndef answer(x):\n"
        "    return [text(n) for n in KINDS.values()]\n"
    ),
}


@pytest.mark.parametrize("how", SEVERAL)
def test_all_that_a_name_can_be_is_read(tmp_path: Path, how: str) -> None:
    printed = of(tmp_path, SEVERAL[how])
    assert printed.unpinned == ()
    assert list(printed.files) == ["prompts/a.txt", "prompts/b.txt"]


UNKNOWN = {
    "parameter": "def answer(x):\n    return open(x).read()\n",
    "parameter with a default": "def answer(x, p=P / 'a.txt'):\n    return p.read_text()\n",
    "part from a parameter": "def answer(x):\n    return (P / x).read_text()\n",
    "formatted with a parameter": "def answer(x):\n    return open(f'{P}/{x}.txt').read()\n",
    "loop": "def answer(x):\n    return [open(n).read() for n in x]\n",
    "result of a function": "def name(x):\n    return 'a'\ndef answer(x):\n    return open(name(x)).read()\n",
    "set again": "def answer(x):\n    p = P\n    p = p / 'a.txt'\n    return p.read_text()\n",
    "added to": "def answer(x):\n    p = 'prompts'\n    p += x\n    return open(p).read()\n",
    "numbers of a loop": "def answer(x):\n    return [open(f'{P}/{i}').read() for i, y in enumerate(['a', 'b'])]\n",
    "pairs": "def answer(x):\n    return [open(b).read() for a, b in x.items()]\n",
    "unpacked": "def answer(x):\n    p, q = x\n    return open(p).read()\n",
    "also a parameter": "def answer(x):\n    p = P / 'a.txt'\n    return (lambda p: p.read_text())(x)\n",
    "global that is set": (
        "LAST = 'a.txt'\ndef answer(x):\n    global LAST\n    LAST = x\n    return open(LAST).read()\n"
    ),
    "global set elsewhere": (
        "LAST = 'a.txt'\ndef note(x):\n    global LAST\n    LAST = x\n"
        "def answer(x):\n    note(x)\n    return open(LAST).read()\n"
    ),
    "mode that is not known": "def answer(x):\n    return open(x, x)\n",
    "instance made by the code": (
        "class C:\n    def __init__(self, p):\n        self.p = p\n    def text(self):\n"
        "        return open(self.p).read()\n"
        "c = C('prompts/a.txt')\ndef answer(x):\n    return c.text() + C(x).text()\n"
    ),
    "instance of a sister made by the code": (
        "class B:\n    def __init__(self, p):\n        self.p = p\n    def text(self):\n"
        "        return open(self.p).read()\nclass C(B):\n    pass\nclass D(B):\n    pass\nc = C('prompts/a.txt')\n"
        "def answer(x):\n    return c.text() + D(x).text()\n"
    ),
    "attribute set by a method": (
        "class C:\n    p = 'prompts/a.txt'\n    def __call__(self, x):\n        self.p = x\n"
        "        return open(self.p).read()\n"
        "answer = C()\n"
    ),
    "attribute that is computed": (
        "class C:\n    @property\n    def p(self):\n        return 'prompts/a.txt'\n"
        "    def __call__(self, x):\n        return open(self.p).read()\nanswer = C()\n"
    ),
    "method of a class alone": (
        "class C:\n    def __init__(self, p):\n        self.p = p\n    def text(self):\n"
        "        return open(self.p).read()\n"
        "def answer(x):\n    return C(x).text()\n"
    ),
    "helper called with something": (
        "def text(p):\n    return p.read_text()\ndef answer(x):\n    return text(P / 'a.txt') + text(x)\n"
    ),
    "helper handed on": (
        "def text(p):\n    return p.read_text()\ndef answer(x):\n"
        "    return text(P / 'a.txt') + str(list(map(text, x)))\n"
    ),
    "helper in a table": (
        "def text(p):\n    return p.read_text()\nT = [text]\ndef answer(x):\n    return text(P / 'a.txt') + T[0](x)\n"
    ),
    "helper called with all": (
        "def text(p):\n    return p.read_text()\ndef answer(x):\n    return text(P / 'a.txt') + text(*x)\n"
    ),
    "helper of itself": (
        "def text(p):\n    return p.read_text() + text(p.parent)\ndef answer(x):\n    return text(P / 'a.txt')\n"
    ),
    "array": "import numpy as np\ndef answer(x):\n    return np.load(x)\n",
    "frame": "from pandas import read_csv\ndef answer(x):\n    return read_csv(x)\n",
    "weights": "import joblib\ndef answer(x):\n    return joblib.load(x)\n",
}


@pytest.mark.parametrize("how", UNKNOWN)
def test_a_name_with_a_part_that_is_not_known_unpins_unless_files_are_declared(tmp_path: Path, how: str) -> None:
    module = load(tmp_path, UNKNOWN[how])
    printed = fingerprint(module.answer)
    assert len(printed.unpinned) == 1
    assert printed.unpinned[0].startswith("app.")
    assert printed.unpinned[0].endswith(f"{COMPUTED} to pin it")
    declared = fingerprint(module.answer, files=["prompts"])
    assert declared.unpinned == ()
    assert "prompts" in declared.files


def test_the_sentence_says_where_and_what_to_do(tmp_path: Path) -> None:
    source = "def answer(x):\n    p = P / x\n    return p.read_text() + open(x).read()\n"
    assert of(tmp_path, source).unpinned == (
        f"app.answer, line 8: p.read_text {COMPUTED} to pin it",
        f"app.answer, line 8: open {COMPUTED} to pin it",
    )


def test_files_declared_by_an_inner_task_speak_for_its_own_reading(tmp_path: Path) -> None:
    source = (
        "from evaluand.task import task\n@task(files=['prompts'])\ndef inner(x):\n    return open(x).read()\n"
        "def answer(x):\n    return inner(x){}\n"
    )
    assert of(tmp_path, source.format("")).unpinned == ()
    (said,) = of(tmp_path, source.format(" + open(x).read()")).unpinned
    assert said.startswith("app.answer, line 11: open ")


@pytest.mark.parametrize(
    "source",
    [
        "def answer(x):\n    return open(x, 'w')\n",
        "def answer(x):\n    (P / x).write_text(x)\n    Path(x).open('a').close()\n",
        "import pandas as pd\ndef answer(x):\n    return pd.read_csv(io.StringIO(x))\n",
        "import pandas as pd\ndef answer(x):\n    text = io.StringIO(x)\n    return pd.read_csv(text)\n",
        "def open(x):\n    return x\ndef answer(x):\n    return open(x)\n",
        "class C:\n    def read_text(self):\n        return 'a'\n    def __call__(self, x):\n"
        "        return self.read_text()\n"
        "answer = C()\n",
        "class C:\n    def read_text(self):\n        return 'a'\nc = C()\ndef answer(x):\n    return c.read_text()\n",
        "def answer(x):\n    return open(HERE / 'no such file').read()\n",
        "import os.path, fnmatch\ndef answer(x):\n    return os.path.splitext(x), fnmatch.filter(x, '*')\n",
    ],
)
def test_what_reads_no_unknown_file_stays_pinned(tmp_path: Path, source: str) -> None:
    printed = of(tmp_path, source)
    assert (printed.unpinned, printed.files) == ((), {})


def test_a_file_that_is_opened_needs_no_name_that_looks_like_one(tmp_path: Path) -> None:
    assert list(of(tmp_path, "def answer(x):\n    return open(HERE / 'd').read()\n").files) == ["d"]


def test_an_address_is_not_a_file(tmp_path: Path) -> None:
    source = "import pandas as pd\ndef answer(x):\n    return pd.read_csv('https://localhost/a.csv')\n"
    (said,) = of(tmp_path, source).unpinned
    assert said.startswith("app.answer, line 8: pd.read_csv asks a service")


def test_nothing_of_the_users_code_is_run_to_learn_a_name(tmp_path: Path) -> None:
    source = (
        "class T(str):\n    def __format__(self, spec):\n        raise SystemExit\n    __add__ = __str__ = __format__\n"
        "T1 = T('a')\ndef answer(x):\n    x = open(f'{T1}.txt').read()\n    return x + open(T1 + '.txt').read()\n"
    )
    assert len(of(tmp_path, source).unpinned) == 2


# -- weights


def test_a_model_loaded_by_name_unpins_and_one_in_a_folder_counts(tmp_path: Path) -> None:
    source = "def answer(x):\n    return x.AutoModel.from_pretrained({})\n"
    (said,) = of(tmp_path, source.format("'some/model'")).unpinned
    assert said.startswith("app.answer, line 7: x.AutoModel.from_pretrained loads a model by name")
    held = of(tmp_path, source.format("P"))
    assert held.unpinned == ()
    assert list(held.files) == ["prompts/**/*"]


# -- folders


LISTS = {
    "names": ("def answer(x):\n    return os.listdir(P)\n", "prompts/*"),
    "entries": ("def answer(x):\n    return list(os.scandir(path=P))\n", "prompts/*"),
    "path": ("def answer(x):\n    return list(P.iterdir())\n", "prompts/*"),
    "pattern": ("def answer(x):\n    return list(P.glob('*.txt'))\n", "prompts/*.txt"),
    "text pattern": ("def answer(x):\n    return glob.glob(f'{P}/*.txt')\n", "prompts/*.txt"),
    "deep pattern": ("def answer(x):\n    return list(HERE.rglob('?.txt'))\n", "**/?.txt"),
    "walk": ("def answer(x):\n    return list(os.walk(P))\n", "prompts/**/*"),
}


@pytest.mark.parametrize("how", LISTS)
def test_a_folder_that_is_listed_counts_with_what_is_in_it(tmp_path: Path, how: str) -> None:
    source, name = LISTS[how]
    module = load(tmp_path, source)
    before = fingerprint(module.answer)
    assert before.unpinned == ()
    assert list(before.files) == [name]
    (tmp_path / "code" / "prompts" / "a.txt").write_text("another")
    changed = fingerprint(module.answer)
    assert explain(before.files, changed.files) == [f"{name} changed"]
    (tmp_path / "code" / "prompts" / "e.txt").write_text("")
    assert explain(changed.files, fingerprint(module.answer).files) == [f"{name} changed"]


def test_what_a_pattern_does_not_fit_does_not_count(tmp_path: Path) -> None:
    module = load(tmp_path, LISTS["pattern"][0])
    before = fingerprint(module.answer)
    for name in ("notes.md", "deep/e.txt"):
        (tmp_path / "code" / "prompts" / name).write_text("")
    assert fingerprint(module.answer) == before


def test_what_running_leaves_in_a_folder_does_not_count(tmp_path: Path) -> None:
    module = load(tmp_path, "def answer(x):\n    return list(os.walk(P))\n")
    before = fingerprint(module.answer)
    for name in ("__pycache__", ".evaluand"):
        (tmp_path / "code" / "prompts" / name).mkdir()
        (tmp_path / "code" / "prompts" / name / "x").write_text("")
    assert fingerprint(module.answer) == before


@pytest.mark.parametrize(
    "source",
    [
        "def answer(x):\n    return [p.read_text() for p in sorted(P.glob('*.txt'))]\n",
        "def answer(x):\n    return [open(os.path.join(P, n)).read() for n in os.listdir(P) if n.endswith('.txt')]\n",
        "def answer(x):\n    for n in glob.glob(str(P / '*.txt')):\n        x += open(n).read()\n    return x\n",
        "def text(p):\n    return p.read_text()\ndef answer(x):\n    return [text(p) for p in P.iterdir()]\n",
    ],
)
def test_the_files_of_a_listed_folder_are_known(tmp_path: Path, source: str) -> None:
    (tmp_path / "code" / "prompts" / "deep" / "c.txt").unlink()
    (tmp_path / "code" / "prompts" / "deep").rmdir()
    printed = of(tmp_path, source)
    assert printed.unpinned == ()
    assert {"prompts/a.txt", "prompts/b.txt"} < set(printed.files)


@pytest.mark.parametrize(
    "source",
    [
        "def answer(x):\n    return os.listdir(x)\n",
        "def answer(x):\n    return list(os.walk(top=x))\n",
        "def answer(x):\n    return list(Path(x).iterdir())\n",
        "def answer(x):\n    return list(P.glob(x))\n",
        "def answer(x):\n    return glob.glob(f'{x}/*')\n",
        "def answer(x):\n    return glob.glob('*', root_dir=x)\n",
    ],
)
def test_a_folder_that_is_not_known_unpins(tmp_path: Path, source: str) -> None:
    module = load(tmp_path, source)
    (said,) = fingerprint(module.answer).unpinned
    assert said.startswith("app.answer, line 7: ")
    assert said.endswith(f"{LISTED} to pin it")
    assert fingerprint(module.answer, files=["prompts"]).unpinned == ()


def test_a_folder_that_is_too_large_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LISTED", 2)
    (said,) = of(tmp_path, "def answer(x):\n    return os.listdir(P)\n").unpinned
    assert "has more than 2 entries or 1,024 MiB" in said
    assert said.endswith("name the files with files=[...] or declare version=... to pin it")
