"""Text files must be UTF-8, in lines of bounded length; messages say where they are not, and how to convert them."""

from __future__ import annotations

import codecs
from typing import Final

from evaluand.core.errors import DataError, Fault
from evaluand.data.files import SourceFile


def check_text(file: SourceFile) -> None:
    """Refuse a file that begins like UTF-16 or binary data, or that only points to its content.

    Raises:
        DataError: says how to convert it.
    """
    with file.path.open("rb") as stream:
        head = stream.read(64)
    if head.startswith(_LFS_POINTER):
        message = "is a pointer of Git LFS, not the file itself; fetch it with git lfs pull"
        raise DataError(Fault(file.name, message, code="lfs_pointer"))
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        message = f"the file is UTF-16; save it as UTF-8 ({convert_command('UTF-16')})"
        raise DataError(Fault(file.name, message, code="not_utf8"))
    if b"\0" in head:
        message = "the file contains null bytes, so it is UTF-16 or not text; save it as UTF-8 text"
        raise DataError(Fault(file.name, message, code="not_utf8"))


def check_utf8(file: SourceFile, longest: int | None = None) -> None:
    """Raise a DataError for the first byte that is not UTF-8, or the first line that is longer than so many bytes."""
    decoder, offset, lines, line_start = codecs.getincrementaldecoder("utf-8")(), 0, 1, 0
    with file.path.open("rb") as stream:
        while True:
            block = stream.read(_BLOCK)
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                number = lines + block[: max(error.start - pending, 0)].count(b"\n")
                byte = f"byte {error.object[error.start]:#04x} at offset {offset - pending + error.start:,}"
                message = f"{byte} is not UTF-8; save the file as UTF-8 (if it is Latin-1: {convert_command('LATIN1')})"
                raise DataError(Fault(f"{file.name}:{number}", message, code="not_utf8")) from None
            if not block:
                return
            if (end := max(block.rfind(b"\n"), block.rfind(b"\r"))) >= 0:
                line_start = offset + end + 1
            offset, lines = offset + len(block), lines + block.count(b"\n")
            if longest is not None and offset - line_start > longest:
                raise long_row(f"{file.name}:{lines}", longest)


def long_row(where: str, longest: int) -> DataError:
    return DataError(Fault(where, f"the row has more than {longest >> 20} MB; put long texts in files of their own"))


_BLOCK: Final = 1 << 20
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"


def convert_command(encoding: str) -> str:
    """The command that converts a file.

    Example:
        >>> convert_command("LATIN1")
        'iconv -f LATIN1 -t UTF-8 OLD > NEW'
    """
    return f"iconv -f {encoding} -t UTF-8 OLD > NEW"
