"""What code reaches beyond itself leaves its fingerprint unpinned, and what only looks like it does not."""

from __future__ import annotations

import decimal
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from support.fingerprinted import executed, of

from evaluand.core.fingerprint import Fingerprint, explain, fingerprint

pytestmark = pytest.mark.usefixtures("no_bytecode_files")

PIN = "declare version=... to pin it"
ENVIRONMENT = "reads the environment, which is not in the code"
SERVICE = "asks a service, whose answers are not in the code"
DATABASE = "asks a database, whose content is not in the code"
PROGRAM = "runs another program, which is not in the code"
CHANCE = "draws at random without a fixed seed"
DATE = "depends on the date"
ZONE = "depends on the time zone of this machine, which is not in the code"
FOLDER = "depends on the current folder, which is not in the code"
ARGUMENTS = "reads the command line, which is not in the code"
UNREAD = "runs code that is not there to be read"
STATE = "depends on this process or machine, which is not in the code"
PROCESSES = "works in other processes, in which opened files cannot be observed"
ASKS = "asks about a file without opening it, which cannot be observed"
UNSEEDED = "draws at random unless it is given a random_state, seed or rng"
COMPUTED = "imports a module whose name is known only when it runs"
COMPUTED_NAME = "uses an attribute whose name is known only when it runs"
ORDER = "differs between processes, which hash texts at random"
UNLISTED = "is not known to give the same each time"
ADVICE = {
    ENVIRONMENT: f"read it once at the top of the module, so that its value counts, or {PIN}",
    CHANCE: f"use random.Random(seed) or numpy.random.default_rng(seed), or {PIN}",
    ZONE: f"use a datetime with its time zone, or {PIN}",
    ORDER: f"use sorted(...), or set PYTHONHASHSEED, or {PIN}",
    UNSEEDED: f"give it one, or {PIN}",
    PROCESSES: f"name them with files=[...] or {PIN}",
    ASKS: f"name it with files=[...], or open it and catch FileNotFoundError, or {PIN}",
}


def said(where: str, what: str, why: str) -> str:
    return f"{where}: {what} {why}; {ADVICE.get(why, PIN)}"


