from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.linear_model import LogisticRegression
from support.fingerprinted import executed, load, load_path, of
from support.places import ROOT_FOLDER

from evaluand.core.errors import SpecError
from evaluand.core.fingerprint import Fingerprint, explain, fingerprint
from evaluand.evaluation.scorer import scorer
from evaluand.run.task import task

pytestmark = pytest.mark.usefixtures("no_bytecode_files")


def changes(folder: Path, source: str, old: str, new: str, name: str = "answer") -> list[str]:
    """What the fingerprint says after one edit; nothing where it stays the same."""
    assert old in source
    before, after = of(folder, source, name), of(folder, source.replace(old, new), name)
    assert before.pinned
    assert after.pinned
    explained = explain({**before.parts, **before.files}, {**after.parts, **after.files})
    assert (before.digest != after.digest) == bool(explained)
    return explained


CHAIN = """
PROMPT = "Answer briefly"
UNUSED = "x"

def last(text):
    return text.strip()

def helper(text):
    return last(text) + "."

def other(text):
    return "unrelated"

def answer(text, mark="!"):
    # a reason
    return PROMPT + helper(text) + mark
"""


# -- what keeps it


def test_a_digest_is_32_hexadecimal_digits(tmp_path: Path) -> None:
    digest = of(tmp_path, CHAIN).digest
    assert len(digest) == 32
    int(digest, 16)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a reason", "# quite another reason, longer than the first"),
        ("# a reason\n", ""),
        ("PROMPT + helper(text) + mark", "(\n        PROMPT +   helper( text )\n        + mark\n    )"),
        ("def last(text):", "\n\n\ndef last(text):  # moves all lines below"),
        ('return "unrelated"', 'return "unrelated, and edited"'),
        ('UNUSED = "x"', 'UNUSED = "y"'),
    ],
)
def test_comments_formatting_and_unrelated_code_keep_it(tmp_path: Path, old: str, new: str) -> None:
    assert changes(tmp_path, CHAIN, old, new) == []


def test_a_moved_project_keeps_it(tmp_path: Path) -> None:
    source = """
        from pathlib import Path
        HERE = Path(__file__).parent
        PROMPT = HERE / "prompt.txt"
        NAME = str(HERE / "other.txt")
        OUT = HERE / "out"

        def answer(text):
            return PROMPT.read_text() + open(NAME).read() + text + str(OUT)
        """
    first = tmp_path / "first"
    load(first, source)
    (first / "prompt.txt").write_text("p")
    (first / "other.txt").write_text("o")
    second = tmp_path / "elsewhere" / "deeper" / "second"
    shutil.copytree(first, second)
    one, two = (fingerprint(load_path(folder / "app.py").answer) for folder in (first, second))
    assert one == two


def test_the_name_of_the_module_does_not_count(tmp_path: Path) -> None:
    load(tmp_path, CHAIN)
    one, two = (fingerprint(load_path(tmp_path / "app.py", name).answer) for name in ("one", "two"))
    assert one == two
    assert set(one.parts) == {"app.answer", "app.helper", "app.last", "app.PROMPT"}


PRINT = """
import sys
sys.path.insert(0, {folder!r})
from evaluand.core.fingerprint import fingerprint
{load}
print(fingerprint(answer).digest)
"""

HASHED = """
import enum
from dataclasses import dataclass, field

WORDS = {"alpha", "beta", "gamma", "delta", "epsilon"}
MIXED = {1, "one", (2, "two"), frozenset({"x", "y", "z"}), len, None}
TABLE = {"b": {"x", "y"}, "a": {3: "three"}}

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

@dataclass
class Settings:
    names: set = field(default_factory=lambda: {"p", "q", "r", "s"})

SETTINGS = Settings()

def answer(text):
    return text in WORDS or text in {"a", "b", "c", "d"} or len(MIXED) or len(TABLE) or SETTINGS or Color.RED
"""


def run_python(code: str, seed: str) -> str:
    source = ROOT_FOLDER / "src"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.strip()


def test_processes_with_other_hash_seeds_agree(tmp_path: Path) -> None:
    here = of(tmp_path, HASHED)
    code = PRINT.format(folder=str(tmp_path), load="from app import answer")
    assert here.pinned
    assert {run_python(code, seed) for seed in ("0", "1", "77")} == {here.digest}


def test_a_script_agrees_with_the_same_file_imported(tmp_path: Path) -> None:
    load(tmp_path, CHAIN)
    code = f"import runpy\nanswer = runpy.run_path({str(tmp_path / 'app.py')!r}, run_name='__main__')['answer']"
    assert run_python(PRINT.format(folder=str(tmp_path), load=code), "0") == of(tmp_path, CHAIN).digest


