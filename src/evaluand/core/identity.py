"""Identity by content: one written encoding of values, and the digests and ids made from it.

The encoding is canonical JSON text: sorted keys, no spaces, UTF-8, shortest float form; integers and floats stay
different. What JSON cannot express is an object with one `$` key (`{"$float":"NaN"}`, `{"$bytes":"…"}`); an object that
looks like one gets its `$` doubled, so decoding returns exactly what was encoded. Two values are equal to evaluand
if their texts are. Digests are 16 bytes of BLAKE2b over that text.

Why not Parquet bytes, Arrow buffers or plain orjson: the first two change with chunking and library versions, the
last writes NaN as null.
"""

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import hashlib
import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from evaluand.core.errors import DataError, with_article

DIGEST_SIZE = 16


def encode(value: object, *, indent: bool = False) -> bytes:
    """The canonical text of a value; with `indent`, over several lines for people.

    Tuples and arrays become lists; dataclasses, pydantic models and mappings become objects; enums become their values.

    Raises:
        DataError: the value contains something that is not data (an open file, a set, an object), with its path.

    Example:
        >>> encode({"b": 1.0, "a": [None, float("nan")]})
        b'{"a":[null,{"$float":"NaN"}],"b":1.0}'
    """
    try:
        if type(value) is str:
            return orjson.dumps(value)
        return orjson.dumps(_to_json(value, "$"), option=orjson.OPT_SORT_KEYS | (orjson.OPT_INDENT_2 if indent else 0))
    except DataError:
        raise
    except RecursionError:
        raise DataError("is nested too deeply to be stored, or contains itself") from None
    except Exception as error:  # lone surrogates; or code of the value itself, such as a model_dump that fails
        raise DataError(f"cannot be written as JSON: {type(error).__name__}: {error}") from None


def decode(text: bytes | str) -> Any:
    """The value of a canonical text.

    Example:
        >>> decode(encode({"$float": 1, "x": b"raw"})) == {"$float": 1, "x": b"raw"}
        True
    """
    value = orjson.loads(text)
    marked = '"$' in text if isinstance(text, str) else b'"$' in text
    return restore(value) if marked else value