@pytest.mark.parametrize(
    ("source", "what", "why"),
    [
        ("import os\ndef answer(x):\n    return os.environ['A']\n", "os.environ", ENVIRONMENT),
        ("import os\ndef answer(x):\n    return os.environ.get('A')\n", "os.environ.get", ENVIRONMENT),
        ("import os as o\ndef answer(x):\n    return o.getenv('A')\n", "o.getenv", ENVIRONMENT),
        ("import os\ndef answer(x):\n    return list(map(os.getenv, x))\n", "os.getenv", ENVIRONMENT),
        ("def answer(x):\n    import os\n    return os.environ\n", "os.environ", ENVIRONMENT),
        ("def answer(x):\n    from os import getenv as g\n    return g('A')\n", "g", ENVIRONMENT),
        (
            "import sys\ndef answer(x):\n    return sys.argv[1]\n",
            "sys.argv",
            "reads the command line, which is not in the code",
        ),
        (
            "def answer(x):\n    return input()\n",
            "input",
            "reads what is typed in or piped in, which is not in the code",
        ),
        (
            "import socket\ndef answer(x):\n    return socket.create_connection(x)\n",
            "socket.create_connection",
            SERVICE,
        ),
        ("def answer(x):\n    import requests\n    return requests.get(x)\n", "requests.get", SERVICE),
        pytest.param(
            "def answer(x):\n    from openai import OpenAI\n    return OpenAI()\n",
            "OpenAI",
            SERVICE,
            marks=pytest.mark.slow,
        ),
        (
            "import urllib.request\ndef answer(x):\n    return urllib.request.urlopen(x)\n",
            "urllib.request.urlopen",
            SERVICE,
        ),
        (
            "def answer(x):\n    from langchain_openai import ChatOpenAI\n    return ChatOpenAI()\n",
            "ChatOpenAI",
            SERVICE,
        ),
        (
            "def answer(x):\n    try:\n        import httpx\n    except ImportError:\n        httpx = None\n"
            "    return httpx.get(x)\n",
            "httpx.get",
            SERVICE,
        ),
        ("def answer(x):\n    import psycopg\n    return psycopg.connect(x)\n", "psycopg.connect", DATABASE),
        ("import multiprocessing as m\ndef answer(x):\n    return m.Pool()\n", "m.Pool", PROCESSES),
        ("import os\ndef answer(x):\n    return os.path.exists(x)\n", "os.path.exists", ASKS),
        ("def answer(x):\n    return x.exists()\n", "x.exists", ASKS),
        ("def answer(x):\n    import my_library\n    return my_library.answer(x)\n", "my_library.answer", UNLISTED),
        ("import subprocess\ndef answer(x):\n    return subprocess.run(x)\n", "subprocess.run", PROGRAM),
        ("from subprocess import run\ndef answer(x):\n    return run(x)\n", "run", PROGRAM),
        ("from os import system\ndef answer(x):\n    return system(x)\n", "system", PROGRAM),
        ("import random\ndef answer(x):\n    return random.choice(x)\n", "random.choice", CHANCE),
        ("import random\ndef answer(x):\n    return random.Random().random()\n", "random.Random", CHANCE),
        ("import random\ndef answer(x):\n    return random.Random(None)\n", "random.Random", CHANCE),
        ("from random import SystemRandom\ndef answer(x):\n    return SystemRandom()\n", "SystemRandom", CHANCE),
        ("import numpy as np\ndef answer(x):\n    return np.random.rand(3)\n", "np.random.rand", CHANCE),
        ("import numpy as np\ndef answer(x):\n    return np.random.default_rng()\n", "np.random.default_rng", CHANCE),
        ("from numpy.random import default_rng\ndef answer(x):\n    return default_rng()\n", "default_rng", CHANCE),
        ("import uuid\ndef answer(x):\n    return str(uuid.uuid4())\n", "uuid.uuid4", CHANCE),
        ("import secrets\ndef answer(x):\n    return secrets.token_hex()\n", "secrets.token_hex", CHANCE),
        ("import os\ndef answer(x):\n    return os.urandom(4)\n", "os.urandom", CHANCE),
        ("import datetime\ndef answer(x):\n    return datetime.date.today()\n", "datetime.date.today", DATE),
        ("import datetime as d\ndef answer(x):\n    return d.datetime.now()\n", "d.datetime.now", DATE),
        ("from datetime import datetime\ndef answer(x):\n    return datetime.utcnow()\n", "datetime.utcnow", DATE),
        ("import time\ndef answer(x):\n    return time.strftime('%Y')\n", "time.strftime", DATE),
        ("import time\ndef answer(x):\n    return time.localtime()\n", "time.localtime", ZONE),
        ("def answer(x):\n    return eval(x)\n", "eval", UNREAD),
        ("def answer(x):\n    exec(x)\n", "exec", UNREAD),
        ("def answer(x):\n    return globals()[x]()\n", "globals", UNREAD),
        ("import sys\ndef answer(x):\n    return sys.modules[x]\n", "sys.modules", UNREAD),
        ("import random\ndef answer(x):\n    make = random.Random\n    return make()\n", "random.Random", CHANCE),
        (
            "import numpy as np\ndef answer(x):\n    return list(map(np.random.default_rng, [None]))\n",
            "np.random.default_rng",
            CHANCE,
        ),
        (
            "import numpy as np\ndef answer(x):\n    return (lambda m=np.random.default_rng: m())()\n",
            "np.random.default_rng",
            CHANCE,
        ),
        ("import random, time\ndef answer(x):\n    return random.Random(time.time())\n", "time.time", DATE),
        (
            "import random, time\ndef answer(x):\n    return random.Random(int(time.time_ns()))\n",
            "time.time_ns",
            DATE,
        ),
        ("import time\ndef answer(x):\n    return time.perf_counter() - x\n", "time.perf_counter", DATE),
        (
            "import numpy as np, time\ndef answer(x):\n    return np.random.default_rng(seed=time.time_ns())\n",
            "time.time_ns",
            DATE,
        ),
        ("import time\ndef answer(x):\n    return time.gmtime(time.time())\n", "time.time", DATE),
        (
            "import datetime as d, time\ndef answer(x):\n    return d.datetime.fromtimestamp(time.time(), d.UTC)\n",
            "time.time",
            DATE,
        ),
        ("import os\ndef answer(x):\n    return os.getpid()\n", "os.getpid", STATE),
        ("import platform\ndef answer(x):\n    return platform.node()\n", "platform.node", STATE),
        ("import threading\ndef answer(x):\n    return threading.get_ident()\n", "threading.get_ident", STATE),
        ("import tempfile\ndef answer(x):\n    return tempfile.mkdtemp()\n", "tempfile.mkdtemp", STATE),
        (
            "def answer(x):\n    return x.sample(2)\n",
            "x.sample",
            UNSEEDED,
        ),
        ("import os\ndef answer(x):\n    return os.path.getmtime(x)\n", "os.path.getmtime", STATE),
        ("def answer(x):\n    return hash(x) % 2\n", "hash", STATE),
        ("def answer(x):\n    return id(x)\n", "id", STATE),
        ("def answer(x):\n    return hash(x) % 2 == hash('a') % 2\n", "hash", STATE),
        ("def answer(x):\n    return len(x.__subclasses__())\n", "x.__subclasses__", STATE),
        ("def answer(x):\n    return x.isEnabledFor(10)\n", "x.isEnabledFor", STATE),
        ("def answer(x):\n    return tuple.__hash__(x)\n", "tuple.__hash__", STATE),
        ("def answer(x):\n    return id(x) % 7 == 0\n", "id", STATE),
        (
            "from importlib.metadata import version\ndef answer(x):\n    return version('numpy')\n",
            "version",
            STATE,
        ),
        ("import locale\ndef answer(x):\n    return locale.setlocale(0, '')\n", "locale.setlocale", ENVIRONMENT),
        ("import dateutil.tz as tz\ndef answer(x):\n    return x.replace(tzinfo=tz.gettz())\n", "tz.gettz", ZONE),
        (
            "import pandas as pd\ndef answer(x):\n    return pd.Timestamp.fromtimestamp(x)\n",
            "pd.Timestamp.fromtimestamp",
            ZONE,
        ),
        ("import ctypes\ndef answer(x):\n    return ctypes.CDLL(x)\n", "ctypes.CDLL", UNREAD),
        ("import pickle\ndef answer(x):\n    return pickle.loads(x)\n", "pickle.loads", UNREAD),
        ("import marshal\ndef answer(x):\n    return marshal.loads(x)\n", "marshal.loads", UNREAD),
        ("from datetime import date\ndef answer(x):\n    return date.fromtimestamp(x)\n", "date.fromtimestamp", ZONE),
        ("def answer(x):\n    return x.timestamp()\n", "x.timestamp", ZONE),
        ("import os\ndef answer(x):\n    return os.getcwd() + x\n", "os.getcwd", FOLDER),
        ("import os\ndef answer(x):\n    return os.path.abspath(x)\n", "os.path.abspath", FOLDER),
        ("def answer(x):\n    return str(x.absolute())\n", "x.absolute", FOLDER),
        ("import os\ndef answer(x):\n    return os.path.relpath(__file__)\n", "os.path.relpath", FOLDER),
        (
            "import shutil\ndef answer(x):\n    return shutil.get_terminal_size()\n",
            "shutil.get_terminal_size",
            ENVIRONMENT,
        ),
        ("def answer(x):\n    return x.parse_args()\n", "x.parse_args", ARGUMENTS),
        (
            "import os\ndef answer(x):\n    return getattr({'a': os.environ}['a'], 'get')(x)\n",
            "os.environ",
            ENVIRONMENT,
        ),
        (
            "from pathlib import Path\ndef answer(x):\n    return Path(__file__).with_name('p.txt').exists()\n",
            "Path(__file__).with_name('p.txt').exists",
            ASKS,
        ),
        (
            "import os\ndef answer(x):\n    return os.path.getsize(os.path.join(os.path.dirname(__file__), 'p'))\n",
            "os.path.getsize",
            ASKS,
        ),
        ("def answer(x):\n    return x.samefile('p.txt')\n", "x.samefile", ASKS),
        ("import code\ndef answer(x):\n    return code.compile_command(x)\n", "code.compile_command", UNREAD),
        ("import timeit\ndef answer(x):\n    return timeit.timeit(x)\n", "timeit.timeit", UNREAD),
        ("def answer(x):\n    return __builtins__['eval'](x)\n", "__builtins__", UNREAD),
        (
            "import os\ndef answer(x):\n    return os.__dict__['environ']\n",
            "os.__dict__",
            "is passed on as a module, so that anything in it may be used",
        ),
        (
            "import os\ndef answer(x):\n    os.chdir(x)\n    return open('a.txt').read()\n",
            "os.chdir",
            "changes the current folder, so that names of files may mean others",
        ),
        (
            "import os\ndef answer(x):\n    return x(os)\n",
            "os",
            "is passed on as a module, so that anything in it may be used",
        ),
    ],
)
def test_what_is_not_in_the_code_is_named_with_its_line_and_unpins(
    tmp_path: Path, source: str, what: str, why: str
) -> None:
    printed = of(tmp_path, source)
    line = next(i for i, text in enumerate(source.splitlines(), 1) if what in text and "import " not in text)
    assert printed.unpinned == (said(f"app.answer, line {line}", what, why),)
    assert not printed.pinned


