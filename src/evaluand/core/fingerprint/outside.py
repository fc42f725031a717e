"""What code may not depend on unseen: names that reach beyond it, and why its result then is not told by its text.

A rule is a name with all that lies below it; the longest name that fits decides, and `None` lets a name pass. Clocks
that measure (`time.time`, `time.perf_counter`, ...) have no rule: they say how long something took, not what came out.
Some need an argument to give the same again (a seed, a moment): without one, or where somebody else calls them, they
leave code unpinned, and so they do where that argument is made by a clock.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable

ENVIRONMENT = "reads the environment, which is not in the code"
ARGUMENTS = "reads the command line, which is not in the code"
TYPED = "reads what is typed in or piped in, which is not in the code"
SERVICE = "asks a service, whose answers are not in the code"
DATABASE = "asks a database, whose content is not in the code"
WEIGHTS = "loads a model by name, whose weights are not in the code"
PROGRAM = "runs another program, which is not in the code"
CHANCE = "draws at random without a seed of its own"
DATE = "depends on the date"
UNREAD = "runs code that is not there to be read"
STATE = "tells something of this process or machine, which is not in the code"
MOVES = "changes the current folder, so that names of files may mean others"
ANYTHING = "is handed on as a module, and what is taken from it is not told"
HARMLESS = frozenset((ENVIRONMENT, ARGUMENTS, CHANCE, DATE, STATE))  # where it is only written, logged or printed

_RULES = {
    ENVIRONMENT: "os.environ os.environb os.getenv os.getenvb os.path.expandvars dotenv decouple",
    ARGUMENTS: "sys.argv sys.orig_argv",
    TYPED: "builtins.input sys.stdin sys.__stdin__ fileinput getpass",
    SERVICE: (
        "socket http.client urllib.request xmlrpc.client smtplib imaplib poplib ftplib nntplib telnetlib "
        "asyncio.streams asyncio.open_connection asyncio.open_unix_connection httpx httpx2 requests aiohttp urllib3 "
        "websocket websockets pycurl paramiko grpc zmq boto3 botocore openai anthropic litellm cohere mistralai ollama "
        "groq replicate together vertexai google.cloud google.generativeai google.genai huggingface_hub "
        "datasets.load_dataset langchain langgraph llama_index dspy"
    ),
    DATABASE: (
        "sqlite3 dbm shelve psycopg psycopg2 asyncpg sqlalchemy duckdb pymongo motor redis pymysql MySQLdb mysql "
        "cx_Oracle oracledb pyodbc peewee elasticsearch qdrant_client pinecone weaviate chromadb pandas.read_sql "
        "pandas.read_sql_query pandas.read_sql_table pandas.read_gbq pandas.read_clipboard"
    ),
    WEIGHTS: "transformers.pipeline torch.hub sentence_transformers.SentenceTransformer spacy.load",
    PROGRAM: (
        "subprocess os.system os.popen os.startfile os.posix_spawn os.posix_spawnp asyncio.subprocess "
        "asyncio.create_subprocess_exec asyncio.create_subprocess_shell pty pexpect os.execl os.execle os.execlp "
        "os.execlpe os.execv os.execve os.execvp os.execvpe os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv "
        "os.spawnve os.spawnvp os.spawnvpe"
    ),
    CHANCE: (
        "random secrets uuid.uuid1 uuid.uuid4 os.urandom os.getrandom numpy.random torch.random torch.rand torch.randn "
        "torch.randint torch.randperm torch.rand_like torch.randn_like torch.randint_like torch.normal torch.bernoulli "
        "torch.multinomial tensorflow.random"
    ),
    DATE: (
        "datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today "
        "pandas.Timestamp.now pandas.Timestamp.today pandas.Timestamp.utcnow"
    ),
    UNREAD: (
        "builtins.eval builtins.exec builtins.compile builtins.globals sys.modules runpy importlib.machinery "
        "importlib.util.spec_from_file_location importlib.util.module_from_spec builtins.__dict__ pickle.loads "
        "marshal.load marshal.loads dill.loads cloudpickle.loads code codeop timeit ctypes.CDLL ctypes.PyDLL "
        "ctypes.LibraryLoader ctypes.cdll ctypes.pydll ctypes.pythonapi cffi.FFI"
    ),
    STATE: (
        "builtins.hash builtins.id os.getpid os.getppid os.getlogin os.uname os.getloadavg os.path.getatime "
        "os.path.getctime os.path.getmtime platform.node platform.uname threading.get_ident threading.get_native_id "
        "multiprocessing.current_process uuid.getnode tempfile.mkdtemp tempfile.mkstemp tempfile.mktemp "
        "tempfile.gettempdir tempfile.gettempdirb"
    ),
    MOVES: "os.chdir os.fchdir contextlib.chdir",
}
_FAMILIES = ("langchain", "llama_index")  # packages that come in parts: langchain_openai

_WANTING = {  # what gives the same again only with an argument, and where that argument stands
    **dict.fromkeys(
        (
            "random.Random",
            "numpy.random.BitGenerator",
            "numpy.random.MT19937",
            "numpy.random.PCG64",
            "numpy.random.PCG64DXSM",
            "numpy.random.Philox",
            "numpy.random.RandomState",
            "numpy.random.SFC64",
            "numpy.random.SeedSequence",
            "numpy.random.default_rng",
            "numpy.random.bit_generator.BitGenerator",
            "numpy.random.bit_generator.SeedSequence",
            "numpy.random.mtrand.RandomState",
        ),
        (0, CHANCE),
    ),
    **dict.fromkeys(("time.localtime", "time.gmtime", "time.ctime", "time.asctime"), (0, DATE)),
    "time.strftime": (1, DATE),
    "datetime.datetime.fromtimestamp": (0, DATE),
    "datetime.datetime.utcfromtimestamp": (0, DATE),
    "datetime.date.fromtimestamp": (0, DATE),
}
_CLOCKS = frozenset(
    f"time.{name}{unit}"
    for name in ("monotonic", "perf_counter", "process_time", "thread_time", "time")
    for unit in ("", "_ns")
)
_SEEDING = "random.seed numpy.random.seed torch.manual_seed torch.random.manual_seed tensorflow.random.set_seed"
_WHY: dict[str, str | None] = {name: why for why, names in _RULES.items() for name in names.split()}
_WHY |= dict.fromkeys(_WANTING)
_WHY |= dict.fromkeys(("numpy.random.Generator", "timeit.default_timer", *_SEEDING.split()))


def why_outside(name: str, call: ast.Call | None = None) -> str | None:
    """Why what a full name stands for leaves code unpinned; None where it does not.

    Args:
        name: the full name, such as `os.environ.get`.
        call: the call of it, if it is called.

    Example:
        >>> why_outside("os.environ.get"), why_outside("os.path.join")
        ('reads the environment, which is not in the code', None)
        >>> call = ast.parse("random.Random(7)", mode="eval").body
        >>> why_outside("random.Random", call), why_outside("random.choice", call)
        (None, 'draws at random without a seed of its own')
    """
    if name in _WANTING:
        position, why = _WANTING[name]
        return None if call is not None and _is_told(call, position) else why
    top = name.partition(".")[0]
    family = next((family for family in _FAMILIES if top.startswith(f"{family}_")), None)
    if family:
        return _WHY[family]
    while name:
        if name in _WHY:
            return _WHY[name]
        name = name.rpartition(".")[0]
    return None


def why_changing(name: str, made_of: Iterable[str]) -> str | None:
    """Why something that needs an argument changes each time, told by the names of what the argument is made of.

    Example:
        >>> why_changing("random.Random", ["time.time"]), why_changing("random.Random", ["builtins.len"])
        ('draws at random without a seed of its own', None)
    """
    if name not in _WANTING:
        return None
    changes = any(made in _CLOCKS or _WHY.get(made) in HARMLESS for made in made_of)
    return _WANTING[name][1] if changes else None


def hands_on(module: str) -> bool:
    """Whether a module of Python's own holds something that leaves code unpinned, whatever is taken from it."""
    below = (name for name, why in _WHY.items() if why and name.startswith(f"{module}."))
    return module.partition(".")[0] in sys.stdlib_module_names and any(below)


def _is_told(call: ast.Call, position: int) -> bool:
    told = [*call.args[position:], *(keyword.value for keyword in call.keywords)]
    return any(not (isinstance(value, ast.Constant) and value.value is None) for value in told)
