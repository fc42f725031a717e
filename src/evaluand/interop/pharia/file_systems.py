"""Repositories on file systems of fsspec, such as a bucket; those of this computer use plain files.

Object stores cannot append to a file, so the rows of an example are one: `runs/<id>/outputs/<example id>.jsonl`. There
are no locks: do not resume a run that another process may be continuing.
"""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Protocol

from pydantic_core import from_json, to_json

from evaluand.interop.pharia.backends import HEAD, FileShelf, MemoryShelf
from evaluand.interop.pharia.repository_files import JoinedRows, Rows, file_name, id_of

ParseRow = Callable[[dict[str, Any]], dict[str, Any]]


class FileSystem(Protocol):
    """The methods of fsspec's `AbstractFileSystem` that repositories call."""

    def cat_file(self, path: str) -> bytes: ...
    def pipe_file(self, path: str, value: bytes) -> object: ...
    def exists(self, path: str) -> bool: ...
    def makedirs(self, path: str, exist_ok: bool = False) -> object: ...
    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]: ...
    def rm(self, path: str, recursive: bool = False) -> object: ...


class FileSystemBasedRepository:
    """Base of repositories on a file system.

    Args:
        file_system: any of fsspec, such as `fsspec.filesystem("s3")`.
        root_directory: the folder in it below which everything is stored.
    """

    def __init__(self, file_system: FileSystem, root_directory: Path) -> None:
        self._file_system = file_system
        self._root_directory = Path(root_directory)

    def write_utf8(self, path: Path, content: str, create_parents: bool = False) -> None:
        """Write a text file.

        Args:
            create_parents: also create the folders above it, which object stores do not need.
        """
        if create_parents:
            self.mkdir(path.parent)
        self._file_system.pipe_file(self.path_to_str(path), content.encode())

    def read_utf8(self, path: Path) -> str:
        """The content of a text file; raises FileNotFoundError if there is none."""
        return bytes(self._file_system.cat_file(self.path_to_str(path))).decode()

    def remove_file(self, path: Path) -> None:
        """Remove a file; raises FileNotFoundError if there is none."""
        self._file_system.rm(self.path_to_str(path))

    def exists(self, path: Path) -> bool:
        """Whether there is a file or folder."""
        return bool(self._file_system.exists(self.path_to_str(path)))

    def mkdir(self, path: Path) -> None:
        """Create a folder and those above it, unless it exists."""
        self._file_system.makedirs(self.path_to_str(path), exist_ok=True)

    def file_names(self, path: Path, file_type: str = "json") -> Sequence[str]:
        """The names of the files of a type in a folder, without the type."""
        suffix = f".{file_type}"
        names = _list_names(self._file_system, self.path_to_str(path))
        return [name.removesuffix(suffix) for name in names if name.endswith(suffix)]

    @staticmethod
    def path_to_str(path: Path) -> str:
        """A path as file systems write it: with slashes."""
        return path.as_posix()