def restore(value: Any) -> Any:
    """The value of a canonical text that a JSON reader has already parsed.

    Example:
        >>> restore({"$bytes": "cmF3"})
        b'raw'
    """
    if isinstance(value, list):
        return [restore(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if key.startswith("$$"):
            return {key[1:]: restore(item)}
        if key in _READERS:
            return _READERS[key](item)
    return {key: restore(item) for key, item in value.items()}


def stored_form(value: object) -> Any:
    """The stored form of a value that JSON lacks, for writers of JSON that ask what to do with one.

    Example:
        >>> orjson.dumps({"raw": b"raw"}, stored_form)
        b'{"raw":{"$bytes":"cmF3"}}'
    """
    return orjson.loads(encode(value))


def json_text(value: object, *, indent: bool = False) -> str:
    """A value as JSON to read; what JSON lacks, such as bytes and large integers, has its stored form.

    Example:
        >>> json_text({"raw": b"raw", "missing": float("nan")})
        '{"raw":{"$bytes":"cmF3"},"missing":null}'
    """
    options = orjson.OPT_NON_STR_KEYS | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        return orjson.dumps(value, stored_form, options).decode()
    except TypeError:  # an integer of more than 64 bits
        return encode(value, indent=indent).decode()


def canonical_text(parsed: Any) -> str:
    """The canonical text again, from what a JSON reader parsed it to."""
    return orjson.dumps(parsed, option=orjson.OPT_SORT_KEYS).decode()


def digest(value: object) -> bytes:
    """The 16-byte digest of a value."""
    return digest_of_text(encode(value))


def digest_of_text(text: bytes) -> bytes:
    """The 16-byte digest of a value, from its canonical text."""
    return hashlib.blake2b(text, digest_size=DIGEST_SIZE).digest()


def digest_of_digests(parts: Iterable[bytes]) -> bytes:
    """The 16-byte digest of a sequence of digests, in order; reads the sequence once."""
    state = hashlib.blake2b(digest_size=DIGEST_SIZE)
    for part in parts:
        state.update(part)
    return state.digest()


def digest_of_file(path: Path) -> str:
    """The digest of a file's bytes, as 32 hexadecimal digits."""
    state = hashlib.blake2b(digest_size=DIGEST_SIZE)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            state.update(chunk)
    return state.hexdigest()


def artifact_id(kind: str, spec: Mapping[str, Any], attempt: int = 0) -> str:
    """The id of an artifact: 32 hexadecimal digits, from its kind, its spec and the attempt.

    Example:
        >>> artifact_id("runs", {"task": "echo"}) == artifact_id("runs", {"task": "echo"}, attempt=1)
        False
    """
    return digest({"kind": kind, "spec": spec, "attempt": attempt}).hex()


def seed_of(seed: int, example: bytes, replication: int) -> int:
    """The random seed of one example, a pure function of the run's seed, the example's digest and the replication.

    Returns:
        An integer in [0, 2**63).
    """
    text = b"%d/%d/" % (seed, replication) + example
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


_JSON_SCALARS = frozenset((str, bool, type(None)))


def _to_json(value: Any, path: str) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**63 else {"$int": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": name_float(value)}
    if kind is list or kind is tuple:
        return [item if type(item) in _JSON_SCALARS else _to_json(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if kind is dict:
        return _object_to_json(value, path)
    return _other_to_json(value, path)


def name_float(value: float) -> str:
    """What a number is called that is not finite."""
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _object_to_json(value: Mapping[Any, Any], path: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise DataError(f"{path}: the key {key!r} is {with_article(type(key).__name__)}; JSON keys are text")
        result[str.__str__(key)] = item if type(item) in _JSON_SCALARS else _to_json(item, f"{path}.{key}")
    if len(result) == 1:
        (key,) = result
        if key.startswith("$"):
            return {"$" + key: result[key]}
    return result


def _other_to_json(value: Any, path: str) -> Any:
    if isinstance(value, enum.Enum):
        return _to_json(value.value, path)
    if isinstance(value, type):
        raise _not_data_error(value, path)
    if isinstance(value, dt.datetime | dt.timedelta):
        _check_time(value, path)
    for kind, name, write, _ in _TAGGED:
        if isinstance(value, kind):
            return {f"${name}": write(value)}
    for base in (bool, int, float, str):
        if isinstance(value, base):
            return _to_json(base(value), path)
    if isinstance(value, list | tuple):
        return _to_json(list(value), path)
    if isinstance(value, Mapping):
        return _object_to_json(value, path)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object_to_json({f.name: getattr(value, f.name) for f in dataclasses.fields(value)}, path)
    if hasattr(value, "model_dump"):  # pydantic, without importing it
        return _object_to_json(value.model_dump(), path)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _array_to_json(value, path)
    if type(value).__module__.startswith("pyarrow") and hasattr(value, "as_py"):
        return _to_json(value.as_py(), path)
    raise _not_data_error(value, path)


def _not_data_error(value: Any, path: str) -> DataError:
    what = f"the class {value.__qualname__}" if isinstance(value, type) else f"{with_article(type(value).__qualname__)}"
    return DataError(f"{path}: {what} is not data and cannot be stored; return text, numbers, lists or dictionaries")


def _check_time(value: Any, path: str) -> None:
    """Refuses NaT, and times of pandas finer than a microsecond."""
    if value != value or getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
        raise DataError(f"{path}: {value} cannot be stored; times have microseconds, and no time is None")


def _array_to_json(value: Any, path: str) -> Any:
    if value.dtype.str.endswith(("[ns]", "[ps]", "[fs]", "[as]")):  # NumPy would give plain numbers of these
        exact = value.astype(f"{value.dtype.str[:3]}[us]")
        if not ((exact == value) | (exact != exact)).all():
            raise DataError(f"{path}: {value} cannot be stored; times have microseconds")
        value = exact
    plain = value.tolist()
    if type(plain) is type(value):
        raise DataError(f"{path}: a numpy {value.dtype} is not data and cannot be stored")
    return _to_json(plain, path)


def _microseconds(value: dt.timedelta) -> str:
    return str(value // dt.timedelta(microseconds=1))


_Tagged = tuple[type, str, Callable[[Any], str], Callable[[str], Any]]
_TAGGED: tuple[_Tagged, ...] = (
    (bytes, "bytes", lambda v: base64.b64encode(v).decode(), base64.b64decode),
    (bytearray, "bytes", lambda v: base64.b64encode(v).decode(), base64.b64decode),
    (dt.datetime, "datetime", dt.datetime.isoformat, dt.datetime.fromisoformat),
    (dt.date, "date", dt.date.isoformat, dt.date.fromisoformat),
    (dt.time, "time", dt.time.isoformat, dt.time.fromisoformat),
    (dt.timedelta, "microseconds", _microseconds, lambda v: dt.timedelta(microseconds=int(v))),
    (decimal.Decimal, "decimal", str, decimal.Decimal),
    (uuid.UUID, "uuid", str, uuid.UUID),
)
_READERS: dict[str, Callable[[str], Any]] = {f"${name}": read for _, name, _, read in _TAGGED} | {
    "$int": int,
    "$float": float,
}