# -- what changes it


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("+ mark\n", "+ mark + mark\n", "app.answer changed"),
        ('+ "."', '+ ";"', "app.helper changed"),
        ("text.strip()", "text.rstrip()", "app.last changed"),
        ('"Answer briefly"', '"Answer at length"', "app.PROMPT changed"),
        ('mark="!"', 'mark="?"', "app.answer changed"),
        ("PROMPT + helper", "UNUSED + helper", "app.UNUSED is new"),
    ],
)
def test_an_edit_of_what_it_reaches_changes_it(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert expected in changes(tmp_path, CHAIN, old, new)


def test_only_the_part_that_changed_is_named(tmp_path: Path) -> None:
    assert changes(tmp_path, CHAIN, "text.strip()", "text.rstrip()") == ["app.last changed"]


def test_a_value_counts_as_it_is_and_not_as_it_is_written(tmp_path: Path) -> None:
    module = load(tmp_path, CHAIN)
    before = fingerprint(module.answer)
    module.PROMPT = "Answer at length"  # type: ignore[attr-defined]
    assert fingerprint(module.answer).digest != before.digest


def test_a_computed_default_counts_by_its_value(tmp_path: Path) -> None:
    source = "LIMIT = 3\ndef answer(text, limit=LIMIT * 2, *, keyword=LIMIT):\n    return text[:limit]\n"
    module = load(tmp_path, source)
    before = fingerprint(module.answer)
    module.answer.__kwdefaults__["keyword"] = 4
    assert fingerprint(module.answer).digest != before.digest


def test_closure_values_and_nested_functions_count(tmp_path: Path) -> None:
    source = """
def make(suffix):
    def answer(text):
        def inner(word):
            return word.upper()
        return inner(text) + suffix
    return answer
answer = make("a")
"""
    assert changes(tmp_path, source, 'make("a")', 'make("b")') == ["app.make.<locals>.answer changed"]
    assert changes(tmp_path, source, "word.upper()", "word.lower()") == ["app.make.<locals>.answer changed"]


def test_globals_used_only_by_a_nested_function_count(tmp_path: Path) -> None:
    source = """
def deep(x):
    return x

def answer(text):
    return [deep(word) for word in text] + (lambda: (lambda: deep(1)))()()
"""
    assert changes(tmp_path, source, "return x\n", "return x + x\n") == ["app.deep changed"]


def test_an_attribute_that_shares_its_name_with_a_function_is_not_that_function(tmp_path: Path) -> None:
    source = "def strip(x):\n    return 1\n\ndef answer(text):\n    return text.strip()\n"
    assert changes(tmp_path, source, "return 1", "return 2") == []


def test_functions_that_call_one_another_end(tmp_path: Path) -> None:
    source = """
def even(n):
    return n == 0 or odd(n - 1)

def odd(n):
    return n != 0 and even(n - 1)

answer = even
"""
    assert changes(tmp_path, source, "n != 0", "n > 0") == ["app.odd changed"]


@pytest.mark.parametrize("links", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_long_chain_of_functions_is_followed(tmp_path: Path, links: int) -> None:
    chain = "\n".join(f"def f{i}(x):\n    return f{i + 1}(x)\n" for i in range(links))
    source = f"{chain}\ndef f{links}(x):\n    return x\n\nanswer = f0\n"
    assert changes(tmp_path, source, "return x\n", "return -x\n") == [f"app.f{links} changed"]


def test_the_order_of_a_dictionary_counts(tmp_path: Path) -> None:
    source = 'SHOTS = {"a": 1, "b": 2}\ndef answer(text):\n    return str(SHOTS)\n'
    assert changes(tmp_path, source, '{"a": 1, "b": 2}', '{"b": 2, "a": 1}') == ["app.SHOTS changed"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("1", "1.0"), ("1", "True"), ("[1]", "(1,)"), ('"a"', 'b"a"'), ("None", "float('nan')"), ("0.0", "-0.0")],
)
def test_values_that_only_resemble_one_another_differ(tmp_path: Path, old: str, new: str) -> None:
    source = f"VALUE = {old}\ndef answer(text):\n    return VALUE\n"
    assert changes(tmp_path, source, f"VALUE = {old}", f"VALUE = {new}") == ["app.VALUE changed"]


# -- modules


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a package `proj` and imports a module of it afresh."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(module: str, **sources: str) -> ModuleType:
        for name in [name for name in sys.modules if name.partition(".")[0] == "proj"]:
            monkeypatch.delitem(sys.modules, name)
        for name, source in {"__init__": "", **sources}.items():
            path = tmp_path / "proj" / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(dedent(source))
        importlib.invalidate_caches()
        imported = importlib.import_module(f"proj.{module}")
        for name in sys.modules:
            if name.partition(".")[0] == "proj":
                monkeypatch.setitem(sys.modules, name, sys.modules[name])
        return imported

    return write


HELPERS = "def normalise(x):\n    return x.{how}()\n\ndef unrelated(x):\n    return {other}\n"


@pytest.mark.parametrize(
    "app",
    [
        "from proj import helpers\ndef answer(x):\n    return helpers.normalise(x)\n",
        "from . import helpers as h\ndef answer(x):\n    return h.normalise(x)\n",
        "import proj.helpers\ndef answer(x):\n    return proj.helpers.normalise(x)\n",
        "from proj.helpers import normalise as n\ndef answer(x):\n    return n(x)\n",
        "def answer(x):\n    from proj.helpers import normalise\n    return normalise(x)\n",
        "def answer(x):\n    from . import helpers\n    return helpers.normalise(x)\n",
        "def answer(x):\n    import proj.helpers\n    return proj.helpers.normalise(x)\n",
        "def answer(x):\n    import proj.helpers as h, json\n    return [h.normalise(i) for i in x]\n",
    ],
)
def test_a_function_is_followed_into_the_module_it_comes_from(package: Any, app: str) -> None:
    def printed(how: str, other: int) -> Fingerprint:
        return fingerprint(package("app", app=app, helpers=HELPERS.format(how=how, other=other)).answer)

    base = printed("lower", 1)
    assert explain(base.parts, printed("upper", 1).parts) == ["helpers.normalise changed"]
    assert printed("lower", 2).digest == base.digest


def test_a_function_without_source_is_followed_into_what_it_imports(package: Any) -> None:
    def printed(how: str) -> Fingerprint:
        package("helpers", helpers=HELPERS.format(how=how, other=1))
        return fingerprint(executed("def answer(x):\n    import proj.helpers as h\n    return h.normalise(x)\n"))

    assert printed("lower").digest == printed("lower").digest != printed("upper").digest


def test_names_bound_after_an_import_are_not_the_module(package: Any) -> None:
    app = "def answer(x):\n    from proj.helpers import normalise\n    y = normalise(x)\n    return y\n"
    one, two = (
        fingerprint(package("app", app=app, helpers=HELPERS.format(how="lower", other=other)).answer)
        for other in (1, 2)
    )
    assert one.digest == two.digest


def test_an_import_that_fails_is_left_to_the_call(tmp_path: Path) -> None:
    source = "def answer(x):\n    try:\n        import json.none as m\n    except ImportError:\n        return m.a\n"
    assert of(tmp_path, source).pinned


def test_a_module_handed_on_as_a_value_counts_as_a_whole(package: Any) -> None:
    app = "from proj import helpers\ndef answer(x):\n    return getattr(helpers, x)\n"
    one, two = (
        fingerprint(package("app", app=app, helpers=HELPERS.format(how="lower", other=other)).answer)
        for other in (1, 2)
    )
    assert "module helpers changed" in explain(one.parts, two.parts)


def test_constants_of_the_same_name_in_two_modules_are_reported_apart(package: Any) -> None:
    app = "from proj.helpers import use\nNAME = 1\ndef answer(x):\n    return use(NAME)\n"
    helpers = "NAME = 2\ndef use(x):\n    return NAME + x\n"
    one = fingerprint(package("app", app=app, helpers=helpers).answer)
    two = fingerprint(package("app", app=app, helpers=helpers.replace("2", "3")).answer)
    assert explain(one.parts, two.parts) == ["helpers.NAME changed"]


def test_installed_code_counts_by_name_only(tmp_path: Path) -> None:
    source = "import json\nimport numpy as np\ndef answer(text):\n    return np.mean(json.loads(text))\n"
    printed = of(tmp_path, source)
    assert printed.pinned
    assert set(printed.parts) == {"app.answer"}
    assert "app.answer changed" in changes(tmp_path, source, "json.loads", "json.dumps")
    same = of(tmp_path, "import json\nimport math as np\ndef answer(text):\n    return np.mean(json.loads(text))\n")
    assert same.digest != printed.digest


@pytest.mark.parametrize("value", [len, np.mean, np.add, str.upper, Path, "text".upper, None, 3.5])
def test_what_is_not_first_party_is_pinned_too(value: object) -> None:
    assert fingerprint(value).pinned
    assert fingerprint(value).digest != fingerprint(sorted).digest


# -- lambdas and code without source


def test_lambdas_on_one_line_are_reported_apart(tmp_path: Path) -> None:
    source = "pair = lambda x: x + 1, lambda x: x + 2\nnested = lambda: (lambda x: x + 1)\n"
    module = load(tmp_path, source)
    one, two = map(fingerprint, module.pair)
    assert one.digest != two.digest
    moved = load(tmp_path / "moved", "def f(*a): return a\n\n# c\npair = f(  lambda x: x+1  )  # other surroundings\n")
    assert fingerprint(moved.pair[0]).digest == one.digest
    assert fingerprint(module.nested()).digest != fingerprint(module.nested).digest


def test_two_lambdas_that_a_function_reaches_both_count(tmp_path: Path) -> None:
    source = "f = lambda x: x + 1\ng = lambda x: x + 2\ndef answer(x):\n    return f(x) + g(x)\n"
    assert changes(tmp_path, source, "x + 1", "x + 3") == ["app.<lambda> changed"]
    assert changes(tmp_path, source, "x + 2", "x + 3") == ["app.<lambda> (2) changed"]


def test_code_without_source_counts_by_its_bytecode() -> None:
    source = "def answer(x):\n    def inner(y):\n        return y + 1\n    return inner(x) in (K, {'a', 'b'})\n"
    base = fingerprint(executed(source, K=1))
    assert base.pinned
    assert fingerprint(executed("# moved\n\n" + source, K=1)).digest == base.digest
    assert fingerprint(executed(source, K=2)).digest != base.digest
    assert fingerprint(executed(source.replace("y + 1", "y + 2"), K=1)).digest != base.digest
    assert fingerprint(executed(source.replace("inner(x)", "abs(x)"), K=1)).digest != base.digest


def test_a_file_edited_after_import_does_not_speak_for_the_code_that_runs(tmp_path: Path) -> None:
    source = "def answer(x):\n    return x + 1\n"
    running = load(tmp_path, source).answer
    (tmp_path / "app.py").write_text(source.replace("1", "2"))
    edited = load_path(tmp_path / "app.py").answer
    assert fingerprint(running).digest != fingerprint(edited).digest


def test_lines_inserted_above_after_import_keep_it(tmp_path: Path) -> None:
    source = "def answer(x):\n    return x + 1\n"
    running = load(tmp_path, source).answer
    before = fingerprint(running).digest
    (tmp_path / "app.py").write_text("# a new comment\nX = 1\n" + source)
    assert fingerprint(running).digest == before


def test_a_reloaded_module_is_read_anew(tmp_path: Path) -> None:
    one = of(tmp_path, "def answer(x):\n    return 1\n")
    two = of(tmp_path, "def answer(x):\n    return 2\n")
    three = of(tmp_path, "def answer(x):\n    return 1\n")
    assert one.digest == three.digest != two.digest


def test_very_deep_expressions_are_read(tmp_path: Path) -> None:
    terms = " + x" * 400
    source = f"def answer(x):\n    return x{terms}\n\nclass C:\n    x = 1\n    v = x{terms}\n    def f(self): ...\n"
    assert changes(tmp_path, source, "return x + x", "return x - x") == ["app.answer changed"]
    assert changes(tmp_path, source, "v = x + x", "v = x - x", "C") == ["app.C changed"]


# -- classes and instances


CLASSES = """
from dataclasses import dataclass

SEP = "-"

def joined(words):
    return SEP.join(words)

class Other:
    def unrelated(self):
        return 1

class Root:
    def base(self, x):
        return x

class Base(Root):
    size = 3

class Answerer(Base):
    limit = 5

    def __init__(self, name, temperature=0.5):
        self.name = name
        self.temperature = temperature

    @property
    def short(self):
        return self.name[: self.limit]

    @staticmethod
    def tidy(x):
        return x.strip()

    @classmethod
    def build(cls):
        return cls("built")

    def do_run(self, x):
        return joined([self.short, self.tidy(x)])

answer = Answerer("a")
method = answer.do_run
kind = Answerer
"""


@pytest.mark.parametrize("name", ["answer", "method", "kind"])
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("limit = 5", "limit = 6", "app.Answerer changed"),
        ("size = 3", "size = 4", "app.Base changed"),
        ("return x\n\nclass Base", "return -x\n\nclass Base", "app.Root.base changed"),
        ("[: self.limit]", "[self.limit :]", "app.Answerer.short changed"),
        ("x.strip()", "x.lstrip()", "app.Answerer.tidy changed"),
        ('cls("built")', 'cls("made")', "app.Answerer.build changed"),
        ("self.short, self", "self", "app.Answerer.do_run changed"),
        ("SEP.join", "SEP.split", "app.joined changed"),
        ('SEP = "-"', 'SEP = "+"', "app.SEP changed"),
        ("class Base(Root)", "class Base(Root, Other)", "app.Base changed"),
    ],
)
def test_an_edit_of_a_class_or_of_what_it_reaches_changes_it(
    tmp_path: Path, name: str, old: str, new: str, expected: str
) -> None:
    assert expected in changes(tmp_path, CLASSES, old, new, name)


