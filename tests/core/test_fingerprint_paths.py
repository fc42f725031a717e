"""Files that code reads count where their names can be told without running it, and leave it unpinned elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from support import fingerprinted

from evaluand.core.fingerprint import Fingerprint, explain, fingerprint
from evaluand.core.fingerprint import files as limits

pytestmark = pytest.mark.usefixtures("no_bytecode_files")

COMPUTED = "reads a file whose name is known only when it runs; name the files with files=[...] or declare version=..."
LISTED = "lists a folder whose name is known only when it runs; name the files with files=[...] or declare version=..."


@pytest.fixture(autouse=True)
def _prompts(tmp_path: Path) -> None:
    folder = tmp_path / "code" / "prompts" / "deep"
    folder.mkdir(parents=True)
    for path in (folder.parent / "a.txt", folder.parent / "b.txt", folder / "c.txt", folder.parents[1] / "d"):
        path.write_text(path.name)


HEAD = """\
import functools, glob, gzip, io, json, os
from pathlib import Path, PurePath
HERE = Path(__file__).parent
P = HERE / "prompts"
NAME, KINDS = "a", {"x": "a", "y": "b"}
"""


def load(folder: Path, source: str) -> ModuleType:
    return fingerprinted.load(folder / "code", HEAD + source)


def of(folder: Path, source: str) -> Fingerprint:
    return fingerprint(load(folder, source).answer)


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
    "attribute of the same name set elsewhere": (
        "class C:\n    def note(self, x):\n        self.path = x\n        setattr(self, x, x)\nc = C()\n"
        "def answer(x):\n    c.note(x)\n    return open(os.path.join(P, f'{NAME}.txt')).read()\n"
    ),
    "list that is only looked at": (
        "def answer(x):\n    parts = ['a.txt']\n    print(len(parts), 'a.txt' in parts)\n"
        "    return [(P / p).read_text() for p in sorted(parts)]\n"
    ),
    "list for a helper that looks": (
        "def text(parts):\n    return [(P / p).read_text() for p in parts]\n"
        "def answer(x):\n    parts = ['a.txt']\n    return text(parts)\n"
    ),
    "global list for a helper that looks": (
        "L = ['a.txt']\ndef text(parts):\n    return [(P / p).read_text() for p in parts]\n"
        "def answer(x):\n    return text(parts=L) + text(L)\n"
    ),
    "dictionary that is only looked at": (
        "def answer(x):\n    print(KINDS.get(x), len(KINDS), *KINDS, x in KINDS)\n"
        "    return (P / f\"{KINDS['x']}.txt\").read_text()\n"
    ),
    "settings": (
        "import configparser\ndef answer(x):\n    c = configparser.ConfigParser()\n    c.read(P / f'{NAME}.txt')\n"
        "    return c\n"
    ),
    "size": "def answer(x):\n    return os.path.getsize(P / f'{NAME}.txt')\n",
    "existence": "def answer(x):\n    return os.path.exists(P / f'{NAME}.txt') or (P / f'{NAME}.txt').exists()\n",
    "opened by the system": (
        "def answer(x):\n    f = os.open(P / f'{NAME}.txt', os.O_RDONLY)\n    return os.read(f, 9)\n"
    ),
    "method of a path kept": "READ = (P / f'{NAME}.txt').read_text\ndef answer(x):\n    return READ()\n",
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
    "list added to": (
        "def answer(x):\n    parts = ['prompts/a.txt']\n    parts.append(x)\n"
        "    return [open(p).read() for p in parts]\n"
    ),
    "list with an item set": (
        "def answer(x):\n    parts = ['prompts/a.txt']\n    parts[0] = x\n    return [open(p).read() for p in parts]\n"
    ),
    "list under two names": (
        "def answer(x):\n    parts = ['prompts/a.txt']\n    same = parts\n    same.append(x)\n"
        "    return [open(p).read() for p in parts]\n"
    ),
    "list handed on": (
        "def answer(x):\n    parts = ['prompts/a.txt']\n    x.fill(parts)\n    return [open(p).read() for p in parts]\n"
    ),
    "list that a helper adds to": (
        "def more(parts, x):\n    parts.append(x)\ndef answer(x):\n    parts = ['prompts/a.txt']\n    more(parts, x)\n"
        "    return [open(p).read() for p in parts]\n"
    ),
    "global list added to": "L = ['prompts/a.txt']\ndef answer(x):\n    L.insert(0, x)\n    return open(L[0]).read()\n",
    "global list added to elsewhere": (
        "L = ['prompts/a.txt']\ndef add(x):\n    L.append(x)\ndef answer(x):\n    add(x)\n"
        "    return [open(n).read() for n in L]\n"
    ),
    "global list under another name": (
        "L = ['prompts/a.txt']\nSAME = L\ndef answer(x):\n    SAME.append(x)\n    return [open(n).read() for n in L]\n"
    ),
    "global list as a default": (
        "L = ['prompts/a.txt']\ndef answer(x, kept=L):\n    kept.append(x)\n    return [open(n).read() for n in L]\n"
    ),
    "global list inside another": (
        "L = ['prompts/a.txt']\nALL = {'a': L}\ndef answer(x):\n    ALL['a'].append(x)\n"
        "    return [open(n).read() for n in L]\n"
    ),
    "item set": "C = {'p': 'prompts/a.txt'}\ndef answer(x):\n    C['p'] = x\n    return open(C['p']).read()\n",
    "dictionary changed": (
        "C = {'p': 'prompts/a.txt'}\ndef answer(x):\n    C.update(p=x)\n    return open(C['p']).read()\n"
    ),
    "list of an instance added to": (
        "class C:\n    def __init__(self):\n        self.parts = ['prompts/a.txt']\n"
        "    def __call__(self, x):\n        self.parts.append(x)\n"
        "        return [open(p).read() for p in self.parts]\n"
        "answer = C()\n"
    ),
    "what a pattern sets": (
        "def answer(x):\n    p = 'prompts/a.txt'\n    match x:\n        case {'path': p}:\n            pass\n"
        "    return open(p).read()\n"
    ),
    "the rest that a pattern sets": (
        "def answer(x):\n    p = ['prompts/a.txt']\n    match x:\n        case [1, *p]:\n            pass\n"
        "    return [open(q).read() for q in p]\n"
    ),
    "what a pattern's mapping leaves": (
        "def answer(x):\n    p = ['prompts/a.txt']\n    match x:\n        case {'a': 1, **p}:\n            pass\n"
        "    return [open(q).read() for q in p]\n"
    ),
    "function of the same name": (
        "def answer(x):\n    p = 'prompts/a.txt'\n    if x:\n        def p():\n            pass\n"
        "    return open(p).read()\n"
    ),
    "import under the same name": (
        "def answer(x):\n    p = 'prompts/a.txt'\n    if x:\n        import json as p\n    return open(p).read()\n"
    ),
    "text read from a file": "def answer(x):\n    name = (HERE / 'd').read_text()\n    return open(name).read()\n",
    "text read from a file on the spot": "def answer(x):\n    return open((HERE / 'd').read_text()).read()\n",
    "lines of a file": "def answer(x):\n    return [open(line).read() for line in open(HERE / 'd')]\n",
    "text read from a temporary file": (
        "import tempfile\ndef answer(x):\n    with tempfile.TemporaryDirectory() as d:\n"
        "        return open((Path(d) / 'a').read_text())\n"
    ),
    "text cut into lines": "def answer(x):\n    return [open(n).read() for n in NAME.split()]\n",
    "open under another name": "def answer(x):\n    o = open\n    return o(x).read()\n",
    "open handed on": "def answer(x):\n    return list(map(open, [x]))\n",
    "open in a table": "T = {'o': open}\ndef answer(x):\n    return T['o'](x).read()\n",
    "open as a default": "def answer(x, o=open):\n    return o(x).read()\n",
    "reading method handed on": "def answer(x):\n    return list(map(Path.read_text, [Path(x)]))\n",
    "reading method kept": "def answer(x):\n    f = Path(x).read_text\n    return f()\n",
    "method of a variable kept": "def answer(x):\n    p = Path(x)\n    f = p.read_text\n    return f()\n",
    "reader handed on": "import numpy as np\ndef answer(x):\n    return list(map(np.load, x))\n",
    "settings": (
        "import configparser\ndef answer(x):\n    c = configparser.ConfigParser()\n    c.read(x)\n    return c\n"
    ),
    "settings of several files": (
        "import configparser\ndef answer(x):\n    c = configparser.ConfigParser()\n    c.read(['a.ini', x])\n"
        "    return c\n"
    ),
    "sound": "import wave\ndef answer(x):\n    return wave.open(x)\n",
    "compared": "import filecmp\ndef answer(x):\n    return filecmp.cmp('prompts/a.txt', x)\n",
    "data of a package": "import pkgutil\ndef answer(x):\n    return pkgutil.get_data('numpy', x)\n",
    "opened by the system": "def answer(x):\n    return os.open(x, os.O_RDONLY)\n",
    "given by number": "def answer(x):\n    return os.fdopen(3).read()\n",
    "in memory": "import mmap\ndef answer(x):\n    return mmap.mmap(3, 0)\n",
    "size": "def answer(x):\n    return os.path.getsize(x)\n",
    "state": "def answer(x):\n    return os.stat(x).st_size\n",
    "existence": "def answer(x):\n    return os.path.exists(x)\n",
    "existence of a path": "def answer(x):\n    return (P / x).exists()\n",
    "copied": "import shutil\ndef answer(x):\n    shutil.copy(x, 'b')\n",
    "columns": "import pyarrow.parquet as pq\ndef answer(x):\n    return pq.ParquetFile(x)\n",
    "table of columns": "import pyarrow.parquet as pq\ndef answer(x):\n    return pq.read_table(x)\n",
    "table in several files": "import pyarrow.dataset as ds\ndef answer(x):\n    return ds.dataset(x)\n",
    "a library's own kind of file": "def answer(x):\n    import some_library\n    return some_library.imread(x)\n",
    "a library's method given a path": "def answer(x):\n    return x.load(P / x)\n",
    "attribute set by name": (
        "class C:\n    p = 'prompts/a.txt'\n    def text(self):\n        return open(self.p).read()\nc = C()\n"
        "def answer(x):\n    setattr(c, 'p', x)\n    return c.text()\n"
    ),
    "attribute set by a name that is not known": (
        "class C:\n    p = 'prompts/a.txt'\n    def text(self):\n        return open(self.p).read()\nc = C()\n"
        "def answer(x):\n    setattr(c, x, x)\n    return c.text()\n"
    ),
    "attribute set in the table": (
        "class C:\n    p = 'prompts/a.txt'\n    def text(self):\n        return open(self.p).read()\nc = C()\n"
        "def answer(x):\n    c.__dict__['p'] = x\n    return c.text()\n"
    ),
    "attributes set in the table": (
        "class C:\n    p = 'prompts/a.txt'\n    def text(self):\n        return open(self.p).read()\nc = C()\n"
        "def answer(x):\n    vars(c).update(p=x)\n    return c.text()\n"
    ),
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
        "from evaluand.run.task import task\n@task(files=['prompts'])\ndef inner(x):\n    return open(x).read()\n"
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
        "def answer(x):\n    return json.loads(x), json.load(x)\n",
        "import yaml\ndef answer(x):\n    return yaml.safe_load(x), yaml.load(x, Loader=yaml.Loader)\n",
        "import ast\ndef answer(x):\n    return ast.parse(x), x.read(), x.parse('a'), x.exists()\n",
        "import pandas as pd\ndef answer(x):\n    return pd.read_csv(__import__('io').StringIO(x))\n",
        "import zipfile\ndef answer(x):\n    with zipfile.ZipFile(io.BytesIO(x)) as z, z.open(x) as f:\n"
        "        return f.read()\n",
        "import zipfile\ndef answer(x):\n    return isinstance(x, zipfile.ZipFile) or type(x) is zipfile.ZipFile\n",
        "import tempfile\ndef answer(x):\n    with tempfile.TemporaryDirectory() as d:\n        p = Path(d) / 'a'\n"
        "        p.write_text(x)\n"
        "        return p.read_text(), open(f'{d}/a').read(), os.listdir(d), list(p.parent.iterdir())\n",
        "import tempfile\ndef answer(x):\n    with tempfile.NamedTemporaryFile('w+') as f:\n        f.write(x)\n"
        "        return Path(f.name).read_text()\n",
        "def answer(x):\n    folder = P / x\n    if not folder.exists():\n        folder.mkdir()\n"
        "    (folder / 'out').write_text(x)\n",
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


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of templates as it is installed, with what of it counts here."""
    folder = tmp_path / "site-packages" / "jinja2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "class FileSystemLoader:\n    def __init__(self, searchpath):\n        self.searchpath = [str(searchpath)]\n"
        "class Environment:\n    def __init__(self, loader):\n        self.loader, self.cache = loader, {}\n"
        "    def get_template(self, name):\n        self.cache[name] = name\n"
    )
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.delitem(sys.modules, "jinja2", raising=False)