def test_it_is_found_wherever_the_code_reaches(tmp_path: Path) -> None:
    source = """
import os, random, time
def helper(x):
    return [os.getenv(y) for y in x]

class C:
    @property
    def seed(self):
        return (lambda: random.random())()

    def __call__(self, x):
        def inner(y=random.randint(1, 2)):
            return time.ctime()
        return helper(x), inner

def unrelated(x):
    return os.system(x)

answer = C()
"""
    assert set(of(tmp_path, source).unpinned) == {
        said("app.helper, line 4", "os.getenv", ENVIRONMENT),
        said("app.C.seed, line 9", "random.random", CHANCE),
        said("app.C.__call__, line 12", "random.randint", CHANCE),
        said("app.C.__call__, line 13", "time.ctime", ZONE),
    }


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("from os import environ\ndef answer(x):\n    return environ['A']\n", f"environ {ENVIRONMENT}"),
        (
            "from os import getenv\nTABLE = {'a': getenv}\ndef answer(x):\n    return TABLE\n",
            f"os.getenv {ENVIRONMENT}",
        ),
        (
            "import os\nfrom functools import partial\nf = partial(os.getenv, 'A')\ndef answer(x):\n    return f()\n",
            f"app.f: os.getenv {ENVIRONMENT}",
        ),
        ("from uuid import uuid4\ndef answer(x, make=uuid4):\n    return make()\n", f"uuid.uuid4 {CHANCE}"),
        (
            "import numpy as np\ndef answer(x, make=np.random.default_rng):\n    return make()\n",
            f"numpy.random.default_rng {CHANCE}",
        ),
        ("import random\ndef answer(x):\n    return random.Random(hash(x))\n", f"hash {STATE}"),
        ("import os\nT = {'p': os.getpid}\ndef answer(x):\n    return T\n", f"os.getpid {STATE}"),
        ("import random\ndef answer(x):\n    return getattr(random, x)()\n", f"getattr(random, ...) {CHANCE}"),
        ("import os\ndef answer(x):\n    return getattr(os, 'environ')\n", f"getattr(os, ...) {ENVIRONMENT}"),
        (
            "import socket\ndef make():\n    tool = socket\n    def answer(x):\n        return tool.gethostname()\n"
            "    return answer\nanswer = make()\n",
            f"tool.gethostname {SERVICE}",
        ),
        (
            "from http.client import HTTPConnection\nclass C(HTTPConnection):\n    pass\ndef answer(x):\n"
            "    return C\n",
            f"http.client.HTTPConnection {SERVICE}",
        ),
        (
            "import http.client\nc = http.client.HTTPConnection('localhost')\ndef answer(x):\n    return c\n",
            f"http.client.HTTPConnection {SERVICE}",
        ),
    ],
)
def test_what_is_held_as_a_value_unpins_too(tmp_path: Path, source: str, sentence: str) -> None:
    printed = of(tmp_path, source)
    assert any(sentence in why for why in printed.unpinned), printed.unpinned


