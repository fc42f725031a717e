"""Which calls read files, and which expression names what they read."""

from __future__ import annotations

import ast
from collections.abc import Collection

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
STREAMS = frozenset(("io.StringIO", "io.BytesIO"))
FROM_PRETRAINED = "from_pretrained"

_READERS = frozenset(
    (
        "PIL.Image.open",
        "h5py.File",
        "importlib.resources.open_binary",
        "importlib.resources.open_text",
        "importlib.resources.read_binary",
        "importlib.resources.read_text",
        "joblib.load",
        "linecache.getline",
        "linecache.getlines",
        "numpy.fromfile",
        "numpy.genfromtxt",
        "numpy.load",
        "numpy.loadtxt",
        "numpy.memmap",
        "pickle.Unpickler.load",
        "safetensors.load_file",
        "tarfile.open",
        "torch.load",
        "xml.parse",
        "zipfile.ZipFile",
    )
)
_FRAMES = frozenset(("geopandas", "pandas", "polars", "pyarrow"))
_READING_KEYWORDS = (*NAME_KEYWORDS, "filepath_or_buffer", "filepath", "io", "source", "f", "fp", "path_or_buffer")


def reads(call: ast.Call, full: str | None) -> ast.expr | None:
    """The expression that names the file which a call reads; the call itself where there is none to be seen.

    Args:
        call: the call.
        full: the full name of what is called; None for the method of a value; empty where it is not known.
    """
    if full is None:
        return _read_by_method(call)
    if full in OPENERS:
        if full.startswith("logging.") or is_for_writing(argument(call, 1, "mode"), OPENERS[full]):
            return None
    elif not is_reader(full) or is_for_writing(argument(call, 1, "mode"), "r"):
        return _read_by_method(call) if full.endswith(f".{FROM_PRETRAINED}") else None
    return argument(call, 0, *_READING_KEYWORDS) or call


def is_reader(full: str) -> bool:
    """Whether a function reads the file that its first argument names."""
    top, last = full.partition(".")[0], full.rpartition(".")[2]
    if top in _FRAMES and last.startswith(("read_", "scan_")):
        return True
    return full in _READERS or f"{top}.{last}" in _READERS


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


def _read_by_method(call: ast.Call) -> ast.expr | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    name = call.func.attr
    if name in READING_METHODS or (name == "open" and not is_for_writing(argument(call, 0, "mode"), "r")):
        return call.func.value
    return argument(call, 0, "pretrained_model_name_or_path") or call if name == FROM_PRETRAINED else None
