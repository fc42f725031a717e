"""Lines that are longer than what looking at a store reads into memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluand.store import segments
from evaluand.store.io import DiskFolder
from evaluand.store.log import FileLog
from evaluand.store.segments import CHANGED, INVALID, LONG, add_checksums, find_damage, seed_of

SCOPE = "runs/00/calls"
NAME = f"{1:020}-{1:08x}.lines"
EARLIER = f"{1:020}-{1:08x}.jsonl"
LONG_BODY = b'[1,"%b"]\n' % (b"x" * 5000)


@pytest.mark.parametrize(
    ("name", "body", "change", "reasons"),
    [
        (NAME, LONG_BODY, b"", []),
        (NAME, LONG_BODY, b"y", [CHANGED]),
        (NAME, LONG_BODY.replace(b"1", b"x", 1), b"", [INVALID]),
        (NAME, LONG_BODY.replace(b"[", b"{", 1), b"", [INVALID]),
        (EARLIER, LONG_BODY, b"", [LONG]),
    ],
)
def test_a_long_line_is_checked_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, body: bytes, change: bytes, reasons: list[str]
) -> None:
    monkeypatch.setattr(segments, "CHUNK_BYTES", 64)
    monkeypatch.setattr(segments, "_LONG_LINE_BYTES", 1000)
    lines = b'[0,"a"]\n' + body + b'[2,"c"]\n'
    content = lines if name == EARLIER else add_checksums(lines, seed_of(SCOPE, name))
    (tmp_path / name).write_bytes(content.replace(b"xxx", change + b"xxx"[len(change) :], 1))
    found = [*find_damage(FileLog(DiskFolder(tmp_path), SCOPE))]
    assert [(each.line, each.reason) for each in found] == [(2, reason) for reason in reasons]