@pytest.mark.parametrize(
    "source",
    [
        "import re, json, math, collections\ndef answer(x):\n    return json.loads(re.sub('a', x, x)), math.pi\n",
        "import random\ndef answer(x):\n    return random.Random(7).choice(x)\n",
        "import random\ndef answer(x, seed):\n    return random.Random(seed).choice(x)\n",
        "import random\ndef answer(x: random.SystemRandom) -> random.SystemRandom:\n    y: random.SystemRandom = x\n",
        "import numpy as np\ndef answer(x):\n    return np.random.default_rng(3).normal(np.asarray(x))\n",
        "from numpy.random import default_rng\ndef answer(x):\n    return default_rng(seed=3)\n",
        "import numpy as np\ndef answer(x):\n    return isinstance(x, np.random.Generator)\n",
        "import time\ndef answer(x):\n    time.sleep(0)\n    print(time.perf_counter() - time.time())\n",
        "import time\ndef answer(x):\n    return time.strftime('%Y', time.gmtime(x))\n",
        "import datetime as d\ndef answer(x):\n    return d.datetime(2020, 1, 1), d.datetime.fromisoformat(x)\n",
        "import os\nMODEL = os.environ.get('NO_SUCH_NAME', 'm')\ndef answer(x):\n    return MODEL\n",
        "import os\ndef answer(x, model=os.environ.get('NO_SUCH_NAME')):\n    return os.path.join(x, 'a')\n",
        "import os\nclass C:\n    model = os.environ.get('NO_SUCH_NAME')\ndef answer(x):\n    return C.model\n",
        "import logging\nlog = logging.getLogger('a')\ndef answer(x):\n    log.info(x)\n    print(x)\n",
        "import urllib.parse, http\ndef answer(x):\n    return urllib.parse.quote(x), http.HTTPStatus.OK\n",
        "import re\ndef answer(x):\n    return re.compile(x), vars(x), locals()\n",
        "import math\ndef answer(x, m=math):\n    m = math\n    return m.sqrt(x)\n",
        "import ast\ndef answer(x):\n    return ast.literal_eval(x)\n",
        "import subprocess\ndef answer(x):\n    try:\n        return x()\n    except subprocess.TimeoutExpired:\n"
        "        return 1\n",
        "import sqlite3, http.client\nERRORS = (sqlite3.Error, http.client.HTTPException)\ndef answer(x):\n    try:\n"
        "        return x()\n    except ERRORS:\n        return 1\n",
        "import socket\ndef answer(x):\n    raise socket.gaierror(x)\n",
        "def answer(x):\n    import httpx_not_installed, requests\n    try:\n        return x()\n"
        "    except requests.Timeout:\n        return 1\n",
        "import os\ndef answer(x):\n    os.environ['A'] = 'false'\n    del os.environ['A']\n    return x\n",
        "import logging\nfrom datetime import datetime\nlog = logging.getLogger('a')\ndef answer(x):\n"
        "    log.info('at %s', datetime.now())\n    logging.warning(datetime.now())\n    return x\n",
        "import os, sys\nfrom datetime import datetime\ndef answer(x):\n\n"
        "    print(f'{datetime.now()} {os.getpid()} {os.environ}', file=sys.stderr)\n    return x\n",
        "from datetime import datetime\ndef answer(x, task_span):\n    task_span.set(when=datetime.now().isoformat())\n"
        "    task_span.log('when', datetime.now())\n    return x\n",
        "import uuid\nclass C:\n    def __call__(self, x):\n        self._log.info(uuid.uuid4())\nanswer = C()\n",
        "import random\nimport numpy as np\ndef answer(x):\n    random.seed(0)\n    np.random.seed(0)\n    return x\n",
        "from datetime import UTC, datetime\ndef answer(x):\n"
        "    return datetime.fromtimestamp(x, UTC), datetime.fromtimestamp(x, tz=UTC)\n",
        "import re\ndef answer(x):\n    return re.match('a', x).group() + re.match('a', x).group(0)\n",
        "from pathlib import Path\nimport os\ndef answer(x):\n    here = Path(__file__).resolve().parent\n"
        "    return (here / 'p').read_text() + open(os.path.join(os.path.abspath(__file__), 'q')).read()\n",
        "import random\ndef answer(x):\n    match x:\n        case random.Random():\n            return 1\n",
        "class C:\n    def __hash__(self):\n        return hash(('a', 1))\nc = C()\ndef answer(x):\n    return c\n",
        "def answer(x):\n    return id(x) in x or id(x) == x or x[id(x)] or (id(x), 1) in x\n",
        "import tempfile\ndef answer(x):\n    with tempfile.TemporaryDirectory() as d:\n        return x\n",
        "import pickle\ndef answer(x):\n    return pickle.dumps(x)\n",
        "import sys\ndef answer(x):\n    print(x, file=sys.stderr)\n",
        "def eval(x):\n    return x\ndef answer(x):\n    return eval(x)\n",
        "def answer(x, input):\n    return input(x)\n",
        "def answer(x):\n    random = x.random\n    return random.choice(x)\n",
        "class os:\n    environ = {}\ndef answer(x):\n    return os.environ\n",
        "def answer(x):\n    return x.environ, x.requests.get, getattr(x, x.name)\n",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    a: int = 1\ndef answer(x):\n    return P(x)\n",
    ],
)
def test_ordinary_code_stays_pinned(tmp_path: Path, source: str) -> None:
    assert of(tmp_path, source).unpinned == ()


