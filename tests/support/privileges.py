"""Tests of files that may not be read, also by root."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION = 0x20080522  # of the structures of capset(2)
_OVERRIDES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH of capabilities(7)


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Data(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


@contextmanager
def permissions_apply() -> Iterator[None]:
    """A context in which the permissions of files apply to this thread even if root runs the tests (Linux)."""
    if os.geteuid() != 0 or sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = _Header(_VERSION, 0), (_Data * 2)()
    if libc.capget(ctypes.byref(header), data):
        raise OSError(ctypes.get_errno(), "capget")
    before = data[0].effective
    _set(libc, header, data, before & ~_OVERRIDES)
    try:
        yield
    finally:
        _set(libc, header, data, before)


def _set(libc: ctypes.CDLL, header: _Header, data: ctypes.Array[_Data], effective: int) -> None:
    data[0].effective = effective
    if libc.capset(ctypes.byref(header), data):
        raise OSError(ctypes.get_errno(), "capset")