@pytest.mark.parametrize("name", ["answer", "method", "kind"])
def test_another_class_in_the_module_does_not_count(tmp_path: Path, name: str) -> None:
    assert changes(tmp_path, CLASSES, "return 1", "return 2", name) == []


def test_the_state_of_an_instance_counts(tmp_path: Path) -> None:
    assert changes(tmp_path, CLASSES, 'Answerer("a")', 'Answerer("b")') == ["app.Answerer() changed"]
    assert changes(tmp_path, CLASSES, 'Answerer("a")', 'Answerer("a", 0.5)') == []
    assert changes(tmp_path, CLASSES, 'Answerer("a")', 'Answerer("a", 0.6)') == ["app.Answerer() changed"]


def test_an_instance_differs_from_its_method_and_its_class(tmp_path: Path) -> None:
    module = load(tmp_path, CLASSES)
    assert len({fingerprint(x).digest for x in (module.answer, module.method, module.kind, module.answer.build)}) == 4


STATEFUL = {
    "slots": "class C:\n    __slots__ = ('v',)\n    def __init__(self):\n        self.v = VALUE\n",
    "dataclass": "import dataclasses\n@dataclasses.dataclass(frozen=True, slots=True)\nclass C:\n    v: int = VALUE\n",
    "default factory": (
        "import dataclasses\ndef make():\n    return VALUE\n@dataclasses.dataclass\nclass C:\n"
        "    v: int = dataclasses.field(default_factory=make)\n"
    ),
    "pydantic": "import pydantic\nclass C(pydantic.BaseModel):\n    v: int = VALUE\n",
    "named tuple": "import typing\nclass C(typing.NamedTuple):\n    v: int = VALUE\n",
    "enum": "import enum\nclass E(enum.Enum):\n    A = VALUE\nC = lambda: E.A\n",
    "nested": "class I:\n    pass\nclass C:\n    def __init__(self):\n        self.i = I()\n"
    "        self.i.v = [VALUE]\n",
    "deque": "import collections\nC = lambda: collections.deque([VALUE])\n",
    "defaultdict": "import collections\nC = lambda: collections.defaultdict(list, {1: VALUE})\n",
    "text": "class T(str):\n    pass\nC = lambda: T(VALUE)\n",
    "array": "import numpy\nC = lambda: numpy.array([[1, VALUE]])[:, ::-1]\n",
    "array of objects": "import numpy\nC = lambda: numpy.array([None, VALUE], dtype=object)\n",
    "records": "import numpy\nC = lambda: numpy.array([(1, VALUE)], dtype=[('a', 'i1'), ('b', 'f8')])\n",
    "masked": "import numpy\nC = lambda: numpy.ma.array([1, 2], mask=[0, VALUE - 1])\n",
    "scalar": "import numpy\nC = lambda: numpy.float32(VALUE)\n",
    "pattern": "import re\nC = lambda: re.compile('a', VALUE << 3)\n",
    "frame": "import pandas\nC = lambda: pandas.DataFrame({'a': [1, VALUE], 'b': ['x', 'y']})\n",
    "getstate": (
        "import threading\nclass C:\n    def __init__(self):\n        self.v, self.lock = VALUE, threading.Lock()\n"
        "    def __getstate__(self):\n        return {'v': self.v}\n"
    ),
    "fingerprint": (
        "import threading\nclass C:\n    def __init__(self):\n        self.lock = threading.Lock()\n"
        "    def __fingerprint__(self):\n        return {'v': VALUE}\n"
    ),
    "cached property": (
        "import functools\nclass C:\n    def __init__(self):\n        self.v = VALUE\n"
        "    @functools.cached_property\n    def twice(self):\n        return self.v * 2\n"
    ),
}