@pytest.mark.parametrize("make", ["uuid4", "lambda: str(uuid4())"])
def test_what_an_attribute_is_made_with_unpins(tmp_path: Path, make: str) -> None:
    source = (
        "from dataclasses import dataclass, field\nfrom uuid import uuid4\n@dataclass\nclass C:\n"
        f"    id: str = field(default_factory={make})\ndef answer(x):\n    return C()\n"
    )
    assert of(tmp_path, source).unpinned == (said("app.C, line 5", "uuid4", CHANCE),)


def test_a_file_named_by_the_environment_unpins_even_where_it_is_only_written(tmp_path: Path) -> None:
    source = "import os\ndef answer(x):\n    log = os.getenv('LOG')\n    open(log, 'a').close()\n"
    assert of(tmp_path, source).unpinned == (said("app.answer, line 3", "os.getenv", ENVIRONMENT),)


def test_a_program_that_names_a_file_to_be_written_unpins(tmp_path: Path) -> None:
    source = "import os\ndef answer(x):\n    open(os.popen('date').read(), 'a').close()\n"
    assert of(tmp_path, source).unpinned == (said("app.answer, line 3", "os.popen", PROGRAM),)


def test_an_estimator_stays_pinned() -> None:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(random_state=1).fit([[0.0], [1.0]], [0, 1])

    def answer(x: Any) -> Any:
        return model.predict([[x]])

    assert fingerprint(answer).unpinned == ()


