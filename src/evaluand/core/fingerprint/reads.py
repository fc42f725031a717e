"""Which calls read files, and which expressions name what they read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence

OPENERS = {  # the mode where none is given
    "io.open": "r",
    "codecs.open": "r",
    "gzip.open": "r",
    "bz2.open": "r",
    "lzma.open": "r",
    "logging.FileHandler": "a",
    "logging.basicConfig": "a",
    "logging.handlers.RotatingFileHandler": "a",
    "logging.handlers.WatchedFileHandler": "a",
}
NAME_KEYWORDS = ("file", "filename", "path", "name", "fname", "path_or_buf", "excel_writer")

LISTINGS = frozenset(("os.listdir", "os.scandir", "os.walk", "os.fwalk", "glob.glob", "glob.iglob"))
LISTING_METHODS = frozenset(("glob", "rglob", "iterdir"))
READING_METHODS = frozenset(("read_text", "read_bytes"))
STREAMS = frozenset(("StringIO", "BytesIO", "open"))  # the last as the method of a path
TEMPORARY = frozenset(
    f"tempfile.{name}"
    for name in ("NamedTemporaryFile", "SpooledTemporaryFile", "TemporaryDirectory", "TemporaryFile", "mkdtemp")
)
FROM_PRETRAINED = "from_pretrained"

_HANDLES = frozenset(
    (
        "gzip.GzipFile",
        "h5py.File",
        "importlib.resources.open_binary",
        "importlib.resources.open_text",
        "io.BufferedReader",
        "io.BytesIO",
        "io.FileIO",
        "io.StringIO",
        "io.TextIOWrapper",
        "os.fdopen",
        "os.open",
        "tarfile.open",
        "tempfile.NamedTemporaryFile",
        "tempfile.SpooledTemporaryFile",
        "tempfile.TemporaryFile",
        "wave.open",
        "zipfile.ZipFile",
    )
)
METHODS = frozenset(("configparser.ConfigParser.read", "configparser.RawConfigParser.read"))  # of what a class makes
_READERS = METHODS | frozenset(
    (
        "PIL.Image.open",
        "filecmp.cmp",
        "filecmp.cmpfiles",
        "filecmp.dircmp",
        "gzip.GzipFile",
        "h5py.File",
        "importlib.resources.open_binary",
        "importlib.resources.open_text",
        "importlib.resources.read_binary",
        "importlib.resources.read_text",
        "io.FileIO",
        "jinja2.FileSystemLoader",
        "jinja2.ModuleLoader",
        "jinja2.PackageLoader",
        "joblib.load",
        "linecache.getline",
        "linecache.getlines",
        "mmap.mmap",
        "numpy.fromfile",
        "numpy.genfromtxt",
        "numpy.load",
        "numpy.loadtxt",
        "numpy.memmap",
        "os.access",
        "os.fdopen",
        "os.lstat",
        "os.open",
        "os.pread",
        "os.read",
        "os.readlink",
        "os.stat",
        "os.path.exists",
        "os.path.getsize",
        "os.path.isdir",
        "os.path.isfile",
        "os.path.islink",
        "os.path.lexists",
        "pkgutil.get_data",
        "pyarrow.OSFile",
        "pyarrow.ParquetDataset",
        "pyarrow.ParquetFile",
        "pyarrow.dataset",
        "pyarrow.dataset.dataset",
        "pyarrow.memory_map",
        "safetensors.load_file",
        "shutil.copy",
        "shutil.copy2",
        "shutil.copyfile",
        "shutil.copytree",
        "shutil.move",
        "tarfile.open",
        "torch.load",
        "wave.open",
        "xml.parse",
        "zipfile.ZipFile",
    )
)
_UNTOLD = frozenset(("jinja2.ModuleLoader", "jinja2.PackageLoader", "pkgutil.get_data"))  # not named by one argument
_TWO = frozenset(("filecmp.cmp", "filecmp.dircmp"))
_ASKING_METHODS = frozenset(("exists", "is_dir", "is_file", "lstat", "stat"))
_FRAMES = frozenset(("geopandas", "pandas", "polars", "pyarrow"))
_LAST = frozenset(("from_file", "from_path", "imread", "load_file", "open"))  # of other people's functions
_LAST_WITH_PATH = frozenset(("Dataset", "File", "load", "loads_file", "parse", "read", "read_file"))
_WITH_MODE = frozenset(("File", "FileIO", "GzipFile", "OSFile", "ZipFile", "fdopen", "memmap", "open"))
_HARMLESS = frozenset(("webbrowser",))
_READING_KEYWORDS = (
    *NAME_KEYWORDS,
    *("filepath_or_buffer", "filepath", "io", "source", "f", "fp", "path_or_buffer", "fd", "filenames", "searchpath"),
    *("src", "where"),
)


def reads(
    call: ast.Call, full: str | None, is_path: Callable[[ast.expr], bool] = lambda node: False
) -> Sequence[ast.expr] | None:
    """The expressions that name the files which a call reads, the call itself where there is none to be seen.

    Args:
        call: the call.
        full: the full name of what is called; None for the method of a value; empty where it is not known.
        is_path: whether an expression is to be seen as a path.

    Returns:
        None where the call reads no file.
    """
    if full is None:
        return _read_by_method(call, is_path)
    if full in OPENERS:
        if full.startswith("logging.") or is_for_writing(argument(call, 1, "mode"), OPENERS[full]):
            return None
        return [argument(call, 0, *_READING_KEYWORDS) or call]
    if is_reader(full):
        if full.rpartition(".")[2] in _WITH_MODE and is_for_writing(argument(call, 1, "mode"), "r"):
            return None
        first = None if full in _UNTOLD else argument(call, 0, *_READING_KEYWORDS)
        return call.args[:2] if full in _TWO and len(call.args) > 1 else [first or call]
    last = full.rpartition(".")[2]
    if last == FROM_PRETRAINED:
        return _read_by_method(call, is_path)
    return _path_given(call, is_path) if last in _LAST_WITH_PATH else None


def lists(call: ast.Call, full: str | None) -> bool:
    """Whether a call lists a folder."""
    if full is None:
        return isinstance(call.func, ast.Attribute) and call.func.attr in LISTING_METHODS
    return full in LISTINGS


def is_reader(full: str) -> bool:
    """Whether a function reads the file that its first argument names."""
    top, last = full.partition(".")[0], full.rpartition(".")[2]
    if top in _FRAMES and last.startswith(("read_", "scan_")):
        return True
    if full in _READERS or f"{top}.{last}" in _READERS:
        return True
    return last in _LAST and "." in full and top not in _HARMLESS and full not in OPENERS


def is_reading(full: str) -> bool:
    """Whether what has this name would read files when somebody calls it."""
    opens = full in OPENERS and not full.startswith("logging.")
    of_path = full.startswith("pathlib.") and full.rpartition(".")[2] in READING_METHODS | LISTING_METHODS | {"open"}
    return opens or of_path or full in LISTINGS or is_reader(full)


def gives_handle(full: str) -> bool:
    """Whether a function gives an open file, and not a text or data."""
    return full in _HANDLES or (full in OPENERS and not full.startswith("logging."))


def argument(call: ast.Call, position: int, *keywords: str) -> ast.expr | None:
    """An argument of a call, by position or name."""
    if len(call.args) > position:
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg in keywords), None)


def is_for_writing(mode: ast.expr | None, default: str) -> bool:
    """Whether a mode of opening is told, and only for writing."""
    told = default if mode is None else getattr(mode, "value", None)
    if not isinstance(told, str) or not set(told) <= set("wxabt+"):
        return False
    return "w" in told or "x" in told or ("a" in told and "+" not in told)


def read_by_names(names: Collection[str]) -> str | None:
    """A method that reads files, among names of attributes."""
    return next((name for name in sorted(names) if name in READING_METHODS or name in LISTING_METHODS), None)


def _read_by_method(call: ast.Call, is_path: Callable[[ast.expr], bool]) -> Sequence[ast.expr] | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    name, of = call.func.attr, call.func.value
    if name in READING_METHODS or (name == "open" and not is_for_writing(argument(call, 0, "mode"), "r")):
        return [of]
    if name in _ASKING_METHODS:
        return [of] if is_path(of) else None
    if name == FROM_PRETRAINED:
        return [argument(call, 0, "pretrained_model_name_or_path") or call]
    return _path_given(call, is_path) if name in _LAST or name in _LAST_WITH_PATH else None


def _path_given(call: ast.Call, is_path: Callable[[ast.expr], bool]) -> Sequence[ast.expr] | None:
    first = argument(call, 0, *_READING_KEYWORDS)
    return [first] if first is not None and is_path(first) else None