@pytest.mark.parametrize("kind", STATEFUL)
def test_state_is_read_wherever_it_is_kept(tmp_path: Path, kind: str) -> None:
    source = f"VALUE = 1\n{STATEFUL[kind]}\nthing = C()\ndef answer(x):\n    return thing\n"
    again, one = of(tmp_path, source), of(tmp_path, source)
    two = of(tmp_path, source.replace("VALUE = 1", "VALUE = 2"))
    assert one.pinned, one.unpinned
    assert one == again
    assert one.digest != two.digest


def test_a_cached_property_that_was_read_keeps_it(tmp_path: Path) -> None:
    source = f"VALUE = 1\n{STATEFUL['cached property']}\nanswer = C()\n"
    module = load(tmp_path, source)
    before = fingerprint(module.answer)
    assert module.answer.twice == 2
    assert fingerprint(module.answer) == before


def test_estimators_count_by_what_they_have_learnt() -> None:
    inputs = np.array([[0.0], [1.0], [2.0], [3.0]])
    one, same = (LogisticRegression().fit(inputs, [0, 0, 1, 1]) for _ in range(2))
    other = LogisticRegression().fit(inputs, [0, 1, 1, 1])
    assert fingerprint(one.predict).pinned
    assert fingerprint(one.predict).digest == fingerprint(same.predict).digest
    assert fingerprint(one.predict).digest != fingerprint(other.predict).digest
    assert fingerprint(one.predict).digest != fingerprint(one.predict_proba).digest