def test_each_function_says_a_reason_once(tmp_path: Path) -> None:
    source = "import os\ndef answer(x):\n    return os.getenv('A'), os.getenv('B')\n"
    assert len(of(tmp_path, source).unpinned) == 1


@pytest.mark.parametrize(
    "body",
    [
        "print(os.getenv('A'), file=open(os.getenv('B')))",
        "x.log.extend([os.getenv('A')])",
        "now = os.getenv('A')\n    print(now)\n    return now",
        "y = os.environ.setdefault('A', 'b')\n    return y",
        "print(os.popen('date').read())",
        "return 'A' in os.environ",
    ],
)
def test_what_is_not_only_shown_or_set_unpins(tmp_path: Path, body: str) -> None:
    assert not of(tmp_path, f"import os\ndef answer(x):\n    {body}\n").pinned


# -- modules


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes modules beside one another and imports one of them afresh."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(module: str, **sources: str) -> ModuleType:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        for name in sources:
            monkeypatch.setitem(sys.modules, name, importlib.import_module(name))
        return sys.modules[module]

    return write


def test_a_module_of_ones_own_is_not_taken_for_another_of_its_name(package: Any) -> None:
    app = "import ollama\nfrom ollama import ask\ndef answer(x):\n    return ollama.ask(x) + ask(x)\n"
    printed = fingerprint(package("own_app", ollama="def ask(x):\n    return x\n", own_app=app).answer)
    assert printed.unpinned == ()
    assert "ollama.ask" in printed.parts


