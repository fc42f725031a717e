"""A folder of a store in a bucket of S3, Google Cloud Storage or Azure, by obstore.

The keys are the paths that the files of a folder have, so everything above reads and writes as on a disk. What differs:

- An object is complete when it can be seen. One that must not replace another is put with `If-None-Match`. The answer
  may be lost after it was stored, so an object that has the same bytes counts as one's own. Some services ignore the
  condition; then two processes would replace each other's results, so it is tried before the first such object.
- A table is gathered in a temporary file of this machine, because its name has its digest, and nothing is renamed. An
  empty object with a temporary name stands for it until it is complete, so that `evaluand gc` knows that it is coming.
- Folders exist while they have objects; nothing is locked, linked, synced or blocked.

Credentials, region and endpoint come from the variables of the service, such as `AWS_ACCESS_KEY_ID` and
`AWS_ENDPOINT_URL`. Requests that fail on the way, or with 5xx, are repeated by obstore.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import PurePath
from typing import IO, Any, Final, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, S3Store

from evaluand.core.errors import EngineError
from evaluand.core.identity import digest_of_text
from evaluand.store.addresses import BUCKETS, BucketPath
from evaluand.store.folder import MAX_BYTES, Entry, Folder, State
from evaluand.store.io import disk_error
from evaluand.store.temporary import temporary_name

T = TypeVar("T")

PART_BYTES = 8 << 20  # of what is read ahead, and of what is uploaded at once
MARK_SECONDS = 300.0  # after which the mark of a table that is being uploaded is renewed
_FEW: Final = 8  # names whose states are asked for one by one
_TRIES: Final = 5
_RETRIES: Final[Any] = {"max_retries": 10, "retry_timeout": timedelta(minutes=3)}
_TIMEOUTS: Final[Any] = {"connect_timeout": "10s", "timeout": "120s"}
_WITH_CONDITIONS: Final = set[tuple[str, str]]()  # buckets and endpoints that were found to refuse as they should
_STORES: Final[dict[str, tuple[Any, str]]] = {
    "s3": (S3Store, "AWS_ALLOW_HTTP"),
    "gs": (GCSStore, "GOOGLE_ALLOW_HTTP"),
    "az": (AzureStore, "AZURE_ALLOW_HTTP"),
}


def open_bucket(place: BucketPath) -> ObjectFolder:
    """The folder at a place in a bucket; nothing is requested yet.

    Raises:
        EngineError: the settings in the environment are incomplete or wrong.
    """
    scheme, bucket, *parts = place.parts
    kind, allow_http = _STORES[scheme.removesuffix(":")]
    options = _TIMEOUTS | {"allow_http": os.environ.get(allow_http, "").lower() in ("1", "true")}
    try:
        client = kind(bucket, client_options=options, retry_config=_RETRIES)
    except BaseError as error:
        raise _bucket_error(place, error, "opened") from None
    return ObjectFolder(client, BucketPath(f"{scheme}//{bucket}"), "/".join(parts))


class ObjectFolder(Folder):
    """A folder in a bucket.

    Args:
        client: the bucket, as obstore has it.
        bucket: its address.
        prefix: the path of the folder in it; empty for the bucket itself.
    """

    def __init__(self, client: Any, bucket: BucketPath, prefix: str) -> None:
        self._client, self._bucket, self._prefix = client, bucket, prefix

    def __repr__(self) -> str:
        return f"ObjectFolder({str(self.path)!r})"

    @property
    def path(self) -> PurePath:
        return self._bucket / self._prefix if self._prefix else self._bucket

    @property
    def place(self) -> str:
        return str(self.path)

    def __truediv__(self, name: str) -> ObjectFolder:
        return ObjectFolder(self._client, self._bucket, self._key(name))

    def hold_open(self) -> None:
        """A bucket has nothing to hold."""

    def close(self) -> None:
        """Nor to close."""

    def exists(self) -> bool:
        return next(self._list(), None) is not None

    def blocked(self) -> str:
        return ""

    def entries(self) -> list[Entry]:
        with self._errors("read"):
            found = obstore.list_with_delimiter(self._client, self._prefix or None)
        folders = {_last(prefix) for prefix in found["common_prefixes"]}
        files = {_last(each["path"]) for each in found["objects"]} - folders
        return sorted([Entry(name, True, False) for name in files] + [Entry(name, False, True) for name in folders])

    def state(self, name: str) -> os.stat_result | None:
        if (state := self._object_state(name)) is not None:
            return state
        newest = max((each["last_modified"].timestamp() for each in (self / name)._list()), default=None)
        return None if newest is None else _stat_result(stat.S_IFDIR | 0o700, 0, 0, newest)  # of a folder

    def states(self, names: Iterable[str], file: str = "") -> list[State]:
        names = [*names]
        places = [f"{name}/{file}" if file else name for name in names]
        if len(places) <= _FEW:
            below = [(self / name, file) if file else (self, name) for name in names]
            return [folder._object_state(name) for folder, name in below]
        start = len(self._prefix) + 1 if self._prefix else 0
        wanted = set(places)
        found = {each["path"][start:]: each for each in self._list()}
        return [_state(found[place]) if place in wanted and place in found else None for place in places]

    def read(self, name: str, most: int = MAX_BYTES) -> bytes:
        with self._errors("read", name):
            found = obstore.get(self._client, self._key(name))
            if found.meta["size"] > most:
                raise EngineError(f"{self.path / name}: has more than {most:,} bytes, so evaluand did not write it")
            return bytes(found.bytes())

    def open_file(self, name: str) -> ObjectFile:
        with self._errors("read", name):
            return ObjectFile(self, name, obstore.head(self._client, self._key(name)))

    def read_range(self, name: str, size: int, offset: int, tag: str | None) -> bytes:
        """A range of an object, if it has not been replaced since it had an entity tag."""
        with self._errors("read", name):
            options: Any = {"range": (offset, offset + size)} | ({"if_match": tag} if tag else {})
            try:
                return bytes(obstore.get(self._client, self._key(name), options=options).bytes())
            except PreconditionError:
                raise EngineError(f"{self.path / name}: was replaced while it was read; start again") from None

    def new_file(self, label: str) -> NewObject:
        return NewObject(self, temporary_name(label))

    def make(self) -> None:
        """A folder exists while it has objects."""

    def sync(self) -> None:
        """What was put is stored."""

    def put(self, name: str, data: bytes, *, durable: bool = True) -> None:
        with self._errors("written", name):
            obstore.put(self._client, self._key(name), data, use_multipart=False)

    def put_if_absent(self, name: str, data: bytes, *, durable: bool = True) -> bool:
        self._require_conditions()
        for last in (False,) * (_TRIES - 1) + (True,):
            try:
                with self._errors("written", name):
                    obstore.put(self._client, self._key(name), data, mode="create", use_multipart=False)
                return True
            except FileExistsError:
                with suppress(FileNotFoundError):  # removed meanwhile
                    return self.read(name) == data  # its own, if the answer to an earlier try was lost
            except EngineError:
                if last:
                    raise
        raise EngineError(
            f"{self.path / name}: cannot be written, since other processes write and remove it all the time"
        )

    def upload(self, name: str, file: IO[bytes], renew: Callable[[], None]) -> None:
        """Writes an object of any size in parts.

        Args:
            renew: is called between parts.
        """
        with (
            self._errors("written", name),
            obstore.open_writer(self._client, self._key(name), buffer_size=PART_BYTES) as writer,
        ):
            while part := file.read(PART_BYTES):
                writer.write(part)
                renew()

    def touch(self, name: str) -> None:
        """Nothing needs it: the use of open work is in its journal."""

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), self._errors("removed", name):
            obstore.delete(self._client, self._key(name))

    def remove_folder(self, name: str) -> bool:
        return not (self / name).exists()

    def hide(self, name: str, hidden: str) -> str:
        return name

    def _require_conditions(self) -> None:
        """Checks, once in a process, that the service does not replace an object that must not be replaced."""
        place = str(self._bucket), os.environ.get("AWS_ENDPOINT_URL", "")
        if place in _WITH_CONDITIONS:
            return
        name = temporary_name("condition")
        with self._errors("written", name):
            obstore.put(self._client, self._key(name), b"1", use_multipart=False)
        try:
            with self._errors("written", name):
                obstore.put(self._client, self._key(name), b"2", mode="create", use_multipart=False)
        except FileExistsError:
            _WITH_CONDITIONS.add(place)
        else:
            service = "it ignores If-None-Match, so processes would replace each other's results"
            raise EngineError(f"{self._bucket}: no store can be here: {service}; use a service with conditional writes")
        finally:
            self.remove(name)

    def _key(self, name: str) -> str:
        if name in ("", ".", "..") or "/" in name or not name.isprintable():
            raise EngineError(
                f"{self.path}: {name!r} is not the name of an object in this folder; the store is damaged"
            )
        return f"{self._prefix}/{name}" if self._prefix else name

    def _object_state(self, name: str) -> os.stat_result | None:
        try:
            with self._errors("read", name):
                return _state(obstore.head(self._client, self._key(name)))
        except FileNotFoundError:
            return None

    def _list(self) -> Iterator[Any]:
        """What obstore says of all objects below."""
        with self._errors("read"):
            for objects in obstore.list(self._client, self._prefix or None):
                yield from objects

    @contextmanager
    def _errors(self, what: str, name: str = "") -> Iterator[None]:
        """Turns errors of the service into one sentence, except that an object exists, or does not."""
        try:
            yield
        except (NotFoundError, FileNotFoundError):
            raise FileNotFoundError(str(self.path / name)) from None
        except (AlreadyExistsError, FileExistsError):
            raise FileExistsError(str(self.path / name)) from None
        except PreconditionError as error:
            if what == "written":
                raise FileExistsError(str(self.path / name)) from None
            raise _bucket_error(self.path / name, error, what) from None
        except (BaseError, OSError) as error:
            raise _bucket_error(self.path / name, error, what) from None


class ObjectFile:
    """An object that is open for reading: what is read next is mostly at hand."""

    def __init__(self, folder: ObjectFolder, name: str, found: Any) -> None:
        self._folder, self._name = folder, name
        self._tag: str | None = found["e_tag"]
        self._state = _state(found)
        self._start, self._data = 0, b""

    @property
    def size(self) -> int:
        return self._state.st_size

    @property
    def version(self) -> tuple[int, ...]:
        return _number(str(self._folder.path / self._name)), self._state.st_ino, self.size, self._state.st_mtime_ns

    def read(self, size: int, offset: int) -> bytes:
        size = min(size, self.size - offset)
        if size <= 0:
            return b""
        at = offset - self._start
        if not 0 <= at <= len(self._data) - size:
            ahead = min(max(size, PART_BYTES), self.size - offset)
            self._start, self._data, at = offset, self._folder.read_range(self._name, ahead, offset, self._tag), 0
        return self._data[at : at + size]

    def close(self) -> None:
        self._data = b""


class NewObject:
    """A table that is gathered in a temporary file, and uploaded when its name is known."""

    def __init__(self, folder: ObjectFolder, mark: str) -> None:
        self._folder, self._mark = folder, mark
        self._renewed = time.monotonic()
        folder.put(mark, b"")
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile(prefix="evaluand-")  # noqa: SIM115 (closed by `discard`)
        except OSError as error:
            folder.remove(mark)
            raise disk_error(PurePath(tempfile.gettempdir()), error, "written") from error

    def write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise disk_error(PurePath(tempfile.gettempdir()), error, "written") from error
        self._renew()

    def finish(self, name: str) -> None:
        self._file.seek(0)
        self._folder.upload(name, self._file, self._renew)
        self.discard()

    def discard(self) -> None:
        self._file.close()
        with suppress(EngineError):  # `evaluand gc` removes it
            self._folder.remove(self._mark)

    def _renew(self) -> None:
        if time.monotonic() - self._renewed > MARK_SECONDS:
            self._renewed = time.monotonic()
            self._folder.put(self._mark, b"")


def _state(found: Any) -> os.stat_result:
    """The state of an object, as the operating system has it of a file; its entity tag stands for the inode."""
    inode, when = _number(found["e_tag"] or ""), found["last_modified"].timestamp()
    return _stat_result(stat.S_IFREG | 0o600, inode, found["size"], when)


def _stat_result(mode: int, inode: int, size: int, when: float) -> os.stat_result:
    seconds = int(when)
    numbers = (mode, inode, 0, 1, 0, 0, size, seconds, seconds, seconds)
    return os.stat_result(numbers, {"st_mtime": when, "st_mtime_ns": int(when * 1e6) * 1000})


def _number(text: str) -> int:
    return int.from_bytes(digest_of_text(text.encode())[:7], "big")


def _last(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _bucket_error(path: PurePath, error: Exception, what: str) -> EngineError:
    """The error of a service that refuses, cannot be reached or does not answer."""
    service = BUCKETS[path.parts[0].removesuffix(":")]
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        reason, advice = "its credentials do not suffice", "set those of the environment"
    elif _METADATA_SERVICE in str(error):  # where machines in a cloud ask for theirs
        reason, advice = "there are no credentials", "set those of the environment, such as AWS_ACCESS_KEY_ID"
    else:
        reason, advice = _reason(error), "check the bucket and the settings in the environment, then start again"
    return EngineError(f"{path}: cannot be {what}: {service}: {reason}; {advice}")


def _reason(error: Exception) -> str:
    """The first sentence of an error, without the answer of the service, which may be long."""
    lines = str(error).split("\n")
    return lines[0][:_MOST_REASON].rstrip(" .:{") or type(error).__name__


_MOST_REASON: Final = 300
_METADATA_SERVICE: Final = "169.254.169.254"