def test_objects_that_refer_to_themselves_end(tmp_path: Path) -> None:
    source = """
class Node:
    def __init__(self, v):
        self.v, self.peers, self.me = v, [], self

a, b = Node(1), Node(2)
a.peers += [b, a]
b.peers += [a]
loop = [1]
loop.append({"loop": loop})
def answer(x):
    return a, loop
"""
    assert changes(tmp_path, source, "Node(2)", "Node(3)") == ["app.a changed"]
    assert changes(tmp_path, source, "loop = [1]", "loop = [2]") == ["app.loop changed"]


def test_deep_and_dense_graphs_end() -> None:
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    nodes: list[dict[str, Any]] = [{} for _ in range(60)]
    for node in nodes:
        node["all"] = nodes
    shared: list[Any] = [0]
    for _ in range(60):
        shared = [shared, shared]
    assert all(fingerprint(graph).pinned for graph in (deep, nodes, shared))
    assert fingerprint(deep).digest != fingerprint(deep[0]).digest


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
data = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


@given(value=data)
def test_equal_data_have_equal_fingerprints(value: Any) -> None:
    import copy

    assert fingerprint(value) == fingerprint(copy.deepcopy(value))
    assert fingerprint([value]).digest != fingerprint(value).digest


@given(items=st.lists(st.integers() | st.text(), unique=True, min_size=2))
def test_the_order_in_which_a_set_was_filled_does_not_count(items: list[Any]) -> None:
    backwards = items[::-1]
    assert fingerprint(set(items)) == fingerprint(set(backwards))
    assert fingerprint(set(items)).digest != fingerprint(set(items[1:])).digest