@pytest.mark.parametrize(
    "app",
    [
        "from own_names import getenv\ndef answer(x):\n    return getenv(x)\n",
        "import own_names\ndef answer(x):\n    return own_names.getenv(x)\n",
        "import own_names\ndef answer(x):\n    return own_names.os.environ\n",
        "def answer(x):\n    from own_names import getenv\n    return getenv(x)\n",
    ],
)
def test_a_name_handed_through_a_module_of_ones_own_is_recognised(package: Any, app: str) -> None:
    printed = fingerprint(package("own_app", own_names="import os\nfrom os import getenv\n", own_app=app).answer)
    assert ENVIRONMENT in printed.unpinned[0]


IMPORTING = "import importlib\nNAME = 'own_{name}'\ndef answer(x):\n    return importlib.import_module({which}).f(x)\n"


@pytest.mark.parametrize("which", ["NAME", "'own_helper'"])
def test_a_module_imported_by_a_constant_name_is_followed(package: Any, which: str) -> None:
    app = IMPORTING.format(name="helper", which=which)

    def printed(helper: str) -> Fingerprint:
        return fingerprint(package("own_app", own_helper=helper, own_app=app).answer)

    before, after = printed("def f(x):\n    return 1\n"), printed("def f(x):\n    return 2\n")
    assert before.unpinned == ()
    assert explain(before.parts, after.parts) == ["module own_helper changed", "own_helper.f changed"]


@pytest.mark.parametrize(
    ("source", "where", "what", "why"),
    [
        (
            "import importlib\ndef answer(x):\n    return importlib.import_module(x)\n",
            "app.answer, line 3",
            "importlib.import_module",
            COMPUTED,
        ),
        (
            "import importlib\nM = ['json']\ndef answer(x):\n    M.append(x)\n"
            "    return [importlib.import_module(n) for n in M]\n",
            "app.answer, line 5",
            "importlib.import_module",
            COMPUTED,
        ),
        (
            "def answer(x):\n    return __import__(x)\n",
            "app.answer, line 2",
            "__import__",
            COMPUTED,
        ),
        (
            "def answer(x):\n    return __import__('requests').get(x)\n",
            "app.answer, line 2",
            "__import__('requests')",
            SERVICE,
        ),
    ],
)
def test_a_module_imported_by_a_computed_name_unpins(
    tmp_path: Path, source: str, where: str, what: str, why: str
) -> None:
    assert of(tmp_path, source).unpinned == (said(where, what, why),)


def test_taking_from_a_module_what_only_the_call_tells_unpins(package: Any) -> None:
    app = "import own_helper\ndef answer(x):\n    return getattr(own_helper, {name})(x)\n"
    helper = "def f(x):\n    return 1\n"
    unknown = fingerprint(package("own_app", own_helper=helper, own_app=app.format(name="x")).answer)
    assert unknown.unpinned == (said("own_app.answer, line 3", "getattr(own_helper, ...)", COMPUTED_NAME),)
    assert fingerprint(package("own_app", own_helper=helper, own_app=app.format(name="'f'")).answer).pinned