class LocalFiles:
    """The files of this computer, as a `FileSystem`."""

    protocol = ("file", "local")

    def cat_file(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def pipe_file(self, path: str, value: bytes) -> None:
        Path(path).write_bytes(value)

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        Path(path).mkdir(parents=True, exist_ok=exist_ok)

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        return [each.as_posix() for each in Path(path).iterdir()]

    def rm(self, path: str, recursive: bool = False) -> None:
        Path(path).unlink()


def is_local(file_system: FileSystem) -> bool:
    """Whether a file system is that of this computer."""
    protocol = getattr(file_system, "protocol", ())
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def open_shelf(
    file_system: FileSystem,
    folder: PurePath,
    sdk_folder: Callable[[Path], Path] | None = None,
    row: ParseRow = dict,
) -> "FileShelf | FileSystemShelf":
    """The shelf in a folder of a file system; see `FileShelf` for the arguments."""
    if is_local(file_system):
        return FileShelf(Path(folder), sdk_folder, row)
    return FileSystemShelf(file_system, folder, sdk_folder, row)


class FileSystemShelf:
    """A shelf in a folder of a file system; see `FileShelf` for the arguments."""

    def __init__(
        self,
        file_system: FileSystem,
        folder: PurePath,
        sdk_folder: Callable[[Path], Path] | None = None,
        row: ParseRow = dict,
    ) -> None:
        self.folder = Path(folder)
        self._files = file_system
        self._sdk_folder, self._row = sdk_folder, row
        self._rows: dict[tuple[str, str], FileSystemRows] = {}

    def put(self, id: str, content: bytes, suffix: str = HEAD) -> None:
        self._files.makedirs(self.folder.as_posix(), exist_ok=True)
        self._files.pipe_file(self._path(id, suffix), content)

    def get(self, id: str, suffix: str = HEAD) -> bytes | None:
        return read_file(self._files, self.where(id, suffix))

    def where(self, id: str, suffix: str = HEAD) -> str:
        return find_path(self._files, self.folder, id, suffix)

    def ids(self, suffix: str = HEAD) -> list[str]:
        return list_heads(self._files, self.folder.as_posix(), suffix)

    def rows(self, id: str, name: str) -> "FileSystemRows":
        key = id, name
        if key not in self._rows:
            self._rows.setdefault(key, FileSystemRows(self._files, f"{self._path(id)}/{name}"))
        return self._rows[key]

    def all_rows(self, id: str, name: str) -> Rows | None:
        own = self.rows(id, name)
        sdk_folder = self._sdk_folder and self._sdk_folder(Path(find_path(self._files, self.folder, id)))
        if sdk_folder and (sdk_rows := _FileSystemSdkRows(self._files, sdk_folder.as_posix(), self._row)).ids():
            return JoinedRows(own, sdk_rows)
        return own if own.ids() else None

    def remove_rows(self, id: str, name: str) -> None:
        self._rows.pop((id, name), None)
        with suppress(FileNotFoundError):
            self._files.rm(f"{self._path(id)}/{name}", recursive=True)

    def hold(self, id: str, suffix: str) -> bool:
        """Whether the head exists: file systems have no locks."""
        return bool(self._files.exists(self._path(id, suffix)))

    def let_go(self, id: str, suffix: str, *, remove: bool) -> None:
        if remove:
            with suppress(FileNotFoundError):
                self._files.rm(self._path(id, suffix))

    def _path(self, id: str, suffix: str = "") -> str:
        return (self.folder / (file_name(id) + suffix)).as_posix()


Shelf = MemoryShelf | FileShelf | FileSystemShelf


class FileSystemRows(Rows):
    """The rows of one run or evaluation in a folder of a file system, a file for each example."""

    def __init__(self, file_system: FileSystem, folder: str) -> None:
        self._files, self._folder = file_system, folder
        self._has_folder = False

    def append(self, example_id: str, value: bytes, *, failed: bool = False) -> None:
        """Append a row; the value is JSON text."""
        head = to_json({"example_id": example_id, "failed": failed})[:-1]
        if not self._has_folder:
            self._files.makedirs(self._folder, exist_ok=True)
            self._has_folder = True
        path = self._path(example_id)
        earlier = read_file(self._files, path) or b""
        self._files.pipe_file(path, earlier + head + b',"value":' + value + b"}\n")

    def take_back(self, example_id: str) -> None:
        """Remove the example's rows."""
        with suppress(FileNotFoundError):
            self._files.rm(self._path(example_id))

    def close(self) -> None:
        """There is no open file to close."""

    def ids(self) -> list[str]:
        return list_heads(self._files, self._folder, _ROW, "example_id")

    def ids_as_written(self) -> list[str]:
        """The ids of the examples that have a row, sorted: file systems do not know the order of writing."""
        return self.ids()

    def get(self, example_id: str) -> dict[str, Any] | None:
        found = self.all(example_id)
        return found[-1] if found else None

    def all(self, example_id: str) -> list[dict[str, Any]]:
        """All rows of an example, in the order in which they were written."""
        text = read_file(self._files, self._path(example_id)) or b""
        return [from_json(line) for line in text.splitlines()]

    def _path(self, example_id: str) -> str:
        return f"{self._folder}/{file_name(example_id)}{_ROW}"


_ROW = ".jsonl"


class _FileSystemSdkRows(Rows):
    """The rows that the SDKs wrote in a folder of a file system, one file for each. Read only."""

    def __init__(self, file_system: FileSystem, folder: str, row: ParseRow) -> None:
        self._files, self._folder, self._parse = file_system, folder, row

    def ids(self) -> list[str]:
        names = _names_if_any(self._files, self._folder)
        return sorted(name.removesuffix(HEAD) for name in names if name.endswith(HEAD))

    def get(self, example_id: str) -> dict[str, Any] | None:
        text = read_file(self._files, f"{self._folder}/{example_id}{HEAD}")
        return None if text is None else self._parse(from_json(text))


def read_file(file_system: FileSystem, path: str) -> bytes | None:
    """A file's content, or None if there is no such file."""
    try:
        return bytes(file_system.cat_file(path))
    except FileNotFoundError:
        return None


def find_path(file_system: FileSystem, folder: PurePath, id: str, suffix: str = "") -> str:
    """The path of an id's file or folder: its file name, or the id itself where the SDKs wrote it."""
    own, of_sdk = ((folder / (name + suffix)).as_posix() for name in (file_name(id), id))
    is_name = own != of_sdk and id_of(id) == id and posixpath.dirname(of_sdk) == folder.as_posix()
    return of_sdk if is_name and not file_system.exists(own) and file_system.exists(of_sdk) else own


def list_heads(file_system: FileSystem, folder: str, suffix: str, id_key: str = "id") -> list[str]:
    """The ids of the files in a folder, sorted; those of shortened names are in the files, under a key."""
    names = [name for name in _names_if_any(file_system, folder) if name.endswith(suffix) and name[0] != "."]
    return sorted({_id_of_file(file_system, f"{folder}/{name}", suffix, id_key) for name in names})


def _id_of_file(file_system: FileSystem, path: str, suffix: str, id_key: str) -> str:
    id = id_of(posixpath.basename(path).removesuffix(suffix))
    return id if id is not None else str(from_json(file_system.cat_file(path).splitlines()[0])[id_key])


def list_folders(file_system: FileSystem, folder: str) -> Iterator[str]:
    """The paths of what is in a folder; none if there is no such folder."""
    return (f"{folder}/{name}" for name in _names_if_any(file_system, folder))


def _names_if_any(file_system: FileSystem, folder: str) -> list[str]:
    try:
        return _list_names(file_system, folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _list_names(file_system: FileSystem, folder: str) -> list[str]:
    paths = file_system.ls(folder, detail=False, refresh=True)  # others may have written since it was cached
    return sorted(posixpath.basename(str(path).rstrip("/")) for path in paths)