# -- wrappers


WRAPPED = """
import contextlib
import functools
from functools import lru_cache, partial, singledispatch, wraps

TIMES = 2

def helper(x):
    return x * 1

def retry(times):
    def decorate(f):
        @wraps(f)
        def wrapper(*args):
            for _ in range(times):
                return f(*args)
        return wrapper
    return decorate

@retry(TIMES)
def wrapped(x):
    return helper(x)

@lru_cache(maxsize=8)
def cached(x):
    return helper(x)

bound = partial(helper, 7)

@contextlib.contextmanager
def context(x):
    yield helper(x)

@singledispatch
def dispatched(x):
    return 1

@dispatched.register
def _(x: int):
    return helper(x)

class Called:
    def __call__(self, x):
        return helper(x)

called = Called()

class Several:
    @functools.cached_property
    def one(self):
        return helper(1)
    @functools.singledispatchmethod
    def two(self, x):
        return helper(x)
    three = functools.partialmethod(two, 3)

several = Several()

async def coroutine(x):
    return helper(x)

def generator(x):
    yield helper(x)
"""

WRAPPERS = ["wrapped", "cached", "bound", "context", "dispatched", "called", "several", "coroutine", "generator"]


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrapped_functions_are_followed(tmp_path: Path, name: str) -> None:
    source = f"{WRAPPED}\nanswer = {name}\ndef through(x):\n    return {name}\n"
    assert changes(tmp_path, source, "x * 1", "x * 2") == ["app.helper changed"]
    assert changes(tmp_path, source, "x * 1", "x * 2", "through") == ["app.helper changed"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("wrapped", "TIMES = 2", "TIMES = 3"),
        ("wrapped", "range(times)", "range(times + 1)"),
        ("cached", "maxsize=8", "maxsize=9"),
        ("bound", "helper, 7", "helper, 8"),
        ("several", "two, 3", "two, 4"),
    ],
)
def test_settings_of_a_wrapper_count(tmp_path: Path, name: str, old: str, new: str) -> None:
    assert changes(tmp_path, f"{WRAPPED}\nanswer = {name}\n", old, new)


def test_calling_a_cached_function_keeps_it(tmp_path: Path) -> None:
    module = load(tmp_path, WRAPPED)
    before = fingerprint(module.cached), fingerprint(module.dispatched)
    module.cached(1), module.dispatched(1)
    assert (fingerprint(module.cached), fingerprint(module.dispatched)) == before


def test_tasks_and_scorers_count_by_their_functions(tmp_path: Path) -> None:
    answer = load(tmp_path, CHAIN).helper
    assert fingerprint(task(answer)).parts.keys() >= {"app.helper", "app.last"}
    assert fingerprint(task(answer)).digest == fingerprint(task(name="other")(answer)).digest
    assert fingerprint(scorer(answer)).pinned


def test_a_task_called_by_another_is_followed_whether_it_declares_a_version_or_not(tmp_path: Path) -> None:
    source = """
from evaluand.run.task import task

@task(name="inner")
def inner(x):
    return x + 1

def answer(x):
    return inner(x)
"""
    assert changes(tmp_path, source, "x + 1", "x + 2") == ["app.inner changed"]
    assert changes(tmp_path, source, 'name="inner"', 'name="renamed"') == []
    versioned = source.replace('name="inner"', 'version="1"')
    assert changes(tmp_path, versioned, "x + 1", "x + 2") == ["app.inner changed"]
    assert changes(tmp_path, versioned, 'version="1"', 'version="2"') == ["app.answer changed"]


def test_a_client_made_on_first_use_keeps_it(tmp_path: Path) -> None:
    source = """
import threading
import time
_client = None
_late: object

def client():
    global _client, _late
    if _client is None:
        _client = _late = threading.Lock()
    return _client

def answer(x):
    return client()
"""
    module = load(tmp_path, source)
    before = fingerprint(module.answer)
    module.answer(1)
    assert before.pinned
    assert fingerprint(module.answer) == before
    assert changes(tmp_path, source, "_client = None", "_client = 0") == ["app._client changed"]