TEMPLATES = "from jinja2 import Environment, FileSystemLoader\n"


@pytest.mark.usefixtures("templates")
@pytest.mark.parametrize(
    "source",
    [
        "E = Environment(loader=FileSystemLoader(P))\ndef answer(x):\n    return E.get_template('a.txt')\n",
        "def answer(x):\n    return Environment(loader=FileSystemLoader(P)).get_template(x)\n",
    ],
)
def test_a_folder_of_templates_counts_with_what_is_in_it(tmp_path: Path, source: str) -> None:
    module = load(tmp_path, TEMPLATES + source)
    before = fingerprint(module.answer)
    assert before.unpinned == ()
    assert "prompts/**/*" in before.files
    module.answer("a.txt")
    assert fingerprint(module.answer) == before
    (tmp_path / "code" / "prompts" / "deep" / "c.txt").write_text("another")
    assert explain(before.files, fingerprint(module.answer).files) == ["prompts/**/* changed"]


@pytest.mark.usefixtures("templates")
def test_a_folder_of_templates_that_is_not_known_unpins(tmp_path: Path) -> None:
    source = "def answer(x):\n    return Environment(loader=FileSystemLoader(x)).get_template('a.txt')\n"
    (said,) = of(tmp_path, TEMPLATES + source).unpinned
    assert said == f"app.answer, line 8: FileSystemLoader {COMPUTED} to pin it"


def test_a_folder_that_is_too_large_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LISTED", 2)
    (said,) = of(tmp_path, "def answer(x):\n    return os.listdir(P)\n").unpinned
    assert "has more than 2 entries or 1,024 MiB" in said
    assert said.endswith("name the files with files=[...] or declare version=... to pin it")