# -- without source


@pytest.mark.parametrize(
    ("source", "what", "why"),
    [
        ("import os\ndef answer(x):\n    return os.environ[x]\n", "os.environ", ENVIRONMENT),
        ("def answer(x):\n    import requests\n    return requests.get(x)\n", "requests", SERVICE),
        ("def answer(x):\n    from os import getenv\n    return getenv(x)\n", "os.getenv", ENVIRONMENT),
        ("import random\ndef answer(x):\n    return random.Random(x)\n", "random.Random", UNSEEDED),
        ("def answer(x):\n    return x.sample(1)\n", "sample", UNSEEDED),
        ("def answer(x):\n    return list(set(x))\n", "the order of a set", ORDER),
    ],
)
def test_code_without_source_is_judged_by_its_names_alone(source: str, what: str, why: str) -> None:
    assert fingerprint(executed(source)).unpinned == (said("session.answer", what, why),)


def test_ordinary_code_without_source_stays_pinned() -> None:
    source = "import json, os\ndef answer(x):\n    return json.loads(os.path.join(x, 'a'))\n"
    assert fingerprint(executed(source)).unpinned == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import decimal\ndecimal.getcontext().prec = 4\n", "import decimal\ndecimal.getcontext().prec = 5\n"),
        ("import numpy\nnumpy.seterr(over='ignore')\n", "import numpy\nnumpy.seterr(over='raise')\n"),
        (
            "import yaml\nclass L(yaml.SafeLoader):\n    pass\nyaml.add_constructor('!x', len, L)\n",
            "import yaml\nclass L(yaml.SafeLoader):\n    pass\n",
        ),
        ("import json\njson.dumps = str\n", "import json\njson.dumps = repr\n"),
    ],
)
def test_statements_that_change_a_library_count_as_code(tmp_path: Path, before: str, after: str) -> None:
    rest = "def answer(x):\n    return x\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.MonkeyPatch.context() as patched, decimal.localcontext(), np.errstate():
        patched.setattr("json.dumps", json.dumps)
        first, second = of(tmp_path / "a", before + rest), of(tmp_path / "b", after + rest)
    assert first.digest != second.digest
    assert "app.top-level statements" in " ".join(explain(first.parts, second.parts))


def test_what_such_a_statement_gives_to_a_library_counts_even_if_it_counts_the_statement(tmp_path: Path) -> None:
    source = "import json\ndef text(x):\n    return {}(x)\njson.dumps = text\ndef answer(x):\n    return x\n"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("json.dumps", json.dumps)
        first, second = (of(tmp_path / kind, source.format(kind)) for kind in ("str", "repr"))
    assert explain(first.parts, second.parts) == ["app.text changed"]


def test_statements_that_only_say_something_are_no_part_of_code(tmp_path: Path) -> None:
    rest = "def answer(x):\n    return x\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    loud = "import logging, sys\nlogging.captureWarnings(False)\nprint('hello')\nsys.path.insert(0, sys.path.pop(0))\n"
    assert of(tmp_path / "a", loud + rest).digest == of(tmp_path / "b", rest).digest


@pytest.mark.parametrize(
    "text",
    [
        "'{}'\ndef answer(x):\n    return __doc__ + x\n",
        "def helper(): pass\nhelper.__doc__ = '{}'\ndef answer(x):\n    return helper.__doc__ + x\n",
        "import enum\nclass E(enum.Enum):\n    A = 1\nE.A.label = '{}'\ndef answer(x):\n    return E.A.label + x\n",
    ],
    ids=["of_the_module", "set_later", "attribute_of_a_member"],
)
def test_texts_beside_the_code_that_it_reads_count(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert of(tmp_path / "a", text.format("Answer:")).digest != of(tmp_path / "b", text.format("Reply:")).digest