def test_a_partial_is_not_its_function(tmp_path: Path) -> None:
    answer = load(tmp_path, CHAIN).answer
    assert fingerprint(functools.partial(answer)).digest != fingerprint(answer).digest


def test_files_that_an_inner_task_declares_count(tmp_path: Path) -> None:
    source = """
        from evaluand.run.task import task

        @task(files=["prompts"])
        def inner(x):
            return x

        def answer(x):
            return inner(x)
        """
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "a.txt").write_text("1")
    module = load(tmp_path, source)
    before = fingerprint(module.answer)
    (tmp_path / "prompts" / "a.txt").write_text("2")
    assert explain(before.files, fingerprint(module.answer).files) == ["prompts changed"]
    assert fingerprint(module.inner).digest != fingerprint(module.inner.function).digest


# -- unpinned


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (threading.Lock(), "a lock holds state that cannot be read as data"),
        (random.Random(1), "a Random gives something else each time it is used"),
        (np.random.default_rng(1), "a Generator gives something else"),
        ((i for i in [1]), "a generator gives something else"),
        (iter([1]), "a list_iterator gives something else"),
        (sys.stderr, "holds state that cannot be read as data"),
    ],
)
def test_what_cannot_be_read_is_named_and_unpins(value: object, said: str) -> None:
    def answer(x: object) -> object:
        return value

    printed = fingerprint(answer)
    assert not printed.pinned
    (reason,) = printed.unpinned
    assert said in reason or type(value) is type(sys.stderr)
    assert "answer (closure variable value): a" in reason
    assert reason.endswith("declare version=... to pin it")


def test_the_reason_says_which_variable_holds_it_and_where_inside(tmp_path: Path) -> None:
    source = """
import threading
import time

class Pool:
    def __init__(self):
        self.locks = {"first": threading.Lock(), "second": threading.Lock()}

class Client:
    def __init__(self):
        self.pool = Pool()

client = Client()

def answer(x, other=threading.Lock()):
    return client
"""
    printed = of(tmp_path, source)
    assert not printed.pinned
    assert set(printed.unpinned) == {
        "app.answer (default of other): a lock holds state that cannot be read as data; declare version=... to pin it",
        "app.client: a Client holds state that cannot be read as data (pool.locks['first'] is a lock);"
        " declare version=... to pin it",
    }
    assert of(tmp_path, source) == printed


def test_a_client_in_a_class_attribute_unpins(tmp_path: Path) -> None:
    source = "import threading\nclass C:\n    lock = threading.Lock()\ndef answer(x):\n    return C()\n"
    assert of(tmp_path, source).unpinned == (
        "app.C.lock: a lock holds state that cannot be read as data; declare version=... to pin it",
    )


def test_an_object_that_fails_when_asked_for_its_state_unpins(tmp_path: Path) -> None:
    source = "class C:\n    def __getstate__(self):\n        raise RuntimeError('no')\nanswer = C()\n"
    assert not of(tmp_path, source).pinned


def test_a_logger_does_not_unpin(tmp_path: Path) -> None:
    source = "import logging\nlog = logging.getLogger(__name__)\ndef answer(x):\n    log.info(x)\n"
    assert of(tmp_path, source).pinned


# -- declared files


def test_declared_files_and_folders_count(tmp_path: Path) -> None:
    answer = load(tmp_path, CHAIN).answer
    weights = tmp_path / "weights"
    (weights / "deep").mkdir(parents=True)
    (weights / "deep" / "w.bin").write_bytes(b"\0" * 3_000_000)
    (tmp_path / "p.txt").write_text("p")
    before = fingerprint(answer, files=["p.txt", weights])
    assert list(before.files) == ["p.txt", "weights"]
    assert before.digest != fingerprint(answer).digest
    assert before.digest == fingerprint(answer, files=[weights, tmp_path / "p.txt"]).digest
    with (weights / "deep" / "w.bin").open("r+b") as file:
        file.write(b"1")
    after = fingerprint(answer, files=["p.txt", weights])
    assert explain(before.files, after.files) == ["weights changed"]
    (weights / "deep" / "w.bin").rename(weights / "w.bin")
    assert fingerprint(answer, files=["p.txt", weights]).digest not in (before.digest, after.digest)


def test_a_declared_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    answer = load(tmp_path, CHAIN).answer
    with pytest.raises(SpecError, match=r"files: nowhere/p\.txt does not exist"):
        fingerprint(answer, files=["nowhere/p.txt"])


def test_large_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    answer = load(tmp_path, CHAIN).answer
    weights = tmp_path / "w.bin"
    weights.write_bytes(b"\0" * 2_000_000)
    os.utime(weights, (1_000_000, 1_000_000))
    first, second = fingerprint(answer, files=["w.bin"]), fingerprint(answer, files=["w.bin"])
    weights.write_bytes(b"\1" * 2_000_000)
    assert first == second
    assert fingerprint(answer, files=["w.bin"]).digest != first.digest


# -- odd values

ODD = {
    "an object that refuses its attributes": (
        "class E:\n    def __getattribute__(self, name):\n        raise RuntimeError(name)\nV = E()\n"
    ),
    "an object that refuses its class": (
        "class E:\n    @property\n    def __class__(self):\n        raise RuntimeError\nV = E()\n"
    ),
    "a class that refuses its attributes": (
        "class M(type):\n    def __getattribute__(self, name):\n        raise RuntimeError(name)\n"
        "class V(metaclass=M):\n    pass\n"
    ),
    "an object whose parts have no shape": (
        "class E:\n    def __reduce_ex__(self, protocol):\n        return (1, 2)\nV = E()\n"
    ),
    "an object whose pairs are none": (
        "class E:\n    def __reduce_ex__(self, protocol):\n        return (E, (), None, None, [1])\nV = E()\n"
    ),
    "an object whose state has odd keys": (
        "class K:\n    @property\n    def __class__(self):\n        raise RuntimeError\n"
        "class E:\n    def __getstate__(self):\n        return K(), K()\nV = E()\n"
    ),
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("use", ["V", "[V]", "V.name", "V(x)"])
def test_values_that_refuse_to_be_read_are_no_error(tmp_path: Path, what: str, use: str) -> None:
    module = load(tmp_path, ODD[what] + f"def answer(x):\n    return {use}\n")
    assert fingerprint(module.answer) == fingerprint(module.answer)
    assert len(fingerprint(module.V).digest) == 32


@pytest.mark.parametrize(
    "where", ["V = {}\ndef answer(x):\n    return V\n", "V = [{}]\ndef answer(x):\n    return V\n"]
)
def test_integers_of_any_size_count(tmp_path: Path, where: str) -> None:
    source = where.format("10 ** 5000")
    assert changes(tmp_path, source, "5000", "5001") == ["app.V changed"]


def test_a_very_large_integer_in_the_text_counts(tmp_path: Path) -> None:
    source = f"def answer(x):\n    return 0x{'f' * 5000}\n"
    assert changes(tmp_path, source, "fff\n", "ffe\n") == ["app.answer changed"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}"),
        ("[1, 2]", "(1, 2)"),
        ("[1]", "[1.0]"),
        ("[1]", "[True]"),
        ("['1']", "[1]"),
        ("[['a'], 'b']", "[['a', 'b']]"),
        ("{'a': {'b': [None]}}", "{'a': {'b': [0]}}"),
        ("[float('nan')]", "[None]"),
        ("[b'a']", "['a']"),
    ],
)
def test_nested_data_count_by_value_kind_and_order(tmp_path: Path, old: str, new: str) -> None:
    assert changes(tmp_path, f"V = {old}\ndef answer(x):\n    return V\n", old, new) == ["app.V changed"]


def test_nested_data_that_name_the_folder_stay_the_same_when_it_moves(tmp_path: Path) -> None:
    source = (
        "from pathlib import Path\nV = {'a': [1, {'b': str(Path(__file__).parent / 'a.txt')}]}\n"
        "def answer(x):\n    return V\n"
    )
    assert of(tmp_path / "one", source).digest == of(tmp_path / "two", source).digest


# -- explaining


def test_changes_are_reported_in_words() -> None:
    old = {"app.same": "1", "app.z": "2", "app.gone": "3", "app.a": "4"}
    new = {"app.same": "1", "app.z": "9", "app.new": "5", "app.a": "6"}
    assert explain(old, new) == ["app.a changed", "app.z changed", "app.new is new", "app.gone was removed"]
    assert explain(old, old) == []


def test_a_client_counts_by_the_statement_that_makes_it_and_not_by_its_state(tmp_path: Path) -> None:
    source = """
        import httpx2
        client = httpx2.Client(cookies={"variant": "small"})

        def answer(text):
            return client.post("http://127.0.0.1:1/", json=text).text
        """
    small, large = load(tmp_path, source), load(tmp_path, source.replace("small", "large"))
    assert fingerprint(large.answer).digest != fingerprint(load(tmp_path, source).answer).digest
    digest = fingerprint(small.answer).digest
    small.client.cookies.set("tier", "2")
    assert fingerprint(small.answer).digest == digest


def test_a_subclass_of_a_library_may_give_a_name_another_meaning(tmp_path: Path) -> None:
    source = """
        import jinja2

        class Prompts(jinja2.DictLoader):
            def __init__(self, texts):
                super().__init__({})
                self.cache = texts

        prompts = Prompts({"main": "old"})

        def answer(text):
            return prompts.cache["main"] + text
        """
    assert changes(tmp_path, source, '"old"', '"new"') == ["app.prompts changed"]
